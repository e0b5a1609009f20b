//! Snapshots that lack something, or are too large.

use serde_json::{Value, json};

use crate::{Reaper, SMALL, reaper, saved, small};

/// The report names what a file lacks, and the command that saves everything. A single namespace may be the only one of its cluster.
#[test]
fn what_a_snapshot_lacks_is_named_with_the_command_that_saves_all() {
    let namespace = "Namespace kube-system: {}";
    let pod = "Pod kube-system/dns: {grace: null}";
    let using = "Pod a/b: {grace: null, uses: data-b}";
    let claim = "PersistentVolumeClaim a/data-b: {volume: pv-b}";
    let other = "Lease kube-system/l: {}";
    let less = "Namespace compute-hive01: null, Node ds06: {lease: null}";
    for (more, args, lacks) in [
        (
            &[][..],
            &[][..],
            Some(
                "leases outside kube-node-lease (by which programs on a silent node may show that it is alive)",
            ),
        ),
        (&[other], &[], None),
        (
            &[other, namespace],
            &[],
            Some("pods of other namespaces (-A)"),
        ),
        (&[other, namespace], &["-n", "compute-hive01"], None),
        (&[other, namespace, pod], &[], None),
        (&[other, namespace, pod, using], &[], Some("pvc")),
        (&[other, namespace, pod, using, claim], &[], Some("pv")),
        (
            &[pod, using, claim, less],
            &[],
            Some(
                "managedFields (--show-managed-fields; without them, a wrong clock of a node is not seen), namespaces (whether they are opted out), leases (which show whether a node is alive), pv",
            ),
        ),
    ] {
        let more = format!("{{{}}}", more.join(", "));
        let report = small(&more, args).run().report();
        let unseen = lacks.map(|lacks| {
            [
                &format!("The file lacks: {lacks}. If they were not saved, save again:"),
                "pod-reaper save",
            ]
            .map(str::to_owned)
        });
        let unseen = unseen.into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(report["unseen"], json!(unseen), "{more} {args:?}");
    }
}

/// The owner of a PVC that the report names is its controller, in whatever order a file has the owners: an API server's answers are
/// sorted in the same way.
#[test]
fn the_owner_of_a_pvc_is_its_controller() {
    let owners = "[{apiVersion: v1, kind: ConfigMap, name: other, uid: o}, {apiVersion: example.org/v1, kind: Cluster, name: pg, uid: c, controller: true}]";
    let more = format!(
        "{{Pod a/b-0: {{owner: Cluster pg, uses: data}}, PersistentVolume pv-b: {{on: ds06}}, \
         PersistentVolumeClaim a/data: {{volume: pv-b, metadata: {{ownerReferences: {owners}}}}}, Namespace a: {{}}}}"
    );
    let report = small(&more, &[]).run().report().to_string();
    assert!(report.contains("Cluster/pg: its operator"), "{report}");
    assert!(!report.contains("ConfigMap/other"), "{report}");
}

/// Safety rule 12.
#[test]
fn a_file_has_a_limit_of_size() {
    fn limited(file: &str) -> Reaper {
        let file = format!("--snapshot={file}");
        reaper(&[&file, "--max-snapshot-size=1Mi", "--log-level=off"])
    }
    let spaces = " ".repeat(1 << 20);
    let long = format!("{{{spaces}");
    for (file, input) in [("/dev/zero", ""), ("-", long.as_str())] {
        let run = limited(file).input(input).run().exits(1);
        let error = run.err.lines().last().unwrap_or_default();
        assert_eq!(
            error,
            format!(
                "error: --snapshot {file}: it has more than 1048576 bytes; if it is a saved cluster state, raise --max-snapshot-size, as far as memory allows"
            )
        );
    }
    let state = saved(SMALL);
    let just = format!("{state}{}", &spaces[state.len()..]);
    limited("-").input(just).run().exits(0);
}

/// Whoever should have removed a pod whose node is gone is named once an hour has passed.
#[test]
fn what_should_have_removed_a_pod_whose_node_is_gone_is_named() {
    let of_job = "metadata: {finalizers: [batch.kubernetes.io/job-tracking]}";
    for (overdue, more, cause) in [
        (3_600, of_job, json!("finalizer")),
        (3_599, of_job, Value::Null),
        (3_600, "phase: Running", json!("garbage-collector")),
        (3_599, "phase: Running", Value::Null),
    ] {
        let pod = format!("Pod a/b-0: {{node: ds99, overdue: {overdue}, {more}}}");
        let report = small(&format!("{{Namespace a: {{}}, {pod}}}"), &[]);
        let report = report.run().report();
        let mut pods = report["pods"].as_array().expect("a list").iter();
        let pod = pods.find(|pod| pod["name"] == "b-0").expect("it");
        assert_eq!(pod["cause"], cause, "{overdue} {more}");
    }
}

/// Where an operator decides what becomes of a PVC, the report names what the operator controls, and says no more.
#[test]
fn an_operator_decides_about_its_own_pvcs() {
    let controller = "{apiVersion: scylla.scylladb.com/v1, kind: ScyllaCluster, name: sc, uid: sc, controller: true}";
    let set = |owners: &str| {
        let template = "spec: {replicas: 1, volumeClaimTemplates: [{metadata: {name: data}}]}";
        format!("{{apiVersion: apps/v1, {template}, metadata: {{ownerReferences: [{owners}]}}}}")
    };
    let (by_template, by_nobody) = ("makes PVC and pod again", "Nobody makes this PVC again");
    let by = |name: &str| format!("{name}: its operator decides");
    let (scylla, cluster) = (by("ScyllaCluster/sc"), by("Cluster/pg"));
    for (owner, set, said) in [
        ("StatefulSet b", set(""), by_template),
        ("StatefulSet b", set(controller), &scylla),
        ("Cluster pg", "null".to_owned(), &cluster),
        ("ReplicaSet b-7f", "null".to_owned(), by_nobody),
    ] {
        let more = format!(
            "{{Namespace a: {{}}, Pod a/b-0: {{owner: {owner}, uses: data-b-0}}, \
             PersistentVolume pv-b: {{claim: a/data-b-0, on: ds06}}, StatefulSet a/b: {set}}}"
        );
        let report = small(&more, &[]).run().report().to_string();
        for text in [by_template, by_nobody, &scylla, &cluster] {
            assert_eq!(
                report.contains(text),
                said == text,
                "{owner} {set}: {text}: {report}"
            );
        }
    }
}
