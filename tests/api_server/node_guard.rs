//! The `node-guard` component: what it refuses, what it permits while nodes change, how a run proves it, and, on demand, how much
//! it slows requests down.

use crate::{prelude::*, support::samples::status_patch};
use pod_reaper::cluster::NODE_REFUSAL;

const LEAF_REFUSAL: &str =
    "pod-reaper's node guard lets it touch no pod of a leaf node or of a node that is opted out";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

fn message(answer: &Value) -> &str {
    answer["message"].as_str().unwrap_or_default()
}

/// Installs `cronjob/` with the component, and waits until both guards are in force. A node `ready-1` must exist.
pub fn install(cluster: &ControlPlane) {
    let file = cluster.dir.join("node-guard.yaml");
    fs::write(&file, kustomized("cronjob", &["node-guard"], "")).expect("our folder");
    let file = file.display().to_string();
    kubectl(cluster, &["apply", "--warnings-as-errors", "-f", &file]);
    own_pod(cluster, "pod-reaper");
    until("the guard is in force", || {
        is_guarded(cluster, ACCOUNT, "pod-reaper")
    });
    make(cluster, "Pod default/ends: {node: ready-1, grace: 600}");
    let ends = pod_path("default", "ends");
    until("the node guard is in force", || {
        rehearsed(ACCOUNT, cluster, &ends).1.ends_with(NODE_REFUSAL)
    });
}

/// Creates NotReady nodes that the program spares because of their metadata: leaf nodes, each with one node marker, and nodes
/// that are opted out. Returns their names.
fn spared_nodes(cluster: &ControlPlane) -> Vec<String> {
    let mut marks = yaml(include_str!("../data/leaf-marks.yaml"));
    let marks = marks.as_array_mut().expect("marks");
    for place in ["labels", "annotations"] {
        for value in ["true", ""] {
            marks.push(json!({"metadata": {place: {"pod-reaper.io/skip": value}}}));
        }
    }
    let no_machine = yaml("{status: {nodeInfo: {machineID: '', systemUUID: ''}}}");
    let marks = marks.drain(..).enumerate();
    let named = marks.map(|(at, mark)| (format!("spared-{at}"), mark));
    let named = named.chain([("kosmos-far".to_owned(), no_machine)]);
    named
        .map(|(name, mark)| {
            make(cluster, &format!("Node {name}: {mark}"));
            name
        })
        .collect()
}

#[test]
fn a_pod_whose_node_is_ready_a_leaf_node_or_opted_out_is_out_of_reach_and_every_other_is_not() {
    let cluster = one_dead();
    make(
        &cluster,
        "
        Node false: {ready: 'False', renewed: 3}
        Node bare: {ready: null, renewed: 3}
        Node skip-false: {metadata: {annotations: {pod-reaper.io/skip: 'false'}}}
        Node kosmos-machine: {status: {nodeInfo: {machineID: '1'}}}
        ",
    );
    cluster.create(
        "/api/v1/nodes",
        yaml("{apiVersion: v1, kind: Node, metadata: {name: empty}}"),
    );
    let spared = spared_nodes(&cluster);
    install(&cluster);
    grant(&cluster, "stolen", ACCOUNT, ALL_OF_PODS);
    let job = |node: &str, name: &str| {
        let job = "{node: 'NODE', owner: Job import, grace: 600, metadata: {
            labels: {batch.kubernetes.io/job-name: import}, finalizers: [batch.kubernetes.io/job-tracking]}}";
        let job = job.replace("NODE", node);
        make(&cluster, &format!("Pod apps/{name}: {job}")).remove(0)
    };
    let status = |name: &str| format!("{}/status", pod_path("apps", name));
    let reached = "dead false bare empty gone skip-false kosmos-machine";
    let reached = reached.split(' ').map(|node| (node, ""));
    let spared = spared.iter().map(|node| (node.as_str(), LEAF_REFUSAL));
    let ready = ["ready-1", "ready-2"].map(|node| (node, NODE_REFUSAL));
    for (node, refusal) in reached.chain(spared).chain(ready) {
        let pod = job(node, node);
        for (method, path, body) in [
            ("DELETE", pod_path("apps", node), dry_run()),
            (
                "DELETE",
                format!("/api/v1/namespaces/apps/pods?fieldSelector=metadata.name%3D{node}"),
                dry_run(),
            ),
            (
                "PATCH",
                format!("{}?dryRun=All", status(node)),
                status_patch(&pod, json!({})),
            ),
            ("PATCH", status(node), status_patch(&pod, json!({}))),
            (
                "DELETE",
                pod_path("apps", node),
                yaml("{gracePeriodSeconds: 0, propagationPolicy: Background}"),
            ),
        ] {
            let mut said = (0, Value::Null);
            until("the rights are there", || {
                said = as_user(ACCOUNT, &cluster, method, &path, &body);
                !message(&said.1).contains("cannot ")
            });
            let what = format!("{node}: {method} {path}: {}", message(&said.1));
            assert_eq!(said.0, if refusal.is_empty() { 200 } else { 403 }, "{what}");
            assert!(message(&said.1).ends_with(refusal), "{what}");
        }
    }
    // The form of the probe permits nothing else. The guard still refuses such a delete that is not a dry run, and the node guard
    // ignores dry runs of other accounts.
    let alive = pod_path("apps", "alive");
    make(
        &cluster,
        "{Pod apps/alive: {node: ready-1, grace: null}, Pod apps/alive-too: {grace: null}}",
    );
    let orphan = yaml("{gracePeriodSeconds: 0, propagationPolicy: Orphan}");
    let collection = "/api/v1/namespaces/apps/pods".to_owned();
    // If a request has a body, the API server does not read the query.
    let marked = format!("{alive}?dryRun=All");
    for path in [&alive, &marked, &pod_path("apps", "alive-too"), &collection] {
        let (code, answer) = as_user(ACCOUNT, &cluster, "DELETE", path, &orphan);
        assert!(
            code == 403 && message(&answer).contains("guard"),
            "{path}: {answer}"
        );
        assert!(cluster.try_get(&alive).is_some());
    }

    // The node guard restricts no other account.
    let service_accounts = [
        "system:serviceaccounts",
        "system:serviceaccounts:kube-system",
    ];
    grant(
        &cluster,
        "gitops",
        "gitops",
        &yaml("[{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]"),
    );
    let others: [(&str, &[&str]); 4] = [
        ("admin", &["system:masters"]),
        (
            "system:serviceaccount:kube-system:node-controller",
            &service_accounts,
        ),
        ("system:node:ready-1", &["system:nodes"]),
        ("gitops", &[]),
    ];
    for (user, groups) in others {
        let ask = |method: &str, path: &str, body: &Value| {
            as_member(&cluster, user, groups, (method, path), body).0
        };
        until("the rights are there", || {
            ask("DELETE", &pod_path("apps", "ready-1"), &dry_run()) == 200
        });
        let failed = yaml("{status: {phase: Failed}}");
        assert_eq!(
            ask(
                "PATCH",
                &format!("{}?dryRun=All", status("ready-1")),
                &failed
            ),
            200,
            "{user}"
        );
    }
    // This also holds if no node is left, as in a cluster that was scaled to zero.
    let nodes = cluster.get("/api/v1/nodes");
    for node in nodes["items"].as_array().expect("nodes") {
        let name = str_of(&node["metadata"]["name"]);
        cluster.delete(&node_path(name), json!({}));
    }
    let on_ready = pod_path("apps", "ready-1");
    until("no node is left for the account", || {
        rehearsed(ACCOUNT, &cluster, &on_ready).0 == 200
    });
    for (user, groups) in &others[..2] {
        assert_eq!(
            as_member(&cluster, user, groups, ("DELETE", &alive), &dry_run()).0,
            200,
            "{user}"
        );
    }
}

/// While nodes are created, deleted and changed, each response is one of the two, and the last state decides.
#[test]
fn it_follows_the_nodes() {
    let cluster = one_dead();
    install(&cluster);
    make(&cluster, "Pod apps/stuck: {grace: 600}");
    let ask = || {
        let (code, says) = rehearsed(ACCOUNT, &cluster, STUCK);
        assert!(
            code == 200 || code == 403 && says.ends_with(NODE_REFUSAL),
            "{code} {says}"
        );
        code
    };
    assert_eq!(ask(), 200);
    thread::scope(|scope| {
        let changing = scope.spawn(|| {
            for round in 0..30 {
                let ready = if round % 2 == 0 { "True" } else { "Unknown" };
                node_becomes(&cluster, "dead", ready, "KubeletReady");
                make(&cluster, &format!("Node new-{round}: {{ready: 'True'}}"));
                cluster.delete(&node_path(&format!("new-{round}")), json!({}));
            }
        });
        while !changing.is_finished() {
            ask();
        }
    });
    for (status, code) in [
        ("True", 403),
        ("False", 200),
        ("True", 403),
        ("Unknown", 200),
    ] {
        node_becomes(&cluster, "dead", status, "KubeletReady");
        until(status, || ask() == code);
    }
    node_becomes(&cluster, "dead", "True", "KubeletReady");
    until("refused", || ask() == 403);
    cluster.delete(&node_path("dead"), json!({}));
    until("the node is gone", || ask() == 200);
}

#[test]
fn a_run_proves_it_where_it_is_installed() {
    let cluster = fresh();
    one_is_stuck(&cluster);
    install(&cluster);
    let [_, namespace, name] = of("pod-reaper");
    let variables = [("REQUIRE_GUARD", "nodes"), namespace, name];
    let container = &cluster.get(&pod_path("pod-reaper", OWN))["spec"]["containers"][0];
    let set = each(&container["env"]);
    let set = set
        .filter(|entry| entry["name"] == "REQUIRE_GUARD")
        .collect_vec();
    assert_eq!(set, [&yaml("{name: REQUIRE_GUARD, value: nodes}")]);

    let probe = yaml("{gracePeriodSeconds: 0, propagationPolicy: Orphan, dryRun: [All]}");
    let own = pod_path("pod-reaper", OWN);
    let refused = |what: &str| {
        until(what, || {
            as_user(ACCOUNT, &cluster, "DELETE", &own, &probe).0 == 200
        });
        let (code, log) = refusal_of(ACCOUNT, &cluster, &variables, &[]);
        assert!(
            code == 1 && log.contains("cronjob/components/node-guard"),
            "{what}: {log}"
        );
    };
    // The pod's own node has failed since the pod was placed there.
    node_becomes(&cluster, "ready-1", "False", "KubeletNotReady");
    refused("its node is not Ready");
    node_becomes(&cluster, "ready-1", "True", "KubeletReady");
    let policy = format!("{POLICIES}/pod-reaper-node-guard");
    let was = cluster.get(&policy);
    cluster.delete(&policy, json!({}));
    refused("there is no policy");
    let again = json!({"apiVersion": was["apiVersion"], "kind": was["kind"], "metadata": {"name": "pod-reaper-node-guard"},
        "spec": was["spec"]});
    cluster.create(POLICIES, again);

    // The node guard is briefly not in force, and the run waits for it.
    let proxy = Proxy::to(&cluster);
    let run = run_with(&proxy.kubeconfig_of(ACCOUNT), &variables, &SHORT);
    run.ends(0);
    assert_eq!(run.report["guard"], "proved");
    assert_eq!(run.report["summary"]["outcomes"]["deleted"], 1);
    let says = "refuses this account the delete of a pod on a Ready node";
    assert!(run.log.contains(says), "{}", run.log);
    // Both proofs are dry runs of deletes of exactly its own pod.
    let own = cluster.get(&own)["metadata"].clone();
    for probe in proxy
        .seen()
        .iter()
        .filter(|seen| seen.is_write() && seen.path.contains(OWN))
    {
        assert!(
            probe.path.ends_with("?dryRun=All") && probe.body["dryRun"] == json!(["All"]),
            "{probe:?}"
        );
        assert_eq!(probe.body["preconditions"]["uid"], own["uid"], "{probe:?}");
    }
}

/// Prints how long a dry-run delete takes with the guard alone and with the node guard in addition, and the ratio, for clusters
/// of growing size. Each figure is a median of requests that were sent alternately to two servers.
#[test]
#[ignore = "a measurement, of three minutes: cargo test --test api_server what_the_node_guard_costs -- --ignored --nocapture"]
fn what_the_node_guard_costs() {
    let start = || ControlPlane::start(&[]).unwrap_or_else(|message| panic!("{message}"));
    let servers = [start(), start()];
    let controller = "system:serviceaccount:kube-system:node-controller";
    // Real nodes are about this large.
    let padding = "x".repeat(9_000);
    let mut nodes = 0;
    for (cluster, component) in servers.iter().zip([false, true]) {
        one_dead_of_three(cluster);
        install(cluster);
        if !component {
            let bindings = "delete validatingadmissionpolicybinding pod-reaper-node-guard pod-reaper-node-guard-status";
            kubectl(cluster, &bindings.split(' ').collect_vec());
        }
        let stuck = "Pod apps/stuck: {grace: 600, metadata: {labels: {batch.kubernetes.io/job-name: import},
            annotations: {example.org/padding: PADDING}}}";
        make(cluster, &stuck.replace("PADDING", &"x".repeat(6_000)));
    }
    eprintln!(
        "| nodes | request | guard | node guard too | ratio |\n| ---: | --- | ---: | ---: | ---: |"
    );
    for size in [10, 100, 500, 2_000] {
        for cluster in &servers {
            for at in nodes..size {
                let annotations = format!("{{annotations: {{example.org/padding: {padding}}}}}");
                let node = format!("Node node-{at}: {{ready: 'True', metadata: {annotations}}}");
                make(cluster, &node);
            }
        }
        nodes = size;
        // The policy's copy of the nodes takes a while to be complete.
        thread::sleep(Duration::from_secs(5));
        for (what, user, groups, method) in [
            ("delete by the reaper", ACCOUNT, &[][..], "DELETE"),
            (
                "delete by a controller",
                controller,
                &["system:serviceaccounts"][..],
                "DELETE",
            ),
            (
                "delete by a kubelet",
                "system:node:dead",
                &["system:nodes"][..],
                "DELETE",
            ),
            (
                "status of a Job's pod by a kubelet",
                "system:node:dead",
                &["system:nodes"][..],
                "PATCH",
            ),
        ] {
            let [without, with] = medians(120, |side, round| {
                let (path, body) = if method == "PATCH" {
                    let message = json!({"status": {"message": round.to_string()}});
                    (format!("{STUCK}/status?dryRun=All"), message)
                } else {
                    (STUCK.to_owned(), dry_run())
                };
                let cluster = &servers[side];
                let code = as_member(cluster, user, groups, (method, &path), &body).0;
                assert_eq!(code, 200, "{what}");
            });
            eprintln!(
                "| {size} | {what} | {without:.1} ms | {with:.1} ms | {:.1} |",
                with / without
            );
        }
    }
}
