//! What was typed, validated into what the program needs.

use std::{path::PathBuf, time::Duration};

use jiff::{SignedDuration, Timestamp};

use crate::{
    advice::Kubectl,
    cli::{self, Cli, Command, DryRun, Form, MetricsTo, RequireGuard},
    codes::codes,
    decide::Policy,
    limits::Limits,
    selector::{NamespaceFilter, NodeSelectors, Target},
    source::{Wanted, snapshot},
};

/// A run, as it was asked for.
#[derive(Debug, Clone)]
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
    /// What the operator says of nodes.
    pub node_selectors: NodeSelectors,
    /// What has to prove itself before a run that may write.
    pub require_guard: RequireGuard,
    /// Report Terminating pods on Ready nodes too.
    pub all: bool,
    /// The whole run's time limit.
    pub deadline: Duration,
    /// Exit 5 when something needs a person.
    pub exit_on_manual: bool,
    /// Where the metrics of a run go, and what they and reports call the cluster.
    pub metrics: MetricsTo,
    /// Write Kubernetes Events about what was done.
    pub events: bool,
    /// For how long the replacements of what was reaped are waited for.
    pub wait_for_replacements: Duration,
    /// The formats of the answer and the log.
    pub form: Form,
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

codes! {
    /// What a run was allowed to change, as reports and metrics name it.
    pub enum ModeCode {
        /// It may delete.
        Delete = "delete",
        /// The API server checks each delete.
        ServerDryRun = "server-dry-run",
        /// It only reads.
        ClientDryRun = "client-dry-run",
        /// It audits a saved state.
        Snapshot = "snapshot",
    }
}

impl Task {
    /// What may be changed.
    pub fn mode(&self) -> ModeCode {
        match self {
            Self::Audit { .. } => ModeCode::Snapshot,
            Self::Reap { mode, .. } => match mode {
                Mode::Delete { .. } => ModeCode::Delete,
                Mode::ServerDryRun => ModeCode::ServerDryRun,
                Mode::ClientDryRun => ModeCode::ClientDryRun,
            },
        }
    }

    /// kubectl, as printed commands call it.
    pub fn kubectl(&self) -> Kubectl {
        match self {
            Self::Audit { .. } => Kubectl::default(),
            Self::Reap { target, .. } => Kubectl(target.clone()),
        }
    }

    /// The file, as reports name it.
    pub fn snapshot(&self) -> Option<String> {
        let Self::Audit { snapshot, .. } = self else {
            return None;
        };
        Some(snapshot.display().to_string())
    }
}

/// What a run may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Delete, after a question on the terminal where `ask` is set.
    Delete {
        /// Without `--yes`.
        ask: bool,
    },
    /// Send each delete as the server's own dry run.
    ServerDryRun,
    /// Send nothing but reads.
    ClientDryRun,
}

codes! {
    /// What keeps the account from pods that are not Terminating.
    pub enum GuardCode {
        /// The guard, which has refused it the delete of one.
        Proved = "proved",
        /// Nothing but the program and RBAC.
        NotRequired = "not-required",
        /// Nothing has to: the run sends no writes.
        NotAsked = "not-asked",
    }
}

impl Settings {
    /// What keeps the account from pods that are not Terminating. A run that requires the guard has no report without
    /// the proof.
    pub fn guard(&self) -> GuardCode {
        match self.task.mode() {
            ModeCode::ClientDryRun | ModeCode::Snapshot => GuardCode::NotAsked,
            _ if self.require_guard == RequireGuard::False => GuardCode::NotRequired,
            _ => GuardCode::Proved,
        }
    }

    /// What is to be gathered.
    pub fn wanted(&self) -> Wanted<'_> {
        Wanted {
            policy: &self.policy,
            namespaces: &self.namespaces,
            all: self.all,
        }
    }

    /// How a snapshot is to be read, to be judged at `now`.
    pub fn snapshot_options(&self, now: Option<Timestamp>) -> snapshot::Options {
        snapshot::Options {
            now,
            selectors: self.node_selectors.clone(),
            every_pod: false,
        }
    }
}

impl From<Cli> for Settings {
    fn from(Cli { command, options }: Cli) -> Self {
        // Every field by name: an option that nothing uses would not compile.
        let cli::Options {
            common,
            thresholds:
                cli::Thresholds {
                    reap_older_than,
                    node_not_ready_for,
                },
            dry_run,
            yes,
            require_guard,
            all,
            exit_on_manual,
            no_events,
            wait_for_replacements,
            metrics,
        } = options;
        // These two are a `namespace_regex` by now.
        let cli::Common {
            namespace_regex,
            namespace: _,
            all_namespaces: _,
            namespace_exclude_regex,
            kubelet_alive,
            manual_owner_kind,
            reap_scratch,
            leaf_node_selector,
            fenced_node_selector,
            max_deletes,
            max_not_ready_percent,
            deadline,
            form,
            snapshot,
            now,
            context,
            kubeconfig,
        } = common;
        let mode = match dry_run {
            DryRun::None => Mode::Delete { ask: !yes },
            DryRun::Server => Mode::ServerDryRun,
            DryRun::Client => Mode::ClientDryRun,
        };
        let signed =
            |duration: Duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        Self {
            command,
            task: match snapshot {
                Some(snapshot) => Task::Audit { snapshot, now },
                None => Task::Reap {
                    target: Target {
                        kubeconfig,
                        context,
                    },
                    mode,
                },
            },
            namespaces: NamespaceFilter {
                include: namespace_regex,
                exclude: namespace_exclude_regex,
            },
            policy: Policy {
                reap_older_than: signed(reap_older_than),
                node_not_ready_for: signed(node_not_ready_for.unwrap_or(reap_older_than)),
                kubelet_alive,
                manual_owner_kinds: manual_owner_kind,
                reap_scratch,
            },
            limits: Limits {
                max_deletes: (max_deletes > 0).then_some(max_deletes),
                max_not_ready_percent,
            },
            node_selectors: NodeSelectors {
                leaf: leaf_node_selector,
                fenced: fenced_node_selector,
            },
            require_guard,
            all,
            deadline,
            exit_on_manual,
            metrics,
            events: !no_events,
            wait_for_replacements,
            form,
        }
    }
}
