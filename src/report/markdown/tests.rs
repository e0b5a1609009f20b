//! Tests of the Markdown, parsed as GitHub's flavour.

use expect_test::expect_file;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::*;
use crate::report::{phrases, samples::*};

/// The structure and the text of a parsed page.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    headings: Vec<String>,
    /// The rows of all tables, each as a list of cells.
    rows: Vec<Vec<String>>,
    commands: Vec<String>,
    text: String,
    /// The text outside code, in which GitHub creates links and mentions.
    outside_code: String,
    /// The kinds of Markdown elements, each once, in the order of their first use.
    elements: Vec<String>,
}

fn parse(page: &str) -> Seen {
    let mut seen = Seen::default();
    let (mut heading, mut fence, mut head, mut cell, mut code) =
        (false, false, false, false, false);
    for event in Parser::new_ext(
        page,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_MATH,
    ) {
        match event {
            Event::Start(tag) => {
                let name = format!("{tag:?}")
                    .split(['(', ' ', '{'])
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                if !seen.elements.contains(&name) {
                    seen.elements.push(name);
                }
                match tag {
                    Tag::Heading { .. } => {
                        heading = true;
                        seen.headings.push(String::new());
                    }
                    Tag::CodeBlock(_) => {
                        fence = true;
                        seen.commands.push(String::new());
                    }
                    Tag::TableHead => head = true,
                    Tag::TableRow => seen.rows.push(Vec::new()),
                    Tag::TableCell if !head => {
                        cell = true;
                        if let Some(row) = seen.rows.last_mut() {
                            row.push(String::new());
                        }
                    }
                    _ => {}
                }
            }
            Event::End(tag) => match tag {
                TagEnd::Heading(_) => heading = false,
                TagEnd::CodeBlock => fence = false,
                TagEnd::TableHead => head = false,
                TagEnd::TableCell => cell = false,
                _ => {}
            },
            Event::Text(text) => {
                seen.text += &text;
                if !fence && !code {
                    seen.outside_code += &text;
                }
                put(&mut seen, heading, fence, cell, &text);
            }
            Event::Code(text) => {
                seen.text += &text;
                put(&mut seen, heading, fence, cell, &text);
            }
            Event::InlineHtml(html) => {
                assert!(["<code>", "</code>"].contains(&&*html), "{html}");
                code = &*html == "<code>";
            }
            Event::SoftBreak => seen.text.push(' '),
            other => panic!("{other:?} in {page}"),
        }
    }
    seen
}

fn put(seen: &mut Seen, heading: bool, fence: bool, cell: bool, text: &str) {
    if heading {
        seen.headings
            .last_mut()
            .expect("it was opened")
            .push_str(text);
    }
    if fence {
        seen.commands
            .last_mut()
            .expect("it was opened")
            .push_str(text);
    }
    if cell && let Some(cell) = seen.rows.last_mut().and_then(|row| row.last_mut()) {
        cell.push_str(text);
    }
}

#[test]
fn the_structure_is_as_intended() {
    let report = report(&audit(), &private_cloud(), &[]);
    let page = write(&report.page());
    expect_file!["../../../tests/data/golden/private-cloud.md"].assert_eq(&page);
    let seen = parse(&page);
    assert_eq!(
        seen.headings,
        [
            "AUDIT of state.json, judged at 2026-01-31 03:00Z. Nothing was changed. Exit code 3.",
            "Needs you: 4",
            "impala-impala01/impala-executor-000-0",
            "impala-impala01/statestored-0",
            "compute-hive01/held-0",
            "vault/web-0",
            "What to do about the nodes",
            "To be reaped: 4",
            "Afterwards",
            "Nodes not ready: 2 of 7",
            "Waiting: 2",
            "Left alone: 2",
            "Not read: 1",
            "What the words mean"
        ]
    );
    let mut expected = commands(&report)
        .iter()
        .map(|command| format!("{command}\n"))
        .collect::<Vec<_>>();
    let mut printed = seen.commands.clone();
    expected.sort();
    printed.sort();
    assert_eq!(printed, expected);
    let cells = seen.rows.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(cells, [vec![6; 4], vec![5; 2], vec![6; 2 + 2]].concat());
}

#[test]
fn a_run_with_every_outcome() {
    let seen = parse(&write(&every_outcome().page()));
    let rows = seen
        .rows
        .iter()
        .filter(|row| row.len() == 6)
        .map(|row| format!("{} {}", row[0], row[4]));
    // Failures come first.
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            "app/c-0 changed",
            "app/d-0 node-recovered",
            "app/e-0 node-changed",
            "app/f-0 denied",
            "app/g-0 failed",
            "app/h-0 still-there",
            "app/i-0 unverified",
            "app/j-0 interrupted",
            "app/a-0 deleted",
            "app/b-0 gone"
        ]
    );
}

/// Kubernetes allows none of these names, but annotations, messages and snapshots can
/// hold any text.
#[test]
fn no_name_becomes_markup_or_a_mention() {
    let plain = parse(&write(&report_with("plain").page()));
    for name in [
        "a|b",
        "a`b",
        "``",
        "`a`",
        "a\\|b",
        "a\\",
        "\\`",
        "<b>x</b>",
        "<!-- x",
        "@everyone",
        "a@b",
        "#1",
        "o/r#1",
        "GH-1",
        "*a*",
        "_a_",
        "__a__",
        "~~a~~",
        "~a~",
        "[a](b)",
        "![a](b)",
        "<https://a.b>",
        "https://a.b",
        "www.a.b",
        "$a$",
        "$$a$$",
        "&lt;",
        "&#64;all",
        "a\nb",
        "# a",
        "- a",
        "1. a",
        "> a",
        "+ a",
        "=",
        "---",
        "    a",
        "\ta",
        "```",
        "````",
        "```sh",
        ":a",
        "|",
        "||",
        "| --- |",
        "a\r\nb",
        "é",
        "\u{202e}a",
    ] {
        let report = report_with(name);
        let page = write(&report.page());
        let seen = parse(&page);
        assert_eq!(
            seen.elements, plain.elements,
            "{name:?} changes the structure of\n{page}"
        );
        assert_eq!(
            seen.headings.len(),
            plain.headings.len(),
            "{name:?}\n{page}"
        );
        let shape = |seen: &Seen| seen.rows.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(shape(&seen), shape(&plain), "{name:?}\n{page}");
        let mut expected = commands(&report)
            .into_iter()
            .map(|command| phrases::lines(command).join("\n"))
            .collect::<Vec<_>>();
        expected.sort();
        let mut printed = seen
            .commands
            .iter()
            .map(|command| command.trim_end_matches('\n').to_owned())
            .collect::<Vec<_>>();
        printed.sort();
        assert_eq!(printed, expected, "{name:?}\n{page}");
        for calls in ["@", "#", "$", "://", "www.", "GH-"] {
            assert!(
                !seen.outside_code.contains(calls),
                "{name:?}: {calls} outside of code in\n{page}"
            );
        }
        // The cells have the name unchanged, except for spaces at the ends, which a table drops.
        let cell = &seen.rows[0][0];
        assert_eq!(*cell, sanitize(&format!("{name}/{name}")), "{page}");
    }
}
