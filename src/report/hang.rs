//! Why a Terminating pod is still there although its node is Ready, or is gone. Only `explain` and runs with `--all` look at
//! pods on Ready nodes.
//!
//! One table: from what was seen to what it means, what to look at, and what never to do. Rows about a NotReady node are
//! the reasons of the rules.

use derive_more::Display;
use jiff::{SignedDuration, Timestamp};

use super::{
    advice::{Pods, clock},
    kubectl::quoted,
    survey::PodView,
};
use crate::{
    codes::codes,
    facts::{Distribution, FOREGROUND, HANGS, JOB_TRACKING, NodeFacts, PodFacts, Ready},
    selector::Target,
    words::{Foreign, prefixed},
};

/// How long a kubelet may take to end a pod once its grace period is over.
const KILL_TIME: SignedDuration = SignedDuration::from_mins(2);

codes! {
    /// Why a Terminating pod is still there although its node is Ready, or is gone.
    pub enum HangCode {
        /// A container runs.
        Runs = "container-runs" => "A container still runs, and its time to end is over: its kubelet cannot end it.",
        /// All containers ended.
        Ended = "containers-ended" => "All its containers have ended, and the pod is still there: its kubelet does not finish (unmount, sandbox).",
        /// No container ever started.
        NotStarted = "not-started" => "No container of it ever started, and its kubelet still works on it (volume, sandbox, image).",
        /// Its node became Ready after the request.
        Returned = "node-returned" => "Its node became Ready again after the deletion was requested: its kubelet can have lost the pod.",
        /// A finalizer.
        Finalizer = "finalizer",
        /// The garbage collector.
        NodeGone = "garbage-collector" => "Its node no longer exists, and the pod garbage collector has not removed the pod.",
        /// The program behind a leaf node.
        Agent = "leaf-agent" => "Its node is no machine of this cluster: the program behind the node ends the pod.",
        /// A static pod.
        Static = "static-pod" => "It mirrors a static pod, which ends only if its file on the node goes.",
        /// Not yet.
        Ending = "ending",
    }
}

/// Returns the service in which the kubelet of a node runs.
pub fn kubelet_service(node: &NodeFacts) -> &'static str {
    let is_server = node.roles.control_plane || node.roles.etcd;
    match (node.distribution, is_server) {
        (None, _) => "kubelet",
        (Some(Distribution::K3s), true) => "k3s",
        (Some(Distribution::K3s), false) => "k3s-agent",
        (Some(Distribution::Rke2), true) => "rke2-server",
        (Some(Distribution::Rke2), false) => "rke2-agent",
    }
}

/// Returns the command that finds in the log of the node's kubelet why the pod does not end. On RKE2 it is a file
/// (docs.rke2.io/reference/logging).
fn see_log(node: &NodeFacts, pod: &PodFacts) -> String {
    let what = format!("-e {} -e UnmountVolume -e StopPodSandbox", quoted(&pod.uid));
    match node.distribution {
        Some(Distribution::Rke2) => {
            format!("grep {what} /var/lib/rancher/rke2/agent/logs/kubelet.log")
        }
        Some(Distribution::K3s) | None => {
            format!("journalctl -u {} | grep {what}", kubelet_service(node))
        }
    }
}

/// Why one pod hangs. Its `Display` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display)]
pub enum Hang<'a> {
    /// Until then, its kubelet may still end it.
    #[display("It ends by itself until {}: that is its grace period, which a preStop hook can double, and the time to kill it.", clock(*_0))]
    Ending(Timestamp),
    /// What holds it, and who set it.
    #[display("{}", held_by(finalizer, &prefixed(", set by ", by.map(|by| format!("{by},")))))]
    Finalizer {
        finalizer: &'a Foreign,
        by: Option<&'a Foreign>,
    },
    #[display("{}", _0.means())]
    Other(HangCode),
}

fn held_by(finalizer: &str, by: &str) -> String {
    match finalizer {
        JOB_TRACKING => format!("Finalizer {JOB_TRACKING} holds it: the Job controller has not counted the pod. A webhook can refuse its update, or the Job is gone."),
        FOREGROUND => "Finalizer foregroundDeletion holds it: the garbage collector waits until what the pod owns is gone.".to_owned(),
        other => format!("Finalizer {}{by} holds it: its controller has work to do first.", Foreign::<60>::from(other)),
    }
}

impl<'a> Hang<'a> {
    /// Returns why the pod is still there; `None` if its node is NotReady, or if it is the turn of the garbage collector.
    pub fn of(node: Option<&NodeFacts>, pod: &'a PodFacts, now: Timestamp) -> Option<Self> {
        let deletion = pod.deletion?;
        if node.is_some_and(|node| node.ready != Ready::True) {
            return None;
        }
        let finalizer = pod.finalizers.first().map(|finalizer| Self::Finalizer {
            finalizer,
            by: pod.finalizers_set_by.get(finalizer),
        });
        // Anyone may write the annotation; the kubelet ends a pod that has it and no file.
        if pod.mirror && finalizer.is_none() {
            return Some(Self::Other(HangCode::Static));
        }
        let Some(node) = node else {
            let is_late = now.duration_since(deletion.deadline) >= HANGS;
            let is_held = is_late || pod.holding_finalizers(false).next().is_some();
            let collector = is_late.then_some(Self::Other(HangCode::NodeGone));
            return finalizer.filter(|_| is_held).or(collector);
        };
        let counts = pod.containers;
        // A kubelet that has ended a pod deletes it with a grace period of 0.
        let is_confirmed = deletion.grace_seconds == Some(0) && counts.running == 0;
        if finalizer.is_some() && is_confirmed {
            return finalizer;
        }
        if node.leaf.is_some() {
            return Some(Self::Other(HangCode::Agent));
        }
        let requested = deletion.requested().unwrap_or(deletion.deadline);
        let back = node
            .ready_since
            .filter(|back| (requested..=now).contains(back));
        // A preStop hook that does not end has its own grace period before that of the container (kubernetes#115817).
        let hook = SignedDuration::from_secs(match counts.running {
            0 => 0,
            _ => deletion.grace_seconds.unwrap_or_default(),
        });
        let until = deletion
            .deadline
            .max(back.unwrap_or(requested))
            .saturating_add(KILL_TIME.saturating_add(hook))
            .unwrap_or(now);
        Some(Self::Other(match back {
            _ if now < until => return Some(Self::Ending(until)),
            Some(back) if counts.ended_at.is_none_or(|at| at < back) => HangCode::Returned,
            _ if counts.running > 0 => HangCode::Runs,
            _ if counts.terminated > 0 => HangCode::Ended,
            _ => HangCode::NotStarted,
        }))
    }

    pub fn code(self) -> HangCode {
        match self {
            Self::Ending(_) => HangCode::Ending,
            Self::Finalizer { .. } => HangCode::Finalizer,
            Self::Other(code) => code,
        }
    }

    /// Reports whether its kubelet has to end it, and does not.
    pub fn is_of_kubelet(self) -> bool {
        use HangCode::{Ended, NotStarted, Returned, Runs};
        [Runs, Ended, NotStarted, Returned].contains(&self.code())
    }

    /// Says what to look at.
    pub fn look(self, pods: &Pods<'_>) -> String {
        let look = match self {
            Self::Ending(_) => "wait, and see in its log what it still does.",
            Self::Finalizer { finalizer, .. } => match &**finalizer {
                JOB_TRACKING => {
                    "see whether its Job exists, and whether a webhook refuses updates of pods."
                }
                FOREGROUND => "see what it still owns.",
                _ => "see who set the finalizer, and whether that controller runs.",
            },
            Self::Other(code) => match code {
                HangCode::NodeGone => {
                    "see whether kube-controller-manager works: it renews this Lease every few seconds."
                }
                HangCode::Agent => "see whether the program behind the node works.",
                HangCode::Static => {
                    "only if it is to end, move its file away on its node. This names the file."
                }
                _ => {
                    let does = pods.verb("does", "do");
                    return format!(
                        "Log in to {}, and see why {pods} {does} not end.",
                        pods.spots()
                    );
                }
            },
        };
        format!("{pods}: {look}")
    }

    /// Returns what shows it, for one pod.
    pub fn command(self, target: &Target, pod: &PodView<'_>) -> Option<String> {
        let facts = pod.facts;
        let (namespace, name) = (facts.namespace.as_str(), facts.name.as_str());
        Some(match self {
            Self::Ending(_) => target.command(&[
                "logs",
                "-n",
                namespace,
                name,
                "--all-containers",
                "--tail=20",
            ]),
            Self::Finalizer { finalizer, .. } => match (&**finalizer, &facts.owner) {
                (JOB_TRACKING, Some(job)) => {
                    target.command(&["describe", "job", "-n", namespace, &job.name])
                }
                (FOREGROUND, _) => {
                    let columns = "custom-columns=KIND:.kind,NAME:.metadata.name,OWNERS:.metadata.ownerReferences[*].uid";
                    let get = target.command(&[
                        "get",
                        "pods,pvc,configmaps,services",
                        "-n",
                        namespace,
                        "-o",
                        columns,
                    ]);
                    format!("{get} | grep -e {}", quoted(&facts.uid))
                }
                _ => target.command(&[
                    "get",
                    "pod",
                    "-n",
                    namespace,
                    name,
                    "-o",
                    "yaml",
                    "--show-managed-fields",
                ]),
            },
            Self::Other(code) => match code {
                HangCode::NodeGone => target.command(&[
                    "get",
                    "lease",
                    "-n",
                    "kube-system",
                    "kube-controller-manager",
                ]),
                HangCode::Agent => target.command(&["describe", "node", facts.node.as_deref()?]),
                HangCode::Static => {
                    let file = name
                        .strip_suffix(&format!("-{}", facts.node.as_deref()?))
                        .unwrap_or(name);
                    format!("grep -rlF -- {} /etc/kubernetes/manifests", quoted(file))
                }
                _ => see_log(pod.node?, facts),
            },
        })
    }
}
