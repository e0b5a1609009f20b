//! All nodes fail together, or all nodes of a zone. The nodes are rarely the cause of such a failure.

use crate::prelude::*;

/// All nodes are down: Kubernetes stops its evictions, and the breaker keeps the pods that were already Terminating. When the
/// other nodes are back, a run reaps as usual.
///
/// Kubernetes detects the failure of one node after the other, and continues to evict until it has detected all. Its rate limit
/// allows one node in that time, and sometimes it does not remove that node's taint.
#[test]
fn everything_is_down() {
    let toleration = Duration::from_secs(10);
    let case = Case::with(&SIX, 10);
    case.stop(FAILING);
    let evicted = case.until_evicted(FAILING);
    let elsewhere = case.untouched();
    let others = SIX.iter().filter(|node| **node != FAILING);

    for node in others.clone() {
        case.stop(node);
    }
    for node in others.clone() {
        case.until_ready_is("Unknown", node);
    }
    // If evictions continued, all of these pods would be Terminating by then.
    thread::sleep(toleration + Duration::from_secs(5));
    let tainted: Vec<_> = SIX
        .iter()
        .filter(|node| !case.evicting_taints(node).is_empty())
        .collect();
    assert!(tainted.len() <= 1, "{tainted:?}");
    let spared = |pod: &Seen| !tainted.contains(&&&*pod.node);
    let elsewhere: Vec<_> = elsewhere.into_iter().filter(spared).collect();
    let is_as_before = |pods: &[Seen]| elsewhere.iter().all(|pod| pods.contains(pod));
    assert!(is_as_before(&case.untouched()), "{:?}", case.untouched());

    case.until_stuck(&evicted);
    let run = case.reap("");
    run.ends(4);
    for pod in evicted
        .iter()
        .filter(|pod| pod.name != "impala-executor-000-0")
    {
        run.says(&pod.uid, ("mass-outage", None));
    }
    let local = evicted
        .iter()
        .find(|pod| pod.name == "impala-executor-000-0")
        .expect("it was there");
    let asked = commands(&run, &local.uid);
    assert_eq!(asked, Vec::<String>::new());
    assert_eq!(case.evictable_on(FAILING), evicted);

    for node in others.clone() {
        case.resume(node);
    }
    for node in others {
        case.until_ready_is("True", node);
    }
    let run = case.reap("");
    run.ends(0);
    let reaped: Vec<Seen> = evicted
        .into_iter()
        .filter(|pod| pod.name != "impala-executor-000-0")
        .collect();
    all_are(&run, &reaped, REAPED);
    case.until_replaced(&reaped);
    assert!(is_as_before(&case.untouched()), "{:?}", case.untouched());
}

/// Two of three nodes that run etcd fall silent, and the API server still writes, so one of the two machines lives. The pods on both
/// need you. Once one machine is known to be off, its pods go.
#[test]
fn two_of_three_members_of_etcd_are_down() {
    let case = Case::start();
    let members = [FAILING, "ds04", "ds05"];
    for node in members {
        let role = "node-role.kubernetes.io/etcd=true";
        kubectl(&case, &["label", "node", node, role]);
    }
    for node in &members[..2] {
        case.stop(node);
    }
    let evicted = case.until_evicted(FAILING);
    case.until_ready_is("Unknown", members[1]);
    case.until_stuck(&evicted);

    let run = case.reap("");
    run.ends(0);
    all_are(&run, &evicted, ("etcd-member", None));
    let report = run.report.to_string();
    assert!(!report.contains("make sure that it is"), "{report}");
    assert_eq!(case.evictable_on(FAILING), evicted);

    kubectl(
        &case,
        &["annotate", "node", FAILING, "fencing/state=fenced"],
    );
    let run = case.reap("");
    run.ends(0);
    let (local, reaped): (Vec<_>, Vec<_>) = evicted
        .into_iter()
        .partition(|pod| pod.name == "impala-executor-000-0");
    all_are(&run, &reaped, REAPED);
    all_are(&run, &local, ("local-volume", None));
}
