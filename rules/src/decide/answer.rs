//! The answers of a person, and whether each counts for the failure at hand.
//!
//! Its time binds an answer to one failure: everything that it is about existed before that time,
//! and nothing was heard from the machine after it. An answer that is pasted late, or left behind,
//! is inert.

use derive_more::Display;
use jiff::Timestamp;

use super::Policy;
use crate::{
    codes::entry,
    facts::{BoundClaim, ClusterFacts, NodeFacts, PodFacts},
};

/// The answer on a claim: its data may be lost with the pod that is stuck now.
pub const GIVE_UP: &str = "pod-reaper.io/give-up";
/// The answer on a pod: the pod may go, and its claims are kept.
pub const REAP: &str = "pod-reaper.io/reap";
/// The answer on a node: the machine is off.
pub const POWERED_OFF: &str = "pod-reaper.io/powered-off";

entry! {
    /// An answer that was found, and whether it counts.
    #[derive(Display)]
    #[display("{annotation}={value} on {on} {name}")]
    pub struct Answer as "AnswerEntry" {
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
}

/// A node as it is judged at one moment, with or without a pod of it. An answer has to belong to
/// this failure of the node; the node may also be Ready.
#[derive(Clone, Copy)]
pub struct NodeAtTime<'a> {
    /// The moment of judging.
    pub now: Timestamp,
    /// The operator's choices.
    pub policy: &'a Policy,
    /// The node.
    pub node: &'a NodeFacts,
    /// The stuck pod; `None` if the question is about the node alone.
    pub pod: Option<&'a PodFacts>,
}

impl<'a> NodeAtTime<'a> {
    /// Returns `node` as the run judges it, without a pod.
    pub fn of(facts: &ClusterFacts, policy: &'a Policy, node: &'a NodeFacts) -> Self {
        Self {
            now: facts.now,
            policy,
            node,
            pod: None,
        }
    }

    /// Returns why an answer whose annotation has this value counts for nothing, as a phrase;
    /// `None` if it counts. `claim` is the claim that bears the annotation, if a claim does.
    pub(super) fn inert(&self, value: &str, claim: Option<&BoundClaim>) -> Option<String> {
        let Ok(at) = value.parse::<Timestamp>() else {
            return Some("its value is no time, such as 2026-01-31T03:00:00Z".to_owned());
        };
        if at > self.now {
            return Some("its time lies in the future".to_owned());
        }
        let node = self.node;
        let mut before = vec![
            ("the node was made", node.created),
            ("the node became NotReady", node.not_ready_since(self.now)),
        ];
        if let Some(pod) = self.pod {
            before.extend([
                ("the pod was made", pod.created),
                ("the pod's deletion was asked for", pod.deletion_requested()),
            ]);
        }
        before.extend(claim.map(|claim| ("the claim was made", claim.created)));
        for (what, when) in before {
            match when {
                Some(when) if when < at => {}
                Some(_) => {
                    return Some(format!("it is not later than the moment when {what}"));
                }
                None => return Some(format!("it is not known when {what}")),
            }
        }
        let why = if node.last_heard().is_some_and(|last| last.at > at) {
            "the node's machine was heard after it"
        } else if self.may_live() {
            "the node's machine lives, or may"
        } else {
            return None;
        };
        Some(why.to_owned())
    }

    /// Reports whether the node bears a `powered-off` answer that counts. Only what is said of the
    /// node is asked.
    pub fn node_answer_counts(&self) -> bool {
        self.without_pod().counts(self.node.powered_off.as_ref())
    }

    fn without_pod(&self) -> Self {
        Self { pod: None, ..*self }
    }

    /// Reports whether the pod bears a `reap` answer that counts.
    pub(super) fn pod_answer_counts(&self) -> bool {
        self.counts(self.pod.and_then(|pod| pod.reap.as_ref()))
    }

    fn counts(&self, answer: Option<&String>) -> bool {
        answer.is_some_and(|value| self.inert(value, None).is_none())
    }

    /// Lists the pod's bound claims with their names.
    fn bound_claims(&self) -> impl Iterator<Item = (&str, &BoundClaim)> {
        let claims = self.pod.into_iter().flat_map(|pod| &pod.claims);
        claims.filter_map(|claim| Some((claim.name.as_str(), claim.bound()?)))
    }

    /// Returns why an answer given now would count for nothing, as a phrase: one on the pod, or one
    /// on any of the named claims. `None` if all would count.
    pub fn would_be_inert(&self, claims: &[&str]) -> Option<String> {
        let value = self.now.to_string();
        let mut asked = self
            .bound_claims()
            .filter(|(name, _)| claims.contains(name));
        self.inert(&value, None)
            .or_else(|| asked.find_map(|(_, claim)| self.inert(&value, Some(claim))))
    }

    /// Lists the answers on the node, the pod and the pod's claims.
    pub fn answers(&self) -> Vec<Answer> {
        let answer = |annotation, on, name: &str, value: Option<&String>, claim| {
            let value = value?.clone();
            Some(Answer {
                annotation,
                on,
                name: name.to_owned(),
                inert: if on == "node" {
                    self.without_pod().inert(&value, None)
                } else {
                    self.inert(&value, claim)
                },
                value,
            })
        };
        let (node, pod) = (self.node, self.pod);
        let of_node = answer(
            POWERED_OFF,
            "node",
            &node.name,
            node.powered_off.as_ref(),
            None,
        );
        let of_pod = pod.and_then(|pod| answer(REAP, "pod", &pod.name, pod.reap.as_ref(), None));
        let of_claims = self.bound_claims().filter_map(|(name, claim)| {
            answer(GIVE_UP, "pvc", name, claim.give_up.as_ref(), Some(claim))
        });
        of_node.into_iter().chain(of_pod).chain(of_claims).collect()
    }
}
