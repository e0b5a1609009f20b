//! Does the machine of a NotReady node live?
//!
//! Silence may be death; a heartbeat is not. A dead machine was last heard before its node became NotReady.

use jiff::{SignedDuration, Timestamp};

use super::Policy;
use super::answer::Failure;
use crate::facts::{Heard, NodeFacts, PodFacts, Ready, Sign, SignBy};

/// For how long something that was heard counts as a sign of life. With a patience shorter than the source's period, a
/// verdict would depend on the moment of the run.
pub(super) fn counts_for(heard: &Heard, policy: &Policy) -> SignedDuration {
    heard.period.max(policy.node_not_ready_for)
}

/// What shows at `now` that the machine of `node`, which is not Ready, lives: of each source the last.
pub fn signs_of_life(now: Timestamp, policy: &Policy, node: &NodeFacts) -> Vec<Sign> {
    if node.ready == Ready::True {
        return Vec::new();
    }
    let since = node.not_ready_since(now);
    let shows = |heard: &&Heard| {
        since.is_none_or(|since| heard.at > since)
            && now.duration_since(heard.at) < counts_for(heard, policy)
    };
    let heard = node.heard.iter().filter(shows).map(|heard| heard.sign(now));
    // Kubernetes makes Unknown of it as soon as the kubelet falls silent.
    let kubelet = (node.ready == Ready::False).then_some(Sign {
        by: SignBy::Kubelet,
        at: now,
    });
    heard.chain(kubelet).collect()
}

/// Whether its machine lives, or may, as far as reports tell: one that could not be read may be a sign of life.
pub fn may_live(now: Timestamp, policy: &Policy, node: &NodeFacts) -> bool {
    node.unheard.is_some() || !signs_of_life(now, policy, node).is_empty()
}

/// The mark by which it is certainly off.
pub fn fenced<'a>(now: Timestamp, policy: &'a Policy, node: &'a NodeFacts) -> Option<&'a str> {
    certainly_off(&Failure {
        now,
        policy,
        node,
        pod: None,
    })
}

/// The same for `pod`, for which an answer on the node may be too old.
pub fn fenced_for<'a>(
    now: Timestamp,
    policy: &'a Policy,
    node: &'a NodeFacts,
    pod: &'a PodFacts,
) -> Option<&'a str> {
    certainly_off(&Failure {
        now,
        policy,
        node,
        pod: Some(pod),
    })
}

/// The mark by which its node is certainly off, a person's answer among them. A machine that lives is not, whatever the
/// mark says.
pub(super) fn certainly_off<'a>(failure: &Failure<'a>) -> Option<&'a str> {
    let Failure {
        now, policy, node, ..
    } = *failure;
    let heard = node.last_heard().map(|heard| heard.at);
    let mark = node.fenced.iter().find(|mark| mark.stands(heard));
    let mark = mark.map(|mark| mark.mark.as_str());
    let answer = || {
        failure
            .is_powered_off()
            .then_some("answer pod-reaper.io/powered-off")
    };
    mark.or_else(answer)
        .filter(|_| !may_live(now, policy, node))
}
