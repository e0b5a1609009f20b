//! Deletes exactly the right pods, by UID: every rule that spares a pod, beside a similar pod that is reaped.

use serde_json::{Value, json};

use crate::{
    SHORT, run,
    support::{
        ControlPlane, Fresh, fresh,
        objects::{Node, Pod, Volume, annotate, claim, pod_path, seconds_ago},
    },
    until_overdue,
};

/// A pod, whether it remains in the cluster, and why.
struct Expected {
    name: &'static str,
    uid: String,
    reason: &'static str,
}

/// Terminating pods of one namespace, with their expected reasons.
struct Cast<'a> {
    cluster: &'a ControlPlane,
    pods: Vec<Expected>,
}

const REAP: &str = "stuck-on-not-ready-node";

impl Cast<'_> {
    fn add(
        &mut self,
        name: &'static str,
        reason: &'static str,
        grace: i64,
        dress: impl FnOnce(Pod) -> Pod,
    ) {
        self.add_on("dead", name, reason, grace, dress);
    }

    fn add_on(
        &mut self,
        node: &str,
        name: &'static str,
        reason: &'static str,
        grace: i64,
        dress: impl FnOnce(Pod) -> Pod,
    ) {
        let object = dress(Pod::on(node, "apps", name)).terminating(self.cluster, grace);
        self.pods.push(Expected {
            name,
            uid: crate::uid(&object),
            reason,
        });
    }

    /// Adds a pod that mounts a claim of its own name, on the volume that `volume` returns for that name.
    fn add_with_volume(
        &mut self,
        name: &'static str,
        reason: &'static str,
        volume: impl FnOnce(&str) -> Volume,
    ) {
        volume(name).claimed_by("apps", name).create(self.cluster);
        self.add(name, reason, 1, |pod| pod.claim(name));
    }
}

fn nodes(cluster: &ControlPlane) {
    for ready in [
        "ready-1", "ready-2", "ready-3", "ready-4", "ready-5", "ready-6", "ready-7", "ready-8",
        "ready-9", "ready-10", "ready-11", "ready-12", "ready-13",
    ] {
        Node::ready(ready)
            .label("linbit.com/hostname", ready)
            .create(cluster);
    }
    // A node that is no place for a volume: nothing starts there while its link is cut.
    Node::ready("edge-ready")
        .label("example.org/rack", "r1")
        .label("superedge.io/node-edge", "enable")
        .create(cluster);
    // Its host name differs from its name: volumes may use either.
    Node::not_ready("dead", 3600)
        .label("kubernetes.io/hostname", "dead.example.org")
        .label("example.org/rack", "r1")
        .create(cluster);
    Node::ready("says-false")
        .condition("False", "KubeletNotReady", 3600)
        .lease_renewed(2)
        .create(cluster);
    Node::not_ready("recovering", 300)
        .lease_renewed(2)
        .create(cluster);
    // Wrong clocks: the server's stamp of the renewal counts, not the time that the node wrote.
    Node::not_ready("clock-behind", 300)
        .lease_renewed(2)
        .lease_says(3600)
        .create(cluster);
    Node::not_ready("clock-ahead", 3600)
        .lease_renewed(3600)
        .lease_says(-3600)
        .create(cluster);
    Node::not_ready("just-failed", 10)
        .lease_renewed(100)
        .create(cluster);
    // Its row shows Unknown, which is not Ready either.
    Node::not_ready("says-nothing", 3600)
        .without_condition()
        .create(cluster);
    Node::not_ready("left-alone", 3600)
        .annotation("pod-reaper.io/skip", "true")
        .create(cluster);
    Node::not_ready("by-label", 3600)
        .label("kosmos.io/node", "true")
        .create(cluster);
    Node::not_ready("by-annotation", 3600)
        .annotation("kosmos-io/owned-by-cluster", "one")
        .create(cluster);
    Node::not_ready("by-taint", 3600)
        .taint("kosmos.io/node", "true", "NoSchedule")
        .create(cluster);
    Node::not_ready("kosmos-two", 3600).create(cluster);
    Node::not_ready("virtual", 3600)
        .label("type", "virtual-kubelet")
        .create(cluster);
    Node::not_ready("virtual-by-taint", 3600)
        .taint("virtual-kubelet.io/provider", "azure", "NoSchedule")
        .create(cluster);
    Node::not_ready("off", 3600)
        .annotation("fencing/state", "fenced")
        .create(cluster);
    Node::not_ready("said-to-be-off", 3600)
        .annotation("example.org/off", "yes")
        .create(cluster);
    Node::not_ready("detected", 3600)
        .reports("KernelDeadlock", 60)
        .create(cluster);
    Node::not_ready("no-detector", 3600)
        .reports("NetworkUnavailable", 60)
        .create(cluster);
    let heartbeat = seconds_ago(60);
    Node::not_ready("virt", 3600)
        .annotation("kubevirt.io/heartbeat", &heartbeat)
        .create(cluster);
    Node::not_ready("off-and-alive", 3600)
        .annotation("fencing/state", "fenced")
        .annotation("kubevirt.io/heartbeat", &heartbeat)
        .create(cluster);
    Node::not_ready("edge", 3600)
        .annotation("apps.openyurt.io/binding", "true")
        .create(cluster);
    Node::not_ready("by-selector", 3600)
        .label("example.org/leaf", "true")
        .create(cluster);
}

#[test]
fn every_stuck_pod_goes_and_every_other_lives() {
    let cluster: Fresh = fresh();
    nodes(&cluster);
    let mut cast = Cast {
        cluster: &cluster,
        pods: Vec::new(),
    };

    // Pods to reap, with any owner.
    cast.add("set-0", REAP, 1, |pod| pod.owned_by("StatefulSet", "set"));
    cast.add("replica", REAP, 1, |pod| {
        pod.owned_by("ReplicaSet", "deployment-1")
    });
    cast.add("job", REAP, 1, |pod| {
        pod.owned_by("Job", "job").restart_policy("Never")
    });
    cast.add("daemon", REAP, 1, |pod| pod.owned_by("DaemonSet", "daemon"));
    cast.add("bare", REAP, 1, |pod| pod);
    cast.add("mounts-host", REAP, 1, |pod| pod.host_path("/var/log"));
    cast.add("marked-by-kosmos-itself", REAP, 1, |pod| {
        pod.label("kosmos-io/pod", "true")
    });
    cast.add("not-really-skipped", REAP, 1, |pod| {
        pod.annotation("pod-reaper.io/skip", "false")
    });
    cast.add_on("says-false", "kubelet-lives", "kubelet-alive", 1, |pod| pod);
    cast.add_on("says-false", "another-kubelet-lives", REAP, 1, |pod| {
        pod.owned_by("Job", "job")
    });
    cast.add_on("clock-ahead", "lease-from-the-future", REAP, 1, |pod| pod);
    cast.add("claim-is-gone", REAP, 1, |pod| pod.claim("nowhere"));
    cast.add("ephemeral-is-gone", REAP, 1, |pod| pod.ephemeral("scratch"));
    cast.add_with_volume("network", REAP, |name| {
        Volume::csi(name, "rbd.csi.ceph.com")
    });
    cast.add_with_volume("zone", REAP, |name| {
        Volume::csi(name, "ebs.csi.aws.com").zone("a")
    });
    cast.add_with_volume("two-nodes", REAP, |name| {
        Volume::csi(name, "linstor.csi.linbit.com")
            .affinity("linbit.com/hostname", &["dead", "ready-1"])
    });
    cast.add_with_volume("or-another", REAP, |name| {
        Volume::csi(name, "x.example.org")
            .on_node("dead")
            .or_affinity("kubernetes.io/hostname", &["ready-1"])
    });
    let own = |name: &'static str, grace| {
        let pod = Pod::on("dead", "apps", name)
            .ephemeral("scratch")
            .terminating(&cluster, grace);
        let volume = format!("{name}-pv");
        let claim = format!("{name}-scratch");
        Volume::local(&volume)
            .on_node("dead")
            .claimed_by("apps", &claim)
            .create(&cluster);
        let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"], "controller": true}]);
        let path = format!("/api/v1/namespaces/apps/persistentvolumeclaims/{claim}");
        cluster.merge_patch(&path, json!({"metadata": {"ownerReferences": owner}}));
        Expected {
            name,
            uid: crate::uid(&pod),
            reason: REAP,
        }
    };
    let owned = own("ephemeral-of-its-own", 1);
    cast.pods.push(owned);

    // Storage on the dead node.
    cast.add_with_volume("local", "local-volume", |name| {
        Volume::local(name).on_node("dead.example.org")
    });
    cast.add_with_volume("host-path", "local-volume", Volume::host_path);
    cast.add_with_volume("topolvm", "local-volume", |name| {
        Volume::csi(name, "topolvm.io").affinity("topology.topolvm.io/node", &["dead"])
    });
    cast.add_with_volume("openebs", "local-volume", |name| {
        Volume::csi(name, "local.csi.openebs.io").affinity("openebs.io/nodename", &["dead"])
    });
    cast.add_with_volume("by-host-name", "local-volume", |name| {
        Volume::csi(name, "x.example.org").on_node("dead.example.org")
    });
    cast.add_with_volume("by-field", "volume-unverified", |name| {
        Volume::csi(name, "x.example.org").affinity("metadata.name", &["dead"])
    });
    Volume::local("ephemeral-pv")
        .on_node("dead")
        .claimed_by("apps", "ephemeral-scratch")
        .create(&cluster);
    cast.add("ephemeral", "local-volume", 1, |pod| {
        pod.ephemeral("scratch")
    });

    // Storage that no other node can reach: a leaf node does not count.
    cast.add_with_volume("rack", "volume-confined", |name| {
        Volume::csi(name, "x.example.org")
            .affinity("example.org/rack", &["r1"])
            .zone("a")
    });
    cast.add_with_volume("nowhere-else", "volume-confined", |name| {
        Volume::csi(name, "x.example.org").affinity("example.org/disk", &["ssd"])
    });
    // A disk that two machines could write.
    cast.add_with_volume("shared", "shared-disk", |name| {
        Volume::csi(name, "rbd.csi.ceph.com").shared_disk()
    });
    cast.add("virt-launcher", "shared-disk", 1, |pod| {
        pod.owned_by("VirtualMachineInstance", "vm-1")
    });
    cast.add_on("off", "fenced-launcher", REAP, 1, |pod| {
        pod.owned_by("VirtualMachineInstance", "vm-2")
    });
    cast.add_on("said-to-be-off", "selected-launcher", REAP, 1, |pod| {
        pod.owned_by("VirtualMachineInstance", "vm-3")
    });

    // Machines that live.
    cast.add_on("says-false", "unique", "kubelet-alive", 1, |pod| {
        pod.owned_by("StatefulSet", "set")
    });
    cast.add_on("says-false", "with-a-claim", "kubelet-alive", 1, |pod| {
        pod.owned_by("ReplicaSet", "deployment-1").claim("nowhere")
    });
    cast.add_on("detected", "detected", "kubelet-alive", 1, |pod| {
        pod.owned_by("StatefulSet", "set")
    });
    cast.add_on("virt", "virt", "kubelet-alive", 1, |pod| {
        pod.owned_by("VirtualMachineInstance", "vm-4")
    });
    cast.add_on("no-detector", "not-the-machine-itself", REAP, 1, |pod| {
        pod.owned_by("StatefulSet", "set")
    });
    cast.add_on(
        "off-and-alive",
        "off-and-alive",
        "kubelet-alive",
        1,
        |pod| pod.owned_by("StatefulSet", "set"),
    );

    // Storage that cannot be verified.
    claim(&cluster, "apps", "lost", Some("no-such-volume"), "Lost");
    cast.add("lost", "volume-unverified", 1, |pod| pod.claim("lost"));
    claim(
        &cluster,
        "apps",
        "dangling",
        Some("no-such-volume"),
        "Bound",
    );
    cast.add("dangling", "volume-unverified", 1, |pod| {
        pod.claim("dangling")
    });
    claim(&cluster, "apps", "pending", None, "Pending");
    cast.add("pending", "volume-unverified", 1, |pod| {
        pod.claim("pending")
    });

    // Reasons of the pod itself.
    cast.add("mirror", "mirror-pod", 1, |pod| {
        pod.annotation("kubernetes.io/config.mirror", "abc")
    });
    cast.add("skipped", "opted-out", 1, |pod| {
        pod.annotation("pod-reaper.io/skip", "true")
    });
    cast.add("skipped-by-label", "opted-out", 1, |pod| {
        pod.label("pod-reaper.io/skip", "until-tuesday")
    });
    cast.add("within-grace", "not-overdue", 3600, |pod| pod);
    cast.add("finalizer", "finalizers", 1, |pod| {
        pod.finalizer("example.org/backup")
    });
    cast.add("forced-already", "already-forced", 0, |pod| {
        pod.finalizer("example.org/backup")
    });
    cast.add("job-and-finalizer", "finalizers", 1, |pod| {
        pod.finalizer("batch.kubernetes.io/job-tracking")
            .finalizer("example.org/backup")
    });
    cast.add("owner", "owner-kind", 1, |pod| {
        pod.owned_by("Workflow", "flow")
    });

    // Reasons of its node.
    cast.add_on(
        "recovering",
        "lease-is-fresh",
        "node-recovering",
        1,
        |pod| pod,
    );
    cast.add_on(
        "clock-behind",
        "lease-looks-old",
        "node-recovering",
        1,
        |pod| pod,
    );
    cast.add_on(
        "just-failed",
        "node-just-failed",
        "node-just-failed",
        1,
        |pod| pod,
    );
    cast.add_on("left-alone", "node-opted-out", "opted-out", 1, |pod| pod);
    cast.add_on("by-label", "leaf-by-label", "kosmos-leaf", 1, |pod| pod);
    cast.add_on(
        "by-annotation",
        "leaf-by-annotation",
        "kosmos-leaf",
        1,
        |pod| pod,
    );
    cast.add_on("by-taint", "leaf-by-taint", "kosmos-leaf", 1, |pod| pod);
    cast.add_on("kosmos-two", "leaf-by-name", "kosmos-leaf", 1, |pod| pod);
    cast.add_on("virtual", "virtual-by-label", "virtual-node", 1, |pod| pod);
    cast.add_on(
        "virtual-by-taint",
        "virtual-by-taint",
        "virtual-node",
        1,
        |pod| pod,
    );
    cast.add_on("edge", "edge-by-annotation", "edge-node", 1, |pod| pod);
    cast.add_on("by-selector", "leaf-by-selector", "leaf-node", 1, |pod| pod);
    cast.add_on("ready-1", "node-ready", "node-ready", 1, |pod| pod);
    cast.add_on("no-such-node", "node-gone", "node-gone", 1, |pod| pod);
    cast.add_on(
        "no-such-node",
        "node-gone-and-held",
        "finalizers",
        1,
        |pod| pod.finalizer("example.org/backup"),
    );
    cast.add("deployed", "owner-kind", 1, |pod| {
        pod.owned_by("ReplicaSet", "web-7c9d")
            .label("pod-template-hash", "7c9d")
    });
    cast.add("timed", "owner-kind", 1, |pod| {
        pod.owned_by("Job", "backup-29412360")
    });

    let expected = cast.pods;
    // Outside the regex, excluded, in a namespace that is opted out, and not Terminating.
    let outside = crate::uid(&Pod::on("dead", "other", "outside").terminating(&cluster, 1));
    let excluded =
        crate::uid(&Pod::on("dead", "apps-excluded", "excluded").terminating(&cluster, 1));
    let opted_out =
        crate::uid(&Pod::on("dead", "apps-opted-out", "opted-out").terminating(&cluster, 1));
    annotate(
        &cluster,
        "/api/v1/namespaces/apps-opted-out",
        "pod-reaper.io/skip",
        "true",
    );
    let running = crate::uid(&Pod::on("dead", "apps", "running").create(&cluster));
    // A namesake in another namespace, which is reaped too.
    let namesake = crate::uid(&Pod::on("dead", "apps-too", "set-0").terminating(&cluster, 1));
    until_overdue();

    let options = [
        &SHORT[..],
        &[
            "--all",
            "--namespace-regex",
            "^apps",
            "--namespace-exclude-regex",
            "excluded",
        ],
        &[
            "--leaf-node-selector",
            "example.org/leaf=true",
            "--manual-owner-kind",
            "workflow,deployments,CronJob",
        ],
        &["--fenced-node-selector", "annotation:example.org/off=yes"],
    ];
    let run = run(&cluster.kubeconfig, &options.concat());

    assert_eq!(run.code, 0, "{}", run.log);
    assert_eq!(run.report["errors"], json!([]));
    let left = cluster.get("/api/v1/pods");
    let left = left["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(crate::uid)
        .collect::<Vec<_>>();
    let lives = |uid: &String| left.contains(uid);
    for Expected { name, uid, reason } in &expected {
        let (said, outcome) = run.reason_and_outcome(uid);
        assert_eq!(said, *reason, "{name}: {}", run.pod(uid));
        assert_eq!(outcome, (*reason == REAP).then_some("deleted"), "{name}");
        assert_eq!(lives(uid), *reason != REAP, "{name}");
    }
    assert_eq!(run.reason_and_outcome(&opted_out), ("opted-out", None));
    assert_eq!(run.reason_and_outcome(&namesake), (REAP, Some("deleted")));
    assert!(!lives(&namesake));
    for spared in [&outside, &excluded, &opted_out, &running] {
        assert!(lives(spared));
    }
    let seen = run.report["pods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pod| pod["uid"].as_str().unwrap());
    let seen = seen.collect::<Vec<_>>();
    for unseen in [&outside, &excluded, &running] {
        assert!(!seen.contains(&unseen.as_str()));
    }
    let zone = expected.iter().find(|pod| pod.name == "zone").unwrap();
    let note = run.pod(&zone.uid)["note"].as_str().unwrap_or_default();
    assert!(note.contains("topology.kubernetes.io/zone"), "{note}");
}

/// Without `--all`, the run does not read pods on Ready nodes and on nodes that are gone.
#[test]
fn the_usual_run_looks_only_at_nodes_that_are_not_ready() {
    let cluster = fresh();
    nodes(&cluster);
    Pod::on("ready-1", "apps", "slow").terminating(&cluster, 1);
    let stuck = crate::uid(&Pod::on("dead", "apps", "stuck").terminating(&cluster, 1));
    let unclear = crate::uid(&Pod::on("says-nothing", "apps", "unclear").terminating(&cluster, 1));
    until_overdue();
    let run = run(&cluster.kubeconfig, &SHORT);
    assert_eq!(run.report["summary"]["pods"], 2);
    assert_eq!(run.reason_and_outcome(&unclear), ("node-just-failed", None));
    assert_eq!(run.reason_and_outcome(&stuck), (REAP, Some("deleted")));
    assert!(cluster.try_get(&pod_path("apps", "slow")).is_some());
}

#[test]
fn a_healthy_cluster_is_one_request() {
    let cluster = fresh();
    Node::ready("ready-1").create(&cluster);
    Node::ready("cordoned").create(&cluster);
    cluster.merge_patch(
        "/api/v1/nodes/cordoned",
        json!({"spec": {"unschedulable": true}}),
    );
    Pod::on("ready-1", "apps", "slow").terminating(&cluster, 1);
    let proxy = crate::support::proxy::Proxy::start(cluster.server(), |_| {});
    let run = run(&proxy.kubeconfig, &SHORT);
    assert_eq!(run.code, 0);
    let paths = proxy
        .seen()
        .into_iter()
        .map(|seen| seen.path)
        .collect::<Vec<_>>();
    assert_eq!(paths, ["/api/v1/nodes?includeObject=None&limit=1000"]);
}

/// A patch replaces the Job controller, which would remove its finalizer but does not run here.
#[test]
fn a_job_pod_is_set_to_failed_before_it_is_deleted() {
    let cluster = fresh();
    nodes(&cluster);
    let tracked = |name: &str| {
        Pod::on("dead", "apps", name)
            .owned_by("Job", "job")
            .restart_policy("Never")
            .finalizer("batch.kubernetes.io/job-tracking")
            .terminating(&cluster, 1)
    };
    let (released, held) = (
        crate::uid(&tracked("released")),
        crate::uid(&tracked("held")),
    );
    until_overdue();
    let server = cluster.server();
    // The controller removes its finalizer from a failed pod as soon as it sees it: between the program's two writes.
    let proxy = crate::support::proxy::Proxy::start(server, move |seen| {
        if seen.method == "DELETE" && seen.path.contains("/released") {
            let pod = server.get(&pod_path("apps", "released"));
            assert_eq!(pod["status"]["phase"], "Failed");
            if !pod["metadata"]["finalizers"].is_null() {
                server.merge_patch(
                    &pod_path("apps", "released"),
                    json!({"metadata": {"finalizers": null}}),
                );
            }
        }
    });
    let run = run(&proxy.kubeconfig, &SHORT);

    assert_eq!(
        run.reason_and_outcome(&released),
        (REAP, Some("deleted")),
        "{}",
        run.log
    );
    assert!(cluster.try_get(&pod_path("apps", "released")).is_none());
    assert_eq!(run.reason_and_outcome(&held), (REAP, Some("still-there")));
    assert_eq!(run.code, 3);
    let held = cluster.get(&pod_path("apps", "held"));
    assert_eq!(held["status"]["phase"], "Failed");
    let conditions = held["status"]["conditions"].as_array().unwrap();
    let disrupted = |condition: &Value| {
        condition["type"] == "DisruptionTarget" && condition["status"] == "True"
    };
    assert!(conditions.iter().any(disrupted), "{conditions:?}");
    for patch in proxy.seen().iter().filter(|seen| seen.method == "PATCH") {
        let metadata = &patch.body["metadata"];
        assert!(
            metadata["uid"].is_string() && metadata["resourceVersion"].is_string(),
            "{metadata}"
        );
    }
}
