//! A run does not delete a pod that changes between decision and delete, and the pod's outcome shows why.

use crate::prelude::*;

const PATH: &str = "/api/v1/namespaces/apps/pods/stuck-0";

/// Creates two Ready nodes, a dead one, and a pod stuck on it. Returns the pod's UID.
fn one_stuck(cluster: &ControlPlane) -> String {
    one_dead_of_three(cluster);
    let pod = pod(cluster, "apps/stuck-0: {owner: StatefulSet stuck}");
    until_overdue();
    pod
}

type Change = fn(&'static ControlPlane);

/// The outcome of a pod that changes right before the first delete.
#[test]
fn a_pod_that_changed_is_judged_again() {
    let rows: [(&str, Change, &str, usize); 4] = [
        (
            "a namesake took its place",
            |server| {
                server.delete(PATH, yaml("{gracePeriodSeconds: 0}"));
                pod(server, "apps/stuck-0: {owner: StatefulSet stuck}");
            },
            "changed",
            1,
        ),
        (
            "it changed",
            |server| annotate(server, PATH, "touched", "once"),
            "deleted",
            2,
        ),
        (
            "it is to be spared",
            |server| annotate(server, PATH, "pod-reaper.io/skip", "true"),
            "changed",
            1,
        ),
        (
            "another run has deleted it",
            |server| drop(server.delete(PATH, yaml("{gracePeriodSeconds: 0}"))),
            "gone",
            1,
        ),
    ];
    for (name, change, outcome, sent) in rows {
        let cluster = fresh();
        let judged = one_stuck(&cluster);
        let server = cluster.server();
        let deletes = AtomicUsize::new(0);
        let proxy = Proxy::start(server, move |seen| {
            if seen.method == "DELETE" && deletes.fetch_add(1, Ordering::SeqCst) == 0 {
                change(server);
            }
        });
        let run = run(&proxy.kubeconfig, &SHORT);
        run.ends(0);
        run.says(&judged, ("stuck-on-not-ready-node", Some(outcome)));
        let seen = proxy.seen().into_iter();
        let deletes = seen.filter(|seen| seen.method == "DELETE").collect_vec();
        assert_eq!(deletes.len(), sent, "{name}");
        for Seen { path, body, .. } in deletes {
            assert_eq!(path, PATH, "{name}");
            let preconditions = &body["preconditions"];
            assert_eq!(preconditions["uid"], judged, "{name}");
            assert!(preconditions["resourceVersion"].is_string(), "{name}");
        }
        let left = cluster.try_get(PATH).is_some();
        assert_eq!(left, outcome == "changed", "{name}");
    }
}

/// A run by hand, beside that of the CronJob, which has read the history and not yet deleted: both find their pods in it, and the one
/// that comes last is refused its stale version first.
#[test]
fn a_run_by_hand_beside_another_run_loses_none_of_its_notes() {
    let history = "/api/v1/namespaces/pod-reaper/configmaps/pod-reaper-history";
    let cluster = fresh();
    one_stuck(&cluster);
    pod(&cluster, "other/stuck-1: {owner: StatefulSet stuck}");
    until_overdue();
    namespace(&cluster, "pod-reaper");
    kubectl(
        &cluster,
        &["apply", "-f", &folder("cronjob/base/rbac.yaml")],
    );
    let (server, deletes) = (cluster.server(), AtomicUsize::new(0));
    let proxy = Proxy::start(server, move |seen| {
        if seen.method == "DELETE" && deletes.fetch_add(1, Ordering::SeqCst) == 0 {
            let by_hand = run(&server.kubeconfig, &short("-n other"));
            by_hand.ends(0);
        }
    });
    let beside = run(&proxy.kubeconfig, &short("-n apps"));
    beside.ends(0);
    assert_eq!(beside.report["history"]["unread"], Value::Null);
    let node = uid(&cluster.get(&node_path("dead")));
    let note = cluster.get(history)["data"][&node].clone();
    let note = serde_json::from_str::<Value>(str_of(&note)).expect("JSON");
    let names = each(&note["pods"]).map(|pod| str_of(&pod["name"]).to_owned());
    assert_eq!(names.sorted().collect_vec(), ["stuck-0", "stuck-1"]);
    let seen = proxy.seen().into_iter();
    let patches = seen.filter(|seen| seen.method == "PATCH" && seen.path.starts_with(history));
    assert_eq!(patches.count(), 3, "before, after, and after the conflict");
}
