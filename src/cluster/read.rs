//! Reading: raw objects become facts here, as soon as they arrive.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::request::{Accept, Answer};
use super::{Cluster, Failure, Reference, StatusKind};
use crate::facts::{
    Attachment, ClaimLook, ClaimState, Namespaces, NodeFacts, PodFacts, PodSummary, Standing,
    Traits, Uid, Unasked, Unread,
};
use crate::kubernetes::{
    KOSMOS_PREFIX, ListMeta, NodeLeases, RawClaim, RawController, RawLease, RawList, RawNode,
    RawObject, RawPod, RawStatefulSet, RawVolume, identity_of_malformed, malformed,
};
use crate::outcome::{Replacement, ReplacementState as State};

/// Objects of one page. A page of whole pods of 11 KB is then about 5 MB, which bounds the memory of a run.
pub(super) const PAGE: usize = 500;
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
/// Each node's lease has the node's name.
const NODE_LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/";
const SERVER_LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?\
    labelSelector=apiserver.kubernetes.io%2Fidentity%3Dkube-apiserver";
/// What the Status column says of pods that live. A Terminating pod shows `Terminating`, or `Unknown` where its node
/// was given up, unless its phase is final: then it shows what it would show anyway, one of these or anything else.
const LIVING: &str = "Running Pending Completed Succeeded Failed Error OOMKilled Evicted ContainerStatusUnknown \
    CrashLoopBackOff ImagePullBackOff ErrImagePull CreateContainerConfigError CreateContainerError ContainerCreating PodInitializing SchedulingGated NotReady";
/// Selects the pods whose phase is final, which is any phase but these.
const FINISHED: &str =
    "status.phase%21%3DPending,status.phase%21%3DRunning,status.phase%21%3DUnknown";
/// The characters of a name that need no escape.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// A cheap look over all nodes: of the Ready ones, which may be thousands, only their number is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// The API server's clock; `None` where it did not say the time.
    pub now: Option<Timestamp>,
    pub nodes: usize,
    /// Those that do not say `Ready`, or say something that is not understood.
    pub not_ready: Vec<String>,
    /// A node that says `Ready`, is not cordoned, has no control-plane role, and is no leaf node by its name. A row shows
    /// neither the other marks nor the taints.
    pub ready: Option<String>,
}

/// A node as it was at some moment.
#[derive(Debug, Clone)]
pub struct NodeLook {
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
    /// Those that have no node yet.
    NoNode,
    /// Those whose phase is final, on any node.
    Finished,
}

impl PodsOf {
    /// What messages about a failure call them.
    pub fn what(&self) -> String {
        match self {
            Self::Node(name) => format!("pods of node {name}"),
            Self::NoNode => "pods without a node".to_owned(),
            Self::Finished => "finished pods".to_owned(),
        }
    }

    fn selector(&self) -> String {
        match self {
            Self::Node(name) => format!("spec.nodeName%3D{}", encode(name)),
            Self::NoNode => "spec.nodeName%3D".to_owned(),
            Self::Finished => FINISHED.to_owned(),
        }
    }
}

#[derive(Debug)]
pub struct Listed<T> {
    /// The objects that were kept.
    pub items: Vec<T>,
    /// Objects that could not be read, each with its cause.
    pub malformed: Vec<String>,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            malformed: Vec::new(),
        }
    }
}

impl<T> Listed<T> {
    /// The objects, if each could be read. One that could not may be any object.
    pub fn whole(self) -> Result<Vec<T>, Failure> {
        self.malformed
            .into_iter()
            .next()
            .map_or(Ok(self.items), |cause| Err(Failure::Unreadable(cause)))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table<'a> {
    #[serde(default)]
    metadata: ListMeta,
    column_definitions: Vec<Column>,
    #[serde(borrow)]
    rows: Option<Vec<Row<'a>>>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
}

/// A cell is parsed only where its column is asked for.
#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    cells: Vec<&'a RawValue>,
}

impl Cluster {
    /// All nodes, as the rows that `kubectl get nodes` prints: 0.3 MB where the objects are 18 MB. What is not
    /// plainly `Ready` has to be read whole, so a row that is misunderstood costs time, never safety.
    pub async fn scan(&self) -> Result<Scan, Failure> {
        let path = format!("/api/v1/nodes?includeObject=None&limit={ROWS}");
        self.pages(&path, Accept::Table, |answer, scan: &mut Scan| {
            // The first page's time counts, since no page is older.
            scan.now = scan.now.or(answer.date);
            answer.rows(["Name", "Status", "Roles"], |[name, status, roles]| {
                scan.nodes += 1;
                let mut words = status.split(',');
                let worker = || {
                    !roles
                        .split(',')
                        .any(|role| ["control-plane", "master"].contains(&role))
                };
                if words.next() != Some("Ready") || words.any(|word| word != "SchedulingDisabled") {
                    scan.not_ready.push(name);
                } else if scan.ready.is_none()
                    && status == "Ready"
                    && worker()
                    && !name.starts_with(KOSMOS_PREFIX)
                {
                    scan.ready = Some(name);
                }
            })
        })
        .await
    }

    /// Where pods may be Terminating, by the rows of all pods: 12.6 MB where the objects are 1,181 MB. A row that is not
    /// understood costs a look at its node's pods, so it cannot hide one.
    pub async fn places_of_terminating_pods(&self) -> Result<BTreeSet<PodsOf>, Failure> {
        let path = format!("/api/v1/pods?includeObject=None&limit={ROWS}");
        let places = self.pages(
            &path,
            Accept::Table,
            |answer, places: &mut BTreeSet<PodsOf>| {
                answer.rows(["Status", "Node"], |[status, node]| {
                    if LIVING.split(' ').any(|living| living == status)
                        || status.starts_with("Init:")
                    {
                        return;
                    }
                    places.insert(if node == "<none>" {
                        PodsOf::NoNode
                    } else {
                        PodsOf::Node(node)
                    });
                })
            },
        );
        let mut places = places.await?;
        // The row of a finished pod does not show that it is Terminating.
        places.insert(PodsOf::Finished);
        Ok(places)
    }

    /// `VolumeAttachments` by node. They have no field selector for it, but their rows name it.
    pub async fn attachments(&self) -> Result<BTreeMap<String, Vec<Attachment>>, Failure> {
        let path =
            format!("/apis/storage.k8s.io/v1/volumeattachments?includeObject=None&limit={ROWS}");
        let by_node = self.pages(
            &path,
            Accept::Table,
            |answer, by_node: &mut BTreeMap<_, Vec<_>>| {
                answer.rows(["Name", "PV", "Node"], |[name, volume, node]| {
                    let volume =
                        Some(volume).filter(|volume| !volume.is_empty() && volume != "<unset>");
                    by_node
                        .entry(node)
                        .or_default()
                        .push(Attachment { name, volume });
                })
            },
        );
        let mut by_node = by_node.await?;
        for attachments in by_node.values_mut() {
            attachments.sort();
        }
        Ok(by_node)
    }

    /// One node, whole, with its lease; `None` where it does not exist.
    pub async fn node(&self, name: &str) -> Result<Option<NodeLook>, Failure> {
        let at = Instant::now();
        let node_path = format!("/api/v1/nodes/{}", encode(name));
        let (answer, lease) = tokio::join!(
            self.get_any(&node_path, Accept::Object),
            self.find::<RawLease>(NODE_LEASES, name)
        );
        let Some(answer) = answer? else {
            return Ok(None);
        };
        let now = answer
            .date
            .ok_or_else(|| Failure::Unreadable("it carries no Date".to_owned()))?;
        let node = answer.parse_named::<RawNode>(name)?;
        let servers = if node.may_have_api_server() {
            self.api_servers().await
        } else {
            Ok(Vec::new())
        };
        let own = lease.map_err(|failure| Unread(failure.to_string()));
        let leases = NodeLeases {
            own,
            api_servers: servers.as_deref(),
        };
        let facts = node.into_facts(now, leases, &self.selectors);
        Ok(Some(NodeLook {
            facts: facts.map_err(Failure::Unreadable)?,
            now,
            at,
        }))
    }

    /// The leases of the API servers; none where they may not be listed: an account of an older installation lacks that right.
    async fn api_servers(&self) -> Result<Vec<RawLease>, Unread> {
        let leases = self.list(SERVER_LEASES, Accept::Object, Some).await;
        match leases.and_then(Listed::whole) {
            Err(failure) if failure.code() == Some(403) => Ok(Vec::new()),
            leases => leases.map_err(|failure| Unread(format!("those of API servers: {failure}"))),
        }
    }

    /// The Terminating ones of `pods`, and for each of the others why it is not, where that matters.
    pub async fn terminating_pods(
        &self,
        pods: &PodsOf,
    ) -> Result<(Listed<RawPod>, Vec<Unasked>), Failure> {
        let cached = if matches!(pods, PodsOf::Node(_)) {
            CACHED
        } else {
            ""
        };
        let path = format!(
            "/api/v1/pods?limit={PAGE}&fieldSelector={}{cached}",
            pods.selector()
        );
        let pages = self.pages(
            &path,
            Accept::Object,
            |answer, (listed, unasked): &mut (_, Vec<_>)| {
                let keep = |pod: RawPod| {
                    unasked.extend(pod.unasked());
                    pod.metadata.terminating().then(|| pod.lean())
                };
                answer.items(keep, listed)
            },
        );
        pages.await
    }

    /// The UIDs of all pods of `node`, as they are now. The cache is not asked: it may not know of a delete yet.
    pub async fn pod_uids(&self, node: &str) -> Result<Vec<Uid>, Failure> {
        let path = format!(
            "/api/v1/pods?limit={PAGE}&fieldSelector=spec.nodeName%3D{}",
            encode(node)
        );
        // Any pod could be the one that cannot be read, so no absence would be proved.
        self.list(&path, Accept::MetadataList, |pod: RawObject| {
            pod.metadata.uid
        })
        .await?
        .whole()
    }

    /// One pod; `None` where it does not exist.
    pub async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>, Failure> {
        self.find(
            &format!("/api/v1/namespaces/{}/pods/", encode(namespace)),
            name,
        )
        .await
    }

    /// The pods that may have taken the place of `lost`: the one of its name, or those of its controller where that gives
    /// each a new name. The cache may answer: this is asked again and again, and no write follows from it.
    pub async fn successors(&self, lost: &PodFacts) -> Result<Vec<RawPod>, Failure> {
        let Some((labels, controller)) = lost.siblings.as_deref().zip(lost.controller.as_ref())
        else {
            let path = format!(
                "/api/v1/namespaces/{}/pods/{}",
                encode(&lost.namespace),
                encode(&lost.name)
            );
            let namesake = self.get_any(&path, Accept::Look).await?;
            let namesake = namesake
                .map(|answer| answer.parse_named(&lost.name))
                .transpose()?;
            // Its controller may have been created again, under the same name.
            let another = |pod: &RawPod| {
                pod.metadata.uid.as_ref() != Some(&lost.uid)
                    && pod.summary().controller == lost.owner
            };
            return Ok(namesake.into_iter().filter(another).collect());
        };
        let (namespace, labels) = (encode(&lost.namespace), encode(labels));
        let path = format!(
            "/api/v1/namespaces/{namespace}/pods?limit={PAGE}&labelSelector={labels}{CACHED}"
        );
        let keep = |pod: RawPod| pod.metadata.controlled_by(&controller.uid).then_some(pod);
        Ok(self.list(&path, Accept::Look, keep).await?.items)
    }

    /// Why the controller of `lost`, which has at least `has` pods, has not made a replacement.
    pub async fn missing(&self, lost: &PodFacts, has: usize) -> Result<Replacement, Failure> {
        let Reference {
            api_version,
            kind,
            name,
            uid,
            ..
        } = Reference::controller(lost);
        if !["apps/v1", "batch/v1"].contains(&&*api_version) {
            let state = if lost.siblings.is_some() {
                State::Pending
            } else {
                State::Unknown
            };
            let cause = format!(
                "none was found; its {kind} was not asked, and may name new pods otherwise"
            );
            return Ok(Replacement::without_pod(state, cause));
        }
        // A StatefulSet that wants fewer pods does not want those of the highest ordinals.
        let ordinal = lost
            .name
            .rsplit('-')
            .next()
            .filter(|_| kind == "StatefulSet")
            .map(str::parse);
        let (namespace, plural) = (encode(&lost.namespace), kind.to_lowercase() + "s");
        let path = format!("/apis/{api_version}/namespaces/{namespace}/{plural}/");
        let found = self.find::<RawController>(&path, &name).await?;
        // A controller that was created again counts only where its pods keep their names.
        let found =
            found.filter(|found| lost.siblings.is_none() || found.metadata.uid == Some(uid));
        let gone = || Replacement::without_pod(State::None, "its controller no longer exists");
        Ok(found.map_or_else(gone, |it| {
            it.missing(ordinal.and_then(Result::ok).unwrap_or(has))
        }))
    }

    /// The value by which each namespace is opted out, where it is.
    pub async fn namespaces(&self) -> Result<Namespaces, Failure> {
        let path = format!("/api/v1/namespaces?limit={PAGE}");
        let listed = self.list(&path, Accept::MetadataList, |namespace: RawObject| {
            let opted_out = namespace.metadata.opted_out();
            namespace.metadata.name.map(|name| (name, opted_out))
        });
        // A malformed one is missing from the map, so that its pods' opt-out counts as unread.
        Ok(listed.await?.items.into_iter().collect())
    }

    /// A `StatefulSet`; `None` where it does not exist.
    pub async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<RawStatefulSet>, Failure> {
        self.find(
            &format!(
                "/apis/apps/v1/namespaces/{}/statefulsets/",
                encode(namespace)
            ),
            name,
        )
        .await
    }

    /// A claim and the volume it is bound to.
    pub async fn claim(&self, namespace: &str, name: &str) -> ClaimLook {
        let path = format!(
            "/api/v1/namespaces/{}/persistentvolumeclaims/",
            encode(namespace)
        );
        let claim = match self.find::<RawClaim>(&path, name).await {
            Ok(Some(claim)) => claim,
            Ok(None) => return ClaimState::Absent.into(),
            Err(failure) => return ClaimState::Unread(Unread(failure.to_string())).into(),
        };
        let volume = match claim.volume_name() {
            None => Ok(None),
            Some(volume) => {
                let found = self
                    .find::<RawVolume>("/api/v1/persistentvolumes/", volume)
                    .await;
                found.map_err(|failure| Unread(format!("its volume {volume}: {failure}")))
            }
        };
        claim.into_look(volume)
    }

    /// All claims with their volumes, by namespace and name. One that could not be read, or whose volume could not, is missing.
    pub async fn claims(&self) -> Result<BTreeMap<(String, String), ClaimLook>, Failure> {
        let path = format!("/api/v1/persistentvolumes?limit={PAGE}");
        let volumes = self.list(&path, Accept::Object, |volume: RawVolume| {
            Some((volume.metadata.name.clone()?, volume))
        });
        let volumes = RefCell::new(BTreeMap::from_iter(volumes.await?.items));
        let path = format!("/api/v1/persistentvolumeclaims?limit={PAGE}");
        let claims = self.list(&path, Accept::Object, |claim: RawClaim| {
            // A volume is one claim's: there is no second copy.
            let volume = match claim.volume_name() {
                None => None,
                Some(name) => Some(volumes.borrow_mut().remove(name)?),
            };
            Some((claim.metadata.identity()?, claim.into_look(Ok(volume))))
        });
        Ok(claims.await?.items.into_iter().collect())
    }

    /// The names of real nodes that the label selector selects: all of them, or two where there are more.
    pub async fn real_nodes(&self, selector: &str) -> Result<Vec<String>, Failure> {
        let path = format!(
            "/api/v1/nodes?limit={FEW}&labelSelector={}",
            encode(selector)
        );
        let pages = self.pages(
            &path,
            Accept::Object,
            |answer, found: &mut Listed<String>| {
                let real = |node: RawNode| {
                    node.metadata
                        .name
                        .clone()
                        .filter(|_| !node.is_leaf(&self.selectors))
                };
                let next = answer.items(real, found)?;
                Ok(next.filter(|_| found.items.len() < 2))
            },
        );
        let mut found = pages.await?;
        found.items.truncate(2);
        // A node that could not be read may be one of them.
        if found.items.len() < 2 {
            found.whole()
        } else {
            Ok(found.items)
        }
    }

    /// What every node counts as at `now`, and how many have which trait. All nodes are read, because rows do not show which are
    /// leaf nodes. One that cannot be read is a failure: what it counts as is not known. No pods are read, so that every node may
    /// have one that is Terminating.
    pub async fn standings(
        &self,
        now: Timestamp,
    ) -> Result<(BTreeMap<String, Standing>, Traits), Failure> {
        let path = format!("/api/v1/nodes?limit={PAGE}");
        let pages = self.pages(
            &path,
            Accept::Object,
            |answer, (listed, traits): &mut (_, Traits)| {
                let keep = |node: RawNode| {
                    let standing = node.standing(&self.selectors, now);
                    node.count_traits(standing, traits);
                    node.metadata.name.map(|name| (name, standing))
                };
                answer.items(keep, listed)
            },
        );
        let (listed, traits) = pages.await?;
        Ok((listed.whole()?.into_iter().collect(), traits))
    }

    /// All pods of `node`, Terminating or not. The cache may answer: no write follows from it.
    pub async fn pods_of(&self, node: &str) -> Result<Listed<RawPod>, Failure> {
        let path = format!(
            "/api/v1/pods?limit={PAGE}&fieldSelector=spec.nodeName%3D{}{CACHED}",
            encode(node)
        );
        self.list(&path, Accept::Object, Some).await
    }

    pub async fn summaries(&self, namespace: &str) -> Result<Listed<PodSummary>, Failure> {
        let path = format!("/api/v1/namespaces/{}/pods?limit={PAGE}", encode(namespace));
        self.list(&path, Accept::Object, |pod: RawPod| Some(pod.summary()))
            .await
    }

    /// The pods called `name`, in any namespace.
    pub async fn namesakes(&self, name: &str) -> Result<Listed<PodSummary>, Failure> {
        let name = encode(name);
        let path = format!("/api/v1/pods?limit={PAGE}&fieldSelector=metadata.name%3D{name}");
        self.list(&path, Accept::Object, |pod: RawPod| Some(pod.summary()))
            .await
    }

    /// The object `name` of `collection`; `None` where the API server says that there is none.
    async fn find<T: DeserializeOwned>(
        &self,
        collection: &str,
        name: &str,
    ) -> Result<Option<T>, Failure> {
        let answer = self
            .get_any(&format!("{collection}{}", encode(name)), Accept::Object)
            .await?;
        answer.map(|answer| answer.parse_named(name)).transpose()
    }

    /// The answer for `path`; `None` where the API server says that there is no such object.
    async fn get_any(&self, path: &str, accept: Accept) -> Result<Option<Answer>, Failure> {
        match self.get(path, accept).await {
            Err(failure) if failure.is(StatusKind::NotFound) => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// The items of a list of which `keep` makes something.
    pub(super) async fn list<T: DeserializeOwned, U>(
        &self,
        path: &str,
        accept: Accept,
        keep: impl Fn(T) -> Option<U>,
    ) -> Result<Listed<U>, Failure> {
        self.pages(path, accept, |answer, listed| answer.items(&keep, listed))
            .await
    }

    /// Gives `take` all pages of a list, one after the other; `take` returns the query for the next one. When a page's token has
    /// expired, the list is started again, once.
    async fn pages<S: Default>(
        &self,
        path: &str,
        accept: Accept,
        take: impl Fn(&Answer, &mut S) -> Result<Option<String>, Failure>,
    ) -> Result<S, Failure> {
        let (mut taken, mut next, mut restarted) = (S::default(), String::new(), false);
        loop {
            // A token names the version that it continues. A server whose cache is not ready answers with one.
            let path = if next.is_empty() {
                path
            } else {
                path.trim_end_matches(CACHED)
            };
            let answer = match self.get(&format!("{path}{next}"), accept).await {
                Err(failure)
                    if failure.code() == Some(EXPIRED) && !next.is_empty() && !restarted =>
                {
                    (taken, next, restarted) = (S::default(), String::new(), true);
                    continue;
                }
                answer => answer?,
            };
            match take(&answer, &mut taken)? {
                Some(token) => next = token,
                None => return Ok(taken),
            }
        }
    }
}

impl Answer {
    /// An object that has to be the one that was asked for: every field of our types is optional, so that anything
    /// would parse, and mean an object without volumes, affinity or marks.
    fn parse_named<T: DeserializeOwned>(&self, name: &str) -> Result<T, Failure> {
        if self.parse::<RawObject>()?.metadata.name.as_deref() != Some(name) {
            return Err(Failure::Unreadable(
                "it is not the object that was asked for".to_owned(),
            ));
        }
        self.parse()
    }

    /// Calls `each` with the cells of `columns`, row by row. Returns the query for the next page.
    fn rows<const N: usize>(
        &self,
        columns: [&str; N],
        mut each: impl FnMut([String; N]),
    ) -> Result<Option<String>, Failure> {
        let table = self.parse::<Table<'_>>()?;
        let mut at = [0; N];
        for (at, name) in at.iter_mut().zip(columns) {
            let found = table
                .column_definitions
                .iter()
                .position(|column| column.name == name);
            *at = found
                .ok_or_else(|| Failure::Unreadable(format!("the table has no column {name}")))?;
        }
        for row in table.rows.unwrap_or_default() {
            let mut picked = [const { String::new() }; N];
            for (picked, at) in picked.iter_mut().zip(at) {
                let cell = row
                    .cells
                    .get(at)
                    .and_then(|cell| serde_json::from_str(cell.get()).ok());
                *picked = cell.ok_or_else(|| {
                    Failure::Unreadable("a row of the table lacks a cell".to_owned())
                })?;
            }
            each(picked);
        }
        Ok(continuation(&table.metadata))
    }

    /// Adds to `listed` what `keep` makes of the items of a page. Returns the query for the next page.
    fn items<T: DeserializeOwned, U>(
        &self,
        mut keep: impl FnMut(T) -> Option<U>,
        listed: &mut Listed<U>,
    ) -> Result<Option<String>, Failure> {
        let list = self.parse::<RawList<'_>>()?;
        if !list.kind.ends_with("List") {
            return Err(Failure::Unreadable("it is not a list".to_owned()));
        }
        for item in list.items.unwrap_or_default() {
            match serde_json::from_str::<T>(item.get()) {
                Ok(object) => listed.items.extend(keep(object)),
                Err(error) => {
                    let (namespace, name) = identity_of_malformed(item.get());
                    let namespace = namespace
                        .map(|namespace| namespace + "/")
                        .unwrap_or_default();
                    let name = name.unwrap_or_else(|| "an object without a name".to_owned());
                    listed
                        .malformed
                        .push(format!("{namespace}{name}: {}", malformed(&error)));
                }
            }
        }
        Ok(continuation(&list.metadata))
    }
}

fn continuation(metadata: &ListMeta) -> Option<String> {
    let token = metadata.next.as_deref().filter(|token| !token.is_empty())?;
    Some(format!("&continue={}", encode(token)))
}

pub(super) fn encode(name: &str) -> String {
    utf8_percent_encode(name, PLAIN).to_string()
}
