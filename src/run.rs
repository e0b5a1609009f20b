//! One run, from facts to report. The steps are those of the design, in order.

use std::cell::Cell;

use itertools::Itertools as _;
use jiff::SignedDuration;
use tokio::time::Instant;

use crate::{
    cli::RequireGuard,
    cluster::{Cluster, NODE_REFUSAL, REFUSAL, WriteMode},
    console::{prompt, terminal::status},
    execute::{execute, replacements},
    exit::{CouldNotRun, Result},
    facts::PodFacts,
    notify::events,
    outcome::{Outcome, OutcomeCode},
    report::{Report, RunRecord},
    selector::Target,
    settings::{Mode, Settings, Task},
    source::{cluster::Live, gather, snapshot},
    stop::Stop,
    words::spoken,
};

/// Runs as `settings` say, until `stop` says otherwise.
pub async fn run(settings: &Settings, stop: &Stop) -> Result<Report> {
    let begin = || {
        let namespaces = &settings.namespaces;
        let reap_older_than = spoken(settings.policy.reap_older_than);
        tracing::info!(%reap_older_than, "Looking for stuck Terminating pods; namespaces: {namespaces}");
    };
    match &settings.task {
        Task::Audit {
            snapshot: file,
            now,
        } => {
            let saved = snapshot::open(file, settings.snapshot_options(*now));
            let saved = stop.or_stopped(saved).await?;
            begin();
            let gathered = saved.gather(&settings.wanted())?;
            Ok(RunRecord::new(settings, gathered).report())
        }
        Task::Reap { target, mode } => {
            let mode = agreed(*mode, target)?;
            let cluster = Cluster::connect(target, stop, &settings.node_selectors);
            let cluster = stop.or_stopped(cluster).await?;
            begin();
            run_on(&cluster, settings, mode, stop).await
        }
    }
}

/// Where nobody can be asked, only `--yes` lets a run delete, or that it acts as the pod's own ServiceAccount: whoever
/// started that pod has meant it.
fn agreed(mode: Mode, target: &Target) -> Result<Mode> {
    match mode {
        Mode::Delete { ask: true } if !prompt::is_possible() => {
            if Cluster::by_own_account(target) {
                return Ok(Mode::Delete { ask: false });
            }
            let why = "this run may delete pods, and there is no terminal to ask at; add --yes to delete without a question, \
                       or --dry-run to delete nothing";
            Err(CouldNotRun::Usage(why.to_owned()))
        }
        mode => Ok(mode),
    }
}

/// Runs on a cluster that is connected already.
pub async fn run_on(
    cluster: &Cluster,
    settings: &Settings,
    mode: Mode,
    stop: &Stop,
) -> Result<Report> {
    // 1. to 3. What is known, and the pods to be judged. The guard proves itself beside that: nothing is written before.
    let (source, wanted) = (Live::new(cluster), settings.wanted());
    let gathered = async {
        tokio::try_join!(
            Box::pin(gather(&source, &wanted, None)),
            guard(settings, cluster, mode)
        )
    };
    let (gathered, ()) = stop.or_stopped(gathered).await?;
    // 4. and 5. Decide each pod, then limit the run.
    let mut run = RunRecord::new(settings, gathered);
    // 6. and 7. Delete, and look whether it worked.
    act(&mut run, cluster, stop, mode).await;
    let gone = |pod: &&PodFacts| {
        let outcome = run.outcomes.get(&pod.uid).map(Outcome::code);
        matches!(mode, Mode::Delete { .. })
            && matches!(outcome, Some(OutcomeCode::Deleted | OutcomeCode::Gone))
    };
    let reaped = run.plan.reaps().filter(gone).collect_vec();
    let wait = settings.wait_for_replacements;
    let settled = |settled| status(&format!("{settled} of {} replacements", reaped.len()));
    run.replacements = replacements(cluster, stop, &reaped, wait, &settled).await;
    status("");
    Ok(run.report())
}

/// Has the guard prove itself, where it is required and something may be written.
async fn guard(settings: &Settings, cluster: &Cluster, mode: Mode) -> Result<()> {
    if mode == Mode::ClientDryRun {
        return Ok(());
    }
    for (least, refusal, what) in [
        (RequireGuard::True, REFUSAL, "the delete of a running pod"),
        (
            RequireGuard::Nodes,
            NODE_REFUSAL,
            "the delete of a pod on a Ready node",
        ),
    ] {
        if settings.require_guard >= least {
            cluster
                .prove(refusal)
                .await
                .map_err(CouldNotRun::Unguarded)?;
            tracing::info!("The guard is proved: it refuses this account {what}");
        }
    }
    Ok(())
}

/// Steps 6 and 7, as far as `mode` goes: every pod that is to be reaped gets an outcome. What was done is written as Events.
async fn act(run: &mut RunRecord<'_>, cluster: &Cluster, stop: &Stop, mode: Mode) {
    let since = Instant::now();
    let pods = run.plan.reaps().collect_vec();
    let all = |outcome: Outcome| {
        pods.iter()
            .map(|pod| (pod.uid.clone(), outcome.clone()))
            .collect()
    };
    let write = match mode {
        Mode::ClientDryRun => {
            run.outcomes = all(Outcome::WouldDelete);
            return;
        }
        Mode::ServerDryRun => WriteMode::DryRun,
        Mode::Delete { ask: true }
            if !pods.is_empty() && !prompt::confirm(&cluster.place, &run.report(), stop).await =>
        {
            let interrupted = stop
                .reason()
                .map(|why| Outcome::Interrupted(why.to_owned()));
            run.outcomes = all(interrupted.unwrap_or(Outcome::WouldDelete));
            return;
        }
        Mode::Delete { .. } => WriteMode::Real,
    };
    let done = Cell::new(0);
    let step = || {
        done.set(done.get() + 1);
        status(&format!("{} of {} pods", done.get(), pods.len()));
    };
    let (policy, facts) = (&run.settings.policy, &run.facts);
    run.outcomes = execute(cluster, stop, policy, write, facts, &pods, &step).await;
    if write == WriteMode::Real && run.settings.events {
        let elapsed = SignedDuration::try_from(since.elapsed()).unwrap_or_default();
        let at = facts.now.saturating_add(elapsed).unwrap_or(facts.now);
        events::write(cluster, stop, run, at).await;
    }
}
