//! Random clusters. Every fact varies, but most pods are overdue: clusters in which no pod is reaped prove little.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use pod_reaper::{
    cli::Cli,
    facts::{
        Attachment, Census, ClaimFacts, ClaimState, ClusterFacts, JOB_TRACKING, Leaf, LeafKind, Lease,
        NodeFacts, NodeRead, Owner, PodFacts, ReadError, Ready, Requirement, Standing, Storage, Unread,
        VolumeFacts,
    },
    outcome::{Outcome, OutcomeCode},
    settings::Settings,
    source::Gathered,
};
use proptest::{collection::vec, option, prelude::*, sample::select};

/// A cluster, the options, and the outcomes of the pods.
#[derive(Debug, Clone)]
pub struct Case {
    pub gathered: Gathered,
    /// Nodes that were not read; the census counts them.
    pub further_nodes: Vec<Standing>,
    /// The arguments, with the program's name first.
    pub args: Vec<String>,
    /// The outcome of the pod with this number in its UID, or a multiple.
    pub outcomes: Vec<Outcome>,
    /// Sort keys for another order of the pods.
    pub order: Vec<u32>,
}

impl Case {
    pub fn settings(&self) -> Settings {
        Settings::from(Cli::try_from_args(self.args.iter().map(Into::into)).unwrap())
    }
}

/// Nodes n0 to n3 were read; a pod may also name n4.
const LOOKED_AT: usize = 4;
const MOST_PODS: usize = 8;

pub fn case() -> impl Strategy<Value = Case> {
    let outcomes = (0..OutcomeCode::ALL.len(), text()).prop_map(|(kind, says)| outcome(kind, says));
    let standing = (often(9), often(1), often(2)).prop_map(|(ready, leaf, control_plane)| Standing {
        ready,
        leaf,
        control_plane,
    });
    (gathered(), vec(standing, 0..16), args(), vec(outcomes, 1..4), vec(0..u32::MAX, MOST_PODS)).prop_map(
        |(mut gathered, further_nodes, args, outcomes, order)| {
            let facts = &mut gathered.facts;
            if let Census::Counted { .. } = facts.census {
                let known = facts.nodes.values().filter_map(NodeRead::known);
                facts.census = Census::count(known.map(Standing::from).chain(further_nodes.iter().copied()));
            }
            Case { gathered, further_nodes, args, outcomes, order }
        },
    )
}

fn gathered() -> impl Strategy<Value = Gathered> {
    let census = prop_oneof![
        8 => Just(Census::NotNeeded),
        6 => Just(Census::count([])),
        1 => text().prop_map(|why| Census::Unread(Unread(why))),
    ];
    let attachments = vec(option::of(text()), 0..3)
        .prop_map(|volumes| volumes.into_iter().map(attachment).collect::<Vec<_>>());
    let error = (text(), text()).prop_map(|(what, cause)| ReadError { what, cause });
    (
        vec(node(), LOOKED_AT),
        vec(pod(), 0..=MOST_PODS),
        census,
        attachments,
        vec(error, 0..2),
        vec(text(), 0..2),
    )
        .prop_map(|(nodes, pods, census, attachments, errors, unseen)| {
            let nodes =
                nodes.into_iter().enumerate().map(|(at, node)| named(node, at)).collect::<BTreeMap<_, _>>();
            let pods = pods.into_iter().enumerate().map(|(at, pod)| placed(pod, at, &nodes)).collect();
            let facts = ClusterFacts {
                now: now(),
                census,
                attachments: BTreeMap::from([("n0".to_owned(), attachments)]),
                node_count: nodes.len(),
                nodes,
                errors,
                unseen,
            };
            Gathered { facts, pods }
        })
}

/// The arguments. There are few thresholds, so that [`age`] can meet each exactly.
fn args() -> impl Strategy<Value = Vec<String>> {
    let threshold = || select(vec!["0s", "1m", "10m"]);
    let source = prop_oneof![
        Just(vec!["--snapshot=state.json".to_owned()]),
        Just(vec!["--yes".to_owned(), "--exit-on-manual".to_owned()]),
        Just(vec!["--dry-run".to_owned(), "--namespace-regex=^(shop|bank)-".to_owned()]),
        text().prop_map(|context| vec!["--dry-run=client".to_owned(), format!("--context=x{context}")]),
    ];
    let kinds =
        prop_oneof![6 => Just(None), 1 => Just(Some("statefulset")), 1 => Just(Some("Job,ReplicaSet"))];
    let cap = prop_oneof![4 => Just(0), 1 => 1..6_usize];
    let percent = prop_oneof![5 => Just(55), 2 => Just(100), 2 => 1..100_u8];
    (threshold(), threshold(), often(1), kinds, cap, percent, source).prop_map(
        |(older, not_ready, unreachable_only, kinds, cap, percent, source)| {
            let mut args = vec![
                "pod-reaper".to_owned(),
                format!("--reap-older-than={older}"),
                format!("--node-not-ready-for={not_ready}"),
                format!("--unreachable-only={unreachable_only}"),
                format!("--max-deletes={cap}"),
                format!("--max-not-ready-percent={percent}"),
            ];
            args.extend(kinds.map(|kinds| format!("--manual-owner-kind={kinds}")));
            args.extend(source);
            args
        },
    )
}

fn node() -> impl Strategy<Value = NodeRead> {
    let ready = prop_oneof![
        1 => Just(Ready::True), 4 => Just(Ready::False), 12 => Just(Ready::Unknown), 1 => Just(Ready::Absent)
    ];
    let hostname = option::of(select(vec!["h0", "h1", "n0", "n1", "node.example"]));
    let kind = select(vec![LeafKind::Kosmos, LeafKind::Virtual, LeafKind::Edge, LeafKind::Selected]);
    let leaf = (kind, vec(text(), 1..3), option::of(text())).prop_map(|(kind, marks, cluster)| Leaf {
        kind,
        maker: "somebody",
        marks,
        cluster,
    });
    let lease = prop_oneof![
        2 => Just(Ok(None)),
        10 => (option::weighted(0.9, age()), select(vec![10, 40])).prop_map(|(renewed, duration)| {
            Ok(Some(Lease { renewed: renewed.map(at_age), duration: SignedDuration::from_secs(duration) }))
        }),
        1 => text().prop_map(|why| Err(Unread(why))),
    ];
    let known = (
        ready,
        option::of(text()),
        (option::weighted(0.95, age()), option::weighted(0.5, age())),
        hostname,
        option::weighted(0.1, leaf),
        often(2),
        seldom(),
        lease,
    )
        .prop_map(
            |(ready, ready_reason, (since, tainted), hostname, leaf, control_plane, opted_out, lease)| {
                NodeRead::Known(NodeFacts {
                    name: String::new(),
                    uid: "node".to_owned(),
                    ready,
                    ready_reason,
                    ready_since: since.map(at_age),
                    tainted_since: tainted.map(at_age),
                    hostname: hostname.map(str::to_owned),
                    leaf,
                    control_plane,
                    opted_out,
                    lease,
                })
            },
        );
    prop_oneof![
        18 => known,
        1 => Just(NodeRead::Gone),
        1 => text().prop_map(|why| NodeRead::Unread(Unread(why))),
    ]
}

fn pod() -> impl Strategy<Value = PodFacts> {
    let node = prop_oneof![1 => Just(None), 30 => (0..=LOOKED_AT).prop_map(|at| Some(format!("n{at}")))];
    let owner = (select(vec!["StatefulSet", "ReplicaSet", "Job", "Übersetzung"]), text())
        .prop_map(|(kind, name)| Owner { kind: kind.to_owned(), name });
    let finalizers = prop_oneof![
        8 => Just(vec![]),
        2 => Just(vec![JOB_TRACKING.to_owned()]),
        1 => text().prop_map(|finalizer| vec![format!("x/{finalizer}")]),
        1 => text().prop_map(|finalizer| vec![JOB_TRACKING.to_owned(), format!("x/{finalizer}")]),
    ];
    let namespace_opted_out = prop_oneof![
        18 => Just(Ok(false)), 1 => Just(Ok(true)), 1 => text().prop_map(|why| Err(Unread(why)))
    ];
    let claims = prop_oneof![2 => Just(vec![]), 3 => vec(claim(), 1..3)];
    let identity = (select(vec!["shop", "bank"]), text(), node, option::of(owner), age());
    let marks = (seldom(), seldom(), namespace_opted_out, any::<bool>(), option::weighted(0.2, text()));
    (identity, marks, select(vec![None, Some(0), Some(30)]), finalizers, claims).prop_map(
        |((namespace, name, node, owner, age), marks, grace_seconds, finalizers, claims)| {
            let (mirror, opted_out, namespace_opted_out, finished, after_reap) = marks;
            PodFacts {
                namespace: namespace.to_owned(),
                name,
                uid: String::new(),
                resource_version: "7".to_owned(),
                node,
                owner,
                controller: None,
                deletion_deadline: at_age(age),
                grace_seconds,
                finalizers,
                finished,
                mirror,
                opted_out,
                namespace_opted_out,
                after_reap,
                claims,
            }
        },
    )
}

fn claim() -> impl Strategy<Value = ClaimFacts> {
    let state = prop_oneof![
        20 => (text(), volume()).prop_map(|(uid, volume)| ClaimState::Bound { uid, volume }),
        4 => Just(ClaimState::Absent),
        1 => Just(ClaimState::NotLookedUp),
        1 => text().prop_map(|why| ClaimState::Unread(Unread(why))),
        1 => (option::of(text()), option::of(text()))
            .prop_map(|(missing, phase)| ClaimState::WithoutVolume { missing, phase }),
    ];
    (text(), state).prop_map(|(name, state)| ClaimFacts { name, state })
}

fn volume() -> impl Strategy<Value = VolumeFacts> {
    let storage = prop_oneof![
        1 => text().prop_map(Storage::Local),
        1 => text().prop_map(Storage::HostPath),
        16 => Just(Storage::Driver),
    ];
    let key = select(vec!["metadata.name", "kubernetes.io/hostname", "topology.topolvm.io/node", "zone"]);
    let operator = prop_oneof![6 => Just("In"), 1 => Just("NotIn"), 1 => Just("Exists")];
    let value = select(vec![OWN_NAME, OWN_HOSTNAME, "n1", "zone-a", "zone-b"]).prop_map(str::to_owned);
    let requirement = (key, operator, vec(value, 0..3)).prop_map(|(key, operator, values)| Requirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values,
    });
    let affinity = vec(vec(requirement, 0..3), 0..3);
    (text(), option::of(select(vec!["Retain", "Delete"])), storage, affinity).prop_map(
        |(name, policy, storage, affinity)| VolumeFacts {
            name,
            reclaim_policy: policy.map(str::to_owned),
            storage,
            affinity,
        },
    )
}

/// Placeholders in a volume's affinity, replaced once its pod has a node.
const OWN_NAME: &str = "(its node's name)";
const OWN_HOSTNAME: &str = "(its node's hostname)";

fn named(mut node: NodeRead, at: usize) -> (String, NodeRead) {
    let name = format!("n{at}");
    if let NodeRead::Known(node) = &mut node {
        node.name.clone_from(&name);
    }
    (name, node)
}

fn placed(mut pod: PodFacts, at: usize, nodes: &BTreeMap<String, NodeRead>) -> PodFacts {
    pod.uid = format!("uid-{at}");
    let known = pod.node.as_ref().and_then(|name| nodes.get(name)).and_then(NodeRead::known);
    for claim in &mut pod.claims {
        let ClaimState::Bound { volume, .. } = &mut claim.state else { continue };
        for value in volume.affinity.iter_mut().flatten().flat_map(|requirement| &mut requirement.values) {
            let own = match (value.as_str(), known) {
                (OWN_NAME, Some(node)) => Some(&node.name),
                (OWN_HOSTNAME, Some(node)) => node.hostname.as_ref(),
                _ => None,
            };
            if let Some(own) = own {
                value.clone_from(own);
            }
        }
    }
    pod
}

fn attachment(volume: Option<String>) -> Attachment {
    Attachment { name: "csi-1".to_owned(), volume }
}

fn outcome(kind: usize, says: String) -> Outcome {
    match OutcomeCode::ALL[kind] {
        OutcomeCode::Deleted => Outcome::Deleted,
        OutcomeCode::Gone => Outcome::Gone,
        OutcomeCode::Changed => Outcome::Changed(says),
        OutcomeCode::NodeRecovered => Outcome::NodeRecovered,
        OutcomeCode::NodeChanged => Outcome::NodeChanged(says),
        OutcomeCode::Denied => Outcome::Denied(says),
        OutcomeCode::Failed => Outcome::Failed(says),
        OutcomeCode::StillThere => Outcome::StillThere,
        OutcomeCode::Unverified => Outcome::Unverified(says),
        OutcomeCode::Interrupted => Outcome::Interrupted(says),
        OutcomeCode::WouldDelete => Outcome::WouldDelete,
    }
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 56)
}

fn at_age(milliseconds: i64) -> Timestamp {
    now() - SignedDuration::from_millis(milliseconds)
}

/// An age in milliseconds: long ago, or at, just before or just after each threshold and lease duration.
fn age() -> impl Strategy<Value = i64> {
    const HOUR: i64 = 3_600_000;
    let edge =
        (select(vec![0, 10_000, 40_000, 60_000, 600_000]), -1..=1_i64).prop_map(|(edge, by)| edge + by);
    prop_oneof![24 => HOUR..=HOUR + 3, 6 => edge, 1 => Just(-HOUR)]
}

fn often(tenths: u32) -> impl Strategy<Value = bool> {
    prop::bool::weighted(f64::from(tenths) / 10.0)
}

fn seldom() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.03)
}

/// Mostly names, and sometimes text that a terminal, a shell or a line break could handle wrongly.
fn text() -> impl Strategy<Value = String> {
    let name =
        select(vec!["db-0", "db-1", "data", "unseal Vault after this pod has moved, then look at its log"]);
    let long = "a-name-of-many-letters-".repeat(6);
    let unusual = vec![
        String::new(),
        long.clone(),
        format!("{long} and {long}"),
        "\u{1b}[31mred\u{1b}[0m \u{7}\u{9b}2J".to_owned(),
        "one\nline\r\nanother\tcolumn\u{0}".to_owned(),
        "\u{202e}backwards\u{2066} \u{61c}\u{200f}".to_owned(),
        "漢字の名前 ".repeat(12),
        "it's $(echo \"quoted\"); \\ ".repeat(3),
    ];
    let any = vec(any::<char>(), 0..30).prop_map(String::from_iter);
    prop_oneof![12 => name.prop_map(str::to_owned), 2 => select(unusual), 1 => any]
}
