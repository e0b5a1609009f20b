//! Builds the JSON from the survey and the advice, beside the page.

use std::collections::BTreeMap;

use itertools::Itertools as _;

use super::{
    advice, explained,
    hang::Hang,
    head, page,
    survey::{NodeView, PodView, State, Survey},
    types::{
        BreakerEntry, Explained, ForeseenEntry, NodeEntry, PodEntry, Report, SettingsEntry, Summary,
    },
};
use crate::{
    facts::Zone,
    judge::{Foreseen, Limit, Verdict},
    outcome::{Outcome, OutcomeCode},
    words::Foreign,
};

/// Version of the JSON output. New fields keep the number; a field that changes its meaning needs a
/// new number.
pub const VERSION: u8 = 4;

/// Builds the JSON from the survey and the advice of a run.
pub fn report<'a>(survey: &'a Survey<'a>) -> Report {
    let settings = survey.settings;
    let asked = survey.asked;
    let advised = advice::all(survey);
    let nodes = || survey.nodes.iter().filter_map(|it| node(survey, it));
    Report {
        version: VERSION,
        program_version: env!("CARGO_PKG_VERSION"),
        mode: settings.task.mode(),
        cluster_name: settings.cluster_name.clone(),
        cluster: survey.cluster.map(str::to_owned),
        snapshot: settings.task.snapshot(),
        suppose_dead: settings.task.suppose_dead().to_vec(),
        judged_at: survey.now,
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
            zones: survey.zones.keys().map(Zone::to_string).collect(),
            held: survey.terminating().filter(|pod| pod.is_held()).count(),
        }),
        headline: match asked {
            Some(pod) => explained::headline(survey, pod),
            None => head::headline(survey, &advised),
        },
        act_before: head::deadline(survey, &survey.nodes.iter().collect_vec()),
        held: match asked {
            Some(_) => Vec::new(),
            None => head::held(survey),
        },
        data: head::data(survey),
        next: head::next(survey),
        steps: page::steps(survey, &advised),
        never: advice::never(survey)
            .into_iter()
            .map(|never| format!("Never {never}"))
            .collect(),
        summary: Summary {
            nodes: survey.node_count,
            nodes_not_ready: nodes().count(),
            pods: survey.terminating().count(),
            verdicts: tally(Verdict::ALL, survey.terminating().map(PodView::verdict)),
            outcomes: tally(
                OutcomeCode::ALL,
                survey.terminating().filter_map(PodView::outcome_code),
            ),
        },
        nodes: nodes()
            .filter(|node| asked.is_none_or(|pod| pod.node.as_ref() == Some(&node.name)))
            .collect(),
        pods: match asked {
            Some(pod) => vec![explained::entry(survey, pod)],
            None => survey.terminating().map(|pod| entry(survey, pod)).collect(),
        },
        not_evicted: match asked {
            Some(_) => Vec::new(),
            None => survey
                .pods
                .iter()
                .filter(|pod| !pod.is_evicted)
                .map(|pod| not_evicted(survey, pod))
                .collect(),
        },
        history: survey.history.clone(),
        errors: survey.errors.to_vec(),
        unseen: survey.unseen.to_vec(),
        notices: match asked {
            Some(_) => Vec::new(),
            None => head::notices(survey),
        },
        explained: asked.map(|pod| Explained {
            phase: pod.phase.clone(),
            created: pod.created,
            rules: explained::rules(survey),
            waits_for: survey.waiting.map(|it| it.waits_for.clone()),
        }),
        exit: advice::exit(survey, &advised),
    }
}

/// Returns the entry of a pod.
pub fn entry(survey: &Survey<'_>, pod: &PodView<'_>) -> PodEntry {
    let judged = pod.judged;
    PodEntry {
        owner: judged.pod.owner.clone(),
        overdue_seconds: Some(pod.overdue.as_secs()),
        verdict: Some(pod.verdict()),
        reason: Some(pod.code()),
        detail: judged.sentence(),
        outcome: pod.outcome_code(),
        outcome_detail: pod.outcome.map(Outcome::sentence),
        reaped_from: match pod.verdict() {
            _ if pod.outcome_code() == Some(OutcomeCode::Deleted) => None,
            Verdict::Reap => Some(survey.now),
            _ => judged.reaped_from(),
        },
        cause: pod.hang.map(Hang::code),
        note: pod.note.clone(),
        ..not_evicted(survey, pod)
    }
}

/// Returns the entry of a pod that Kubernetes has not evicted yet.
pub fn not_evicted(survey: &Survey<'_>, pod: &PodView<'_>) -> PodEntry {
    let judged = pod.judged;
    PodEntry {
        risk: pod.risk(survey),
        detail: "It is not Terminating: Kubernetes has not evicted it yet.".to_owned(),
        foreseen: judged.foreseen.as_deref().map(ForeseenEntry::from),
        ready_copies: judged.pod.copies.map(|copies| copies.to_string()),
        owned_pods: survey.owned_by(&judged.pod).map(<[_]>::to_vec),
        ..PodEntry::from(&*judged.pod)
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
    let pods = survey
        .pods_on(node)
        .filter(|pod| pod.is_evicted)
        .map(PodView::verdict);
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
    Some(NodeEntry {
        uid: known.uid.to_string(),
        address: known.address.as_ref().map(Foreign::to_string),
        zone: known.zone.as_ref().map(Zone::to_string),
        ready: known.ready.as_str(),
        reason: known.ready_reason.clone(),
        since: node.since,
        signs_of_life: node.signs_of_life.clone(),
        last_heard: node.last_heard.clone(),
        fenced: known
            .fenced(survey.now, &survey.settings.policy)
            .map(str::to_owned),
        out_of_service: known.out_of_service,
        leaf_marks: known
            .leaf
            .iter()
            .flat_map(|leaf| leaf.marks.clone())
            .collect(),
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
