//! The scan asks for little; it must find what reading everything finds.
//!
//! Random clusters are read twice: through the scan, from the simulated API server, and whole, as a snapshot of the same
//! objects. Both have to come to the same verdicts, for the same reasons.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::cell::Cell;

use jiff::{SignedDuration, Timestamp};
use pod_reaper::{
    cli::Cli,
    cluster::Cluster,
    decide::decide,
    facts::{ClusterFacts, PodFacts},
    limits::{Judged, Plan},
    reap::read_cluster,
    settings::Settings,
    snapshot::{self, Wanted},
    stop::Stop,
};
use pod_reaper_test_support::simulated::{Objects, Server};
use proptest::{collection::vec, option, prelude::*, sample::select, test_runner::TestRunner};
use serde_json::{Value, json};

/// A cluster, and how many objects of it a page has at most.
#[derive(Debug, Clone)]
struct Case {
    cluster: Objects,
    page: usize,
}

/// What was typed beside the source.
#[derive(Debug, Clone)]
struct Typed {
    all: bool,
    leaf_selector: bool,
    unreachable_only: bool,
    percent: u8,
}

impl Typed {
    fn settings(&self) -> Settings {
        let mut args = vec![
            "pod-reaper".to_owned(),
            format!("--unreachable-only={}", self.unreachable_only),
            format!("--max-not-ready-percent={}", self.percent),
        ];
        args.extend(self.all.then(|| "--all".to_owned()));
        args.extend(self.leaf_selector.then(|| "--leaf-node-selector=type=virtual".to_owned()));
        Settings::from(Cli::try_from_args(args.iter().map(Into::into)).unwrap())
    }
}

/// (namespace, name, node, verdict's reason) of each pod, whatever the order.
type Verdicts = Vec<(String, String, Option<String>, String)>;

fn verdicts(plan: &Plan) -> Verdicts {
    let verdict = |Judged { pod, reason }: &Judged| {
        (pod.namespace.clone(), pod.name.clone(), pod.node.clone(), format!("{reason:?}"))
    };
    let mut verdicts = plan.pods.iter().map(verdict).collect::<Vec<_>>();
    verdicts.sort();
    verdicts
}

fn by_scan(case: &Case, settings: &Settings) -> (ClusterFacts, Verdicts) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (_sender, stop) = Stop::manual(std::time::Duration::from_mins(8));
        let server = Server::new(case.cluster.clone()).page(case.page);
        let cluster = Cluster::new(server.client(), stop, settings.leaf_selector.clone());
        let (facts, plan) = read_cluster(settings, &cluster).await.unwrap();
        let verdicts = verdicts(&plan);
        assert_eq!(server.lock().not_understood, Vec::<String>::new());
        (facts, verdicts)
    })
}

fn by_reading_all(case: &Case, settings: &Settings) -> (ClusterFacts, Verdicts) {
    let wanted = Wanted {
        now: Some(now()),
        namespaces: &settings.namespaces,
        leaf_selector: settings.leaf_selector.as_ref(),
        all: settings.all,
    };
    let facts = snapshot::read(&case.cluster.saved(), &wanted).unwrap();
    let judge = |pod: &PodFacts| Judged {
        pod: pod.clone(),
        reason: decide(facts.now, &settings.policy, facts.node_of(pod), pod),
    };
    let plan = Plan::new(facts.pods.iter().map(judge).collect(), &facts.census, &settings.limits);
    // A snapshot shows pods of nodes that are gone; a scan without `--all` has no reason to meet them.
    let there = |node: &Option<String>| {
        let node = node.as_ref().and_then(|name| facts.nodes.get(name));
        node.is_some_and(|node| node.known().is_some())
    };
    let verdicts =
        verdicts(&plan).into_iter().filter(|(_, _, node, _)| settings.all || there(node)).collect();
    (facts, verdicts)
}

#[test]
fn the_scan_chooses_what_reading_everything_chooses() {
    let config = ProptestConfig {
        failure_persistence: None,
        cases: if std::env::var_os("PROPTEST_CASES").is_none() {
            2_000
        } else {
            ProptestConfig::default().cases
        },
        ..ProptestConfig::default()
    };
    let (reaped, elsewhere) = (Cell::new(0), Cell::new(0));
    let result = TestRunner::new(config).run(&(case(), typed()), |(case, typed)| {
        let settings = typed.settings();
        let (facts, scanned) = by_scan(&case, &settings);
        let (_, read) = by_reading_all(&case, &settings);
        prop_assert_eq!(&facts.errors, &vec![]);
        prop_assert_eq!(&scanned, &read);
        reaped.set(reaped.get() + scanned.iter().filter(|(.., reason)| reason.starts_with("Stuck")).count());
        elsewhere.set(
            elsewhere.get() + scanned.iter().filter(|(.., reason)| reason.starts_with("NodeReady")).count(),
        );
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let (reaped, elsewhere) = (reaped.get(), elsewhere.get());
    // Clusters in which nothing ever happens would prove nothing.
    assert!(reaped > 50 && elsewhere > 50, "{reaped} reaped, {elsewhere} on Ready nodes");
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 56)
}

fn ago(minutes: i64) -> String {
    (now() - SignedDuration::from_mins(minutes)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn typed() -> impl Strategy<Value = Typed> {
    (any::<bool>(), any::<bool>(), prop::bool::weighted(0.2), select(vec![100, 100, 55, 30])).prop_map(
        |(all, leaf_selector, unreachable_only, percent)| Typed {
            all,
            leaf_selector,
            unreachable_only,
            percent,
        },
    )
}

fn case() -> impl Strategy<Value = Case> {
    (vec(node(), 1..9), vec(pod(), 1..16), 1..4_usize, prop::bool::weighted(0.1)).prop_map(
        |(nodes, pods, page, opted_out)| {
            let skip = |skip: bool| if skip { json!({"pod-reaper.io/skip": "true"}) } else { json!({}) };
            let namespace = |name: &str, annotations: Value| {
                json!({"kind": "Namespace", "metadata": {"name": name, "annotations": annotations}})
            };
            let mut leases = Vec::new();
            let mut named = Vec::new();
            for (at, (mut node, lease)) in nodes.into_iter().enumerate() {
                let name = format!("{}n{at}", node["metadata"]["name"].as_str().unwrap());
                node["metadata"]["name"] = json!(name);
                node["metadata"]["uid"] = json!(format!("uid-{name}"));
                leases.extend(lease.map(|minutes| {
                    json!({"kind": "Lease", "metadata": {"name": name, "namespace": "kube-node-lease"},
                        "spec": {"renewTime": ago(minutes), "leaseDurationSeconds": 40}})
                }));
                named.push(node);
            }
            let names = named.iter().map(|node| node["metadata"]["name"].clone()).collect::<Vec<_>>();
            let pods = pods.into_iter().enumerate().map(|(at, mut pod)| {
                pod["metadata"]["name"] = json!(format!("p{at}"));
                pod["metadata"]["uid"] = json!(format!("uid-{at}"));
                if let Some(node) = pod["spec"]["nodeName"].as_u64() {
                    // One more than there are: a node that is gone.
                    let node = usize::try_from(node).unwrap() % (names.len() + 1);
                    pod["spec"]["nodeName"] = names.get(node).cloned().unwrap_or(json!("gone"));
                }
                pod
            });
            let claim = |namespace: &str, volume: &str| {
                json!({"kind": "PersistentVolumeClaim",
                    "metadata": {"name": "data", "namespace": namespace, "uid": format!("claim-{namespace}")},
                    "spec": {"volumeName": volume}, "status": {"phase": "Bound"}})
            };
            let volume = |name: &str, spec: Value| json!({"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec});
            let others = [
                namespace("a", skip(false)),
                namespace("b", skip(opted_out)),
                claim("a", "local"),
                claim("b", "remote"),
                volume("local", json!({"local": {"path": "/x"}})),
                volume("remote", json!({})),
            ];
            let objects = named.into_iter().chain(leases).chain(pods).chain(others);
            Case { cluster: Objects::new(now(), objects), page }
        },
    )
}

/// A node and the age of its lease.
fn node() -> impl Strategy<Value = (Value, Option<i64>)> {
    let ready = prop_oneof![
        6 => Just(Some("True")), 3 => Just(Some("Unknown")), 2 => Just(Some("False")), 1 => Just(Some("malformed")), 1 => Just(None)
    ];
    let mark = select(vec!["", "", "", "", "", "", "", "label", "taint", "name", "selector", "skip"]);
    (
        ready,
        mark,
        prop::bool::weighted(0.2),
        any::<bool>(),
        select(vec![0, 60, 60, 60]),
        option::weighted(0.9, select(vec![0, 60, 60, 60])),
    )
        .prop_map(|(ready, mark, control_plane, cordoned, since, lease)| {
            let mut labels = json!({});
            if mark == "label" {
                labels["kosmos.io/node"] = json!("true");
            }
            if mark == "selector" {
                labels["type"] = json!("virtual");
            }
            if control_plane {
                labels["node-role.kubernetes.io/control-plane"] = json!("");
            }
            let taints = if mark == "taint" { json!([{"key": "kosmos.io/node"}]) } else { json!(null) };
            let annotations = if mark == "skip" { json!({"pod-reaper.io/skip": "true"}) } else { json!({}) };
            let condition =
                |status| json!({"type": "Ready", "status": status, "lastTransitionTime": ago(since)});
            let node = json!({"kind": "Node",
                "metadata": {
                    "name": if mark == "name" { "kosmos-" } else { "" },
                    "labels": labels, "annotations": annotations,
                },
                // A later version may print more of such a condition.
                "shows": (ready == Some("malformed")).then_some("Ready,Doubtful"),
                "spec": {"taints": taints, "unschedulable": cordoned},
                "status": {"conditions": ready.map(condition).into_iter().collect::<Vec<_>>()}});
            (node, lease)
        })
}

/// A pod. `shows`, which no API server knows, is what its row prints unless another status comes first.
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
    let finalizer = prop::bool::weighted(0.1);
    (select(vec!["a", "b"]), node, phase, shows, deleted, reason, finalizer, prop::bool::weighted(0.3)).prop_map(
        |(namespace, node, phase, shows, deleted, reason, finalizer, claim)| {
            let finalizers = if finalizer { json!(["example.org/hold"]) } else { json!(null) };
            let volumes =
                if claim { json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]) } else { json!(null) };
            json!({"kind": "Pod", "shows": shows,
                "metadata": {"namespace": namespace, "resourceVersion": "7", "deletionTimestamp": deleted.map(ago),
                    "finalizers": finalizers},
                "spec": {"nodeName": node, "volumes": volumes},
                "status": {"phase": phase, "reason": reason}})
        },
    )
}
