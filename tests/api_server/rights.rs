//! A run reports a forbidden request, and never treats the object as absent.

use crate::prelude::*;

const REAP: &str = "stuck-on-not-ready-node";

/// The permissions to read that a run needs, as in the README.
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

/// The program runs with the role of an older version, as after an upgrade from 0.3.0 without the new role.
#[test]
fn a_role_that_lacks_the_newest_rights_is_told_what_that_costs() {
    let cluster = one_dead();
    let plain = pod(&cluster, "apps/plain: {owner: StatefulSet db}");
    make(&cluster, "Lease apps/leader: {holder: plain}");
    until_overdue();
    let dry = short("--dry-run");
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
