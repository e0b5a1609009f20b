//! Tests of all formats: they agree on every pod, and the JSON is valid by its schema.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use std::collections::BTreeSet;

use expect_test::{expect, expect_file};
use html5gum::{Token, Tokenizer};
use pulldown_cmark::{Event, Options, Parser, TagEnd};
use schemars::{
    Schema, SchemaGenerator, generate::SchemaSettings, json_schema, transform::transform_subschemas,
};
use serde_json::{Value, json};

use super::{samples::*, *};
use crate::{
    decide::Verdict,
    limits::Limits,
    outcome::{OutcomeCode, Replacement, ReplacementState},
    settings::Settings,
};

/// A pod in a format: namespace/name, its verdict, and the outcome or else the reason.
type Row = (String, String, Option<String>);

fn reports() -> Vec<Report> {
    let mut held = private_cloud();
    for (number, object) in held.iter_mut().take(5).enumerate() {
        *object = node(&format!("ds0{}", number + 1), "Unknown");
    }
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
                node("ds01", "True"),
                json!({"kind": "Pod", "metadata": {"name": "a"}}),
            ],
            &[],
        ),
        every_outcome(),
        every_replacement(),
    ]
}

fn as_json(report: &Report) -> Value {
    let mut bytes = Vec::new();
    report
        .write(Output::Json, text::Screen::default(), &mut bytes)
        .expect("a buffer takes it");
    serde_json::from_slice(&bytes).expect("JSON")
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
        // Other formats show only by the section that a pod to reap without an outcome is stuck.
        let reason = text(&pod["reason"]).filter(|_| verdict != "reap");
        (name, verdict, text(&pod["outcome"]).or(reason))
    });
    pods.collect()
}

fn in_text(report: &Report) -> BTreeSet<Row> {
    let text = text::write(report, text::Screen::default());
    let mut verdict = None;
    let mut rows = BTreeSet::new();
    // An entry of two lines has its tag on the second.
    let lines = text
        .replace("\n      [", "  [")
        .replace("\n      overdue", "  overdue");
    for line in lines.lines() {
        if !line.starts_with(' ') {
            verdict = match line.split([':', '(']).next().unwrap_or_default().trim() {
                "TO BE REAPED" | "REAPED" => Some("reap"),
                "WAITING" => Some("wait"),
                "LEFT ALONE" => Some("leave"),
                "NEEDS YOU" => Some("manual"),
                _ => None,
            };
        } else if let Some(verdict) = verdict
            && line.starts_with("  ")
            && !line.starts_with("   ")
        {
            let name = line.split_whitespace().next().expect("a name");
            let tag = line
                .rsplit_once('[')
                .map(|(_, tag)| tag.trim_end_matches(']').to_owned());
            rows.insert((name.to_owned(), verdict.to_owned(), tag));
        }
    }
    rows
}

fn in_markdown(report: &Report) -> BTreeSet<Row> {
    let page = markdown::write(report);
    let (mut verdict, mut texts, mut rows) = ("", Vec::new(), BTreeSet::new());
    let mut cells = Vec::new();
    let mut name = None;
    for event in Parser::new_ext(&page, Options::ENABLE_TABLES) {
        match event {
            Event::Start(pulldown_cmark::Tag::Heading { .. } | pulldown_cmark::Tag::Paragraph) => {
                texts.clear();
            }
            Event::Start(pulldown_cmark::Tag::TableCell) => texts.clear(),
            Event::Text(text) | Event::Code(text) => texts.push(text.to_string()),
            Event::End(TagEnd::Heading(pulldown_cmark::HeadingLevel::H2)) => {
                verdict = match texts
                    .concat()
                    .split([':', '('])
                    .next()
                    .unwrap_or_default()
                    .trim()
                {
                    "To be reaped" | "Reaped" => "reap",
                    "Waiting" => "wait",
                    "Left alone" => "leave",
                    "Needs you" => "manual",
                    _ => "",
                };
            }
            Event::End(TagEnd::Heading(pulldown_cmark::HeadingLevel::H3)) => {
                name = Some(texts.concat());
            }
            Event::End(TagEnd::Paragraph) => {
                if let Some(name) = name.take() {
                    rows.insert((name, verdict.to_owned(), texts.first().cloned()));
                }
            }
            Event::End(TagEnd::TableCell) => cells.push(texts.concat()),
            Event::End(TagEnd::TableHead) => cells.clear(),
            Event::End(TagEnd::TableRow) => {
                if !verdict.is_empty() {
                    let why = Some(cells[4].clone()).filter(|why| why != "stuck-on-not-ready-node");
                    rows.insert((cells[0].clone(), verdict.to_owned(), why));
                }
                cells.clear();
            }
            _ => {}
        }
    }
    rows
}

/// A pod's element while it is parsed: namespace, verdict, and every text with its element.
type Entry = (String, String, Vec<(String, String)>);

fn in_html(report: &Report) -> BTreeSet<Row> {
    let page = html::write(report);
    let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let mut rows = BTreeSet::new();
    let mut pod: Option<Entry> = None;
    let mut inside = String::new();
    let mut entries = 0;
    for token in Tokenizer::new(&page) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let class = tag
                    .attributes
                    .get(&b"class"[..])
                    .map(|class| utf8(class))
                    .unwrap_or_default();
                if class.split(' ').any(|class| class == "pod") {
                    entries += 1;
                    let of = |name: &[u8]| utf8(&tag.attributes[name]);
                    pod = Some((of(b"data-namespace"), of(b"data-verdict"), Vec::new()));
                }
                inside = if class.split(' ').any(|class| class == "chip") {
                    "chip".to_owned()
                } else {
                    utf8(&tag.name)
                };
            }
            Token::EndTag(tag) => {
                inside.clear();
                if &**tag.name == b"li"
                    && let Some((namespace, verdict, texts)) =
                        pod.take_if(|(_, _, texts)| texts.len() >= 2)
                {
                    let text = |what| {
                        texts
                            .iter()
                            .find(|(inside, _)| inside == what)
                            .map(|(_, text)| text.clone())
                    };
                    let name = format!("{namespace}/{}", text("b").expect("a name"));
                    let why = text("chip").filter(|why| why != "stuck-on-not-ready-node");
                    rows.insert((name, verdict, why));
                }
            }
            Token::String(text) => {
                if let Some((_, _, texts)) = &mut pod {
                    texts.push((inside.clone(), utf8(&text)));
                }
            }
            _ => {}
        }
    }
    assert_eq!(entries, report.pods.len(), "every pod is on the page once");
    rows
}

#[test]
fn all_formats_agree_on_every_pod() {
    for report in reports() {
        let rows = in_json(&report);
        assert_eq!(rows.len(), report.pods.len());
        for (format, other) in [
            ("text", in_text(&report)),
            ("Markdown", in_markdown(&report)),
            ("HTML", in_html(&report)),
        ] {
            assert_eq!(other, rows, "{format}");
        }
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
    let text = text::write(&report, text::Screen::default());
    assert!(
        text.starts_with("prod <eu>: 4 pods need you, 4 to be reaped"),
        "{text}"
    );
    let markdown = markdown::write(&report);
    let heading = Parser::new(&markdown).find_map(|event| match event {
        Event::Text(text) => Some(text.to_string()),
        _ => None,
    });
    assert_eq!(
        heading.as_deref(),
        Some(concat!(
            "pod-reaper ",
            env!("CARGO_PKG_VERSION"),
            ": audit of state.json, cluster prod "
        ))
    );
    let html = html::write(&report);
    assert!(
        html.contains(" · prod &lt;eu&gt; · pod-reaper</title>"),
        "{html}"
    );
    assert!(
        html.contains("audit of state.json, cluster prod &lt;eu&gt;"),
        "{html}"
    );
}

#[test]
fn every_format_says_what_is_known_of_a_node() {
    let mut alive = node("ds06", "False");
    alive["spec"] =
        json!({"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]});
    let mut renewed = lease("ds06");
    renewed["spec"] = json!({"renewTime": "2026-01-31T02:59:56Z", "leaseDurationSeconds": 40});
    let off = annotated(node("ds07", "Unknown"), "fencing/state", "fenced");
    let mut running = pod("shop", "a-0", "ds05");
    running["metadata"]["deletionTimestamp"].take();
    let objects = [
        node("ds05", "True"),
        alive,
        off,
        namespace("shop"),
        renewed,
        lease("ds07"),
        running,
    ];
    let report = report(&audit(), &objects, &[]);
    let says = report
        .nodes
        .iter()
        .map(|node| phrases::node(&report, node))
        .collect::<Vec<_>>();
    expect![[r#"
        Ready is False (NodeStatusUnknown) for 2h; signs of life: its kubelet renewed its lease 4s ago, its kubelet reports that itself; has the out-of-service taint
        Ready is Unknown (NodeStatusUnknown) for 2h; last heard 2h ago (lease); fenced: annotation fencing/state=fenced"#]].assert_eq(&says.join("\n"));
    let wide = text::Screen {
        colour: false,
        columns: 1_000,
    };
    for page in [
        text::write(&report, wide),
        markdown::write(&report),
        html::write(&report),
    ] {
        for part in [
            "signs of life: its kubelet renewed",
            "fenced: annotation",
            "has the out-of-service taint",
        ] {
            assert!(page.contains(part), "{part}:\n{page}");
        }
    }
}

// Parts of the schema beyond types: the codes that a field can hold.

/// A run whose replacements are in every state.
fn every_replacement() -> Report {
    let mut report = every_outcome();
    let states = ReplacementState::ALL
        .into_iter()
        .zip(["a", "b", "c", "d", "e", "f"]);
    for ((state, name), pod) in states.zip(&mut report.pods) {
        let back = state == ReplacementState::Back;
        pod.replacement = Some(Replacement {
            name: Some(format!("{name}-new")),
            node: back.then(|| "ds02".to_owned()),
            since: back.then(|| "2026-01-31T03:00:07Z".parse().unwrap()),
            ..Replacement::without_pod(state, format!("the cause of <{name}>"))
        });
        report.summary.replacements.insert(state, 1);
    }
    report
}

#[test]
fn every_format_says_what_became_of_the_replacements() {
    let report = every_replacement();
    let says = report
        .pods
        .iter()
        .filter_map(phrases::replacement)
        .collect::<Vec<_>>();
    let back = "back: a-new on ds02, Ready since 2026-01-31 03:00:07Z, the cause of <a>";
    let others = [
        ("starting", "b"),
        ("not-ready", "c"),
        ("pending", "d"),
        ("none", "e"),
        ("unknown", "f"),
    ];
    let others = others.map(|(state, name)| format!("{state}: {name}-new, the cause of <{name}>"));
    assert_eq!(says, [&[back.to_owned()], &others[..]].concat());
    let text = text::write(&report, text::Screen::default());
    let html = html::write(&report);
    let mut rows = Vec::new();
    for event in Parser::new_ext(&markdown::write(&report), Options::ENABLE_TABLES) {
        match event {
            Event::Start(pulldown_cmark::Tag::TableRow) => rows.push(String::new()),
            Event::Text(text) if !rows.is_empty() => rows.last_mut().unwrap().push_str(&text),
            _ => {}
        }
    }
    for says in says {
        assert!(
            text.contains(&format!("      Replacement: {says}\n")),
            "{says}: {text}"
        );
        let escaped = says.replace('<', "&lt;").replace('>', "&gt;");
        assert!(
            html.contains(&format!("<b>Replacement: </b>{escaped}</p>")),
            "{says}: {html}"
        );
        assert!(
            rows.iter()
                .any(|row| row.contains(&format!("Replacement: {says}"))),
            "{says}: {rows:?}"
        );
    }
    let summary = ", replacements: 1 back, 1 none, 1 not-ready, 1 pending, 1 starting, 1 unknown. 1 of 2 nodes not Ready";
    assert!(
        phrases::summary(&report).contains(summary),
        "{}",
        phrases::summary(&report)
    );
    assert_eq!(report.exit, every_outcome().exit);
    assert!(!phrases::summary(&every_outcome()).contains("replacements"));
}

fn codes(codes: impl IntoIterator<Item = impl Into<Value>>) -> Schema {
    json_schema!({"enum": codes.into_iter().map(Into::into).collect::<Vec<Value>>()})
}

fn counts(codes: &[&str]) -> Schema {
    let counts = codes
        .iter()
        .map(|code| ((*code).to_owned(), json!({"type": "integer", "minimum": 0})));
    json_schema!({
        "type": "object",
        "properties": counts.collect::<serde_json::Map<_, _>>(),
        "required": codes,
    })
}

pub fn version(_: &mut SchemaGenerator) -> Schema {
    codes([1])
}

pub fn exit_code(_: &mut SchemaGenerator) -> Schema {
    codes([Exit::Done, Exit::Incomplete, Exit::Held, Exit::Manual].map(Exit::code))
}

pub fn breaker(_: &mut SchemaGenerator) -> Schema {
    codes(["mass-outage", "facts-unread"])
}

pub fn ready(_: &mut SchemaGenerator) -> Schema {
    codes(["False", "Unknown", "absent", "unread"])
}

pub fn by_verdict(_: &mut SchemaGenerator) -> Schema {
    counts(&Verdict::ALL.map(Verdict::as_str))
}

pub fn by_outcome(_: &mut SchemaGenerator) -> Schema {
    counts(&OutcomeCode::ALL.map(OutcomeCode::as_str))
}

pub fn by_state(_: &mut SchemaGenerator) -> Schema {
    counts(&ReplacementState::ALL.map(ReplacementState::as_str))
}

/// The schema of the JSON report, generated from its types and their documentation.
fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let schema = generator.into_root_schema_for::<Report>();
    let mut schema = schema.to_value();
    schema["title"] = json!("pod-reaper's report, version 1");
    // Written by serde, which does not show it to the generator.
    schema["properties"]["kind"] = json!({"const": "Report"});
    schema["required"]
        .as_array_mut()
        .expect("names")
        .push(json!("kind"));
    schema
}

/// The same schema, with every other field forbidden.
fn strict(schema: &Value) -> Value {
    fn close(schema: &mut schemars::Schema) {
        if schema.get("properties").is_some() {
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
        transform_subschemas(&mut close, schema);
    }
    let mut schema = schemars::Schema::try_from(schema.clone()).expect("a schema");
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
        ("another version", |report| report["version"] = json!(2)),
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
