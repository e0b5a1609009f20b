//! Writes things to do as steps.

use itertools::Itertools as _;

use super::{About, Step, Todo};
use crate::{
    facts::Stray,
    judge::Judged,
    report::record::RunRecord,
    selector::{Target, is_name},
};

impl RunRecord<'_> {
    /// Writes a thing to do as a step.
    pub fn step(&self, todo: &Todo, about: &About<'_>) -> Step {
        let harms = matches!(
            todo,
            Todo::Fence
                | Todo::GiveUp { .. }
                | Todo::ReleaseFinalizer { .. }
                | Todo::SeeStray {
                    stray: Stray::Pending { .. }
                }
                | Todo::TaintNode
        );
        // A node that is only supposed to be dead is alive.
        let is_supposed = !self.settings.task.suppose_dead().is_empty();
        let command = self.command(todo, about).filter(|_| !is_supposed);
        Step {
            when: todo.when(),
            what: self.sentence(todo, about),
            harms: harms && command.is_some(),
            command,
        }
    }

    /// Returns what to paste.
    fn command(&self, todo: &Todo, about: &About<'_>) -> Option<String> {
        let first = about.pods.first();
        let run = |words: &[&str]| Some(self.kubectl.command(words));
        match todo {
            Todo::Retain { volume, .. } => run(&[
                "patch",
                "pv",
                volume,
                "-p",
                r#"{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}"#,
            ]),
            Todo::LookInLeaf { cluster } => {
                let there = Target {
                    kubeconfig: Some(format!("{cluster}.kubeconfig").into()),
                    context: None,
                };
                let namespaces = about.pods.iter().map(|it| &it.pod.namespace);
                let namespace = namespaces.unique().exactly_one().ok()?;
                Some(there.command(&["get", "pods", "-n", namespace, "-o", "wide"]))
            }
            Todo::SeeLinkLog => run(&[
                "logs",
                "-n",
                "kosmos-system",
                "deployment/clustertree-cluster-manager",
                "--tail=50",
            ]),
            Todo::SeeStray {
                stray: Stray::Attachment { attachment, .. },
            } => run(&["describe", "volumeattachment", attachment]),
            Todo::SeeStray {
                stray:
                    Stray::Pending {
                        namespace,
                        pod,
                        pod_uid,
                        claim,
                        claim_uid,
                        ..
                    },
            } => {
                let is_named = is_name(namespace) && is_name(claim);
                is_named.then(|| {
                    self.kubectl
                        .delete_unused_claim((namespace, pod, pod_uid), claim, claim_uid)
                })
            }
            Todo::GiveUp { namespace, claim } => {
                let uid = &first?.claim(claim)?.bound()?.uid;
                let node = self.facts.known_node(&first?.pod)?;
                let is_named = is_name(namespace) && is_name(claim);
                is_named.then(|| self.kubectl.delete_claim(node, namespace, claim, uid))
            }
            // A taint that ends more than the report says is not printed.
            Todo::Fence | Todo::ReleaseFinalizer { .. } | Todo::TaintNode => {
                let name = about.nodes.iter().exactly_one().ok()?;
                let node = self.facts.known(name).filter(|node| self.may_taint(node))?;
                Some(self.kubectl.taint(node))
            }
            _ => None,
        }
    }

    /// Says when to power off nodes. Volumes that are attached to them are detached after the delete
    /// of their pods, and then attached elsewhere (`VolumeAttachment`).
    pub(super) fn power_off(&self, about: &About<'_>) -> String {
        let nodes = about.nodes();
        let is_here = |it: &&Judged| {
            it.pod
                .node
                .as_deref()
                .is_some_and(|name| about.nodes.contains(&name))
        };
        let reaped = self.plan.reaps().filter(is_here).collect_vec();
        let attached = reaped
            .iter()
            .copied()
            .filter(|it| self.detaches_late(it))
            .collect_vec();
        if reaped.is_empty() {
            format!(
                "If {nodes} is not booting, power it off before you give anything up; its disk keeps its data."
            )
        } else if attached.is_empty() {
            format!("Power {nodes} off unless it is booting: its old containers may still run.")
        } else if about.nodes.iter().any(|node| self.was_acted_on(node)) {
            format!(
                "POWER {nodes} OFF BEFORE {}. Then its volumes are attached elsewhere; if {nodes} is still on, two machines may write to them. Waiting for {nodes} is no longer safe.",
                self.detached_at()
            )
        } else {
            format!(
                "If {nodes} is not booting, POWER IT OFF before the next run; its disk keeps its data. If {nodes} is still on 6 minutes after the run, two machines may write to its attached volumes."
            )
        }
    }
}

pub(super) fn give_up(claim: &str, about: &About<'_>) -> String {
    let (pods, nodes) = (about.pods(), about.nodes());
    let its = about.pods.first().and_then(|judged| judged.claim(claim));
    let policy = its.and_then(|its| its.bound()?.volume.reclaim_policy.as_deref());
    let data = match policy {
        Some("Retain") => "its volume stays, by its reclaim policy Retain",
        _ => "its volume is destroyed",
    };
    format!(
        "Only if {nodes} is lost for good, give up the data of {pods}: delete its PVC ({data}; nobody checks for another copy). Ten minutes later a run deletes the pod, and the StatefulSet makes both again, empty."
    )
}
