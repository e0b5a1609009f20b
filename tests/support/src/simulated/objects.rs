//! A cluster made of a list of objects.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Cluster, Kind, Refusal, Request};
use crate::samples::list;

/// Raw objects. Only writes change them.
#[derive(Debug, Clone)]
pub struct Objects {
    pub now: Timestamp,
    pub objects: Vec<Value>,
}

impl Objects {
    pub fn new(now: Timestamp, objects: impl IntoIterator<Item = Value>) -> Self {
        Self {
            now,
            objects: objects.into_iter().collect(),
        }
    }

    /// All objects, as `kubectl get … -o json` prints them.
    pub fn saved(&self) -> String {
        list(self.objects.clone()).to_string()
    }
}

impl Objects {
    /// The history, if there is one.
    pub fn history(&self) -> Option<&Value> {
        self.objects.iter().find(|it| it["kind"] == "ConfigMap")
    }

    fn note(&mut self, patch: &Value, takes_effect: bool) -> Result<Value, Refusal> {
        let mut objects = self.objects.iter_mut();
        let history = objects.find(|it| it["kind"] == "ConfigMap");
        let history = history.ok_or((404, "NotFound"))?;
        let version = &history["metadata"]["resourceVersion"];
        let version = version.as_str().unwrap_or_default().to_owned();
        let data = &patch["data"];
        let judged = patch["metadata"]["resourceVersion"].as_str();
        if judged.is_some_and(|judged| judged != version) {
            return Err((409, "Conflict"));
        }
        if takes_effect {
            history["metadata"]["resourceVersion"] = json!(format!("{version}1"));
        }
        for (key, value) in data
            .as_object()
            .into_iter()
            .flatten()
            .filter(|_| takes_effect)
        {
            let kept = history["data"].as_object_mut().ok_or((422, "Invalid"))?;
            if value.is_null() {
                kept.remove(key);
            } else {
                kept.insert(key.clone(), value.clone());
            }
        }
        Ok(history.clone())
    }
}

impl Cluster for Objects {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn objects(&self, kind: &str) -> Vec<Value> {
        let of_kind = self.objects.iter().filter(|object| object["kind"] == kind);
        of_kind.cloned().collect()
    }

    fn write(&mut self, request: &Request, takes_effect: bool) -> Result<Value, Refusal> {
        if request.kind == Kind::Note {
            return self.note(&request.body, takes_effect);
        }
        let mut objects = self.objects.iter();
        let at = objects.position(|object| object["kind"] == "Pod" && request.names(object));
        let at = at.ok_or((404, "NotFound"))?;
        let pod = &mut self.objects[at];
        let (uid, version) = request.preconditions();
        if pod["metadata"]["uid"] != uid && request.kind == Kind::Patch {
            // A patch sets the UID as a field, which cannot be changed.
            return Err((422, "Invalid"));
        }
        if pod["metadata"]["uid"] != uid || pod["metadata"]["resourceVersion"] != version {
            return Err((409, "Conflict"));
        }
        if !takes_effect {
            return Ok(pod.clone());
        }
        pod["metadata"]["resourceVersion"] = json!(format!("{version}1"));
        if request.kind == Kind::Patch {
            pod["status"]["phase"] = request.body["status"]["phase"].clone();
            return Ok(pod.clone());
        }
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(0);
        let mut held = false;
        if let Some(finalizers) = pod["metadata"]["finalizers"].as_array_mut() {
            // `deletionFinalizersForGarbageCollection` of the API server.
            let in_background = request.body["propagationPolicy"] == "Background";
            let is_cascade = |it: &Value| it == "foregroundDeletion" || it == "orphan";
            finalizers.retain(|it| !(in_background && is_cascade(it)));
            held = !finalizers.is_empty();
        }
        Ok(if held {
            pod.clone()
        } else {
            self.objects.remove(at)
        })
    }
}
