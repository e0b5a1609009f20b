//! Compares the page about security and the list of mutants with the sources, and the golden files with the program.

use itertools::Itertools as _;
use std::process::Command;

use expect_test::expect_file;
use pod_reaper_test_support::pages;

use crate::reaper;

/// Without its test, a statement is no longer verified.
#[test]
fn each_statement_of_the_security_page_has_its_tests() {
    let mut grep = Command::new("grep");
    grep.args(["-rhoE", "--include=*.rs", "fn [a-z0-9_]+", "tests", "src"]);
    let functions = grep.current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let functions = String::from_utf8(functions.expect("grep").stdout).expect("text");
    let page = pages::read("docs/security.md");
    let rows = pages::read("tests/security.md");
    let rows = rows.lines().filter_map(|line| {
        let line = line.strip_prefix("| ")?.strip_suffix(" |")?;
        line.split_once(" | ")
    });
    let rows = rows.skip(2).collect_vec();
    for (statement, tests) in &rows {
        for test in tests.split(", ").map(|name| name.trim_matches('`')) {
            let (_, name) = test.rsplit_once("::").expect(test);
            let is_there = functions.contains(&format!("fn {name}\n"));
            assert!(is_there, "{statement}: {test} is not there");
        }
    }
    let stated = page.split("- **S").skip(1);
    let stated = stated.filter_map(|rest| rest.split_once("** "));
    let stated = stated.map(|(number, _)| format!("S{number}"));
    let listed = rows.iter().map(|(statement, _)| (*statement).to_owned());
    assert_eq!(stated.collect_vec(), listed.collect_vec());
    let (sections, _) = page
        .split_once("\n## The account")
        .expect("what it does at most");
    for statement in sections.split("\n- ").skip(1) {
        assert!(statement.starts_with("**S"), "without an id: {statement}");
    }
}

/// The states that are shipped, and what the program says about them.
#[test]
fn each_shipped_state_has_a_file_to_read() {
    for (args, golden) in [
        ("--snapshot six-nodes.json", "six-nodes.text"),
        (
            "--snapshot kosmos-link-cut.json --now 2026-11-20T22:00:36Z --reap-older-than=3s",
            "kosmos-link-cut.txt",
        ),
        (
            "explain impala-impala01/impala-executor-000-0 --snapshot six-nodes.json",
            "explain-local-volume.txt",
        ),
    ] {
        let ended = reaper(&args.split(' ').collect_vec()).run().exits(0);
        expect_file![format!("../data/golden/{golden}")].assert_eq(&ended.out);
    }
}

/// Every report has the form that the schema in docs/ says.
#[test]
fn every_report_is_what_the_schema_says() {
    let schema = serde_json::from_str(&pages::read("docs/report.schema.json")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for args in [
        &[][..],
        &["explain", "vault/vault-0"],
        &["explain", "compute-hive02/hiveserver2-0"],
    ] {
        let file = ["--snapshot", "six-nodes.json", "-o", "json"];
        let report = reaper(&[args, &file].concat()).run().exits(0).report();
        let errors = validator.iter_errors(&report);
        let errors = errors.map(|error| error.to_string()).collect_vec();
        assert!(errors.is_empty(), "{args:?}: {errors:?}");
    }
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
