//! What the NotReady nodes have in common and the others lack. It hints at what has failed, and
//! needs no further request.

use std::{cmp::Reverse, collections::BTreeMap};

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use crate::{
    facts::{ClusterFacts, Ready, Traits},
    words::{listed, spoken},
};

/// The most sentences about traits; one more says when the nodes failed.
const LINES: usize = 3;
/// The most traits that one sentence names.
const NAMES: usize = 3;
/// Nodes that fail within this time of each other fail at once. The node controller notices each by
/// its lease, so one may be noticed up to 15 s before another.
const AT_ONCE: SignedDuration = SignedDuration::from_mins(1);

/// Returns at most four sentences; none if no node was counted as NotReady.
pub fn in_common(facts: &ClusterFacts) -> Vec<String> {
    let Traits { nodes, by_trait } = &facts.traits;
    let (down, others) = (nodes.not_ready, nodes.total - nodes.not_ready);
    if down == 0 {
        return Vec::new();
    }
    let mut alike = BTreeMap::<_, Vec<&str>>::new();
    for (what, have) in by_trait {
        let (here, there) = (have.not_ready, have.total - have.not_ready);
        // The share of the NotReady nodes that have the trait, less the share of the others, in
        // units of 1 / (`down * others`).
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
            format!("{here} of {down} NotReady nodes, and {there} of the {others} others: {named}.")
        })
        .collect_vec();
    if lines.is_empty() && others > 0 {
        lines.push("No common zone, label, taint or version found.".to_owned());
    }
    lines.extend(when(facts));
    lines
}

fn when(facts: &ClusterFacts) -> Option<String> {
    let down = facts
        .known_nodes()
        .filter(|node| node.leaf.is_none() && node.ready != Ready::True);
    let times = down.filter_map(|node| node.not_ready_since(facts.now));
    let times = times.sorted().collect_vec();
    let (first, last) = (*times.first()?, *times.last()?);
    if times.len() == 1 {
        return None;
    }
    let (count, from) = at_once(&times)?;
    Some(if 2 * count > times.len() {
        format!(
            "{count} of {} failed within a minute, from {} on.",
            times.len(),
            from.strftime("%F %TZ")
        )
    } else {
        let over = spoken(last.duration_since(first));
        format!(
            "They failed over {over}, the first at {}.",
            first.strftime("%F %TZ")
        )
    })
}

/// Returns how many of `times`, which are sorted, lie within a minute, and the first of them.
pub fn at_once(times: &[Timestamp]) -> Option<(usize, Timestamp)> {
    let all = times.iter().enumerate().map(|(place, from)| {
        let count = times[place..].partition_point(|time| time.duration_since(*from) <= AT_ONCE);
        (count, Reverse(*from))
    });
    all.max().map(|(count, Reverse(from))| (count, from))
}
