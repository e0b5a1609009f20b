//! What a person decided, and whether that counts for the failure at hand.
//!
//! An answer is bound to one failure by its time: everything that it is about was there before, and nothing was heard
//! since. Pasted late, or left behind, it is inert.

use jiff::Timestamp;
use serde::Serialize;

use super::{Policy, may_live};
use crate::facts::{ClaimFacts, ClaimState, NodeFacts, PodFacts};

/// On a claim: its data may be lost with the pod that is stuck now.
pub const GIVE_UP: &str = "pod-reaper.io/give-up";
/// On a pod: its claims are kept, and it may go.
pub const REAP: &str = "pod-reaper.io/reap";
/// On a node: the machine is off.
pub const POWERED_OFF: &str = "pod-reaper.io/powered-off";

/// An answer that was found, and whether it counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(
    feature = "testing",
    derive(schemars::JsonSchema),
    schemars(rename = "AnswerEntry")
)]
pub struct Answer {
    /// `pod-reaper.io/give-up`, `pod-reaper.io/reap` or `pod-reaper.io/powered-off`.
    pub annotation: &'static str,
    /// What it is on: `node`, `pod` or `pvc`.
    pub on: &'static str,
    /// The name of that.
    pub name: String,
    /// Its value: the time of the report that asked for it.
    pub value: String,
    /// Why it counts for nothing, as a phrase; null where it counts.
    pub inert: Option<String>,
}

/// The failure that an answer has to belong to.
#[derive(Clone, Copy)]
pub(super) struct Failure<'a> {
    pub now: Timestamp,
    pub policy: &'a Policy,
    pub node: &'a NodeFacts,
    /// The pod that is stuck; `None` where only the node is asked about.
    pub pod: Option<&'a PodFacts>,
}

/// What happened at a moment, as the rest of a sentence, and when, where that is known.
pub(super) type Moment = (&'static str, Option<Timestamp>);

/// When a claim was made.
pub(super) fn made(created: Option<Timestamp>) -> Moment {
    ("the claim was made", created)
}

impl Failure<'_> {
    /// Why an answer of that value counts for nothing, as a phrase. It has to be later than `also`, too.
    pub fn inert(&self, value: &str, also: Option<Moment>) -> Option<String> {
        let Ok(at) = value.parse::<Timestamp>() else {
            return Some("its value is no time, such as 2026-01-31T03:00:00Z".to_owned());
        };
        if at > self.now {
            return Some("its time lies in the future".to_owned());
        }
        let node = self.node;
        let of_pod = self.pod.map(|pod| {
            [
                ("the pod was made", pod.created),
                ("the pod's deletion was asked for", pod.deletion_requested()),
            ]
        });
        let mut before = [
            ("the node was made", node.created),
            ("the node became NotReady", node.not_ready_since(self.now)),
        ]
        .into_iter()
        .chain(of_pod.into_iter().flatten())
        .chain(also);
        let not_before = before.find_map(|(what, when)| match when {
            Some(when) if when < at => None,
            Some(_) => Some(format!("it is not later than the moment when {what}")),
            None => Some(format!("it is not known when {what}")),
        });
        let heard = || {
            let last = node.last_heard()?;
            (last.at > at).then(|| "the node's machine was heard after it".to_owned())
        };
        let lives = || {
            may_live(self.now, self.policy, node)
                .then(|| "the node's machine lives, or may".to_owned())
        };
        not_before.or_else(heard).or_else(lives)
    }

    /// Whether the answer on the node counts.
    pub fn is_powered_off(&self) -> bool {
        let value = self.node.powered_off.as_ref();
        value.is_some_and(|value| self.inert(value, None).is_none())
    }

    /// Whether the answer on the pod counts.
    pub fn may_go(&self) -> bool {
        let value = self.pod.and_then(|pod| pod.reap.as_ref());
        value.is_some_and(|value| self.inert(value, None).is_none())
    }
}

/// Why an answer that is given at `now`, on the pod or on those of its claims, would count for nothing, as a phrase.
pub fn would_be_inert(
    now: Timestamp,
    policy: &Policy,
    node: &NodeFacts,
    pod: &PodFacts,
    claims: &[&str],
) -> Option<String> {
    let failure = Failure {
        now,
        policy,
        node,
        pod: Some(pod),
    };
    let value = now.to_string();
    let known = pod.claims.known().into_iter().flatten();
    let asked = known.filter(|claim| claims.contains(&claim.name.as_str()));
    let mut of_claims = asked.filter_map(|claim| match claim.state {
        ClaimState::Bound { created, .. } => failure.inert(&value, Some(made(created))),
        _ => None,
    });
    failure.inert(&value, None).or_else(|| of_claims.next())
}

/// The answers on `pod`, its claims and its node.
pub fn answers(now: Timestamp, policy: &Policy, node: &NodeFacts, pod: &PodFacts) -> Vec<Answer> {
    let failure = Failure {
        now,
        policy,
        node,
        pod: Some(pod),
    };
    let answer = |annotation, on, name: &str, value: &String, claim| Answer {
        annotation,
        on,
        name: name.to_owned(),
        value: value.clone(),
        inert: failure.inert(value, claim),
    };
    let of_node = node
        .powered_off
        .iter()
        .map(|value| answer(POWERED_OFF, "node", &node.name, value, None));
    let of_pod = pod
        .reap
        .iter()
        .map(|value| answer(REAP, "pod", &pod.name, value, None));
    let claims = pod.claims.known().into_iter().flatten();
    let of_claims = claims.filter_map(|claim: &ClaimFacts| match &claim.state {
        ClaimState::Bound {
            give_up: Some(value),
            created,
            ..
        } => Some(answer(
            GIVE_UP,
            "pvc",
            &claim.name,
            value,
            Some(made(*created)),
        )),
        _ => None,
    });
    of_node.chain(of_pod).chain(of_claims).collect()
}
