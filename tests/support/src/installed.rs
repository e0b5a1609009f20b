//! Applies the shipped manifests as the README says, and acts as their account.

use itertools::Itertools as _;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    ControlPlane, assets, in_repository,
    objects::{each, lease_path, make, pod_path, str_of},
    program::shown,
    samples::yaml,
};

/// The reaper's user name.
pub const ACCOUNT: &str = "system:serviceaccount:pod-reaper:pod-reaper";
/// The directory of the README's `kubectl apply -k`.
pub const DEFAULT: &str = "cronjob";
/// The installation without the guard and the namespace.
pub const BASE: &str = "cronjob/base";
pub const DRY_RUN: &str = "cronjob/overlays/dry-run";

/// The longest wait for the servers. A policy or a role is usually in force within a second, and a namespace is gone within ten.
const PATIENCE: Duration = Duration::from_mins(5);

/// The path of a directory of the tree, wherever the test was started.
pub fn folder(name: &str) -> String {
    in_repository(name).display().to_string()
}

/// Runs kubectl, which must succeed, and returns its output.
#[track_caller]
pub fn kubectl(cluster: &ControlPlane, arguments: &[&str]) -> String {
    let output = cluster.kubectl(arguments);
    assert!(
        output.status.success(),
        "kubectl {arguments:?}\n{}",
        shown(&output)
    );
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Runs kustomize on a directory.
pub fn run_kustomize(folder: &Path) -> Output {
    let kubectl = assets().expect("the programs").join("kubectl");
    Command::new(kubectl)
        .arg("kustomize")
        .arg(folder)
        .output()
        .expect("kubectl starts")
}

/// Returns the manifests that kustomize renders from a directory.
#[track_caller]
pub fn kustomize(folder: &Path) -> String {
    let output = run_kustomize(folder);
    assert!(
        output.status.success(),
        "{}: {}",
        folder.display(),
        shown(&output)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// Creates a kustomization of a directory of `cronjob/`, or of another resource, with these components and further lines.
pub fn own_kustomization(resource: &str, components: &[&str], lines: &str) -> TempDir {
    let dir = TempDir::new().expect("a folder");
    // kustomize accepts no absolute path of a directory.
    let depth = fs::canonicalize(dir.path())
        .expect("it is there")
        .components()
        .count();
    let up = "../".repeat(depth - 1);
    let mut components = components
        .iter()
        .map(|name| format!("'{up}.{}'", folder(&format!("cronjob/components/{name}"))));
    let components = components.join(", ");
    let text = format!(
        "resources: ['{up}.{}']\ncomponents: [{components}]\n{lines}",
        folder(resource)
    );
    fs::write(dir.path().join("kustomization.yaml"), text).expect("our folder");
    dir
}

/// Returns the manifests that kustomize renders from such a kustomization.
#[track_caller]
pub fn kustomized(resource: &str, components: &[&str], lines: &str) -> String {
    kustomize(own_kustomization(resource, components, lines).path())
}

/// Applies `what`, which must cause no warning, and waits until the account has its permissions and its guard.
pub fn install(cluster: &ControlPlane, what: &str) {
    let what = folder(what);
    kubectl(cluster, &["apply", "--warnings-as-errors", "-k", &what]);
    until("the account may read pods", || {
        may(cluster, "list", "", "pods", "")
    });
    let guarded =
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/pod-reaper-guard";
    if cluster.try_get(guarded).is_some() && may(cluster, "delete", "", "pods", "") {
        // The probe must use a pod that the guard protects: a permitted delete would not show that the guard is in force.
        make(
            cluster,
            "{Node guarded: {ready: 'True'}, Pod default/guarded: {node: guarded, grace: null}}",
        );
        until("the guard is in force", || {
            let at_once = json!({"gracePeriodSeconds": 0, "dryRun": ["All"]});
            as_account(cluster, "DELETE", &pod_path("default", "guarded"), &at_once).0 == 403
        });
        cluster.delete(
            &pod_path("default", "guarded"),
            json!({"gracePeriodSeconds": 0}),
        );
        cluster.delete("/api/v1/nodes/guarded", json!({}));
        cluster.delete(&lease_path("guarded"), json!({}));
    }
}

#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(
            started.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        thread::sleep(Duration::from_millis(50));
    }
}

/// Whether RBAC currently permits the account to do this. `resource` may have a `/subresource`.
pub fn may(
    cluster: &ControlPlane,
    verb: &str,
    group: &str,
    resource: &str,
    namespace: &str,
) -> bool {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review = yaml(&format!(
        "
        apiVersion: authorization.k8s.io/v1
        kind: SubjectAccessReview
        spec:
            user: {ACCOUNT}
            resourceAttributes: {{verb: {verb}, group: '{group}', resource: {resource},
                subresource: '{subresource}', namespace: '{namespace}'}}
        "
    ));
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    cluster.create(reviews, review)["status"]["allowed"] == true
}

/// Sends a request as the account.
pub fn as_account(cluster: &ControlPlane, method: &str, path: &str, body: &Value) -> (u16, Value) {
    as_user(ACCOUNT, cluster, method, path, body)
}

/// Sends a request as `user`. Returns the status, and the server's message or the object. A PATCH is a strategic merge patch.
pub fn as_user(
    user: &str,
    cluster: &ControlPlane,
    method: &str,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    as_member(cluster, user, &[], (method, path), body)
}

/// Sends a request as a member of these groups, which the server requires of nodes.
pub fn as_member(
    cluster: &ControlPlane,
    user: &str,
    groups: &[&str],
    (method, path): (&str, &str),
    body: &Value,
) -> (u16, Value) {
    let content_type = if method == "PATCH" {
        "application/strategic-merge-patch+json"
    } else {
        "application/json"
    };
    let mut headers = vec![
        ("content-type".to_owned(), content_type.to_owned()),
        ("impersonate-user".to_owned(), user.to_owned()),
    ];
    headers.extend(
        groups
            .iter()
            .map(|group| ("impersonate-group".to_owned(), (*group).to_owned())),
    );
    let (status, _, body) = cluster.forward(method, path, headers, body.to_string().into_bytes());
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// Writes a kubeconfig with a token of the ServiceAccount, requested as a kubelet does.
pub fn kubeconfig(cluster: &ControlPlane) -> PathBuf {
    kubeconfig_of(cluster, "pod-reaper", "pod-reaper")
}

/// Does the same for a ServiceAccount of another name. The token is bound to a pod of the CronJob of that name, as a kubelet's
/// request is. No controller needs to start that pod.
pub fn kubeconfig_of(cluster: &ControlPlane, namespace: &str, name: &str) -> PathBuf {
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let holder = format!("{name}-of-the-token");
    let path = pod_path(namespace, &holder);
    let pod = cluster.try_get(&path).unwrap_or_else(|| {
        let cronjobs = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs/{name}");
        let spec = &cluster.get(&cronjobs)["spec"]["jobTemplate"]["spec"]["template"]["spec"];
        cluster.create(
            &pods,
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": holder}, "spec": spec}),
        )
    });
    kubeconfig_of_pod(cluster, &pod)
}

/// Does the same for a pod, with a token of its account that is bound to the pod.
pub fn kubeconfig_of_pod(cluster: &ControlPlane, pod: &Value) -> PathBuf {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let metadata = &pod["metadata"];
    let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]});
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600, "boundObjectRef": bound}});
    let (namespace, account) = (
        text(&metadata["namespace"]),
        text(&pod["spec"]["serviceAccountName"]),
    );
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let answer = cluster.create(&path, request);
    let token = text(&answer["status"]["token"]);
    let own = fs::read_to_string(&cluster.kubeconfig).expect("a kubeconfig");
    let file = cluster.dir.join("account.kubeconfig");
    fs::write(&file, own.replace(&cluster.token, &token)).expect("our folder");
    file
}

/// The variables of the CronJob's container.
pub fn settings(cluster: &ControlPlane) -> Vec<(String, String)> {
    settings_of(cluster, "pod-reaper", "pod-reaper")
}

/// The variables for a CronJob of another name.
pub fn settings_of(cluster: &ControlPlane, namespace: &str, name: &str) -> Vec<(String, String)> {
    let cronjob = cluster.get(&format!(
        "/apis/batch/v1/namespaces/{namespace}/cronjobs/{name}"
    ));
    let pod = &cronjob["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(
        container["envFrom"],
        Value::Null,
        "any variable could be set"
    );
    let variables = each(&container["env"]).filter_map(|entry| {
        // A value that the kubelet would fill in is missing here.
        let (name, value) = (str_of(&entry["name"]), entry.get("value")?);
        Some((name.to_owned(), str_of(value).to_owned()))
    });
    variables.collect()
}

/// The value of a variable.
pub fn is_set_to(variables: &[(String, String)], name: &str) -> Option<String> {
    let found = variables.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.clone())
}

/// The variable of one of the chart's values: `REAP_OLDER_THAN` for `reapOlderThan`.
pub fn variable(option: &str) -> String {
    let letters = option.split_inclusive(char::is_uppercase);
    let words = letters.map(|word| match word.chars().last() {
        Some(last) if last.is_uppercase() => format!("{}_{last}", &word[..word.len() - 1]),
        _ => word.to_owned(),
    });
    words.collect::<String>().to_uppercase()
}

/// The chart's value of a variable: `reapOlderThan` for `REAP_OLDER_THAN`.
pub fn option(variable: &str) -> String {
    let (first, rest) = variable.split_once('_').unwrap_or((variable, ""));
    let rest = rest.split_inclusive('_').map(|word| {
        let (initial, word) = word.split_at(1.min(word.len()));
        initial.to_owned() + &word.trim_end_matches('_').to_lowercase()
    });
    first.to_lowercase() + &rest.collect::<String>()
}
