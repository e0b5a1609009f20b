//! A test that expects each sentence of the rules once, in `sentences.txt`.
//!
//! In that file, a case is a line: its name, and the words of [`Scene::of`]. The sentences that no
//! earlier case has follow below it. The other tests expect codes and values. So a reworded
//! sentence changes one line of the file, and `UPDATE_EXPECT=1` rewrites that line.

use std::{collections::BTreeSet, sync::LazyLock};

use expect_test::expect_file;
use regex::Regex;

use crate::{
    advice::Step,
    decide::Verdict,
    outcome::{Outcome, OutcomeCode},
    samples::{Scene, retold},
};

/// Returns every text about the scene, each with a word for its kind.
fn texts(scene: &Scene) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let mut say = |what: &str, text: &str| texts.push((what.to_owned(), text.to_owned()));
    let reason = scene.judged();
    say(reason.code.as_str(), &reason.sentence);
    for rule in scene.case().evaluate() {
        say("asks", rule.asks);
        let holds = rule.holds.map(|holds| if holds { "yes" } else { "no" });
        say(holds.unwrap_or("unknown"), &rule.seen);
    }
    if reason.verdict() == Verdict::Reap {
        for note in &reason.notes {
            say("note", note);
        }
    }
    let plan = scene.plan();
    let limits = plan.pods.iter().filter_map(|judged| judged.limit.as_ref());
    for limit in limits.chain(&plan.hold).chain(plan.zones.values()) {
        say(limit.code().as_str(), &limit.sentence());
    }
    for advice in scene.advice() {
        // The advice of each code is on the documentation's page about reasons.
        let risk = advice.risk.filter(|risk| risk != reason.code.advice());
        for (what, text) in [("first", advice.first), ("risk", risk)] {
            say(what, &text.unwrap_or_default());
        }
        for step in &advice.steps {
            say_step(step, &mut say);
        }
    }
    scene.advised(|adviser| {
        let facts = scene.facts();
        let of_nodes = facts.known_nodes();
        let of_nodes = of_nodes.flat_map(|node| adviser.advise_node(node, true, true));
        let of_run = [adviser.run_now()].into_iter().chain(adviser.while_held());
        for step in of_nodes.chain(of_run) {
            say_step(&step, &mut say);
        }
    });
    texts
}

fn say_step(step: &Step, say: &mut impl FnMut(&str, &str)) {
    say("do", &step.what);
    say("harm", step.harm.unwrap_or_default());
    if let Some(row) = &step.row {
        say("row", &row.does);
        say("row", &row.about);
    }
}

/// Lists the sentences of outcomes. No scene produces them.
fn outcomes() -> [(String, String); OutcomeCode::ALL.len()] {
    let cause = || "CAUSE".to_owned();
    let outcomes = [
        Outcome::Deleted,
        Outcome::Gone,
        Outcome::Changed("HOW.".to_owned()),
        Outcome::NodeRecovered,
        Outcome::NodeChanged("HOW.".to_owned()),
        Outcome::OptedOut,
        Outcome::Denied(cause()),
        Outcome::Failed(cause()),
        Outcome::StillThere,
        Outcome::Unverified(cause()),
        Outcome::Interrupted(cause()),
        Outcome::WouldDelete,
    ];
    outcomes.map(|outcome| (outcome.code().to_string(), outcome.sentence()))
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let sentences = text.split_inclusive(". ").map(str::trim_end);
    sentences.filter(|sentence| !sentence.is_empty())
}

/// Replaces the numbers in a sentence: sentences that differ only in numbers are the same.
fn without_numbers(sentence: &str) -> String {
    static NUMBERS: LazyLock<Regex> = LazyLock::new(|| Regex::new("[0-9]+").expect("a pattern"));
    NUMBERS.replace_all(sentence, "#").into_owned()
}

#[test]
fn each_sentence_of_the_sources_is_expected_once() {
    let file = expect_file!["sentences.txt"];
    let (mut known, mut idle) = (BTreeSet::new(), Vec::new());
    let text = retold(&file.data(), |words| {
        let mut new = String::new();
        for (what, text) in texts(&Scene::of(words)).into_iter().chain(outcomes()) {
            for sentence in sentences(&text) {
                if known.insert(without_numbers(sentence)) {
                    new += &format!("{what}: {sentence}\n");
                }
            }
        }
        if new.is_empty() {
            idle.push(words.to_owned());
        }
        new
    });
    file.assert_eq(&text);
    assert_eq!(idle, [""; 0], "the cases above say all that these say");
    assert_eq!(missing(&text), [""; 0], "no case says this");
}

/// The source files with sentences.
const SOURCES: &[&str] = &[
    include_str!("advice/group.rs"),
    include_str!("advice/mod.rs"),
    include_str!("decide/answer.rs"),
    include_str!("decide/context.rs"),
    include_str!("decide/life.rs"),
    include_str!("decide/reason.rs"),
    include_str!("decide/rules.rs"),
    include_str!("decide/volume.rs"),
    include_str!("limits/mod.rs"),
];

/// An error that no report shows.
const NEVER_SHOWN: [&str; 1] = ["answers are left out"];

/// Lists the texts of the sources that are neither in `said` nor in a command, which the tests of
/// the advice expect. A text without a space is a name.
fn missing(said: &str) -> Vec<String> {
    let [literals, breaks, values] = [r#"(?s)"((?:[^"\\]|\\.)*)""#, r"\\\n\s*", r"\{[^{}]*\}"]
        .map(|pattern| Regex::new(pattern).expect("a pattern"));
    let commands = include_str!("advice/tests.rs");
    let is_missing = |part: &&str| {
        part.contains(' ')
            && !NEVER_SHOWN.contains(part)
            && !said.contains(part)
            && !commands.contains(part)
    };
    let mut missing = Vec::new();
    for source in SOURCES {
        let lines = source.lines().map(str::trim);
        let code = lines.filter(|line| !line.starts_with("//") && !line.contains("reason = "));
        let code = code.collect::<Vec<_>>().join("\n");
        for literal in literals.captures_iter(&code) {
            let text = breaks.replace_all(&literal[1], "").replace("\\\"", "\"");
            let parts = values.split(&text).flat_map(str::lines).flat_map(sentences);
            let parts = parts.map(str::trim).filter(is_missing);
            missing.extend(parts.map(str::to_owned));
        }
    }
    missing
}
