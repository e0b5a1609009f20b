//! Tests of when a command is printed, and of what comes before it.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::*;
use crate::{
    facts::{
        Census, ClaimFacts, ClaimState, Claims, Doubt, FencingMark, Heard, KubeletAlive, NodeRead,
        Owned, Owner, SignBy, Storage, Unread, VolumeFacts,
    },
    samples::{self, now},
};

fn facts(node: NodeFacts) -> ClusterFacts {
    ClusterFacts {
        now: now(),
        place: None,
        nodes: BTreeMap::from([(node.name.clone(), NodeRead::Known(node))]),
        census: Census::NotNeeded,
        traits: BTreeMap::new(),
        attachments: BTreeMap::new(),
        node_count: 1,
        unasked: BTreeMap::new(),
        unmatched_namespaces: None,
        on_ready_nodes: 0,
        errors: Vec::new(),
        unseen: Vec::new(),
    }
}

fn bound(name: &str, shared_disk: bool, storage: Storage) -> ClaimFacts {
    let (name_of_volume, affinity) = (format!("pv-{name}"), Vec::new());
    let volume = VolumeFacts {
        name: name_of_volume,
        reclaim_policy: None,
        storage,
        disk: None,
        affinity,
    };
    let state = ClaimState::Bound {
        uid: format!("uid-{name}").into(),
        shared_disk,
        scratch: false,
        give_up: None,
        created: Some(now() - SignedDuration::from_hours(24)),
        version: Some("c-7".into()),
        volume,
    };
    ClaimFacts {
        name: name.to_owned(),
        ephemeral: false,
        users: Vec::new(),
        renewed: Some(Ok(())),
        owned: Owned::No,
        state,
    }
}

fn policy() -> Policy {
    let minutes = SignedDuration::from_mins(10);
    Policy {
        reap_older_than: minutes,
        node_not_ready_for: minutes,
        kubelet_alive: KubeletAlive::HoldUnique,
        manual_owner_kinds: Vec::new(),
        reap_scratch: false,
    }
}

/// A pod with a local volume, and one more claim.
fn with_local_volume(more: Option<ClaimFacts>) -> PodFacts {
    let local = bound("data-db-0", false, Storage::Local("/mnt".to_owned()));
    PodFacts {
        claims: Claims::Known([local].into_iter().chain(more).collect()),
        ..samples::pod()
    }
}

/// What is advised about `node`, which a volume is still attached to and which is not expected back.
fn attached(node: &NodeFacts) -> Vec<Step> {
    let policy = policy();
    let failure = Failure::of(&facts(node.clone()), &policy, node);
    advise_node(&failure, false, true, 1, &Kubectl::default())
}

/// What is advised about `pod` on `node`, by the reason that its facts give.
fn advised(pod: PodFacts, node: NodeFacts) -> (Option<String>, Vec<Step>) {
    let facts = facts(node);
    let reason = Case::of(&facts, &policy(), &pod).decide();
    let judged = Judged {
        pod,
        reason,
        limit: None,
    };
    let Advice { risk, steps } = advise(&[&judged], &facts, &policy(), None, &Kubectl::default());
    (risk, steps)
}

/// The lines by which a person answers.
fn answers(steps: &[Step]) -> Vec<String> {
    let asks = steps.iter().filter(|step| step.asks());
    asks.filter_map(|step| step.command.as_ref())
        .map(Command::to_string)
        .collect()
}

const GIVES_UP: &str =
    "kubectl annotate pvc data-db-0 -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite";
const IS_OFF: &str =
    "kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite";
const MAY_GO: &str =
    "kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite";

#[test]
fn no_answer_is_asked_for_while_a_node_lives_or_may() {
    let (_, steps) = advised(with_local_volume(None), samples::node());
    assert_eq!(answers(&steps), [GIVES_UP]);
    let heard = |heard: Heard| NodeFacts {
        heard: vec![heard],
        ..samples::node()
    };
    let reported = Heard {
        by: SignBy::VirtHandler,
        ..samples::lease(now())
    };
    let nodes = [
        (
            "says that it is not Ready",
            NodeFacts {
                ready: Ready::False,
                ..samples::node()
            },
        ),
        ("renews its lease", heard(samples::lease(now()))),
        ("is reported from", heard(reported)),
        (
            "has an unread lease",
            NodeFacts {
                unheard: Some(Unread("no".to_owned())),
                ..samples::node()
            },
        ),
    ];
    for (name, node) in nodes {
        let steps = attached(&node);
        assert_eq!(steps, [], "{name}");
        let (_, steps) = advised(with_local_volume(None), node);
        assert_eq!(answers(&steps), [""; 0], "{name}: {steps:?}");
    }
    let dead = attached(&samples::node());
    assert!(dead[0].command.is_some(), "{dead:?}");
    let out_of_service = NodeFacts {
        out_of_service: true,
        ..samples::node()
    };
    let steps = attached(&out_of_service);
    assert!(
        steps[0].command.is_none() && steps[0].what.contains("Remove it"),
        "{steps:?}"
    );
}

/// Each rule that holds is answered: the power first, what is lost last.
#[test]
fn every_rule_that_holds_has_its_answer() {
    let with = |claim: ClaimFacts| PodFacts {
        claims: Claims::Known(vec![claim]),
        ..samples::pod()
    };
    let shared = || bound("shared", true, Storage::Driver);
    let mark = FencingMark {
        mark: "annotation fencing/state=fenced".to_owned(),
        set_by: None,
    };
    let fenced = || NodeFacts {
        fenced: vec![mark.clone()],
        ..samples::node()
    };
    let of = |state| ClaimFacts { state, ..shared() };
    let unread = of(ClaimState::Unread(Unread("no".to_owned())));
    let lost = of(ClaimState::WithoutVolume {
        missing: Some("pv".to_owned()),
        phase: None,
    });
    let machine = PodFacts {
        owner: Some(Owner {
            kind: "VirtualMachineInstance".to_owned(),
            name: "vm-1".to_owned(),
        }),
        ..samples::pod()
    };
    let cases = [
        (
            "a local volume",
            with_local_volume(None),
            samples::node(),
            vec![GIVES_UP],
        ),
        (
            "and a shared disk",
            with_local_volume(Some(shared())),
            samples::node(),
            vec![IS_OFF, GIVES_UP],
        ),
        (
            "of a fenced node",
            with_local_volume(Some(shared())),
            fenced(),
            vec![GIVES_UP],
        ),
        (
            "a shared disk",
            with(shared()),
            samples::node(),
            vec![IS_OFF],
        ),
        ("a virtual machine", machine, samples::node(), vec![IS_OFF]),
        (
            "a lost claim",
            with(lost.clone()),
            samples::node(),
            vec![IS_OFF, MAY_GO],
        ),
        ("of a fenced node", with(lost), fenced(), vec![MAY_GO]),
        ("an unread claim", with(unread), samples::node(), vec![]),
    ];
    for (name, pod, node, expected) in cases {
        assert_eq!(answers(&advised(pod, node).1), expected, "{name}");
    }
}

fn renewed(pod: &mut PodFacts, doubt: Doubt) {
    samples::claims(pod)[0].renewed = Some(Err(doubt));
}

/// What would be inert, or destroy what does not come back, is not asked for.
#[test]
fn what_stands_against_an_answer_is_said_instead() {
    let with = |change: fn(&mut PodFacts)| {
        let mut pod = with_local_volume(None);
        change(&mut pod);
        pod
    };
    let cases = [
        (
            "no StatefulSet made it",
            with(|pod| renewed(pod, Doubt::proved("no StatefulSet made it"))),
        ),
        (
            "also used by pod other-0",
            with(|pod| {
                renewed(pod, Doubt::unread("it is forbidden"));
                samples::claims(pod)[0].users = vec!["pod other-0".to_owned()];
            }),
        ),
        (
            "a finalizer would hold it",
            with(|pod| {
                if let ClaimState::Bound { version, .. } = &mut samples::claims(pod)[0].state {
                    *version = None;
                }
            }),
        ),
        (
            "not one that an API server gives",
            with(|pod| pod.name = "$(reboot)".to_owned()),
        ),
        (
            "not known when the claim was made",
            with(|pod| {
                if let ClaimState::Bound { created, .. } = &mut samples::claims(pod)[0].state {
                    *created = None;
                }
            }),
        ),
        (
            "not known when the pod's deletion was asked for",
            with(|pod| pod.grace_seconds = None),
        ),
        (
            "the pod owns a claim",
            PodFacts {
                claims: Claims::Known(vec![ClaimFacts {
                    owned: Owned::MayBeWanted("its StatefulSet wants the pod again".to_owned()),
                    ..bound("other", false, Storage::Driver)
                }]),
                ..samples::pod()
            },
        ),
    ];
    for (why, pod) in cases {
        let (_, steps) = advised(pod, samples::node());
        let said = steps
            .iter()
            .map(|step| step.what.as_str())
            .collect::<String>();
        assert!(said.contains(why), "{why}: {said}");
        assert!(
            !answers(&steps)
                .iter()
                .any(|it| it.contains("reap=") || it.contains("give-up=")),
            "{why}: {steps:?}"
        );
    }
    // What could only not be read is said, and asked for all the same: the run asks again.
    let unread = with(|pod| renewed(pod, Doubt::unread("it is forbidden")));
    let (_, steps) = advised(unread, samples::node());
    assert_eq!(answers(&steps), [GIVES_UP]);
    assert!(
        steps[0].what.contains("is not known (it is forbidden)"),
        "{steps:?}"
    );
}

/// Numbered siblings that make equal claims are one workload; two unrelated ones never share a command that gives up data.
#[test]
fn only_siblings_share_an_answer() {
    let of = |owner: &str, templates: Option<&str>| {
        let mut pod = with_local_volume(None);
        let named = Owner {
            kind: "StatefulSet".to_owned(),
            name: owner.to_owned(),
        };
        pod.name = format!("{owner}-0");
        (pod.owner, pod.workload) = (Some(named.clone()), Some(named));
        pod.templates = templates.map(str::to_owned);
        pod.uid = format!("u-{owner}").into();
        let node = NodeRead::Known(samples::node());
        let reason = Case::new(now(), &policy(), Some(&node), &pod).decide();
        Judged {
            pod,
            reason,
            limit: None,
        }
    };
    let all = [
        of("impala-000", Some("data")),
        of("impala-001", Some("data")),
        of("impala-01", Some("data")),
        of("impala-002", Some("logs")),
        of("impala-003", None),
        of("impala-004", None),
        of("cache", Some("data")),
        of("db", Some("data")),
    ];
    let groups = alike(&all, &facts(samples::node()), &policy());
    assert_eq!(
        groups,
        [
            vec![0, 1],
            vec![2],
            vec![3],
            vec![4],
            vec![5],
            vec![6],
            vec![7]
        ]
    );
}

/// No node is needed to see who holds a pod.
#[test]
fn finalizers_are_explained_where_the_node_is_gone_too() {
    let reason = Reason::Finalizers {
        finalizers: vec!["example.org/backup".to_owned()],
    };
    let judged = Judged {
        pod: samples::pod(),
        reason,
        limit: None,
    };
    let mut facts = facts(samples::node());
    facts.nodes.insert("ds06".to_owned(), NodeRead::Gone);
    let Advice { risk, steps } = advise(&[&judged], &facts, &policy(), None, &Kubectl::default());
    assert!(
        risk.is_some() && steps.iter().all(|step| step.command.is_some()),
        "{steps:?}"
    );
    assert_eq!(steps.len(), 2, "{steps:?}");
}
