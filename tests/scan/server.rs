//! As much of an API server as reading asks for.

use std::sync::Arc;

use http::{Request, Response};
use jiff::Timestamp;
use kube::client::{Body, Client};
use serde_json::{Value, json};

/// What is in the cluster.
#[derive(Debug, Clone)]
pub struct World {
    pub now: Timestamp,
    /// Most items or rows of an answer, whatever is asked for.
    pub page: usize,
    pub nodes: Vec<Value>,
    pub leases: Vec<Value>,
    pub namespaces: Vec<Value>,
    pub pods: Vec<Value>,
    pub claims: Vec<Value>,
    pub volumes: Vec<Value>,
}

impl World {
    /// A client of a server that holds this.
    pub fn client(&self) -> Client {
        let world = Arc::new(self.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let world = Arc::clone(&world);
            async move {
                let accept = request.headers()["accept"].to_str().unwrap().to_owned();
                let path = request.uri().path().to_owned();
                let answer = world.answer(&path, request.uri().query().unwrap_or_default(), &accept);
                let found = json!({"kind": "Status", "reason": "NotFound", "message": "none of that name"});
                let status = if answer.is_some() { 200 } else { 404 };
                let response = Response::builder()
                    .status(status)
                    .header("date", world.now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
                    .body(Body::from(answer.unwrap_or(found).to_string().into_bytes()));
                Ok::<_, std::convert::Infallible>(response.unwrap())
            }
        });
        Client::new(service, "default")
    }

    /// All of it, as `kubectl get … -o json` prints it.
    pub fn saved(&self) -> String {
        let all = [&self.nodes, &self.leases, &self.namespaces, &self.pods, &self.claims, &self.volumes];
        json!({"kind": "List", "items": all.into_iter().flatten().collect::<Vec<_>>()}).to_string()
    }

    fn answer(&self, path: &str, query: &str, accept: &str) -> Option<Value> {
        let parameter = |name: &str| {
            let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            value.map(|value| value.replace("%3D", "=").replace("%21", "!"))
        };
        let words = path.split('/').skip(3).collect::<Vec<_>>();
        let (objects, name): (&[Value], _) = match words.as_slice() {
            ["nodes"] => (&self.nodes, None),
            ["nodes", name] => (&self.nodes, Some((None, *name))),
            ["namespaces"] => (&self.namespaces, None),
            ["pods"] => (&self.pods, None),
            ["persistentvolumes", name] => (&self.volumes, Some((None, *name))),
            ["namespaces", namespace, "persistentvolumeclaims", name] => {
                (&self.claims, Some((Some(*namespace), *name)))
            }
            ["v1", "namespaces", "kube-node-lease", "leases", name] => (&self.leases, Some((None, *name))),
            ["v1", "volumeattachments"] => (&[], None),
            _ => panic!("nobody should ask for {path}"),
        };
        if let Some((namespace, name)) = name {
            let is_it = |object: &&Value| {
                object["metadata"]["name"] == name
                    && namespace.is_none_or(|namespace| object["metadata"]["namespace"] == namespace)
            };
            return objects.iter().find(is_it).cloned();
        }
        let selector = parameter("fieldSelector").unwrap_or_default();
        let chosen = objects.iter().filter(|object| selected(object, &selector)).collect::<Vec<_>>();
        let from = parameter("continue").map_or(0, |token| token.parse().unwrap());
        let asked = parameter("limit").map_or(usize::MAX, |limit| limit.parse().unwrap());
        let page = chosen.iter().skip(from).take(self.page.min(asked)).collect::<Vec<_>>();
        let next = from + page.len();
        let metadata =
            json!({"continue": if next < chosen.len() { next.to_string() } else { String::new() }});
        if !accept.contains("as=Table") {
            return Some(json!({"kind": "List", "metadata": metadata, "items": page}));
        }
        assert_eq!(parameter("includeObject").as_deref(), Some("None"));
        let columns = match words.last() {
            Some(&"nodes") => ["Name", "Age", "Status"],
            Some(&"pods") => ["Name", "Status", "Node"],
            _ => ["Name", "PV", "Node"],
        };
        let columns = columns.map(|name| json!({"name": name}));
        let rows = page.iter().map(|object| json!({"cells": cells(object)})).collect::<Vec<_>>();
        Some(json!({"kind": "Table", "metadata": metadata, "columnDefinitions": columns, "rows": rows}))
    }
}

/// Whether a field selector holds: all of its requirements.
fn selected(object: &Value, selector: &str) -> bool {
    selector.split(',').filter(|requirement| !requirement.is_empty()).all(|requirement| {
        let (key, wanted) = requirement.split_once('=').unwrap();
        let (key, negated) = key.strip_suffix('!').map_or((key, false), |key| (key, true));
        let value = object.pointer(&format!("/{}", key.replace('.', "/"))).and_then(Value::as_str);
        (value.unwrap_or_default() == wanted) != negated
    })
}

/// What Kubernetes 1.33 to 1.35 print (pkg/printers/internalversion/printers.go), and, of objects that are odd anyway,
/// what a later version might.
fn cells(object: &Value) -> Vec<Value> {
    let name = object["metadata"]["name"].clone();
    if object["kind"] == "Node" {
        let mut status = match object["status"]["conditions"][0]["status"].as_str() {
            Some("True") => "Ready",
            Some("odd") => "Ready,Doubtful",
            Some(_) => "NotReady",
            None => "Unknown",
        }
        .to_owned();
        if object["spec"]["unschedulable"] == true {
            status += ",SchedulingDisabled";
        }
        return vec![name, json!(7), json!(status)];
    }
    let deleted = !object["metadata"]["deletionTimestamp"].is_null();
    let finished = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let status = if deleted && object["status"]["reason"] == "NodeLost" {
        json!("Unknown")
    } else if deleted && !finished && object["shows"] == "Unheard" {
        json!("Leaving")
    } else if deleted && !finished {
        json!("Terminating")
    } else {
        object["shows"].clone()
    };
    let node = object["spec"]["nodeName"].as_str().unwrap_or("<none>");
    vec![name, status, json!(node)]
}
