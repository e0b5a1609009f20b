//! The duration of an interruption, and its parts.

use crate::prelude::*;
use std::{fmt::Write as _, io::Write as _};

/// The schedule is scaled to one second for each minute of the operators' case, as are toleration and threshold.
/// Detection is not: it is 15 s here, and 50 s there.
const TICK: Duration = Duration::from_secs(10);
const TOLERATION_SECONDS: u32 = 5;

/// The parts from the failure to the replacement Running. The test asserts their order, and prints their durations
/// beside those of the operators' case.
#[test]
fn the_interruption_and_its_parts() {
    let case = Case::with_toleration("the_interruption_and_its_parts", TOLERATION_SECONDS);
    let is_hue = |pod: &&Seen| pod.called() == "compute-hive01/huebackend-0";
    let hue = || case.pods().iter().find(is_hue).cloned();

    let failed = Timestamp::now();
    case.stop(FAILING);
    case.until_ready_is("Unknown", FAILING);
    let detected = Timestamp::now();
    let old = case.until("it is Terminating", || {
        hue().filter(|pod| pod.deadline.is_some())
    });
    let evicted = Timestamp::now();
    let deadline = old.deadline.expect("it is Terminating");

    let mut runs = 0;
    let reaped = loop {
        thread::sleep(TICK);
        let run = case.reap(&OPTIONS);
        runs += 1;
        run.ends(0);
        match run.reason_and_outcome(&old.uid) {
            ("not-overdue", None) => assert!(runs < 10, "it is never overdue: {}", run.report),
            ("stuck-on-not-ready-node", Some("deleted")) => break Timestamp::now(),
            other => panic!("{other:?}"),
        }
    };
    let new = case.until_replaced(&[old]);
    let running = Timestamp::now();
    assert_ne!(new[0].node, FAILING);
    assert!(failed < detected && detected <= evicted && deadline < reaped && reaped <= running);

    let parts = [
        (
            "detection: the node monitor's grace period",
            failed,
            detected,
            "50 s",
        ),
        ("toleration: tolerationSeconds", detected, evicted, "5 min"),
        (
            "grace: terminationGracePeriodSeconds",
            evicted,
            deadline,
            "30 s",
        ),
        ("threshold and schedule", deadline, reaped, "10 to 20 min"),
        ("restart: scheduling and start", reaped, running, "its own"),
        ("in all", failed, running, "25 min, as they tell it"),
    ];
    let mut table = format!(
        "{:<46}{:>8}  {}\n",
        "interruption", "here", "operators' case"
    );
    for (part, from, to, theirs) in parts {
        let seconds = (to.duration_since(from))
            .max(SignedDuration::ZERO)
            .as_secs_f64();
        writeln!(table, "{part:<46}{seconds:>6.1} s  {theirs}").expect("a string takes it");
    }
    std::fs::write(
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("interruption.txt"),
        &table,
    )
    .expect("a folder");
    // Bypasses the test harness, which prints a test's output only when it fails.
    std::io::stderr()
        .write_all(table.as_bytes())
        .expect("standard error is open");
}
