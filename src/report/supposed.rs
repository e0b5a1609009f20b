//! Lays the report of `what-if` out as a page. Pods that would need you, or would be lost, come
//! first.

use super::{
    BreakerEntry, Fate, PodEntry, Report, Supposed, Workload,
    layout::words,
    page::{
        Block, ENTRIES, Entry, Line, PODS, Page, Section, Tag, Tone, advised, filled, first,
        incomplete, paragraphs, unread_sections,
    },
    phrases,
};
use crate::words::{counted, counts, joined, prefixed};

const ASSUMED: &str = "Assumed: the kubelet has been silent for longer than every toleration, grace period and threshold. Whether a pod fits \
     another node is judged only by nodeSelector and required node affinity, not by free CPU and memory, taints or other rules of \
     the scheduler. A time is measured from the moment at which Kubernetes marks the node unreachable until a run may reap the last \
     of its pods. It adds up toleration and thresholds, and the grace period if the node has no lease.";

/// Returns the page of the report.
pub fn page(report: &Report, supposed: &Supposed) -> Page {
    let summary = summary(report);
    forecast_page(
        report,
        ASSUMED,
        &nodes(report, supposed),
        &summary,
        sections(report, supposed),
    )
}

/// Returns the page of a forecast, for named nodes or for each node. `assumed` says what the
/// forecast assumes, `nodes` which nodes it supposes dead.
pub fn forecast_page(
    report: &Report,
    assumed: &str,
    nodes: &str,
    summary: &str,
    sections: Vec<Section>,
) -> Page {
    let mut head = incomplete(report.incomplete.as_ref())
        .into_iter()
        .collect::<Vec<_>>();
    head.push(Line::new("NODES", Tone::Plain, nodes));
    head.push(Line::new(PODS, Tone::Strong, summary));
    let unread = unread_sections(&report.errors, &report.unseen);
    Page {
        headline: summary.to_owned(),
        about: phrases::about(report),
        cluster: prefixed("", phrases::cluster(report)),
        settings: format!("{} {assumed}", phrases::settings(report)),
        head,
        sections: filled(sections.into_iter().chain(unread)),
        words: words(report),
    }
}

fn sections(report: &Report, supposed: &Supposed) -> Vec<Section> {
    let slowly = evicts_slowly(supposed);
    let hold = report.breaker.as_ref().map(|breaker| {
        let heading = format!("The breaker would hold the run ({})", breaker.reason);
        let mut blocks = paragraphs([held(breaker)]);
        blocks.extend(slowly.clone());
        Section::new("breaker", heading, Tone::Bad, blocks)
    });
    let of_nodes = slowly.filter(|_| hold.is_none());
    let of_nodes =
        of_nodes.map(|block| Section::new("nodes", "The nodes", Tone::Quiet, vec![block]));
    let of_fate = |fate: Fate, tone, heading: &str| {
        let pods = report.pods.iter().filter(|pod| pod.fate == Some(fate));
        let pods = pods.map(|pod| entry(pod, supposed.nodes.len() == 1));
        let heading = format!("{heading}: {}", with_fate(report, fate));
        let rows = pods.map(Block::Entry).collect::<Vec<_>>();
        let blocks = match fate {
            _ if rows.is_empty() => rows,
            Fate::NeedsPerson | Fate::LeftTerminating => first(rows, ENTRIES),
            _ => vec![Block::Pods(rows)],
        };
        Section::new(fate.as_str(), heading, tone, blocks)
    };
    let workloads = supposed.workloads.iter().map(|workload| {
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
        format!("{namespace}  {kind}/{name}  {replicas}")
    });
    let alone = format!("No second replica anywhere: {}", supposed.workloads.len());
    let left_out = (supposed.counts.left_out > 0).then_some(
        "These pods are in namespaces that the namespace options leave out. They would be evicted and stay Terminating.",
    );
    let not_reaped = format!("Not reaped: {}", supposed.counts.left_out);
    let reaped = match supposed.counts.seconds {
        0 => "once reaped".to_owned(),
        seconds => format!("once reaped, after at most {}", phrases::seconds(seconds)),
    };
    let comes_back = format!("Come back by themselves ({reaped})");
    let parts = [
        of_fate(
            Fate::NeedsPerson,
            Tone::Bad,
            "Would need you (the report of the real run has the commands)",
        ),
        of_fate(
            Fate::Lost,
            Tone::Bad,
            "Lost (no controller creates these again)",
        ),
        of_fate(
            Fate::StaysPending,
            Tone::Bad,
            "Stay Pending (once reaped; no other node fits)",
        ),
        Section::new(
            "workloads",
            alone,
            Tone::Bad,
            first(paragraphs(workloads), ENTRIES),
        ),
        of_fate(Fate::LeftTerminating, Tone::Caution, "Stay Terminating"),
        Section::new("left-out", not_reaped, Tone::Caution, paragraphs(left_out)),
        of_fate(Fate::ComesBack, Tone::Good, &comes_back),
        of_fate(Fate::Finished, Tone::Quiet, "Finished already"),
        of_fate(Fate::Stays, Tone::Quiet, "Stay on the node (never evicted)"),
    ];
    hold.into_iter().chain(parts).chain(of_nodes).collect()
}

/// Says how many nodes would be NotReady.
fn nodes(report: &Report, supposed: &Supposed) -> String {
    let total = report.summary.nodes;
    match supposed.nodes_not_ready {
        Some(not_ready) => format!("{not_ready} of {total} would be NotReady"),
        None => format!("how many of {total} would be NotReady could not be read"),
    }
}

/// Says what the breaker would hold.
fn held(breaker: &BreakerEntry) -> String {
    format!(
        "{}. {} to reap would wait until that changes, or until somebody who knows that the nodes are dead runs it with \
         --max-not-ready-percent=100. The lines below say what happens then.",
        breaker.detail,
        counted(breaker.held, "pod", "pods")
    )
}

/// Says that Kubernetes would evict slowly or not at all, if so many nodes would be NotReady.
fn evicts_slowly(supposed: &Supposed) -> Option<Block> {
    let stops = "In a zone where more than 2 nodes and at least 55% are NotReady, Kubernetes evicts slowly, or not at \
                 all where the zone has up to 50 nodes. Pods there may not become Terminating. A zone that is dead as \
                 a whole, beside healthy ones, is evicted at full speed.";
    supposed
        .kubernetes_stops_evicting
        .then(|| Block::paragraph(Tone::Caution, stops))
}

/// Returns the entry of a pod. On the page of an `only_node`, it does not repeat the node's name.
fn entry(pod: &PodEntry, only_node: bool) -> Entry {
    let explained = matches!(pod.fate, Some(Fate::NeedsPerson | Fate::LeftTerminating));
    let reason = pod.reason.filter(|_| explained);
    let detail = (explained || pod.fate == Some(Fate::Stays))
        .then(|| Block::paragraph(Tone::Quiet, &pod.detail));
    let note = pod.note.as_ref();
    let note = note.map(|note| Block::labelled("Note", Tone::Caution, note));
    let (owner, node) = (pod.owner.as_ref(), pod.node.as_ref());
    let mut entry = Entry::of_pod(&pod.namespace, &pod.name, owner, node);
    if only_node {
        // The node is the last column.
        entry.columns.pop();
    }
    let blocks = detail.into_iter().chain(advised(&pod.advice)).chain(note);
    let blocks = blocks.collect::<Vec<_>>();
    Entry {
        tag: reason.map(|reason| Tag {
            kind: "reason",
            code: reason.as_str(),
        }),
        brief: Some(pod.name.clone()).filter(|_| blocks.is_empty()),
        // The row of a table has no room for the steps.
        is_card: blocks.iter().any(|block| matches!(block, Block::Steps(_))),
        is_open: true,
        blocks,
        ..entry
    }
}

/// Counts the pods by fate.
fn summary(report: &Report) -> String {
    let words = [
        (Fate::NeedsPerson, "needs you|need you"),
        (Fate::Lost, "is lost|are lost"),
        (Fate::StaysPending, "stays Pending|stay Pending"),
        (Fate::ComesBack, "comes back|come back"),
        (Fate::LeftTerminating, "stays Terminating|stay Terminating"),
        (Fate::Stays, "stays|stay"),
        (Fate::Finished, "has finished|have finished"),
    ]
    .map(|(fate, words)| (with_fate(report, fate), words));
    joined(counts(words), ", ").unwrap_or("no pod is there".to_owned())
}

fn with_fate(report: &Report, fate: Fate) -> usize {
    let pods = report.pods.iter();
    pods.filter(|pod| pod.fate == Some(fate)).count()
}
