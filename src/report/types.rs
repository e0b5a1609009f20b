//! The fields of a report, as `--output json` writes them.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{document::Step, hang::HangCode, survey::Risk};
use crate::{
    exit::Exit,
    facts::{Attachment, Heartbeat, Owner, PodFacts, ReadError, WaitsFor},
    history::History,
    judge::{Evaluation, Limits, Policy, ReasonCode, Verdict},
    outcome::OutcomeCode,
    selector::NamespaceFilter,
    settings::{GuardCode, Mode},
};

in_json! {
    /// What a run found and did.
    #[serde(tag = "kind")]
    pub struct Report {
        /// Version of this form.
        pub version: u8,
        /// Version of the program.
        pub program_version: &'static str,
        /// The kind of run, by what it may change: `delete`, `dry-run` or `snapshot`.
        pub mode: Mode,
        /// What `--cluster-name` calls the cluster.
        pub cluster_name: Option<String>,
        /// The context and the API server's host; null for a snapshot.
        pub cluster: Option<String>,
        /// The snapshot's file name.
        pub snapshot: Option<String>,
        /// The nodes that `--suppose-dead` names.
        pub suppose_dead: Vec<String>,
        /// The moment that everything was judged at.
        pub judged_at: Timestamp,
        /// The settings of the run.
        pub settings: SettingsEntry,
        /// What keeps the account from deleting pods that are not Terminating. `proved`: the guard,
        /// which refused to let the account delete such a pod; `not-required`: only the program itself
        /// and RBAC; `not-asked`: this was not checked, because the run sends no writes.
        pub guard: GuardCode,
        /// Set while a limit other than the cap holds the run, a zone, a node, or a pod that could start nowhere else.
        pub breaker: Option<BreakerEntry>,
        /// What is down. In explain: the pod, its verdict and what decided.
        pub headline: String,
        /// By when to act, so that no second machine can write to a volume: `judgedAt` means before the next run, which
        /// deletes its pod. Null if there is no such moment to come.
        pub act_before: Option<Timestamp>,
        /// The pods and nodes that a limit or a majority holds, and why, as sentences.
        pub held: Vec<String>,
        /// Which data is at risk, as sentences.
        pub data: Vec<String>,
        /// What happens by itself, and when, as sentences.
        pub next: Vec<String>,
        /// What to do, the most urgent first: the steps of the page, of which there are at most twelve. In explain: what
        /// to do about the pod.
        pub steps: Vec<Step>,
        /// What must never be done, as sentences.
        pub never: Vec<String>,
        /// Every node that is NotReady or could not be read.
        pub nodes: Vec<NodeEntry>,
        /// Every Terminating pod that was looked at, the worst first. In explain: the one pod.
        pub pods: Vec<PodEntry>,
        /// The pods on NotReady nodes that Kubernetes has not evicted yet, each with what is foreseen. They are
        /// not Terminating, and no run judges them: their times of deletion are those that Kubernetes will
        /// set.
        pub not_evicted: Vec<PodEntry>,
        /// What earlier runs did, and what became of the nodes.
        pub history: History,
        /// What could not be read.
        pub errors: Vec<ReadError>,
        /// The kinds that the source lacks, as a sentence, and the command that saves them.
        pub unseen: Vec<String>,
        /// What you should know besides the verdicts, as sentences. None changes the exit code.
        pub notices: Vec<String>,
        /// The answers of the rules about the one pod of `explain`; null in every other report.
        pub explained: Option<Explained>,
        /// The counts of nodes, pods and outcomes.
        pub summary: Summary,
        /// The exit code that follows from the report. If the report cannot be written, a milder
        /// code becomes 3.
        #[serde(rename = "exitCode")]
        pub exit: Exit,
    }

    /// The settings that the verdicts follow from.
    pub struct SettingsEntry {
        /// The namespaces whose pods are looked at.
        #[serde(flatten)]
        pub namespaces: NamespaceFilter,
        /// Those that bear on a single pod.
        #[serde(flatten)]
        pub policy: Policy,
        /// Those that bear on the run as a whole.
        #[serde(flatten)]
        pub limits: Limits,
        /// `--all`.
        pub all: bool,
    }

    /// Why nothing may be deleted, in the whole cluster, in some zones or on some nodes, or of pods that could start nowhere else.
    pub struct BreakerEntry {
        /// `mass-outage`, `failed-together`, `no-room`, or `facts-unread` if a fact about the whole run is not known.
        pub reason: ReasonCode,
        /// The phrase that explains it.
        pub detail: String,
        /// The zones that it holds, each by region and zone; empty if it holds the whole run, nodes that failed together, or pods without room.
        pub zones: Vec<String>,
        /// How many pods the limits other than the cap held.
        pub held: usize,
    }

    /// A node.
    #[derive(Default)]
    pub struct NodeEntry {
        /// Its name.
        pub name: String,
        /// Its UID; empty if it could not be read.
        pub uid: String,
        /// Its first address of the kind `InternalIP`.
        pub address: Option<String>,
        /// The region and zone that its labels name, with a slash between them.
        pub zone: Option<String>,
        /// Status of its `Ready` condition: `False`, `Unknown`, `absent`, or `unread`.
        pub ready: &'static str,
        /// Reason of the `Ready` condition.
        pub reason: Option<String>,
        /// Since when the node has been NotReady: the time in its condition (ignored if it is in the
        /// future) or the time in its `NoSchedule` taint, whichever is later; null if neither has
        /// one.
        pub since: Option<Timestamp>,
        /// The signs that its machine lives although it is not Ready; empty if there are none.
        pub signs_of_life: Vec<Heartbeat>,
        /// The last time its machine was heard, a sign of life or not; null if it never was.
        pub last_heard: Option<Heartbeat>,
        /// The mark that says that it is known to be off; null if there is none, if the node shows
        /// a sign of life, or if it was heard after the mark was set.
        pub fenced: Option<String>,
        /// It has the taint `node.kubernetes.io/out-of-service`: Kubernetes itself deletes
        /// its Terminating pods.
        pub out_of_service: bool,
        /// The marks that make it a leaf node; empty if it is not one.
        pub leaf_marks: Vec<String>,
        /// Its Terminating pods by verdict.
        pub pods: BTreeMap<Verdict, usize>,
        /// The `VolumeAttachments` that name it; null if they were not read.
        pub volume_attachments: Option<Vec<Attachment>>,
    }

    /// A pod.
    #[derive(Default)]
    pub struct PodEntry {
        /// Its namespace.
        pub namespace: String,
        /// Its name.
        pub name: String,
        /// Its UID.
        pub uid: String,
        /// Its node.
        pub node: Option<String>,
        /// The controller that created the pod.
        pub owner: Option<Owner>,
        /// When its deletion was requested, usually by eviction; null if its grace period
        /// is unknown.
        pub deletion_requested: Option<Timestamp>,
        /// When the pod should have been gone; null if it is not Terminating.
        pub deletion_deadline: Option<Timestamp>,
        /// For how many seconds the pod is overdue: since its deletion deadline or, on a silent node,
        /// since its deletion was requested or the last heartbeat, if that is later. Negative while
        /// that lies ahead; null if the pod is not Terminating.
        pub overdue_seconds: Option<i64>,
        /// `reap`, `wait`, `leave` or `manual`; null if no run judges the pod.
        pub verdict: Option<Verdict>,
        /// The reason's code; null if no run judges the pod.
        pub reason: Option<ReasonCode>,
        /// The reason as a sentence, or why no run judges the pod.
        pub detail: String,
        /// What happened, if the verdict is `reap`.
        pub outcome: Option<OutcomeCode>,
        /// The outcome as a sentence.
        pub outcome_detail: Option<String>,
        /// From when on a run may reap it, `judgedAt` if the verdict is `reap`; null if it waits for more than time, or is deleted.
        pub reaped_from: Option<Timestamp>,
        /// What the rules say of it once time alone no longer keeps it; null if something else keeps it.
        pub foreseen: Option<ForeseenEntry>,
        /// The risk for its data or its workload; null if none is known.
        pub risk: Option<Risk>,
        /// The Ready pods of its `StatefulSet` and how many there are to be (`readyReplicas` and
        /// `replicas`), such as `2/3`; null if they were not read.
        pub ready_copies: Option<String>,
        /// Why it is still there although its node is Ready, or is gone; null on a NotReady node, where the reason says
        /// it, and while it is the garbage collector's turn.
        pub cause: Option<HangCode>,
        /// What to remember once the pod is reaped.
        pub note: Option<String>,
        /// The active pods that it controls, in its namespace, which Kubernetes deletes with it; null if they were not read.
        pub owned_pods: Option<Vec<String>>,
    }

    /// What the rules say of a pod at a later moment, if nothing else changes and nothing more is heard of
    /// its node. No delete depends on it.
    pub struct ForeseenEntry {
        /// That moment: the first at which no rule about time keeps the pod.
        pub at: Timestamp,
        /// The verdict then: `wait` if a limit holds the pod. Of the pods to reap, a run deletes at most
        /// `settings.maxDeletes`, if that is not 0.
        pub verdict: Verdict,
        /// The code of the reason then, by the rules.
        pub reason: ReasonCode,
        /// The reason as a sentence.
        pub detail: String,
        /// The code of the limit that would hold it, as the limits are now; null if none would.
        pub limit: Option<ReasonCode>,
    }

    /// The answers of the rules about one pod.
    pub struct Explained {
        /// The pod's phase.
        pub phase: String,
        /// Since when the pod exists.
        pub created: Option<Timestamp>,
        /// Every rule, in order; none if the pod is not Terminating.
        pub rules: Vec<Evaluation>,
        /// What the pod that was asked about waits for, if it has not started and its PVCs show that. If that is a pod,
        /// the report explains that one.
        pub waits_for: Option<WaitsFor>,
    }

    /// The counts of a report.
    pub struct Summary {
        /// All nodes of the cluster.
        pub nodes: usize,
        /// Nodes that are NotReady, leaf nodes included.
        pub nodes_not_ready: usize,
        /// Terminating pods that were looked at.
        pub pods: usize,
        /// The pods by verdict; every verdict is there.
        pub verdicts: BTreeMap<Verdict, usize>,
        /// The pods with the verdict `reap` by outcome; every outcome is there.
        pub outcomes: BTreeMap<OutcomeCode, usize>,
    }
}

/// Converts what is known of every pod.
impl From<&PodFacts> for PodEntry {
    fn from(pod: &PodFacts) -> Self {
        Self {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.to_string(),
            node: pod.node.clone(),
            owner: pod.maker().cloned(),
            deletion_requested: pod.deletion_requested(),
            deletion_deadline: pod.deletion.map(|its| its.deadline),
            ..Self::default()
        }
    }
}
