//! The guard restricts the account, under any name, even if the account has more permissions than its role grants. The guard
//! restricts no other account. The option `--require-guard` lets the program run only if the guard has proved itself. The guard permits the
//! program's own requests; `manifests` tests whole runs under the guard.

use crate::{
    prelude::*,
    support::{
        installed::install,
        samples::{status_patch, with},
    },
};
use base64::Engine as _;
use pod_reaper::cluster::REFUSAL;
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

pub const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
pub const STUCK: &str = "/api/v1/namespaces/apps/pods/stuck";
/// The pod that the program treats as its own.
pub const OWN: &str = "pod-reaper-1";

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
fn grant(cluster: &ControlPlane, name: &str, user: &str, rules: &str) {
    let role = format!(
        "{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {{name: {name}}}, rules: {rules}}}"
    );
    cluster.create(&format!("{RBAC}/clusterroles"), yaml(&role));
    let binding = format!(
        "
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRoleBinding
        metadata: {{name: {name}}}
        roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}
        subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: '{user}'}}]
        "
    );
    cluster.create(&format!("{RBAC}/clusterrolebindings"), yaml(&binding));
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

/// Sends the requests of all rows of the YAML as the account. The guard must refuse each in the words of `says`, which default to
/// the words of its first rule. `delete` and `patch` are paths, and `fail` is the program's own patch of that pod's status.
/// `with` is laid over the body. Returns the words.
fn attacked(cluster: &ControlPlane, account: &str, policy: &str, rows: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for row in yaml(rows).as_array().expect("a list") {
        let text = |field: &str| row[field].as_str();
        let says = text("says").unwrap_or(REFUSAL);
        for dry in [true, false] {
            let (method, mut path, mut body) = match (text("delete"), text("patch"), text("fail")) {
                (Some(path), ..) => ("DELETE", path.to_owned(), row["with"].clone()),
                (_, Some(path), _) => ("PATCH", path.to_owned(), row["with"].clone()),
                (.., name) => {
                    let path = pod_path("apps", name.expect("a pod"));
                    let patch = status_patch(&cluster.get(&path), row["with"].clone());
                    ("PATCH", format!("{path}/status"), patch)
                }
            };
            if dry && method == "DELETE" {
                body["dryRun"] = json!(["All"]);
            } else if dry {
                path.push_str("?dryRun=All");
            }
            let (code, answer) = as_user(account, cluster, method, &path, &body);
            let message = answer["message"].as_str().unwrap_or_default();
            assert_eq!(code, 403, "{row}, dry {dry}: {message}");
            assert!(
                message.contains(policy) && message.contains(says),
                "{row}, dry {dry}: {message}"
            );
        }
        words.insert(says.to_owned());
    }
    words
}

/// Under other names and in another namespace the guard is proved, the account has the permissions that it needs, and a stuck pod
/// is reaped. An account with more permissions can do no more. `manifests` has a run as shipped, and `tests/cli` the same attacks.
#[test]
fn it_permits_what_the_program_does_and_nothing_else_however_it_is_installed() {
    const NAMES: &str = "namespace: other\nnamePrefix: acme-\nnameSuffix: -eu\n";
    const RENAMED: &str = "system:serviceaccount:other:acme-pod-reaper-eu";
    let cluster = fresh();
    one_is_stuck(&cluster);
    let file = cluster.dir.join("installed.yaml");
    fs::write(&file, kustomized(DEFAULT, &[], NAMES)).expect("our folder");
    let file = file.display().to_string();
    kubectl(&cluster, &["apply", "--warnings-as-errors", "-f", &file]);
    own_pod(&cluster, "other");
    until("the guard is in force", || {
        is_guarded(&cluster, RENAMED, "other")
    });
    let proxy = Proxy::to(&cluster);
    let run = run_with(&proxy.kubeconfig_of(RENAMED), &of("other"), &SHORT);
    run.ends(0);
    assert_eq!(run.report["guard"], "proved");
    assert_eq!(run.report["summary"]["outcomes"]["deleted"], 1);
    assert!(cluster.try_get(STUCK).is_none());
    it_stops_attacks(&cluster, RENAMED, "acme-pod-reaper-guard-eu");
    it_keeps_the_history(&cluster, RENAMED);
}

/// A second policy lets the account note what a run notes, in the very object that Kubernetes gives it, and nothing else.
fn it_keeps_the_history(cluster: &ControlPlane, account: &str) {
    const HISTORY: &str = "/api/v1/namespaces/other/configmaps/acme-pod-reaper-history-eu";
    const POLICY: &str = "acme-pod-reaper-history-guard-eu";
    let attacks = yaml(include_str!("../data/attacks.yaml"));
    let rows = attacks["history"].to_string().replace("HISTORY", HISTORY);
    let before = cluster.get(HISTORY);
    let answers = attacked(cluster, account, POLICY, &rows);
    assert_eq!(cluster.get(HISTORY), before, "nothing has changed");
    every_validation_refused(cluster, POLICY, &answers);
    let node = "0e2b5dd2-9a2c-4bb5-a1cf-66d3ef2a5f1c";
    for note in [json!("{}"), Value::Null] {
        let version = &cluster.get(HISTORY)["metadata"]["resourceVersion"];
        let body = json!({"metadata": {"resourceVersion": version}, "data": {node: note, "last-report": note}});
        let (code, answer) = as_user(account, cluster, "PATCH", HISTORY, &body);
        assert_eq!(code, 200, "{answer}");
    }
}

/// Every validation of the policy refused a request, so removing one would not go unnoticed.
fn every_validation_refused(cluster: &ControlPlane, policy: &str, answers: &BTreeSet<String>) {
    let policy = cluster.get(&format!("{ADMISSION}/validatingadmissionpolicies/{policy}"));
    for validation in policy["spec"]["validations"].as_array().unwrap() {
        let message = str_of(&validation["message"]);
        assert!(
            answers.iter().any(|says| message.contains(says)),
            "no attack meets: {message}"
        );
    }
}

fn it_stops_attacks(cluster: &ControlPlane, account: &str, policy: &str) {
    give_all_rights_on_pods(cluster, account);
    make(
        cluster,
        "
        Node well: {ready: 'True'}
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
    let rows = attacks["attacks"].to_string();
    let rows = rows.replace("LONG", &"x".repeat(5_000));
    let answers = attacked(cluster, account, policy, &rows);
    assert_eq!(
        cluster.get("/api/v1/pods")["items"],
        before,
        "nothing has changed"
    );
    every_validation_refused(cluster, policy, &answers);

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
    // The value `false` does not opt the pod out, and only the program knows whether a time has passed.
    for skip in [
        "false",
        "2026-01-31T03:00:00Z",
        "2026-01-31T03:00:00.5+01:00",
    ] {
        let skip = format!("{{pod-reaper.io/skip: '{skip}'}}");
        let label = "{pod-reaper.io/skip: 'false'}";
        let opted_in = format!("opted-in: {{metadata: {{annotations: {skip}, labels: {label}}}}}");
        pods(&yaml(&opted_in));
        permitted("DELETE", &pod_path("apps", "opted-in"), &at_once());
    }
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

/// Runs as the account, which ends with 1 because of `why`. Returns the log.
fn ends_unguarded(proxy: &Proxy, why: &str) -> String {
    let output = binary(&proxy.kubeconfig_of(ACCOUNT))
        .envs(of("pod-reaper"))
        .args(SHORT)
        .output()
        .expect("it starts");
    let log = shown(&output);
    assert_eq!(output.status.code(), Some(1), "{why}: {log}");
    log
}

/// A change, the words of the API server's refusal, if it then refuses, and those of the run.
type Row<'a> = (&'a dyn Fn(), &'a str, &'a str);

/// If the guard has any fault, or if something else refuses first, the run refuses to start, reports what it found, and deletes
/// nothing.
#[test]
fn without_the_proof_the_run_refuses_and_reports_what_it_found() {
    let cluster = fresh();
    one_is_stuck(&cluster);
    install(&cluster, DEFAULT);
    own_pod(&cluster, "pod-reaper");
    let policy = format!("{ADMISSION}/validatingadmissionpolicies/pod-reaper-guard");
    let binding = format!("{ADMISSION}/validatingadmissionpolicybindings/pod-reaper-guard");
    let role = format!("{RBAC}/clusterroles/pod-reaper");
    let administrator = format!("{RBAC}/clusterrolebindings/everything");
    let without = |verb: &str| {
        let mut rules = cluster.get(&role)["rules"].take();
        let listed = rules.as_array_mut().expect("rules");
        listed.retain(|rule| rule["verbs"] != json!([verb]));
        cluster.merge_patch(&role, json!({"rules": rules}));
    };
    let rows: [Row<'_>; 6] = [
        (
            &|| drop(cluster.delete(&binding, json!({}))),
            "",
            "the guard is not installed",
        ),
        (
            &|| {
                let audits = yaml("{spec: {validationActions: [Audit, Warn]}}");
                cluster.merge_patch(&binding, audits);
            },
            "",
            "does not deny",
        ),
        (
            &|| without("be-guarded"),
            "",
            "does not apply to this account",
        ),
        (
            &|| grant(&cluster, "everything", ACCOUNT, EVERYTHING),
            "",
            "does not apply to this account",
        ),
        (
            &|| {
                let mut spec = cluster.get(&policy)["spec"].take();
                spec["validations"][0]["expression"] =
                    json!("oldObject.metadata.labels['no-such'] == 'x'");
                cluster.merge_patch(&policy, json!({"spec": spec}));
            },
            "no such",
            "denied request: expression",
        ),
        (
            &|| without("delete"),
            "cannot delete",
            "cannot delete resource",
        ),
    ];
    for (change, refusal, says) in rows {
        change();
        until(says, || {
            let own = pod_path("pod-reaper", OWN);
            let (code, said) = rehearsed(ACCOUNT, &cluster, &own);
            (code == 200) == refusal.is_empty() && said.contains(refusal)
        });
        let proxy = Proxy::to(&cluster);
        let log = ends_unguarded(&proxy, says);
        assert!(log.contains(says), "{says}: {log}");
        assert!(log.contains("nothing was deleted"), "{says}: {log}");
        let seen = proxy.seen().into_iter();
        let real = seen.filter(|seen| seen.is_write() && !seen.is_dry());
        assert_eq!(real.count(), 0, "{says}");
        if cluster.try_get(&administrator).is_some() {
            cluster.delete(&administrator, json!({}));
        }
        install(&cluster, DEFAULT);
        until("the guard is back", || {
            is_guarded(&cluster, ACCOUNT, "pod-reaper")
        });
    }
}

/// Starts a webhook that refuses every request in these words, with the API server's own certificate.
fn refusing(cluster: &ControlPlane, words: &'static str) -> String {
    let certs = cluster.dir.join("certs");
    let chain = CertificateDer::pem_file_iter(certs.join("apiserver.crt")).unwrap();
    let key = PrivateKeyDer::from_pem_file(certs.join("apiserver.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.map(Result::unwrap).collect(), key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(tls, connection.unwrap()));
            let mut length = 0;
            for line in stream.by_ref().lines().map_while(Result::ok) {
                let line = line.to_lowercase();
                if let Some(said) = line.strip_prefix("content-length:") {
                    length = said.trim().parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            if stream.read_exact(&mut body).is_err() {
                continue;
            }
            let asked: Value = serde_json::from_slice(&body).unwrap();
            let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response":
                {"uid": asked["request"]["uid"], "allowed": false, "status": {"code": 403, "message": words}}});
            let answer = answer.to_string();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
            let answer = format!("{head}\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
            let _ = stream.get_mut().write_all(answer.as_bytes());
        }
    });
    format!("https://{address}/")
}

/// An author of webhooks can make one say what the guard says. That proves no guard.
#[test]
fn the_words_of_a_webhook_prove_nothing() {
    const WORDS: &str = "pods \"pod-reaper-1\" is forbidden: ValidatingAdmissionPolicy 'pod-reaper-guard' with binding \
        'pod-reaper-guard' denied request: pod-reaper's guard lets it touch only pods that are Terminating already";
    let cluster = fresh();
    one_is_stuck(&cluster);
    install(&cluster, DEFAULT);
    own_pod(&cluster, "pod-reaper");
    let binding = format!("{ADMISSION}/validatingadmissionpolicybindings/pod-reaper-guard");
    cluster.delete(&binding, json!({}));
    let bundle = fs::read(cluster.dir.join("certs/apiserver.crt")).unwrap();
    let bundle = base64::engine::general_purpose::STANDARD.encode(bundle);
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "liar"},
        "webhooks": [{"name": "liar.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": refusing(&cluster, WORDS), "caBundle": bundle},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "pod-reaper"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"]}]}],
    });
    cluster.create(
        &format!("{ADMISSION}/validatingwebhookconfigurations"),
        webhook,
    );
    let own = pod_path("pod-reaper", OWN);
    until("the webhook speaks", || {
        let (_, said) = rehearsed(ACCOUNT, &cluster, &own);
        said.starts_with("admission webhook") && said.ends_with(WORDS)
    });
    let log = ends_unguarded(&Proxy::to(&cluster), "the words of a webhook");
    assert!(
        log.contains("exempt the namespace of this pod from it: "),
        "{log}"
    );
    assert!(cluster.try_get(STUCK).is_some());
}

/// Somebody may remove the guard while a run reads a slow cluster. The run asks for a proof that is older than 30 s again before the
/// first delete.
#[test]
fn a_guard_that_went_during_a_run_stops_its_first_delete() {
    let cluster = fresh();
    one_is_stuck(&cluster);
    install(&cluster, DEFAULT);
    own_pod(&cluster, "pod-reaper");
    let server = cluster.server();
    let binding = format!("{ADMISSION}/validatingadmissionpolicybindings/pod-reaper-guard");
    let (is_noted, late) = (AtomicBool::new(false), AtomicUsize::new(0));
    let proxy = Proxy::start(server, move |seen| {
        if seen.is_write() && seen.path.contains("/configmaps/") {
            is_noted.store(true, Ordering::Relaxed);
        } else if is_noted.load(Ordering::Relaxed) && seen.path.contains("/namespaces?") {
            // A request may take ten seconds, and is sent again twice.
            let is_in_time = late.fetch_add(1, Ordering::Relaxed) == 2;
            if server.try_get(&binding).is_some() {
                server.delete(&binding, json!({}));
            }
            thread::sleep(Duration::from_secs(if is_in_time { 6 } else { 12 }));
        } else if is_noted.load(Ordering::Relaxed) && seen.path.ends_with("/nodes/dead") {
            thread::sleep(Duration::from_secs(7));
        }
    });
    let log = ends_unguarded(&proxy, "it went");
    assert!(log.contains("the guard is not installed"), "{log}");
    assert!(cluster.try_get(STUCK).is_some());
}

/// Other accounts with the same permissions can still delete running pods, set them to `Failed` and change them.
#[test]
fn it_stops_no_other_account() {
    let cluster = one_dead();
    install(&cluster, DEFAULT);
    own_pod(&cluster, "pod-reaper");
    assert!(is_guarded(&cluster, ACCOUNT, "pod-reaper"));
    grant(&cluster, "gitops", "gitops", EVERYTHING);
    let service_accounts = [
        "system:serviceaccounts",
        "system:serviceaccounts:kube-system",
    ];
    let controller = "system:serviceaccount:kube-system:node-controller";
    let others: [(&str, &[&str]); 4] = [
        ("admin", &["system:masters"]),
        (controller, &service_accounts),
        ("system:node:ready-1", &["system:nodes"]),
        ("gitops", &[]),
    ];
    for (user, groups) in others {
        let path = pod_path("apps", "alive");
        make(&cluster, "Pod apps/alive: {node: ready-1, grace: null}");
        let permitted = |method, path: &str, body| {
            let (code, answer) = as_member(&cluster, user, groups, (method, path), &body);
            assert_eq!(code, 200, "{user}: {answer}");
        };
        let failed = yaml("{status: {phase: Failed}}");
        permitted("PATCH", &format!("{path}/status"), failed);
        permitted("DELETE", &path, at_once());
    }
}
