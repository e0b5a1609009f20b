//! What happens when nodes die, played by the real controller manager, scheduler and kubelets, with the built binary
//! among them. One story a test, each on a cluster of its own; what surprised us is in `README.md` beside this file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests say what is wrong by panicking"
)]

mod case;
mod deployed;
mod interruption;
mod leaf;
mod node_fails;
mod node_returns;
mod out_of_service;
mod outage;

use pod_reaper_test_support as support;
