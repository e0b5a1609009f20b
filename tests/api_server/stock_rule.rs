//! The rule `KubeJobFailed` of a stock kube-prometheus-stack, on the failed Jobs that the manifests keep.

use crate::{prelude::*, support::exporter::rules_pass};

/// The rule of a stock kube-prometheus-stack: kubernetes-mixin, `alerts/apps_alerts.libsonnet`.
const STOCK: &str = r#"{"groups": [{"name": "kubernetes-apps", "rules": [{
    "alert": "KubeJobFailed", "for": "15m", "labels": {"severity": "warning"},
    "expr": "kube_job_failed{job=\"kube-state-metrics\", namespace=~\".*\"} > 0"
}]}]}"#;

/// For two hours each run finds a pod that needs you, at the schedule of the base and of `eager`. The CronJob controller keeps as
/// many failed Jobs as the manifests say, and none for longer than their TTL.
#[test]
fn a_stock_rule_fires_while_a_pod_needs_you() {
    const NEEDED: usize = 120;
    let number = |file: &str, before: &str| {
        let text = fs::read_to_string(in_repository(file)).expect("a manifest");
        let (_, rest) = text.split_once(before).expect("the field");
        let digits = rest.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        let end = digits.find(|letter: char| !letter.is_ascii_digit());
        digits[..end.unwrap_or(digits.len())]
            .parse::<usize>()
            .expect("a number")
    };
    let base = "cronjob/base/cronjob.yaml";
    let eager = "cronjob/components/eager/kustomization.yaml";
    let life = number(base, "ttlSecondsAfterFinished:") / 60;
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("stock.yaml"), STOCK).expect("our folder");
    let tests = [base, eager].map(|file| {
        let (every, kept) = (number(file, "schedule:"), number(file, "failedJobsHistoryLimit:"));
        let failed = (0..NEEDED).step_by(every).map(|start| start + 1).collect_vec();
        let series = failed.iter().enumerate().map(|(run, ended)| {
            let displaced = failed.get(run + kept).copied().unwrap_or(usize::MAX);
            let lives = displaced.min(ended + life) - ended;
            let name = format!("kube_job_failed{{job=\"kube-state-metrics\", job_name=\"run-{run}\", condition=\"true\"}}");
            // A series that ends is stale immediately.
            json!({"series": name, "values": format!("_x{ended} 1x{} stale", lives - 1)})
        });
        let firing = "ALERTS{alertname=\"KubeJobFailed\", alertstate=\"firing\"}";
        let none = |minute: usize| (minute, format!("count({firing})"), json!([]));
        let some = (16..NEEDED).map(|minute| {
            let few = format!("count({firing}) >= bool 1 and count({firing}) <= 2");
            (minute, few, yaml("[{labels: '{}', value: 1}]"))
        });
        let looks = [none(15), none(NEEDED + 65)].into_iter().chain(some);
        let looks = looks.map(|(minute, expr, samples)| {
            json!({"eval_time": format!("{minute}m"), "expr": expr, "exp_samples": samples})
        });
        json!({
            "interval": "1m",
            "input_series": series.collect_vec(),
            "promql_expr_test": looks.collect_vec(),
        })
    });
    let tests = json!({"rule_files": ["stock.yaml"], "evaluation_interval": "1m", "tests": tests});
    rules_pass(folder.path(), &tests);
}
