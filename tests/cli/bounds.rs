//! No author of an object decides how much time or memory a run takes.

use std::{
    cmp::Reverse,
    fs,
    io::Read as _,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use itertools::Itertools as _;
use pod_reaper_test_support::{
    samples::{list, objects, with, yaml},
    simulated::Dice,
};
use serde_json::{Value, json};

use crate::{Reaper, SMALL, reaper};

/// What a run printed, how much time of a processor it took, and the peak of its memory in MiB.
struct Cost {
    printed: String,
    took: Duration,
    peak: usize,
}

/// Runs to the end, which comes after a minute at the latest.
fn cost_of(mut run: Reaper) -> Cost {
    let child = run.command.args(["--output=json", "--log-level=off"]);
    let child = child.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = child.stderr(Stdio::null()).spawn().expect("it starts");
    let mut stdout = child.stdout.take().expect("it is piped");
    let reader = thread::spawn(move || {
        let mut printed = String::new();
        stdout.read_to_string(&mut printed).map(|_| printed)
    });
    let (process, mut peak, mut took) = (format!("/proc/{}", child.id()), 0, Duration::ZERO);
    while child.try_wait().expect("it can be waited for").is_none() {
        let read = |name: &str| fs::read_to_string(format!("{process}/{name}")).unwrap_or_default();
        let status = read("status");
        let mut lines = status.lines();
        let kib = lines.find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"));
        peak = kib.map_or(peak, |kib| kib.trim().parse().expect("a number"));
        // Its time in user mode and in the kernel, in hundredths of a second: other programs may use the processors too.
        let stat = read("stat");
        let ticks = stat
            .split(' ')
            .skip(13)
            .take(2)
            .map(|it| it.parse::<u64>().expect("a number"));
        took = took.max(Duration::from_millis(10 * ticks.sum::<u64>()));
        if took > Duration::from_mins(1) {
            child.kill().expect("it can be killed");
        }
        thread::sleep(Duration::from_millis(2));
    }
    let printed = reader.join().expect("it reads").expect("text");
    Cost {
        printed,
        took,
        peak: peak / 1_024,
    }
}

/// A run on a saved state.
fn on_file(state: &str) -> Reaper {
    let mut run = reaper(&["--snapshot"]);
    let file = run.file("state.json", state);
    run.command.arg(file);
    run
}

/// Runs on the small cluster with more objects. Returns the report and its cost.
fn measured(more: &Value) -> (Value, Cost) {
    let state = list(objects(&with(yaml(SMALL), more.clone())));
    let cost = cost_of(on_file(&state.to_string()));
    (serde_json::from_str(&cost.printed).expect("a report"), cost)
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
    // Each would take a multiple of the limit if it were kept.
    let pod_expressions = each(
        30_000,
        |_| json!({"key": "a", "operator": "Exists", "values": ["a"]}),
    );
    let pod_terms = each(
        30_000,
        |_| json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
    );
    let of_pod = |terms: Value| {
        json!({"Pod compute-hive01/huebackend-0": {"spec": {"affinity": {"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}}})
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
    // Each use of the PVC would keep 0.9 MB.
    let owners = each(
        15,
        |it| json!({"apiVersion": "v1", "kind": "K", "name": format!("n{it}"), "uid": "u".repeat(60_000)}),
    );
    let mut uses_of_a_claim = json!({"PersistentVolume pv": {"claim": "compute-hive01/c", "spec": {"csi": {"driver": "d"}}},
        "PersistentVolumeClaim compute-hive01/c": {"metadata": {"ownerReferences": owners}}});
    for number in 0..300 {
        uses_of_a_claim[format!("Pod compute-hive01/p-{number}")] = json!({"uses": "c"});
    }
    for (what, more) in [
        (
            "expressions in a term",
            on(json!([{"matchExpressions": expressions}])),
        ),
        ("terms", on(terms)),
        ("terms of a pod", of_pod(pod_terms)),
        (
            "expressions in a term of a pod",
            of_pod(json!([{"matchExpressions": pod_expressions}])),
        ),
        (
            "finalizers",
            pod(json!({"finalizers": each(30_000, |it| json!(format!("e.x/{it}")))})),
        ),
        (
            "owners",
            pod(
                json!({"ownerReferences": each(50_000, |it| json!({"kind": "K", "name": format!("n{it}"), "uid": "u", "apiVersion": "v1"}))}),
            ),
        ),
        ("UIDs of a PVC's owners", uses_of_a_claim),
        (
            "entries",
            pod(json!({"finalizers": ["e.x/f"], "managedFields": written})),
        ),
        ("conditions", node),
    ] {
        let (report, Cost { took, peak, .. }) = measured(&more);
        assert!([1, 301].contains(&verdicts(&report).len()), "{what}");
        assert!(
            took < Duration::from_secs(50) && peak < 100,
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

/// Safety rule 13. Each use of a PVC is kept, however few PVCs there are.
#[test]
fn of_one_namespace_6400_uses_of_pvcs_are_kept() {
    let volume = |it: usize| json!({"name": format!("v{it}"), "persistentVolumeClaim": {"claimName": format!("c-{it}")}});
    let pod = json!({"spec": {"volumes": (0..10).map(volume).collect::<Value>()}});
    let mut more = json!({"Namespace tenant": {}});
    for number in 0..10 {
        more[format!("PersistentVolume pv-{number}")] =
            json!({"claim": format!("tenant/c-{number}"), "spec": {"csi": {"driver": "d"}}});
    }
    for number in 0..650 {
        more[format!("Pod tenant/p-{number}")] = pod.clone();
    }
    let (report, ..) = measured(&more);
    let words = |it: &String| it.split_once(' ').map(|(_, words)| words.to_owned());
    let counts = verdicts(&report).iter().filter_map(words).counts();
    let expected = [
        ("manual volume-unverified", 10),
        ("reap stuck-on-not-ready-node", 641),
    ];
    let expected = expected.map(|(words, count)| (words.to_owned(), count));
    assert_eq!(counts, expected.into());
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

/// A cluster in which each kind has all that a run reads.
const ALL_KINDS: &str = "
    Node ds04: {ready: 'True'}
    Node ds06:
        metadata: {labels: {a/b: c}, annotations: {a/b: c}, managedFields: [{manager: m, time: '2026-01-31T00:00:00Z', fieldsV1: {f:status: {}}}]}
        spec: {taints: [{key: a, effect: NoSchedule}], podCIDRs: [a]}
        status:
            addresses: [{type: InternalIP, address: 10.0.0.1}]
            conditions:
            - {type: Ready, status: Unknown, reason: NodeStatusUnknown, lastTransitionTime: '2026-01-31T01:00:00Z'}
            - {type: KernelDeadlock, status: 'False', lastHeartbeatTime: '2026-01-31T00:00:00Z'}
            volumesAttached: [{name: kubernetes.io/csi/d^h, devicePath: ''}]
    Namespace data: {metadata: {labels: {a: b}, finalizers: [a/b]}}
    Lease other/ds06: {renewed: 7200}
    PersistentVolume pv: {claim: data/c, spec: {csi: {driver: d, volumeHandle: h}, accessModes: [ReadWriteOnce],
        nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: In, values: [v]}]}]}}}}
    PersistentVolumeClaim data/c: {volume: pv, metadata: {finalizers: [a/b], ownerReferences: [{apiVersion: v1, kind: K, name: it, uid: u}]}}
    VolumeAttachment at: {volume: pv, metadata: {finalizers: [a/b]}}
    CSIDriver d: {spec: {attachRequired: true, volumeLifecycleModes: [Persistent]}}
    StatefulSet data/db: {apiVersion: apps/v1, spec: {replicas: 1, volumeClaimTemplates: [{metadata: {name: c}}]}}
    Pod data/db-0: {uses: c}
    Pod data/web:
        owner: ReplicaSet web
        metadata: {labels: {a: b}, annotations: {pod-reaper.io/after-reap: note}}
        spec:
            tolerations: [{key: a, operator: Exists, effect: NoExecute}]
            nodeSelector: {disk: ssd}
            affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms:
                [{matchExpressions: [{key: k, operator: In, values: [v]}]}]}}}
            containers: [{name: main, volumeMounts: [{name: host, mountPath: /a}]}]
            volumes: [{name: host, hostPath: {path: /srv/a}}, {name: disk, persistentVolumeClaim: {claimName: c}}]
        status: {phase: Running, conditions: [{type: Ready, status: 'False'}], containerStatuses: [{name: main, state: {running: {}}}]}
    Pod data/held: {metadata: {finalizers: [a/b], managedFields: [{manager: m, time: '2026-01-31T02:00:00Z', fieldsV1: {f:metadata: {f:finalizers: {.: {}}}}}]}}
";

/// Lists the places in `value` of lists, of maps and of texts, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut [Vec<String>; 3]) {
    match value {
        Value::Array(items) => {
            found[0].push(at.to_owned());
            for (place, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{place}"), found);
            }
        }
        Value::Object(fields) => {
            found[1].push(at.to_owned());
            for (key, field) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(field, &format!("{at}/{key}"), found);
            }
        }
        Value::String(_) => found[2].push(at.to_owned()),
        _ => {}
    }
}

/// Returns the value with names that end in `end`.
fn renamed(value: &Value, end: &str) -> Value {
    let renamed_field = |(key, value): (&String, &Value)| match value {
        Value::String(name) if ["name", "uid", "key", "claimName"].contains(&key.as_str()) => {
            (key.clone(), json!(format!("{name}{end}")))
        }
        value => (key.clone(), renamed(value, end)),
    };
    match value {
        Value::Array(items) => items.iter().map(|item| renamed(item, end)).collect(),
        Value::Object(fields) => Value::Object(fields.iter().map(renamed_field).collect()),
        value => value.clone(),
    }
}

/// Makes up to three lists, maps or texts of the object longer, up to so many bytes. Returns their places.
fn grow(object: &mut Value, bytes: usize, dice: &mut Dice) -> Vec<String> {
    let mut found = [const { Vec::new() }; 3];
    places(object, "", &mut found);
    let chosen = (0..=dice.below(3)).filter_map(|_| {
        let of_kind = &found[dice.weigh(&[(18, 0), (1, 1), (1, 2)])];
        (!of_kind.is_empty()).then(|| of_kind[dice.below(of_kind.len())].clone())
    });
    // What is in a longer list is longer itself.
    let chosen = chosen
        .sorted_by_key(|place| Reverse(place.len()))
        .dedup()
        .collect_vec();
    for (number, place) in chosen.iter().enumerate() {
        let bytes = if number + 1 < chosen.len() {
            dice.pick(&[100, 1_000, bytes / 2, bytes / 2])
        } else {
            bytes
        };
        let bytes = bytes.saturating_sub(object.to_string().len());
        lengthen(object.pointer_mut(place).expect("its place"), bytes, dice);
    }
    chosen
}

/// Makes a list, a map or a text longer by so many bytes.
fn lengthen(value: &mut Value, bytes: usize, dice: &mut Dice) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let one = items[dice.below(items.len())].clone();
            let many = bytes / (one.to_string().len() + 6);
            items.extend((0..many).map(|number| match &one {
                Value::String(text) => json!(format!("{text}{number}")),
                one => renamed(one, &number.to_string()),
            }));
        }
        Value::Object(fields) => {
            let more = (0..bytes / 20).map(|number| (format!("a.b/{number}"), json!("v")));
            fields.extend(more);
        }
        Value::String(text) => text.push_str(&"x".repeat(bytes)),
        _ => {}
    }
}

/// Whatever the objects hold much of, and however many pods there are of a tenant, a run takes little time and memory. Most
/// seeds make one list longer, each list in turn, and leave all else as it is: otherwise something else keeps the pod before
/// a rule asks the list. `RANDOM_SEED` is the first seed, and `RANDOM_SECONDS` how long to go on.
#[test]
fn whatever_grows_costs_little_time_and_memory() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let (first, started) = (number("RANDOM_SEED").unwrap_or_default(), Instant::now());
    let most = Duration::from_secs(number("RANDOM_SECONDS").unwrap_or(5));
    let base = objects(&yaml(ALL_KINDS));
    let lists = base.iter().enumerate().flat_map(|(object, value)| {
        let mut found = [const { Vec::new() }; 3];
        places(value, "", &mut found);
        found[0]
            .clone()
            .into_iter()
            .map(move |place| (object, place))
    });
    let lists = lists.collect_vec();
    for seed in (first..).take_while(|_| started.elapsed() < most) {
        let mut dice = Dice::new(seed).fork();
        let mut state = base.clone();
        let (mut pods, mut grown) = (String::new(), Vec::new());
        let mut many = 0;
        let turn = usize::try_from(seed).expect("a number");
        if turn.is_multiple_of(16) {
            let all = state.iter().positions(|it| it["kind"] == "Pod");
            let chosen = dice.pick(&all.collect_vec());
            let chosen = &mut state[chosen];
            let bytes = dice.pick(&[300, 3_000, 20_000]);
            grown.push(grow(chosen, bytes, &mut dice));
            let one = renamed(chosen, "NUMBER").to_string();
            many = (25_000_000 / one.len()).min(20_000);
            pods.extend((0..many).map(|number| one.replace("NUMBER", &number.to_string())));
        } else if turn % 16 == 1 {
            grown.extend(
                state
                    .iter_mut()
                    .map(|object| grow(object, 250_000, &mut dice)),
            );
        } else {
            let (object, place) = &lists[(turn / 16 * 14 + turn % 16 - 2) % lists.len()];
            let list = state[*object].pointer_mut(place).expect("its place");
            lengthen(list, 1_000_000, &mut dice);
            grown.push(vec![format!("{place} of {}", lists.len())]);
        }
        let file = list(state).to_string() + &pods;
        let Cost {
            printed,
            took,
            peak,
        } = cost_of(on_file(&file));
        let (file, printed) = (file.len() >> 20, printed.len() >> 20);
        // A file is kept whole, and some KiB of each object in it.
        let most_memory = if many == 0 {
            100
        } else {
            50 + file + many / 150
        };
        let what = format!(
            "RANDOM_SEED={seed}: {file} MiB take {took:?} and {peak} of {most_memory} MiB, and print {printed} MiB; \
             {many} more pods; grown are {grown:?}"
        );
        eprintln!("{what}");
        let is_little = took < Duration::from_secs(20) && peak < most_memory && printed < 5;
        assert!(is_little, "{what}");
    }
}
