//! Tests of the objects that are read again right before the delete of a pod that nothing wants any
//! more.

use super::*;

/// A pod whose PVC is on the disk of its node. Its set is scaled down.
const SCALED_DOWN: &str = "
    Pod shop/db-0: {uses: data-db-0}
    PersistentVolumeClaim shop/data-db-0: {volume: pv-1}
    PersistentVolume pv-1: {on: ds06, spec: {csi: null, local: {path: /x}}}
    StatefulSet shop/db: {spec: {replicas: 0}}
";

/// The same pod. Its set wants it, but its namespace is being deleted.
const DELETED: &str = "
    Namespace shop: {metadata: {deletionTimestamp: '2026-01-31T01:00:00Z'}}
    Pod shop/db-0: {uses: data-db-0}
    PersistentVolumeClaim shop/data-db-0: {volume: pv-1, metadata: {deletionTimestamp: '2026-01-31T01:00:00Z'}}
    PersistentVolume pv-1: {on: ds06, spec: {csi: null, local: {path: /x}}}
    StatefulSet shop/db: {spec: {replicas: 1}}
";

#[tokio::test(start_paused = true)]
async fn a_pod_stays_that_something_wants_by_now() {
    let refused = Fault::Status(403, false, false);
    let set = Some(Kind::StatefulSet);
    for (judged, later, fault, expected) in [
        (SCALED_DOWN, "{}", None, "deleted"),
        (SCALED_DOWN, "StatefulSet shop/db: null", None, "deleted"),
        (
            SCALED_DOWN,
            "StatefulSet shop/db: {spec: {replicas: 1}}",
            None,
            "changed",
        ),
        (
            SCALED_DOWN,
            "StatefulSet shop/db: {spec: {replicas: 1, ordinals: {start: 1}}}",
            None,
            "deleted",
        ),
        // Another set of that name wants the pod too.
        (
            SCALED_DOWN,
            "StatefulSet shop/db: {metadata: {uid: another}, spec: {replicas: 1}}",
            None,
            "changed",
        ),
        (
            SCALED_DOWN,
            "StatefulSet shop/db: {metadata: {deletionTimestamp: '2026-01-31T02:59:00Z'}, spec: {replicas: 1}}",
            None,
            "deleted",
        ),
        (SCALED_DOWN, "{}", set, "failed"),
        (DELETED, "{}", None, "deleted"),
        // The set does not matter.
        (DELETED, "{}", set, "deleted"),
        (
            DELETED,
            "Namespace shop: {metadata: {deletionTimestamp: null}}",
            None,
            "changed",
        ),
        (DELETED, "{}", Some(Kind::Namespaces), "failed"),
    ] {
        let mut lists = 0;
        let fate = move |request: &Request| {
            // The first list tells which namespaces are opted out.
            lists += usize::from(request.kind == Kind::Namespaces);
            let is_met =
                Some(request.kind) == fault && (request.kind != Kind::Namespaces || lists > 1);
            Fate {
                fault: is_met.then_some(refused),
                ..Fate::default()
            }
        };
        let (codes, _) = reaped_later(judged, later, fate).await;
        let expected = [("uid-shop-db-0".to_owned(), expected)];
        assert_eq!(codes, expected, "{later} {fault:?}");
    }
}

/// The set is read again before each try, after the node is.
#[tokio::test(start_paused = true)]
async fn what_wants_the_pod_is_read_again_before_each_try() {
    let mut tries = 0;
    let (mut sets, mut of_try) = (0, Vec::new());
    let fate = move |request: &Request| {
        sets += usize::from(request.kind == Kind::StatefulSet);
        let is_try = request.kind == Kind::Delete;
        if is_try {
            tries += 1;
            of_try.push(sets);
            assert_eq!(of_try, (1..=tries).collect::<Vec<_>>());
        }
        Fate {
            fault: (is_try && tries < 3).then_some(Fault::Busy(429, Some(1))),
            ..Fate::default()
        }
    };
    let (codes, _) = reaped_later(SCALED_DOWN, "{}", fate).await;
    assert_eq!(codes, [("uid-shop-db-0".to_owned(), "deleted")]);
}

/// A set that could not be read is treated as wanting its pod. That is no error of the run.
#[test]
fn a_pod_is_wanted_if_its_set_could_not_be_read() {
    for (more, expected) in [
        ("StatefulSet shop/db: {spec: {replicas: 1}}", "local-volume"),
        ("{}", "stuck-on-not-ready-node"),
        ("StatefulSet shop/db: null", "local-volume"),
        (
            "{StatefulSet shop/db: null, StatefulSet shop/other: {}}",
            "stuck-on-not-ready-node",
        ),
        (
            "{StatefulSet shop/db: null, StatefulSet other/db: {spec: {replicas: 1}}}",
            "stuck-on-not-ready-node",
        ),
    ] {
        let cluster = with(yaml(CLUSTER), yaml(SCALED_DOWN));
        let settings = audit();
        let RunRecord { facts, plan, .. } = judged(&settings, &objects(&with(cluster, yaml(more))));
        let code = plan.pods[0].code().to_string();
        assert_eq!(code, expected, "{more}");
        assert!(facts.errors.is_empty(), "{:?}", facts.errors);
    }
}

/// The StatefulSet that wants a pod no more must be read after the PVCs that stay without the pod.
#[tokio::test(start_paused = true)]
async fn what_tells_whether_a_pod_is_wanted_is_read_after_all_claims() {
    let second = SCALED_DOWN.replace("db-0", "db-1").replace("pv-1", "pv-2");
    let settings = run(Mode::DryRun, Target::default());
    let all = with(with(yaml(CLUSTER), yaml(SCALED_DOWN)), yaml(&second));
    let slow = |request: &Request| Fate {
        back: Duration::from_secs(u64::from(request.name == "data-db-1")),
        ..Fate::default()
    };
    let server = Server::with_faults(Objects::new(NOW.parse().unwrap(), objects(&all)), slow);
    let (_signal, stop) = Stop::manual(Duration::from_mins(8));
    let cluster = Cluster::new(server.client(), stop.clone());
    let report = crate::run::run_on(&cluster, &settings, false, &stop).await;
    let pods = report.unwrap().pods.into_iter();
    let reasons = pods.map(|pod| pod.reason.unwrap().as_str());
    assert_eq!(reasons.collect::<Vec<_>>(), ["stuck-on-not-ready-node"; 2]);
    let requests = server.lock().requests.clone();
    let is = |path: &'static str| move |sent: &String| sent.contains(path);
    let claims = requests.iter().rposition(is("/persistentvolumeclaims/"));
    let set = requests.iter().position(is("/statefulsets/"));
    assert!(claims < set && set.is_some(), "{requests:#?}");
}
