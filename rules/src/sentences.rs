//! Every sentence of the rules, each expected once: in `sentences.txt`.
//!
//! A case there is a line: its name, and the words of [`Scene::of`]. Below it stand the sentences
//! that no case above it has. The other tests expect codes and values, so that rewording a sentence
//! changes one line there, which `UPDATE_EXPECT=1` does.

use std::{collections::BTreeSet, sync::LazyLock};

use expect_test::expect_file;
use regex::Regex;

use crate::{
    decide::Verdict,
    samples::{Scene, retold},
};

/// Returns every text about the scene, each with what it is.
fn texts(scene: &Scene) -> Vec<(String, String)> {
    let (case, reason) = (scene.case(), scene.judged());
    let mut texts = vec![(reason.code.to_string(), reason.sentence.clone())];
    for rule in case.evaluate() {
        let holds = match rule.holds {
            Some(true) => "yes",
            Some(false) => "no",
            None => "unknown",
        };
        texts.push(("asks".to_owned(), rule.asks.to_owned()));
        texts.push((holds.to_owned(), rule.seen));
    }
    if reason.verdict() == Verdict::Reap {
        texts.extend(
            reason
                .notes
                .into_iter()
                .map(|note| ("note".to_owned(), note)),
        );
    }
    texts
}

/// Splits a text into its sentences.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(". ").map(str::trim_end)
}

/// Sentences that differ only in numbers are the same.
fn without_numbers(sentence: &str) -> String {
    static NUMBERS: LazyLock<Regex> = LazyLock::new(|| Regex::new("[0-9]+").expect("a pattern"));
    NUMBERS.replace_all(sentence, "#").into_owned()
}

#[test]
fn each_sentence_is_expected_once() {
    let (file, mut known) = (expect_file!["sentences.txt"], BTreeSet::new());
    let new = |words: &str| {
        let mut new = String::new();
        for (what, text) in texts(&Scene::of(words)) {
            for sentence in sentences(&text) {
                if known.insert(without_numbers(sentence)) {
                    new += &format!("{what}: {sentence}\n");
                }
            }
        }
        assert!(
            !new.is_empty(),
            "a case above says all that this one does: {words}"
        );
        new
    };
    file.assert_eq(&retold(&file.data(), new));
}
