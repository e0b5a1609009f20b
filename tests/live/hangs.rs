//! Pods that hang although their node is Ready: `explain` names the cause.

use crate::{prelude::*, support::program::program};

const HERE: &str = "
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: NAME, finalizers: FINALIZERS}
spec:
  nodeName: ds01
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: 'example/main:1'}]
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
