//! A pod: how a random one is made, what follows from it, and its JSON.

use super::{
    Facts, Key, NAMESPACES, World, age,
    claim::SET,
    created, entry,
    node::{Runs, Skip},
    skip, time,
};
use crate::prelude::*;
use pod_reaper::facts::{Containers, Deletion, Heard, Identity, NamespaceFacts, Owner, SignBy};
use pod_reaper_test_support::samples;
use serde_json::json;

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Pod {
    /// The pod's facts before any query about its PVCs. The deletion deadline is valid only if the pod is Terminating.
    pub facts: PodFacts,
    pub terminating: bool,
    pub skip: Skip,
    /// The hash that its Deployment has given its `ReplicaSet`.
    pub template: Option<&'static str>,
    /// Whether a volume names a PVC that another volume of the pod creates.
    pub names_its_own: bool,
    pub paths: Vec<HostPath>,
    /// A volume of the pod itself that is a disk, or looks like one, in YAML.
    pub own_disk: Option<&'static str>,
    /// The program that has written to the pod, and when.
    pub word: Option<(&'static str, Timestamp)>,
    pub looks: Looks,
    pub changed: bool,
    /// Whether this program force-deleted the pod.
    pub(super) forced_by_us: bool,
    pub(super) released_at: Option<Instant>,
}

/// A `hostPath` of a pod.
#[derive(Debug, Clone, Copy)]
pub struct HostPath {
    /// One of the lines of [`HOST_PATHS`].
    line: &'static str,
    mount: Mount,
    by_init: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mount {
    Writes,
    Reads,
    None,
}

/// The deletion request of the pod.
pub fn deletion(pod: &mut PodFacts) -> &mut Deletion {
    pod.deletion.get_or_insert_default()
}

/// Whether the pod was force-deleted.
pub fn is_forced(pod: &PodFacts) -> bool {
    pod.deletion.is_some_and(|its| its.grace_seconds == Some(0))
}

impl HostPath {
    /// Whether the path has data, the path, and its type.
    fn words(&self) -> (bool, &'static str, &'static str) {
        let mut words = self.line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        (word() == "data", word(), word())
    }

    /// The path, if the pod may keep data there.
    fn data(&self) -> Option<String> {
        let (is_data, path, _) = self.words();
        (is_data && self.mount == Mount::Writes).then(|| path.to_owned())
    }
}

/// Paths of a node and their types, and whether a path may have data of a workload.
const HOST_PATHS: &str = "
    data /srv/db
    data /srv/db Directory
    data /srv/db DirectoryOrCreate
    data /srv/db/file FileOrCreate
    data /mnt
    data /usr/local
    data /usr/local/db
    data /dev/sdb BlockDevice
    data /var/lib/kubelet-data
    data /var/lib
    data /var/logs
    data /var
    data /tmpfs
    data /etcd
    data /running
    data /srv/etc
    - /
    - /srv/x.sock Socket
    - /srv/tty CharDevice
    - /dev
    - /dev/shm DirectoryOrCreate
    - /dev/tty CharDevice
    - /proc
    - /sys/fs/bpf
    - /etc
    - /etc/ssl/certs
    - /run
    - /run/containerd/containerd.sock Socket
    - /var/run/x
    - /var/log
    - /var/log/pods
    - /var/lib/kubelet
    - /var/lib/kubelet/pods BlockDevice
    - /boot
    - /bin
    - /sbin/x
    - /lib/modules
    - /lib64
    - /usr
    - /usr/lib/db
    - /usr/locally
    - /tmp
    - /tmp/db DirectoryOrCreate
    - /etc/
";

/// Volumes of a pod that may be a disk that several machines write to, and whether they are.
const OWN_DISKS: &str = "
    disk {fc: {lun: 0}}
    disk {flexVolume: {lun: 0}}
    disk {iscsi: {lun: 0}}
    - {iscsi: {readOnly: true}}
    disk {csi: {driver: csi.example, fsType: ext4}}
    disk {csi: {driver: csi.example, fsType: ntfs}}
    - {csi: {driver: csi.example, fsType: ext4, readOnly: true}}
    - {csi: {driver: csi.example, fsType: nfs, volumeAttributes: {server: nas}}}
    - {csi: {driver: csi.example}}
    disk {csi: {driver: csi.example, volumeAttributes: {targetPortal: '10.0.0.1:3260'}}}
    disk {csi: {driver: csi.example, volumeAttributes: {name: iqn.2001-04.com.example}}}
    - {csi: {driver: csi.example, fsType: ocfs2, volumeAttributes: {lun: '0'}}}
";

/// What a pod shows about itself and no rule asks for.
#[derive(Debug, Clone, Copy)]
pub struct Looks {
    /// The phase until the pod has finished, and the phase after that.
    pub phase: &'static str,
    pub finished: &'static str,
    /// The status in its row, unless another status takes precedence.
    pub shows: &'static str,
    pub reason: Option<&'static str>,
}

impl Pod {
    /// The heartbeat of a program that runs in the pod, if the pod is Terminating.
    pub fn heard(&self) -> Option<Heard> {
        let said = self
            .word
            .filter(|(manager, _)| self.terminating && *manager == "Patroni");
        said.map(|(_, at)| Heard {
            by: SignBy::Program,
            at,
            what: None,
        })
    }
}

/// Where the pod runs, and the `ReplicaSet` that controls it.
pub fn runs(pod: &PodFacts) -> Option<Runs<'_>> {
    let owner = pod
        .owner
        .as_ref()
        .filter(|owner| owner.kind == "ReplicaSet");
    let controller = pod.controller.as_ref();
    let owner = owner.filter(|_| controller.is_some_and(|it| it.api_version == "apps/v1"));
    Some(Runs {
        node: pod.node.as_deref()?,
        namespace: &pod.namespace,
        name: &pod.name,
        set: owner.map(|owner| owner.name.as_str()),
    })
}

/// Statuses in the rows of pods. Current versions print neither of the last two for this pod: one is unknown to them, and the
/// other is printed for another reason.
const SHOWN: [&str; 7] = [
    "Running",
    "Completed",
    "Error",
    "Init:0/1",
    "CrashLoopBackOff",
    "Unheard",
    "Terminating",
];

impl World {
    pub(super) fn add_pod(&mut self, dice: &mut Dice, node: Option<String>) -> Key {
        let namespace = dice.pick(&NAMESPACES).to_owned();
        let (owner, workload, template, controller) = random_owner(dice);
        let number = self.version();
        let of_replica_set = owner.as_ref().filter(|owner| owner.kind == "ReplicaSet");
        let mut name = match of_replica_set.filter(|_| dice.permille(800)) {
            Some(owner) => {
                let begin = format!("{}-", owner.name)
                    .chars()
                    .take(58)
                    .collect::<String>();
                format!("{begin}{number:0>5}")
            }
            None => format!("pod-{number}"),
        };
        // Sometimes another namespace has a pod of the same name, so that a name alone identifies nothing.
        let free = |name: &str| {
            !self
                .pods
                .contains_key(&(namespace.clone(), name.to_owned()))
        };
        if dice.permille(200)
            && let Some((_, namesake)) = self.pods.keys().find(|(_, name)| free(name))
        {
            name.clone_from(namesake);
        }
        // A tenant may give a pod the name of a node.
        let nodes = self
            .nodes
            .keys()
            .filter(|name| free(name))
            .cloned()
            .collect_vec();
        if dice.permille(15) && !nodes.is_empty() {
            name.clone_from(&nodes[dice.below(nodes.len())]);
        }
        let (uid, resource_version) = (self.uid(), self.version());
        let finalizers: &[&str] = dice.weigh(&[
            (12, &[][..]),
            (3, &[JOB_TRACKING]),
            (1, &["x/hold"]),
            (1, &[JOB_TRACKING, "x/hold"]),
        ]);
        let of_set = owner.as_ref().is_some_and(|owner| owner.name == SET);
        let of_operator = owner.as_ref().is_some_and(|owner| owner.kind == "Cluster");
        let grace_seconds =
            dice.weigh(&[(3, None), (3, Some(0)), (6, Some(30)), (3, Some(604_800))]);
        let grace = SignedDuration::from_secs(grace_seconds.unwrap_or(0));
        // With a long grace period, the deletion was requested this long ago.
        let asked = start()
            - SignedDuration::from_secs(age(dice))
            - grace.min(SignedDuration::from_secs(30));
        let deletion_deadline = asked + grace;
        let created = created(dice);
        let mut claims = Vec::new();
        for number in 0..dice.weigh(&[(5, 0), (3, 1), (1, 2)]) {
            let (mut claim, mut ephemeral) = (format!("{name}-data{number}"), dice.permille(300));
            if of_set {
                (claim, ephemeral) = (format!("data{number}-{name}"), false);
            }
            let owner = if ephemeral {
                dice.weigh(&[
                    (6, Some(uid.as_str())),
                    (1, Some("uid-of-another")),
                    (1, None),
                ])
            } else {
                dice.weigh(&[(8, None), (1, Some(uid.as_str()))])
            };
            let on_disk = of_set || of_operator && dice.permille(700);
            self.add_claim(dice, &namespace, &claim, node.as_deref(), owner, on_disk);
            // Sometimes the pod uses the PVC of another pod.
            let others = self
                .pods
                .values()
                .filter(|pod| of_set && pod.facts.namespace == namespace);
            let others =
                others.flat_map(|pod| pod.facts.claims.iter().filter(|claim| !claim.ephemeral));
            if dice.permille(40)
                && let Some(shared) = others.map(|claim| claim.name.clone()).next()
                && number == 0
            {
                claim = shared;
            }
            claims.push(ClaimFacts::named(claim, ephemeral));
        }
        let paths = HOST_PATHS.trim().lines().map(str::trim).collect_vec();
        let paths = (0..dice.weigh(&[(12, 0), (3, 1), (1, 2)])).map(|_| HostPath {
            line: dice.pick(&paths),
            mount: dice.weigh(&[(4, Mount::Writes), (1, Mount::Reads), (1, Mount::None)]),
            by_init: dice.permille(200),
        });
        let paths = paths.collect_vec();
        let names_its_own = dice.permille(30) && !of_set;
        for claim in claims.iter_mut().filter(|_| names_its_own) {
            claim.ephemeral = false;
        }
        let skip = Skip::random(dice);
        let own_disks = OWN_DISKS
            .trim()
            .lines()
            .map(|line| line.trim().split_once(' ').unwrap());
        let own_disk = dice.pick(&own_disks.collect_vec());
        let own_disk = dice.permille(90).then_some(own_disk);
        let facts = PodFacts {
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid.into(),
            resource_version: resource_version.into(),
            created,
            node,
            owner,
            workload,
            controller,
            deletion: Some(Deletion {
                deadline: deletion_deadline,
                grace_seconds,
            }),
            own_grace_seconds: 30,
            finalizers: finalizers
                .iter()
                .map(|finalizer| (*finalizer).to_owned())
                .collect(),
            containers: Containers::default(),
            phase: if dice.permille(120) {
                "Failed".to_owned()
            } else {
                String::new()
            },
            ready: false,
            mirror: dice.permille(20),
            opted_out: skip.opted_out(),
            in_namespace: Some(Ok(NamespaceFacts::default())),
            after_reap: dice.permille(50).then(|| "unseal it".to_owned()),
            templates: None,
            claims,
            own_disk: own_disk
                .filter(|(is, _)| *is == "disk")
                .map(|(_, disk)| disk.to_owned()),
            host_paths: paths
                .iter()
                .filter_map(HostPath::data)
                .sorted()
                .dedup()
                .collect(),
            set_wants: None,
            copies: None,
            stays: None,
            tolerates_silence: None,
            tolerates_not_ready: None,
            heard: None,
            lacks: None,
        };
        let terminating = dice.permille(850);
        let pod = Pod {
            facts,
            terminating,
            skip,
            template,
            names_its_own,
            paths,
            own_disk: own_disk.map(|(_, disk)| disk),
            word: dice.permille(120).then(|| {
                let managers = [
                    (8, "Patroni"),
                    (1, "patroni"),
                    (1, "Patroni-2"),
                    (1, "kubelet"),
                ];
                let age = age(dice);
                (
                    dice.weigh(&managers),
                    start() - SignedDuration::from_secs(age),
                )
            }),
            looks: Looks {
                phase: dice.weigh(&[(6, "Running"), (1, "Pending"), (1, "Unknown")]),
                finished: dice.pick(&["Failed", "Succeeded"]),
                shows: dice.pick(&SHOWN),
                reason: dice.pick(&[None, None, None, Some("NodeLost"), Some("Evicted")]),
            },
            changed: false,
            forced_by_us: false,
            released_at: None,
        };
        let key = (namespace, name);
        self.pods.insert(key.clone(), pod);
        key
    }
}

/// How often each kind of owner occurs, its name, and the API version of its controllers. Kinds of the same name in other groups
/// may be anything. An owner without a version owns the pod, and does not control it.
const OWNERS: &str = "
    16 StatefulSet set apps/v1
    6 StatefulSet owner apps/v1
    3 ReplicaSet owner apps/v1
    3 ReplicaSet web-7d9c apps/v1
    2 ReplicaSet a-name-that-is-so-long-that-kubernetes-cuts-it-5d4f7c9b8 apps/v1
    3 Job owner batch/v1
    2 Job nightly-29481234 batch/v1
    1 ReplicationController owner v1
    1 DaemonSet owner apps/v1
    3 Cluster owner example.org/v1
    1 VirtualMachineInstance vm kubevirt.io/v1
    1 Pod virt-launcher-vm v1
    1 Pod driver v1
    1 ReplicaSet owner example.org/v1
    1 replicaset owner apps/v1
    1 ReplicationController owner example.org/v1
    1 Job owner batch.example.org/v1
    1 DaemonSet owner v1
    1 Übersetzung owner example.org/v1
    1 ReplicaSet owner -
    2 - - -
";

/// The owner, the workload above it, the hash of its template, and the controller.
type RandomOwner = (
    Option<Owner>,
    Option<Owner>,
    Option<&'static str>,
    Option<Identity>,
);

fn random_owner(dice: &mut Dice) -> RandomOwner {
    let owners = OWNERS.trim().lines().map(|line| {
        let mut words = line.split_whitespace();
        let often = words.next().unwrap().parse().unwrap();
        let mut word = || words.next().filter(|word| *word != "-").unwrap_or_default();
        (often, (word(), word(), word()))
    });
    let (kind, name, version) = dice.weigh(&owners.collect::<Vec<_>>());
    let owner = |kind: &str, name: &str| {
        let (kind, name) = (kind.to_owned(), name.to_owned());
        (!kind.is_empty()).then_some(Owner { kind, name })
    };
    let (workload, template) = match name {
        "web-7d9c" => (owner("Deployment", "web"), Some("7d9c")),
        "nightly-29481234" => (owner("CronJob", "nightly"), None),
        _ => (owner(kind, name), None),
    };
    let controller = (!version.is_empty()).then(|| Identity {
        api_version: version.to_owned(),
        uid: "uid-of-owner".into(),
    });
    (owner(kind, name), workload, template, controller)
}

pub fn pod_and_facts(pod: &Pod) -> (Value, Facts) {
    (self::pod(pod), Facts::Pod(Arc::new(pod.clone())))
}

pub fn pod(pod: &Pod) -> Value {
    let facts = &pod.facts;
    let volumes = facts.claims.iter().flat_map(|claim| {
        let (claim, ephemeral) = claim.reference();
        // The name of a generic ephemeral volume's PVC consists of the names of the pod and the volume.
        let name = claim
            .strip_prefix(&format!("{}-", facts.name))
            .unwrap_or_default();
        let made = || json!({"name": name, "ephemeral": {"volumeClaimTemplate": {}}});
        let named = json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}});
        match (ephemeral, pod.names_its_own) {
            (true, _) => vec![made()],
            (false, true) => vec![made(), named],
            (false, false) => vec![named],
        }
    });
    let mut own = samples::yaml(pod.own_disk.unwrap_or("{emptyDir: {}}"));
    own["name"] = json!("own");
    let paths = pod.paths.iter().enumerate().map(|(at, path)| {
        let (_, of, kind) = path.words();
        json!({"name": format!("path-{at}"), "hostPath": {"path": of, "type": kind}})
    });
    let volumes = volumes
        .chain([json!({"name": "token", "projected": {}}), own])
        .chain(paths)
        .collect::<Vec<_>>();
    let mounts = |by_init: bool| {
        let of_it = pod.paths.iter().enumerate();
        let of_it = of_it.filter(|(_, path)| path.by_init == by_init && path.mount != Mount::None);
        let mount = |(at, path): (usize, &HostPath)| {
            let reads = path.mount == Mount::Reads;
            json!({"name": format!("path-{at}"), "mountPath": "/x", "readOnly": reads.then_some(true)})
        };
        of_it.map(mount).collect_vec()
    };
    // The marker of a Kosmos pod is no marker here: inside a leaf cluster, ordinary pods carry it too.
    let (mut labels, mut annotations) = (json!({"kosmos-io/pod": "true"}), json!({}));
    skip(pod.skip, &mut labels, &mut annotations);
    if let Some(hash) = pod.template {
        labels["pod-template-hash"] = json!(hash);
    }
    if facts.mirror {
        annotations["kubernetes.io/config.mirror"] = json!("hash");
    }
    if let Some(text) = &facts.after_reap {
        annotations["pod-reaper.io/after-reap"] = json!(text);
    }
    let owner = facts.owner.iter().map(|owner| {
        let mut reference = json!({"kind": owner.kind, "name": owner.name});
        if let Some(controller) = &facts.controller {
            reference["controller"] = json!(true);
            reference["apiVersion"] = json!(controller.api_version);
            reference["uid"] = json!(controller.uid);
        }
        reference
    });
    let deletion = facts.deletion.filter(|_| pod.terminating);
    let deadline = deletion.map(|its| time(its.deadline));
    let grace = deletion.and_then(|its| its.grace_seconds);
    let looks = pod.looks;
    let written = pod
        .word
        .map(|(manager, at)| entry(manager, at, &json!({"f:metadata": {}})));
    json!({
        "kind": "Pod",
        "shows": looks.shows,
        "metadata": {
            "namespace": facts.namespace,
            "name": facts.name,
            "uid": facts.uid,
            "resourceVersion": facts.resource_version,
            "creationTimestamp": facts.created.map(time),
            "labels": labels,
            "annotations": annotations,
            "finalizers": facts.finalizers,
            "ownerReferences": owner.collect::<Vec<_>>(),
            "managedFields": written.as_slice(),
            "deletionTimestamp": deadline,
            "deletionGracePeriodSeconds": grace,
        },
        "spec": {
            "nodeName": facts.node,
            "volumes": volumes,
            "containers": [{"name": "main", "volumeMounts": mounts(false)}],
            "initContainers": [{"name": "init", "volumeMounts": mounts(true)}],
        },
        "status": {
            "phase": if facts.finished() { looks.finished } else { looks.phase },
            "reason": looks.reason,
        },
    })
}
