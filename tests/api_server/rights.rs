//! A forbidden request is reported, and never taken for an absent object.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::{
    SHORT, binary, run, six_nodes,
    support::{ControlPlane, fresh, objects::pod_path},
    uid,
};

const REAP: &str = "stuck-on-not-ready-node";

/// The rights to read that a run needs, as in the README.
pub fn reading() -> Vec<Value> {
    vec![
        json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}),
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}),
        json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}),
        json!({"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["get"]}),
        json!({"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["get"]}),
        json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]}),
        json!({"apiGroups": ["storage.k8s.io"], "resources": ["volumeattachments"], "verbs": ["list"]}),
    ]
}

/// A kubeconfig for a user with exactly these rules.
pub fn user(cluster: &ControlPlane, name: &str, rules: &[Value]) -> PathBuf {
    let group = "rbac.authorization.k8s.io";
    let path = |kind: &str| format!("/apis/{group}/v1/{kind}");
    let meta = json!({"name": name});
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": meta, "rules": rules});
    cluster.create(&path("clusterroles"), role);
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": meta,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
    });
    cluster.create(&path("clusterrolebindings"), binding);
    let own = fs::read_to_string(&cluster.kubeconfig).expect("a kubeconfig");
    let file = cluster.dir.join(format!("{name}.kubeconfig"));
    fs::write(
        &file,
        own.replace("    token:", &format!("    as: {name}\n    token:")),
    )
    .expect("our folder");
    file
}

#[test]
fn without_the_right_to_list_nodes_or_pods_it_could_not_run() {
    let cluster = fresh();
    six_nodes::failed(&cluster);
    let without = |resource: &str| {
        let rules = reading()
            .into_iter()
            .filter(|rule| rule["resources"][0] != resource)
            .collect::<Vec<_>>();
        user(&cluster, &format!("no-{resource}"), &rules)
    };
    for resource in ["nodes", "pods"] {
        let output = binary(&without(resource)).args(SHORT).output().unwrap();
        let says = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{says}");
        assert!(
            says.contains(&format!("could not list {resource}"))
                && says.contains("grant that right"),
            "{says}"
        );
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn every_other_read_that_is_forbidden_spares_pods_and_is_reported() {
    let cluster = fresh();
    six_nodes::failed(&cluster);
    let vault = uid(&cluster.get(&pod_path("vault", "vault-0")));
    let catalogd = uid(&cluster.get(&pod_path("impala-impala01", "catalogd-0")));
    // The resource, and the reasons of a pod without a claim and of one with a claim.
    let cases = [
        ("namespaces", "facts-unread", "facts-unread"),
        ("leases", "facts-unread", "facts-unread"),
        ("persistentvolumeclaims", REAP, "volume-unverified"),
        ("persistentvolumes", REAP, "volume-unverified"),
        ("volumeattachments", REAP, REAP),
    ];
    for (resource, without_claim, with_claim) in cases {
        let rules = reading()
            .into_iter()
            .filter(|rule| rule["resources"][0] != resource)
            .collect::<Vec<_>>();
        let run = run(
            &user(&cluster, resource, &rules),
            &[&SHORT[..], &["--dry-run=client"]].concat(),
        );
        assert_eq!(
            run.reason_and_outcome(&catalogd).0,
            without_claim,
            "{resource}"
        );
        assert_eq!(run.reason_and_outcome(&vault).0, with_claim, "{resource}");
        assert_eq!(run.code, 3, "{resource}: {}", run.report);
    }
}

#[test]
fn a_delete_that_is_forbidden_is_denied_and_not_retried() {
    let cluster = fresh();
    six_nodes::failed(&cluster);
    let reader = user(&cluster, "reader", &reading());
    for options in [&["--dry-run"][..], &[]] {
        let run = run(&reader, &[&SHORT[..], options].concat());
        run.ends(3);
        assert_eq!(
            run.report["summary"]["outcomes"]["denied"],
            six_nodes::STUCK.len()
        );
        let says = run.report["pods"][0]["outcomeDetail"].as_str().unwrap();
        assert!(says.contains("cannot delete resource \"pods\""), "{says}");
        assert!(
            !run.log.contains("cannot delete"),
            "the log holds no message of the server: {}",
            run.log
        );
    }
    let reading_only = run(&reader, &[&SHORT[..], &["--dry-run=client"]].concat());
    assert_eq!(
        (reading_only.code, &reading_only.report["errors"]),
        (0, &json!([])),
        "{}",
        reading_only.log
    );
}
