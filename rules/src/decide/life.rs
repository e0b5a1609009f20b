//! Signs of life: evidence that the machine of a NotReady node still runs.
//!
//! Silence may be death; a heartbeat is not. A dead machine was last heard before its node became
//! NotReady.

use itertools::Itertools as _;
use jiff::SignedDuration;

use super::{
    answer::NodeAtTime,
    reason::{heard, reported},
};
use crate::facts::{Heard, Ready, SignBy, Unread};

/// For how long a report counts as a sign of life, whatever its source: twice the longest period
/// with which any of them writes, and a minute.
const COUNTS_FOR: SignedDuration = SignedDuration::from_mins(11);

impl<'a> NodeAtTime<'a> {
    /// Lists the evidence that the node's machine lives: the last report of each source that still
    /// counts. It is empty if the node is Ready.
    pub fn signs_of_life(&self) -> Vec<Heard> {
        let Self { now, node, .. } = *self;
        if node.ready == Ready::True {
            return Vec::new();
        }
        let since = node.not_ready_since(now);
        let shows = |heard: &&Heard| {
            since.is_none_or(|since| heard.at > since) && now.duration_since(heard.at) < COUNTS_FOR
        };
        let heard = node
            .heard
            .iter()
            .filter(shows)
            .map(|heard| heard.no_later_than(now));
        // Ready=False is a report by itself: Kubernetes turns it into Unknown as soon as the
        // kubelet falls silent.
        let kubelet = (node.ready == Ready::False).then_some(Heard {
            by: SignBy::Kubelet,
            at: now,
            what: None,
        });
        heard.chain(kubelet).collect()
    }

    /// Returns the signs of life as a phrase.
    pub(super) fn signs(&self) -> String {
        let signs = self.signs_of_life();
        signs.iter().map(|sign| reported(sign, self.now)).join(", ")
    }

    /// Reports whether the machine lives, or may live: a report that could not be read may be a
    /// sign of life.
    pub fn may_live(&self) -> bool {
        self.unread().is_some() || !self.signs_of_life().is_empty()
    }

    /// Returns why a Lease that may show that the machine lives could not be read, as a phrase.
    pub(super) fn unread(&self) -> Option<&'a Unread> {
        let others = self.node.named_by.as_ref().err();
        self.node.unread_lease.as_ref().or(others)
    }

    /// Returns the mark, or the person's answer, which says that the machine is certainly off;
    /// `None` if nothing does. A mark older than the last report does not count, nor does any mark
    /// while the machine lives or may live. If there is a pod, an answer must also be newer than
    /// its deletion.
    pub fn fenced(&self) -> Option<&'a str> {
        let heard = self.node.last_heard().map(|heard| heard.at);
        let mut marks = self.node.fenced.iter();
        let mark = marks.find(|mark| mark.stands(heard));
        let answer = self.node_answer_counts();
        let answer = answer.then_some("answer pod-reaper.io/powered-off");
        mark.map(|mark| mark.mark.as_str())
            .or(answer)
            .filter(|_| !self.may_live())
    }

    /// Says when and by what the machine was last heard, as a sentence.
    pub fn last_heard(&self) -> String {
        let Some(last) = self.node.last_heard() else {
            return "Nothing was ever heard of its machine.".to_owned();
        };
        let when = heard(&last.no_later_than(self.now), self.now);
        format!("Its machine was last heard {when}.")
    }
}
