//! The part of docs/reasons.md that is generated from the tables of codes.

use std::fmt::Write;

use pod_reaper_test_support::pages;

use crate::{
    judge::{ReasonCode, Verdict, rules::rules},
    outcome::OutcomeCode,
};

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
    let mut page = format!("{}\n## Reasons\n", table("verdict", verdicts));
    for code in ReasonCode::ALL {
        let (verdict, means) = (code.verdict(), code.means());
        let rule = rules()
            .zip(1..)
            .find(|(rule, _)| rule.gives.contains(&code));
        let by = rule.map_or("Limit".to_owned(), |(_, number)| format!("Rule {number}"));
        write!(page, "\n### `{code}`\n\n{by}, `{verdict}`. {means}\n").unwrap();
    }
    write!(
        page,
        "
## Outcomes

What happened to a pod whose verdict was `reap`.

{}",
        table("outcome", outcomes)
    )
    .unwrap();
    pages::compare(
        "docs/reasons.md",
        "<!-- reasons: made of src/judge -->\n",
        "<!-- end of reasons -->",
        &page,
    );
}
