//! The replacement of a pod: its progress or, if there is none, why its controller has not created
//! one. Events also tell a cause.

use jiff::Timestamp;

use super::{
    RawPod, RawStatefulSet,
    meta::{Condition, Meta, given, with_cause},
    pod::Status,
};
use crate::outcome::{Replacement, ReplacementState as State};

/// The cause given for a pod that its controller has not created yet.
pub const NOT_MADE: &str = "it is not made yet";
/// The reasons that a container gives while nothing is wrong with it.
const NOTHING_WRONG: [&str; 4] = ["", "ContainerCreating", "PodInitializing", "Completed"];
/// The kinds of controllers whose pods are meant to run forever.
const LASTING: [&str; 3] = ["StatefulSet", "ReplicaSet", "ReplicationController"];

impl RawPod {
    /// Reports whether the pod counts for its controller, which then creates no other pod in its
    /// place: the pod runs, may yet run, or has done a Job's work. For any other controller, a pod
    /// that has succeeded does not count: a node that shuts down gracefully leaves such pods
    /// behind.
    pub fn counts(&self) -> bool {
        let lasting = self
            .metadata
            .controller()
            .is_some_and(|owner| LASTING.contains(&owner.kind.as_str()));
        let phase = self.status.phase.as_str();
        let over = phase == "Failed" || lasting && phase == "Succeeded";
        !self.metadata.terminating() && !over
    }

    /// Describes the progress of the pod as a replacement.
    pub fn into_replacement(self) -> Replacement {
        let (node, status) = (self.node(), &self.status);
        let says = |kind| status.condition(kind).map(Condition::says);
        let ready = status.condition("Ready").filter(|ready| ready.holds());
        let (state, what, why) = match status.phase.as_str() {
            "Succeeded" => (State::Back, "it has finished", None),
            _ if node.is_none() => (State::Pending, "it has no node", says("PodScheduled")),
            "Running" if ready.is_some() => (State::Back, "", status.restarts()),
            "Running" => {
                let why = status.trouble().or(says("Ready"));
                (State::NotReady, "it runs and is not Ready", why)
            }
            _ => (
                State::Starting,
                "its containers do not run yet",
                status.trouble(),
            ),
        };
        Replacement {
            state,
            cause: given(with_cause(what, &why.unwrap_or_default())),
            since: ready.and_then(Condition::since),
            name: Some(self.metadata.name),
            uid: Some(self.metadata.uid),
            node,
        }
    }
}

impl Status {
    /// Says how often containers were restarted; `None` if they were not. Restarts matter even for
    /// a Ready pod: without a probe, a pod that crashes repeatedly is Ready in between.
    fn restarts(&self) -> Option<String> {
        let restarts = self
            .container_statuses
            .iter()
            .map(|it| it.restart_count)
            .sum::<u64>();
        (restarts > 0).then(|| format!("its containers were restarted, {restarts} times so far"))
    }

    /// Returns the cause that keeps a container from running, if a container reports one. Usually
    /// the cause is the image.
    fn trouble(&self) -> Option<String> {
        self.init_container_statuses
            .iter()
            .chain(&self.container_statuses)
            .flat_map(|container| container.state.values())
            .find(|state| !NOTHING_WRONG.contains(&state.reason.as_str()))
            .map(Condition::says)
    }
}

impl RawStatefulSet {
    /// Finds out why this controller of that kind, which has at least `has` pods, has not created
    /// another for `lost`. A `StatefulSet` numbers its pods, so it wants that very pod or none.
    pub fn missing(&self, kind: &str, lost: &str, has: usize) -> Replacement {
        let replicas = self.spec.replicas;
        let is_wanted = match kind {
            "StatefulSet" => self.numbers(lost),
            _ => replicas.is_none_or(|wanted| (has as u64) < wanted),
        };
        let holds = |kind| {
            self.status
                .condition(kind)
                .filter(|it| it.holds())
                .map(Condition::says)
        };
        // Only a Job has `Failed`, `Complete` and `Suspended`; only a ReplicaSet has
        // `ReplicaFailure`.
        let ended = holds("Failed").or_else(|| holds("Complete"));
        let waits = holds("ReplicaFailure").or_else(|| holds("Suspended"));
        let (state, cause) = match (replicas, ended) {
            (Some(wanted), _) if !is_wanted => (
                State::None,
                format!("its controller wants {wanted} pods by now"),
            ),
            (_, Some(says)) => (State::None, with_cause("its Job has ended", &says)),
            _ => (
                State::Pending,
                with_cause(NOT_MADE, &waits.unwrap_or_default()),
            ),
        };
        Replacement::without_pod(state, cause)
    }
}

raw! {
    /// An Event of `events.k8s.io/v1`.
    pub struct RawEvent {
        pub metadata: Meta,
        event_time: Option<Timestamp>,
        /// The time from the older kind of recorder, which most controllers and the kubelet use.
        deprecated_last_timestamp: Option<Timestamp>,
        reason: String,
        note: String,
    }
}

impl RawEvent {
    /// Returns time and text of the Event; `None` if it has no time.
    pub fn says(self) -> Option<(Timestamp, String)> {
        let at = self.event_time.max(self.deprecated_last_timestamp)?;
        Some((at, with_cause(&self.reason, &self.note)))
    }
}
