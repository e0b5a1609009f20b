//! The pages for readers, and the commands in them.
//!
//! The language of a fenced block determines how a test handles it:
//!
//! - `console`: each command after `$ ` is run without a cluster, and must print the lines below it.
//! - `sh`: commands that need a cluster, or change the machine. `kubectl` is run on a real API server, in the order of the page,
//!   and `pod-reaper` must accept its options. [`NOT_RUN`] names the rest.
//! - any other: shown, not run.

use std::{fs, path::PathBuf};

use expect_test::expect_file;

use crate::in_repository;

/// Commands that no test runs as a page has them: the start of the command, and the reason, or the test that runs the command in
/// another way.
pub const NOT_RUN: &str = "
    cargo install: builds the program once more; tests/run builds its package
    cargo run: `console` blocks run what this builds
    cargo test: how tests are run; they run by tests/run
    RANDOM_SEED=100 RANDOM_SECONDS=600 cargo test: for longer than CI, which runs it for a minute
    kubectl delete -k: needs the namespace controller; tests/live/deployed.rs runs it
    kubectl logs: needs a kubelet; tests/real-node reads the logs of the CronJob's pod
    until kubectl logs: needs a kubelet; tests/real-node waits for this log
    kubectl get configmap: needs a run that has deleted pods
    kubectl pod-reaper: the same binary as a plugin; tests/cli runs it under that name
    kubectl taint: printed by the program; tests/api_server/commands.rs runs it
    ln -s: tests/cli runs it where the program is found
    docker: release/test builds the Dockerfile by buildah
    kind load: needs kind; tests/real-node imports the image into containerd
    cosign: needs a published artefact
    helm: tests/api_server/chart.rs installs, tests, upgrades, rolls back and uninstalls the chart
    tar xzf: needs a release; tests/real-node installs one
    signer=: needs a release; release/test verifies one
    sha256sum: needs a release; release/test verifies one
    git clone: needs the repository's host
";

/// The message of a run that would ask before it deletes: pages are for users at a terminal.
pub const NOBODY_TO_ASK: &str = "there is no terminal to ask for confirmation";

/// A fenced block: its language and its lines.
pub struct Block {
    pub language: String,
    pub lines: Vec<String>,
}

/// README.md, and every page of the book in the order of its table of contents.
pub fn for_users() -> Vec<String> {
    let summary = fs::read_to_string(in_repository("docs/SUMMARY.md")).expect("docs/SUMMARY.md");
    let pages = summary
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'));
    let pages = pages.map(|(page, _)| format!("docs/{page}"));
    ["README.md".to_owned()].into_iter().chain(pages).collect()
}

/// Every Markdown page for readers.
pub fn all() -> Vec<String> {
    let others = [
        "docs/SUMMARY.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "tests/README.md",
        "tests/live/README.md",
        "tests/security.md",
        "charts/pod-reaper/README.md",
        "release/README.md",
        "cronjob/README.md",
        "tests/versions.md",
    ];
    for_users()
        .into_iter()
        .chain(others.map(str::to_owned))
        .collect()
}

pub fn path(page: &str) -> PathBuf {
    in_repository(page)
}

/// Compares the text in a file between `begin` and `end` with `made`. `UPDATE_EXPECT=1` rewrites it.
#[track_caller]
pub fn compare(path: &str, begin: &str, end: &str, made: &str) {
    let file = read(path);
    let (head, rest) = file.split_once(begin).expect("where it begins");
    let (_, tail) = rest.split_once(end).expect("where it ends");
    expect_file![in_repository(path)].assert_eq(&[head, begin, made, end, tail].concat());
}

#[track_caller]
pub fn read(page: &str) -> String {
    fs::read_to_string(path(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// The fenced blocks of a page.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = false;
    let mut indent = 0;
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            inside = !inside;
            indent = line.len() - line.trim_start().len();
            if inside {
                blocks.push(Block {
                    language: language.to_owned(),
                    lines: Vec::new(),
                });
            }
        } else if inside && let Some(block) = blocks.last_mut() {
            // A block in a list is indented like its item.
            block
                .lines
                .push(line.get(indent..).unwrap_or_default().to_owned());
        }
    }
    blocks
}

/// The commands of an `sh` block: its lines without comments. A line that ends in a backslash is joined with the next.
pub fn commands(block: &Block) -> Vec<String> {
    let mut commands = Vec::new();
    let mut open = String::new();
    for line in &block.lines {
        let line = line
            .split_once("  # ")
            .map_or(line.as_str(), |(command, _)| command)
            .trim_end();
        if open.is_empty() && (line.is_empty() || line.starts_with("# ")) {
            continue;
        }
        open.push_str(line);
        if open.ends_with('\\') {
            open.push('\n');
        } else {
            commands.push(std::mem::take(&mut open));
        }
    }
    assert!(open.is_empty(), "a command without an end: {open}");
    commands
}

/// The reason why no test runs this command as it is.
pub fn not_run(command: &str) -> Option<&'static str> {
    let mut rows = NOT_RUN
        .lines()
        .filter_map(|row| row.trim().split_once(": "));
    rows.find(|(start, _)| command.starts_with(start))
        .map(|(_, why)| why)
}

/// Replaces any number of lines that a page leaves out.
pub const CUT: &str = "[...]";

/// Whether `page` is `output` with some lines left out.
pub fn is_cut_from(page: &[&str], output: &[&str]) -> bool {
    match page.split_first() {
        None => output.is_empty(),
        Some((&CUT, rest)) => (0..=output.len()).any(|from| is_cut_from(rest, &output[from..])),
        Some((line, rest)) => output.first() == Some(line) && is_cut_from(rest, &output[1..]),
    }
}
