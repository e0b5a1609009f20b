//! The node was not dead: its kubelet comes back, at four times.

use crate::prelude::*;

/// Back after the reap: the kubelet stops the old containers, no pod of a new UID is affected, and nothing is left to
/// do.
#[test]
fn back_after_the_reap() {
    let case = Case::start();
    let evicted = case.fails(FAILING);
    assert_eq!(case.reap("").code, 0);
    let (local, reaped): (Vec<_>, Vec<_>) = evicted
        .into_iter()
        .partition(|pod| pod.called() == "impala-impala01/impala-executor-000-0");
    let replacements = case.until_replaced(&reaped);

    case.resume(FAILING);
    case.until_ready_is("True", FAILING);
    case.until_true("the kubelet has dropped the old containers", || {
        let running = case.running_in_containers(FAILING);
        !running
            .iter()
            .any(|uid| reaped.iter().any(|pod| pod.uid == *uid))
    });
    // The pod that needed a person no longer does: the kubelet confirms the deletion, and the disk is available again.
    case.until("the pod of the local disk is back on it", || {
        let pods = case.pods_on(FAILING);
        pods.into_iter()
            .find(|pod| pod.owner == local[0].owner && pod.uid != local[0].uid && pod.is_running())
    });

    let pods = case.pods();
    assert_eq!(
        pods.iter().filter(|pod| replacements.contains(pod)).count(),
        replacements.len()
    );
    nothing_to_do(&case);
}

/// Back before the pods' toleration ends: nothing was evicted, nothing is reported, nothing is deleted.
#[test]
fn back_before_the_toleration_ends() {
    // Longer than any wait of the scenario.
    let case = Case::with(&SIX, 300, &[]);
    let before = case.pods();
    case.stop(FAILING);
    case.until_ready_is("Unknown", FAILING);
    case.until_true("the taint is there", || {
        !case.evicting_taints(FAILING).is_empty()
    });

    let down = case.reap("");
    assert_eq!(
        (down.code, down.report["summary"]["pods"].as_u64()),
        (0, Some(0)),
        "{}",
        down.report
    );
    assert_eq!(down.report["nodes"][0]["name"], FAILING);

    case.resume(FAILING);
    case.until_ready_is("True", FAILING);
    case.until_true("the taint is gone", || {
        case.evicting_taints(FAILING).is_empty()
    });
    nothing_to_do(&case);
    assert_eq!(case.pods(), before);
}

/// Back after the eviction, before the threshold: the kubelet confirms the deletions itself.
#[test]
fn back_after_the_eviction() {
    let case = Case::start();
    case.stop(FAILING);
    let evicted = case.until_evicted(FAILING);
    case.resume(FAILING);
    // With the default threshold, for pods that still exist.
    let run = case.reap_through(&case.kubeconfig, &[]);
    assert_eq!(
        (run.code, run.report["summary"]["verdicts"]["reap"].as_u64()),
        (0, Some(0)),
        "{}",
        run.report
    );
    case.until_true("the old pods are gone", || {
        let pods = case.pods();
        !pods
            .iter()
            .any(|pod| evicted.iter().any(|old| old.uid == pod.uid))
    });
    case.until_ready_is("True", FAILING);
    case.until_true("all run again", || {
        let pods = case.pods();
        let runs_again = |old: &Seen| {
            pods.iter()
                .any(|pod| pod.owner == old.owner && pod.is_running())
        };
        evicted
            .iter()
            .filter(|pod| pod.owner_kind != "Job")
            .all(runs_again)
    });
    // A simulated container exits with 0 when it is stopped. If the Job controller sees that before the pod is gone, it
    // counts as success; otherwise it starts another pod.
    case.until("the Jobs are complete, or run again", || {
        let jobs = case.get("/apis/batch/v1/namespaces/compute-hive01/jobs")["items"].clone();
        let goes_on = |job: &Value| job["status"]["succeeded"] == 1 || job["status"]["active"] == 1;
        jobs.as_array()?.iter().all(goes_on).then_some(())
    });
    nothing_to_do(&case);
}

/// Back between the decision and the deletes: the second read of the node prevents them.
#[test]
fn back_between_the_decision_and_the_deletes() {
    let case = Case::start();
    let evicted = case.fails(FAILING);

    let proxy = case.before_the_second_look(FAILING, |case| {
        case.resume(FAILING);
        case.until_ready_is("True", FAILING);
    });
    let run = case.reap_through(&proxy.kubeconfig, &OPTIONS);
    run.ends(0);
    for pod in evicted
        .iter()
        .filter(|pod| pod.name != "impala-executor-000-0")
    {
        run.says(
            &pod.uid,
            ("stuck-on-not-ready-node", Some("node-recovered")),
        );
    }
    assert!(
        !proxy.seen().iter().any(proxy::Seen::is_change),
        "{:?}",
        proxy.seen()
    );
}

fn nothing_to_do(case: &Case) {
    let run = case.reap("");
    let summary = &run.report["summary"];
    assert_eq!(
        (
            run.code,
            summary["pods"].as_u64(),
            summary["nodesNotReady"].as_u64()
        ),
        (0, Some(0), Some(0))
    );
}
