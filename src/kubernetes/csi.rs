//! CSI volumes of `PersistentVolumes` and of pods, and which of them are disks for one machine.

use std::collections::BTreeMap;

use serde::Deserialize;

raw! {
    /// A CSI volume.
    pub struct CsiSource {
        pub driver: String,
        fs_type: String,
        pub read_only: bool,
        volume_attributes: CsiAttributes,
    }
}

/// The facts that matter about a CSI volume's attributes. Only these are kept, because the author
/// of the attributes decides how many there are.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "BTreeMap<String, Option<String>>")]
struct CsiAttributes {
    /// Whether `dataLocality` is `strict-local`.
    strict_local: bool,
    /// Whether the attributes name a disk on a storage network.
    name_a_disk: bool,
}

impl From<BTreeMap<String, Option<String>>> for CsiAttributes {
    fn from(attributes: BTreeMap<String, Option<String>>) -> Self {
        let value = |value: &Option<String>| value.clone().unwrap_or_default();
        let locality = attributes.get("dataLocality").map(value);
        Self {
            strict_local: locality.as_deref() == Some("strict-local"),
            name_a_disk: attributes.iter().any(|(key, its)| {
                DISK_KEYS.iter().any(|it| it.eq_ignore_ascii_case(key))
                    || DISK_NAMES.iter().any(|it| value(its).starts_with(it))
            }),
        }
    }
}

/// The keys of attributes that name a disk on a storage network, in any case.
const DISK_KEYS: [&str; 7] = [
    "iqn",
    "targetIqn",
    "targetPortal",
    "nqn",
    "lun",
    "wwn",
    "lunWWN",
];
/// The prefixes of such disks' names: those of iSCSI, `NVMe` and SCSI.
const DISK_NAMES: [&str; 4] = ["iqn.", "nqn.", "naa.", "eui."];
/// The prefixes of the names of file systems that only one machine may mount.
const OF_ONE_MACHINE: [&str; 4] = ["ext", "xfs", "btrfs", "ntfs"];
/// The file systems that several machines may mount from one disk.
const OF_CLUSTER: [&str; 2] = ["gfs2", "ocfs2"];

impl CsiSource {
    /// Reports whether the volume has a file system that only one machine may mount.
    pub fn is_of_one_machine(&self) -> bool {
        OF_ONE_MACHINE
            .iter()
            .any(|kind| self.fs_type.starts_with(kind))
    }

    /// Reports whether the attributes name a disk that only one machine may write.
    pub fn names_a_disk(&self) -> bool {
        self.volume_attributes.name_a_disk && !OF_CLUSTER.contains(&self.fs_type.as_str())
    }

    /// Reports whether the volume, which a pod itself declares, is a disk for one machine and is
    /// not read-only.
    pub fn is_written_disk(&self) -> bool {
        !self.read_only && (self.is_of_one_machine() || self.names_a_disk())
    }

    /// Reports whether Longhorn keeps the data on the node that uses it, although Longhorn sets no
    /// affinity.
    pub fn is_strict_local(&self) -> bool {
        self.driver == "driver.longhorn.io" && self.volume_attributes.strict_local
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{
        facts::VolumeFacts,
        kubernetes::{RawPod, RawVolume},
    };

    #[test]
    fn a_disk_is_known_by_attributes_or_by_its_file_system() {
        for (csi, of_volume, of_pod) in [
            (json!({}), false, false),
            (json!({"fsType": "ext4"}), true, true),
            (json!({"fsType": "xfs"}), true, true),
            (json!({"fsType": "btrfs"}), true, true),
            (json!({"fsType": "ntfs"}), true, true),
            (json!({"fsType": "nfs"}), false, false),
            (json!({"fsType": "ext4", "readOnly": true}), false, false),
            // The example of csi-driver-iscsi.
            (
                json!({"volumeAttributes": {"targetPortal": "127.0.0.1:3260", "portals": "[]", "iqn": "iqn.2015-06.com.example.test:target1", "lun": "1"}}),
                true,
                true,
            ),
            (json!({"volumeAttributes": {"iqn": ""}}), true, true),
            (json!({"volumeAttributes": {"targetIqn": ""}}), true, true),
            (
                json!({"volumeAttributes": {"targetportal": ""}}),
                true,
                true,
            ),
            (json!({"volumeAttributes": {"NQN": ""}}), true, true),
            (json!({"volumeAttributes": {"Lun": "0"}}), true, true),
            (json!({"volumeAttributes": {"WWN": null}}), true, true),
            (json!({"volumeAttributes": {"lunwwn": ""}}), true, true),
            (json!({"volumeAttributes": {"lunId": "0"}}), false, false),
            (json!({"volumeAttributes": {"x": "iqn.2015"}}), true, true),
            (json!({"volumeAttributes": {"x": "nqn.2015"}}), true, true),
            (json!({"volumeAttributes": {"x": "naa.600"}}), true, true),
            (json!({"volumeAttributes": {"x": "eui.600"}}), true, true),
            (
                json!({"volumeAttributes": {"x": "the iqn.2015"}}),
                false,
                false,
            ),
            (json!({"volumeAttributes": {"x": "iqn"}}), false, false),
            (
                json!({"volumeAttributes": {"server": "nfs.example", "share": "/"}}),
                false,
                false,
            ),
            (
                json!({"fsType": "gfs2", "volumeAttributes": {"iqn": ""}}),
                false,
                false,
            ),
            (
                json!({"fsType": "ocfs2", "volumeAttributes": {"iqn": ""}}),
                false,
                false,
            ),
            (
                json!({"fsType": "nfs", "volumeAttributes": {"iqn": ""}}),
                true,
                true,
            ),
            (
                json!({"readOnly": true, "volumeAttributes": {"iqn": ""}}),
                false,
                false,
            ),
            (json!({"volumeAttributes": null}), false, false),
        ] {
            let mut csi = csi;
            csi["driver"] = json!("csi.example");
            let volume = json!({"metadata": {"name": "pv-1"}, "spec": {"csi": csi, "accessModes": ["ReadWriteOnce"]}});
            let volume = serde_json::from_value::<RawVolume>(volume).unwrap();
            let found = VolumeFacts::from(volume).driver.is_some();
            assert_eq!(found, of_volume, "a volume: {csi}");
            let pod = json!({"metadata": {"namespace": "shop", "name": "db-0", "uid": "p", "resourceVersion": "7",
                "deletionTimestamp": "2026-01-31T02:00:00Z"}, "spec": {"volumes": [{"name": "v", "csi": csi}]}});
            let pod = serde_json::from_value::<RawPod>(pod).unwrap().facts();
            let found = pod.own_disk;
            let expected = of_pod.then_some("its volume v is a disk of a CSI driver");
            assert_eq!(found.as_deref(), expected, "of a pod: {csi}");
        }
    }

    /// A disk that the attributes name has one writer, whatever the access modes are.
    #[test]
    fn the_modes_of_a_volume_matter_only_to_its_file_system() {
        let iqn = json!({"driver": "csi.example", "volumeAttributes": {"iqn": ""}});
        let ntfs = json!({"driver": "csi.example", "fsType": "ntfs"});
        let gfs2 =
            json!({"driver": "csi.example", "fsType": "gfs2", "volumeAttributes": {"iqn": ""}});
        for (csi, mode, expected) in [
            (&iqn, "ReadWriteMany", true),
            (&iqn, "ReadOnlyMany", false),
            (&ntfs, "ReadWriteMany", false),
            (&ntfs, "ReadOnlyMany", false),
            (&gfs2, "ReadWriteMany", false),
            (&gfs2, "ReadWriteOncePod", true),
        ] {
            let volume =
                json!({"metadata": {"name": "pv-1"}, "spec": {"csi": csi, "accessModes": [mode]}});
            let volume = serde_json::from_value::<RawVolume>(volume).unwrap();
            assert_eq!(volume.driver_of_disk().is_some(), expected, "{mode} {csi}");
        }
    }
}
