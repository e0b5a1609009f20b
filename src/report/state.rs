//! The state of a node that is not Ready, and how the first line says it.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{NAMED, record::RunRecord};
use crate::{
    facts::{KubeletSays, LeafKind, NodeFacts, Ready},
    judge::{Verdict, kubelet_reports, reported},
    words::{about, natural, prefixed},
};

/// Nodes that fail within this time of each other fail together. The node controller may notice one
/// node up to 15 s before another.
const TOGETHER: SignedDuration = SignedDuration::from_mins(1);

/// The state of a node that is not Ready, the most urgent first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State<'a> {
    Unread,
    NeededMember,
    Down,
    Fenced(&'a str),
    BeingDeleted,
    NotLookedAt,
    Alive(Option<KubeletSays>),
    /// A Kosmos node, and its cluster.
    Kosmos(Option<&'a str>),
    Leaf,
    Gone,
}

impl<'a> State<'a> {
    pub(super) fn of(node: &'a NodeFacts, now: Timestamp) -> Self {
        if let Some(leaf) = &node.leaf {
            match leaf.kind {
                LeafKind::Kosmos => Self::Kosmos(leaf.cluster.as_deref()),
                _ => Self::Leaf,
            }
        } else if !node.signs_of_life(now).is_empty() {
            Self::Alive(node.kubelet_says.filter(|_| node.ready == Ready::False))
        } else if node.may_live(now) {
            Self::NotLookedAt
        } else if let Some(mark) = node.fenced(now) {
            Self::Fenced(mark)
        } else if node.etcd.is_some_and(|members| !members.is_met()) {
            Self::NeededMember
        } else if node.is_deleted {
            Self::BeingDeleted
        } else {
            Self::Down
        }
    }
}

impl RunRecord<'_> {
    /// Lists the nodes that are not Ready, or gone, by state. If nodes are supposed to be dead, only these are
    /// judged.
    pub(super) fn down(&self) -> Vec<(State<'_>, Vec<&str>)> {
        let mut down = BTreeMap::<_, Vec<_>>::new();
        let supposed = self.settings.task.suppose_dead();
        let names = self.facts.nodes.keys();
        let names = names.filter(|name| supposed.is_empty() || supposed.contains(name));
        for name in names.sorted_by_cached_key(|name| natural(name)) {
            if let Some(state) = self.state(name) {
                down.entry(state).or_default().push(name.as_str());
            }
        }
        down.into_iter().collect()
    }

    /// Returns the state of a node; `None` if it is Ready, or if it is gone and nothing there needs you.
    pub(super) fn state(&self, name: &str) -> Option<State<'_>> {
        match self.facts.nodes.get(name)? {
            Ok(Some(node)) if node.ready == Ready::True => None,
            Ok(Some(node)) => Some(State::of(node, self.facts.now)),
            Err(_) => Some(State::Unread),
            Ok(None) => {
                let mut pods = self.pods_on(name);
                let needs_you = pods.any(|it| it.verdict() == Verdict::Manual);
                needs_you.then_some(State::Gone)
            }
        }
    }

    /// Says in which state the nodes of these names are.
    pub(super) fn says(&self, state: &State<'_>, names: &[&str]) -> String {
        let (facts, now) = (&self.facts, self.facts.now);
        let since = prefixed(" ", self.time(names, |node| node.not_ready_since(now)));
        let heard = self.time(names, |node| Some(node.last_heard()?.at.min(now)));
        let silent = heard.map_or_else(|| since.clone(), |time| format!(": silent {time}"));
        let (who, are) = match names {
            [name] => ((*name).to_owned(), "IS"),
            few if few.len() <= NAMED => (few.join(", "), "ARE"),
            many => (
                format!("{} OF {} NODES", many.len(), facts.node_count),
                "ARE",
            ),
        };
        match state {
            State::Unread => format!("{who} COULD NOT BE READ."),
            State::NeededMember => {
                format!("{who} {are} NOT READY{silent}. The API server still writes.")
            }
            State::Fenced(mark) => format!("{who} {are} DOWN AND KNOWN TO BE OFF: {mark}."),
            State::BeingDeleted => format!("{who} {are} DOWN, AND BEING DELETED{silent}."),
            // A file without leases does not show silence.
            State::Down if facts.incomplete.is_some() => {
                format!("{who} {are} NOT READY{since}; whether alive is not known.")
            }
            State::Down => format!("{who} {are} DOWN{silent}."),
            State::NotLookedAt => format!("{who} {are} NOT READY{since}."),
            State::Alive(says) => {
                let signs = facts.known(names[0]).map(|node| node.signs_of_life(now));
                let signs = signs.unwrap_or_default();
                let sign = prefixed(": ", signs.first().map(|sign| reported(sign, now)));
                format!(
                    "{who} {are} NOT READY BUT ALIVE{sign}.{}",
                    kubelet_reports(*says)
                )
            }
            State::Kosmos(cluster) => {
                let whose = cluster.map_or(who, |cluster| format!("CLUSTER {cluster}"));
                format!("LINK TO {whose} IS CUT{since}.")
            }
            State::Leaf => format!("LEAF NODE {who} {are} NOT READY{since}."),
            State::Gone => format!("{who} NO LONGER EXISTS."),
        }
    }

    /// Says since when nodes are silent or NotReady, as a duration, and that many failed together.
    fn time(
        &self,
        names: &[&str],
        since: impl Fn(&NodeFacts) -> Option<Timestamp>,
    ) -> Option<String> {
        let facts = &self.facts;
        let times = names.iter().filter_map(|name| since(facts.known(name)?));
        let (first, last) = times.minmax().into_option()?;
        let (up_to, together) = match last.duration_since(first) {
            spread if spread > TOGETHER => ("up to ", ""),
            _ if names.len() > NAMED => ("", ", all within 1 minute"),
            _ => ("", ""),
        };
        let time = about(facts.now.duration_since(first));
        Some(format!("for {up_to}{time}{together}"))
    }
}
