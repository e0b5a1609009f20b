//! Faults of the API server: the resulting cluster, the report, and the end of the run.
//!
//! Each row of a table is one run. The runs of a table share a cluster. Each run handles the pods of its own namespace; if no row
//! may delete anything, all runs share a namespace. The name of a row is its fault.
//!
//! Every run here uses [`run_in`], so that each of these faults is also a test of safety rules 9 and 10: the secrets that
//! [`stuck`] and the proxy plant appear nowhere, and the run ends by its own deadline.

mod admission;
mod connection;

use crate::prelude::*;

const REAP: &str = "stuck-on-not-ready-node";
/// In seconds. A read without a response takes 42 s: four tries of 10 s, and the pauses. The Leases that never respond are those
/// of the dead node, then those of two Ready nodes.
const DEADLINE: u64 = 240;
/// The time that starting and ending a process takes on a busy machine.
const SLACK: Duration = Duration::from_secs(20);

/// Creates a pod that is stuck on `dead`, with a PVC on network storage and with secrets. Returns its UID.
fn stuck(cluster: &ControlPlane, namespace: &str, name: &str) -> String {
    let volume = "PersistentVolume SPACE-NAME: {claim: SPACE/NAME,
        spec: {csi: {driver: rbd.csi.ceph.com, volumeHandle: x}}}";
    let stuck = "SPACE/NAME: {owner: StatefulSet stuck, uses: NAME,
        metadata: {annotations: {example.org/token: MARKER}},
        spec: {containers: [{name: main, image: 'example/main:1', env: [{name: PASSWORD, value: MARKER}]}]}}";
    let [volume, stuck] =
        [volume, stuck].map(|said| said.replace("SPACE", namespace).replace("NAME", name));
    make(cluster, &volume);
    pod(cluster, &stuck)
}

/// Runs to the end, for one namespace and at the highest log level.
fn run_in(namespace: &str, kubeconfig: &Path, deadline: u64, options: &[&str]) -> Run {
    let mut command = binary(kubeconfig);
    command
        .args(SHORT)
        .args(["--output", "json", "--log-level", "trace"])
        .args([
            "--deadline",
            &format!("{deadline}s"),
            "--namespace-regex",
            &format!("^{namespace}$"),
        ])
        .args(options)
        .env("SECRET", MARKER)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let started = Instant::now();
    let limit = Duration::from_secs(deadline) + SLACK;
    let output = end_of(command.spawn().expect("it starts"), limit);
    assert!(started.elapsed() < limit, "it has to end by its deadline");
    let [out, log] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert!(
        !out.contains(MARKER) && !log.contains(MARKER),
        "a secret is printed: {out}{log}"
    );
    // The log events of the client library contain URLs and bodies, so none of them may be printed.
    assert!(!log.contains("http.") && !log.contains("hyper"), "{log}");
    let report = match out.as_str() {
        "" => Value::Null,
        out => serde_json::from_str(out).unwrap_or_else(|error| panic!("{error}: {out}")),
    };
    Run {
        code: output.status.code().expect("it ended by itself"),
        report,
        log,
    }
}

fn is_delete(seen: &Seen) -> bool {
    seen.method == "DELETE"
}

/// Runs all rows in parallel.
fn at_once<T: Sync>(rows: &[T], run: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        for row in rows {
            scope.spawn(|| run(row));
        }
    });
}
