//! Compares the page about security with the tests, and the golden files with the program.

use std::{collections::BTreeSet, fs, path::Path};

use expect_test::expect_file;
use serde_json::Value;

use crate::reaper;

/// Without its test, a claim is no longer verified.
#[test]
fn every_test_that_the_security_page_names_is_there() {
    fn functions(folder: &Path, of: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                functions(&path, of);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            // `src/decide/tests.rs` and `src/decide/mod.rs` are known as `decide`.
            let name = path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            let folder = path
                .parent()
                .and_then(Path::file_name)
                .expect("a folder")
                .to_string_lossy();
            let module = if ["tests", "mod", "main"].contains(&name.as_str()) {
                folder.as_ref()
            } else {
                &name
            };
            let text = fs::read_to_string(&path).expect("text");
            let names = text
                .lines()
                .filter_map(|line| line.trim_start().strip_prefix("fn ")?.split_once('('));
            of.extend(names.map(|(function, _)| format!("{module}::{function}")));
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut there = BTreeSet::new();
    functions(&root.join("tests"), &mut there);
    functions(&root.join("src"), &mut there);
    functions(&root.join("rules"), &mut there);
    let page = fs::read_to_string(root.join("docs/security.md")).expect("the page");
    let named = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.contains("::") && *word != "a::b");
    let named = named.collect::<Vec<_>>();
    assert!(named.len() > 20, "{named:?}");
    for test in named {
        assert!(there.contains(test), "{test} is not there");
    }
}

/// The first command of the README. What the pages show of it is compared in `book`.
#[test]
fn the_first_command_of_the_readme() {
    let mut run = reaper(&["--snapshot", "tests/data/six-nodes.json"]);
    run.command.current_dir(env!("CARGO_MANIFEST_DIR"));
    expect_file!["../data/golden/six-nodes.txt"].assert_eq(&run.run().exits(0).out);
}

/// The book has both commands.
#[test]
fn the_same_run_as_markdown_and_as_a_page() {
    let run = |form| {
        let mut run = reaper(&["--snapshot", "tests/data/six-nodes.json", "--output", form]);
        run.command.current_dir(env!("CARGO_MANIFEST_DIR"));
        run.run().exits(0).out
    };
    expect_file!["../data/golden/six-nodes.md"].assert_eq(&run("markdown"));
    let page = run("html");
    assert!(
        page.starts_with("<!DOCTYPE html><html lang=\"en\">") && page.ends_with("</html>\n"),
        "{page}"
    );
    let report = serde_json::from_str::<Value>(&run("json")).expect("JSON");
    for pod in report["pods"].as_array().expect("pods") {
        let name = format!("<wbr><b>{}</b>", pod["name"].as_str().expect("a name"));
        assert!(page.contains(&name), "{name} is missing");
    }
}
