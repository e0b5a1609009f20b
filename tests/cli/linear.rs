//! What a report costs: the time of twice as many stuck pods is about twice as long.

use std::{fs, io::Write as _, process::Stdio, thread, time::Duration};

use pod_reaper_test_support::{
    program::executable,
    samples::{NOW, list, objects},
};
use serde_json::{Map, Value, json};

/// Pods of one namespace: of more, not all PVCs are looked up.
const PER_NAMESPACE: usize = 500;

/// So many stuck pods on so many dead nodes, each with an attached volume.
fn state(pods: usize, nodes: usize) -> String {
    let mut described = Map::new();
    let mut add = |name: String, object: Value| drop(described.insert(name, object));
    for node in 0..nodes {
        add(
            format!("Node dead-{node}"),
            json!({"since": 1800 + node % 900, "renewed": 2800}),
        );
        add(format!("Node ready-{node}"), json!({"ready": "True"}));
    }
    add(
        "CSIDriver ceph".to_owned(),
        json!({"spec": {"attachRequired": true}}),
    );
    add("Namespace other".to_owned(), json!({}));
    for pod in 0..pods {
        let (namespace, node) = (
            format!("n{}", pod / PER_NAMESPACE),
            format!("dead-{}", pod % nodes),
        );
        if pod % PER_NAMESPACE == 0 {
            add(format!("Namespace {namespace}"), json!({}));
        }
        let spec =
            json!({"csi": {"driver": "ceph", "fsType": "ext4", "volumeHandle": pod.to_string()}});
        add(
            format!("Pod {namespace}/db-{pod}"),
            json!({"node": node, "grace": 30, "overdue": 1200, "uses": format!("data-{pod}")}),
        );
        add(
            format!("PersistentVolume pv-{pod}"),
            json!({"claim": format!("{namespace}/data-{pod}"), "spec": spec}),
        );
        add(
            format!("VolumeAttachment csi-{pod}"),
            json!({"node": node, "volume": format!("pv-{pod}")}),
        );
    }
    list(objects(&Value::Object(described))).to_string()
}

/// The time of this process's children in hundredths of a second.
fn time_of_children() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("it can be read");
    let after_name = stat.rsplit(')').next().expect("fields").split_whitespace();
    let times = after_name.skip(13).take(2);
    times
        .map(|time| time.parse::<u64>().expect("a number"))
        .sum()
}

/// Runs the program. Returns its time of CPU in hundredths of a second, and its peak memory in MiB.
fn cost(args: &[&str]) -> (u64, u64) {
    let before = time_of_children();
    let mut child = std::process::Command::new(executable())
        .args(args)
        .args([
            "--max-not-ready-percent=100",
            "--max-failed-together=0",
            "--log-level=off",
        ])
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let status = format!("/proc/{}/status", child.id());
    let mut memory = 0;
    while child.try_wait().expect("it can be waited for").is_none() {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"));
        memory = peak.map_or(memory, |peak| peak.trim().parse().expect("a number"));
        thread::sleep(Duration::from_millis(2));
    }
    (time_of_children() - before, memory / 1024)
}

#[test]
#[ignore = "takes minutes; see docs/evidence.md"]
fn twice_as_many_pods_take_twice_as_long() {
    println!(
        "| stuck pods | nodes | file | text | JSON | HTML | explain | memory |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    for nodes in [2, 1_500] {
        for pods in [2_500, 5_000, 10_000, 20_000] {
            let mut file = tempfile::NamedTempFile::new().expect("a file");
            let state = state(pods, nodes);
            file.write_all(state.as_bytes()).expect("it can be written");
            let path = file.path().to_str().expect("a path");
            let of_file = ["--snapshot", path, "--now", NOW];
            let formats = ["text", "json", "html"];
            let mut costs = formats
                .map(|form| cost(&[&of_file[..], &["-o", form]].concat()))
                .to_vec();
            costs.push(cost(&[&["explain", "n0/db-0"], &of_file[..]].concat()));
            // An audit of another namespace reads the file, and judges one pod.
            let of_one = ["-n", "other"];
            let none = cost(&[&of_file[..], &of_one].concat()).0;
            let seconds = |time: u64| format!("{}.{:02} s", time / 100, time % 100);
            let times = costs
                .iter()
                .map(|(time, _)| seconds(*time))
                .collect::<Vec<_>>();
            let memory = costs.iter().map(|(_, memory)| memory).max().expect("some");
            println!(
                "| {pods} | {nodes} | {} | {} | {memory} MiB |",
                seconds(none),
                times.join(" | ")
            );
        }
    }
}
