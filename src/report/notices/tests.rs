//! Tests of each notice, at its boundaries.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use std::collections::BTreeSet;

use expect_test::{Expect, expect, expect_file};
use pod_reaper_test_support::{
    samples::with,
    simulated::{Objects, Server},
};
use rules::samples::{check_each, retold};
use serde_json::Value;

use super::*;
use crate::{
    cli::Cli,
    cluster::Cluster,
    exit::Exit,
    report::{Report, samples::*},
    settings::Settings,
    stop::Stop,
};

/// Reads a case: the options of a dry run, and objects. The objects include a dead ds06 and a
/// Ready ds05, unless the case has a node ds04.
pub fn scene(case: &str) -> (Settings, Vec<Value>) {
    let (options, described) = case.split_once('{').expect("a mapping");
    let base = if described.contains("Node ds04") {
        "{Namespace shop: {}}"
    } else {
        "{Node ds05: {ready: 'True'}, Node ds06: {}, Namespace shop: {}}"
    };
    let described = yaml(&format!("{{{described}"));
    let mode = if options.contains("--snapshot") {
        ""
    } else {
        " --dry-run"
    };
    let args = format!("pod-reaper{mode} {options}");
    let args = args.split_whitespace().map(Into::into);
    let mut settings = Settings::from(Cli::try_from_args(args).expect("options"));
    // A filter that was typed is an error if it matches nothing.
    for filter in &mut settings.filters {
        filter.name = filter
            .name
            .trim_start_matches("--")
            .replace('-', "_")
            .to_uppercase();
        filter.is_typed = false;
    }
    (settings, objects(&with(yaml(base), described)))
}

/// The sentences that distinguish notices of one code, each with a short name.
const CAUSES: [(&str, &str); 9] = [
    ("NEVER", NEVER),
    ("MISSED", MISSED),
    ("DOWN", DOWN),
    ("MAY-RUN", MAY_RUN),
    ("FLAPS", FLAPS),
    ("NO-CONDITION", NO_CONDITION),
    ("NO-TIME", NO_TIME),
    ("BREAKER", BREAKER),
    ("CAP", CAP),
];

/// Returns the notices of a case: the code, the node, the count, the causes and the values of each. Their
/// sentences are in `sentences.txt`. The exit code follows, unless it is that of success.
fn told(case: &str) -> String {
    let (settings, objects) = scene(case);
    let report = report(&settings, &objects, &[]);
    let mut lines = String::new();
    for notice in &report.notices {
        let node = notice.node.as_deref().unwrap_or("-");
        lines += &format!("{} {node} {}:", notice.code, notice.count);
        let mut detail = notice.detail.clone();
        for (name, sentence) in CAUSES {
            detail = detail.replace(sentence, &format!("={name}"));
        }
        for word in detail.split_whitespace() {
            let word = word.trim_matches(['.', ',', ':', ';', '(', ')']);
            let is_value = word.starts_with("--") || word.contains(['=', '/', '"']);
            if is_value || word.contains(|letter: char| letter.is_ascii_digit()) {
                lines += &format!(" {}", word.trim_start_matches('='));
            }
        }
        lines += "\n";
    }
    if report.exit != Exit::Done {
        lines += &format!("exit: {:?}", report.exit);
    }
    lines
}

/// For each case, the file has the sentences that no case above has, apart from names and times.
#[test]
fn each_sentence_is_expected_once() {
    let file = expect_file!["sentences.txt"];
    let (mut known, mut idle) = (BTreeSet::new(), Vec::new());
    let text = retold(&file.data(), |case| {
        let (settings, objects) = scene(case);
        let mut new = String::new();
        for NoticeEntry { code, detail, .. } in report(&settings, &objects, &[]).notices {
            for sentence in detail.split_inclusive(". ").map(str::trim_end) {
                let words = sentence.split_whitespace();
                let plain =
                    words.filter(|word| !word.contains(|letter: char| letter.is_ascii_digit()));
                if known.insert(plain.collect_vec().join(" ")) {
                    new += &format!("{code}: {sentence}\n");
                }
            }
        }
        if new.is_empty() {
            idle.push(case.to_owned());
        }
        new
    });
    file.assert_eq(&text);
    assert_eq!(idle, [""; 0], "the cases above say all that these say");
    for (name, cause) in CAUSES {
        let mut sentences = cause.split_inclusive(". ").map(str::trim_end);
        assert!(sentences.all(|sentence| text.contains(sentence)), "{name}");
    }
    for code in NoticeCode::ALL {
        assert!(text.contains(&format!("= {code}: ")), "{code}");
    }
}

pub fn check(cases: &Expect) {
    check_each(cases, told);
}

#[test]
fn pods_that_are_never_evicted_are_named_with_the_reason() {
    check(&expect![[r#"
        each kind: {Pod shop/web-1: {grace: null, owner: ReplicaSet web-7c9d, spec: {tolerations: [{operator: Exists}]}, metadata: {labels: {pod-template-hash: 7c9d}}}, Pod shop/db-0: {grace: null, spec: {tolerations: [{operator: Exists}]}}, Pod shop/bare: {grace: null, owner: null, spec: {tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]}}, Pod shop/exporter-a: {grace: null, owner: DaemonSet own, spec: {tolerations: [{operator: Exists}]}}, Pod shop/exporter-b: {grace: null, owner: DaemonSet own, spec: {tolerations: [{operator: Exists}]}}, Pod shop/etcd-ds06: {grace: null, owner: Node own, spec: {tolerations: [{operator: Exists}]}, metadata: {annotations: {kubernetes.io/config.mirror: x}}}, Pod shop/done: {grace: null, owner: Job own, phase: Succeeded, spec: {tolerations: [{operator: Exists}]}}, Pod shop/elsewhere: {grace: null, owner: StatefulSet own, node: ds05, spec: {tolerations: [{operator: Exists}]}}, Pod shop/gone-0: {}}
            = never-evicted ds06 2: ds06 shop/db-0 StatefulSet/db shop/web-1 Deployment/web NEVER DOWN 2h --force
            = never-evicted ds06 1: ds06 shop/bare MISSED DOWN 2h
    "#]]);
}

/// Every case is judged at three o'clock.
#[test]
fn an_eviction_that_is_not_due_yet_is_not_told_of() {
    check(&expect![[r#"
        by default, 5 min 50 s: {Node ds06: {since: 350}, Pod shop/db-0: {grace: null}}
            = never-evicted ds06 1: ds06 shop/db-0 StatefulSet/db MISSED DOWN 6m 30s
        a second before: {Node ds06: {since: 349}, Pod shop/db-0: {grace: null}}
        an hour: {Node ds06: {since: 3650}, Pod shop/db-0: {grace: null, spec: {tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]}}}
            = never-evicted ds06 1: ds06 shop/db-0 StatefulSet/db MISSED DOWN 1h 1m
        a second before that: {Node ds06: {since: 3649}, Pod shop/db-0: {grace: null, spec: {tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]}}}
        of another taint, so by default: {Node ds06: {since: 350}, Pod shop/db-0: {grace: null, spec: {tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]}}}
            = never-evicted ds06 1: ds06 shop/db-0 StatefulSet/db MISSED DOWN 6m 30s
        at once, but not told of before others: {Node ds06: {since: 349}, Pod shop/db-0: {grace: null, spec: {tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 0}]}}}
        never, and told of as others: {Node ds06: {since: 350}, Pod shop/db-0: {grace: null, spec: {tolerations: [{operator: Exists}]}}}
            = never-evicted ds06 1: ds06 shop/db-0 StatefulSet/db NEVER DOWN 6m 30s --force
        a second before, too: {Node ds06: {since: 349}, Pod shop/db-0: {grace: null, spec: {tolerations: [{operator: Exists}]}}}
        of a kubelet that speaks, whose toleration counts: {Node ds06: {ready: 'False', since: 1800}, Pod shop/db-0: {grace: null, spec: {tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]}}}
        of a kubelet that speaks, whose toleration does not: {Node ds06: {ready: 'False', since: 1800}, Pod shop/db-0: {grace: null, spec: {tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]}}}
            = never-evicted ds06 1: ds06 shop/db-0 StatefulSet/db MISSED MAY-RUN 30m
    "#]]);
}

#[test]
fn pods_of_a_leaf_node_or_of_another_namespace_are_not_told_of() {
    check(&expect![[r#"
        a leaf node: {Node ds06: {metadata: {labels: {kosmos.io/node: 'true'}}}, Pod shop/db-0: {grace: null, spec: {tolerations: [{operator: Exists}]}}}
        another namespace: --namespace-exclude-regex=shop {Namespace other: {}, Pod shop/db-0: {grace: null, spec: {tolerations: [{operator: Exists}]}}}
    "#]]);
}

#[test]
fn where_the_node_lives_its_pods_are_not_said_to_be_down() {
    check(&expect![[r#"
        its kubelet speaks: {Node ds06: {ready: 'False'}, Lease ds06: {renewed: 4}, Pod shop/db-0: {grace: null, spec: {tolerations: [{operator: Exists}]}}}
            = never-evicted ds06 1: ds06 shop/db-0 StatefulSet/db NEVER MAY-RUN 4s --force
    "#]]);
}

/// The nodes change between Ready and NotReady, or do not say since when they are NotReady; one run
/// has no threshold.
#[test]
fn a_wait_is_long_after_twelve_thresholds() {
    check(&expect![[r#"
        12 times 10 min: {Node ds06: {since: 180}, Pod shop/db-0: {overdue: 7200}}
        and a second: {Node ds06: {since: 180}, Pod shop/db-0: {overdue: 7201}}
            = long-wait ds06 1: ds06 2h shop/db-0 FLAPS 3m --reap-older-than 10m
        the longer one counts, of the pod: --reap-older-than=5m {Node ds06: {since: 180}, Pod shop/db-0: {overdue: 7200}}
            = long-wait ds06 1: ds06 2h shop/db-0 FLAPS 3m --reap-older-than 5m
        without any, a minute for each: --reap-older-than=0s {Node ds06: {status: {conditions: [{type: Ready, status: Unknown}]}}, Pod shop/db-0: {overdue: 720}}
        and a second, without any: --reap-older-than=0s {Node ds06: {status: {conditions: [{type: Ready, status: Unknown}]}}, Pod shop/db-0: {overdue: 721}}
            = long-wait ds06 1: ds06 12m 1s shop/db-0 NO-TIME
    "#]]);
}

#[test]
fn a_long_wait_says_why() {
    check(&expect![[r#"
        it changes between Ready and NotReady: {Node ds06: {since: 180}, Pod shop/db-1: {overdue: 7260}, Pod shop/db-0: {overdue: 7260}, Pod shop/db-2: {overdue: 18000}}
            = long-wait ds06 3: ds06 5h shop/db-2 shop/db-0 shop/db-1 FLAPS 3m --reap-older-than 10m
        no condition: {Node ds06: {status: {conditions: []}}, Pod shop/db-0: {overdue: 7260}}
            = long-wait ds06 1: ds06 2h 1m shop/db-0 NO-CONDITION
        a time of the future: {Node ds06: {since: -72000}, Pod shop/db-0: {overdue: 7260}}
            = long-wait ds06 1: ds06 2h 1m shop/db-0 NO-TIME
        its kubelet lives: {Node ds06: {since: 5400}, Lease ds06: {renewed: 4}, Pod shop/db-0: {overdue: 7260}}
        the cap: --max-deletes=1 {Pod shop/db-1: {overdue: 7260}, Pod shop/db-0: {overdue: 7260}, Pod shop/db-2: {overdue: 18000}}
            = long-wait - 2: 2h 1m shop/db-0 shop/db-1 --max-deletes=1 CAP
    "#]]);
}

#[test]
fn a_long_wait_with_another_exit_code_says_why_too() {
    check(&expect![[r#"
        its namespace is unread: {Namespace shop: null, Namespace other: {}, Pod shop/db-0: {overdue: 7260}}
            = long-wait ds06 1: ds06 2h 1m shop/db-0
            = exit: Incomplete
        the breaker: {Node ds07: {}, Node ds08: {}, Pod shop/db-0: {overdue: 7260}, Pod shop/db-1: {spec: {nodeName: ds07}, metadata: {deletionTimestamp: '2026-01-31T00:00:00Z'}}}
            = long-wait - 2: 3h shop/db-1 shop/db-0 3 4 75% 55% BREAKER
            = exit: Held
    "#]]);
}

/// A snapshot without namespaces gives no such notice, because the namespaces are not known.
#[test]
fn a_filter_that_matches_no_namespace_is_told_of() {
    check(&expect![[r#"
        none: --namespace-regex=^shpo$ {Namespace data: {}, Pod shop/db-0: {}}
            = no-namespace - 1: 2 "^shpo$"
        one: --namespace-regex=^data$ {Namespace data: {}, Pod shop/db-0: {}}
        none is saved: --namespace-regex=^shpo$ {Namespace shop: null, Pod shop/db-0: {}}
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

/// Every format shows each notice, and no format lets a name from the cluster become markup.
#[test]
fn every_format_tells_each_notice() {
    let (settings, objects) = scene(
        "--snapshot=state.json {Node ds06: {since: 590}, Pod shop/db-0: {overdue: 7260}, Pod shop/db-1: {node: ds05},
        Pod shop/<i>0: {grace: null, owner: StatefulSet own, spec: {tolerations: [{operator: Exists}]}}}",
    );
    let report = report(&settings, &objects, &[]);
    let wide = crate::report::text::Screen {
        colour: false,
        columns: 2_000,
    };
    let page = report.page();
    let text = crate::report::text::write(&page, wide);
    let html = crate::report::html::write(&page);
    for (code, marker) in [
        (NoticeCode::NeverEvicted, "Not evicted from"),
        (NoticeCode::LongWait, "Still waiting"),
        (NoticeCode::OnReadyNodes, "on a Ready node"),
    ] {
        for page in [&text, &html] {
            assert!(
                page.contains(marker) && page.contains(code.as_str()),
                "{code}:\n{page}"
            );
        }
    }
    assert!(text.find("NODES ") < text.find("WORTH KNOWING"), "{text}");
    assert!(
        html.contains("shop/&#60;i&#62;0") && !html.contains("<i>0"),
        "{html}"
    );
}

/// Returns the report of a run on a simulated API server, which has its notices, and the number of
/// requests.
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
    const OBJECTS: &str = "Pod shop/db-0: {grace: null, spec: {tolerations: [{operator: Exists}]}}, Pod shop/a-0: {},
        Pod shop/exporter: {grace: null, owner: DaemonSet own, spec: {tolerations: [{operator: Exists}]}}";
    // Pods of a Ready node may be listed too. No notice is about them.
    const MORE: &str = "Pod shop/b: {grace: null, owner: StatefulSet own, node: ds05, spec: {tolerations: [{operator: Exists}]}},
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
        Pod shop/db-0: {grace: null, node: ds05, spec: {tolerations: [{operator: Exists}]}}}",
    );
    let (report, requests) = told_of_cluster(&settings, &objects).await;
    let codes = report.notices.iter().map(|notice| notice.code);
    let codes = codes.collect::<Vec<_>>();
    assert_eq!((codes, requests), (vec![NoticeCode::NoNamespace], 2));
}
