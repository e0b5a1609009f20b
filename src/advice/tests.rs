//! Tests of when a command is printed, and of what comes before it.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::*;
use crate::{
    facts::{Census, ClaimFacts, ClaimState, Lease, Owner, Sign, SignBy, Storage, Unread, VolumeFacts},
    samples::{self, now},
};

fn facts(node: NodeFacts) -> ClusterFacts {
    ClusterFacts {
        now: now(),
        nodes: BTreeMap::from([(node.name.clone(), NodeRead::Known(node))]),
        census: Census::NotNeeded,
        attachments: BTreeMap::new(),
        node_count: 1,
        unasked: BTreeMap::new(),
        unmatched_namespaces: None,
        errors: Vec::new(),
        unseen: Vec::new(),
    }
}

fn bound(name: &str, shared_disk: bool, storage: Storage) -> ClaimFacts {
    let volume =
        VolumeFacts { name: format!("pv-{name}"), reclaim_policy: None, storage, affinity: Vec::new() };
    let state = ClaimState::Bound { uid: format!("uid-{name}"), shared_disk, volume };
    ClaimFacts { name: name.to_owned(), ephemeral: false, users: Vec::new(), state }
}

/// A pod with a local volume, and one more claim.
fn with_local_volume(more: Option<ClaimFacts>) -> PodFacts {
    let local = bound("data-db-0", false, Storage::Local("/mnt".to_owned()));
    PodFacts { claims: [local].into_iter().chain(more).collect(), ..samples::pod() }
}

/// What is advised about `pod` on `node`, with the reason that its claims give.
fn advised(pod: PodFacts, node: NodeFacts) -> (Option<String>, Vec<Step>) {
    let pinned = PinnedClaim {
        claim: "data-db-0".to_owned(),
        claim_uid: "uid-data-db-0".to_owned(),
        volume: "pv-data-db-0".to_owned(),
        reclaim_policy: None,
        bond: "local, at /mnt".to_owned(),
        users: Vec::new(),
    };
    let judged = Judged { pod, reason: Reason::LocalVolume { claims: vec![pinned] }, limit: None };
    let Advice { risk, steps } = advise(&[&judged], &facts(node), None, &Kubectl::default());
    (risk, steps)
}

fn deletes(steps: &[Step]) -> usize {
    let words = steps.iter().filter_map(|step| step.command.as_ref()).flat_map(|command| &command.0);
    words.filter(|word| *word == "failed=0").count()
}

#[test]
fn nothing_that_destroys_is_printed_for_a_node_that_lives_or_may() {
    let (_, steps) = advised(with_local_volume(None), samples::node());
    assert_eq!(deletes(&steps), 1, "{steps:?}");
    let renewed = Lease { renewed: Some(now()), duration: SignedDuration::from_secs(40) };
    let reported = Sign { by: SignBy::VirtHandler, at: now() };
    let nodes = [
        ("renews its lease", NodeFacts { ready: Ready::False, lease: Ok(Some(renewed)), ..samples::node() }),
        ("is reported from", NodeFacts { heartbeats: vec![reported], ..samples::node() }),
        ("has an unread lease", NodeFacts { lease: Err(Unread("no".to_owned())), ..samples::node() }),
    ];
    for (name, node) in nodes {
        let steps = advise_node(&node, now(), false, true, 1, &Kubectl::default());
        assert_eq!(steps, [], "{name}");
        let (risk, steps) = advised(with_local_volume(None), node);
        assert!(risk.is_none() && steps.iter().all(|step| step.command.is_none()), "{name}: {steps:?}");
    }
    let dead = advise_node(&samples::node(), now(), false, true, 1, &Kubectl::default());
    assert!(dead[0].command.is_some(), "{dead:?}");
    let out_of_service = NodeFacts { out_of_service: true, ..samples::node() };
    let steps = advise_node(&out_of_service, now(), false, true, 1, &Kubectl::default());
    assert!(steps[0].command.is_none() && steps[0].what.contains("Take it away"), "{steps:?}");
}

#[test]
fn where_two_machines_could_write_a_disk_the_power_comes_first() {
    let shared = || with_local_volume(Some(bound("shared", true, Storage::Driver)));
    let first = |pod: PodFacts, node: NodeFacts| advised(pod, node).1.remove(0).what;
    assert!(first(shared(), samples::node()).starts_with("Power ds06 off"));
    let machine = Owner { kind: "VirtualMachineInstance".to_owned(), name: "vm-1".to_owned() };
    let launcher = PodFacts { owner: Some(machine), ..with_local_volume(None) };
    assert!(first(launcher, samples::node()).starts_with("Power ds06 off"));
    let fenced = NodeFacts { fenced: Some("annotation fencing/state=fenced".to_owned()), ..samples::node() };
    assert!(first(shared(), fenced).starts_with("Give up claim data-db-0"));
    assert!(first(with_local_volume(None), samples::node()).starts_with("Give up claim data-db-0"));
}

#[test]
fn only_a_statefulsets_own_claims_are_made_anew() {
    let whats = |pod: PodFacts| {
        let whats = advised(pod, samples::node()).1.into_iter().map(|step| step.what).collect::<Vec<_>>();
        whats.join(" | ")
    };
    let template = whats(with_local_volume(None));
    assert!(template.contains("makes both anew") && !template.contains("Keep the manifest"), "{template}");
    let deployed = Owner { kind: "ReplicaSet".to_owned(), name: "web".to_owned() };
    let others = [
        PodFacts { owner: Some(deployed), ..with_local_volume(None) },
        PodFacts { name: "db-1".to_owned(), ..with_local_volume(None) },
    ];
    for pod in others {
        let whats = whats(pod);
        assert!(whats.starts_with("Keep the manifest") && whats.contains("make it anew, empty"), "{whats}");
        assert!(!whats.contains("makes both anew"), "{whats}");
    }
}
