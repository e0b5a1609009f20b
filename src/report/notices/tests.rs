//! Tests of each notice, at its boundaries.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::{Expect, expect};
use pod_reaper_test_support::simulated::{Objects, Server};
use regex::Regex;
use serde_json::{Value, json};

use super::*;
use crate::{
    cluster::Cluster,
    exit::Exit,
    limits::Limits,
    report::{Report, samples::*},
    selector::{NamespaceFilter, Target},
    settings::Mode,
    stop::Stop,
};

/// Settings whose every notice is about the cluster.
fn live() -> Settings {
    run(Mode::ClientDryRun, Target::default())
}

fn told(settings: &Settings, objects: &[Value]) -> Report {
    report(settings, objects, &[])
}

fn shown(report: &Report) -> String {
    let line = |Notice {
                    code,
                    node,
                    count,
                    detail,
                }: &Notice| {
        format!(
            "{code} {} {count}: {detail}\n",
            node.as_deref().unwrap_or("-")
        )
    };
    report.notices.iter().map(line).collect()
}

/// The codes alone.
fn codes(settings: &Settings, objects: &[Value]) -> Vec<&'static str> {
    told(settings, objects)
        .notices
        .iter()
        .map(|notice| notice.code.as_str())
        .collect()
}

#[track_caller]
fn check(settings: &Settings, objects: &[Value], expected: &Expect) {
    let report = told(settings, objects);
    expected.assert_eq(&shown(&report));
    assert_eq!(report.exit, Exit::Done, "no notice changes the exit code");
}

/// A pod that nobody has asked to go.
fn running(name: &str, node: &str, owner: &str, tolerations: Value) -> Value {
    let mut running = pod("shop", name, node);
    running["metadata"]
        .as_object_mut()
        .expect("metadata")
        .remove("deletionTimestamp");
    running["metadata"]["ownerReferences"] =
        json!([{"kind": owner, "name": "own", "controller": true}]);
    running["spec"]["tolerations"] = tolerations;
    running["status"] = json!({"phase": "Running"});
    running
}

fn for_ever() -> Value {
    json!([{"operator": "Exists"}])
}

fn seconds(key: &str, seconds: i64) -> Value {
    json!([{"key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": seconds}])
}

/// A node that is not Ready since then.
fn failed(name: &str, ready: &str, since: &str) -> Value {
    let mut node = node(name, ready);
    node["status"]["conditions"][0]["lastTransitionTime"] = json!(since);
    node
}

fn with_node(dead: Value, pods: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let base = [node("ds05", "True"), dead, namespace("shop"), lease("ds06")];
    base.into_iter().chain(pods).collect()
}

fn on_dead_node(pods: impl IntoIterator<Item = Value>) -> Vec<Value> {
    with_node(node("ds06", "Unknown"), pods)
}

#[test]
fn pods_that_are_never_evicted_are_named_with_the_reason() {
    let mut mirror = running("etcd-ds06", "ds06", "Node", for_ever());
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    let mut done = running("done", "ds06", "Job", for_ever());
    done["status"]["phase"] = json!("Succeeded");
    let mut version = running("web-1", "ds06", "ReplicaSet", for_ever());
    version["metadata"]["ownerReferences"][0]["name"] = json!("web-7c9d");
    version["metadata"]["labels"] = json!({"pod-template-hash": "7c9d"});
    let mut bare = running("bare", "ds06", "", seconds("unreachable", 60));
    bare["metadata"]["ownerReferences"] = json!([]);
    let pods = [
        version,
        running("db-0", "ds06", "StatefulSet", for_ever()),
        bare,
        running("exporter-a", "ds06", "DaemonSet", for_ever()),
        running("exporter-b", "ds06", "DaemonSet", for_ever()),
        mirror,
        done,
        running("elsewhere", "ds05", "StatefulSet", for_ever()),
        pod("shop", "gone-0", "ds06"),
    ];
    check(
        &live(),
        &on_dead_node(pods),
        &expect![[r#"
            never-evicted ds06 2: Not evicted from NotReady node ds06: shop/db-0 of StatefulSet/own, shop/web-1 of Deployment/web. Each tolerates such a node without a time limit, so Kubernetes never evicts it. Each is down, unless the node is only cut off. Its machine was last heard 2h ago (lease). To have it moved, delete it without --force: the next runs judge it like any other.
            never-evicted ds06 1: Not evicted from NotReady node ds06: shop/bare. Each one's toleration time is over, but Kubernetes has not evicted it: Kubernetes holds back while many nodes are not Ready at once, or its controller manager does not work. Each is down, unless the node is only cut off. Its machine was last heard 2h ago (lease).
            stays-with-node - 3: Pods that belong to their NotReady node, of DaemonSets or static, stay there, as expected: ds06 (3).
        "#]],
    );
}

#[test]
fn pods_that_belong_to_their_node_are_one_line_for_all_nodes() {
    let daemon = |node: &str| running(&format!("exporter-{node}"), node, "DaemonSet", for_ever());
    let objects = [
        node("ds04", "True"),
        node("ds05", "False"),
        node("ds06", "Unknown"),
        namespace("shop"),
    ];
    let objects = objects
        .into_iter()
        .chain([daemon("ds04"), daemon("ds05"), daemon("ds06")]);
    check(
        &live(),
        &objects.collect::<Vec<_>>(),
        &expect![[r#"
            stays-with-node - 2: Pods that belong to their NotReady node, of DaemonSets or static, stay there, as expected: ds05 (1), ds06 (1).
        "#]],
    );
}

#[test]
fn an_eviction_that_is_not_due_yet_is_not_told_of() {
    // Judged at three.
    for (name, since, tolerations, tells) in [
        ("by default, 5 min 50 s", "02:54:10", json!([]), true),
        ("a second before", "02:54:11", json!([]), false),
        ("an hour", "01:59:10", seconds("unreachable", 3600), true),
        (
            "a second before",
            "01:59:11",
            seconds("unreachable", 3600),
            false,
        ),
        (
            "of another taint, so by default",
            "02:54:10",
            seconds("not-ready", 3600),
            true,
        ),
        (
            "at once, but not told of before others",
            "02:54:11",
            seconds("unreachable", 0),
            false,
        ),
        ("never, and told of as others", "02:54:10", for_ever(), true),
        ("a second before", "02:54:11", for_ever(), false),
    ] {
        let dead = failed("ds06", "Unknown", &format!("2026-01-31T{since}Z"));
        let objects = with_node(dead, [running("db-0", "ds06", "StatefulSet", tolerations)]);
        let expected: &[_] = if tells { &["never-evicted"] } else { &[] };
        assert_eq!(codes(&live(), &objects), expected, "{name}");
    }
    // Of a kubelet that speaks, the other toleration counts.
    let dead = failed("ds06", "False", "2026-01-31T02:30:00Z");
    let hour = |key| running("db-0", "ds06", "StatefulSet", seconds(key, 3600));
    assert_eq!(
        codes(&live(), &with_node(dead.clone(), [hour("not-ready")])),
        [""; 0]
    );
    assert_eq!(
        codes(&live(), &with_node(dead, [hour("unreachable")])),
        ["never-evicted"]
    );
}

#[test]
fn pods_of_a_leaf_node_or_of_another_namespace_are_not_told_of() {
    let pods = || [running("db-0", "ds06", "StatefulSet", for_ever())];
    let mut leaf = node("ds06", "Unknown");
    leaf["metadata"]["labels"] = json!({"kosmos.io/node": "true"});
    assert_eq!(codes(&live(), &with_node(leaf, pods())), [""; 0]);
    let exclude = Some(Regex::new("shop").expect("a regex"));
    let namespaces = NamespaceFilter {
        include: None,
        exclude,
    };
    let settings = Settings {
        namespaces,
        ..live()
    };
    let objects = [on_dead_node(pods()), vec![namespace("other")]].concat();
    assert_eq!(codes(&settings, &objects), [""; 0]);
}

#[test]
fn where_the_node_lives_its_pods_are_not_said_to_be_down() {
    let mut alive = lease("ds06");
    alive["spec"] = json!({"renewTime": "2026-01-31T02:59:56Z", "leaseDurationSeconds": 40});
    let pods = [running("db-0", "ds06", "StatefulSet", for_ever()), alive];
    let report = told(&live(), &with_node(node("ds06", "False"), pods));
    assert!(
        shown(&report).contains("Each may still be running"),
        "{}",
        shown(&report)
    );
}

/// Its deletion should have been over two hours and a minute before three: twelve thresholds and a minute.
fn stuck(name: &str) -> Value {
    due(pod("shop", name, "ds06"), "2026-01-31T00:59:00Z")
}

#[test]
fn a_wait_is_long_after_twelve_thresholds() {
    let flapping = failed("ds06", "Unknown", "2026-01-31T02:57:00Z");
    let objects = |deadline: &str| {
        with_node(
            flapping.clone(),
            [due(
                pod("shop", "db-0", "ds06"),
                &format!("2026-01-31T{deadline}Z"),
            )],
        )
    };
    let with = |reap: i64, node: i64| {
        let mut settings = live();
        settings.policy.reap_older_than = SignedDuration::from_mins(reap);
        settings.policy.node_not_ready_for = SignedDuration::from_mins(node);
        settings
    };
    for (name, settings, deadline, tells) in [
        ("12 times 10 min", with(10, 10), "01:00:00", false),
        ("and a second", with(10, 10), "00:59:59", true),
        ("the longer one counts", with(1, 10), "00:59:59", true),
        ("the longer one counts", with(1, 10), "01:00:00", false),
        ("the longer one counts", with(10, 5), "01:00:00", false),
    ] {
        let expected: &[_] = if tells { &["long-wait"] } else { &[] };
        assert_eq!(
            codes(&settings, &objects(deadline)),
            expected,
            "{name}, {deadline}"
        );
    }
    // With none set, a pod waits for a node that does not say since when, say.
    let mut timeless = node("ds06", "Unknown");
    timeless["status"]["conditions"][0]["lastTransitionTime"] = Value::Null;
    let objects = |deadline: &str| {
        let deadline = format!("2026-01-31T{deadline}Z");
        with_node(
            timeless.clone(),
            [due(pod("shop", "db-0", "ds06"), &deadline)],
        )
    };
    assert_eq!(codes(&with(0, 0), &objects("02:48:00")), [""; 0]);
    assert_eq!(codes(&with(0, 0), &objects("02:47:59")), ["long-wait"]);
}

#[test]
fn a_long_wait_says_why() {
    let pods = || {
        [
            stuck("db-1"),
            stuck("db-0"),
            due(pod("shop", "db-2", "ds06"), "2026-01-30T22:00:00Z"),
        ]
    };
    let flapping = failed("ds06", "Unknown", "2026-01-31T02:57:00Z");
    check(
        &live(),
        &with_node(flapping, pods()),
        &expect![[r#"
            long-wait ds06 3: Still waiting on node ds06, overdue for up to 5h: shop/db-2, shop/db-0, shop/db-1. The node changes between Ready and NotReady, or they were stuck before it failed. The node has been NotReady for only 3m; --node-not-ready-for is 10m.
        "#]],
    );

    let mut absent = node("ds06", "Unknown");
    absent["status"] = json!({});
    check(
        &live(),
        &with_node(absent, [stuck("db-0")]),
        &expect![[r#"
        long-wait ds06 1: Still waiting on node ds06, overdue for up to 2h 1m: shop/db-0. The node has no Ready condition, so it does not say since when it is not Ready; no run takes them until it does.
    "#]],
    );

    let future = failed("ds06", "Unknown", "2026-02-01T00:00:00Z");
    check(
        &live(),
        &with_node(future, [stuck("db-0")]),
        &expect![[r#"
        long-wait ds06 1: Still waiting on node ds06, overdue for up to 2h 1m: shop/db-0. The node's Ready condition says no time, or one in the future; no run takes them until it does.
    "#]],
    );

    let mut alive = lease("ds06");
    alive["spec"] = json!({"renewTime": "2026-01-31T02:59:56Z", "leaseDurationSeconds": 40});
    check(
        &live(),
        &with_node(
            failed("ds06", "Unknown", "2026-01-31T01:30:00Z"),
            [alive, stuck("db-0")],
        ),
        &expect![[r#"
            long-wait ds06 1: Still waiting on node ds06, overdue for up to 2h 1m: shop/db-0. The node's kubelet renews its lease, but the node's Ready stays Unknown: look at that kubelet.
        "#]],
    );

    let capped = Settings {
        limits: Limits {
            max_deletes: Some(1),
            max_not_ready_percent: 55,
        },
        ..live()
    };
    check(
        &capped,
        &on_dead_node(pods()),
        &expect![[r#"
        long-wait - 2: Still waiting, overdue for up to 2h 1m: shop/db-0, shop/db-1. --max-deletes=1 is fewer than get stuck between two runs: raise it, or run more often.
    "#]],
    );
}

#[test]
fn a_long_wait_with_another_exit_code_says_why_too() {
    let unnamed = |objects: Vec<Value>| {
        objects
            .into_iter()
            .filter(|object| object["metadata"]["name"] != "shop")
            .collect::<Vec<_>>()
    };
    let objects = unnamed(with_node(
        node("ds06", "Unknown"),
        [namespace("other"), stuck("db-0")],
    ));
    let report = told(&live(), &objects);
    expect![[r#"
        long-wait ds06 1: Still waiting on node ds06, overdue for up to 2h 1m: shop/db-0. A fact that the decision needs could not be read: the namespace: it was not in the list.
    "#]].assert_eq(&shown(&report));
    assert_eq!(report.exit, Exit::Incomplete);

    let more = ["ds07", "ds08"].map(|name| node(name, "Unknown"));
    let pods = [
        stuck("db-0"),
        due(pod("shop", "db-1", "ds07"), "2026-01-31T00:00:00Z"),
    ];
    let report = told(&live(), &on_dead_node(more.into_iter().chain(pods)));
    expect![[r#"
        long-wait - 2: Still waiting, overdue for up to 3h: shop/db-1, shop/db-0. The breaker holds every run until enough nodes are Ready: 3 of 4 nodes are NotReady. Find out what these have in common.
    "#]].assert_eq(&shown(&report));
    assert_eq!(report.exit, Exit::Held);
}

fn matching(include: &str) -> Settings {
    let include = Some(Regex::new(include).expect("a regex"));
    Settings {
        namespaces: NamespaceFilter {
            include,
            exclude: None,
        },
        ..live()
    }
}

#[test]
fn a_filter_that_matches_no_namespace_is_told_of() {
    let objects = on_dead_node([namespace("data"), pod("shop", "db-0", "ds06")]);
    check(
        &matching("^shpo$"),
        &objects,
        &expect![[r#"
            no-namespace - 1: Nothing was looked at: no namespace is selected (the cluster has 2; the filter is: matching "^shpo$").
        "#]],
    );
    assert_eq!(codes(&matching("^data$"), &objects), [""; 0]);
    // Which there are is not known.
    let unsaved = objects
        .into_iter()
        .filter(|object| object["kind"] != "Namespace")
        .collect::<Vec<_>>();
    assert_eq!(codes(&matching("^shpo$"), &unsaved), [""; 0]);
}

#[test]
fn a_kind_that_no_pod_has_is_told_of() {
    let with = |kinds: &[&str]| {
        let mut settings = live();
        settings.policy.manual_owner_kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        settings
    };
    let mut of_a_clone_set = pod("shop", "web-0", "ds06");
    of_a_clone_set["metadata"]["ownerReferences"][0]["kind"] = json!("CloneSet");
    let objects = on_dead_node([of_a_clone_set]);
    check(
        &with(&["StatfulSet", "clonesets", "Job", "deployments"]),
        &objects,
        &expect![[r#"
            unknown-kind - 1: --manual-owner-kind names StatfulSet, which is not a built-in kind of Kubernetes, and no judged pod has an owner of it: if it is misspelt, it protects nothing.
        "#]],
    );
    assert_eq!(
        codes(
            &with(&BUILT_IN),
            &on_dead_node([pod("shop", "db-0", "ds06")])
        ),
        [""; 0]
    );
}

#[test]
fn a_snapshot_says_by_which_time_it_is_judged() {
    let objects = on_dead_node([pod("shop", "db-0", "ds06")]);
    check(
        &audit(),
        &objects,
        &expect![[r#"
            time-of-the-file - 1: Judged at 2026-01-31 03:00:00Z, the newest time in the file; what happened later is not known. --now sets another time.
        "#]],
    );
    let Task::Audit { snapshot, .. } = audit().task else {
        panic!("an audit is of a snapshot")
    };
    let now = Some("2026-01-31T03:00:00Z".parse().expect("a moment"));
    let said = Settings {
        task: Task::Audit { snapshot, now },
        ..audit()
    };
    assert_eq!(codes(&said, &objects), [""; 0]);
}

#[test]
fn of_many_names_the_first_are_listed() {
    let names = |count: usize| {
        (0..count)
            .map(|number| number.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(&names(2), NAMES), "0, 1");
    assert_eq!(listed(&names(10), NAMES), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9");
    assert_eq!(
        listed(&names(12), NAMES),
        "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
    );
}

/// Every format tells each notice, and none lets a name from the cluster become markup.
#[test]
fn every_format_tells_each_notice() {
    use crate::report::Render as _;
    let pods = [
        running("<i>0", "ds06", "StatefulSet", for_ever()),
        stuck("db-0"),
    ];
    let mut settings = Settings {
        task: audit().task,
        ..live()
    };
    settings.policy.manual_owner_kinds = vec!["Statful*Set".to_owned()];
    let report = told(
        &settings,
        &with_node(failed("ds06", "Unknown", "2026-01-31T02:50:10Z"), pods),
    );
    let wide = crate::report::text::Screen {
        colour: false,
        columns: 2_000,
    };
    let text = crate::report::text::write(&report.page(), wide);
    let markdown = crate::report::markdown::write(&report.page());
    let html = crate::report::html::write(&report.page());
    for (code, marker) in [
        (NoticeCode::NeverEvicted, "Not evicted from"),
        (NoticeCode::LongWait, "Still waiting"),
        (NoticeCode::UnknownKind, "Statful"),
        (NoticeCode::TimeOfTheFile, "the newest time"),
    ] {
        for page in [&text, &markdown, &html] {
            assert!(
                page.contains(marker) && page.contains(code.as_str()),
                "{code}:\n{page}"
            );
        }
    }
    assert!(
        text.find("WORTH KNOWING") < text.rfind("Exit code"),
        "{text}"
    );
    assert!(
        markdown.contains("<code>shop/&#60;i&#62;0</code>")
            && markdown.contains("<code>Statful&#42;Set"),
        "{markdown}"
    );
    assert!(
        html.contains("shop/&lt;i&gt;0") && !html.contains("<i>0"),
        "{html}"
    );
}

/// What a run on a cluster tells, by a simulated API server.
async fn told_of_cluster(settings: &Settings, objects: &[Value]) -> (Report, usize) {
    let now = "2026-01-31T03:00:00Z".parse().expect("a moment");
    let server = Server::new(Objects::new(now, objects.to_vec()));
    let (_signal, stop) = Stop::manual(std::time::Duration::from_mins(8));
    let cluster = Cluster::new(
        server.client(),
        stop.clone(),
        settings.node_selectors.clone(),
    );
    let report = crate::run::run_on(&cluster, settings, Mode::ClientDryRun, &stop)
        .await
        .expect("a report");
    let requests = server.lock().requests.len();
    (report, requests)
}

#[tokio::test(start_paused = true)]
async fn a_run_tells_the_same_of_a_cluster_as_of_its_snapshot() {
    let daemon = running("exporter", "ds06", "DaemonSet", for_ever());
    let pods = [
        running("db-0", "ds06", "StatefulSet", for_ever()),
        daemon,
        pod("shop", "a-0", "ds06"),
    ];
    let objects = on_dead_node(pods);
    for settings in [live(), matching("^shpo$"), matching("shop")] {
        let snapshot = told(&settings, &objects);
        assert_eq!(
            told_of_cluster(&settings, &objects).await.0.notices,
            snapshot.notices
        );
        assert!(!snapshot.notices.is_empty());
        // Pods of a Ready node that are listed, too, are nobody's business.
        let all = Settings {
            all: true,
            ..settings
        };
        let more = [
            running("b", "ds05", "StatefulSet", for_ever()),
            pod("shop", "c", "ds05"),
        ];
        let objects = [&objects[..], &more].concat();
        assert_eq!(
            told_of_cluster(&all, &objects).await.0.notices,
            snapshot.notices
        );
    }
}

#[tokio::test(start_paused = true)]
async fn where_every_node_is_ready_no_request_is_sent_for_a_notice() {
    let objects = [
        node("ds05", "True"),
        namespace("shop"),
        running("db-0", "ds05", "StatefulSet", for_ever()),
    ];
    let settings = Settings {
        all: false,
        ..matching("^shpo$")
    };
    let (report, requests) = told_of_cluster(&settings, &objects).await;
    assert_eq!((report.notices, requests), (Vec::new(), 1));
}
