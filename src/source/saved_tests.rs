//! Tests of the time at which a saved state is judged, and of the kinds that it lacks.

use itertools::Itertools as _;
use pod_reaper_test_support::samples::{list, objects, with, yaml};

use super::snapshot::{Options, Saved};
use crate::{
    decide::ReasonCode,
    exit::Exit,
    report::samples::{audit, gathered_from, judged, report},
    words::prefixed,
};

/// A cluster of three Ready nodes and one NotReady node, without any lease.
const CLUSTER: &str = "
    Node ds01: {ready: 'True', lease: null}
    Node ds02: {ready: 'True', lease: null}
    Node ds03: {ready: 'True', lease: null}
    Node ds06: {lease: null}
    Namespace data: {}
    Pod a-0: {}
";

/// Lists the objects of the cluster with `more`, which is the inside of a mapping in braces.
fn cluster(more: &str) -> Vec<serde_json::Value> {
    objects(&with(yaml(CLUSTER), yaml(&format!("{{{more}}}"))))
}

/// A file is judged at the newest stamp of the API server, or at the median of the clocks of Ready
/// nodes if that is later. No deadline and no single wrong clock changes that moment.
#[test]
fn the_time_of_a_file_is_that_of_the_server_and_of_most_nodes() {
    let requested = "2026-01-31T01:04:59Z";
    let newest = "2026-01-31T03:00:00Z";
    for (case, more, expected) in [
        ("the request of the deletion", "", requested),
        (
            "a deadline in the future",
            "Pod b: {metadata: {deletionTimestamp: '2026-01-31T09:00:00Z', deletionGracePeriodSeconds: null}}",
            requested,
        ),
        (
            "a request after others",
            "Pod b: {metadata: {deletionTimestamp: '2026-01-31T09:00:00Z', deletionGracePeriodSeconds: 21600}}",
            newest,
        ),
        (
            "a stamp",
            "Pod b: {metadata: {managedFields: [{time: '2026-01-31T01:00:00Z'}, {time: '2026-01-31T03:00:00Z'}]}}",
            newest,
        ),
        (
            "a kubelet's heartbeat",
            "Node ds01: {status: {conditions: [{type: Ready, status: 'True', lastHeartbeatTime: '2026-01-31T03:00:00Z'}]}}",
            requested,
        ),
        (
            "a kubelet's transition",
            "Node ds01: {status: {conditions: [{type: Ready, status: 'True', lastTransitionTime: '2026-01-31T03:00:00Z'}]}}",
            requested,
        ),
        (
            "a Ready node's renewal",
            "Lease ds01: {spec: {renewTime: '2026-01-31T03:00:00Z'}}",
            newest,
        ),
        (
            "that of a node that is not Ready",
            "Lease ds06: {spec: {renewTime: '2026-01-31T03:00:00Z'}}",
            requested,
        ),
        (
            "that of a node that is gone",
            "Lease ds09: {spec: {renewTime: '2026-01-31T03:00:00Z'}}",
            requested,
        ),
        (
            "a leader's",
            "Lease ds01: {metadata: {namespace: kube-system}, spec: {renewTime: '2026-01-31T03:00:00Z'}}",
            requested,
        ),
        (
            "the earlier of two",
            "Lease ds01: {spec: {renewTime: '2026-01-31T03:00:00Z'}}, Lease ds02: {spec: {renewTime: '2026-01-31T09:00:00Z'}}",
            newest,
        ),
        (
            "the middle one of three",
            "Lease ds01: {spec: {renewTime: '2026-01-31T02:00:00Z'}}, Lease ds02: {spec: {renewTime: '2026-01-31T09:00:00Z'}}, Lease ds03: {spec: {renewTime: '2026-01-31T03:00:00Z'}}",
            newest,
        ),
        (
            "a stamp that is newer",
            "Pod b: {metadata: {managedFields: [{time: '2026-01-31T03:00:00Z'}]}}, Lease ds01: {spec: {renewTime: '2026-01-31T02:59:59Z'}}",
            newest,
        ),
    ] {
        let text = list(cluster(more)).to_string();
        let saved = Saved::read(text.as_bytes(), Options::default()).expect("dated");
        let settings = audit();
        let gathered = gathered_from(&saved, &settings);
        assert_eq!(gathered.facts.now.to_string(), expected, "{case}");
    }
}

/// Without leases nothing shows that a node is alive, so the pods to be reaped may still be
/// running.
#[test]
fn a_file_without_leases_is_incomplete_if_that_may_change_a_verdict() {
    let leases = "Lease ds01: {}, Lease ds06: {}";
    for (case, more, is_incomplete) in [
        ("none", "", true),
        (
            "of leaders alone",
            "Lease ds06: {metadata: {namespace: kube-system}}",
            true,
        ),
        ("saved", leases, false),
        (
            "no stuck pod",
            "Pod a-0: {metadata: {deletionTimestamp: null}}",
            false,
        ),
        (
            "on a Ready node",
            "Pod a-0: {spec: {nodeName: ds01}}",
            false,
        ),
        (
            "on a node that is gone",
            "Pod a-0: {spec: {nodeName: ds09}}",
            false,
        ),
    ] {
        let report = report(&audit(), &cluster(more), &[]);
        let exit = if is_incomplete {
            Exit::Incomplete
        } else {
            Exit::Done
        };
        assert_eq!(report.exit, exit, "{case}");
        let errors = report.errors.iter().map(|error| error.what.as_str());
        let expected = is_incomplete.then_some("leases");
        assert_eq!(errors.collect_vec(), Vec::from_iter(expected), "{case}");
        let first = format!("{:?}", report.page().head.iter().take(2).format(" "));
        assert_eq!(
            first.contains("INCOMPLETE"),
            is_incomplete,
            "{case}: {first}"
        );
    }
    // A lease that cannot be read is an error of its own.
    let report = report(&audit(), &cluster("Lease ds06: {spec: 5}"), &[]);
    assert_eq!(report.exit, Exit::Incomplete);
    assert_eq!(report.errors[0].what, "Lease kube-node-lease/ds06");
}

/// A file does not tell whether a kind was not saved or has no object. The facts that the kind
/// would give stay unverified.
#[test]
fn a_kind_without_an_object_is_unknown() {
    let leases = "Lease ds01: {}, Lease ds06: {}";
    let using = "Pod a-0: {uses: data}";
    let claim = "PersistentVolumeClaim data: {volume: pv-1}";
    let pinned = "PersistentVolume pv-1: {on: ds06, spec: {local: {path: /d}}}";
    for (lacks, more, reason) in [
        (
            "persistentvolumeclaims",
            using.to_owned(),
            ReasonCode::VolumeUnverified,
        ),
        (
            "persistentvolumes",
            format!("{using}, {claim}"),
            ReasonCode::VolumeUnverified,
        ),
        (
            "statefulsets",
            format!("{using}, {claim}, {pinned}"),
            ReasonCode::LocalVolume,
        ),
        (
            "csidrivers",
            format!(
                "{using}, {claim}, PersistentVolume pv-1: {{spec: {{accessModes: [ReadWriteOnce], csi: {{driver: x, volumeAttributes: {{iqn: iqn.x}}}}}}}}"
            ),
            ReasonCode::FactsUnread,
        ),
    ] {
        let settings = audit();
        let run = judged(&settings, &cluster(&format!("{leases}, {more}")));
        let pod = &run.plan.pods[0];
        assert_eq!(pod.code(), reason, "{lacks}");
        let advice = run.adviser().advise(&[pod]);
        let steps = advice.steps.iter().map(|step| step.what.as_str());
        let said = pod.sentence() + &prefixed(" ", Some(steps.format(" ")));
        let says = format!("the file has no {lacks}: they were not saved, or there are none");
        assert!(said.contains(&says), "{lacks}: {said}");
        // A kind that only some pods need is reported for these pods only.
        if ["statefulsets", "csidrivers"].contains(&lacks) {
            continue;
        }
        let unseen = run.facts.unseen.concat();
        assert!(
            unseen.contains("They were not saved, or there are none."),
            "{unseen}"
        );
    }
}
