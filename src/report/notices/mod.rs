//! What a person should know besides the verdicts, since silence reads as an all-clear. No notice changes the exit code.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use serde::Serialize;

use crate::{
    codes::codes,
    decide::{Answer, Failure, Policy, ReasonCode, Verdict, same_kind},
    facts::{ClusterFacts, NodeFacts, NodeRead, Ready, Stay, Unasked},
    limits::{Judged, Limit, Plan},
    report::build::answers_of,
    settings::{Settings, Task},
    words::{and_more, spoken},
};

codes! {
    /// What a notice is about.
    pub enum NoticeCode {
        /// Pods of a dead node that Kubernetes does not ask to go.
        NeverEvicted = "never-evicted",
        /// Pods that have waited for many times the threshold.
        LongWait = "long-wait",
        /// The namespace filter matches none of the namespaces there are.
        NoNamespace = "no-namespace",
        /// A kind of `--manual-owner-kind` that no pod has.
        UnknownKind = "unknown-kind",
        /// A snapshot is judged by its own newest time.
        TimeOfTheFile = "time-of-the-file",
        /// Pods that Kubernetes leaves on a dead node because they belong to it.
        StaysWithNode = "stays-with-node",
        /// No API server's lease tells whether control plane nodes live.
        ApiServerUnknown = "api-server-unknown",
        /// What a person answered, and counts for nothing.
        AnswerInert = "answer-inert",
        /// Terminating pods on Ready nodes, which are not looked at.
        OnReadyNodes = "on-ready-nodes",
    }
}

impl NoticeCode {
    /// Whether it has to be read before anything else: what is below says nothing without it.
    pub fn is_first(self) -> bool {
        self == Self::NoNamespace
    }

    /// Whether something is not as it should be, or may not be.
    pub fn asks_for_a_look(self) -> bool {
        !matches!(
            self,
            Self::TimeOfTheFile | Self::StaysWithNode | Self::OnReadyNodes
        )
    }
}

/// Something to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "NoticeEntry"))]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// What it is about.
    pub code: NoticeCode,
    /// The node that it is about; null where that is none, or not one alone.
    pub node: Option<String>,
    /// How many pods it is about; 1 where it is about none.
    pub count: usize,
    /// That as sentences.
    pub detail: String,
}

/// Kinds of owners that Kubernetes itself has.
const BUILT_IN: [&str; 7] = [
    "StatefulSet",
    "Deployment",
    "ReplicaSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "ReplicationController",
];
/// A wait is long when it lasts for more than this many thresholds: many runs have taken place by then.
const THRESHOLDS: i32 = 12;
/// The threshold, for that, where none is set.
const LEAST_THRESHOLD: SignedDuration = SignedDuration::from_mins(1);
/// For how many seconds most pods tolerate a node that is not Ready: no notice is given before.
const TOLERATION: i64 = 300;
/// By how much an eviction may be late: the node controller looks every 5 s, and taints a node of a zone every 10 s.
const LATE: SignedDuration = SignedDuration::from_secs(50);
/// How many names a sentence lists.
const NAMES: usize = 10;

/// The notices of a run.
pub fn of_run(settings: &Settings, facts: &ClusterFacts, plan: &Plan) -> Vec<Notice> {
    let (mut notices, stay) = unasked(&settings.policy, facts);
    notices.extend(without_api_server(facts));
    notices.extend(long_waits(&settings.policy, facts, plan));
    notices.extend(inert_answers(settings, facts, plan));
    if let (Some(count), true) = (facts.unmatched_namespaces, plan.pods.is_empty()) {
        let detail = format!(
            "Nothing was looked at: no namespace is selected (the cluster has {count}; the filter is: {}).",
            settings.namespaces
        );
        notices.push(Notice {
            code: NoticeCode::NoNamespace,
            node: None,
            count: 1,
            detail,
        });
    }
    let owners = plan
        .pods
        .iter()
        .flat_map(|judged| judged.pod.owner.iter().chain(&judged.pod.workload));
    let known = BUILT_IN
        .into_iter()
        .chain(owners.map(|owner| owner.kind.as_str()))
        .collect::<BTreeSet<_>>();
    let kinds = settings.policy.manual_owner_kinds.iter();
    for kind in kinds.filter(|kind| !known.iter().any(|known| same_kind(known, kind))) {
        let detail = format!(
            "--manual-owner-kind names {kind}, which is not a built-in kind of Kubernetes, and no judged pod has an \
             owner of it: if it is misspelt, it protects nothing."
        );
        notices.push(Notice {
            code: NoticeCode::UnknownKind,
            node: None,
            count: 1,
            detail,
        });
    }
    if let Task::Audit { now: None, .. } = settings.task {
        let detail = format!(
            "Judged at {}, the newest time in the file; what happened later is not known. --now sets another time.",
            facts.now.strftime("%F %TZ")
        );
        notices.push(Notice {
            code: NoticeCode::TimeOfTheFile,
            node: None,
            count: 1,
            detail,
        });
    }
    notices.extend(stay);
    if facts.on_ready_nodes > 0 {
        let detail = format!(
            "{} more on Ready nodes; --all lists them",
            facts.on_ready_nodes
        );
        let (code, count) = (NoticeCode::OnReadyNodes, facts.on_ready_nodes);
        notices.push(Notice {
            code,
            node: None,
            count,
            detail,
        });
    }
    notices
}

/// The pods of dead nodes that Kubernetes has not asked to go: first those that should not be there, then those that belong
/// there. A leaf node's pods run on.
fn unasked(policy: &Policy, facts: &ClusterFacts) -> (Vec<Notice>, Option<Notice>) {
    let (mut never, mut stay, mut staying) = (Vec::new(), Vec::new(), 0);
    let known = |name| facts.nodes.get(name).and_then(NodeRead::known);
    let nodes = facts
        .unasked
        .iter()
        .filter_map(|(name, pods)| Some((known(name)?, pods)));
    for (node, pods) in nodes.filter(|(node, _)| node.ready != Ready::True && node.leaf.is_none()) {
        let since = node.not_ready_since(facts.now);
        let after = |seconds: i64| SignedDuration::from_secs(seconds.max(0)).saturating_add(LATE);
        let due =
            |seconds| since.is_none_or(|since| facts.now.duration_since(since) >= after(seconds));
        if !due(TOLERATION) {
            continue;
        }
        let (mut daemons, mut statics, mut for_ever, mut overdue) = (0, 0, Vec::new(), Vec::new());
        for pod in pods {
            let tolerates = if node.ready == Ready::False {
                pod.tolerates_not_ready
            } else {
                pod.tolerates_silence
            };
            match (pod.stays, tolerates) {
                (Some(Stay::DaemonSet), _) => daemons += 1,
                (Some(Stay::Static), _) => statics += 1,
                (_, None) => for_ever.push(pod),
                (_, Some(seconds)) if due(seconds) => overdue.push(pod),
                (_, Some(_)) => {}
            }
        }
        let failure = Failure::of(facts, policy, node);
        let heard = failure.last_heard();
        let down = if failure.signs_of_life().is_empty() {
            format!("Each is down, unless the node is only cut off. {heard}")
        } else {
            format!("Each may still be running, since the node shows signs of life. {heard}")
        };
        let why = format!(
            "Each tolerates such a node without a time limit, so Kubernetes never evicts it. {down} To have it \
             moved, delete it without --force: the next runs judge it like any other."
        );
        never.extend(never_evicted(node, for_ever, &why));
        let why = format!(
            "Each one's toleration time is over, but Kubernetes has not evicted it: Kubernetes holds back while many \
             nodes are not Ready at once, or its controller manager does not work. {down}"
        );
        never.extend(never_evicted(node, overdue, &why));
        if daemons + statics > 0 {
            staying += daemons + statics;
            let counts = [(daemons, "of DaemonSets"), (statics, "static")].into_iter();
            let counts = counts
                .filter(|(count, _)| *count > 0)
                .map(|(count, of)| format!("{count} {of}"));
            stay.push(format!(
                "{} ({})",
                node.name,
                counts.collect::<Vec<_>>().join(", ")
            ));
        }
    }
    let detail = format!(
        "Pods that belong to their NotReady node stay there, as expected: {}.",
        listed(stay)
    );
    let code = NoticeCode::StaysWithNode;
    (
        never,
        (staying > 0).then_some(Notice {
            code,
            node: None,
            count: staying,
            detail,
        }),
    )
}

/// The answers that count for nothing, each once, with the command that takes it away.
fn inert_answers(settings: &Settings, facts: &ClusterFacts, plan: &Plan) -> Vec<Notice> {
    let kubectl = settings.task.kubectl();
    let all = plan.pods.iter().flat_map(|judged| {
        let answers = answers_of(judged, facts, &settings.policy).into_iter();
        answers.map(|answer| (judged.pod.namespace.as_str(), answer))
    });
    let of_node = |(namespace, answer): (_, Answer)| match answer.on {
        "node" => ("", answer),
        _ => (namespace, answer),
    };
    let inert = all
        .map(of_node)
        .filter(|(_, answer)| answer.inert.is_some());
    let notices = inert
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|(namespace, answer)| {
            let command = kubectl.withdraw(&answer, namespace);
            let Answer {
                annotation,
                on,
                name,
                value,
                inert,
            } = answer;
            let detail = format!(
                "The answer {annotation}={value} on {on} {name} counts for nothing: {}. Take it away: {command}",
                inert.unwrap_or_default()
            );
            Notice {
                code: NoticeCode::AnswerInert,
                node: None,
                count: 1,
                detail,
            }
        });
    notices.collect()
}

/// The control plane nodes of which nobody knows whether their API server lives.
fn without_api_server(facts: &ClusterFacts) -> Option<Notice> {
    let nodes = facts
        .nodes
        .values()
        .filter_map(NodeRead::known)
        .filter(|node| node.no_api_server);
    let nodes = nodes.map(|node| node.name.clone()).collect::<Vec<_>>();
    let (code, count) = (NoticeCode::ApiServerUnknown, nodes.len());
    let detail = format!(
        "Whether the API server of a control plane node that is not Ready still works is unknown: {}. No API server's lease \
         in kube-system has the node's host name. Kubernetes writes such leases since 1.26, and the account needs the \
         right to list them.",
        listed(nodes)
    );
    (count > 0).then_some(Notice {
        code,
        node: None,
        count: 1,
        detail,
    })
}

fn never_evicted(node: &NodeFacts, mut pods: Vec<&Unasked>, why: &str) -> Option<Notice> {
    pods.sort_unstable();
    let count = pods.len();
    let names = pods.into_iter().map(|pod| {
        let of = pod
            .workload
            .as_ref()
            .map(|of| format!(" of {} {}", of.kind, of.name))
            .unwrap_or_default();
        format!("{}/{}{of}", pod.namespace, pod.name)
    });
    let names = listed(names.collect());
    let detail = format!(
        "Not evicted from NotReady node {}: {names}. {why}",
        node.name
    );
    let (code, node) = (NoticeCode::NeverEvicted, Some(node.name.clone()));
    (count > 0).then_some(Notice {
        code,
        node,
        count,
        detail,
    })
}

/// The waits that have lasted for many thresholds. What holds a whole run is no single node's.
fn long_waits(policy: &Policy, facts: &ClusterFacts, plan: &Plan) -> Vec<Notice> {
    let threshold = policy.reap_older_than.max(policy.node_not_ready_for);
    let threshold = if threshold.is_zero() {
        LEAST_THRESHOLD
    } else {
        threshold
    };
    let long = threshold.saturating_mul(THRESHOLDS);
    let mut groups = BTreeMap::<(ReasonCode, Option<&str>), Vec<&Judged>>::new();
    for judged in plan
        .pods
        .iter()
        .filter(|judged| judged.verdict() == Verdict::Wait)
    {
        if judged.pod.overdue(facts.now) > long {
            let node = judged
                .pod
                .node
                .as_deref()
                .filter(|_| judged.limit.is_none());
            groups
                .entry((judged.code(), node))
                .or_default()
                .push(judged);
        }
    }
    let notices = groups.into_iter().filter_map(|((_, node), pods)| {
        // The longest overdue.
        let first = pods.first()?;
        let names = pods
            .iter()
            .map(|judged| format!("{}/{}", judged.pod.namespace, judged.pod.name));
        let detail = format!(
            "Still waiting{}, overdue for up to {}: {}. {}",
            node.map(|node| format!(" on node {node}"))
                .unwrap_or_default(),
            spoken(first.pod.overdue(facts.now)),
            listed(names.collect()),
            why(first, facts)
        );
        let node = node.map(str::to_owned);
        Some(Notice {
            code: NoticeCode::LongWait,
            node,
            count: pods.len(),
            detail,
        })
    });
    notices.collect()
}

/// Why a pod waits for so long, as far as its reason tells.
fn why(judged: &Judged, facts: &ClusterFacts) -> String {
    let node = facts.node_of(&judged.pod).and_then(NodeRead::known);
    let absent = || node.is_some_and(|node| node.ready == Ready::Absent);
    let since = node.and_then(|node| node.not_ready_since(facts.now));
    match (&judged.limit, judged.code()) {
        (Some(Limit { what, .. }), ReasonCode::MassOutage) => format!(
            "The breaker holds every run until enough nodes are Ready: {what}. Find out what these have in common."
        ),
        (Some(Limit { what: cap, .. }), ReasonCode::OverCap) => {
            format!("--max-deletes={cap} is fewer than get stuck between two runs: raise it, or run more often.")
        }
        (_, ReasonCode::NodeJustFailed) if since.is_some() => format!(
            "The node changes between Ready and NotReady, or they were stuck before it failed. {}",
            judged.sentence()
        ),
        (_, ReasonCode::NodeJustFailed) if absent() => {
            "The node has no Ready condition, so it does not say since when it is not Ready; no run takes them until it does."
                .to_owned()
        }
        (_, ReasonCode::NodeJustFailed) => {
            "The node's Ready condition says no time, or one in the future; no run takes them until it does.".to_owned()
        }
        (_, ReasonCode::NodeRecovering) => {
            "The node's kubelet renews its lease, but the node's Ready stays Unknown: look at that kubelet.".to_owned()
        }
        _ => judged.sentence(),
    }
}

/// Some of `names`, and how many more there are.
fn listed(mut names: Vec<String>) -> String {
    let more = and_more(names.len(), NAMES);
    names.truncate(NAMES);
    names.extend(more);
    names.join(", ")
}

#[cfg(test)]
mod tests;
