//! The commands that the report prints work when they are pasted: in time, late and twice.

use std::fs;

use serde_json::json;

use crate::{
    Run, SHORT, binary, one_dead, one_dead_of_three, run,
    scratch::{GIVE_UP, KEPT, claim_path, local_claim, stuck},
    six_nodes,
    support::{
        ControlPlane, fresh,
        objects::{annotate, make, node_becomes, node_path, pod, pod_path, str_of},
        program::{SHELLS, commands, paste, paste_into, shown},
    },
    uid, until_overdue,
};

/// Creates a `StatefulSet` pod whose PVC is on its dead node. Returns the pod's UID.
fn with_local_claim(cluster: &ControlPlane) -> String {
    one_dead_of_three(cluster);
    let pod = stuck(cluster, "dead", "db", (KEPT, "true"));
    until_overdue();
    pod
}

const CLAIM: &str = "disk-db-0";

fn is_deleting(cluster: &ControlPlane, path: &str) -> bool {
    cluster
        .try_get(path)
        .is_none_or(|object| object["metadata"]["deletionTimestamp"].is_string())
}

/// The line by which you answer, from a report in this format.
fn line(cluster: &ControlPlane, format: &str, options: &[&str]) -> String {
    let output = binary(&cluster.kubeconfig)
        .args(SHORT)
        .args(options)
        .args(["--output", format])
        .output()
        .expect("it starts");
    let report = String::from_utf8(output.stdout).expect("text");
    let from = report
        .find("kubectl annotate")
        .unwrap_or_else(|| panic!("it asks for nothing: {report}"));
    let end = report[from..].find(['\n', '<', '"']).expect("its end");
    report[from..from + end].to_owned()
}

/// Runs again some seconds later, because an answer applies only to events before it.
fn next(cluster: &ControlPlane, options: &[&str]) -> Run {
    until_overdue();
    let short = ["--reap-older-than=1s"];
    run(&cluster.kubeconfig, &[&short, options].concat())
}

#[test]
fn an_answer_that_is_pasted_in_time_is_acted_on_by_the_next_run() {
    for (shell, format) in SHELLS.into_iter().zip(["text", "html", "text"]) {
        let cluster = fresh();
        let pod = with_local_claim(&cluster);
        let answer = line(&cluster, format, &[]);
        assert!(
            answer.contains(&format!("annotate pvc {CLAIM} -n apps {GIVE_UP}=")),
            "{answer}"
        );
        // A second user pastes the line too.
        for _ in 0..2 {
            let output = paste_into(shell, &cluster, &answer);
            assert!(
                output.status.success(),
                "{shell}: {answer}\n{}",
                shown(&output)
            );
        }
        assert!(!is_deleting(&cluster, &claim_path("apps", CLAIM)));
        let run = next(&cluster, &[]);
        run.says(&pod, ("answered", Some("deleted")));
        assert!(run.pod(&pod)["answers"][0]["inert"].is_null());
        assert!(!cluster.has_pod("apps", "db-0"));
        // The controller that removes the PVC's protection finalizer does not run here.
        assert!(is_deleting(&cluster, &claim_path("apps", CLAIM)));
    }
}

#[test]
fn each_answer_lets_go_what_it_is_about() {
    let cluster = one_dead();
    let stateful = pod(&cluster, "apps/web-0: {owner: StatefulSet web}");
    let machine = pod(&cluster, "vms/vm-0: {owner: VirtualMachineInstance vm}");
    let flags = ["--manual-owner-kind=StatefulSet"];
    let before = next(&cluster, &flags);
    for (pod, reason, on) in [
        (
            &stateful,
            "owner-kind",
            "annotate pod web-0 -n apps pod-reaper.io/reap=",
        ),
        (
            &machine,
            "shared-disk",
            "annotate node dead pod-reaper.io/powered-off=",
        ),
    ] {
        before.says(pod, (reason, None));
        let answer = commands(&before, pod).pop().expect("it comes last");
        assert!(answer.contains(on), "{answer}");
        let output = paste(&cluster, &answer);
        assert!(output.status.success(), "{answer}\n{}", shown(&output));
    }
    let after = next(&cluster, &flags);
    for pod in [&stateful, &machine] {
        after.says(pod, ("answered", Some("deleted")));
    }
}

/// Changes that may have happened before or after the answer was pasted.
type Since = (&'static str, fn(&ControlPlane, &str));

#[test]
fn an_answer_of_another_failure_does_nothing_and_is_reported() {
    fn value(answer: &str) -> &str {
        let (_, rest) = answer.split_once('=').expect("a value");
        rest.split(' ').next().expect("a value")
    }
    fn back_and_gone(cluster: &ControlPlane, _: &str) {
        node_becomes(cluster, "dead", "True", "KubeletReady");
        until_overdue();
        node_becomes(cluster, "dead", "Unknown", "NodeStatusUnknown");
    }
    let cases: [Since; 5] = [
        ("the node came back, and went again", back_and_gone),
        ("the pod was replaced", |cluster, _| {
            let path = pod_path("apps", "db-0");
            cluster.delete(&path, json!({"gracePeriodSeconds": 0}));
            let again = "apps/db-0: {owner: StatefulSet db, uses: disk-db-0,
                metadata: {labels: {apps.kubernetes.io/pod-index: '0'}}}";
            pod(cluster, again);
        }),
        ("the claim was made anew", |cluster, answer| {
            let path = claim_path("apps", CLAIM);
            cluster.delete(&path, json!({}));
            cluster.merge_patch(&path, json!({"metadata": {"finalizers": null}}));
            cluster.delete("/api/v1/persistentvolumes/pv-apps-disk-db-0", json!({}));
            cluster.merge_patch(
                "/api/v1/persistentvolumes/pv-apps-disk-db-0",
                json!({"metadata": {"finalizers": null}}),
            );
            until_overdue();
            local_claim(cluster, "dead", "apps", CLAIM, (GIVE_UP, value(answer)));
        }),
        ("it was left behind by an older failure", |cluster, _| {
            let path = claim_path("apps", CLAIM);
            annotate(cluster, &path, GIVE_UP, "2020-01-01T00:00:00Z");
        }),
        ("its value has a typing error", |cluster, answer| {
            let (path, value) = (claim_path("apps", CLAIM), value(answer).replace('T', "T9"));
            annotate(cluster, &path, GIVE_UP, &value);
        }),
    ];
    for (what, since) in cases {
        let cluster = fresh();
        with_local_claim(&cluster);
        let answer = line(&cluster, "text", &[]);
        assert!(
            paste(&cluster, &answer).status.success(),
            "{what}: {answer}"
        );
        since(&cluster, &answer);
        let run = next(&cluster, &[]);
        let pod = uid(&cluster.get(&pod_path("apps", "db-0")));
        assert_eq!(
            run.reason_and_outcome(&pod),
            ("local-volume", None),
            "{what}"
        );
        assert!(!is_deleting(&cluster, &claim_path("apps", CLAIM)), "{what}");
        let notices = run.report["notices"].as_array().expect("notices");
        let notice = notices
            .iter()
            .find(|notice| notice["code"] == "answer-inert");
        let detail = str_of(&notice.expect(what)["detail"]);
        // The command in the text removes the answer.
        let withdraw = &detail[detail.find("kubectl ").expect("a command")..];
        assert!(
            paste(&cluster, withdraw).status.success(),
            "{what}: {withdraw}"
        );
        let claim = cluster.get(&claim_path("apps", CLAIM));
        assert!(
            claim["metadata"]["annotations"][GIVE_UP].is_null(),
            "{what}"
        );
    }
}

#[test]
fn an_answer_does_nothing_where_the_node_is_back_or_gone_and_needs_rights() {
    let cases: [Since; 2] = [
        ("the node is back", |cluster, _| {
            node_becomes(cluster, "dead", "True", "KubeletReady");
        }),
        ("the node is gone", |cluster, _| {
            cluster.delete(&node_path("dead"), json!({}));
        }),
    ];
    for (what, since) in cases {
        let cluster = fresh();
        with_local_claim(&cluster);
        let answer = line(&cluster, "text", &[]);
        let without_rights = paste(&cluster, &format!("{answer} --as=somebody"));
        assert!(!without_rights.status.success(), "{what}");
        assert!(
            paste(&cluster, &answer).status.success(),
            "{what}: {answer}"
        );
        since(&cluster, &answer);
        next(&cluster, &[]);
        assert!(cluster.has_pod("apps", "db-0"), "{what}");
        assert!(!is_deleting(&cluster, &claim_path("apps", CLAIM)), "{what}");
    }
}

#[test]
fn the_steps_for_finalizers_and_lost_volumes_run() {
    let cluster = fresh();
    make(
        &cluster,
        "
        Node ready: {ready: 'True'}
        Node dead: {}
        PersistentVolumeClaim apps/dangling: {volume: no-such-volume, phase: Bound}
        ",
    );
    let held = "apps/held: {metadata: {finalizers: [example.org/backup]}}";
    let held = pod(&cluster, held);
    let dangling = pod(&cluster, "apps/dangling: {uses: dangling}");
    let before = next(&cluster, &[]);

    let shown = commands(&before, &held)
        .iter()
        .map(|command| shown(&paste(&cluster, command)))
        .collect::<String>();
    assert!(shown.contains("f:finalizers"), "{shown}");
    assert!(shown.contains("[example.org/backup]"), "{shown}");

    let [see, off, go] = commands(&before, &dangling)
        .try_into()
        .expect("three steps to paste");
    let output = paste(&cluster, &see);
    assert!(String::from_utf8_lossy(&output.stdout).contains("no-such-volume"));
    for answer in [off, go] {
        assert!(paste(&cluster, &answer).status.success(), "{answer}");
    }
    let after = next(&cluster, &[]);
    after.says(&dangling, ("answered", Some("deleted")));
    assert!(!is_deleting(&cluster, &claim_path("apps", "dangling")));
}

/// The root cluster has a pod of the same name.
#[test]
fn the_way_to_a_leaf_cluster_ends_nowhere_else() {
    let cluster = six_nodes::after_an_hour();
    let path = pod_path(six_nodes::REMOTE.0, six_nodes::REMOTE.1);
    let run = run(&cluster.kubeconfig, &SHORT);
    let way = commands(&run, &uid(&cluster.get(&path)))
        .pop()
        .expect("it comes last");
    let output = paste(&cluster, &way);
    assert!(!output.status.success(), "{}", shown(&output));
    assert!(
        !shown(&output).contains(six_nodes::REMOTE.1),
        "{}",
        shown(&output)
    );

    fs::copy(&cluster.kubeconfig, cluster.dir.join("cluster7.kubeconfig")).expect("ours");
    let output = paste(&cluster, &way);
    assert!(output.status.success(), "{}", shown(&output));
    assert!(
        shown(&output).contains(six_nodes::LEAF),
        "{}",
        shown(&output)
    );
}
