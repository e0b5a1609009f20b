//! All nodes fail at once, or all nodes of a zone. The nodes are rarely the cause of such a failure.

use crate::prelude::*;

/// All nodes are down: Kubernetes stops its evictions, and the breaker keeps the pods that were already Terminating. When the
/// other nodes are back, a run reaps as usual.
///
/// Kubernetes detects the failure of one node after the other, and continues to evict until it has detected all. Its rate limit
/// allows one node in that time, and sometimes it does not remove that node's taint.
#[test]
fn everything_is_down() {
    let toleration = Duration::from_secs(10);
    let case = Case::with(&SIX, 10, &[]);
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

/// The three nodes of a zone are down at once, while another zone is healthy. Kubernetes evicts, because the whole zone is dead.
/// The breaker trips, because the zone may only be unreachable. A person who knows that it is off lets the run go on.
#[test]
fn a_zone_is_down() {
    let zoned = SIX.map(|node| {
        let zone = if node <= FAILING { "a" } else { "b" };
        format!("{node},topology.kubernetes.io/zone={zone}")
    });
    let zoned = zoned.each_ref().map(String::as_str);
    let case = Case::with(&zoned, 1, &[]);
    let (down, up) = SIX.split_at(3);
    let elsewhere = || {
        up.iter()
            .flat_map(|node| case.pods_on(node))
            .filter(Seen::is_running)
    };
    let before = elsewhere().collect_vec();
    for node in down {
        case.stop(node);
    }
    let evicted = down.iter().flat_map(|node| case.until_evicted(node));
    let evicted = evicted.collect_vec();
    case.until_stuck(&evicted);
    let left = || {
        down.iter()
            .flat_map(|node| case.evictable_on(node))
            .collect_vec()
    };

    let held = case.reap("");
    held.ends(4);
    let is_local = |pod: &&Seen| pod.name == "impala-executor-000-0";
    let (local, others): (Vec<_>, Vec<_>) = evicted.iter().partition(is_local);
    all_are(&held, others.iter().copied(), ("mass-outage", None));
    all_are(&held, local.iter().copied(), ("local-volume", None));
    let breaker = &held.report["breaker"];
    assert_eq!(breaker["zones"], json!(["a"]), "{breaker}");
    assert_eq!(left(), evicted);

    let run = case.reap("--max-not-ready-percent=100");
    run.ends(0);
    all_are(&run, others.iter().copied(), REAPED);
    all_are(&run, local.iter().copied(), ("local-volume", None));
    // Each node of the other zone already has one of these pods.
    let movable = others
        .into_iter()
        .filter(|pod| !pod.name.starts_with("statestored-"));
    case.until_replaced(&movable.cloned().collect_vec());
    let after = elsewhere().collect_vec();
    assert!(before.iter().all(|pod| after.contains(pod)), "{after:?}");
}
