//! Counts the answers that a random run has seen: a run without many answers proves nothing about them.

use crate::prelude::*;
use pod_reaper::decide::{Answer, PodContext};

/// The reasons why an answer may have no effect.
const INERT: [&str; 9] = [
    "its value is no time",
    "its time lies in the future",
    "it is not later than the moment when the node was made",
    "it is not later than the moment when the node became NotReady",
    "it is not later than the moment when the pod was made",
    "it is not later than the moment when the pod's deletion was asked for",
    "it is not later than the moment when the PVC was made",
    "the node's machine was heard after it",
    "the node's machine is alive, or may be",
];

#[derive(Debug, Default)]
pub struct Answers {
    /// By annotation, the number of answers that were used for a pod whose reason is `answered`.
    counted: BTreeMap<&'static str, usize>,
    /// By the stated reason, the number of answers that had no effect.
    inert: BTreeMap<String, usize>,
}

impl Answers {
    /// Notes the answers of a plan.
    pub fn note(&mut self, facts: &ClusterFacts, policy: &Policy, plan: &Plan) {
        for judged in &plan.pods {
            let answers = PodContext::of(facts, policy, &judged.pod).answers();
            self.note_of(judged.code(), &answers);
        }
    }

    /// Notes the answers of a pod.
    pub fn note_of(&mut self, reason: ReasonCode, all: &[Answer]) {
        for answer in all {
            match &answer.inert {
                Some(why) => *self.inert.entry(why.clone()).or_default() += 1,
                None if reason == ReasonCode::Answered => {
                    *self.counted.entry(answer.annotation).or_default() += 1;
                }
                None => {}
            }
        }
    }

    /// Fails unless each annotation allowed a delete.
    pub fn each_lets_go(&self, enough: bool) {
        println!("{self:?}");
        assert!(!enough || self.counted.len() == 3, "{self:?}");
    }

    /// Fails unless, in addition, each condition on an answer made one inert.
    pub fn all_come_up(&self, enough: bool) {
        self.each_lets_go(enough);
        let inert = |part: &&str| self.inert.keys().any(|why| why.starts_with(*part));
        let missing = INERT.iter().filter(|part| !inert(part)).collect_vec();
        assert!(
            !enough || missing.is_empty(),
            "never: {missing:?} ({self:?})"
        );
    }
}
