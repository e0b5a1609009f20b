//! Who may answer if the `answers` component is installed and, on demand, how much its policies slow other requests down. The
//! module `guard` tests the PVCs that the account may then delete, `manifests` the account's permissions.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    guard::{IN_APPS, bind, dry_run, grant},
    medians, one_dead,
    scratch::{GIVE_UP, SCRATCH, claim_path, install},
    support::{
        ControlPlane, Fresh,
        installed::{ACCOUNT, as_member, as_user, folder, kubectl, until},
        objects::{annotate, make, node_path, pod_path},
    },
};

const REAP: &str = "pod-reaper.io/reap";
const POWERED_OFF: &str = "pod-reaper.io/powered-off";
const TIME: &str = "2026-11-22T03:00:00Z";
const NOT_YOURS: &str = "only users who may delete this object may annotate it";
const NOT_ITSELF: &str = "pod-reaper may not answer for itself";
const DRY: &str = "?dryRun=All";

/// A method, a path and a body.
type Request = (&'static str, String, Value);

fn annotated(key: &str, value: Option<&str>) -> Value {
    json!({"metadata": {"annotations": {key: value}}})
}

fn named(mut object: Value, name: &str) -> Value {
    object["metadata"]["name"] = json!(name);
    object
}

/// Every way to write an answer to objects of this namespace, and to nodes. Each request is a dry run. The API server ignores the
/// metadata in requests to the other subresources of a pod.
fn ways(namespace: &str) -> Vec<(&'static str, Request)> {
    let of_claim = annotated(GIVE_UP, Some(TIME));
    let of_pod = annotated(REAP, Some(TIME));
    let of_node = annotated(POWERED_OFF, Some(TIME));
    let in_namespace = |place: &str| format!("/api/v1/namespaces/{namespace}/{place}{DRY}");
    let with = |mut object: Value, field: &str, value: Value| {
        object[field] = value;
        object
    };
    let container = json!({"name": "main", "image": "example/main:1"});
    let claim_spec =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let new_claim = with(of_claim.clone(), "spec", claim_spec);
    let mut generated = new_claim.clone();
    generated["metadata"]["generateName"] = json!("data-");
    let pod_spec = json!({"containers": [container]});
    let new_pod = named(with(of_pod.clone(), "spec", pod_spec), "new");
    let to_node = json!({"apiVersion": "v1", "kind": "Node", "name": "dead"});
    let binding = named(with(of_pod.clone(), "target", to_node), "pending");
    vec![
        (
            "a claim",
            (
                "PATCH",
                in_namespace("persistentvolumeclaims/data"),
                of_claim.clone(),
            ),
        ),
        (
            "a claim's status",
            (
                "PATCH",
                in_namespace("persistentvolumeclaims/data/status"),
                of_claim,
            ),
        ),
        (
            "a new claim",
            (
                "POST",
                in_namespace("persistentvolumeclaims"),
                named(new_claim, "new"),
            ),
        ),
        (
            "a new claim of any name",
            ("POST", in_namespace("persistentvolumeclaims"), generated),
        ),
        (
            "a pod",
            ("PATCH", in_namespace("pods/stuck"), of_pod.clone()),
        ),
        (
            "a pod's status",
            ("PATCH", in_namespace("pods/stuck/status"), of_pod.clone()),
        ),
        ("a new pod", ("POST", in_namespace("pods"), new_pod)),
        (
            "a pod's binding",
            (
                "POST",
                in_namespace("pods/pending/binding"),
                binding.clone(),
            ),
        ),
        ("a binding", ("POST", in_namespace("bindings"), binding)),
        (
            "a node",
            (
                "PATCH",
                format!("{}{DRY}", node_path("dead")),
                of_node.clone(),
            ),
        ),
        (
            "a node's status",
            (
                "PATCH",
                format!("{}/status{DRY}", node_path("dead")),
                of_node.clone(),
            ),
        ),
        (
            "a new node",
            ("POST", format!("/api/v1/nodes{DRY}"), named(of_node, "new")),
        ),
    ]
}

/// Installs the component, and users who may change everything that can be answered. They differ in what they may delete:
/// `changer` nothing, `tenant` everything in the namespace `apps`, `owner` objects named `data`, `operator` everything.
fn installed() -> Fresh {
    let cluster = one_dead();
    for namespace in ["apps", "other"] {
        let objects = "{PersistentVolumeClaim IN/data: {phase: Pending},
            Pod IN/stuck: {grace: null}, Pod IN/pending: {node: null, grace: null}}";
        make(&cluster, &objects.replace("IN", namespace));
    }
    install(&cluster, &["answers"]);
    let objects = ["pods", "persistentvolumeclaims", "nodes"];
    let parts = [
        "pods/status",
        "pods/binding",
        "pods/eviction",
        "persistentvolumeclaims/status",
        "nodes/status",
        "bindings",
    ];
    let rule = |resources: &[&str], verbs: &[&str]| json!({"apiGroups": [""], "resources": resources, "verbs": verbs});
    let all = [&objects[..], &parts].concat();
    for user in ["changer", "tenant", "owner", "operator"] {
        let changes = rule(&all, &["get", "create", "update", "patch"]);
        grant(&cluster, user, user, &json!([changes]));
    }
    let deletes = rule(&objects, &["delete"]);
    let mut own = deletes.clone();
    own["resourceNames"] = json!(["data"]);
    grant(&cluster, "deletes-data", "owner", &json!([own]));
    grant(&cluster, "deletes", "operator", &json!([deletes]));
    bind(&cluster, IN_APPS, "deletes", "tenant");
    // RBAC normally allows the account little. This test grants it every permission.
    grant(&cluster, "stolen", ACCOUNT, &json!([rule(&all, &["*"])]));
    let ask = |user: &str, namespace: &str| {
        let (_, (method, path, body)) = ways(namespace).pop().expect("a new node");
        as_user(user, &cluster, method, &path, &body)
    };
    until("rights and policies are in force", || {
        says(&ask("changer", "apps")).contains(NOT_YOURS)
            && says(&ask(ACCOUNT, "apps")).contains(NOT_ITSELF)
            && ask("operator", "apps").0 == 201
            && may_delete(&cluster, "tenant")
            && may_delete(&cluster, "owner")
    });
    cluster
}

fn may_delete(cluster: &ControlPlane, user: &str) -> bool {
    let dry = json!({"dryRun": ["All"]});
    // The account's guard does not restrict these users.
    as_user(user, cluster, "DELETE", &claim_path("apps", "data"), &dry).0 == 200
}

fn says((_, answer): &(u16, Value)) -> &str {
    answer["message"].as_str().unwrap_or_default()
}

#[test]
fn only_who_may_delete_an_object_may_answer_for_it() {
    let cluster = installed();
    let nodes = ["a node", "a node's status", "a new node"];
    let data = ["a claim", "a claim's status"];
    for namespace in ["apps", "other"] {
        for (what, (method, path, body)) in ways(namespace) {
            for (user, may) in [
                ("changer", false),
                ("tenant", namespace == "apps" && !nodes.contains(&what)),
                ("owner", data.contains(&what)),
                ("operator", true),
            ] {
                let answer = as_user(user, &cluster, method, &path, &body);
                let said = says(&answer);
                assert_eq!(
                    matches!(answer.0, 200 | 201),
                    may,
                    "{user}, {what} in {namespace}: {said}"
                );
                assert_eq!(
                    said.contains(NOT_YOURS),
                    !may,
                    "{user}, {what} in {namespace}: {said}"
                );
                // The policy does not restrict the same change without an answer.
                let mut plain = body.clone();
                plain["metadata"]["annotations"] = json!({"example.org/give-up": TIME});
                let answer = as_user(user, &cluster, method, &path, &plain);
                assert!(
                    matches!(answer.0, 200 | 201),
                    "{user}, {what} in {namespace}: {}",
                    says(&answer)
                );
            }
            // The account may delete, but must not answer. The guard may be the policy that refuses it: its refusal is as good.
            let answer = as_user(ACCOUNT, &cluster, method, &path, &body);
            assert!(
                answer.0 == 403 && says(&answer).contains("ValidatingAdmissionPolicy 'pod-reaper-"),
                "{what}: {}",
                says(&answer)
            );
        }
    }
}

#[test]
fn only_a_changed_answer_is_asked_about() {
    let cluster = installed();
    let data = claim_path("apps", "data");
    let node = node_path("dead");
    annotate(&cluster, &data, GIVE_UP, TIME);
    annotate(&cluster, &node, POWERED_OFF, TIME);
    let sealed = |path: &str| {
        let mut object = cluster.get(path);
        object["metadata"]["annotations"] = Value::Null;
        object
    };
    let later = Some("2026-11-22T04:00:00Z");
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "stuck", "namespace": "apps"}});
    let evict = format!("{}/eviction", pod_path("apps", "stuck"));
    let ephemeral = "system:serviceaccount:kube-system:ephemeral-volume-controller";
    let replicas = "system:serviceaccount:kube-system:replicaset-controller";
    let way = |what: &str| {
        let found = ways("apps").into_iter().find(|(name, _)| *name == what);
        found.expect("a way").1
    };
    let kubelet = "system:node:dead";
    let status = format!("{node}/status");
    let heartbeat = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let rows: [(&str, &str, Request, Option<&str>); 16] = [
        (
            "beside an answer",
            "changer",
            ("PATCH", data.clone(), annotated("a", Some("b"))),
            None,
        ),
        (
            "the same answer",
            "changer",
            ("PATCH", data.clone(), annotated(GIVE_UP, Some(TIME))),
            None,
        ),
        (
            "a later answer",
            "changer",
            ("PATCH", data.clone(), annotated(GIVE_UP, later)),
            Some(NOT_YOURS),
        ),
        (
            "no answer any more",
            "changer",
            ("PATCH", data.clone(), annotated(GIVE_UP, None)),
            None,
        ),
        (
            "no annotation any more",
            "changer",
            ("PUT", data.clone(), sealed(&data)),
            None,
        ),
        (
            "scratch",
            "changer",
            ("PATCH", data.clone(), annotated(SCRATCH, Some("true"))),
            Some(NOT_YOURS),
        ),
        (
            "beside an answer",
            ACCOUNT,
            ("PATCH", node.clone(), annotated("a", Some("b"))),
            None,
        ),
        (
            "a later answer",
            ACCOUNT,
            ("PATCH", node.clone(), annotated(POWERED_OFF, later)),
            Some(NOT_ITSELF),
        ),
        (
            "no answer any more",
            ACCOUNT,
            ("PATCH", node.clone(), annotated(POWERED_OFF, None)),
            Some(NOT_ITSELF),
        ),
        (
            "no annotation any more",
            ACCOUNT,
            ("PUT", node.clone(), sealed(&node)),
            Some(NOT_ITSELF),
        ),
        (
            "scratch",
            ACCOUNT,
            ("PATCH", node.clone(), annotated(SCRATCH, Some("true"))),
            Some(NOT_ITSELF),
        ),
        ("an eviction", "changer", ("POST", evict, eviction), None),
        (
            "a template's answer",
            ephemeral,
            way("a new claim"),
            Some(NOT_YOURS),
        ),
        ("a template's answer", replicas, way("a new pod"), None),
        (
            "a heartbeat",
            kubelet,
            ("PATCH", status.clone(), heartbeat),
            None,
        ),
        (
            "itself",
            kubelet,
            ("PATCH", status, annotated(POWERED_OFF, later)),
            Some(NOT_YOURS),
        ),
    ];
    for (what, user, (method, path, body), refused) in rows {
        let groups = if user == kubelet {
            &["system:nodes"][..]
        } else {
            &[]
        };
        let path = if path.ends_with(DRY) {
            path
        } else {
            path + DRY
        };
        let answer = as_member(&cluster, user, groups, (method, &path), &body);
        let said = says(&answer);
        match refused {
            Some(message) => assert!(
                answer.0 == 403 && said.contains(message),
                "{user}: {what}: {said}"
            ),
            None => assert!(matches!(answer.0, 200 | 201), "{user}: {what}: {said}"),
        }
    }
}

/// Prints how long requests take that controllers and kubelets send all the time, on a server without policies and on one with
/// the guard, `answers` and `kosmos-guard`: medians of dry runs that were sent to both in turn.
#[test]
#[ignore = "a measurement: cargo test --test api_server what_the_policies_cost -- --ignored --nocapture"]
fn what_the_policies_cost() {
    let with = installed();
    let component = folder("cronjob/components/kosmos-guard");
    kubectl(&with, &["apply", "-k", &component]);
    let without = one_dead();
    let changes = "[{apiGroups: [''], verbs: [patch],
        resources: [pods, pods/status, nodes, nodes/status, persistentvolumeclaims]}]";
    grant(&without, "changes", "changer", changes);
    let padding = json!({"metadata": {"annotations": {"example.org/padding": "x".repeat(8_000)}}});
    let [node, pod, claim] = [
        node_path("measured"),
        pod_path("apps", "measured"),
        claim_path("apps", "measured"),
    ];
    let servers = [&without, &with];
    for cluster in servers {
        let deletes = "[{apiGroups: [''], resources: [pods], verbs: [delete]}]";
        grant(cluster, "deletes-pods", "changer", deletes);
        make(
            cluster,
            "{Node measured: {}, Pod apps/measured: {grace: null},
            PersistentVolumeClaim apps/measured: {phase: Pending}}",
        );
        for path in [&node, &pod, &claim] {
            cluster.merge_patch(path, padding.clone());
        }
    }
    // Until the API servers have taken all policies over.
    thread::sleep(Duration::from_secs(5));
    let changer = ("changer", &[][..]);
    let kubelet = ("system:node:dead", &["system:nodes"][..]);
    eprintln!("| request | without | with | difference |\n| --- | ---: | ---: | ---: |");
    for (what, (user, groups), path, place) in [
        ("delete of a pod", changer, &pod, "DELETE"),
        ("a pod's status", changer, &pod, "/status"),
        ("a pod's status, by a kubelet", kubelet, &pod, "/status"),
        ("a PVC", changer, &claim, ""),
        ("a node", changer, &node, ""),
        ("a node's status", changer, &node, "/status"),
    ] {
        let [without, with] = medians(3_000, |side, round| {
            let (method, path, body) = match place {
                "DELETE" => ("DELETE", path.clone(), dry_run()),
                "" => {
                    let changed = annotated("example.org/round", Some(&round.to_string()));
                    ("PATCH", format!("{path}{DRY}"), changed)
                }
                _ => {
                    let (field, value) = if *path == node {
                        ("nodeInfo", json!({"bootID": round.to_string()}))
                    } else {
                        ("message", json!(round.to_string()))
                    };
                    let changed = json!({"status": {field: value}});
                    ("PATCH", format!("{path}{place}{DRY}"), changed)
                }
            };
            let (code, answer) = as_member(servers[side], user, groups, (method, &path), &body);
            assert_eq!(code, 200, "{what}: {answer}");
        });
        eprintln!(
            "| {what} | {without:.2} ms | {with:.2} ms | {:.2} ms |",
            with - without
        );
    }
}
