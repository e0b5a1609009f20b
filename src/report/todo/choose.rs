//! Chooses what to do: a row for each reason that needs you, and for what else needs you.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use jiff::Timestamp;

use super::{
    About, Harm, Todo, Todos,
    Urgency::{
        BringBack, Failure, GiveUp, IfAsked, KeepData, Look, Otherwise, PowerOff, Reach, Repair,
        Rest, RunAgain, RunsElsewhere, SeeOff,
    },
    fill, join,
};
use crate::{
    facts::{HANGS, KubeletSays, NodeFacts, PodFacts, Quorum, ReadError, Ready, Storage, Stray},
    history::{NodeState, Reaped},
    judge::{Judged, Limit, ReasonCode, Tie, TieKind, Verdict, Wanted},
    outcome::Trace,
    report::{
        NAMED, NAMES,
        record::{Damage, RunRecord, clock, is_local},
        state::State,
    },
    selector::Target,
    words::{human_duration, joined, listed, natural, prefixed},
};

const TAINT: &str = "set the out-of-service taint: it deletes every pod there, and one with data there stays Pending. Remove it only after a power cycle";

impl RunRecord<'_> {
    /// Lists what to do about the whole run, and about each pod.
    pub fn todos(&self) -> Todos<'_> {
        let pods = self.by_damage();
        let of_pods = pods.iter().flat_map(|judged| {
            let todos = self.todos_of(judged).into_iter();
            todos.map(move |todo| (todo, *judged))
        });
        let mut todos = join(of_pods.filter(|(todo, _)| todo.urgency != IfAsked));
        // Data is given up one pod at a time: a report has the command only if one pod needs it.
        let last = todos.iter().filter(|it| it.0.urgency == GiveUp);
        let last = last.flat_map(|(_, about)| about.pods.clone());
        let last = last.unique_by(|it| it.pod.uid.as_str()).collect_vec();
        if last.len() > 1 {
            todos.retain(|(todo, _)| todo.urgency != GiveUp);
            let each = "Only if <nodes> is lost for good: give up data one pod at a time, and wait for Ready in between. Leave pods without another Ready pod for last (pod-reaper explain POD has the command).";
            todos.push((Todo::new(GiveUp, each), About::of(last)));
        }
        // If only one pod is there to wait for, the look at its node says so.
        let is_said =
            |(todo, about): &(Todo, About<'_>)| todo.urgency == Look && about.pods.len() == 1;
        let alone = pods.iter().copied().filter(|it| {
            is_local(it) && Damage::of(it) == Damage::NoOtherReady && !self.is_on_held_node(it)
        });
        let alone = alone.collect_vec();
        if !alone.is_empty() && !todos.iter().any(is_said) {
            let sentence = "<pods> is down until <nodes> is back. Discard nothing tonight.";
            todos.push((Todo::new(BringBack, sentence), About::of(alone)));
        }
        let of_run = self.todos_of_run().into_iter();
        todos.extend(of_run.map(|todo| (todo, About::default())));
        todos.sort_by_key(|(todo, _)| todo.urgency);
        todos
    }

    /// Lists what to do about the limits, the history, and what was not read.
    pub fn todos_of_run(&self) -> Vec<Todo> {
        let facts = &self.facts;
        let down = facts.known_nodes();
        let down = down.filter(|node| node.ready != Ready::True && node.leaf.is_none());
        let down = down
            .map(|node| &node.name)
            .sorted_by_cached_key(|name| natural(name));
        let down = listed(&down.collect_vec(), NAMED);
        let mut todos = Vec::new();
        if self.settings.unmatched(facts).is_some() {
            todos.push(Todo::new(
                RunAgain,
                "Correct the namespace filter, and run again.",
            ));
        }
        if facts.incomplete.is_some() {
            todos.push(Todo::new(
                RunAgain,
                "Save the file again, with leases, before you act (command under NOT SEEN).",
            ));
        }
        match self.limit() {
            Some(Limit::MassOutage(_)) => {
                let text =
                    "Suspend the CronJob, and reach one of <names> by ssh or at its console.";
                todos.push(Todo::new(Reach, fill(text, &[&down])));
                todos.push(Todo::new(Repair, "If it runs, repair the network, and delete nothing: the kubelets end their pods themselves. Resume the CronJob when all are Ready: a run deletes on nodes that are still cut off."));
                todos.push(Todo::new(Otherwise, "If they are off, power them on again. Only those that are off for good: confirm each that you have SEEN off (book: Confirm that a machine is off)."));
            }
            Some(Limit::FailedTogether { .. }) => {
                for (_, nodes) in self.held_together() {
                    let names = listed(&nodes, NAMED);
                    todos.push(Todo::new(Reach, fill("See what <names> have in common, and reach one of them by ssh or at its console. If it runs, repair the switch, the rack or the host, and power nothing off.", &[&names])));
                    for node in nodes
                        .iter()
                        .take(NAMED)
                        .filter_map(|name| facts.known(name))
                    {
                        let sentence = fill(
                            "Only once you have SEEN <node> off, confirm that: the next run deletes its pods. (Each node by its own name.)",
                            &[&node.name],
                        );
                        let confirm = self.kubectl.confirm_off(node);
                        todos.push(Todo::new(Otherwise, sentence).harming(Harm::Pods, confirm));
                    }
                }
            }
            Some(Limit::NoRoom(_)) => {
                todos.push(Todo::new(Reach, fill("Bring <names> back; or power it off, and add a node on which pods can start.", &[&down])));
            }
            Some(Limit::Unread(what)) => {
                todos.push(Todo::new(
                    Reach,
                    fill("See why this is not known, and run again: <what>.", &[what]),
                ));
            }
            Some(Limit::OverCap(_)) | None => {}
        }
        for node in self.history.needing_you() {
            let is_suspect = |it: &&Reaped| it.attached || !it.is_replaced_early();
            let suspects = node.noted.pods.iter().filter(is_suspect).collect_vec();
            let pods = if suspects.is_empty() {
                node.noted.pods.iter().collect_vec()
            } else {
                suspects
            };
            let is_another = node.now.state == NodeState::AnotherMachine;
            let (node, names) = (&node.noted.node, listed(&pods, NAMES));
            if is_another {
                let sentence = "Another machine has the name <node>, and nobody saw the old one off: find it, and see that it is off.";
                todos.push(Todo::new(SeeOff, fill(sentence, &[node])));
            }
            todos.push(Todo::new(RunsElsewhere, fill("Check for two writers (logs, the application's own check of its data), since these may have run on <node> beside their replacements: <names>. If you find two, stop the application, and check its file system and its data before it writes again. (Exit 5 this time only; kept in the history for 7 days.)", &[node, &names])));
        }
        let down = self.history.nodes.iter();
        let down = down.filter(|node| node.now.state.may_be_down());
        let sets = down.flat_map(|node| &node.sets);
        let sets = sets.filter(|set| set.copies.is_some() && !set.is_back());
        let sets = sets.unique_by(|set| (&set.namespace, &set.name));
        let sets = sets.sorted_by_key(|set| set.copies.map(|copies| copies.ready));
        let sets = sets.collect_vec();
        if let Some(worst) = sets.first() {
            let text = "Not Ready again since pods were deleted: <sets>. Unless another step explains it, see the events of namespace <first>.";
            let events = [
                "get",
                "events",
                "-n",
                &worst.namespace,
                "--sort-by=.lastTimestamp",
            ];
            let todo = Todo::new(
                Failure,
                fill(text, &[&listed(&sets, NAMED), &worst.namespace]),
            );
            todos.push(todo.with(self.kubectl.command(&events)));
        }
        // One cause of many failed reads is one thing to do: the kind of what was to be read, and the cause without
        // the message, which names the object.
        let errors = facts.errors.iter().filter(|_| facts.incomplete.is_none());
        let mut alike = BTreeMap::<_, (&ReadError, usize)>::new();
        for error in errors {
            let key = (error.what.split(' ').next(), error.cause.split(':').next());
            alike.entry(key).or_insert((error, 0)).1 += 1;
        }
        for (first, count) in alike.into_values() {
            let more = match count - 1 {
                0 => String::new(),
                more => format!(", and {more} more like it"),
            };
            let text = "Not read: <what><more>: <cause>";
            todos.push(Todo::new(
                Failure,
                fill(text, &[&first.what, &more, &first.cause]),
            ));
        }
        todos.extend(facts.strays.iter().map(|stray| match stray {
            Stray::Attachment { node, attachment } => Todo::new(
                Rest,
                fill("VolumeAttachment <name> names <node>, which no longer exists: until it is gone, no other node gets the volume.", &[attachment, node]),
            )
            .with(self.kubectl.command(&["describe", "volumeattachment", attachment])),
            Stray::Pending { namespace, pod, pod_uid, claim, claim_uid, volume } => {
                let pod_of_claim = (namespace.as_str(), pod.as_str(), pod_uid);
                Todo::new(
                    Rest,
                    fill("<namespace>/<pod> is Pending: volume <volume> of its PVC <claim> can only be used on a node that no longer exists. Only if its data is lost for good, delete the PVC:", &[namespace, pod, volume, claim]),
                )
                .harming(Harm::Data, self.kubectl.delete_unused_claim(pod_of_claim, claim, claim_uid))
            }
        }));
        todos
    }

    /// Lists what to do about one pod, and about its node because of it. Nothing in the list
    /// contradicts the state: a node that is alive, fenced, being deleted, no machine or a needed
    /// member of etcd is never powered off.
    pub fn todos_of(&self, judged: &Judged) -> Vec<Todo> {
        let Judged { pod, reason, .. } = judged;
        let mut todos = self.data_to_keep(judged).collect_vec();
        let outcome = self.outcomes.get(&pod.uid);
        let failure = outcome.filter(|outcome| outcome.code().is_failure());
        todos.extend(failure.map(|outcome| {
            let (code, why) = (outcome.code(), outcome.sentence());
            Todo::new(
                Failure,
                fill(
                    "See why <pods> was not deleted [<code>]: <why>",
                    &[&code, &why],
                ),
            )
        }));
        let is_untouched = self.trace(judged) == Some(Trace::Untouched);
        let node = self.facts.known_node(pod);
        match judged.verdict() {
            _ if self.is_on_held_node(judged) => {}
            Verdict::Reap if may_run_twice(pod) && !is_untouched => todos.extend(self.off(node)),
            Verdict::Leave if self.hangs(judged) => todos.push(Todo::new(
                Rest,
                "<pods> hangs on a Ready node: see the log of the kubelet of <nodes>.",
            )),
            Verdict::Manual => {
                let own = [reason.code()];
                let codes = if reason.asks_a_person() {
                    todos.extend(self.off(node));
                    &reason.asks[..]
                } else {
                    &own
                };
                let rows = codes.iter();
                todos.extend(rows.flat_map(|code| self.of_reason(*code, judged, node)));
            }
            _ => {}
        }
        if todos.is_empty() && judged.verdict() == Verdict::Manual && !self.is_on_held_node(judged)
        {
            todos.push(see_why(reason.code()));
        }
        let is_at_rest = [ReasonCode::LocalVolume, ReasonCode::HostPath].contains(&reason.code());
        if let Some(taint) = self.taint(node.filter(|_| is_at_rest)) {
            let sentence = "To delete all pods of <nodes> together and free their volumes, if you have SEEN it off: <taint>.";
            todos.push(Todo::new(IfAsked, fill(sentence, &[&TAINT])).harming(Harm::Pods, taint));
        }
        todos.sort();
        todos.dedup();
        todos
    }

    /// Lists what to do about a reason that needs you. A reason without a row is explained elsewhere.
    fn of_reason(&self, code: ReasonCode, judged: &Judged, node: Option<&NodeFacts>) -> Vec<Todo> {
        let pod = &judged.pod;
        let kubectl = &self.kubectl;
        match code {
            ReasonCode::EtcdMember => vec![
                Todo::new(
                    Reach,
                    "Reach <nodes> at the console tonight. At least one of them runs, and is cut off or has lost its API server.",
                ),
                Todo::new(
                    Otherwise,
                    "etcd has a majority: do not reset it. Once you have SEEN a member off for good, replace it, following the etcd runbook, and then delete its Node object.",
                ),
            ],
            ReasonCode::KubeletAlive => {
                let repair = match node
                    .and_then(|node| node.kubelet_says.filter(|_| node.ready == Ready::False))
                {
                    Some(KubeletSays::Runtime) => {
                        "restart the container runtime. Then its kubelet ends the pods."
                    }
                    Some(KubeletSays::Network) => {
                        "repair the network plugin (CNI). Then its kubelet ends the pods."
                    }
                    Some(KubeletSays::ShuttingDown) => "wait until the machine has shut down.",
                    None => {
                        "see why the kubelet does not report Ready: restart the kubelet or the container runtime. The kubelet then ends the pods."
                    }
                };
                let silent = human_duration(self.settings.policy.silent_after());
                vec![
                    Todo::new(Repair, fill("On <nodes>, <repair>", &[&repair])),
                    Todo::new(
                        Otherwise,
                        fill(
                            "Only if that fails, power <nodes> off, which stops what runs there: after <time> of silence the next run force-deletes the pods.",
                            &[&silent],
                        ),
                    ),
                ]
            }
            ReasonCode::Finalizers => {
                let finalizers = pod.holding_finalizers(node.is_some()).map(|finalizer| {
                    let by = prefixed(", set by ", pod.finalizers_set_by.get(finalizer));
                    match node {
                        Some(_) => Todo::new(Rest, fill("<pods> is held by finalizer <finalizer><by>: repair its controller. Only if that ran on <nodes> or waits for the end of the pod, and you have SEEN <nodes> off, <taint>.", &[&finalizer, &by, &TAINT]))
                            .harming(Harm::Pods, self.taint(node)),
                        None => Todo::new(Rest, fill("<pods> is held by finalizer <finalizer><by>: repair its controller.", &[&finalizer, &by])),
                    }
                });
                finalizers.collect()
            }
            ReasonCode::KosmosLeaf => {
                let cluster = node.and_then(|node| node.leaf.as_ref()?.cluster.as_deref());
                let cluster = cluster.unwrap_or("the leaf cluster");
                let there = Target {
                    kubeconfig: Some(format!("{cluster}.kubeconfig").into()),
                    context: None,
                };
                vec![
                    Todo::new(RunsElsewhere, fill("Look in <cluster> for <pods> BEFORE you repair the link: the repair stops what runs there.", &[&cluster]))
                        .with(there.command(&["get", "pods", "-n", &pod.namespace, "-o", "wide"])),
                    Todo::new(Rest, "See why Kosmos does not reach the leaf cluster.")
                        .with(kubectl.command(&["logs", "-n", "kosmos-system", "deployment/clustertree-cluster-manager", "--tail=50"])),
                ]
            }
            ReasonCode::VirtualNode | ReasonCode::EdgeNode | ReasonCode::LeafNode => {
                vec![Todo::new(
                    RunsElsewhere,
                    "<nodes> is a leaf node: repair it, or the link to it. Its own agent then ends <pods>.",
                )]
            }
            ReasonCode::LocalVolume => {
                let ties = judged.reason.ties.iter();
                let mut todos = ties
                    .filter_map(|tie| self.of_tie(tie, judged, node))
                    .collect_vec();
                todos.extend(self.bring_back(judged, node));
                todos
            }
            ReasonCode::HostPath => {
                let paths = pod.host_paths.iter().join(", ");
                let copy = fill(
                    "<pods> keeps data in <paths> on the disk of <nodes>. Only if that may be lost, delete the pod by hand (book: Data on a dead node).",
                    &[&paths],
                );
                let mut todos = vec![Todo::new(GiveUp, copy)];
                todos.extend(self.bring_back(judged, node));
                todos
            }
            ReasonCode::SharedDisk => {
                // A mark is enough only if no other rule keeps the pod.
                let then = if judged.reason.asks == [code] {
                    ", and the next run reaps"
                } else {
                    ""
                };
                vec![
                    Todo::new(BringBack, fill("<pods>: two machines would write to one disk if <nodes> is still on. Once you have SEEN it off, confirm that<then>.", &[&then]))
                        .harming(Harm::Pods, node.and_then(|node| self.kubectl.confirm_off(node))),
                ]
            }
            _ => vec![see_why(code)],
        }
    }

    /// Returns what to do about a PVC whose volume other nodes do not reach.
    fn of_tie(&self, tie: &Tie, judged: &Judged, node: Option<&NodeFacts>) -> Option<Todo> {
        let claim = judged.claim(&tie.pvc);
        match tie.kind {
            TieKind::Confined(_) => return Some(see_why(ReasonCode::LocalVolume)),
            TieKind::Pinned(_) if claim.is_none_or(|it| it.read.deletion.is_none()) => {}
            _ => return None,
        }
        let (pod, pvc, volume) = (&judged.pod, &tie.pvc, claim.and_then(|it| it.read.bound()));
        let owner = claim.and_then(|it| it.read.owner.as_ref());
        let later = human_duration(self.settings.policy.given_up_after());
        let finalizers = claim.map_or(&[][..], |it| &it.read.finalizers[..]);
        let held = joined(finalizers, ", ");
        let held = held.map(|names| format!(" The PVC then waits for its finalizer {names}, too."));
        let held = prefixed("", held);
        // The template of the `StatefulSet` makes the PVC again.
        Some(
            if claim.is_some_and(|it| it.templated) && pod.stateful_set().is_some() {
                let data = match volume.and_then(|it| it.volume.reclaim_policy.as_deref()) {
                    Some("Retain") => "its volume stays, by its reclaim policy Retain",
                    _ => "its volume is destroyed",
                };
                Todo::new(GiveUp, fill("Only if <nodes> is lost for good, give up the data of <pods>: delete its PVC (<volume>; nothing checks for other copies).<held> A run <time> later deletes the pod, and the StatefulSet makes both again, empty.", &[&data, &held, &later]))
                .harming(Harm::Data, node.zip(volume).and_then(|(node, volume)| {
                    self.kubectl.delete_claim(node, &pod.namespace, pvc, &volume.uid)
                }))
            } else if let Some(owner) = owner {
                Todo::new(
                    GiveUp,
                    fill(
                        "Only if <nodes> is lost for good: PVC <claim> of <pods> belongs to <owner>, whose operator replaces it.",
                        &[pvc, owner],
                    ),
                )
            } else {
                let set = judged.storage.as_ref().and_then(|it| it.set.as_ref());
                let again = match (pod.stateful_set(), set) {
                    (None, _) | (Some(_), Some(Ok(_))) => {
                        "Nobody makes this PVC again: create it, empty, once the pod is gone."
                            .to_owned()
                    }
                    (Some(name), _) => format!(
                        "Whether StatefulSet {name} makes this PVC again is not known: it was not read."
                    ),
                };
                Todo::new(
                    GiveUp,
                    fill(
                        "Only if <nodes> is lost for good, give up the data of <pods>: delete PVC <claim>.<held> A run <time> later deletes the pod. <again>",
                        &[pvc, &held, &later, &again],
                    ),
                )
            },
        )
    }

    /// Lists the volumes that a PVC that somebody deleted before the node failed takes along.
    fn data_to_keep(&self, judged: &Judged) -> impl Iterator<Item = Todo> {
        judged.reason.ties.iter().filter_map(move |tie| {
            let TieKind::Goes(Wanted::Deleted(_) | Wanted::DeletedAndHeld { .. }) = tie.kind else {
                return None;
            };
            let (claim, volume) = (&tie.pvc, &judged.claim(&tie.pvc)?.read.bound()?.volume.name);
            let retain = r#"{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}"#;
            let sentence = fill("<pods>: set volume <volume> to Retain before <nodes> comes back. PVC <claim> is being deleted, and the kubelet destroys the data as it ends the pod.", &[volume, claim]);
            let command = self.kubectl.command(&["patch", "pv", volume, "-p", retain]);
            Some(Todo::new(KeepData, sentence).with(command))
        })
    }

    /// Returns what brings a pod back with its data.
    fn bring_back(&self, judged: &Judged, node: Option<&NodeFacts>) -> Option<Todo> {
        // A machine that is known to be off is not looked at.
        let is_on = self.off(node).iter().any(|todo| todo.urgency == PowerOff);
        let (urgency, sentence) = if is_on {
            (
                Look,
                "Look at the console of <nodes>. If it is booting, wait: these need its disk: <pods>.",
            )
        } else {
            (
                BringBack,
                "Bring <nodes> back with its disk, for what needs it: <pods>.",
            )
        };
        self.restarts_with_its_data(judged)
            .then(|| Todo::new(urgency, sentence))
    }

    /// Reports whether the pod starts again with its data if its node comes back: the data is local, wanted, and not
    /// being deleted. Once another machine may write to the node's volumes, nobody waits for it.
    pub(in crate::report) fn restarts_with_its_data(&self, judged: &Judged) -> bool {
        let mut claims = judged.storage.iter().flat_map(Storage::claims);
        is_local(judged)
            && claims.all(|claim| claim.read.deletion.is_none())
            && judged.unneeded().is_none()
            && judged.pod.controller.is_some()
            && self
                .facts
                .known_node(&judged.pod)
                .is_some_and(|node| self.may_wait_for(&node.name))
    }

    /// Reports whether the node may come back as it is: it is known that no run has deleted pods there.
    fn may_wait_for(&self, node: &str) -> bool {
        let node = self.facts.known(node);
        node.is_some_and(|node| {
            !self.was_acted_on(&node.name)
                && self.earlier(&node.name).next().is_none()
                && self.history.knows(&node.uid)
        })
    }

    /// Returns what to do about the machine of a pod that starts elsewhere, or has to.
    pub(in crate::report) fn off(&self, node: Option<&NodeFacts>) -> Vec<Todo> {
        let is_suspect = |node: &&NodeFacts| {
            State::of(node, self.facts.now) == State::Down && !node.out_of_service
        };
        let Some(node) = node.filter(is_suspect) else {
            return Vec::new();
        };
        let mut todos = Vec::new();
        if node.etcd.is_some_and(Quorum::has_no_spare) {
            let sentence = "etcd has no spare member left: bring <nodes> back.";
            todos.push(Todo::new(BringBack, sentence));
        }
        let is_unsure = |it: &&NodeFacts| {
            it.ready != Ready::True && it.control_plane && it.etcd.is_none() && it.leaf.is_none()
        };
        let reaped = self.pods_on(&node.name);
        let reaped = reaped
            .filter(|it| it.verdict() == Verdict::Reap)
            .collect_vec();
        // Volumes that are attached to the node are detached after the delete of their pods, and then attached
        // elsewhere (`VolumeAttachment`).
        let moves_volumes = reaped
            .iter()
            .any(|it| self.trace(it) != Some(Trace::Untouched) && self.detaches_late(it));
        let before = |moves: Timestamp| {
            let sentence = "POWER <nodes> OFF BEFORE <time>. From then on, other nodes get the volumes that are attached to it: if <nodes> is still on, two machines may write to them. Waiting for <nodes> is no longer safe. If you cannot, scale what uses them to 0.";
            Todo::new(PowerOff, fill(sentence, &[&clock(moves)]))
        };
        let moved = self.volumes_moved_at(&node.name);
        todos.push(if node.control_plane && self.facts.known_nodes().filter(is_unsure).count() > 1 {
            Todo::new(Reach, "Look at <nodes> before you power one off: several control-plane nodes are NotReady, and no etcd was seen there.")
        } else if let Some(moved) = moved.filter(|moved| *moved <= self.facts.now) {
            let sentence = "Have you SEEN <nodes> off? If not, POWER IT OFF NOW, and check for two writers: since <time>, other nodes may use its volumes.";
            Todo::new(SeeOff, fill(sentence, &[&clock(moved)]))
        } else if let Some(moves) = moved {
            before(moves)
        } else if !self.history.knows(&node.uid) {
            let sentence = "Have you SEEN <nodes> off? If not, POWER IT OFF NOW. What earlier runs deleted there is not known: assume that other nodes use its volumes.";
            Todo::new(SeeOff, sentence)
        } else if moves_volumes && self.was_acted_on(&node.name) {
            before(self.detached_at())
        } else if self.earlier(&node.name).next().is_some() {
            let sentence = "Have you SEEN <nodes> off? If not, POWER IT OFF before the next run: what earlier runs deleted there may run twice.";
            Todo::new(SeeOff, sentence)
        } else if reaped.is_empty() {
            Todo::new(PowerOff, "If <nodes> is not booting, power it off before you give anything up; its disk keeps its data.")
        } else if !moves_volumes {
            Todo::new(PowerOff, "Power off, unless the console shows it booting: <nodes>. Old containers may still run there.")
        } else {
            let sentence = "If the console of <nodes> does not show it booting, POWER IT OFF before the next run, then on again; its disk keeps its data. If you cannot, suspend the CronJob until you can: 6 minutes after the run, two machines may write to the volumes that are attached to <nodes>.";
            Todo::new(PowerOff, sentence)
        });
        todos
    }

    /// Reports whether a limit holds the pod's node, so that the report only asks you to keep data.
    fn is_on_held_node(&self, judged: &Judged) -> bool {
        let node = self.facts.known_node(&judged.pod);
        node.is_some_and(|node| self.plan.limit_of(node).is_some())
    }

    /// Reports whether the pod hangs on a Ready node.
    pub(in crate::report) fn hangs(&self, judged: &Judged) -> bool {
        judged.code() == ReasonCode::NodeReady && self.facts.overdue(&judged.pod) >= HANGS
    }

    /// Returns the command that sets the out-of-service taint; `None` if a limit holds the node, its machine may
    /// live, or the node carries the taint. The taint ends every pod there, so none may be opted out, be on a member
    /// of etcd that may be needed, wait for your decision about its owner, or take a PVC along whose data may still
    /// be wanted. Nothing of this is known of pods in namespaces that are left out, and of pods whose PVCs were not
    /// read.
    fn taint(&self, node: Option<&NodeFacts>) -> Option<String> {
        let node = node?;
        let uses_claims =
            |pod: &PodFacts| pod.claim_names.as_ref().map_or(true, |all| !all.is_empty());
        let keeps = |code: &ReasonCode| {
            matches!(code, ReasonCode::OwnerKind | ReasonCode::VolumeUnverified)
        };
        let loses = |tie: &Tie| tie.goes() || tie.given_up_from() > Some(self.facts.now);
        let forbids = |it: &Judged| {
            it.pod.opts_out(self.facts.now).is_some()
                || !it.by_storage() && uses_claims(&it.pod)
                || it.reason.code() == ReasonCode::EtcdMember
                || it.reason.asks.iter().any(keeps)
                || it.reason.ties.iter().any(loses)
        };
        let may_taint = self.plan.limit_of(node).is_none()
            && self.settings.namespaces.selects_all()
            && !node.may_live(self.facts.now)
            && !node.out_of_service
            && !node
                .opted_out
                .as_ref()
                .is_some_and(|skip| skip.holds(self.facts.now))
            && !self.pods_on(&node.name).any(forbids)
            && !self
                .active_on(&node.name)
                .any(|pod| pod.opts_out(self.facts.now).is_some() || uses_claims(pod));
        may_taint.then(|| self.kubectl.taint(node))
    }
}

/// Refers to what `explain` and the book say about a reason.
fn see_why(code: ReasonCode) -> Todo {
    Todo::new(
        Rest,
        fill(
            "<pods> [<code>]: see why (pod-reaper explain POD), and what to do (book: Three in the morning).",
            &[&code],
        ),
    )
}

/// Reports whether the pod's containers may run alongside a replacement: it was started, and its
/// controller starts it on another node.
fn may_run_twice(pod: &PodFacts) -> bool {
    let never_started =
        pod.phase == "Pending" && pod.containers.running + pod.containers.terminated == 0;
    !never_started && !pod.finished() && !pod.made_by("DaemonSet", "apps")
}
