//! Things to do, as data. Each reason yields a few of them; equal ones of several pods become one step.

mod choose;

use std::{collections::BTreeMap, fmt::Display};

use itertools::Itertools as _;

use super::{NAMED, record::RunRecord};
use crate::{
    codes::{codes, entry},
    facts::PodFacts,
    judge::{Judged, Verdict},
    words::{listed, natural, prefixed},
};

/// How urgent a thing to do is, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// The report lacks something: repeat the run.
    RunAgain,
    /// A machine destroys data as it comes back.
    KeepData,
    /// Nobody knows which machines live.
    Reach,
    /// A machine lives: repair what fails there.
    Repair,
    /// It cannot be repaired.
    Otherwise,
    /// Other machines may use the volumes of a machine that nobody has seen off.
    SeeOff,
    /// A machine with data may be booting.
    Look,
    /// A machine may still run.
    PowerOff,
    /// Pods may run elsewhere, or twice.
    RunsElsewhere,
    /// Nothing else but a machine or its disk helps.
    BringBack,
    /// Something was not read or not deleted.
    Failure,
    /// A machine is lost with its data. From here on, everything can wait until morning.
    GiveUp,
    /// It blocks pods or volumes.
    Rest,
    /// Somebody asks about one pod.
    IfAsked,
}

/// A sentence with gaps. Its [`About`] fills `<pods>`, `<nodes>` and `<count>`; `fills` fill the other gaps,
/// in order. A fill may be a text of others, and is not searched for gaps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sentence {
    text: &'static str,
    fills: Vec<String>,
}

/// Returns a sentence with what fills its own gaps.
pub fn fill(text: &'static str, fills: &[&dyn Display]) -> Sentence {
    let fills = fills.iter().map(ToString::to_string).collect();
    Sentence { text, fills }
}

impl From<&'static str> for Sentence {
    fn from(text: &'static str) -> Self {
        fill(text, &[])
    }
}

/// A thing to do about one pod, or about the run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Todo {
    pub urgency: Urgency,
    sentence: Sentence,
    /// The command to paste.
    command: Option<String>,
    /// The harm that the command does; `None` if it does none.
    harms: Option<Harm>,
}

codes! {
    /// The harm that a command does.
    pub enum Harm {
        /// It discards data.
        Data = "data" => "This discards data:",
        /// It ends pods.
        Pods = "pods" => "This deletes pods:",
    }
}

codes! {
    /// How soon something is to be done.
    pub enum When {
        /// At night.
        Now = "now",
        /// In the morning.
        Later = "later",
    }
}

entry! {
    /// A thing to do.
    pub struct Step as "StepEntry" {
        /// How soon.
        pub when: When,
        /// What to do.
        pub what: String,
        /// What to paste, where there is something.
        pub command: Option<String>,
        /// The harm that the command does, to `data` or `pods`; null if it does none.
        pub harms: Option<Harm>,
    }
}

/// Pods and their nodes.
#[derive(Debug, Clone, Default)]
pub struct About<'a> {
    /// The pods, the worst damage first.
    pub pods: Vec<&'a Judged>,
    /// The names of the nodes, in natural order.
    pub nodes: Vec<&'a str>,
}

/// Things to do, each with what it is about, the most urgent first.
pub type Todos<'a> = Vec<(Todo, About<'a>)>;

impl Todo {
    fn new(urgency: Urgency, sentence: impl Into<Sentence>) -> Self {
        Self {
            urgency,
            sentence: sentence.into(),
            command: None,
            harms: None,
        }
    }

    /// Adds a command that harms nothing.
    fn with(self, command: impl Into<Option<String>>) -> Self {
        Self {
            command: command.into(),
            ..self
        }
    }

    /// Adds a command that harms something.
    fn harming(self, harm: Harm, command: impl Into<Option<String>>) -> Self {
        Self {
            harms: Some(harm),
            ..self.with(command)
        }
    }
}

/// Joins what is to be done about several pods with the same sentence. Different commands are left out.
fn join<'a>(todos: impl Iterator<Item = (Todo, &'a Judged)>) -> Todos<'a> {
    let mut joined = BTreeMap::<_, (Todo, Vec<&Judged>)>::new();
    for (todo, judged) in todos {
        let key = (todo.urgency, todo.sentence.clone());
        let (first, pods) = joined
            .entry(key)
            .or_insert_with(|| (todo.clone(), Vec::new()));
        if first.command != todo.command {
            first.command = None;
        }
        pods.push(judged);
    }
    let joined = joined.into_values();
    joined.map(|(todo, pods)| (todo, About::of(pods))).collect()
}

impl RunRecord<'_> {
    /// Writes a thing to do as a step.
    pub fn step(&self, todo: &Todo, about: &About<'_>) -> Step {
        // A node that is only supposed to be dead is alive.
        let is_supposed = !self.settings.task.suppose_dead().is_empty();
        let command = todo.command.clone().filter(|_| !is_supposed);
        Step {
            when: if todo.urgency < Urgency::GiveUp {
                When::Now
            } else {
                When::Later
            },
            what: about.complete(&todo.sentence),
            harms: todo.harms.filter(|_| command.is_some()),
            command,
        }
    }
}

impl<'a> About<'a> {
    /// Returns pods with their nodes.
    pub fn of(pods: Vec<&'a Judged>) -> Self {
        let nodes = pods.iter().filter_map(|it| it.pod.node.as_deref()).unique();
        Self {
            nodes: nodes.sorted_by_cached_key(|name| natural(name)).collect(),
            pods,
        }
    }

    /// Names a few pods, and counts many. The lists name them, those that need you with their codes.
    pub fn pod_names(&self) -> String {
        if self.pods.len() <= NAMED {
            return self.pods.iter().map(|it| full_name(&it.pod)).join(", ");
        }
        let mut alike = self.pods.iter().map(|it| (it.verdict(), it.code()));
        match alike.all_equal_value() {
            Ok((Verdict::Manual, code)) => format!("{} pods [{code}]", self.pods.len()),
            _ => format!("{} pods", self.pods.len()),
        }
    }

    pub fn node_names(&self) -> String {
        listed(&self.nodes, NAMED)
    }

    fn complete(&self, sentence: &Sentence) -> String {
        let mut fills = sentence.fills.iter();
        let mut parts = sentence.text.split('<');
        let mut said = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (gap, rest) = part.split_once('>').unwrap_or(("", part));
            said += &match gap {
                "pods" => self.pod_names(),
                "nodes" => self.node_names(),
                "count" => self.pods.len().to_string(),
                _ => prefixed("", fills.next()),
            };
            said += rest;
        }
        said
    }

    /// Completes the sentence, if there are any pods.
    pub fn say(&self, sentence: impl Into<Sentence>) -> Option<String> {
        (!self.pods.is_empty()).then(|| self.complete(&sentence.into()))
    }
}

/// Returns the pod's namespace and name.
pub fn full_name(pod: &PodFacts) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}
