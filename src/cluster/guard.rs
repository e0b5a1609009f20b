//! Proves that the guard works: admission must refuse this account the delete of a running pod.
//!
//! The running pod is the pod that this program runs in. It is the only pod that a delete ever
//! names although it is not Terminating. So the request is a dry run, is marked as one
//! twice, and names the UID and resource version that were just read.

use std::{env, time::Duration};

use tokio::time::Instant;

use super::{
    Cluster, Failure, StatusKind,
    failure::unreadable,
    request::{Ask, object},
    write::delete,
};
use crate::{kubernetes::RawPod, selector::is_name, words::prefixed};

/// The message of the first rule in `cronjob/components/guard/guard.yaml`. This message
/// distinguishes the guard from everything else that may refuse a delete.
pub const REFUSAL: &str = "pod-reaper's guard lets it touch only pods that are Terminating already";
/// How long to repeat the request while nothing refuses it. The API server takes about 1 s to put a
/// policy in force.
const PROOF_TIME_LIMIT: Duration = Duration::from_secs(10);
/// The pause between two tries.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// A part of the message that an API server sends before it has loaded its policies.
const POLICIES_NOT_LOADED: &str = "not yet ready to handle request";
/// The error if the variables name no pod, or a pod that does not exist.
const NO_POD: &str = "POD_NAMESPACE and POD_NAME do not name the pod that pod-reaper runs in, the only pod on which it checks the guard. cronjob/base sets both. Outside a cluster, omit --require-guard";

/// The error if nothing refuses the delete.
const LETS: &str = "the API server would let this account delete a running pod: the guard is not installed, does not deny, or does \
                    not apply to this account, which needs the permission be-guarded on guarded.pod-reaper.io, and none by \
                    wildcards; apply cronjob/components/guard again";

/// Why there is no proof.
#[derive(Debug, PartialEq, Eq)]
pub enum NoProof {
    /// The cause will not pass, so the run ends.
    Never(String),
    /// The cause may pass, so another request may bring the proof: the guard may not be in force yet.
    NotYet(String),
}

impl Cluster {
    /// Requests a delete of the program's own pod until the guard has refused it. Returns an error
    /// if the guard does not refuse within 10 s, or if there is no proof for a cause that will not
    /// pass. The run must not write anything then.
    pub async fn prove(&self) -> Result<(), String> {
        // The downward API sets these variables.
        let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let own = set("POD_NAMESPACE").zip(set("POD_NAME"));
        let (namespace, name) = own.ok_or(NO_POD)?;
        let path = object::<RawPod>(&namespace, &name);
        let until = Instant::now() + self.stop.at_most(PROOF_TIME_LIMIT);
        loop {
            let again = Instant::now() + RETRY_PAUSE <= until;
            match self.ask(&path).await {
                Ok(()) => {
                    tracing::info!(
                        "The guard is proved: it refuses this account the delete of a running pod"
                    );
                    return Ok(());
                }
                Err(NoProof::NotYet(_)) if again => tokio::time::sleep(RETRY_PAUSE).await,
                Err(NoProof::NotYet(why) | NoProof::Never(why)) => return Err(why),
            }
        }
    }

    /// Requests the delete once. The pod is read each time, because its kubelet writes to the pod
    /// while the pod starts.
    async fn ask(&self, path: &str) -> Result<(), NoProof> {
        let unread = |failure: Failure| {
            let hint = failure.is(StatusKind::NotFound).then_some(NO_POD);
            let hint = prefixed("; ", hint);
            NoProof::Never(format!("its own pod could not be read: {failure}{hint}"))
        };
        let response = self.fetch(path, Ask::METADATA).await.map_err(unread)?;
        let own = response.object::<RawPod>().map_err(unread)?.metadata;
        if own.uid.is_empty() || own.resource_version.is_empty() {
            return Err(unread(unreadable("it has no UID or no resource version")));
        }
        if own.terminating() {
            let why = "the run's own pod is Terminating, so the guard allows its delete, which proves nothing; the next run has another pod";
            return Err(NoProof::Never(why.to_owned()));
        }
        let delete = delete(path.to_owned(), &own.uid, &own.resource_version, true);
        match self.send(delete, None).await {
            Ok(_) => Err(NoProof::NotYet(LETS.to_owned())),
            Err(failure) => judge(&failure, &own.name),
        }
    }
}

/// Reports whether the API server says that the guard refused the delete of the pod `own`: it begins the message with the
/// pod, the policy and the binding (`validating/plugin.go`). The message of a webhook begins with the webhook, and may
/// say anything after that.
fn is_refusal(message: &str, own: &str) -> bool {
    let by = format!("pods \"{own}\" is forbidden: ValidatingAdmissionPolicy '");
    let names = message.strip_prefix(&by);
    let names = names.and_then(|it| it.strip_suffix(&format!("' denied request: {REFUSAL}")));
    let names = names.and_then(|it| it.split_once("' with binding '"));
    names.is_some_and(|(policy, binding)| is_name(policy) && is_name(binding))
}

/// Decides what a failed delete of the pod `own` proves: the guard is in force, or nothing.
pub fn judge(failure: &Failure, own: &str) -> Result<(), NoProof> {
    let message = match failure {
        Failure::Status { message, .. } => message,
        _ => "",
    };
    if is_refusal(message, own) {
        return Ok(());
    }
    let why = format!(
        "the guard did not refuse the dry-run delete; if another policy or webhook did, exempt the namespace of this pod \
         from it: {failure}"
    );
    if message.contains(POLICIES_NOT_LOADED)
        || failure.code() == Some(409)
        || failure.pause(1).is_some()
    {
        Err(NoProof::NotYet(why))
    } else {
        Err(NoProof::Never(why))
    }
}
