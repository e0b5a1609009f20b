//! Tests of reading a snapshot: missing objects,
//! malformed objects, and the forms that kubectl prints.
//!
//! Most of them assert the verdicts of the pods, because a mistake in reading matters when it
//! changes a verdict.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    iter,
};

use expect_test::expect;
use jiff::Timestamp;
use pod_reaper_test_support::samples::{self, FAILED, NOW, objects, with, yaml};
use rules::samples::check_each;
use serde_json::{Value, json};

use super::{
    snapshot::{Options, Saved, UNDATED},
    *,
};
use crate::{
    decide::{PodContext, ReasonCode, TieKind},
    facts::{
        ClaimFacts, ClaimState, ClusterFacts, DeletedWithPod, NodeCounts, NodeFacts, Ready, Unread,
    },
    limits::{Judged, Plan},
    report::samples::{audit, gathered_from},
    selector::NodeSelectors,
    settings::Settings,
};

/// All objects except the pods: ds06 is unreachable, ds04 and ds05 are Ready.
const CLUSTER: &str = "
    Node ds04: {ready: 'True'}
    Node ds05: {ready: 'True'}
    Node ds06: {}
    Namespace data: {}
";

/// The cluster with the changes and additions of `more`.
fn cluster(more: &str) -> Vec<Value> {
    let more = if more.is_empty() { "{}" } else { more };
    objects(&with(yaml(CLUSTER), yaml(more)))
}

/// Without this check, the object would be the default one, and a test would pass for the wrong
/// reason.
#[test]
#[should_panic(expected = "Pod db-0: overdeu is neither a word nor a field")]
fn a_misspelt_word_of_a_test_is_refused() {
    cluster("Pod data/db-0: {overdeu: 60}");
}

/// A list, as `kubectl get … -o json` prints it.
fn list(items: impl IntoIterator<Item = Value>) -> String {
    samples::list(items).to_string()
}

fn saved(text: &str, now: Option<&str>) -> Result<Saved, String> {
    let now = now.map(|now| now.parse().expect("a moment"));
    let options = Options {
        now,
        ..Options::default()
    };
    Saved::read(text.as_bytes(), options)
}

fn gathered_by(settings: &Settings, now: Option<&str>, text: &str) -> Result<Gathered, String> {
    let saved = saved(text, now)?;
    Ok(gathered_from(&saved, settings))
}

fn gathered_of(text: &str) -> Gathered {
    gathered_by(&audit(), Some(NOW), text).expect("a snapshot that can be judged")
}

/// The facts gathered from the cluster with `more`.
fn gathered(more: &str) -> Gathered {
    gathered_of(&list(cluster(more)))
}

/// A node of the cluster with `more`.
fn node_by(settings: &Settings, name: &str, more: &str) -> NodeFacts {
    let gathered = gathered_by(settings, Some(NOW), &list(cluster(more)));
    let nodes = gathered.expect("a snapshot that can be judged").facts.nodes;
    nodes[name].known().expect("it was read").clone()
}

fn ds06(more: &str) -> NodeFacts {
    let more = format!("Pod a: {{}}\nLease ds06: null\nNode ds06:\n{more}");
    node_by(&audit(), "ds06", &more)
}

fn judged(Gathered { facts, pods, .. }: Gathered, max_not_ready_percent: u8) -> Plan {
    let Settings {
        policy, mut limits, ..
    } = audit();
    limits.max_not_ready_percent = max_not_ready_percent;
    Plan::new(&facts, Judged::by_rules(&facts, pods, &policy), &limits)
}

/// The code of the reason for the only pod of the cluster.
fn code(more: &str) -> &'static str {
    judged(gathered(more), 55).pods[0].code().as_str()
}

fn all_of(facts: &ClusterFacts) -> (usize, usize) {
    let NodeCounts::Counted { all, .. } = &facts.node_counts else {
        panic!("{:?}", facts.node_counts)
    };
    (all.not_ready, all.total)
}

/// One line per pod with its reason and its unverified PVCs, then the objects that could not be read, and the
/// kinds that the file lacks.
fn verdicts_of(text: &str) -> String {
    let settings = audit();
    let missing = saved(text, Some(NOW)).expect("a snapshot");
    let missing = missing.missing(&settings.wanted());
    let gathered = gathered_of(text);
    let errors = gathered.facts.errors.clone();
    let mut lines = String::new();
    for judged in judged(gathered, 55).pods {
        let unverified = judged.reason.ties.of_kind(TieKind::Unverified);
        let unverified = unverified.map(|tie| format!(" {}", tie.pvc));
        let unverified = unverified.collect::<String>();
        writeln!(lines, "{} {}{unverified}", judged.pod.name, judged.code()).expect("text");
    }
    for error in errors {
        writeln!(lines, "unread: {}", error.what).expect("text");
    }
    for what in missing {
        let kind = what.split(' ').next().expect("a kind");
        writeln!(lines, "lacks: {kind}").expect("text");
    }
    lines
}

/// The verdicts in each of these clusters, below the cluster's name.
fn verdicts(clusters: &[(&str, &str)]) -> String {
    let verdicts = |(name, more): &(&str, &str)| {
        format!("{name}\n{}", verdicts_of(&list(cluster(more)))).replace('\n', "\n    ")
    };
    let lines = clusters.iter().map(verdicts);
    lines
        .map(|lines| lines.trim_end().to_owned() + "\n")
        .collect()
}

/// The code of the reason for every pod; none if the whole snapshot is refused.
fn reasons(text: &str, max_not_ready_percent: u8) -> BTreeMap<String, &'static str> {
    let Ok(gathered) = gathered_by(&audit(), Some(NOW), text) else {
        return BTreeMap::new();
    };
    let pods = judged(gathered, max_not_ready_percent).pods.into_iter();
    pods.map(|judged| (judged.pod.name.clone(), judged.code().as_str()))
        .collect()
}

/// The names of the pods that would be force-deleted.
fn reaped(text: &str, max_not_ready_percent: u8) -> BTreeSet<String> {
    let reaps = |(pod, reason)| (reason == ReasonCode::Stuck.as_str()).then_some(pod);
    let reasons = reasons(text, max_not_ready_percent).into_iter();
    reasons.filter_map(reaps).collect()
}

// Objects that were not saved.

#[test]
fn what_a_file_lacks_is_never_taken_for_absent() {
    let clusters = [
        (
            "complete",
            "{Pod plain: {}, Pod web-0: {uses: data-0}, PersistentVolumeClaim data-0: {volume: pv-1}, PersistentVolume pv-1: {}}",
        ),
        (
            "without volumes",
            "{Pod plain: {}, Pod web-0: {uses: data-0}, PersistentVolumeClaim data-0: {volume: pv-1}}",
        ),
        (
            "without claims",
            "{Pod plain: {}, Pod web-0: {uses: data-0}, PersistentVolume pv-1: {}}",
        ),
        (
            "another claim shows that this one does not exist",
            "{Pod web-0: {uses: gone}, PersistentVolumeClaim other: {volume: pv-1}, PersistentVolume pv-1: {}}",
        ),
        (
            "another volume shows that the claim has lost its own",
            "{Pod web-0: {uses: data-0}, PersistentVolumeClaim data-0: {volume: gone}, PersistentVolume pv-1: {}}",
        ),
        (
            "an unbound claim",
            "{Pod web-0: {uses: data-0}, PersistentVolumeClaim data-0: {}}",
        ),
        (
            "a claim that is Lost",
            "{Pod web-0: {uses: data-0}, PersistentVolumeClaim data-0: {volume: pv-1, phase: Lost}, PersistentVolume pv-1: {}}",
        ),
        (
            "without namespaces",
            "{Namespace data: null, Pod a: {}, Pod app/b: {}}",
        ),
        ("one namespace of two", "{Pod a: {}, Pod app/b: {}}"),
        (
            "without leases",
            "{Lease ds04: null, Lease ds05: null, Lease ds06: null, Pod a: {}}",
        ),
        (
            "a leader's election is no heartbeat",
            "
            Lease ds04: null
            Lease ds05: null
            Lease kube-system/ds06: {holder: another}
            Lease ds06: null
            Pod a: {}
            ",
        ),
        (
            "a running pod shows that none is stuck",
            "Pod a: {metadata: {deletionTimestamp: null}}",
        ),
    ];
    expect![[r#"
        complete
            plain stuck-on-not-ready-node
            web-0 stuck-on-not-ready-node
        without volumes
            plain stuck-on-not-ready-node
            web-0 volume-unverified data-0
            lacks: pv
        without claims
            plain stuck-on-not-ready-node
            web-0 volume-unverified data-0
            lacks: pvc
        another claim shows that this one does not exist
            web-0 stuck-on-not-ready-node
        another volume shows that the claim has lost its own
            web-0 volume-unverified data-0
        an unbound claim
            web-0 volume-unverified data-0
        a claim that is Lost
            web-0 volume-unverified data-0
        without namespaces
            b stuck-on-not-ready-node
            a stuck-on-not-ready-node
            lacks: namespaces
        one namespace of two
            b facts-unread
            a stuck-on-not-ready-node
        without leases
            a stuck-on-not-ready-node
            unread: leases
            lacks: leases
        a leader's election is no heartbeat
            a stuck-on-not-ready-node
            unread: leases
            lacks: leases
        a running pod shows that none is stuck
    "#]]
    .assert_eq(&verdicts(&clusters));
}

#[test]
fn without_nodes_or_pods_nothing_is_judged() {
    let no_nodes = list(cluster(
        "{Node ds04: null, Node ds05: null, Node ds06: null, Pod a: {}}",
    ));
    for (why, text) in [
        ("holds no nodes", no_nodes),
        ("holds no pods", list(cluster(""))),
        ("is empty", String::new()),
        ("holds no nodes", " \n".to_owned()),
    ] {
        let refused = gathered_by(&audit(), Some(NOW), &text).expect_err(why);
        let expected = format!(
            "it {why}; save it with `kubectl get no,ns,po,pvc,pv,leases,volumeattachments,csidrivers,sts -Ao json --show-managed-fields`"
        );
        assert_eq!(refused, expected, "{text:?}");
    }
}

// Forms.

#[test]
fn every_form_that_kubectl_prints_gives_the_same_facts() {
    let items = cluster(
        "{Pod a: {}, Pod web-0: {uses: data-0}, PersistentVolumeClaim data-0: {volume: pv-1}, PersistentVolume pv-1: {}}",
    );
    let mut kinds = BTreeMap::<&str, Vec<Value>>::new();
    for item in &items {
        let kind = item["kind"].as_str().expect("a kind");
        kinds.entry(kind).or_default().push(item.clone());
    }
    // kubectl get --raw, or client libraries: items without kinds, apiVersions on the list.
    let typed_lists = kinds.iter().map(|(kind, items)| {
        let mut bare = items.clone();
        for item in &mut bare {
            item.as_object_mut().expect("an object").remove("kind");
        }
        json!({"apiVersion": "v1", "kind": format!("{kind}List"), "items": bare})
    });
    let typed_lists = typed_lists.collect::<Vec<_>>();
    let one_list = samples::list(items.clone());
    let something_else = yaml("{kind: ConfigMap, data: {kind: Pod}}");
    let forms = [
        (
            "single objects",
            items
                .iter()
                .flat_map(|item| [item.to_string(), "\n".into()])
                .collect(),
        ),
        (
            "indented objects, nothing between",
            items
                .iter()
                .flat_map(|item| [format!("{item:#}")])
                .collect(),
        ),
        (
            "a list a kind",
            kinds
                .into_values()
                .map(|items| list(items) + "\n")
                .collect(),
        ),
        (
            "typed lists",
            typed_lists.iter().map(Value::to_string).collect(),
        ),
        ("the same list twice", format!("{one_list}\n{one_list}")),
        (
            "with something else in it",
            list(items.into_iter().chain([something_else])),
        ),
        (
            "with an empty list",
            format!(r#"{one_list}{{"kind": "ServiceList", "items": null}}"#),
        ),
    ];
    let expected = verdicts_of(&one_list.to_string());
    assert_eq!(expected.lines().count(), 2, "{expected}");
    for (name, text) in forms {
        let text: String = text;
        assert_eq!(verdicts_of(&text), expected, "{name}");
    }
}

#[test]
fn objects_that_were_saved_twice_count_once() {
    let twice = cluster("Pod a: {}")
        .into_iter()
        .flat_map(|item| [item.clone(), item]);
    let Gathered { facts, pods, .. } = gathered_of(&list(twice));
    assert_eq!(pods.len(), 1);
    assert_eq!((facts.node_count, all_of(&facts)), (3, (1, 3)));
}

#[test]
fn a_node_that_was_saved_twice_keeps_its_lease() {
    let once = cluster("{Pod a: {}, Lease ds06: {spec: {renewTime: '2026-01-31T02:59:55Z'}}}");
    let twice = once
        .iter()
        .cloned()
        .chain(objects(&yaml("Node ds06: {lease: null}")));
    for text in [list(once.clone()), list(twice)] {
        assert_eq!(reaped(&text, 55), BTreeSet::new(), "{text}");
    }
}

#[test]
fn namesakes_are_distinguished_by_uid() {
    let more = "
        Pod hue-0: {}
        Pod impala/hue-0: {}
        Pod successor: {metadata: {name: hue-0, uid: uid-successor}}
    ";
    assert_eq!(gathered(more).pods.len(), 3);
}

#[test]
fn a_null_counts_as_an_absent_field() {
    let more = "
        Pod a:
            metadata: {labels: null, annotations: null, finalizers: null, ownerReferences: null,
                deletionGracePeriodSeconds: null, managedFields: null, creationTimestamp: null}
            spec: {volumes: null}
            status: {phase: null, conditions: null}
        Pod b: {spec: {volumes: [{name: null, persistentVolumeClaim: null, ephemeral: null}]}}
        Pod alive: {metadata: {deletionTimestamp: null}}
        Node ds07: {ready: 'True', metadata: {labels: null, annotations: null}, spec: {taints: null}}
        Lease ds07: {metadata: {managedFields: null}, spec: {renewTime: null, leaseDurationSeconds: null}}
        VolumeAttachment x: {spec: {nodeName: ds06, source: {persistentVolumeName: null}}}
        PersistentVolume pv: {spec: {local: null, hostPath: null, nodeAffinity: null}}
    ";
    expect![[r#"
        nulls
            b stuck-on-not-ready-node
            a stuck-on-not-ready-node
    "#]]
    .assert_eq(&verdicts(&[("nulls", more)]));
}

#[test]
fn pods_of_ready_nodes_are_left_out_unless_all_are_wanted() {
    let more = "
        Pod stuck: {}
        Pod slow: {spec: {nodeName: ds04}}
        Pod orphan: {spec: {nodeName: ds99}}
        Pod never-placed: {spec: {nodeName: null}}
    ";
    let settings = Settings {
        all: false,
        ..audit()
    };
    let gathered = gathered_by(&settings, Some(NOW), &list(cluster(more)));
    let pods = gathered.expect("a snapshot").pods.into_iter();
    let names = pods.map(|pod| pod.name).collect::<BTreeSet<_>>();
    assert_eq!(
        names.iter().collect::<Vec<_>>(),
        ["never-placed", "orphan", "stuck"]
    );
    expect![[r#"
        all
            stuck stuck-on-not-ready-node
            never-placed node-gone
            orphan node-gone
            slow node-ready
    "#]]
    .assert_eq(&verdicts(&[("all", more)]));
}

// Malformed objects.

const BREAKER_OFF: u8 = 100;

/// Pods that a single obstacle each keeps, and two pods that nothing keeps.
const HELD: &str = r#"
    Pod free: {}
    Pod free-with-claim: {uses: network}
    PersistentVolumeClaim network: {volume: pv-network}
    PersistentVolume pv-network: {}
    Pod opted-out: {metadata: {annotations: {pod-reaper.io/skip: 'true'}}}
    Pod quiet/namespace-opted-out: {}
    Namespace quiet: {metadata: {annotations: {pod-reaper.io/skip: 'true'}}}
    Pod node-opted-out: {spec: {nodeName: ds10}}
    Node ds10: {lease: null, metadata: {annotations: {pod-reaper.io/skip: 'true'}}}
    Pod mirror: {metadata: {annotations: {kubernetes.io/config.mirror: x}}}
    Pod held: {metadata: {finalizers: [example.com/backup]}}
    Pod recent: {metadata: {deletionTimestamp: '2026-01-31T02:59:00Z'}}
    Pod on-ready-node: {spec: {nodeName: ds04}}
    Pod node-recovers: {spec: {nodeName: ds11}}
    Node ds11: {}
    Lease ds11: {metadata: {managedFields: [{time: '2026-01-31T03:00:00Z', fieldsV1: {'f:spec': {'f:renewTime': {}}}}]}}
    Pod node-just-failed: {spec: {nodeName: ds12}}
    Node ds12: {lease: null, status: {conditions: [{type: Ready, status: Unknown, lastTransitionTime: '2026-01-31T02:55:00Z'}]}}
    Pod leaf-by-label: {spec: {nodeName: leaf-1}}
    Node leaf-1: {lease: null, metadata: {labels: {kosmos.io/node: 'true'}}}
    Pod leaf-by-annotation: {spec: {nodeName: leaf-2}}
    Node leaf-2: {lease: null, metadata: {annotations: {kosmos-io/owned-by-cluster: c2}}}
    Pod leaf-by-taint: {spec: {nodeName: leaf-3}}
    Node leaf-3: {lease: null, spec: {taints: [{key: kosmos.io/node, effect: NoSchedule}]}}
    Pod leaf-by-name: {spec: {nodeName: kosmos-c4}}
    Node kosmos-c4: {lease: null}
    Pod local: {uses: local}
    PersistentVolumeClaim local: {volume: pv-local}
    PersistentVolume pv-local: {on: ds06, spec: {local: {path: /mnt/disk}}}
    Pod host-path: {uses: host-path}
    PersistentVolumeClaim host-path: {volume: pv-host-path}
    PersistentVolume pv-host-path: {on: ds06, spec: {hostPath: {path: /opt/x}}}
    Pod pinned: {uses: pinned}
    PersistentVolumeClaim pinned: {volume: pv-pinned}
    PersistentVolume pv-pinned: {spec: {nodeAffinity: {required: {nodeSelectorTerms: [
        {matchExpressions: [{key: topology.topolvm.io/node, operator: In, values: [ds06]}]}]}}}}
    Pod lost: {uses: lost}
    PersistentVolumeClaim lost: {volume: pv-network, status: {phase: Lost}}
    Pod ephemeral: {spec: {volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {}}}]}}
    PersistentVolumeClaim ephemeral-scratch: {volume: pv-local}
"#;

#[test]
fn each_obstacle_holds_its_pod() {
    let reasons = reasons(&list(cluster(HELD)), BREAKER_OFF).into_iter();
    let lines = reasons.map(|(pod, reason)| format!("{pod} {reason}\n"));
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
    .assert_eq(&lines.collect::<String>());
}

/// The path of every value inside `value`.
fn paths(value: &Value) -> Vec<Vec<String>> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), value))
            .collect(),
        Value::Array(items) => (0..).map(|at: usize| at.to_string()).zip(items).collect(),
        _ => Vec::new(),
    };
    let below = children.into_iter().flat_map(|(key, value)| {
        let deeper = paths(value).into_iter();
        deeper.map(move |rest| iter::once(key.clone()).chain(rest).collect())
    });
    iter::once(Vec::new()).chain(below).collect()
}

/// Replaces each value of each object in turn by a value of another type, such as text by a number.
/// An object that cannot be read may keep pods, but must never cause a pod to be reaped.
#[test]
fn a_malformed_value_anywhere_never_adds_a_pod_to_the_plan() {
    let state = cluster(HELD);
    let mut texts = state.iter().map(Value::to_string).collect::<Vec<_>>();
    let expected = reaped(&texts.concat(), BREAKER_OFF);
    assert_eq!(expected.len(), 2, "{expected:?}");
    let mut added = Vec::new();
    let mut tried = 0;
    for (number, object) in state.iter().enumerate() {
        for path in paths(object).into_iter().skip(1) {
            // The field names of a managed fields entry may have any form.
            if path.iter().any(|key| key == "fieldsV1") {
                continue;
            }
            let place = path
                .iter()
                .map(|key| format!("/{}", key.replace('/', "~1")));
            let place = place.collect::<String>();
            for malformed in [json!(5), json!([5]), json!({"a": 5}), json!("a")] {
                let mut changed = object.clone();
                let value = changed.pointer_mut(&place).expect("it is there");
                // A value of the same type is not malformed.
                if std::mem::discriminant(value) == std::mem::discriminant(&malformed) {
                    continue;
                }
                *value = malformed.clone();
                tried += 1;
                texts[number] = changed.to_string();
                let reaped = reaped(&texts.concat(), BREAKER_OFF);
                let more = reaped.difference(&expected).collect::<Vec<_>>();
                if !more.is_empty() {
                    let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
                    added.push(format!("{kind} {name}: {place} is {malformed}: {more:?}"));
                }
            }
        }
        texts[number] = object.to_string();
    }
    assert!(tried > 1000, "{tried}");
    assert_eq!(added, Vec::<String>::new());
}

#[test]
fn what_is_malformed_is_named_holds_what_depends_on_it_and_nothing_else() {
    const WITH_CLAIM: &str = "
        Pod a: {uses: data-a}
        PersistentVolumeClaim data-a: {volume: pv-a}
        PersistentVolumeClaim b: {volume: pv-a}
        PersistentVolume pv-a: {}
        PersistentVolume pv-b: {}
    ";
    let pods = "
        Pod a: {}
        Pod no-name: {metadata: {name: null}}
        Pod no-uid: {metadata: {uid: ''}}
        Pod no-version: {metadata: {resourceVersion: null}}
        Pod no-claim: {spec: {volumes: [{persistentVolumeClaim: {}}]}}
        Pod no-node: {spec: {nodeName: 5}}
        Pod number: {metadata: {deletionTimestamp: 1769824800}}
        Pod empty: {metadata: {deletionTimestamp: ''}}
    ";
    expect![[r#"
        pods
            a stuck-on-not-ready-node
            unread: Pod data/empty
            unread: Pod data/no-node
            unread: Pod data/number
            unread: pod data/
            unread: pod data/no-claim
            unread: pod data/no-uid
            unread: pod data/no-version
    "#]]
    .assert_eq(&verdicts(&[("pods", pods)]));
    let malformed = [
        "PersistentVolumeClaim data-a: {spec: {volumeName: 5}}",
        "PersistentVolume pv-a: {spec: {local: {path: 5}}}",
        "Lease ds06: {spec: {renewTime: noon}}",
        "Lease ds06: {metadata: {labels: {a: 5}}, spec: {renewTime: '2026-01-31T03:00:00Z'}}",
        "Node ds06: {spec: {taints: 5}}",
        "Namespace data: {metadata: {annotations: {pod-reaper.io/skip: 5}}}",
    ];
    let told = malformed.map(|more| {
        let text = list(objects(&with(
            with(yaml(CLUSTER), yaml(WITH_CLAIM)),
            yaml(more),
        )));
        assert_eq!(reaped(&text, 55), BTreeSet::new(), "{more}");
        format!("{more}\n{}", verdicts_of(&text))
    });
    expect![[r#"
        PersistentVolumeClaim data-a: {spec: {volumeName: 5}}
        a volume-unverified data-a
        unread: PersistentVolumeClaim data/data-a
        PersistentVolume pv-a: {spec: {local: {path: 5}}}
        a volume-unverified data-a
        unread: PersistentVolume pv-a
        Lease ds06: {spec: {renewTime: noon}}
        a facts-unread
        unread: Lease kube-node-lease/ds06
        Lease ds06: {metadata: {labels: {a: 5}}, spec: {renewTime: '2026-01-31T03:00:00Z'}}
        a facts-unread
        unread: Lease kube-node-lease/ds06
        Node ds06: {spec: {taints: 5}}
        a facts-unread
        unread: Node ds06
        Namespace data: {metadata: {annotations: {pod-reaper.io/skip: 5}}}
        a facts-unread
        unread: Namespace data
        lacks: pods
    "#]]
    .assert_eq(&told.concat());
}

#[test]
fn an_error_does_not_repeat_the_value() {
    let secrets =
        "{Pod a: {spec: {volumes: MARKER}}, Pod b: {metadata: {annotations: MARKER}}, Pod c: {}}";
    let errors = gathered(secrets).facts.errors;
    assert!(
        errors.len() == 2 && !format!("{errors:?}").contains("MARKER"),
        "{errors:?}"
    );
}

/// An object without a name may be the very object that is looked up.
#[test]
fn an_object_that_does_not_say_which_it_is_proves_nothing_absent() {
    let uses_local = "
        Pod a: {uses: local}
        PersistentVolumeClaim other: {volume: pv-local}
        PersistentVolume pv-local: {on: ds06, spec: {local: {path: /mnt}}}
        PersistentVolumeClaim local:";
    for more in [
        "{Pod a: {}, Lease ds06: {metadata: {name: null}, spec: {renewTime: '2026-01-31T03:00:00Z'}}}",
        "{Pod a: {}, Lease ds06: {metadata: {namespace: null}, spec: {renewTime: '2026-01-31T03:00:00Z'}}}",
        &format!("{uses_local} {{volume: pv-local, metadata: {{name: null}}}}"),
        &format!("{uses_local} {{volume: pv-local, metadata: {{namespace: null}}}}"),
        "{Pod a: {spec: {nodeName: leaf}}, Node leaf: {metadata: {name: null}}}",
    ] {
        assert_eq!(reaped(&list(cluster(more)), 55), BTreeSet::new(), "{more}");
    }
}

#[test]
fn an_item_that_is_no_object_affects_no_other() {
    for item in [json!(null), json!(5), json!("")] {
        let text = list(cluster("Pod a: {}").into_iter().chain([item]));
        assert_eq!(gathered_of(&text).pods.len(), 1);
        // The item that could not be read may have been a node.
        assert_eq!(reaped(&text, 55), BTreeSet::new(), "{text}");
    }
}

// The time of the judgement.

#[test]
fn now_is_the_newest_observation_and_never_a_deletion_deadline() {
    let now = |now, more: &str| {
        gathered_by(&audit(), now, &list(cluster(more)))
            .map(|gathered| gathered.facts.now.to_string())
    };
    // The file always has a pod, and its deletion was requested a second before its deadline.
    check_each(
        &expect![[r#"
            a deadline in the future: Pod b: {metadata: {deletionTimestamp: '2026-01-31T09:00:00Z', deletionGracePeriodSeconds: null}}
                = 2026-01-31T01:04:59Z
            the moment a deletion was asked for: Pod b: {metadata: {deletionTimestamp: '2026-01-31T09:00:00Z', deletionGracePeriodSeconds: 21600}}
                = 2026-01-31T03:00:00Z
            a creation: Pod b: {metadata: {creationTimestamp: '2026-01-31T03:00:00Z'}}
                = 2026-01-31T03:00:00Z
            any kind's creation: Event x: {metadata: {creationTimestamp: '2026-01-31T03:00:00Z'}}
                = 2026-01-31T03:00:00Z
            a field manager's stamp: Pod b: {metadata: {managedFields: [{time: '2026-01-31T01:00:00Z'}, {time: '2026-01-31T03:00:00Z'}]}}
                = 2026-01-31T03:00:00Z
            a heartbeat: Node ds07: {status: {conditions: [{lastHeartbeatTime: '2026-01-31T03:00:00Z'}]}}
                = 2026-01-31T01:04:59Z
            a transition: Pod b: {status: {conditions: [{lastTransitionTime: '2026-01-31T03:00:00Z'}]}}
                = 2026-01-31T01:04:59Z
            a lease: Lease ds07: {spec: {renewTime: '2026-01-31T03:00:00Z'}}
                = 2026-01-31T01:04:59Z
            an election's lease: Lease x: {metadata: {namespace: kube-system}, spec: {renewTime: '2026-01-31T03:00:00Z'}}
                = 2026-01-31T01:04:59Z
        "#]],
        |more| {
            let more = format!("Lease ds04: null\nLease ds05: null\nPod a: {{}}\n{more}");
            now(None, &more).expect("dated")
        },
    );
    let given = now(Some("2026-01-31T09:00:00Z"), "Pod a: {}");
    assert_eq!(
        given.expect("dated"),
        "2026-01-31T09:00:00Z",
        "--now overrides the observations"
    );
    let undated = yaml(
        "
        Pod a: {metadata: {creationTimestamp: null, deletionGracePeriodSeconds: null}}
        Node n: {lease: null, metadata: {creationTimestamp: null}, status: {conditions: []}}
        ",
    );
    let undated = gathered_by(&audit(), None, &list(objects(&undated)));
    assert_eq!(undated.map(drop), Err(UNDATED.to_owned()));
}

// Leases.

#[test]
fn the_later_of_the_servers_stamp_and_the_nodes_word_counts_unless_that_is_of_the_future() {
    // Each row has the node's own time, and the stamps on the lease. API servers before 1.25 do not
    // stamp a renewal. Only a stamp that is much later than the lease's creation shows that
    // renewals are stamped.
    check_each(
        &expect![[r#"
            an old stamp and a fresh word: FRESH; RENEWED STALE
                = kubelet-alive
            a node whose clock is ahead: AHEAD; RENEWED STALE
                = stuck-on-not-ready-node
            a young stamp and a clock ahead: AHEAD; RENEWED STALE; young
                = kubelet-alive
            no stamps and a clock ahead: AHEAD
                = kubelet-alive
            a node whose clock is behind: STALE; RENEWED FRESH
                = kubelet-alive
            another client labels the lease: STALE; RENEWED STALE; LABELLED FRESH
                = stuck-on-not-ready-node
            only others have written: FRESH; LABELLED STALE
                = kubelet-alive
            the newest renewal counts: STALE; RENEWED FRESH; RENEWED STALE
                = kubelet-alive
            no stamps: FRESH
                = kubelet-alive
            no stamps, no renewal: STALE
                = stuck-on-not-ready-node
            an entry without time: FRESH; {fieldsV1: {'f:spec': {'f:renewTime': {}}}}
                = kubelet-alive
            an entry without fields: FRESH; {time: STALE}
                = kubelet-alive
        "#]],
        |case| {
            let (case, made) = match case.strip_suffix("; young") {
                Some(case) => (case, FAILED),
                None => (case, samples::MADE),
            };
            let renewed =
                "{fieldsV1: {'f:spec': {'f:holderIdentity': {}, 'f:renewTime': {}}}, time: ";
            let labelled = "{fieldsV1: {'f:metadata': {'f:labels': {}}}, time: ";
            let case = case
                .replace("RENEWED STALE", &format!("{renewed}STALE}}"))
                .replace("RENEWED FRESH", &format!("{renewed}FRESH}}"))
                .replace("LABELLED STALE", &format!("{labelled}STALE}}"))
                .replace("LABELLED FRESH", &format!("{labelled}FRESH}}"))
                .replace("AHEAD", "'2026-01-31T03:00:31Z'")
                .replace("FRESH", &format!("'{NOW}'"))
                .replace("STALE", &format!("'{FAILED}'"));
            let (says, entries) = case.split_once("; ").unwrap_or((&case, ""));
            let entries = entries.replace("; ", ", ");
            let more = format!(
                "
                Pod a: {{}}
                Lease ds06:
                    metadata: {{creationTimestamp: '{made}', managedFields: [{entries}]}}
                    spec: {{renewTime: {says}, leaseDurationSeconds: 40}}
                "
            );
            code(&more).to_owned()
        },
    );
}

/// One API server stamps the renewal one second ahead of another API server, by whose clock the
/// node has just failed.
#[test]
fn a_renewal_that_is_stamped_ahead_of_the_scan_is_later_than_a_failure_of_that_moment() {
    let more = "
        Pod a: {}
        Node ds06: {status: {conditions: [{type: Ready, status: Unknown, lastTransitionTime: '2026-01-31T03:00:00Z'}]}}
        Lease ds06: {metadata: {managedFields: [{time: '2026-01-31T03:00:01Z', fieldsV1: {'f:spec': {'f:renewTime': {}}}}]}}
    ";
    let node = node_by(&audit(), "ds06", more);
    assert!(node.may_live(NOW.parse().expect("a moment")));
}

/// Annotation and label opt out alike, with any value but `false`, because a typing error must not
/// lead to a delete.
#[test]
fn whatever_is_not_false_opts_out() {
    for value in ["true", "", "yes", "True", "flase", "false"] {
        for place in ["annotations", "labels"] {
            for object in ["Pod a", "Node ds06", "Namespace data"] {
                let mark = format!(
                    "{object}: {{metadata: {{{place}: {{pod-reaper.io/skip: '{value}'}}}}}}"
                );
                let plain = if object == "Pod a" { "" } else { "\nPod a: {}" };
                let out = code(&(mark.clone() + plain)) == "opted-out";
                assert_eq!(out, value != "false", "{mark}");
            }
        }
    }
}

// Leaf nodes.

/// Without its mark the node would be treated as a dead machine, and its pod would be
/// force-deleted.
#[test]
fn each_mark_alone_makes_a_leaf_node() {
    let marks = include_str!("../../tests/data/leaf-marks.yaml").lines();
    let marks = marks.filter_map(|line| line.strip_prefix("- "));
    let seen = marks.map(|mark| {
        let more = format!("Pod a: {{}}\nNode ds06: {mark}");
        let gathered = gathered(&more);
        // A leaf node does not count as a real node.
        assert_eq!(all_of(&gathered.facts), (0, 2), "{mark}");
        let node = gathered.facts.nodes["ds06"].known().expect(mark);
        let leaf = node.leaf.clone().expect(mark);
        let [only] = &leaf.marks[..] else {
            panic!("{leaf:?}")
        };
        let cluster = leaf
            .cluster
            .map_or_else(String::new, |cluster| format!(", of {cluster}"));
        let code = judged(gathered, 55).pods[0].code();
        format!("{code}: {}: {only}{cluster}\n", leaf.maker)
    });
    expect![[r#"
        kosmos-leaf: Kosmos: label kosmos.io/node
        kosmos-leaf: Kosmos: label kosmos.io/node
        kosmos-leaf: Kosmos: annotation kosmos-io/owned-by-cluster=cluster7, of cluster7
        kosmos-leaf: Kosmos: annotation kosmos-io/owned-by-cluster=
        kosmos-leaf: Kosmos: taint kosmos.io/node
        virtual-node: Liqo: label liqo.io/type=virtual-node
        virtual-node: Liqo: taint virtual-node.liqo.io/not-allowed
        virtual-node: interLink: label virtual-node.interlink/type
        virtual-node: interLink: taint virtual-node.interlink/no-schedule
        virtual-node: Alibaba Cloud: label k8s.aliyun.com/vnode
        virtual-node: Alibaba Cloud: taint k8s.aliyun.com/vnode
        virtual-node: Tencent Cloud: label node.kubernetes.io/instance-type=eklet
        virtual-node: Tencent Cloud: taint eks.tke.cloud.tencent.com/eklet
        virtual-node: Koupleless: label virtual-kubelet.koupleless.io/component=vnode
        virtual-node: Koupleless: taint schedule.koupleless.io/virtual-node
        virtual-node: KWOK: label kwok.x-k8s.io/node=fake
        virtual-node: KWOK: annotation kwok.x-k8s.io/node=fake
        virtual-node: KWOK: label type=kwok
        virtual-node: KWOK: kubelet version kwok-0.8.0
        virtual-node: vcluster: label vcluster.loft.sh/fake-node=true
        virtual-node: Virtual Kubelet: label type=virtual-kubelet
        virtual-node: Virtual Kubelet: label virtual-kubelet.io/provider
        virtual-node: Virtual Kubelet: taint virtual-kubelet.io/provider
        virtual-node: Virtual Kubelet: annotation virtual-kubelet.io/last-applied-node-status
        virtual-node: Virtual Kubelet: kubelet version v1.15.2-vk-N/A
        virtual-node: Virtual Kubelet: kubelet version v1.15.2-vk-v1.11.0
        edge-node: KubeEdge: kubelet version v1.29.5-kubeedge-v1.18.0
        edge-node: OpenYurt: label openyurt.io/is-edge-worker=true
        edge-node: OpenYurt: annotation apps.openyurt.io/binding=true
        edge-node: OpenYurt: annotation node.beta.openyurt.io/autonomy=true
        edge-node: OpenYurt: annotation node.openyurt.io/autonomy-duration=2h
        edge-node: SuperEdge: label superedge.io/node-edge=enable
        virtual-node: Oracle Cloud: annotation oci.oraclecloud.com/virtual-node-pool-id=pool
        virtual-node: Oracle Cloud: providerID ocid1.virtualnode.oc1.x
        edge-node: EKS Hybrid Nodes: label eks.amazonaws.com/compute-type=hybrid
        edge-node: EKS Hybrid Nodes: providerID eks-hybrid:///eu-west-1/c/mi-1
        edge-node: ACK Edge: label alibabacloud.com/is-edge-worker=true
        edge-node: ACK Edge: annotation node.alibabacloud.com/autonomy-duration=1h
    "#]]
    .assert_eq(&seen.collect::<String>());
}

/// Real nodes may also have a name that begins like that of a Kosmos node.
#[test]
fn the_name_of_a_kosmos_node_counts_where_it_is_of_no_machine() {
    for (info, leaf) in [
        ("{}", true),
        ("{machineID: '', systemUUID: ''}", true),
        ("{machineID: 5f2c}", false),
        ("{systemUUID: ec2f}", false),
    ] {
        let more = format!(
            "
            Pod a: {{spec: {{nodeName: kosmos-1}}}}
            Node kosmos-1: {{status: {{nodeInfo: {info}}}}}
            Lease kosmos-1: {{}}
            "
        );
        assert_eq!(code(&more) == "kosmos-leaf", leaf, "{info}");
    }
}

#[test]
fn what_only_looks_like_a_mark_is_none() {
    for more in [
        "metadata: {labels: {kosmos-io/node: 'true', kubernetes.io/role: agent}}",
        "metadata: {annotations: {kosmos.io/owned-by-cluster: c}}",
        "spec: {taints: [{key: kosmos-io/node}]}",
        "metadata: {labels: {type: worker, liqo.io/type: other}}",
        "metadata: {labels: {node.kubernetes.io/instance-type: eklet-like}}",
        "metadata: {labels: {node-role.kubernetes.io/edge: '', kubernetes.io/role: agent}}",
        "metadata: {labels: {node.kubernetes.io/exclude-from-external-load-balancers: 'true'}}",
        "metadata: {labels: {eks.amazonaws.com/compute-type: fargate}}",
        "metadata: {labels: {openyurt.io/is-edge-worker: 'false', superedge.io/node-edge: disable}}",
        "metadata: {annotations: {cluster.x-k8s.io/machine: m, apps.openyurt.io/binding: 'false'}}",
        "metadata: {annotations: {node.openyurt.io/autonomy-duration: ''}}",
        "spec: {providerID: ''}",
        "status: {nodeInfo: {kubeletVersion: v1.35.4, machineID: '', systemUUID: ''}}",
        "status: {nodeInfo: {kubeletVersion: v1.35-vk-1}}",
        "status: {nodeInfo: {kubeletVersion: v1.35.4-eks-vk-1}}",
    ] {
        let more = format!("Pod a: {{}}\nNode ds06: {{{more}}}");
        assert_eq!(code(&more), "stuck-on-not-ready-node", "{more}");
    }
    // Inside a leaf cluster, ordinary pods on ordinary nodes have this label too.
    let marked = "Pod a: {metadata: {labels: {kosmos-io/pod: 'true'}}}";
    assert_eq!(code(marked), "stuck-on-not-ready-node");
}

#[test]
fn a_character_may_lie_across_two_chunks_but_not_across_the_end_of_the_file() {
    let note = "é".repeat(100_000);
    let text = list(cluster(&format!(
        "Pod web-0: {{metadata: {{annotations: {{pod-reaper.io/after-reap: {note}}}}}}}"
    )));
    for padding in ["", " "] {
        let pods = gathered_of(&format!("{padding}{text}")).pods;
        assert_eq!(pods[0].after_reap.as_deref().map(str::len), Some(200_000));
    }
    let cut = &text.as_bytes()[..=text.find('é').expect("it is there")];
    let read = Saved::read(cut, Options::default());
    let why = read.err().expect("it is cut off");
    assert!(why.starts_with("it is cut off at line 1"), "{why}");
}

fn selecting(leaf: &[&str], fenced: &[&str]) -> Settings {
    let parsed = |all: &[&str]| {
        all.iter()
            .map(|it| it.parse().expect("a selector"))
            .collect()
    };
    Settings {
        policy: Policy {
            node_selectors: NodeSelectors {
                leaf: parsed(leaf),
                fenced: parsed(fenced),
            },
            ..audit().policy
        },
        ..audit()
    }
}

#[test]
fn nodes_are_selected_by_label_annotation_and_taint() {
    let more = "
        Pod a: {}
        Node ds06:
            metadata: {labels: {type: x}, annotations: {example.org/kind: far}}
            spec: {taints: [{key: example.org/away, value: 'yes', effect: NoSchedule}]}
    ";
    check_each(
        &expect![[r#"
            by label: type=x
                = (true, false) (false, true)
            by annotation: annotation:example.org/kind
                = (true, false) (false, true)
            by its value: annotation:example.org/kind=far
                = (true, false) (false, true)
            by another: annotation:example.org/kind=near
                = (false, false) (false, false)
            a label is none: annotation:type
                = (false, false) (false, false)
            by taint: taint:example.org/away
                = (true, false) (false, true)
            by its value: taint:example.org/away=yes
                = (true, false) (false, true)
            by another: taint:example.org/away=no
                = (false, false) (false, false)
            an annotation is none: taint:example.org/kind
                = (false, false) (false, false)
        "#]],
        |selector| {
            let both = ["absent", selector];
            let selected = |leaf, fenced| {
                let node = node_by(&selecting(leaf, fenced), "ds06", more);
                (node.leaf.is_some(), !node.fenced.is_empty())
            };
            format!("{:?} {:?}", selected(&both, &[]), selected(&[], &both))
        },
    );
}

#[test]
fn each_word_that_a_machine_is_off_counts_where_it_is_sure() {
    let fenced = |more: &str| {
        let fenced = ds06(more).fenced.into_iter();
        fenced.map(|it| it.mark).collect::<Vec<_>>()
    };
    for value in ["fenced", "started", "error", "Fenced", ""] {
        let fenced = fenced(&format!(
            "  metadata: {{annotations: {{fencing/state: '{value}'}}}}"
        ));
        let expected = (value == "fenced").then_some("annotation fencing/state=fenced");
        assert_eq!(fenced, Vec::from_iter(expected), "{value}");
    }
    // Each row has the taint, the provider, and whether the node is out of service too.
    check_each(
        &expect![[r#"
            AWS: node.cloudprovider.kubernetes.io/shutdown aws:///eu-central-1a/i-0123
                = ["taint node.cloudprovider.kubernetes.io/shutdown"] false
            OpenStack: node.cloudprovider.kubernetes.io/shutdown openstack:///6e1a
                = ["taint node.cloudprovider.kubernetes.io/shutdown"] false
            nobody: node.cloudprovider.kubernetes.io/shutdown
                = [] false
            vSphere: node.cloudprovider.kubernetes.io/shutdown vsphere://42
                = [] false
            Harvester: node.cloudprovider.kubernetes.io/shutdown harvester://n
                = [] false
            Azure: node.cloudprovider.kubernetes.io/shutdown azure:///x
                = [] false
            Google: node.cloudprovider.kubernetes.io/shutdown gce://p/z/n
                = [] false
            Fargate: node.cloudprovider.kubernetes.io/shutdown aws:///a/b/fargate-ip-10-0-0-1
                = [] false
            out of service: node.kubernetes.io/out-of-service aws:///eu-central-1a/i-0123
                = [] true
            to be removed: ToBeDeletedByClusterAutoscaler aws:///eu-central-1a/i-0123
                = [] false
            disrupted: karpenter.sh/disrupted aws:///eu-central-1a/i-0123
                = [] false
        "#]],
        |case| {
            let (taint, provider) = case.split_once(' ').unwrap_or((case, ""));
            let name = provider.rsplit('/').next().expect("a name");
            let name = if name.starts_with("fargate-") {
                name
            } else {
                "ds06"
            };
            let more = format!(
                "
                Pod a: {{}}
                Node {name}: {{spec: {{providerID: '{provider}', taints: [{{key: {taint}, effect: NoSchedule}}]}}}}
                "
            );
            let node = node_by(&audit(), name, &more);
            let marks = node.fenced.into_iter().map(|it| it.mark);
            format!("{:?} {}", marks.collect::<Vec<_>>(), node.out_of_service)
        },
    );
}

#[test]
fn each_report_of_a_nodes_own_machine_is_a_heartbeat() {
    let heard = |more: &str| {
        let heard = ds06(more).heard.into_iter();
        let heard = heard.map(|it| format!("{:?} {}", it.by, it.at));
        heard.collect::<Vec<_>>().join(", ")
    };
    let (detector, monitoring) = (
        "ProblemDetector 2026-01-31T01:00:00Z",
        "NodeMonitoring 2026-01-31T01:00:00Z",
    );
    for (kinds, by) in [
        (
            "KernelDeadlock ReadonlyFilesystem KubeletUnhealthy ContainerRuntimeUnhealthy FrequentKubeletRestart
            FrequentContainerdRestart FrequentDockerRestart FrequentUnregisterNetDevice CorruptDockerOverlay2",
            detector,
        ),
        (
            "KernelReady NetworkingReady StorageReady ContainerRuntimeReady AcceleratedHardwareReady",
            monitoring,
        ),
        // The control plane or the kubelet writes these,
        // so they are no heartbeats of another program.
        (
            "NetworkUnavailable Drained MemoryPressure DiskPressure PIDPressure",
            "",
        ),
    ] {
        for kind in kinds.split_whitespace() {
            let conditions = format!(
                "
                    status:
                        conditions:
                        - {{type: Ready, status: 'False', lastHeartbeatTime: '2026-01-31T03:00:00Z'}}
                        - {{type: {kind}, status: 'False', lastHeartbeatTime: '2026-01-31T01:00:00Z'}}
                "
            );
            assert_eq!(heard(&conditions), by, "{kind}");
        }
    }
    // The API server's stamp on a heartbeat is used too, because the node's clock may be wrong.
    let stamped = |made: &str, time: &str, fields: &str| {
        format!(
            r#"
            metadata:
                creationTimestamp: '{made}'
                managedFields:
                - {{manager: kubelet, time: '2026-01-31T02:59:59Z', fieldsV1: {{
                    'f:status': {{'f:conditions': {{'k:{{"type":"Ready"}}': {{'f:lastHeartbeatTime': {{}}}}}}}}}}}}
                - {{manager: x, time: '{time}', fieldsV1: {{{fields}}}}}
                annotations: {{kubevirt.io/heartbeat: '2026-01-31T01:00:00Z'}}
            "#
        )
    };
    let owns_virt = "'f:metadata': {'f:annotations': {'.': {}, 'f:kubevirt.io/heartbeat': {}}}";
    assert_eq!(
        heard(&stamped(samples::MADE, NOW, owns_virt)),
        "VirtHandler 2026-01-31T03:00:00Z"
    );
    assert_eq!(
        heard(&stamped(samples::MADE, NOW, "")),
        "VirtHandler 2026-01-31T01:00:00Z"
    );
    assert_eq!(
        heard("    metadata: {annotations: {kubevirt.io/heartbeat: some time ago}}"),
        ""
    );
    // Several conditions are one source, whose latest time is used. A time that is ahead of all
    // clocks is used only if the stamp is from the node's first minute.
    let owns_problem = r#"'f:status': {'f:conditions': {'k:{"type":"KernelDeadlock"}': {'.': {}, 'f:lastHeartbeatTime': {}}}}"#;
    let both = |word: &str, made: &str, stamp: &str| {
        let stamped =
            stamped(made, stamp, owns_problem).replace("kubevirt.io/heartbeat", "another");
        heard(&format!(
            "{stamped}
            status:
                conditions:
                - {{type: KernelDeadlock, lastHeartbeatTime: '{word}'}}
                - {{type: ReadonlyFilesystem, lastHeartbeatTime: '2026-01-31T01:00:00Z'}}
            "
        ))
    };
    let (stamp, ahead) = ("2026-01-31T02:00:00Z", "2026-01-31T03:00:31Z");
    for (word, made, stamp, at) in [
        (FAILED, samples::MADE, NOW, NOW),
        (ahead, "2026-01-31T01:58:59Z", stamp, stamp),
        (ahead, "2026-01-31T01:59:00Z", stamp, ahead),
    ] {
        let expected = format!("ProblemDetector {at}");
        assert_eq!(both(word, made, stamp), expected, "{word} {made} {stamp}");
    }
}

#[test]
fn the_lease_of_an_api_server_is_a_heartbeat_of_its_control_plane_node() {
    let master = "metadata: {labels: {node-role.kubernetes.io/control-plane: '', kubernetes.io/hostname: CP-1}}";
    // Each row has the node, the host and the identity of the lease. The result shows the
    // heartbeats, whether the node lacks such a lease, and whether its heartbeats are unread if a
    // lease is malformed.
    check_each(
        &expect![[r#"
            by its label's name: MASTER; cp-1; kube-apiserver
                = [ApiServer], none: false; unread: true
            by its own: MASTER; CP-1.example; kube-apiserver
                = [ApiServer], none: false; unread: true
            another host: MASTER; cp-2; kube-apiserver
                = [], none: true; unread: true
            another server: MASTER; cp-1; aggregated
                = [], none: true; unread: true
            nobody asks of one that is Ready: ready: 'True', MASTER; cp-1; kube-apiserver
                = [], none: false; unread: false
            no control plane: ; cp-1.example; kube-apiserver
                = [ApiServer], none: false; unread: true
        "#]],
        |case| {
            let words = case.replace("MASTER", master);
            let words = words.split("; ").collect::<Vec<_>>();
            let [node, host, identity] = words[..] else {
                panic!("{case}")
            };
            let node = node.trim_end_matches(';');
            let read = |renewed: &str| {
                let more = format!(
                    "
            Pod a: {{spec: {{nodeName: cp-1.example}}}}
            Node cp-1.example: {{lease: null, {node}}}
            Lease apiserver-x:
                metadata:
                    namespace: kube-system
                    labels: {{apiserver.kubernetes.io/identity: {identity}, kubernetes.io/hostname: {host}}}
                spec: {{renewTime: {renewed}, leaseDurationSeconds: 3600}}
            "
                );
                node_by(&audit(), "cp-1.example", &more)
            };
            let node = read(&format!("'{NOW}'"));
            let by = node.heard.iter().map(|heard| heard.by);
            let unread = read("1").named_by.is_some_and(|read| read.is_err());
            let by = by.collect::<Vec<_>>();
            format!(
                "{by:?}, none: {}; unread: {unread}",
                node.lacks_api_server()
            )
        },
    );
    let none = "{Pod a: {spec: {nodeName: cp-1.example}}, Node cp-1.example: {lease: null, ";
    let alone = node_by(&audit(), "cp-1.example", &format!("{none}{master}}}}}"));
    assert!(alone.heard.is_empty() && alone.lacks_api_server());
}

#[test]
fn a_mark_of_fencing_has_the_time_by_which_it_was_set() {
    let settings = selecting(&[], &["taint:off", "annotation:out", "dead=yes,!alive"]);
    let more = "
        Pod a: {}
        Node ds06:
            metadata:
                labels: {dead: 'yes'}
                annotations: {fencing/state: fenced, out: ''}
                managedFields:
                - time: '2026-01-31T01:00:00Z'
                  fieldsV1: {'f:metadata': {'f:annotations': {'f:fencing/state': {}}, 'f:labels': {'f:dead': {}}}}
                - {time: '2026-01-31T03:00:00Z', fieldsV1: {'f:spec': {'f:taints': {}}}}
            spec: {taints: [{key: 'off', effect: NoSchedule}, {key: other, timeAdded: '2026-01-31T01:00:00Z'}]}
    ";
    let node = node_by(&settings, "ds06", more);
    let set_by = node.fenced.iter().map(|mark| mark.set_by);
    let [failed, now] = [FAILED, NOW].map(|at| Some(at.parse::<Timestamp>().expect("a moment")));
    assert_eq!(
        set_by.collect::<Vec<_>>(),
        [failed, now, None, failed],
        "{:?}",
        node.fenced
    );
}

/// The cloud's controller writes no time, but sets the taint only on a NotReady node.
#[test]
fn the_taint_of_a_machine_that_is_shut_down_was_set_as_the_node_failed() {
    let more = "
        Pod a: {}
        Node ds06:
            metadata: {managedFields: [{time: '2026-01-31T03:00:00Z', fieldsV1: {'f:spec': {'f:taints': {}}}}]}
            spec: {providerID: 'aws:///a/i-1', taints: [{key: node.cloudprovider.kubernetes.io/shutdown, effect: NoSchedule}]}
    ";
    let node = node_by(&audit(), "ds06", more);
    assert_eq!(node.fenced[0].set_by, FAILED.parse().ok());
}

// Claims.

#[test]
fn what_a_pod_says_of_its_claims_is_kept() {
    let more = "
        Pod web-0:
            spec:
                volumes:
                - {name: data, persistentVolumeClaim: {claimName: data-0, readOnly: true}}
                - {name: again, persistentVolumeClaim: {claimName: data-0}}
                - {name: scratch, ephemeral: {volumeClaimTemplate: {spec: {}}}}
                # Both ways: then it is not its own alone.
                - {name: both, ephemeral: {volumeClaimTemplate: {spec: {}}}}
                - {name: again, persistentVolumeClaim: {claimName: web-0-both}}
                - {name: config, configMap: {name: c}}
                - {name: tmp, emptyDir: {}}
                - {name: host, hostPath: {path: /var/log}}
    ";
    let claims = &gathered(more).pods[0].claims;
    let own = ("web-0-scratch", true);
    assert_eq!(
        claims.iter().map(ClaimFacts::reference).collect::<Vec<_>>(),
        [("data-0", false), ("web-0-both", false), own]
    );
}

#[test]
fn a_claim_is_looked_up_in_the_pods_own_namespace() {
    let more = "
        Pod web-0: {uses: data-0}
        PersistentVolumeClaim data-0: {volume: pv-1}
        PersistentVolumeClaim other/data-0: {volume: pv-local}
        PersistentVolume pv-1: {}
        PersistentVolume pv-local: {on: ds06, spec: {local: {path: /mnt}}}
    ";
    assert_eq!(code(more), "stuck-on-not-ready-node");
}

/// A pod with these PVCs, whose deletion deadline has this minute.
fn pod_with(name: &str, minute: u32, claims: impl IntoIterator<Item = String>) -> Value {
    let claims = claims.into_iter().enumerate();
    let volumes = claims.map(|(number, claim)| {
        let source = json!({"claimName": claim});
        json!({"name": format!("v{number}"), "persistentVolumeClaim": source})
    });
    let said =
        json!({"overdue": 7_200 - 60 * minute, "spec": {"volumes": volumes.collect::<Vec<_>>()}});
    objects(&json!({ format!("Pod {name}"): said })).remove(0)
}

/// However a pod's author spells the names of PVCs, and however many there are: they cause no error
/// of the run and keep no other pod.
#[test]
fn claims_are_looked_up_as_long_as_they_can_be_and_are_not_too_many() {
    let saved = cluster(
        "PersistentVolumeClaim saved: {volume: pv-1}\nNamespace other: {}\nPod other/web: {uses: other-0}",
    );
    let spelled = ["..", ".", "a/b", "a?b", "A", "a%2f", &"a".repeat(300)];
    let spelled = spelled
        .iter()
        .zip('a'..)
        .map(|(claim, name)| pod_with(&format!("named-{name}"), 0, [(*claim).to_owned()]));
    let many = [64, 65, 8_000].map(|count: u32| {
        pod_with(
            &format!("of-{count}"),
            1,
            (0..count).map(|claim| format!("of-{count}-{claim}")),
        )
    });
    // Together with the 64 PVCs of the other pod, these are one more than a namespace's share. All
    // pods use the first PVC.
    let crowd = (0..13).map(|pod| {
        let own = if pod < 12 { 48 } else { 1 };
        let own = (0..own).map(move |claim| format!("crowd-{pod}-{claim}"));
        pod_with(
            &format!("crowd-{pod}"),
            2 + pod,
            own.chain(["crowd-0-0".to_owned()]),
        )
    });
    let pods = spelled.chain(many).chain(crowd);
    let text = list(saved.into_iter().chain(pods));
    expect![[r#"
        named-a volume-unverified ..
        named-b volume-unverified .
        named-c volume-unverified a/b
        named-d volume-unverified a?b
        named-e volume-unverified A
        named-f volume-unverified a%2f
        named-g volume-unverified aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        of-64 stuck-on-not-ready-node
        of-65 volume-unverified *
        of-8000 volume-unverified *
        crowd-0 stuck-on-not-ready-node
        crowd-1 stuck-on-not-ready-node
        crowd-2 stuck-on-not-ready-node
        crowd-3 stuck-on-not-ready-node
        web stuck-on-not-ready-node
        crowd-4 stuck-on-not-ready-node
        crowd-5 stuck-on-not-ready-node
        crowd-6 stuck-on-not-ready-node
        crowd-7 stuck-on-not-ready-node
        crowd-8 stuck-on-not-ready-node
        crowd-9 stuck-on-not-ready-node
        crowd-10 stuck-on-not-ready-node
        crowd-11 stuck-on-not-ready-node
        crowd-12 volume-unverified *
        lacks: pv
    "#]].assert_eq(&verdicts_of(&text));
    let claims = gathered_of(&text)
        .pods
        .into_iter()
        .flat_map(|pod| pod.claims);
    let limits = claims.filter_map(|claim| match claim.state {
        Some(ClaimState::Unread(Unread(why))) if claim.name == "*" => Some(why),
        _ => None,
    });
    let limits = limits
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect::<Vec<_>>();
    expect![[r#"
        its namespace has more than 640 PVCs to look up, the limit per namespace and run
        its pod uses more than 64, and no more of a pod are looked up"#]]
    .assert_eq(&limits.join("\n"));
}

#[test]
fn the_workload_above_an_owner_is_known_by_its_name() {
    check_each(
        &expect![[r#"
            a version of a Deployment: ReplicaSet web-7c9d pod-template-hash: 7c9d
                = Deployment/web
            without its label: ReplicaSet web-7c9d
                = ReplicaSet/web-7c9d
            of a CronJob: Job backup-29412360
                = CronJob/backup
            by another number: Job backup-2026
                = Job/backup-2026
            by no number: Job backup-2941236o
                = Job/backup-2941236o
            another kind: StatefulSet db-29412360
                = StatefulSet/db-29412360
        "#]],
        |case| {
            let mut words = case.splitn(3, ' ');
            let mut word = || words.next().unwrap_or_default();
            let (kind, name, labels) = (word(), word(), word());
            let more = format!(
                "
            Pod a:
                metadata:
                    ownerReferences: [{{apiVersion: x/v1, kind: {kind}, name: {name}, uid: o, controller: true}}]
                    labels: {{{labels}}}
            "
            );
            let owner = gathered(&more).pods[0].workload.clone();
            let owner = owner.expect("it has an owner");
            format!("{}/{}", owner.kind, owner.name)
        },
    );
}

/// The PVC of the pod, after it was looked up.
fn looked_up(more: &str) -> ClaimFacts {
    gathered(more).pods.remove(0).claims.remove(0)
}

/// What happens to a PVC of `pod` when the pod is deleted, by the default settings.
fn goes(facts: &ClusterFacts, pod: &PodFacts, claim: &ClaimFacts) -> DeletedWithPod {
    PodContext::of(facts, &audit().policy, pod).goes(claim)
}

/// Whether the PVC of the first pod is deleted with the pod.
fn going(more: &str) -> String {
    let Gathered { facts, pods, .. } = gathered(more);
    match goes(&facts, &pods[0], &pods[0].claims[0]) {
        DeletedWithPod::MayBeWanted(_) => "MayBeWanted".to_owned(),
        goes => format!("{goes:?}"),
    }
}

/// Only this test expects the sentences. The other tests expect values.
#[test]
fn each_cause_is_said_in_words() {
    const DELETED: &str = "
        Pod web-0: {uses: data}
        PersistentVolumeClaim data: {volume: pv-1, metadata: {deletionTimestamp: '2026-01-10T00:00:00Z'}}
        PersistentVolume pv-1: {}
        StatefulSet web: {}
    ";
    let causes = |base: &str, more: &str| {
        let described = with(
            with(yaml(CLUSTER), yaml(base)),
            yaml(&format!("{{{more}}}")),
        );
        let Gathered { facts, pods, .. } = gathered_of(&list(objects(&described)));
        let errors = facts.errors.iter().map(|error| error.cause.clone());
        let claims = pods
            .iter()
            .flat_map(|pod| pod.claims.iter().map(move |claim| (pod, claim)));
        let claims = claims.flat_map(|(pod, claim)| {
            let unread = match &claim.state {
                Some(ClaimState::Unread(Unread(why))) => Some(why.clone()),
                _ => None,
            };
            let wanted = match goes(&facts, pod, claim) {
                DeletedWithPod::MayBeWanted(why) => Some(why),
                _ => None,
            };
            unread.into_iter().chain(wanted)
        });
        let causes = errors.chain(claims).collect::<Vec<_>>();
        causes.join("\n")
    };
    check_each(
        &expect![[r#"
            a pod of another type: Pod web-0: {spec: {nodeName: 5}}
                = a field has an unexpected type
            a pod without a UID: Pod web-0: {metadata: {uid: ''}}
                = metadata.uid is missing
            PVCs are not in the file: Pod web-0: {uses: data}
                = the file has no persistentvolumeclaims: they were not saved, or there are none
            a malformed PVC: Pod web-0: {uses: data}, PersistentVolumeClaim data: {spec: {volumeName: 5}}
                = a field has an unexpected type
                = the snapshot's PersistentVolumeClaim could not be read: a field has an unexpected type
            a name that no PVC can have: Pod web-0: {uses: a/b}
                = no PVC can have this name
        "#]],
        |more| causes("{}", more),
    );
    check_each(
        &expect![[r#"
            its set wants it:
                = it was deleted at 2026-01-10T00:00:00Z, before its node became NotReady, and goes with its last pod
            no set controls it: Pod web-0: {metadata: {ownerReferences: null}}
                = it was deleted at 2026-01-10T00:00:00Z, before its node became NotReady, and goes with its last pod
            sets are not in the file: StatefulSet web: null
                = it was deleted at 2026-01-10T00:00:00Z, before its node became NotReady, and goes with its last pod
        "#]],
        |more| causes(DELETED, more),
    );
}

#[test]
fn a_claim_is_the_pods_own_by_volume_name_and_owner() {
    for (uid, owned) in [("uid-data-web-0", "Ephemeral"), ("uid-before", "No")] {
        let more = format!(
            "
            Pod web-0: {{spec: {{volumes: [{{name: scratch, ephemeral: {{volumeClaimTemplate: {{spec: {{}}}}}}}}]}}}}
            PersistentVolumeClaim web-0-scratch:
                volume: pv-1
                metadata: {{ownerReferences: [{{apiVersion: v1, kind: Pod, name: web-0, uid: {uid}, controller: true}}]}}
            PersistentVolume pv-1: {{on: ds06, spec: {{local: {{path: /mnt}}}}}}
            "
        );
        assert_eq!(going(&more), owned);
    }
}

/// With `whenScaled: Delete`, a `StatefulSet` that is scaled down makes its pod the owner of the
/// PVCs.
#[test]
fn a_claim_that_the_pod_owns_is_wanted_again_where_its_set_wants_the_pod_or_may() {
    check_each(
        &expect![[r#"
            scaled down: StatefulSet web: {spec: {replicas: 1}}
                = Unwanted(Set)
            gone: StatefulSet other: {spec: {replicas: 1}}
                = Unwanted(Set)
            its set was made anew: {StatefulSet web: {spec: {replicas: 1}}, Pod web-1: {metadata: {ownerReferences: null}}}
                = MayBeWanted
            another set of its name wants it: StatefulSet web: {spec: {replicas: 2}, metadata: {uid: another}}
                = MayBeWanted
            another set of its name does not: StatefulSet web: {spec: {replicas: 1}, metadata: {uid: another}}
                = Unwanted(Set)
            its first ordinal was moved: StatefulSet web: {spec: {replicas: 2, ordinals: {start: 2}}}
                = Unwanted(Set)
            its first ordinal is its own: StatefulSet web: {spec: {replicas: 1, ordinals: {start: 1}}}
                = MayBeWanted
            scaled up again: StatefulSet web: {spec: {replicas: 2}}
                = MayBeWanted
            not saved: {}
                = MayBeWanted
            one that could not be read may be it: {StatefulSet other: {spec: {replicas: 1}}, StatefulSet bad: {metadata: {name: 1}}}
                = MayBeWanted
        "#]],
        |set| {
            let owner =
                "{apiVersion: v1, kind: Pod, name: web-1, uid: uid-data-web-1, controller: true}";
            let described = format!(
                "
            Pod web-1: {{uses: data-web-1}}
            PersistentVolumeClaim data-web-1: {{volume: pv-1, metadata: {{ownerReferences: [{owner}]}}}}
            PersistentVolume pv-1: {{}}
            "
            );
            let described = with(yaml(&described), yaml(set)).to_string();
            going(&described)
        },
    );
}

/// What the objects of a deleted PVC say. The node is NotReady since 02:30; it is 03:00.
#[test]
fn a_deleted_claim_is_given_up_only_after_the_failure_and_if_nothing_else_holds_it() {
    check_each(
        &expect![[r#"
            weeks ago: metadata: {deletionTimestamp: '2026-01-10T00:00:00Z'}
                = MayBeWanted
            after the failure: metadata: {deletionTimestamp: '2026-01-31T02:40:00Z'}
                = GivenUp(2026-01-31T02:50:00Z)
            held as every PVC: metadata: {deletionTimestamp: '2026-01-31T02:40:00Z', finalizers: [kubernetes.io/pvc-protection]}
                = GivenUp(2026-01-31T02:50:00Z)
            held by another program too: metadata: {deletionTimestamp: '2026-01-31T02:40:00Z', finalizers: [kubernetes.io/pvc-protection, example.com/backup]}
                = MayBeWanted
            weeks ago, on a volume that stays: metadata: {deletionTimestamp: '2026-01-10T00:00:00Z'}}, PersistentVolume pv-1: {spec: {persistentVolumeReclaimPolicy: Retain}
                = Retained
            weeks ago, in a namespace that goes too: metadata: {deletionTimestamp: '2026-01-10T00:00:00Z'}}, Namespace data: {metadata: {deletionTimestamp: '2026-01-10T00:00:00Z'}
                = Unwanted(Namespace)
            weeks ago, and no set wants the pod: metadata: {deletionTimestamp: '2026-01-10T00:00:00Z'}}, StatefulSet web: {spec: {replicas: 1}
                = MayBeWanted
        "#]],
        |more| {
            let described = "
            Pod web-1: {uses: data-web-1}
            PersistentVolumeClaim data-web-1: {volume: pv-1}
            PersistentVolume pv-1: {}
            StatefulSet web: {}
            ";
            let more = format!("{{PersistentVolumeClaim data-web-1: {{{more}}}}}");
            going(&with(yaml(described), yaml(&more)).to_string())
        },
    );
}

/// The holder of a Lease is alive: the node, its host, or a pod on the node in the Lease's own
/// namespace.
#[test]
fn the_holder_of_another_lease_is_a_node_or_a_pod_on_it() {
    // Each row has the Lease's namespace and its holder.
    check_each(
        &expect![[r#"
            the pod: data a
                = kubelet-alive
            with more: data a_1_2
                = kubelet-alive
            in another namespace: kube-system a
                = stuck-on-not-ready-node
            with more, but not after a _: data a-1
                = stuck-on-not-ready-node
            in capitals: data A
                = stuck-on-not-ready-node
            a pod that runs beside it: kube-system leader
                = kubelet-alive
            a pod that could not be read: kube-system unreadable
                = kubelet-alive
            the node: x ds06
                = kubelet-alive
            the node in capitals, with more: x DS06_1
                = kubelet-alive
            only at the end: x 1_ds06
                = stuck-on-not-ready-node
            only the beginning: x ds0
                = stuck-on-not-ready-node
        "#]],
        |lease| {
            let (namespace, holder) = lease.split_once(' ').expect("two words");
            let more = format!(
                "
            Pod a: {{}}
            Pod kube-system/leader: {{metadata: {{deletionTimestamp: null}}}}
            Pod kube-system/unreadable: {{status: {{phase: 5}}}}
            Namespace kube-system: {{}}
            Lease l:
                metadata: {{namespace: {namespace}}}
                spec: {{holderIdentity: {holder}, renewTime: '2026-01-31T02:59:00Z'}}
            "
            );
            code(&more).to_owned()
        },
    );
    let elsewhere = "
            Pod a: {}
            Lease l:
                metadata: {namespace: x, labels: {apiserver.kubernetes.io/identity: kube-apiserver, kubernetes.io/hostname: ds06}}
                spec: {renewTime: '2026-01-31T02:59:00Z'}
    ";
    assert_eq!(code(elsewhere), "stuck-on-not-ready-node");
}

#[test]
fn a_program_in_a_terminating_pod_shows_life_by_its_own_entry() {
    check_each(
        &expect![[r#"
            in a pod that goes: Patroni
                = kubelet-alive
            of another name: Patroni-2
                = stuck-on-not-ready-node
            in a pod that stays: Patroni, deletionTimestamp: null
                = stuck-on-not-ready-node
        "#]],
        |program| {
            let (manager, more) = program.split_once(", ").unwrap_or((program, ""));
            let more = format!(
                "
            Pod a: {{}}
            Pod b: {{metadata: {{managedFields: [{{manager: {manager}, time: '2026-01-31T02:59:00Z'}}], {more}}}}}
            "
            );
            code(&more).to_owned()
        },
    );
}

#[test]
fn a_disk_of_one_machine_is_shared_where_nothing_attaches_it() {
    // Each row has the volume, and the objects besides a driver without an attach step.
    check_each(
        &expect![[r#"
            ext4: csi: {driver: d, fsType: ext4}
                = shared-disk
            xfs: csi: {driver: d, fsType: xfs}
                = shared-disk
            no type: csi: {driver: d}
                = stuck-on-not-ready-node
            a share with ext4: csi: {driver: d, fsType: ext4}, accessModes: [ReadWriteMany]
                = stuck-on-not-ready-node
            one pod: csi: {driver: d}, accessModes: [ReadWriteOncePod]
                = shared-disk
            raw: csi: {driver: d}, volumeMode: Block
                = shared-disk
            read-only: csi: {driver: d, fsType: ext4, readOnly: true}
                = stuck-on-not-ready-node
            only read: csi: {driver: d, fsType: ext4}, accessModes: [ReadOnlyMany]
                = stuck-on-not-ready-node
            of a driver that does not say: csi: {driver: silent, fsType: ext4}
                = stuck-on-not-ready-node
            of a driver that is not there: csi: {driver: absent, fsType: ext4}
                = stuck-on-not-ready-node
            attached here: csi: {driver: d, fsType: ext4}; ds06
                = stuck-on-not-ready-node
            attached elsewhere: csi: {driver: d, fsType: ext4}; ds05
                = shared-disk
        "#]],
        |volume| {
            let (volume, node) = volume.split_once("; ").unwrap_or((volume, "none"));
            let more = format!(
                "
            Pod web-0: {{uses: c}}
            PersistentVolumeClaim c: {{volume: pv-1}}
            PersistentVolume pv-1: {{spec: {{{volume}}}}}
            CSIDriver d: {{spec: {{attachRequired: false}}}}
            CSIDriver silent: {{}}
            VolumeAttachment x: {{spec: {{nodeName: {node}, source: {{persistentVolumeName: pv-1}}}}}}
            "
            );
            code(&more).to_owned()
        },
    );
}

/// A file whose objects tell when it was taken has a clock, which Ready nodes may contradict.
#[test]
fn the_clock_is_compared_with_up_to_three_living_nodes() {
    // Each row has the age of the renewal by each Ready node, in seconds.
    check_each(
        &expect![[r#"
            the first: 299 1200
                = false
            exactly: 300 1200
                = true
            the third: 1200 1200 299
                = false
            the fourth is not asked: 1200 1200 1200 3
                = true
            one that has no lease is not counted: - 1200 1200 3
                = false
            none has a lease: - -
                = false
            ahead: -3600 1200
                = false
            a fresh stamp alone: stamped
                = true
            a leaf node is not asked: leaf 1200
                = true
        "#]],
        |ages| {
            let now = NOW.parse::<Timestamp>().expect("a moment");
            let nodes = ages.split(' ').enumerate().map(|(number, age)| {
                let said = age.parse().unwrap_or(if age == "leaf" { 3 } else { 1200 });
                let said = now - jiff::SignedDuration::from_secs(said);
                let stamp = if age == "stamped" { now } else { said };
                let label = if age == "leaf" { "type: kwok" } else { "" };
                let lease = if age == "-" {
                    "null".to_owned()
                } else {
                    format!(
                        "{{metadata: {{managedFields: [{{time: '{stamp}', fieldsV1: {{'f:spec': {{'f:renewTime': {{}}}}}}}}]}}, spec: {{renewTime: '{said}'}}}}"
                    )
                };
                format!("Node m{number}: {{ready: 'True', metadata: {{labels: {{{label}}}}}}}\nLease m{number}: {lease}\n")
            });
            let more = format!(
                "Node ds04: null\nNode ds05: null\nPod a: {{}}\nLease z: {{metadata: {{namespace: x, managedFields: [{{time: '{NOW}'}}]}}}}\n{}",
                nodes.collect::<String>()
            );
            let gathered = gathered_by(&audit(), None, &list(cluster(&more)));
            gathered
                .expect("a snapshot")
                .facts
                .clock
                .is_some()
                .to_string()
        },
    );
}

#[test]
fn disks_that_two_machines_may_write_are_known_by_kind() {
    let pod = |volume: &str| {
        let more = format!("Pod a: {{spec: {{volumes: [{{name: v, {volume}}}]}}}}");
        gathered(&more).pods.remove(0)
    };
    // The result shows the disk that two machines could write, and the code of the reason for a PVC of
    // that kind.
    check_each(
        &expect![[r#"
            a claim has rules of its own: persistentVolumeClaim: {claimName: c}
                = None stuck-on-not-ready-node
            iSCSI: iscsi: {lun: 0}
                = Some("its volume v is iSCSI") shared-disk
            Fibre Channel: fc: {readOnly: false}
                = Some("its volume v is Fibre Channel") shared-disk
            iSCSI that is read: iscsi: {readOnly: true}
                = None stuck-on-not-ready-node
            Fibre Channel that is read: fc: {readOnly: true}
                = None stuck-on-not-ready-node
            flexVolume: flexVolume: {driver: example.org/lun}
                = Some("its volume v is a flexVolume") shared-disk
            Ceph: rbd: {}
                = None stuck-on-not-ready-node
        "#]],
        |volume| {
            let more = format!(
                "
            Pod web-0: {{uses: c}}
            PersistentVolumeClaim c: {{volume: pv-1}}
            PersistentVolume pv-1: {{spec: {{{volume}}}}}
            "
            );
            let pod = pod(volume);
            format!("{:?} {}", pod.own_disk, code(&more))
        },
    );
}

#[test]
fn only_a_raw_disk_of_many_writers_is_shared() {
    check_each(
        &expect![[r#"
            both: accessModes: [ReadWriteOnce, ReadWriteMany], volumeMode: Block
                = true
            a file system: accessModes: [ReadWriteMany], volumeMode: Filesystem
                = false
            by default: accessModes: [ReadWriteMany], volumeMode: null
                = false
            one writer: accessModes: [ReadWriteOnce], volumeMode: Block
                = false
            nothing said: accessModes: null, volumeMode: Block
                = false
        "#]],
        |spec| {
            let more = format!(
                "
            Pod web-0: {{uses: data-0}}
            PersistentVolumeClaim data-0: {{volume: pv-1, spec: {{{spec}}}}}
            PersistentVolume pv-1: {{}}
            "
            );
            let state = looked_up(&more).state;
            let Some(ClaimState::Bound(bound)) = state else {
                panic!("{state:?}")
            };
            bound.shared_disk.to_string()
        },
    );
}

#[test]
fn where_a_volume_is_comes_from_its_driver_and_affinity() {
    // Each row has the volume, and one more node for the cluster.
    check_each(
        &expect![[r#"
            Longhorn's: csi: {driver: driver.longhorn.io, volumeAttributes: {dataLocality: strict-local}}
                = local-volume
            Longhorn's, elsewhere too: csi: {driver: driver.longhorn.io, volumeAttributes: {dataLocality: best-effort}}
                = stuck-on-not-ready-node
            another driver's: csi: {driver: another, volumeAttributes: {dataLocality: strict-local}}
                = stuck-on-not-ready-node
            no node has it: TERMS [{matchExpressions: [{key: disks, operator: In, values: ['4']}]}]
                = local-volume
            its own node alone has it: TERMS [{matchExpressions: [{key: disks, operator: In, values: ['4']}]}]; Node ds06: {metadata: {labels: {disks: '4'}}}
                = local-volume
            another has it, NotReady as it is: TERMS [{matchExpressions: [{key: disks, operator: In, values: ['4']}]}]; Node ds07: {metadata: {labels: {disks: '4'}}}
                = stuck-on-not-ready-node
            a leaf node is no place to start: TERMS [{matchExpressions: [{key: disks, operator: In, values: ['4']}]}]; Node vk: {metadata: {labels: {disks: '4', type: virtual-kubelet}}}
                = local-volume
            more than three: TERMS [{matchExpressions: [{key: disks, operator: Gt, values: ['3']}]}]; Node ds07: {metadata: {labels: {disks: '4'}}}
                = stuck-on-not-ready-node
            more than four: TERMS [{matchExpressions: [{key: disks, operator: Gt, values: ['4']}]}]; Node ds07: {metadata: {labels: {disks: '4'}}}
                = local-volume
            most nodes: TERMS [{matchExpressions: [{key: disks, operator: DoesNotExist, values: []}]}]
                = stuck-on-not-ready-node
            by field: TERMS [{matchFields: [{key: metadata.name, operator: In, values: [ds06]}]}]
                = volume-unverified
            the one that could not be read may have it: TERMS [{matchExpressions: [{key: disks, operator: In, values: ['4']}]}]; Node bad: {metadata: {labels: 1}}
                = volume-unverified
        "#]],
        |case| {
            let (spec, more) = case.split_once("; ").unwrap_or((case, ""));
            let spec = match spec.strip_prefix("TERMS ") {
                Some(terms) => {
                    format!("nodeAffinity: {{required: {{nodeSelectorTerms: {terms}}}}}")
                }
                None => spec.to_owned(),
            };
            let more = format!(
                "Pod web-0: {{uses: data-0}}
PersistentVolumeClaim data-0: {{volume: pv-1}}
PersistentVolume pv-1: {{spec: {{{spec}}}}}
{more}"
            );
            code(&more).to_owned()
        },
    );
}

// Attachments.

#[test]
fn attachments_are_reported_by_node() {
    let more = "
        Pod a: {}
        VolumeAttachment y: {spec: {nodeName: ds06, attacher: ceph, source: {persistentVolumeName: pv-2}}}
        VolumeAttachment x: {spec: {nodeName: ds06, attacher: ceph, source: {persistentVolumeName: pv-1}}}
        VolumeAttachment z: {spec: {nodeName: ds04, attacher: ceph, source: {persistentVolumeName: pv-3}}}
    ";
    let attachments = gathered(more).facts.attachments;
    let names = |node: &str| {
        let names = attachments[node].iter().map(|it| it.name.as_str());
        names.collect::<Vec<_>>()
    };
    assert_eq!((names("ds06"), names("ds04")), (vec!["x", "y"], vec!["z"]));
}

/// kubectl also shows the last condition.
#[test]
fn the_last_ready_condition_counts() {
    let says = |statuses: [&str; 2]| {
        let conditions = statuses
            .map(|status| {
                format!("{{type: Ready, status: '{status}', lastTransitionTime: '{FAILED}'}}")
            })
            .join(", ");
        ds06(&format!("    status: {{conditions: [{conditions}]}}")).ready
    };
    for (statuses, last) in [
        (["True", "Unknown"], Ready::Unknown),
        (["False", "Unknown"], Ready::Unknown),
        (["Unknown", "False"], Ready::False),
    ] {
        assert_eq!(says(statuses), last, "{statuses:?}");
    }
    // A run does not read a Ready node in the same way as a NotReady node.
    let conditions = ["Unknown", "True"].map(|it| format!("{{type: Ready, status: '{it}'}}"));
    let more = format!(
        "Pod a: {{}}\nNode ds06: {{status: {{conditions: [{}]}}}}",
        conditions.join(", ")
    );
    assert_eq!(code(&more), "node-ready");
}

#[test]
fn a_node_has_the_control_plane_role_by_either_key() {
    for (key, expected) in [
        ("node-role.kubernetes.io/control-plane", true),
        ("node-role.kubernetes.io/master", true),
        ("node-role.kubernetes.io/worker", false),
    ] {
        let labelled = ds06(&format!("    metadata: {{labels: {{{key}: ''}}}}"));
        let tainted = ds06(&format!(
            "    spec: {{taints: [{{key: {key}, effect: NoSchedule}}]}}"
        ));
        assert_eq!(labelled.control_plane, expected, "{key}");
        assert_eq!(!tainted.open, expected, "{key}");
    }
}
