//! Tests `charts/pod-reaper` with the real helm: the chart renders the same objects as kustomize, and a release under another
//! name and in another namespace reaps, is upgraded, and is removed.
//!
//! `tests/cli/chart.rs` compares the chart with its sources.

use crate::{
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

/// The labels that only the chart's objects have.
const OWN_LABELS: [&str; 4] = [
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
];

/// All components except those that are part of the default or the dry run.
const COMPONENTS: [&str; 3] = ["eager", "kosmos-guard", "prometheus-rule"];

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
fn rendered(release: &str, namespace: &str, options: &[&str]) -> String {
    let (chart, namespace) = (folder(CHART), format!("--namespace={namespace}"));
    succeeds(offline_helm(
        &[&["template", release, &chart, &namespace], options].concat(),
    ))
}

/// The objects by kind and name. Objects and labels that only one side has are removed: the chart's labels, the pod of `helm test`,
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
            12,
        ),
        (
            "the dry run",
            &format!("{OWN_NAMESPACE},options.dryRun=true"),
            kustomize(&in_repository("cronjob/overlays/dry-run")),
            12,
        ),
        (
            "without the guard",
            "guard.enabled=false",
            kustomize(&in_repository("cronjob/base")),
            7,
        ),
        (
            "everything",
            &everything,
            self::kustomized("cronjob", &COMPONENTS, &images),
            15,
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

/// A namespace under the restricted Pod Security Standard, created as the chart's README says.
fn restricted_namespace(cluster: &ControlPlane) {
    kubectl(cluster, &["create", "namespace", NAMESPACE]);
    for mode in ["enforce", "warn"] {
        let label = format!("pod-security.kubernetes.io/{mode}=restricted");
        kubectl(cluster, &["label", "namespace", NAMESPACE, &label]);
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

/// Runs the program with the ServiceAccount's own token and the CronJob's variables. It must reap the stuck pod.
fn reaps(cluster: &ControlPlane) {
    let shipped = settings_of(cluster, NAMESPACE, NAME);
    let shipped = shipped
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let variables = shipped.chain(of(NAMESPACE).into_iter().skip(1));
    let variables = variables.collect_vec();
    assert!(
        variables.contains(&("REQUIRE_GUARD", "true")),
        "{variables:?}"
    );
    let run = run_with(&kubeconfig_of(cluster, NAMESPACE, NAME), &variables, &SHORT);
    run.ends(0);
    assert_eq!(run.report["guard"], "proved");
    assert_eq!(run.report["summary"]["outcomes"]["deleted"], 1);
    assert_eq!(cluster.try_get(STUCK), None);
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
    restricted_namespace(&cluster);
    let image = "image.repository=registry.example.com/tools/pod-reaper";
    release(&cluster, "install", &["--set", image]);
    own_pod(&cluster, NAMESPACE);
    let set_to = |name: &str, schedule: &str, value: &str| {
        let path = format!("/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/{NAME}");
        assert_eq!(cluster.get(&path)["spec"]["schedule"], schedule);
        let set = settings_of(&cluster, NAMESPACE, NAME);
        assert_eq!(is_set_to(&set, name).as_deref(), Some(value), "{set:?}");
    };
    set_to("REAP_OLDER_THAN", "*/10 * * * *", "10m");
    let history = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/pod-reaper-history");
    let noted = json!({"data": {"last-report": "something"}});
    cluster.merge_patch(&history, noted.clone());
    let eager = folder("charts/pod-reaper/ci/eager-values.yaml");
    release(&cluster, "upgrade", &["--values", &eager]);
    set_to("REAP_OLDER_THAN", "*/2 * * * *", "1m");
    release(&cluster, "rollback", &["1"]);
    set_to("REAP_OLDER_THAN", "*/10 * * * *", "10m");
    assert_eq!(cluster.get(&history)["data"], noted["data"]);
    until("the guard is in force", || {
        is_guarded(&cluster, ACCOUNT, NAMESPACE)
    });
    reaps(&cluster);
    let report = &cluster.get(&history)["data"]["last-report"];
    assert!(str_of(report).contains("Force-deleted"), "{report}");

    assert!(
        left(&cluster)
            .iter()
            .any(|object| object.starts_with("secret/"))
    );
    release(&cluster, "uninstall", &[]);
    assert_eq!(left(&cluster), Vec::<String>::new());
}
