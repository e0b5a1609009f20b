//! The schema of the JSON report, which is made of the types, and a command that discards data.

use std::borrow::Cow;

use expect_test::expect_file;
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Value, json};

use super::*;
use crate::{
    cli::Cli, exit::Exit, facts::Uid, judge::Verdict, kubernetes::NodeObjects,
    outcome::OutcomeCode, selector::Target,
};

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
        ("/properties/version", codes([4])),
        ("/properties/exitCode", codes(exits)),
        (
            "/$defs/BreakerEntry/properties/reason",
            codes(["mass-outage", "failed-together", "no-room", "facts-unread"]),
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
    let mut schema = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Report>()
        .to_value();
    schema["title"] = json!("pod-reaper's report, version 4");
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

#[test]
fn the_schema_in_the_documentation_is_current() {
    let text = serde_json::to_string_pretty(&schema()).expect("JSON") + "\n";
    expect_file!["../../docs/report.schema.json"].assert_eq(&text);
}

/// A name from a file can be a path.
#[test]
fn the_command_that_gives_data_up_names_one_pvc() {
    let objects = NodeObjects {
        node: serde_json::from_value(json!({"metadata": {"name": "ds06", "uid": "u"}})).unwrap(),
        lease: Ok(None),
        now: Timestamp::UNIX_EPOCH,
    };
    let cli = Cli::try_from_args(["pod-reaper".into()]).unwrap();
    let node = objects.into_facts(&cli.options.common.policy).unwrap();
    for (namespace, claim, is_printed) in [
        ("a", "data-0", true),
        ("..", "data-0", false),
        ("a", "../data-0", false),
        ("a", "", false),
    ] {
        let command = Target::default().delete_claim(&node, namespace, claim, &Uid::default());
        assert_eq!(command.is_some(), is_printed, "{namespace}/{claim}");
    }
}
