//! Tests of what the advice must not say, because it would endanger data or what still runs.

use super::*;
use crate::samples::{Scene, now};

static KUBECTL: Target = Target {
    kubeconfig: None,
    context: None,
};

/// A run with a pod for each scene, and the node of the last scene of each node.
struct Run {
    facts: ClusterFacts,
    policy: Policy,
    plan: Plan,
}

impl Run {
    /// Each pod has a name and the words of its scene. It is on `ds06`, or on the node after `@`, and of
    /// `StatefulSet` `db`, or of the controller whose UID stands before a `/`.
    fn of(scenes: &[(&str, &str)]) -> Self {
        let mut run = Self {
            facts: ClusterFacts {
                now: now(),
                node_count: 3,
                ..ClusterFacts::default()
            },
            policy: Scene::of("").policy,
            plan: Plan::default(),
        };
        for (place, (name, words)) in scenes.iter().enumerate() {
            let mut scene = Scene::of(words);
            let reason = scene.judged();
            let (name, node) = name.split_once('@').unwrap_or((name, "ds06"));
            let (set, name) = name.split_once('/').unwrap_or(("o-1", name));
            let pod = &mut scene.pod;
            (pod.name, pod.uid) = (name.to_owned(), format!("u-{place}").as_str().into());
            pod.node = Some(node.to_owned());
            if let Some(controller) = &mut pod.controller {
                controller.uid = set.into();
            }
            let read = scene.node.map(|read| (node.to_owned(), read));
            run.facts.nodes.extend(read);
            run.plan.pods.push(Judged {
                pod: scene.pod,
                reason,
                limit: None,
            });
        }
        run
    }

    fn adviser(&self) -> Adviser<'_> {
        Adviser {
            facts: &self.facts,
            policy: &self.policy,
            plan: &self.plan,
            kubectl: &KUBECTL,
            installed: None,
        }
    }

    /// Advises on each group of pods.
    fn advice(&self) -> Vec<Advice> {
        let adviser = self.adviser();
        let groups = adviser.alike(&self.plan.pods).into_iter();
        let groups = groups.map(|group| {
            group
                .iter()
                .map(|place| &self.plan.pods[*place])
                .collect_vec()
        });
        groups.map(|group| adviser.advise(&group)).collect()
    }

    fn node(&self, name: &str) -> &NodeFacts {
        self.facts.nodes[name].known().expect("it was read")
    }
}

/// The words of an advice, without its commands.
fn words(advice: &Advice) -> String {
    let steps = advice.steps.iter().map(|step| step.what.clone());
    let before = advice.first.iter().chain(&advice.risk).cloned();
    before.chain(steps).join(" ")
}

fn commands(advice: &Advice) -> Vec<&str> {
    let steps = advice.steps.iter();
    steps.filter_map(|step| step.command.as_deref()).collect()
}

fn taints(steps: &[Step]) -> usize {
    let commands = steps.iter().filter_map(|step| step.command.as_deref());
    commands
        .filter(|command| command.contains("kubectl taint nodes"))
        .count()
}

/// Kueue and Argo Workflows release their finalizers once the pod has finished, which nothing records
/// while its node is dead: to look for their controllers is no help.
#[test]
fn a_finalizer_that_waits_for_the_end_needs_the_taint_of_a_machine_that_is_off() {
    let kueue = "held-by kueue.x-k8s.io/managed";
    for (words_of, with_taint, looks) in [
        (kueue, 1, 1),
        ("held-by workflows.argoproj.io/status", 1, 1),
        ("held-by kueue.x-k8s.io/managed; grace 0", 1, 1),
        (
            "held-by batch.kubernetes.io/job-tracking kueue.x-k8s.io/managed",
            1,
            1,
        ),
        ("held-by kueue.x-k8s.io/managed; fenced", 1, 1),
        // Another finalizer has its own controller.
        ("held-by kueue.x-k8s.io/managed example.com/own", 1, 2),
        ("held-by kueue.x-k8s.io/managed; out-of-service", 0, 1),
        (
            "held-by kueue.x-k8s.io/managed; ready False; --kubelet-alive reap",
            0,
            1,
        ),
        // It has finished: its controller has work to do.
        ("held-by kueue.x-k8s.io/managed; finished", 0, 2),
        ("held-by kueue.x-k8s.io/managed; node gone", 0, 2),
        ("held-by example.com/own", 0, 2),
    ] {
        let run = Run::of(&[("db-0", words_of)]);
        let [advice] = &run.advice()[..] else {
            panic!("one group");
        };
        assert_eq!(taints(&advice.steps), with_taint, "{words_of}: {advice:?}");
        assert_eq!(
            advice.steps.len(),
            with_taint + looks,
            "{words_of}: {advice:?}"
        );
        let finds = words(advice).contains("have it finish");
        assert_eq!(finds, looks == 2, "{words_of}: {advice:?}");
    }
    // The breaker holds the node.
    let mut run = Run::of(&[("db-0", kueue)]);
    let limit = Limit::MassOutage("many".to_owned());
    run.plan.by_node.insert("ds06".to_owned(), limit);
    assert_eq!(taints(&run.advice()[0].steps), 0);
}

#[test]
fn a_fenced_node_is_not_to_be_powered_off_again() {
    for pod in [
        "local; renewed",
        "owner Job; --manual-owner-kind Job",
        "lost",
        "held-by kueue.x-k8s.io/managed",
    ] {
        for (node, asks) in [("", true), ("; fenced", false)] {
            let mut run = Run::of(&[("db-0", &format!("{pod}{node}"))]);
            run.policy.manual_owner_kinds = vec!["Job".to_owned()];
            let said = words(&run.advice()[0]).to_lowercase();
            let powers_off =
                said.contains("power ds06 off") || said.contains("ds06 is powered off");
            assert_eq!(powers_off, asks, "{pod}{node}: {said}");
        }
    }
}

/// A quorum is lost with two pods.
#[test]
fn the_pods_of_one_stateful_set_are_answered_for_one_at_a_time() {
    let one_at_a_time = "nswer for one pod at a time, and wait until it is Ready";
    let many = ["db-0", "db-1", "db-2", "db-3"].map(|name| (name, "local; renewed"));
    let local = "local; renewed";
    let kept = "owner StatefulSet apps/v1; --manual-owner-kind StatefulSet";
    let confined = "claim; on disk In ssd";
    for (case, scenes, commands_of_each) in [
        ("one pod", vec![("db-0", local)], vec![1]),
        (
            "on one node",
            vec![("db-0", local), ("db-1", local)],
            vec![2],
        ),
        (
            "on two nodes",
            vec![("db-0", local), ("db-1@ds07", local)],
            vec![1, 1],
        ),
        ("of a kind", vec![("db-0", kept), ("db-1", kept)], vec![2]),
        (
            "confined",
            vec![("db-0", confined), ("db-1", confined)],
            vec![2],
        ),
        (
            "another set",
            vec![("db-0", local), ("o-2/db-1", local)],
            vec![1],
        ),
        (
            "another is let go",
            vec![("db-0", local), ("db-1", "")],
            vec![1],
        ),
        ("three on one node", many[..3].to_vec(), vec![3]),
        // They have one command, so that a screen has room.
        ("four on one node", many.to_vec(), vec![1]),
    ] {
        let mut run = Run::of(&scenes);
        run.policy.manual_owner_kinds = vec!["StatefulSet".to_owned()];
        let are_several = commands_of_each.iter().sum::<usize>() > 1 || scenes.len() > 3;
        let advice = run.advice();
        let asks = advice.iter().map(|advice| {
            let commands = commands(advice).into_iter();
            commands
                .filter(|command| command.contains(" annotate "))
                .count()
        });
        assert_eq!(asks.collect_vec(), commands_of_each, "{case}: {advice:?}");
        for advice in advice.iter().filter(|advice| advice.wants_answer()) {
            let says = words(advice).contains(one_at_a_time);
            assert_eq!(says, are_several, "{case}: {advice:?}");
        }
    }
}

/// Only that no other pod is Ready was checked.
#[test]
fn the_last_copy_is_only_perhaps_the_last() {
    let mut run = Run::of(&[("db-0", "local; renewed")]);
    let owner = run.plan.pods[0].pod.series().expect("an owner");
    run.facts.copies.insert(("shop".to_owned(), owner), Ok(0));
    let said = words(&run.advice()[0]);
    assert!(said.contains("so this may be the last copy."), "{said}");
}

/// Of a ReplicaSet a replacement runs since the eviction: nothing starts at the delete.
#[test]
fn only_a_stateful_set_starts_a_second_copy() {
    for (owner, starts) in [
        (
            "owner StatefulSet apps/v1",
            "A StatefulSet would start a second copy.",
        ),
        (
            "owner ReplicaSet apps/v1",
            "A ReplicaSet has most likely started a replacement already",
        ),
        (
            "owner Job batch/v1",
            "A Job has most likely started a replacement already",
        ),
        (
            "owner Kafka kafka.strimzi.io/v1",
            "A Kafka may start a second copy.",
        ),
        (
            "owner none",
            "Nothing would start a pod without a controller again.",
        ),
    ] {
        for leaf in ["Kosmos", "Liqo", "KubeEdge", "by-selector"] {
            let run = Run::of(&[("db-0", &format!("{owner}; leaf {leaf}"))]);
            let said = words(&run.advice()[0]);
            assert!(said.contains(starts), "{owner}, {leaf}: {said}");
            let others = ["second copy", "replacement already", "without a controller"];
            let others = others.iter().filter(|other| !starts.contains(*other));
            for other in others {
                assert!(!said.contains(other), "{owner}, {leaf}: {said}");
            }
        }
    }
}

/// Its driver fences a machine only if the taint is there when its volumes are detached.
#[test]
fn the_taint_comes_before_the_reap_of_what_ceph_holds() {
    let before = "set the taint before the pods are reaped";
    for (driver, is_ceph) in [
        (Some("rbd.csi.ceph.com"), true),
        (Some("rook-ceph.rbd.csi.ceph.com"), true),
        (Some("openshift-storage.cephfs.csi.ceph.com"), true),
        (Some("ebs.csi.aws.com"), false),
        (Some("rbd.csi.ceph.com.example"), false),
        (None, false),
    ] {
        let mut run = Run::of(&[("db-0", "")]);
        let attached = |driver: Option<&str>| Attachment {
            name: "csi-1".to_owned(),
            volume: None,
            driver: driver.map(str::to_owned),
        };
        let attached = vec![attached(Some("other.example")), attached(driver)];
        run.facts.attachments.insert("ds06".to_owned(), attached);
        let steps = run.adviser().advise_node(run.node("ds06"), false, true);
        assert_eq!(taints(&steps), 1, "{driver:?}");
        assert_eq!(
            steps[0].what.contains(before),
            is_ceph,
            "{driver:?}: {steps:?}"
        );
    }
}

/// A machine that was only cut off may still write to what was detached from it.
#[test]
fn the_taint_is_removed_after_a_power_cycle() {
    for words in ["", "out-of-service"] {
        let mut run = Run::of(&[("db-0", words)]);
        let attached = Attachment {
            name: "csi-1".to_owned(),
            volume: None,
            driver: None,
        };
        run.facts
            .attachments
            .insert("ds06".to_owned(), vec![attached]);
        let steps = run.adviser().advise_node(run.node("ds06"), false, true);
        assert!(steps[0].what.contains(AFTER_A_POWER_CYCLE), "{steps:?}");
    }
}
