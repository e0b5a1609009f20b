//! The schemas of explanations and forecasts, generated from their types and their documentation.

use std::borrow::Cow;

use expect_test::expect_file;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Value, json};

use super::{
    explain::Explanation,
    what_if::{Fate, WhatIf, each_node::Forecast},
};
use crate::exit::Exit;

impl JsonSchema for Exit {
    fn schema_name() -> Cow<'static, str> {
        "Exit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes = [Self::Done, Self::Incomplete].map(Self::code);
        json_schema!({"enum": codes})
    }
}

fn schema<T: JsonSchema>(kind: &str, title: &str) -> Value {
    let generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    schema["title"] = json!(format!("{title}, version 1"));
    // Serde writes this field, but the generator does not see it.
    schema["properties"]["kind"] = json!({"const": kind});
    schema["required"]
        .as_array_mut()
        .expect("names")
        .push(json!("kind"));
    schema["properties"]["version"] = json!({"description": "Version of this form.", "enum": [1]});
    schema
}

fn schema_of_what_if() -> Value {
    let mut schema = schema::<WhatIf>("WhatIf", "pod-reaper's forecast");
    let count = json!({"type": "integer", "minimum": 0});
    let counts = Fate::ALL.map(|fate| (fate.as_str().to_owned(), count.clone()));
    let counts = serde_json::Map::from_iter(counts);
    schema["properties"]["summary"]["properties"] = json!(counts);
    let reasons = json!(["mass-outage", "facts-unread"]);
    schema["$defs"]["BreakerEntry"]["properties"]["reason"]["enum"] = reasons;
    schema["properties"]["summary"]["required"] = json!(Fate::ALL.map(Fate::as_str));
    schema
}

#[test]
fn the_schemas_in_the_documentation_are_current() {
    let text = |schema: Value| serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
    expect_file!["../../docs/what-if.schema.json"].assert_eq(&text(schema_of_what_if()));
    let forecast = schema::<Forecast>("Forecast", "pod-reaper's forecast of each node");
    expect_file!["../../docs/forecast.schema.json"].assert_eq(&text(forecast));
    let explained = schema::<Explanation>("Explanation", "pod-reaper's explanation");
    expect_file!["../../docs/explain.schema.json"].assert_eq(&text(explained));
}
