//! One node fails.

use crate::{
    case::THRESHOLD,
    prelude::*,
    support::{objects::make, program::ask},
    unneeded::EXECUTORS_CLAIM,
};
use std::net::TcpListener;

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

/// The kubelet stops: Ready becomes Unknown, taints appear, pods become Terminating and stay. Before the threshold the
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
        "its annotation pod-reaper.io/after-reap says: 'Unseal Vault.'"
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

const WEEK: u64 = 7 * 24 * 3600;

/// The pod of a StatefulSet that has a week to stop, once it runs on the failing node. Its hook, which the kubelet calls
/// first, gets no response from the listener, so the kubelet would wait for that week.
fn rabbitmq(case: &Case) -> (Seen, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let port = listener.local_addr().expect("its address").port();
    let hook = json!({"preStop": {"httpGet": {"host": "127.0.0.1", "port": port}}});
    let here = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [FAILING]});
    let prefers = json!([{"weight": 100, "preference": {"matchExpressions": [here]}}]);
    let tolerates = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 90});
    let tolerations = [
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/not-ready",
    ]
    .map(tolerates);
    let spec = json!({
        "terminationGracePeriodSeconds": WEEK,
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": prefers}},
        "tolerations": tolerations,
        "containers": [{"name": "main", "image": "pretended", "lifecycle": hook}],
    });
    let pod = json!({"spec": {"template": {"spec": spec}}});
    make(case, &format!("StatefulSet compute-hive01/rabbitmq: {pod}"));
    let running = case.until("it runs", || {
        let mut pods = case.pods_on(FAILING).into_iter();
        pods.find(|pod| pod.name == "rabbitmq-0" && pod.is_running())
    });
    (running, listener)
}

/// Waits until the deletion of this pod was requested; returns when that was.
fn until_requested(case: &Case, pod: &Seen) -> Timestamp {
    let deadline = case.until("it is Terminating", || {
        let mut pods = case.pods_on(FAILING).into_iter();
        pods.find(|it| it.uid == pod.uid)?.deadline
    });
    deadline - Duration::from_secs(WEEK)
}

/// A pod that has a week to stop is drained, and the kubelet waits for the pod's hook. Then the kubelet dies, so the week is
/// ignored. The pod is overdue since the last heartbeat, and is reaped together with the other pods of the node.
#[test]
fn a_drained_pod_has_a_week_to_stop() {
    let case = Case::start();
    let (rabbit, hook) = rabbitmq(&case);
    case.kubectl([
        "drain",
        FAILING,
        "--pod-selector=app=rabbitmq",
        "--timeout=1s",
    ]);
    let requested = until_requested(&case, &rabbit);
    let _unanswered = case.until("the kubelet calls the hook", || hook.accept().ok());
    case.until_true("the kubelet lives for longer than the threshold", || {
        case.lease_renewed(FAILING) > requested + THRESHOLD
    });
    let run = case.reap("");
    run.ends(0);
    assert_eq!(run.report["pods"], json!([]));
    let explain = || ask(&case.kubeconfig, &["explain", "compute-hive01/rabbitmq-0"]).report;
    let explained = explain();
    assert_eq!(explained["pods"][0]["reason"], "node-ready", "{explained}");
    assert_eq!(until_requested(&case, &rabbit), requested);

    case.stop(FAILING);
    case.until_ready_is("Unknown", FAILING);
    let run = case.reap("");
    run.ends(0);
    run.says(&rabbit.uid, ("node-just-failed", None));

    let mut others = case.until_evicted(FAILING);
    others.retain(|pod| pod.uid != rabbit.uid);
    case.until_stuck(&others);
    let heard = case.lease_renewed(FAILING).max(case.lease_says(FAILING));
    let overdue = |report: &Value| {
        let judged: Timestamp = str_of(&report["judgedAt"]).parse().expect("a time");
        Some(judged.duration_since(heard).as_secs())
    };
    let explained = explain();
    let seconds = explained["pods"][0]["overdueSeconds"].as_i64();
    assert_eq!(seconds, overdue(&explained), "{heard} {explained}");
    let run = case.reap("");
    run.ends(0);
    run.says(&rabbit.uid, REAPED);
    let seconds = run.pod(&rabbit.uid)["overdueSeconds"].as_i64();
    assert_eq!(seconds, overdue(&run.report), "{heard} {}", run.report);
    case.until_replaced(&[rabbit]);
}
