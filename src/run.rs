//! One run, from facts to report. Each step is a module of its own.

use itertools::Itertools as _;
use jiff::SignedDuration;
use tokio::time::Instant;

use crate::{
    cluster::{Api as _, Cluster},
    console::prompt,
    exit::{CouldNotRun, Result},
    history::{History, Notebook},
    notify::{events, history},
    outcome::Outcome,
    reap::reap,
    report::RunRecord,
    selector::Target,
    settings::{GuardCode, Mode, Settings, Task},
    source::{Gathered, OtherLeases, Reader, gather, recall, snapshot},
    stop::Stop,
    words::human_duration,
};

/// Runs with these `settings` and returns the record of the run. `Err` if no cluster could be
/// asked, a filter selects nothing, the facts could not be gathered, or `stop` ended the run before they were.
pub async fn run<'a>(settings: &'a Settings, stop: &Stop) -> Result<RunRecord<'a>> {
    let log_start = || {
        let namespaces = &settings.namespaces;
        let reap_older_than = human_duration(settings.policy.reap_older_than);
        tracing::info!(%reap_older_than, "Looking for stuck Terminating pods; namespaces: {namespaces}");
        let is_short = settings.policy.reap_older_than < SignedDuration::from_mins(1);
        if is_short && settings.task.mode() == Mode::Delete {
            tracing::warn!(
                "--reap-older-than is below one minute: nobody can look at a machine before its pods are deleted"
            );
        }
    };
    match &settings.task {
        Task::Audit {
            snapshot: file,
            max_size,
            now,
            suppose_dead,
        } => {
            let policy = &settings.policy;
            let saved = stop
                .or_stopped(snapshot::open(file, *max_size, *now, suppose_dead, policy))
                .await?;
            log_start();
            let reader = Reader::new(&saved, settings);
            let gathered = gather(&reader, None).await?;
            let history = saved.history(&settings.history_namespace).await;
            let (_, history) = recall(&reader, history, &gathered.facts).await;
            let run = planned(settings, gathered)?;
            Ok(RunRecord { history, ..run })
        }
        Task::Reap {
            target,
            dry_run,
            yes,
        } => {
            let ask = !dry_run && !yes && can_ask(target).await?;
            let cluster = stop.or_stopped(Cluster::connect(target, stop)).await?;
            log_start();
            run_on(&cluster, settings, ask, stop).await
        }
    }
}

/// Reports whether a user can confirm the deletes. If nobody can, only a run that acts as its pod's
/// own ServiceAccount may delete without `--yes`, because starting such a pod already states the
/// intent. Any other run is wrong usage.
async fn can_ask(target: &Target) -> Result<bool> {
    let possible = prompt::is_possible();
    if possible || Cluster::by_own_account(target) {
        return Ok(possible);
    }
    // A missing file or context is the first mistake to correct.
    Cluster::check(target).await?;
    let why = "this run may delete pods, and there is no terminal to ask for confirmation; add --yes to delete without a question, \
               or --dry-run to delete nothing";
    Err(CouldNotRun::Usage(why.to_owned()))
}

/// Runs on a cluster that is already connected. If `ask` is set, the user has to confirm the deletes.
///
/// The steps are those of a run: read, decide, limit, act and verify, report.
pub async fn run_on<'a>(
    cluster: &Cluster,
    settings: &'a Settings,
    ask: bool,
    stop: &Stop,
) -> Result<RunRecord<'a>> {
    let (mut gathered, proved, (notes, history)) = read(cluster, settings, stop).await?;
    let leases = gathered.leases.take();
    let mut run = RunRecord {
        history,
        notes,
        ..planned(settings, gathered)?
    };
    act_and_verify(&mut run, (leases.as_ref(), proved), cluster, ask, stop).await?;
    Ok(run)
}

/// Gathers the facts and the pods to judge, and what earlier runs noted. Meanwhile the run proves that
/// the guard works: no pod is deleted before all of this is done.
async fn read(
    cluster: &Cluster,
    settings: &Settings,
    stop: &Stop,
) -> Result<(Gathered, Option<Instant>, (Option<Notebook>, History))> {
    let reader = Reader::new(cluster, settings);
    let read = async {
        let (gathered, proved, history) = tokio::try_join!(
            Box::pin(gather(&reader, None)),
            prove_guard(settings, cluster),
            async { Ok(cluster.history(&settings.history_namespace).await) },
        )?;
        let recalled = recall(&reader, history, &gathered.facts).await;
        Ok((gathered, proved, recalled))
    };
    stop.or_stopped(read).await
}

/// Decides about the pods that were gathered, and applies the limits of the run.
fn planned(settings: &Settings, gathered: Gathered) -> Result<RunRecord<'_>> {
    settings.check_filters(&gathered.facts)?;
    let (facts, plan) = settings.plan(gathered);
    Ok(RunRecord::new(settings, facts, plan))
}

/// Proves that the guard works, if the settings require that. Returns the moment before.
async fn prove_guard(settings: &Settings, cluster: &Cluster) -> Result<Option<Instant>> {
    if settings.guard() != GuardCode::Proved {
        return Ok(None);
    }
    let at = Instant::now();
    cluster.prove().await.map_err(CouldNotRun::Unguarded)?;
    Ok(Some(at))
}

/// Deletes the pods to be reaped, verifies that they are gone, and writes Events. A dry run does none
/// of this. Each of these pods gets an outcome. Fails before the first delete if the guard could not be proved again.
async fn act_and_verify(
    run: &mut RunRecord<'_>,
    (leases, proved): (Option<&OtherLeases>, Option<Instant>),
    cluster: &Cluster,
    ask: bool,
    stop: &Stop,
) -> Result<()> {
    let start = Instant::now();
    let pods = run.plan.reaps().collect_vec();
    let all = |outcome: Outcome| {
        pods.iter()
            .map(|judged| (judged.pod.uid.clone(), outcome.clone()))
            .collect()
    };
    if run.settings.task.mode() != Mode::Delete {
        run.outcomes = all(Outcome::WouldDelete);
        return Ok(());
    }
    if ask && !pods.is_empty() && !prompt::confirm(&cluster.name, run, stop).await {
        run.declined = stop.reason().is_none();
        run.outcomes = all(stop.reason().map_or(Outcome::WouldDelete, |why| {
            Outcome::Interrupted(why.to_owned())
        }));
        return Ok(());
    }
    // By the API server's clock: this machine's clock may be wrong.
    let now = run.facts.now;
    let at = || {
        let elapsed = SignedDuration::from_secs(start.elapsed().as_secs().cast_signed());
        now.saturating_add(elapsed).unwrap_or(now)
    };
    let begun = history::before(cluster, run, at()).await;
    let (policy, judged_by) = (&run.settings.policy, (&run.facts, leases));
    let reaped = reap(cluster, stop, policy, judged_by, proved, &pods)
        .await
        .map(|outcomes| run.outcomes = outcomes);
    // Without outcomes, the run takes back its notes.
    history::after(cluster, run, begun, at()).await;
    reaped?;
    events::write(cluster, stop, run, at()).await;
    Ok(())
}
