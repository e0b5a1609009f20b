//! Output about the program itself: help, version, completions, the manual page.

use std::os::unix::process::CommandExt as _;

use expect_test::expect_file;
use itertools::Itertools as _;

use crate::{reaper, transcripts::plays};

#[test]
fn a_shell_completes_and_the_manual_page_renders() {
    plays("transcripts/help.txt");
    for (shell, defines) in [
        ("zsh", "#compdef pod-reaper"),
        ("fish", "complete -c pod-reaper"),
    ] {
        let script = reaper(&["completions", shell]).run().exits(0).out;
        for word in [defines, "explain", "kubeconfig"] {
            assert!(script.contains(word), "{shell} lacks {word}: {script}");
        }
    }
}

#[test]
fn the_help_is_a_file_to_read() {
    let help = reaper(&["--help"]).run().exits(0);
    expect_file!["../data/golden/help.txt"].assert_eq(&help.out);
}

/// A broken environment changes nothing, and no text has the value of a variable.
#[test]
fn what_is_printed_of_the_program_is_the_same_whatever_a_run_is_told() {
    let told = [
        ("NAMESPACE_REGEX", "^MARKER-"),
        ("DRY_RUN", "client"),
        ("DRY_RUN", "maybe"),
        ("REAP_OLDER_THAN", "10"),
        ("REAP_OLDER_THAN", ""),
        ("POD_REAPER_SETTINGS", "/nowhere"),
    ];
    for command in [
        &["--help"][..],
        &["-h"],
        &["help"],
        &["help", "explain"],
        &["man"],
        &["completions", "bash"],
        &["version"],
    ] {
        let plain = reaper(command).run().exits(0);
        assert!(!plain.out.is_empty() && plain.err.is_empty(), "{command:?}");
        let by_variable = told.map(|(name, value)| reaper(command).env(name, value));
        let by_file = reaper(command).settings(&[("REAP_OLDER_THAN", "10")]);
        for run in by_variable.into_iter().chain([by_file]) {
            let told = format!("{:?}", run.command);
            let ended = run.run().exits(0);
            assert_eq!(
                (ended.out, ended.err),
                (plain.out.clone(), String::new()),
                "{told}"
            );
        }
    }
}

#[test]
fn kubectl_finds_the_program_and_the_program_answers_by_that_name() {
    for name in ["kubectl-pod_reaper", "/usr/local/bin/kubectl-pod_reaper"] {
        for args in [&["--help"][..], &["explain", "--help"]] {
            let mut run = reaper(args);
            run.command.arg0(name);
            let help = run.run().exits(0).out;
            assert!(
                help.contains("Usage: kubectl pod-reaper"),
                "{name} {args:?}: {help}"
            );
        }
    }
}

#[test]
fn the_help_of_a_command_can_be_asked_for_in_two_ways() {
    for command in ["explain", "man"] {
        let [first, second] =
            [["help", command], [command, "--help"]].map(|args| reaper(&args).run().exits(0).out);
        assert_eq!(first, second);
    }
}

#[test]
fn the_help_of_a_question_offers_only_what_the_question_does() {
    let explain = reaper(&["help", "explain"]).run().exits(0).out;
    for (option, is_offered) in [
        ("<text|json|html>", true),
        ("--reap-older-than <", true),
        ("--max-deletes", true),
        ("--deadline", true),
        ("--dry-run", false),
    ] {
        assert_eq!(explain.contains(option), is_offered, "{option}: {explain}");
    }
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
    let [run, explain] = sections[..] else {
        panic!("{page}")
    };
    for (section, command) in [(run, &["--help"][..]), (explain, &["help", "explain"])] {
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
