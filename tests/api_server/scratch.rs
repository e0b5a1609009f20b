//! `--reap-scratch` on a real API server, with and without the permissions of its component. The module `guard` tests the guard
//! of that component, `manifests` its permissions.
//!
//! No controller runs here, so a deleted PVC stays with its deletion timestamp; `live` has the controllers.

use crate::{prelude::*, support::installed::kubeconfig};

pub const SCRATCH: &str = "pod-reaper.io/scratch";
pub const GIVE_UP: &str = "pod-reaper.io/give-up";
pub const KEPT: &str = "pod-reaper.io/kept";

pub fn claim_path(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
}

/// Creates a PVC with a volume on the node's disk.
pub fn local_claim(
    cluster: &ControlPlane,
    node: &str,
    namespace: &str,
    name: &str,
    annotation: (&str, &str),
) {
    let volume = format!(
        "PersistentVolume pv-{namespace}-{name}: {{on: {node}, claim: {namespace}/{name},
            spec: {{local: {{path: /mnt/disk}}, persistentVolumeReclaimPolicy: Delete}}}}"
    );
    make(cluster, &volume);
    annotate(
        cluster,
        &claim_path(namespace, name),
        annotation.0,
        annotation.1,
    );
}

/// Creates a `StatefulSet` with a PVC template, and its pod stuck on the node. Returns the pod's UID.
pub fn stuck(cluster: &ControlPlane, node: &str, name: &str, annotation: (&str, &str)) -> String {
    let set = "StatefulSet apps/NAME: {spec: {volumeClaimTemplates: [{metadata: {name: disk},
        spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}";
    make(cluster, &set.replace("NAME", name));
    local_claim(cluster, node, "apps", &format!("disk-{name}-0"), annotation);
    // The StatefulSet controller sets this label from Kubernetes 1.28 on.
    let stuck = "apps/NAME-0: {node: NODE, owner: StatefulSet NAME, uses: disk-NAME-0,
        metadata: {labels: {apps.kubernetes.io/pod-index: '0'}}}";
    pod(cluster, &stuck.replace("NAME", name).replace("NODE", node))
}

/// Creates two pods that are stuck on a dead node. The storage of one is scratch.
fn one_of_each(cluster: &ControlPlane) -> (String, String) {
    one_dead_of_three(cluster);
    let pods = (
        stuck(cluster, "dead", "cache", (SCRATCH, "true")),
        stuck(cluster, "dead", "db", (KEPT, "true")),
    );
    until_overdue();
    pods
}

/// Applies the shipped installation with these components.
pub fn install(cluster: &ControlPlane, components: &[&str]) {
    let file = cluster.dir.join("with-components.yaml");
    fs::write(&file, kustomized("cronjob", components, "")).expect("our folder");
    let file = file.display().to_string();
    kubectl(cluster, &["apply", "--warnings-as-errors", "-f", &file]);
    until("the account may read pods", || {
        may(cluster, "list", "", "pods", "")
    });
    if !components.is_empty() {
        namespace(cluster, "probe");
        let probe = claim_path("probe", "probe");
        local_claim(cluster, "dead", "probe", "probe", (KEPT, "true"));
        until("the guard is in force", || {
            let dry = yaml("{dryRun: [All]}");
            let (_, answer) = as_user(ACCOUNT, cluster, "DELETE", &probe, &dry);
            answer["message"]
                .as_str()
                .is_some_and(|message| message.contains("pod-reaper may"))
        });
    }
}

fn scratch_run(kubeconfig: &Path) -> Run {
    run(kubeconfig, &short("--reap-scratch"))
}

fn is_deleted(cluster: &ControlPlane, claim: &str) -> bool {
    let found = cluster.try_get(&claim_path("apps", claim));
    found.is_none_or(|claim| !claim["metadata"]["deletionTimestamp"].is_null())
}

#[test]
fn with_the_component_scratch_goes_and_nothing_else() {
    let cluster = fresh();
    let (cache, db) = one_of_each(&cluster);
    install(&cluster, &["answers"]);
    let run = scratch_run(&kubeconfig(&cluster));
    run.says(&cache, ("scratch", Some("deleted")));
    run.says(&db, ("local-volume", None));
    run.is_whole();
    let why = str_of(&run.pod(&db)["detail"]);
    assert!(why.contains("disk-db-0") && why.contains(SCRATCH), "{why}");
    assert!(is_deleted(&cluster, "disk-cache-0") && !is_deleted(&cluster, "disk-db-0"));
    assert_eq!(cluster.try_get(&pod_path("apps", "cache-0")), None);
}

#[test]
fn without_the_component_it_is_left_alone_and_the_run_says_what_it_lacks() {
    let cluster = fresh();
    let (cache, db) = one_of_each(&cluster);
    install(&cluster, &[]);
    let run = scratch_run(&kubeconfig(&cluster));
    run.says(&db, ("local-volume", None));
    run.says(&cache, ("scratch", Some("denied")));
    run.ends(3);
    let why = str_of(&run.pod(&cache)["outcomeDetail"]);
    let lacks = "; the `answers` component (Helm: answers.enabled) grants that permission";
    assert!(
        why.contains("cannot delete resource \"persistentvolumeclaims\"") && why.contains(lacks),
        "{why}"
    );
    assert!(!is_deleted(&cluster, "disk-cache-0"));
    assert!(cluster.has_pod("apps", "cache-0"));
}

/// The node is Ready again at the second look, which comes after the rehearsal.
#[test]
fn a_node_that_comes_back_in_the_middle_loses_nothing() {
    let cluster = fresh();
    let (cache, _) = one_of_each(&cluster);
    let rehearsal = |seen: &Seen| seen.method == "DELETE";
    let server = cluster.server();
    let proxy = Proxy::start(server, move |seen| {
        if rehearsal(seen) {
            node_becomes(server, "dead", "True", "KubeletReady");
        }
    });
    let run = scratch_run(&proxy.kubeconfig);
    run.says(&cache, ("scratch", Some("node-recovered")));
    let seen = proxy.seen();
    assert!(
        seen.iter()
            .filter(|seen| seen.is_change())
            .all(Seen::is_dry),
        "{seen:?}"
    );
    assert!(!is_deleted(&cluster, "disk-cache-0"));
}

/// Between the decision and the delete, somebody wants to keep the PVC, changes it, or creates another PVC of the same name.
#[test]
fn a_claim_that_changed_meanwhile_is_left_alone() {
    const CLAIM: &str = "disk-cache-0";
    type Change = fn(&ControlPlane);
    let keep: Change = |cluster| {
        let more = json!({"metadata": {"annotations": {SCRATCH: null}}});
        cluster.merge_patch(&claim_path("apps", CLAIM), more);
    };
    let touch: Change = |cluster| {
        let path = claim_path("apps", CLAIM);
        annotate(cluster, &path, "example.org/touched", "once");
    };
    let replace: Change = |cluster| {
        let path = claim_path("apps", CLAIM);
        cluster.delete(&path, json!({}));
        cluster.merge_patch(&path, yaml("{metadata: {finalizers: null}}"));
        let another = "{on: dead, claim: apps/disk-cache-0, spec: {local: {path: /mnt/disk}}}";
        make(cluster, &format!("PersistentVolume pv-another: {another}"));
        annotate(cluster, &path, SCRATCH, "true");
    };
    for (what, change) in [("kept", keep), ("touched", touch), ("another", replace)] {
        let cluster = fresh();
        let (cache, _) = one_of_each(&cluster);
        let server = cluster.server();
        let proxy = Proxy::start(server, move |seen| {
            if seen.method == "DELETE" && seen.path.contains("/pods/") {
                change(server);
            }
        });
        let run = scratch_run(&proxy.kubeconfig);
        run.says(&cache, ("scratch", Some("changed")));
        let says = str_of(&run.pod(&cache)["outcomeDetail"]);
        assert!(says.contains(CLAIM), "{what}: {says}");
        // The rehearsal of the PVC's delete notices the change.
        let changes = proxy.seen().into_iter().filter(Seen::is_change);
        assert!(changes.clone().all(|seen| seen.is_dry()), "{what}");
        assert!(!is_deleted(&cluster, CLAIM), "{what}");
        assert!(cluster.has_pod("apps", "cache-0"), "{what}");
    }
}
