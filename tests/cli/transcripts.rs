//! Commands of a shell on the built binary, without a cluster.

use itertools::Itertools as _;
use std::{env, fs, os::unix::fs::symlink};

use pod_reaper_test_support::transcript::{self, bash, ended};

use crate::{Forbidden, SMALL, data, kubeconfig::kubeconfig, reaper, saved};

/// Invalid YAML with a token, which must not be printed.
const BROKEN: &str = "apiVersion: v1\nusers:\n- name: u\n  user: {token: MARKER\ncontexts: [\n";

/// Plays a transcript in one folder. None of its commands asks the cluster of the default kubeconfig, nor that of the pod,
/// whose address is `$ADDRESS`; no credential plugin is run, and no secret printed.
fn plays(name: &str) {
    let forbidden = Forbidden::new();
    let address = forbidden.address();
    let stage = reaper(&[]);
    let good = kubeconfig(address, "token: MARKER");
    let plugin = "exec: {command: touch, args: [ran], apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}";
    for (name, text) in [
        (".kube/config", good.as_str()),
        ("good", &good),
        ("plugin", &kubeconfig(address, plugin)),
        ("broken", BROKEN),
        ("empty", ""),
        ("small.json", &saved(SMALL)),
    ] {
        stage.file(name, text);
    }
    let home = stage.home.path();
    let bin = home.join("bin");
    fs::create_dir(&bin).expect("a folder");
    symlink(env!("CARGO_BIN_EXE_pod-reaper"), bin.join("pod-reaper")).expect("a link");
    for state in ["kosmos-link-cut.json", "six-nodes.json"] {
        symlink(data().join(state), home.join(state)).expect("a link");
    }
    let folders = format!("{}:{}", bin.display(), env::var("PATH").expect("a PATH"));
    let file = data().join("transcripts").join(name);
    transcript::plays(&file, |command| {
        let mut bash = bash(command, &folders);
        bash.env("HOME", home)
            .env("ADDRESS", address.to_string())
            .env("KUBERNETES_SERVICE_HOST", address.ip().to_string())
            .env("KUBERNETES_SERVICE_PORT", address.port().to_string())
            .current_dir(home);
        let (code, says) = ended(bash);
        assert!(!says.contains("MARKER"), "{command}: {says}");
        let mut says = says.lines().filter(|line| !line.contains(" INFO "));
        let says = says.join("\n");
        let says = says
            .replace(&address.to_string(), "ADDRESS")
            .replace(&home.display().to_string(), "HOME");
        let says = says.trim_end_matches("For more information, try '--help'.");
        (code, says.to_owned())
    });
    assert!(!home.join("ran").exists(), "a plugin was run");
    forbidden.was_left_alone();
}

#[test]
fn a_broken_kubeconfig_never_falls_back_to_another_cluster() {
    plays("kubeconfig.txt");
}

#[test]
fn a_run_that_may_delete_asks_or_is_told() {
    plays("asking.txt");
}

#[test]
fn a_wrong_value_is_refused_with_a_right_one() {
    plays("values.txt");
}

#[test]
fn a_setting_is_typed_or_in_a_variable() {
    plays("settings.txt");
}

#[test]
fn a_wrong_name_is_refused_with_a_similar_one() {
    plays("names.txt");
}

#[test]
fn a_file_that_holds_no_state_is_refused() {
    plays("saved-state.txt");
}

#[test]
fn a_snapshot_that_cannot_be_judged_is_named_with_what_to_do() {
    plays("snapshot.txt");
}

#[test]
fn explain_answers_as_it_should() {
    plays("questions.txt");
}

#[test]
fn report_and_log_go_where_they_should() {
    plays("output.txt");
}

#[test]
fn exit_codes_are_those_of_the_contract() {
    plays("exit-codes.txt");
}

#[test]
fn the_help_is_a_file_to_read() {
    plays("help.txt");
}
