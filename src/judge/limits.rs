//! The limits of a whole run: the mass-outage breaker, nodes that failed together, room, facts that were not read, and the
//! cap. They turn `reap` into `wait`, never back.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    Effect, Limits, PodContext, Policy, Reason, ReasonCode, Verdict, is_attached, unread_facts,
};
use crate::{
    facts::{
        ClaimFacts, ClusterFacts, Counts, NodeCounts, NodeFacts, PodFacts, Ready, Storage, Taint,
        Tally, Unneeded, Unread, VolumeFacts, Zone,
    },
    words::{listed, natural},
};

/// This many NotReady nodes are not an outage yet. Otherwise one or two such nodes would prevent
/// every delete in a small cluster. Kubernetes' node lifecycle controller uses the same two numbers
/// in each zone (more than 2, and 55%).
pub const MAX_NODES_IGNORED: usize = 2;

/// Nodes whose kubelets fell silent within this time of each other failed together.
pub const TOGETHER: SignedDuration = SignedDuration::from_mins(2);
/// The most taints that a sentence names.
const MAX_TAINTS_NAMED: usize = 3;

/// A pod, the reason that the rules give, and the limit, if any. The limit does not replace the
/// reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The pod.
    pub pod: Box<PodFacts>,
    /// The pod's storage, if gathering came to it.
    pub storage: Option<Storage>,
    /// The reason that the rules give.
    pub reason: Reason,
    /// The limit that turns `reap` into `wait`; set only if the rules say `reap`.
    pub limit: Option<Limit>,
    /// What is foreseen, if time alone keeps the pod, or if Kubernetes has not evicted it yet. It is boxed, because few
    /// of many pods have it.
    pub foreseen: Option<Box<Foreseen>>,
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
    /// The pod's node failed together with others. Holds how many, and the value of `--max-failed-together`.
    FailedTogether { nodes: usize, most: usize },
    /// The pod could start nowhere else. Holds why not, as a phrase.
    NoRoom(String),
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
    /// The limits that hold nodes that failed together, by the node's name.
    pub together: BTreeMap<String, Limit>,
    /// The nodes that are known to be off: apart from the cap, only an unread fact about the whole run holds their pods.
    pub fenced: BTreeSet<String>,
}

impl Judged {
    /// Judges every pod by the rules, now and once time alone no longer keeps it. No limit is set yet.
    pub fn by_rules(
        facts: &ClusterFacts,
        pods: Vec<(Box<PodFacts>, Option<Storage>)>,
        policy: &Policy,
    ) -> Vec<Self> {
        pods.into_iter()
            .map(|(pod, storage)| {
                let (case, read) = (PodContext::of(facts, policy, &pod), storage.as_ref());
                let reason = case.decide(read);
                let foreseen = case
                    .foreseen(read)
                    .filter(|it| it.clock >= facts.now)
                    .map(|then| {
                        Box::new(Foreseen {
                            at: then.clock,
                            reason: then.decide(read),
                            limit: None,
                        })
                    });
                Self {
                    reason,
                    foreseen,
                    pod,
                    storage,
                    limit: None,
                }
            })
            .collect()
    }

    /// Returns the PVC of that name, if the pod uses one and its storage was read.
    pub fn claim(&self, name: &str) -> Option<&ClaimFacts> {
        self.storage.as_ref()?.claim(name)
    }

    /// Returns the moment from which on a run will reap the pod; `None` if it waits for more than time.
    pub fn reaped_from(&self) -> Option<Timestamp> {
        self.foreseen
            .as_ref()
            .filter(|it| it.verdict() == Verdict::Reap)
            .map(|it| it.at)
    }

    /// Reports whether it lacks room, now or once time alone no longer keeps it.
    pub fn lacks_room(&self) -> bool {
        let foreseen = self.foreseen.iter().filter_map(|it| it.limit.as_ref());
        self.limit
            .iter()
            .chain(foreseen)
            .any(|limit| limit.code() == ReasonCode::NoRoom)
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
        self.limit
            .as_ref()
            .map_or_else(|| self.reason.code(), Limit::code)
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
        (policy, limits): (&Policy, &Limits),
    ) -> Self {
        for pods in [&mut pods, &mut not_evicted] {
            // The UID also orders pods of the same name.
            pods.sort_by_cached_key(|Judged { pod, .. }| {
                (
                    facts.overdue_since(pod, policy),
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
            together: failed_together(facts, limits.max_failed_together),
            fenced: facts
                .known_nodes()
                .filter(|node| node.fenced(facts.now, policy).is_some())
                .map(|node| node.name.clone())
                .collect(),
        };
        let attached = facts.attachments.attached();
        let limit_of = |it: &Judged| {
            let node = facts.known_node(&it.pod)?;
            let needs_room = Effect::of(it, &is_attached(it, &attached)) == Effect::Restart
                && !plan.fenced.contains(&node.name);
            let no_room = || needs_room.then(|| no_room(facts, &it.pod))?;
            plan.limit_of(node).cloned().or_else(no_room)
        };
        let (mut taken, most) = (0, limits.max_deletes);
        for judged in pods
            .iter_mut()
            .filter(|judged| judged.reason.verdict() == Verdict::Reap)
        {
            judged.limit = limit_of(judged);
            if judged.limit.is_none() {
                judged.limit = (most > 0 && taken >= most).then_some(Limit::OverCap(most));
                taken += 1;
            }
        }
        for judged in pods.iter_mut().chain(&mut not_evicted) {
            let limit = judged
                .foreseen
                .as_ref()
                .filter(|it| it.reason.verdict() == Verdict::Reap)
                .and_then(|_| limit_of(judged));
            if let Some(foreseen) = &mut judged.foreseen {
                foreseen.limit = limit;
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
        let of_run = self.hold.as_ref();
        match of_run {
            Some(Limit::Unread(_)) => of_run,
            _ if self.fenced.contains(&node.name) => None,
            _ => of_run
                .or_else(|| self.zones.get(node.zone.as_ref()?))
                .or_else(|| self.together.get(&node.name)),
        }
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
            Self::MassOutage(_) => ReasonCode::MassOutage,
            Self::FailedTogether { .. } => ReasonCode::FailedTogether,
            Self::NoRoom(_) => ReasonCode::NoRoom,
            Self::Unread(_) => ReasonCode::FactsUnread,
            Self::OverCap(_) => ReasonCode::OverCap,
        }
    }

    /// Returns the state that triggers the limit, as a phrase.
    pub fn state(&self) -> String {
        match self {
            Self::MassOutage(state) | Self::NoRoom(state) | Self::Unread(state) => state.clone(),
            Self::FailedTogether { nodes, most } => {
                format!("{nodes} nodes failed within two minutes, and the limit is {most}")
            }
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
            Self::FailedTogether { .. } => format!(
                "{state}. The pods wait: a switch, a rack or a host can be the cause, and the machines can run."
            ),
            Self::NoRoom(_) => format!("The pod could start nowhere else: {state}."),
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
        NodeCounts::NotNeeded => None,
        NodeCounts::Unread(Unread(cause)) => Some(Limit::Unread(format!(
            "the number of NotReady nodes, which the breaker needs: {cause}"
        ))),
        _ if max_percent >= 100 => None,
        NodeCounts::Counted(Counts { all, workers, .. }) => too_many(*all, "nodes", max_percent)
            .or_else(|| too_many(*workers, "worker nodes", max_percent)),
    }
}

/// Returns the limit of each node that failed together with others, by its name: more than `most` real nodes whose kubelets
/// fell silent lie in one window of [`TOGETHER`]. A node that could not be read may be in every window.
fn failed_together(facts: &ClusterFacts, most: usize) -> BTreeMap<String, Limit> {
    if most == 0 {
        return BTreeMap::new();
    }
    let silent = facts
        .known_nodes()
        .filter(|node| node.ready == Ready::Unknown && node.leaf.is_none())
        // Each of the two times, since a taint that somebody took off by hand is set again later.
        .flat_map(|node| {
            [node.ready_since, node.tainted_since]
                .into_iter()
                .flatten()
                .filter(|since| *since <= facts.now)
                .map(|since| (since, &node.name))
        })
        .sorted()
        .dedup()
        .collect_vec();
    // The number of nodes in the largest window of each.
    let (mut together, mut end) = (BTreeMap::<_, usize>::new(), 0);
    for (first, (since, _)) in silent.iter().enumerate() {
        let length =
            silent[first..].partition_point(|(at, _)| at.duration_since(*since) <= TOGETHER);
        // A window within the one before adds nothing.
        if first + length > end {
            end = first + length;
            let nodes = silent[first..end]
                .iter()
                .map(|(_, name)| name)
                .unique()
                .count();
            for (_, name) in &silent[first..end] {
                let largest = together.entry(*name).or_default();
                *largest = nodes.max(*largest);
            }
        }
    }
    let unread = &facts.unread_nodes;
    let limit = |nodes: usize| match unread.first() {
        _ if nodes > most => Some(Limit::FailedTogether { nodes, most }),
        Some(name) if nodes + unread.len() > most => Some(Limit::Unread(format!(
            "whether more than {most} nodes failed together: node {name} could not be read"
        ))),
        _ => None,
    };
    together
        .into_iter()
        .filter_map(|(name, nodes)| Some((name.clone(), limit(nodes)?)))
        .collect()
}

/// Returns the limit if no other node could start the pod. What others tolerate makes no room for it: a tenant could write
/// that.
fn no_room(facts: &ClusterFacts, pod: &PodFacts) -> Option<Limit> {
    let NodeCounts::Counted(Counts { rooms, .. }) = &facts.node_counts else {
        return None;
    };
    let is_tolerated = |taint: &Taint| pod.tolerations.iter().any(|it| it.tolerates(taint));
    if rooms.iter().any(|room| room.iter().all(is_tolerated)) {
        return None;
    }
    let only = facts.known_nodes().next().filter(|_| facts.node_count == 1);
    let keys = rooms
        .iter()
        .flatten()
        .map(|taint| taint.key.as_str())
        .unique()
        .collect_vec();
    let taints = listed(&keys, MAX_TAINTS_NAMED);
    Some(Limit::NoRoom(match only {
        Some(only) => format!("{} is the only node", only.name),
        None if taints.is_empty() => {
            "every other node is NotReady, cordoned or a leaf node".to_owned()
        }
        None => format!(
            "every other node is NotReady, cordoned, a leaf node, or has a taint that the pod does not tolerate (there are: {taints})"
        ),
    }))
}

fn limits_of_zones(node_counts: &NodeCounts, max_percent: u8) -> BTreeMap<Zone, Limit> {
    let NodeCounts::Counted(Counts { zones, .. }) = node_counts else {
        return BTreeMap::new();
    };
    let several = zones.len() > 1 && max_percent < 100;
    zones
        .iter()
        .filter(|_| several)
        .filter_map(|(zone, tally)| {
            let which = format!("nodes of zone {zone}");
            Some((zone.clone(), too_many(*tally, &which, max_percent)?))
        })
        .collect()
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
