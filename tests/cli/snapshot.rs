//! Snapshots that cannot be judged, and where they come from.

use crate::{audit, transcripts::plays};

#[test]
fn a_snapshot_that_cannot_be_judged_is_named_with_what_to_do() {
    plays("transcripts/snapshot.txt");
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
