//! A pod on its node at one moment: the input of the rules.

use std::cell::OnceCell;

use jiff::{SignedDuration, Timestamp};

use super::{
    Policy,
    reason::{NoReason, Ties},
};
use crate::facts::{ClusterFacts, NodeFacts, NodeRead, PodFacts, Ready, Storage};
use crate::words::human_duration;

/// A pod on its node at one moment. Each rule is a function of it.
pub struct PodContext<'a> {
    pub(super) now: Timestamp,
    pub(super) policy: &'a Policy,
    pub(super) node: Option<&'a NodeRead>,
    pub(super) pod: &'a PodFacts,
    /// The pod's ties; computed when a rule first needs them.
    pub(super) ties: OnceCell<Ties>,
}

/// The text that `explain` shows for a rule whose facts were not read.
pub const NOT_READ: &str = "What it asks about was not read.";
pub const NOWHERE: &str = "There is no node to ask about.";

impl<'a> PodContext<'a> {
    /// Returns the context of `pod` among `facts`, at the moment of the facts.
    pub fn of(facts: &'a ClusterFacts, policy: &'a Policy, pod: &'a PodFacts) -> Self {
        Self::new(facts.now, policy, facts.node_of(pod), pod)
    }

    /// Returns the context of `pod` at `now`. `node` is the result of reading the pod's node;
    /// `None` if the node was not read.
    pub fn new(
        now: Timestamp,
        policy: &'a Policy,
        node: Option<&'a NodeRead>,
        pod: &'a PodFacts,
    ) -> Self {
        Self {
            now,
            policy,
            node,
            pod,
            ties: OnceCell::new(),
        }
    }

    /// Returns the pod's node for a rule that needs it. The error distinguishes a node that does
    /// not exist from one that could not be read. If the node could not be read, the pod does not
    /// pass the rule.
    pub(super) fn required_node(&self) -> Result<&'a NodeFacts, NoReason> {
        self.known().ok_or_else(|| {
            if self.nowhere() {
                NoReason::Seen(NOWHERE.into())
            } else {
                NoReason::Unknown(self.node_unread(), "Its node could not be read.")
            }
        })
    }

    pub(super) fn overdue_since(&self) -> Timestamp {
        self.pod.overdue_since(self.known(), self.now)
    }

    /// Says that the grace period is cut short, as a phrase after "its"; `None` if it is not.
    pub(super) fn grace_cut_short(&self) -> Option<String> {
        let (since, deadline) = (self.overdue_since(), self.pod.deletion_deadline());
        let requested = self.pod.deletion_requested().filter(|_| since < deadline)?;
        let grace = human_duration(deadline.duration_since(requested));
        let silent = match since.duration_since(requested) {
            SignedDuration::ZERO => "before its deletion was requested".to_owned(),
            after => format!("{} after its deletion was requested", human_duration(after)),
        };
        Some(format!(
            "grace period of {grace} is cut short: its node fell silent {silent}"
        ))
    }

    pub(super) fn known(&self) -> Option<&'a NodeFacts> {
        self.node.and_then(NodeRead::known)
    }

    /// Reports whether the signs of life were read that the rules need. Only a NotReady node needs
    /// some.
    pub(super) fn has_life(&self) -> bool {
        let node = self.known().filter(|node| node.ready != Ready::True);
        node.is_none_or(|node| node.life.is_some())
    }

    /// Returns the pod's storage for a rule that needs it.
    pub(super) fn storage(&self) -> Result<&'a Storage, NoReason> {
        let unread = || NoReason::Unknown("its storage was not read".to_owned(), NOT_READ);
        self.pod.storage.as_ref().ok_or_else(unread)
    }

    /// Reports whether the pod has no node: it was never assigned one, or the node is gone.
    pub(super) fn nowhere(&self) -> bool {
        self.pod.node.is_none() || matches!(self.node, Some(NodeRead::Gone))
    }

    /// Returns why the node is not known, as a phrase.
    pub(super) fn node_unread(&self) -> String {
        let why = match self.node {
            Some(NodeRead::Unread(unread)) => &unread.0,
            _ => "it was not looked up",
        };
        format!("the node: {why}")
    }

    pub(super) fn node_name(&self) -> &'a str {
        self.pod.node.as_deref().unwrap_or("its node")
    }

    /// Says whether the pod's node is Ready, as a sentence.
    pub(super) fn ready(&self) -> String {
        let name = self.node_name();
        match self.known() {
            Some(node) => {
                let reason = node.ready_reason.as_ref();
                let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
                format!("Node {name}'s Ready is {}{reason}.", node.ready)
            }
            None if self.nowhere() => NOWHERE.to_owned(),
            None => format!("It is not known whether {name} is Ready."),
        }
    }
}
