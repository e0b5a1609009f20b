//! The spelling of durations, counts, lists and names, and the cleaning of text from the cluster.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
};

use derive_more::{Deref, From};
use itertools::Itertools as _;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use unicode_width::UnicodeWidthChar as _;

use crate::selector::MAX_NAME_CHARS;

/// Formats a duration in at most two units: "1h 5m", "9d 2h", and "minus 5m" if it is negative.
pub fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().unsigned_abs();
    let said = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ]
    .into_iter()
    .skip_while(|(count, _)| *count == 0)
    .take(2)
    .filter(|(count, _)| *count > 0)
    .map(|(count, unit)| format!("{count}{unit}"))
    .join(" ");
    match said.as_str() {
        "" => "0s".to_owned(),
        said if duration.is_negative() => format!("minus {said}"),
        said => said.to_owned(),
    }
}

/// Formats a duration as [`human_duration`] does, but without seconds from ten minutes on.
pub fn about(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let left_out = if seconds.abs() < 600 { 0 } else { seconds % 60 };
    human_duration(SignedDuration::from_secs(seconds - left_out))
}

/// Lists the first `most` of `names`, followed by how many more there are.
pub fn listed(names: &[impl Display], most: usize) -> String {
    let shown = names.iter().take(most).join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Joins `texts` with `between`; `None` if there is nothing to join.
pub fn joined(texts: impl IntoIterator<Item = impl Display>, between: &str) -> Option<String> {
    let joined = texts.into_iter().join(between);
    (!joined.is_empty()).then_some(joined)
}

/// Prefixes `what` with `before`; empty if there is no `what`.
pub fn prefixed(before: &str, what: Option<impl Display>) -> String {
    what.map_or_else(String::new, |what| format!("{before}{what}"))
}

/// Returns a sort key that orders names by their numbers, `web-2` before `web-10`: in the key, the
/// length of a number comes before the number.
pub fn natural(name: &str) -> String {
    let runs = name.chars().chunk_by(char::is_ascii_digit);
    runs.into_iter()
        .map(|(is_number, run)| {
            let text = run.collect::<String>();
            if is_number {
                let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
                format!("{}{text}", char::from(length))
            } else {
                text
            }
        })
        .collect()
}

/// Reports whether a reader sees the letter, and it steers no terminal: it has a width of its own (a control has none,
/// nor a mark that combines with another letter or changes the direction of a text), or is a space or a line break.
pub fn is_shown(letter: char) -> bool {
    match letter {
        ' ' | '\n' => true,
        // A hyphen that may not show, a Hangul letter that fills a gap, a Braille cell without dots, notes between lines, a
        // head of a note without ink, and blank hieroglyphs.
        '\u{ad}'
        | '\u{115f}'
        | '\u{2800}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{1d159}'
        | '\u{13441}'
        | '\u{13442}' => false,
        letter => !letter.is_whitespace() && letter.width().is_some_and(|columns| columns > 0),
    }
}

/// Replaces every letter that is not shown, and each blank by a space.
pub fn sanitize(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            letter if letter.is_whitespace() => ' ',
            letter if is_shown(letter) => letter,
            _ => char::REPLACEMENT_CHARACTER,
        })
        .collect()
}

/// Reports whether a letter looks like a quotation mark, so that a text that has it seems to end there.
fn looks_like_a_quotation_mark(letter: char) -> bool {
    matches!(
        letter,
        '"' | '\u{2ba}' | '\u{2dd}' | '\u{2ee}' | '\u{2f5}' | '\u{2f6}' | '\u{5f2}' | '\u{5f4}' | '\u{1cd3}' | '\u{201c}'..='\u{201f}'
            | '\u{2033}' | '\u{2034}' | '\u{2036}' | '\u{2037}' | '\u{2057}' | '\u{275d}' | '\u{275e}'
            | '\u{3003}' | '\u{301d}'..='\u{301f}' | '\u{309b}' | '\u{ff02}' | '\u{1f676}'..='\u{1f678}'
    )
}

/// A text that an author outside this program chose, such as a kind, a finalizer, a path or a holder, which may be
/// made to look like a sentence or a command of ours. It compares and serializes as it is. Its `Display` is one word,
/// or stands in quotation marks, which a writer repeats on each line; it has at most `MOST` characters, and
/// more are cut out before the last ones. `{:#}` always has quotation marks.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Deref, From,
)]
#[deref(forward)]
#[from(forward)]
#[serde(transparent)]
pub struct Foreign<const MOST: usize = 60>(String);

/// A foreign text of sentences, such as a note or a message of the API server.
pub type Note = Foreign<200>;

/// How many of its last characters a long foreign text keeps: the end of a path or of a context tells it from others.
const END: usize = 20;

impl<const MOST: usize> fmt::Display for Foreign<MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_program = ["kubectl", "pod-reaper"].contains(&&**self);
        if is_word(self) && self.len() <= MOST && !is_program && !f.alternate() {
            return f.write_str(self);
        }
        let letters = sanitize(self)
            .replace(looks_like_a_quotation_mark, "'")
            .chars()
            .dedup_by(|a, b| (*a, *b) == (' ', ' '))
            .collect_vec();
        let (head, tail) = match letters.len().checked_sub(END) {
            Some(end) if letters.len() > MOST => (&letters[..MOST - END - 1], &letters[end..]),
            _ => (&letters[..], &[][..]),
        };
        let cut = if tail.is_empty() { "" } else { "…" };
        write!(
            f,
            "\"{}{cut}{}\"",
            head.iter().format(""),
            tail.iter().format("")
        )
    }
}

#[cfg(test)]
impl<const MOST: usize> schemars::JsonSchema for Foreign<MOST> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        String::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

/// Reports whether a text is one word of letters and digits that no shell reads in another way.
pub fn is_word(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@".contains(letter);
    text.starts_with(|letter: char| letter.is_ascii_alphanumeric()) && text.chars().all(is_plain)
}

/// Returns the name of an object as it is. An object may also refer to others by a text that is no name, since the API
/// server does not check each reference: this text stands in quotation marks, so that no object has it.
pub fn name(text: String) -> String {
    if text.is_empty() || is_word(&text) && text.len() <= MAX_NAME_CHARS {
        return text;
    }
    format!("{:#}", Foreign::<60>(text))
}

/// Formats a number with its noun, in the singular or the plural.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Orders what a list shows, which is cut after `most`: the namespaces in turn, the first of each before the second of any, so
/// that none hides what is of another. What is of no namespace alone comes first. A list that is not cut keeps its order.
pub fn in_turn<'a, T>(
    all: Vec<T>,
    most: usize,
    namespace: impl Fn(&T) -> Option<&'a str>,
) -> Vec<T> {
    if all.len() <= most {
        return all;
    }
    let mut of_namespace = BTreeMap::<&str, usize>::new();
    all.into_iter()
        .map(|it| {
            let turn = namespace(&it).map_or(0, |namespace| {
                let turn = of_namespace.entry(namespace).or_default();
                *turn += 1;
                *turn
            });
            (turn, it)
        })
        .sorted_by_key(|(turn, _)| *turn)
        .map(|(_, it)| it)
        .collect()
}
