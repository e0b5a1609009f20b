//! Tests of the verification after the deletes.

use std::time::Duration;

use pod_reaper_test_support::simulated::{Fate, Fault, Kind, Objects, Server};
use serde_json::{Value, json};

use super::*;
use crate::{
    facts::JOB_TRACKING,
    report::samples::{audit, held_by, judged, lease, namespace, node, pod},
    selector::NodeSelectors,
};

fn finished(mut pod: Value) -> Value {
    pod["status"]["phase"] = json!("Failed");
    pod
}

#[tokio::test(start_paused = true)]
async fn a_pod_once_seen_to_be_gone_stays_gone_though_later_reads_fail() {
    let objects = [
        node("ds05", "True"),
        node("ds06", "False"),
        namespace("shop"),
        lease("ds06"),
        finished(pod("shop", "free-0", "ds06")),
        finished(held_by(pod("shop", "held-0", "ds06"), JOB_TRACKING)),
    ];
    let settings = audit();
    let (facts, plan) = judged(&settings, &objects);
    let mut looks = 0;
    let server = Server::with_faults(Objects::new(facts.now, objects), move |request| {
        looks += usize::from(request.kind == Kind::PodUids);
        // The first list holds the pod that its Job still holds. All further lists fail.
        let fails = request.kind == Kind::PodUids && looks > 1;
        Fate { fault: fails.then_some(Fault::Status(403, false, false)), ..Fate::default() }
    });
    let (_signal, stop) = Stop::manual(Duration::from_mins(8));
    let cluster = Cluster::new(server.client(), stop.clone(), NodeSelectors::default());
    let pods = plan.reaps().collect::<Vec<_>>();
    let outcomes = execute(&cluster, &stop, &settings.policy, WriteMode::Real, &facts, &pods, &|| {}).await;
    let codes =
        outcomes.iter().map(|(uid, outcome)| (uid.as_str(), outcome.code().as_str())).collect::<Vec<_>>();
    assert_eq!(codes, [("uid-shop-free-0", "deleted"), ("uid-shop-held-0", "unverified")]);
}

/// Each look makes an old API server read every pod of the cluster.
#[tokio::test(start_paused = true)]
async fn the_looks_for_a_pod_that_its_job_keeps_become_rarer() {
    let objects = [
        node("ds05", "True"),
        node("ds06", "False"),
        namespace("shop"),
        lease("ds06"),
        finished(held_by(pod("shop", "held-0", "ds06"), JOB_TRACKING)),
    ];
    let settings = audit();
    let (facts, plan) = judged(&settings, &objects);
    let server = Server::new(Objects::new(facts.now, objects));
    let (_signal, stop) = Stop::manual(Duration::from_mins(8));
    let cluster = Cluster::new(server.client(), stop.clone(), NodeSelectors::default());
    let pods = plan.reaps().collect::<Vec<_>>();
    let outcomes = execute(&cluster, &stop, &settings.policy, WriteMode::Real, &facts, &pods, &|| {}).await;
    assert_eq!(outcomes["uid-shop-held-0"], Outcome::StillThere);
    let trace = server.lock().trace.clone();
    let looks = trace.iter().filter_map(|sent| sent.split_once(" ms: GET /api/v1/pods?"));
    let looks = looks.map(|(at, _)| at).collect::<Vec<_>>();
    assert_eq!(looks, ["0", "250", "750", "1750", "3750", "5750", "7750", "9750"]);
}
