//! The items that most of the engines use.

pub(crate) use crate::{
    LEAST, for_every_seed, options,
    oracle::{Outage, counted_node, due, first_reason, objections},
    world::{World, claim::volumes_mut, pod::Pod, start},
};
pub(crate) use itertools::Itertools as _;
pub(crate) use jiff::{SignedDuration, Timestamp};
pub(crate) use pod_reaper::{
    cli::Cli,
    decide::{Policy, ReasonCode},
    exit::CouldNotRun,
    facts::{
        AffinityTerm, Attachment, ClaimFacts, ClaimState, ClusterFacts, JOB_TRACKING, NodeCounts,
        NodeFacts, NodeRead, PodFacts, Ready, Requirement, Storage, Uid, Unread, VolumeFacts,
    },
    limits::{Judged, Plan},
    outcome::OutcomeCode,
    report::{Report, text::Screen},
    settings::{Settings, Task},
    source::{
        Gathered,
        snapshot::{Options, Saved},
    },
    stop::Stop,
};
pub(crate) use pod_reaper_test_support::simulated::{
    Dice, Fault, Kind, Objects, Refusal, Request, Resource, Server, Trouble,
};
pub(crate) use serde_json::Value;
pub(crate) use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
pub(crate) use tokio::time::Instant;
