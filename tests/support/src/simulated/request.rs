//! Parses the requests that the program sends.

use itertools::Itertools as _;
use std::collections::BTreeMap;

use http::{header, request::Parts};
use serde_json::Value;

/// Selects the finished pods, whose phase is none of these.
const UNFINISHED: &str = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown";
/// Selects the Leases that are not those of kubelets.
const SELECTS_NODE: &str = "spec.nodeName=";
/// The maximum numbers of objects on a page: of rows, and of whole objects.
const ROWS: usize = 1_000;
const OBJECTS: usize = 500;

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    NodeRows,
    PodRows,
    Attachments,
    Nodes,
    /// The nodes that a label selector selects.
    NodesWith,
    Namespaces,
    Pods,
    PodUids,
    Node,
    Lease,
    /// The other Leases of one name.
    OtherLeases,
    Drivers,
    Pod,
    StatefulSet,
    Claim,
    Volume,
    PodsIn,
    Delete,
    Patch,
    Event,
    /// A dry run of a delete.
    DryRun,
    /// The history, and a write to it.
    History,
    Note,
    /// Lists of whole objects that only `save` reads.
    AllPods,
    Claims,
    Volumes,
    StatefulSets,
}

#[derive(Debug, Clone)]
pub struct Request {
    /// Its number, in the order of sending.
    pub number: usize,
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    pub selector: String,
    /// The label selector: keys, each with the values that it may have.
    labels: Vec<(String, Vec<String>)>,
    /// The query as it was sent.
    pub query: Option<String>,
    pub body: Value,
    /// The maximum number of objects on a page that the request allows.
    pub(super) limit: usize,
    /// The number of a list, and of the first item on this page.
    pub(super) page: Option<(usize, usize)>,
}

/// The form that the request asks for: rows of a table, whole objects, their metadata alone, or one object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Rows,
    List,
    Metadata,
    One,
}

/// Each kind of request: its method and path, with a label selector if it has one, its form, and the kind of object.
const KINDS: [(Kind, &str, Form, &str); 27] = {
    use Form::{List, Metadata, One, Rows};
    [
        (Kind::NodeRows, "GET /api/v1/nodes", Rows, "Node"),
        (Kind::PodRows, "GET /api/v1/pods", Rows, "Pod"),
        (
            Kind::Attachments,
            "GET /apis/storage.k8s.io/v1/volumeattachments",
            List,
            "VolumeAttachment",
        ),
        (Kind::Nodes, "GET /api/v1/nodes", List, "Node"),
        (
            Kind::NodesWith,
            "GET /api/v1/nodes?labelSelector",
            List,
            "Node",
        ),
        (
            Kind::Namespaces,
            "GET /api/v1/namespaces",
            List,
            "Namespace",
        ),
        (Kind::Pods, "GET /api/v1/pods", List, "Pod"),
        (Kind::PodUids, "GET /api/v1/pods", Metadata, "Pod"),
        (Kind::Node, "GET /api/v1/nodes/NAME", One, "Node"),
        (
            Kind::Lease,
            "GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/NAME",
            One,
            "Lease",
        ),
        (
            Kind::OtherLeases,
            "GET /apis/coordination.k8s.io/v1/leases",
            List,
            "Lease",
        ),
        (
            Kind::Drivers,
            "GET /apis/storage.k8s.io/v1/csidrivers",
            List,
            "CSIDriver",
        ),
        (
            Kind::Pod,
            "GET /api/v1/namespaces/NAMESPACE/pods/NAME",
            One,
            "Pod",
        ),
        (
            Kind::StatefulSet,
            "GET /apis/apps/v1/namespaces/NAMESPACE/statefulsets/NAME",
            One,
            "StatefulSet",
        ),
        (
            Kind::Claim,
            "GET /api/v1/namespaces/NAMESPACE/persistentvolumeclaims/NAME",
            One,
            "PersistentVolumeClaim",
        ),
        (
            Kind::Volume,
            "GET /api/v1/persistentvolumes/NAME",
            One,
            "PersistentVolume",
        ),
        (
            Kind::PodsIn,
            "GET /api/v1/namespaces/NAMESPACE/pods",
            List,
            "Pod",
        ),
        (
            Kind::Delete,
            "DELETE /api/v1/namespaces/NAMESPACE/pods/NAME",
            One,
            "Pod",
        ),
        (
            Kind::Patch,
            "PATCH /api/v1/namespaces/NAMESPACE/pods/NAME/status",
            One,
            "Pod",
        ),
        (
            Kind::Event,
            "POST /apis/events.k8s.io/v1/namespaces/NAMESPACE/events",
            One,
            "Event",
        ),
        (Kind::DryRun, "", One, "Pod"),
        (
            Kind::History,
            "GET /api/v1/namespaces/NAMESPACE/configmaps/NAME",
            One,
            "ConfigMap",
        ),
        (
            Kind::Note,
            "PATCH /api/v1/namespaces/NAMESPACE/configmaps/NAME",
            One,
            "ConfigMap",
        ),
        (Kind::AllPods, "GET /api/v1/pods", List, "Pod"),
        (
            Kind::Claims,
            "GET /api/v1/persistentvolumeclaims",
            List,
            "PersistentVolumeClaim",
        ),
        (
            Kind::Volumes,
            "GET /api/v1/persistentvolumes",
            List,
            "PersistentVolume",
        ),
        (
            Kind::StatefulSets,
            "GET /apis/apps/v1/statefulsets",
            List,
            "StatefulSet",
        ),
    ]
};

impl Kind {
    /// The kinds that `save` sends, or those that a run does.
    pub fn all(of_save: bool) -> Vec<Self> {
        let kinds = KINDS.iter().map(|(kind, ..)| *kind);
        let is_its =
            |kind: &Self| of_save && kind.is_of_save() || !of_save && !kind.is_only_of_save();
        kinds.filter(is_its).collect()
    }

    /// Whether no run sends it.
    pub(super) fn is_only_of_save(self) -> bool {
        matches!(
            self,
            Self::AllPods | Self::Claims | Self::Volumes | Self::StatefulSets
        )
    }

    fn is_of_save(self) -> bool {
        self.is_only_of_save()
            || matches!(
                self,
                Self::Nodes
                    | Self::Namespaces
                    | Self::Attachments
                    | Self::Drivers
                    | Self::OtherLeases
                    | Self::History
            )
    }

    fn form(self) -> Form {
        KINDS[self as usize].2
    }

    /// Whether the request changes a pod.
    pub fn writes(self) -> bool {
        matches!(self, Self::Delete | Self::Patch)
    }

    pub(super) fn is_rows(self) -> bool {
        self.form() == Form::Rows
    }

    pub(super) fn is_list(self) -> bool {
        self.form() != Form::One
    }

    pub(super) fn resource(self) -> &'static str {
        KINDS[self as usize].3
    }
}

/// Namespace and name in a request of this pattern.
fn place<'a>(pattern: &str, request: &'a str) -> Option<(&'a str, &'a str)> {
    let (mut namespace, mut name) = ("", "");
    for pair in pattern.split('/').zip_longest(request.split('/')) {
        match pair.both()? {
            ("NAMESPACE", word) => namespace = word,
            ("NAME", word) if !word.contains('?') => name = word,
            (part, word) if part == word => {}
            _ => return None,
        }
    }
    Some((namespace, name))
}

impl Request {
    /// UID and resource version that a write carries.
    pub fn preconditions(&self) -> (&str, &str) {
        let at = if matches!(self.kind, Kind::Delete | Kind::DryRun) {
            &self.body["preconditions"]
        } else {
            &self.body["metadata"]
        };
        (
            at["uid"].as_str().unwrap_or_default(),
            at["resourceVersion"].as_str().unwrap_or_default(),
        )
    }

    /// Whether the object has the namespace and the name.
    pub(super) fn names(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let is_there = self.namespace.is_empty() || metadata["namespace"] == *self.namespace;
        is_there && metadata["name"] == *self.name
    }

    /// Whether the object meets all requirements of the selectors.
    pub(super) fn selects(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let has = |(key, values): &(String, Vec<String>)| {
            values
                .iter()
                .any(|value| metadata["labels"][key] == **value)
        };
        let is_there = self.namespace.is_empty() || metadata["namespace"] == *self.namespace;
        if !is_there || !self.labels.iter().all(has) {
            return false;
        }
        let requirements = self
            .selector
            .split(',')
            .filter(|requirement| !requirement.is_empty());
        requirements
            .map(|requirement| requirement.split_once('=').unwrap_or((requirement, "")))
            .all(|(key, wanted)| {
                let (key, negated) = key
                    .strip_suffix('!')
                    .map_or((key, false), |key| (key, true));
                let value = object
                    .pointer(&format!("/{}", key.replace('.', "/")))
                    .and_then(Value::as_str);
                (value.unwrap_or_default() == wanted) != negated
            })
    }

    /// Parses a request. Returns `None` if the program has no reason to send it.
    pub(super) fn read(number: usize, parts: &Parts, body: &[u8]) -> Option<Self> {
        let accept = parts.headers.get(header::ACCEPT);
        let accept = accept.and_then(|value| value.to_str().ok());
        let accept = accept.unwrap_or_default();
        let (table, metadata) = (
            accept.contains("as=Table"),
            accept.contains("as=PartialObjectMetadata"),
        );
        let pairs = parts
            .uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty());
        let query = pairs
            .filter_map(|pair| pair.split_once('='))
            .collect::<BTreeMap<_, _>>();
        let limit = query
            .get("limit")
            .and_then(|limit| limit.parse::<usize>().ok());
        // If a page was too large, the program requests it again with a smaller limit.
        let within = |most| limit.is_some_and(|limit| (1..=most).contains(&limit));
        let decoded = |name: &str| query.get(name).map(|text| decode(text));
        let selector = decoded("fieldSelector").unwrap_or_default();
        let labels = decoded("labelSelector");
        let with_labels = labels.as_ref().map_or("", |_| "?labelSelector");
        let request = format!("{} {}{with_labels}", parts.method, parts.uri.path());
        let asks_for = |form| match form {
            Form::Rows => table && query.get("includeObject") == Some(&"None") && within(ROWS),
            Form::List => !table && !metadata && within(OBJECTS),
            Form::Metadata => !table && metadata && within(OBJECTS),
            Form::One => true,
        };
        let kinds = KINDS.iter().filter(|(_, _, form, _)| asks_for(*form));
        let mut places =
            kinds.filter_map(|(kind, pattern, ..)| Some((*kind, place(pattern, &request)?)));
        let selects = |kind| match kind {
            Kind::Pods | Kind::PodUids => {
                selector.starts_with(SELECTS_NODE) || selector == UNFINISHED
            }
            Kind::PodsIn | Kind::OtherLeases | Kind::AllPods => selector.is_empty(),
            _ => true,
        };
        let (kind, (namespace, name)) = places.find(|(kind, _)| selects(*kind))?;
        let page = match query.get("continue") {
            None => None,
            Some(token) => {
                let (list, item) = token.strip_prefix('l')?.split_once('i')?;
                Some((list.parse().ok()?, item.parse().ok()?))
            }
        };
        // Only the first list of one node's pods may be old. A token itself says which version it continues.
        let by_name = selector
            .strip_prefix(SELECTS_NODE)
            .is_some_and(|node| !node.is_empty());
        let may_be_old = kind == Kind::Pods && by_name;
        let is_first = limit == Some(OBJECTS);
        match query.get("resourceVersion") {
            Some(&"0") if page.is_none() && may_be_old => {}
            None if page.is_some() || !may_be_old || !is_first => {}
            _ => return None,
        }
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(body).ok()?
        };
        // A dry run says so in the body and in the query.
        let dry_run = (
            query.get("dryRun") == Some(&"All"),
            body["dryRun"] == serde_json::json!(["All"]),
        );
        let kind = match (kind, dry_run) {
            (kind, (false, false)) => kind,
            (Kind::Delete, (true, true)) => Kind::DryRun,
            _ => return None,
        };
        Some(Self {
            number,
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            selector,
            labels: requirements(&labels.unwrap_or_default())?,
            query: parts.uri.query().map(str::to_owned),
            body,
            limit: limit.unwrap_or(usize::MAX),
            page,
        })
    }
}

/// Parses a label selector in the forms that the program sends: `key=value` and `key in (a,b)`.
fn requirements(selector: &str) -> Option<Vec<(String, Vec<String>)>> {
    let parts = selector.split("),").filter(|part| !part.is_empty());
    let requirements = parts.map(|part| {
        let part = part.trim_end_matches(')');
        let (key, values) = part.split_once(" in (").or_else(|| part.split_once('='))?;
        Some((
            key.to_owned(),
            values.split(',').map(str::to_owned).collect(),
        ))
    });
    requirements.collect()
}

/// Decodes the `%` escapes of a query.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let decoded = if byte == b'%' {
            digit().zip(digit()).map(|(high, low)| 16 * high + low)
        } else {
            None
        };
        bytes.push(
            decoded
                .and_then(|decoded| u8::try_from(decoded).ok())
                .unwrap_or(byte),
        );
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
