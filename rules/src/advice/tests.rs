//! Tests of when the advice has a command, and of what it says before the command.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;

use super::*;
use crate::facts::NodeRead;
use crate::{
    facts::Attachment,
    samples::{Scene, check_each, now},
};

fn facts(node: Option<NodeRead>) -> ClusterFacts {
    let nodes = node.map(|node| ("ds06".to_owned(), node));
    ClusterFacts {
        now: now(),
        nodes: nodes.into_iter().collect(),
        node_count: 1,
        ..ClusterFacts::default()
    }
}

fn judged(scene: &Scene) -> Judged {
    Judged {
        pod: scene.pod.clone(),
        reason: scene.judged(),
        limit: None,
    }
}

/// Lists the advice about the pod of the scene: the risk, and each step with its command.
fn advised(words: &str) -> Vec<String> {
    let scene = Scene::of(words);
    let pod = judged(&scene);
    let facts = facts(scene.node);
    let Advice {
        first, risk, steps, ..
    } = adviser(&facts, &scene.policy).advise(&[&pod]);
    let first = first.map(|first| format!("First: {first}"));
    let risk = risk.map(|risk| format!("Risk: {risk}"));
    first.into_iter().chain(risk).chain(told(&steps)).collect()
}

/// Returns an adviser for a run that no limit holds.
fn adviser<'a>(facts: &'a ClusterFacts, policy: &'a Policy) -> Adviser<'a> {
    static KUBECTL: Target = Target {
        kubeconfig: None,
        context: None,
    };
    static PLAN: Plan = Plan {
        pods: Vec::new(),
        hold: None,
        zones: BTreeMap::new(),
        by_node: BTreeMap::new(),
    };
    Adviser {
        facts,
        policy,
        plan: &PLAN,
        kubectl: &KUBECTL,
        installed: None,
    }
}

fn told(steps: &[Step]) -> Vec<String> {
    let told = steps.iter().map(|step| match &step.command {
        Some(command) => format!("{} $ {command}", step.what),
        None => step.what.clone(),
    });
    told.collect()
}

#[test]
fn no_answer_is_asked_for_while_a_node_lives_or_may() {
    check_each(
        &expect![[r#"
            it is dead: local; renewed
                = First: If ds06 can come back, wait: the pod starts again with its data. Otherwise power ds06 off first, or two copies may run. A scheduled run acts on this only if the component answers is installed. If not, run pod-reaper -n shop (it also reaps its other stuck pods). Each claim is deleted with its pod; its StatefulSet creates both again, empty.
                = Give up claim data (10Gi, made 2025-11-21): the data of volume pv-1 is lost for good (policy Delete). $ kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
            it says that it is not Ready: local; renewed; ready False
                = Risk: Do not force-delete it: it most likely runs, and would run beside its replacement. Restart the container runtime or the kubelet: once the node is Ready, it ends the pod. Or power the machine off: once it was silent for 11 minutes, a run judges the pod again.
                = See the node's conditions, and its kubelet's last lease. $ kubectl describe node ds06
            it renews its lease: local; renewed; lease 0s
                = Risk: Do not force-delete it: it most likely runs, and would run beside its replacement. Restart the container runtime or the kubelet: once the node is Ready, it ends the pod. Or power the machine off: once it was silent for 11 minutes, a run judges the pod again.
                = See the node's conditions, and its kubelet's last lease. $ kubectl describe node ds06
            it is reported from: local; renewed; virt-handler 0s
                = Risk: Do not force-delete it: it most likely runs, and would run beside its replacement. Restart the container runtime or the kubelet: once the node is Ready, it ends the pod. Or power the machine off: once it was silent for 11 minutes, a run judges the pod again.
                = See the node's conditions, and its kubelet's last lease. $ kubectl describe node ds06
            it has an unread lease: local; renewed; lease unread
            nothing protects its pods: local; renewed; ready False; --kubelet-alive reap
                = No answer is asked for while the node is alive, or may be: repair it, or power it off.
        "#]],
        advised,
    );
    check_each(
        &expect![[r#"
            it is dead:
                = Volumes still attached to ds06: 1. Kubernetes detaches each one 6 minutes after its pod is gone (never, if kube-controller-manager runs with --disable-force-detach-on-timeout). To detach them now, set the out-of-service taint, but only if you have checked that the machine is powered off: Kubernetes 1.26 or newer then also evicts and force-deletes every pod on ds06 that does not tolerate the taint, including the pods that need you. Remove the taint only after the machine was powered off and on again, once the pods run elsewhere. Do not delete VolumeAttachments. $ kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && kubectl taint nodes ds06 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
            it says that it is not Ready: ready False
            it renews its lease: lease 0s
            it is reported from: virt-handler 0s
            it has an unread lease: lease unread
            it is out of service: out-of-service
                = ds06 has the out-of-service taint: Kubernetes 1.26 or newer deletes its Terminating pods and detaches its volumes immediately. Remove the taint only after the machine was powered off and on again, once the pods run elsewhere.
        "#]],
        |words| {
            let Scene { policy, node, .. } = Scene::of(words);
            let mut facts = facts(node);
            let left = Attachment {
                name: "csi-1".to_owned(),
                volume: None,
                driver: None,
            };
            facts.attachments.insert("ds06".to_owned(), vec![left]);
            let node = facts.nodes["ds06"].known().unwrap();
            told(&adviser(&facts, &policy).advise_node(node, false, true))
        },
    );
}

/// Each rule that holds gets its answer: first the power, last what destroys data.
#[test]
fn every_rule_that_holds_has_its_answer() {
    check_each(
        &expect![[r#"
            a local volume: local; renewed
                = First: If ds06 can come back, wait: the pod starts again with its data. Otherwise power ds06 off first, or two copies may run. A scheduled run acts on this only if the component answers is installed. If not, run pod-reaper -n shop (it also reaps its other stuck pods). Each claim is deleted with its pod; its StatefulSet creates both again, empty.
                = Give up claim data (10Gi, made 2025-11-21): the data of volume pv-1 is lost for good (policy Delete). $ kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
            and a shared disk: local; renewed; claim; called shared; shared
                = First: If ds06 can come back, wait: the pod starts again with its data. Otherwise power ds06 off first, or two copies may run. A scheduled run acts on this only if the component answers is installed. If not, run pod-reaper -n shop (it also reaps its other stuck pods). Each claim is deleted with its pod; its StatefulSet creates both again, empty.
                = Risk: If ds06 still runs, its machine and the replacement's would write to one disk at once, which destroys its data.
                = Power ds06 off, or cut off its disks, and check that at the machine itself, not by what the cluster says: what still runs there would write to the same disks. Then say so, and a run takes what waits for that. Where fencing is automatic, have it mark the node (annotation fencing/state=fenced, or what --fenced-node-selector selects) and unmark it when it is back. $ kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
                = Give up claim data (10Gi, made 2025-11-21): the data of volume pv-1 is lost for good (policy Delete). $ kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
            of a fenced node: local; renewed; claim; called shared; shared; fenced
                = First: If ds06 can come back, wait: the pod starts again with its data. Otherwise answer. A scheduled run acts on this only if the component answers is installed. If not, run pod-reaper -n shop (it also reaps its other stuck pods). Each claim is deleted with its pod; its StatefulSet creates both again, empty.
                = Give up claim data (10Gi, made 2025-11-21): the data of volume pv-1 is lost for good (policy Delete). $ kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
            a shared disk: claim; shared
                = Risk: If ds06 still runs, its machine and the replacement's would write to one disk at once, which destroys its data.
                = Power ds06 off, or cut off its disks, and check that at the machine itself, not by what the cluster says: what still runs there would write to the same disks. Then say so, and a run takes what waits for that. Where fencing is automatic, have it mark the node (annotation fencing/state=fenced, or what --fenced-node-selector selects) and unmark it when it is back. $ kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
            a virtual machine: owner VirtualMachineInstance kubevirt.io/v1
                = Risk: If ds06 still runs, its machine and the replacement's would write to one disk at once, which destroys its data.
                = Power ds06 off, or cut off its disks, and check that at the machine itself, not by what the cluster says: what still runs there would write to the same disks. Then say so, and a run takes what waits for that. Where fencing is automatic, have it mark the node (annotation fencing/state=fenced, or what --fenced-node-selector selects) and unmark it when it is back. $ kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
            a lost claim: lost
                = Risk: If a volume is on ds06, the replacement waits for that node for ever.
                = Volume pv-1 of claim data does not exist: bring it back, or a new pod cannot start. $ kubectl get pvc data -n shop -o wide
                = Power ds06 off, or cut off its disks, and check that at the machine itself, not by what the cluster says: what still runs there would write to the same disks. Then say so, and a run takes what waits for that. Where fencing is automatic, have it mark the node (annotation fencing/state=fenced, or what --fenced-node-selector selects) and unmark it when it is back. $ kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
                = Let the pod go; every claim is kept. A run then does it. $ kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
            a lost claim of a fenced node: lost; fenced
                = Risk: If a volume is on ds06, the replacement waits for that node for ever.
                = Volume pv-1 of claim data does not exist: bring it back, or a new pod cannot start. $ kubectl get pvc data -n shop -o wide
                = Let the pod go; every claim is kept. A run then does it. $ kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
            a claim that somebody deleted, and of which it is not known who else reaches it: claim; on disk In ssd; reached-by unread; wanted its set wants it; deleted
                = Risk: If a volume is on ds06, the replacement waits for that node for ever.
                = Somebody deleted claim data; it goes with its last pod, and takes the data of volume pv-1 along. To keep that, set the volume to Retain first: $ kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
                = See claim data, and where its volume is: it is unknown whether another node reaches its volume pv-1: it is forbidden; it is being deleted, so that it goes with its last pod, and its set wants it. $ kubectl get pvc data -n shop -o wide
                = No answer is asked for: a claim would go with the pod, or may. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
            an unread claim: unread
                = Risk: If a volume is on ds06, the replacement waits for that node for ever.
                = See claim data, and where its volume is: it is forbidden. $ kubectl get pvc data -n shop -o wide
                = No answer is asked for: a claim would go with the pod, or may. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
        "#]],
        advised,
    );
}

/// No answer is asked for that would be inert, or would destroy what nothing makes again. If that
/// could only not be read, the advice says so and asks all the same, since the run checks again.
#[test]
fn what_stands_against_an_answer_is_said_instead() {
    check_each(
        &expect![[r#"
            no StatefulSet: local; not-renewed no StatefulSet made it
                = No answer is asked for: no StatefulSet made it. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
            another user: local; renewal-unread it is forbidden; used-by pod other-0
                = No answer is asked for: claim data is also used by pod other-0. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
            held: local; renewed; held-or-skipped
                = No answer is asked for: claim data is opted out, or a finalizer would hold it. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
            a name that no API server gives: local; renewed; named $(reboot)
                = No answer is asked for: one of the names is not one that an API server gives. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
            made at an unknown time: local; renewed; claim-made unknown
                = No answer is asked for: it is not known when the claim was made. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
            asked for at an unknown time: local; renewed; grace unknown
                = No answer is asked for: it is not known when the pod's deletion was asked for. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
            owned by the pod: claim; wanted its StatefulSet wants the pod again
                = Risk: If a volume is on ds06, the replacement waits for that node for ever.
                = See claim data, and where its volume is: the pod owns it, so that it goes with the pod, and its StatefulSet wants the pod again. $ kubectl get pvc data -n shop -o wide
                = No answer is asked for: a claim would go with the pod, or may. The book has the steps (https://github.com/YOU/pod-reaper/blob/main/docs/by-hand.md#with-kubectl-alone).
            unread: local; renewal-unread it is forbidden
                = First: If ds06 can come back, wait: the pod starts again with its data. Otherwise power ds06 off first, or two copies may run. A scheduled run acts on this only if the component answers is installed. If not, run pod-reaper -n shop (it also reaps its other stuck pods). Each claim is deleted with its pod; its StatefulSet creates both again, empty.
                = Give up claim data (10Gi, made 2025-11-21): the data of volume pv-1 is lost for good (policy Delete). Whether it would come back is not known (it is forbidden): the run asks again. $ kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        "#]],
        advised,
    );
}

/// Numbered siblings with equal claim templates are one workload. Two unrelated workloads never
/// share a command that gives up data.
#[test]
fn only_siblings_share_an_answer() {
    let of = |(owner, templates): (&str, Option<&str>)| {
        let mut scene = Scene::of(&format!("local; called {owner}; renewed; named {owner}-0"));
        let owned = Some(crate::facts::Owner {
            kind: "StatefulSet".to_owned(),
            name: owner.to_owned(),
        });
        (scene.pod.owner, scene.pod.workload) = (owned.clone(), owned);
        scene.pod.templates = templates.map(str::to_owned);
        scene.pod.uid = format!("u-{owner}").into();
        judged(&scene)
    };
    let all = [
        ("impala-000", Some("data")),
        ("impala-001", Some("data")),
        ("impala-01", Some("data")),
        ("impala-002", Some("logs")),
        ("impala-003", None),
        ("impala-004", None),
        ("cache", Some("data")),
        ("db", Some("data")),
    ];
    let Scene { policy, node, .. } = Scene::of("");
    let groups = adviser(&facts(node), &policy).alike(&all.map(of));
    let expected: [&[usize]; 7] = [&[0, 1], &[2], &[3], &[4], &[5], &[6], &[7]];
    assert_eq!(groups, expected);
}

#[test]
fn a_node_without_attached_volumes_needs_no_taint() {
    for words in ["", "out-of-service"] {
        let Scene { policy, node, .. } = Scene::of(words);
        let facts = facts(node);
        let node = facts.nodes["ds06"].known().unwrap();
        let steps = adviser(&facts, &policy).advise_node(node, false, true);
        assert_eq!(steps, [], "{words}");
    }
}

/// Pods that finalizers hold share advice only if these are the same.
#[test]
fn each_finalizer_is_advised_on_apart() {
    let all = ["a.example/x", "a.example/x", "b.example/y"].map(|finalizer| {
        let scene = Scene::of(&format!("held-by {finalizer}"));
        judged(&scene)
    });
    let Scene { policy, node, .. } = Scene::of("");
    let groups = adviser(&facts(node), &policy).alike(&all);
    assert_eq!(groups, [&[0, 1][..], &[2]]);
}

/// No answer on a pod lets it take a claim along. That of its sibling is asked for all the same.
#[test]
fn a_pod_that_may_take_a_claim_is_advised_on_apart() {
    let Scene { policy, node, .. } = Scene::of("");
    let facts = facts(node);
    let alike = |words: [&str; 3]| {
        let all = words.map(|words| judged(&Scene::of(words)));
        adviser(&facts, &policy).alike(&all)
    };
    let apart = [&[0, 1][..], &[2]];
    assert_eq!(alike(["lost", "lost", "unread"]), apart);
    // Of a claim that is being deleted, the claim is asked.
    let deleted = "local; renewed; wanted a; deleted";
    let owned = "local; renewed; wanted a";
    assert_eq!(alike([deleted, deleted, owned]), apart);
}

/// Of an answer on the node, only what is said of the node is asked: it counts for a pod that was
/// evicted later too.
#[test]
fn the_power_is_asked_for_once_a_node() {
    for (answer, is_asked) in [("", true), ("; powered-off 2026-03-01T11:30:00Z", false)] {
        let scene = Scene::of(&format!("lost; overdue 15m{answer}"));
        let facts = facts(scene.node.clone());
        let advice = adviser(&facts, &scene.policy).advise(&[&judged(&scene)]);
        let mut steps = told(&advice.steps).into_iter();
        assert_eq!(steps.any(|step| step.contains(POWERED_OFF)), is_asked);
    }
}

#[test]
fn an_answer_is_withdrawn_where_it_was_given() {
    let prod = Target {
        kubeconfig: None,
        context: Some("prod".to_owned()),
    };
    let mut scene = Scene::of("local; reap never; powered-off never");
    let node = scene.node.take();
    let facts = facts(node);
    let case = Case::of(&facts, &scene.policy, &scene.pod);
    let answers = case.answers();
    let commands = answers.iter().map(|answer| prod.withdraw(answer, "shop"));
    expect![[r#"
        kubectl annotate node ds06 pod-reaper.io/powered-off- --context prod
        kubectl annotate pod db-0 -n shop pod-reaper.io/reap- --context prod"#]]
    .assert_eq(&commands.collect_vec().join("\n"));
}

/// The advice on finalizers needs no node.
#[test]
fn finalizers_are_explained_where_the_node_is_gone_too() {
    check_each(
        &expect![[r#"
            the node is gone: node gone; held-by example.org/backup
                = Risk: Find that controller, and have it finish. A finalizer that is stripped by hand leaves behind, unnoticed, what had to be cleaned up.
                = See what set the finalizers (under managedFields, the manager of each f:finalizers), and look at its log. $ kubectl get pod db-0 -n shop --show-managed-fields -o yaml
                = See what is left of them; a pod goes by itself with the last one, or at the next run. $ kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        "#]],
        advised,
    );
}
