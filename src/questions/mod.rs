//! Other questions to the same rules and limits. They only read.

pub mod explain;
pub mod what_if;

use serde::Serialize;

use crate::advice::{Advice, Step, advise};
use crate::decide::{ReasonCode, Verdict};
use crate::facts::ClusterFacts;
use crate::limits::{Judged, Plan};
use crate::report::notes;
use crate::settings::Settings;

/// What is answered of a pod.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Judgement {
    /// The verdict of a run; null where no run judges it.
    pub verdict: Option<Verdict>,
    /// The reason's code.
    pub reason: Option<ReasonCode>,
    /// Why, as a sentence.
    pub detail: String,
    /// What to remember once it is reaped.
    pub note: Option<String>,
    /// What is at risk.
    pub risk: Option<String>,
    /// What a person should do, in order.
    pub steps: Vec<Step>,
}

impl Judgement {
    fn of(judged: &Judged, plan: &Plan, facts: &ClusterFacts, settings: &Settings) -> Self {
        let Advice { risk, steps } = advise(
            &[judged],
            facts,
            &settings.policy,
            plan.hold.as_ref(),
            &settings.task.kubectl(),
        );
        let (verdict, reason) = (Some(judged.verdict()), Some(judged.code()));
        Self {
            verdict,
            reason,
            detail: judged.sentence(),
            note: joined(&notes(judged, facts)),
            risk,
            steps,
        }
    }
}

fn joined(notes: &[String]) -> Option<String> {
    (!notes.is_empty()).then(|| notes.join("; "))
}

#[cfg(test)]
mod tests;
