//! A random cluster as facts. Many of the facts could not be read, lie on a boundary, or have strange names.

use crate::oracle::node_counts;
use crate::prelude::*;
use crate::world::pod::deletion;
use pod_reaper::{
    facts::{CountedNode, ReadError},
    outcome::Outcome,
};

/// A cluster, the options, and the outcomes of the pods.
#[derive(Debug, Clone)]
pub struct Case {
    pub gathered: Gathered,
    /// Nodes that were not read, but that the census counts.
    pub further_nodes: Vec<CountedNode>,
    /// The arguments, with the program's name first.
    pub args: Vec<String>,
    /// The outcomes, assigned to the pods in this order and repeated as often as needed.
    pub outcomes: Vec<Outcome>,
    /// Sort keys for another order of the pods.
    pub order: Vec<usize>,
}

impl Case {
    pub fn random(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut args = options::args(&mut dice);
        args.extend(match dice.below(3) {
            0 => vec!["--snapshot=state.json".to_owned()],
            1 => vec!["--yes".to_owned()],
            _ => vec![
                "--dry-run".to_owned(),
                format!("--context=x{}", text(&mut dice)),
            ],
        });
        let mut gathered = World::random(&mut dice).facts(start());
        let further_nodes = leave_out_idle_nodes(&mut dice, &mut gathered);
        let Gathered { facts, pods, .. } = &mut gathered;
        for node in facts.nodes.values_mut() {
            change_node(&mut dice, node);
        }
        for (number, pod) in pods.iter_mut().enumerate() {
            change_pod(&mut dice, pod);
            pod.uid = format!("uid-{number}").into();
        }
        for attachment in facts.attachments.values_mut().flatten() {
            let volume = dice.permille(700).then(|| text(&mut dice));
            *attachment = Attachment {
                volume,
                ..attachment.clone()
            };
        }
        if dice.permille(300) {
            facts.unseen.push(text(&mut dice));
            let (what, cause) = (text(&mut dice), text(&mut dice));
            facts.errors.push(ReadError { what, cause });
        }
        let known = facts.nodes.values().filter_map(NodeRead::known);
        let known = known.map(counted_node);
        facts.node_counts = match dice.weigh(&[(8, 0), (6, 1), (1, 2)]) {
            0 => NodeCounts::NotNeeded,
            1 => node_counts(known.chain(further_nodes.iter().cloned())),
            _ => NodeCounts::Unread(Unread(text(&mut dice))),
        };
        facts.clock = dice.permille(30).then(|| text(&mut dice));
        let outcomes = (0..3).map(|_| outcome(&mut dice)).collect();
        let order = pods.iter().map(|_| dice.below(1 << 16)).collect();
        Self {
            gathered,
            further_nodes,
            args,
            outcomes,
            order,
        }
    }

    pub fn settings(&self) -> Settings {
        options::settings(&self.args)
    }
}

/// Removes most of the nodes without a pod. Returns how the breaker counts them.
fn leave_out_idle_nodes(dice: &mut Dice, gathered: &mut Gathered) -> Vec<CountedNode> {
    let Gathered { facts, pods, .. } = gathered;
    let busy = |name: &String| pods.iter().any(|pod| pod.node.as_ref() == Some(name));
    let mut further = Vec::new();
    facts.nodes.retain(|name, node| {
        let stays = dice.permille(if busy(name) { 980 } else { 300 });
        further.extend(node.known().filter(|_| !stays).map(counted_node));
        stays
    });
    further
}

fn change_node(dice: &mut Dice, read: &mut NodeRead) {
    let NodeRead::Known(node) = read else {
        return;
    };
    if dice.permille(30) {
        *read = NodeRead::Unread(Unread(text(dice)));
        return;
    }
    if dice.permille(40) {
        node.unread_lease = Some(Unread(text(dice)));
    }
    if dice.permille(40) {
        node.named_by = Some(Err(Unread(text(dice))));
    }
    node.others_forbidden = dice.permille(40);
    for mark in &mut node.fenced {
        mark.mark = text(dice);
    }
    if let Some(leaf) = &mut node.leaf {
        (leaf.maker, leaf.marks) = ("somebody", vec![text(dice), text(dice)]);
        leaf.cluster = dice.permille(500).then(|| text(dice));
    }
    node.ready_reason = dice.permille(500).then(|| text(dice));
    change_times(dice, node);
}

/// Sets times of the node just before, on or just after each moment at which their meaning changes.
fn change_times(dice: &mut Dice, node: &mut NodeFacts) {
    let since = node.ready_since.max(node.tainted_since).unwrap_or(start());
    for heard in &mut node.heard {
        heard.at = match dice.weigh(&[(30, 0), (3, 1), (2, 2)]) {
            0 => heard.at,
            // By the period of all sources, or by the failure.
            1 => start() - SignedDuration::from_mins(11) + about(dice),
            _ => since + about(dice),
        };
    }
    let last = node.heard.iter().map(|heard| heard.at).max();
    for mark in &mut node.fenced {
        if dice.permille(200) {
            mark.set_by = last.map(|last| last + about(dice));
        }
    }
    for time in [&mut node.ready_since, &mut node.tainted_since] {
        if dice.permille(120) {
            *time = Some(edge(dice));
        }
    }
}

fn change_pod(dice: &mut Dice, pod: &mut PodFacts) {
    pod.name = text(dice);
    if dice.permille(100) {
        let deletion = deletion(pod);
        let grace = SignedDuration::from_secs(deletion.grace_seconds.unwrap_or_default());
        deletion.deadline = edge(dice) + dice.pick(&[SignedDuration::ZERO, grace]);
    }
    if dice.permille(40) {
        pod.in_namespace = Some(Err(Unread(text(dice))));
    }
    for owner in [&mut pod.owner, &mut pod.workload].into_iter().flatten() {
        let machine = owner.name.starts_with("virt-launcher-");
        owner.name = format!(
            "{}{}",
            if machine { "virt-launcher-" } else { "" },
            text(dice)
        );
    }
    for own in [&mut pod.after_reap, &mut pod.own_disk] {
        *own = own.take().map(|_| text(dice));
    }
    for path in &mut pod.host_paths {
        *path = format!("/{}", text(dice));
    }
    if dice.permille(40) && pod.set_wants.is_some() {
        pod.set_wants = Some(Err(Unread(text(dice))));
    }
    for finalizer in pod
        .finalizers
        .iter_mut()
        .filter(|name| name.starts_with("x/"))
    {
        *finalizer = format!("x/{}", text(dice));
    }
    for (number, claim) in pod.claims.iter_mut().enumerate() {
        claim.name = format!("{}{number}", text(dice));
        if dice.permille(20) {
            claim.state = Some(ClaimState::Unread(Unread(text(dice))));
        }
        if let Some(ClaimState::WithoutVolume { missing, phase }) = &mut claim.state {
            *missing = missing.take().map(|_| text(dice));
            *phase = dice.permille(500).then(|| text(dice));
        }
    }
    for volume in volumes_mut(pod) {
        if let Some(driver) = volume.driver.as_mut().filter(|_| dice.permille(100)) {
            driver.attaches = Some(Err(Unread(text(dice))));
        }
        volume.name = text(dice);
        volume.reclaim_policy = dice
            .pick(&[None, Some("Retain"), Some("Delete")])
            .map(str::to_owned);
        for AffinityTerm { satisfied_by, .. } in &mut volume.affinity {
            let answer = satisfied_by.take();
            *satisfied_by = if dice.permille(90) {
                Some(Err(Unread(text(dice))))
            } else {
                answer
            };
        }
    }
}

fn outcome(dice: &mut Dice) -> Outcome {
    let (code, says) = (dice.pick(&OutcomeCode::ALL), text(dice));
    match code {
        OutcomeCode::Deleted => Outcome::Deleted,
        OutcomeCode::Gone => Outcome::Gone,
        OutcomeCode::Changed => Outcome::Changed(says),
        OutcomeCode::NodeRecovered => Outcome::NodeRecovered,
        OutcomeCode::NodeChanged => Outcome::NodeChanged(says),
        OutcomeCode::OptedOut => Outcome::OptedOut,
        OutcomeCode::Denied => Outcome::Denied(says),
        OutcomeCode::Failed => Outcome::Failed(says),
        OutcomeCode::StillThere => Outcome::StillThere,
        OutcomeCode::Unverified => Outcome::Unverified(says),
        OutcomeCode::Interrupted => Outcome::Interrupted(says),
        OutcomeCode::WouldDelete => Outcome::WouldDelete,
    }
}

/// A millisecond before, none or one after.
fn about(dice: &mut Dice) -> SignedDuration {
    SignedDuration::from_millis(dice.pick(&[-1, 0, 1]))
}

/// A moment close to a threshold, to a period of a source, to twelve times that period, or to a day ago.
fn edge(dice: &mut Dice) -> Timestamp {
    let seconds = [
        -3_600, -30, 0, 10, 40, 60, 120, 300, 480, 600, 660, 720, 3_600, 7_200, 86_400,
    ];
    start() - SignedDuration::from_secs(dice.pick(&seconds)) + about(dice)
}

/// Usually a name, and sometimes text that a terminal, a shell or a line break could handle wrongly.
fn text(dice: &mut Dice) -> String {
    let names = [
        "db-0",
        "db-1",
        "data",
        "unseal Vault after this pod has moved, then look at its log",
    ];
    let long = "a-name-of-many-letters-";
    match dice.weigh(&[(24, 0), (4, 1), (2, 2)]) {
        0 => dice.pick(&names).to_owned(),
        1 => match dice.below(8) {
            0 => String::new(),
            1 => long.repeat(6),
            2 => format!("{} and {}", long.repeat(6), long.repeat(6)),
            3 => "\u{1b}[31mred\u{1b}[0m \u{7}\u{9b}2J".to_owned(),
            4 => "one\nline\r\nanother\tcolumn\u{0}".to_owned(),
            5 => "\u{202e}backwards\u{2066} \u{61c}\u{200f}".to_owned(),
            6 => "漢字の名前 ".repeat(12),
            _ => "it's $(echo \"quoted\"); \\ ".repeat(3),
        },
        _ => any_text(dice),
    }
}

/// Any characters of a Unicode plane. All planes are equally likely.
fn any_text(dice: &mut Dice) -> String {
    let mut letter = || {
        let end = dice.pick(&[0x80, 0x800, 0x1_0000, 0x11_0000]);
        u32::try_from(dice.below(end)).ok().and_then(char::from_u32)
    };
    (0..20).filter_map(|_| letter()).collect()
}
