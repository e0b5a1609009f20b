//! The rules in their order, in three tables, and the functions that walk through them. Each rule is
//! independent of the others, so that `explain` can evaluate a late rule although an early one
//! applies.

use std::{borrow::Cow, collections::BTreeSet, iter, mem};

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    Evaluation, Policy,
    code::{ReasonCode as Code, Verdict},
    context::{NOT_READ, NOWHERE, PodContext},
    reason::{Finding, NoReason, Reason, TieKind},
    same_kind,
    volume::{reach, selectors, waits_with_a_path},
};
use crate::{
    facts::{
        Containers, DeletedWithPod, Driver, JOB_TRACKING, KubeletSays, LeafKind, NodeFacts, Owner,
        PodFacts, Read, Ready, Storage, Unread,
    },
    words::{human_duration, joined},
};

/// A row of the table.
pub struct Rule {
    /// The reasons that the rule can give.
    pub gives: &'static [Code],
    /// The question of the rule, as the report shows it.
    pub asks: &'static str,
    finding: fn(&PodContext<'_>) -> Finding,
}

#[expect(clippy::unnecessary_wraps, reason = "the counterpart of `seen`")]
fn holds(code: Code, sentence: impl Into<String>) -> Finding {
    Ok(Reason::new(code, sentence))
}

fn seen(what: impl Into<Cow<'static, str>>) -> Finding {
    Err(NoReason::Seen(what.into()))
}

macro_rules! rules {
    ($($(#[$about:meta])* $table:ident { $($($gives:ident)|+, $asks:literal => $finding:ident;)* })*) => {$(
        $(#[$about])*
        pub(super) const $table: &[Rule] = &[$(Rule {
            gives: &[$(Code::$gives),+],
            asks: $asks,
            finding: $finding,
        }),*];
    )*};
}

// Each row has the reasons, the question and the function that evaluates it. No rule depends on
// another one.
rules! {
    /// They need the nodes, the pods and the namespaces.
    NODE_RULES {
        MirrorPod, "Is it the mirror of a static pod?" => mirror_pod;
        OptedOut, "Is the pod, its namespace or its node opted out?" => opted_out;
        NodeGone, "Is its node gone, with no finalizer left except the Job controller's?" => node_gone;
        NodeReady, "Is its node Ready?" => node_ready;
        NotOverdue, "Was its deletion requested less than --reap-older-than ago?" => requested_lately;
        KosmosLeaf | VirtualNode | EdgeNode | LeafNode, "Is its node a leaf node?" => leaf_node;
        FactsUnread, "Could a needed fact not be read?" => facts_unread;
        NodeJustFailed,
            "Has its node been NotReady for less than --reap-older-than?" => node_just_failed;
    }

    /// They also need the signs of life.
    LIFE_RULES {
        NotOverdue, "Is it overdue by less than --reap-older-than?" => not_overdue;
        KubeletAlive, "Does its node show a sign of life?" => kubelet_alive;
        EtcdMember, "Did its node run etcd, of which fewer members are Ready than a majority?" => etcd_member;
        Finalizers, "Is it held by finalizers other than the Job controller's?" => finalizers;
    }

    /// They also need the storage. The reason names each of them that keeps the pod.
    STORAGE_RULES {
        VolumeUnverified, "Would a PVC that may be wanted go with it?" => claim_goes;
        LocalVolume | HostPath, "Is its data on the node?" => data_on_node;
        LocalVolume, "Is its storage out of reach of every other node?" => volume_confined;
        NotOverdue, "Was a PVC given up too recently?" => given_up_lately;
        VolumeUnverified, "Is a PVC or its volume unverified?" => volume_unverified;
        SharedDisk,
            "Could two machines write to its disk, and is its node not fenced?" => shared_disk;
        OwnerKind,
            "Is the kind of its owner, or of the workload above it, one of --manual-owner-kind?" => owner_kind;
        Stuck, "Has it passed every rule above?" => nothing_keeps;
    }
}

/// Lists all rules in their order. The number of a rule is its position, counted from 1.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [NODE_RULES, LIFE_RULES, STORAGE_RULES]
        .into_iter()
        .flatten()
}

impl Rule {
    /// Returns the reason if the rule applies. A rule that needs an unknown fact keeps the pod too,
    /// with the reason `facts-unread`.
    fn decides(&self, case: &PodContext<'_>) -> Option<Reason> {
        match (self.finding)(case) {
            Ok(reason) => Some(reason),
            Err(NoReason::Unknown(what, _)) => Some(Reason::unread(&what)),
            Err(NoReason::Seen(_)) => None,
        }
    }
}

impl PodContext<'_> {
    /// Judges the pod: the first rule that applies decides. Judging stops at the first table whose
    /// facts were not read. `None` if nothing keeps the pod so far, so that it goes on to the next
    /// step of gathering.
    pub fn judge(&self) -> Option<Reason> {
        if let Some(reason) = self.first(NODE_RULES) {
            return Some(reason);
        }
        if !self.has_life() {
            return None;
        }
        if let Some(reason) = self.first(LIFE_RULES) {
            return Some(self.with_the_cut(reason));
        }
        self.pod.storage.as_ref()?;
        self.by_storage().map(|reason| self.with_the_cut(reason))
    }

    /// Judges the pod for good: a pod that was not read to the end is kept.
    pub fn decide(&self) -> Reason {
        let unread = || Reason::unread("not all that the rules need was read");
        self.judge().unwrap_or_else(unread)
    }

    fn first(&self, table: &[Rule]) -> Option<Reason> {
        table.iter().find_map(|rule| rule.decides(self))
    }

    /// Judges the pod by the rules about storage. The reason gets the pod's ties, and the codes of
    /// all these rules for which the user has to decide.
    fn by_storage(&self) -> Option<Reason> {
        let mut rules = STORAGE_RULES.iter();
        let mut reason = rules.find_map(|rule| rule.decides(self))?;
        if reason.code == Code::FactsUnread {
            return Some(reason);
        }
        if let Ok(ties) = self.ties() {
            reason.ties = ties.clone();
        }
        if reason.verdict() == Verdict::Manual {
            let others = rules.filter_map(|rule| (rule.finding)(self).ok());
            let own = iter::once(reason.code).chain(mem::take(&mut reason.asks));
            let asks = own.chain(others.map(|other| other.code));
            let manual = asks.filter(|code| code.verdict() == Verdict::Manual);
            reason.asks = manual.unique().collect();
        }
        Some(reason)
    }

    /// Adds to a reason that the pod is stuck only because its grace period is cut short.
    fn with_the_cut(&self, mut reason: Reason) -> Reason {
        let cut_short = self.stuck_by_the_cut(reason.code);
        reason.sentence += &of_the_cut(cut_short.as_ref());
        // For pods that are reaped, the report lists the notes instead of the sentences.
        if reason.verdict() == Verdict::Reap {
            let notes = cut_short.map(|cut| format!("its {cut}"));
            reason.notes.extend(notes);
        }
        reason
    }

    /// Returns the label selectors of the nodes that the volumes of the pod's PVCs allow, as far as
    /// a verdict depends on these nodes.
    pub fn selectors(&self) -> BTreeSet<String> {
        let volumes = self.pod.volumes();
        volumes.flat_map(selectors).collect()
    }

    /// Reports whether a verdict depends on the CSI drivers.
    pub fn needs_drivers(&self) -> bool {
        let node = self.known().filter(|node| node.fenced(self.now).is_none());
        let (Some(node), Ok(storage)) = (node, self.storage()) else {
            return false;
        };
        disk_of_several(self.pod, node, storage).is_err()
    }

    /// Reports whether a verdict depends on the `StatefulSet` that controls the pod, as the one that
    /// may want the pod again.
    pub fn needs_set(&self) -> bool {
        let Some(node) = self.known().filter(|_| self.pod.of_stateful_set()) else {
            return false;
        };
        let mut going = self
            .pod
            .claims()
            .iter()
            .filter(|claim| claim.deletion.is_none());
        waits_with_a_path(self.pod)
            || going.any(|claim| matches!(self.goes(claim), DeletedWithPod::MayBeWanted(_)))
            || self
                .classified()
                .any(|bound| reach(&bound.volume, node).is_local())
    }

    /// Returns the sentence about the node's paths that the pod may write to; `None` if these paths
    /// do not keep the pod. Kubernetes replaces the pods of a Deployment at the eviction, but those
    /// of a `StatefulSet` only once they are deleted; so do the controllers of other projects.
    fn writes_to_its_node(&self) -> Option<String> {
        let paths = joined(&self.pod.host_paths, ", ").filter(|_| waits_with_a_path(self.pod))?;
        self.pod.unneeded().is_none().then(|| {
            format!("It may write to {paths} on the dead node, by a hostPath of its own: a replacement would start without what is there.")
        })
    }

    /// Returns the cut of the grace period as a phrase to follow "its", if the pod is stuck only
    /// because its grace period is cut short; otherwise `None`. `code` is the reason that decides
    /// about the pod.
    fn stuck_by_the_cut(&self, code: Code) -> Option<String> {
        let threshold = self.policy.reap_older_than;
        let is_stuck = |since| self.now.duration_since(since) >= threshold;
        let depends = !is_stuck(self.pod.deletion_deadline()) && is_stuck(self.overdue_since());
        // With `facts-unread`, the unread fact matters more.
        if depends && code != Code::FactsUnread {
            self.grace_cut_short()
        } else {
            None
        }
    }

    /// Returns the moment from which neither rule about time keeps the pod; `None` if that moment
    /// is not known.
    pub fn reaped_from(&self) -> Option<Timestamp> {
        let node = self.known()?;
        let since = node.not_ready_since(self.now)?;
        let overdue = self.pod.grace_cut_at(node, self.now);
        let overdue = overdue.unwrap_or(self.pod.deletion_deadline());
        let overdue = overdue.saturating_add(self.policy.reap_older_than).ok()?;
        let silent = since.saturating_add(self.policy.reap_older_than).ok()?;
        let given_up = self.ties().ok().and_then(|ties| ties.given_up_until);
        Some(overdue.max(silent).max(given_up.unwrap_or(Timestamp::MIN)))
    }

    /// Evaluates every rule, in order. The first one that applies, or needs an unknown fact, is the
    /// one that [`PodContext::judge`] finds. The last rule does not check whether an earlier one
    /// applies, so its result is not shown if another rule decides.
    pub fn evaluate(&self) -> Vec<Evaluation> {
        let (last, decided) = (rules().count(), self.decide());
        let mut decides = None;
        let evaluations = rules().zip(1..).map(|(rule, number)| {
            let (holds, seen) = match ((rule.finding)(self), decides) {
                (_, Some(decides)) if number == last => {
                    (Some(false), format!("Rule {decides} decides."))
                }
                (Ok(_), None) => (Some(true), decided.sentence.clone()),
                (Ok(reason), Some(_)) => (Some(true), reason.sentence),
                (Err(NoReason::Seen(seen)), _) => (Some(false), seen.into_owned()),
                (Err(NoReason::Unknown(_, unknown)), _) => (None, unknown.to_owned()),
            };
            if holds != Some(false) {
                decides.get_or_insert(number);
            }
            Evaluation {
                number: Some(number),
                asks: rule.asks,
                holds,
                decides: decides == Some(number),
                seen,
                gives: rule.gives.first().copied(),
            }
        });
        evaluations.collect()
    }
}

fn mirror_pod(case: &PodContext<'_>) -> Finding {
    if !case.pod.mirror {
        return seen("It does not carry the annotation kubernetes.io/config.mirror.");
    }
    holds(
        Code::MirrorPod,
        "It mirrors a static pod, which its node's kubelet owns; deleting the mirror does not stop that.",
    )
}

fn opted_out(case: &PodContext<'_>) -> Finding {
    let node = case.known().and_then(|node| node.opted_out.as_ref());
    let carrier = case
        .pod
        .opts_out()
        .or(node.map(|value| ("Its node", value)));
    let Some((who, value)) = carrier else {
        return seen("Nothing opts it out by pod-reaper.io/skip, as far as could be read.");
    };
    let mut sentence = format!("{who} is opted out by pod-reaper.io/skip.");
    if value != "true" {
        sentence +=
            &format!(" Its value {value:?} is neither true nor false, and is treated as true.");
    }
    holds(Code::OptedOut, sentence)
}

fn node_gone(case: &PodContext<'_>) -> Finding {
    let name = case.node_name();
    if !case.nowhere() {
        return seen(match case.known() {
            Some(_) => format!("Node {name} exists."),
            None => format!("It is not known whether {name} exists."),
        });
    }
    // Finalizers block the deletion of the pod, whoever requests it.
    if held_by(case.pod).is_some() {
        return seen(
            "Its node is gone, but the garbage collector cannot remove what finalizers hold.",
        );
    }
    let gone = match &case.pod.node {
        Some(node) => format!("Node {node} no longer exists"),
        None => "It was never assigned to a node".to_owned(),
    };
    holds(
        Code::NodeGone,
        format!("{gone}; the pod garbage collector takes care of it."),
    )
}

fn node_ready(case: &PodContext<'_>) -> Finding {
    if case.known().is_none_or(|node| node.ready != Ready::True) {
        return seen(case.ready());
    }
    holds(
        Code::NodeReady,
        "Its node is Ready: the kubelet there is stopping it; if it does not, look at that kubelet.",
    )
}

/// Returns the sentence that the grace period is cut short, to follow other sentences; empty if it
/// is not cut short.
fn of_the_cut(cut_short: Option<&String>) -> String {
    cut_short.map_or_else(String::new, |cut| format!(" Its {cut}."))
}

/// The deletion of a pod is overdue at the earliest from the moment at which it was requested.
fn requested_lately(case: &PodContext<'_>) -> Finding {
    let (pod, threshold) = (case.pod, case.policy.reap_older_than);
    let requested = pod.deletion_requested().unwrap_or(pod.deletion_deadline());
    let ago = case.now.duration_since(requested);
    if ago >= threshold {
        return seen(format!(
            "Its deletion was requested {} ago; --reap-older-than is {}.",
            human_duration(ago),
            human_duration(threshold)
        ));
    }
    let cut = case
        .known()
        .and_then(|node| pod.grace_cut_at(node, case.now));
    let cut = cut.filter(|_| !ago.is_negative());
    holds(
        Code::NotOverdue,
        match cut {
            None => waits(case.now.duration_since(pod.deletion_deadline()), threshold),
            Some(_) => format!(
                "Its deletion was requested {} ago, and it is stuck {} after that at the earliest.",
                human_duration(ago),
                human_duration(threshold)
            ),
        },
    )
}

/// Says that a pod which is overdue by `overdue` is not stuck yet.
fn waits(overdue: SignedDuration, threshold: SignedDuration) -> String {
    let stuck = human_duration(threshold);
    if overdue.is_negative() {
        let left = human_duration(-overdue);
        format!("It is within its grace period for another {left}, and stuck {stuck} after that.")
    } else {
        let overdue = human_duration(overdue);
        format!("It is overdue by {overdue}, and stuck once it is overdue by {stuck}.")
    }
}

fn not_overdue(case: &PodContext<'_>) -> Finding {
    let threshold = case.policy.reap_older_than;
    let overdue = case.now.duration_since(case.overdue_since());
    let (overdue_by, stuck) = (human_duration(overdue), human_duration(threshold));
    let cut_short = of_the_cut(case.grace_cut_short().as_ref());
    if overdue >= threshold {
        return seen(format!(
            "It is {overdue_by} overdue; --reap-older-than is {stuck}.{cut_short}"
        ));
    }
    // A pod within its grace period has none that is cut short.
    let sentence = waits(overdue, threshold) + &cut_short;
    holds(Code::NotOverdue, sentence)
}

fn leaf_node(case: &PodContext<'_>) -> Finding {
    let name = case.node_name();
    let Some(node) = case.known() else {
        return if case.nowhere() {
            seen(NOWHERE)
        } else {
            seen(format!("It is not known whether {name} carries a mark."))
        };
    };
    let Some(leaf) = &node.leaf else {
        return seen(format!(
            "Node {name} carries no mark of a virtual or edge node, nor does --leaf-node-selector select it."
        ));
    };
    let (maker, marks) = (leaf.maker, leaf.marks.join(", "));
    let link_is_cut = "There, NotReady usually means that the link is cut";
    let (code, what, means) = match leaf.kind {
        LeafKind::Kosmos => (
            Code::KosmosLeaf,
            leaf.cluster.as_ref().map_or_else(
                || "is a Kosmos leaf node and stands for another cluster".to_owned(),
                |cluster| format!("stands for the Kosmos leaf cluster {cluster}"),
            ),
            link_is_cut,
        ),
        LeafKind::Virtual => (
            Code::VirtualNode,
            format!("is a virtual node of {maker}, not a machine"),
            "There, NotReady means that the program that runs its pods does not report",
        ),
        LeafKind::Edge => (
            Code::EdgeNode,
            format!("is an edge node of {maker}"),
            "It keeps working without its cluster, so NotReady means that the link is cut",
        ),
        LeafKind::Selected => (
            Code::LeafNode,
            "matches --leaf-node-selector".to_owned(),
            link_is_cut,
        ),
        LeafKind::NeverReported => {
            return holds(
                Code::VirtualNode,
                format!(
                    "No kubelet ever reported on its node (seen: {marks}), so that nothing shows a machine there: what it stands for may run the pod."
                ),
            );
        }
    };
    let sentence =
        format!("Its node {what} (seen: {marks}). {means}: the pod is probably still running.");
    holds(code, sentence)
}

fn facts_unread(case: &PodContext<'_>) -> Finding {
    let unread = match case.known() {
        None if case.nowhere() => None,
        None => Some(case.node_unread()),
        Some(node) => match (&case.pod.in_namespace, &node.unread_lease) {
            (Err(unread), _) => Some(format!("the namespace: {unread}")),
            // The lease shows whether the kubelet is silent. A kubelet that reports Ready=False is
            // not silent, so its lease cannot change a verdict.
            (_, Some(unread)) if matches!(node.ready, Ready::Unknown | Ready::Absent) => {
                Some(format!("the node's lease: {unread}"))
            }
            _ => None,
        },
    };
    match unread {
        Some(what) => Ok(Reason::unread(&what)),
        None => seen("The node, the namespace and, where needed, the lease were read."),
    }
}

fn node_just_failed(case: &PodContext<'_>) -> Finding {
    let node = case.required_node()?;
    if node.ready == Ready::True {
        // The transition time of a Ready node says since when the node is Ready, not since when it
        // is NotReady.
        return seen(case.ready());
    }
    let Some(since) = node.not_ready_since(case.now) else {
        return holds(
            Code::NodeJustFailed,
            "The node is NotReady, but does not say since when.",
        );
    };
    let time = case.now.duration_since(since);
    let is = human_duration(time.max(SignedDuration::ZERO));
    let threshold = case.policy.reap_older_than;
    let least = format!("--reap-older-than is {}", human_duration(threshold));
    if time >= threshold {
        return seen(format!("Its node has been NotReady for {is}; {least}."));
    }
    holds(
        Code::NodeJustFailed,
        format!("The node has been NotReady for only {is}; {least}."),
    )
}

fn kubelet_alive(case: &PodContext<'_>) -> Finding {
    let node = case.required_node()?;
    if !case.has_life() {
        let unread = "the Leases that may name the node or its pods were not read";
        return Err(NoReason::Unknown(unread.to_owned(), NOT_READ));
    }
    let signs = node.signs(case.now);
    if !signs.is_empty() {
        return holds(
            Code::KubeletAlive,
            format!(
                "The node's Ready is {}, but its machine is alive: {signs}.{}{}",
                node.ready,
                kubelet_says(node),
                containers(node, case.pod)
            ),
        );
    }
    match node.unread() {
        Some(why) if node.ready != Ready::True => Err(NoReason::Unknown(
            format!("the Leases that may name the node or its pods: {why}"),
            "Not all Leases that may show life could be read.",
        )),
        _ => seen(node.last_sign(case.now)),
    }
}

/// The API server has just renewed leases, so a majority of the members of etcd writes. If fewer
/// nodes of members are Ready, at least one of the NotReady machines is alive.
fn etcd_member(case: &PodContext<'_>) -> Finding {
    let node = case.required_node()?;
    let Some(quorum) = node.etcd else {
        return seen("Its node is not known to have run etcd.");
    };
    let are = format!(
        "{} of {} members of etcd are on Ready nodes",
        quorum.ready, quorum.members
    );
    if quorum.is_met() {
        return seen(format!("Its node ran etcd; {are}, which is a majority."));
    }
    if let Some(mark) = node.fenced(case.now) {
        return seen(format!(
            "Its node ran etcd, and is known to be off: {mark}."
        ));
    }
    holds(
        Code::EtcdMember,
        format!(
            "Its node ran etcd. Only {are}, and the API server still writes: at least one of the NotReady machines is alive."
        ),
    )
}

/// Returns the fault that the kubelet reports, as a sentence to follow others.
fn kubelet_says(node: &NodeFacts) -> &'static str {
    match node.kubelet_says.filter(|_| node.ready == Ready::False) {
        Some(KubeletSays::ShuttingDown) => " Its kubelet says that the node is shutting down.",
        Some(KubeletSays::Runtime) => " Its kubelet says that the container runtime does not work.",
        Some(KubeletSays::Network) => {
            " Its kubelet says that the network plugin (CNI) is not ready."
        }
        None => "",
    }
}

/// Returns whether the pod's containers run, as a sentence to follow others. The reported states
/// are current only while the kubelet reports.
fn containers(node: &NodeFacts, pod: &PodFacts) -> String {
    let Containers {
        running,
        terminated,
        waiting,
    } = pod.containers;
    if node.ready != Ready::False || running + terminated + waiting == 0 {
        return " The pod's containers most likely still run.".to_owned();
    }
    let counts = [
        (running, "running"),
        (terminated, "terminated"),
        (waiting, "waiting"),
    ];
    let seen = counts.into_iter().filter(|(count, _)| *count > 0);
    let states =
        joined(seen.map(|(count, state)| format!("{count} {state}")), ", ").unwrap_or_default();
    format!(" The kubelet's last report on the pod's containers: {states}.")
}

fn finalizers(case: &PodContext<'_>) -> Finding {
    match held_by(case.pod) {
        None => seen(unheld(case.pod)),
        Some(finalizers) => holds(
            Code::Finalizers,
            format!(
                "It is held by {finalizers}: a controller still has work to do before the pod can be deleted."
            ),
        ),
    }
}

/// Lists the finalizers other than the Job controller's, as a phrase; `None` if there is none. A
/// finalizer with an empty name blocks the deletion too.
fn held_by(pod: &PodFacts) -> Option<String> {
    let foreign = pod.finalizers.iter().filter(|name| *name != JOB_TRACKING);
    let foreign = foreign.collect_vec();
    let noun = match foreign.len() {
        0 => return None,
        1 => "finalizer",
        _ => "finalizers",
    };
    Some(format!("{noun} {}", foreign.into_iter().join(", ")))
}

fn unheld(pod: &PodFacts) -> &'static str {
    if pod.held_by_job() {
        "Its only finalizer is the Job controller's, which is released when the pod is reaped."
    } else {
        "It has no finalizer."
    }
}

fn data_on_node(case: &PodContext<'_>) -> Finding {
    let pinned = case.ties()?.of_kind(TieKind::Pinned);
    let of_pod = case.writes_to_its_node();
    let Some(pinned) = joined(pinned, "; ") else {
        let none = "No PVC that could be read keeps it on the node";
        return match of_pod {
            Some(sentence) => holds(Code::HostPath, sentence),
            None => seen(of_claims(case.pod, none)),
        };
    };
    let mut sentence = format!("Its storage is on the dead node: {pinned}.");
    let asks = of_pod.map(|of_pod| {
        sentence += &format!(" {of_pod}");
        Code::HostPath
    });
    Ok(Reason {
        asks: asks.into_iter().collect(),
        ..Reason::new(Code::LocalVolume, sentence)
    })
}

fn volume_confined(case: &PodContext<'_>) -> Finding {
    let confined = case.ties()?.of_kind(TieKind::Confined).collect_vec();
    if confined.is_empty() {
        let none = "No PVC that could be read is confined to the node";
        return seen(of_claims(case.pod, none));
    }
    holds(
        Code::LocalVolume,
        format!(
            "No other node is known to reach its storage: {}.",
            confined.iter().join("; ")
        ),
    )
}

fn claim_goes(case: &PodContext<'_>) -> Finding {
    match joined(case.ties()?.of_kind(TieKind::Going), "; ") {
        Some(going) => holds(
            Code::VolumeUnverified,
            format!("A PVC that may be wanted would go with it: {going}."),
        ),
        None => seen(of_claims(
            case.pod,
            "No PVC that may be wanted would go with it",
        )),
    }
}

fn given_up_lately(case: &PodContext<'_>) -> Finding {
    let Some(until) = case.ties()?.given_up_until else {
        return seen(of_claims(case.pod, "No PVC was given up"));
    };
    let given_up = case.pod.claims().iter();
    let given_up = given_up.filter(|it| matches!(case.goes(it), DeletedWithPod::GivenUp(_)));
    let names = given_up.map(|claim| match claim.bound() {
        Some(bound) => format!("{} (volume {})", claim.name, bound.volume.name),
        None => claim.name.clone(),
    });
    let deleted = format!("Deleted after the node failed: PVC {}.", names.format(", "));
    if until <= case.now {
        return seen(deleted);
    }
    holds(
        Code::NotOverdue,
        format!(
            "{deleted} From {until:.0} on, a run deletes the pod, and the data goes with it. Until then, you can keep the \
             data by setting the volume to Retain."
        ),
    )
}

fn volume_unverified(case: &PodContext<'_>) -> Finding {
    let unverified = case.ties()?.of_kind(TieKind::Unverified).collect_vec();
    if unverified.is_empty() {
        return seen(of_claims(case.pod, "Each PVC was read"));
    }
    holds(
        Code::VolumeUnverified,
        format!(
            "It is unverified what a delete would do to its data: {}.",
            unverified.iter().join("; ")
        ),
    )
}

fn of_claims(pod: &PodFacts, seen: &str) -> String {
    match joined(pod.claims().iter().map(|claim| &claim.name), ", ") {
        Some(names) => format!("{seen}: {names}."),
        None => "It uses no PVC.".to_owned(),
    }
}

fn shared_disk(case: &PodContext<'_>) -> Finding {
    let node = case.required_node()?;
    let what = disk_of_several(case.pod, node, case.storage()?);
    if matches!(what, Ok(None)) {
        return seen("It has no disk that several machines could write to at once.");
    }
    if let Some(mark) = node.fenced(case.now) {
        return seen(format!("Its node is known to be off: {mark}."));
    }
    match what {
        Ok(what) => holds(
            Code::SharedDisk,
            format!(
                "Two machines could write to its disk at the same time ({}), and its node is not known to be off.",
                what.unwrap_or_default()
            ),
        ),
        Err(Unread(why)) => Err(NoReason::Unknown(
            format!("whether anything attaches its disk: {why}"),
            "It is not known whether anything attaches its disk.",
        )),
    }
}

/// Names the disk that several machines could write to at once. A volume on the node itself has no
/// second machine, although nothing attaches it.
fn disk_of_several(pod: &PodFacts, node: &NodeFacts, storage: &Storage) -> Read<Option<String>> {
    let mut unread = Ok(None);
    for claim in &storage.claims {
        let (name, Some(bound)) = (&claim.name, claim.bound()) else {
            continue;
        };
        let volume = &bound.volume;
        if reach(volume, node).is_local() {
            continue;
        }
        if bound.shared_disk {
            let what = format!("PVC {name} is ReadWriteMany and a raw block device");
            return Ok(Some(what));
        }
        let of_driver = match &volume.driver {
            Some(Driver {
                name,
                attaches: Ok(false),
            }) => Some(format!(
                "needs no attachment (driver {name}), so nothing keeps a second machine from writing to it"
            )),
            Some(Driver {
                attaches: Err(why), ..
            }) => {
                unread = Err(why.clone());
                None
            }
            _ => None,
        };
        let of_kind = volume.disk;
        let of_kind = of_kind
            .map(|disk| format!("is {disk}; nothing keeps a second machine from writing to it"));
        if let Some(why) = of_kind.or(of_driver) {
            return Ok(Some(format!("volume {} of PVC {name} {why}", volume.name)));
        }
    }
    let of_pod = pod.own_disk.as_ref();
    let of_pod =
        of_pod.map(|disk| format!("{disk}; nothing keeps a second machine from writing to it"));
    let of_machine = || {
        let Owner { kind, name } = pod.owner.as_ref()?;
        let machine =
            kind.ends_with(VIRTUAL_MACHINE) || kind == "Pod" && name.starts_with(LAUNCHER_PREFIX);
        machine.then(|| format!("it belongs to the virtual machine {name}"))
    };
    match of_pod.or_else(of_machine) {
        None => unread,
        found => Ok(found),
    }
}

/// The end of the kind that owns a virtual machine's pods, of `KubeVirt` and of programs built on it.
/// Their disks are shared, for live migration.
const VIRTUAL_MACHINE: &str = "VirtualMachineInstance";
/// The name prefix of `KubeVirt`'s virt-launcher pods. The pod with which `KubeVirt` attaches a
/// disk to a running machine has a virt-launcher pod as its owner.
const LAUNCHER_PREFIX: &str = "virt-launcher-";

fn owner_kind(case: &PodContext<'_>) -> Finding {
    let Policy {
        manual_owner_kinds, ..
    } = case.policy;
    let PodFacts {
        owner, workload, ..
    } = case.pod;
    // The pod's owner, and the workload above it if the workload is another object.
    let owners = owner
        .iter()
        .chain(workload.iter().filter(|_| workload != owner));
    let flagged = |owner: &&Owner| {
        let mut kinds = manual_owner_kinds.iter();
        kinds.any(|kind| same_kind(kind, &owner.kind))
    };
    let Some(Owner { kind, name }) = owners.clone().find(flagged) else {
        let of = owners.map(|owner| format!("a {}", owner.kind));
        let of = joined(of, ", which belongs to ");
        let kinds = joined(manual_owner_kinds, ", ");
        return seen(format!(
            "It belongs to {}; --manual-owner-kind names {}.",
            of.as_deref().unwrap_or("no owner"),
            kinds.as_deref().unwrap_or("no kind")
        ));
    };
    holds(
        Code::OwnerKind,
        format!("It belongs to {kind}/{name}, and --manual-owner-kind names that kind."),
    )
}

fn nothing_keeps(case: &PodContext<'_>) -> Finding {
    let (node, ties) = (case.required_node()?, case.ties()?);
    let mut notes = ties.notes.clone();
    if waits_with_a_path(case.pod)
        && let Some(paths) = joined(&case.pod.host_paths, ", ")
    {
        let on = &node.name;
        notes.push(format!("what it wrote to {paths} stays on {on}"));
    }
    if case.pod.controller.is_none() {
        notes.push("nothing brings it back: it has no controller".to_owned());
    }
    if let Some(quorum) = node.etcd.filter(|quorum| quorum.has_no_spare()) {
        notes.push(format!(
            "its node ran etcd, of which {} of {} members are on Ready nodes: no spare is left",
            quorum.ready, quorum.members
        ));
    }
    let signs = node.signs(case.now);
    if !signs.is_empty() {
        notes.push(format!(
            "its containers there may still run until node {} is repaired or powered off: {signs}",
            node.name
        ));
    }
    Ok(Reason {
        notes,
        ..Reason::new(
            Code::Stuck,
            "It is stuck Terminating on a NotReady node and nothing keeps it there.",
        )
    })
}
