//! The prediction for a node is what a run then does.

use crate::{
    prelude::*,
    rights::{reading, user},
    run,
};

/// Reason by UID.
fn reasons(report: &Value) -> BTreeMap<String, String> {
    let pods = report["pods"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|pod| !pod["reason"].is_null());
    pods.map(|pod| {
        (
            uid(&json!({"metadata": pod})),
            pod["reason"].as_str().unwrap().to_owned(),
        )
    })
    .collect()
}

/// The role may only read.
#[test]
fn what_if_predicts_what_a_run_does_when_the_nodes_are_dead() {
    let cluster = fresh();
    six_nodes::healthy(&cluster);
    let reader = user(&cluster, "foreteller", &reading());
    let before = cluster.get("/api/v1/pods");

    let nodes = ["what-if", "--node", six_nodes::DEAD, six_nodes::LEAF];
    let foretold = crate::support::program::ask(&reader, &nodes);
    foretold.ends(0);
    assert_eq!(foretold.report["breaker"], Value::Null);
    assert_eq!(
        cluster.get("/api/v1/pods")["items"],
        before["items"],
        "nothing was changed"
    );
    let daemon = uid(&cluster.get(&pod_path("kube-system", "node-exporter-ds06")));
    assert_eq!(foretold.pod(&daemon)["fate"], "stays");

    // Now the nodes fail, and pods without a permanent toleration are evicted. The pods are the same, by UID.
    for node in [six_nodes::DEAD, six_nodes::LEAF] {
        node_becomes(&cluster, node, "Unknown", "NodeStatusUnknown");
        let conditions = json!([{
            "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
            "lastTransitionTime": seconds_ago(3600), "lastHeartbeatTime": seconds_ago(3600),
        }]);
        cluster.patch_status(
            &format!("/api/v1/nodes/{node}"),
            json!({"conditions": conditions}),
        );
        cluster.delete(
            &format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}"),
            json!({}),
        );
    }
    six_nodes::evict(&cluster, 1);
    crate::until_overdue();
    let done = run(&cluster.kubeconfig, &SHORT);
    assert_eq!(reasons(&done.report), reasons(&foretold.report));
    let reaped = foretold.report["summary"]["comes-back"].as_u64();
    assert_eq!(
        done.report["summary"]["outcomes"]["deleted"].as_u64(),
        reaped
    );
}

#[test]
fn explain_evaluates_every_rule_for_a_pod_of_a_cluster() {
    let cluster = fresh();
    six_nodes::failed(&cluster);
    let reader = user(&cluster, "asker", &reading());
    let explain = |(namespace, name): (&str, &str)| {
        let pod = format!("{namespace}/{name}");
        crate::support::program::ask(&reader, &[&["explain", &pod], &SHORT[..]].concat()).report
    };
    let local = explain(six_nodes::LOCAL);
    assert_eq!(
        (&local["verdict"], &local["reason"]),
        (&json!("manual"), &json!("local-volume"))
    );
    assert_eq!(local["rules"].as_array().unwrap().len(), 18);
    assert_eq!(local["rules"][12]["decides"], true);
    // The pod is on a leaf node. Its claims are read, although an earlier rule decides.
    assert_eq!(explain(six_nodes::REMOTE)["reason"], "kosmos-leaf");
    assert_eq!(explain(six_nodes::SLOW)["reason"], "node-ready");
    let running = explain(("compute-hive02", "hiveserver2-0"));
    assert_eq!(running["verdict"], Value::Null);
    assert!(
        running["detail"]
            .as_str()
            .unwrap()
            .starts_with("It is not Terminating"),
        "{running}"
    );
    let absent = crate::support::program::asked(&reader, &["explain", "vault/absent"]);
    assert_eq!(absent.status.code(), Some(1));
    assert!(
        String::from_utf8(absent.stderr)
            .unwrap()
            .contains("there is no pod vault/absent")
    );
}

/// Runs it through kubectl, as a user does.
#[test]
fn kubectl_runs_it_as_a_plugin() {
    let cluster = fresh();
    six_nodes::failed(&cluster);
    let bin = cluster.dir.join("plugins");
    std::fs::create_dir_all(&bin).unwrap();
    let plugin = bin.join("kubectl-pod_reaper");
    let _ = std::fs::remove_file(&plugin);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pod-reaper"), plugin).unwrap();
    let pod = format!("{}/{}", six_nodes::LOCAL.0, six_nodes::LOCAL.1);
    let by_name = [
        "pod-reaper",
        "explain",
        &pod,
        "-o",
        "json",
        "-n",
        six_nodes::LOCAL.0,
    ];
    let answer = cluster
        .kubectl_command()
        .env("PATH", &bin)
        .args(by_name)
        .output()
        .unwrap();
    let says = String::from_utf8_lossy(&answer.stderr);
    assert_eq!(answer.status.code(), Some(0), "{says}");
    let answer = serde_json::from_slice::<Value>(&answer.stdout).unwrap();
    assert_eq!(answer["rules"].as_array().map(Vec::len), Some(18));
}
