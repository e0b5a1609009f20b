//! The paths of the node that a pod mounts by a `hostPath` of its own, and whether a container may
//! write to them.

use std::{collections::BTreeSet, path::Path};

use super::meta::cut;

raw! {
    pub struct HostPath {
        path: String,
        #[serde(rename = "type")]
        kind: String,
    }

    pub struct Container {
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

    /// Lists the names of the volumes that it may write to, each with the path below it.
    pub fn writes(&self) -> impl Iterator<Item = (&str, String)> {
        self.volume_mounts
            .iter()
            .filter(|mount| !mount.read_only)
            .map(|mount| (mount.name.as_str(), mount.below()))
    }

    /// Drops a name that no rule reads, and the mounts of volumes other than these.
    pub fn strip(&mut self, volumes: &BTreeSet<&str>) {
        if !self.is_etcd() && !self.is_api_server() {
            self.name.clear();
        }
        self.volume_mounts
            .retain(|mount| volumes.contains(mount.name.as_str()));
    }
}

impl Mount {
    /// Returns the path below the volume. The directory that the pod computes may have any name.
    fn below(&self) -> String {
        let mut below = match self.sub_path_expr.split_once("$(") {
            Some((known, _)) => known
                .rsplit_once('/')
                .map_or("", |(known, _)| known)
                .to_owned(),
            None => [self.sub_path.as_str(), &self.sub_path_expr].concat(),
        };
        cut(&mut below);
        below
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

    /// Returns it with a path that is not too long: many mounts may be below it.
    pub fn short(&self) -> Self {
        let mut short = self.clone();
        cut(&mut short.path);
        short
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
