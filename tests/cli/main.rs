//! The built binary without a cluster: its options, its output and its exit codes.
//!
//! Every run gets an environment and a home folder of its own, so that it reads no kubeconfig and no variable of the
//! machine that runs the tests.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a helper that cannot do its part ends its test, and a measurement is printed"
)]

mod at_night;
mod book;
mod bounds;
mod chart;
mod documents;
mod ends;
mod hostile;
mod kubeconfig;
mod linear;
mod snapshot;
mod transcripts;
mod versions;

use std::{
    fs,
    io::{ErrorKind, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use pod_reaper_test_support::samples::{list, objects, with, yaml};
use serde_json::Value;
use tempfile::TempDir;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join("data")
}

/// One run of the program, not started yet.
struct Reaper {
    command: Command,
    home: TempDir,
    input: Option<String>,
}

/// The output of a run, and its home folder.
struct Ended {
    code: i32,
    out: String,
    err: String,
}

fn reaper(args: &[&str]) -> Reaper {
    let home = TempDir::new().expect("a home");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pod-reaper"));
    command
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home.path())
        // Paths are relative, so that reports are the same on every machine.
        .current_dir(data());
    Reaper {
        command,
        home,
        input: None,
    }
}

/// A run with these arguments on the small cluster, with changes in words.
fn small(more: &str, args: &[&str]) -> Reaper {
    let cluster = list(objects(&with(yaml(SMALL), yaml(more)))).to_string();
    let mut reaper = reaper(&["--snapshot", "-", "--output=json"]).input(cluster);
    reaper.command.args(args);
    reaper
}

impl Reaper {
    fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    fn input(mut self, text: impl Into<String>) -> Self {
        self.input = Some(text.into());
        self
    }

    /// Writes a file into the run's home and returns its path.
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.home.path().join(name);
        fs::create_dir_all(path.parent().expect("files have a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    }

    fn run(mut self) -> Ended {
        self.command.stdin(if self.input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program starts");
        if let (Some(text), Some(mut stdin)) = (self.input, child.stdin.take()) {
            stdin
                .write_all(text.as_bytes())
                .expect("the program reads its input");
        }
        let output = child.wait_with_output().expect("the program ends");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Ended {
            code: output.status.code().expect("no signal ended it"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

impl Ended {
    #[track_caller]
    fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.out, self.err
        );
        self
    }

    fn report(&self) -> Value {
        serde_json::from_str(&self.out).expect("the report is JSON")
    }
}

/// Three nodes, of which ds06 has been cut off for two hours, and one pod stuck on it. Without `--now`, the latest observation,
/// of ds04, is treated as the time of saving.
const SMALL: &str = "
    Node ds04: {ready: 'True', lease: null, metadata: {creationTimestamp: '2026-01-31T03:00:00Z'}}
    Node ds05: {ready: 'True', lease: null}
    Node ds06: {}
    Namespace compute-hive01: {}
    Pod compute-hive01/huebackend-0: {}
";

/// The described cluster, as kubectl saves it.
fn saved(described: &str) -> String {
    list(objects(&yaml(described))).to_string()
}

/// A cluster that must not be contacted. Nothing accepts, so a connection waits until it is counted.
struct Forbidden(TcpListener);

impl Forbidden {
    fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("non-blocking");
        Self(listener)
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("an address")
    }

    #[track_caller]
    fn was_left_alone(self) {
        let asked = self.0.accept();
        assert!(
            asked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
            "another cluster was asked"
        );
    }
}
