//! The items that most scenarios use.

pub(crate) use crate::{
    case::{Case, FAILING, OPTIONS, REAPED, SIX, Seen, all_are},
    support::{
        ControlPlane,
        installed::{folder, kubectl, until},
        objects::{all_commands, annotate, each, lease_path, node_path, pod_path, steps_about},
        program::{Run, commands, paste, shown},
        samples::yaml,
    },
};
pub(crate) use itertools::Itertools as _;
pub(crate) use jiff::Timestamp;
pub(crate) use serde_json::{Value, json};
pub(crate) use std::{fs, path::Path, process::Command, thread, time::Duration};
