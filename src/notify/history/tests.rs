//! Two runs at once, on the simulated server.

use std::time::Duration;

use pod_reaper_test_support::{
    samples::{NOW, objects, yaml},
    simulated::{Dice, Fate, Fault, Kind, Objects, Request, Server, Trouble},
};
use serde_json::Value;

use crate::{cli::Cli, cluster::Cluster, run::run_on, settings::Settings, stop::Stop};

const CLUSTER: &str = "
    Node ds05: {ready: 'True'}
    Node ds06: {}
    Namespace git: {}
    Namespace shop: {}
    Pod git/gitea-0: {}
    Pod shop/db-0: {}
    ConfigMap pod-reaper/pod-reaper-history: {data: {}}
";

/// Runs for one namespace, as somebody does by hand, on the same server as another run. Returns the report.
async fn run_for(namespace: &str, server: &Server<Objects>) -> Value {
    let args = ["pod-reaper", "--yes", "-n", namespace].map(Into::into);
    let settings = Settings::from(Cli::try_from_args(args).expect("options"));
    let (_signal, stop) = Stop::manual(settings.deadline);
    let cluster = Cluster::new(server.client(), stop.clone());
    let report = run_on(&cluster, &settings, false, &stop).await;
    serde_json::to_value(report.expect("a report").report()).expect("JSON")
}

/// A server whose requests take a random time.
fn serving(
    seed: u64,
    mut more: impl FnMut(&Request, Fate) -> Fate + Send + 'static,
) -> Server<Objects> {
    let calm = Trouble {
        faults: 0,
        always: None,
        after: 0,
        latency: 150,
    };
    let mut fates = calm.fates(Dice::new(seed));
    let state = Objects::new(NOW.parse().expect("a moment"), objects(&yaml(CLUSTER)));
    Server::with_faults(state, move |request: &Request| {
        let fate = fates(request);
        more(request, fate)
    })
}

/// The note of the node; null if there is none.
fn note(server: &Server<Objects>) -> Value {
    let state = server.lock();
    let history = state.cluster.history().expect("a history");
    let note = history["data"]["uid-ds06"].as_str();
    note.map_or(Value::Null, |note| {
        serde_json::from_str(note).expect("JSON")
    })
}

/// Whatever comes first, both runs' pods are noted.
#[tokio::test(start_paused = true)]
async fn two_runs_at_once_lose_nothing_of_each_other() {
    let mut conflicts = 0;
    for seed in 0..60 {
        let server = serving(seed, |_, fate| fate);
        let reports = tokio::join!(run_for("git", &server), run_for("shop", &server));
        for report in [&reports.0, &reports.1] {
            assert_eq!(report["history"]["unread"], Value::Null, "{seed}");
            assert_eq!(report["pods"][0]["outcome"], "deleted", "{seed}");
        }
        let note = note(&server);
        let pods = note["pods"].as_array().expect("pods").iter();
        let mut names = pods.map(|pod| pod["name"].as_str()).collect::<Vec<_>>();
        names.sort_unstable();
        assert_eq!(names, [Some("db-0"), Some("gitea-0")], "{seed}");
        let state = server.lock();
        let reads = state.trace.iter().filter(|sent| sent.contains("-history"));
        conflicts += usize::from(reads.count() > 6);
    }
    assert!(conflicts > 20, "only {conflicts}");
}

/// A run that touched no pod takes its note back, but never that of a run that is still at work, or was killed.
#[tokio::test(start_paused = true)]
async fn a_run_takes_back_only_its_own_note() {
    let mut killed = 0;
    for seed in 0..60 {
        let server = serving(seed, |request: &Request, fate| {
            let is_delete = request.kind == Kind::Delete;
            let refused = is_delete && request.namespace == "shop";
            let slow = is_delete && request.namespace == "git";
            Fate {
                fault: refused.then_some(Fault::Denied(403)),
                there: fate.there + Duration::from_secs(if slow { 4 } else { 0 }),
                ..fate
            }
        });
        // The other run is killed when the first one has ended.
        tokio::select! {
            report = run_for("shop", &server) => assert_eq!(report["pods"][0]["outcome"], "denied"),
            _ = run_for("git", &server) => panic!("it takes longer"),
        }
        let noted = !note(&server).is_null();
        let sent = server
            .lock()
            .trace
            .iter()
            .any(|sent| sent.contains(": DELETE /api/v1/namespaces/git/"));
        assert!(noted || !sent, "{seed} {:#?}", server.lock().trace);
        killed += usize::from(sent);
    }
    assert!(killed > 20, "only {killed}");
    let server = serving(0, |request: &Request, fate| Fate {
        fault: (request.kind == Kind::Delete).then_some(Fault::Denied(403)),
        ..fate
    });
    drop(run_for("shop", &server).await);
    assert_eq!(note(&server), Value::Null);
}
