//! The operators' case: six nodes and their workloads, and the steps and assertions of a scenario.
//!
//! No scenario sets a node condition, a taint or a deletion timestamp. It stops a kubelet, and Kubernetes does the rest.

use crate::{
    prelude::*,
    support::{
        program::{program, run},
        proxy::{self, Proxy, Reply},
    },
};
use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    ops::Deref,
    process::Child,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

/// The node that fails, which the workloads prefer.
pub const FAILING: &str = "ds03";

/// The nodes of the operators' case.
pub const SIX: [&str; 6] = ["ds01", "ds02", "ds03", "ds04", "ds05", "ds06"];

/// The threshold of the scenarios, and the options that set it.
pub const THRESHOLD: Duration = Duration::from_secs(10);
pub const OPTIONS: [&str; 2] = ["--reap-older-than", "10s"];

/// The longest wait for Kubernetes in one step: four times the longest step, which is the detection.
const PATIENCE: Duration = Duration::from_mins(5);

const WORKLOADS: &str = include_str!("workloads.yaml");

/// A cluster for one scenario, which stops at the scenario's end. If the scenario fails, the logs are kept.
pub struct Case {
    live: Live,
    runs: AtomicUsize,
}

impl Deref for Case {
    type Target = Live;

    fn deref(&self) -> &Live {
        &self.live
    }
}

/// The cluster, with actions and observations. The value is kept to the end of the test program, because a proxy's threads may
/// use it. The servers stop earlier.
#[derive(Clone, Copy)]
pub struct Live(&'static ControlPlane);

impl Deref for Live {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.0
    }
}

/// The fields of a pod that a scenario reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub node: String,
    pub phase: String,
    /// UID of the controller that replaces the pod.
    pub owner: String,
    pub owner_kind: String,
    /// The deletion deadline, if the pod is Terminating.
    pub deadline: Option<Timestamp>,
}

impl Seen {
    fn new(pod: &Value) -> Self {
        let text = |pointer: &str| {
            pod.pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Self {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            node: text("/spec/nodeName"),
            phase: text("/status/phase"),
            owner: text("/metadata/ownerReferences/0/uid"),
            owner_kind: text("/metadata/ownerReferences/0/kind"),
            deadline: text("/metadata/deletionTimestamp").parse().ok(),
        }
    }

    pub fn is_running(&self) -> bool {
        self.phase == "Running" && self.deadline.is_none()
    }

    /// `namespace/name`, without the suffix that a Deployment or a Job appends to its pods' names.
    pub fn called(&self) -> String {
        let mut name = self.name.as_str();
        if self.owner_kind != "StatefulSet" {
            name = name.rsplit_once('-').map_or(name, |(name, _)| name);
        }
        if self.owner_kind == "ReplicaSet" {
            name = name.rsplit_once('-').map_or(name, |(name, _)| name);
        }
        format!("{}/{name}", self.namespace)
    }
}

pub const REAPED: (&str, Option<&str>) = ("stuck-on-not-ready-node", Some("deleted"));

/// Checks that each of these pods has this reason and outcome.
#[track_caller]
pub fn all_are<'a>(
    run: &Run,
    pods: impl IntoIterator<Item = &'a Seen>,
    expected: (&str, Option<&str>),
) {
    for pod in pods {
        let found = run.reason_and_outcome(&pod.uid);
        assert_eq!(found, expected, "{}: {}", pod.called(), run.log);
    }
}

impl Case {
    /// Starts the six nodes, and waits until all workloads are Running.
    pub fn start() -> Self {
        Self::with(&SIX, 1)
    }

    /// Does the same on these nodes, written as for `start --node`. Pods tolerate a failure for this many seconds.
    pub fn with(nodes: &[&str], toleration_seconds: u32) -> Self {
        let options = nodes.iter().flat_map(|node| ["--node", *node]);
        let case = Self::empty(&options.collect_vec());
        let tolerates = format!("tolerationSeconds: {toleration_seconds}");
        case.apply(&WORKLOADS.replace("tolerationSeconds: 1", &tolerates));
        case.until_true("all pods are Running", || {
            let pods = case.pods();
            let all = pods.iter().all(Seen::is_running);
            // There are 7 pods on the failing node, 5 elsewhere, and one of the DaemonSet on each node.
            all && pods.len() == 7 + 5 + nodes.len()
        });
        case
    }

    /// Starts a cluster without workloads, with these options of `scripts/controlplane/start`.
    pub fn empty(options: &[&str]) -> Self {
        let cluster =
            ControlPlane::start_with(options, &[]).unwrap_or_else(|message| panic!("{message}"));
        Self {
            live: Live(Box::leak(Box::new(cluster))),
            runs: AtomicUsize::new(0),
        }
    }

    /// Runs the binary, as the CronJob does, and keeps its output with the other logs.
    pub fn reap(&self, further: &str) -> Run {
        let options = OPTIONS.into_iter().chain(further.split_whitespace());
        self.reap_through(&self.kubeconfig, &options.collect_vec())
    }

    /// Does the same with another kubeconfig.
    pub fn reap_through(&self, kubeconfig: &Path, options: &[&str]) -> Run {
        let done = run(kubeconfig, options);
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let log = format!("exit {}\n{}\n{:#}\n", done.code, done.log, done.report);
        fs::write(self.dir.join(format!("logs/pod-reaper-{number}.log")), log)
            .expect("the folder is ours");
        done
    }

    /// The reason of each pod that an audit of the cluster as it is now would give if this node had died, by UID.
    pub fn supposed(&self, node: &str) -> BTreeMap<String, String> {
        let kinds = "no,ns,po,pvc,pv,leases,volumeattachments,csidrivers,sts";
        let saved = self.kubectl(["get", kinds, "-Ao", "json", "--show-managed-fields"]);
        assert!(saved.status.success(), "{}", shown(&saved));
        let file = self.dir.join("before.json");
        fs::write(&file, saved.stdout).expect("the folder is ours");
        let mut audit = program();
        audit.arg("--snapshot").arg(file);
        audit.args(["--suppose-dead", node, "--output", "json"]);
        let output = audit.output().expect("it runs");
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        let pods = report["pods"].as_array().expect("pods").iter();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        pods.map(|pod| (text(&pod["uid"]), text(&pod["reason"])))
            .collect()
    }

    /// Gives up the pod's PVC by the printed command. Kubernetes keeps the PVC while the pod is there. For ten minutes the runs wait;
    /// then one deletes the pod, and the PVC goes with it.
    #[track_caller]
    pub fn gives_up(&self, run: &Run, pod: &Seen, claim: &str) {
        let is_kept = || {
            let found = self.get(claim);
            assert_eq!(found["status"]["phase"], "Bound");
            assert!(self.evictable_on(FAILING).contains(pod));
            found["metadata"].clone()
        };
        let before = is_kept();
        let printed = commands(run, &pod.uid);
        let delete = printed.iter().find(|line| line.contains(" delete --raw "));
        let delete = delete.unwrap_or_else(|| panic!("{printed:?}"));
        // A second person pastes it too.
        for _ in 0..2 {
            let output = paste(self, delete);
            assert!(output.status.success(), "{delete}\n{}", shown(&output));
        }
        let deleted = is_kept();
        assert_eq!(deleted["uid"], before["uid"]);
        assert!(deleted["deletionTimestamp"].is_string(), "{deleted}");

        for run in [
            self.reap(""),
            self.reap_through(&self.later(9).kubeconfig, &OPTIONS),
        ] {
            run.says(&pod.uid, ("not-overdue", None));
            assert_eq!(is_kept()["uid"], before["uid"]);
        }
        let run = self.reap_through(&self.later(11).kubeconfig, &OPTIONS);
        run.ends(0);
        run.says(&pod.uid, REAPED);
        self.until("the set makes the PVC anew", || {
            self.try_get(claim)
                .filter(|found| found["metadata"]["uid"] != before["uid"])
        });
    }

    /// A proxy to the API server that changes responses.
    pub fn rewriting(
        &self,
        after: impl Fn(&proxy::Seen, &mut Reply) + Send + Sync + 'static,
    ) -> Proxy {
        Proxy::rewriting(self.live.0, after)
    }

    /// A proxy to the API server as it will be in this many minutes, if the failing node is silent until then.
    pub fn later(&self, minutes: i64) -> Proxy {
        Proxy::later(self.live.0, minutes, &[FAILING])
    }
}

impl Live {
    /// `kubectl apply`.
    pub fn apply(self, manifests: &str) {
        let file = self.dir.join("applied.yaml");
        fs::write(&file, manifests).expect("the folder is ours");
        kubectl(&self, &["apply", "-f", &file.display().to_string()]);
    }

    /// Suspends the kubelet while its containers keep running. For the cluster, the node is dead.
    pub fn stop(self, node: &str) {
        self.signal("STOP", node);
    }

    pub fn resume(self, node: &str) {
        self.signal("CONT", node);
    }

    /// Ends the kubelet, and starts it beside a container runtime without its containers. It ends with the thread that calls.
    pub fn restart(self, node: &str) -> Child {
        self.signal("KILL", node);
        let folder = self.dir.join("kubelets").join(node);
        let log = fs::File::create(self.dir.join(format!("logs/kubelet-{node}-2.log")));
        let log = log.expect("the folder is ours");
        let mut kubelet = Command::new("setpriv");
        kubelet
            .args(["--pdeathsig", "KILL"])
            .arg(self.kubectl.with_file_name("hollow-kubelet"))
            .args(["--lease-seconds=8", "--name", node, "--kubeconfig"])
            .arg(folder.join("kubeconfig"))
            .env("TMPDIR", folder)
            .stdout(log.try_clone().expect("a file"))
            .stderr(log);
        kubelet.spawn().expect("it starts")
    }

    /// Makes the container runtime hang. The kubelet keeps running, renews its Lease, and reports that its node is not Ready.
    pub fn hang_runtime(self, node: &str) {
        self.signal("USR1", node);
    }

    /// Makes the runtime respond again.
    pub fn recover_runtime(self, node: &str) {
        self.signal("USR2", node);
    }

    fn signal(self, signal: &str, node: &str) {
        let pid = self.kubelets[node].to_string();
        let status = Command::new("kill")
            .args(["-s", signal, &pid])
            .status()
            .expect("kill is there");
        assert!(status.success(), "SIG{signal} to the kubelet of {node}");
    }

    /// Waits until `look` returns a value, and returns that value.
    #[track_caller]
    pub fn until<T>(self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            if let Some(seen) = look() {
                return seen;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "not within {PATIENCE:?}: {what}\n{:#?}",
                self.pods()
            );
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Waits until the condition is true.
    #[track_caller]
    pub fn until_true(self, what: &str, mut holds: impl FnMut() -> bool) {
        self.until(what, || holds().then_some(()));
    }

    /// All pods, by namespace and name.
    pub fn pods(self) -> Vec<Seen> {
        let list = self.get("/api/v1/pods");
        let mut pods: Vec<_> = each(&list["items"]).map(Seen::new).collect();
        pods.sort();
        pods
    }

    pub fn pods_on(self, node: &str) -> Vec<Seen> {
        self.pods()
            .into_iter()
            .filter(|pod| pod.node == node)
            .collect()
    }

    /// Pods that are evicted: all except those of the DaemonSet, which tolerate the failure forever.
    pub fn evictable_on(self, node: &str) -> Vec<Seen> {
        self.pods_on(node)
            .into_iter()
            .filter(|pod| pod.owner_kind != "DaemonSet")
            .collect()
    }

    /// Pods that the failure must not affect: those that started on other nodes, and the DaemonSet's.
    pub fn untouched(self) -> Vec<Seen> {
        let is_one =
            |pod: &Seen| pod.owner_kind == "DaemonSet" || pod.name.starts_with("statestored-");
        self.pods().into_iter().filter(is_one).collect()
    }

    /// The last transition of the Ready condition, by the clock of the component that wrote it.
    #[track_caller]
    pub fn ready_since(self, node: &str) -> Timestamp {
        time(&self.ready_condition(node)["lastTransitionTime"])
    }

    fn ready_condition(self, node: &str) -> Value {
        let node = self.get(&node_path(node));
        let conditions = node["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let ready = conditions
            .into_iter()
            .find(|condition| condition["type"] == "Ready");
        ready.unwrap_or_default()
    }

    /// The last renewal of the node's Lease, by the server's clock.
    #[track_caller]
    pub fn lease_renewed(self, node: &str) -> Timestamp {
        time(&self.get(&lease_path(node))["metadata"]["managedFields"][0]["time"])
    }

    /// The keys of the node's taints that evict.
    pub fn evicting_taints(self, node: &str) -> Vec<String> {
        let node = self.get(&node_path(node));
        let taints = node["spec"]["taints"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let evicting = taints
            .into_iter()
            .filter(|taint| taint["effect"] == "NoExecute");
        evicting
            .map(|taint| taint["key"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    #[track_caller]
    pub fn until_ready_is(self, status: &str, node: &str) {
        self.until_true(&format!("Ready of {node} is {status}"), || {
            self.ready_condition(node)["status"] == status
        });
    }

    /// Waits until the node's Ready condition is Unknown and every pod on it that can be evicted is Terminating. Returns those
    /// pods.
    #[track_caller]
    pub fn until_evicted(self, node: &str) -> Vec<Seen> {
        self.until_evicted_while("Unknown", node)
    }

    /// Does the same for another status of the Ready condition.
    #[track_caller]
    pub fn until_evicted_while(self, status: &str, node: &str) -> Vec<Seen> {
        self.until_ready_is(status, node);
        self.until(&format!("the pods of {node} are Terminating"), || {
            let pods = self.evictable_on(node);
            pods.iter()
                .all(|pod| pod.deadline.is_some())
                .then_some(pods)
        })
    }

    /// Suspends the kubelet, and waits until the node's pods are evicted and stuck. Returns those pods.
    #[track_caller]
    pub fn fails(self, node: &str) -> Vec<Seen> {
        self.stop(node);
        let evicted = self.until_evicted(node);
        self.until_stuck(&evicted);
        evicted
    }

    /// Waits until the last of these pods is overdue by the threshold.
    #[track_caller]
    pub fn until_stuck(self, pods: &[Seen]) {
        let deadlines = pods.iter().filter_map(|pod| pod.deadline);
        let last = deadlines.max().expect("a Terminating pod");
        // One second is added, because the server's `Date` has whole seconds.
        let stuck = last + THRESHOLD + Duration::from_secs(1);
        self.until_true("the pods are stuck", || Timestamp::now() >= stuck);
    }

    /// Waits until every one of these pods is replaced: its owner has another pod, Running on another node.
    #[track_caller]
    pub fn until_replaced(self, pods: &[Seen]) -> Vec<Seen> {
        self.until("the pods run elsewhere", || {
            let now = self.pods();
            let replacement = |old: &Seen| {
                let same_owner =
                    |new: &&Seen| new.owner == old.owner && new.uid != old.uid && new.is_running();
                now.iter()
                    .filter(same_owner)
                    .find(|new| new.node != old.node)
                    .cloned()
            };
            pods.iter().map(replacement).collect()
        })
    }

    /// Waits until the kubelet of a node runs none of these pods any more.
    pub fn until_stopped(self, node: &str, pods: [&Vec<Seen>; 2]) {
        self.until_true("the kubelet has stopped the evicted pods", || {
            let running = self.running_in_containers(node);
            let mut pods = pods.into_iter().flatten();
            !pods.any(|pod| running.contains(&pod.uid))
        });
    }

    /// The UIDs of the pods that the kubelet of a node reports as running, according to its (simulated) container runtime.
    pub fn running_in_containers(self, node: &str) -> Vec<String> {
        let status = self.get(&node_path(node))["status"].clone();
        let port = status["daemonEndpoints"]["kubeletEndpoint"]["Port"]
            .as_u64()
            .expect("a port");
        let port = u16::try_from(port).expect("a port");
        let mut kubelet = TcpStream::connect(("127.0.0.1", port)).expect("the kubelet listens");
        kubelet
            .write_all(b"GET /runningpods/ HTTP/1.0\r\n\r\n")
            .expect("it reads");
        let mut answer = String::new();
        kubelet.read_to_string(&mut answer).expect("it answers");
        let body = answer.split_once("\r\n\r\n").expect("a body").1;
        let list: Value =
            serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items
            .iter()
            .map(|pod| {
                pod["metadata"]["uid"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect()
    }
}

#[track_caller]
fn time(written: &Value) -> Timestamp {
    written
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("{written} is no time"))
}

impl Drop for Case {
    fn drop(&mut self) {
        if thread::panicking() {
            let thread = thread::current();
            let scenario = thread.name().unwrap_or_default().replace("::", "-");
            let now = Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
            let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{scenario}-{now}"));
            let copied = Command::new("cp")
                .arg("-r")
                .arg(self.dir.join("logs"))
                .arg(&kept)
                .status();
            if copied.is_ok_and(|status| status.success()) {
                eprintln!("The logs of {scenario}: {}", kept.display());
            }
        }
        self.live.0.stop();
    }
}
