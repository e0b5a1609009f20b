//! Random clusters from one generator, for three engines: the rules alone, the scan of a simulated API server, and whole runs
//! against one with faults.
//!
//! Everything depends on a seed. The same clusters are checked each time, so a failure is caused by the change under test.
//! `RANDOM_SEED` is the first seed, and `RANDOM_CASES` is the number of seeds that each test checks: `full` means the test's own
//! full count. A failure prints the command that repeats its cluster.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::large_futures,
    reason = "one run at a time, on the stack of its test"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "figures are shown with --nocapture, and what repeats a failure"
)]

mod faults;
mod options;
mod oracle;
mod prelude;
mod rules;
mod scan;
mod world;

/// Prints how to repeat the case of this seed, unless its check passed.
struct Repeats(u64);

impl Drop for Repeats {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (seed, thread) = (self.0, std::thread::current());
            let test = thread.name().unwrap_or_default();
            eprintln!(
                "repeat it with: RANDOM_SEED={seed} RANDOM_CASES=1 cargo test --test random {test}"
            );
        }
    }
}

/// The number of seeds that are checked by default.
const USUAL: u64 = 20;

/// This many of the first seeds include every case that a test must see.
const LEAST: u64 = 300;

/// Checks as many seeds as the environment says, where `full` means `cases`; by default the first [`USUAL`] seeds. Returns
/// whether these seeds must include every case, which is so for the first [`LEAST`] seeds and for `cases` seeds.
fn for_every_seed(cases: u64, mut check: impl FnMut(u64)) -> bool {
    let first = variable("RANDOM_SEED").unwrap_or_default();
    let asked_for = match std::env::var("RANDOM_CASES").as_deref() {
        Ok("full") => cases,
        _ => variable("RANDOM_CASES").unwrap_or(USUAL),
    };
    assert!(
        asked_for <= USUAL || asked_for >= LEAST,
        "RANDOM_CASES={asked_for} proves little: 1 repeats a seed, and {LEAST} are the least that show everything"
    );
    for number in 0..asked_for {
        let repeats = Repeats(first.wrapping_add(number));
        check(repeats.0);
    }
    asked_for >= cases.max(LEAST) || first == 0 && asked_for >= LEAST
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text:?}")),
    )
}
