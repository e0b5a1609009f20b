//! Answers that a real API server does not give on demand: what is left in the cluster, and what the report says of it.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::{
    Run, SHORT, binary, one_dead_of_three, run,
    support::{
        ControlPlane, control_plane, fresh,
        objects::{Pod, Volume},
        proxy::{Act, Proxy, Seen},
    },
    uid, until_overdue,
};

const REAP: &str = "stuck-on-not-ready-node";
const POD: &str = "/api/v1/namespaces/apps/pods/stuck-0";

/// A dead node among three, and a pod that is stuck on it, with a claim on the network: its UID.
fn one_stuck(cluster: &ControlPlane) -> String {
    one_dead_of_three(cluster);
    Volume::csi("network", "rbd.csi.ceph.com").claimed_by("apps", "data").create(cluster);
    let pod = Pod::on("dead", "apps", "stuck-0").claim("data").terminating(cluster, 1);
    until_overdue();
    uid(&pod)
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": message})
}

fn unavailable() -> Value {
    status(503, "ServiceUnavailable", "later")
}

fn internal() -> Value {
    status(500, "InternalError", "etcd is busy")
}

/// Runs with `act` for the requests that `when` picks, from the `first` of them up to before `end`.
fn run_with(
    when: impl Fn(&Seen) -> bool + Send + Sync + 'static,
    (first, end): (usize, usize),
    act: fn() -> Act,
) -> (Run, Vec<Seen>) {
    let count = AtomicUsize::new(0);
    let proxy = Proxy::with_faults(control_plane(), move |seen| {
        if when(seen) && (first..end).contains(&count.fetch_add(1, Ordering::SeqCst)) {
            act()
        } else {
            Act::Forward
        }
    });
    let run = run(&proxy.kubeconfig, &SHORT);
    (run, proxy.seen())
}

fn is_delete(seen: &Seen) -> bool {
    seen.method == "DELETE"
}

/// Name, what is done, to how many tries, then the outcome, how many deletes are sent, and whether the pod is left.
type Row = (&'static str, fn() -> Act, usize, &'static str, usize, bool);

#[test]
fn what_a_delete_is_answered_is_told_truly() {
    let webhook = || {
        let message = "failed calling webhook \"guard.example.org\": refused";
        Act::Instead(500, status(500, "InternalError", message))
    };
    let rows: [Row; 10] = [
        ("throttled three times", || Act::Instead(429, unavailable()), 3, "deleted", 4, false),
        ("never served", || Act::Instead(503, unavailable()), 99, "failed", 4, true),
        ("a server error once", || Act::Instead(500, internal()), 1, "deleted", 2, false),
        ("a webhook that cannot be called", webhook, 99, "denied", 1, true),
        ("a policy", || Act::Instead(422, status(422, "Invalid", "denied")), 99, "denied", 1, true),
        ("done, but an error says otherwise", || Act::After(503, unavailable()), 1, "gone", 2, false),
        ("done, but errors say otherwise for ever", || Act::After(503, unavailable()), 99, "gone", 4, false),
        ("done, and the answer is lost", || Act::Lose, 1, "gone", 2, false),
        ("a 200 without effect", || Act::Instead(200, json!({})), 99, "still-there", 1, true),
        ("a 404 of something in between", || Act::Instead(404, json!("not here")), 99, "failed", 1, true),
    ];
    for (name, act, times, outcome, sent, left) in rows {
        let cluster = fresh();
        let judged = one_stuck(&cluster);
        let (run, seen) = run_with(is_delete, (0, times), act);
        assert_eq!(run.says(&judged), (REAP, Some(outcome)), "{name}: {} {}", run.log, run.report);
        assert_eq!(seen.iter().filter(|seen| is_delete(seen)).count(), sent, "{name}");
        assert_eq!(cluster.try_get(POD).is_some(), left, "{name}");
        let failed = ["failed", "denied", "still-there"].contains(&outcome);
        assert_eq!(run.code, if failed { 3 } else { 0 }, "{name}");
    }
}

#[test]
fn a_delete_whose_verifying_list_fails_is_unverified() {
    let cluster = fresh();
    let judged = one_stuck(&cluster);
    // The verifying list is the second one of the node's pods.
    let lists = |seen: &Seen| seen.path.contains("fieldSelector=spec.nodeName");
    let (run, _) = run_with(lists, (1, 99), || Act::Instead(500, internal()));
    assert_eq!((run.code, run.says(&judged)), (3, (REAP, Some("unverified"))), "{}", run.report);
    assert!(cluster.try_get(POD).is_none());
}

/// What fails, which requests those are, and the reason that the pod then gets.
type Case = (&'static str, fn(&Seen) -> bool, Option<&'static str>);
/// How it fails.
type Answer = (&'static str, fn() -> Act);

/// Safety rule 3: every read that fails, for good, takes the pod out of the plan and is told.
#[test]
fn a_read_that_fails_deletes_nothing() {
    let cases: [Case; 7] = [
        ("the node's lease", |seen| seen.path.contains("/leases/"), Some("facts-unread")),
        ("the node", |seen| seen.path == "/api/v1/nodes/dead", Some("facts-unread")),
        ("namespaces", |seen| seen.path.starts_with("/api/v1/namespaces?"), Some("facts-unread")),
        ("the claim", |seen| seen.path.ends_with("/persistentvolumeclaims/data"), Some("volume-unverified")),
        ("the volume", |seen| seen.path.ends_with("/persistentvolumes/network"), Some("volume-unverified")),
        ("a Ready node and the census", |seen| is_census(&seen.path), Some("facts-unread")),
        ("pods of the node", |seen| seen.path.contains("fieldSelector="), None),
    ];
    let answers: [Answer; 3] = [
        ("an error", || Act::Instead(500, internal())),
        ("a 404 of something in between", || Act::Instead(404, json!("not here"))),
        ("an object that is none", || Act::Instead(200, json!({}))),
    ];
    let cluster = fresh();
    let judged = one_stuck(&cluster);
    for (what, when, reason) in cases {
        for (answer, act) in answers {
            let (run, seen) = run_with(when, (0, usize::MAX), act);
            assert!(!seen.iter().any(Seen::is_write), "{what}: {answer}");
            assert_eq!(run.code, 3, "{what}: {answer}: {}", run.report);
            assert_ne!(run.report["errors"], json!([]), "{what}: {answer}");
            if let Some(reason) = reason {
                assert_eq!(run.says(&judged).0, reason, "{what}: {answer}");
            }
        }
    }
    assert!(cluster.try_get(POD).is_some());
}

fn is_census(path: &str) -> bool {
    path == "/api/v1/nodes/ready-1" || path.starts_with("/api/v1/nodes?limit")
}

/// One odd object spoils itself only, and none of what it holds is told: safety rules 3 and 9.
#[test]
fn one_odd_pod_is_told_without_its_text_and_the_others_are_handled() {
    let cluster = fresh();
    let judged = one_stuck(&cluster);
    let list = cluster.get("/api/v1/pods?fieldSelector=spec.nodeName%3Ddead");
    let first = AtomicUsize::new(0);
    let proxy = Proxy::with_faults(control_plane(), move |seen| {
        if !seen.path.contains("fieldSelector=") || first.fetch_add(1, Ordering::SeqCst) > 0 {
            return Act::Forward;
        }
        let mut odd = list["items"][0].clone();
        odd["metadata"]["name"] = json!("odd");
        odd["metadata"]["uid"] = json!("6b1a");
        odd["metadata"]["deletionTimestamp"] = json!("MARKER");
        odd["metadata"]["annotations"] = json!({"token": "MARKER"});
        odd["spec"]["containers"][0]["env"] = json!([{"name": "PASSWORD", "value": "MARKER"}]);
        let mut list = list.clone();
        list["items"].as_array_mut().unwrap().insert(0, odd);
        Act::Instead(200, list)
    });
    let output = binary(&proxy.kubeconfig)
        .args(SHORT)
        .args(["--output", "json", "--log-level", "trace"])
        .env("SECRET", "MARKER")
        .output()
        .unwrap();
    let [said, log] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(!said.contains("MARKER") && !log.contains("MARKER"), "{said}{log}");
    // The client library's own events hold URLs and, where it parses, bodies: none of them is shown.
    assert!(log.contains("Force-deleting") && !log.contains("http."), "{log}");
    let report: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["errors"][0]["what"], "pods of node dead", "{report}");
    assert!(report["errors"][0]["cause"].as_str().unwrap().starts_with("apps/odd: "), "{report}");
    assert_eq!(output.status.code(), Some(3));
    let pod = report["pods"].as_array().unwrap().iter().find(|pod| pod["uid"] == judged.as_str()).unwrap();
    assert_eq!(pod["outcome"], "deleted", "{report}");
    assert!(cluster.try_get(POD).is_none());
}
