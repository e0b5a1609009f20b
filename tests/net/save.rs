//! A saved cluster: the file that `save` writes, and what an audit says of it.

use std::io::Read as _;

use pod_reaper::{cluster::Cluster, save, stop::Stop};
use pod_reaper_test_support::{
    samples::NOW,
    simulated::{Fate, Fault, Kind, Objects, Request, Server, Trouble},
};
use serde_json::Value;

use crate::{
    audit::{audit, settings},
    dice,
    run::{Plan, paused},
};

/// Saves the objects, with these faults. Returns the file, or why there is none.
pub fn saved(
    state: Objects,
    args: &[String],
    fates: impl FnMut(&Request) -> Fate + Send + 'static,
    page: usize,
) -> Result<String, String> {
    paused().block_on(async {
        let settings = settings(args);
        let (_signal, stop) = Stop::manual(settings.deadline);
        let server = Server::with_faults(state, fates).page(page).saves();
        let cluster = Cluster::new(server.client(), stop);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let to = file.reopen().unwrap();
        let selectors = &settings.policy.node_selectors;
        let saved = save::write(&cluster, selectors, &settings.history_namespace, to).await;
        assert!(server.lock().not_understood.is_empty());
        saved.map_err(|error| error.to_string())?;
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        Ok(text)
    })
}

impl Plan {
    /// Saves the cluster, and audits the file.
    pub fn save_and_audit(&self) -> Value {
        let of_history = self.history.fault;
        let fates = move |request: &Request| Fate {
            fault: of_history.filter(|_| request.kind == Kind::History),
            ..Fate::default()
        };
        let file = saved(self.state(), &self.args, fates, 2);
        audit(&file.unwrap(), NOW, self.args_of_audit()).unwrap()
    }

    /// Saves the cluster while reads fail, and audits the file, if it can be judged.
    pub fn save_with_faults_and_audit(&self, seed: u64) -> Option<Value> {
        let mut dice = dice(seed, 6);
        let kinds = Kind::all(true);
        let always = dice.permille(400).then(|| {
            let kind = dice.pick(&kinds);
            (kind, Fault::random(kind, &mut dice))
        });
        let trouble = Trouble {
            faults: dice.pick(&[20, 150, 350]),
            always,
            after: dice.pick(&[0, 0, 1, 2]),
            latency: dice.pick(&[1, 10, 40]),
        };
        let page = dice.pick(&[1, 2, 3, 500]);
        let file = saved(self.state(), &self.args, trouble.fates(dice.fork()), page).ok()?;
        audit(&file, NOW, self.args_of_audit()).ok()
    }
}

/// The strings that rules read, by kind, without the places in lists. A star stands for any key. All others are replaced, so a
/// field that a rule begins to read has to be added here.
const READ: &[(&str, &[&str])] = &[
    (
        "Pod",
        &[
            "metadata.labels.statefulset.kubernetes.io/pod-name",
            "metadata.finalizers",
            "metadata.ownerReferences.*",
            "metadata.managedFields.manager",
            "metadata.managedFields.time",
            "spec.nodeName",
            "spec.nodeSelector.kubernetes.io/hostname",
            "spec.tolerations.*",
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.matchExpressions.operator",
            "spec.volumes.name",
            "spec.volumes.persistentVolumeClaim.claimName",
            "spec.volumes.hostPath.*",
            "spec.containers.volumeMounts.name",
            "spec.containers.volumeMounts.subPath",
            "status.phase",
        ],
    ),
    (
        "Node",
        &[
            "metadata.labels.*",
            "metadata.managedFields.manager",
            "metadata.managedFields.time",
            "spec.providerID",
            "spec.taints.*",
            "status.addresses.*",
            "status.conditions.type",
            "status.conditions.status",
            "status.conditions.reason",
            "status.conditions.lastTransitionTime",
            "status.conditions.lastHeartbeatTime",
            "status.nodeInfo.kubeletVersion",
            "status.nodeInfo.bootID",
            "status.nodeInfo.machineID",
            "status.nodeInfo.systemUUID",
        ],
    ),
    ("Namespace", &[]),
    (
        "Lease",
        &[
            "metadata.labels.kubernetes.io/hostname",
            "metadata.managedFields.manager",
            "metadata.managedFields.time",
            "spec.holderIdentity",
            "spec.renewTime",
        ],
    ),
    (
        "PersistentVolumeClaim",
        &[
            "metadata.finalizers",
            "spec.volumeName",
            "spec.accessModes",
            "spec.volumeMode",
            "status.phase",
        ],
    ),
    (
        "PersistentVolume",
        &[
            "metadata.finalizers",
            "spec.accessModes",
            "spec.persistentVolumeReclaimPolicy",
            "spec.claimRef.uid",
            "spec.nodeAffinity.required.nodeSelectorTerms.matchExpressions.*",
            "spec.csi.driver",
            "spec.csi.fsType",
        ],
    ),
    (
        "VolumeAttachment",
        &[
            "metadata.finalizers",
            "spec.attacher",
            "spec.nodeName",
            "spec.source.persistentVolumeName",
        ],
    ),
    ("CSIDriver", &[]),
    ("StatefulSet", &["spec.volumeClaimTemplates.metadata.name"]),
    ("ConfigMap", &["data.uid-n1"]),
];

/// The names and times that are read of every object.
const OF_ALL: [&str; 8] = [
    "apiVersion",
    "kind",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
];
/// No part of what is read.
const CANARY: &str = "a canary tweets";

/// Puts the canary into every string that no rule reads, and into every map.
fn spoil(value: &mut Value, path: &str, is_read: bool, read: &[&str]) {
    match value {
        Value::String(text) if !is_read => CANARY.clone_into(text),
        Value::Array(items) => {
            for item in items {
                spoil(item, path, is_read, read);
            }
        }
        Value::Object(fields) => {
            let any = format!("{path}.*");
            let are_read = read.contains(&any.as_str());
            for (key, field) in fields.iter_mut() {
                let path = format!("{path}.{key}");
                let path = path.trim_start_matches('.');
                let is_read = are_read || read.contains(&path) || OF_ALL.contains(&path);
                spoil(field, path, is_read, read);
            }
            let maps = ["metadata", "labels", "annotations"];
            if !are_read && maps.iter().any(|it| path.ends_with(it)) {
                fields.insert("canary".to_owned(), CANARY.into());
            }
        }
        _ => {}
    }
}

/// Nothing that no rule reads gets into the file.
#[test]
fn a_saved_file_has_nothing_that_no_rule_reads() {
    let whole = serde_saphyr::from_str::<Vec<Value>>(include_str!("whole-objects.yaml"));
    let mut objects = whole.unwrap();
    let saved = |objects: &[Value]| {
        let state = Objects::new(NOW.parse().unwrap(), objects.to_vec());
        saved(state, &["pod-reaper".to_owned()], |_| Fate::default(), 2).unwrap()
    };
    let file = saved(&objects).replace(env!("CARGO_PKG_VERSION"), "VERSION");
    expect_test::expect_file!["saved.json"].assert_eq(&file);
    for object in &mut objects {
        let of_kind = READ.iter().find(|(kind, _)| object["kind"] == **kind);
        spoil(object, "", false, of_kind.unwrap().1);
    }
    let file = saved(&objects);
    let at = file.find("canary");
    assert_eq!(at.map(|at| &file[at.saturating_sub(200)..at + 20]), None);
}
