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

/// A run on a state whose report is longer than what a pipe holds.
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

/// Waits until the process ends, which takes it at most ten seconds where it has the processor for itself. Returns its exit code.
fn end_of(child: &mut Child) -> Option<i32> {
    let started = Instant::now();
    let mut ended = None;
    while ended.is_none() && started.elapsed() < Duration::from_mins(2) {
        thread::sleep(Duration::from_millis(20));
        ended = child.try_wait().expect("it can be waited for");
    }
    if ended.is_none() {
        child.kill().expect("it can be killed");
    }
    ended.and_then(|status| status.code())
}

/// Nobody reads the log, so the thread of the run is blocked in a write: it can do as little about a signal as if it
/// computed.
#[test]
fn the_process_ends_whatever_its_run_does() {
    // The first line of the log names the filter.
    let filter = format!("--namespace-regex=^(a|{})", "b".repeat(100_000));
    let blocked = |args: &[&str]| {
        let mut run = talkative(&["--log-level=info", &filter]);
        let child = run.command.args(args).spawn().expect("it starts");
        (run, child)
    };
    let (_first, mut once) = blocked(&[]);
    let (_second, mut twice) = blocked(&[]);
    let (_third, mut late) = blocked(&["--deadline=15s"]);
    // Before that, a run that has to end could not run. What is read here is less than what does not fit.
    for child in [&mut once, &mut twice] {
        let log = child.stderr.as_mut().expect("it is piped");
        log.read_exact(&mut [0; 8_192]).expect("a log");
    }
    thread::sleep(Duration::from_secs(1));
    // Long before the other, so that its ten seconds are over first, also on a busy machine.
    signal(&once);
    thread::sleep(Duration::from_secs(3));
    signal(&twice);
    thread::sleep(Duration::from_millis(500));
    signal(&twice);
    assert_eq!(end_of(&mut twice), Some(3));
    let still_runs = once.try_wait().expect("it can be waited for").is_none();
    assert!(still_runs, "a second signal ends it sooner than one");
    assert_eq!(end_of(&mut once), Some(3));
    assert_eq!(end_of(&mut late), Some(3));
}

/// A person may read for longer than the deadline.
#[test]
fn the_deadline_ends_no_report_that_is_being_read() {
    let mut run = talkative(&["--log-level=off", "--deadline=5s"]);
    let mut child = run.command.spawn().expect("it starts");
    // Longer than the deadline and the ten seconds after it.
    thread::sleep(Duration::from_secs(18));
    let mut report = String::new();
    let mut stdout = child.stdout.take().expect("it is piped");
    stdout.read_to_string(&mut report).expect("a report");
    let report = serde_json::from_str::<Value>(&report).expect("a whole report");
    let pods = report["pods"].as_array().expect("pods");
    assert_eq!(pods.len(), 1_501);
    child.wait().expect("it ends");
}
