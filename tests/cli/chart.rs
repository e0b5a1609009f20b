//! `charts/pod-reaper` beside what it is made of: the manifests in `cronjob/`, and the options of the program. On a real API
//! server it is tested by `tests/api_server/chart.rs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, mem,
    path::{Path, PathBuf},
};

use expect_test::expect_file;
use pod_reaper_test_support::{
    installed::{option, variable},
    pages, samples,
};
use serde_json::Value;

use crate::{Ended, options_with_variables, reaper};

/// The settings that are shipped.
const SETTINGS: &str = "cronjob/base/settings.env";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

fn yaml(path: &str) -> Value {
    samples::yaml(&read(path))
}

fn schema() -> Value {
    serde_json::from_str(&read("charts/pod-reaper/values.schema.json")).expect("JSON")
}

/// The value files, by name.
fn value_files() -> Vec<(String, Value)> {
    let entries = fs::read_dir(root().join("charts/pod-reaper/ci")).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path().display().to_string());
    let files = paths.map(|path| {
        let text = fs::read_to_string(&path).expect("text");
        (path, samples::yaml(&text))
    });
    files.collect()
}

/// Helm reads no file outside the chart, and kustomize none outside a component, so both have copies: Flux leaves links out of
/// what it fetches (source-controller#191), and what is only made by packaging is in no repository that Argo CD or Flux reads.
/// `UPDATE_EXPECT=1` rewrites them.
#[test]
fn copies_are_those_of_cronjob() {
    for (copy, original) in [
        ("rbac.yaml", "base/rbac.yaml"),
        ("guard.yaml", "components/guard/guard.yaml"),
        (
            "kosmos-guard.yaml",
            "components/kosmos-guard/kosmos-guard.yaml",
        ),
        ("answers.yaml", "components/answers/answers.yaml"),
        ("alerts.yaml", "alerts.yaml"),
    ] {
        let copy = root().join("charts/pod-reaper/files").join(copy);
        expect_file![copy].assert_eq(&read(&format!("cronjob/{original}")));
    }
    {
        let rules = read("cronjob/alerts.yaml");
        let rules = rules.lines().map(|line| {
            if line.is_empty() {
                "\n".into()
            } else {
                format!("  {line}\n")
            }
        });
        let head = "# Made of cronjob/alerts.yaml by tests/cli/chart.rs.\n\
             apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: pod-reaper\n  \
             namespace: pod-reaper\n  labels:\n    app.kubernetes.io/name: pod-reaper\nspec:\n";
        let file = root().join("cronjob/components/prometheus-rule/prometheus-rule.yaml");
        expect_file![file].assert_eq(&(head.to_owned() + &rules.collect::<String>()));
    }
}

/// The variables of these options, as the chart's `ConfigMap` has them.
fn variables(options: &Value) -> BTreeMap<String, String> {
    let options = options.as_object().into_iter().flatten();
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    options
        .map(|(name, value)| (variable(name), text(value)))
        .collect()
}

#[test]
fn every_option_can_be_set_by_settings_and_by_values_and_there_are_no_others() {
    let known = options_with_variables().into_iter();
    let known = known.map(|option| (option.variable, (option.default, option.about)));
    let mut known = known.collect::<BTreeMap<_, _>>();
    // No ConfigMap sets these two. The template of a pod sets the first, where the guard is installed.
    for of_the_template in ["REQUIRE_GUARD", "REAP_SCRATCH"] {
        assert!(known.remove(of_the_template).is_some(), "{of_the_template}");
    }
    assert!(read("charts/pod-reaper/templates/_helpers.tpl").contains("REQUIRE_GUARD"));
    let settings = settings();
    let settings = settings
        .iter()
        .map(|(name, value, _)| (name.clone(), value.clone()))
        .collect::<BTreeMap<_, _>>();
    // `UPDATE_EXPECT=1` adds a setting that is not there yet, with its help for a comment.
    let mut whole = read(SETTINGS);
    for (name, (default, about)) in known
        .iter()
        .filter(|(name, _)| !settings.contains_key(*name))
    {
        let about = textwrap::wrap(about, 118).into_iter();
        let about = about
            .flat_map(|line| ["# ".into(), line, "\n".into()])
            .collect::<String>();
        whole += &format!(
            "\n{about}{name}={}\n",
            default.as_deref().unwrap_or_default()
        );
    }
    expect_file![root().join(SETTINGS)].assert_eq(&whole);
    assert_eq!(
        settings.keys().collect::<Vec<_>>(),
        known.keys().collect::<Vec<_>>()
    );
    // The shipped settings are the defaults of the program, except that a person is called.
    for (name, (default, _)) in known {
        let shipped = settings[&name].as_str();
        match default {
            _ if name == "EXIT_ON_MANUAL" => assert_eq!(shipped, "true"),
            Some(default) => assert_eq!(shipped, default, "{name}"),
            None if name == "DRY_RUN" => assert_eq!(shipped, "none"),
            None if name == "LOG_LEVEL" => assert_eq!(shipped, "info"),
            None => assert_eq!(shipped, "", "{name}"),
        }
    }
}

/// The settings that are shipped, in their order: variable, value and comment.
fn settings() -> Vec<(String, String, Vec<String>)> {
    let (mut settings, mut about) = (Vec::new(), Vec::new());
    for line in read(SETTINGS).lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            about.push(comment.to_owned());
        } else if let Some((name, value)) = line.split_once('=') {
            settings.push((name.to_owned(), value.to_owned(), mem::take(&mut about)));
        } else if line.is_empty() {
            about.clear();
        }
    }
    settings
}

/// The chart's options are the shipped settings, under the names of values. `UPDATE_EXPECT=1` rewrites them.
#[test]
fn the_values_have_every_setting() {
    let options = settings().into_iter().map(|(name, value, about)| {
        let about = about.iter().map(|line| {
            let words = line.split(' ').map(|word| {
                let is_variable = word.contains('_') && word.starts_with(char::is_uppercase);
                if is_variable {
                    option(word)
                } else {
                    word.to_owned()
                }
            });
            format!("  # {}\n", words.collect::<Vec<_>>().join(" "))
        });
        let value = match value.as_str() {
            "" => "\"\"",
            value => value,
        };
        format!(
            "{}  {}: {value}\n",
            about.collect::<String>(),
            option(&name)
        )
    });
    pages::compare(
        "charts/pod-reaper/values.yaml",
        "  # Made of cronjob/base/settings.env by tests/cli/chart.rs.\n\n",
        "  # End of the options.\n",
        &options.collect::<String>(),
    );
}

/// With the defaults, and with each value file.
#[test]
fn the_program_accepts_what_the_values_set() {
    let mut all = value_files();
    assert!(!all.is_empty());
    all.push(("values.yaml".into(), yaml("charts/pod-reaper/values.yaml")));
    for (file, values) in all {
        let run = reaper(&["--snapshot", "six-nodes.json"]);
        for (name, value) in variables(&values["options"]) {
            run.file(&format!("settings/{name}"), &value);
        }
        let directory = run.file("settings/..data", "").replace("/..data", "");
        let ended = run.env("POD_REAPER_SETTINGS", &directory).run();
        let Ended { code, err, .. } = &ended;
        assert!([0, 5].contains(code), "{file}: {code}: {err}");
        assert!(!err.contains("no effect"), "{file}: {err}");
    }
}

#[test]
fn the_schema_accepts_the_defaults_and_every_value_file() {
    let schema = jsonschema::validator_for(&schema()).expect("a schema");
    let mut all = value_files();
    all.push(("values.yaml".into(), yaml("charts/pod-reaper/values.yaml")));
    for (file, values) in all {
        let wrong = schema
            .iter_errors(&values)
            .map(|error| format!("{error} at {}", error.instance_path()));
        assert_eq!(wrong.collect::<Vec<_>>(), Vec::<String>::new(), "{file}");
    }
}

#[test]
fn the_schema_refuses_what_cannot_work() {
    let schema = jsonschema::validator_for(&schema()).expect("a schema");
    let bad = "
        a value that there is not: {images: {}}
        an option that there is not: {options: {reapOlderThen: '10m'}}
        a bare number for a duration: {options: {reapOlderThan: 10}}
        a duration without a unit: {options: {reapOlderThan: '10'}}
        months: {options: {reapOlderThan: '10M'}}
        no threshold: {options: {reapOlderThan: ''}}
        a negative duration: {options: {deadline: '-1m'}}
        an option that is gone: {options: {unreachableOnly: true}}
        true as a text: {options: {exitOnManual: 'true'}}
        a dry run of no kind: {options: {dryRun: 'yes'}}
        true for a dry run: {options: {dryRun: true}}
        fewer deletes than none: {options: {maxDeletes: -1}}
        a number as a text: {options: {maxDeletes: '5'}}
        no percentage: {options: {maxNotReadyPercent: 0}}
        more than all: {options: {maxNotReadyPercent: 101}}
        an owner kind with a blank: {options: {manualOwnerKind: 'Stateful Set'}}
        an image with its tag: {image: {repository: 'registry.example.com/pod-reaper:1'}}
        no image: {image: {repository: ''}}
        a digest of another length: {image: {digest: 'sha256:5f70bf18'}}
        a tag that YAML takes for a number: {image: {tag: 1.1}}
        a policy that kubelets do not know: {image: {pullPolicy: Sometimes}}
        names in place of references: {imagePullSecrets: [registry]}
        a schedule of four fields: {schedule: '* * * *'}
        no deadline: {activeDeadlineSeconds: 0}
        no failed Job for the alerts to see: {failedHistoryLimit: 0}
        its own pod's name: {env: [{name: POD_NAME, value: x}]}
        any variables: {envFrom: [{configMapRef: {name: a}}]}
        a variable that is no text: {env: [{name: MAX_DELETES, value: 5}]}
        a variable from nowhere: {env: [{name: CLUSTER_NAME, valueFrom: {}}]}
        a resource that pods do not have: {resources: {request: {cpu: '1'}}}
        an amount that is none: {resources: {limits: {memory: '128 MB'}}}
        an architecture without an image: {architectures: [riscv64]}
        a label that the guard's manifests use: {podLabels: {app.kubernetes.io/name: other}}
        a label that is the chart's: {commonLabels: {app.kubernetes.io/name: other}}
        a name in capitals: {fullnameOverride: Reaper}
        a registry with a scheme: {image: {registry: 'https://mirror.example'}}
        a guard that is not a switch: {guard: true}
        a switch that is a text: {answers: {enabled: 'yes'}}
        a label that is no text: {prometheusRule: {labels: {release: true}}}
    ";
    for (what, values) in samples::yaml(bad).as_object().expect("rows") {
        assert!(!schema.is_valid(values), "{what}: {values}");
    }
}

/// Every object of the schema refuses names that it does not list, apart from those that Kubernetes checks itself.
#[test]
fn the_schema_lists_what_values_has_and_nothing_else() {
    /// The paths of the values that a schema lists.
    fn listed(schema: &Value, all: &Value, path: &str, of: &mut BTreeSet<String>) {
        let schema = match schema["$ref"].as_str() {
            Some(place) => all.pointer(&place[1..]).expect("a definition"),
            None => schema,
        };
        match schema["properties"].as_object() {
            Some(properties) if path != "resources" => {
                assert_eq!(schema["additionalProperties"], false, "{path}");
                for (name, property) in properties.iter().filter(|(name, _)| *name != "global") {
                    let path = if path.is_empty() {
                        name.clone()
                    } else {
                        format!("{path}.{name}")
                    };
                    listed(property, all, &path, of);
                }
            }
            _ => drop(of.insert(path.to_owned())),
        }
    }
    let schema = schema();
    let mut in_schema = BTreeSet::new();
    listed(&schema, &schema, "", &mut in_schema);
    let documented = documented()
        .into_iter()
        .filter(|row| row.default.is_some())
        .map(|row| row.path);
    assert_eq!(documented.collect::<BTreeSet<_>>(), in_schema);
}

/// One value as `values.yaml` documents it.
struct Row {
    path: String,
    /// Absent for a group of values.
    default: Option<String>,
    about: String,
}

/// Each value with a comment, in the order of the file.
fn documented() -> Vec<Row> {
    let values = yaml("charts/pod-reaper/values.yaml");
    let mut rows = Vec::<Row>::new();
    let mut about = Vec::new();
    let mut inside: Vec<(usize, String)> = Vec::new();
    for line in read("charts/pod-reaper/values.yaml").lines() {
        let text = line.trim_start();
        if let Some(comment) = text.strip_prefix("# ") {
            about.push(comment.to_owned());
        } else if let Some((key, _)) = text.split_once(':').filter(|_| !text.starts_with('-')) {
            let depth = line.len() - text.len();
            inside.retain(|(outer, _)| *outer < depth);
            inside.push((depth, key.to_owned()));
            let names = inside
                .iter()
                .map(|(_, name)| name.as_str())
                .collect::<Vec<_>>();
            if !about.is_empty() {
                let value = values
                    .pointer(&format!("/{}", names.join("/")))
                    .expect("it is in the file");
                let group = rows
                    .iter_mut()
                    .find(|row| names.join(".").starts_with(&format!("{}.", row.path)));
                if let Some(group) = group {
                    group.default = None;
                }
                let (path, default) = (names.join("."), Some(value.to_string()));
                rows.push(Row {
                    path,
                    default,
                    about: about.join(" "),
                });
            }
            about.clear();
        } else {
            about.clear();
        }
    }
    rows
}

/// The table of the values in the chart's README. `UPDATE_EXPECT=1` rewrites it.
#[test]
fn the_readme_has_every_value() {
    let rows = documented().into_iter().map(|row| {
        let default = row
            .default
            .map(|default| format!("`{default}`"))
            .unwrap_or_default();
        format!(
            "| `{}` | {default} | {} |\n",
            row.path,
            row.about.replace('|', "\\|")
        )
    });
    let rows = rows.collect::<String>();
    pages::compare(
        "charts/pod-reaper/README.md",
        "<!-- values: made by tests/cli/chart.rs -->\n\n| value | default | what it is |\n| --- | --- | --- |\n",
        "\n<!-- end of values -->",
        &rows,
    );
}
