//! Notices: facts that you should know besides the verdicts, because silence reads as an all-clear.
//! No notice changes the exit code.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use crate::{
    codes::codes,
    decide::{BUILT_IN, DETECTED_WITHIN, ReasonCode, Verdict, same_kind},
    facts::{ClusterFacts, NodeFacts, PodFacts, Ready, StayReason},
    limits::{Judged, Limit},
    report::{page::NAMES, record::RunRecord},
    selector::is_name,
    settings::Task,
    words::{counted, human_duration, listed, prefixed},
};

codes! {
    /// What a notice is about.
    pub enum NoticeCode {
        /// Pods of a dead node that Kubernetes does not evict.
        NeverEvicted = "never-evicted",
        /// Pods that have waited for many times the threshold.
        LongWait = "long-wait",
        /// The namespace filter matches no existing namespace.
        NoNamespace = "no-namespace",
        /// A kind in `--manual-owner-kind` that is not built in, and that no judged pod's
        /// owner has.
        UnknownKind = "unknown-kind",
        /// A snapshot is judged by its own newest time.
        TimeOfTheFile = "time-of-the-file",
        /// `--now` is before something that the snapshot shows.
        NowTooEarly = "now-too-early",
        /// Pods that Kubernetes leaves on a dead node because they belong to it.
        StaysWithNode = "stays-with-node",
        /// Control plane nodes without a lease that tells whether their API server is running.
        ApiServerUnknown = "api-server-unknown",
        /// A Ready node that bears the out-of-service taint.
        OutOfService = "out-of-service",
        /// An answer that is ignored.
        AnswerInert = "answer-inert",
        /// Nodes with a detector that writes less often than `--node-not-ready-for` waits.
        DetectorsTooSlow = "detectors-too-slow",
        /// Terminating pods on Ready nodes, which are not looked at.
        OnReadyNodes = "on-ready-nodes",
    }
}

impl NoticeCode {
    /// Reports whether the notice has to come first, because without it the rest of the
    /// report misleads.
    pub fn is_first(self) -> bool {
        matches!(self, Self::NoNamespace | Self::NeverEvicted)
    }

    /// Reports whether something is wrong, or may be.
    pub fn asks_for_a_look(self) -> bool {
        !matches!(
            self,
            Self::TimeOfTheFile | Self::StaysWithNode | Self::OnReadyNodes
        )
    }

    /// Makes a notice about `count` pods or other things, which are not all on one node.
    fn about(self, count: usize, detail: String) -> NoticeEntry {
        NoticeEntry {
            code: self,
            node: None,
            count,
            detail,
        }
    }
}

in_json! {
    /// Something to know besides the verdicts.
    pub struct NoticeEntry {
        /// What the notice is about.
        pub code: NoticeCode,
        /// The node that the notice is about; null if it is about none, or about several.
        pub node: Option<String>,
        /// How many pods the notice is about; 1 if it is about none.
        pub count: usize,
        /// The notice as sentences.
        pub detail: String,
    }
}

/// A wait is long once it has lasted for more than this many thresholds. Many runs have then
/// passed.
const LONG_WAIT_THRESHOLDS: i32 = 12;
/// The threshold that long waits are measured by if the thresholds of the run are zero.
const LEAST_THRESHOLD: SignedDuration = SignedDuration::from_mins(1);
/// Seconds for which most pods tolerate a NotReady node. Before they have passed, no eviction is
/// missing.
const TOLERATION_SECONDS: i64 = 300;
/// How long it may take to save a cluster, so that the newest times of a file differ.
const SAVED_WITHIN: SignedDuration = SignedDuration::from_mins(1);
/// How late an eviction may be: the node controller looks at the nodes every 5 s, and taints one
/// node of a zone every 10 s.
const EVICTION_DELAY: SignedDuration = SignedDuration::from_secs(50);

// Sentences that distinguish notices of one code. Tests refer to them by these names.
const NEVER: &str =
    "Each tolerates such a node without a time limit, so Kubernetes never evicts it.";
const MISSED: &str = "Their tolerationSeconds have expired, but Kubernetes has not evicted them: either it is limiting evictions because \
    many nodes are NotReady at once, or kube-controller-manager is not working.";
const DOWN: &str = "Each is down, unless the node is only cut off.";
const MAY_RUN: &str = "Each may still be running, since the node shows signs of life.";
const BREAKER: &str = "The breaker holds them in every run until enough nodes are Ready. Find out what the NotReady ones have in common.";
const CAP: &str = "is fewer than get stuck between two runs: raise it, or run more often.";
const FLAPS: &str =
    "The node changes between Ready and NotReady, or they were stuck before it failed.";
const NO_CONDITION: &str = "The node has no Ready condition, so it does not say since when it has been NotReady; no run reaps these pods until that is known.";
const NO_TIME: &str = "The node's Ready condition says no time, or one in the future; no run reaps these pods until that is known.";

/// Lists the notices of a run.
pub fn of_run(run: &RunRecord<'_>) -> Vec<NoticeEntry> {
    let RunRecord {
        settings,
        facts,
        plan,
        ..
    } = run;
    let (never_evicted, staying) = not_evicted(run);
    let unmatched = settings
        .unmatched(facts)
        .map(|why| NoticeCode::NoNamespace.about(1, format!("No pod was judged: {why}.")));
    let owners = plan
        .pods
        .iter()
        .flat_map(|judged| judged.pod.owner.iter().chain(&judged.pod.workload));
    let known = owners.map(|owner| owner.kind.as_str()).chain(BUILT_IN);
    let kinds = settings.policy.manual_owner_kinds.iter();
    let unknown = kinds.filter(|kind| !known.clone().any(|known| same_kind(known, kind))).map(|kind| {
        let detail = format!(
            "--manual-owner-kind names {kind}, which is not a built-in kind of Kubernetes, and no judged pod has an \
             owner of it: if it is misspelt, it protects nothing."
        );
        NoticeCode::UnknownKind.about(1, detail)
    });
    let newest = matches!(settings.task, Task::Audit { now: None, .. }).then(|| {
        let detail = format!(
            "Judged at {}, the newest time of the file; what happened later is not known. --now sets another time.",
            facts.now.strftime("%F %TZ")
        );
        NoticeCode::TimeOfTheFile.about(1, detail)
    });
    let is_late = |newest: &Timestamp| newest.duration_since(facts.now) > SAVED_WITHIN;
    let too_early = facts.newest.filter(is_late).map(|newest| {
        let detail = format!(
            "--now is {} before the newest time of the file, {}: what happened after --now is judged as if it had just \
             happened.",
            human_duration(newest.duration_since(facts.now)),
            newest.strftime("%F %TZ")
        );
        NoticeCode::NowTooEarly.about(1, detail)
    });
    let elsewhere = facts.on_ready_nodes;
    let on_ready = counted(
        elsewhere,
        "more Terminating pod is on a Ready node",
        "more Terminating pods are on Ready nodes",
    ) + "; --all lists them";
    never_evicted
        .into_iter()
        .chain([without_api_server(facts)])
        .chain(out_of_service(run))
        .chain(long_waits(run))
        .chain(inert_answers(run))
        .chain(unmatched)
        .chain(unknown)
        .chain([detectors_too_slow(run)])
        .chain(newest)
        .chain(too_early)
        .chain([staying, NoticeCode::OnReadyNodes.about(elsewhere, on_ready)])
        .filter(|notice| notice.count > 0)
        .collect()
}

/// Returns the notices about pods that Kubernetes has not evicted from dead nodes: for each node,
/// notices about the pods that should be gone, and one notice about all pods that belong to their
/// node. Leaf nodes are skipped, because their pods keep running.
fn not_evicted(run: &RunRecord<'_>) -> (Vec<NoticeEntry>, NoticeEntry) {
    let facts = &run.facts;
    let (mut never_evicted, mut nodes, mut staying) = (Vec::new(), Vec::new(), 0);
    for (name, pods) in &facts.active {
        let node = facts.known(name);
        let Some(node) = node.filter(|node| node.ready != Ready::True && node.leaf.is_none())
        else {
            continue;
        };
        let since = node.not_ready_since(facts.now);
        let due = |seconds: i64| {
            let after = SignedDuration::from_secs(seconds.max(0)).saturating_add(EVICTION_DELAY);
            since.is_none_or(|since| facts.now.duration_since(since) >= after)
        };
        if !due(TOLERATION_SECONDS) {
            continue;
        }
        let tolerates = |pod: &PodFacts| match node.ready {
            Ready::False => pod.tolerates_not_ready,
            _ => pod.tolerates_silence,
        };
        let belongs =
            |pod: &&PodFacts| matches!(pod.stays, Some(StayReason::DaemonSet | StayReason::Static));
        let (belonging, others): (Vec<_>, Vec<_>) = pods.iter().partition(belongs);
        if !belonging.is_empty() {
            staying += belonging.len();
            nodes.push(format!("{name} ({})", belonging.len()));
        }
        let (for_ever, mut overdue): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|pod| tolerates(pod).is_none());
        overdue.retain(|pod| tolerates(pod).is_some_and(due));
        let down = if node.signs_of_life(facts.now).is_empty() {
            DOWN
        } else {
            MAY_RUN
        };
        let heard = node.last_sign(facts.now);
        let why_for_ever = format!(
            "{NEVER} {down} {heard} To move such a pod, delete it without --force: the next runs then judge it like any other Terminating pod."
        );
        let why_overdue = format!("{MISSED} {down} {heard}");
        for (pods, why) in [(for_ever, why_for_ever), (overdue, why_overdue)] {
            let names = pods
                .iter()
                .sorted_by_key(|pod| (&pod.namespace, &pod.name))
                .map(|pod| {
                    let owner = prefixed(" of ", pod.workload.as_ref());
                    format!("{}/{}{owner}", pod.namespace, pod.name)
                });
            let names = listed(&names.collect_vec(), NAMES);
            let detail = format!("Not evicted from NotReady node {name}: {names}. {why}");
            never_evicted.push(NoticeEntry {
                node: Some(name.clone()),
                ..NoticeCode::NeverEvicted.about(pods.len(), detail)
            });
        }
    }
    let detail = format!(
        "Static pods and pods of DaemonSets stay on their NotReady node, as expected: {}.",
        listed(&nodes, NAMES)
    );
    (
        never_evicted,
        NoticeCode::StaysWithNode.about(staying, detail),
    )
}

/// Returns a notice about each answer that is ignored, with the command that removes it.
fn inert_answers(run: &RunRecord<'_>) -> Vec<NoticeEntry> {
    let all = run.plan.pods.iter().flat_map(|judged| {
        let answers = run.answers(judged).into_iter();
        answers.map(|answer| match answer.on {
            "node" => ("", answer),
            _ => (judged.pod.namespace.as_str(), answer),
        })
    });
    all.sorted()
        .dedup()
        .filter_map(|(namespace, answer)| {
            let command = run.kubectl.withdraw(&answer, namespace);
            let why = answer.inert.as_ref()?;
            let detail = format!("Answer {answer} is ignored: {why}. To remove it: {command}");
            Some(NoticeCode::AnswerInert.about(1, detail))
        })
        .collect()
}

/// Returns the notice about the control plane nodes whose API server may or may not be running.
fn without_api_server(facts: &ClusterFacts) -> NoticeEntry {
    let nodes = facts
        .known_nodes()
        .filter(|node| node.ready != Ready::True && node.lacks_api_server())
        .map(|node| &node.name)
        .collect_vec();
    let detail = format!(
        "Cannot tell whether the API server on these NotReady control plane nodes is still running: {}. No API server lease in kube-system carries their host name. Kubernetes 1.26 and newer write these leases; the ServiceAccount needs permission to list them.",
        listed(&nodes, NAMES)
    );
    NoticeCode::ApiServerUnknown.about(nodes.len(), detail)
}

/// Returns the notice about the nodes with a detector that may not have written before a run acts.
fn detectors_too_slow(run: &RunRecord<'_>) -> NoticeEntry {
    let threshold = run.settings.policy.node_not_ready_for;
    let is_down = |node: &&NodeFacts| node.ready != Ready::True && node.has_detector();
    let down = run.facts.known_nodes().filter(is_down);
    let missed = down.filter(|_| threshold < DETECTED_WITHIN);
    let nodes = missed.map(|node| &node.name).collect_vec();
    let detail = format!(
        "The run does not wait for node-problem-detector or the EKS node monitoring agent, which write every 5m, because \
         --node-not-ready-for is only {}: {}. With 6m or more their heartbeats are seen.",
        human_duration(threshold),
        listed(&nodes, NAMES)
    );
    NoticeCode::DetectorsTooSlow.about(nodes.len(), detail)
}

/// Returns a notice about each Ready node that bears the out-of-service taint. While the node has the
/// taint, pods that do not tolerate the taint cannot run there, and Kubernetes detaches mounted volumes.
fn out_of_service(run: &RunRecord<'_>) -> impl Iterator<Item = NoticeEntry> {
    let nodes = run
        .facts
        .ready_out_of_service
        .iter()
        .filter(|name| is_name(name));
    nodes.map(|name| {
        let command = run.kubectl.untaint(name);
        let detail = format!(
            "Node {name} is Ready and has the out-of-service taint: Kubernetes starts no pod there that does not tolerate the \
             taint, and detaches volumes although they are in use. Once the machine was powered off and on again, remove the \
             taint: {command}"
        );
        NoticeEntry {
            node: Some(name.clone()),
            ..NoticeCode::OutOfService.about(1, detail)
        }
    })
}

/// Returns a notice for each reason and node about the pods that have waited for many thresholds. A
/// limit concerns the whole run, so the notice about a limit names no node.
fn long_waits(run: &RunRecord<'_>) -> Vec<NoticeEntry> {
    let (policy, facts) = (&run.settings.policy, &run.facts);
    let threshold = policy.reap_older_than.max(policy.node_not_ready_for);
    let least = threshold.is_zero().then_some(LEAST_THRESHOLD);
    let long = least
        .unwrap_or(threshold)
        .saturating_mul(LONG_WAIT_THRESHOLDS);
    let is_long =
        |judged: &&Judged| judged.verdict() == Verdict::Wait && facts.overdue(&judged.pod) > long;
    let mut groups = BTreeMap::<_, Vec<&Judged>>::new();
    for judged in run.plan.pods.iter().filter(is_long) {
        let node = judged
            .pod
            .node
            .as_deref()
            .filter(|_| judged.limit.is_none());
        let group = groups.entry((judged.code(), node)).or_default();
        group.push(judged);
    }
    let notices = groups.into_iter().map(|((_, node), pods)| {
        let names = pods
            .iter()
            .map(|judged| format!("{}/{}", judged.pod.namespace, judged.pod.name));
        // The plan has the longest overdue pod first.
        let detail = format!(
            "Still waiting{}, overdue for up to {}: {}. {}",
            prefixed(" on node ", node),
            human_duration(facts.overdue(&pods[0].pod)),
            listed(&names.collect_vec(), NAMES),
            cause_of_wait(pods[0], facts)
        );
        NoticeEntry {
            node: node.map(str::to_owned),
            ..NoticeCode::LongWait.about(pods.len(), detail)
        }
    });
    notices.collect()
}

/// Says why a pod has waited for so long and, if its reason tells, what to do about it.
fn cause_of_wait(judged: &Judged, facts: &ClusterFacts) -> String {
    let node = facts.known_node(&judged.pod);
    let since = node.and_then(|node| node.not_ready_since(facts.now));
    match (&judged.limit, judged.code()) {
        (Some(Limit::MassOutage(state)), _) => format!("{state}. {BREAKER}"),
        (Some(Limit::OverCap(cap)), _) => format!("--max-deletes={cap} {CAP}"),
        (_, ReasonCode::NodeJustFailed) if since.is_some() => {
            format!("{FLAPS} {}", judged.sentence())
        }
        (_, ReasonCode::NodeJustFailed) if node.is_some_and(|node| node.ready == Ready::Absent) => {
            NO_CONDITION.to_owned()
        }
        (_, ReasonCode::NodeJustFailed) => NO_TIME.to_owned(),
        _ => judged.sentence(),
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod detectors_tests;
#[cfg(test)]
mod out_of_service_tests;
