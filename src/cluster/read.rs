//! Reads lists, tables and single objects. Each object of a list is handled as soon as its page
//! arrives, so a list is never in memory as a whole.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Cluster, Failure, MAX_BODY_BYTES, StatusKind,
    failure::{Result, unreadable},
    request::{Ask, Response, collection, encode, object},
};
use crate::{
    facts::{Namespaces, PodsOf, Uid, Unread},
    kubernetes::{
        Holders, Kind, LeasesByNode, Malformed, NodeObjects, RawLease, RawList, RawNamespace,
        RawNode, RawPod, RawTable,
    },
    selector::{NodeSelectors, is_name},
};

/// The number of objects on one page. A page of whole pods, of 11 KB each, then has about 5 MB,
/// which limits the memory of a run.
pub const PAGE_OBJECTS: usize = 500;
/// The number of rows on one page, of 0.3 MB.
const PAGE_ROWS: usize = 1_000;
/// The most pages of a list, and the most objects that are requested with them. Kubernetes is made for 150,000
/// pods, and etcd for 8 GB, but a broken server may say forever that there is another page.
const MAX_PAGES: usize = 10_000;
const MAX_OBJECTS: usize = 1_000_000;
/// The divisor of the limit after a page that was too large: three steps lead from [`PAGE_OBJECTS`] to 1.
const PAGE_DIVISOR: usize = 8;
/// If the body of a page is smaller than the largest body divided by this number, the next page may
/// have twice as many objects.
const GROWTH_DIVISOR: usize = 4;
/// Lets the API server respond from its cache. Without it, a server before 1.31 reads every pod from
/// etcd. Such a list may be some seconds old, which does no harm, because a write names the
/// resource version that was read. The server sends the list in one piece whatever the limit, so
/// only the pods of one node are listed in this way.
const CACHED: &str = "&resourceVersion=0";
/// The status code for an expired continue token: the API server keeps five minutes of history.
const EXPIRED_STATUS: u16 = 410;
/// The most Leases of one node that a run keeps. More show life.
const MAX_LEASES_PER_NODE: usize = 64;
/// Selects the pods whose phase is final: any phase but these three.
const FINISHED_PODS: &str =
    "status.phase%21%3DPending,status.phase%21%3DRunning,status.phase%21%3DUnknown";

/// Returns the namespace of a list of pods, which is empty for all namespaces, and the query that
/// selects the pods there.
fn query_of(pods: &PodsOf) -> (&str, String) {
    let (field, value) = match pods {
        PodsOf::Namespace(name) => return (name, String::new()),
        PodsOf::Node(name) => ("spec.nodeName%3D", encode(name)),
        PodsOf::NoNode => ("spec.nodeName%3D", String::new()),
        PodsOf::Finished => (FINISHED_PODS, String::new()),
        PodsOf::Name(name) => ("metadata.name%3D", encode(name)),
    };
    ("", format!("&fieldSelector={field}{value}"))
}

/// The items made from the objects of a list.
#[derive(Debug, Default)]
pub struct Listed<T> {
    pub items: T,
    /// The objects that could not be read.
    pub malformed: Vec<Malformed>,
}

impl<T> Listed<T> {
    /// Returns the items, or an error if any object could not be read, because that object may be
    /// the one that matters.
    pub fn whole(self) -> Result<T> {
        let first = self.malformed.into_iter().next();
        first.map_or(Ok(self.items), |malformed| {
            Err(Failure::Unreadable(malformed.to_string()))
        })
    }
}

impl Cluster {
    /// Reads one node in full, with its own lease; `None` if the node does not exist.
    pub async fn node_objects(&self, name: &str) -> Result<Option<NodeObjects>> {
        let (node, lease) = tokio::join!(
            self.find_dated::<RawNode>("", name),
            self.find::<RawLease>(RawLease::OF_NODES, name),
        );
        let Some((node, date)) = node? else {
            return Ok(None);
        };
        let now = date.ok_or_else(|| unreadable("it has no Date header"))?;
        let lease = lease.map_err(Unread::from);
        Ok(Some(NodeObjects { node, lease, now }))
    }

    /// Reads all Leases in one list, and returns by node those that speak for the nodes of `holders`, without the node's
    /// own.
    pub async fn leases_of(&self, holders: &Holders) -> Result<LeasesByNode> {
        type Found = BTreeMap<String, Vec<RawLease>>;
        let add_lease = |found: &mut Found, mut lease: RawLease| {
            lease.drop_unused();
            for node in holders.of(&lease) {
                let leases = found.entry(node.to_owned()).or_default();
                // One more than the limit shows that there are too many.
                if leases.len() <= MAX_LEASES_PER_NODE {
                    leases.push(lease.clone());
                }
            }
        };
        let mut listed = self.list("", "", Ask::OBJECT, add_lease).await?;
        listed.malformed.retain(|lease| holders.may_speak(lease));
        let by_node = listed.whole()?.into_iter().map(|(node, leases)| {
            let are_few = leases.len() <= MAX_LEASES_PER_NODE;
            (node, are_few.then_some(leases))
        });
        Ok(by_node.collect())
    }

    /// Lists the UIDs of all pods of `node`. The response does not come from the cache, which may
    /// not know of a delete yet.
    pub async fn pod_uids(&self, node: &str) -> Result<BTreeSet<Uid>> {
        let of_node = PodsOf::Node(node.to_owned());
        let (namespace, query) = query_of(&of_node);
        let add_uid = |uids: &mut BTreeSet<_>, pod: RawPod| {
            uids.insert(pod.metadata.uid);
        };
        let pods = self.list(namespace, &query, Ask::METADATA_LIST, add_uid);
        // A pod that cannot be read may be any pod, so the list would not prove that a certain pod
        // is gone.
        pods.await?.whole()
    }

    /// Lists all namespaces, each with the value that opts it out, if it has one. A malformed
    /// namespace is left out, so the opt-out of its pods is treated as unread.
    pub async fn all_namespaces(&self) -> Result<Namespaces> {
        let listed = self.list("", "", Ask::OBJECT, RawNamespace::add_to);
        Ok(listed.await?.items)
    }

    /// Names the real nodes that a label selector selects; `leaf` are the selectors that
    /// the user gave.
    pub async fn real_nodes_with(
        &self,
        selector: &str,
        leaf: &NodeSelectors,
    ) -> Result<Vec<String>> {
        let query = format!("&labelSelector={}", encode(selector));
        let add_real = |names: &mut Vec<_>, node: RawNode| {
            if !node.is_leaf(leaf) {
                names.push(node.metadata.name);
            }
        };
        let found = self.list("", &query, Ask::OBJECT, add_real).await?;
        if found.items.len() < 2 {
            // A node that could not be read may be a real one.
            return found.whole();
        }
        Ok(found.items)
    }

    /// Reads a list of pods, Terminating or not, and collects them by `add`. The pods of one node
    /// may come from the cache, because a write names the resource version that was read.
    pub async fn pods_of<S: Default>(
        &self,
        list: &PodsOf,
        add: impl Fn(&mut S, RawPod),
    ) -> Result<Listed<S>> {
        let cached = match list {
            PodsOf::Node(_) => CACHED,
            _ => "",
        };
        let (namespace, query) = query_of(list);
        let query = query + cached;
        self.list(namespace, &query, Ask::OBJECT, add).await
    }

    /// Reads an object; `None` if the API server says that the object does not exist, or if no
    /// object can have that name: the name's author may have aimed at another path.
    pub async fn find<T: Kind>(&self, namespace: &str, name: &str) -> Result<Option<T>> {
        if !is_name(name) {
            return Ok(None);
        }
        let found = self.find_dated(namespace, name).await?;
        Ok(found.map(|(object, _)| object))
    }

    /// Reads an object, and the time of the response. Fails if it is not the object called `name`: every
    /// field of our types is optional, so any JSON object would parse, and would be taken for an object
    /// without volumes, affinity or marks.
    async fn find_dated<T: Kind>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<(T, Option<Timestamp>)>> {
        let path = object::<T>(namespace, name);
        let response = match self.get(&path, Ask::OBJECT).await {
            Err(failure) if failure.is(StatusKind::NotFound) => return Ok(None),
            response => response?,
        };
        let mut found = response.object::<T>()?;
        if found.metadata().name != name {
            return Err(unreadable("it is not the object that was asked for"));
        }
        Ok(Some((found, response.date)))
    }

    /// Lists the objects that `query` selects, and collects
    /// them by `add`. An empty `namespace` means all.
    pub async fn list<T: Kind, S: Default>(
        &self,
        namespace: &str,
        query: &str,
        ask: Ask,
        add: impl Fn(&mut S, T),
    ) -> Result<Listed<S>> {
        let path = format!("{}?limit=", collection::<T>(namespace));
        self.pages((&path, PAGE_OBJECTS, query), ask, |response, listed| {
            response.items(listed, &add)
        })
        .await
    }

    /// Lists all objects of a kind as rows, and collects the cells of `columns` by `add`. Returns
    /// the time of the first page too: no page is older.
    pub async fn rows<T: Kind, S: Default, const N: usize>(
        &self,
        columns: [&str; N],
        add: impl Fn(&mut S, [&str; N]),
    ) -> Result<(Option<Timestamp>, S)> {
        let path = format!("{}?includeObject=None&limit=", collection::<T>(""));
        let read_page = |response: &Response, (date, all): &mut (Option<_>, S)| {
            *date = date.or(response.date);
            response.rows(columns, |cells| add(all, cells))
        };
        self.pages((&path, PAGE_ROWS, ""), Ask::TABLE, read_page)
            .await
    }

    /// Reads the pages of a list, one after the other, until `read_page` returns no token for the
    /// next page. The request for a page is made of the path up to the limit, the most objects on a
    /// page, and the rest of the query. If the token of a page has expired, the list starts again,
    /// once. If a page is too large, smaller pages are requested. Once a page was read, the account
    /// may list, so a refusal is a failure of the server like any other.
    async fn pages<S: Default>(
        &self,
        (path, most, query): (&str, usize, &str),
        ask: Ask,
        read_page: impl Fn(&Response, &mut S) -> Result<String>,
    ) -> Result<S> {
        let (mut all, mut next, mut restarted) = (S::default(), String::new(), false);
        let (mut limit, mut in_pages, mut may_list) = (most, false, false);
        let mut requested = 0;
        for _ in 0..MAX_PAGES {
            requested += limit;
            if requested > MAX_OBJECTS {
                break;
            }
            // A token contains the version that it continues. Even a cached list may have a next
            // page: a server whose cache is not ready responds with pages.
            let whole = next.is_empty() && !in_pages;
            let rest = if whole {
                query
            } else {
                query.trim_end_matches(CACHED)
            };
            let mut response = self.get(&format!("{path}{limit}{rest}{next}"), ask).await;
            if may_list && let Err(Failure::Status { kind, .. }) = &mut response {
                *kind = StatusKind::Other;
            }
            let response = match response {
                Err(failure)
                    if failure.code() == Some(EXPIRED_STATUS) && !next.is_empty() && !restarted =>
                {
                    (all, next, restarted) = (S::default(), String::new(), true);
                    continue;
                }
                Err(Failure::TooLarge) if limit > 1 => {
                    (limit, in_pages) = ((limit / PAGE_DIVISOR).max(1), true);
                    continue;
                }
                response => response?,
            };
            if response.body.len() < MAX_BODY_BYTES / GROWTH_DIVISOR {
                limit = most.min(limit * 2);
            }
            let token = read_page(&response, &mut all)?;
            if token.is_empty() {
                return Ok(all);
            }
            let token = format!("&continue={}", encode(&token));
            (next, may_list) = (token, true);
        }
        Err(unreadable("the list has no end"))
    }
}

impl Response {
    /// Calls `each` with the cells of `columns` of each row. Returns the token of the next page.
    fn rows<const N: usize>(
        &self,
        columns: [&str; N],
        mut each: impl FnMut([&str; N]),
    ) -> Result<String> {
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
        Ok(table.metadata.next)
    }

    /// Collects the items of a page in `listed` by `add`. Returns the token of the next page.
    fn items<T: Kind, S>(&self, listed: &mut Listed<S>, add: impl Fn(&mut S, T)) -> Result<String> {
        let list = self.parse::<RawList<'_>>()?;
        if !list.kind.ends_with("List") {
            return Err(unreadable("it is not a list"));
        }
        for item in list.items.unwrap_or_default() {
            match T::parsed(item.get().as_bytes()) {
                Ok(object) => add(&mut listed.items, object),
                Err(cause) => {
                    listed.malformed.push(Malformed::new(item.get(), cause));
                }
            }
        }
        Ok(list.metadata.next)
    }
}
