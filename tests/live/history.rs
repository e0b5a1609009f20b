//! What a run remembers, once the machine is back.

use crate::{
    case::OPTIONS,
    prelude::*,
    support::proxy::{Proxy, Reply, Seen as Request},
};

/// A way to the API server on which each machine has this boot ID of its own. These kubelets have none.
fn booted(case: &Case, boot: &'static str) -> Proxy {
    let rewrite = move |request: &Request, reply: &mut Reply| {
        let Some((_, node)) = request.path.split_once("/api/v1/nodes/") else {
            return;
        };
        let mut object = serde_json::from_slice::<Value>(&reply.body).unwrap_or_default();
        if object["kind"] == "Node" {
            object["status"]["nodeInfo"]["bootID"] = json!(format!("{boot}-of-{node}"));
            reply.body = object.to_string().into_bytes();
        }
    };
    Proxy::rewriting(case.live.0, rewrite)
}

fn text_of(case: &Case, key: &str) -> String {
    let map = case.get("/api/v1/namespaces/pod-reaper/configmaps/pod-reaper-history");
    map["data"][key].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_machine_comes_back_without_a_reboot() {
    let case = Case::start();
    case.apply(
        "{apiVersion: v1, kind: Namespace, metadata: {name: pod-reaper}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: pod-reaper-history, namespace: pod-reaper}}
",
    );
    let same = booted(&case, "first");
    let reap = |way: &Proxy, further: &[&str]| {
        let options = OPTIONS.iter().chain(further).copied().collect_vec();
        case.reap_through(&way.kubeconfig, &options)
    };
    let state = |run: &Run| run.report["history"]["nodes"][0]["state"].clone();

    case.stop(FAILING);
    let evicted = case.until_evicted(FAILING);
    case.until_stuck(&evicted);
    let reaped = reap(&same, &[]);
    reaped.ends(0);
    let deleted = reaped.report["summary"]["outcomes"]["deleted"].clone();
    assert!(text_of(&case, "last-report").contains("DONE"));

    let later = reap(&same, &[]);
    let node = &later.report["history"]["nodes"][0];
    assert_eq!(node["state"], "down", "{node}");
    assert_eq!(json!(each(&node["pods"]).len()), deleted, "{node}");
    assert!(each(&node["sets"]).len() > 0, "{node}");

    case.resume(FAILING);
    case.until_ready_is("True", FAILING);
    let back = reap(&same, &["--exit-on-manual"]);
    back.ends(5);
    assert_eq!(state(&back), "back-same-boot");
    let events = case.get("/apis/events.k8s.io/v1/events");
    let about_node = |event: &&Value| {
        event["type"] == "Warning"
            && event["regarding"]["kind"] == "Node"
            && event["reportingController"] == "pod-reaper"
    };
    let warnings = each(&events["items"]).filter(about_node).count();
    assert_eq!(warnings, 1, "{events}");
    let told = reap(&same, &["--exit-on-manual"]);
    assert_eq!(state(&told), "back-same-boot");
    assert_ne!(told.code, 5, "it needs you once: {}", told.report);

    // The same, had the machine been rebooted in between.
    let mut note = serde_json::from_str::<Value>(&text_of(&case, str_of(&node["uid"]))).unwrap();
    note["told"] = Value::Null;
    let patch = json!({"data": {str_of(&node["uid"]): note.to_string()}});
    case.merge_patch(
        "/api/v1/namespaces/pod-reaper/configmaps/pod-reaper-history",
        patch,
    );
    let rebooted = reap(&booted(&case, "second"), &["--exit-on-manual"]);
    assert_eq!(state(&rebooted), "back-rebooted");
    assert_ne!(rebooted.code, 5, "{}", rebooted.report);
}
