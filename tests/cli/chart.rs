//! `charts/pod-reaper` beside what it is made of: the manifests in `cronjob/`, and the options of the program. On a real API
//! server it is tested by `tests/api_server/chart.rs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use expect_test::expect_file;
use pod_reaper_test_support::{installed::variable, pages, samples};
use serde_json::Value;

use crate::{Ended, options_with_variables, reaper};

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
        ("alerts.yaml", "alerts.yaml"),
    ] {
        let copy = root().join("charts/pod-reaper/files").join(copy);
        expect_file![copy].assert_eq(&read(&format!("cronjob/{original}")));
    }
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

/// The entries of these values in the container's env, except those whose value is somewhere else.
fn env_of(values: &Value) -> BTreeMap<String, String> {
    let options = values["options"].as_object().into_iter().flatten();
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let options = options.map(|(name, value)| (variable(name), text(value)));
    let further = values["env"].as_array().into_iter().flatten();
    let further = further.filter_map(|entry| {
        let (name, value) = (entry["name"].as_str()?, entry["value"].as_str()?);
        Some((name.to_owned(), value.to_owned()))
    });
    options.chain(further).collect()
}

/// The shipped options are the defaults of the program, except that a person is called. `tests/api_server/chart.rs` compares
/// the chart with the CronJob.
#[test]
fn what_is_shipped_are_the_defaults() {
    let known = options_with_variables().into_iter();
    let known = known.map(|option| (option.variable, option.default));
    let known = known.collect::<BTreeMap<_, _>>();
    for (name, shipped) in env_of(&yaml("charts/pod-reaper/values.yaml")) {
        let default = known[&name].as_deref();
        match name.as_str() {
            "EXIT_ON_MANUAL" => assert_eq!(shipped, "true"),
            _ => assert_eq!(shipped, default.unwrap_or_default(), "{name}"),
        }
    }
}

/// With the defaults, and with each value file.
#[test]
fn the_program_accepts_what_the_values_set() {
    let mut all = value_files();
    assert!(all.len() >= 7, "{} files", all.len());
    all.push(("values.yaml".into(), yaml("charts/pod-reaper/values.yaml")));
    for (file, values) in all {
        let mut run = reaper(&["--snapshot", "six-nodes.json"]);
        for (name, value) in env_of(&values) {
            run = run.env(&name, &value);
        }
        let Ended { code, err, .. } = run.run();
        assert!([0, 5].contains(&code), "{file}: {code}: {err}");
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
        a negative duration: {options: {reapOlderThan: '-1m'}}
        an option that env sets: {options: {maxDeletes: 5}}
        true as a text: {options: {exitOnManual: 'true'}}
        a dry run that is neither true nor false: {options: {dryRun: client}}
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
        a switch that is a text: {kosmosGuard: {enabled: 'yes'}}
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
