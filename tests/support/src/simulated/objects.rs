//! A cluster made of a list of objects.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Cluster, Kind, Refusal, Request, Resource};
use crate::samples::list;

/// Raw objects. Only writes change them.
#[derive(Debug, Clone)]
pub struct Objects {
    pub now: Timestamp,
    pub objects: Vec<Value>,
    /// The objects in the server's cache, if the cache is behind.
    pub cached: Option<Vec<Value>>,
}

impl Objects {
    pub fn new(now: Timestamp, objects: impl IntoIterator<Item = Value>) -> Self {
        Self {
            now,
            objects: objects.into_iter().collect(),
            cached: None,
        }
    }

    /// All objects, as `kubectl get … -o json` prints them.
    pub fn saved(&self) -> String {
        list(self.objects.clone()).to_string()
    }
}

impl Cluster for Objects {
    type Facts = ();

    fn now(&self) -> Timestamp {
        self.now
    }

    fn objects(&self, resource: Resource, _: &str) -> Vec<(Value, ())> {
        of_kind(&self.objects, resource)
    }

    fn cached(&self, resource: Resource, _: &str) -> Vec<(Value, ())> {
        of_kind(self.cached.as_ref().unwrap_or(&self.objects), resource)
    }

    fn write(&mut self, request: &Request, takes_effect: bool) -> Result<(Value, ()), Refusal> {
        let is_it = |object: &Value| {
            let metadata = &object["metadata"];
            object["kind"] == "Pod"
                && metadata["namespace"] == request.namespace.as_str()
                && metadata["name"] == request.name.as_str()
        };
        let at = self
            .objects
            .iter()
            .position(is_it)
            .ok_or(Refusal::NotFound)?;
        let pod = &mut self.objects[at];
        let (uid, version) = request.preconditions();
        if pod["metadata"]["uid"] != uid {
            return Err(Refusal::WrongUid);
        }
        if pod["metadata"]["resourceVersion"] != version {
            return Err(Refusal::WrongVersion);
        }
        if !takes_effect {
            return Ok((pod.clone(), ()));
        }
        pod["metadata"]["resourceVersion"] = json!(format!("{version}1"));
        if request.kind == Kind::Patch {
            pod["status"]["phase"] = request.body["status"]["phase"].clone();
            return Ok((pod.clone(), ()));
        }
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(0);
        let held = pod["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty());
        Ok((
            if held {
                pod.clone()
            } else {
                self.objects.remove(at)
            },
            (),
        ))
    }
}

fn of_kind(objects: &[Value], resource: Resource) -> Vec<(Value, ())> {
    let kind = match resource {
        Resource::Nodes => "Node",
        Resource::Leases => "Lease",
        Resource::Namespaces => "Namespace",
        Resource::Pods => "Pod",
        Resource::Claims => "PersistentVolumeClaim",
        Resource::Volumes => "PersistentVolume",
        Resource::StatefulSets => "StatefulSet",
        Resource::Attachments => "VolumeAttachment",
        Resource::Events => "Event",
        Resource::Drivers => "CSIDriver",
    };
    objects
        .iter()
        .filter(|object| object["kind"] == kind)
        .map(|object| (object.clone(), ()))
        .collect()
}
