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

/// Three of five nodes are silent.
#[test]
fn the_breaker_holds_and_no_destructive_command_is_printed() {
    let cluster = fresh();
    // Leaf nodes are not counted, whether Ready or not.
    make(
        &cluster,
        "
        Node ready-1: {ready: 'True'}
        Node ready-2: {ready: 'True'}
        Node dead-1: {}
        Node dead-2: {}
        Node dead-3: {}
        Node kosmos-1: {ready: 'True'}
        Node kosmos-2: {ready: 'True'}
        Node kosmos-3: {ready: 'True'}
        PersistentVolume disk: {on: dead-1, claim: apps/disk, spec: {local: {path: /mnt/disk}}}
        ",
    );
    let stuck = pod(&cluster, "apps/stuck: {node: dead-1}");
    let local = pod(&cluster, "apps/local: {node: dead-1, uses: disk}");
    until_overdue();

    let held = run(&cluster.kubeconfig, &SHORT);
    held.ends(4);
    held.says(&stuck, ("mass-outage", None));
    let breaker = &held.report["breaker"];
    assert_eq!(
        (&breaker["reason"], &breaker["held"]),
        (&json!("mass-outage"), &json!(1))
    );
    held.says(&local, ("local-volume", None));
    // The report only advises to look first.
    let steps = held.report["breaker"]["steps"].as_array().expect("steps");
    let mut commands = steps.iter().filter_map(|step| step["command"].as_str());
    let look = commands.next().expect("a command");
    assert!(look.contains(" get nodes "), "{look}");
    let printed = held.report.to_string().matches("kubectl").count();
    assert_eq!(printed, 1, "{}", held.report);

    let forced = run(&cluster.kubeconfig, &short("--max-not-ready-percent=100"));
    forced.says(&stuck, REAPED);
}

/// The only real node is dead: every node whose row shows Ready is a leaf node.
#[test]
fn with_no_real_node_ready_nothing_is_deleted() {
    let cluster = fresh();
    make(
        &cluster,
        "
        Node dead: {}
        Node kosmos-1: {ready: 'True'}
        Node one-to-one: {ready: 'True', metadata: {annotations: {kosmos-io/owned-by-cluster: a}}}
        ",
    );
    let stuck = pod(&cluster, "apps/stuck: {}");
    until_overdue();
    let run = run(&cluster.kubeconfig, &SHORT);
    run.ends(4);
    run.says(&stuck, ("mass-outage", None));
}
