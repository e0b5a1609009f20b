//! Limits and majorities on a real API server: what a run leaves, and what goes once somebody has looked.

use crate::{prelude::*, support::program::paste};

const READY: &str = "Node r1: {ready: 'True'}, Node r2: {ready: 'True'}, Node r3: {ready: 'True'}, Node r4: {ready: 'True'}, Node r5: {ready: 'True'}";

fn exists(cluster: &ControlPlane, name: &str) -> bool {
    cluster.try_get(&pod_path("apps", name)).is_some()
}

/// Confirms a node off, as its own printed line does.
fn confirm(cluster: &ControlPlane, node: &str) {
    let conditions = &cluster.get(&node_path(node))["status"]["conditions"];
    let ready = each(conditions).find(|it| it["type"] == "Ready");
    let since = str_of(&ready.expect("Ready")["lastTransitionTime"]);
    annotate(
        cluster,
        &node_path(node),
        "pod-reaper.io/confirmed-off",
        since,
    );
}

/// Four nodes fail at once: a switch, perhaps. The pods of those that somebody found off go, the others' stay.
#[test]
fn of_four_nodes_that_failed_together_those_that_are_confirmed_off_lose_their_pods() {
    let cluster = fresh();
    let nodes = ["d1", "d2", "d3", "d4"];
    let dead = nodes.map(|node| format!("Node {node}: {{}}")).join(", ");
    make(&cluster, &format!("{{{READY}, {dead}}}"));
    let uids = nodes.map(|node| {
        let described = format!("apps/{node}-0: {{node: {node}, owner: StatefulSet {node}}}");
        pod(&cluster, &described)
    });
    until_overdue();
    let held = run(&cluster.kubeconfig, &SHORT);
    held.ends(4);
    for uid in &uids {
        assert_eq!(
            held.pod(uid)["reason"],
            "failed-together",
            "{}",
            held.report
        );
    }
    confirm(&cluster, "d1");
    confirm(&cluster, "d3");
    let went_on = run(&cluster.kubeconfig, &SHORT);
    went_on.ends(4);
    assert_eq!(
        nodes.map(|node| exists(&cluster, &format!("{node}-0"))),
        [false, true, false, true],
        "{}",
        went_on.report
    );
}

/// Three nodes of a control plane whose etcd nobody sees, of which two are silent: one of them lives, since the server writes.
#[test]
fn a_majority_that_nobody_sees_keeps_its_pods() {
    let cluster = fresh();
    let server = |node: &str, ready: &str| {
        format!(
            "Node {node}: {{ready: {ready}, metadata: {{labels: {{node.kubernetes.io/microk8s-controlplane: microk8s-controlplane}}}}}}"
        )
    };
    let servers = [
        server("s1", "'True'"),
        server("s2", "Unknown"),
        server("s3", "Unknown"),
    ];
    make(&cluster, &format!("{{{READY}, {}}}", servers.join(", ")));
    let uids = ["s2", "s3"].map(|node| {
        pod(
            &cluster,
            &format!("apps/{node}-0: {{node: {node}, owner: StatefulSet {node}}}"),
        )
    });
    until_overdue();
    let run = run(&cluster.kubeconfig, &SHORT);
    for uid in &uids {
        assert_eq!(run.pod(uid)["reason"], "etcd-member", "{}", run.report);
    }
    assert!(exists(&cluster, "s2-0") && exists(&cluster, "s3-0"));
    let powers_off = |step: &Value| str_of(&step["what"]).to_lowercase().contains("power off");
    assert!(
        !each(&run.report["steps"]).any(powers_off),
        "{}",
        run.report
    );
}

/// A part of a printed line, whether the line has been carried out, and whether a second time does no harm.
type Line = (&'static str, fn(&ControlPlane) -> bool, bool);

/// The line that deletes the Node object of a member, and the one that confirms it off: in time, twice, and late.
#[test]
fn the_lines_about_a_member_change_nothing_once_it_is_back() {
    let member = "metadata: {labels: {node-role.kubernetes.io/etcd: 'true'}}";
    let is_gone = |cluster: &ControlPlane| cluster.try_get(&node_path("s2")).is_none();
    let is_confirmed = |cluster: &ControlPlane| {
        let node = cluster.try_get(&node_path("s2")).unwrap_or_default();
        node["metadata"]["annotations"]["pod-reaper.io/confirmed-off"].is_string()
    };
    let lines: [Line; 2] = [
        (" delete --raw /api/v1/nodes/s2 ", is_gone, false),
        ("node s2 pod-reaper.io/confirmed-off=", is_confirmed, true),
    ];
    for (part, is_done, again) in lines {
        let printed = || {
            let cluster = fresh();
            make(
                &cluster,
                &format!(
                    "{{{READY}, Node s1: {{ready: 'True', {member}}}, Node s2: {{{member}}}, Node s3: {{{member}}}}}"
                ),
            );
            pod(&cluster, "apps/db-0: {node: s2, owner: StatefulSet db}");
            until_overdue();
            let report = run(&cluster.kubeconfig, &SHORT).report;
            let line = all_commands(&report).find(|line| line.contains(part));
            let line = line
                .unwrap_or_else(|| panic!("no {part}: {report:#}"))
                .to_owned();
            (cluster, line)
        };
        let (cluster, line) = printed();
        assert!(!is_done(&cluster));
        let says = shown(&paste(&cluster, &line));
        assert!(is_done(&cluster), "{line}\n{says}");
        // The node is the same until the line deletes it.
        let twice = paste(&cluster, &line);
        assert_eq!(twice.status.success(), again, "{}", shown(&twice));
        let (cluster, line) = printed();
        node_becomes(&cluster, "s2", "True", "KubeletReady");
        let late = paste(&cluster, &line);
        assert!(
            !late.status.success() && !is_done(&cluster),
            "{}",
            shown(&late)
        );
    }
}

/// All workers have a taint that no pod tolerates: nothing can start, and the report names the taint.
#[test]
fn nothing_is_deleted_where_nothing_can_start() {
    let cluster = fresh();
    let taint = "spec: {taints: [{key: drbd.linbit.com/lost-quorum, effect: NoSchedule}]}";
    make(
        &cluster,
        &format!(
            "{{Node r1: {{ready: 'True', {taint}}}, Node r2: {{ready: 'True', {taint}}}, Node dead: {{}}}}"
        ),
    );
    let uid = pod(&cluster, "apps/db-0: {owner: StatefulSet db}");
    until_overdue();
    let held = run(&cluster.kubeconfig, &SHORT);
    held.ends(4);
    assert_eq!(held.pod(&uid)["reason"], "no-room", "{}", held.report);
    let names = |text: &Value| text.to_string().contains("drbd.linbit.com/lost-quorum");
    assert!(names(&held.pod(&uid)["detail"]), "{}", held.report);
    assert!(exists(&cluster, "db-0"));
}
