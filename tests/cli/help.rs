//! Output about the program itself: help, version, completions, the manual page.

use std::{fs, process::Command};

use expect_test::expect_file;
use tempfile::TempDir;

use crate::reaper;

#[test]
fn help_is_the_same_everywhere_and_shows_no_value() {
    let help = reaper(&["--help"]).run().exits(0);
    assert_eq!(help.err, "");
    expect_file!["../data/golden/help.txt"].assert_eq(&help.out);

    let set = reaper(&["--help"])
        .env("NAMESPACE_REGEX", "^secret-")
        .env("DRY_RUN", "client")
        .run()
        .exits(0);
    assert_eq!(set.out, help.out);
    let short = reaper(&["-h"])
        .env("NAMESPACE_REGEX", "^secret-")
        .run()
        .exits(0)
        .never_prints("secret");
    assert!(
        short.out.contains("Usage: pod-reaper [OPTIONS]"),
        "{}",
        short.out
    );
    // Help must work in a broken environment, in which a user needs it most.
    let wrong = reaper(&["--help"]).env("DRY_RUN", "maybe").run().exits(0);
    assert_eq!(wrong.out, help.out);
}

#[test]
fn help_does_not_depend_on_empty_variables() {
    let help = reaper(&["--help"]).run().exits(0);
    assert_eq!(
        reaper(&["--help"])
            .env("REAP_OLDER_THAN", "")
            .run()
            .exits(0)
            .out,
        help.out
    );
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
fn kubectl_finds_it_and_it_answers_by_that_name() {
    let bin = TempDir::new().expect("a folder");
    let plugin = bin.path().join("kubectl-pod_reaper");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pod-reaper"), &plugin).expect("a link");
    for args in [&["--help"][..], &["what-if", "--help"]] {
        let output = Command::new(&plugin)
            .args(args)
            .env_clear()
            .output()
            .expect("it starts");
        let says = String::from_utf8_lossy(&output.stdout);
        assert!(says.contains("Usage: kubectl pod-reaper"), "{says}");
    }
}

#[test]
fn the_short_help_fits_a_screen() {
    let help = reaper(&["-h"]).run().exits(0).out;
    expect_file!["../data/golden/help-short.txt"].assert_eq(&help);
    assert!(help.lines().count() <= 40, "{} lines", help.lines().count());
}

/// Runs in a real shell, as when a person presses Tab.
#[test]
fn completion_works_in_bash() {
    let script = reaper(&["completions", "bash"]).run().exits(0).out;
    let dir = TempDir::new().expect("a folder");
    let file = dir.path().join("pod-reaper.bash");
    fs::write(&file, script).expect("a file");
    let complete = |words: &str, at: usize| {
        let line = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD={at}; by=$(complete -p pod-reaper); by=${{by#*-F }}; \
             ${{by%% *}} pod-reaper \"${{COMP_WORDS[{at}]}}\" \"${{COMP_WORDS[{at}-1]}}\"; echo \"${{COMPREPLY[@]}}\"",
            file.display()
        );
        let output = Command::new("bash")
            .args(["-c", &line])
            .output()
            .expect("bash starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(complete("pod-reaper wh", 1).contains("what-if"));
    assert!(complete("pod-reaper --dry", 1).contains("--dry-run"));
    assert!(complete("pod-reaper what-if --no", 2).contains("--node"));
    for shell in ["zsh", "fish"] {
        let script = reaper(&["completions", shell]).run().exits(0).out;
        assert!(
            script.contains("what-if") && script.contains("kubeconfig"),
            "{shell}"
        );
    }
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
    let sections = page.split(".SH \"POD-REAPER ").collect::<Vec<_>>();
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
        let entries = entries
            .filter(|entry| entry.contains("--"))
            .collect::<Vec<_>>();
        // Their texts stand further to the right.
        let offered = help
            .lines()
            .filter(|line| !line.starts_with("       ") && line.trim_start().starts_with('-'));
        let options = offered.map(str::trim).collect::<Vec<_>>();
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

#[test]
fn the_manual_page_renders() {
    let run = reaper(&["man"]).run().exits(0);
    let home = TempDir::new().expect("a folder");
    let file = home.path().join("pod-reaper.1");
    fs::write(&file, run.out).expect("a file");
    let mut man = Command::new("man");
    man.args(["--warnings", "-l"])
        .arg(&file)
        .env("MANWIDTH", "100")
        .env("LC_ALL", "C.UTF-8");
    let output = man.output().expect("man starts (apt-get install man-db)");
    let (page, warnings) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success() && warnings.is_empty(), "{warnings}");
    for part in [
        "NAME",
        "--dry-run",
        "POD-REAPER WHAT-IF",
        "--node",
        "POD-REAPER EXPLAIN",
    ] {
        assert!(page.contains(part), "no {part} in:\n{page}");
    }
}
