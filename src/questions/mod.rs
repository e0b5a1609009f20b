//! Reports that no run makes: `explain` and `what-if`. They only read.

/// Evaluates `$ask` with `$source` as the source that the settings name: a snapshot or a
/// live cluster.
macro_rules! by_source {
    ($settings:ident, $stop:ident, |$source:ident| $ask:expr) => {{
        use crate::source::snapshot;
        let asked = async {
            match &$settings.task {
                crate::settings::Task::Audit { snapshot, now } => {
                    let options = snapshot::Options {
                        now: *now,
                        every_pod: true,
                    };
                    let $source = &snapshot::open(snapshot, options).await?;
                    $ask.await
                }
                crate::settings::Task::Reap { target, .. } => {
                    let cluster = crate::cluster::Cluster::connect(target, $stop).await?;
                    let $source = &cluster;
                    $ask.await
                }
            }
        };
        $stop.or_stopped(Box::pin(asked)).await
    }};
}

pub mod each_node;
pub mod explain;
pub mod what_if;

use itertools::Itertools as _;

use crate::{decide::ReasonCode, exit::Exit, report::Report};

/// Returns the exit code of a question: only what could not be read makes one.
fn exit(report: &Report) -> Exit {
    let mut pods = report.pods.iter();
    if report.errors.is_empty() && !pods.any(|pod| pod.reason == Some(ReasonCode::FactsUnread)) {
        Exit::Done
    } else {
        Exit::Incomplete
    }
}

/// Asks whether one of the up to three `known` names most similar to `name` is meant; `None` if no
/// known name is similar. A known name may have its namespace before it.
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
