//! Later runs name the pods that a run deleted, and say whether the delete was right.

use crate::{
    prelude::*,
    support::{program::binary, proxy::Proxy},
};
use std::{
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

const HISTORY: &str = "/api/v1/namespaces/pod-reaper/configmaps/pod-reaper-history";
const LOCAL: &str = "impala-impala01/impala-executor-000-0";

/// A proxy through which each machine has a boot ID: simulated kubelets report an empty one. `noted` is called when a run has
/// noted something.
fn booted(case: &Case, boot: &'static str, noted: impl Fn() + Send + Sync + 'static) -> Proxy {
    case.rewriting(move |seen, reply| {
        if seen.method == "PATCH" && seen.path.starts_with(HISTORY) {
            noted();
        }
        let Some(name) = seen.path.strip_prefix("/api/v1/nodes/") else {
            return;
        };
        let mut node: Value = serde_json::from_slice(&reply.body).expect("a node");
        node["status"]["nodeInfo"]["bootID"] = json!(format!("{name}-{boot}"));
        reply.body = node.to_string().into_bytes();
    })
}

/// Starts a run and kills it as soon as it has noted the node, before its first delete.
#[track_caller]
fn killed_after_its_note(case: &Case) {
    let pid = Arc::new(AtomicU32::new(0));
    let victim = Arc::clone(&pid);
    let proxy = booted(case, "first", move || {
        let pid = victim.load(Ordering::SeqCst).to_string();
        let killed = Command::new("kill").args(["-s", "KILL", &pid]).status();
        assert!(killed.is_ok_and(|status| status.success()));
    });
    let mut run = binary(&proxy.kubeconfig);
    let mut run = run
        .args(OPTIONS)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    pid.store(run.id(), Ordering::SeqCst);
    assert_eq!(run.wait().expect("it ends").code(), None, "it was killed");
    let seen = proxy.seen();
    assert!(seen.iter().all(|seen| seen.method != "DELETE"), "{seen:?}");
}

/// The one remembered node of a report.
#[track_caller]
fn remembered(run: &Run) -> &Value {
    let history = &run.report["history"];
    assert_eq!(history["unread"], Value::Null, "{history}");
    let [node] = &history["nodes"].as_array().expect("nodes")[..] else {
        panic!("{history}")
    };
    assert_eq!(node["node"], FAILING);
    node
}

/// The Warnings about nodes.
fn warnings(case: &Case) -> Vec<Value> {
    let events = case.get("/apis/events.k8s.io/v1/namespaces/default/events");
    let ours = each(&events["items"]).filter(|it| it["reportingController"] == "pod-reaper");
    // One that says to look at the machine was written while it was down.
    let of_return = |it: &&Value| it["type"] == "Warning" && it["reason"] != "LookAtMachine";
    ours.filter(of_return).cloned().collect()
}

/// A kubelet stops, a run is killed before its first delete, the next one reaps. Later reports name the reaped pods, and which of
/// their sets are Ready. When the kubelet comes back, the boot ID of its machine tells whether the old containers may have run
/// on: that needs you once, in an Event and by exit code 5.
#[test]
fn a_machine_comes_back_with_or_without_a_reboot() {
    let case = Case::start();
    kubectl(&case, &["create", "namespace", "pod-reaper"]);
    kubectl(&case, &["apply", "-f", &folder("cronjob/base/rbac.yaml")]);
    let noted = || case.get(HISTORY)["data"].clone();
    let uid = case.get(&node_path(FAILING))["metadata"]["uid"].clone();
    let uid = uid.as_str().expect("a UID");
    let entry = || serde_json::from_str::<Value>(noted()[uid].as_str().expect("a note")).unwrap();

    let evicted = case.fails(FAILING);
    killed_after_its_note(&case);
    assert_eq!(case.evictable_on(FAILING), evicted);
    assert_eq!(
        (entry()["node"].as_str(), &entry()["pods"]),
        (Some(FAILING), &json!([]))
    );

    let first = booted(&case, "first", || {});
    let options = [OPTIONS[0], OPTIONS[1], "--exit-on-manual"];
    let run = case.reap_through(&first.kubeconfig, &options);
    run.ends(5);
    assert_eq!(remembered(&run)["state"], "down");
    let (local, reaped): (Vec<_>, Vec<_>) =
        evicted.into_iter().partition(|pod| pod.called() == LOCAL);
    all_are(&run, &reaped, REAPED);
    let report = noted()["last-report"].clone();
    for pod in &reaped {
        assert!(
            report.as_str().expect("a text").contains(&pod.name),
            "{report}"
        );
    }

    case.until_replaced(&reaped);
    let run = case.reap_through(&first.kubeconfig, &options);
    run.ends(5);
    let node = remembered(&run);
    assert_eq!(node["state"], "down");
    let names = each(&node["pods"]).map(|pod| (pod["namespace"].clone(), pod["name"].clone()));
    let expected = reaped
        .iter()
        .map(|pod| (json!(pod.namespace), json!(pod.name)));
    assert_eq!(
        names.sorted_by_key(|it| format!("{it:?}")).collect_vec(),
        expected.sorted_by_key(|it| format!("{it:?}")).collect_vec()
    );
    let sets = each(&node["sets"]).map(|set| {
        let names = [&set["namespace"], &set["name"]].map(|it| it.as_str().expect("a name"));
        format!(
            "{} {}/{}",
            names.join("/"),
            set["copies"]["ready"],
            set["copies"]["wanted"]
        )
    });
    assert_eq!(
        sets.collect_vec(),
        [
            "compute-hive01/huebackend 1/1",
            "impala-impala01/huebackend 1/1",
            "vault/vault 1/1"
        ]
    );
    assert_eq!(noted()["last-report"], report, "this run deleted nothing");
    assert_eq!(warnings(&case).len(), 0);

    case.resume(FAILING);
    case.until_ready_is("True", FAILING);
    case.until_stopped(FAILING, [&reaped, &local]);
    case.until_true("its last pod is gone", || {
        !case.pods().iter().any(|pod| pod.uid == local[0].uid)
    });
    let before = noted();
    let states = |run: &Run| {
        (
            remembered(run)["state"].clone(),
            remembered(run)["told"]["state"].clone(),
        )
    };
    let rebooted = case.reap_through(&booted(&case, "second", || {}).kubeconfig, &options);
    rebooted.ends(0);
    assert_eq!(states(&rebooted), (json!("back-rebooted"), Value::Null));
    assert_eq!(warnings(&case).len(), 0);
    assert_ne!(noted(), before, "it is told");

    // As if no run had seen it yet.
    case.merge_patch(HISTORY, json!({ "data": before }));
    let dry = case.reap_through(&first.kubeconfig, &[&options[..], &["--dry-run"]].concat());
    assert_eq!(states(&dry), (json!("back-same-boot"), Value::Null));
    assert_eq!(
        (noted(), warnings(&case).len()),
        (before, 0),
        "a dry run writes nothing"
    );

    let run = case.reap_through(&first.kubeconfig, &options);
    run.ends(5);
    assert_eq!(states(&run), (json!("back-same-boot"), Value::Null));
    let since = remembered(&run)["readySince"]
        .as_str()
        .expect("a time")
        .parse::<Timestamp>();
    assert_eq!(since.unwrap(), case.ready_since(FAILING));
    let [warning] = &warnings(&case)[..] else {
        panic!("{:?}", warnings(&case))
    };
    assert_eq!(
        (&warning["regarding"]["kind"], &warning["regarding"]["uid"]),
        (&json!("Node"), &json!(uid))
    );
    assert_eq!(warning["reason"], "BackSameBoot");

    let again = case.reap_through(&first.kubeconfig, &options);
    again.ends(0);
    assert_eq!(
        states(&again),
        (json!("back-same-boot"), json!("back-same-boot"))
    );
    assert_eq!(warnings(&case).len(), 1);
    let read = first.seen().into_iter().rev().take(2).map(|seen| seen.path);
    assert!(
        read.sorted().next().unwrap().starts_with(HISTORY),
        "a told node is not read again"
    );
}
