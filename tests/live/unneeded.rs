//! Nothing wants a pod again whose data is on the dead node: its namespace is being deleted, or no StatefulSet wants its ordinal.

use crate::{case::Live, prelude::*};

const SET: &str = "/apis/apps/v1/namespaces/impala-impala01/statefulsets/impala-executor-000";
/// The PVC of the executor on the node that fails.
pub const EXECUTORS_CLAIM: &str = "/api/v1/namespaces/impala-impala01/persistentvolumeclaims/scratch-cache-volume-impala-executor-000-0";

/// A set in a namespace. Its PVC is bound to a disk of ds03.
pub fn cache(namespace: &str, further: &str) -> String {
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

pub fn claim_of(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/data-cache-0")
}

pub fn running(case: &Case, namespace: &str) -> Seen {
    case.until(&format!("the cache of {namespace} runs"), || {
        let mut pods = case.pods_on(FAILING).into_iter();
        pods.find(|pod| pod.namespace == namespace && pod.is_running())
    })
}

fn scale(case: Live, set: &str, replicas: u32) {
    case.merge_patch(set, json!({"spec": {"replicas": replicas}}));
}

/// Three sets with a PVC on a disk of the dead node. The first is scaled down, and its PVC stays. The second is scaled down, and
/// its PVCs are then deleted. The namespace of the third is deleted, with everything in it.
#[test]
fn pods_that_nothing_wants_again_are_reaped_with_a_disk_on_their_node() {
    let case = Case::start();
    let retention = "persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}";
    case.apply(&cache("scaled", retention));
    case.apply(&cache("dropped", ""));
    let scaled = running(&case, "scaled");
    let dropped = running(&case, "dropped");
    let kept = case.get(EXECUTORS_CLAIM)["metadata"]["uid"].clone();
    let evicted = case.fails(FAILING);
    let of_set = |name: &str| {
        let mut pods = evicted.iter().filter(|pod| pod.name == name);
        pods.next().expect("it was there")
    };
    let executor = of_set("impala-executor-000-0");
    let asked = case.reap("--dry-run");
    for pod in [executor, &scaled, &dropped] {
        asked.says(&pod.uid, ("local-volume", None));
    }

    scale(*case, SET, 0);
    scale(
        *case,
        "/apis/apps/v1/namespaces/scaled/statefulsets/cache",
        0,
    );
    case.delete("/api/v1/namespaces/dropped", json!({}));
    // Kubernetes makes the pod the owner of its PVC only while it scales the set down.
    case.until_true("the pod owns its claim", || {
        let found = case.get(&claim_of("scaled"));
        let mut owners = found["metadata"]["ownerReferences"]
            .as_array()
            .into_iter()
            .flatten();
        owners.any(|owner| owner["uid"] == *scaled.uid)
    });
    // From Kubernetes 1.33 on, the PVCs of a namespace are deleted only once the pods are gone.
    case.until_true("the namespace is being deleted", || {
        case.get("/api/v1/namespaces/dropped")["metadata"]["deletionTimestamp"].is_string()
    });
    let run = case.reap("");
    run.ends(0);
    for pod in [executor, &scaled, &dropped] {
        run.says(&pod.uid, REAPED);
    }
    case.until_true("the namespace is gone", || {
        case.try_get("/api/v1/namespaces/dropped").is_none()
    });
    assert_eq!(case.try_get(&claim_of("dropped")), None);
    case.until_true("the claim went with its pod", || {
        case.try_get(&claim_of("scaled")).is_none()
    });
    let found = case.get(EXECUTORS_CLAIM);
    assert_eq!(found["metadata"]["uid"], kept);
    assert_eq!(found["metadata"].get("deletionTimestamp"), None);
    assert_eq!(found["status"]["phase"], "Bound");
}
