//! Chooses what to do.

use itertools::Itertools as _;
use jiff::SignedDuration;

use super::{About, Todo, Todos};
use crate::{
    facts::{HANGS, LeafKind, NodeFacts, PodFacts, Quorum, Ready, Storage},
    judge::{Judged, Limit, ReasonCode, Tie, TieKind, Verdict, Wanted},
    report::{
        NAMES,
        build::{Damage, by_damage, clock},
        page::State,
        record::RunRecord,
    },
    words::{about, listed, natural},
};

impl RunRecord<'_> {
    /// Lists what to do about the whole run: for each pod, for the limits and for what was not read.
    pub fn todos(&self) -> Todos<'_> {
        let mut all = Todos::new();
        for judged in by_damage(self.plan.pods.iter().collect()) {
            for todo in self.todos_of(judged) {
                all.entry(todo).or_default().pods.push(judged);
            }
        }
        // Data is given up one pod at a time: a report has the command only if one pod needs it.
        let last = all.iter().filter(|(todo, _)| todo.is_last_resort());
        let last = last.flat_map(|(_, about)| about.pods.clone());
        let last = last.unique_by(|it| it.pod.uid.as_str()).collect_vec();
        if last.len() > 1 {
            all.retain(|todo, _| !todo.is_last_resort());
            all.entry(Todo::GiveUpEach).or_default().pods = by_damage(last);
        }
        // If only one pod is there to wait for, the look at its node says so.
        let wait = all.get(&Todo::Look).filter(|about| about.pods.len() > 1);
        let wait = wait.map_or_else(Vec::new, |about| about.pods.clone());
        let alone = |it: &&Judged| Damage::of(it) == Damage::NoOtherReady;
        let alone = wait.into_iter().filter(alone).collect_vec();
        if !alone.is_empty() {
            all.entry(Todo::DownUntil).or_default().pods = alone;
        }
        for about in all.values_mut() {
            *about = About::of(std::mem::take(&mut about.pods));
        }
        all.extend(self.todos_of_run());
        all
    }

    /// Lists what to do about the limits, and about what was not read.
    pub fn todos_of_run(&self) -> Todos<'_> {
        let facts = &self.facts;
        let mut todos = Vec::new();
        todos.extend(self.settings.unmatched(facts).map(|_| Todo::CorrectFilter));
        todos.extend(facts.incomplete.as_ref().map(|_| Todo::SaveWithLeases));
        match self.plan.hold.as_ref().or(self.plan.zones.values().next()) {
            Some(Limit::MassOutage(_)) => {
                todos.extend([Todo::ReachOne, Todo::RepairNetwork, Todo::IfAllAreOff]);
            }
            Some(Limit::NoRoom(_)) => todos.push(Todo::MakeRoom),
            Some(Limit::Unread(what)) => todos.push(Todo::SeeUnknown { what: what.clone() }),
            Some(Limit::OverCap(_)) | None => {}
        }
        let back = self.history.nodes.iter().filter(|node| node.needs_you());
        todos.extend(back.map(|node| {
            let pods = node.noted.pods.iter();
            let names = pods.map(|it| format!("{}/{}", it.namespace, it.name));
            Todo::CheckForTwoWriters {
                node: node.noted.node.clone(),
                names: listed(&names.collect_vec(), NAMES),
            }
        }));
        let strays = facts.strays.iter().cloned();
        todos.extend(strays.map(|stray| Todo::SeeStray { stray }));
        let errors = facts.errors.iter();
        let errors = errors.filter(|_| facts.incomplete.is_none());
        todos.extend(errors.map(|it| Todo::SeeUnread {
            what: it.what.clone(),
            why: it.cause.clone(),
        }));
        let down = facts.known_nodes();
        let down = down.filter(|node| node.ready != Ready::True && node.leaf.is_none());
        let down = down.map(|node| node.name.as_str());
        let about = About {
            pods: Vec::new(),
            nodes: down.sorted_by_cached_key(|name| natural(name)).collect(),
        };
        todos
            .into_iter()
            .map(|todo| (todo, about.clone()))
            .collect()
    }

    /// Lists what to do about one pod, and about its node because of it. Nothing in the list
    /// contradicts the state: a node that is alive, fenced, being deleted, no machine or a needed
    /// member of etcd is never powered off.
    pub fn todos_of(&self, judged: &Judged) -> Vec<Todo> {
        let Judged { pod, reason, .. } = judged;
        let deleted = |tie: &&Tie| {
            matches!(
                tie.kind,
                TieKind::Goes(Wanted::Deleted(_) | Wanted::DeletedAndHeld { .. })
            )
        };
        let deleted = reason.ties.iter().filter(deleted);
        let mut todos = deleted
            .filter_map(|tie| {
                Some(Todo::Retain {
                    claim: tie.pvc.clone(),
                    volume: judged.claim(&tie.pvc)?.bound()?.volume.name.clone(),
                })
            })
            .collect_vec();
        let outcome = self.outcomes.get(&pod.uid);
        let failure = outcome.filter(|outcome| outcome.code().is_failure());
        todos.extend(failure.map(|outcome| Todo::SeeOutcome {
            code: outcome.code(),
            why: outcome.sentence(),
        }));
        let is_untouched = outcome.is_some_and(|outcome| outcome.code().left_untouched());
        let node = self.facts.known_node(pod);
        let is_at_rest = matches!(
            reason.code(),
            ReasonCode::LocalVolume | ReasonCode::HostPath | ReasonCode::Stuck
        );
        let may_taint = node.is_some_and(|node| is_at_rest && self.may_taint(node));
        let hangs = || self.facts.on_ready_node(pod) && self.facts.overdue(pod) >= HANGS;
        match (judged.verdict(), reason.code()) {
            _ if self.is_held(judged) => {}
            (Verdict::Reap, _) if may_run_twice(pod) && !is_untouched => {
                todos.extend(self.off(node));
            }
            (Verdict::Leave, ReasonCode::NodeReady) if hangs() => todos.push(Todo::AskKubelet),
            (Verdict::Manual, ReasonCode::EtcdMember) => {
                todos.extend([Todo::ReachMembers, Todo::ForgetMembers]);
            }
            (Verdict::Manual, ReasonCode::KubeletAlive) => {
                todos.extend(node.into_iter().flat_map(|node| self.repair(node)));
            }
            (Verdict::Manual, ReasonCode::Finalizers) => {
                todos.extend(
                    pod.finalizers_of_others()
                        .map(|finalizer| Todo::ReleaseFinalizer {
                            finalizer: finalizer.to_owned(),
                            is_on_node: node.is_some(),
                            manager: pod.finalizers_set_by.get(finalizer).cloned(),
                        }),
                );
            }
            (Verdict::Manual, _) => match node.and_then(|node| node.leaf.as_ref()) {
                Some(leaf) => todos.extend(match leaf.kind {
                    LeafKind::Kosmos => {
                        let cluster = leaf.cluster.as_deref();
                        let cluster = cluster.unwrap_or("the leaf cluster").to_owned();
                        vec![Todo::LookInLeaf { cluster }, Todo::SeeLinkLog]
                    }
                    LeafKind::Virtual
                    | LeafKind::Edge
                    | LeafKind::Selected
                    | LeafKind::NeverReported => vec![Todo::RepairLeaf],
                }),
                None => todos.extend(self.about_storage(judged, node)),
            },
            _ => {}
        }
        todos.extend(may_taint.then_some(Todo::TaintNode));
        todos
    }

    /// Lists what to do about a pod whose storage or owner keeps it on a dead node.
    fn about_storage(&self, judged: &Judged, node: Option<&NodeFacts>) -> Vec<Todo> {
        let Judged { pod, reason, .. } = judged;
        let asks = |code| reason.asks.contains(&code);
        let mut todos = self.off(node);
        let claims = judged.storage.iter().flat_map(Storage::claims);
        let stays = claims.into_iter().all(|claim| claim.deletion.is_none());
        let is_wanted = judged.unneeded().is_none() && pod.controller.is_some();
        let is_local = asks(ReasonCode::LocalVolume) || asks(ReasonCode::HostPath);
        // Once another machine may write to its volumes, nobody waits for this one.
        let may_wait = |node: &NodeFacts| {
            !self.was_acted_on(&node.name) && self.volumes_moved_at(&node.name).is_none()
        };
        if is_local && stays && is_wanted && node.is_some_and(may_wait) {
            // A machine that is known to be off is not looked at.
            todos.push(if todos.contains(&Todo::PowerOff) {
                Todo::Look
            } else {
                Todo::BringBack
            });
        }
        if asks(ReasonCode::SharedDisk) {
            todos.push(Todo::Fence);
        }
        let without_row = [ReasonCode::OwnerKind, ReasonCode::VolumeUnverified];
        let without_row = without_row.into_iter().filter(|code| asks(*code));
        todos.extend(without_row.map(|code| Todo::SeeWhy { code }));
        if asks(ReasonCode::HostPath) {
            todos.push(Todo::CopyPaths {
                paths: pod.host_paths.iter().join(", "),
            });
        }
        for tie in &reason.ties {
            let (claim, its) = (tie.pvc.clone(), judged.claim(&tie.pvc));
            todos.extend(match (&tie.kind, its) {
                (TieKind::Confined(_), _) => Some(Todo::SeeWhy {
                    code: ReasonCode::LocalVolume,
                }),
                (TieKind::Pinned(_), Some(its)) if its.deletion.is_some() => None,
                // The template of the `StatefulSet` makes the PVC again.
                (TieKind::Pinned(_), Some(its)) if its.templated && pod.of_stateful_set() => {
                    Some(Todo::GiveUp {
                        namespace: pod.namespace.clone(),
                        claim,
                    })
                }
                (TieKind::Pinned(_), its) => Some(match its.and_then(|its| its.owner.clone()) {
                    Some(owner) => Todo::LeaveToOperator { claim, owner },
                    None => Todo::CreateAgain { claim },
                }),
                _ => None,
            });
        }
        todos
    }

    /// Lists what to do about the machine of a pod that starts elsewhere.
    fn off(&self, node: Option<&NodeFacts>) -> Vec<Todo> {
        let is_suspect = |node: &&NodeFacts| {
            State::of(node, self.facts.now) == State::Down && !node.out_of_service
        };
        let Some(node) = node.filter(is_suspect) else {
            return Vec::new();
        };
        let down = self
            .facts
            .known_nodes()
            .filter(|it| it.ready != Ready::True);
        let unsure = |it: &&NodeFacts| it.control_plane && it.etcd.is_none() && it.leaf.is_none();
        let moved = self.volumes_moved_at(&node.name);
        let mut todos = vec![if node.control_plane && down.filter(unsure).count() > 1 {
            Todo::LookAtControlPlane
        } else if let Some(moved) = moved.filter(|_| !self.was_acted_on(&node.name)) {
            Todo::HaveYouSeenItOff {
                since: clock(moved),
            }
        } else {
            Todo::PowerOff
        }];
        if node.etcd.is_some_and(Quorum::has_no_spare) {
            todos.push(Todo::NoSpareMember);
        }
        todos
    }

    /// Lists what to do about a node that is alive.
    fn repair(&self, node: &NodeFacts) -> Vec<Todo> {
        let says = node.kubelet_says.filter(|_| node.ready == Ready::False);
        vec![
            Todo::Repair { says },
            Todo::OrPowerOff {
                silent: about_time(self.settings.policy.silent_after()),
            },
        ]
    }

    /// Reports whether the report may print the command that sets the out-of-service taint: no
    /// limit holds the node, its machine shows no sign of life, and the node does not carry the
    /// taint yet. The taint ends every pod there, so none may be opted out, be on a member of etcd that
    /// may be needed, wait for your decision about its owner, or take a PVC along whose data may still be wanted.
    /// Nothing of this is known of pods in namespaces that are left out, and of pods whose PVCs were not read.
    pub(super) fn may_taint(&self, node: &NodeFacts) -> bool {
        let is_held = self.plan.by_node.contains_key(&node.name);
        let filter = &self.settings.namespaces;
        let sees_all = filter.include.is_none() && filter.exclude.is_none();
        let has_claims =
            |pod: &PodFacts| pod.claim_names.as_ref().map_or(true, |all| !all.is_empty());
        let protects = |Judged {
                            pod,
                            reason,
                            storage,
                            ..
                        }: &Judged| {
            pod.opts_out().is_some()
                || storage.is_none() && has_claims(pod)
                || reason.code() == ReasonCode::EtcdMember
                || reason.asks.contains(&ReasonCode::OwnerKind)
                || reason
                    .ties
                    .iter()
                    .any(|tie| tie.goes() || tie.given_up_from() > Some(self.facts.now))
        };
        let active = self.facts.active.get(&node.name);
        let mut active = active.into_iter().flatten();
        !is_held
            && sees_all
            && !node.may_live(self.facts.now)
            && !node.out_of_service
            && node.opted_out.is_none()
            && !self.pods_on(&node.name).any(protects)
            && !active.any(|pod| pod.opts_out().is_some() || has_claims(pod))
    }

    /// Reports whether a limit holds the pod's node, so that nothing but keeping data is asked for.
    fn is_held(&self, judged: &Judged) -> bool {
        let node = judged.pod.node.as_ref();
        node.is_some_and(|node| self.plan.by_node.contains_key(node))
    }
}

/// Reports whether the pod's containers may run beside a replacement: it was started, and its
/// controller starts it on another node.
fn may_run_twice(pod: &PodFacts) -> bool {
    let never_started =
        pod.phase == "Pending" && pod.containers.running + pod.containers.terminated == 0;
    !never_started && !pod.finished() && !pod.made_by("DaemonSet", "apps")
}

fn about_time(time: SignedDuration) -> String {
    let seconds = time.as_secs();
    match seconds % 60 {
        0 => format!("{} minutes", seconds / 60),
        _ => about(time),
    }
}
