//! A zone fails in a large cluster. The cost of a run grows with the failure and not with the cluster, and the run stays within
//! its limits.

use crate::{
    prelude::*,
    support::objects::{self, in_parallel},
};
use nix::fcntl::{FcntlArg, fcntl};
use std::sync::mpsc;

/// Parallel requests while a cluster is built.
const BUILDERS: usize = 4;
/// Padding of a node in bytes, in place of the `managedFields` and images of real nodes, which have 11 kB.
const NODE_PADDING: usize = 10_000;
/// The default deadline of a run, plus some seconds to start and end it.
const DEADLINE: Duration = Duration::from_secs(8 * 60 + 20);
/// The maximum memory of a run in MiB: half of the memory limit of its container.
pub const MOST_MEMORY: u64 = 64;
/// The maximum number of concurrent requests.
const MOST_AT_ONCE: usize = 8;

/// Creates this many pods on each node, in the namespace `load`, and deletes them, so that they are Terminating. Each pod has an
/// annotation of `padding` bytes, and otherwise only the fields that a run reads. Returns their UIDs.
pub fn pods(cluster: &ControlPlane, nodes: &[(String, usize)], padding: usize) -> BTreeSet<String> {
    objects::namespace(cluster, "load");
    let padding = "x".repeat(padding);
    let pods = nodes
        .iter()
        .flat_map(|(node, pods)| (0..*pods).map(move |pod| (node, pod)));
    in_parallel(BUILDERS, pods, |(node, pod)| {
        let name = format!("{node}-{pod}");
        let pod = pod_on(cluster, node, &name, &padding);
        cluster.delete(&pod_path("load", &name), yaml("{gracePeriodSeconds: 1}"));
        pod
    })
    .into_iter()
    .collect()
}

fn pod_on(cluster: &ControlPlane, node: &str, name: &str, padding: &str) -> String {
    let pod = format!(
        "
        metadata:
            name: {name}
            labels: {{app.kubernetes.io/name: load, app.kubernetes.io/instance: {name}}}
            annotations: {{example.org/padding: '{padding}'}}
            ownerReferences: [{{apiVersion: apps/v1, kind: StatefulSet, name: load, uid: load, controller: true}}]
        spec: {{nodeName: {node}, containers: [{{name: main, image: 'example/main:1'}}]}}
        "
    );
    uid(&cluster.create("/api/v1/namespaces/load/pods", yaml(&pod)))
}

/// A cluster in which one zone fails.
struct Zone {
    nodes: usize,
    dead: usize,
    /// The number of dead nodes with stuck pods.
    crowded: usize,
    /// The number of stuck pods on each of these nodes.
    pods: usize,
    /// The size of each pod's annotation, in bytes.
    pod_padding: usize,
    /// The maximum memory of a run in MiB.
    most_memory: u64,
}

/// The result of a run.
pub struct Measured {
    pub run: Run,
    took: Duration,
    /// Peak memory in KiB.
    memory: u64,
}

/// Runs to the end, and reads the peak memory from the kernel. The report comes last, is written while it is generated, and is
/// longer than the buffer of its pipe. When its first byte arrives, all other work is done, and the process blocks until the test
/// has read the memory.
pub fn measure(kubeconfig: &std::path::Path, options: &[&str]) -> Measured {
    let started = Instant::now();
    let mut child = binary(kubeconfig)
        .args(SHORT)
        .args(["--output", "json"])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let pid = child.id();
    let (mut stdout, mut stderr) = (
        child.stdout.take().expect("it is piped"),
        child.stderr.take().expect("it is piped"),
    );
    // By default a pipe holds 64 KiB, and some reports are smaller than that.
    fcntl(&stdout, FcntlArg::F_SETPIPE_SZ(4_096)).expect("a pipe");
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let log = thread::spawn(move || {
            let mut log = String::new();
            stderr
                .read_to_string(&mut log)
                .map(|_| log)
                .expect("the log is text")
        });
        let mut report = vec![0];
        let memory = stdout.read_exact(&mut report).map(|()| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it is there");
            let peak = status
                .lines()
                .find_map(|line| line.strip_prefix("VmHWM:"))
                .expect("the kernel counts");
            peak.trim()
                .trim_end_matches(" kB")
                .parse::<u64>()
                .expect("a number")
        });
        stdout.read_to_end(&mut report).expect("it can be read");
        let status = child.wait().expect("it can be waited for");
        let log = log.join().expect("it is read");
        let _ = sender.send((status, report, memory, log));
    });
    let Ok((status, report, memory, log)) = receiver.recv_timeout(DEADLINE) else {
        Command::new("kill")
            .args(["-KILL", &pid.to_string()])
            .status()
            .expect("kill");
        panic!("it has not ended after {DEADLINE:?}");
    };
    let took = started.elapsed();
    let memory = memory.unwrap_or_else(|error| panic!("no report ({error}): {log}"));
    let report = serde_json::from_slice(&report).unwrap_or_else(|error| panic!("{error}: {log}"));
    let run = Run {
        code: status.code().expect("it ended by itself"),
        report,
        log,
    };
    Measured { run, took, memory }
}

impl Measured {
    pub fn with(&self, outcome: &str) -> BTreeSet<String> {
        let pods = each(&self.run.report["pods"]);
        pods.filter(|pod| pod["outcome"] == outcome)
            .map(uid_of_entry)
            .collect()
    }

    /// Checks that the run has this exit code and used at most this many MiB.
    pub fn ends(&self, code: i32, most_memory: u64, what: &str) {
        let Self { run, took, memory } = self;
        eprintln!("{what}: {:.1} s, {memory} KiB at most", took.as_secs_f64());
        let (ended, summary) = ((run.code, &run.report["errors"]), &run.report["summary"]);
        assert_eq!(ended, (code, &json!([])), "{what}: {summary}");
        assert_eq!(
            run.report["breaker"],
            Value::Null,
            "{what}: 30 % is no mass outage"
        );
        assert!(*memory <= most_memory * 1024, "{what}: {memory} KiB");
    }
}

fn a_zone_dies(zone: &Zone) {
    let cluster = fresh();
    let padding = "x".repeat(NODE_PADDING);
    let padded = format!("{{annotations: {{example.org/padding: {padding}}}}}");
    let began = Instant::now();
    let dead = (0..zone.dead)
        .map(|node| format!("dead-{node}"))
        .collect_vec();
    in_parallel(BUILDERS, 0..zone.nodes - zone.dead, |node| {
        // The run reads only NotReady nodes completely.
        let node = format!("Node ready-{node}: {{ready: 'True', lease: null, metadata: {padded}}}");
        make(&cluster, &node);
    });
    in_parallel(BUILDERS, dead.iter(), |node| {
        make(&cluster, &format!("Node {node}: {{metadata: {padded}}}"));
    });
    let crowded = &dead[..zone.crowded];
    let on_each = crowded
        .iter()
        .map(|node| (node.clone(), zone.pods))
        .collect_vec();
    let stuck = pods(&cluster, &on_each, zone.pod_padding);
    let alive = in_parallel(BUILDERS, crowded.iter(), |node| {
        pod_on(&cluster, node, &format!("{node}-lives"), &padding)
    });
    until_overdue();
    let cap = stuck.len() / 4;
    eprintln!(
        "the cluster was built in {:.0} s",
        began.elapsed().as_secs_f64()
    );

    let proxy = Proxy::to(&cluster);
    let first = measure(&proxy.kubeconfig, &["--max-deletes", &cap.to_string()]);
    let (requests, at_once) = (proxy.seen().len(), proxy.most_under_way());
    eprintln!("{requests} requests, {at_once} at once at most");
    first.ends(0, zone.most_memory, "a run with a cap");
    assert!(at_once <= MOST_AT_ONCE, "{at_once}");
    let deleted = first.with("deleted");
    assert_eq!(deleted.len(), cap);
    assert_eq!(
        proxy
            .took_effect()
            .iter()
            .filter(|seen| seen.is_change())
            .count(),
        cap
    );
    assert_eq!(
        first.run.report["pods"].as_array().map(Vec::len),
        Some(stuck.len())
    );

    // The next run uses TLS, as in a real cluster.
    let next = measure(&cluster.kubeconfig, &[]);
    next.ends(0, zone.most_memory, "the next run");
    let rest = stuck.difference(&deleted).cloned().collect::<BTreeSet<_>>();
    assert!(
        next.with("deleted") == rest,
        "it takes what the first has left"
    );
    let left = cluster.get("/api/v1/namespaces/load/pods");
    let left = each(&left["items"]).map(uid).collect::<BTreeSet<_>>();
    assert!(
        left == alive.into_iter().collect(),
        "what is not Terminating lives"
    );
}

/// The list of nodes for the census takes two pages. There are few pods, but together they have 36 MB.
#[test]
fn a_zone_dies_in_a_cluster() {
    a_zone_dies(&Zone {
        nodes: 510,
        dead: 153,
        crowded: 80,
        pods: 3,
        pod_padding: 150_000,
        most_memory: MOST_MEMORY,
    });
}

#[test]
#[ignore = "builds a cluster of 5,000 nodes, which takes minutes; see CONTRIBUTING.md"]
fn a_zone_dies_in_a_big_cluster() {
    a_zone_dies(&Zone {
        nodes: 5_000,
        dead: 1_500,
        crowded: 200,
        pods: 100,
        pod_padding: 10_000,
        // The container has 128 MiB.
        most_memory: 112,
    });
}
