//! Tests the built binary on a real API server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests say what is wrong by panicking"
)]

mod chart;
mod commands;
mod deletes;
mod ends;
mod events;
mod faults;
mod guard;
mod held;
mod load;
mod manifests;
mod pages;
mod prelude;
mod races;
mod save;
mod six_nodes;
mod tenant;
mod terminal;

use std::{
    process::{Child, Command, Output},
    sync::mpsc,
    thread,
    time::Duration,
};

use pod_reaper_test_support as support;
use serde_json::Value;

use crate::support::{
    ControlPlane, Fresh, fresh,
    objects::{make, pod, str_of, uid},
    program::{Run, binary, run},
};

/// Waits until a process ends, and kills it after `limit`, so that no test hangs.
fn end_of(child: Child, limit: Duration) -> Output {
    let pid = child.id().to_string();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = receiver.recv_timeout(limit) else {
        Command::new("kill")
            .args(["-KILL", &pid])
            .status()
            .expect("kill");
        panic!("it has not ended after {limit:?}");
    };
    output.expect("it can be waited for")
}

const REAPED: (&str, Option<&str>) = ("stuck-on-not-ready-node", Some("deleted"));

/// Thresholds that are short enough for a test, and not zero.
const SHORT: [&str; 2] = ["--reap-older-than", "1s"];

/// Returns the options of [`SHORT`], and further options.
fn short(further: &str) -> Vec<&str> {
    SHORT.into_iter().chain(further.split(' ')).collect()
}

/// Waits until pods that were deleted with a grace period of 1 s are overdue by 1 s. The server sets their deadlines by its
/// clock, truncated to whole seconds.
fn until_overdue() {
    thread::sleep(Duration::from_millis(3_100));
}

/// Creates three nodes, of which `dead` has been silent for an hour.
fn one_dead_of_three(cluster: &ControlPlane) {
    make(
        cluster,
        "{Node ready-1: {ready: 'True'}, Node ready-2: {ready: 'True'}, Node dead: {}}",
    );
}

/// A server of this test with these nodes.
fn one_dead() -> Fresh {
    let cluster = fresh();
    one_dead_of_three(&cluster);
    cluster
}

fn claim_path(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
}

/// Creates a PVC with a volume on the node's disk.
fn local_claim(cluster: &ControlPlane, node: &str, namespace: &str, name: &str) {
    let volume = format!(
        "PersistentVolume pv-{namespace}-{name}: {{on: {node}, claim: {namespace}/{name},
            spec: {{local: {{path: /mnt/disk}}, persistentVolumeReclaimPolicy: Delete}}}}"
    );
    make(cluster, &volume);
}

/// Creates the `StatefulSet` `db` with a PVC template, and its pod stuck on the node, with the PVC
/// `disk-db-0` on the node's disk. Returns the pod's UID.
fn stuck_with_disk(cluster: &ControlPlane, node: &str) -> String {
    let set = "StatefulSet apps/db: {spec: {volumeClaimTemplates: [{metadata: {name: disk},
        spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}";
    make(cluster, set);
    local_claim(cluster, node, "apps", "disk-db-0");
    let stuck = format!("apps/db-0: {{node: {node}, owner: StatefulSet db, uses: disk-db-0}}");
    pod(cluster, &stuck)
}

fn uid_of_entry(entry: &Value) -> String {
    str_of(&entry["uid"]).to_owned()
}
