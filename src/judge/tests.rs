//! The parts of docs/decisions.md that are generated from the tables of rules and
//! codes.

use std::fmt::Write;

use itertools::Itertools as _;
use pod_reaper_test_support::pages;

use crate::{
    judge::{
        ReasonCode, Verdict,
        rules::{LIFE_RULES, NODE_RULES, PASSED_ALL, STORAGE_RULES, rules},
    },
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

/// The text with each of the program's options as code.
fn with_options_quoted(text: &str) -> String {
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let option = word.trim_end_matches(|letter: char| !letter.is_ascii_lowercase());
        if word.starts_with("--") {
            format!("`{option}`{}", &word[option.len()..])
        } else {
            word.to_owned()
        }
    });
    words.collect()
}

#[test]
fn the_page_of_reasons_is_current() {
    let verdicts = Verdict::ALL.map(|verdict| (verdict.as_str(), verdict.means()));
    let outcomes = OutcomeCode::ALL.map(|code| (code.as_str(), code.means()));
    let mut page = format!("{}\n## Reasons\n", table("verdict", verdicts));
    for code in ReasonCode::ALL {
        let (verdict, means) = (code.verdict(), code.means());
        let means = with_options_quoted(means);
        let by_rules = (1..)
            .zip(rules())
            .filter(|(_, rule)| rule.gives.contains(&code))
            .map(|(number, _)| number);
        let last = (code == ReasonCode::Stuck).then(|| rules().count() + 1);
        let by = by_rules.chain(last).collect::<Vec<_>>();
        let by = match by.as_slice() {
            [] => "Limit".to_owned(),
            [number] => format!("Rule {number}"),
            [first @ .., last] => format!("Rules {} and {last}", first.iter().format(", ")),
        };
        write!(page, "\n### `{code}`\n\n{by}, `{verdict}`. {means}\n").unwrap();
    }
    write!(
        page,
        "
## Outcomes

These say what became of a pod with the verdict `reap`:

{}",
        table("outcome", outcomes)
    )
    .unwrap();
    pages::compare(
        "docs/decisions.md",
        "<!-- reasons: made of src/judge -->\n",
        "<!-- end of reasons -->",
        &page,
    );
}

#[test]
fn the_table_of_rules_is_current() {
    let tables = [
        ("with nodes and pods", NODE_RULES),
        ("with signs of life", LIFE_RULES),
        ("with storage", STORAGE_RULES),
    ];
    let of_tables = tables.into_iter().flat_map(|(facts, rules)| {
        let first = format!("*{facts}:* ");
        let facts = [first].into_iter().chain(std::iter::repeat(String::new()));
        let rows = rules.iter().map(|rule| (rule.asks, rule.gives));
        facts.zip(rows)
    });
    let last = (String::new(), (PASSED_ALL, &[ReasonCode::Stuck][..]));
    let mut table = String::new();
    for (number, (facts, (asks, gives))) in (1..).zip(of_tables.chain([last])) {
        let asks = with_options_quoted(asks);
        let verdict = match gives[0].verdict() {
            Verdict::Manual => "needs you",
            Verdict::Reap => "**reap**",
            verdict => verdict.as_str(),
        };
        let codes = gives.iter().map(|code| format!("`{code}`"));
        let codes = codes.format(", ");
        writeln!(table, "| {number} | {facts}{asks} | {verdict}, {codes} |").unwrap();
    }
    pages::compare(
        "docs/decisions.md",
        "| # | the rule asks | if so |\n| --- | --- | --- |\n",
        "\n[Three in the morning]",
        &table,
    );
}
