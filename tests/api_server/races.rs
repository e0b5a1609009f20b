//! A run does not delete a pod that changes between decision and delete, and the pod's outcome shows why.

use crate::{prelude::*, support::objects::lease_path};

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

/// The second read of the dead node and its Lease, right before the node's deletes. The run requests both together.
fn second_look() -> impl Fn(&Seen) -> bool + Send + Sync + 'static {
    let looks = AtomicUsize::new(0);
    move |seen| seen.path.ends_with("/dead") && looks.fetch_add(1, Ordering::SeqCst) == 2
}

/// The node's kubelet starts again between decision and delete, but reports that the node is not Ready.
#[test]
fn pods_whose_node_shows_a_sign_of_life_by_then_live() {
    let cluster = fresh();
    let judged = one_stuck(&cluster);
    let other = pod(&cluster, "apps/one-of-many: {owner: ReplicaSet web}");
    until_overdue();
    let (run, seen) = run_before(&cluster, 1, second_look(), |server| {
        let mut conditions = server.get(&node_path("dead"))["status"]["conditions"].clone();
        conditions[0]["status"] = json!("False");
        server.patch_status(&node_path("dead"), json!({"conditions": conditions}));
        renew_lease(server, "dead");
    });
    for pod in [&judged, &other] {
        run.says(pod, (REAP, Some("node-changed")));
    }
    assert_eq!((deletes(&seen), run.code), (0, 0));
}

/// The question at a terminal may stay open for long. A run respects an opt-out of the namespace in the meantime.
#[test]
fn a_pod_whose_namespace_is_opted_out_by_then_lives() {
    let cluster = fresh();
    let judged = one_stuck(&cluster);
    let lists = AtomicUsize::new(0);
    let second_list = move |seen: &Seen| {
        seen.path.starts_with("/api/v1/namespaces?") && lists.fetch_add(1, Ordering::SeqCst) == 1
    };
    let (run, seen) = run_before(&cluster, 1, second_list, |server| {
        server.merge_patch(
            "/api/v1/namespaces/apps",
            yaml("{metadata: {labels: {pod-reaper.io/skip: '1'}}}"),
        );
    });
    run.says(&judged, (REAP, Some("opted-out")));
    assert_eq!((deletes(&seen), run.code), (0, 0));
    assert!(cluster.try_get(PATH).is_some());
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

#[test]
fn a_node_that_is_not_the_one_that_was_judged_keeps_its_pods() {
    let changes: [(&str, Change, &str); 6] = [
        (
            "it came back",
            |server| drop(node_becomes(server, "dead", "True", "KubeletReady")),
            "node-recovered",
        ),
        (
            "its lease is renewed",
            |server| drop(renew_lease(server, "dead")),
            "node-changed",
        ),
        (
            "it is marked as a leaf",
            |server| {
                let mark = yaml("{metadata: {labels: {kosmos.io/node: 'true'}}}");
                server.merge_patch(&node_path("dead"), mark);
            },
            "node-changed",
        ),
        (
            "it is opted out",
            |server| annotate(server, &node_path("dead"), "pod-reaper.io/skip", "true"),
            "node-changed",
        ),
        (
            "it is gone",
            |server| drop(server.delete(&node_path("dead"), json!({}))),
            "node-changed",
        ),
        (
            "it registered again",
            |server| {
                server.delete(&node_path("dead"), json!({}));
                server.delete(&lease_path("dead"), json!({}));
                make(server, "Node dead: {}");
            },
            "node-changed",
        ),
    ];
    for (name, change, outcome) in changes {
        let cluster = fresh();
        let judged = one_stuck(&cluster);
        let (run, seen) = run_before(&cluster, 1, second_look(), change);
        run.ends(0);
        run.says(&judged, (REAP, Some(outcome)));
        assert_eq!(deletes(&seen), 0, "{name}");
        assert!(cluster.try_get(PATH).is_some(), "{name}");
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
