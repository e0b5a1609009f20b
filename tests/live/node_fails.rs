//! One node fails.

use crate::prelude::*;

/// Reason and outcome of the pods on the failing node. The DaemonSet's pod is not Terminating.
const FATES: [(&str, &str, Option<&str>); 7] = [
    (
        "compute-hive01/compaction",
        "stuck-on-not-ready-node",
        Some("deleted"),
    ),
    (
        "compute-hive01/hiveserver2",
        "stuck-on-not-ready-node",
        Some("deleted"),
    ),
    (
        "compute-hive01/huebackend-0",
        "stuck-on-not-ready-node",
        Some("deleted"),
    ),
    (
        "compute-hive01/import",
        "stuck-on-not-ready-node",
        Some("deleted"),
    ),
    (
        "impala-impala01/huebackend-0",
        "stuck-on-not-ready-node",
        Some("deleted"),
    ),
    (
        "impala-impala01/impala-executor-000-0",
        "local-volume",
        None,
    ),
    ("vault/vault-0", "stuck-on-not-ready-node", Some("deleted")),
];

/// A file that was saved before shows by --suppose-dead what the run does later. The kubelet stops: Ready becomes Unknown, taints appear, pods become Terminating and stay. Before the threshold the
/// run waits. After it, a run reaps, and the replacements run on other nodes. The pod with the local disk needs you, and follows
/// once a person deletes it and its PVC. The kubelet that comes back stops the old containers, and no pod of a new UID is affected.
#[test]
fn a_kubelet_stops_and_its_pods_move() {
    let case = Case::start();
    let elsewhere = case.untouched();
    let daemon = case
        .pods_on(FAILING)
        .into_iter()
        .find(|pod| pod.owner_kind == "DaemonSet")
        .expect("it runs");

    let supposed = case.supposed(FAILING);
    case.stop(FAILING);
    let evicted = case.until_evicted(FAILING);
    assert_eq!(
        case.evicting_taints(FAILING),
        ["node.kubernetes.io/unreachable"]
    );

    let waiting = case.reap("");
    waiting.ends(0);
    all_are(&waiting, &evicted, ("not-overdue", None));

    case.until_stuck(&evicted);
    // Kubernetes alone does not replace them.
    assert_eq!(case.evictable_on(FAILING), evicted);

    let reaped = case.reap("");
    assert_eq!(reaped.code, 0);
    let reasons = evicted.iter().map(|pod| {
        let (reason, _) = reaped.reason_and_outcome(&pod.uid);
        (pod.uid.clone(), reason.to_owned())
    });
    assert_eq!(supposed, reasons.collect(), "--suppose-dead told otherwise");
    let fates = evicted
        .iter()
        .map(|pod| (pod.called(), reaped.reason_and_outcome(&pod.uid)))
        .collect_vec();
    let fates: Vec<_> = fates
        .iter()
        .map(|(called, (reason, outcome))| (&**called, *reason, *outcome))
        .collect();
    assert_eq!(fates, FATES);
    let vault = evicted
        .iter()
        .find(|pod| pod.called() == "vault/vault-0")
        .expect("it was there");
    assert_eq!(
        reaped.pod(&vault.uid)["note"],
        "\"Unseal Vault.\" (its own note)"
    );

    let (local, moved): (Vec<_>, Vec<_>) = evicted
        .into_iter()
        .partition(|pod| pod.called() == "impala-impala01/impala-executor-000-0");
    case.until_replaced(&moved);
    assert_eq!(case.evictable_on(FAILING), local);

    case.gives_up(&reaped, &local[0], EXECUTORS_CLAIM);
    let replacement = case.until_replaced(&local);
    assert_eq!(replacement[0].node, "ds04", "the other disk is there");

    assert_eq!(
        case.pods_on(FAILING),
        [daemon],
        "its deletion was not requested"
    );
    assert_eq!(case.untouched(), elsewhere);
    nothing_to_do(&case);

    let replacements = [case.until_replaced(&moved), replacement].concat();
    case.resume(FAILING);
    case.until_ready_is("True", FAILING);
    case.until_stopped(FAILING, [&moved, &local]);
    let pods = case.pods();
    assert!(
        replacements.iter().all(|pod| pods.contains(pod)),
        "{pods:?}"
    );
    nothing_to_do(&case);
}

#[track_caller]
fn nothing_to_do(case: &Case) {
    let run = case.reap("");
    run.ends(0);
    assert_eq!(run.report["summary"]["pods"], 0, "{}", run.report);
}

/// The PVC of the executor on the node that fails.
const EXECUTORS_CLAIM: &str = "/api/v1/namespaces/impala-impala01/persistentvolumeclaims/scratch-cache-volume-impala-executor-000-0";
