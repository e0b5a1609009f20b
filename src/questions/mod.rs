//! Other questions to the same rules and limits. They only read.

pub mod explain;
pub mod what_if;

use serde::Serialize;

use crate::advice::{Advice, Step, advise};
use crate::decide::{ReasonCode, Verdict};
use crate::facts::ClusterFacts;
use crate::limits::{Judged, Plan};
use crate::report::notes;
use crate::report::page::{Block, Tone};
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
    /// What is at risk, what to remember, and what to do.
    fn advice(&self) -> Vec<Block> {
        let said = [("Risk", &self.risk), ("Note", &self.note)].into_iter();
        let said = said.filter_map(|(label, says)| {
            Some(Block::labelled(label, Tone::Caution, says.as_ref()?))
        });
        let steps = Block::Steps {
            ordered: true,
            steps: self.steps.clone(),
            skipped: 0,
        };
        said.chain((!self.steps.is_empty()).then_some(steps))
            .collect()
    }

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

/// The names of `known` that are most like `name`, as a question; nothing where none is like it.
fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let near = known.map(|known| (strsim::jaro_winkler(name, known), known));
    let mut near = near
        .filter(|(likeness, _)| *likeness > 0.7)
        .collect::<Vec<_>>();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.truncate(3);
    let names = near.into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    (!names.is_empty()).then(|| format!("did you mean {}?", names.join(" or ")))
}

fn joined(notes: &[String]) -> Option<String> {
    (!notes.is_empty()).then(|| notes.join("; "))
}

#[cfg(test)]
mod tests;
