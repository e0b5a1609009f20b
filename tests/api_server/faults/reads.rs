//! Safety rule 3: if a read fails in any way, the run removes the pod from the plan and reports the failure.

use super::{
    DEADLINE, REAP, at_once, conflict, deletes, is_delete, is_first_pod_list, redirect,
    run_through, stuck,
};
use crate::prelude::*;

/// A read: its name, the parts of a path, any one of which identifies it, and the number of equal requests before it. The last
/// field is the result: the run `could not run`, the pod is `unseen`, the pod has that reason, or it was to be reaped and
/// `failed`.
type Read = (&'static str, &'static [&'static str], usize, &'static str);

const READS: [Read; 12] = [
    ("all nodes", &["/nodes?includeObject"], 0, "could not run"),
    (
        "pods of the node",
        &["spec.nodeName%3Ddead&resourceVersion=0"],
        0,
        "unseen",
    ),
    ("the node", &["/nodes/dead"], 0, "facts-unread"),
    ("the lease", &["/leases/"], 0, "facts-unread"),
    ("all Leases", &["/v1/leases?"], 0, "facts-unread"),
    ("namespaces", &["/api/v1/namespaces?"], 0, "facts-unread"),
    (
        "a Ready node and the census",
        &["/nodes/ready-", "/nodes?limit"],
        0,
        "facts-unread",
    ),
    (
        "the claim",
        &["/persistentvolumeclaims/"],
        0,
        "volume-unverified",
    ),
    (
        "the volume",
        &["/persistentvolumes/"],
        0,
        "volume-unverified",
    ),
    ("the node again", &["/nodes/dead"], 1, "failed"),
    ("the lease again", &["/leases/"], 1, "failed"),
    // The run reads the pod again, because every delete returns a conflict.
    ("the pod again", &["/pods/"], 0, "failed"),
];

/// A fault of a read. All of these are permanent; temporary faults are in `deletes.rs`.
type Wrong = (&'static str, fn() -> Act);

/// Faults that occur only with real HTTP. `cluster::tests` and the random runs cover the contents of responses.
const WRONGS: [Wrong; 4] = [
    ("cut off", || Act::Cut),
    ("closed", || Act::Close),
    ("a redirect", redirect),
    ("no JSON", || {
        Act::Answer(Reply::new(200, ("Server", MARKER), MARKER))
    }),
];

/// Creates one stuck pod, which no run here may delete.
fn scene(cluster: &ControlPlane) -> String {
    let judged = stuck(cluster, "apps", "stuck-0");
    until_overdue();
    judged
}

fn goes_wrong(
    cluster: &Fresh,
    judged: &str,
    &(what, parts, nth, expected): &Read,
    &(how, act): &Wrong,
) {
    let name = format!("{what}: {how}");
    let (run, proxy) = run_through(cluster, "apps", DEADLINE, move |seen, before| {
        let is_it = |part: &&str| seen.path.contains(part);
        if seen.method == "GET" && before >= nth && parts.iter().any(is_it) {
            act()
        } else if is_delete(seen) {
            conflict()
        } else {
            Act::Forward
        }
    });
    let writes = proxy.seen().iter().filter(|seen| seen.is_change()).count();
    let tried = usize::from(what == "the pod again");
    assert_eq!(writes, tried, "{name}");
    let took_effect = proxy.took_effect();
    assert!(!took_effect.iter().any(Seen::is_change), "{name}");
    if expected == "could not run" {
        run.ends(1);
        assert_eq!(run.report, Value::Null, "{name}");
        return;
    }
    run.ends(3);
    match expected {
        "failed" => return run.says(judged, (REAP, Some("failed"))),
        "unseen" => assert_eq!(run.report["pods"], json!([]), "{name}"),
        reason => run.says(judged, (reason, None)),
    }
    assert_ne!(run.report["errors"], json!([]), "{name}");
}

#[test]
fn a_read_that_fails_deletes_nothing() {
    let cluster = one_dead();
    let judged = scene(&cluster);
    for wrong in &WRONGS {
        at_once(&READS, |read| goes_wrong(&cluster, &judged, read, wrong));
    }
    assert!(cluster.has_pod("apps", "stuck-0"));
}

/// A malformed object affects no other object, and its content is not printed: safety rules 3 and 9.
#[test]
fn one_malformed_pod_is_reported_without_its_text_and_the_others_are_handled() {
    let cluster = one_dead();
    let judged = scene(&cluster);
    let (run, _) = run_through(&cluster, "apps", DEADLINE, |seen, _| {
        if !is_first_pod_list(seen) {
            return Act::Forward;
        }
        Act::rewrite(|reply| {
            let mut list: Value = serde_json::from_slice(&reply.body).expect("a list");
            let mut malformed = list["items"][0].clone();
            malformed["metadata"]["name"] = json!("malformed");
            malformed["metadata"]["uid"] = json!("6b1a");
            malformed["metadata"]["deletionTimestamp"] = json!(MARKER);
            list["items"]
                .as_array_mut()
                .expect("items")
                .insert(0, malformed);
            reply.body = list.to_string().into_bytes();
        })
    });
    let errors = run.report["errors"].as_array().expect("errors");
    let [malformed] = &errors[..] else {
        panic!("{errors:?}")
    };
    assert!(
        str_of(&malformed["cause"]).starts_with("apps/malformed"),
        "{malformed}"
    );
    assert_eq!(
        (run.code, run.reason_and_outcome(&judged)),
        (3, REAPED),
        "{}",
        run.report
    );
    assert!(!cluster.has_pod("apps", "stuck-0"));
}

/// Safety rule 10. A read that hangs takes four tries of 10 s, so all cases run in parallel.
#[test]
fn what_never_answers_costs_its_time_limit_and_deletes_nothing_that_should_live() {
    let cluster = one_dead();
    let deletes = deletes::prepare(&cluster, &deletes::HANGS);
    let judged = scene(&cluster);
    thread::scope(|scope| {
        scope.spawn(|| {
            at_once(&READS, |read| {
                goes_wrong(&cluster, &judged, read, &("hangs", || Act::Hang));
            });
        });
        scope.spawn(|| at_once(&deletes, |row| row.is_reported_truly(&cluster)));
    });
    assert!(cluster.has_pod("apps", "stuck-0"));
}
