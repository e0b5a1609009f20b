//! Whole runs against a simulated API server with random faults, while the cluster changes. After each run, the invariants must
//! hold and the report must be true.
//!
//! The clock is tokio's and paused, so a run that waits for minutes takes milliseconds.

mod invariants;
mod watched;

use self::{
    invariants::{Ended, Rules},
    watched::{Cache, Watched},
};
use crate::prelude::*;
use pod_reaper::{cluster::Cluster, run::run_on};
use tokio::{sync::oneshot, time::sleep_until};

const RUNS: u64 = 5_000;
/// The time that a run has after a signal.
const TO_FINISH: Duration = Duration::from_secs(20);

/// The result of one run.
struct Ran {
    args: Vec<String>,
    result: Result<Report, CouldNotRun>,
    wrongs: Vec<String>,
    trace: Vec<String>,
    faults: BTreeSet<String>,
    writes: usize,
    stale_lists: usize,
}

/// The arguments. Only the end of the run falls on an odd number of milliseconds.
fn args(dice: &mut Dice) -> Vec<String> {
    let mut args = options::args(dice);
    let mode = dice.weigh(&[(12, "--yes"), (1, "--dry-run")]);
    let deadline = dice.weigh(&[(12, 480_001), (2, 60_002), (1, 3_001)]);
    args.extend([mode.to_owned(), format!("--deadline={deadline}ms")]);
    args
}

/// The faults, how many changes of the cluster there are in a thousand requests, and the length of a page.
fn trouble(dice: &mut Dice) -> (Trouble, usize, usize) {
    let rate = |dice: &mut Dice| dice.pick(&[20, 20, 60, 60, 150, 350]);
    let often = |dice: &mut Dice| dice.pick(&[60, 150, 350]);
    let (faults, changes) = match dice.weigh(&[(3, 0), (4, 1), (7, 2), (6, 3)]) {
        0 => (0, 0),
        1 => (0, often(dice)),
        2 => (rate(dice), 0),
        _ => (rate(dice), often(dice)),
    };
    let always = (faults > 0 && dice.permille(450)).then(|| {
        let kind = match dice.below(12) {
            0..6 => Kind::Delete,
            // The run lists namespaces a second time, right before the first delete.
            6 | 7 => Kind::Namespaces,
            // The list that verifies that deleted pods are gone.
            8..11 => Kind::PodUids,
            _ => dice.pick(&Kind::all()),
        };
        let of_writes = [
            Fault::NoEffect,
            Fault::Webhook,
            Fault::Denied(403),
            Fault::Denied(422),
        ];
        let fault = if kind.writes() && dice.permille(500) {
            dice.pick(&of_writes)
        } else {
            Fault::random(kind, dice)
        };
        (kind, fault)
    });
    // If every one of several hundred requests could also fail, no run would prove anything.
    let faults = if always.is_some() { 0 } else { faults };
    let page = dice.pick(&[1, 2, 3, 500]);
    let second = matches!(always, Some((Kind::Namespaces, _))) && dice.permille(700);
    let after = if second { 1 } else { dice.pick(&[0, 0, 1, 2]) };
    (
        Trouble {
            faults,
            always,
            after,
            latency: dice.pick(&[1, 10, 10, 40, 40, 150]),
        },
        changes,
        page,
    )
}

/// Runs once. Everything depends on `seed` alone.
fn run(seed: u64) -> Ran {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut dice = Dice::new(seed);
        let args = args(&mut dice);
        let settings = Arc::new(options::settings(&args));
        let (trouble, changes, page) = trouble(&mut dice);
        let mut world = World::random(&mut dice);
        for lease in world
            .nodes
            .values_mut()
            .filter_map(|node| node.lease.as_mut())
        {
            // No Lease may start or stop contradicting the server's clock during the run.
            lease.skew = if (-300..-290).contains(&lease.skew) {
                0
            } else {
                lease.skew
            };
        }
        // Without changes, the server's cache is as recent as the cluster.
        let keeps_up = if changes > 0 {
            dice.pick(&[0, 300, 1000, 1000])
        } else {
            1000
        };
        let cache = Cache {
            pods: world.pods.clone(),
            keeps_up,
            stale_lists: Cell::new(0),
        };
        for _ in 0..if keeps_up == 1000 { 0 } else { dice.below(4) } {
            world.change(&mut dice);
        }
        let before = world.clone();
        let began = Instant::now();
        let deadline = settings.deadline;
        let (signal, stop) = Stop::manual(deadline);
        // A quarter of a short deadline, or 20 s of a long one, is reserved for requests that were already started.
        let reserve = Duration::from_secs(20).min(deadline / 4);
        let (mut last_start, mut end) = (began + deadline - reserve, began + deadline);
        let disturbed = trouble.is_faulty() || changes > 0;
        let (wrote, first_write) = oneshot::channel();
        let mut ends_by = None;
        if disturbed && dice.permille(400) {
            let most = dice.pick(&[100, 300, 600]);
            let mut at =
                began + Duration::from_millis(2 * u64::try_from(dice.below(most)).unwrap() + 1);
            if dice.permille(400) {
                ends_by = Some(wrote);
            } else {
                (last_start, end) = (last_start.min(at), end.min(at + TO_FINISH));
            }
            let by_write = ends_by.is_some();
            tokio::spawn(async move {
                if by_write && let Ok(written) = first_write.await {
                    at = written;
                }
                // The channel is closed if the run ended without a write.
                if !signal.is_closed() {
                    sleep_until(at).await;
                    signal.send_replace(Some(("SIGTERM", at)));
                }
                // Keeps the sender until the run has ended.
                signal.closed().await;
            });
        }
        let rules = Rules::new(Arc::clone(&settings), last_start, end);
        let fates = trouble.clone().fates(dice.fork());
        let mut watched = Watched::new(world, cache, rules, trouble, changes, dice.fork());
        watched.ends_by = ends_by;
        let server = Server::with_faults(watched, fates).page(page);
        let cluster = Cluster::new(server.client(), stop.clone());
        let result = run_on(&cluster, &settings, false, &stop).await;
        let server = server.lock();
        let (state, most_at_once, not_understood) =
            (&server.cluster, server.most_at_once, &server.not_understood);
        let ended = Ended {
            result: &result,
            state,
            most_at_once,
            not_understood,
            before: &before,
            at: Instant::now(),
        };
        let (wrongs, writes, stale_lists) =
            (ended.wrongs(), state.writes.len(), state.stale_lists());
        let (trace, faults) = (server.trace.clone(), server.faults.clone());
        Ran {
            args,
            result,
            wrongs,
            trace,
            faults,
            writes,
            stale_lists,
        }
    })
}

#[test]
fn whatever_goes_wrong_the_rules_hold_and_the_report_is_true() {
    let (mut outcomes, mut reasons) = (BTreeMap::<_, usize>::new(), BTreeMap::<_, usize>::new());
    let (mut exits, mut faults) = (BTreeMap::<_, usize>::new(), BTreeSet::new());
    let (mut requests, mut writes, mut stale_lists, mut unlisted) = (0, 0, 0, 0);
    let enough = for_every_seed(RUNS, |seed| {
        let ran = run(seed);
        assert!(
            ran.wrongs.is_empty(),
            "{:#?}\nargs: {:?}\nrequests: {:#?}",
            ran.wrongs,
            ran.args,
            ran.trace,
        );
        requests += ran.trace.len();
        writes += ran.writes;
        stale_lists += ran.stale_lists;
        faults.extend(ran.faults);
        let code = match &ran.result {
            Ok(report) => report.exit.code(),
            Err(_) => 1,
        };
        *exits.entry(code).or_default() += 1;
        for pod in ran.result.iter().flat_map(|report| &report.pods) {
            let reason = pod.reason.expect("each pod is judged");
            *reasons.entry(reason).or_default() += 1;
            let detail = pod.outcome_detail.as_deref().unwrap_or_default();
            unlisted += usize::from(detail.contains("its namespace could not be read again"));
            if let Some(outcome) = pod.outcome {
                *outcomes.entry(outcome).or_default() += 1;
            }
        }
    });
    println!(
        "{requests} requests, {writes} writes, {stale_lists} lists from an \
         old cache, {unlisted} pods of namespaces that a second list did not show\n{outcomes:?}\n{reasons:?}\n{exits:?}\n{faults:?}"
    );
    // A fault or reason that never comes up proves nothing. A few runs cannot cover all of them.
    if enough {
        assert_eq!(
            outcomes.len(),
            OutcomeCode::ALL.len(),
            "each outcome comes up: {outcomes:?}"
        );
        assert_eq!(
            reasons.len(),
            ReasonCode::ALL.len(),
            "each reason comes up: {reasons:?}"
        );
        assert_eq!(exits.len(), 5, "each exit code comes up: {exits:?}");
        assert!(stale_lists > 10, "only {stale_lists} lists were old");
        assert!(unlisted > 0, "a second list of the namespaces fails");
        assert_eq!(
            faults.len(),
            Fault::COUNT,
            "each fault comes up: {faults:?}"
        );
    }
}

#[test]
fn a_seed_repeats_its_run() {
    for_every_seed(LEAST, |seed| {
        let (one, other) = (run(seed), run(seed));
        assert_eq!(one.trace, other.trace);
        let report = |ran: &Ran| {
            let json = ran.result.as_ref().map(serde_json::to_string);
            json.map(Result::unwrap).map_err(ToString::to_string)
        };
        assert_eq!(report(&one), report(&other));
    });
}
