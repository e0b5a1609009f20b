//! A run does not delete a pod that changes between decision and delete, and the pod's outcome shows why.

use crate::prelude::*;

const REAP: &str = "stuck-on-not-ready-node";
const PATH: &str = "/api/v1/namespaces/apps/pods/stuck-0";

/// Creates two Ready nodes, a dead one, and a pod stuck on it. Returns the pod's UID.
fn one_stuck(cluster: &ControlPlane) -> String {
    one_dead_of_three(cluster);
    let pod = pod(cluster, "apps/stuck-0: {owner: StatefulSet stuck}");
    until_overdue();
    pod
}

/// Runs with `act` called before the first `times` requests for which `when` holds.
fn run_before(
    cluster: &Fresh,
    times: usize,
    when: impl Fn(&Seen) -> bool + Send + Sync + 'static,
    act: impl Fn(&'static ControlPlane) + Send + Sync + 'static,
) -> (Run, Vec<Seen>) {
    let count = AtomicUsize::new(0);
    // Only one request at a time is handled: requests in parallel to the matching one must see the effect of `act`.
    let turn = Mutex::new(());
    let server = cluster.server();
    let proxy = Proxy::start(server, move |seen| {
        let _turn = turn.lock();
        if when(seen) && count.fetch_add(1, Ordering::SeqCst) < times {
            act(server);
        }
    });
    let run = run(&proxy.kubeconfig, &SHORT);
    (run, proxy.seen())
}

fn deletes(seen: &[Seen]) -> usize {
    seen.iter().filter(|seen| seen.method == "DELETE").count()
}

type Change = fn(&'static ControlPlane);

/// The outcome of a pod that changes right before each of the first deletes.
#[test]
fn a_pod_that_changed_is_judged_again() {
    static TOUCHED: AtomicUsize = AtomicUsize::new(0);
    let touch: Change = |server| {
        let count = TOUCHED.fetch_add(1, Ordering::SeqCst).to_string();
        annotate(server, PATH, "touched", &count);
    };
    let rows: [(&str, usize, Change, &str, &str, usize); 5] = [
        (
            "a namesake took its place",
            1,
            |server| {
                server.delete(PATH, yaml("{gracePeriodSeconds: 0}"));
                pod(server, "apps/stuck-0: {owner: StatefulSet stuck}");
            },
            "changed",
            "Another pod has taken its name. Not deleted.",
            1,
        ),
        ("it changed once", 1, touch, "deleted", "", 2),
        ("it keeps changing", usize::MAX, touch, "changed", "", 2),
        (
            "it is to be spared",
            1,
            |server| annotate(server, PATH, "pod-reaper.io/skip", "true"),
            "changed",
            "pod-reaper.io/skip",
            1,
        ),
        (
            "it is gone",
            1,
            |server| drop(server.delete(PATH, yaml("{gracePeriodSeconds: 0}"))),
            "gone",
            "",
            1,
        ),
    ];
    for (name, times, change, outcome, why, sent) in rows {
        let cluster = fresh();
        let judged = one_stuck(&cluster);
        let is_delete = |seen: &Seen| seen.method == "DELETE";
        let (run, seen) = run_before(&cluster, times, is_delete, change);
        run.ends(0);
        run.says(&judged, (REAP, Some(outcome)));
        let detail = run.pod(&judged)["outcomeDetail"].as_str();
        let detail = detail.unwrap_or_default();
        assert!(detail.contains(why), "{name}: {detail}");
        assert_eq!(deletes(&seen), sent, "{name}");
        let left = cluster.try_get(PATH).map(|pod| uid(&pod) == judged);
        let expected = match name {
            "a namesake took its place" => Some(false),
            _ => (outcome == "changed").then_some(true),
        };
        assert_eq!(left, expected, "{name}");
    }
}

/// Safety rule 1, on the wire. The node is read before each delete too.
#[test]
fn every_write_carries_its_preconditions() {
    let cluster = six_nodes::after_an_hour();
    let pods = cluster.get("/api/v1/pods");
    let pods = each(&pods["items"]);
    let versions = pods
        .map(|pod| (uid(pod), pod["metadata"]["resourceVersion"].clone()))
        .collect::<BTreeMap<_, _>>();
    let proxy = Proxy::to(&cluster);
    let run = run(&proxy.kubeconfig, &SHORT);
    run.ends(0);
    let seen = proxy.seen();
    assert_eq!(deletes(&seen), crate::six_nodes::STUCK.len());
    for (at, write) in seen.iter().enumerate().filter(|(_, seen)| seen.is_change()) {
        let body = &write.body;
        let uid = str_of(&body["preconditions"]["uid"]);
        assert_eq!(
            body["preconditions"]["resourceVersion"], versions[uid],
            "the version that was judged"
        );
        let pod = run.pod(uid);
        let path = pod_path(str_of(&pod["namespace"]), str_of(&pod["name"]));
        assert_eq!((write.method.as_str(), &write.path), ("DELETE", &path));
        assert_eq!(
            (&body["gracePeriodSeconds"], &body["propagationPolicy"]),
            (&json!(0), &json!("Background"))
        );
        let looked = seen[..at]
            .iter()
            .rfind(|seen| seen.path == node_path("ds06"))
            .expect("the node was read");
        assert!((write.at - looked.at).as_secs() < 5);
    }
}
