//! The metrics of a run, for Prometheus.
//!
//! A run ends before Prometheus could scrape it. So a run delivers its metrics at its end, to a
//! Pushgateway or in a file for node-exporter's textfile collector. The numbers are those of the
//! report. Every series is written even if it is zero. Otherwise a quiet cluster would look like a
//! broken reaper.
//!
//! The alerts are about the time of the last success, so only a success writes that time: a run
//! that was allowed to delete, did everything that it should, and exits with 0, or with 5 because
//! pods need you. Any other run, such as a dry run, keeps the former time. So a user who forgot to
//! remove `DRY_RUN` is alerted that nothing is deleted. `pod_reaper_mode` shows the kind of the
//! last run. A run that could not read the cluster writes no metrics about pods, and keeps those of
//! the run before.

mod file;
mod push;
#[cfg(test)]
mod tests;

use std::{fmt::Display, io, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

use crate::{
    cli::MetricsTo,
    cluster::Mode,
    decide::ReasonCode,
    exit::Exit,
    outcome::OutcomeCode,
    report::{Report, notices::NoticeCode},
    settings::Settings,
    stop::Stop,
    words::{joined, prefixed},
};

/// The time limit of the delivery, which must not keep a run from ending.
const DELIVERY_TIME_LIMIT: Duration = Duration::from_secs(5);
/// The prefix of all metric names.
const PREFIX: &str = "pod_reaper_";
/// The beginning of each metric in the text format.
const HELP: &str = "# HELP ";

/// The metrics of a run, collected until its end.
#[derive(Debug)]
pub struct Metrics<'a> {
    settings: &'a Settings,
    started: Instant,
    /// The metrics of the report, in the text exposition format, version 0.0.4. Empty if there is
    /// no report.
    text: String,
    /// Whether the user declined the deletes.
    refused: bool,
}

/// The text to deliver.
#[derive(Debug, Clone)]
struct Exposition {
    text: String,
    /// Whether the text replaces all metrics that were delivered before. Otherwise metrics that it
    /// lacks are kept.
    whole: bool,
}

impl<'a> Metrics<'a> {
    pub fn begin(settings: &'a Settings) -> Self {
        Self {
            settings,
            started: Instant::now(),
            text: String::new(),
            refused: false,
        }
    }

    /// Adds the metrics of a report.
    pub fn add_report(&mut self, report: &Report) {
        let summary = &report.summary;
        let pods = ReasonCode::ALL.map(|code| {
            let labels = [label("verdict", code.verdict()), label("reason", code)];
            let pods = report.pods.iter().filter(|pod| pod.reason == Some(code));
            (labels.join(","), pods.count())
        });
        let notices = NoticeCode::ALL.map(|code| {
            let notices = report.notices.iter().filter(|notice| notice.code == code);
            (code, notices.map(|notice| notice.count).sum::<usize>())
        });
        let held = report.breaker.as_ref().map_or(0, |breaker| breaker.held);
        self.refused = summary.outcomes.get(&OutcomeCode::WouldDelete) > Some(&0);
        self.add(
            "pods",
            "Terminating pods that the last run looked at, by verdict and reason.",
            pods,
        );
        self.add(
            "outcomes",
            "Pods that were to be reaped in the last run, by what happened.",
            by_label("outcome", &summary.outcomes),
        );
        self.add(
            "nodes_not_ready",
            "NotReady nodes, leaf nodes and unread ones included.",
            unlabelled(summary.nodes_not_ready),
        );
        self.add(
            "breaker_held_pods",
            "Pods that the mass-outage breaker kept from being reaped.",
            unlabelled(held),
        );
        self.add(
            "read_errors",
            "Things that the last run could not read.",
            unlabelled(report.errors.len()),
        );
        self.add(
            "notices",
            "How many pods, or other things, the notices of the last run are about.",
            by_label("notice", notices),
        );
    }

    /// Adds a metric. All metrics are gauges, because each run starts counting at zero.
    fn add<N: Display>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (String, N)>,
    ) {
        let name_of_cluster = self.settings.metrics.cluster_name.as_ref();
        let cluster = name_of_cluster.map(|name| label("cluster", name));
        let name = format!("{PREFIX}{name}");
        self.text += &format!("{HELP}{name} {help}\n# TYPE {name} gauge\n");
        for (labels, value) in series {
            let labels = cluster
                .iter()
                .chain([&labels])
                .filter(|labels| !labels.is_empty());
            let labels = joined(labels, ",").map(|labels| format!("{{{labels}}}"));
            self.text += &format!("{name}{} {value}\n", prefixed("", labels));
        }
    }

    /// Delivers the metrics to the configured destinations. A failure is logged as a warning, and
    /// does not change the exit code.
    pub async fn deliver(self, exit: Exit, stop: &Stop) {
        let MetricsTo {
            push_gateway,
            metrics_file,
            ..
        } = &self.settings.metrics;
        if metrics_file.is_none() && push_gateway.is_none() {
            return;
        }
        let cluster = self.settings.metrics.cluster_name.as_deref();
        // The run's end is taken from this machine's clock, because the cluster's clock may be
        // unreachable. No verdict depends on that time.
        let took = self.started.elapsed();
        let exposition = self.exposition(exit, Timestamp::now(), took);
        let limit = stop.at_most(DELIVERY_TIME_LIMIT);
        let push = async {
            let Some(gateway) = push_gateway else { return };
            let pushed = push::push(gateway, "pod-reaper", cluster, &exposition);
            let advice = "a Pushgateway is there, and that --push-gateway names it";
            within(limit, pushed, &format!("pushed to {}", gateway.url), advice).await;
        };
        let write = async {
            let Some(path) = metrics_file.clone() else {
                return;
            };
            let (done, exposition) = (format!("written to {}", path.display()), exposition.clone());
            // A thread of its own writes the file, because a file system may hang.
            let written = tokio::task::spawn_blocking(move || file::write(&path, &exposition));
            let written = async {
                written
                    .await
                    .map_err(io::Error::from)
                    .flatten()
                    .map_err(|error| error.to_string())
            };
            let advice = "--metrics-file names a file in a writable directory";
            within(limit, written, &done, advice).await;
        };
        tokio::join!(push, write);
    }

    fn exposition(mut self, exit: Exit, ended: Timestamp, took: Duration) -> Exposition {
        let mode = self.settings.task.mode();
        // A run whose deletes the user declined is no success, although it exits with 0.
        let success = mode == Mode::Delete
            && [Exit::Done, Exit::Manual].contains(&exit)
            && !self.text.is_empty()
            && !self.refused;
        // An audit of a snapshot delivers no metrics, so its mode has no series.
        let modes = Mode::ALL
            .into_iter()
            .filter(|mode| *mode != Mode::Snapshot)
            .map(|each| (each, u8::from(each == mode)));
        let ended = Duration::try_from(ended.as_duration())
            .unwrap_or_default()
            .as_secs_f64();
        self.add(
            "mode",
            "What the last run was allowed to change: 1 for its mode.",
            by_label("mode", modes),
        );
        self.add(
            "exit_code",
            "Exit code of the last run.",
            unlabelled(exit.code()),
        );
        self.add(
            "run_duration_seconds",
            "How long the last run took.",
            unlabelled(took.as_secs_f64()),
        );
        self.add(
            "last_run_timestamp_seconds",
            "When the last run ended.",
            unlabelled(ended),
        );
        self.add(
            "build_info",
            "The program's version.",
            by_label("version", [(env!("CARGO_PKG_VERSION"), 1)]),
        );
        if success {
            self.add(
                "last_success_timestamp_seconds",
                "When a run that may delete last did all that it should; a pod may still need you.",
                unlabelled(ended),
            );
        }
        Exposition {
            text: self.text,
            whole: success,
        }
    }
}

fn unlabelled<N>(value: N) -> [(String, N); 1] {
    [(String::new(), value)]
}

fn by_label<N>(
    name: &str,
    counts: impl IntoIterator<Item = (impl Display, N)>,
) -> impl Iterator<Item = (String, N)> {
    let counts = counts.into_iter();
    counts.map(move |(value, count)| (label(name, value), count))
}

fn label(name: &str, value: impl Display) -> String {
    let value = value.to_string().replace('\\', r"\\").replace('"', "\\\"");
    format!("{name}=\"{}\"", value.replace('\n', r"\n"))
}

/// Does `work` for at most `limit`. If `work` fails, logs that the metrics were not `done`, and
/// what to check.
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
