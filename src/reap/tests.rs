//! Whole runs on the simulated server, whose cluster changes while they are under way.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use pod_reaper_test_support::{
    objects::all_commands,
    samples::{NOW, objects, with, yaml},
    simulated::{self, Fate, Fault, Kind, Objects, Refusal, Request, Server},
};
use serde_json::Value;

use super::*;
use crate::{cli::Cli, exit::CouldNotRun, run::run_on, settings::Settings};

const CLUSTER: &str = "
    Node ds05: {ready: 'True'}
    Node ds06: {}
    Namespace shop: {}
";
/// The usual arguments, with which a pod is stuck after a minute.
const DELETE: &str = "--yes --reap-older-than=1m";
/// The moments of a change: when a run begins, and before its first delete, when it reads the namespaces again.
pub const START: (Kind, usize) = (Kind::NodeRows, 1);
const BEFORE_DELETES: (Kind, usize) = (Kind::Namespaces, 2);

/// A cluster that becomes another one with the given request of a kind.
struct Changing {
    objects: Objects,
    later: Vec<Value>,
    kind: Kind,
    left: usize,
    events: Vec<Value>,
}

impl simulated::Cluster for Changing {
    fn now(&self) -> Timestamp {
        self.objects.now
    }

    fn objects(&self, kind: &str) -> Vec<Value> {
        self.objects.objects(kind)
    }

    fn sent(&mut self, request: &Request) {
        if request.kind == self.kind && self.left > 0 {
            self.left -= 1;
            if self.left == 0 {
                // The pods that the run has deleted stay gone.
                let now = std::mem::take(&mut self.objects.objects);
                let is_there = |it: &Value| {
                    now.iter()
                        .any(|its| its["metadata"]["name"] == it["metadata"]["name"])
                };
                let later = self
                    .later
                    .drain(..)
                    .filter(|it| it["kind"] != "Pod" || is_there(it));
                self.objects.objects = later.collect();
            }
        }
        if request.kind == Kind::Event {
            self.events.push(request.body.clone());
        }
    }

    fn write(&mut self, request: &Request, takes_effect: bool) -> Result<Value, Refusal> {
        self.objects.write(request, takes_effect)
    }
}

/// A run that has ended: its report, the requests that it sent and when, its Events, and the data of the history.
pub struct Ran {
    pub report: Result<Value, CouldNotRun>,
    pub trace: Vec<String>,
    pub events: Vec<Value>,
    pub notes: Value,
}

impl Ran {
    /// The note of node `ds06`; null if there is none.
    pub fn note(&self) -> Value {
        let note = self.notes["uid-ds06"].as_str();
        note.map_or(Value::Null, |note| {
            serde_json::from_str(note).expect("JSON")
        })
    }

    /// The name of each pod, with its outcome, or else its reason.
    pub fn pods(&self) -> Vec<String> {
        let report = self.report.as_ref().expect("a report");
        let pods = report["pods"].as_array().expect("pods").iter();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        pods.map(|pod| {
            let told = text(&pod["outcome"]).or(text(&pod["reason"]));
            format!(
                "{} {}",
                pod["name"].as_str().expect("a name"),
                told.expect("either")
            )
        })
        .collect()
    }
}

/// Runs with these arguments on a cluster that changes by `later` at the moment `from`. Only from then on, requests meet their `fate`.
pub async fn ran(
    args: &str,
    cluster: &str,
    (later, from): (&str, (Kind, usize)),
    mut fate: impl FnMut(&Request) -> Fate + Send + 'static,
) -> Ran {
    let args = ["pod-reaper"].into_iter().chain(args.split_whitespace());
    let settings = Settings::from(Cli::try_from_args(args.map(Into::into)).expect("options"));
    let now = with(yaml(CLUSTER), yaml(cluster));
    let (kind, left) = from;
    let changing = Changing {
        objects: Objects::new(NOW.parse().expect("a moment"), objects(&now)),
        later: objects(&with(now, yaml(later))),
        kind,
        left,
        events: Vec::new(),
    };
    let mut seen = 0;
    let fates = move |request: &Request| {
        seen += usize::from(request.kind == kind);
        if seen < left {
            Fate::default()
        } else {
            fate(request)
        }
    };
    let server = Server::with_faults(changing, fates);
    let (_signal, stop) = Stop::manual(settings.deadline);
    let cluster = Cluster::new(server.client(), stop.clone());
    let report = run_on(&cluster, &settings, false, &stop).await;
    let state = server.lock();
    Ran {
        report: report.map(|run| serde_json::to_value(run.report()).expect("JSON")),
        trace: state.trace.clone(),
        events: state.cluster.events.clone(),
        notes: state
            .cluster
            .objects
            .history()
            .map(|it| it["data"].clone())
            .unwrap_or_default(),
    }
}

/// Reaps the stuck pods of a cluster that changes before the first delete. Returns their outcomes.
async fn reaped(
    cluster: &str,
    later: &str,
    fate: impl FnMut(&Request) -> Fate + Send + 'static,
) -> Vec<String> {
    ran(DELETE, cluster, (later, BEFORE_DELETES), fate)
        .await
        .pods()
}

pub fn calm(_: &Request) -> Fate {
    Fate::default()
}

/// The server refuses all requests of this kind, if there is one.
fn refused(kind: Option<Kind>) -> impl FnMut(&Request) -> Fate + Send {
    move |request| Fate {
        fault: (kind == Some(request.kind)).then_some(Fault::Status(403, false, false)),
        ..Fate::default()
    }
}

const FREE: &str = "Pod shop/db-0: {metadata: {resourceVersion: '1'}}";
/// Its node failed a moment after the machine was heard, by a Lease that is not read again.
const HEARD: &str = "{Node ds06: {since: 300, renewed: 7000}, Pod shop/db-0: {}, Lease shop/leader: {holder: ds06_1, renewed: 360}}";
/// A week of grace, which ends early on a silent node.
const DRAINED: &str = "Pod shop/db-0: {metadata: {deletionTimestamp: '2026-02-07T02:45:00Z', deletionGracePeriodSeconds: 604800}}";
/// Kubernetes would remove the PVC with the pod that owns it. Nothing wants either.
const OWNED: &str = "
    Pod shop/db-0: {uses: data}
    PersistentVolumeClaim shop/data: {volume: pv-1, metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: db-0, uid: uid-shop-db-0}]}}
    PersistentVolume pv-1: {}
    StatefulSet shop/db: {spec: {replicas: 0}}
";
/// The data is on the disk of the node. Nothing wants the pod again.
const LOCAL: &str = "
    Pod shop/db-0: {uses: data}
    PersistentVolume pv-1: {claim: shop/data, on: ds06}
    StatefulSet shop/db: {spec: {replicas: 0}}
";
/// The data is on the disk of the node. The namespace is being deleted.
const ENDING: &str = "
    Namespace shop: {metadata: {deletionTimestamp: '2026-01-31T01:00:00Z'}}
    Pod shop/db-0: {uses: data}
    PersistentVolume pv-1: {claim: shop/data, on: ds06}
    StatefulSet shop/db: {spec: {replicas: 1}}
";

/// The row says what changed, or could not be read again, after the pod was judged. A fact that could not be read is no change.
#[tokio::test(start_paused = true)]
async fn a_pod_is_judged_by_what_is_true_right_before_its_delete() {
    let changed =
        |spec: &str| format!("Pod shop/db-0: {{metadata: {{resourceVersion: '2'}}, spec: {spec}}}");
    let pvc = changed("{volumes: [{name: late, persistentVolumeClaim: {claimName: late}}]}");
    let (elsewhere, nowhere) = (changed("{nodeName: ds05}"), changed("{nodeName: null}"));
    let set = Some(Kind::StatefulSet);
    let lease = Some(Kind::Lease);
    for (judged, later, fault, expected) in [
        (FREE, changed("{}").as_str(), None, "deleted"),
        (FREE, &pvc, None, "changed"),
        (FREE, &elsewhere, None, "changed"),
        (FREE, &nowhere, None, "changed"),
        (FREE, "Node ds06: {renewed: 1}", None, "node-changed"),
        (FREE, "{}", lease, "failed"),
        (
            FREE,
            "Namespace shop: {metadata: {labels: {pod-reaper.io/skip: 'true'}}}",
            None,
            "opted-out",
        ),
        (DRAINED, "{}", None, "deleted"),
        (DRAINED, "{}", lease, "failed"),
        (HEARD, "{}", None, "deleted"),
        (HEARD, "Node ds06: {since: 1200}", None, "node-changed"),
        (OWNED, "{}", None, "deleted"),
        (
            OWNED,
            "StatefulSet shop/db: {spec: {replicas: 1}}",
            None,
            "changed",
        ),
        (OWNED, "{}", set, "failed"),
        (LOCAL, "{}", None, "deleted"),
        (LOCAL, "StatefulSet shop/db: null", None, "deleted"),
        (
            LOCAL,
            "StatefulSet shop/db: {spec: {replicas: 1}}",
            None,
            "changed",
        ),
        (
            LOCAL,
            "StatefulSet shop/db: {spec: {replicas: 1, ordinals: {start: 1}}}",
            None,
            "deleted",
        ),
        (
            LOCAL,
            "StatefulSet shop/db: {metadata: {uid: another}, spec: {replicas: 1}}",
            None,
            "changed",
        ),
        (LOCAL, "{}", set, "failed"),
        (ENDING, "{}", None, "deleted"),
        (ENDING, "{}", set, "deleted"),
        (
            ENDING,
            "Namespace shop: {metadata: {deletionTimestamp: null}}",
            None,
            "changed",
        ),
    ] {
        let pods = reaped(judged, later, refused(fault)).await;
        assert_eq!(
            pods,
            [format!("db-0 {expected}")],
            "{judged} {later} {fault:?}"
        );
    }
}

/// A read that fails keeps the pod, and only the permission to list other Leases may be missing.
#[tokio::test(start_paused = true)]
async fn what_could_not_be_read_keeps_the_pod() {
    let page = Fault::Status(403, true, false);
    let refused = Fault::Status(403, false, false);
    let broken = Fault::Status(500, false, false);
    for (pod, (kind, selector), fault, expected) in [
        (
            // If --all is set, finished pods are also in a list of their own.
            "Pod shop/db-0: {phase: Failed}",
            (Kind::Pods, "spec.nodeName=ds06"),
            broken,
            "facts-unread",
        ),
        (FREE, (Kind::OtherLeases, ""), refused, "would-delete"),
        (FREE, (Kind::OtherLeases, ""), page, "facts-unread"),
        (DRAINED, (Kind::OtherLeases, ""), refused, "not-overdue"),
        (DRAINED, (Kind::OtherLeases, ""), page, "not-overdue"),
    ] {
        let fate = move |request: &Request| Fate {
            fault: (request.kind == kind && request.selector.starts_with(selector))
                .then_some(fault),
            ..Fate::default()
        };
        let with_lease = format!("{pod}\nLease shop/leader: {{holder: ds06_1, renewed: 7000}}");
        let ran = ran("--dry-run --all", &with_lease, ("{}", START), fate).await;
        assert_eq!(
            ran.pods(),
            [format!("db-0 {expected}")],
            "{kind:?} {fault:?}"
        );
    }
}

/// A run judges nothing without the API server's clock.
#[tokio::test(start_paused = true)]
async fn without_a_date_nothing_is_deleted() {
    let undated = |kind| {
        move |request: &Request| Fate {
            fault: (request.kind == kind).then_some(Fault::NoDate),
            ..Fate::default()
        }
    };
    let begun = ran(DELETE, FREE, ("{}", START), undated(Kind::NodeRows)).await;
    assert!(begun.report.is_err(), "{:?}", begun.report);
    assert_eq!(
        reaped(FREE, "{}", undated(Kind::Node)).await,
        ["db-0 failed"]
    );
}

/// A run keeps 16 owners of an object, and one more, which shows that there are others. The pod may be one of them.
#[tokio::test(start_paused = true)]
async fn a_pvc_with_more_owners_than_are_kept_is_unverified() {
    let others = "{apiVersion: v1, kind: Pod, name: x, uid: x}, ".repeat(16);
    let owned = OWNED.replace("ownerReferences: [", &format!("ownerReferences: [{others}"));
    let wanted = owned.replace("replicas: 0", "replicas: 1");
    let ran = ran("--dry-run", &wanted, ("{}", START), calm).await;
    assert_eq!(ran.pods(), ["db-0 volume-unverified"]);
}

/// A node may fail after all nodes were listed. Its silence then tells nothing about the clock.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_no_longer_ready_is_not_asked_about_the_clock() {
    let cluster = format!("{FREE}\nNode ds04: {{ready: 'True', lease: null}}");
    let failed = "Node ds05: {ready: Unknown, renewed: 7000}";
    let ran = ran("--dry-run", &cluster, (failed, (Kind::Node, 1)), calm).await;
    assert_eq!(ran.pods(), ["db-0 would-delete"]);
}

/// A StatefulSet may have made the PVC again since. So it is read after each PVC that it lets go.
#[tokio::test(start_paused = true)]
async fn a_stateful_set_is_read_after_the_pvcs_that_it_lets_go() {
    for judged in [OWNED, LOCAL] {
        let slow = |request: &Request| Fate {
            back: Duration::from_secs(u64::from(request.kind == Kind::Claim)),
            ..Fate::default()
        };
        let ran = ran("--dry-run", judged, ("{}", START), slow).await;
        assert_eq!(ran.pods(), ["db-0 would-delete"], "{judged}");
        let at = |path: &str| {
            let sent = ran.trace.iter().find(|sent| sent.contains(path));
            sent.and_then(|sent| sent.split_once(" ms")?.0.parse::<u64>().ok())
        };
        let of_claim = at("/persistentvolumeclaims/").expect("it is read");
        assert_eq!(at("/statefulsets/"), Some(of_claim + 1_000), "{judged}");
    }
}

/// A dry run sends no write and no Event. It proves no guard, unlike a run that may delete: here is none.
#[tokio::test(start_paused = true)]
async fn a_dry_run_only_reads() {
    let ran = async |args| ran(args, FREE, ("{}", START), calm).await;
    let dry = ran("--dry-run --require-guard").await;
    assert_eq!(dry.pods(), ["db-0 would-delete"]);
    assert!(
        dry.trace.iter().all(|sent| sent.contains(" ms: GET ")),
        "{:?}",
        dry.trace
    );
    let unguarded = ran("--yes --require-guard").await.report;
    assert!(
        matches!(unguarded, Err(CouldNotRun::Unguarded(_))),
        "{unguarded:?}"
    );
}

/// The history, empty.
const HISTORY: &str = "ConfigMap pod-reaper/pod-reaper-history: {data: {}}";

/// A delete whose response was lost may have had an effect, and is not forgotten. The note is taken back only if no pod was touched.
#[tokio::test(start_paused = true)]
async fn a_pod_that_may_be_gone_stays_noted() {
    let lost = Fault::Status(504, true, true);
    let failed = Fault::Status(504, true, false);
    let page = Fault::Status(404, true, false);
    for (faults, outcome, trace) in [
        (vec![(Kind::Delete, lost)], "gone", Some("gone")),
        (vec![(Kind::Delete, failed)], "deleted", Some("gone")),
        (
            vec![(Kind::Delete, failed); 4],
            "failed",
            Some("may-be-gone"),
        ),
        (
            vec![(Kind::Delete, lost), (Kind::PodUids, page)],
            "failed",
            Some("may-be-gone"),
        ),
        (
            vec![(Kind::PodUids, page)],
            "unverified",
            Some("may-be-gone"),
        ),
        (vec![(Kind::Delete, Fault::Denied(403))], "denied", None),
        (
            vec![(Kind::Delete, Fault::Busy(429, None)); 4],
            "failed",
            None,
        ),
        (vec![(Kind::Node, page)], "failed", None),
    ] {
        let mut left = faults.clone();
        let fate = move |request: &Request| {
            let is_met = left.first().is_some_and(|(kind, _)| *kind == request.kind);
            Fate {
                fault: is_met.then(|| left.remove(0).1),
                ..Fate::default()
            }
        };
        let all = format!("{FREE}\n{HISTORY}");
        let ran = ran(DELETE, &all, ("{}", BEFORE_DELETES), fate).await;
        assert_eq!(ran.pods(), [format!("db-0 {outcome}")], "{faults:?}");
        let pod = &ran.note()["pods"][0];
        assert_eq!(pod["trace"].as_str(), trace, "{faults:?}");
        assert_eq!(ran.note().is_null(), trace.is_none(), "{faults:?}");
    }
}

/// A pod of a Job that has finished, which its finalizer still holds, and a pod that goes.
const HELD: &str = "
    Pod shop/free-0: {status: {phase: Failed}}
    Pod shop/held-0: {metadata: {finalizers: [batch.kubernetes.io/job-tracking]}, status: {phase: Failed}}
";

/// A pod that was seen to be gone stays gone. A pod that cannot be read may be the one that was deleted. The looks for a pod that its
/// Job keeps become rarer, because each makes an old API server read every pod.
#[tokio::test(start_paused = true)]
async fn a_list_verifies_what_it_shows() {
    for (fault, first, pods) in [
        (
            Fault::Status(403, false, false),
            2,
            ["free-0 deleted", "held-0 unverified"],
        ),
        (
            Fault::Malformed,
            1,
            ["free-0 unverified", "held-0 unverified"],
        ),
    ] {
        let mut looks = 0;
        let fate = move |request: &Request| {
            looks += usize::from(request.kind == Kind::PodUids);
            let fails = request.kind == Kind::PodUids && looks >= first;
            Fate {
                fault: fails.then_some(fault),
                ..Fate::default()
            }
        };
        assert_eq!(reaped(HELD, "{}", fate).await, pods, "{fault:?}");
    }
    let Ran { trace, .. } = ran(DELETE, HELD, ("{}", BEFORE_DELETES), calm).await;
    let looks = trace
        .iter()
        .filter(|sent| sent.contains("/pods?") && !sent.contains("resourceVersion"));
    let times = looks
        .filter_map(|sent| sent.split_once(" ms: GET "))
        .map(|(at, _)| at);
    let times = times.collect::<Vec<_>>();
    assert_eq!(
        times,
        ["0", "250", "750", "1750", "3750", "5750", "7750", "9750"]
    );
}

/// A reading of the node is shared for so short a time that slow deletes still find it valid.
#[tokio::test(start_paused = true)]
async fn the_node_is_read_again_before_its_reading_is_too_old_for_a_slow_delete() {
    let many = (0..4 * MAX_IN_FLIGHT).map(|at| format!("Pod shop/a-{at}: {{}}\n"));
    let fate = |request: &Request| Fate {
        there: Duration::from_secs(if request.kind == Kind::Delete { 2 } else { 0 }),
        ..Fate::default()
    };
    let pods = reaped(&many.collect::<String>(), "{}", fate).await;
    assert!(pods.iter().all(|pod| pod.ends_with(" deleted")), "{pods:?}");
}

/// A heartbeat that one pod shows also applies to the node's pods whose turn comes later.
#[tokio::test(start_paused = true)]
async fn what_a_changed_pod_shows_of_the_machine_keeps_its_other_pods() {
    let judged = "{Pod shop/db-0: {metadata: {resourceVersion: '1'}}, Pod shop/free-0: {}}";
    for (time, pods) in [
        (
            "2026-01-31T02:59:59Z",
            ["db-0 changed", "free-0 node-changed"],
        ),
        ("2026-01-30T00:00:00Z", ["db-0 deleted", "free-0 deleted"]),
    ] {
        let later = format!(
            "Pod shop/db-0: {{metadata: {{resourceVersion: '2', managedFields: [{{manager: Patroni, operation: Update, time: '{time}'}}]}}}}"
        );
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
        assert_eq!(reaped(judged, &later, fate).await, pods, "{time}");
    }
}

const OF_JOB: &str = "Pod shop/job-0: {metadata: {finalizers: [batch.kubernetes.io/job-tracking]}}";

/// A dry run of the delete comes first, so that a webhook which refuses the delete leaves no pod that is set to `Failed`. A pod that
/// changed is judged once more, and once more after our own patch, which changes the pod too. A pod that was set to
/// `Failed` and is not deleted is a failure, whatever keeps the pod.
#[tokio::test(start_paused = true)]
async fn the_pod_of_a_job_is_set_to_failed_before_it_is_deleted() {
    let conflict = (Kind::Delete, Fault::Status(409, false, false));
    let invalid = (Kind::Patch, Fault::Denied(422));
    let busy = (Kind::Patch, Fault::Busy(503, None));
    let another = "Pod shop/job-0: {metadata: {uid: another}}";
    for (later, faults, outcome, asked) in [
        ("{}", vec![], "still-there", "DRY-RUN PATCH DELETE"),
        (
            "{}",
            vec![conflict; 2],
            "still-there",
            "DRY-RUN PATCH DELETE GET DELETE GET DELETE",
        ),
        (
            "{}",
            vec![conflict; 3],
            "failed",
            "DRY-RUN PATCH DELETE GET DELETE GET DELETE",
        ),
        // The patch is refused by admission, or because another pod now has the name.
        ("{}", vec![invalid], "denied", "DRY-RUN PATCH GET"),
        (
            "{}",
            vec![busy],
            "still-there",
            "DRY-RUN PATCH PATCH DELETE",
        ),
        (
            "{}",
            vec![busy; 4],
            "failed",
            "DRY-RUN PATCH PATCH PATCH PATCH",
        ),
        (
            "{}",
            vec![(Kind::Delete, Fault::Busy(429, None)); 4],
            "failed",
            "DRY-RUN PATCH DELETE DELETE DELETE DELETE",
        ),
        // A delete that is refused leaves the pod as it is.
        (
            "{}",
            vec![(Kind::DryRun, Fault::Denied(403))],
            "denied",
            "DRY-RUN",
        ),
        (
            "{}",
            vec![(Kind::DryRun, Fault::Webhook)],
            "denied",
            "DRY-RUN",
        ),
        (
            "{}",
            vec![(Kind::DryRun, Fault::Busy(503, None))],
            "still-there",
            "DRY-RUN DRY-RUN PATCH DELETE",
        ),
        (
            "{}",
            [
                vec![(Kind::DryRun, Fault::Busy(503, None)); 3],
                vec![busy; 3],
                vec![(Kind::Delete, Fault::Busy(503, None)); 3],
            ]
            .concat(),
            "still-there",
            "DRY-RUN DRY-RUN DRY-RUN DRY-RUN PATCH PATCH PATCH PATCH DELETE DELETE DELETE DELETE",
        ),
        (
            "{}",
            vec![(Kind::DryRun, Fault::Lost(true)); 4],
            "failed",
            "DRY-RUN DRY-RUN DRY-RUN DRY-RUN",
        ),
        (another, vec![], "changed", "DRY-RUN GET"),
    ] {
        let mut left = faults.clone();
        let fate = move |request: &Request| {
            let is_met = left.first().is_some_and(|(kind, _)| *kind == request.kind);
            Fate {
                fault: is_met.then(|| left.remove(0).1),
                ..Fate::default()
            }
        };
        let ran = ran(DELETE, OF_JOB, (later, BEFORE_DELETES), fate).await;
        let verbs = ran.trace.iter().filter(|sent| sent.contains("/pods/job-0"));
        let verbs = verbs.filter_map(|sent| match sent.split_once(" ms: ")?.1.split(' ').next() {
            Some("DELETE") if sent.contains("dryRun=All") => Some("DRY-RUN"),
            verb => verb,
        });
        assert_eq!(verbs.collect::<Vec<_>>().join(" "), asked, "{faults:?}");
        assert_eq!(ran.pods(), [format!("job-0 {outcome}")], "{faults:?}");
    }
}

/// Nothing ends the run between the patch and the delete: otherwise the Job would count a failure for a pod that still exists. The
/// response to the patch may be lost. A run that has to end while it reads a node begins no delete.
#[tokio::test(start_paused = true)]
async fn a_run_that_has_to_end_finishes_the_pod_that_it_has_changed_and_begins_no_other() {
    let free = "Pod shop/job-0: {}";
    for (pod, slow, fault, outcome) in [
        (OF_JOB, Kind::Patch, None, "still-there"),
        (OF_JOB, Kind::Patch, Some(Fault::Lost(true)), "still-there"),
        (free, Kind::Node, None, "interrupted"),
    ] {
        let mut count = 0;
        let late = move |request: &Request| {
            count += usize::from(request.kind == slow);
            let is_first = request.kind == slow && count == 1;
            Fate {
                back: Duration::from_secs(if is_first { 4 } else { 0 }),
                fault: fault.filter(|_| is_first),
                ..Fate::default()
            }
        };
        let args = format!("{DELETE} --deadline=5s");
        let ran = ran(&args, pod, ("{}", BEFORE_DELETES), late).await;
        assert_eq!(ran.pods(), [format!("job-0 {outcome}")], "{:?}", ran.trace);
        let deletes = ran.trace.iter().any(|sent| sent.contains(": DELETE "));
        assert_eq!(deletes, pod == OF_JOB, "{:?}", ran.trace);
    }
}

/// The five seconds are counted from the moment before the reading, because the response may be old when it arrives: `back` is the
/// way of the reading's response, and `there` that of the delete.
#[tokio::test(start_paused = true)]
async fn no_pod_is_deleted_by_a_reading_that_was_begun_more_than_five_seconds_ago() {
    let seconds = Duration::from_secs_f64;
    for (slow, back, there, expected) in [
        (Kind::Node, 0.0, 4.4, "deleted"),
        (Kind::Node, 0.0, 5.1, "failed"),
        (Kind::Node, 4.4, 0.0, "deleted"),
        (Kind::Node, 5.1, 0.0, "failed"),
        (Kind::Node, 3.0, 2.1, "failed"),
        (Kind::Lease, 3.0, 1.4, "deleted"),
        (Kind::Lease, 3.0, 2.1, "failed"),
    ] {
        let fate = move |request: &Request| Fate {
            there: seconds(if request.kind.writes() { there } else { 0.0 }),
            back: seconds(if request.kind == slow { back } else { 0.0 }),
            ..Fate::default()
        };
        let pods = reaped(FREE, "{}", fate).await;
        assert_eq!(
            pods,
            [format!("db-0 {expected}")],
            "{slow:?} {back} {there}"
        );
    }
}

/// The other Leases are read again after a minute, however many pods there are. While the run deletes, `later` becomes true.
#[tokio::test(start_paused = true)]
async fn the_other_leases_are_listed_again_after_a_minute() {
    let pods = (0..400).map(|at| format!("    Pod shop/a-{at}: {{}}\n"));
    let old = "Lease shop/leader: {holder: ds06_1, renewed: 7000}";
    let all = format!("    {old}\n{}", pods.collect::<String>());
    for (later, fails, then) in [
        (old, false, "deleted"),
        (
            "Lease shop/leader: {holder: ds06_2, renewed: 1}",
            false,
            "node-changed",
        ),
        (
            "Lease shop/leader: {holder: ds05_1, renewed: 1}",
            false,
            "deleted",
        ),
        (old, true, "failed"),
    ] {
        let fate = move |request: &Request| Fate {
            fault: (fails && request.kind == Kind::OtherLeases)
                .then_some(Fault::Status(403, false, false)),
            there: Duration::from_secs(if request.kind == Kind::Delete { 2 } else { 0 }),
            ..Fate::default()
        };
        let ran = ran(DELETE, &all, (later, (Kind::Delete, 30)), fate).await;
        let pods = ran.pods();
        let outcomes = pods.iter().filter_map(|pod| pod.split(' ').nth(1));
        assert_eq!(
            outcomes.collect::<BTreeSet<_>>(),
            BTreeSet::from(["deleted", then]),
            "{later} {fails}"
        );
    }
}

/// Stale Leases that name a node cost no request each, so that a slow server holds up neither its pods nor others'.
#[tokio::test(start_paused = true)]
async fn many_stale_leases_and_a_slow_server_hold_up_nobody() {
    let leases =
        (0..20).map(|at| format!("    Lease shop/l{at}: {{holder: ds06_{at}, renewed: 7000}}\n"));
    let pods = "    Node ds07: {}\n    Pod shop/db-0: {}\n    Pod shop/web-0: {node: ds07}\n";
    let cluster = format!("{pods}{}", leases.collect::<String>());
    let fate = |_: &Request| Fate {
        there: Duration::from_millis(300),
        ..Fate::default()
    };
    let ran = ran(DELETE, &cluster, ("{}", START), fate).await;
    assert_eq!(ran.pods(), ["db-0 deleted", "web-0 deleted"]);
    let lists = ran.trace.iter().filter(|it| it.contains("/leases?"));
    assert_eq!(lists.count(), 1, "{:#?}", ran.trace);
}

/// The API server names the nodes that a volume allows.
#[tokio::test(start_paused = true)]
async fn a_volume_that_another_node_reaches_lets_its_pod_go() {
    for (node, outcome) in [("ds05", "deleted"), ("ds06", "local-volume")] {
        let cluster = format!(
            "StatefulSet shop/db: {{spec: {{replicas: 1}}}}\nPod shop/db-0: {{uses: data}}\nPersistentVolume pv: {{claim: shop/data, on: {node}}}"
        );
        let ran = ran(DELETE, &cluster, ("{}", START), |_: &Request| {
            Fate::default()
        })
        .await;
        assert_eq!(ran.pods(), [format!("db-0 {outcome}")], "{:?}", ran.trace);
    }
}

/// Four tries of ten seconds each, and the pauses between them.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_never_sent_costs_its_time_limit() {
    let began = tokio::time::Instant::now();
    let fate = |request: &Request| Fate {
        fault: (request.kind == Kind::Node).then_some(Fault::Hangs(false)),
        ..Fate::default()
    };
    assert_eq!(reaped(FREE, "{}", fate).await, ["db-0 failed"]);
    assert!(began.elapsed() < Duration::from_secs(45));
}

/// A command for this cluster carries the cluster that the user named.
#[tokio::test(start_paused = true)]
async fn each_printed_command_names_the_cluster_that_was_typed() {
    let cluster = "
        StatefulSet shop/db: {spec: {volumeClaimTemplates: [{metadata: {name: data}}]}}
        Pod shop/db-0: {uses: data-db-0, metadata: {labels: {apps.kubernetes.io/pod-index: '0'}}}
        PersistentVolume pv-1: {claim: shop/data-db-0, on: ds06}
        Pod shop/held-0: {metadata: {finalizers: [example.org/hold]}}
        Pod shop/lost-0: {uses: lost}
        PersistentVolumeClaim shop/lost: {volume: gone}
    ";
    let args = "--dry-run --kubeconfig=/etc/it's --context=a;b";
    let report = ran(args, cluster, ("{}", START), calm)
        .await
        .report
        .expect("a report");
    let commands = all_commands(&report).collect::<Vec<_>>().join("\n");
    let named = r#"kubectl --kubeconfig "/etc/it's" --context 'a;b' "#;
    assert!(commands.contains("delete --raw"), "{commands}");
    assert_eq!(
        commands.matches("kubectl ").count(),
        commands.matches(named).count(),
        "{commands}"
    );
}

/// A list of VolumeAttachments that fails says nothing about the volumes, also after the deletes.
#[tokio::test(start_paused = true)]
async fn volumes_of_which_nobody_knows_move() {
    let cluster = "{Pod shop/db-0: {uses: data}, PersistentVolume pv: {claim: shop/data}}";
    for status in [403, 500] {
        for (args, expected) in [
            (
                "--dry-run",
                "Look at the console of ds06 before the next run",
            ),
            // Nothing that is known attaches it, so another node may have it already.
            (DELETE, "POWER OFF ds06, unless it is off or boots. Since"),
        ] {
            let fate = move |request: &Request| Fate {
                fault: (request.kind == Kind::Attachments)
                    .then_some(Fault::Status(status, false, false)),
                ..Fate::default()
            };
            let report = ran(args, cluster, ("{}", START), fate).await.report;
            let report = report.expect("a report");
            let step = &report["steps"][0];
            let what = step["what"].as_str().expect("a sentence");
            assert!(what.contains(expected), "{status} {args}: {report:#}");
            assert_eq!(step["when"], "now", "{report:#}");
            assert_eq!(report["nodes"][0]["volumeAttachments"], Value::Null);
        }
    }
}
