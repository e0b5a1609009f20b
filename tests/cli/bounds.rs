//! No author of an object decides how much time or memory a run takes.

use std::{
    fs,
    io::Read as _,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use itertools::Itertools as _;
use pod_reaper_test_support::samples::{list, objects, with, yaml};
use serde_json::{Value, json};

use crate::{SMALL, reaper};

/// Runs on the small cluster with more objects. Returns the report, its time, and the peak of its memory in MiB.
fn measured(more: &Value) -> (Value, Duration, u64) {
    let mut run = reaper(&["--output=json", "--log-level=off"]);
    let state = list(objects(&with(yaml(SMALL), more.clone()))).to_string();
    let file = run.file("state.json", &state);
    let started = Instant::now();
    let child = run.command.args(["--snapshot", &file]);
    let child = child.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = child.stderr(Stdio::null()).spawn().expect("it starts");
    let mut stdout = child.stdout.take().expect("it is piped");
    let reader = thread::spawn(move || {
        let mut report = String::new();
        stdout.read_to_string(&mut report).map(|_| report)
    });
    let (status, mut peak) = (format!("/proc/{}/status", child.id()), 0);
    while child.try_wait().expect("it can be waited for").is_none() {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let mut lines = status.lines();
        let kib = lines.find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"));
        peak = kib.map_or(peak, |kib| kib.trim().parse().expect("a number"));
        thread::sleep(Duration::from_millis(2));
    }
    let report = reader.join().expect("it reads").expect("text");
    let report = serde_json::from_str(&report).expect("a report");
    (report, started.elapsed(), peak / 1_024)
}

fn verdicts(report: &Value) -> Vec<String> {
    let pods = report["pods"].as_array().expect("pods").iter();
    let words = |pod: &Value| {
        let word = |field: &str| pod[field].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", word("name"), word("verdict"), word("reason"))
    };
    pods.map(words).sorted().collect()
}

#[test]
fn what_one_object_holds_costs_little_time_and_memory() {
    let each = |count: usize, make: fn(usize) -> Value| (0..count).map(make).collect::<Value>();
    // Quadratic work on so many takes more than the two minutes on any machine.
    let expressions = each(
        60_000,
        |it| json!({"key": format!("k{it}"), "operator": "Exists"}),
    );
    let terms = each(
        20_000,
        |it| json!({"matchExpressions": [{"key": format!("k{it}"), "operator": "Exists"}]}),
    );
    let on = |terms: Value| {
        json!({"PersistentVolume pv": {"claim": "compute-hive01/c",
            "spec": {"csi": {"driver": "d"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}},
            "Pod compute-hive01/huebackend-0": {"uses": "c"}})
    };
    let pod = |metadata: Value| json!({"Pod compute-hive01/huebackend-0": {"metadata": metadata}});
    let written = each(
        20_000,
        |it| json!({"manager": format!("m{it}"), "time": "2026-01-31T02:00:00Z", "fieldsV1": {"f:metadata": {"f:finalizers": {".": {}}}}}),
    );
    let conditions = each(
        50_000,
        |_| json!({"type": "KernelDeadlock", "status": "False", "lastHeartbeatTime": "2026-01-31T00:00:00Z"}),
    );
    let node = json!({"Node ds06": {"metadata": {"managedFields": written}, "status": {"conditions": conditions}}});
    for (what, more) in [
        (
            "expressions in a term",
            on(json!([{"matchExpressions": expressions}])),
        ),
        ("terms", on(terms)),
        (
            "finalizers",
            pod(json!({"finalizers": each(300_000, |it| json!(format!("e.x/{it}")))})),
        ),
        (
            "owners",
            pod(
                json!({"ownerReferences": each(50_000, |it| json!({"kind": "K", "name": format!("n{it}"), "uid": "u", "apiVersion": "v1"}))}),
            ),
        ),
        (
            "entries",
            pod(json!({"finalizers": ["e.x/f"], "managedFields": written})),
        ),
        ("conditions", node),
    ] {
        let (report, took, peak) = measured(&more);
        assert_eq!(verdicts(&report).len(), 1, "{what}");
        assert!(
            took < Duration::from_mins(2) && peak < 100,
            "{what}: {took:?}, {peak} MiB"
        );
    }
}

/// Safety rule 13. The longest overdue are kept; the others are counted, and no pod of another namespace waits for them.
#[test]
fn two_thousand_pods_of_a_namespace_are_judged_and_the_others_counted() {
    let mut more = json!({"Node ds07": {}, "Namespace tenant": {}});
    for number in 0..2_010 {
        // The ten that are overdue for the shortest time come first in the file, on another node.
        let (minute, node) = if number < 10 {
            (59, "ds06")
        } else {
            (0, "ds07")
        };
        let time = format!("2026-01-31T01:{minute}:00Z").replace(":0:", ":00:");
        let pod = json!({"node": node, "metadata": {"deletionTimestamp": time, "finalizers": ["example.org/held"]}});
        more[format!("Pod tenant/p-{number}")] = pod;
    }
    let (report, ..) = measured(&more);
    let verdicts = verdicts(&report);
    assert_eq!(verdicts.len(), 2_001);
    assert!(verdicts.contains(&"huebackend-0 reap stuck-on-not-ready-node".to_owned()));
    assert!(!verdicts.iter().any(|it| it.starts_with("p-9 ")));
    assert_eq!(report["exitCode"], 3);
    let errors = json!([{"what": "Terminating pods of namespace tenant",
        "cause": "10 more than a run keeps of one namespace (2000): they are over the budget, and were not judged"}]);
    assert_eq!(report["errors"], errors);
}

/// Safety rule 13. Nothing is known about what was not kept, so the pod is kept.
#[test]
fn of_one_pod_two_kib_are_kept() {
    let long = |number: usize| format!("{number}-{}", "x".repeat(240));
    let volumes = |count: usize| {
        let volume = |it: usize| json!({"name": format!("v{it}"), "persistentVolumeClaim": {"claimName": long(it)}});
        json!({"spec": {"volumes": (0..count).map(volume).collect::<Value>()}})
    };
    let metadata = |metadata: Value| json!({"metadata": metadata});
    let finalizers = |count: usize, length: usize| {
        let name = |it: usize| format!("f{it}.example.org/{}", "x".repeat(length));
        metadata(json!({"finalizers": (0..count).map(name).collect::<Vec<_>>()}))
    };
    let note = |length: usize| {
        metadata(json!({"annotations": {"pod-reaper.io/after-reap": "x".repeat(length)}}))
    };
    for (what, pod, gives) in [
        (
            "few PVCs",
            volumes(3),
            vec!["huebackend-0 reap stuck-on-not-ready-node"],
        ),
        (
            "long names of PVCs",
            volumes(64),
            vec!["huebackend-0 manual volume-unverified"],
        ),
        (
            "long finalizers",
            finalizers(16, 280),
            vec!["huebackend-0 manual finalizers"],
        ),
        (
            "a long note",
            note(100_000),
            vec!["huebackend-0 reap stuck-on-not-ready-node"],
        ),
        (
            "all of it",
            with(finalizers(3, 280), note(1_000)),
            vec!["huebackend-0 manual finalizers"],
        ),
        (
            "too much",
            with(
                with(finalizers(3, 280), note(1_000)),
                metadata(
                    json!({"ownerReferences": [{"kind": "K".repeat(900), "name": "n", "uid": "u", "apiVersion": "v1"}]}),
                ),
            ),
            vec![],
        ),
    ] {
        let mut claims = json!({});
        for number in 0..3 {
            let claim = format!("compute-hive01/{}", long(number));
            claims[format!("PersistentVolume pv-{number}")] =
                json!({"claim": claim, "spec": {"csi": {"driver": "d"}}});
        }
        let (report, ..) = measured(&with(
            claims,
            json!({"Pod compute-hive01/huebackend-0": pod}),
        ));
        assert_eq!(verdicts(&report), gives, "{what}");
        let length = report.to_string().len();
        assert!(length < 40_000, "{what}: {length}");
        let errors = report["errors"].as_array().expect("errors").len();
        assert_eq!(errors > 0, gives.is_empty(), "{what}");
    }
}

/// Otherwise a tenant who never ran on a dead node would keep everybody's pods there.
#[test]
fn a_pod_with_too_much_text_shows_no_start_that_it_never_had() {
    let owner = json!({"kind": "K".repeat(950), "name": "n".repeat(950), "uid": "u", "apiVersion": "v".repeat(950)});
    let written =
        json!({"manager": "Patroni", "operation": "Update", "time": "2026-01-31T02:59:00Z"});
    let never = json!({"phase": "Pending"});
    let started = json!({"phase": "Pending", "startTime": "2026-01-31T00:00:00Z"});
    let reap = "huebackend-0 reap stuck-on-not-ready-node";
    let keep = "huebackend-0 manual kubelet-alive";
    for (status, gives) in [(never, reap), (started, keep)] {
        let pod = json!({"grace": null, "phase": "Pending", "status": status, "metadata": {"ownerReferences": [owner]}});
        let holds = json!({"Namespace tenant": {}, "Pod tenant/p": pod, "Lease tenant/l": {"holder": "ds06_1"}});
        let (report, ..) = measured(&holds);
        assert_eq!(verdicts(&report), [gives], "a Lease, {status}");
        let writes = json!({"Namespace tenant": {}, "Pod tenant/p": with(pod, json!({"metadata": {"managedFields": [written]}}))});
        let (report, ..) = measured(&writes);
        assert_eq!(verdicts(&report), [gives], "Patroni, {status}");
    }
}
