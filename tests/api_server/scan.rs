//! The scan reads enough: a run finds the same pods as an audit of everything.

use crate::prelude::*;

/// (namespace, name, node, verdict, reason) of each pod.
fn judged(report: &Value) -> Vec<Vec<&str>> {
    let fields = ["namespace", "name", "node", "verdict", "reason"];
    let pods = each(&report["pods"]);
    let mut judged = pods
        .map(|pod| {
            fields
                .map(|field| pod[field].as_str().unwrap_or_default())
                .to_vec()
        })
        .collect_vec();
    judged.sort();
    judged
}

/// Creates every kind of Terminating pod on every kind of node, and pods that are not Terminating.
fn all_sorts(cluster: &ControlPlane) {
    one_dead_of_three(cluster);
    // The rows of the failed and done pods look like those of finished pods that are not Terminating.
    let on_each = "
        Pod alive-NODE: {node: NODE, grace: null}
        Pod slow-NODE: {node: NODE}
        Pod failed-NODE: {node: NODE, phase: Failed, grace: 0, metadata: {finalizers: [example.org/hold]}}
        Pod done-NODE: {node: NODE, phase: Succeeded, grace: 0, metadata: {finalizers: [example.org/hold]}}
    ";
    for node in ["ready-1", "dead", "gone"] {
        make(cluster, &on_each.replace("NODE", node));
    }
    make(
        cluster,
        "
        Node ready-3: {ready: 'True'}
        Pod done: {node: ready-2, phase: Succeeded, grace: null}
        Pod waiting: {node: null, phase: Pending, grace: null}
        Pod never-placed: {node: null, phase: Pending, grace: 0, metadata: {finalizers: [example.org/hold]}}
        Pod lost: {node: ready-3}
        ",
    );
    // The row of a pod shows Unknown if its node was lost long ago.
    cluster.patch_status(&pod_path("apps", "lost"), yaml("{reason: NodeLost}"));
}

#[test]
fn a_run_finds_what_an_audit_of_everything_finds() {
    let cluster = fresh();
    all_sorts(&cluster);
    until_overdue();
    let kinds = "nodes,namespaces,pods,pvc,pv,leases,volumeattachments,csidrivers";
    for (all, count) in [(&["--all"][..], 11), (&[], 3)] {
        let scanned = run(&cluster.kubeconfig, &[&SHORT, all, &["--dry-run"]].concat());
        let saved = cluster.kubectl(["get", kinds, "-A", "-o", "json"]);
        let file = cluster.dir.join("saved.json");
        std::fs::write(&file, saved.stdout).expect("the folder is ours");
        let now = str_of(&scanned.report["judgedAt"]);
        let mut audit = std::process::Command::new(env!("CARGO_BIN_EXE_pod-reaper"));
        audit
            .env_clear()
            .args(["--output=json", "--now", now, "--snapshot"])
            .arg(&file)
            .args(SHORT)
            .args(all);
        let audit = audit.output().expect("it starts");
        let audit = serde_json::from_slice::<Value>(&audit.stdout).expect("a report");
        let mut read = judged(&audit);
        // A snapshot also has pods of deleted nodes, and pods without a node. A run reads those only with `--all`.
        read.retain(|pod| !all.is_empty() || (pod[2] != "gone" && !pod[2].is_empty()));
        assert_eq!(judged(&scanned.report), read, "{all:?}");
        assert_eq!(read.len(), count, "{all:?}: {read:?}");
    }
}
