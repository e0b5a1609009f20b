//! Builds the report from the facts, the plan and the outcomes of a run.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    notices, page,
    record::RunRecord,
    todo::About,
    types::{BreakerEntry, NodeEntry, PodEntry, Report, SettingsEntry, Summary},
};
use crate::{
    exit::Exit,
    facts::{NodeFacts, Read, Ready, Unneeded, Zone},
    history::{NodeState, RememberedNode},
    judge::{Judged, Limit, Note, PodContext, ReasonCode, TieKind, Verdict},
    outcome::{Outcome, OutcomeCode},
    words::{joined, natural},
};

/// Version of the JSON output. New fields keep the number; a field that changes its meaning needs a
/// new number.
pub const VERSION: u8 = 3;

/// The time after which Kubernetes detaches a volume from a dead node (`maxWaitForUnmountDuration`).
const DETACH_TIME_LIMIT: SignedDuration = SignedDuration::from_mins(6);

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
            settings: SettingsEntry {
                namespaces: settings.namespaces.clone(),
                policy: settings.policy.clone(),
                limits: settings.limits.clone(),
                all: settings.all,
            },
            guard: settings.guard(),
            breaker: self.limit().map(|limit| BreakerEntry {
                reason: limit.code(),
                detail: self.limits().map(Limit::state).join("; "),
                zones: plan.zones.keys().map(Zone::to_string).collect(),
                held: plan.pods.iter().filter(|it| is_held(it)).count(),
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
            steps: self
                .todos_of_run()
                .iter()
                .map(|todo| self.step(todo, &About::default()))
                .collect(),
            history: self.history.clone(),
            errors: facts.errors.clone(),
            unseen: facts.unseen.clone(),
            declined: self.declined,
            notices: notices::of_run(self),
            document: page::document(self),
            explained: None,
            exit: self.exit(),
        }
    }

    pub(crate) fn pod(&self, judged: &Judged) -> PodEntry {
        let pod = &judged.pod;
        let outcome = self.outcomes.get(&pod.uid);
        let about = About::of(vec![judged]);
        let todos = self.todos_of(judged);
        PodEntry {
            owner: pod.owner.clone(),
            overdue_seconds: Some(self.facts.overdue(pod).as_secs()),
            verdict: Some(judged.verdict()),
            reason: Some(judged.code()),
            detail: judged.sentence(),
            outcome: outcome.map(Outcome::code),
            outcome_detail: outcome.map(Outcome::sentence),
            reaped_from: self.reaped_from(judged),
            ready_copies: judged.copies().map(|copies| copies.to_string()),
            note: joined(self.notes(judged), "; "),
            steps: todos.iter().map(|todo| self.step(todo, &about)).collect(),
            ..PodEntry::from(pod)
        }
    }

    /// Lists the limits that hold the whole run or some zones.
    pub(crate) fn limits(&self) -> impl Iterator<Item = &Limit> {
        self.plan.hold.iter().chain(self.plan.zones.values())
    }

    /// Returns the limit that holds the run, or the first that holds a zone.
    pub(crate) fn limit(&self) -> Option<&Limit> {
        self.limits().next()
    }

    pub(crate) fn exit(&self) -> Exit {
        let any = |test: fn(&Judged) -> bool| self.plan.pods.iter().any(test);
        let failed = |outcome: &Outcome| outcome.code().is_failure();
        if any(|judged| judged.code() == ReasonCode::MassOutage) {
            Exit::Held
        } else if !self.facts.errors.is_empty()
            || any(|judged| judged.code() == ReasonCode::FactsUnread)
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

    /// Returns the entry of a node; `None` if the node is Ready or gone.
    fn node(&self, name: &str, read: &Read<Option<NodeFacts>>) -> Option<NodeEntry> {
        let known = read.as_ref().ok().and_then(Option::as_ref);
        if matches!(read, Ok(None)) || known.is_some_and(|node| node.ready == Ready::True) {
            return None;
        }
        let now = self.facts.now;
        let here = self.pods_on(name);
        let attached = self.facts.attachments.get(name);
        let entry = NodeEntry {
            name: name.to_owned(),
            pods: tally(Verdict::ALL, here.map(Judged::verdict)),
            volume_attachments: attached.cloned().unwrap_or_default(),
            ..NodeEntry::default()
        };
        let Some(node) = known else {
            return Some(entry);
        };
        Some(NodeEntry {
            zone: node.zone.as_ref().map(Zone::to_string),
            ready: Some(node.ready),
            reason: node.ready_reason.clone(),
            since: node.not_ready_since(now),
            signs_of_life: node.signs_of_life(now),
            last_heard: node.last_heard().map(|heard| heard.no_later_than(now)),
            fenced: node.fenced(now).map(str::to_owned),
            out_of_service: node.out_of_service,
            leaf_marks: node
                .leaf
                .iter()
                .flat_map(|leaf| leaf.marks.clone())
                .collect(),
            ..entry
        })
    }

    /// Returns the moment from which on a run may reap a pod that waits for time to pass, and for
    /// nothing else.
    pub(crate) fn reaped_from(&self, judged: &Judged) -> Option<Timestamp> {
        let waits = [ReasonCode::NotOverdue, ReasonCode::NodeJustFailed].contains(&judged.code());
        let (policy, storage) = (&self.settings.policy, judged.storage.as_ref());
        let case = PodContext::of(&self.facts, policy, &judged.pod, storage);
        case.reaped_from().filter(|_| waits)
    }

    /// Lists the notes to remember once the pod is reaped; none if it is not.
    pub(crate) fn notes(&self, judged: &Judged) -> Vec<String> {
        let mut notes = Vec::new();
        if judged.verdict() == Verdict::Reap {
            // The pod's author may write a text that looks like a note of ours.
            let said = judged
                .pod
                .after_reap
                .iter()
                .map(|note| note.replace('\'', "\""));
            notes.extend(said.map(|note| format!("'{note}' (its own note)")));
            notes.extend(self.worth_noting(judged).map(|note| note.to_string()));
        }
        notes
    }

    /// Lists the notes of the rules that are worth reading once the pod is reaped. Its replacement waits
    /// for a node that its volume allows only if no such node is Ready: all NotReady nodes were read.
    fn worth_noting(&self, judged: &Judged) -> impl Iterator<Item = Note> {
        let is_down = |name: &String| self.facts.nodes.contains_key(name);
        judged.reason.notes().filter(move |note| match note {
            Note::Claim(tie) if matches!(tie.kind, TieKind::Elsewhere(_)) => {
                let allowed = judged.claim(&tie.pvc).into_iter();
                let nodes = allowed.flat_map(|it| it.allowed.values().flatten().flatten());
                let mut nodes = nodes.peekable();
                nodes.peek().is_some() && nodes.all(is_down)
            }
            // The list of such pods says it.
            Note::NoController => false,
            _ => true,
        })
    }

    /// Reports whether a volume of the pod is attached to its node, so that another node gets it only 6
    /// minutes after the delete (`VolumeAttachment`). Kubernetes detaches at once if the node has the
    /// taint `out-of-service`, and nothing waits for the volume if the namespace is being deleted.
    pub(crate) fn detaches_late(&self, judged: &Judged) -> bool {
        let (facts, pod) = (&self.facts, &judged.pod);
        let node = facts.known_node(pod).filter(|node| !node.out_of_service);
        let attached = node.and_then(|node| facts.attachments.get(&node.name));
        let mut attached = attached
            .into_iter()
            .flatten()
            .filter_map(|it| it.volume.as_ref());
        judged.unneeded() != Some(Unneeded::Namespace)
            && attached.any(|name| judged.volumes().any(|volume| volume.name == *name))
    }

    /// Returns the moment by which the volumes of pods that are deleted now are detached, as text.
    pub(crate) fn detached_at(&self) -> String {
        clock(
            self.facts
                .now
                .saturating_add(DETACH_TIME_LIMIT)
                .unwrap_or(self.facts.now),
        )
    }

    /// Returns from when on the volumes of pods that earlier runs deleted may be in use on other nodes, while
    /// the node is still down; `None` if it had none.
    pub(crate) fn volumes_moved_at(&self, node: &str) -> Option<Timestamp> {
        let mut nodes = self.history.nodes.iter();
        let its = nodes.find(|it| it.noted.node == node && it.now.state == NodeState::Down)?;
        let attached = its.noted.pods.iter().filter(|pod| pod.attached);
        let last = attached.map(|pod| pod.at).max()?;
        last.saturating_add(DETACH_TIME_LIMIT).ok()
    }

    /// Reports whether this run deleted a pod on the node, or may have.
    pub(crate) fn was_acted_on(&self, node: &str) -> bool {
        self.pods_on(node).any(|judged| {
            let code = self.outcome(judged);
            code.is_some_and(|code| code.acted() && !code.left_untouched())
        })
    }

    /// Lists the Terminating pods of a node.
    pub(crate) fn pods_on(&self, node: &str) -> impl Iterator<Item = &Judged> {
        let pods = self.plan.pods.iter();
        pods.filter(move |judged| judged.pod.node.as_deref() == Some(node))
    }

    /// Returns what became of the pod, if the run came to it.
    pub(crate) fn outcome(&self, judged: &Judged) -> Option<OutcomeCode> {
        Some(self.outcomes.get(&judged.pod.uid)?.code())
    }
}

/// How bad it is that a pod is down, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Damage {
    NoOtherReady,
    NotKnown,
    FewReady,
    ManyReady,
}

impl Damage {
    /// Returns how bad it is that the pod is down. The Ready pods of its `StatefulSet` are its
    /// `status.readyReplicas`, which does not count this pod.
    pub(crate) fn of(judged: &Judged) -> Self {
        match judged.copies() {
            Some(copies) if copies.ready == 0 => Self::NoOtherReady,
            None => Self::NotKnown,
            Some(copies) if copies.ready * 2 < copies.wanted => Self::FewReady,
            Some(_) => Self::ManyReady,
        }
    }
}

/// Sorts pods, the worst damage first.
pub(crate) fn by_damage(mut pods: Vec<&Judged>) -> Vec<&Judged> {
    pods.sort_by_cached_key(|judged| {
        let pod = &judged.pod;
        (
            Damage::of(judged),
            pod.namespace.clone(),
            natural(&pod.name),
            pod.uid.clone(),
        )
    });
    pods
}

/// Spells a moment of the day.
pub(crate) fn clock(at: Timestamp) -> String {
    at.strftime("%RZ").to_string()
}

/// Reports whether a limit other than the cap holds the pod.
pub(crate) fn is_held(judged: &Judged) -> bool {
    let limit = judged.limit.as_ref();
    limit.is_some_and(|limit| !matches!(limit, Limit::OverCap(_)))
}

/// Reports whether the pod needs you because its data is, or may be, on its node.
pub(crate) fn is_local(judged: &Judged) -> bool {
    let asks = |code| judged.reason.asks.contains(&code);
    judged.verdict() == Verdict::Manual
        && (asks(ReasonCode::LocalVolume) || asks(ReasonCode::HostPath))
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
