//! The explanation of a pod is what a run decides about it, with the limits of the run.

use serde_json::Value;

use crate::{
    SHORT, run,
    support::{
        fresh,
        objects::{Node, Pod},
        program::ask,
    },
    until_overdue,
};

#[test]
fn what_is_explained_is_what_a_run_decides() {
    let cluster = fresh();
    for ready in ["ready-1", "ready-2"] {
        Node::ready(ready).create(&cluster);
    }
    for dead in ["dead-1", "dead-2", "dead-3"] {
        Node::not_ready(dead, 3600).create(&cluster);
        Pod::on(dead, "shop", &format!("on-{dead}")).terminating(&cluster, 1);
    }
    Pod::on("dead-1", "shop", "held")
        .finalizer("example.org/hold")
        .terminating(&cluster, 1);
    Pod::on("ready-1", "shop", "slow").terminating(&cluster, 1);
    until_overdue();
    let mut seen = Vec::new();
    for limits in [
        &["--max-not-ready-percent=100"][..],
        &["--max-not-ready-percent=100", "--max-deletes=1"],
        &["--max-not-ready-percent=100", "--max-deletes=2", "--all"],
        &["--max-not-ready-percent=60"],
    ] {
        let done = run(
            &cluster.kubeconfig,
            &[&SHORT[..], &["--dry-run=client"], limits].concat(),
        );
        let pods = done.report["pods"].as_array().expect("pods");
        assert!(pods.len() >= 4, "{pods:?}");
        for pod in pods {
            let text = |field: &str| pod[field].as_str().expect("text");
            let asked = format!("{}/{}", text("namespace"), text("name"));
            // `--all` selects which pods are read, so it is no option of a question about one pod.
            let shared = limits
                .iter()
                .filter(|limit| **limit != "--all")
                .copied()
                .collect::<Vec<_>>();
            let explained = ask(
                &cluster.kubeconfig,
                &[&["explain", &asked], &SHORT[..], &shared].concat(),
            );
            for field in ["verdict", "reason", "detail"] {
                assert_eq!(
                    explained.report[field], pod[field],
                    "{asked} with {limits:?}"
                );
            }
            let every = ["rules", "limits"]
                .map(|list| explained.report[list].as_array().expect("a list").clone());
            let decides = every
                .concat()
                .into_iter()
                .filter(|rule| rule["decides"] == Value::Bool(true));
            assert_eq!(
                decides.count(),
                1,
                "{asked} with {limits:?}: {}",
                explained.report
            );
            seen.push(text("reason").to_owned());
        }
    }
    for reason in [
        "stuck-on-not-ready-node",
        "over-cap",
        "mass-outage",
        "finalizers",
        "node-ready",
    ] {
        assert!(
            seen.iter().any(|code| code == reason),
            "{reason} never came up: {seen:?}"
        );
    }
}
