//! Two concurrent runs: you start one while the run of the `CronJob` is in progress.

use crate::prelude::*;
use std::sync::Condvar;

/// The longest time that the first run waits for the second. If a run writes nothing, the test fails after this time.
const TOGETHER_WITHIN: Duration = Duration::from_mins(1);

/// Blocks each run until both have arrived.
#[derive(Default)]
struct Gate {
    arrived: Mutex<usize>,
    both: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut arrived = self.arrived.lock().expect("nothing panics with it");
        *arrived += 1;
        self.both.notify_all();
        let (arrived, _) = self
            .both
            .wait_timeout_while(arrived, TOGETHER_WITHIN, |arrived| *arrived < 2)
            .expect("nothing panics with it");
        assert!(*arrived >= 2, "the other run has written nothing");
    }
}

/// Both runs have their plan before either writes, so both plan to delete every pod.
#[test]
fn two_runs_at_once_delete_each_pod_once_and_neither_fails() {
    let cluster = one_dead();
    let mut pods = (0..12)
        .map(|number| pod(&cluster, &format!("apps/stuck-{number}: {{}}")))
        .collect_vec();
    let job = "apps/job: {owner: Job job, spec: {restartPolicy: Never},
        metadata: {finalizers: [batch.kubernetes.io/job-tracking]}}";
    pods.push(pod(&cluster, job));
    until_overdue();

    let gate = Arc::new(Gate::default());
    let turn = Arc::new(Mutex::new(()));
    let server = cluster.server();
    let proxies = [(); 2].map(|()| {
        let (gate, turn) = (Arc::clone(&gate), Arc::clone(&turn));
        let first = Mutex::new(true);
        Proxy::start(server, move |seen| {
            if !seen.is_write() {
                return;
            }
            if std::mem::take(&mut *first.lock().expect("nothing panics with it")) {
                gate.pass();
            }
            // The Job controller, which does not run here, removes its finalizer from a failed pod.
            let path = pod_path("apps", "job");
            if seen.method == "DELETE" && seen.path == path {
                let _turn = turn.lock();
                let held = server
                    .try_get(&path)
                    .is_some_and(|pod| !pod["metadata"]["finalizers"].is_null());
                if held {
                    server.merge_patch(&path, yaml("{metadata: {finalizers: null}}"));
                }
            }
        })
    });
    let runs = thread::scope(|scope| {
        let runs = proxies
            .each_ref()
            .map(|proxy| scope.spawn(|| run(&proxy.kubeconfig, &SHORT)));
        runs.map(|run| run.join().expect("it does not panic"))
    });

    assert_eq!(
        cluster.get("/api/v1/namespaces/apps/pods")["items"],
        json!([])
    );
    let deletes = proxies
        .iter()
        .flat_map(Proxy::took_effect)
        .filter(|seen| seen.method == "DELETE");
    let deleted =
        deletes.map(|Seen { body, .. }| body["preconditions"]["uid"].as_str().map(str::to_owned));
    let deleted = deleted.collect_vec();
    for pod in &pods {
        let effects = deleted
            .iter()
            .filter(|deleted| deleted.as_ref() == Some(pod))
            .count();
        let mut outcomes = runs
            .each_ref()
            .map(|run| run.reason_and_outcome(pod).1.expect("it was to be reaped"));
        outcomes.sort_unstable();
        assert_eq!(effects, 1, "{pod}: {outcomes:?}");
        // The Job's pod changes for one run when the other has set it to `Failed`.
        assert!(
            matches!(outcomes, ["deleted", "gone"] | ["changed", "deleted"]),
            "{pod}: {outcomes:?}"
        );
    }
    for run in &runs {
        run.ends(0);
        assert_eq!(run.report["errors"], json!([]));
    }
}
