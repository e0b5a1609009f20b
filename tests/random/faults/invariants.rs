//! The invariants of each write when it is sent, and of the report when the run has ended.

use super::watched::{Received, Watched, Write};
use crate::world::pod::is_forced;
use crate::{
    prelude::*,
    world::{
        By,
        claim::{attached, reached, wanted_by_set},
        no_facts, unread,
    },
};
use pod_reaper::facts::NamespaceFacts;
use pod_reaper::{
    decide::Verdict,
    report::{PodEntry, text},
};
use serde_json::json;

/// The entry in the report's errors if the living nodes contradict the server's clock.
const TIME: &str = "the time, to judge by";

/// The maximum age of a read of the node when a write is sent and when it arrives. The age starts at the request for the read.
pub const FRESH: Duration = Duration::from_secs(5);
/// The maximum number of concurrent requests.
const AT_ONCE: usize = 8;
/// The maximum number of writes to one pod: four tries, each repeated once after a conflict, and the writes of the Job step.
const MOST_WRITES: usize = 10;

/// The settings and limits of a run.
pub struct Rules {
    pub settings: Arc<Settings>,
    pub dry_run: bool,
    /// The time after which the run starts no request.
    pub last_start: Instant,
    /// The time by which the run has ended.
    pub end: Instant,
}

impl Rules {
    pub fn new(settings: Arc<Settings>, last_start: Instant, end: Instant) -> Self {
        let dry_run = match &settings.task {
            Task::Reap { dry_run, .. } => *dry_run,
            Task::Audit { .. } => unreachable!("no snapshot is asked for"),
        };
        Self {
            settings,
            dry_run,
            last_start,
            end,
        }
    }
}

impl Watched {
    /// Checks a write when it is sent, by what the program can know.
    pub fn judge(&mut self, request: &Request) {
        let mut wrong = self.wrong_form(request);
        let pod = self.pod_of(request).cloned();
        let (uid, version) = request.preconditions();
        let (uid, version) = (uid.to_owned(), version.to_owned());
        match pod {
            Some(pod) => wrong.extend(self.wrong_pod(request, pod)),
            None => wrong.push("the program never saw the pod in this version".to_owned()),
        }
        let earlier = self
            .writes
            .iter()
            .filter(|write| write.uid == uid)
            .collect::<Vec<_>>();
        if earlier.iter().any(|write| write.denied) {
            wrong.push("it was denied before".to_owned());
        }
        let alike = |write: &&&Write| write.kind == request.kind;
        if earlier.iter().filter(alike).count() >= MOST_WRITES {
            wrong.push("it is repeated without end".to_owned());
        }
        if earlier.is_empty() && Instant::now() > self.rules.last_start {
            wrong.push("the run should have stopped".to_owned());
        }
        let mut uids = self
            .writes
            .iter()
            .map(|write| write.uid.as_str())
            .collect::<BTreeSet<_>>();
        uids.insert(&uid);
        if self
            .rules
            .settings
            .limits
            .max_deletes
            .is_some_and(|cap| uids.len() > cap)
        {
            wrong.push("it is over the cap".to_owned());
        }
        let which = format!(
            "{:?} of {}/{} ({uid}, {version})",
            request.kind, request.namespace, request.name
        );
        self.violations
            .extend(wrong.into_iter().map(|wrong| format!("{which}: {wrong}")));
        self.writes.push(Write {
            request: request.number,
            kind: request.kind,
            uid,
            took_effect: None,
            answered: None,
            denied: false,
        });
    }

    /// The pod that a write is about.
    fn pod_of(&self, request: &Request) -> Option<&PodFacts> {
        let (uid, version) = request.preconditions();
        self.received.pods.get(&(uid.into(), version.into()))
    }

    fn wrong_form(&self, request: &Request) -> Vec<String> {
        let (uid, version) = request.preconditions();
        let (body, content, asked) = if request.kind == Kind::Patch {
            let said = |key: &str| {
                let field = request.body.pointer(&format!("/status/conditions/0/{key}"));
                field.and_then(Value::as_str).unwrap_or_default()
            };
            // Any message is accepted, because only people read it. The time must be one that the server's clock has shown.
            let message = Some(said("message")).filter(|message| !message.is_empty());
            let when = said("lastTransitionTime");
            let shown = start()..=self.world.now();
            let when = Some(when).filter(|when| when.parse().is_ok_and(|it| shown.contains(&it)));
            let condition = json!({
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodReaper",
                "message": message,
                "lastTransitionTime": when,
            });
            let patch = json!({
                "metadata": {"uid": uid, "resourceVersion": version},
                "status": {"phase": "Failed", "conditions": [condition]},
            });
            (
                patch,
                "application/strategic-merge-patch+json",
                Some("fieldManager=pod-reaper"),
            )
        } else {
            let options = json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "gracePeriodSeconds": 0,
                "propagationPolicy": "Background",
                "preconditions": {"uid": uid, "resourceVersion": version},
            });
            (options, "application/json", None)
        };
        [
            (self.rules.dry_run, "this run only reads"),
            (request.body != body, "its body is another"),
            (request.query.as_deref() != asked, "its query is another"),
            (
                request.content_type != content,
                "its content type is another",
            ),
        ]
        .into_iter()
        .filter(|(holds, _)| *holds)
        .map(|(_, wrong)| wrong.to_owned())
        .collect()
    }

    /// The reasons why `pod`, as the program received it, must not be written.
    fn wrong_pod(&self, request: &Request, mut pod: PodFacts) -> Vec<String> {
        let mut wrong = Vec::new();
        if (&pod.namespace, &pod.name) != (&request.namespace, &request.name) {
            wrong.push("the UID is of another pod".to_owned());
        }
        if !self.rules.settings.namespaces.matches(&pod.namespace) {
            wrong.push("its namespace was not asked for".to_owned());
        }
        let job = pod
            .finalizers
            .iter()
            .any(|finalizer| finalizer == JOB_TRACKING)
            && !pod.finished();
        if job != (request.kind == Kind::Patch) {
            wrong.push(
                "the Job step is for pods that only the Job controller holds, before their delete"
                    .to_owned(),
            );
        }
        if self.received.namespace_lists < 2 {
            wrong.push("the namespaces were not listed again".to_owned());
        }
        // Right before a write, the program reads again whether the namespace is being deleted.
        let read = self.received.read_namespaces.get(&pod.namespace);
        let is_fresh = read.is_some_and(|taken| taken.elapsed() <= FRESH);
        let namespace = self.received.namespaces.get(&pod.namespace).cloned();
        // If the program reads the namespace for another pod at the very moment of a write, that reading comes too late for the
        // write.
        let before = self.received.namespaces_before.get(&pod.namespace);
        let before = before.filter(|(at, _)| at.elapsed().is_zero());
        let before = before.and_then(|(_, facts)| facts.clone());
        let namespace = namespace.map(|it| NamespaceFacts {
            deleted: it.deleted && is_fresh,
            opted_out: before.map_or(it.opted_out, |before| before.opted_out),
        });
        pod.in_namespace = Some(namespace.ok_or_else(unread));
        let node = pod.node.clone().unwrap_or_default();
        // Right before a write, the program reads again whether anything still wants the pod.
        let set = self.received.sets.get(&pod.namespace);
        let set = set
            .filter(|(taken, _)| taken.elapsed() <= FRESH)
            .map(|(_, set)| set.as_ref());
        let claim = |name: &str| {
            let key = (pod.namespace.clone(), name.to_owned());
            let found = self.received.claims.get(&key);
            found.map(Option::as_ref).ok_or_else(unread)
        };
        let volume = |name: &str| {
            let volume = self.received.volumes.get(name).cloned();
            let selected = self.received.selected.values();
            let volume = volume
                .ok_or_else(unread)?
                .map(|volume| reached(volume, selected));
            let Received {
                attachments,
                drivers,
                ..
            } = &self.received;
            Ok(volume.map(|volume| attached(volume, &node, attachments, drivers.as_ref())))
        };
        let set = set.ok_or_else(unread);
        // The program does not read again whether the set recreates a PVC.
        let read = self.received.sets.get(&pod.namespace);
        let read = read.and_then(|(_, set)| set.as_ref());
        pod.claims = World::known_claims(&pod, read, claim, volume);
        pod.set_wants = wanted_by_set(&pod, &set);
        let mut facts = no_facts(start());
        if let Some(look) = self
            .received
            .looks
            .get(&node)
            .filter(|look| look.asked.elapsed() <= FRESH)
        {
            let lease = self
                .received
                .leases
                .get(&node)
                .filter(|(asked, _)| asked.elapsed() <= FRESH);
            let mut seen = look.node.clone();
            seen.lease = lease.and_then(|(_, lease)| lease.clone());
            let elsewhere = self.received.elsewhere(&seen, look.date);
            let mut read = seen.at(look.date, elsewhere).facts;
            read.unread_lease = lease.is_none().then(unread);
            read.others_forbidden = self.received.leases_forbidden;
            if self.received.judged.get(&node) != Some(&read.uid) {
                wrong.push("its node is not the one that was judged".to_owned());
            }
            facts.now = look.date;
            facts.nodes = BTreeMap::from([(node, NodeRead::Known(read))]);
        }
        let policy = &self.rules.settings.policy;
        let objections = objections(&facts, policy, &pod);
        wrong.extend(objections.into_iter().map(str::to_owned));
        if let Some(NodeRead::Known(node)) = facts.nodes.values().next()
            && self.holds(node)
        {
            wrong.push("the breaker should have held it".to_owned());
        }
        wrong
    }

    /// Whether the breaker keeps the pods of `node`, judged by the nodes that were counted.
    fn holds(&self, node: &NodeFacts) -> bool {
        let Received {
            node_counts,
            rows,
            real_ready,
            ..
        } = &self.received;
        let percent = self.rules.settings.limits.max_not_ready_percent;
        let few = rows.iter().filter(|(_, ready)| !ready).count() <= 2;
        let Some(nodes) = node_counts else {
            return percent < 100 && !(few && *real_ready);
        };
        Outage::of(nodes.iter().map(counted_node), percent).holds(node)
    }

    /// Checks that the program reads no PVC after a set that may let its pod go. So the reading of the set is never older than that
    /// of the PVC.
    pub fn judge_order(&mut self, request: &Request) {
        let is_judged = self.writes.is_empty() && self.has_read_a_set;
        self.violations.extend(is_judged.then(|| {
            let name = &request.name;
            format!("claim {name} is read after a set")
        }));
    }

    /// Checks the creation of an Event when the request is sent.
    pub fn judge_event(&mut self, request: &Request) {
        let about = request.body["regarding"]["uid"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let warning = request.body["type"] == "Warning";
        let is_there = self
            .world
            .pods
            .values()
            .any(|pod| pod.facts.uid.as_str() == about);
        let wrong = [
            (self.rules.dry_run, "a dry run writes no Event"),
            (
                Instant::now() > self.rules.last_start,
                "the run should have stopped",
            ),
            (
                !warning && is_there,
                "it reports a pod as deleted that is there",
            ),
            (
                warning && !self.warned.insert(about.clone()),
                "there was a Warning about the pod",
            ),
        ];
        let which = format!("{:?} in {} about {about}", request.kind, request.namespace);
        let wrong = wrong.into_iter().filter(|(holds, _)| *holds);
        self.violations
            .extend(wrong.map(|(_, wrong)| format!("{which}: {wrong}")));
    }

    /// Checks the age of the read of a pod's node when a write arrives.
    pub fn judge_age(&mut self, request: &Request) {
        let look = self
            .pod_of(request)
            .and_then(|pod| self.received.looks.get(pod.node.as_ref()?));
        if look.is_some_and(|look| look.asked.elapsed() > FRESH) {
            let wrong = format!(
                "{:?} of {}: the look at its node is too old",
                request.kind, request.name
            );
            self.violations.push(wrong);
        }
    }
}

/// A run that has ended.
pub struct Ended<'a> {
    pub result: &'a Result<Report, CouldNotRun>,
    pub state: &'a Watched,
    /// The maximum number of concurrent requests, and the requests that the program has no reason to send.
    pub most_at_once: usize,
    pub not_understood: &'a [String],
    /// The cluster at the start of the run.
    pub before: &'a World,
    pub at: Instant,
}

impl Ended<'_> {
    /// Every invariant that does not hold.
    pub fn wrongs(&self) -> Vec<String> {
        let mut wrong = self.state.violations.clone();
        wrong.extend(
            self.not_understood
                .iter()
                .map(|sent| format!("no reason to send {sent}")),
        );
        if self.most_at_once > AT_ONCE {
            wrong.push(format!("{} requests at once", self.most_at_once));
        }
        if self.at > self.state.rules.end {
            wrong.push(format!(
                "it ended {:?} late",
                self.at - self.state.rules.end
            ));
        }
        match self.result {
            Ok(report) => {
                let shown = start()..=self.state.world.now();
                if !shown.contains(&report.judged_at) {
                    wrong.push(format!(
                        "it judged at {}, which is the time of no response",
                        report.judged_at
                    ));
                }
                for pod in &report.pods {
                    wrong.extend(self.untrue(pod).map(|why| {
                        format!(
                            "{}: {:?} is untrue: {why} ({:?})",
                            pod.uid, pod.outcome, pod.outcome_detail
                        )
                    }));
                }
                wrong.extend(untold(report));
                wrong.extend(self.unreported(report));
                wrong.extend(self.misjudged(report));
                wrong.extend(self.not_reaped(report));
                if report.exit.code() != exit(report, self.state.rules.settings.exit_on_manual) {
                    wrong.push(format!(
                        "its exit code {} does not follow",
                        report.exit.code()
                    ));
                }
            }
            Err(error) => {
                if !self.state.writes.is_empty() {
                    wrong.push("it wrote, and reported nothing".to_owned());
                }
                if self.calm() {
                    wrong.push(format!(
                        "nothing was in its way, and it did not run: {error}"
                    ));
                }
            }
        }
        wrong
    }

    fn calm(&self) -> bool {
        let trouble = &self.state.trouble;
        !trouble.is_faulty() && self.state.changes == 0 && self.at < self.state.rules.last_start
    }

    /// The reason why a pod's outcome contradicts the cluster.
    fn untrue(&self, pod: &PodEntry) -> Option<&'static str> {
        let state = self.state;
        let writes = state
            .writes
            .iter()
            .filter(|write| write.uid == pod.uid.as_str())
            .collect::<Vec<_>>();
        let deletes = || writes.iter().filter(|write| write.kind == Kind::Delete);
        let accepted = deletes().any(|write| write.answered == Some(200));
        let denied = writes.iter().any(|write| write.denied);
        let effect = deletes().filter_map(|write| write.took_effect).max();
        let gone = state.world.gone.get(&pod.uid.as_str().into());
        let by_us = gone == Some(&By::Us);
        let truth = state
            .world
            .pods
            .values()
            .find(|found| found.facts.uid.as_str() == pod.uid);
        let touched = writes.iter().any(|write| write.took_effect.is_some());
        let changed = truth.is_none_or(|truth| truth.changed || touched);
        let node = pod.node.as_deref().unwrap_or_default();
        let node_changed = state
            .world
            .nodes
            .get(node)
            .is_none_or(|node| node.changed || state.world.lives(node));
        // The last list that shows whether the pod still exists.
        let listed = state.received.uids.get(node);
        let seen = listed.is_some_and(|(_, uids)| uids.contains(&pod.uid.as_str().into()));
        let settled = listed.is_some_and(|(at, _)| effect.is_some_and(|effect| *at > effect));
        let stopped = self.at >= state.rules.last_start;
        let again =
            state.received.namespace_lists > 1 && state.received.listed.contains(&pod.namespace);
        let unlisted = !again && !state.rules.dry_run;
        let (holds, why) = match pod.outcome.map(OutcomeCode::as_str) {
            None => (
                pod.verdict != Some(Verdict::Reap) && writes.is_empty(),
                "it was written, or should have been",
            ),
            Some(_) if pod.verdict != Some(Verdict::Reap) => (false, "only what is reaped has one"),
            Some("failed" | "interrupted") if unlisted => (writes.is_empty(), "it was written"),
            Some(_) if unlisted => (false, "its namespace was not in a second list"),
            Some("deleted") => (accepted && gone.is_some(), "it was not, or is still there"),
            Some("gone") => (gone.is_some(), "it is still there"),
            Some("would-delete") => (
                state.rules.dry_run && writes.is_empty(),
                "it was written, or a run deletes",
            ),
            Some("still-there") => (accepted && seen, "it was not accepted, or is not there"),
            Some("unverified") => (
                accepted && (seen || !settled),
                "it was not accepted, or was verified",
            ),
            Some("failed") => (
                !(accepted || by_us && settled && !seen),
                "it was deleted, and the program knew",
            ),
            Some("denied") => (denied && !by_us, "it was not denied, or it is gone by us"),
            Some("changed") => (changed && !by_us, "it did not change, or it is gone by us"),
            Some("opted-out") => {
                let listed = state.received.namespaces.get(&pod.namespace);
                (
                    listed.is_some_and(|it| it.opted_out.is_some()) && !by_us,
                    "its namespace is not, or it is gone by us",
                )
            }
            Some("node-recovered" | "node-changed") => (
                node_changed && !by_us,
                "its node did not, or it is gone by us",
            ),
            Some("interrupted") => (stopped && !by_us, "nothing did, or it is gone by us"),
            Some(_) => (false, "there is no such outcome"),
        };
        (!holds).then_some(why)
    }

    /// Terminating pods that are missing in the report, although their nodes were NotReady all the time.
    fn unreported(&self, report: &Report) -> Vec<String> {
        let Watched { world, rules, .. } = self.state;
        let reported = |pod: &PodFacts| {
            let on = format!("pods of node {}", pod.node.as_deref().unwrap_or_default());
            let itself = format!("pod {}/{}", pod.namespace, pod.name);
            report
                .pods
                .iter()
                .any(|entry| entry.uid == pod.uid.as_str())
                || report
                    .errors
                    .iter()
                    .any(|error| [&on, &itself].contains(&&error.what))
        };
        let steady = |pod: &PodFacts| {
            let node = pod.node.as_ref().and_then(|node| world.nodes.get(node));
            node.is_some_and(|node| !node.changed && node.facts.ready != Ready::True)
        };
        let pods = world
            .pods
            .values()
            .filter(|pod| pod.terminating && !pod.changed)
            .map(|pod| &pod.facts);
        pods.filter(|pod| {
            rules.settings.namespaces.matches(&pod.namespace) && steady(pod) && !reported(pod)
        })
        .map(|pod| format!("{} is not in the report", pod.uid))
        .collect()
    }

    /// Verdicts that the cluster does not explain, in a run during which only the program changed the cluster. A fault may keep a
    /// pod, but the reason must then name the fault.
    fn misjudged(&self, report: &Report) -> Vec<String> {
        let Watched {
            trouble,
            changes,
            rules,
            ..
        } = self.state;
        if *changes > 0 {
            return Vec::new();
        }
        let mut before = self.before.clone();
        if self.state.received.leases_forbidden {
            // Forbidden Leases are treated as absent, and the report says so.
            before.leases.clear();
        }
        let mut before = before.facts(report.judged_at);
        for node in before.facts.nodes.values_mut() {
            if let NodeRead::Known(node) = node {
                node.others_forbidden = self.state.received.leases_forbidden;
            }
        }
        let facts = &before.facts;
        let reaped = ReasonCode::Stuck;
        let goes_on = |pod: &PodFacts| {
            let node = pod
                .node
                .as_ref()
                .and_then(|name| self.before.nodes.get(name));
            node.is_some_and(|node| self.before.lives(node))
        };
        let mut wrong = Vec::new();
        for entry in &report.pods {
            let Some(pod) = before.pods.iter().find(|pod| pod.uid.as_str() == entry.uid) else {
                wrong.push(format!("{} is in the report, and nowhere else", entry.uid));
                continue;
            };
            let free = objections(facts, &rules.settings.policy, pod).is_empty();
            let exact = first_reason(facts, &rules.settings.policy, pod);
            if free != (exact == reaped) {
                wrong.push(format!(
                    "{}: the oracle contradicts itself, by {exact}",
                    entry.uid
                ));
            }
            let limits = &rules.settings.limits;
            let unread = trouble.is_faulty() && self.state.is_unread(pod);
            let explained = match entry.reason.map_or("", ReasonCode::as_str) {
                code if code == reaped.as_str() => free,
                // The program could not read the facts that prove that the pod may be reaped.
                "local-volume" | "host-path" | "volume-confined" | "owner-kind"
                    if unread && exact == reaped =>
                {
                    true
                }
                // If the node's Lease was not read, the node is not known to be fenced, and its kubelet may have learned of the
                // deletion.
                "facts-unread" | "volume-unverified" | "shared-disk" | "not-overdue" if unread => {
                    true
                }
                // A slow response may be newer than the time at which the node is judged.
                "kubelet-alive" if goes_on(pod) => true,
                // A heartbeat during the run, so that the grace period is not cut short.
                "not-overdue" if goes_on(pod) && facts.now < pod.deletion_deadline() => true,
                "over-cap" => free && limits.max_deletes.is_some(),
                "facts-unread" if report.errors.iter().any(|it| it.what == TIME) => {
                    free && self.before.clock_is_wrong() != Some(false)
                }
                "mass-outage" => free && self.holds(facts, pod),
                _ => !free && (entry.reason == Some(exact) || unread),
            };
            if !explained {
                wrong.push(format!(
                    "{}: {:?} is not why, but {exact}, and what it needs was {}read",
                    entry.uid,
                    entry.reason,
                    if unread { "not " } else { "" }
                ));
            }
        }
        wrong
    }

    /// Whether a limit other than the cap keeps a pod of `facts`.
    fn holds(&self, facts: &ClusterFacts, pod: &PodFacts) -> bool {
        let percent = self.state.rules.settings.limits.max_not_ready_percent;
        let node = facts.node_of(pod).and_then(NodeRead::known);
        let nodes = facts.nodes.values().filter_map(NodeRead::known);
        let outage = Outage::of(nodes.map(counted_node), percent);
        node.is_some_and(|node| outage.holds(node))
    }

    /// Pods of a run without faults that should have been reaped and were not.
    fn not_reaped(&self, report: &Report) -> Vec<String> {
        if !self.calm() {
            return Vec::new();
        }
        let Watched {
            rules: Rules {
                settings, dry_run, ..
            },
            world,
            ..
        } = self.state;
        let before = self.before.facts(report.judged_at);
        let clock = report.errors.iter().any(|error| error.what == TIME);
        let due = before.pods.iter().filter(|pod| {
            settings.namespaces.matches(&pod.namespace)
                && objections(&before.facts, &settings.policy, pod).is_empty()
                && !self.holds(&before.facts, pod)
                && !clock
        });
        let mut due = due.collect::<Vec<_>>();
        let since = |pod: &PodFacts| {
            let node = before.facts.node_of(pod).and_then(NodeRead::known);
            crate::prelude::due(pod, node, report.judged_at)
        };
        due.sort_by_key(|pod| (since(pod), &pod.namespace, &pod.name));
        due.truncate(settings.limits.max_deletes.unwrap_or(usize::MAX));
        let lets_go_late = world
            .job_controller
            .is_none_or(|after| after > Duration::from_secs(9));
        let outcomes = report
            .pods
            .iter()
            .filter_map(|pod| Some((pod.uid.as_str(), pod.outcome?.as_str())));
        let outcomes = outcomes.collect::<BTreeMap<_, _>>();
        let expected = due.into_iter().map(|pod| {
            let by_job = pod
                .finalizers
                .iter()
                .any(|finalizer| finalizer == JOB_TRACKING);
            let outcome = match dry_run {
                true => "would-delete",
                false if by_job && lets_go_late => "still-there",
                // Such a pod was force-deleted earlier, and disappears once the Job controller removes its finalizer, perhaps
                // before our delete.
                false if by_job && is_forced(pod) => outcomes
                    .get(pod.uid.as_str())
                    .copied()
                    .filter(|outcome| *outcome == "gone")
                    .unwrap_or("deleted"),
                false => "deleted",
            };
            (pod.uid.as_str(), outcome)
        });
        let expected = expected.collect::<BTreeMap<_, _>>();
        let mut wrong = Vec::new();
        if outcomes != expected {
            wrong.push(format!(
                "it should have come to {expected:?}, and came to {outcomes:?}"
            ));
        }
        if clock && self.before.clock_is_wrong() == Some(false) {
            wrong.push("a clock that is right is reported".to_owned());
        }
        if report.errors.iter().any(|error| error.what != TIME) {
            wrong.push(format!(
                "nothing failed, and it reports {:?}",
                report.errors
            ));
        }
        wrong
    }
}

/// The names of pods to reap and the commands that are missing in the text. One command for several pods replaces their separate
/// commands.
fn untold(report: &Report) -> Vec<String> {
    let text = text::write(&report.page(), text::Screen::default());
    let of_pods = report.pods.iter().flat_map(|pod| &pod.advice.steps);
    let of_nodes = report.nodes.iter().flat_map(|node| &node.steps);
    let steps = of_pods.chain(of_nodes);
    let of_breaker = report.breaker.iter().flat_map(|held| &held.steps);
    let commands = steps
        .chain(of_breaker)
        .filter_map(|step| step.command.as_ref());
    let reaped = report.pods.iter();
    let reaped = reaped.filter(|pod| pod.verdict == Some(Verdict::Reap));
    let told = text
        .lines()
        .map(|line| line.split([' ', ';', '/']).collect::<BTreeSet<_>>());
    let told = told.collect::<Vec<_>>();
    let is_told = |line: &&str| {
        let mut told = told.iter();
        told.any(|told| line.split([' ', ';', '/']).all(|word| told.contains(word)))
    };
    let wanted = commands.flat_map(|command| command.lines());
    let wanted = wanted.chain(reaped.map(|pod| pod.name.as_str()));
    let missing = wanted.filter(|line| !is_told(line));
    missing
        .map(|line| format!("the text lacks {line}: {text}"))
        .collect()
}

/// The exit code that follows from the rest of the report.
fn exit(report: &Report, on_manual: bool) -> u8 {
    let any = |test: &dyn Fn(&PodEntry) -> bool| report.pods.iter().any(test);
    let failures = [
        "failed",
        "denied",
        "still-there",
        "unverified",
        "interrupted",
    ];
    if any(&|pod| pod.reason == Some(ReasonCode::MassOutage)) {
        4
    } else if !report.errors.is_empty()
        || any(&|pod| {
            pod.reason == Some(ReasonCode::FactsUnread)
                || pod
                    .outcome
                    .is_some_and(|outcome| failures.contains(&outcome.as_str()))
        })
    {
        3
    } else if on_manual && any(&|pod| pod.verdict == Some(Verdict::Manual)) {
        5
    } else {
        0
    }
}
