//! A forbidden request is reported, and never taken for an absent object.

use crate::prelude::*;

const REAP: &str = "stuck-on-not-ready-node";

/// The rights to read that a run needs, as in the README.
pub fn reading() -> Vec<Value> {
    let rules = yaml(
        "
        - {apiGroups: [''], resources: [nodes], verbs: [get, list]}
        - {apiGroups: [''], resources: [namespaces], verbs: [list]}
        - {apiGroups: [''], resources: [pods], verbs: [get, list]}
        - {apiGroups: [''], resources: [persistentvolumeclaims], verbs: [get]}
        - {apiGroups: [''], resources: [persistentvolumes], verbs: [get]}
        - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list]}
        - {apiGroups: [storage.k8s.io], resources: [volumeattachments], verbs: [list]}
        - {apiGroups: [storage.k8s.io], resources: [csidrivers], verbs: [list]}
        ",
    );
    rules.as_array().expect("rules").clone()
}

/// A kubeconfig for a user with exactly these rules.
pub fn user(cluster: &ControlPlane, name: &str, rules: &[Value]) -> PathBuf {
    grant(cluster, name, name, &json!(rules));
    let own = fs::read_to_string(&cluster.kubeconfig).expect("a kubeconfig");
    let file = cluster.dir.join(format!("{name}.kubeconfig"));
    let named = own.replace("    token:", &format!("    as: {name}\n    token:"));
    fs::write(&file, named).expect("our folder");
    file
}

/// A user who may read all but these.
fn user_without(cluster: &ControlPlane, resource: &str) -> PathBuf {
    let mut rules = reading();
    rules.retain(|rule| rule["resources"][0] != resource);
    user(cluster, &format!("no-{resource}"), &rules)
}

#[test]
fn without_the_right_to_list_nodes_or_pods_it_could_not_run() {
    let cluster = fresh();
    six_nodes::failed(&cluster);
    for resource in ["nodes", "pods"] {
        let mut command = binary(&user_without(&cluster, resource));
        let output = command.args(SHORT).output().unwrap();
        let says = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{says}");
        for part in [&format!("could not list {resource}"), "grant that right"] {
            assert!(says.contains(part), "{says}");
        }
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
        let options = [&SHORT[..], &["--dry-run=client"]].concat();
        let run = run(&user_without(&cluster, resource), &options);
        let reasons = [&catalogd, &vault].map(|pod| run.reason_and_outcome(pod).0);
        assert_eq!(reasons, [without_claim, with_claim], "{resource}");
        run.ends(3);
    }
}

/// As after an upgrade from 0.3.0 without its role.
#[test]
fn a_role_that_lacks_the_newest_rights_is_told_what_that_costs() {
    let cluster = fresh();
    one_dead_of_three(&cluster);
    let plain = pod(&cluster, "apps/plain: {owner: StatefulSet db}");
    make(&cluster, "Lease apps/leader: {holder: plain}");
    until_overdue();
    let dry = [&SHORT[..], &["--dry-run=client"]].concat();
    let mut rules = reading();
    for rule in &mut rules {
        if rule["resources"][0] == "leases" {
            rule["verbs"] = json!(["get"]);
        }
    }
    rules.retain(|rule| rule["resources"][0] != "csidrivers");
    let older = user(&cluster, "older", &rules);
    let told = run(&older, &dry);
    told.is_whole();
    told.says(&plain, (REAP, Some("would-delete")));
    let unseen = told.report["unseen"].as_array().expect("sentences");
    let [leases] = &unseen[..] else {
        panic!("{unseen:?}")
    };
    assert!(
        leases.to_string().contains("may not list Leases"),
        "{leases}"
    );
    let with_all = run(&user(&cluster, "newer", &reading()), &dry);
    with_all.says(&plain, ("kubelet-alive", None));

    let claims = ["disk-1", "disk-2"].map(|disk| {
        let volume = "{csi: {driver: iscsi.csi.k8s.io, fsType: ext4, volumeHandle: x}}";
        pod(
            &cluster,
            &format!("apps/{disk}: {{owner: StatefulSet db, volume: {volume}}}"),
        )
    });
    until_overdue();
    let told = run(&older, &dry);
    told.ends(3);
    told.says(&plain, (REAP, Some("would-delete")));
    for pod in &claims {
        told.says(pod, ("facts-unread", None));
    }
    let errors = told.report["errors"].as_array().expect("errors");
    let [drivers] = &errors[..] else {
        panic!("{errors:?}")
    };
    let cause = str_of(&drivers["cause"]);
    assert!(
        cause.contains("cannot list resource \"csidrivers\""),
        "{cause}"
    );
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
        let says = str_of(&run.report["pods"][0]["outcomeDetail"]);
        assert!(says.contains("cannot delete resource \"pods\""), "{says}");
        assert!(
            !run.log.contains("cannot delete"),
            "the log holds no message of the server: {}",
            run.log
        );
    }
    let reading_only = run(&reader, &[&SHORT[..], &["--dry-run=client"]].concat());
    reading_only.is_whole();
}
