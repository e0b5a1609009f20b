//! Lays the forecast of each node out as a page: a line for each node with a loss, and one line for
//! all nodes whose pods come back by themselves.

use itertools::Itertools as _;

use super::{Change, Forecast, NodeForecast};
use crate::{
    questions::what_if::page::forecast_page,
    report::{
        Render,
        page::{Block, Entry, Page, Section, Tone, first, paragraphs},
        phrases::seconds,
    },
    words::{after, counted, counts},
};

const ASSUMED: &str = "Assumed: that node alone dies, and a zone has another node for its volumes. A time counts from when \
     Kubernetes calls it unreachable, until a run may reap the last of its pods: toleration and thresholds, and the grace period if the node has no lease. \
     what-if NODE names the pods.";

/// The most nodes that a text shows.
const NODES: usize = 40;

impl Render for Forecast {
    fn page(&self) -> Page {
        let asked = "what if one node died? As of";
        forecast_page(&self.head, asked, ASSUMED, &summary(self), sections(self))
    }
}

fn sections(forecast: &Forecast) -> Vec<Section> {
    let (held, others): (Vec<_>, Vec<_>) =
        forecast.nodes.iter().partition(|node| node.breaker_holds);
    let (harmless, bad): (Vec<_>, Vec<_>) = others.into_iter().partition(|node| node.is_harmless());
    let listed = |id, words: &str, nodes: &[&NodeForecast]| {
        let lines = nodes.iter().map(|node| Block::Entry(line(node)));
        let heading = format!("{words}: {}", counted(nodes.len(), "node", "nodes"));
        Section::new(id, heading, Tone::Bad, first(lines.collect(), NODES))
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
    let worst = forecast.nodes.first().map(|node| &node.node);
    let heading = after("What would help ", worst);
    let changes = paragraphs(forecast.changes.iter().map(saving));
    let changes = Section::new("changes", heading, Tone::Plain, changes);
    [held, nodes, harmless, changes]
        .into_iter()
        .chain(forecast.head.unread())
        .collect()
}

/// Returns the entry of a node. If there is no room for it, its line is in the log.
fn line(node: &NodeForecast) -> Entry {
    let columns = parts(node);
    let holds = node.breaker_holds.then_some("breaker holds");
    let log = columns.iter().map(String::as_str).chain(holds).join(", ");
    Entry {
        name: node.node.clone(),
        kind: "more".to_owned(),
        named: 1,
        log: vec![format!("{} died: {log}", node.node)],
        columns,
        ..Entry::default()
    }
}

/// Says how many of a node's pods are lost, left or back, and when the last of them is reaped.
fn parts(node: &NodeForecast) -> Vec<String> {
    let numbers = &node.counts;
    let waits = counts([(numbers.wait_for_volume, "waits|wait")])
        .next()
        .map(|waits| format!(" ({waits} for a volume)"));
    let back = format!("{} of {} back", numbers.comes_back, numbers.evicted);
    let time = (numbers.seconds > 0).then(|| format!("after {}", seconds(numbers.seconds)));
    counts([
        (numbers.needs_person, "needs you|need you"),
        (numbers.lost, "lost"),
        (
            numbers.without_replica,
            "workload without a replica|workloads without a replica",
        ),
        (numbers.left_terminating, "stuck"),
        (numbers.stays_down, "stays down|stay down"),
        (numbers.left_out, "left out"),
    ])
    .chain([back + &after("", waits)])
    .chain(time)
    .collect()
}

/// Says what a setting would save.
fn saving(
    Change {
        says,
        saves_pods,
        saves_seconds,
        ..
    }: &Change,
) -> String {
    let saved = match saves_pods {
        0 => seconds(*saves_seconds),
        pods => counted(*pods, "pod", "pods"),
    };
    format!("saves up to {saved}: {says}")
}

/// Sums up the forecasts of all nodes.
fn summary(forecast: &Forecast) -> String {
    let whole = &forecast.whole;
    let parts = [
        (whole.needs_person, "needs you|need you"),
        (whole.lost, "is lost|are lost"),
        (
            whole.without_replica,
            "workload has no other replica|workloads have no other replica",
        ),
        (
            whole.stays_down,
            "stays down, never evicted|stay down, never evicted",
        ),
        (
            whole.left_terminating + whole.left_out,
            "stays Terminating|stay Terminating",
        ),
        (whole.comes_back, "comes back|come back"),
    ];
    let mut parts = counts(parts).collect_vec();
    if parts.is_empty() {
        parts.push("no pod would be evicted".to_owned());
    } else if whole.seconds > 0 {
        parts.push(format!("reaped after at most {}", seconds(whole.seconds)));
    }
    let nodes = counted(forecast.nodes.len(), "node", "nodes");
    let leaf = counts([(
        forecast.leaf_nodes,
        "leaf node left out|leaf nodes left out",
    )])
    .next();
    format!(
        "{nodes}, each dying alone, added up: {}{}",
        parts.join(", "),
        after("; ", leaf)
    )
}
