//! Tests `charts/pod-reaper` with the real helm: the chart renders the same objects as kustomize, and its values are applied
//! without a warning. A release under another name and namespace reaps and is restricted by its guard, from its installation to
//! its removal.
//!
//! `tests/cli/chart.rs` compares the chart with its sources.

use crate::{
    guard::it_stops_what_the_program_never_does,
    prelude::*,
    support::{
        installed::kustomize,
        transcript::{bash, ended, plays},
    },
};
use std::sync::LazyLock;

const CHART: &str = "charts/pod-reaper";
const RELEASE: &str = "night-shift";
const NAMESPACE: &str = "ops";
/// The name of the release's objects.
const NAME: &str = "night-shift-pod-reaper";
const ACCOUNT: &str = "system:serviceaccount:ops:night-shift-pod-reaper";

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// The labels that only the chart's objects have.
const OWN_LABELS: [&str; 4] = [
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
];

/// All components except those that are part of the default or the dry run.
pub const COMPONENTS: [&str; 3] = ["eager", "kosmos-guard", "prometheus-rule"];

/// The value files that the normal run applies. `tests/run --values` applies all of them.
const IN_EACH_RUN: [&str; 2] = ["everything", "first-look"];

/// The paths where helm would read and write its configuration.
const NOWHERE: [&str; 5] = [
    "KUBECONFIG",
    "HOME",
    "HELM_CACHE_HOME",
    "HELM_CONFIG_HOME",
    "HELM_DATA_HOME",
];

/// The program is built once, by `scripts/tools/build`.
static HELM: LazyLock<PathBuf> = LazyLock::new(|| {
    let script = in_repository("scripts/tools/build");
    let built = Command::new(script)
        .arg("helm")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    let built = built.expect("scripts/tools/build starts");
    assert!(
        built.status.success(),
        "scripts/tools/build helm: {}",
        built.status
    );
    String::from_utf8(built.stdout)
        .expect("a path")
        .trim_end()
        .into()
});

/// A helm command on this cluster that neither reads nor writes the user's settings.
fn helm_command(cluster: &ControlPlane, arguments: &[&str]) -> Command {
    let mut command = offline_helm(arguments);
    // Helm caches the discovered API under HOME.
    command
        .env("KUBECONFIG", &cluster.kubeconfig)
        .env("HOME", &cluster.dir);
    command
}

/// A helm command without a cluster.
fn offline_helm(arguments: &[&str]) -> Command {
    let mut command = Command::new(&*HELM);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .envs(NOWHERE.map(|variable| (variable, "/nonexistent")));
    command
}

/// Runs helm, which must succeed without a warning, and returns its output.
#[track_caller]
fn succeeds(mut helm: Command) -> String {
    let output = helm.output().expect("helm starts");
    let said = String::from_utf8_lossy(&output.stderr).to_lowercase();
    assert!(
        output.status.success() && !said.contains("warn"),
        "{helm:?}\n{}",
        shown(&output)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the manifests that the chart renders.
#[track_caller]
pub fn rendered(release: &str, namespace: &str, options: &[&str]) -> String {
    let (chart, namespace) = (folder(CHART), format!("--namespace={namespace}"));
    succeeds(offline_helm(
        &[&["template", release, &chart, &namespace], options].concat(),
    ))
}

/// The value files by name.
fn value_files() -> BTreeMap<String, String> {
    let entries = fs::read_dir(in_repository(CHART).join("ci")).expect("a folder");
    let files = entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let name = path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .replace("-values", "");
            (name, path.display().to_string())
        });
    files.collect()
}

/// The objects by kind and name. What only the chart has compared with `cronjob/` is removed: its labels, the pod of `helm test`,
/// and the Namespace.
fn objects(manifests: &str) -> BTreeMap<(String, String), Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(manifests).expect("YAML");
    // In a folded text, kustomize doubles the line breaks before lines that are indented further.
    let all = Value::from(all).to_string().replace("\\n\\n", "\\n");
    let all: Vec<Value> = serde_json::from_str(&all).expect("JSON");
    let all = all.into_iter().filter(|object| {
        !object.is_null()
            && object["kind"] != "Namespace"
            && object["metadata"]["annotations"]["helm.sh/hook"].is_null()
    });
    let named = all.map(|mut object| {
        if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
            labels.retain(|label, _| !OWN_LABELS.contains(&label.as_str()));
        }
        // A merge patch puts its own variable first.
        let pod = "/spec/jobTemplate/spec/template/spec";
        for list in ["containers/0/env", "containers/0/volumeMounts", "volumes"] {
            let list = object.pointer_mut(&format!("{pod}/{list}"));
            if let Some(list) = list.and_then(Value::as_array_mut) {
                list.sort_by_key(|entry| entry["name"].to_string());
            }
        }
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        (
            (text(&object["kind"]), text(&object["metadata"]["name"])),
            object,
        )
    });
    named.collect()
}

#[test]
fn the_chart_renders_what_kustomize_renders() {
    const IMAGE: &str = "registry.example.com:5000/tools/pod-reaper";
    // The values put the release into a namespace of its own.
    const OWN_NAMESPACE: &str = "resourceQuota.enabled=true";
    const DIGEST: &str = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef";
    let images = format!("images: [{{name: pod-reaper, newName: '{IMAGE}', digest: '{DIGEST}'}}]");
    let everything = format!(
        "eager.enabled=true,\
         resourceQuota.enabled=true,kosmosGuard.enabled=true,\
         prometheusRule.enabled=true,\
         image.repository={IMAGE},image.digest={DIGEST}"
    );
    for (what, values, kustomized, count) in [
        (
            "the default",
            OWN_NAMESPACE,
            kustomize(&in_repository("cronjob")),
            7,
        ),
        (
            "the dry run",
            &format!("{OWN_NAMESPACE},options.dryRun=true,options.exitOnManual=false"),
            kustomize(&in_repository("cronjob/overlays/dry-run")),
            7,
        ),
        (
            "without the guard",
            "guard.enabled=false",
            kustomize(&in_repository("cronjob/base")),
            4,
        ),
        (
            "everything",
            &everything,
            self::kustomized("cronjob", &COMPONENTS, &images),
            10,
        ),
    ] {
        let rendered = rendered("pod-reaper", "pod-reaper", &["--set", values]);
        let (chart, kustomize) = (objects(&rendered), objects(&kustomized));
        assert_eq!(
            chart.keys().collect_vec(),
            kustomize.keys().collect_vec(),
            "{what}: the same objects"
        );
        assert_eq!(chart.len(), count, "{what}");
        for (name, object) in chart {
            assert_eq!(object, kustomize[&name], "{what}: {name:?}");
        }
    }
}

/// Tests which values helm and the chart refuse, which they accept, and what the chart's notes say.
#[test]
fn helm_refuses_values_that_cannot_work_and_the_notes_say_what_others_may_not_achieve() {
    let folder = HELM.parent().expect("a folder").display();
    let folders = format!("{folder}:/usr/bin:/bin");
    plays(
        &in_repository("tests/data/transcripts/helm.txt"),
        |command| {
            let mut bash = bash(command, &folders);
            bash.envs(NOWHERE.map(|variable| (variable, "/nonexistent")));
            bash.current_dir(in_repository("."));
            ended(bash)
        },
    );
}

/// The kind of the Prometheus Operator, with only the fields that the chart uses: the API server refuses any other field.
pub fn custom_kinds(cluster: &ControlPlane) {
    let text = "{type: string}";
    let texts = "{type: object, additionalProperties: {type: string}}";
    let rules = format!(
        "{{groups: {{type: array, items: {{type: object, properties: {{
            name: {text}, rules: {{type: array, items: {{type: object, properties: {{
                alert: {text}, record: {text}, expr: {text}, for: {text}, labels: {texts}, annotations: {texts}}}}}}}}}}}}}}}"
    );
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let name = "prometheusrules.monitoring.coreos.com";
    if cluster.try_get(&format!("{definitions}/{name}")).is_none() {
        let definition = format!(
            "
            apiVersion: apiextensions.k8s.io/v1
            kind: CustomResourceDefinition
            metadata: {{name: {name}}}
            spec:
                group: monitoring.coreos.com
                scope: Namespaced
                names: {{kind: PrometheusRule, listKind: PrometheusRuleList, plural: prometheusrules, singular: prometheusrule}}
                versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema:
                    {{type: object, properties: {{spec: {{type: object, properties: {rules}}}}}}}}}}}]
            "
        );
        cluster.create(definitions, yaml(&definition));
    }
    until("the kind is served", || {
        let kind = "/apis/monitoring.coreos.com/v1/prometheusrules";
        cluster.request("GET", kind, None).0 == 200
    });
}

/// Applies the manifests that the chart renders with these values, server-side.
fn is_applied_without_a_warning(what: &str, values: &[&str]) {
    let cluster = fresh();
    custom_kinds(&cluster);
    restricted_namespace(&cluster);
    let rendered = rendered(RELEASE, NAMESPACE, values);
    let file = cluster.dir.join("rendered.yaml");
    fs::write(&file, &rendered).expect("our folder");
    let file = file.display().to_string();
    let options = [
        "--server-side",
        "--warnings-as-errors",
        "--validate=strict",
        "-f",
        &file,
    ];
    let applied = kubectl(
        &cluster,
        &[&["apply", "--field-manager=helm"], &options[..]].concat(),
    );
    // The pod of `helm test` is admitted too.
    assert_eq!(
        applied.lines().count(),
        objects(&rendered).len() + 1,
        "{what}: {applied}"
    );
    // The pod of a run is admitted too. The test creates it, because the CronJob controller does not run here.
    own_pod(&cluster, NAMESPACE);
    // The objects are deleted explicitly: the namespace controller does not run here, so they would outlive their namespace.
    kubectl(
        &cluster,
        &["delete", "prometheusrules", "--all", "--all-namespaces"],
    );
}

/// A namespace under the restricted Pod Security Standard, created as the chart's README says.
fn restricted_namespace(cluster: &ControlPlane) {
    kubectl(cluster, &["create", "namespace", NAMESPACE]);
    for mode in ["enforce", "warn"] {
        let label = format!("pod-security.kubernetes.io/{mode}=restricted");
        kubectl(cluster, &["label", "namespace", NAMESPACE, &label]);
    }
}

#[test]
fn the_default_and_two_value_files_are_applied_without_a_warning() {
    is_applied_without_a_warning("the default", &[]);
    let files = value_files();
    for name in IN_EACH_RUN {
        is_applied_without_a_warning(name, &["--values", &files[name]]);
    }
}

#[test]
#[ignore = "on demand, on the newest and the oldest Kubernetes: tests/run --values"]
fn each_value_file_is_applied_without_a_warning() {
    for (name, file) in value_files() {
        is_applied_without_a_warning(&name, &["--values", &file]);
    }
}

/// Runs a helm command on the release with these options.
fn release(cluster: &ControlPlane, command: &str, options: &[&str]) -> String {
    let namespace = format!("--namespace={NAMESPACE}");
    let chart = folder(CHART);
    let chart = ["install", "upgrade"]
        .contains(&command)
        .then_some(chart.as_str());
    let arguments = [command, RELEASE]
        .into_iter()
        .chain(chart)
        .chain([namespace.as_str()]);
    let arguments = arguments.chain(options.iter().copied()).collect_vec();
    succeeds(helm_command(cluster, &arguments))
}

/// Installs the release as the README says, and waits until the guard is in force.
fn install(cluster: &ControlPlane, options: &[&str]) {
    restricted_namespace(cluster);
    let image = [
        "--set",
        "image.repository=registry.example.com/tools/pod-reaper",
    ];
    release(cluster, "install", &[&image[..], options].concat());
    own_pod(cluster, NAMESPACE);
    until("the guard is in force", || {
        is_guarded(cluster, ACCOUNT, NAMESPACE)
    });
}

#[test]
fn a_release_under_another_name_is_held_by_its_guards() {
    let cluster = fresh();
    install(&cluster, &[]);
    it_stops_what_the_program_never_does(&cluster, "by the chart", ACCOUNT);
}

/// The variables of the CronJob's container, including those that name its own pod.
fn variables(cluster: &ControlPlane) -> Vec<(String, String)> {
    let own = of(NAMESPACE).into_iter().skip(1);
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let shipped = settings_of(cluster, NAMESPACE, NAME).into_iter();
    shipped.chain(own).collect()
}

pub fn borrowed(variables: &[(String, String)]) -> Vec<(&str, &str)> {
    let variables = variables.iter();
    variables
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

/// Runs the program with the ServiceAccount's own token and the CronJob's variables. It must reap the stuck pod.
fn reaps(cluster: &ControlPlane, when: &str) {
    let variables = variables(cluster);
    let variables = borrowed(&variables);
    assert!(
        variables.contains(&("REQUIRE_GUARD", "true")),
        "{when}: {variables:?}"
    );
    assert!(cluster.try_get(STUCK).is_some(), "{when}");
    let run = run_with(&kubeconfig_of(cluster, NAMESPACE, NAME), &variables, &SHORT);
    run.ends(0);
    assert_eq!(run.report["guard"], "proved", "{when}");
    assert_eq!(run.report["summary"]["outcomes"]["deleted"], 1, "{when}");
    assert_eq!(cluster.try_get(STUCK), None, "{when}");
}

/// Everything that has the release's label, and the Secrets in which helm stores its revisions.
fn left(cluster: &ControlPlane) -> Vec<String> {
    let label = format!("--selector=app.kubernetes.io/instance={RELEASE}");
    let listable = ["api-resources", "--verbs=list,delete", "--output=name"];
    let kinds = kubectl(cluster, &listable).trim().replace('\n', ",");
    let labelled = ["get", &kinds, "--all-namespaces", "--output=name", &label];
    let secrets = ["get", "secrets", "--output=name", "--namespace", NAMESPACE];
    let found = kubectl(cluster, &labelled) + &kubectl(cluster, &secrets);
    found.lines().map(str::to_owned).collect()
}

#[test]
fn a_release_is_installed_upgraded_rolled_back_and_removed() {
    let cluster = fresh();
    one_is_stuck(&cluster);
    install(&cluster, &[]);
    let set_to = |name: &str, schedule: &str, value: &str| {
        let path = format!("/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/{NAME}");
        assert_eq!(cluster.get(&path)["spec"]["schedule"], schedule);
        let set = settings_of(&cluster, NAMESPACE, NAME);
        assert_eq!(is_set_to(&set, name).as_deref(), Some(value), "{set:?}");
    };
    set_to("REAP_OLDER_THAN", "*/10 * * * *", "10m");
    let kept = left(&cluster).into_iter();
    assert_eq!(
        kept.filter(|object| object.starts_with("secret/")).count(),
        1
    );

    // If the guard's policy or binding is missing, a run refuses to start. An upgrade restores the missing object.
    let variables = variables(&cluster);
    let variables = borrowed(&variables);
    let eager = ["--values", &value_files()["eager"]];
    for kind in [POLICIES, BINDINGS] {
        let taken_away = format!("{kind}/{NAME}-guard");

        cluster.delete(&taken_away, json!({}));
        until("the guard is out of force", || {
            !is_guarded(&cluster, ACCOUNT, NAMESPACE)
        });
        let (code, log) = refusal_of(ACCOUNT, &cluster, &variables, &[]);
        assert_eq!(code, 1, "{log}");
        release(&cluster, "upgrade", &eager);
        until("the guard is back", || {
            is_guarded(&cluster, ACCOUNT, NAMESPACE)
        });
    }
    set_to("REAP_OLDER_THAN", "*/2 * * * *", "1m");

    // With these values the account cannot write.
    release(
        &cluster,
        "upgrade",
        &["--values", &value_files()["first-look"]],
    );
    set_to("DRY_RUN", "*/10 * * * *", "true");
    let role = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{NAME}");
    let verbs = || {
        let rules = cluster.get(&role)["rules"].clone();
        let rules = rules.as_array().expect("rules").iter();
        let verbs = rules.flat_map(|rule| rule["verbs"].as_array().expect("verbs").clone());
        verbs.collect_vec()
    };
    // The guard permission allows nothing by itself.
    let reads = |verb: &Value| verb == "get" || verb == "list" || verb == "be-guarded";
    assert!(verbs().iter().all(reads), "{:?}", verbs());

    release(&cluster, "rollback", &["1"]);
    set_to("DRY_RUN", "*/10 * * * *", "false");
    assert!(verbs().contains(&json!("delete")), "{:?}", verbs());
    until("the guard is in force", || {
        is_guarded(&cluster, ACCOUNT, NAMESPACE)
    });
    reaps(&cluster, "after the rollback");

    release(&cluster, "uninstall", &[]);
    assert_eq!(left(&cluster), Vec::<String>::new());
    until("the account has no rights", || {
        let (code, said) = rehearsed(ACCOUNT, &cluster, &pod_path(NAMESPACE, OWN));
        code == 403 && said.contains("cannot delete")
    });
}
