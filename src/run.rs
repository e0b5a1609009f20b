//! One run, from facts to report. Each step is a module of its own.

use std::cell::Cell;

use itertools::Itertools as _;
use jiff::SignedDuration;
use tokio::time::Instant;

use crate::{
    cluster::Cluster,
    console::{prompt, terminal::status},
    execute::execute,
    exit::{CouldNotRun, Result},
    facts::PodFacts,
    notify::events,
    outcome::Outcome,
    report::{Report, RunRecord},
    selector::Target,
    settings::{GuardCode, Mode, Settings, Task},
    source::{Gathered, OtherLeases, Reader, gather, snapshot},
    stop::Stop,
    words::{counted, human_duration, sanitize},
};

/// Runs with these `settings` and returns the report. `Err` if the facts could not be gathered, or
/// if `stop` ended the run before they were.
pub async fn run(settings: &Settings, stop: &Stop) -> Result<Report> {
    let log_start = || {
        let namespaces = &settings.namespaces;
        let reap_older_than = human_duration(settings.policy.reap_older_than);
        tracing::info!(%reap_older_than, "Looking for stuck Terminating pods; namespaces: {namespaces}");
    };
    match &settings.task {
        Task::Audit {
            snapshot: file,
            now,
        } => {
            let saved = snapshot::open(
                file,
                snapshot::Options {
                    now: *now,
                    every_pod: false,
                },
            );
            let saved = stop.or_stopped(saved).await?;
            log_start();
            let gathered = gather(&Reader::new(&saved, settings.wanted()), None).await?;
            Ok(planned(settings, gathered)?.report())
        }
        Task::Reap {
            target,
            dry_run,
            yes,
        } => {
            let ask = !dry_run && !yes && can_ask(target).await?;
            let cluster = Cluster::connect(target, stop);
            let cluster = stop.or_stopped(cluster).await?;
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

/// Runs on a cluster that is already connected. With `ask`, the user has to confirm the deletes.
///
/// The steps are those of a run: read, decide, limit, act and verify, report.
pub async fn run_on(
    cluster: &Cluster,
    settings: &Settings,
    ask: bool,
    stop: &Stop,
) -> Result<Report> {
    let mut gathered = read(cluster, settings, stop).await?;
    let leases = gathered.leases.take();
    let mut run = planned(settings, gathered)?;
    act_and_verify(&mut run, leases.as_ref(), cluster, ask, stop).await;
    Ok(run.report())
}

/// Gathers the facts and the pods to judge. Meanwhile the run proves that the guard works: no pod
/// is deleted before both are done.
async fn read(cluster: &Cluster, settings: &Settings, stop: &Stop) -> Result<Gathered> {
    let reader = Reader::new(cluster, settings.wanted());
    let gathered = async {
        tokio::try_join!(
            Box::pin(gather(&reader, None)),
            prove_guard(settings, cluster)
        )
    };
    let (gathered, ()) = stop.or_stopped(gathered).await?;
    Ok(gathered)
}

/// Decides about the pods that were gathered, and applies the limits of the run.
fn planned(settings: &Settings, gathered: Gathered) -> Result<RunRecord<'_>> {
    let Gathered { facts, pods, .. } = gathered;
    settings.check_filters(&facts)?;
    log_counts(&pods);
    let judged = settings.decide(&facts, pods);
    let plan = settings.limit(&facts, judged);
    Ok(RunRecord::new(settings, facts, plan))
}

/// Logs how many pods are to be judged, in total and in each namespace.
fn log_counts(pods: &[PodFacts]) {
    let by_namespace = pods.iter().counts_by(|pod| &pod.namespace);
    tracing::info!(
        "{} in {}",
        counted(pods.len(), "Terminating pod", "Terminating pods"),
        counted(by_namespace.len(), "namespace", "namespaces")
    );
    for (namespace, count) in by_namespace.into_iter().sorted_unstable() {
        let (namespace, pods) = (
            sanitize(namespace),
            counted(count, "Terminating pod", "Terminating pods"),
        );
        tracing::debug!("Namespace {namespace}: {pods}");
    }
}

async fn prove_guard(settings: &Settings, cluster: &Cluster) -> Result<()> {
    if settings.guard() == GuardCode::Proved {
        cluster.prove().await.map_err(CouldNotRun::Unguarded)?;
        tracing::info!("The guard is proved: it refuses this account the delete of a running pod");
    }
    Ok(())
}

/// Deletes the pods to be reaped, verifies that they are gone, and writes Events. A dry run does none
/// of this. Each of these pods gets an outcome.
async fn act_and_verify(
    run: &mut RunRecord<'_>,
    leases: Option<&OtherLeases>,
    cluster: &Cluster,
    ask: bool,
    stop: &Stop,
) {
    let start = Instant::now();
    let pods = run.plan.reaps().collect_vec();
    let all = |outcome: Outcome| {
        pods.iter()
            .map(|judged| (judged.pod.uid.clone(), outcome.clone()))
            .collect()
    };
    if run.settings.task.mode() != Mode::Delete {
        run.outcomes = all(Outcome::WouldDelete);
        return;
    }
    if ask && !pods.is_empty() && !prompt::confirm(&cluster.name, &run.report(), stop).await {
        let interrupted = |why: &str| Outcome::Interrupted(why.to_owned());
        run.declined = stop.reason().is_none();
        run.outcomes = all(stop.reason().map_or(Outcome::WouldDelete, interrupted));
        return;
    }
    let done = Cell::new(0);
    let progress = || {
        done.set(done.get() + 1);
        status(&format!("{} of {} pods", done.get(), pods.len()));
    };
    let (policy, judged_by) = (&run.settings.policy, (&run.facts, leases));
    run.outcomes = execute(cluster, stop, policy, judged_by, &pods, &progress).await;
    status("");
    // Events carry the API server's time: this machine's clock may be wrong.
    let elapsed = SignedDuration::try_from(start.elapsed()).unwrap_or_default();
    let at = run
        .facts
        .now
        .saturating_add(elapsed)
        .unwrap_or(run.facts.now);
    events::write(cluster, stop, run, at).await;
}

#[cfg(test)]
mod tests {
    use pod_reaper_test_support::{
        samples::{NOW, objects, yaml},
        simulated::{Fate, Fault, Kind, Objects, Request, Server},
    };

    use super::*;
    use crate::{decide::ReasonCode, outcome::OutcomeCode, report::samples};

    /// Runs on a cluster with one stuck pod. The server responds to its deletes with 404.
    async fn run_on_one(settings: &Settings) -> Result<Report> {
        run_with(settings, 404, |request| request.kind == Kind::Delete).await
    }

    /// Runs on that cluster. The server responds to requests that are `refused` with `status`. The
    /// pod has finished.
    async fn run_with(
        settings: &Settings,
        status: u16,
        refused: fn(&Request) -> bool,
    ) -> Result<Report> {
        let cluster = "{Node ds05: {ready: 'True'}, Node ds06: {}, Namespace shop: {}, \
            Pod shop/db-0: {status: {phase: Failed}}}";
        let fate = move |request: &Request| Fate {
            fault: refused(request).then_some(Fault::Status(status, false, false)),
            ..Fate::default()
        };
        let objects = Objects::new(NOW.parse().unwrap(), objects(&yaml(cluster)));
        let server = Server::with_faults(objects, fate);
        let (_signal, stop) = Stop::manual(settings.deadline);
        let cluster = Cluster::new(server.client(), stop.clone());
        run_on(&cluster, settings, false, &stop).await
    }

    /// With `--all`, finished pods are also in a list of their own.
    #[tokio::test(start_paused = true)]
    async fn a_pod_is_kept_where_the_pods_of_its_node_cannot_be_listed() {
        let mut settings = samples::run(Mode::DryRun, Target::default());
        settings.all = true;
        let of_node = |request: &Request| request.selector.contains("spec.nodeName");
        let report = run_with(&settings, 500, of_node).await.expect("a report");
        assert_eq!(report.pods[0].reason, Some(ReasonCode::FactsUnread));
        let report = run_with(&settings, 500, |_| false).await.expect("a report");
        assert_eq!(report.pods[0].reason, Some(ReasonCode::Stuck));
    }

    #[tokio::test(start_paused = true)]
    async fn a_dry_run_only_reads() {
        let settings = samples::run(Mode::DryRun, Target::default());
        let report = run_with(&settings, 500, |request| {
            let writes = [Kind::Delete, Kind::Patch, Kind::Event];
            assert!(!writes.contains(&request.kind), "{request:?}");
            false
        });
        let report = report.await.expect("a report");
        assert_eq!(report.pods[0].outcome, Some(OutcomeCode::WouldDelete));
    }

    /// There is no guard here, so its proof fails.
    #[tokio::test(start_paused = true)]
    async fn a_required_guard_has_to_prove_itself_where_the_run_may_write() {
        for (dry_run, is_asked) in [(Mode::Delete, true), (Mode::DryRun, false)] {
            let mut settings = samples::run(dry_run, Target::default());
            settings.require_guard = true;
            let error = run_on_one(&settings).await.err();
            let is_unguarded = matches!(error, Some(CouldNotRun::Unguarded(_)));
            assert_eq!(is_unguarded, is_asked, "{dry_run:?}: {error:?}");
        }
    }
}
