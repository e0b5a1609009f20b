//! `pod-reaper explain`: why is this pod judged as it is?
//!
//! Reads what a run reads, and the pod besides, and hears every rule about it rather than the first that holds. Only
//! reads are sent.

mod text;

use std::{
    io::{self, Write},
    path::Path,
};

use jiff::Timestamp;
use serde::Serialize;

use crate::{
    cli::Output,
    cluster::{Cluster, Target},
    decide::{Heard, Reason, decide, hear, spoken},
    exit::Exit,
    facts::{ClaimState, ClusterFacts, Life, PodFacts, on_ready_node},
    limits::Plan,
    manual::{self, Advice, Kubectl, Step},
    reap::{self, CouldNotRun},
    report::{ErrorEntry, OwnerEntry, notes, text::Screen},
    settings::{Settings, Task},
    snapshot::{self, Pods},
    stop::Stop,
};

/// Version of the JSON form.
const VERSION: u8 = 1;

/// A pod, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for PodName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
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
    pub rules: Vec<RuleHeard>,
    /// The limits of the whole run, for a pod that a run looks at.
    pub limits: Vec<RuleHeard>,
    /// `reap`, `wait`, `leave`, `manual`; null where no run judges it.
    pub verdict: Option<&'static str>,
    /// The reason's code.
    pub reason: Option<&'static str>,
    /// Why, as a sentence.
    pub detail: String,
    /// What to remember once it is reaped.
    pub note: Option<String>,
    /// What is at risk.
    pub risk: Option<String>,
    /// What a person should do, in order.
    pub steps: Vec<Step>,
    /// What could not be read.
    pub errors: Vec<ErrorEntry>,
    /// What the source could not tell, as sentences.
    pub unseen: Vec<String>,
    /// 0, or 3 where something could not be read.
    #[serde(rename = "exitCode")]
    pub exit: Exit,
}

/// The pod that is asked about.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    pub owner: Option<OwnerEntry>,
    /// Its phase.
    pub phase: String,
    /// Since when it exists.
    pub created: Option<Timestamp>,
    /// When it should have been gone; null where it is not Terminating.
    pub deletion_deadline: Option<Timestamp>,
    /// How long ago that was, in seconds.
    pub overdue_seconds: Option<i64>,
}

/// One rule, or limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleHeard {
    /// Its place in the order; null for a limit.
    pub number: Option<usize>,
    /// What it asks.
    pub asks: &'static str,
    /// Whether it holds; null where nobody can tell.
    pub holds: Option<bool>,
    /// Whether the verdict follows from it.
    pub decides: bool,
    /// What was seen.
    pub seen: String,
}

/// What was read.
struct Seen {
    life: Life,
    /// The pod as facts, where it is Terminating.
    pod: Option<PodFacts>,
    /// What a run would judge, with the look at the pod's node.
    facts: ClusterFacts,
    kubectl: Kubectl,
}

/// Answers for `asked`.
pub async fn run(settings: &Settings, asked: &PodName, stop: &Stop) -> Result<Explanation, CouldNotRun> {
    let read = async {
        match &settings.task {
            Task::Audit { snapshot, now } => read_snapshot(settings, snapshot, *now, asked).await,
            Task::Reap { target, .. } => read_cluster(settings, target, asked, stop).await,
        }
    };
    let seen = tokio::select! {
        seen = read => seen?,
        why = stop.stopped() => return Err(CouldNotRun::Stopped(why)),
    };
    Ok(answer(settings, seen))
}

fn absent(asked: &PodName) -> CouldNotRun {
    let PodName { namespace, .. } = asked;
    CouldNotRun::Source(format!(
        "there is no pod {asked}: it may be gone already; see which there are with: kubectl get pods -n {namespace}"
    ))
}

async fn read_snapshot(
    settings: &Settings,
    file: &Path,
    now: Option<Timestamp>,
    asked: &PodName,
) -> Result<Seen, CouldNotRun> {
    let mut saved = reap::read_snapshot(file, Pods::Every).await?;
    // All of them: the pod may be where a run does not look.
    let wanted = snapshot::Wanted {
        now,
        namespaces: &crate::settings::NamespaceFilter::default(),
        leaf_selector: settings.leaf_selector.as_ref(),
        all: true,
    };
    let mut found = None;
    saved.retain(|pod| {
        let life = pod.life();
        let terminating = life.terminating;
        if life.namespace == asked.namespace && life.name == asked.name {
            found = Some(life);
        }
        terminating.then_some(pod)
    });
    let mut facts = saved.into_facts(&wanted).map_err(|error| reap::in_snapshot(file, &error))?;
    let unread = facts.errors.iter().find(|error| error.what == format!("Pod {asked}"));
    if let Some(error) = unread {
        return Err(CouldNotRun::Source(format!("pod {asked} could not be read: {}", error.cause)));
    }
    let life = found.ok_or_else(|| absent(asked))?;
    let pod = facts.pods.iter().find(|pod| pod.uid == life.uid).cloned();
    let nodes = &facts.nodes;
    facts.pods.retain(|pod| {
        settings.namespaces.matches(&pod.namespace) && (settings.all || !on_ready_node(nodes, pod))
    });
    Ok(Seen { life, pod, facts, kubectl: Kubectl::default() })
}

async fn read_cluster(
    settings: &Settings,
    target: &Target,
    asked: &PodName,
    stop: &Stop,
) -> Result<Seen, CouldNotRun> {
    let cluster = Cluster::connect(target, stop.clone(), settings.leaf_selector.clone()).await?;
    let raw = cluster.pod(&asked.namespace, &asked.name).await;
    let raw = raw.map_err(|failure| reap::could_not(&format!("read pod {asked}"), &failure))?;
    let raw = raw.ok_or_else(|| absent(asked))?;
    let life = raw.life();
    let kubectl = Kubectl::from(target);
    let (mut facts, _) = reap::read_cluster(settings, &cluster).await?;
    if !life.terminating {
        return Ok(Seen { life, pod: None, facts, kubectl });
    }
    let namespaces = cluster.namespaces().await;
    if let Err(failure) = &namespaces {
        facts.error("namespaces", failure);
    }
    let pod = raw.into_facts(reap::opted_out(&namespaces, &life.namespace));
    let mut pod = pod.map_err(|why| CouldNotRun::Source(format!("pod {asked} could not be read: {why}")))?;
    if let Some(node) = pod.node.clone().filter(|node| !facts.nodes.contains_key(node)) {
        let (nodes, errors) = reap::read_nodes(&cluster, [node]).await;
        facts.nodes.extend(nodes);
        facts.errors.extend(errors);
    }
    // Whatever the rules before the volumes say: every rule is heard.
    for claim in &mut pod.claims {
        claim.state = cluster.claim(&pod.namespace, &claim.name).await;
        if let ClaimState::Unread(unread) = &claim.state {
            let what = format!("claim {}/{}", pod.namespace, claim.name);
            facts.errors.push(crate::facts::ReadError { what, cause: unread.0.clone() });
        }
    }
    facts.errors.sort();
    facts.errors.dedup();
    Ok(Seen { life, pod: Some(pod), facts, kubectl })
}

fn answer(settings: &Settings, Seen { life, pod, mut facts, kubectl }: Seen) -> Explanation {
    let mut explanation = Explanation {
        version: VERSION,
        program_version: env!("CARGO_PKG_VERSION"),
        snapshot: settings.task.snapshot(),
        judged_at: facts.now,
        pod: PodSeen::new(&life, pod.as_ref(), facts.now),
        rules: Vec::new(),
        limits: Vec::new(),
        verdict: None,
        reason: None,
        detail: String::new(),
        note: None,
        risk: None,
        steps: Vec::new(),
        errors: facts.errors.iter().map(ErrorEntry::from).collect(),
        unseen: facts.unseen.clone(),
        exit: if facts.errors.is_empty() { Exit::Done } else { Exit::Incomplete },
    };
    let Some(pod) = pod else {
        explanation.detail = not_terminating(&life, facts.now);
        return explanation;
    };
    let node = facts.node_of(&pod);
    let by_rules = decide(facts.now, &settings.policy, node, &pod);
    let heard = hear(facts.now, &settings.policy, node, &pod);
    if !settings.namespaces.matches(&pod.namespace) {
        explanation.rules = rules(heard, None);
        explanation.detail = format!(
            "Its namespace {} is left out: the run looks at namespaces {} only.",
            pod.namespace, settings.namespaces
        );
        return explanation;
    }
    facts.pods.retain(|other| other.uid != pod.uid);
    facts.pods.push(pod.clone());
    let plan = reap::plan(settings, &mut facts);
    let limited = plan.pods.iter().find(|judged| judged.pod.uid == pod.uid);
    let reason = limited.map_or(by_rules.clone(), |judged| judged.reason.clone());
    let decides = heard.iter().find(|rule| rule.holds != Some(false)).map(|rule| rule.number);
    explanation.rules = rules(heard, decides.filter(|_| reason == by_rules));
    explanation.limits = limits(&plan, &reason, &by_rules);
    let Advice { risk, steps } = manual::advise(&pod, &reason, plan.hold.as_ref(), &kubectl);
    let notes = notes(&pod, &reason);
    explanation.verdict = Some(reason.verdict().code());
    explanation.reason = Some(reason.code());
    explanation.detail = reason.sentence();
    explanation.note = (!notes.is_empty()).then(|| notes.join("; "));
    (explanation.risk, explanation.steps) = (risk, steps);
    if matches!(reason, Reason::FactsUnread(_)) {
        explanation.exit = Exit::Incomplete;
    }
    explanation
}

fn not_terminating(life: &Life, now: Timestamp) -> String {
    let age = life.created.map(|created| format!(" for {}", spoken(now.duration_since(created))));
    format!(
        "It is not Terminating: nobody has asked for its deletion. It exists{}, in phase {}. pod-reaper looks at \
         Terminating pods only.",
        age.unwrap_or_default(),
        if life.phase.is_empty() { "unknown" } else { &life.phase }
    )
}

fn rules(heard: Vec<Heard>, decides: Option<usize>) -> Vec<RuleHeard> {
    let told = heard.into_iter().map(|Heard { number, asks, holds, seen }| RuleHeard {
        number: Some(number),
        asks,
        holds,
        decides: decides == Some(number),
        seen,
    });
    told.collect()
}

/// Limits turn `reap` into `wait`, so they decide where the rules said something else.
fn limits(plan: &Plan, reason: &Reason, by_rules: &Reason) -> Vec<RuleHeard> {
    let over_cap = matches!(reason, Reason::OverCap { .. });
    let held = plan.hold.as_ref().map(|hold| hold.reason.for_pod().sentence());
    vec![
        RuleHeard {
            number: None,
            asks: "Does the mass-outage breaker hold the run?",
            holds: Some(held.is_some()),
            decides: held.is_some() && reason != by_rules,
            seen: held.unwrap_or_else(|| "Not so many nodes are NotReady, or it is switched off.".to_owned()),
        },
        RuleHeard {
            number: None,
            asks: "Are there more pods to reap than --max-deletes?",
            holds: Some(over_cap),
            decides: over_cap,
            seen: if over_cap { reason.sentence() } else { "Not of those that go before it.".to_owned() },
        },
    ]
}

impl PodSeen {
    fn new(life: &Life, pod: Option<&PodFacts>, now: Timestamp) -> Self {
        Self {
            namespace: life.namespace.clone(),
            name: life.name.clone(),
            uid: life.uid.clone(),
            node: life.node.clone(),
            owner: life.controller.as_ref().map(OwnerEntry::from),
            phase: life.phase.clone(),
            created: life.created,
            deletion_deadline: pod.map(|pod| pod.deletion_deadline),
            overdue_seconds: pod.map(|pod| pod.overdue(now).as_secs()),
        }
    }
}

impl Explanation {
    /// Writes the answer as `output` wants it; text for `screen`.
    pub fn write(&self, output: Output, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        match output {
            // The command line takes no other than text and JSON.
            Output::Text | Output::Markdown | Output::Html => {
                out.write_all(text::write(self, screen).as_bytes())
            }
            Output::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                out.write_all(b"\n")
            }
        }
    }
}
