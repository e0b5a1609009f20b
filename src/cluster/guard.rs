//! The guard, made to prove itself: that admission refuses this account the delete of a running pod.
//!
//! The running pod is the one that this runs in. It is the only pod that is not Terminating and that is ever named in a
//! delete, so the request is a server dry run, twice marked, for exactly the pod that was read.

use std::{env, time::Duration};

use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::read::encode;
use super::request::Accept;
use super::write::{DRY_RUN, delete_options};
use super::{Cluster, Failure, StatusKind};
use crate::kubernetes::RawObject;

/// The message of the first rule in `cronjob/components/guard/guard.yaml`, by which the guard is recognised among all that
/// may refuse.
pub const REFUSAL: &str = "pod-reaper's guard lets it touch only pods that are Terminating already";
/// The message of the rule in `cronjob/components/node-guard/node-guard.yaml`.
pub const NODE_REFUSAL: &str =
    "pod-reaper's node guard lets it touch only pods whose node is not Ready";
/// How long to go on asking while nothing refuses: the API server takes about a second to put a policy in force.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(500);
/// What an API server says before it knows its policies.
const NOT_READY: &str = "not yet ready to handle request";
const NO_POD: &str = "the variables POD_NAMESPACE and POD_NAME do not name the pod that this runs in, and the guard is \
    proved on no other; cronjob/base sets them. Outside a cluster leave --require-guard out";

/// Why there is no proof.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoProof {
    /// Asking again would not bring it.
    Never(String),
    /// Asking again may bring it.
    NotYet(String),
    /// The delete was let through. The guard may not be in force yet.
    LetThrough,
}

impl Cluster {
    /// Returns once the guard with the message `refusal` has refused this account the delete of its own pod. An error says
    /// what was found instead.
    pub async fn prove(&self, refusal: &str) -> Result<(), String> {
        let named = |variable| {
            env::var(variable)
                .ok()
                .filter(|name| !name.is_empty())
                .ok_or(NO_POD)
        };
        let (namespace, name) = (named("POD_NAMESPACE")?, named("POD_NAME")?);
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}",
            encode(&namespace),
            encode(&name)
        );
        let until = Instant::now() + self.stop.at_most(PATIENCE);
        loop {
            let last = Instant::now() + PAUSE > until;
            match self.ask(refusal, &path).await {
                Ok(()) => return Ok(()),
                Err(NoProof::Never(why)) => return Err(why),
                Err(NoProof::NotYet(why)) if last => return Err(why),
                Err(NoProof::LetThrough) if last && refusal == NODE_REFUSAL => {
                    return Err(
                        "the API server would let this account delete a pod whose node is Ready; apply \
                         cronjob/components/node-guard. If it is applied, the node of this run is not Ready, and the \
                         next run is on another"
                            .to_owned(),
                    );
                }
                Err(NoProof::LetThrough) if last => {
                    let why = self.what_is_missing().await;
                    return Err(format!(
                        "the API server would let this account delete a running pod: {why}"
                    ));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Asks once. The pod is read each time: its kubelet writes to it while it starts.
    async fn ask(&self, refusal: &str, path: &str) -> Result<(), NoProof> {
        let unread = |failure: Failure| {
            let hint = if failure.is(StatusKind::NotFound) {
                NO_POD
            } else {
                "it needs the right to get pods"
            };
            NoProof::Never(format!("its own pod could not be read: {failure}; {hint}"))
        };
        let read = self.get(path, Accept::Metadata).await.map_err(unread)?;
        let own = read.parse::<RawObject>().map_err(unread)?.metadata;
        let (Some(uid), Some(version)) = (&own.uid, &own.resource_version) else {
            return Err(unread(Failure::Unreadable(
                "it has no UID or no resource version".to_owned(),
            )));
        };
        if own.terminating() {
            let why = "its own pod is Terminating, so the guard lets it be deleted and proves nothing; the next run is another pod";
            return Err(NoProof::Never(why.to_owned()));
        }
        // Where two policies refuse, the API server names either. The guard lets a dry run with `Orphan` pass, so that only
        // the node guard can refuse it.
        let propagation = if refusal == NODE_REFUSAL {
            "Orphan"
        } else {
            "Background"
        };
        let payload = delete_options(uid, version, true, propagation);
        let path = format!("{path}{DRY_RUN}");
        let answer = self
            .send(Method::DELETE, &path, Accept::Metadata, Some(payload), None)
            .await;
        answer.map_or_else(
            |failure| judge(refusal, &failure),
            |_| Err(NoProof::LetThrough),
        )
    }

    /// What is wrong with the guard, as far as this account may read it. Its policy is recognised by the message, because an
    /// installation may prefix the name.
    async fn what_is_missing(&self) -> String {
        let list = |kind| async move {
            let path = format!("/apis/admissionregistration.k8s.io/v1/validatingadmission{kind}");
            let list = self.get(&path, Accept::Object).await?.parse::<Value>()?;
            Ok::<_, Failure>(list["items"].as_array().cloned().unwrap_or_default())
        };
        let (policies, bindings) = match tokio::try_join!(list("policies"), list("policybindings"))
        {
            Ok(lists) => lists,
            Err(failure) if failure.is(StatusKind::NotFound) => {
                return "it serves no ValidatingAdmissionPolicy, which needs Kubernetes 1.30; cronjob/base needs none".to_owned();
            }
            Err(failure) => {
                return format!(
                    "policy or binding is missing, does not deny, or does not apply to this account; the cause could \
                     not be read: {failure}"
                );
            }
        };
        let ours = policies
            .iter()
            .filter(|policy| policy["spec"]["validations"][0]["message"] == REFUSAL);
        let ours = ours
            .map(|policy| &policy["metadata"]["name"])
            .collect::<Vec<_>>();
        let Some(policy) = ours.first() else {
            return "the guard's policy is not installed; apply cronjob/components/guard"
                .to_owned();
        };
        let bound = bindings
            .iter()
            .filter(|binding| ours.contains(&&binding["spec"]["policyName"]));
        let mut actions = bound
            .map(|binding| &binding["spec"]["validationActions"])
            .collect::<Vec<_>>();
        let denies = |actions: &&Value| {
            actions
                .as_array()
                .is_some_and(|actions| actions.contains(&json!("Deny")))
        };
        if actions.iter().any(denies) {
            return format!(
                "the guard's policy {policy} does not apply to this account, which needs the right be-guarded on \
                 guarded.pod-reaper.io from a ClusterRoleBinding, and none by wildcards; or a matchResources leaves this \
                 namespace out"
            );
        }
        actions.pop().map_or_else(
            || format!("no binding names the guard's policy {policy}; apply cronjob/components/guard"),
            |actions| format!("the binding of the guard's policy {policy} does not deny: its validationActions are {actions}"),
        )
    }
}

/// What a refusal proves.
pub(super) fn judge(refusal: &str, failure: &Failure) -> Result<(), NoProof> {
    let message = if let Failure::Status { message, .. } = failure {
        message.as_str()
    } else {
        ""
    };
    if message.ends_with(&format!("denied request: {refusal}")) {
        return Ok(());
    }
    let what = match failure.code() {
        _ if message.contains(NOT_READY) => "the API server does not know its policies yet",
        Some(409) => "its own pod keeps changing",
        Some(404) => "its own pod is gone",
        Some(400) => {
            "a webhook without dry-run support was asked first; give it sideEffects: None, or exempt the namespace of this pod"
        }
        Some(500) if failure.is(StatusKind::Webhook) => {
            "a webhook could not be called; repair it, or exempt the namespace of this pod"
        }
        Some(403) if message.contains(" cannot delete resource ") => {
            "RBAC refused it, so admission was not asked; grant the right to delete pods, or run with --dry-run=client"
        }
        Some(_) if message.contains(" resulted in error: ") => {
            "an expression of a policy failed; if it is the guard's, install the guard again"
        }
        Some(403 | 422) => {
            "another policy or webhook refused it first; exempt the namespace of this pod there"
        }
        _ => "it was not answered",
    };
    let why = format!("{what}: {failure}");
    let again =
        message.contains(NOT_READY) || failure.code() == Some(409) || failure.pause(1).is_some();
    Err(if again {
        NoProof::NotYet(why)
    } else {
        NoProof::Never(why)
    })
}
