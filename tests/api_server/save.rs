//! A saved cluster: what a real API server serves is read by list, and judged as a dry run judges it.

use crate::{prelude::*, support::program::executable};

/// Verdict and reason of each pod, by its UID.
fn verdicts(report: &Value) -> BTreeMap<String, [String; 2]> {
    let pods = each(&report["pods"]);
    let said = pods.map(|pod| {
        let codes = ["verdict", "reason"].map(|code| str_of(&pod[code]).to_owned());
        (uid_of_entry(pod), codes)
    });
    said.collect()
}

#[test]
fn a_saved_cluster_is_judged_as_by_a_dry_run() {
    let cluster = six_nodes::after_an_hour();
    until_overdue();
    let proxy = Proxy::to(&cluster);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state.json");
    let mut save = Command::new(executable());
    save.env("KUBECONFIG", &proxy.kubeconfig)
        .arg("save")
        .arg(&file);
    let saved = save.output().unwrap();
    let says = String::from_utf8_lossy(&saved.stderr);
    assert_eq!(saved.status.code(), Some(0), "{says}");
    assert!(proxy.seen().iter().all(|seen| seen.method == "GET"));
    let live = run(&cluster.kubeconfig, &short("--dry-run --all"));
    let mut audit = Command::new(executable());
    audit
        .args(SHORT)
        .args(["-o", "json", "--all", "--snapshot"]);
    let audit = audit.arg(&file).output().unwrap();
    let says = String::from_utf8_lossy(&audit.stderr);
    let audit = serde_json::from_slice::<Value>(&audit.stdout);
    let audit = audit.unwrap_or_else(|error| panic!("{error}: {says}"));
    assert_eq!(verdicts(&audit), verdicts(&live.report));
    assert_eq!(audit["errors"], json!([]));
}
