//! The report that no run makes: `explain`. It only reads.

pub mod explain;

use itertools::Itertools as _;

use crate::{exit::Exit, judge::ReasonCode, report::Report};

/// Returns the exit code of a question: it differs from 0 only if something could not be read.
fn exit(report: &Report) -> Exit {
    let mut pods = report.pods.iter();
    if report.errors.is_empty() && !pods.any(|pod| pod.reason == Some(ReasonCode::FactsUnread)) {
        Exit::Done
    } else {
        Exit::Incomplete
    }
}

/// Returns a hint that asks whether one of the up to three `known` names most similar to `name` is
/// meant; `None` if no known name is similar. A known name may have its namespace before it.
fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let near = known
        .map(|known| {
            let bare = known.rsplit('/').next().unwrap_or(known);
            (strsim::jaro_winkler(name, bare), known)
        })
        .filter(|(likeness, _)| *likeness > 0.7)
        .sorted_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)))
        .take(3)
        .map(|(_, name)| name)
        .join(" or ");
    (!near.is_empty()).then(|| format!("did you mean {near}?"))
}
