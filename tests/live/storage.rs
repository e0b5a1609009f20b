//! The data of a deleted pod, with the controllers that delete or keep it.

use crate::{alive::destroys, prelude::*};

const CLAIM: &str = "/api/v1/namespaces/compute-hive01/persistentvolumeclaims/data-ledger-0";
const DISK: &str = "/api/v1/persistentvolumes/disk-of-ledger";

/// Somebody deletes the PVC of a `StatefulSet`, and the PVC waits for its pod. Then the node dies. Deleting the pod would delete its
/// data, because the volume has the policy Delete. You keep it by the printed command, and the next run deletes the pod. The
/// directory of `archive` has no node affinity, so no printed command deletes its PVC.
#[test]
fn a_claim_is_deleted_by_mistake() {
    let case = Case::start();
    case.apply(SETS);
    let is_stateful = |pod: &Seen| ["archive-0", "ledger-0"].contains(&&*pod.name);
    case.until_true("both run", || {
        let pods = case.pods_on(FAILING).into_iter();
        pods.filter(|pod| is_stateful(pod) && pod.is_running())
            .count()
            == 2
    });
    let claim = case.get(CLAIM)["metadata"]["uid"].clone();
    case.delete(CLAIM, json!({}));
    let evicted = case.fails(FAILING).into_iter();
    let kept = evicted.filter(is_stateful).collect_vec();
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
    run.says(&ledger.uid, ("volume-unverified", None));
    run.says(&archive.uid, ("local-volume", None));
    let left = case.evictable_on(FAILING);
    assert!(kept.iter().all(|pod| left.contains(pod)), "{left:?}");
    is_kept("Delete");
    let asked = commands(&run, &archive.uid);
    assert!(!asked.iter().any(|command| destroys(command)), "{asked:?}");

    let asked = commands(&run, &ledger.uid);
    let retain = &asked[0];
    assert!(retain.contains(" patch pv disk-of-ledger "), "{retain}");
    let pasted = || {
        let output = paste(&case, retain);
        assert!(output.status.success(), "{retain}\n{}", shown(&output));
    };
    pasted();
    is_kept("Retain");
    let run = case.reap("");
    run.ends(0);
    run.says(&ledger.uid, REAPED);
    run.says(&archive.uid, ("local-volume", None));
    case.until("the set makes a PVC anew", || {
        case.try_get(CLAIM)
            .filter(|found| found["metadata"]["uid"] != claim)
    });
    case.until_true("the data stays", || {
        case.get(DISK)["status"]["phase"] == "Released"
    });
    assert_eq!(case.get(DISK)["metadata"].get("deletionTimestamp"), None);
    // Somebody else pastes late.
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
