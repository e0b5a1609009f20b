//! Notices: facts that you should know besides the verdicts, because silence reads as an all-clear.
//! No notice changes the exit code.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use jiff::SignedDuration;

use crate::{
    codes::codes,
    facts::{ClusterFacts, PodFacts, Ready, StayReason},
    judge::{Judged, Limit, ReasonCode, Verdict},
    report::{page::NAMES, record::RunRecord},
    words::{counted, human_duration, listed, prefixed},
};

codes! {
    /// What a notice is about.
    pub enum NoticeCode {
        /// Pods of a dead node that Kubernetes does not evict.
        NeverEvicted = "never-evicted",
        /// Pods that have waited for many times the threshold.
        LongWait = "long-wait",
        /// The namespace filter matches no existing namespace.
        NoNamespace = "no-namespace",
        /// Control plane nodes without a lease that tells whether their API server is running.
        ApiServerUnknown = "api-server-unknown",
        /// Terminating pods on Ready nodes, which are not looked at.
        OnReadyNodes = "on-ready-nodes",
    }
}

impl NoticeCode {
    /// Reports whether the notice has to come first, because without it the rest of the
    /// report misleads.
    pub fn is_first(self) -> bool {
        matches!(self, Self::NoNamespace | Self::NeverEvicted)
    }

    /// Reports whether something is wrong, or may be.
    pub fn asks_for_a_look(self) -> bool {
        self != Self::OnReadyNodes
    }

    /// Makes a notice about `count` pods or other things, which are not all on one node.
    fn about(self, count: usize, detail: String) -> NoticeEntry {
        NoticeEntry {
            code: self,
            node: None,
            count,
            detail,
        }
    }
}

in_json! {
    /// Something to know besides the verdicts.
    pub struct NoticeEntry {
        /// What the notice is about.
        pub code: NoticeCode,
        /// The node that the notice is about; null if it is about none, or about several.
        pub node: Option<String>,
        /// How many pods the notice is about; 1 if it is about none.
        pub count: usize,
        /// The notice as sentences.
        pub detail: String,
    }
}

/// A wait is long once it has lasted for more than this many thresholds. Many runs have then
/// passed.
const LONG_WAIT_THRESHOLDS: i32 = 12;
/// The threshold that long waits are measured by if the thresholds of the run are zero.
const LEAST_THRESHOLD: SignedDuration = SignedDuration::from_mins(1);
/// Seconds for which most pods tolerate a NotReady node. Before they have passed, no eviction is
/// missing.
const TOLERATION_SECONDS: i64 = 300;
/// How late an eviction may be: the node controller looks at the nodes every 5 s, and taints one
/// node of a zone every 10 s.
const EVICTION_DELAY: SignedDuration = SignedDuration::from_secs(50);

// Sentences that distinguish notices of one code. Tests refer to them by these names.
const NEVER: &str =
    "Each tolerates such a node without a time limit, so Kubernetes never evicts it.";
const MISSED: &str = "Their tolerationSeconds have expired, but Kubernetes has not evicted them: either it is limiting evictions because \
    many nodes are NotReady at once, or kube-controller-manager is not working.";
const DOWN: &str = "Each is down, unless the node is only cut off.";
const MAY_RUN: &str = "Each may still be running, since the node shows signs of life.";
const BREAKER: &str = "The breaker holds them in every run until enough nodes are Ready. Find out what the NotReady ones have in common.";
const CAP: &str = "is fewer than get stuck between two runs: raise it, or run more often.";
const FLAPS: &str =
    "The node changes between Ready and NotReady, or they were stuck before it failed.";
const NO_CONDITION: &str = "The node has no Ready condition, so it does not say since when it has been NotReady; no run reaps these pods until that is known.";
const NO_TIME: &str = "The node's Ready condition says no time, or one in the future; no run reaps these pods until that is known.";

/// Lists the notices of a run.
pub fn of_run(run: &RunRecord<'_>) -> Vec<NoticeEntry> {
    let RunRecord {
        settings, facts, ..
    } = run;
    let unmatched = settings
        .unmatched(facts)
        .map(|why| NoticeCode::NoNamespace.about(1, format!("No pod was judged: {why}.")));
    let elsewhere = facts.on_ready_nodes;
    let on_ready = counted(
        elsewhere,
        "more Terminating pod is on a Ready node",
        "more Terminating pods are on Ready nodes",
    ) + "; --all lists them";
    never_evicted(run)
        .into_iter()
        .chain([without_api_server(facts)])
        .chain(long_waits(run))
        .chain(unmatched)
        .chain([NoticeCode::OnReadyNodes.about(elsewhere, on_ready)])
        .filter(|notice| notice.count > 0)
        .collect()
}

/// Returns notices about the pods that Kubernetes should have evicted from a dead node, for each
/// node. Static pods and pods of each `DaemonSet` belong to their node, and leaf nodes are skipped,
/// because their pods keep running.
fn never_evicted(run: &RunRecord<'_>) -> Vec<NoticeEntry> {
    let facts = &run.facts;
    let mut never_evicted = Vec::new();
    for (name, pods) in &facts.active {
        let node = facts.known(name);
        let Some(node) = node.filter(|node| node.ready != Ready::True && node.leaf.is_none())
        else {
            continue;
        };
        let since = node.not_ready_since(facts.now);
        let due = |seconds: i64| {
            let after = SignedDuration::from_secs(seconds.max(0)).saturating_add(EVICTION_DELAY);
            since.is_none_or(|since| facts.now.duration_since(since) >= after)
        };
        if !due(TOLERATION_SECONDS) {
            continue;
        }
        let tolerates = |pod: &PodFacts| match node.ready {
            Ready::False => pod.tolerates_not_ready,
            _ => pod.tolerates_silence,
        };
        let belongs =
            |pod: &&PodFacts| matches!(pod.stays, Some(StayReason::DaemonSet | StayReason::Static));
        let others = pods.iter().filter(|pod| !belongs(pod));
        let (for_ever, mut overdue): (Vec<_>, Vec<_>) =
            others.partition(|pod| tolerates(pod).is_none());
        overdue.retain(|pod| tolerates(pod).is_some_and(due));
        let down = if node.signs_of_life(facts.now).is_empty() {
            DOWN
        } else {
            MAY_RUN
        };
        let heard = node.last_sign(facts.now);
        let why_for_ever = format!(
            "{NEVER} {down} {heard} To move such a pod, delete it without --force: the next runs then judge it like any other Terminating pod."
        );
        let why_overdue = format!("{MISSED} {down} {heard}");
        for (pods, why) in [(for_ever, why_for_ever), (overdue, why_overdue)] {
            let names = pods
                .iter()
                .sorted_by_key(|pod| (&pod.namespace, &pod.name))
                .map(|pod| {
                    let owner = prefixed(" of ", pod.workload.as_ref());
                    format!("{}/{}{owner}", pod.namespace, pod.name)
                });
            let names = listed(&names.collect_vec(), NAMES);
            let detail = format!("Not evicted from NotReady node {name}: {names}. {why}");
            never_evicted.push(NoticeEntry {
                node: Some(name.clone()),
                ..NoticeCode::NeverEvicted.about(pods.len(), detail)
            });
        }
    }
    never_evicted
}

/// Returns the notice about the control plane nodes whose API server may or may not be running.
fn without_api_server(facts: &ClusterFacts) -> NoticeEntry {
    let nodes = facts
        .known_nodes()
        .filter(|node| node.ready != Ready::True && node.lacks_api_server())
        .map(|node| &node.name)
        .collect_vec();
    let detail = format!(
        "Cannot tell whether the API server on these NotReady control plane nodes is still running: {}. No API server lease in kube-system carries their host name. Kubernetes 1.26 and newer write these leases; the ServiceAccount needs permission to list them.",
        listed(&nodes, NAMES)
    );
    NoticeCode::ApiServerUnknown.about(nodes.len(), detail)
}

/// Returns a notice for each reason and node about the pods that have waited for many thresholds. A
/// limit concerns the whole run, so the notice about a limit names no node.
fn long_waits(run: &RunRecord<'_>) -> Vec<NoticeEntry> {
    let (policy, facts) = (&run.settings.policy, &run.facts);
    let threshold = policy.reap_older_than;
    let least = threshold.is_zero().then_some(LEAST_THRESHOLD);
    let long = least
        .unwrap_or(threshold)
        .saturating_mul(LONG_WAIT_THRESHOLDS);
    let is_long =
        |judged: &&Judged| judged.verdict() == Verdict::Wait && facts.overdue(&judged.pod) > long;
    let mut groups = BTreeMap::<_, Vec<&Judged>>::new();
    for judged in run.plan.pods.iter().filter(is_long) {
        let node = judged
            .pod
            .node
            .as_deref()
            .filter(|_| judged.limit.is_none());
        let group = groups.entry((judged.code(), node)).or_default();
        group.push(judged);
    }
    let notices = groups.into_iter().map(|((_, node), pods)| {
        let names = pods
            .iter()
            .map(|judged| format!("{}/{}", judged.pod.namespace, judged.pod.name));
        // The plan has the longest overdue pod first.
        let detail = format!(
            "Still waiting{}, overdue for up to {}: {}. {}",
            prefixed(" on node ", node),
            human_duration(facts.overdue(&pods[0].pod)),
            listed(&names.collect_vec(), NAMES),
            cause_of_wait(pods[0], facts)
        );
        NoticeEntry {
            node: node.map(str::to_owned),
            ..NoticeCode::LongWait.about(pods.len(), detail)
        }
    });
    notices.collect()
}

/// Says why a pod has waited for so long and, if its reason tells, what to do about it.
fn cause_of_wait(judged: &Judged, facts: &ClusterFacts) -> String {
    let node = facts.known_node(&judged.pod);
    let since = node.and_then(|node| node.not_ready_since(facts.now));
    match (&judged.limit, judged.code()) {
        (Some(Limit::MassOutage(state)), _) => format!("{state}. {BREAKER}"),
        (Some(Limit::OverCap(cap)), _) => format!("--max-deletes={cap} {CAP}"),
        (_, ReasonCode::NodeJustFailed) if since.is_some() => {
            format!("{FLAPS} {}", judged.sentence())
        }
        (_, ReasonCode::NodeJustFailed) if node.is_some_and(|node| node.ready == Ready::Absent) => {
            NO_CONDITION.to_owned()
        }
        (_, ReasonCode::NodeJustFailed) => NO_TIME.to_owned(),
        _ => judged.sentence(),
    }
}
