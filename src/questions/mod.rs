//! The report that no run makes: `explain`. It only reads.

pub mod explain;

use itertools::Itertools as _;

use crate::{
    cluster::Cluster,
    decide::ReasonCode,
    exit::{Exit, Result},
    report::Report,
    settings::{Settings, Task},
    source::{Source, snapshot},
    stop::Stop,
};

/// Opens the source that the settings name, and makes a report from it.
async fn ask(
    settings: &Settings,
    stop: &Stop,
    question: impl AsyncFnOnce(Source<'_>) -> Result<Report>,
) -> Result<Report> {
    let asked = async {
        match &settings.task {
            Task::Audit { snapshot, now } => {
                let options = snapshot::Options {
                    now: *now,
                    every_pod: true,
                };
                let saved = snapshot::open(snapshot, options).await?;
                question((&saved).into()).await
            }
            Task::Reap { target, .. } => {
                let cluster = Cluster::connect(target, stop).await?;
                question((&cluster).into()).await
            }
        }
    };
    stop.or_stopped(Box::pin(asked)).await
}

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
