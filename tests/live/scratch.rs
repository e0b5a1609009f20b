//! The storage of the executor is declared scratch, so that it comes back without a person.

use std::{fmt::Write as _, io::Write as _, path::Path, thread, time::Duration};

use jiff::Timestamp;
use serde_json::json;

use crate::{
    case::{Case, FAILING, OPTIONS, Seen},
    support::objects::annotate,
};

const CLAIM: &str = "/api/v1/namespaces/impala-impala01/persistentvolumeclaims/scratch-cache-volume-impala-executor-000-0";

/// As in `interruption`: one second for each minute of the operators' case.
const TICK: Duration = Duration::from_secs(10);
const TOLERATION_SECONDS: u32 = 5;

#[test]
fn an_executor_with_scratch_runs_on_another_node_without_a_person() {
    let story = "an_executor_with_scratch_runs_on_another_node_without_a_person";
    let case = Case::with_toleration(story, TOLERATION_SECONDS);
    annotate(&case, CLAIM, "pod-reaper.io/scratch", "true");
    let claim = case.get(CLAIM)["metadata"]["uid"].clone();
    let executor = || {
        case.pods()
            .into_iter()
            .find(|pod| pod.name == "impala-executor-000-0")
    };

    let failed = Timestamp::now();
    case.stop(FAILING);
    let old = case.until("it is Terminating", || {
        executor().filter(|pod: &Seen| pod.deadline.is_some())
    });
    let reaped = loop {
        thread::sleep(TICK);
        // Without the option it waits for a person, run after run.
        let before = case.reap(&[&OPTIONS[..], &["--dry-run"]].concat());
        let with = case.reap(&[&OPTIONS[..], &["--reap-scratch"]].concat());
        match with.reason_and_outcome(&old.uid) {
            ("not-overdue", None) => {}
            ("scratch", Some("deleted")) => {
                assert_eq!(before.reason_and_outcome(&old.uid), ("local-volume", None));
                assert_eq!(with.code, 0, "{}", with.log);
                break Timestamp::now();
            }
            other => panic!("{other:?}: {}", with.log),
        }
    };
    let new = case.until_replaced(&[old]);
    let running = Timestamp::now();
    assert_ne!(new[0].node, FAILING);
    assert_ne!(case.get(CLAIM)["metadata"]["uid"], claim);

    let mut table = "the executor, from its node's death on\n".to_owned();
    for (what, at) in [("reaped", reaped), ("Running on another node", running)] {
        writeln!(
            table,
            "{what:<26}{:>6.1} s",
            at.duration_since(failed).as_secs_f64()
        )
        .expect("a string");
    }
    writeln!(
        table,
        "toleration {TOLERATION_SECONDS} s, threshold 10 s, a run every {} s",
        TICK.as_secs()
    )
    .expect("a string");
    std::fs::write(
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("scratch.txt"),
        &table,
    )
    .expect("a folder");
    // Bypasses the test harness, which prints a test's output only when it fails.
    std::io::stderr()
        .write_all(table.as_bytes())
        .expect("standard error is open");
}

#[test]
fn a_claim_without_the_annotation_is_never_touched() {
    let case = Case::start("a_claim_without_the_annotation_is_never_touched");
    let claim = case.get(CLAIM)["metadata"]["uid"].clone();
    case.stop(FAILING);
    let evicted = case.until_evicted(FAILING);
    case.until_stuck(&evicted);
    let local = evicted
        .iter()
        .find(|pod| pod.name == "impala-executor-000-0")
        .expect("it was there");
    let run = case.reap(&[&OPTIONS[..], &["--reap-scratch"]].concat());
    assert_eq!(
        run.reason_and_outcome(&local.uid),
        ("local-volume", None),
        "{}",
        run.log
    );
    let found = case.get(CLAIM);
    assert_eq!(
        (
            &found["metadata"]["uid"],
            &found["metadata"]["deletionTimestamp"]
        ),
        (&claim, &json!(null))
    );
}
