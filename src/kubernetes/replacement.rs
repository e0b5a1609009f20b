//! How far the replacement of a pod has come, and why its controller has not made one.

use serde_json::Value;

use super::RawPod;
use super::meta::{Condition, Meta, joined};
use super::pod::Status;
use crate::outcome::{Replacement, ReplacementState as State};

/// What is said of a pod that its controller has not made.
pub const NOT_MADE: &str = "it is not made yet";
/// What a container says while nothing is wrong with it.
const NOTHING_WRONG: [&str; 3] = ["ContainerCreating", "PodInitializing", "Completed"];

impl RawPod {
    /// Whether it runs or may yet run, or has done what a Job wanted: its controller makes no other in its place. A node
    /// that is shut down in order leaves pods behind that have succeeded.
    pub fn counts(&self) -> bool {
        let controller = self
            .metadata
            .controller()
            .and_then(|owner| owner.kind.as_deref());
        let lasting = matches!(
            controller,
            Some("StatefulSet" | "ReplicaSet" | "ReplicationController")
        );
        let over = |phase: &str| phase == "Failed" || lasting && phase == "Succeeded";
        !self.metadata.terminating() && !self.status.phase.as_deref().is_some_and(over)
    }

    /// How far it has come.
    pub fn into_replacement(self) -> Replacement {
        let node = self.node().map(str::to_owned);
        let says = |kind: &str| self.status.condition(kind).map(Condition::says);
        let ready = self.status.condition("Ready").filter(|ready| ready.holds());
        let (state, what, why) = match self.status.phase.as_deref() {
            Some("Succeeded") => (State::Back, "it has finished", None),
            _ if node.is_none() => (State::Pending, "it has no node", says("PodScheduled")),
            Some("Running") if ready.is_some() => (State::Back, "", self.restarts()),
            Some("Running") => (
                State::NotReady,
                "it runs and is not Ready",
                self.trouble().or(says("Ready")),
            ),
            _ => (
                State::Starting,
                "its containers do not run yet",
                self.trouble(),
            ),
        };
        let cause = Some(joined([Some(what), why.as_deref()])).filter(|cause| !cause.is_empty());
        let since = ready.and_then(|ready| ready.last_transition_time);
        let Meta { name, uid, .. } = self.metadata;
        Replacement {
            state,
            name,
            uid,
            node,
            since,
            cause,
        }
    }

    /// Worth knowing of a pod that is Ready: one that crashes again and again is so in between, where it has no probe.
    fn restarts(&self) -> Option<String> {
        let containers = self.status.container_statuses.iter().flatten();
        let restarts = containers
            .map(|container| container.restart_count)
            .sum::<u64>();
        (restarts > 0).then(|| format!("its containers were restarted, {restarts} times so far"))
    }

    /// What keeps a container from running, where one says so: the image above all.
    fn trouble(&self) -> Option<String> {
        let containers = self
            .status
            .init_container_statuses
            .iter()
            .chain(&self.status.container_statuses);
        let mut states = containers
            .flatten()
            .flat_map(|container| container.state.values());
        let wrong = |reason: &String| !NOTHING_WRONG.contains(&reason.as_str());
        states
            .find(|state| state.reason.as_ref().is_some_and(wrong))
            .map(Condition::says)
    }
}

raw! {
    /// What controls pods, as far as it tells why one is missing.
    pub struct RawController {
        /// Its metadata.
        pub metadata: Meta,
        spec: Value,
        status: Status,
    }
}

impl RawController {
    /// Why it, which has at least `has` pods, or all below the ordinal `has`, has not made another.
    pub fn missing(&self, has: usize) -> Replacement {
        let holds = |kind| {
            self.status
                .condition(kind)
                .filter(|it| it.holds())
                .map(Condition::says)
        };
        // Only a Job has these two, and `Suspended`; only a ReplicaSet has `ReplicaFailure`.
        let ended = holds("Failed").or_else(|| holds("Complete"));
        let waits = holds("ReplicaFailure").or_else(|| holds("Suspended"));
        let start = self.spec["ordinals"]["start"].as_u64().unwrap_or(0);
        let (state, cause) = match (self.spec["replicas"].as_u64(), ended) {
            (Some(wanted), ..) if has as u64 >= wanted.saturating_add(start) => (
                State::None,
                format!("its controller wants {wanted} pods by now"),
            ),
            (_, Some(says)) => (
                State::None,
                joined([Some("its Job has ended"), Some(&says)]),
            ),
            _ => (State::Pending, joined([Some(NOT_MADE), waits.as_deref()])),
        };
        Replacement::without_pod(state, cause)
    }
}
