//! What shows that a node's machine lives, and what a pod takes with it, as a real API server says both.

use crate::prelude::*;

const SERVERS: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const SETS: &str = "/apis/apps/v1/namespaces/apps/statefulsets";

/// The kubelet of a control plane node is silent, and its API server, which this test asks, renews its own lease.
#[test]
fn a_control_plane_node_whose_api_server_works_shows_a_sign_of_life() {
    let cluster = fresh();
    let leases = cluster.get(SERVERS)["items"].take();
    let is_own =
        |lease: &&Value| !lease["metadata"]["labels"]["apiserver.kubernetes.io/identity"].is_null();
    let Some(lease) = leases.as_array().into_iter().flatten().find(is_own) else {
        return assert!(
            !cluster.is_at_least(26),
            "Kubernetes writes such leases since 1.26: {leases}"
        );
    };
    let host = lease["metadata"]["labels"]["kubernetes.io/hostname"]
        .as_str()
        .unwrap()
        .to_owned();
    Node::ready("ready").create(&cluster);
    let control_plane = |name: &str, host: &str| {
        let node = Node::not_ready(name, 3600).label("kubernetes.io/hostname", host);
        node.label("node-role.kubernetes.io/control-plane", "")
            .create(&cluster)
    };
    control_plane("cp", &host.to_uppercase());
    let pod = uid(&Pod::on("cp", "apps", "db-0")
        .owned_by("StatefulSet", "db")
        .terminating(&cluster, 1));
    until_overdue();
    let ended = run(&cluster.kubeconfig, &SHORT);
    ended.says(&pod, ("kubelet-alive", None));
    let node = &ended.report["nodes"][0];
    assert_eq!(node["signsOfLife"][0]["by"], "kube-apiserver", "{node}");
    assert_eq!(node["lastHeard"]["by"], "kube-apiserver", "{node}");

    // No lease has the name of this host, which a notice says: it may be one that the program cannot match.
    control_plane("other", "other");
    let pod = uid(&Pod::on("other", "apps", "db-1")
        .owned_by("StatefulSet", "db")
        .terminating(&cluster, 1));
    until_overdue();
    let ended = run(&cluster.kubeconfig, &[&SHORT[..], &["--dry-run"]].concat());
    assert_eq!(
        ended.reason_and_outcome(&pod).1,
        Some("would-delete"),
        "{}",
        ended.report
    );
    let notices = ended.report["notices"].to_string();
    assert!(
        notices.contains("api-server-unknown") && notices.contains("other"),
        "{notices}"
    );
}

/// A `StatefulSet` with `whenScaled: Delete` makes the pod the owner of its claims when it is scaled down.
#[test]
fn a_claim_goes_with_the_pod_that_owns_it_only_while_nothing_wants_it_again() {
    let cluster = fresh();
    one_dead_of_three(&cluster);
    let owned = |name: &str| scaled_down(&cluster, name);
    let (down, up) = (owned("down"), owned("up"));
    cluster.merge_patch(&format!("{SETS}/up"), json!({"spec": {"replicas": 1}}));
    until_overdue();
    let ended = run(&cluster.kubeconfig, &SHORT);
    ended.says(&down, ("stuck-on-not-ready-node", Some("deleted")));
    let note = ended.pod(&down)["note"].as_str().unwrap();
    assert!(
        note.contains("claim disk-down-0 is its own alone and goes with it"),
        "{note}"
    );
    ended.says(&up, ("volume-unverified", None));
}

/// The pod of a set that was scaled to none, and owns its claim; stuck on the dead node. Returns its UID.
fn scaled_down(cluster: &ControlPlane, name: &str) -> String {
    let set = stateful_set(cluster, "apps", name, json!({"spec": {"replicas": 0}}));
    let (pod, claim) = (format!("{name}-0"), format!("disk-{name}-0"));
    Volume::csi(&claim, "disk.example.org")
        .claimed_by("apps", &claim)
        .create(cluster);
    let pod = Pod::on("dead", "apps", &pod)
        .of_set(&set)
        .claim(&claim)
        .terminating(cluster, 1);
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": uid(&pod)});
    let path = format!("/api/v1/namespaces/apps/persistentvolumeclaims/{claim}");
    cluster.merge_patch(&path, json!({"metadata": {"ownerReferences": [owner]}}));
    uid(&pod)
}
