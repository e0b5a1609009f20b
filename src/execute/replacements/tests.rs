//! Tests of the wait for replacements.

use pod_reaper_test_support::{
    samples::with,
    simulated::{Fate, Fault, Kind, Objects, Request, Server},
};
use serde_json::{Value, json};

use super::*;
use crate::{
    outcome::OutcomeCode,
    report::{
        Report,
        samples::{audit, claim, judged, lease, namespace, node, pod, run, using, volume},
    },
    run::run_on,
    selector::{NodeSelectors, Target},
    settings::{Mode, Settings},
};

/// The pod that was reaped, of another controller than a StatefulSet.
fn lost_of(kind: &str, version: &str, name: &str, labels: &Value) -> Value {
    let owner = json!([{"apiVersion": version, "kind": kind, "name": "web", "uid": "uid-of-web", "controller": true}]);
    let more = json!({"metadata": {"ownerReferences": owner, "labels": labels, "deletionGracePeriodSeconds": 30}});
    with(pod("shop", name, "ds06"), more)
}

/// What the API server has in its place: `more` laid over a pod of the same controller that was made after the eviction.
fn made(lost: &Value, name: &str, more: Value) -> Value {
    let mut made = lost.clone();
    let metadata = made["metadata"].as_object_mut().unwrap();
    metadata.remove("deletionTimestamp");
    metadata.insert(
        "creationTimestamp".to_owned(),
        json!("2026-01-31T02:59:59Z"),
    );
    metadata.insert("uid".to_owned(), json!(format!("new-{name}")));
    metadata.insert("name".to_owned(), json!(name));
    made["spec"] = json!({});
    with(made, more)
}

fn ready(node: &str) -> Value {
    let since = "2026-01-31T03:00:07Z";
    json!({"spec": {"nodeName": node}, "status": {"phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}]}})
}

fn warning(regarding: &str, reason: &str, note: &str, at: &str) -> Value {
    json!({"kind": "Event", "metadata": {"namespace": "shop"}, "regarding": {"uid": regarding}, "type": "Warning",
        "reason": reason, "note": note, "deprecatedLastTimestamp": at})
}

/// The cluster in which `lost` was judged.
fn before(lost: &[Value]) -> Vec<Value> {
    let objects = [
        node("ds05", "True"),
        node("ds06", "Unknown"),
        namespace("shop"),
        lease("ds06"),
    ];
    objects.into_iter().chain(lost.iter().cloned()).collect()
}

struct Waited {
    /// By UID of the lost pod, as the report's JSON has it.
    found: BTreeMap<Uid, Replacement>,
    server: Server<Objects>,
    took: Duration,
}

/// Waits for a minute for the replacements of `lost`, where the API server has `after`.
async fn waited(
    lost: &[Value],
    after: &[Value],
    fate: impl FnMut(&Request) -> Fate + Send + 'static,
    change: impl FnOnce(Server<Objects>, tokio::sync::watch::Sender<Option<(&'static str, Instant)>>),
) -> Waited {
    let settings = audit();
    let (facts, plan) = judged(&settings, &before(lost));
    let pods = plan.reaps().collect::<Vec<_>>();
    assert_eq!(
        pods.len(),
        lost.iter().filter(|object| object["kind"] == "Pod").count()
    );
    let objects = before(after);
    let server = Server::with_faults(Objects::new(facts.now, objects), fate);
    let (signal, stop) = Stop::manual(Duration::from_mins(8));
    let cluster = Cluster::new(server.client(), stop.clone(), NodeSelectors::default());
    change(server.clone(), signal.clone());
    let began = Instant::now();
    let found = replacements(&cluster, &stop, &pods, Duration::from_mins(1), &|_| {}).await;
    assert_eq!(server.lock().not_understood, Vec::<String>::new());
    assert!(server.lock().most_at_once <= crate::cluster::MAX_IN_FLIGHT);
    Waited {
        found,
        server,
        took: began.elapsed(),
    }
}

/// What is tested; the pod that was lost, and what there is then; its replacement's state and cause.
type Row = (
    &'static str,
    Value,
    Vec<Value>,
    &'static str,
    Option<&'static str>,
);

/// State and cause of the one pod that was lost.
async fn told(lost: &[Value], after: &[Value]) -> (&'static str, Option<String>) {
    let waited = waited(lost, after, |_| Fate::default(), |_, _| {}).await;
    let mut found = waited.found.into_values();
    let replacement = found.next().expect("a pod was lost");
    assert_eq!(found.next(), None);
    (replacement.state.as_str(), replacement.cause)
}

#[tokio::test(start_paused = true)]
async fn every_state_is_told_with_its_cause() {
    let db = || pod("shop", "db-0", "ds06");
    let set = |replicas: usize| {
        json!({"kind": "StatefulSet", "metadata": {"namespace": "shop", "name": "db", "uid": "uid-of-db"},
            "spec": {"replicas": replicas}})
    };
    let web = || {
        lost_of(
            "ReplicaSet",
            "apps/v1",
            "web-5d4f-abc",
            &json!({"pod-template-hash": "5d4f", "app": "web"}),
        )
    };
    let job = || {
        lost_of(
            "Job",
            "batch/v1",
            "web-abc",
            &json!({"batch.kubernetes.io/controller-uid": "uid-of-web"}),
        )
    };
    let replicas = |more: Value| {
        let set = json!({"kind": "ReplicaSet", "metadata": {"namespace": "shop", "name": "web", "uid": "uid-of-web"},
            "spec": {"replicas": 1}});
        with(set, more)
    };
    let of_job = |conditions: Value| {
        json!({"kind": "Job", "metadata": {"namespace": "shop", "name": "web", "uid": "uid-of-web"},
            "status": {"conditions": conditions}})
    };
    let condition = |kind: &str, status: &str, reason: &str, message: &str| json!([{"type": kind, "status": status, "reason": reason, "message": message}]);
    let waiting = |reason: &str, message: &str| {
        json!([{"name": "app", "image": "registry.example/app:2", "ready": false, "restartCount": 3,
            "state": {"waiting": {"reason": reason, "message": message}}}])
    };
    let bare = with(
        pod("shop", "bare", "ds06"),
        json!({"metadata": {"ownerReferences": null}}),
    );
    let no_room = "0/5 nodes are available: 1 node(s) were unreachable, 4 Insufficient memory.";
    let crashes = with(
        ready("ds02"),
        json!({"status": {"containerStatuses": [{"name": "app", "restartCount": 3, "state": {"running": {"startedAt": "2026-01-31T03:00:09Z"}}}]}}),
    );
    let suspended = condition("Suspended", "True", "JobSuspended", "Job suspended");
    let rows: [Row; 34] = [
        (
            "a StatefulSet's is back",
            db(),
            vec![made(&db(), "db-0", ready("ds02"))],
            "back",
            None,
        ),
        (
            "a Deployment's is back",
            web(),
            vec![made(&web(), "web-5d4f-xyz", ready("ds02"))],
            "back",
            None,
        ),
        (
            "a Job's has finished",
            job(),
            vec![made(
                &job(),
                "web-xyz",
                json!({"spec": {"nodeName": "ds02"}, "status": {"phase": "Succeeded"}}),
            )],
            "back",
            Some("it has finished"),
        ),
        (
            "one that crashes again and again, and has no probe",
            db(),
            vec![made(&db(), "db-0", crashes)],
            "back",
            Some("its containers were restarted, 3 times so far"),
        ),
        (
            "another DaemonSet's",
            lost_of(
                "DaemonSet",
                "apps.kruise.io/v1alpha1",
                "web-abc",
                &json!({}),
            ),
            vec![],
            "pending",
            Some("it waits for its node"),
        ),
        (
            "another kind of controller's, which is not asked",
            lost_of("Cluster", "postgresql.example/v1", "web-1", &json!({})),
            vec![],
            "unknown",
            Some("none was found; its Cluster was not asked, and may name new pods otherwise"),
        ),
        (
            "a ReplicationController's",
            lost_of(
                "ReplicationController",
                "v1",
                "web-abc",
                &json!({"app": "web"}),
            ),
            vec![made(
                &lost_of(
                    "ReplicationController",
                    "v1",
                    "web-abc",
                    &json!({"app": "web"}),
                ),
                "web-xyz",
                ready("ds02"),
            )],
            "back",
            None,
        ),
        (
            "a ReplicationController's, which is not asked, and whose pods are all found",
            lost_of(
                "ReplicationController",
                "v1",
                "web-abc",
                &json!({"app": "web"}),
            ),
            vec![],
            "pending",
            Some(
                "none was found; its ReplicationController was not asked, and may name new pods otherwise",
            ),
        ),
        (
            "a Job that is suspended",
            job(),
            vec![of_job(suspended)],
            "pending",
            Some("it is not made yet: JobSuspended: Job suspended"),
        ),
        (
            "a Warning from before the eviction",
            db(),
            vec![
                set(1),
                warning(
                    "uid-of-db",
                    "FailedCreate",
                    "exceeded quota: small",
                    "2026-01-30T03:00:02Z",
                ),
            ],
            "pending",
            Some("it is not made yet"),
        ),
        (
            "a Job that has not failed",
            job(),
            vec![of_job(condition("Failed", "False", "Whatever", "no"))],
            "pending",
            Some("it is not made yet"),
        ),
        (
            "a ReplicaSet that has all that it wants",
            web(),
            vec![
                made(
                    &web(),
                    "web-5d4f-old",
                    with(
                        ready("ds02"),
                        json!({"metadata": {"creationTimestamp": "2026-01-30T00:00:00Z"}}),
                    ),
                ),
                replicas(json!({})),
            ],
            "none",
            Some("its controller wants 1 pods by now"),
        ),
        (
            "one that has failed is replaced in its turn",
            web(),
            vec![
                made(
                    &web(),
                    "web-5d4f-xyz",
                    json!({"spec": {"nodeName": "ds02"}, "status": {"phase": "Failed"}}),
                ),
                replicas(json!({})),
            ],
            "pending",
            Some("it is not made yet"),
        ),
        (
            "the old pod, by an API server that says it runs",
            db(),
            vec![
                with(
                    db(),
                    with(
                        ready("ds02"),
                        json!({"metadata": {"deletionTimestamp": null, "creationTimestamp": "2026-01-31T02:59:59Z"}}),
                    ),
                ),
                set(1),
            ],
            "pending",
            Some("it is not made yet"),
        ),
        (
            "its StatefulSet was recreated",
            db(),
            vec![with(set(1), json!({"metadata": {"uid": "another"}}))],
            "pending",
            Some("it is not made yet"),
        ),
        (
            "a StatefulSet's that a shutdown has ended with success",
            db(),
            vec![
                made(
                    &db(),
                    "db-0",
                    json!({"spec": {"nodeName": "ds02"}, "status": {"phase": "Succeeded"}}),
                ),
                set(1),
            ],
            "pending",
            Some("it is not made yet"),
        ),
        (
            "the same of a Deployment",
            web(),
            vec![
                made(
                    &web(),
                    "web-5d4f-xyz",
                    json!({"spec": {"nodeName": "ds02"}, "status": {"phase": "Succeeded"}}),
                ),
                replicas(json!({})),
            ],
            "pending",
            Some("it is not made yet"),
        ),
        (
            "no controller",
            bare,
            vec![],
            "none",
            Some("it has no controller that would start another"),
        ),
        (
            "a DaemonSet's waits for its node",
            lost_of("DaemonSet", "apps/v1", "web-abc", &json!({})),
            vec![],
            "pending",
            Some("it waits for its node"),
        ),
        (
            "no room",
            db(),
            vec![made(
                &db(),
                "db-0",
                json!({"status": {"phase": "Pending",
                "conditions": condition("PodScheduled", "False", "Unschedulable", no_room)}}),
            )],
            "pending",
            Some(
                "it has no node: Unschedulable: 0/5 nodes are available: 1 node(s) were unreachable, 4 Insufficient memory.",
            ),
        ),
        (
            "the old pod is still there",
            db(),
            vec![db(), set(1)],
            "pending",
            Some("it is not made yet"),
        ),
        (
            "a quota, of a StatefulSet",
            db(),
            vec![
                set(1),
                warning(
                    "uid-of-db",
                    "FailedCreate",
                    "exceeded quota: small",
                    "2026-01-31T03:00:02Z",
                ),
                warning(
                    "uid-of-db",
                    "FailedCreate",
                    "an older one",
                    "2026-01-31T02:00:02Z",
                ),
                warning(
                    "uid-of-other",
                    "FailedCreate",
                    "another's",
                    "2026-01-31T03:00:09Z",
                ),
            ],
            "pending",
            Some("it is not made yet; an Event says: FailedCreate: exceeded quota: small"),
        ),
        (
            "a quota, of a ReplicaSet",
            web(),
            vec![replicas(
                json!({"status": {"conditions": condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota: small")}}),
            )],
            "pending",
            Some("it is not made yet: FailedCreate: exceeded quota: small"),
        ),
        (
            "scaled down",
            db(),
            vec![set(0)],
            "none",
            Some("its controller wants 0 pods by now"),
        ),
        (
            "a rollout has taken over",
            web(),
            vec![replicas(json!({"spec": {"replicas": 0}}))],
            "none",
            Some("its controller wants 0 pods by now"),
        ),
        (
            "its StatefulSet was deleted",
            db(),
            vec![],
            "none",
            Some("its controller no longer exists"),
        ),
        (
            "an older sibling is none",
            web(),
            vec![
                made(
                    &web(),
                    "web-5d4f-old",
                    with(
                        ready("ds02"),
                        json!({"metadata": {"creationTimestamp": "2026-01-30T00:00:00Z"}}),
                    ),
                ),
                replicas(json!({"spec": {"replicas": 2}})),
            ],
            "pending",
            Some("it is not made yet"),
        ),
        (
            "another controller's pod is none",
            web(),
            vec![
                made(
                    &web(),
                    "web-5d4f-xyz",
                    with(
                        ready("ds02"),
                        json!({"metadata": {"ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "another", "controller": true}]}}),
                    ),
                ),
                replicas(json!({})),
            ],
            "pending",
            Some("it is not made yet"),
        ),
        (
            "a Job at its backoffLimit",
            job(),
            vec![of_job(condition(
                "Failed",
                "True",
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            ))],
            "none",
            Some(
                "its Job has ended: BackoffLimitExceeded: Job has reached the specified backoff limit",
            ),
        ),
        (
            "an image",
            db(),
            vec![made(
                &db(),
                "db-0",
                json!({"spec": {"nodeName": "ds02"}, "status": {"phase": "Pending",
                "containerStatuses": waiting("ImagePullBackOff", "Back-off pulling image")}}),
            )],
            "starting",
            Some("its containers do not run yet: ImagePullBackOff: Back-off pulling image"),
        ),
        (
            "a volume that cannot be mounted",
            db(),
            vec![
                made(
                    &db(),
                    "db-0",
                    json!({"spec": {"nodeName": "ds02"}, "status": {"phase": "Pending",
                "containerStatuses": waiting("ContainerCreating", "")}}),
                ),
                warning(
                    "new-db-0",
                    "FailedAttachVolume",
                    "Multi-Attach error for volume pvc-1",
                    "2026-01-31T03:00:02Z",
                ),
            ],
            "starting",
            Some(
                "its containers do not run yet; an Event says: FailedAttachVolume: Multi-Attach error for volume pvc-1",
            ),
        ),
        (
            "a probe that fails",
            db(),
            vec![
                made(
                    &db(),
                    "db-0",
                    json!({"spec": {"nodeName": "ds02"}, "status": {"phase": "Running",
                "conditions": condition("Ready", "False", "ContainersNotReady", "containers with unready status: [app]")}}),
                ),
                warning(
                    "new-db-0",
                    "Unhealthy",
                    "Readiness probe failed: sealed",
                    "2026-01-31T03:00:02Z",
                ),
            ],
            "not-ready",
            Some(
                "it runs and is not Ready: ContainersNotReady: containers with unready status: [app]; an Event says: Unhealthy: Readiness probe failed: sealed",
            ),
        ),
        (
            "a container that crashes",
            db(),
            vec![made(
                &db(),
                "db-0",
                json!({"spec": {"nodeName": "ds02"}, "status": {"phase": "Running",
                "containerStatuses": waiting("CrashLoopBackOff", "back-off 10s")}}),
            )],
            "not-ready",
            Some("it runs and is not Ready: CrashLoopBackOff: back-off 10s"),
        ),
        (
            "it is Terminating as well",
            db(),
            vec![
                made(
                    &db(),
                    "db-0",
                    with(
                        ready("ds02"),
                        json!({"metadata": {"deletionTimestamp": "2026-01-31T03:00:20Z"}}),
                    ),
                ),
                set(1),
            ],
            "pending",
            Some("it is not made yet"),
        ),
    ];
    for (name, lost, after, state, cause) in rows {
        assert_eq!(
            told(&[lost], &after).await,
            (state, cause.map(str::to_owned)),
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_attached_still_is_named() {
    let lost = using(pod("shop", "db-0", "ds06"), "data");
    let attachment = json!({"kind": "VolumeAttachment", "metadata": {"name": "csi-1"},
        "spec": {"nodeName": "ds06", "source": {"persistentVolumeName": "pvc-1"}}});
    let more = [
        claim("shop", "data", "pvc-1"),
        volume("pvc-1", &json!({"csi": {}})),
        attachment.clone(),
    ];
    let starts = json!({"spec": {"nodeName": "ds02"}, "status": {"phase": "Pending"}});
    let after = [made(&lost, "db-0", starts), attachment];
    let lost = [lost].into_iter().chain(more).collect::<Vec<_>>();
    let cause =
        "its containers do not run yet; pvc-1 is still attached to ds06, 1m after the pod went";
    assert_eq!(
        told(&lost, &after).await,
        ("starting", Some(cause.to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn the_wait_ends_as_soon_as_all_are_settled() {
    let lost = pod("shop", "db-0", "ds06");
    let set = json!({"kind": "StatefulSet", "metadata": {"namespace": "shop", "name": "db", "uid": "uid-of-db"},
        "spec": {"replicas": 1}});
    let back = made(&lost, "db-0", ready("ds02"));
    let waited = waited(
        &[lost],
        &[set],
        |_| Fate::default(),
        |server, _| {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(2500)).await;
                server.lock().cluster.objects.push(back);
            });
        },
    )
    .await;
    let Waited {
        found,
        server,
        took,
    } = waited;
    let replacement = &found["uid-shop-db-0"];
    assert_eq!(replacement.state, State::Back);
    assert_eq!(
        (replacement.node.as_deref(), replacement.uid.as_deref()),
        (Some("ds02"), Some("new-db-0"))
    );
    assert_eq!(
        replacement.since,
        Some("2026-01-31T03:00:07Z".parse().unwrap())
    );
    assert_eq!(took, Duration::from_secs(7), "seen at 3 s, and once more");
    assert_eq!(
        server.lock().requests,
        ["GET /api/v1/namespaces/shop/pods/db-0"; 4]
    );
}

/// The pod that is back in one look may have crashed by the next.
#[tokio::test(start_paused = true)]
async fn what_is_back_is_looked_at_once_more() {
    let lost = pod("shop", "db-0", "ds06");
    let back = made(&lost, "db-0", ready("ds02"));
    let crashed = with(
        back.clone(),
        json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
    );
    let change = |server: Server<Objects>, _| {
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(500)).await;
            server
                .lock()
                .cluster
                .objects
                .retain(|object| object["metadata"]["name"] != "db-0");
            server.lock().cluster.objects.push(crashed);
        });
    };
    let found = waited(&[lost], &[back], |_| Fate::default(), change)
        .await
        .found;
    assert_eq!(found["uid-shop-db-0"].state, State::NotReady);
}

#[tokio::test(start_paused = true)]
async fn as_many_are_back_as_were_made() {
    let labels = json!({"pod-template-hash": "5d4f"});
    let lost = ["a", "b", "c"].map(|name| {
        lost_of(
            "ReplicaSet",
            "apps/v1",
            &format!("web-5d4f-{name}"),
            &labels,
        )
    });
    let set = json!({"kind": "ReplicaSet", "metadata": {"namespace": "shop", "name": "web", "uid": "uid-of-web"},
        "spec": {"replicas": 3}});
    let after = [
        made(&lost[0], "web-5d4f-x", ready("ds02")),
        made(&lost[0], "web-5d4f-y", ready("ds03")),
        set,
    ];
    let found = waited(&lost, &after, |_| Fate::default(), |_, _| {})
        .await
        .found;
    let states = found
        .values()
        .map(|it| (it.state.as_str(), it.name.as_deref()))
        .collect::<Vec<_>>();
    assert_eq!(
        states,
        [
            ("back", Some("web-5d4f-x")),
            ("back", Some("web-5d4f-y")),
            ("pending", None)
        ]
    );
}

/// What was found by then is told.
#[tokio::test(start_paused = true)]
async fn a_hint_that_is_never_given_is_not_waited_for() {
    let lost = pod("shop", "db-0", "ds06");
    let starts = made(
        &lost,
        "db-0",
        json!({"spec": {"nodeName": "ds02"}, "status": {"phase": "Pending"}}),
    );
    for (kind, after, state) in [
        (Kind::StatefulSet, vec![], State::Pending),
        (Kind::Events, vec![starts], State::Starting),
    ] {
        let fate = move |request: &Request| Fate {
            fault: (request.kind == kind).then_some(Fault::Hangs(false)),
            ..Fate::default()
        };
        let waited = waited(std::slice::from_ref(&lost), &after, fate, |_, _| {}).await;
        assert_eq!(
            (waited.found["uid-shop-db-0"].state, waited.took),
            (state, Duration::from_secs(70)),
            "{kind:?}"
        );
    }
}

/// Not the controller's at each look: that is asked once, at the end, and so is what Events say.
#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_made_costs_one_request_each_time() {
    let lost = pod("shop", "db-0", "ds06");
    let server = waited(&[lost], &[], |_| Fate::default(), |_, _| {})
        .await
        .server;
    let requests = server.lock().requests.clone();
    let (polls, rest) = requests.split_at(14);
    assert_eq!(polls, ["GET /api/v1/namespaces/shop/pods/db-0"; 14]);
    assert_eq!(rest, ["GET /apis/apps/v1/namespaces/shop/statefulsets/db"]);
}

/// Each waits for its turn before its time runs, not in it.
#[tokio::test(start_paused = true)]
async fn many_workloads_are_looked_at_eight_at_once_and_fifty_a_second() {
    let lost = (0..400)
        .map(|number| pod("shop", &format!("db-{number}"), "ds06"))
        .collect::<Vec<_>>();
    for milliseconds in [5, 100] {
        let way = Duration::from_millis(milliseconds);
        let fate = move |_: &Request| Fate {
            there: way,
            back: way,
            ..Fate::default()
        };
        let waited = waited(&lost, &[], fate, |_, _| {}).await;
        assert_eq!(
            waited.server.lock().most_at_once,
            crate::cluster::MAX_IN_FLIGHT
        );
        let looks = waited
            .server
            .lock()
            .requests
            .iter()
            .filter(|sent| sent.contains("/pods/"))
            .count();
        assert!((800..=50 * 60 + 400).contains(&looks), "{looks}");
        let causes = waited
            .found
            .values()
            .map(|found| found.cause.as_deref().unwrap_or_default());
        let causes = causes.filter(|cause| {
            !cause.contains("its controller no longer exists") && *cause != NOT_MADE
        });
        assert_eq!(causes.collect::<Vec<_>>(), Vec::<&str>::new());
        assert!(waited.took <= Duration::from_secs(70), "{:?}", waited.took);
    }
}

/// One request each time while a pod is on its way, whatever the number of pods of the workload.
#[tokio::test(start_paused = true)]
async fn a_workload_costs_one_request_each_time() {
    let labels = json!({"pod-template-hash": "5d4f", "app": "web"});
    let lost = ["a", "b", "c"].map(|name| {
        lost_of(
            "ReplicaSet",
            "apps/v1",
            &format!("web-5d4f-{name}"),
            &labels,
        )
    });
    let starts = json!({"spec": {"nodeName": "ds02"}, "status": {"phase": "Pending"}});
    let after =
        ["x", "y", "z"].map(|name| made(&lost[0], &format!("web-5d4f-{name}"), starts.clone()));
    let Waited {
        found,
        server,
        took,
    } = waited(&lost, &after, |_| Fate::default(), |_, _| {}).await;
    let names = found
        .values()
        .map(|it| it.name.clone().unwrap())
        .collect::<Vec<_>>();
    assert_eq!(names, ["web-5d4f-x", "web-5d4f-y", "web-5d4f-z"]);
    assert_eq!(took, Duration::from_mins(1));
    let lists = "GET /api/v1/namespaces/shop/pods?limit=500&labelSelector=pod-template-hash%3D5d4f&resourceVersion=0";
    let trace = server.lock().trace.clone();
    let at = trace
        .iter()
        .filter_map(|sent| sent.split_once(" ms: "))
        .filter(|(_, sent)| *sent == lists);
    let at = at
        .map(|(at, _)| at.parse::<u64>().unwrap() / 1000)
        .collect::<Vec<_>>();
    assert_eq!(at, [0, 1, 3, 7, 12, 17, 22, 27, 32, 37, 42, 47, 52, 57]);
    assert_eq!(
        trace.len(),
        at.len() + 3,
        "what the Events say is asked once for each pod: {trace:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_unknown_and_the_wait_ends_in_time() {
    let lost = pod("shop", "db-0", "ds06");
    for (name, fault, cause, seconds) in [
        (
            "the connection drops",
            Fault::Lost(false),
            "it could not be looked for: no connection: connection reset",
            60,
        ),
        (
            "garbage",
            Fault::Garbage,
            "it could not be looked for: the answer could not be read: it is not JSON (line 1, column 1)",
            60,
        ),
        (
            "forbidden",
            Fault::Status(403, false, false),
            "it could not be looked for: the API server answered 403: no",
            1,
        ),
        (
            "hangs",
            Fault::Hangs(false),
            "it could not be looked for: no answer within 5 s",
            60,
        ),
        (
            "another object",
            Fault::Empty,
            "it could not be looked for: the answer could not be read: it is not the object that was asked for",
            60,
        ),
        (
            "no API's 404",
            Fault::Status(404, true, false),
            "it could not be looked for: the API server answered 404: Not Found",
            60,
        ),
    ] {
        let fate = move |request: &Request| Fate {
            fault: (request.kind == Kind::Pod).then_some(fault),
            ..Fate::default()
        };
        let waited = waited(
            std::slice::from_ref(&lost),
            &[made(&lost, "db-0", ready("ds02"))],
            fate,
            |_, _| {},
        )
        .await;
        let replacement = &waited.found["uid-shop-db-0"];
        assert_eq!(
            (replacement.state, replacement.cause.as_deref()),
            (State::Unknown, Some(cause)),
            "{name}"
        );
        assert_eq!(waited.took.as_secs(), seconds, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_the_wait_at_once() {
    let lost = pod("shop", "db-0", "ds06");
    let starts = json!({"spec": {"nodeName": "ds02"}, "status": {"phase": "Pending"}});
    let after = [made(&lost, "db-0", starts)];
    let waited = waited(
        &[lost],
        &after,
        |_| Fate::default(),
        |_, signal| {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(4500)).await;
                signal.send_replace(Some(("SIGTERM", Instant::now())));
            });
        },
    )
    .await;
    let Waited {
        found,
        server,
        took,
    } = waited;
    assert_eq!(found["uid-shop-db-0"].state, State::Starting);
    assert_eq!(took, Duration::from_millis(4500));
    assert_eq!(server.lock().requests.len(), 3, "nothing more is asked");
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_the_asking_for_causes_at_once() {
    let lost = pod("shop", "db-0", "ds06");
    let fate = |request: &Request| Fate {
        fault: (request.kind == Kind::StatefulSet).then_some(Fault::Hangs(false)),
        ..Fate::default()
    };
    let signalled = |_, signal: tokio::sync::watch::Sender<_>| {
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(61)).await;
            signal.send_replace(Some(("SIGTERM", Instant::now())));
        });
    };
    let Waited { found, took, .. } = waited(&[lost], &[], fate, signalled).await;
    assert_eq!(
        (found["uid-shop-db-0"].state, took),
        (State::Pending, Duration::from_secs(61))
    );
}

/// Clocks may differ by 30 s, so that what was made a little before the eviction counts where nothing newer is there.
#[tokio::test(start_paused = true)]
async fn what_was_made_before_the_eviction_comes_after_what_was_made_since() {
    let labels = json!({"pod-template-hash": "5d4f"});
    let lost = lost_of("ReplicaSet", "apps/v1", "web-5d4f-abc", &labels);
    let asked = lost["metadata"]["deletionTimestamp"]
        .as_str()
        .unwrap()
        .parse::<Timestamp>()
        .unwrap();
    let before = (asked - SignedDuration::from_secs(30 + 20)).to_string();
    let before = with(
        ready("ds02"),
        json!({"metadata": {"creationTimestamp": before}}),
    );
    let before = made(&lost, "web-5d4f-old", before);
    let new = made(
        &lost,
        "web-5d4f-xyz",
        json!({"status": {"phase": "Pending"}}),
    );
    let lost = [lost];
    assert_eq!(
        told(&lost, std::slice::from_ref(&before)).await,
        ("back", None)
    );
    assert_eq!(
        told(&lost, &[before, new]).await,
        ("pending", Some("it has no node".to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_namesake_of_another_controller_or_of_none_is_no_replacement() {
    let lost = pod("shop", "db-0", "ds06");
    let owner = |kind: &str, name: &str, uid: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}]);
    for (owners, state) in [
        (json!(null), "pending"),
        (owner("ReplicaSet", "db", "uid-of-db"), "pending"),
        (owner("StatefulSet", "other", "uid-of-other"), "pending"),
        (owner("StatefulSet", "db", "recreated"), "back"),
    ] {
        let namesake = made(&lost, "db-0", ready("ds02"));
        let namesake = with(namesake, json!({"metadata": {"ownerReferences": owners}}));
        let set = json!({"kind": "StatefulSet", "metadata": {"namespace": "shop", "name": "db", "uid": "recreated"},
            "spec": {"replicas": 1}});
        assert_eq!(
            told(std::slice::from_ref(&lost), &[namesake, set]).await.0,
            state,
            "{owners}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_pod_of_another_index_of_a_job_is_no_replacement() {
    let labels = |index: &str| json!({"batch.kubernetes.io/controller-uid": "uid-of-web", "batch.kubernetes.io/job-completion-index": index});
    let lost = ["3", "5"].map(|index| {
        lost_of(
            "Job",
            "batch/v1",
            &format!("web-{index}-abc"),
            &labels(index),
        )
    });
    let of = |index: &str| {
        with(
            ready("ds02"),
            json!({"metadata": {"labels": labels(index)}}),
        )
    };
    let job = json!({"kind": "Job", "metadata": {"namespace": "shop", "name": "web", "uid": "uid-of-web"}});
    let after = [
        made(&lost[0], "web-9-xyz", of("9")),
        made(&lost[0], "web-5-xyz", of("5")),
        job,
    ];
    let found = waited(&lost, &after, |_| Fate::default(), |_, _| {})
        .await
        .found;
    let states = found
        .values()
        .map(|it| (it.state.as_str(), it.name.as_deref()))
        .collect::<Vec<_>>();
    assert_eq!(states, [("pending", None), ("back", Some("web-5-xyz"))]);
}

/// The next look is the other try: an API server that is busy is asked no more often.
#[tokio::test(start_paused = true)]
async fn a_look_that_fails_is_one_request() {
    let web = || {
        lost_of(
            "ReplicaSet",
            "apps/v1",
            "web-5d4f-abc",
            &json!({"pod-template-hash": "5d4f"}),
        )
    };
    for (lost, kind) in [
        (pod("shop", "db-0", "ds06"), Kind::Pod),
        (web(), Kind::PodsWith),
    ] {
        for fault in [
            Fault::Busy(429, Some(1)),
            Fault::Busy(503, None),
            Fault::Lost(false),
        ] {
            let fate = move |request: &Request| Fate {
                fault: (request.kind == kind).then_some(fault),
                ..Fate::default()
            };
            let server = waited(std::slice::from_ref(&lost), &[], fate, |_, _| {})
                .await
                .server;
            assert_eq!(server.lock().requests.len(), 14, "{kind:?}, {fault:?}");
        }
    }
}

/// They share the Warnings of their controller.
#[tokio::test(start_paused = true)]
async fn the_warnings_of_a_controller_are_asked_for_once() {
    let labels = json!({"pod-template-hash": "5d4f"});
    let lost = ["a", "b", "c"].map(|name| {
        lost_of(
            "ReplicaSet",
            "apps/v1",
            &format!("web-5d4f-{name}"),
            &labels,
        )
    });
    let set = json!({"kind": "ReplicaSet", "metadata": {"namespace": "shop", "name": "web", "uid": "uid-of-web"},
        "spec": {"replicas": 3}});
    let quota = warning(
        "uid-of-web",
        "FailedCreate",
        "exceeded quota: small",
        "2026-01-31T03:00:02Z",
    );
    let Waited { found, server, .. } =
        waited(&lost, &[set, quota], |_| Fate::default(), |_, _| {}).await;
    let cause = "it is not made yet; an Event says: FailedCreate: exceeded quota: small";
    assert_eq!(
        found
            .values()
            .filter(|found| found.cause.as_deref() == Some(cause))
            .count(),
        3
    );
    let requests = server.lock().requests.clone();
    assert_eq!(
        requests
            .iter()
            .filter(|sent| sent.contains("/events?"))
            .count(),
        1,
        "{requests:#?}"
    );
}

/// Of a StatefulSet's pods the highest go first, so that its others need not be there to know.
#[tokio::test(start_paused = true)]
async fn an_ordinal_beyond_what_its_stateful_set_wants_is_not_made_again() {
    for (replicas, start, state, cause) in [
        (2, 0, "none", "its controller wants 2 pods by now"),
        (3, 0, "pending", NOT_MADE),
        (2, 1, "pending", NOT_MADE),
        (1, 1, "none", "its controller wants 1 pods by now"),
    ] {
        let set = json!({"kind": "StatefulSet", "metadata": {"namespace": "shop", "name": "db", "uid": "uid-of-db"},
            "spec": {"replicas": replicas, "ordinals": {"start": start}}});
        let found = told(&[pod("shop", "db-2", "ds06")], &[set]).await;
        assert_eq!(
            found,
            (state, Some(cause.to_owned())),
            "{replicas} from {start}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_ended_without_a_word_is_told_without_a_colon() {
    let lost = lost_of(
        "Job",
        "batch/v1",
        "web-abc",
        &json!({"controller-uid": "uid-of-web"}),
    );
    let job = json!({"kind": "Job", "metadata": {"namespace": "shop", "name": "web", "uid": "uid-of-web"},
        "status": {"conditions": [{"type": "Complete", "status": "True"}]}});
    assert_eq!(
        told(&[lost], &[job]).await,
        ("none", Some("its Job has ended".to_owned()))
    );
}

/// The requests that only the wait sends, Events being off.
const OF_THE_WAIT: [Kind; 6] = [
    Kind::Pod,
    Kind::PodsWith,
    Kind::StatefulSet,
    Kind::ReplicaSet,
    Kind::Job,
    Kind::Events,
];
const DELETE: Mode = Mode::Delete { ask: false };

/// The whole run, of a StatefulSet's pod and a Deployment's, with a fault of each request that only the wait sends, and a
/// signal after so many seconds.
async fn run_with(
    wait: u64,
    mode: Mode,
    fault: Option<Fault>,
    signal_after: Option<u64>,
) -> (Report, Vec<String>, Duration) {
    let web = lost_of(
        "ReplicaSet",
        "apps/v1",
        "web-5d4f-abc",
        &json!({"pod-template-hash": "5d4f"}),
    );
    let objects = before(&[pod("shop", "db-0", "ds06"), web]);
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
    let now = "2026-01-31T03:00:00Z".parse().unwrap();
    let server = Server::with_faults(Objects::new(now, objects), fate);
    let (signal, stop) = Stop::manual(settings.deadline);
    if let Some(seconds) = signal_after {
        let signal = signal.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            signal.send_replace(Some(("SIGTERM", Instant::now())));
        });
    }
    let cluster = Cluster::new(server.client(), stop.clone(), NodeSelectors::default());
    let began = Instant::now();
    let report = run_on(&cluster, &settings, mode, &stop)
        .await
        .expect("a report");
    let requests = server.lock().requests.clone();
    (report, requests, began.elapsed())
}

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
    assert!(without.pods.iter().all(|pod| pod.replacement.is_none()));
    assert!(
        without
            .pods
            .iter()
            .all(|pod| pod.outcome == Some(OutcomeCode::Deleted)),
        "{without:#?}"
    );
    let outcomes = |report: &Report| {
        report
            .pods
            .iter()
            .map(|pod| pod.outcome)
            .collect::<Vec<_>>()
    };
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
        assert_eq!(
            (with.exit, outcomes(&with)),
            (without.exit, outcomes(&without)),
            "{fault:?}"
        );
        assert_eq!(with.errors, without.errors, "{fault:?}");
        assert!(
            with.pods.iter().all(|pod| pod.replacement.is_some()),
            "{fault:?}"
        );
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
        assert!(
            report
                .pods
                .iter()
                .all(|pod| pod.outcome == Some(OutcomeCode::Deleted)),
            "{fault:?}"
        );
        assert!(
            report.pods.iter().all(|pod| pod.replacement.is_some()),
            "{fault:?}"
        );
    }
}

/// A controller that may not be read is said, and is no proof of anything.
#[tokio::test(start_paused = true)]
async fn a_controller_that_cannot_be_read_leaves_the_pod_pending() {
    let lost = pod("shop", "db-0", "ds06");
    let fate = |request: &Request| Fate {
        fault: (request.kind == Kind::StatefulSet).then_some(Fault::Status(403, false, false)),
        ..Fate::default()
    };
    let found = waited(&[lost], &[], fate, |_, _| {}).await.found;
    let cause =
        "it is not made yet: its controller could not be read: the API server answered 403: no";
    let replacement = &found["uid-shop-db-0"];
    assert_eq!(
        (replacement.state, replacement.cause.as_deref()),
        (State::Pending, Some(cause))
    );
}
