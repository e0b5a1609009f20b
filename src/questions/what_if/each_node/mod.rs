//! `what-if --each-node`: for every real node, what would happen if it alone died now?
//!
//! Each node has the forecast that [`what_if`](super) makes for a named one. Only counts of its
//! pods are kept, so that the memory does not grow with the number of pods in the cluster.

mod page;

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt};

use super::{Fate, Replicas, SupposedRun, Workload, only_on, suppose};
use crate::{
    cluster::MAX_IN_FLIGHT,
    codes::codes,
    decide::ReasonCode,
    exit::{CouldNotRun, Result},
    facts::{NodeRead, PodSummary, Stay, Unread},
    limits::Plan,
    questions::Head,
    report::in_json,
    selector::NamespaceFilter,
    settings::Settings,
    source::{Source, Store},
    stop::Stop,
    words::natural,
};

/// The toleration in seconds that `docs/downtime.md` compares with the default of 300.
const SHORT_TOLERATION: i64 = 60;
/// Seconds by which the component `eager` shortens the wait for the next run, at most: it runs
/// every two minutes in place of ten.
const EAGER: i64 = 480;

in_json! {
    /// What would happen to the pods of each node if it alone died now.
    #[serde(tag = "kind")]
    #[derive(Default)]
    pub struct Forecast {
        /// What every explanation and forecast says.
        #[serde(flatten)]
        pub head: Head,
        /// The namespaces whose pods are looked at.
        #[serde(flatten)]
        pub namespaces: NamespaceFilter,
        /// Every real node, the worst first.
        pub nodes: Vec<NodeForecast>,
        /// All nodes together: the sums, and the longest time.
        pub whole: Counts,
        /// Leaf nodes, which are left out.
        pub leaf_nodes: usize,
        /// What would change the forecast of the first node.
        pub changes: Vec<Change>,
    }

    /// What happens if one node dies.
    #[derive(Default)]
    pub struct NodeForecast {
        /// Its name.
        pub node: String,
        /// What becomes of its pods.
        #[serde(flatten)]
        pub counts: Counts,
        /// The breaker would hold the run.
        pub breaker_holds: bool,
        /// The workloads without a replica anywhere else.
        pub workloads: Vec<Workload>,
        /// `seconds`, if no pod tolerated a silent node for more than [`SHORT_TOLERATION`].
        #[serde(skip)]
        pub(crate) tolerating_less: i64,
        /// The number of pods of `StatefulSet`s that need a person because of a local volume.
        #[serde(skip)]
        pub(crate) local: usize,
    }

    /// The counts of one node's pods, or of all nodes' pods.
    #[derive(Default)]
    pub struct Counts {
        /// Pods that Kubernetes would evict.
        pub evicted: usize,
        /// Pods that would be reaped, and that their controller makes again.
        pub comes_back: usize,
        /// Pods that come back once a volume that is attached to the node is detached from it.
        pub wait_for_volume: usize,
        /// Pods that would be reaped, and that nothing makes again.
        pub lost: usize,
        /// Pods that would need a person.
        pub needs_person: usize,
        /// Pods that a rule has wait, or leaves alone.
        pub left_terminating: usize,
        /// Pods that tolerate a silent node for ever: they stay on it, down and never evicted.
        pub stays_down: usize,
        /// Pods in namespaces that the filter leaves out: no run would reap them.
        pub left_out: usize,
        /// Workloads without a replica anywhere else.
        pub without_replica: usize,
        /// Seconds from the moment that Kubernetes calls the node unreachable until a run may reap
        /// the last of its pods; 0 if it would reap none.
        pub seconds: i64,
    }
}

codes! {
    /// A setting that would change a forecast.
    pub enum Setting {
        /// `tolerationSeconds` of the taint `node.kubernetes.io/unreachable`, in the pods.
        Toleration = "toleration",
        /// The component, for claims that are declared scratch.
        Scratch = "scratch",
        /// The component, whose schedule is shorter.
        Eager = "eager",
    }
}

in_json! {
    /// What another setting would save.
    pub struct Change {
        /// The setting.
        pub setting: Setting,
        /// What to set, and what follows, as a sentence.
        pub says: &'static str,
        /// How many more pods would come back without a person, at most.
        pub saves_pods: usize,
        /// How many seconds sooner pods would be reaped, at most.
        pub saves_seconds: i64,
    }
}

/// Forecasts the death of each real node.
pub async fn run(settings: &Settings, stop: &Stop) -> Result<Forecast> {
    by_source!(settings, stop, |source| run_on(source, settings, |_, _| ()))
}

/// Forecasts the death of each real node by the facts of `source`. `on_plan` is called with each
/// node's name and the plan of the run that would follow.
pub async fn run_on(
    source: &impl Source,
    settings: &Settings,
    on_plan: impl Fn(&str, &Plan),
) -> Result<Forecast> {
    let store = Store::new(source, settings.wanted());
    store.read_claims().await;
    let mut facts = store.scan().await?.facts;
    let standings = store.standings(facts.now).await;
    let standings = standings
        .map_err(|Unread(cause)| CouldNotRun::Source(format!("could not list nodes: {cause}")))?;
    let alone = async |name: &String| {
        let store = store.without(BTreeSet::from([name.clone()]));
        let supposed = suppose(&store, settings).await?;
        Ok::<_, CouldNotRun>((name.clone(), supposed))
    };
    let mut all = futures_util::stream::iter(standings.keys())
        .map(alone)
        .buffer_unordered(MAX_IN_FLIGHT);
    let (mut nodes, mut replicas) = (Vec::new(), Replicas::default());
    let mut unread = false;
    while let Some((name, supposed)) = all.try_next().await? {
        on_plan(&name, &supposed.run.plan);
        replicas.count(&supposed.pods, settings);
        unread |= supposed.run.lacks_facts();
        nodes.extend(NodeForecast::of(name, &supposed));
    }
    let mut workloads = BTreeMap::<_, Vec<_>>::new();
    for (workload, by_node) in &replicas.0 {
        for node in by_node.keys() {
            let away = only_on(workload, by_node, &standings, |name| name == node);
            workloads.entry(node).or_default().extend(away);
        }
    }
    facts.errors = store.errors();
    let mut whole = Counts::default();
    for node in &mut nodes {
        node.workloads = workloads.remove(&node.node).unwrap_or_default();
        node.counts.without_replica = node.workloads.len();
        whole.add(&node.counts);
    }
    nodes.sort_by_cached_key(NodeForecast::order);
    Ok(Forecast {
        head: Head::new(settings, &facts, unread),
        namespaces: settings.namespaces.clone(),
        leaf_nodes: standings.values().filter(|node| node.leaf).count(),
        changes: nodes.first().map(NodeForecast::changes).unwrap_or_default(),
        nodes,
        whole,
    })
}

/// Counts the seconds from the moment its node becomes unreachable until a run may reap the pod, if
/// the pod tolerates the node for `tolerates` seconds. The grace period of a node `with_lease` is
/// cut short: it falls silent before the eviction.
fn until_reaped(pod: &PodSummary, tolerates: i64, with_lease: bool, settings: &Settings) -> i64 {
    let policy = &settings.policy;
    let deadline = if pod.terminating {
        0
    } else {
        let grace = if with_lease { 0 } else { pod.grace.max(0) };
        tolerates.max(0).saturating_add(grace)
    };
    let stuck = deadline.saturating_add(policy.reap_older_than.as_secs());
    stuck.max(policy.node_not_ready_for.as_secs())
}

impl Counts {
    /// Adds the counts of another node, and keeps the longer time.
    fn add(&mut self, other: &Self) {
        self.evicted += other.evicted;
        self.comes_back += other.comes_back;
        self.wait_for_volume += other.wait_for_volume;
        self.lost += other.lost;
        self.needs_person += other.needs_person;
        self.left_terminating += other.left_terminating;
        self.stays_down += other.stays_down;
        self.left_out += other.left_out;
        self.without_replica += other.without_replica;
        self.seconds = self.seconds.max(other.seconds);
    }
}

impl NodeForecast {
    /// Counts the fates of the node's pods; `None` for a leaf node, or for one that no
    /// longer exists.
    fn of(node: String, supposed: &SupposedRun<'_>) -> Option<Self> {
        let run = &supposed.run;
        let (is_real, with_lease) = match run.facts.nodes.get(&node)? {
            NodeRead::Known(node) => (node.leaf.is_none(), node.renewed.is_some()),
            NodeRead::Unread(_) => (true, false),
            NodeRead::Gone => (false, false),
        };
        let mut forecast = Self {
            breaker_holds: run.plan.hold.is_some() || !run.plan.zones.is_empty(),
            node,
            ..Self::default()
        };
        let counts = &mut forecast.counts;
        counts.evicted = supposed.pods.iter().filter(|pod| pod.evicted()).count();
        counts.left_out = supposed.left_out();
        for (pod, judged, fate) in supposed.fates() {
            match fate {
                Fate::Stays if !pod.finished && pod.stays == Some(Stay::Tolerates) => {
                    counts.stays_down += 1;
                }
                Fate::ComesBack => counts.comes_back += 1,
                Fate::Lost => counts.lost += 1,
                Fate::NeedsPerson => counts.needs_person += 1,
                Fate::LeftTerminating => counts.left_terminating += 1,
                Fate::Stays | Fate::Finished => {}
            }
            let Some(judged) = judged else { continue };
            let is_local = judged.reason.code == ReasonCode::LocalVolume
                && judged.pod.made_by("StatefulSet", "apps");
            forecast.local += usize::from(is_local);
            if let Fate::ComesBack | Fate::Lost = fate {
                let late = run.detaches_late(&judged.pod).is_some();
                counts.wait_for_volume += usize::from(late && fate == Fate::ComesBack);
                let tolerates = pod.tolerates_silence.unwrap_or_default();
                let reaped_after =
                    |tolerates| until_reaped(pod, tolerates, with_lease, run.settings);
                let sooner = reaped_after(tolerates.min(SHORT_TOLERATION));
                counts.seconds = counts.seconds.max(reaped_after(tolerates));
                forecast.tolerating_less = forecast.tolerating_less.max(sooner);
            }
        }
        is_real.then_some(forecast)
    }

    /// Returns the key that sorts the worst node first.
    fn order(&self) -> impl Ord + use<> {
        let counts = &self.counts;
        let stays = counts.left_terminating + counts.stays_down;
        let bad = (
            counts.needs_person,
            counts.lost,
            counts.without_replica,
            stays,
        );
        let late = (counts.wait_for_volume, counts.seconds, counts.evicted);
        (std::cmp::Reverse((bad, late)), natural(&self.node))
    }

    /// Reports whether every pod comes back without a person.
    fn is_harmless(&self) -> bool {
        let counts = &self.counts;
        let away = counts.lost + counts.needs_person + counts.without_replica;
        let left = counts.left_terminating + counts.stays_down + counts.left_out;
        away + left == 0 && !self.breaker_holds
    }

    /// Lists the settings that would make this node's forecast better.
    fn changes(&self) -> Vec<Change> {
        let Counts {
            stays_down,
            seconds,
            ..
        } = self.counts;
        let eager = if seconds > 0 { EAGER } else { 0 };
        let changes = [
            (
                Setting::Scratch,
                "component scratch, once the claims that nobody would miss are annotated pod-reaper.io/scratch: \"true\"",
                self.local,
                0,
            ),
            (
                Setting::Toleration,
                "tolerationSeconds for node.kubernetes.io/unreachable in the pods that tolerate it for ever: they would be evicted",
                stays_down,
                0,
            ),
            (
                Setting::Toleration,
                "tolerationSeconds: 60 for node.kubernetes.io/unreachable in the pods that tolerate it longest",
                0,
                seconds - self.tolerating_less,
            ),
            (
                Setting::Eager,
                "component eager: a run every two minutes in place of ten",
                0,
                eager,
            ),
        ];
        let changes = changes.map(|(setting, says, saves_pods, saves_seconds)| Change {
            setting,
            says,
            saves_pods,
            saves_seconds,
        });
        let saves = |change: &Change| change.saves_pods > 0 || change.saves_seconds > 0;
        changes.into_iter().filter(saves).collect()
    }
}

#[cfg(test)]
mod tests;
