//! Runs remember for a week, in one `ConfigMap`, the nodes whose pods they reaped.
//!
//! Others may write to the `ConfigMap`, so its texts are checked when they are read. Nothing here causes or permits a
//! delete.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Formatter},
};

use itertools::{Either, Itertools as _};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    codes::codes,
    facts::{Copies, NodeFacts, REPLACED_EARLY, Ready, ResourceVersion, Uid},
    outcome::Trace,
    selector::is_name,
    words::in_turn,
};

/// The name of the `ConfigMap`.
pub const CONFIG_MAP: &str = "pod-reaper-history";
/// Its key with the text of the last run that deleted something. All other keys are UIDs of nodes.
pub const LAST_REPORT: &str = "last-report";
const MAX_REPORT_BYTES: usize = 100_000;
/// The most bytes of all keys and values; Kubernetes accepts twice as many.
const MAX_BYTES: usize = 512 << 10;
/// The most nodes that are noted, and that are looked at.
pub const MAX_NODES: usize = 100;
const MAX_PODS: usize = 50;
/// The most bytes of a value that is read: [`MAX_PODS`] pods with the longest names have fewer.
const MAX_BYTES_READ: usize = 64 << 10;
/// How long a node is remembered after its last reap.
const KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);
/// A newer version may mean something else by the same fields.
const VERSION: u8 = 1;

/// What is noted about nodes, by their UIDs.
pub type Notes = BTreeMap<Uid, Noted>;

/// The notes as they were read or written, with the version of the `ConfigMap` then.
#[derive(Debug, Clone, Default)]
pub struct Notebook {
    pub notes: Notes,
    pub version: ResourceVersion,
}

/// Declares types of the `ConfigMap` and of the JSON output.
macro_rules! remembered {
    ($($(#[$about:meta])* pub struct $name:ident $fields:tt)*) => {$(
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(rename_all = "camelCase")]
        $(#[$about])*
        pub struct $name $fields
    )*};
}

remembered! {
    /// The value of a node's key.
    #[derive(Default)]
    pub struct Noted {
        /// Version of this form.
        pub version: u8,
        /// The node's name.
        pub node: String,
        /// The boot ID of its machine when its pods were reaped; empty if that tells nothing, as on
        /// machines that share one.
        #[serde(rename = "bootID")]
        pub boot_id: String,
        /// The ID of its installed system then; empty if that is not known.
        #[serde(rename = "machineID", default)]
        pub machine_id: String,
        /// The UUID of its hardware or virtual machine then; empty if that is not known.
        #[serde(rename = "systemUUID", default)]
        pub system_uuid: String,
        /// When the first pod was reaped.
        pub first_reap: Timestamp,
        /// When the last pod was reaped.
        pub last_reap: Timestamp,
        /// How often runs have noted the node, so that a run sees that another one did so in the same second.
        #[serde(default)]
        pub times: u64,
        /// The reaped pods, those with a volume first. If there are none, and no `more`, a run ended
        /// before it could note which it had deleted.
        pub pods: Vec<Reaped>,
        /// The number of further pods.
        pub more: usize,
        /// The node's return, once a run has told it; null before.
        pub told: Option<Return>,
        /// When a run last saw the out-of-service taint on the node; null if none did, or if the node was then seen Ready
        /// without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub tainted: Option<Timestamp>,
        /// Runs only saw the taint, and reaped no pod: the other times are those of the taint.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub only_tainted: bool,
    }

    /// A reaped pod.
    pub struct Reaped {
        /// Its namespace.
        pub namespace: String,
        /// Its name.
        pub name: String,
        /// The kind of its owner; null if it had none.
        pub owner_kind: Option<String>,
        /// A volume of the pod was attached to the node.
        pub attached: bool,
        /// Nothing attaches a volume of the pod, such as a share: a second machine can write to it from the delete on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub shared: bool,
        /// When it was reaped.
        pub at: Timestamp,
        /// Whether it is gone, or only may be.
        #[serde(default)]
        pub trace: Trace,
    }

    /// What became of a node.
    pub struct Return {
        /// Whether it is back.
        pub state: NodeState,
        /// Since when it has been Ready, by its own clock; null if it is not, or if it has no such time.
        pub ready_since: Option<Timestamp>,
    }
}

impl fmt::Display for Reaped {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Reaped {
    /// Reports whether two machines can write to a volume of the pod.
    pub fn moves_a_volume(&self) -> bool {
        self.attached || self.shared
    }

    /// Reports whether its owner is of a kind that replaced it at the eviction, to judge by the name of the kind.
    pub fn is_replaced_early(&self) -> bool {
        REPLACED_EARLY
            .iter()
            .any(|(kind, _)| self.owner_kind.as_deref() == Some(*kind))
    }
}

codes! {
    /// What became of a node whose pods were reaped.
    #[derive(Deserialize)]
    pub enum NodeState {
        /// It is not Ready.
        Down = "down",
        /// It could not be read.
        Unread = "unread",
        /// Its Node object is gone.
        Gone = "gone",
        /// Another machine has its name.
        AnotherMachine = "another-machine",
        /// It is Ready, and its machine was not rebooted in between.
        BackSameBoot = "back-same-boot",
        /// It is Ready, and its machine was rebooted in between.
        BackRebooted = "back-rebooted",
        /// It is Ready, and its boot ID tells nothing.
        Unknown = "unknown",
    }
}

impl NodeState {
    /// Reports whether nothing shows that the node came back.
    pub fn may_be_down(self) -> bool {
        matches!(self, Self::Down | Self::Unread | Self::Gone)
    }
}

/// What earlier runs did, as far as it could be read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct History {
    /// The nodes whose pods were reaped in the last 7 days, the last reap first.
    pub nodes: Vec<RememberedNode>,
    /// What could not be read or noted, as a sentence; null if nothing failed.
    pub unread: Option<String>,
    /// The nodes of which it is not known whether pods were reaped there.
    #[serde(skip)]
    pub not_known: NotKnown,
    /// The nodes on which a run has seen the out-of-service taint, as they are now; none that could not be read, and
    /// `None` for one that is gone.
    #[serde(skip)]
    pub tainted: BTreeMap<Uid, Option<NodeFacts>>,
}

/// The nodes of which it is not known what earlier runs did.
#[derive(Debug, Clone, PartialEq)]
pub enum NotKnown {
    All,
    Of(BTreeSet<Uid>),
}

impl Default for NotKnown {
    fn default() -> Self {
        Self::Of(BTreeSet::new())
    }
}

impl History {
    /// Reports whether it is known what earlier runs did to a node.
    pub fn knows(&self, node: &Uid) -> bool {
        match &self.not_known {
            NotKnown::All => false,
            NotKnown::Of(nodes) => !nodes.contains(node),
        }
    }

    /// Lists the nodes whose return needs you.
    pub fn needing_you(&self) -> impl Iterator<Item = &RememberedNode> {
        self.nodes.iter().filter(|node| node.needs_you())
    }
}

/// A node whose pods were reaped.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RememberedNode {
    /// Its UID.
    #[cfg_attr(test, schemars(with = "String"))]
    pub uid: Uid,
    /// What was noted about it.
    #[serde(flatten)]
    pub noted: Noted,
    /// What became of it.
    #[serde(flatten)]
    pub now: Return,
    /// Why the node could not be read, as a phrase; null if it was.
    pub unread: Option<String>,
    /// The `StatefulSets` of the noted pods, while the node is down.
    pub sets: Vec<RememberedSet>,
}

/// A `StatefulSet` whose pods were reaped.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RememberedSet {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How many of its pods are Ready, and how many it wants; null if that is not known.
    pub copies: Option<Copies>,
    /// The volumes of the reaped pods, if not all of its pods are Ready.
    #[serde(skip)]
    pub volumes: Vec<String>,
}

impl RememberedSet {
    /// Reports whether as many of its pods are Ready as it wants.
    pub fn is_back(&self) -> bool {
        self.copies.is_some_and(|it| it.ready >= it.wanted)
    }
}

impl fmt::Display for RememberedSet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} ", self.namespace, self.name)?;
        match self.copies {
            Some(copies) => write!(f, "{copies}"),
            None => f.write_str("not known"),
        }
    }
}

impl RememberedNode {
    /// Reports whether the reaped pods may have run alongside their replacements, and no run has told
    /// it yet.
    pub fn needs_you(&self) -> bool {
        self.may_have_run_twice() && self.noted.told.is_none()
    }

    /// Reports whether the reaped pods may have run alongside their replacements.
    pub fn may_have_run_twice(&self) -> bool {
        [NodeState::BackSameBoot, NodeState::AnotherMachine].contains(&self.now.state)
    }

    /// Returns the node's return, if this run is the first to tell it.
    pub fn first_told(&self) -> Option<&Return> {
        let is_back = !self.now.state.may_be_down();
        (is_back && self.noted.told.is_none()).then_some(&self.now)
    }
}

impl Noted {
    fn new(node: &NodeFacts, at: Timestamp) -> Self {
        let word = |id: &Option<String>| id.clone().filter(|id| is_word(id)).unwrap_or_default();
        Self {
            version: VERSION,
            node: node.name.clone(),
            boot_id: word(&node.boot_id),
            machine_id: word(&node.machine_id),
            system_uuid: word(&node.system_uuid),
            first_reap: at,
            last_reap: at,
            ..Self::default()
        }
    }

    /// Reports whether the node is still remembered at `now`.
    pub fn is_kept(&self, now: Timestamp) -> bool {
        self.tainted
            .max(Some(self.last_reap))
            .is_some_and(|last| now.duration_since(last) < KEPT)
    }

    /// Moves times that are later than `now`, by which nothing would ever be forgotten, to `now`.
    pub fn no_later_than(&mut self, now: Timestamp) {
        self.pods
            .iter_mut()
            .map(|pod| &mut pod.at)
            .chain([&mut self.first_reap, &mut self.last_reap])
            .chain(&mut self.tainted)
            .for_each(|time| *time = now.min(*time));
    }

    /// Returns what became of the node, by the node that has its name now.
    pub fn state_of(&self, uid: &Uid, node: &NodeFacts) -> NodeState {
        let differs = |noted: &String, now: &Option<String>| {
            !noted.is_empty() && now.as_ref().is_some_and(|now| now != noted)
        };
        let is_same_boot = node.boot_id.as_ref() == Some(&self.boot_id);
        if !is_same_boot
            && (differs(&self.machine_id, &node.machine_id)
                || differs(&self.system_uuid, &node.system_uuid))
        {
            return NodeState::AnotherMachine;
        }
        // A node that registered anew may be another machine, unless it was noted which one it was.
        let is_noted = *uid == node.uid || !self.machine_id.is_empty();
        match node.boot_id {
            _ if node.ready != Ready::True => NodeState::Down,
            _ if is_same_boot => NodeState::BackSameBoot,
            Some(_) if is_noted && !self.boot_id.is_empty() => NodeState::BackRebooted,
            _ => NodeState::Unknown,
        }
    }

    /// Notes `pods`, of which another run may have noted some. Those with a volume are kept first, because two machines
    /// may have written to it.
    pub fn add(&mut self, pods: Vec<Reaped>) {
        self.pods.extend(pods);
        let name = |pod: &Reaped| (pod.namespace.clone(), pod.name.clone());
        self.pods.sort_by_cached_key(|pod| (name(pod), pod.at));
        self.pods.dedup_by(|later, first| {
            let is_same = name(later) == name(first);
            if is_same {
                first.attached |= later.attached;
                first.shared |= later.shared;
                if later.trace == Trace::Gone {
                    first.trace = Trace::Gone;
                }
            }
            is_same
        });
        self.pods.sort_by_key(|pod| (!pod.moves_a_volume(), pod.at));
        let pods = self.pods.iter().collect();
        let mut in_turn = in_turn(pods, MAX_PODS, |pod| Some(&pod.namespace));
        in_turn.sort_by_key(|pod| !pod.moves_a_volume());
        self.pods = in_turn.into_iter().cloned().collect();
        self.drop_pods(MAX_PODS);
    }

    fn drop_pods(&mut self, most: usize) {
        let over = self.pods.len().saturating_sub(most);
        self.more = self.more.saturating_add(over);
        self.pods.truncate(most);
    }

    fn text(&self) -> String {
        json!(self).to_string()
    }

    /// Reads the value of the key `uid`. Its names are those of objects, so that they do no harm in a
    /// report or a request.
    fn parse(uid: &str, text: &str) -> Result<Self, &'static str> {
        if text.len() > MAX_BYTES_READ {
            return Err("it is too large");
        }
        let is_ours = |noted: &Self| {
            let pods = || noted.pods.iter();
            let mut names = pods()
                .flat_map(|pod| [&pod.namespace, &pod.name])
                .chain([&noted.node])
                .map(String::as_str)
                .chain([uid]);
            let mut words = pods().filter_map(|pod| pod.owner_kind.as_ref()).chain([
                &noted.boot_id,
                &noted.machine_id,
                &noted.system_uuid,
            ]);
            noted.version == VERSION && names.all(is_name) && words.all(|word| is_word(word))
        };
        serde_json::from_str(text)
            .ok()
            .filter(is_ours)
            .ok_or("it is malformed, or of a newer version")
    }
}

/// Reports whether a kind or a boot ID can be noted. The API server checks neither.
pub fn is_word(text: &str) -> bool {
    text.len() <= MAX_WORD_BYTES
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
}

/// Kubernetes' own kinds, and UUIDs, are shorter.
const MAX_WORD_BYTES: usize = 63;

/// Returns the notes alone, in our own words: others may write to the `ConfigMap`. What is malformed stays malformed.
pub fn shared(data: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let (notes, malformed) = parse(data);
    notes
        .iter()
        .filter_map(|(uid, noted)| Some((uid, serde_json::to_string(noted).ok()?)))
        .chain(malformed.keys().map(|uid| (uid, String::new())))
        .map(|(uid, text)| (uid.to_string(), text))
        .collect()
}

/// Reads the values of the `ConfigMap`. Returns also why entries could not be read.
pub fn parse(data: &BTreeMap<String, String>) -> (Notes, BTreeMap<Uid, &'static str>) {
    data.iter()
        .filter(|(key, _)| *key != LAST_REPORT)
        .partition_map(|(key, text)| {
            let uid = Uid::from(key.clone());
            match Noted::parse(key, text) {
                Ok(noted) => Either::Left((uid, noted)),
                Err(cause) => Either::Right((uid, cause)),
            }
        })
}

/// Notes that pods of `node` are about to be reaped. A node that was back since the last reap, or whose
/// machine was rebooted, is noted anew. One that registered anew and was not rebooted keeps its note. Returns its note.
pub fn begin<'a>(notes: &'a mut Notes, node: &NodeFacts, at: Timestamp) -> &'a mut Noted {
    let fresh = Noted::new(node, at);
    let is_it = |noted: &Noted| noted.node == fresh.node && noted.boot_id == fresh.boot_id;
    if !notes.contains_key(&node.uid)
        && !fresh.boot_id.is_empty()
        && let Some((uid, noted)) = notes.iter().find(|(_, noted)| is_it(noted))
    {
        let (before, noted) = (uid.clone(), noted.clone());
        notes.remove(&before);
        notes.insert(node.uid.clone(), noted);
    }
    let known = notes
        .entry(node.uid.clone())
        .or_insert_with(|| fresh.clone());
    let tells_nothing = known.boot_id.is_empty() || fresh.boot_id.is_empty();
    let is_new = known.told.is_some() || known.only_tainted;
    if is_new || !tells_nothing && known.boot_id != fresh.boot_id {
        let tainted = known.tainted;
        *known = Noted { tainted, ..fresh };
    } else {
        known.last_reap = at;
        known.machine_id = fresh.machine_id;
        known.system_uuid = fresh.system_uuid;
        if tells_nothing {
            known.boot_id.clear();
        }
    }
    known.times = known.times.saturating_add(1);
    known
}

/// Notes that a NotReady node has the out-of-service taint.
pub fn note_taint(notes: &mut Notes, node: &NodeFacts, at: Timestamp) {
    notes
        .entry(node.uid.clone())
        .or_insert_with(|| Noted {
            only_tainted: true,
            ..Noted::new(node, at)
        })
        .tainted = Some(at);
}

/// Forgets the out-of-service taint of a node that is Ready without it, or gone.
pub fn forget_taint(notes: &mut Notes, node: &Uid) {
    if notes.get(node).is_some_and(|noted| noted.only_tainted) {
        notes.remove(node);
    } else if let Some(noted) = notes.get_mut(node) {
        noted.tainted = None;
    }
}

/// Drops what is too old or too much: the nodes that were reaped first, and the pods of the next ones.
pub fn fit(notes: &mut Notes, now: Timestamp) {
    for noted in notes.values_mut() {
        noted.no_later_than(now);
    }
    notes.retain(|_, noted| noted.is_kept(now));
    let mut oldest = notes.keys().cloned().collect_vec();
    oldest.sort_by_key(|uid| notes[uid].last_reap);
    for uid in oldest.drain(..notes.len().saturating_sub(MAX_NODES)) {
        notes.remove(&uid);
    }
    let size = |(uid, noted): (&Uid, &Noted)| uid.len() + noted.text().len();
    let mut left = notes.iter().map(size).sum::<usize>();
    for uid in &oldest {
        if left > MAX_BYTES - MAX_REPORT_BYTES
            && let Some(noted) = notes.get_mut(uid)
        {
            left -= size((uid, noted));
            noted.drop_pods(0);
            left += size((uid, noted));
        }
    }
}

/// Returns the keys of the `ConfigMap` that differ, as a merge patch has them.
pub fn changes(before: &Notes, after: &Notes) -> BTreeMap<String, Value> {
    let gone = before
        .keys()
        .filter(|uid| !after.contains_key(*uid))
        .map(|uid| (uid.to_string(), Value::Null));
    let new = after
        .iter()
        .filter(|(uid, noted)| before.get(*uid) != Some(noted))
        .map(|(uid, noted)| (uid.to_string(), json!(noted.text())));
    gone.chain(new).collect()
}

/// Shortens a report to what is kept of it.
pub fn shortened(mut report: String) -> String {
    report.truncate(report.floor_char_boundary(MAX_REPORT_BYTES));
    report
}

#[cfg(test)]
mod tests;
