//! Random clusters. Every fact varies, but most pods are overdue: clusters in which no pod is reaped prove little.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use pod_reaper::{
    cli::Cli,
    facts::{
        AffinityTerm, Attachment, Census, ClaimFacts, ClaimState, ClusterFacts, FencingMark, Heard,
        Identity, JOB_TRACKING, Leaf, LeafKind, NodeFacts, NodeRead, Owner, PodFacts, ReadError,
        Ready, Requirement, SignBy, Standing, Storage, Unread, VolumeFacts,
    },
    outcome::{Outcome, OutcomeCode},
    settings::Settings,
    source::Gathered,
};
use pod_reaper_test_support::oracle::standing;
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
    let marks = (often(1), often(2), often(1), often(2));
    let failed = prop_oneof![1 => age(), 2 => (-1..=1_i64).prop_map(|by| 24 * HOUR + by)];
    let further = (
        often(7),
        marks,
        option::weighted(0.9, failed),
        any::<bool>(),
    )
        .prop_map(
            |(ready, (leaf, control_plane, reserved, cordoned), since, terminating)| {
                let since = since.map(at_age).filter(|_| !ready);
                // Of one that failed, mostly that it was put away.
                let cordoned = cordoned || !ready && since.is_some();
                Standing {
                    ready,
                    leaf,
                    control_plane,
                    reserved,
                    cordoned,
                    since,
                    terminating,
                }
            },
        );
    (
        gathered(),
        vec(further, 0..16),
        args(),
        vec(outcomes, 1..4),
        vec(0..u32::MAX, MOST_PODS),
    )
        .prop_map(|(mut gathered, further_nodes, args, outcomes, order)| {
            let facts = &mut gathered.facts;
            if let Census::Counted { .. } = facts.census {
                let known = facts.nodes.values().filter_map(NodeRead::known);
                let known = known.map(|node| standing(node, facts.now, true));
                facts.census = Census::count(facts.now, known.chain(further_nodes.iter().copied()));
            }
            Case {
                gathered,
                further_nodes,
                args,
                outcomes,
                order,
            }
        })
}

fn gathered() -> impl Strategy<Value = Gathered> {
    let census = prop_oneof![
        8 => Just(Census::NotNeeded),
        6 => Just(Census::count(now(), [])),
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
            let nodes = nodes
                .into_iter()
                .enumerate()
                .map(|(at, node)| named(node, at))
                .collect::<BTreeMap<_, _>>();
            let pods = pods
                .into_iter()
                .enumerate()
                .map(|(at, pod)| placed(pod, at, &nodes))
                .collect();
            let facts = ClusterFacts {
                place: None,
                now: now(),
                census,
                traits: BTreeMap::new(),
                attachments: BTreeMap::from([("n0".to_owned(), attachments)]),
                node_count: nodes.len(),
                unasked: BTreeMap::new(),
                unmatched_namespaces: None,
                on_ready_nodes: 0,
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
        Just(vec![
            "--dry-run".to_owned(),
            "--namespace-regex=^(shop|bank)-".to_owned()
        ]),
        text().prop_map(|context| vec![
            "--dry-run=client".to_owned(),
            format!("--context=x{context}")
        ]),
    ];
    let kinds = select(vec!["statefulset", "Job,ReplicaSet", "deployments,CRONJOB"]);
    // What a sign of life protects. Clusters in which it protects everything prove little.
    let alive = prop_oneof![
        5 => Just(vec![]),
        1 => Just(vec!["--kubelet-alive=hold-unique"]),
        1 => Just(vec!["--kubelet-alive=hold"]),
        3 => Just(vec!["--kubelet-alive=reap"]),
    ];
    // What they select is a mark of the nodes already.
    let selectors = (
        option::weighted(
            0.2,
            Just("--fenced-node-selector=annotation:example.org/off=yes;taint:off"),
        ),
        option::weighted(0.2, Just("--leaf-node-selector=type=edge")),
    );
    let cap = prop_oneof![4 => Just(0), 1 => 1..6_usize];
    let percent = prop_oneof![5 => Just(55), 2 => Just(100), 2 => 1..100_u8];
    let kinds = option::weighted(0.25, kinds);
    (
        threshold(),
        threshold(),
        alive,
        kinds,
        selectors,
        (cap, percent, any::<bool>()),
        source,
    )
        .prop_map(
            |(older, not_ready, alive, kinds, (fenced, leaf), (cap, percent, scratch), source)| {
                let mut args = vec![
                    "pod-reaper".to_owned(),
                    format!("--reap-older-than={older}"),
                    format!("--node-not-ready-for={not_ready}"),
                    format!("--max-deletes={cap}"),
                    format!("--max-not-ready-percent={percent}"),
                ];
                args.extend(
                    alive
                        .into_iter()
                        .chain(fenced)
                        .chain(leaf)
                        .map(str::to_owned),
                );
                args.extend(kinds.map(|kinds| format!("--manual-owner-kind={kinds}")));
                args.extend(scratch.then(|| "--reap-scratch".to_owned()));
                args.extend(source);
                args
            },
        )
}

fn node() -> impl Strategy<Value = NodeRead> {
    let ready = prop_oneof![
        1 => Just(Ready::True), 2 => Just(Ready::False), 15 => Just(Ready::Unknown), 1 => Just(Ready::Absent)
    ];
    let hostname = option::of(select(vec!["h0", "h1", "n0", "n1", "node.example"]));
    let kind = select(vec![
        LeafKind::Kosmos,
        LeafKind::Virtual,
        LeafKind::Edge,
        LeafKind::Selected,
    ]);
    let leaf =
        (kind, vec(text(), 1..3), option::of(text())).prop_map(|(kind, marks, cluster)| Leaf {
            kind,
            maker: "somebody",
            marks,
            cluster,
        });
    // Ages, or how much later than the node's NotReady-since, in milliseconds.
    let when = prop_oneof![5 => age().prop_map(Ok), 2 => (-1..=1_i64).prop_map(Err)];
    let heard = SOURCES.map(|(by, period)| (Just(by), Just(period), when.clone()));
    let [lease, problem, agent, virt, server] = heard;
    let some = |often, source| option::weighted(often, source);
    let heard = (
        some(0.8, lease),
        any::<bool>(),
        some(0.2, problem),
        some(0.1, agent),
        some(0.1, virt),
        some(0.1, server),
    );
    // By how much later than the last that was heard a mark was set, where that is known.
    let mark = (
        text(),
        option::weighted(0.6, prop_oneof![-1..=1_i64, Just(HOUR), Just(-30_000)]),
    );
    let fenced = prop_oneof![7 => Just(vec![]), 3 => vec(mark, 1..3)];
    let known = (
        ready,
        option::of(text()),
        (option::weighted(0.95, age()), option::weighted(0.5, age())),
        hostname,
        (heard, option::weighted(0.05, text())),
        (fenced, often(1), often(1), often(2)),
        option::weighted(0.1, leaf),
        often(2),
        opt_out(),
    )
        .prop_map(
            |(
                ready,
                ready_reason,
                (since, tainted),
                hostname,
                ((lease, short, problem, agent, virt, server), unheard),
                (fenced, out_of_service, reserved, cordoned),
                leaf,
                control_plane,
                skip,
            )| {
                let of_lease = if short { 10_000 } else { 40_000 };
                let lease = lease.map(|(by, _, when)| (by, of_lease, when));
                let failed = since
                    .filter(|age| *age >= 0)
                    .into_iter()
                    .chain(tainted)
                    .min()
                    .unwrap_or_default();
                let heard = [lease, problem, agent, virt, server].into_iter().flatten();
                let heard = heard.map(|(by, period, when)| Heard {
                    by,
                    at: at_age(when.unwrap_or_else(|later| failed - later)),
                    period: SignedDuration::from_millis(period),
                });
                let heard = heard.collect::<Vec<_>>();
                let last = heard
                    .iter()
                    .map(|heard| heard.at)
                    .max()
                    .unwrap_or(at_age(HOUR));
                let marks = fenced.into_iter().map(|(mark, later)| FencingMark {
                    mark,
                    set_by: later.map(|later| last + SignedDuration::from_millis(later)),
                });
                NodeRead::Known(NodeFacts {
                    name: String::new(),
                    uid: "node".to_owned(),
                    ready,
                    ready_reason,
                    ready_since: since.map(at_age),
                    tainted_since: tainted.map(at_age),
                    hostname: hostname.map(str::to_owned),
                    no_api_server: control_plane
                        && heard.iter().all(|heard| heard.by != SignBy::ApiServer),
                    heard,
                    unheard: unheard.map(Unread),
                    fenced: marks.collect(),
                    out_of_service,
                    leaf,
                    control_plane,
                    reserved,
                    cordoned,
                    opted_out: skip,
                })
            },
        );
    prop_oneof![
        18 => known,
        1 => Just(NodeRead::Gone),
        1 => text().prop_map(|why| NodeRead::Unread(Unread(why))),
    ]
}

/// Who reports from a node, and for how long silence means nothing, in milliseconds; the lease says it itself.
const SOURCES: [(SignBy, i64); 5] = [
    (SignBy::Lease, 40_000),
    (SignBy::ProblemDetector, 660_000),
    (SignBy::NodeMonitoring, 660_000),
    (SignBy::VirtHandler, 300_000),
    (SignBy::ApiServer, 60_000),
];

fn pod() -> impl Strategy<Value = PodFacts> {
    let node =
        prop_oneof![1 => Just(None), 30 => (0..=LOOKED_AT).prop_map(|at| Some(format!("n{at}")))];
    let workload = (select(vec!["Deployment", "CronJob"]), text()).prop_map(|(kind, name)| Owner {
        kind: kind.to_owned(),
        name,
    });
    let owners = (
        option::weighted(0.9, owner()),
        option::weighted(0.3, workload),
    );
    let finalizers = prop_oneof![
        8 => Just(vec![]),
        2 => Just(vec![JOB_TRACKING.to_owned()]),
        1 => text().prop_map(|finalizer| vec![format!("x/{finalizer}")]),
        1 => text().prop_map(|finalizer| vec![JOB_TRACKING.to_owned(), format!("x/{finalizer}")]),
    ];
    let namespace_opted_out = prop_oneof![
        19 => opt_out().prop_map(Ok), 1 => text().prop_map(|why| Err(Unread(why)))
    ];
    let claims = prop_oneof![2 => Just(vec![]), 3 => vec(claim(), 1..3)];
    let identity = (select(vec!["shop", "bank"]), text(), node, owners, age());
    let marks = (
        seldom(),
        opt_out(),
        namespace_opted_out,
        any::<bool>(),
        option::weighted(0.2, text()),
    );
    // A disk that it may write is a volume of its own.
    let volumes = prop_oneof![
        7 => Just((None, None)),
        1 => text().prop_map(|volume| (Some(volume), None)),
        1 => (text(), text()).prop_map(|(volume, disk)| (Some(volume), Some(disk))),
    ];
    let rest = (claims, any::<bool>(), volumes);
    (
        identity,
        marks,
        select(vec![None, Some(0), Some(30)]),
        finalizers,
        rest,
    )
        .prop_map(
            |(
                (namespace, name, node, owners, age),
                marks,
                grace_seconds,
                finalizers,
                (claims, indexed, volumes),
            )| {
                let (own_volume, own_disk) = volumes;
                let (owned, workload) = owners;
                let (owner, controller) = owned.unzip();
                let controller = controller.flatten();
                let (mirror, opted_out, namespace_opted_out, finished, after_reap) = marks;
                PodFacts {
                    namespace: namespace.to_owned(),
                    name,
                    uid: String::new(),
                    resource_version: "7".to_owned(),
                    node,
                    owner,
                    workload,
                    controller,
                    siblings: None,
                    deletion_deadline: at_age(age),
                    grace_seconds,
                    finalizers,
                    finished,
                    mirror,
                    opted_out,
                    namespace_opted_out,
                    after_reap,
                    claims,
                    own_volume,
                    own_disk,
                    indexed,
                }
            },
        )
}

/// An owner, and its identity where it is the controller.
fn owner() -> impl Strategy<Value = (Owner, Option<Identity>)> {
    let interchangeable = vec![
        ("ReplicaSet", "apps/v1"),
        ("ReplicationController", "v1"),
        ("Job", "batch/v1"),
    ];
    let other = vec![
        ("StatefulSet", "apps/v1"),
        ("DaemonSet", "apps/v1"),
        ("Pod", "v1"),
        ("VirtualMachineInstance", "kubevirt.io/v1"),
        ("Übersetzung", "example.org/v1"),
        // Namesakes in other groups.
        ("ReplicaSet", "example.org/v1"),
        ("ReplicationController", "apps/v1"),
        ("Job", "batch.example.org/v1"),
        ("DaemonSet", "v1"),
        ("replicaset", "apps/v1"),
    ];
    let kind = prop_oneof![3 => select(interchangeable), 2 => select(other)];
    (kind, text(), often(8), often(5)).prop_map(
        |((kind, api_version), name, controls, launches)| {
            let name = if kind == "Pod" && launches {
                format!("virt-launcher-{name}")
            } else {
                name
            };
            let identity = Identity {
                api_version: api_version.to_owned(),
                uid: "owner".to_owned(),
            };
            (
                Owner {
                    kind: kind.to_owned(),
                    name,
                },
                controls.then_some(identity),
            )
        },
    )
}

fn claim() -> impl Strategy<Value = ClaimFacts> {
    let state = prop_oneof![
        20 => (text(), often(1), often(8), volume()).prop_map(|(uid, shared_disk, scratch, volume)| {
            let scratch = scratch.then(|| "5".to_owned());
            ClaimState::Bound { uid, shared_disk, scratch, volume }
        }),
        2 => Just(ClaimState::Absent),
        1 => Just(ClaimState::NotLookedUp),
        1 => text().prop_map(|why| ClaimState::Unread(Unread(why))),
        1 => (option::of(text()), option::of(text()))
            .prop_map(|(missing, phase)| ClaimState::WithoutVolume { missing, phase }),
    ];
    let users = prop_oneof![9 => Just(vec![]), 1 => vec(text(), 1..3)];
    let renewed = prop_oneof![9 => Just(Ok(())), 1 => text().prop_map(Err)];
    let owned = (often(3), often(3), renewed.clone());
    (text(), owned, users, renewed, state).prop_map(
        |(name, (ephemeral, owned, unwanted), users, renewed, state)| {
            // One that was not found has no owner.
            let found = !matches!(state, ClaimState::NotLookedUp | ClaimState::Absent);
            ClaimFacts {
                name,
                users,
                ephemeral,
                renewed,
                owned: owned && found,
                unwanted,
                state,
            }
        },
    )
}

fn volume() -> impl Strategy<Value = VolumeFacts> {
    let storage = prop_oneof![
        1 => text().prop_map(Storage::Local),
        1 => text().prop_map(Storage::HostPath),
        1 => Just(Storage::StrictLocal),
        24 => Just(Storage::Driver),
    ];
    let affinity = prop_oneof![3 => Just(vec![]), 4 => vec(term(), 1..3)];
    let disk = option::weighted(0.1, select(vec!["Fibre Channel", "iSCSI"]));
    (
        text(),
        option::of(select(vec!["Retain", "Delete"])),
        storage,
        disk,
        affinity,
    )
        .prop_map(|(name, policy, storage, disk, affinity)| VolumeFacts {
            name,
            reclaim_policy: policy.map(str::to_owned),
            storage,
            disk,
            affinity,
        })
}

fn term() -> impl Strategy<Value = AffinityTerm> {
    let node = vec![
        "metadata.name",
        "kubernetes.io/hostname",
        "topology.topolvm.io/node",
        "csi.hetzner.cloud/location",
        "zones",
    ];
    let zone = vec![
        "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "zone",
    ];
    let key = prop_oneof![3 => select(node), 1 => select(zone)];
    let words = vec![OWN_NAME, OWN_HOSTNAME, "n1", "zone-a", "zone-b"];
    let value =
        || prop_oneof![30 => select(words.clone()), 1 => Just("no label")].prop_map(str::to_owned);
    let asks = prop_oneof![
        8 => (select(vec!["In", "In", "In", "NotIn"]), vec(value(), 1..3)),
        1 => (select(vec!["Exists", "DoesNotExist"]), Just(vec![])),
        1 => (select(vec!["Gt", "Lt"]), Just(vec!["5".to_owned()])),
        // What no label selector can say.
        1 => (select(vec!["In", "NotIn", "Gt", "Lt"]), Just(vec![])),
        1 => (select(vec!["Exists", "DoesNotExist", "Near"]), vec(value(), 1..3)),
    ];
    let requirement = (key, asks).prop_map(|(key, (operator, values))| Requirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values,
    });
    let name = prop_oneof![
        2 => Just(OWN_NAME), 1 => select(vec!["n0", "n1", "n8", "n9"])
    ];
    let names = vec(name.prop_map(str::to_owned), 0..3);
    let satisfied_by = prop_oneof![
        1 => Just(None),
        6 => Just(Some(Ok(vec![OWN_NAME.to_owned(), "n9".to_owned()]))),
        3 => names.prop_map(|names| Some(Ok(names))),
        1 => text().prop_map(|why| Some(Err(Unread(why)))),
    ];
    (vec(requirement, 0..3), often(1), satisfied_by).prop_map(
        |(requirements, fields, satisfied_by)| AffinityTerm {
            requirements,
            fields,
            satisfied_by,
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
    pod.claims
        .iter_mut()
        .enumerate()
        .for_each(|(number, claim)| claim.name.push_str(&format!("{number}")));
    let name = pod.node.as_deref().unwrap_or("n0").to_owned();
    let known = nodes.get(&name).and_then(NodeRead::known);
    let hostname = known
        .and_then(|node| node.hostname.clone())
        .unwrap_or_else(|| "another".to_owned());
    for AffinityTerm {
        requirements,
        satisfied_by,
        ..
    } in pod.volumes_mut().flat_map(|volume| &mut volume.affinity)
    {
        let values = requirements
            .iter_mut()
            .flat_map(|requirement| &mut requirement.values);
        for word in values.chain(satisfied_by.iter_mut().flatten().flatten()) {
            match word.as_str() {
                OWN_NAME => word.clone_from(&name),
                OWN_HOSTNAME => word.clone_from(&hostname),
                _ => {}
            }
        }
    }
    pod
}

fn attachment(volume: Option<String>) -> Attachment {
    Attachment {
        name: "csi-1".to_owned(),
        volume,
    }
}

fn outcome(kind: usize, says: String) -> Outcome {
    match OutcomeCode::ALL[kind] {
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

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 56)
}

fn at_age(milliseconds: i64) -> Timestamp {
    now() - SignedDuration::from_millis(milliseconds)
}

const HOUR: i64 = 3_600_000;

/// An age in milliseconds: long ago, or at, just before or just after each moment from which on it means something else:
/// the thresholds, the periods of the sources, twelve times those of a lease, what clocks may differ by, and the day after
/// which a node was put away.
fn age() -> impl Strategy<Value = i64> + Clone {
    let edges = vec![
        -30_000,
        0,
        10_000,
        40_000,
        60_000,
        300_000,
        600_000,
        660_000,
        120_000,
        480_000,
        720_000,
        7_200_000,
        24 * HOUR,
    ];
    let edge = (select(edges), -1..=1_i64).prop_map(|(edge, by)| edge + by);
    prop_oneof![20 => HOUR..=HOUR + 3, 4 => Just(3 * HOUR), 8 => edge, 1 => Just(-HOUR)]
}

fn often(tenths: u32) -> impl Strategy<Value = bool> {
    prop::bool::weighted(f64::from(tenths) / 10.0)
}

/// The value of an opt-out, where there is one.
fn opt_out() -> impl Strategy<Value = Option<String>> {
    option::weighted(0.03, prop_oneof![Just("true".to_owned()), text()])
}

fn seldom() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.03)
}

/// Mostly names, and sometimes text that a terminal, a shell or a line break could handle wrongly.
fn text() -> impl Strategy<Value = String> {
    let name = select(vec![
        "db-0",
        "db-1",
        "data",
        "unseal Vault after this pod has moved, then look at its log",
    ]);
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
