//! Tests of the advice about data: a PVC that somebody deleted, a pod that writes to its node, and
//! a replacement that exists already and waits.

use expect_test::expect;

use super::*;

/// A kubelet that comes back terminates the pod, and a deleted PVC is removed with its last pod. So
/// the advice must not suggest waiting for the node.
#[test]
fn the_data_of_a_claim_that_somebody_deleted_is_kept_first() {
    let cases = expect![[r#"
        on the node: local; templated; deleted
            = first
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = see
            = decide
        on the node, not wanted: local; templated; deleted; set-wants-it-not
            = first
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = decide
        on the node, kept already: local; templated; deleted; retain
            = see
            = decide
        kept already, on a fenced node: local; templated; deleted; retain; fenced
            = see
            = decide
        on a fenced node: local; templated; deleted; fenced
            = first
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = see
            = decide
        on the node, of a Deployment: local; deleted; owner ReplicaSet apps/v1
            = first
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = decide
        on the node, of two pods of a Deployment: local; deleted; owner ReplicaSet apps/v1; and db-1; owner ReplicaSet apps/v1; local; deleted
            = first
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = decide
        elsewhere: claim; deleted; set-wants-it
            = first
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = decide
        elsewhere, on a shared disk: claim; shared; deleted; set-wants-it
            = first, risk
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = decide
            = decide
        of a kind: claim; deleted; set-wants-it-not; --manual-owner-kind StatefulSet
            = first, risk
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = decide
        with a hostPath: local; templated; deleted; writes-to /data
            = first
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = see
            = decide
        its namespace goes too: claim; shared; deleted; namespace deleted
            = risk
            = decide
        its own alone, which no other needs: claim; shared; owned; deleted
            = risk
            = decide
        a name that no API server gives: local; templated; deleted; named $(reboot)
            = first
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = see
            = decide
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
            = decide
        two paths: writes-to /data /srv
            = first
            = decide
        with a claim on the node: writes-to /data; local; templated
            = first
            = see
            = decide, which Destroys data: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && echo '{"preconditions":{"uid":"c-1"}}' | kubectl delete --raw /api/v1/namespaces/shop/persistentvolumeclaims/data -f -
            = decide
        with a claim that goes: writes-to /data; claim; unwanted
            = first
            = decide
        of a kind too: writes-to /data; --manual-owner-kind StatefulSet
            = first, risk
            = decide
    "#]]);
}

#[test]
fn the_replacement_of_a_deployments_pod_waits_already() {
    check(&expect![[r#"
        of a Deployment: local; owner ReplicaSet apps/v1
            = first
            = decide
        without a controller: local; owner none
            = risk
            = decide
    "#]]);
}
