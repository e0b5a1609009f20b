//! Tests of when a command is printed, and of what comes before it.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::*;
use crate::{
    facts::{
        AffinityTerm, Census, ClaimFacts, ClaimState, FencingMark, Heard, KubeletAlive, Owner,
        Requirement, SignBy, Storage, Unread, VolumeFacts,
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
        uid: format!("uid-{name}"),
        shared_disk,
        scratch: None,
        volume,
    };
    ClaimFacts {
        name: name.to_owned(),
        ephemeral: false,
        users: Vec::new(),
        renewed: Err(String::new()),
        owned: false,
        unwanted: Ok(()),
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
        claims: [local].into_iter().chain(more).collect(),
        ..samples::pod()
    }
}

/// What is advised about `pod` on `node`, with the reason that its claims give.
fn advised(pod: PodFacts, node: NodeFacts) -> (Option<String>, Vec<Step>) {
    let pinned = PinnedClaim {
        claim: "data-db-0".to_owned(),
        claim_uid: "uid-data-db-0".to_owned(),
        volume: "pv-data-db-0".to_owned(),
        reclaim_policy: None,
        bond: "local, at /mnt".to_owned(),
        scratch: Err(String::new()),
    };
    let reason = Reason::LocalVolume {
        claims: vec![pinned],
        kept: None,
    };
    let judged = Judged {
        pod,
        reason,
        limit: None,
    };
    let Advice { risk, steps } = advise(
        &[&judged],
        &facts(node),
        &policy(),
        None,
        &Kubectl::default(),
    );
    (risk, steps)
}

fn deletes(steps: &[Step]) -> usize {
    let words = steps
        .iter()
        .filter_map(|step| step.command.as_ref())
        .flat_map(|command| &command.0);
    words.filter(|word| *word == "failed=0").count()
}

#[test]
fn nothing_that_destroys_is_printed_for_a_node_that_lives_or_may() {
    let (_, steps) = advised(with_local_volume(None), samples::node());
    assert_eq!(deletes(&steps), 1, "{steps:?}");
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
        let steps = advise_node(&node, now(), &policy(), false, true, 1, &Kubectl::default());
        assert_eq!(steps, [], "{name}");
        let (risk, steps) = advised(with_local_volume(None), node);
        assert!(
            risk.is_none() && steps.iter().all(|step| step.command.is_none()),
            "{name}: {steps:?}"
        );
    }
    let dead = advise_node(
        &samples::node(),
        now(),
        &policy(),
        false,
        true,
        1,
        &Kubectl::default(),
    );
    assert!(dead[0].command.is_some(), "{dead:?}");
    let out_of_service = NodeFacts {
        out_of_service: true,
        ..samples::node()
    };
    let steps = advise_node(
        &out_of_service,
        now(),
        &policy(),
        false,
        true,
        1,
        &Kubectl::default(),
    );
    assert!(
        steps[0].command.is_none() && steps[0].what.contains("Remove it"),
        "{steps:?}"
    );
}

#[test]
fn where_two_machines_could_write_a_disk_the_power_comes_first() {
    let shared = || with_local_volume(Some(bound("shared", true, Storage::Driver)));
    let first = |pod: PodFacts, node: NodeFacts| advised(pod, node).1.remove(0).what;
    assert!(first(shared(), samples::node()).starts_with("Power ds06 off"));
    let machine = Owner {
        kind: "VirtualMachineInstance".to_owned(),
        name: "vm-1".to_owned(),
    };
    let launcher = PodFacts {
        owner: Some(machine),
        ..with_local_volume(None)
    };
    assert!(first(launcher, samples::node()).starts_with("Power ds06 off"));
    let mark = FencingMark {
        mark: "annotation fencing/state=fenced".to_owned(),
        set_by: None,
    };
    let fenced = NodeFacts {
        fenced: vec![mark],
        ..samples::node()
    };
    assert!(first(shared(), fenced).starts_with("Give up claim data-db-0"));
    assert!(first(with_local_volume(None), samples::node()).starts_with("Give up claim data-db-0"));
}

#[test]
fn only_a_statefulsets_own_claims_are_made_anew() {
    let whats = |pod: PodFacts| {
        let whats = advised(pod, samples::node())
            .1
            .into_iter()
            .map(|step| step.what)
            .collect::<Vec<_>>();
        whats.join(" | ")
    };
    let template = whats(with_local_volume(None));
    assert!(
        template.contains("creates both again") && !template.contains("Keep the manifest"),
        "{template}"
    );
    let deployed = Owner {
        kind: "ReplicaSet".to_owned(),
        name: "web".to_owned(),
    };
    let others = [
        PodFacts {
            owner: Some(deployed),
            ..with_local_volume(None)
        },
        PodFacts {
            name: "db-1".to_owned(),
            ..with_local_volume(None)
        },
    ];
    for pod in others {
        let whats = whats(pod);
        assert!(
            whats.starts_with("Keep the manifest") && whats.contains("recreate it, empty"),
            "{whats}"
        );
        assert!(!whats.contains("creates both again"), "{whats}");
    }
}

/// What is printed about a pod whose claims are not to be given up, or not by a script.
fn printed(pod: PodFacts) -> String {
    let (risk, steps) = advised(pod, samples::node());
    assert!(
        steps.iter().all(|step| !step.what.contains("Give up")),
        "{steps:?}"
    );
    let lines = steps.iter().map(|step| {
        format!(
            "{}\n{}\n",
            step.what,
            step.command
                .as_ref()
                .map_or(String::new(), Command::to_string)
        )
    });
    risk.into_iter().chain(lines).collect()
}

#[test]
fn a_claim_is_kept_where_nothing_would_use_another() {
    let daemons = Owner {
        kind: "DaemonSet".to_owned(),
        name: "agent".to_owned(),
    };
    let bare = PodFacts {
        controller: None,
        owner: None,
        ..with_local_volume(None)
    };
    assert!(printed(bare.clone()).contains("Nothing brings the pod back"));
    for pod in [
        bare,
        PodFacts {
            owner: Some(daemons),
            ..with_local_volume(None)
        },
    ] {
        let said = printed(pod);
        assert!(
            said.contains("reap_pod db-0 u-1 7\n") && said.contains("keep their data"),
            "{said}"
        );
    }
}

#[test]
fn no_claim_is_given_up_that_may_be_used_elsewhere_or_whose_pod_stays_down() {
    let affinity = |values: &[&str]| {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        let (key, operator) = ("kubernetes.io/hostname".to_owned(), "In".to_owned());
        let requirements = vec![Requirement {
            key,
            operator,
            values,
        }];
        vec![AffinityTerm {
            requirements,
            fields: false,
            satisfied_by: None,
        }]
    };
    let on_path = |affinity: Vec<AffinityTerm>| {
        let mut claim = bound("data-db-0", false, Storage::HostPath("/mnt".to_owned()));
        if let ClaimState::Bound { volume, .. } = &mut claim.state {
            volume.affinity = affinity;
        }
        PodFacts {
            claims: vec![claim],
            ..samples::pod()
        }
    };
    let used = |mut pod: PodFacts| {
        pod.claims[0].users = vec!["backup".to_owned()];
        pod
    };
    let state = ClaimState::WithoutVolume {
        missing: Some("pv-lost".to_owned()),
        phase: None,
    };
    let lost = ClaimFacts {
        name: "lost".to_owned(),
        state,
        ..bound("lost", false, Storage::Driver)
    };
    let held = PodFacts {
        finalizers: vec!["batch.kubernetes.io/job-tracking".to_owned()],
        ..samples::pod()
    };
    let cases = [
        ("that other nodes may have too", on_path(Vec::new())),
        (
            "that other nodes may have too",
            on_path(affinity(&["ds06", "ds07"])),
        ),
        ("is also used by backup", used(on_path(affinity(&["ds06"])))),
        (
            "claim lost could not be verified",
            with_local_volume(Some(lost)),
        ),
        ("the Job controller's finalizer holds the pod", held),
        (
            "not one that an API server gives",
            PodFacts {
                name: "$(reboot)".to_owned(),
                ..with_local_volume(None)
            },
        ),
    ];
    for (why, pod) in cases {
        let said = printed(pod);
        assert!(
            said.contains(why) && !said.contains("reap_pod"),
            "{why}: {said}"
        );
    }
    let (_, steps) = advised(on_path(affinity(&["ds06"])), samples::node());
    assert!(
        steps[0].what.starts_with("Give up claim data-db-0"),
        "{steps:?}"
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
