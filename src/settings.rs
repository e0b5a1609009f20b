//! The settings of a run: the command line and its variables, converted to the types that the
//! program works with.

use std::{path::PathBuf, time::Duration};

use jiff::Timestamp;

use crate::{
    cli::{self, Cli, Command, Filter, HistoryPlace, OutputFormats, PodName, Reach},
    codes::codes,
    exit::{CouldNotRun, Result},
    facts::ClusterFacts,
    judge::{Judged, Limits, Plan, Policy},
    selector::{NamespaceFilter, Target},
    source::Gathered,
    words::{counted, joined},
};

/// The settings of one run or question.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The pod to explain; `None` for a run.
    pub explained: Option<PodName>,
    /// The source of the facts, and what may be changed there.
    pub task: Task,
    /// The options that select the namespaces.
    pub filters: Vec<Filter>,
    /// The namespaces whose pods are looked at.
    pub namespaces: NamespaceFilter,
    /// The thresholds and choices that the rules apply.
    pub policy: Policy,
    /// The breaker's share, the most nodes that may fail together, and the cap.
    pub limits: Limits,
    /// Whether the run must prove that the guard works before it may write.
    pub require_guard: bool,
    /// Whether to report Terminating pods on Ready nodes too.
    pub all: bool,
    /// The time limit of the whole run.
    pub deadline: Duration,
    /// Whether to exit with 5 if something cannot wait until working hours.
    pub exit_on_manual: bool,
    /// The cluster's name in reports.
    pub cluster_name: Option<String>,
    /// The namespace of the history.
    pub history_namespace: String,
    /// The formats of the report and the log.
    pub form: OutputFormats,
}

/// The source that a run works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// A saved cluster state. Nothing can be changed.
    Audit {
        /// The file's path. `-` is standard input.
        snapshot: PathBuf,
        /// The most bytes that the file may have.
        max_size: u64,
        /// The moment to judge at. `None` is the newest time observed in the file.
        now: Option<Timestamp>,
        /// The nodes to suppose dead.
        suppose_dead: Vec<String>,
    },
    /// A cluster.
    Reap {
        /// The kubeconfig and context that name the cluster.
        target: Target,
        /// Whether the run changes nothing there.
        dry_run: bool,
        /// Whether to delete without asking the user first.
        yes: bool,
    },
}

impl Task {
    /// Lists the nodes that an audit supposes dead.
    pub fn suppose_dead(&self) -> &[String] {
        match self {
            Self::Audit { suppose_dead, .. } => suppose_dead,
            Self::Reap { .. } => &[],
        }
    }

    /// Returns what the run may change.
    pub fn mode(&self) -> Mode {
        match self {
            Self::Audit { .. } => Mode::Snapshot,
            Self::Reap { dry_run: true, .. } => Mode::DryRun,
            Self::Reap { dry_run: false, .. } => Mode::Delete,
        }
    }

    /// Returns the cluster that printed commands have to reach; for a snapshot the target names no
    /// cluster.
    pub fn target(&self) -> Target {
        match self {
            Self::Audit { .. } => Target::default(),
            Self::Reap { target, .. } => target.clone(),
        }
    }

    /// Returns the snapshot's path, as reports show it, or `None` for a run on a cluster.
    pub fn snapshot(&self) -> Option<String> {
        let Self::Audit { snapshot, .. } = self else {
            return None;
        };
        Some(snapshot.display().to_string())
    }
}

codes! {
    /// The kinds of run, by what they may change. Reports show them.
    pub enum Mode {
        /// The run deletes.
        Delete = "delete",
        /// The run only reads.
        DryRun = "dry-run",
        /// The run audits a saved state.
        Snapshot = "snapshot",
    }
}

codes! {
    /// The protection of pods that are not Terminating from the run's account.
    pub enum GuardCode {
        /// The guard refused to let this account delete a running pod.
        Proved = "proved",
        /// No guard was required: only the program itself and RBAC protect these pods.
        NotRequired = "not-required",
        /// The run did not check the guard, because it only reads.
        NotAsked = "not-asked",
    }
}

impl Settings {
    /// Returns what keeps the run's account from deleting pods that are not Terminating. `Proved`
    /// is certain, because a run that requires the guard ends without a report unless it is proved.
    pub fn guard(&self) -> GuardCode {
        if self.task.mode() != Mode::Delete {
            GuardCode::NotAsked
        } else if self.require_guard {
            GuardCode::Proved
        } else {
            GuardCode::NotRequired
        }
    }

    /// Judges every pod by the rules, and applies the limits of the run.
    pub fn plan(&self, gathered: Gathered) -> (ClusterFacts, Plan) {
        let Gathered {
            facts,
            pods,
            not_evicted,
            ..
        } = gathered;
        let judged = |pods| Judged::by_rules(&facts, pods, &self.policy);
        let (pods, not_evicted) = (judged(pods), judged(not_evicted));
        let plan = Plan::new(&facts, pods, not_evicted, (&self.policy, &self.limits));
        (facts, plan)
    }

    /// Refuses a filter on the command line that selects no namespace: an empty report would be false
    /// comfort. A filter from a variable is only reported, because one setting serves many clusters.
    pub fn check_filters(&self, facts: &ClusterFacts) -> Result<()> {
        match self.unmatched(facts) {
            Some(why) if self.filters.iter().any(|filter| filter.is_typed) => {
                let list = "list them with: kubectl get namespaces";
                Err(CouldNotRun::Usage(format!("{why}; {list}")))
            }
            _ => Ok(()),
        }
    }

    /// Says which options select none of the cluster's namespaces; `None` if the options select
    /// some.
    pub fn unmatched(&self, facts: &ClusterFacts) -> Option<String> {
        let count = facts.unmatched_namespaces?;
        let names = joined(self.filters.iter().map(|filter| &filter.name), " and ")?;
        let select = if self.filters.len() == 1 {
            "selects"
        } else {
            "select"
        };
        let all = counted(count, "namespace", "namespaces");
        let filter = &self.namespaces;
        Some(format!(
            "{names} {select} none of the namespaces of the cluster, which has {all} (filter: {filter})"
        ))
    }
}

impl From<Cli> for Settings {
    fn from(cli: Cli) -> Self {
        let Cli {
            command,
            options,
            filters,
        } = cli;
        // This names every field, so that an unused option does not compile.
        let cli::Options {
            common,
            dry_run,
            yes,
            require_guard,
            all,
            exit_on_manual,
            cluster_name,
            history: HistoryPlace { history_namespace },
        } = options;
        let (explained, common) = match command {
            Some(Command::Explain { pod, common }) => (Some(pod), common),
            _ => (None, common),
        };
        // `namespace` is already part of `namespaces`.
        let cli::Common {
            namespaces,
            namespace: _,
            policy,
            limits,
            form,
            snapshot,
            max_snapshot_size,
            now,
            suppose_dead,
            reach: Reach { deadline, target },
        } = common;
        Self {
            task: match snapshot {
                Some(snapshot) => Task::Audit {
                    snapshot,
                    max_size: max_snapshot_size,
                    now,
                    suppose_dead,
                },
                None => Task::Reap {
                    target,
                    dry_run: dry_run || explained.is_some(),
                    yes,
                },
            },
            explained,
            filters,
            namespaces,
            policy,
            limits,
            require_guard,
            all,
            deadline,
            exit_on_manual,
            cluster_name,
            history_namespace,
            form,
        }
    }
}
