//! Deletes exactly the right pods, by UID. For every rule that keeps a pod, the cluster also has a similar pod that is reaped.

use crate::{prelude::*, support::objects::in_parallel};

const REAP: &str = "stuck-on-not-ready-node";

const NODES: &str = "
    Node ready-1: {ready: 'True'}
    Node ready-2: {ready: 'True'}
    Node ready-3: {ready: 'True'}
    Node ready-4: {ready: 'True'}
    Node ready-5: {ready: 'True'}
    Node ready-6: {ready: 'True'}
    Node ready-7: {ready: 'True'}
    Node ready-8: {ready: 'True'}
    # The others are silent, most for an hour.
    # Its host name differs from its name: volumes may use either.
    Node dead: {metadata: {labels: {kubernetes.io/hostname: dead.example.org}}}
    Node by-label: {metadata: {labels: {kosmos.io/node: 'true'}}}
    Node says-false: {ready: 'False', renewed: 2}
    # Its row shows Unknown, which is not Ready either.
    Node says-nothing: {ready: null}
    Node recovering: {since: 300, renewed: 2}
    # Their clocks are wrong: the server's stamp of the renewal counts, not the time that the node wrote.
    Node clock-behind: {since: 300, renewed: 2, says: 3600}
    Node clock-ahead: {says: -3600}
";

/// The pods of the namespace `apps` by their expected reason. `tests/rules` has all rules; these rows have what a real server
/// computes: rows of tables, stamps, deletion times, and versions of what several objects refer to.
const PODS: &str = "
stuck-on-not-ready-node:
    set-0: {owner: StatefulSet set}
    a-week-to-stop: {grace: 604800}
    not-really-skipped: {metadata: {annotations: {pod-reaper.io/skip: 'false'}}}
    lease-from-the-future: {node: clock-ahead}
    claim-is-gone: {uses: nowhere}
    in-the-foreground: {metadata: {finalizers: [foregroundDeletion]}}
    bound: {owner: Cluster of-one-node, spec: {nodeSelector: {kubernetes.io/hostname: dead.example.org}, volumes: [{name: host, hostPath: {path: /data}}],
        containers: [{name: main, image: main, volumeMounts: [{name: host, mountPath: /data}]}]}}
    network: {volume: {csi: {driver: rbd.csi.ceph.com, volumeHandle: network}}}
    attached: {volume: {csi: {driver: iscsi.csi.k8s.io, fsType: ext4, volumeHandle: x}}}
local-volume:
    local: {volume: {local: {path: /mnt/disk}, nodeAffinity: {required: {nodeSelectorTerms: [
        {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [dead.example.org]}]}]}}}}
volume-unverified:
    lost: {uses: lost}
    dangling: {uses: dangling}
host-path:
    below-the-root: {owner: Cluster of-more, spec: {volumes: [{name: host, hostPath: {path: /}}],
        containers: [{name: main, image: main, volumeMounts: [{name: host, mountPath: /data, subPath: data}]}]}}
shared-disk:
    not-let-go: {volume: {csi: {driver: x.example.org, volumeHandle: x, volumeAttributes: {iqn: x}}}}
    unattached: {volume: {csi: {driver: iscsi.csi.k8s.io, fsType: ext4, volumeHandle: x}}}
kubelet-alive:
    kubelet-lives: {node: says-false}
    lease-is-fresh: {node: recovering}
    lease-looks-old: {node: clock-behind}
mirror-pod:
    mirror: {metadata: {annotations: {kubernetes.io/config.mirror: abc}}}
opted-out:
    skipped: {metadata: {annotations: {pod-reaper.io/skip: 'true'}}}
not-overdue:
    within-grace: {node: says-false, grace: 3600}
    given-up-lately: {uses: given-up-lately}
finalizers:
    forced-already: {grace: 0, metadata: {finalizers: [example.org/backup]}}
owner-kind:
    deployed: {owner: ReplicaSet web-7c9d, metadata: {labels: {pod-template-hash: 7c9d}}}
node-just-failed:
    since-nobody-knows-when: {node: says-nothing}
kosmos-leaf:
    leaf-by-label: {node: by-label}
node-ready:
    node-ready: {node: ready-1}
node-gone:
    node-gone: {node: no-such-node}
";

#[test]
fn every_stuck_pod_goes_and_every_other_lives() {
    let cluster = fresh();
    make(&cluster, NODES);
    let driver = yaml("{metadata: {name: iscsi.csi.k8s.io}, spec: {attachRequired: false}}");
    cluster.create("/apis/storage.k8s.io/v1/csidrivers", driver);
    make(
        &cluster,
        "
        PersistentVolumeClaim lost: {volume: no-such-volume, phase: Lost}
        PersistentVolumeClaim dangling: {volume: no-such-volume, phase: Bound}
        VolumeAttachment attached: {volume: attached}
        VolumeAttachment not-let-go: {volume: not-let-go}
        PersistentVolume given-up-lately: {claim: apps/given-up-lately,
            spec: {csi: {driver: x.example.org, volumeHandle: x}}}
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
        &["--manual-owner-kind=deployments"],
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
}

/// The number of reads must not grow with the number of nodes and Leases that have nothing to do with the failure. The Leases are
/// one list: k0s has one in `kube-node-lease` that speaks for a node.
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
    in_parallel(4, 0..500, |number| {
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
    let proxy = Proxy::rewriting(cluster.server(), move |_, reply| {
        counted.fetch_add(reply.body.len(), Ordering::SeqCst);
    });
    let run = run(&proxy.kubeconfig, &SHORT);
    let bytes = bytes.load(Ordering::SeqCst);
    assert!(bytes < 300_000, "{bytes} bytes");
    run.is_whole();
    assert_eq!(run.report["summary"]["outcomes"]["deleted"], 2);
    let seen = proxy.seen().into_iter();
    let paths = seen.map(|seen| seen.path).collect_vec();
    assert_eq!(paths.len(), 26, "{paths:#?}");
    let leases = paths.iter().filter(|path| path.contains("/leases"));
    let all = "/apis/coordination.k8s.io/v1/leases?";
    let lists = leases.clone().filter(|path| path.starts_with(all));
    let of_nodes = leases
        .clone()
        .filter(|path| path.contains("/kube-node-lease/leases/"));
    let counts = (lists.count(), of_nodes.count(), leases.count());
    assert_eq!(counts, (2, 5, 7), "{paths:#?}");
}

/// A patch stands in for the Job controller, which does not run here and would remove its finalizer.
#[test]
fn a_job_pod_is_set_to_failed_before_it_is_deleted() {
    let cluster = fresh();
    make(&cluster, NODES);
    let tracked = |name: &str| {
        let of_job = "{owner: Job job, spec: {restartPolicy: Never},
            metadata: {finalizers: [batch.kubernetes.io/job-tracking]}}";
        pod(&cluster, &format!("apps/{name}: {of_job}"))
    };
    let (released, held) = (tracked("released"), tracked("held"));
    until_overdue();
    let server = cluster.server();
    // The Job controller removes its finalizer as soon as it sees the failed pod, that is, between the program's two writes.
    // The dry run of the delete comes before both.
    let proxy = Proxy::start(server, move |seen| {
        let is_real = seen.method == "DELETE" && !seen.path.contains("dryRun=All");
        if is_real && seen.path.contains("/released") {
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
