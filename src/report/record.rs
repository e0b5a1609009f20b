//! The record of a run, from which a report is built.

use std::{borrow::Cow, collections::BTreeMap};

use super::{Document, Report, advice, build, page, survey::Survey};
use crate::{
    facts::{ClusterFacts, PodFacts, Uid, Waiting},
    history::{History, Notebook},
    judge::Plan,
    outcome::Outcome,
    selector::Target,
    settings::Settings,
};

/// Everything about a run: its settings, its facts, its plan, and its outcomes.
#[derive(Debug)]
pub struct RunRecord<'a> {
    pub settings: &'a Settings,
    pub facts: ClusterFacts,
    pub plan: Plan,
    /// The outcomes of the pods to reap, by UID. Empty for a snapshot and an
    /// explanation, and before the run has acted.
    pub outcomes: BTreeMap<Uid, Outcome>,
    /// What earlier runs did.
    pub history: History,
    /// The notes for later runs, as they are in the cluster; `None` if nothing can be noted.
    pub notes: Option<Notebook>,
    /// The cluster that the printed kubectl commands have to reach.
    pub kubectl: Target,
    /// Whether the user was asked and did not agree to the deletes.
    pub declined: bool,
    /// The report for people, once it was made for the history and nothing changes any more.
    pub document: Option<Document>,
    /// The pod that the user asked about; `None` for a run.
    pub asked: Option<PodFacts>,
    /// What the pod that the user asked about waits for. If that is a pod, `asked` is that one.
    pub waiting: Option<Waiting>,
}

impl<'a> RunRecord<'a> {
    /// Makes the record of a run that has a plan and has not acted yet.
    pub fn new(settings: &'a Settings, facts: ClusterFacts, plan: Plan) -> Self {
        Self {
            settings,
            facts,
            plan,
            outcomes: BTreeMap::new(),
            history: History::default(),
            notes: None,
            kubectl: settings.task.target(),
            declined: false,
            document: None,
            asked: None,
            waiting: None,
        }
    }
}

impl RunRecord<'_> {
    /// Returns the report for people.
    pub fn document(&self) -> Cow<'_, Document> {
        match &self.document {
            Some(document) => Cow::Borrowed(document),
            None => Cow::Owned(page::document(&Survey::of(self))),
        }
    }

    /// Returns the report as JSON.
    pub fn report(&self) -> Report {
        build::report(&Survey::of(self))
    }

    /// Lists the nodes whose machines have to be looked at before something is harmed, each with what to do.
    pub(crate) fn to_look_at(&self) -> Vec<(String, String)> {
        advice::to_look_at(&Survey::of(self))
    }
}
