//! Builds the report from the facts, the plan and the outcomes of a run.

use std::collections::BTreeMap;

use itertools::Itertools as _;

use super::{
    notices, page,
    record::{RunRecord, is_held},
    todo::About,
    types::{BreakerEntry, ForeseenEntry, NodeEntry, PodEntry, Report, SettingsEntry, Summary},
};
use crate::{
    facts::{NodeFacts, Read, Ready, Zone},
    judge::{Foreseen, Judged, Limit, Verdict},
    outcome::{Outcome, OutcomeCode},
    words::natural,
};

/// Version of the JSON output. New fields keep the number; a field that changes its meaning needs a
/// new number.
pub const VERSION: u8 = 3;

impl RunRecord<'_> {
    /// Builds the report of the run so far.
    pub fn report(&self) -> Report {
        let Self {
            settings,
            facts,
            plan,
            ..
        } = self;
        let pods = plan
            .pods
            .iter()
            .map(|judged| self.pod(judged))
            .collect_vec();
        let nodes = facts
            .nodes
            .iter()
            .filter_map(|(name, read)| self.node(name, read))
            .sorted_by_cached_key(|node| natural(&node.name))
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
            breaker: self.limit().map(|limit| BreakerEntry {
                reason: limit.code(),
                detail: self.limits().map(Limit::state).unique().join("; "),
                zones: plan.zones.keys().map(Zone::to_string).collect(),
                held: plan.pods.iter().filter(|it| is_held(it)).count(),
            }),
            summary: Summary {
                nodes: facts.node_count,
                nodes_not_ready: nodes.len(),
                pods: pods.len(),
                verdicts: tally(Verdict::ALL, pods.iter().filter_map(|pod| pod.verdict)),
                outcomes: tally(OutcomeCode::ALL, self.outcomes.values().map(Outcome::code)),
            },
            nodes,
            pods,
            not_evicted: plan.not_evicted.iter().map(Self::not_evicted).collect(),
            steps: self
                .todos_of_run()
                .iter()
                .map(|todo| self.step(todo, &About::default()))
                .collect(),
            history: self.history.clone(),
            errors: facts.errors.clone(),
            unseen: facts.unseen.clone(),
            declined: self.declined,
            notices: notices::of_run(self),
            document: page::document(self),
            explained: None,
            exit: self.exit(),
        }
    }

    pub(crate) fn pod(&self, judged: &Judged) -> PodEntry {
        let pod = &judged.pod;
        let outcome = self.outcomes.get(&pod.uid);
        let about = About::of(vec![judged]);
        let todos = self.todos_of(judged);
        let foreseen = judged.foreseen.as_ref().map(ForeseenEntry::from);
        let reaped = foreseen.as_ref().filter(|it| it.verdict == Verdict::Reap);
        PodEntry {
            owner: pod.owner.clone(),
            overdue_seconds: Some(self.facts.overdue(pod).as_secs()),
            verdict: Some(judged.verdict()),
            reason: Some(judged.code()),
            detail: judged.sentence(),
            outcome: outcome.map(Outcome::code),
            outcome_detail: outcome.map(Outcome::sentence),
            reaped_from: reaped.map(|it| it.at),
            foreseen,
            ready_copies: judged.copies().map(|copies| copies.to_string()),
            note: self.note(judged),
            steps: todos.iter().map(|todo| self.step(todo, &about)).collect(),
            ..PodEntry::from(pod)
        }
    }

    /// Returns the entry of a pod that Kubernetes has not evicted yet.
    pub(crate) fn not_evicted(judged: &Judged) -> PodEntry {
        PodEntry {
            detail: "It is not Terminating: Kubernetes has not evicted it yet.".to_owned(),
            foreseen: judged.foreseen.as_ref().map(ForeseenEntry::from),
            ready_copies: judged.copies().map(|copies| copies.to_string()),
            ..PodEntry::from(&judged.pod)
        }
    }

    /// Returns the entry of a node; `None` if the node is Ready or gone.
    fn node(&self, name: &str, read: &Read<Option<NodeFacts>>) -> Option<NodeEntry> {
        let known = read.as_ref().ok().and_then(Option::as_ref);
        if matches!(read, Ok(None)) || known.is_some_and(|node| node.ready == Ready::True) {
            return None;
        }
        let now = self.facts.now;
        let here = self.pods_on(name);
        let entry = NodeEntry {
            name: name.to_owned(),
            ready: "unread",
            pods: tally(Verdict::ALL, here.map(Judged::verdict)),
            volume_attachments: self.facts.attachments.on(name).ok().map(<[_]>::to_vec),
            ..NodeEntry::default()
        };
        let Some(node) = known else {
            return Some(entry);
        };
        Some(NodeEntry {
            zone: node.zone.as_ref().map(Zone::to_string),
            ready: node.ready.as_str(),
            reason: node.ready_reason.clone(),
            since: node.not_ready_since(now),
            signs_of_life: node.signs_of_life(now),
            last_heard: node.last_heard().map(|heard| heard.no_later_than(now)),
            fenced: node.fenced(now).map(str::to_owned),
            out_of_service: node.out_of_service,
            leaf_marks: node
                .leaf
                .iter()
                .flat_map(|leaf| leaf.marks.clone())
                .collect(),
            ..entry
        })
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
