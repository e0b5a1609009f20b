//! At a terminal, a run that deletes asks first. The program `script` of Debian's bsdutils provides the terminal.

use std::io::Write;

use crate::{
    prelude::*,
    support::{Fresh, installed::install},
};

/// A command that runs the binary at a terminal. Its input is the keyboard, and its output the screen.
fn at_terminal(kubeconfig: &Path) -> Command {
    let program = env!("CARGO_BIN_EXE_pod-reaper");
    let kubeconfig = kubeconfig.display();
    let command = format!("{program} --kubeconfig {kubeconfig} {}", SHORT.join(" "));
    let mut script = Command::new("script");
    script
        .args([
            "--quiet",
            "--flush",
            "--return",
            "--command",
            &command,
            "/dev/null",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    script
}

/// Runs the binary at a terminal, types `answer`, and returns the content of the screen.
fn at_a_terminal(cluster: &Fresh, answer: &str) -> String {
    let mut script = at_terminal(&cluster.kubeconfig)
        .spawn()
        .expect("script starts (apt-get install bsdutils)");
    // Standard input stays open until the end, as at a terminal after an answer.
    let mut keyboard = script.stdin.take().expect("it is piped");
    keyboard.write_all(answer.as_bytes()).expect("it reads");
    let screen = script.wait_with_output().expect("it ends");
    drop(keyboard);
    assert!(
        screen.status.success(),
        "{}",
        String::from_utf8_lossy(&screen.stdout)
    );
    String::from_utf8(screen.stdout).expect("text")
}

const QUESTION: &str = "Force-delete these 7 pods in context ";

#[test]
fn it_asks_before_it_deletes_and_only_a_yes_deletes() {
    let cluster = six_nodes::after_an_hour();
    let vault_lives = || cluster.has_pod("vault", "vault-0");

    let screen = at_a_terminal(&cluster, "n\n");
    // The pods are printed before the question, so that you know what the question is about.
    let (asked, _) = screen.split_once(QUESTION).expect("the question");
    for (_, name) in six_nodes::STUCK {
        assert!(asked.contains(name), "{name} is not in {screen}");
    }
    let (_, after) = screen
        .split_once("Without a yes, nothing is deleted.")
        .expect(&screen);
    assert_eq!(after.trim(), "", "that is all: {screen}");
    assert!(vault_lives());
    let screen = at_a_terminal(&cluster, "y\n");
    assert!(screen.contains(QUESTION), "{screen}");
    assert!(
        screen.contains('\u{1b}'),
        "a terminal gets colors: {screen}"
    );
    assert!(!vault_lives());
}

/// While a person reads the question, the guard is removed. The run proves it again before the first delete.
#[test]
fn a_proof_is_too_old_after_half_a_minute() {
    let cluster = fresh();
    one_is_stuck(&cluster);
    install(&cluster, DEFAULT);
    own_pod(&cluster, "pod-reaper");
    let proxy = Proxy::to(&cluster);
    let mut script = at_terminal(&proxy.kubeconfig_of(ACCOUNT))
        .envs(of("pod-reaper"))
        .spawn()
        .expect("script starts");
    let mut keyboard = script.stdin.take().expect("it is piped");
    until("the question", || proxy.seen().iter().any(Seen::is_dry));
    let binding = format!("{ADMISSION}/validatingadmissionpolicybindings/pod-reaper-guard");
    cluster.delete(&binding, json!({}));
    thread::sleep(Duration::from_secs(32));
    keyboard.write_all(b"y\n").expect("it reads");
    let screen = script.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&screen.stdout);
    assert!(
        said.contains("Force-delete this pod in context proxy"),
        "{said}"
    );
    assert_eq!(screen.status.code(), Some(1), "{said}");
    assert!(said.contains("the guard is not installed"), "{said}");
    assert!(cluster.try_get(STUCK).is_some(), "{said}");
}
