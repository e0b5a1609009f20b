//! Lays the report of `what-if --each-node` out as a page: a line for each node with a loss, and one
//! line for all nodes whose pods are recreated automatically.

use itertools::Itertools as _;

use super::{
    Counts, NodeForecast, Report,
    page::{Block, ENTRIES, Entry, Page, Section, Tone, first, paragraphs},
    phrases::seconds,
    supposed::forecast_page,
};
use crate::words::{counted, counts, joined, prefixed};

const ASSUMED: &str = "Assumed: only that node dies, and its zone has another node for its volumes. A time is measured from the moment at which \
     Kubernetes marks the node unreachable until a run may reap the last of its pods. It adds up toleration and thresholds, and the \
     grace period if the node has no lease. what-if NODE names the pods.";

/// The most seconds by which the `eager` component shortens the wait for the next run: with it,
/// runs start every two minutes instead of every ten.
const EAGER: i64 = 480;

/// Returns the page of the report, whose `nodes` are sorted, the worst first.
pub fn page(report: &Report, nodes: &[NodeForecast]) -> Page {
    let all = all(report, nodes);
    forecast_page(report, ASSUMED, &all, &summary(nodes), sections(nodes))
}

fn sections(nodes: &[NodeForecast]) -> Vec<Section> {
    let worst = nodes.first();
    let (held, others): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| node.breaker_holds);
    let (harmless, bad): (Vec<_>, Vec<_>) = others.into_iter().partition(|node| is_harmless(node));
    let listed = |id, words: &str, nodes: &[&NodeForecast]| {
        let lines = nodes.iter().map(|node| Block::Entry(line(node)));
        let heading = format!("{words}: {}", counted(nodes.len(), "node", "nodes"));
        Section::new(id, heading, Tone::Bad, first(lines.collect(), ENTRIES))
    };
    let held = listed("held", "The breaker would hold", &held);
    let nodes = listed("nodes", "Nodes with lasting damage, the worst first", &bad);
    let numbers = || harmless.iter().map(|node| &node.counts);
    let most = numbers().map(|counts| counts.comes_back).max();
    let longest = numbers().map(|counts| counts.seconds).max();
    let all_back = most.zip(longest).map(|(most, longest)| {
        if most == 0 {
            return "No pod would be evicted.".to_owned();
        }
        let (most, longest) = (counted(most, "pod", "pods"), seconds(longest));
        format!("Up to {most} of a node, reaped after at most {longest}.")
    });
    let heading = format!(
        "Everything comes back: {}",
        counted(harmless.len(), "node", "nodes")
    );
    let harmless = Section::new("harmless", heading, Tone::Good, paragraphs(all_back));
    let heading = prefixed("What would help ", worst.map(|node| &node.node));
    let changes = paragraphs(worst.into_iter().flat_map(|node| changes(&node.counts)));
    let changes = Section::new("changes", heading, Tone::Plain, changes);
    vec![held, nodes, harmless, changes]
}

fn line(node: &NodeForecast) -> Entry {
    Entry {
        name: node.node.clone(),
        columns: parts(node),
        ..Entry::default()
    }
}

/// Says how many of a node's pods are lost, left or recreated, and when the last of them is reaped.
fn parts(node: &NodeForecast) -> Vec<String> {
    let numbers = &node.counts;
    let waits = counts([(numbers.wait_for_volume, "waits|wait")])
        .next()
        .map(|waits| format!(" ({waits} for a volume)"));
    let back = format!("{} of {} back", numbers.comes_back, numbers.evicted);
    let time = (numbers.seconds > 0).then(|| seconds(numbers.seconds));
    let losses = counts([
        (numbers.needs_person, "needs you|need you"),
        (numbers.lost, "lost"),
        (numbers.stays_pending, "stays Pending|stay Pending"),
        (
            numbers.without_replica,
            "workload without a replica|workloads without a replica",
        ),
        (numbers.left_terminating, "stuck"),
        (numbers.stays_down, "stays down|stay down"),
        (numbers.left_out, "left out"),
    ]);
    vec![
        prefixed("", joined(losses, ", ")),
        back + &prefixed("", waits),
        prefixed("after ", time),
    ]
}

/// Reports whether every pod is recreated without a user's help.
fn is_harmless(node: &NodeForecast) -> bool {
    let counts = &node.counts;
    let away = counts.lost + counts.stays_pending + counts.needs_person + counts.without_replica;
    let left = counts.left_terminating + counts.stays_down + counts.left_out;
    away + left == 0 && !node.breaker_holds
}

/// Lists the settings that would save pods or seconds, each with the most that it would save.
fn changes(counts: &Counts) -> impl Iterator<Item = String> + use<> {
    let eager = if counts.seconds > 0 { EAGER } else { 0 };
    let changes = [
        (
            "the `scratch` component (Helm: scratch.enabled), once the PVCs that you can afford to lose are annotated pod-reaper.io/scratch: \"true\"",
            counts.local,
            0,
        ),
        (
            "tolerationSeconds for node.kubernetes.io/unreachable in the pods that tolerate it forever: they would then be evicted",
            counts.stays_down,
            0,
        ),
        (
            "tolerationSeconds: 60 for node.kubernetes.io/unreachable in the pods that tolerate it longest",
            0,
            counts.seconds - counts.seconds_tolerating_less,
        ),
        (
            "the `eager` component (Helm: eager.enabled): a run every two minutes instead of every ten",
            0,
            eager,
        ),
    ];
    let saves = |(_, pods, time): &(&str, usize, i64)| *pods > 0 || *time > 0;
    changes.into_iter().filter(saves).map(|(what, pods, time)| {
        let saved = match pods {
            0 => seconds(time),
            pods => counted(pods, "pod", "pods"),
        };
        format!("saves up to {saved}: {what}")
    })
}

/// Counts the nodes of the forecast, and the nodes that are left out.
fn all(report: &Report, nodes: &[NodeForecast]) -> String {
    let leaf = report.summary.nodes.saturating_sub(nodes.len());
    let leaf = counts([(leaf, "leaf node left out|leaf nodes left out")]).next();
    format!(
        "{}, each dying alone{}",
        counted(nodes.len(), "node", "nodes"),
        prefixed("; ", leaf)
    )
}

/// Adds up the counts of all nodes.
fn summary(nodes: &[NodeForecast]) -> String {
    let sum = |of: fn(&Counts) -> usize| nodes.iter().map(|node| of(&node.counts)).sum::<usize>();
    let parts = [
        (sum(|it| it.needs_person), "needs you|need you"),
        (sum(|it| it.lost), "is lost|are lost"),
        (sum(|it| it.stays_pending), "stays Pending|stay Pending"),
        (
            sum(|it| it.without_replica),
            "workload has no other replica|workloads have no other replica",
        ),
        (
            sum(|it| it.stays_down),
            "stays down, never evicted|stay down, never evicted",
        ),
        (
            sum(|it| it.left_terminating + it.left_out),
            "stays Terminating|stay Terminating",
        ),
        (sum(|it| it.comes_back), "comes back|come back"),
    ];
    let mut parts = counts(parts).collect_vec();
    let longest = nodes.iter().map(|node| node.counts.seconds).max();
    let longest = longest.unwrap_or_default();
    if parts.is_empty() {
        parts.push("no pod would be evicted".to_owned());
    } else if longest > 0 {
        parts.push(format!("reaped after at most {}", seconds(longest)));
    }
    format!("added up: {}", parts.join(", "))
}
