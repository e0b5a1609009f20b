//! Failures of nodes, with the real controller manager, scheduler and kubelets, and the built binary. Each test is one scenario
//! on a cluster of its own. `README.md` in this directory lists the scenarios.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests say what is wrong by panicking"
)]

mod alive;
mod case;
mod deployed;
mod detach;
mod hangs;
mod history;
mod leaf;
mod minutes;
mod node_fails;
mod outage;
mod prelude;
mod storage;

use pod_reaper_test_support as support;
