//! Nothing in the pods of one namespace stops a run for the other namespaces: neither the pods' size, nor the number of their
//! PVCs, nor the text in their fields.

use crate::{
    load::measure,
    prelude::*,
    support::{objects::in_parallel, samples::with},
};

/// Parallel requests while the pods are written. Each request has megabytes.
const BUILDERS: usize = 4;
/// The number of large pods on a node.
const LARGE: usize = 40;

/// The container of a pod that is as large as etcd accepts. JSON writes `<` with six characters, so the pod has 9 MB there.
fn large_argument() -> Value {
    json!({"spec": {"containers": [{"name": "main", "image": "example/main:1", "args": ["<".repeat(1_450_000)]}]}})
}

/// Many entries of everything that a run reads from a pod, in a pod that is as large as etcd accepts.
fn many_of_each() -> Vec<(&'static str, Value)> {
    let some = |count: usize, item: fn(usize) -> Value| (0..count).map(item).collect_vec();
    let args = some(450_000, |_| json!("<"));
    let toleration = |_| json!({"operator": "Exists"});
    let volume = |number| json!({"name": format!("v{number}"), "emptyDir": {}});
    let claim = |number| {
        let source = json!({"claimName": format!("c{number}")});
        json!({"name": format!("v{number}"), "persistentVolumeClaim": source})
    };
    let owner = |number| {
        let uid = format!("u{number}");
        json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid})
    };
    let keys = |count: usize| {
        let keys = (0..count).map(|number| (format!("k{number}"), json!("")));
        keys.collect::<Value>()
    };
    let containers = json!([{"name": "main", "image": "example/main:1", "args": args}]);
    vec![
        ("args", json!({"spec": {"containers": containers}})),
        (
            "tolerations",
            json!({"spec": {"tolerations": some(70_000, toleration)}}),
        ),
        (
            "volumes",
            json!({"spec": {"volumes": some(15_000, volume)}}),
        ),
        ("claims", json!({"spec": {"volumes": some(8_000, claim)}})),
        (
            "owners",
            json!({"metadata": {"ownerReferences": some(15_000, owner)}}),
        ),
        ("labels", json!({"metadata": {"labels": keys(40_000)}})),
        ("selector", json!({"spec": {"nodeSelector": keys(40_000)}})),
        (
            "a-note",
            json!({"metadata": {"annotations": {"pod-reaper.io/after-reap": "<".repeat(250_000)}}}),
        ),
    ]
}

/// Creates a pod and deletes it, so that it is Terminating. Returns its UID.
fn stuck(
    cluster: &ControlPlane,
    node: &str,
    (namespace, name): (&str, &str),
    more: Value,
) -> String {
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let main = yaml("{name: main, image: 'example/main:1'}");
    let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [main]}});
    let (status, pod) = cluster.request("POST", &path, Some(with(pod, more)));
    assert_eq!(status, 201, "{name}: {pod}");
    cluster.delete(&pod_path(namespace, name), yaml("{gracePeriodSeconds: 1}"));
    uid(&pod)
}

fn five_are_ready(cluster: &ControlPlane) {
    make(cluster, "{Namespace tenant: {}, Namespace others: {}}");
    for node in 0..5 {
        make(cluster, &format!("Node ready-{node}: {{ready: 'True'}}"));
    }
}

#[test]
fn large_pods_end_no_run() {
    let cluster = fresh();
    five_are_ready(&cluster);
    for dead in [1, 4] {
        let nodes = (0..dead).map(|node| format!("dead-{dead}-{node}"));
        let nodes = nodes.collect_vec();
        for node in &nodes {
            make(&cluster, &format!("Node {node}: {{}}"));
        }
        let pods = nodes.iter().flat_map(|node| {
            let large = (0..LARGE).map(|number| (number.to_string(), large_argument()));
            let many = many_of_each().into_iter();
            let many = many.map(|(what, more)| (what.to_owned(), more));
            large
                .chain(many)
                .map(move |(name, more)| (node, name, more))
        });
        in_parallel(BUILDERS, pods, |(node, name, more)| {
            let name = format!("{node}-{name}");
            stuck(&cluster, node, ("tenant", &name), more)
        });
        let others = nodes
            .iter()
            .map(|node| stuck(&cluster, node, ("others", node), json!({})));
        let others = others.collect::<BTreeSet<_>>();
        until_overdue();
        let what = format!("{LARGE} large pods on each of {dead} nodes");
        let run = measure(&cluster.kubeconfig, &[]);
        run.holds(&what);
        let deleted = run.with("deleted");
        assert!(others.is_subset(&deleted), "{what}");
        assert!(deleted.len() >= dead * LARGE, "{what}: {}", deleted.len());
    }
}

/// First, Leases whose holder is nothing on a dead node; then as many Leases that name one of two dead nodes.
#[test]
fn large_leases_end_no_run() {
    const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/tenant/leases";
    let cluster = fresh();
    five_are_ready(&cluster);
    let dead = ["named", "silent"];
    make(&cluster, "{Node named: {}, Node silent: {}}");
    let long = "x".repeat(500_000);
    // If more than 64 Leases name a node, the run does not read them. The node's pods need you, and the run does not fail.
    for (holder, of_named) in [("nobody", REAPED), ("named", ("kubelet-alive", None))] {
        in_parallel(BUILDERS, 0..400, |number| {
            let lease = json!({"metadata": {"name": format!("{holder}-{number}")},
                "spec": {"holderIdentity": format!("{holder}_{long}")}});
            cluster.create(LEASES, lease);
        });
        // There are so many pods that the report is longer than the buffer of a pipe.
        let [named, silent] = dead.map(|node| {
            in_parallel(BUILDERS, 0..64, |number| {
                let name = format!("{node}-{holder}-{number}");
                stuck(&cluster, node, ("others", &name), json!({}))
            })
        });
        until_overdue();
        let run = measure(&cluster.kubeconfig, &[]);
        let what = format!("400 Leases of 500 kB, held by {holder}");
        run.holds(&what);
        for (named, silent) in named.iter().zip(&silent) {
            run.run.says(named, of_named);
            run.run.says(silent, REAPED);
        }
        cluster.delete(LEASES, json!({}));
    }
}

/// The volumes of a pod that uses this many PVCs, none of which exist.
fn absent_claims(pod: &str, count: usize) -> Value {
    let volumes = (0..count).map(|number| {
        let source = json!({"claimName": format!("{pod}-{number}")});
        json!({"name": format!("v{number}"), "persistentVolumeClaim": source})
    });
    json!({"spec": {"volumes": volumes.collect_vec()}})
}

#[test]
fn claims_and_owners_of_any_number_and_spelling_end_no_run() {
    let cluster = one_dead();
    for name in ["tenant", "others"] {
        namespace(&cluster, name);
    }
    let of_8000 = (0..3).map(|pod| (format!("of-8000-{pod}"), 8_000));
    let of_64 = (0..1_000).map(|pod| (format!("of-64-{pod}"), 64));
    in_parallel(BUILDERS, of_8000.chain(of_64), |(name, claims)| {
        let more = absent_claims(&name, claims);
        stuck(&cluster, "dead", ("tenant", &name), more)
    });
    let spelled = ["..", ".", "a/../b", "a?limit=1", "A", "%2e%2e"];
    let unverified = spelled.iter().zip('a'..).map(|(claim, name)| {
        let name = format!("claim-{name}");
        let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": claim}});
        let more = json!({"spec": {"volumes": [volume]}});
        stuck(&cluster, "dead", ("tenant", &name), more)
    });
    let unverified = unverified.collect_vec();
    let owners = [
        ("../../../nodes?a=", "a"),
        ("StatefulSet", ".."),
        ("Job", "a/b"),
        (" ", "a"),
    ];
    let reaped = owners.iter().zip('a'..).map(|((kind, owner), name)| {
        let name = format!("owner-{name}");
        let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "u", "controller": true});
        let more = json!({"metadata": {"ownerReferences": [owner]}});
        stuck(&cluster, "dead", ("tenant", &name), more)
    });
    let reaped = reaped.collect_vec();
    let other = "others/web-0: {owner: StatefulSet web, volume: {csi: {driver: rbd.csi.ceph.com, volumeHandle: x}}}";
    let other = pod(&cluster, other);
    until_overdue();

    // In addition to the bound PVCs, the plan has 64,000 PVCs.
    let audit = measure(&cluster.kubeconfig, &["--dry-run"]);
    audit.ends(0, 96, "88,000 claims and odd names");
    let proxy = Proxy::to(&cluster);
    let run = measure(&proxy.kubeconfig, &[]);
    run.ends(0, 96, "the same, with deletes");
    run.run.says(&other, REAPED);
    for uid in unverified {
        run.run.says(&uid, ("volume-unverified", None));
    }
    for uid in reaped {
        run.run.says(&uid, REAPED);
    }
    let paths = proxy.seen().into_iter().map(|seen| seen.path);
    let paths = paths.collect_vec();
    let of_tenant = "/namespaces/tenant/persistentvolumeclaims/";
    let claims = paths.iter().filter(|path| path.contains(of_tenant)).count();
    assert_eq!(claims, 640);
    let odd = paths
        .iter()
        .filter(|path| path.contains("..") || path.contains("%2"))
        .filter(|path| !path.contains("/leases?"));
    assert_eq!(odd.collect_vec(), Vec::<&String>::new());
}
