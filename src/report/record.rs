//! The record of a run, from which a report is built.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use crate::{
    exit::Exit,
    facts::{ClaimFacts, ClusterFacts, Place, PodFacts, Read, Storage, Uid, Unneeded},
    history::{History, Notebook, Noted},
    judge::{Judged, Limit, Note, Plan, ReasonCode, TieKind, Verdict},
    outcome::{Outcome, OutcomeCode, Trace},
    selector::Target,
    settings::Settings,
    words::{joined, natural},
};

/// The time after which Kubernetes detaches a volume from a dead node (`maxWaitForUnmountDuration`).
const DETACH_TIME_LIMIT: SignedDuration = SignedDuration::from_mins(6);

/// Everything about a run: its settings, its facts, its plan, and its outcomes.
#[derive(Debug)]
pub struct RunRecord<'a> {
    pub settings: &'a Settings,
    pub facts: ClusterFacts,
    pub plan: Plan,
    /// The outcomes of the pods to reap, by UID. Empty for a snapshot and an
    /// explanation, and before the run has acted.
    pub outcomes: BTreeMap<Uid, Outcome>,
    /// What earlier runs did.
    pub history: History,
    /// The notes for later runs, as they are in the cluster; `None` if nothing can be noted.
    pub notes: Option<Notebook>,
    /// The cluster that the printed kubectl commands have to reach.
    pub kubectl: Target,
    /// Whether the user was asked and did not agree to the deletes.
    pub declined: bool,
}

impl<'a> RunRecord<'a> {
    /// Makes the record of a run that has a plan and has not acted yet.
    pub fn new(settings: &'a Settings, facts: ClusterFacts, plan: Plan) -> Self {
        Self {
            settings,
            facts,
            plan,
            outcomes: BTreeMap::new(),
            history: History::default(),
            notes: None,
            kubectl: settings.task.target(),
            declined: false,
        }
    }
}

impl RunRecord<'_> {
    /// Lists the limits that hold the whole run, some zones or some nodes.
    pub(crate) fn limits(&self) -> impl Iterator<Item = &Limit> {
        let of_parts = self.plan.zones.values().chain(self.plan.together.values());
        self.plan.hold.iter().chain(of_parts)
    }

    /// Lists the nodes that each limit on nodes that failed together holds, in natural order, unless the breaker does.
    pub(crate) fn held_together(&self) -> Vec<(&Limit, Vec<&str>)> {
        let mut held = Vec::<(&Limit, Vec<&str>)>::new();
        let together = self.plan.together.iter();
        let together = together.filter(|(name, limit)| {
            let node = self.facts.known(name);
            node.and_then(|node| self.plan.limit_of(node)) == Some(limit)
        });
        for (name, limit) in together.sorted_by_cached_key(|(name, _)| natural(name)) {
            match held.iter_mut().find(|(of, _)| *of == limit) {
                Some((_, names)) => names.push(name),
                None => held.push((limit, vec![name])),
            }
        }
        held
    }

    /// Returns the limit that holds the run, or the first that holds a part of it.
    pub(crate) fn limit(&self) -> Option<&Limit> {
        self.limits().next()
    }

    pub(crate) fn exit(&self) -> Exit {
        let any = |test: fn(&Judged) -> bool| self.plan.pods.iter().any(test);
        let failed = |outcome: &Outcome| outcome.code().is_failure();
        let needs_you = any(|judged| judged.verdict() == Verdict::Manual)
            || self.history.needing_you().next().is_some();
        if self.settings.exit_on_manual && needs_you {
            Exit::Manual
        } else if any(|judged| is_held(judged) && judged.code() != ReasonCode::FactsUnread) {
            Exit::Held
        } else if !self.facts.errors.is_empty()
            || any(|judged| judged.code() == ReasonCode::FactsUnread)
            || self.outcomes.values().any(failed)
        {
            Exit::Incomplete
        } else {
            Exit::Done
        }
    }

    /// Lists the active pods of a node, those first that Kubernetes will evict.
    pub(crate) fn active_on(&self, node: &str) -> impl Iterator<Item = &PodFacts> {
        let others = self.facts.active.get(node).into_iter().flatten();
        let not_evicted = self.plan.not_evicted.iter().map(|it| &it.pod);
        let here = not_evicted.filter(move |pod| pod.node.as_deref() == Some(node));
        here.chain(others)
    }

    /// Returns what to remember once the pod is reaped; `None` if it is not. Its replacement waits for a node that
    /// its volume allows only if no such node is Ready: all NotReady nodes were read.
    pub(crate) fn note(&self, judged: &Judged) -> Option<String> {
        if judged.verdict() != Verdict::Reap {
            return None;
        }
        let is_down = |name: &String| self.facts.nodes.contains_key(name);
        let notes = judged.reason.notes().filter(|note| match note {
            Note::Claim(tie) if matches!(tie.kind, TieKind::Elsewhere(_)) => {
                let allowed = judged.claim(&tie.pvc).into_iter();
                let nodes = allowed.flat_map(|it| it.allowed.values().flatten().flatten());
                let mut nodes = nodes.peekable();
                nodes.peek().is_some() && nodes.all(is_down)
            }
            // The list of such pods says it.
            Note::NoController => false,
            _ => true,
        });
        // The pod's author may write a text that looks like a note of ours.
        let own = judged.pod.after_reap.iter();
        let own = own.map(|note| format!("{note:#} (its own note)"));
        joined(own.chain(notes.map(|note| note.to_string())), "; ")
    }

    /// Reports whether a volume of the pod is attached to its node (`VolumeAttachment`).
    pub(crate) fn is_attached(&self, judged: &Judged) -> Read<bool> {
        let claims = judged.storage.iter().flat_map(Storage::claims);
        let is_never_attached = |it: &&ClaimFacts| it.attaches == Some(Ok(false));
        let volumes = claims.filter(|it| !is_never_attached(it));
        let volumes = volumes.filter_map(|claim| Some(&claim.read.bound()?.volume));
        let mut names = volumes
            .filter(|volume| matches!(volume.storage, Place::Driver | Place::StrictLocal))
            .map(|volume| &volume.name)
            .peekable();
        let Some(node) = judged.pod.node.as_ref().filter(|_| names.peek().is_some()) else {
            return Ok(false);
        };
        let attached = self.facts.attachments.on(node)?;
        let attached = attached.iter().filter(|it| it.attached);
        let attached = attached.filter_map(|it| it.volume.as_ref());
        let attached = attached.collect_vec();
        Ok(names.any(|name| attached.contains(&name)))
    }

    /// Reports whether a volume of the pod is attached to its node, or may be.
    pub(crate) fn may_be_attached(&self, judged: &Judged) -> bool {
        self.is_attached(judged).unwrap_or(true)
    }

    /// Reports whether another node gets a volume of the pod only 6 minutes after the delete. Kubernetes detaches at
    /// once if the node has the taint `out-of-service`, and nothing waits for the volume if the namespace is being
    /// deleted.
    pub(crate) fn detaches_late(&self, judged: &Judged) -> bool {
        let node = self.facts.known_node(&judged.pod);
        node.is_some_and(|node| !node.out_of_service)
            && judged.unneeded() != Some(Unneeded::Namespace)
            && self.may_be_attached(judged)
    }

    /// Returns the moment by which the volumes of pods that are deleted now are detached.
    pub(crate) fn detached_at(&self) -> Timestamp {
        let at = self.facts.now.saturating_add(DETACH_TIME_LIMIT);
        at.unwrap_or(self.facts.now)
    }

    /// Lists what earlier runs noted of a node that may still be down.
    pub(crate) fn earlier(&self, node: &str) -> impl Iterator<Item = &Noted> {
        let nodes = self.history.nodes.iter();
        let its = nodes.filter(move |it| it.noted.node == node && it.now.state.may_be_down());
        its.map(|it| &it.noted)
    }

    /// Returns from when on the first volume of the pods that earlier runs deleted may be in use on another node,
    /// while the node is still down; `None` if they had none. A run that ended early noted no pods: they may have had one.
    pub(crate) fn volumes_moved_at(&self, node: &str) -> Option<Timestamp> {
        let first = self.earlier(node).filter_map(|noted| {
            let attached = noted.pods.iter().filter(|pod| pod.attached);
            let unnamed = noted.pods.is_empty().then_some(noted.first_reap);
            attached.map(|pod| pod.at).min().or(unnamed)
        });
        first.min()?.saturating_add(DETACH_TIME_LIMIT).ok()
    }

    /// Reports whether this run deleted a pod on the node, or may have.
    pub(crate) fn was_acted_on(&self, node: &str) -> bool {
        let mut pods = self.pods_on(node);
        pods.any(|judged| self.trace(judged).is_some_and(Trace::may_be_gone))
    }

    /// Lists the Terminating pods, the worst damage first.
    pub(crate) fn by_damage(&self) -> Vec<&Judged> {
        let key = |it: &&Judged| {
            let (namespace, name) = (it.pod.namespace.clone(), natural(&it.pod.name));
            (Damage::of(it), namespace, name, it.pod.uid.clone())
        };
        self.plan.pods.iter().sorted_by_cached_key(key).collect()
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

    /// Returns what is known of this run's own delete of the pod; `None` if it only looked.
    pub(crate) fn trace(&self, judged: &Judged) -> Option<Trace> {
        self.outcomes.get(&judged.pod.uid)?.trace()
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
            Some(copies) if copies.ready < copies.wanted.div_ceil(2) => Self::FewReady,
            Some(_) => Self::ManyReady,
        }
    }
}

/// Spells a moment with its day.
pub(crate) fn day(at: Timestamp) -> String {
    at.strftime("%F %RZ").to_string()
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
