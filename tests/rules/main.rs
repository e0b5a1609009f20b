//! The tables of rules: for each rule, clusters on both sides of its boundary, and the verdicts that a run gives.
//!
//! The clusters are in the one vocabulary of the tests (`tests/support/src/words.rs`), laid over `base` of the table. The whole program
//! judges them, as a file.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../audit/mod.rs"]
mod audit;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use itertools::Itertools as _;
use jiff::Timestamp;
use pod_reaper::{cluster::Cluster, run::run_on, stop::Stop};
use pod_reaper_test_support::{
    objects::{each, steps_about},
    samples::{self, list, objects, with, yaml},
    simulated::{Objects, Server},
};
use serde_json::{Value, json};

use self::audit::{audit, settings};

/// Reads the table of one file: the base, and each group of rows.
fn table(file: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
    yaml(&fs::read_to_string(folder.join(file)).unwrap())
}

/// Judges the described cluster. Returns verdict and reason of each pod.
fn judge(described: &Value, options: &Value) -> Value {
    verdicts(&report(described, options))
}

/// Reports about the described cluster.
fn report(described: &Value, options: &Value) -> Value {
    let file = list(objects(described)).to_string();
    report_of_file(&file, options).unwrap_or_else(|error| panic!("{error}: {described}"))
}

/// Judges a file. Returns verdict and reason of each pod, or why the run could not judge.
fn judge_file(text: &str, options: &Value) -> Result<Value, String> {
    report_of_file(text, options).map(|report| verdicts(&report))
}

fn report_of_file(text: &str, options: &Value) -> Result<Value, String> {
    let options = options.as_str().unwrap_or_default().split_whitespace();
    let args = ["pod-reaper"].into_iter().chain(options).map(str::to_owned);
    audit(text, samples::NOW, args.collect())
}

/// Reports about the described cluster on a simulated API server.
fn report_live(described: &Value) -> Value {
    let settings = settings(&["pod-reaper", "--dry-run"].map(str::to_owned));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let report = runtime.block_on(async {
        let server = Server::new(Objects::new(
            samples::NOW.parse().unwrap(),
            objects(described),
        ));
        let (_signal, stop) = Stop::manual(settings.deadline);
        let cluster = Cluster::new(server.client(), stop.clone());
        run_on(&cluster, &settings, false, &stop)
            .await
            .unwrap()
            .report()
    });
    serde_json::to_value(report).unwrap()
}

/// What is foreseen of each pod, Terminating or not: verdict and reason, and in how many seconds.
fn foreseen(report: &Value) -> Value {
    let time = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
    let now = time(&report["judgedAt"]);
    let pods = [&report["pods"], &report["notEvicted"]];
    let pods = pods.into_iter().flat_map(|pods| pods.as_array().unwrap());
    let pods = pods.map(|pod| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let name = format!("{}/{}", text(&pod["namespace"]), text(&pod["name"]));
        let it = &pod["foreseen"];
        let said = if it.is_null() {
            "nothing".to_owned()
        } else {
            let seconds = time(&it["at"]).duration_since(now).as_secs();
            let code = it["limit"]
                .as_str()
                .unwrap_or(it["reason"].as_str().unwrap());
            format!("{} {code} in {seconds}", text(&it["verdict"]))
        };
        (name, json!(said))
    });
    pods.collect()
}

/// Verdict and reason of each pod of a report.
fn verdicts(report: &Value) -> Value {
    let pods = report["pods"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pods = pods.map(|pod| {
        let name = format!("{}/{}", text(&pod["namespace"]), text(&pod["name"]));
        let has_step = steps_about(report, pod).next().is_some();
        let is_held = report["breaker"].is_object();
        assert!(
            has_step || is_held || pod["verdict"] != "manual",
            "needs you, for nothing: {pod}"
        );
        (
            name,
            json!(format!(
                "{} {}",
                text(&pod["verdict"]),
                text(&pod["reason"])
            )),
        )
    });
    pods.collect()
}

/// Returns the value of a row for each of the pods that were `found`: one for all, or one for each.
fn for_each(row: &Value, found: &Value) -> Value {
    match row {
        Value::String(all) => {
            let pods = found.as_object().unwrap().keys();
            pods.map(|pod| (pod.clone(), json!(all))).collect()
        }
        each => each.clone(),
    }
}

/// Checks the rows of a table. A row gives one verdict, which is that of all Terminating pods, or the verdict of each of them; so it
/// does with what is foreseen, of pods that are not evicted, too.
fn check(file: &str) {
    let table = table(file);
    let groups = table
        .as_object()
        .unwrap()
        .iter()
        .filter(|(group, _)| *group != "base");
    let mut wrongs = BTreeMap::new();
    let mut rows = 0;
    for (group, group_rows) in groups {
        for (case, row) in group_rows.as_object().unwrap() {
            rows += 1;
            let more = if row["in"].is_null() {
                json!({})
            } else {
                row["in"].clone()
            };
            let mut described = with(table["base"].clone(), more);
            // An entry that is null makes no object.
            described
                .as_object_mut()
                .unwrap()
                .retain(|_, entry| !entry.is_null());
            let report = if file == "clock.yaml" {
                report_live(&described)
            } else {
                report(&described, &row["with"])
            };
            let mut has_said = false;
            for (column, given) in [
                ("gives", verdicts(&report)),
                ("foreseen", foreseen(&report)),
            ] {
                // A row may be about one of the two.
                let is_said = row[column].is_string() || row[column].is_object();
                let wanted = for_each(&row[column], &given);
                let is_empty = given.as_object().unwrap().is_empty();
                let is_right = given == wanted && !(row[column].is_string() && is_empty);
                has_said |= is_said;
                if is_said && !is_right {
                    wrongs.insert(
                        format!("{group}: {case}: {column}"),
                        json!({"wanted": row[column], "given": given}),
                    );
                }
            }
            assert!(has_said, "{group}: {case}: it wants nothing");
        }
    }
    assert!(rows > 0 && wrongs.is_empty(), "{file}: {wrongs:#?}");
}

/// The cause of each pod that hangs, and what to look at first. Nothing that a report of it prints destroys anything.
#[test]
fn causes() {
    let table = table("hangs.yaml");
    let mut wrongs = BTreeMap::new();
    let groups = table.as_object().unwrap().iter();
    for (case, row) in groups
        .filter(|(group, _)| *group != "base")
        .flat_map(|(_, rows)| rows.as_object().unwrap())
    {
        let described = with(table["base"].clone(), row["in"].clone());
        let args = format!("explain {}", row["ask"].as_str().unwrap());
        let report = report(&described, &json!(args));
        let found = match &report["explained"]["waitsFor"]["kind"] {
            Value::Null => &report["pods"][0]["cause"],
            waits => waits,
        };
        let step = &report["steps"][0];
        let commands = each(&report["steps"]).flat_map(|step| {
            let cases = each(&step["cases"]).flat_map(|case| each(&case["commands"]));
            cases.chain([&step["command"]]).filter_map(Value::as_str)
        });
        let commands = commands.collect::<Vec<_>>();
        let harms = ["--force", "grace-period", "delete", "patch", "finalizers"];
        let harms = commands
            .iter()
            // The options of a drain, which evicts pods.
            .map(|command| command.replace("--skip-wait-for-delete-timeout", ""))
            .map(|command| command.replace("--delete-emptydir-data", ""))
            .any(|command| harms.iter().any(|it| command.contains(it)));
        let first = commands.first().copied().unwrap_or_default();
        let restarts = row["restart"].as_str();
        let is_right = found == &row["cause"]
            && first.starts_with(row["first"].as_str().unwrap())
            && restarts.is_none_or(|restart| commands.contains(&restart));
        if !is_right || harms {
            wrongs.insert(
                case,
                json!({"cause": found, "commands": commands, "step": step}),
            );
        }
    }
    assert!(wrongs.is_empty(), "{wrongs:#?}");
}

#[test]
fn node_rules() {
    check("node.yaml");
}

#[test]
fn life_rules() {
    check("life.yaml");
}

#[test]
fn storage_rules() {
    check("storage.yaml");
}

#[test]
fn foresight() {
    check("foresight.yaml");
}

#[test]
fn clock() {
    check("clock.yaml");
}

#[test]
fn limits() {
    check("limits.yaml");
}

/// Each mark alone makes the dead node one that stands for something else.
#[test]
fn every_mark_of_a_leaf_node() {
    let marks = yaml(&fs::read_to_string("tests/data/leaf-marks.yaml").unwrap());
    for mark in marks.as_array().unwrap() {
        let node = with(
            table("node.yaml")["base"].clone(),
            json!({"Node ds06": mark}),
        );
        let given = judge(&node, &Value::Null)["data/db-0"].clone();
        let codes = ["kosmos-leaf", "virtual-node", "edge-node"];
        let wanted = codes.map(|code| json!(format!("manual {code}")));
        assert!(wanted.contains(&given), "{mark}: {given}");
    }
}

/// One pod that is reaped, and pods of which each is kept by one of the objects.
const KEPT: &str = "
    Pod data/free-0: {}
    Pod data/skipped-0: {metadata: {annotations: {pod-reaper.io/skip: 'true'}}}
    Pod data/held-0: {metadata: {finalizers: [example.org/hold]}}
    Pod data/local-0: {uses: local}
    PersistentVolume pv-local: {claim: data/local, on: ds06}
    StatefulSet data/local: {apiVersion: apps/v1, spec: {replicas: 1}}
    Pod data/leader-0: {node: ds07}
    Node ds07: {}
    Lease data/leader: {holder: leader-0}
    Pod vk/far-0: {node: vk}
    Node vk: {metadata: {labels: {type: virtual-kubelet}}}
    Namespace vk: {}
";

/// Each place in the value, as a JSON pointer.
fn places(value: &Value) -> Vec<String> {
    let below = |key: &str, value: &Value| {
        let key = key.replace('/', "~1");
        let deeper = places(value).into_iter();
        deeper
            .map(|rest| format!("/{key}{rest}"))
            .collect::<Vec<_>>()
    };
    let mut all = vec![String::new()];
    match value {
        Value::Object(fields) => all.extend(fields.iter().flat_map(|(key, it)| below(key, it))),
        Value::Array(items) => {
            all.extend(
                (0..)
                    .zip(items)
                    .flat_map(|(at, it): (usize, _)| below(&at.to_string(), it)),
            );
        }
        _ => {}
    }
    all
}

/// A value that cannot be read may keep pods, and never makes one go: each value of each object in turn is of another type.
#[test]
fn a_malformed_value_anywhere_never_adds_a_pod_to_the_plan() {
    let described = with(table("node.yaml")["base"].clone(), yaml(KEPT));
    let state = objects(&described);
    let judged = |state: Vec<Value>| {
        let judged = judge_file(&list(state).to_string(), &Value::Null).unwrap_or_default();
        let pods = judged.as_object().cloned().unwrap_or_default();
        let reaped = pods
            .into_iter()
            .filter(|(_, it)| it == "reap stuck-on-not-ready-node");
        reaped.map(|(pod, _)| pod).collect::<BTreeSet<_>>()
    };
    let free = judged(state.clone());
    assert_eq!(free.len(), 2, "{free:?}");
    let mut tried = 0;
    for (number, object) in state.iter().enumerate() {
        for place in places(object).into_iter().skip(1) {
            for malformed in [json!(5), json!({"a": 5}), json!("a")] {
                let mut state = state.clone();
                let value = state[number].pointer_mut(&place).unwrap();
                // A value of the same type is not malformed.
                if std::mem::discriminant(value) == std::mem::discriminant(&malformed) {
                    continue;
                }
                *value = malformed.clone();
                tried += 1;
                let reaped = judged(state);
                // A pod is known by its name here, and not if that is malformed.
                let is_named = !place.ends_with("/name") && !place.ends_with("/namespace");
                assert!(
                    !is_named || reaped.is_subset(&free),
                    "{place} of {} is {malformed}: {reaped:?}",
                    object["metadata"]["name"]
                );
            }
        }
    }
    assert!(tried > 500, "{tried}");
}

/// Every form in which kubectl prints objects is the same state.
#[test]
fn every_form_of_a_file_gives_the_same_verdicts() {
    let state = objects(&with(table("node.yaml")["base"].clone(), yaml(KEPT)));
    let one = list(state.clone()).to_string();
    let alone = |indent: bool| {
        let each = state.iter();
        each.map(|it| {
            if indent {
                format!("{it:#}")
            } else {
                format!("{it}\n")
            }
        })
        .collect::<String>()
    };
    let kind = |object: &&Value| object["kind"].as_str().unwrap().to_owned();
    let kinds = state.iter().into_group_map_by(kind);
    let typed = kinds.iter().map(|(kind, items)| {
        json!({"apiVersion": "v1", "kind": format!("{kind}List"), "items": items}).to_string()
    });
    let expected = judge_file(&one, &Value::Null).unwrap();
    assert_eq!(expected.as_object().unwrap().len(), 7, "{expected}");
    for text in [
        alone(false),
        alone(true),
        typed.collect(),
        format!("{one}\n{one}"),
        format!(r#"{one}{{"kind": "ServiceList", "items": null}}"#),
        format!("\u{feff}{one}"),
    ] {
        assert_eq!(judge_file(&text, &Value::Null).unwrap(), expected, "{text}");
    }
}

/// A file that does not say what is absent, or what an object is like, is refused, and says by whose fault.
#[test]
fn a_file_of_which_parts_are_elsewhere_or_twice_is_refused_by_name() {
    let state = objects(&with(table("node.yaml")["base"].clone(), yaml(KEPT)));
    let one = list(state.clone()).to_string();
    let page =
        |kind: &str, next: &str| json!({"kind": kind, "metadata": {"continue": next}, "items": []});
    let version = |kind: &str, name: &str, version: &str| {
        let object = state
            .iter()
            .find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
        with(
            object.unwrap().clone(),
            json!({"metadata": {"resourceVersion": version}}),
        )
    };
    let history = |version: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "namespace": "pod-reaper", "name": "pod-reaper-history", "resourceVersion": version}})
    };
    let pod = version("Pod", "free-0", "7");
    let namesake = with(
        pod.clone(),
        json!({"metadata": {"uid": "another", "resourceVersion": "8"}}),
    );
    for (more, refused) in [
        (vec![page("PodList", "")], None),
        (vec![page("PodList", "abc")], Some("PodList")),
        (vec![page("List", "abc")], Some("List")),
        (vec![version("Pod", "free-0", "7")], None),
        (vec![version("Pod", "free-0", "8")], Some("Pod data/free-0")),
        (vec![namesake], None),
        (vec![version("Node", "ds06", "8")], Some("Node ds06")),
        (
            vec![version("Lease", "ds06", "8")],
            Some("Lease kube-node-lease/ds06"),
        ),
        (vec![history("7"), history("7")], None),
        (
            vec![history("7"), history("8")],
            Some("ConfigMap pod-reaper/pod-reaper-history"),
        ),
    ] {
        let texts = more.iter().map(Value::to_string).collect::<String>();
        let judged = judge_file(&format!("{one}{texts}"), &Value::Null);
        match refused {
            None => assert!(judged.is_ok(), "{more:?}: {judged:?}"),
            Some(name) => assert!(
                judged.as_ref().is_err_and(|why| why.contains(name)),
                "{name}: {judged:?}"
            ),
        }
    }
}

/// Each path of the host, container and CSI volume of `volumes.yaml` decides alone about its pod.
#[test]
fn each_volume_alone() {
    let base = table("storage.yaml")["base"].clone();
    let mounts = json!([{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/data"}]}]);
    let path =
        |path: &str, kind: &str| json!([{"name": "v", "hostPath": {"path": path, "type": kind}}]);
    let pod = |spec: Value| json!({"Pod data/db-0": {"spec": spec}});
    for (kind, verdicts) in table("volumes.yaml").as_object().unwrap() {
        for (verdict, entries) in verdicts.as_object().unwrap() {
            for entry in entries.as_array().unwrap() {
                let words = || entry.as_str().unwrap().split_once(' ');
                let described = match kind.as_str() {
                    "paths" => {
                        let (at, kind) = words().unwrap_or((entry.as_str().unwrap(), ""));
                        pod(json!({"containers": mounts, "volumes": path(at, kind)}))
                    }
                    "containers" => pod(with(json!({"volumes": path("/data", "")}), entry.clone())),
                    _ => {
                        let csi = with(json!({"driver": "direct"}), entry.clone());
                        let volume = json!({"claim": "data/data-db-0", "spec": {"csi": csi}});
                        json!({"CSIDriver direct": {"spec": {"attachRequired": false}}, "PersistentVolume pv": volume,
                            "Pod data/db-0": {"uses": "data-db-0"}})
                    }
                };
                let given = judge(&with(base.clone(), described), &Value::Null);
                let is_right = given.as_object().unwrap().values().all(|it| it == verdict);
                assert!(is_right, "{entry}: {given}");
            }
        }
    }
}

/// Of any number of paths and mounts, those are found that a container may write to.
#[test]
fn many_paths_of_the_host() {
    let mounts = (0..1_000).map(|at| json!({"name": format!("w{at}")}));
    let volumes = (0..400)
        .map(|at| json!({"name": format!("v{at}"), "hostPath": {"path": format!("/data/{at}")}}));
    let volumes = volumes.collect::<Value>();
    let others = json!({"volumeMounts": mounts.collect::<Value>()});
    for (containers, verdict) in [
        (json!([others]), "reap stuck-on-not-ready-node"),
        (
            json!([others, {"volumeMounts": [{"name": "v399"}]}]),
            "manual host-path",
        ),
    ] {
        let pod =
            json!({"Pod data/db-0": {"spec": {"containers": containers, "volumes": volumes}}});
        let described = with(table("storage.yaml")["base"].clone(), pod);
        assert_eq!(judge(&described, &Value::Null)["data/db-0"], verdict);
    }
}

/// Only a pod that is due makes a run end as held.
#[test]
fn a_limit_that_would_hold_foreseen_pods_is_no_failure_of_the_run() {
    let exit = |overdue: i64| {
        let down = json!({"Node ds07": {}, "Node ds08": {}, "Pod data/db-0": {"overdue": overdue}});
        let described = with(table("foresight.yaml")["base"].clone(), down);
        report(&described, &Value::Null)["exitCode"].clone()
    };
    assert_eq!([exit(598), exit(599)], [json!(0), json!(4)]);
}

/// Foreseen pods take no due pod's share of the PVCs of their namespace, however long they are overdue.
#[test]
fn pvcs_of_pods_that_are_only_foreseen() {
    let pod = |name: &str, node: &str, overdue: i64| {
        let volume = |at: usize| json!({"name": format!("v{at}"), "persistentVolumeClaim": {"claimName": format!("{name}-{at}")}});
        let volumes = (0..64).map(volume).collect::<Vec<_>>();
        let words = json!({"node": node, "overdue": overdue, "phase": "Succeeded", "spec": {"volumes": volumes}});
        (format!("Pod data/{name}"), words)
    };
    let due = (0..10).map(|number| pod(&format!("due-{number}"), "ds06", 700));
    let pods = due.chain([pod("foreseen-0", "ds07", 3_000)]).collect();
    let base = with(
        table("node.yaml")["base"].clone(),
        json!({"Node ds07": {"since": 599}}),
    );
    let report = report(&with(base, pods), &Value::Null);
    let foreseen = foreseen(&report)["data/foreseen-0"].clone();
    assert_eq!(foreseen, "manual volume-unverified in 1");
    let reaped = verdicts(&report).as_object().unwrap().clone();
    let reaped = reaped
        .values()
        .filter(|it| *it == "reap stuck-on-not-ready-node");
    // The ten, and the one of the table.
    assert_eq!(reaped.count(), 11);
}

/// The PVCs of one namespace take no more than their share of the reads: 640, and 64 for each pod.
#[test]
fn more_pvcs_than_a_namespace_may_look_up() {
    let pod = |number: usize, pvcs: usize| {
        let volume = |at: usize| json!({"name": format!("v{at}"), "persistentVolumeClaim": {"claimName": format!("c{number}-{at}")}});
        let volumes = (0..pvcs).map(volume).collect::<Vec<_>>();
        (
            format!("Pod data/p-{number}"),
            // The file lacks these PVCs, and they may be absent once the pod has ended.
            json!({"phase": "Succeeded", "spec": {"volumes": volumes}}),
        )
    };
    for (sizes, verified) in [
        (vec![64], 1),
        (vec![65], 0),
        (vec![64; 10], 10),
        (vec![64; 11], 10),
    ] {
        let pods = sizes
            .iter()
            .enumerate()
            .map(|(number, pvcs)| pod(number, *pvcs));
        let base = with(
            table("node.yaml")["base"].clone(),
            json!({"Pod data/db-0": null}),
        );
        let mut described = with(base, pods.collect());
        described
            .as_object_mut()
            .unwrap()
            .retain(|_, entry| !entry.is_null());
        let given = judge(&described, &Value::Null);
        let given = given.as_object().unwrap().values();
        let free = given
            .clone()
            .filter(|it| *it == "reap stuck-on-not-ready-node")
            .count();
        let unverified = given.filter(|it| *it == "manual volume-unverified").count();
        assert_eq!(
            (free, unverified),
            (verified, sizes.len() - verified),
            "{sizes:?}"
        );
    }
}
