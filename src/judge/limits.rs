//! The limits of a whole run: the mass-outage breaker and the cap. They turn `reap` into `wait`,
//! never back.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Limits, PodContext, Policy, Reason, ReasonCode, Tie, Verdict, unread_facts};
use crate::{
    facts::{
        ClaimFacts, ClusterFacts, Copies, Counts, NodeCounts, NodeFacts, PodFacts, Storage, Tally,
        Unneeded, Unread, VolumeFacts, Zone,
    },
    words::natural,
};

/// This many NotReady nodes are not an outage yet. Otherwise one or two such nodes would prevent
/// every delete in a small cluster. Kubernetes' node lifecycle controller uses the same two numbers
/// in each zone (more than 2, and 55%).
pub const MAX_NODES_IGNORED: usize = 2;

/// A pod, the reason that the rules give, and the limit, if any. The limit does not replace the
/// reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The pod.
    pub pod: PodFacts,
    /// The pod's storage, if gathering came to it.
    pub storage: Option<Storage>,
    /// The reason that the rules give.
    pub reason: Reason,
    /// The limit that turns `reap` into `wait`; set only if the rules say `reap`.
    pub limit: Option<Limit>,
    /// What is foreseen, if time alone keeps the pod, or if Kubernetes has not evicted it yet.
    pub foreseen: Option<Foreseen>,
}

/// What the rules say of a pod at the moment from which time alone no longer keeps it. No delete
/// depends on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Foreseen {
    /// That moment, by what is known now.
    pub at: Timestamp,
    /// The reason that the rules give then.
    pub reason: Reason,
    /// The limit other than the cap that turns `reap` into `wait`, as it is now.
    pub limit: Option<Limit>,
}

/// A limit that turns a pod's `reap` into `wait`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    /// Too many nodes are NotReady, of all nodes or of one zone. Holds how many, as a phrase.
    MassOutage(String),
    /// No pod could start elsewhere. Holds the node's name if it is the cluster's only node.
    NoRoom(Option<String>),
    /// A fact that affects the whole run is not known. Holds the fact and the cause, as a phrase.
    Unread(String),
    /// The pod is over the cap. Holds the value of `--max-deletes`.
    OverCap(usize),
}

/// All verdicts, after the limits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The Terminating pods, the longest overdue first, then by namespace, name and UID.
    pub pods: Vec<Judged>,
    /// The pods that Kubernetes has not evicted yet, in the same order, each with what is foreseen. No
    /// limit counts them.
    pub not_evicted: Vec<Judged>,
    /// The limit that holds the whole run, if there is one.
    pub hold: Option<Limit>,
    /// The limits that hold single zones, if no limit holds the whole run.
    pub zones: BTreeMap<Zone, Limit>,
}

impl Judged {
    /// Judges every pod by the rules, now and once time alone no longer keeps it. No limit is set yet.
    pub fn by_rules(
        facts: &ClusterFacts,
        pods: Vec<(PodFacts, Option<Storage>)>,
        policy: &Policy,
    ) -> Vec<Self> {
        let judge = |(pod, storage): (PodFacts, Option<Storage>)| {
            let case = PodContext::of(facts, policy, &pod, storage.as_ref());
            let reason = case.decide();
            let then = case.foreseen().filter(|it| it.clock >= facts.now);
            let foreseen = then.map(|then| Foreseen {
                at: then.clock,
                reason: then.decide(),
                limit: None,
            });
            Self {
                reason,
                foreseen,
                pod,
                storage,
                limit: None,
            }
        };
        pods.into_iter().map(judge).collect()
    }

    /// Returns the PVC of that name, if the pod uses one and its storage was read.
    pub fn claim(&self, name: &str) -> Option<&ClaimFacts> {
        self.storage.as_ref()?.claim(name)
    }

    /// Reports whether the rules about storage were asked about the pod. They were not if time alone keeps
    /// it, except by a PVC that was given up.
    pub fn by_storage(&self) -> bool {
        let is_given_up = |tie: &Tie| tie.given_up_from().is_some();
        let waits = self.foreseen.is_some() && !self.reason.ties.iter().any(is_given_up);
        self.storage.is_some() && !waits
    }

    /// Returns the moment until which the pod waits for time to pass, and for nothing else.
    pub fn waits_until(&self) -> Option<Timestamp> {
        let foreseen = self.foreseen.as_ref();
        let foreseen = foreseen.filter(|_| self.verdict() == Verdict::Wait);
        Some(foreseen?.at)
    }

    /// Returns the copies of the pod's `StatefulSet`, if they were read.
    pub fn copies(&self) -> Option<Copies> {
        self.storage.as_ref()?.set.as_ref()?.as_ref().ok()?.copies
    }

    /// Lists the volumes to which the pod's PVCs are bound, if they were read.
    pub fn volumes(&self) -> impl Iterator<Item = &VolumeFacts> {
        self.storage.iter().flat_map(Storage::volumes)
    }

    /// Returns why nothing wants the pod again; `None` if something wants it, or may.
    pub fn unneeded(&self) -> Option<Unneeded> {
        self.pod.unneeded(self.storage.as_ref())
    }

    /// Returns the verdict: `wait` if a limit is set, otherwise the verdict of the rules.
    pub fn verdict(&self) -> Verdict {
        if self.limit.is_some() {
            Verdict::Wait
        } else {
            self.reason.verdict()
        }
    }

    /// Returns the code that decided: that of the limit if one is set, otherwise that of the
    /// reason.
    pub fn code(&self) -> ReasonCode {
        let limit = self.limit.as_ref();
        limit.map_or_else(|| self.reason.code(), Limit::code)
    }

    /// Returns the sentence that explains the verdict: that of the limit if one is set, otherwise
    /// that of the reason.
    pub fn sentence(&self) -> String {
        self.limit
            .as_ref()
            .map_or_else(|| self.reason.to_string(), Limit::sentence)
    }
}

impl Foreseen {
    /// Returns the verdict: `wait` if a limit is set, otherwise the verdict of the rules.
    pub fn verdict(&self) -> Verdict {
        match self.limit {
            Some(_) => Verdict::Wait,
            None => self.reason.verdict(),
        }
    }
}

impl Plan {
    /// Applies the limits of the run to pods that the rules have judged: the Terminating ones, and those
    /// that Kubernetes has not evicted yet.
    pub fn new(
        facts: &ClusterFacts,
        mut pods: Vec<Judged>,
        mut not_evicted: Vec<Judged>,
        limits: &Limits,
    ) -> Self {
        for pods in [&mut pods, &mut not_evicted] {
            // The UID also orders pods of the same name.
            pods.sort_by_cached_key(|Judged { pod, .. }| {
                (
                    pod.overdue_since(facts.known_node(pod), facts.now),
                    pod.namespace.clone(),
                    natural(&pod.name),
                    pod.uid.clone(),
                )
            });
        }
        let hold = limit_of_run(facts, limits.max_not_ready_percent);
        let zones = match hold {
            None => limits_of_zones(&facts.node_counts, limits.max_not_ready_percent),
            Some(_) => BTreeMap::new(),
        };
        let plan = Self {
            pods: Vec::new(),
            not_evicted: Vec::new(),
            hold,
            zones,
        };
        let (mut taken, most) = (0, limits.max_deletes.unwrap_or(usize::MAX));
        for judged in pods
            .iter_mut()
            .filter(|judged| judged.reason.verdict() == Verdict::Reap)
        {
            let node = facts.known_node(&judged.pod);
            judged.limit = node.and_then(|node| plan.limit_of(node)).cloned();
            if judged.limit.is_none() {
                judged.limit = (taken >= most).then_some(Limit::OverCap(most));
                taken += 1;
            }
        }
        for Judged { pod, foreseen, .. } in pods.iter_mut().chain(&mut not_evicted) {
            let reaps = |it: &&mut Foreseen| it.reason.verdict() == Verdict::Reap;
            if let Some(foreseen) = foreseen.as_mut().filter(reaps) {
                let node = facts.known_node(pod);
                foreseen.limit = node.and_then(|node| plan.limit_of(node)).cloned();
            }
        }
        for judged in &mut pods {
            // Something else than time keeps a pod that has the same reason then.
            let code = judged.reason.code();
            judged.foreseen.take_if(|it| it.reason.code() == code);
        }
        Self {
            pods,
            not_evicted,
            ..plan
        }
    }

    /// Returns the limit that holds the pods of `node`, if there is one.
    pub fn limit_of(&self, node: &NodeFacts) -> Option<&Limit> {
        let of_zone = || self.zones.get(node.zone.as_ref()?);
        self.hold.as_ref().or_else(of_zone)
    }

    /// Lists the pods to reap, in the order of the plan.
    pub fn reaps(&self) -> impl Iterator<Item = &Judged> {
        self.pods
            .iter()
            .filter(|judged| judged.verdict() == Verdict::Reap)
    }
}

impl Limit {
    /// Returns the code of the limit.
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::MassOutage(_) | Self::NoRoom(_) => ReasonCode::MassOutage,
            Self::Unread(_) => ReasonCode::FactsUnread,
            Self::OverCap(_) => ReasonCode::OverCap,
        }
    }

    /// Returns the state that triggers the limit, as a phrase.
    pub fn state(&self) -> String {
        match self {
            Self::MassOutage(state) | Self::Unread(state) => state.clone(),
            Self::NoRoom(Some(only)) => format!("{only} is the only node: nothing can start elsewhere"),
            Self::NoRoom(None) => "No pod could start elsewhere: every other node is NotReady, cordoned, reserved for the cluster itself or a leaf node"
                .to_owned(),
            Self::OverCap(most) => format!("--max-deletes is {most}"),
        }
    }

    /// Returns the sentence that explains the limit to the user.
    pub fn sentence(&self) -> String {
        let state = self.state();
        match self {
            Self::MassOutage(_) => format!(
                "{state}. The pods wait: when that many nodes fail, the cause is more often the API server or the network than the nodes."
            ),
            Self::NoRoom(_) => format!("{state}."),
            Self::Unread(_) => unread_facts(&state),
            Self::OverCap(_) => {
                format!("{state}; pods overdue for longer went first. The next run takes it.")
            }
        }
    }
}

fn limit_of_run(facts: &ClusterFacts, max_percent: u8) -> Option<Limit> {
    if let Some(clock) = &facts.clock {
        return Some(Limit::Unread(format!("the time: {clock}")));
    }
    match &facts.node_counts {
        _ if max_percent >= 100 => None,
        NodeCounts::NotNeeded => None,
        NodeCounts::Unread(Unread(cause)) => Some(Limit::Unread(format!(
            "the number of NotReady nodes, which the breaker needs: {cause}"
        ))),
        NodeCounts::Counted(counts) if !counts.room => {
            let only = facts.known_nodes().next().filter(|_| facts.node_count == 1);
            Some(Limit::NoRoom(only.map(|node| node.name.clone())))
        }
        NodeCounts::Counted(Counts { all, workers, .. }) => {
            let of_workers = || too_many(*workers, "worker nodes", max_percent);
            too_many(*all, "nodes", max_percent).or_else(of_workers)
        }
    }
}

fn limits_of_zones(node_counts: &NodeCounts, max_percent: u8) -> BTreeMap<Zone, Limit> {
    let NodeCounts::Counted(Counts { zones, .. }) = node_counts else {
        return BTreeMap::new();
    };
    let several = zones.len() > 1 && max_percent < 100;
    let held = zones
        .iter()
        .filter(|_| several)
        .filter_map(|(zone, tally)| {
            let which = format!("nodes of zone {zone}");
            Some((zone.clone(), too_many(*tally, &which, max_percent)?))
        });
    held.collect()
}

fn too_many(tally: Tally, which: &str, max_percent: u8) -> Option<Limit> {
    let Tally { not_ready, total } = tally;
    let is = not_ready > MAX_NODES_IGNORED && not_ready * 100 >= total * usize::from(max_percent);
    is.then(|| {
        let percent = not_ready * 100 / total;
        Limit::MassOutage(format!(
            "{not_ready} of {total} {which} are NotReady: {percent}%, and the limit is {max_percent}%"
        ))
    })
}
