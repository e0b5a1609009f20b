//! Events of a run, read back with kubectl.

use crate::{prelude::*, rights};

/// The warnings in a log. The warning about Events names the option that turns Events off.
fn warned(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains("WARN")).collect()
}

/// All Events of the program, as `kubectl get events` prints them: namespace, type, reason, object.
fn printed(cluster: &ControlPlane) -> Vec<String> {
    let columns = "custom-columns=NS:.metadata.namespace,TYPE:.type,REASON:.reason,KIND:.involvedObject.kind,\
                   NAME:.involvedObject.name";
    let arguments = format!(
        "get events -A --field-selector=reportingComponent=pod-reaper --no-headers -o {columns}"
    );
    let printed = kubectl(cluster, &arguments.split(' ').collect_vec());
    let lines = printed
        .lines()
        .map(|line| line.split_whitespace().join(" "));
    let mut lines = lines.collect_vec();
    lines.sort();
    lines
}

fn events(cluster: &ControlPlane) -> Vec<Value> {
    cluster.get("/apis/events.k8s.io/v1/events")["items"]
        .as_array()
        .expect("items")
        .clone()
}

/// Creates a pod on `dead` that needs you.
fn held(cluster: &ControlPlane, name: &str) -> Value {
    let held = "{owner: StatefulSet held, metadata: {finalizers: [example.org/hold]}}";
    make(cluster, &format!("Pod apps/{name}: {held}")).remove(0)
}

#[test]
fn deletes_are_reported_on_owners_and_nodes_and_what_needs_a_person_on_its_pod() {
    let cluster = six_nodes::after_an_hour();
    make(&cluster, "StatefulSet etl/real: {}");
    for name in ["real-0", "real-1"] {
        let of_set = format!("Pod etl/{name}: {{node: ds06, owner: StatefulSet real}}");
        make(&cluster, &of_set);
    }
    let alone = pod(&cluster, "etl/alone: {node: ds06}");
    until_overdue();

    let run = run(&cluster.kubeconfig, &SHORT);

    assert_eq!(
        (run.code, &run.report["summary"]["outcomes"]["deleted"]),
        (0, &json!(10)),
        "{}",
        run.log
    );
    assert_eq!(warned(&run.log), [""; 0]);
    let expected = [
        "compute-hive01 Normal StuckOnNotReadyNode ReplicaSet hue-frontend-7c9d8b6f5",
        "compute-hive01 Normal StuckOnNotReadyNode StatefulSet hiveserver2",
        "compute-hive01 Normal StuckOnNotReadyNode StatefulSet huebackend",
        "default Normal StuckOnNotReadyNode Node ds06",
        "etl Normal StuckOnNotReadyNode Job nightly-29370",
        "etl Normal StuckOnNotReadyNode Pod alone",
        "etl Normal StuckOnNotReadyNode StatefulSet real",
        "impala-impala01 Normal StuckOnNotReadyNode StatefulSet catalogd",
        "impala-impala01 Normal StuckOnNotReadyNode StatefulSet huebackend",
        "impala-impala01 Warning LocalVolume Pod impala-executor-000-0",
        "kosmos-apps Warning KosmosLeaf Pod web-0",
        "vault Normal StuckOnNotReadyNode StatefulSet vault",
    ];
    assert_eq!(printed(&cluster), expected);

    let node = cluster.get("/api/v1/nodes/ds06");
    for event in events(&cluster) {
        let regarding = &event["regarding"];
        let instance = event["reportingInstance"].as_str().unwrap_or_default();
        let warns = event["type"] == "Warning";
        let related = (regarding["kind"] != "Node").then_some("Node");
        assert!(
            event["reportingController"] == "pod-reaper"
                && !instance.is_empty()
                && !str_of(&event["note"]).is_empty()
                && event["action"] == if warns { "Manual" } else { "Deleted" }
                && event["related"]["kind"].as_str() == related,
            "{event}"
        );
        if regarding["name"] == "alone" {
            assert_eq!(regarding["uid"], alone);
            assert_eq!(event["related"]["uid"], node["metadata"]["uid"]);
        }
    }

    // `kubectl describe` finds the Events of an object by UID. The test does not compare ages.
    for (command, line) in [
        (
            "describe node ds06",
            "Normal StuckOnNotReadyNode pod-reaper",
        ),
        (
            "describe statefulset real -n etl",
            "Normal StuckOnNotReadyNode pod-reaper",
        ),
        (
            "describe pod impala-executor-000-0 -n impala-impala01",
            "Warning LocalVolume pod-reaper",
        ),
        ("get events -n etl", "Normal StuckOnNotReadyNode pod/alone"),
    ] {
        let text = kubectl(&cluster, &command.split(' ').collect_vec());
        let has_all = |shown: &str| line.split(' ').all(|word| shown.contains(word));
        assert!(text.lines().any(has_all), "{command}: {text}");
    }
}

#[test]
fn a_dry_run_writes_none() {
    let cluster = six_nodes::after_an_hour();
    let proxy = Proxy::to(&cluster);
    let run = run(&proxy.kubeconfig, &short("--dry-run"));
    assert_eq!(run.code, 0, "{}", run.log);
    let asked = proxy
        .seen()
        .into_iter()
        .filter(|seen| seen.path.contains("events"))
        .collect_vec();
    assert!(asked.is_empty(), "{asked:?}");
    assert_eq!(printed(&cluster), [""; 0]);
}

/// RBAC forbids Events, or allows them.
#[test]
fn without_the_rights_the_run_is_complete() {
    let cluster = one_dead();
    held(&cluster, "held-0");
    // The permitted verb, and how many Events about the owner, the node and the pod that needs you can be written with it.
    let rows = [("none", 0), ("create", 3)];
    for (name, written) in rows {
        let more = yaml(&format!(
            "
            - {{apiGroups: [''], resources: [pods], verbs: [delete]}}
            - {{apiGroups: [events.k8s.io], resources: [events], verbs: [{name}]}}
            "
        ));
        let rules = [rights::reading(), more.as_array().expect("rules").clone()].concat();
        let user = rights::user(&cluster, &format!("events-{name}"), &rules);
        let stuck = format!("apps/stuck-{name}: {{owner: StatefulSet stuck}}");
        let stuck = pod(&cluster, &stuck);
        until_overdue();
        let before = events(&cluster).len();
        let run = run(&user, &SHORT);
        assert_eq!(
            (run.code, run.reason_and_outcome(&stuck).1),
            (0, Some("deleted")),
            "{name}: {}",
            run.log
        );
        let warned = warned(&run.log);
        assert_eq!(
            warned.len(),
            usize::from(written == 0),
            "{name}: {warned:?}"
        );
        assert_eq!(events(&cluster).len() - before, written, "{name}");
    }
}
