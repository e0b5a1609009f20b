//! The parts of docs/reasons.md and docs/decisions.md that are generated from the tables of rules and
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

#[test]
fn the_page_of_reasons_is_current() {
    let verdicts = Verdict::ALL.map(|verdict| (verdict.as_str(), verdict.means()));
    let outcomes = OutcomeCode::ALL.map(|code| (code.as_str(), code.means()));
    let mut page = format!("{}\n## Reasons\n", table("verdict", verdicts));
    for code in ReasonCode::ALL {
        let (verdict, means) = (code.verdict(), code.means());
        let rule = rules().position(|rule| rule.gives.contains(&code));
        let last = (code == ReasonCode::Stuck).then(|| rules().count());
        let by = rule.or(last);
        let by = by.map_or("Limit".to_owned(), |place| format!("Rule {}", place + 1));
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
        let asks = asks.split(' ').map(|word| {
            let option = word.trim_end_matches('?');
            let quoted = format!("`{option}`{}", &word[option.len()..]);
            if word.starts_with("--") {
                quoted
            } else {
                word.to_owned()
            }
        });
        let verdict = match gives[0].verdict() {
            Verdict::Manual => "needs you",
            Verdict::Reap => "**reap**",
            verdict => verdict.as_str(),
        };
        let codes = gives.iter().map(|code| format!("`{code}`"));
        let (asks, codes) = (asks.format(" "), codes.format(", "));
        writeln!(table, "| {number} | {facts}{asks} | {verdict}, {codes} |").unwrap();
    }
    pages::compare(
        "docs/decisions.md",
        "| # | the rule asks | if so |\n| --- | --- | --- |\n",
        "\n[Reasons](reasons.md) has",
        &table,
    );
}
