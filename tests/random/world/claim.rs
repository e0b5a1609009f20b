//! A PVC, with its `StatefulSet`, its volume, the volume's attachments and its driver: how random ones are made, what is known
//! about them, and their JSON.

use super::{
    Key, World,
    node::{Node, asks, made, satisfies},
    time, unread,
};
use crate::prelude::*;
use pod_reaper::facts::{BoundClaim, ClaimDeletion, Driver, Read};
use rules::samples::term;
use serde_json::json;

/// A volume as facts. The facts have only the name of its driver.
#[derive(Debug, Clone)]
pub struct Volume {
    pub facts: VolumeFacts,
    /// Its CSI driver; empty if it has none.
    pub csi: &'static str,
    /// Its access modes, its volume mode and its file system type.
    pub modes: [&'static str; 3],
    /// One of its volume attributes.
    pub attribute: [&'static str; 2],
}

#[derive(Debug, Clone)]
pub struct Claim {
    pub uid: String,
    /// The UIDs of its owners.
    pub owners: Vec<Uid>,
    pub many_writers: bool,
    pub block: bool,
    pub volume: Option<String>,
    pub phase: &'static str,
    pub deletion: Option<ClaimDeletion>,
}

#[derive(Debug, Clone)]
pub struct Set {
    /// The names of its PVC templates.
    pub templates: Vec<String>,
    /// The number of pods that it wants; `None` means all.
    pub replicas: Option<u64>,
    /// The ordinal of its first pod.
    pub start: u64,
    pub deleted: bool,
    /// The UID of the pods' owner, unless the set was recreated.
    pub uid: &'static str,
}

impl Set {
    pub(super) fn random(dice: &mut Dice) -> Option<Self> {
        let templates = ["data0", "data1"]
            .into_iter()
            .filter(|_| dice.permille(900));
        let templates = templates.map(str::to_owned).collect();
        let replicas = dice.weigh(&[(20, None), (3, Some(0)), (4, Some(130)), (1, Some(999))]);
        dice.permille(950).then(|| Self {
            templates,
            replicas,
            start: dice.weigh(&[(20, 0), (3, 130), (1, 999)]),
            deleted: dice.permille(60),
            uid: dice.weigh(&[(6, "uid-of-owner"), (1, "uid-of-another")]),
        })
    }

    /// Resets the set to its original state, in which it wants all pods of its name.
    pub(super) fn want_all(&mut self) {
        (self.replicas, self.start) = (None, 0);
        (self.deleted, self.uid) = (false, "uid-of-owner");
    }

    fn wants(&self, pod: &str) -> bool {
        let ordinal = pod
            .rsplit_once('-')
            .and_then(|(_, ordinal)| ordinal.parse::<u64>().ok());
        let wants = |ordinal| {
            let end = self
                .replicas
                .map_or(u64::MAX, |replicas| self.start + replicas);
            (self.start..end).contains(&ordinal)
        };
        !self.deleted && ordinal.is_some_and(wants)
    }
}

/// The `StatefulSet` that exists in its namespace.
pub const SET: &str = "set";

impl World {
    pub(super) fn add_claim(
        &mut self,
        dice: &mut Dice,
        namespace: &str,
        name: &str,
        node: Option<&str>,
        owner: Option<&str>,
        on_disk: bool,
    ) {
        let volume = format!("pv-{}", self.version());
        let own = node
            .and_then(|node| self.nodes.get(node))
            .map(|node| node.facts.clone());
        let own_name = own.as_ref().map_or("n0", |node| node.name.as_str());
        let own_host = own
            .as_ref()
            .and_then(|node| node.hostname.as_deref())
            .unwrap_or("h0");
        let (mut storage, mut affinity) = random_storage(dice, own_name, own_host);
        if on_disk && dice.permille(800) {
            let path = "/var/scratch".to_owned();
            (storage, affinity) = (
                Storage::HostPath(path),
                on("kubernetes.io/hostname In HOST", own_name, own_host),
            );
        }
        let shared = !on_disk || dice.permille(100);
        let exists = dice.permille(950);
        let (bound, phase) = match dice.weigh(&[(20, 0), (1, 1), (1, 2)]) {
            1 => (None, "Pending"),
            2 => (Some(volume.clone()), "Lost"),
            _ => (Some(volume.clone()), "Bound"),
        };
        if dice.permille(950) {
            let is_path = matches!(storage, Storage::Local(_) | Storage::HostPath(_));
            let is_strict = storage == Storage::StrictLocal;
            let mut disk = dice.weigh(&[
                (60, None),
                (1, Some("iscsi")),
                (1, Some("fc")),
                (1, Some("flexVolume")),
            ]);
            disk = disk.filter(|_| !is_path && !is_strict);
            let csi = dice.pick(&DRIVERS[usize::from(!is_strict && !affinity.is_empty())..]);
            let csi = if is_strict { DRIVERS[0] } else { csi };
            let csi = if is_path || disk.is_some() { "" } else { csi };
            let words = |text: &'static str| {
                let lines = text.trim().lines();
                let word = |word| if word == "-" { "" } else { word };
                lines
                    .map(move |line| line.split_whitespace().map(word).collect_vec())
                    .collect_vec()
            };
            let modes = dice.pick(
                &words(MODES)
                    .into_iter()
                    .map(|it| [it[0], it[1], it[2]])
                    .collect_vec(),
            );
            let attributes = words(ATTRIBUTES)
                .into_iter()
                .map(|it| (it[0] == "disk", [it[1], it[2]]));
            let (names_a_disk, attribute) = dice.pick(&attributes.collect_vec());
            let may_be_written = is_disk(modes, names_a_disk) && !csi.is_empty();
            let driver = may_be_written.then(|| Driver {
                name: csi.to_owned(),
                attaches: None,
            });
            let facts = VolumeFacts {
                name: volume.clone(),
                reclaim_policy: Some("Delete".to_owned()),
                storage,
                disk,
                driver,
                affinity,
            };
            if dice.permille(500) {
                let on = if dice.permille(900) {
                    own_name
                } else {
                    "another"
                };
                let attachment = Attachment {
                    name: format!("of-{volume}"),
                    volume: Some(volume.clone()),
                    driver: Some("csi.example".to_owned()),
                };
                self.attachments.push((on.to_owned(), attachment));
            }
            self.volumes.insert(
                volume,
                Volume {
                    facts,
                    csi,
                    modes,
                    attribute,
                },
            );
        }
        if exists {
            let claim = Claim {
                uid: self.uid(),
                owners: owner.map(Uid::from).into_iter().collect(),
                deletion: dice.permille(200).then(|| deletion(dice)),
                many_writers: shared && dice.permille(250),
                block: dice.permille(300),
                volume: bound,
                phase,
            };
            self.claims
                .insert((namespace.to_owned(), name.to_owned()), claim);
        }
    }

    /// The facts about the PVCs of `pod`, from the readings of each PVC and each volume. `set` is the set of its controller's name,
    /// if that was read.
    pub fn known_claims<'a>(
        pod: &PodFacts,
        set: Option<&Set>,
        claim: impl Fn(&str) -> Read<Option<&'a Claim>>,
        volume: impl Fn(&str) -> Read<Option<VolumeFacts>>,
    ) -> Vec<ClaimFacts> {
        let of_set =
            pod.controller.is_some() && pod.owner.as_ref().is_some_and(|owner| owner.name == SET);
        // A recreated set may want the pod, but is not the pod's controller.
        let its_set = set.filter(|set| {
            let controller = pod.controller.as_ref();
            of_set && controller.is_some_and(|it| it.uid.as_str() == set.uid)
        });
        let known = pod.claims.iter().map(|named| {
            let (name, ephemeral) = named.reference();
            let of_template = name.strip_suffix(&format!("-{}", pod.name));
            let templated = its_set.is_some_and(|set| {
                let mut templates = set.templates.iter();
                set.wants(&pod.name) && templates.any(|name| Some(name.as_str()) == of_template)
            });
            let found = claim(name);
            let owns = |found: Option<&Claim>| found.is_some_and(|it| it.owners.contains(&pod.uid));
            let deletion = found.clone().ok().flatten();
            let deletion = deletion.and_then(|it| it.deletion.clone());
            let owned = found.clone().is_ok_and(owns);
            ClaimFacts {
                name: name.to_owned(),
                ephemeral,
                templated,
                deletion,
                owned,
                state: Some(claim_state(found, &volume)),
            }
        });
        known.collect()
    }
}

/// Whether the `StatefulSet` of the name [`SET`] wants the pod, as far as the set was read. Returns `None` if no set controls the
/// pod.
pub fn wanted_by_set(pod: &PodFacts, set: &Read<Option<&Set>>) -> Option<Read<bool>> {
    let is_there = pod.owner.as_ref().is_some_and(|owner| owner.name == SET);
    let read = if is_there { set.clone() } else { Ok(None) };
    is_of_a_set(pod).then(|| read.map(|set| set.is_some_and(|set| set.wants(&pod.name))))
}

fn is_of_a_set(pod: &PodFacts) -> bool {
    let is_set = pod
        .owner
        .as_ref()
        .is_some_and(|owner| owner.kind == "StatefulSet");
    is_set
        && pod
            .controller
            .as_ref()
            .is_some_and(|it| it.api_version.starts_with("apps/"))
}

/// The volumes of the pod's PVCs.
pub fn volumes_mut(pod: &mut PodFacts) -> impl Iterator<Item = &mut VolumeFacts> {
    pod.claims
        .iter_mut()
        .filter_map(|claim| match &mut claim.state {
            Some(ClaimState::Bound(bound)) => Some(&mut bound.volume),
            _ => None,
        })
}

pub(super) const DRIVERS: [&str; 2] = ["driver.longhorn.io", "csi.example"];

/// Access modes, volume mode and file system type.
const MODES: &str = "
    ReadWriteOnce Block -
    ReadWriteOncePod Filesystem -
    ReadWriteOnce Filesystem ext4
    ReadWriteOnce Filesystem xfs
    ReadWriteOnce Filesystem ntfs
    ReadOnlyMany+ReadWriteOnce Filesystem btrfs
    ReadOnlyMany Filesystem ext4
    ReadWriteMany Block ext4
    ReadWriteMany Filesystem ext4
    ReadWriteOnce+ReadWriteMany Filesystem ext3
    ReadWriteOnce Filesystem nfs
    ReadWriteOnce Filesystem -
    ReadWriteMany Filesystem gfs2
    ReadWriteOnce Filesystem ocfs2
";

/// Volume attributes, and whether each names a disk.
const ATTRIBUTES: &str = "
    - server nas
    - server nas
    - server nas
    - server nas
    disk iqn x
    disk TargetIQN x
    disk targetPortal 10.0.0.1:3260
    disk NQN x
    disk lun 0
    disk wwn 5000
    disk lunWwn 5000
    disk name iqn.2001-04.com.example:disk
    disk name nqn.2014-08.org.example
    disk wwid naa.5000
    disk wwid eui.5000
    - iqns x
    - lunId 0
    - name x-iqn.2001
    - name iqn
    - portal 10.0.0.1
";

/// Whether the volume is a disk for one machine that is not only read.
fn is_disk([access, mode, fs]: [&str; 3], names_a_disk: bool) -> bool {
    let has = |wanted: &str| access.split('+').any(|mode| mode == wanted);
    let of_one = ["ext3", "ext4", "xfs", "btrfs", "ntfs"].contains(&fs);
    let of_cluster = ["gfs2", "ocfs2"].contains(&fs);
    access != "ReadOnlyMany"
        && (mode == "Block"
            || has("ReadWriteOncePod")
            || of_one && !has("ReadWriteMany")
            || names_a_disk && !of_cluster)
}

/// Required node affinities of volumes, in terms of the name and the host of the volume's own node.
const AFFINITIES: &str = "
    topology.topolvm.io/node In NAME
    kubernetes.io/hostname In HOST NAME
    kubernetes.io/hostname In HOST & topology.kubernetes.io/zone In a
    topology.kubernetes.io/region In r
    kubernetes.io/hostname In HOST another
    kubernetes.io/hostname In HOST h1 h2
    kubernetes.io/hostname NotIn HOST
    disk In ssd
    disk NotIn ssd hdd
    disk Exists
    disk DoesNotExist
    example.org/gen Gt 3
    example.org/gen Lt 4
    example.org/gen Gt x
    disk In -ssd
    kubernetes.io/hostname In HOST | disk In ssd
    topology.kubernetes.io/zone In a & disk In hdd
    field & disk Exists
    &
    kubernetes.io/hostname In
    disk Exists ssd
    disk Near ssd
    failure-domain.beta.kubernetes.io/region In NAME
    topology.kubernetes.io/zone In b | kubernetes.io/hostname In HOST
    & | kubernetes.io/hostname In h1 | disk In ssd
";

/// An affinity of a volume that belongs to the node with this name and host.
fn on(text: &str, own_name: &str, own_host: &str) -> Vec<AffinityTerm> {
    let text = text.replace("NAME", own_name).replace("HOST", own_host);
    text.split('|').map(term).collect()
}

fn random_storage(dice: &mut Dice, own_name: &str, own_host: &str) -> (Storage, Vec<AffinityTerm>) {
    let on = |text: &str| on(text, own_name, own_host);
    let path = || "/mnt/disk".to_owned();
    match dice.weigh(&[(24, 0), (3, 1), (2, 2), (1, 3), (1, 4), (20, 5)]) {
        0 => (Storage::Driver, Vec::new()),
        1 => (Storage::Driver, on("topology.kubernetes.io/zone In a b")),
        2 => (Storage::Local(path()), on("kubernetes.io/hostname In HOST")),
        3 => (Storage::HostPath(path()), Vec::new()),
        4 => (Storage::StrictLocal, Vec::new()),
        _ => {
            let affinities = AFFINITIES.trim().lines().collect::<Vec<_>>();
            let storage = match dice.below(6) {
                0 => Storage::Local(path()),
                1 => Storage::HostPath(path()),
                _ => Storage::Driver,
            };
            (storage, on(dice.pick(&affinities)))
        }
    }
}

/// Returns a volume as used on `node`, with the facts about its driver, if it has one.
pub fn attached(
    mut volume: VolumeFacts,
    node: &str,
    attachments: &[(String, Attachment)],
    drivers: Option<&BTreeMap<String, Option<bool>>>,
) -> VolumeFacts {
    let is_it =
        |(on, it): &(String, Attachment)| on == node && it.volume.as_ref() == Some(&volume.name);
    let is_attached = attachments.iter().any(is_it);
    if let Some(driver) = &mut volume.driver {
        let says = drivers.map(|drivers| drivers.get(&driver.name).copied().flatten());
        driver.attaches = if is_attached {
            Some(Ok(true))
        } else {
            Some(says.map(|says| says != Some(false)).ok_or_else(unread))
        };
    }
    volume
}

/// Returns a volume with the real nodes among `nodes` from which it can be reached.
pub fn reached<'a>(
    mut volume: VolumeFacts,
    nodes: impl Iterator<Item = &'a Node> + Clone,
) -> VolumeFacts {
    let real = nodes.filter(|node| node.facts.leaf.is_none());
    for term in volume.affinity.iter_mut().filter(|term| asks(term)) {
        let refused = satisfies(term, &BTreeMap::new()).is_none();
        let satisfying = real
            .clone()
            .filter(|node| satisfies(term, &node.labels) == Some(true));
        let names = satisfying
            .map(|node| node.facts.name.clone())
            .collect::<Vec<_>>();
        term.satisfied_by = Some(if refused { Err(unread()) } else { Ok(names) });
    }
    volume
}

/// The state of a PVC, from the objects that were found.
fn claim_state(
    claim: Read<Option<&Claim>>,
    volume: impl Fn(&str) -> Read<Option<VolumeFacts>>,
) -> ClaimState {
    let claim = match claim {
        Err(unread) => return ClaimState::Unread(unread),
        Ok(None) => return ClaimState::Absent,
        Ok(Some(claim)) => claim,
    };
    let without = ClaimState::WithoutVolume {
        missing: claim.volume.clone(),
        phase: None,
    };
    let Some(name) = &claim.volume else {
        return without;
    };
    match volume(name) {
        Err(unread) => ClaimState::Unread(unread),
        Ok(Some(volume)) if claim.phase != "Lost" => {
            let shared_disk = claim.many_writers && claim.block;
            ClaimState::Bound(BoundClaim {
                uid: claim.uid.clone().into(),
                shared_disk,
                volume,
            })
        }
        Ok(_) => without,
    }
}

/// A deletion before the node failed, or after.
fn deletion(dice: &mut Dice) -> ClaimDeletion {
    let minutes = dice.pick(&[14_400, 30, 30, 11, 3]);
    let foreign = dice.permille(150).then(|| "example.com/backup".to_owned());
    ClaimDeletion {
        at: start() - SignedDuration::from_mins(minutes),
        finalizers: foreign.into_iter().collect(),
    }
}

pub fn claim((namespace, name): &Key, claim: &Claim) -> Value {
    let owner = |uid: &Uid| json!({"kind": "Pod", "name": "owner", "uid": uid, "controller": true});
    let owners = claim.owners.iter().map(owner).collect::<Vec<_>>();
    let others = claim.deletion.iter().flat_map(|it| &it.finalizers);
    let protection = "kubernetes.io/pvc-protection".to_owned();
    let finalizers = others.chain([&protection]).collect::<Vec<_>>();
    json!({
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": namespace, "name": name, "uid": claim.uid, "ownerReferences": owners,
            "deletionTimestamp": claim.deletion.as_ref().map(|it| time(it.at)), "finalizers": finalizers},
        "spec": {
            "volumeName": claim.volume,
            "accessModes": [if claim.many_writers { "ReadWriteMany" } else { "ReadWriteOnce" }],
            "volumeMode": if claim.block { "Block" } else { "Filesystem" },
        },
        "status": {"phase": claim.phase},
    })
}

pub(super) fn set(namespace: &str, set: &Set) -> Value {
    let templates = set
        .templates
        .iter()
        .map(|name| json!({"metadata": {"name": name}}));
    let deleted = set.deleted.then(|| time(made()));
    json!({
        "kind": "StatefulSet",
        "metadata": {"namespace": namespace, "name": SET, "uid": set.uid, "deletionTimestamp": deleted},
        "spec": {"replicas": set.replicas, "ordinals": {"start": set.start},
            "volumeClaimTemplates": templates.collect::<Vec<_>>()},
    })
}

pub(super) fn volume(
    Volume {
        facts: volume,
        csi,
        modes,
        attribute: [key, value],
    }: &Volume,
) -> Value {
    let requirement = |Requirement {
                           key,
                           operator,
                           values,
                       }: &Requirement| json!({"key": key, "operator": operator, "values": values});
    let term = |term: &AffinityTerm| {
        let expressions = term
            .requirements
            .iter()
            .map(requirement)
            .collect::<Vec<_>>();
        let field = json!({"key": "metadata.name", "operator": "NotIn", "values": ["n0"]});
        json!({"matchExpressions": expressions, "matchFields": term.fields.then(|| vec![field])})
    };
    let terms = volume.affinity.iter().map(term).collect::<Vec<_>>();
    let [access, mode, fs] = modes;
    let mut spec = json!({"persistentVolumeReclaimPolicy": volume.reclaim_policy,
        "accessModes": access.split('+').collect::<Vec<_>>(), "volumeMode": mode});
    // The same value with another driver, and another value with Longhorn, do not keep a pod.
    let strict = volume.storage == Storage::StrictLocal || *csi != "driver.longhorn.io";
    let locality = if strict {
        "strict-local"
    } else {
        "best-effort"
    };
    match (&volume.storage, volume.disk) {
        (Storage::Local(path), _) => spec["local"] = json!({"path": path}),
        (Storage::HostPath(path), _) => spec["hostPath"] = json!({"path": path}),
        (_, Some(disk)) => spec[disk] = json!({"lun": 0}),
        (_, None) if csi.is_empty() => spec["iscsi"] = json!({"lun": 0, "readOnly": true}),
        (_, None) => {
            spec["csi"] = json!({"driver": csi, "fsType": fs, "volumeAttributes": {"dataLocality": locality, (*key): value}});
        }
    }
    if !terms.is_empty() {
        spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
    }
    json!({"kind": "PersistentVolume", "metadata": {"name": volume.name}, "spec": spec})
}

pub(super) fn attachment(node: &str, attachment: &Attachment) -> Value {
    json!({
        "kind": "VolumeAttachment",
        "metadata": {"name": attachment.name},
        "spec": {
            "attacher": attachment.driver,
            "nodeName": node,
            "source": {"persistentVolumeName": attachment.volume},
        },
    })
}

pub(super) fn driver(name: &str, attaches: Option<bool>) -> Value {
    json!({"kind": "CSIDriver", "metadata": {"name": name}, "spec": {"attachRequired": attaches}})
}
