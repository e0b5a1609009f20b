//! The reaper together with the pod garbage collector, which deletes the same pods once you set a taint.

use crate::prelude::*;

/// You taint the dead node as out of service, and the pod garbage collector also deletes its pods. No run fails, and all pods are
/// replaced.
#[test]
fn the_pod_garbage_collector_at_the_same_time() {
    let case = Case::start();
    let evicted = case.fails(FAILING);
    out_of_service(&case);
    case.until_true("no Terminating pod is left", || {
        let run = case.reap("");
        run.ends(0);
        for outcome in outcomes(&run) {
            assert!(
                ["deleted", "gone", "changed"].contains(&outcome.as_str()),
                "{outcome}"
            );
        }
        case.evictable_on(FAILING).is_empty()
    });
    let (local, moved): (Vec<_>, Vec<_>) = evicted
        .into_iter()
        .partition(|pod| pod.name == "impala-executor-000-0");
    case.until_replaced(&moved);
    // This pod is deleted because of the taint, too. Its PVC still keeps it on the disk of the dead node.
    case.until("the pod of the local disk waits for it", || {
        case.pods()
            .into_iter()
            .find(|pod| pod.owner == local[0].owner && pod.phase == "Pending")
    });
}

/// Sets the taint that the report prints if volumes are still attached.
fn out_of_service(case: &Case) {
    let taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
    assert!(
        case.kubectl(["taint", "nodes", FAILING, taint])
            .status
            .success()
    );
}

fn outcomes(run: &Run) -> Vec<String> {
    let pods = each(&run.report["pods"]);
    pods.filter_map(|pod| pod["outcome"].as_str())
        .map(str::to_owned)
        .collect()
}
