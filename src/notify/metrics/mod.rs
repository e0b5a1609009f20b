//! A run in numbers, for Prometheus.
//!
//! A run ends before anybody could scrape it, so it hands its numbers over at its end: to a Pushgateway, or in a file for
//! node-exporter's textfile collector. They are those of the report. Every series is there at zero too: else a quiet
//! cluster would look like a broken reaper.
//!
//! The moment of the last success is what alerts are about, so only a success writes it: a run that was allowed to
//! delete, did all that it should, and exits with 0, or with 5, where it has left the rest to a person. Any other run, a
//! dry run too, leaves the former one standing: so an operator who forgot `DRY_RUN` is alerted that nothing is deleted.
//! `pod_reaper_mode` says which kind the last run was. A run that could not look at the cluster says nothing about pods,
//! and what the last one said of them stays.

mod file;
mod push;
#[cfg(test)]
mod tests;

use std::{
    fmt::{self, Write as _},
    io,
    time::Duration,
};

use itertools::Itertools as _;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::{
    cli::{Command, MetricsTo},
    decide::ReasonCode,
    exit::Exit,
    outcome::OutcomeCode,
    questions::what_if::each_node::Forecast,
    report::{Report, notices::NoticeCode},
    settings::{ModeCode, Settings},
    stop::Stop,
    words::after,
};

/// Time limit for handing over: it must not keep a run from ending.
const LIMIT: Duration = Duration::from_secs(5);

/// What is handed over at the end of a run.
#[derive(Debug)]
pub struct Metrics<'a> {
    settings: &'a Settings,
    started: Instant,
    /// The report in numbers; empty until there is one.
    of_report: Vec<Numbers>,
    /// Whether a person said no to the deletes.
    refused: bool,
}

impl<'a> Metrics<'a> {
    pub fn begin(settings: &'a Settings) -> Self {
        Self {
            settings,
            started: Instant::now(),
            of_report: Vec::new(),
            refused: false,
        }
    }

    pub fn take(&mut self, report: &Report) {
        let summary = &report.summary;
        let pods = ReasonCode::ALL.map(|code| {
            let count = report.pods.iter().filter(|pod| pod.reason == code).count();
            let verdict = label("verdict", code.verdict().as_str());
            let labels = [verdict, label("reason", code.as_str())].join(",");
            (labels, count.to_string())
        });
        let notices = NoticeCode::ALL.map(|code| {
            let counts = report.notices.iter().filter(|notice| notice.code == code);
            (code, counts.map(|notice| notice.count).sum::<usize>())
        });
        let held = report.breaker.as_ref().map_or(0, |breaker| breaker.held);
        self.refused = summary.outcomes.get(&OutcomeCode::WouldDelete) > Some(&0);
        self.of_report = vec![
            (
                "pods",
                "Terminating pods that the last run looked at, by verdict and reason.",
                pods.into(),
            ),
            (
                "outcomes",
                "Pods that were to be reaped in the last run, by what happened.",
                each("outcome", &summary.outcomes),
            ),
            (
                "nodes_not_ready",
                "NotReady nodes, leaf nodes and unread ones included.",
                one(&summary.nodes_not_ready),
            ),
            (
                "breaker_held_pods",
                "Pods that the mass-outage breaker kept from being reaped.",
                one(&held),
            ),
            (
                "read_errors",
                "Things that the last run could not read.",
                one(&report.errors.len()),
            ),
            (
                "replacements",
                "Replacements that the last run waited for, by how far they had come at its end.",
                each("state", &summary.replacements),
            ),
            (
                "notices",
                "How many pods, or other things, the notices of the last run are about.",
                each("notice", notices),
            ),
        ];
    }

    /// A forecast in numbers, which stand beside those of runs: by node, how many pods would need a person.
    /// One that lacks what could not be read is not handed over: it would say that nobody is needed.
    pub fn take_forecast(&mut self, forecast: &Forecast) {
        if forecast.exit != Exit::Done {
            return;
        }
        let nodes = forecast
            .nodes
            .iter()
            .map(|node| (&node.node, node.counts.needs_person));
        self.of_report = vec![(
            "forecast_needs_person",
            "Pods that would need a person if this node died.",
            each("node", nodes),
        )];
    }

    /// Hands the numbers over. A failure is a warning, and changes nothing.
    pub async fn deliver(self, exit: Exit, stop: &Stop) {
        let MetricsTo {
            push_gateway,
            metrics_file,
            ..
        } = &self.settings.metrics;
        let forecast = self.settings.command == Command::EachNode;
        if metrics_file.is_none() && push_gateway.is_none() || forecast && self.of_report.is_empty()
        {
            return;
        }
        // This machine's clock: the cluster's may have been out of reach, and nothing is judged by it.
        let exposition = self.exposition(exit, Timestamp::now(), self.started.elapsed());
        let limit = stop.at_most(LIMIT);
        let push = async {
            let Some(gateway) = push_gateway else { return };
            let job = if forecast {
                "pod-reaper-forecast"
            } else {
                "pod-reaper"
            };
            let cluster = self.settings.cluster_name.as_deref();
            let pushed = push::push(gateway, job, cluster, &exposition);
            let advice = "a Pushgateway is there, and that --push-gateway names it";
            within(limit, pushed, &format!("pushed to {gateway}"), advice).await;
        };
        let write = async {
            let Some(mut path) = metrics_file.clone() else {
                return;
            };
            if forecast {
                // A run replaces its own file.
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                path.set_file_name(format!("{stem}-forecast.prom"));
            }
            let (done, exposition) = (format!("written to {}", path.display()), exposition.clone());
            // In a thread of its own: a file system may hang.
            let written = tokio::task::spawn_blocking(move || file::write(&path, &exposition));
            let written = async {
                written
                    .await
                    .map_err(io::Error::from)
                    .flatten()
                    .map_err(|error| error.to_string())
            };
            let advice = "--metrics-file names a file in a writable folder";
            within(limit, written, &done, advice).await;
        };
        tokio::join!(push, write);
    }

    fn exposition(&self, exit: Exit, ended: Timestamp, took: Duration) -> Exposition {
        if self.settings.command == Command::EachNode {
            return self.families(&self.of_report, true);
        }
        // At a terminal a person may have said no.
        let success = self.settings.task.mode() == ModeCode::Delete
            && [Exit::Done, Exit::Manual].contains(&exit)
            && !self.of_report.is_empty()
            && !self.refused;
        let mode = self.settings.task.mode();
        // An audit of a saved state hands nothing over.
        let modes = ModeCode::ALL
            .into_iter()
            .filter(|mode| *mode != ModeCode::Snapshot)
            .map(|it| (it, u8::from(it == mode)));
        let ended = Duration::try_from(ended.as_duration())
            .unwrap_or_default()
            .as_secs_f64();
        let mut all = self.of_report.clone();
        all.extend([
            (
                "mode",
                "What the last run was allowed to change: 1 for its mode.",
                each("mode", modes),
            ),
            ("exit_code", "Exit code of the last run.", one(&exit.code())),
            (
                "run_duration_seconds",
                "How long the last run took.",
                one(&took.as_secs_f64()),
            ),
            (
                "last_run_timestamp_seconds",
                "When the last run ended.",
                one(&ended),
            ),
            (
                "build_info",
                "The program's version.",
                each("version", [(env!("CARGO_PKG_VERSION"), 1)]),
            ),
        ]);
        if success {
            let help = "When a run that may delete last did all that it should; a person may still be needed.";
            all.push(("last_success_timestamp_seconds", help, one(&ended)));
        }
        self.families(&all, success)
    }

    fn families(&self, all: &[Numbers], whole: bool) -> Exposition {
        let cluster = self.settings.cluster_name.as_deref();
        let families = all.iter().map(|numbers| Family::new(numbers, cluster));
        Exposition {
            families: families.collect(),
            whole,
        }
    }
}

/// Labels as they are written, and the value.
type Sample = (String, String);
/// What a metric is called, what it says, and its samples.
type Numbers = (&'static str, &'static str, Vec<Sample>);

/// One sample without labels.
fn one(value: &impl ToString) -> Vec<Sample> {
    vec![(String::new(), value.to_string())]
}

/// One sample for each value of a label.
fn each<T: ToString, N: ToString>(
    name: &str,
    counts: impl IntoIterator<Item = (T, N)>,
) -> Vec<Sample> {
    counts
        .into_iter()
        .map(|(value, count)| (label(name, &value.to_string()), count.to_string()))
        .collect()
}

/// A label, escaped as the format asks for.
fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', r"\\").replace('"', "\\\"");
    format!("{name}=\"{}\"", value.replace('\n', r"\n"))
}

/// Does `work`, for no longer than `limit`. A failure is logged, with what was not `done` and what to check.
async fn within(
    limit: Duration,
    work: impl Future<Output = Result<(), String>>,
    done: &str,
    advice: &str,
) {
    let late = |_| Err(format!("it took longer than {} s", limit.as_secs()));
    if let Err(cause) = tokio::time::timeout(limit, work).await.unwrap_or_else(late) {
        tracing::warn!(
            "The metrics were not {done}: {cause}. The run is unaffected; check that {advice}"
        );
    }
}

/// All metrics, in the text exposition format, version 0.0.4.
#[derive(Debug, Clone)]
struct Exposition {
    families: Vec<Family>,
    /// Whether it replaces all that was handed over before. Otherwise families that it lacks stay as they were.
    whole: bool,
}

impl fmt::Display for Exposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.families
            .iter()
            .try_for_each(|family| f.write_str(&family.text))
    }
}

/// One metric with its samples. All are gauges: each run starts from nothing.
#[derive(Debug, Clone)]
struct Family {
    name: String,
    text: String,
}

impl Family {
    const PREFIX: &str = "pod_reaper_";
    /// How the text of each begins.
    const HEAD: &str = "# HELP ";

    fn new((name, help, samples): &Numbers, cluster: Option<&str>) -> Self {
        let name = format!("{}{name}", Self::PREFIX);
        let mut text = format!("{}{name} {help}\n# TYPE {name} gauge\n", Self::HEAD);
        for (labels, value) in samples {
            let cluster = cluster.map(|cluster| label("cluster", cluster));
            let labels = Some(labels.clone()).filter(|labels| !labels.is_empty());
            let labels = cluster.into_iter().chain(labels).join(",");
            let labels = Some(labels)
                .filter(|labels| !labels.is_empty())
                .map(|labels| format!("{{{labels}}}"));
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name}{} {value}", after("", labels));
        }
        Self { name, text }
    }
}
