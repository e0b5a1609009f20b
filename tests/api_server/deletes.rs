//! Deletes exactly the right pods, by UID. For every rule that keeps a pod, the cluster also has a similar pod that is reaped.

use crate::{prelude::*, support::objects::in_parallel};

const REAP: &str = "stuck-on-not-ready-node";

const NODES: &str = "
    # A node that is no place for a volume: nothing starts there while its link is cut.
    Node edge-ready: {ready: 'True', metadata: {labels: {example.org/rack: r1, superedge.io/node-edge: enable}}}
    # The others are silent, most for an hour.
    # Its host name differs from its name: volumes may use either.
    Node dead: {metadata: {labels: {kubernetes.io/hostname: dead.example.org, example.org/rack: r1}}}
    Node left-alone: {metadata: {annotations: {pod-reaper.io/skip: 'true'}}}
    Node by-label: {metadata: {labels: {kosmos.io/node: 'true'}}}
    Node by-annotation: {metadata: {annotations: {kosmos-io/owned-by-cluster: one}}}
    Node by-taint: {spec: {taints: [{key: kosmos.io/node, value: 'true', effect: NoSchedule}]}}
    Node kosmos-two: {}
    Node virtual: {metadata: {labels: {type: virtual-kubelet}}}
    Node virtual-by-taint: {spec: {taints: [{key: virtual-kubelet.io/provider, value: azure, effect: NoSchedule}]}}
    Node off: {metadata: {annotations: {fencing/state: fenced}}}
    Node said-to-be-off: {metadata: {annotations: {example.org/off: 'yes'}}}
    Node virt: {metadata: {annotations: {kubevirt.io/heartbeat: MINUTE_AGO}}}
    Node off-and-alive: {metadata: {annotations: {fencing/state: fenced, kubevirt.io/heartbeat: MINUTE_AGO}}}
    Node edge: {metadata: {annotations: {apps.openyurt.io/binding: 'true'}}}
    Node by-selector: {metadata: {labels: {example.org/leaf: 'true'}}}
    Node says-false: {ready: 'False', renewed: 2}
    # Its row shows Unknown, which is not Ready either.
    Node says-nothing: {ready: null}
    Node detected: {detects: KernelDeadlock}
    Node no-detector: {detects: NetworkUnavailable}
    Node recovering: {since: 300, renewed: 2}
    # Their clocks are wrong: the server's stamp of the renewal counts, not the time that the node wrote.
    Node clock-behind: {since: 300, renewed: 2, says: 3600}
    Node clock-ahead: {says: -3600}
";

fn nodes(cluster: &ControlPlane) {
    for number in 1..=13 {
        let labels = format!("{{linbit.com/hostname: ready-{number}}}");
        let node =
            format!("Node ready-{number}: {{ready: 'True', metadata: {{labels: {labels}}}}}");
        make(cluster, &node);
    }
    make(cluster, &NODES.replace("MINUTE_AGO", &seconds_ago(60)));
}

/// The pods of the namespace `apps` by their expected reason.
const PODS: &str = "
stuck-on-not-ready-node:
    set-0: {owner: StatefulSet set}
    replica: {owner: ReplicaSet deployment-1}
    job: {owner: Job job, spec: {restartPolicy: Never}}
    daemon: {owner: DaemonSet daemon}
    bare: {}
    a-week-to-stop: {grace: 604800}
    mounts-host: {spec: {volumes: [{name: host, hostPath: {path: /var/log}}]}}
    marked-by-kosmos-itself: {metadata: {labels: {kosmos-io/pod: 'true'}}}
    not-really-skipped: {metadata: {annotations: {pod-reaper.io/skip: 'false'}}}
    lease-from-the-future: {node: clock-ahead}
    claim-is-gone: {uses: nowhere}
    ephemeral-is-gone: {ephemeral: own}
    ephemeral-of-its-own: {ephemeral: own}
    network: {volume: {csi: {driver: rbd.csi.ceph.com, volumeHandle: network}}}
    attached: {volume: {csi: {driver: iscsi.csi.k8s.io, fsType: ext4, volumeHandle: x}}}
    shared-file-system: {volume: {csi: {driver: iscsi.csi.k8s.io, volumeHandle: x}}}
    zone: {volume: {csi: {driver: ebs.csi.aws.com, volumeHandle: zone}, nodeAffinity: {required: {nodeSelectorTerms: [
        {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a]}]}]}}}}
    two-nodes: {volume: {csi: {driver: linstor.csi.linbit.com, volumeHandle: x}, nodeAffinity: {required: {nodeSelectorTerms: [
        {matchExpressions: [{key: linbit.com/hostname, operator: In, values: [dead, ready-1]}]}]}}}}
    or-another: {volume: {csi: {driver: x.example.org, volumeHandle: x}, nodeAffinity: {required: {nodeSelectorTerms: [
        {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [dead]}]},
        {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [ready-1]}]}]}}}}
    fenced-launcher: {node: 'off', owner: VirtualMachineInstance vm-2}
    selected-launcher: {node: said-to-be-off, owner: VirtualMachineInstance vm-3}
    not-the-machine-itself: {node: no-detector, owner: StatefulSet set}
# Storage on the dead node.
local-volume:
    local: {volume: {local: {path: /mnt/disk}, nodeAffinity: {required: {nodeSelectorTerms: [
        {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [dead.example.org]}]}]}}}}
    topolvm: {volume: {csi: {driver: topolvm.io, volumeHandle: x}, nodeAffinity: {required: {nodeSelectorTerms: [
        {matchExpressions: [{key: topology.topolvm.io/node, operator: In, values: [dead]}]}]}}}}
    openebs: {volume: {csi: {driver: local.csi.openebs.io, volumeHandle: x}, nodeAffinity: {required: {nodeSelectorTerms: [
        {matchExpressions: [{key: openebs.io/nodename, operator: In, values: [dead]}]}]}}}}
    by-host-name: {volume: {csi: {driver: x.example.org, volumeHandle: x}, nodeAffinity: {required: {nodeSelectorTerms: [
        {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [dead.example.org]}]}]}}}}
    ephemeral: {ephemeral: own}
    # Storage that no other node can reach: a leaf node does not count. Nobody knows which nodes share a directory.
    host-path: {volume: {hostPath: {path: /opt/local-path-provisioner}}}
    in-a-zone: {volume: {hostPath: {path: /srv}, nodeAffinity: {required: {nodeSelectorTerms: [
        {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a]}]}]}}}}
    rack: {volume: {csi: {driver: x.example.org, volumeHandle: x}, nodeAffinity: {required: {nodeSelectorTerms: [
        {matchExpressions: [{key: example.org/rack, operator: In, values: [r1]},
            {key: topology.kubernetes.io/zone, operator: In, values: [a]}]}]}}}}
    nowhere-else: {volume: {csi: {driver: x.example.org, volumeHandle: x}, nodeAffinity: {required: {nodeSelectorTerms: [
        {matchExpressions: [{key: example.org/disk, operator: In, values: [ssd]}]}]}}}}
# Storage that cannot be verified.
volume-unverified:
    by-field: {volume: {csi: {driver: x.example.org, volumeHandle: x}, nodeAffinity: {required: {nodeSelectorTerms: [
        {matchFields: [{key: metadata.name, operator: In, values: [dead]}]}]}}}}
    lost: {uses: lost}
    dangling: {uses: dangling}
    pending: {uses: pending}
# A disk that two machines could write.
shared-disk:
    unattached: {volume: {csi: {driver: iscsi.csi.k8s.io, fsType: ext4, volumeHandle: x}}}
    shared: {volume: {csi: {driver: rbd.csi.ceph.com, volumeHandle: x}, accessModes: [ReadWriteMany], volumeMode: Block}}
    virt-launcher: {owner: VirtualMachineInstance vm-1}
# Machines that live.
kubelet-alive:
    kubelet-lives: {node: says-false}
    job-lives: {node: says-false, owner: Job job}
    lease-is-fresh: {node: recovering}
    lease-looks-old: {node: clock-behind}
    detected: {node: detected, owner: StatefulSet set}
    virt: {node: virt, owner: VirtualMachineInstance vm-4}
    off-and-alive: {node: off-and-alive, owner: StatefulSet set}
# Reasons of the pod itself.
mirror-pod:
    mirror: {metadata: {annotations: {kubernetes.io/config.mirror: abc}}}
opted-out:
    skipped: {metadata: {annotations: {pod-reaper.io/skip: 'true'}}}
    skipped-by-label: {metadata: {labels: {pod-reaper.io/skip: until-tuesday}}}
    node-opted-out: {node: left-alone}
not-overdue:
    within-grace: {node: says-false, grace: 3600}
    given-up-lately: {uses: given-up-lately}
finalizers:
    finalizer: {metadata: {finalizers: [example.org/backup]}}
    job-and-finalizer: {metadata: {finalizers: [batch.kubernetes.io/job-tracking, example.org/backup]}}
    node-gone-and-held: {node: no-such-node, metadata: {finalizers: [example.org/backup]}}
    forced-already: {grace: 0, metadata: {finalizers: [example.org/backup]}}
owner-kind:
    owner: {owner: Workflow flow}
    deployed: {owner: ReplicaSet web-7c9d, metadata: {labels: {pod-template-hash: 7c9d}}}
    timed: {owner: Job backup-29412360}
# Reasons of its node.
node-just-failed:
    since-nobody-knows-when: {node: says-nothing}
kosmos-leaf:
    leaf-by-label: {node: by-label}
    leaf-by-annotation: {node: by-annotation}
    leaf-by-taint: {node: by-taint}
    leaf-by-name: {node: kosmos-two}
virtual-node:
    virtual-by-label: {node: virtual}
    virtual-by-taint: {node: virtual-by-taint}
edge-node:
    edge-by-annotation: {node: edge}
leaf-node:
    leaf-by-selector: {node: by-selector}
node-ready:
    node-ready: {node: ready-1}
node-gone:
    node-gone: {node: no-such-node}
";

#[test]
fn every_stuck_pod_goes_and_every_other_lives() {
    let cluster = fresh();
    nodes(&cluster);
    let driver = yaml("{metadata: {name: iscsi.csi.k8s.io}, spec: {attachRequired: false}}");
    cluster.create("/apis/storage.k8s.io/v1/csidrivers", driver);
    make(
        &cluster,
        "
        PersistentVolumeClaim lost: {volume: no-such-volume, phase: Lost}
        PersistentVolumeClaim dangling: {volume: no-such-volume, phase: Bound}
        PersistentVolumeClaim pending: {phase: Pending}
        VolumeAttachment attached: {volume: attached}
        PersistentVolume given-up-lately: {claim: apps/given-up-lately,
            spec: {csi: {driver: x.example.org, volumeHandle: x}}}
        PersistentVolume of-one: {on: dead, claim: apps/ephemeral-own, spec: {local: {path: /mnt/disk}}}
        PersistentVolume of-another: {on: dead, claim: apps/ephemeral-of-its-own-own, spec: {local: {path: /mnt/disk}}}
        ",
    );
    let deleted = "given-up-lately";
    let held = yaml("{metadata: {finalizers: [kubernetes.io/pvc-protection]}}");
    cluster.merge_patch(&claim_path("apps", deleted), held);
    cluster.delete(&claim_path("apps", deleted), json!({}));
    let mut expected = Vec::new();
    for (reason, pods) in yaml(PODS).as_object().unwrap() {
        for (name, described) in pods.as_object().unwrap() {
            let uid = pod(&cluster, &format!("apps/{name}: {described}"));
            expected.push((name.clone(), uid, reason.clone()));
        }
    }
    let uid_of = |name: &str| &expected.iter().find(|(pod, ..)| pod == name).unwrap().1;
    let name = "ephemeral-of-its-own";
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid_of(name), "controller": true}]);
    let path = format!("/api/v1/namespaces/apps/persistentvolumeclaims/{name}-own");
    cluster.merge_patch(&path, json!({"metadata": {"ownerReferences": owner}}));

    // These pods are outside the regex, excluded, in a namespace that is opted out, or not Terminating.
    let outside = pod(&cluster, "other/outside: {}");
    let excluded = pod(&cluster, "apps-excluded/excluded: {}");
    let opted_out = pod(&cluster, "apps-opted-out/opted-out: {}");
    let skip = yaml("{metadata: {annotations: {pod-reaper.io/skip: 'true'}}}");
    cluster.merge_patch("/api/v1/namespaces/apps-opted-out", skip);
    let running = pod(&cluster, "apps/running: {grace: null}");
    // A pod of the same name in another namespace is reaped too.
    let namesake = pod(&cluster, "apps-too/set-0: {}");
    until_overdue();

    let options = [
        &SHORT[..],
        &[
            "--all",
            "--namespace-regex=^apps",
            "--namespace-exclude-regex=excluded",
        ],
        &[
            "--leaf-node-selector=example.org/leaf=true",
            "--manual-owner-kind=workflow,deployments,CronJob",
        ],
        &["--fenced-node-selector=annotation:example.org/off=yes"],
    ];
    let run = run(&cluster.kubeconfig, &options.concat());

    run.ends(0);
    assert_eq!(run.report["errors"], json!([]));
    let left = cluster.get("/api/v1/pods");
    let left = each(&left["items"]).map(uid);
    let left = left.collect_vec();
    for (name, uid, reason) in &expected {
        let (said, outcome) = run.reason_and_outcome(uid);
        assert_eq!(said, reason, "{name}: {}", run.pod(uid));
        assert_eq!(outcome, (reason == REAP).then_some("deleted"), "{name}");
        assert_eq!(left.contains(uid), reason != REAP, "{name}");
    }
    run.says(&opted_out, ("opted-out", None));
    run.says(&namesake, REAPED);
    assert!(!left.contains(&namesake));
    assert!(left.contains(&opted_out));
    let seen = each(&run.report["pods"]).map(uid_of_entry);
    let seen = seen.collect_vec();
    for unseen in [&outside, &excluded, &running] {
        assert!(left.contains(unseen) && !seen.contains(unseen));
    }
    let note = run.pod(uid_of("zone"))["note"].as_str().unwrap_or_default();
    assert!(note.contains("topology.kubernetes.io/zone"), "{note}");
}

/// The number of reads must not grow with the number of nodes and Leases that have nothing to do with the failure.
#[test]
fn two_dead_workers_cost_these_requests() {
    let cluster = fresh();
    for number in 1..=9 {
        let node_and_lease = "{Node ready-NUMBER: {ready: 'True'}, Lease default/ready-NUMBER: {holder: leader-of-NUMBER}}";
        make(
            &cluster,
            &node_and_lease.replace("NUMBER", &number.to_string()),
        );
    }
    let own_leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    in_parallel(4, 0..5_000, |number| {
        let name = format!("of-node-{number}");
        let lease = json!({"metadata": {"name": name}, "spec": {"holderIdentity": name}});
        cluster.create(own_leases, lease)
    });
    for node in ["dead-1", "dead-2"] {
        make(
            &cluster,
            &format!("{{Node {node}: {{}}, Pod {node}: {{node: {node}}}}}"),
        );
    }
    until_overdue();
    let bytes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&bytes);
    let proxy = Proxy::with_faults(cluster.server(), move |_| {
        let counted = Arc::clone(&counted);
        Act::rewrite(move |reply| {
            counted.fetch_add(reply.body.len(), Ordering::SeqCst);
        })
    });
    let run = run(&proxy.kubeconfig, &SHORT);
    let bytes = bytes.load(Ordering::SeqCst);
    assert!(bytes < 50_000, "{bytes} bytes");
    run.is_whole();
    assert_eq!(run.report["summary"]["outcomes"]["deleted"], 2);
    let seen = proxy.seen().into_iter();
    let paths = seen.map(|seen| seen.path).collect_vec();
    // Before 1.26, API servers have no such Leases, so the run does not list them.
    let servers = usize::from(cluster.is_at_least(26));
    assert_eq!(paths.len(), 25 + servers, "{paths:#?}");
    let leases = paths.iter().filter(|path| path.contains("/leases"));
    let all = "/apis/coordination.k8s.io/v1/leases?includeObject=None";
    let rows = leases.clone().filter(|path| path.starts_with(all));
    let of_nodes = leases
        .clone()
        .filter(|path| path.contains("/kube-node-lease/leases/"));
    let counts = (rows.count(), of_nodes.count(), leases.count());
    assert_eq!(counts, (1, 5, 6 + servers), "{paths:#?}");
    // One request deletes them all. The cleanup of the next test would delete them one by one.
    cluster.delete(own_leases, json!({}));
}

/// A patch stands in for the Job controller, which does not run here and would remove its finalizer.
#[test]
fn a_job_pod_is_set_to_failed_before_it_is_deleted() {
    let cluster = fresh();
    nodes(&cluster);
    let tracked = |name: &str| {
        let of_job = "{owner: Job job, spec: {restartPolicy: Never},
            metadata: {finalizers: [batch.kubernetes.io/job-tracking]}}";
        pod(&cluster, &format!("apps/{name}: {of_job}"))
    };
    let (released, held) = (tracked("released"), tracked("held"));
    until_overdue();
    let server = cluster.server();
    // The Job controller removes its finalizer as soon as it sees the failed pod, that is, between the program's two writes.
    let proxy = Proxy::start(server, move |seen| {
        if seen.method == "DELETE" && seen.path.contains("/released") {
            let pod = server.get(&pod_path("apps", "released"));
            assert_eq!(pod["status"]["phase"], "Failed");
            if !pod["metadata"]["finalizers"].is_null() {
                server.merge_patch(
                    &pod_path("apps", "released"),
                    yaml("{metadata: {finalizers: null}}"),
                );
            }
        }
    });
    let run = run(&proxy.kubeconfig, &SHORT);

    run.says(&released, REAPED);
    assert!(!cluster.has_pod("apps", "released"));
    run.says(&held, (REAP, Some("still-there")));
    run.ends(3);
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
