//! Does the machine of a NotReady node live?
//!
//! Silence may be death; a heartbeat is not. A dead machine was last heard before its node became NotReady.

use itertools::Itertools as _;
use jiff::SignedDuration;

use super::{
    Policy,
    answer::NodeFailure,
    reason::{heard, reported},
};
use crate::facts::{Heard, Ready, SignBy};

/// For how long something that was heard counts as a sign of life. With a patience shorter than the source's period, a
/// verdict would depend on the moment of the run.
pub(super) fn counts_for(heard: &Heard, policy: &Policy) -> SignedDuration {
    heard.period.max(policy.node_not_ready_for)
}

impl<'a> NodeFailure<'a> {
    /// What shows that the machine of the node, unless it is Ready, lives: of each source the last.
    pub fn signs_of_life(&self) -> Vec<Heard> {
        let Self {
            now, policy, node, ..
        } = *self;
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
        let kubelet = (node.ready == Ready::False).then_some(Heard {
            by: SignBy::Kubelet,
            at: now,
            period: SignedDuration::ZERO,
        });
        heard.chain(kubelet).collect()
    }

    /// The signs of life as a phrase.
    pub(super) fn signs(&self) -> String {
        let signs = self.signs_of_life();
        signs.iter().map(|sign| reported(sign, self.now)).join(", ")
    }

    /// Whether its machine lives, or may, as far as reports tell: one that could not be read may be a sign of life.
    pub fn may_live(&self) -> bool {
        self.node.unheard.is_some() || !self.signs_of_life().is_empty()
    }

    /// The mark by which the node is certainly off, a person's answer among them: one that is not too old for the pod,
    /// where one is asked about. A machine that lives is not off, whatever the mark says.
    pub fn fenced(&self) -> Option<&'a str> {
        let heard = self.node.last_heard().map(|heard| heard.at);
        let mut marks = self.node.fenced.iter();
        let mark = marks.find(|mark| mark.stands(heard));
        let answer = self.is_powered_off();
        let answer = answer.then_some("answer pod-reaper.io/powered-off");
        mark.map(|mark| mark.mark.as_str())
            .or(answer)
            .filter(|_| !self.may_live())
    }

    /// When, and by what, the machine was last heard, as a sentence.
    pub fn last_heard(&self) -> String {
        let Some(last) = self.node.last_heard() else {
            return "Nothing was ever heard of its machine.".to_owned();
        };
        let when = heard(&last.sign(self.now), self.now);
        format!("Its machine was last heard {when}.")
    }
}
