//! The installation that this run is of: the commands that a report prints name it.

use super::{
    Cluster,
    guard::own_pod,
    path::{encode, object},
    request::Ask,
};
use crate::{
    advice::Installed,
    kubernetes::{RawPod, RawStatefulSet},
};

impl Cluster {
    /// Names the `CronJob` that this run is of, by the run's own pod and its Job. Returns `None` if
    /// this is no such run, or if that could not be read.
    pub async fn installed(&self) -> Option<Installed> {
        let (namespace, pod) = own_pod()?;
        let path = object::<RawPod>(&namespace, &pod);
        let (pod, _) = self
            .find_at::<RawPod>(&path, &pod, Ask::METADATA)
            .await
            .ok()??;
        let job = pod.metadata.owned_by("Job")?;
        let path = format!(
            "/apis/batch/v1/namespaces/{}/jobs/{}",
            encode(&namespace),
            encode(job)
        );
        let found = self
            .find_at::<RawStatefulSet>(&path, job, Ask::METADATA)
            .await;
        let cronjob = match found {
            Ok(job) => job?.0.metadata.owned_by("CronJob")?.to_owned(),
            // A role that only reads may lack the right. Its schedule names the Job.
            Err(_) => {
                pod.summary()
                    .workload
                    .filter(|above| above.kind == "CronJob")?
                    .name
            }
        };
        Some(Installed { namespace, cronjob })
    }
}
