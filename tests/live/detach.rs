//! How soon the volume of a node that is down is attached to another one.
//!
//! The controllers are real. The simulated kubelets attach nothing, so this file plays the kubelets and the attacher of a CSI driver:
//! nodes and attachments are objects without machines.

use crate::{
    prelude::*,
    support::program::{SHELLS, pasted_into, run},
};
use std::{
    collections::BTreeSet,
    os::unix::process::CommandExt as _,
    process::{Child, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

const DRIVER: &str = "disk.example.org";
const TAINT: &str = "node.kubernetes.io/out-of-service";
const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";

/// Nodes that each have a StatefulSet with an attached volume, and as many others.
pub struct Disks {
    pub case: Case,
    /// The nodes whose kubelets work; empty at the end.
    pub alive: Arc<Mutex<BTreeSet<String>>>,
    /// Whether the storage refuses to attach a volume, so that no pod starts.
    refuses: Arc<AtomicBool>,
    plays: Option<thread::JoinHandle<()>>,
}

impl Drop for Disks {
    fn drop(&mut self) {
        self.alive.lock().unwrap().clear();
        let _ = self.plays.take().unwrap().join();
    }
}

/// The StatefulSet of a node, its volume and its pod have the node's name.
fn set_of(node: &str) -> String {
    format!(
        "
- apiVersion: v1
  kind: PersistentVolume
  metadata: {{name: {node}}}
  spec:
    storageClassName: network
    capacity: {{storage: 1Gi}}
    accessModes: [ReadWriteOnce]
    persistentVolumeReclaimPolicy: Retain
    claimRef: {{namespace: default, name: data-{node}-0}}
    csi: {{driver: {DRIVER}, volumeHandle: {node}}}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {{name: {node}, namespace: default}}
  spec:
    serviceName: {node}
    selector: {{matchLabels: {{app: {node}}}}}
    template:
      metadata: {{labels: {{app: {node}}}}}
      spec:
        terminationGracePeriodSeconds: 2
        affinity:
          nodeAffinity:
            preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              preference: {{matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [{node}]}}]}}
        tolerations:
        - {{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}}
        - {{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 1}}
        containers:
        - {{name: main, image: pretended, volumeMounts: [{{name: data, mountPath: /data}}]}}
    volumeClaimTemplates:
    - metadata: {{name: data}}
      spec:
        storageClassName: network
        accessModes: [ReadWriteOnce]
        resources: {{requests: {{storage: 1Gi}}}}
"
    )
}

/// A pod that tolerates that its node is down, and so is not evicted.
fn pod_that_stays(node: &str) -> Value {
    yaml(&format!(
        "
        apiVersion: v1
        kind: Pod
        metadata: {{name: stays-{node}}}
        spec:
            nodeName: {node}
            terminationGracePeriodSeconds: 3600
            tolerations: [{{key: node.kubernetes.io/unreachable, operator: Exists}}]
            containers: [{{name: main, image: pretended}}]
        "
    ))
}

impl Disks {
    /// Starts these nodes and their others, and waits until each has its volume attached.
    fn start(nodes: &[&str]) -> Self {
        Self::with(nodes, &["--controllers"], "1")
    }

    /// Does the same with these options of `scripts/controlplane/start`, and with pods that tolerate a failure for so many seconds.
    pub fn with(nodes: &[&str], options: &[&str], seconds: &str) -> Self {
        let case = Case::empty(options);
        let spare = nodes.iter().map(|node| format!("spare-{node}"));
        let all = nodes.iter().map(|node| (*node).to_owned());
        let all: BTreeSet<_> = all.chain(spare).chain(["spare".to_owned()]).collect();
        for node in &all {
            make_node(&case, node);
        }
        let alive = Arc::new(Mutex::new(all));
        let refuses = Arc::new(AtomicBool::new(false));
        let plays = thread::spawn({
            let (live, alive, refuses) = (*case, Arc::clone(&alive), Arc::clone(&refuses));
            move || play(&live, &alive, &refuses)
        });
        let disks = Self {
            case,
            alive,
            refuses,
            plays: Some(plays),
        };
        disks
            .case
            .until_true("no node is tainted as not ready any more", || {
                let nodes = disks.case.get("/api/v1/nodes");
                each(&nodes["items"]).all(|node| node["spec"]["taints"].is_null())
            });
        let sets = nodes.iter().map(|node| set_of(node)).collect::<String>();
        let tolerates = format!("tolerationSeconds: {seconds}");
        let sets = sets.replace("tolerationSeconds: 1", &tolerates);
        disks.case.apply(&format!(
            "
apiVersion: v1
kind: List
items:
- {{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {{name: {DRIVER}}}, spec: {{attachRequired: true}}}}
- apiVersion: storage.k8s.io/v1
  kind: StorageClass
  metadata: {{name: network}}
  provisioner: kubernetes.io/no-provisioner
{sets}"
        ));
        for node in nodes {
            disks
                .case
                .create("/api/v1/namespaces/default/pods", pod_that_stays(node));
            disks.case.until_true("the pod runs with its volume", || {
                let pods = disks.case.pods_on(node);
                pods.iter().filter(|pod| pod.is_running()).count() == 2
                    && disks.attached(node) == [*node]
            });
        }
        disks
    }

    /// The nodes to which the volume of this node is attached.
    fn attached(&self, volume: &str) -> Vec<String> {
        let list = self.case.get(ATTACHMENTS);
        let ours = each(&list["items"]).filter(|attachment| {
            attachment["spec"]["source"]["persistentVolumeName"] == volume
                && attachment["status"]["attached"] == true
        });
        ours.map(|attachment| text(&attachment["spec"]["nodeName"]))
            .collect()
    }

    /// The kubelet of this node does nothing any more. Returns the pod with the volume, once it is Terminating.
    fn dies(&self, node: &str) -> Seen {
        self.alive.lock().unwrap().remove(node);
        self.case.until_ready_is("Unknown", node);
        self.case.until("the pod is evicted", || {
            let mut pods = self.case.pods_on(node).into_iter();
            pods.find(|pod| pod.owner_kind == "StatefulSet" && pod.deadline.is_some())
        })
    }

    /// The seconds from `start` until the volume of this node is attached to another one, and only to that.
    fn seconds_until_moved(&self, node: &str, start: Instant, patience: Duration) -> f64 {
        loop {
            let attached = self.attached(node);
            if !attached.is_empty() && !attached.contains(&node.to_owned()) {
                return start.elapsed().as_secs_f64();
            }
            let waited = start.elapsed();
            assert!(waited < patience, "{node}: {attached:?} after {waited:?}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn has_taint(&self, node: &str) -> bool {
        let node = self.case.get(&node_path(node));
        node["spec"]["taints"].to_string().contains(TAINT)
    }

    /// Pastes the line into a shell, and returns once the taint is set.
    fn paste(&self, shell: &str, node: &str, line: &str) -> Child {
        let mut shell = pasted_into(shell, &self.case, line);
        // A signal to the group is what ^C sends.
        let shell = shell.process_group(0).stdout(Stdio::null());
        let shell = shell.spawn().expect("it starts");
        self.case
            .until_true("the taint is set", || self.has_taint(node));
        shell
    }
}

/// The line of a page that confirms that the machine of this node is off, and frees what is on it.
fn line_of(page: &Run, node: &str) -> String {
    let confirms = format!(" taint --overwrite node {node} ");
    let line = all_commands(&page.report).find(|line| line.contains(&confirms));
    line.unwrap_or_else(|| panic!("{node}: {:#}", page.report))
        .to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A node is in a zone with its spare one, because Kubernetes evicts in each zone from one node every 10 s.
fn make_node(case: &Case, name: &str) {
    let zone = name.trim_start_matches("spare-");
    let now = Timestamp::now().strftime("%FT%TZ").to_string();
    let node = yaml(&format!(
        "
        metadata:
            name: {name}
            labels: {{kubernetes.io/hostname: {name}, kubernetes.io/os: linux, topology.kubernetes.io/zone: {zone}}}
            annotations: {{volumes.kubernetes.io/controller-managed-attach-detach: 'true'}}
        status:
            capacity: {{cpu: '8', memory: 32Gi, pods: '110'}}
            allocatable: {{cpu: '8', memory: 32Gi, pods: '110'}}
            nodeInfo: {{kubeletVersion: v1.37.1, bootID: boot-{name}}}
            volumesInUse: ['kubernetes.io/csi/{DRIVER}^{name}']
            conditions:
            - {{type: Ready, status: 'True', reason: KubeletReady, lastHeartbeatTime: '{now}', lastTransitionTime: '{now}'}}
        "
    ));
    case.create("/api/v1/nodes", node);
    case.create(
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
        json!({"metadata": {"name": name}, "spec": {"holderIdentity": name, "leaseDurationSeconds": 8}}),
    );
}

/// Plays the kubelets of the nodes that are alive, and the attacher, until none is alive. A kubelet renews its Lease, starts pods, and
/// confirms deletions unless the grace period is long. It never unmounts a volume.
fn play(cluster: &ControlPlane, alive: &Mutex<BTreeSet<String>>, refuses: &AtomicBool) {
    loop {
        let alive = alive.lock().unwrap().clone();
        let refuses = refuses.load(Ordering::Relaxed);
        if alive.is_empty() {
            return;
        }
        // An object that changes or is gone meanwhile is seen in the next round.
        let patch = |path: &str, patch: Value| cluster.request("PATCH", path, Some(patch));
        for node in &alive {
            let now = Timestamp::now().strftime("%FT%T.%6fZ").to_string();
            patch(&lease_path(node), json!({"spec": {"renewTime": now}}));
        }
        for pod in each(&cluster.get("/api/v1/pods")["items"]) {
            let metadata = &pod["metadata"];
            let path = pod_path(&text(&metadata["namespace"]), &text(&metadata["name"]));
            if !alive.contains(&text(&pod["spec"]["nodeName"])) {
                continue;
            }
            if metadata["deletionGracePeriodSeconds"] == 2 {
                let now =
                    json!({"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}});
                cluster.request("DELETE", &path, Some(now));
            } else if pod["status"]["phase"] == "Pending" && !refuses {
                // The attach/detach controller treats a Terminating pod as ended if no container runs.
                let running = yaml(
                    "
                    phase: Running
                    conditions: [{type: Ready, status: 'True'}]
                    containerStatuses:
                    - {name: main, image: pretended, imageID: '', ready: true, restartCount: 0, state: {running: {}}}
                    ",
                );
                patch(&format!("{path}/status"), json!({"status": running}));
            }
        }
        for attachment in each(&cluster.get(ATTACHMENTS)["items"]) {
            let path = format!("{ATTACHMENTS}/{}", text(&attachment["metadata"]["name"]));
            if attachment["metadata"]["deletionTimestamp"].is_string() {
                patch(&path, json!({"metadata": {"finalizers": null}}));
            } else if attachment["status"]["attached"] != true {
                let finalizer = "external-attacher/disk-example-org";
                patch(&path, json!({"metadata": {"finalizers": [finalizer]}}));
                let status = if refuses {
                    json!({"attached": false, "attachError": {"message": "it is attached"}})
                } else {
                    json!({"attached": true, "attachError": null})
                };
                patch(&format!("{path}/status"), json!({"status": status}));
            }
        }
        thread::sleep(Duration::from_millis(300));
    }
}

/// Three machines are off, and each line is pasted before a run deletes anything. The Terminating pod goes with the line, the other pod
/// stays, and the line takes its taint away.
#[test]
fn a_line_that_is_pasted_before_the_delete_moves_the_volume() {
    const NODES: [&str; 3] = ["wk01", "wk02", "wk03"];
    let disks = &Disks::start(&NODES);
    for node in NODES {
        disks.alive.lock().unwrap().remove(node);
    }
    let pasted = thread::scope(|scope| {
        let threads = NODES.iter().zip(SHELLS).map(|(node, shell)| {
            scope.spawn(move || {
                let old = disks.dies(node);
                assert_eq!(disks.attached(node), [*node]);
                let page = disks.case.reap("--dry-run --max-failed-together=0");
                let line = line_of(&page, node);
                let started = Instant::now();
                let mut pasted = disks.paste(shell, node, &line);
                let moved = disks.seconds_until_moved(node, started, Duration::from_secs(55));
                eprintln!("{shell}: attached elsewhere {moved:.1} s after the line was pasted");
                let pods = disks.case.pods();
                assert!(pods.iter().all(|pod| pod.uid != old.uid), "{pods:?}");
                assert!(pasted.wait().expect("it ends").success(), "{shell}");
                assert!(!disks.has_taint(node), "{shell}");
                let stays = disks.case.pods_on(node);
                assert!(stays.iter().all(Seen::is_running), "{stays:?}");
                assert_eq!(stays.len(), 1, "{stays:?}");
            })
        });
        let threads = threads.collect_vec();
        threads
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect_vec()
    });
    assert!(pasted.iter().all(Result::is_ok));
}

/// A run has deleted the pods, and the lines are pasted then. The storage does not attach one volume at first, and a run says so. The
/// other line is interrupted, in each shell and by each signal, and takes its taint away.
#[test]
fn a_line_that_is_pasted_after_the_delete_moves_the_volume() {
    let disks = Disks::start(&["wk01", "wk02"]);
    kubectl(&disks.case, &["create", "namespace", "pod-reaper"]);
    let history = folder("cronjob/base/rbac.yaml");
    kubectl(&disks.case, &["apply", "-f", &history]);
    let old = ["wk01", "wk02"].map(|node| disks.dies(node));
    disks.case.until_stuck(&old);
    disks.refuses.store(true, Ordering::Relaxed);
    let run = disks.case.reap("");
    run.ends(0);
    all_are(&run, &old, REAPED);

    let mut refused = disks.paste("sh", "wk02", &line_of(&run, "wk02"));
    let failed = disks.case.until("an attachment fails", || {
        let list = disks.case.get(ATTACHMENTS);
        let mut failed = each(&list["items"]).filter(|it| it["status"]["attachError"].is_object());
        failed.next().map(|it| text(&it["metadata"]["name"]))
    });
    let page = disks.case.reap("--dry-run").report.to_string();
    let says = format!("VolumeAttachment {failed} does not attach to spare");
    assert!(page.contains(&says), "{page}");
    disks.refuses.store(false, Ordering::Relaxed);
    disks.seconds_until_moved("wk02", Instant::now(), Duration::from_secs(55));

    assert_eq!(disks.attached("wk01"), ["wk01"]);
    let started = Instant::now();
    let line = line_of(&run, "wk01");
    let mut pasted = Some(disks.paste("sh", "wk01", &line));
    let moved = disks.seconds_until_moved("wk01", started, Duration::from_secs(55));
    eprintln!("attached elsewhere {moved:.1} s after the line was pasted");
    for shell in SHELLS {
        for signal in ["INT", "HUP", "TERM"] {
            let paste = || disks.paste(shell, "wk01", &line);
            let mut pasted = pasted.take().unwrap_or_else(paste);
            let group = format!("-{}", pasted.id());
            let mut kill = Command::new("kill");
            kill.args(["-s", signal, "--", &group]);
            let interrupted = Instant::now();
            assert!(kill.status().expect("kill is there").success());
            pasted.wait().expect("it ends");
            let what = format!("{shell} takes the taint away after {signal}");
            disks.case.until_true(&what, || !disks.has_taint("wk01"));
            assert!(interrupted.elapsed().as_secs() < 30, "{what} at once");
        }
    }
    refused.wait().expect("it ends");
}

/// A taint that was left on a node that works: a volume is detached as soon as its pod is gone, although the node still uses it. Without
/// the taint it stays until the kubelet says that it has unmounted it. A pod that terminates there stays.
#[test]
fn a_taint_that_was_left_detaches_a_volume_that_is_in_use() {
    let disks = Disks::start(&["wk01", "wk02"]);
    let case = &disks.case;
    let taint = format!("{TAINT}=nodeshutdown:NoSchedule");
    kubectl(case, &["taint", "node", "wk01", &taint]);
    // So that its pod has to move, too.
    kubectl(case, &["cordon", "wk02"]);
    let terminates = pod_path("default", "stays-wk01");
    case.delete(&terminates, json!({}));
    thread::sleep(Duration::from_secs(5));
    assert_eq!(disks.attached("wk01"), ["wk01"], "its pod still runs");

    let started = Instant::now();
    for node in ["wk01", "wk02"] {
        case.delete(&pod_path("default", &format!("{node}-0")), json!({}));
    }
    let moved = disks.seconds_until_moved("wk01", started, Duration::from_secs(30));
    eprintln!("with the taint: attached elsewhere {moved:.1} s after the pod was deleted");
    // The pod garbage collector looks every 20 s.
    thread::sleep(Duration::from_secs(25));
    assert!(case.try_get(&terminates).is_some());
    assert_eq!(disks.attached("wk02"), ["wk02"]);
    let unmounted = Instant::now();
    case.patch_status(&node_path("wk02"), json!({"volumesInUse": null}));
    disks.seconds_until_moved("wk02", unmounted, Duration::from_secs(30));
}

/// Four machines die, in true time. Each volume moves: that of a machine that is confirmed off at minute 9, within ten minutes of the
/// death; one whose line is pasted after the delete, within 90 s of that; the others six minutes after the delete, whether nobody acts
/// or the machine is confirmed off by the mark alone.
#[test]
#[ignore = "25 minutes: tests/run --scenarios --include-ignored --nocapture a_volume_moves_in_true_time"]
fn a_volume_moves_in_true_time() {
    const NODES: [&str; 4] = ["wk01", "wk02", "wk03", "wk04"];
    const MINUTE: Duration = Duration::from_mins(1);
    let disks = Disks::with(&NODES, &["--controllers", "--grace", "50"], "300");
    let case = &disks.case;
    let reap = |further: &str| {
        let options = "--max-failed-together=0 --max-not-ready-percent=100 ".to_owned() + further;
        run(&case.kubeconfig, &options.split_whitespace().collect_vec())
    };
    let death = Instant::now();
    disks
        .alive
        .lock()
        .unwrap()
        .retain(|node| !NODES.contains(&node.as_str()));
    let sleep_until = |after: Duration| thread::sleep(after.saturating_sub(death.elapsed()));
    let moved = |node: &str, what: &str| {
        let seconds = disks.seconds_until_moved(node, death, 25 * MINUTE);
        eprintln!("{what}: attached elsewhere {seconds:.0} s after the death");
        seconds
    };

    sleep_until(9 * MINUTE);
    let mut pasted = disks.paste("sh", "wk01", &line_of(&reap("--dry-run"), "wk01"));
    assert!(moved("wk01", "confirmed off at minute 9") < 600.0);
    assert!(pasted.wait().expect("it ends").success());
    let since = case.ready_since("wk04").strftime("%FT%TZ").to_string();
    let mark = "pod-reaper.io/confirmed-off";
    annotate(case, &node_path("wk04"), mark, &since);

    // Pods are evicted after 350 s, and are stuck ten minutes later.
    sleep_until(16 * MINUTE + MINUTE / 2);
    let run = reap("");
    let deleted = death.elapsed().as_secs_f64();
    eprintln!("the delete: {deleted:.0} s after the death");
    assert_eq!(
        run.report["summary"]["outcomes"]["deleted"], 3,
        "{}",
        run.report
    );
    thread::sleep(MINUTE);
    let at = death.elapsed().as_secs_f64();
    eprintln!("the line is pasted {at:.0} s after the death");
    let mut pasted = disks.paste("sh", "wk03", &line_of(&run, "wk03"));
    assert!(moved("wk03", "pasted after the delete") < at + 90.0);
    assert!(pasted.wait().expect("it ends").success());
    for (node, what) in [("wk02", "nobody acts"), ("wk04", "the mark alone")] {
        assert!(moved(node, what) > deleted + 300.0, "{what}");
    }
}
