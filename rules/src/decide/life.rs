//! Signs of life: evidence that the machine of a NotReady node still runs. Since when a pod is
//! overdue follows from them.
//!
//! Silence may be death; a heartbeat is not. A dead machine was last heard before its node became
//! NotReady.

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::reason::{heard, reported};
use crate::facts::{ClusterFacts, Heard, NodeFacts, PodFacts, Ready, SignBy, Unread};

/// For how long a report counts as a sign of life, whatever its source: twice the longest period
/// with which any of them writes, and a minute.
const MAX_AGE_OF_A_SIGN: SignedDuration = SignedDuration::from_mins(11);

impl NodeFacts {
    /// Lists the evidence that the node's machine lives at `now`: the last report of each source
    /// that still counts. It is empty if the node is Ready.
    pub fn signs_of_life(&self, now: Timestamp) -> Vec<Heard> {
        if self.ready == Ready::True {
            return Vec::new();
        }
        let since = self.not_ready_since(now);
        let shows = |heard: &&Heard| {
            since.is_none_or(|since| heard.at > since)
                && now.duration_since(heard.at) < MAX_AGE_OF_A_SIGN
        };
        let heard = self.heard.iter().filter(shows);
        let heard = heard.map(|heard| heard.no_later_than(now));
        // Ready=False is a report by itself: Kubernetes turns it into Unknown as soon as the
        // kubelet falls silent.
        let kubelet = (self.ready == Ready::False).then_some(Heard {
            by: SignBy::Kubelet,
            at: now,
            what: None,
        });
        heard.chain(kubelet).collect()
    }

    /// Returns the signs of life as a phrase.
    pub(super) fn signs(&self, now: Timestamp) -> String {
        let signs = self.signs_of_life(now);
        signs.iter().map(|sign| reported(sign, now)).join(", ")
    }

    /// Reports whether the machine lives, or may live: a report that was not read may be a sign of
    /// life.
    pub fn may_live(&self, now: Timestamp) -> bool {
        self.named_by.is_none() || self.unread().is_some() || !self.signs_of_life(now).is_empty()
    }

    /// Returns why a Lease that may show that the machine lives could not be read, as a phrase.
    pub fn unread(&self) -> Option<&Unread> {
        let others = self.named_by.as_ref().and_then(|read| read.as_ref().err());
        self.unread_lease.as_ref().or(others)
    }

    /// Returns the last heartbeat of a machine that is known to be silent, as far as was read; `None`
    /// if that is not known, or the machine shows a sign of life. What could not be read may be a
    /// heartbeat. Without a lease of its own, nothing shows that a kubelet is silent.
    fn silent_since(&self, now: Timestamp) -> Option<Timestamp> {
        let is_known = self.ready != Ready::True
            && self.heard_by(SignBy::Lease).is_some()
            && !self.others_forbidden
            && self.unread().is_none()
            && self.signs_of_life(now).is_empty();
        let last = self.last_heard().filter(|_| is_known)?;
        Some(last.at)
    }

    /// Says when and by what the machine was last heard, as a sentence.
    pub fn last_sign(&self, now: Timestamp) -> String {
        let Some(last) = self.last_heard() else {
            return "Nothing was ever heard of its machine.".to_owned();
        };
        let when = heard(&last.no_later_than(now), now);
        format!("Its machine was last heard {when}.")
    }
}

impl PodFacts {
    /// Returns the moment since which the pod is overdue, as known at `now`. Grace is a timer of the
    /// kubelet: on a silent machine, it ends with the last heartbeat or, if the deletion was
    /// requested later, at the request. In every other case the pod is overdue since its deletion
    /// deadline.
    pub fn overdue_since(&self, node: Option<&NodeFacts>, now: Timestamp) -> Timestamp {
        let cut = node.filter(|node| node.named_by.is_some());
        let cut = cut.and_then(|node| self.grace_cut_at(node, now));
        cut.unwrap_or(self.deletion_deadline())
    }

    /// Returns the moment at which the grace period is cut short, as far as was read; `None` if it is
    /// not.
    pub(super) fn grace_cut_at(&self, node: &NodeFacts, now: Timestamp) -> Option<Timestamp> {
        let cut = node.silent_since(now)?.max(self.deletion_requested()?);
        Some(cut).filter(|cut| *cut < self.deletion_deadline())
    }
}

impl ClusterFacts {
    /// Returns how long `pod` is overdue; negative before that.
    pub fn overdue(&self, pod: &PodFacts) -> SignedDuration {
        let since = pod.overdue_since(self.known_node(pod), self.now);
        self.now.duration_since(since)
    }
}
