//! Tests of the metrics that a run delivers: every series, always, and the series that a failed run
//! keeps.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use std::{collections::BTreeSet, fs};

use expect_test::expect;

use super::*;
use crate::{
    cluster::Mode,
    outcome::Outcome,
    report::samples::{
        audit, cluster_called, every_outcome, objects, private_cloud, report, run, yaml,
    },
    selector::Target,
};

const DELETING: Mode = Mode::Delete;

fn metrics<'a>(settings: &'a Settings, report: Option<&Report>) -> Metrics<'a> {
    let mut metrics = Metrics::begin(settings);
    if let Some(report) = report {
        metrics.add_report(report);
    }
    metrics
}

fn at(hour: &str) -> Timestamp {
    format!("2026-01-31T{hour}:00:00.25Z")
        .parse()
        .expect("a moment")
}

fn page(settings: &Settings, report: Option<&Report>, exit: Exit) -> Exposition {
    metrics(settings, report).exposition(exit, at("03"), Duration::from_millis(1_500))
}

fn deleting() -> Settings {
    run(DELETING, Target::default())
}

fn quiet(settings: &Settings) -> Report {
    let running = "{Node ds01: {ready: 'True'}, Pod app/a-0: {node: ds01, grace: null}}";
    report(settings, &objects(&yaml(running)), &[])
}

/// The series of a page, without their values.
fn series(text: &str) -> BTreeSet<&str> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| line.rsplit_once(' ').expect("a value").0)
        .collect()
}

/// The value of one series.
#[track_caller]
fn value<'a>(text: &'a str, series: &str) -> &'a str {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in\n{text}"))
}

#[test]
fn a_quiet_run_writes_every_series_at_zero() {
    let settings = Settings {
        metrics: cluster_called("prod-eu"),
        ..deleting()
    };
    let text = page(&settings, Some(&quiet(&settings)), Exit::Done).text;
    expect![[r##"
        # HELP pod_reaper_pods Terminating pods that the last run looked at, by verdict and reason.
        # TYPE pod_reaper_pods gauge
        pod_reaper_pods{cluster="prod-eu",verdict="leave",reason="mirror-pod"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="leave",reason="opted-out"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="leave",reason="node-gone"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="leave",reason="node-ready"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="wait",reason="not-overdue"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="manual",reason="kosmos-leaf"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="manual",reason="virtual-node"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="manual",reason="edge-node"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="manual",reason="leaf-node"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="wait",reason="facts-unread"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="wait",reason="node-just-failed"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="manual",reason="kubelet-alive"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="manual",reason="already-forced"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="manual",reason="finalizers"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="manual",reason="local-volume"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="manual",reason="host-path"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="manual",reason="volume-confined"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="manual",reason="volume-unverified"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="manual",reason="shared-disk"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="manual",reason="owner-kind"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="reap",reason="scratch"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="reap",reason="answered"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="reap",reason="stuck-on-not-ready-node"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="wait",reason="mass-outage"} 0
        pod_reaper_pods{cluster="prod-eu",verdict="wait",reason="over-cap"} 0
        # HELP pod_reaper_outcomes Pods that were to be reaped in the last run, by what happened.
        # TYPE pod_reaper_outcomes gauge
        pod_reaper_outcomes{cluster="prod-eu",outcome="changed"} 0
        pod_reaper_outcomes{cluster="prod-eu",outcome="deleted"} 0
        pod_reaper_outcomes{cluster="prod-eu",outcome="denied"} 0
        pod_reaper_outcomes{cluster="prod-eu",outcome="failed"} 0
        pod_reaper_outcomes{cluster="prod-eu",outcome="gone"} 0
        pod_reaper_outcomes{cluster="prod-eu",outcome="interrupted"} 0
        pod_reaper_outcomes{cluster="prod-eu",outcome="node-changed"} 0
        pod_reaper_outcomes{cluster="prod-eu",outcome="node-recovered"} 0
        pod_reaper_outcomes{cluster="prod-eu",outcome="opted-out"} 0
        pod_reaper_outcomes{cluster="prod-eu",outcome="still-there"} 0
        pod_reaper_outcomes{cluster="prod-eu",outcome="unverified"} 0
        pod_reaper_outcomes{cluster="prod-eu",outcome="would-delete"} 0
        # HELP pod_reaper_nodes_not_ready NotReady nodes, leaf nodes and unread ones included.
        # TYPE pod_reaper_nodes_not_ready gauge
        pod_reaper_nodes_not_ready{cluster="prod-eu"} 0
        # HELP pod_reaper_breaker_held_pods Pods that the mass-outage breaker kept from being reaped.
        # TYPE pod_reaper_breaker_held_pods gauge
        pod_reaper_breaker_held_pods{cluster="prod-eu"} 0
        # HELP pod_reaper_read_errors Things that the last run could not read.
        # TYPE pod_reaper_read_errors gauge
        pod_reaper_read_errors{cluster="prod-eu"} 0
        # HELP pod_reaper_notices How many pods, or other things, the notices of the last run are about.
        # TYPE pod_reaper_notices gauge
        pod_reaper_notices{cluster="prod-eu",notice="never-evicted"} 0
        pod_reaper_notices{cluster="prod-eu",notice="long-wait"} 0
        pod_reaper_notices{cluster="prod-eu",notice="no-namespace"} 0
        pod_reaper_notices{cluster="prod-eu",notice="api-server-unknown"} 0
        pod_reaper_notices{cluster="prod-eu",notice="answer-inert"} 0
        pod_reaper_notices{cluster="prod-eu",notice="on-ready-nodes"} 0
        # HELP pod_reaper_mode What the last run was allowed to change: 1 for its mode.
        # TYPE pod_reaper_mode gauge
        pod_reaper_mode{cluster="prod-eu",mode="delete"} 1
        pod_reaper_mode{cluster="prod-eu",mode="server-dry-run"} 0
        pod_reaper_mode{cluster="prod-eu",mode="client-dry-run"} 0
        # HELP pod_reaper_exit_code Exit code of the last run.
        # TYPE pod_reaper_exit_code gauge
        pod_reaper_exit_code{cluster="prod-eu"} 0
        # HELP pod_reaper_run_duration_seconds How long the last run took.
        # TYPE pod_reaper_run_duration_seconds gauge
        pod_reaper_run_duration_seconds{cluster="prod-eu"} 1.5
        # HELP pod_reaper_last_run_timestamp_seconds When the last run ended.
        # TYPE pod_reaper_last_run_timestamp_seconds gauge
        pod_reaper_last_run_timestamp_seconds{cluster="prod-eu"} 1769828400.25
        # HELP pod_reaper_build_info The program's version.
        # TYPE pod_reaper_build_info gauge
        pod_reaper_build_info{cluster="prod-eu",version="0.5.0"} 1
        # HELP pod_reaper_last_success_timestamp_seconds When a run that may delete last did all that it should; a pod may still need you.
        # TYPE pod_reaper_last_success_timestamp_seconds gauge
        pod_reaper_last_success_timestamp_seconds{cluster="prod-eu"} 1769828400.25
    "##]].assert_eq(&text);
}

#[test]
fn a_busy_run_has_the_same_series() {
    let settings = deleting();
    let quiet = page(&settings, Some(&quiet(&settings)), Exit::Done).text;
    for busy in [every_outcome(), report(&settings, &private_cloud(), &[])] {
        assert_eq!(
            series(&page(&settings, Some(&busy), Exit::Done).text),
            series(&quiet)
        );
    }
}

#[test]
fn the_numbers_are_those_of_the_report() {
    let settings = deleting();
    let busy = every_outcome();
    let text = page(&settings, Some(&busy), Exit::Incomplete).text;
    assert_eq!(
        value(
            &text,
            r#"pod_reaper_pods{verdict="reap",reason="stuck-on-not-ready-node"}"#
        ),
        "10"
    );
    for (outcome, count) in &busy.summary.outcomes {
        let series = format!("pod_reaper_outcomes{{outcome=\"{outcome}\"}}");
        assert_eq!(value(&text, &series), count.to_string());
    }
    assert_eq!(value(&text, "pod_reaper_nodes_not_ready"), "1");

    let cloud = report(&settings, &private_cloud(), &[]);
    let text = page(&settings, Some(&cloud), Exit::Incomplete).text;
    for pod in &cloud.pods {
        let series = format!(
            "pod_reaper_pods{{verdict=\"{}\",reason=\"{}\"}}",
            pod.verdict.unwrap(),
            pod.reason.unwrap()
        );
        let count = cloud
            .pods
            .iter()
            .filter(|other| other.reason == pod.reason)
            .count();
        assert_eq!(value(&text, &series), count.to_string());
    }
    assert_eq!(
        value(&text, "pod_reaper_read_errors"),
        cloud.errors.len().to_string()
    );

    let outage = "{Node a: {}, Node b: {}, Node c: {}, Namespace app: {}, Pod app/a-0: {node: a}}";
    let outage = objects(&yaml(outage));
    let held = page(
        &settings,
        Some(&report(&settings, &outage, &[])),
        Exit::Held,
    )
    .text;
    assert_eq!(value(&held, "pod_reaper_breaker_held_pods"), "1");
    assert_eq!(
        value(
            &held,
            r#"pod_reaper_pods{verdict="wait",reason="mass-outage"}"#
        ),
        "1"
    );
}

#[test]
fn the_notices_are_counted() {
    let settings = deleting();
    let staying = "
        Node ds05: {ready: 'True'}
        Node ds06: {}
        Namespace app: {}
        Pod app/a-1: {grace: null, spec: {tolerations: [{operator: Exists}]}}
        Pod app/a-2: {grace: null, spec: {tolerations: [{operator: Exists}]}}
    ";
    let objects = objects(&yaml(staying));
    let report = report(&settings, &objects, &[]);
    let text = page(&settings, Some(&report), report.exit).text;
    for (notice, count) in [("never-evicted", "2"), ("long-wait", "0")] {
        assert_eq!(
            value(&text, &format!("pod_reaper_notices{{notice=\"{notice}\"}}")),
            count,
            "{notice}"
        );
    }
    assert_eq!(value(&text, "pod_reaper_exit_code"), "0");
    assert!(
        text.contains("pod_reaper_last_success_timestamp_seconds "),
        "no notice makes a run fail"
    );
}

/// Exit code 5 is a success, because an option requests it. A dry run is no success, because it
/// deletes nothing. Neither is a run whose user declines the deletes.
#[test]
fn only_a_run_that_did_all_it_should_is_a_success() {
    let success = |page: &Exposition| {
        assert_eq!(
            page.text
                .contains("pod_reaper_last_success_timestamp_seconds "),
            page.whole
        );
        page.whole
    };
    let all_well = |settings: &Settings| {
        let report = quiet(settings);
        [
            Exit::Done,
            Exit::CouldNotRun,
            Exit::Usage,
            Exit::Incomplete,
            Exit::Held,
            Exit::Manual,
        ]
        .map(|exit| success(&page(settings, Some(&report), exit)))
    };
    assert_eq!(
        all_well(&deleting()),
        [true, false, false, false, false, true]
    );
    assert!(!success(&page(&deleting(), None, Exit::CouldNotRun)));
    let dry = [Mode::ServerDryRun, Mode::ClientDryRun].map(|mode| run(mode, Target::default()));
    for settings in [&dry[0], &dry[1], &audit()] {
        assert_eq!(all_well(settings), [false; 6], "{}", settings.task.mode());
    }

    let stuck = "{Node ds05: {ready: 'True'}, Node ds06: {}, Namespace app: {}, Pod app/a-0: {}}";
    let objects = objects(&yaml(stuck));
    for (outcome, well) in [(Outcome::Deleted, true), (Outcome::WouldDelete, false)] {
        let report = report(&deleting(), &objects, &[("uid-app-a-0", outcome)]);
        assert_eq!(success(&page(&deleting(), Some(&report), Exit::Done)), well);
    }
}

#[test]
fn the_mode_is_written() {
    for mode in [DELETING, Mode::ServerDryRun, Mode::ClientDryRun] {
        let settings = run(mode, Target::default());
        let text = page(&settings, None, Exit::CouldNotRun).text;
        for other in Mode::ALL
            .into_iter()
            .filter(|other| *other != Mode::Snapshot)
        {
            let series = format!("pod_reaper_mode{{mode=\"{other}\"}}");
            assert_eq!(value(&text, &series) == "1", other == settings.task.mode());
        }
    }
}

#[test]
fn a_run_without_a_report_writes_no_series_about_pods() {
    let text = page(&deleting(), None, Exit::CouldNotRun).text;
    assert!(!text.contains("pod_reaper_pods"), "{text}");
    assert!(!text.contains("pod_reaper_nodes_not_ready"), "{text}");
    assert_eq!(value(&text, "pod_reaper_exit_code"), "1");
    assert_eq!(
        value(&text, "pod_reaper_last_run_timestamp_seconds"),
        "1769828400.25"
    );
}

#[test]
fn a_label_cannot_end_its_quotes() {
    let settings = Settings {
        metrics: cluster_called("a\"b\\c\nd"),
        ..deleting()
    };
    let text = page(&settings, None, Exit::CouldNotRun).text;
    assert_eq!(
        value(&text, r#"pod_reaper_exit_code{cluster="a\"b\\c\nd"}"#),
        "1"
    );
}

#[test]
fn a_run_that_fails_keeps_the_series_that_it_does_not_know() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pod-reaper.prom");
    let settings = deleting();
    let metrics = |exit: Exit, report: Option<&Report>, hour: &str| {
        let page = metrics(&settings, report).exposition(exit, at(hour), Duration::from_secs(1));
        file::write(&path, &page).expect("it is written");
        fs::read_to_string(&path).expect("a file")
    };
    let success = |text: &str| value(text, "pod_reaper_last_success_timestamp_seconds").to_owned();
    let manual = r#"pod_reaper_pods{verdict="manual",reason="finalizers"}"#;

    // The first run fails, so there is no success to keep.
    let text = metrics(Exit::CouldNotRun, None, "00");
    assert!(!text.contains("last_success"), "{text}");
    let cloud = report(&settings, &private_cloud(), &[]);
    let whole = metrics(Exit::Done, Some(&cloud), "01");
    assert_eq!(
        (success(&whole).as_str(), value(&whole, manual)),
        ("1769821200.25", "1")
    );
    let nothing_seen = metrics(Exit::CouldNotRun, None, "02");
    assert_eq!(
        (success(&nothing_seen), value(&nothing_seen, manual)),
        (success(&whole), "1")
    );
    assert_eq!(value(&nothing_seen, "pod_reaper_exit_code"), "1");
    assert_eq!(series(&nothing_seen), series(&whole));
    let exit_codes = nothing_seen.matches("# TYPE pod_reaper_exit_code ");
    assert_eq!(exit_codes.count(), 1, "{nothing_seen}");
    let failed = metrics(Exit::Incomplete, Some(&quiet(&settings)), "03");
    assert_eq!(
        (success(&failed), value(&failed, manual)),
        (success(&whole), "0")
    );
    assert_eq!(series(&failed), series(&whole));
    assert_eq!(
        success(&metrics(Exit::Done, Some(&quiet(&settings)), "04")),
        "1769832000.25"
    );
    // No other file is left in the collector's directory.
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

/// Two pods may write to one volume, each as the process 1 of its container.
#[test]
fn writers_that_do_not_know_of_each_other_write_whole_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = &folder.path().join("pod-reaper.prom");
    let page = &page(&deleting(), None, Exit::CouldNotRun);
    std::thread::scope(|scope| {
        let write = || (0..100).for_each(|_| file::write(path, page).expect("it is written"));
        scope.spawn(write);
        scope.spawn(write);
    });
    let text = fs::read_to_string(path).expect("a file");
    assert_eq!(text, page.text);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn nothing_is_kept_of_a_file_that_is_not_ours() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("other.prom");
    let former =
        "# HELP other_metric Somebody else's.\n# TYPE other_metric gauge\nother_metric 1\n";
    fs::write(&path, former).expect("our folder");
    file::write(&path, &page(&deleting(), None, Exit::CouldNotRun)).expect("it is written");
    let text = fs::read_to_string(&path).expect("a file");
    assert!(!text.contains("other_metric"), "{text}");
    // A directory is not replaced, and a missing directory is an error.
    assert!(file::write(folder.path(), &page(&deleting(), None, Exit::CouldNotRun)).is_err());
    let missing = folder.path().join("not-there").join("a.prom");
    assert!(file::write(&missing, &page(&deleting(), None, Exit::CouldNotRun)).is_err());
}

/// The names of pod-reaper's metrics in a text.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with(PREFIX)).collect()
}

/// An alert on a series that is never written would never fire.
#[test]
fn dashboard_and_alerts_use_series_that_exist() {
    let settings = deleting();
    let page = page(&settings, Some(&quiet(&settings)), Exit::Done);
    let there = page
        .text
        .lines()
        .filter_map(|line| line.strip_prefix(HELP)?.split(' ').next())
        .collect::<BTreeSet<_>>();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("cronjob");
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("a file");
    let dashboard = read("components/dashboard/dashboard.json");
    let alerts = read("alerts-metrics.yaml");
    let parsed: serde_json::Value = serde_json::from_str(&dashboard).expect("JSON");
    assert!(
        parsed["panels"]
            .as_array()
            .is_some_and(|panels| panels.len() >= 8)
    );
    // Every name with our prefix must be one of our series, and the dashboard must use them all.
    assert_eq!(named(&dashboard), there);
    let mut of_alerts = there.clone();
    of_alerts.insert("pod_reaper_forecast_needs_person");
    assert!(
        named(&alerts).is_subset(&of_alerts) && named(&alerts).len() >= 4,
        "{:?}",
        named(&alerts)
    );
    // Each label in an expression must exist with that value.
    let text = &page.text;
    for asked in [&dashboard, &alerts].map(|file| file.replace("\\\"", "\"")) {
        for label in ["verdict", "reason", "outcome", "state", "notice", "mode"] {
            for value in asked.split(&format!("{label}=\"")).skip(1) {
                let value = value.split('"').next().unwrap_or_default();
                assert!(
                    text.contains(&format!("{label}=\"{value}\"")),
                    "{label}={value}"
                );
            }
        }
    }
}
