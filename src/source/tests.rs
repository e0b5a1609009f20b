//! Tests of reading a snapshot: missing objects, malformed objects, and the forms that kubectl prints.
//!
//! Most of them assert the verdicts of the pods, since a mistake in reading matters where it changes a verdict.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
};

use expect_test::expect;
use jiff::{SignedDuration, Timestamp};
use pod_reaper_test_support::samples::{self, DEADLINE, FAILED, NOW, namespace, with};
use serde_json::{Value, json};

use super::{
    snapshot::{Options, Pods, Saved, SnapshotError},
    *,
};
use crate::{
    decide::{Policy, ReasonCode, may_live},
    facts::{
        Census, ClaimFacts, ClaimState, ClusterFacts, Heard, KubeletAlive, LeafKind, NodeFacts,
        NodeRead, Owned, SignBy,
    },
    limits::{Limits, Plan},
    selector::NodeSelectors,
};

fn moment(text: &str) -> Timestamp {
    text.parse().expect("a moment")
}

fn node(name: &str, ready: &str) -> Value {
    with(
        samples::node(name, ready),
        json!({"metadata": {"creationTimestamp": FAILED}}),
    )
}

/// A pod stuck on ds06, in namespace `data`, without an owner.
fn pod(name: &str) -> Value {
    let more = json!({"uid": format!("uid-{name}"), "deletionGracePeriodSeconds": 30, "ownerReferences": null});
    with(
        samples::pod("data", name, "ds06"),
        json!({"metadata": more}),
    )
}

fn pod_with_claim(name: &str, claim: &str) -> Value {
    samples::using(pod(name), claim)
}

fn claim(name: &str, volume: &str) -> Value {
    samples::claim("data", name, volume)
}

/// A volume on the network, usable on any node.
fn volume(name: &str) -> Value {
    let spec = json!({"csi": {"driver": "ceph"}, "persistentVolumeReclaimPolicy": "Delete"});
    samples::volume(name, &spec)
}

/// A lease that was last renewed when the node failed, by the clocks of the node and of the API server.
fn lease(node: &str) -> Value {
    with(
        samples::lease(node),
        json!({"spec": {"renewTime": FAILED, "leaseDurationSeconds": 40}}),
    )
}

/// A list, as `kubectl get … -o json` prints it.
fn list(items: impl IntoIterator<Item = Value>) -> String {
    samples::list(items).to_string()
}

/// All objects but the pods: ds06 is cut off, ds04 and ds05 are Ready.
fn cluster() -> Vec<Value> {
    vec![
        node("ds04", "True"),
        node("ds05", "True"),
        node("ds06", "Unknown"),
        namespace("data"),
        lease("ds04"),
        lease("ds05"),
        lease("ds06"),
    ]
}

fn cluster_with(more: impl IntoIterator<Item = Value>) -> String {
    list(cluster().into_iter().chain(more))
}

fn without(kind: &str, items: impl IntoIterator<Item = Value>) -> String {
    list(items.into_iter().filter(|item| item["kind"] != kind))
}

fn policy() -> Policy {
    let minutes = SignedDuration::from_mins(10);
    Policy {
        reap_older_than: minutes,
        node_not_ready_for: minutes,
        kubelet_alive: KubeletAlive::HoldUnique,
        manual_owner_kinds: Vec::new(),
        reap_scratch: false,
    }
}

fn gathered_at(now: Option<&str>, text: &str) -> Result<Gathered, SnapshotError> {
    let wanted = Wanted {
        policy: &policy(),
        namespaces: &NamespaceFilter::default(),
        all: true,
    };
    let options = Options {
        now: now.map(moment),
        ..Options::default()
    };
    let saved = Saved::read(text.as_bytes(), options, Pods::Terminating)?;
    Ok(saved.gather(&wanted).expect("nothing is waited for"))
}

fn gathered(text: &str) -> Gathered {
    gathered_at(Some(NOW), text).expect("a snapshot that can be judged")
}

fn facts(text: &str) -> ClusterFacts {
    gathered(text).facts
}

fn judged(gathered: Gathered) -> Plan {
    judged_with_breaker(gathered, 55)
}

fn judged_with_breaker(Gathered { facts, pods }: Gathered, max_not_ready_percent: u8) -> Plan {
    Plan::new(
        &facts,
        pods,
        &policy(),
        &Limits {
            max_deletes: None,
            max_not_ready_percent,
        },
    )
}

/// One line per pod with its reason, then the errors and what could not be seen.
fn verdicts(text: &str) -> String {
    let gathered = gathered(text);
    let facts = gathered.facts.clone();
    let pods = judged(gathered).pods.into_iter().map(|judged| {
        let detail = match judged.code() {
            ReasonCode::Stuck => String::new(),
            _ => format!(": {}", judged.sentence()),
        };
        format!("{} {}{detail}", judged.pod.name, judged.code())
    });
    let errors = facts
        .errors
        .iter()
        .map(|error| format!("error: {}: {}", error.what, error.cause));
    let unseen = facts
        .unseen
        .iter()
        .map(|sentence| format!("unseen: {sentence}"));
    pods.chain(errors)
        .chain(unseen)
        .map(|line| line + "\n")
        .collect()
}

/// The names of the pods that would be force-deleted; empty where the whole snapshot is refused.
fn reaped(text: &str) -> BTreeSet<String> {
    let Ok(gathered) = gathered_at(Some(NOW), text) else {
        return BTreeSet::new();
    };
    judged(gathered)
        .reaps()
        .map(|pod| pod.name.clone())
        .collect()
}

// Objects that were not saved.

#[test]
fn a_complete_snapshot_leaves_nothing_unseen() {
    let text = cluster_with([
        pod("plain"),
        pod_with_claim("web-0", "data-web-0"),
        claim("data-web-0", "pv-1"),
        volume("pv-1"),
    ]);
    expect![[r#"
        plain stuck-on-not-ready-node
        web-0 stuck-on-not-ready-node
    "#]]
    .assert_eq(&verdicts(&text));
}

#[test]
fn without_volumes_no_claim_is_verified() {
    let text = cluster_with([
        pod("plain"),
        pod_with_claim("web-0", "data-web-0"),
        claim("data-web-0", "pv-1"),
    ]);
    expect![[r#"
        plain stuck-on-not-ready-node
        web-0 volume-unverified: It is unverified whether its storage is on the dead node: claim data-web-0: volumes were not saved in the snapshot.
        unseen: The file lacks pv. This saves all:
        unseen: kubectl get nodes,ns,pods,pvc,pv,leases,volumeattachments,sts -A -o json --show-managed-fields
    "#]]
    .assert_eq(&verdicts(&text));
}

#[test]
fn without_claims_none_counts_as_absent() {
    let text = cluster_with([
        pod("plain"),
        pod_with_claim("web-0", "data-web-0"),
        volume("pv-1"),
    ]);
    expect![[r#"
        plain stuck-on-not-ready-node
        web-0 volume-unverified: It is unverified whether its storage is on the dead node: claim data-web-0: claims were not saved in the snapshot.
        unseen: The file lacks pvc. This saves all:
        unseen: kubectl get nodes,ns,pods,pvc,pv,leases,volumeattachments,sts -A -o json --show-managed-fields
    "#]]
    .assert_eq(&verdicts(&text));
}

#[test]
fn a_claim_or_volume_that_others_show_to_be_absent_is() {
    // The claims were saved without this one, so it does not exist and pins nothing.
    let text = cluster_with([
        pod_with_claim("web-0", "gone"),
        claim("other", "pv-1"),
        volume("pv-1"),
    ]);
    assert_eq!(reaped(&text), BTreeSet::from(["web-0".to_owned()]));
    // A missing volume differs: its claim is lost.
    let text = cluster_with([
        pod_with_claim("web-0", "data-web-0"),
        claim("data-web-0", "gone"),
        volume("pv-1"),
    ]);
    expect![[r#"
        web-0 volume-unverified: It is unverified whether its storage is on the dead node: claim data-web-0: its volume gone does not exist.
    "#]]
    .assert_eq(&verdicts(&text));
    let unbound = with(
        claim("data-web-0", ""),
        json!({"status": {"phase": "Pending"}}),
    );
    let text = cluster_with([pod_with_claim("web-0", "data-web-0"), unbound]);
    expect![[r#"
        web-0 volume-unverified: It is unverified whether its storage is on the dead node: claim data-web-0: it names no volume (phase Pending).
    "#]]
    .assert_eq(&verdicts(&text));
    let lost = with(
        claim("data-web-0", "pv-1"),
        json!({"status": {"phase": "Lost"}}),
    );
    assert_eq!(
        reaped(&cluster_with([
            pod_with_claim("web-0", "data-web-0"),
            lost,
            volume("pv-1")
        ])),
        BTreeSet::new()
    );
}

#[test]
fn scratch_is_proved_by_the_snapshot_or_not_at_all() {
    let labels = json!({"apps.kubernetes.io/pod-index": "0"});
    let cache = samples::using(samples::pod("data", "cache-0", "ds06"), "disk-cache-0");
    let cache = with(cache, json!({"metadata": {"labels": labels}}));
    let disk = json!({"local": {"path": "/x"}});
    let objects = || {
        let proof = [
            samples::set("data", "cache", &["disk"]),
            samples::scratch("data", "disk-cache-0", "pv-1"),
        ];
        cluster()
            .into_iter()
            .chain(proof)
            .chain([samples::volume("pv-1", &disk), cache.clone()])
    };
    let other = samples::using(pod("other"), "disk-cache-0");
    let reason = |scratch: bool, text: &str| {
        let policy = Policy {
            reap_scratch: scratch,
            ..policy()
        };
        let wanted = Wanted {
            policy: &policy,
            namespaces: &NamespaceFilter::default(),
            all: true,
        };
        let options = Options {
            now: Some(moment(NOW)),
            ..Options::default()
        };
        let saved = Saved::read(text.as_bytes(), options, Pods::Terminating).expect("a snapshot");
        let Gathered { facts, pods } = saved.gather(&wanted).expect("a snapshot");
        let pod = pods
            .iter()
            .find(|pod| pod.name == "cache-0")
            .expect("it is there");
        crate::decide::decide(facts.now, &policy, facts.node_of(pod), pod).code()
    };
    for (name, text, expected) in [
        ("all is there", list(objects()), ReasonCode::Scratch),
        (
            "no StatefulSets",
            without("StatefulSet", objects()),
            ReasonCode::LocalVolume,
        ),
        (
            "another user",
            list(objects().chain([other])),
            ReasonCode::LocalVolume,
        ),
        (
            "a malformed pod",
            list(objects().chain([json!({"kind": "Pod", "spec": 7})])),
            ReasonCode::LocalVolume,
        ),
        (
            "a malformed set",
            without(
                "StatefulSet",
                objects().chain([json!({"kind": "StatefulSet", "spec": 7})]),
            ),
            ReasonCode::LocalVolume,
        ),
    ] {
        assert_eq!(reason(true, &text), expected, "{name}");
        assert_eq!(
            reason(false, &text),
            ReasonCode::LocalVolume,
            "{name}, not asked for"
        );
    }
}

#[test]
fn without_namespaces_the_opt_outs_are_named_as_unseen() {
    let elsewhere = with(
        pod("b"),
        json!({"metadata": {"namespace": "app", "uid": "uid-app"}}),
    );
    let text = without(
        "Namespace",
        cluster().into_iter().chain([pod("a"), elsewhere, pod("c")]),
    );
    expect![[r#"
        b stuck-on-not-ready-node
        a stuck-on-not-ready-node
        c stuck-on-not-ready-node
        unseen: The file lacks namespaces (whether they are opted out). This saves all:
        unseen: kubectl get nodes,ns,pods,pvc,pv,leases,volumeattachments,sts -A -o json --show-managed-fields
    "#]]
    .assert_eq(&verdicts(&text));
}

#[test]
fn a_namespace_that_was_not_saved_among_others_holds_its_pods() {
    let elsewhere = with(pod("b"), json!({"metadata": {"namespace": "app"}}));
    expect![[r#"
        b facts-unread: A fact that the decision needs could not be read: the namespace: app is not in the snapshot.
        a stuck-on-not-ready-node
    "#]]
    .assert_eq(&verdicts(&cluster_with([pod("a"), elsewhere])));
}

#[test]
fn without_leases_recoveries_are_named_as_unseen() {
    let expected = expect![[r#"
        a stuck-on-not-ready-node
        unseen: The file lacks leases (whether a node lives). This saves all:
        unseen: kubectl get nodes,ns,pods,pvc,pv,leases,volumeattachments,sts -A -o json --show-managed-fields
    "#]];
    expected.assert_eq(&verdicts(&without(
        "Lease",
        cluster().into_iter().chain([pod("a")]),
    )));
    // Leases of other namespaces are leader elections, not heartbeats of nodes.
    let election = with(
        lease("ds06"),
        json!({"metadata": {"namespace": "kube-system"}, "spec": {"renewTime": NOW}}),
    );
    let text = without("Lease", cluster().into_iter().chain([pod("a")]));
    let mut list: Value = serde_json::from_str(&text).expect("a list");
    list["items"].as_array_mut().expect("items").push(election);
    expected.assert_eq(&verdicts(&list.to_string()));
}

#[test]
fn without_nodes_or_pods_nothing_is_judged() {
    let refused = |text: &str| {
        gathered_at(Some(NOW), text)
            .expect_err("it is refused")
            .to_string()
    };
    expect!["it holds no nodes; save it with `kubectl get nodes,ns,pods,pvc,pv,leases,volumeattachments,sts -A -o json --show-managed-fields`"]
    .assert_eq(&refused(&without("Node", cluster().into_iter().chain([pod("a")]))));
    expect!["it holds no pods; save it with `kubectl get nodes,ns,pods,pvc,pv,leases,volumeattachments,sts -A -o json --show-managed-fields`"]
    .assert_eq(&refused(&cluster_with([])));
    assert!(matches!(
        gathered_at(Some(NOW), "").expect_err("nothing"),
        SnapshotError::Missing("nodes")
    ));
    assert!(matches!(
        gathered_at(Some(NOW), " \n").expect_err("nothing"),
        SnapshotError::Missing("nodes")
    ));
    // With running pods in the snapshot it is known that none is stuck.
    let alive = json!({"kind": "Pod", "metadata": {"namespace": "data", "name": "a", "uid": "u"}});
    expect![""].assert_eq(&verdicts(&cluster_with([alive])));
}

// Forms.

#[test]
fn every_form_that_kubectl_prints_gives_the_same_facts() {
    let items = || {
        let volumes = [claim("data-web-0", "pv-1"), volume("pv-1")];
        cluster()
            .into_iter()
            .chain([pod("a"), pod_with_claim("web-0", "data-web-0")])
            .chain(volumes)
    };
    let kinds = || {
        let kinds = items().map(|item| item["kind"].as_str().expect("a kind").to_owned());
        kinds.collect::<BTreeSet<_>>()
    };
    let of_kind = |kind: &str| {
        items()
            .filter(|item| item["kind"] == kind)
            .collect::<Vec<_>>()
    };
    let one_list = list(items());
    // kubectl get --raw, or client libraries: items without kinds, apiVersions on the list.
    let typed_list = |kind: &String| {
        let bare = of_kind(kind).into_iter().map(|mut item| {
            item.as_object_mut().expect("an object").remove("kind");
            item
        });
        json!({"apiVersion": "v1", "kind": format!("{kind}List"), "items": bare.collect::<Vec<_>>()})
    };
    let forms = [
        (
            "single objects",
            items()
                .map(|item| item.to_string() + "\n")
                .collect::<String>(),
        ),
        (
            "indented objects, nothing between",
            items()
                .map(|item| serde_json::to_string_pretty(&item).expect("JSON"))
                .collect(),
        ),
        (
            "a list a kind",
            kinds()
                .iter()
                .map(|kind| list(of_kind(kind)) + "\n")
                .collect(),
        ),
        (
            "typed lists",
            kinds()
                .iter()
                .map(|kind| typed_list(kind).to_string())
                .collect(),
        ),
        (
            "typed lists in a list",
            list(kinds().iter().map(typed_list)),
        ),
        (
            "lists in lists in lists",
            list([serde_json::from_str(&list(items())).expect("a list")]),
        ),
        ("the same list twice", format!("{one_list}\n{one_list}")),
        (
            "with something else in it",
            list(items().chain([json!({"kind": "ConfigMap", "data": {"kind": "Pod"}})])),
        ),
        (
            "with an empty list",
            format!(
                "{one_list}{}",
                json!({"kind": "ServiceList", "items": null})
            ),
        ),
    ];
    let expected = verdicts(&one_list);
    assert_eq!(expected.lines().count(), 2, "{expected}");
    for (name, text) in forms {
        assert_eq!(verdicts(&text), expected, "{name}");
    }
}

#[test]
fn objects_that_were_saved_twice_count_once() {
    let twice = |item: Value| [item.clone(), item];
    let text = list(cluster().into_iter().chain([pod("a")]).flat_map(twice));
    let Gathered { facts, pods } = gathered(&text);
    assert_eq!(pods.len(), 1);
    assert_eq!(facts.node_count, 3);
    let Census::Counted { all, .. } = facts.census else {
        panic!("{:?}", facts.census)
    };
    assert_eq!((all.not_ready, all.total), (1, 3));
}

#[test]
fn a_node_that_was_saved_twice_keeps_its_lease() {
    let renewed = with(
        lease("ds06"),
        json!({"spec": {"renewTime": "2026-01-31T02:59:55Z"}}),
    );
    let once = cluster()
        .into_iter()
        .filter(|item| item["kind"] != "Lease")
        .chain([renewed, pod("a")]);
    let twice = once.clone().chain([node("ds06", "Unknown")]);
    for (name, text) in [("once", list(once)), ("twice", list(twice))] {
        assert_eq!(
            reaped(&text),
            BTreeSet::new(),
            "{name}: {}",
            verdicts(&text)
        );
    }
}

#[test]
fn namesakes_are_distinguished_by_uid() {
    let elsewhere = with(
        pod("huebackend-0"),
        json!({"metadata": {"namespace": "impala", "uid": "uid-other"}}),
    );
    let successor = with(
        pod("huebackend-0"),
        json!({"metadata": {"uid": "uid-successor"}}),
    );
    let pods = gathered(&cluster_with([pod("huebackend-0"), elsewhere, successor])).pods;
    assert_eq!(pods.len(), 3);
}

#[test]
fn a_null_counts_as_an_absent_field() {
    let bare = with(
        pod("a"),
        json!({
            "metadata": {"labels": null, "annotations": null, "finalizers": null, "ownerReferences": null,
                "deletionGracePeriodSeconds": null, "managedFields": null, "creationTimestamp": null},
            "spec": {"volumes": null},
            "status": {"phase": null, "conditions": null},
        }),
    );
    let volumeless = with(
        pod("b"),
        json!({"spec": {"volumes": [{"name": null, "persistentVolumeClaim": null, "ephemeral": null}]}}),
    );
    let alive = json!({"kind": "Pod", "metadata": {"name": "alive", "deletionTimestamp": null}});
    let unlabelled = with(
        node("ds07", "True"),
        json!({"metadata": {"labels": null, "annotations": null}, "spec": {"taints": null}}),
    );
    let unstamped = with(
        lease("ds07"),
        json!({"metadata": {"managedFields": null}, "spec": {"renewTime": null, "leaseDurationSeconds": null}}),
    );
    let attachment = json!({"kind": "VolumeAttachment", "metadata": {"name": "x"}, "spec": {"nodeName": "ds06", "source": {"persistentVolumeName": null}}});
    let moving = with(
        volume("pv"),
        json!({"spec": {"local": null, "hostPath": null, "nodeAffinity": null}}),
    );
    let text = cluster_with([
        bare, volumeless, alive, unlabelled, unstamped, attachment, moving,
    ]);
    expect![[r#"
        a stuck-on-not-ready-node
        b stuck-on-not-ready-node
    "#]]
    .assert_eq(&verdicts(&text));
}

#[test]
fn pods_of_ready_nodes_are_left_out_unless_all_are_wanted() {
    let text = cluster_with([
        pod("stuck"),
        with(pod("slow"), json!({"spec": {"nodeName": "ds04"}})),
        with(pod("orphan"), json!({"spec": {"nodeName": "ds99"}})),
        with(pod("never-placed"), json!({"spec": {"nodeName": null}})),
    ]);
    let names = |all| {
        let wanted = Wanted {
            policy: &policy(),
            namespaces: &NamespaceFilter::default(),
            all,
        };
        let options = Options {
            now: Some(moment(NOW)),
            ..Options::default()
        };
        let saved = Saved::read(text.as_bytes(), options, Pods::Terminating).expect("a snapshot");
        let pods = saved.gather(&wanted).expect("a snapshot").pods;
        pods.into_iter()
            .map(|pod| pod.name)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    };
    assert_eq!(names(false), ["never-placed", "orphan", "stuck"]);
    assert_eq!(names(true), ["never-placed", "orphan", "slow", "stuck"]);
    assert_eq!(reaped(&text), BTreeSet::from(["stuck".to_owned()]));
    expect![[r#"
        never-placed node-gone: It was never assigned to a node; the pod garbage collector takes care of it.
        orphan node-gone: Node ds99 no longer exists; the pod garbage collector takes care of it.
        slow node-ready: Its node is Ready: the kubelet there is stopping it; if it does not, look at that kubelet.
        stuck stuck-on-not-ready-node
    "#]]
    .assert_eq(&verdicts(&text));
}

// Malformed objects.

/// Pods that each a single obstacle holds, and two that nothing holds.
fn held_pods() -> Vec<Value> {
    let on = |node: &str, name: &str| with(pod(name), json!({"spec": {"nodeName": node}}));
    let skip = json!({"metadata": {"annotations": {"pod-reaper.io/skip": "true"}}});
    let leaf = |name: &str, mark: Value| with(node(name, "Unknown"), mark);
    let in_namespace =
        |namespace: &str, pod: Value| with(pod, json!({"metadata": {"namespace": namespace}}));
    let affinity = json!([{"matchExpressions": [{"key": "topology.topolvm.io/node", "operator": "In", "values": ["ds06"]}]}]);
    let renewal = json!([{"time": NOW, "fieldsV1": {"f:spec": {"f:renewTime": {}}}}]);
    vec![
        pod("free"),
        pod_with_claim("free-with-claim", "network"),
        claim("network", "pv-network"),
        volume("pv-network"),
        with(pod("opted-out"), skip.clone()),
        in_namespace("quiet", pod("namespace-opted-out")),
        with(namespace("quiet"), skip.clone()),
        on("ds10", "node-opted-out"),
        with(node("ds10", "Unknown"), skip),
        with(
            pod("mirror"),
            json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}),
        ),
        with(
            pod("held"),
            json!({"metadata": {"finalizers": ["example.com/backup"]}}),
        ),
        with(
            pod("recent"),
            json!({"metadata": {"deletionTimestamp": "2026-01-31T02:59:00Z"}}),
        ),
        on("ds04", "on-ready-node"),
        on("ds11", "node-recovers"),
        node("ds11", "Unknown"),
        with(
            lease("ds11"),
            json!({"metadata": {"managedFields": renewal}}),
        ),
        on("ds12", "node-just-failed"),
        with(
            node("ds12", "Unknown"),
            json!({"status": {"conditions": [
                {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-31T02:55:00Z"}
            ]}}),
        ),
        on("leaf-1", "leaf-by-label"),
        leaf(
            "leaf-1",
            json!({"metadata": {"labels": {"kosmos.io/node": "true"}}}),
        ),
        on("leaf-2", "leaf-by-annotation"),
        leaf(
            "leaf-2",
            json!({"metadata": {"annotations": {"kosmos-io/owned-by-cluster": "c2"}}}),
        ),
        on("leaf-3", "leaf-by-taint"),
        leaf(
            "leaf-3",
            json!({"spec": {"taints": [{"key": "kosmos.io/node", "effect": "NoSchedule"}]}}),
        ),
        on("kosmos-c4", "leaf-by-name"),
        node("kosmos-c4", "Unknown"),
        pod_with_claim("local", "local"),
        claim("local", "pv-local"),
        with(
            volume("pv-local"),
            json!({"spec": {"local": {"path": "/mnt/disk"}}}),
        ),
        pod_with_claim("host-path", "host-path"),
        claim("host-path", "pv-host-path"),
        with(
            volume("pv-host-path"),
            json!({"spec": {"hostPath": {"path": "/opt/x"}}}),
        ),
        pod_with_claim("pinned", "pinned"),
        claim("pinned", "pv-pinned"),
        with(
            volume("pv-pinned"),
            json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": affinity}}}}),
        ),
        pod_with_claim("lost", "lost"),
        with(
            claim("lost", "pv-network"),
            json!({"status": {"phase": "Lost"}}),
        ),
        with(
            pod("ephemeral"),
            json!({"spec": {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]}}),
        ),
        claim("ephemeral-scratch", "pv-local"),
    ]
}

/// The reason of every pod, with the breaker off, so that it does not hold them.
fn reasons(text: &str) -> BTreeMap<String, &'static str> {
    let Ok(gathered) = gathered_at(Some(NOW), text) else {
        return BTreeMap::new();
    };
    let pods = judged_with_breaker(gathered, 100).pods;
    pods.into_iter()
        .map(|judged| (judged.pod.name.clone(), judged.code().as_str()))
        .collect()
}

#[test]
fn each_obstacle_holds_its_pod() {
    expect![[r#"
        ephemeral local-volume
        free stuck-on-not-ready-node
        free-with-claim stuck-on-not-ready-node
        held finalizers
        host-path local-volume
        leaf-by-annotation kosmos-leaf
        leaf-by-label kosmos-leaf
        leaf-by-name kosmos-leaf
        leaf-by-taint kosmos-leaf
        local local-volume
        lost volume-unverified
        mirror mirror-pod
        namespace-opted-out opted-out
        node-just-failed node-just-failed
        node-opted-out opted-out
        node-recovers kubelet-alive
        on-ready-node node-ready
        opted-out opted-out
        pinned local-volume
        recent not-overdue
    "#]]
    .assert_eq(&{
        let reasons = reasons(&list(cluster().into_iter().chain(held_pods())));
        reasons
            .iter()
            .flat_map(|(pod, reason)| [pod, " ", reason, "\n"])
            .collect::<String>()
    });
}

/// The path of every value inside `value`.
fn paths(value: &Value) -> Vec<Vec<String>> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(at, value)| (at.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    let below = |(key, value): (String, &Value)| {
        let deeper = paths(value)
            .into_iter()
            .map(move |rest| iter::once(key.clone()).chain(rest).collect());
        deeper.collect::<Vec<_>>()
    };
    iter::once(Vec::new())
        .chain(children.into_iter().flat_map(below))
        .collect()
}

fn at<'a>(value: &'a mut Value, path: &[String]) -> &'a mut Value {
    path.iter().fold(value, |value, key| match value {
        Value::Array(items) => &mut items[key.parse::<usize>().expect("an index")],
        value => &mut value[key],
    })
}

/// Replaces each value of each object in turn by one of another type, such as text by a number. An object that cannot
/// be read may hold pods, but must never let one be reaped.
#[test]
fn a_malformed_value_anywhere_never_adds_a_pod_to_the_plan() {
    let state = cluster().into_iter().chain(held_pods()).collect::<Vec<_>>();
    let mut texts = state.iter().map(Value::to_string).collect::<Vec<_>>();
    let reaped = |texts: &[String]| {
        let reaps = |(pod, reason)| (reason == "stuck-on-not-ready-node").then_some(pod);
        reasons(&texts.concat())
            .into_iter()
            .filter_map(reaps)
            .collect::<BTreeSet<_>>()
    };
    let expected = reaped(&texts);
    assert_eq!(expected.len(), 2, "{expected:?}");
    let mut added = Vec::new();
    let mut tried = 0;
    for (number, object) in state.iter().enumerate() {
        for path in paths(object).into_iter().skip(1) {
            // The field names of a managed fields entry may have any form.
            if path.iter().any(|key| key == "fieldsV1") {
                continue;
            }
            for malformed in [json!(5), json!([5]), json!({"a": 5}), json!("a")] {
                let mut changed = object.clone();
                let value = at(&mut changed, &path);
                // A value of the same type is not malformed.
                if std::mem::discriminant(value) == std::mem::discriminant(&malformed) {
                    continue;
                }
                *value = malformed.clone();
                tried += 1;
                texts[number] = changed.to_string();
                let more = reaped(&texts)
                    .difference(&expected)
                    .cloned()
                    .collect::<Vec<_>>();
                if !more.is_empty() {
                    let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
                    added.push(format!(
                        "{kind} {name}: {} is {malformed}: {more:?}",
                        path.join(".")
                    ));
                }
            }
        }
        texts[number] = object.to_string();
    }
    assert!(tried > 1000, "{tried}");
    assert!(
        added.is_empty(),
        "{} of {tried}:\n{}",
        added.len(),
        added.join("\n")
    );
}

#[test]
fn a_malformed_pod_is_an_error_and_affects_no_other() {
    let text = cluster_with([
        pod("a"),
        json!({"kind": "Pod", "metadata": {"deletionTimestamp": DEADLINE, "namespace": "data"}}),
        with(pod("no-uid"), json!({"metadata": {"uid": ""}})),
        with(
            pod("no-version"),
            json!({"metadata": {"resourceVersion": null}}),
        ),
        with(
            pod("no-claim"),
            json!({"spec": {"volumes": [{"persistentVolumeClaim": {}}]}}),
        ),
        with(pod("no-node"), json!({"spec": {"nodeName": 5}})),
    ]);
    expect![[r#"
        a stuck-on-not-ready-node
        error: Pod data/without a name: metadata.name is missing
        error: Pod data/no-claim: persistentVolumeClaim.claimName is missing
        error: Pod data/no-node: a field has an unexpected type
        error: Pod data/no-uid: metadata.uid is missing
        error: Pod data/no-version: metadata.resourceVersion is missing
    "#]]
    .assert_eq(&verdicts(&text));
}

#[test]
fn a_malformed_pod_is_reported_by_name_where_it_has_one() {
    let text = cluster_with([
        pod("a"),
        with(
            pod("number"),
            json!({"metadata": {"deletionTimestamp": 1_769_824_800}}),
        ),
        with(pod("empty"), json!({"metadata": {"deletionTimestamp": ""}})),
    ]);
    let Gathered { facts, pods } = gathered(&text);
    let named = facts
        .errors
        .iter()
        .map(|error| error.what.as_str())
        .collect::<Vec<_>>();
    assert_eq!(named, ["Pod data/empty", "Pod data/number"]);
    assert_eq!(pods.len(), 1);
}

#[test]
fn an_error_does_not_repeat_the_value() {
    let secret = with(pod("a"), json!({"spec": {"volumes": "MARKER"}}));
    let text = cluster_with([
        secret,
        with(pod("b"), json!({"metadata": {"annotations": "MARKER"}})),
    ]);
    assert!(!verdicts(&text).contains("MARKER"), "{}", verdicts(&text));
}

#[test]
fn a_malformed_object_that_a_pod_depends_on_is_named_and_holds_the_pod() {
    let state = |malformed: Value| {
        let kind = malformed["kind"].clone();
        let name = malformed["metadata"]["name"].clone();
        let same = |item: &Value| item["kind"] == kind && item["metadata"]["name"] == name;
        let objects = [
            pod_with_claim("a", "data-a"),
            claim("data-a", "pv-a"),
            volume("pv-a"),
            claim("b", "pv-a"),
            volume("pv-b"),
        ];
        list(
            cluster()
                .into_iter()
                .chain(objects)
                .filter(|item| !same(item))
                .chain([malformed]),
        )
    };
    let malformed_claim = with(claim("data-a", "pv-a"), json!({"spec": {"volumeName": 5}}));
    let malformed_volume = with(volume("pv-a"), json!({"spec": {"local": {"path": 5}}}));
    let malformed_lease = with(lease("ds06"), json!({"spec": {"renewTime": "noon"}}));
    let malformed_node = with(node("ds06", "Unknown"), json!({"spec": {"taints": 5}}));
    let malformed_namespace = with(
        namespace("data"),
        json!({"metadata": {"annotations": {"pod-reaper.io/skip": 5}}}),
    );
    let cases = [
        (
            "claim",
            malformed_claim,
            expect![[r#"
                a volume-unverified: It is unverified whether its storage is on the dead node: claim data-a: the snapshot's PersistentVolumeClaim could not be read: a field has an unexpected type.
                error: PersistentVolumeClaim data/data-a: a field has an unexpected type
            "#]],
        ),
        (
            "volume",
            malformed_volume,
            expect![[r#"
                a volume-unverified: It is unverified whether its storage is on the dead node: claim data-a: the snapshot's PersistentVolume could not be read: a field has an unexpected type.
                error: PersistentVolume pv-a: a field has an unexpected type
            "#]],
        ),
        (
            "lease",
            malformed_lease,
            expect![[r#"
                a facts-unread: A fact that the decision needs could not be read: the node's lease: the snapshot's Lease could not be read: a field has an unexpected type.
                error: Lease kube-node-lease/ds06: a field has an unexpected type
            "#]],
        ),
        (
            "node",
            malformed_node,
            expect![[r#"
                a facts-unread: A fact that the decision needs could not be read: the node: the snapshot's Node could not be read: a field has an unexpected type.
                error: Node ds06: a field has an unexpected type
            "#]],
        ),
        (
            "namespace",
            malformed_namespace,
            expect![[r#"
                a facts-unread: A fact that the decision needs could not be read: the namespace: the snapshot's Namespace could not be read: a field has an unexpected type.
                error: Namespace data: a field has an unexpected type
                unseen: The file lacks pods of other namespaces, if there are any (-A). This saves all:
                unseen: kubectl get nodes,ns,pods,pvc,pv,leases,volumeattachments,sts -A -o json --show-managed-fields
            "#]],
        ),
    ];
    for (_, malformed, expected) in cases {
        let text = state(malformed);
        assert_eq!(reaped(&text), BTreeSet::new());
        expected.assert_eq(&verdicts(&text));
    }
}

#[test]
fn a_lease_with_malformed_metadata_holds_the_pod_too() {
    let renewed = with(
        lease("ds06"),
        json!({"metadata": {"labels": {"a": 5}}, "spec": {"renewTime": NOW}}),
    );
    let others = cluster().into_iter().filter(|item| *item != lease("ds06"));
    let text = list(others.chain([renewed, pod("a")]));
    assert_eq!(reaped(&text), BTreeSet::new(), "{}", verdicts(&text));
}

/// Such an object may be the one that a lookup misses.
#[test]
fn an_object_that_does_not_say_which_it_is_proves_nothing_absent() {
    let less = |mut item: Value, key: &str| {
        item["metadata"]
            .as_object_mut()
            .expect("metadata")
            .remove(key);
        item
    };
    let stale = || cluster().into_iter().filter(|item| *item != lease("ds06"));
    let renewed = with(lease("ds06"), json!({"spec": {"renewTime": NOW}}));
    let local = with(
        volume("pv-local"),
        json!({"spec": {"local": {"path": "/mnt"}}}),
    );
    let claims = |malformed: Value| {
        [
            pod_with_claim("a", "local"),
            malformed,
            claim("other", "pv-local"),
            local.clone(),
        ]
    };
    let cases = [
        (
            "a lease without a name",
            list(stale().chain([pod("a"), less(renewed.clone(), "name")])),
        ),
        (
            "a lease without a namespace",
            list(stale().chain([pod("a"), less(renewed, "namespace")])),
        ),
        (
            "a claim without a name",
            cluster_with(claims(less(claim("local", "pv-local"), "name"))),
        ),
        (
            "a claim without a namespace",
            cluster_with(claims(less(claim("local", "pv-local"), "namespace"))),
        ),
        (
            "a node without a name",
            list(cluster().into_iter().chain([
                with(pod("a"), json!({"spec": {"nodeName": "leaf"}})),
                less(node("leaf", "Unknown"), "name"),
            ])),
        ),
    ];
    let wrong = cases.iter().filter(|(_, text)| !reaped(text).is_empty());
    assert_eq!(
        wrong.map(|(name, _)| *name).collect::<Vec<_>>(),
        Vec::<&str>::new()
    );
}

#[test]
fn an_item_that_is_no_object_affects_no_other() {
    for item in [json!(null), json!(5), json!([]), json!("")] {
        let text = cluster_with([pod("a"), item]);
        let facts = gathered_at(Some(NOW), &text);
        assert_eq!(facts.expect("the rest can be judged").pods.len(), 1);
        // It may have been a node.
        assert_eq!(reaped(&text), BTreeSet::new(), "{text}");
    }
}

// The time of the judgement.

#[test]
fn now_is_the_newest_observation_and_never_a_deletion_deadline() {
    let newest = |more: Value| {
        gathered_at(None, &cluster_with([pod("a"), more]))
            .expect("dated")
            .facts
            .now
            .to_string()
    };
    let future = "2026-01-31T09:00:00Z";
    // Of the pod that is always there, 30 s before its deadline.
    let asked_for = "2026-01-31T01:04:30Z";
    let cases = [
        (
            "a deadline in the future",
            with(
                pod("b"),
                json!({"metadata": {"deletionTimestamp": future, "deletionGracePeriodSeconds": null}}),
            ),
            asked_for,
        ),
        (
            "the moment a deletion was asked for",
            with(
                pod("b"),
                json!({"metadata": {"deletionTimestamp": future, "deletionGracePeriodSeconds": 21_600}}),
            ),
            NOW,
        ),
        (
            "a creation",
            with(pod("b"), json!({"metadata": {"creationTimestamp": NOW}})),
            NOW,
        ),
        (
            "any kind's creation",
            json!({"kind": "Event", "metadata": {"creationTimestamp": NOW}}),
            NOW,
        ),
        (
            "a field manager's stamp",
            with(
                pod("b"),
                json!({"metadata": {"managedFields": [{"time": FAILED}, {"time": NOW}]}}),
            ),
            NOW,
        ),
        (
            "a heartbeat",
            with(
                node("ds07", "True"),
                json!({"status": {"conditions": [{"lastHeartbeatTime": NOW}]}}),
            ),
            NOW,
        ),
        (
            "a transition",
            with(
                pod("b"),
                json!({"status": {"conditions": [{"lastTransitionTime": NOW}]}}),
            ),
            NOW,
        ),
        (
            "a lease",
            with(lease("ds07"), json!({"spec": {"renewTime": NOW}})),
            NOW,
        ),
        (
            "an election's lease",
            with(
                lease("x"),
                json!({"metadata": {"namespace": "kube-system"}, "spec": {"renewTime": NOW}}),
            ),
            NOW,
        ),
    ];
    for (name, more, expected) in cases {
        assert_eq!(newest(more), expected, "{name}");
    }
    let given = gathered_at(Some(future), &cluster_with([pod("a")])).expect("dated");
    assert_eq!(
        given.facts.now,
        moment(future),
        "--now overrides the observations"
    );
    let graceless = with(
        pod("a"),
        json!({"metadata": {"creationTimestamp": null, "deletionGracePeriodSeconds": null}}),
    );
    let undated = list([
        json!({"kind": "Node", "metadata": {"name": "n"}}),
        graceless,
    ]);
    assert!(matches!(
        gathered_at(None, &undated),
        Err(SnapshotError::Undated)
    ));
}

// Leases.

#[test]
fn the_later_of_the_servers_stamp_and_the_nodes_word_counts_unless_that_is_of_the_future() {
    const AHEAD: &str = "2026-01-31T03:00:31Z";
    let renews = json!({"f:spec": {"f:holderIdentity": {}, "f:renewTime": {}}});
    let labels = json!({"f:metadata": {"f:labels": {}}});
    let entry = |time: &str, fields: &Value| json!({"manager": "m", "operation": "Update", "time": time, "fieldsV1": fields});
    let (fresh, stale) = (NOW, FAILED);
    let cases = [
        // API servers before 1.25 do not stamp a renewal.
        (
            "an old stamp and a fresh word",
            fresh,
            vec![entry(stale, &renews)],
            "kubelet-alive",
        ),
        (
            "a node whose clock is ahead",
            AHEAD,
            vec![entry(stale, &renews)],
            "stuck-on-not-ready-node",
        ),
        (
            "a young stamp and a clock ahead",
            AHEAD,
            vec![entry(stale, &renews)],
            "kubelet-alive",
        ),
        (
            "no stamps and a clock ahead",
            AHEAD,
            vec![],
            "kubelet-alive",
        ),
        (
            "a node whose clock is behind",
            stale,
            vec![entry(fresh, &renews)],
            "kubelet-alive",
        ),
        (
            "another client labels the lease",
            stale,
            vec![entry(stale, &renews), entry(fresh, &labels)],
            "stuck-on-not-ready-node",
        ),
        (
            "only others have written",
            fresh,
            vec![entry(stale, &labels)],
            "kubelet-alive",
        ),
        (
            "the newest renewal counts",
            stale,
            vec![entry(fresh, &renews), entry(stale, &renews)],
            "kubelet-alive",
        ),
        ("no stamps", fresh, vec![], "kubelet-alive"),
        (
            "no stamps, no renewal",
            stale,
            vec![],
            "stuck-on-not-ready-node",
        ),
        (
            "an entry without time",
            fresh,
            vec![json!({"fieldsV1": renews})],
            "kubelet-alive",
        ),
        (
            "an entry without fields",
            fresh,
            vec![json!({"time": stale})],
            "kubelet-alive",
        ),
    ];
    for (name, node_clock, entries, expected) in cases {
        // Only where it was made long before does a stamp show that renewals are stamped.
        let made = if name.starts_with("a young") {
            stale
        } else {
            "2026-01-01T00:00:00Z"
        };
        let lease = with(
            lease("ds06"),
            json!({"metadata": {"creationTimestamp": made, "managedFields": entries}, "spec": {"renewTime": node_clock}}),
        );
        let text = without("Lease", cluster().into_iter().chain([pod("a")]));
        let plan = judged(gathered(&format!("{text}{lease}")));
        assert_eq!(plan.pods[0].code().as_str(), expected, "{name}");
    }
}

/// One API server stamps the renewal a second ahead of the other one, by whose clock the node failed just now.
#[test]
fn a_renewal_that_is_stamped_ahead_of_the_scan_is_later_than_a_failure_of_that_moment() {
    let failed = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": NOW}]}});
    let renewals =
        json!([{"time": "2026-01-31T03:00:01Z", "fieldsV1": {"f:spec": {"f:renewTime": {}}}}]);
    let items = cluster()
        .into_iter()
        .map(|item| match item["metadata"]["name"].as_str() {
            Some("ds06") if item["kind"] == "Node" => with(item, failed.clone()),
            Some("ds06") => with(item, json!({"metadata": {"managedFields": renewals}})),
            _ => item,
        });
    let facts = facts(&list(items.chain([pod("a")])));
    let NodeRead::Known(node) = &facts.nodes["ds06"] else {
        panic!("ds06 is there")
    };
    assert!(may_live(facts.now, &policy(), node));
}

/// Annotation or label, and any value but `false`: a slip of the key must not delete.
#[test]
fn whatever_is_not_false_opts_out() {
    for (value, out) in [
        ("true", true),
        ("", true),
        ("yes", true),
        ("True", true),
        ("flase", true),
        ("false", false),
    ] {
        for place in ["annotations", "labels"] {
            let skip = json!({"metadata": {place: {"pod-reaper.io/skip": value}}});
            let others = |kind: &str, name: &str| {
                cluster()
                    .into_iter()
                    .filter(|item| item["kind"] != kind || item["metadata"]["name"] != name)
                    .collect::<Vec<_>>()
            };
            let on_pod = cluster_with([with(pod("a"), skip.clone())]);
            let on_node = [
                others("Node", "ds06"),
                vec![with(node("ds06", "Unknown"), skip.clone()), pod("a")],
            ];
            let on_namespace = [
                others("Namespace", "data"),
                vec![with(namespace("data"), skip.clone()), pod("a")],
            ];
            for text in [on_pod, list(on_node.concat()), list(on_namespace.concat())] {
                let code = judged(gathered(&text)).pods[0].code();
                assert_eq!(
                    code == ReasonCode::OptedOut,
                    out,
                    "{place} {value:?}: {code}"
                );
            }
        }
    }
}

// Leaf nodes.

#[test]
fn each_kosmos_mark_alone_makes_a_leaf_node() {
    let marked = |more: Value| with(node("ds06", "Unknown"), more);
    let cases = [
        (
            "label",
            marked(json!({"metadata": {"labels": {"kosmos.io/node": "true"}}})),
            &["label kosmos.io/node"][..],
            None,
        ),
        (
            "annotation",
            marked(
                json!({"metadata": {"annotations": {"kosmos-io/owned-by-cluster": "cluster7"}}}),
            ),
            &["annotation kosmos-io/owned-by-cluster=cluster7"],
            Some("cluster7"),
        ),
        (
            "an annotation that names no cluster",
            marked(json!({"metadata": {"annotations": {"kosmos-io/owned-by-cluster": ""}}})),
            &["annotation kosmos-io/owned-by-cluster="],
            None,
        ),
        (
            "taint",
            marked(
                json!({"spec": {"taints": [{"key": "a"}, {"key": "kosmos.io/node", "value": "true"}]}}),
            ),
            &["taint kosmos.io/node"],
            None,
        ),
        (
            "name",
            node("kosmos-cluster7", "Unknown"),
            &["name prefix kosmos-"],
            None,
        ),
        (
            "the label with another value",
            marked(json!({"metadata": {"labels": {"kosmos.io/node": "false"}}})),
            &["label kosmos.io/node"],
            None,
        ),
    ];
    for (name, node, marks, names_cluster) in cases {
        let pod = with(
            pod("a"),
            json!({"spec": {"nodeName": node["metadata"]["name"]}}),
        );
        let others = cluster()
            .into_iter()
            .filter(|item| item["metadata"]["name"] != node["metadata"]["name"]);
        let gathered = gathered(&list(others.chain([node.clone(), pod])));
        let Gathered { facts, pods } = gathered.clone();
        let leaf = facts
            .node_of(&pods[0])
            .and_then(NodeRead::known)
            .and_then(|node| node.leaf.clone());
        let leaf = leaf.expect(name);
        assert_eq!(leaf.kind, LeafKind::Kosmos, "{name}");
        assert_eq!(leaf.marks, marks, "{name}");
        assert_eq!(leaf.cluster.as_deref(), names_cluster, "{name}");
        assert_eq!(
            judged(gathered).pods[0].code(),
            ReasonCode::KosmosLeaf,
            "{name}"
        );
        let Census::Counted { all, .. } = facts.census else {
            panic!("{:?}", facts.census)
        };
        assert_eq!(
            all.not_ready,
            usize::from(name == "name"),
            "{name}: a leaf node is no real node"
        );
    }
}

/// Without its mark the node would count as a dead machine, and its pod would be force-deleted.
#[test]
fn each_mark_of_a_virtual_or_edge_node_alone_makes_a_leaf_node() {
    let label = |key: &str, value: &str| json!({"metadata": {"labels": {key: value}}});
    let annotation = |key: &str, value: &str| json!({"metadata": {"annotations": {key: value}}});
    let taint = |key: &str| json!({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}});
    let version = |version: &str| json!({"status": {"nodeInfo": {"kubeletVersion": version}}});
    let virtual_nodes = [
        ("Liqo", label("liqo.io/type", "virtual-node")),
        ("Liqo", taint("virtual-node.liqo.io/not-allowed")),
        ("interLink", label("virtual-node.interlink/type", "x")),
        ("interLink", taint("virtual-node.interlink/no-schedule")),
        ("Alibaba Cloud", label("k8s.aliyun.com/vnode", "")),
        ("Alibaba Cloud", taint("k8s.aliyun.com/vnode")),
        (
            "Tencent Cloud",
            label("node.kubernetes.io/instance-type", "eklet"),
        ),
        ("Tencent Cloud", taint("eks.tke.cloud.tencent.com/eklet")),
        (
            "Koupleless",
            label("virtual-kubelet.koupleless.io/component", "vnode"),
        ),
        ("Koupleless", taint("schedule.koupleless.io/virtual-node")),
        ("KWOK", label("kwok.x-k8s.io/node", "fake")),
        ("KWOK", annotation("kwok.x-k8s.io/node", "fake")),
        ("KWOK", label("type", "kwok")),
        ("KWOK", version("kwok-0.8.0")),
        ("vcluster", label("vcluster.loft.sh/fake-node", "true")),
        ("Virtual Kubelet", label("type", "virtual-kubelet")),
        (
            "Virtual Kubelet",
            label("virtual-kubelet.io/provider", "azure"),
        ),
        ("Virtual Kubelet", taint("virtual-kubelet.io/provider")),
        (
            "Virtual Kubelet",
            annotation("virtual-kubelet.io/last-applied-node-status", "{}"),
        ),
        ("Virtual Kubelet", version("v1.15.2-vk-N/A")),
        ("Virtual Kubelet", version("v1.15.2-vk-v1.11.0")),
    ];
    let edge_nodes = [
        ("KubeEdge", version("v1.29.5-kubeedge-v1.18.0")),
        ("OpenYurt", label("openyurt.io/is-edge-worker", "true")),
        ("OpenYurt", annotation("apps.openyurt.io/binding", "true")),
        (
            "OpenYurt",
            annotation("node.beta.openyurt.io/autonomy", "true"),
        ),
        (
            "OpenYurt",
            annotation("node.openyurt.io/autonomy-duration", "2h"),
        ),
        ("SuperEdge", label("superedge.io/node-edge", "enable")),
    ];
    let all = virtual_nodes
        .map(|(maker, mark)| (maker, mark, LeafKind::Virtual, ReasonCode::VirtualNode));
    let edge = edge_nodes.map(|(maker, mark)| (maker, mark, LeafKind::Edge, ReasonCode::EdgeNode));
    for (maker, mark, kind, code) in all.into_iter().chain(edge) {
        let others = cluster()
            .into_iter()
            .filter(|item| item["metadata"]["name"] != "ds06");
        let marked = with(node("ds06", "Unknown"), mark.clone());
        let gathered = gathered(&list(others.chain([marked, lease("ds06"), pod("a")])));
        let Gathered { facts, pods } = gathered.clone();
        let leaf = facts
            .node_of(&pods[0])
            .and_then(NodeRead::known)
            .and_then(|node| node.leaf.clone());
        let leaf = leaf.unwrap_or_else(|| panic!("{mark} is no mark"));
        assert_eq!(
            (leaf.kind, leaf.maker, leaf.marks.len()),
            (kind, maker, 1),
            "{mark}"
        );
        assert_eq!(judged(gathered).pods[0].code(), code, "{mark}");
        let Census::Counted { all, .. } = facts.census else {
            panic!("{:?}", facts.census)
        };
        assert_eq!(
            (all.total, all.not_ready),
            (2, 0),
            "{mark}: it is no real node"
        );
    }
}

/// Real nodes are named so too.
#[test]
fn the_name_of_a_kosmos_node_counts_where_it_is_of_no_machine() {
    for (info, leaf) in [
        (json!({}), true),
        (json!({"machineID": "", "systemUUID": ""}), true),
        (json!({"machineID": "5f2c"}), false),
        (json!({"systemUUID": "ec2f"}), false),
    ] {
        let named = with(
            node("kosmos-1", "Unknown"),
            json!({"status": {"nodeInfo": info}}),
        );
        let on_it = with(pod("a"), json!({"spec": {"nodeName": "kosmos-1"}}));
        let plan = judged(gathered(&cluster_with([named, lease("kosmos-1"), on_it])));
        assert_eq!(
            plan.pods[0].code() == ReasonCode::KosmosLeaf,
            leaf,
            "{info}"
        );
    }
}

#[test]
fn what_only_looks_like_a_mark_is_none() {
    let ordinary = [
        json!({"metadata": {"labels": {"kosmos-io/node": "true", "kubernetes.io/role": "agent"}}}),
        json!({"metadata": {"annotations": {"kosmos.io/owned-by-cluster": "c"}}}),
        json!({"spec": {"taints": [{"key": "kosmos-io/node"}]}}),
        json!({"metadata": {"labels": {"type": "worker", "liqo.io/type": "other"}}}),
        json!({"metadata": {"labels": {"node.kubernetes.io/instance-type": "eklet-like"}}}),
        json!({"metadata": {"labels": {"node-role.kubernetes.io/edge": "", "kubernetes.io/role": "agent"}}}),
        json!({"metadata": {"labels": {"node.kubernetes.io/exclude-from-external-load-balancers": "true"}}}),
        json!({"metadata": {"labels": {"eks.amazonaws.com/compute-type": "fargate"}}}),
        json!({"metadata": {"labels": {"openyurt.io/is-edge-worker": "false", "superedge.io/node-edge": "disable"}}}),
        json!({"metadata": {"annotations": {"cluster.x-k8s.io/machine": "m", "apps.openyurt.io/binding": "false"}}}),
        json!({"metadata": {"annotations": {"node.openyurt.io/autonomy-duration": ""}}}),
        json!({"spec": {"providerID": ""}}),
        json!({"status": {"nodeInfo": {"kubeletVersion": "v1.35.4", "machineID": "", "systemUUID": ""}}}),
        json!({"status": {"nodeInfo": {"kubeletVersion": "v1.35-vk-1"}}}),
        json!({"status": {"nodeInfo": {"kubeletVersion": "v1.35.4-eks-vk-1"}}}),
    ];
    for more in ordinary {
        let others = cluster()
            .into_iter()
            .filter(|item| item["metadata"]["name"] != "ds06");
        let text = list(others.chain([with(node("ds06", "Unknown"), more), pod("a")]));
        assert_eq!(reaped(&text).len(), 1, "{text}");
    }
    // Inside a leaf cluster ordinary pods on ordinary nodes have the mark too.
    let pod = with(
        pod("a"),
        json!({"metadata": {"labels": {"kosmos-io/pod": "true"}}}),
    );
    assert_eq!(reaped(&cluster_with([pod])).len(), 1);
}

#[test]
fn the_selector_adds_leaf_nodes() {
    let virtual_kubelet = with(
        node("vk", "Unknown"),
        json!({"metadata": {"labels": {"type": "stands-for-another"}}}),
    );
    let on_it = with(pod("a"), json!({"spec": {"nodeName": "vk"}}));
    let text = cluster_with([virtual_kubelet, on_it, pod("b")]);
    let selectors = NodeSelectors {
        leaf: vec!["type=stands-for-another".parse().expect("a selector")],
        ..NodeSelectors::default()
    };
    let wanted = Wanted {
        policy: &policy(),
        namespaces: &NamespaceFilter::default(),
        all: false,
    };
    let options = Options {
        now: Some(moment(NOW)),
        selectors,
    };
    let saved = Saved::read(text.as_bytes(), options, Pods::Terminating).expect("a snapshot");
    let plan = judged(saved.gather(&wanted).expect("a snapshot"));
    let codes = plan
        .pods
        .iter()
        .map(|judged| judged.code().as_str())
        .collect::<Vec<_>>();
    assert_eq!(codes, ["leaf-node", "stuck-on-not-ready-node"]);
}

#[test]
fn a_character_may_lie_across_two_chunks_but_not_across_the_end_of_the_file() {
    let note =
        json!({"metadata": {"annotations": {"pod-reaper.io/after-reap": "é".repeat(100_000)}}});
    let text = cluster_with([with(pod("web-0"), note)]);
    for padding in ["", " "] {
        let pods = gathered(&format!("{padding}{text}")).pods;
        assert_eq!(pods[0].after_reap.as_deref().map(str::len), Some(200_000));
    }
    let cut = &text.as_bytes()[..=text.find('é').expect("it is there")];
    let read = Saved::read(cut, Options::default(), Pods::Terminating).map(drop);
    assert!(matches!(
        read.expect_err("a cut file"),
        SnapshotError::Unreadable(_)
    ));
}

/// A node on which `more` stands, as facts.
fn facts_of(more: Value, selectors: NodeSelectors) -> NodeFacts {
    let text = cluster_with([with(node("n", "False"), more), pod("a")]);
    let wanted = Wanted {
        policy: &policy(),
        namespaces: &NamespaceFilter::default(),
        all: false,
    };
    let options = Options {
        now: Some(moment(NOW)),
        selectors,
    };
    let saved = Saved::read(text.as_bytes(), options, Pods::Terminating).expect("a snapshot");
    let facts = saved.gather(&wanted).expect("a snapshot").facts;
    facts.nodes["n"].known().expect("it was read").clone()
}

#[test]
fn nodes_are_selected_by_annotation_and_taint_too() {
    let more = json!({
        "metadata": {"labels": {"type": "x"}, "annotations": {"example.org/kind": "far"}},
        "spec": {"taints": [{"key": "example.org/away", "value": "yes", "effect": "NoSchedule"}]},
    });
    for (selector, selects) in [
        ("type=x", true),
        ("annotation:example.org/kind", true),
        ("annotation:example.org/kind=far", true),
        ("annotation:example.org/kind=near", false),
        ("annotation:type", false),
        ("taint:example.org/away", true),
        ("taint:example.org/away=yes", true),
        ("taint:example.org/away=no", false),
        ("taint:example.org/kind", false),
    ] {
        let selectors = || {
            vec![
                "absent".parse().expect("it is one"),
                selector.parse().expect("it is one"),
            ]
        };
        let leaf = facts_of(
            more.clone(),
            NodeSelectors {
                leaf: selectors(),
                fenced: Vec::new(),
            },
        );
        let fenced = facts_of(
            more.clone(),
            NodeSelectors {
                leaf: Vec::new(),
                fenced: selectors(),
            },
        );
        assert_eq!(
            (leaf.leaf.is_some(), leaf.fenced.is_empty()),
            (selects, true),
            "{selector}"
        );
        assert_eq!(
            (fenced.leaf.is_some(), fenced.fenced.is_empty()),
            (false, !selects),
            "{selector}"
        );
    }
}

#[test]
fn each_word_that_a_machine_is_off_counts_where_it_is_sure() {
    let stopped = "node.cloudprovider.kubernetes.io/shutdown";
    let first = |node: NodeFacts| node.fenced.into_iter().next().map(|it| it.mark);
    let fenced = |more: Value| first(facts_of(more, NodeSelectors::default()));
    let in_cloud = |key: &str, provider: &str| {
        fenced(
            json!({"spec": {"providerID": provider, "taints": [{"key": key, "effect": "NoSchedule"}]}}),
        )
    };
    let by_taint = Some(format!("taint {stopped}"));
    let annotated =
        |value: &str| fenced(json!({"metadata": {"annotations": {"fencing/state": value}}}));
    assert_eq!(
        annotated("fenced"),
        Some("annotation fencing/state=fenced".to_owned())
    );
    for no in ["started", "error", "Fenced", ""] {
        assert_eq!(annotated(no), None, "{no}");
    }
    assert_eq!(in_cloud(stopped, "aws:///eu-central-1a/i-0123"), by_taint);
    assert_eq!(in_cloud(stopped, "openstack:///6e1a"), by_taint);
    for no in [
        "",
        "vsphere://42",
        "harvester://n",
        "azure:///x",
        "gce://p/z/n",
    ] {
        assert_eq!(in_cloud(stopped, no), None, "{no}");
    }
    for no in [
        "node.kubernetes.io/out-of-service",
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
    ] {
        assert_eq!(in_cloud(no, "aws:///eu-central-1a/i-0123"), None, "{no}");
    }
    let fargate = with(
        node("fargate-ip-10-0-0-1", "False"),
        json!({"spec": {"providerID": "aws:///a/b/fargate-ip-10-0-0-1", "taints": [{"key": stopped}]}}),
    );
    let facts = facts(&cluster_with([fargate, pod("a")]));
    assert_eq!(
        facts.nodes["fargate-ip-10-0-0-1"]
            .known()
            .expect("it was read")
            .fenced,
        []
    );
    let out_of_service =
        json!({"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service"}]}});
    assert!(facts_of(out_of_service, NodeSelectors::default()).out_of_service);
}

#[test]
fn each_report_of_a_nodes_own_machine_is_a_heartbeat() {
    let heard = |more: Value| facts_of(more, NodeSelectors::default()).heard;
    let of = |by, at: &str, minutes| {
        vec![Heard {
            by,
            at: moment(at),
            period: SignedDuration::from_mins(minutes),
        }]
    };
    let detector = |at| of(SignBy::ProblemDetector, at, 11);
    let virt_handler = |at| of(SignBy::VirtHandler, at, 5);
    let condition = |kind: &str| json!([{"type": "Ready", "status": "False", "lastHeartbeatTime": NOW}, {"type": kind, "status": "False", "lastHeartbeatTime": FAILED}]);
    for kind in [
        "KernelDeadlock",
        "ReadonlyFilesystem",
        "KubeletUnhealthy",
        "ContainerRuntimeUnhealthy",
        "FrequentKubeletRestart",
        "FrequentContainerdRestart",
        "FrequentDockerRestart",
        "FrequentUnregisterNetDevice",
        "CorruptDockerOverlay2",
    ] {
        assert_eq!(
            heard(json!({"status": {"conditions": condition(kind)}})),
            detector(FAILED),
            "{kind}"
        );
    }
    for kind in [
        "KernelReady",
        "NetworkingReady",
        "StorageReady",
        "ContainerRuntimeReady",
        "AcceleratedHardwareReady",
    ] {
        let seen = heard(json!({"status": {"conditions": condition(kind)}}));
        assert_eq!(seen, of(SignBy::NodeMonitoring, FAILED, 11), "{kind}");
    }
    // The control plane, or the kubelet itself, writes these.
    for kind in [
        "NetworkUnavailable",
        "Drained",
        "MemoryPressure",
        "DiskPressure",
        "PIDPressure",
    ] {
        assert_eq!(
            heard(json!({"status": {"conditions": condition(kind)}})),
            [],
            "{kind}"
        );
    }
    let virt = |value: &str| json!({"metadata": {"annotations": {"kubevirt.io/heartbeat": value}}});
    assert_eq!(heard(virt(FAILED)), virt_handler(FAILED));
    assert_eq!(heard(virt("some time ago")), []);
    // The API server's stamp on the entry that owns it counts too: the node's clock may be off.
    let stamped = |fields: Value, time: &str| {
        json!({"metadata": {"managedFields": [
            {"manager": "kubelet", "time": "2026-01-31T02:59:59Z", "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {"f:lastHeartbeatTime": {}}}}}},
            {"manager": "x", "time": time, "fieldsV1": fields},
        ]}})
    };
    let owns_problem = json!({"f:status": {"f:conditions": {"k:{\"type\":\"KernelDeadlock\"}": {".": {}, "f:lastHeartbeatTime": {}}}}});
    let owns_virt =
        json!({"f:metadata": {"f:annotations": {".": {}, "f:kubevirt.io/heartbeat": {}}}});
    let problem = json!({"status": {"conditions": condition("KernelDeadlock")}});
    assert_eq!(
        heard(with(problem, stamped(owns_problem.clone(), NOW))),
        detector(NOW)
    );
    assert_eq!(
        heard(with(virt(FAILED), stamped(owns_virt, NOW))),
        virt_handler(NOW)
    );
    // Several conditions are one source: its last word counts. One that is ahead of all clocks is believed only where the
    // stamp is of the node's first minute.
    let ahead = json!({"status": {"conditions": [
        {"type": "KernelDeadlock", "lastHeartbeatTime": "2026-01-31T03:00:31Z"},
        {"type": "ReadonlyFilesystem", "lastHeartbeatTime": FAILED},
    ]}});
    let made = |at: &str| json!({"metadata": {"creationTimestamp": at}});
    let stamp = stamped(owns_problem, "2026-01-31T02:00:00Z");
    let all = |at| heard(with(with(ahead.clone(), stamp.clone()), made(at)));
    assert_eq!(
        all("2026-01-31T01:58:59Z"),
        detector(if FAILED > "2026-01-31T02:00:00Z" {
            FAILED
        } else {
            "2026-01-31T02:00:00Z"
        })
    );
    assert_eq!(
        all("2026-01-31T01:59:00Z"),
        detector("2026-01-31T03:00:31Z")
    );
}

#[test]
fn the_lease_of_an_api_server_is_a_heartbeat_of_its_control_plane_node() {
    let server = |host: &str, identity: &str| {
        let labels =
            json!({"apiserver.kubernetes.io/identity": identity, "kubernetes.io/hostname": host});
        with(
            lease("apiserver-x"),
            json!({"metadata": {"namespace": "kube-system", "labels": labels}, "spec": {"renewTime": NOW, "leaseDurationSeconds": 3600}}),
        )
    };
    let master = |ready: &str| {
        let labels =
            json!({"node-role.kubernetes.io/control-plane": "", "kubernetes.io/hostname": "CP-1"});
        with(
            node("cp-1.example", ready),
            json!({"metadata": {"labels": labels}}),
        )
    };
    let facts = |objects: Vec<Value>| {
        facts(&cluster_with(objects.into_iter().chain([samples::pod(
            "data",
            "a",
            "cp-1.example",
        )])))
        .nodes["cp-1.example"]
            .known()
            .unwrap()
            .clone()
    };
    let by = |objects| {
        let node = facts(objects);
        (
            node.heard.iter().map(|heard| heard.by).collect::<Vec<_>>(),
            node.no_api_server,
        )
    };
    let found = (vec![SignBy::ApiServer], false);
    assert_eq!(
        by(vec![master("Unknown"), server("cp-1", "kube-apiserver")]),
        found,
        "by its label's name"
    );
    assert_eq!(
        by(vec![
            master("Unknown"),
            server("CP-1.example", "kube-apiserver")
        ]),
        found,
        "by its own"
    );
    let none = (vec![], true);
    assert_eq!(by(vec![master("Unknown")]), none);
    assert_eq!(
        by(vec![master("Unknown"), server("cp-2", "kube-apiserver")]),
        none,
        "another host"
    );
    assert_eq!(
        by(vec![master("Unknown"), server("cp-1", "aggregated")]),
        none,
        "another server"
    );
    assert_eq!(by(vec![master("True")]), (vec![], false), "nobody asks");
    let worker = with(node("cp-1.example", "Unknown"), json!({}));
    assert_eq!(
        by(vec![worker, server("cp-1.example", "kube-apiserver")]),
        (vec![], false),
        "no control plane"
    );
    let bad = with(
        server("cp-1", "kube-apiserver"),
        json!({"spec": {"renewTime": 1}}),
    );
    assert!(
        facts(vec![master("Unknown"), bad]).unheard.is_some(),
        "one that could not be read may be it"
    );
}

#[test]
fn a_mark_of_fencing_has_the_time_by_which_it_was_set() {
    let selectors = NodeSelectors {
        fenced: ["taint:off", "annotation:out", "dead=yes,!alive"]
            .map(|it| it.parse().unwrap())
            .into(),
        ..NodeSelectors::default()
    };
    let stamp =
        |time: &str, fields: Value| json!({"manager": "m", "time": time, "fieldsV1": fields});
    let node = facts_of(
        json!({
            "metadata": {
                "labels": {"dead": "yes"}, "annotations": {"fencing/state": "fenced", "out": ""},
                "managedFields": [
                    stamp(FAILED, json!({"f:metadata": {"f:annotations": {"f:fencing/state": {}}, "f:labels": {"f:dead": {}}}})),
                    stamp(NOW, json!({"f:spec": {"f:taints": {}}})),
                ],
            },
            "spec": {"taints": [{"key": "off", "effect": "NoSchedule"}, {"key": "other", "timeAdded": FAILED}]},
        }),
        selectors,
    );
    let set_by = node
        .fenced
        .iter()
        .map(|mark| mark.set_by.map(|at| at.to_string()))
        .collect::<Vec<_>>();
    let [failed, now] = [FAILED, NOW].map(|at| Some(moment(at).to_string()));
    assert_eq!(
        set_by,
        [failed.clone(), now, None, failed],
        "{:?}",
        node.fenced
    );
}

// Claims.

#[test]
fn claims_are_found_by_each_way_a_pod_names_them() {
    let volumes = json!([
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0", "readOnly": true}},
        {"name": "again", "persistentVolumeClaim": {"claimName": "data-web-0"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "config", "configMap": {"name": "c"}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": "/var/log"}},
    ]);
    let text = cluster_with([with(pod("web-0"), json!({"spec": {"volumes": volumes}}))]);
    let pods = gathered(&text).pods;
    let names = pods[0]
        .claims
        .named()
        .map(|(name, _)| name)
        .collect::<Vec<_>>();
    assert_eq!(names, ["data-web-0", "web-0-scratch"]);
}

#[test]
fn a_claim_is_looked_up_in_the_pods_own_namespace() {
    let elsewhere = with(
        claim("data-web-0", "pv-local"),
        json!({"metadata": {"namespace": "other"}}),
    );
    let local = with(
        volume("pv-local"),
        json!({"spec": {"local": {"path": "/mnt"}}}),
    );
    let objects = [
        pod_with_claim("web-0", "data-web-0"),
        claim("data-web-0", "pv-1"),
        volume("pv-1"),
        elsewhere,
        local,
    ];
    assert_eq!(reaped(&cluster_with(objects)).len(), 1);
}

#[test]
fn what_a_pod_says_of_its_claims_and_owners_is_kept() {
    let volumes = json!([
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        // Both ways: then it is not its own alone.
        {"name": "both", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "again", "persistentVolumeClaim": {"claimName": "web-0-both"}},
    ]);
    let text = cluster_with([with(pod("web-0"), json!({"spec": {"volumes": volumes}}))]);
    let claims = &gathered(&text).pods[0].claims;
    let named = claims.named().collect::<Vec<_>>();
    let own = ("web-0-scratch", true);
    assert_eq!(named, [("data-web-0", false), ("web-0-both", false), own]);
    let workload = |kind: &str, name: &str, labels: Value| {
        let owner = json!([{"apiVersion": "x/v1", "kind": kind, "name": name, "uid": "o", "controller": true}]);
        let more = json!({"metadata": {"ownerReferences": owner, "labels": labels}});
        let pods = gathered(&cluster_with([with(pod("a"), more)])).pods;
        pods[0]
            .workload
            .clone()
            .map(|owner| format!("{}/{}", owner.kind, owner.name))
            .expect("it has an owner")
    };
    let hash = || json!({"pod-template-hash": "7c9d"});
    assert_eq!(workload("ReplicaSet", "web-7c9d", hash()), "Deployment/web");
    assert_eq!(
        workload("ReplicaSet", "web-7c9d", json!({})),
        "ReplicaSet/web-7c9d"
    );
    assert_eq!(
        workload("Job", "backup-29412360", json!({})),
        "CronJob/backup"
    );
    assert_eq!(workload("Job", "backup-2026", json!({})), "Job/backup-2026");
    assert_eq!(
        workload("Job", "backup-2941236o", json!({})),
        "Job/backup-2941236o"
    );
    assert_eq!(
        workload("StatefulSet", "db-29412360", json!({})),
        "StatefulSet/db-29412360"
    );
}

/// What a look at the claim of a pod found.
fn looked_up(pod: Value, more: impl IntoIterator<Item = Value>) -> ClaimFacts {
    let mut pods = gathered(&cluster_with([pod].into_iter().chain(more))).pods;
    let claims = pods.remove(0).claims;
    claims.known().expect("they were asked about")[0].clone()
}

#[test]
fn a_claim_is_the_pods_own_by_volume_name_and_owner() {
    let volumes = json!([{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]);
    let user = || with(pod("web-0"), json!({"spec": {"volumes": volumes}}));
    let owned_by = |uid: &str| {
        let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": uid, "controller": true}]);
        with(
            claim("web-0-scratch", "pv-local"),
            json!({"metadata": {"ownerReferences": owner}}),
        )
    };
    let local = || {
        with(
            volume("pv-local"),
            json!({"spec": {"local": {"path": "/mnt"}}}),
        )
    };
    let owned = |uid| looked_up(user(), [owned_by(uid), local()]).owned;
    assert_eq!(owned("uid-web-0"), Owned::Alone);
    assert_eq!(owned("uid-before"), Owned::No);
}

/// A `StatefulSet` that is scaled down makes its pod the owner of the claims, with `whenScaled: Delete`.
#[test]
fn a_claim_that_the_pod_owns_is_wanted_again_where_its_set_wants_the_pod_or_may() {
    let owner = |kind: &str, name: &str| json!([{"apiVersion": if kind == "Pod" { "v1" } else { "apps/v1" }, "kind": kind, "name": name, "uid": format!("uid-{name}"), "controller": true}]);
    let user = || {
        with(
            pod_with_claim("web-1", "data-web-1"),
            json!({"metadata": {"ownerReferences": owner("StatefulSet", "web")}}),
        )
    };
    let goes = with(
        claim("data-web-1", "pv-1"),
        json!({"metadata": {"ownerReferences": owner("Pod", "web-1")}}),
    );
    let set = |name: &str, replicas: u64| json!({"kind": "StatefulSet", "metadata": {"name": name, "namespace": "data", "uid": format!("uid-{name}")}, "spec": {"replicas": replicas}});
    let owned = |more: Vec<Value>| {
        looked_up(
            user(),
            [goes.clone(), volume("pv-1")].into_iter().chain(more),
        )
        .owned
    };
    assert_eq!(owned(vec![set("web", 1)]), Owned::Alone, "scaled down");
    assert_eq!(owned(vec![set("other", 1)]), Owned::Alone, "gone");
    let may_be_wanted = |owned: &Owned| matches!(owned, Owned::MayBeWanted(_));
    let orphan = with(user(), json!({"metadata": {"ownerReferences": null}}));
    let objects = [goes.clone(), volume("pv-1"), set("web", 1)];
    assert!(
        may_be_wanted(&looked_up(orphan, objects).owned),
        "its set was made anew"
    );
    assert!(
        may_be_wanted(&owned(vec![set("web", 2)])),
        "scaled up again"
    );
    assert!(may_be_wanted(&owned(vec![])), "not saved");
    let bad = json!({"kind": "StatefulSet", "metadata": {"name": 1}});
    assert!(
        may_be_wanted(&owned(vec![set("other", 1), bad])),
        "one that could not be read may be it"
    );
}

#[test]
fn volumes_that_two_pods_may_use_at_once_are_known_by_kind() {
    let facts = |volume: Value| {
        let volume = with(json!({"name": "v"}), volume);
        gathered(&cluster_with([with(
            pod("a"),
            json!({"spec": {"volumes": [volume]}}),
        )]))
        .pods
        .remove(0)
    };
    for kind in [
        "configMap",
        "secret",
        "projected",
        "downwardAPI",
        "emptyDir",
        "image",
        "hostPath",
        "nfs",
        "ephemeral",
    ] {
        assert_eq!(facts(json!({kind: {}})).own_volume, None, "{kind}");
    }
    assert_eq!(
        facts(json!({"persistentVolumeClaim": {"claimName": "c"}})).own_volume,
        None,
        "a claim has rules of its own"
    );
    for kind in [
        "csi",
        "iscsi",
        "fc",
        "rbd",
        "cephfs",
        "awsElasticBlockStore",
        "gitRepo",
        "newInKubernetes2",
    ] {
        assert_eq!(
            facts(json!({kind: {}})).own_volume.as_deref(),
            Some("volume v"),
            "{kind}"
        );
    }
    for (volume, disk) in [
        (json!({"iscsi": {"lun": 0}}), Some("its volume v is iSCSI")),
        (
            json!({"fc": {"readOnly": false}}),
            Some("its volume v is Fibre Channel"),
        ),
        (json!({"iscsi": {"readOnly": true}}), None),
        (json!({"fc": {"readOnly": true}}), None),
        (json!({"rbd": {}}), None),
    ] {
        assert_eq!(facts(volume.clone()).own_disk.as_deref(), disk, "{volume}");
        let objects = [
            pod_with_claim("web-0", "c"),
            claim("c", "pv-1"),
            with(super::tests::volume("pv-1"), json!({"spec": volume})),
        ];
        let reaps = reaped(&cluster_with(objects)).len() == 1;
        assert_eq!(reaps, disk.is_none(), "as a PersistentVolume: {volume}");
    }
}

#[test]
fn only_a_raw_disk_of_many_writers_is_shared() {
    let shared = |spec: Value| {
        let claim = with(claim("data-web-0", "pv-1"), json!({"spec": spec}));
        let state = looked_up(
            pod_with_claim("web-0", "data-web-0"),
            [claim, volume("pv-1")],
        )
        .state;
        let ClaimState::Bound { shared_disk, .. } = state else {
            panic!("{state:?}")
        };
        shared_disk
    };
    assert!(shared(
        json!({"accessModes": ["ReadWriteOnce", "ReadWriteMany"], "volumeMode": "Block"})
    ));
    for no in [
        json!({"accessModes": ["ReadWriteMany"], "volumeMode": "Filesystem"}),
        json!({"accessModes": ["ReadWriteMany"], "volumeMode": null}),
        json!({"accessModes": ["ReadWriteOnce"], "volumeMode": "Block"}),
        json!({"accessModes": null, "volumeMode": "Block"}),
    ] {
        assert!(!shared(no.clone()), "{no}");
    }
}

#[test]
fn where_a_volume_is_comes_from_its_driver_and_affinity() {
    let verdict = |volume_spec: Value, more: Vec<Value>| {
        let volume = with(volume("pv-1"), json!({"spec": volume_spec}));
        let objects = [
            pod_with_claim("web-0", "data-web-0"),
            claim("data-web-0", "pv-1"),
            volume,
        ];
        verdicts(&cluster_with(objects.into_iter().chain(more)))
            .split(':')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let longhorn = |driver: &str, locality: &str| json!({"csi": {"driver": driver, "volumeAttributes": {"dataLocality": locality}}});
    assert_eq!(
        verdict(longhorn("driver.longhorn.io", "strict-local"), vec![]),
        "web-0 local-volume"
    );
    assert_eq!(
        verdict(longhorn("driver.longhorn.io", "best-effort"), vec![]),
        "web-0 stuck-on-not-ready-node"
    );
    assert_eq!(
        verdict(longhorn("another", "strict-local"), vec![]),
        "web-0 stuck-on-not-ready-node"
    );
    let affinity =
        |term: Value| json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}});
    let disks = |operator: &str, values: Value| {
        affinity(
            json!({"matchExpressions": [{"key": "disks", "operator": operator, "values": values}]}),
        )
    };
    let labelled = |name: &str, labels: Value| {
        with(
            node(name, "Unknown"),
            json!({"metadata": {"labels": labels}}),
        )
    };
    let ssd = |name: &str| labelled(name, json!({"disks": "4"}));
    let wants = || disks("In", json!(["4"]));
    let confined = "web-0 volume-confined";
    let free = "web-0 stuck-on-not-ready-node";
    assert_eq!(verdict(wants(), vec![]), confined, "no node has it");
    assert_eq!(
        verdict(wants(), vec![ssd("ds06")]),
        confined,
        "its own node alone has it"
    );
    assert_eq!(
        verdict(wants(), vec![ssd("ds07")]),
        free,
        "another has it, NotReady as it is"
    );
    let leaf = with(
        ssd("vk"),
        json!({"metadata": {"labels": {"type": "virtual-kubelet"}}}),
    );
    assert_eq!(
        verdict(wants(), vec![leaf]),
        confined,
        "a leaf node is no place to start"
    );
    assert_eq!(
        verdict(disks("Gt", json!(["3"])), vec![ssd("ds07")]),
        free,
        "more than three"
    );
    assert_eq!(
        verdict(disks("Gt", json!(["4"])), vec![ssd("ds07")]),
        confined,
        "more than four"
    );
    assert_eq!(
        verdict(disks("DoesNotExist", json!([])), vec![]),
        free,
        "most nodes"
    );
    let by_field =
        json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["ds06"]}]});
    assert_eq!(
        verdict(affinity(by_field), vec![]),
        "web-0 volume-unverified"
    );
    let malformed = json!({"kind": "Node", "metadata": {"name": "bad", "labels": 1}});
    let text = verdict(wants(), vec![malformed]);
    assert_eq!(
        text, "web-0 volume-unverified",
        "the one that could not be read may have it"
    );
}

// Attachments.

#[test]
fn attachments_are_reported_by_node() {
    let attachment = |name: &str, node: &str, volume: &str| {
        json!({"kind": "VolumeAttachment", "metadata": {"name": name},
            "spec": {"nodeName": node, "attacher": "ceph", "source": {"persistentVolumeName": volume}}})
    };
    let text = cluster_with([
        pod("a"),
        attachment("y", "ds06", "pv-2"),
        attachment("x", "ds06", "pv-1"),
        attachment("z", "ds04", "pv-3"),
    ]);
    let names = |node: &str| {
        facts(&text).attachments[node]
            .iter()
            .map(|it| it.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("ds06"), ["x", "y"]);
    assert_eq!(names("ds04"), ["z"]);
}
