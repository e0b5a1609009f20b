//! The node was not dead: its kubelet comes back after the reap.

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
