//! What the words of a report mean: read from `docs/reasons.md`, so that people read there what a report repeats.

/// The page is part of the program.
const PAGE: &str = include_str!("../docs/reasons.md");

/// What the page's tables say about a verdict, an outcome or a replacement's state.
pub fn means(code: &str) -> &'static str {
    between(PAGE, &format!("\n| `{code}` | "), " |\n")
}

/// What a reason means, and what a person should do about it.
pub fn reason(code: &str) -> (&'static str, &'static str) {
    let section = between(PAGE, &format!("\n### `{code}`\n\nVerdict: `"), "\n\n#");
    let (head, advice) = section
        .split_once("\n\n**What to do:** ")
        .unwrap_or_default();
    (head.split_once("`. ").unwrap_or_default().1, advice)
}

fn between(text: &'static str, start: &str, end: &str) -> &'static str {
    text.split_once(start)
        .unwrap_or_default()
        .1
        .split_once(end)
        .unwrap_or_default()
        .0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        decide::{ReasonCode, Verdict},
        outcome::{OutcomeCode, ReplacementState},
    };

    #[test]
    fn the_page_has_every_word_and_no_other() {
        let reasons = ReasonCode::ALL.map(|code| {
            let (means, advice) = reason(code.as_str());
            assert!(
                means.ends_with('.') && advice.ends_with('.'),
                "{code}: {means:?} {advice:?}"
            );
            assert!(
                !means.contains('\n') && !advice.contains('\n'),
                "{code}: {means:?} {advice:?}"
            );
            assert!(
                PAGE.contains(&format!("### `{code}`\n\nVerdict: `{}`. ", code.verdict())),
                "{code}"
            );
            format!("### `{code}`")
        });
        let sections = PAGE.lines().filter(|line| line.starts_with("### "));
        assert_eq!(
            sections.collect::<Vec<_>>(),
            reasons,
            "in the order of the rules"
        );
        let rows = PAGE
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let words = Verdict::ALL
            .map(Verdict::as_str)
            .into_iter()
            .chain(OutcomeCode::ALL.map(OutcomeCode::as_str));
        let words = words
            .chain(ReplacementState::ALL.map(ReplacementState::as_str))
            .collect::<BTreeSet<_>>();
        assert!(words.iter().all(|word| means(word).ends_with('.')));
        assert_eq!(rows.collect::<BTreeSet<_>>(), words);
    }
}
