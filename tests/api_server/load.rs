//! Nodes of a large cluster fail. The cost of a run grows with the failure and not with the cluster, and the run stays within its
//! limits.

use crate::{prelude::*, support::objects::in_parallel};

/// Parallel requests while a cluster is built.
const BUILDERS: usize = 4;
/// The maximum number of concurrent requests.
const MOST_AT_ONCE: usize = 8;

/// A cluster in which some nodes fail.
struct Failure {
    nodes: usize,
    dead: usize,
    /// The number of dead nodes with stuck pods.
    crowded: usize,
    /// The number of stuck pods on each of these nodes.
    stuck: usize,
    /// The number of running pods in the cluster.
    running: usize,
    /// The size of each pod's annotation, in bytes, in place of what real pods have.
    padding: usize,
    /// The maximum memory of a run in MiB.
    most_memory: u64,
}

/// Runs to the end. Returns the report and the peak memory in KiB, and prints the cost. The report is written last.
fn measured(what: &str, proxy: &Proxy, options: &[&str]) -> (Value, u64) {
    measured_of(what, binary(&proxy.kubeconfig), proxy, options)
}

/// Prints the cost of dry runs in turns with those of another build, if `POD_REAPER_BESIDE` names one. Its limits are set by
/// variables, since an older build refuses options that it does not know.
fn in_turns(what: &str, proxy: &Proxy) {
    let Some(other) = std::env::var_os("POD_REAPER_BESIDE") else {
        return;
    };
    for _ in 0..5 {
        for program in [executable(), PathBuf::from(&other)] {
            let what = format!("{what}, {}", program.display());
            let mut command = Command::new(program);
            command
                .env_clear()
                .envs([("HOME", "/nonexistent"), ("MAX_FAILED_TOGETHER", "0")])
                .stdin(Stdio::null())
                .arg("--kubeconfig")
                .arg(&proxy.kubeconfig);
            measured_of(&what, command, proxy, &["--dry-run"]);
        }
    }
}

fn measured_of(what: &str, mut program: Command, proxy: &Proxy, options: &[&str]) -> (Value, u64) {
    let before = proxy.seen().len();
    let started = Instant::now();
    let mut child = program
        .args(SHORT)
        .args(["--output", "json", "--log-level", "warn"])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("it starts");
    let mut stdout = child.stdout.take().expect("it is piped");
    let reader = thread::spawn(move || {
        let mut report = Vec::new();
        stdout.read_to_end(&mut report).map(|_| report)
    });
    let status = format!("/proc/{}/status", child.id());
    let mut memory = 0;
    while child.try_wait().expect("it can be waited for").is_none() {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let mut lines = status.lines();
        let peak = lines.find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"));
        memory = peak.map_or(memory, |peak| peak.trim().parse().expect("a number"));
        thread::sleep(Duration::from_millis(2));
    }
    let took = started.elapsed().as_secs_f64();
    let report = reader.join().expect("it reads").expect("a report");
    let requests = proxy.seen().len() - before;
    eprintln!("{what}: {took:.2} s, {memory} KiB, {requests} requests");
    let report = serde_json::from_slice::<Value>(&report).expect("JSON");
    (report, memory)
}

fn nodes_die(failure: &Failure) {
    let cluster = fresh();
    let padded = |bytes| {
        let padding = "x".repeat(bytes);
        format!("metadata: {{annotations: {{example.org/padding: {padding}}}}}")
    };
    let (of_node, padded) = (padded(10_000), padded(failure.padding));
    let ready = failure.nodes - failure.dead;
    in_parallel(BUILDERS, 0..ready, |node| {
        // The run reads only NotReady nodes completely.
        make(
            &cluster,
            &format!("Node ready-{node}: {{ready: 'True', lease: null, {of_node}}}"),
        );
    });
    namespace(&cluster, "load");
    // Of one namespace, a run keeps 2,000 pods.
    (0..10).for_each(|number| namespace(&cluster, &format!("load-{number}")));
    in_parallel(BUILDERS, 0..failure.running, |pod| {
        let node = pod % ready;
        let pod = format!("Pod load/runs-{pod}: {{node: ready-{node}, grace: null, {padded}}}");
        make(&cluster, &pod);
    });
    let proxy = Proxy::to(&cluster);
    measured("nothing wrong", &proxy, &[]);
    // The history, and a page for each 1,000 nodes.
    assert_eq!(proxy.seen().len(), 1 + ready.div_ceil(1_000));
    in_turns("nothing wrong", &proxy);

    in_parallel(BUILDERS, 0..failure.dead, |node| {
        make(&cluster, &format!("Node dead-{node}: {{{of_node}}}"));
    });
    let on_each = (0..failure.crowded).cartesian_product(0..failure.stuck);
    let stuck = in_parallel(BUILDERS, on_each, |(node, pod)| {
        let owner = "owner: StatefulSet load";
        let place = format!("load-{}/on-{node}-{pod}", node % 10);
        let pod = format!("{place}: {{node: dead-{node}, {owner}, {padded}}}");
        crate::pod(&cluster, &pod)
    });
    until_overdue();
    in_turns("nodes dead", &proxy);
    let cap = stuck.len() / 4;
    for (deleted, cap) in [(cap, cap), (stuck.len() - cap, 0)] {
        let before = proxy.took_effect().len();
        let cap = cap.to_string();
        // These nodes fail within seconds, since they are made then.
        let options = ["--max-deletes", &cap, "--max-failed-together=0"];
        let (report, memory) = measured("a run", &proxy, &options);
        assert!(memory <= failure.most_memory * 1024, "{memory} KiB");
        assert_eq!(report["errors"], json!([]));
        assert_eq!(report["summary"]["outcomes"]["deleted"], deleted);
        let took_effect = proxy.took_effect().split_off(before);
        let changes = took_effect.iter().filter(|seen| seen.is_change());
        assert_eq!(changes.count(), deleted);
    }
    let at_once = proxy.most_under_way();
    assert!(at_once <= MOST_AT_ONCE, "{at_once}");
}

/// There are few pods, but together they have 36 MB: the list of a node's pods is read in pages.
#[test]
fn a_zone_dies() {
    nodes_die(&Failure {
        nodes: 510,
        dead: 153,
        crowded: 80,
        stuck: 3,
        running: 0,
        padding: 150_000,
        // Half of the memory limit of the container.
        most_memory: 64,
    });
}

#[test]
#[ignore = "builds a cluster of 5,000 nodes, which takes minutes; see tests/README.md"]
fn a_zone_dies_in_a_big_cluster() {
    nodes_die(&Failure {
        nodes: 5_000,
        dead: 1_500,
        crowded: 200,
        stuck: 100,
        running: 0,
        padding: 10_000,
        most_memory: 100,
    });
}

#[test]
#[ignore = "builds a cluster of 50,000 pods, which takes minutes; see tests/README.md"]
fn one_node_dies_in_a_big_cluster() {
    nodes_die(&Failure {
        nodes: 1_000,
        dead: 1,
        crowded: 1,
        stuck: 30,
        running: 50_000,
        padding: 10_000,
        most_memory: 16,
    });
}

/// Safety rule 13. A tenant who may only create pods fills a dead node with them, each as large as the API server accepts in
/// its finalizers and names of PVCs. The pod of another tenant is deleted all the same.
fn a_tenant_is_hostile(pods: usize, most_memory: u64) {
    let cluster = fresh();
    namespace(&cluster, "tenant");
    let finalizers = (0..16).map(|it| format!("f{it}.{}/{}", "a".repeat(230), "b".repeat(60)));
    let finalizers = finalizers.collect_vec();
    in_parallel(BUILDERS, 0..pods, |number| {
        let volume = |it: usize| {
            let claim = format!("c-{number}-{it}-{}", "d".repeat(240));
            json!({"name": format!("v{it}"), "persistentVolumeClaim": {"claimName": claim}})
        };
        let pod = json!({"node": "dead", "metadata": {"finalizers": finalizers},
            "spec": {"volumes": (0..64).map(volume).collect::<Value>()}});
        crate::pod(&cluster, &format!("tenant/p-{number}: {pod}"))
    });
    let other = pod(&cluster, "apps/other-0: {node: dead}");
    // Last, since the leases of Ready nodes that nobody renewed for five minutes make the time unknown.
    one_dead_of_three(&cluster);
    until_overdue();
    let proxy = Proxy::to(&cluster);
    let started = Instant::now();
    let (report, memory) = measured("a hostile tenant", &proxy, &[]);
    let mut seen = proxy.took_effect().into_iter();
    let delete = seen.find(Seen::is_change).expect("a delete");
    eprintln!(
        "the other tenant's delete: {:.2} s",
        (delete.at - started).as_secs_f64()
    );
    let entry = each(&report["pods"]).find(|pod| pod["uid"] == *other);
    assert_eq!(entry.expect("its own")["outcome"], "deleted");
    assert!(memory <= most_memory * 1024, "{memory} KiB");
    let over = format!(
        "{} more than a run keeps of one namespace (2000): they are over the budget, and were not judged",
        pods - 2_000
    );
    assert_eq!(report["errors"][0]["cause"], over);
}

#[test]
fn a_tenant_with_many_large_pods_does_not_stop_the_run_for_others() {
    a_tenant_is_hostile(2_100, 64);
}

#[test]
#[ignore = "makes 20,000 large pods, which takes minutes; see tests/README.md"]
fn a_hostile_tenant_in_a_big_cluster() {
    a_tenant_is_hostile(20_000, 112);
}

/// Safety rule 13. Of the objects that a run reads for a tenant's pods, it keeps little, whatever they hold: `StatefulSets` and
/// Leases with as many labels, and PVCs that name a volume as long, as an object may be large.
#[test]
fn large_objects_of_a_tenant_take_little_memory() {
    let cluster = fresh();
    namespace(&cluster, "tenant");
    let labels = (0..30_000).map(|it| (format!("l{it}"), json!("")));
    let labels = Value::Object(labels.collect());
    in_parallel(BUILDERS, 0..40, |number| {
        let name = format!("s{number}");
        let set = json!({"metadata": {"labels": labels}});
        make(&cluster, &format!("StatefulSet tenant/{name}: {set}"));
        let volume = "v".repeat(1_000_000);
        let claim = format!("PersistentVolumeClaim tenant/{name}: {{volume: {volume}}}");
        make(&cluster, &claim);
        let pod =
            format!("tenant/{name}-0: {{node: dead, owner: StatefulSet {name}, uses: {name}}}");
        crate::pod(&cluster, &pod);
        // It shows that another node is alive.
        crate::pod(&cluster, &format!("tenant/held-{number}: {{node: cold}}"));
        let lease = json!({"metadata": {"name": name, "labels": labels},
            "spec": {"holderIdentity": format!("held-{number}"), "renewTime": "2026-01-31T00:00:00.000000Z"}});
        let leases = "/apis/coordination.k8s.io/v1/namespaces/tenant/leases";
        cluster.create(leases, lease);
    });
    let other = pod(&cluster, "apps/other-0: {node: dead}");
    one_dead_of_three(&cluster);
    make(&cluster, "Node cold: {}");
    until_overdue();
    let (report, memory) = measured("large objects", &Proxy::to(&cluster), &[]);
    let entry = each(&report["pods"]).find(|pod| pod["uid"] == *other);
    let entry = entry.expect("its own");
    assert_eq!(entry["outcome"], "deleted", "{entry} {}", report["errors"]);
    assert!(memory <= 64 * 1024, "{memory} KiB");
}
