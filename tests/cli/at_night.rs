//! The report for somebody on call, after one failure or many: each state is a file to read.

use expect_test::expect_file;
use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};
use pod_reaper::{
    cli::Cli,
    cluster::Cluster,
    report::text::{self, Screen},
    run::run_on,
    settings::Settings,
    stop::Stop,
};
use pod_reaper_test_support::{
    samples::{NOW, objects, yaml},
    simulated::{Objects, Server},
};
use serde_json::{Value, json};

use crate::{reaper, saved};

/// A node in words, with more of them. It is Ready, or has failed half an hour ago.
fn node(name: &str, ready: bool, more: &str) -> String {
    let state = if ready {
        "ready: 'True'"
    } else {
        "since: 1800, renewed: 1860"
    };
    format!("Node {name}: {{{state}, {more}}}\n")
}

/// A pod in words that is stuck on the node.
fn pod(node: &str, name: &str, more: &str) -> String {
    format!("Pod impala/{name}: {{node: {node}, grace: 30, overdue: 1200, {more}}}\n")
}

/// A stuck pod in words whose claim is on that node's disk.
fn local(node: &str, name: &str, claim: &str) -> String {
    let uses = format!(
        "uses: {claim}, metadata: {{labels: {{apps.kubernetes.io/pod-index: '{}'}}}}",
        name.rsplit('-').next().unwrap_or_default()
    );
    let volume = format!("pvc-4be03db0-dc25-44bd-b940-{claim:0>12}");
    format!(
        "{}PersistentVolume {volume}: {{claim: impala/{claim}, on: {node},
            spec: {{local: {{path: /opt/local-path-provisioner}}, persistentVolumeReclaimPolicy: Delete}}}}\n",
        pod(node, name, &uses)
    )
}

/// Executors with data of their own on one dead node of six.
fn executors(many: usize) -> String {
    let set = "impala-executor-000";
    let mut cluster = format!(
        "StatefulSet impala/{set}: {{spec: {{volumeClaimTemplates: [{{metadata: {{name: scratch}}}}]}}}}\n"
    );
    for number in 0..6 {
        cluster += &node(&format!("ds{number:03}"), number >= 1, "");
    }
    for number in 0..many {
        let name = format!("{set}-{number}");
        cluster += &local("ds000", &name, &format!("scratch-{name}"));
    }
    cluster
}

/// Sets, each with a volume on the dead node and, but for those of `alone`, two other copies that are Ready.
fn sets(names: &[&str], alone: &[&str]) -> String {
    let mut cluster = node("ds01", false, "") + &node("ds02", true, "") + &node("ds03", true, "");
    for name in names {
        cluster += &format!(
            "StatefulSet impala/{name}: {{spec: {{volumeClaimTemplates: [{{metadata: {{name: data}}}}]}}}}\n"
        );
        cluster += &local("ds01", &format!("{name}-0"), &format!("data-{name}-0"));
        for (at, number) in [("ds02", 1), ("ds03", 2)] {
            if alone.contains(name) {
                continue;
            }
            let pod = format!("Pod impala/{name}-{number}");
            cluster += &format!("{pod}: {{node: {at}, grace: null}}\n");
        }
    }
    cluster
}

/// `each` pods that run anywhere on so many dead nodes, in three namespaces.
fn anywhere(dead: usize, all: usize, each: usize) -> String {
    let mut cluster = "Namespace shop: {}\nNamespace team-a: {}\n".to_owned();
    for number in 0..all {
        let rack = if number < dead { "r2" } else { "r1" };
        let rack = format!("metadata: {{labels: {{rack: {rack}}}}}");
        cluster += &node(&format!("ds{number:03}"), number >= dead, &rack);
    }
    for number in 0..dead * each {
        let namespace = ["impala", "shop", "team-a"][number % 3];
        cluster += &format!(
            "Pod {namespace}/web-{number}: {{node: ds{:03}, grace: 30, overdue: 1200}}\n",
            number / each
        );
    }
    cluster
}

/// A Kosmos node whose link is cut, with copies there of what runs here as well.
fn only_kosmos() -> String {
    let leaf = "metadata: {labels: {kosmos.io/node: 'true'}, annotations: {kosmos-io/owned-by-cluster: cluster7}}";
    [
        node("ds01", true, ""),
        node("ds02", true, ""),
        node("kosmos-cluster7", false, leaf),
        pod("kosmos-cluster7", "web-0", ""),
        pod("kosmos-cluster7", "web-1", ""),
        pod("kosmos-cluster7", "db-0", ""),
    ]
    .concat()
}

/// A dead node and a Ready one of a file that was saved without leases.
fn no_leases() -> String {
    [
        node("ds01", false, "lease: null"),
        node("ds02", true, "lease: null"),
        node("ds03", true, "lease: null"),
        pod("ds01", "web-0", ""),
        local("ds01", "db-0", "data-db-0"),
    ]
    .concat()
}

/// Forty nodes, of which one has failed with 25 pods of many kinds.
fn one_of_forty() -> String {
    let mut cluster = String::new();
    for number in 1..=40 {
        let state = if number == 17 {
            "since: 1080, renewed: 1120"
        } else {
            "ready: 'True'"
        };
        cluster += &format!("Node node{number:02}: {{{state}}}\n");
    }
    let set = |namespace: &str, name: &str, [ready, wanted]: [usize; 2]| {
        let templates = "volumeClaimTemplates: [{metadata: {name: data}}]";
        let status = format!("status: {{replicas: {wanted}, readyReplicas: {ready}}}");
        format!(
            "StatefulSet {namespace}/{name}: {{apiVersion: apps/v1, spec: {{replicas: {wanted}, {templates}}}, {status}}}\n"
        )
    };
    let stuck = |pod: &str, more: &str| {
        format!("Pod {pod}: {{node: node17, grace: 30, overdue: 700, {more}}}\n")
    };
    for namespace in "cache git kafka minio ml monitoring payments search shop vault zk".split(' ')
    {
        cluster += &format!("Namespace {namespace}: {{}}\n");
    }
    let local = [
        ("payments", "pg-main", 0, [0, 1]),
        ("cache", "redis-node", 1, [2, 3]),
        ("kafka", "kafka", 2, [2, 3]),
        ("minio", "pool", 3, [3, 4]),
        ("search", "es-data", 1, [2, 3]),
        ("zk", "zookeeper", 0, [2, 3]),
    ];
    for (namespace, name, number, ready) in local {
        let (pod, claim) = (format!("{name}-{number}"), format!("data-{name}-{number}"));
        cluster += &set(namespace, name, ready);
        cluster += &stuck(&format!("{namespace}/{pod}"), &format!("uses: {claim}"));
        let spec = "spec: {local: {path: /d1}, persistentVolumeReclaimPolicy: Delete}";
        cluster += &format!(
            "PersistentVolume local-{pod}: {{claim: {namespace}/{claim}, on: node17, {spec}}}\n"
        );
    }
    let attached = [
        ("git", "gitea-0", "StatefulSet gitea"),
        ("kafka", "strimzi-broker-4", "StrimziPodSet strimzi-broker"),
        ("monitoring", "prometheus-0", "StatefulSet prometheus"),
        ("payments", "cnpg-orders-2", "Cluster cnpg-orders"),
        ("payments", "rabbitmq-1", "StatefulSet rabbitmq"),
        ("vault", "vault-2", "StatefulSet vault"),
    ];
    for (namespace, pod, owner) in attached {
        if let Some(name) = owner.strip_prefix("StatefulSet ") {
            cluster += &set(namespace, name, [0, 1]);
        }
        let uses = format!("uses: data-{pod}, owner: {owner}");
        cluster += &stuck(&format!("{namespace}/{pod}"), &uses);
        cluster += &format!("PersistentVolume pv-{pod}: {{claim: {namespace}/data-{pod}}}\n");
        cluster += &format!("VolumeAttachment csi-{pod}: {{node: node17, volume: pv-{pod}}}\n");
    }
    let leftovers = "cache git git ml ml ml shop shop shop shop shop".split(' ');
    for (number, namespace) in leftovers.enumerate() {
        cluster += &stuck(
            &format!("{namespace}/web-58d-{number}"),
            "owner: ReplicaSet web-58d",
        );
    }
    cluster += "Pod impala/batch-ui-0: {node: node17, grace: 30, overdue: 240}\n";
    let held = "owner: StatefulSet backup-agent, metadata: {finalizers: [example.com/backup]}";
    cluster += "Lease kube-system/kube-scheduler: {holder: scheduler, renewed: 3}\n";
    cluster + &stuck("vault/backup-agent-0", held)
}

/// Three members of etcd, of which one is Ready, with pods on the others.
fn two_of_three_members() -> String {
    let role = "metadata: {labels: {node-role.kubernetes.io/etcd: 'true'}}";
    [
        node("s1", true, role),
        node("s2", false, role),
        node("s3", false, role),
        pod("s2", "web-0", ""),
        pod("s2", "web-1", ""),
        pod("s3", "web-2", ""),
        pod("s3", "db-0", ""),
    ]
    .concat()
}

/// A node of which an earlier run deleted pods; `node` says how it is now.
fn remembered(node: &str) -> String {
    let reaped = |namespace: &str, name: &str, attached: bool| json!({"namespace": namespace, "name": name, "ownerKind": "StatefulSet", "attached": attached, "at": "2026-01-31T02:40:00Z"});
    let pods = [
        reaped("git", "gitea-0", true),
        reaped("kafka", "broker-4", true),
        reaped("shop", "web-1", false),
    ];
    let note = json!({"version": 1, "node": "ds01", "bootID": "boot-1", "firstReap": "2026-01-31T02:40:00Z",
        "lastReap": "2026-01-31T02:40:00Z", "pods": pods, "more": 0, "told": null});
    let history = json!({"data": {"uid-ds01": note.to_string()}});
    let status = "status: {nodeInfo: {bootID: boot-1}}";
    [
        format!("Node ds01: {{{node}, {status}}}\n"),
        "Node ds02: {ready: 'True'}\nNode ds03: {ready: 'True'}\n".to_owned(),
        "StatefulSet git/gitea: {apiVersion: apps/v1, spec: {replicas: 1}, status: {replicas: 1, readyReplicas: 0}}\n".to_owned(),
        "StatefulSet kafka/broker: {apiVersion: apps/v1, spec: {replicas: 5}, status: {replicas: 5, readyReplicas: 5}}\n".to_owned(),
        "Namespace vault: {}\nPod vault/vault-0: {node: ds01, grace: 30, overdue: 700}\nPod git/gitea-1: {node: ds02, grace: null}\n".to_owned(),
        format!("ConfigMap pod-reaper/pod-reaper-history: {history}\n"),
    ]
    .concat()
}

/// The page of an audit of these objects, as text with each paragraph on one line.
fn page(described: &str, options: &[&str]) -> String {
    let audit = ["--snapshot", "-", "--now", NOW, "--log-level", "off"];
    let audit = reaper(&[&audit[..], options].concat());
    let audit = audit.input(saved(&format!("Namespace impala: {{}}\n{described}")));
    let words = audit.run().out;
    words.split_whitespace().join(" ")
}

#[test]
fn each_state_is_a_file_to_read() {
    let mut zone = String::new();
    for number in 1..=200 {
        let name = format!("worker-{number:03}");
        let of = ["zone-a", "zone-b", "zone-c"][(number - 1) / 67];
        let labels = format!("metadata: {{labels: {{topology.kubernetes.io/zone: {of}}}}}");
        zone += &node(&name, number > 67, &labels);
        if number <= 67 {
            zone += &pod(&name, &format!("web-{number}"), "");
        }
    }
    for number in 1..=3 {
        let (at, name) = (format!("worker-00{number}"), format!("db-{number}"));
        zone += &local(&at, &name, &format!("data-{name}"));
    }
    let ready = node("ds02", true, "") + &node("ds03", true, "");
    let alive = node("ds01", false, "")
        + &ready
        + &pod("ds01", "web-0", "")
        + "Lease impala/leader: {holder: web-0_6d2f4a0e, renewed: 3}\n";
    let tolerates = "grace: null, owner: ReplicaSet web-7c9d, metadata: {labels: {pod-template-hash: 7c9d}}, \
                     spec: {tolerations: [{operator: Exists}]}";
    let gone = "metadata: {deletionTimestamp: '2026-01-31T00:50:00Z', finalizers: [kubernetes.io/pvc-protection]}";
    let mut pressing = node("ds01", false, "") + &ready + &pod("ds01", "web-0", "uses: net");
    pressing += "PersistentVolume net: {claim: impala/net}\nVolumeAttachment csi: {node: ds01, volume: net}\n";
    for number in 0..3 {
        let (name, volume) = (format!("db-{number}"), format!("pv-{number}"));
        pressing += &pod("ds01", &name, &format!("uses: {name}"));
        pressing += &format!(
            "PersistentVolume {volume}: {{on: ds01, spec: {{persistentVolumeReclaimPolicy: Delete}}}}\n\
             PersistentVolumeClaim impala/{name}: {{volume: {volume}, {gone}}}\n"
        );
    }
    let replaced = |name: &str| pod("ds01", name, "owner: ReplicaSet web-58d");
    let leftovers =
        node("ds01", false, "") + &ready + &replaced("web-58d-0") + &replaced("web-58d-1");
    let only = node("pi", false, "") + &pod("pi", "web-0", "") + &local("pi", "db-0", "data-db-0");
    let calm = ready + "Pod impala/web-0: {node: ds02, grace: null}\n";
    let two_pods = node("ds01", true, "")
        + &node("ds02", false, "")
        + &node("ds03", true, "")
        + &pod("ds02", "web-0", "")
        + &local("ds02", "db-0", "data-db-0")
        + &format!("Pod impala/web-7c9d-x2x4v: {{node: ds02, {tolerates}}}\n");
    let mut breaker = String::new();
    for number in 0..200 {
        let name = format!("worker-{number}");
        let zone = if (140..=195).contains(&number) {
            "a"
        } else {
            "b"
        };
        let zone = format!("metadata: {{labels: {{topology.kubernetes.io/zone: {zone}}}}}");
        breaker += &node(&name, number >= 150, &zone);
        for pods in 0..if number < 150 { 10 } else { 0 } {
            breaker += &pod(&name, &format!("web-{number}-{pods}"), "");
        }
        breaker += &format!("VolumeAttachment csi-{number}: {{node: {name}, volume: pv}}\n");
    }
    let before = one_of_forty()
        .replace("overdue: 700", "overdue: 100")
        .replace("since: 1080, renewed: 1120", "since: 480, renewed: 520");
    for (name, cluster) in [
        ("30-pods", anywhere(1, 6, 30)),
        ("20-nodes", anywhere(20, 200, 6)),
        ("before", before),
        ("one-of-forty", one_of_forty()),
        ("remembered", remembered("since: 1800, renewed: 1860")),
        ("back", remembered("ready: 'True', since: 600")),
        ("volumes", executors(50)),
        ("last-copy", sets(&["etcd", "kafka", "minio"], &["kafka"])),
        ("leftovers", leftovers),
        ("pressing", pressing),
        ("zone", zone),
        ("alive", alive),
        ("etcd", two_of_three_members()),
        ("only-node", only),
        ("only-kosmos", only_kosmos()),
        ("no-leases", no_leases()),
        ("calm", calm.clone()),
        ("filter", calm),
        ("two-pods", two_pods),
        ("breaker", breaker),
    ] {
        let mut audit = reaper(&["--snapshot", "-", "--now", NOW, "--log-level", "off"]);
        audit.command.arg("--cluster-name=prod-eu");
        if name == "filter" {
            audit = audit.env("NAMESPACE_REGEX", "^shpo$");
        }
        let cluster = format!("Namespace impala: {{}}\n{cluster}");
        let report = audit.input(saved(&cluster)).run().out;
        expect_file![format!("../data/golden/night-{name}.txt")].assert_eq(&shortened(&report));
    }
}

/// The text with long lines cut. Only a command is long.
fn shortened(text: &str) -> String {
    let lines = text.lines();
    let lines = lines.map(|line| match line.char_indices().nth(200) {
        Some((end, _)) => format!("{} [...]\n", &line[..end]),
        None => format!("{line}\n"),
    });
    lines.collect()
}

/// An outage from its first run to the return of the node, on the simulated server: each run is a file to read.
#[tokio::test(start_paused = true)]
async fn each_run_of_an_outage_is_a_file_to_read() {
    let described = yaml(&format!("Namespace impala: {{}}\n{}", one_of_forty()));
    let mut state = Objects::new(NOW.parse().expect("a moment"), objects(&described));
    state.objects.push(json!({"kind": "ConfigMap", "data": {},
        "metadata": {"namespace": "pod-reaper", "name": "pod-reaper-history", "uid": "history"}}));
    for node in state.objects.iter_mut().filter(|it| it["kind"] == "Node") {
        let name = node["metadata"]["name"].clone();
        node["status"]["nodeInfo"]["bootID"] = name;
    }
    for (run, minutes) in [("run", 0), ("later", 10), ("return", 60)] {
        state.now =
            NOW.parse::<Timestamp>().expect("a moment") + SignedDuration::from_mins(minutes);
        let is_back = run == "return";
        for object in &mut state.objects {
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            match (kind.as_str(), name) {
                ("Lease", name) if is_back || name != "node17" => {
                    object["spec"]["renewTime"] = json!(format!("{:.6}", state.now));
                }
                ("Node", "node17") if is_back => {
                    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T03:41:00Z"});
                    object["status"]["conditions"] = json!([ready]);
                    object["spec"]["taints"] = json!([]);
                }
                // The replacements are Ready, but for one.
                ("StatefulSet", "prometheus" | "rabbitmq" | "vault") if run == "later" => {
                    object["status"]["readyReplicas"] = object["spec"]["replicas"].clone();
                }
                _ => {}
            }
        }
        if is_back {
            // Its kubelet has ended what was left there.
            state
                .objects
                .retain(|it| it["kind"] != "Pod" || it["spec"]["nodeName"] != "node17");
        }
        let args = [
            "pod-reaper",
            "--yes",
            "--exit-on-manual",
            "--cluster-name=prod-eu",
        ];
        let options = Cli::try_from_args(args.iter().map(Into::into)).expect("options");
        let settings = Settings::from(options);
        let server = Server::new(state);
        let (_signal, stop) = Stop::manual(settings.deadline);
        let cluster = Cluster::new(server.client(), stop.clone());
        let report = run_on(&cluster, &settings, false, &stop).await;
        state = server.lock().cluster.clone();
        let text = text::write(&report.expect("a report").document(), Screen::default());
        expect_file![format!("../data/golden/outage-{run}.txt")].assert_eq(&shortened(&text));
    }
}

const OUT_OF_SERVICE: &str =
    "spec: {taints: [{key: node.kubernetes.io/out-of-service, effect: NoSchedule}]}";

/// A run that sees the out-of-service taint on a NotReady node notes the node, and later runs read it until it is Ready without the taint.
#[tokio::test(start_paused = true)]
async fn a_taint_that_was_left_is_the_first_step() {
    let state = |of_node: &str| {
        let nodes = of_node.to_owned() + &node("ds02", true, "") + &node("ds03", true, "");
        format!(
            "{nodes}Namespace impala: {{}}\nConfigMap pod-reaper/pod-reaper-history: {{data: {{}}}}\n"
        )
    };
    let mut history = None;
    for (of_node, notes, takes_off, exit) in [
        (node("ds01", false, ""), 0, false, 0),
        (node("ds01", true, OUT_OF_SERVICE), 0, false, 0),
        (node("ds01", false, OUT_OF_SERVICE), 1, false, 0),
        (node("ds01", false, ""), 1, false, 0),
        (node("ds01", true, OUT_OF_SERVICE), 1, true, 5),
        (node("ds01", true, ""), 0, false, 0),
    ] {
        let described = yaml(&state(&of_node));
        let mut state = Objects::new(NOW.parse().expect("a moment"), objects(&described));
        if let Some(history) = history {
            state.objects.retain(|it| it["kind"] != "ConfigMap");
            state.objects.push(history);
        }
        let args = ["pod-reaper", "--yes", "--exit-on-manual"];
        let options = Cli::try_from_args(args.iter().map(Into::into)).expect("options");
        let settings = Settings::from(options);
        let server = Server::new(state);
        let (_signal, stop) = Stop::manual(settings.deadline);
        let cluster = Cluster::new(server.client(), stop.clone());
        let report = run_on(&cluster, &settings, false, &stop).await;
        let report = serde_json::to_value(report.expect("a report").report()).expect("JSON");
        assert_eq!(report["exitCode"], exit, "{of_node}: {report:#}");
        let first = &report["steps"][0];
        let command = first["command"].as_str().unwrap_or_default();
        let removes = "kubectl taint node ds01 node.kubernetes.io/out-of-service-";
        assert_eq!(command.ends_with(removes), takes_off, "{of_node}: {first}");
        let never = report["never"].to_string();
        let stays_off = of_node == node("ds01", false, OUT_OF_SERVICE);
        assert_eq!(
            never.contains("switch ds01 on"),
            stays_off,
            "{of_node}: {never}"
        );
        assert_eq!(report["history"]["nodes"], json!([]), "nothing was deleted");
        let map = server
            .lock()
            .cluster
            .history()
            .cloned()
            .expect("it is there");
        let data = map["data"].as_object().map_or(0, serde_json::Map::len);
        assert_eq!(data, notes, "{of_node}: {map}");
        history = Some(map);
    }
}

/// A PVC that somebody else's finalizer holds is named with it, before anybody deletes the PVC.
#[test]
fn a_finalizer_of_a_claim_is_named() {
    let held = "PersistentVolumeClaim impala/db-0: {volume: pv, metadata: {finalizers: [kubernetes.io/pvc-protection, topolvm.io/pvc]}}\n";
    let state = node("ds01", false, "")
        + &node("ds02", true, "")
        + &pod("ds01", "db-0", "uses: db-0")
        + "PersistentVolume pv: {on: ds01}\n"
        + held;
    let audit = reaper(&["--snapshot", "-", "--now", NOW, "--log-level", "off"]);
    let said = audit
        .input(saved(&format!("Namespace impala: {{}}\n{state}")))
        .run()
        .out;
    assert!(said.contains("finalizer topolvm.io/pvc"), "{said}");
}

/// With the out-of-service taint, the pod garbage collector ends whatever terminates on the node, so the line has it only if no rule would
/// keep anything there.
#[test]
fn the_taint_is_printed_only_where_nothing_is_kept() {
    // Only a pod that tolerates this can start elsewhere.
    let gpu = "spec: {taints: [{key: example.com/gpu, effect: NoSchedule}]}";
    let tolerates = "uses: net, spec: {tolerations: [{key: example.com/gpu, operator: Exists}]}";
    let moves = pod("ds01", "db-0", tolerates)
        + "PersistentVolume net: {claim: impala/net}\nVolumeAttachment csi: {node: ds01, volume: net}\n";
    let taints_beside = |elsewhere: &str, more: &str, options: &[&str]| {
        let others = node("ds02", true, elsewhere) + &node("ds03", true, elsewhere);
        let nodes = node("ds01", false, "") + &others;
        let said = page(&format!("{nodes}{moves}{more}"), options);
        assert!(said.contains("pod-reaper.io/confirmed-off="), "{said}");
        said.contains("node.kubernetes.io/out-of-service=nodeshutdown:NoSchedule")
    };
    let taints = |more: &str, options: &[&str]| taints_beside("", more, options);
    let with = |more: &str| pod("ds01", "other-0", more);
    // Kubernetes never evicts it.
    let active = |more: &str, spec: &str| {
        let spec = format!("spec: {{tolerations: [{{operator: Exists}}], {spec}}}");
        format!(
            "Pod impala/agent: {{node: ds01, grace: null, owner: DaemonSet agent, {spec}, {more}}}\n"
        )
    };
    let skip = "metadata: {annotations: {pod-reaper.io/skip: 'true'}}";
    let skip_until = "metadata: {annotations: {pod-reaper.io/skip: '2026-01-31T05:00:00Z'}}";
    let path = "containers: [{name: main, volumeMounts: [{name: host, mountPath: /data}]}], \
         volumes: [{name: host, hostPath: {path: /srv/data}}]";
    let held_by = |finalizer: &str| with(&format!("metadata: {{finalizers: [{finalizer}]}}"));
    let given_up = "PersistentVolume lv: {claim: impala/lv, on: ds01}\n\
         PersistentVolumeClaim impala/lv: {volume: lv, metadata: {deletionTimestamp: '2026-01-31T02:55:00Z', finalizers: [kubernetes.io/pvc-protection]}}\n";
    let of_job = "metadata: {finalizers: [batch.kubernetes.io/job-tracking, foregroundDeletion]}, owner: Job other";
    for (what, more) in [
        ("nothing else", String::new()),
        (
            "a disk of two machines",
            with("owner: VirtualMachineInstance vm"),
        ),
        ("a finalizer of Kueue", held_by("kueue.x-k8s.io/managed")),
        (
            "a finalizer of Argo Workflows",
            held_by("workflows.argoproj.io/status"),
        ),
        (
            "a finalizer of Slurm",
            held_by("scheduler.slinky.slurm.net/finalizer"),
        ),
        ("a pod of a Job", with(of_job)),
        (
            "a pod that is not due",
            "Pod impala/late-0: {node: ds01, grace: 30, overdue: 5}\n".to_owned(),
        ),
        (
            "a pod that is not evicted",
            "Pod impala/late-0: {node: ds01, grace: null, tolerates: 3600}\n".to_owned(),
        ),
        (
            "a pod that has ended",
            with(&format!("phase: Failed, {skip}")),
        ),
        ("an active pod", active("", "")),
        (
            "a static pod",
            active(
                "metadata: {annotations: {kubernetes.io/config.mirror: x}}",
                path,
            ),
        ),
        ("a pod elsewhere", pod("ds02", "other-0", skip)),
    ] {
        assert!(taints(&more, &[]), "{what}");
    }
    for (what, more) in [
        ("a pod is opted out", with(skip)),
        ("a pod is opted out for a time", with(skip_until)),
        ("an active pod is opted out", active(skip, "")),
        (
            "a pod that is not evicted is opted out",
            format!("Pod impala/late-0: {{node: ds01, grace: null, tolerates: 3600, {skip}}}\n"),
        ),
        (
            "a directory of the node",
            with(&format!("spec: {{{path}}}")),
        ),
        ("a volume on the node", local("ds01", "other-0", "disk")),
        (
            "a PVC was given up a moment ago",
            with("uses: lv") + given_up,
        ),
        ("a PVC was not read", with("uses: unknown")),
        ("an active pod uses a PVC", active("uses: unknown", "")),
        ("another finalizer", held_by("example.com/backup")),
        (
            "another finalizer beside",
            held_by("kueue.x-k8s.io/managed, example.com/backup"),
        ),
        (
            "a pod could not be read",
            "Pod impala/odd: {metadata: {uid: ''}}\n".to_owned(),
        ),
        (
            "pods of another namespace may not have been saved",
            "Namespace shop: {}\n".to_owned(),
        ),
    ] {
        assert!(!taints(&more, &[]), "{what}");
    }
    for (what, options) in [
        ("a kind that you keep", ["--manual-owner-kind", "DaemonSet"]),
        ("a namespace is left out", ["-n", "impala"]),
    ] {
        assert!(!taints(&active("", ""), &options), "{what}");
    }
    assert!(taints_beside(gpu, "", &[]));
    assert!(!taints_beside(gpu, &with(""), &[]), "a pod waits for room");
}

/// A cloud instance that is stopped can lose its disk. So a machine is reset, and not powered off, if pods left files there, also
/// for the question about another pod, or if the file may lack pods.
#[test]
fn a_machine_whose_disk_may_be_needed_is_reset() {
    let attached = node("ds01", false, "")
        + &node("ds02", true, "")
        + &pod("ds01", "web-0", "uses: net")
        + "PersistentVolume net: {claim: impala/net}\nVolumeAttachment csi: {node: ds01, volume: net}\n";
    let bound =
        "owner: ReplicaSet manager-58d, spec: {nodeSelector: {kubernetes.io/hostname: ds01}}";
    let bound = pod("ds01", "manager-58d-0", bound);
    for (more, is_reset) in [("", false), (&bound, true), ("Namespace shop: {}\n", true)] {
        let said = page(&format!("{attached}{more}"), &[]);
        let explain = reaper(&["explain", "web-0", "--snapshot=-", "--now", NOW]);
        let objects = format!("Namespace impala: {{}}\n{attached}{more}");
        let explained = explain.input(saved(&objects)).run().out;
        for said in [said, explained] {
            assert_eq!(said.contains("POWER IT OFF"), !is_reset, "{more}: {said}");
            assert_eq!(said.contains("reset it"), is_reset, "{more}: {said}");
        }
    }
}

/// Before anybody has looked at the members, no step for now deletes anything.
#[test]
fn members_are_looked_at_before_anything_is_deleted() {
    let said = page(&two_of_three_members(), &[]);
    let (now, later) = said.split_once("CAN WAIT").expect("steps that can wait");
    assert!(!now.contains("This deletes pods"), "{said}");
    assert!(!now.contains("confirmed-off"), "{said}");
    assert!(now.contains("each of s2, s3 at its console"), "{said}");
    for node in ["s2", "s3"] {
        let confirms = format!("--overwrite node {node} pod-reaper.io/confirmed-off=");
        assert!(later.contains(&confirms), "{said}");
        assert!(later.contains(&format!("/api/v1/nodes/{node}")), "{said}");
    }
    let (_, never) = later.split_once("NEVER").expect("what never to do");
    assert!(never.contains("upgrade a member that is Ready"), "{said}");
}

/// A page of held nodes has the command of the one that is looked at, and says that `explain` has that of each.
#[test]
fn explain_confirms_each_held_node_off() {
    let together = anywhere(7, 20, 1) + &pod("ds019", "on-ready", "");
    // Kubernetes evicts nothing while many nodes are NotReady.
    let breaker = anywhere(6, 9, 1).replace("grace: 30, overdue: 1200", "grace: null");
    for (held, cluster) in [(7, together), (6, breaker + &pod("ds000", "web", ""))] {
        let promise = "For the others: pod-reaper explain POD";
        let said = page(&cluster, &[]);
        let confirms = said.matches("pod-reaper.io/confirmed-off=").count();
        assert!(said.contains(promise) && confirms == 1, "{said}");
        let explained = |pod: &str| {
            let explain = ["explain", pod, "--snapshot", "-", "--now", NOW];
            let explain = reaper(&[&explain[..], &["--log-level", "off"]].concat());
            let explain = explain.input(saved(&format!("Namespace impala: {{}}\n{cluster}")));
            explain.run().out
        };
        for number in 0..held {
            let namespace = ["impala", "shop", "team-a"][number % 3];
            let said = explained(&format!("{namespace}/web-{number}"));
            let commands = said.lines().filter(|line| line.contains("confirmed-off="));
            let confirms = commands.filter(|line| line.contains(&format!(" ds00{number} ")));
            assert_eq!(confirms.count(), 1, "{said}");
            let seen = format!("If ds00{number} does not start, and you have SEEN it off");
            assert!(said.contains(&seen), "{said}");
            assert!(
                held == 6 || said.contains("], by a limit of the run"),
                "{said}"
            );
        }
        if held == 7 {
            let said = explained("impala/on-ready");
            assert!(!said.contains("confirmed-off="), "{said}");
        }
    }
}

/// The pods that a pod controls go with it: each place that counts what is deleted has them.
#[test]
fn the_pods_that_a_pod_owns_are_counted_with_it() {
    let owner =
        "{apiVersion: v1, kind: Pod, name: driver, uid: uid-impala-driver, controller: true}";
    let owned = |name: &str, of: &str| {
        let owner = owner.replace("impala-driver", of);
        format!(
            "Pod impala/{name}: {{node: ds02, grace: null, metadata: {{ownerReferences: [{owner}]}}}}\n"
        )
    };
    let nodes = node("ds01", false, "") + &node("ds02", true, "") + &node("ds03", true, "");
    let volume =
        "PersistentVolume net: {claim: impala/net, spec: {nfs: {server: s, path: /}, csi: null}}\n";
    let one = nodes
        + &pod("ds01", "driver", "uses: net")
        + volume
        + &owned("exec-1", "impala-driver")
        + &owned("other", "impala-another");
    let two = one.clone() + &owned("exec-2", "impala-driver");
    for (cluster, all, go, names) in [
        (&one, "2 PODS", "exec-1", "1 impala/driver exec-1"),
        (
            &two,
            "3 PODS",
            "exec-1, exec-2",
            "2 impala/driver exec-1, exec-2",
        ),
    ] {
        let said = page(cluster, &[]);
        for words in [
            &format!("THE NEXT RUN DELETES {all}."),
            &format!("force-deletes 1 pod (gone for good); with it goes what it owns: {go}."),
            &format!("DELETED WITH THEIR OWNER: {names}"),
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}

/// A pod can need you for several reasons, and each has its step.
#[test]
fn each_reason_of_a_pod_has_its_step() {
    let kept = local("ds01", "db-0", "data-db-0");
    let kept = kept.replace("labels:", "finalizers: [example.org/backup], labels:");
    let cluster = node("ds01", false, "") + &kept + &node("ds02", true, "");
    let said = page(&cluster, &["--manual-owner-kind=StatefulSet"]);
    for words in [
        "give up the data of impala/db-0: delete PVC data-db-0.",
        // Its first reason is another one.
        "impala/db-0 [owner-kind]: see why (pod-reaper explain POD).",
        "impala/db-0 is held by finalizer example.org/backup: repair its controller, possibly on ds01.",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// An unrelated read that failed, or the breaker, never hides that something needs you.
#[test]
fn no_failure_hides_that_something_needs_you() {
    let unread = "Pod impala/odd: {metadata: {uid: ''}}\n";
    let alive = node("ds01", true, "") + &node("ds02", true, "");
    let kept = local("ds03", "db-0", "data-db-0");
    let dead = |name| node(name, false, "");
    let one = dead("ds03") + &kept + &alive;
    let outage = dead("ds04") + &dead("ds05") + &pod("ds04", "web-0", "") + &one;
    for (cluster, without) in [(one + unread, 3), (outage, 4)] {
        let audit = |more: &[&str]| {
            let args = ["--snapshot", "-", "--now", NOW, "--log-level", "off"];
            let audit = reaper(&[&args[..], more].concat());
            audit.input(saved(&format!("Namespace impala: {{}}\n{cluster}")))
        };
        audit(&[]).run().exits(without);
        audit(&["--exit-on-manual"]).run().exits(5);
    }
}

/// What cannot wait rings, before the first delete and after it; what needs you and can wait does not.
#[test]
fn only_what_cannot_wait_rings() {
    let nodes = node("ds01", false, "") + &node("ds02", true, "") + &node("ds03", true, "");
    let set = |ready: usize| {
        format!(
            "StatefulSet impala/db: {{apiVersion: apps/v1, spec: {{replicas: 3, volumeClaimTemplates: [{{metadata: {{name: data}}}}]}}, \
             status: {{replicas: 3, readyReplicas: {ready}}}}}\n"
        )
    };
    let on_disk = |ready: usize| local("ds01", "db-0", "data-db-0") + &set(ready);
    let used = pod("ds01", "db-0", "uses: net") + &set(2);
    let volume = "PersistentVolume net: {claim: impala/net}\n";
    let other = "VolumeAttachment csi-0: {node: ds02, volume: other}\n";
    let share = used.clone()
        + "PersistentVolume net: {claim: impala/net, spec: {nfs: {server: s, path: /}, csi: null, accessModes: [ReadWriteMany]}}\n"
        + other;
    let attached = used + volume + "VolumeAttachment csi: {node: ds01, volume: net}\n";
    let later = attached.replace("overdue: 1200", "overdue: 60");
    let confirmed =
        "metadata: {annotations: {pod-reaper.io/confirmed-off: '2026-01-31T02:30:00Z'}}";
    let off = node("ds01", false, confirmed) + &node("ds02", true, "") + &node("ds03", true, "");
    let old = nodes.replace("since: 1800, renewed: 1860", "since: 7300, renewed: 7360");
    let leftover = pod("ds01", "web-58d-0", "owner: ReplicaSet web-58d");
    for (what, state, now, exit) in [
        ("a leftover", nodes.clone() + &leftover, "NOW Nothing", 0),
        (
            "2 of 3 are Ready",
            nodes.clone() + &on_disk(2),
            "NOW Nothing",
            0,
        ),
        (
            "1 of 3 is Ready",
            nodes.clone() + &on_disk(1),
            "NOW 1 Look at",
            5,
        ),
        (
            "2 of 4 are Ready",
            nodes.clone() + &on_disk(2).replace("replicas: 3", "replicas: 4"),
            "NOW 1 Look at",
            5,
        ),
        (
            "for more than two hours",
            old + &on_disk(1),
            "NOW 1 Look at",
            0,
        ),
        (
            "a volume moves",
            nodes.clone() + &attached,
            "NOW 1 Look at",
            5,
        ),
        (
            "a volume will move",
            nodes.clone() + &later,
            "ACT BEFORE 03:08Z",
            5,
        ),
        ("the machine is off", off + &attached, "NOW Nothing", 0),
        (
            "a taint was left",
            node("ds01", true, OUT_OF_SERVICE) + "Pod impala/web: {node: ds01, grace: null}\n",
            "NOW 1 Take the out-of-service taint off ds01 now",
            5,
        ),
        ("a share", nodes.clone() + &share, "NOW 1 Look at", 5),
        (
            "something was not read",
            nodes + "Pod impala/odd: {metadata: {uid: ''}}\n" + &leftover,
            "NOW 1 Not read",
            5,
        ),
    ] {
        let said = page(&state, &[]);
        assert!(said.contains(now), "{what}: {said}");
        let audit = reaper(&[
            "--snapshot=-",
            "--now",
            NOW,
            "--log-level=off",
            "--exit-on-manual",
            "--output=json",
        ]);
        let audit = audit.input(saved(&format!("Namespace impala: {{}}\n{state}")));
        let ended = audit.run();
        assert_eq!(ended.code, exit, "{what}");
        let report = ended.report();
        let mut steps = report["steps"].as_array().expect("a list").iter();
        assert_eq!(steps.any(|step| step["rings"] == true), exit == 5, "{what}");
    }
}

/// A count that no set has is compared with others like any count.
#[test]
fn counts_of_any_size_are_compared() {
    let most = u64::MAX;
    let mut state = node("ds01", false, "") + &node("ds02", true, "") + &node("ds03", true, "");
    for (name, ready) in [("a", most), ("b", most - 1), ("c", most / 2)] {
        let status = format!("status: {{replicas: {most}, readyReplicas: {ready}}}");
        state += &format!(
            "StatefulSet impala/{name}: {{apiVersion: apps/v1, spec: {{replicas: {most}}}, {status}}}\n"
        );
        let uses = format!("uses: {name}, owner: StatefulSet {name}");
        state += &pod("ds01", &format!("{name}-0"), &uses);
        state += &format!("PersistentVolume pv-{name}: {{claim: impala/{name}, on: ds01}}\n");
    }
    let said = page(&state, &[]);
    let least = format!("impala/c-0 ({}/{most} pods Ready)", most / 2);
    assert!(said.contains(&least), "{said}");
}

/// A volume that nothing attaches has its second writer at the delete, and the next run still says so.
#[test]
fn a_share_has_its_second_writer_at_the_delete() {
    let attached = r#"\"attached\":true"#;
    let shared = r#"\"attached\":false,\"shared\":true"#;
    let down = remembered("since: 1800, renewed: 1860");
    assert!(down.contains(attached), "{down}");
    let said = page(&down.replace(attached, shared), &[]);
    assert!(said.contains("Since 02:40Z, other nodes"), "{said}");
}

/// A run has deleted all that it may: nothing is left to judge, and the machine is still to be looked at, until it is confirmed off.
#[test]
fn a_machine_is_looked_at_after_the_last_delete() {
    let pod = "Pod vault/vault-0: {node: ds01, grace: 30, overdue: 700}\n";
    let off = "metadata: {annotations: {pod-reaper.io/confirmed-off: '2026-01-31T02:30:00Z'}}";
    let down = "since: 1800, renewed: 1860";
    for (node, now, exit) in [
        (
            down,
            "NOW 1 See that the machine is off: ds01. Since 02:46Z, other nodes",
            5,
        ),
        (
            &format!("{down}, {off}"),
            "NOW 1 Not Ready again since pods were deleted",
            0,
        ),
    ] {
        let other = "Pod vault/other: {node: ds02, grace: null}\n";
        let state = remembered(node).replace(pod, other);
        let audit = reaper(&[
            "--snapshot=-",
            "--now",
            NOW,
            "--log-level=off",
            "--exit-on-manual",
        ]);
        let run = audit.input(saved(&state)).run().exits(exit);
        let said = run.out.split_whitespace().join(" ");
        assert!(said.contains(now), "{said}");
    }
}

/// Nodes that failed together are told from the Ready ones by what only they have, and all of them: at most two labels.
#[test]
fn labels_tell_nodes_that_failed_together_from_the_others() {
    let zone = "topology.kubernetes.io/zone: z, failure-domain.beta.kubernetes.io/zone: z";
    for (failed, ready, expected) in [
        (
            "rack: r2",
            "rack: r1",
            "All of them, and no Ready node, have rack=r2.",
        ),
        (
            "rack: r2",
            "rack: r2",
            "No label tells them from the Ready nodes.",
        ),
        (
            &format!("shelf: left, row: one, {zone}"),
            "row: one",
            "All of them, and no Ready node, have topology.kubernetes.io/zone=z and shelf=left.",
        ),
    ] {
        let nodes = (0..9).map(|number| {
            let labels = if number < 3 { failed } else { ready };
            let labels = format!("metadata: {{labels: {{{labels}}}}}");
            node(&format!("ds{number}"), number >= 3, &labels)
        });
        let state = nodes.collect::<String>() + &pod("ds0", "web-0", "");
        let said = page(&state, &[]);
        assert!(said.contains(expected), "{expected}: {said}");
        let file = [
            "explain",
            "impala/web-0",
            "--snapshot=-",
            "--now",
            NOW,
            "--log-level=off",
        ];
        let explained = reaper(&file).input(saved(&state)).run().out;
        assert!(explained.contains(expected), "{expected}: {explained}");
    }
}

/// A pod on a machine that is alive has its Ready count, which tells whether it can wait; and a sign of life that is some minutes old
/// ends, if nothing follows.
#[test]
fn a_machine_that_is_alive_is_judged_by_what_is_ready() {
    let ready = node("ds02", true, "") + &node("ds03", true, "");
    let set = |ready: usize| {
        format!(
            "StatefulSet impala/db: {{apiVersion: apps/v1, spec: {{replicas: 3}}, status: {{replicas: 3, readyReplicas: {ready}}}}}\n"
        )
    };
    let state = |node: &str, ready_pods| {
        format!("Node ds01: {{{node}}}\n{ready}")
            + &pod("ds01", "db-0", "owner: StatefulSet db")
            + &set(ready_pods)
    };
    let alive = "ready: 'False', since: 1800, renewed: 3";
    let some = page(&state(alive, 2), &[]);
    let none = page(&state(alive, 0), &[]);
    assert!(
        some.contains("impala/db-0 (2/3 pods Ready) can still run on ds01.")
            && some.contains("NOW Nothing"),
        "{some}"
    );
    assert!(
        none.contains("(0/3 pods Ready)") && none.contains("NOW 1 Log in to ds01"),
        "{none}"
    );
    let old = page(&state("since: 1800, renewed: 300", 2), &[]);
    let expected = "With these options, a run deletes impala/db-0 from 03:06Z on, unless more is heard of ds01.";
    assert!(old.contains(expected), "{old}");
}

/// A StatefulSet that is not Ready again because its volume does not attach or detach: the attachment, its node, and what shows
/// why. A volume of another pod explains nothing.
#[test]
fn an_attachment_that_fails_explains_a_set_that_is_not_ready_again() {
    let templates = "{replicas: 1, volumeClaimTemplates: [{metadata: {name: data}}]}";
    let down = remembered("since: 1800, renewed: 1860").replace(
        "git/gitea: {apiVersion: apps/v1, spec: {replicas: 1}",
        &format!("git/gitea: {{apiVersion: apps/v1, spec: {templates}"),
    );
    assert!(down.contains(templates), "{down}");
    let down = down + "PersistentVolume pv-git: {claim: git/data-gitea-0}\n";
    let error = "Error: {message: rpc}";
    let shows = "kubectl describe volumeattachment csi";
    for (deleted, attachment, expected) in [
        (
            "02:40:00",
            format!("node: ds02, volume: pv-git, status: {{attached: false, attach{error}}}"),
            Some("does not attach to ds02. Do not delete it: see its error."),
        ),
        (
            "02:58:00",
            format!("node: ds01, volume: pv-git, status: {{attached: true, detach{error}}}"),
            Some("does not detach from ds01. Do not delete it: see its error."),
        ),
        (
            "02:54:00",
            "node: ds01, volume: pv-git".to_owned(),
            Some("does not detach from ds01. Do not delete it: see its error."),
        ),
        ("02:54:01", "node: ds01, volume: pv-git".to_owned(), None),
        (
            "02:40:00",
            "node: ds02, volume: pv-git, status: {attached: false}".to_owned(),
            None,
        ),
        (
            "02:40:00",
            format!("node: ds02, volume: other, status: {{attached: false, attach{error}}}"),
            None,
        ),
    ] {
        let state = format!("{down}VolumeAttachment csi: {{{attachment}}}\n");
        let said = page(&state.replace("02:40:00", deleted), &[]);
        let hangs = "git/gitea 0/1 Ready: VolumeAttachment csi ";
        match expected {
            Some(what) => assert!(
                said.contains(&format!("{hangs}{what} {shows}")),
                "{what}: {said}"
            ),
            None => assert!(
                !said.contains(hangs) && said.contains("Not Ready again"),
                "{attachment}: {said}"
            ),
        }
    }
}

/// Of a pod that has not started and waits for nothing that is known, `explain` says where to look, and what shows that another
/// machine still has its volume.
#[test]
fn a_pod_that_has_not_started_has_its_cause_in_its_events() {
    let nodes = node("ds01", true, "") + &node("ds02", true, "");
    let alive = "\"is still being used\" (RBD)";
    for (uses, names_storage) in [("uses: data", true), ("spec: {}", false)] {
        let state = format!(
            "{nodes}Namespace impala: {{}}\nPersistentVolume pv: {{claim: impala/data}}\nVolumeAttachment csi: {{node: ds01, volume: other}}\n\
             Pod impala/web-1: {{node: ds02, grace: null, phase: Pending, {uses}}}\n"
        );
        let ask = ["explain", "impala/web-1", "--snapshot=-", "--now", NOW];
        let said = reaper(&ask).input(saved(&state)).run().exits(0).out;
        let said = said.split_whitespace().join(" ");
        assert!(said.contains("It has not started"), "{said}");
        assert!(said.contains("see its events."), "{said}");
        assert_eq!(said.contains(alive), names_storage, "{said}");
    }
}

/// A moment that lies ahead is not said as if it were over.
#[test]
fn a_volume_that_moves_later_has_not_moved() {
    let down = remembered("since: 1800, renewed: 1860");
    for (deleted, expected) in [
        ("02:53:59", "Since 02:59Z, other nodes"),
        ("02:54:00", "Since 03:00Z, other nodes"),
        ("02:54:01", "before 03:00Z"),
        ("02:58:00", "before 03:04Z"),
    ] {
        let said = page(&down.replace("02:40:00", deleted), &[]);
        assert!(said.contains(expected), "{deleted}: {said}");
        let over = said.contains("Since 03:0");
        assert_eq!(over, expected == "Since 03:00Z, other nodes", "{said}");
    }
}

/// Whether the volumes of a dead node move is not known of a file without VolumeAttachments.
#[test]
fn attachments_that_were_not_read_are_not_none() {
    let state = |more: &str| {
        let ready = node("ds02", true, "") + &node("ds03", true, "");
        let stuck = pod("ds01", "web-0", "uses: net");
        node("ds01", false, "")
            + &ready
            + &stuck
            + "PersistentVolume net: {claim: impala/net}\n"
            + more
    };
    let said = page(&state(""), &[]);
    for expected in [
        "DATA Not known: the VolumeAttachments of ds01 were not read (the file has no volumeattachments: they were not saved, or there are none). Assume that the volumes of these pods move: impala/web-0",
        "NOW 1 Look at the console of ds01 before the next run.",
        "volumeattachments (which volumes other nodes get)",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    // Another volume is attached, so that the list was read.
    let said = page(
        &state("VolumeAttachment csi: {node: ds02, volume: other}\n"),
        &[],
    );
    assert!(
        !said.contains("Assume that") && said.contains("storage that nothing attaches"),
        "{said}"
    );
    // Nothing attaches a volume of the node itself.
    let local = state("").replace(
        "{claim: impala/net}",
        "{claim: impala/net, on: ds01, spec: {local: {path: /d}}}",
    );
    let said = page(&local, &[]);
    assert!(
        !said.contains("Not known") && !said.contains("(which volumes other nodes get)"),
        "{said}"
    );
}

/// A new pod whose data is on a node that is silent or gone has no other way back.
#[test]
fn a_pod_that_waits_for_the_disk_of_a_dead_node_cannot_wait() {
    for (on, gone) in [("ds01", false), ("gone", true)] {
        let ready = node("ds02", true, "") + &node("ds03", true, "");
        let volume =
            format!("{{claim: impala/data-db-0, on: {on}, spec: {{local: {{path: /d}}}}}}");
        let state = node("ds01", gone, "")
            + &ready
            + "Pod impala/db-0: {node: null, grace: null, phase: Pending, uses: data-db-0}\n"
            + &format!("PersistentVolume pv: {volume}\n");
        let said = page(&state, &[]);
        assert!(
            said.contains("NOW 1 impala/db-0 is Pending: volume pv"),
            "{said}"
        );
        let never = "NEVER delete the PVC of a pod that waits for a node";
        assert!(said.contains(never), "{said}");
    }
}

/// The step of a pod that keeps a directory deletes it by hand, so NEVER leaves that one out.
#[test]
fn never_forbids_no_step_of_the_page() {
    let nodes = node("ds01", false, "") + &node("ds02", true, "") + &node("ds03", true, "");
    let path = "spec: {containers: [{name: main, volumeMounts: [{name: host, mountPath: /data}]}], \
         volumes: [{name: host, hostPath: {path: /srv/data}}]}, owner: StatefulSet host";
    let by_hand = nodes + &pod("ds01", "host-0", path);
    let said = page(&by_hand, &[]);
    assert!(!said.contains("force-delete pods"), "{said}");
    let said = page(&(by_hand + &local("ds01", "db-0", "data-db-0")), &[]);
    let never = "NEVER strip a finalizer, or force-delete pods that need you except by a step.";
    assert!(said.contains(never), "{said}");
}

/// Anyone may write the annotation of a static pod's copy. The step that names the
/// file of a static pod is for no pod that a finalizer holds.
#[test]
fn a_finalizer_is_said_of_a_pod_that_claims_to_be_static() {
    let claims =
        "metadata: {annotations: {kubernetes.io/config.mirror: x}, finalizers: [example.com/mine]}";
    let ready = node("ds02", true, "") + &node("ds03", true, "");
    let state = ready
        + &format!(
            "Pod impala/kube-apiserver-ds02: {{node: ds02, grace: 0, overdue: 1200, {claims}}}\n"
        );
    let said = page(&state, &["--all"]);
    assert!(said.contains("see who set the finalizer"), "{said}");
    assert!(!said.contains("/etc/kubernetes/manifests"), "{said}");
}

/// A history with the pods of a hundred `StatefulSets` of a tenant still asks for the set of another namespace.
#[test]
fn a_tenants_sets_take_the_place_of_no_other() {
    let mut pods = (0..100)
        .map(|number| format!("aaa/s{number}-0"))
        .collect_vec();
    pods.push("git/gitea-0".to_owned());
    let pods = pods.iter().map(|pod| {
        let (namespace, name) = pod.split_once('/').expect("a namespace");
        json!({"namespace": namespace, "name": name, "ownerKind": "StatefulSet", "attached": true, "at": "2026-01-31T02:40:00Z"})
    });
    let note = json!({"version": 1, "node": "ds01", "bootID": "boot-1", "firstReap": "2026-01-31T02:40:00Z",
        "lastReap": "2026-01-31T02:40:00Z", "pods": pods.collect_vec(), "more": 0, "told": null});
    let history = json!({"data": {"uid-ds01": note.to_string()}});
    let state = remembered("since: 1800, renewed: 1860");
    let (before, _) = state.split_once("ConfigMap ").expect("the history");
    let said = page(
        &format!("{before}ConfigMap pod-reaper/pod-reaper-history: {history}\n"),
        &[],
    );
    let names =
        "of pods deleted earlier: aaa/s0-0 (StatefulSet), git/gitea-0 (StatefulSet), aaa/s1-0";
    for expected in ["since pods were deleted: git/gitea 0/1", names] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

/// Whether a StatefulSet has other Ready pods is not known of a file without one.
#[test]
fn sets_that_were_not_read_are_named() {
    let ready = node("ds02", true, "") + &node("ds03", true, "");
    let state = node("ds01", false, "") + &ready + &local("ds01", "db-0", "data-db-0");
    let said = page(&state, &[]);
    for expected in [
        "DATA On the disk of ds01: impala/db-0 (Ready pods not known).",
        "statefulsets (how many other pods are Ready)",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

/// One cause of many failed reads is one step, and a page has at most twelve: what cannot wait is first, and the last names the rest.
#[test]
fn a_page_has_at_most_twelve_steps() {
    let ready = node("ds02", true, "") + &node("ds03", true, "");
    let mut state = node("ds01", false, "") + &ready + &pod("ds01", "web-0", "");
    for number in 0..20 {
        state += &format!("Pod impala/odd-{number}: {{metadata: {{uid: ''}}}}\n");
        let held = format!("metadata: {{finalizers: [example.com/{number}]}}");
        state += &pod("ds01", &format!("held-{number}"), &held);
    }
    let said = page(&state, &[]);
    for expected in [
        "NOW 1 Bring ds01 back",
        " 2 Not read: pod impala/odd-0, and 19 more like it: ",
        " 3 impala/held-0",
        " 12 Then run pod-reaper again, and do what is left over: steps for now 11, others 0.",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(!said.contains(" 13 "), "{said}");
}

/// A run is promised only for the pods that it will reap, and `explain` foresees what a run does.
#[test]
fn no_run_is_promised_for_a_pod_that_will_need_you() {
    let pods = pod("ds01", "web-0", "") + &local("ds01", "db-0", "data-db-0");
    let state = node("ds01", false, "")
        + &node("ds02", true, "")
        + &node("ds03", true, "")
        + &pods.replace("overdue: 1200", "overdue: 300")
        + "Pod impala/late-0: {node: ds01, grace: null}\n";
    let said = page(&state, &[]);
    let promise =
        "With these options, a run force-deletes 1 pod (restarts elsewhere) from 03:04Z on";
    assert!(said.contains(promise), "{said}");
    let said = |args: &[&str]| {
        let file = ["--snapshot=-", "--now", NOW, "--log-level=off"];
        let run = reaper(&[args, &file].concat()).input(saved(&state));
        run.run().out
    };
    let report = |args: &[&str]| serde_json::from_str::<Value>(&said(args)).expect("JSON");
    let run = report(&["--output=json"]);
    let all = ["pods", "notEvicted"].map(|pods| run[pods].as_array().expect("pods"));
    for (name, reason) in [
        ("web-0", "stuck-on-not-ready-node"),
        ("db-0", "local-volume"),
        ("late-0", "stuck-on-not-ready-node"),
    ] {
        let explained = report(&["explain", &format!("impala/{name}"), "--output=json"]);
        let foreseen = &explained["pods"][0]["foreseen"];
        let mut of_run = all.into_iter().flatten().filter(|pod| pod["name"] == name);
        assert_eq!(foreseen["reason"], reason, "{explained}");
        assert_eq!(Some(foreseen), of_run.next().map(|pod| &pod["foreseen"]));
    }
    let web = said(&["explain", "impala/web-0"]);
    assert!(
        web.contains("A RUN DELETES IT FROM 03:04Z ON  [not-overdue]"),
        "{web}"
    );
    let db = said(&["explain", "impala/db-0"]);
    assert!(
        db.contains("NEEDS YOU FROM 03:04Z ON  [not-overdue]"),
        "{db}"
    );
    assert!(!db.contains("A run can delete it"), "{db}");
    let words = db.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("From 03:04Z on: No other node is known to reach its storage"),
        "{db}"
    );
}

/// Verbs agree with the number of pods. A controller of a finalizer may still need the machine.
#[test]
fn verbs_agree_with_their_pods() {
    let held = "metadata: {finalizers: [example.com/backup]}";
    let ready = node("ds02", true, "") + &node("ds03", true, "");
    let one = node("ds01", false, "") + &ready + &pod("ds01", "db-0", held);
    assert!(!page(&one, &[]).contains("DATA None"));
    let said = page(&one, &[]);
    assert!(said.contains("impala/db-0 is held by finalizer"), "{said}");
    let said = page(&(one + &pod("ds01", "db-1", held)), &[]);
    assert!(said.contains("impala/db-1 are held by finalizer"), "{said}");
}

/// Pods that hang although every node is Ready, and one that waits for them: the page with `--all`, and `explain`. Nothing
/// about them rings.
#[test]
fn what_hangs_on_ready_nodes_is_a_file_to_read() {
    let ended = "status: {containerStatuses: [{state: {terminated: {finishedAt: '2026-01-31T00:41:00Z'}}}]}";
    let runs = "status: {containerStatuses: [{state: {running: {}}}]}";
    let held = "grace: 0, overdue: 7200, metadata: {finalizers: [example.com/backup]}";
    let wk05 = "status: {addresses: [{type: InternalIP, address: 10.20.3.5}]}";
    let cluster = [
        node("wk05", true, wk05),
        node("wk06", true, ""),
        node("wk07", false, ""),
        "Namespace metastore: {}\nNamespace git: {}\n".to_owned(),
        "StatefulSet metastore/postgres: {apiVersion: apps/v1, spec: {replicas: 1}, status: {readyReplicas: 0}}\n".to_owned(),
        "StatefulSet impala/web: {apiVersion: apps/v1, spec: {replicas: 9}, status: {readyReplicas: 8}}\n".to_owned(),
        format!("Pod metastore/postgres-0: {{node: wk05, grace: 30, overdue: 8340, uses: data-postgres-0, {ended}}}\n"),
        "PersistentVolume pg: {claim: metastore/data-postgres-0}\nVolumeAttachment pg: {node: wk05, volume: pg}\n".to_owned(),
        format!("Pod impala/web-1: {{node: wk05, grace: 30, overdue: 4000, {runs}}}\n"),
        format!("Pod impala/web-2: {{node: wk06, grace: 30, overdue: 4100, {runs}}}\n"),
        format!("Pod impala/web-3: {{node: wk06, grace: 604800, overdue: -500000, {runs}}}\n"),
        format!("Pod impala/web-4: {{node: wk06, {held}}}\n"),
        "Pod impala/web-5: {node: wk99, grace: 30, overdue: 90000}\n".to_owned(),
        "Pod git/gitea-0: {node: wk06, grace: null, phase: Pending, uses: git}\n".to_owned(),
        "PersistentVolume git: {claim: git/git}\n".to_owned(),
        "VolumeAttachment csi-3fa: {node: wk07, volume: git, status: {detachError: {message: rpc}}}\n".to_owned(),
    ]
    .concat();
    for (name, args, code) in [
        // Gitea waits for a volume that is attached to a node which is down.
        ("all", &["--all", "--exit-on-manual"][..], 5),
        ("explain", &["explain", "metastore/postgres-0"], 0),
        ("explain-waiting", &["explain", "git/gitea-0"], 0),
    ] {
        let audit = ["--snapshot", "-", "--now", NOW, "--log-level", "off"];
        let audit = reaper(&[args, &audit].concat());
        let audit = audit.input(saved(&format!("Namespace impala: {{}}\n{cluster}")));
        let report = audit.run().exits(code).out;
        expect_file![format!("../data/golden/hangs-{name}.txt")].assert_eq(&shortened(&report));
    }
}
