//! The program's version, in every file that names it.

use itertools::Itertools as _;
use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use pod_reaper_test_support::pages;
use tempfile::TempDir;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The files that `release/versions` compares.
const FILES: [&str; 7] = [
    "Cargo.toml",
    "Cargo.lock",
    "fuzz/Cargo.lock",
    "rules/Cargo.toml",
    "charts/pod-reaper/Chart.yaml",
    "cronjob/base/kustomization.yaml",
    "CHANGELOG.md",
];

const UNCHANGED: (&str, &str, &str) = ("", "", "");

/// What a script of `release/` says of a copy of these files, one of which is changed: its output, or its error.
fn run(script: &str, change: (&str, &str, &str), tag: Option<&str>) -> Result<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = TempDir::new().expect("a folder");
    let (changed, from, to) = change;
    for file in FILES {
        let mut text = fs::read_to_string(root.join(file)).expect("a file");
        if file == changed {
            assert!(text.contains(from), "{file} has no {from:?}");
            text = text.replacen(from, to, 1);
        }
        let copy = folder.path().join(file);
        fs::create_dir_all(copy.parent().expect("a folder")).expect("a folder");
        fs::write(copy, text).expect("a copy");
    }
    // No copies: a file that was written a moment ago cannot always be run, because another test may still have it open.
    fs::create_dir(folder.path().join("release")).expect("a folder");
    for script in ["release/versions", "release/build", "release/published"] {
        symlink(root.join(script), folder.path().join(script)).expect("a link");
    }
    let ended = Command::new(folder.path().join(script))
        .args(tag)
        .output()
        .expect("bash");
    let text = |bytes| {
        String::from_utf8(bytes)
            .expect("text")
            .trim_end()
            .to_owned()
    };
    if ended.status.success() {
        Ok(text(ended.stdout))
    } else {
        Err(text(ended.stderr))
    }
}

#[test]
fn all_versions_agree_and_a_tag_without_its_section_in_the_changelog_is_refused() {
    let tag = format!("v{VERSION}");
    assert_eq!(
        run("release/versions", UNCHANGED, None).as_deref(),
        Ok(VERSION)
    );
    assert_eq!(
        run("release/versions", UNCHANGED, Some(&tag)).as_deref(),
        Ok(VERSION)
    );
    let error = run("release/build", UNCHANGED, None).expect_err("there is no repository");
    assert!(error.contains("--repository is missing"), "{error}");
    for tag in [VERSION, "v9.9.9", "", "v"] {
        let error = run("release/versions", UNCHANGED, Some(tag)).expect_err(tag);
        assert!(error.contains("the tag is"), "{tag}: {error}");
    }

    let section = format!("## [{VERSION}] - ");
    let undated = format!("## [{VERSION}]\n\n## [0.0.1] - ");
    let package = format!("name = \"pod-reaper\"\nversion = \"{VERSION}\"");
    let other_package = "name = \"pod-reaper\"\nversion = \"9.9.9\"";
    for (file, from, to) in [
        ("Cargo.toml", package.as_str(), other_package),
        ("Cargo.lock", &package, other_package),
        ("fuzz/Cargo.lock", &package, other_package),
        ("rules/Cargo.toml", "\nversion = \"", "\nversion = \"9"),
        (
            "charts/pod-reaper/Chart.yaml",
            "\nversion: ",
            "\nversion: 9",
        ),
        (
            "charts/pod-reaper/Chart.yaml",
            "\nappVersion: ",
            "\nappVersion: 9",
        ),
        (
            "charts/pod-reaper/Chart.yaml",
            "\nappVersion: ",
            "\nother: ",
        ),
        ("cronjob/base/kustomization.yaml", "newTag: ", "newTag: 9"),
        (
            "cronjob/base/kustomization.yaml",
            "/version: ",
            "/version: 9",
        ),
        ("CHANGELOG.md", &section, "## [9.9.9] - "),
        ("CHANGELOG.md", &section, &undated),
        ("CHANGELOG.md", &section, "Not as a heading: "),
        (
            "CHANGELOG.md",
            "## Unreleased\n",
            "## [9.9.9] - 2030-01-01\n",
        ),
    ] {
        for (script, tag) in [
            ("release/versions", Some(tag.as_str())),
            ("release/build", None),
        ] {
            let error = run(script, (file, from, to), tag).expect_err(to);
            let named = error.contains(file) || file == "Cargo.toml";
            assert!(
                error.starts_with("release/versions: ") && named,
                "{script}, {file}, {to:?}: {error}"
            );
        }
    }
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
    let supported = rows
        .iter()
        .filter_map(|row| row.split(' ').nth(1))
        .skip_while(|version| *version < "1.30");
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
