//! Deletes that real admission refuses, and a server that cannot be reached or does not accept the credentials.
//!
//! Every run here uses [`run_in`], so that each fault is also a test of S15 and S16 of docs/security.md: the run ends by its own
//! deadline, and the secrets that [`stuck`] and the proxy plant appear nowhere.

use crate::prelude::*;
use std::net::SocketAddr;

const REAP: &str = "stuck-on-not-ready-node";
/// In seconds.
const DEADLINE: u64 = 240;
/// The time that starting and ending a process takes on a busy machine.
const SLACK: Duration = Duration::from_secs(20);

/// Creates a pod that is stuck on `dead`, with a PVC on network storage and with secrets. Returns its UID.
fn stuck(cluster: &ControlPlane, namespace: &str, name: &str) -> String {
    let volume = "PersistentVolume SPACE-NAME: {claim: SPACE/NAME,
        spec: {csi: {driver: rbd.csi.ceph.com, volumeHandle: x}}}";
    let stuck = "SPACE/NAME: {owner: StatefulSet stuck, uses: NAME,
        metadata: {annotations: {example.org/token: MARKER}},
        spec: {containers: [{name: main, image: 'example/main:1', env: [{name: PASSWORD, value: MARKER}]}]}}";
    let [volume, stuck] =
        [volume, stuck].map(|said| said.replace("SPACE", namespace).replace("NAME", name));
    make(cluster, &volume);
    pod(cluster, &stuck)
}

/// Runs to the end, for one namespace and at the highest log level.
fn run_in(namespace: &str, kubeconfig: &Path) -> Run {
    let mut command = binary(kubeconfig);
    command
        .args(SHORT)
        .args(["--output", "json", "--log-level", "trace"])
        .args([
            "--deadline",
            &format!("{DEADLINE}s"),
            "--namespace-regex",
            &format!("^{namespace}$"),
        ])
        .env("SECRET", MARKER)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let started = Instant::now();
    let limit = Duration::from_secs(DEADLINE) + SLACK;
    let output = end_of(command.spawn().expect("it starts"), limit);
    assert!(started.elapsed() < limit, "it has to end by its deadline");
    let [out, log] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert!(
        !out.contains(MARKER) && !log.contains(MARKER),
        "a secret is printed: {out}{log}"
    );
    // The log events of the client library contain URLs and bodies, so none of them may be printed.
    assert!(!log.contains("http.") && !log.contains("hyper"), "{log}");
    let report = match out.as_str() {
        "" => Value::Null,
        out => serde_json::from_str(out).unwrap_or_else(|error| panic!("{error}: {out}")),
    };
    Run {
        code: output.status.code().expect("it ended by itself"),
        report,
        log,
    }
}

/// Creates a policy that denies every delete of a pod in `namespace`.
fn policy(cluster: &ControlPlane, namespace: &str, reason: Option<&str>) {
    let reason = reason.unwrap_or("null");
    let policy = format!(
        "
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingAdmissionPolicy
        metadata: {{name: {namespace}}}
        spec:
            failurePolicy: Fail
            matchConstraints:
                namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}
                resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [DELETE], resources: [pods]}}]
            validations: [{{expression: 'false', message: the policy says no, reason: {reason}}}]
        "
    );
    cluster.create(
        &format!("{ADMISSION}/validatingadmissionpolicies"),
        yaml(&policy),
    );
    let binding = format!(
        "
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingAdmissionPolicyBinding
        metadata: {{name: {namespace}}}
        spec: {{policyName: {namespace}, validationActions: [Deny]}}
        "
    );
    let bindings = format!("{ADMISSION}/validatingadmissionpolicybindings");
    cluster.create(&bindings, yaml(&binding));
}

/// Registers the webhook at `address` for every delete of a pod in `namespace`.
fn webhook(cluster: &ControlPlane, namespace: &str, address: SocketAddr) {
    let configuration = format!(
        "
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingWebhookConfiguration
        metadata: {{name: {namespace}}}
        webhooks:
        - name: {namespace}.example.org
          admissionReviewVersions: [v1]
          sideEffects: None
          failurePolicy: Fail
          timeoutSeconds: 5
          clientConfig: {{url: 'https://{address}/'}}
          namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}
          rules: [{{apiGroups: [''], apiVersions: [v1], operations: [DELETE], resources: [pods]}}]
        "
    );
    let webhooks = format!("{ADMISSION}/validatingwebhookconfigurations");
    cluster.create(&webhooks, yaml(&configuration));
}

/// Waits until the API server refuses a delete of the pod with this status.
fn until_refused(cluster: &ControlPlane, namespace: &str, code: u16) {
    until(namespace, || {
        let dry = yaml("{dryRun: [All], gracePeriodSeconds: 0}");
        let path = pod_path(namespace, "stuck-0");
        cluster.request("DELETE", &path, Some(dry)).0 == code
    });
}

/// The run sends each delete once. The other pod is deleted. A Job's pod whose delete is refused is not set to `Failed`.
#[test]
fn what_admission_refuses_is_denied_with_its_message_and_not_retried() {
    let cluster = one_dead();
    // The namespace, the status that the API server returns, and a part of its message.
    let cases = [
        ("by-policy", 422, "the policy says no"),
        ("by-policy-forbidden", 403, "the policy says no"),
        ("by-no-webhook", 500, "failed calling webhook"),
    ];
    let judged = cases.map(|(namespace, ..)| stuck(&cluster, namespace, "stuck-0"));
    let of_jobs = cases.map(|(namespace, ..)| {
        let of_job = "{owner: Job job, spec: {restartPolicy: Never},
            metadata: {finalizers: [batch.kubernetes.io/job-tracking]}}";
        pod(&cluster, &format!("{namespace}/job-0: {of_job}"))
    });
    let allowed = stuck(&cluster, "by-none", "stuck-0");
    policy(&cluster, "by-policy", None);
    policy(&cluster, "by-policy-forbidden", Some("Forbidden"));
    webhook(&cluster, "by-no-webhook", closed());
    for (namespace, code, _) in cases {
        until_refused(&cluster, namespace, code);
    }
    until_overdue();
    let proxy = Proxy::to(&cluster);
    let run = run_in("by-.*", &proxy.kubeconfig);
    run.ends(3);
    run.says(&allowed, REAPED);
    for ((namespace, code, words), judged) in cases.iter().zip(&judged) {
        run.says(judged, (REAP, Some("denied")));
        let says = str_of(&run.pod(judged)["outcomeDetail"]);
        assert!(
            says.contains(words) && says.contains(&format!("({code})")),
            "{namespace}: {says}"
        );
        // The server's message may contain anything, so the run writes it to the report but not to the log.
        assert!(!run.log.contains(words), "{namespace}: {}", run.log);
        assert!(cluster.has_pod(namespace, "stuck-0"));
    }
    for ((namespace, ..), of_job) in cases.iter().zip(&of_jobs) {
        run.says(of_job, (REAP, Some("denied")));
        let of_job = cluster.get(&pod_path(namespace, "job-0"));
        assert_ne!(of_job["status"]["phase"], "Failed");
    }
    let seen = proxy.seen().into_iter();
    let deletes = seen.filter(|seen| seen.method == "DELETE");
    assert_eq!(deletes.count(), 2 * cases.len() + 1);
}

/// An address on which nothing listens.
fn closed() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it is bound")
}

#[test]
fn without_a_trusted_server_and_accepted_credentials_the_program_cannot_run() {
    let cluster = one_dead();
    stuck(&cluster, "apps", "stuck-0");
    until_overdue();
    let real = fs::read_to_string(&cluster.kubeconfig).expect("a kubeconfig");
    let (token, server) = (&cluster.token, &cluster.url);
    assert!(real.contains(token) && real.contains(server));
    let was = "certificate-authority-data:";
    let closed = format!("https://{}", closed());
    // The name is too long for a host name, so connecting fails without a resolver.
    let nowhere = format!("https://{}.invalid", "a".repeat(64));
    let rows = [
        (real.replace(token, MARKER), server, "401"),
        (
            real.replace(was, "ignored:"),
            server,
            "invalid peer certificate",
        ),
        (real.replace(server, &closed), &closed, "refused"),
        (real.replace(server, &nowhere), &nowhere, "dns"),
    ];
    for (changed, server, says) in rows {
        let kubeconfig = cluster.dir.join("changed.kubeconfig");
        fs::write(&kubeconfig, changed).expect("our folder");
        let run = run_in("apps", &kubeconfig);
        assert_eq!((run.code, &run.report), (1, &Value::Null), "{}", run.log);
        for part in ["could not list nodes of context test at", server, says] {
            assert!(run.log.contains(part), "{part}: {}", run.log);
        }
    }
    assert!(cluster.has_pod("apps", "stuck-0"));
}
