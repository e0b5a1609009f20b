//! The document: what a report says to people, before it becomes text or HTML.

use jiff::Timestamp;

use super::advice::{Harm, When};
use crate::{
    codes::{codes, entry},
    exit::Exit,
};

/// A report for people, in the order in which the writers show it. Text cuts long paragraphs.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// What is down.
    pub headline: String,
    /// The kind of run, the cluster or file, and the moment.
    pub about: String,
    /// The sections, the most urgent first. None is empty.
    pub sections: Vec<Section>,
    pub exit: Exit,
}

/// A heading with what stands under it.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// What the section is for.
    pub kind: Kind,
    /// The heading, such as `DATA` or `LEFTOVERS: 2`.
    pub heading: String,
    /// How much it matters.
    pub tone: Tone,
    /// What stands under the heading.
    pub lines: Vec<Line>,
}

/// A line of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A paragraph.
    Text(String),
    /// A command to paste.
    Command(String),
    /// A thing to do and its number. The steps of a document are numbered through.
    Step(usize, Step),
    /// Names that belong together, each group with what they have in common; no writer breaks a name.
    Names(Vec<(String, Vec<String>)>),
}

entry! {
    /// A thing to do.
    pub struct Step as "StepEntry" {
        /// The kind of step.
        #[cfg_attr(test, schemars(extend("enum" = <super::advice::What<'_> as strum::VariantNames>::VARIANTS)))]
        pub code: &'static str,
        /// How soon.
        pub when: When,
        /// By when, if a second machine can write after that: `judgedAt` means before the next run.
        pub before: Option<Timestamp>,
        /// What to do.
        pub what: String,
        /// What to paste, where there is something.
        pub command: Option<String>,
        /// The harm that the step itself does, to `data` or `pods`; null if it does none. Each case has its own.
        pub harms: Option<Harm>,
        /// The pods that it is about, as namespace and name; empty if it is about nodes, or the run.
        pub pods: Vec<String>,
        /// The nodes that it is about.
        pub nodes: Vec<String>,
        /// Whether somebody has to be woken: the run then ends with exit code 5, if `--exit-on-manual` is set. What hangs on a
        /// Ready node wakes nobody, nor a workload that has been down for two hours.
        pub rings: bool,
        /// What you may find, and what to do then.
        pub cases: Vec<Case>,
    }
}

entry! {
    /// What you may find when you look at a machine.
    pub struct Case as "CaseEntry" {
        /// The finding.
        pub found: Found,
        /// What to do then.
        pub what: String,
        /// The lines to paste, if there are some.
        pub commands: Vec<String>,
        /// The nodes that these lines are about, each its own; empty if they name none.
        pub nodes: Vec<String>,
        /// The harm that the commands do; null if they do none.
        pub harms: Option<Harm>,
    }
}

codes! {
    /// A finding at a machine, or the place of a thing to do among others.
    pub enum Found {
        /// The machine boots.
        Boots = "Boots",
        /// It answers, and its node is not Ready.
        Answers = "Answers",
        /// It shows a console, and does not answer.
        Frozen = "Frozen",
        /// It is off.
        Off = "Off",
        /// It is gone for good.
        Gone = "Gone",
        /// A run comes before anybody can look at it.
        NoTime = "No time",
        /// Nobody can look at it in time.
        CannotLook = "Cannot look",
        /// The machines that the step does not name.
        Others = "Others",
        /// The log that names the cause.
        Log = "Log",
        /// The next thing to do.
        Then = "Then",
        /// That did not help.
        StillThere = "Still there",
    }
}

codes! {
    /// The kinds of sections. Writers separate them.
    pub enum Kind {
        /// What is wrong, what was done, and what happens next.
        Head = "head",
        /// What to do, and what never to do.
        Steps = "steps",
        /// Lists of pods and nodes.
        List = "list",
        /// How the report came about.
        Foot = "foot",
    }
}

codes! {
    /// How much a section matters, which decides its color.
    pub enum Tone {
        /// It is normal text.
        Plain = "plain",
        /// It explains.
        Quiet = "quiet",
        /// It went well.
        Good = "good",
        /// It may hurt.
        Bad = "bad",
    }
}

impl Case {
    /// Returns what to do then, without anything to paste.
    pub fn new(found: Found, what: impl Into<String>) -> Self {
        Self {
            found,
            what: what.into(),
            commands: Vec::new(),
            nodes: Vec::new(),
            harms: None,
        }
    }

    /// Adds the nodes that its lines are about.
    pub fn on<'a>(self, nodes: impl IntoIterator<Item = &'a str>) -> Self {
        let nodes = nodes.into_iter().map(str::to_owned).collect();
        Self { nodes, ..self }
    }

    /// Adds what to paste then, and the harm that it does.
    pub fn with(self, commands: impl IntoIterator<Item = String>, harms: Option<Harm>) -> Self {
        Self {
            commands: commands.into_iter().collect(),
            harms,
            ..self
        }
    }
}

impl Section {
    /// Returns the section of what the source does not show, of which the last line is a command.
    pub fn not_seen(unseen: &[String]) -> Self {
        let texts = unseen.iter().take(1).cloned();
        let mut section = Self::of_texts(Kind::List, "NOT SEEN", Tone::Plain, texts);
        section
            .lines
            .extend(unseen.iter().skip(1).cloned().map(Line::Command));
        section
    }

    /// Returns a section of paragraphs.
    pub fn of_texts(
        kind: Kind,
        heading: impl Into<String>,
        tone: Tone,
        texts: impl IntoIterator<Item = String>,
    ) -> Self {
        Self {
            kind,
            heading: heading.into(),
            tone,
            lines: texts.into_iter().map(Line::Text).collect(),
        }
    }
}
