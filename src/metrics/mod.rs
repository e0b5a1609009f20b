//! A run in numbers, for Prometheus.
//!
//! A run ends before anybody could scrape it, so it hands its numbers over at its end: to a Pushgateway, or in a file for
//! node-exporter's textfile collector. They are those of the report. Every series is there at zero too, or nobody could
//! tell a quiet cluster from a reaper that is broken.
//!
//! The moment of the last success is what alerts are about, so only a success writes it: a run that was allowed to
//! delete, did all that it should, and exits with 0, or with 5, where it has left the rest to a person. Any other run, a
//! dry run too, leaves the former one standing: somebody who forgot `DRY_RUN` is told that nothing is deleted.
//! `pod_reaper_mode` says which kind the last run was. A run that could not look at the cluster says nothing about pods,
//! and what the last one said of them stays.

mod file;
mod push;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::Instant;

pub use self::push::PushGateway;
use crate::{
    decide::REASONS,
    exit::Exit,
    outcome::Outcome,
    report::Report,
    settings::{Settings, Task},
    stop::Stop,
};

/// Longest that handing over may take: it must not keep a run from ending.
const LIMIT: Duration = Duration::from_secs(5);

/// What there will be to hand over at the end of a run.
#[derive(Debug)]
pub struct Metrics {
    file: Option<PathBuf>,
    gateway: Option<PushGateway>,
    cluster: Option<String>,
    mode: &'static str,
    started: Instant,
    counts: Option<Counts>,
}

/// What a report says in numbers.
#[derive(Debug)]
struct Counts {
    /// By reason.
    pods: BTreeMap<&'static str, usize>,
    outcomes: BTreeMap<&'static str, usize>,
    nodes_not_ready: usize,
    held: usize,
    unread: usize,
}

impl Metrics {
    /// A run begins.
    pub fn begin(settings: &Settings) -> Self {
        Self {
            file: settings.metrics_file.clone(),
            gateway: settings.push_gateway.clone(),
            cluster: settings.cluster_name.clone(),
            mode: settings.task.mode(),
            started: Instant::now(),
            counts: None,
        }
    }

    /// There is a report.
    pub fn take(&mut self, report: &Report) {
        let mut pods = BTreeMap::new();
        for pod in &report.pods {
            *pods.entry(pod.reason).or_default() += 1;
        }
        self.counts = Some(Counts {
            pods,
            outcomes: report.summary.outcomes.clone(),
            nodes_not_ready: report.summary.nodes_not_ready,
            held: report.breaker.as_ref().map_or(0, |breaker| breaker.held),
            unread: report.errors.len(),
        });
    }

    /// The run has ended with this exit code. Numbers that cannot be handed over are a warning, and change nothing.
    pub async fn deliver(self, exit: u8, stop: &Stop) {
        if self.file.is_none() && self.gateway.is_none() {
            return;
        }
        // This machine's clock: the cluster's may have been out of reach, and nothing is judged by it.
        let page = self.page(exit, Timestamp::now(), self.started.elapsed());
        let limit = stop.at_most(LIMIT);
        let late = || format!("it took longer than {} s", limit.as_secs());
        let push = async {
            if let Some(gateway) = &self.gateway {
                let pushed = tokio::time::timeout(limit, gateway.push(self.cluster.as_deref(), &page)).await;
                if let Err(cause) = pushed.unwrap_or_else(|_| Err(late())) {
                    tracing::warn!(
                        "The metrics were not pushed to {gateway}: {cause}. The run is as it was; see that a Pushgateway \
                         is there, and that --push-gateway names it"
                    );
                }
            }
        };
        let write = async {
            if let Some(path) = self.file.clone() {
                let (shown, page) = (path.display().to_string(), page.clone());
                // In a thread of its own: a file system may hang.
                let written = tokio::task::spawn_blocking(move || file::write(&path, &page));
                let cause = match tokio::time::timeout(limit, written).await {
                    Ok(Ok(Ok(()))) => return,
                    Ok(Ok(Err(error))) => error.to_string(),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => late(),
                };
                tracing::warn!(
                    "The metrics were not written to {shown}: {cause}. The run is as it was; see that --metrics-file names \
                     a file in a folder that may be written to"
                );
            }
        };
        tokio::join!(push, write);
    }

    fn page(&self, exit: u8, ended: Timestamp, took: Duration) -> Page {
        let success = self.success(exit);
        let mut page = Page { families: Vec::new(), whole: success };
        let cluster = self.cluster.as_deref();
        let mut family = |name, help, samples: &[Sample]| {
            page.families.push(Family::new(name, help, cluster, samples));
        };
        if let Some(counts) = &self.counts {
            let of = |counts: &BTreeMap<_, _>, code| counts.get(code).copied().unwrap_or(0).to_string();
            let pods = REASONS.map(|reason| {
                let labels = vec![("verdict", reason.verdict.code()), ("reason", reason.code)];
                (labels, of(&counts.pods, reason.code))
            });
            family("pods", "Terminating pods that the last run looked at, by verdict and reason.", &pods);
            let outcomes = Outcome::CODES.map(|code| (vec![("outcome", code)], of(&counts.outcomes, code)));
            family("outcomes", "Pods that were to be reaped in the last run, by what happened.", &outcomes);
            let one = |number: usize| [(Vec::new(), number.to_string())];
            family(
                "nodes_not_ready",
                "NotReady nodes, leaf nodes and unread ones included.",
                &one(counts.nodes_not_ready),
            );
            family(
                "breaker_held_pods",
                "Pods that the mass-outage breaker kept from being reaped.",
                &one(counts.held),
            );
            family("read_errors", "Things that the last run could not read.", &one(counts.unread));
        }
        // An audit of a saved state hands nothing over.
        let modes = Task::MODES.into_iter().filter(|mode| *mode != Task::SNAPSHOT);
        let modes = modes.map(|mode| (vec![("mode", mode)], u8::from(mode == self.mode).to_string()));
        let help = "What the last run was allowed to change: 1 for what holds.";
        family("mode", help, &modes.collect::<Vec<_>>());
        family("exit_code", "Exit code of the last run.", &[(Vec::new(), exit.to_string())]);
        let took = took.as_secs_f64().to_string();
        family("run_duration_seconds", "How long the last run took.", &[(Vec::new(), took)]);
        let ended = Duration::try_from(ended.as_duration()).unwrap_or_default().as_secs_f64().to_string();
        family("last_run_timestamp_seconds", "When the last run ended.", &[(Vec::new(), ended.clone())]);
        if success {
            let help =
                "When a run that may delete last did all that it should; a person may still be needed.";
            family("last_success_timestamp_seconds", help, &[(Vec::new(), ended)]);
        }
        let version = [(vec![("version", env!("CARGO_PKG_VERSION"))], "1".to_owned())];
        family("build_info", "The program's version.", &version);
        page
    }

    /// Whether the run did all that it should. At a terminal somebody may have said no.
    fn success(&self, exit: u8) -> bool {
        let refused = |counts: &Counts| counts.outcomes.get("would-delete").is_some_and(|count| *count > 0);
        self.mode == Task::DELETE
            && [Exit::Done, Exit::Manual].map(Exit::code).contains(&exit)
            && self.counts.as_ref().is_some_and(|counts| !refused(counts))
    }
}

/// Labels, and the value.
type Sample = (Vec<(&'static str, &'static str)>, String);

/// What is handed over: the text exposition format, version 0.0.4.
#[derive(Debug, Clone)]
struct Page {
    families: Vec<Family>,
    /// Whether it replaces all that was handed over before; else families that it does not tell stay as they were.
    whole: bool,
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.families.iter().try_for_each(|family| f.write_str(&family.text))
    }
}

/// One metric with its samples, all of them gauges: each run starts from nothing.
#[derive(Debug, Clone)]
struct Family {
    name: String,
    text: String,
}

impl Family {
    /// What the name of each begins with.
    const PREFIX: &str = "pod_reaper_";
    /// What each begins with.
    const HEAD: &str = "# HELP ";

    fn new(name: &str, help: &str, cluster: Option<&str>, samples: &[Sample]) -> Self {
        let name = format!("{}{name}", Self::PREFIX);
        let mut text = format!("{}{name} {help}\n# TYPE {name} gauge\n", Self::HEAD);
        for (labels, value) in samples {
            let labels =
                cluster.map(|cluster| ("cluster", cluster)).into_iter().chain(labels.iter().copied());
            let labels = labels.map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
            let labels = labels.collect::<Vec<_>>().join(",");
            let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
            // A String takes everything.
            let _ = writeln!(text, "{name}{labels} {value}");
        }
        Self { name, text }
    }
}

/// As the format asks for within quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}
