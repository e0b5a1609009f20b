//! A pod on its node at one moment: the input of the rules.

use std::cell::OnceCell;

use jiff::Timestamp;

use super::{
    Policy,
    reason::{GraceCut, Missing, NoCause, Seen},
    tie::Tie,
};
use crate::facts::{ClusterFacts, NodeFacts, NodeRead, PodFacts, Ready, Storage, Unneeded, Unread};

/// A pod on its node at one moment. Each rule is a function of it.
pub struct PodContext<'a> {
    pub(super) now: Timestamp,
    pub(super) policy: &'a Policy,
    pub(super) node: Option<&'a NodeRead>,
    pub(super) pod: &'a PodFacts,
    pub(super) storage: Option<&'a Storage>,
    /// The pod's ties; computed when a rule first needs them.
    pub(super) ties: OnceCell<Vec<Tie>>,
}

impl<'a> PodContext<'a> {
    /// Returns the context of `pod` among `facts`, at the moment of the facts. There is no `storage`
    /// if gathering did not come to it.
    pub fn of(
        facts: &'a ClusterFacts,
        policy: &'a Policy,
        pod: &'a PodFacts,
        storage: Option<&'a Storage>,
    ) -> Self {
        Self::new(facts.now, policy, facts.node_of(pod), pod, storage)
    }

    /// Returns the context of `pod` at `now`. `node` is the result of reading the pod's node;
    /// `None` if the node was not read.
    pub fn new(
        now: Timestamp,
        policy: &'a Policy,
        node: Option<&'a NodeRead>,
        pod: &'a PodFacts,
        storage: Option<&'a Storage>,
    ) -> Self {
        Self {
            now,
            policy,
            node,
            pod,
            storage,
            ties: OnceCell::new(),
        }
    }

    /// Returns the pod's node for a rule that needs it. The error distinguishes a node that does
    /// not exist from one that could not be read. If the node could not be read, the pod does not
    /// pass the rule.
    pub(super) fn required_node(&self) -> Result<&'a NodeFacts, NoCause> {
        self.known().ok_or_else(|| {
            if self.nowhere() {
                NoCause::Seen(Seen::Nowhere)
            } else {
                NoCause::Missing(self.node_unread())
            }
        })
    }

    pub(super) fn overdue_since(&self) -> Timestamp {
        self.pod.overdue_since(self.known(), self.now)
    }

    /// Returns by what the grace period is cut short; `None` if it is not.
    pub(super) fn grace_cut_short(&self) -> Option<GraceCut> {
        let (since, deadline) = (self.overdue_since(), self.pod.deletion_deadline());
        let requested = self.pod.deletion_requested().filter(|_| since < deadline)?;
        Some(GraceCut {
            grace: deadline.duration_since(requested),
            heard_for: since.duration_since(requested),
        })
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
    pub(super) fn required_storage(&self) -> Result<&'a Storage, NoCause> {
        self.storage.ok_or(NoCause::Missing(Missing::Storage))
    }

    /// Returns why nothing wants the pod again; `None` if something wants it, or may.
    pub(super) fn unneeded(&self) -> Option<Unneeded> {
        self.pod.unneeded(self.storage)
    }

    /// Reports whether the pod has no node: it was never assigned one, or the node is gone.
    pub(super) fn nowhere(&self) -> bool {
        self.pod.node.is_none() || matches!(self.node, Some(NodeRead::Gone))
    }

    /// Returns why the node is not known.
    pub(super) fn node_unread(&self) -> Missing {
        Missing::Node(match self.node {
            Some(NodeRead::Unread(unread)) => unread.clone(),
            _ => Unread("it was not looked up".to_owned()),
        })
    }

    pub(super) fn node_name(&self) -> &'a str {
        self.pod.node.as_deref().unwrap_or("its node")
    }

    /// Returns what is known about the `Ready` condition of the pod's node.
    pub(super) fn ready(&self) -> Seen {
        let node = self.node_name().to_owned();
        match self.known() {
            Some(NodeFacts {
                ready,
                ready_reason: reason,
                ..
            }) => Seen::Ready {
                node,
                ready: *ready,
                reason: reason.clone(),
            },
            None if self.nowhere() => Seen::Nowhere,
            None => Seen::ReadyUnknown(node),
        }
    }
}
