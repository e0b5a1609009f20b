//! The scan reads little, and must lead to the same verdicts as reading everything.
//!
//! Random clusters are read twice: by the scan, from the simulated API server, and completely, as a snapshot of the
//! same objects. Both must lead to the same verdicts for the same reasons.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::cell::Cell;

use jiff::{SignedDuration, Timestamp};
use pod_reaper::{
    cli::{Cli, PodName},
    cluster::Cluster,
    decide::ReasonCode,
    facts::{ClusterFacts, JOB_TRACKING},
    limits::{Judged, Plan},
    questions::explain::{self, Explanation},
    selector::NodeSelectors,
    settings::{Settings, Task},
    source::{
        Gathered, live,
        snapshot::{Pods, Saved},
    },
    stop::Stop,
};
use pod_reaper_test_support::{
    samples,
    simulated::{Objects, Server},
};
use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::select,
    test_runner::{TestCaseResult, TestRunner},
};
use serde_json::{Value, json};

/// What the operator says of nodes.
const SELECTORS: [&str; 4] = [
    "--leaf-node-selector=type=virtual",
    "--leaf-node-selector=taint:example.org/leaf",
    "--fenced-node-selector=annotation:example.org/off",
    "--fenced-node-selector=off=true",
];

/// A cluster, and the maximum of objects on a page.
#[derive(Debug, Clone)]
struct Case {
    cluster: Objects,
    page: usize,
}

/// The options, without those of the source.
#[derive(Debug, Clone)]
struct Typed {
    all: bool,
    selectors: bool,
    /// What it says of signs of life.
    alive: &'static str,
    percent: u8,
    cap: usize,
}

impl Typed {
    fn settings(&self) -> Settings {
        let mut args = vec![
            "pod-reaper".to_owned(),
            self.alive.to_owned(),
            format!("--max-not-ready-percent={}", self.percent),
            format!("--max-deletes={}", self.cap),
        ];
        args.extend(self.all.then(|| "--all".to_owned()));
        if self.selectors {
            args.extend(SELECTORS.map(str::to_owned));
        }
        Settings::from(Cli::try_from_args(args.iter().map(Into::into)).unwrap())
    }
}

/// (namespace, name, node, reason) of each pod, sorted.
type Verdicts = Vec<(String, String, Option<String>, String)>;

fn verdicts(plan: &Plan) -> Verdicts {
    let verdict = |judged: &Judged| {
        let Judged { pod, reason, limit } = judged;
        let why = limit
            .as_ref()
            .map_or_else(|| format!("{reason:?}"), |limit| format!("{limit:?}"));
        (
            pod.namespace.clone(),
            pod.name.clone(),
            pod.node.clone(),
            why,
        )
    };
    let mut verdicts = plan.pods.iter().map(verdict).collect::<Vec<_>>();
    verdicts.sort();
    verdicts
}

fn by_scan(case: &Case, settings: &Settings) -> (ClusterFacts, Verdicts) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (_sender, stop) = Stop::manual(std::time::Duration::from_mins(8));
        let server = Server::new(case.cluster.clone()).page(case.page);
        let cluster = Cluster::new(server.client(), stop, settings.node_selectors.clone());
        let Gathered { facts, pods } = live::gather(&cluster, &settings.wanted(), None)
            .await
            .unwrap();
        let plan = Plan::new(&facts, pods, &settings.policy, &settings.limits);
        assert_eq!(server.lock().not_understood, Vec::<String>::new());
        (facts, verdicts(&plan))
    })
}

fn by_reading_all(case: &Case, settings: &Settings) -> (ClusterFacts, Verdicts) {
    let saved = Saved::read(
        case.cluster.saved().as_bytes(),
        settings.snapshot_options(Some(now())),
        Pods::Terminating,
    );
    let Gathered { facts, pods } = saved.unwrap().gather(&settings.wanted(), None).unwrap();
    let plan = Plan::new(&facts, pods, &settings.policy, &settings.limits);
    // A snapshot has pods of nodes that are gone. A scan without `--all` does not read them.
    let there = |node: &Option<String>| {
        let node = node.as_ref().and_then(|name| facts.nodes.get(name));
        node.is_some_and(|node| node.known().is_some())
    };
    let verdicts = verdicts(&plan)
        .into_iter()
        .filter(|(_, _, node, _)| settings.all || there(node))
        .collect();
    (facts, verdicts)
}

/// Checks `property` on random clusters.
fn for_every_cluster(cases: u32, property: impl Fn(&Case, &Settings) -> TestCaseResult) {
    let cases = if std::env::var_os("PROPTEST_CASES").is_none() {
        cases
    } else {
        ProptestConfig::default().cases
    };
    let config = ProptestConfig {
        failure_persistence: None,
        cases,
        ..ProptestConfig::default()
    };
    let result = TestRunner::new(config).run(&(case(), typed()), |(case, typed)| {
        property(&case, &typed.settings())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn the_scan_chooses_what_reading_everything_chooses() {
    let counts = SEEN.map(|code| (code, Cell::new(0)));
    for_every_cluster(2_000, |case, settings| {
        // A snapshot has more pods, which a cap would count.
        let mut settings = settings.clone();
        settings.limits.max_deletes = None;
        let (facts, scanned) = by_scan(case, &settings);
        let (_, read) = by_reading_all(case, &settings);
        prop_assert_eq!(&facts.errors, &vec![]);
        prop_assert_eq!(&scanned, &read);
        let count = |code: &str| {
            scanned
                .iter()
                .filter(|(.., reason)| reason.starts_with(code))
                .count()
        };
        for (code, seen) in &counts {
            seen.set(seen.get() + count(code));
        }
        Ok(())
    });
    // Without many of each the test would prove little.
    assert!(counts.iter().all(|(_, seen)| seen.get() > 10), "{counts:?}");
}

/// Reasons that depend on what the one source asks for and the other has.
const SEEN: [&str; 9] = [
    "Stuck { scratch: [], notes: [\"nothing brings",
    "Stuck { scratch: [], notes: [\"its replacement waits",
    "NodeReady",
    "KubeletAlive",
    "LocalVolume",
    "VolumeConfined",
    "VolumeUnverified",
    "SharedDisk",
    "OptedOut",
];

/// Compares the explanation of each pod with what a run decides, with its limits.
fn differences(plan: &Plan, explanation: impl Fn(&PodName) -> Explanation) -> Vec<String> {
    let mut differences = Vec::new();
    for judged in &plan.pods {
        let asked = PodName {
            namespace: judged.pod.namespace.clone(),
            name: judged.pod.name.clone(),
        };
        let explained = explanation(&asked);
        let decides = explained
            .rules
            .iter()
            .chain(&explained.limits)
            .filter(|rule| rule.decides);
        let decides = decides.map(|rule| rule.seen.clone()).collect::<Vec<_>>();
        let run = (
            Some(judged.verdict()),
            Some(judged.code()),
            judged.sentence(),
        );
        let judgement = explained.judgement;
        if (
            judgement.verdict,
            judgement.reason,
            judgement.detail.clone(),
        ) != run
            || decides != [judged.sentence()]
        {
            differences.push(format!(
                "{asked}: the run says {run:?}, explained is {:?} {:?} {}, by {decides:?}",
                judgement.verdict, judgement.reason, judgement.detail
            ));
        }
    }
    differences
}

#[test]
fn what_is_explained_is_what_a_run_decides() {
    let (over_cap, held) = (Cell::new(0), Cell::new(0));
    for_every_cluster(800, |case, settings| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _entered = runtime.enter();
        let (_sender, stop) = Stop::manual(std::time::Duration::from_mins(8));
        let server = Server::new(case.cluster.clone()).page(case.page);
        let cluster = Cluster::new(
            server.client(),
            stop.clone(),
            settings.node_selectors.clone(),
        );
        let gathered = runtime
            .block_on(live::gather(&cluster, &settings.wanted(), None))
            .unwrap();
        let plan = Plan::new(
            &gathered.facts,
            gathered.pods,
            &settings.policy,
            &settings.limits,
        );
        let on_cluster = |asked: &PodName| {
            runtime
                .block_on(explain::run_on(&cluster, settings, asked))
                .unwrap()
        };
        prop_assert_eq!(differences(&plan, on_cluster), Vec::<String>::new());

        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, case.cluster.saved()).unwrap();
        let task = Task::Audit {
            snapshot: file.path().to_owned(),
            now: Some(now()),
        };
        let audit = Settings {
            task,
            ..settings.clone()
        };
        let saved = Saved::read(
            case.cluster.saved().as_bytes(),
            audit.snapshot_options(Some(now())),
            Pods::Terminating,
        );
        let saved = saved.unwrap().gather(&audit.wanted(), None).unwrap();
        let of_file = Plan::new(&saved.facts, saved.pods, &audit.policy, &audit.limits);
        let on_file = |asked: &PodName| {
            runtime
                .block_on(explain::run(&audit, asked, &stop))
                .unwrap()
        };
        prop_assert_eq!(differences(&of_file, on_file), Vec::<String>::new());

        let limited = |code: ReasonCode| {
            plan.pods
                .iter()
                .filter(|judged| judged.code() == code)
                .count()
        };
        over_cap.set(over_cap.get() + limited(ReasonCode::OverCap));
        held.set(held.get() + limited(ReasonCode::MassOutage));
        Ok(())
    });
    let (over_cap, held) = (over_cap.get(), held.get());
    assert!(
        over_cap > 0 && held > 5,
        "{over_cap} over the cap, {held} held"
    );
}

#[test]
fn a_pod_is_explained_as_it_is_where_the_cache_is_behind() {
    let stuck = samples::pod("shop", "db-0", "n1");
    let opted_out = samples::annotated(stuck.clone(), "pod-reaper.io/skip", "true");
    let others = [
        samples::node("n1", "Unknown"),
        samples::node("n2", "True"),
        samples::namespace("shop"),
    ];
    let mut objects = Objects::new(
        samples::NOW.parse().unwrap(),
        others.into_iter().chain([opted_out]),
    );
    objects.cached = Some(vec![stuck]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let settings = Settings::from(Cli::try_from_args(["pod-reaper".into()]).unwrap());
        let (_sender, stop) = Stop::manual(std::time::Duration::from_mins(8));
        let cluster = Cluster::new(
            Server::new(objects).client(),
            stop,
            NodeSelectors::default(),
        );
        let Gathered { facts, pods } = live::gather(&cluster, &settings.wanted(), None)
            .await
            .unwrap();
        // The run's delete would be refused, as the pod has another version.
        let plan = Plan::new(&facts, pods, &settings.policy, &settings.limits);
        assert_eq!(plan.pods[0].code(), ReasonCode::Stuck);
        let asked = PodName {
            namespace: "shop".to_owned(),
            name: "db-0".to_owned(),
        };
        let explained = explain::run_on(&cluster, &settings, &asked).await.unwrap();
        assert_eq!(explained.judgement.reason, Some(ReasonCode::OptedOut));
    });
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 56)
}

fn ago(minutes: i64) -> String {
    (now() - SignedDuration::from_mins(minutes))
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}

fn typed() -> impl Strategy<Value = Typed> {
    let limits = (select(vec![100, 100, 55, 30]), select(vec![0, 1, 1, 2]));
    let alive = select(vec![
        "--kubelet-alive=hold-unique",
        "--kubelet-alive=hold-unique",
        "--kubelet-alive=reap",
        "--kubelet-alive=hold",
    ]);
    (any::<bool>(), any::<bool>(), alive, limits).prop_map(
        |(all, selectors, alive, (percent, cap))| Typed {
            all,
            selectors,
            alive,
            percent,
            cap,
        },
    )
}

fn case() -> impl Strategy<Value = Case> {
    let namespaces = vec(skip(), 2);
    // How many pods the set of each namespace wants, where there is one.
    let sets = vec(option::weighted(0.7, select(vec![0, 1, 9])), 2);
    (vec(node(), 1..9), vec(pod(), 1..16), vec(claim(), CLAIMS), 1..4_usize, (namespaces, sets)).prop_map(
        |(nodes, pods, claims, page, (skips, sets))| {
            let mut leases = Vec::new();
            let mut named = Vec::new();
            for (at, (mut node, leases_of)) in nodes.into_iter().enumerate() {
                let name = format!("{}n{at}", node["metadata"]["name"].as_str().unwrap());
                node["metadata"]["name"] = json!(name);
                node["metadata"]["uid"] = json!(format!("uid-{name}"));
                let lease = |(said, stamped): (i64, i64), metadata: Value| {
                    let stamp = json!([{"time": ago(stamped), "fieldsV1": {"f:spec": {"f:renewTime": {}}}}]);
                    let mut lease = json!({"kind": "Lease", "metadata": metadata,
                        "spec": {"renewTime": ago(said), "leaseDurationSeconds": 40}});
                    lease["metadata"]["managedFields"] = stamp;
                    // Of an old server, that of its birth.
                    lease["metadata"]["creationTimestamp"] =
                        json!(ago(if stamped == 61 { 61 } else { 9_000 }));
                    lease
                };
                let (own, server) = leases_of;
                leases.extend(
                    own.map(|ages| lease(ages, json!({"name": name, "namespace": "kube-node-lease"}))),
                );
                leases.extend(server.map(|(ages, identity)| {
                    let host = node["metadata"]["labels"]["kubernetes.io/hostname"].as_str().unwrap_or("h9");
                    let labels = json!({"kubernetes.io/hostname": host.to_uppercase(),
                        "apiserver.kubernetes.io/identity": identity});
                    let named = format!("apiserver-{at}");
                    lease(ages, json!({"name": named, "namespace": "kube-system", "labels": labels}))
                }));
                named.push(node);
            }
            let names = named.iter().map(|node| node["metadata"]["name"].clone()).collect::<Vec<_>>();
            let mut others = Vec::new();
            for (at, (claim, volume)) in claims.iter().enumerate() {
                let named = |mut object: Value, metadata: Value| {
                    object["metadata"] = metadata;
                    object
                };
                others.push(named(volume.clone(), json!({"name": format!("v{at}")})));
                for namespace in ["a", "b"] {
                    // One of them goes with a pod that another set may want.
                    let owners = if at == 1 {
                        json!([{"uid": "uid-0"}, {"uid": "uid-1"}, {"uid": "uid-2"}])
                    } else {
                        json!([])
                    };
                    let metadata = json!({"name": format!("c{at}"), "namespace": namespace, "uid": "c",
                        "ownerReferences": owners});
                    let mut claim = named(claim.clone(), metadata);
                    claim["spec"]["volumeName"] = json!(format!("v{at}"));
                    others.push(claim);
                }
            }
            let pods = pods.into_iter().enumerate().map(|(at, mut pod)| {
                let (name, uid) = (format!("p-{at}"), format!("uid-{at}"));
                pod["metadata"]["name"] = json!(name);
                pod["metadata"]["uid"] = json!(uid);
                if let Some(node) = pod["spec"]["nodeName"].as_u64() {
                    // One more than exist: a node that is gone.
                    let node = usize::try_from(node).unwrap() % (names.len() + 1);
                    pod["spec"]["nodeName"] = names.get(node).cloned().unwrap_or(json!("gone"));
                }
                // The claim of its ephemeral volume, which it owns or not.
                if let Some(owner) = pod["ephemeral"].as_str() {
                    let mut claim = claims[at % CLAIMS].0.clone();
                    let owner = if owner == "itself" { uid.as_str() } else { owner };
                    claim["metadata"] = json!({"name": format!("{name}-e"), "uid": "e",
                        "namespace": pod["metadata"]["namespace"], "ownerReferences": [{"uid": owner}]});
                    claim["spec"]["volumeName"] = json!(format!("v{}", at % CLAIMS));
                    others.push(claim);
                }
                pod
            });
            let pods = pods.collect::<Vec<_>>();
            let namespace = |name: &str, (labels, annotations): &(Value, Value)| {
                json!({"kind": "Namespace",
                    "metadata": {"name": name, "labels": labels, "annotations": annotations}})
            };
            others.extend([namespace("a", &skips[0]), namespace("b", &skips[1])]);
            // A file without any does not tell that there is none.
            others.push(json!({"kind": "StatefulSet",
                "metadata": {"name": "another", "namespace": "a"}, "spec": {"replicas": 1}}));
            others.extend(sets.into_iter().enumerate().filter_map(|(at, replicas)| {
                let namespace = ["a", "b"][at];
                let named = json!({"name": "owner", "namespace": namespace, "uid": "uid-of-owner"});
                Some(json!({"kind": "StatefulSet", "metadata": named, "spec": {"replicas": replicas?}}))
            }));
            let objects = named.into_iter().chain(leases).chain(pods).chain(others);
            Case { cluster: Objects::new(now(), objects), page }
        },
    )
}

/// How many claims each namespace has, beside those of ephemeral volumes.
const CLAIMS: usize = 4;

/// Labels and annotations, which opt out or not.
fn skip() -> impl Strategy<Value = (Value, Value)> {
    let value = || option::weighted(0.02, select(vec!["true", "", "no", "false"]));
    let of =
        |value: Option<&str>| value.map_or(json!({}), |value| json!({"pod-reaper.io/skip": value}));
    (value(), value()).prop_map(move |(label, annotation)| (of(label), of(annotation)))
}

/// A claim and its volume, both without metadata.
fn claim() -> impl Strategy<Value = (Value, Value)> {
    let own = "kubernetes.io/hostname";
    let requirement = |key: &str, operator: &str, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
    let one = |requirement: Value| vec![json!({"matchExpressions": [requirement]})];
    let affinities = vec![
        vec![],
        vec![],
        one(requirement("topology.kubernetes.io/zone", "In", &["a"])),
        one(requirement(own, "In", &["h0"])),
        one(requirement(own, "In", &["h1", "h2"])),
        one(requirement(own, "NotIn", &["h0", "h1"])),
        one(requirement("disk", "In", &["ssd"])),
        one(requirement("disk", "Exists", &[])),
        one(requirement("disk", "DoesNotExist", &[])),
        one(requirement("gen", "Gt", &["3"])),
        one(requirement("gen", "Lt", &["4"])),
        one(requirement("gone", "In", &["yes"])),
        vec![
            json!({"matchExpressions": [requirement("topology.kubernetes.io/zone", "In", &["b"]),
            requirement("disk", "In", &["ssd"])]}),
        ],
        vec![
            json!({}),
            json!({"matchExpressions": [requirement("disk", "In", &["hdd"])]}),
        ],
        vec![
            json!({"matchFields": [requirement("metadata.name", "NotIn", &["n0"])], "matchExpressions": []}),
        ],
        vec![json!({"matchFields": [requirement("metadata.name", "In", &["n0"])]})],
    ];
    let source = select(vec![
        json!({"csi": {"driver": "csi.example"}}),
        json!({"csi": {"driver": "csi.example"}}),
        json!({"csi": {"driver": "csi.example"}}),
        json!({"csi": {"driver": "csi.example"}}),
        json!({"csi": {"driver": "driver.longhorn.io", "volumeAttributes": {"dataLocality": "strict-local"}}}),
        json!({"local": {"path": "/x"}}),
        json!({"iscsi": {"readOnly": true}}),
        json!({"fc": {"lun": 0}}),
    ]);
    let lost = prop::bool::weighted(0.1);
    (select(affinities), source, prop::bool::weighted(0.2), lost).prop_map(
        |(terms, mut spec, shared, lost)| {
            if !terms.is_empty() {
                spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
            }
            let claim = if shared {
                json!({"accessModes": ["ReadWriteMany"], "volumeMode": "Block"})
            } else {
                json!({})
            };
            let phase = if lost { "Lost" } else { "Bound" };
            (
                json!({"kind": "PersistentVolumeClaim", "spec": claim, "status": {"phase": phase}}),
                json!({"kind": "PersistentVolume", "spec": spec}),
            )
        },
    )
}

/// What else a node's row does not show: labels by which volumes are bound, and who reports from it.
fn unseen_of_node() -> impl Strategy<Value = (Value, Value, Option<i64>, Option<Value>)> {
    let disk = select(vec![
        json!({}),
        json!({"disk": "ssd"}),
        json!({"disk": "hdd", "gen": "4"}),
        json!({"gen": "3"}),
    ]);
    let heartbeats = select(vec![
        json!({}),
        json!({}),
        json!({"kubevirt.io/heartbeat": ago(3)}),
        json!({"kubevirt.io/heartbeat": ago(50)}),
        json!({"fencing/state": "fenced"}),
        json!({"example.org/off": ""}),
    ]);
    // When the annotations were stamped, where they were.
    let stamped = option::weighted(0.5, select(vec![3, 59, 60, 61, 90]));
    let problem = (select(vec!["KernelDeadlock", "StorageReady", "Drained"]), select(vec![1, 30])).prop_map(
        |(kind, minutes)| json!({"type": kind, "status": "False", "lastHeartbeatTime": ago(minutes)}),
    );
    (disk, heartbeats, stamped, option::weighted(0.2, problem))
}

/// The ages of a lease by its writer's own clock and by the server's stamp.
type Ages = (i64, i64);

/// The ages of a node's lease, and of its API server's, with that host's name.
type Leases = (Option<Ages>, Option<(Ages, &'static str)>);

/// A node, its lease, and that of an API server on it, which another program may have made.
fn node() -> impl Strategy<Value = (Value, Leases)> {
    let ready = prop_oneof![
        6 => Just(Some("True")), 3 => Just(Some("Unknown")), 2 => Just(Some("False")), 1 => Just(Some("malformed")), 1 => Just(None)
    ];
    let mark = select(vec![
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "label",
        "taint",
        "name",
        "selector",
        "selected taint",
        "annotation",
    ]);
    let ages = (
        select(vec![0, 60, 60, -60]),
        select(vec![0, 60, 60, 60, 61]),
    );
    let identity = select(vec!["kube-apiserver", "kube-apiserver", "another"]);
    let server = option::weighted(0.2, (ages.clone(), identity));
    (
        ready,
        mark,
        prop::bool::weighted(0.2),
        any::<bool>(),
        // 61 min: before all that was heard; a day and more: put away, if it is cordoned.
        select(vec![0, 60, 60, 61, 1_440, 1_441]),
        (option::weighted(0.9, ages), server),
        (skip(), unseen_of_node(), (option::weighted(0.8, 0..4_u8), prop::bool::weighted(0.2))),
    )
        .prop_map(
            |(ready, mark, control_plane, cordoned, since, leases, ((skip, skips), (more, annotations, stamped, problem), (host, reserved)))| {
                let mut labels = skip;
                let mut annotations = annotations;
                for (of, more) in [(&mut labels, &more), (&mut annotations, &skips)] {
                    of.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                }
                if let Some(host) = host {
                    labels["kubernetes.io/hostname"] = json!(format!("h{host}"));
                }
                match mark {
                    "label" => labels["kosmos.io/node"] = json!("true"),
                    "selector" => labels["type"] = json!("virtual"),
                    "annotation" => annotations["apps.openyurt.io/binding"] = json!("true"),
                    _ => {}
                }
                if control_plane {
                    labels["node-role.kubernetes.io/control-plane"] = json!("");
                }
                let mut taints = match mark {
                    "taint" => vec![json!({"key": "kosmos.io/node"})],
                    "selected taint" => vec![json!({"key": "example.org/leaf"})],
                    _ => vec![],
                };
                if reserved {
                    let effect = if control_plane { "NoSchedule" } else { "PreferNoSchedule" };
                    taints.push(json!({"key": "node-role.kubernetes.io/control-plane", "effect": effect}));
                }
                let owned = annotations.as_object().unwrap().keys().map(|key| (format!("f:{key}"), json!({})));
                let owned = Value::Object(owned.collect());
                let stamps = stamped.map(|minutes| {
                    json!([{"time": ago(minutes), "fieldsV1": {"f:metadata": {"f:annotations": owned}}}])
                });
                let condition =
                    |status| json!({"type": "Ready", "status": status, "lastTransitionTime": ago(since)});
                let node = json!({"kind": "Node",
                    "metadata": {
                        "name": if mark == "name" { "kosmos-" } else { "" },
                        "labels": labels, "annotations": annotations, "managedFields": stamps,
                        "creationTimestamp": ago(9_000),
                    },
                    // A later version may print more about such a condition.
                    "shows": (ready == Some("malformed")).then_some("Ready,Doubtful"),
                    "spec": {"taints": taints, "unschedulable": cordoned},
                    "status": {"conditions": ready.map(condition).into_iter().chain(problem).collect::<Vec<_>>()}});
                (node, leases)
            },
        )
}

/// A pod. `shows`, which is no field of the API, is what its row prints unless another status comes first; `ephemeral`,
/// which is none either, is who owns the claim of its ephemeral volume.
fn pod() -> impl Strategy<Value = Value> {
    let node = option::weighted(0.9, 0..16_u64);
    let phase = prop_oneof![6 => Just("Running"), 1 => Just("Pending"), 1 => Just("Unknown"), 1 => Just("Succeeded"), 1 => Just("Failed")];
    let shows = select(vec![
        "Running",
        "Completed",
        "Error",
        "Init:0/1",
        "CrashLoopBackOff",
        "Unheard",
        "Terminating",
    ]);
    let deleted = option::weighted(0.6, select(vec![-1, 5, 60, 60, 600, 600]));
    let reason = select(vec![None, None, None, Some("NodeLost"), Some("Evicted")]);
    let finalizer = prop_oneof![
        8 => Just(json!(null)), 1 => Just(json!(["example.org/hold"])), 1 => Just(json!([JOB_TRACKING]))
    ];
    let own = select(vec![
        json!({"nfs": {}}),
        json!({"emptyDir": {}}),
        json!({"fc": {}}),
        json!({"iscsi": {"readOnly": true}}),
    ]);
    let claims = (
        option::weighted(0.4, 0..CLAIMS),
        option::weighted(0.2, select(vec!["itself", "itself", "another"])),
        option::weighted(0.2, own),
    );
    let owner = option::weighted(
        0.8,
        select(vec![
            ("StatefulSet", "apps/v1"),
            ("ReplicaSet", "apps/v1"),
            ("ReplicaSet", "apps/v1"),
            ("Job", "batch/v1"),
            ("DaemonSet", "apps/v1"),
            ("VirtualMachineInstance", "kubevirt.io/v1"),
        ]),
    );
    (select(vec!["a", "b"]), node, phase, shows, deleted, reason, finalizer, claims, skip(), owner).prop_map(
        |(namespace, node, phase, shows, deleted, reason, finalizers, (claim, ephemeral, own), (labels, annotations), owner)| {
            let claim = claim.map(|at| json!({"name": "d", "persistentVolumeClaim": {"claimName": format!("c{at}")}}));
            let made = ephemeral.map(|_| json!({"name": "e", "ephemeral": {"volumeClaimTemplate": {}}}));
            let volumes = claim.into_iter().chain(made).chain(own).collect::<Vec<_>>();
            let owners = owner.map(|(kind, version)| json!({"apiVersion": version, "kind": kind, "name": "owner",
                "uid": "uid-of-owner", "controller": true}));
            json!({"kind": "Pod", "shows": shows, "ephemeral": ephemeral,
                "metadata": {"namespace": namespace, "resourceVersion": "7", "deletionTimestamp": deleted.map(ago),
                    "finalizers": finalizers, "labels": labels, "annotations": annotations,
                    "ownerReferences": owners.into_iter().collect::<Vec<_>>()},
                "spec": {"nodeName": node, "volumes": volumes},
                "status": {"phase": phase, "reason": reason}})
        },
    )
}
