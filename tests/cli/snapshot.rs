//! Snapshots that lack something, or are too large.

use serde_json::json;

use crate::{SMALL, reaper, saved, small};

/// The report names what a file lacks, and the command that saves everything. A single namespace may be the only one of its cluster.
#[test]
fn what_a_snapshot_lacks_is_named_with_the_command_that_saves_all() {
    let namespace = "Namespace kube-system: {}";
    let pod = "Pod kube-system/dns: {grace: null}";
    let using = "Pod a/b: {grace: null, uses: data-b}";
    let claim = "PersistentVolumeClaim a/data-b: {volume: pv-b}";
    let less = "Namespace compute-hive01: null, Node ds06: {lease: null}";
    for (more, args, lacks) in [
        (&[][..], &[][..], None),
        (&[namespace], &[], Some("pods of other namespaces (-A)")),
        (&[namespace], &["-n", "compute-hive01"], None),
        (&[namespace, pod], &[], None),
        (&[namespace, pod, using], &[], Some("pvc")),
        (&[namespace, pod, using, claim], &[], Some("pv")),
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
                "kubectl get no,ns,po,pvc,pv,leases,volumeattachments,csidrivers,sts -Ao json --show-managed-fields",
            ].map(str::to_owned)
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
    assert!(report.contains("Cluster/pg, whose operator"), "{report}");
    assert!(!report.contains("ConfigMap/other"), "{report}");
}

/// Safety rule 12.
#[test]
fn a_file_has_a_limit_of_size() {
    let refused = |args: &[&str], input: &str| {
        let run = reaper(args).input(input).run().exits(1);
        run.err.lines().last().unwrap_or_default().to_owned()
    };
    let error = refused(&["--snapshot=/dev/zero"], "");
    assert!(error.contains("has no saved cluster state"), "{error}");
    let spaces = " ".repeat(1 << 20);
    let options = ["--snapshot=-", "--max-snapshot-size=1Mi", "--log-level=off"];
    let error = refused(&options, &format!("{{{spaces}"));
    assert_eq!(
        error,
        "error: --snapshot -: it has more than 1048576 bytes; if it is a saved cluster state, raise --max-snapshot-size, as far as memory allows"
    );
    let state = saved(SMALL);
    let just = format!("{state}{}", &spaces[state.len()..]);
    reaper(&options).input(just).run().exits(0);
}
