//! Reading: lists, tables and single objects. Raw objects become facts as soon as they arrive.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Cluster, Failure, Reference, StatusKind,
    failure::{Result, unreadable},
    request::{Accept, Response},
};
use crate::{
    facts::{Attachment, Namespaces, NodeFacts, PodFacts, Uid, Unread},
    kubernetes::{
        Kind, ListMeta, RawAttachment, RawLease, RawList, RawNamespace, RawNode, RawPod,
        RawStatefulSet, RawTable, identity_of_malformed, malformed,
    },
    outcome::{Replacement, ReplacementState as State},
};

/// Objects of one page. A page of whole pods of 11 KB is then about 5 MB, which bounds the memory of a run.
pub const PAGE: usize = 500;
/// Nodes of one page of a list that ends once two nodes are found.
const FEW: usize = 10;
/// Rows of one page: 0.3 MB.
const ROWS: usize = 1_000;
/// Lets the API server answer from its cache, where before 1.31 it reads every pod from etcd. Such a list may be some
/// seconds old, which a write survives: it names the resource version that was read. The list comes in one piece
/// whatever the limit, so only the pods of one node, or of one controller, are asked for in this way.
const CACHED: &str = "&resourceVersion=0";
/// A continue token has expired (the API server's history is five minutes long).
const EXPIRED: u16 = 410;
/// Selects the leases of API servers.
const SERVERS: &str = "&labelSelector=apiserver.kubernetes.io%2Fidentity%3Dkube-apiserver";
/// Selects the pods whose phase is final, which is any phase but these.
const FINISHED: &str =
    "status.phase%21%3DPending,status.phase%21%3DRunning,status.phase%21%3DUnknown";
/// The characters of a name that need no escape.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// A node, and when it was read: a write needs a fresh one.
#[derive(Debug, Clone)]
pub struct FreshNode {
    pub facts: NodeFacts,
    /// The API server's clock.
    pub now: Timestamp,
    /// When the request was sent, by our clock.
    pub at: Instant,
}

/// Which pods a list asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodsOf {
    Node(String),
    /// Pods that have no node yet.
    NoNode,
    /// Pods whose phase is final, on any node.
    Finished,
    Namespace(String),
    /// Pods of one name, in any namespace.
    Name(String),
}

impl PodsOf {
    /// What messages about a failure call them.
    pub fn what(&self) -> String {
        match self {
            Self::Node(name) => format!("pods of node {name}"),
            Self::NoNode => "pods without a node".to_owned(),
            Self::Finished => "finished pods".to_owned(),
            Self::Namespace(name) => format!("pods of {name}"),
            Self::Name(name) => format!("pods named {name}"),
        }
    }

    /// The namespace that they are in, empty where it may be any, and the query that selects them there.
    fn query(&self) -> (&str, String) {
        let (field, value) = match self {
            Self::Namespace(name) => return (name, String::new()),
            Self::Node(name) => ("spec.nodeName%3D", encode(name)),
            Self::NoNode => ("spec.nodeName%3D", String::new()),
            Self::Finished => (FINISHED, String::new()),
            Self::Name(name) => ("metadata.name%3D", encode(name)),
        };
        ("", format!("&fieldSelector={field}{value}"))
    }
}

/// What was made of the objects of a list.
#[derive(Debug, Default)]
pub struct Listed<T> {
    pub items: T,
    /// Objects that could not be read, each with its cause.
    pub malformed: Vec<String>,
}

impl<T> Listed<T> {
    /// What was made of the objects, if each could be read: an object that could not may be any.
    pub fn whole(self) -> Result<T> {
        let cause = self.malformed.into_iter().next();
        cause.map_or(Ok(self.items), |cause| Err(Failure::Unreadable(cause)))
    }
}

impl Cluster {
    /// `VolumeAttachments` by node. They have no field selector for it, but their rows name it.
    pub async fn attachments(&self) -> Result<BTreeMap<String, Vec<Attachment>>> {
        let take = |by_node: &mut BTreeMap<_, Vec<_>>, [name, volume, node]: [&str; 3]| {
            let named = !["", "<unset>"].contains(&volume);
            by_node
                .entry(node.to_owned())
                .or_default()
                .push(Attachment {
                    name: name.to_owned(),
                    volume: named.then(|| volume.to_owned()),
                });
        };
        let rows = self.rows::<RawAttachment, _, 3>(["Name", "PV", "Node"], take);
        Ok(rows.await?.1)
    }

    /// One node, whole, with its lease; `None` where it does not exist.
    pub async fn node(&self, name: &str) -> Result<Option<FreshNode>> {
        let at = Instant::now();
        let path = object::<RawNode>("", name);
        let (node, own) = tokio::join!(
            self.find_at::<RawNode>(&path, name, Accept::Object),
            self.find::<RawLease>(RawLease::OF_NODES, name)
        );
        let Some((node, date)) = node? else {
            return Ok(None);
        };
        let now = date.ok_or_else(|| unreadable("it carries no Date"))?;
        let api_servers = if node.may_have_api_server() {
            self.api_servers().await
        } else {
            Ok(Vec::new())
        };
        let own = own.map_err(|failure| Unread(failure.to_string()));
        let facts = node.into_facts(now, &own, &api_servers, &self.selectors);
        let facts = facts.map_err(Failure::Unreadable)?;
        Ok(Some(FreshNode { facts, now, at }))
    }

    /// The leases of the API servers; none where they may not be listed: an account of an older installation lacks that right.
    async fn api_servers(&self) -> Result<Vec<RawLease>, Unread> {
        let leases = self
            .list(RawLease::OF_API_SERVERS, SERVERS, Accept::Object, Vec::push)
            .await;
        match leases.and_then(Listed::whole) {
            Err(failure) if failure.code() == Some(403) => Ok(Vec::new()),
            leases => leases.map_err(|failure| Unread(format!("those of API servers: {failure}"))),
        }
    }

    /// The UIDs of all pods of `node`, as they are now. The cache is not asked: it may not know of a delete yet.
    pub async fn pod_uids(&self, node: &str) -> Result<BTreeSet<Uid>> {
        let of_node = PodsOf::Node(node.to_owned());
        let (namespace, query) = of_node.query();
        let take = |uids: &mut BTreeSet<_>, pod: RawPod| {
            uids.insert(pod.metadata.uid);
        };
        let pods = self.list(namespace, &query, Accept::MetadataList, take);
        // Any pod could be the one that cannot be read, so no absence would be proved.
        pods.await?.whole()
    }

    /// The pods that may have taken the place of `lost`: the one of its name, or those of its controller where that gives
    /// each a new name. The cache may answer: this is asked again and again, and no write follows from it.
    pub async fn successors(&self, lost: &PodFacts) -> Result<Vec<RawPod>> {
        let (namespace, name) = (&lost.namespace, &lost.name);
        if let (Some(labels), Some(controller)) = (&lost.siblings, &lost.controller) {
            let query = format!("&labelSelector={}{CACHED}", encode(labels));
            let take = |pods: &mut Vec<_>, pod: RawPod| {
                if pod.metadata.controlled_by(&controller.uid) {
                    pods.push(pod);
                }
            };
            let pods = self.list(namespace, &query, Accept::Look, take);
            return Ok(pods.await?.items);
        }
        let path = object::<RawPod>(namespace, name);
        let namesake = self.find_at(&path, name, Accept::Look).await?;
        // Its controller may have been created again, under the same name.
        let another =
            |pod: &RawPod| pod.metadata.uid != lost.uid && pod.summary().controller == lost.owner;
        let namesake = namesake.map(|(pod, _)| pod).filter(another);
        Ok(namesake.into_iter().collect())
    }

    /// Why the controller of `lost`, which has at least `has` pods, has not made a replacement.
    pub async fn missing(&self, lost: &PodFacts, has: usize) -> Result<Replacement> {
        let controller = Reference::controller(lost);
        let (kind, name) = (&controller.kind, &controller.name);
        let renames = lost.siblings.is_some();
        if !["apps/v1", "batch/v1"].contains(&&*controller.api_version) {
            let state = if renames {
                State::Pending
            } else {
                State::Unknown
            };
            let cause = format!(
                "none was found; its {kind} was not asked, and may name new pods otherwise"
            );
            return Ok(Replacement::without_pod(state, cause));
        }
        let path = format!(
            "/apis/{}/namespaces/{}/{}s/{}",
            controller.api_version,
            encode(&lost.namespace),
            kind.to_lowercase(),
            encode(name)
        );
        let found = self.find_at::<RawStatefulSet>(&path, name, Accept::Object);
        // A controller that was created again counts only where its pods keep their names.
        let is_it = |found: &RawStatefulSet| !renames || found.metadata.uid == controller.uid;
        let Some((found, _)) = found.await?.filter(|(found, _)| is_it(found)) else {
            let gone = "its controller no longer exists";
            return Ok(Replacement::without_pod(State::None, gone));
        };
        // A StatefulSet that wants fewer pods does not want those of the highest ordinals.
        let ordinal = match kind.as_str() {
            "StatefulSet" => lost.name.rsplit('-').next(),
            _ => None,
        };
        let ordinal = ordinal.and_then(|ordinal| ordinal.parse().ok());
        Ok(found.missing(ordinal.unwrap_or(has)))
    }

    /// The value by which each namespace is opted out, where it is. A malformed one is missing, so that its pods' opt-out
    /// counts as unread.
    pub async fn namespaces(&self) -> Result<Namespaces> {
        let take = |all: &mut Namespaces, RawNamespace { metadata: it }| {
            let opted_out = it.opted_out();
            all.insert(it.name, opted_out);
        };
        let listed = self.list("", "", Accept::MetadataList, take);
        Ok(listed.await?.items)
    }

    /// The names of real nodes that the label selector selects: all of them, or two where there are more.
    pub async fn real_nodes(&self, selector: &str) -> Result<Vec<String>> {
        let (nodes, selector) = (collection::<RawNode>(""), encode(selector));
        let path = format!("{nodes}?limit={FEW}&labelSelector={selector}");
        let take = |response: &Response, found: &mut Listed<Vec<_>>| {
            let next = response.items(found, |names, node: RawNode| {
                if !node.is_leaf(&self.selectors) {
                    names.push(node.metadata.name);
                }
            })?;
            Ok(next.filter(|_| found.items.len() < 2))
        };
        let mut found = self.pages(&path, Accept::Object, take).await?;
        found.items.truncate(2);
        // A node that could not be read may be one that is selected.
        if found.items.len() < 2 {
            found.whole()
        } else {
            Ok(found.items)
        }
    }

    /// Lists `pods`, Terminating or not, each given to `take`. The cache may answer for the pods of one node: a write names the
    /// resource version that was read.
    pub async fn pods<S: Default>(
        &self,
        pods: &PodsOf,
        take: impl Fn(&mut S, RawPod),
    ) -> Result<Listed<S>> {
        let cached = match pods {
            PodsOf::Node(_) => CACHED,
            _ => "",
        };
        let (namespace, query) = pods.query();
        let query = query + cached;
        self.list(namespace, &query, Accept::Object, take).await
    }

    /// An object; `None` where the API server says that there is none.
    pub async fn find<T: Kind>(&self, namespace: &str, name: &str) -> Result<Option<T>> {
        let path = object::<T>(namespace, name);
        let found = self.find_at(&path, name, Accept::Object).await?;
        Ok(found.map(|(object, _)| object))
    }

    /// The object at `path`, and the time of the response. It has to be the one that was asked for: every field of our types is
    /// optional, so that anything would parse, and mean an object without volumes, affinity or marks.
    async fn find_at<T: Kind>(
        &self,
        path: &str,
        name: &str,
        accept: Accept,
    ) -> Result<Option<(T, Option<Timestamp>)>> {
        let response = match self.get(path, accept).await {
            Err(failure) if failure.is(StatusKind::NotFound) => return Ok(None),
            response => response?,
        };
        let mut found = response.parse::<T>()?;
        if found.metadata().name != name {
            return Err(unreadable("it is not the object that was asked for"));
        }
        Ok(Some((found, response.date)))
    }

    /// Lists the objects that `query` selects, each given to `take`: those of `namespace`, or of all where that is empty.
    pub async fn list<T: Kind, S: Default>(
        &self,
        namespace: &str,
        query: &str,
        accept: Accept,
        take: impl Fn(&mut S, T),
    ) -> Result<Listed<S>> {
        let path = format!("{}?limit={PAGE}{query}", collection::<T>(namespace));
        self.pages(&path, accept, |response, listed| {
            response.items(listed, &take)
        })
        .await
    }

    /// Lists all objects of a kind as rows; `take` is given the cells of `columns`. Returns the first page's time too, since no
    /// page is older.
    pub async fn rows<T: Kind, S: Default, const N: usize>(
        &self,
        columns: [&str; N],
        take: impl Fn(&mut S, [&str; N]),
    ) -> Result<(Option<Timestamp>, S)> {
        let path = format!("{}?includeObject=None&limit={ROWS}", collection::<T>(""));
        let page = |response: &Response, (date, taken): &mut (Option<_>, S)| {
            *date = date.or(response.date);
            response.rows(columns, |cells| take(taken, cells))
        };
        self.pages(&path, Accept::Table, page).await
    }

    /// Gives `take` all pages of a list, one after the other; `take` returns the query for the next one. When a page's token has
    /// expired, the list is started again, once.
    async fn pages<S: Default>(
        &self,
        path: &str,
        accept: Accept,
        take: impl Fn(&Response, &mut S) -> Result<Option<String>>,
    ) -> Result<S> {
        let (mut taken, mut page, mut restarted) = (S::default(), path.to_owned(), false);
        loop {
            let response = match self.get(&page, accept).await {
                Err(failure) if failure.code() == Some(EXPIRED) && page != path && !restarted => {
                    (taken, page, restarted) = (S::default(), path.to_owned(), true);
                    continue;
                }
                response => response?,
            };
            let Some(next) = take(&response, &mut taken)? else {
                return Ok(taken);
            };
            // A token names the version that it continues. A server whose cache is not ready answers with one.
            page = path.trim_end_matches(CACHED).to_owned() + &next;
        }
    }
}

impl Response {
    /// Calls `each` with the cells of `columns`, row by row. Returns the query for the next page.
    fn rows<const N: usize>(
        &self,
        columns: [&str; N],
        mut each: impl FnMut([&str; N]),
    ) -> Result<Option<String>> {
        let table = self.parse::<RawTable>()?;
        let mut at = [0; N];
        for (at, wanted) in at.iter_mut().zip(columns) {
            let mut columns = table.column_definitions.iter();
            let missing = || unreadable(format!("the table has no column {wanted}"));
            *at = columns
                .position(|it| it.name == wanted)
                .ok_or_else(missing)?;
        }
        for row in &table.rows {
            let cells = at.map(|at| row.cells.get(at).and_then(Value::as_str));
            if cells.contains(&None) {
                return Err(unreadable("a row of the table lacks a cell"));
            }
            each(cells.map(Option::unwrap_or_default));
        }
        Ok(continuation(&table.metadata))
    }

    /// Gives each item of a page to `take`. Returns the query for the next page.
    fn items<T: DeserializeOwned, S>(
        &self,
        listed: &mut Listed<S>,
        take: impl Fn(&mut S, T),
    ) -> Result<Option<String>> {
        let list = self.parse::<RawList<'_>>()?;
        if !list.kind.ends_with("List") {
            return Err(unreadable("it is not a list"));
        }
        for item in list.items.unwrap_or_default() {
            match serde_json::from_str(item.get()) {
                Ok(object) => take(&mut listed.items, object),
                Err(error) => {
                    let (namespace, mut name) = identity_of_malformed(item.get());
                    let slash = if namespace.is_empty() { "" } else { "/" };
                    if name.is_empty() {
                        name += "an object without a name";
                    }
                    let why = malformed(&error);
                    let whole = format!("{namespace}{slash}{name}: {why}");
                    listed.malformed.push(whole);
                }
            }
        }
        Ok(continuation(&list.metadata))
    }
}

fn continuation(metadata: &ListMeta) -> Option<String> {
    let token = encode(&metadata.next);
    (!token.is_empty()).then(|| format!("&continue={token}"))
}

/// The path of the objects of a kind: of `namespace`, or of all where that is empty.
pub fn collection<T: Kind>(namespace: &str) -> String {
    let [api, plural] = T::API;
    if namespace.is_empty() {
        format!("{api}/{plural}")
    } else {
        format!("{api}/namespaces/{}/{plural}", encode(namespace))
    }
}

/// The path of one object of a kind.
pub fn object<T: Kind>(namespace: &str, name: &str) -> String {
    format!("{}/{}", collection::<T>(namespace), encode(name))
}

pub fn encode(name: &str) -> String {
    utf8_percent_encode(name, PLAIN).to_string()
}
