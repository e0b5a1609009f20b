//! A node that is NotReady and not dead: something on the machine still writes to the API server.

use crate::{prelude::*, support::objects::make};

/// The pod on a local disk.
pub const ON_DISK: &str = "impala-impala01/impala-executor-000-0";

/// The pod of a Job that replaces only a failed pod.
const IMPORT: &str = "compute-hive01/import";

/// The sign of life of the failing node in a report.
#[track_caller]
fn sign_of_life(run: &Run) -> &Value {
    let mut nodes = each(&run.report["nodes"]);
    let node = nodes.find(|node| node["name"] == FAILING);
    &node.expect("it is not Ready")["signsOfLife"][0]
}

/// Checks that these pods still run in the container runtime of the failing node.
#[track_caller]
fn run_here<'a>(case: &Case, pods: impl IntoIterator<Item = &'a Seen>) {
    let running = case.running_in_containers(FAILING);
    for pod in pods {
        assert!(running.contains(&pod.uid), "{pod:?}: {running:?}");
    }
}

/// The container runtime hangs: Ready becomes False, the kubelet renews the Lease, the containers keep running, and Kubernetes
/// nevertheless evicts the pods. The pods need you. When the runtime has recovered,
/// the kubelet stops the containers of the reaped pods, and confirms the remaining deletion.
#[test]
fn a_kubelet_lives_and_its_node_is_not_ready() {
    let case = Case::start();
    let elsewhere = case.untouched();

    case.hang_runtime(FAILING);
    let evicted = case.until_evicted_while("False", FAILING);
    assert_eq!(
        case.evicting_taints(FAILING),
        ["node.kubernetes.io/not-ready"]
    );
    case.until_stuck(&evicted);
    assert!(
        case.lease_renewed(FAILING) > case.ready_since(FAILING),
        "its kubelet lives"
    );
    run_here(&case, &evicted);

    let run = case.reap("");
    run.ends(0);
    all_are(&run, &evicted, ("kubelet-alive", None));
    for pod in &evicted {
        let entry = run.pod(&pod.uid);
        assert_eq!(entry["verdict"], "manual", "{entry}");
        assert_eq!(sign_of_life(&run)["by"], "lease", "{entry}");
        // At least one command shows how to repair the node.
        let commands = commands(&run, &pod.uid);
        let harmless = !commands.iter().any(|command| destroys(command));
        assert!(harmless && !commands.is_empty(), "{entry}");
    }
    assert_eq!(case.evictable_on(FAILING), evicted);

    case.recover_runtime(FAILING);
    case.until_ready_is("True", FAILING);
    case.until_stopped(FAILING, [&evicted, &Vec::new()]);
    case.until_true("each of them runs again, on any node", || {
        let pods = case.pods();
        // This Job replaces only a failed pod, and the pod has ended with exit code 0.
        let mut again = evicted.iter().filter(|old| old.called() != IMPORT);
        again.all(|old| {
            let mut pods = pods.iter();
            pods.any(|new| new.owner == old.owner && new.uid != old.uid && new.is_running())
        })
    });
    let job = case.get("/apis/batch/v1/namespaces/compute-hive01/jobs/import");
    assert_eq!(job["status"]["succeeded"], 1, "{job}");
    assert_eq!(case.untouched(), elsewhere);
    let after = case.reap("");
    assert_eq!(
        (after.code, after.report["summary"]["pods"].as_u64()),
        (0, Some(0)),
        "{}",
        after.report
    );
}

/// A pod is the leader by a Lease, and renews the Lease from the machine whose kubelet has stopped. So the machine is alive, and
/// all pods there are kept. When the leader is killed too, they are reaped.
#[test]
fn a_leader_on_a_silent_node() {
    let case = Case::start();
    let holder = "huebackend-0_5d1c7a52-9d0e-4d5e-9a43-6c7f0a3ac7c1";
    make(
        &case,
        &format!("Lease compute-hive01/hue: {{holder: {holder}}}"),
    );
    // A leader renews its Lease like this. The loop ends by itself once there is no API server.
    let renew = r#"while "$0" patch lease hue -n compute-hive01 --type=merge -p \
        "{\"spec\":{\"renewTime\":\"$(date -u +%FT%T.000000Z)\"}}" >/dev/null; do sleep 2; done"#;
    let mut leader = Command::new("sh")
        .args(["-c", renew])
        .arg(&case.kubectl)
        .env("KUBECONFIG", &case.kubeconfig)
        .spawn()
        .expect("a shell");
    let evicted = case.fails(FAILING);
    let led = case.ready_since(FAILING);
    case.until("it leads although its node is silent", || {
        let lease = case.get("/apis/coordination.k8s.io/v1/namespaces/compute-hive01/leases/hue");
        let renewed: Timestamp = lease["spec"]["renewTime"].as_str()?.parse().ok()?;
        (renewed > led).then_some(())
    });

    let run = case.reap("");
    run.ends(0);
    all_are(&run, &evicted, ("kubelet-alive", None));
    let sign = sign_of_life(&run);
    assert_eq!(sign["by"], "other-lease", "{sign}");
    let what = str_of(&sign["what"]);
    assert!(
        what.contains("compute-hive01/hue") && what.contains(holder),
        "{what}"
    );
    for pod in &evicted {
        assert!(
            !commands(&run, &pod.uid)
                .iter()
                .any(|command| destroys(command))
        );
    }
    assert_eq!(case.evictable_on(FAILING), evicted);

    leader.kill().expect("it runs");
    leader.wait().expect("it ends");
    is_alive_until_it_is_silent_for_minutes(&case, evicted);
}

/// The machine of the failing node sent a heartbeat a moment ago, and is dead. For some minutes that is unknown; then its pods
/// are reaped.
#[track_caller]
fn is_alive_until_it_is_silent_for_minutes(case: &Case, evicted: Vec<Seen>) {
    let soon = case.later(5);
    let run = case.reap_through(&soon.kubeconfig, &OPTIONS);
    run.ends(0);
    all_are(&run, &evicted, ("kubelet-alive", None));
    assert_eq!(case.evictable_on(FAILING), evicted);

    let later = case.later(12);
    let run = case.reap_through(&later.kubeconfig, &OPTIONS);
    run.ends(0);
    let (on_disk, moved) = without_a_disk(&run, evicted);
    all_are(&run, &moved, REAPED);
    case.until_replaced(&moved);
    assert_eq!(case.evictable_on(FAILING), on_disk);
}

/// A kubelet whose clock is an hour late reports that its node became NotReady an hour ago. The taint has the control plane's
/// time, which is only a moment ago. The Lease is an hour old by its own time, and was just renewed by the server's time.
#[test]
fn the_clock_of_a_node_is_an_hour_late() {
    let case = Case::with(&SIX, 1, &["--clock", "ds03=-1h"]);
    case.hang_runtime(FAILING);
    let evicted = case.until_evicted_while("False", FAILING);
    case.until_stuck(&evicted);
    let claimed = Timestamp::now().duration_since(case.ready_since(FAILING));
    assert!(
        claimed.as_mins() >= 60,
        "it reports that it has been NotReady for {claimed}"
    );
    let age = Timestamp::now().duration_since(case.lease_says(FAILING));
    assert!(
        age.as_mins() >= 59,
        "by the node's clock the lease is {age} old"
    );
    let age = Timestamp::now().duration_since(case.lease_renewed(FAILING));
    assert!(
        age.as_mins() < 1,
        "by the server's clock the lease is {age} old"
    );

    let run = case.reap("");
    run.ends(0);
    all_are(&run, &evicted, ("kubelet-alive", None));
    assert_eq!(case.evictable_on(FAILING), evicted);
}

/// Whether the command deletes.
pub fn destroys(command: &str) -> bool {
    command.contains("delete")
}

/// Separates the pod on a local disk from the others, and checks that it is kept because of the disk.
#[track_caller]
fn without_a_disk(run: &Run, pods: Vec<Seen>) -> (Vec<Seen>, Vec<Seen>) {
    let (on_disk, others): (Vec<_>, Vec<_>) =
        pods.into_iter().partition(|pod| pod.called() == ON_DISK);
    assert_eq!(on_disk.len(), 1);
    all_are(run, &on_disk, ("local-volume", None));
    (on_disk, others)
}
