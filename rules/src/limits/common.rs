//! What the NotReady nodes have in common that the others lack: a hint at what has failed, by what was read anyway.

use std::{cmp::Reverse, collections::BTreeMap};

use itertools::Itertools as _;
use jiff::SignedDuration;

use crate::{
    facts::{Census, ClusterFacts, NodeRead, Ready},
    words::{listed, spoken},
};

/// The number of lines that say what they have, in addition to the one that says when they failed.
const LINES: usize = 3;
/// How many traits of the same nodes are named.
const NAMES: usize = 3;
/// Nodes that fail within this time fail at once: by the lease of each, the node controller notices one up to 15 s before
/// another.
const AT_ONCE: SignedDuration = SignedDuration::from_mins(1);

/// As sentences, at most four; none where the nodes were not counted.
pub fn in_common(facts: &ClusterFacts) -> Vec<String> {
    let Census::Counted { all, .. } = &facts.census else {
        return Vec::new();
    };
    let (down, others) = (all.not_ready, all.total - all.not_ready);
    let mut alike = BTreeMap::<_, Vec<&str>>::new();
    for (what, have) in &facts.traits {
        let (here, there) = (have.not_ready, have.total - have.not_ready);
        // The share of the NotReady nodes that have it, less that of the others, in parts of `down * others`.
        let excess = (here * others).saturating_sub(there * down);
        if here > 1 && excess > 0 && 2 * excess >= down * others {
            alike
                .entry((Reverse(excess), here, there))
                .or_default()
                .push(what);
        }
    }
    let mut lines = alike
        .iter()
        .take(LINES)
        .map(|((_, here, there), what)| {
            let named = listed(what, NAMES);
            format!("{here} of {down} NotReady nodes, and {there} of the {others} others: {named}")
        })
        .collect_vec();
    if lines.is_empty() && others > 0 {
        lines.push(
            "They share no label, taint or version that most of the other nodes lack.".to_owned(),
        );
    }
    lines.extend(when(facts));
    lines
}

/// How many of them failed at once.
fn when(facts: &ClusterFacts) -> Option<String> {
    let real = facts
        .nodes
        .values()
        .filter_map(NodeRead::known)
        .filter(|node| node.leaf.is_none());
    let down = real.filter(|node| node.ready != Ready::True);
    let mut times = down
        .filter_map(|node| node.not_ready_since(facts.now))
        .collect_vec();
    times.sort();
    let (first, last) = (*times.first()?, *times.last()?);
    let at_once = |from: usize| {
        times[from..].partition_point(|time| time.duration_since(times[from]) <= AT_ONCE)
    };
    let (count, Reverse(from)) = (0..times.len())
        .map(|from| (at_once(from), Reverse(from)))
        .max()?;
    Some(if 2 * count > times.len() {
        format!(
            "{count} of {} failed within a minute, from {} on",
            times.len(),
            times[from].strftime("%F %TZ")
        )
    } else {
        let over = spoken(last.duration_since(first));
        format!(
            "They failed over {over}, the first at {}",
            first.strftime("%F %TZ")
        )
    })
}
