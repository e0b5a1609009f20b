//! The record of a run, of which a report is made.

use std::collections::BTreeMap;

use crate::{
    advice::Installed,
    facts::{ClusterFacts, Uid},
    limits::Plan,
    outcome::{Outcome, Replacement},
    selector::Target,
    settings::Settings,
};

/// Everything about a run: its settings, its facts, its plan, and what it did.
#[derive(Debug)]
pub struct RunRecord<'a> {
    pub settings: &'a Settings,
    pub facts: ClusterFacts,
    pub plan: Plan,
    /// The outcomes of the pods to reap, by UID. There is none in a snapshot, an explanation or a
    /// forecast, nor before the run has acted.
    pub outcomes: BTreeMap<Uid, Outcome>,
    /// The replacements that were waited for, by the UID of the reaped pod.
    pub replacements: BTreeMap<Uid, Replacement>,
    /// The cluster that kubectl has to reach by the printed commands.
    pub kubectl: Target,
    /// The user was asked, and did not agree to the deletes.
    pub declined: bool,
    /// The installation that the run is of, if it is known.
    pub installed: Option<Installed>,
}

impl<'a> RunRecord<'a> {
    /// Makes the record of a run that has a plan, and has not acted yet.
    pub fn new(settings: &'a Settings, facts: ClusterFacts, plan: Plan) -> Self {
        Self {
            settings,
            facts,
            plan,
            outcomes: BTreeMap::new(),
            replacements: BTreeMap::new(),
            kubectl: settings.task.target(),
            declined: false,
            installed: None,
        }
    }
}
