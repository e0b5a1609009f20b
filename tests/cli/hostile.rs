//! Names and notes that steer a terminal, a browser or a shell. Kubernetes allows few of them, but a saved state may have any text.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use itertools::Itertools as _;
use pod_reaper_test_support::{
    objects::all_commands,
    samples::{list, objects, with},
};
use serde_json::{Value, json};

use crate::{Reaper, reaper};

/// An audit of a state that has this name in every place.
fn audit_of(name: &str, args: &[&str]) -> Reaper {
    let of_db = json!({"owner": "StatefulSet db", "node": name, "metadata": {"namespace": name}});
    let pod = |own: &str, more: Value| {
        let pod = with(of_db.clone(), more);
        (format!("Pod {own}"), pod)
    };
    let named = json!({"namespace": name, "name": name});
    let noted = json!({"owner": format!("StatefulSet {name}"),
        "metadata": {"name": name, "annotations": {"pod-reaper.io/after-reap": name}}});
    let mut described = json!({
        "Node ds05": {"ready": "True", "lease": null},
        "Node named": {"lease": null, "metadata": {"name": name}, "status": {"conditions": [
            {"type": "Ready", "status": "Unknown", "reason": name, "lastTransitionTime": "2026-01-31T01:00:00Z"}]}},
        "Node leaf": {"lease": null, "metadata": {"labels": {"kosmos.io/node": "true"},
            "annotations": {"kosmos-io/owned-by-cluster": name}}},
        "Namespace named": {"metadata": {"name": name}},
        "PersistentVolumeClaim named": {"volume": name, "metadata": named},
        "PersistentVolume named": {"metadata": {"name": name},
            "spec": {"local": {"path": name}, "persistentVolumeReclaimPolicy": name}},
        "PersistentVolumeClaim lost": {"volume": "gone", "metadata": {"namespace": name}},
        "VolumeAttachment named": {"node": name, "volume": name, "metadata": {"name": name}},
        "VolumeAttachment stray": {"node": "gone", "volume": name, "metadata": {"name": format!("{name} stray")}},
    });
    described.as_object_mut().expect("objects").extend([
        pod("noted", noted),
        pod("leafy", json!({"node": "leaf"})),
        pod("local", json!({"uses": name})),
        pod("lost", json!({"uses": "lost"})),
        pod("held", json!({"metadata": {"finalizers": [name]}})),
        pod("malformed", json!({"metadata": {"uid": ""}})),
    ]);
    let mut run = reaper(&[
        "--snapshot=-",
        "--now=2026-01-31T03:00:00Z",
        "--log-level=off",
    ]);
    run.command.args(args);
    run.input(list(objects(&described)).to_string())
}

#[test]
fn text_from_the_cluster_steers_no_terminal() {
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{9b}31m\u{202e}txt\u{2066}\u{200f}\u{ad}\u{feff}\u{e0001}\u{e0041}\0\u{7f}";
    for output in ["text", "html"] {
        let out = audit_of(hostile, &["--output", output]).run().exits(3).out;
        let steering = out.chars().filter(|letter| {
            letter.is_control() && *letter != '\n'
                || hostile.contains(*letter) && !letter.is_ascii()
        });
        assert_eq!(steering.collect_vec(), [], "{out}");
        assert!(out.matches("owned").count() > 10, "{out}");
    }
}

/// The policy of the page allows only its own script. A name that looks like markup is text all the same.
#[test]
fn a_name_that_looks_like_markup_shows_as_text() {
    let name = "\"'><img src=x onerror=alert(1)></code>";
    let page = audit_of(name, &["--output=html"]).run().exits(3).out;
    assert!(!page.contains("<img") && !page.contains("\"'"), "{page}");
    assert!(page.matches("onerror=alert(1)").count() > 20, "{page}");
}

/// A sentence has gaps for pods and nodes. A name that looks like a gap is not filled.
#[test]
fn a_name_that_looks_like_a_gap_stays_as_it_is() {
    let name = "<pods>,<nodes>,<count>,<>";
    let report = audit_of(name, &["--output=json"]).run().exits(3).out;
    assert!(
        report.contains(&format!("is held by finalizer {name}:")),
        "{report}"
    );
    assert!(report.contains(&format!("{name}/held")), "{report}");
}

/// A fake kubectl, which records its arguments.
const KUBECTL: &str = r#"#!/bin/sh
for word in "$@"; do printf '[%s]' "$word" >>"$LOG"; done
"#;

/// Every name is one word to the shell. Neither the shell nor kubectl reads a leaf cluster's name, which is free text, as a path or an
/// option.
#[test]
fn every_name_is_one_word_to_the_shell() {
    for name in [
        "$(touch x)",
        "`touch x`",
        "a; touch x",
        "a && touch x",
        "a | tee x",
        "a > x",
        "it's",
        "a\"b",
        "a b",
        "*",
        "~",
        "$HOME",
        "#a",
        "!!",
        "a\\b",
        "${IFS}",
        "<(touch x)",
        "é",
        "%s",
        "--server=https://example.com",
        "../../profile",
    ] {
        let run = audit_of(name, &["--output=json"]);
        let folder = tempfile::TempDir::new().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("kubectl"), KUBECTL).expect("a script");
        fs::set_permissions(at("kubectl"), fs::Permissions::from_mode(0o755))
            .expect("it can be run");
        fs::create_dir(at("work")).expect("a folder");
        let report = run.run().exits(3).report();
        let commands = all_commands(&report).collect_vec();
        assert!(commands.len() > 2, "{name}: {commands:?}");
        for command in commands {
            let path =
                std::env::join_paths([folder.path(), Path::new("/usr/bin"), Path::new("/bin")]);
            let mut shell = Command::new("/bin/sh");
            shell
                .args(["-c", command])
                .env_clear()
                .env("PATH", path.expect("a path"));
            shell.env("LOG", at("log")).current_dir(at("work"));
            let ended = shell.output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{command}");
        }
        let log = fs::read_to_string(at("log")).expect("a log");
        assert!(log.contains(&format!("[{name}]")), "{name}: {log}");
        assert!(log.contains(&format!("[{name} stray]")), "{name}: {log}");
        assert!(
            !log.contains(&format!("{name}.kubeconfig")),
            "{name}: {log}"
        );
        assert!(
            fs::read_dir(at("work")).expect("it").next().is_none(),
            "{name} was run"
        );
    }
}
