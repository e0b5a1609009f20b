//! The sentences about a reason, and about what `explain` shows: one `Display` each.

use std::fmt::{self, Display, Formatter};

use itertools::Itertools as _;
use jiff::Timestamp;

use super::reason::{
    Cause, Doubt, GraceCut, Location, Missing, NoTie, Note, Reason, Seen, SharedDisk, Tie, TieKind,
    Wanted,
};
use crate::{
    facts::{
        AffinityTerm, Containers, Heard, KubeletSays, Leaf, LeafKind, OptOut, Place, Requirement,
        SignBy, Unneeded,
    },
    words::{about, human_duration, joined},
};

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.cause, of_the_cut(self.grace_cut))
    }
}

impl Display for Cause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mirror => f.write_str(
                "It mirrors a static pod, which its node's kubelet owns; deleting the mirror does not stop that.",
            ),
            Self::OptedOut { by, value } => {
                let who = match by {
                    OptOut::Pod => "The pod",
                    OptOut::Namespace => "Its namespace",
                    OptOut::Node => "Its node",
                };
                write!(f, "{who} is opted out by pod-reaper.io/skip.")?;
                if value != "true" {
                    write!(f, " Its value {value:?} is neither true nor false, and is treated as true.")?;
                }
                Ok(())
            }
            Self::NodeGone(Some(node)) => write!(
                f,
                "Node {node} no longer exists; the pod garbage collector takes care of it."
            ),
            Self::NodeGone(None) => f.write_str(
                "It was never assigned to a node; the pod garbage collector takes care of it.",
            ),
            Self::NodeReady => f.write_str(
                "Its node is Ready: the kubelet there is stopping it; if it does not, look at that kubelet.",
            ),
            Self::RequestedLately { ago, threshold } => write!(
                f,
                "Its deletion was requested {} ago, and it is stuck {} after that at the earliest.",
                human_duration(*ago),
                human_duration(*threshold)
            ),
            Self::NotOverdue {
                overdue,
                threshold,
                grace_cut,
            } => {
                let stuck = human_duration(*threshold);
                if overdue.is_negative() {
                    let left = human_duration(-*overdue);
                    write!(f, "It is within its grace period for another {left}, and stuck {stuck} after that.")?;
                } else {
                    let overdue = human_duration(*overdue);
                    write!(f, "It is overdue by {overdue}, and stuck once it is overdue by {stuck}.")?;
                }
                f.write_str(&of_the_cut(*grace_cut))
            }
            Self::Leaf(leaf) => of_leaf(leaf, f),
            Self::Unread(missing) => f.write_str(&unread_facts(&missing.to_string())),
            Self::NodeJustFailed { time: None, .. } => {
                f.write_str("The node is NotReady, but does not say since when.")
            }
            Self::NodeJustFailed {
                time: Some(time),
                threshold,
            } => write!(
                f,
                "The node has been NotReady for only {}; --reap-older-than is {}.",
                human_duration(*time),
                human_duration(*threshold)
            ),
            Self::Alive {
                ready,
                signs,
                now,
                kubelet_says,
                containers,
            } => {
                let signs = signs.iter().map(|sign| reported(sign, *now)).join(", ");
                write!(
                    f,
                    "The node's Ready is {ready}, but its machine is alive: {signs}."
                )?;
                f.write_str(match kubelet_says {
                    Some(KubeletSays::ShuttingDown) => {
                        " Its kubelet says that the node is shutting down."
                    }
                    Some(KubeletSays::Runtime) => {
                        " Its kubelet says that the container runtime does not work."
                    }
                    Some(KubeletSays::Network) => {
                        " Its kubelet says that the network plugin (CNI) is not ready."
                    }
                    None => "",
                })?;
                match containers {
                    None => f.write_str(" The pod's containers most likely still run."),
                    Some(containers) => write!(
                        f,
                        " The kubelet's last report on the pod's containers: {}.",
                        states(*containers)
                    ),
                }
            }
            Self::EtcdMember(quorum) => write!(
                f,
                "Its node ran etcd. Only {} of {} members of etcd are on Ready nodes, and the API server still writes: at least \
                 one of the NotReady machines is alive.",
                quorum.ready, quorum.members
            ),
            Self::Finalizers(finalizers) => {
                let noun = if finalizers.len() == 1 { "finalizer" } else { "finalizers" };
                write!(
                    f,
                    "It is held by {noun} {}: a controller still has work to do before the pod can be deleted.",
                    finalizers.join(", ")
                )
            }
            Self::ClaimsGo(ties) => write!(
                f,
                "A PVC that may be wanted would go with it: {}.",
                ties.iter().join("; ")
            ),
            Self::Pinned { ties, paths } => {
                write!(f, "Its storage is on the dead node: {}.", ties.iter().join("; "))?;
                if !paths.is_empty() {
                    write!(f, " {}", writes_to(paths))?;
                }
                Ok(())
            }
            Self::HostPath(paths) => f.write_str(&writes_to(paths)),
            Self::Confined(ties) => write!(
                f,
                "No other node is known to reach its storage: {}.",
                ties.iter().join("; ")
            ),
            Self::GivenUp { ties, until } => write!(
                f,
                "{} From {until:.0} on, a run deletes the pod, and the data goes with it. Until then, you can keep the data by \
                 setting the volume to Retain.",
                deleted(ties)
            ),
            Self::Unverified(ties) => write!(
                f,
                "It is unverified what a delete would do to its data: {}.",
                ties.iter().join("; ")
            ),
            Self::SharedDisk(disk) => write!(
                f,
                "Two machines could write to its disk at the same time ({disk}), and its node is not known to be off."
            ),
            Self::OwnerKind(owner) => write!(
                f,
                "It belongs to {owner}, and --manual-owner-kind names that kind."
            ),
            Self::TooManyClaims(why) => write!(
                f,
                "It is unverified what a delete would do to its data: {why}."
            ),
            Self::Stuck { .. } => f.write_str(
                "It is stuck Terminating on a NotReady node and nothing keeps it there.",
            ),
        }
    }
}

impl Display for Seen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMirror => {
                f.write_str("It does not carry the annotation kubernetes.io/config.mirror.")
            }
            Self::NoOptOut => {
                f.write_str("Nothing opts it out by pod-reaper.io/skip, as far as could be read.")
            }
            Self::Nowhere => f.write_str("There is no node to ask about."),
            Self::NodeExists(node) => write!(f, "Node {node} exists."),
            Self::NodeUnknown(node) => write!(f, "It is not known whether {node} exists."),
            Self::GoneAndHeld => f.write_str(
                "Its node is gone, but the garbage collector cannot remove what finalizers hold.",
            ),
            Self::Ready {
                node,
                ready,
                reason,
            } => {
                write!(f, "Node {node}'s Ready is {ready}")?;
                if let Some(reason) = reason {
                    write!(f, " ({reason})")?;
                }
                f.write_str(".")
            }
            Self::ReadyUnknown(node) => write!(f, "It is not known whether {node} is Ready."),
            Self::Requested { ago, threshold } => write!(
                f,
                "Its deletion was requested {} ago; --reap-older-than is {}.",
                human_duration(*ago),
                human_duration(*threshold)
            ),
            Self::LeafUnknown(node) => {
                write!(f, "It is not known whether {node} carries a mark.")
            }
            Self::NoLeaf(node) => write!(
                f,
                "Node {node} carries no mark of a virtual or edge node, nor does --leaf-node-selector select it."
            ),
            Self::AllRead => {
                f.write_str("The node, the namespace and, where needed, the lease were read.")
            }
            Self::NotReadyFor { time, threshold } => write!(
                f,
                "Its node has been NotReady for {}; --reap-older-than is {}.",
                human_duration(*time),
                human_duration(*threshold)
            ),
            Self::Overdue {
                overdue,
                threshold,
                grace_cut,
            } => write!(
                f,
                "It is {} overdue; --reap-older-than is {}.{}",
                human_duration(*overdue),
                human_duration(*threshold),
                of_the_cut(*grace_cut)
            ),
            Self::LastHeard { heard, now } => f.write_str(&last_heartbeat(heard.as_ref(), *now)),
            Self::NoEtcd => f.write_str("Its node is not known to have run etcd."),
            Self::EtcdMajority(quorum) => write!(
                f,
                "Its node ran etcd; {} of {} members of etcd are on Ready nodes, which is a majority.",
                quorum.ready, quorum.members
            ),
            Self::EtcdFenced(mark) => {
                write!(f, "Its node ran etcd, and is known to be off: {mark}.")
            }
            Self::Unheld { by_job: true } => f.write_str(
                "Its only finalizer is the Job controller's, which is released when the pod is reaped.",
            ),
            Self::Unheld { by_job: false } => f.write_str("It has no finalizer."),
            Self::Claims { claims, .. } if claims.is_empty() => f.write_str("It uses no PVC."),
            Self::Claims { none, claims } => {
                let none = match none {
                    NoTie::Goes => "No PVC that may be wanted would go with it",
                    NoTie::Pinned => "No PVC that could be read keeps it on the node",
                    NoTie::Confined => "No PVC that could be read is confined to the node",
                    NoTie::GivenUp => "No PVC was given up",
                    NoTie::Unverified => "Each PVC was read",
                };
                write!(f, "{none}: {}.", claims.join(", "))
            }
            Self::GivenUp(ties) => f.write_str(&deleted(ties)),
            Self::ClaimsUnread(why) => write!(f, "Its PVCs were not looked up: {why}."),
            Self::NoSharedDisk => {
                f.write_str("It has no disk that several machines could write to at once.")
            }
            Self::Fenced(mark) => write!(f, "Its node is known to be off: {mark}."),
            Self::OtherOwners { owners, named } => {
                let owners = joined(owners.iter().map(|kind| format!("a {kind}")), ", which belongs to ");
                let named = joined(named, ", ");
                write!(
                    f,
                    "It belongs to {}; --manual-owner-kind names {}.",
                    owners.as_deref().unwrap_or("no owner"),
                    named.as_deref().unwrap_or("no kind")
                )
            }
            Self::DecidedBy(number) => write!(f, "Rule {number} decides."),
        }
    }
}

/// The phrase names the fact and the cause.
impl Display for Missing {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(Some(why)) => write!(f, "the node: {why}"),
            Self::Node(None) => f.write_str("the node: it was not looked up"),
            Self::Namespace(why) => write!(f, "the namespace: {why}"),
            Self::Lease(why) => write!(f, "the node's lease: {why}"),
            Self::OtherLeases(Some(why)) => {
                write!(f, "the Leases that may name the node or its pods: {why}")
            }
            Self::OtherLeases(None) => {
                f.write_str("the Leases that may name the node or its pods were not read")
            }
            Self::Storage => f.write_str("its storage was not read"),
            Self::Attachment(why) => write!(f, "whether anything attaches its disk: {why}"),
            Self::LaterStep => f.write_str("not all that the rules need was read"),
        }
    }
}

impl Missing {
    /// Says what a rule did not see, as a sentence for `explain`.
    pub(super) fn seen(&self) -> &'static str {
        match self {
            Self::Node(_) => "Its node could not be read.",
            Self::OtherLeases(Some(_)) => "Not all Leases that may show life could be read.",
            Self::Attachment(_) => "It is not known whether anything attaches its disk.",
            Self::Namespace(_)
            | Self::Lease(_)
            | Self::OtherLeases(None)
            | Self::Storage
            | Self::LaterStep => "What it asks about was not read.",
        }
    }
}

impl Display for Note {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(tie) => tie.fmt(f),
            Self::PathsStay { paths, node } => {
                write!(f, "what it wrote to {} stays on {node}", paths.join(", "))
            }
            Self::NoController => f.write_str("nothing brings it back: it has no controller"),
            Self::NoSpare(quorum) => write!(
                f,
                "its node ran etcd, of which {} of {} members are on Ready nodes: no spare is left",
                quorum.ready, quorum.members
            ),
            Self::GraceCut(cut) => write!(f, "its {cut}"),
        }
    }
}

impl Display for GraceCut {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { grace, heard_for } = *self;
        write!(
            f,
            "grace period of {} is cut short: its node fell silent ",
            human_duration(grace)
        )?;
        if heard_for.is_zero() {
            f.write_str("before its deletion was requested")
        } else {
            let after = human_duration(heard_for);
            write!(f, "{after} after its deletion was requested")
        }
    }
}

/// A phrase: what keeps the pod, or what to remember once it is reaped.
impl Display for Tie {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (pvc, volume, why) = (&self.pvc, self.volume(), self.why());
        let data = |retained: bool| {
            if retained {
                "its volume stays, by its reclaim policy Retain"
            } else {
                "data included"
            }
        };
        match &self.kind {
            TieKind::Pinned(_) => write!(f, "PVC {pvc} is bound to volume {volume} ({why})"),
            TieKind::Confined(_) => write!(f, "PVC {pvc} is bound to volume {volume}, which {why}"),
            TieKind::Unverified(_) | TieKind::Goes(_) => write!(f, "PVC {pvc}: {why}"),
            TieKind::GivenUp { retained, .. } => write!(
                f,
                "PVC {pvc} was deleted after the node failed, and disappears with its last pod, {}",
                data(*retained)
            ),
            TieKind::Ephemeral { retained } => write!(
                f,
                "PVC {pvc} belongs to the pod alone and is deleted with it, {}",
                data(*retained)
            ),
            TieKind::Unwanted { retained, .. } => write!(
                f,
                "PVC {pvc} is deleted with the pod, and nothing wants it again, {}",
                data(*retained)
            ),
            TieKind::Retained => {
                write!(f, "PVC {pvc} is deleted with its last pod, {}", data(true))
            }
            TieKind::Unneeded {
                why: Unneeded::Namespace,
                ..
            } => write!(f, "PVC {pvc} is deleted with its namespace"),
            TieKind::Unneeded {
                why: Unneeded::Set, ..
            } => write!(
                f,
                "PVC {pvc} stays, with its data on volume {volume}: no StatefulSet wants the pod again"
            ),
            TieKind::Elsewhere(terms) => write!(
                f,
                "its replacement waits for a node that its volume allows: {volume} needs {}",
                spell(terms)
            ),
        }
    }
}

impl Tie {
    /// Returns the evidence of a tie that keeps the pod, as a phrase; empty for other ties. For a
    /// pinned PVC, it is how the volume is tied to the node ("local, at /mnt/d1"). For a confined
    /// PVC, it is a clause that follows the volume's name.
    pub fn why(&self) -> String {
        match &self.kind {
            TieKind::Pinned(location) => match &location.storage {
                Place::StrictLocal => "Longhorn, dataLocality strict-local".to_owned(),
                Place::Driver => format!(
                    "reachable only from this node, by {}",
                    spell(&location.affinity)
                ),
                directory => of_directory(directory),
            },
            TieKind::Confined(Location { storage, affinity }) => {
                let mut requirements = affinity.iter().flat_map(|term| &term.requirements);
                let is_bound = requirements.any(|requirement| !requirement.of_zone());
                if matches!(storage, Place::Driver) || is_bound {
                    format!("needs {}", spell(affinity))
                } else {
                    let directory = of_directory(storage);
                    format!("is a directory that other nodes may share ({directory})")
                }
            }
            TieKind::Unverified(Doubt::Unread(why)) => why.to_string(),
            TieKind::Unverified(Doubt::NoVolume(phase)) => {
                let phase = phase.as_deref().unwrap_or("not set");
                format!("it names no volume (phase {phase})")
            }
            TieKind::Unverified(Doubt::VolumeGone) => {
                format!("its volume {} does not exist", self.volume())
            }
            TieKind::Unverified(Doubt::Nodes(why)) => format!(
                "it is unknown whether another node reaches its volume {}: {why}",
                self.volume()
            ),
            TieKind::Goes(wanted) => wanted.to_string(),
            _ => String::new(),
        }
    }
}

impl Display for Wanted {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let why = match self {
            Self::Deleted(deletion) => {
                let at = deletion.at;
                return match joined(&deletion.finalizers, ", ") {
                    Some(finalizers) => write!(
                        f,
                        "it was deleted at {at:.0}, and goes once its last pod and the finalizers {finalizers} are gone"
                    ),
                    None => write!(
                        f,
                        "it was deleted at {at:.0}, before its node became NotReady, and goes with its last pod"
                    ),
                };
            }
            Self::OwnedWithoutSet => {
                "no StatefulSet controls the pod, which would say whether it is wanted again"
            }
            Self::OwnedAndWanted => "its StatefulSet wants the pod again",
            Self::OwnedAndSetUnread(None) => "its StatefulSet was not read",
            Self::OwnedAndSetUnread(Some(why)) => {
                &format!("its StatefulSet could not be read: {why}")
            }
        };
        write!(
            f,
            "the pod owns it, so that it goes with the pod, and {why}"
        )
    }
}

impl Display for SharedDisk {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let why = "nothing keeps a second machine from writing to it";
        match self {
            Self::RawBlock { pvc } => {
                write!(f, "PVC {pvc} is ReadWriteMany and a raw block device")
            }
            Self::Network { pvc, volume, kind } => {
                write!(f, "volume {volume} of PVC {pvc} is {kind}; {why}")
            }
            Self::Unattached {
                pvc,
                volume,
                driver,
            } => write!(
                f,
                "volume {volume} of PVC {pvc} needs no attachment (driver {driver}), so {why}"
            ),
            Self::OfPod(disk) => write!(f, "{disk}; {why}"),
            Self::VirtualMachine(name) => write!(f, "it belongs to the virtual machine {name}"),
        }
    }
}

fn of_leaf(leaf: &Leaf, f: &mut Formatter<'_>) -> fmt::Result {
    let (maker, marks) = (leaf.maker, leaf.marks.join(", "));
    let link_is_cut = "There, NotReady usually means that the link is cut";
    let (what, means) = match leaf.kind {
        LeafKind::Kosmos => (
            leaf.cluster.as_ref().map_or_else(
                || "is a Kosmos leaf node and stands for another cluster".to_owned(),
                |cluster| format!("stands for the Kosmos leaf cluster {cluster}"),
            ),
            link_is_cut,
        ),
        LeafKind::Virtual => (
            format!("is a virtual node of {maker}, not a machine"),
            "There, NotReady means that the program that runs its pods does not report",
        ),
        LeafKind::Edge => (
            format!("is an edge node of {maker}"),
            "It keeps working without its cluster, so NotReady means that the link is cut",
        ),
        LeafKind::Selected => ("matches --leaf-node-selector".to_owned(), link_is_cut),
        LeafKind::NeverReported => {
            return write!(
                f,
                "No kubelet ever reported on its node (seen: {marks}), so that nothing shows a machine there: what it stands for \
                 may run the pod."
            );
        }
    };
    write!(
        f,
        "Its node {what} (seen: {marks}). {means}: the pod is probably still running."
    )
}

/// Says that the grace period is cut short, as a sentence to follow others; empty if it is not.
fn of_the_cut(cut: Option<GraceCut>) -> String {
    cut.map_or_else(String::new, |cut| format!(" Its {cut}."))
}

fn writes_to(paths: &[String]) -> String {
    format!(
        "It may write to {} on the dead node, by a hostPath of its own: a replacement would start without what is there.",
        paths.join(", ")
    )
}

fn deleted(given_up: &[Tie]) -> String {
    let names = given_up.iter().map(|tie| match &tie.volume {
        Some(volume) => format!("{} (volume {volume})", tie.pvc),
        None => tie.pvc.clone(),
    });
    format!("Deleted after the node failed: PVC {}.", names.format(", "))
}

/// Formats a directory of a node as a phrase.
fn of_directory(place: &Place) -> String {
    match place {
        Place::Local(path) => format!("local, at {path}"),
        Place::HostPath(path) => format!("hostPath, at {path}"),
        Place::StrictLocal | Place::Driver => String::new(),
    }
}

/// Formats terms as a phrase: "zone in (a, b) or zone in (c)".
fn spell(terms: &[AffinityTerm]) -> String {
    let term = |term: &AffinityTerm| {
        let requirements = term.requirements.iter().map(|requirement| {
            let Requirement {
                key,
                operator,
                values,
            } = requirement;
            match operator.as_str() {
                "Exists" | "DoesNotExist" => format!("{key} {operator}"),
                _ if *values == [""] => format!("{key} {operator} (\"\")"),
                _ => format!("{key} {operator} ({})", values.join(", ")),
            }
        });
        let fields = term.fields.then(|| "a field of the node".to_owned());
        requirements.chain(fields).join(" and ")
    };
    let mut terms = terms.iter().map(term).filter(|term| !term.is_empty());
    match terms.join(" or ").as_str() {
        "" => "what no node has".to_owned(),
        terms => terms.to_owned(),
    }
}

/// Counts the containers in each state, as a phrase.
fn states(containers: Containers) -> String {
    let counts = [
        (containers.running, "running"),
        (containers.terminated, "terminated"),
        (containers.waiting, "waiting"),
    ];
    let seen = counts.into_iter().filter(|(count, _)| *count > 0);
    seen.map(|(count, state)| format!("{count} {state}"))
        .join(", ")
}

/// Formats the last heartbeat of a machine, its age and its source, as a sentence.
pub(super) fn last_heartbeat(last: Option<&Heard>, now: Timestamp) -> String {
    let Some(last) = last else {
        return "No heartbeat of its machine is known.".to_owned();
    };
    let when = heard(&last.no_later_than(now), now);
    format!("The last heartbeat of its machine was {when}.")
}

/// Formats a heartbeat with its age: "its kubelet renewed its lease 4s ago".
pub fn reported(Heard { by, at, what }: &Heard, now: Timestamp) -> String {
    let age = human_duration(now.duration_since(*at));
    let what = what.as_deref().unwrap_or("something on it");
    match by {
        SignBy::OtherLease => format!("{what}, was renewed {age} ago"),
        SignBy::Program => format!("{what} wrote to its own pod {age} ago"),
        SignBy::Lease => format!("its kubelet renewed its lease {age} ago"),
        SignBy::ApiServer => format!("its API server renewed its lease {age} ago"),
        SignBy::Kubelet => "its kubelet reports that itself".to_owned(),
        by => format!("{by} reported {age} ago"),
    }
}

/// Formats the age and the source of a heartbeat: "4s ago (lease)".
pub fn heard(Heard { by, at, .. }: &Heard, now: Timestamp) -> String {
    format!("{} ago ({by})", about(now.duration_since(*at)))
}

/// Formats the sentence about a needed fact that could not be read; `what` names the fact and the
/// cause.
pub fn unread_facts(what: &str) -> String {
    format!(
        "A fact that the decision needs could not be read: {}.",
        what.trim_end_matches('.')
    )
}
