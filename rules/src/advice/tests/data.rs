//! Tests of the advice about data: a PVC that somebody deleted, a pod that writes to its node, and
//! a replacement that exists already and waits.

use expect_test::expect;

use super::*;

/// A kubelet that comes back terminates the pod, and a deleted PVC is removed with its last pod. So
/// the advice must not suggest waiting for the node.
#[test]
fn the_data_of_a_claim_that_somebody_deleted_is_kept_first() {
    let cases = expect![[r#"
        on the node: local; renewed; deleted
            = first
            = loses data pv-1 Delete
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        on the node, not wanted: local; renewed; deleted; set-wants-it-not
            = first
            = loses data pv-1 Delete
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        on the node, kept already: local; renewed; deleted; retain
            = first
            = loses data pv-1 Retain
            = keep
            = answer, which Starts empty: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        kept already, on a fenced node: local; renewed; deleted; retain; fenced
            = first
            = loses data pv-1 Retain
            = keep
            = answer, which Starts empty: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        on a fenced node: local; renewed; deleted; fenced
            = first
            = loses data pv-1 Delete
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        on the node, of a Deployment: local; deleted; owner ReplicaSet apps/v1; not-renewed no StatefulSet made it
            = first
            = loses data pv-1 Delete
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        on the node, of two pods of a Deployment: local; deleted; owner ReplicaSet apps/v1; not-renewed no StatefulSet made it; and db-1; owner ReplicaSet apps/v1; local; deleted; not-renewed no StatefulSet made it
            = first
            = loses data pv-1 Delete
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        elsewhere: claim; deleted; set-wants-it
            = first
            = loses data pv-1 Delete
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        elsewhere, on a shared disk: claim; shared; deleted; set-wants-it
            = first, risk
            = loses data pv-1 Delete
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = answer: kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        of a kind: claim; deleted; set-wants-it-not; --manual-owner-kind StatefulSet
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = no answer
        with a hostPath: local; renewed; deleted; writes-to /data
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = no answer
        another pod keeps it: claim; shared; deleted; kept-by web-1; set-wants-it
            = risk
            = answer: kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
        its namespace goes too: claim; shared; deleted; namespace deleted
            = risk
            = answer: kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
        its own alone, which no other needs: claim; shared; owned; deleted
            = risk
            = answer: kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
        a name that no API server gives: local; renewed; deleted; named $(reboot)
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = no answer
    "#]];
    check(&cases);
    let cases = cases.data().lines().map(str::trim);
    for case in cases.filter(|line| !line.is_empty() && !line.starts_with("= ")) {
        let (_, words) = case.split_once(':').unwrap();
        let advice = Scene::of(words).advice();
        let mut texts = advice.iter().flat_map(|advice| {
            let says = [&advice.first, &advice.risk].into_iter().flatten();
            says.chain(advice.steps.iter().map(|step| &step.what))
        });
        let text = texts
            .join("\n")
            .replace("reaps the pods that wait for it", "");
        let is_kept_first = !text.contains("Retain") || !text.contains("wait");
        assert!(is_kept_first, "{words}");
    }
}

#[test]
fn what_a_pod_wrote_on_its_node_is_named_before_it_is_left_there() {
    check(&expect![[r#"
        alone: writes-to /data
            = first
            = answer, which Starts empty: kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
        two paths: writes-to /data /srv
            = first
            = answer, which Starts empty: kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
        with a claim on the node: writes-to /data; local; renewed
            = first
            = loses data pv-1 Delete
            = answer, which Starts empty: kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        with a claim on the node, given up: writes-to /data; local; renewed; give-up 2026-03-01T11:30:00Z
            = first
            = answer, which Starts empty: kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
        with a claim that goes: writes-to /data; claim; unwanted
            = no answer
        of a kind too: writes-to /data; --manual-owner-kind StatefulSet
            = first, risk
            = answer, which Starts empty: kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
    "#]]);
}

#[test]
fn the_replacement_of_a_deployments_pod_waits_already() {
    check(&expect![[r#"
        of a Deployment: local; owner ReplicaSet apps/v1; not-renewed no StatefulSet made it
            = first
            = no answer
        of another maker: local; owner ReplicaSet x.example/v1; by-operator
            = first
            = loses data pv-1 Delete
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        without a controller: local; owner none; not-renewed no StatefulSet made it
            = no answer
    "#]]);
}
