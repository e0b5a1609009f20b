//! At a terminal a run that will delete asks first. The terminal is that of `script`, of Debian's bsdutils.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use crate::{
    SHORT, six_nodes,
    support::{Fresh, fresh, objects::pod_path},
};

/// Runs the binary at a terminal, with `answer` typed, and gives what the screen shows.
fn at_a_terminal(cluster: &Fresh, options: &str, answer: &str) -> String {
    let program = env!("CARGO_BIN_EXE_pod-reaper");
    let kubeconfig = cluster.kubeconfig.display();
    let command = format!("{program} --kubeconfig {kubeconfig} {} {options}", SHORT.join(" "));
    let mut script = Command::new("script")
        .args(["--quiet", "--flush", "--return", "--command", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script starts (apt-get install bsdutils)");
    // Kept open until the end: a terminal does not hang up after an answer.
    let mut keyboard = script.stdin.take().expect("it is piped");
    keyboard.write_all(answer.as_bytes()).expect("it reads");
    let screen = script.wait_with_output().expect("it ends");
    drop(keyboard);
    assert!(screen.status.success(), "{}", String::from_utf8_lossy(&screen.stdout));
    String::from_utf8(screen.stdout).expect("text")
}

const QUESTION: &str = "Force-delete these 7 pods? [y/N, within a minute]";

fn vault_lives(cluster: &Fresh) -> bool {
    cluster.try_get(&pod_path("vault", "vault-0")).is_some()
}

#[test]
fn it_asks_before_it_deletes_and_only_a_yes_deletes() {
    let cluster = fresh();
    six_nodes::failed(&cluster);

    let screen = at_a_terminal(&cluster, "--dry-run=client", "");
    assert!(!screen.contains(QUESTION), "{screen}");
    let screen = at_a_terminal(&cluster, "", "n\n");
    assert!(screen.contains(QUESTION) && screen.contains("7 would be deleted"), "{screen}");
    assert!(vault_lives(&cluster));
    let screen = at_a_terminal(&cluster, "", "y\n");
    assert!(screen.contains(QUESTION) && screen.contains("7 deleted"), "{screen}");
    assert!(screen.contains('\u{1b}'), "a terminal gets colours: {screen}");
    assert!(!vault_lives(&cluster));
}

#[test]
fn yes_is_not_asked_again() {
    let cluster = fresh();
    six_nodes::failed(&cluster);
    let screen = at_a_terminal(&cluster, "--yes", "");
    assert!(!screen.contains("[y/N, within a minute]") && screen.contains("7 deleted"), "{screen}");
    assert!(!vault_lives(&cluster));
}
