//! Lays a forecast out as a page: pods that would need a person, or would be lost, come first.

use super::{Fate, PodFate, WhatIf, Workload};
use crate::{
    questions::Head,
    report::{
        Render,
        page::{Block, Entry, Page, Section, Tag, Tone, filled, first, paragraphs},
        rows,
    },
    words::{after, counted, counts, joined},
};

const ASSUMED: &str = "Assumed: the kubelet is silent for longer than every toleration, grace period and threshold. Whether the \
     scheduler then finds another node for the pods is not checked.";

/// The most rows of a section that a text shows.
const ROWS: usize = 8;

impl Render for WhatIf {
    fn page(&self) -> Page {
        let asked = format!("what if {} died? As of", self.nodes.join(", "));
        forecast_page(&self.head, &asked, ASSUMED, &summary(self), sections(self))
    }
}

/// Returns the page of a forecast, of named nodes or of each node. `assumed` says what it assumes.
pub fn forecast_page(
    head: &Head,
    asked: &str,
    assumed: &str,
    summary: &str,
    sections: Vec<Section>,
) -> Page {
    let lead = format!("Summary: {summary}. Exit code {}.", head.exit.code());
    Page {
        about: head.about(asked),
        settings: assumed.to_owned(),
        lead: vec![Block::paragraph(Tone::Strong, lead)],
        sections: filled(sections),
        ..Page::default()
    }
}

fn sections(forecast: &WhatIf) -> Vec<Section> {
    let mut blocks = paragraphs([held(forecast)]);
    blocks.extend(evicts_slowly(forecast));
    let (id, heading, tone) = match &forecast.breaker {
        Some(breaker) => {
            let heading = format!("The breaker would hold the run ({})", breaker.reason);
            ("breaker", heading, Tone::Bad)
        }
        None => ("nodes", "The nodes".to_owned(), Tone::Quiet),
    };
    let section = Some(Section::new(id, heading, tone, blocks));
    let (hold, of_nodes) = match forecast.breaker {
        Some(_) => (section, None),
        None => (None, section),
    };
    let of_fate = |fate: Fate, tone, heading: &str| {
        let pods = forecast
            .pods
            .iter()
            .filter(|pod| pod.fate == fate)
            .map(|pod| entry(pod, forecast.nodes.len() == 1));
        let heading = format!("{heading}: {}", forecast.summary[&fate]);
        let rows = rows(pods.collect(), ROWS, |entry| {
            (entry.kind.clone(), entry.workloads.clone())
        });
        Section::new(fate.as_str(), heading, tone, rows)
    };
    let workloads = forecast.workloads.iter().map(|workload| {
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
    let alone = format!("No second replica anywhere: {}", forecast.workloads.len());
    let left_out = (forecast.left_out > 0).then_some(
        "These pods are in namespaces that the namespace options leave out. They would be evicted and stay Terminating.",
    );
    let not_reaped = format!("Not reaped: {}", forecast.left_out);
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
        Section::new(
            "workloads",
            alone,
            Tone::Bad,
            first(paragraphs(workloads), ROWS),
        ),
        of_fate(Fate::LeftTerminating, Tone::Caution, "Stay Terminating"),
        Section::new("left-out", not_reaped, Tone::Caution, paragraphs(left_out)),
        of_fate(
            Fate::ComesBack,
            Tone::Good,
            "Come back by themselves (once reaped)",
        ),
        of_fate(Fate::Finished, Tone::Quiet, "Finished already"),
        of_fate(Fate::Stays, Tone::Quiet, "Stay on the node (never evicted)"),
    ];
    let unread = forecast.head.unread();
    let parts = hold.into_iter().chain(parts).chain(of_nodes);
    parts.chain(unread).collect()
}

/// Says what the breaker would do or, if it would do nothing, how many nodes would be NotReady.
fn held(forecast: &WhatIf) -> String {
    let total = forecast.nodes_total;
    match (&forecast.breaker, forecast.nodes_not_ready) {
        (Some(breaker), _) => format!(
            "{}. {} to reap would wait until that changes, or until a person who knows that the nodes are dead runs it with \
             --max-not-ready-percent=100. The lines below say what happens then.",
            breaker.detail,
            counted(breaker.held, "pod", "pods")
        ),
        (None, Some(not_ready)) => format!("{not_ready} of {total} would be NotReady."),
        (None, None) => format!("It could not be read how many of {total} would be NotReady."),
    }
}

/// Says what Kubernetes would do about so many NotReady nodes.
fn evicts_slowly(forecast: &WhatIf) -> Option<Block> {
    let stops = "In a zone where more than 2 nodes and at least 55 % are NotReady, Kubernetes evicts slowly, or not at \
                 all where the zone has up to 50 nodes. Pods there may not become Terminating. A zone that is dead as \
                 a whole, beside healthy ones, is evicted at full speed.";
    forecast
        .kubernetes_stops_evicting
        .then(|| Block::paragraph(Tone::Caution, stops))
}

/// Returns the entry of a pod. On the page of an `only_node`, it does not repeat the node's name.
fn entry(pod: &PodFate, only_node: bool) -> Entry {
    let explained = matches!(pod.fate, Fate::NeedsPerson | Fate::LeftTerminating);
    let reason = pod.judgement.reason.filter(|_| explained);
    let detail = (explained || pod.fate == Fate::Stays)
        .then(|| Block::paragraph(Tone::Quiet, &pod.judgement.detail));
    let node = Some(&pod.node);
    let mut entry = Entry::of_pod(&pod.namespace, &pod.name, pod.owner.as_ref(), node);
    if only_node {
        // The node is the last column.
        entry.columns.pop();
    }
    Entry {
        tag: reason.map(|reason| Tag {
            kind: "reason",
            code: reason.as_str(),
        }),
        kind: after("", reason),
        blocks: detail.into_iter().chain(pod.judgement.blocks()).collect(),
        ..entry
    }
}

/// Counts the pods by fate.
fn summary(forecast: &WhatIf) -> String {
    let words = [
        (Fate::NeedsPerson, "needs you|need you"),
        (Fate::Lost, "is lost|are lost"),
        (Fate::ComesBack, "comes back|come back"),
        (Fate::LeftTerminating, "stays Terminating|stay Terminating"),
        (Fate::Stays, "stays|stay"),
        (Fate::Finished, "has finished|have finished"),
    ]
    .map(|(fate, words)| (forecast.summary[&fate], words));
    joined(counts(words), ", ").unwrap_or("no pod is there".to_owned())
}
