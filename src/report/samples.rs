//! Sample clusters and runs for the tests of every format.

use pod_reaper_test_support::at_once;
pub use pod_reaper_test_support::samples::{FAILED, NOW, objects, with, yaml};
use serde_json::{Value, json};

use super::*;
use crate::{
    cli::Cli,
    facts::Uid,
    outcome::Outcome,
    selector::Target,
    settings::{Mode, Settings, Task},
    source::{
        Gathered, Reader, gather,
        snapshot::{Options, Saved},
    },
};

pub fn audit() -> Settings {
    let args = ["pod-reaper", "--snapshot=state.json", "--all"].map(Into::into);
    Settings::from(Cli::try_from_args(args).expect("options"))
}

pub fn run(mode: Mode, target: Target) -> Settings {
    Settings {
        task: Task::Reap {
            target,
            dry_run: mode == Mode::DryRun,
            yes: true,
        },
        ..audit()
    }
}

/// Judges `objects` at three o'clock.
pub fn judged<'a>(settings: &'a Settings, objects: &[Value]) -> RunRecord<'a> {
    let saved = saved(objects, false);
    let Gathered { facts, pods, .. } = gathered_from(&saved, settings);
    let plan = settings.limit(&facts, settings.decide(&facts, pods));
    RunRecord::new(settings, facts, plan)
}

/// Returns a snapshot of `objects`, taken now, with all pods or only the pods that a run judges.
pub fn saved(objects: &[Value], every_pod: bool) -> Saved {
    let text = json!({"kind": "List", "items": objects}).to_string();
    let options = Options {
        now: Some(NOW.parse().expect("a moment")),
        every_pod,
    };
    Saved::read(text.as_bytes(), options).expect("a snapshot")
}

/// Gathers from a snapshot. The call never waits, because every reading is in memory.
pub fn gathered_from(saved: &Saved, settings: &Settings) -> Gathered {
    let reader = Reader::new(saved, settings.wanted());
    at_once(gather(&reader, None)).expect("nothing fails")
}

/// Judges `objects`, and reports them with the `outcomes` of the pods by UID.
pub fn report(settings: &Settings, objects: &[Value], outcomes: &[(&str, Outcome)]) -> Report {
    let mut run = judged(settings, objects);
    for (uid, outcome) in outcomes {
        run.outcomes.insert(Uid::from(*uid), outcome.clone());
    }
    run.report()
}

/// Returns the objects of a private cloud after ds06 lost power, with pods of every verdict and
/// kind.
pub fn private_cloud() -> Vec<Value> {
    private_cloud_with("True")
}

/// Returns the private cloud with this status on its five other nodes.
pub fn private_cloud_with(status: &str) -> Vec<Value> {
    const REST: &str = "
        Node ds06: {}
        Node kosmos-cluster7:
            lease: null
            metadata: {annotations: {kosmos-io/owned-by-cluster: cluster7}, labels: {kosmos.io/node: 'true'}}
        Namespace compute-hive01: {}
        Namespace impala-impala01: {}
        Namespace vault: {}
        Pod compute-hive01/huebackend-0: {}
        Pod impala-impala01/huebackend-0: {}
        Pod vault/vault-0: {metadata: {annotations: {pod-reaper.io/after-reap: 'unseal Vault: vault operator unseal'}}}
        Pod impala-impala01/catalogd-0: {uses: catalogd}
        PersistentVolumeClaim impala-impala01/catalogd: {volume: pvc-zone}
        PersistentVolume pvc-zone:
            spec: {nodeAffinity: {required: {nodeSelectorTerms: [
                {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [b]}]}]}}}
        Pod impala-impala01/impala-executor-000-0:
            uses: scratch-cache-volume-impala-executor-000-0
            metadata: {labels: {apps.kubernetes.io/pod-index: '0'}}
        StatefulSet impala-impala01/impala-executor-000:
            spec: {volumeClaimTemplates: [{metadata: {name: scratch-cache-volume}}]}
        PersistentVolumeClaim impala-impala01/scratch-cache-volume-impala-executor-000-0: {volume: pvc-scratch}
        PersistentVolume pvc-scratch:
            on: ds06
            spec: {local: {path: /opt/local-path}, persistentVolumeReclaimPolicy: Delete}
        Pod impala-impala01/statestored-0: {uses: statestored}
        PersistentVolumeClaim impala-impala01/statestored: {volume: pvc-gone}
        Pod compute-hive01/held-0: {metadata: {finalizers: [example.com/backup]}}
        Pod compute-hive01/recent-0: {grace: 30, metadata: {deletionTimestamp: '2026-01-31T02:55:30Z'}}
        Pod compute-hive01/within-grace-0: {grace: 30, metadata: {deletionTimestamp: '2026-01-31T03:00:45Z'}}
        Pod compute-hive01/quiet-0: {metadata: {annotations: {pod-reaper.io/skip: 'true'}}}
        Pod compute-hive01/slow-0: {spec: {nodeName: ds01}}
        Pod vault/web-0: {spec: {nodeName: kosmos-cluster7}}
        Pod impala-impala01/odd-0: {spec: {nodeName: 6}}
        VolumeAttachment csi-2: {spec: {nodeName: ds06, source: {persistentVolumeName: pvc-zone}}}
        VolumeAttachment csi-1: {spec: {nodeName: ds06, source: {persistentVolumeName: pvc-gone}}}
    ";
    let others = ["ds01", "ds02", "ds03", "ds04", "ds05"];
    let others = others.map(|name| format!("Node {name}: {{lease: null, ready: '{status}'}}\n"));
    [objects(&yaml(&others.concat())), objects(&yaml(REST))].concat()
}

/// Returns a report with `name` in every text that comes from the cluster.
pub fn report_with(name: &str) -> Report {
    let of_db = |more: Value| {
        let usual = json!({"owner": "StatefulSet db", "metadata": {"namespace": name}});
        with(usual, more)
    };
    let leaf = json!({"name": name, "labels": {"kosmos.io/node": "true"},
        "annotations": {"kosmos-io/owned-by-cluster": name}});
    let noted = json!({"owner": format!("StatefulSet {name}"),
        "metadata": {"name": name, "annotations": {"pod-reaper.io/after-reap": name}}});
    let objects = objects(&json!({
        "Node ds05": {"ready": "True", "lease": null},
        "Node ds06": {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": name,
            "lastTransitionTime": FAILED}]}},
        "Node leaf": {"lease": null, "metadata": leaf},
        "Namespace named": {"metadata": {"name": name}},
        "Pod named": of_db(noted),
        "Pod held": of_db(json!({"metadata": {"finalizers": [name]}})),
        "Pod lost": of_db(json!({"uses": name})),
        "Pod leafy": of_db(json!({"node": name})),
        "VolumeAttachment named": {"volume": name, "metadata": {"name": name}},
    }));
    let mut report = report(&audit(), &objects, &[]);
    report.errors.push(crate::facts::ReadError {
        what: name.to_owned(),
        cause: name.to_owned(),
    });
    report.unseen.push(name.to_owned());
    let pattern = name.parse().or_else(|_| regex::escape(name).parse());
    report.settings.namespaces.include = Some(pattern.expect("a pattern"));
    report.snapshot = Some(name.to_owned());
    report
}

/// Returns the report of a run that deletes, with every possible outcome.
pub fn every_outcome() -> Report {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let pods = names
        .map(|name| format!("Pod app/{name}-0: {{}}\n"))
        .concat();
    let uids = names.map(|name| format!("uid-app-{name}-0"));
    let outcomes = [
        Outcome::Deleted,
        Outcome::Gone,
        Outcome::Changed("Its resource version is another.".to_owned()),
        Outcome::NodeRecovered,
        Outcome::NodeChanged("Another node has registered under the name.".to_owned()),
        Outcome::Denied("pods \"f-0\" is forbidden".to_owned()),
        Outcome::Failed("no response within 10 s".to_owned()),
        Outcome::StillThere,
        Outcome::Unverified("no connection: connection refused".to_owned()),
        Outcome::Interrupted("SIGTERM".to_owned()),
    ];
    let outcomes = uids
        .iter()
        .map(String::as_str)
        .zip(outcomes)
        .collect::<Vec<_>>();
    let cluster =
        format!("Node ds05: {{ready: 'True'}}\nNode ds06: {{}}\nNamespace app: {{}}\n{pods}");
    let objects = objects(&yaml(&cluster));
    let settings = run(Mode::Delete, Target::default());
    report(&settings, &objects, &outcomes)
}

pub fn commands(report: &Report) -> Vec<&String> {
    let nodes = report.nodes.iter().flat_map(|node| &node.steps);
    let pods = report.pods.iter().flat_map(|pod| &pod.advice.steps);
    nodes
        .chain(pods)
        .filter_map(|step| step.command.as_ref())
        .collect()
}
