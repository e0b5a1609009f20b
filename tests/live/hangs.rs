//! Pods that hang although their node is Ready: `explain` names the cause.

use crate::{prelude::*, support::program::program};
use std::{path::PathBuf, time::Instant};

const HERE: &str = "
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: NAME, finalizers: FINALIZERS}
spec:
  nodeName: ds01
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: 'example/main:1'}]
";

/// A pod whose program does not end before its time is over: its preStop hook sleeps until then.
const IGNORES: &str = "
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: NAME}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: GRACE
  containers: [{name: main, image: 'example/main:1', lifecycle: {preStop: {sleep: {seconds: GRACE}}}}]
";

const STATIC: &str = "
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: mirrored}
spec: {containers: [{name: main, image: 'example/main:1'}]}
";

/// `explain` of the pod, on the cluster, or on its saved state at a later moment.
fn explained(case: &Case, pod: &str, later: Option<Duration>) -> Value {
    let mut explain = program();
    explain.args(["explain", pod, "--output=json"]);
    match later {
        None => {
            explain.arg("--kubeconfig").arg(&case.kubeconfig);
        }
        Some(later) => {
            let kinds = "no,ns,po,pvc,pv,leases,volumeattachments,csidrivers,sts";
            let saved = case.kubectl(["get", kinds, "-Ao", "json", "--show-managed-fields"]);
            let file = case.dir.join("hangs.json");
            fs::write(&file, saved.stdout).unwrap();
            let now = (Timestamp::now() + later).to_string();
            explain.arg("--snapshot").arg(file).args(["--now", &now]);
        }
    }
    let output = explain.output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", shown(&output)))
}

/// The cause of the pod, and the first command of the page.
fn cause(report: &Value) -> (&str, &str) {
    let step = &report["steps"][0];
    let of_case = step["cases"][0]["commands"][0].as_str();
    let command = step["command"].as_str().or(of_case);
    (
        report["pods"][0]["cause"].as_str().unwrap_or_default(),
        command.unwrap_or_default(),
    )
}

/// A finalizer: the kubelet ends the pod, and says so by a grace period of 0. Then the kubelet hangs while its node is still
/// Ready: the container of another pod runs on, as one that nothing can kill.
#[test]
fn explain_names_why_a_pod_of_a_ready_node_stays() {
    let case = Case::empty(&["--node", "ds01", "--node", "ds02"]);
    case.until_ready_is("True", "ds01");
    let pods = [("held", "[example.com/hold]"), ("runs", "[]")];
    for (name, finalizers) in pods {
        case.apply(&HERE.replace("NAME", name).replace("FINALIZERS", finalizers));
    }
    case.until_true("both run", || {
        let pods = case.pods_on("ds01");
        pods.len() == 2 && pods.iter().all(Seen::is_running)
    });

    let held = pod_path("default", "held");
    case.delete(&held, json!({}));
    case.until_true("the kubelet has ended the pod", || {
        case.get(&held)["metadata"]["deletionGracePeriodSeconds"] == 0
    });
    let report = explained(&case, "default/held", None);
    let (code, command) = cause(&report);
    assert_eq!(code, "finalizer", "{report:#}");
    assert!(command.contains("get pod -n default held"), "{command}");

    case.stop("ds01");
    case.delete(&pod_path("default", "runs"), json!({}));
    let report = explained(&case, "default/runs", None);
    assert_eq!(cause(&report).0, "ending", "{report:#}");
    let report = explained(&case, "default/runs", Some(Duration::from_mins(10)));
    let (code, command) = cause(&report);
    assert_eq!(code, "container-runs", "{report:#}");
    assert!(command.starts_with("journalctl"), "{command}");
}

/// Checks the cause of the pod, now and twenty minutes later, each with the beginning of its first command.
#[track_caller]
fn is_explained(case: &Case, pod: &str, causes: [(&str, &str); 2]) {
    let later = [None, Some(Duration::from_mins(20))];
    for (later, (code, first)) in later.into_iter().zip(causes) {
        let report = explained(case, pod, later);
        let (found, command) = cause(&report);
        assert_eq!(found, code, "{later:?}: {report:#}");
        assert!(command.starts_with(first), "{later:?}: {command}");
    }
}

fn runs(case: &Case, node: &str, name: &str, grace: &str) -> String {
    let pod = IGNORES.replace("NAME", name).replace("NODE", node);
    case.apply(&pod.replace("GRACE", grace));
    case.until_true("it runs", || {
        let pods = case.pods_on(node);
        pods.iter().any(|pod| pod.name == name && pod.is_running())
    });
    pod_path("default", name)
}

/// A program ignores that it is to end, and its kubelet kills it in time. A kubelet was stopped while a deletion was requested: it is
/// back, and has not ended the pod; the restart that `explain` advises ends it. The mirror of a static pod cannot be deleted: the
/// kubelet makes it again.
#[test]
fn explain_names_what_a_kubelet_makes_of_a_delete() {
    let case = &Case::empty(&["--node", "ds01", "--node", "ds02", "--node", "ds03"]);
    let [ignores, lost] = [("ds01", "ignores", "15"), ("ds02", "lost", "300")]
        .map(|(node, name, grace)| runs(case, node, name, grace));

    case.delete(&ignores, json!({}));
    let log = "kubectl --kubeconfig";
    let causes = [("ending", log), ("container-runs", "journalctl")];
    is_explained(case, "default/ignores", causes);
    case.until_true("its kubelet has killed it", || {
        case.try_get(&ignores).is_none()
    });

    case.stop("ds02");
    case.until_ready_is("Unknown", "ds02");
    case.delete(&lost, json!({}));
    case.resume("ds02");
    case.until_ready_is("True", "ds02");
    let causes = [("ending", log), ("node-returned", "journalctl")];
    is_explained(case, "default/lost", causes);
    let restarted = Instant::now();
    let mut kubelet = case.restart("ds02");
    case.until_true("it is gone", || case.try_get(&lost).is_none());
    assert!(restarted.elapsed() < Duration::from_mins(2));
    kubelet.kill().unwrap();
    kubelet.wait().unwrap();

    let folders = case.dir.join("kubelets/ds03").read_dir().unwrap();
    let mut folders = folders.map(|folder| folder.unwrap().path());
    let root = folders.find(|path| path.is_dir()).unwrap();
    let mut folders = root.read_dir().unwrap().map(|it| it.unwrap().path());
    let is_of_static = |path: &PathBuf| path.display().to_string().contains("static-pods");
    let folder = folders.find(is_of_static).unwrap();
    fs::write(folder.join("mirrored.yaml"), STATIC).unwrap();
    let mirror = pod_path("default", "mirrored-ds03");
    case.until_true("the mirror is there", || case.try_get(&mirror).is_some());
    let uid = case.get(&mirror)["metadata"]["uid"].clone();
    case.stop("ds03");
    case.delete(&mirror, json!({}));
    let file = "grep -rlF -- mirrored /etc/kubernetes/manifests";
    is_explained(case, "default/mirrored-ds03", [("static-pod", file); 2]);
    case.resume("ds03");
    case.until_true("the kubelet has made it again", || {
        let mirror = case.try_get(&mirror);
        mirror.is_some_and(|mirror| mirror["metadata"]["uid"] != uid)
    });
}
