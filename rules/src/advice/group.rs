//! The advice for pods that are alike: one text and one set of commands for all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use itertools::Itertools as _;

use super::{
    AFTER_A_POWER_CYCLE, Advice, Adviser, Loss, Objection, Row, Step, StepKind, asked,
    is_unverified, to_give_up,
};
use crate::{
    decide::{GIVE_UP, POWERED_OFF, REAP, ReasonCode, Tie, TieKind, Ties, Unsure, Verdict},
    facts::{
        ClaimFacts, DeletedWithPod, KubeletSays, NodeFacts, Owner, PodFacts, Read, Ready, SignBy,
        Unneeded, VolumeFacts,
    },
    limits::Judged,
    selector::{Target, is_name},
    words::{counted, joined, natural, prefixed},
};

/// The maximum number of pods in a group that get one command each, if two of them belong to one
/// `StatefulSet`. With more pods on one node, the `StatefulSet` has lost its quorum anyway, and so
/// many commands do not fit on a screen.
const MAX_SEPARATE_ANSWERS: usize = 3;

/// At least one pod, all in one namespace and on one node (or none), that get the same advice.
pub(super) struct PodGroup<'a> {
    pub all: &'a [&'a Judged],
    /// The first of `all`.
    pub first: &'a Judged,
    pub adviser: &'a Adviser<'a>,
}

impl PodGroup<'_> {
    fn pods(&self) -> impl Iterator<Item = &PodFacts> {
        self.all.iter().map(|judged| &judged.pod)
    }

    fn names(&self) -> Vec<&str> {
        self.pods().map(|pod| pod.name.as_str()).collect()
    }

    fn namespace(&self) -> &str {
        &self.first.pod.namespace
    }

    fn them(&self) -> &'static str {
        if self.all.len() == 1 {
            "the pod"
        } else {
            "the pods"
        }
    }

    fn get_pods(&self, kubectl: &Target, options: &[&str]) -> String {
        let within = ["-n", self.namespace()];
        kubectl.command(&[&["get", "pod"], &self.names()[..], &within, options].concat())
    }

    fn answer(&self, what: String, kind: &str, names: &[&str], annotation: &str) -> Step {
        self.adviser
            .answer(what, kind, names, self.namespace(), annotation)
    }

    fn is(&self, code: ReasonCode) -> bool {
        self.first.reason.asks.contains(&code)
    }

    /// Returns the advice about pods on a dead node that need your answers, or why the report asks for
    /// none.
    pub fn ask(&self, node: &NodeFacts) -> Advice {
        let is_open = node.fenced(self.adviser.facts.now).is_none();
        let (node, them) = (node.name.as_str(), self.them());
        let [shared, owner, confined, host_path] = [
            ReasonCode::SharedDisk,
            ReasonCode::OwnerKind,
            ReasonCode::VolumeConfined,
            ReasonCode::HostPath,
        ]
        .map(|code| self.is(code));
        let unverified = is_unverified(self.first);
        let (mut first, mut risks, mut steps) = (Vec::new(), Vec::new(), self.keep_data(node));
        let mut about_node = Vec::new();
        let is_deleted = !steps.is_empty();
        let is_in_danger = steps.iter().any(|step| step.command.is_some());
        steps.extend(self.see_volumes());
        if unverified {
            risks.push(format!(
                "If a volume is on {node}, the replacement waits for that node forever."
            ));
        }
        // An answer on a pod is valid only if no PVC is deleted with the pod.
        if (confined || unverified) && self.first.pod.may_take_a_claim() {
            let objection = Objection {
                why: "a PVC would be deleted with the pod, or may be".to_owned(),
                is_own: true,
            };
            steps.push(objection.remark());
            return Advice {
                risk: joined(risks, " "),
                steps,
                ..Advice::default()
            };
        }
        let losses = self.losses();
        if is_in_danger {
            let then = if is_open {
                format!(
                    "Then power {node} off before you run the command below. Otherwise two copies may run."
                )
            } else {
                "Then run the command below.".to_owned()
            };
            first.push(format!(
                "Keep the data by the first step: {node}'s kubelet destroys it as soon as it is back. {then}"
            ));
        } else if is_deleted && is_open {
            first.push(format!(
                "Power {node} off before you run the command below. Otherwise two copies may run."
            ));
        } else if is_deleted {
            first.push("Run the command below.".to_owned());
        } else if (!losses.is_empty() || host_path) && self.first.pod.unneeded().is_some() {
            first.push(format!(
                "Nothing wants {them} again. If {node} comes back, its kubelet ends {them}."
            ));
        } else if !losses.is_empty() || host_path {
            about_node.push(format!(
                "If {node} can come back, wait: these pods then restart with their data."
            ));
            if is_open {
                about_node.push(format!(
                    "If not, power {node} off before you run a command for them. Otherwise two copies may run."
                ));
            } else {
                about_node.push("If not, run their commands.".to_owned());
            }
        }
        if shared {
            risks.push(format!(
                "If {node} still runs, its machine and the replacement's would write to one disk at once, which destroys \
                 its data."
            ));
        }
        if (shared || unverified) && is_open {
            // This is one step, so that nobody confirms that the machine is off without having read
            // that they must check it.
            let what = format!(
                "Power {node} off or disconnect its disks, and verify that on the machine itself (console or BMC), not in the \
                 cluster: anything still running there would write to the same disks. Then confirm it with this command; the \
                 next run reaps the pods that wait for it. If nodes are fenced automatically, have the fencing agent mark the \
                 node (annotation fencing/state=fenced, or anything that --fenced-node-selector matches) and remove the mark \
                 when the node is back."
            );
            steps.push(self.answer(what, "node", &[node], POWERED_OFF));
        }
        if owner && is_open {
            if first.is_empty() && about_node.is_empty() {
                about_node.push(format!("Make sure that {node} is powered off."));
            }
            risks.push(format!(
                "If {node} is only cut off, what it ran may still be running there, and a replacement would be a second copy."
            ));
        }
        if !losses.is_empty() {
            first.push(self.what_follows());
            if is_deleted {
                first.extend(self.replaced_already(node));
            }
        }
        let copies = self.copies();
        let lets_go = confined || unverified || owner || host_path;
        let asks_for_pods = lets_go || !losses.is_empty();
        if self.are_of_one_set() && self.all.len() > MAX_SEPARATE_ANSWERS && asks_for_pods {
            first.push(
                "Answer for one pod at a time: name only one in the command, wait until the new pod is Ready, then go on with \
                 the next. Answer for all at once only if the pods do not depend on each other."
                    .to_owned(),
            );
        }
        if self.are_of_one_set() && self.all.len() <= MAX_SEPARATE_ANSWERS {
            let each = self.all.chunks(1).map(|all| PodGroup {
                all,
                first: all[0],
                ..*self
            });
            steps.extend(each.flat_map(|pod| pod.answers(node, lets_go, copies.as_ref())));
        } else {
            steps.extend(self.answers(node, lets_go, copies.as_ref()));
        }
        if self.pods().any(|pod| pod.controller.is_none()) {
            risks.push(format!(
                "Nothing brings {them} back: there is no controller."
            ));
        }
        Advice {
            first: joined(about_node.iter().chain(&first), " "),
            about_node,
            about_pods: joined(first, " "),
            repairs: false,
            risk: joined(risks, " "),
            ready_elsewhere: copies.and_then(|(_, copies)| copies.ok()),
            losses,
            steps,
        }
    }

    /// Returns the steps that answer for the pods. `lets_go` is true if the pods need an answer of
    /// their own.
    fn answers(
        &self,
        node: &str,
        lets_go: bool,
        copies: Option<&(Owner, Read<usize>)>,
    ) -> Vec<Step> {
        let (losses, mut steps) = (self.losses(), Vec::new());
        let mut last = prefixed(" ", self.one_at_a_time());
        if lets_go {
            let (next, then) = if losses.is_empty() {
                ("The next run does it.", mem::take(&mut last))
            } else {
                ("The next run also needs the step below.", String::new())
            };
            let host_path = self.is(ReasonCode::HostPath);
            let stays = prefixed("", host_path.then(|| self.leaves_data(node, copies)));
            let given_up = self
                .all
                .iter()
                .flat_map(|judged| judged.reason.ties.to_delete())
                .filter(|(_, pin)| pin.given_up.is_ok())
                .map(|(tie, _)| &tie.pvc);
            let keeps = match joined(given_up.sorted().dedup(), ", ") {
                None => "every PVC is kept".to_owned(),
                Some(claims) => {
                    format!(
                        "PVC {claims} is given up already and deleted with it; every other PVC is kept"
                    )
                }
            };
            let what = format!(
                "Allow {} to be force-deleted; {keeps}. {stays}{next}{then}",
                self.them()
            );
            steps.push(Step {
                harm: host_path.then_some("Starts empty"),
                ..self.answer(what, "pod", &self.names(), REAP)
            });
        }
        if !losses.is_empty() {
            let mut step = self.give_up(node, &losses, copies);
            step.what += &last;
            step.row = step.row.filter(|_| last.is_empty());
            steps.push(step);
        }
        steps
    }

    /// Lists the plan's pods that the report asks about and that belong to the same `StatefulSet`
    /// as the first pod. Such a `StatefulSet` may be a database that loses its quorum with two of
    /// its pods.
    fn asked_of_its_set(&self) -> impl Iterator<Item = &Judged> {
        let Adviser { plan, .. } = self.adviser;
        let its = self.first.pod.controller.as_ref();
        let of_set = its.filter(|_| self.first.pod.of_stateful_set());
        plan.pods.iter().filter(move |judged| {
            let (pod, node) = (&judged.pod, judged.pod.node.as_ref());
            of_set.is_some_and(|its| pod.controller.as_ref() == Some(its))
                && judged.verdict() == Verdict::Manual
                && judged.reason.asks_a_person()
                && node.is_none_or(|node| !plan.by_node.contains_key(node))
        })
    }

    /// Returns the sentence that the user must not answer for this pod and others of its
    /// `StatefulSet` at the same time; `None` if no other one needs an answer.
    fn one_at_a_time(&self) -> Option<String> {
        let are_several = self.all.len() == 1 && self.asked_of_its_set().nth(1).is_some();
        let set = self.first.pod.owner.as_ref().filter(|_| are_several)?;
        Some(format!(
            "Other pods of {set} need an answer too: answer for one pod at a time, and wait until it is Ready."
        ))
    }

    /// Reports whether two of the pods belong to one `StatefulSet`.
    fn are_of_one_set(&self) -> bool {
        let of_sets = self.pods().filter(|pod| pod.of_stateful_set());
        let mut sets = of_sets.filter_map(|pod| Some(pod.controller.as_ref()?.uid.as_str()));
        !sets.all_unique()
    }

    fn losses(&self) -> Vec<Loss> {
        let losses = self.all.iter().flat_map(|judged| {
            to_give_up(judged).filter_map(|name| {
                let mut claims = judged.pod.claims.iter();
                let bound = claims.find(|claim| claim.name == name)?.bound()?;
                Some(Loss {
                    claim: name.to_owned(),
                    volume: bound.volume.name.clone(),
                    reclaim_policy: bound.volume.reclaim_policy.clone(),
                    capacity: bound.capacity.clone(),
                    created: bound.created,
                })
            })
        });
        losses
            .sorted_by_cached_key(|loss| natural(&loss.claim))
            .dedup()
            .collect()
    }

    fn copies(&self) -> Option<(Owner, Read<usize>)> {
        let key = (self.namespace().to_owned(), self.first.pod.series()?);
        let copies = self.adviser.facts.copies.get(&key)?.clone();
        Some((key.1, copies))
    }

    /// Says what happens to the PVCs that are given up, and to their pods, as sentences.
    fn what_follows(&self) -> String {
        let mut claims = self.all.iter().flat_map(|judged| asked(judged));
        if claims.clone().all(|(_, pin)| pin.deleted) {
            return "Kubernetes deletes the PVC once its last pod is gone.".to_owned();
        }
        let is_one = self.all.len() == 1;
        let (nothing, deletes) = if is_one {
            (
                "Nothing happens to this pod until you run its command.",
                "the PVC and the pod",
            )
        } else {
            (
                "Nothing happens to these pods until you run their commands.",
                "each PVC with its pod",
            )
        };
        let run = if claims.clone().any(|(_, pin)| pin.doubt.is_some()) {
            format!(
                "The next run then checks whether a new PVC would be created, and deletes {deletes} only if so."
            )
        } else if claims.any(|(_, pin)| pin.by_operator) {
            format!(
                "The next run then deletes {deletes}. The operator that owns the pod decides whether to create them again."
            )
        } else if is_one {
            format!(
                "The next run then deletes {deletes}, and the StatefulSet creates both again, empty."
            )
        } else {
            format!(
                "The next run then deletes {deletes}, and their StatefulSets create all of them again, empty."
            )
        };
        format!("{nothing} {run}")
    }

    fn give_up(&self, node: &str, losses: &[Loss], copies: Option<&(Owner, Read<usize>)>) -> Step {
        let names = losses.iter().map(|loss| loss.claim.as_str()).collect_vec();
        let mut volumes = BTreeMap::<_, Vec<_>>::new();
        for loss in losses {
            let policy = loss.reclaim_policy.as_deref();
            volumes.entry(policy).or_default().push(&*loss.volume);
        }
        let is_deleted = !self.keep_data(node).is_empty();
        let is_lost = volumes.keys().any(|policy| *policy != Some("Retain"));
        let lost = |policy: Option<&str>, of: &str| {
            let data = format!("the data of {of}");
            match policy {
                Some("Retain") => {
                    format!(
                        "{data} stays (reclaim policy Retain), but the new pod starts without it"
                    )
                }
                Some(policy) if is_deleted => {
                    format!(
                        "{data} is lost for good (reclaim policy {policy}), unless you set it to Retain first"
                    )
                }
                Some(policy) => format!("{data} is lost for good (reclaim policy {policy})"),
                None => format!("{data} must be considered lost (it names no reclaim policy)"),
            }
        };
        let pvcs = named("PVC", &names)
            + &prefixed(
                "",
                joined(size_and_age(losses), ", ").map(|both| format!(" ({both})")),
            );
        let mut all_lost = volumes
            .into_iter()
            .map(|(policy, volumes)| lost(policy, &named("volume", &volumes)));
        let mut what = format!("Discard {pvcs}: {}.", all_lost.join("; "));
        let mut row = match losses {
            [
                Loss {
                    volume,
                    reclaim_policy,
                    ..
                },
            ] if !is_deleted => Some(Row {
                does: format!(
                    "Each command discards the PVC of one pod: {}.",
                    lost(reclaim_policy.as_deref(), "its volume")
                ),
                about: format!("{pvcs}, volume {volume}"),
            }),
            _ => None,
        };
        what += &prefixed(" ", self.says_copies(copies));
        let mut claims = self.all.iter().flat_map(|judged| asked(judged));
        if let Some(doubt) = claims.find_map(|(_, pin)| pin.doubt.as_ref()) {
            what += &format!(
                " Whether the PVC would be created again is not known ({}).",
                doubt.why
            );
            row = None;
        }
        Step {
            row,
            harm: Some(if is_lost {
                "Destroys data"
            } else {
                "Starts empty"
            }),
            ..self.answer(what, "pvc", &names, GIVE_UP)
        }
    }

    /// Says how many other pods of the workload are Ready, as a sentence.
    fn says_copies(&self, copies: Option<&(Owner, Read<usize>)>) -> Option<String> {
        let (workload, copies) = copies?;
        Some(match copies {
            Ok(0) => {
                let last = match self.all {
                    [_] => "this may be the last copy",
                    _ => "these may be the last copies",
                };
                format!("No other pod of {workload} is Ready, so {last}.")
            }
            Ok(copies) => format!(
                "Ready elsewhere: {} of {workload}.",
                counted(*copies, "pod", "pods")
            ),
            // The cause may be a message of the API server, which no log repeats.
            Err(_) => format!("It is not known how many other pods of {workload} are Ready."),
        })
    }

    /// Says which data the pods leave behind on their node, as sentences to precede others.
    fn leaves_data(&self, node: &str, copies: Option<&(Owner, Read<usize>)>) -> String {
        let written = self.pods().flat_map(|pod| &pod.host_paths);
        let paths = written.sorted().dedup().join(", ");
        let copies = prefixed("", self.says_copies(copies).map(|says| says + " "));
        format!(
            "The data in {paths} stays on {node}'s disk, and the replacement starts without it: copy it from there if you \
             need it. {copies}"
        )
    }

    /// Returns the sentences that the replacement of a `ReplicaSet`'s pod exists already, and what
    /// it waits for; `None` for other pods. The `ReplicaSet` created the replacement at the
    /// eviction.
    pub fn replaced_already(&self, node: &str) -> Option<String> {
        let is_renamed = |pod: &PodFacts| pod.made_by("ReplicaSet", "apps");
        let is_pinned = self.is(ReasonCode::LocalVolume) && self.pods().all(is_renamed);
        let pinned = self
            .all
            .iter()
            .flat_map(|judged| judged.reason.ties.pinned())
            .filter(|_| is_pinned);
        let of_pins = pinned.clone().map(|(tie, _)| tie.pvc.as_str());
        let names = of_pins.sorted().dedup().collect_vec();
        if names.is_empty() {
            return None;
        }
        let pvcs = named("PVC", &names);
        let exists = match self.all {
            [_] => "The replacement exists already, and stays Pending",
            _ => "The replacements exist already, and stay Pending",
        };
        let what = if pinned.clone().any(|(_, pin)| pin.deleted) {
            format!("Once the old pod is gone, create {pvcs} again, since no controller does.")
        } else {
            format!(
                "If {node} can come back, wait: the replacement then starts there, with the data. If {node} is lost for good, \
                 delete {pvcs} and the old pod by hand; then create {pvcs} again, empty, since no controller does."
            )
        };
        Some(format!(
            "{exists}: {pvcs} can only be used on {node}. {what}"
        ))
    }

    /// Returns the steps that save the data of PVCs that somebody deleted. When the node comes
    /// back, the last act of its kubelet would destroy that data.
    pub fn keep_data(&self, node: &str) -> Vec<Step> {
        let claims = self.pods().flat_map(|pod| {
            let claims = pod.claims.iter();
            claims.filter(|claim| {
                let kept = [
                    DeletedWithPod::Unwanted(Unneeded::Namespace),
                    DeletedWithPod::Ephemeral,
                ];
                claim.deleted && claim.keeper().is_none() && !kept.contains(&pod.goes(claim))
            })
        });
        let steps = claims.filter_map(|claim| Some(self.keep(node, claim, &claim.bound()?.volume)));
        let mut seen = BTreeSet::new();
        steps
            .filter(|step| seen.insert(step.what.clone()))
            .collect()
    }

    fn see_volumes(&self) -> Vec<Step> {
        let ties = |code| {
            let all = self.all.iter().filter(move |_| self.is(code));
            all.map(|judged| &judged.reason.ties)
        };
        let kubectl = self.adviser.kubectl;
        let mut steps = Vec::new();
        for tie in ties(ReasonCode::VolumeConfined).flat_map(Ties::confined) {
            let (Tie { pvc, why, .. }, volume) = (tie, tie.volume());
            let what = format!("See where the data of PVC {pvc} is: volume {volume} {why}.");
            let describe = ["describe", "pv", volume];
            steps.push(Step::new(what, kubectl.command(&describe)));
        }
        if !steps.is_empty() {
            steps.push(Step::remark(format!(
                "If the data is elsewhere, bring up a node that the volume allows: the next run then reaps {}. A replacement \
                 would wait for such a node.",
                self.them()
            )));
        }
        let unverified = ties(ReasonCode::VolumeUnverified).flat_map(Ties::unverified);
        for tie in unverified.filter(|tie| !tie.answerable()) {
            let (Tie { pvc, why, .. }, volume) = (tie, tie.volume());
            let what = if tie.kind == TieKind::Unverified(Unsure::NoVolume) {
                format!(
                    "Volume {volume} of PVC {pvc} does not exist: bring it back, or a new pod cannot start."
                )
            } else {
                format!("See PVC {pvc}, and where its volume is: {why}.")
            };
            let get = ["get", "pvc", pvc, "-n", self.namespace(), "-o", "wide"];
            // A name that no PVC can have is only in the pod, so the command shows the pod.
            let command = if is_name(pvc) {
                kubectl.command(&get)
            } else {
                self.get_pods(kubectl, &["-o", "yaml"])
            };
            steps.push(Step::new(what, command));
        }
        // If a pod uses too many PVCs, one placeholder stands for all of them.
        steps.dedup();
        steps
    }

    /// Returns the step that keeps the data of a deleted PVC. Its command only ever keeps data, so
    /// the user may paste it late, and twice.
    fn keep(&self, node: &str, claim: &ClaimFacts, volume: &VolumeFacts) -> Step {
        let (claim, VolumeFacts { name, .. }, retain) = (&claim.name, volume, "Retain");
        if volume.reclaim_policy.as_deref() == Some(retain) {
            return Step {
                kind: StepKind::Keep,
                ..Step::remark(format!(
                    "Somebody deleted PVC {claim}: it is deleted once its last pod is gone. Its volume {name} has the reclaim policy {retain}, so its \
                     data stays, and a replacement starts empty."
                ))
            };
        }
        let change = format!(r#"{{"spec":{{"persistentVolumeReclaimPolicy":"{retain}"}}}}"#);
        let patch = ["patch", "pv", name, "-p", &change];
        Step {
            kind: StepKind::Keep,
            ..Step::new(
                format!(
                    "Set volume {name} to {retain} before {node} comes back: somebody deleted PVC {claim}, so the data is \
                     destroyed as soon as {node}'s kubelet ends the pod."
                ),
                self.adviser.kubectl.command(&patch),
            )
        }
    }

    /// Returns the advice about pods for which a repair is needed instead of an answer about their
    /// storage or owner. `risk` holds the advice of the reason code, unless the kubelet reports
    /// that all containers have terminated.
    pub fn repair(&self) -> Advice {
        let Judged { pod, reason, .. } = self.first;
        let kubectl = self.adviser.kubectl;
        let get = |options: &[&str]| self.get_pods(kubectl, options);
        let known = self.adviser.facts.known_node(pod);
        let first = known.filter(|_| reason.code == ReasonCode::KubeletAlive);
        let first = first.and_then(repair_first).map(str::to_owned);
        let waiting = self.waiting_for_its_end();
        let mut steps = if reason.code == ReasonCode::Finalizers {
            vec![
                Step::new(
                    "See what set the finalizers (under managedFields, the manager of each f:finalizers), and look at its log.",
                    get(&["--show-managed-fields", "-o", "yaml"]),
                ),
                Step::new(
                    "See which finalizers are left. Once the last one is removed, the pod disappears by itself, or the next run deletes it.",
                    get(&[
                        "-o",
                        "custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers",
                    ]),
                ),
            ]
        } else {
            let name = pod.node.as_deref().unwrap_or_default();
            let describe = kubectl.command(&["describe", "node", name]);
            let see = "See the node's conditions, and its kubelet's last lease.";
            let mut steps = self.other_leases();
            steps.push(Step::new(see, describe));
            steps
        };
        if reason.code == ReasonCode::KosmosLeaf {
            let log = "logs -n kosmos-system deployment/clustertree-cluster-manager --tail=50";
            let see = "See why Kosmos does not reach the leaf cluster. If kosmos-guard is not installed, install it for the next time.";
            steps.push(Step::new(
                see,
                kubectl.command(&log.split(' ').collect_vec()),
            ));
            let cluster = known.and_then(|node| node.leaf.as_ref()?.cluster.as_deref());
            steps.extend(cluster.map(|cluster| self.in_leaf_cluster(cluster)));
        }
        let asks = self.adviser.asks_if_edge_is_off(self.first);
        steps.extend(known.filter(|_| asks).map(|node| {
            let what = format!(
                "If {} is off for good, check that at the machine itself, and confirm it: the next run then reaps the pods whose \
                 deletion was requested before.",
                node.name
            );
            self.answer(what, "node", &[&node.name], POWERED_OFF)
        }));
        let is_alive = reason.code == ReasonCode::KubeletAlive;
        let ended = known.is_some_and(|node| is_alive && node.ready == Ready::False)
            && pod.containers.terminated > 0
            && pod.containers.running + pod.containers.waiting == 0;
        let risk = if ended {
            "Do not force-delete it: its containers have terminated, and the kubelet confirms that once the node is Ready. Or power \
             the machine off: after 11 minutes without a heartbeat, the next run judges the pod again."
        } else {
            reason.code.advice()
        };
        let mut risk = risk.to_owned();
        if pod_is_far(reason.code) {
            risk += &self.second_copies();
        }
        if let Some(advice) = waiting {
            let others = self.pods().any(PodFacts::is_held_by_others);
            risk = advice.risk.unwrap_or_default() + &prefixed(" ", others.then_some(risk));
            let looks = steps.split_off(usize::from(!others));
            steps = advice.steps.into_iter().chain(looks).collect();
        }
        Advice {
            about_pods: first.clone(),
            first,
            risk: Some(risk),
            repairs: true,
            steps,
            ..Advice::default()
        }
    }

    /// Says what a force delete of the pods would start, by the kinds of their controllers, as
    /// sentences.
    fn second_copies(&self) -> String {
        let kinds = self.pods().map(|pod| {
            let controller = pod.controller.as_ref().and(pod.owner.as_ref());
            controller.map(|owner| owner.kind.as_str())
        });
        let said = kinds.sorted().dedup().map(|kind| match kind {
            None => " Nothing would start a pod without a controller again.".to_owned(),
            Some("StatefulSet") => {
                " After a force delete, the StatefulSet would start a second copy.".to_owned()
            }
            Some("ReplicaSet" | "Job") => {
                format!(
                    " A {} has most likely started a replacement already, at the eviction.",
                    kind.unwrap_or_default()
                )
            }
            Some(kind) => format!(" A {kind} may start a second copy."),
        });
        said.collect()
    }

    /// Returns the advice about pods that finalizers block until the pods have finished: nothing
    /// records the end of a pod while its node is dead. `None` if there are no such pods.
    fn waiting_for_its_end(&self) -> Option<Advice> {
        let node = self.adviser.facts.known_node(&self.first.pod)?;
        let waits = self.pods().flat_map(PodFacts::waits_for_its_end);
        let finalizers = joined(waits.sorted().dedup(), ", ")?;
        let (adviser, name) = (self.adviser, &node.name);
        let off = match node.fenced(adviser.facts.now) {
            Some(_) => String::new(),
            None => format!("power {name} off, and check that at the machine itself; then "),
        };
        let risk = format!(
            "{finalizers} is released only once the pod has finished, and nothing records that while {name} is dead. If \
             {name} cannot come back, {off}set the out-of-service taint: Kubernetes 1.26 or newer then sets the pod to \
             Failed and force-deletes it."
        );
        let what = format!(
            "Set the taint only once the machine is off: Kubernetes force-deletes every pod on {name} that does not tolerate \
             it. {AFTER_A_POWER_CYCLE}"
        );
        let taint = adviser.may_taint(node).then(|| adviser.taint(node, &what));
        Some(Advice {
            risk: Some(risk),
            steps: taint.into_iter().collect(),
            ..Advice::default()
        })
    }

    /// Returns the step that shows another Lease that is a sign of life, if there is one. The
    /// node's own lease is old and would seem to contradict it.
    fn other_leases(&self) -> Vec<Step> {
        let adviser = self.adviser;
        let Some(node) = adviser.facts.known_node(&self.first.pod) else {
            return Vec::new();
        };
        let signs = node.signs_of_life(adviser.facts.now);
        let other = signs.iter().find(|sign| sign.by == SignBy::OtherLease);
        let Some(what) = other.and_then(|sign| sign.what.as_deref()) else {
            return Vec::new();
        };
        let named = node.named_by.iter().flatten().flatten().find(|named| {
            let lease = format!("{}/{}", named.namespace, named.lease);
            what.split([' ', ',']).any(|word| word == lease)
        });
        let step = named.map(|named| {
            let get = [
                "get",
                "lease",
                &named.lease,
                "-n",
                &named.namespace,
                "-o",
                "yaml",
            ];
            Step::new(
                "See the Lease that shows life:",
                adviser.kubectl.command(&get),
            )
        });
        step.into_iter().collect()
    }

    /// Returns the step to look for the pods in the cluster that a leaf node stands for. The
    /// command names a kubeconfig file of its own. It fails if that file does not exist, and never
    /// contacts the cluster of this run.
    fn in_leaf_cluster(&self, cluster: &str) -> Step {
        let file = format!("{cluster}.kubeconfig");
        let what = format!(
            "Look for {} in leaf cluster {cluster}: save a kubeconfig of that cluster as {file}. If the link is cut from here too, \
             look from within the leaf cluster.",
            self.them()
        );
        let there = Target {
            kubeconfig: Some(file.into()),
            context: None,
        };
        Step::new(what, self.get_pods(&there, &["-o", "wide"]))
    }
}

/// Reports whether the reason is that the pod may be running elsewhere, on whatever its leaf node
/// stands for.
fn pod_is_far(code: ReasonCode) -> bool {
    [
        ReasonCode::KosmosLeaf,
        ReasonCode::VirtualNode,
        ReasonCode::EdgeNode,
        ReasonCode::LeafNode,
    ]
    .contains(&code)
}

fn size_and_age(losses: &[Loss]) -> impl Iterator<Item = String> {
    let each = if losses.len() == 1 { "" } else { " each" };
    let capacities = losses.iter().filter_map(|loss| loss.capacity.as_ref());
    let sizes = capacities.counts().into_iter().sorted().collect_vec();
    let size = match &sizes[..] {
        [] => None,
        [(size, _)] => Some(format!("{size}{each}")),
        sizes => joined(
            sizes
                .iter()
                .map(|(size, count)| format!("{count} of {size}")),
            ", ",
        ),
    };
    let times = losses.iter().filter_map(|loss| loss.created);
    let made = times.minmax().into_option().map(|(first, last)| {
        let [from, to] = [first, last].map(|time| time.strftime("%F").to_string());
        if first == last {
            format!("created {from} {}", first.strftime("%RZ"))
        } else if from == to {
            format!("created {from}")
        } else {
            format!("created {from} to {to}")
        }
    });
    size.into_iter().chain(made)
}

fn named(noun: &str, names: &[&str]) -> String {
    match names.len() {
        1 => format!("{noun} {}", names.join("")),
        2 | 3 => format!("{noun}s {}", names.join(", ")),
        count => format!("{count} {noun}s"),
    }
}

/// Returns the first step on a node that is alive, by the fault that its kubelet reports; `None` if
/// it reports none that is known.
fn repair_first(node: &NodeFacts) -> Option<&'static str> {
    let says = node.kubelet_says.filter(|_| node.ready == Ready::False)?;
    Some(match says {
        KubeletSays::ShuttingDown => "Wait until the node has shut down, or power it off.",
        KubeletSays::Runtime => "Restart the container runtime on the node.",
        KubeletSays::Network => "Repair the network plugin (CNI) on the node.",
    })
}
