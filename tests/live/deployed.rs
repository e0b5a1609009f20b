//! `cronjob/` with the real controllers: where its pod is placed, why a run replaces the one before, which pods the guard for
//! Kosmos keeps, and that its removal is complete.

use crate::{
    leaf::pin_to,
    prelude::*,
    support::{
        installed::as_user,
        objects::{make, node_path, renew_lease},
    },
};

pub const CRONJOBS: &str = "/apis/batch/v1/namespaces/pod-reaper/cronjobs";
/// The simulated image has no user. With the real image, `tests/real-node` runs the pod as shipped.
pub const USER: u32 = 65532;
const IN_THE_NAMESPACE: &str = "/api/v1/namespaces/pod-reaper/pods";

/// A run's own pod is on the node that fails. With the shipped concurrency policy, the next run starts on another node, and also
/// reaps the pod of the earlier run. With `Forbid`, no run starts until you clean up: the Job has passed its deadline and cannot
/// end. Finally, `kubectl delete -k` removes everything while a run is in progress.
#[test]
fn a_run_that_dies_with_its_node_does_not_stop_the_next() {
    let case = Case::start();
    install(&case, DEFAULT);
    let shipped = case.get(&format!("{CRONJOBS}/pod-reaper"));
    assert_eq!(shipped["spec"]["concurrencyPolicy"], "Replace");
    case.merge_patch(
        &format!("{CRONJOBS}/pod-reaper"),
        yaml("{spec: {suspend: true}}"),
    );
    for policy in ["Replace", "Forbid"] {
        let name = policy.to_lowercase();
        let mut spec = shipped["spec"].clone();
        spec["schedule"] = json!("* * * * *");
        spec["concurrencyPolicy"] = json!(policy);
        spec["jobTemplate"]["spec"]["activeDeadlineSeconds"] = json!(20);
        let template = &mut spec["jobTemplate"]["spec"]["template"];
        template["metadata"]["labels"] = json!({"policy": name});
        template["spec"]["securityContext"]["runAsUser"] = json!(USER);
        template["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
            yaml(
                "[{weight: 100, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [ds03]}]}}]",
            );
        case.create(
            CRONJOBS,
            json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec}),
        );
    }
    let pods_of = |name: &str| -> Vec<Seen> {
        let prefix = format!("{name}-");
        let pods = case.pods().into_iter();
        pods.filter(|pod| pod.namespace == "pod-reaper" && pod.name.starts_with(&prefix))
            .collect()
    };
    // This takes up to the next full minute.
    let patience = Duration::from_mins(3);
    let [replaced, forbidding] = ["replace", "forbid"].map(|name| {
        case.within(patience, &format!("the first run of {name}"), || {
            pods_of(name)
                .into_iter()
                .find(|pod| pod.node == FAILING && pod.is_running())
        })
    });
    case.stop(FAILING);
    case.until_ready_is("Unknown", FAILING);

    let next = case.within(patience, "the next run, elsewhere", || {
        pods_of("replace")
            .into_iter()
            .find(|pod| pod.owner != replaced.owner && pod.is_running())
    });
    assert_ne!(next.node, FAILING);
    case.within(patience, "the run that is skipped", || {
        let events = case.get("/api/v1/namespaces/pod-reaper/events");
        let mut events = events["items"]
            .as_array()
            .cloned()
            .unwrap_or_default()
            .into_iter();
        events
            .any(|event| {
                event["reason"] == "JobAlreadyActive" && event["involvedObject"]["name"] == "forbid"
            })
            .then_some(())
    });
    let left = pods_of("forbid");
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(
        (&left[0].uid, left[0].deadline.is_some()),
        (&forbidding.uid, true),
        "{left:?}"
    );

    // The container of the next run is simulated, so the test runs the program in its place.
    let evicted = case.until_evicted(FAILING);
    case.until_stuck(&evicted);
    let run = case.reap("");
    run.ends(0);
    all_are(&run, [&replaced, &forbidding], REAPED);
    let workloads =
        |pod: &Seen| pod.namespace != "pod-reaper" && pod.name != "impala-executor-000-0";
    case.until_replaced(&evicted.into_iter().filter(workloads).collect_vec());

    kubectl(&case, &["delete", "-k", &folder(DEFAULT)]);
    let kinds = ["api-resources", "--verbs=list", "--output=name"];
    let kinds = kubectl(&case, &kinds);
    let kinds = kinds.lines().filter(|kind| !kind.starts_with("events"));
    let kinds = kinds.collect_vec().join(",");
    case.until_true("nothing of the installation is left", || {
        let all = kubectl(&case, &["get", &kinds, "--all-namespaces", "--output=name"]);
        !all.contains("pod-reaper")
    });
}

/// The link to a leaf cluster is cut and a node fails. The pods of the leaf nodes are not changed, those of the dead node are
/// evicted. Without the guard all are evicted: `leaf::nodes_that_are_no_machines`.
#[test]
fn the_guard_keeps_the_pods_of_a_silent_leaf_node() {
    const NODE_CONTROLLER: &str = "system:serviceaccount:kube-system:node-controller";
    /// A leaf node whose name is not that of a leaf node: its pods are recognized by their label alone.
    const ONE_TO_ONE: &str = "ds05";
    const LEAF: &str = "kosmos-member1";
    let nodes = ["ds01", "ds02", "ds03", "ds04", ONE_TO_ONE, LEAF];
    let case = Case::with(&nodes, 1, &[]);
    for node in [LEAF, ONE_TO_ONE] {
        pin_to(&case, node);
    }
    case.until_true("the pods of the leaf nodes are Running", || {
        case.pods().iter().all(Seen::is_running)
    });
    let component = folder("cronjob/components/kosmos-guard/kosmos-guard.yaml");
    kubectl(&case, &["apply", "--warnings-as-errors", "-f", &component]);
    let labelled = |pod: &Seen| pod.name.starts_with("on-");
    // On the node with a leaf node's name, pods without the label stay too. On the other node, only pods with the label stay.
    let mut guarded = case.evictable_on(LEAF);
    assert!(
        guarded.iter().any(|pod| !labelled(pod)) && guarded.iter().any(labelled),
        "{guarded:?}"
    );
    let (mut by_label, unguarded): (Vec<_>, Vec<_>) = case
        .evictable_on(ONE_TO_ONE)
        .into_iter()
        .partition(labelled);
    assert!(
        !by_label.is_empty() && !unguarded.is_empty(),
        "{by_label:?} {unguarded:?}"
    );
    guarded.append(&mut by_label);
    for pod in &guarded {
        until("the guard is in force", || {
            let options = yaml("{gracePeriodSeconds: 0, dryRun: [All]}");
            let path = pod_path(&pod.namespace, &pod.name);
            let (code, answer) = as_user(NODE_CONTROLLER, &case, "DELETE", &path, &options);
            code == 403
                && answer["message"]
                    .as_str()
                    .is_some_and(|message| message.contains("kosmos-guard"))
        });
    }
    let probes = refusals(&case);

    for node in [LEAF, ONE_TO_ONE, FAILING] {
        case.stop(node);
    }
    case.until_evicted(FAILING);
    case.until_true("the pods that no mark protects are Terminating", || {
        let pods = case.pods();
        let marked = |pod: &Seen| {
            pods.iter()
                .any(|now| now.uid == pod.uid && now.deadline.is_some())
        };
        unguarded.iter().all(marked)
    });
    // The controller logs this right before it requests a deletion.
    let tried = case.until("the eviction of every guarded pod was tried", || {
        let events = case.get("/api/v1/events")["items"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let evictions = events
            .iter()
            .filter(|event| event["reason"] == "TaintManagerEviction");
        let names: Vec<_> = evictions
            .map(|event| event["involvedObject"]["name"].clone())
            .collect();
        guarded
            .iter()
            .all(|pod| names.contains(&json!(pod.name)))
            .then_some(names)
    });
    case.until_true("the guard has refused as many", || {
        refusals(&case) >= probes + guarded.len()
    });
    let as_they_were = |pods: &[Seen]| guarded.iter().all(|pod| pods.contains(pod));
    assert!(
        as_they_were(&case.pods()),
        "{:?}, tried: {tried:?}",
        case.pods()
    );

    // The link is up again.
    for node in [LEAF, ONE_TO_ONE] {
        case.resume(node);
        case.until_ready_is("True", node);
    }
    assert!(as_they_were(&case.pods()), "{:?}", case.pods());
}

/// The number of requests that the guard has refused.
fn refusals(cluster: &ControlPlane) -> usize {
    let (_, metrics) = cluster.request("GET", "/metrics", None);
    let lines = metrics.as_str().expect("text").lines();
    let of_guard = lines.filter(|line| {
        line.starts_with("apiserver_validating_admission_policy_check_total{")
            && line.contains("enforcement_action=\"deny\"")
            && line.contains("policy=\"kosmos-guard\"")
    });
    of_guard
        .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
        .sum()
}

fn start_job(cluster: &ControlPlane, name: &str) {
    let from = "--from=cronjob/pod-reaper";
    kubectl(
        cluster,
        &["create", "job", "--namespace=pod-reaper", from, name],
    );
}

/// The scheduler places the pod on no node with a node marker that is a label or a taint, for every vendor. It does place the pod
/// on a control plane node whose labels have the same keys and another meaning.
#[test]
fn the_scheduler_places_its_pod_on_no_leaf_node() {
    // A unit test compares these rules with the node markers.
    let cronjob = yaml(include_str!("../../cronjob/base/cronjob.yaml"));
    let template = &cronjob["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let terms =
        &template["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let refused = terms["nodeSelectorTerms"][0]["matchExpressions"].as_array();
    let refused = refused.into_iter().flatten();
    let refused = refused.filter(|expression| expression["operator"] != "In");
    let labels = refused.map(|expression| {
        let value = expression["values"][0].as_str().unwrap_or("true");
        format!("{}: '{value}'", expression["key"])
    });
    let labels = labels.collect_vec();
    assert!(labels.len() > 10, "{labels:?}");
    let taints = "
        kosmos.io/node
        virtual-kubelet.io/provider
        virtual-node.liqo.io/not-allowed
        virtual-node.interlink/no-schedule
        k8s.aliyun.com/vnode
        eks.tke.cloud.tencent.com/eklet
        schedule.koupleless.io/virtual-node
    ";
    let taints = taints.split_whitespace().collect_vec();
    let ordinary = "{ready: 'True',
        metadata: {labels: {type: worker, liqo.io/type: worker, node.kubernetes.io/instance-type: m5.large,
            kwok.x-k8s.io/node: real, openyurt.io/is-edge-worker: 'false', superedge.io/node-edge: disable}},
        spec: {taints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]}}
    ";
    let cluster = ControlPlane::start_with(&["--controllers"], &[])
        .unwrap_or_else(|message| panic!("{message}"));
    let labelled = labels
        .iter()
        .map(|label| format!("metadata: {{labels: {{{label}}}}}"));
    let tainted = taints.iter().map(|key| {
        format!("spec: {{taints: [{{key: {key}, value: 'true', effect: NoSchedule}}]}}")
    });
    let mut nodes = Vec::new();
    for (at, mark) in labelled.chain(tainted).enumerate() {
        nodes.push(format!("marked-{at}"));
        make(
            &cluster,
            &format!("Node marked-{at}: {{ready: 'True', {mark}}}"),
        );
    }
    install(&cluster, DEFAULT);

    // No kubelet keeps these nodes Ready.
    let keep_ready = |nodes: &[String]| {
        for node in nodes {
            renew_lease(&cluster, node);
        }
    };
    until("the controller has taken its own taints away", || {
        keep_ready(&nodes);
        let list = cluster.get("/api/v1/nodes");
        !list["items"]
            .to_string()
            .contains("\"node.kubernetes.io/not-ready\"")
    });
    start_job(&cluster, "now");
    let all = format!("0/{} nodes are available", nodes.len());
    let by_label = format!(
        "{} node(s) didn't match Pod's node affinity/selector",
        labels.len()
    );
    until(
        "it is refused by every node, by those with a label for that label",
        || {
            keep_ready(&nodes);
            let pods = cluster.get(IN_THE_NAMESPACE);
            let pod = &pods["items"][0];
            assert_eq!(pod["spec"].get("nodeName"), None, "{pod}");
            let conditions = pod["status"]["conditions"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            let message = conditions
                .iter()
                .filter_map(|condition| condition["message"].as_str());
            message
                .into_iter()
                .any(|message| message.contains(&all) && message.contains(&by_label))
        },
    );

    make(&cluster, &format!("Node plain: {ordinary}"));
    nodes.push("plain".to_owned());
    until("it is placed", || {
        keep_ready(&nodes);
        let pods = cluster.get(IN_THE_NAMESPACE);
        pods["items"][0]["spec"].get("nodeName").is_some()
    });
    assert_eq!(
        cluster.get(IN_THE_NAMESPACE)["items"][0]["spec"]["nodeName"],
        "plain"
    );
    // The scheduler has refused the other nodes because of their markers, and not because they were not Ready.
    for (node, key) in nodes[labels.len()..].iter().zip(taints) {
        let taints = cluster.get(&node_path(node))["spec"]["taints"].clone();
        assert_eq!(
            (taints.as_array().map(Vec::len), &taints[0]["key"]),
            (Some(1), &json!(key)),
            "{node}"
        );
    }
    cluster.stop();
}
