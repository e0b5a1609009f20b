//! The prediction for a node is what a run then does.

use crate::{
    prelude::*,
    rights::{reading, user},
};

/// Reason by UID.
fn reasons(report: &Value) -> BTreeMap<String, String> {
    let pods = each(&report["pods"]);
    let judged =
        pods.filter_map(|pod| Some((uid_of_entry(pod), pod["reason"].as_str()?.to_owned())));
    judged.collect()
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
    let each_node = crate::support::program::ask(&reader, &["what-if", "--each-node"]);
    each_node.ends(0);
    assert_eq!(each_node.report["leafNodes"], 1);
    let worst = &each_node.report["nodes"][0];
    assert_eq!(worst["node"], six_nodes::DEAD);
    let summary = &foretold.report["summary"];
    assert_eq!(worst["comesBack"], summary["comes-back"]);
    // The other one is on the leaf node.
    assert_eq!(
        (&worst["needsPerson"], &summary["needs-person"]),
        (&json!(1), &json!(2))
    );
    let daemon = uid(&cluster.get(&pod_path("kube-system", "node-exporter-ds06")));
    assert_eq!(foretold.pod(&daemon)["fate"], "stays");

    // Now the nodes fail, and pods without a permanent toleration are evicted. The pods are the same, by UID.
    for node in [six_nodes::DEAD, six_nodes::LEAF] {
        node_becomes(&cluster, node, "Unknown", "NodeStatusUnknown");
        let ago = seconds_ago(3600);
        let conditions = yaml(&format!(
            "conditions: [{{type: Ready, status: Unknown, reason: NodeStatusUnknown,
                lastTransitionTime: '{ago}', lastHeartbeatTime: '{ago}'}}]"
        ));
        cluster.patch_status(&node_path(node), conditions);
        cluster.delete(
            &format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}"),
            json!({}),
        );
    }
    six_nodes::evict(&cluster, 1);
    until_overdue();
    let done = run(&cluster.kubeconfig, &SHORT);
    assert_eq!(reasons(&done.report), reasons(&foretold.report));
    let reaped = foretold.report["summary"]["comes-back"].as_u64();
    assert_eq!(
        done.report["summary"]["outcomes"]["deleted"].as_u64(),
        reaped
    );
}

/// Runs it through kubectl, as a user does.
#[test]
fn kubectl_runs_it_as_a_plugin() {
    let cluster = fresh();
    six_nodes::failed(&cluster);
    let bin = cluster.dir.join("plugins");
    fs::create_dir_all(&bin).unwrap();
    let plugin = bin.join("kubectl-pod_reaper");
    let _ = fs::remove_file(&plugin);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pod-reaper"), plugin).unwrap();
    let pod = format!("{}/{}", six_nodes::LOCAL.0, six_nodes::LOCAL.1);
    let by_name = format!("pod-reaper explain {pod} -o json -n {}", six_nodes::LOCAL.0);
    let mut kubectl = cluster.kubectl_command();
    kubectl.env("PATH", &bin).args(by_name.split(' '));
    let answer = kubectl.output().unwrap();
    let says = String::from_utf8_lossy(&answer.stderr);
    assert_eq!(answer.status.code(), Some(0), "{says}");
    let answer = serde_json::from_slice::<Value>(&answer.stdout).unwrap();
    assert_eq!(answer["rules"].as_array().map(Vec::len), Some(17));
}
