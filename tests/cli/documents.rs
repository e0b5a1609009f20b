//! Compares the page about security and the scripts with the tests, and the golden files with the program.

use itertools::Itertools as _;
use std::{collections::HashMap, process::Command};

use expect_test::expect_file;
use pod_reaper_test_support::pages;
use serde_json::Value;

use crate::reaper;

/// Each function of the sources, by the path of its module and its name, and whether it is a test. `src/decide/tests.rs` and
/// `src/decide/mod.rs` are `src::decide`.
fn functions() -> HashMap<String, bool> {
    let listed = Command::new("grep")
        .args([
            "-rE",
            "--include=*.rs",
            r"^ *(#\[(tokio::)?test\b|(pub |async )*fn )",
            "tests",
            "src",
            "rules",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    let listed = String::from_utf8(listed.expect("grep").stdout).expect("text");
    let pairs = listed.lines().tuple_windows();
    let functions = pairs.filter_map(|(before, line)| {
        let (path, function) = line.split_once(".rs:")?;
        let (_, name) = function.split_once("fn ")?;
        let name = name.split(['(', '<']).next()?;
        let is_test = before.contains("#[") && before.starts_with(path);
        let ends = ["/tests", "/mod", "/main"].iter();
        let path = ends.fold(path, |path, end| path.trim_end_matches(end));
        Some((format!("{}::{name}", path.replace('/', "::")), is_test))
    });
    functions.collect()
}

/// Without its test, a statement is no longer verified.
#[test]
fn each_statement_of_the_security_page_has_its_tests() {
    let functions = functions();
    let page = pages::read("docs/security.md");
    let rows = pages::read("tests/security.md");
    let rows = rows.lines().filter_map(|line| {
        let line = line.strip_prefix("| ")?.strip_suffix(" |")?;
        line.split_once(" | ")
    });
    let rows = rows.skip(2).collect_vec();
    let one_line = page.split_whitespace().join(" ");
    for (statement, tests) in &rows {
        assert_eq!(one_line.matches(statement).count(), 1, "{statement}");
        for name in tests.split(", ").map(|name| name.trim_matches('`')) {
            let end = format!("::{name}");
            let is_there = functions.keys().any(|function| function.ends_with(&end));
            assert!(is_there, "{name} is not there");
        }
    }
    let (listed, _) = page.split_once("\n## What an attacker gains").expect("it");
    for statement in listed.split("\n- ").skip(1) {
        let statement = statement.split_whitespace().join(" ");
        let mut rows = rows.iter();
        assert!(
            rows.any(|(row, _)| statement.starts_with(row)),
            "no test for: {statement}"
        );
    }
}

/// A test program takes a name that selects no test for a success.
#[test]
fn every_test_that_a_script_names_is_there() {
    // The words between two texts, without the lines that are comments.
    let words = |file: &str, before: &str, after: &str| {
        let text = pages::read(file);
        let (_, rest) = text.split_once(before).expect(before);
        let (list, _) = rest.split_once(after).expect(after);
        let lines = list.lines().filter(|line| !line.trim().starts_with('#'));
        let words = lines.flat_map(str::split_whitespace).map(str::to_owned);
        words.collect_vec()
    };
    let mut modules = words("tests/versions", "\nmodules=(", ")");
    for module in &mut modules {
        module.push_str("::");
    }
    let named = [
        ("api_server", modules),
        ("live", words("tests/versions", "\nscenarios=(", ")")),
        ("api_server", words("tests/run", "without_go=(--skip ", ")")),
        (
            "api_server",
            words(
                "tests/run",
                "\"oldest Kubernetes\" oldest_kubernetes ",
                "\n",
            ),
        ),
    ];
    let functions = functions();
    for (program, names) in named {
        assert!(!names.is_empty());
        let start = format!("tests::{program}::");
        for name in names {
            let is_there = functions.iter().any(|(function, is_test)| {
                let function = function.strip_prefix(&start);
                *is_test && function.is_some_and(|function| function.contains(&name))
            });
            assert!(is_there, "{program} has no test {name}");
        }
    }
}

/// The first command of the README, in each format. What the pages show of it is compared in `book`.
#[test]
fn the_first_command_of_the_readme_and_each_other_format() {
    let run = |form: &str| {
        let mut run = reaper(&["--snapshot", "tests/data/six-nodes.json", "--output", form]);
        run.command.current_dir(env!("CARGO_MANIFEST_DIR"));
        run.run().exits(0).out
    };
    let help = reaper(&["--help"]).run().exits(0).out;
    let forms = help
        .split("--output <")
        .nth(1)
        .and_then(|rest| rest.split('>').next());
    let forms = forms.expect("its formats").split('|');
    // These two are compared with each other.
    for form in forms.filter(|form| !["json", "html"].contains(form)) {
        expect_file![format!("../data/golden/six-nodes.{form}")].assert_eq(&run(form));
    }
    let page = run("html");
    assert!(
        page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">") && page.ends_with("</html>\n"),
        "{page}"
    );
    let report = serde_json::from_str::<Value>(&run("json")).expect("JSON");
    for pod in report["pods"].as_array().expect("pods") {
        let name = format!("<wbr><b>{}</b>", pod["name"].as_str().expect("a name"));
        assert!(page.contains(&name), "{name} is missing");
    }
}

/// The number between two texts, the first of which occurs once.
fn between(text: &str, before: &str, after: &str) -> u64 {
    let number = text.split(before).nth(1).expect(before).split(after).next();
    number.expect(after).parse().expect("a number")
}

/// From the program's threshold, the CronJob's schedule, and the defaults of Kubernetes.
#[test]
fn the_picture_of_a_failure_has_the_numbers_of_the_program_and_so_have_the_pages() {
    let help = reaper(&["--help"]).run().exits(0).out;
    let threshold = between(&help, "[env: REAP_OLDER_THAN]\n          [default: ", "m]");
    let schedule = between(
        &pages::read("cronjob/base/cronjob.yaml"),
        "schedule: \"*/",
        " ",
    );
    // The controller manager's grace period, and a pod's own toleration and grace period.
    let (not_ready, toleration, grace) = (50, 300, 30);
    let evicted = not_ready + toleration;
    let stuck = evicted + grace;
    let reaped = stuck + threshold * 60;
    let latest = reaped + schedule * 60;
    let times = [0, not_ready, evicted, stuck, reaped, latest];
    let said = times.map(|time| match (time / 60, time % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    });
    let places = times.map(|time| (190 + time * 9 / 20).to_string());
    let mut picture = pages::read("tests/data/failure.svg");
    for ((said, place), number) in said.iter().zip(&places).zip(0..) {
        picture = picture.replace(&format!("{{said{number}}}"), said);
        picture = picture.replace(&format!("{{x{number}}}"), place);
    }
    expect_file!["../../docs/failure.svg"].assert_eq(&picture);
    for page in ["README.md", "docs/when-nodes-die.md"] {
        let page = pages::read(page);
        for said in &said {
            assert!(page.contains(said), "{said} is not in {page}");
        }
    }
    assert!(pages::read("docs/downtime.md").contains(&said[5]));
}

/// A dangerous mutant that cannot be made any more would be found only where `scripts/mutants` runs.
#[test]
fn each_kept_mutant_can_be_made() {
    let list = pages::read("scripts/mutants-kept.txt");
    let rows = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut lost = Vec::new();
    for row in rows.clone() {
        let (file, row) = row.split_once(": ").expect(row);
        let (old, _) = row.split_once(" →").expect(row);
        let times = pages::read(file).matches(&old.replace("\\n", "\n")).count();
        if times != 1 {
            lost.push(format!("{times} times in {file}: {old}"));
        }
    }
    assert!(rows.count() >= 30 && lost.is_empty(), "{lost:#?}");
}
