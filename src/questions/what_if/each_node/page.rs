//! The forecast of each node as a page: a line a node, and those that nobody needs to look at as one.

use jiff::SignedDuration;

use super::{Change, Forecast, NodeForecast};
use crate::report::page::{Block, Entry, Page, Room, Section, Tone, fill, fit, unread};
use crate::report::text;
use crate::words::{clean, counted, spoken};

/// The lines of a text.
const LINES: usize = 98;

pub(super) fn page(answer: &Forecast) -> Page {
    let source = answer.snapshot.as_ref().map(|file| format!(" by {file},"));
    let summary = summary(answer);
    let mut page = Page {
        headline: summary.clone(),
        about: format!(
            "pod-reaper {}: what if one node died?{} as of {}. Nothing was changed.",
            answer.program_version,
            source.unwrap_or_default(),
            answer.judged_at.strftime("%F %TZ")
        ),
        settings: "Assumed: that node alone dies. A time counts from when Kubernetes calls it unreachable, until a run may \
                   reap the last of its pods: toleration, grace period and thresholds. what-if NODE names the pods."
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
    let mut unnamed = Vec::new();
    let parts = sections(answer, &mut unnamed);
    page.sections = fill(parts, LINES.saturating_sub(fixed));
    Page { unnamed, ..page }
}

fn sections<'a>(answer: &'a Forecast, unnamed: &'a mut Vec<String>) -> Vec<(Section, Room<'a>)> {
    let (harmless, bad): (Vec<_>, Vec<_>) =
        answer.nodes.iter().partition(|node| node.is_harmless());
    let lines = bad.iter().map(|node| Block::Entry(line(node)));
    let count = counted(bad.len(), "node", "nodes");
    let heading = format!("Something is away, lost or left, the worst first: {count}");
    let nodes = Section::new("nodes", heading, Tone::Bad, lines.collect());
    let name = move |blocks: Vec<Block>, lines: usize| {
        let blocks = fit(blocks, lines);
        let named = blocks
            .iter()
            .filter(|block| matches!(block, Block::Entry(_)));
        let folded = bad.iter().skip(named.count());
        let folded = folded.filter(|node| node.counts.needs_person > 0);
        unnamed.extend(
            folded.map(|node| clean(&format!("{} died: {}", node.node, says(node).join(", ")))),
        );
        blocks
    };
    let counts = || harmless.iter().map(|node| &node.counts);
    let most = counts().map(|counts| counts.comes_back).max();
    let longest = counts().map(|counts| counts.seconds).max();
    let all_back = most.zip(longest).map(|(most, longest)| {
        let (most, longest) = (counted(most, "pod", "pods"), time(longest));
        let says = format!("Up to {most} of a node, reaped after at most {longest}.");
        Block::says(Tone::Plain, says)
    });
    let heading = format!(
        "Everything comes back: {}",
        counted(harmless.len(), "node", "nodes")
    );
    let harmless = Section::new("harmless", heading, Tone::Good, Vec::from_iter(all_back));
    let changes = answer
        .changes
        .iter()
        .map(|change| Block::says(Tone::Plain, saves(change)));
    let worst = answer.nodes.first().map(|node| node.node.as_str());
    let heading = format!("What would help {}", worst.unwrap_or_default());
    let changes = Section::new("changes", heading, Tone::Plain, changes.collect());
    let parts = [
        (nodes, Room::Own(Box::new(name))),
        (harmless, Room::All),
        (changes, Room::All),
    ];
    let unread = unread(&answer.errors, &answer.unseen);
    parts.into_iter().chain(unread).collect()
}

fn line(node: &NodeForecast) -> Entry {
    Entry {
        name: node.node.clone(),
        facts: says(node),
        ..Entry::default()
    }
}

fn says(node: &NodeForecast) -> Vec<String> {
    let counts = &node.counts;
    let mut back = format!("{} of {} back", counts.comes_back, counts.evicted);
    if counts.wait_for_volume > 0 {
        let waits = counted(counts.wait_for_volume, "waits", "wait");
        back += &format!(" ({waits} for a volume)");
    }
    let says = |count, one: &str, many: &str| (count > 0).then(|| counted(count, one, many));
    let parts = [
        says(counts.needs_person, "needs you", "need you"),
        says(counts.lost, "lost", "lost"),
        says(counts.without_replica, "workload away", "workloads away"),
        says(counts.left_terminating, "stuck", "stuck"),
        says(counts.left_out, "left out", "left out"),
        Some(back),
        (counts.seconds > 0).then(|| format!("after {}", time(counts.seconds))),
        node.breaker_holds.then(|| "breaker holds".to_owned()),
    ];
    parts.into_iter().flatten().collect()
}

fn saves(
    Change {
        says,
        saves_pods,
        saves_seconds,
        ..
    }: &Change,
) -> String {
    let saved = match saves_pods {
        0 => time(*saves_seconds),
        pods => counted(*pods, "pod", "pods"),
    };
    format!("saves up to {saved}: {says}")
}

fn summary(answer: &Forecast) -> String {
    let whole = &answer.whole;
    let parts = [
        (whole.needs_person, "needs you", "need you"),
        (whole.lost, "is lost", "are lost"),
        (
            whole.without_replica,
            "workload has no other replica",
            "workloads have no other replica",
        ),
        (
            whole.left_terminating + whole.left_out,
            "stays Terminating",
            "stay Terminating",
        ),
        (whole.comes_back, "comes back", "come back"),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
    let parts = parts.map(|(count, one, many)| counted(count, one, many));
    let mut parts = parts.collect::<Vec<_>>();
    if parts.is_empty() {
        parts.push("no pod would be evicted".to_owned());
    } else if whole.seconds > 0 {
        parts.push(format!("reaped after at most {}", time(whole.seconds)));
    }
    let nodes = counted(answer.nodes.len(), "node", "nodes");
    let leaf = match answer.leaf_nodes {
        0 => String::new(),
        leaf => format!("; {} left out", counted(leaf, "leaf node", "leaf nodes")),
    };
    format!(
        "{nodes}, each dying alone, added up: {}{leaf}",
        parts.join(", ")
    )
}

fn time(seconds: i64) -> String {
    spoken(SignedDuration::from_secs(seconds))
}
