//! The commands that the report prints and that change something work when they are pasted in time, and change nothing when they
//! are pasted late, without permissions or into another cluster.

use crate::{
    prelude::*,
    support::program::{SHELLS, commands, paste, paste_into, pasted_into, program, succeeds},
};
use std::process::Stdio;

const CLAIM: &str = "disk-db-0";

/// Whether the PVC was deleted. The controller that removes its protection finalizer does not run here.
fn is_deleting(cluster: &ControlPlane) -> bool {
    let claim = cluster.try_get(&claim_path("apps", CLAIM));
    claim.is_none_or(|claim| claim["metadata"]["deletionTimestamp"].is_string())
}

fn is_tainted(cluster: &ControlPlane) -> bool {
    let node = cluster.try_get(&node_path("dead")).unwrap_or_default();
    let taints = node["spec"]["taints"].to_string();
    taints.contains("node.kubernetes.io/out-of-service")
}

/// Sets the out-of-service taint on the node.
fn taint(cluster: &ControlPlane) {
    let taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoSchedule";
    kubectl(cluster, &["taint", "node", "dead", taint]);
}

/// Whether the machine was confirmed off.
fn is_confirmed(cluster: &ControlPlane) -> bool {
    let node = cluster.try_get(&node_path("dead")).unwrap_or_default();
    let marks = &node["metadata"]["annotations"];
    marks["pod-reaper.io/confirmed-off"].is_string() || is_tainted(cluster)
}

fn stuck_with_a_shared_disk(cluster: &ControlPlane, node: &str) -> String {
    let stuck = format!("apps/db-0: {{node: {node}, owner: VirtualMachineInstance db}}");
    pod(cluster, &stuck)
}

/// A kind of line: a part of it, whether something of it was done, and a pod for which it is printed.
type Line = (
    &'static str,
    fn(&ControlPlane) -> bool,
    fn(&ControlPlane, &str) -> String,
);

const DELETES: Line = (" delete --raw ", is_deleting, stuck_with_disk);
const CONFIRMS: Line = (
    " taint --overwrite ",
    is_confirmed,
    stuck_with_a_shared_disk,
);

/// Returns a cluster whose dead node has such a pod, and the line that a run prints there.
fn printed((part, _, make_stuck): Line) -> (Fresh, String) {
    let cluster = one_dead();
    make_stuck(&cluster, "dead");
    until_overdue();
    let mut explain = program();
    explain
        .args(["explain", "apps/db-0", "--output=json"])
        .args(SHORT)
        .arg("--kubeconfig")
        .arg(&cluster.kubeconfig);
    let said = explain.output().expect("it starts").stdout;
    let report: Value = serde_json::from_slice(&said).expect("a report");
    let line = all_commands(&report).find(|line| line.contains(part));
    let line = line.unwrap_or_else(|| panic!("no {part}: {report:#}"));
    (cluster, line.to_owned())
}

#[test]
fn a_line_that_is_pasted_in_time_does_what_it_says() {
    for shell in SHELLS {
        let (cluster, text) = printed(DELETES);
        assert!(!is_deleting(&cluster), "{text}");
        // Somebody else pastes the line too.
        let outputs = [(); 2].map(|()| paste_into(shell, &cluster, &text));
        let says = shown(&outputs[0]);
        assert!(outputs[0].status.success(), "{shell}: {text}\n{says}");
        assert!(is_deleting(&cluster), "{shell}: {text}\n{says}");
    }
}

/// The taint stands for a minute, and is gone once the line has ended, also if somebody else pastes the line meanwhile.
#[test]
fn a_line_that_confirms_a_machine_off_takes_its_taint_away() {
    thread::scope(|scope| {
        for shell in SHELLS {
            scope.spawn(move || {
                let (cluster, text) = printed(CONFIRMS);
                assert!(!is_confirmed(&cluster), "{text}");
                let pasted = [(); 2].map(|()| {
                    let mut shell = pasted_into(shell, &cluster, &text);
                    let shell = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
                    until("the taint is set", || is_tainted(&cluster));
                    shell.expect("it starts")
                });
                let ended = pasted.map(|shell| end_of(shell, Duration::from_mins(10)));
                let says = ended.each_ref().map(shown);
                assert!(ended[0].status.success(), "{shell}: {text}\n{says:?}");
                assert!(!is_tainted(&cluster), "{shell}: {text}\n{says:?}");
                assert!(is_confirmed(&cluster), "{shell}: {text}\n{says:?}");
            });
        }
    });
}

/// The line that takes a left taint away from a Ready node, in time and twice. While the node is NotReady again, or was meanwhile, the
/// taint may be somebody's word about this outage.
#[test]
fn a_line_takes_a_left_taint_away_and_refuses_late_or_elsewhere() {
    // The taint of a Ready node is seen by a run if an earlier one has noted the node.
    let back_with_taint = || {
        let cluster = one_dead();
        kubectl(&cluster, &["create", "namespace", "pod-reaper"]);
        kubectl(
            &cluster,
            &["apply", "-f", &folder("cronjob/base/rbac.yaml")],
        );
        taint(&cluster);
        run(&cluster.kubeconfig, &SHORT).is_whole();
        node_becomes(&cluster, "dead", "True", "KubeletReady");
        cluster
    };
    for shell in SHELLS {
        let (cluster, other) = (back_with_taint(), back_with_taint());
        let judged = run(&cluster.kubeconfig, &SHORT);
        let mut lines = all_commands(&judged.report);
        let line = lines.find(|line| line.ends_with("node.kubernetes.io/out-of-service-"));
        let line = line.unwrap_or_else(|| panic!("{:#}", judged.report));
        let refuses = |on: &ControlPlane, line: &str, what: &str| {
            let output = paste_into(shell, on, line);
            let says = shown(&output);
            assert!(!output.status.success(), "{shell}, {what}: {says}");
            assert!(says.contains("Nothing was done"), "{shell}, {what}: {says}");
            assert!(is_tainted(on), "{shell}, {what}: {says}");
        };
        let path = |cluster: &ControlPlane| cluster.kubeconfig.display().to_string();
        let elsewhere = line.replace(&path(&cluster), &path(&other));
        assert_ne!(elsewhere, line);
        refuses(&other, &elsewhere, "elsewhere");
        let without = line.replace("kubectl ", "kubectl --as=somebody ");
        refuses(&cluster, &without, "without permissions");

        succeeds(&paste_into(shell, &cluster, line));
        assert!(!is_tainted(&cluster), "{shell}");
        paste_into(shell, &cluster, line);
        assert!(!is_tainted(&cluster), "{shell}, twice");

        taint(&cluster);
        node_becomes(&cluster, "dead", "Unknown", "NodeStatusUnknown");
        refuses(&cluster, line, "down again");
        // The condition has whole seconds.
        until_overdue();
        node_becomes(&cluster, "dead", "True", "KubeletReady");
        refuses(&cluster, line, "back again");
    }
}

/// For ten minutes the pod of a deleted PVC stays, so that the data can still be kept.
#[test]
fn a_line_that_is_pasted_late_or_without_rights_or_elsewhere_changes_nothing() {
    let came_back = |cluster: &ControlPlane| {
        node_becomes(cluster, "dead", "True", "KubeletReady");
    };
    let went_again = |cluster: &ControlPlane| {
        came_back(cluster);
        until_overdue();
        node_becomes(cluster, "dead", "Unknown", "NodeStatusUnknown");
    };
    for line in [DELETES, CONFIRMS] {
        let (_, is_done, make_stuck) = line;
        let refuses = |cluster: &ControlPlane, text: &str, what: &str| {
            for shell in SHELLS {
                let output = paste_into(shell, cluster, text);
                let says = shown(&output);
                assert!(!output.status.success(), "{shell}, {what}: {says}");
                assert!(!is_done(cluster), "{shell}, {what}: {says}");
                assert!(says.contains("Nothing was done"), "{shell}, {what}: {says}");
            }
        };
        for since in [&came_back as &dyn Fn(&ControlPlane), &went_again] {
            let (cluster, text) = printed(line);
            let without = text.replace("kubectl ", "kubectl --as=somebody ");
            refuses(&cluster, &without, "without permissions");
            since(&cluster);
            refuses(&cluster, &text, "late");
        }
        // The line names the kubeconfig. Its context may have changed to a cluster with a node, a pod and a PVC of the same names.
        let (cluster, text) = printed(line);
        let other = one_dead();
        make_stuck(&other, "dead");
        let path = |cluster: &ControlPlane| cluster.kubeconfig.display().to_string();
        let elsewhere = text.replace(&path(&cluster), &path(&other));
        assert_ne!(elsewhere, text);
        refuses(&other, &elsewhere, "elsewhere");
        assert!(!is_done(&cluster), "elsewhere");
    }
}

/// An endpoint that accepts connections and does not respond. kubectl asks five times which kinds the server has, for 32 s each if the
/// line gives no limit.
#[test]
fn a_line_that_gets_no_response_ends_and_says_so() {
    let (cluster, text) = printed(CONFIRMS);
    let mute = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = mute.local_addr().expect("it is bound");
    let kubeconfig = cluster.dir.join("mute.kubeconfig");
    let server = json!({"server": format!("http://{address}")});
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "mute",
        "clusters": [{"name": "mute", "cluster": server}],
        "contexts": [{"name": "mute", "context": {"cluster": "mute", "user": ""}}],
    });
    fs::write(&kubeconfig, config.to_string()).expect("the folder is ours");
    let path = |file: &Path| file.display().to_string();
    let muted = text.replace(&path(&cluster.kubeconfig), &path(&kubeconfig));
    assert_ne!(muted, text);
    let started = Instant::now();
    let output = paste(&cluster, &muted);
    let (says, took) = (shown(&output), started.elapsed());
    assert!(!output.status.success(), "{says}");
    assert!(says.contains("Nothing was done"), "{says}");
    assert!(says.contains("Client.Timeout exceeded"), "{says}");
    assert!(took < Duration::from_secs(100), "{took:?}: {says}");
}

#[test]
fn a_line_deletes_no_claim_that_was_made_anew() {
    let (cluster, text) = printed(DELETES);
    let gone = json!({"metadata": {"finalizers": null}});
    for path in [
        claim_path("apps", CLAIM),
        "/api/v1/persistentvolumes/pv-apps-disk-db-0".to_owned(),
    ] {
        cluster.delete(&path, json!({}));
        cluster.merge_patch(&path, gone.clone());
    }
    crate::local_claim(&cluster, "dead", "apps", CLAIM);
    let output = paste(&cluster, &text);
    assert!(!output.status.success(), "{}", shown(&output));
    assert!(!is_deleting(&cluster));
}

/// A PVC that was deleted before the node failed: the line only ever keeps its data, in time, late and twice.
#[test]
fn a_line_keeps_the_volume_of_a_deleted_claim() {
    let cluster = one_dead();
    let uid = stuck_with_disk(&cluster, "dead");
    cluster.delete(&claim_path("apps", CLAIM), json!({}));
    node_becomes(&cluster, "dead", "Unknown", "NodeStatusUnknown");
    until_overdue();
    let judged = run(&cluster.kubeconfig, &SHORT);
    let lines = commands(&judged, &uid);
    let line = lines.iter().find(|line| line.contains(" patch pv "));
    let line = line.unwrap_or_else(|| panic!("{:#}", judged.report));
    for _ in 0..2 {
        succeeds(&paste(&cluster, line));
        let volume = cluster.get("/api/v1/persistentvolumes/pv-apps-disk-db-0");
        assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Retain");
    }
}
