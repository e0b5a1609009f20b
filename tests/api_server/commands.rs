//! The commands that the report prints work when they are pasted.

use serde_json::{Value, json};

use crate::{
    SHORT, binary, run, six_nodes,
    support::{
        fresh,
        objects::{Node, Pod, claim, pod_path},
        program::{commands, paste, shown},
    },
    uid, until_overdue,
};

#[test]
fn the_steps_for_a_local_volume_free_the_pod_and_its_claim() {
    let cluster = fresh();
    six_nodes::failed(&cluster);
    let pod = pod_path(six_nodes::LOCAL.0, six_nodes::LOCAL.1);
    let claim = "/api/v1/namespaces/impala-impala01/persistentvolumeclaims/scratch-cache-volume-impala-executor-000-0";
    let judged = uid(&cluster.get(&pod));
    let run = run(&cluster.kubeconfig, &SHORT);
    let risk = run.pod(&judged)["risk"].as_str().expect("a risk");
    assert!(risk.contains("lost for good (policy Delete)"), "{risk}");
    for command in commands(&run, &judged) {
        let output = paste(&cluster, &command);
        assert!(output.status.success(), "{command}\n{}", shown(&output));
    }
    assert!(cluster.try_get(&pod).is_none());
    // The controller that removes its protection finalizer does not run here.
    let given_up =
        cluster.try_get(claim).is_none_or(|claim| claim["metadata"]["deletionTimestamp"].is_string());
    assert!(given_up);
}

#[test]
fn the_steps_for_a_local_volume_do_not_hit_namesakes() {
    let cluster = fresh();
    six_nodes::failed(&cluster);
    let path = pod_path(six_nodes::LOCAL.0, six_nodes::LOCAL.1);
    let judged = uid(&cluster.get(&path));
    let run = run(&cluster.kubeconfig, &SHORT);
    // Another person was faster: a new pod and a new claim have the names by now.
    cluster.delete(&path, json!({"gracePeriodSeconds": 0}));
    let claims = "/api/v1/namespaces/impala-impala01/persistentvolumeclaims";
    let scratch = format!("{claims}/scratch-cache-volume-impala-executor-000-0");
    cluster.delete(&scratch, json!({}));
    cluster.merge_patch(&scratch, json!({"metadata": {"finalizers": null}}));
    claim(&cluster, six_nodes::LOCAL.0, "scratch-cache-volume-impala-executor-000-0", None, "Pending");
    Pod::on("ds01", six_nodes::LOCAL.0, six_nodes::LOCAL.1).create(&cluster);
    let commands = commands(&run, &judged);
    for command in commands.iter().filter(|command| command.contains("delete")) {
        let output = paste(&cluster, command);
        assert!(!output.status.success(), "{command}");
        assert!(shown(&output).contains("does not match the UID"), "{}", shown(&output));
    }
    for path in [&path, &scratch] {
        assert_eq!(cluster.get(path)["metadata"]["deletionTimestamp"], Value::Null);
    }
}

#[test]
fn the_steps_for_finalizers_and_unverified_volumes_run() {
    let cluster = fresh();
    Node::ready("ready").create(&cluster);
    Node::not_ready("dead", 3600).create(&cluster);
    let held = Pod::on("dead", "apps", "held").finalizer("example.org/backup").terminating(&cluster, 1);
    claim(&cluster, "apps", "dangling", Some("no-such-volume"), "Bound");
    let dangling = Pod::on("dead", "apps", "dangling").claim("dangling").terminating(&cluster, 1);
    until_overdue();
    let run = run(&cluster.kubeconfig, &SHORT);

    let shown = commands(&run, &uid(&held))
        .iter()
        .map(|command| shown(&paste(&cluster, command)))
        .collect::<String>();
    assert!(shown.contains("f:finalizers"), "{shown}");
    assert!(shown.contains("[\"example.org/backup\"]"), "{shown}");

    let [see, force] = commands(&run, &uid(&dangling)).try_into().expect("two steps to paste");
    let output = paste(&cluster, &see);
    assert!(String::from_utf8_lossy(&output.stdout).contains("no-such-volume"));
    assert!(paste(&cluster, &force).status.success());
    assert!(cluster.try_get(&pod_path("apps", "dangling")).is_none());
}

/// Pastes the lines of the text report, which are broken to its width.
#[test]
fn the_text_report_can_be_pasted_line_by_line() {
    let cluster = fresh();
    six_nodes::failed(&cluster);
    let path = pod_path(six_nodes::LOCAL.0, six_nodes::LOCAL.1);
    let output = binary(&cluster.kubeconfig).args(SHORT).output().expect("it starts");
    let text = String::from_utf8(output.stdout).expect("text");
    let report = text.split_once("impala-executor-000-0").expect("the pod").1;
    // The commands between the explanations, up to the next pod.
    let (mut script, mut goes_on) = (String::new(), false);
    for line in report.lines().skip(1).take_while(|line| line.starts_with("      ")) {
        if goes_on || ["echo", "kubectl"].iter().any(|word| line.trim_start().starts_with(word)) {
            script += &format!("{line}\n");
            goes_on = line.ends_with('\\');
        }
    }
    assert_eq!(script.matches("--raw").count(), 2, "{text}");
    let output = paste(&cluster, &script);
    assert!(output.status.success(), "{script}\n{}", shown(&output));
    assert!(cluster.try_get(&path).is_none());
}
