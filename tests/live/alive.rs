//! A node that is NotReady and not dead: something on the machine still writes to the API server.

use crate::prelude::*;

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
        // A step says how to repair the node, and no command destroys anything.
        let commands = commands(&run, &pod.uid);
        let harmless = !commands.iter().any(|command| destroys(command));
        assert!(
            harmless && steps_about(&run.report, entry).next().is_some(),
            "{entry}"
        );
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

/// Whether the command deletes.
pub fn destroys(command: &str) -> bool {
    command.contains("delete")
}
