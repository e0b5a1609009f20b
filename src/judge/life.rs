//! Signs of life: evidence that the machine of a NotReady node still runs. They also determine
//! since when a pod is overdue.
//!
//! A silent machine may be dead; a machine with a recent heartbeat is not. The last heartbeat of a
//! dead machine is older than the moment at which its node became NotReady.

use jiff::{SignedDuration, Timestamp};

use super::Policy;
use crate::facts::{ClusterFacts, Heartbeat, NodeFacts, PodFacts, Ready, SignBy};

/// The age below which a heartbeat is a sign of life, whatever its source: twice the longest
/// interval at which any of the sources writes, plus a minute.
const MAX_AGE_OF_A_SIGN: SignedDuration = SignedDuration::from_mins(11);

impl Policy {
    /// Returns the age below which a heartbeat is a sign of life. A threshold that is
    /// longer than eleven minutes counts for the machine too.
    pub fn silent_after(&self) -> SignedDuration {
        self.reap_older_than.max(MAX_AGE_OF_A_SIGN)
    }
}

impl NodeFacts {
    /// Lists the evidence that the node's machine is alive at `now`: the last heartbeat of each
    /// source, if it is recent enough. Empty if the node is Ready.
    pub fn signs_of_life(&self, now: Timestamp, policy: &Policy) -> Vec<Heartbeat> {
        if self.ready == Ready::True {
            return Vec::new();
        }
        let since = self.not_ready_since(now);
        let heard = self
            .heard
            .iter()
            .filter(|heard| {
                since.is_none_or(|since| heard.at > since)
                    && now.duration_since(heard.at) < policy.silent_after()
            })
            .map(|heard| heard.no_later_than(now));
        // Ready=False is itself evidence: Kubernetes turns it into Unknown as soon as the kubelet
        // falls silent.
        let kubelet = (self.ready == Ready::False).then_some(Heartbeat {
            by: SignBy::Kubelet,
            at: now,
            what: None,
        });
        heard.chain(kubelet).collect()
    }

    /// Reports whether the machine is alive, or may be: a heartbeat that was not read may be a sign
    /// of life.
    pub fn may_live(&self, now: Timestamp, policy: &Policy) -> bool {
        self.unread().is_some() || !self.signs_of_life(now, policy).is_empty()
    }

    /// Returns the fencing mark that says that the machine is known to be off; `None` if there is
    /// none. A mark is ignored if the last heartbeat came after it was set, and also while the
    /// machine is alive or may be alive.
    pub fn fenced(&self, now: Timestamp, policy: &Policy) -> Option<&str> {
        self.mark().filter(|_| !self.may_live(now, policy))
    }

    /// Returns the fencing mark that no heartbeat refutes, as far as heartbeats were read.
    pub fn mark(&self) -> Option<&str> {
        let heard = self.last_heard().map(|heard| heard.at);
        self.fenced
            .iter()
            .find(|mark| mark.stands(heard))
            .map(|mark| mark.mark.as_str())
    }

    /// Returns the last known heartbeat of a machine that is known to be silent. `None` if the
    /// silence is not known, or if the machine shows a sign of life. A Lease that could not be read
    /// may contain a heartbeat. Without a lease of its own, nothing shows that the kubelet is
    /// silent.
    fn silent_since(&self, now: Timestamp, policy: &Policy) -> Option<Timestamp> {
        let is_known = self.ready != Ready::True
            && self.heard.iter().any(|heard| heard.by == SignBy::Lease)
            && self.lists_leases != Ok(false)
            && self.unread_lease.is_none()
            && self.signs_of_life(now, policy).is_empty();
        self.last_heard().filter(|_| is_known).map(|last| last.at)
    }
}

impl PodFacts {
    /// Returns the moment since which the pod is overdue, as known at `now`. The kubelet times the
    /// grace period. On a silent machine the grace period therefore ends with the last heartbeat
    /// or, if the deletion was requested later, at the request. In every other case the pod is
    /// overdue since its deletion deadline.
    pub fn overdue_since(
        &self,
        node: Option<&NodeFacts>,
        now: Timestamp,
        policy: &Policy,
    ) -> Timestamp {
        let silent = node
            .filter(|node| node.lists_leases.is_ok())
            .and_then(|node| node.silent_since(now, policy));
        let deadline = self.deletion_deadline();
        match (silent, self.deletion_requested()) {
            (Some(silent), Some(requested)) => silent.max(requested).min(deadline),
            _ => deadline,
        }
    }
}

impl ClusterFacts {
    /// Returns the moment since which `pod` is overdue.
    pub fn overdue_since(&self, pod: &PodFacts, policy: &Policy) -> Timestamp {
        pod.overdue_since(self.known_node(pod), self.now, policy)
    }

    /// Returns how long `pod` is overdue; negative before it is overdue.
    pub fn overdue(&self, pod: &PodFacts, policy: &Policy) -> SignedDuration {
        self.now.duration_since(self.overdue_since(pod, policy))
    }
}
