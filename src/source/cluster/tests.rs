//! Tests of the facts that can be gathered only from a cluster, not from a file.

use std::{collections::BTreeMap, sync::mpsc, time::Duration};

use jiff::Timestamp;
use pod_reaper_test_support::{
    samples::{NOW, objects, yaml},
    simulated::{Fate, Fault, Kind, Objects, Request, Server},
};
use tokio::time::Instant;

use crate::{
    cluster::Cluster,
    decide::{PodContext, ReasonCode},
    facts::{ClaimState, DeletedWithPod},
    report::samples::audit,
    settings::Settings,
    source::{Gathered, Reader, gather},
    stop::Stop,
};

/// ds06 is unreachable, and ds05 has just renewed its lease.
const CLUSTER: &str = "
    Node ds05: {ready: 'True'}
    Node ds06: {}
    Namespace data: {}
    Lease ds05: {spec: {renewTime: '2026-01-31T02:59:59Z'}}
    Lease ds06: {}
";

/// The cluster with `more`.
fn cluster(more: &str, fate: impl FnMut(&Request) -> Fate + Send + 'static) -> Cluster {
    let now = NOW.parse::<Timestamp>().expect("a moment");
    let objects = Objects::new(now, objects(&yaml(&format!("{CLUSTER}{more}"))));
    let server = Server::with_faults(objects, fate);
    Cluster::new(server.client(), Stop::manual(Duration::from_mins(8)).1)
}

async fn gathered(settings: &Settings, cluster: &Cluster) -> Gathered {
    let reader = Reader::new(cluster, settings.wanted());
    Box::pin(gather(&reader, None))
        .await
        .expect("nothing ends the run")
}

/// A run keeps 16 owners of an object, and one more, which shows that there are others. The pod may
/// be one of the others.
#[tokio::test(start_paused = true)]
async fn a_claim_with_more_owners_than_are_kept_is_unread() {
    for (others, is_owner, expected) in [
        (0, false, "not owned"),
        (0, true, "owned"),
        (15, true, "owned"),
        (16, false, "not owned"),
        (16, true, "unread"),
        (17, false, "unread"),
        (17, true, "unread"),
        (18, true, "unread"),
    ] {
        let others = (0..others).map(|number| format!("other-{number}"));
        let owners = others.chain(is_owner.then(|| "uid-data-web-0".to_owned()));
        let owners =
            owners.map(|uid| format!("{{apiVersion: v1, kind: Pod, name: x, uid: {uid}}}"));
        let owners = owners.collect::<Vec<_>>().join(", ");
        let more = format!(
            "
    Pod web-0: {{uses: data-0}}
    StatefulSet web: {{}}
    PersistentVolumeClaim data-0: {{volume: pv-1, metadata: {{ownerReferences: [{owners}]}}}}
    PersistentVolume pv-1: {{}}
"
        );
        let cluster = cluster(&more, |_| Fate::default());
        let gathered = gathered(&audit(), &cluster).await;
        let pod = &gathered.pods[0];
        let claim = &pod.claims()[0];
        let settings = audit();
        let case = PodContext::of(&gathered.facts, &settings.policy, pod);
        let found = match (&claim.state, case.goes(claim)) {
            (ClaimState::Unread(_), _) => "unread",
            (ClaimState::Bound(_), DeletedWithPod::No) => "not owned",
            (ClaimState::Bound(_), DeletedWithPod::MayBeWanted(_)) => "owned",
            it => panic!("{it:?}"),
        };
        assert_eq!(found, expected, "{owners}");
    }
}

/// Only the lease of a Ready node shows that the API server's clock is right.
#[tokio::test(start_paused = true)]
async fn the_clock_is_not_believed_if_no_lease_of_a_ready_node_could_be_read() {
    for (unread, is_believed) in [
        (None, true),
        (Some(Kind::Lease), false),
        (Some(Kind::Node), false),
    ] {
        let fate = move |request: &Request| Fate {
            fault: (Some(request.kind) == unread && request.name == "ds05")
                .then_some(Fault::Status(403, false, false)),
            ..Fate::default()
        };
        let cluster = cluster("    Pod a: {}", fate);
        let settings = audit();
        let Gathered { facts, pods, .. } = gathered(&settings, &cluster).await;
        assert_eq!(facts.clock.is_none(), is_believed, "{unread:?}");
        let plan = settings.limit(&facts, settings.decide(&facts, pods));
        let reaps = plan.reaps().count();
        assert_eq!(reaps, usize::from(is_believed), "{unread:?}");
    }
}

/// A node may have become NotReady after all nodes were listed. Its silence then tells nothing about
/// the clock, and no pod can start on it.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_no_longer_ready_is_not_asked_about_the_clock() {
    let settings = audit();
    let now = NOW.parse().expect("a moment");
    for (asked, room) in [(["ds05", "ds06"], true), (["ds06", "ds05"], false)] {
        let cluster = cluster("", |_| Fate::default());
        let reader = Reader::new(&cluster, settings.wanted());
        let ready_nodes = reader.ready_nodes(&asked.map(str::to_owned), now).await;
        assert_eq!(
            (ready_nodes.clock, ready_nodes.room),
            (None, room),
            "{asked:?}"
        );
    }
    let cluster = cluster("", |_| Fate::default());
    let reader = Reader::new(&cluster, settings.wanted());
    let ready_nodes = reader.ready_nodes(&["ds06".to_owned()], now).await;
    assert_eq!((ready_nodes.clock, ready_nodes.room), (None, false));
}

/// A grace period is cut short only because of facts that were read, never because some could not be
/// read. The pod was drained a quarter of an hour ago, with a grace period of a week.
#[tokio::test(start_paused = true)]
async fn a_grace_is_cut_short_only_if_the_other_leases_could_be_read() {
    let (refused, page) = (
        Fault::Status(403, false, false),
        Fault::Status(403, true, false),
    );
    for (fault, expected) in [
        (None, ReasonCode::Stuck),
        (Some(refused), ReasonCode::NotOverdue),
        (Some(page), ReasonCode::NotOverdue),
    ] {
        let fate = move |request: &Request| Fate {
            fault: fault.filter(|_| request.kind == Kind::LeaseRows),
            ..Fate::default()
        };
        let drained = "
    Pod a: {metadata: {deletionTimestamp: '2026-02-07T02:45:00Z', deletionGracePeriodSeconds: 604800}}
";
        let settings = audit();
        let Gathered { facts, pods, .. } = gathered(&settings, &cluster(drained, fate)).await;
        let plan = settings.limit(&facts, settings.decide(&facts, pods));
        assert_eq!(plan.pods[0].code(), expected, "{fault:?}");
    }
}

/// A `StatefulSet` that wants a pod again wants its PVCs too. So it must not be older than the PVC that
/// it lets go with its pod: in between, it may have been scaled up and have made the PVC again.
#[tokio::test(start_paused = true)]
async fn a_stateful_set_is_read_after_the_claim_that_it_lets_go() {
    for kept in [
        "metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: web-0, uid: uid-data-web-0}]}",
        "spec: {}",
    ] {
        let more = format!(
            "
    Pod web-0: {{uses: data-0}}
    StatefulSet web: {{spec: {{replicas: 0}}}}
    PersistentVolumeClaim data-0: {{volume: pv-1, {kept}}}
    PersistentVolume pv-1: {{on: ds06, spec: {{local: {{path: /mnt}}}}}}
"
        );
        let (sender, sent) = mpsc::channel();
        let cluster = cluster(&more, move |request| {
            sender
                .send((request.kind, Instant::now()))
                .expect("it is received");
            let slow = [Kind::Claim, Kind::Volume, Kind::NodesWith].contains(&request.kind);
            Fate {
                back: if slow {
                    Duration::from_secs(1)
                } else {
                    Duration::ZERO
                },
                ..Fate::default()
            }
        });
        let settings = audit();
        let Gathered { facts, pods, .. } = gathered(&settings, &cluster).await;
        let plan = settings.limit(&facts, settings.decide(&facts, pods));
        assert_eq!(plan.pods[0].code(), ReasonCode::Stuck, "{kept}");
        let sent = sent.try_iter().collect::<BTreeMap<_, _>>();
        for before in [Kind::Claim, Kind::Volume, Kind::NodesWith] {
            let answered = sent[&before] + Duration::from_secs(1);
            assert!(answered <= sent[&Kind::StatefulSet], "{before:?}, {kept}");
        }
    }
}
