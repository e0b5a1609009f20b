//! Output about the program itself: help, version, completions.

use std::os::unix::process::CommandExt as _;

use expect_test::expect_file;

use crate::{reaper, transcripts::plays};

#[test]
fn a_shell_completes() {
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
        ("DRY_RUN", "true"),
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
        &["completions", "bash"],
    ] {
        let plain = reaper(command).run().exits(0);
        assert!(!plain.out.is_empty() && plain.err.is_empty(), "{command:?}");
        let by_variable = told.map(|(name, value)| reaper(command).env(name, value));
        for run in by_variable {
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
    for command in ["explain", "completions"] {
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
    for asked in ["--version", "-V"] {
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
