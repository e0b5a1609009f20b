//! Properties of the rules, the limits and the report, over random whole clusters.

mod case;

use self::case::Case;
use crate::oracle::{
    Place, Unwanted, alive, given_up_from, is_going, is_off, is_silent, place_of, shares_a_disk,
    unwanted,
};
use crate::prelude::*;
use pod_reaper::{
    advice::Step,
    decide::{PodContext as Judging, Reason, TieKind},
    facts::Query,
    limits::Limits,
    report::{BreakerEntry, RunRecord, text},
    words::natural,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

const CASES: u64 = 10_000;

/// Checks `property` on random clusters. If a cluster fails, the pods that do not matter for the failure are removed before it is
/// printed.
fn for_every_cluster(mut property: impl FnMut(&Case)) -> bool {
    for_every_seed(CASES, |seed| {
        let mut case = Case::random(seed);
        let mut fails = |case: &Case| catch_unwind(AssertUnwindSafe(|| property(case))).is_err();
        if !fails(&case) {
            return;
        }
        for at in (0..case.gathered.pods.len()).rev() {
            let mut fewer = case.clone();
            fewer.gathered.pods.remove(at);
            if fails(&fewer) {
                case = fewer;
            }
        }
        eprintln!("{case:#?}");
        property(&case);
    })
}

fn plan(settings: &Settings, gathered: &Gathered) -> Plan {
    let judged = settings.decide(&gathered.facts, gathered.pods.clone());
    settings.limit(&gathered.facts, judged)
}

fn reaps(plan: &Plan) -> impl Iterator<Item = &PodFacts> {
    plan.reaps().map(|judged| &judged.pod)
}

fn report(case: &Case, settings: &Settings, gathered: &Gathered) -> Report {
    let mut run = RunRecord::new(settings, gathered.facts.clone(), plan(settings, gathered));
    let of = |pod: &PodFacts| {
        let number = pod.uid.trim_start_matches("uid-").parse::<usize>().unwrap();
        (
            pod.uid.clone(),
            case.outcomes[number % case.outcomes.len()].clone(),
        )
    };
    if let Task::Reap { .. } = settings.task {
        run.outcomes = reaps(&run.plan).map(of).collect();
    }
    run.report()
}

fn text_of(report: &Report) -> String {
    text::write(&report.page(), Screen::default())
}

/// The limit that keeps the pod, by an independent count: of the whole run, or of the nodes of a zone.
fn limit(case: &Case, max_percent: u8, pod: &PodFacts) -> Option<ReasonCode> {
    let facts = &case.gathered.facts;
    let node = node_of(facts, pod)?;
    let looked_at = facts.nodes.values().filter_map(NodeRead::known);
    let looked_at = looked_at.map(counted_node);
    let nodes = looked_at.chain(case.further_nodes.iter().cloned());
    let held = match facts.node_counts {
        NodeCounts::Counted { .. } => Outage::of(nodes, max_percent).holds(node),
        NodeCounts::NotNeeded | NodeCounts::Unread(_) => false,
    };
    let unread = facts.clock.is_some()
        || matches!(facts.node_counts, NodeCounts::Unread(_)) && max_percent < 100;
    if unread {
        Some(ReasonCode::FactsUnread)
    } else {
        held.then_some(ReasonCode::MassOutage)
    }
}

/// The pod's node, as it was read.
fn node_of<'a>(facts: &'a ClusterFacts, pod: &PodFacts) -> Option<&'a NodeFacts> {
    facts.node_of(pod)?.known()
}

fn pod_of<'a>(gathered: &'a Gathered, uid: &str) -> &'a PodFacts {
    let mut pods = gathered.pods.iter();
    pods.find(|pod| pod.uid.as_str() == uid).unwrap()
}

/// The moment from which the pod is overdue.
fn since(facts: &ClusterFacts, pod: &PodFacts) -> Timestamp {
    due(pod, node_of(facts, pod), facts.now)
}

fn uids<'a>(pods: impl IntoIterator<Item = &'a PodFacts>) -> BTreeSet<&'a str> {
    pods.into_iter().map(|pod| pod.uid.as_str()).collect()
}

#[test]
fn nothing_is_reaped_that_the_design_forbids() {
    let (mut judged, mut reaped, mut seen) = (0, 0, BTreeSet::new());
    let mut shared = false;
    let enough = for_every_cluster(|case| {
        let (settings, facts) = (case.settings(), &case.gathered.facts);
        let plan = plan(&settings, &case.gathered);
        for pod in reaps(&plan) {
            let objections = objections(facts, &settings.policy, pod);
            let limit = limit(case, settings.limits.max_not_ready_percent, pod);
            assert!(
                objections.is_empty() && limit.is_none(),
                "{} is reaped, but {objections:?} {limit:?}",
                pod.uid
            );
            shared |= shares_a_disk(pod);
        }
        let reaps = plan.reaps().count();
        assert!(reaps <= settings.limits.max_deletes.unwrap_or(usize::MAX));
        assert_eq!(
            plan.pods.len(),
            case.gathered.pods.len(),
            "every pod is reported"
        );
        judged += case.gathered.pods.len();
        reaped += reaps;
        seen.extend(plan.pods.iter().map(Judged::code));
    });
    // Without reaped pods, or with few clusters, the property proves little.
    if enough {
        assert!(
            reaped * 16 >= judged,
            "only {reaped} of {judged} pods are reaped"
        );
        assert_eq!(
            seen.len(),
            ReasonCode::ALL.len(),
            "each reason comes up: {seen:?}"
        );
        assert!(shared, "a shared disk on a fenced node");
    }
}

#[test]
fn every_pod_without_an_objection_is_reaped() {
    for_every_cluster(|case| {
        let settings = case.settings();
        let plan = plan(&settings, &case.gathered);
        let free =
            |pod: &&PodFacts| objections(&case.gathered.facts, &settings.policy, pod).is_empty();
        let due = case.gathered.pods.iter().filter(free).collect_vec();
        let limit = |pod: &PodFacts| limit(case, settings.limits.max_not_ready_percent, pod);
        let (held, goes) = due
            .iter()
            .partition::<Vec<&PodFacts>, _>(|pod| limit(pod).is_some());
        let cap = settings.limits.max_deletes.unwrap_or(usize::MAX);
        let reaped = uids(reaps(&plan));
        assert_eq!(reaped.len(), goes.len().min(cap));
        let said = BreakerEntry::of(&plan).map_or(0, |entry| entry.held);
        assert_eq!(said, held.len());
        let due = uids(due);
        for judged in &plan.pods {
            let uid = judged.pod.uid.as_str();
            if due.contains(uid) && !reaped.contains(uid) {
                let limited = limit(&judged.pod).unwrap_or(ReasonCode::OverCap);
                assert_eq!(judged.code(), limited, "{uid}");
            }
        }
    });
}

/// The user sees the reason that matters first, and acts on it.
#[test]
fn the_first_rule_that_holds_gives_the_reason() {
    for_every_cluster(|case| {
        let settings = case.settings();
        let facts = &case.gathered.facts;
        for judged in plan(&settings, &case.gathered).pods {
            let pod = &judged.pod;
            let expected = first_reason(facts, &settings.policy, pod);
            assert_eq!(judged.reason.code, expected, "{}", pod.uid);
            if ![
                ReasonCode::VolumeUnverified,
                ReasonCode::LocalVolume,
                ReasonCode::Stuck,
            ]
            .contains(&expected)
            {
                continue;
            }
            let node = node_of(facts, pod).unwrap();
            let is_given_up = |claim: &ClaimFacts| {
                given_up_from(claim, node, facts.now, &settings.policy).is_some()
                    && unwanted(pod) != Some(Unwanted::Namespace)
            };
            let named = |kind| {
                let ties = judged.reason.ties.of_kind(kind);
                ties.map(|tie| &tie.pvc).collect_vec()
            };
            let such = |is: &dyn Fn(&ClaimFacts) -> bool| {
                let claims = pod.claims.iter().filter(|claim| is(claim));
                claims.map(|claim| &claim.name).collect_vec()
            };
            let at = |place: Place| {
                such(&|claim| {
                    let is_wanted = unwanted(pod).is_none() && !is_given_up(claim);
                    is_wanted && place_of(claim, node) == place
                })
            };
            let going = such(&|claim| is_going(pod, claim, is_given_up(claim)));
            assert_eq!(named(TieKind::Going), going, "{}", pod.uid);
            assert_eq!(named(TieKind::Pinned), at(Place::Pinned), "{}", pod.uid);
            assert_eq!(named(TieKind::Confined), at(Place::Confined), "{}", pod.uid);
        }
    });
}

/// Returns the pod as it is before any reading of its storage.
fn without_storage(pod: &PodFacts) -> PodFacts {
    let claims = pod.claims.iter().map(|claim| {
        let (name, ephemeral) = claim.reference();
        ClaimFacts::named(name.to_owned(), ephemeral)
    });
    PodFacts {
        claims: claims.collect(),
        set_wants: None,
        ..pod.clone()
    }
}

/// Adds to `pod` the reading for `query`, as `whole` has it.
fn answer(pod: &mut PodFacts, whole: &PodFacts, query: &Query) {
    if let Query::Set { .. } = query {
        pod.set_wants.clone_from(&whole.set_wants);
    }
    for (claim, whole) in pod.claims.iter_mut().zip(&whole.claims) {
        match query {
            Query::Pvc { name, .. } if *name == whole.name => {
                claim.deletion.clone_from(&whole.deletion);
                claim.owned = whole.owned;
                claim.state.clone_from(&whole.state);
                if let Some(ClaimState::Bound(bound)) = &mut claim.state {
                    let terms = bound.volume.affinity.iter_mut();
                    terms.for_each(|term| term.satisfied_by = None);
                    if let Some(driver) = &mut bound.volume.driver {
                        driver.attaches = None;
                    }
                }
            }
            _ => {}
        }
        let (Some(ClaimState::Bound(bound)), Some(ClaimState::Bound(whole))) =
            (&mut claim.state, &whole.state)
        else {
            continue;
        };
        let terms = bound.volume.affinity.iter_mut();
        for (term, whole) in terms.zip(&whole.volume.affinity) {
            if matches!(query, Query::NodesFor(it) if term.selector() == Ok(Some(it.clone()))) {
                term.satisfied_by.clone_from(&whole.satisfied_by);
            }
        }
        if let (Query::Drivers, Some(driver)) = (query, &mut bound.volume.driver) {
            let whole = whole.volume.driver.as_ref().unwrap();
            driver.attaches.clone_from(&whole.attaches);
        }
    }
}

/// The queries of the rules are sufficient: the reason is the same as with all facts. If there are two causes, the cause that a
/// sentence names may depend on what was read.
#[test]
fn what_no_rule_asks_for_changes_nothing() {
    let (mut asked, mut not_asked) = (0, 0);
    let enough = for_every_cluster(|case| {
        let (facts, policy) = (&case.gathered.facts, &case.settings().policy);
        for whole in &case.gathered.pods {
            let mut pod = without_storage(whole);
            let mut known = BTreeSet::new();
            loop {
                let mut queries = Judging::of(facts, policy, &pod).queries();
                queries.retain(|query| !known.contains(query));
                let Some(stage) = queries.iter().map(Query::stage).min() else {
                    break;
                };
                queries.retain(|query| query.stage() == stage);
                for query in &queries {
                    answer(&mut pod, whole, query);
                }
                known.extend(queries);
            }
            asked += known.len();
            not_asked += usize::from(known.is_empty() && !whole.claims.is_empty());
            let [by_need, by_all] =
                [&pod, whole].map(|pod| Judging::of(facts, policy, pod).decide());
            let told = |reason: &Reason| (reason.code, reason.asks.clone());
            assert_eq!(told(&by_need), told(&by_all), "{} {known:?}", whole.uid);
        }
    });
    assert!(
        !enough || asked > 0 && not_asked > 0,
        "asked {asked}, not asked {not_asked}"
    );
}

#[test]
fn the_report_says_which_nodes_live_and_which_are_off() {
    for_every_cluster(|case| {
        let (settings, facts) = (case.settings(), &case.gathered.facts);
        for entry in report(case, &settings, &case.gathered).nodes {
            let Some(node) = facts.nodes.get(&entry.name).and_then(NodeRead::known) else {
                continue;
            };
            assert_eq!(
                !entry.signs_of_life.is_empty(),
                alive(node, facts.now),
                "{}",
                entry.name
            );
            let off = is_off(node, facts.now);
            assert_eq!(entry.fenced.is_some(), off, "{}", entry.name);
        }
    });
}

#[test]
fn the_cap_takes_the_longest_overdue() {
    for_every_cluster(|case| {
        let plan = plan(&case.settings(), &case.gathered);
        let key = |pod: &PodFacts| {
            (
                since(&case.gathered.facts, pod),
                pod.namespace.clone(),
                natural(&pod.name),
            )
        };
        let last = reaps(&plan).map(key).max();
        for judged in plan
            .pods
            .iter()
            .filter(|judged| judged.code() == ReasonCode::OverCap)
        {
            assert!(
                last <= Some(key(&judged.pod)),
                "{} is over the cap, {last:?} is not",
                judged.pod.uid
            );
        }
        let order = reaps(&plan).map(key).collect_vec();
        assert!(order.is_sorted(), "the order to act in: {order:?}");
    });
}

fn known_mut(gathered: &mut Gathered) -> impl Iterator<Item = &mut NodeFacts> {
    gathered
        .facts
        .nodes
        .values_mut()
        .filter_map(|node| match node {
            NodeRead::Known(node) => Some(node),
            _ => None,
        })
}

#[test]
fn a_failed_read_adds_nothing() {
    let why = || Unread("it is forbidden".to_owned());
    let failures: [fn(&mut Gathered, Unread); 9] = [
        |it, why| {
            it.facts
                .nodes
                .values_mut()
                .for_each(|node| *node = NodeRead::Unread(why.clone()));
        },
        |it, why| {
            it.pods
                .iter_mut()
                .for_each(|pod| pod.in_namespace = Some(Err(why.clone())));
        },
        |it, why| it.facts.node_counts = NodeCounts::Unread(why),
        |it, why| it.facts.clock = Some(why.0),
        |it, why| known_mut(it).for_each(|node| node.unread_lease = Some(why.clone())),
        |it, why| known_mut(it).for_each(|node| node.named_by = Some(Err(why.clone()))),
        |it, why| {
            let volumes = it.pods.iter_mut().flat_map(volumes_mut);
            for driver in volumes.flat_map(|volume| &mut volume.driver) {
                driver.attaches = Some(Err(why.clone()));
            }
        },
        |it, why| {
            for claim in it.pods.iter_mut().flat_map(|pod| &mut pod.claims) {
                claim.state = Some(ClaimState::Unread(why.clone()));
            }
        },
        |it, why| {
            let volumes = it.pods.iter_mut().flat_map(volumes_mut);
            for term in volumes.flat_map(|volume| &mut volume.affinity) {
                term.satisfied_by = Some(Err(why.clone()));
            }
        },
    ];
    for_every_cluster(|case| {
        let mut settings = case.settings();
        // Under a cap, omitting one pod makes room for another.
        settings.limits = Limits {
            max_deletes: None,
            ..settings.limits
        };
        let whole = plan(&settings, &case.gathered);
        for fail in failures {
            let mut failed = case.gathered.clone();
            fail(&mut failed, why());
            let partial = plan(&settings, &failed);
            let reaped = uids(reaps(&whole));
            for pod in reaps(&partial) {
                assert!(reaped.contains(pod.uid.as_str()), "{} is added", pod.uid);
            }
        }
    });
}

#[test]
fn the_order_of_the_facts_does_not_matter() {
    for_every_cluster(|case| {
        let settings = case.settings();
        let keyed = case.order.iter().zip(case.gathered.pods.clone());
        let sorted = keyed.sorted_by_key(|(key, _)| **key);
        let shuffled = Gathered {
            leases: None,
            pods: sorted.map(|(_, pod)| pod).collect(),
            facts: case.gathered.facts.clone(),
        };
        let (one, other) = (
            report(case, &settings, &case.gathered),
            report(case, &settings, &shuffled),
        );
        let json = |report| serde_json::to_string(report).unwrap();
        assert_eq!(json(&one), json(&other));
        assert_eq!(text_of(&one), text_of(&other));
    });
}

/// Whether the node of this name was read and shows a sign of life, or might show one if more were read.
fn lives(gathered: &Gathered, node: Option<&str>) -> bool {
    let facts = &gathered.facts;
    let node = node
        .and_then(|name| facts.nodes.get(name))
        .and_then(NodeRead::known);
    node.is_some_and(|node| !is_silent(node, facts.now))
}

fn has(steps: &[Step], is: impl Fn(&str) -> bool) -> bool {
    let commands = steps.iter().flat_map(|step| &step.command);
    commands.flat_map(|command| command.split(' ')).any(is)
}

#[test]
fn destructive_commands_are_printed_only_for_what_is_certainly_dead() {
    // A PVC that somebody deleted forbids even the taint, which would end its pod.
    let may_remain = [
        "a volume is pinned",
        "it writes to its node",
        "a volume is confined",
        "a volume is unverified",
        "two machines could write its disk",
        "two machines might write its disk",
        "its owner's kind is manual",
    ];
    let destroys = |steps: &[Step]| has(steps, |word| ["delete", "taint"].contains(&word));
    let mut deletes = 0;
    let enough = for_every_cluster(|case| {
        let (settings, gathered) = (case.settings(), &case.gathered);
        let report = report(case, &settings, gathered);
        let limit = |pod: &PodFacts| limit(case, settings.limits.max_not_ready_percent, pod);
        let objects_to = |pod: &PodFacts| {
            let mut objections = objections(&gathered.facts, &settings.policy, pod);
            objections.retain(|objection| !may_remain.contains(objection));
            objections
        };
        for entry in &report.pods {
            let steps = &entry.advice.steps;
            if !destroys(steps) {
                continue;
            }
            let pod = pod_of(gathered, &entry.uid);
            let reason = first_reason(&gathered.facts, &settings.policy, pod);
            assert_eq!(limit(pod), None);
            if has(steps, |word| word == "delete") {
                assert_eq!(reason, ReasonCode::LocalVolume, "{}", pod.uid);
                let node = node_of(&gathered.facts, pod).unwrap();
                let is_named = |claim: &ClaimFacts| {
                    let path = format!("/persistentvolumeclaims/{}", claim.name);
                    has(steps, |word| word.ends_with(&path))
                };
                deletes += 1;
                for claim in pod.claims.iter().filter(|claim| is_named(claim)) {
                    let is_here = place_of(claim, node) == Place::Pinned;
                    assert!(
                        is_here && claim.templated && claim.deletion.is_none(),
                        "{}",
                        claim.name
                    );
                }
            }
            assert!(
                !lives(gathered, pod.node.as_deref()) && objects_to(pod).is_empty(),
                "{} gets such a command, but {:?}",
                pod.uid,
                objects_to(pod)
            );
        }
        // Commands for a node are allowed only if one of its pods shows that the node is not expected to return.
        for entry in report.nodes.iter().filter(|node| destroys(&node.steps)) {
            let name = &entry.name;
            let mut pods = gathered.pods.iter();
            assert!(!lives(gathered, Some(name)), "{name}");
            // The PVCs of a pod that finalizers hold are not looked up.
            let not_looked_up = [
                "a finalizer holds it",
                "a wanted PVC would go with it",
                "a PVC was deleted a moment ago",
            ];
            let shows = |pod: &PodFacts| {
                let objections = objects_to(pod);
                let is_held = objections.contains(&not_looked_up[0]);
                let mut objections = objections.iter();
                pod.node.as_ref() == Some(name)
                    && objections.all(|objection| is_held && not_looked_up.contains(objection))
                    && limit(pod).is_none()
            };
            assert!(pods.any(shows), "{name} gets such a command");
        }
    });
    assert!(!enough || deletes > 3, "{deletes} delete a PVC");
}

#[test]
fn the_text_keeps_to_its_columns_and_controls_no_terminal() {
    for_every_cluster(|case| {
        let report = report(case, &case.settings(), &case.gathered);
        let steps = report.pods.iter().flat_map(|pod| &pod.advice.steps);
        let steps = steps.chain(report.groups.iter().flat_map(|group| &group.advice.steps));
        let steps = steps.chain(report.nodes.iter().flat_map(|node| &node.steps));
        let steps = steps.chain(report.breaker.iter().flat_map(|it| &it.steps));
        let commands = steps.flat_map(|step| step.command.iter());
        let lines = commands.flat_map(|command| command.split('\n'));
        let lines = lines.map(shown).collect::<BTreeSet<_>>();
        let text = text_of(&report);
        for line in text.split('\n') {
            assert!(
                !line.chars().any(steers),
                "it steers the terminal: {line:?}"
            );
            let alone = without_mark(line.trim_end_matches(" \\"));
            assert!(
                columns(line) <= 100 || !alone.contains(' ') || lines.contains(alone),
                "{} columns, and more than one word: {line:?}",
                columns(line)
            );
        }
    });
}

/// Whether the character is a control character, is invisible, or changes the direction of writing.
fn steers(letter: char) -> bool {
    letter.is_control()
        || ['\u{ad}', '\u{61c}', '\u{180e}', '\u{feff}', '\u{e0001}'].contains(&letter)
        || [
            ('\u{200b}', '\u{200f}'),
            ('\u{2028}', '\u{202e}'),
            ('\u{2060}', '\u{206f}'),
            ('\u{fff9}', '\u{fffb}'),
            ('\u{e0020}', '\u{e007f}'),
        ]
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&letter))
}

/// A line of a command as the report prints it, without the indentation, and without the backslash that a line of a script has.
fn shown(line: &str) -> String {
    let shown = line.replace('\t', " ").replace(steers, "\u{fffd}");
    shown.trim().trim_end_matches(" \\").to_owned()
}

/// The line's text without the indentation, the label of a header line, and the mark of a step.
fn without_mark(line: &str) -> &str {
    let labels = ["HELD ", "INCOMPLETE ", "NOTE ", "NODES ", "PODS ", "FIRST "];
    let mut labels = labels.iter().filter_map(|label| line.strip_prefix(label));
    let line = labels.next().unwrap_or(line).trim_start();
    let unnumbered = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    line.strip_prefix("- ")
        .or_else(|| unnumbered.strip_prefix(". "))
        .unwrap_or(line)
}

/// The width of a line. Letters from Hangul on are counted twice, because most of them are two columns wide.
fn columns(line: &str) -> usize {
    line.chars()
        .map(|letter| {
            if letter < '\u{1100}' || letter == '\u{fffd}' {
                1
            } else {
                2
            }
        })
        .sum()
}
