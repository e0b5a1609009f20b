//! What deleting a pod does to its data, with the controllers that are involved.

use crate::{alive::destroys, prelude::*};

const CLAIM: &str = "/api/v1/namespaces/compute-hive01/persistentvolumeclaims/data-ledger-0";
const DISK: &str = "/api/v1/persistentvolumes/disk-of-ledger";

/// Somebody deletes the PVCs of two `StatefulSet`s, and each PVC waits for its pod. Then the node dies. Deleting a pod would
/// delete its data, because both volumes have the policy Delete. The volume of `ledger` is on the network: you keep it by the
/// printed command, and the next run deletes the pod. The volume of `cache` is on the node: you keep it, and the kubelet terminates
/// the pod once it runs again. The directory of `archive` has no node affinity, so no printed command deletes its PVC.
#[test]
fn a_claim_is_deleted_by_mistake() {
    let case = Case::start();
    case.apply(SETS);
    let stateful = || {
        let mut pods = case.pods_on(FAILING);
        pods.retain(|pod| ["archive-0", "ledger-0"].contains(&&*pod.name) && pod.is_running());
        pods
    };
    case.until_true("both run", || stateful().len() == 2);
    let claim = case.get(CLAIM)["metadata"]["uid"].clone();
    case.apply(&cache("caches", ""));
    let local = running(&case, "caches");
    let local_claim = claim_of("caches");
    let local_uid = case.get(&local_claim)["metadata"]["uid"].clone();
    for deleted in [CLAIM, &local_claim] {
        case.delete(deleted, json!({}));
    }
    let mut evicted = case.fails(FAILING);
    evicted.retain(|pod| pod.uid != local.uid);
    let (kept, others): (Vec<_>, Vec<_>) = evicted
        .into_iter()
        .partition(|pod| ["archive-0", "ledger-0"].contains(&&*pod.name));
    let [archive, ledger] = &kept[..] else {
        panic!("{kept:?}")
    };
    let is_kept = |policy: &str| {
        let found = case.get(CLAIM);
        assert!(found["metadata"]["deletionTimestamp"].is_string());
        assert_eq!(found["metadata"]["uid"], claim);
        let disk = case.get(DISK);
        assert_eq!(disk["metadata"].get("deletionTimestamp"), None);
        assert_eq!(disk["spec"]["persistentVolumeReclaimPolicy"], policy);
        assert_eq!(disk["status"]["phase"], "Bound");
    };

    let run = case.reap("");
    run.ends(0);
    let moved = others
        .into_iter()
        .filter(|pod| pod.name != "impala-executor-000-0")
        .collect_vec();
    all_are(&run, &moved, REAPED);
    run.says(&ledger.uid, ("volume-unverified", None));
    run.says(&archive.uid, ("local-volume", None));
    run.says(&local.uid, ("volume-unverified", None));
    case.until_replaced(&moved);
    assert!(
        kept.iter()
            .all(|pod| case.evictable_on(FAILING).contains(pod))
    );
    is_kept("Delete");
    let asked = commands(&run, &archive.uid);
    assert!(!asked.iter().any(|command| destroys(command)), "{asked:?}");

    let asked = commands(&run, &ledger.uid);
    let retain = &asked[0];
    assert!(retain.contains(" patch pv disk-of-ledger "), "{retain}");
    let output = paste(&case, retain);
    assert!(output.status.success(), "{retain}\n{}", shown(&output));
    is_kept("Retain");
    let asked = commands(&run, &local.uid);
    let run = case.reap("");
    run.ends(0);
    run.says(&ledger.uid, REAPED);
    run.says(&archive.uid, ("local-volume", None));
    case.until("the set makes a claim anew", || {
        case.try_get(CLAIM)
            .filter(|found| found["metadata"]["uid"] != claim)
    });
    case.until_true("the data stays", || {
        case.get(DISK)["status"]["phase"] == "Released"
    });
    assert_eq!(case.get(DISK)["metadata"].get("deletionTimestamp"), None);

    let retain = &asked[0];
    assert!(retain.contains(" patch pv disk-of-caches "), "{asked:?}");
    let pasted = || {
        let output = paste(&case, retain);
        assert!(output.status.success(), "{retain}\n{}", shown(&output));
    };
    // You paste in time, and twice.
    pasted();
    pasted();
    case.resume(FAILING);
    case.until_true("the kubelet ends the pod, and the PVC is deleted", || {
        case.try_get(&local_claim)
            .is_none_or(|found| found["metadata"]["uid"] != local_uid)
    });
    let disk = "/api/v1/persistentvolumes/disk-of-caches";
    case.until_true("its data stays", || {
        case.get(disk)["status"]["phase"] == "Released"
    });
    assert_eq!(case.get(disk)["metadata"].get("deletionTimestamp"), None);
    // You paste late.
    pasted();
}

const SETS: &str = "
apiVersion: v1
kind: List
items:
- apiVersion: storage.k8s.io/v1
  kind: StorageClass
  metadata: {name: network}
  provisioner: kubernetes.io/no-provisioner
- apiVersion: v1
  kind: PersistentVolume
  metadata: {name: disk-of-ledger}
  spec: &disk
    storageClassName: network
    capacity: {storage: 1Gi}
    accessModes: [ReadWriteOnce]
    persistentVolumeReclaimPolicy: Delete
    claimRef: {namespace: compute-hive01, name: data-ledger-0}
    nfs: {server: 192.0.2.1, path: /ledger}
- apiVersion: v1
  kind: PersistentVolume
  metadata: {name: disk-of-archive}
  spec:
    <<: *disk
    claimRef: {namespace: compute-hive01, name: data-archive-0}
    nfs: null
    hostPath: {path: /}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: ledger, namespace: compute-hive01}
  spec: &set
    serviceName: ledger
    selector: {matchLabels: {app: ledger}}
    template: &pod
      metadata: {labels: {app: ledger}}
      spec:
        terminationGracePeriodSeconds: 2
        nodeSelector: {kubernetes.io/hostname: ds03}
        tolerations:
        - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
        - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
        containers:
        - {name: main, image: pretended, volumeMounts: [{name: data, mountPath: /data}]}
    volumeClaimTemplates:
    - metadata: {name: data}
      spec:
        storageClassName: network
        accessModes: [ReadWriteOnce]
        resources: {requests: {storage: 1Gi}}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: archive, namespace: compute-hive01}
  spec:
    <<: *set
    selector: {matchLabels: {app: archive}}
    template:
      <<: *pod
      metadata: {labels: {app: archive}}
";

/// A set in a namespace. Its PVC is bound to a disk of ds03.
fn cache(namespace: &str, further: &str) -> String {
    format!(
        "
apiVersion: v1
kind: List
items:
- {{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}
- apiVersion: v1
  kind: PersistentVolume
  metadata: {{name: disk-of-{namespace}}}
  spec:
    storageClassName: local-path
    capacity: {{storage: 1Gi}}
    accessModes: [ReadWriteOnce]
    persistentVolumeReclaimPolicy: Delete
    claimRef: {{namespace: {namespace}, name: data-cache-0}}
    local: {{path: /}}
    nodeAffinity:
      required:
        nodeSelectorTerms:
        - matchExpressions:
          - {{key: kubernetes.io/hostname, operator: In, values: [ds03]}}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {{name: cache, namespace: {namespace}}}
  spec:
    serviceName: cache
    {further}
    selector: {{matchLabels: {{app: cache}}}}
    template:
      metadata: {{labels: {{app: cache}}}}
      spec:
        terminationGracePeriodSeconds: 2
        tolerations:
        - {{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}}
        - {{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 1}}
        containers:
        - {{name: main, image: pretended, volumeMounts: [{{name: data, mountPath: /data}}]}}
    volumeClaimTemplates:
    - metadata: {{name: data}}
      spec:
        storageClassName: local-path
        accessModes: [ReadWriteOnce]
        resources: {{requests: {{storage: 1Gi}}}}
"
    )
}

fn claim_of(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/data-cache-0")
}

fn running(case: &Case, namespace: &str) -> Seen {
    case.until(&format!("the cache of {namespace} runs"), || {
        let mut pods = case.pods_on(FAILING).into_iter();
        pods.find(|pod| pod.namespace == namespace && pod.is_running())
    })
}
