//! Tests the built binary on a real API server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests say what is wrong by panicking"
)]

mod answers;
mod chart;
mod commands;
mod deletes;
mod dry_run;
mod ends;
mod events;
mod faults;
mod guard;
mod heard;
mod load;
mod manifests;
mod pages;
mod platforms;
mod prelude;
mod races;
mod rights;
mod scan;
mod scratch;
mod six_nodes;
mod stock_rule;
mod tenants;
mod terminal;
mod together;

use std::{
    process::{Child, Command, Output},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use pod_reaper_test_support as support;
use serde_json::Value;

use crate::support::{
    ControlPlane, Fresh, fresh,
    objects::{make, str_of, uid},
    program::{Run, binary, run},
};

/// Waits until a process ends, and kills it after `limit`, so that no test hangs.
fn end_of(child: Child, limit: Duration) -> Output {
    let pid = child.id().to_string();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = receiver.recv_timeout(limit) else {
        Command::new("kill")
            .args(["-KILL", &pid])
            .status()
            .expect("kill");
        panic!("it has not ended after {limit:?}");
    };
    output.expect("it can be waited for")
}

const REAPED: (&str, Option<&str>) = ("stuck-on-not-ready-node", Some("deleted"));

/// Thresholds that are short enough for a test, and not zero.
const SHORT: [&str; 2] = ["--reap-older-than", "1s"];

/// Returns the options of [`SHORT`], and further options.
fn short(further: &str) -> Vec<&str> {
    SHORT.into_iter().chain(further.split(' ')).collect()
}

/// Waits until pods that were deleted with a grace period of 1 s are overdue by 1 s. The server sets their deadlines by its
/// clock, truncated to whole seconds.
fn until_overdue() {
    thread::sleep(Duration::from_millis(3_100));
}

/// Creates three nodes, of which `dead` has been silent for an hour.
fn one_dead_of_three(cluster: &ControlPlane) {
    make(
        cluster,
        "{Node ready-1: {ready: 'True'}, Node ready-2: {ready: 'True'}, Node dead: {}}",
    );
}

/// A server of this test with these nodes.
fn one_dead() -> Fresh {
    let cluster = fresh();
    one_dead_of_three(&cluster);
    cluster
}

/// Measures two sides alternately. Returns the median time of each, in milliseconds.
fn medians(rounds: usize, mut ask: impl FnMut(usize, usize)) -> [f64; 2] {
    let mut took = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for (side, took) in took.iter_mut().enumerate() {
            let started = Instant::now();
            ask(side, round);
            took.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    took.map(|mut took| {
        took.sort_by(f64::total_cmp);
        took[rounds / 2]
    })
}

fn uid_of_entry(entry: &Value) -> String {
    str_of(&entry["uid"]).to_owned()
}
