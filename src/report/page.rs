//! Lays a run's report out for people: what is down, what was done, which data is at risk, what
//! happens by itself, what to do, and then the lists. The worst comes first.

use itertools::Itertools as _;

use super::{
    NAMED, NAMES,
    advice::{self, Advice, Pods, When, clock},
    document::{Document, Kind, Line, Section, Step, Tone},
    explained, head,
    survey::{PodView, State, Survey},
};
use crate::{
    exit::Exit,
    judge::{Effect, ReasonCode, Verdict},
    outcome::Trace,
    settings::{GuardCode, Mode},
    words::{self, human_duration, in_turn, joined, natural, prefixed},
};

/// The most steps of a page.
const STEPS: usize = 12;

/// The most names of nodes that are down, and of pods that a limit or a living machine keeps.
const FEW: usize = 10;

/// Names that belong together, with what they have in common.
type Group = (String, Vec<String>);

/// Returns the document of a run, or about the one pod that somebody asked about.
pub fn document<'a>(survey: &'a Survey<'a>) -> Document {
    let all = advice::all(survey);
    let exit = advice::exit(survey, &all);
    let (headline, mut sections, lists) = match survey.asked {
        Some(pod) => (
            explained::headline(survey, pod),
            explained::head(survey, pod),
            explained::lists(survey),
        ),
        None => (head::headline(survey, &all), head(survey), lists(survey)),
    };
    sections.extend(to_do(survey, steps(survey, &all)));
    let never = joined(advice::never(survey), " Never ");
    sections.push(Section::of_texts(Kind::Steps, "NEVER", Tone::Bad, never));
    sections.extend(lists);
    sections.push(Section::not_seen(survey.unseen));
    sections.extend(survey.asked.is_none().then(|| foot(survey)));
    sections.retain(|section| !section.lines.is_empty());
    Document {
        headline,
        about: about(survey, exit),
        sections,
        exit,
    }
}

/// Says what is down, what was done, which data is at risk, and what happens by itself.
fn head<'a>(survey: &'a Survey<'a>) -> Vec<Section> {
    let next = Vec::from_iter(joined(head::next(survey), " "));
    [
        ("NOTE", Tone::Bad, head::notes(survey)),
        ("HELD", Tone::Bad, head::held(survey)),
        ("DONE", Tone::Good, head::done(survey)),
        ("DATA", Tone::Bad, head::data(survey)),
        ("NEXT", Tone::Plain, next),
    ]
    .into_iter()
    .map(|(heading, tone, texts)| Section::of_texts(Kind::Head, heading, tone, texts))
    .collect()
}

fn about(survey: &Survey<'_>, exit: Exit) -> String {
    let at = survey.now.strftime("%F %RZ");
    let place = prefixed(" ", survey.cluster_label);
    let exit = match exit {
        Exit::Done => String::new(),
        exit => format!(", exit {}", exit.code()),
    };
    let task = &survey.settings.task;
    let file = prefixed(" of ", task.snapshot().filter(|file| file != "-"));
    match task.mode() {
        _ if survey.asked.is_some() => {
            let source = prefixed(" from ", task.snapshot());
            format!("EXPLAIN{source} at {at}")
        }
        Mode::Snapshot => format!("AUDIT{file}{place} at {at}{exit}"),
        Mode::DryRun => format!("DRY RUN{place} {at}, nothing was changed{exit}"),
        Mode::Delete if survey.acted => format!("RUN{place} {at}{exit}"),
        Mode::Delete => format!("RUN{place} {at}, nothing was changed{exit}"),
    }
}

/// Returns the steps of a page, as many as fit: what cannot wait is first, and the last names what is left over. A namespace
/// with many steps hides none of another: the first of each fit before the second of any.
pub fn steps(survey: &Survey<'_>, all: &[Advice<'_>]) -> Vec<Step> {
    let most = if all.len() > STEPS { STEPS - 1 } else { STEPS };
    let places = (0..all.len()).collect();
    let mut shown = in_turn(places, STEPS, |place| all[*place].namespace());
    shown.sort_by_key(|place| all[*place].press.is_none());
    let left_over = shown.split_off(most.min(shown.len()));
    shown.sort_unstable();
    let left_over_advice = || left_over.iter().map(|place| &all[*place]);
    let urgent = left_over_advice()
        .filter(|advice| advice.press.is_some())
        .count();
    let rest = (!left_over.is_empty()).then(|| Step {
        rings: left_over_advice().any(|advice| advice.rings(survey)),
        ..Advice::rest(urgent, left_over.len()).step(survey)
    });
    shown
        .iter()
        .map(|place| all[*place].step(survey))
        .chain(rest)
        .collect()
}

/// Returns the steps in two sections that are numbered through: those for now, and the rest.
fn to_do(survey: &Survey<'_>, steps: Vec<Step>) -> [Section; 2] {
    let (mut now, later) = (1..)
        .zip(steps)
        .map(|(number, step)| Line::Step(number, step))
        .partition::<Vec<_>, _>(
            |line| matches!(line, Line::Step(_, step) if step.when == When::Now),
        );
    let is_down = survey.down().keys().any(|state| **state != State::Gone);
    if now.is_empty() && survey.asked.is_none() && is_down {
        let waits = if later.is_empty() {
            ""
        } else {
            " The steps below can wait until working hours."
        };
        now.push(Line::Text(format!("Nothing, as far as was read.{waits}")));
    }
    let section = |heading: &str, tone, lines| Section {
        kind: Kind::Steps,
        heading: heading.to_owned(),
        tone,
        lines,
    };
    [
        section("NOW", Tone::Bad, now),
        section("CAN WAIT UNTIL MORNING", Tone::Plain, later),
    ]
}

/// Lists nodes and pods, those that were deleted first.
fn lists<'a>(survey: &'a Survey<'a>) -> Vec<Section> {
    let select =
        |is: &dyn Fn(&PodView<'_>) -> bool| survey.select(|pod| is(pod)).unwrap_or_default();
    let copies = |pod: &PodView<'_>| prefixed(" ", pod.facts.copies);
    let is_held =
        |pod: &PodView<'_>| pod.is_held() || pod.fate == Verdict::Wait && pod.from.is_some();
    let failed = |pod: &PodView<'_>| pod.outcome_code().filter(|code| !code.went_well());
    let held = select(&is_held);
    let not_deleted = select(&|pod| failed(pod).is_some());
    let waits = select(&|pod| pod.fate == Verdict::Wait && !is_held(pod));
    let needs_you = select(&|pod| pod.fate == Verdict::Manual);
    let mut left_alone = select(&|pod| pod.fate == Verdict::Leave);
    left_alone.0.sort_by_key(|pod| pod.hang.is_none());
    let needing_you = match survey.hold {
        Some(_) => "WOULD NEED YOU",
        None => "NEEDS YOU",
    };
    let down = survey
        .down()
        .into_values()
        .filter(|nodes| nodes.len() > NAMED)
        .flatten()
        .map(|node| node.name.to_owned())
        .collect_vec();
    let mut lists = vec![
        list(
            "DOWN",
            down.len(),
            None,
            [(String::new(), at_most(down, FEW))],
        ),
        rows("HELD", FEW, &held, |_| String::new()),
    ];
    lists.extend(Effect::ALL.map(|effect| reaped(survey, effect, false)));
    lists.extend(Effect::ALL.map(|effect| reaped(survey, effect, true)));
    lists.push(Section {
        tone: Tone::Bad,
        ..rows("NOT DELETED", usize::MAX, &not_deleted, |pod| {
            prefixed(" [", failed(pod)) + "]"
        })
    });
    lists.extend([goes_too(survey), afterwards(survey)]);
    lists.push(rows("WAITS", NAMES, &waits, |pod| match pod.code() {
        ReasonCode::OverCap => " for a later run (--max-deletes)".to_owned(),
        code => format!(" [{code}]"),
    }));
    let codes = needs_you.iter().map(|pod| pod.fate_code).unique();
    lists.extend(codes.map(|code| {
        // None of the pods on a living machine needs you by itself.
        let most = if code == ReasonCode::KubeletAlive {
            FEW
        } else {
            NAMES
        };
        let pods = select(&|pod| pod.fate == Verdict::Manual && pod.fate_code == code);
        Section {
            tone: Tone::Bad,
            ..rows(
                &format!("{needing_you}{} [{code}]", from(&pods)),
                most,
                &pods,
                copies,
            )
        }
    }));
    lists.push(rows("LEFT ALONE", NAMES, &left_alone, |pod| {
        let node = prefixed(" on ", pod.facts.node.as_ref());
        let code = pod
            .hang
            .map_or(pod.fate_code.as_str(), |hang| hang.code().as_str());
        let hangs = pod.hang.filter(|_| !pod.overdue.is_negative());
        let time = prefixed(" for ", hangs.map(|_| words::about(pod.overdue)));
        format!("{}{node}{time} [{code}]", copies(pod))
    }));
    lists.push(Section::of_texts(
        Kind::List,
        "WORTH KNOWING",
        Tone::Plain,
        head::notices(survey),
    ));
    lists
}

/// Lists the pods that were deleted, or that a run deletes now or `later`, of which the same becomes.
fn reaped<'a>(survey: &'a Survey<'a>, effect: Effect, later: bool) -> Section {
    let pods = survey
        .select(|pod| pod.is_reaped() && pod.from.is_some() == later && pod.effect == effect)
        .unwrap_or_default();
    let heading = effect.as_str().to_uppercase() + &from(&pods);
    // The other headings speak for themselves.
    let is_odd = [Effect::GoneForGood, Effect::UpToOwner].contains(&effect);
    let note = is_odd.then(|| effect.means().to_owned());
    list(&heading, pods.len(), note, grouped(&pods))
}

/// Says from when on the fate of these pods holds, if that is later.
fn from(pods: &Pods<'_>) -> String {
    let from = pods
        .iter()
        .filter_map(|pod| pod.from)
        .minmax()
        .into_option()
        .map(|(first, last)| match [first, last].map(clock) {
            [first, last] if first == last => format!("{first} ON"),
            [first, last] => format!("{first} ON, THE LAST FROM {last} ON"),
        });
    prefixed(" FROM ", from)
}

/// Lists the active pods that a deleted pod controls, which are deleted with it.
fn goes_too(survey: &Survey<'_>) -> Section {
    let owned = survey
        .shown()
        .iter()
        .filter(|pod| pod.is_reaped())
        .filter_map(|pod| Some((pod.name(), survey.owned_by(pod.facts)?.to_vec())))
        .filter(|(_, names)| !names.is_empty())
        .collect_vec();
    let count = owned.iter().map(|(_, names)| names.len()).sum();
    list("DELETED WITH THEIR OWNER", count, None, owned)
}

fn afterwards(survey: &Survey<'_>) -> Section {
    let pods = survey
        .shown()
        .iter()
        .filter(|pod| pod.trace != Some(Trace::Untouched));
    let texts = pods
        .filter_map(|pod| Some((pod.note.as_ref()?, pod)))
        .into_group_map()
        .into_iter()
        .map(|(note, pods)| format!("{}: {note}", Pods(pods)))
        .sorted()
        .collect();
    Section::of_texts(Kind::List, "AFTERWARDS", Tone::Plain, at_most(texts, NAMES))
}

fn foot(survey: &Survey<'_>) -> Section {
    let settings = survey.settings;
    let guard = match settings.guard() {
        GuardCode::Proved => " · the guard is proved",
        GuardCode::NotRequired => " · no guard",
        GuardCode::NotAsked => "",
    };
    let also = match settings.task.mode() {
        Mode::Delete => "",
        _ if settings.all => "",
        Mode::DryRun | Mode::Snapshot => " · also on Ready nodes: --all",
    };
    let kinds = joined(&settings.policy.manual_owner_kinds, ",");
    let kept = prefixed(" · --manual-owner-kind=", kinds);
    let cap = Some(settings.limits.max_deletes).filter(|most| *most > 0);
    let most = prefixed(" · --max-deletes=", cap);
    let text = format!(
        "pod-reaper {} · stuck after {} · {}{kept}{most}{guard} · why: pod-reaper explain POD{also}",
        env!("CARGO_PKG_VERSION"),
        human_duration(settings.policy.reap_older_than),
        match settings.namespaces.to_string().as_str() {
            "all" => "all namespaces",
            filter => filter,
        }
    );
    Section::of_texts(Kind::Foot, "", Tone::Quiet, [text])
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
    pods: &Pods<'_>,
    remark: impl Fn(&PodView<'_>) -> String,
) -> Section {
    let names = pods
        .in_turn(most)
        .into_iter()
        .map(|pod| pod.name() + &remark(pod))
        .collect();
    let groups = at_most(names, most)
        .into_iter()
        .map(|name| (String::new(), vec![name]));
    list(heading, pods.len(), None, groups)
}

/// Cuts a list of names that cannot hurt.
fn at_most(mut names: Vec<String>, most: usize) -> Vec<String> {
    let more = names.len().saturating_sub(most);
    if more > 0 {
        names.truncate(most);
        names.push(format!("and {more} more (names: --output=json)"));
    }
    names
}

/// Names pods, grouped by namespace.
fn grouped(pods: &Pods<'_>) -> Vec<Group> {
    pods.iter()
        .map(|pod| (&pod.facts.namespace, &pod.facts.name))
        .into_group_map()
        .into_iter()
        .sorted()
        .map(|(namespace, names)| {
            (
                namespace.clone(),
                names
                    .into_iter()
                    .sorted_by_cached_key(|name| natural(name))
                    .cloned()
                    .collect(),
            )
        })
        .collect()
}
