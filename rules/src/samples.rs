//! Facts for the tests of the rules, the limits and the advice: a pod that is to be reaped, and its
//! node. Each test describes in words how its facts differ from these.

use std::{collections::BTreeSet, iter};

use clap::Parser;
use jiff::{SignedDuration, Timestamp};

use crate::{
    advice::{Advice, Adviser},
    decide::{PodContext, Policy, Reason},
    facts::{
        AffinityTerm, Attachment, BoundClaim, ClaimDeletion, ClaimFacts, ClaimState, ClusterFacts,
        Containers, Copies, CountedNode, Deletion, Driver, FencingMark, Heard, Identity,
        KubeletSays, Leaf, LeafKind, NamedBy, NamespaceFacts, NodeCounts, NodeFacts, NodeRead,
        Owner, PodFacts, Ready, Requirement, SignBy, Storage, Tally, Unread, VolumeFacts, Zone,
    },
    limits::{Judged, Limits, Plan},
    selector::Target,
};

pub fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().expect("a moment")
}

fn an_hour_ago() -> Timestamp {
    now() - SignedDuration::from_hours(1)
}

/// The options that a scene may have, as the user types them.
#[derive(Parser)]
#[command(args_override_self = true)]
struct Options {
    #[command(flatten)]
    policy: Policy,
    #[command(flatten)]
    limits: Limits,
}

/// Parses options, such as `--max-deletes=5`.
fn options(typed: &[String]) -> Options {
    let arguments = iter::once("scene").chain(typed.iter().map(String::as_str));
    Options::try_parse_from(arguments).expect("options that are right")
}

/// Returns the default policy.
pub fn policy() -> Policy {
    options(&[]).policy
}

/// Returns the default limits.
pub fn limits() -> Limits {
    options(&[]).limits
}

/// Returns node ds06, an hour after it died.
pub fn node() -> NodeFacts {
    NodeFacts {
        name: "ds06".to_owned(),
        uid: "n-1".into(),
        ready: Ready::Unknown,
        ready_reason: Some("NodeStatusUnknown".to_owned()),
        kubelet_says: None,
        ready_since: Some(an_hour_ago()),
        tainted_since: Some(an_hour_ago()),
        hostname: Some("ds06.example".to_owned()),
        zone: None,
        heard: vec![lease(an_hour_ago() - SignedDuration::from_secs(50))],
        renewed: None,
        unread_lease: None,
        named_by: Some(Ok(BTreeSet::new())),
        others_forbidden: false,
        fenced: Vec::new(),
        out_of_service: false,
        leaf: None,
        control_plane: false,
        open: true,
        opted_out: None,
    }
}

/// Returns the heartbeat of a lease that was renewed at `at`.
pub fn lease(at: Timestamp) -> Heard {
    Heard {
        by: SignBy::Lease,
        at,
        what: None,
    }
}

/// Returns a pod on ds06 to which only the last rule applies.
pub fn pod() -> PodFacts {
    let owner = Some(Owner {
        kind: "StatefulSet".to_owned(),
        name: "db".to_owned(),
    });
    PodFacts {
        namespace: "shop".to_owned(),
        name: "db-0".to_owned(),
        uid: "u-1".into(),
        resource_version: "7".into(),
        created: Some(now() - SignedDuration::from_hours(24)),
        node: Some("ds06".to_owned()),
        workload: owner.clone(),
        owner,
        controller: Some(Identity {
            api_version: "apps/v1".to_owned(),
            uid: "o-1".into(),
        }),
        deletion: Some(Deletion {
            deadline: an_hour_ago(),
            grace_seconds: Some(30),
        }),
        own_grace_seconds: 30,
        finalizers: Vec::new(),
        phase: "Running".to_owned(),
        ready: true,
        containers: Containers::default(),
        mirror: false,
        opted_out: None,
        in_namespace: Some(Ok(NamespaceFacts::default())),
        after_reap: None,
        templates: None,
        claims: Vec::new(),
        own_disk: None,
        host_paths: Vec::new(),
        set_wants: Some(Ok(true)),
        copies: None,
        stays: None,
        tolerates_silence: Some(300),
        tolerates_not_ready: Some(300),
        heard: None,
        lacks: None,
    }
}

/// Returns a PVC that is bound to a volume on `storage`. The affinity of a directory allows ds06
/// alone. No `StatefulSet` template is known for the PVC.
pub fn bound(name: &str, storage: Storage) -> ClaimFacts {
    let affinity = match storage {
        Storage::Local(_) | Storage::HostPath(_) => vec![term("kubernetes.io/hostname In ds06")],
        Storage::StrictLocal | Storage::Driver => Vec::new(),
    };
    let volume = VolumeFacts {
        name: "pv-1".to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        storage,
        disk: None,
        driver: None,
        affinity,
    };
    ClaimFacts {
        name: name.to_owned(),
        ephemeral: false,
        templated: false,
        deletion: None,
        owned: false,
        state: Some(ClaimState::Bound(BoundClaim {
            uid: "c-1".into(),
            shared_disk: false,
            volume,
        })),
    }
}

/// Everything that a rule, a limit or advice reads: a pod on its node, and the pods and nodes
/// described before them.
pub struct Scene {
    pub policy: Policy,
    pub limits: Limits,
    pub node: Option<NodeRead>,
    pub pod: PodFacts,
    other_nodes: Vec<NodeFacts>,
    other_pods: Vec<PodFacts>,
    cluster: ClusterFacts,
    kubectl: Target,
}

impl Scene {
    /// Returns the pod of [`pod`] on the node of [`node`], with the changes that `words` describes;
    /// semicolons separate the changes. A word about a PVC changes the last PVC, one about a pod
    /// the last pod, and one about a node the last node. A time is an age. A negative age is in the
    /// future.
    pub fn of(words: &str) -> Self {
        let mut scene = Self {
            policy: policy(),
            limits: limits(),
            node: Some(NodeRead::Known(node())),
            pod: pod(),
            other_nodes: Vec::new(),
            other_pods: Vec::new(),
            cluster: ClusterFacts {
                now: now(),
                node_count: 1,
                node_counts: NodeCounts::NotNeeded,
                ..ClusterFacts::default()
            },
            kubectl: Target::default(),
        };
        let mut typed = Vec::new();
        for change in words.split(';').map(str::trim) {
            let (what, how) = change.split_once(' ').unwrap_or((change, ""));
            let is_option = what.starts_with("--") && what != "--context";
            if is_option {
                typed.push(change.replacen(' ', "=", 1));
            }
            let changed = is_option
                || change.is_empty()
                || scene.change_cluster(what, how)
                || scene.change_pod(what, how)
                || scene.change_claim(what, how)
                || scene.change_node(what, how);
            assert!(changed, "nothing is called so: {change}");
        }
        Options {
            policy: scene.policy,
            limits: scene.limits,
        } = options(&typed);
        scene
    }

    /// Returns the facts about the cluster.
    pub fn facts(&self) -> ClusterFacts {
        let mut facts = self.cluster.clone();
        let others = self.other_nodes.iter();
        let others = others.map(|node| (node.name.clone(), NodeRead::Known(node.clone())));
        facts.nodes.extend(others);
        let node = self.node.as_ref().map(|read| match read {
            NodeRead::Known(node) => (node.name.clone(), read.clone()),
            read => ("ds06".to_owned(), read.clone()),
        });
        facts.nodes.extend(node);
        facts
    }

    /// Judges every pod, and applies the limits.
    pub fn plan(&self) -> Plan {
        let pods = self.other_pods.iter().chain([&self.pod]).cloned();
        let facts = self.facts();
        let judged = Judged::by_rules(&facts, pods.collect(), &self.policy);
        Plan::new(&facts, judged, &self.limits)
    }

    /// Returns the result of `ask` for an adviser on the plan.
    pub fn advised<T>(&self, ask: impl FnOnce(&Adviser<'_>) -> T) -> T {
        ask(&Adviser {
            facts: &self.facts(),
            plan: &self.plan(),
            kubectl: &self.kubectl,
        })
    }

    /// Returns the advice about the pods that need the user, once per group of them.
    pub fn advice(&self) -> Vec<Advice> {
        self.advised(|adviser| {
            let pods = &adviser.plan.pods;
            let groups = adviser.alike(pods).into_iter();
            let groups = groups.map(|group| {
                let group = group.iter().map(|at| &pods[*at]).collect::<Vec<_>>();
                adviser.advise(&group)
            });
            groups.collect()
        })
    }

    pub fn case(&self) -> PodContext<'_> {
        PodContext::new(now(), &self.policy, self.node.as_ref(), &self.pod)
    }

    pub fn judged(&self) -> Reason {
        self.case().decide()
    }

    fn change_cluster(&mut self, what: &str, how: &str) -> bool {
        let cluster = &mut self.cluster;
        match what {
            "--context" => self.kubectl.context = Some(how.to_owned()),
            "clock" => cluster.clock = Some("it is wrong".to_owned()),
            "uncounted" => cluster.node_counts = NodeCounts::Unread(not_read()),
            "census" => cluster.node_counts = node_counts(how),
            "nodes" => {
                let all = tally(how);
                cluster.node_count = all.total;
                cluster.node_counts = NodeCounts::Counted {
                    all,
                    workers: all,
                    zones: [].into(),
                    room: all.not_ready < all.total,
                };
            }
            "workers" => {
                if let NodeCounts::Counted { workers, room, .. } = &mut cluster.node_counts {
                    (*workers, *room) = (tally(how), true);
                }
            }
            "nodes-of" => {
                let (name, count) = how.split_once(' ').expect("a zone and a count");
                if let NodeCounts::Counted { zones, .. } = &mut cluster.node_counts {
                    zones.insert(zone(name), tally(count));
                }
            }
            "attached" => {
                let node = self.node.as_ref().and_then(NodeRead::known);
                let attachments = how.split_whitespace().map(|what| {
                    let (name, driver) = what.split_once('=').unzip();
                    Attachment {
                        name: name.unwrap_or(what).to_owned(),
                        volume: None,
                        driver: driver.map(str::to_owned),
                    }
                });
                let node = node.expect("a node").name.clone();
                cluster.attachments.insert(node, attachments.collect());
            }
            _ => return false,
        }
        true
    }

    fn change_pod(&mut self, what: &str, how: &str) -> bool {
        let pod = &mut self.pod;
        let named = |kind: &str| Owner {
            kind: kind.to_owned(),
            name: "db".to_owned(),
        };
        match what {
            "and" => {
                let node = self.node.as_ref().and_then(NodeRead::known);
                let next = PodFacts {
                    node: node.map(|node| node.name.clone()),
                    ..self::pod()
                };
                self.other_pods.push(std::mem::replace(pod, next));
                name(pod, how);
            }
            "named" => name(pod, how),
            "overdue" => deletion(pod).deadline = now() - span(how),
            "never-placed" => (pod.node, self.node) = (None, None),
            "finished" => pod.fail(),
            "running" => pod.containers.running = number(how),
            "terminated" => pod.containers.terminated = number(how),
            "waiting" => pod.containers.waiting = number(how),
            "mirror" => pod.mirror = true,
            "skip" => pod.opted_out = Some(how.to_owned()),
            "namespace" => {
                pod.in_namespace = Some(match how {
                    "unread" => Err(not_read()),
                    how => Ok(NamespaceFacts {
                        opted_out: how.strip_prefix("skip ").map(str::to_owned),
                        deleted: how == "deleted",
                    }),
                });
            }
            "held-by" => pod.finalizers = words(how),
            "grace" => deletion(pod).grace_seconds = how.parse().ok(),
            "set-wants-it" => pod.set_wants = Some(Ok(true)),
            "set-wants-it-not" => pod.set_wants = Some(Ok(false)),
            "copies" => {
                let (ready, wanted) = how.split_once('/').expect("Ready and wanted");
                pod.copies = Some(Copies {
                    ready: ready.parse().expect("a number"),
                    wanted: wanted.parse().expect("a number"),
                });
            }
            "set-unread" => pod.set_wants = Some(Err(not_read())),
            "set-not-asked" => pod.set_wants = None,
            "writes-to" => pod.host_paths = words(how),
            "own-disk" => pod.own_disk = Some(how.to_owned()),
            "workload" => pod.workload = Some(named(how)),
            "templates" => pod.templates = Some(how.to_owned()),
            "of" => {
                for owner in pod.owner.iter_mut().chain(&mut pod.workload) {
                    how.clone_into(&mut owner.name);
                }
                if let Some(controller) = &mut pod.controller {
                    controller.uid = format!("uid-of-{how}").as_str().into();
                }
            }
            "owner" => {
                let (kind, api_version) = how.split_once(' ').unwrap_or((how, ""));
                pod.owner = (kind != "none").then(|| named(kind));
                pod.workload.clone_from(&pod.owner);
                pod.controller = (!api_version.is_empty()).then(|| Identity {
                    api_version: api_version.to_owned(),
                    uid: "o-1".into(),
                });
            }
            "virt-launcher" => {
                if let Some(owner) = &mut pod.owner {
                    (owner.kind, owner.name) = ("Pod".to_owned(), how.to_owned());
                }
            }
            _ => return false,
        }
        true
    }

    fn change_claim(&mut self, what: &str, how: &str) -> bool {
        let added = |state| ClaimFacts {
            state,
            ..bound("data", Storage::Driver)
        };
        let without = |missing: Option<&str>, phase: &str| ClaimState::WithoutVolume {
            missing: missing.map(str::to_owned),
            phase: (!phase.is_empty()).then(|| phase.to_owned()),
        };
        let claim = match what {
            "local" => bound("data", Storage::Local("/mnt/d1".to_owned())),
            "host-path" => bound("data", Storage::HostPath("/var/x".to_owned())),
            "strict-local" => bound("data", Storage::StrictLocal),
            "claim" => bound("data", Storage::Driver),
            "absent" => added(Some(ClaimState::Absent)),
            "unread" => added(Some(ClaimState::Unread(not_read()))),
            "unbound" => added(Some(without(None, how))),
            "lost" => added(Some(without(Some("pv-1"), how))),
            "unasked" => ClaimFacts::named("data".to_owned(), false),
            _ => return self.change_last_claim(what, how),
        };
        self.pod.claims.push(claim);
        true
    }

    fn change_last_claim(&mut self, what: &str, how: &str) -> bool {
        let Some(claim) = self.pod.claims.last_mut() else {
            return false;
        };
        match what {
            "called" => how.clone_into(&mut claim.name),
            "ephemeral" => claim.ephemeral = true,
            "owned" => (claim.owned, claim.ephemeral) = (true, true),
            "unwanted" => (claim.owned, self.pod.set_wants) = (true, Some(Ok(false))),
            "wanted" => (claim.owned, self.pod.set_wants) = (true, Some(Ok(true))),
            "deleted" => {
                let at = Some(how).filter(|how| !how.is_empty()).and_then(moment);
                claim.deletion = Some(ClaimDeletion {
                    at: at.unwrap_or_else(|| now() - SignedDuration::from_hours(2)),
                    finalizers: Vec::new(),
                });
            }
            "claim-held-by" => {
                let deletion = claim.deletion.iter_mut();
                deletion.for_each(|it| it.finalizers = vec![how.to_owned()]);
            }
            "templated" => claim.templated = true,
            _ => return change_bound(&mut claim.state, what, how),
        }
        true
    }

    fn change_node(&mut self, what: &str, how: &str) -> bool {
        if what == "node" {
            self.node = match how {
                "gone" => Some(NodeRead::Gone),
                "unread" => Some(NodeRead::Unread(not_read())),
                _ => None,
            };
            return true;
        }
        let Some(NodeRead::Known(node)) = &mut self.node else {
            return false;
        };
        match what {
            "and-node" => {
                let next = NodeFacts {
                    name: how.to_owned(),
                    uid: format!("n-{how}").into(),
                    ..self::node()
                };
                self.other_nodes.push(std::mem::replace(node, next));
            }
            "ready" => node.ready = code(Ready::ALL, how),
            "no-reason" => node.ready_reason = None,
            "since" => (node.ready_since, node.tainted_since) = (moment(how), None),
            "tainted" => node.tainted_since = moment(how),
            "hostname" => node.hostname = Some(how.to_owned()),
            "no-hostname" => node.hostname = None,
            "node-skip" => node.opted_out = Some(how.to_owned()),
            "control-plane" => node.control_plane = true,
            "out-of-service" => node.out_of_service = true,
            "fenced" => node.fenced.push(FencingMark {
                mark: "annotation fencing/state=fenced".to_owned(),
                set_by: moment(how),
            }),
            "zone" => node.zone = Some(zone(how)),
            "leases" if how == "forbidden" => node.others_forbidden = true,
            "leases" if how == "?" => node.named_by = None,
            "leases" => node.named_by = Some(Err(not_read())),
            "named-by" => {
                let (namespace, lease) = how.split_once('/').expect("a namespace and a name");
                let named = NamedBy {
                    namespace: namespace.to_owned(),
                    lease: lease.to_owned(),
                };
                node.named_by = Some(Ok([named].into()));
            }
            "says" => node.kubelet_says = Some(code(KubeletSays::ALL, how)),
            "leaf" => node.leaf = Some(leaf(how)),
            "lease" => {
                node.heard.retain(|heard| heard.by != SignBy::Lease);
                node.unread_lease = (how == "unread").then(not_read);
                node.heard.extend(moment(how).map(lease));
            }
            by => {
                let Some(by) = SignBy::ALL.into_iter().find(|code| code.as_str() == by) else {
                    return false;
                };
                let (age, what) = how
                    .split_once(" by ")
                    .map_or((how, None), |(age, what)| (age, Some(what)));
                let what = what.map(str::to_owned);
                let at = now() - span(age);
                node.hear([Heard { by, at, what }]);
            }
        }
        true
    }
}

fn deletion(pod: &mut PodFacts) -> &mut Deletion {
    pod.deletion.get_or_insert_default()
}

/// Names a pod by `NAMESPACE/NAME#UID`, of which only the name is required.
fn name(pod: &mut PodFacts, words: &str) {
    let (namespace, name) = words.split_once('/').unwrap_or((&pod.namespace, words));
    pod.uid = format!("u-{words}").into();
    pod.namespace = namespace.to_owned();
    pod.name = name.split('#').next().unwrap_or_default().to_owned();
}

/// Parses a zone: its name, or its region and its name.
fn zone(words: &str) -> Zone {
    match words.split_once('/') {
        Some((region, name)) => Zone([Some(region.to_owned()), Some(name.to_owned())]),
        None => Zone([None, Some(words.to_owned())]),
    }
}

/// Parses a count such as `3/9`: 3 of 9 nodes are NotReady.
fn tally(words: &str) -> Tally {
    let (not_ready, total) = words.split_once('/').expect("two numbers");
    Tally {
        not_ready: not_ready.parse().expect("a number"),
        total: total.parse().expect("a number"),
    }
}

/// Counts nodes for the breaker; commas separate the words about each node.
fn node_counts(words: &str) -> NodeCounts {
    let nodes = words.split(',').map(|node| {
        let mut marks = node.split_whitespace();
        let mut counted_node = CountedNode {
            ready: true,
            open: true,
            ..CountedNode::default()
        };
        while let Some(mark) = marks.next() {
            match mark {
                "ready" => {}
                "down" => counted_node.ready = false,
                "leaf" => counted_node.leaf = true,
                "control-plane" => counted_node.control_plane = true,
                "reserved" => (counted_node.control_plane, counted_node.open) = (true, false),
                "cordoned" => counted_node.open = false,
                "in" => counted_node.zone = marks.next().map(zone),
                mark => unreachable!("nothing is called so: {mark}"),
            }
        }
        counted_node
    });
    NodeCounts::count(nodes)
}

/// Checks the result of `tell` for each case of the text. A case is a line with a name, a colon and
/// words. The lines below it are the result, which `UPDATE_EXPECT=1` rewrites.
#[track_caller]
pub fn check_each(cases: &expect_test::Expect, tell: impl FnMut(&str) -> String) {
    cases.assert_eq(&retold(cases.data(), tell));
}

/// Returns the text of `cases` with the current results.
pub fn retold(cases: &str, mut tell: impl FnMut(&str) -> String) -> String {
    let mut found = String::new();
    let lines = cases.lines().map(str::trim);
    for case in lines.filter(|line| !line.is_empty() && !line.starts_with("= ")) {
        let (_, words) = case.split_once(':').expect("a name and words");
        found += &format!("{case}\n");
        for line in tell(words.trim()).lines() {
            found += &format!("    = {line}\n");
        }
    }
    found
}

fn change_bound(state: &mut Option<ClaimState>, what: &str, how: &str) -> bool {
    let Some(ClaimState::Bound(claim)) = state else {
        return false;
    };
    match what {
        "shared" => claim.shared_disk = true,
        "iscsi" => claim.volume.disk = Some("iSCSI"),
        "on" => claim.volume.affinity = how.split('|').map(term).collect(),
        "no-affinity" => claim.volume.affinity.clear(),
        "retain" => claim.volume.reclaim_policy = Some("Retain".to_owned()),
        "no-policy" => claim.volume.reclaim_policy = None,
        "driver" => {
            let attaches = match how {
                "unread" => Some(Err(not_read())),
                "?" => None,
                how => Some(Ok(how == "attaches")),
            };
            let name = "csi.example".to_owned();
            claim.volume.driver = Some(Driver { name, attaches });
        }
        // The words list the nodes that satisfy each term; the last list applies to all further
        // terms.
        "reached-by" => {
            let mut answers = how.split('|').map(|nodes| match nodes.trim() {
                "unread" => Some(Err(not_read())),
                "?" => None,
                nodes => Some(Ok(words(nodes))),
            });
            let mut last = None;
            for term in &mut claim.volume.affinity {
                last = answers.next().or(last);
                term.satisfied_by = last.clone().flatten();
            }
        }
        _ => return false,
    }
    true
}

/// Parses a term such as `zone In a b & disk Exists`, which no other node satisfies. `field` stands
/// for a requirement on a field of the node, and `''` for the empty value.
pub fn term(text: &str) -> AffinityTerm {
    let mut term = AffinityTerm {
        satisfied_by: Some(Ok(Vec::new())),
        ..AffinityTerm::default()
    };
    for requirement in text.split('&').map(words) {
        match &requirement[..] {
            [] => {}
            [field] if field == "field" => term.fields = true,
            [key, operator, values @ ..] => term.requirements.push(Requirement {
                key: key.clone(),
                operator: operator.clone(),
                values: values.iter().map(|value| value.replace("''", "")).collect(),
            }),
            [_] => unreachable!("it has an operator: {text}"),
        }
    }
    term
}

/// Returns the marker of Kosmos (`of edge-1` names the cluster), of another project of virtual or
/// edge nodes, or of the user's selector.
fn leaf(how: &str) -> Leaf {
    let (kind, maker, mark, cluster) = match how {
        "Kosmos" => (LeafKind::Kosmos, "Kosmos", "label kosmos.io/node", None),
        "of edge-1" => (
            LeafKind::Kosmos,
            "Kosmos",
            "taint kosmos.io/node",
            Some("edge-1"),
        ),
        "Liqo" => (
            LeafKind::Virtual,
            "Liqo",
            "label liqo.io/type=virtual-node",
            None,
        ),
        "KubeEdge" => (
            LeafKind::Edge,
            "KubeEdge",
            "kubelet version v1.22.6-kubeedge-v1.12.1",
            None,
        ),
        _ => (LeafKind::Selected, "", "label selector type=far", None),
    };
    Leaf {
        kind,
        maker,
        marks: vec![mark.to_owned()],
        cluster: cluster.map(str::to_owned),
    }
}

pub fn not_read() -> Unread {
    Unread("it is forbidden".to_owned())
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn number(text: &str) -> usize {
    text.parse()
        .unwrap_or_else(|error| unreachable!("{text:?}: {error}"))
}

pub fn span(text: &str) -> SignedDuration {
    text.parse()
        .unwrap_or_else(|error| unreachable!("{text:?}: {error}"))
}

/// Returns the moment that is `age` before now; `None` if `age` is not a duration.
fn moment(age: &str) -> Option<Timestamp> {
    Some(now() - age.parse::<SignedDuration>().ok()?)
}

fn code<T: std::fmt::Display, const N: usize>(all: [T; N], word: &str) -> T {
    let mut all = all.into_iter();
    all.find(|code| code.to_string() == word)
        .expect("one of its words")
}
