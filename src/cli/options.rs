//! The options, in the groups that the commands share. A group that a command takes is flattened
//! into it.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use jiff::Timestamp;
use tracing_subscriber::filter::LevelFilter;

use super::values::{self, LogFormat, Output};
use crate::{
    judge::{Limits, Policy, span},
    selector::{NamespaceFilter, NodeSelectors, Target, filled, path},
};

const WHICH: &str = "Which pods";
const LIMITS: &str = "Limits and safety";
const REPORT: &str = "Report and log";
const SOURCE: &str = "Which cluster";

/// The options of a run.
#[derive(Debug, Args)]
pub struct Options {
    /// The options that a question takes too.
    #[command(flatten)]
    pub common: Common,

    /// Only read, and say what would be deleted
    #[arg(help_heading = LIMITS, long, display_order = 0)]
    pub dry_run: bool,

    /// Do not ask before deleting; required without a terminal
    ///
    /// A run in a pod that uses the pod's own ServiceAccount needs neither --yes nor a terminal.
    #[arg(help_heading = LIMITS, long, short, display_order = 0)]
    pub yes: bool,

    /// Run only if the guard (an admission policy) proves that it stops this account from deleting a running pod: it has to
    /// refuse a dry-run delete of the run's own pod. --dry-run and --snapshot skip this check
    #[arg(help_heading = LIMITS, long)]
    pub require_guard: bool,

    /// Report Terminating pods on Ready nodes too. Only the audit of a file (--snapshot) also shows pods that other pods own,
    /// and pods that are Pending for a node that is gone
    #[arg(help_heading = REPORT, long)]
    pub all: bool,

    /// Exit with code 5 if something cannot wait until working hours
    #[arg(help_heading = REPORT, long)]
    pub exit_on_manual: bool,

    /// Name of this cluster in reports, if there are several clusters
    #[arg(help_heading = REPORT, long, value_name = "NAME", value_parser = filled("write a name such as prod-eu"))]
    pub cluster_name: Option<String>,

    /// The history.
    #[command(flatten)]
    pub history: HistoryPlace,
}

/// The options of `save`.
#[derive(Debug, Args)]
pub struct SaveOptions {
    /// The file to write. It must not exist yet
    #[arg(value_name = "FILE", value_parser = path, default_value = "cluster.json")]
    pub file: PathBuf,

    /// The selectors of an audit: the file has only the annotations that are known, and those that these name.
    #[command(flatten)]
    pub selectors: NodeSelectors,

    /// The history.
    #[command(flatten)]
    pub history: HistoryPlace,

    /// The cluster, and the time limit.
    #[command(flatten)]
    pub reach: Reach,
}

/// The place of the history.
#[derive(Debug, Args)]
pub struct HistoryPlace {
    /// Namespace of the ConfigMap pod-reaper-history, where reports read what earlier runs did
    /// [default: in a pod, its own; else pod-reaper]
    #[arg(help_heading = REPORT, long, value_name = "NAME", value_parser = values::name("write the name of a namespace"), default_value = values::usual_history_namespace(), hide_default_value = true)]
    pub history_namespace: String,
}

/// The cluster, and for how long to ask it.
#[derive(Debug, Args)]
pub struct Reach {
    /// Time limit of the whole run
    #[arg(help_heading = LIMITS, long, value_name = "DURATION", value_parser = span, default_value = "8m")]
    pub deadline: Duration,

    /// The cluster.
    #[command(flatten)]
    pub target: Target,
}

/// The options that every question takes.
#[derive(Debug, Args)]
#[command(next_help_heading = WHICH)]
pub struct Common {
    /// The namespaces whose pods are looked at.
    #[command(flatten)]
    pub namespaces: NamespaceFilter,

    /// Only this one namespace: short for --namespace-regex '^NAME$'
    #[arg(short, long, display_order = 1, value_name = "NAME", value_parser = values::name("write the name of one namespace, or use --namespace-regex"))]
    pub namespace: Option<String>,

    /// The options that bear on a single pod.
    #[command(flatten)]
    pub policy: Policy,

    /// The options that bear on a run as a whole.
    #[command(flatten)]
    pub limits: Limits,

    /// The formats of the report and the log.
    #[command(flatten)]
    pub form: OutputFormats,

    /// Audit a saved cluster state instead of a cluster: a file that `pod-reaper save` wrote; "-" is standard input
    #[arg(help_heading = SOURCE, long, value_name = "FILE", value_parser = path, conflicts_with_all = ["context", "kubeconfig"])]
    pub snapshot: Option<PathBuf>,

    /// With --snapshot: the largest file that is read, such as 8Gi. It can need twice its size in memory
    #[arg(help_heading = SOURCE, long, value_name = "SIZE", value_parser = values::size, default_value = "4Gi")]
    pub max_snapshot_size: u64,

    /// With --snapshot: the time to judge at [default: the newest time that the API server or most
    /// Ready nodes wrote]
    #[arg(help_heading = SOURCE, long, value_name = "RFC3339", requires = "snapshot")]
    pub now: Option<Timestamp>,

    /// With --snapshot: audit the file as if this node had died an hour ago; repeatable. Only the pods
    /// of these nodes are judged
    #[arg(help_heading = SOURCE, long, value_name = "NODE", requires = "snapshot")]
    pub suppose_dead: Vec<String>,

    /// The cluster, and the time limit.
    #[command(flatten)]
    pub reach: Reach,
}

/// The formats of the report and the log.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = REPORT)]
pub struct OutputFormats {
    /// Format of the report
    #[arg(short, long, value_enum, hide_possible_values = true, value_name = values::OUTPUTS, default_value_t = Output::Text)]
    pub output: Output,

    /// Format of the log
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// Level of the log: off, error, warn, info, debug, trace [default: warn at a terminal, else info]
    #[arg(long, value_name = "LEVEL", default_value = values::usual_log_level(), hide_default_value = true)]
    pub log_level: LevelFilter,
}
