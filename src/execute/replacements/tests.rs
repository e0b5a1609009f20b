//! Tests of the wait for replacements.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;
use pod_reaper_test_support::{
    samples::{NOW, objects, with, yaml},
    sentences::Sentences,
    simulated::{Fate, Fault, Kind, Objects, Request, Server},
};
use serde_json::Value;
use tokio::sync::watch::Sender;

use super::*;
use crate::{
    cluster::Mode,
    outcome::OutcomeCode,
    report::{
        Report, RunRecord,
        samples::{audit, judged, run},
    },
    run::run_on,
    selector::Target,
    settings::Settings,
};

const DB: &str = "Pod shop/db-0: {}";
const WEB: &str = "
    Pod shop/web-5d4f-a:
        metadata:
            labels: {pod-template-hash: 5d4f, app: web}
            ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: uid-of-web, controller: true}]
";
const JOB: &str = "
    Pod shop/web-a:
        metadata:
            labels: {batch.kubernetes.io/controller-uid: uid-of-web}
            ownerReferences: [{apiVersion: batch/v1, kind: Job, name: web, uid: uid-of-web, controller: true}]
";
const REPLICATION_CONTROLLER: &str = "
    Pod shop/web-a:
        metadata:
            labels: {app: web}
            ownerReferences: [{apiVersion: v1, kind: ReplicationController, name: web, uid: uid-of-web, controller: true}]
";

/// Pods of one ReplicaSet.
fn three() -> String {
    ["a", "b", "c"]
        .map(|name| WEB.replace("5d4f-a:", &format!("5d4f-{name}:")))
        .concat()
}

/// Returns the objects that the API server has in place of `lost`. `new NAME` is a pod that the
/// controller of the first of `lost` created after the eviction. Its `ready: NODE` is short for the
/// status of a Ready pod.
fn after(lost: &[Value], described: &str) -> Vec<Value> {
    let first = lost.iter().find(|object| object["kind"] == "Pod").unwrap();
    let (mut new, mut others) = (Vec::new(), Value::Object(serde_json::Map::default()));
    for (key, mut more) in yaml(described).as_object().expect("a mapping").clone() {
        let Some(name) = key.strip_prefix("new ") else {
            others[key] = more;
            continue;
        };
        let base = "
            metadata: {deletionTimestamp: null, creationTimestamp: '2026-01-31T02:59:59Z'}
            spec: null
        ";
        let mut made = with(first.clone(), yaml(base));
        made["spec"] = yaml("{}");
        made["metadata"]["name"] = name.into();
        made["metadata"]["uid"] = format!("new-{name}").into();
        if let Some(Value::String(node)) =
            more.as_object_mut().and_then(|more| more.remove("ready"))
        {
            let ready = "
                status:
                    phase: Running
                    conditions: [{type: Ready, status: 'True', lastTransitionTime: '2026-01-31T03:00:07Z'}]
            ";
            made = with(made, yaml(ready));
            made["spec"]["nodeName"] = node.into();
        }
        new.push(with(made, more));
    }
    new.into_iter().chain(objects(&others)).collect()
}

/// The cluster in which `lost` was judged.
fn before(lost: &[Value]) -> Vec<Value> {
    let cluster = "{Node ds05: {ready: 'True'}, Node ds06: {}, Namespace shop: {}}";
    let cluster = objects(&yaml(cluster)).into_iter();
    cluster.chain(lost.iter().cloned()).collect()
}

struct Waited {
    /// The replacements by UID of the lost pod, as the report's JSON has them.
    found: BTreeMap<Uid, Replacement>,
    server: Server<Objects>,
    took: Duration,
}

type Signal = Sender<Option<(&'static str, Instant)>>;

/// Waits a minute for the replacements of `lost` on an API server that has `there`.
async fn waited(
    lost: &str,
    there: &str,
    fate: impl FnMut(&Request) -> Fate + Send + 'static,
    change: impl FnOnce(Server<Objects>, Signal),
) -> Waited {
    let lost = objects(&yaml(lost));
    let RunRecord { facts, plan, .. } = judged(&audit(), &before(&lost));
    let pods = plan.reaps().map(|judged| &judged.pod).collect::<Vec<_>>();
    let stuck = lost.iter().filter(|object| object["kind"] == "Pod");
    assert_eq!(pods.len(), stuck.count());
    let objects = before(&after(&lost, there));
    let server = Server::with_faults(Objects::new(facts.now, objects), fate);
    let (signal, stop) = Stop::manual(Duration::from_mins(8));
    let cluster = Cluster::new(server.client(), stop.clone());
    change(server.clone(), signal.clone());
    let began = Instant::now();
    let found = replacements(&cluster, &stop, &pods, Duration::from_mins(1), &|_| {}).await;
    assert_eq!(server.lock().not_understood, Vec::<String>::new());
    assert!(server.lock().most_at_once <= MAX_IN_FLIGHT);
    Waited {
        found,
        server,
        took: began.elapsed(),
    }
}

async fn plainly(lost: &str, there: &str) -> Waited {
    waited(lost, there, |_| Fate::default(), |_, _| {}).await
}

/// Waits as `plainly` does, while every request of this kind has the fault.
async fn failing(lost: &str, there: &str, kind: Kind, fault: Fault) -> Waited {
    let fate = move |request: &Request| Fate {
        fault: (request.kind == kind).then_some(fault),
        ..Fate::default()
    };
    waited(lost, there, fate, |_, _| {}).await
}

/// Calls `change` after so many milliseconds.
fn later(milliseconds: u64, change: impl FnOnce() + Send + 'static) {
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        change();
    });
}

fn terminate(signal: &Signal) {
    signal.send_replace(Some(("SIGTERM", Instant::now())));
}

fn of_db(waited: &Waited) -> (State, &str) {
    let found = &waited.found[&"uid-shop-db-0".into()];
    (found.state, found.cause.as_deref().unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn every_state_is_told_with_its_cause() {
    let another = |owner: &str| WEB.replace("apps/v1, kind: ReplicaSet", owner);
    let kruise = another("apps.kruise.io/v1alpha1, kind: DaemonSet");
    let daemon = another("apps/v1, kind: DaemonSet");
    let postgres = another("postgresql.example/v1, kind: Cluster");
    let db2 = "Pod shop/db-2: {}";
    let rows = [
        ("a StatefulSet's is back", DB, "new db-0: {ready: ds02}"),
        ("a Deployment's is back", WEB, "new web-5d4f-x: {ready: ds02}"),
        ("a ReplicationController's", REPLICATION_CONTROLLER, "new web-x: {ready: ds02}"),
        ("a Job's has finished", JOB, "new web-x: {spec: {nodeName: ds02}, status: {phase: Succeeded}}"),
        (
            "one that crashes again and again, and has no probe",
            DB,
            "new db-0: {ready: ds02, status: {containerStatuses: [{name: app, restartCount: 3, state: {running: {startedAt: '2026-01-31T03:00:09Z'}}}]}}",
        ),
        ("a DaemonSet's waits for its node", &daemon, "{}"),
        ("another DaemonSet's", &kruise, "{}"),
        ("another kind of controller's, which is not asked", &postgres, "{}"),
        ("a ReplicationController's, which is not asked, and whose pods are all found", REPLICATION_CONTROLLER, "{}"),
        (
            "a Job that is suspended",
            JOB,
            "Job shop/web: {status: {conditions: [{type: Suspended, status: 'True', reason: JobSuspended, message: Job suspended}]}}",
        ),
        (
            "a Job that has not failed",
            JOB,
            "Job shop/web: {status: {conditions: [{type: Failed, status: 'False', reason: Whatever, message: 'no'}]}}",
        ),
        (
            "a Job at its backoffLimit",
            JOB,
            "Job shop/web: {status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}]}}",
        ),
        (
            "a Job that ended without a word is told without a colon",
            JOB,
            "Job shop/web: {status: {conditions: [{type: Complete, status: 'True'}]}}",
        ),
        (
            "a Warning from before the eviction",
            DB,
            "
            StatefulSet shop/db: {spec: {replicas: 1}}
            Event shop/x: {regarding: {uid: uid-of-db}, type: Warning, reason: FailedCreate, note: 'exceeded quota: small',
                deprecatedLastTimestamp: '2026-01-30T03:00:02Z'}
            ",
        ),
        (
            "a quota, of a StatefulSet",
            DB,
            "
            StatefulSet shop/db: {spec: {replicas: 1}}
            Event shop/x: {regarding: {uid: uid-of-db}, type: Warning, reason: FailedCreate, note: 'exceeded quota: small',
                deprecatedLastTimestamp: '2026-01-31T03:00:02Z'}
            Event shop/y: {regarding: {uid: uid-of-db}, type: Warning, reason: FailedCreate, note: an older one,
                deprecatedLastTimestamp: '2026-01-31T02:00:02Z'}
            Event shop/z: {regarding: {uid: uid-of-other}, type: Warning, reason: FailedCreate, note: of another,
                deprecatedLastTimestamp: '2026-01-31T03:00:09Z'}
            ",
        ),
        (
            "a quota, of a ReplicaSet",
            WEB,
            "ReplicaSet shop/web: {spec: {replicas: 1}, status: {conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate, message: 'exceeded quota: small'}]}}",
        ),
        (
            "a ReplicaSet that has all that it wants",
            WEB,
            "
            new web-5d4f-old: {ready: ds02, metadata: {creationTimestamp: '2026-01-30T00:00:00Z'}}
            ReplicaSet shop/web: {spec: {replicas: 1}}
            ",
        ),
        (
            "an older sibling is none",
            WEB,
            "
            new web-5d4f-old: {ready: ds02, metadata: {creationTimestamp: '2026-01-30T00:00:00Z'}}
            ReplicaSet shop/web: {spec: {replicas: 2}}
            ",
        ),
        // Clocks may differ by 30 s.
        (
            "one that was made a little before the eviction, where nothing newer is there",
            WEB,
            "new web-5d4f-old: {ready: ds02, metadata: {creationTimestamp: '2026-01-31T01:04:40Z'}}",
        ),
        (
            "the same, where something newer is there",
            WEB,
            "
            new web-5d4f-old: {ready: ds02, metadata: {creationTimestamp: '2026-01-31T01:04:40Z'}}
            new web-5d4f-x: {status: {phase: Pending}}
            ",
        ),
        (
            "one that has failed is replaced in its turn",
            WEB,
            "
            new web-5d4f-x: {spec: {nodeName: ds02}, status: {phase: Failed}}
            ReplicaSet shop/web: {spec: {replicas: 1}}
            ",
        ),
        (
            "a Deployment's that a shutdown has ended with success",
            WEB,
            "
            new web-5d4f-x: {spec: {nodeName: ds02}, status: {phase: Succeeded}}
            ReplicaSet shop/web: {spec: {replicas: 1}}
            ",
        ),
        (
            "the same of a StatefulSet",
            DB,
            "
            new db-0: {spec: {nodeName: ds02}, status: {phase: Succeeded}}
            StatefulSet shop/db: {spec: {replicas: 1}}
            ",
        ),
        (
            "the old pod, by an API server that says it runs",
            DB,
            "
            new db-0: {ready: ds06, metadata: {uid: uid-shop-db-0}}
            StatefulSet shop/db: {spec: {replicas: 1}}
            ",
        ),
        ("the old pod is still there", DB, "{Pod shop/db-0: {}, StatefulSet shop/db: {spec: {replicas: 1}}}"),
        ("its StatefulSet was recreated", DB, "StatefulSet shop/db: {metadata: {uid: another}, spec: {replicas: 1}}"),
        ("its StatefulSet was deleted", DB, "{}"),
        ("no controller", "Pod shop/bare: {metadata: {ownerReferences: null}}", "{}"),
        ("scaled down", DB, "StatefulSet shop/db: {spec: {replicas: 0}}"),
        ("a rollout has taken over", WEB, "ReplicaSet shop/web: {spec: {replicas: 0}}"),
        // A StatefulSet is scaled down from its highest pod, so its number of replicas alone tells
        // which pods it wants.
        ("an ordinal beyond the two that are wanted", db2, "StatefulSet shop/db: {spec: {replicas: 2}}"),
        ("one of the three that are wanted", db2, "StatefulSet shop/db: {spec: {replicas: 3}}"),
        ("one of two, from ordinal 1", db2, "StatefulSet shop/db: {spec: {replicas: 2, ordinals: {start: 1}}}"),
        ("beyond the one, from ordinal 1", db2, "StatefulSet shop/db: {spec: {replicas: 1, ordinals: {start: 1}}}"),
        ("below the first ordinal", db2, "StatefulSet shop/db: {spec: {replicas: 2, ordinals: {start: 3}}}"),
        (
            "no room",
            DB,
            "new db-0: {status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable,
                message: '0/5 nodes are available: 1 node(s) were unreachable, 4 Insufficient memory.'}]}}",
        ),
        (
            "another controller's pod is none",
            WEB,
            "
            new web-5d4f-x: {ready: ds02, metadata: {ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: another, controller: true}]}}
            ReplicaSet shop/web: {spec: {replicas: 1}}
            ",
        ),
        (
            "a namesake of another kind of controller",
            DB,
            "
            new db-0: {ready: ds02, metadata: {ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: db, uid: uid-of-db, controller: true}]}}
            StatefulSet shop/db: {metadata: {uid: recreated}, spec: {replicas: 1}}
            ",
        ),
        (
            "a namesake of another controller",
            DB,
            "
            new db-0: {ready: ds02, metadata: {ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: other, uid: uid-of-other, controller: true}]}}
            StatefulSet shop/db: {metadata: {uid: recreated}, spec: {replicas: 1}}
            ",
        ),
        (
            "a namesake of none",
            DB,
            "
            new db-0: {ready: ds02, metadata: {ownerReferences: null}}
            StatefulSet shop/db: {metadata: {uid: recreated}, spec: {replicas: 1}}
            ",
        ),
        (
            "a namesake of its recreated StatefulSet",
            DB,
            "
            new db-0: {ready: ds02, metadata: {ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: recreated, controller: true}]}}
            StatefulSet shop/db: {metadata: {uid: recreated}, spec: {replicas: 1}}
            ",
        ),
        (
            "an image",
            DB,
            "new db-0: {spec: {nodeName: ds02}, status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ImagePullBackOff, message: Back-off pulling image}}}]}}",
        ),
        (
            "a volume that cannot be mounted",
            DB,
            "
            new db-0: {spec: {nodeName: ds02}, status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]}}
            Event shop/x: {regarding: {uid: new-db-0}, type: Warning, reason: FailedAttachVolume,
                note: Multi-Attach error for volume pvc-1, deprecatedLastTimestamp: '2026-01-31T03:00:02Z'}
            ",
        ),
        (
            "a volume that is attached still is named",
            "
            Pod shop/db-0: {uses: data}
            PersistentVolumeClaim shop/data: {volume: pvc-1}
            PersistentVolume pvc-1: {}
            VolumeAttachment csi-1: {spec: {nodeName: ds06, source: {persistentVolumeName: pvc-1}}}
            ",
            "
            new db-0: {spec: {nodeName: ds02}, status: {phase: Pending}}
            VolumeAttachment csi-1: {spec: {nodeName: ds06, source: {persistentVolumeName: pvc-1}}}
            ",
        ),
        (
            "a probe that fails",
            DB,
            "
            new db-0: {spec: {nodeName: ds02}, status: {phase: Running, conditions: [{type: Ready, status: 'False',
                reason: ContainersNotReady, message: 'containers with unready status: [app]'}]}}
            Event shop/x: {regarding: {uid: new-db-0}, type: Warning, reason: Unhealthy,
                note: 'Readiness probe failed: sealed', deprecatedLastTimestamp: '2026-01-31T03:00:02Z'}
            ",
        ),
        (
            "a container that crashes",
            DB,
            "new db-0: {spec: {nodeName: ds02}, status: {phase: Running, containerStatuses: [{name: app, state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}}]}}",
        ),
        (
            "it is Terminating as well",
            DB,
            "
            new db-0: {ready: ds02, metadata: {deletionTimestamp: '2026-01-31T03:00:20Z'}}
            StatefulSet shop/db: {spec: {replicas: 1}}
            ",
        ),
        (
            "as many of three are back as were made",
            &three(),
            "
            new web-5d4f-x: {ready: ds02}
            new web-5d4f-y: {ready: ds03}
            ReplicaSet shop/web: {spec: {replicas: 3}}
            ",
        ),
        (
            "of two indexes of a Job that of the one is back, and that of another is no replacement",
            "
            Pod shop/web-3-a:
                metadata:
                    labels: {batch.kubernetes.io/controller-uid: uid-of-web, batch.kubernetes.io/job-completion-index: '3'}
                    ownerReferences: [{apiVersion: batch/v1, kind: Job, name: web, uid: uid-of-web, controller: true}]
            Pod shop/web-5-a:
                metadata:
                    labels: {batch.kubernetes.io/controller-uid: uid-of-web, batch.kubernetes.io/job-completion-index: '5'}
                    ownerReferences: [{apiVersion: batch/v1, kind: Job, name: web, uid: uid-of-web, controller: true}]
            ",
            "
            new web-9-x: {ready: ds02, metadata: {labels: {batch.kubernetes.io/job-completion-index: '9'}}}
            new web-5-x: {ready: ds02, metadata: {labels: {batch.kubernetes.io/job-completion-index: '5'}}}
            Job shop/web: {}
            ",
        ),
    ];
    let mut sentences = Sentences::default();
    let mut told = String::new();
    for (name, lost, there) in rows {
        told += &format!("{name}\n");
        for found in plainly(lost, there).await.found.into_values() {
            let cause = found.cause.unwrap_or_default();
            let parts = cause.split_terminator("; ").map(|part| {
                // A number stands for a sentence of this program, not for a text of others that it
                // repeats.
                let (own, repeated) = part.split_once(": ").unwrap_or((part, ""));
                let number = sentences.numbered(own);
                format!("{number} {repeated}").trim_end().to_owned()
            });
            let name = found.name.unwrap_or_default();
            let told_of = [found.state.to_string(), name].into_iter().chain(parts);
            let told_of = told_of.filter(|part| !part.is_empty());
            told += &format!("    {}\n", told_of.collect::<Vec<_>>().join(", "));
        }
    }
    expect![[r#"
        a StatefulSet's is back
            back, db-0
        a Deployment's is back
            back, web-5d4f-x
        a ReplicationController's
            back, web-x
        a Job's has finished
            back, web-x, #1
        one that crashes again and again, and has no probe
            back, db-0, #2 3
        a DaemonSet's waits for its node
            pending, #3
        another DaemonSet's
            pending, #3
        another kind of controller's, which is not asked
            unknown, #4, #5
        a ReplicationController's, which is not asked, and whose pods are all found
            pending, #4, #6
        a Job that is suspended
            pending, #7 JobSuspended: Job suspended
        a Job that has not failed
            pending, #7
        a Job at its backoffLimit
            none, #8 BackoffLimitExceeded: Job has reached the specified backoff limit
        a Job that ended without a word is told without a colon
            none, #8
        a Warning from before the eviction
            pending, #7
        a quota, of a StatefulSet
            pending, #7, #9 FailedCreate: exceeded quota: small
        a quota, of a ReplicaSet
            pending, #7 FailedCreate: exceeded quota: small
        a ReplicaSet that has all that it wants
            none, #10 1
        an older sibling is none
            pending, #7
        one that was made a little before the eviction, where nothing newer is there
            back, web-5d4f-old
        the same, where something newer is there
            pending, web-5d4f-x, #11
        one that has failed is replaced in its turn
            pending, #7
        a Deployment's that a shutdown has ended with success
            pending, #7
        the same of a StatefulSet
            pending, #7
        the old pod, by an API server that says it runs
            pending, #7
        the old pod is still there
            pending, #7
        its StatefulSet was recreated
            pending, #7
        its StatefulSet was deleted
            none, #12
        no controller
            none, #13
        scaled down
            none, #10 0
        a rollout has taken over
            none, #10 0
        an ordinal beyond the two that are wanted
            none, #10 2
        one of the three that are wanted
            pending, #7
        one of two, from ordinal 1
            pending, #7
        beyond the one, from ordinal 1
            none, #10 1
        below the first ordinal
            none, #10 2
        no room
            pending, db-0, #11 Unschedulable: 0/5 nodes are available: 1 node(s) were unreachable, 4 Insufficient memory.
        another controller's pod is none
            pending, #7
        a namesake of another kind of controller
            pending, #7
        a namesake of another controller
            pending, #7
        a namesake of none
            pending, #7
        a namesake of its recreated StatefulSet
            back, db-0
        an image
            starting, db-0, #14 ImagePullBackOff: Back-off pulling image
        a volume that cannot be mounted
            starting, db-0, #14, #9 FailedAttachVolume: Multi-Attach error for volume pvc-1
        a volume that is attached still is named
            starting, db-0, #14, #15 pvc-1 ds06 1m
        a probe that fails
            not-ready, db-0, #16 ContainersNotReady: containers with unready status: [app], #9 Unhealthy: Readiness probe failed: sealed
        a container that crashes
            not-ready, db-0, #16 CrashLoopBackOff: back-off 10s
        it is Terminating as well
            pending, #7
        as many of three are back as were made
            back, web-5d4f-x
            back, web-5d4f-y
            pending, #7
        of two indexes of a Job that of the one is back, and that of another is no replacement
            pending, #7
            back, web-5-x

        #1 it has finished
        #2 its containers were restarted, _ times so far
        #3 it waits for its node
        #4 none was found
        #5 its Cluster was not asked, and may name new pods otherwise
        #6 its ReplicationController was not asked, and may name new pods otherwise
        #7 it is not made yet
        #8 its Job has ended
        #9 an Event says
        #10 its controller wants _ pods by now
        #11 it has no node
        #12 its controller no longer exists
        #13 it has no controller that would start another
        #14 its containers do not run yet
        #15 _ is still attached to _, _ after the pod went
        #16 it runs and is not Ready
    "#]]
    .assert_eq(&sentences.below(&told));
}

#[tokio::test(start_paused = true)]
async fn the_wait_ends_as_soon_as_all_are_settled() {
    let back = after(&objects(&yaml(DB)), "new db-0: {ready: ds02}");
    let change = |server: Server<Objects>, _| {
        later(2500, move || server.lock().cluster.objects.extend(back));
    };
    let set = "StatefulSet shop/db: {spec: {replicas: 1}}";
    let waited = waited(DB, set, |_| Fate::default(), change).await;
    let found = &waited.found[&"uid-shop-db-0".into()];
    assert_eq!(found.state, State::Back);
    assert_eq!(
        (found.node.as_deref(), found.uid.as_deref()),
        (Some("ds02"), Some("new-db-0"))
    );
    assert_eq!(found.since, Some("2026-01-31T03:00:07Z".parse().unwrap()));
    assert_eq!(waited.took.as_secs(), 7, "seen at 3 s, and once more");
    assert_eq!(
        waited.server.lock().requests,
        ["GET /api/v1/namespaces/shop/pods/db-0"; 4]
    );
}

/// A pod that is Ready at one look may have crashed by the next.
#[tokio::test(start_paused = true)]
async fn what_is_back_is_looked_at_once_more() {
    let back = "new db-0: {ready: ds02}";
    let crashed = after(
        &objects(&yaml(DB)),
        "new db-0: {ready: ds02, status: {conditions: [{type: Ready, status: 'False'}]}}",
    );
    let change = |server: Server<Objects>, _| {
        later(500, move || {
            let objects = &mut server.lock().cluster.objects;
            objects.retain(|object| object["metadata"]["name"] != "db-0");
            objects.extend(crashed);
        });
    };
    let waited = waited(DB, back, |_| Fate::default(), change).await;
    assert_eq!(of_db(&waited).0, State::NotReady);
}

/// The states that were found before the time limit are kept.
#[tokio::test(start_paused = true)]
async fn a_hint_that_is_never_given_is_not_waited_for() {
    let starts = "new db-0: {spec: {nodeName: ds02}, status: {phase: Pending}}";
    for (kind, there, state) in [
        (Kind::StatefulSet, "{}", State::Pending),
        (Kind::Events, starts, State::Starting),
    ] {
        let waited = failing(DB, there, kind, Fault::Hangs(false)).await;
        assert_eq!(
            (of_db(&waited).0, waited.took.as_secs()),
            (state, 70),
            "{kind:?}"
        );
    }
}

/// The controller and the Events are read once, at the end, and not in each round.
#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_made_costs_one_request_each_time() {
    let waited = plainly(DB, "{}").await;
    let requests = waited.server.lock().requests.clone();
    let (polls, rest) = requests.split_at(14);
    assert_eq!(polls, ["GET /api/v1/namespaces/shop/pods/db-0"; 14]);
    assert_eq!(rest, ["GET /apis/apps/v1/namespaces/shop/statefulsets/db"]);
}

/// The time limit of a look begins when its turn comes.
#[tokio::test(start_paused = true)]
async fn many_workloads_are_looked_at_eight_at_once_and_fifty_a_second() {
    let lost = (0..400).map(|number| format!("Pod shop/db-{number}: {{}}\n"));
    let lost = lost.collect::<String>();
    for milliseconds in [5, 100] {
        let way = Duration::from_millis(milliseconds);
        let fate = move |_: &Request| Fate {
            there: way,
            back: way,
            ..Fate::default()
        };
        let waited = waited(&lost, "{}", fate, |_, _| {}).await;
        let server = waited.server.lock();
        assert_eq!(server.most_at_once, MAX_IN_FLIGHT);
        let looks = server
            .requests
            .iter()
            .filter(|sent| sent.contains("/pods/"))
            .count();
        assert!((800..=50 * 60 + 400).contains(&looks), "{looks}");
        for found in waited.found.values() {
            let cause = found.cause.as_deref().unwrap_or_default();
            assert!(
                cause.contains("its controller no longer exists") || cause == NOT_MADE,
                "{cause}"
            );
        }
        assert!(waited.took <= Duration::from_secs(70), "{:?}", waited.took);
    }
}

/// Each look is one request while a pod is on its way, however many pods the workload has.
#[tokio::test(start_paused = true)]
async fn a_workload_costs_one_request_each_time() {
    let starts = "{spec: {nodeName: ds02}, status: {phase: Pending}}";
    let there =
        format!("new web-5d4f-x: {starts}\nnew web-5d4f-y: {starts}\nnew web-5d4f-z: {starts}");
    let waited = plainly(&three(), &there).await;
    let names = waited
        .found
        .values()
        .map(|found| found.name.as_deref().unwrap());
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["web-5d4f-x", "web-5d4f-y", "web-5d4f-z"]
    );
    assert_eq!(waited.took, Duration::from_mins(1));
    let lists = "GET /api/v1/namespaces/shop/pods?limit=500&labelSelector=pod-template-hash%3D5d4f&resourceVersion=0";
    let trace = waited.server.lock().trace.clone();
    let at = trace
        .iter()
        .filter_map(|sent| sent.split_once(" ms: ").filter(|(_, sent)| *sent == lists));
    let at = at
        .map(|(at, _)| at.parse::<u64>().unwrap() / 1000)
        .collect::<Vec<_>>();
    assert_eq!(at, [0, 1, 3, 7, 12, 17, 22, 27, 32, 37, 42, 47, 52, 57]);
    // The Events are requested once for each pod.
    assert_eq!(trace.len(), at.len() + 3, "{trace:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_unknown_and_the_wait_ends_in_time() {
    let mut causes = Vec::new();
    for (fault, seconds) in [
        (Fault::Lost(false), 60),
        (Fault::Garbage, 60),
        (Fault::Status(403, false, false), 1),
        (Fault::Hangs(false), 60),
        (Fault::Empty, 60),
        // This 404 is not the API server's own.
        (Fault::Status(404, true, false), 60),
    ] {
        let waited = failing(DB, "new db-0: {ready: ds02}", Kind::Pod, fault).await;
        let (state, cause) = of_db(&waited);
        assert_eq!(
            (state, waited.took.as_secs()),
            (State::Unknown, seconds),
            "{cause}"
        );
        causes.push(cause.to_owned());
    }
    expect![[r#"
        it could not be looked for: no connection: connection reset
        it could not be looked for: the response could not be read: it is not JSON (line 1, column 1)
        it could not be looked for: the API server responded with 403: cannot list resource
        it could not be looked for: no response within 5 s
        it could not be looked for: the response could not be read: it is not the object that was asked for
        it could not be looked for: the API server responded with 404: Not Found"#]].assert_eq(&causes.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_the_wait_at_once() {
    let starts = "new db-0: {spec: {nodeName: ds02}, status: {phase: Pending}}";
    let change = |_, signal| later(4500, move || terminate(&signal));
    let waited = waited(DB, starts, |_| Fate::default(), change).await;
    assert_eq!(of_db(&waited).0, State::Starting);
    assert_eq!(waited.took, Duration::from_millis(4500));
    assert_eq!(
        waited.server.lock().requests.len(),
        3,
        "nothing more is asked"
    );
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_the_asking_for_causes_at_once() {
    let fate = |request: &Request| Fate {
        fault: (request.kind == Kind::StatefulSet).then_some(Fault::Hangs(false)),
        ..Fate::default()
    };
    let change = |_, signal| later(61_000, move || terminate(&signal));
    let waited = waited(DB, "{}", fate, change).await;
    assert_eq!(
        (of_db(&waited).0, waited.took.as_secs()),
        (State::Pending, 61)
    );
}

/// A failed look is not repeated: the next look follows anyway, and a busy API server gets no
/// additional requests.
#[tokio::test(start_paused = true)]
async fn a_look_that_fails_is_one_request() {
    for (lost, kind) in [(DB, Kind::Pod), (WEB, Kind::PodsWith)] {
        for fault in [
            Fault::Busy(429, Some(1)),
            Fault::Busy(503, None),
            Fault::Lost(false),
        ] {
            let server = failing(lost, "{}", kind, fault).await.server;
            assert_eq!(server.lock().requests.len(), 14, "{kind:?}, {fault:?}");
        }
    }
}

/// Pods that were not created share the Warnings of their controller.
#[tokio::test(start_paused = true)]
async fn the_warnings_of_a_controller_are_asked_for_once() {
    let there = "
        ReplicaSet shop/web: {spec: {replicas: 3}}
        Event shop/x: {regarding: {uid: uid-of-web}, type: Warning, reason: FailedCreate, note: 'exceeded quota: small',
            deprecatedLastTimestamp: '2026-01-31T03:00:02Z'}
    ";
    let Waited { found, server, .. } = plainly(&three(), there).await;
    for cause in found.values().map(|found| found.cause.as_deref().unwrap()) {
        let says = cause.strip_prefix(NOT_MADE).unwrap();
        assert!(
            says.ends_with(": FailedCreate: exceeded quota: small"),
            "{says}"
        );
    }
    assert_eq!(found.len(), 3);
    let requests = server.lock().requests.clone();
    let asked = requests.iter().filter(|sent| sent.contains("/events?"));
    assert_eq!(asked.count(), 1, "{requests:#?}");
}

/// The cause says that the account may not read the controller. That proves nothing about the pod.
#[tokio::test(start_paused = true)]
async fn a_controller_that_cannot_be_read_leaves_the_pod_pending() {
    let waited = failing(
        DB,
        "{}",
        Kind::StatefulSet,
        Fault::Status(403, false, false),
    )
    .await;
    let why =
        "its controller could not be read: the API server responded with 403: cannot list resource";
    let cause = format!("{NOT_MADE}: {why}");
    assert_eq!(of_db(&waited), (State::Pending, &*cause));
}

/// The requests that only the wait sends, if no Events are written.
const OF_THE_WAIT: [Kind; 6] = [
    Kind::Pod,
    Kind::PodsWith,
    Kind::StatefulSet,
    Kind::ReplicaSet,
    Kind::Job,
    Kind::Events,
];
const DELETE: Mode = Mode::Delete;

/// Runs on a StatefulSet's pod and a Deployment's pod, with a fault of each request that only the
/// wait sends, and a signal after so many seconds. Returns the report, the requests and the time
/// taken.
async fn run_with(
    wait: u64,
    mode: Mode,
    fault: Option<Fault>,
    signal_after: Option<u64>,
) -> (Report, Vec<String>, Duration) {
    let lost = objects(&with(yaml(DB), yaml(WEB)));
    let settings = run(mode, Target::default());
    let settings = Settings {
        wait_for_replacements: Duration::from_secs(wait),
        events: false,
        ..settings
    };
    let fate = move |request: &Request| Fate {
        fault: fault.filter(|_| OF_THE_WAIT.contains(&request.kind)),
        ..Fate::default()
    };
    let server = Server::with_faults(Objects::new(NOW.parse().unwrap(), before(&lost)), fate);
    let (signal, stop) = Stop::manual(settings.deadline);
    if let Some(seconds) = signal_after {
        let signal = signal.clone();
        later(1000 * seconds, move || terminate(&signal));
    }
    let cluster = Cluster::new(server.client(), stop.clone());
    let began = Instant::now();
    let report = run_on(&cluster, &settings, false, &stop)
        .await
        .expect("a report");
    let requests = server.lock().requests.clone();
    (report, requests, began.elapsed())
}

/// Returns each pod's outcome, and whether the report has the state of its replacement.
fn outcomes(report: &Report) -> Vec<(Option<OutcomeCode>, bool)> {
    let pods = report.pods.iter();
    pods.map(|pod| (pod.outcome, pod.replacement.is_some()))
        .collect()
}

const DELETED_AND_TOLD: [(Option<OutcomeCode>, bool); 2] = [(Some(OutcomeCode::Deleted), true); 2];

const FAULTS: [Option<Fault>; 9] = [
    None,
    Some(Fault::Hangs(false)),
    Some(Fault::Lost(false)),
    Some(Fault::Status(403, false, false)),
    Some(Fault::Status(401, false, false)),
    Some(Fault::Busy(429, Some(1))),
    Some(Fault::Garbage),
    Some(Fault::Empty),
    Some(Fault::Cut),
];

#[tokio::test(start_paused = true)]
async fn the_wait_changes_neither_outcome_nor_exit_code() {
    let (without, requests, _) = run_with(0, DELETE, None, None).await;
    assert_eq!(outcomes(&without), [(Some(OutcomeCode::Deleted), false); 2]);
    for (fault, signal) in FAULTS
        .into_iter()
        .flat_map(|fault| [(fault, None), (fault, Some(7))])
    {
        let (with, more, took) = run_with(60, DELETE, fault, signal).await;
        assert_eq!(
            more[..requests.len()],
            requests,
            "{fault:?}: the wait comes last"
        );
        assert_eq!(outcomes(&with), DELETED_AND_TOLD, "{fault:?}");
        let ends = |report: &Report| (report.exit, report.errors.clone());
        assert_eq!(ends(&with), ends(&without), "{fault:?}");
        let failed = fault.is_some() && took >= Duration::from_secs(1);
        let unknown = with.summary.replacements[&State::Unknown];
        assert_eq!(
            unknown,
            if failed { 2 } else { 0 },
            "{fault:?}, {signal:?}: {with:#?}"
        );
        assert!(
            took <= Duration::from_secs(signal.unwrap_or(70)),
            "{fault:?}, {signal:?}: {took:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_waits_for_nothing() {
    for mode in [Mode::ServerDryRun, Mode::ClientDryRun] {
        let (dry, requests, took) = run_with(60, mode, None, None).await;
        assert!(dry.pods.iter().all(|pod| pod.replacement.is_none()));
        assert_eq!(
            (requests, took),
            (run_with(0, mode, None, None).await.1, Duration::ZERO)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_ends_with_the_deadline() {
    for fault in FAULTS {
        let (report, _, took) = run_with(3_600, DELETE, fault, None).await;
        assert!(took < Duration::from_mins(8), "{fault:?}: {took:?}");
        assert_eq!(outcomes(&report), DELETED_AND_TOLD, "{fault:?}");
    }
}
