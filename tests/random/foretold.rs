//! For any options, `what-if` predicts for a set of nodes what a run decides on the same state once those nodes are dead. The
//! same holds for the forecast of each single node.

use crate::{
    prelude::*,
    scan::{client, for_every_world, gathered_from, planned, runtime},
    world::{
        node::{Node, heard, made},
        pod::deletion,
    },
};

use pod_reaper::{
    facts::SignBy,
    questions::{each_node, what_if},
    report::{BreakerEntry, PodEntry},
    source::Source,
};

/// The reason and the sentence of each pod that a run judges, by UID; and the breaker's detail.
type Verdicts = (BTreeMap<Uid, (ReasonCode, String)>, Option<String>);

async fn foretold(source: Source<'_>, settings: &Settings, dead: &BTreeSet<String>) -> Verdicts {
    let answer = what_if::run_on(source, settings, dead).await.unwrap();
    assert_eq!(answer.errors, vec![]);
    let judged = answer.pods.into_iter().filter_map(|pod| {
        let PodEntry {
            uid,
            reason,
            detail,
            ..
        } = pod;
        Some((uid.into(), (reason?, detail)))
    });
    let breaker = answer.breaker.map(|breaker| breaker.detail);
    (judged.collect(), breaker)
}

fn is_on(dead: &BTreeSet<String>, node: Option<&String>) -> bool {
    node.is_some_and(|node| dead.contains(node))
}

/// The nodes of `dead` died twenty hours ago. The pods that Kubernetes evicts from them have been Terminating since then.
fn die(world: &mut World, dead: &BTreeSet<String>) {
    let died = start() - SignedDuration::from_hours(20);
    let before = SignedDuration::from_hours(30);
    let moved = world.leases.iter().map(|lease| {
        let named = world.named_by(lease);
        let node = named.into_iter().find(|node| dead.contains(*node))?;
        let node = &world.nodes[node];
        let heard = node.at(start(), Ok(Vec::new())).facts.heard;
        let reports = !heard.is_empty();
        Some(node.facts.ready == Ready::True && reports)
    });
    // A forecast reads no other Leases and no reports of programs in pods. It does not predict whether these alone refute a
    // fencing mark.
    for (lived, it) in moved.collect_vec().into_iter().zip(&mut world.leases) {
        if let Some(lived) = lived {
            let lease = &mut it.lease;
            (lease.renewed, lease.skew, lease.goes_on) = (lived.then_some(died), 0, false);
        }
    }
    let nodes = world.nodes.values_mut();
    for node in nodes.filter(|node| dead.contains(&node.facts.name)) {
        // A node that was Ready sent heartbeats until it died, and any mark on it is older. On a node that was not Ready,
        // everything is older.
        let lived = node.facts.ready == Ready::True;
        let last = |at: Timestamp| if lived { died } else { at - before };
        // If a clock was wrong, its time is replaced by the time that was used. Otherwise the time would be judged differently
        // later.
        for beat in &mut node.beats {
            let stamp = beat.stamped.map(|_| beat.at);
            let at = heard(Some(beat.said()), stamp, node.facts.created, start());
            (beat.at, beat.every) = (last(at.unwrap_or(beat.at)), None);
            beat.stamped = beat.stamped.map(|_| 0);
        }
        if let Some(lease) = &mut node.lease {
            let at = heard(lease.said(), lease.stamped(), Some(made()), start());
            (lease.renewed, lease.skew, lease.goes_on) = (at.map(last), 0, false);
        }
        let said = node.facts.ready_since.filter(|since| *since <= start());
        let failed = said.max(node.facts.tainted_since);
        for (place, set) in &mut node.fences {
            // A taint without a time was set when any taint was last written. A cloud's taint without a time was set when the
            // node failed.
            let written = match place.key() {
                ("taint", "node.cloudprovider.kubernetes.io/shutdown") => failed,
                ("taint", _) => Some(start()),
                _ => None,
            };
            *set = set.or(written).map(|set| set - before);
        }
        node.doubtful = false;
        node.facts.ready = Ready::Unknown;
        (node.facts.ready_since, node.facts.tainted_since) = (Some(died), Some(died));
    }
    // A grace period of a week is skipped if the node has a Lease of its own, because only then is it known to be silent.
    let with_lease = |node: &Node| {
        node.at(start(), Ok(Vec::new()))
            .facts
            .heard_by(SignBy::Lease)
            .is_some()
    };
    let with_lease = world.nodes.values().filter(|node| with_lease(node));
    let with_lease = with_lease.map(|node| node.facts.name.clone());
    let with_lease = with_lease.collect::<BTreeSet<_>>();
    let pods = world.pods.values_mut();
    for pod in pods.filter(|pod| is_on(dead, pod.facts.node.as_ref())) {
        pod.word = None;
        let is_cut = is_on(&with_lease, pod.facts.node.as_ref());
        if is_evicted(pod) {
            let grace = if is_cut { 604_800 } else { 30 };
            pod.terminating = true;
            deletion(&mut pod.facts).grace_seconds = Some(grace);
        }
        let deletion = deletion(&mut pod.facts);
        let grace = deletion.grace_seconds.filter(|_| is_cut);
        deletion.deadline = died + SignedDuration::from_secs(grace.unwrap_or_default());
    }
}

fn renew(world: &mut World) {
    let nodes = world.nodes.values_mut();
    for node in nodes.filter(|node| node.facts.ready == Ready::True) {
        node.renew(start(), true);
    }
}

fn take_answers(world: &mut World) {
    for node in world.nodes.values_mut() {
        node.facts.powered_off = None;
    }
    for pod in world.pods.values_mut() {
        pod.facts.reap = None;
    }
    for claim in world.claims.values_mut() {
        claim.give_up = None;
    }
}

/// Whether the pod's deletion is requested only once its node is dead.
fn is_evicted(pod: &Pod) -> bool {
    !pod.terminating && !pod.facts.finished() && pod.occupies()
}

fn read(cluster: &Objects, every_pod: bool) -> Saved {
    let options = Options {
        now: Some(start()),
        every_pod,
    };
    Saved::read(cluster.saved().as_bytes(), options).unwrap()
}

/// The decisions about the pods on the nodes of `dead`.
fn verdicts(plan: &Plan, dead: &BTreeSet<String>) -> Verdicts {
    let on_dead = plan.pods.iter();
    let on_dead = on_dead.filter(|judged| is_on(dead, judged.pod.node.as_ref()));
    let decided = on_dead.map(|judged: &Judged| {
        let says = (judged.code(), judged.sentence());
        (judged.pod.uid.clone(), says)
    });
    let breaker = BreakerEntry::of(plan).map(|entry| entry.detail);
    (decided.collect(), breaker)
}

/// The decisions of a run once the nodes of `dead` are dead.
fn decided(mut world: World, settings: &Settings, dead: &BTreeSet<String>) -> Verdicts {
    die(&mut world, dead);
    take_answers(&mut world);
    let cluster = Objects::new(start(), world.all());
    let after = read(&cluster, false);
    let (_, plan) = planned(gathered_from(&after, settings), settings);
    let (mut pods, breaker) = verdicts(&plan, dead);
    // A forecast has no deadlines, so it does not say that a grace period is skipped.
    for (_, sentence) in pods.values_mut() {
        if let Some(cut) = sentence.find(" Its grace period of") {
            sentence.truncate(cut);
        }
    }
    (pods, breaker)
}

/// Drops the sentences, because the API server refuses a selector in its own words.
fn codes((pods, breaker): &Verdicts) -> (Vec<(Uid, ReasonCode)>, Option<String>) {
    let codes = pods.iter().map(|(uid, (code, _))| (uid.clone(), *code));
    (codes.collect(), breaker.clone())
}

/// Compares the forecast for each pod, and the counts of pods.
#[test]
fn each_node_is_foretold_as_a_run_decides_once_it_alone_is_dead() {
    let (mut seen, mut pending) = (0, 0);
    let enough = for_every_world(LEAST, |dice, mut world, mut settings| {
        settings.limits.max_deletes = None;
        renew(&mut world);
        if !dice.permille(500) {
            take_answers(&mut world);
        }
        let mut objects = world.all();
        for pod in objects.iter_mut().filter(|it| it["kind"] == "Pod") {
            // No node has this label, so the pod cannot start elsewhere. That changes no verdict.
            if dice.permille(200) {
                pod["spec"]["nodeSelector"] = serde_json::json!({"example.org/no": "such"});
            }
        }
        let cluster = Objects::new(start(), objects);
        let saved = read(&cluster, true);
        let shown = std::cell::RefCell::new(BTreeMap::<_, Vec<_>>::new());
        let show = |node: &str, plan: &Plan| {
            let of_node = verdicts(plan, &BTreeSet::from([node.to_owned()]));
            let mut shown = shown.borrow_mut();
            shown.entry(node.to_owned()).or_default().push(of_node);
        };
        let (of_file, of_cluster) = runtime().block_on(async {
            let server = Server::new(cluster);
            let (_going_on, cluster) = client(&server);
            let of_file = each_node::run_on((&saved).into(), &settings, show)
                .await
                .unwrap();
            let live = &cluster;
            let of_cluster = each_node::run_on(live.into(), &settings, show)
                .await
                .unwrap();
            assert_eq!(server.lock().not_understood, Vec::<String>::new());
            (of_file, of_cluster)
        });
        assert_eq!(of_file.errors, vec![]);
        assert_eq!(of_cluster.each_node, of_file.each_node);
        let counts = of_file.each_node.unwrap();
        for (node, foretold) in shown.take() {
            let decided = decided(world.clone(), &settings, &BTreeSet::from([node.clone()]));
            for foretold in &foretold {
                assert_eq!(codes(foretold), codes(&decided), "of {node}");
            }
            assert_eq!(foretold.len(), 2, "{node}, by a file and by a cluster");
            let counted = counts.iter().find(|line| line.node == node);
            let Some(counted) = counted else {
                assert!(world.nodes[&node].facts.leaf.is_some(), "{node}");
                continue;
            };
            let needs_person = |(code, _): &&(ReasonCode, String)| {
                code.verdict() == pod_reaper::decide::Verdict::Manual
            };
            let needs_person = decided.0.values().filter(needs_person).count();
            assert_eq!(counted.counts.needs_person, needs_person, "of {node}");
            pending += counted.counts.stays_pending;
            assert_eq!(counted.breaker_holds, decided.1.is_some(), "of {node}");
            seen += needs_person;
        }
    });
    assert!(
        !enough || seen > 50 && pending > 5,
        "{seen}, {pending} pending"
    );
}

#[test]
fn what_is_foretold_is_what_a_run_decides_once_the_nodes_are_dead() {
    let (mut seen, mut held) = (BTreeMap::<_, usize>::new(), 0);
    let enough = for_every_world(1_000, |dice, mut world, mut settings| {
        // A cap would also count the other pods of the cluster.
        settings.limits.max_deletes = None;
        let names = world.nodes.keys().cloned().collect_vec();
        let dead = (0..=dice.below(2)).map(|_| names[dice.below(names.len())].clone());
        let dead = dead.collect::<BTreeSet<_>>();
        renew(&mut world);
        // The forecast mentions an answer about an earlier failure, but the answer changes no verdict.
        let answered = dice.permille(500);
        if !answered {
            take_answers(&mut world);
        }
        let cluster = Objects::new(start(), world.all());
        let saved = read(&cluster, true);
        let (of_file, of_cluster) = runtime().block_on(async {
            let server = Server::new(cluster);
            let (_going_on, cluster) = client(&server);
            let live = &cluster;
            let found = foretold(live.into(), &settings, &dead).await;
            assert_eq!(server.lock().not_understood, Vec::<String>::new());
            (foretold((&saved).into(), &settings, &dead).await, found)
        });

        let decided = decided(world, &settings, &dead);
        if !answered {
            assert_eq!(of_file, decided, "of {dead:?}, by a file");
        }
        assert_eq!(
            codes(&of_cluster),
            codes(&decided),
            "of {dead:?}, by a cluster"
        );
        assert_eq!(codes(&of_file), codes(&decided), "of {dead:?}, by a file");
        held += usize::from(decided.1.is_some());
        for (code, _) in decided.0.into_values() {
            *seen.entry(code.as_str()).or_default() += 1;
        }
    });
    let expected = [
        ReasonCode::Stuck,
        ReasonCode::Scratch,
        ReasonCode::LocalVolume,
        ReasonCode::VolumeUnverified,
        ReasonCode::SharedDisk,
        ReasonCode::OwnerKind,
    ];
    for code in expected.map(ReasonCode::as_str) {
        let often = seen.get(code).copied().unwrap_or_default();
        assert!(!enough || often > 1, "{code}: {seen:?}");
    }
    assert!(!enough || held > 5, "{held} held");
}
