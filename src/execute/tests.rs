//! Tests of the deletes and of their verification.

use std::{fmt::Write as _, time::Duration};

use pod_reaper_test_support::{
    samples::{NOW, objects, with, yaml},
    simulated::{Fate, Fault, Kind, Objects, Request, Server},
};

use super::*;
use crate::{
    cluster::Mode,
    report::{
        RunRecord,
        samples::{audit, judged, run},
    },
    selector::Target,
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
    let (policy, mode) = (&settings.policy, Mode::Delete);
    let outcomes = execute(&cluster, &stop, policy, mode, (&facts, None), &pods, &|| {}).await;
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

/// Somebody has deleted the PVC, so Kubernetes would remove it with the pod. When the pod was
/// judged, another pod kept the PVC, or nothing wanted it.
#[tokio::test(start_paused = true)]
async fn a_pod_stays_whose_claim_is_wanted_by_now() {
    let wanted = "
        Pod shop/db-0: {uses: data-db-0}
        PersistentVolumeClaim shop/data-db-0: {volume: pv-1, metadata: {deletionTimestamp: '2026-01-10T00:00:00Z'}}
        PersistentVolume pv-1: {}
        StatefulSet shop/db: {spec: {replicas: 1}}
    ";
    let unwanted = &wanted.replace("replicas: 1", "replicas: 0");
    let kept = &format!(
        "{wanted}    Pod shop/backup: {{uses: data-db-0, spec: {{nodeName: ds05}}, metadata: {{deletionTimestamp: null}}}}"
    );
    for (judged, later, fault, expected) in [
        (kept, "{}", None, "deleted"),
        (kept, "Pod shop/backup: null", None, "changed"),
        (
            kept,
            "Pod shop/backup: {metadata: {deletionTimestamp: '2026-01-31T02:59:00Z'}}",
            None,
            "changed",
        ),
        (
            kept,
            "Pod shop/backup: {status: {phase: Succeeded}}",
            None,
            "changed",
        ),
        (
            kept,
            "Pod shop/backup: {spec: {nodeName: null}}",
            None,
            "changed",
        ),
        (kept, "{}", Some(Kind::Pod), "failed"),
        (unwanted, "{}", None, "deleted"),
        (
            unwanted,
            "StatefulSet shop/db: {spec: {replicas: 1}}",
            None,
            "changed",
        ),
        (unwanted, "{}", Some(Kind::StatefulSet), "failed"),
    ] {
        let fate = move |request: &Request| Fate {
            fault: (Some(request.kind) == fault).then_some(Fault::Status(403, false, false)),
            ..Fate::default()
        };
        let (codes, _) = reaped_later(judged, later, fate).await;
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

/// A StatefulSet's pod on a dead node, with two PVCs on that node that are declared scratch.
const SCRATCH: &str = "
    Pod shop/cache-0:
        metadata: {labels: {apps.kubernetes.io/pod-index: '0'}}
        spec:
            volumes:
            - {name: a, persistentVolumeClaim: {claimName: a-cache-0}}
            - {name: b, persistentVolumeClaim: {claimName: b-cache-0}}
    StatefulSet shop/cache: {spec: {volumeClaimTemplates: [{metadata: {name: a}}, {metadata: {name: b}}]}}
    PersistentVolumeClaim shop/a-cache-0: {volume: pv-a, metadata: {annotations: {pod-reaper.io/scratch: 'true'}}}
    PersistentVolumeClaim shop/b-cache-0: {volume: pv-b, metadata: {annotations: {pod-reaper.io/scratch: 'true'}}}
    PersistentVolume pv-a: {on: ds06, spec: {local: {path: /x}, persistentVolumeReclaimPolicy: Delete}}
    PersistentVolume pv-b: {on: ds06, spec: {local: {path: /x}, persistentVolumeReclaimPolicy: Delete}}
";

/// Runs with `--reap-scratch` on [`SCRATCH`] with `more`. Returns the pod's reason and outcome, with the PVCs
/// that may be deleted although the pod is not. Also returns the deletes and the node's readings, from the
/// first delete on.
async fn reap_scratch(
    more: &str,
    mode: Mode,
    mut fault: impl FnMut(&Request) -> Option<Fault> + Send + 'static,
) -> (String, Vec<String>) {
    let fate = move |request: &Request| Fate {
        fault: fault(request),
        ..Fate::default()
    };
    reap_scratch_within(Duration::from_mins(8), more, mode, fate).await
}

async fn reap_scratch_within(
    deadline: Duration,
    more: &str,
    mode: Mode,
    fate: impl FnMut(&Request) -> Fate + Send + 'static,
) -> (String, Vec<String>) {
    reap_scratch_saying(deadline, more, mode, fate, &mut String::new()).await
}

/// Does the same as `reap_scratch_within`, and appends the sentence of a failure.
async fn reap_scratch_saying(
    deadline: Duration,
    more: &str,
    mode: Mode,
    fate: impl FnMut(&Request) -> Fate + Send + 'static,
    said: &mut String,
) -> (String, Vec<String>) {
    let mut settings = run(mode, Target::default());
    settings.policy.reap_scratch = true;
    settings.all = false;
    let objects = objects(&with(with(yaml(CLUSTER), yaml(SCRATCH)), yaml(more)));
    let objects = Objects::new(NOW.parse().unwrap(), objects);
    let server = Server::with_faults(objects, fate);
    let (_signal, stop) = Stop::manual(deadline);
    let cluster = Cluster::new(server.client(), stop.clone());
    let report = crate::run::run_on(&cluster, &settings, false, &stop)
        .await
        .unwrap();
    assert_eq!(server.lock().not_understood, Vec::<String>::new());
    let pod = &report.pods[0];
    let outcome = pod.outcome.map_or("none", |outcome| outcome.as_str());
    let mut result = format!("{} {outcome}", pod.reason.unwrap());
    let detail = pod.outcome_detail.as_deref().unwrap_or_default();
    if outcome == "failed" {
        let gone = detail
            .split_once('(')
            .and_then(|(_, rest)| rest.split_once(')'));
        write!(result, " {}", gone.expect("their names").0).unwrap();
        said.push_str(detail);
    }
    let requests = server.lock().requests.clone();
    let first = requests
        .iter()
        .position(|sent| sent.starts_with("DELETE"))
        .unwrap_or(requests.len());
    let sent = requests[first..]
        .iter()
        .map(|sent| sent.replace("/api/v1/namespaces/shop/", ""));
    let is_told = |sent: &String| sent.starts_with("DELETE") || sent.contains("/nodes/");
    (result, sent.filter(is_told).collect())
}

const REAL: Mode = Mode::Delete;
const LOOK: &str = "GET /api/v1/nodes/ds06";
const REHEARSAL: [&str; 3] = [
    "DELETE pods/cache-0?dryRun=All",
    "DELETE persistentvolumeclaims/a-cache-0?dryRun=All",
    "DELETE persistentvolumeclaims/b-cache-0?dryRun=All",
];
const CLAIMS: [&str; 2] = [
    "DELETE persistentvolumeclaims/a-cache-0",
    "DELETE persistentvolumeclaims/b-cache-0",
];

#[tokio::test(start_paused = true)]
async fn scratch_goes_between_a_rehearsal_and_its_pod() {
    let (result, sent) = reap_scratch("{}", REAL, |_| None).await;
    assert_eq!(result, "scratch deleted");
    assert_eq!(
        sent,
        [
            REHEARSAL.as_slice(),
            &[LOOK],
            &CLAIMS,
            &["DELETE pods/cache-0"]
        ]
        .concat()
    );

    let (result, sent) = reap_scratch("{}", Mode::ServerDryRun, |_| None).await;
    assert_eq!(result, "scratch would-delete");
    assert!(
        sent.iter()
            .all(|sent| sent == LOOK || sent.ends_with("?dryRun=All")),
        "{sent:?}"
    );
    assert_eq!(sent.len(), 4, "{sent:?}");
}

/// A PVC's users, and the StatefulSet that creates the PVC again, must be read after the PVC that
/// is declared scratch.
#[tokio::test(start_paused = true)]
async fn what_tells_whether_claims_may_go_is_read_after_all_of_them() {
    let second = SCRATCH
        .replace("cache-0", "cache-1")
        .replace("pv-", "pv-of-1-");
    let mut settings = run(Mode::ClientDryRun, Target::default());
    settings.policy.reap_scratch = true;
    let all = with(with(yaml(CLUSTER), yaml(SCRATCH)), yaml(&second));
    let slow = |request: &Request| Fate {
        back: Duration::from_secs(u64::from(request.name == "a-cache-1")),
        ..Fate::default()
    };
    let server = Server::with_faults(Objects::new(NOW.parse().unwrap(), objects(&all)), slow);
    let (_signal, stop) = Stop::manual(Duration::from_mins(8));
    let cluster = Cluster::new(server.client(), stop.clone());
    let report = crate::run::run_on(&cluster, &settings, false, &stop).await;
    let reasons = report
        .unwrap()
        .pods
        .into_iter()
        .map(|pod| pod.reason.unwrap().as_str());
    assert_eq!(reasons.collect::<Vec<_>>(), ["scratch"; 2]);
    let requests = server.lock().requests.clone();
    let is = |path: &'static str| move |sent: &String| sent.contains(path);
    let claims = requests.iter().rposition(is("/persistentvolumeclaims/"));
    for later in ["/namespaces/shop/pods?", "/statefulsets/"] {
        let at = requests.iter().position(is(later));
        assert!(claims < at && at.is_some(), "{later}: {requests:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_proved_to_be_scratch_stays() {
    for (name, more) in [
        (
            "no annotation",
            "PersistentVolumeClaim shop/a-cache-0: {metadata: {annotations: {pod-reaper.io/scratch: 'false'}}}",
        ),
        (
            "another value",
            "PersistentVolumeClaim shop/a-cache-0: {metadata: {annotations: {pod-reaper.io/scratch: 'True'}}}",
        ),
        (
            "opted out",
            "PersistentVolumeClaim shop/a-cache-0: {metadata: {annotations: {pod-reaper.io/skip: 'true'}}}",
        ),
        (
            "opted out by label",
            "PersistentVolumeClaim shop/a-cache-0: {metadata: {labels: {pod-reaper.io/skip: 'true'}}}",
        ),
        (
            "held",
            "PersistentVolumeClaim shop/a-cache-0: {metadata: {finalizers: [example.org/backup]}}",
        ),
        (
            "no template",
            "StatefulSet shop/cache: {spec: {volumeClaimTemplates: []}}",
        ),
        (
            "another set",
            "StatefulSet shop/cache: {metadata: {uid: another}}",
        ),
        (
            "no set",
            "Pod shop/cache-0: {metadata: {ownerReferences: []}}",
        ),
        (
            "another user",
            "Pod shop/backup-0: {uses: a-cache-0, metadata: {deletionTimestamp: null}, spec: {nodeName: ds05}}",
        ),
        (
            "an old server",
            "Pod shop/cache-0: {metadata: {labels: null}}",
        ),
        (
            "a confined one too",
            "PersistentVolume pv-b: {spec: {local: null, nodeAffinity: {required: {nodeSelectorTerms: [
                {matchExpressions: [{key: disk, operator: Exists}]}]}}}}",
        ),
    ] {
        let (result, sent) = reap_scratch(more, REAL, |_| None).await;
        assert_eq!(result, "local-volume none", "{name}");
        assert_eq!(sent, Vec::<String>::new(), "{name}");
    }
    // The StatefulSet, or the pods of the namespace, cannot be read.
    for kind in [Kind::StatefulSet, Kind::PodsIn] {
        let fault = move |request: &Request| {
            (request.kind == kind).then_some(Fault::Status(403, false, false))
        };
        let (result, sent) = reap_scratch("{}", REAL, fault).await;
        assert_eq!(result, "local-volume none", "{kind:?}");
        assert_eq!(sent, Vec::<String>::new(), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_went_alone_is_told() {
    let forbidden = |kind: Kind, name: &'static str, dry: bool| {
        move |request: &Request| {
            let is_met = request.kind == kind && request.name == name && request.dry_run == dry;
            is_met.then_some(Fault::Status(403, false, false))
        }
    };
    // The rehearsal is refused before anything is deleted.
    for fault in [
        forbidden(Kind::Delete, "cache-0", true),
        forbidden(Kind::DeleteClaim, "b-cache-0", true),
        forbidden(Kind::DeleteClaim, "a-cache-0", false),
    ] {
        let (result, _) = reap_scratch("{}", REAL, fault).await;
        assert_eq!(result, "scratch denied");
    }
    // A real delete is refused.
    for (fault, gone) in [
        (
            forbidden(Kind::DeleteClaim, "b-cache-0", false),
            "scratch failed a-cache-0",
        ),
        (
            forbidden(Kind::Delete, "cache-0", false),
            "scratch failed a-cache-0, b-cache-0",
        ),
    ] {
        let (result, _) = reap_scratch("{}", REAL, fault).await;
        assert_eq!(result, gone);
    }
    let fault = forbidden(Kind::Delete, "cache-0", false);
    let fate = move |request: &Request| Fate {
        fault: fault(request),
        ..Fate::default()
    };
    let mut said = String::new();
    reap_scratch_saying(Duration::from_mins(8), "{}", REAL, fate, &mut said).await;
    expect_test::expect!["It could not be deleted: its PVCs were deleted, or may have been (a-cache-0, b-cache-0), and this run did not delete the pod. The API server refused the delete: cannot list resource (403)"].assert_eq(&said);
}

/// A failure that may pass is followed by another try. A PVC that changed is left to the next run,
/// unless a try without a response has deleted it.
#[tokio::test(start_paused = true)]
async fn a_claim_is_tried_again_as_it_was_judged() {
    let gone = "scratch failed a-cache-0";
    let changed = Fault::Status(409, false, false);
    for (first, second, expected, tries) in [
        (Fault::Busy(429, None), None, "scratch deleted", 2),
        (Fault::Lost(false), None, "scratch deleted", 2),
        (Fault::Lost(true), None, "scratch deleted", 2),
        (Fault::Lost(false), Some(changed), gone, 2),
        // Somebody else has deleted the PVC. The pod is deleted all the same.
        (Fault::Status(404, false, false), None, "scratch deleted", 1),
        (Fault::Denied(403), None, "scratch denied", 1),
        (changed, None, "scratch changed", 1),
    ] {
        let mut deletes = 0;
        let (found, sent) = reap_scratch("{}", REAL, move |request| {
            let is_delete = request.kind == Kind::DeleteClaim && !request.dry_run;
            deletes += usize::from(is_delete);
            match deletes {
                1 => Some(first).filter(|_| is_delete),
                2 => second.filter(|_| is_delete),
                _ => None,
            }
        })
        .await;
        assert_eq!(found, expected, "{first:?}");
        assert_eq!(
            sent.iter().filter(|sent| *sent == CLAIMS[0]).count(),
            tries,
            "{first:?}: {sent:?}"
        );
    }
}

/// A run that has to end begins nothing new, and still deletes a pod that has lost a PVC.
#[tokio::test(start_paused = true)]
async fn a_run_that_ends_gives_up_no_first_claim_and_finishes_after_it() {
    let deadline = Duration::from_secs(5);
    let slow = |kind: Kind, name: &'static str| {
        let mut first = true;
        move |request: &Request| {
            let is_met = request.kind == kind
                && request.name == name
                && (request.dry_run == (kind == Kind::Delete))
                && std::mem::take(&mut first);
            let back = if is_met {
                Duration::from_secs(4)
            } else {
                Duration::ZERO
            };
            Fate {
                back,
                ..Fate::default()
            }
        }
    };
    let (result, sent) =
        reap_scratch_within(deadline, "{}", REAL, slow(Kind::Delete, "cache-0")).await;
    assert_eq!(result, "scratch interrupted");
    assert_eq!(sent, REHEARSAL[..1]);
    let slow = slow(Kind::DeleteClaim, "a-cache-0");
    let (result, sent) = reap_scratch_within(deadline, "{}", REAL, slow).await;
    assert_eq!(result, "scratch deleted");
    assert_eq!(
        sent.iter()
            .filter(|sent| *sent != LOOK)
            .skip(REHEARSAL.len())
            .collect::<Vec<_>>(),
        [CLAIMS[0], CLAIMS[1], "DELETE pods/cache-0"]
    );
}

/// Nothing is lost yet, so the run ends immediately, as it does during a pod's delete.
#[tokio::test(start_paused = true)]
async fn a_run_that_has_to_end_while_a_claim_is_rehearsed_interrupts_its_pod() {
    let busy = |request: &Request| Fate {
        fault: (request.kind == Kind::DeleteClaim).then_some(Fault::Busy(503, Some(5))),
        ..Fate::default()
    };
    for dry_run in [REAL, Mode::ServerDryRun] {
        let deadline = Duration::from_secs(4);
        let (result, sent) = reap_scratch_within(deadline, "{}", dry_run, busy).await;
        assert_eq!(result, "scratch interrupted");
        assert_eq!(sent, REHEARSAL[..2], "{dry_run:?}");
    }
}

/// The first PVC may be deleted already, so its delete is repeated, and the other PVC and the pod
/// are deleted too.
#[tokio::test(start_paused = true)]
async fn a_run_that_has_to_end_while_a_claim_is_deleted_goes_on_with_its_pod() {
    let mut is_first = true;
    let busy = move |request: &Request| {
        let is_met =
            request.kind == Kind::DeleteClaim && !request.dry_run && std::mem::take(&mut is_first);
        Fate {
            fault: is_met.then_some(Fault::Busy(503, Some(5))),
            ..Fate::default()
        }
    };
    let (result, sent) = reap_scratch_within(Duration::from_secs(4), "{}", REAL, busy).await;
    assert_eq!(result, "scratch deleted");
    assert!(sent.contains(&CLAIMS[1].to_owned()), "{sent:?}");
}

/// A PVC's delete that is on its way for more than five seconds is aborted before it arrives.
#[tokio::test(start_paused = true)]
async fn no_claim_goes_by_a_look_that_is_older_than_five_seconds() {
    let late = |request: &Request| {
        let there = if request.kind == Kind::DeleteClaim && !request.dry_run {
            Duration::from_secs(6)
        } else {
            Duration::ZERO
        };
        Fate {
            there,
            ..Fate::default()
        }
    };
    let (result, sent) = reap_scratch_within(Duration::from_mins(8), "{}", REAL, late).await;
    assert_eq!(result, "scratch failed a-cache-0");
    assert!(
        !sent.contains(&CLAIMS[1].to_owned()) && !sent.contains(&"DELETE pods/cache-0".to_owned()),
        "{sent:?}"
    );
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

/// The answer may have lifted the breaker, so perhaps no other rule keeps the pod.
#[tokio::test(start_paused = true)]
async fn a_pod_stays_if_the_answer_on_its_node_no_longer_counts() {
    let annotated =
        |annotations: &str| format!("Node ds06: {{metadata: {{annotations: {annotations}}}}}");
    let at = |time: &str| annotated(&format!("{{pod-reaper.io/powered-off: '{time}'}}"));
    let judged = at("2026-01-31T02:00:00Z") + "\nPod shop/free-0: {}";
    for (later, expected) in [
        ("{}".to_owned(), "deleted"),
        (annotated("null"), "node-changed"),
        // The answer is older than the failure.
        (at("2026-01-31T00:30:00Z"), "node-changed"),
    ] {
        let (codes, _) = reaped_later(&judged, &later, |_| Fate::default()).await;
        assert_eq!(codes, [("uid-shop-free-0".to_owned(), expected)], "{later}");
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

/// After the rehearsal of the last PVC nothing is lost yet.
#[tokio::test(start_paused = true)]
async fn a_run_that_has_to_end_after_the_rehearsal_gives_up_no_claim() {
    let slow = |request: &Request| Fate {
        back: Duration::from_secs(if request.name == "b-cache-0" && request.dry_run {
            4
        } else {
            0
        }),
        ..Fate::default()
    };
    let (result, sent) = reap_scratch_within(Duration::from_secs(5), "{}", REAL, slow).await;
    assert!(result.starts_with("scratch interrupted"), "{result}");
    assert_eq!(sent, REHEARSAL);
}

/// The first try has no response, so it may have deleted the PVC, or somebody may have changed the
/// PVC. Only another reading of the PVC tells which. If that reading does not show the delete, the
/// pod stays.
#[tokio::test(start_paused = true)]
async fn a_pod_stays_if_no_look_tells_that_its_claim_is_going() {
    for (look, expected) in [
        (None, "scratch deleted"),
        (Some(Fault::Status(403, false, false)), "scratch failed"),
    ] {
        let mut tries = 0;
        let fault = move |request: &Request| {
            let is_try = request.kind == Kind::DeleteClaim && !request.dry_run;
            tries += usize::from(is_try && request.name == "a-cache-0");
            match request.kind {
                Kind::Claim if tries == 2 => look,
                _ if !is_try => None,
                _ if request.name == "a-cache-0" && tries == 1 => Some(Fault::Lost(true)),
                _ => None,
            }
        };
        let (result, sent) = reap_scratch("{}", REAL, fault).await;
        assert!(result.starts_with(expected), "{look:?}: {result}");
        let goes = sent.contains(&"DELETE pods/cache-0".to_owned());
        assert_eq!(goes, look.is_none(), "{look:?}: {sent:?}");
    }
}

/// A run that has to end while it reads the node begins no delete.
#[tokio::test(start_paused = true)]
async fn a_run_that_has_to_end_while_it_reads_the_node_touches_no_pod() {
    let mut settings = run(REAL, Target::default());
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

/// A Lease that could not be read again is no change. This is true of an edge node, and of a node on
/// which a grace period is cut short. The second reading is made right before the delete.
#[tokio::test(start_paused = true)]
async fn a_node_whose_lease_is_unread_has_not_changed() {
    let edge = "
        Node ds06: {metadata: {labels: {openyurt.io/is-edge-worker: 'true'},
            annotations: {pod-reaper.io/powered-off: '2026-01-31T02:30:00Z'}}}
        Pod shop/db-0: {}
    ";
    let cut = "
        Node ds06: {}
        Pod shop/db-0: {metadata: {deletionTimestamp: '2026-02-07T02:45:00Z', deletionGracePeriodSeconds: 604800}}
    ";
    for (cluster, fails, expected) in [
        (edge, false, "deleted"),
        (edge, true, "failed"),
        (cut, false, "deleted"),
        (cut, true, "failed"),
    ] {
        let fate = move |request: &Request| Fate {
            fault: (fails && request.kind == Kind::Lease)
                .then_some(Fault::Status(403, false, false)),
            ..Fate::default()
        };
        let (outcomes, _) = reaped(cluster, fate).await;
        let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome);
        assert_eq!(outcomes.collect::<Vec<_>>(), [expected], "{cluster}");
    }
}

/// The other Leases are listed again once a minute, however many nodes and pods there are. Half a
/// minute after the run began, the Lease is renewed by `holder`.
#[tokio::test(start_paused = true)]
async fn the_other_leases_are_listed_again_after_a_minute() {
    let lease = |holder: &str, renewed: &str| {
        format!("Lease shop/leader: {{spec: {{holderIdentity: {holder}, renewTime: '{renewed}'}}}}")
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
        let settings = run(REAL, Target::default());
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
