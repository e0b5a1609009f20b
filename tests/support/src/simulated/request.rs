//! Parses the requests that the program sends.

use itertools::Itertools as _;
use std::collections::BTreeMap;

use http::{Method, header, request::Parts};
use serde_json::{Value, json};

use super::Labels;

/// Selects the finished pods, whose phase is none of these.
const UNFINISHED: &str = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown";
/// Selects the leases that are not those of kubelets.
const OTHERS: &str = "metadata.namespace!=kube-node-lease";
const SELECTS_NODE: &str = "spec.nodeName=";
/// Objects on a page: where rows are asked for, whole objects, and nodes of which two are enough.
const ROWS: usize = 1_000;
const OBJECTS: usize = 500;
const FEW: usize = 10;

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    NodeRows,
    PodRows,
    AttachmentRows,
    Nodes,
    /// The nodes that a label selector selects.
    NodesWith,
    Namespaces,
    Pods,
    /// The pods of a namespace that a label selector selects.
    PodsWith,
    PodUids,
    Events,
    Node,
    Lease,
    /// The leases of API servers.
    ServerLeases,
    /// The holders of all leases but those of kubelets.
    LeaseRows,
    /// Those of one name.
    LeasesNamed,
    /// One of them.
    OtherLease,
    Drivers,
    Pod,
    StatefulSet,
    ReplicaSet,
    Job,
    Claim,
    Volume,
    Claims,
    Volumes,
    /// The pods of one namespace.
    PodsIn,
    Delete,
    DeleteClaim,
    Patch,
    Event,
}

/// The kinds of listed objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    Nodes,
    Leases,
    Namespaces,
    Pods,
    Claims,
    Volumes,
    StatefulSets,
    Attachments,
    Events,
    ReplicaSets,
    Jobs,
    Drivers,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its number, in the order of sending.
    pub number: usize,
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    /// The field selector.
    pub selector: String,
    /// The label selector; nothing where it does not parse.
    pub(super) labels: Option<Labels>,
    /// As it was sent.
    pub query: Option<String>,
    pub content_type: String,
    pub body: Value,
    pub dry_run: bool,
    /// Whether the server may answer from its cache.
    pub cached: bool,
    /// The maximum of objects on a page that it requests.
    pub(super) limit: usize,
    /// The number of a list, and of the first item on this page.
    pub(super) page: Option<(usize, usize)>,
}

impl Kind {
    pub const ALL: [Self; 30] = [
        Self::NodeRows,
        Self::PodRows,
        Self::AttachmentRows,
        Self::Nodes,
        Self::NodesWith,
        Self::Namespaces,
        Self::Pods,
        Self::PodsWith,
        Self::PodUids,
        Self::Events,
        Self::Node,
        Self::Lease,
        Self::ServerLeases,
        Self::LeaseRows,
        Self::LeasesNamed,
        Self::OtherLease,
        Self::Drivers,
        Self::Pod,
        Self::StatefulSet,
        Self::ReplicaSet,
        Self::Job,
        Self::Claim,
        Self::Volume,
        Self::Claims,
        Self::Volumes,
        Self::PodsIn,
        Self::Delete,
        Self::DeleteClaim,
        Self::Patch,
        Self::Event,
    ];

    /// Whether it changes a pod or a claim.
    pub fn writes(self) -> bool {
        matches!(self, Self::Delete | Self::DeleteClaim | Self::Patch)
    }

    pub(super) fn is_rows(self) -> bool {
        matches!(
            self,
            Self::NodeRows | Self::PodRows | Self::AttachmentRows | Self::LeaseRows
        )
    }

    pub(super) fn is_list(self) -> bool {
        self.is_rows()
            || matches!(
                self,
                Self::Nodes
                    | Self::NodesWith
                    | Self::Namespaces
                    | Self::Claims
                    | Self::Volumes
                    | Self::Pods
                    | Self::PodsIn
                    | Self::PodsWith
                    | Self::PodUids
                    | Self::Events
                    | Self::ServerLeases
                    | Self::LeasesNamed
                    | Self::Drivers
            )
    }

    pub(super) fn resource(self) -> Resource {
        match self {
            Self::NodeRows | Self::Nodes | Self::NodesWith | Self::Node => Resource::Nodes,
            Self::PodRows
            | Self::Pods
            | Self::PodsIn
            | Self::PodsWith
            | Self::PodUids
            | Self::Pod
            | Self::Delete
            | Self::Patch => Resource::Pods,
            Self::AttachmentRows => Resource::Attachments,
            Self::Namespaces => Resource::Namespaces,
            Self::Events | Self::Event => Resource::Events,
            Self::Lease
            | Self::ServerLeases
            | Self::LeaseRows
            | Self::LeasesNamed
            | Self::OtherLease => Resource::Leases,
            Self::Drivers => Resource::Drivers,
            Self::Claim | Self::Claims | Self::DeleteClaim => Resource::Claims,
            Self::StatefulSet => Resource::StatefulSets,
            Self::ReplicaSet => Resource::ReplicaSets,
            Self::Job => Resource::Jobs,
            Self::Volume | Self::Volumes => Resource::Volumes,
        }
    }
}

impl Request {
    /// UID and resource version that a write carries.
    pub fn preconditions(&self) -> (&str, &str) {
        let at = if matches!(self.kind, Kind::Delete | Kind::DeleteClaim) {
            &self.body["preconditions"]
        } else {
            &self.body["metadata"]
        };
        (
            at["uid"].as_str().unwrap_or_default(),
            at["resourceVersion"].as_str().unwrap_or_default(),
        )
    }

    /// The node whose pods a list requests; empty for pods without a node.
    pub fn of_node(&self) -> Option<&str> {
        self.selector.strip_prefix(SELECTS_NODE)
    }

    /// Whether the object meets all requirements of the selectors.
    pub(super) fn selects(&self, object: &Value) -> bool {
        if !self
            .labels
            .as_ref()
            .is_some_and(|labels| labels.select(object))
        {
            return false;
        }
        if !self.namespace.is_empty() && object["metadata"]["namespace"] != self.namespace.as_str()
        {
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

    /// Parses a request. Returns nothing where the program has no reason to send it.
    pub(super) fn read(number: usize, parts: &Parts, body: &[u8]) -> Option<Self> {
        let header = |name| {
            parts
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
        };
        let accept = header(header::ACCEPT);
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
        let path = parts
            .uri
            .path()
            .trim_start_matches('/')
            .split('/')
            .collect_vec();
        let get = parts.method == Method::GET;
        let limit = query
            .get("limit")
            .and_then(|limit| limit.parse::<usize>().ok());
        // A page that was too large is asked for again with a smaller limit.
        let within = |most| limit.is_some_and(|limit| (1..=most).contains(&limit));
        let rows = get && table && query.get("includeObject") == Some(&"None") && within(ROWS);
        let list = get && !table && within(OBJECTS);
        let few = get && !table && within(FEW);
        let decoded = |name: &str| query.get(name).map(|text| decode(text));
        let selector = decoded("fieldSelector").unwrap_or_default();
        let with_labels = decoded("labelSelector");
        let (kind, namespace, name) = match path[..] {
            ["api", "v1", "nodes"] if rows => (Kind::NodeRows, "", ""),
            ["api", "v1", "nodes"] if list && !metadata && with_labels.is_none() => {
                (Kind::Nodes, "", "")
            }
            ["api", "v1", "nodes"] if few && !metadata && with_labels.is_some() => {
                (Kind::NodesWith, "", "")
            }
            ["api", "v1", "namespaces", namespace, "pods"]
                if list && !metadata && with_labels.is_some() =>
            {
                (Kind::PodsWith, namespace, "")
            }
            [
                "apis",
                "coordination.k8s.io",
                "v1",
                "namespaces",
                "kube-system",
                "leases",
            ] if list && !metadata && with_labels.is_some() => {
                (Kind::ServerLeases, "kube-system", "")
            }
            _ if with_labels.is_some() => return None,
            ["apis", "storage.k8s.io", "v1", "volumeattachments"] if rows => {
                (Kind::AttachmentRows, "", "")
            }
            ["api", "v1", "namespaces"] if list && metadata => (Kind::Namespaces, "", ""),
            ["api", "v1", "persistentvolumeclaims"] if list && !metadata => (Kind::Claims, "", ""),
            ["api", "v1", "persistentvolumes"] if list && !metadata => (Kind::Volumes, "", ""),
            ["api", "v1", "pods"] if rows => (Kind::PodRows, "", ""),
            ["api", "v1", "pods"]
                if list && (selector.starts_with(SELECTS_NODE) || selector == UNFINISHED) =>
            {
                (if metadata { Kind::PodUids } else { Kind::Pods }, "", "")
            }
            ["api", "v1", "nodes", name] if get => (Kind::Node, "", name),
            [
                "apis",
                "coordination.k8s.io",
                "v1",
                "namespaces",
                "kube-node-lease",
                "leases",
                name,
            ] if get => (Kind::Lease, "", name),
            [
                "apis",
                "coordination.k8s.io",
                "v1",
                "namespaces",
                namespace,
                "leases",
                name,
            ] if get => (Kind::OtherLease, namespace, name),
            ["apis", "coordination.k8s.io", "v1", "leases"] if rows && selector == OTHERS => {
                (Kind::LeaseRows, "", "")
            }
            ["apis", "coordination.k8s.io", "v1", "leases"]
                if list && !metadata && selector.starts_with(OTHERS) =>
            {
                (Kind::LeasesNamed, "", "")
            }
            ["apis", "storage.k8s.io", "v1", "csidrivers"] if list && !metadata => {
                (Kind::Drivers, "", "")
            }
            ["api", "v1", "namespaces", namespace, "pods", name] if get => {
                (Kind::Pod, namespace, name)
            }
            [
                "apis",
                "apps",
                "v1",
                "namespaces",
                namespace,
                "statefulsets",
                name,
            ] if get => (Kind::StatefulSet, namespace, name),
            [
                "apis",
                "apps",
                "v1",
                "namespaces",
                namespace,
                "replicasets",
                name,
            ] if get => (Kind::ReplicaSet, namespace, name),
            ["apis", "batch", "v1", "namespaces", namespace, "jobs", name] if get => {
                (Kind::Job, namespace, name)
            }
            [
                "api",
                "v1",
                "namespaces",
                namespace,
                "persistentvolumeclaims",
                name,
            ] if get => (Kind::Claim, namespace, name),
            [
                "api",
                "v1",
                "namespaces",
                namespace,
                "persistentvolumeclaims",
                name,
            ] if parts.method == Method::DELETE => (Kind::DeleteClaim, namespace, name),
            ["api", "v1", "namespaces", namespace, "pods"]
                if list && !metadata && selector.is_empty() =>
            {
                (Kind::PodsIn, namespace, "")
            }
            ["api", "v1", "persistentvolumes", name] if get => (Kind::Volume, "", name),
            ["api", "v1", "namespaces", namespace, "pods", name]
                if parts.method == Method::DELETE =>
            {
                (Kind::Delete, namespace, name)
            }
            ["api", "v1", "namespaces", namespace, "pods", name, "status"]
                if parts.method == Method::PATCH =>
            {
                (Kind::Patch, namespace, name)
            }
            [
                "apis",
                "events.k8s.io",
                "v1",
                "namespaces",
                namespace,
                "events",
            ] if list => (Kind::Events, namespace, ""),
            [
                "apis",
                "events.k8s.io",
                "v1",
                "namespaces",
                namespace,
                "events",
            ] if parts.method == Method::POST => (Kind::Event, namespace, ""),
            _ => return None,
        };
        let page = match query.get("continue") {
            None => None,
            Some(token) => {
                let (list, item) = token.strip_prefix('l')?.split_once('i')?;
                Some((list.parse().ok()?, item.parse().ok()?))
            }
        };
        // Only the first list of one node's pods may be old, and of a controller's. A token says itself which version it continues.
        let by_name = selector
            .strip_prefix(SELECTS_NODE)
            .is_some_and(|node| !node.is_empty());
        let may_be_old = kind == Kind::PodsWith || kind == Kind::Pods && by_name;
        let is_first = limit == Some(OBJECTS);
        let cached = match query.get("resourceVersion") {
            Some(&"0") if page.is_none() && may_be_old => true,
            None if page.is_some() || !may_be_old || !is_first => false,
            _ => return None,
        };
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(body).ok()?
        };
        let dry_run = query.get("dryRun") == Some(&"All") || body["dryRun"] == json!(["All"]);
        Some(Self {
            number,
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            selector,
            labels: Labels::parse(&with_labels.unwrap_or_default()),
            query: parts.uri.query().map(str::to_owned),
            content_type: header(header::CONTENT_TYPE).to_owned(),
            body,
            dry_run,
            cached,
            limit: limit.unwrap_or(usize::MAX),
            page,
        })
    }
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
