//! What commands of a shell print: the files of `tests/data/transcripts`.

use std::{env, fs, os::unix::fs::symlink, process::Command};

use expect_test::expect_file;

use crate::{Forbidden, data, kubeconfig::kubeconfig, reaper, small_cluster};

/// Invalid YAML with a token, which must not be printed.
const BROKEN: &str = "apiVersion: v1\nusers:\n- name: u\n  user: {token: MARKER\ncontexts: [\n";

/// Runs the lines of a file that begin with `$`, in one folder; below each is what it prints, with its exit code unless that
/// is 0. `UPDATE_EXPECT=1` rewrites it; whether each says what it should is for a reader of the file to judge. None asks the
/// cluster of the default kubeconfig, nor that of the pod, whose address is `$ADDRESS`; and no credential plugin is run.
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
        ("small.json", &small_cluster().to_string()),
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
    let path = env::var("PATH").expect("a PATH");
    let file = data().join(file);
    let mut page = String::new();
    for line in fs::read_to_string(&file).expect("a file").lines() {
        if line.starts_with('#') {
            page += &format!("{line}\n\n");
        }
        let Some(command) = line.strip_prefix("$ ") else {
            continue;
        };
        let mut bash = reaper(&[]);
        bash.command = Command::new("bash");
        bash.command
            .args(["-c", &format!("exec 2>&1\n{command}")])
            .env_clear()
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("BASH_ENV", data().join("transcripts/functions.sh"))
            .env("HOME", home)
            .env("ADDRESS", address.to_string())
            .env("KUBERNETES_SERVICE_HOST", address.ip().to_string())
            .env("KUBERNETES_SERVICE_PORT", address.port().to_string())
            .current_dir(home);
        let ended = bash.run().never_prints("MARKER");
        let says = ended.out.lines().filter(|line| !line.contains(" INFO "));
        let says = says.collect::<Vec<_>>().join("\n");
        let says = says
            .replace(&address.to_string(), "ADDRESS")
            .replace(&home.display().to_string(), "HOME");
        let says = says.trim_end_matches("For more information, try '--help'.");
        let code = Some(ended.code).filter(|code| *code != 0);
        let code = code.map_or_else(String::new, |code| format!("{code} "));
        let says = format!("$ {command}\n{code}{says}");
        page += &format!("{}\n\n", says.trim_end());
    }
    expect_file![&file].assert_eq(&page);
    assert!(!home.join("ran").exists(), "a plugin was run");
    forbidden.was_left_alone();
}
