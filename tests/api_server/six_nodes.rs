//! The operators' case: six nodes, of which `ds06` has lost its power, and a Kosmos leaf cluster whose link is cut.

use crate::{prelude::*, support::objects::lease_path};

pub const NODES: [&str; 6] = ["ds01", "ds02", "ds03", "ds04", "ds05", "ds06"];
pub const DEAD: &str = "ds06";
pub const LEAF: &str = "kosmos-cluster7";

/// Stuck pods that a run reaps, as (namespace, name).
pub const STUCK: [(&str, &str); 7] = [
    ("compute-hive01", "hiveserver2-0"),
    ("compute-hive01", "hue-frontend-7c9d8b6f5-x2mlp"),
    ("compute-hive01", "huebackend-0"),
    ("etl", "nightly-29370-6wq8t"),
    ("impala-impala01", "catalogd-0"),
    ("impala-impala01", "huebackend-0"),
    ("vault", "vault-0"),
];
/// The start of the old tool's message, on which searches and alerts rely.
pub const DELETED: &str = "Successfully force-deleted pod";
/// The pod whose data is on the dead node's disk.
pub const LOCAL: (&str, &str) = ("impala-impala01", "impala-executor-000-0");
/// The pod that runs in the leaf cluster.
pub const REMOTE: (&str, &str) = ("kosmos-apps", "web-0");
/// The pod that merely stops slowly, on a healthy node.
pub const SLOW: (&str, &str) = ("compute-hive01", "metastore-0");

const HEALTHY: &str = "
Node kosmos-cluster7:
    ready: 'True'
    metadata:
        labels: {kosmos.io/node: 'true', kubernetes.io/role: agent}
        annotations: {kosmos-io/owned-by-cluster: cluster7}
    spec: {taints: [{key: kosmos.io/node, value: 'true', effect: NoSchedule}]}
PersistentVolume pvc-vault: {claim: vault/data-vault-0, spec: {csi: {driver: rbd.csi.ceph.com, volumeHandle: pvc-vault}}}
VolumeAttachment csi-vault: {node: ds06, volume: pvc-vault}
PersistentVolume pvc-scratch:
    on: ds06
    claim: impala-impala01/scratch-cache-volume-impala-executor-000-0
    spec: {hostPath: {path: /opt/local-path-provisioner}, persistentVolumeReclaimPolicy: Delete}
Pod compute-hive01/hiveserver2-0: {node: ds06, grace: null, owner: StatefulSet hiveserver2}
Pod compute-hive01/hue-frontend-7c9d8b6f5-x2mlp: {node: ds06, grace: null, owner: ReplicaSet hue-frontend-7c9d8b6f5,
    metadata: {labels: {app: hue-frontend}}}
Pod compute-hive01/huebackend-0: {node: ds06, grace: null, owner: StatefulSet huebackend}
Pod etl/nightly-29370-6wq8t: {node: ds06, grace: null, owner: Job nightly-29370,
    metadata: {labels: {controller-uid: nightly}}, spec: {restartPolicy: Never}}
Pod impala-impala01/catalogd-0: {node: ds06, grace: null, owner: StatefulSet catalogd}
Pod impala-impala01/huebackend-0: {node: ds06, grace: null, owner: StatefulSet huebackend}
Pod vault/vault-0: {node: ds06, grace: null, owner: StatefulSet vault, uses: data-vault-0,
    metadata: {annotations: {pod-reaper.io/after-reap: 'vault-0 starts sealed: unseal it by hand'}}}
StatefulSet impala-impala01/impala-executor-000: {}
Pod impala-impala01/impala-executor-000-0: {node: ds06, grace: null, owner: StatefulSet impala-executor-000,
    uses: scratch-cache-volume-impala-executor-000-0}
Pod kosmos-apps/web-0: {node: kosmos-cluster7, grace: null, owner: StatefulSet web,
    metadata: {labels: {kosmos-io/pod: 'true'}, annotations: {kosmos-io/tripped: '{}'}}}
Pod compute-hive01/metastore-0: {node: ds02, grace: null, owner: StatefulSet metastore}
Pod compute-hive02/hiveserver2-0: {node: ds03, grace: null, owner: StatefulSet hiveserver2}
";

/// All nodes are Ready, and every pod is running.
pub fn healthy(cluster: &ControlPlane) {
    for node in NODES {
        let node_and_daemon = "
            Node NAME: {ready: 'True'}
            Pod kube-system/node-exporter-NAME: {node: NAME, grace: null, owner: DaemonSet node-exporter, tolerates: null}
        ";
        make(cluster, &node_and_daemon.replace("NAME", node));
    }
    make(cluster, HEALTHY);
}

/// Deletes all pods on the failed nodes except those of `DaemonSet`s, and the slow pod.
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
    for node in [DEAD, LEAF] {
        cluster.delete(&node_path(node), json!({}));
        cluster.delete(&lease_path(node), json!({}));
    }
    make(
        cluster,
        "
        Node ds06: {}
        Node kosmos-cluster7: {metadata: {
            labels: {kosmos.io/node: 'true'}, annotations: {kosmos-io/owned-by-cluster: cluster7}}}
        ",
    );
    evict(cluster, 1);
    until_overdue();
}

/// A server of this test with that state.
pub fn after_an_hour() -> Fresh {
    let cluster = fresh();
    failed(&cluster);
    cluster
}

#[test]
fn the_case_is_judged_pod_by_pod_and_only_the_stuck_ones_go() {
    let cluster = after_an_hour();
    let before = cluster.get("/api/v1/pods");
    let uid_of = |(namespace, name): (&str, &str)| uid(&cluster.get(&pod_path(namespace, name)));
    let stuck = STUCK.map(uid_of);
    let (local, remote, slow) = (uid_of(LOCAL), uid_of(REMOTE), uid_of(SLOW));

    // A dry run selects the pods that the real run then deletes, changes nothing, and needs no guard.
    let proxy = Proxy::to(&cluster);
    let dry = run(&proxy.kubeconfig, &short("--dry-run --require-guard"));
    dry.is_whole();
    assert!(proxy.seen().iter().all(|seen| seen.method == "GET"));
    assert_eq!(cluster.get("/api/v1/pods")["items"], before["items"]);
    for uid in &stuck {
        dry.says(uid, ("stuck-on-not-ready-node", Some("would-delete")));
    }

    let run = run(&cluster.kubeconfig, &SHORT);

    run.ends(0);
    for uid in &stuck {
        run.says(uid, REAPED);
    }
    run.says(&local, ("local-volume", None));
    run.says(&remote, ("kosmos-leaf", None));
    assert!(each(&run.report["pods"]).all(|pod| pod["uid"] != slow.as_str()));
    let note = str_of(&run.pod(&stuck[6])["note"]);
    let said = "vault-0 starts sealed: unseal it by hand";
    assert!(note.contains(said), "{note}");
    assert_eq!(
        run.report["nodes"][0]["volumeAttachments"][0]["volume"],
        "pvc-vault"
    );

    let left = cluster.get("/api/v1/pods");
    let left = each(&left["items"]).map(uid).collect_vec();
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
        let end = format!("{DELETED} {name} in namespace {namespace} with deletion timestamp 20");
        assert!(run.log.contains(&end), "{}", run.log);
    }
}
