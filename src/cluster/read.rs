//! Reads lists, tables and single objects. Each object of a list is handled as soon as its page
//! arrives, so a list is never in memory as a whole.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{
    About, Api, Cluster, Failure, Listed, MAX_BODY_BYTES, Of, StatusKind,
    failure::{Result, unreadable},
    request::{Ask, Response, collection, encode, object},
};
use crate::{
    exit::CouldNotRun,
    facts::{PodsOf, Uid},
    kubernetes::{Kind, Malformed, RawList, RawPod, RawTable, Row},
    selector::{MAX_NAME_CHARS, NamespaceFilter, is_name},
};

/// The number of objects on one page. A page of whole pods, of 11 KB each, then has about 5 MB,
/// which limits the memory of a run.
pub const PAGE_OBJECTS: usize = 500;
/// The number of rows on one page, of 0.3 MB.
const PAGE_ROWS: usize = 1_000;
/// The most pages of a list, and the most objects on all but its last page. Kubernetes is made for 150,000 pods, and a tenant
/// may make some hundred thousand small objects. A broken server may say forever that there is another page.
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

impl Api for Cluster {
    async fn rows<R: Row, A: Default>(
        &self,
        add: impl Fn(&mut A, R),
    ) -> Result<(Option<Timestamp>, A)> {
        let path = format!("{}?includeObject=None&limit=", collection::<R::Object>(""));
        let read_page = |response: &Response, (date, all): &mut (Option<_>, A)| {
            *date = date.or(response.date);
            response.rows(|row| add(all, row))
        };
        self.pages((&path, PAGE_ROWS, ""), Ask::TABLE, read_page)
            .await
    }

    /// Fails if the response is not the object called `name`: every field of our types is optional, so any JSON object
    /// would parse, and would be taken for an object without volumes, affinity or marks. No object can have a name that is
    /// none: the name's author may have aimed at another path.
    async fn get<T: Kind>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<(T, Option<Timestamp>)>> {
        if !is_name(name) {
            return Ok(None);
        }
        let response = match self.fetch(&object::<T>(namespace, name), Ask::OBJECT).await {
            Err(failure) if failure.is(StatusKind::NotFound) => return Ok(None),
            response => response?,
        };
        let found = response.object::<T>()?;
        if found.metadata().name != name {
            return Err(unreadable("it is not the object that was asked for"));
        }
        Ok(Some((found, response.date)))
    }

    /// The pods of one node may come from the cache, because a write names the resource version that was read.
    async fn each<T: Kind, A: Default>(
        &self,
        of: Of<'_>,
        add: impl Fn(&mut A, &T),
    ) -> Result<Listed<A>> {
        let (namespace, mut query) = match of {
            Of::All => ("", String::new()),
            Of::Nodes(selector) => ("", format!("&labelSelector={}", encode(selector.as_str()))),
            Of::Pods(list) => query_of(list),
        };
        if matches!(of, Of::Pods(PodsOf::Node(_))) {
            query += CACHED;
        }
        self.list(namespace, &query, Ask::OBJECT, add).await
    }

    fn about(&self, _: &NamespaceFilter) -> About {
        About {
            cluster_name: Some(self.name.clone()),
            ..About::default()
        }
    }

    fn could_not(&self, what: &str, cause: &Failure) -> CouldNotRun {
        let hint = "see whether `kubectl get nodes` works; after 401, log in again; after 403, grant that permission to the \
                    account, or choose another with --context or --kubeconfig";
        CouldNotRun::Source(format!(
            "could not {what} of {}: {cause}; {hint}",
            self.address
        ))
    }
}

impl Cluster {
    /// Lists the UIDs of all pods of `node`. The response does not come from the cache, which may
    /// not know of a delete yet.
    pub async fn pod_uids(&self, node: &str) -> Result<BTreeSet<Uid>> {
        let of_node = PodsOf::Node(node.to_owned());
        let (namespace, query) = query_of(&of_node);
        let add_uid = |uids: &mut BTreeSet<_>, pod: &RawPod| {
            uids.insert(pod.metadata.uid.clone());
        };
        let pods = self.list(namespace, &query, Ask::METADATA_LIST, add_uid);
        // A pod that cannot be read may be any pod, so the list would not prove that a certain pod
        // is gone.
        pods.await?.whole()
    }

    /// Lists the objects that `query` selects, and collects
    /// them by `add`. An empty `namespace` means all.
    async fn list<T: Kind, S: Default>(
        &self,
        namespace: &str,
        query: &str,
        ask: Ask,
        add: impl Fn(&mut S, &T),
    ) -> Result<Listed<S>> {
        let path = format!("{}?limit=", collection::<T>(namespace));
        self.pages((&path, PAGE_OBJECTS, query), ask, |response, listed| {
            response.items(listed, &add)
        })
        .await
    }

    /// Reads the pages of a list, one after the other, until `read_page` returns no token for the
    /// next page. The request for a page is made of the path up to the limit, the most objects on a
    /// page, and the rest of the query. If the token of a page has expired, the list starts again,
    /// once. If a page is too large, or a list from the cache does not come in time, smaller pages are
    /// requested. Once a page was read, the account may list, so a refusal is a failure of the server
    /// like any other.
    async fn pages<S: Default>(
        &self,
        (path, most, query): (&str, usize, &str),
        ask: Ask,
        read_page: impl Fn(&Response, &mut S) -> Result<(String, usize)>,
    ) -> Result<S> {
        let (mut all, mut next, mut restarted) = (S::default(), String::new(), false);
        let (mut limit, mut in_pages, mut may_list) = (most, false, false);
        let mut read = 0;
        for _ in 0..MAX_PAGES {
            // A token contains the version that it continues. Even a cached list may have a next
            // page: a server whose cache is not ready responds with pages.
            let whole = next.is_empty() && !in_pages;
            let rest = if whole {
                query
            } else {
                query.trim_end_matches(CACHED)
            };
            let mut response = self.fetch(&format!("{path}{limit}{rest}{next}"), ask).await;
            if may_list && let Err(Failure::Status { kind, .. }) = &mut response {
                *kind = StatusKind::Other;
            }
            let is_large = |failure: &Failure| match failure {
                Failure::TooLarge => limit > 1,
                // The API server encodes all of a list from its cache before it sends any of it.
                Failure::Timeout(_) | Failure::Transport(_) => whole && query.ends_with(CACHED),
                _ => false,
            };
            let response = match response {
                Err(failure)
                    if failure.code() == Some(EXPIRED_STATUS) && !next.is_empty() && !restarted =>
                {
                    (all, next, restarted) = (S::default(), String::new(), true);
                    continue;
                }
                Err(failure) if is_large(&failure) => {
                    (limit, in_pages) = ((limit / PAGE_DIVISOR).max(1), true);
                    continue;
                }
                response => response?,
            };
            if response.body.len() < MAX_BODY_BYTES / GROWTH_DIVISOR {
                limit = most.min(limit * 2);
            }
            let (token, objects) = read_page(&response, &mut all)?;
            if token.is_empty() {
                return Ok(all);
            }
            read += objects;
            if read > MAX_OBJECTS {
                break;
            }
            let token = format!("&continue={}", encode(&token));
            (next, may_list) = (token, true);
        }
        Err(unreadable("the list has no end"))
    }
}

impl Response {
    /// Calls `each` with every row. Returns the token of the next page, and the number of rows.
    fn rows<R: Row>(&self, mut each: impl FnMut(R)) -> Result<(String, usize)> {
        let table = self.parse::<RawTable>()?;
        let columns = R::COLUMNS
            .iter()
            .map(|wanted| {
                table
                    .column_definitions
                    .iter()
                    .position(|it| it.name == *wanted)
                    .ok_or_else(|| unreadable(format!("the table has no column {wanted}")))
            })
            .collect::<Result<Vec<_>>>()?;
        for row in &table.rows {
            let cells = columns
                .iter()
                .map(|at| row.cells.get(*at)?.as_str())
                // No name is longer.
                .map(|cell| Some(&cell?[..cell?.floor_char_boundary(MAX_NAME_CHARS)]))
                .collect::<Option<Vec<_>>>()
                .ok_or_else(|| unreadable("a row of the table lacks a cell"))?;
            each(R::of_cells(&cells));
        }
        Ok((table.metadata.next, table.rows.len()))
    }

    /// Collects the items of a page in `listed` by `add`. Returns the token of the next page, and the number of items.
    fn items<T: Kind, S>(
        &self,
        listed: &mut Listed<S>,
        add: impl Fn(&mut S, &T),
    ) -> Result<(String, usize)> {
        let list = self.parse::<RawList<'_>>()?;
        if !list.kind.ends_with("List") {
            return Err(unreadable("it is not a list"));
        }
        listed.date = self.date.or(listed.date);
        let items = list.items.unwrap_or_default();
        for item in &items {
            match T::parsed(item.get().as_bytes()) {
                Ok(object) => add(&mut listed.items, &object),
                Err(cause) => {
                    let malformed = Malformed::new(T::KIND, item.get(), cause);
                    listed.malformed.push(malformed);
                }
            }
        }
        Ok((list.metadata.next, items.len()))
    }
}
