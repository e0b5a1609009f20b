//! A dry run changes nothing, and selects the pods that the real run then deletes.

use crate::prelude::*;

/// The resource version of every object that a run could change.
fn versions(cluster: &ControlPlane) -> BTreeMap<String, String> {
    let kinds = [
        "/api/v1/pods",
        "/api/v1/nodes",
        "/api/v1/namespaces",
        "/api/v1/persistentvolumeclaims",
        "/api/v1/persistentvolumes",
        "/api/v1/events",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
        "/apis/storage.k8s.io/v1/volumeattachments",
    ];
    let mut versions = BTreeMap::new();
    for kind in kinds {
        for item in cluster.get(kind)["items"].as_array().expect("items") {
            let version = item["metadata"]["resourceVersion"].to_string();
            versions.insert(format!("{kind} {}", uid(item)), version);
        }
    }
    versions
}

fn chosen(run: &Run) -> Vec<String> {
    let pods = each(&run.report["pods"]);
    pods.filter(|pod| pod["verdict"] == "reap")
        .map(uid_of_entry)
        .collect()
}

#[test]
fn a_dry_run_sends_only_gets_and_chooses_as_the_real_run() {
    let cluster = six_nodes::after_an_hour();
    let before = versions(&cluster);
    let proxy = Proxy::to(&cluster);
    let dry = run(&proxy.kubeconfig, &short("--dry-run --require-guard"));
    assert_eq!(dry.code, 0, "{}", dry.log);
    assert_eq!(
        dry.report["summary"]["outcomes"]["would-delete"],
        six_nodes::STUCK.len()
    );
    let seen = proxy.seen();
    assert!(seen.iter().all(|seen| seen.method == "GET"), "{seen:?}");
    assert_eq!(versions(&cluster), before);
    let real = run(&cluster.kubeconfig, &SHORT);
    assert_eq!(
        real.report["summary"]["outcomes"]["deleted"],
        six_nodes::STUCK.len()
    );
    assert_eq!(chosen(&dry), chosen(&real));
}
