//! `cronjob/alerts.yaml`, evaluated on what the real kube-state-metrics exports about runs of the shipped CronJob. The containers
//! are simulated by the status that a kubelet would write. The real Job and CronJob controllers judge that status.

use crate::{
    prelude::*,
    support::{
        exporter::{Exporter, rules_pass},
        in_repository,
        objects::namespace,
        program_of_its_own,
    },
};
use std::collections::{BTreeMap, BTreeSet};

/// How the runs of one namespace end.
struct Ending {
    namespace: &'static str,
    /// Whether an earlier run has succeeded.
    succeeded: bool,
    /// The exit code. With `None`, the run takes longer than the Job may.
    code: Option<i32>,
    /// The reason that the Job controller sets on the failed Job.
    reason: Option<&'static str>,
    /// The alerts that fire when all runs of an hour have ended like this.
    alerts: &'static [&'static str],
}

const NEEDS_YOU: &[&str] = &["PodReaperNeedsYou"];
const FAILED: &[&str] = &["PodReaperNotSucceeding", "PodReaperRunFailed"];

#[rustfmt::skip]
const ENDINGS: [Ending; 8] = [
    Ending { namespace: "well", succeeded: true, code: Some(0), reason: None, alerts: &[] },
    Ending { namespace: "needs-you", succeeded: true, code: Some(5), reason: Some("PodFailurePolicy"), alerts: NEEDS_YOU },
    Ending { namespace: "needs-you-at-once", succeeded: false, code: Some(5), reason: Some("PodFailurePolicy"), alerts: NEEDS_YOU },
    Ending { namespace: "could-not-run", succeeded: true, code: Some(1), reason: Some("BackoffLimitExceeded"), alerts: FAILED },
    Ending { namespace: "never-ran", succeeded: false, code: Some(2), reason: Some("BackoffLimitExceeded"), alerts: FAILED },
    Ending { namespace: "incomplete", succeeded: true, code: Some(3), reason: Some("BackoffLimitExceeded"), alerts: FAILED },
    Ending { namespace: "breaker", succeeded: true, code: Some(4), reason: Some("BackoffLimitExceeded"), alerts: FAILED },
    Ending { namespace: "too-slow", succeeded: true, code: None, reason: Some("DeadlineExceeded"), alerts: FAILED },
];

/// Value by name and labels.
type Series = BTreeMap<String, f64>;

/// The series with the time of the last success, as kube-state-metrics names it.
fn last_success(namespace: &str) -> String {
    format!(
        "kube_cronjob_status_last_successful_time{{namespace=\"{namespace}\",cronjob=\"pod-reaper\"}}"
    )
}

/// An hour of runs that all end in the same way raises the alerts for that end, and no others. A success clears them.
#[test]
fn each_end_of_a_run_raises_its_own_alerts() {
    let program =
        program_of_its_own("kube-state-metrics").unwrap_or_else(|message| panic!("{message}"));
    let cluster = ControlPlane::start_with(&["--controllers"], &[])
        .unwrap_or_else(|message| panic!("{message}"));
    install(&cluster, DEFAULT);
    let shipped = cluster.get("/apis/batch/v1/namespaces/pod-reaper/cronjobs/pod-reaper");
    kubectl(
        &cluster,
        &["delete", "cronjob", "--namespace=pod-reaper", "pod-reaper"],
    );
    let mut spec = shipped["spec"].clone();
    // Only the test starts runs.
    spec["suspend"] = json!(true);
    for ending in &ENDINGS {
        namespace(&cluster, ending.namespace);
        let cronjobs = format!("/apis/batch/v1/namespaces/{}/cronjobs", ending.namespace);
        let meta = yaml("{name: pod-reaper}");
        cluster.create(
            &cronjobs,
            json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": spec}),
        );
    }
    let mut command = Command::new(program);
    command.arg(format!("--kubeconfig={}", cluster.kubeconfig.display()));
    // kube-state-metrics has a second server, for metrics of its own, at another address.
    command.args([
        "--host=127.0.0.1",
        "--port=0",
        "--telemetry-host=127.0.0.2",
        "--telemetry-port=0",
    ]);
    command.arg("--resources=cronjobs,jobs");
    let exporter = Exporter::start(&command, "127.0.0.1");

    let before = ENDINGS.iter().filter(|ending| ending.succeeded);
    for ending in before.clone() {
        end(&cluster, ending.namespace, "before", Some(0));
    }
    let before = scrape_until(&exporter, "the first successes", |series| {
        before
            .clone()
            .all(|ending| series.contains_key(&last_success(ending.namespace)))
    });

    // The times have whole seconds, and distinguish the parts of the test.
    thread::sleep(Duration::from_secs(1));
    for ending in &ENDINGS {
        end(&cluster, ending.namespace, "run", ending.code);
    }
    let runs = scrape_until(&exporter, "the runs", |series| {
        ENDINGS.iter().all(
            |Ending {
                 namespace, reason, ..
             }| match reason {
                Some(_) => {
                    let labels =
                        format!("namespace=\"{namespace}\",job_name=\"run\",condition=\"true\"");
                    series.get(&format!("kube_job_failed{{{labels}}}")) == Some(&1.0)
                }
                None => {
                    series.get(&last_success(namespace)) != before.get(&last_success(namespace))
                }
            },
        )
    });
    for Ending {
        namespace, reason, ..
    } in &ENDINGS
    {
        let job = cluster.get(&format!("/apis/batch/v1/namespaces/{namespace}/jobs/run"));
        let conditions = each(&job["status"]["conditions"]);
        let failed = conditions.filter(|condition| condition["type"] == "Failed");
        let reasons = failed.map(|condition| condition["reason"].as_str());
        assert_eq!(
            reasons.collect_vec(),
            Vec::from_iter(reason.map(Some)),
            "{namespace}: {job}"
        );
    }

    thread::sleep(Duration::from_secs(1));
    for ending in &ENDINGS {
        end(&cluster, ending.namespace, "after", Some(0));
    }
    let after = scrape_until(&exporter, "the last successes", |series| {
        ENDINGS.iter().all(|Ending { namespace, .. }| {
            let time = last_success(namespace);
            series.contains_key(&time) && series.get(&time) != runs.get(&time)
        })
    });
    cluster.stop();
    evaluate(&[before, runs, after]);
}

/// Creates a Job from the CronJob, and ends the Job's pod as described.
fn end(cluster: &ControlPlane, namespace: &str, job: &str, code: Option<i32>) {
    let in_namespace = format!("--namespace={namespace}");
    kubectl(
        cluster,
        &[
            "create",
            "job",
            &in_namespace,
            "--from=cronjob/pod-reaper",
            job,
        ],
    );
    let Some(code) = code else {
        // At the deadline, Kubernetes alone terminates a pod that has no node.
        let job = format!("/apis/batch/v1/namespaces/{namespace}/jobs/{job}");
        cluster.merge_patch(&job, yaml("{spec: {activeDeadlineSeconds: 1}}"));
        return;
    };
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let mut name = None;
    until("its pod is there", || {
        let list = cluster.get(&format!(
            "{pods}?labelSelector=batch.kubernetes.io/job-name={job}"
        ));
        name = list["items"][0]["metadata"]["name"]
            .as_str()
            .map(str::to_owned);
        name.is_some()
    });
    cluster.patch_status(
        &format!("{pods}/{}", name.expect("it was there")),
        json!({
            "phase": if code == 0 { "Succeeded" } else { "Failed" },
            "containerStatuses": [{
                "name": "pod-reaper", "image": "pod-reaper", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"terminated": {"exitCode": code}},
            }],
        }),
    );
}

/// The series that the rules need, as soon as they are complete.
fn scrape_until(exporter: &Exporter, what: &str, is_complete: impl Fn(&Series) -> bool) -> Series {
    let rules = fs::read_to_string(in_repository("cronjob/alerts.yaml")).expect("the rules");
    let mut series = Series::new();
    until(what, || {
        let answer = exporter.scrape("");
        let lines = answer.lines().filter_map(|line| line.rsplit_once(' '));
        let asked = lines.filter(|(series, _)| {
            series
                .split_once('{')
                .is_some_and(|(name, _)| name.starts_with("kube_") && rules.contains(name))
        });
        series = asked
            .map(|(series, value)| (series.to_owned(), value.parse().expect("a number")))
            .collect();
        is_complete(&series)
    });
    series
}

/// Makes promtool evaluate the rules over 95 minutes of the scraped series: the first successes at 0, a run every ten minutes
/// from 10 to 60, the last successes at 70. A value that is a time is replaced by the time of its part.
fn evaluate(scrapes: &[Series; 3]) {
    let keys = scrapes
        .iter()
        .flat_map(Series::keys)
        .collect::<BTreeSet<_>>();
    let value_at = |key: &str, minute: usize| {
        let part = [10, 70].iter().filter(|start| minute >= **start).count();
        let value = scrapes[part].get(key)?;
        let name = key.split('{').next().unwrap_or_default();
        if !name.ends_with("_time") && !name.ends_with("_created") {
            return Some(value.to_string());
        }
        // The part in which the value is new.
        let since = scrapes
            .iter()
            .position(|series| series.get(key) == Some(value))?;
        Some(([0, minute.min(69) / 10 * 10, 70][since] * 60).to_string())
    };
    let series = keys.into_iter().map(|key| {
        let mut values =
            (0..=95).map(|minute| value_at(key, minute).unwrap_or_else(|| "_".to_owned()));
        json!({"series": key, "values": values.join(" ")})
    });
    let fire_at = |minute: usize, of: fn(&Ending) -> &'static [&'static str]| {
        let alerts = ENDINGS.iter().flat_map(|ending| {
            of(ending).iter().map(|alert| {
                json!({"labels": format!("{{alertname=\"{alert}\", namespace=\"{}\"}}", ending.namespace), "value": 1})
            })
        });
        json!({
            "eval_time": format!("{minute}m"),
            "expr": "count by (alertname, namespace) (ALERTS{alertstate=\"firing\"})",
            "exp_samples": alerts.collect::<Vec<Value>>(),
        })
    };
    let tests = json!({
        "rule_files": [in_repository("cronjob/alerts.yaml")],
        "evaluation_interval": "1m",
        "tests": [{
            "interval": "1m",
            "input_series": series.collect_vec(),
            "promql_expr_test": [
                fire_at(5, |_| &[]),
                fire_at(65, |ending| ending.alerts),
                // The alert about a failed run fires for 20 minutes.
                fire_at(72, |ending| if ending.alerts == FAILED { &["PodReaperRunFailed"] } else { &[] }),
                fire_at(95, |_| &[]),
            ],
        }],
    });
    let folder = tempfile::tempdir().expect("a folder");
    rules_pass(folder.path(), &tests);
}
