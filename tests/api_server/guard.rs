//! The guard stops who has the account's token, and more rights than the role gives; what the program sends it lets
//! through (`manifests` has whole runs under it).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{
    ControlPlane, fresh,
    installed::{ACCOUNT, DEFAULT, as_account, install, may, until},
    objects::{Node, Pod, pod_path},
};

const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";
const POLICY: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/pod-reaper-guard";

/// Every verb on pods, so that nothing but the guard stands in the way.
fn give_all_rights_on_pods(cluster: &ControlPlane) {
    let group = "rbac.authorization.k8s.io";
    let api_version = format!("{group}/v1");
    let meta = json!({"name": "stolen"});
    let role = json!({
        "apiVersion": api_version, "kind": "ClusterRole", "metadata": meta,
        "rules": [{"apiGroups": [""], "resources": ["pods", "pods/*"], "verbs": ["*"]}],
    });
    cluster.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", role);
    let binding = json!({
        "apiVersion": api_version, "kind": "ClusterRoleBinding", "metadata": meta,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "stolen"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": ACCOUNT}],
    });
    cluster.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding);
    until("the rights are there", || may(cluster, "deletecollection", "", "pods", ""));
}

/// The patch of the program's own, for this pod as it is, with `change` made to it.
fn status_patch(pod: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut patch = json!({
        "metadata": {"uid": pod["metadata"]["uid"], "resourceVersion": pod["metadata"]["resourceVersion"]},
        "status": {"phase": "Failed", "conditions": [{
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodReaper", "message": "stuck",
            "lastTransitionTime": "2026-01-31T03:00:00Z",
        }]},
    });
    change(&mut patch);
    patch
}

#[test]
fn it_stops_what_the_program_never_does() {
    let cluster = fresh();
    Node::ready("well").create(&cluster);
    Node::not_ready("dead", 3600).create(&cluster);
    Node::not_ready("kosmos-one", 3600).create(&cluster);
    install(&cluster, DEFAULT);
    give_all_rights_on_pods(&cluster);

    let on = |node: &str, name: &str| {
        let pod = Pod::on(node, "apps", name).label("app", "web").annotation("example.org/note", "as it was");
        pod.owned_by("Job", "import")
    };
    let alive = on("well", "alive").finalizer(JOB_TRACKING).create(&cluster);
    on("dead", "stuck").terminating(&cluster, 600);
    on("dead", "mirror").annotation("kubernetes.io/config.mirror", "hash").terminating(&cluster, 600);
    on("kosmos-one", "leaf").terminating(&cluster, 600);
    let stuck = cluster.get(&pod_path("apps", "stuck"));
    on("dead", "held").finalizer(JOB_TRACKING).create(&cluster);
    let running = json!({
        "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}], "hostIP": "192.0.2.1", "hostIPs": [{"ip": "192.0.2.1"}],
        "message": "as it was",
        "conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-31T02:00:00Z"},
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-31T01:00:00Z"},
        ],
    });
    cluster.patch_status(&pod_path("apps", "held"), running);
    cluster.delete(&pod_path("apps", "held"), json!({"gracePeriodSeconds": 600}));
    let held = cluster.get(&pod_path("apps", "held"));
    let also = on("dead", "also-held").finalizer(JOB_TRACKING).finalizer("example.org/mine");
    let also = also.terminating(&cluster, 600);
    on("dead", "ended").finalizer(JOB_TRACKING).terminating(&cluster, 600);
    let ended = cluster.patch_status(&pod_path("apps", "ended"), json!({"phase": "Failed"}));

    let at_once = json!({"gracePeriodSeconds": 0});
    let status = |name: &str| format!("{}/status", pod_path("apps", name));
    let of = |pod: &Value, change: fn(&mut Value)| status_patch(pod, change);
    let not_terminating = "only pods that are Terminating already";
    let content = "nothing of a status but phase and conditions";
    let metadata = "nothing of a pod's metadata";
    let condition = "no condition but DisruptionTarget";
    let phase = "the phase of a pod only to Failed";
    let holder = "nothing but the Job controller holds";
    // What is tried, and what the guard has to say to it.
    let attacks: Vec<(&str, &str, String, Value, &str)> = vec![
        ("kill a running pod", "DELETE", pod_path("apps", "alive"), at_once.clone(), not_terminating),
        ("stop a running pod", "DELETE", pod_path("apps", "alive"), json!({}), not_terminating),
        (
            "delete them all",
            "DELETE",
            "/api/v1/namespaces/apps/pods".into(),
            at_once.clone(),
            not_terminating,
        ),
        (
            "delete some",
            "DELETE",
            "/api/v1/namespaces/apps/pods?labelSelector=app%3Dweb&fieldSelector=metadata.name%3Dalive".into(),
            at_once.clone(),
            not_terminating,
        ),
        ("a mirror pod", "DELETE", pod_path("apps", "mirror"), at_once.clone(), "mirrors of static pods"),
        ("a leaf pod", "DELETE", pod_path("apps", "leaf"), at_once.clone(), "Kosmos leaf nodes"),
        ("fail a running pod", "PATCH", status("alive"), of(&alive, |_| {}), not_terminating),
        (
            "redirect a running pod",
            "PATCH",
            status("alive"),
            json!({"status": {"podIP": "10.0.0.66", "podIPs": [{"ip": "10.0.0.66"}]}}),
            not_terminating,
        ),
        ("fail a pod that no Job holds", "PATCH", status("stuck"), of(&stuck, |_| {}), holder),
        ("fail a pod that others hold too", "PATCH", status("also-held"), of(&also, |_| {}), holder),
        (
            "a success",
            "PATCH",
            status("held"),
            of(&held, |p| p["status"]["phase"] = json!("Succeeded")),
            phase,
        ),
        ("no phase", "PATCH", status("held"), json!({"status": {"message": "other"}}), phase),
        ("what has ended", "PATCH", status("ended"), of(&ended, |_| {}), phase),
        (
            "redirect",
            "PATCH",
            status("held"),
            of(&held, |p| {
                p["status"]["podIP"] = json!("10.0.0.66");
                p["status"]["podIPs"] = json!([{"$patch": "replace"}, {"ip": "10.0.0.66"}]);
            }),
            content,
        ),
        (
            "move",
            "PATCH",
            status("held"),
            of(&held, |p| {
                p["status"]["hostIP"] = json!("192.0.2.66");
                p["status"]["hostIPs"] = json!([{"$patch": "replace"}, {"ip": "192.0.2.66"}]);
            }),
            content,
        ),
        (
            "a message",
            "PATCH",
            status("held"),
            of(&held, |p| p["status"]["message"] = json!("other")),
            content,
        ),
        ("take away", "PATCH", status("held"), of(&held, |p| p["status"]["message"] = Value::Null), content),
        (
            "add a field",
            "PATCH",
            status("held"),
            of(&held, |p| {
                p["status"]["containerStatuses"] =
                    json!([{"name": "main", "image": "x", "imageID": "x", "ready": true, "restartCount": 0}]);
            }),
            content,
        ),
        (
            "call it Ready",
            "PATCH",
            status("held"),
            of(&held, |p| p["status"]["conditions"][0]["type"] = json!("Ready")),
            condition,
        ),
        (
            "drop a condition",
            "PATCH",
            status("held"),
            of(&held, |p| p["status"]["conditions"][0] = json!({"type": "Ready", "$patch": "delete"})),
            condition,
        ),
        (
            "relabel",
            "PATCH",
            status("held"),
            of(&held, |p| p["metadata"]["labels"] = json!({"app": "other"})),
            metadata,
        ),
        (
            "add an annotation",
            "PATCH",
            status("held"),
            of(&held, |p| p["metadata"]["annotations"] = json!({"example.org/new": "x"})),
            metadata,
        ),
        (
            "take away an annotation",
            "PATCH",
            status("held"),
            of(&held, |p| p["metadata"]["annotations"] = Value::Null),
            metadata,
        ),
        (
            "strip the finalizer",
            "PATCH",
            status("held"),
            of(&held, |p| p["metadata"]["finalizers"] = Value::Null),
            metadata,
        ),
        (
            "change the pod itself",
            "PATCH",
            pod_path("apps", "stuck"),
            json!({"metadata": {"labels": {"app": "other"}}}),
            "nothing of a pod but its status",
        ),
    ];
    let before = cluster.get("/api/v1/pods")["items"].clone();
    let mut answers = BTreeSet::new();
    for (what, method, path, body, says) in &attacks {
        for dry in [true, false] {
            let (mut path, mut body) = (path.clone(), body.clone());
            if dry && *method == "DELETE" {
                body["dryRun"] = json!(["All"]);
            } else if dry {
                path.push_str("?dryRun=All");
            }
            let (code, answer) = as_account(&cluster, method, &path, &body);
            let message = answer["message"].as_str().unwrap_or_default();
            assert_eq!(code, 403, "{what}, dry {dry}: {message}");
            assert!(message.contains("pod-reaper-guard") && message.contains(says), "{what}: {message}");
            answers.insert(*says);
        }
    }
    assert_eq!(cluster.get("/api/v1/pods")["items"], before, "nothing has changed");
    // Every validation of the policy stopped something, so none could be left out unnoticed.
    for validation in cluster.get(POLICY)["spec"]["validations"].as_array().unwrap() {
        let message = validation["message"].as_str().unwrap();
        assert!(answers.iter().any(|says| message.contains(says)), "no attack meets: {message}");
    }

    // What the program does is let through.
    for dry in [true, false] {
        // The server reads it from a delete's body where there is one, and from a patch's query.
        let (query, options) = if dry {
            ("?dryRun=All", json!({"gracePeriodSeconds": 0, "dryRun": ["All"]}))
        } else {
            ("", at_once.clone())
        };
        let patch = status_patch(&cluster.get(&pod_path("apps", "held")), |_| {});
        let (code, answer) = as_account(&cluster, "PATCH", &format!("{}{query}", status("held")), &patch);
        assert_eq!(code, 200, "{answer}");
        for name in ["held", "stuck"] {
            let (code, answer) = as_account(&cluster, "DELETE", &pod_path("apps", name), &options);
            assert_eq!(code, 200, "{answer}");
        }
    }
    assert!(cluster.try_get(&pod_path("apps", "stuck")).is_none());
    // It is about this account only.
    cluster.delete(&pod_path("apps", "alive"), at_once);
}
