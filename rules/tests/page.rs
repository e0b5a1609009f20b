//! The page of the book that is made from the tables.

use std::fmt::Write;

use expect_test::expect_file;
use rules::decide::{ReasonCode, Verdict};
use rules::outcome::{OutcomeCode, ReplacementState};

fn table<'a>(of: &str, rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let rows = rows
        .into_iter()
        .map(|(code, means)| format!("| `{code}` | {means} |\n"));
    format!(
        "| {of} | meaning |\n| --- | --- |\n{}",
        rows.collect::<String>()
    )
}

#[test]
fn the_page_of_reasons_is_current() {
    let verdicts = Verdict::ALL.map(|verdict| (verdict.as_str(), verdict.means()));
    let outcomes = OutcomeCode::ALL.map(|code| (code.as_str(), code.means()));
    let states = ReplacementState::ALL.map(|state| (state.as_str(), state.means()));
    let mut page = format!(
        "\
# Verdicts, reasons, outcomes and replacements

Every verdict, reason, outcome and replacement state that a report can give for a pod, and what to do. The reasons are in the
order of the rules; the first rule that holds decides.

The program repeats these texts in its reports: this page is made from the same table.

## Verdicts

{}
## Reasons
",
        table("verdict", verdicts)
    );
    for code in ReasonCode::ALL {
        let (verdict, means, advice) = (code.verdict(), code.means(), code.advice());
        write!(
            page,
            "\n### `{code}`\n\nVerdict: `{verdict}`. {means}\n\n**What to do:** {advice}\n"
        )
        .unwrap();
    }
    write!(
        page,
        "
## Outcomes

What happened to a pod whose verdict was `reap`.

{}
## Replacements

With `--wait-for-replacements`: how far the replacement of a pod that was deleted, or found gone, has come.

{}",
        table("outcome", outcomes),
        table("state", states)
    )
    .unwrap();
    expect_file!["../../docs/reasons.md"].assert_eq(&page);
}
