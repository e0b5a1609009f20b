//! The commands that the report prints work when they are pasted: in time, late and twice.

use std::fs;

use serde_json::json;

use crate::{
    Run, SHORT, binary, claim_path, local_claim, one_dead_of_three, run, six_nodes,
    stuck_with_disk,
    support::{
        ControlPlane, fresh,
        objects::{make, node_becomes, node_path, pod, pod_path},
        program::{SHELLS, commands, paste, paste_into, shown},
    },
    uid, until_overdue,
};

/// Creates a `StatefulSet` pod whose PVC is on its dead node. Returns the pod's UID.
fn with_local_claim(cluster: &ControlPlane) -> String {
    one_dead_of_three(cluster);
    let pod = stuck_with_disk(cluster, "dead");
    until_overdue();
    pod
}

const CLAIM: &str = "disk-db-0";

/// Whether the PVC was deleted. The controller that removes its protection finalizer does not run here.
fn is_deleting(cluster: &ControlPlane, claim: &str) -> bool {
    cluster
        .try_get(&claim_path("apps", claim))
        .is_none_or(|object| object["metadata"]["deletionTimestamp"].is_string())
}

/// The line that deletes the PVC, from a report in this format.
fn line(cluster: &ControlPlane, format: &str) -> String {
    let output = binary(&cluster.kubeconfig)
        .args(SHORT)
        .args(["--output", format])
        .output()
        .expect("it starts");
    let mut report = String::from_utf8(output.stdout).expect("text");
    if format == "html" {
        for (entity, character) in [
            ("&#34;", "\""),
            ("&#39;", "'"),
            ("&#62;", ">"),
            ("&#38;", "&"),
        ] {
            report = report.replace(entity, character);
        }
    }
    let look = report
        .find(" get node dead ")
        .unwrap_or_else(|| panic!("it asks for nothing: {report}"));
    let from = report[..look].rfind("kubectl ").expect("its begin");
    let last = " -f -";
    let end = report[from..].find(last).expect("its end") + last.len();
    report[from..from + end].to_owned()
}

/// Runs again some seconds later.
fn next(cluster: &ControlPlane) -> Run {
    until_overdue();
    run(&cluster.kubeconfig, &SHORT)
}

/// For ten minutes the pod stays, so that the data can still be kept.
#[test]
fn a_line_that_is_pasted_in_time_deletes_the_claim_and_nothing_else() {
    for (shell, format) in SHELLS.into_iter().zip(["text", "html", "text"]) {
        let cluster = fresh();
        let pod = with_local_claim(&cluster);
        let delete = line(&cluster, format);
        assert!(!is_deleting(&cluster, CLAIM));
        // A second user pastes the line too.
        for _ in 0..2 {
            let output = paste_into(shell, &cluster, &delete);
            let shown = shown(&output);
            assert!(output.status.success(), "{shell}: {delete}\n{shown}");
            assert!(is_deleting(&cluster, CLAIM), "{shell}: {delete}\n{shown}");
        }
        next(&cluster).says(&pod, ("not-overdue", None));
        assert!(cluster.has_pod("apps", "db-0"));
    }
}

/// Changes that may have happened before the line was pasted.
type Since = (&'static str, fn(&ControlPlane));

const CAME_BACK: [Since; 2] = [
    ("the node is back", |cluster| {
        node_becomes(cluster, "dead", "True", "KubeletReady");
    }),
    ("the node came back, and went again", |cluster| {
        node_becomes(cluster, "dead", "True", "KubeletReady");
        until_overdue();
        node_becomes(cluster, "dead", "Unknown", "NodeStatusUnknown");
    }),
];

#[test]
fn a_line_that_is_pasted_late_or_without_rights_deletes_nothing() {
    let others: [Since; 2] = [
        ("the node is gone", |cluster| {
            cluster.delete(&node_path("dead"), json!({}));
        }),
        ("the claim was made anew", |cluster| {
            let gone = json!({"metadata": {"finalizers": null}});
            for path in [
                claim_path("apps", CLAIM),
                "/api/v1/persistentvolumes/pv-apps-disk-db-0".to_owned(),
            ] {
                cluster.delete(&path, json!({}));
                cluster.merge_patch(&path, gone.clone());
            }
            local_claim(cluster, "dead", "apps", CLAIM);
        }),
    ];
    for (what, since) in CAME_BACK.into_iter().chain(others) {
        let cluster = fresh();
        with_local_claim(&cluster);
        let delete = line(&cluster, "text");
        let without_rights = paste(&cluster, &format!("{delete} --as=somebody"));
        assert!(!without_rights.status.success(), "{what}");
        since(&cluster);
        let output = paste(&cluster, &delete);
        assert!(!output.status.success(), "{what}: {}", shown(&output));
        assert!(!is_deleting(&cluster, CLAIM), "{what}");
        assert!(cluster.has_pod("apps", "db-0"), "{what}");
    }
}

/// Both clusters have a node, a pod and a PVC of the same names. The line names the kubeconfig, whose context may have changed.
#[test]
fn a_line_that_is_pasted_into_another_cluster_deletes_nothing() {
    let (cluster, other) = (fresh(), fresh());
    with_local_claim(&cluster);
    with_local_claim(&other);
    let path = |cluster: &ControlPlane| cluster.kubeconfig.display().to_string();
    let delete = line(&cluster, "text");
    let elsewhere = delete.replace(&path(&cluster), &path(&other));
    assert_ne!(elsewhere, delete);
    let output = paste(&other, &elsewhere);
    assert!(!output.status.success(), "{}", shown(&output));
    assert!(!is_deleting(&other, CLAIM));
    assert!(!is_deleting(&cluster, CLAIM));
}

/// A pod that a run reaps, on a dead node to which a volume is attached. Returns the line that taints the node.
fn taint_line(cluster: &ControlPlane) -> String {
    one_dead_of_three(cluster);
    make(
        cluster,
        "{VolumeAttachment attached: {volume: pv-1, node: dead}}",
    );
    pod(cluster, "apps/plain-0: {node: dead}");
    let run = next(cluster);
    let nodes = run.report["nodes"].as_array().expect("nodes").iter();
    let steps = nodes.flat_map(|node| node["steps"].as_array().expect("steps"));
    let mut lines = steps.filter_map(|step| step["command"].as_str());
    let line = lines.find(|line| line.contains(" taint nodes dead "));
    line.expect("it is printed").to_owned()
}

fn is_tainted(cluster: &ControlPlane) -> bool {
    let taints = cluster.get(&node_path("dead"))["spec"]["taints"].clone();
    let taints = taints.as_array().cloned().unwrap_or_default();
    taints
        .iter()
        .any(|taint| taint["key"] == "node.kubernetes.io/out-of-service")
}

#[test]
fn the_line_that_taints_a_node_does_so_only_while_the_node_is_as_judged() {
    for shell in SHELLS {
        let cluster = fresh();
        let taint = taint_line(&cluster);
        assert!(!is_tainted(&cluster));
        let output = paste_into(shell, &cluster, &taint);
        assert!(output.status.success(), "{shell}: {}", shown(&output));
        assert!(is_tainted(&cluster), "{shell}");
        // A second paste finds the taint there, and changes nothing.
        paste_into(shell, &cluster, &taint);
        assert!(is_tainted(&cluster), "{shell}");
    }
    for (what, since) in CAME_BACK {
        let cluster = fresh();
        let taint = taint_line(&cluster);
        since(&cluster);
        let output = paste(&cluster, &taint);
        assert!(!output.status.success(), "{what}: {}", shown(&output));
        assert!(!is_tainted(&cluster), "{what}");
    }
    let (cluster, other) = (fresh(), fresh());
    let taint = taint_line(&cluster);
    one_dead_of_three(&other);
    let path = |cluster: &ControlPlane| cluster.kubeconfig.display().to_string();
    let output = paste(&other, &taint.replace(&path(&cluster), &path(&other)));
    assert!(!output.status.success(), "{}", shown(&output));
    assert!(!is_tainted(&other) && !is_tainted(&cluster));
}

#[test]
fn the_steps_for_finalizers_and_lost_volumes_run() {
    let cluster = fresh();
    make(
        &cluster,
        "
        Node ready: {ready: 'True'}
        Node dead: {}
        PersistentVolumeClaim apps/dangling: {volume: no-such-volume, phase: Bound}
        ",
    );
    let held = "apps/held: {metadata: {finalizers: [example.org/backup]}}";
    let held = pod(&cluster, held);
    let dangling = pod(&cluster, "apps/dangling: {uses: dangling}");
    let before = next(&cluster);

    let shown = commands(&before, &held)
        .iter()
        .map(|command| shown(&paste(&cluster, command)))
        .collect::<String>();
    assert!(shown.contains("f:finalizers"), "{shown}");
    assert!(shown.contains("[example.org/backup]"), "{shown}");

    let [see] = commands(&before, &dangling)
        .try_into()
        .expect("one step to paste");
    let output = paste(&cluster, &see);
    assert!(String::from_utf8_lossy(&output.stdout).contains("no-such-volume"));
    before.says(&dangling, ("volume-unverified", None));
    assert!(!is_deleting(&cluster, "dangling"));
}

/// The root cluster has a pod of the same name.
#[test]
fn the_way_to_a_leaf_cluster_ends_nowhere_else() {
    let cluster = six_nodes::after_an_hour();
    let path = pod_path(six_nodes::REMOTE.0, six_nodes::REMOTE.1);
    let run = run(&cluster.kubeconfig, &SHORT);
    let way = commands(&run, &uid(&cluster.get(&path)))
        .pop()
        .expect("it comes last");
    let output = paste(&cluster, &way);
    assert!(!output.status.success(), "{}", shown(&output));
    assert!(
        !shown(&output).contains(six_nodes::REMOTE.1),
        "{}",
        shown(&output)
    );

    fs::copy(&cluster.kubeconfig, cluster.dir.join("cluster7.kubeconfig")).expect("ours");
    let output = paste(&cluster, &way);
    assert!(output.status.success(), "{}", shown(&output));
    assert!(
        shown(&output).contains(six_nodes::LEAF),
        "{}",
        shown(&output)
    );
}
