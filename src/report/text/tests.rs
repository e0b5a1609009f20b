//! Tests of the text report: its layout, and that pasted commands send what they show.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process,
};

use expect_test::expect;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{
    decide::ReasonCode,
    outcome::Outcome,
    report::samples::*,
    selector::Target,
    settings::{Mode, Settings, Task},
};

#[test]
fn text_from_the_cluster_does_not_control_the_terminal() {
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{9b}31m\u{202e}txt\u{2066}\u{200f}\0\u{7f}";
    let leaf = json!({"labels": {"kosmos.io/node": "true"}, "annotations": {"kosmos-io/owned-by-cluster": hostile}});
    let owners = json!([{"kind": hostile, "name": hostile}]);
    let objects = objects(&json!({
        "Node ds05": {"ready": "True", "lease": null},
        "Node ds06": {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": hostile,
            "lastTransitionTime": FAILED}]}},
        "Node leaf": {"lease": null, "metadata": leaf},
        "Namespace app": {},
        "Pod app/a-0": {"metadata": {"annotations":
            {"pod-reaper.io/after-reap": format!("one\ntwo\tthree {hostile}")}}},
        "Pod app/b-0": {"uses": hostile, "metadata": {"ownerReferences": owners}},
        "PersistentVolumeClaim app/other": {"volume": "pv"},
        "PersistentVolumeClaim app/named": {"volume": hostile, "metadata": {"name": hostile}},
        "PersistentVolume named": {"metadata": {"name": hostile},
            "spec": {"local": {"path": hostile}, "persistentVolumeReclaimPolicy": hostile}},
        "Pod app/c-0": {"metadata": {"finalizers": [hostile]}},
        "Pod app/d-0": {"node": "leaf"},
        "Pod app/named": {"owner": "StatefulSet named", "metadata": {"name": hostile}},
        "Pod app/malformed": {"owner": "StatefulSet named", "metadata": {"name": hostile, "uid": ""}},
    }));
    let outcomes = [("uid-app-a-0", Outcome::Unverified(hostile.to_owned()))];
    let settings = Settings {
        task: Task::Audit {
            snapshot: hostile.into(),
            now: None,
        },
        ..audit()
    };
    let report = report(&settings, &objects, &outcomes);
    let text = write(&report.page(), Screen::default());
    let steering = text.chars().filter(|letter| {
        (letter.is_control() && *letter != '\n')
            || ('\u{200e}'..='\u{200f}').contains(letter)
            || ('\u{202a}'..='\u{202e}').contains(letter)
            || ('\u{2066}'..='\u{2069}').contains(letter)
    });
    assert_eq!(steering.collect::<Vec<_>>(), [], "{text}");
    assert!(text.contains("one two three"), "{text}");
    assert!(text.contains("NOT READ: 1"), "{text}");
    // With colors, the only escapes are those of the program.
    let ours = write(
        &report.page(),
        Screen {
            colour: true,
            ..Screen::default()
        },
    );
    assert!(
        !ours.contains("\u{1b}]") && !ours.contains("\u{1b}[2J"),
        "{ours:?}"
    );
}

// The tests below paste the printed commands into a shell.

/// A directory with a fake kubectl that records its arguments and input. The fake says that each
/// node is `Unknown`; its other output is valid as a name.
struct Shell(TempDir);

const KUBECTL: &str = r#"#!/bin/sh
{
    for word in "$@"; do printf '[%s]' "$word"; done
    case "$*" in *"-f -"*) printf '<'; cat ;; esac
    echo
} >>"$LOG"
case "$*" in
*"get node"*) printf uid-ds06/Unknown/2026-01-31T01:00:00Z ;;
*) printf volume ;;
esac
"#;

impl Shell {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("kubectl");
        fs::write(&file, KUBECTL).expect("a script");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it can be run");
        fs::create_dir(folder.path().join("work")).expect("a folder");
        Self(folder)
    }

    fn work(&self) -> PathBuf {
        self.0.path().join("work")
    }

    /// Pastes `line`, and returns the calls of kubectl.
    fn paste(&self, line: &str) -> String {
        let log = self.0.path().join("log");
        let _ = fs::remove_file(&log);
        let path = std::env::join_paths([self.0.path(), Path::new("/usr/bin"), Path::new("/bin")])
            .expect("a path");
        let mut shell = process::Command::new("/bin/sh");
        shell
            .args(["-c", line])
            .env_clear()
            .env("PATH", path)
            .env("LOG", &log)
            .current_dir(self.work());
        let output = shell.output().expect("a shell");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.is_empty(), "{line}\n{errors}");
        fs::read_to_string(&log).unwrap_or_default()
    }
}

#[test]
fn pasted_commands_send_what_they_show() {
    let target = Target {
        kubeconfig: Some("/etc/my config".into()),
        context: Some("prod".to_owned()),
    };
    let report = report(&run(Mode::DryRun, target), &private_cloud(), &[]);
    let shell = Shell::new();
    let asked = commands(&report)
        .into_iter()
        .map(|command| shell.paste(command))
        .collect::<String>();
    expect![[r#"
        [--kubeconfig][/etc/my config][--context][prod][get][pod][held-0][-n][compute-hive01][--show-managed-fields][-o][yaml]
        [--kubeconfig][/etc/my config][--context][prod][get][pod][held-0][-n][compute-hive01][-o][custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers]
        [--kubeconfig][/etc/my config][--context][prod][get][node][ds06][-o][jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}]
        [--kubeconfig][/etc/my config][--context][prod][delete][--raw][/api/v1/namespaces/impala-impala01/persistentvolumeclaims/scratch-cache-volume-impala-executor-000-0][-f][-]<{"preconditions":{"uid":"uid-scratch-cache-volume-impala-executor-000-0"}}

        [--kubeconfig][/etc/my config][--context][prod][get][pvc][statestored][-n][impala-impala01][-o][wide]
        [--kubeconfig][/etc/my config][--context][prod][describe][node][kosmos-cluster7]
        [--kubeconfig][/etc/my config][--context][prod][logs][-n][kosmos-system][deployment/clustertree-cluster-manager][--tail=50]
        [--kubeconfig][cluster7.kubeconfig][get][pod][web-0][-n][vault][-o][wide]
    "#]].assert_eq(&asked);
}

/// Kubernetes allows none of these names, but a snapshot or a false API server can hold any text.
#[test]
fn every_name_is_one_word_to_the_shell() {
    let shell = Shell::new();
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
        "-",
    ] {
        let leaf = json!({"labels": {"kosmos.io/node": "true"}, "annotations": {"kosmos-io/owned-by-cluster": name}});
        let on_named = |more: serde_json::Value| {
            let usual =
                json!({"node": name, "owner": "StatefulSet db", "metadata": {"namespace": name}});
            with(usual, more)
        };
        let named = json!({"namespace": name, "name": name});
        let objects = objects(&json!({
            "Node ds05": {"ready": "True", "lease": null},
            "Node named": {"lease": null, "metadata": {"name": name}},
            "Node leaf": {"lease": null, "metadata": leaf},
            "Namespace named": {"metadata": {"name": name}},
            "Pod leafy": on_named(json!({"node": "leaf"})),
            "Pod named": on_named(json!({"uses": name, "metadata": {"name": name}})),
            "PersistentVolumeClaim named": {"volume": name, "metadata": named},
            "PersistentVolume named": {"spec": {"local": {"path": name}}, "metadata": {"name": name}},
            "Pod lost": on_named(json!({"uses": "lost"})),
            "PersistentVolumeClaim lost": {"volume": "gone", "metadata": {"namespace": name}},
            "Pod held": on_named(json!({"metadata": {"finalizers": [name]}})),
            "VolumeAttachment named": {"node": name, "volume": name, "metadata": {"name": name}},
        }));
        let target = Target {
            kubeconfig: Some(name.into()),
            context: Some(name.to_owned()),
        };
        let report = report(&run(Mode::DryRun, target), &objects, &[]);
        let commands = commands(&report);
        // A name that cannot be a file's gets no command that writes or reads a file, and a name
        // that Kubernetes does not allow gets no script.
        assert_eq!(commands.len(), 7, "{name}: {commands:?}");
        for command in commands {
            let asked = shell.paste(command);
            let first = asked.lines().next().unwrap_or_default();
            let points = format!("[--kubeconfig][{name}][--context][{name}]");
            assert!(first.contains(&points), "{name}: {command:?}: {asked}");
        }
        assert!(!shell.work().join("x").exists(), "{name} was run");
    }
}

/// An annotation is free text, and anyone who may edit a node may write it. kubectl must not read
/// the text as an option, and the shell must not read it as a path.
#[test]
fn a_leaf_cluster_is_part_of_a_command_only_where_its_name_is_valid() {
    for cluster in [
        "--server=https://example.com",
        "-A",
        "../../profile",
        "/etc/profile",
        "a b",
    ] {
        let objects = objects(&json!({
            "Node ds05": {"ready": "True", "lease": null},
            "Node leaf": {"lease": null, "metadata": {"annotations": {"kosmos-io/owned-by-cluster": cluster}}},
            "Namespace app": {},
            "Pod app/a-0": {"node": "leaf"},
        }));
        let report = report(&audit(), &objects, &[]);
        assert_eq!(report.pods[0].reason, Some(ReasonCode::KosmosLeaf));
        for command in commands(&report) {
            assert!(!command.contains(cluster), "{command}");
        }
    }
}
