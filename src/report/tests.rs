//! Tests of all formats: they agree on every pod, and the JSON is valid against its schema.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

mod data;

use std::{borrow::Cow, collections::BTreeSet};

use expect_test::{expect, expect_file};
use html5gum::{Token, Tokenizer};
use itertools::Itertools as _;
use jiff::Timestamp;
use schemars::{
    JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema,
    transform::transform_subschemas,
};
use serde_json::{Value, json};

use super::{samples::*, *};
use crate::{
    decide::Verdict, exit::Exit, limits::Limits, outcome::OutcomeCode, settings::Settings,
};

/// A pod as namespace/name, its verdict, and its outcome or else its reason.
type Row = (String, String, Option<String>);

fn reports() -> Vec<Report> {
    let held = private_cloud_with("Unknown");
    let capped = Settings {
        limits: Limits {
            max_deletes: Some(1),
            max_not_ready_percent: 55,
        },
        ..audit()
    };
    let malformed = json!({"kind": "Node", "metadata": {"name": "malformed", "labels": 5}});
    vec![
        report(&audit(), &private_cloud(), &[]),
        report(&audit(), &held, &[]),
        report(&capped, &private_cloud(), &[]),
        report(&audit(), &[private_cloud(), vec![malformed]].concat(), &[]),
        report(
            &audit(),
            &[
                objects(&yaml("Node ds01: {ready: 'True', lease: null}")),
                vec![json!({"kind": "Pod", "metadata": {"name": "a"}})],
            ]
            .concat(),
            &[],
        ),
        every_outcome(),
    ]
}

#[test]
fn nodes_that_fail_within_a_minute_fail_at_once() {
    for (ages, most) in [
        ("3600", 1),
        ("3650, 3630, 3620, 3589, 1800, 10800", 3),
        ("3650, 3630, 3620, 3590, 1800, 10800", 4),
        ("10800, 7200, 3600", 1),
        ("", 0),
    ] {
        let ages = ages.split(", ").filter(|age| !age.is_empty());
        let seconds = ages.map(|age| -age.parse::<i64>().expect("seconds"));
        let times = seconds.map(|second| Timestamp::constant(second, 0));
        assert_eq!(phrases::at_once(&times.sorted().collect_vec()), most);
    }
}

/// A volume that is still attached delays only a pod that gets a replacement.
#[test]
fn only_a_pod_with_a_replacement_waits_for_its_volume() {
    const CLUSTER: &str = "
        Node ds05: {ready: 'True'}
        Node ds06: {}
        Namespace shop: {}
        StatefulSet shop/db: {spec: {replicas: 3}}
        Pod shop/db-0: {uses: data, metadata: {labels: {apps.kubernetes.io/pod-index: '0'}}}
        PersistentVolumeClaim shop/data: {volume: pv-data}
        PersistentVolume pv-data: {}
        VolumeAttachment csi-1: {spec: {nodeName: ds06, source: {persistentVolumeName: pv-data}}}
    ";
    for (more, waits) in [
        ("{}", true),
        (
            "Namespace shop: {metadata: {deletionTimestamp: '2026-01-31T02:00:00Z'}}",
            false,
        ),
        (
            "Node ds06: {spec: {taints: [{key: node.kubernetes.io/out-of-service, effect: NoExecute}]}}",
            false,
        ),
    ] {
        let objects = objects(&with(yaml(CLUSTER), yaml(more)));
        let report = report(&audit(), &objects, &[]);
        let pod = &report.pods[0];
        assert_eq!(pod.verdict, Some(Verdict::Reap), "{more}: {}", pod.detail);
        let note = pod.note.as_deref().unwrap_or_default();
        assert_eq!(
            note.contains("pv-data is detached"),
            waits,
            "{more}: {note}"
        );
    }
}

fn as_json(report: &Report) -> Value {
    serde_json::to_value(report).expect("JSON")
}

fn in_json(report: &Report) -> BTreeSet<Row> {
    let json = as_json(report);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let pods = json["pods"].as_array().expect("pods").iter().map(|pod| {
        let name = format!(
            "{}/{}",
            text(&pod["namespace"]).unwrap(),
            text(&pod["name"]).unwrap()
        );
        let verdict = text(&pod["verdict"]).unwrap();
        // The other formats show the reason for a pod to reap without an outcome only by the pod's
        // section.
        let reason = text(&pod["reason"]).filter(|_| verdict != "reap");
        (name, verdict, text(&pod["outcome"]).or(reason))
    });
    pods.collect()
}

/// Returns the text of an HTML page without its tags.
fn text_of_html(html: &str) -> String {
    let mut text = String::new();
    for token in Tokenizer::new(html) {
        let Ok(token) = token;
        if let Token::String(piece) = token {
            text += &String::from_utf8_lossy(&piece);
        }
    }
    text
}

/// Lists all entries among the blocks.
fn entries(blocks: &[page::Block]) -> Vec<&page::Entry> {
    let all = blocks.iter().flat_map(|block| match block {
        page::Block::Entry(entry) => vec![entry],
        page::Block::Fold { blocks, .. }
        | page::Block::Pods(blocks)
        | page::Block::Node { blocks, .. } => entries(blocks),
        _ => Vec::new(),
    });
    all.collect()
}

fn words(text: &str) -> BTreeSet<&str> {
    let words = text.split([' ', ',', '\n', '`', '/', '<', '>']);
    words.collect()
}

#[test]
fn every_pod_is_on_the_page_and_every_format_draws_it() {
    for report in reports() {
        let page = report.page();
        let sections = page.sections.iter();
        let rows = sections.flat_map(|section| entries(&section.blocks));
        let rows = rows.filter(|entry| entry.verdict.is_some());
        let rows = rows.map(|entry| {
            let verdict = entry.verdict.expect("a verdict").to_string();
            let tag = entry.tag.map(|tag| tag.code.to_owned());
            (entry.name.clone(), verdict, tag)
        });
        let rows = rows.collect::<BTreeSet<_>>();
        assert_eq!(rows, in_json(&report));
        let text = text::write(&page, text::Screen::default());
        let html = text_of_html(&html::write(&page));
        for (name, verdict, tag) in rows {
            assert!(html.contains(&name), "{name}: {html}");
            let (namespace, name) = name.split_once('/').expect("a namespace");
            let is_of = |line: &str| line.contains(namespace) && words(line).contains(name);
            let is_row = |line: &str| line.starts_with(&format!("  {namespace}/{name}  "));
            let is_shown = text.lines().any(|line| is_row(line) || is_of(line));
            assert!(is_shown, "{name}, {verdict}: {text}");
            if let Some(tag) = tag {
                assert!(html.contains(&format!("{tag} (")), "{tag}: {html}");
            }
        }
    }
}

/// Describes a pod of one of forty workloads. Of seven pods, two are held by a finalizer, one is not
/// overdue yet, and one has a note.
fn one_of_many(number: usize, node: &str) -> (String, Value) {
    let workload = format!("app-{}", number % 40);
    let name = format!("Pod team-{}/{workload}-{number}", number % 12);
    let of_workload = json!({"node": node, "owner": format!("StatefulSet {workload}")});
    let more = match number % 7 {
        1 => "metadata: {finalizers: [example.com/backup]}",
        2 => "metadata: {finalizers: [example.com/other]}",
        3 => "overdue: 180",
        4 => "metadata: {annotations: {pod-reaper.io/after-reap: unseal it}}",
        _ => "{}",
    };
    (name, with(of_workload, yaml(more)))
}

/// Returns the report of a night in which `dead` of `all` nodes failed, with 2,000
/// Terminating pods.
fn night(dead: usize, all: usize) -> Report {
    let mut cluster = Value::Object(serde_json::Map::new());
    for number in 0..12 {
        cluster[format!("Namespace team-{number}")] = json!({});
    }
    for number in 0..all {
        let ready = if number < dead { "Unknown" } else { "True" };
        let name = format!("worker-{number}");
        cluster[format!("Node {name}")] = json!({"ready": ready});
        cluster[format!("VolumeAttachment csi-{number}")] = json!({"node": name, "volume": "pv"});
    }
    for number in 0..2_000 {
        let (key, pod) = one_of_many(number, &format!("worker-{}", number % dead));
        cluster[key] = pod;
    }
    let objects = objects(&cluster);
    let mut report = report(&audit(), &objects, &[]);
    report
        .errors
        .extend((0..300).map(|number| crate::facts::ReadError {
            what: format!("Claim team-1/data-{number}"),
            cause: "forbidden ".repeat(40),
        }));
    report
}

#[test]
fn a_text_names_every_pod_that_is_reaped_or_needs_a_person() {
    for (dead, all) in [(1, 6), (20, 100), (150, 200), (60, 200)] {
        let report = night(dead, all);
        let mut deleted = report.clone();
        for pod in &mut deleted.pods {
            pod.outcome = (pod.verdict == Some(Verdict::Reap)).then_some(OutcomeCode::Deleted);
        }
        for report in [&report, &deleted] {
            let page = report.page();
            let text = text::write(&page, text::Screen::default());
            let wide = text.lines().filter(|line| line.chars().count() > 100);
            for line in wide {
                assert!(line.contains("kubectl "), "{dead}: {line}");
            }
            let shown = words(&text);
            let html = html::write(&page);
            let named = words(&html);
            for pod in &report.pods {
                let name = pod.name.as_str();
                assert!(named.contains(name), "{name}");
                let matters = [Some(Verdict::Reap), Some(Verdict::Manual)].contains(&pod.verdict);
                assert!(!matters || shown.contains(name), "{dead}: {name}");
            }
            for heading in ["WAITING: ", "LEFT ALONE: ", "NOT READ: "] {
                let Some((_, section)) = text.split_once(&format!("\n{heading}")) else {
                    continue;
                };
                let (section, _) = section.split_once("\n\n").expect("its end");
                assert!(
                    section.contains("\n  and ") && section.ends_with(" more"),
                    "{section}"
                );
            }
        }
        let text = text::write(&report.page(), text::Screen::default());
        let held = report.breaker.is_some();
        assert_eq!(held, dead == 150);
        assert!(!held || !text.contains("pods need you"), "{text}");
        assert_eq!(held, text.contains("get nodes -o wide -L"), "{text}");
    }
}

#[test]
fn every_format_names_the_cluster_at_its_top() {
    let named = Settings {
        cluster_name: Some("prod <eu>".to_owned()),
        ..audit()
    };
    let report = report(&named, &private_cloud(), &[]);
    assert_eq!(as_json(&report)["clusterName"], "prod <eu>");
    let text = text::write(&report.page(), text::Screen::default());
    assert!(
        text.starts_with("AUDIT of state.json, on prod <eu>, judged at "),
        "{text}"
    );
    let html = html::write(&report.page());
    assert!(
        html.contains(" · prod &#60;eu&#62; · pod-reaper</title>"),
        "{html}"
    );
    assert!(
        html.contains("AUDIT of state.json, on prod &#60;eu&#62;"),
        "{html}"
    );
}

#[test]
fn every_format_says_what_is_known_of_a_node() {
    let cluster = "
        Node ds05: {ready: 'True'}
        Node ds06: {ready: 'False', renewed: 4, spec: {taints: [{key: node.kubernetes.io/out-of-service, effect: NoExecute}]}}
        Node ds07: {metadata: {annotations: {fencing/state: fenced}}}
        Namespace shop: {}
        Pod shop/a-0: {node: ds05, grace: null}
    ";
    let objects = objects(&yaml(cluster));
    let report = report(&audit(), &objects, &[]);
    let says = report
        .nodes
        .iter()
        .map(|node| phrases::node(node, report.judged_at))
        .collect::<Vec<_>>();
    expect![[r#"
        Ready is False (KubeletNotReady) for 2h; its machine is alive: its kubelet renewed its lease 4s ago, its kubelet reports that itself; has the out-of-service taint
        NotReady for 2h; last heartbeat 2h ago (lease); fenced: annotation fencing/state=fenced"#]].assert_eq(&says.join("\n"));
    let wide = text::Screen {
        colour: false,
        columns: 1_000,
    };
    for page in [
        text::write(&report.page(), wide),
        html::write(&report.page()),
    ] {
        for part in [
            "its machine is alive: its kubelet renewed",
            "fenced: annotation",
            "has the out-of-service taint",
        ] {
            assert!(page.contains(part), "{part}:\n{page}");
        }
    }
}

fn codes(codes: impl IntoIterator<Item = impl Into<Value>>) -> Value {
    json!({"enum": codes.into_iter().map(Into::into).collect::<Vec<Value>>()})
}

fn counts(codes: &[&str]) -> Value {
    let counts = codes
        .iter()
        .map(|code| ((*code).to_owned(), json!({"type": "integer", "minimum": 0})));
    json!({
        "type": "object",
        "properties": counts.collect::<serde_json::Map<_, _>>(),
        "required": codes,
    })
}

/// Lists the codes that each field can have. The schema has them in addition to the types.
fn holds() -> [(&'static str, Value); 7] {
    let exits = [Exit::Done, Exit::Incomplete, Exit::Held, Exit::Manual].map(Exit::code);
    let by_verdict = counts(&Verdict::ALL.map(Verdict::as_str));
    let by_outcome = counts(&OutcomeCode::ALL.map(OutcomeCode::as_str));
    [
        ("/properties/version", codes([2])),
        ("/properties/exitCode", codes(exits)),
        (
            "/$defs/BreakerEntry/properties/reason",
            codes(["mass-outage", "facts-unread"]),
        ),
        (
            "/$defs/NodeEntry/properties/ready",
            codes(["False", "Unknown", "absent", "unread"]),
        ),
        ("/$defs/NodeEntry/properties/pods", by_verdict.clone()),
        ("/$defs/Summary/properties/verdicts", by_verdict),
        ("/$defs/Summary/properties/outcomes", by_outcome),
    ]
}

impl JsonSchema for Exit {
    fn schema_name() -> Cow<'static, str> {
        "Exit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({})
    }
}

/// Generates the schema of the JSON report from its types and their documentation.
fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let schema = generator.into_root_schema_for::<Report>();
    let mut schema = schema.to_value();
    schema["title"] = json!("pod-reaper's report, version 2");
    // Serde writes this field, but the schema generator does not see it.
    schema["properties"]["kind"] = json!({"const": "Report"});
    schema["required"]
        .as_array_mut()
        .expect("names")
        .push(json!("kind"));
    for (place, mut holds) in holds() {
        let field = schema.pointer_mut(place).expect(place);
        holds["description"] = field["description"].take();
        *field = holds;
    }
    schema["$defs"]
        .as_object_mut()
        .expect("types")
        .remove("Exit");
    schema
}

/// Returns the same schema with all unknown fields forbidden.
fn strict(schema: &Value) -> Value {
    fn close(schema: &mut Schema) {
        if schema.get("properties").is_some() {
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
        transform_subschemas(&mut close, schema);
    }
    let mut schema = Schema::try_from(schema.clone()).expect("a schema");
    close(&mut schema);
    schema.to_value()
}

fn complaints(schema: &Value, report: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).expect("a schema");
    validator
        .iter_errors(report)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect()
}

#[test]
fn the_schema_in_the_documentation_is_current() {
    let text = serde_json::to_string_pretty(&schema()).expect("JSON") + "\n";
    expect_file!["../../docs/report.schema.json"].assert_eq(&text);
}

#[test]
fn reports_are_what_the_schema_says() {
    let strict = strict(&schema());
    for report in reports() {
        let json = as_json(&report);
        assert_eq!(complaints(&strict, &json), Vec::<String>::new());
    }
}

type Spoil = fn(&mut Value);

#[test]
fn the_schema_refuses_what_is_no_report() {
    let schema = schema();
    let good = serde_json::to_value(&reports()[0]).expect("JSON");
    let spoiled: [(&str, Spoil); 8] = [
        ("a verdict that is none", |report| {
            report["pods"][0]["verdict"] = json!("kill");
        }),
        ("a reason that is none", |report| {
            report["pods"][0]["reason"] = json!("bad-luck");
        }),
        ("an outcome that is none", |report| {
            report["pods"][0]["outcome"] = json!("fine");
        }),
        ("a mode that is none", |report| {
            report["mode"] = json!("maybe");
        }),
        ("a command in words", |report| {
            report["pods"][0]["steps"] = json!([{"what": "a", "command": ["a"]}]);
        }),
        ("a moment that is none", |report| {
            report["judgedAt"] = json!(5);
        }),
        ("another version", |report| report["version"] = json!(1)),
        ("a field that is missing", |report| {
            report["pods"][0]
                .as_object_mut()
                .expect("a pod")
                .remove("uid");
        }),
    ];
    assert_eq!(complaints(&schema, &good), Vec::<String>::new());
    for (what, spoil) in spoiled {
        let mut report = good.clone();
        spoil(&mut report);
        assert_ne!(complaints(&schema, &report), Vec::<String>::new(), "{what}");
    }
    // The published schema allows the fields that a later version adds.
    let mut newer = good.clone();
    newer["new"] = json!(1);
    assert_eq!(complaints(&schema, &newer), Vec::<String>::new());
    assert_ne!(complaints(&strict(&schema), &newer), Vec::<String>::new());
}
