//! The paths of the node that a pod mounts by a `hostPath` of its own, and whether a container may
//! write to them.

use std::{collections::BTreeSet, path::Path};

use serde::{
    Serialize, Serializer,
    de::{Deserialize, Deserializer},
};

use super::{folded, meta::cut};
use crate::facts::MAX_CLAIMS_PER_POD;

raw! {
    /// A `hostPath` of a pod.
    pub struct HostPath {
        path: String,
        #[serde(rename = "type")]
        kind: String,
    }

    struct SpecOfContainer {
        name: String,
        volume_mounts: Vec<Mount>,
    }

    struct Mount {
        name: String,
        read_only: bool,
        sub_path: String,
        sub_path_expr: String,
    }
}

/// The names of containers of etcd; kops calls one as the second.
const ETCD: [&str; 2] = ["etcd", "etcd-manager"];
/// The name of an API server's container.
const API_SERVER: &str = "kube-apiserver";

/// The facts about the containers of a pod that a rule needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mounted {
    /// The names of the volumes that containers mount and may write to, each with a path below it. One more
    /// than the limit means that there are too many.
    written: BTreeSet<[String; 2]>,
    /// Whether one of them is called as etcd is.
    pub has_etcd: bool,
    /// Whether one of them is called as an API server is.
    pub has_api_server: bool,
}

impl<'de> Deserialize<'de> for Mounted {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let add = |kept: &mut Self, container: SpecOfContainer| {
            kept.has_etcd |= ETCD.contains(&container.name.as_str());
            kept.has_api_server |= container.name == API_SERVER;
            let mounts = container.volume_mounts.into_iter();
            let written = mounts.filter(|mount| !mount.read_only);
            for mount in written {
                // The directory that the pod computes may have any name.
                let below = match mount.sub_path_expr.split_once("$(") {
                    Some((known, _)) => known
                        .rsplit_once('/')
                        .map_or("", |(known, _)| known)
                        .to_owned(),
                    None => [mount.sub_path, mount.sub_path_expr].concat(),
                };
                let mut names = [mount.name, below];
                names.iter_mut().for_each(cut);
                if !kept.are_many() {
                    kept.written.insert(names);
                }
            }
        };
        folded(from, add)
    }
}

/// Writes containers that give the same facts.
impl Serialize for Mounted {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let programs = [(ETCD[0], self.has_etcd), (API_SERVER, self.has_api_server)];
        let programs = programs.into_iter().filter(|(_, is_there)| *is_there);
        let mut containers = programs
            .map(|(name, _)| SpecOfContainer {
                name: name.to_owned(),
                ..SpecOfContainer::default()
            })
            .collect::<Vec<_>>();
        let written = self.written.iter().map(|[name, below]| Mount {
            name: name.clone(),
            sub_path: below.clone(),
            ..Mount::default()
        });
        containers.push(SpecOfContainer {
            volume_mounts: written.collect(),
            ..SpecOfContainer::default()
        });
        containers.serialize(to)
    }
}

impl Mounted {
    /// Drops the mounts of volumes other than these. If there were too many mounts, a container writes to each volume.
    pub fn keep(&mut self, volumes: &[&str]) {
        let everywhere = volumes.iter().filter(|_| self.are_many());
        let everywhere = everywhere
            .map(|volume| [(*volume).to_owned(), String::new()])
            .collect::<Vec<_>>();
        self.written
            .retain(|[volume, _]| volumes.contains(&volume.as_str()));
        self.written.extend(everywhere);
    }

    /// Lists the paths below the volume of that name to which a container may write.
    pub fn written_below(&self, volume: &str) -> impl Iterator<Item = &str> {
        let written = self.written.iter().filter(move |[name, _]| name == volume);
        written.map(|[_, below]| below.as_str())
    }

    /// Reports whether there are more mounts than are kept.
    pub fn are_many(&self) -> bool {
        self.written.len() > MAX_CLAIMS_PER_POD
    }
}

/// Directories of a node that belong to its system. No workload has its data there.
const OF_SYSTEM: [&str; 15] = [
    "/dev",
    "/proc",
    "/sys",
    "/etc",
    "/run",
    "/var/run",
    "/var/log",
    "/var/lib/kubelet",
    "/boot",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/usr",
    "/tmp",
];

impl HostPath {
    /// Reports whether a workload may have its data at the path, or below it.
    pub fn may_have_data(&self) -> bool {
        self.of_data("").is_some() || shortest(&self.path) == "/usr"
    }

    /// Returns the directory or disk `below` the path in its shortest form, if a workload may have its data there.
    pub fn of_data(&self, below: &str) -> Option<String> {
        let Self { path, kind } = self;
        // A named pipe of Windows.
        let is_pipe = path.replace('\\', "/").starts_with("//./pipe/");
        let mut path = shortest(&format!("{path}/{below}"));
        let below = |system: &str| Path::new(&path).starts_with(system);
        let of_system = is_pipe
            || matches!(kind.as_str(), "Socket" | "CharDevice")
            || OF_SYSTEM.into_iter().any(below)
                && !below("/usr/local")
                && !(kind == "BlockDevice" && below("/dev"));
        cut(&mut path);
        (!of_system).then_some(path)
    }
}

/// Returns the path without empty components, `.` and `..`.
fn shortest(path: &str) -> String {
    let mut components = Vec::new();
    for component in path.split('/') {
        match component {
            "" | "." => {}
            ".." => drop(components.pop()),
            component => components.push(component),
        }
    }
    format!("/{}", components.join("/"))
}
