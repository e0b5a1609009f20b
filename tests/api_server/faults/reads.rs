//! Safety rule 3: a read that fails in any way takes the pod out of the plan, and is reported.

use super::{
    DEADLINE, REAP, at_once, bad_gateway, come_back_in_an_hour, conflict, deletes, internal,
    is_delete, is_first_pod_list, redirect, run_through, status, stuck,
};
use crate::prelude::*;

/// The expected result.
#[derive(Clone, Copy)]
enum Expected {
    /// The run could not begin.
    CouldNotRun,
    /// The pod is not in the report, because it was not read.
    Unseen,
    /// The reason of the pod, or its outcome where it was to be reaped.
    Reason(&'static str),
    Outcome(&'static str),
}

/// A read, and whether a request belongs to it: the number of the same requests before distinguishes the first read
/// from the one right before the delete.
type Read = (&'static str, fn(&Seen, usize) -> bool, Expected);

const READS: [Read; 11] = [
    (
        "all nodes",
        |seen, _| seen.path.starts_with("/api/v1/nodes?includeObject"),
        Expected::CouldNotRun,
    ),
    (
        "pods of the node",
        |seen, _| is_first_pod_list(seen),
        Expected::Unseen,
    ),
    (
        "the node",
        |seen, _| seen.path == "/api/v1/nodes/dead",
        Expected::Reason("facts-unread"),
    ),
    (
        "the lease",
        |seen, _| seen.path.contains("/leases/"),
        Expected::Reason("facts-unread"),
    ),
    (
        "namespaces",
        |seen, _| seen.path.starts_with("/api/v1/namespaces?"),
        Expected::Reason("facts-unread"),
    ),
    (
        "a Ready node and the census",
        |seen, _| is_census(seen),
        Expected::Reason("facts-unread"),
    ),
    (
        "the claim",
        |seen, _| seen.path.contains("/persistentvolumeclaims/"),
        Expected::Reason("volume-unverified"),
    ),
    (
        "the volume",
        |seen, _| seen.path.contains("/persistentvolumes/"),
        Expected::Reason("volume-unverified"),
    ),
    (
        "the node again",
        |seen, before| seen.path == "/api/v1/nodes/dead" && before > 0,
        Expected::Outcome("failed"),
    ),
    (
        "the lease again",
        |seen, before| seen.path.contains("/leases/") && before > 0,
        Expected::Outcome("failed"),
    ),
    // The pod is read again because each delete is answered with a conflict.
    (
        "the pod again",
        |seen, _| seen.method == "GET" && seen.path.contains("/pods/"),
        Expected::Outcome("failed"),
    ),
];

fn is_census(seen: &Seen) -> bool {
    seen.path == "/api/v1/nodes/ready-1" || seen.path.starts_with("/api/v1/nodes?limit")
}

/// A fault of a read. All of these are permanent; temporary ones are in `deletes.rs`.
type Wrong = (&'static str, fn() -> Act);

const WRONGS: [Wrong; 11] = [
    ("an error", internal),
    ("an error that is no Status", bad_gateway),
    ("cut off", || Act::Cut),
    ("closed", || Act::Close),
    ("forbidden", || {
        Act::Instead(403, status(403, "Forbidden", "not for you"))
    }),
    ("not authenticated", || {
        Act::Instead(401, status(401, "Unauthorized", "who are you?"))
    }),
    ("a 404 of something in between", || {
        Act::Instead(404, json!(MARKER))
    }),
    ("come back in an hour", come_back_in_an_hour),
    ("a redirect", redirect),
    ("an object that is none", || {
        Act::Instead(200, json!({"token": MARKER}))
    }),
    ("no JSON", || {
        Act::Answer(Reply::new(200, ("Server", MARKER), MARKER))
    }),
];

/// One stuck pod, which no run here may delete.
fn scene(cluster: &ControlPlane) -> String {
    let judged = stuck(cluster, "apps", "stuck-0");
    until_overdue();
    judged
}

fn goes_wrong(cluster: &Fresh, judged: &str, &(what, when, expected): &Read, &(how, act): &Wrong) {
    let name = format!("{what}: {how}");
    let (run, proxy) = run_through(cluster, "apps", DEADLINE, move |seen, before| match seen {
        seen if when(seen, before) => act(),
        seen if is_delete(seen) => conflict(),
        _ => Act::Forward,
    });
    // Without the right to list pods the program cannot run.
    let refused = matches!(how, "forbidden" | "not authenticated");
    let expected = if refused && matches!(expected, Expected::Unseen) {
        Expected::CouldNotRun
    } else {
        expected
    };
    let code = if matches!(expected, Expected::CouldNotRun) {
        1
    } else {
        3
    };
    assert_eq!(run.code, code, "{name}: {} {}", run.log, run.report);
    assert!(
        proxy.took_effect().iter().all(|seen| !seen.is_change()),
        "{name}"
    );
    let writes = proxy.seen().iter().filter(|seen| seen.is_change()).count();
    assert_eq!(writes, usize::from(what == "the pod again"), "{name}");
    match expected {
        Expected::CouldNotRun => assert_eq!(run.report, Value::Null, "{name}"),
        Expected::Unseen => assert_eq!(run.report["pods"], json!([]), "{name}"),
        Expected::Reason(reason) => {
            assert_eq!(run.reason_and_outcome(judged), (reason, None), "{name}");
        }
        Expected::Outcome(outcome) => {
            assert_eq!(
                run.reason_and_outcome(judged),
                (REAP, Some(outcome)),
                "{name}: {}",
                run.report
            );
        }
    }
    if matches!(expected, Expected::Unseen | Expected::Reason(_)) {
        assert_ne!(run.report["errors"], json!([]), "{name}");
    }
}

#[test]
fn a_read_that_fails_deletes_nothing() {
    let cluster = fresh();
    one_dead_of_three(&cluster);
    let judged = scene(&cluster);
    for wrong in &WRONGS {
        at_once(&READS, |read| goes_wrong(&cluster, &judged, read, wrong));
    }
    assert!(cluster.try_get(&pod_path("apps", "stuck-0")).is_some());
}

/// A malformed object affects no other, and its content is not printed: safety rules 3 and 9.
#[test]
fn one_malformed_pod_is_reported_without_its_text_and_the_others_are_handled() {
    let cluster = fresh();
    one_dead_of_three(&cluster);
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
    assert_eq!(
        run.report["errors"][0]["what"], "pods of node dead",
        "{}",
        run.report
    );
    assert!(
        run.report["errors"][0]["cause"]
            .as_str()
            .expect("text")
            .starts_with("apps/malformed: "),
        "{}",
        run.report
    );
    assert_eq!(
        (run.code, run.reason_and_outcome(&judged)),
        (3, (REAP, Some("deleted"))),
        "{}",
        run.report
    );
    assert!(run.log.contains("Force-deleting"), "{}", run.log);
    assert!(cluster.try_get(&pod_path("apps", "stuck-0")).is_none());
}

/// Safety rule 10. A read that hangs takes four tries of 10 s, so all cases run in parallel.
#[test]
fn what_never_answers_costs_its_time_limit_and_deletes_nothing_that_should_live() {
    let cluster = fresh();
    one_dead_of_three(&cluster);
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
    assert!(cluster.try_get(&pod_path("apps", "stuck-0")).is_some());
}
