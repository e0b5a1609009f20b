//! Output: report, log, colours, pipes.

use std::{
    fs::File,
    io::Write as _,
    process::{Command, Stdio},
};

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::{KOSMOS, KOSMOS_NOW, Reaper, audit, data, reaper, small_cluster};

#[test]
fn the_log_goes_to_standard_error_and_the_report_to_standard_output() {
    let ended = audit(&[])
        .run()
        .exits(0)
        .shows_on_stderr(&["INFO", "Looking for stuck Terminating pods"]);
    assert!(
        ended.out.starts_with("kosmos-link-cut.json: "),
        "{}",
        ended.out
    );
    assert!(!ended.out.contains("Looking for"), "{}", ended.out);
    assert!(!ended.err.contains("not Ready"), "{}", ended.err);
}

#[test]
fn a_silent_log_holds_only_the_error_that_ends_the_run() {
    assert_eq!(audit(&["--log-level=off"]).run().exits(0).err, "");
    assert_eq!(audit(&[]).env("LOG_LEVEL", "off").run().exits(0).err, "");
    let failed = reaper(&["--log-level=off", "--snapshot", "absent.json"])
        .run()
        .exits(1);
    assert_eq!(failed.err.lines().count(), 1, "{}", failed.err);
    failed.shows_on_stderr(&["error: --snapshot absent.json"]);
}

#[test]
fn a_json_log_is_an_object_a_line() {
    let ended = audit(&[
        "--log-format=json",
        "--log-level=trace",
        "--namespace-regex=\"\n",
    ])
    .run()
    .exits(0);
    assert!(!ended.err.is_empty());
    for line in ended.err.lines() {
        let event: Value = serde_json::from_str(line).expect(line);
        for field in ["timestamp", "level", "message"] {
            assert!(event[field].is_string(), "no {field} in {line}");
        }
    }
}

#[test]
fn no_escape_leaves_the_program_unless_a_terminal_reads_it() {
    for ended in [
        audit(&["--reap-older-than=3s"]).run().exits(0),
        audit(&["--reap-older-than=3s", "--output=json"])
            .run()
            .exits(0),
        audit(&[]).env("NO_COLOR", "1").run().exits(0),
        // Variables that force colours in other programs.
        audit(&[])
            .env("CLICOLOR_FORCE", "1")
            .env("FORCE_COLOR", "1")
            .run()
            .exits(0),
        reaper(&["--help"]).run().exits(0),
        reaper(&["--nonsense"]).run().exits(2),
    ] {
        assert!(!ended.out.contains('\u{1b}'), "{:?}", ended.out);
        assert!(!ended.err.contains('\u{1b}'), "{:?}", ended.err);
    }
}

/// The terminal is that of `script`.
#[test]
fn a_terminal_gets_colours_unless_no_color_is_set() {
    let on_a_terminal = |variables: &[(&str, &str)]| {
        let program = env!("CARGO_BIN_EXE_pod-reaper");
        let line = format!("{program} --snapshot {KOSMOS} --now {KOSMOS_NOW} --reap-older-than=3s");
        let mut command = Command::new("script");
        command
            .args(["--quiet", "--return", "--command", &line, "/dev/null"])
            .current_dir(data())
            .stdin(Stdio::null());
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("TERM", "xterm")
            .envs(variables.iter().copied());
        let output = command
            .output()
            .expect("script starts (apt-get install bsdutils)");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let painted = on_a_terminal(&[]);
    assert!(
        painted.contains("needs you") && painted.contains('\u{1b}'),
        "{painted:?}"
    );
    assert!(!painted.contains("INFO"), "{painted}");
    let plain = on_a_terminal(&[("NO_COLOR", "1"), ("LOG_LEVEL", "info")]);
    assert!(plain.contains("INFO"), "{plain}");
    assert!(
        plain.contains("needs you") && !plain.contains('\u{1b}'),
        "{plain:?}"
    );
    let empty = on_a_terminal(&[("NO_COLOR", "")]);
    assert!(
        empty.contains('\u{1b}'),
        "an empty NO_COLOR counts as not set (no-color.org): {empty:?}"
    );
}

#[test]
fn a_closed_pipe_is_success() {
    for output in ["--output=text", "--output=json"] {
        let mut run = reaper(&["--snapshot", "-", output]);
        run.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = run.command.spawn().expect("the program starts");
        // Closes the pipe before there can be a report, since there is no snapshot yet.
        drop(child.stdout.take());
        let mut stdin = child.stdin.take().expect("piped");
        stdin
            .write_all(small_cluster().to_string().as_bytes())
            .expect("the program reads its input");
        drop(stdin);
        let output = child.wait_with_output().expect("the program ends");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{err}");
        assert!(!err.contains("error") && !err.contains("panicked"), "{err}");
    }
}

#[test]
fn a_report_that_cannot_be_written_is_3_unless_something_worse_is_reported() {
    let full = || {
        Stdio::from(
            File::options()
                .write(true)
                .open("/dev/full")
                .expect("/dev/full"),
        )
    };
    let write_to_full = |mut run: Reaper| {
        let child = run
            .command
            .stdin(Stdio::null())
            .stdout(full())
            .stderr(Stdio::piped())
            .spawn();
        let output = child
            .and_then(std::process::Child::wait_with_output)
            .expect("the program runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    for args in [
        &["--output=text"][..],
        &["--output=json"],
        &["--reap-older-than=3s", "--exit-on-manual"],
    ] {
        let (code, err) = write_to_full(audit(args));
        assert_eq!(code, Some(3), "{args:?}: {err}");
        assert!(
            err.contains("error: the report could not be written: "),
            "{args:?}: {err}"
        );
    }
    let mut outage = small_cluster();
    for at in 0..2 {
        outage["items"][at]["status"]["conditions"][0]["status"] = json!("Unknown");
    }
    let mut run = reaper(&[]);
    let path = run.file("outage.json", &outage.to_string());
    run.command.args(["--snapshot", &path]);
    assert_eq!(write_to_full(run).0, Some(4));
}

#[test]
fn a_log_that_cannot_be_written_changes_nothing() {
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let mut run = audit(&["--reap-older-than=3s"]);
    let output = run
        .command
        .stdin(Stdio::null())
        .stderr(full)
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(0));
    expect_file!["../data/golden/kosmos-link-cut.txt"]
        .assert_eq(&String::from_utf8_lossy(&output.stdout));
}
