//! Facts to know besides the verdicts, because silence reads as an all-clear. No notice changes the
//! exit code.

use itertools::Itertools as _;
use jiff::SignedDuration;

use super::{
    NAMES,
    record::{RunRecord, day},
    todo::full_name,
};
use crate::{
    facts::{NodeFacts, PodFacts, Ready},
    history::{CONFIG_MAP, NodeState, RememberedNode},
    words::{listed, prefixed},
};

/// Seconds for which most pods tolerate a NotReady node. Before they have passed, no eviction is
/// missing.
const TOLERATION_SECONDS: i64 = 300;
/// How late an eviction may be: the node controller looks at the nodes every 5 s, and taints one
/// node of a zone every 10 s.
const EVICTION_DELAY: SignedDuration = SignedDuration::from_secs(50);

/// Lists the notices of a run, as sentences.
pub fn of_run(run: &RunRecord<'_>) -> Vec<String> {
    let facts = &run.facts;
    let down = facts.known_nodes().filter(|node| node.ready != Ready::True);
    let of_leaves = down.filter(|node| node.leaf.is_none());
    let mut notices = of_leaves
        .filter_map(|node| never_evicted(run, node))
        .collect_vec();
    notices.extend(run.history.nodes.iter().filter_map(came_back));
    notices.extend(run.history.unread.clone());
    notices
}

/// Says that a node came back whose pods were reaped, unless that needs you.
fn came_back(node: &RememberedNode) -> Option<String> {
    let name = &node.noted.node;
    let at = prefixed(" at ", node.now.ready_since.map(day));
    match node.now.state {
        NodeState::BackSameBoot if !node.needs_you() => Some(format!(
            "{name} came back{at} without a reboot: pods that were deleted from {} on may have run there beside their replacements (from ConfigMap {CONFIG_MAP}, for 7 days).",
            day(node.noted.first_reap)
        )),
        NodeState::AnotherMachine if !node.needs_you() => Some(format!(
            "Another machine has the name {name}, and nobody saw the old one off: pods that were deleted from {} on may run there beside their replacements (from ConfigMap {CONFIG_MAP}, for 7 days).",
            day(node.noted.first_reap)
        )),
        NodeState::BackRebooted => Some(format!("{name} was rebooted before it came back{at}.")),
        _ => None,
    }
}

/// Says which pods Kubernetes should have evicted from a dead node, and why it may not have. Static pods and
/// pods of a `DaemonSet` belong to their node.
fn never_evicted(run: &RunRecord<'_>, node: &NodeFacts) -> Option<String> {
    let now = run.facts.now;
    let since = node.not_ready_since(now);
    let is_due = |seconds: i64| {
        let after = SignedDuration::from_secs(seconds.max(0)).saturating_add(EVICTION_DELAY);
        since.is_none_or(|since| now.duration_since(since) >= after)
    };
    if !is_due(TOLERATION_SECONDS) {
        return None;
    }
    let belongs = |pod: &&PodFacts| pod.mirror || pod.made_by("DaemonSet", "apps");
    let pods = run
        .active_on(&node.name)
        .filter(|pod| !belongs(pod) && pod.tolerates(node.ready).is_none_or(is_due));
    let pods = pods.sorted_by_key(|pod| (&pod.namespace, &pod.name));
    let names = pods.map(|pod| full_name(pod) + &prefixed(" of ", pod.workload.as_ref()));
    let names = names.collect_vec();
    (!names.is_empty()).then(|| {
        format!(
            "Not evicted from {}: {}. They tolerate a dead node, or Kubernetes evicts nothing: many nodes are NotReady, or kube-controller-manager does not work. To move one, delete it without --force.",
            node.name,
            listed(&names, NAMES)
        )
    })
}
