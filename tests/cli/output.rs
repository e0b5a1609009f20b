//! Output: report, log, colors, pipes.

use std::fs::{File, OpenOptions};

use itertools::Itertools as _;
use serde_json::Value;

use crate::{Ended, SMALL, audit, questions::SIX, reaper, saved, transcripts::plays};

#[test]
fn report_and_log_go_where_they_should() {
    plays("transcripts/output.txt");
    let Ended { out, err, .. } = audit(&[]).run().exits(0);
    assert!(out.starts_with("AUDIT of kosmos-link"), "{out}");
    assert!(!out.contains("Looking for"), "{out}");
    let is_logged = |line: &&str| line.contains("INFO") && line.contains(LOOKING);
    assert_eq!(err.lines().filter(is_logged).count(), 1, "{err}");
    assert!(!err.contains("not Ready"), "{err}");
}

const LOOKING: &str = "Looking for stuck Terminating pods";

/// The lines of a log without their times.
fn untimed(log: &str) -> Vec<String> {
    let lines = log.lines().map(|line| {
        let (_, said) = line.split_once(' ').expect("a time");
        said.trim_start().to_owned()
    });
    lines.collect()
}

/// The pods are counted by namespace only for who debugs.
#[test]
fn the_log_of_a_run_has_threshold_filter_and_the_number_of_pods() {
    for (args, looking, found) in [
        (
            &["--namespace-exclude-regex=^kube-", "--log-level=debug"][..],
            "all, but not those matching \"^kube-\" reap_older_than=10m",
            &[
                "INFO 9 Terminating pods in 5 namespaces",
                "DEBUG Namespace compute-hive01: 3 Terminating pods",
                "DEBUG Namespace etl: 1 Terminating pod",
                "DEBUG Namespace impala-impala01: 3 Terminating pods",
                "DEBUG Namespace kosmos-apps: 1 Terminating pod",
                "DEBUG Namespace vault: 1 Terminating pod",
            ][..],
        ),
        (
            &["--reap-older-than=20m"],
            "all reap_older_than=20m",
            &["INFO 9 Terminating pods in 5 namespaces"],
        ),
        (
            &["-n", "etl"],
            "matching \"^etl$\" reap_older_than=10m",
            &["INFO 1 Terminating pod in 1 namespace"],
        ),
        (
            &["-n", "default"],
            "matching \"^default$\" reap_older_than=10m",
            &["INFO 0 Terminating pods in 0 namespaces"],
        ),
    ] {
        let log = reaper(&[&["--snapshot", SIX], args].concat())
            .run()
            .exits(0)
            .err;
        let looking = format!("INFO {LOOKING}; namespaces: {looking}");
        let found = found.iter().map(|&line| line.to_owned());
        let expected = [looking].into_iter().chain(found).collect::<Vec<_>>();
        assert_eq!(untimed(&log), expected, "{args:?}");
    }
}

/// Of a silent log, only the error that ends a run is left.
#[test]
fn a_question_and_a_silent_run_log_nothing() {
    for run in [
        reaper(&["explain", "vault/vault-0", "--snapshot", SIX]),
        audit(&["--log-level=off"]),
        audit(&[]).env("LOG_LEVEL", "off"),
    ] {
        let told = format!("{:?}", run.command);
        assert_eq!(run.run().exits(0).err, "", "{told}");
    }
    let absent = reaper(&["--log-level=off", "--snapshot", "absent.json"]);
    let error = absent.run().exits(1).err;
    assert!(
        error.starts_with("error: --snapshot absent.json: "),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn a_json_log_is_an_object_a_line() {
    let log = audit(&[
        "--log-format=json",
        "--log-level=trace",
        "--namespace-exclude-regex=\"\n",
    ]);
    let log = log.run().exits(0).err;
    assert!(!log.is_empty());
    for line in log.lines() {
        let entry = serde_json::from_str::<Value>(line).expect(line);
        for field in ["timestamp", "level", "message"] {
            assert!(entry[field].is_string(), "{field}: {line}");
        }
    }
}

/// What forces colors in other programs does not matter.
#[test]
fn no_escape_leaves_the_program_unless_a_terminal_reads_it() {
    let stuck = "--reap-older-than=3s";
    for run in [
        audit(&[stuck]),
        audit(&[stuck, "--output=json"]),
        audit(&[]).env("NO_COLOR", "1"),
        audit(&[])
            .env("CLICOLOR_FORCE", "1")
            .env("FORCE_COLOR", "1"),
        reaper(&["--help"]),
        reaper(&["--nonsense"]),
    ] {
        run.run().never_prints("\u{1b}");
    }
}

/// A file that cannot be written.
fn full() -> File {
    let mut options = OpenOptions::new();
    options.write(true).open("/dev/full").expect("a file")
}

#[test]
fn a_report_that_cannot_be_written_is_3_unless_something_worse_is_reported() {
    let mut cut_off = reaper(&["--snapshot"]);
    let state = saved(&SMALL.replace("ready: 'True'", "ready: Unknown"));
    let state = cut_off.file("state.json", &state);
    cut_off.command.arg(state);
    for (mut run, code) in [
        (audit(&[]), 3),
        (audit(&["--output=json"]), 3),
        (audit(&["--reap-older-than=3s", "--exit-on-manual"]), 3),
        (cut_off, 4),
    ] {
        let told = format!("{:?}", run.command);
        let ended = run.command.stdout(full()).output().expect("a run");
        assert_eq!(ended.status.code(), Some(code), "{told}");
        let log = String::from_utf8(ended.stderr).expect("text");
        let errors = log.lines().filter(|line| !line.contains(" INFO "));
        assert_eq!(
            errors.collect_vec(),
            [
                "error: the report could not be written: No space left on device (os error 28); the next run reports what is left"
            ],
            "{told}"
        );
    }
}

#[test]
fn a_log_that_cannot_be_written_changes_nothing() {
    let stuck = ["--reap-older-than=3s"];
    let mut run = audit(&stuck);
    let ended = run.command.stderr(full()).output().expect("a run");
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(ended.stdout, audit(&stuck).run().exits(0).out.into_bytes());
}
