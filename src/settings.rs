//! What was typed, validated into what the program needs.

use std::{io::IsTerminal, path::PathBuf, time::Duration};

use jiff::{SignedDuration, Timestamp};
use regex::Regex;

use crate::{
    cli::{Cli, Command, DryRun, LogFormat, LogLevel, Output},
    cluster::Target,
    decide::Policy,
    limits::Limits,
    metrics::PushGateway,
    selector::Selector,
};

/// A run, as it was asked for.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Settings {
    /// What is asked for.
    pub command: Command,
    /// Where the facts come from, and what may be done there.
    pub task: Task,
    /// Which namespaces.
    pub namespaces: NamespaceFilter,
    /// The rules' choices.
    pub policy: Policy,
    /// The run's limits.
    pub limits: Limits,
    /// Further leaf nodes.
    pub leaf_selector: Option<Selector>,
    /// Whether the guard has to prove itself before a run that may write.
    pub require_guard: bool,
    /// Report Terminating pods on Ready nodes too.
    pub all: bool,
    /// Form of the report.
    pub output: Output,
    /// The whole run's time limit.
    pub deadline: Duration,
    /// Exit 5 when something needs a person.
    pub exit_on_manual: bool,
    /// What metrics and reports call the cluster.
    pub cluster_name: Option<String>,
    /// Where the metrics are written.
    pub metrics_file: Option<PathBuf>,
    /// Where the metrics are pushed.
    pub push_gateway: Option<PushGateway>,
    /// Write Kubernetes Events about what was done.
    pub events: bool,
    /// Form of the log.
    pub log_format: LogFormat,
    /// How much of the log.
    pub log_level: LogLevel,
}

/// What a run works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// A saved state: nothing can be changed.
    Audit {
        /// The file; `-` is standard input.
        snapshot: PathBuf,
        /// The moment to judge at.
        now: Option<Timestamp>,
    },
    /// A cluster.
    Reap {
        /// Which.
        target: Target,
        /// What may be changed.
        mode: Mode,
    },
}

impl Task {
    /// The mode of a run that may delete.
    pub const DELETE: &str = "delete";
    /// That of an audit.
    pub const SNAPSHOT: &str = "snapshot";
    /// Every mode.
    pub const MODES: [&str; 4] = [Self::DELETE, "server-dry-run", "client-dry-run", Self::SNAPSHOT];

    /// What may be changed, as reports and metrics name it.
    pub fn mode(&self) -> &'static str {
        match self {
            Self::Reap { mode: Mode::Delete { .. }, .. } => Self::DELETE,
            Self::Reap { mode: Mode::ServerDryRun, .. } => "server-dry-run",
            Self::Reap { mode: Mode::ClientDryRun, .. } => "client-dry-run",
            Self::Audit { .. } => Self::SNAPSHOT,
        }
    }

    /// Where it happens, as the question before a run says it: most people have several clusters, and one of them in mind.
    pub fn place(&self) -> String {
        match self {
            Self::Reap { target: Target { context: Some(context), .. }, .. } => format!("context {context}"),
            Self::Reap { target: Target { kubeconfig: Some(file), .. }, .. } => {
                format!("the current context of {}", file.display())
            }
            Self::Reap { .. } => "the current context".to_owned(),
            Self::Audit { snapshot, .. } => snapshot.display().to_string(),
        }
    }

    /// The file, as reports name it.
    pub fn snapshot(&self) -> Option<String> {
        match self {
            Self::Audit { snapshot, .. } => Some(snapshot.display().to_string()),
            Self::Reap { .. } => None,
        }
    }
}

/// What a run may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Delete, after a question on the terminal where `ask` is set.
    Delete {
        /// Whether a person is there to be asked.
        ask: bool,
    },
    /// Send each delete as the server's own dry run.
    ServerDryRun,
    /// Send nothing but reads.
    ClientDryRun,
}

/// `--namespace-regex` and `--namespace-exclude-regex`.
#[derive(Debug, Clone, Default)]
pub struct NamespaceFilter {
    /// Only namespaces that this matches.
    pub include: Option<Regex>,
    /// And not these.
    pub exclude: Option<Regex>,
}

impl NamespaceFilter {
    /// Whether pods of `namespace` are looked at.
    pub fn matches(&self, namespace: &str) -> bool {
        self.include.as_ref().is_none_or(|regex| regex.is_match(namespace))
            && !self.exclude.as_ref().is_some_and(|regex| regex.is_match(namespace))
    }
}

impl std::fmt::Display for NamespaceFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.include {
            Some(regex) => write!(f, "matching {:?}", regex.as_str())?,
            None => f.write_str("all")?,
        }
        match &self.exclude {
            Some(regex) => write!(f, ", but not those matching {:?}", regex.as_str()),
            None => Ok(()),
        }
    }
}

impl From<Cli> for Settings {
    fn from(cli: Cli) -> Self {
        // Every field by name: an option that nothing uses would not compile.
        let Cli {
            namespace_regex,
            namespace_exclude_regex,
            reap_older_than,
            node_not_ready_for,
            unreachable_only,
            manual_owner_kind,
            dry_run,
            max_deletes,
            max_not_ready_percent,
            leaf_node_selector,
            require_guard,
            all,
            snapshot,
            now,
            output,
            context,
            kubeconfig,
            deadline,
            log_format,
            log_level,
            exit_on_manual,
            cluster_name,
            metrics_file,
            push_gateway,
            no_events,
            yes,
            // It is a namespace_regex by now.
            namespace: _,
            command,
        } = cli;
        let mode = match dry_run {
            // Questions change nothing, whatever else is said.
            _ if command != Command::Run => Mode::ClientDryRun,
            DryRun::None => Mode::Delete { ask: !yes && std::io::stdin().is_terminal() },
            DryRun::Server => Mode::ServerDryRun,
            DryRun::Client => Mode::ClientDryRun,
        };
        let task = match snapshot {
            Some(snapshot) => Task::Audit { snapshot, now },
            None => Task::Reap { target: Target { kubeconfig, context }, mode },
        };
        let signed = |duration: Duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        let reap_older_than = reap_older_than.into();
        Self {
            command,
            task,
            namespaces: NamespaceFilter { include: namespace_regex, exclude: namespace_exclude_regex },
            policy: Policy {
                reap_older_than: signed(reap_older_than),
                node_not_ready_for: signed(node_not_ready_for.map_or(reap_older_than, Into::into)),
                unreachable_only,
                manual_owner_kinds: manual_owner_kind,
            },
            limits: Limits { max_deletes: (max_deletes > 0).then_some(max_deletes), max_not_ready_percent },
            leaf_selector: leaf_node_selector,
            require_guard,
            all,
            output,
            deadline: deadline.into(),
            exit_on_manual,
            cluster_name,
            metrics_file,
            push_gateway,
            events: !no_events,
            log_format,
            log_level,
        }
    }
}
