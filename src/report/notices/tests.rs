//! Tests of each notice, at its boundaries.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::{Expect, expect};
use pod_reaper_test_support::{
    samples::with,
    simulated::{Objects, Server},
};
use rules::samples::check_each;
use serde_json::{Map, Value};

use super::*;
use crate::{
    cli::Cli,
    cluster::Cluster,
    exit::Exit,
    report::{Report, page::Log, samples::*},
    settings::Settings,
    stop::Stop,
};

/// Reads a case: the options of a client dry run, and objects in the notation of the samples. A
/// dead ds06 and a Ready ds05 are always there. The notation has these short forms besides:
///
/// - `Running NAME`: a pod in `shop` on ds06 that is not Terminating. Its owner is `of` a kind, and
///   it `tolerates` a taint for a number of seconds, or every taint `for ever`.
/// - `Stuck NAME`: a pod in `shop` on ds06 with this deletion deadline.
/// - `Since STATUS`: the time since when the Ready condition of ds06 has this status.
/// - `Watched NAME`: a node with a condition of this kind, which a program wrote before ds06 failed.
/// - `Lease lives`: the kubelet of ds06 renews its lease.
pub fn scene(case: &str) -> (Settings, Vec<Value>) {
    let (options, described) = case.split_once('{').expect("a mapping");
    let mut base = "{Node ds05: {ready: 'True'}, Node ds06: {}, Namespace shop: {}}";
    if described.contains("Node ds04") {
        base = "{Namespace shop: {}}";
    }
    let mut cluster = Value::Object(Map::new());
    let described = yaml(&format!("{{{described}"));
    for (key, mut more) in described.as_object().expect("objects").clone() {
        let mut word = |key: &str| more.as_object_mut().and_then(|more| more.remove(key));
        let (key, base) = match key.split_once(' ') {
            Some(("Running", name)) => {
                let owner = word("of").expect("an owner");
                let tolerated =
                    word("tolerates").map(|words| words.as_str().expect("words").to_owned());
                let tolerates = match tolerated.as_ref().and_then(|words| words.split_once(' ')) {
                    None => String::new(),
                    Some(("for", _)) => "{operator: Exists}".to_owned(),
                    Some((key, seconds)) => format!(
                        "{{key: node.kubernetes.io/{key}, operator: Exists, effect: NoExecute, tolerationSeconds: {seconds}}}"
                    ),
                };
                let running = format!(
                    "
                    metadata: {{deletionTimestamp: null, ownerReferences: [{{apiVersion: apps/v1, kind: {owner}, name: own, controller: true}}]}}
                    spec: {{tolerations: [{tolerates}]}}
                    status: {{phase: Running}}
                    "
                );
                (format!("Pod shop/{name}"), running)
            }
            Some(("Stuck", name)) => {
                let deadline = more.take();
                let stuck = format!("metadata: {{deletionTimestamp: {deadline}}}");
                (format!("Pod shop/{name}"), stuck)
            }
            Some(("Since", status)) => {
                let since = more.take();
                let failed = format!(
                    "status: {{conditions: [{{type: Ready, status: '{status}', lastTransitionTime: {since}}}]}}"
                );
                ("Node ds06".to_owned(), failed)
            }
            Some(("Watched", name)) => {
                let kind = more.take();
                let (ready, since) = match name {
                    "ds05" => ("True", "2026-01-01T00:00:00Z"),
                    _ => ("Unknown", "2026-01-31T01:00:00Z"),
                };
                let watched = format!(
                    "status: {{conditions: [{{type: Ready, status: '{ready}', lastTransitionTime: {since}}}, {{type: {kind}, lastHeartbeatTime: '2026-01-31T00:59:00Z'}}]}}"
                );
                (format!("Node {name}"), watched)
            }
            Some(("Lease", "lives")) => {
                let renewed = "spec: {renewTime: '2026-01-31T02:59:56Z', leaseDurationSeconds: 40}";
                ("Lease ds06".to_owned(), renewed.to_owned())
            }
            _ => {
                cluster[key] = more;
                continue;
            }
        };
        let more = if more.is_null() { yaml("{}") } else { more };
        cluster[key] = with(yaml(&base), more);
    }
    let mode = if options.contains("--snapshot") {
        ""
    } else {
        " --dry-run=client"
    };
    let args = format!("pod-reaper --all{mode} {options}");
    let args = args.split_whitespace().map(Into::into);
    let settings = Settings::from(Cli::try_from_args(args).expect("options"));
    (settings, objects(&with(yaml(base), cluster)))
}

/// Returns the notices of a case, and the exit code if a notice could have changed it.
fn told(case: &str) -> String {
    let (settings, objects) = scene(case);
    shown(&report(&settings, &objects, &[]))
}

fn shown(report: &Report) -> String {
    let line = |NoticeEntry {
                    code,
                    node,
                    count,
                    detail,
                }: &NoticeEntry| {
        format!(
            "{code} {} {count}: {detail}\n",
            node.as_deref().unwrap_or("-")
        )
    };
    let mut lines = report.notices.iter().map(line).collect::<String>();
    if report.exit != Exit::Done {
        lines += &format!("exit: {:?}", report.exit);
    }
    lines
}

pub fn check(cases: &Expect) {
    check_each(cases, told);
}

#[test]
fn pods_that_are_never_evicted_are_named_with_the_reason() {
    check(&expect![[r#"
        each kind: {Running web-1: {of: ReplicaSet, tolerates: for ever, metadata: {labels: {pod-template-hash: 7c9d}, ownerReferences: [{kind: ReplicaSet, name: web-7c9d, controller: true}]}}, Running db-0: {of: StatefulSet, tolerates: for ever}, Running bare: {of: Bare, tolerates: unreachable 60, metadata: {ownerReferences: []}}, Running exporter-a: {of: DaemonSet, tolerates: for ever}, Running exporter-b: {of: DaemonSet, tolerates: for ever}, Running etcd-ds06: {of: Node, tolerates: for ever, metadata: {annotations: {kubernetes.io/config.mirror: x}}}, Running done: {of: Job, tolerates: for ever, status: {phase: Succeeded}}, Running elsewhere: {of: StatefulSet, tolerates: for ever, spec: {nodeName: ds05}}, Pod shop/gone-0: {}}
            = never-evicted ds06 2: Not evicted from NotReady node ds06: shop/db-0 of StatefulSet/own, shop/web-1 of Deployment/web. Each tolerates such a node without a time limit, so Kubernetes never evicts it. Each is down, unless the node is only cut off. Its machine was last heard 2h ago (lease). To have it moved, delete it without --force: the next runs judge it like any other.
            = never-evicted ds06 1: Not evicted from NotReady node ds06: shop/bare. Each one's toleration time is over, but Kubernetes has not evicted it: Kubernetes holds back while many nodes are not Ready at once, or its controller manager does not work. Each is down, unless the node is only cut off. Its machine was last heard 2h ago (lease).
            = stays-with-node - 3: Pods that belong to their NotReady node, of DaemonSets or static, stay there, as expected: ds06 (3).
    "#]]);
}

#[test]
fn pods_that_belong_to_their_node_are_one_line_for_all_nodes() {
    check(&expect![[r#"
        of two nodes: {Node ds04: {ready: 'True'}, Node ds05: {ready: 'False'}, Node ds06: {}, Running exporter-ds04: {of: DaemonSet, tolerates: for ever, spec: {nodeName: ds04}}, Running exporter-ds05: {of: DaemonSet, tolerates: for ever, spec: {nodeName: ds05}}, Running exporter-ds06: {of: DaemonSet, tolerates: for ever}}
            = stays-with-node - 2: Pods that belong to their NotReady node, of DaemonSets or static, stay there, as expected: ds05 (1), ds06 (1).
    "#]]);
}

/// Every case is judged at three o'clock.
#[test]
fn an_eviction_that_is_not_due_yet_is_not_told_of() {
    check(&expect![[r#"
        by default, 5 min 50 s: {Since Unknown: '2026-01-31T02:54:10Z', Running db-0: {of: StatefulSet}}
            = never-evicted ds06 1: Not evicted from NotReady node ds06: shop/db-0 of StatefulSet/own. Each one's toleration time is over, but Kubernetes has not evicted it: Kubernetes holds back while many nodes are not Ready at once, or its controller manager does not work. Each is down, unless the node is only cut off. Its machine was last heard 2h ago (lease).
        a second before: {Since Unknown: '2026-01-31T02:54:11Z', Running db-0: {of: StatefulSet}}
        an hour: {Since Unknown: '2026-01-31T01:59:10Z', Running db-0: {of: StatefulSet, tolerates: unreachable 3600}}
            = never-evicted ds06 1: Not evicted from NotReady node ds06: shop/db-0 of StatefulSet/own. Each one's toleration time is over, but Kubernetes has not evicted it: Kubernetes holds back while many nodes are not Ready at once, or its controller manager does not work. Each is down, unless the node is only cut off. Its machine was last heard 2h ago (lease).
        a second before that: {Since Unknown: '2026-01-31T01:59:11Z', Running db-0: {of: StatefulSet, tolerates: unreachable 3600}}
        of another taint, so by default: {Since Unknown: '2026-01-31T02:54:10Z', Running db-0: {of: StatefulSet, tolerates: not-ready 3600}}
            = never-evicted ds06 1: Not evicted from NotReady node ds06: shop/db-0 of StatefulSet/own. Each one's toleration time is over, but Kubernetes has not evicted it: Kubernetes holds back while many nodes are not Ready at once, or its controller manager does not work. Each is down, unless the node is only cut off. Its machine was last heard 2h ago (lease).
        at once, but not told of before others: {Since Unknown: '2026-01-31T02:54:11Z', Running db-0: {of: StatefulSet, tolerates: unreachable 0}}
        never, and told of as others: {Since Unknown: '2026-01-31T02:54:10Z', Running db-0: {of: StatefulSet, tolerates: for ever}}
            = never-evicted ds06 1: Not evicted from NotReady node ds06: shop/db-0 of StatefulSet/own. Each tolerates such a node without a time limit, so Kubernetes never evicts it. Each is down, unless the node is only cut off. Its machine was last heard 2h ago (lease). To have it moved, delete it without --force: the next runs judge it like any other.
        a second before, too: {Since Unknown: '2026-01-31T02:54:11Z', Running db-0: {of: StatefulSet, tolerates: for ever}}
        of a kubelet that speaks, whose toleration counts: {Since False: '2026-01-31T02:30:00Z', Running db-0: {of: StatefulSet, tolerates: not-ready 3600}}
        of a kubelet that speaks, whose toleration does not: {Since False: '2026-01-31T02:30:00Z', Running db-0: {of: StatefulSet, tolerates: unreachable 3600}}
            = never-evicted ds06 1: Not evicted from NotReady node ds06: shop/db-0 of StatefulSet/own. Each one's toleration time is over, but Kubernetes has not evicted it: Kubernetes holds back while many nodes are not Ready at once, or its controller manager does not work. Each may still be running, since the node shows signs of life. Its machine was last heard 2h ago (lease).
    "#]]);
}

#[test]
fn pods_of_a_leaf_node_or_of_another_namespace_are_not_told_of() {
    check(&expect![[r#"
        a leaf node: {Node ds06: {metadata: {labels: {kosmos.io/node: 'true'}}}, Running db-0: {of: StatefulSet, tolerates: for ever}}
        another namespace: --namespace-exclude-regex=shop {Namespace other: {}, Running db-0: {of: StatefulSet, tolerates: for ever}}
    "#]]);
}

#[test]
fn where_the_node_lives_its_pods_are_not_said_to_be_down() {
    check(&expect![[r#"
        its kubelet speaks: {Node ds06: {ready: 'False'}, Lease lives: {}, Running db-0: {of: StatefulSet, tolerates: for ever}}
            = never-evicted ds06 1: Not evicted from NotReady node ds06: shop/db-0 of StatefulSet/own. Each tolerates such a node without a time limit, so Kubernetes never evicts it. Each may still be running, since the node shows signs of life. Its machine was last heard 4s ago (lease). To have it moved, delete it without --force: the next runs judge it like any other.
    "#]]);
}

/// The nodes change between Ready and NotReady, or do not say since when they are NotReady; one run
/// has no threshold.
#[test]
fn a_wait_is_long_after_twelve_thresholds() {
    check(&expect![[r#"
        12 times 10 min: {Since Unknown: '2026-01-31T02:57:00Z', Stuck db-0: '2026-01-31T01:00:00Z'}
        and a second: {Since Unknown: '2026-01-31T02:57:00Z', Stuck db-0: '2026-01-31T00:59:59Z'}
            = long-wait ds06 1: Still waiting on node ds06, overdue for up to 2h: shop/db-0. The node changes between Ready and NotReady, or they were stuck before it failed. The node has been NotReady for only 3m; --node-not-ready-for is 10m.
        the longer one counts: --reap-older-than=1m --node-not-ready-for=10m {Since Unknown: '2026-01-31T02:57:00Z', Stuck db-0: '2026-01-31T00:59:59Z'}
            = long-wait ds06 1: Still waiting on node ds06, overdue for up to 2h: shop/db-0. The node changes between Ready and NotReady, or they were stuck before it failed. The node has been NotReady for only 3m; --node-not-ready-for is 10m.
        the longer one counts, of the node: --reap-older-than=1m --node-not-ready-for=10m {Since Unknown: '2026-01-31T02:57:00Z', Stuck db-0: '2026-01-31T01:00:00Z'}
        the longer one counts, of the pod: --node-not-ready-for=5m {Since Unknown: '2026-01-31T02:57:00Z', Stuck db-0: '2026-01-31T01:00:00Z'}
        without any, a minute for each: --reap-older-than=0s {Node ds06: {status: {conditions: [{type: Ready, status: Unknown}]}}, Stuck db-0: '2026-01-31T02:48:00Z'}
        and a second, without any: --reap-older-than=0s {Node ds06: {status: {conditions: [{type: Ready, status: Unknown}]}}, Stuck db-0: '2026-01-31T02:47:59Z'}
            = long-wait ds06 1: Still waiting on node ds06, overdue for up to 12m 1s: shop/db-0. The node's Ready condition says no time, or one in the future; no run takes them until it does.
    "#]]);
}

#[test]
fn a_long_wait_says_why() {
    check(&expect![[r#"
        it changes between Ready and NotReady: {Since Unknown: '2026-01-31T02:57:00Z', Stuck db-1: '2026-01-31T00:59:00Z', Stuck db-0: '2026-01-31T00:59:00Z', Stuck db-2: '2026-01-30T22:00:00Z'}
            = long-wait ds06 3: Still waiting on node ds06, overdue for up to 5h: shop/db-2, shop/db-0, shop/db-1. The node changes between Ready and NotReady, or they were stuck before it failed. The node has been NotReady for only 3m; --node-not-ready-for is 10m.
        no condition: {Node ds06: {status: {conditions: []}}, Stuck db-0: '2026-01-31T00:59:00Z'}
            = long-wait ds06 1: Still waiting on node ds06, overdue for up to 2h 1m: shop/db-0. The node has no Ready condition, so it does not say since when it is not Ready; no run takes them until it does.
        a time of the future: {Since Unknown: '2026-01-31T23:00:00Z', Stuck db-0: '2026-01-31T00:59:00Z'}
            = long-wait ds06 1: Still waiting on node ds06, overdue for up to 2h 1m: shop/db-0. The node's Ready condition says no time, or one in the future; no run takes them until it does.
        its kubelet lives: {Since Unknown: '2026-01-31T01:30:00Z', Lease lives: {}, Stuck db-0: '2026-01-31T00:59:00Z'}
        the cap: --max-deletes=1 {Stuck db-1: '2026-01-31T00:59:00Z', Stuck db-0: '2026-01-31T00:59:00Z', Stuck db-2: '2026-01-30T22:00:00Z'}
            = long-wait - 2: Still waiting, overdue for up to 2h 1m: shop/db-0, shop/db-1. --max-deletes=1 is fewer than get stuck between two runs: raise it, or run more often.
    "#]]);
}

#[test]
fn a_long_wait_with_another_exit_code_says_why_too() {
    check(&expect![[r#"
        its namespace is unread: {Namespace shop: null, Namespace other: {}, Stuck db-0: '2026-01-31T00:59:00Z'}
            = long-wait ds06 1: Still waiting on node ds06, overdue for up to 2h 1m: shop/db-0. A fact that the decision needs could not be read: the namespace: it was not in the list.
            = exit: Incomplete
        the breaker: {Node ds07: {}, Node ds08: {}, Stuck db-0: '2026-01-31T00:59:00Z', Pod shop/db-1: {spec: {nodeName: ds07}, metadata: {deletionTimestamp: '2026-01-31T00:00:00Z'}}}
            = long-wait - 2: Still waiting, overdue for up to 3h: shop/db-1, shop/db-0. 3 of 4 nodes are NotReady: 75 %, and the limit is 55 %. The breaker holds them in every run until enough nodes are Ready. Find out what the NotReady ones have in common.
            = exit: Held
    "#]]);
}

/// A snapshot without namespaces gives no such notice, because the namespaces are not known.
#[test]
fn a_filter_that_matches_no_namespace_is_told_of() {
    check(&expect![[r#"
        none: --namespace-regex=^shpo$ {Namespace data: {}, Pod shop/db-0: {}}
            = no-namespace - 1: Nothing was looked at: no namespace is selected (the cluster has 2; the filter is: matching "^shpo$").
        one: --namespace-regex=^data$ {Namespace data: {}, Pod shop/db-0: {}}
        none is saved: --namespace-regex=^shpo$ {Namespace shop: null, Pod shop/db-0: {}}
    "#]]);
}

#[test]
fn a_kind_that_no_pod_has_is_told_of() {
    check(&expect![[r#"
        one of four: --manual-owner-kind=Postgres,clonesets,Job,deployments {Pod shop/web-0: {metadata: {ownerReferences: [{apiVersion: apps/v1, kind: CloneSet, name: web, uid: x, controller: true}]}}}
            = unknown-kind - 1: --manual-owner-kind names Postgres, which is not a built-in kind of Kubernetes, and no judged pod has an owner of it: if it is misspelt, it protects nothing.
    "#]]);
    let built_in = BUILT_IN.join(",");
    let none = told(&format!(
        "--manual-owner-kind={built_in} {{Pod shop/db-0: {{}}}}"
    ));
    assert!(!none.contains("unknown-kind"), "{none}");
}

#[test]
fn a_snapshot_says_by_which_time_it_is_judged() {
    check(&expect![[r#"
        by its own: --snapshot=state.json {Pod shop/db-0: {}}
            = time-of-the-file - 1: Judged at 2026-01-31 03:00:00Z, the newest time of the file; what happened later is not known. --now sets another time.
        by another: --snapshot=state.json --now=2026-01-31T03:00:00Z {Pod shop/db-0: {}}
    "#]]);
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

/// Every format shows each notice, and none lets a name from the cluster become markup.
#[test]
fn every_format_tells_each_notice() {
    use crate::report::Render as _;
    let (mut settings, objects) = scene(
        "--snapshot=state.json {Since Unknown: '2026-01-31T02:50:10Z', Stuck db-0: '2026-01-31T00:59:00Z',
        Running <i>0: {of: StatefulSet, tolerates: for ever}}",
    );
    settings.policy.manual_owner_kinds = vec!["Statful*Set".to_owned()];
    let report = report(&settings, &objects, &[]);
    let wide = crate::report::text::Screen {
        colour: false,
        columns: 2_000,
        ..Default::default()
    };
    let page = report.page();
    let log = page.log(Log::Commands).join("\n");
    let text = crate::report::text::write(&page, wide) + &log;
    let markdown = crate::report::markdown::write(&page);
    let html = crate::report::html::write(&page);
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
        html.contains("shop/&#60;i&#62;0") && !html.contains("<i>0"),
        "{html}"
    );
}

/// Returns the notices of a run on a cluster, which a simulated API server stands for.
pub async fn told_of_cluster(settings: &Settings, objects: &[Value]) -> (Report, usize) {
    let now = "2026-01-31T03:00:00Z".parse().expect("a moment");
    let server = Server::new(Objects::new(now, objects.to_vec()));
    let (_signal, stop) = Stop::manual(std::time::Duration::from_mins(8));
    let cluster = Cluster::new(server.client(), stop.clone());
    let report = crate::run::run_on(&cluster, settings, false, &stop)
        .await
        .expect("a report");
    let requests = server.lock().requests.len();
    (report, requests)
}

#[tokio::test(start_paused = true)]
async fn a_run_tells_the_same_of_a_cluster_as_of_its_snapshot() {
    const OBJECTS: &str = "Running db-0: {of: StatefulSet, tolerates: for ever}, Pod shop/a-0: {},
        Running exporter: {of: DaemonSet, tolerates: for ever}";
    // Pods of a Ready node may be listed, too. No notice is about them.
    const MORE: &str = "Running b: {of: StatefulSet, tolerates: for ever, spec: {nodeName: ds05}},
        Pod shop/c: {spec: {nodeName: ds05}}";
    for options in ["", "--namespace-regex=^shpo$", "--namespace-regex=shop"] {
        let (settings, objects) = scene(&format!("{options} {{{OBJECTS}}}"));
        let snapshot = report(&settings, &objects, &[]).notices;
        assert!(!snapshot.is_empty());
        let (_, more) = scene(&format!("{{{OBJECTS}, {MORE}}}"));
        for (all, objects) in [(false, objects), (true, more)] {
            let settings = Settings {
                all,
                ..settings.clone()
            };
            let told = told_of_cluster(&settings, &objects).await.0;
            assert_eq!(told.notices, snapshot, "{options}, {all}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn where_every_node_is_ready_only_a_filter_is_asked_about() {
    let (settings, objects) = scene(
        "--namespace-regex=^shpo$ {Node ds06: null, Lease ds06: null,
        Running db-0: {of: StatefulSet, tolerates: for ever, spec: {nodeName: ds05}}}",
    );
    let settings = Settings {
        all: false,
        ..settings
    };
    let (report, requests) = told_of_cluster(&settings, &objects).await;
    let codes = report.notices.iter().map(|notice| notice.code);
    let codes = codes.collect::<Vec<_>>();
    assert_eq!((codes, requests), (vec![NoticeCode::NoNamespace], 2));
}
