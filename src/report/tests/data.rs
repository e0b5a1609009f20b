//! A PVC that somebody deleted: every format first says to keep its data, and no format says to
//! wait.

use super::*;

/// Two sets with a disk of ds06. Somebody deleted the PVC of one set.
const DELETED: &str = "
    Node ds04: {ready: 'True'}
    Node ds05: {ready: 'True'}
    Node ds06: {}
    Namespace shop: {}
    Lease ds06: {}
    StatefulSet shop/ledger: {spec: {volumeClaimTemplates: [{metadata: {name: data}}]}}
    Pod shop/ledger-0: {uses: data-ledger-0, metadata: {labels: {apps.kubernetes.io/pod-index: '0'}}}
    PersistentVolumeClaim shop/data-ledger-0:
        volume: pv-ledger
        metadata: {deletionTimestamp: '2026-01-10T00:00:00Z'}
    PersistentVolume pv-ledger: {on: ds06, spec: {csi: null, local: {path: /x}, persistentVolumeReclaimPolicy: Delete}}
";

#[test]
fn the_data_of_a_deleted_claim_is_kept_first_in_every_format() {
    let held = "
        Node ds04: {ready: Unknown}
        Node ds05: {ready: Unknown}
        Pod shop/b-0: {spec: {nodeName: ds05}}
        Pod shop/c-0: {spec: {nodeName: ds04}}
    ";
    let second = "
        Pod shop/a-0: {metadata: {finalizers: [example.com/backup]}}
    ";
    let elsewhere = "PersistentVolume pv-ledger: {spec: {local: null, nodeAffinity: null, nfs: {server: x, path: /}}}";
    for (more, first) in [
        ("{}", "FIRST set the volume of shop/ledger-0 to Retain"),
        (second, "FIRST set the volume of shop/ledger-0 to Retain"),
        (elsewhere, "FIRST set the volume of shop/ledger-0 to Retain"),
        (held, "FIRST set the volume of shop/ledger-0 to Retain"),
    ] {
        let objects = objects(&with(yaml(DELETED), yaml(more)));
        let report = report(&audit(), &objects, &[]);
        let page = report.page();
        let text = text::write(&page, text::Screen::default());
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let one_line = one_line.replace("FIRST 1. ", "FIRST ");
        assert!(one_line.contains(first), "{text}");
        let html = text_of_html(&html::write(&page));
        let json = as_json(&report).to_string();
        let texts = [("text", text), ("html", html), ("json", json)];
        for (format, text) in texts {
            // The meaning of a reason is about any pod, so only the text before the meanings is
            // checked.
            let text = text.split("What the words mean").next().unwrap();
            let keeps = text.find("patch pv pv-ledger");
            let gives_up = text.find("annotate pvc data-ledger-0");
            assert!(keeps.is_some(), "{format}: {text}");
            assert!(
                gives_up.is_none_or(|at| keeps < Some(at)),
                "{format}: {text}"
            );
            for waits in ["can come back, wait", "wait for it", "cannot come back"] {
                assert!(!text.contains(waits), "{format} {waits}: {text}");
            }
        }
    }
}
