//! Snapshots that cannot be judged, and where they come from.

use std::fs;

use serde_json::json;

use crate::{KOSMOS, SMALL, audit, data, reaper, saved, small, transcripts::plays};

#[test]
fn a_snapshot_that_cannot_be_judged_is_named_with_what_to_do() {
    plays("transcripts/snapshot.txt");
}

/// What a file lacks is said with the command that saves all. A namespace that is there alone may be the only one.
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
                "namespaces (whether they are opted out), leases (which show whether a node is alive), pv",
            ),
        ),
    ] {
        let more = format!("{{{}}}", more.join(", "));
        let report = small(&more, args).run().report();
        let unseen = lacks.map(|lacks| {
            [
                &format!("The file has none of these: {lacks}. They were not saved, or there are none. This saves all:"),
                "kubectl get no,ns,po,pvc,pv,leases,volumeattachments,csidrivers,sts -Ao json --show-managed-fields",
            ].map(str::to_owned)
        });
        let unseen = unseen.into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(report["unseen"], json!(unseen), "{more} {args:?}");
    }
}

/// Only a run that could list these pods counts them.
#[test]
fn pods_on_ready_nodes_that_are_left_out_are_counted() {
    let more = "Pod compute-hive01/other-0: {node: ds04}\n    Namespace other: {}";
    let cluster = saved(&format!("{SMALL}    {more}\n"));
    for (args, is_told) in [
        (&[][..], true),
        (&["--all"], false),
        (&["-n", "other"], false),
        (&["explain", "huebackend-0", "-n", "compute-hive01"], false),
    ] {
        let run = reaper(&[&["--snapshot", "-"], args].concat()).input(&*cluster);
        let out = run.run().exits(0).out;
        let says = "1 more Terminating pod is on a Ready node; --all lists them  [on-ready-nodes]";
        assert_eq!(out.contains(says), is_told, "{args:?}: {out}");
        assert_eq!(out.contains("[on-ready-nodes]"), is_told, "{args:?}: {out}");
    }
}

#[test]
fn standard_input_is_a_file_like_any_other() {
    let judged = |file: &str| reaper(&["--snapshot", file, "--output=json"]);
    let text = fs::read_to_string(data().join(KOSMOS)).expect("a file");
    let mut expected = judged(KOSMOS).run().exits(0).report();
    expected["snapshot"] = json!("-");
    assert_eq!(judged("-").input(text).run().exits(0).report(), expected);
}

#[test]
fn a_snapshot_needs_no_kubeconfig_and_reads_none() {
    audit(&[])
        .env("KUBECONFIG", "/nowhere/config")
        .run()
        .exits(0);
    let run = audit(&[]);
    run.file(".kube/config", "{{{");
    run.run().exits(0);
}
