//! The user's answers, and whether each is valid for the failure at hand.
//!
//! The time in an answer binds the answer to one failure: every object that the answer is about
//! existed before that time, and the machine had no heartbeat after it. An answer that is pasted
//! late, or left behind, is ignored.

use std::iter;

use derive_more::Display;
use jiff::Timestamp;

use super::context::PodContext;
use crate::{
    codes::entry,
    facts::{BoundClaim, ClaimFacts, NodeFacts},
};

/// The answer on a PVC: its data may be lost with the pod that is stuck now.
pub const GIVE_UP: &str = "pod-reaper.io/give-up";
/// The answer on a pod: the pod may be force-deleted, and its PVCs are kept.
pub const REAP: &str = "pod-reaper.io/reap";
/// The answer on a node: the machine is off.
pub const POWERED_OFF: &str = "pod-reaper.io/powered-off";

entry! {
    /// An answer that was found, and whether it is valid.
    #[derive(Display)]
    #[display("{annotation}={value} on {on} {name}")]
    pub struct Answer as "AnswerEntry" {
        /// `pod-reaper.io/give-up`, `pod-reaper.io/reap` or `pod-reaper.io/powered-off`.
        pub annotation: &'static str,
        /// What it is on: `node`, `pod` or `pvc`.
        pub on: &'static str,
        /// The name of the object that has the answer.
        pub name: String,
        /// Its value: the time of the report that asked for it.
        pub value: String,
        /// Why it is ignored, as a phrase; null if it is valid.
        pub inert: Option<String>,
    }
}

/// A moment that has to be earlier than an answer: the event, as a clause, and its time; `None` if
/// the time is not known.
type Moment = (&'static str, Option<Timestamp>);

impl NodeFacts {
    /// Checks that an answer with this annotation value belongs to the node's current failure, as
    /// known at `now`, and that the answer is later than each of `moments`. An error says why the
    /// answer is ignored, as a phrase.
    pub fn check_answer(
        &self,
        now: Timestamp,
        value: &str,
        moments: impl IntoIterator<Item = Moment>,
    ) -> Result<(), String> {
        let Ok(at) = value.parse::<Timestamp>() else {
            return Err("its value is no time, such as 2026-01-31T03:00:00Z".to_owned());
        };
        if at > now {
            return Err("its time lies in the future".to_owned());
        }
        let of_node = [
            ("the node was made", self.created),
            ("the node became NotReady", self.not_ready_since(now)),
        ];
        for (what, when) in of_node.into_iter().chain(moments) {
            match when {
                Some(when) if when < at => {}
                Some(_) => return Err(format!("it is not later than the moment when {what}")),
                None => return Err(format!("it is not known when {what}")),
            }
        }
        if self.last_heard().is_some_and(|last| last.at > at) {
            return Err("the node's machine was heard after it".to_owned());
        }
        if self.may_live(now) {
            return Err("the node's machine is alive, or may be".to_owned());
        }
        Ok(())
    }

    /// Reports whether the node has a valid `powered-off` answer. The answer also applies to pods
    /// that were evicted later, so no pod is checked.
    pub fn is_answered_off(&self, now: Timestamp) -> bool {
        let answer = self.powered_off.as_ref();
        answer.is_some_and(|value| self.check_answer(now, value, []).is_ok())
    }

    /// Reports whether the node is an edge node whose machine is off, by a valid `powered-off`
    /// answer. A node that also has a marker of a virtual node, or that `--leaf-node-selector`
    /// selects, is not treated as one.
    pub fn is_edge_off(&self, now: Timestamp) -> bool {
        let is_edge = self.leaf.as_ref().is_some_and(|leaf| leaf.only_edge);
        is_edge && self.is_answered_off(now)
    }

    /// Returns the fencing mark that says that the machine is known to be off; `None` if there is
    /// none. A mark is ignored if the last heartbeat came after it was set, and also while the
    /// machine is alive or may be alive.
    pub(super) fn fencing_mark(&self, now: Timestamp) -> Option<&str> {
        let heard = self.last_heard().map(|heard| heard.at);
        let mark = self.fenced.iter().find(|mark| mark.stands(heard))?;
        (!self.may_live(now)).then_some(&mark.mark)
    }

    /// Returns the fencing mark, or else the user's answer, that says that the machine is known to
    /// be off; `None` if there is neither.
    pub fn fenced(&self, now: Timestamp) -> Option<&str> {
        let answer = || {
            self.is_answered_off(now)
                .then_some("answer pod-reaper.io/powered-off")
        };
        self.fencing_mark(now).or_else(answer)
    }
}

impl PodContext<'_> {
    /// Checks that an answer on the pod is valid, or, if `claim` is given, an answer on that PVC of
    /// the pod.
    pub(super) fn check_answer(
        &self,
        value: &str,
        claim: Option<&BoundClaim>,
    ) -> Result<(), String> {
        let node = self.known().ok_or_else(|| self.node_unread())?;
        if self.without_answers {
            return Err("answers are left out".to_owned());
        }
        let of_pod = [
            ("the pod was made", self.pod.created),
            (
                "the pod's deletion was asked for",
                self.pod.deletion_requested(),
            ),
        ];
        let of_claim = claim.map(|claim| ("the PVC was made", claim.created));
        node.check_answer(self.now, value, of_pod.into_iter().chain(of_claim))
    }

    /// Reports whether the pod's node is an edge node that was powered off after the pod's deletion
    /// was requested. Pods that were evicted later are excluded: the machine may have been switched
    /// on again behind a cut link.
    pub(super) fn is_on_edge_off(&self) -> bool {
        let Some(node) = self.known().filter(|node| node.is_edge_off(self.now)) else {
            return false;
        };
        let answered = node.powered_off.as_ref();
        let answered = answered.and_then(|value| value.parse::<Timestamp>().ok());
        let requested = self.pod.deletion_requested();
        !self.without_answers
            && requested
                .zip(answered)
                .is_some_and(|(requested, answered)| requested < answered)
    }

    /// Reports whether the pod has a valid `reap` answer. Such an answer is ignored if a PVC may be
    /// deleted with the pod.
    pub(super) fn is_let_go(&self) -> bool {
        let answer = self.pod.reap.as_ref();
        answer.is_some_and(|value| self.check_answer(value, None).is_ok())
            && !self.pod.may_take_a_claim()
    }

    /// Returns why an answer given now would be ignored, as a phrase. The answers checked are one
    /// on the pod and one on each of the named PVCs. `None` if all of them would be valid.
    pub fn would_be_inert(&self, claims: &[&str]) -> Option<String> {
        let value = self.now.to_string();
        let named = self.pod.claims.iter();
        let named = named.filter(|claim| claims.contains(&claim.name.as_str()));
        let mut asked = iter::once(None).chain(named.filter_map(ClaimFacts::bound).map(Some));
        asked.find_map(|claim| self.check_answer(&value, claim).err())
    }

    /// Lists the answers on the node, the pod and the pod's PVCs; empty if the node is not known.
    pub fn answers(&self) -> Vec<Answer> {
        let (Some(node), pod) = (self.known(), self.pod) else {
            return Vec::new();
        };
        let of_node = (POWERED_OFF, "node", &node.name, &node.powered_off, None);
        let of_pod = (REAP, "pod", &pod.name, &pod.reap, None);
        let of_claims = pod.claims.iter().filter_map(|claim| {
            let bound = claim.bound()?;
            Some((GIVE_UP, "pvc", &claim.name, &bound.give_up, Some(bound)))
        });
        let all = [of_node, of_pod].into_iter().chain(of_claims);
        let all = all.filter_map(|(annotation, on, name, value, claim)| {
            let value = value.clone()?;
            let counts = if on == "node" {
                node.check_answer(self.now, &value, [])
            } else {
                self.check_answer(&value, claim)
            };
            Some(Answer {
                annotation,
                on,
                name: name.clone(),
                value,
                inert: counts.err(),
            })
        });
        all.collect()
    }
}
