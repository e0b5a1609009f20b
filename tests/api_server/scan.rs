//! The scan reads enough: a run finds the same as an audit of everything.

use crate::prelude::*;

/// (namespace, name, node, verdict, reason) of each pod.
fn judged(report: &Value) -> Vec<Vec<&str>> {
    let fields = ["namespace", "name", "node", "verdict", "reason"];
    let pods = report["pods"].as_array().expect("pods").iter();
    let mut judged = pods
        .map(|pod| {
            fields
                .map(|field| pod[field].as_str().unwrap_or_default())
                .to_vec()
        })
        .collect::<Vec<_>>();
    judged.sort();
    judged
}

/// Every kind of Terminating pod on every kind of node, and pods that are not Terminating.
fn all_sorts(cluster: &ControlPlane) {
    for node in ["ready-1", "ready-2", "ready-3"] {
        Node::ready(node).create(cluster);
    }
    Node::not_ready("dead", 3600).create(cluster);
    let hold = "example.org/hold";
    for node in ["ready-1", "dead", "gone"] {
        Pod::on(node, "apps", &format!("alive-{node}")).create(cluster);
        Pod::on(node, "apps", &format!("slow-{node}")).terminating(cluster, 1);
        // The row of these pods is that of finished pods that are not Terminating.
        Pod::on(node, "apps", &format!("failed-{node}"))
            .finalizer(hold)
            .phase("Failed")
            .terminating(cluster, 0);
        Pod::on(node, "apps", &format!("done-{node}"))
            .finalizer(hold)
            .phase("Succeeded")
            .terminating(cluster, 0);
    }
    Pod::on("ready-2", "apps", "done")
        .phase("Succeeded")
        .create(cluster);
    Pod::without_node("apps", "waiting")
        .phase("Pending")
        .create(cluster);
    Pod::without_node("apps", "never-placed")
        .phase("Pending")
        .finalizer(hold)
        .terminating(cluster, 0);
    // The row of a pod shows Unknown when its node was lost long ago.
    Pod::on("ready-3", "apps", "lost").terminating(cluster, 1);
    cluster.patch_status(&pod_path("apps", "lost"), json!({"reason": "NodeLost"}));
}

#[test]
fn a_run_finds_what_an_audit_of_everything_finds() {
    let cluster = fresh();
    all_sorts(&cluster);
    until_overdue();
    let kinds = "nodes,namespaces,pods,pvc,pv,leases,volumeattachments,csidrivers";
    for (all, count) in [(&["--all"][..], 11), (&[], 3)] {
        let scanned = run(
            &cluster.kubeconfig,
            &[&SHORT, all, &["--dry-run=client"]].concat(),
        );
        let saved = cluster.kubectl(["get", kinds, "-A", "-o", "json"]);
        let file = cluster.dir.join("saved.json");
        std::fs::write(&file, saved.stdout).expect("the folder is ours");
        let now = scanned.report["judgedAt"].as_str().expect("a time");
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
        // A snapshot has pods of nodes that are gone, and of none. A run reads them only with `--all`.
        read.retain(|pod| !all.is_empty() || (pod[2] != "gone" && !pod[2].is_empty()));
        assert_eq!(judged(&scanned.report), read, "{all:?}");
        assert_eq!(read.len(), count, "{all:?}: {read:?}");
    }
}
