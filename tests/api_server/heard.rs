//! How a run learns from a real API server that a node's machine is alive, and which PVCs are deleted with a pod.

use crate::prelude::*;

const SERVERS: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const SETS: &str = "/apis/apps/v1/namespaces/apps/statefulsets";

/// The kubelet of a control plane node is silent, but its API server, which this test contacts, still renews its own Lease.
#[test]
fn a_control_plane_node_whose_api_server_works_shows_a_sign_of_life() {
    let cluster = fresh();
    let leases = cluster.get(SERVERS)["items"].take();
    let is_own =
        |lease: &&Value| !lease["metadata"]["labels"]["apiserver.kubernetes.io/identity"].is_null();
    let Some(lease) = leases.as_array().into_iter().flatten().find(is_own) else {
        return assert!(
            !cluster.is_at_least(26),
            "Kubernetes writes such leases since 1.26: {leases}"
        );
    };
    let host = str_of(&lease["metadata"]["labels"]["kubernetes.io/hostname"]).to_owned();
    make(&cluster, "Node ready: {ready: 'True'}");
    let control_plane = |name: &str, host: &str| {
        let labels = format!(
            "{{kubernetes.io/hostname: {host}, node-role.kubernetes.io/control-plane: ''}}"
        );
        make(
            &cluster,
            &format!("Node {name}: {{metadata: {{labels: {labels}}}}}"),
        );
        pod(
            &cluster,
            &format!("apps/db-{name}: {{node: {name}, owner: StatefulSet db}}"),
        )
    };
    let pod = control_plane("cp", &host.to_uppercase());
    until_overdue();
    let ended = run(&cluster.kubeconfig, &SHORT);
    ended.says(&pod, ("kubelet-alive", None));
    let node = &ended.report["nodes"][0];
    assert_eq!(node["signsOfLife"][0]["by"], "kube-apiserver", "{node}");
    assert_eq!(node["lastHeard"]["by"], "kube-apiserver", "{node}");

    // No Lease has the name of this host. A notice says so, because the program may be unable to match an existing Lease.
    let pod = control_plane("cp-2", "cp-2");
    until_overdue();
    let ended = run(&cluster.kubeconfig, &short("--dry-run"));
    assert_eq!(
        ended.reason_and_outcome(&pod).1,
        Some("would-delete"),
        "{}",
        ended.report
    );
    let mut notices = each(&ended.report["notices"]);
    let notice = notices.find(|notice| notice["code"] == "api-server-unknown");
    let detail = str_of(&notice.expect("a notice")["detail"]);
    assert!(detail.contains("cp-2"), "{detail}");
}

/// Each node's machine may renew a Lease in any namespace. The holder is the node, its host, or a pod on it, here in a namespace
/// that the run does not look at. The run reads the bodies of no other Leases, and not those of the nodes' own Leases in the
/// list.
#[test]
fn a_lease_that_something_on_the_node_renews_keeps_its_pods() {
    // Each row has the Lease's name, which is also the node's name, its namespace, its holder, how many minutes ago it was
    // renewed, and whether the node's machine is alive.
    let rows = [
        ("by-a-pod", "apps", "by-a-pod-0", 10, true),
        ("and-a-suffix", "apps", "and-a-suffix-0_5d1c", 10, true),
        ("by-the-node", "kube-system", "by-the-node", 10, true),
        (
            "by-its-host",
            "other",
            "BY-ITS-HOST.example.org_a_b",
            10,
            true,
        ),
        ("from-elsewhere", "other", "from-elsewhere-0", 0, false),
        ("by-another", "apps", "by-another-00", 0, false),
        ("long-ago", "apps", "long-ago-0", 12, false),
    ];
    let cluster = fresh();
    make(
        &cluster,
        "{Node ready-1: {ready: 'True'}, Node ready-2: {ready: 'True'}, Namespace other: {}}",
    );
    let in_other = "/apis/coordination.k8s.io/v1/namespaces/other/leases";
    cluster.create(in_other, yaml("{metadata: {name: without-a-holder}}"));
    let pods = rows.map(|(node, within, holder, minutes, _)| {
        let objects = "
            Node NODE: {metadata: {labels: {kubernetes.io/hostname: NODE.example.org}}}
            Pod apps/NODE-0: {node: NODE, grace: null}
        ";
        make(&cluster, &objects.replace("NODE", node));
        let renewed = minutes * 60;
        let lease = format!("Lease {within}/{node}: {{holder: {holder}, renewed: {renewed}}}");
        make(&cluster, &lease);
        pod(
            &cluster,
            &format!("stuck/{node}: {{node: {node}, owner: ReplicaSet web}}"),
        )
    });
    until_overdue();
    let rows_of_leases = Arc::new(Mutex::new(String::new()));
    let listed = Arc::clone(&rows_of_leases);
    let proxy = Proxy::with_faults(cluster.server(), move |seen| {
        let listed = Arc::clone(&listed);
        if !seen.path.contains("/v1/leases?includeObject") {
            return Act::Forward;
        }
        Act::rewrite(move |reply| {
            *listed.lock().expect("a text") += &String::from_utf8_lossy(&reply.body);
        })
    });
    let options = ["--namespace-regex=^stuck$", "--max-not-ready-percent=100"];
    let ended = run(&proxy.kubeconfig, &[&SHORT[..], &options].concat());
    ended.is_whole();
    for ((node, within, holder, _, lives), pod) in rows.into_iter().zip(&pods) {
        let expected = if lives {
            ("kubelet-alive", None)
        } else {
            REAPED
        };
        ended.says(pod, expected);
        let mut nodes = each(&ended.report["nodes"]);
        let signs = &nodes.find(|entry| entry["name"] == node).expect("it")["signsOfLife"];
        let named = format!("Lease {within}/{node}, held by {holder}");
        let expected = lives.then(|| json!({"by": "other-lease", "what": named}));
        let signs = each(signs).map(|sign| json!({"by": sign["by"], "what": sign["what"]}));
        assert_eq!(signs.collect_vec(), Vec::from_iter(expected), "{node}");
    }
    let listed = rows_of_leases.lock().expect("a text");
    assert!(
        listed.contains("from-elsewhere-0") && !listed.contains("ready-1"),
        "{listed}"
    );
    assert!(!listed.contains("renewTime"), "{listed}");
    let read = proxy.seen().into_iter().map(|seen| seen.path);
    let read = read.filter(|path| path.contains("/leases") && !path.contains("kube-node-lease/"));
    let names = |path: String| {
        let path = path.replace("metadata.name%3D", "/leases/");
        let name = path.split_once("/leases/")?.1;
        Some(name.split('&').next()?.to_owned())
    };
    let read = read.filter_map(names).collect::<BTreeSet<_>>();
    // A row has no namespace, so the run looks for a Lease that a pod holds in the pod's namespace.
    let expected = rows.map(|(lease, ..)| lease.to_owned());
    let expected = expected.into_iter().filter(|lease| lease != "by-another");
    assert_eq!(read, expected.collect());
}

/// A `StatefulSet` with `whenScaled: Delete` makes the pod the owner of its PVCs when it is scaled down.
#[test]
fn a_claim_goes_with_the_pod_that_owns_it_only_while_nothing_wants_it_again() {
    let cluster = one_dead();
    let owned = |name: &str| scaled_down(&cluster, name);
    let (down, up) = (owned("down"), owned("up"));
    cluster.merge_patch(&format!("{SETS}/up"), yaml("{spec: {replicas: 1}}"));
    until_overdue();
    let ended = run(&cluster.kubeconfig, &SHORT);
    ended.says(&down, REAPED);
    let note = str_of(&ended.pod(&down)["note"]);
    assert!(note.contains("disk-down-0"), "{note}");
    ended.says(&up, ("volume-unverified", None));
}

/// Creates the pod of a set that was scaled to zero. The pod owns its PVC and is stuck on the dead node. Returns its UID.
fn scaled_down(cluster: &ControlPlane, name: &str) -> String {
    let objects = "
        StatefulSet apps/NAME: {spec: {replicas: 0}}
        PersistentVolume disk-NAME-0: {claim: apps/disk-NAME-0,
            spec: {csi: {driver: disk.example.org, volumeHandle: NAME}}}
    ";
    make(cluster, &objects.replace("NAME", name));
    let stuck = "apps/NAME-0: {owner: StatefulSet NAME, uses: disk-NAME-0}";
    let pod = pod(cluster, &stuck.replace("NAME", name));
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": format!("{name}-0"), "uid": pod});
    let path = claim_path("apps", &format!("disk-{name}-0"));
    cluster.merge_patch(&path, json!({"metadata": {"ownerReferences": [owner]}}));
    pod
}
