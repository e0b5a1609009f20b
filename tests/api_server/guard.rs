//! The guard restricts the account, under any name, even if the account has more permissions than its role grants. The guard
//! restricts no other account. With `--require-guard` the program runs only if the guard has proved itself. The guard permits the
//! program's own requests; `manifests` tests whole runs under the guard.

use crate::{
    prelude::*,
    support::{
        installed::install,
        samples::{status_patch, with},
    },
};
use k8s_openapi::ByteString;
use pod_reaper::cluster::REFUSAL;
use std::fmt::Display;

pub const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
pub const STUCK: &str = "/api/v1/namespaces/apps/pods/stuck";
/// The pod that the program treats as its own.
pub const OWN: &str = "pod-reaper-1";

/// An installation of `cronjob/`.
struct Installed {
    how: &'static str,
    /// The directory that is applied.
    manifests: String,
    namespace: &'static str,
    account: String,
}

/// The shipped installation and common changes of it.
fn installations() -> [Installed; 5] {
    let rendered = |lines: &str| kustomized(DEFAULT, &[], lines);
    let shipped = rendered("");
    let by_hand = shipped.lines().map(|line| match line.split_once(": ") {
        Some((key, "pod-reaper")) if !key.contains('/') => format!("{key}: grim\n"),
        _ => format!("{line}\n"),
    });
    let by_hand = by_hand.collect();
    let installed = |how, manifests, namespace, name: &str| Installed {
        how,
        manifests,
        namespace,
        account: format!("system:serviceaccount:{namespace}:{name}"),
    };
    let all = "namespace: other\nnamePrefix: acme-\nnameSuffix: -eu\n";
    let prefix = rendered("namePrefix: acme-\n");
    let namespace = rendered("namespace: other\n");
    [
        installed("as shipped", shipped, "pod-reaper", "pod-reaper"),
        installed("under a prefix", prefix, "pod-reaper", "acme-pod-reaper"),
        installed("in another namespace", namespace, "other", "pod-reaper"),
        installed(
            "with all of it",
            rendered(all),
            "other",
            "acme-pod-reaper-eu",
        ),
        installed("renamed by hand", by_hand, "grim", "grim"),
    ]
}

impl Installed {
    /// Applies the manifests, and waits until the account has its permissions and its guard.
    fn apply(&self, cluster: &ControlPlane) {
        let file = cluster.dir.join("installed.yaml");
        fs::write(&file, &self.manifests).expect("our folder");
        let file = file.display().to_string();
        kubectl(cluster, &["apply", "--warnings-as-errors", "-f", &file]);
        own_pod(cluster, self.namespace);
        let env = &cluster.get(&pod_path(self.namespace, OWN))["spec"]["containers"][0]["env"];
        let required = yaml("{name: REQUIRE_GUARD, value: 'true'}");
        assert!(
            env.as_array().is_some_and(|env| env.contains(&required)),
            "{}: {env}",
            self.how
        );
        until("the guard is in force", || {
            is_guarded(cluster, &self.account, self.namespace)
        });
    }
}

/// Creates the CronJob's pod, in place of the CronJob controller.
pub fn own_pod(cluster: &ControlPlane, namespace: &str) {
    let cronjobs = cluster.get(&format!("/apis/batch/v1/namespaces/{namespace}/cronjobs"));
    let mut spec = cronjobs["items"][0]["spec"]["jobTemplate"]["spec"]["template"]["spec"].clone();
    // The pod has a node, so that it stays Terminating for a while when it is deleted.
    spec["nodeName"] = json!("ready-1");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": OWN}, "spec": spec});
    cluster.create(&format!("/api/v1/namespaces/{namespace}/pods"), pod);
}

fn at_once() -> Value {
    yaml("{gracePeriodSeconds: 0, propagationPolicy: Background}")
}

pub fn dry_run() -> Value {
    yaml("{gracePeriodSeconds: 0, propagationPolicy: Background, dryRun: [All]}")
}

/// The server's response if the account tries to delete the object, as a dry run.
pub fn rehearsed(account: &str, cluster: &ControlPlane, path: &str) -> (u16, String) {
    let (code, answer) = as_user(account, cluster, "DELETE", path, &dry_run());
    let message = answer["message"].as_str().unwrap_or_default();
    (code, message.to_owned())
}

/// Whether the guard refuses to let the account delete its own pod.
pub fn is_guarded(cluster: &ControlPlane, account: &str, namespace: &str) -> bool {
    let (_, message) = rehearsed(account, cluster, &pod_path(namespace, OWN));
    message.ends_with(REFUSAL)
}

/// The rules of an administrator.
const EVERYTHING: &str = "[{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]";

/// Gives a user the rules of a new `ClusterRole`.
pub fn grant(cluster: &ControlPlane, name: &str, user: &str, rules: &(impl Display + ?Sized)) {
    let role = format!(
        "{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {{name: {name}}}, rules: {rules}}}"
    );
    cluster.create(&format!("{RBAC}/clusterroles"), yaml(&role));
    bind(
        cluster,
        ("ClusterRoleBinding", "clusterrolebindings"),
        name,
        user,
    );
}

/// The kind and path of a binding that grants a role in one namespace.
pub const IN_APPS: (&str, &str) = ("RoleBinding", "namespaces/apps/rolebindings");

pub fn bind(cluster: &ControlPlane, (kind, place): (&str, &str), role: &str, user: &str) {
    let binding = format!(
        "
        apiVersion: rbac.authorization.k8s.io/v1
        kind: {kind}
        metadata: {{name: {role}}}
        roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}
        subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: '{user}'}}]
        "
    );
    cluster.create(&format!("{RBAC}/{place}"), yaml(&binding));
}

/// Every verb on pods, so that only a guard can refuse.
const ALL_OF_PODS: &str = "[{apiGroups: [''], resources: [pods, pods/*], verbs: ['*']}]";

fn give_all_rights_on_pods(cluster: &ControlPlane, account: &str) {
    grant(cluster, "stolen", account, ALL_OF_PODS);
    until("the rights are there", || {
        let pods = "/api/v1/namespaces/default/pods?dryRun=All";
        as_user(account, cluster, "DELETE", pods, &json!({})).0 != 403
    });
}

/// The path of the guard's policy, with any name prefix.
fn policy(cluster: &ControlPlane) -> String {
    let policies =
        cluster.get(&format!("{ADMISSION}/validatingadmissionpolicies"))["items"].clone();
    let names = policies
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| str_of(&policy["metadata"]["name"]));
    let ours = names
        .filter(|name| name.contains("pod-reaper-guard"))
        .collect_vec();
    assert_eq!(ours.len(), 1, "{ours:?}");
    format!("{ADMISSION}/validatingadmissionpolicies/{}", ours[0])
}

/// Sends the requests of all rows of the YAML as the account. The guard must refuse each in the words of `says`, which default to
/// the words of its first rule. `delete` and `patch` are paths, and `fail` is the program's own patch of that pod's status.
/// `with` is laid over the body. Returns the words.
fn attacked(
    cluster: &ControlPlane,
    (how, account, policy): (&str, &str, &str),
    rows: &str,
    dry: &[bool],
) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for row in yaml(rows).as_array().expect("a list") {
        let text = |field: &str| row[field].as_str();
        let what = format!("{how}: {row}");
        let says = text("says").unwrap_or(REFUSAL);
        for dry in dry {
            let (method, mut path, mut body) = match (text("delete"), text("patch"), text("fail")) {
                (Some(path), ..) => ("DELETE", path.to_owned(), row["with"].clone()),
                (_, Some(path), _) => ("PATCH", path.to_owned(), row["with"].clone()),
                (.., name) => {
                    let path = pod_path("apps", name.expect("a pod"));
                    let patch = status_patch(&cluster.get(&path), row["with"].clone());
                    ("PATCH", format!("{path}/status"), patch)
                }
            };
            if *dry && method == "DELETE" {
                body["dryRun"] = json!(["All"]);
            } else if *dry {
                path.push_str("?dryRun=All");
            }
            let (code, answer) = as_user(account, cluster, method, &path, &body);
            let message = answer["message"].as_str().unwrap_or_default();
            assert_eq!(code, 403, "{what}, dry {dry}: {message}");
            assert!(
                message.contains(policy) && message.contains(says),
                "{what}, dry {dry}: {message}"
            );
        }
        words.insert(says.to_owned());
    }
    words
}

#[test]
fn it_stops_what_the_program_never_does_however_it_is_installed() {
    let installations = installations();
    for installed in installations {
        let cluster = fresh();
        installed.apply(&cluster);
        it_stops_what_the_program_never_does(&cluster, installed.how, &installed.account);
    }
}

pub fn it_stops_what_the_program_never_does(cluster: &ControlPlane, how: &str, account: &str) {
    give_all_rights_on_pods(cluster, account);
    make(
        cluster,
        "
        Node well: {ready: 'True'}
        Node dead: {}
        Namespace annotated: {metadata: {annotations: {pod-reaper.io/skip: 'true'}}}
        Namespace labelled: {metadata: {labels: {pod-reaper.io/skip: 'true'}}}
        Pod annotated/in-there: {grace: 600}
        Pod labelled/in-there: {grace: 600}
        ",
    );
    let attacks = yaml(include_str!("../data/attacks.yaml"));
    let pods = |said: &Value| {
        for (name, more) in said.as_object().expect("a mapping") {
            let pod = with(attacks["usual"].clone(), more.clone());
            make(cluster, &format!("Pod apps/{name}: {pod}"));
        }
    };
    pods(&attacks["pods"]);
    let held = pod_path("apps", "held");
    let before = cluster.get("/api/v1/pods")["items"].clone();
    let guard = (how, account, "pod-reaper-guard");
    let rows = attacks["attacks"].to_string();
    let rows = rows.replace("LONG", &"x".repeat(5_000));
    let answers = attacked(cluster, guard, &rows, &[true, false]);
    assert_eq!(
        cluster.get("/api/v1/pods")["items"],
        before,
        "nothing has changed"
    );
    // Every validation of the policy refused a request, so removing one would not go unnoticed.
    for validation in cluster.get(&policy(cluster))["spec"]["validations"]
        .as_array()
        .unwrap()
    {
        let message = str_of(&validation["message"]);
        assert!(
            answers.iter().any(|says| message.contains(says)),
            "no attack meets: {message}"
        );
    }

    // The guard permits the program's requests.
    let permitted = |method, path: &str, body: &Value| {
        let (code, answer) = as_user(account, cluster, method, path, body);
        assert_eq!(code, 200, "{answer}");
    };
    // The server reads the dry-run option of a delete from the body, if there is one, and that of a patch from the query.
    for (query, options) in [("?dryRun=All", dry_run()), ("", at_once())] {
        let patch = status_patch(&cluster.get(&held), json!({}));
        permitted("PATCH", &format!("{held}/status{query}"), &patch);
        for name in ["held", "stuck"] {
            permitted("DELETE", &pod_path("apps", name), &options);
        }
    }
    assert!(!cluster.has_pod("apps", "stuck"));
    // The value `false` does not opt the pod out.
    let skip = "{pod-reaper.io/skip: 'false'}";
    let opted_in = format!("opted-in: {{metadata: {{annotations: {skip}, labels: {skip}}}}}");
    pods(&yaml(&opted_in));
    permitted("DELETE", &pod_path("apps", "opted-in"), &at_once());
}

/// Creates a running pod, and one that is stuck on an `Unknown` node.
pub fn one_is_stuck(cluster: &ControlPlane) {
    one_dead_of_three(cluster);
    make(cluster, "Pod apps/stuck: {}");
    until_overdue();
}

pub fn of(namespace: &str) -> [(&str, &str); 3] {
    [
        ("REQUIRE_GUARD", "true"),
        ("POD_NAMESPACE", namespace),
        ("POD_NAME", OWN),
    ]
}

/// With every installation the guard is proved, the account has the permissions that it needs, and a stuck pod is reaped.
#[test]
fn a_run_whose_guard_is_proved_reaps_however_it_is_installed() {
    let installations = installations();
    for installed in installations {
        let cluster = fresh();
        one_is_stuck(&cluster);
        installed.apply(&cluster);
        let proxy = Proxy::to(&cluster);
        let kubeconfig = proxy.kubeconfig_of(&installed.account);
        let variables = of(installed.namespace);
        let run = run_with(&kubeconfig, &variables, &SHORT);
        assert_eq!(
            (run.code, &run.report["guard"]),
            (0, &json!("proved")),
            "{}: {}",
            installed.how,
            run.log
        );
        assert_eq!(
            run.report["summary"]["outcomes"]["deleted"], 1,
            "{}",
            installed.how
        );
        assert!(cluster.try_get(STUCK).is_none(), "{}", installed.how);

        // No pod is stuck anymore. Proving the guard costs two requests more than such a run needs.
        cluster.delete("/api/v1/nodes/dead", json!({}));
        let before = proxy.seen().len();
        let quiet = run_with(&kubeconfig, &variables, &SHORT);
        quiet.ends(0);
        let seen = proxy.seen().split_off(before);
        let own = pod_path(installed.namespace, OWN);
        let mut asked = seen
            .iter()
            .map(|seen| (seen.method.as_str(), seen.path.as_str()))
            .collect_vec();
        asked.sort_unstable();
        let nodes = "/api/v1/nodes?includeObject=None&limit=1000";
        let probe = format!("{own}?dryRun=All");
        assert_eq!(
            asked,
            [
                ("DELETE", probe.as_str()),
                ("GET", own.as_str()),
                ("GET", nodes)
            ]
        );
        let metadata = &cluster.get(&own)["metadata"];
        let probe = seen.iter().find(|seen| seen.is_write()).unwrap();
        let body = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Background",
            "preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
            "dryRun": ["All"],
        });
        assert_eq!(probe.body, body);
    }
}

/// Runs as the account with these variables, through a proxy, and asserts that the run deletes nothing. Returns the exit code and
/// the log.
fn refusal(cluster: &Fresh, variables: &[(&str, &str)], options: &[&str]) -> (i32, String) {
    refusal_of(ACCOUNT, cluster, variables, options)
}

/// Does the same for another account.
pub fn refusal_of(
    account: &str,
    cluster: &Fresh,
    variables: &[(&str, &str)],
    options: &[&str],
) -> (i32, String) {
    let proxy = Proxy::to(cluster);
    let output = binary(&proxy.kubeconfig_of(account))
        .envs(variables.iter().copied())
        .args(SHORT)
        .args(options)
        .output()
        .expect("it starts");
    let real = proxy
        .seen()
        .into_iter()
        .filter(|seen| seen.is_write() && !seen.is_dry());
    assert_eq!(
        real.map(|seen| seen.path).collect_vec(),
        Vec::<String>::new()
    );
    assert!(cluster.try_get(STUCK).is_some());
    (output.status.code().unwrap_or_default(), shown(&output))
}

/// Undoes a change.
type Restore<'a> = Box<dyn FnOnce() + 'a>;

/// Replaces the object at `path`, and returns a function that restores it.
fn replaced<'a>(
    cluster: &'a ControlPlane,
    path: &str,
    change: impl FnOnce(&mut Value),
) -> Restore<'a> {
    let mut was = cluster.get(path);
    let mut now = was.clone();
    change(&mut now);
    let version = cluster.put(path, now)["metadata"]["resourceVersion"].clone();
    let path = path.to_owned();
    Box::new(move || {
        was["metadata"]["resourceVersion"] = version;
        cluster.put(&path, was);
    })
}

/// Removes an object, and returns a function that creates it again.
fn removed<'a>(cluster: &'a ControlPlane, path: &str) -> Restore<'a> {
    let was = cluster.get(path);
    cluster.delete(path, json!({}));
    let collection = path.rsplit_once('/').unwrap().0.to_owned();
    let meta = json!({"name": was["metadata"]["name"], "labels": was["metadata"]["labels"]});
    // An object has only some of these fields, depending on its kind. The API server treats null as absent.
    let again = json!({"apiVersion": was["apiVersion"], "kind": was["kind"], "metadata": meta, "spec": was["spec"],
        "roleRef": was["roleRef"], "subjects": was["subjects"]});
    Box::new(move || drop(cluster.create(&collection, again)))
}

/// With any fault of the guard, or if anything else refuses first, the run refuses to start, reports what it found, and deletes
/// nothing.
#[test]
fn without_the_proof_the_run_refuses_and_reports_what_it_found() {
    let cluster = fresh();
    one_is_stuck(&cluster);
    install(&cluster, DEFAULT);
    own_pod(&cluster, "pod-reaper");
    let own = pod_path("pod-reaper", OWN);
    let variables = of("pod-reaper");
    let policy = format!("{ADMISSION}/validatingadmissionpolicies/pod-reaper-guard");
    let binding = format!("{ADMISSION}/validatingadmissionpolicybindings/pod-reaper-guard");
    let role = format!("{RBAC}/clusterroles/pod-reaper");
    let ask = || rehearsed(ACCOUNT, &cluster, &own);
    // Waits until the API server refuses the delete in the words of `answer`, or permits it if there are none. Then checks that
    // the run refuses, restores everything, and waits for the guard.
    let refused = |what: &str, answer: Option<&str>, says: &str, back: Vec<Restore<'_>>| {
        until(what, || {
            let (code, said) = ask();
            answer.map_or(code == 200, |answer| said.contains(answer))
        });
        let (code, log) = refusal(&cluster, &variables, &[]);
        assert_eq!(code, 1, "{what}: {log}");
        let lets = answer.is_some()
            || log.contains("the API server would let this account delete a running pod: ");
        assert!(
            lets && log.contains(says) && log.contains("nothing was deleted"),
            "{what}: {log}"
        );
        for restore in back {
            restore();
        }
        until("the guard is back", || {
            is_guarded(&cluster, ACCOUNT, "pod-reaper")
        });
    };
    // Each row has the change to an object or to the role, and what the run says.
    let rows = "
- {what: no policy, remove: [POLICY], says: the guard is not installed}
- {what: no binding, remove: [BINDING], says: the guard is not installed}
- what: it only audits
  change: BINDING
  with: {spec: {validationActions: [Audit, Warn]}}
  says: does not deny
- what: it is elsewhere
  change: BINDING
  with: {spec: {matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: apps}}}}}
  says: does not apply to this account
- {what: no marker, role without: be-guarded, says: does not apply to this account}
- what: an administrator
  grant: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]
  says: does not apply to this account
- {what: a validation fails, fails: /spec/validations/0, answer: no such, says: an expression of a policy failed}
- {what: the match fails, fails: /spec/matchConditions/0, answer: no such, says: an expression of a policy failed}
- {what: RBAC, role without: delete, answer: cannot delete, says: 'RBAC refused the dry-run delete before the guard saw it'}
- {what: another policy, answer: the other one, says: another policy or webhook refused the dry-run delete first}
- {what: a webhook, answer: dry run, says: a webhook without dry-run support was asked first}
";
    let rows = rows
        .replace("POLICY", &policy)
        .replace("BINDING", &binding)
        .replace("RBAC/", &format!("{RBAC}/"));
    let removal = |path: String| -> Restore<'_> {
        let cluster = &cluster;
        Box::new(move || drop(cluster.delete(&path, json!({}))))
    };
    for row in yaml(&rows).as_array().unwrap() {
        let text = |field: &str| row[field].as_str();
        let mut back = Vec::new();
        for path in row["remove"].as_array().into_iter().flatten() {
            back.push(removed(&cluster, path.as_str().unwrap()));
        }
        if let Some(path) = text("change") {
            let change = |now: &mut Value| *now = with(now.take(), row["with"].clone());
            back.push(replaced(&cluster, path, change));
        }
        if let Some(verb) = text("role without") {
            let without = |now: &mut Value| {
                let rules = now["rules"].as_array_mut().unwrap();
                rules.retain(|rule| rule["verbs"] != json!([verb]));
            };
            back.push(replaced(&cluster, &role, without));
        }
        if !row["grant"].is_null() {
            grant(&cluster, "everything", ACCOUNT, &row["grant"]);
            back.push(removal(format!("{RBAC}/clusterrolebindings/everything")));
        }
        if let Some(place) = text("fails") {
            let fails = |now: &mut Value| {
                now.pointer_mut(place).unwrap()["expression"] =
                    json!("oldObject.metadata.labels['no-such'] == 'x'");
            };
            back.push(replaced(&cluster, &policy, fails));
        }
        if text("answer") == Some("the other one") {
            back.push(removal(another_policy(&cluster, || ask().1)));
        }
        if text("answer") == Some("dry run") {
            back.push(removal(webhook_without_dry_run(&cluster)));
        }
        refused(
            text("what").unwrap(),
            text("answer"),
            text("says").unwrap(),
            back,
        );
    }

    let named = |name: &'static str| {
        [
            ("REQUIRE_GUARD", "true"),
            ("POD_NAMESPACE", "pod-reaper"),
            ("POD_NAME", name),
        ]
    };
    for (what, variables) in [
        ("not in a pod", &variables[..1]),
        ("half of it", &variables[..2]),
        ("an empty name", &named("")),
        ("another's name", &named("pod-reaper-2")),
    ] {
        let (code, log) = refusal(&cluster, variables, &[]);
        assert!(code == 1 && log.contains("POD_NAME"), "{what}: {log}");
        // A run that writes nothing does not need the proof.
        let (code, log) = refusal(&cluster, variables, &["--dry-run"]);
        assert_eq!(code, 0, "{what}: {log}");
        assert!(!log.contains("uard"), "{what}: {log}");
    }

    cluster.delete(&own, yaml("{gracePeriodSeconds: 600}"));
    let (code, log) = refusal(&cluster, &variables, &[]);
    assert!(code == 1 && log.contains("own pod is Terminating"), "{log}");
    cluster.delete(&own, at_once());
    own_pod(&cluster, "pod-reaper");

    // Once everything is restored the program runs.
    let proxy = Proxy::to(&cluster);
    let run = run_with(&proxy.kubeconfig_of(ACCOUNT), &variables, &SHORT);
    assert_eq!(
        (run.code, &run.report["summary"]["outcomes"]["deleted"]),
        (0, &json!(1)),
        "{}",
        run.log
    );
}

/// Creates a policy that denies every delete of a pod in the namespace `denied` and of the reaper's own pod, and that comes
/// before the guard. Returns the path of its binding. If two policies deny a request, the API server names only one. Which one it
/// names changes at random with each update.
fn another_policy(cluster: &ControlPlane, ask: impl Fn() -> String) -> String {
    const SAYS: &str = "the other one says no";
    let policy = format!(
        "
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingAdmissionPolicy
        metadata: {{name: another}}
        spec:
            matchConstraints:
                namespaceSelector:
                    matchExpressions: [{{key: kubernetes.io/metadata.name, operator: In, values: [pod-reaper, denied]}}]
                resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [DELETE], resources: [pods]}}]
            validations: [{{expression: 'false', message: {SAYS}, reason: Forbidden}}]
        "
    );
    cluster.create(
        &format!("{ADMISSION}/validatingadmissionpolicies"),
        yaml(&policy),
    );
    let bindings = format!("{ADMISSION}/validatingadmissionpolicybindings");
    let path = format!("{bindings}/another");
    // The guard permits a delete of this pod.
    make(
        cluster,
        "Pod denied/terminating: {node: ready-1, grace: 600}",
    );
    let denies = || rehearsed(ACCOUNT, cluster, &pod_path("denied", "terminating")).0 == 403;
    loop {
        let binding = "
            apiVersion: admissionregistration.k8s.io/v1
            kind: ValidatingAdmissionPolicyBinding
            metadata: {name: another}
            spec: {policyName: another, validationActions: [Deny]}
        ";
        cluster.create(&bindings, yaml(binding));
        until("the other policy is in force", denies);
        if ask().contains(SAYS) {
            return path;
        }
        cluster.delete(&path, json!({}));
        until("the other policy is out of force", || !denies());
    }
}

/// Creates a webhook with side effects in a dry run, and returns its path. The API server no longer accepts such a webhook, but
/// keeps existing ones, so the test writes it into etcd.
fn webhook_without_dry_run(cluster: &ControlPlane) -> String {
    let webhook = yaml(
        "
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingWebhookConfiguration
        metadata: {name: old, uid: 0b1e6b1c-6d0c-4a0e-9d53-0a5d3b1c2f11}
        webhooks:
        - name: old.example.org
          sideEffects: Some
          failurePolicy: Ignore
          admissionReviewVersions: [v1]
          clientConfig: {url: 'https://127.0.0.1:1/'}
          timeoutSeconds: 1
          matchPolicy: Exact
          reinvocationPolicy: Never
          objectSelector: {}
          namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: pod-reaper}}
          rules: [{apiGroups: [''], apiVersions: [v1], operations: [DELETE], resources: [pods], scope: '*'}]
        ",
    );
    let key = ByteString(b"/registry/mutatingwebhookconfigurations/old".to_vec());
    let body =
        json!({"key": key, "value": ByteString(webhook.to_string().into_bytes())}).to_string();
    let mut etcd = UnixStream::connect(cluster.dir.join("client:0")).expect("etcd listens there");
    let head = "POST /v3/kv/put HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Type: application/json";
    write!(
        etcd,
        "{head}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("it listens");
    let mut answer = String::new();
    etcd.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    format!("{ADMISSION}/mutatingwebhookconfigurations/old")
}

/// Other accounts with the same permissions can still delete running pods, set them to `Failed` and change them.
#[test]
fn it_stops_no_other_account() {
    let cluster = one_dead();
    install(&cluster, DEFAULT);
    own_pod(&cluster, "pod-reaper");
    assert!(is_guarded(&cluster, ACCOUNT, "pod-reaper"));
    namespace(&cluster, "apps");
    grant(&cluster, "gitops", "gitops", EVERYTHING);
    bind(&cluster, IN_APPS, "gitops", "owner");
    let service_accounts = [
        "system:serviceaccounts",
        "system:serviceaccounts:kube-system",
    ];
    let others: [(&str, &[&str]); 7] = [
        ("admin", &["system:masters"]),
        (
            "system:serviceaccount:kube-system:node-controller",
            &service_accounts,
        ),
        (
            "system:serviceaccount:kube-system:pod-garbage-collector",
            &service_accounts,
        ),
        (
            "system:serviceaccount:kube-system:namespace-controller",
            &service_accounts,
        ),
        ("system:node:ready-1", &["system:nodes"]),
        ("gitops", &[]),
        ("owner", &[]),
    ];
    for (user, groups) in others {
        let path = pod_path("apps", "alive");
        make(&cluster, "Pod apps/alive: {node: ready-1, grace: null}");
        let permitted = |method, path: &str, body| {
            let (code, answer) = as_member(&cluster, user, groups, (method, path), &body);
            assert_eq!(code, 200, "{user}: {answer}");
        };
        // The other accounts may only delete a pod, not write to one.
        if !user.ends_with("namespace-controller") {
            let failed = yaml("{status: {phase: Failed}}");
            permitted("PATCH", &format!("{path}/status"), failed);
        }
        if ["admin", "gitops", "owner"].contains(&user) {
            let labelled = yaml("{metadata: {labels: {a: b}}}");
            permitted("PATCH", &path, labelled);
        }
        permitted("DELETE", &path, at_once());
    }
}

/// On a root cluster of Kosmos, the pods that Kosmos manages are not evicted. The node controller still writes their status. All
/// other pods of the node are evicted and reaped as usual.
#[test]
fn kosmos_guard_holds_the_node_controller() {
    let cluster = one_dead();
    install(&cluster, DEFAULT);
    let component = folder("cronjob/components/kosmos-guard/kosmos-guard.yaml");
    kubectl(
        &cluster,
        &["apply", "--warnings-as-errors", "-f", &component],
    );
    let controller = "system:serviceaccount:kube-system:node-controller";
    let made = make(
        &cluster,
        "
        Node kosmos-one: {}
        Pod apps/by-name: {node: kosmos-one, grace: 600}
        Pod apps/ordinary: {grace: 600}
        Pod apps/taken-up: {grace: 600, owner: Job taken-up, metadata: {
            labels: {kosmos-io/pod: 'true'}, finalizers: [batch.kubernetes.io/job-tracking]}}
        ",
    );
    let delete = |user: &str, name: &str| rehearsed(user, &cluster, &pod_path("apps", name)).0;
    until("it is in force", || delete(controller, "taken-up") == 403);
    for (user, name, code) in [
        (controller, "by-name", 403),
        (controller, "ordinary", 200),
        (ACCOUNT, "by-name", 200),
        (ACCOUNT, "ordinary", 200),
        // The guard refuses this one.
        (ACCOUNT, "taken-up", 403),
    ] {
        assert_eq!(delete(user, name), code, "{user} {name}");
    }
    let status = format!("{}/status?dryRun=All", pod_path("apps", "taken-up"));
    let patch = status_patch(&made[3], json!({}));
    let (code, answer) = as_user(controller, &cluster, "PATCH", &status, &patch);
    assert_eq!(code, 200, "{answer}");
    cluster.delete(&pod_path("apps", "taken-up"), dry_run());
}
