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
const COUNTS_FOR: SignedDuration = SignedDuration::from_mins(11);

impl NodeFacts {
    /// Lists the evidence that the node's machine lives at `now`: the last report of each source
    /// that still counts. It is empty if the node is Ready.
    pub fn signs_of_life(&self, now: Timestamp) -> Vec<Heard> {
        if self.ready == Ready::True {
            return Vec::new();
        }
        let since = self.not_ready_since(now);
        let shows = |heard: &&Heard| {
            since.is_none_or(|since| heard.at > since) && now.duration_since(heard.at) < COUNTS_FOR
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

    /// Reports whether the machine lives, or may live: a report that could not be read may be a
    /// sign of life.
    pub fn may_live(&self, now: Timestamp) -> bool {
        self.unread().is_some() || !self.signs_of_life(now).is_empty()
    }

    /// Returns why a Lease that may show that the machine lives could not be read, as a phrase.
    pub fn unread(&self) -> Option<&Unread> {
        let others = self.named_by.as_ref().err();
        self.unread_lease.as_ref().or(others)
    }

    /// Returns the last heartbeat of a machine that is known to be silent; `None` if it is not known,
    /// or shows a sign of life. What could not be read may be a heartbeat. Without a lease of its
    /// own, nothing shows that a kubelet is silent.
    fn silent_since(&self, now: Timestamp) -> Option<Timestamp> {
        let is_known = self.ready != Ready::True
            && self.heard_by(SignBy::Lease).is_some()
            && !self.others_forbidden
            && !self.may_live(now);
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
        let silent_since = node.and_then(|node| node.silent_since(now));
        let cut = silent_since.zip(self.deletion_requested());
        let cut = cut.map(|(silent_since, requested)| silent_since.max(requested));
        cut.map_or(self.deletion_deadline, |cut| {
            cut.min(self.deletion_deadline)
        })
    }
}

impl ClusterFacts {
    /// Returns how long `pod` is overdue; negative before that.
    pub fn overdue(&self, pod: &PodFacts) -> SignedDuration {
        let since = pod.overdue_since(self.known_node(pod), self.now);
        self.now.duration_since(since)
    }
}
