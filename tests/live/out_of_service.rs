//! The reaper beside the pod garbage collector, which deletes the same pods once an operator sets a taint.

use crate::prelude::*;

/// An operator taints the dead node as out of service, and the pod garbage collector also deletes its pods: no run
/// fails, and all pods are replaced.
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
    // It is deleted because of the taint, too. Its claim still binds it to the disk of the dead node.
    case.until("the pod of the local disk waits for it", || {
        case.pods()
            .into_iter()
            .find(|pod| pod.owner == local[0].owner && pod.phase == "Pending")
    });
}

/// The garbage collector deletes between the decision and the delete: outcome `gone`, or `changed` where a StatefulSet
/// has used the name again by then, and exit code 0.
#[test]
fn the_pod_garbage_collector_is_faster() {
    let case = Case::start();
    let evicted = case.fails(FAILING);
    out_of_service(&case);
    // It runs every 20 s. A read of the node that is not answered meanwhile is retried, so that the run continues after
    // that.
    let proxy = case.before_the_second_look(FAILING, |case| {
        case.until_true("the garbage collector has come", || {
            case.evictable_on(FAILING).is_empty()
        });
    });
    let run = case.reap_through(&proxy.kubeconfig, &OPTIONS);
    run.ends(0);
    let moved: Vec<_> = evicted
        .into_iter()
        .filter(|pod| pod.name != "impala-executor-000-0")
        .collect();
    for pod in &moved {
        let outcome = run.reason_and_outcome(&pod.uid).1;
        let name_used_again = pod.owner_kind == "StatefulSet" && outcome == Some("changed");
        assert!(
            outcome == Some("gone") || name_used_again,
            "{}: {outcome:?}",
            pod.called()
        );
    }
    case.until_replaced(&moved);
}

/// The taint command of the report, where volumes are still attached.
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
