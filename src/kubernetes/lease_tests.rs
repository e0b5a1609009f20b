//! Tests of which node, host or pod the holder of a Lease names.

use serde_json::{Value, json};

use super::*;
use rules::samples;

use crate::kubernetes::RawPod;

fn lease(namespace: &str, holder: &str) -> RawLease {
    let lease = json!({"metadata": {"namespace": namespace, "name": "leader"}, "spec": {"holderIdentity": holder}});
    serde_json::from_value(lease).expect("a lease")
}

fn pod(namespace: &str, name: &str, owner: &Value) -> HolderPod {
    let pod =
        json!({"metadata": {"namespace": namespace, "name": name, "ownerReferences": [owner]}});
    let pod = serde_json::from_value::<RawPod>(pod).expect("a pod");
    pod.as_holder()
}

fn of_set(name: &str) -> Value {
    owned_by("apps/v1", "ReplicaSet", name)
}

fn owned_by(version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": version, "kind": kind, "name": name, "controller": true})
}

/// The longest name that a `ReplicaSet` may have before Kubernetes cuts it.
const LONG: &str = "a-name-that-is-as-long-as-can-be-before-kubernetes-cuts-i";

/// Returns holders that check the nodes `rack1`, `a` and `edge-7`, with pods on `rack1`, and one on
/// `a`.
fn holders() -> Holders {
    let all = [
        "rack1",
        "rack2",
        "a",
        "a-b",
        "a-abcdefghij",
        "edge-7",
        "web-1",
    ];
    let mut holders = Holders::among(all.map(str::to_owned));
    let node = |name: &str, hostname: &str| NodeFacts {
        name: name.to_owned(),
        hostname: Some(hostname.to_owned()),
        ..samples::node()
    };
    let bare = owned_by("apps/v1", "StatefulSet", "web");
    let cut = format!("{LONG}i");
    let pods = [
        pod("shop", "web-1", &bare),
        pod("shop", "db-1", &bare),
        pod("shop", "rack2", &bare),
        pod(
            "cert-manager",
            "cert-manager-7c9d8-x2x4z",
            &of_set("cert-manager-7c9d8"),
        ),
        pod("shop", "shared", &bare),
        pod("shop", "forged-0", &of_set("forged")),
        pod("shop", "vowel-aeiou", &of_set("vowel")),
        pod(
            "shop",
            "report-10000",
            &owned_by("apps/v1", "StatefulSet", "report"),
        ),
        pod(
            "shop",
            "other-x2x4z",
            &owned_by("example.com/v1", "ReplicaSet", "other"),
        ),
        pod("shop", "rack2-x2x4z", &of_set("rack2")),
        pod("shop", &format!("{LONG}-x2x4z"), &of_set(LONG)),
        pod(
            "shop",
            &format!("{cut}w5w5w"),
            &of_set(&format!("{cut}-and-more")),
        ),
        pod("shop", &format!("{cut}-b6b6b"), &of_set(&cut)),
    ];
    holders.add(&node("rack1", "Rack1.example"), &pods);
    holders.add(&node("a", "a"), &[pod("shop", "rack2-x2x4z-0", &bare)]);
    let longer = pod(
        "tenant",
        "cert-manager-7c9d8-x2x4z-b6b6b",
        &of_set("cert-manager-7c9d8-x2x4z"),
    );
    holders.add(&node("edge-7", "shared"), &[longer]);
    holders
}

#[test]
fn a_holder_counts_for_all_hosts_and_pods_that_it_may_name() {
    let holders = holders();
    let (long, cut) = (format!("{LONG}-x2x4z-election"), format!("{LONG}iw5w5w_1"));
    let not_cut = format!("{LONG}i-b6b6b-election");
    for (namespace, holder, expected) in [
        // A node, by its name or hostname.
        ("kube-system", "rack1", "rack1"),
        ("kube-system", "RACK1_0a1b", "rack1"),
        ("kube-system", "rack1.example_0a1b", "rack1"),
        ("kube-system", "rack1-controller", ""),
        ("kube-system", "rack10", ""),
        ("kube-system", "rack10_0a1b", ""),
        // With ten letters, as cilium-operator appends them.
        ("kube-system", "rack1-aBcDeFgHiJ", "rack1"),
        ("kube-system", "rack1-abcdefghiJ", "rack1"),
        ("kube-system", "rack1-abcdefghij", ""),
        ("kube-system", "rack1-ABCDEFGHIJ", ""),
        ("kube-system", "rack1-aBcDeFgHi", ""),
        ("kube-system", "rack1-aBcDeFgHiJk", ""),
        ("kube-system", "rack1-aBcDeFgHi1", ""),
        ("kube-system", "rack1.example-aBcDeFgHiJ", "rack1"),
        // Another node has a longer name, or the same as a pod.
        ("kube-system", "a", "a"),
        ("kube-system", "a-b", ""),
        ("kube-system", "a-b_1", ""),
        ("kube-system", "a-b-aBcDeFgHiJ", ""),
        ("kube-system", "a-aBcDeFgHiJ", ""),
        ("kube-system", "a_b", "a"),
        ("shop", "rack2", ""),
        ("shop", "rack2_0a1b", ""),
        ("shop", "rack2-x2x4z_0a1b", "rack1"),
        ("shop", "rack2-x2x4z-1", "rack1"),
        ("shop", "rack2-x2x4z-0", "rack1 a"),
        ("kube-system", "rack2-x2x4z-0", "rack1"),
        ("shop", "web-1", ""),
        // A pod, in its own namespace.
        ("shop", "db-1", "rack1"),
        ("shop", "db-1_0a1b", "rack1"),
        ("shop", "db-10", ""),
        ("shop", "db-1-0a1b", ""),
        ("shop", "DB-1", ""),
        ("kube-system", "db-1", ""),
        // A pod of a ReplicaSet, in any namespace.
        ("kube-system", "cert-manager-7c9d8-x2x4z", "rack1"),
        ("kube-system", "cert-manager-7c9d8-x2x4z_1", "rack1"),
        (
            "kube-system",
            "cert-manager-7c9d8-x2x4z-external-cert-manager-controller",
            "rack1",
        ),
        ("kube-system", "cert-manager-7c9d8-x2x4zz", ""),
        // Neither a host nor a pod of others takes a heartbeat away from a node.
        ("shop", "shared", "rack1 edge-7"),
        (
            "kube-system",
            "cert-manager-7c9d8-x2x4z-b6b6b-1",
            "rack1 edge-7",
        ),
        ("kube-system", "cert-manager-7c9d8", ""),
        ("kube-system", "forged-0", ""),
        ("shop", "forged-0", "rack1"),
        ("kube-system", "vowel-aeiou", "rack1"),
        // A name that Kubernetes did not make for a ReplicaSet's pod may occur twice.
        ("kube-system", "report-10000", ""),
        ("shop", "report-10000", "rack1"),
        ("kube-system", "other-x2x4z", ""),
        ("shop", "other-x2x4z", "rack1"),
        ("kube-system", &long, "rack1"),
        ("kube-system", &cut, "rack1"),
        ("kube-system", &not_cut, ""),
        ("kube-system", "", ""),
    ] {
        let lease = lease(namespace, holder);
        let named = holders.of(&lease);
        let expected = expected.split_whitespace().collect::<BTreeSet<_>>();
        assert_eq!(named, expected, "{namespace}: {holder}");
        // A row of a table does not tell the namespace, so its holder may name more nodes.
        for named in named {
            let within = Some(namespace.to_owned());
            let mut of_row = holders.named_by("leader", holder);
            assert!(
                of_row.any(|(node, (of, _))| node == named && (of.is_none() || of == within)),
                "the row of {holder}"
            );
        }
    }
}
