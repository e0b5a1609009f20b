//! The spelling of durations, counts, lists and names, names near a mistyped one, and the cleaning of text from the cluster.

use itertools::Itertools as _;
use std::fmt::Display;

use jiff::SignedDuration;

/// Formats a duration in at most two units: "1h 5m", "9d 2h", and "minus 5m" if it is negative.
pub fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().unsigned_abs();
    let counts = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let said = counts
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
    let mut shown = names.iter().take(most);
    let shown = shown.join(", ");
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
    let keys = runs.into_iter().map(|(is_number, run)| {
        let text = run.collect::<String>();
        if is_number {
            let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
            format!("{}{text}", char::from(length))
        } else {
            text
        }
    });
    keys.collect()
}

/// Replaces control characters and Unicode's format and tag characters by replacement characters.
/// Text from the cluster must not control the terminal that shows it, nor look like another text.
/// Format characters reorder text or show nothing; tag characters (U+E0001, U+E0020 to U+E007F)
/// show nothing.
pub fn sanitize(text: &str) -> String {
    let steers = |letter: char| {
        letter.is_control()
            || matches!(
                letter,
                '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                    | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
                    | '\u{e0001}' | '\u{e0020}'..='\u{e007f}'
            )
    };
    text.chars()
        .map(|letter| match letter {
            '\n' | '\t' => ' ',
            letter if steers(letter) => char::REPLACEMENT_CHARACTER,
            letter => letter,
        })
        .collect()
}

/// Formats a number with its noun, in the singular or the plural.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Returns a hint that asks whether one of the up to three `known` names most similar to `name` is
/// meant; `None` if no known name is similar. A known name may have its namespace before it.
pub fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let near = known
        .map(|known| {
            let bare = known.rsplit('/').next().unwrap_or(known);
            (strsim::jaro_winkler(name, bare), known)
        })
        .filter(|(likeness, _)| *likeness > 0.7)
        .sorted_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)))
        .take(3)
        .map(|(_, name)| name)
        .join(" or ");
    (!near.is_empty()).then(|| format!("did you mean {near}?"))
}
