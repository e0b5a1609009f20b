//! Events of a run, read back with kubectl.

use crate::prelude::*;

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
    assert!(!run.log.contains("Events"), "{}", run.log);
    let expected = [
        "compute-hive01 Normal StuckOnNotReadyNode ReplicaSet hue-frontend-7c9d8b6f5",
        "compute-hive01 Normal StuckOnNotReadyNode StatefulSet hiveserver2",
        "compute-hive01 Normal StuckOnNotReadyNode StatefulSet huebackend",
        "default Warning LookAtMachine Node ds06",
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
    let events = cluster.get("/apis/events.k8s.io/v1/events");
    for event in each(&events["items"]) {
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
        ("describe node ds06", "Warning LookAtMachine pod-reaper"),
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
