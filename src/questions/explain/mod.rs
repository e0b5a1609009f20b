//! `pod-reaper explain`: why is this pod judged as it is?
//!
//! Reads what a run reads, and the pod besides, and evaluates every rule on it rather than up to the first that holds.
//! Its plan is the run's own. Only reads are sent.

mod page;

use jiff::Timestamp;
use serde::Serialize;

use crate::cli::PodName;
use crate::cluster::Cluster;
use crate::decide::{Answer, Case, Evaluation, ReasonCode};
use crate::exit::{CouldNotRun, Exit, Result};
use crate::facts::{Owner, PodSummary, ReadError};
use crate::limits::{Judged, Plan};
use crate::questions::{Judgement, near};
use crate::report::page::Page;
use crate::report::{Render, VERSION, answers_of};
use crate::settings::{Settings, Task};
use crate::source::cluster::Live;
use crate::source::snapshot::{self, Pods};
use crate::source::{Gathered, Source, gather};
use crate::stop::Stop;
use crate::words::spoken;

/// The answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", tag = "kind")]
pub struct Explanation {
    /// Version of this form.
    pub version: u8,
    /// Version of the program.
    pub program_version: &'static str,
    /// The snapshot's file name; null where a cluster was read.
    pub snapshot: Option<String>,
    /// The moment of the verdict.
    pub judged_at: Timestamp,
    /// The pod.
    pub pod: PodSeen,
    /// Every rule, in order; none where the pod is not Terminating.
    pub rules: Vec<Evaluation>,
    /// The limits of the whole run, for a pod that a run looks at.
    pub limits: Vec<Evaluation>,
    /// The verdict.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// What people have answered: on the pod, its claims and its node.
    pub answers: Vec<Answer>,
    /// What could not be read.
    pub errors: Vec<ReadError>,
    /// What the source does not show, as sentences.
    pub unseen: Vec<String>,
    /// Every rule is to be shown to people too.
    #[serde(skip)]
    pub all_rules: bool,
    /// 0, or 3 where something could not be read.
    #[serde(rename = "exitCode")]
    pub exit: Exit,
}

/// The pod that is asked about.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PodSeen {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its node.
    pub node: Option<String>,
    /// The controller that made it.
    pub owner: Option<Owner>,
    /// Its phase.
    pub phase: String,
    /// Since when it exists.
    pub created: Option<Timestamp>,
    /// When it should have been gone; null where it is not Terminating.
    pub deletion_deadline: Option<Timestamp>,
    /// How long ago that was, in seconds.
    pub overdue_seconds: Option<i64>,
}

/// Answers for `asked`.
pub async fn run(settings: &Settings, asked: &PodName, stop: &Stop) -> Result<Explanation> {
    let answer = async {
        match &settings.task {
            Task::Audit {
                snapshot: file,
                now,
            } => {
                let saved =
                    snapshot::open(file, settings.snapshot_options(*now), Pods::Every).await?;
                run_on(&saved, settings, asked).await
            }
            Task::Reap { target, .. } => {
                let cluster = Cluster::connect(target, stop, &settings.node_selectors).await?;
                run_on(&Live::new(&cluster), settings, asked).await
            }
        }
    };
    stop.or_stopped(Box::pin(answer)).await
}

/// Answers for `asked`, by what `source` has.
pub async fn run_on(
    source: &impl Source,
    settings: &Settings,
    asked: &PodName,
) -> Result<Explanation> {
    let raw = source.pod(&asked.namespace, &asked.name).await?;
    let Some(raw) = raw else {
        return Err(absent(source, asked).await);
    };
    let summary = raw.summary();
    let terminating = summary.terminating.then_some(raw);
    let gathered = gather(source, &settings.wanted(), terminating).await?;
    answer(settings, asked, &summary, gathered)
}

/// Says that there is no such pod, and which may be meant: one of that namespace, that name in another one, or one of the
/// workload that has the name.
async fn absent(source: &impl Source, asked: &PodName) -> CouldNotRun {
    let PodName { namespace, name } = asked;
    // A hint is not worth an error of its own.
    let here = source.summaries(namespace).await.unwrap_or_default();
    let near = near(name, here.iter().map(|pod| pod.name.as_str()));
    let elsewhere = source.namesakes(name).await.unwrap_or_default();
    let elsewhere = elsewhere
        .iter()
        .map(|pod| format!("{}/{name}", pod.namespace));
    let elsewhere = elsewhere.collect::<Vec<_>>().join(" and ");
    let hint = if WORKLOADS.contains(&namespace.as_str()) && here.is_empty() {
        format!(
            "{namespace} was read as a namespace, and explain takes a pod: list those of {name} with kubectl get pods -A | \
             grep {name}, then write NAMESPACE/POD"
        )
    } else if elsewhere.is_empty() {
        near.unwrap_or_else(|| {
            format!("it may be gone already; list the pods with: kubectl get pods -n {namespace}")
        })
    } else {
        let near = near.map(|near| format!("; or {near}")).unwrap_or_default();
        format!("there is {elsewhere}{near}")
    };
    CouldNotRun::Source(format!("there is no pod {asked}; {hint}"))
}

/// What kubectl calls that which makes pods.
const WORKLOADS: [&str; 16] = [
    "deploy",
    "deployment",
    "deployments",
    "sts",
    "statefulset",
    "statefulsets",
    "ds",
    "daemonset",
    "daemonsets",
    "rs",
    "replicaset",
    "replicasets",
    "job",
    "jobs",
    "cronjob",
    "cronjobs",
];

fn unread(asked: &PodName, cause: &str) -> CouldNotRun {
    CouldNotRun::Source(format!("pod {asked} could not be read: {cause}"))
}

/// `gathered`: what a run would judge, and the pod that is asked about, where it is Terminating.
fn answer(
    settings: &Settings,
    asked: &PodName,
    summary: &PodSummary,
    Gathered { facts, pods }: Gathered,
) -> Result<Explanation> {
    let pod = pods.iter().find(|pod| pod.uid == summary.uid).cloned();
    let PodSummary {
        namespace,
        name,
        uid,
        node,
        controller: owner,
        phase,
        created,
        ..
    } = summary.clone();
    let deletion_deadline = pod.as_ref().map(|pod| pod.deletion_deadline);
    let overdue_seconds = pod.as_ref().map(|pod| pod.overdue(facts.now).as_secs());
    let seen = PodSeen {
        namespace,
        name,
        uid: uid.to_string(),
        node,
        owner,
        phase,
        created,
        deletion_deadline,
        overdue_seconds,
    };
    let mut explanation = Explanation {
        version: VERSION,
        program_version: env!("CARGO_PKG_VERSION"),
        snapshot: settings.task.snapshot(),
        judged_at: facts.now,
        pod: seen,
        errors: facts.errors.clone(),
        unseen: facts.unseen.clone(),
        exit: if facts.errors.is_empty() {
            Exit::Done
        } else {
            Exit::Incomplete
        },
        ..Explanation::default()
    };
    let Some(pod) = pod else {
        if summary.terminating {
            let own = format!("pod {asked}");
            let cause = facts
                .errors
                .iter()
                .find(|error| error.what.eq_ignore_ascii_case(&own));
            let cause = cause.map_or(
                "it is Terminating, but lacks what a verdict needs",
                |error| &error.cause,
            );
            return Err(unread(asked, cause));
        }
        explanation.judgement.detail = not_terminating(summary, facts.now);
        return Ok(explanation);
    };
    explanation.rules = Case::of(&facts, &settings.policy, &pod).evaluate();
    let looked_at = settings.namespaces.matches(&pod.namespace);
    // The run's own plan: a limit depends on the other pods.
    let plan = Plan::new(&facts, pods, &settings.policy, &settings.limits);
    let judged = plan
        .pods
        .iter()
        .find(|judged| judged.pod.uid == pod.uid)
        .filter(|_| looked_at);
    if judged.is_none_or(|judged| judged.limit.is_some()) {
        explanation
            .rules
            .iter_mut()
            .for_each(|rule| rule.decides = false);
    }
    let Some(judged) = judged else {
        explanation.judgement.detail = format!(
            "Its namespace {} is left out. The run looks at these namespaces: {}.",
            pod.namespace, settings.namespaces
        );
        return Ok(explanation);
    };
    explanation.limits = limits(&plan, judged);
    explanation.answers = answers_of(judged, &facts, &settings.policy);
    explanation.judgement = Judgement::of(judged, &plan, &facts, settings);
    if judged.code() == ReasonCode::FactsUnread {
        explanation.exit = Exit::Incomplete;
    }
    Ok(explanation)
}

fn not_terminating(summary: &PodSummary, now: Timestamp) -> String {
    let age = |created| format!("has existed for {}", spoken(now.duration_since(created)));
    format!(
        "It is not Terminating: its deletion was not requested. It {}, in phase {}. pod-reaper looks at \
         Terminating pods only.",
        summary.created.map_or_else(|| "exists".to_owned(), age),
        if summary.phase.is_empty() {
            "unknown"
        } else {
            &summary.phase
        }
    )
}

/// Limits turn `reap` into `wait`, so they decide where one of them stands beside the rules' verdict.
fn limits(plan: &Plan, judged: &Judged) -> Vec<Evaluation> {
    let hold = plan.hold.as_ref().map(|hold| hold.limit.clone());
    let cap = judged.limit.clone();
    let cap = cap.filter(|limit| limit.code == ReasonCode::OverCap);
    let breaker = "Does the mass-outage breaker hold the run?";
    let limits = [
        (
            breaker,
            hold,
            "Too few nodes are NotReady for that, or it is switched off.",
        ),
        (
            "Are there more pods to reap than --max-deletes?",
            cap,
            "Too few of them go before it.",
        ),
    ];
    let evaluated = limits.map(|(asks, limit, otherwise)| Evaluation {
        number: None,
        asks,
        holds: Some(limit.is_some()),
        decides: limit.is_some() && limit == judged.limit,
        seen: limit.map_or_else(|| otherwise.to_owned(), |limit| limit.sentence()),
    });
    evaluated.into()
}

impl Render for Explanation {
    fn exit(&self) -> Exit {
        self.exit
    }

    fn page(&self) -> Page {
        page::page(self)
    }
}
