//! Questions that the rules and limits answer without a run: `explain` and `what-if`.
//! They only read.

/// Evaluates `$ask` with `$source` as the source that the settings name: a snapshot or a
/// live cluster.
macro_rules! by_source {
    ($settings:ident, $stop:ident, |$source:ident| $ask:expr) => {{
        use crate::source::snapshot;
        let asked = async {
            match &$settings.task {
                crate::settings::Task::Audit { snapshot, now } => {
                    let options = snapshot::Options {
                        now: *now,
                        every_pod: true,
                    };
                    let $source = &snapshot::open(snapshot, options).await?;
                    $ask.await
                }
                crate::settings::Task::Reap { target, .. } => {
                    let cluster = crate::cluster::Cluster::connect(target, $stop).await?;
                    let $source = &cluster;
                    $ask.await
                }
            }
        };
        $stop.or_stopped(Box::pin(asked)).await
    }};
}

pub mod explain;
pub mod what_if;

use itertools::Itertools as _;
use jiff::Timestamp;

use crate::{
    advice::Advice,
    decide::{ReasonCode, Verdict},
    exit::Exit,
    facts::{ClusterFacts, ReadError},
    limits::Judged,
    report::{
        RunRecord, VERSION, in_json,
        page::{self, Block, Section, Tone},
    },
    settings::Settings,
    words::after,
};

in_json! {
    /// What a run decides about a pod, and what to do about that.
    #[derive(Default)]
    pub struct Judgement {
        /// The verdict of a run; null if no run judges it.
        pub verdict: Option<Verdict>,
        /// The reason's code.
        pub reason: Option<ReasonCode>,
        /// Why, as a sentence.
        pub detail: String,
        /// What to remember once the pod is reaped.
        pub note: Option<String>,
        /// What a person should do.
        #[serde(flatten)]
        pub advice: Advice,
    }
}

in_json! {
    /// What every explanation and forecast says.
    #[derive(Default)]
    pub struct Head {
        /// Version of this form.
        pub version: u8,
        /// Version of the program.
        pub program_version: &'static str,
        /// The snapshot's file name; null if a cluster was read.
        pub snapshot: Option<String>,
        /// The moment of the facts.
        pub judged_at: Timestamp,
        /// What could not be read.
        pub errors: Vec<ReadError>,
        /// What the source does not show, as sentences.
        pub unseen: Vec<String>,
        /// Why the verdicts may be wrong, as sentences, if the source lacks what all of them need.
        #[serde(skip)]
        pub incomplete: Option<String>,
        /// 0, or 3 if something could not be read.
        #[serde(rename = "exitCode")]
        pub exit: Exit,
    }
}

impl Head {
    /// Builds the head. `unread` says that some pod lacks a fact that its verdict needs, because it
    /// could not be read.
    fn new(settings: &Settings, facts: &ClusterFacts, unread: bool) -> Self {
        let ClusterFacts { errors, unseen, .. } = facts;
        Self {
            version: VERSION,
            program_version: env!("CARGO_PKG_VERSION"),
            snapshot: settings.task.snapshot(),
            judged_at: facts.now,
            errors: errors.clone(),
            unseen: unseen.clone(),
            incomplete: facts.incomplete.clone(),
            exit: if unread || !errors.is_empty() {
                Exit::Incomplete
            } else {
                Exit::Done
            },
        }
    }

    /// Says what was asked, at which moment, and of which snapshot. `asked` ends where
    /// the moment begins.
    fn about(&self, asked: &str) -> String {
        format!(
            "pod-reaper {}: {asked} {}{}. Nothing was changed.",
            self.program_version,
            self.judged_at.strftime("%F %TZ"),
            after(", by ", self.snapshot.as_ref())
        )
    }

    fn unread(&self) -> [Section; 2] {
        page::unread_sections(&self.errors, &self.unseen)
    }
}

impl Judgement {
    /// Lists the blocks that say what is at risk, what to remember, and what to do.
    fn blocks(&self) -> Vec<Block> {
        let note = self.note.as_ref();
        let note = note.map(|note| Block::labelled("Note", Tone::Caution, note));
        page::advised(&self.advice).chain(note).collect()
    }

    /// Returns the verdict of the run about a pod, with its advice.
    fn of(judged: &Judged, run: &RunRecord<'_>) -> Self {
        Self {
            verdict: Some(judged.verdict()),
            reason: Some(judged.code()),
            detail: judged.sentence(),
            note: run.note(judged),
            advice: run.adviser().advise(&[judged]),
        }
    }
}

/// Asks whether one of the up to three `known` names most similar to `name` is meant; `None` if no
/// known name is similar.
fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let near = known
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(likeness, _)| *likeness > 0.7)
        .sorted_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)))
        .take(3)
        .map(|(_, name)| name)
        .join(" or ");
    (!near.is_empty()).then(|| format!("did you mean {near}?"))
}

#[cfg(test)]
mod tests;
