//! The built binary on a real API server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests say what is wrong by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod commands;
mod deletes;
mod dry_run;
mod ends;
mod faults;
mod races;
mod rights;
mod six_nodes;
mod terminal;

use std::{
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::support::{ControlPlane, objects::Node};

/// What the binary did.
struct Run {
    /// Its exit code.
    code: i32,
    /// The report, as JSON.
    report: Value,
    /// The log.
    log: String,
}

impl Run {
    /// The report's entry of the pod with this UID.
    #[track_caller]
    fn pod(&self, uid: &str) -> &Value {
        let pods = self.report["pods"].as_array().expect("pods");
        pods.iter().find(|pod| pod["uid"] == uid).unwrap_or_else(|| panic!("no pod {uid} in {}", self.report))
    }

    /// (reason, outcome) of the pod with this UID.
    #[track_caller]
    fn says(&self, uid: &str) -> (&str, Option<&str>) {
        let pod = self.pod(uid);
        (pod["reason"].as_str().expect("a reason"), pod["outcome"].as_str())
    }
}

/// The built binary, with no setting but those given.
fn binary(kubeconfig: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pod-reaper"));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/nonexistent");
    command.arg("--kubeconfig").arg(kubeconfig).stdin(Stdio::null());
    command
}

/// Runs it to its end.
fn run(kubeconfig: &Path, options: &[&str]) -> Run {
    let Output { status, stdout, stderr } =
        binary(kubeconfig).args(["--output", "json"]).args(options).output().expect("it starts");
    let log = String::from_utf8(stderr).expect("the log is text");
    let report = serde_json::from_slice(&stdout)
        .unwrap_or_else(|error| panic!("no report ({error}), exit {status}: {log}"));
    Run { code: status.code().expect("it ended by itself"), report, log }
}

/// Short enough for a test, and still told apart from nothing.
const SHORT: [&str; 4] = ["--reap-older-than", "1s", "--node-not-ready-for", "1m"];

/// The deletion deadlines of pods deleted with a grace of 1 s are set by the server's clock: this is how long until
/// they are overdue by 1 s, whole seconds that the server cuts off included.
fn until_overdue() {
    thread::sleep(Duration::from_millis(3_100));
}

/// Three nodes, of which `dead` has been silent for an hour.
fn one_dead_of_three(cluster: &ControlPlane) {
    for ready in ["ready-1", "ready-2"] {
        Node::ready(ready).create(cluster);
    }
    Node::not_ready("dead", 3600).create(cluster);
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().expect("a UID").to_owned()
}

fn uid_of_entry(entry: &Value) -> String {
    entry["uid"].as_str().expect("a UID").to_owned()
}
