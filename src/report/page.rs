//! Lays a run's report out for people: what is down, what was done, which data is at risk, what
//! happens by itself, what to do, and then the lists. The worst comes first.

use std::collections::BTreeMap;

use itertools::Itertools as _;

use super::{
    NAMED, NAMES,
    advice::{self, Advice, Pods, When, clock},
    document::{Document, Kind, Line, Section, Step, Tone},
    explained,
    hang::HangCode,
    head,
    survey::{PodView, State, Survey},
};
use crate::{
    exit::Exit,
    judge::{Effect, ReasonCode, Verdict},
    outcome::Trace,
    settings::{GuardCode, Mode},
    words::{self, human_duration, joined, natural, prefixed},
};

/// The most steps of a page.
const STEPS: usize = 12;

/// The most names of pods that a limit or a living machine keeps.
const FEW: usize = 10;

/// Names that belong together, with what they have in common.
type Group = (String, Vec<String>);

/// Returns the document of a run, or about the one pod that somebody asked about.
pub fn document<'a>(survey: &'a Survey<'a>) -> Document {
    let all = advice::all(survey);
    let exit = advice::exit(survey, &all);
    let of = |heading, tone, texts| Section::of_texts(Kind::Head, heading, tone, texts);
    let mut sections = match survey.asked {
        Some(pod) => explained::head(survey, pod),
        None => vec![
            of("NOTE", Tone::Bad, head::notes(survey)),
            of("HELD", Tone::Bad, head::held(survey)),
            of("DONE", Tone::Good, head::done(survey)),
            of("DATA", Tone::Bad, head::data(survey)),
            of(
                "NEXT",
                Tone::Plain,
                Vec::from_iter(joined(head::next(survey), " ")),
            ),
        ],
    };
    sections.extend(to_do(survey, steps(survey, &all)));
    let never = joined(advice::never(survey), " Never ");
    sections.push(Section::of_texts(Kind::Steps, "NEVER", Tone::Bad, never));
    sections.extend(match survey.asked {
        Some(_) => explained::lists(survey),
        None => lists(survey),
    });
    sections.push(Section::not_seen(survey.unseen));
    sections.extend(survey.asked.is_none().then(|| foot(survey)));
    let headline = match survey.asked {
        Some(pod) => explained::headline(survey, pod),
        None => head::headline(survey),
    };
    Document {
        title: match survey.asked {
            Some(_) => headline.clone(),
            None => head::title(survey),
        },
        headline,
        about: about(survey, exit),
        sections,
        exit,
    }
    .without_empty()
}

fn about(survey: &Survey<'_>, exit: Exit) -> String {
    let at = survey.now.strftime("%F %RZ");
    let place = prefixed(" ", survey.place);
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
    let mut of_namespace = BTreeMap::<_, usize>::new();
    let turns = all.iter().enumerate().map(|(place, advice)| {
        let pods = advice.pods.0.iter();
        let namespace = pods.map(|pod| &pod.judged.pod.namespace).all_equal_value();
        let turn = namespace.map_or(0, |namespace| {
            let turn = of_namespace.entry(namespace).or_default();
            *turn += 1;
            *turn
        });
        (advice.when() == When::Later, turn, place)
    });
    let mut shown = turns.sorted().map(|(.., place)| place).collect_vec();
    let left_over = shown.split_off(most.min(shown.len()));
    shown.sort_unstable();
    let mut steps = shown
        .iter()
        .map(|place| step(survey, &all[*place]))
        .collect_vec();
    if !left_over.is_empty() {
        let is_urgent = |place: &&usize| all[**place].when() == When::Now;
        let urgent = left_over.iter().filter(is_urgent).count();
        steps.push(Step {
            when: if urgent > 0 { When::Now } else { When::Later },
            what: format!(
                "Then run pod-reaper again, and do what is left over: steps for now {urgent}, others {}. For one pod: pod-reaper explain POD.",
                left_over.len() - urgent
            ),
            command: None,
            harms: None,
            pods: Vec::new(),
            nodes: Vec::new(),
            cases: Vec::new(),
        });
    }
    steps
}

/// Spells a thing to do.
fn step(survey: &Survey<'_>, advice: &Advice<'_>) -> Step {
    let command = advice.command(survey);
    Step {
        when: advice.when(),
        what: advice.sentence(survey),
        harms: advice.harm().filter(|_| command.is_some()),
        command,
        pods: advice.pods.0.iter().map(|pod| pod.name()).collect(),
        nodes: advice.nodes.0.iter().map(ToString::to_string).collect(),
        cases: advice.cases(survey),
    }
}

/// Returns the steps in two sections that are numbered through: those for now, and the rest.
fn to_do(survey: &Survey<'_>, steps: Vec<Step>) -> [Section; 2] {
    let steps = (1..).zip(steps);
    let steps = steps.map(|(number, step)| Line::Step(number, step));
    let is_for_now = |line: &Line| matches!(line, Line::Step(_, step) if step.when == When::Now);
    let (mut now, later) = steps.partition::<Vec<_>, _>(is_for_now);
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
    let is_alive = |pod: &PodView<'_>| pod.fate_code == ReasonCode::KubeletAlive;
    let is_held =
        |pod: &PodView<'_>| pod.is_held() || pod.fate == Verdict::Wait && pod.from.is_some();
    let (held, alive) = (select(&is_held), select(&is_alive));
    let failed = |pod: &PodView<'_>| pod.outcome_code().filter(|code| !code.went_well());
    let waits = select(&|pod| pod.fate == Verdict::Wait && !is_held(pod));
    let needs_you = select(&|pod| pod.fate == Verdict::Manual && !is_alive(pod));
    let left_alone = select(&|pod| pod.fate == Verdict::Leave && pod.hang.is_none());
    let by_cause = HangCode::ALL.map(|code| {
        let is = |pod: &PodView<'_>| pod.hang.is_some_and(|hang| hang.code() == code);
        let pods = select(&|pod| pod.fate == Verdict::Leave && is(pod));
        rows(&format!("LEFT ALONE [{code}]"), NAMES, &pods, |pod| {
            let copies = prefixed(" ", pod.judged.pod.copies);
            let node = prefixed(" on ", pod.judged.pod.node.as_ref());
            let time = Some(pod.overdue).filter(|overdue| !overdue.is_negative());
            format!(
                "{copies}{node}{}",
                prefixed(" for ", time.map(words::about))
            )
        })
    });
    let needing_you = match survey.hold {
        Some(_) => "WOULD NEED YOU",
        None => "NEEDS YOU",
    };
    let not_deleted = select(&|pod| failed(pod).is_some());
    let mut lists = vec![down(survey), rows("HELD", FEW, &held, |_| String::new())];
    lists.extend(Effect::ALL.map(|effect| reaped(survey, effect)));
    lists.push(to_come(survey));
    lists.extend([
        Section {
            tone: Tone::Bad,
            ..rows("NOT DELETED", usize::MAX, &not_deleted, |pod| {
                prefixed(" [", failed(pod)) + "]"
            })
        },
        goes_too(survey),
        afterwards(survey),
        rows("WAITS", NAMES, &waits, |pod| match pod.code() {
            ReasonCode::OverCap => " for a later run (--max-deletes)".to_owned(),
            _ => code(pod),
        }),
        Section {
            tone: Tone::Bad,
            ..rows(needing_you, NAMES, &needs_you, |pod| {
                prefixed(" ", pod.judged.pod.copies) + &code(pod)
            })
        },
        // None of them needs you by itself.
        rows("NEEDS YOU [kubelet-alive]", FEW, &alive, |_| String::new()),
        rows("LEFT ALONE", NAMES, &left_alone, |pod| {
            prefixed(" on ", pod.judged.pod.node.as_ref()) + &code(pod)
        }),
    ]);
    lists.extend(by_cause);
    let notices = head::notices(survey);
    lists.push(Section::of_texts(
        Kind::List,
        "WORTH KNOWING",
        Tone::Plain,
        notices,
    ));
    lists
}

fn down(survey: &Survey<'_>) -> Section {
    let many = survey
        .down()
        .into_values()
        .filter(|nodes| nodes.len() > NAMED);
    let names = many
        .flatten()
        .map(|node| node.name.to_owned())
        .collect_vec();
    let count = names.len();
    list(
        "DOWN",
        count,
        None,
        [(String::new(), at_most(names, NAMES))],
    )
}

fn reaped<'a>(survey: &'a Survey<'a>, effect: Effect) -> Section {
    let pods = survey.select(|pod| pod.is_reaped() && pod.from.is_none() && pod.effect == effect);
    let pods = pods.unwrap_or_default();
    // The other headings speak for themselves.
    let is_odd = [Effect::GoneForGood, Effect::UpToOwner].contains(&effect);
    let note = is_odd.then(|| effect.means().to_owned());
    let heading = effect.as_str().to_uppercase();
    list(&heading, pods.0.len(), note, grouped(&pods))
}

/// Lists the pods that runs delete later, by what becomes of them.
fn to_come<'a>(survey: &'a Survey<'a>) -> Section {
    let of = |effect: Option<Effect>| {
        let is = |pod: &PodView<'_>| effect.is_none_or(|effect| pod.effect == effect);
        let pods = survey.select(|pod| pod.is_reaped() && pod.from.is_some() && is(pod));
        pods.unwrap_or_default()
    };
    let all = of(None);
    let from = all.0.iter().filter_map(|pod| pod.from).min();
    let groups = Effect::ALL.into_iter().flat_map(|effect| {
        let mut groups = grouped(&of(Some(effect)));
        if let Some((of, _)) = groups.first_mut() {
            *of = format!("{effect}: {of}");
        }
        groups
    });
    let from = prefixed(" FROM ", from.map(clock));
    list(
        &format!("A RUN DELETES{from} ON"),
        all.0.len(),
        None,
        groups.collect_vec(),
    )
}

/// Lists the active pods that a deleted pod controls, which are deleted with it.
fn goes_too(survey: &Survey<'_>) -> Section {
    let owners = survey.shown().iter().filter(|pod| pod.is_reaped());
    let owned = owners.filter_map(|pod| Some((pod.name(), survey.owned_by(pod)?.clone())));
    let owned = owned.collect_vec();
    let count = owned.iter().map(|(_, names)| names.len()).sum();
    list("DELETED WITH THEIR OWNER", count, None, owned)
}

fn afterwards(survey: &Survey<'_>) -> Section {
    let pods = survey
        .shown()
        .iter()
        .filter(|pod| pod.trace != Some(Trace::Untouched));
    let notes = pods.filter_map(|pod| Some((pod.note.as_ref()?, pod)));
    let notes = notes.into_group_map().into_iter();
    let texts = notes
        .map(|(note, pods)| format!("{}: {note}", Pods(pods)))
        .sorted();
    Section::of_texts(Kind::List, "AFTERWARDS", Tone::Plain, texts)
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
    let text = format!(
        "pod-reaper {} · stuck after {} · {}{guard} · why: pod-reaper explain POD{also}",
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
    let names = pods.0.iter().map(|pod| pod.name() + &remark(pod));
    let names = at_most(names.collect(), most).into_iter();
    let names = names.map(|name| (String::new(), vec![name]));
    list(heading, pods.0.len(), None, names)
}

fn code(pod: &PodView<'_>) -> String {
    format!(" [{}]", pod.fate_code)
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
    let names = pods
        .0
        .iter()
        .map(|pod| (&pod.judged.pod.namespace, &pod.judged.pod.name));
    let groups = names.into_group_map().into_iter().sorted();
    let groups = groups.map(|(namespace, names)| {
        let names = names.into_iter().sorted_by_cached_key(|name| natural(name));
        (namespace.clone(), names.cloned().collect())
    });
    groups.collect()
}
