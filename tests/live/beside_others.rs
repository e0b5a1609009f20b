//! The reaper among the others who delete pods: the CronJob controller, which replaces the reaper's own, and the pod
//! garbage collector.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    case::{Case, FAILING, OPTIONS, Seen},
    support::program::Run,
};

/// The schedule's shortest: a CronJob counts whole minutes. A run, the next one that replaces it, and one to spare.
const THREE_MINUTES: Duration = Duration::from_secs(200);

/// The reaper dies too: its own Job's pod is on the node that fails. The next Job starts all the same, on another node,
/// and what it runs reaps, its predecessor included.
#[test]
fn the_reapers_own_node_fails() {
    let case = Case::start("the_reapers_own_node_fails");
    case.create("/apis/batch/v1/namespaces/compute-hive01/cronjobs", cronjob());
    let reapers = || case.pods().into_iter().filter(|pod| pod.name.starts_with("pod-reaper-"));
    let first = case.within(THREE_MINUTES, "the first Job's pod runs", || reapers().find(Seen::is_running));
    assert_eq!(first.node, FAILING);

    case.stop(FAILING);
    let evicted = case.until_evicted(FAILING);
    assert!(evicted.iter().any(|pod| pod.uid == first.uid), "{evicted:?}");
    let next = case.within(THREE_MINUTES, "the next Job's pod runs", || {
        reapers().find(|pod| pod.is_running() && pod.node != FAILING)
    });
    assert_ne!(next.owner, first.owner);

    // Its container is only pretended: here is what it would do.
    case.until_stuck(&evicted);
    let run = case.reap(&OPTIONS);
    assert_eq!(run.code, 0);
    assert_eq!(run.says(&first.uid), ("stuck-on-not-ready-node", Some("deleted")));
    let workloads: Vec<_> = evicted
        .into_iter()
        .filter(|pod| pod.uid != first.uid && pod.name != "impala-executor-000-0")
        .collect();
    case.until_replaced(&workloads);
}

/// An operator taints the dead node as out of service, and the pod garbage collector does in its own rounds what the
/// reaper does: no run fails, nothing is lost, and everything moves.
#[test]
fn the_pod_garbage_collector_at_the_same_time() {
    let case = Case::start("the_pod_garbage_collector_at_the_same_time");
    case.stop(FAILING);
    let evicted = case.until_evicted(FAILING);
    case.until_stuck(&evicted);
    out_of_service(&case);
    case.until("no Terminating pod is left", || {
        for outcome in outcomes(&case.reap(&OPTIONS)) {
            assert!(["deleted", "gone"].contains(&outcome.as_str()), "{outcome}");
        }
        case.evictable_on(FAILING).is_empty().then_some(())
    });
    let (local, moved): (Vec<_>, Vec<_>) =
        evicted.into_iter().partition(|pod| pod.name == "impala-executor-000-0");
    case.until_replaced(&moved);
    // The taint deletes it as well; its claim still binds it to the disk of the dead node.
    case.until("the pod of the local disk waits for it", || {
        case.pods().into_iter().find(|pod| pod.owner == local[0].owner && pod.phase == "Pending")
    });
}

/// The garbage collector is faster, by the moment between the decision and the delete: outcome `gone`, or `changed`
/// where a StatefulSet has used the name again by then, and exit code 0.
#[test]
fn the_pod_garbage_collector_is_faster() {
    let case = Case::start("the_pod_garbage_collector_is_faster");
    case.stop(FAILING);
    let evicted = case.until_evicted(FAILING);
    case.until_stuck(&evicted);
    out_of_service(&case);
    // Its round is every 20 s. A look at the node that is not answered for as long is repeated, so that the run goes on
    // whenever the round comes.
    let proxy = case.before_the_second_look(FAILING, |case| {
        case.until("the garbage collector has come", || case.evictable_on(FAILING).is_empty().then_some(()));
    });
    let run = case.reap_through(&proxy.kubeconfig, &OPTIONS);
    assert_eq!(run.code, 0, "{}", run.report);
    let moved: Vec<_> = evicted.into_iter().filter(|pod| pod.name != "impala-executor-000-0").collect();
    for pod in &moved {
        let outcome = run.says(&pod.uid).1;
        let name_used_again = pod.owner_kind == "StatefulSet" && outcome == Some("changed");
        assert!(outcome == Some("gone") || name_used_again, "{}: {outcome:?}", pod.called());
    }
    case.until_replaced(&moved);
}

/// As the report prints it, where volumes are left attached.
fn out_of_service(case: &Case) {
    let taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
    assert!(case.kubectl(["taint", "nodes", FAILING, taint]).status.success());
}

fn outcomes(run: &Run) -> Vec<String> {
    let pods = run.report["pods"].as_array().expect("pods").iter();
    pods.filter_map(|pod| pod["outcome"].as_str()).map(str::to_owned).collect()
}

fn cronjob() -> Value {
    let evicted_at_once = |taint: &str| {
        let key = format!("node.kubernetes.io/{taint}");
        json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1})
    };
    let prefers = json!({"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": [FAILING]},
    ]});
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "pod-reaper"},
        "spec": {
            "schedule": "* * * * *",
            "concurrencyPolicy": "Replace",
            "jobTemplate": {"spec": {
                "backoffLimit": 0,
                "template": {"spec": {
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 2,
                    "tolerations": [evicted_at_once("unreachable"), evicted_at_once("not-ready")],
                    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 100, "preference": prefers},
                    ]}},
                    "containers": [{"name": "main", "image": "pretended"}],
                }},
            }},
        },
    })
}
