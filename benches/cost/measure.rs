//! Measures one process by the kernel's accounting.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};
use serde_json::{Value, json};

use crate::tunnel::Tunnel;

/// The cost of a run.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// Peak memory of the largest of its processes.
    pub peak_kib: f64,
    pub connections: f64,
    pub bytes_received: f64,
    /// From the start of the process to its first byte on the wire.
    pub first_byte_seconds: f64,
}

/// The argument that makes this program an intermediate process whose only child is the measured one. The kernel reports peak
/// memory for all children together.
pub const CHILD: &str = "--measured";

/// Runs `command` and its children to their end, and prints their cost.
pub fn child(command: &[String]) -> ! {
    let (program, arguments) = command.split_first().expect("a command");
    let (started, clock) = (SystemTime::now(), Instant::now());
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .expect("the program starts");
    let seconds = clock.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the kernel reports it");
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    let cost = json!({
        "started": started.duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64(),
        "seconds": seconds,
        "cpu_seconds": micros as f64 / 1e6,
        "peak_kib": usage.max_rss(),
        "code": status.code(),
    });
    println!("{cost}");
    std::process::exit(0)
}

/// Runs `command` through `tunnel`. Its exit code must be 0.
pub fn measure(tunnel: &Tunnel, log: &Path, command: &[&str]) -> Cost {
    tunnel.reset();
    let errors = std::fs::File::create(log).expect("the folder is ours");
    let between = std::env::current_exe().expect("it runs");
    let output = Command::new(between)
        .arg(CHILD)
        .args(command)
        .env("KUBECONFIG", &tunnel.kubeconfig)
        .env("KUBECACHEDIR", log.with_file_name("kubectl-cache"))
        .env("KUBERC", "off")
        .stderr(errors)
        .output()
        .expect("this program starts");
    let said = serde_json::from_slice::<Value>(&output.stdout);
    let said = said.unwrap_or_else(|error| {
        panic!(
            "{error}: {}",
            std::fs::read_to_string(log).unwrap_or_default()
        )
    });
    assert_eq!(
        said["code"],
        0,
        "{command:?}: {}",
        std::fs::read_to_string(log).unwrap_or_default()
    );
    let passed = tunnel.passed();
    let number = |field: &str| said[field].as_f64().expect("a number");
    let first = passed
        .first
        .and_then(|first| first.duration_since(UNIX_EPOCH).ok());
    Cost {
        seconds: number("seconds"),
        cpu_seconds: number("cpu_seconds"),
        peak_kib: number("peak_kib"),
        connections: passed.connections as f64,
        bytes_received: passed.received as f64,
        first_byte_seconds: first.map_or(0.0, |first| first.as_secs_f64() - number("started")),
    }
}

/// The median of each figure.
pub fn median(costs: &[Cost]) -> Cost {
    let of = |figure: fn(&Cost) -> f64| {
        let mut all = costs.iter().map(figure).collect::<Vec<_>>();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Cost {
        seconds: of(|cost| cost.seconds),
        cpu_seconds: of(|cost| cost.cpu_seconds),
        peak_kib: of(|cost| cost.peak_kib),
        connections: of(|cost| cost.connections),
        bytes_received: of(|cost| cost.bytes_received),
        first_byte_seconds: of(|cost| cost.first_byte_seconds),
    }
}
