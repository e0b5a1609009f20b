//! Every run ends, also one that can do nothing about it. Safety rule 12.

use std::{
    fmt::Write as _,
    io::Read as _,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use pod_reaper_test_support::samples::{list, objects, yaml};
use serde_json::Value;

use crate::{Reaper, SMALL, reaper};

/// The most time between the deadline or a signal and the end of the process, with some for a busy machine.
const ENDS_WITHIN: Duration = Duration::from_secs(12);

/// A run on a state whose log, with a line for each namespace, is longer than what a pipe holds.
fn talkative(args: &[&str]) -> Reaper {
    let mut more = SMALL.to_owned();
    for number in 0..1_500 {
        let name = format!("a-namespace-with-a-long-name-{number}");
        writeln!(more, "    Pod {name}/p: {{}}").expect("a text");
    }
    let mut run = reaper(args);
    let file = run.file("state.json", &list(objects(&yaml(&more))).to_string());
    run.command.args(["--snapshot", &file, "--output=json"]);
    run.command.stdin(Stdio::null());
    run.command.stdout(Stdio::piped()).stderr(Stdio::piped());
    run
}

fn signal(child: &Child) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(sent.expect("kill").success());
}

/// Waits until the process ends. Returns its exit code, and how long that took.
fn end_of(child: &mut Child) -> (Option<i32>, Duration) {
    let started = Instant::now();
    while started.elapsed() < 3 * ENDS_WITHIN {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            return (status.code(), started.elapsed());
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("it can be killed");
    panic!("it goes on for {:?}", started.elapsed());
}

/// Nobody reads the log, so the thread of the run is blocked in a write: it can do as little about a signal as if it
/// computed.
#[test]
fn the_process_ends_whatever_its_run_does() {
    let blocked = |args: &[&str]| {
        let mut run = talkative(&["--log-level=debug"]);
        let child = run.command.args(args).spawn().expect("it starts");
        (run, child)
    };
    let (_first, mut once) = blocked(&[]);
    let (_second, mut twice) = blocked(&[]);
    let (_third, mut late) = blocked(&["--deadline=1s"]);
    let started = Instant::now();
    thread::sleep(Duration::from_secs(4));
    signal(&once);
    signal(&twice);
    thread::sleep(Duration::from_millis(500));
    signal(&twice);
    let (code, took) = end_of(&mut twice);
    assert!(code == Some(3) && took < Duration::from_secs(2), "{took:?}");
    let (code, took) = end_of(&mut once);
    assert!(code == Some(3) && took < ENDS_WITHIN, "{took:?}");
    let (code, _) = end_of(&mut late);
    let took = started.elapsed();
    assert!(
        code == Some(3) && took < ENDS_WITHIN + Duration::from_secs(5),
        "{took:?}"
    );
}

/// A person may read for longer than the deadline.
#[test]
fn the_deadline_ends_no_report_that_is_being_read() {
    let mut run = talkative(&["--log-level=off", "--deadline=1s"]);
    let mut child = run.command.spawn().expect("it starts");
    thread::sleep(ENDS_WITHIN + Duration::from_secs(2));
    let mut report = String::new();
    let mut stdout = child.stdout.take().expect("it is piped");
    stdout.read_to_string(&mut report).expect("a report");
    let report = serde_json::from_str::<Value>(&report).expect("a whole report");
    let pods = report["pods"].as_array().expect("pods");
    assert_eq!(pods.len(), 1_501);
    child.wait().expect("it ends");
}
