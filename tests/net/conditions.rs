//! The plain conditions over the objects of the API: which of them forbid a write, and which make a pod free to go.
//!
//! Between both lie pods about which the conditions say nothing: the tables of rules cover those.

use jiff::{SignedDuration, Timestamp};
use pod_reaper_test_support::simulated::Objects;
use serde_json::Value;

/// The choices on the command line that the conditions depend on.
#[derive(Debug, Clone)]
pub struct Choices {
    /// `--reap-older-than`, in seconds.
    pub threshold: i64,
    /// `--max-not-ready-percent`.
    pub percent: usize,
    /// `--max-failed-together`; 0 is no limit.
    pub together: usize,
    /// `--max-deletes`.
    pub cap: Option<usize>,
    /// `--manual-owner-kind`.
    pub manual: Option<&'static str>,
    /// `--namespace-regex`, which matches exactly this namespace.
    pub only: Option<&'static str>,
    pub dry_run: bool,
}

/// A sign of life is at most this old, or as old as the threshold if that is longer.
const LIFE: i64 = 11 * 60;
/// The label that the random cases pass to `--leaf-node-selector`.
pub const SELECTED_LEAF: &str = "example.org/stands-for";
/// The labels that make a node of the random cases a leaf node.
const LEAF_LABELS: [&str; 2] = ["kosmos.io/node", SELECTED_LEAF];

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

fn age(now: Timestamp, at: Timestamp) -> i64 {
    now.duration_since(at).as_secs()
}

pub fn is_opted_out(object: &Value) -> bool {
    ["annotations", "labels"].iter().any(|place| {
        let value = &object["metadata"][place]["pod-reaper.io/skip"];
        value.as_str().is_some_and(|value| value != "false")
    })
}

/// Returns the status of the condition `Ready`, if there is one.
pub fn ready(node: &Value) -> Option<&str> {
    let conditions = node["status"]["conditions"].as_array()?;
    conditions.iter().find(|it| it["type"] == "Ready")?["status"].as_str()
}

pub fn is_leaf(node: &Value) -> bool {
    let labels = &node["metadata"]["labels"];
    labels["type"] == "virtual-kubelet" || LEAF_LABELS.iter().any(|key| !labels[key].is_null())
}

/// The latest time at which the node may have become NotReady.
fn not_ready_since(node: &Value, now: Timestamp) -> Option<Timestamp> {
    let conditions = node["status"]["conditions"].as_array()?;
    let ready = conditions.iter().find(|it| it["type"] == "Ready");
    let changed = ready.and_then(|it| time(&it["lastTransitionTime"]));
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let added = taints
        .filter(|it| it["effect"] == "NoSchedule")
        .filter_map(|it| time(&it["timeAdded"]));
    added.chain(changed).filter(|at| *at <= now).max()
}

/// When the lease was renewed, by the server's stamp and by the node's own clock.
fn renewals(lease: &Value) -> [Option<Timestamp>; 2] {
    let own = time(&lease["spec"]["renewTime"]);
    let fields = lease["metadata"]["managedFields"].as_array();
    let stamp = fields.and_then(|fields| time(&fields.last()?["time"]));
    [stamp, own]
}

/// Says why no write may be sent for this state of the pod, whatever its node.
pub fn keeps_pod(pod: &Value, now: Timestamp, choices: &Choices) -> Option<&'static str> {
    let metadata = &pod["metadata"];
    let Some(deadline) = time(&metadata["deletionTimestamp"]) else {
        return Some("it is not Terminating");
    };
    let grace = metadata["deletionGracePeriodSeconds"]
        .as_i64()
        .unwrap_or_default();
    if age(now, deadline) + grace < choices.threshold {
        return Some("its deletion was requested a moment ago");
    }
    if !metadata["annotations"]["kubernetes.io/config.mirror"].is_null() {
        return Some("it mirrors a static pod");
    }
    if is_opted_out(pod) {
        return Some("it is opted out");
    }
    if foreign_finalizers(pod) {
        return Some("a finalizer holds it");
    }
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let mut kinds = owners.map(|owner| text(&owner["kind"]));
    if kinds.any(|kind| choices.manual == Some(kind)) {
        return Some("its owner is of a kind that needs you");
    }
    if choices
        .only
        .is_some_and(|only| only != text(&metadata["namespace"]))
    {
        return Some("its namespace is filtered out");
    }
    None
}

/// Whether the pod has a finalizer that the run's delete does not take off, and nobody else after it.
fn foreign_finalizers(pod: &Value) -> bool {
    let all = pod["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten();
    all.into_iter()
        .any(|it| it != "batch.kubernetes.io/job-tracking" && it != "foregroundDeletion")
}

/// Says why no write may be sent for pods of this state of the node.
pub fn keeps_node(
    node: &Value,
    lease: Option<&Value>,
    now: Timestamp,
    choices: &Choices,
) -> Option<&'static str> {
    match ready(node) {
        Some("True") => return Some("its node is Ready"),
        Some("False") => return Some("its kubelet says that it is not ready, so it lives"),
        _ => {}
    }
    if is_leaf(node) {
        return Some("its node is a leaf node");
    }
    if is_opted_out(node) {
        return Some("its node is opted out");
    }
    let Some(since) = not_ready_since(node, now) else {
        return Some("it is not known since when its node is NotReady");
    };
    if age(now, since) < choices.threshold {
        return Some("its node has just become NotReady");
    }
    let most = LIFE.max(choices.threshold);
    let heard = lease.into_iter().flat_map(renewals).flatten();
    let mut heard = heard.filter(|at| *at <= now);
    heard
        .any(|at| at > since && age(now, at) < most)
        .then_some("its node has renewed its lease since")
}

/// The nodes that are real, and how many of them are NotReady, of all and of those without the control-plane role.
fn is_outage(state: &Objects, choices: &Choices) -> bool {
    if choices.percent == 100 {
        return false;
    }
    let real = || {
        state
            .objects
            .iter()
            .filter(|it| it["kind"] == "Node" && !is_leaf(it))
    };
    let is_down = |node: &&Value| ready(node) != Some("True");
    let is_worker = |node: &&Value| {
        let labels = &node["metadata"]["labels"];
        [CONTROL_PLANE, MEMBERS[1]]
            .iter()
            .all(|key| labels[key].is_null())
    };
    let is_share = |down: usize, all: usize| down > 2 && 100 * down >= choices.percent * all;
    is_share(real().filter(is_down).count(), real().count())
        || is_share(
            real().filter(is_worker).filter(is_down).count(),
            real().filter(is_worker).count(),
        )
}

/// Whether a node is real and Ready, and not cordoned, and the pod could start there.
fn has_room(state: &Objects, pod: &Value) -> bool {
    let tolerates = tolerates_lost(pod);
    state.objects.iter().any(|it| {
        it["kind"] == "Node"
            && !is_leaf(it)
            && ready(it) == Some("True")
            && it["spec"]["unschedulable"] != true
            && (tolerates || it["spec"]["taints"].as_array().is_none_or(Vec::is_empty))
    })
}

/// The taint of the random cases, and whether the pod tolerates it.
pub const LOST: &str = "example.org/lost-quorum";

fn tolerates_lost(pod: &Value) -> bool {
    let tolerations = pod["spec"]["tolerations"].as_array();
    tolerations.is_some_and(|all| all.iter().any(|it| it["key"] == LOST))
}

/// Whether the pod certainly restarts on another node: its controller waits for the delete.
fn restarts(state: &Objects, pod: &Value) -> bool {
    let owners = pod["metadata"]["ownerReferences"].as_array();
    let waits = |owner: &Value| {
        let early = ["DaemonSet", "ReplicaSet", "ReplicationController", "Job"];
        !early.contains(&text(&owner["kind"]))
    };
    owners.is_some_and(|all| all.iter().all(waits)) && !is_bound(state, pod)
}

/// Whether a pod that was replaced at its eviction may wait for a volume, or for its Job.
fn may_wait(pod: &Value) -> bool {
    !pod["spec"]["volumes"].is_null() || !pod["metadata"]["finalizers"].is_null()
}

/// Whether a mark says that the node is off, true or not.
fn is_marked_off(node: &Value) -> bool {
    node["metadata"]["annotations"]["fencing/state"] == "fenced"
}

/// Whether more nodes than the limit fell silent within two minutes, this one among them.
fn failed_together(state: &Objects, node: &Value, now: Timestamp, choices: &Choices) -> bool {
    let silent = |node: &Value| {
        let is_it = node["kind"] == "Node" && !is_leaf(node) && ready(node) == Some("Unknown");
        is_it.then(|| not_ready_since(node, now)).flatten()
    };
    let Some(own) = silent(node) else {
        return false;
    };
    let all = state.objects.iter().filter_map(silent).collect::<Vec<_>>();
    let within = |from: Timestamp| {
        let is_within = |at: &&Timestamp| (0..=120).contains(&age(**at, from));
        all.iter().filter(is_within).count()
    };
    let begins = all
        .iter()
        .filter(|from| (0..=120).contains(&age(own, **from)));
    choices.together > 0
        && begins
            .into_iter()
            .any(|from| within(*from) > choices.together)
}

/// Whether the node shows that it is a member of a group of which no majority is Ready.
pub fn lacks_majority(state: &Objects, node: &Value) -> bool {
    let lacks = |is_member: &dyn Fn(&Value) -> bool| {
        let members = state
            .objects
            .iter()
            .filter(|it| it["kind"] == "Node" && is_member(it));
        let (ready, silent): (Vec<_>, Vec<_>) = members.partition(|it| ready(it) == Some("True"));
        ready.len() <= silent.len()
    };
    let has =
        |label: &'static str| move |node: &Value| !node["metadata"]["labels"][label].is_null();
    let by_label = MEMBERS
        .into_iter()
        .any(|label| has(label)(node) && lacks(&has(label)));
    let name = &node["metadata"]["name"];
    let mirrors_api_server = state.objects.iter().any(|it| {
        it["kind"] == "Pod"
            && it["spec"]["nodeName"] == *name
            && it["metadata"]["namespace"] == "kube-system"
            && !it["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null()
            && it["spec"]["containers"][0]["name"] == "kube-apiserver"
    });
    let of_control_plane = |it: &Value| has(CONTROL_PLANE)(it) || it["metadata"]["name"] == *name;
    by_label || mirrors_api_server && lacks(&of_control_plane)
}

/// The labels by which a node shows that it is a member, and that of the control plane.
pub const MEMBERS: [&str; 2] = [
    "node-role.kubernetes.io/etcd",
    "node.kubernetes.io/microk8s-controlplane",
];
pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// Says why a limit, or the majority, forbids to delete the pod now.
pub fn holds(
    state: &Objects,
    pod: &Value,
    now: Timestamp,
    choices: &Choices,
) -> Option<&'static str> {
    let node = find(state, "Node", "", text(&pod["spec"]["nodeName"]))?;
    if is_marked_off(node) {
        return None;
    }
    if is_outage(state, choices) {
        return Some("the breaker's numbers say hold");
    }
    if failed_together(state, node, now, choices) {
        return Some("its node failed together with others");
    }
    if lacks_majority(state, node) {
        return Some("its node may be needed for a majority");
    }
    let restarts = restarts(state, pod) && is_wanted(state, pod);
    (restarts && !has_room(state, pod)).then_some("it could start nowhere else")
}

/// Whether a zone of the node could be held: then the conditions say nothing about its pods.
fn zone_may_be_held(state: &Objects, node: &Value) -> bool {
    let zone = |node: &Value| node["metadata"]["labels"]["topology.kubernetes.io/zone"].clone();
    let own = zone(node);
    let mates = state
        .objects
        .iter()
        .filter(|it| it["kind"] == "Node" && zone(it) == own);
    !own.is_null() && mates.filter(|it| ready(it) != Some("True")).count() > 2
}

/// Returns the object, if it exists.
pub fn find<'a>(state: &'a Objects, kind: &str, namespace: &str, name: &str) -> Option<&'a Value> {
    state.objects.iter().find(|it| {
        it["kind"] == kind
            && text(&it["metadata"]["namespace"]) == namespace
            && it["metadata"]["name"] == name
    })
}

/// The PVCs that the pod names.
fn claims(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.filter_map(|it| it["persistentVolumeClaim"]["claimName"].as_str())
}

/// Whether the pod uses a PVC that does not exist: a file cannot show that, because it may lack the PVC.
pub fn lacks_a_claim(state: &Objects, pod: &Value) -> bool {
    let namespace = text(&pod["metadata"]["namespace"]);
    claims(pod).any(|name| find(state, "PersistentVolumeClaim", namespace, name).is_none())
}

/// Says why the data of the pod, as the objects show it, forbids to delete the pod now.
pub fn keeps_data(
    state: &Objects,
    pod: &Value,
    now: Timestamp,
    choices: &Choices,
) -> Option<&'static str> {
    let namespace = text(&pod["metadata"]["namespace"]);
    if !is_wanted(state, pod) {
        return None;
    }
    let node = find(state, "Node", "", text(&pod["spec"]["nodeName"]))?;
    if writes_a_path(pod) && waits_for_its_end(pod) && !is_bound(state, pod) {
        return Some("its directory is on the node");
    }
    for name in claims(pod) {
        let Some(claim) = find(state, "PersistentVolumeClaim", namespace, name) else {
            continue;
        };
        let Some(volume) = find(
            state,
            "PersistentVolume",
            "",
            text(&claim["spec"]["volumeName"]),
        ) else {
            continue;
        };
        if is_only_here(volume) && !is_given_up(claim, node, now, choices) {
            return Some("its data is on the node");
        }
        let is_marked = !node["metadata"]["annotations"]["fencing/state"].is_null();
        if !is_marked && has_no_keeper(state, volume, claim) && !is_only_here(volume) {
            return Some("two machines could write to its disk");
        }
        let retains = volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain";
        let deleted = time(&claim["metadata"]["deletionTimestamp"]);
        if deleted.is_some() && !retains && !is_given_up(claim, node, now, choices) {
            return Some("a PVC that somebody deleted would go with it");
        }
    }
    None
}

/// Whether a container writes to a directory that is none of the system.
fn writes_a_path(pod: &Value) -> bool {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let path = |name: &Value| {
        let volumes = list(&pod["spec"]["volumes"]);
        let volume = volumes.iter().find(|it| it["name"] == *name)?;
        volume["hostPath"]["path"].as_str().map(str::to_owned)
    };
    let containers = list(&pod["spec"]["containers"]);
    let mut mounts = containers.iter().flat_map(|it| list(&it["volumeMounts"]));
    mounts.any(|mount| {
        let path = path(&mount["name"]).map(|path| format!("{path}/{}", text(&mount["subPath"])));
        path.is_some_and(|path| !path.replace("//", "/").starts_with("/var/log"))
    })
}

/// Whether another pod of that name starts only once this one is gone.
fn waits_for_its_end(pod: &Value) -> bool {
    let owners = pod["metadata"]["ownerReferences"].as_array();
    let controller = owners
        .into_iter()
        .flatten()
        .find(|it| it["controller"] == true);
    let label = &pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"];
    match controller {
        Some(controller) => {
            !["ReplicaSet", "Job", "DaemonSet"].contains(&text(&controller["kind"]))
        }
        None => *label == pod["metadata"]["name"],
    }
}

/// Whether the pod can start on no other node, by its selector.
fn is_bound(state: &Objects, pod: &Value) -> bool {
    let host = &pod["spec"]["nodeSelector"]["kubernetes.io/hostname"];
    let is_other = |it: &&Value| {
        it["kind"] == "Node" && it["metadata"]["name"] != pod["spec"]["nodeName"] && !is_leaf(it)
    };
    let mut others = state.objects.iter().filter(is_other);
    !host.is_null() && !others.any(|it| it["metadata"]["labels"]["kubernetes.io/hostname"] == *host)
}

/// Whether the volume is a disk of one machine that nothing attaches.
fn has_no_keeper(state: &Objects, volume: &Value, claim: &Value) -> bool {
    let modes = claim["spec"]["accessModes"].as_array();
    let is_of_many = modes.into_iter().flatten().any(|it| it == "ReadWriteMany");
    let is_attached = state.objects.iter().any(|it| {
        it["kind"] == "VolumeAttachment"
            && it["spec"]["source"]["persistentVolumeName"] == volume["metadata"]["name"]
            && it["status"]["attached"] == true
    });
    let csi = &volume["spec"]["csi"];
    csi["driver"] == "direct" && csi["fsType"] == "ext4" && !is_of_many && !is_attached
}

/// Whether the PVC was deleted after its node failed, long enough ago, and nothing else holds it.
fn is_given_up(claim: &Value, node: &Value, now: Timestamp, choices: &Choices) -> bool {
    let (Some(deleted), Some(since)) = (
        time(&claim["metadata"]["deletionTimestamp"]),
        not_ready_since(node, now),
    ) else {
        return false;
    };
    let finalizers = claim["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten();
    let mut foreign = finalizers.filter(|it| *it != "kubernetes.io/pvc-protection");
    deleted > since && age(now, deleted) >= choices.threshold.max(600) && foreign.next().is_none()
}

/// Whether something may want the pod again: its namespace stays, and a StatefulSet of that name wants it, if one made it.
fn is_wanted(state: &Objects, pod: &Value) -> bool {
    let namespace = text(&pod["metadata"]["namespace"]);
    let space = find(state, "Namespace", "", namespace);
    if space.is_some_and(|it| !it["metadata"]["deletionTimestamp"].is_null()) {
        return false;
    }
    let owners = pod["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten();
    let mut sets = owners.filter(|owner| owner["kind"] == "StatefulSet");
    let Some(owner) = sets.next() else {
        return true;
    };
    let set = find(state, "StatefulSet", namespace, text(&owner["name"]));
    set.is_some_and(|set| {
        let is_made_again = set["metadata"]["deletionTimestamp"].is_null()
            || !set["metadata"]["ownerReferences"].is_null();
        set["spec"]["replicas"] != 0 && is_made_again
    })
}

/// Whether the volume is a directory of the node, or only this node can reach it.
fn is_only_here(volume: &Value) -> bool {
    let spec = &volume["spec"];
    !spec["local"].is_null() || !spec["hostPath"].is_null() || !spec["nodeAffinity"].is_null()
}

/// Whether plain conditions show that the pod is free to go: it is stuck on a dead node, and nothing of its own is there.
pub fn is_free(state: &Objects, pod: &Value, now: Timestamp, choices: &Choices) -> bool {
    let metadata = &pod["metadata"];
    let namespace = find(state, "Namespace", "", text(&metadata["namespace"]));
    let Some(node) = find(state, "Node", "", text(&pod["spec"]["nodeName"])) else {
        return false;
    };
    let name = text(&node["metadata"]["name"]);
    let Some(lease) = find(state, "Lease", "kube-node-lease", name) else {
        return false;
    };
    let Some(deadline) = time(&metadata["deletionTimestamp"]) else {
        return false;
    };
    let is_silent = renewals(lease)
        .into_iter()
        .all(|at| at.is_some_and(|at| age(now, at) >= LIFE.max(choices.threshold)));
    let conditions = node["status"]["conditions"].as_array().map_or(0, Vec::len);
    // A Lease of a program that was renewed lately may speak for any node.
    let named_by_leases = state.objects.iter().any(|it| {
        it["kind"] == "Lease"
            && it["metadata"]["namespace"] != "kube-node-lease"
            && renewals(it)
                .into_iter()
                .flatten()
                .any(|at| age(now, at) < LIFE.max(choices.threshold))
    });
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let has_other_volumes = volumes
        .into_iter()
        .any(|it| it["persistentVolumeClaim"].is_null());
    let attached = |claim: &str| {
        let claim = find(
            state,
            "PersistentVolumeClaim",
            text(&metadata["namespace"]),
            claim,
        )?;
        let volume = find(
            state,
            "PersistentVolume",
            "",
            text(&claim["spec"]["volumeName"]),
        )?;
        let spec = &volume["spec"];
        let is_plain = spec["csi"]["driver"] == "ceph"
            && spec["nodeAffinity"].is_null()
            && spec["accessModes"] == serde_json::json!(["ReadWriteOnce"]);
        (is_plain && claim["metadata"]["deletionTimestamp"].is_null()).then_some(())
    };
    keeps_pod(pod, now, choices).is_none()
        && keeps_node(node, Some(lease), now, choices).is_none()
        && ready(node) == Some("Unknown")
        && conditions == 1
        && is_silent
        && !named_by_leases
        && age(now, deadline) >= choices.threshold
        && (metadata["finalizers"].is_null()
            || metadata["finalizers"] == serde_json::json!(["foregroundDeletion"]))
        && namespace.is_some_and(|it| !is_opted_out(it))
        && !has_other_volumes
        && claims(pod).all(|claim| attached(claim).is_some())
        && choices.cap.is_none()
        && holds(state, pod, now, choices).is_none()
        && (!may_wait(pod) || has_room(state, pod))
        && (has_room(state, pod) || is_marked_off(node))
        && !zone_may_be_held(state, node)
        && now >= deadline + SignedDuration::ZERO
}
