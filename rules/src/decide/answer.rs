//! What a person decided, and whether that counts for the failure at hand.
//!
//! An answer is bound to one failure by its time: everything that it is about was there before, and nothing was heard
//! since. Pasted late, or left behind, it is inert.

use derive_more::Display;
use jiff::Timestamp;

use super::Policy;
use crate::{
    codes::entry,
    facts::{BoundClaim, ClusterFacts, NodeFacts, PodFacts},
};

/// On a claim: its data may be lost with the pod that is stuck now.
pub const GIVE_UP: &str = "pod-reaper.io/give-up";
/// On a pod: its claims are kept, and it may go.
pub const REAP: &str = "pod-reaper.io/reap";
/// On a node: the machine is off.
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

/// A node as it is judged at one moment: the failure that an answer has to belong to. The node may be Ready.
#[derive(Clone, Copy)]
pub struct NodeFailure<'a> {
    /// The moment.
    pub now: Timestamp,
    /// What the operator chose.
    pub policy: &'a Policy,
    /// The node.
    pub node: &'a NodeFacts,
    /// The pod that is stuck; `None` where only the node is asked about.
    pub pod: Option<&'a PodFacts>,
}

impl<'a> NodeFailure<'a> {
    /// Of `node`, whichever pod is asked about.
    pub fn of(facts: &ClusterFacts, policy: &'a Policy, node: &'a NodeFacts) -> Self {
        Self {
            now: facts.now,
            policy,
            node,
            pod: None,
        }
    }

    /// Why an answer of that value counts for nothing, as a phrase: one on `claim`, where that is given.
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

    /// Whether the answer on the node counts.
    pub(super) fn is_powered_off(&self) -> bool {
        self.counts(self.node.powered_off.as_ref())
    }

    /// Whether the answer on the pod counts.
    pub(super) fn may_go(&self) -> bool {
        self.counts(self.pod.and_then(|pod| pod.reap.as_ref()))
    }

    fn counts(&self, answer: Option<&String>) -> bool {
        answer.is_some_and(|value| self.inert(value, None).is_none())
    }

    /// The bound claims of the pod, by their names.
    fn bound_claims(&self) -> impl Iterator<Item = (&str, &BoundClaim)> {
        let claims = self.pod.into_iter().flat_map(|pod| &pod.claims);
        claims.filter_map(|claim| Some((claim.name.as_str(), claim.bound()?)))
    }

    /// Why an answer that is given now, on the pod or on those of its claims, would count for nothing, as a phrase.
    pub fn would_be_inert(&self, claims: &[&str]) -> Option<String> {
        let value = self.now.to_string();
        let mut asked = self
            .bound_claims()
            .filter(|(name, _)| claims.contains(name));
        self.inert(&value, None)
            .or_else(|| asked.find_map(|(_, claim)| self.inert(&value, Some(claim))))
    }

    /// The answers on the pod, its claims and its node.
    pub fn answers(&self) -> Vec<Answer> {
        let answer = |annotation, on, name: &str, value: Option<&String>, claim| {
            let value = value?.clone();
            let inert = self.inert(&value, claim);
            let name = name.to_owned();
            Some(Answer {
                annotation,
                on,
                name,
                value,
                inert,
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
