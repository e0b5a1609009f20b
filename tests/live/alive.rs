//! Nodes that are NotReady and not dead: one whose kubelet still reports, and virtual nodes.

use crate::{prelude::*, support::objects::make};

/// The pod on a local disk.
const ON_DISK: &str = "impala-impala01/impala-executor-000-0";

/// The sign of life of the failing node in a report.
#[track_caller]
fn sign_of_life(run: &Run) -> &Value {
    let mut nodes = each(&run.report["nodes"]);
    let node = nodes.find(|node| node["name"] == FAILING);
    &node.expect("it is not Ready")["signsOfLife"][0]
}

/// By the container runtime of the failing node.
#[track_caller]
fn run_here<'a>(case: &Case, pods: impl IntoIterator<Item = &'a Seen>) {
    let running = case.running_in_containers(FAILING);
    for pod in pods {
        assert!(running.contains(&pod.uid), "{pod:?}: {running:?}");
    }
}

/// The container runtime hangs: Ready becomes False, the lease is renewed, the containers run on, and Kubernetes evicts
/// nevertheless. The pods are left to a person; with `--kubelet-alive=reap` they are reaped. When the runtime has recovered,
/// the kubelet stops the containers of what was reaped, and confirms the deletion that was left.
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
        // Some command shows how to repair the node.
        let commands = commands(&run, &pod.uid);
        let harmless = !commands.iter().any(|command| destroys(command));
        assert!(harmless && !commands.is_empty(), "{entry}");
    }
    assert_eq!(case.evictable_on(FAILING), evicted);

    let run = case.reap("--kubelet-alive reap");
    run.ends(0);
    let (on_disk, moved) = without_a_disk(&run, evicted);
    all_are(&run, &moved, REAPED);
    case.until_replaced(&moved);
    assert_eq!(case.evictable_on(FAILING), on_disk);
    run_here(&case, &moved);

    case.recover_runtime(FAILING);
    case.until_ready_is("True", FAILING);
    case.until_true("the kubelet has stopped all that was evicted", || {
        let running = case.running_in_containers(FAILING);
        let was_evicted = |uid: &String| moved.iter().chain(&on_disk).any(|pod| pod.uid == *uid);
        !running.iter().any(was_evicted)
    });
    case.until("the pod of the local disk is back on it", || {
        let pods = case.pods_on(FAILING);
        pods.into_iter().find(|pod| {
            pod.owner == on_disk[0].owner && pod.uid != on_disk[0].uid && pod.is_running()
        })
    });
    assert_eq!(case.untouched(), elsewhere);
    let after = case.reap("");
    assert_eq!(
        (after.code, after.report["summary"]["pods"].as_u64()),
        (0, Some(0)),
        "{}",
        after.report
    );
}

/// A pod leads by a Lease, and renews it from the machine whose kubelet has stopped. So it lives, and with it all pods
/// there. When it is killed too, they are reaped.
#[test]
fn a_leader_on_a_silent_node() {
    let case = Case::start();
    let holder = "huebackend-0_5d1c7a52-9d0e-4d5e-9a43-6c7f0a3ac7c1";
    make(
        &case,
        &format!("Lease compute-hive01/hue: {{holder: {holder}}}"),
    );
    // What an election does for as long as it leads. It ends by itself once there is no API server.
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

/// The machine of the failing node, which was just heard, is dead. For some minutes nobody knows; then its pods are reaped.
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

/// A kubelet whose clock is an hour late reports that its node became NotReady an hour ago. The taint has the control
/// plane's time, by which it was just now. The lease is an hour old by its own time, and just renewed by the server's.
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

    // Longer than the scenario takes, and shorter than the node reports.
    let run = case.reap("--kubelet-alive reap --node-not-ready-for 30m");
    run.ends(0);
    all_are(&run, &evicted, ("node-just-failed", None));
    assert_eq!(case.evictable_on(FAILING), evicted);

    let run = case.reap("");
    run.ends(0);
    all_are(&run, &evicted, ("kubelet-alive", None));
    assert_eq!(case.evictable_on(FAILING), evicted);
}

/// The processes behind the nodes of a Virtual Kubelet and of KWOK stop, and a machine dies. Kubernetes evicts from all
/// three. The run leaves the pods of the virtual nodes to a person, whatever `--kubelet-alive` is, and reaps those of the
/// machine. When the processes are back, they stop the evicted pods, which ran all the while: the Virtual Kubelet by name,
/// at its provider.
#[test]
fn nodes_that_are_no_machines() {
    let case = Case::with(&SIX, 1, &["--virtual-kubelet", "vk01", "--kwok", "kw01"]);
    let virtual_nodes = ["vk01", "kw01"];
    for node in virtual_nodes {
        case.apply(&ON_A_VIRTUAL_NODE.replace("NODE", node));
    }
    case.until_true("the pods of the virtual nodes are Running", || {
        let run = |node: &&str| {
            case.pods_on(node)
                .iter()
                .filter(|pod| pod.is_running())
                .count()
                == 2
        };
        virtual_nodes.iter().all(run)
    });
    let at_the_provider = |call: &str, pod: &Seen| {
        let log =
            fs::read_to_string(case.dir.join("logs/virtual-kubelet-vk01.log")).expect("its log");
        log.contains(&format!(r#"receive {call} \"{}\""#, pod.name))
    };

    for node in virtual_nodes {
        case.stop(node);
    }
    case.stop(FAILING);
    let of_the_machine = case.until_evicted(FAILING);
    let mut of_virtual_nodes = Vec::new();
    for node in virtual_nodes {
        let evicted = case.until_evicted(node);
        assert_eq!(evicted.len(), 2, "{evicted:?}");
        of_virtual_nodes.extend(evicted);
    }
    of_virtual_nodes.sort();
    case.until_stuck(&of_the_machine);
    case.until_stuck(&of_virtual_nodes);

    let run = case.reap("--kubelet-alive reap");
    run.ends(0);
    let marks = |name: &str| {
        let nodes = run.report["nodes"].as_array().expect("nodes");
        let node = nodes
            .iter()
            .find(|node| node["name"] == name)
            .expect("it is NotReady");
        let marks = each(&node["leafMarks"]);
        // The version of the built Virtual Kubelet is not the same everywhere.
        marks
            .map(|mark| {
                mark.as_str()
                    .expect("text")
                    .split("-vk-")
                    .next()
                    .unwrap()
                    .to_owned()
            })
            .collect_vec()
    };
    let of_a_virtual_kubelet = [
        "label type=virtual-kubelet",
        "taint virtual-kubelet.io/provider",
        "annotation virtual-kubelet.io/last-applied-node-status",
        "kubelet version v1.15.2",
    ];
    assert_eq!(marks("vk01"), of_a_virtual_kubelet);
    assert_eq!(
        marks("kw01"),
        [
            "annotation kwok.x-k8s.io/node=fake",
            "label type=kwok",
            "kubelet version kwok-0.8.0"
        ]
    );
    assert_eq!(marks(FAILING), [""; 0]);
    all_are(&run, &of_virtual_nodes, ("virtual-node", None));
    for pod in &of_virtual_nodes {
        assert_eq!(run.pod(&pod.uid)["verdict"], "manual", "{}", pod.called());
        let commands = commands(&run, &pod.uid);
        assert!(
            !commands.iter().any(|command| destroys(command)),
            "{}: {commands:?}",
            pod.called()
        );
    }
    all_are(
        &run,
        of_the_machine.iter().filter(|pod| pod.called() != ON_DISK),
        REAPED,
    );
    let mut left: Vec<_> = virtual_nodes
        .iter()
        .flat_map(|node| case.evictable_on(node))
        .collect();
    left.sort();
    assert_eq!(left, of_virtual_nodes);
    let of_the_virtual_kubelet: Vec<_> = left.iter().filter(|pod| pod.node == "vk01").collect();
    for pod in &of_the_virtual_kubelet {
        assert!(
            at_the_provider("CreatePod", pod) && !at_the_provider("DeletePod", pod),
            "{}",
            pod.name
        );
    }

    for node in virtual_nodes {
        case.resume(node);
    }
    // A Virtual Kubelet reports its node's status once a minute.
    case.within(
        Duration::from_mins(3),
        "the evicted pods are gone, and their owners' new ones run",
        || {
            let pods = case.pods();
            let is_replaced = |old: &Seen| {
                pods.iter()
                    .any(|new| new.owner == old.owner && new.uid != old.uid && new.is_running())
            };
            let is_gone = |old: &Seen| !pods.iter().any(|pod| pod.uid == old.uid);
            of_virtual_nodes
                .iter()
                .all(|old| is_gone(old) && is_replaced(old))
                .then_some(())
        },
    );
    for pod in &of_the_virtual_kubelet {
        assert!(
            at_the_provider("DeletePod", pod),
            "{} was not stopped at the provider",
            pod.name
        );
    }
}

/// A StatefulSet and a Deployment that run on one virtual node and nowhere else.
const ON_A_VIRTUAL_NODE: &str = "
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: on-NODE, namespace: compute-hive01}
  spec:
    serviceName: on-NODE
    selector: {matchLabels: {app: on-NODE}}
    template:
      metadata: {labels: {app: on-NODE}}
      spec: &pod
        terminationGracePeriodSeconds: 2
        nodeSelector: {kubernetes.io/hostname: NODE}
        tolerations:
        - {key: virtual-kubelet.io/provider, operator: Exists}
        - {key: kwok.x-k8s.io/node, operator: Exists}
        - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
        - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
        containers: [{name: main, image: pretended}]
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web-on-NODE, namespace: compute-hive01}
  spec:
    selector: {matchLabels: {app: web-on-NODE}}
    template:
      metadata: {labels: {app: web-on-NODE}}
      spec: *pod
";

/// Whether it deletes, or answers, after which a run deletes.
fn destroys(command: &str) -> bool {
    command.contains("delete") || command.contains("annotate")
}

/// The pods without the one on a local disk, which is checked to be left for that.
#[track_caller]
fn without_a_disk(run: &Run, pods: Vec<Seen>) -> (Vec<Seen>, Vec<Seen>) {
    let (on_disk, others): (Vec<_>, Vec<_>) =
        pods.into_iter().partition(|pod| pod.called() == ON_DISK);
    assert_eq!(on_disk.len(), 1);
    all_are(run, &on_disk, ("local-volume", None));
    (on_disk, others)
}
