//! The program's version, in every file that names it.

use itertools::Itertools as _;
use jiff::civil::Date;
use std::{fs, path::Path};

use pod_reaper_test_support::pages;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Each line that names the version, in files that have no other line like it.
#[test]
fn all_files_name_one_version() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let locked = "name = \"pod-reaper\"\nversion = \"{}\"\n";
    for (file, line) in [
        ("Cargo.lock", locked),
        ("fuzz/Cargo.lock", locked),
        ("rules/Cargo.toml", "\nversion = \"{}\"\n"),
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

/// What was measured keeps the version that it was measured with.
#[test]
fn every_page_names_this_version() {
    let mut named = 0;
    for page in pages::all() {
        if ["docs/evidence.md", "CHANGELOG.md"].contains(&page.as_str()) {
            continue;
        }
        let text = pages::read(&page);
        for (at, name) in text.match_indices("pod-reaper") {
            // Others have the name in theirs, such as terminating-pod-reaper.
            let ours = !text[..at].ends_with(['-', '/']) || text[..at].ends_with("dist/");
            let version = text[at + name.len()..].get(1..).unwrap_or_default();
            let version = version
                .split(|sign: char| !sign.is_ascii_digit() && sign != '.')
                .next()
                .unwrap_or_default();
            let version = version.trim_end_matches('.');
            if ours && version.split('.').count() == 3 {
                assert_eq!(version, VERSION, "{page}");
                named += 1;
            }
        }
    }
    assert!(named > 2, "only {named} were found");
}

/// The CI runs on the newest and on the oldest supported Kubernetes of the table, and no row has a failure.
#[test]
fn the_table_of_kubernetes_begins_and_ends_with_the_versions_of_the_ci() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(root.join(file)).expect("a file");
    let built = |file: &str| {
        let module = read(&format!("scripts/controlplane/kubernetes/{file}"));
        let version = module
            .lines()
            .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes v"));
        version.expect("Kubernetes").to_owned()
    };
    let page = read("tests/versions.md");
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| 1."))
        .collect_vec();
    let supported = rows.iter().filter_map(|row| row.split(' ').nth(1));
    let supported = supported.collect_vec();
    let (oldest, newest) = (built("v1.30.mod"), built("go.mod"));
    assert_eq!(
        (supported.first(), supported.last()),
        (Some(&oldest.as_str()), Some(&newest.as_str()))
    );
    for version in [&oldest, &newest] {
        assert!(
            page.contains(&format!(", {version}")),
            "the text names another version than {version}"
        );
    }
    assert!(!page.contains("failed"), "{rows:#?}");
    let (minor, _) = newest.rsplit_once('.').expect("a minor version");
    assert!(pages::read("docs/releases.md").contains(&format!("to {minor}.**")));
}
