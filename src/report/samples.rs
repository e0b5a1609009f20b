//! Sample clusters and runs for the tests of every format.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
pub use pod_reaper_test_support::samples::{
    annotated, claim, due, held_by, lease, namespace, node, pod, set, using, volume, with,
};
use serde_json::{Value, json};
use tracing_subscriber::filter::LevelFilter;

use super::*;
use crate::{
    advice::Command,
    cli::{Form, LogFormat, MetricsTo, Output},
    decide::Policy,
    facts::{ClusterFacts, KubeletAlive, Uid},
    limits::{Limits, Plan},
    outcome::Outcome,
    selector::{NamespaceFilter, NodeSelectors, Target},
    settings::{Mode, Settings, Task},
    source::{
        Gathered,
        snapshot::{Pods, Saved},
    },
};

pub fn audit() -> Settings {
    let minutes = SignedDuration::from_mins(10);
    Settings {
        command: crate::cli::Command::Run,
        task: Task::Audit {
            snapshot: "state.json".into(),
            now: None,
        },
        namespaces: NamespaceFilter::default(),
        policy: Policy {
            reap_older_than: minutes,
            node_not_ready_for: minutes,
            kubelet_alive: KubeletAlive::HoldUnique,
            manual_owner_kinds: Vec::new(),
            reap_scratch: false,
        },
        limits: Limits {
            max_deletes: None,
            max_not_ready_percent: 55,
        },
        node_selectors: NodeSelectors::default(),
        require_guard: crate::cli::RequireGuard::False,
        all: true,
        deadline: Duration::from_mins(8),
        exit_on_manual: false,
        cluster_name: None,
        metrics: MetricsTo::default(),
        events: true,
        wait_for_replacements: Duration::ZERO,
        form: Form {
            output: Output::Text,
            log_format: LogFormat::Text,
            log_level: LevelFilter::INFO,
        },
    }
}

pub fn run(mode: Mode, target: Target) -> Settings {
    Settings {
        task: Task::Reap { target, mode },
        ..audit()
    }
}

/// Judges `objects` at three.
pub fn judged(settings: &Settings, objects: &[Value]) -> (ClusterFacts, Plan) {
    let text = json!({"kind": "List", "items": objects}).to_string();
    let now = "2026-01-31T03:00:00Z"
        .parse::<Timestamp>()
        .expect("a moment");
    let saved = Saved::read(
        text.as_bytes(),
        settings.snapshot_options(Some(now)),
        Pods::Terminating,
    );
    let saved = saved.expect("a snapshot");
    let gathered = saved.gather(&settings.wanted()).expect("nothing fails");
    let Gathered { facts, pods } = gathered;
    let plan = Plan::new(&facts, pods, &settings.policy, &settings.limits);
    (facts, plan)
}

/// Judges `objects`, and reports them with the outcomes of the pods, by UID.
pub fn report(settings: &Settings, objects: &[Value], outcomes: &[(&str, Outcome)]) -> Report {
    let (facts, plan) = judged(settings, objects);
    let outcomes = outcomes
        .iter()
        .map(|(uid, outcome)| (Uid::from(*uid), outcome.clone()));
    Report::new(
        settings,
        &facts,
        &plan,
        &outcomes.collect::<BTreeMap<_, _>>(),
        &BTreeMap::new(),
    )
}

/// A private cloud after ds06 lost power, with one pod of every other verdict and kind.
pub fn private_cloud() -> Vec<Value> {
    let mut leaf = annotated(
        node("kosmos-cluster7", "Unknown"),
        "kosmos-io/owned-by-cluster",
        "cluster7",
    );
    leaf["metadata"]["labels"] = json!({"kosmos.io/node": "true"});
    let zone = json!({"csi": {}, "nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b"]}]}
    ]}}});
    let scratch =
        json!({"local": {"path": "/opt/local-path"}, "persistentVolumeReclaimPolicy": "Delete"});
    let attachment = |name: &str, volume: &str| {
        json!({"kind": "VolumeAttachment", "metadata": {"name": name},
            "spec": {"nodeName": "ds06", "source": {"persistentVolumeName": volume}}})
    };
    let mut malformed = pod("impala-impala01", "odd-0", "ds06");
    malformed["spec"]["nodeName"] = json!(6);
    vec![
        node("ds01", "True"),
        node("ds02", "True"),
        node("ds03", "True"),
        node("ds04", "True"),
        node("ds05", "True"),
        node("ds06", "Unknown"),
        leaf,
        namespace("compute-hive01"),
        namespace("impala-impala01"),
        namespace("vault"),
        lease("ds06"),
        pod("compute-hive01", "huebackend-0", "ds06"),
        pod("impala-impala01", "huebackend-0", "ds06"),
        annotated(
            pod("vault", "vault-0", "ds06"),
            "pod-reaper.io/after-reap",
            "unseal Vault: vault operator unseal",
        ),
        using(pod("impala-impala01", "catalogd-0", "ds06"), "catalogd"),
        claim("impala-impala01", "catalogd", "pvc-zone"),
        volume("pvc-zone", &zone),
        with(
            using(
                pod("impala-impala01", "impala-executor-000-0", "ds06"),
                "scratch-cache-volume-impala-executor-000-0",
            ),
            json!({"metadata": {"labels": {"apps.kubernetes.io/pod-index": "0"}}}),
        ),
        set(
            "impala-impala01",
            "impala-executor-000",
            &["scratch-cache-volume"],
        ),
        claim(
            "impala-impala01",
            "scratch-cache-volume-impala-executor-000-0",
            "pvc-scratch",
        ),
        volume("pvc-scratch", &scratch),
        using(
            pod("impala-impala01", "statestored-0", "ds06"),
            "statestored",
        ),
        claim("impala-impala01", "statestored", "pvc-gone"),
        held_by(
            pod("compute-hive01", "held-0", "ds06"),
            "example.com/backup",
        ),
        due(
            pod("compute-hive01", "recent-0", "ds06"),
            "2026-01-31T02:55:30Z",
        ),
        due(
            pod("compute-hive01", "within-grace-0", "ds06"),
            "2026-01-31T03:00:45Z",
        ),
        annotated(
            pod("compute-hive01", "quiet-0", "ds06"),
            "pod-reaper.io/skip",
            "true",
        ),
        pod("compute-hive01", "slow-0", "ds01"),
        pod("vault", "web-0", "kosmos-cluster7"),
        malformed,
        attachment("csi-2", "pvc-zone"),
        attachment("csi-1", "pvc-gone"),
    ]
}

/// A run that deleted, with every possible outcome.
pub fn every_outcome() -> Report {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let pods = names.map(|name| pod("app", &format!("{name}-0"), "ds06"));
    let uids = names.map(|name| format!("uid-app-{name}-0"));
    let outcomes = [
        Outcome::Deleted,
        Outcome::Gone,
        Outcome::Changed("Its resource version is another.".to_owned()),
        Outcome::NodeRecovered,
        Outcome::NodeChanged("Another node has registered under the name.".to_owned()),
        Outcome::Denied("pods \"f-0\" is forbidden".to_owned()),
        Outcome::Failed("no answer within 10 s".to_owned()),
        Outcome::StillThere,
        Outcome::Unverified("no connection: connection refused".to_owned()),
        Outcome::Interrupted("SIGTERM".to_owned()),
    ];
    let outcomes = uids
        .iter()
        .map(String::as_str)
        .zip(outcomes)
        .collect::<Vec<_>>();
    let objects = [
        node("ds05", "True"),
        node("ds06", "Unknown"),
        namespace("app"),
        lease("ds06"),
    ];
    let objects = objects.into_iter().chain(pods).collect::<Vec<_>>();
    let settings = run(Mode::Delete { ask: false }, Target::default());
    report(&settings, &objects, &outcomes)
}

pub fn commands(report: &Report) -> Vec<&Command> {
    let nodes = report.nodes.iter().flat_map(|node| &node.steps);
    let pods = report.pods.iter().flat_map(|pod| &pod.steps);
    nodes
        .chain(pods)
        .chain(&report.run_now)
        .filter_map(|step| step.command.as_ref())
        .collect()
}
