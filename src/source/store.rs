//! What was read of a source so far, as facts, and what is supposed of it. Gathering asks here.
//!
//! A forecast supposes that some nodes have died: their kubelets have always been silent, and every
//! pod that Kubernetes would evict from them has always been stuck. Unread facts stay unread.

use std::{
    any::Any,
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Display,
    rc::Rc,
};

use jiff::Timestamp;
use tokio::sync::OnceCell;

use super::{Scan, Source, Standings, Wanted};
use crate::{
    cluster::{Failure, Listed, PodsOf},
    exit::{CouldNotRun, Result},
    facts::{
        Attachment, ClaimState, FoundClaim, Heard, Namespaces, NodeFacts, NodeRead, PodFacts,
        PodSummary, Read, ReadError, Ready, Stay, Traits, Unread,
    },
    kubernetes::{
        HolderPod, Holders, Kind, LeasesByNode, Meta, RawClaim, RawDriver, RawNamespace, RawNode,
        RawPod, RawStatefulSet, RawVolume, full_name,
    },
    selector::is_name,
};

/// What was read of a source, so that no answer that several ask for is read twice; and the nodes that
/// are supposed dead.
pub struct Store<'a, S> {
    source: &'a S,
    pub(super) wanted: Wanted<'a>,
    dead: BTreeSet<String>,
    /// The pods of the dead nodes as they are now, once they were listed.
    pods: RefCell<Vec<PodSummary>>,
    known: Rc<Known>,
}

/// What was read, for as many forecasts as ask for it.
#[derive(Default)]
struct Known {
    scan: OnceCell<Scan>,
    errors: RefCell<BTreeSet<ReadError>>,
    /// All other answers, each by its question.
    answers: RefCell<HashMap<String, Rc<dyn Any>>>,
}

/// The facts about a pod, or its name and what it lacks.
pub type Facts = Result<PodFacts, (String, String)>;

/// The pods of a namespace that use claims.
pub type Users = Rc<Vec<PodSummary>>;

/// The pods of one list.
#[derive(Default)]
pub struct Pods {
    /// The pods in matching namespaces that are Terminating, or are supposed to be.
    pub judged: Vec<Facts>,
    /// A summary of each active pod. It tells why Kubernetes has not evicted the pod.
    pub active: Vec<PodSummary>,
    /// Every pod, as a holder of Leases.
    pub holders: BTreeSet<HolderPod>,
    /// The last words of programs in Terminating pods.
    pub heard: Vec<Heard>,
    /// Every pod as it is now, if its node is supposed dead.
    all: Vec<PodSummary>,
    /// Whether there is, or may be, a pod that no `DaemonSet` made and that mirrors no static pod. A
    /// pod that could not be read may be any pod.
    pub occupied: bool,
    /// Why the list could not be read, if so.
    pub unread: Option<Unread>,
}

impl Pods {
    fn add(&mut self, pod: &RawPod, wanted: &Wanted<'_>, dead: bool) {
        let summary = pod.summary();
        self.holders.insert(pod.as_holder());
        self.occupied |= !matches!(summary.stays, Some(Stay::DaemonSet | Stay::Static));
        let namespace = &summary.namespace;
        let matches = namespace.is_empty() || wanted.namespaces.matches(namespace);
        if dead {
            self.all.push(summary.clone());
        }
        let mut judge = |facts| self.judged.extend(matches.then(|| named(pod, facts)));
        if dead && summary.evicted() {
            judge(pod.supposed_facts());
        } else if summary.terminating {
            judge(pod.facts());
            self.heard.extend(pod.heard());
        } else if summary.is_active() {
            self.active.push(summary);
        }
    }
}

/// Adds the name of `pod` to what it lacks.
pub fn named(pod: &RawPod, facts: Result<PodFacts, String>) -> Facts {
    let Meta {
        namespace, name, ..
    } = &pod.metadata;
    facts.map_err(|cause| (format!("pod {namespace}/{name}"), cause))
}

impl<'a, S: Source> Store<'a, S> {
    /// Returns a store into which nothing was read yet.
    pub fn new(source: &'a S, wanted: Wanted<'a>) -> Self {
        Self {
            source,
            wanted,
            dead: BTreeSet::new(),
            pods: RefCell::default(),
            known: Rc::default(),
        }
    }

    /// Returns the store as it would be if the nodes `dead` had died. Only their pods are judged.
    /// What is read is known to both.
    #[must_use]
    pub fn without(&self, dead: BTreeSet<String>) -> Self {
        Self {
            dead,
            pods: RefCell::default(),
            known: Rc::clone(&self.known),
            ..*self
        }
    }

    pub(super) fn supposes(&self) -> bool {
        !self.dead.is_empty()
    }

    /// Returns the pods of the dead nodes as they are now.
    pub fn take_dead_pods(&self) -> Vec<PodSummary> {
        self.pods.take()
    }

    /// Notes what could not be read, and why.
    pub(super) fn note(&self, what: impl Display, cause: impl Display) -> Unread {
        let (what, cause) = (what.to_string(), cause.to_string());
        let unread = Unread(cause.clone());
        let error = ReadError { what, cause };
        self.known.errors.borrow_mut().insert(error);
        unread
    }

    /// Notes what the source could not read, unless the source has named it.
    fn failed(&self, what: impl Display, cause: impl Display) -> Unread {
        if S::IS_FILE {
            return Unread(cause.to_string());
        }
        self.note(what, cause)
    }

    /// Lists everything that could not be read, in order.
    pub fn errors(&self) -> Vec<ReadError> {
        self.known.errors.borrow().iter().cloned().collect()
    }

    /// Answers a question that was answered already, or by `ask`. A task that asks while another is
    /// asking the same waits for that answer.
    pub(super) async fn once<T: Clone + 'static>(
        &self,
        question: impl Into<String>,
        ask: impl Future<Output = T>,
    ) -> T {
        let answers = || self.known.answers.borrow_mut();
        let answer = answers()
            .entry(question.into())
            .or_insert_with(|| Rc::new(OnceCell::<T>::new()))
            .clone();
        match answer.downcast::<OnceCell<T>>() {
            Ok(answer) => answer.get_or_init(|| ask).await.clone(),
            Err(_) => ask.await,
        }
    }

    /// Returns what was answered to a question, if anything was.
    fn answered<T: Clone + 'static>(&self, question: &str) -> Option<T> {
        let answers = self.known.answers.borrow();
        let answer = answers.get(question)?.downcast_ref::<OnceCell<T>>()?;
        answer.get().cloned()
    }

    /// Returns what the cheapest reading of all nodes tells.
    pub async fn scan(&self) -> Result<Scan> {
        let scan = || self.source.scan(&self.wanted);
        let mut scan = self.known.scan.get_or_try_init(scan).await?.clone();
        let errors = std::mem::take(&mut scan.facts.errors);
        self.known.errors.borrow_mut().extend(errors);
        if self.supposes() {
            scan.not_ready = self.dead.iter().cloned().collect();
            scan.pods.clear();
        }
        Ok(scan)
    }

    /// Reads one whole node with its own lease.
    pub(super) async fn node(&self, name: &str) -> NodeRead {
        let what = format!("node {name}");
        let objects = match self.source.node(name).await {
            Ok(Some(objects)) => objects,
            Ok(None) => return NodeRead::Gone,
            Err(failure) => return NodeRead::Unread(self.failed(what, failure)),
        };
        if let Err(Unread(cause)) = &objects.lease {
            self.failed(format_args!("lease of {what}"), cause);
        }
        match objects.into_facts(&self.wanted.policy.node_selectors) {
            Ok(mut node) => {
                if self.dead.contains(name) {
                    die(&mut node);
                }
                NodeRead::Known(node)
            }
            Err(cause) if S::IS_FILE => NodeRead::Unread(self.note(format!("Node {name}"), cause)),
            Err(cause) => NodeRead::Unread(self.note(what, Failure::Unreadable(cause))),
        }
    }

    /// Reads the other Leases that name the nodes of `holders` or their pods, by node. Reports too
    /// whether this account may not list them, which is told in `unseen`.
    pub(super) async fn leases(
        &self,
        holders: &Holders,
        unseen: &mut Vec<String>,
    ) -> (LeasesByNode, bool) {
        let read = match self.source.leases(holders).await {
            Ok(Some(leases)) => leases,
            Ok(None) => {
                unseen.push(
                    "This account may not list Leases: whether something except a kubelet on a NotReady node still renews one is not seen, so no grace period is cut short."
                        .to_owned(),
                );
                return (BTreeMap::new(), true);
            }
            Err(failure) => {
                let unread = self.failed("Leases", failure);
                let nodes = holders.nodes().into_iter();
                nodes.map(|node| (node, Err(unread.clone()))).collect()
            }
        };
        (read, false)
    }

    /// Reads all objects of a kind. Fails if any of them cannot be read, because that one may be the
    /// one that matters.
    async fn all<T: Kind, A: Clone + Default + 'static>(
        &self,
        what: &str,
        add: impl Fn(&mut A, T),
    ) -> Read<A> {
        self.once(what, async {
            let listed = self.source.list(add).await;
            let listed = listed.and_then(|listed| listed.ok_or_else(not_saved::<T>));
            let whole = listed.and_then(|listed| match listed.malformed.first() {
                Some(cause) if S::IS_FILE => Err(Failure::Saved(cause.clone())),
                _ => listed.whole(),
            });
            whole.map_err(|failure| self.failed(what, failure))
        })
        .await
    }

    /// Names the CSI drivers that attach nothing.
    pub(super) async fn detached_drivers(&self) -> Read<BTreeSet<String>> {
        let add_driver = |names: &mut BTreeSet<_>, driver: RawDriver| {
            if !driver.attaches() {
                names.insert(driver.metadata.name);
            }
        };
        self.all("CSIDrivers", add_driver).await
    }

    /// Returns every node's role in the breaker's count, as if each node were occupied, and counts
    /// the traits of the nodes. All nodes are read whole, because a row does not show which are
    /// leaf nodes.
    pub async fn standings(&self, now: Timestamp) -> Read<(Standings, Traits)> {
        let add_node = |(standings, traits): &mut (Standings, Traits), node: RawNode| {
            let standing = node.standing(&self.wanted.policy.node_selectors, now);
            node.count_traits(&standing, traits);
            standings.insert(node.metadata.name, standing);
        };
        let counted = self.all("all nodes, for the breaker", add_node);
        let (mut standings, traits) = counted.await?;
        for name in &self.dead {
            if let Some(standing) = standings.get_mut(name) {
                // The node has only just died, so it is not one that was put away on purpose.
                (standing.ready, standing.since) = (false, None);
            }
        }
        Ok((standings, traits))
    }

    /// Reads a list of pods.
    pub(super) async fn pods(&self, list: &PodsOf) -> Result<Pods> {
        let dead = matches!(list, PodsOf::Node(name) if self.dead.contains(name));
        let add = |pods: &mut Pods, pod: &RawPod| pods.add(pod, &self.wanted, dead);
        match self.source.pods(list, add).await {
            Ok(listed) => {
                let (mut pods, whole) = self.read_of(list, listed);
                self.pods.borrow_mut().append(&mut pods.all);
                pods.occupied |= !whole && !dead;
                Ok(pods)
            }
            Err(failure) if dead || failure.forbids() => {
                Err(self.source.could_not("list pods", failure))
            }
            Err(failure) => Ok(Pods {
                occupied: true,
                unread: Some(self.failed(list.described(), failure)),
                ..Pods::default()
            }),
        }
    }

    /// Returns the items of a list of pods, and whether all of them could be read. Each that could
    /// not is noted.
    fn read_of<T>(&self, list: &PodsOf, listed: Listed<T>) -> (T, bool) {
        for cause in &listed.malformed {
            self.failed(list.described(), cause);
        }
        (listed.items, listed.malformed.is_empty())
    }

    /// Reports whether a node that lives is occupied.
    pub(super) async fn is_occupied(&self, node: &str) -> Result<bool> {
        let list = PodsOf::Node(node.to_owned());
        let known = self.once(list.described(), async {
            let pods = self.pods(&list).await.map_err(|error| error.to_string())?;
            Ok(pods.occupied)
        });
        known.await.map_err(CouldNotRun::Source)
    }

    /// Summarizes the pods of a list that could be read, and reports whether all of them could.
    pub async fn summaries(&self, list: &PodsOf) -> Read<(Vec<PodSummary>, bool)> {
        let add_summary = |all: &mut Vec<_>, pod: &RawPod| all.push(pod.summary());
        let listed = self.source.pods(list, add_summary).await;
        let listed = listed.map_err(|failure| self.failed(list.described(), failure))?;
        Ok(self.read_of(list, listed))
    }

    /// Returns the pods of a namespace that use claims.
    pub(super) async fn users(&self, namespace: &str) -> Read<Users> {
        let users = self.once(users_of(namespace), async {
            let list = PodsOf::Namespace(namespace.to_owned());
            let (mut users, whole) = self.summaries(&list).await?;
            if !whole {
                // A pod that could not be read may use any claim.
                return Err(Unread("not all of them are readable".to_owned()));
            }
            users.retain(|user| !user.claims.is_empty());
            Ok(Rc::new(users))
        });
        users.await.map(|users| self.supposed(users))
    }

    /// Returns the pods that use claims, if they were listed.
    pub(super) fn listed_users(&self, namespace: &str) -> Option<Read<Users>> {
        let users = self.answered::<Read<Users>>(&users_of(namespace))?;
        Some(users.map(|users| self.supposed(users)))
    }

    /// Marks the pods that Kubernetes evicts from dead nodes as Terminating: they keep no claim.
    fn supposed(&self, users: Users) -> Users {
        let goes = |pod: &PodSummary| {
            let mut dead = self.dead.iter();
            pod.evicted() && dead.any(|dead| pod.node.as_ref() == Some(dead))
        };
        if !users.iter().any(goes) {
            return users;
        }
        let users = users.iter().map(|pod| PodSummary {
            terminating: goes(pod) || pod.terminating,
            ..pod.clone()
        });
        Rc::new(users.collect())
    }

    /// Reads a pod by its name; `None` if it does not exist.
    pub async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>> {
        let pod = self.source.find(namespace, name).await;
        let what = format!("read pod {namespace}/{name}");
        pod.map_err(|failure| self.source.could_not(&what, failure))
    }

    /// Reads all namespaces; `None` if the source has none at all, such as a file saved without
    /// them. A malformed namespace is left out, so the opt-out of its pods counts as unread.
    pub(super) async fn namespaces(&self) -> Option<Read<Namespaces>> {
        self.once("namespaces", async {
            let listed = self.source.list(RawNamespace::add_to).await.transpose()?;
            let listed = listed.map(|listed| listed.items);
            Some(listed.map_err(|failure| self.failed("namespaces", failure)))
        })
        .await
    }

    /// Reads all `VolumeAttachments`, by the node they name; those of dead nodes, if any are
    /// supposed.
    pub(super) async fn attachments(&self) -> BTreeMap<String, Vec<Attachment>> {
        let all = self.once("VolumeAttachments", async {
            let attachments = self.source.attachments().await;
            attachments.unwrap_or_else(|failure| {
                self.failed("VolumeAttachments", failure);
                BTreeMap::new()
            })
        });
        let mut all = all.await;
        all.retain(|node, _| !self.supposes() || self.dead.contains(node));
        all
    }

    /// Reads a claim with its volume.
    pub(super) async fn claim(&self, namespace: &str, name: &str) -> FoundClaim {
        let what = named_claim(namespace, name);
        self.once(what.clone(), async {
            if !is_name(name) {
                let why = "no claim can have this name".to_owned();
                return ClaimState::Unread(Unread(why)).into();
            }
            let claim = match self.source.find::<RawClaim>(namespace, name).await {
                Ok(Some(claim)) => claim,
                Ok(None) => return ClaimState::Absent.into(),
                Err(failure) => return ClaimState::Unread(self.failed(what, failure)).into(),
            };
            let volume = match claim.volume_name() {
                None => Ok(None),
                Some(volume) => {
                    let found = self.source.find::<RawVolume>("", volume).await;
                    found.map_err(|failure| match failure {
                        Failure::Saved(cause) => Unread(cause),
                        failure => Unread(format!("its volume {volume}: {failure}")),
                    })
                }
            };
            let found = claim.into_found(volume);
            if let ClaimState::Unread(Unread(cause)) = &found.state {
                self.failed(what, cause);
            }
            found
        })
        .await
    }

    pub(super) fn knows_claim(&self, namespace: &str, name: &str) -> bool {
        let question = named_claim(namespace, name);
        self.answered::<FoundClaim>(&question).is_some()
    }

    /// Keeps what is known of a claim, so that it is not read.
    pub(super) fn keep_claim(&self, namespace: &str, name: &str, found: FoundClaim) {
        let (question, answer) = (named_claim(namespace, name), OnceCell::from(found));
        let mut answers = self.known.answers.borrow_mut();
        answers.entry(question).or_insert_with(|| Rc::new(answer));
    }

    /// Reads all claims with their volumes, if that is cheaper than reading each. A claim that could
    /// not be listed or read is left out here, and read when it is needed.
    pub async fn read_claims(&self) {
        if S::IS_FILE {
            return;
        }
        let add_volume = |volumes: &mut BTreeMap<_, _>, mut volume: RawVolume| {
            volume.metadata.drop_unused();
            volumes.insert(volume.metadata.name.clone(), volume);
        };
        let Ok(Some(volumes)) = self.source.list(add_volume).await else {
            return;
        };
        let volumes = RefCell::new(volumes.items);
        let add_claim = |found: &mut Vec<_>, claim: RawClaim| {
            // A volume belongs to one claim, so it is moved, not copied.
            let name = claim.volume_name();
            let volume = name.and_then(|name| volumes.borrow_mut().remove(name));
            if name.is_none() || volume.is_some() {
                let its = &claim.metadata;
                let key = (its.namespace.clone(), its.name.clone());
                found.push((key, claim.into_found(Ok(volume))));
            }
        };
        let claims = self.source.list(add_claim).await.ok().flatten();
        for ((namespace, name), claim) in claims.into_iter().flat_map(|claims| claims.items) {
            self.keep_claim(&namespace, &name, claim);
        }
    }

    /// Names the real nodes that a label selector selects, or two of them.
    pub(super) async fn real_nodes(&self, selector: &str) -> Read<Vec<String>> {
        let what = format!("nodes that a volume allows ({selector})");
        self.once(what.clone(), async {
            let nodes = self
                .source
                .real_nodes(selector, &self.wanted.policy.node_selectors)
                .await;
            nodes.map_err(|failure| match failure.code() {
                // The API server refuses this selector whenever it is asked, so no reading has
                // failed.
                Some(400) => failure.into(),
                _ => self.failed(what, failure),
            })
        })
        .await
    }

    /// Reads a `StatefulSet`; `None` if it does not exist. A failure is noted as an error of the
    /// run only if the set is `needed` for a verdict.
    pub(super) async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
        needed: bool,
    ) -> Read<Option<RawStatefulSet>> {
        let what = format!("StatefulSet {}", full_name(namespace, name, ""));
        let found = self.once(what.clone(), async {
            let mut found = self.source.find::<RawStatefulSet>(namespace, name).await;
            if let Ok(Some(set)) = &mut found {
                set.metadata.drop_unused();
            }
            found
        });
        found.await.map_err(|failure| {
            if !needed {
                return failure.into();
            }
            // Only giving up claims needs StatefulSets, so the account may lack just this right.
            let lacks = if failure.forbids() {
                "; cronjob/components/answers grants that right"
            } else {
                ""
            };
            self.failed(what, format_args!("{failure}{lacks}"))
        })
    }
}

fn users_of(namespace: &str) -> String {
    format!("users of claims in {namespace}")
}

fn named_claim(namespace: &str, name: &str) -> String {
    format!("claim {namespace}/{name}")
}

/// Changes a node's facts to those of a node that has always been silent.
fn die(node: &mut NodeFacts) {
    // A Ready node is heard until it dies, and that is after any fencing mark on it was set.
    let heard = node.last_heard().map(|heard| heard.at);
    let refuted = node.ready == Ready::True && heard.is_some();
    node.fenced
        .retain(|mark| mark.stands(heard) && !(refuted && mark.set_by.is_some()));
    // An answer counts for the failure that it was given for, not for a supposed one.
    node.powered_off = None;
    node.ready = Ready::Unknown;
    node.ready_reason = Some("NodeStatusUnknown".to_owned());
    (node.ready_since, node.tainted_since) = (Some(Timestamp::MIN), None);
    // That its lease was ever renewed still tells that a grace period will be cut short.
    (node.heard, node.named_by) = (Vec::new(), Ok(BTreeSet::new()));
}

/// Returns why a file without any object of a kind does not show that there is none.
pub(super) fn not_saved<T: Kind>() -> Failure {
    let [_, plural] = T::API;
    Failure::Saved(format!(
        "the file has no {plural}: they were not saved, or there are none"
    ))
}
