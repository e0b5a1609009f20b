//! The tables of rules: for each rule, clusters at its boundary and beside it, and the verdicts that a run gives.
//!
//! The clusters are in the one vocabulary of the tests (`tests/support/src/words.rs`), laid over `base` of the table. The whole program
//! judges them, as a file.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{collections::BTreeMap, fs, path::Path};

use pod_reaper::{cli::Cli, run::run, settings::Settings, stop::Stop};
use pod_reaper_test_support::samples::{self, list, objects, with, yaml};
use serde_json::{Value, json};

/// Reads the table of one file: the base, and each group of rows.
fn table(file: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
    yaml(&fs::read_to_string(folder.join(file)).unwrap())
}

/// Judges the described cluster. Returns verdict and reason of each pod, or the exit code of a run that could not judge.
fn judge(described: &Value, options: &Value) -> Value {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, list(objects(described)).to_string()).unwrap();
    let mut args = vec![
        "pod-reaper".to_owned(),
        format!("--snapshot={}", file.path().display()),
        format!("--now={}", samples::NOW),
    ];
    let options = options.as_str().unwrap_or_default();
    args.extend(options.split_whitespace().map(str::to_owned));
    let settings = Settings::from(Cli::try_from_args(args.into_iter().map(Into::into)).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let report = runtime.block_on(async {
        let (_signal, stop) = Stop::manual(settings.deadline);
        run(&settings, &stop).await
    });
    let report =
        serde_json::to_value(report.unwrap_or_else(|error| panic!("{error}: {described}")))
            .unwrap();
    let pods = report["pods"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    pods.map(|pod| {
        let name = format!("{}/{}", text(&pod["namespace"]), text(&pod["name"]));
        (
            name,
            json!(format!(
                "{} {}",
                text(&pod["verdict"]),
                text(&pod["reason"])
            )),
        )
    })
    .collect()
}

/// Checks the rows of a table. A row gives one verdict, which is that of all pods, or the verdict of each pod. In the list of
/// expected failures every row must be wrong.
fn check(file: &str) {
    let is_later = file == "later.yaml";
    let table = table(file);
    let groups = table
        .as_object()
        .unwrap()
        .iter()
        .filter(|(group, _)| *group != "base");
    let mut wrongs = BTreeMap::new();
    let mut rows = 0;
    for (group, group_rows) in groups {
        for (case, row) in group_rows.as_object().unwrap() {
            rows += 1;
            let more = if row["in"].is_null() {
                json!({})
            } else {
                row["in"].clone()
            };
            let mut described = with(table["base"].clone(), more);
            // An entry that is null makes no object.
            described
                .as_object_mut()
                .unwrap()
                .retain(|_, entry| !entry.is_null());
            let given = judge(&described, &row["with"]);
            let wanted = match &row["gives"] {
                Value::String(verdict) => given
                    .as_object()
                    .unwrap()
                    .keys()
                    .map(|pod| (pod.clone(), json!(verdict)))
                    .collect(),
                each => each.clone(),
            };
            let is_right = given == wanted && !given.as_object().unwrap().is_empty();
            if is_right == is_later {
                wrongs.insert(
                    format!("{group}: {case}"),
                    json!({"wanted": row["gives"], "given": given}),
                );
            }
        }
    }
    assert!(rows > 0 && wrongs.is_empty(), "{file}: {wrongs:#?}");
}

#[test]
fn node_rules() {
    check("node.yaml");
}

#[test]
fn life_rules() {
    check("life.yaml");
}

#[test]
fn storage_rules() {
    check("storage.yaml");
}

#[test]
fn limits() {
    check("limits.yaml");
}

#[test]
fn expected_failures() {
    check("later.yaml");
}
