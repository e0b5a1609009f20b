//! The report: one value that every output format renders.
//!
//! It is also, field by field, the JSON that `--output json` writes (documented in the README). A writer makes bytes
//! and knows no destination.

pub mod html;
pub mod markdown;
pub(crate) mod phrases;
#[cfg(test)]
pub(crate) mod samples;
pub mod text;
mod timeline;

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use jiff::Timestamp;
use serde::Serialize;

use crate::{
    cli::Output,
    decide::{Reason, Verdict},
    exit::Exit,
    facts::{Attachment, ClusterFacts, Lease, NodeFacts, NodeRead, Owner, PodFacts, ReadError, Ready},
    limits::{Hold, HoldReason, Judged, Plan},
    manual::{self, Advice, Kubectl, Step},
    outcome::Outcome,
    settings::{Mode, Settings, Task},
};

/// Version of the JSON form. A field may be added; none changes its meaning without another number.
const VERSION: u8 = 1;
/// What `guard` may be.
const GUARD: [&str; 3] = ["proved", "not-required", "not-asked"];

/// One run, told.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Version of this form.
    #[cfg_attr(test, schemars(schema_with = "tests::version"))]
    pub version: u8,
    /// Version of the program.
    pub program_version: &'static str,
    /// What the run was allowed to change: `delete`, `server-dry-run`, `client-dry-run`, `snapshot`.
    #[cfg_attr(test, schemars(schema_with = "tests::mode"))]
    pub mode: &'static str,
    /// What `--cluster-name` calls the cluster.
    pub cluster_name: Option<String>,
    /// The snapshot's file name.
    pub snapshot: Option<String>,
    /// The moment that everything was judged at.
    pub judged_at: Timestamp,
    /// What was asked for.
    pub settings: SettingsEntry,
    /// What keeps the account from pods that are not Terminating: `proved`, by the guard, which has refused it the delete
    /// of one; `not-required`, nothing but the program and RBAC; `not-asked`, since the run sends no writes.
    #[cfg_attr(test, schemars(schema_with = "tests::guard"))]
    pub guard: &'static str,
    /// Set while nothing may be deleted.
    pub breaker: Option<BreakerEntry>,
    /// Every node that is NotReady or could not be read.
    pub nodes: Vec<NodeEntry>,
    /// Every Terminating pod that was looked at, the longest overdue first.
    pub pods: Vec<PodEntry>,
    /// What could not be read.
    pub errors: Vec<ErrorEntry>,
    /// What the source could not tell, as sentences.
    pub unseen: Vec<String>,
    /// Counts.
    pub summary: Summary,
    /// The exit code that follows from it. A report that could not be written makes it 3, where it is milder.
    #[serde(rename = "exitCode")]
    #[cfg_attr(test, schemars(schema_with = "tests::exit_code"))]
    pub exit: Exit,
}

/// The settings that the verdicts follow from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SettingsEntry {
    /// `--namespace-regex`.
    pub namespace_regex: Option<String>,
    /// `--namespace-exclude-regex`.
    pub namespace_exclude_regex: Option<String>,
    /// `--reap-older-than`.
    pub reap_older_than_seconds: i64,
    /// `--node-not-ready-for`.
    pub node_not_ready_for_seconds: i64,
    /// `--unreachable-only`.
    pub unreachable_only: bool,
    /// `--manual-owner-kind`.
    pub manual_owner_kinds: Vec<String>,
    /// `--max-deletes`; 0 is no cap.
    pub max_deletes: usize,
    /// `--max-not-ready-percent`.
    pub max_not_ready_percent: u8,
    /// `--leaf-node-selector`.
    pub leaf_node_selector: Option<String>,
    /// `--all`.
    pub all: bool,
}

/// Why nothing may be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BreakerEntry {
    /// `mass-outage`, or `facts-unread` where the nodes could not be counted.
    #[cfg_attr(test, schemars(schema_with = "tests::breaker"))]
    pub reason: &'static str,
    /// The phrase that explains it.
    pub detail: String,
    /// How many pods it held.
    pub held: usize,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeEntry {
    /// Its name.
    pub name: String,
    /// Status of its `Ready` condition: `False`, `Unknown`, `absent`, or `unread`.
    #[cfg_attr(test, schemars(schema_with = "tests::ready"))]
    pub ready: &'static str,
    /// Reason of that condition.
    pub reason: Option<String>,
    /// Since when.
    pub since: Option<Timestamp>,
    /// For how long, in seconds.
    pub not_ready_seconds: Option<i64>,
    /// When its lease was last renewed.
    pub lease_renewed: Option<Timestamp>,
    /// How long ago that is, in seconds.
    pub lease_age_seconds: Option<i64>,
    /// The marks by which it is a leaf node; empty where it is none.
    pub leaf_marks: Vec<String>,
    /// Its Terminating pods by verdict.
    #[cfg_attr(test, schemars(schema_with = "tests::by_verdict"))]
    pub pods: BTreeMap<&'static str, usize>,
    /// Volumes still attached to it.
    pub volume_attachments: Vec<AttachmentEntry>,
    /// What a person should do about it.
    pub steps: Vec<Step>,
}

/// A `VolumeAttachment`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttachmentEntry {
    /// Its name.
    pub name: String,
    /// Its volume.
    pub volume: Option<String>,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
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
    pub owner: Option<OwnerEntry>,
    /// When its deletion was asked for, the eviction mostly; null where the pod does not say what grace it was given.
    pub deletion_requested: Option<Timestamp>,
    /// When it should have been gone.
    pub deletion_deadline: Timestamp,
    /// How long ago that was, in seconds; negative while it lies ahead.
    pub overdue_seconds: i64,
    /// `reap`, `wait`, `leave` or `manual`.
    #[cfg_attr(test, schemars(schema_with = "tests::verdict"))]
    pub verdict: &'static str,
    /// The reason's code.
    #[cfg_attr(test, schemars(schema_with = "tests::reason"))]
    pub reason: &'static str,
    /// The reason as a sentence.
    pub detail: String,
    /// What happened, where the verdict is `reap`.
    #[cfg_attr(test, schemars(schema_with = "tests::outcome"))]
    pub outcome: Option<&'static str>,
    /// That as a sentence.
    pub outcome_detail: Option<String>,
    /// What to remember once it is reaped.
    pub note: Option<String>,
    /// What is at risk, where the verdict is `manual`.
    pub risk: Option<String>,
    /// What to do then, in order.
    pub steps: Vec<Step>,
}

/// An owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnerEntry {
    /// Such as `StatefulSet`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl From<&Owner> for OwnerEntry {
    fn from(owner: &Owner) -> Self {
        Self { kind: owner.kind.clone(), name: owner.name.clone() }
    }
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ErrorEntry {
    /// What.
    pub what: String,
    /// Why.
    pub cause: String,
}

impl From<&ReadError> for ErrorEntry {
    fn from(error: &ReadError) -> Self {
        Self { what: error.what.clone(), cause: error.cause.clone() }
    }
}

/// Counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// All nodes of the cluster.
    pub nodes: usize,
    /// NotReady ones among them, leaf nodes included.
    pub nodes_not_ready: usize,
    /// Terminating pods that were looked at.
    pub pods: usize,
    /// Those by verdict; every verdict is there.
    #[cfg_attr(test, schemars(schema_with = "tests::by_verdict"))]
    pub verdicts: BTreeMap<&'static str, usize>,
    /// Those with the verdict `reap` by outcome; every outcome is there.
    #[cfg_attr(test, schemars(schema_with = "tests::by_outcome"))]
    pub outcomes: BTreeMap<&'static str, usize>,
}

impl Report {
    /// Tells a run. `outcomes` holds those of the pods that were to be reaped, by UID; a pod without one was not acted
    /// on, because the source is a snapshot or the run only reads.
    pub fn new(
        settings: &Settings,
        facts: &ClusterFacts,
        plan: &Plan,
        outcomes: &BTreeMap<String, Outcome>,
    ) -> Self {
        let kubectl = match &settings.task {
            Task::Audit { .. } => Kubectl::default(),
            Task::Reap { target, .. } => Kubectl::from(target),
        };
        let tell = Telling { facts, hold: plan.hold.as_ref(), kubectl };
        let pods = plan
            .pods
            .iter()
            .map(|judged| tell.pod(judged, outcomes.get(&judged.pod.uid)))
            .collect::<Vec<_>>();
        let nodes = facts.nodes.iter().filter_map(|(name, read)| tell.node(name, read, &plan.pods));
        let nodes = nodes.collect::<Vec<_>>();
        Self {
            version: VERSION,
            program_version: env!("CARGO_PKG_VERSION"),
            mode: settings.task.mode(),
            cluster_name: settings.cluster_name.clone(),
            snapshot: match &settings.task {
                Task::Audit { snapshot, .. } => Some(snapshot.display().to_string()),
                Task::Reap { .. } => None,
            },
            judged_at: facts.now,
            settings: SettingsEntry::from(settings),
            // A run that requires the guard has no report without the proof.
            guard: match &settings.task {
                Task::Audit { .. } | Task::Reap { mode: Mode::ClientDryRun, .. } => GUARD[2],
                Task::Reap { .. } if settings.require_guard => GUARD[0],
                Task::Reap { .. } => GUARD[1],
            },
            breaker: plan.hold.as_ref().map(BreakerEntry::from),
            summary: Summary::new(facts.node_count, &nodes, &pods),
            nodes,
            pods,
            errors: facts.errors.iter().map(ErrorEntry::from).collect(),
            unseen: facts.unseen.clone(),
            exit: exit(settings, facts, plan, outcomes),
        }
    }

    /// Writes the report as `output` wants it; text for `screen`. JSON is written as it is
    /// made: that of tens of thousands of pods would take as much memory as all the rest.
    pub fn write(&self, output: Output, screen: text::Screen, out: &mut dyn Write) -> io::Result<()> {
        match output {
            Output::Text => out.write_all(text::write(self, screen).as_bytes()),
            Output::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                out.write_all(b"\n")
            }
            Output::Markdown => out.write_all(markdown::write(self).as_bytes()),
            Output::Html => out.write_all(html::write(self).as_bytes()),
        }
    }
}

/// The most severe of what happened.
fn exit(
    settings: &Settings,
    facts: &ClusterFacts,
    plan: &Plan,
    outcomes: &BTreeMap<String, Outcome>,
) -> Exit {
    let any = |test: fn(&Reason) -> bool| plan.pods.iter().any(|judged| test(&judged.reason));
    let unread = !facts.errors.is_empty() || any(|reason| matches!(reason, Reason::FactsUnread(_)));
    let failed = outcomes.values().any(Outcome::is_failure);
    [
        (any(|reason| matches!(reason, Reason::MassOutage(_))), Exit::Held),
        (failed || unread, Exit::Incomplete),
        (settings.exit_on_manual && any(|reason| reason.verdict() == Verdict::Manual), Exit::Manual),
    ]
    .into_iter()
    .filter_map(|(holds, exit)| holds.then_some(exit))
    .max()
    .unwrap_or(Exit::Done)
}

impl From<&Settings> for SettingsEntry {
    fn from(settings: &Settings) -> Self {
        let regex = |regex: &Option<regex::Regex>| regex.as_ref().map(|regex| regex.as_str().to_owned());
        Self {
            namespace_regex: regex(&settings.namespaces.include),
            namespace_exclude_regex: regex(&settings.namespaces.exclude),
            reap_older_than_seconds: settings.policy.reap_older_than.as_secs(),
            node_not_ready_for_seconds: settings.policy.node_not_ready_for.as_secs(),
            unreachable_only: settings.policy.unreachable_only,
            manual_owner_kinds: settings.policy.manual_owner_kinds.clone(),
            max_deletes: settings.limits.max_deletes.unwrap_or(0),
            max_not_ready_percent: settings.limits.max_not_ready_percent,
            leaf_node_selector: settings.leaf_selector.as_ref().map(ToString::to_string),
            all: settings.all,
        }
    }
}

impl From<&Hold> for BreakerEntry {
    fn from(hold: &Hold) -> Self {
        let (reason, detail) = match &hold.reason {
            HoldReason::MassOutage(what) => ("mass-outage", what.clone()),
            HoldReason::CensusUnread(why) => {
                ("facts-unread", format!("The nodes could not be counted: {why}"))
            }
        };
        Self { reason, detail, held: hold.held }
    }
}

impl Summary {
    fn new(node_count: usize, nodes: &[NodeEntry], pods: &[PodEntry]) -> Self {
        Self {
            nodes: node_count,
            nodes_not_ready: nodes.len(),
            pods: pods.len(),
            verdicts: by_verdict(pods.iter().map(|pod| pod.verdict)),
            outcomes: Outcome::CODES
                .into_iter()
                .map(|code| (code, pods.iter().filter(|pod| pod.outcome == Some(code)).count()))
                .collect(),
        }
    }
}

/// How many have each verdict, none left out.
fn by_verdict(verdicts: impl Iterator<Item = &'static str>) -> BTreeMap<&'static str, usize> {
    let all = [Verdict::Reap, Verdict::Wait, Verdict::Leave, Verdict::Manual];
    let mut counts = all.into_iter().map(|verdict| (verdict.code(), 0)).collect::<BTreeMap<_, _>>();
    for verdict in verdicts {
        *counts.entry(verdict).or_default() += 1;
    }
    counts
}

/// What the entries are made from.
struct Telling<'a> {
    facts: &'a ClusterFacts,
    hold: Option<&'a Hold>,
    kubectl: Kubectl,
}

impl Telling<'_> {
    fn pod(&self, Judged { pod, reason }: &Judged, outcome: Option<&Outcome>) -> PodEntry {
        let verdict = reason.verdict();
        let Advice { risk, steps } = manual::advise(pod, reason, self.hold, &self.kubectl);
        let notes = notes(pod, reason);
        PodEntry {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            node: pod.node.clone(),
            owner: pod.owner.as_ref().map(OwnerEntry::from),
            deletion_requested: pod.deletion_requested(),
            deletion_deadline: pod.deletion_deadline,
            overdue_seconds: pod.overdue(self.facts.now).as_secs(),
            verdict: verdict.code(),
            reason: reason.code(),
            detail: reason.sentence(),
            outcome: outcome.map(Outcome::code),
            outcome_detail: outcome.map(Outcome::sentence),
            note: (!notes.is_empty()).then(|| notes.join("; ")),
            risk,
            steps,
        }
    }

    /// `None` for a node that is Ready or gone.
    fn node(&self, name: &str, read: &NodeRead, pods: &[Judged]) -> Option<NodeEntry> {
        let known = match read {
            NodeRead::Gone => return None,
            NodeRead::Unread(_) => None,
            NodeRead::Known(node) if node.ready == Ready::True => return None,
            NodeRead::Known(node) => Some(node),
        };
        let now = self.facts.now;
        let since = |moment: Timestamp| now.duration_since(moment).as_secs();
        let here = || pods.iter().filter(|judged| judged.pod.node.as_deref() == Some(name));
        let attachments = self.facts.attachments.get(name).map(Vec::as_slice).unwrap_or_default();
        let reaped = here().any(|judged| judged.reason.verdict() == Verdict::Reap);
        let dead = self.hold.is_none() && here().any(|judged| judged.reason.node_is_dead());
        let lease = known.and_then(lease_renewed);
        Some(NodeEntry {
            name: name.to_owned(),
            ready: known.map_or("unread", |node| node.ready.as_str()),
            reason: known.and_then(|node| node.ready_reason.clone()),
            since: known.and_then(|node| node.ready_since),
            not_ready_seconds: known.and_then(|node| node.ready_since).map(since),
            lease_renewed: lease,
            lease_age_seconds: lease.map(since),
            leaf_marks: known
                .and_then(|node| node.leaf.as_ref())
                .map_or_else(Vec::new, |leaf| leaf.marks.clone()),
            pods: by_verdict(here().map(|judged| judged.reason.verdict().code())),
            volume_attachments: attachments
                .iter()
                .map(|Attachment { name, volume }| AttachmentEntry {
                    name: name.clone(),
                    volume: volume.clone(),
                })
                .collect(),
            steps: known.map_or_else(Vec::new, |node| {
                manual::advise_node(&node.name, reaped, dead, attachments.len(), &self.kubectl)
            }),
        })
    }
}

/// What to remember once `pod` is reaped.
pub(crate) fn notes(pod: &PodFacts, reason: &Reason) -> Vec<String> {
    let mut notes = Vec::new();
    if let Reason::Stuck { confined } = reason {
        notes.extend(pod.after_reap.clone());
        let waits =
            |place: &String| format!("its replacement waits for a node that its volume allows: {place}");
        notes.extend(confined.iter().map(waits));
    }
    notes
}

fn lease_renewed(node: &NodeFacts) -> Option<Timestamp> {
    node.lease.as_ref().ok()?.as_ref().and_then(|lease: &Lease| lease.renewed)
}

#[cfg(test)]
mod tests;
