//! Tests of the rules: each by itself at its boundaries, then their order, then their sentences.

use expect_test::expect;

use jiff::Timestamp;

use super::*;
use crate::{
    facts::{
        AffinityTerm, ClaimFacts, ClaimState, ClaimUse, Claims, Doubt, FencingMark, Heard,
        Identity, JOB_TRACKING, Leaf, LeafKind, NodeFacts, NodeRead, Owned, Owner, Ready,
        Requirement, ResourceVersion, SignBy, Storage, Unread, VolumeFacts,
    },
    samples::{self, now},
    words::spoken,
};

const FOREIGN: &str = "example.com/backup";

fn span(text: &str) -> SignedDuration {
    text.parse().unwrap()
}

fn ago(text: &str) -> Timestamp {
    now() - span(text)
}

fn ahead(text: &str) -> Timestamp {
    now() + span(text)
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn yes() -> String {
    "true".to_owned()
}

fn not_read() -> Unread {
    Unread("it is forbidden".to_owned())
}

fn policy() -> Policy {
    Policy {
        reap_older_than: span("10m"),
        node_not_ready_for: span("10m"),
        kubelet_alive: KubeletAlive::HoldUnique,
        manual_owner_kinds: Vec::new(),
        reap_scratch: false,
    }
}

/// A pod, and what was read of its node.
struct Pod(PodFacts, Option<NodeRead>);

/// A pod of ds06 that only the last rule applies to.
fn pod() -> Pod {
    Pod(samples::pod(), node().into())
}

impl Pod {
    fn on(mut self, look: impl Into<Option<NodeRead>>) -> Self {
        self.1 = look.into();
        self
    }

    fn judged_by(&self, policy: &Policy) -> Reason {
        Case::new(now(), policy, self.1.as_ref(), &self.0).decide()
    }

    fn overdue(mut self, by: &str) -> Self {
        self.0.deletion_deadline = ago(by);
        self
    }

    fn due_in(mut self, time: &str) -> Self {
        self.0.deletion_deadline = ahead(time);
        self
    }

    fn without_node(mut self) -> Self {
        self.0.node = None;
        self
    }

    fn finished(mut self) -> Self {
        self.0.finished = true;
        self
    }

    fn mirror(mut self) -> Self {
        self.0.mirror = true;
        self
    }

    fn opted_out(mut self) -> Self {
        self.0.opted_out = Some(yes());
        self
    }

    fn namespace(mut self, opted_out: Result<Option<String>, Unread>) -> Self {
        self.0.namespace_opted_out = opted_out;
        self
    }

    fn held_by(mut self, finalizers: &[&str]) -> Self {
        self.0.finalizers = owned(finalizers);
        self
    }

    fn grace(mut self, seconds: Option<i64>) -> Self {
        self.0.grace_seconds = seconds;
        self
    }

    fn owner(mut self, kind: Option<&str>) -> Self {
        self.0.owner = kind.map(|kind| Owner {
            kind: kind.to_owned(),
            name: "db".to_owned(),
        });
        self.0.workload.clone_from(&self.0.owner);
        let (group, version) = match kind {
            Some("ReplicationController") => ("", "v1"),
            Some("Job") => ("batch/", "v1"),
            _ => ("apps/", "v1"),
        };
        self.0.controller = kind.map(|_| Identity {
            api_version: format!("{group}{version}"),
            uid: "o-1".into(),
        });
        self
    }

    fn workload(mut self, kind: &str) -> Self {
        self.0.workload = Some(Owner {
            kind: kind.to_owned(),
            name: "db".to_owned(),
        });
        self
    }

    fn controlled_by(mut self, kind: &str, api_version: &str) -> Self {
        self = self.owner(Some(kind));
        self.0.controller = Some(Identity {
            api_version: api_version.to_owned(),
            uid: "o-1".into(),
        });
        self
    }

    /// One of several alike.
    fn one_of_many(self) -> Self {
        self.owner(Some("ReplicaSet"))
    }

    fn with(mut self, claim: ClaimFacts) -> Self {
        add(&mut self.0, claim);
        self
    }
}

/// One more claim, about which everything was asked.
fn add(pod: &mut PodFacts, claim: ClaimFacts) {
    let known = pod.claims.known().into_iter().flatten().cloned();
    pod.claims = Claims::Known(known.chain([claim]).collect());
}

struct Node(NodeFacts);

/// ds06, an hour after it died.
fn node() -> Node {
    Node(samples::node())
}

impl Node {
    fn ready(mut self, ready: Ready) -> Self {
        self.0.ready = ready;
        self
    }

    fn since(mut self, since: Option<Timestamp>) -> Self {
        (self.0.ready_since, self.0.tainted_since) = (since, None);
        self
    }

    fn tainted(mut self, since: Timestamp) -> Self {
        self.0.tainted_since = Some(since);
        self
    }

    fn hostname(mut self, hostname: Option<&str>) -> Self {
        self.0.hostname = hostname.map(str::to_owned);
        self
    }

    fn opted_out(mut self) -> Self {
        self.0.opted_out = Some(yes());
        self
    }

    fn reported(mut self, by: SignBy, at: Timestamp) -> Self {
        let period = match by {
            SignBy::VirtHandler => span("5m"),
            SignBy::ApiServer => span("1m"),
            _ => span("11m"),
        };
        self.0.heard.push(Heard { by, at, period });
        self
    }

    fn fenced(self) -> Self {
        self.fenced_by(None)
    }

    fn fenced_by(mut self, set_by: Option<Timestamp>) -> Self {
        self.0.fenced.push(FencingMark {
            mark: "annotation fencing/state=fenced".to_owned(),
            set_by,
        });
        self
    }

    fn leaf(mut self, leaf: Leaf) -> Self {
        self.0.leaf = Some(leaf);
        self
    }

    fn without_lease(mut self) -> Self {
        self.0.heard.retain(|heard| heard.by != SignBy::Lease);
        self
    }

    fn lease_unread(mut self) -> Self {
        self.0.unheard = Some(not_read());
        self.without_lease()
    }

    fn lease_renewed(mut self, at: Timestamp) -> Self {
        self = self.without_lease();
        self.0.heard.push(samples::lease(at));
        self
    }
}

impl From<Node> for Option<NodeRead> {
    fn from(node: Node) -> Self {
        Some(NodeRead::Known(node.0))
    }
}

fn gone() -> NodeRead {
    NodeRead::Gone
}

fn unread() -> NodeRead {
    NodeRead::Unread(not_read())
}

/// For [`Pod::on`].
const NOT_LOOKED_UP: Option<NodeRead> = None;

fn kosmos_leaf() -> Leaf {
    Leaf {
        kind: LeafKind::Kosmos,
        maker: "Kosmos",
        marks: owned(&["label kosmos.io/node", "taint kosmos.io/node"]),
        cluster: Some("edge-1".to_owned()),
    }
}

fn selected_leaf() -> Leaf {
    Leaf {
        kind: LeafKind::Selected,
        maker: "",
        marks: owned(&["label selector type=virtual-kubelet"]),
        cluster: None,
    }
}

fn volume(storage: Storage, affinity: Vec<AffinityTerm>) -> VolumeFacts {
    let reclaim_policy = Some("Delete".to_owned());
    VolumeFacts {
        name: "pv-1".to_owned(),
        reclaim_policy,
        storage,
        disk: None,
        affinity,
    }
}

fn local() -> VolumeFacts {
    volume(Storage::Local("/mnt/d1".to_owned()), Vec::new())
}

/// A volume behind a driver. Nobody has asked which nodes satisfy its terms.
fn reachable(terms: Vec<Vec<Requirement>>) -> VolumeFacts {
    volume(Storage::Driver, terms.into_iter().map(term).collect())
}

fn term(requirements: Vec<Requirement>) -> AffinityTerm {
    AffinityTerm {
        requirements,
        ..AffinityTerm::default()
    }
}

/// The same volume, its terms satisfied by these nodes.
fn satisfied(mut volume: VolumeFacts, by: &[&str]) -> VolumeFacts {
    volume
        .affinity
        .iter_mut()
        .for_each(|term| term.satisfied_by = Some(Ok(owned(by))));
    volume
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> Requirement {
    Requirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: owned(values),
    }
}

fn within(key: &str, values: &[&str]) -> Requirement {
    requirement(key, "In", values)
}

fn claim(state: ClaimState) -> ClaimFacts {
    ClaimFacts {
        name: "data".to_owned(),
        ephemeral: false,
        users: Vec::new(),
        renewed: None,
        owned: Owned::No,
        state,
    }
}

fn bound(volume: VolumeFacts) -> ClaimFacts {
    claim(ClaimState::Bound {
        uid: "c-1".into(),
        shared_disk: false,
        scratch: false,
        give_up: None,
        created: Some(ago("2400h")),
        version: Some("c-v1".into()),
        volume,
    })
}

fn shared(volume: VolumeFacts) -> ClaimFacts {
    claim(ClaimState::Bound {
        uid: "c-1".into(),
        shared_disk: true,
        scratch: false,
        give_up: None,
        created: Some(ago("2400h")),
        version: Some("c-v1".into()),
        volume,
    })
}

fn not_bound() -> ClaimFacts {
    claim(ClaimState::WithoutVolume {
        missing: None,
        phase: Some("Pending".to_owned()),
    })
}

fn stuck() -> Reason {
    Reason::Stuck {
        given_up: Vec::new(),
        answered: false,
        notes: Vec::new(),
    }
}

fn not_overdue(overdue: SignedDuration) -> Reason {
    Reason::NotOverdue {
        overdue,
        threshold: span("10m"),
    }
}

fn facts_unread(what: &str) -> Reason {
    Reason::FactsUnread(what.to_owned())
}

fn recovering(lease_age: SignedDuration) -> Reason {
    Reason::NodeRecovering { lease_age }
}

fn just_failed(not_ready_for: Option<SignedDuration>) -> Reason {
    Reason::NodeJustFailed {
        not_ready_for,
        threshold: span("10m"),
    }
}

fn pinned(bond: &str) -> PinnedClaim {
    PinnedClaim {
        claim: "data".to_owned(),
        claim_uid: "c-1".into(),
        volume: "pv-1".to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        bond: bond.to_owned(),
        given_up: Err(undeclared("data")),
        answered: false,
        doubt: Some(Doubt::unread(
            "it was not asked whether it would be created again",
        )),
    }
}

fn undeclared(claim: &str) -> String {
    format!("claim {claim} is not annotated pod-reaper.io/scratch: \"true\"")
}

fn local_volume(bond: &str) -> Reason {
    Reason::LocalVolume {
        claims: vec![pinned(bond)],
        kept: None,
    }
}

fn unverified_claim(claim: &str, missing_volume: Option<&str>, cause: &str) -> UnverifiedClaim {
    let [claim, cause] = [claim, cause].map(str::to_owned);
    UnverifiedClaim {
        claim,
        missing_volume: missing_volume.map(str::to_owned),
        cause,
    }
}

fn unverified(cause: &str) -> Reason {
    Reason::VolumeUnverified {
        claims: vec![unverified_claim("data", None, cause)],
    }
}

fn without_volume(volume: &str) -> Reason {
    let cause = format!("its volume {volume} does not exist");
    Reason::VolumeUnverified {
        claims: vec![unverified_claim("data", Some(volume), &cause)],
    }
}

/// Reaped, with the note that its replacement has to find such a node.
fn free(to: &str) -> Reason {
    let note = format!("its replacement waits for a node that its volume allows: pv-1 needs {to}");
    Reason::Stuck {
        given_up: Vec::new(),
        answered: false,
        notes: vec![note],
    }
}

fn confined(place: &str) -> Reason {
    let [claim, volume, place] = ["data", "pv-1", place].map(str::to_owned);
    Reason::VolumeConfined {
        claims: vec![ConfinedClaim {
            claim,
            volume,
            place,
        }],
    }
}

/// Held because of what was reported.
fn alive(ready: Ready, signs: &[&str]) -> Reason {
    Reason::KubeletAlive {
        ready,
        signs: owned(signs),
    }
}

fn reported(by: SignBy, age: &str) -> String {
    format!("{by} reported {age} ago")
}

type Row = (&'static str, Pod, Reason);

#[track_caller]
fn check(rows: impl IntoIterator<Item = Row>) {
    check_under(&policy(), rows);
}

#[track_caller]
fn check_under(policy: &Policy, rows: impl IntoIterator<Item = Row>) {
    for (name, pod, reason) in rows {
        assert_eq!(pod.judged_by(policy), reason, "{name}");
    }
}

#[test]
fn rule_1_a_mirror_pod_is_left() {
    check([
        ("on a dead node", pod().mirror(), Reason::MirrorPod),
        (
            "on a node that is gone",
            pod().on(gone()).mirror(),
            Reason::MirrorPod,
        ),
        (
            "on a node that was not looked up",
            pod().on(NOT_LOOKED_UP).mirror(),
            Reason::MirrorPod,
        ),
    ]);
}

#[test]
fn rule_2_a_pod_that_is_opted_out_is_left() {
    let out = |who| Reason::OptedOut {
        who,
        value: "true".to_owned(),
    };
    check([
        ("the pod", pod().opted_out(), out(Optout::Pod)),
        (
            "its namespace",
            pod().namespace(Ok(Some(yes()))),
            out(Optout::Namespace),
        ),
        ("its node", pod().on(node().opted_out()), out(Optout::Node)),
        (
            "all three",
            pod()
                .on(node().opted_out())
                .opted_out()
                .namespace(Ok(Some(yes()))),
            out(Optout::Pod),
        ),
        (
            "its namespace and its node",
            pod().on(node().opted_out()).namespace(Ok(Some(yes()))),
            out(Optout::Namespace),
        ),
        (
            "the pod, the namespace unread",
            pod().opted_out().namespace(Err(not_read())),
            out(Optout::Pod),
        ),
        (
            "the pod, the node unread",
            pod().on(unread()).opted_out(),
            out(Optout::Pod),
        ),
        (
            "its namespace, the node unread",
            pod().on(unread()).namespace(Ok(Some(yes()))),
            out(Optout::Namespace),
        ),
    ]);
}

#[test]
fn rule_3_a_pod_whose_node_is_gone_is_left() {
    let no_node = || Reason::NodeGone { node: None };
    let node_gone = || Reason::NodeGone {
        node: Some("ds06".to_owned()),
    };
    check([
        ("the node does not exist", pod().on(gone()), node_gone()),
        (
            "nor is the pod overdue",
            pod().on(gone()).overdue("1m"),
            node_gone(),
        ),
        (
            "nor can the namespace be read",
            pod().on(gone()).namespace(Err(not_read())),
            node_gone(),
        ),
        (
            "the pod was never given one",
            pod().on(NOT_LOOKED_UP).without_node(),
            no_node(),
        ),
        (
            "only the Job controller holds it",
            pod().on(gone()).held_by(&[JOB_TRACKING]),
            node_gone(),
        ),
        (
            "a local volume",
            pod().on(gone()).with(bound(local())),
            node_gone(),
        ),
    ]);
}

#[test]
fn where_there_is_no_node_finalizers_are_for_a_person() {
    let held = || Reason::Finalizers {
        finalizers: owned(&[FOREIGN]),
    };
    let forced = Reason::AlreadyForced {
        finalizers: owned(&[FOREIGN]),
    };
    let gone_and_held = || pod().on(gone()).held_by(&[FOREIGN]);
    check([
        ("the node is gone", gone_and_held(), held()),
        (
            "the pod was never given one",
            pod().on(NOT_LOOKED_UP).without_node().held_by(&[FOREIGN]),
            held(),
        ),
        ("forced already", gone_and_held().grace(Some(0)), forced),
        (
            "within the threshold",
            gone_and_held().overdue("1m"),
            not_overdue(span("1m")),
        ),
        (
            "the namespace is unread",
            gone_and_held().namespace(Err(not_read())),
            held(),
        ),
        (
            "with a local volume",
            gone_and_held().with(bound(local())),
            held(),
        ),
        (
            "the node is unread",
            pod().on(unread()).held_by(&[FOREIGN]),
            facts_unread("the node: it is forbidden"),
        ),
    ]);
}

#[test]
fn rule_4_a_pod_on_a_ready_node_is_left() {
    let ready = || node().ready(Ready::True);
    check([
        ("just so", pod().on(ready()), Reason::NodeReady),
        (
            "within grace",
            pod().on(ready()).due_in("30s"),
            Reason::NodeReady,
        ),
        (
            "a leaf",
            pod().on(ready().leaf(kosmos_leaf())),
            Reason::NodeReady,
        ),
        (
            "its lease expired long ago",
            pod().on(ready().lease_renewed(ago("1h"))),
            Reason::NodeReady,
        ),
        (
            "Ready False is not Ready",
            pod().one_of_many().on(node().ready(Ready::False)),
            beside(SAYS_SO),
        ),
        (
            "Ready Unknown is not Ready",
            pod().on(node().ready(Ready::Unknown)),
            stuck(),
        ),
        (
            "Ready absent is not Ready",
            pod().on(node().ready(Ready::Absent)),
            stuck(),
        ),
    ]);
}

#[test]
fn rule_5_a_pod_that_is_not_overdue_waits() {
    check([
        ("exactly at the threshold", pod().overdue("10m"), stuck()),
        (
            "one second below",
            pod().overdue("9m 59s"),
            not_overdue(span("9m 59s")),
        ),
        (
            "a millisecond below",
            pod().overdue("9m 59s 999ms"),
            not_overdue(span("9m 59s 999ms")),
        ),
        ("one second above", pod().overdue("10m 1s"), stuck()),
        (
            "at its deadline",
            pod().overdue("0s"),
            not_overdue(SignedDuration::ZERO),
        ),
        (
            "within grace, for longer than the threshold",
            pod().due_in("1h"),
            not_overdue(-span("1h")),
        ),
        (
            "the node is unread",
            pod().on(unread()).overdue("1m"),
            not_overdue(span("1m")),
        ),
        (
            "the node was not looked up",
            pod().on(NOT_LOOKED_UP).overdue("1m"),
            not_overdue(span("1m")),
        ),
    ]);
    let at_once = Policy {
        reap_older_than: SignedDuration::ZERO,
        ..policy()
    };
    let waits = Reason::NotOverdue {
        overdue: -span("1s"),
        threshold: SignedDuration::ZERO,
    };
    check_under(
        &at_once,
        [
            ("threshold 0, at its deadline", pod().overdue("0s"), stuck()),
            ("threshold 0, a second before it", pod().due_in("1s"), waits),
        ],
    );
}

#[test]
fn the_grace_period_is_not_subtracted_again() {
    check([
        (
            "grace is 1h, past it for 10m",
            pod().grace(Some(3600)).overdue("10m"),
            stuck(),
        ),
        (
            "no grace is known",
            pod().grace(None).overdue("10m"),
            stuck(),
        ),
        (
            "grace is 0",
            pod().grace(Some(0)).overdue("9m"),
            not_overdue(span("9m")),
        ),
    ]);
}

#[test]
fn rule_6_a_pod_on_a_leaf_node_is_for_a_person() {
    let leaf = Reason::LeafNode;
    check([
        (
            "marked by Kosmos",
            pod().on(node().leaf(kosmos_leaf())),
            leaf(kosmos_leaf()),
        ),
        (
            "selected",
            pod().on(node().leaf(selected_leaf())),
            leaf(selected_leaf()),
        ),
        (
            "Ready False",
            pod().on(node().ready(Ready::False).leaf(kosmos_leaf())),
            leaf(kosmos_leaf()),
        ),
        (
            "held by a finalizer",
            pod().on(node().leaf(kosmos_leaf())).held_by(&[FOREIGN]),
            leaf(kosmos_leaf()),
        ),
        (
            "with a local volume",
            pod().on(node().leaf(kosmos_leaf())).with(bound(local())),
            leaf(kosmos_leaf()),
        ),
    ]);
    assert_eq!(
        Reason::LeafNode(kosmos_leaf()).code().as_str(),
        "kosmos-leaf"
    );
    assert_eq!(
        Reason::LeafNode(selected_leaf()).code().as_str(),
        "leaf-node"
    );
}

#[test]
fn rule_7_what_was_not_read_waits() {
    let why = || facts_unread("the node's lease: it is forbidden");
    check([
        (
            "the node",
            pod().on(unread()),
            facts_unread("the node: it is forbidden"),
        ),
        (
            "the node was not looked up",
            pod().on(NOT_LOOKED_UP),
            facts_unread("the node: it was not looked up"),
        ),
        (
            "the namespace",
            pod().namespace(Err(not_read())),
            facts_unread("the namespace: it is forbidden"),
        ),
        ("the lease", pod().on(node().lease_unread()), why()),
        (
            "the lease, Ready absent",
            pod().on(node().ready(Ready::Absent).lease_unread()),
            why(),
        ),
        (
            "the lease, for any pod",
            pod().one_of_many().on(node().lease_unread()),
            why(),
        ),
        (
            "the lease, where Ready says already that the kubelet lives",
            pod().on(node().ready(Ready::False).lease_unread()),
            alive(Ready::False, &[SAYS_SO]),
        ),
    ]);
    let nobody = Policy {
        kubelet_alive: KubeletAlive::Reap,
        ..policy()
    };
    check_under(
        &nobody,
        [(
            "the lease, though nobody is protected",
            pod().on(node().lease_unread()),
            why(),
        )],
    );
}

/// What a Ready that is False shows.
const SAYS_SO: &str = "its kubelet reports that itself";

#[test]
fn rule_8_a_node_whose_lease_was_renewed_since_it_is_not_ready_is_recovering() {
    let renewed = |age: &str| pod().on(node().lease_renewed(ago(age)));
    let lives = |ready, age: &str| {
        alive(
            ready,
            &[&format!("its kubelet renewed its lease {age} ago")],
        )
    };
    let both = |failed: &str, renewed: &str| {
        pod().on(node().since(Some(ago(failed))).lease_renewed(ago(renewed)))
    };
    // It counts for as long as the node has to be NotReady, or the lease holds where that is longer.
    check([
        ("just now", renewed("0s"), recovering(SignedDuration::ZERO)),
        (
            "longer ago than it holds",
            renewed("45s"),
            recovering(span("45s")),
        ),
        (
            "a second before it no longer counts",
            renewed("9m 59s"),
            recovering(span("9m 59s")),
        ),
        ("when it no longer counts", renewed("10m"), stuck()),
        (
            "in the future",
            pod().on(node().lease_renewed(ahead("1h"))),
            recovering(-span("1h")),
        ),
        ("never", pod().on(node().without_lease()), stuck()),
        ("as the node failed", renewed("1h"), stuck()),
        (
            "Ready absent",
            pod().on(node().ready(Ready::Absent).lease_renewed(now())),
            recovering(span("0s")),
        ),
        (
            "Ready False",
            pod().on(node().ready(Ready::False).lease_renewed(now())),
            alive(
                Ready::False,
                &["its kubelet renewed its lease 0s ago", SAYS_SO],
            ),
        ),
        (
            "whatever the pod",
            renewed("45s").one_of_many(),
            recovering(span("45s")),
        ),
    ]);
    let at_once = Policy {
        node_not_ready_for: SignedDuration::ZERO,
        ..policy()
    };
    check_under(
        &at_once,
        [
            (
                "asked for 0, within its duration",
                both("5m", "39s"),
                recovering(span("39s")),
            ),
            ("asked for 0, at its duration", both("5m", "40s"), stuck()),
            (
                "NotReady for almost 12 times that",
                both("7m 59s", "39s"),
                recovering(span("39s")),
            ),
            (
                "for 12 times",
                both("8m", "39s"),
                lives(Ready::Unknown, "39s"),
            ),
            (
                "a second later than the failure",
                both("31s", "30s"),
                recovering(span("30s")),
            ),
            ("as it failed", both("30s", "30s"), stuck()),
        ],
    );
    // A kubelet that restarts for ever does not recover.
    check([
        (
            "NotReady for almost 12 times that",
            both("1h 59m 59s", "45s"),
            recovering(span("45s")),
        ),
        (
            "for 12 times",
            both("2h", "45s"),
            lives(Ready::Unknown, "45s"),
        ),
    ]);
}

#[test]
fn rule_9_a_node_that_has_just_failed_is_given_time() {
    check([
        (
            "exactly long enough",
            pod().on(node().since(Some(ago("10m")))),
            stuck(),
        ),
        (
            "a second short",
            pod().on(node().since(Some(ago("9m 59s")))),
            just_failed(Some(span("9m 59s"))),
        ),
        (
            "since the future",
            pod().on(node().since(Some(ahead("1h")))),
            just_failed(None),
        ),
        (
            "tainted later",
            pod().on(node().since(Some(ago("2h"))).tainted(ago("9m"))),
            just_failed(Some(span("9m"))),
        ),
        (
            "tainted earlier",
            pod().on(node().since(Some(ago("9m"))).tainted(ago("2h"))),
            just_failed(Some(span("9m"))),
        ),
        (
            "since the future, tainted long ago",
            pod().on(node().since(Some(ahead("1h"))).tainted(ago("2h"))),
            stuck(),
        ),
        (
            "tainted, since no one knows when",
            pod().on(node().since(None).tainted(ago("2h"))),
            stuck(),
        ),
        (
            "tainted in the future",
            pod().on(node().tainted(ahead("1m"))),
            just_failed(Some(-span("1m"))),
        ),
        (
            "since no one knows when",
            pod().on(node().since(None)),
            just_failed(None),
        ),
        (
            "Ready False as well",
            pod().on(node().ready(Ready::False).since(Some(ago("1m")))),
            just_failed(Some(span("1m"))),
        ),
        (
            "though its kubelet lives",
            pod().on(node()
                .ready(Ready::False)
                .since(Some(ago("1m")))
                .lease_renewed(now())),
            just_failed(Some(span("1m"))),
        ),
    ]);
    let at_once = Policy {
        node_not_ready_for: SignedDuration::ZERO,
        ..policy()
    };
    let never = Reason::NodeJustFailed {
        not_ready_for: None,
        threshold: SignedDuration::ZERO,
    };
    check_under(
        &at_once,
        [
            (
                "asked for 0, just now",
                pod().on(node().since(Some(now()))),
                stuck(),
            ),
            (
                "asked for 0, since no one knows when",
                pod().on(node().since(None)),
                never,
            ),
        ],
    );
}

#[test]
fn rule_10_what_was_heard_since_the_failure_protects_a_unique_pod() {
    use SignBy::{ApiServer, NodeMonitoring, ProblemDetector, VirtHandler};
    let heard = |by, at| pod().on(node().reported(by, at));
    let held = |by, age| alive(Ready::Unknown, &[&reported(by, age)]);
    let at_once = Policy {
        node_not_ready_for: SignedDuration::ZERO,
        ..policy()
    };
    let server = || {
        alive(
            Ready::Unknown,
            &["its API server renewed its lease 59s ago"],
        )
    };
    check_under(
        &at_once,
        [
            (
                "detector",
                heard(ProblemDetector, ago("10m 59s")),
                held(ProblemDetector, "10m 59s"),
            ),
            (
                "detector, at its end",
                heard(ProblemDetector, ago("11m")),
                stuck(),
            ),
            (
                "EKS' agent",
                heard(NodeMonitoring, ago("10m 59s")),
                held(NodeMonitoring, "10m 59s"),
            ),
            (
                "EKS' agent, at its end",
                heard(NodeMonitoring, ago("11m")),
                stuck(),
            ),
            (
                "virt-handler",
                heard(VirtHandler, ago("4m 59s")),
                held(VirtHandler, "4m 59s"),
            ),
            (
                "virt-handler, at its end",
                heard(VirtHandler, ago("5m")),
                stuck(),
            ),
            ("API server", heard(ApiServer, ago("59s")), server()),
            (
                "API server, at its end",
                heard(ApiServer, ago("1m")),
                stuck(),
            ),
            (
                "as it failed",
                pod().on(node()
                    .since(Some(ago("2m")))
                    .reported(VirtHandler, ago("2m"))),
                stuck(),
            ),
            (
                "a second after",
                pod().on(node()
                    .since(Some(ago("2m")))
                    .reported(VirtHandler, ago("1m 59s"))),
                held(VirtHandler, "1m 59s"),
            ),
            (
                "before its taint",
                pod().on(node()
                    .since(Some(ago("5m")))
                    .tainted(ago("2m"))
                    .reported(VirtHandler, ago("3m"))),
                stuck(),
            ),
        ],
    );
    // Whoever waits longer before a node counts as dead believes what was heard for longer.
    check([
        (
            "virt-handler, ten minutes asked for",
            heard(VirtHandler, ago("9m 59s")),
            held(VirtHandler, "9m 59s"),
        ),
        ("no longer", heard(VirtHandler, ago("10m")), stuck()),
        (
            "each is named",
            pod().on(node()
                .reported(ProblemDetector, ago("9m"))
                .reported(VirtHandler, ahead("10s"))),
            alive(
                Ready::Unknown,
                &[
                    &reported(ProblemDetector, "9m"),
                    &reported(VirtHandler, "0s"),
                ],
            ),
        ),
        (
            "Ready False, however old the lease",
            pod().on(node().ready(Ready::False)),
            alive(Ready::False, &[SAYS_SO]),
        ),
        (
            "Ready absent, and nothing heard",
            pod().on(node().ready(Ready::Absent).without_lease()),
            stuck(),
        ),
    ]);
}

const NOTHING_BACK: &str = "nothing brings it back: it has no controller";

fn bare() -> Reason {
    Reason::Stuck {
        given_up: Vec::new(),
        answered: false,
        notes: vec![NOTHING_BACK.to_owned()],
    }
}

/// Reaped from a node that shows that it lives.
fn beside(sign: &str) -> Reason {
    let note = format!(
        "its containers there may still run until node ds06 is repaired or powered off: {sign}"
    );
    Reason::Stuck {
        given_up: Vec::new(),
        answered: false,
        notes: vec![note],
    }
}

#[test]
fn rule_10_protects_whom_the_operator_wants() {
    let own = |ephemeral| ClaimFacts {
        ephemeral,
        owned: Owned::Alone,
        ..claim(ClaimState::Absent)
    };
    let on = |pod: Pod| pod.on(node().ready(Ready::False));
    let mounting = |mut pod: Pod| {
        pod.0.own_volume = Some("volume data".to_owned());
        pod
    };
    let rows = || {
        [
            ("StatefulSet", on(pod()), true),
            ("a kind nobody knows", on(pod().owner(Some("Impala"))), true),
            ("ReplicaSet", on(pod().one_of_many()), false),
            (
                "another's ReplicaSet",
                on(pod().controlled_by("ReplicaSet", "example.com/v1")),
                true,
            ),
            (
                "ReplicationController",
                on(pod().controlled_by("ReplicationController", "v1")),
                false,
            ),
            ("Job", on(pod().controlled_by("Job", "batch/v1")), false),
            (
                "Job, not let go of",
                on(pod()
                    .controlled_by("Job", "batch/v1")
                    .held_by(&[JOB_TRACKING])),
                true,
            ),
            (
                "another's Job",
                on(pod().controlled_by("Job", "batch.volcano.sh/v1alpha1")),
                true,
            ),
            (
                "DaemonSet",
                on(pod().controlled_by("DaemonSet", "apps/v1")),
                true,
            ),
            ("nobody's", on(pod().owner(None)), true),
            (
                "ReplicaSet, with a claim",
                on(pod().one_of_many().with(claim(ClaimState::Absent))),
                true,
            ),
            (
                "ReplicaSet, with one that it owns",
                on(pod().one_of_many().with(own(false))),
                true,
            ),
            (
                "ReplicaSet, with a generic ephemeral one",
                on(pod().one_of_many().with(own(true))),
                false,
            ),
            (
                "ReplicaSet, with another volume",
                on(mounting(pod().one_of_many())),
                true,
            ),
        ]
    };
    for (name, pod, unique) in rows() {
        let held = || alive(Ready::False, &[SAYS_SO]);
        let reaped = || {
            let Reason::Stuck { mut notes, .. } = beside(SAYS_SO) else {
                unreachable!("it is")
            };
            if pod.0.controller.is_none() {
                notes.insert(0, NOTHING_BACK.to_owned());
            }
            let mut claims = pod.0.claims.known().into_iter().flatten();
            if claims.any(|claim| claim.owned == Owned::Alone) {
                notes.insert(
                    0,
                    "claim data is its own alone and goes with it, data included".to_owned(),
                );
            }
            Reason::Stuck {
                given_up: Vec::new(),
                answered: false,
                notes,
            }
        };
        assert_eq!(pod.0.interchangeable(), !unique, "{name}");
        assert_eq!(
            pod.judged_by(&policy()),
            if unique { held() } else { reaped() },
            "{name}"
        );
        let hold = Policy {
            kubelet_alive: KubeletAlive::Hold,
            ..policy()
        };
        assert_eq!(pod.judged_by(&hold), held(), "{name}, held");
        let reap = Policy {
            kubelet_alive: KubeletAlive::Reap,
            ..policy()
        };
        assert_eq!(pod.judged_by(&reap), reaped(), "{name}, reaped");
    }
}

#[test]
fn the_two_thresholds_are_independent() {
    let patient_with_nodes = Policy {
        reap_older_than: span("1m"),
        node_not_ready_for: span("30m"),
        ..policy()
    };
    let young = Reason::NodeJustFailed {
        not_ready_for: Some(span("20m")),
        threshold: span("30m"),
    };
    check_under(
        &patient_with_nodes,
        [(
            "a young failure, a stuck pod",
            pod().on(node().since(Some(ago("20m")))).overdue("1m"),
            young,
        )],
    );
    let patient_with_pods = Policy {
        reap_older_than: span("30m"),
        node_not_ready_for: span("1m"),
        ..policy()
    };
    let fresh = Reason::NotOverdue {
        overdue: span("20m"),
        threshold: span("30m"),
    };
    check_under(
        &patient_with_pods,
        [(
            "an old failure, a fresh pod",
            pod().on(node().since(Some(ago("1m")))).overdue("20m"),
            fresh,
        )],
    );
}

#[test]
fn rules_11_and_12_finalizers_are_for_a_person() {
    let forced = || Reason::AlreadyForced {
        finalizers: owned(&[FOREIGN]),
    };
    let held = || Reason::Finalizers {
        finalizers: owned(&[FOREIGN]),
    };
    let two = Reason::Finalizers {
        finalizers: owned(&[FOREIGN, "foregroundDeletion"]),
    };
    let by = |finalizers| pod().held_by(finalizers);
    check([
        ("one", by(&[FOREIGN]), held()),
        (
            "two, in their order",
            by(&[FOREIGN, "foregroundDeletion"]),
            two,
        ),
        (
            "one, forced already",
            by(&[FOREIGN]).grace(Some(0)),
            forced(),
        ),
        ("one, grace 1", by(&[FOREIGN]).grace(Some(1)), held()),
        ("one, grace not set", by(&[FOREIGN]).grace(None), held()),
        ("job tracking only", by(&[JOB_TRACKING]), stuck()),
        (
            "job tracking only, forced already",
            by(&[JOB_TRACKING]).grace(Some(0)),
            stuck(),
        ),
        (
            "job tracking and another",
            by(&[JOB_TRACKING, FOREIGN]),
            held(),
        ),
        (
            "another and job tracking, forced already",
            by(&[FOREIGN, JOB_TRACKING]).grace(Some(0)),
            forced(),
        ),
        ("none, forced already", pod().grace(Some(0)), stuck()),
        (
            "one, finished and deleted by hand",
            by(&[FOREIGN]).grace(Some(0)).finished(),
            held(),
        ),
    ]);
}

#[test]
fn the_job_controller_holds_a_pod_by_its_own_finalizer_only() {
    assert!(pod().held_by(&[JOB_TRACKING]).0.held_by_job());
    assert!(pod().held_by(&[FOREIGN, JOB_TRACKING]).0.held_by_job());
    assert!(!pod().held_by(&[FOREIGN]).0.held_by_job());
    assert!(!pod().0.held_by_job());
}

#[test]
fn rule_13_a_volume_on_the_disk_of_the_dead_node_is_for_a_person() {
    let elsewhere = vec![vec![within("kubernetes.io/hostname", &["ds07"])]];
    let local_elsewhere = volume(
        Storage::Local("/mnt/d1".to_owned()),
        elsewhere.into_iter().map(term).collect(),
    );
    let strict = volume(Storage::StrictLocal, Vec::new());
    let host_path = volume(Storage::HostPath("/var/x".to_owned()), Vec::new());
    check([
        (
            "local",
            pod().with(bound(local())),
            local_volume("local, at /mnt/d1"),
        ),
        (
            "hostPath",
            pod().with(bound(host_path)),
            local_volume("hostPath, at /var/x"),
        ),
        (
            "local, whatever it says",
            pod().with(bound(local_elsewhere)),
            local_volume("local, at /mnt/d1"),
        ),
        (
            "Longhorn's",
            pod().with(bound(strict)),
            local_volume("Longhorn, dataLocality strict-local"),
        ),
    ]);
}

#[test]
fn rule_13_a_volume_whose_affinity_names_only_the_dead_node_is_for_a_person() {
    let hostname = || within("kubernetes.io/hostname", &["ds06.example"]);
    let name = || within("metadata.name", &["ds06"]);
    let both = || within("openebs.io/nodename", &["ds06", "ds06.example"]);
    let affinities = [
        (
            "by its hostname",
            vec![vec![hostname()]],
            "kubernetes.io/hostname In (ds06.example)",
        ),
        ("by its name", vec![vec![name()]], "metadata.name In (ds06)"),
        (
            "TopoLVM",
            vec![vec![within("topology.topolvm.io/node", &["ds06"])]],
            "topology.topolvm.io/node In (ds06)",
        ),
        (
            "OpenEBS",
            vec![vec![within("openebs.io/nodename", &["ds06"])]],
            "openebs.io/nodename In (ds06)",
        ),
        (
            "by both",
            vec![vec![both()]],
            "openebs.io/nodename In (ds06, ds06.example)",
        ),
        (
            "and a zone",
            vec![vec![within("zone", &["a", "b"]), name()]],
            "zone In (a, b) and metadata.name In (ds06)",
        ),
        (
            "each term by itself",
            vec![vec![name()], vec![hostname()]],
            "metadata.name In (ds06) or kubernetes.io/hostname In (ds06.example)",
        ),
    ];
    check(affinities.map(|(name, terms, by)| {
        let bond = format!("reachable only from this node, by {by}");
        (
            name,
            pod().with(bound(reachable(terms))),
            local_volume(&bond),
        )
    }));
}

#[test]
fn a_volume_that_another_node_reaches_binds_nothing() {
    let name = |names: &[&str]| within("metadata.name", names);
    let not_here = requirement("metadata.name", "NotIn", &["ds06"]);
    let zone = || within("topology.kubernetes.io/zone", &["a"]);
    let affinities = [
        (
            "to two nodes",
            vec![vec![name(&["ds06", "ds07"])]],
            "metadata.name In (ds06, ds07)",
        ),
        (
            "to another node",
            vec![vec![name(&["ds07"])]],
            "metadata.name In (ds07)",
        ),
        (
            "to a namesake's beginning",
            vec![vec![name(&["ds06-2"])]],
            "metadata.name In (ds06-2)",
        ),
        (
            "to any but this node",
            vec![vec![not_here]],
            "metadata.name NotIn (ds06)",
        ),
        (
            "to a label's presence",
            vec![vec![requirement("ds06", "Exists", &[])]],
            "ds06 Exists",
        ),
        (
            "to a label's absence",
            vec![vec![requirement("ds06", "DoesNotExist", &[])]],
            "ds06 DoesNotExist",
        ),
        (
            "to a number",
            vec![vec![requirement("disks", "Gt", &["2"])]],
            "disks Gt (2)",
        ),
    ];
    for (what, terms, to) in affinities {
        let volume = || reachable(terms.clone());
        check([
            (
                what,
                pod().with(bound(satisfied(volume(), &["ds07"]))),
                free(to),
            ),
            (
                what,
                pod().with(bound(satisfied(volume(), &["ds06", "ds07"]))),
                free(to),
            ),
            (
                what,
                pod().with(bound(satisfied(volume(), &["ds06"]))),
                confined(to),
            ),
            (
                what,
                pod().with(bound(satisfied(volume(), &[]))),
                confined(to),
            ),
            (
                what,
                pod().with(bound(volume())),
                unverified(
                    "it is unknown whether another node reaches its volume pv-1: it was not asked for",
                ),
            ),
        ]);
    }
    let zones = [
        (
            "to a zone",
            vec![vec![zone()]],
            "topology.kubernetes.io/zone In (a)",
        ),
        (
            "to a region",
            vec![vec![within("topology.ebs.csi.aws.com/region", &["ds06"])]],
            "topology.ebs.csi.aws.com/region In (ds06)",
        ),
        (
            "to a zone of this node's name",
            vec![vec![within("rack-zone", &["ds06"])]],
            "rack-zone In (ds06)",
        ),
        (
            "to this node or a zone",
            vec![vec![name(&["ds06"])], vec![zone()]],
            "metadata.name In (ds06) or topology.kubernetes.io/zone In (a)",
        ),
    ];
    // Nobody has to ask, nor does it matter which nodes there are now.
    check(zones.map(|(what, terms, to)| (what, pod().with(bound(reachable(terms))), free(to))));
    check([(
        "without affinity",
        pod().with(bound(reachable(Vec::new()))),
        stuck(),
    )]);
}

#[test]
fn rule_14_a_volume_that_no_other_node_reaches_is_for_a_person() {
    let rack = || within("example.org/rack", &["r1"]);
    let zone = || within("topology.kubernetes.io/zone", &["a"]);
    let racks = |nodes: &[&str]| satisfied(reachable(vec![vec![rack(), zone()]]), nodes);
    let spelled = "example.org/rack In (r1) and topology.kubernetes.io/zone In (a)";
    let mut two = reachable(vec![
        vec![rack()],
        vec![within("example.org/rack", &["r2"])],
    ]);
    two.affinity[0].satisfied_by = Some(Ok(owned(&["ds06"])));
    two.affinity[1].satisfied_by = Some(Ok(owned(&["ds07"])));
    let spelled_two = "example.org/rack In (r1) or example.org/rack In (r2)";
    check([
        (
            "this node alone",
            pod().with(bound(racks(&["ds06"]))),
            confined(spelled),
        ),
        (
            "no node at all",
            pod().with(bound(racks(&[]))),
            confined(spelled),
        ),
        (
            "another one too",
            pod().with(bound(racks(&["ds06", "ds07"]))),
            free(spelled),
        ),
        (
            "another one, by its second term",
            pod().with(bound(two)),
            free(spelled_two),
        ),
        (
            "a node at any place",
            pod().with(bound(reachable(vec![vec![]]))),
            confined("what no node has"),
        ),
    ]);
}

#[test]
fn rule_15_an_affinity_that_cannot_be_asked_about_is_unverified() {
    let fields = |requirements| AffinityTerm {
        fields: true,
        ..term(requirements)
    };
    let by_field = || volume(Storage::Driver, vec![fields(Vec::new())]);
    let why = |cause: &str| {
        unverified(&format!(
            "it is unknown whether another node reaches its volume pv-1: {cause}"
        ))
    };
    let refused = |operator: &str, values: &[&str]| {
        reachable(vec![vec![requirement("disks", operator, values)]])
    };
    let mut unread = reachable(vec![vec![within("rack", &["r1"])]]);
    unread.affinity[0].satisfied_by = Some(Err(not_read()));
    let mut either = volume(
        Storage::Driver,
        vec![fields(Vec::new()), term(vec![within("rack", &["r1"])])],
    );
    either.affinity[1].satisfied_by = Some(Ok(owned(&["ds07"])));
    let free_by_rack = free("a field of the node or rack In (r1)");
    check([
        (
            "by a field",
            pod().with(bound(by_field())),
            why("it asks for a field of the node"),
        ),
        (
            "by no known operator",
            pod().with(bound(refused("Near", &["x"]))),
            why("no label selector says disks Near (x)"),
        ),
        (
            "by an empty value",
            pod().with(bound(refused("In", &[""]))),
            why("it was not asked for"),
        ),
        (
            "by no value",
            pod().with(bound(refused("In", &[]))),
            why("no label selector says disks In ()"),
        ),
        (
            "by what is no value",
            pod().with(bound(refused("In", &["a),b"]))),
            why("disks In (a),b) is not a valid label requirement"),
        ),
        (
            "the answer is unread",
            pod().with(bound(unread)),
            why("it is forbidden"),
        ),
        (
            "another term has a node",
            pod().with(bound(either)),
            free_by_rack,
        ),
    ]);
}

#[test]
fn a_hostname_counts_only_where_the_node_has_it() {
    let claim = || {
        bound(satisfied(
            reachable(vec![vec![within(
                "kubernetes.io/hostname",
                &["ds06.example"],
            )]]),
            &["ds06"],
        ))
    };
    let only_here = || confined("kubernetes.io/hostname In (ds06.example)");
    check([
        (
            "no hostname",
            pod().on(node().hostname(None)).with(claim()),
            only_here(),
        ),
        (
            "another hostname",
            pod().on(node().hostname(Some("ds06"))).with(claim()),
            only_here(),
        ),
    ]);
}

#[test]
fn a_term_without_requirements_matches_no_node() {
    // Kubernetes: an empty term matches no node.
    let name = || vec![within("metadata.name", &["ds06"])];
    let zone = || vec![within("zone", &["a"])];
    let codes = [
        ("empty terms only", vec![vec![], vec![]], "volume-confined"),
        (
            "an empty term beside a pinned one",
            vec![vec![], name()],
            "local-volume",
        ),
        (
            "an empty term beside a free one",
            vec![vec![], zone()],
            "stuck-on-not-ready-node",
        ),
    ];
    for (name, terms, code) in codes {
        assert_eq!(
            pod()
                .with(bound(reachable(terms)))
                .judged_by(&policy())
                .code()
                .as_str(),
            code,
            "{name}"
        );
    }
}

#[test]
fn a_claim_of_the_pods_own_binds_nothing() {
    let of_its_own = |owned, volume| {
        pod().one_of_many().with(ClaimFacts {
            ephemeral: true,
            owned,
            ..bound(volume)
        })
    };
    let own = || Reason::Stuck {
        given_up: Vec::new(),
        answered: false,
        notes: vec!["claim data is its own alone and goes with it, data included".to_owned()],
    };
    let going = |owned, volume| {
        pod().with(ClaimFacts {
            owned,
            ..bound(volume)
        })
    };
    let pinned = || local_volume("local, at /mnt/d1");
    check([
        (
            "made by its volume",
            of_its_own(Owned::Alone, local()),
            own(),
        ),
        (
            "of a former pod, or of nobody",
            of_its_own(Owned::No, local()),
            pinned(),
        ),
        (
            "owned, and nothing wants it again",
            going(Owned::Alone, reachable(Vec::new())),
            own(),
        ),
        (
            "owned and on the disk of the node",
            going(Owned::Alone, local()),
            pinned(),
        ),
        (
            "owned, and wanted again",
            going(
                Owned::MayBeWanted("its StatefulSet wants the pod again".to_owned()),
                reachable(Vec::new()),
            ),
            unverified(
                "the pod owns it, so that it goes with the pod, but its StatefulSet wants the pod again",
            ),
        ),
    ]);
}

#[test]
fn rule_15_a_claim_that_could_not_be_verified_is_for_a_person() {
    let without = |missing: Option<&str>, phase: Option<&str>| ClaimState::WithoutVolume {
        missing: missing.map(str::to_owned),
        phase: phase.map(str::to_owned),
    };
    let states = [
        (
            "unread",
            ClaimState::Unread(not_read()),
            unverified("it is forbidden"),
        ),
        (
            "lost",
            without(Some("pv-1"), Some("Lost")),
            without_volume("pv-1"),
        ),
        (
            "its volume is missing",
            without(Some("pv-1"), Some("Bound")),
            without_volume("pv-1"),
        ),
        (
            "unbound",
            without(None, Some("Pending")),
            unverified("it names no volume (phase Pending)"),
        ),
        (
            "unbound, without a phase",
            without(None, None),
            unverified("it names no volume (phase not set)"),
        ),
        ("absent: it pins nothing", ClaimState::Absent, stuck()),
    ];
    check(states.map(|(name, state, reason)| (name, pod().with(claim(state)), reason)));
}

#[test]
fn every_claim_is_checked() {
    let named = |name: &str, claim: ClaimFacts| ClaimFacts {
        name: name.to_owned(),
        ..claim
    };
    let somewhere = || named("free", bound(reachable(vec![vec![within("zone", &["a"])]])));
    let absent = || named("absent", claim(ClaimState::Absent));
    let second = PinnedClaim {
        claim: "logs".to_owned(),
        given_up: Err(undeclared("logs")),
        ..pinned("local, at /mnt/d1")
    };
    check([
        (
            "the last is pinned",
            pod().with(absent()).with(somewhere()).with(bound(local())),
            local_volume("local, at /mnt/d1"),
        ),
        (
            "the first is pinned",
            pod().with(bound(local())).with(somewhere()),
            local_volume("local, at /mnt/d1"),
        ),
        (
            "two are pinned",
            pod()
                .with(bound(local()))
                .with(named("logs", bound(local()))),
            Reason::LocalVolume {
                claims: vec![pinned("local, at /mnt/d1"), second],
                kept: None,
            },
        ),
        (
            "the last is unbound",
            pod().with(somewhere()).with(not_bound()),
            unverified("it names no volume (phase Pending)"),
        ),
        (
            "none binds it",
            pod().with(absent()).with(somewhere()),
            free("zone In (a)"),
        ),
    ]);
}

#[test]
fn rule_16_a_disk_that_two_machines_could_write_is_for_a_person() {
    let disk = || shared(reachable(Vec::new()));
    let machine = || pod().owner(Some("VirtualMachineInstance"));
    let block =
        || Reason::SharedDisk("claim data is ReadWriteMany and a raw block device".to_owned());
    let by_machine = || Reason::SharedDisk("it belongs to the virtual machine db".to_owned());
    let hotplug = |name: &str| {
        let mut pod = pod();
        pod.0.owner = Some(Owner {
            kind: "Pod".to_owned(),
            name: name.to_owned(),
        });
        pod
    };
    let fenced = || node().fenced();
    let reported = || fenced().reported(SignBy::VirtHandler, ago("1m"));
    let sign = "virt-handler reported 1m ago";
    check([
        ("a shared block device", pod().with(disk()), block()),
        ("of one of many", pod().one_of_many().with(disk()), block()),
        (
            "an ordinary claim",
            pod().with(bound(reachable(Vec::new()))),
            stuck(),
        ),
        ("a virtual machine", machine(), by_machine()),
        (
            "what hands it a disk",
            hotplug("virt-launcher-db"),
            Reason::SharedDisk("it belongs to the virtual machine virt-launcher-db".to_owned()),
        ),
        ("another pod's pod", hotplug("launcher"), stuck()),
        (
            "a shared block device, fenced",
            pod().with(disk()).on(fenced()),
            stuck(),
        ),
        ("a virtual machine, fenced", machine().on(fenced()), stuck()),
        (
            "fenced, yet it lives",
            machine().on(reported()),
            alive(Ready::Unknown, &[sign]),
        ),
        (
            "on its disk as well",
            pod().with(shared(local())),
            local_volume("local, at /mnt/d1"),
        ),
    ]);
    let reap = Policy {
        kubelet_alive: KubeletAlive::Reap,
        ..policy()
    };
    check_under(
        &reap,
        [(
            "fenced, yet it lives, which nobody minds",
            machine().on(reported()),
            by_machine(),
        )],
    );
    // Whether it lives is not known, so it is not known to be off.
    let unread = fenced().lease_unread().0;
    assert_eq!(
        Failure {
            now: now(),
            policy: &reap,
            node: &unread,
            pod: None
        }
        .fenced(),
        None,
        "its lease unread"
    );
    // A mark that was left behind: its node was heard since.
    let marked = |set_by: &str| {
        node()
            .lease_renewed(ago("59m"))
            .since(Some(ago("1h")))
            .fenced_by(Some(ago(set_by)))
    };
    check_under(
        &reap,
        [
            (
                "heard after the mark was set",
                machine().on(marked("59m 1s")),
                by_machine(),
            ),
            ("heard as it was set", machine().on(marked("59m")), stuck()),
            (
                "one mark of two was left behind",
                machine().on(marked("2h").fenced()),
                stuck(),
            ),
        ],
    );
    let on_network = |mut volume: VolumeFacts| {
        volume.disk = Some("iSCSI");
        bound(volume)
    };
    let written = |what: &str| {
        Reason::SharedDisk(format!("{what} is iSCSI, which locks no other machine out"))
    };
    let mounting = || {
        let mut pod = pod();
        pod.0.own_disk = Some("its volume data is iSCSI".to_owned());
        pod
    };
    let by_claim = || pod().with(on_network(reachable(Vec::new())));
    check([
        (
            "a disk on a storage network",
            by_claim(),
            written("volume pv-1 of claim data"),
        ),
        ("in the pod itself", mounting(), written("its volume data")),
        (
            "that, of one of many",
            mounting().one_of_many(),
            written("its volume data"),
        ),
        ("that, fenced", mounting().on(fenced()), stuck()),
    ]);
}

#[test]
fn rule_17_owner_kinds_are_for_a_person_in_any_spelling() {
    let manual = |kinds: &[&str]| Policy {
        manual_owner_kinds: owned(kinds),
        ..policy()
    };
    let of_kind = |kind: &str| Reason::OwnerKind {
        owner: Owner {
            kind: kind.to_owned(),
            name: "db".to_owned(),
        },
    };
    let rows = [
        (
            "named",
            &["StatefulSet"][..],
            Some("StatefulSet"),
            of_kind("StatefulSet"),
        ),
        (
            "in small letters",
            &["statefulset"],
            Some("StatefulSet"),
            of_kind("StatefulSet"),
        ),
        (
            "in capitals",
            &["STATEFULSET"],
            Some("StatefulSet"),
            of_kind("StatefulSet"),
        ),
        (
            "second of two",
            &["Job", "StatefulSet"],
            Some("StatefulSet"),
            of_kind("StatefulSet"),
        ),
        ("another", &["StatefulSet"], Some("ReplicaSet"), stuck()),
        (
            "only the beginning of it",
            &["Set"],
            Some("StatefulSet"),
            stuck(),
        ),
        ("no owner", &["StatefulSet"], None, bare()),
        ("none named", &[], Some("StatefulSet"), stuck()),
        (
            "in the plural",
            &["statefulsets"],
            Some("StatefulSet"),
            of_kind("StatefulSet"),
        ),
    ];
    for (name, kinds, owner, reason) in rows {
        check_under(&manual(kinds), [(name, pod().owner(owner), reason)]);
    }
    let deployed = || pod().one_of_many().workload("Deployment");
    check_under(
        &manual(&["deployments"]),
        [
            ("the workload above", deployed(), of_kind("Deployment")),
            ("no workload above", pod().one_of_many(), stuck()),
        ],
    );
    check_under(
        &manual(&["ReplicaSet", "Deployment"]),
        [("the owner first", deployed(), of_kind("ReplicaSet"))],
    );
}

#[test]
fn rule_18_the_rest_is_reaped() {
    let control_plane = Node(NodeFacts {
        control_plane: true,
        ..node().0
    });
    check([
        ("a pod like any other", pod(), stuck()),
        ("without an owner", pod().owner(None), bare()),
        ("finished already", pod().finished(), stuck()),
        (
            "on a node of the control plane",
            pod().on(control_plane),
            stuck(),
        ),
    ]);
}

/// Everything that a rule reads.
struct Scene {
    policy: Policy,
    node: NodeFacts,
    pod: PodFacts,
}

/// A change that makes a rule apply.
type Trigger = (u8, &'static str, fn(&mut Scene));

/// The rules in their order; the eighteenth always applies.
const TRIGGERS: [Trigger; 17] = [
    (1, "mirror-pod", |scene| scene.pod.mirror = true),
    (2, "opted-out", |scene| scene.pod.opted_out = Some(yes())),
    (3, "node-gone", |scene| scene.pod.node = None),
    (4, "node-ready", |scene| scene.node.ready = Ready::True),
    (5, "not-overdue", |scene| {
        scene.pod.deletion_deadline = ago("1m");
    }),
    (6, "kosmos-leaf", |scene| {
        scene.node.leaf = Some(kosmos_leaf());
    }),
    (7, "facts-unread", |scene| {
        scene.pod.namespace_opted_out = Err(not_read());
    }),
    (8, "node-recovering", |scene| {
        scene.node.heard = vec![samples::lease(now())];
    }),
    (9, "node-just-failed", |scene| {
        scene.node.tainted_since = Some(ago("1m"));
    }),
    (10, "kubelet-alive", |scene| {
        let heard = Heard {
            by: SignBy::VirtHandler,
            at: ago("10s"),
            period: span("5m"),
        };
        scene.node.heard.push(heard);
    }),
    (11, "already-forced", |scene| {
        scene.pod.finalizers = owned(&[FOREIGN]);
        scene.pod.grace_seconds = Some(0);
    }),
    (12, "finalizers", |scene| {
        scene.pod.finalizers = owned(&[FOREIGN]);
    }),
    (13, "local-volume", |scene| {
        add(&mut scene.pod, bound(local()));
    }),
    (14, "volume-confined", |scene| {
        let only_here = reachable(vec![vec![within("rack", &["r1"])]]);
        add(&mut scene.pod, bound(satisfied(only_here, &["ds06"])));
    }),
    (15, "volume-unverified", |scene| {
        add(&mut scene.pod, not_bound());
    }),
    (16, "shared-disk", |scene| {
        add(&mut scene.pod, shared(reachable(Vec::new())));
    }),
    (17, "owner-kind", |scene| {
        scene.policy.manual_owner_kinds = owned(&["StatefulSet"]);
    }),
];

/// Rule 3 does not hold where finalizers remain, so that rules 11 and 12 decide there.
const EXCLUSIVE: [(u8, u8); 2] = [(3, 11), (3, 12)];

fn code_under(triggers: &[Trigger]) -> &'static str {
    let mut scene = Scene {
        policy: policy(),
        node: node().0,
        pod: pod().0,
    };
    for (_, _, set) in triggers {
        set(&mut scene);
    }
    let node = NodeRead::Known(scene.node);
    let case = Case::new(now(), &scene.policy, Some(&node), &scene.pod);
    case.decide().code().as_str()
}

#[test]
fn the_first_rule_that_holds_decides() {
    assert_eq!(code_under(&[]), "stuck-on-not-ready-node");
    for (at, first) in TRIGGERS.iter().enumerate() {
        // The eighteenth rule needs no trigger.
        assert_eq!(code_under(&[*first]), first.1, "rule {} alone", first.0);
        for second in &TRIGGERS[at + 1..] {
            if EXCLUSIVE.contains(&(first.0, second.0)) {
                continue;
            }
            assert_eq!(
                code_under(&[*first, *second]),
                first.1,
                "rule {} before rule {}",
                first.0,
                second.0
            );
        }
    }
}

/// The parts of rule 7 that its trigger above leaves out, and the part of rule 2 that reads the node.
#[test]
fn the_order_holds_for_every_form_of_a_rule() {
    let fresh = |node: Node| node.lease_renewed(now());
    let young = |node: Node| node.since(Some(ago("1m")));
    let optout = Reason::OptedOut {
        who: Optout::Node,
        value: "true".to_owned(),
    };
    let unread_lease = facts_unread("the node's lease: it is forbidden");
    check([
        (
            "opted-out node before Ready node",
            pod().on(node().opted_out().ready(Ready::True)),
            optout,
        ),
        (
            "gone before not overdue",
            pod().on(gone()).overdue("1m"),
            Reason::NodeGone {
                node: Some("ds06".to_owned()),
            },
        ),
        (
            "not overdue before unread node",
            pod().on(unread()).overdue("1m"),
            not_overdue(span("1m")),
        ),
        (
            "leaf before unread lease",
            pod().on(node().leaf(selected_leaf()).lease_unread()),
            Reason::LeafNode(selected_leaf()),
        ),
        (
            "unread lease before just failed",
            pod().on(young(node()).lease_unread()),
            unread_lease,
        ),
        (
            "recovering before just failed",
            pod().on(young(fresh(node()))),
            recovering(SignedDuration::ZERO),
        ),
        (
            "unread node before finalizers",
            pod().on(unread()).held_by(&[FOREIGN]),
            facts_unread("the node: it is forbidden"),
        ),
        (
            "just failed before a local volume",
            pod().on(young(node())).with(bound(local())),
            just_failed(Some(span("1m"))),
        ),
        (
            "pinned before unverified, whatever comes first",
            pod().with(not_bound()).with(bound(local())),
            local_volume("local, at /mnt/d1"),
        ),
    ]);
}

#[test]
fn claims_are_asked_for_only_where_they_can_matter() {
    let named = || {
        Claims::Named(vec![ClaimUse {
            name: "data".to_owned(),
            ephemeral: false,
        }])
    };
    let with_claim = || {
        let mut pod = pod();
        pod.0.claims = named();
        pod
    };
    let rows = [
        ("let through so far", with_claim(), true),
        ("no claim", pod(), false),
        ("not overdue", with_claim().overdue("1m"), false),
        (
            "held by a finalizer",
            with_claim().held_by(&[FOREIGN]),
            false,
        ),
        (
            "held by the Job controller",
            with_claim().held_by(&[JOB_TRACKING]),
            true,
        ),
        (
            "on a leaf node",
            with_claim().on(node().leaf(kosmos_leaf())),
            false,
        ),
        ("on an unread node", with_claim().on(unread()), false),
    ];
    for (name, Pod(facts, look), needed) in rows {
        assert_eq!(
            Case::new(now(), &policy(), look.as_ref(), &facts).needs_claims(),
            needed,
            "{name}"
        );
    }
    let manual = Policy {
        manual_owner_kinds: owned(&["StatefulSet"]),
        ..policy()
    };
    let Pod(facts, look) = with_claim();
    assert!(
        Case::new(now(), &manual, look.as_ref(), &facts).needs_claims(),
        "rule 13 is before rule 17"
    );
}

/// No rule about claims is passed where nothing was asked about them, and none holds.
#[test]
fn a_pod_about_whose_claims_nothing_was_asked_is_not_reaped() {
    let mut pod = pod();
    pod.0.claims = Claims::Named(vec![ClaimUse {
        name: "data".to_owned(),
        ephemeral: false,
    }]);
    let Pod(facts, look) = &pod;
    let unasked = Case::new(now(), &policy(), look.as_ref(), facts).evaluate();
    let unasked = unasked.iter().filter(|rule| rule.holds.is_none());
    let numbers = unasked.filter_map(|rule| rule.number).collect::<Vec<_>>();
    assert_eq!(numbers, [13, 14, 15, 16]);
    assert_eq!(
        pod.judged_by(&policy()),
        facts_unread("its claims: nothing was asked about them")
    );
}

/// Every reason, with each form of its sentence.
fn every_reason() -> Vec<Reason> {
    let threshold = span("10m");
    let unverified_two = Reason::VolumeUnverified {
        claims: vec![
            unverified_claim("data", None, "it was not looked up"),
            unverified_claim("logs", None, "it is forbidden"),
        ],
    };
    let pinned_two = Reason::LocalVolume {
        claims: vec![
            pinned("local, at /mnt/d1"),
            PinnedClaim {
                claim: "logs".to_owned(),
                ..pinned("hostPath, at /var/x")
            },
        ],
        kept: None,
    };
    let out = |who, value: &str| Reason::OptedOut {
        who,
        value: value.to_owned(),
    };
    vec![
        Reason::MirrorPod,
        out(Optout::Pod, "true"),
        out(Optout::Namespace, "true"),
        out(Optout::Node, "True"),
        Reason::NodeGone { node: None },
        Reason::NodeGone {
            node: Some("ds06".to_owned()),
        },
        Reason::NodeReady,
        Reason::NotOverdue {
            overdue: span("9m 59s 900ms"),
            threshold,
        },
        Reason::NotOverdue {
            overdue: -span("30s"),
            threshold,
        },
        Reason::LeafNode(kosmos_leaf()),
        Reason::LeafNode(Leaf {
            cluster: None,
            ..kosmos_leaf()
        }),
        Reason::LeafNode(of_kind(
            LeafKind::Virtual,
            "Liqo",
            "label liqo.io/type=virtual-node",
        )),
        Reason::LeafNode(of_kind(
            LeafKind::Edge,
            "KubeEdge",
            "kubelet version v1.22.6-kubeedge-v1.12.1",
        )),
        Reason::LeafNode(selected_leaf()),
        facts_unread("the node: it is forbidden"),
        facts_unread("the namespace: it ends with a full stop."),
        recovering(span("10s")),
        just_failed(Some(span("1m"))),
        just_failed(None),
        alive(Ready::False, &["its kubelet renewed its lease 4s ago"]),
        alive(
            Ready::Unknown,
            &[
                "node-problem-detector reported 2m ago",
                "virt-handler reported 1m ago",
            ],
        ),
        alive(Ready::Absent, &[]),
        Reason::AlreadyForced {
            finalizers: owned(&[FOREIGN]),
        },
        Reason::Finalizers {
            finalizers: owned(&[FOREIGN]),
        },
        Reason::Finalizers {
            finalizers: owned(&[FOREIGN, "foregroundDeletion"]),
        },
        local_volume("local, at /mnt/d1"),
        pinned_two,
        confined("rack In (r1)"),
        unverified_two,
        Reason::SharedDisk("claim data is ReadWriteMany and a raw block device".to_owned()),
        Reason::OwnerKind {
            owner: Owner {
                kind: "StatefulSet".to_owned(),
                name: "db".to_owned(),
            },
        },
        stuck(),
        free("zone In (a)"),
    ]
}

fn of_kind(kind: LeafKind, maker: &'static str, mark: &str) -> Leaf {
    Leaf {
        kind,
        maker,
        marks: owned(&[mark]),
        cluster: None,
    }
}

/// Codes and verdicts are part of every report's contract.
#[test]
fn codes_and_verdicts_are_those_of_the_contract() {
    let mut contract = every_reason()
        .iter()
        .map(|reason| (reason.code().as_str(), reason.verdict().as_str()))
        .collect::<Vec<_>>();
    contract.dedup();
    assert_eq!(
        contract,
        [
            ("mirror-pod", "leave"),
            ("opted-out", "leave"),
            ("node-gone", "leave"),
            ("node-ready", "leave"),
            ("not-overdue", "wait"),
            ("kosmos-leaf", "manual"),
            ("virtual-node", "manual"),
            ("edge-node", "manual"),
            ("leaf-node", "manual"),
            ("facts-unread", "wait"),
            ("node-recovering", "wait"),
            ("node-just-failed", "wait"),
            ("kubelet-alive", "manual"),
            ("already-forced", "manual"),
            ("finalizers", "manual"),
            ("local-volume", "manual"),
            ("volume-confined", "manual"),
            ("volume-unverified", "manual"),
            ("shared-disk", "manual"),
            ("owner-kind", "manual"),
            ("stuck-on-not-ready-node", "reap"),
        ]
    );
}

#[test]
fn every_reason_states_what_was_seen() {
    let sentences = every_reason()
        .iter()
        .fold(String::new(), |sentences, reason| {
            sentences + &format!("{}: {}\n", reason.code(), reason.sentence())
        });
    expect![[r#"
        mirror-pod: It mirrors a static pod, which its node's kubelet owns; deleting the mirror does not stop that.
        opted-out: The pod is opted out by pod-reaper.io/skip.
        opted-out: Its namespace is opted out by pod-reaper.io/skip.
        opted-out: Its node is opted out by pod-reaper.io/skip. Its value "True" is neither true nor false, and counts as true.
        node-gone: It was never assigned to a node; the pod garbage collector takes care of it.
        node-gone: Node ds06 no longer exists; the pod garbage collector takes care of it.
        node-ready: Its node is Ready: the kubelet there is stopping it; if it does not, look at that kubelet.
        not-overdue: It is overdue by 9m 59s and counts as stuck from 10m on.
        not-overdue: It is within its grace period for another 30s; it counts as stuck 10m after that.
        kosmos-leaf: Its node stands for the Kosmos leaf cluster edge-1 (seen: label kosmos.io/node, taint kosmos.io/node). There, NotReady mostly means that the link is cut: the pod may well be running.
        kosmos-leaf: Its node is a Kosmos leaf node and stands for another cluster (seen: label kosmos.io/node, taint kosmos.io/node). There, NotReady mostly means that the link is cut: the pod may well be running.
        virtual-node: Its node is a virtual node of Liqo, not a machine (seen: label liqo.io/type=virtual-node). There, NotReady means that the program that runs its pods does not report: the pod may well be running.
        edge-node: Its node is an edge node of KubeEdge (seen: kubelet version v1.22.6-kubeedge-v1.12.1). It keeps working without its cluster, so NotReady means that the link is cut: the pod may well be running.
        leaf-node: Its node matches --leaf-node-selector (seen: label selector type=virtual-kubelet). There, NotReady mostly means that the link is cut: the pod may well be running.
        facts-unread: A fact that the decision needs could not be read: the node: it is forbidden.
        facts-unread: A fact that the decision needs could not be read: the namespace: it ends with a full stop.
        node-recovering: The node's lease was renewed 10s ago, after the node became NotReady: its kubelet may be about to report.
        node-just-failed: The node has been NotReady for only 1m; --node-not-ready-for is 10m.
        node-just-failed: The node is NotReady, but does not say since when.
        kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet renewed its lease 4s ago. The pod's containers most likely still run.
        kubelet-alive: The node's Ready is Unknown, but its machine is alive: node-problem-detector reported 2m ago, virt-handler reported 1m ago. The pod's containers most likely still run.
        kubelet-alive: The node's Ready is absent, but its machine is alive: . The pod's containers most likely still run.
        already-forced: It was already force-deleted and is held by finalizer example.com/backup; another delete would change nothing.
        finalizers: It is held by finalizer example.com/backup, whose controller has work to do before the pod can go.
        finalizers: It is held by finalizers example.com/backup, foregroundDeletion, whose controller has work to do before the pod can go.
        local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1).
        local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1); claim logs is bound to volume pv-1 (hostPath, at /var/x).
        volume-confined: No other node can reach its storage: claim data is bound to volume pv-1, which needs rack In (r1).
        volume-unverified: It is unverified whether its storage is on the dead node: claim data: it was not looked up; claim logs: it is forbidden.
        shared-disk: Two machines could write to its disk at once (claim data is ReadWriteMany and a raw block device), and its node is not certainly off.
        owner-kind: It belongs to StatefulSet/db, and --manual-owner-kind names that kind.
        stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
    "#]].assert_eq(&sentences);
}

#[test]
fn durations_are_written_in_whole_seconds() {
    let rows = [
        ("none", SignedDuration::ZERO, "0s"),
        ("less than a second", SignedDuration::from_millis(999), "0s"),
        (
            "seconds are cut, not rounded",
            SignedDuration::from_millis(59_999),
            "59s",
        ),
        ("an hour and five minutes", span("65m"), "1h 5m"),
        ("one that lies ahead", -span("2m"), "minus 2m"),
    ];
    for (name, duration, text) in rows {
        assert_eq!(spoken(duration), text, "{name}");
    }
}

/// A local claim that its StatefulSet makes again, with that answer.
fn answered(give_up: Option<&str>) -> ClaimFacts {
    let mut claim = bound(local());
    claim.renewed = Some(Ok(()));
    set_bound(&mut claim, |answer, _, _| {
        *answer = give_up.map(str::to_owned);
    });
    claim
}

fn set_bound(
    claim: &mut ClaimFacts,
    set: impl Fn(&mut Option<String>, &mut Option<Timestamp>, &mut Option<ResourceVersion>),
) {
    let ClaimState::Bound {
        give_up,
        created,
        version,
        ..
    } = &mut claim.state
    else {
        unreachable!("it is bound")
    };
    set(give_up, created, version);
}

fn given_up(claims: Vec<PinnedClaim>) -> Reason {
    let note = "claim data is deleted and recreated, empty; its volume pv-1 stays behind, Released, until it is cleaned up \
                (reclaim policy Delete), and a storage class that binds at once may choose ds06 again";
    Reason::Stuck {
        given_up: claims,
        answered: true,
        notes: vec![note.to_owned()],
    }
}

const ANSWERED: &str = "2026-03-01T11:30:00Z";

/// What each part of the binding of an answer keeps out, on a pod that it lets go otherwise.
#[test]
fn an_answer_counts_for_one_failure() {
    let gives_up = || pod().with(answered(Some(ANSWERED)));
    let goes = given_up(vec![PinnedClaim {
        given_up: Ok("c-v1".into()),
        answered: true,
        doubt: None,
        ..pinned("local, at /mnt/d1")
    }]);
    assert_eq!(gives_up().judged_by(&policy()), goes);
    assert_eq!(goes.code(), ReasonCode::Answered);
    let at = |value: &str| pod().with(answered(Some(value)));
    let of_now = at("2026-03-01T12:00:00Z").judged_by(&policy());
    assert_eq!(of_now.code(), ReasonCode::Answered);
    let claim = |set: fn(&mut Option<Timestamp>)| {
        let mut claim = answered(Some(ANSWERED));
        set_bound(&mut claim, |_, created, _| set(created));
        pod().with(claim)
    };
    let on = |change: fn(&mut NodeFacts)| {
        let mut node = samples::node();
        change(&mut node);
        gives_up().on(Node(node))
    };
    let of = |change: fn(&mut PodFacts)| {
        let mut pod = gives_up();
        change(&mut pod.0);
        pod
    };
    let cases = [
        ("no time", at("yes"), "its value is no time"),
        ("empty", at(""), "its value is no time"),
        (
            "of a future report",
            at("2026-03-01T12:00:01Z"),
            "lies in the future",
        ),
        (
            "claim made anew",
            claim(|made| *made = Some(ago("30m"))),
            "when the claim was made",
        ),
        (
            "claim of unknown age",
            claim(|made| *made = None),
            "not known when the claim was made",
        ),
        (
            "pod replaced",
            of(|pod| pod.created = Some(ago("30m"))),
            "when the pod was made",
        ),
        (
            "pod of unknown age",
            of(|pod| pod.created = None),
            "not known when the pod was made",
        ),
        (
            "deleted since",
            of(|pod| (pod.deletion_deadline, pod.grace_seconds) = (ago("29m"), Some(60))),
            "when the pod's deletion was asked for",
        ),
        (
            "unknown grace",
            of(|pod| pod.grace_seconds = None),
            "deletion was asked for",
        ),
        (
            "node made anew",
            on(|node| node.created = Some(ago("30m"))),
            "when the node was made",
        ),
        (
            "node of unknown age",
            on(|node| node.created = None),
            "when the node was made",
        ),
        (
            "back and gone again",
            on(|node| (node.ready_since, node.tainted_since) = (Some(ago("30m")), None)),
            "when the node became NotReady",
        ),
    ];
    for (name, pod, why) in cases {
        let reason = pod.judged_by(&policy());
        let Reason::LocalVolume {
            kept: Some(kept), ..
        } = &reason
        else {
            panic!("{name}: {reason:?}");
        };
        assert!(kept.contains(why), "{name}: {kept}");
    }
    // A pod that may run twice, which no sign of life protects: the answer is inert all the same.
    let alive = |node: Node| {
        let pod = gives_up().on(node);
        let reap = Policy {
            kubelet_alive: KubeletAlive::Reap,
            ..policy()
        };
        let reason = pod.judged_by(&reap);
        let Reason::LocalVolume {
            kept: Some(kept), ..
        } = &reason
        else {
            panic!("{reason:?}");
        };
        kept.clone()
    };
    let lives = alive(node().ready(Ready::False));
    assert!(lives.contains("lives, or may"), "{lives}");
    let heard = alive(node().reported(SignBy::ApiServer, ago("29m 59s")));
    assert!(heard.contains("was heard after it"), "{heard}");
}

/// The annotation alone gives up nothing, nor does the option: both together do, or an answer.
#[test]
fn a_claim_is_given_up_only_where_it_is_declared() {
    let no_or_yes = [false, true];
    for (scratch, reap_scratch, answer) in no_or_yes
        .into_iter()
        .flat_map(|one| no_or_yes.map(|two| (one, two)))
        .flat_map(|(one, two)| no_or_yes.map(|three| (one, two, three)))
    {
        let mut claim = answered(answer.then_some(ANSWERED));
        let ClaimState::Bound { scratch: is, .. } = &mut claim.state else {
            unreachable!("it is bound")
        };
        *is = scratch;
        let policy = Policy {
            reap_scratch,
            ..policy()
        };
        let code = pod().with(claim).judged_by(&policy).code();
        let expected = match (answer, scratch && reap_scratch) {
            (true, _) => ReasonCode::Answered,
            (false, true) => ReasonCode::Scratch,
            (false, false) => ReasonCode::LocalVolume,
        };
        assert_eq!(code, expected, "{scratch} {reap_scratch} {answer}");
    }
}

/// What stands against giving a claim up stands against it whatever a person answers.
#[test]
fn an_answer_gives_up_no_claim_that_is_not_made_again() {
    let kept = |change: fn(&mut ClaimFacts)| {
        let mut claim = answered(Some(ANSWERED));
        change(&mut claim);
        let reason = pod().with(claim).judged_by(&policy());
        let Reason::LocalVolume {
            kept: Some(kept), ..
        } = &reason
        else {
            panic!("{reason:?}");
        };
        kept.clone()
    };
    assert_eq!(
        kept(|claim| claim.renewed = Some(Err(Doubt::proved("so")))),
        "so"
    );
    assert_eq!(
        kept(|claim| claim.renewed = Some(Err(Doubt::unread("so")))),
        "so"
    );
    let held = kept(|claim| set_bound(claim, |_, _, version| *version = None));
    assert!(held.contains("is opted out"), "{held}");
    let second = |claim: ClaimFacts| ClaimFacts {
        name: "logs".to_owned(),
        ..claim
    };
    let both = pod()
        .with(answered(Some(ANSWERED)))
        .with(second(answered(None)));
    assert_eq!(both.judged_by(&policy()).code(), ReasonCode::LocalVolume);
    let confined = pod()
        .with(answered(Some(ANSWERED)))
        .with(second(bound(satisfied(
            reachable(vec![vec![within("rack", &["r1"])]]),
            &["ds06"],
        ))))
        .judged_by(&policy());
    let Reason::LocalVolume {
        kept: Some(kept), ..
    } = &confined
    else {
        panic!("{confined:?}");
    };
    assert_eq!(kept, "volume-confined would hold it anyway");
}

/// Each annotation answers its own rule alone.
#[test]
fn an_answer_answers_its_own_rule_alone() {
    let goes = |mut pod: Pod| {
        pod.0.reap = Some(ANSWERED.to_owned());
        pod
    };
    let off = || {
        let mut node = node();
        node.0.powered_off = Some(ANSWERED.to_owned());
        node
    };
    let flags = Policy {
        manual_owner_kinds: owned(&["StatefulSet"]),
        ..policy()
    };
    let confined = || {
        pod().with(bound(satisfied(
            reachable(vec![vec![within("rack", &["r1"])]]),
            &["ds06"],
        )))
    };
    let owns = |mut pod: Pod| {
        samples::claims(&mut pod.0)[0].owned = Owned::Alone;
        pod
    };
    let unread = || pod().with(claim(ClaimState::Unread(not_read())));
    let lost = || pod().with(not_bound());
    let shared_disk = || pod().with(shared(reachable(Vec::new())));
    let gives_up = || pod().with(answered(Some(ANSWERED)));
    let cases = vec![
        ("17: the pod's", goes(pod()), true),
        ("17: the claim's", gives_up(), false),
        ("17: the node's", pod().on(off()), false),
        ("14: the pod's", goes(confined()), true),
        (
            "14: the pod's, which owns the claim",
            owns(goes(confined())),
            false,
        ),
        ("14: the node's", confined().on(off()), false),
        ("15: the pod's", goes(lost()), false),
        (
            "15: the pod's, and the node's",
            goes(lost()).on(off()),
            true,
        ),
        (
            "15: the pod's, which owns the claim",
            owns(goes(lost())).on(off()),
            false,
        ),
        ("15: the node's", lost().on(off()), false),
        ("15: one that was not read", goes(unread()).on(off()), false),
        ("16: the node's", shared_disk().on(off()), true),
        ("16: the pod's", goes(shared_disk()), false),
        ("13: the pod's", goes(pod().with(answered(None))), false),
        (
            "13: the node's",
            pod().with(answered(None)).on(off()),
            false,
        ),
        (
            "12: all of them",
            goes(gives_up()).on(off()).held_by(&["example.org/held"]),
            false,
        ),
        (
            "10: all of them",
            goes(gives_up()).on(off().ready(Ready::False)),
            false,
        ),
        (
            "5: all of them",
            goes(gives_up()).on(off()).overdue("9m 59s"),
            false,
        ),
    ];
    for (name, pod, passes) in cases {
        let policy = if name.starts_with("17") {
            &flags
        } else {
            &policy()
        };
        let code = pod.judged_by(policy).code();
        assert_eq!(code == ReasonCode::Answered, passes, "{name}: {code}");
    }
    // One that no rule needed is no answer.
    assert_eq!(goes(pod()).judged_by(&policy()).code(), ReasonCode::Stuck);
    let old = Node(NodeFacts {
        powered_off: Some("2026-02-01T00:00:00Z".to_owned()),
        ..samples::node()
    });
    assert_eq!(
        shared_disk().on(old).judged_by(&policy()).code(),
        ReasonCode::SharedDisk
    );
}
