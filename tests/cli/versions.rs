//! The program's version, in every file that names it.

use jiff::civil::Date;
use std::{fs, path::Path};

use pod_reaper_test_support::pages;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Each line that names the version, in files that have no other line like it.
#[test]
fn all_files_name_one_version() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (file, line) in [
        ("Cargo.lock", "name = \"pod-reaper\"\nversion = \"{}\"\n"),
        ("charts/pod-reaper/Chart.yaml", "\nversion: {}\n"),
        ("charts/pod-reaper/Chart.yaml", "\nappVersion: {}\n"),
        ("cronjob/base/kustomization.yaml", "\n  newTag: {}\n"),
        (
            "cronjob/base/kustomization.yaml",
            "app.kubernetes.io/version: {}\n",
        ),
    ] {
        let line = line.replace("{}", VERSION);
        let text = fs::read_to_string(root.join(file)).expect("a file");
        assert!(text.contains(&line), "{file} has no line {line:?}");
    }
    let changes = pages::read("CHANGELOG.md");
    let mut sections = changes
        .lines()
        .filter(|line| line.starts_with("## ") && *line != "## Unreleased");
    let newest = sections.next().expect("a section");
    let date = newest.strip_prefix(&format!("## [{VERSION}] - "));
    assert!(
        date.is_some_and(|date| date.parse::<Date>().is_ok()),
        "the newest section is {newest:?}"
    );
}

/// A measurement keeps the version that was measured.
#[test]
fn every_page_names_this_version() {
    let measured = ["docs/evidence.md", "CHANGELOG.md"];
    for page in pages::all()
        .iter()
        .filter(|page| !measured.contains(&page.as_str()))
    {
        let text = pages::read(page);
        for after in text.split("pod-reaper").skip(1) {
            let version = after.trim_start_matches([' ', ':', '-']);
            let end = version.find(|sign: char| !sign.is_ascii_digit() && sign != '.');
            let version = version[..end.unwrap_or(0)].trim_end_matches('.');
            assert!(
                version.split('.').count() != 3 || version == VERSION,
                "{page} names {version}"
            );
        }
    }
}
