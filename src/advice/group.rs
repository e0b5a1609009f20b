//! The advice for pods that are alike: one text and one set of commands for all of them.

use itertools::Itertools as _;

use super::{AFTER_A_POWER_CYCLE, Advice, Adviser, Step, StepKind, UNLESS_CHANGED, by_hand};
use crate::{
    facts::{
        ClaimFacts, KubeletSays, NodeFacts, PodFacts, Ready, SetFacts, SignBy, Storage, Unread,
        VolumeFacts,
    },
    judge::{Judged, ReasonCode, Tie, Verdict},
    selector::{Target, is_name},
    words::{joined, listed, prefixed},
};

/// The maximum number of commands that delete a PVC in the advice about several pods. More of them
/// do not fit on a screen.
const MAX_COMMANDS: usize = 3;

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

    fn is(&self, code: ReasonCode) -> bool {
        self.first.reason.asks.contains(&code)
    }

    /// Returns the advice about pods on a dead node about which you have to decide.
    pub fn ask(&self, node: &NodeFacts) -> Advice {
        let is_open = node.fenced(self.adviser.facts.now).is_none();
        let (name, them) = (node.name.as_str(), self.them());
        let [shared, owner, local, host_path] = [
            ReasonCode::SharedDisk,
            ReasonCode::OwnerKind,
            ReasonCode::LocalVolume,
            ReasonCode::HostPath,
        ]
        .map(|code| self.is(code));
        let is_unverified =
            self.ties(Tie::is_unverified).next().is_some() || self.too_many_claims().is_some();
        let (mut first, mut about_node, mut risks) = (Vec::new(), Vec::new(), Vec::new());
        let mut steps = self.keep_data(name);
        let is_deleted = !steps.is_empty();
        let is_in_danger = steps.iter().any(|step| step.command.is_some());
        steps.extend(self.see_volumes());
        if is_in_danger {
            first.push(format!(
                "Keep the data by the first step: {name}'s kubelet destroys it as soon as it is back."
            ));
        }
        if is_deleted {
            if is_open {
                first.push(format!(
                    "Power {name} off before you delete {them} by hand. Otherwise two copies may run."
                ));
            }
            first.extend(self.replaced_already(name));
        } else if (local || host_path) && self.first.unneeded().is_some() {
            first.push(format!(
                "Nothing wants {them} again. If {name} comes back, its kubelet ends {them}."
            ));
        } else if let Some(replaced) = self.replaced_already(name) {
            first.push(replaced);
        } else if (local || host_path) && self.restarts_with_its_data() {
            about_node.push(format!(
                "If {name} can come back, wait: these pods then restart with their data."
            ));
            if is_open {
                about_node.push(format!(
                    "If not, power {name} off before you delete anything by hand. Otherwise two copies may run."
                ));
            }
        }
        if is_unverified {
            risks.push(format!(
                "If a volume is on {name}, the replacement waits for that node forever."
            ));
        }
        if shared {
            risks.push(format!(
                "If {name} still runs, its machine and the replacement's would write to one disk at once, which destroys \
                 its data."
            ));
        }
        if (shared || is_unverified) && is_open {
            let mark = if shared {
                " Then mark the node as fenced: annotation fencing/state=fenced, or anything that --fenced-node-selector \
                 matches; the next run reaps the pods that wait for it. Remove the mark when the node is back."
            } else {
                ""
            };
            steps.push(Step::decide(format!(
                "Power {name} off or disconnect its disks, and verify that on the machine itself (console or BMC), not in the \
                 cluster: anything still running there would write to the same disks.{mark}"
            )));
        }
        if owner && is_open {
            if first.is_empty() && about_node.is_empty() {
                about_node.push(format!("Make sure that {name} is powered off."));
            }
            risks.push(format!(
                "If {name} is only cut off, what it ran may still be running there, and a replacement would be a second copy."
            ));
        }
        steps.extend(self.ready_copies());
        // A PVC that may be wanted comes first: the pod must not go before its data is safe.
        if self.first.reason.code() == ReasonCode::LocalVolume {
            steps.extend(self.deletes(node));
        }
        if self.first.reason.asks != [ReasonCode::SharedDisk] {
            first.extend(self.one_at_a_time());
            if !self.can_be_given_up() {
                let stays = prefixed("", host_path.then(|| self.leaves_data(name)));
                steps.push(Step::decide(format!(
                    "{stays}The steps to delete {them} by hand are {}.",
                    by_hand()
                )));
            }
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
            steps,
        }
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

    /// Reports whether nothing keeps the pods but PVCs that the user may give up.
    fn can_be_given_up(&self) -> bool {
        let mut ties = self.all.iter().flat_map(|judged| {
            let ties = judged.reason.ties.iter().filter(|tie| tie.keeps());
            ties.map(|tie| (tie.is_pinned(), judged.claim(&tie.pvc)))
        });
        self.first.reason.asks == [ReasonCode::LocalVolume]
            && ties.all(|(is_pinned, claim)| is_pinned && claim.is_some_and(may_give_up))
    }

    /// Returns the sentence that the user must not decide about several pods of a `StatefulSet` at
    /// the same time; `None` if only one needs a decision.
    fn one_at_a_time(&self) -> Option<String> {
        let are_several = self.asked_of_its_set().nth(1).is_some();
        let set = self.first.pod.owner.as_ref().filter(|_| are_several)?;
        Some(format!(
            "Several pods of {set} need you: go on with the next one only once the one before is Ready."
        ))
    }

    /// Returns the steps that delete the PVCs whose volumes are on the node, if a `StatefulSet`
    /// makes them again.
    fn deletes(&self, node: &NodeFacts) -> Vec<Step> {
        let deletes = self.all.iter().flat_map(|judged| {
            let pod = &judged.pod;
            let pinned = judged.reason.ties.iter().filter(|tie| tie.is_pinned());
            let claims = pinned.filter_map(|tie| judged.claim(&tie.pvc));
            let named = |claim: &&ClaimFacts| is_name(&pod.namespace) && is_name(&claim.name);
            claims
                .filter(|claim| may_give_up(claim))
                .filter(named)
                .filter_map(|claim| self.delete(node, claim))
        });
        let deletes = deletes.collect_vec();
        if deletes.len() <= MAX_COMMANDS {
            return deletes;
        }
        vec![Step::decide(format!(
            "Only if {} is lost for good, give the {} PVCs of these pods up by deleting them, one after the other: \
             pod-reaper explain prints the command for each pod.",
            node.name,
            deletes.len()
        ))]
    }

    /// Returns the step that says how many copies of the pods' `StatefulSets` are Ready, if the pods'
    /// data is on the node. The count is the set's own (`status.readyReplicas`).
    fn ready_copies(&self) -> Option<Step> {
        let sets = self.all.iter().filter(|it| it.pod.of_stateful_set());
        let copies = sets.filter_map(|judged| {
            let known = match &judged.storage.as_ref()?.set {
                Some(Ok(SetFacts {
                    copies: Some(copies),
                    ..
                })) => copies.to_string(),
                Some(Err(why)) => format!("not known: {why}"),
                _ => "not known".to_owned(),
            };
            Some(format!("{} {known}", judged.pod.owner.as_ref()?))
        });
        let copies = copies.unique().collect_vec();
        let is_local = self.is(ReasonCode::LocalVolume) && !copies.is_empty();
        is_local.then(|| Step::remark(format!("Ready copies: {}.", listed(&copies, MAX_COMMANDS))))
    }

    fn delete(&self, node: &NodeFacts, claim: &ClaimFacts) -> Option<Step> {
        let bound = claim.bound()?;
        let VolumeFacts {
            name,
            reclaim_policy,
            ..
        } = &bound.volume;
        let (harm, lost) = match reclaim_policy.as_deref() {
            Some("Retain") => (
                "Starts empty",
                "stays (reclaim policy Retain), but the new pod starts without it".to_owned(),
            ),
            Some(policy) => (
                "Destroys data",
                format!("is lost for good (reclaim policy {policy})"),
            ),
            None => (
                "Destroys data",
                "must be considered lost (it names no reclaim policy)".to_owned(),
            ),
        };
        let (pvc, uid) = (&claim.name, &bound.uid);
        let kubectl = self.adviser.kubectl;
        Some(Step {
            harm: Some(harm),
            command: Some(kubectl.delete_claim(node, self.namespace(), pvc, uid)),
            ..Step::decide(format!(
                "Only if {} is lost for good, give PVC {pvc} up by deleting it: the data of volume {name} {lost}. Kubernetes \
                 keeps the PVC until the pod is gone. Ten minutes later a run deletes the pod, and the StatefulSet makes \
                 both again. {UNLESS_CHANGED}",
                node.name
            ))
        })
    }

    /// Says which data the pods leave behind on their node, as sentences to precede others.
    fn leaves_data(&self, node: &str) -> String {
        let written = self.pods().flat_map(|pod| &pod.host_paths);
        let paths = written.sorted().dedup().join(", ");
        format!(
            "The data in {paths} stays on {node}'s disk, and the replacement starts without it: copy it from there if you \
             need it. "
        )
    }

    /// Returns the sentences that the replacement of a `ReplicaSet`'s pod exists already, and what
    /// it waits for; `None` for other pods. The `ReplicaSet` created the replacement at the
    /// eviction.
    pub fn replaced_already(&self, node: &str) -> Option<String> {
        let is_renamed = |pod: &PodFacts| pod.made_by("ReplicaSet", "apps");
        let is_pinned = self.is(ReasonCode::LocalVolume) && self.pods().all(is_renamed);
        let pinned = self.ties(Tie::is_pinned).filter(|_| is_pinned);
        let of_pins = pinned.map(|tie| tie.pvc.as_str());
        let names = of_pins.sorted().dedup().collect_vec();
        if names.is_empty() {
            return None;
        }
        let pvcs = named("PVC", &names);
        let exists = match self.all {
            [_] => "The replacement exists already, and stays Pending",
            _ => "The replacements exist already, and stay Pending",
        };
        let is_deleted = |name: &str| {
            let mut all = self.all.iter();
            all.any(|judged| judged.claim(name).is_some_and(|it| it.deletion.is_some()))
        };
        let what = if names.iter().any(|name| is_deleted(name)) {
            format!("Once the old pod is gone, create {pvcs} again, since no controller does.")
        } else {
            format!(
                "If {node} can come back, wait: the replacement then starts there, with the data. If {node} is lost for good, \
                 delete {pvcs}: ten minutes later a run deletes the old pod. Then create {pvcs} again, empty, since no controller does."
            )
        };
        Some(format!(
            "{exists}: {pvcs} can only be used on {node}. {what}"
        ))
    }

    /// Returns the steps that save the data of PVCs that somebody deleted before the node failed. When
    /// the node comes back, the last act of its kubelet would destroy that data.
    pub fn keep_data(&self, node: &str) -> Vec<Step> {
        let going = self.all.iter().flat_map(|judged| {
            let going = judged.reason.ties.iter().filter(|tie| tie.goes());
            going.filter_map(|tie| judged.claim(&tie.pvc))
        });
        let deleted = going.filter(|claim| claim.deletion.is_some());
        let steps = deleted
            .filter_map(|claim| Some(self.keep(node, &claim.name, &claim.bound()?.volume.name)));
        steps.unique_by(|step| step.what.clone()).collect()
    }

    /// Reports whether the pods' controller would start them again on their node, with all of their
    /// PVCs: none of them is being deleted.
    fn restarts_with_its_data(&self) -> bool {
        let storage = self.all.iter().filter_map(|it| it.storage.as_ref());
        let mut claims = storage.flat_map(Storage::claims);
        self.first.pod.controller.is_some() && claims.all(|claim| claim.deletion.is_none())
    }

    /// Lists the ties that `is` selects.
    fn ties(&self, is: fn(&Tie) -> bool) -> impl Iterator<Item = &Tie> {
        let ties = self.all.iter().flat_map(|judged| &judged.reason.ties);
        ties.filter(move |tie| is(tie))
    }

    /// Returns why the PVCs of a pod were not looked up; `None` if they were.
    fn too_many_claims(&self) -> Option<&Unread> {
        let mut storage = self.all.iter().filter_map(|it| it.storage.as_ref());
        storage.find_map(|storage| storage.claims.as_ref().err())
    }

    fn see_volumes(&self) -> Vec<Step> {
        let kubectl = self.adviser.kubectl;
        let mut steps = Vec::new();
        for tie in self.ties(Tie::is_confined) {
            let (pvc, volume, why) = (&tie.pvc, tie.volume(), tie.why());
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
        for tie in self.ties(Tie::is_unverified) {
            let (pvc, why) = (&tie.pvc, tie.why());
            let what = format!("See PVC {pvc}, and where its volume is: {why}.");
            let get = ["get", "pvc", pvc, "-n", self.namespace(), "-o", "wide"];
            // A name that no PVC can have is only in the pod, so the command shows the pod.
            let command = if is_name(pvc) {
                kubectl.command(&get)
            } else {
                self.get_pods(kubectl, &["-o", "yaml"])
            };
            steps.push(Step::new(what, command));
        }
        if let Some(why) = self.too_many_claims() {
            let what = format!(
                "See the PVCs of {}, and where their volumes are: {why}.",
                self.them()
            );
            steps.push(Step::new(what, self.get_pods(kubectl, &["-o", "yaml"])));
        }
        steps
    }

    /// Returns the step that keeps the data of a deleted PVC. Its command only ever keeps data, so
    /// the user may paste it late, and twice.
    fn keep(&self, node: &str, claim: &str, volume: &str) -> Step {
        let change = r#"{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}"#;
        let patch = ["patch", "pv", volume, "-p", change];
        Step {
            kind: StepKind::Keep,
            ..Step::new(
                format!(
                    "Set volume {volume} to Retain before {node} comes back: PVC {claim} is being deleted, so the data is \
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
        let first = known.filter(|_| reason.code() == ReasonCode::KubeletAlive);
        let first = first.and_then(repair_first).map(str::to_owned);
        let waiting = self.waiting_for_its_end();
        let mut steps = if reason.code() == ReasonCode::Finalizers {
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
        if reason.code() == ReasonCode::KosmosLeaf {
            let log = "logs -n kosmos-system deployment/clustertree-cluster-manager --tail=50";
            let see = "See why Kosmos does not reach the leaf cluster. If kosmos-guard is not installed, install it for the next time.";
            steps.push(Step::new(
                see,
                kubectl.command(&log.split(' ').collect_vec()),
            ));
            let cluster = known.and_then(|node| node.leaf.as_ref()?.cluster.as_deref());
            steps.extend(cluster.map(|cluster| self.in_leaf_cluster(cluster)));
        }
        let is_alive = reason.code() == ReasonCode::KubeletAlive;
        let ended = known.is_some_and(|node| is_alive && node.ready == Ready::False)
            && pod.containers.terminated > 0
            && pod.containers.running + pod.containers.waiting == 0;
        let risk = if ended {
            "Do not force-delete it: its containers have terminated, and the kubelet confirms that once the node is Ready. Or power \
             the machine off: after 11 minutes without a heartbeat, the next run judges the pod again."
        } else {
            reason.code().advice()
        };
        let mut risk = risk.to_owned();
        if pod_is_far(reason.code()) {
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
        let named = node
            .life
            .iter()
            .flat_map(|life| &life.named_by)
            .flatten()
            .find(|named| {
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

/// Reports whether the report may ask to delete the PVC: a `StatefulSet` makes it again, and nobody has
/// deleted it yet.
fn may_give_up(claim: &ClaimFacts) -> bool {
    claim.templated && claim.deletion.is_none()
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
