//! The schema of the JSON report, which is made of the types, and reports against it.

use std::borrow::Cow;

use expect_test::expect_file;
use schemars::{
    JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema,
    transform::transform_subschemas,
};
use serde_json::{Value, json};

use super::{samples::*, *};
use crate::{
    decide::Verdict, exit::Exit, limits::Limits, outcome::OutcomeCode, settings::Settings,
};

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
        let json = serde_json::to_value(&report).expect("JSON");
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
