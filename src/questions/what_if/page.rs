//! The forecast as a page: what would need a person, or be lost, comes first.

use super::{Fate, PodFate, WhatIf, Workload};
use crate::report::page::{Block, Entry, Key, Page, Room, Section, Tag, Tone, fill, unread};
use crate::report::phrases;
use crate::report::text;
use crate::words::counted;

/// The lines of a text.
const LINES: usize = 98;

pub(super) fn page(answer: &WhatIf) -> Page {
    let source = answer.snapshot.as_ref().map(|file| format!(" by {file},"));
    let summary = summary(answer);
    let mut page = Page {
        headline: format!("{} died: {summary}", answer.nodes.join(", ")),
        about: format!(
            "pod-reaper {}: what if {} died?{} as of {}. Nothing was changed.",
            answer.program_version,
            answer.nodes.join(", "),
            source.unwrap_or_default(),
            answer.judged_at.strftime("%F %TZ")
        ),
        settings: "Assumed: the kubelet is silent for longer than every toleration, grace period and threshold. Whether \
                   the scheduler then finds another node for the pods is not checked."
            .to_owned(),
        lead: vec![Block::says(
            Tone::Strong,
            format!("Summary: {summary}. Exit code {}.", answer.exit.code()),
        )],
        judged_at: answer.judged_at,
        ..Page::default()
    };
    let about = Block::says(Tone::Quiet, format!("{} {}", page.about, page.settings));
    let fixed = 2 * text::lines(&page.lead) + text::lines(&[about]) + 1;
    page.sections = fill(sections(answer), LINES.saturating_sub(fixed));
    page
}

fn sections(answer: &WhatIf) -> Vec<(Section, Room<'_>)> {
    let held = answer.breaker.as_ref();
    let heading = held.map_or("The breaker would not hold the run".to_owned(), |breaker| {
        format!("The breaker would hold the run ({})", breaker.reason)
    });
    let tone = if held.is_some() {
        Tone::Bad
    } else {
        Tone::Good
    };
    let breaker = Section::new("breaker", heading, tone, breaker(answer));
    let of = |fate: Fate, tone, heading: &str| {
        let pods = answer.pods.iter().filter(|pod| pod.fate == fate);
        let pods = pods.map(|pod| Block::Entry(entry(pod, answer.nodes.len() > 1)));
        let pods = pods.collect::<Vec<_>>();
        let heading = format!("{heading}: {}", pods.len());
        (
            Section::new(fate.as_str(), heading, tone, pods),
            Room::Kinds,
        )
    };
    let workloads = answer.workloads.iter().map(|workload| {
        let Workload {
            namespace,
            kind,
            name,
            replicas,
        } = workload;
        let replicas = match replicas {
            1 => "its only replica is here".to_owned(),
            replicas => format!("all {replicas} running replicas are here"),
        };
        Block::says(
            Tone::Plain,
            format!("{namespace}  {kind}/{name}  {replicas}"),
        )
    });
    let alone = format!("No second replica anywhere: {}", answer.workloads.len());
    let alone = Section::new("workloads", alone, Tone::Bad, workloads.collect());
    let left_out = (answer.left_out > 0).then(|| {
        let says = "These pods are in namespaces that the namespace options leave out. They would be evicted and stay \
                    Terminating.";
        Block::says(Tone::Plain, says)
    });
    let heading = format!("Not reaped: {}", answer.left_out);
    let left_out = Section::new("left-out", heading, Tone::Caution, Vec::from_iter(left_out));
    let parts = [
        (breaker, Room::All),
        of(
            Fate::NeedsPerson,
            Tone::Bad,
            "Would need you (the report of the real run has the commands)",
        ),
        of(
            Fate::Lost,
            Tone::Bad,
            "Lost (no controller creates these again)",
        ),
        (alone, Room::First),
        of(Fate::LeftTerminating, Tone::Caution, "Stay Terminating"),
        (left_out, Room::All),
        of(
            Fate::ComesBack,
            Tone::Good,
            "Come back by themselves (once reaped)",
        ),
        of(Fate::Finished, Tone::Quiet, "Finished already"),
        of(Fate::Stays, Tone::Quiet, "Stay on the node (never evicted)"),
    ];
    let unread = unread(&answer.errors, &answer.unseen);
    parts.into_iter().chain(unread).collect()
}

fn breaker(answer: &WhatIf) -> Vec<Block> {
    let total = answer.nodes_total;
    let count = match answer.nodes_not_ready {
        Some(not_ready) => format!("{not_ready} of {total} nodes would be NotReady."),
        None => format!("It could not be read how many of {total} nodes would be NotReady."),
    };
    let mut says = vec![Block::says(Tone::Plain, count)];
    if let Some(breaker) = &answer.breaker {
        let says_held = format!(
            "{}. {} to reap would wait until that changes, or until a person who knows that the nodes are dead runs it \
             with --max-not-ready-percent=100. The lines below say what happens then.",
            breaker.detail,
            counted(breaker.held, "pod", "pods")
        );
        says.push(Block::says(Tone::Plain, says_held));
    }
    if answer.kubernetes_stops_evicting {
        let stops = "In a zone where more than 2 nodes and at least 55 % are NotReady, Kubernetes evicts slowly, or not at \
                     all where the zone has up to 50 nodes. Pods there may not become Terminating. A zone that is dead as \
                     a whole, beside healthy ones, is evicted at full speed.";
        says.push(Block::says(Tone::Caution, stops));
    }
    says
}

fn entry(pod: &PodFate, many_nodes: bool) -> Entry {
    let owner = pod
        .owner
        .as_ref()
        .map(|owner| format!("{}/{}", owner.kind, owner.name));
    let node = many_nodes.then(|| format!("on {}", pod.node));
    let explained = matches!(pod.fate, Fate::NeedsPerson | Fate::LeftTerminating);
    let reason = pod.judgement.reason.filter(|_| explained);
    let detail = (explained || pod.fate == Fate::Stays)
        .then(|| Block::says(Tone::Quiet, &pod.judgement.detail));
    Entry {
        name: format!("{}/{}", pod.namespace, pod.name),
        facts: vec![
            phrases::owner(&pod.name, pod.owner.as_ref()),
            node.unwrap_or_default(),
        ],
        tag: reason.map(|reason| Tag {
            of: "reason",
            code: reason.as_str(),
        }),
        key: Key {
            namespace: Some(pod.namespace.clone()),
            verdict: pod.judgement.verdict,
            node: Some(pod.node.clone()),
            workloads: owner.into_iter().collect(),
            pods: 1,
            ..Key::default()
        },
        blocks: detail.into_iter().chain(pod.judgement.advice()).collect(),
        ..Entry::default()
    }
}

fn summary(answer: &WhatIf) -> String {
    let words = [
        (Fate::NeedsPerson, "needs you", "need you"),
        (Fate::Lost, "is lost", "are lost"),
        (Fate::ComesBack, "comes back", "come back"),
        (
            Fate::LeftTerminating,
            "stays Terminating",
            "stay Terminating",
        ),
        (Fate::Stays, "stays", "stay"),
        (Fate::Finished, "has finished", "have finished"),
    ];
    let parts = words.into_iter().filter_map(|(fate, one, many)| {
        let count = answer.summary.get(&fate).copied().unwrap_or_default();
        (count > 0).then(|| counted(count, one, many))
    });
    let parts = parts.collect::<Vec<_>>();
    if parts.is_empty() {
        "no pod is there".to_owned()
    } else {
        parts.join(", ")
    }
}
