//! Faults while the replacements are looked at: the outcome, the exit code and the end of the run stay as they are.

use std::{
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{DEADLINE, at_once, run_in, status, stuck};
use crate::{
    SHORT, binary, end_of, one_dead_of_three,
    support::{
        fresh,
        objects::pod_path,
        proxy::{Act, MARKER, Proxy, Reply, Seen},
    },
    until_overdue,
};

/// Whether only the wait sends it.
fn of_the_wait(seen: &Seen) -> bool {
    let read = seen.method == "GET";
    read && ["/pods/", "/statefulsets/", "regarding.uid"]
        .iter()
        .any(|part| seen.path.contains(part))
}

/// A namespace, the answer to each request of the wait, the state, and a part of the cause.
type Row = (&'static str, fn() -> Act, &'static str, &'static str);

#[test]
fn what_fails_while_the_replacements_are_looked_at_changes_nothing() {
    let cluster = fresh();
    one_dead_of_three(&cluster);
    let says = "it could not be looked for: ";
    let rows: [Row; 6] = [
        (
            "nothing",
            || Act::Forward,
            "none",
            "its controller no longer exists",
        ),
        ("hangs", || Act::Hang, "unknown", "no answer within 5 s"),
        (
            "forbids",
            || Act::Instead(403, status(403, "Forbidden", "no")),
            "unknown",
            "answered 403: no",
        ),
        (
            "garbage",
            || Act::Answer(Reply::new(200, ("Server", MARKER), MARKER)),
            "unknown",
            "the answer could not be read: it is not JSON",
        ),
        (
            "another",
            || Act::Instead(200, json!({"metadata": {"name": "another"}})),
            "unknown",
            "not the object",
        ),
        ("drops", || Act::Close, "unknown", "no connection"),
    ];
    for (name, ..) in rows {
        stuck(&cluster, name, "stuck-0");
    }
    until_overdue();
    at_once(&rows, |&(name, act, state, cause)| {
        let proxy = Proxy::with_faults(cluster.server(), move |seen| {
            if of_the_wait(seen) {
                act()
            } else {
                Act::Forward
            }
        });
        let began = Instant::now();
        let run = run_in(
            name,
            &proxy.kubeconfig,
            DEADLINE,
            &["--wait-for-replacements", "8s"],
        );
        let took = began.elapsed();
        let pod = &run.report["pods"][0];
        assert_eq!(
            (run.code, &pod["outcome"]),
            (0, &json!("deleted")),
            "{name}: {}",
            run.log
        );
        assert_eq!(
            (&run.report["errors"], &run.report["exitCode"]),
            (&json!([]), &json!(0)),
            "{name}"
        );
        let told = pod["replacement"]["cause"].as_str().unwrap_or_default();
        assert_eq!(pod["replacement"]["state"], state, "{name}: {told}");
        assert!(
            told.contains(cause) && (state == "none" || told.starts_with(says)),
            "{name}: {told}"
        );
        assert!(took < Duration::from_secs(40), "{name}: {took:?}");
        assert!(proxy.seen().iter().any(of_the_wait), "{name}");
        assert_eq!(cluster.try_get(&pod_path(name, "stuck-0")), None, "{name}");
    });
}

#[test]
fn a_signal_ends_the_wait_for_replacements() {
    let cluster = fresh();
    one_dead_of_three(&cluster);
    stuck(&cluster, "apps", "stuck-0");
    until_overdue();
    let pid = Arc::new(AtomicU32::new(0));
    let target = Arc::clone(&pid);
    let proxy = Proxy::with_faults(cluster.server(), move |seen| {
        if !of_the_wait(seen) {
            return Act::Forward;
        }
        let pid = target.swap(0, Ordering::SeqCst);
        if pid != 0 {
            Command::new("kill")
                .args(["-TERM", &pid.to_string()])
                .status()
                .expect("kill");
        }
        Act::Hang
    });
    let mut command = binary(&proxy.kubeconfig);
    command
        .args(SHORT)
        .args(["--output", "json", "--wait-for-replacements", "5m"]);
    let began = Instant::now();
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    pid.store(child.id(), Ordering::SeqCst);
    let output = end_of(child, Duration::from_mins(2));
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["pods"][0]["outcome"], "deleted", "{log}");
    assert_eq!(
        report["pods"][0]["replacement"]["state"], "unknown",
        "{log}"
    );
    assert_eq!(
        proxy.seen().iter().filter(|seen| of_the_wait(seen)).count(),
        1,
        "nothing more is asked"
    );
}
