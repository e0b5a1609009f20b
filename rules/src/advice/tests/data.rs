//! Tests of the advice about data: a claim that somebody deleted, a pod that writes to its node, and
//! a replacement that waits already.

use expect_test::expect;

use super::*;

/// The kubelet that comes back ends the pod, and with its last pod a deleted claim goes: nothing may
/// suggest to wait for the node.
#[test]
fn the_data_of_a_claim_that_somebody_deleted_is_kept_first() {
    let cases = expect![[r#"
        on the node: local; renewed; deleted
            = First: Keep the data by the first step: ds06's kubelet destroys it as soon as it is back. Then power ds06 off, and answer, or two copies may run. Kubernetes deletes the claim once its last pod is gone.
            = Set volume pv-1 to Retain before ds06 comes back: somebody deleted PVC data, so the data is destroyed as soon as ds06's kubelet ends the pod. $ kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = Give up claim data (10Gi, made 2025-11-21): the data of volume pv-1 is lost for good (policy Delete), unless you set it to Retain first. $ kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        on the node, not wanted: local; renewed; deleted; set-wants-it-not
            = First: Keep the data by the first step: ds06's kubelet destroys it as soon as it is back. Then power ds06 off, and answer, or two copies may run. Kubernetes deletes the claim once its last pod is gone.
            = Set volume pv-1 to Retain before ds06 comes back: somebody deleted PVC data, so the data is destroyed as soon as ds06's kubelet ends the pod. $ kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = Give up claim data (10Gi, made 2025-11-21): the data of volume pv-1 is lost for good (policy Delete), unless you set it to Retain first. $ kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        on the node, kept already: local; renewed; deleted; retain
            = First: Power ds06 off, then answer, or two copies may run. Kubernetes deletes the claim once its last pod is gone.
            = Somebody deleted PVC data: it goes with its last pod. Its volume pv-1 has the policy Retain, so its data stays, and a replacement starts empty.
            = Give up claim data (10Gi, made 2025-11-21): the data of volume pv-1 stays on ds06's disk (policy Retain), but the new pod starts without it. $ kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        on a fenced node: local; renewed; deleted; fenced
            = First: Keep the data by the first step: ds06's kubelet destroys it as soon as it is back. Then power ds06 off, and answer, or two copies may run. Kubernetes deletes the claim once its last pod is gone.
            = Set volume pv-1 to Retain before ds06 comes back: somebody deleted PVC data, so the data is destroyed as soon as ds06's kubelet ends the pod. $ kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = Give up claim data (10Gi, made 2025-11-21): the data of volume pv-1 is lost for good (policy Delete), unless you set it to Retain first. $ kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        on the node, of a Deployment: local; deleted; owner ReplicaSet apps/v1; not-renewed no StatefulSet made it
            = First: Keep the data by the first step: ds06's kubelet destroys it as soon as it is back. Then power ds06 off, and answer, or two copies may run. Kubernetes deletes the claim once its last pod is gone. The replacement exists already, and stays Pending: PVC data can only be used on ds06. Once the old pod is gone, create PVC data again, since no controller does.
            = Set volume pv-1 to Retain before ds06 comes back: somebody deleted PVC data, so the data is destroyed as soon as ds06's kubelet ends the pod. $ kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = Give up claim data (10Gi, made 2025-11-21): the data of volume pv-1 is lost for good (policy Delete), unless you set it to Retain first. $ kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        elsewhere: claim; deleted; set-wants-it
            = First: Keep the data by the first step: ds06's kubelet destroys it as soon as it is back. Then power ds06 off, and answer, or two copies may run. Kubernetes deletes the claim once its last pod is gone.
            = Set volume pv-1 to Retain before ds06 comes back: somebody deleted PVC data, so the data is destroyed as soon as ds06's kubelet ends the pod. $ kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = Give up claim data (10Gi, made 2025-11-21): the data of volume pv-1 is lost for good (policy Delete), unless you set it to Retain first. $ kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        elsewhere, on a shared disk: claim; shared; deleted; set-wants-it
            = First: Keep the data by the first step: ds06's kubelet destroys it as soon as it is back. Then power ds06 off, and answer, or two copies may run. Kubernetes deletes the claim once its last pod is gone.
            = Risk: If ds06 still runs, its machine and the replacement's would write to one disk at once, which destroys its data.
            = Set volume pv-1 to Retain before ds06 comes back: somebody deleted PVC data, so the data is destroyed as soon as ds06's kubelet ends the pod. $ kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = Power ds06 off, or cut off its disks, and check that at the machine itself, not by what the cluster says: what still runs there would write to the same disks. Then say so, and a run takes what waits for that. Where fencing is automatic, have it mark the node (annotation fencing/state=fenced, or what --fenced-node-selector selects) and unmark it when it is back. $ kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
            = Give up claim data (10Gi, made 2025-11-21): the data of volume pv-1 is lost for good (policy Delete), unless you set it to Retain first. $ kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        of a kind: claim; deleted; set-wants-it-not; --manual-owner-kind StatefulSet
            = Set volume pv-1 to Retain before ds06 comes back: somebody deleted PVC data, so the data is destroyed as soon as ds06's kubelet ends the pod. $ kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = No answer is asked for: a claim would go with the pod. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
        with a hostPath: local; renewed; deleted; writes-to /data
            = Set volume pv-1 to Retain before ds06 comes back: somebody deleted PVC data, so the data is destroyed as soon as ds06's kubelet ends the pod. $ kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = No answer is asked for: a claim would go with the pod. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
        another pod keeps it: claim; shared; deleted; kept-by web-1; set-wants-it
            = Risk: If ds06 still runs, its machine and the replacement's would write to one disk at once, which destroys its data.
            = Power ds06 off, or cut off its disks, and check that at the machine itself, not by what the cluster says: what still runs there would write to the same disks. Then say so, and a run takes what waits for that. Where fencing is automatic, have it mark the node (annotation fencing/state=fenced, or what --fenced-node-selector selects) and unmark it when it is back. $ kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
        its namespace goes too: claim; shared; deleted; namespace deleted
            = Risk: If ds06 still runs, its machine and the replacement's would write to one disk at once, which destroys its data.
            = Power ds06 off, or cut off its disks, and check that at the machine itself, not by what the cluster says: what still runs there would write to the same disks. Then say so, and a run takes what waits for that. Where fencing is automatic, have it mark the node (annotation fencing/state=fenced, or what --fenced-node-selector selects) and unmark it when it is back. $ kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
        a name that no API server gives: local; renewed; deleted; named $(reboot)
            = Set volume pv-1 to Retain before ds06 comes back: somebody deleted PVC data, so the data is destroyed as soon as ds06's kubelet ends the pod. $ kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = No answer is asked for: one of the names is not one that an API server gives. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
    "#]];
    check_each(&cases, |words| {
        let told = advised(words);
        let text = told.join("\n").replace("takes what waits for that", "");
        assert!(
            !text.contains("Retain") || !text.contains("wait"),
            "{words}"
        );
        told
    });
}

#[test]
fn what_a_pod_wrote_on_its_node_is_named_before_it_is_left_there() {
    check_each(
        &expect![[r#"
            alone: writes-to /data
                = First: If ds06 can come back, wait: the pod starts again with its data. If not, power ds06 off, then answer, or two copies may run.
                = Let the pod go; every claim is kept. The data in /data stays on ds06's disk, and the replacement starts without it: copy it from there if you need it. A run then does it. $ kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
            two paths: writes-to /data /srv
                = First: If ds06 can come back, wait: the pod starts again with its data. If not, power ds06 off, then answer, or two copies may run.
                = Let the pod go; every claim is kept. The data in /data, /srv stays on ds06's disk, and the replacement starts without it: copy it from there if you need it. A run then does it. $ kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
            with a claim on the node: writes-to /data; local; renewed
                = First: If ds06 can come back, wait: the pod starts again with its data. If not, power ds06 off, then answer, or two copies may run. A scheduled run acts on this only if the component answers is installed. If not, run pod-reaper -n shop (it also reaps its other stuck pods). Each claim is deleted with its pod; its StatefulSet creates both again, empty.
                = Let the pod go; every claim is kept. The data in /data stays on ds06's disk, and the replacement starts without it: copy it from there if you need it. A run needs the next step too. $ kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
                = Give up claim data (10Gi, made 2025-11-21): the data of volume pv-1 is lost for good (policy Delete). $ kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
            with a claim on the node, given up: writes-to /data; local; renewed; give-up 2026-03-01T11:30:00Z
                = First: If ds06 can come back, wait: the pod starts again with its data. If not, power ds06 off, then answer, or two copies may run.
                = Let the pod go; every claim is kept. The data in /data stays on ds06's disk, and the replacement starts without it: copy it from there if you need it. A run then does it. $ kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
            with a claim that goes: writes-to /data; claim; unwanted
                = No answer is asked for: a claim would go with the pod. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
            of a kind too: writes-to /data; --manual-owner-kind StatefulSet
                = First: If ds06 can come back, wait: the pod starts again with its data. If not, power ds06 off, then answer, or two copies may run.
                = Risk: If ds06 is only cut off, what it ran may still be running there, and a replacement would be a second copy.
                = Let the pod go; every claim is kept. The data in /data stays on ds06's disk, and the replacement starts without it: copy it from there if you need it. A run then does it. $ kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
        "#]],
        advised,
    );
}

#[test]
fn the_replacement_of_a_deployments_pod_waits_already() {
    check_each(
        &expect![[r#"
            of a Deployment: local; owner ReplicaSet apps/v1; not-renewed no StatefulSet made it
                = First: The replacement exists already, and stays Pending: PVC data can only be used on ds06. If ds06 can come back, wait: the replacement then starts there, with the data. If ds06 is lost for good, delete PVC data and the old pod by hand; then create PVC data again, empty, since no controller does.
                = No answer is asked for: no StatefulSet made it. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
            of another maker: local; owner ReplicaSet x.example/v1; by-operator
                = First: If ds06 can come back, wait: the pod starts again with its data. If not, power ds06 off, then answer, or two copies may run. A scheduled run acts on this only if the component answers is installed. If not, run pod-reaper -n shop (it also reaps its other stuck pods). Each claim is deleted with its pod; whether it comes back is the affair of the operator that controls the pod.
                = Give up claim data (10Gi, made 2025-11-21): the data of volume pv-1 is lost for good (policy Delete). $ kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
            without a controller: local; owner none; not-renewed no StatefulSet made it
                = No answer is asked for: no StatefulSet made it. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
        "#]],
        advised,
    );
}
