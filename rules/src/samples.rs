//! Facts for the tests of the rules and the limits: a pod that is to be reaped, and its node. Each test changes the
//! facts that it tests.

use jiff::{SignedDuration, Timestamp};

use crate::facts::{
    ClaimFacts, Claims, Heard, Identity, NodeFacts, Owner, PodFacts, Ready, SignBy,
};

pub fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().expect("a moment")
}

fn an_hour_ago() -> Timestamp {
    now() - SignedDuration::from_hours(1)
}

/// ds06, an hour after it died.
pub fn node() -> NodeFacts {
    NodeFacts {
        name: "ds06".to_owned(),
        uid: "n-1".into(),
        created: Some(now() - SignedDuration::from_hours(24 * 30)),
        ready: Ready::Unknown,
        ready_reason: Some("NodeStatusUnknown".to_owned()),
        ready_since: Some(an_hour_ago()),
        tainted_since: Some(an_hour_ago()),
        hostname: Some("ds06.example".to_owned()),
        heard: vec![lease(an_hour_ago() - SignedDuration::from_secs(50))],
        unheard: None,
        no_api_server: false,
        fenced: Vec::new(),
        powered_off: None,
        out_of_service: false,
        leaf: None,
        control_plane: false,
        reserved: false,
        cordoned: false,
        opted_out: None,
    }
}

/// A lease that was renewed at `at`.
pub fn lease(at: Timestamp) -> Heard {
    Heard {
        by: SignBy::Lease,
        at,
        period: SignedDuration::from_secs(40),
    }
}

/// A pod of ds06 that only the last rule applies to.
pub fn pod() -> PodFacts {
    let owner = Some(Owner {
        kind: "StatefulSet".to_owned(),
        name: "db".to_owned(),
    });
    PodFacts {
        namespace: "shop".to_owned(),
        name: "db-0".to_owned(),
        uid: "u-1".into(),
        resource_version: "7".into(),
        created: Some(now() - SignedDuration::from_hours(24)),
        node: Some("ds06".to_owned()),
        workload: owner.clone(),
        owner,
        controller: Some(Identity {
            api_version: "apps/v1".to_owned(),
            uid: "o-1".into(),
        }),
        siblings: None,
        deletion_deadline: an_hour_ago(),
        grace_seconds: Some(30),
        finalizers: Vec::new(),
        finished: false,
        mirror: false,
        opted_out: None,
        namespace_opted_out: Ok(None),
        after_reap: None,
        reap: None,
        templates: None,
        claims: Claims::Known(Vec::new()),
        own_volume: None,
        own_disk: None,
        indexed: false,
    }
}

/// What is known about its claims, to change it.
pub fn claims(pod: &mut PodFacts) -> &mut [ClaimFacts] {
    match &mut pod.claims {
        Claims::Known(claims) => claims,
        Claims::Named(_) => &mut [],
    }
}
