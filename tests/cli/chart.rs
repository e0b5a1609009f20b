//! `charts/pod-reaper` is compared with its sources: the manifests in `cronjob/`, and the options of the program.
//! `tests/api_server/chart.rs` tests the chart on a real API server.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use expect_test::expect_file;
use pod_reaper_test_support::{installed::variable, samples};
use serde_json::{Map, Value};

use crate::reaper;

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

fn value_files() -> Vec<Value> {
    let entries = fs::read_dir(root().join("charts/pod-reaper/ci")).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let texts = paths.map(|path| fs::read_to_string(path).expect("text"));
    texts.map(|text| samples::yaml(&text)).collect()
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
fn the_program_and_the_schema_accept_every_value_file_and_the_shipped_options_are_the_defaults() {
    let audit = |values: &Value| {
        let mut run = reaper(&["--snapshot", "six-nodes.json", "--output=json"]);
        for (name, value) in env_of(values) {
            run = run.env(&name, &value);
        }
        let ended = run.run();
        let is_good = [0, 5].contains(&ended.code);
        assert!(is_good, "{values}: {}", ended.err);
        ended.report()["settings"].take()
    };
    let shipped = yaml("charts/pod-reaper/values.yaml");
    assert_eq!(audit(&shipped), audit(&Value::Null));
    let schema = jsonschema::validator_for(&schema()).expect("a schema");
    for values in value_files().into_iter().chain([shipped]) {
        audit(&values);
        let wrong = schema
            .iter_errors(&values)
            .map(|error| format!("{error} at {}", error.instance_path()));
        assert_eq!(wrong.collect::<Vec<_>>(), Vec::<String>::new(), "{values}");
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

/// The chart's README names each value.
#[test]
fn the_readme_has_every_value() {
    let readme = read("charts/pod-reaper/README.md");
    let values = yaml("charts/pod-reaper/values.yaml");
    for (group, value) in values.as_object().expect("values") {
        let is_named = |path: &str| readme.contains(&format!("`{path}`"));
        let all_inside = |fields: &Map<String, Value>| {
            let mut names = fields.keys().map(|name| format!("{group}.{name}"));
            !fields.is_empty() && names.all(|path| is_named(&path))
        };
        let is_group = value.as_object().is_some_and(all_inside);
        assert!(is_named(group) || is_group, "{group}");
    }
}
