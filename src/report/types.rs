//! What a report holds, field by field: the JSON that `--output json` writes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serializer;

use super::notices::NoticeEntry;
use crate::{
    advice::Step,
    decide::{Answer, KubeletAlive, ReasonCode, Verdict},
    exit::Exit,
    facts::{Attachment, Heard, Owner, ReadError, Ready, whole_seconds},
    outcome::{OutcomeCode, Replacement, ReplacementState},
    selector::NodeSelector,
    settings::{GuardCode, ModeCode, Settings},
    words::joined,
};

in_json! {
    /// What a run found and did.
    #[serde(tag = "kind")]
    pub struct Report {
        /// Version of this form.
        pub version: u8,
        /// Version of the program.
        pub program_version: &'static str,
        /// What the run was allowed to change: `delete`, `server-dry-run`, `client-dry-run`, `snapshot`.
        pub mode: ModeCode,
        /// What `--cluster-name` calls the cluster.
        pub cluster_name: Option<String>,
        /// The context and the API server's host; null for a snapshot.
        pub cluster: Option<String>,
        /// The snapshot's file name.
        pub snapshot: Option<String>,
        /// The moment that everything was judged at.
        pub judged_at: Timestamp,
        /// What was asked for.
        pub settings: SettingsEntry,
        /// What keeps the account from pods that are not Terminating: `proved`, by the guard, which has refused it the delete
        /// of one; `not-required`, nothing but the program and RBAC; `not-asked`, since the run sends no writes.
        pub guard: GuardCode,
        /// Set while nothing may be deleted.
        pub breaker: Option<BreakerEntry>,
        /// Every node that is NotReady or could not be read.
        pub nodes: Vec<NodeEntry>,
        /// Every Terminating pod that was looked at, the longest overdue first.
        pub pods: Vec<PodEntry>,
        /// What has a run done at once, where a person is asked for an answer; null elsewhere.
        pub run_now: Option<Step>,
        /// The pods that need a person, put together where they share what there is to do.
        #[serde(skip)]
        pub groups: Vec<Group>,
        /// What could not be read.
        pub errors: Vec<ReadError>,
        /// What the source does not show, as sentences.
        pub unseen: Vec<String>,
        /// What there is to know besides. None changes the exit code.
        pub notices: Vec<NoticeEntry>,
        /// Counts.
        pub summary: Summary,
        /// The exit code that follows from the report. A report that could not be written makes it 3, where it is milder.
        #[serde(rename = "exitCode")]
        pub exit: Exit,
    }

    /// The settings that the verdicts follow from.
    pub struct SettingsEntry {
        /// `--namespace-regex`.
        pub namespace_regex: Option<String>,
        /// `--namespace-exclude-regex`.
        pub namespace_exclude_regex: Option<String>,
        /// `--reap-older-than`.
        pub reap_older_than_seconds: i64,
        /// `--node-not-ready-for`.
        pub node_not_ready_for_seconds: i64,
        /// `--kubelet-alive`.
        pub kubelet_alive: KubeletAlive,
        /// `--manual-owner-kind`.
        pub manual_owner_kinds: Vec<String>,
        /// `--reap-scratch`.
        pub reap_scratch: bool,
        /// `--max-deletes`; 0 is no cap.
        pub max_deletes: usize,
        /// `--max-not-ready-percent`.
        pub max_not_ready_percent: u8,
        /// `--leaf-node-selector`; several are joined by semicolons.
        pub leaf_node_selector: Option<String>,
        /// `--fenced-node-selector`; several are joined by semicolons.
        pub fenced_node_selector: Option<String>,
        /// `--wait-for-replacements`; 0 is no wait.
        pub wait_for_replacements_seconds: u64,
        /// `--all`.
        pub all: bool,
    }

    /// Why nothing may be deleted.
    pub struct BreakerEntry {
        /// `mass-outage`, or `facts-unread` where the nodes could not be counted.
        pub reason: ReasonCode,
        /// The phrase that explains it.
        pub detail: String,
        /// How many pods it held.
        pub held: usize,
        /// What the NotReady nodes have in common that the others lack, and when they failed, as sentences; empty in what-if.
        pub in_common: Vec<String>,
        /// How to look at that oneself.
        #[serde(skip)]
        pub compare: Option<Step>,
    }

    /// A node.
    #[derive(Default)]
    pub struct NodeEntry {
        /// Its name.
        pub name: String,
        /// Status of its `Ready` condition: `False`, `Unknown`, `absent`, or `unread`.
        #[serde(serialize_with = "ready")]
        pub ready: Option<Ready>,
        /// Reason of the `Ready` condition.
        pub reason: Option<String>,
        /// Since when it is NotReady: the later of what its condition, unless that is in the future, and its `NoSchedule`
        /// taint say; null where neither says so.
        pub since: Option<Timestamp>,
        /// For how long the node has been NotReady, in seconds.
        pub not_ready_seconds: Option<i64>,
        /// When its lease was last renewed.
        #[serde(serialize_with = "whole_seconds")]
        pub lease_renewed: Option<Timestamp>,
        /// How long ago the lease was renewed, in seconds.
        pub lease_age_seconds: Option<i64>,
        /// What shows that its machine lives although it is not Ready; empty where nothing does.
        pub signs_of_life: Vec<Heard>,
        /// The last that was heard of its machine, whether that is a sign of life or not; null where that is nothing.
        pub last_heard: Option<Heard>,
        /// The mark that says that it is certainly off; null where there is none, where it shows a sign of life, or where it was
        /// heard after the mark was set.
        pub fenced: Option<String>,
        /// It has the taint `node.kubernetes.io/out-of-service`: Kubernetes itself deletes its Terminating pods.
        pub out_of_service: bool,
        /// The marks that make it a leaf node; empty where it is not one.
        pub leaf_marks: Vec<String>,
        /// Its Terminating pods by verdict.
        pub pods: BTreeMap<Verdict, usize>,
        /// Volumes still attached to it.
        pub volume_attachments: Vec<Attachment>,
        /// What a person should do about the node.
        pub steps: Vec<Step>,
    }

    /// A pod.
    pub struct PodEntry {
        /// Its namespace.
        pub namespace: String,
        /// Its name.
        pub name: String,
        /// Its UID.
        pub uid: String,
        /// Its node.
        pub node: Option<String>,
        /// What made it.
        pub owner: Option<Owner>,
        /// When its deletion was requested, mostly by eviction; null where the pod does not say what grace it was given.
        pub deletion_requested: Option<Timestamp>,
        /// When the pod should have been gone.
        pub deletion_deadline: Timestamp,
        /// How long ago the deletion deadline was, in seconds; negative while it lies ahead.
        pub overdue_seconds: i64,
        /// `reap`, `wait`, `leave` or `manual`.
        pub verdict: Verdict,
        /// The reason's code.
        pub reason: ReasonCode,
        /// The reason as a sentence.
        pub detail: String,
        /// What happened, where the verdict is `reap`.
        pub outcome: Option<OutcomeCode>,
        /// The outcome as a sentence.
        pub outcome_detail: Option<String>,
        /// How far the pod has come that its controller started in its place; null where that was not waited for.
        pub replacement: Option<Replacement>,
        /// What to remember once the pod is reaped.
        pub note: Option<String>,
        /// What people have answered: on the pod, its claims and its node.
        pub answers: Vec<Answer>,
        /// What is at risk, where the verdict is `manual`.
        pub risk: Option<String>,
        /// What a person should do about the pod, in order.
        pub steps: Vec<Step>,
    }

    /// Counts.
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
        /// Replacements that were waited for, by state; every state is there.
        pub replacements: BTreeMap<ReplacementState, usize>,
    }
}

/// Pods that need a person, of one reason, namespace, node and workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The places of the pods among those of the report, at least one.
    pub pods: Vec<usize>,
    /// Why, as a sentence.
    pub detail: String,
    /// What is at risk.
    pub risk: Option<String>,
    /// What to do about all of them, in order.
    pub steps: Vec<Step>,
}

impl Group {
    /// Whether a person is asked for an answer.
    pub fn asks(&self) -> bool {
        self.steps.iter().any(Step::asks)
    }
}

/// Of a node that was not read, nothing is known: `unread`.
#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field so"
)]
fn ready<S: Serializer>(ready: &Option<Ready>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(ready.map_or("unread", Ready::as_str))
}

impl From<&Settings> for SettingsEntry {
    fn from(settings: &Settings) -> Self {
        let regex = |regex: &Option<regex::Regex>| regex.as_ref().map(ToString::to_string);
        let typed =
            |selectors: &[NodeSelector]| joined(selectors.iter().map(NodeSelector::typed), ";");
        Self {
            namespace_regex: regex(&settings.namespaces.include),
            namespace_exclude_regex: regex(&settings.namespaces.exclude),
            reap_older_than_seconds: settings.policy.reap_older_than.as_secs(),
            node_not_ready_for_seconds: settings.policy.node_not_ready_for.as_secs(),
            kubelet_alive: settings.policy.kubelet_alive,
            manual_owner_kinds: settings.policy.manual_owner_kinds.clone(),
            reap_scratch: settings.policy.reap_scratch,
            max_deletes: settings.limits.max_deletes.unwrap_or(0),
            max_not_ready_percent: settings.limits.max_not_ready_percent,
            leaf_node_selector: typed(&settings.node_selectors.leaf),
            fenced_node_selector: typed(&settings.node_selectors.fenced),
            wait_for_replacements_seconds: settings.wait_for_replacements.as_secs(),
            all: settings.all,
        }
    }
}
