//! Builds the report from the facts, the plan and the outcomes of a run.

use std::collections::BTreeMap;

use itertools::Itertools as _;

use super::{
    advice,
    document::Document,
    head, page,
    record::RunRecord,
    survey::{NodeView, PodView, State, Survey},
    types::{BreakerEntry, ForeseenEntry, NodeEntry, PodEntry, Report, SettingsEntry, Summary},
};
use crate::{
    facts::Zone,
    judge::{Foreseen, Judged, Limit, Verdict},
    outcome::{Outcome, OutcomeCode},
};

/// Version of the JSON output. New fields keep the number; a field that changes its meaning needs a
/// new number.
pub const VERSION: u8 = 3;

impl RunRecord<'_> {
    /// Builds the report of the run so far.
    pub fn report(&self) -> Report {
        let survey = Survey::of(self);
        let mut report = self.report_of(&survey);
        report.notices = head::notices(&survey);
        report.document = page::document(&survey);
        report.steps = advice::of_run(&survey)
            .iter()
            .map(|it| page::step(&survey, it))
            .collect();
        let pods = survey.pods.iter().map(|pod| (&pod.judged.pod.uid, pod));
        let pods = pods.collect::<BTreeMap<_, _>>();
        let longest_first = self.plan.pods.iter().map(|judged| pods[&judged.pod.uid]);
        report.pods = longest_first.map(|pod| entry(&survey, pod)).collect();
        report
    }

    /// Builds a report without pods and without the document.
    pub(super) fn report_of(&self, survey: &Survey<'_>) -> Report {
        let Self {
            settings,
            facts,
            plan,
            ..
        } = self;
        let nodes = survey
            .nodes
            .iter()
            .filter_map(|it| node(survey, it))
            .collect_vec();
        Report {
            version: VERSION,
            program_version: env!("CARGO_PKG_VERSION"),
            mode: settings.task.mode(),
            cluster_name: settings.cluster_name.clone(),
            cluster: facts.cluster_name.clone(),
            snapshot: settings.task.snapshot(),
            suppose_dead: settings.task.suppose_dead().to_vec(),
            judged_at: facts.now,
            settings: SettingsEntry {
                namespaces: settings.namespaces.clone(),
                policy: settings.policy.clone(),
                limits: settings.limits.clone(),
                all: settings.all,
            },
            guard: settings.guard(),
            breaker: survey.limit().map(|limit| BreakerEntry {
                reason: limit.code(),
                detail: survey
                    .limits
                    .iter()
                    .map(|limit| limit.state())
                    .unique()
                    .join("; "),
                zones: plan.zones.keys().map(Zone::to_string).collect(),
                held: survey.pods.iter().filter(|pod| pod.is_held()).count(),
            }),
            summary: Summary {
                nodes: facts.node_count,
                nodes_not_ready: nodes.len(),
                pods: survey.pods.len(),
                verdicts: tally(Verdict::ALL, survey.pods.iter().map(PodView::verdict)),
                outcomes: tally(OutcomeCode::ALL, self.outcomes.values().map(Outcome::code)),
            },
            nodes,
            pods: Vec::new(),
            not_evicted: plan.not_evicted.iter().map(not_evicted).collect(),
            steps: Vec::new(),
            history: self.history.clone(),
            errors: facts.errors.clone(),
            unseen: facts.unseen.clone(),
            declined: self.declined,
            notices: Vec::new(),
            document: Document::default(),
            explained: None,
            exit: survey.exit(),
        }
    }
}

/// Returns the entry of a pod.
pub fn entry(survey: &Survey<'_>, pod: &PodView<'_>) -> PodEntry {
    let judged = pod.judged;
    let foreseen = judged.foreseen.as_ref().map(ForeseenEntry::from);
    let reaped = foreseen.as_ref().filter(|it| it.verdict == Verdict::Reap);
    PodEntry {
        owner: judged.pod.owner.clone(),
        overdue_seconds: Some(pod.overdue.as_secs()),
        verdict: Some(pod.verdict()),
        reason: Some(pod.code()),
        detail: judged.sentence(),
        outcome: pod.outcome_code(),
        outcome_detail: pod.outcome.map(Outcome::sentence),
        reaped_from: reaped.map(|it| it.at),
        foreseen,
        ready_copies: judged.copies().map(|copies| copies.to_string()),
        note: pod.note.clone(),
        steps: advice::of_one(survey, pod)
            .iter()
            .map(|it| page::step(survey, it))
            .collect(),
        ..PodEntry::from(&judged.pod)
    }
}

/// Returns the entry of a pod that Kubernetes has not evicted yet.
pub fn not_evicted(judged: &Judged) -> PodEntry {
    PodEntry {
        detail: "It is not Terminating: Kubernetes has not evicted it yet.".to_owned(),
        foreseen: judged.foreseen.as_ref().map(ForeseenEntry::from),
        ready_copies: judged.copies().map(|copies| copies.to_string()),
        ..PodEntry::from(&judged.pod)
    }
}

impl From<&Foreseen> for ForeseenEntry {
    fn from(foreseen: &Foreseen) -> Self {
        Self {
            at: foreseen.at,
            verdict: foreseen.verdict(),
            reason: foreseen.reason.code(),
            detail: foreseen.reason.to_string(),
            limit: foreseen.limit.as_ref().map(Limit::code),
        }
    }
}

/// Returns the entry of a node; `None` if the node is Ready or gone.
fn node(survey: &Survey<'_>, node: &NodeView<'_>) -> Option<NodeEntry> {
    if node.known.is_none() && node.state != Some(State::Unread) || node.state.is_none() {
        return None;
    }
    let pods = node.pods.iter().map(|place| survey.pods[*place].verdict());
    let entry = NodeEntry {
        name: node.name.to_owned(),
        ready: "unread",
        pods: tally(Verdict::ALL, pods),
        volume_attachments: node.attachments.as_ref().ok().map(|all| all.to_vec()),
        ..NodeEntry::default()
    };
    let Some(known) = node.known else {
        return Some(entry);
    };
    let now = survey.now;
    let leaf = known.leaf.iter().flat_map(|leaf| leaf.marks.clone());
    Some(NodeEntry {
        zone: known.zone.as_ref().map(Zone::to_string),
        ready: known.ready.as_str(),
        reason: known.ready_reason.clone(),
        since: known.not_ready_since(now),
        signs_of_life: known.signs_of_life(now),
        last_heard: known.last_heard().map(|heard| heard.no_later_than(now)),
        fenced: known.fenced(now).map(str::to_owned),
        out_of_service: known.out_of_service,
        leaf_marks: leaf.collect(),
        ..entry
    })
}

/// Counts how often each of `all` occurs in `found`; those that never occur have 0.
pub fn tally<T: Ord, const N: usize>(
    all: [T; N],
    found: impl Iterator<Item = T>,
) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::from(all.map(|code| (code, 0)));
    for code in found {
        *counts.entry(code).or_default() += 1;
    }
    counts
}
