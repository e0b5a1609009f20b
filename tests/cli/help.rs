//! Output about the program itself: help, version, completions, the manual page.

use expect_test::expect_file;
use itertools::Itertools as _;

use crate::{reaper, transcripts::plays};

#[test]
fn help_is_the_same_everywhere_and_completions_and_the_manual_page_work() {
    let help = reaper(&["--help"]).run().exits(0);
    assert_eq!(help.err, "");
    expect_file!["../data/golden/help.txt"].assert_eq(&help.out);
    plays("transcripts/help.txt");
}

#[test]
fn the_version_is_that_of_the_package() {
    for asked in ["--version", "-V", "version"] {
        let ended = reaper(&[asked]).run().exits(0);
        assert_eq!(
            ended.out,
            concat!("pod-reaper ", env!("CARGO_PKG_VERSION"), "\n")
        );
    }
}

#[test]
fn the_short_help_fits_a_screen() {
    let help = reaper(&["-h"]).run().exits(0).out;
    expect_file!["../data/golden/help-short.txt"].assert_eq(&help);
    assert!(help.lines().count() <= 40, "{} lines", help.lines().count());
}

/// Each option that the help has is in the manual page, with its text and its variable, and nothing there is blank.
#[test]
fn the_manual_page_has_every_option_with_its_text_and_variable() {
    let plain = |text: &str| {
        text.replace("\\-", "-")
            .replace("\\fB", "")
            .replace("\\fI", "")
            .replace("\\fR", "")
    };
    let page = plain(&reaper(&["man"]).run().exits(0).out);
    let sections = page.split(".SH \"POD-REAPER ").collect_vec();
    let [run, what_if, explain] = sections[..] else {
        panic!("{page}")
    };
    for (section, command) in [
        (run, &["--help"][..]),
        (what_if, &["help", "what-if"]),
        (explain, &["help", "explain"]),
    ] {
        let help = reaper(command).run().exits(0).out;
        let entries = section
            .split(".TP\n")
            .skip(1)
            .map(|entry| entry.split(".SH").next().unwrap_or_default());
        let entries = entries.filter(|entry| entry.contains("--")).collect_vec();
        // Their texts stand further to the right.
        let offered = help
            .lines()
            .filter(|line| !line.starts_with("       ") && line.trim_start().starts_with('-'));
        let options = offered.map(str::trim).collect_vec();
        assert!(options.len() > 15, "{options:?}");
        for option in &options {
            let long = option
                .split([' ', '[', '='])
                .find(|word| word.starts_with("--"))
                .expect("a name");
            let is = |entry: &&&str| {
                let head = entry.lines().next().unwrap_or_default();
                head.split([' ', '[', '=', ',']).any(|word| word == long)
            };
            let entry = entries
                .iter()
                .find(is)
                .unwrap_or_else(|| panic!("no {long} in {section}"));
            let text = entry.lines().nth(1).unwrap_or_default();
            assert!(
                text.len() > 10 && !text.starts_with('.'),
                "{long} has no text: {entry:?}"
            );
            let variable = long
                .trim_start_matches('-')
                .to_uppercase()
                .replace('-', "_");
            let said = format!("[env: {variable}]");
            assert_eq!(
                entry.contains(&format!("with the {variable} environment")),
                help.contains(&said),
                "{long}"
            );
        }
        assert_eq!(entries.len(), options.len(), "{entries:?} {options:?}");
    }
    let variables = reaper(&["--help"])
        .run()
        .exits(0)
        .out
        .matches("[env: ")
        .count();
    assert_eq!(
        run.matches("May also be specified with the").count(),
        variables
    );
}
