//! The cost of a run, and of kubectl with jq on the same cluster. Start it with `scripts/bench`.
//!
//! No measurement here passes or fails because of its duration.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it prints what it measures, and stops where it cannot"
)]
#![allow(
    clippy::cast_precision_loss,
    reason = "figures to be read, not counted on"
)]

mod fill;
mod measure;
mod plot;
mod replay;
mod tunnel;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use pod_reaper_test_support as support;
use serde_json::{Value, json};

use crate::{
    fill::Filled,
    measure::{Cost, measure, median},
    replay::Replay,
    support::ControlPlane,
    tunnel::Tunnel,
};

/// The options of pod-reaper, with thresholds so short that no wait is needed.
const OPTIONS: [&str; 4] = [
    "--reap-older-than=1s",
    "--yes",
    "--output=json",
    "--log-level=warn",
];
/// A common script: it lists every pod, and deletes each stuck pod that it finds.
const SCRIPT: &str = r#"set -euo pipefail
kubectl get pods --all-namespaces --output=json |
    jq --raw-output '.items[] | select(.metadata.deletionTimestamp) | "\(.metadata.namespace) \(.metadata.name)"' |
    while read -r namespace name; do
        kubectl delete pod --namespace="$namespace" "$name" --grace-period=0 --force --wait=false
    done"#;

/// The options of the benchmark.
struct Asked {
    /// (nodes, pods), in increasing order.
    sizes: Vec<(usize, usize)>,
    dead: usize,
    stuck: usize,
    rounds: usize,
    /// The number of rounds of the script, which is slow.
    script_rounds: usize,
    delay: Duration,
    binary: PathBuf,
    /// Another build. Only the two builds are then measured, alternately.
    against: Option<PathBuf>,
    out: PathBuf,
}

struct Line {
    nodes: usize,
    pods: usize,
    who: &'static str,
    cost: Cost,
    rounds: usize,
    requests: BTreeMap<String, usize>,
}

fn main() {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    if arguments
        .first()
        .is_some_and(|first| first == measure::CHILD)
    {
        measure::child(&arguments[1..]);
    }
    let asked = Asked::parse(&arguments);
    std::fs::create_dir_all(&asked.out).expect("the folder can be made");
    let cluster: &'static ControlPlane = Box::leak(Box::new(start(&asked.out)));
    measure_all(cluster, &asked);
    cluster.stop();
}

/// Prints the table, and writes it as JSON and as a plot. Called after each size, because the next size may take an hour.
fn publish(lines: &[Line], asked: &Asked) {
    print_table(lines);
    let write = |name: &str, text: String| {
        let path = asked.out.join(name);
        std::fs::write(&path, text).expect("the folder is writable");
        println!("{}", path.display());
    };
    let json = lines.iter().map(Line::to_json).collect::<Vec<_>>();
    write(
        "cost.json",
        format!(
            "{:#}\n",
            json!({"dead": asked.dead, "stuck": asked.stuck, "lines": json})
        ),
    );
    write("cost.svg", plot::draw(lines));
}

impl Asked {
    fn parse(arguments: &[String]) -> Self {
        let mut asked = Self {
            sizes: vec![(20, 200), (20, 1_000)],
            dead: 2,
            stuck: 60,
            rounds: 5,
            script_rounds: 5,
            delay: Duration::from_millis(20),
            binary: env!("CARGO_BIN_EXE_pod-reaper").into(),
            against: None,
            out: Path::new(env!("CARGO_MANIFEST_DIR")).join("target/cost"),
        };
        for argument in arguments {
            let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
            let number = || {
                value
                    .parse()
                    .unwrap_or_else(|_| panic!("{name} wants a number, as in {name}=5"))
            };
            match name {
                "--sizes" => asked.sizes = value.split(',').map(size).collect(),
                "--dead" => asked.dead = number(),
                "--stuck" => asked.stuck = number(),
                "--rounds" => asked.rounds = number(),
                "--script-rounds" => asked.script_rounds = number(),
                "--delay-ms" => asked.delay = Duration::from_millis(number() as u64),
                "--binary" => asked.binary = value.into(),
                "--against" => asked.against = Some(value.into()),
                "--out" => asked.out = value.into(),
                // Cargo passes this option to every benchmark.
                "--bench" => {}
                _ => panic!(
                    "{argument} is none of --sizes=1000x10000,1000x50000 --dead= --stuck= --rounds= \
                     --script-rounds= --delay-ms= --binary= --against= --out="
                ),
            }
        }
        assert!(
            asked.rounds > 0 && asked.dead > 0 && !asked.sizes.is_empty(),
            "there is nothing to measure"
        );
        asked
    }
}

fn size(text: &str) -> (usize, usize) {
    let parsed = text
        .split_once('x')
        .and_then(|(nodes, pods)| Some((nodes.parse().ok()?, pods.parse().ok()?)));
    parsed.unwrap_or_else(|| panic!("--sizes wants NODESxPODS, as in --sizes=1000x10000"))
}

/// Starts an API server with an audit log.
fn start(out: &Path) -> ControlPlane {
    let policy = out.join("audit.json");
    let logged = json!({"level": "Metadata", "resources": [{"group": "events.k8s.io", "resources": ["events"]}]});
    let quiet = json!({"level": "None", "verbs": ["create", "patch", "update", "watch"]});
    let body = json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [logged, quiet, {"level": "Metadata"}],
    });
    std::fs::write(&policy, body.to_string()).expect("the folder is writable");
    let policy = std::fs::canonicalize(policy).expect("it was just written");
    let flag = format!("--audit-policy-file={}", policy.display());
    let flags = [
        flag.as_str(),
        "--audit-log-path=logs/audit.log",
        "--max-requests-inflight=800",
    ];
    ControlPlane::start(&flags).unwrap_or_else(|message| panic!("{message}"))
}

/// Counts the requests since the last call by verb, without those of the server itself and of this program.
struct Audit {
    log: PathBuf,
    read: usize,
}

impl Audit {
    fn since(&mut self) -> BTreeMap<String, usize> {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let new = String::from_utf8_lossy(&text[self.read..]).into_owned();
        self.read = text.len();
        let mut verbs = BTreeMap::new();
        for event in new
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        {
            let agent = event["userAgent"].as_str().unwrap_or_default();
            if ["pod-reaper/", "kubectl/", "replay/"]
                .iter()
                .any(|known| agent.starts_with(known))
            {
                *verbs
                    .entry(event["verb"].as_str().unwrap_or_default().to_owned())
                    .or_default() += 1;
            }
        }
        verbs
    }
}

fn measure_all(cluster: &'static ControlPlane, asked: &Asked) {
    let Asked {
        dead,
        stuck,
        rounds,
        ..
    } = *asked;
    let straight = Tunnel::start(cluster, Duration::ZERO);
    let far = Tunnel::start(cluster, asked.delay);
    let mut audit = Audit {
        log: cluster.dir.join("logs/audit.log"),
        read: 0,
    };
    let binary = asked.binary.display().to_string();
    let ours = [&[binary.as_str()], &OPTIONS[..]].concat();
    let against = asked.against.as_ref();
    let against = against.map(|path| path.display().to_string());
    let other = against
        .as_ref()
        .map(|binary| [&[binary.as_str()], &OPTIONS[..]].concat());
    let all = [&ours[..], &["--all", "--dry-run"]].concat();
    let path = format!(
        "{}:/usr/bin:/bin",
        cluster.kubectl.parent().expect("a folder").display()
    );
    let path = format!("PATH={path}");
    let script = ["env", &path, "bash", "-c", SCRIPT];
    // The comparison for a run with --all: the same pods, listed once, in the same pages.
    let list = [
        "env",
        &path,
        "kubectl",
        "get",
        "pods",
        "--all-namespaces",
        "--output=name",
    ];
    let log = cluster.dir.join("logs/measured.log");

    let mut filled = Filled::new(cluster, dead, stuck);
    let (node, pod) = filled.sizes();
    eprintln!("A node is {node} bytes, a pod {pod}.");
    // Some nodes stay Ready. Otherwise the breaker would trip, and a run would delete nothing.
    filled.grow(asked.sizes[0].0, 0);
    filled.stick();
    filled.fail(true);
    let replay = Replay::record(cluster, &binary, &OPTIONS);
    let mut lines = Vec::new();
    for &(nodes, pods) in &asked.sizes {
        eprintln!("{nodes} nodes, {pods} pods: creating what lacks");
        filled.grow(nodes, pods);
        let mut costs = BTreeMap::<usize, (Vec<Cost>, BTreeMap<String, usize>)>::new();
        let mut names = BTreeMap::new();
        let mut run = |at: usize, who: &'static str, run: &mut dyn FnMut() -> Cost| {
            audit.since();
            let cost = run();
            eprintln!("  {who}: {cost:?}");
            let (costs, requests) = costs.entry(at).or_default();
            costs.push(cost);
            *requests = audit.since();
            names.insert(at, who);
        };
        filled.fail(false);
        // The server is still busy with the earlier writes, so the first run is not counted.
        measure(&straight, &log, &ours);
        for _ in 0..rounds {
            run(0, "pod-reaper, nothing wrong", &mut || {
                measure(&straight, &log, &ours)
            });
            if let Some(other) = &other {
                run(8, "the other build, nothing wrong", &mut || {
                    measure(&straight, &log, other)
                });
            }
        }
        filled.fail(true);
        for round in 0..rounds.max(asked.script_rounds) {
            let gone = |what: &str| assert_eq!(filled.left(), 0, "{what} left pods");
            if let Some(other) = &other {
                filled.stick();
                run(9, "the other build", &mut || {
                    measure(&straight, &log, other)
                });
                gone("the other build");
                filled.stick();
                run(1, "pod-reaper", &mut || measure(&straight, &log, &ours));
                gone("pod-reaper");
                continue;
            }
            if round < rounds {
                filled.stick();
                run(5, "pod-reaper --all, dry", &mut || {
                    measure(&straight, &log, &all)
                });
                run(7, "kubectl get pods, all once", &mut || {
                    measure(&straight, &log, &list)
                });
                filled.stick();
                run(1, "pod-reaper", &mut || measure(&straight, &log, &ours));
                gone("pod-reaper");
                let pods = filled.stick();
                let requests = replay.write(&straight, cluster, &pods);
                let curl = ["curl", "--config", requests.to_str().expect("a plain path")];
                run(2, "the same requests, one connection", &mut || {
                    measure(&straight, &log, &curl)
                });
                gone("the replay");
                filled.stick();
                run(3, "pod-reaper, 20 ms away", &mut || {
                    measure(&far, &log, &ours)
                });
                gone("pod-reaper");
            }
            if round < asked.script_rounds {
                filled.stick();
                run(4, "kubectl and jq", &mut || {
                    measure(&straight, &log, &script)
                });
                gone("the script");
            }
        }
        lines.extend(costs.into_iter().map(|(at, (costs, requests))| Line {
            nodes,
            pods,
            who: names[&at],
            cost: median(&costs),
            rounds: costs.len(),
            requests,
        }));
        publish(&lines, asked);
    }
}

/// Waits until pods that were deleted with a grace period of 1 s are overdue. Their deadlines are truncated to whole seconds.
fn until_overdue() {
    thread::sleep(Duration::from_millis(3_100));
}

impl Line {
    fn to_json(&self) -> Value {
        let Cost {
            seconds,
            cpu_seconds,
            peak_kib,
            connections,
            bytes_received,
            first_byte_seconds,
        } = self.cost;
        json!({
            "nodes": self.nodes, "pods": self.pods, "who": self.who, "rounds": self.rounds,
            "seconds": seconds, "cpuSeconds": cpu_seconds, "peakKiB": peak_kib, "connections": connections,
            "bytesReceived": bytes_received, "firstByteSeconds": first_byte_seconds, "requests": self.requests,
        })
    }
}

fn print_table(lines: &[Line]) {
    println!(
        "| nodes | pods | who | time | CPU | peak memory | received | connections | first byte | requests | rounds |"
    );
    println!("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |");
    for Line {
        nodes,
        pods,
        who,
        cost,
        rounds,
        requests,
    } in lines
    {
        let requests = requests
            .iter()
            .map(|(verb, count)| format!("{verb} {count}"))
            .collect::<Vec<_>>();
        println!(
            "| {nodes} | {pods} | {who} | {:.3} s | {:.3} s | {:.1} MiB | {:.2} MB | {} | {:.1} ms | {} | {rounds} |",
            cost.seconds,
            cost.cpu_seconds,
            cost.peak_kib / 1024.0,
            cost.bytes_received / 1e6,
            cost.connections,
            cost.first_byte_seconds * 1e3,
            requests.join(", "),
        );
    }
}
