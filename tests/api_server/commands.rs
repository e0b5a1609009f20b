//! The commands that the report prints work when they are pasted.

use std::fs;

use serde_json::{Value, json};

use crate::{
    Run, SHORT, binary, run, six_nodes,
    support::{
        ControlPlane, fresh,
        objects::{Node, Pod, Volume, annotate, claim, node_becomes, node_path, pod_path},
        program::{SHELLS, commands, paste, paste_into, shown},
    },
    uid, until_overdue,
};

const SCRATCH: &str = "scratch-cache-volume-impala-executor-000-0";

/// The six nodes after the failure, and the executor's path, its claim's path and its UID.
fn failed(cluster: &ControlPlane) -> (String, String, String) {
    six_nodes::failed(cluster);
    let pod = pod_path(six_nodes::LOCAL.0, six_nodes::LOCAL.1);
    let claim = format!(
        "/api/v1/namespaces/{}/persistentvolumeclaims/{SCRATCH}",
        six_nodes::LOCAL.0
    );
    let judged = uid(&cluster.get(&pod));
    (pod, claim, judged)
}

fn deleting(cluster: &ControlPlane, path: &str) -> bool {
    cluster
        .try_get(path)
        .is_none_or(|object| object["metadata"]["deletionTimestamp"].is_string())
}

/// The one command of a pod that destroys.
fn destroys(run: &Run, uid: &str) -> String {
    let mut all = commands(run, uid);
    all.retain(|command| command.contains("delete"));
    let [command] = all.try_into().expect("one");
    command
}

/// In each shell that people paste into.
#[test]
fn the_command_for_a_local_volume_frees_the_pod_and_its_claim_once() {
    for shell in SHELLS {
        let cluster = fresh();
        let (pod, claim, judged) = failed(&cluster);
        let run = run(&cluster.kubeconfig, &SHORT);
        let risk = run.pod(&judged)["risk"].as_str().expect("a risk");
        assert!(risk.contains("lost for good (policy Delete)"), "{risk}");
        let command = destroys(&run, &judged);
        let output = paste_into(shell, &cluster, &command);
        assert!(
            output.status.success(),
            "{shell}: {command}\n{}",
            shown(&output)
        );
        assert!(shown(&output).contains("Force-deleted impala-impala01/impala-executor-000-0."));
        assert!(cluster.try_get(&pod).is_none());
        // The controller that removes its protection finalizer does not run here.
        assert!(deleting(&cluster, &claim));
        // Another person pastes it too, and the StatefulSet was faster.
        cluster.merge_patch(&claim, json!({"metadata": {"finalizers": null}}));
        self::claim(&cluster, six_nodes::LOCAL.0, SCRATCH, None, "Pending");
        Pod::on("ds01", six_nodes::LOCAL.0, six_nodes::LOCAL.1).create(&cluster);
        stops(shell, &cluster, &command);
        assert!(
            !deleting(&cluster, &pod) && !deleting(&cluster, &claim),
            "{shell}"
        );
    }
}

/// Pastes a command that has to do nothing, and to say so.
#[track_caller]
fn stops(shell: &str, cluster: &ControlPlane, command: &str) {
    let output = paste_into(shell, cluster, command);
    assert!(!output.status.success(), "{shell}: {command}");
    assert!(
        shown(&output).contains("Stopped at impala-executor-000-0: it or ds06 has changed, or"),
        "{}",
        shown(&output)
    );
}

/// What may have happened since the report was written.
type Since = (&'static str, fn(&ControlPlane, &str));

#[test]
fn the_command_for_a_local_volume_does_nothing_late() {
    let cases: [Since; 6] = [
        (
            "the node's kubelet reports again, and is not ready yet",
            |cluster, _| {
                node_becomes(cluster, "ds06", "False", "KubeletNotReady");
            },
        ),
        (
            "the node is back, the old pod still stands",
            |cluster, _| {
                node_becomes(cluster, "ds06", "True", "KubeletReady");
            },
        ),
        (
            "the node is back, and a new pod runs there on the same claim",
            |cluster, pod| {
                cluster.delete(pod, json!({"gracePeriodSeconds": 0}));
                node_becomes(cluster, "ds06", "True", "KubeletReady");
                Pod::on("ds06", six_nodes::LOCAL.0, six_nodes::LOCAL.1)
                    .claim(SCRATCH)
                    .create(cluster);
            },
        ),
        ("the node came back, and went again", |cluster, pod| {
            cluster.delete(pod, json!({"gracePeriodSeconds": 0}));
            Pod::on("ds06", six_nodes::LOCAL.0, six_nodes::LOCAL.1)
                .claim(SCRATCH)
                .terminating(cluster, 1);
        }),
        ("the pod has changed", |cluster, pod| {
            annotate(cluster, pod, "keep", "it");
        }),
        ("the node is gone", |cluster, _| {
            cluster.delete(&node_path("ds06"), json!({}));
        }),
    ];
    for (what, since) in cases {
        let cluster = fresh();
        let (pod, claim, judged) = failed(&cluster);
        let command = destroys(&run(&cluster.kubeconfig, &SHORT), &judged);
        since(&cluster, &pod);
        let before = cluster.get(&pod)["metadata"]["uid"].clone();
        stops("sh", &cluster, &command);
        assert!(!deleting(&cluster, &claim), "{what}");
        assert_eq!(cluster.get(&pod)["metadata"]["uid"], before, "{what}");
    }
}

/// Nothing recreates such a claim: its manifest is kept, and a person recreates it from that.
#[test]
fn a_claim_outside_a_statefulsets_templates_is_kept_as_a_manifest() {
    let cluster = fresh();
    Node::ready("ready").create(&cluster);
    Node::not_ready("ds06", 3600).create(&cluster);
    Volume::local("disk")
        .on_node("ds06")
        .reclaim("Delete")
        .claimed_by("apps", "data")
        .create(&cluster);
    let pod = Pod::on("ds06", "apps", "web")
        .owned_by("ReplicaSet", "web")
        .claim("data")
        .terminating(&cluster, 1);
    until_overdue();
    let run = run(&cluster.kubeconfig, &SHORT);
    let path = "/api/v1/namespaces/apps/persistentvolumeclaims/data";
    annotate(&cluster, path, "volume.kubernetes.io/selected-node", "ds06");
    annotate(&cluster, path, "example.org/backup", "daily");
    let before = cluster.get(path);
    let [keep, finish, create, see] = commands(&run, &uid(&pod))
        .try_into()
        .expect("four steps to paste");
    for command in [&keep, &finish] {
        let output = paste(&cluster, command);
        assert!(output.status.success(), "{command}\n{}", shown(&output));
    }
    cluster.merge_patch(path, json!({"metadata": {"finalizers": null}}));
    // Pasted once more, when there is nothing to keep.
    assert!(!paste(&cluster, &keep).status.success());
    for command in [&create, &see] {
        let output = paste(&cluster, command);
        assert!(output.status.success(), "{command}\n{}", shown(&output));
    }
    let after = cluster.get(path);
    assert_ne!(uid(&after), uid(&before));
    assert_eq!(after["spec"]["resources"], before["spec"]["resources"]);
    assert_eq!(after["spec"]["volumeName"], Value::Null);
    assert_eq!(
        after["metadata"]["annotations"],
        json!({"example.org/backup": "daily"})
    );
}

#[test]
fn a_claim_that_another_pod_uses_gets_no_command() {
    let cluster = fresh();
    Node::ready("ready").create(&cluster);
    Node::not_ready("ds06", 3600).create(&cluster);
    Volume::local("disk")
        .on_node("ds06")
        .claimed_by("apps", "data")
        .create(&cluster);
    let pod = Pod::on("ds06", "apps", "db-0")
        .owned_by("StatefulSet", "db")
        .claim("data")
        .terminating(&cluster, 1);
    Pod::on("ds06", "apps", "backup")
        .claim("data")
        .create(&cluster);
    until_overdue();
    let run = run(&cluster.kubeconfig, &SHORT);
    assert_eq!(run.reason_and_outcome(&uid(&pod)), ("local-volume", None));
    let [see] = commands(&run, &uid(&pod)).try_into().expect("one");
    assert!(
        run.pod(&uid(&pod))["steps"][0]["what"]
            .as_str()
            .expect("a step")
            .contains("is also used by backup")
    );
    assert!(shown(&paste(&cluster, &see)).contains("backup"), "{see}");
}

#[test]
fn the_steps_for_finalizers_and_unverified_volumes_run() {
    let cluster = fresh();
    Node::ready("ready").create(&cluster);
    Node::not_ready("dead", 3600).create(&cluster);
    let held = Pod::on("dead", "apps", "held")
        .finalizer("example.org/backup")
        .terminating(&cluster, 1);
    claim(
        &cluster,
        "apps",
        "dangling",
        Some("no-such-volume"),
        "Bound",
    );
    let dangling = Pod::on("dead", "apps", "dangling")
        .claim("dangling")
        .terminating(&cluster, 1);
    until_overdue();
    let run = run(&cluster.kubeconfig, &SHORT);

    let shown = commands(&run, &uid(&held))
        .iter()
        .map(|command| shown(&paste(&cluster, command)))
        .collect::<String>();
    assert!(shown.contains("f:finalizers"), "{shown}");
    assert!(shown.contains("[example.org/backup]"), "{shown}");

    let [see, force] = commands(&run, &uid(&dangling))
        .try_into()
        .expect("two steps to paste");
    let output = paste(&cluster, &see);
    assert!(String::from_utf8_lossy(&output.stdout).contains("no-such-volume"));
    assert!(paste(&cluster, &force).status.success());
    assert!(cluster.try_get(&pod_path("apps", "dangling")).is_none());
}

/// With an empty kubeconfig a kubectl inside a pod asks the cluster of that pod, which has a namesake.
#[test]
fn the_way_to_a_leaf_cluster_ends_nowhere_else_and_its_credentials_are_private() {
    let cluster = fresh();
    six_nodes::failed(&cluster);
    let path = pod_path(six_nodes::REMOTE.0, six_nodes::REMOTE.1);
    let run = run(&cluster.kubeconfig, &SHORT);
    let way = commands(&run, &uid(&cluster.get(&path)))
        .pop()
        .expect("it comes last");
    // An interactive zsh runs parts of a comment.
    assert!(
        way.lines().all(|line| !line.trim_start().starts_with('#')),
        "{way}"
    );
    let credentials = format!("base64 {}", cluster.kubeconfig.display());
    for shell in SHELLS {
        for (get, ends_there) in [(credentials.as_str(), true), ("false", false), (":", false)] {
            let around = format!(
                "umask 0; mkdir -p creds; export TMPDIR=$PWD/creds
                kubectl() {{ ls -l creds >&2; echo \"asked: $*\" >&2
                case \"$*\" in *clusters.kosmos.io*) {get} ;; *) command kubectl \"$@\" ;; esac; }}\n"
            );
            let output = paste_into(shell, &cluster, &format!("{around}{way}"));
            let shown = shown(&output);
            assert_eq!(
                output.status.success(),
                ends_there,
                "{shell}, {get}: {shown}"
            );
            assert_eq!(
                shown.contains("asked: get pod"),
                ends_there,
                "{shell}, {get}: {shown}"
            );
            assert_eq!(
                shown.contains(six_nodes::LEAF),
                ends_there,
                "{shell}, {get}: {shown}"
            );
            assert!(
                shown.contains("-rw------- ") && !shown.contains("-rw-r"),
                "{shell}, {get}: {shown}"
            );
            assert_eq!(
                fs::read_dir(cluster.dir.join("creds"))
                    .expect("ours")
                    .count(),
                0,
                "{shell}, {get}"
            );
        }
    }
}

/// Pastes the lines of the text report, which are broken to its width.
#[test]
fn the_text_report_can_be_pasted_line_by_line() {
    let cluster = fresh();
    six_nodes::failed(&cluster);
    let path = pod_path(six_nodes::LOCAL.0, six_nodes::LOCAL.1);
    let script = script(&cluster, "text");
    let output = paste(&cluster, &script);
    assert!(output.status.success(), "{script}\n{}", shown(&output));
    assert!(cluster.try_get(&path).is_none());
}

/// One that went while the other did not would be lost for nothing.
#[test]
fn no_claim_is_given_up_where_another_of_the_pod_cannot_be() {
    let cluster = fresh();
    Node::ready("ready").create(&cluster);
    Node::not_ready("ds06", 3600).create(&cluster);
    for claim in ["data-db-0", "log-db-0"] {
        Volume::local(claim)
            .on_node("ds06")
            .claimed_by("apps", claim)
            .create(&cluster);
    }
    let pod = Pod::on("ds06", "apps", "db-0").owned_by("StatefulSet", "db");
    let pod = pod
        .claim("data-db-0")
        .claim("log-db-0")
        .terminating(&cluster, 1);
    until_overdue();
    let command = destroys(&run(&cluster.kubeconfig, &SHORT), &uid(&pod));
    // Somebody recreated it.
    let path = |claim| format!("/api/v1/namespaces/apps/persistentvolumeclaims/{claim}");
    cluster.delete(&path("log-db-0"), json!({}));
    cluster.merge_patch(&path("log-db-0"), json!({"metadata": {"finalizers": null}}));
    claim(&cluster, "apps", "log-db-0", None, "Pending");
    let output = paste(&cluster, &command);
    assert!(
        !output.status.success() && !shown(&output).contains("Gave up"),
        "{}",
        shown(&output)
    );
    for claim in ["data-db-0", "log-db-0"] {
        assert!(!deleting(&cluster, &path(claim)), "{claim}");
    }
    assert!(cluster.try_get(&pod_path("apps", "db-0")).is_some());
}

/// The executors on one dead node, with a claim each.
const EXECUTORS: [&str; 3] = ["executor-0", "executor-1", "executor-2"];

/// Their paths and those of their claims, after their node's failure.
fn executors(cluster: &ControlPlane) -> Vec<(String, String)> {
    Node::ready("ready").create(cluster);
    Node::not_ready("ds06", 3600).create(cluster);
    for name in EXECUTORS {
        let scratch = format!("scratch-{name}");
        Volume::local(&format!("disk-{name}"))
            .on_node("ds06")
            .claimed_by("impala", &scratch)
            .create(cluster);
        Pod::on("ds06", "impala", name)
            .owned_by("StatefulSet", "executor")
            .claim(&scratch)
            .terminating(cluster, 1);
    }
    until_overdue();
    let claim = |name| format!("/api/v1/namespaces/impala/persistentvolumeclaims/scratch-{name}");
    EXECUTORS
        .map(|name| (pod_path("impala", name), claim(name)))
        .into()
}

/// The one script of a report in this format.
fn script(cluster: &ControlPlane, format: &str) -> String {
    let output = binary(&cluster.kubeconfig)
        .args(SHORT)
        .args(["--output", format])
        .output()
        .expect("it starts");
    let mut report = String::from_utf8(output.stdout).expect("text");
    if format == "html" {
        for (entity, letter) in [
            ("&quot;", "\""),
            ("&gt;", ">"),
            ("&lt;", "<"),
            ("&amp;", "&"),
        ] {
            report = report.replace(entity, letter);
        }
        report = report.replace("<code>", "\n").replace("</code>", "\n");
    }
    let lines = report
        .lines()
        .skip_while(|line| line.trim() != "( export KUBERC=off");
    let mut script = String::new();
    for line in lines {
        script += &format!("{line}\n");
        if line.trim() == "[ $failed = 0 ] )" {
            return script;
        }
    }
    panic!("no script: {report}")
}

#[test]
fn pods_that_share_reason_namespace_and_node_share_one_script() {
    for (shell, format) in SHELLS.into_iter().zip(["text", "markdown", "html"]) {
        let cluster = fresh();
        let executors = executors(&cluster);
        let script = script(&cluster, format);
        let output = paste_into(shell, &cluster, &script);
        assert!(
            output.status.success(),
            "{shell}: {script}\n{}",
            shown(&output)
        );
        for (name, (pod, claim)) in EXECUTORS.iter().zip(&executors) {
            assert!(
                shown(&output).contains(&format!("Force-deleted impala/{name}.")),
                "{}",
                shown(&output)
            );
            assert!(
                cluster.try_get(pod).is_none() && deleting(&cluster, claim),
                "{name}"
            );
        }
        // Pasted once more, when the StatefulSet was faster.
        for (name, (_, claim)) in EXECUTORS.iter().zip(&executors) {
            cluster.merge_patch(claim, json!({"metadata": {"finalizers": null}}));
            self::claim(
                &cluster,
                "impala",
                &format!("scratch-{name}"),
                None,
                "Pending",
            );
            Pod::on("ready", "impala", name)
                .claim(&format!("scratch-{name}"))
                .create(&cluster);
        }
        let output = paste_into(shell, &cluster, &script);
        assert!(!output.status.success(), "{shell}: {}", shown(&output));
        assert_eq!(
            shown(&output).matches("Stopped at executor-").count(),
            3,
            "{}",
            shown(&output)
        );
        for (pod, claim) in &executors {
            assert!(
                !deleting(&cluster, pod) && !deleting(&cluster, claim),
                "{shell}"
            );
        }
    }
}

#[test]
fn the_script_for_several_pods_leaves_what_has_changed_and_says_so() {
    for shell in SHELLS {
        let cluster = fresh();
        let executors = executors(&cluster);
        let script = script(&cluster, "text");
        annotate(&cluster, &executors[1].0, "keep", "it");
        let output = paste_into(shell, &cluster, &script);
        assert!(!output.status.success(), "{shell}: {}", shown(&output));
        assert!(
            shown(&output).contains("Stopped at executor-1: it or ds06 has changed, or"),
            "{}",
            shown(&output)
        );
        assert!(cluster.try_get(&executors[1].0).is_some() && !deleting(&cluster, &executors[1].1));
        for (pod, claim) in [&executors[0], &executors[2]] {
            assert!(
                cluster.try_get(pod).is_none() && deleting(&cluster, claim),
                "{shell}"
            );
        }
    }
}

#[test]
fn the_script_for_several_pods_does_nothing_once_their_node_is_back() {
    let cluster = fresh();
    let executors = executors(&cluster);
    let script = script(&cluster, "text");
    node_becomes(&cluster, "ds06", "True", "KubeletReady");
    let output = paste(&cluster, &script);
    assert!(!output.status.success(), "{}", shown(&output));
    assert_eq!(
        shown(&output).matches("Stopped at executor-").count(),
        3,
        "{}",
        shown(&output)
    );
    for (pod, claim) in &executors {
        assert!(cluster.try_get(pod).is_some() && !deleting(&cluster, claim));
    }
}
