//! Runs the program under test as a user does, and pastes its commands into a shell.

use itertools::Itertools as _;
use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::LazyLock,
};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{
    ControlPlane,
    objects::{steps_about, str_of},
};

/// The documented schema of a report.
static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let schema = include_str!("../../../docs/report.schema.json");
    jsonschema::validator_for(&serde_json::from_str(schema).expect("JSON")).expect("a schema")
});

/// The result of a run of the binary.
pub struct Run {
    pub code: i32,
    /// The report, as JSON.
    pub report: Value,
    pub log: String,
}

impl Run {
    /// The report's entry of the pod with this UID.
    #[track_caller]
    pub fn pod(&self, uid: &str) -> &Value {
        let pods = self.report["pods"].as_array().expect("pods");
        pods.iter()
            .find(|pod| pod["uid"] == uid)
            .unwrap_or_else(|| panic!("no pod {uid} in {}", self.report))
    }

    /// Checks that the run ended with this code.
    #[track_caller]
    pub fn ends(&self, code: i32) {
        assert_eq!(self.code, code, "{} {}", self.log, self.report);
    }

    /// Checks that the run did everything, and could read everything.
    #[track_caller]
    pub fn is_whole(&self) {
        self.ends(0);
        assert_eq!(self.report["errors"], json!([]), "{}", self.log);
    }

    /// Checks that the pod with this UID has this reason and outcome.
    #[track_caller]
    pub fn says(&self, uid: &str, expected: (&str, Option<&str>)) {
        let said = self.reason_and_outcome(uid);
        assert_eq!(said, expected, "{} {}", self.log, self.report);
    }

    /// (reason, outcome) of the pod with this UID.
    #[track_caller]
    pub fn reason_and_outcome(&self, uid: &str) -> (&str, Option<&str>) {
        let pod = self.pod(uid);
        (str_of(&pod["reason"]), pod["outcome"].as_str())
    }
}

/// The path of the built binary.
pub fn executable() -> PathBuf {
    // Cargo sets the path for test programs only, not for this crate.
    std::env::var_os("CARGO_BIN_EXE_pod-reaper")
        .expect("cargo sets it where it runs a test program")
        .into()
}

/// A command of the built binary, with only the given settings. There is no terminal at which it could ask.
pub fn binary(kubeconfig: &Path) -> Command {
    let mut command = program();
    command.args(["--yes", "--kubeconfig"]).arg(kubeconfig);
    command
}

/// Such a command without a kubeconfig, and without consent to deletes.
pub fn program() -> Command {
    let mut command = Command::new(executable());
    let variables = [("PATH", "/usr/bin:/bin"), ("HOME", "/nonexistent")];
    command.env_clear().envs(variables).stdin(Stdio::null());
    command
}

/// Runs the binary to its end, and validates its report against the schema.
pub fn run(kubeconfig: &Path, options: &[&str]) -> Run {
    run_with(kubeconfig, &[], options)
}

/// Does the same with variables set.
pub fn run_with(kubeconfig: &Path, variables: &[(&str, &str)], options: &[&str]) -> Run {
    let mut command = binary(kubeconfig);
    command
        .envs(variables.iter().copied())
        .args(["--output", "json"])
        .args(options);
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("it starts");
    let log = String::from_utf8(stderr).expect("the log is text");
    let report = serde_json::from_slice(&stdout)
        .unwrap_or_else(|error| panic!("no report ({error}), exit {status}: {log}"));
    let wrong = SCHEMA
        .iter_errors(&report)
        .map(|error| format!("{error} at {}", error.instance_path()));
    assert_eq!(wrong.collect_vec(), Vec::<String>::new(), "{report}");
    Run {
        code: status.code().expect("it ended by itself"),
        report,
        log,
    }
}

/// The shells into which users paste commands.
pub const SHELLS: [&str; 3] = ["sh", "bash", "zsh"];

/// Pastes the lines of one step into a shell.
pub fn paste(cluster: &ControlPlane, lines: &str) -> Output {
    paste_into("sh", cluster, lines)
}

/// Pastes the lines into this one of [`SHELLS`].
pub fn paste_into(shell: &str, cluster: &ControlPlane, lines: &str) -> Output {
    pasted_into(shell, cluster, lines)
        .output()
        .unwrap_or_else(|error| panic!("{shell}: {error}"))
}

/// A shell that runs the lines once it is started.
pub fn pasted_into(shell: &str, cluster: &ControlPlane, lines: &str) -> Command {
    let bin = cluster.kubectl.parent().expect("a folder");
    let path = env::join_paths(
        [bin.to_owned()]
            .into_iter()
            .chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
    );
    // A test program that runs in the background or under nohup ignores signals, and so would its shells.
    let mut command = Command::new("env");
    command
        .args(["--default-signal=INT,HUP", shell, "-euc", lines])
        .env("PATH", path.expect("a path"))
        .env("HOME", &cluster.dir)
        .current_dir(&cluster.dir);
    command
}

/// The commands of the steps about a pod or its node, in order.
pub fn commands(run: &Run, uid: &str) -> Vec<String> {
    let steps = steps_about(&run.report, run.pod(uid));
    let commands = steps.filter_map(|step| step["command"].as_str());
    commands.map(str::to_owned).collect()
}

/// Checks that the command succeeded. A failure shows the command's output.
#[track_caller]
pub fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", shown(output));
}

/// The output of a command, on both streams.
pub fn shown(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
