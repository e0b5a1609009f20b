//! CSI volumes of `PersistentVolumes`, and which of them are disks for one machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

raw! {
    pub struct CsiSource {
        pub driver: String,
        fs_type: String,
        volume_attributes: CsiAttributes,
    }
}

/// The facts that matter about a CSI volume's attributes. Only these are kept, because the author
/// of the attributes decides how many there are.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(
    from = "BTreeMap<String, Option<String>>",
    into = "BTreeMap<String, Option<String>>"
)]
struct CsiAttributes {
    /// Whether `dataLocality` is `strict-local`.
    strict_local: bool,
    /// Whether the attributes name a disk on a storage network.
    name_a_disk: bool,
}

impl From<BTreeMap<String, Option<String>>> for CsiAttributes {
    fn from(attributes: BTreeMap<String, Option<String>>) -> Self {
        let value = |value: &Option<String>| value.clone().unwrap_or_default();
        let locality = attributes.get(LOCALITY).map(value);
        Self {
            strict_local: locality.as_deref() == Some(STRICT_LOCAL),
            name_a_disk: attributes.iter().any(|(key, its)| {
                DISK_KEYS.iter().any(|it| it.eq_ignore_ascii_case(key))
                    || DISK_NAMES.iter().any(|it| value(its).starts_with(it))
            }),
        }
    }
}

impl From<CsiAttributes> for BTreeMap<String, Option<String>> {
    fn from(attributes: CsiAttributes) -> Self {
        let local = attributes.strict_local.then_some((LOCALITY, STRICT_LOCAL));
        let disk = attributes.name_a_disk.then_some((DISK_KEYS[0], ""));
        local
            .into_iter()
            .chain(disk)
            .map(|(key, value)| (key.to_owned(), Some(value.to_owned())))
            .collect()
    }
}

/// The attribute of Longhorn's volumes that says where their data is, and the value of those whose data is on one node.
const LOCALITY: &str = "dataLocality";
const STRICT_LOCAL: &str = "strict-local";
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

/// Reports whether several machines may mount that file system from one disk. Drivers take its name in any case.
pub fn is_of_cluster(file_system: &str) -> bool {
    OF_CLUSTER
        .iter()
        .any(|kind| file_system.eq_ignore_ascii_case(kind))
}

impl CsiSource {
    /// Reports whether the volume has a file system that only one machine may mount.
    pub fn is_of_one_machine(&self) -> bool {
        let file_system = self.fs_type.to_ascii_lowercase();
        OF_ONE_MACHINE
            .iter()
            .any(|kind| file_system.starts_with(kind))
    }

    /// Reports whether the volume has a file system that several machines may mount from one disk.
    pub fn is_of_cluster(&self) -> bool {
        is_of_cluster(&self.fs_type)
    }

    /// Reports whether the attributes name a disk that only one machine may write.
    pub fn names_a_disk(&self) -> bool {
        self.volume_attributes.name_a_disk && !self.is_of_cluster()
    }

    /// Reports whether Longhorn keeps the data on the node that uses it, although Longhorn sets no
    /// affinity.
    pub fn is_strict_local(&self) -> bool {
        self.driver == "driver.longhorn.io" && self.volume_attributes.strict_local
    }
}
