//! The first line: which nodes are down, and in which state.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::Page;
use crate::{
    facts::{KubeletSays, LeafKind, NodeFacts, Read, Ready},
    judge::{Verdict, kubelet_reports, reported},
    report::{NAMED, record::RunRecord},
    words::{about, counted, joined, natural, prefixed},
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

/// Lists the nodes that are not Ready, or gone, by state.
pub(super) fn nodes<'a>(run: &'a RunRecord<'_>) -> Vec<(State<'a>, Vec<&'a str>)> {
    let mut nodes = BTreeMap::<_, Vec<_>>::new();
    let all = run.facts.nodes.iter();
    for (name, read) in all.sorted_by_cached_key(|(name, _)| natural(name)) {
        if let Some(state) = state(run, name, read) {
            nodes.entry(state).or_default().push(name.as_str());
        }
    }
    nodes.into_iter().collect()
}

fn state<'a>(
    run: &'a RunRecord<'_>,
    name: &str,
    read: &'a Read<Option<NodeFacts>>,
) -> Option<State<'a>> {
    let now = run.facts.now;
    let node = match read {
        Ok(Some(node)) => node,
        Err(_) => return Some(State::Unread),
        Ok(None) => {
            let needs_you = run.pods_on(name).any(|it| it.verdict() == Verdict::Manual);
            return needs_you.then_some(State::Gone);
        }
    };
    (node.ready != Ready::True).then(|| State::of(node, now))
}

impl<'a> State<'a> {
    pub fn of(node: &'a NodeFacts, now: Timestamp) -> Self {
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

impl Page<'_> {
    pub(super) fn headline(&self) -> String {
        let (run, facts) = (self.run, &self.run.facts);
        let supposed = joined(run.settings.task.suppose_dead(), ", ");
        let supposed = supposed.map(|names| format!("IF {names} HAD DIED:"));
        let mut said = Vec::from_iter(supposed);
        let back = run.history.nodes.iter().filter(|node| node.needs_you());
        said.extend(back.map(|node| {
            let at = node.now.ready_since.map(|at| at.strftime("%F %RZ"));
            format!(
                "{} CAME BACK{}, NOT REBOOTED.",
                node.noted.node,
                prefixed(" AT ", at)
            )
        }));
        said.extend(
            self.down
                .iter()
                .map(|(state, names)| run.says(state, names)),
        );
        let not_ready = self.down.iter().filter(|(state, _)| *state != State::Gone);
        let not_ready = not_ready.map(|(_, names)| names.len()).sum::<usize>();
        said.push(
            match (not_ready, facts.node_count.saturating_sub(not_ready)) {
                (0, 1) => "THE ONLY NODE IS READY.".to_owned(),
                (0, all) => format!("ALL {all} NODES ARE READY."),
                (_, 0) => "No other node is Ready.".to_owned(),
                (_, ready) => counted(ready, "other node is Ready.", "other nodes are Ready."),
            },
        );
        let hang = self.pods(|it| run.hangs(it));
        said.extend(hang.say("PODS THAT HANG ON READY NODES: <count>."));
        if self.pods.is_empty() && run.settings.unmatched(facts).is_none() {
            said.push(if !facts.errors.is_empty() {
                "No pod that could be read is stuck.".to_owned()
            } else if run.settings.namespaces.selects_all() {
                "No pod is stuck.".to_owned()
            } else {
                "No pod is stuck in the namespaces that were selected.".to_owned()
            });
        }
        said.join(" ")
    }
}

impl RunRecord<'_> {
    /// Says in which state the node is, if it is not Ready.
    pub fn headline_of(&self, name: &str) -> Option<String> {
        let state = state(self, name, self.facts.nodes.get(name)?)?;
        Some(self.says(&state, &[name]))
    }

    /// Says in which state the nodes of these names are.
    fn says(&self, state: &State<'_>, names: &[&str]) -> String {
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
