//! `what-if --each-node`: for every real node, what would happen if that node alone died now?
//!
//! Each node has the counts of the report that [`what_if`](super::what_if) makes for a named node.
//! Only counts are kept, so that the memory does not grow with the number of pods in the cluster.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt};

use super::{
    ask, exit,
    what_if::{Replicas, SupposedRun, only_on, suppose},
};
use crate::{
    cluster::MAX_IN_FLIGHT,
    exit::{CouldNotRun, Exit, Result},
    facts::{NodeRead, Unread},
    limits::Plan,
    report::{NodeForecast, Report, RunRecord},
    settings::Settings,
    source::{Source, Store},
    stop::Stop,
    words::natural,
};

/// Forecasts the death of each real node.
pub async fn run(settings: &Settings, stop: &Stop) -> Result<Report> {
    ask(settings, stop, async |source| {
        run_on(source, settings, |_, _| ()).await
    })
    .await
}

/// Forecasts the death of each real node by the facts of `source`. `on_plan` is called with each
/// node's name and the plan of the run that would follow.
pub async fn run_on(
    source: Source<'_>,
    settings: &Settings,
    on_plan: impl Fn(&str, &Plan),
) -> Result<Report> {
    let store = Store::new(source, settings.wanted());
    store.read_claims().await;
    let mut facts = store.scan().await?.facts;
    let counted_nodes = store.counted_nodes().await;
    let counted_nodes = counted_nodes
        .map_err(|Unread(cause)| CouldNotRun::Source(format!("could not list nodes: {cause}")))?;
    let alone = async |name: &String| {
        let store = store.supposing_dead(BTreeSet::from([name.clone()]));
        let supposed = suppose(&store, settings).await?;
        Ok::<_, CouldNotRun>((name.clone(), supposed))
    };
    let mut all = futures_util::stream::iter(counted_nodes.keys())
        .map(alone)
        .buffer_unordered(MAX_IN_FLIGHT);
    let (mut nodes, mut replicas) = (Vec::new(), Replicas::default());
    let mut unread = false;
    while let Some((name, supposed)) = all.try_next().await? {
        on_plan(&name, &supposed.run.plan);
        replicas.count(&supposed.pods, settings);
        unread |= supposed.run.lacks_facts();
        nodes.extend(forecast(name, &supposed));
    }
    let mut workloads = BTreeMap::<_, Vec<_>>::new();
    for (workload, by_node) in &replicas.0 {
        for node in by_node.keys() {
            let away = only_on(workload, by_node, &counted_nodes, |name| name == node);
            workloads.entry(node).or_default().extend(away);
        }
    }
    for node in &mut nodes {
        node.workloads = workloads.remove(&node.node).unwrap_or_default();
        node.counts.without_replica = node.workloads.len();
    }
    nodes.sort_by_cached_key(order);
    facts.errors = store.errors();
    // No pod of the real cluster is judged.
    let mut report = RunRecord::new(settings, facts, Plan::default()).report();
    let not_ready = counted_nodes
        .values()
        .filter(|counted_node| !counted_node.ready);
    report.summary.nodes_not_ready = not_ready.count();
    report.notices.clear();
    report.each_node = Some(nodes);
    report.exit = exit(&report).max(if unread { Exit::Incomplete } else { Exit::Done });
    Ok(report)
}

/// Counts the fates of the node's pods; `None` for a leaf node, or for one that no longer exists.
fn forecast(node: String, supposed: &SupposedRun<'_>) -> Option<NodeForecast> {
    let run = &supposed.run;
    let is_real = match run.facts.nodes.get(&node)? {
        NodeRead::Known(node) => node.leaf.is_none(),
        NodeRead::Unread(_) => true,
        NodeRead::Gone => false,
    };
    is_real.then(|| NodeForecast {
        breaker_holds: run.plan.hold.is_some() || !run.plan.zones.is_empty(),
        counts: supposed.counts(),
        node,
        workloads: Vec::new(),
    })
}

/// Returns the key that sorts the worst node first.
fn order(node: &NodeForecast) -> impl Ord + use<> {
    let counts = &node.counts;
    let stays = counts.left_terminating + counts.stays_down;
    let bad = (
        counts.needs_person,
        counts.lost + counts.stays_pending,
        counts.without_replica,
        stays,
    );
    let late = (counts.wait_for_volume, counts.seconds, counts.evicted);
    (std::cmp::Reverse((bad, late)), natural(&node.node))
}

#[cfg(test)]
mod tests;
