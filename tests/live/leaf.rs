//! Nodes that are not machines: Kosmos leaf nodes, and the nodes of a Virtual Kubelet and of KWOK.

use crate::{
    alive::{ON_DISK, destroys},
    prelude::*,
    support::objects::make,
};

/// The virtual node of a leaf cluster, with the label that Kosmos sets. A kubelet stands in for Kosmos's cluster manager, which
/// renews the Lease in the same way. Killing the kubelet simulates a cut link.
const LEAF: &str = "kosmos-member1,kosmos.io/node=true,kubernetes.io/role=agent";

/// In Kosmos's one-to-one mode, a node of the leaf cluster under its own name. Kosmos can be configured to set no
/// taint, so that the annotation is the only mark.
const LEAF_NODES: [&str; 2] = ["kosmos-member1", "ds05"];
const VIRTUAL_NODES: [&str; 2] = ["vk01", "kw01"];

/// The links to two leaf nodes are cut, the processes behind two virtual nodes stop, and a machine dies. Kubernetes evicts from
/// all five. A run reaps the pods of the machine. The pods of the other nodes need you. When the
/// processes are back, they stop the evicted pods, which ran all the while: the Virtual Kubelet by name, at its provider.
#[test]
fn nodes_that_are_no_machines() {
    // Kubernetes stops evicting once 55% of the nodes are NotReady, so ten nodes are needed for five that fail.
    let nodes = ["ds01", "ds02", "ds03", "ds04", "ds05", "ds06", "ds07", LEAF];
    let case = Case::with(&nodes, 1, &["--virtual-kubelet", "vk01", "--kwok", "kw01"]);
    for node in LEAF_NODES {
        let path = node_path(node);
        annotate(&case, &path, "kosmos-io/owned-by-cluster", "member1");
        pin_to(&case, node);
    }
    for node in VIRTUAL_NODES {
        case.apply(&ON_A_VIRTUAL_NODE.replace("NODE", node));
    }
    case.until_true("the pods of all these nodes are Running", || {
        let are_running = VIRTUAL_NODES.iter().all(|node| {
            let pods = case.pods_on(node);
            pods.iter().filter(|pod| pod.is_running()).count() == 2
        });
        are_running && case.pods().iter().all(Seen::is_running)
    });
    let at_the_provider = |call: &str, pod: &Seen| {
        let log =
            fs::read_to_string(case.dir.join("logs/virtual-kubelet-vk01.log")).expect("its log");
        log.contains(&format!(r#"receive {call} \"{}\""#, pod.name))
    };

    for node in LEAF_NODES.iter().chain(&VIRTUAL_NODES).chain([&FAILING]) {
        case.stop(node);
    }
    let of_the_machine = case.until_evicted(FAILING);
    let evicted_from = |nodes: [&str; 2]| {
        let mut evicted = nodes.map(|node| case.until_evicted(node)).concat();
        evicted.sort();
        evicted
    };
    let of_leaf_nodes = evicted_from(LEAF_NODES);
    for node in LEAF_NODES {
        let pinned = format!("on-{node}-0");
        assert!(
            of_leaf_nodes.iter().any(|pod| pod.name == pinned),
            "{of_leaf_nodes:?}"
        );
    }
    let of_virtual_nodes = evicted_from(VIRTUAL_NODES);
    assert_eq!(of_virtual_nodes.len(), 4, "{of_virtual_nodes:?}");
    let all = [&of_the_machine, &of_leaf_nodes, &of_virtual_nodes];
    for evicted in all {
        case.until_stuck(evicted);
    }

    let run = case.reap("");
    let on_the_machine = of_the_machine.iter().filter(|pod| pod.called() != ON_DISK);
    all_are(&run, on_the_machine, REAPED);
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

    for run in [run, case.reap("")] {
        run.ends(0);
        all_are(&run, &of_leaf_nodes, ("kosmos-leaf", None));
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
    }
    let left_on = |nodes: [&str; 2]| {
        let mut left = nodes.map(|node| case.evictable_on(node)).concat();
        left.sort();
        left
    };
    assert_eq!(left_on(LEAF_NODES), of_leaf_nodes);
    assert_eq!(left_on(VIRTUAL_NODES), of_virtual_nodes);
    let of_the_virtual_kubelet = of_virtual_nodes.iter().filter(|pod| pod.node == "vk01");
    for pod in of_the_virtual_kubelet.clone() {
        assert!(
            at_the_provider("CreatePod", pod) && !at_the_provider("DeletePod", pod),
            "{}",
            pod.name
        );
    }

    for node in VIRTUAL_NODES {
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
    for pod in of_the_virtual_kubelet {
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

/// Makes a pod that Kosmos would manage, on this node and no other.
pub fn pin_to(case: &Case, node: &str) {
    let evicted = "operator: Exists, effect: NoExecute, tolerationSeconds: 1";
    let set = format!(
        "
        StatefulSet compute-hive01/on-{node}:
            spec:
                template:
                    metadata: {{labels: {{kosmos-io/pod: 'true'}}}}
                    spec:
                        terminationGracePeriodSeconds: 2
                        nodeSelector: {{kubernetes.io/hostname: {node}}}
                        tolerations:
                        - {{key: node.kubernetes.io/unreachable, {evicted}}}
                        - {{key: node.kubernetes.io/not-ready, {evicted}}}
                        containers: [{{name: main, image: pretended}}]
        "
    );
    make(case, &set);
}
