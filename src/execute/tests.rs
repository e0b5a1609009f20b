//! Tests of the deletes and of their verification.

use std::{collections::BTreeSet, time::Duration};

use pod_reaper_test_support::{
    samples::{NOW, objects, with, yaml},
    simulated::{Fate, Fault, Kind, Objects, Request, Server},
};

use super::*;
use crate::{
    report::{
        RunRecord,
        samples::{audit, judged, run},
    },
    selector::Target,
    settings::Mode,
};

mod unneeded;

const CLUSTER: &str = "
    Node ds05: {ready: 'True'}
    Node ds06: {}
    Namespace shop: {}
";
/// A Job's pod that has finished, and that the Job controller's finalizer still holds.
const HELD: &str = "
    Pod shop/held-0: {metadata: {finalizers: [batch.kubernetes.io/job-tracking]}, status: {phase: Failed}}
";

/// Reaps the stuck pods of the cluster with `more`. Returns their outcomes by UID, and the trace.
async fn reaped(
    more: &str,
    fate: impl FnMut(&Request) -> Fate + Send + 'static,
) -> (Vec<(String, &'static str)>, Vec<String>) {
    reaped_later(more, "{}", fate).await
}

/// Does the same as `reaped`, on a cluster that has changed by `later` since it was judged.
async fn reaped_later(
    more: &str,
    later: &str,
    fate: impl FnMut(&Request) -> Fate + Send + 'static,
) -> (Vec<(String, &'static str)>, Vec<String>) {
    reaped_within(Duration::from_mins(8), more, later, fate).await
}

async fn reaped_within(
    deadline: Duration,
    more: &str,
    later: &str,
    fate: impl FnMut(&Request) -> Fate + Send + 'static,
) -> (Vec<(String, &'static str)>, Vec<String>) {
    let cluster = with(yaml(CLUSTER), yaml(more));
    let settings = audit();
    let RunRecord { facts, plan, .. } = judged(&settings, &objects(&cluster));
    let objects = objects(&with(cluster, yaml(later)));
    let server = Server::with_faults(Objects::new(facts.now, objects), fate);
    let (_signal, stop) = Stop::manual(deadline);
    let cluster = Cluster::new(server.client(), stop.clone());
    let pods = plan.reaps().collect::<Vec<_>>();
    let policy = &settings.policy;
    let outcomes = execute(&cluster, &stop, policy, (&facts, None), &pods, &|| {}).await;
    let outcomes = outcomes.into_iter();
    let codes = outcomes.map(|(uid, outcome)| (uid.to_string(), outcome.code().as_str()));
    (codes.collect(), server.lock().trace.clone())
}

#[tokio::test(start_paused = true)]
async fn a_pod_once_seen_to_be_gone_stays_gone_though_later_reads_fail() {
    let mut looks = 0;
    let fate = move |request: &Request| {
        looks += usize::from(request.kind == Kind::PodUids);
        // The first list contains the pod that its Job still holds. All further lists fail.
        let fails = request.kind == Kind::PodUids && looks > 1;
        Fate {
            fault: fails.then_some(Fault::Status(403, false, false)),
            ..Fate::default()
        }
    };
    let two = format!("{HELD}    Pod shop/free-0: {{status: {{phase: Failed}}}}");
    let (codes, _) = reaped(&two, fate).await;
    let codes = codes.iter().map(|(uid, code)| format!("{uid} {code}"));
    let expected = ["uid-shop-free-0 deleted", "uid-shop-held-0 unverified"];
    assert_eq!(codes.collect::<Vec<_>>(), expected);
}

/// A reading of the node is shared for so short a time that slow deletes still find it valid.
#[tokio::test(start_paused = true)]
async fn the_node_is_read_again_before_its_reading_is_too_old_for_a_slow_delete() {
    let many = (0..4 * MAX_IN_FLIGHT).map(|at| format!("Pod shop/a-{at}: {{}}\n"));
    let fate = |request: &Request| Fate {
        there: Duration::from_secs(if request.kind == Kind::Delete { 2 } else { 0 }),
        ..Fate::default()
    };
    let (codes, _) = reaped(&many.collect::<String>(), fate).await;
    assert_eq!(codes.len(), 4 * MAX_IN_FLIGHT);
    let kept = codes.iter().filter(|(_, code)| *code != "deleted");
    assert_eq!(kept.collect::<Vec<_>>(), Vec::<&(String, &str)>::new());
}

/// A lease that could not be read is no change. The next run judges the pod again.
#[tokio::test(start_paused = true)]
async fn a_node_whose_lease_cannot_be_read_again_is_a_failure_and_no_change() {
    for (later, fault, expected) in [
        ("{}", true, "failed"),
        (
            "Lease ds06: {spec: {renewTime: '2026-01-31T02:59:59Z'}}",
            false,
            "node-changed",
        ),
    ] {
        let fate = move |request: &Request| Fate {
            fault: (fault && request.kind == Kind::Lease)
                .then_some(Fault::Status(403, false, false)),
            ..Fate::default()
        };
        let (codes, trace) = reaped_later("Pod shop/free-0: {}", later, fate).await;
        assert_eq!(codes, [("uid-shop-free-0".to_owned(), expected)], "{later}");
        assert!(
            !trace.iter().any(|sent| sent.contains("DELETE")),
            "{trace:?}"
        );
    }
}

/// A heartbeat that one pod shows also applies to the node's pods whose turn comes later.
#[tokio::test(start_paused = true)]
async fn what_a_changed_pod_shows_of_the_machine_keeps_its_other_pods() {
    let judged = "{Pod shop/db-0: {metadata: {resourceVersion: '1'}}, Pod shop/free-0: {}}";
    let changed = |time: &str| {
        let written = format!("{{manager: Patroni, operation: Update, time: '{time}'}}");
        format!("Pod shop/db-0: {{metadata: {{resourceVersion: '2', managedFields: [{written}]}}}}")
    };
    for (time, expected) in [
        ("2026-01-31T02:59:59Z", ["changed", "node-changed"]),
        ("2026-01-30T00:00:00Z", ["deleted", "deleted"]),
    ] {
        let mut is_first = true;
        // Before its second try, the run has read the other pod again.
        let fate = move |request: &Request| {
            let is_other = request.kind == Kind::Delete && request.name == "free-0";
            Fate {
                fault: (is_other && std::mem::take(&mut is_first))
                    .then_some(Fault::Busy(429, None)),
                ..Fate::default()
            }
        };
        let (codes, _) = reaped_later(judged, &changed(time), fate).await;
        let codes = codes.iter().map(|(_, code)| *code);
        assert_eq!(codes.collect::<Vec<_>>(), expected, "{time}");
    }
}

/// A pod's volumes never change. If the pod had another PVC all the same, nothing would be known
/// about that PVC.
#[tokio::test(start_paused = true)]
async fn a_pod_that_changed_is_judged_by_the_claims_that_it_has_now() {
    let changed = |spec: &str| {
        format!("Pod shop/free-0: {{metadata: {{resourceVersion: '2'}}, spec: {spec}}}")
    };
    let claim = "{volumes: [{name: late, persistentVolumeClaim: {claimName: late}}]}";
    for (later, expected) in [(changed("{}"), "deleted"), (changed(claim), "changed")] {
        let judged = "Pod shop/free-0: {metadata: {resourceVersion: '1'}}";
        let (codes, _) = reaped_later(judged, &later, |_| Fate::default()).await;
        assert_eq!(codes, [("uid-shop-free-0".to_owned(), expected)], "{later}");
    }
}

/// The pod owns the PVC, so Kubernetes would remove it with the pod. When the pod was judged, nothing
/// wanted it.
#[tokio::test(start_paused = true)]
async fn a_pod_stays_whose_claim_is_wanted_by_now() {
    let unwanted = "
        Pod shop/db-0: {uses: data-db-0}
        PersistentVolumeClaim shop/data-db-0: {volume: pv-1, metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: db-0, uid: uid-shop-db-0}]}}
        PersistentVolume pv-1: {}
        StatefulSet shop/db: {spec: {replicas: 0}}
    ";
    for (later, fault, expected) in [
        ("{}", None, "deleted"),
        (
            "StatefulSet shop/db: {spec: {replicas: 1}}",
            None,
            "changed",
        ),
        ("{}", Some(Kind::StatefulSet), "failed"),
    ] {
        let fate = move |request: &Request| Fate {
            fault: (Some(request.kind) == fault).then_some(Fault::Status(403, false, false)),
            ..Fate::default()
        };
        let (codes, _) = reaped_later(unwanted, later, fate).await;
        assert_eq!(
            codes,
            [("uid-shop-db-0".to_owned(), expected)],
            "{later} {fault:?}"
        );
    }
}

/// Each list makes an old API server read every pod of the cluster.
#[tokio::test(start_paused = true)]
async fn the_looks_for_a_pod_that_its_job_keeps_become_rarer() {
    let (codes, trace) = reaped(HELD, |_| Fate::default()).await;
    assert_eq!(codes, [("uid-shop-held-0".to_owned(), "still-there")]);
    let looks = trace
        .iter()
        .filter_map(|sent| sent.split_once(" ms: GET /api/v1/pods?"));
    assert_eq!(
        looks.map(|(at, _)| at).collect::<Vec<_>>(),
        ["0", "250", "750", "1750", "3750", "5750", "7750", "9750"]
    );
}

/// Reaps a running pod of a Job. Each of `faults` in turn affects the next request of its kind.
/// Returns the outcome, and the requests about the pod.
async fn reap_of_job(later: &str, faults: &[(Kind, Fault)]) -> (&'static str, Vec<String>) {
    let running = "Pod shop/job-0: {metadata: {finalizers: [batch.kubernetes.io/job-tracking]}}";
    let mut faults = faults.to_vec();
    let fate = move |request: &Request| {
        let met = faults
            .first()
            .is_some_and(|(kind, _)| *kind == request.kind);
        Fate {
            fault: met.then(|| faults.remove(0).1),
            ..Fate::default()
        }
    };
    let (codes, trace) = reaped_later(running, later, fate).await;
    let asked = trace.iter().filter_map(|sent| {
        let (verb, path) = sent.split_once(" ms: ")?.1.split_once(' ')?;
        if path.contains("/pods?") {
            return Some("LIST".to_owned());
        }
        path.contains("/pods/job-0").then(|| verb.to_owned())
    });
    let mut asked = asked.collect::<Vec<_>>();
    // The verifying list is repeated while the Job holds the pod.
    asked.dedup_by(|one, other| *one == "LIST" && *other == "LIST");
    (codes[0].1, asked)
}

/// A pod that changed is judged once more, and once more after our own patch, which changes the pod
/// too. A pod that was set to `Failed` and is not deleted is a failure, whatever keeps the pod.
#[tokio::test(start_paused = true)]
async fn the_pod_of_a_job_is_set_to_failed_before_it_is_deleted() {
    let conflict = (Kind::Delete, Fault::Status(409, false, false));
    let invalid = (Kind::Patch, Fault::Denied(422));
    let busy = (Kind::Patch, Fault::Busy(503, None));
    let another = "Pod shop/job-0: {metadata: {uid: another}}";
    for (later, faults, outcome, asked) in [
        ("{}", vec![], "still-there", "PATCH DELETE LIST"),
        (
            "{}",
            vec![conflict; 2],
            "still-there",
            "PATCH DELETE GET DELETE GET DELETE LIST",
        ),
        (
            "{}",
            vec![conflict; 3],
            "failed",
            "PATCH DELETE GET DELETE GET DELETE",
        ),
        // The patch is refused by admission, or because another pod now has the name.
        ("{}", vec![invalid], "denied", "PATCH GET"),
        (another, vec![invalid], "changed", "PATCH GET"),
        ("{}", vec![busy], "still-there", "PATCH PATCH DELETE LIST"),
        // Nothing was deleted, so there is nothing to verify.
        ("{}", vec![busy; 4], "failed", "PATCH PATCH PATCH PATCH"),
        (
            "{}",
            vec![(Kind::Delete, Fault::Busy(429, None)); 4],
            "failed",
            "PATCH DELETE DELETE DELETE DELETE",
        ),
    ] {
        let (code, verbs) = reap_of_job(later, &faults).await;
        assert_eq!(
            (code, verbs.join(" ").as_str()),
            (outcome, asked),
            "{faults:?}"
        );
    }
}

/// Nothing ends the run between the patch and the delete: otherwise the Job would count a failure
/// for a pod that still exists.
#[tokio::test(start_paused = true)]
async fn a_pod_that_is_set_to_failed_is_deleted_though_the_run_has_to_end() {
    // The response to the patch may be lost.
    for fault in [None, Some(Fault::Lost(true))] {
        let mut patches = 0;
        let late = move |request: &Request| {
            patches += usize::from(request.kind == Kind::Patch);
            let is_first = request.kind == Kind::Patch && patches == 1;
            Fate {
                back: Duration::from_secs(if is_first { 4 } else { 0 }),
                fault: fault.filter(|_| is_first),
                ..Fate::default()
            }
        };
        let running =
            "Pod shop/job-0: {metadata: {finalizers: [batch.kubernetes.io/job-tracking]}}";
        let (codes, trace) = reaped_within(Duration::from_secs(5), running, "{}", late).await;
        assert_eq!(codes[0].1, "still-there", "{trace:?}");
        assert!(
            trace.iter().any(|sent| sent.contains(": DELETE ")),
            "{trace:?}"
        );
    }
}

/// The pod's delete takes `there` to reach the server. Each reading of the pod's node before it
/// takes `back` on its way back. The five seconds are counted from the moment before the reading,
/// because the response may be old when it arrives.
#[tokio::test(start_paused = true)]
async fn no_pod_is_deleted_by_a_reading_that_was_begun_more_than_five_seconds_ago() {
    let seconds = Duration::from_secs_f64;
    for (slow, back, there, expected) in [
        (Kind::Node, 0.0, 4.4, "deleted"),
        (Kind::Node, 0.0, 5.1, "failed"),
        (Kind::Node, 4.4, 0.0, "deleted"),
        (Kind::Node, 5.1, 0.0, "failed"),
        (Kind::Node, 3.0, 1.4, "deleted"),
        (Kind::Node, 3.0, 2.1, "failed"),
        (Kind::Lease, 3.0, 1.4, "deleted"),
        (Kind::Lease, 3.0, 2.1, "failed"),
    ] {
        let fate = move |request: &Request| Fate {
            there: seconds(if request.kind.writes() { there } else { 0.0 }),
            back: seconds(if request.kind == slow { back } else { 0.0 }),
            ..Fate::default()
        };
        let (codes, trace) = reaped("Pod shop/free-0: {}", fate).await;
        let case = format!("{slow:?} {back} {there}: {trace:#?}");
        assert_eq!(codes, [("uid-shop-free-0".to_owned(), expected)], "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_bound_to_another_node_has_changed() {
    let judged = "Pod shop/free-0: {metadata: {resourceVersion: '1'}}";
    for (node, expected) in [
        ("ds06", "deleted"),
        ("ds05", "changed"),
        ("null", "changed"),
    ] {
        let later = format!(
            "Pod shop/free-0: {{metadata: {{resourceVersion: '2'}}, spec: {{nodeName: {node}}}}}"
        );
        let (codes, _) = reaped_later(judged, &later, |_| Fate::default()).await;
        assert_eq!(codes, [("uid-shop-free-0".to_owned(), expected)], "{node}");
    }
}

/// A run that has to end while it reads the node begins no delete.
#[tokio::test(start_paused = true)]
async fn a_run_that_has_to_end_while_it_reads_the_node_touches_no_pod() {
    let mut settings = run(Mode::Delete, Target::default());
    settings.all = false;
    let objects = objects(&with(yaml(CLUSTER), yaml("Pod shop/db-0: {}")));
    let objects = Objects::new(NOW.parse().unwrap(), objects);
    let (signal, stop) = Stop::manual(Duration::from_mins(8));
    let mut readings = 0;
    let fate = move |request: &Request| {
        readings += usize::from(request.kind == Kind::Node && request.name == "ds06");
        // The second reading is made right before the delete.
        let is_last = request.kind == Kind::Node && request.name == "ds06" && readings == 2;
        if is_last {
            signal.send_replace(Some(("SIGTERM", tokio::time::Instant::now())));
        }
        Fate {
            back: Duration::from_secs(u64::from(is_last)),
            ..Fate::default()
        }
    };
    let server = Server::with_faults(objects, fate);
    let cluster = Cluster::new(server.client(), stop.clone());
    let report = crate::run::run_on(&cluster, &settings, false, &stop)
        .await
        .unwrap();
    assert_eq!(report.pods[0].outcome, Some(OutcomeCode::Interrupted));
    let requests = server.lock().requests.clone();
    assert!(
        requests.iter().all(|sent| sent.starts_with("GET")),
        "{requests:?}"
    );
}

/// A Lease that could not be read again is no change, although the grace period on its node is then not
/// cut short. The second reading is made right before the delete.
#[tokio::test(start_paused = true)]
async fn a_node_whose_lease_is_unread_has_not_changed() {
    let cut = "
        Node ds06: {}
        Pod shop/db-0: {metadata: {deletionTimestamp: '2026-02-07T02:45:00Z', deletionGracePeriodSeconds: 604800}}
    ";
    for (fails, expected) in [(false, "deleted"), (true, "failed")] {
        let fate = move |request: &Request| Fate {
            fault: (fails && request.kind == Kind::Lease)
                .then_some(Fault::Status(403, false, false)),
            ..Fate::default()
        };
        let (outcomes, _) = reaped(cut, fate).await;
        let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome);
        assert_eq!(outcomes.collect::<Vec<_>>(), [expected]);
    }
}

/// The other Leases are listed again once a minute, however many nodes and pods there are. Half a
/// minute after the run began, the Lease is renewed by `holder`.
#[tokio::test(start_paused = true)]
async fn the_other_leases_are_listed_again_after_a_minute() {
    let lease = |holder: &str, renewed: &str| {
        format!(
            "Lease shop/leader: {{metadata: {{managedFields: null}}, spec: {{holderIdentity: {holder}, renewTime: '{renewed}'}}}}"
        )
    };
    let pods = (0..300).map(|at| format!("    Pod shop/a-{at}: {{}}\n"));
    let old = lease("ds06_1", "2026-01-31T01:00:00Z");
    let all = format!("{CLUSTER}    {old}\n{}", pods.collect::<String>());
    for (holder, renewed, fails, then) in [
        (
            "ds06_1",
            "2026-01-31T01:00:00Z",
            false,
            OutcomeCode::Deleted,
        ),
        (
            "ds06_2",
            "2026-01-31T02:59:59Z",
            false,
            OutcomeCode::NodeChanged,
        ),
        (
            "ds05_1",
            "2026-01-31T02:59:59Z",
            false,
            OutcomeCode::Deleted,
        ),
        (
            "ds05_1",
            "9999-12-31T23:59:59Z",
            false,
            OutcomeCode::Deleted,
        ),
        (
            "ds06_1",
            "9999-12-31T23:59:59Z",
            false,
            OutcomeCode::NodeChanged,
        ),
        ("ds06_1", "2026-01-31T01:00:00Z", true, OutcomeCode::Failed),
    ] {
        let settings = run(Mode::Delete, Target::default());
        let fate = move |request: &Request| {
            let again =
                request.kind == Kind::LeasesNamed && !request.selector.contains("metadata.name=");
            Fate {
                fault: (fails && again).then_some(Fault::Status(403, false, false)),
                there: Duration::from_secs(if request.kind == Kind::Delete { 2 } else { 0 }),
                ..Fate::default()
            }
        };
        let now = NOW.parse().unwrap();
        let server = Server::with_faults(Objects::new(now, objects(&yaml(&all))), fate);
        let (_signal, stop) = Stop::manual(Duration::from_mins(8));
        let cluster = Cluster::new(server.client(), stop.clone());
        let renews = async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            let there = &mut server.lock().cluster.objects;
            there.retain(|object| object["metadata"]["name"] != "leader");
            there.extend(objects(&yaml(&lease(holder, renewed))));
        };
        let (report, ()) = tokio::join!(
            crate::run::run_on(&cluster, &settings, false, &stop),
            renews
        );
        let outcomes = report.unwrap().summary.outcomes;
        let seen = outcomes.iter().filter(|(_, count)| **count > 0);
        let seen = seen.map(|(code, _)| *code).collect::<BTreeSet<_>>();
        let case = format!("{holder} {renewed} {fails}");
        assert_eq!(seen, BTreeSet::from([OutcomeCode::Deleted, then]), "{case}");
        let others = "fieldSelector=metadata.namespace%21%3Dkube-node-lease";
        let requests = server.lock().requests.clone();
        let lists = requests.iter().filter(|sent| {
            sent.contains("/leases?") && sent.contains(others) && !sent.contains("includeObject")
        });
        // Another name is selected after the namespace.
        let lists = lists.filter(|sent| !sent.contains("metadata.name%3D"));
        assert!(
            fails || lists.clone().count() == 1,
            "{case}: {:?}",
            lists.collect::<Vec<_>>()
        );
    }
}

/// A pod that cannot be read may be the one that was deleted.
#[tokio::test(start_paused = true)]
async fn a_list_with_a_malformed_pod_verifies_nothing() {
    let two = format!("{HELD}    Pod shop/free-0: {{status: {{phase: Failed}}}}");
    let fate = |request: &Request| Fate {
        fault: (request.kind == Kind::PodUids).then_some(Fault::Malformed),
        ..Fate::default()
    };
    let (codes, _) = reaped(&two, fate).await;
    assert!(
        codes.iter().all(|(_, code)| *code == "unverified"),
        "{codes:?}"
    );
}

/// Safety rule 12: four tries of ten seconds each, and the pauses between them.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_never_sent_costs_its_time_limit() {
    let began = tokio::time::Instant::now();
    let fate = |request: &Request| Fate {
        fault: (request.kind == Kind::Node).then_some(Fault::Hangs(false)),
        ..Fate::default()
    };
    let (codes, trace) = reaped("Pod shop/free-0: {}", fate).await;
    assert_eq!(
        codes,
        [("uid-shop-free-0".to_owned(), "failed")],
        "{trace:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(45), "{trace:?}");
}

/// The machine was heard before its node failed, by a Lease that is not read again. By then, the node
/// says that it failed earlier.
#[tokio::test(start_paused = true)]
async fn what_was_heard_when_a_pod_was_judged_still_keeps_it() {
    let cluster = with(
        yaml(CLUSTER),
        yaml(
            "
            Node ds06: {since: 300, renewed: 7000}
            Pod shop/free-0: {}
            Lease shop/leader: {holder: ds06_1, renewed: 360}
            ",
        ),
    );
    let earlier = "Node ds06: {since: 1200}";
    let mut settings = audit();
    settings.policy.reap_older_than = jiff::SignedDuration::from_mins(1);
    for (later, expected) in [("{}", "deleted"), (earlier, "node-changed")] {
        let RunRecord { facts, plan, .. } = judged(&settings, &objects(&cluster));
        let objects = objects(&with(cluster.clone(), yaml(later)));
        let server = Server::new(Objects::new(facts.now, objects));
        let (_signal, stop) = Stop::manual(Duration::from_mins(8));
        let cluster = Cluster::new(server.client(), stop.clone());
        let pods = plan.reaps().collect::<Vec<_>>();
        let policy = &settings.policy;
        let outcomes = execute(&cluster, &stop, policy, (&facts, None), &pods, &|| {}).await;
        let codes = outcomes.values().map(|outcome| outcome.code().as_str());
        assert_eq!(codes.collect::<Vec<_>>(), [expected], "{later}");
    }
}

/// The namespaces are read again before the first delete.
#[tokio::test(start_paused = true)]
async fn a_pod_whose_namespace_is_opted_out_by_then_stays() {
    let out = "Namespace shop: {metadata: {labels: {pod-reaper.io/skip: 'true'}}}";
    let (codes, trace) = reaped_later("Pod shop/free-0: {}", out, |_| Fate::default()).await;
    assert_eq!(codes, [("uid-shop-free-0".to_owned(), "opted-out")]);
    assert!(
        !trace.iter().any(|sent| sent.contains("DELETE")),
        "{trace:?}"
    );
}
