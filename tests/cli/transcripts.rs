//! Commands of a shell on the built binary, without a cluster.

use itertools::Itertools as _;
use std::{env, fs, os::unix::fs::symlink};

use pod_reaper_test_support::transcript::{self, bash, ended};

use crate::{Forbidden, SMALL, data, kubeconfig::kubeconfig, reaper, saved};

/// Invalid YAML with a token, which must not be printed.
const BROKEN: &str = "apiVersion: v1\nusers:\n- name: u\n  user: {token: MARKER\ncontexts: [\n";

/// Plays a transcript in one folder. None of its commands asks the cluster of the default kubeconfig, nor that of the pod,
/// whose address is `$ADDRESS`; no credential plugin is run, and no secret printed.
pub fn plays(file: &str) {
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
    transcript::plays(&data().join(file), |command| {
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
