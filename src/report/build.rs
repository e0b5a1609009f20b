//! Builds the report from the facts, the plan and the outcomes of a run.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use jiff::Timestamp;

use super::{
    notices,
    record::RunRecord,
    types::{BreakerEntry, Group, NodeEntry, PodEntry, Report, Summary},
};
use crate::{
    advice::{Advice, Adviser, Step},
    decide::{PodContext, ReasonCode, Verdict},
    exit::Exit,
    facts::{NodeRead, PodFacts, Ready, SignBy, Unneeded, Zone},
    history::RememberedNode,
    limits::{Judged, Limit, Plan},
    outcome::{Outcome, OutcomeCode},
    words::{joined, natural},
};

/// Version of the JSON output. New fields keep the number; a field that changes its meaning needs a
/// new number.
pub const VERSION: u8 = 2;

impl RunRecord<'_> {
    /// Builds the report of the run so far.
    pub fn report(&self) -> Report {
        let Self {
            settings,
            facts,
            plan,
            ..
        } = self;
        let pods = plan
            .pods
            .iter()
            .map(|judged| self.pod(judged))
            .collect_vec();
        let adviser = self.adviser();
        let groups = adviser
            .alike(&plan.pods)
            .into_iter()
            .map(|pods| self.group(pods))
            .sorted_by_cached_key(|group| {
                let pod = &pods[group.pods[0]];
                let owner = pod.owner.as_ref();
                (
                    pod.node.as_deref().map(natural),
                    pod.namespace.clone(),
                    owner.map(|owner| (owner.kind.clone(), natural(&owner.name))),
                )
            });
        let nodes = facts
            .nodes
            .iter()
            .filter_map(|(name, read)| self.node(name, read))
            .sorted_by_cached_key(|node| natural(&node.name))
            .collect_vec();
        Report {
            version: VERSION,
            program_version: env!("CARGO_PKG_VERSION"),
            mode: settings.task.mode(),
            cluster_name: settings.cluster_name.clone(),
            cluster: facts.cluster_name.clone(),
            snapshot: settings.task.snapshot(),
            suppose_dead: settings.task.suppose_dead().to_vec(),
            judged_at: facts.now,
            settings: (*settings).into(),
            guard: settings.guard(),
            breaker: BreakerEntry::of(plan).map(|entry| BreakerEntry {
                steps: adviser.while_held().into_iter().collect(),
                ..entry
            }),
            summary: Summary {
                nodes: facts.node_count,
                nodes_not_ready: nodes.len(),
                pods: pods.len(),
                verdicts: tally(Verdict::ALL, pods.iter().filter_map(|pod| pod.verdict)),
                outcomes: tally(OutcomeCode::ALL, self.outcomes.values().map(Outcome::code)),
            },
            nodes,
            pods,
            groups: groups.collect(),
            history: self.history.clone(),
            errors: facts.errors.clone(),
            unseen: facts.unseen.clone(),
            incomplete: facts.incomplete.clone(),
            declined: self.declined,
            notices: notices::of_run(self),
            explained: None,
            exit: self.exit(),
        }
    }

    pub(crate) fn adviser(&self) -> Adviser<'_> {
        Adviser {
            facts: &self.facts,
            plan: &self.plan,
            kubectl: &self.kubectl,
        }
    }

    fn advise(&self, group: &[&Judged]) -> Advice {
        let advice = self.adviser().advise(group);
        Advice {
            steps: self.printed(advice.steps),
            ..advice
        }
    }

    /// Returns the steps as the report prints them. A node that is only supposed to be dead is alive,
    /// so no command that changes something is printed.
    fn printed(&self, mut steps: Vec<Step>) -> Vec<Step> {
        if !self.settings.task.suppose_dead().is_empty() {
            steps.iter_mut().for_each(Step::only_look);
        }
        steps
    }

    pub(crate) fn pod(&self, judged: &Judged) -> PodEntry {
        let pod = &judged.pod;
        let outcome = self.outcomes.get(&pod.uid);
        PodEntry {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.to_string(),
            node: pod.node.clone(),
            owner: pod.owner.clone(),
            deletion_requested: pod.deletion_requested(),
            deletion_deadline: Some(pod.deletion_deadline()),
            overdue_seconds: Some(self.facts.overdue(pod).as_secs()),
            verdict: Some(judged.verdict()),
            reason: Some(judged.code()),
            detail: judged.sentence(),
            outcome: outcome.map(Outcome::code),
            outcome_detail: outcome.map(Outcome::sentence),
            reaped_from: self.reaped_from(judged),
            note: self.note(judged),
            advice: self.advise(&[judged]),
        }
    }

    /// Reports whether some pod lacks a fact that its verdict needs, because it could not be read.
    pub(crate) fn lacks_facts(&self) -> bool {
        let mut pods = self.plan.pods.iter();
        pods.any(|judged| judged.code() == ReasonCode::FactsUnread)
    }

    fn exit(&self) -> Exit {
        let any = |test: fn(&Judged) -> bool| self.plan.pods.iter().any(test);
        let failed = |outcome: &Outcome| outcome.code().is_failure();
        if any(|judged| judged.code() == ReasonCode::MassOutage) {
            Exit::Held
        } else if !self.facts.errors.is_empty()
            || self.lacks_facts()
            || self.outcomes.values().any(failed)
        {
            Exit::Incomplete
        } else if self.settings.exit_on_manual
            && (any(|judged| judged.verdict() == Verdict::Manual)
                || self.history.nodes.iter().any(RememberedNode::needs_you))
        {
            Exit::Manual
        } else {
            Exit::Done
        }
    }

    fn group(&self, pods: Vec<usize>) -> Group {
        let group = pods.iter().map(|index| &self.plan.pods[*index]);
        let group = group.collect_vec();
        let mut detail = group[0].sentence();
        if !group.iter().map(|judged| judged.sentence()).all_equal() {
            detail += " The others likewise.";
        }
        let first = group[0];
        let node = first.pod.node.as_ref();
        let limit = node.and_then(|node| self.plan.by_node.get(node));
        let is_held = limit.is_some() && first.reason.asks_a_person();
        Group {
            is_held: is_held || self.plan.hold.is_some(),
            pods,
            detail,
            advice: self.advise(&group),
        }
    }

    /// Returns the entry of a node; `None` if the node is Ready or gone.
    fn node(&self, name: &str, read: &NodeRead) -> Option<NodeEntry> {
        let known = read.known();
        if matches!(read, NodeRead::Gone) || known.is_some_and(|node| node.ready == Ready::True) {
            return None;
        }
        let now = self.facts.now;
        let since = |moment: Timestamp| now.duration_since(moment).as_secs();
        let of_node = |judged: &&Judged| judged.pod.node.as_deref() == Some(name);
        let here = || self.plan.pods.iter().filter(of_node);
        let attached = self.facts.attachments.get(name);
        let entry = NodeEntry {
            name: name.to_owned(),
            pods: tally(Verdict::ALL, here().map(Judged::verdict)),
            volume_attachments: attached.cloned().unwrap_or_default(),
            ..NodeEntry::default()
        };
        let Some(node) = known else {
            return Some(entry);
        };
        let reaped = here().any(|judged| judged.verdict() == Verdict::Reap);
        let dead = here().any(|judged| judged.reason.passed_the_node());
        let lease = node
            .heard_by(SignBy::Lease)
            .map(|lease| lease.no_later_than(now).at);
        let not_ready_since = node.not_ready_since(now);
        Some(NodeEntry {
            zone: node.zone.as_ref().map(Zone::to_string),
            ready: Some(node.ready),
            reason: node.ready_reason.clone(),
            since: not_ready_since,
            not_ready_seconds: not_ready_since.map(since),
            lease_renewed: lease,
            lease_age_seconds: lease.map(since),
            signs_of_life: node.signs_of_life(now),
            last_heard: node.last_heard().map(|heard| heard.no_later_than(now)),
            fenced: node.fenced(now).map(str::to_owned),
            out_of_service: node.out_of_service,
            leaf_marks: node
                .leaf
                .as_ref()
                .map_or_else(Vec::new, |leaf| leaf.marks.clone()),
            steps: self.printed(self.adviser().advise_node(node, reaped, dead)),
            ..entry
        })
    }

    /// Returns the moment from which on a run may reap a pod that waits for time to pass, and for
    /// nothing else.
    pub(crate) fn reaped_from(&self, judged: &Judged) -> Option<Timestamp> {
        let waits = [ReasonCode::NotOverdue, ReasonCode::NodeJustFailed].contains(&judged.code());
        let case = PodContext::of(&self.facts, &self.settings.policy, &judged.pod);
        case.reaped_from().filter(|_| waits)
    }

    /// Lists the notes to remember once the pod is reaped; none if the rules do not reap the pod.
    pub(crate) fn notes(&self, judged: &Judged) -> Vec<String> {
        let Judged { pod, reason, .. } = judged;
        let mut notes = Vec::new();
        if reason.verdict() == Verdict::Reap {
            // The pod's author may write a text that looks like a note of ours.
            let said = pod.after_reap.iter().map(|note| note.replace('\'', "\""));
            notes.extend(
                said.map(|note| format!("its annotation pod-reaper.io/after-reap says: '{note}'")),
            );
            notes.extend(reason.notes.iter().cloned());
            notes.extend(self.detaches_late(pod));
        }
        notes
    }

    /// Joins the notes of a pod that this run reaps; `None` if a limit makes the pod wait.
    pub(crate) fn note(&self, judged: &Judged) -> Option<String> {
        joined(self.notes(judged), "; ").filter(|_| judged.limit.is_none())
    }

    /// Names the volumes that are still attached to the pod's node, as a phrase: the replacement waits
    /// for them. `None` if no volume is attached, if the pod's namespace is being deleted, or if the
    /// node has the taint `out-of-service`, because Kubernetes then detaches the volumes immediately.
    pub(crate) fn detaches_late(&self, pod: &PodFacts) -> Option<String> {
        if pod.unneeded() == Some(Unneeded::Namespace) {
            return None;
        }
        let facts = &self.facts;
        let node = facts.known_node(pod).filter(|node| !node.out_of_service)?;
        let attached = facts.attachments.get(&node.name)?;
        let is_attached = |name: &&String| {
            let name = Some(*name);
            attached
                .iter()
                .any(|attachment| attachment.volume.as_ref() == name)
        };
        let volumes = pod.volumes().map(|volume| &volume.name);
        let volumes = joined(volumes.filter(is_attached), ", ")?;
        Some(format!(
            "its replacement may have to wait until {volumes} is detached from {}, 6 minutes after this pod is gone",
            node.name
        ))
    }
}

impl Report {
    /// Reports whether a limit holds the whole run.
    pub fn is_held(&self) -> bool {
        let breaker = self.breaker.as_ref();
        breaker.is_some_and(|breaker| breaker.zones.is_empty())
    }
}

impl BreakerEntry {
    /// Describes the limits that hold the whole run or some zones; `None` if no limit does.
    pub fn of(plan: &Plan) -> Option<Self> {
        let holds = plan.hold.iter().chain(plan.zones.values()).collect_vec();
        let hold = holds.first()?;
        let is_held = |judged: &&Judged| {
            let limit = judged.limit.as_ref();
            limit.is_some_and(|limit| !matches!(limit, Limit::OverCap(_)))
        };
        Some(Self {
            reason: hold.code(),
            detail: holds.iter().map(|hold| hold.state()).join("; "),
            zones: plan.zones.keys().map(Zone::to_string).collect(),
            held: plan.pods.iter().filter(is_held).count(),
            steps: Vec::new(),
        })
    }
}

/// Counts how often each of `all` occurs in `found`; those that never occur have 0.
pub fn tally<T: Ord, const N: usize>(
    all: [T; N],
    found: impl Iterator<Item = T>,
) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::from(all.map(|code| (code, 0)));
    for code in found {
        *counts.entry(code).or_default() += 1;
    }
    counts
}
