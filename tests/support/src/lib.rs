//! Shared code of the test programs: a real API server and its objects, the program under test, a proxy between both,
//! the simulated API server, and sample objects.
//!
//! A test program has a few real servers, each started by the first test that finds none free. No controller and no kubelet
//! runs with them, so that only pod-reaper and the test change objects. A test about controllers or kubelets starts a
//! cluster of its own: [`ControlPlane::start_with`].
//!
//! ```ignore
//! let cluster = pod_reaper_test_support::fresh();
//! make(&cluster, "{Node ds01: {ready: 'True'}, Node ds02: {}}");
//! let stuck = pod(&cluster, "impala/catalogd-0: {node: ds02, owner: StatefulSet catalogd}");
//! ```
#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "whatever fails here is the test's failure, and clippy takes only #[test] functions for tests"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "what is passed is a `json!` on the spot, read best without an `&`"
)]
#![allow(
    missing_docs,
    clippy::must_use_candidate,
    clippy::missing_panics_doc,
    clippy::return_self_not_must_use,
    reason = "advice for the users of a published library"
)]

pub mod installed;
pub mod objects;
pub mod pages;
pub mod program;
pub mod proxy;
pub mod samples;
pub mod simulated;
pub mod transcript;
pub mod words;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use http::Request;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::objects::{each, str_of};

/// The longest duration of a request. Requests take milliseconds; the limit is for a server that hangs.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(5);

/// The longest time to empty the server. That usually takes about 50 ms; the limit is for a server that hangs.
const WIPE_TIMEOUT: Duration = Duration::from_mins(5);

/// The API server rebuilds its set of admission policies once a second, so a deleted policy denies requests for that much longer.
const POLICY_REFRESH: Duration = Duration::from_millis(1_500);

/// The API server creates these namespaces itself, and only when it starts.
const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Objects that can prevent the deletes that empty the server.
const ADMISSION: &str = "
    /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations
    /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations
    /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings
    /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies
";

/// The kinds of objects that tests leave, apart from [`ADMISSION`]. The server's own objects stay: see [`is_the_servers_own`].
const KINDS: &str = "
    /api/v1/pods
    /api/v1/persistentvolumeclaims
    /api/v1/persistentvolumes
    /apis/storage.k8s.io/v1/volumeattachments
    /apis/storage.k8s.io/v1/csidrivers
    /api/v1/nodes
    /apis/coordination.k8s.io/v1/leases?labelSelector=!apiserver.kubernetes.io/identity
    /api/v1/events
    /api/v1/configmaps
    /api/v1/resourcequotas
    /api/v1/secrets
    /api/v1/serviceaccounts
    /apis/apps/v1/statefulsets
    /apis/apps/v1/deployments
    /apis/apps/v1/daemonsets
    /apis/batch/v1/cronjobs
    /apis/batch/v1/jobs
    /apis/policy/v1/poddisruptionbudgets
    /apis/rbac.authorization.k8s.io/v1/rolebindings
    /apis/rbac.authorization.k8s.io/v1/roles
    /apis/rbac.authorization.k8s.io/v1/clusterrolebindings?labelSelector=!kubernetes.io/bootstrapping
    /apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=!kubernetes.io/bootstrapping
    /api/v1/namespaces
";

/// A running API server, and a client with all permissions.
///
/// The methods block, so that tests are plain functions. You may also call them inside a tokio runtime. They panic with the
/// server's own message.
pub struct ControlPlane {
    /// For pod-reaper's `--kubeconfig`: one context, named `test`, which is the current one.
    pub kubeconfig: PathBuf,
    /// `https://127.0.0.1:PORT`, with a certificate that only the kubeconfig contains.
    pub url: String,
    /// The bearer token of a member of `system:masters`.
    pub token: String,
    /// The kubectl of the server's version. [`ControlPlane::kubectl`] runs it.
    pub kubectl: PathBuf,
    /// The working directory of the servers, which is removed when they stop. Their logs are in `logs`.
    pub dir: PathBuf,
    /// The process of each node's kubelet, by the node's name.
    pub kubelets: BTreeMap<String, u32>,
    client: Client,
    /// The script's standard input is held open: `scripts/controlplane/start` stops the servers when the pipe closes, and the
    /// kernel closes the pipe however this process ends.
    servers: Child,
    /// Held open, so that the script does not end because it writes a late message to a closed pipe.
    _messages: ChildStderr,
}

/// The number of API servers that the tests of a program share. A test usually waits, either for a deadline or for the API
/// server.
const SERVERS: usize = 3;

/// The shared API servers.
struct Pool {
    /// The servers that no test uses.
    free: Vec<&'static ControlPlane>,
    started: usize,
    /// The reason why a server could not be started. Every test then fails immediately with this reason.
    failed: Option<String>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    free: Vec::new(),
    started: 0,
    failed: None,
});
/// Signals that a server has become free, or that none will.
static FREED: Condvar = Condvar::new();

/// Returns a shared API server, emptied, that no other test uses. pod-reaper reads all nodes of a cluster, so two concurrent
/// tests would see each other's nodes.
pub fn fresh() -> Fresh {
    let fresh = Fresh(Pool::take().unwrap_or_else(|message| panic!("{message}")));
    fresh.wipe();
    fresh
}

impl Pool {
    fn lock() -> MutexGuard<'static, Self> {
        POOL.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a free server if the maximum number has been started.
    fn take() -> Result<&'static ControlPlane, String> {
        let mut pool = Self::lock();
        loop {
            if let Some(message) = &pool.failed {
                return Err(message.clone());
            }
            if let Some(server) = pool.free.pop() {
                return Ok(server);
            }
            if pool.started < SERVERS {
                pool.started += 1;
                drop(pool);
                let started = ControlPlane::start(&[]);
                if let Err(message) = &started {
                    Self::lock().failed = Some(message.clone());
                    FREED.notify_all();
                }
                // The servers stop with this process.
                return started.map(|server| &*Box::leak(Box::new(server)));
            }
            pool = FREED.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The use of a shared server. Hold it for as long as the test uses the server.
#[must_use = "another test takes the server as soon as this is dropped"]
pub struct Fresh(&'static ControlPlane);

impl Fresh {
    /// The server, for uses that outlive a borrow, such as a proxy.
    pub fn server(&self) -> &'static ControlPlane {
        self.0
    }
}

impl Deref for Fresh {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.0
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // A failed test leaves its objects; the next test empties the server.
        Pool::lock().free.push(self.0);
        FREED.notify_one();
    }
}

impl ControlPlane {
    /// Starts a separate API server with further flags. It stops when dropped.
    pub fn start(apiserver_flags: &[&str]) -> Result<Self, String> {
        Self::start_with(&[], apiserver_flags)
    }

    /// Does the same with the options of `scripts/controlplane/start`: `--controllers`, and `--node NAME` for each kubelet.
    pub fn start_with(options: &[&str], apiserver_flags: &[&str]) -> Result<Self, String> {
        let assets = assets()?;
        let mut servers = Command::new(script("start"))
            .args(options)
            .arg(&assets)
            .args(apiserver_flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("scripts/controlplane/start: {error}"))?;
        let stdout = servers.stdout.take().expect("it is piped");
        let mut messages = servers.stderr.take().expect("it is piped");

        let mut ready = String::new();
        BufReader::new(stdout)
            .read_line(&mut ready)
            .map_err(|error| error.to_string())?;
        let Ok(ready) = serde_json::from_str::<Value>(&ready) else {
            let mut message = String::new();
            messages
                .read_to_string(&mut message)
                .map_err(|error| error.to_string())?;
            return Err(message);
        };
        let text = |field: &str| ready[field].as_str().expect("start prints it").to_owned();
        let kubelets =
            serde_json::from_value(ready["kubelets"].clone()).expect("start prints them");

        let kubeconfig = PathBuf::from(text("kubeconfig"));
        let client = wait_for(connect(kubeconfig.clone()))?;
        Ok(Self {
            kubeconfig,
            url: text("url"),
            token: text("token"),
            kubectl: assets.join("kubectl"),
            dir: text("dir").into(),
            kubelets,
            client,
            servers,
            _messages: messages,
        })
    }

    /// Stops the servers before the end of the test program.
    pub fn stop(&self) {
        // The script cleans up and ends asynchronously.
        let _ = Command::new("kill")
            .arg(self.servers.id().to_string())
            .status();
    }

    /// Sends any request. Returns the status and the body; a body that is not JSON becomes a string. A PATCH is a JSON merge
    /// patch.
    pub fn request(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let content_type = if method == "PATCH" {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let (status, _, body) = self.forward(method, path, headers, body);
        let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
        (
            status,
            serde_json::from_slice(&body).unwrap_or_else(|_| text()),
        )
    }

    /// Forwards a request of a proxy. Returns the status, the `Date` and the body of the response, unchanged.
    pub fn forward(
        &self,
        method: &str,
        path: &str,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> (u16, Option<String>, Vec<u8>) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Body::from(body))
            .expect("the client made a request of it");
        let client = self.client.clone();
        let answer = wait_for(async move {
            let answer = async {
                let (parts, body) = client.send(request).await?.into_parts();
                let date = parts
                    .headers
                    .get("date")
                    .and_then(|date| date.to_str().ok());
                let date = date.map(str::to_owned);
                let body = body.collect_bytes().await?.to_vec();
                Ok::<_, kube::Error>((parts.status.as_u16(), date, body))
            };
            tokio::time::timeout(REQUEST_TIMEOUT, answer).await
        });
        answer
            .unwrap_or_else(|_| panic!("{method} {path}: no answer in {REQUEST_TIMEOUT:?}"))
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    #[track_caller]
    fn accepted(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        match self.request(method, path, body) {
            (200..=299, body) => body,
            (status, body) => {
                panic!(
                    "{method} {path}: {status} {}",
                    body["message"].as_str().unwrap_or_default()
                )
            }
        }
    }

    /// Reads one object, or a list.
    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        self.accepted("GET", path, None)
    }

    /// Reads one object. Returns `None` if it does not exist.
    #[track_caller]
    pub fn try_get(&self, path: &str) -> Option<Value> {
        match self.request("GET", path, None) {
            (404, _) => None,
            (200..=299, body) => Some(body),
            (status, body) => panic!(
                "GET {path}: {status} {}",
                body["message"].as_str().unwrap_or_default()
            ),
        }
    }

    pub fn has_pod(&self, namespace: &str, name: &str) -> bool {
        self.try_get(&objects::pod_path(namespace, name)).is_some()
    }

    /// Posts an object to its collection.
    #[track_caller]
    pub fn create(&self, collection: &str, object: Value) -> Value {
        self.accepted("POST", collection, Some(object))
    }

    /// Sends a JSON merge patch: lists are replaced, null removes.
    #[track_caller]
    pub fn merge_patch(&self, path: &str, patch: Value) -> Value {
        self.accepted("PATCH", path, Some(patch))
    }

    /// Sends a merge patch of the status alone. `status` is the content of that field.
    #[track_caller]
    pub fn patch_status(&self, path: &str, status: Value) -> Value {
        self.accepted(
            "PATCH",
            &format!("{path}/status"),
            Some(json!({ "status": status })),
        )
    }

    /// Replaces an object.
    #[track_caller]
    pub fn put(&self, path: &str, object: Value) -> Value {
        self.accepted("PUT", path, Some(object))
    }

    /// Deletes an object with these options: `json!({})` for none.
    #[track_caller]
    pub fn delete(&self, path: &str, options: Value) -> Value {
        self.accepted("DELETE", path, Some(options))
    }

    /// Runs kubectl to its end.
    pub fn kubectl<I>(&self, arguments: I) -> Output
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        self.kubectl_command()
            .args(arguments)
            .output()
            .expect("kubectl is executable")
    }

    /// A kubectl command, for uses that need more than arguments. The command uses none of the user's settings and writes only
    /// inside `dir`.
    pub fn kubectl_command(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.dir.join("kubectl-cache"))
            .env("KUBERC", "off");
        command
    }

    /// Removes all objects of tests. Repeats until it finds none: a deleted policy or webhook stays in force for a moment, and
    /// may deny the first attempts.
    fn wipe(&self) {
        let started = Instant::now();
        loop {
            let mut refusals = Vec::new();
            let mut found = self.clear(ADMISSION, &mut refusals);
            if found > 0 {
                thread::sleep(POLICY_REFRESH);
            }
            found += self.clear(KINDS, &mut refusals);
            if found == 0 && refusals.is_empty() {
                return;
            }
            assert!(
                started.elapsed() < WIPE_TIMEOUT,
                "the API server could not be emptied: {refusals:#?}"
            );
        }
    }

    /// Deletes the objects of these collections, and returns their number. An object may already be gone, and deletes may be
    /// denied for a while.
    fn clear(&self, collections: &str, refusals: &mut Vec<String>) -> usize {
        let mut attempt = |method: &str, path: &str, body: Value| {
            let (status, body) = self.request(method, path, Some(body));
            if !matches!(status, 200..=299 | 404) {
                refusals.push(format!("{method} {path}: {status} {}", body["message"]));
            }
        };
        let mut found = 0;
        for collection in collections.split_whitespace() {
            let list = self.get(collection);
            for item in each(&list["items"]) {
                let path = item_path(collection, item);
                let metadata = &item["metadata"];
                if !is_the_servers_own(item) {
                    found += 1;
                    if !metadata["finalizers"].is_null() {
                        attempt("PATCH", &path, json!({"metadata": {"finalizers": null}}));
                    }
                    let at_once =
                        json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
                    attempt("DELETE", &path, at_once);
                    if collection == "/api/v1/namespaces" {
                        // The namespace controller, which does not run here, would remove this finalizer.
                        let finalized = json!({"metadata": {"name": metadata["name"]}, "spec": {"finalizers": []}});
                        attempt("PUT", &format!("{path}/finalize"), finalized);
                    }
                } else if collection == "/api/v1/namespaces" && !metadata["annotations"].is_null() {
                    // These namespaces stay, but a test may have opted one out.
                    found += 1;
                    attempt("PATCH", &path, json!({"metadata": {"annotations": null}}));
                }
            }
        }
        found
    }
}

/// Whether the API server created the object for itself.
fn is_the_servers_own(object: &Value) -> bool {
    // Pods, PVCs and Leases in these namespaces belong to tests.
    let always_ours = object["spec"]["containers"].is_array()
        || object["spec"]["accessModes"].is_array()
        || object["spec"]["leaseDurationSeconds"].is_number();
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let is_namespace = object["spec"]["finalizers"].is_array();
    namespace.starts_with("kube-") && !always_ours
        || is_namespace && SYSTEM_NAMESPACES.contains(&str_of(&object["metadata"]["name"]))
}

fn item_path(collection: &str, item: &Value) -> String {
    let collection = collection
        .split_once('?')
        .map_or(collection, |(path, _)| path);
    let name = item["metadata"]["name"].as_str().expect("it has a name");
    match item["metadata"]["namespace"].as_str() {
        Some(namespace) if !collection.contains("/namespaces/") => {
            let (group, plural) = collection.rsplit_once('/').expect("it is a path");
            format!("{group}/namespaces/{namespace}/{plural}/{name}")
        }
        _ => format!("{collection}/{name}"),
    }
}

/// Runs a future on a runtime of its own and waits for it: `block_on` panics inside another runtime.
fn wait_for<F>(future: F) -> F::Output
where
    F: Future<Output: Send> + Send + 'static,
{
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a thread can be started")
    });
    let (sender, receiver) = mpsc::sync_channel(1);
    RUNTIME.spawn(async move { sender.send(future.await) });
    receiver.recv().expect("the future does not panic")
}

async fn connect(kubeconfig: PathBuf) -> Result<Client, String> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).map_err(|error| error.to_string())?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| error.to_string())?;
    // Ignores a proxy that the environment sets: the server is local.
    config.proxy_url = None;
    // No retries: a test may be about a refusal, and retries take minutes.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| error.to_string())
}

/// The path of a file or directory of the repository, wherever the test was started.
pub fn in_repository(path: &str) -> PathBuf {
    let tests_support = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests_support
        .ancestors()
        .nth(2)
        .expect("it is two folders down")
        .join(path)
}

fn script(name: &str) -> PathBuf {
    in_repository("scripts/controlplane").join(name)
}

/// The directory of the servers' programs: `tests/run` sets it, or else they are built.
pub fn assets() -> Result<PathBuf, String> {
    if let Some(assets) =
        std::env::var_os("POD_REAPER_TEST_ASSETS").filter(|assets| !assets.is_empty())
    {
        return Ok(assets.into());
    }
    build(&[])
}

/// Runs `scripts/controlplane/build`, and returns the directory that the script prints.
fn build(arguments: &[&str]) -> Result<PathBuf, String> {
    let mut build = Command::new(script("build"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("scripts/controlplane/build: {error}"))?;
    // Each message is printed immediately, because a build takes minutes, and kept as the message of a failure.
    let mut messages = String::new();
    for line in BufReader::new(build.stderr.take().expect("it is piped")).lines() {
        let line = line.map_err(|error| error.to_string())?;
        writeln!(std::io::stderr(), "{line}").map_err(|error| error.to_string())?;
        messages.push_str(&line);
        messages.push('\n');
    }
    let output = build
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(messages);
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().into())
}

/// Returns the output of a future that never waits, such as one that gathers from a file.
pub fn at_once<F: Future>(future: F) -> F::Output {
    // The future is unconstrained, because tokio otherwise makes a task wait for its next turn after 128 responses.
    let future = pin!(tokio::task::unconstrained(future));
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}
