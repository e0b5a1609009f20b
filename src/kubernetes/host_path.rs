//! The paths of the node that a pod mounts by a `hostPath` of its own, and whether a container may
//! write to them.

use std::{collections::BTreeSet, path::Path};

use super::{Items, meta::cut};
use crate::facts::MAX_CLAIMS_PER_POD;

raw! {
    pub struct HostPath {
        path: String,
        #[serde(rename = "type")]
        kind: String,
    }

    pub struct Container {
        name: String,
        volume_mounts: Items<Mount>,
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
const API_SERVER: &str = "kube-apiserver";

impl Container {
    /// Reports whether it is called as etcd is.
    pub fn is_etcd(&self) -> bool {
        ETCD.contains(&self.name.as_str())
    }

    /// Reports whether it is called as an API server is.
    pub fn is_api_server(&self) -> bool {
        self.name == API_SERVER
    }
}

impl Mount {
    /// Returns the name of the volume, and the path below it. The directory that the pod computes may have any name.
    fn place(&self) -> [String; 2] {
        let below = match self.sub_path_expr.split_once("$(") {
            Some((known, _)) => known
                .rsplit_once('/')
                .map_or("", |(known, _)| known)
                .to_owned(),
            None => [self.sub_path.as_str(), &self.sub_path_expr].concat(),
        };
        let mut place = [self.name.clone(), below];
        place.iter_mut().for_each(cut);
        place
    }
}

/// The names of the volumes that containers mount and may write to, each with a path below it.
pub struct WrittenPaths {
    places: BTreeSet<[String; 2]>,
    /// Whether there are more than are kept.
    pub are_many: bool,
}

impl WrittenPaths {
    pub fn by(containers: &Items<Container>) -> Self {
        let mut mounts = containers.iter().map(|it| &it.volume_mounts);
        let places = mounts
            .clone()
            .flat_map(|all| all.iter())
            .filter(|mount| !mount.read_only)
            .map(Mount::place)
            .collect::<BTreeSet<_>>();
        Self {
            are_many: places.len() > MAX_CLAIMS_PER_POD
                || containers.are_cut()
                || mounts.any(Items::are_cut),
            places,
        }
    }

    /// Lists the paths below the volume of that name.
    pub fn below(&self, volume: &str) -> impl Iterator<Item = &str> {
        self.places
            .iter()
            .filter(move |[name, _]| name == volume)
            .map(|[_, below]| below.as_str())
    }
}

/// Drops the names that no rule reads, and the mounts of volumes other than these, unless there are too many mounts.
pub fn strip(containers: &mut Items<Container>, volumes: &[&str]) {
    let are_many = WrittenPaths::by(containers).are_many;
    for container in &mut containers.0 {
        if !container.is_etcd() && !container.is_api_server() {
            container.name.clear();
        }
        let mounts = &mut container.volume_mounts.0;
        mounts.retain(|mount| are_many || volumes.contains(&mount.name.as_str()));
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
