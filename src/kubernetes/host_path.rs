//! The paths of the node that a pod mounts by a `hostPath` of its own, and whether a container may
//! write to them.

use std::{collections::BTreeSet, path::Path};

use serde::de::{Deserialize, Deserializer};

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
        volume_mounts: Vec<Mount>,
    }

    struct Mount {
        name: String,
        read_only: bool,
    }
}

/// The names of the volumes that containers mount and may write to. One name beyond the limit means
/// that there are too many.
#[derive(Debug, Clone, Default)]
pub struct Mounted(BTreeSet<String>);

impl<'de> Deserialize<'de> for Mounted {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let add = |kept: &mut BTreeSet<String>, container: SpecOfContainer| {
            let mounts = container.volume_mounts.into_iter();
            let written = mounts.filter(|mount| !mount.read_only);
            for mut mount in written {
                cut(&mut mount.name);
                if kept.len() <= MAX_CLAIMS_PER_POD {
                    kept.insert(mount.name);
                }
            }
        };
        folded(from, add).map(Self)
    }
}

impl Mounted {
    /// Reports whether a container may write to the volume of that name.
    pub fn writes(&self, volume: &str) -> bool {
        self.are_many() || self.0.contains(volume)
    }

    /// Drops all names but those that are `kept`.
    pub fn retain(&mut self, kept: &BTreeSet<&str>) {
        if !self.are_many() {
            self.0.retain(|name| kept.contains(name.as_str()));
        }
    }

    fn are_many(&self) -> bool {
        self.0.len() > MAX_CLAIMS_PER_POD
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
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the path in its shortest form, if a workload may have its data there.
    pub fn of_data(self) -> Option<Self> {
        let Self { path, kind } = self;
        let mut path = shortest(&path);
        let below = |system: &str| Path::new(&path).starts_with(system);
        let of_system = path == "/"
            || matches!(kind.as_str(), "Socket" | "CharDevice")
            || OF_SYSTEM.into_iter().any(below)
                && !below("/usr/local")
                && !(kind == "BlockDevice" && below("/dev"));
        cut(&mut path);
        (!of_system).then_some(Self {
            path,
            kind: String::new(),
        })
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::kubernetes::RawPod;

    /// Lists the relevant paths of a pod with these volumes, each with its type and how it is
    /// mounted. A reading that keeps only the needed fields gives the same list.
    fn counted(volumes: &[(&str, &str)], mounts: &serde_json::Value) -> Vec<String> {
        let volumes = volumes.iter().enumerate().map(|(number, (path, kind))| {
            json!({"name": format!("v{number}"), "hostPath": {"path": path, "type": kind}})
        });
        let mut spec = mounts.clone();
        spec["volumes"] = volumes.collect();
        let pod = json!({"metadata": {"namespace": "shop", "name": "db-0", "uid": "p", "resourceVersion": "7",
            "deletionTimestamp": "2026-01-31T02:00:00Z"}, "spec": spec});
        let read = serde_json::from_value::<RawPod>(pod).unwrap();
        let mut slim = read.clone();
        slim.drop_unused();
        let paths = read.facts().host_paths;
        assert_eq!(slim.facts().host_paths, paths);
        paths
    }

    fn mounted(more: &serde_json::Value) -> serde_json::Value {
        let mut mount = json!({"name": "v0", "mountPath": "/data"});
        mount
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"containers": [{"name": "c", "volumeMounts": [mount]}]})
    }

    #[test]
    fn a_path_counts_unless_it_is_one_of_the_system() {
        let writes = mounted(&json!({}));
        for (path, kind, counts) in [
            ("/data", "", Some("/data")),
            ("/data/", "DirectoryOrCreate", Some("/data")),
            ("//srv/./a/../b", "", Some("/srv/b")),
            ("/", "", None),
            ("/..", "", None),
            ("/data/..", "", None),
            ("/data", "Socket", None),
            ("/data", "CharDevice", None),
            ("/data", "File", Some("/data")),
            ("/dev", "", None),
            ("/dev/sdb", "", None),
            ("/dev/sdb", "BlockDevice", Some("/dev/sdb")),
            ("/etc/x", "BlockDevice", None),
            ("/device", "", Some("/device")),
            ("/proc/1", "", None),
            ("/sys", "", None),
            ("/etc", "", None),
            ("/etcd", "", Some("/etcd")),
            ("/etc/../data", "", Some("/data")),
            ("/data/../etc/x", "", None),
            ("/run", "", None),
            ("/running", "", Some("/running")),
            ("/var", "", Some("/var")),
            ("/var/run/x", "", None),
            ("/var/log", "", None),
            ("/var/logs", "", Some("/var/logs")),
            ("/var/lib", "", Some("/var/lib")),
            ("/var/lib/kubelet", "", None),
            ("/var/lib/kubelet/pods", "", None),
            ("/var/lib/kubelet-data", "", Some("/var/lib/kubelet-data")),
            ("/boot", "", None),
            ("/bin", "", None),
            ("/sbin", "", None),
            ("/lib", "", None),
            ("/lib64/x", "", None),
            ("/library", "", Some("/library")),
            ("/usr", "", None),
            ("/usr/share", "", None),
            ("/usr/local", "", Some("/usr/local")),
            ("/usr/local/x", "", Some("/usr/local/x")),
            ("/usr/locally", "", None),
            ("/usr/local/..", "", None),
            ("/tmp", "", None),
            ("/tmp/x", "", None),
        ] {
            let found = counted(&[(path, kind)], &writes);
            assert_eq!(found.first().map(String::as_str), counts, "{path} {kind}");
        }
    }

    #[test]
    fn a_path_counts_if_a_container_may_write_to_it() {
        let container = |mounts: serde_json::Value| json!([{"name": "c", "volumeMounts": mounts}]);
        let mount = json!({"name": "v0", "mountPath": "/data"});
        let read_only = json!({"name": "v0", "mountPath": "/data", "readOnly": true});
        for (spec, counts) in [
            (mounted(&json!({})), true),
            (mounted(&json!({"subPath": "etc"})), true),
            (mounted(&json!({"readOnly": false})), true),
            (mounted(&json!({"readOnly": true})), false),
            (
                json!({"containers": container(json!([read_only, mount]))}),
                true,
            ),
            (
                json!({"initContainers": container(json!([mount])), "containers": container(json!([read_only]))}),
                true,
            ),
            (
                json!({"initContainers": container(json!([read_only])), "containers": null}),
                false,
            ),
            (
                json!({"ephemeralContainers": container(json!([mount]))}),
                false,
            ),
            (
                json!({"containers": container(json!([{"name": "v1", "mountPath": "/data"}]))}),
                false,
            ),
            (json!({"containers": container(json!(null))}), false),
            (json!({}), false),
        ] {
            assert_eq!(
                !counted(&[("/data", "")], &spec).is_empty(),
                counts,
                "{spec}"
            );
        }
    }

    /// A pod's author decides how many paths it mounts. Paths beyond the limit, which are not kept,
    /// must not let a pod pass.
    #[test]
    fn a_pod_with_too_many_may_write_to_each() {
        let many = (0..40)
            .map(|number| format!("/data/{number}"))
            .collect::<Vec<_>>();
        let volumes = many
            .iter()
            .map(|path| (path.as_str(), ""))
            .collect::<Vec<_>>();
        let last = json!({"containers": [{"volumeMounts": [{"name": "v39"}]}]});
        assert_eq!(counted(&volumes, &last).len(), 17);
        let last = json!({"containers": [{"volumeMounts": [{"name": "v15"}]}]});
        assert_eq!(counted(&volumes[..16], &last), ["/data/15"]);
        let names = |count: usize| (0..count).map(|number| json!({"name": format!("w{number}")}));
        let mounts = |count: usize| json!({"containers": [{"volumeMounts": names(count).collect::<Vec<_>>()}]});
        assert_eq!(counted(&volumes[..1], &mounts(64)).len(), 0);
        assert_eq!(counted(&volumes[..1], &mounts(65)), ["/data/0"]);
    }
}
