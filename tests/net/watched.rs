//! The cluster behind the server: it changes at random between requests, and remembers what reached the program.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};
use pod_reaper_test_support::simulated::{Cluster, Dice, Kind, Objects, Refusal, Request};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::conditions::{self, Choices, text};

/// How old the reading of a node may be when a write is sent. The age starts before the request for that reading.
const FRESH: Duration = Duration::from_secs(5);

/// The kinds of changes that happen while a run is under way.
pub const CHANGES: usize = 9;

/// A write that was sent, and what came of it.
pub struct Write {
    pub number: usize,
    pub uid: String,
    pub namespace: String,
    pub name: String,
    pub kind: Kind,
    /// The status that reached the program, if any.
    pub answered: Option<u16>,
    /// Whether the delete removed the pod.
    pub removed: bool,
}

pub struct Watched {
    pub state: Objects,
    pub choices: Arc<Choices>,
    pub writes: Vec<Write>,
    pub wrongs: Vec<String>,
    pub changes: BTreeSet<&'static str>,
    /// The UIDs of pods that are gone, whoever deleted them.
    pub gone: BTreeSet<String>,
    /// The last moment at which the run may begin something new.
    pub last_start: Instant,
    /// Whether a page of the other Leases was delivered.
    pub lists_leases: bool,
    /// How often the cluster changes, in a thousand requests.
    rate: usize,
    dice: Dice,
    began: Instant,
    start: Timestamp,
    version: usize,
    /// The pods that were delivered, by UID and version.
    pods: BTreeMap<(String, String), Value>,
    /// By name, the last delivered reading of a node and when it was requested; the first one is that of the plan.
    nodes: BTreeMap<String, (Instant, Value)>,
    judged: BTreeMap<String, String>,
    leases: BTreeMap<String, (Instant, Option<Value>)>,
    namespaces: BTreeMap<String, Value>,
}

impl Watched {
    pub fn new(
        state: Objects,
        choices: Arc<Choices>,
        rate: usize,
        last_start: Instant,
        dice: Dice,
    ) -> Self {
        let start = state.now;
        Self {
            state,
            choices,
            writes: Vec::new(),
            wrongs: Vec::new(),
            changes: BTreeSet::new(),
            gone: BTreeSet::new(),
            last_start,
            lists_leases: false,
            rate,
            dice,
            began: Instant::now(),
            start,
            version: 1_000,
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            judged: BTreeMap::new(),
            leases: BTreeMap::new(),
            namespaces: BTreeMap::new(),
        }
    }

    /// Checks a write when it is sent, by what the program has received.
    fn judge(&mut self, request: &Request) {
        let (uid, version) = request.preconditions();
        let (uid, version) = (uid.to_owned(), version.to_owned());
        let mut wrongs = form(request);
        if self.choices.dry_run {
            wrongs.push("a dry run sends no write".to_owned());
        }
        let now = self.now();
        match self.pods.get(&(uid.clone(), version)).cloned() {
            None => wrongs.push("no pod of this UID and version was read".to_owned()),
            Some(pod) => {
                let is_it = (
                    text(&pod["metadata"]["namespace"]),
                    text(&pod["metadata"]["name"]),
                );
                if is_it != (&request.namespace, &request.name) {
                    wrongs.push("it is the UID of another pod".to_owned());
                }
                wrongs.extend(conditions::keeps_pod(&pod, now, &self.choices).map(str::to_owned));
                wrongs.extend(self.node_keeps(&pod, now));
                let namespace = self.namespaces.get(&request.namespace);
                if namespace.is_none_or(conditions::is_opted_out) {
                    wrongs.push("its namespace is opted out, or was not read".to_owned());
                }
            }
        }
        if self.writes.iter().all(|write| write.uid != uid) && Instant::now() > self.last_start {
            wrongs.push("the run may not begin anything new".to_owned());
        }
        let is_allowed = |write: &Write| {
            write.uid == uid && write.kind == Kind::DryRun && write.answered == Some(200)
        };
        if request.kind == Kind::Patch && !self.writes.iter().any(is_allowed) {
            wrongs.push("no dry run showed that the delete is allowed".to_owned());
        }
        let which = format!(
            "{:?} of {}/{} ({uid})",
            request.kind, request.namespace, request.name
        );
        self.wrongs
            .extend(wrongs.into_iter().map(|wrong| format!("{which}: {wrong}")));
        self.writes.push(Write {
            number: request.number,
            uid,
            namespace: request.namespace.clone(),
            name: request.name.clone(),
            kind: request.kind,
            answered: None,
            removed: false,
        });
    }

    /// Says why the last reading of the pod's node forbids a write.
    fn node_keeps(&self, pod: &Value, now: Timestamp) -> Option<String> {
        let name = text(&pod["spec"]["nodeName"]);
        let Some((asked, node)) = self.nodes.get(name) else {
            return Some("its node was never read".to_owned());
        };
        let Some((lease_asked, lease)) = self.leases.get(name) else {
            return Some("the lease of its node was never read".to_owned());
        };
        if asked.elapsed() > FRESH || lease_asked.elapsed() > FRESH {
            return Some(format!("its node was read {:?} ago", asked.elapsed()));
        }
        if self.judged.get(name).map(String::as_str) != Some(text(&node["metadata"]["uid"])) {
            return Some("its node is another one than the one that was judged".to_owned());
        }
        conditions::keeps_node(node, lease.as_ref(), now, &self.choices).map(str::to_owned)
    }

    /// Changes the cluster as others may at any moment.
    fn change(&mut self) {
        let pods = self.places("Pod", |pod| !pod["metadata"]["deletionTimestamp"].is_null());
        let nodes = self.places("Node", |node| conditions::ready(node) != Some("True"));
        let (Some(pod), Some(node)) = (self.one_of(&pods), self.one_of(&nodes)) else {
            return;
        };
        self.version += 1;
        let version = json!(self.version.to_string());
        let now = self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let name = text(&self.state.objects[node]["metadata"]["name"]).to_owned();
        let what = match self.dice.below(CHANGES) {
            0 => {
                let node = &mut self.state.objects[node];
                node["status"]["conditions"] =
                    json!([{"type": "Ready", "status": "True", "lastTransitionTime": now}]);
                node["spec"]["taints"] = json!([]);
                "a node is Ready"
            }
            1 => {
                let of_node = |it: &&mut Value| {
                    it["kind"] == "Lease"
                        && it["metadata"]["namespace"] == "kube-node-lease"
                        && it["metadata"]["name"] == *name
                };
                if let Some(lease) = self.state.objects.iter_mut().find(of_node) {
                    lease["spec"]["renewTime"] = json!(now.replace('Z', ".000000Z"));
                    lease["metadata"]["managedFields"][0]["time"] = json!(now);
                }
                "a lease is renewed"
            }
            2 => {
                self.state.objects[node]["metadata"]["labels"]["kosmos.io/node"] = json!("true");
                "a node becomes a leaf node"
            }
            3 => {
                self.state.objects[node]["metadata"]["uid"] =
                    json!(format!("uid-{}", self.version));
                "a node registers anew"
            }
            4 => {
                self.state.objects.remove(node);
                "a node is deleted"
            }
            5 => {
                let pod = &mut self.state.objects[pod];
                pod["metadata"]["annotations"]["pod-reaper.io/skip"] = json!("true");
                pod["metadata"]["resourceVersion"] = version;
                "a pod is opted out"
            }
            6 => {
                let pod = &mut self.state.objects[pod];
                self.gone.insert(text(&pod["metadata"]["uid"]).to_owned());
                pod["metadata"]["uid"] = json!(format!("uid-{}", self.version));
                pod["metadata"]["resourceVersion"] = version;
                let fields = pod["metadata"].as_object_mut().unwrap();
                fields.remove("deletionTimestamp");
                fields.remove("deletionGracePeriodSeconds");
                "a pod is replaced"
            }
            7 => {
                let pod = self.state.objects.remove(pod);
                self.gone.insert(text(&pod["metadata"]["uid"]).to_owned());
                "a pod is gone"
            }
            _ => {
                let namespaces = self.places("Namespace", |_| true);
                if let Some(namespace) = self.one_of(&namespaces) {
                    self.state.objects[namespace]["metadata"]["labels"]["pod-reaper.io/skip"] =
                        json!("true");
                }
                "a namespace is opted out"
            }
        };
        self.changes.insert(what);
    }

    fn places(&self, kind: &str, is_one: impl Fn(&Value) -> bool) -> Vec<usize> {
        let all = self.state.objects.iter().enumerate();
        all.filter(|(_, it)| it["kind"] == kind && is_one(it))
            .map(|(at, _)| at)
            .collect()
    }

    fn one_of(&mut self, places: &[usize]) -> Option<usize> {
        (!places.is_empty()).then(|| places[self.dice.below(places.len())])
    }

    fn remember(&mut self, kind: Kind, asked: Instant, object: &Value) {
        let metadata = &object["metadata"];
        let (name, uid) = (
            text(&metadata["name"]).to_owned(),
            text(&metadata["uid"]).to_owned(),
        );
        match text(&object["kind"]) {
            // This list verifies; it shows neither the spec nor the status.
            "Pod" if kind == Kind::PodUids => {}
            "Pod" => {
                let version = text(&metadata["resourceVersion"]).to_owned();
                self.pods.insert((uid, version), object.clone());
            }
            "Node" if kind == Kind::Node => {
                self.judged.entry(name.clone()).or_insert(uid);
                self.nodes.insert(name, (asked, object.clone()));
            }
            "Lease" if kind == Kind::Lease => {
                self.leases.insert(name, (asked, Some(object.clone())));
            }
            "Namespace" => {
                self.namespaces.insert(name, object.clone());
            }
            _ => {}
        }
    }
}

/// Says what is wrong about the form of a write: its preconditions, grace and propagation.
fn form(request: &Request) -> Vec<String> {
    let mut wrongs = Vec::new();
    let (uid, version) = request.preconditions();
    if uid.is_empty() || version.is_empty() {
        wrongs.push("it lacks a precondition".to_owned());
    }
    match request.kind {
        Kind::Delete | Kind::DryRun => {
            if request.body["gracePeriodSeconds"] != 0
                || request.body["propagationPolicy"] != "Background"
            {
                wrongs.push(format!("it is no force delete: {}", request.body));
            }
        }
        Kind::Patch => {
            let fields = request
                .body
                .as_object()
                .map(|fields| fields.keys().cloned().collect::<Vec<_>>());
            if fields != Some(vec!["metadata".to_owned(), "status".to_owned()])
                || request.body["status"]["phase"] != "Failed"
            {
                wrongs.push(format!("it patches something else: {}", request.body));
            }
        }
        _ => wrongs.push("it is no write that the program may send".to_owned()),
    }
    wrongs
}

impl Cluster for Watched {
    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.began.elapsed()).unwrap();
        Timestamp::from_second((self.start + elapsed).as_second()).unwrap()
    }

    fn objects(&self, kind: &str) -> Vec<Value> {
        self.state.objects(kind)
    }

    fn sent(&mut self, request: &Request) {
        if request.kind.writes() || request.kind == Kind::DryRun {
            self.judge(request);
        }
        if request.kind == Kind::Note {
            let fields = request.body.as_object().map(|it| it.keys().join(" "));
            let is_ours = request.name == "pod-reaper-history" && request.namespace == "pod-reaper";
            let metadata = &request.body["metadata"];
            let has_version = metadata["resourceVersion"].is_string();
            let is_all = metadata.as_object().is_some_and(|it| it.len() == 1);
            let is_form = fields.as_deref() == Some("data metadata") && has_version && is_all;
            if self.choices.dry_run || !is_ours || !is_form {
                self.wrongs.push(format!("no such note: {}", request.body));
            }
        }
    }

    fn received(&mut self, _: &Request) {
        while self.dice.permille(self.rate) {
            self.change();
        }
    }

    fn write(&mut self, request: &Request, takes_effect: bool) -> Result<Value, Refusal> {
        let (uid, _) = request.preconditions();
        let uid = uid.to_owned();
        let object = self.state.write(request, takes_effect)?;
        let is_there = self
            .state
            .objects
            .iter()
            .any(|it| it["metadata"]["uid"] == *uid);
        if let Some(write) = self
            .writes
            .iter_mut()
            .find(|write| write.number == request.number)
            && !is_there
        {
            write.removed = true;
            self.gone.insert(uid);
        }
        Ok(object)
    }

    fn answered(&mut self, request: &Request, status: u16) {
        if let Some(write) = self
            .writes
            .iter_mut()
            .find(|write| write.number == request.number)
        {
            write.answered = Some(status);
        }
    }

    fn delivered(&mut self, request: &Request, asked: Instant, objects: Vec<Value>) {
        self.lists_leases |= request.kind == Kind::OtherLeases;
        if request.kind == Kind::Lease && objects.is_empty() {
            self.leases.insert(request.name.clone(), (asked, None));
        }
        for object in &objects {
            self.remember(request.kind, asked, object);
        }
    }
}
