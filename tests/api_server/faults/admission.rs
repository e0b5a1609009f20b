//! Deletes that real admission refuses: policies of the API server, and a webhook.

use super::{DEADLINE, REAP, is_delete, run_in, stuck};
use crate::prelude::*;
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::net::SocketAddr;

/// Longest wait until the API server applies a policy or webhook. The API server usually takes about a second.
const HEEDED_WITHIN: Duration = Duration::from_secs(30);

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
fn webhook(cluster: &ControlPlane, namespace: &str, address: SocketAddr, authority: &str) {
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
          clientConfig: {{url: 'https://{address}/', caBundle: {authority}}}
          namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}
          rules: [{{apiGroups: [''], apiVersions: [v1], operations: [DELETE], resources: [pods]}}]
        "
    );
    let webhooks = format!("{ADMISSION}/validatingwebhookconfigurations");
    cluster.create(&webhooks, yaml(&configuration));
}

/// Creates a self-signed certificate for 127.0.0.1. Returns the paths of the certificate and its key.
pub fn certificate(cluster: &ControlPlane) -> (String, String) {
    let path = |name: &str| cluster.dir.join(name).display().to_string();
    let (certificate, key) = (path("other.crt"), path("other.key"));
    // An earlier test on the same server may have created the certificate.
    if !std::fs::exists(&certificate).expect("our folder") {
        let made = format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=other \
             -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE \
             -out {certificate} -keyout {key}"
        );
        let made = Command::new("openssl").args(made.split(' ')).output();
        let made = made.expect("openssl starts");
        succeeds(&made);
    }
    (certificate, key)
}

/// Starts a webhook that denies everything, and returns its address.
pub fn deny_all(certificate: &str, key: &str) -> SocketAddr {
    let certificate = CertificateDer::from_pem_file(certificate).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(key).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the versions are the provider's")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("the key is the certificate's");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection =
                ServerConnection::new(Arc::clone(&config)).expect("the configuration is good");
            // The API server handles a broken connection.
            thread::spawn(move || deny(StreamOwned::new(connection, stream)));
        }
    });
    address
}

/// Responds to the one request of a connection.
fn deny(mut stream: impl Read + Write) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let review: Value = loop {
        let mut piece = [0; 4096];
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            read => bytes.extend_from_slice(&piece[..read]),
        }
        // The body follows the empty line, and is complete once it parses as JSON.
        let text = String::from_utf8_lossy(&bytes);
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && let Ok(review) = serde_json::from_str(body)
        {
            break review;
        }
    };
    let uid = &review["request"]["uid"];
    let answer = format!(
        r#"{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {{
            "uid": {uid}, "allowed": false, "status": {{"code": 403, "message": "the webhook says no"}}}}}}"#
    );
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
        answer.len()
    )?;
    stream.flush()
}

/// Waits until the API server refuses a delete of the pod with this status.
fn until_refused(cluster: &ControlPlane, namespace: &str, code: u16) {
    let started = Instant::now();
    loop {
        let dry = yaml("{dryRun: [All], gracePeriodSeconds: 0}");
        let (status, answer) =
            cluster.request("DELETE", &pod_path(namespace, "stuck-0"), Some(dry));
        if status == code {
            return;
        }
        assert!(
            started.elapsed() < HEEDED_WITHIN,
            "{namespace}: {status} {answer}"
        );
        thread::sleep(Duration::from_millis(100));
    }
}

/// The run sends each delete once. The other pod is deleted.
#[test]
fn what_admission_refuses_is_denied_with_its_message_and_not_retried() {
    let cluster = one_dead();
    let closed = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port");
    let (certificate, key) = certificate(&cluster);
    let authority = base64(&std::fs::read(&certificate).expect("a certificate"));
    // The namespace, the status that the API server returns, and a part of its message.
    let cases = [
        ("by-policy", 422, "the policy says no"),
        ("by-policy-forbidden", 403, "the policy says no"),
        ("by-webhook", 403, "the webhook says no"),
        ("by-no-webhook", 500, "failed calling webhook"),
    ];
    let judged = cases.map(|(namespace, ..)| stuck(&cluster, namespace, "stuck-0"));
    let allowed = stuck(&cluster, "by-none", "stuck-0");
    policy(&cluster, "by-policy", None);
    policy(&cluster, "by-policy-forbidden", Some("Forbidden"));
    webhook(
        &cluster,
        "by-webhook",
        deny_all(&certificate, &key),
        &authority,
    );
    webhook(&cluster, "by-no-webhook", closed, &authority);
    for (namespace, code, _) in cases {
        until_refused(&cluster, namespace, code);
    }
    until_overdue();
    let proxy = Proxy::to(&cluster);
    let run = run_in("by-.*", &proxy.kubeconfig, DEADLINE, &[]);
    run.ends(3);
    run.says(&allowed, (REAP, Some("deleted")));
    for ((namespace, code, words), judged) in cases.iter().zip(&judged) {
        run.says(judged, (REAP, Some("denied")));
        let says = str_of(&run.pod(judged)["outcomeDetail"]);
        assert!(
            says.contains(words) && says.contains(&format!("({code})")),
            "{namespace}: {says}"
        );
        // The server's message may contain anything, so the run writes it to the report but not to the log.
        assert!(!run.log.contains(words), "{namespace}: {}", run.log);
        assert_eq!(
            crate::uid(&cluster.get(&pod_path(namespace, "stuck-0"))),
            *judged,
            "{namespace}"
        );
    }
    assert_eq!(
        proxy.seen().iter().filter(|seen| is_delete(seen)).count(),
        cases.len() + 1
    );
    assert!(cluster.try_get(&pod_path("by-none", "stuck-0")).is_none());
}

/// Kubernetes objects contain bytes as base64.
fn base64(bytes: &[u8]) -> String {
    serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec()))
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .expect("bytes become text")
}
