//! The lists below what to do: nodes and pods by what becomes of them.

use itertools::Itertools as _;

use super::Page;
use crate::{
    codes::codes,
    judge::{Judged, Note, ReasonCode, Verdict},
    outcome::{OutcomeCode, Trace},
    report::{
        NAMED, NAMES,
        document::{Kind, Line, Section, Tone},
        record::{clock, is_held},
        todo::{About, full_name},
    },
    words::{joined, natural, prefixed},
};

codes! {
    /// What becomes of a pod that is deleted. Nobody read its replacement.
    pub enum Effect {
        /// Its controller waits for the delete, or its replacement for a volume.
        Restart = "restart elsewhere",
        /// Its controller did not wait for the delete, or nothing wants it again.
        Leftover = "leftovers" => "(nothing waits for their delete)",
        /// It has no owner.
        GoneForGood = "gone for good" => "(no owner starts them again)",
        /// Its owner is no controller.
        UpToOwner = "up to their owners" => "(an owner that is no controller)",
    }
}

/// The most pods that a limit or a living machine keeps, of which each is named.
const FEW: usize = 10;

/// Names that belong together, with what they have in common.
type Group = (String, Vec<String>);

impl<'a> Page<'a> {
    /// Lists nodes and pods, those that were deleted first.
    pub(super) fn lists(&self) -> Vec<Section> {
        let run = self.run;
        let is_alive = |it: &Judged| it.code() == ReasonCode::KubeletAlive;
        let (held, alive) = (self.pods(is_held), self.pods(is_alive));
        let failed = |it: &Judged| run.outcome(it).filter(|code| !code.went_well());
        let waits = self.pods(|it| it.verdict() == Verdict::Wait && !is_held(it));
        let needs_you = self.pods(|it| it.verdict() == Verdict::Manual && !is_alive(it));
        let left_alone = self.pods(|it| it.verdict() == Verdict::Leave);
        let needing_you = match run.plan.hold {
            Some(_) => "WOULD NEED YOU",
            None => "NEEDS YOU",
        };
        let mut lists = vec![self.down(), alike("HELD", "", &held)];
        lists.extend(Effect::ALL.map(|effect| self.reaped(effect)));
        lists.extend([
            Section {
                tone: Tone::Bad,
                ..rows(
                    "NOT DELETED",
                    usize::MAX,
                    &self.pods(|it| failed(it).is_some()),
                    |it| prefixed(" [", failed(it)) + "]",
                )
            },
            self.goes_too(),
            self.afterwards(),
            rows("WAITS", NAMES, &waits, |it| match it.waits_until() {
                Some(from) => format!(" until {}", clock(from)),
                None if it.code() == ReasonCode::OverCap => {
                    " for a later run (--max-deletes)".to_owned()
                }
                None => code(it),
            }),
            Section {
                tone: Tone::Bad,
                ..rows(needing_you, NAMES, &needs_you, |it| {
                    prefixed(" ", it.copies()) + &code(it)
                })
            },
            // None of them needs you by itself.
            alike("NEEDS YOU", "[kubelet-alive]", &alive),
            rows("LEFT ALONE", NAMES, &left_alone, |it| {
                prefixed(" on ", it.pod.node.as_ref()) + &code(it)
            }),
        ]);
        lists
    }

    pub(super) fn effect(&self, judged: &Judged) -> Effect {
        let pod = &judged.pod;
        // `status.volumesAttached` is not asked: a VolumeAttachment, or a disk for one node.
        let waits_for_a_disk = self.run.detaches_late(judged)
            || judged.volumes().any(|volume| volume.driver.is_some());
        match (&pod.owner, &pod.controller) {
            _ if judged.unneeded().is_some() => Effect::Leftover,
            _ if judged
                .reason
                .notes()
                .any(|note| matches!(note, Note::Bound(_))) =>
            {
                Effect::Leftover
            }
            (None, _) if !pod.is_orphan => Effect::GoneForGood,
            (_, None) => Effect::UpToOwner,
            _ if pod.is_replaced_early() && !waits_for_a_disk && !pod.held_by_job() => {
                Effect::Leftover
            }
            _ => Effect::Restart,
        }
    }

    /// Lists the pods that were deleted, or would be.
    pub(super) fn gone(&self, is: impl Fn(&Judged) -> bool) -> About<'a> {
        self.pods(|it| {
            it.verdict() == Verdict::Reap
                && self.run.outcome(it).is_none_or(OutcomeCode::went_well)
                && is(it)
        })
    }

    fn down(&self) -> Section {
        let many = self.down.iter().filter(|(_, names)| names.len() > NAMED);
        let names = many.flat_map(|(_, names)| names).map(ToString::to_string);
        let names = names.collect_vec();
        list(
            "DOWN",
            names.len(),
            None,
            [(String::new(), cut(names, NAMES))],
        )
    }

    fn reaped(&self, effect: Effect) -> Section {
        let pods = self.gone(|it| self.effect(it) == effect);
        let note = match effect {
            Effect::Restart => {
                let late = self.gone(|it| self.effect(it) == effect && self.run.detaches_late(it));
                if late.pods.len() == pods.pods.len() {
                    late.say("(each up to 6 minutes later, once its volume is detached)")
                } else {
                    late.say("(up to 6 minutes later, once the volume is detached: <pods>)")
                }
            }
            _ => joined([effect.means()], ""),
        };
        let heading = effect.as_str().to_uppercase();
        list(&heading, pods.pods.len(), note, grouped(&pods))
    }

    /// Lists the active pods that a deleted pod controls, which are deleted with it.
    fn goes_too(&self) -> Section {
        let owners = self.gone(|_| true).pods.into_iter();
        let owned = owners.filter_map(|it| {
            let names = self.run.facts.owned_by_pods.get(&it.pod.uid)?;
            Some((full_name(&it.pod), names.clone()))
        });
        let owned = owned.collect_vec();
        let count = owned.iter().map(|(_, names)| names.len()).sum();
        list("DELETED WITH THEIR OWNER", count, None, owned)
    }

    fn afterwards(&self) -> Section {
        let pods = self.pods(|it| {
            it.verdict() == Verdict::Reap && self.run.trace(it) != Some(Trace::Untouched)
        });
        let notes = pods.pods.into_iter();
        let notes = notes.filter_map(|it| Some((self.run.note(it)?, it)));
        let texts = notes
            .into_group_map()
            .into_iter()
            .map(|(note, pods)| format!("{}: {note}", About::of(pods).pod_names()));
        Section::of_texts(Kind::List, "AFTERWARDS", Tone::Plain, texts.sorted())
    }
}

fn list(
    heading: &str,
    count: usize,
    note: Option<String>,
    groups: impl IntoIterator<Item = Group>,
) -> Section {
    let mut lines = Vec::new();
    if count > 0 {
        lines.extend(note.map(Line::Text));
        lines.push(Line::Names(groups.into_iter().collect()));
    }
    Section {
        kind: Kind::List,
        heading: format!("{heading}: {count}"),
        tone: Tone::Plain,
        lines,
    }
}

/// Lists at most `most` pods, each with a remark.
fn rows(
    heading: &str,
    most: usize,
    pods: &About<'_>,
    remark: impl Fn(&Judged) -> String,
) -> Section {
    let names = pods.pods.iter().map(|it| full_name(&it.pod) + &remark(it));
    let names = cut(names.collect(), most)
        .into_iter()
        .map(|name| (String::new(), vec![name]));
    list(heading, pods.pods.len(), None, names)
}

fn code(judged: &Judged) -> String {
    format!(" [{}]", judged.code())
}

/// Cuts a list of names that cannot hurt.
fn cut(mut names: Vec<String>, most: usize) -> Vec<String> {
    let more = names.len().saturating_sub(most);
    if more > 0 {
        names.truncate(most);
        names.push(format!("and {more} more (names: --output=json)"));
    }
    names
}

/// Names pods, grouped by namespace.
fn grouped(pods: &About<'_>) -> Vec<Group> {
    let names = pods.pods.iter().map(|it| (&it.pod.namespace, &it.pod.name));
    let groups = names.into_group_map().into_iter().sorted();
    let groups = groups.map(|(namespace, names)| {
        let names = names.into_iter().sorted_by_cached_key(|name| natural(name));
        (namespace.clone(), names.cloned().collect())
    });
    groups.collect()
}

/// Lists pods that a limit or a living machine keeps, all alike: a few by name, many by number.
fn alike(heading: &str, remark: &str, pods: &About<'_>) -> Section {
    let (count, names) = (pods.pods.len(), grouped(pods));
    let named = |remark: &str| Some(remark.to_owned()).filter(|remark| !remark.is_empty());
    if count <= FEW {
        return list(heading, count, named(remark), names);
    }
    let counts = names.into_iter();
    let counts = counts.map(|(namespace, names)| format!("{namespace} {}", names.len()));
    let remark = format!("{remark} (names: --output=json)");
    let counts = [(String::new(), counts.collect())];
    list(heading, count, named(remark.trim_start()), counts)
}
