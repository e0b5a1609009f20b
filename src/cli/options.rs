//! The options, in the groups that the commands share. A group that a command takes is flattened
//! into it.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use jiff::Timestamp;
use regex::Regex;
use tracing_subscriber::filter::LevelFilter;

use super::{
    gateway::PushGateway,
    values::{self, LogFormat, Output, RequireGuard},
};
use crate::{cluster::Mode, decide::KubeletAlive, selector::NodeSelector};

const WHICH: &str = "Which pods";
const LIMITS: &str = "How far to go";
const REPORT: &str = "Report and log";
const SOURCE: &str = "Which cluster";
const METRICS: &str = "Metrics";

/// The options of a run.
#[derive(Debug, Args)]
pub struct Options {
    /// The options that a question takes too.
    #[command(flatten)]
    pub common: Common,

    /// The thresholds.
    #[command(flatten)]
    pub thresholds: Thresholds,

    /// Change nothing: "server" (or true, or no value) has the API server check each delete;
    /// "client" only reads
    #[arg(help_heading = LIMITS, long, display_order = 0, env, value_enum, hide_possible_values = true, value_name = "server|client|none", num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "server", hide_default_value = true)]
    pub dry_run: Mode,

    /// Do not ask before deleting; required without a terminal
    ///
    /// Only a run in a pod that uses the pod's own ServiceAccount needs neither.
    #[arg(help_heading = LIMITS, long, display_order = 0)]
    pub yes: bool,

    /// Run only if the guard proves that it stops this account from deleting a running pod. The
    /// proof is a dry-run delete of the run's own pod, which the downward API names; no other
    /// namespace is tried. "nodes" asks the same of the node guard. --dry-run=client and --snapshot
    /// skip this check
    #[arg(help_heading = LIMITS, long, env, value_enum, hide_possible_values = true, value_name = "true|false|nodes", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true)]
    pub require_guard: RequireGuard,

    /// Report Terminating pods on Ready nodes too
    #[arg(help_heading = REPORT, long, hide_short_help = true)]
    pub all: bool,

    /// Exit with code 5 when something needs a person
    #[arg(help_heading = REPORT, long, env)]
    pub exit_on_manual: bool,

    /// Write no Kubernetes Events, neither about deleted pods nor about pods that need a person
    #[arg(help_heading = REPORT, long, env)]
    pub no_events: bool,

    /// After the deletes, wait up to this long for the replacements to become Ready, and up to 10 s
    /// more to find out why some are not. Choose less than the schedule's interval
    #[arg(help_heading = REPORT, long, env, value_name = "DURATION", value_parser = values::span, default_value = "0s")]
    pub wait_for_replacements: Duration,

    /// Where the metrics of a run go.
    #[command(flatten)]
    pub metrics: MetricsTo,
}

/// The options that every question takes.
#[derive(Debug, Args)]
#[command(next_help_heading = WHICH)]
pub struct Common {
    /// Only namespaces whose name matches, anywhere in it [default: all]
    #[arg(long, env, value_name = "REGEX", value_parser = values::regex)]
    pub namespace_regex: Option<Regex>,

    /// Only this one namespace: short for --namespace-regex '^NAME$'
    #[arg(short, long, value_name = "NAME", value_parser = values::name("write the name of one namespace, or use --namespace-regex"))]
    pub namespace: Option<String>,

    /// All namespaces, even if the environment selects some
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,

    /// Leave out namespaces whose name matches, anywhere in it
    #[arg(long, env, value_name = "REGEX", value_parser = values::regex)]
    pub namespace_exclude_regex: Option<Regex>,

    /// What a sign of life on a NotReady node does (Ready is False, or something on the machine
    /// still writes to the API server): "hold" leaves its pods to a person, "reap" counts for
    /// nothing
    #[arg(long, env, hide_possible_values = true, value_name = "hold|reap", default_value_t = KubeletAlive::Hold, value_parser = values::kubelet_alive())]
    pub kubelet_alive: KubeletAlive,

    /// Leave pods of this kind of owner, such as StatefulSet, to a person; the Deployment or
    /// CronJob above the owner counts too. Repeatable, or separated by commas
    #[arg(long, env, value_name = "KIND", value_delimiter = ',', value_parser = values::kind)]
    pub manual_owner_kind: Vec<String>,

    /// Also reap pods that are kept only for claims on their node, if each of these claims is
    /// annotated pod-reaper.io/scratch: "true", comes from the StatefulSet's templates and is used
    /// by no other pod. The claims are deleted first, and their data is lost
    #[arg(long, env)]
    pub reap_scratch: bool,

    /// Treat nodes that this selects as leaf nodes, in addition to those with a known mark: a label
    /// selector, annotation:KEY[=VALUE] or taint:KEY[=VALUE]; repeatable, or separated by
    /// semicolons
    #[arg(long, env, value_name = "SELECTOR", value_delimiter = ';', value_parser = values::node_selector)]
    pub leaf_node_selector: Vec<NodeSelector>,

    /// Treat nodes that this selects as certainly off (fenced); written as for --leaf-node-selector
    #[arg(long, env, value_name = "SELECTOR", value_delimiter = ';', value_parser = values::node_selector)]
    pub fenced_node_selector: Vec<NodeSelector>,

    /// Maximum number of pods to delete in one run, the longest overdue first; 0 is no limit
    #[arg(help_heading = LIMITS, long, env, value_name = "N", default_value_t = 0, value_parser = values::count)]
    pub max_deletes: usize,

    /// Delete nothing when more than 2 nodes are NotReady and they are at least this share of all
    /// nodes, or of the workers, or when no other node could start a pod; in a zone of which they
    /// are that share, its pods wait. 100 turns this off
    #[arg(help_heading = LIMITS, long, env, value_name = "1-100", default_value_t = 55, value_parser = values::percent)]
    pub max_not_ready_percent: u8,

    /// Time limit of the whole run
    #[arg(help_heading = LIMITS, long, env, value_name = "DURATION", value_parser = values::span, default_value = "8m")]
    pub deadline: Duration,

    /// The formats of the answer and the log.
    #[command(flatten)]
    pub form: Form,

    /// Audit a saved cluster state (kubectl get … -o json) instead of a cluster; "-" is standard
    /// input
    #[arg(help_heading = SOURCE, long, value_name = "FILE", value_parser = values::path)]
    pub snapshot: Option<PathBuf>,

    /// With --snapshot: the time to judge at [default: the newest time in the file that its API server wrote, or most Ready nodes]
    #[arg(help_heading = SOURCE, long, value_name = "RFC3339", value_parser = values::moment, requires = "snapshot")]
    pub now: Option<Timestamp>,

    /// Context of the kubeconfig to use
    #[arg(help_heading = SOURCE, long, value_name = "NAME", value_parser = values::filled("write the name of a context"), conflicts_with = "snapshot")]
    pub context: Option<String>,

    /// Kubeconfig file to use [default: KUBECONFIG, then ~/.kube/config, then the pod's
    /// ServiceAccount]
    #[arg(help_heading = SOURCE, long, value_name = "FILE", value_parser = values::path, conflicts_with = "snapshot")]
    pub kubeconfig: Option<PathBuf>,
}

/// The thresholds.
#[derive(Debug, Args)]
#[command(next_help_heading = WHICH)]
pub struct Thresholds {
    /// How long a pod must be overdue to count as stuck; a silent node cuts its grace short
    #[arg(
        long,
        display_order = 7,
        env,
        value_name = "DURATION",
        value_parser = values::span,
        default_value = "10m"
    )]
    pub reap_older_than: Duration,

    /// How long its node must have been NotReady [default: same as --reap-older-than]
    #[arg(long, display_order = 8, env, value_name = "DURATION", value_parser = values::span)]
    pub node_not_ready_for: Option<Duration>,
}

/// The formats of the answer and the log.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = REPORT)]
pub struct Form {
    /// Format of the report
    #[arg(short, long, value_enum, hide_possible_values = true, value_name = values::OUTPUTS, default_value_t = Output::Text)]
    pub output: Output,

    /// Format of the log
    #[arg(long, env, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// Level of the log [default: warn at a terminal, else info]
    #[arg(long, env, value_name = "LEVEL", default_value = values::usual_log_level(), hide_default_value = true, value_parser = values::log_level())]
    pub log_level: LevelFilter,
}

/// Where the metrics of a run go.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = METRICS)]
pub struct MetricsTo {
    /// Name of the cluster in reports and metrics, where there are several
    #[arg(help_heading = REPORT, long, env, value_name = "NAME", value_parser = values::cluster_name)]
    pub cluster_name: Option<String>,

    /// Push the metrics of the run to this Prometheus Pushgateway; a password in the URL is never
    /// shown
    #[arg(long, env, value_name = "URL")]
    pub push_gateway: Option<PushGateway>,

    /// Write the metrics to this file (NAME.prom), which each run replaces, for the textfile
    /// collector of node-exporter
    #[arg(long, env, value_name = "FILE", value_parser = values::path)]
    pub metrics_file: Option<PathBuf>,
}
