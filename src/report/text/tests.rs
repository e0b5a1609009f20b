//! Tests of the text report: its layout, and that pasted commands send what they show.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

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
fn an_audit_of_a_dead_node() {
    let report = report(&audit(), &private_cloud(), &[]);
    expect![[r#"
        AUDIT of state.json, judged at 2026-01-31 03:00Z. Nothing was changed. Exit code 3.
        NODES  ds06 NotReady for 2h · kosmos-cluster7 NotReady for 2h, its link is probably cut
        PODS   4 to be reaped · 4 need you · 2 waiting · 2 left alone · not read: 1
        FIRST  1. power off ds06, unless it is about to come back: the next run reaps its other pods, even
                  if it is still on
               2. then decide about impala-impala01/impala-executor-000-0, impala-impala01/statestored-0
               3. compute-hive01/held-0: see what set its finalizers, and repair that
               4. vault/web-0: do not delete it; look in its leaf cluster before you repair the link
               5. see what could not be read: Pod impala-impala01/odd-0

        NEEDS YOU: 4
        on ds06: NotReady for 2h; last heartbeat 2h ago (lease)
          1. If ds06 can come back, wait: these pods then restart with their data.
          2. If not, power ds06 off before you delete anything by hand. Otherwise two copies may run.
          impala-impala01/impala-executor-000-0  StatefulSet  overdue for 1h 55m  [local-volume]
              1. Ready copies: StatefulSet/impala-executor-000 0/1.
              2. Only if ds06 is lost for good, give PVC scratch-cache-volume-impala-executor-000-0 up by
                 deleting it: the data of volume pvc-scratch is lost for good (reclaim policy Delete).
                 Kubernetes keeps the PVC until the pod is gone. Ten minutes later a run deletes the pod,
                 and the StatefulSet makes both again. The command does nothing if the node has changed
                 since this report.
                 kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- uid-ds06/Unknown/2026-01-31T01:00:00Z && echo '{"preconditions":{"uid":"uid-scratch-cache-volume-impala-executor-000-0"}}' | kubectl delete --raw /api/v1/namespaces/impala-impala01/persistentvolumeclaims/scratch-cache-volume-impala-executor-000-0 -f -
          impala-impala01/statestored-0  StatefulSet  overdue for 1h 55m  [volume-unverified]
              It is unverified what a delete would do to its data: PVC statestored: its volume pvc-gone does
              not exist.
              Risk: If a volume is on ds06, the replacement waits for that node forever.
              1. See PVC statestored, and where its volume is: its volume pvc-gone does not exist.
                 kubectl get pvc statestored -n impala-impala01 -o wide
              2. Power ds06 off or disconnect its disks, and verify that on the machine itself (console or
                 BMC), not in the cluster: anything still running there would write to the same disks.
              3. The steps to delete the pod by hand are on the page "By hand" of the documentation, under
                 "With kubectl alone".
          compute-hive01/held-0  StatefulSet  overdue for 1h 55m  [finalizers]
              It is held by finalizer example.com/backup: a controller still has work to do before the pod
              can be deleted.
              Find that controller, and have it finish. If you strip a finalizer by hand, whatever its
              controller had to clean up is left behind, unnoticed.
              1. See what set the finalizers (under managedFields, the manager of each f:finalizers), and
                 look at its log.
                 kubectl get pod held-0 -n compute-hive01 --show-managed-fields -o yaml
              2. See which finalizers are left. Once the last one is removed, the pod disappears by itself,
                 or the next run deletes it.
                 kubectl get pod held-0 -n compute-hive01 -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers

        on kosmos-cluster7: NotReady for 2h; last heartbeat unknown
          vault/web-0  StatefulSet  overdue for 1h 55m  [kosmos-leaf]
              Its node stands for the Kosmos leaf cluster cluster7 (seen: label kosmos.io/node, annotation
              kosmos-io/owned-by-cluster=cluster7, name prefix kosmos-). There, NotReady usually means that
              the link is cut: the pod is probably still running.
              Do not force-delete it: Kosmos might never stop the running pod. Once you repair the link,
              Kosmos deletes the pod: within seconds after a short outage, later after a long one. So look
              first, and repair the link when the pod may stop. Only if the leaf cluster is gone for good,
              delete the Node, not its pods. What runs there may keep running, and Kosmos recreates the Node
              only when its cluster manager restarts. After a force delete, the StatefulSet would start a
              second copy.
              1. See the node's conditions, and its kubelet's last lease.
                 kubectl describe node kosmos-cluster7
              2. See why Kosmos does not reach the leaf cluster. If kosmos-guard is not installed, install
                 it for the next time.
                 kubectl logs -n kosmos-system deployment/clustertree-cluster-manager --tail=50
              3. Look for the pod in leaf cluster cluster7: save a kubeconfig of that cluster as
                 cluster7.kubeconfig. If the link is cut from here too, look from within the leaf cluster.
                 kubectl --kubeconfig cluster7.kubeconfig get pod web-0 -n vault -o wide

        WHAT TO DO ABOUT THE NODES
          - Unless ds06 is about to come back, make sure that it is powered off: any containers still
            running there keep running alongside the pods that replace them.

        TO BE REAPED: 4
          on ds06, overdue for up to 1h 55m
            compute-hive01   huebackend-0
            impala-impala01  catalogd-0  huebackend-0
            vault            vault-0

        AFTERWARDS
          vault/vault-0: its annotation pod-reaper.io/after-reap says: 'unseal Vault: vault operator unseal'
          impala-impala01/catalogd-0: its replacement waits for a node that its volume allows: pvc-zone
          needs topology.kubernetes.io/zone In (b); its replacement may have to wait until pvc-zone is
          detached from ds06, 6 minutes after this pod is gone

        NODES NOT READY: 2 of 7
          ds06  NotReady for 2h; last heartbeat 2h ago (lease)
              4 to reap, 2 waiting, 1 left alone, 3 need you
              Volumes still attached: pvc-gone, pvc-zone.
          kosmos-cluster7  NotReady for 2h; last heartbeat unknown  1 needs you
              A leaf node, by its label kosmos.io/node, annotation kosmos-io/owned-by-cluster=cluster7, name
              prefix kosmos-.

        WAITING: 2
          compute-hive01/recent-0  StatefulSet  on ds06  overdue for 5m  [not-overdue]
              It is overdue by 5m, and stuck once it is overdue by 10m. Its grace period of 30s is cut
              short: its node fell silent before its deletion was requested.
          compute-hive01/within-grace-0  StatefulSet  on ds06  deadline in 15s  [not-overdue]
              It is within its grace period for another 15s, and stuck 10m after that.

        LEFT ALONE: 2
          compute-hive01/quiet-0  StatefulSet  on ds06  overdue for 1h 55m  [opted-out]
              The pod is opted out by pod-reaper.io/skip.
          compute-hive01/slow-0  StatefulSet  on ds01  overdue for 1h 55m  [node-ready]
              Its node is Ready: the kubelet there is stopping it; if it does not, look at that kubelet.

        NOT READ: 1
          Pod impala-impala01/odd-0: a field has an unexpected type

        pod-reaper 0.5.0. Stuck means overdue for 10m, on a node NotReady for 10m. Namespaces: all.

        AUDIT of state.json, judged at 2026-01-31 03:00Z. Nothing was changed. Exit code 3.
        NODES  ds06 NotReady for 2h · kosmos-cluster7 NotReady for 2h, its link is probably cut
        PODS   4 to be reaped · 4 need you · 2 waiting · 2 left alone · not read: 1
        FIRST  1. power off ds06, unless it is about to come back: the next run reaps its other pods, even
                  if it is still on
               2. then decide about impala-impala01/impala-executor-000-0, impala-impala01/statestored-0
               3. compute-hive01/held-0: see what set its finalizers, and repair that
               4. vault/web-0: do not delete it; look in its leaf cluster before you repair the link
               5. see what could not be read: Pod impala-impala01/odd-0
    "#]].assert_eq(&write(&report.page(), Screen::default()));
}

#[test]
fn a_run_with_every_outcome() {
    expect![[r#"
        RUN, judged at 2026-01-31 03:00Z. Exit code 3.
        NODES  ds06 NotReady for 2h
        PODS   1 changed · 1 deleted · 1 denied · 1 failed · 1 gone · 1 interrupted · 1 node-changed · 1
               node-recovered · 1 still-there · 1 unverified
        FIRST  1. see why these were not reaped: app/c-0, app/d-0, app/e-0 and 5 more
               2. power off ds06, unless it is about to come back: any containers still running there keep
                  running alongside their replacements

        WHAT TO DO ABOUT THE NODES
          - Unless ds06 is about to come back, make sure that it is powered off: any containers still
            running there keep running alongside the pods that replace them.

        REAPED: 2 of 10
          app/c-0  StatefulSet  on ds06  overdue for 1h 55m  [changed]
              Its resource version is another. Not deleted.
          app/d-0  StatefulSet  on ds06  overdue for 1h 55m  [node-recovered]
              The node was Ready again right before the delete: not deleted.
          app/e-0  StatefulSet  on ds06  overdue for 1h 55m  [node-changed]
              Another node has registered under the name. Not deleted.
          app/f-0  StatefulSet  on ds06  overdue for 1h 55m  [denied]
              The API server refused the delete: pods "f-0" is forbidden
          app/g-0  StatefulSet  on ds06  overdue for 1h 55m  [failed]
              It could not be deleted: no response within 10 s
          app/h-0  StatefulSet  on ds06  overdue for 1h 55m  [still-there]
              The API server accepted the delete, but the pod is still there: look for a finalizer on it.
          app/i-0  StatefulSet  on ds06  overdue for 1h 55m  [unverified]
              The API server accepted the delete, but the run could not verify that the pod is gone: no
              connection: connection refused
          app/j-0  StatefulSet  on ds06  overdue for 1h 55m  [interrupted]
              The run ended before this pod's turn, because of SIGTERM; the next run handles the pod.
          app/b-0  StatefulSet  on ds06  overdue for 1h 55m  [gone]
              It was already gone, or disappeared just before the delete: nothing is left to do.
          on ds06, overdue for 1h 55m
            app  a-0

        NODES NOT READY: 1 of 2
          ds06  NotReady for 2h; last heartbeat 2h ago (lease)  2 reaped, 8 not reaped

        pod-reaper 0.5.0. Stuck means overdue for 10m, on a node NotReady for 10m. Namespaces: all. No guard
        is required: RBAC alone limits what this account can delete.
    "#]]
    .assert_eq(&write(&every_outcome().page(), Screen::default()));
}

#[test]
fn a_dry_run_names_what_would_be_deleted() {
    let cluster = "
        Node ds05: {ready: 'True'}
        Node ds06: {}
        Namespace app: {}
        Pod app/a-0: {metadata: {annotations: {pod-reaper.io/after-reap: tell somebody}}}
    ";
    let objects = objects(&yaml(cluster));
    let mut settings = run(Mode::DryRun, Target::default());
    settings.namespaces.include = Some(regex::Regex::new("^app").expect("an expression"));
    settings.namespaces.exclude = Some(regex::Regex::new("-test$").expect("an expression"));
    let outcomes = [("uid-app-a-0", Outcome::WouldDelete)];
    expect![[r#"
        DRY RUN, judged at 2026-01-31 03:00Z. Nothing was changed.
        NODES  ds06 NotReady for 2h
        PODS   1 would be deleted
        FIRST  power off ds06, unless it is about to come back: any containers still running there keep
               running alongside their replacements

        WHAT TO DO ABOUT THE NODES
          - Unless ds06 is about to come back, make sure that it is powered off: any containers still
            running there keep running alongside the pods that replace them.

        TO BE REAPED: 1
          on ds06, overdue for 1h 55m
            app  a-0

        AFTERWARDS
          app/a-0: its annotation pod-reaper.io/after-reap says: 'tell somebody'

        NODES NOT READY: 1 of 2
          ds06  NotReady for 2h; last heartbeat 2h ago (lease)  1 to reap

        pod-reaper 0.5.0. Stuck means overdue for 10m, on a node NotReady for 10m. Namespaces: matching
        "^app", but not those matching "-test$".
    "#]]
    .assert_eq(&write(&report(&settings, &objects, &outcomes).page(), Screen::default()));
}

/// What must be known before the taint is set stands in front of the command, however long it is.
#[test]
fn the_step_before_a_command_is_never_cut() {
    let cluster = "
        Node ds05: {ready: 'True'}
        Node ds06: {since: 7200}
        Namespace app: {}
        Pod app/a-0: {}
        VolumeAttachment csi-1:
            spec: {attacher: rook-ceph.rbd.csi.ceph.com, nodeName: ds06, source: {persistentVolumeName: pv}}
    ";
    let report = report(&audit(), &objects(&yaml(cluster)), &[]);
    let narrow = Screen {
        colour: false,
        columns: 40,
    };
    for screen in [Screen::default(), narrow] {
        let text = write(&report.page(), screen);
        let (before, _) = text
            .split_once("kubectl get node ds06")
            .expect("the command");
        assert!(
            before.contains("driver cuts") && !text.contains("[...]"),
            "{text}"
        );
    }
}

/// The report must not suggest turning the breaker off, because that does not help if the nodes
/// could not be counted.
#[test]
fn nodes_that_could_not_be_counted_hold_everything_and_are_reported() {
    let mut objects = private_cloud();
    objects.push(json!({"kind": "Node", "metadata": {"name": "malformed", "labels": 5}}));
    let report = report(&audit(), &objects, &[]);
    let text = write(&report.page(), Screen::default());
    for wrong in [
        "--max-not-ready-percent",
        "so many nodes",
        "delete -f",
        "taint nodes",
    ] {
        assert!(!text.contains(wrong), "{text}");
    }
    let start = text
        .find("\nNOTHING IS DELETED")
        .expect("the breaker is reported");
    let end = text
        .find("\nWOULD NEED YOU")
        .expect("the pods are reported");
    expect![[r#"

        NOTHING IS DELETED (facts-unread)
          Not known: the number of NotReady nodes, which the breaker needs: a Node of the snapshot could not
          be read. 4 pods are held. Until that is known, a dead node cannot be distinguished from a live
          one. The next run tries again.
          - See what the NotReady nodes have in common:
            kubectl get nodes -o wide -L topology.kubernetes.io/zone,node.kubernetes.io/instance-type
    "#]]
    .assert_eq(&text[start..end]);
    assert_eq!(report.exit, crate::exit::Exit::Incomplete);
}

#[test]
fn an_outage_that_holds_everything_prints_no_destructive_command() {
    let objects = private_cloud_with("Unknown");
    let text = write(&report(&audit(), &objects, &[]).page(), Screen::default());
    for destroys in [
        "delete --raw",
        "delete -f",
        "taint nodes",
        "gracePeriodSeconds",
    ] {
        assert!(!text.contains(destroys), "{text}");
    }
    let start = text
        .find("\nNOTHING IS DELETED")
        .expect("the breaker is reported");
    let end = text
        .find("\nWOULD NEED YOU")
        .expect("the pods are reported");
    expect![[r#"

        NOTHING IS DELETED (mass-outage)
          No pod could start elsewhere: every other node is NotReady, cordoned, reserved for the control
          plane or a leaf node. 5 pods are held. When that many nodes fail at the same time, the cause is
          more often the API server or the network than the nodes, and their pods may all be running. What
          the nodes have in common can show what has failed: look at the network first.
          - See what the NotReady nodes have in common:
            kubectl get nodes -o wide -L topology.kubernetes.io/zone,node.kubernetes.io/instance-type
    "#]]
    .assert_eq(&text[start..end]);
}

#[test]
fn a_quiet_cluster() {
    let alive = vec![json!({"kind": "Pod", "metadata": {"name": "a"}})];
    let [first, second] = ["ds01", "ds02"].map(|name| {
        objects(&yaml(&format!(
            "Node {name}: {{ready: 'True', lease: null}}"
        )))
    });
    let quiet = [first.clone(), second, alive.clone()].concat();
    expect![[r#"
        AUDIT of state.json, judged at 2026-01-31 03:00Z. Nothing was changed.
        NODES  both are Ready
        PODS   none is stuck

        NOT SEEN
          The file has none of these: pods of other namespaces (-A), namespaces (whether they are opted
          out), leases (which show whether a node is alive). They were not saved, or there are none. This
          saves all:
          kubectl get no,ns,po,pvc,pv,leases,volumeattachments,csidrivers,sts -Ao json --show-managed-fields

        pod-reaper 0.5.0. Stuck means overdue for 10m, on a node NotReady for 10m. Namespaces: all.
    "#]]
    .assert_eq(&write(&report(&audit(), &quiet, &[]).page(), Screen::default()));
    let one = write(
        &report(&audit(), &[first, alive].concat(), &[]).page(),
        Screen::default(),
    );
    assert!(one.contains("NODES  the only node is Ready\n"), "{one}");
}

#[test]
fn lines_keep_to_the_width_except_for_a_word_that_is_longer() {
    let settings = run(
        Mode::DryRun,
        Target {
            kubeconfig: Some("/etc/a folder/config".into()),
            context: Some("prod".to_owned()),
        },
    );
    for (settings, columns) in [
        (audit(), 100),
        (settings, 100),
        (audit(), 72),
        (audit(), 40),
    ] {
        let screen = Screen::of_terminal(false, columns);
        let text = write(&report(&settings, &private_cloud(), &[]).page(), screen);
        for line in text.lines() {
            let words = line.split_whitespace().collect::<Vec<_>>();
            // A command stays on its line.
            let is_command = ["kubectl", "(", "|", "get", "--kubeconfig"]
                .iter()
                .any(|word| words.first() == Some(word));
            assert!(
                line.chars().count() <= columns || words.len() <= 2 || is_command,
                "{columns}: {line}"
            );
            assert_eq!(line, line.trim_end());
        }
    }
}

#[test]
fn a_terminal_is_filled_as_far_as_a_line_is_readable() {
    let columns = |wide| Screen::of_terminal(true, wide).columns;
    assert_eq!([columns(1), columns(72), columns(300)], [40, 72, 100]);
    assert_eq!(columns(0), 100, "some terminals do not know");
}

#[test]
fn colours_change_nothing_but_the_colour() {
    let report = report(&audit(), &private_cloud(), &[]);
    let painted = write(
        &report.page(),
        Screen {
            colour: true,
            ..Screen::default()
        },
    );
    assert!(painted.contains('\u{1b}'));
    let mut plain = String::new();
    let mut parts = painted.split('\u{1b}');
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        plain.push_str(part.split_once('m').expect("the end of an escape").1);
    }
    assert_eq!(plain, write(&report.page(), Screen::default()));
}

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

#[test]
fn what_was_taken_from_a_node_is_a_reason_to_power_it_off_that_waits_for_nothing() {
    let settings = run(Mode::Delete, Target::default());
    for (outcome, next) in [
        (
            Outcome::NodeRecovered,
            "the next run reaps its other pods, even if it is still on\nthen decide",
        ),
        (
            Outcome::Deleted,
            "power off ds06, unless it is about to come back: any containers still running there keep running alongside their replacements\nthen decide",
        ),
    ] {
        let outcomes = [("uid-vault-vault-0", outcome)];
        let report = report(&settings, &private_cloud(), &outcomes);
        let says = phrases::next(&report).join("\n");
        assert!(says.contains(next), "{says}");
    }
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
