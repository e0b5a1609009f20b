//! The operators' case: six nodes, of which `ds06` has lost its power, and a Kosmos leaf cluster whose link is cut.
//!
//! It is built for the tests and, in real time, for the example of the README.

use crate::{prelude::*, support::objects::volume_attachment};

pub const NODES: [&str; 6] = ["ds01", "ds02", "ds03", "ds04", "ds05", "ds06"];
pub const DEAD: &str = "ds06";
pub const LEAF: &str = "kosmos-cluster7";

/// Pods that are stuck and may go, as (namespace, name).
pub const STUCK: [(&str, &str); 7] = [
    ("compute-hive01", "hiveserver2-0"),
    ("compute-hive01", "hue-frontend-7c9d8b6f5-x2mlp"),
    ("compute-hive01", "huebackend-0"),
    ("etl", "nightly-29370-6wq8t"),
    ("impala-impala01", "catalogd-0"),
    ("impala-impala01", "huebackend-0"),
    ("vault", "vault-0"),
];
/// The pod whose data is on the dead node's disk.
pub const LOCAL: (&str, &str) = ("impala-impala01", "impala-executor-000-0");
/// The pod that runs in the leaf cluster.
pub const REMOTE: (&str, &str) = ("kosmos-apps", "web-0");
/// The pod that only stops slowly, on a healthy node.
pub const SLOW: (&str, &str) = ("compute-hive01", "metastore-0");

/// All nodes Ready, every pod running.
pub fn healthy(cluster: &ControlPlane) {
    for node in NODES {
        Node::ready(node).create(cluster);
        Pod::on(node, "kube-system", &format!("node-exporter-{node}"))
            .owned_by("DaemonSet", "node-exporter")
            .create(cluster);
    }
    Node::ready(LEAF)
        .label("kosmos.io/node", "true")
        .label("kubernetes.io/role", "agent")
        .annotation("kosmos-io/owned-by-cluster", "cluster7")
        .taint("kosmos.io/node", "true", "NoSchedule")
        .create(cluster);

    let owned = |(namespace, name): (&str, &str), kind, owner| {
        Pod::on(DEAD, namespace, name).owned_by(kind, owner)
    };
    let set =
        |pod: (&'static str, &'static str)| owned(pod, "StatefulSet", pod.1.trim_end_matches("-0"));
    let [
        hiveserver2,
        frontend,
        hue_hive,
        nightly,
        catalogd,
        hue_impala,
        vault,
    ] = STUCK;
    for pod in [hiveserver2, hue_hive, catalogd, hue_impala] {
        set(pod).create(cluster);
    }
    owned(frontend, "ReplicaSet", "hue-frontend-7c9d8b6f5")
        .label("app", "hue-frontend")
        .create(cluster);
    owned(nightly, "Job", "nightly-29370")
        .label("controller-uid", "nightly")
        .restart_policy("Never")
        .create(cluster);
    Volume::csi("pvc-vault", "rbd.csi.ceph.com")
        .claimed_by("vault", "data-vault-0")
        .create(cluster);
    set(vault)
        .claim("data-vault-0")
        .annotation(
            "pod-reaper.io/after-reap",
            "vault-0 starts sealed: unseal it by hand",
        )
        .create(cluster);
    volume_attachment(cluster, "csi-vault", DEAD, "pvc-vault");
    let scratch = "scratch-cache-volume-impala-executor-000-0";
    Volume::of(
        "pvc-scratch",
        yaml("{hostPath: {path: /opt/local-path-provisioner}}"),
    )
    .on_node(DEAD)
    .reclaim("Delete")
    .claimed_by(LOCAL.0, scratch)
    .create(cluster);
    set(LOCAL).claim(scratch).create(cluster);
    Pod::on(LEAF, REMOTE.0, REMOTE.1)
        .owned_by("StatefulSet", "web")
        .label("kosmos-io/pod", "true")
        .annotation("kosmos-io/tripped", "{}")
        .create(cluster);
    Pod::on("ds02", SLOW.0, SLOW.1)
        .owned_by("StatefulSet", "metastore")
        .create(cluster);
    Pod::on("ds03", "compute-hive02", "hiveserver2-0")
        .owned_by("StatefulSet", "hiveserver2")
        .create(cluster);
}

/// Cuts the power and the link.
fn fail(cluster: &ControlPlane) {
    for node in [DEAD, LEAF] {
        node_becomes(cluster, node, "Unknown", "NodeStatusUnknown");
        let mut taints = cluster.get(&node_path(node))["spec"]["taints"].take();
        if taints.is_null() {
            taints = json!([]);
        }
        for effect in ["NoSchedule", "NoExecute"] {
            let taint = json!({"key": "node.kubernetes.io/unreachable", "effect": effect});
            taints.as_array_mut().expect("a list").push(taint);
        }
        cluster.merge_patch(&node_path(node), json!({"spec": {"taints": taints}}));
    }
}

/// Deletes all pods on the failed nodes but the `DaemonSets`', and the slow one.
pub fn evict(cluster: &ControlPlane, grace_period_seconds: i64) {
    for (namespace, name) in STUCK.into_iter().chain([LOCAL, REMOTE, SLOW]) {
        cluster.delete(
            &pod_path(namespace, name),
            json!({"gracePeriodSeconds": grace_period_seconds}),
        );
    }
}

/// The state after an hour: the nodes are silent, and the pods are overdue by at least a second.
pub fn failed(cluster: &ControlPlane) {
    healthy(cluster);
    for (node, leaf) in [(DEAD, false), (LEAF, true)] {
        cluster.delete(&node_path(node), json!({}));
        cluster.delete(
            &format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}"),
            json!({}),
        );
        let mut silent = Node::not_ready(node, 3600);
        if leaf {
            silent = silent
                .label("kosmos.io/node", "true")
                .annotation("kosmos-io/owned-by-cluster", "cluster7");
        }
        silent.create(cluster);
    }
    evict(cluster, 1);
    until_overdue();
}

#[test]
fn the_case_is_judged_pod_by_pod_and_only_the_stuck_ones_go() {
    let cluster = fresh();
    failed(&cluster);
    let before = cluster.get("/api/v1/pods");
    let uid_of = |(namespace, name): (&str, &str)| uid(&cluster.get(&pod_path(namespace, name)));
    let stuck = STUCK.map(uid_of);
    let (local, remote, slow) = (uid_of(LOCAL), uid_of(REMOTE), uid_of(SLOW));

    let run = run(&cluster.kubeconfig, &SHORT);

    run.ends(0);
    for uid in &stuck {
        run.says(uid, ("stuck-on-not-ready-node", Some("deleted")));
    }
    run.says(&local, ("local-volume", None));
    run.says(&remote, ("kosmos-leaf", None));
    assert!(
        run.report["pods"]
            .as_array()
            .unwrap()
            .iter()
            .all(|pod| pod["uid"] != slow.as_str())
    );
    let note = run.pod(&stuck[6])["note"].as_str();
    assert_eq!(
        note,
        Some(
            "its author says: 'vault-0 starts sealed: unseal it by hand'; its replacement may have to wait until pvc-vault is detached from ds06, 6 minutes \
             after this pod is gone"
        )
    );
    assert_eq!(
        run.report["nodes"][0]["volumeAttachments"][0]["volume"],
        "pvc-vault"
    );

    let left = cluster.get("/api/v1/pods");
    let left = left["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(uid)
        .collect::<Vec<_>>();
    for pod in before["items"].as_array().unwrap() {
        let name = &pod["metadata"]["name"];
        assert_eq!(
            left.contains(&uid(pod)),
            !stuck.contains(&uid(pod)),
            "{name}"
        );
    }
    // The log has the message of the old tool, so that searches for it still match.
    for (namespace, name) in STUCK {
        let start = format!(
            "Force-deleting pod {name} in namespace {namespace} on node ds06 with deletion timestamp 20"
        );
        assert!(run.log.contains(&start), "{}", run.log);
        let end = format!("Successfully force-deleted pod {name} in namespace {namespace}");
        assert!(run.log.contains(&end), "{}", run.log);
        assert!(
            run.log.contains(&format!("Namespace {namespace}: ")),
            "{}",
            run.log
        );
    }
}

#[test]
#[ignore = "plays the case in real time, 20 minutes, and writes tests/data/six-nodes.json"]
fn record() {
    let cluster = fresh();
    let minutes = |minutes: u64| {
        // The healthy kubelets, and Kosmos until its link is cut, renew their leases.
        for _ in 0..minutes * 6 {
            for node in NODES.iter().filter(|node| **node != DEAD) {
                renew_lease(&cluster, node);
            }
            thread::sleep(Duration::from_secs(10));
        }
    };
    healthy(&cluster);
    minutes(1);
    fail(&cluster);
    minutes(5);
    evict(&cluster, 30);
    minutes(13);
    let what = "nodes,namespaces,pods,pvc,pv,leases,volumeattachments,csidrivers";
    let output = cluster.kubectl(["get", what, "-A", "-o", "json"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/six-nodes.json");
    fs::write(file, output.stdout).expect("the tree can be written");
}
