//! Responses to a delete, and the resulting outcome of the pod. `admission.rs` has the responses of admission.

use super::{
    DEADLINE, REAP, at_once, is_delete, is_first_pod_list, is_pod_list, redirect, run_through,
    status, stuck,
};
use crate::{prelude::*, support::objects::in_parallel};

/// A pod in a namespace of its own, and one run for that namespace.
pub struct Row {
    name: &'static str,
    /// Whether a request fails. The second argument is the number of equal requests before it.
    when: fn(&Seen, usize) -> bool,
    act: fn() -> Act,
    outcome: &'static str,
    /// How often the run sends the delete, if the number does not depend on the speed of the machine.
    sent: Option<usize>,
    /// Whether the pod exists at the end.
    left: bool,
    /// The deadline of the run, in seconds.
    deadline: u64,
}

/// The first `TIMES` deletes.
fn deletes<const TIMES: usize>(seen: &Seen, before: usize) -> bool {
    is_delete(seen) && before < TIMES
}

const EVERY: usize = usize::MAX;

const fn row(
    name: &'static str,
    when: fn(&Seen, usize) -> bool,
    act: fn() -> Act,
    (outcome, sent, left): (&'static str, usize, bool),
) -> Row {
    Row {
        name,
        when,
        act,
        outcome,
        sent: Some(sent),
        left,
        deadline: DEADLINE,
    }
}

fn verifying(seen: &Seen, _: usize) -> bool {
    is_pod_list(seen) && !is_first_pod_list(seen)
}

/// Faults that occur only with real HTTP. `execute::tests` and the random runs cover the contents of responses.
const ROWS: [Row; 8] = [
    row(
        "a redirect",
        deletes::<EVERY>,
        redirect,
        ("failed", 1, true),
    ),
    row(
        "closed",
        deletes::<EVERY>,
        || Act::Close,
        ("failed", 4, true),
    ),
    row(
        "closed once",
        deletes::<1>,
        || Act::Close,
        ("deleted", 2, false),
    ),
    row(
        "done but an error says otherwise",
        deletes::<1>,
        || Act::After(503, json!({})),
        ("gone", 2, false),
    ),
    row(
        "done and the answer is lost",
        deletes::<1>,
        || Act::Lose,
        ("gone", 2, false),
    ),
    row(
        "done and the answer is cut",
        deletes::<1>,
        || Act::Cut,
        ("gone", 2, false),
    ),
    row(
        "done and the answer is no json",
        deletes::<1>,
        || Act::After(200, json!(MARKER)),
        ("deleted", 1, false),
    ),
    row(
        "the verifying list is cut",
        verifying,
        || Act::Cut,
        ("unverified", 1, false),
    ),
];

/// Slow rows, which `reads.rs` runs in parallel with its own.
pub const HANGS: [Row; 4] = [
    row(
        "the delete hangs",
        deletes::<EVERY>,
        || Act::Hang,
        ("failed", 4, true),
    ),
    row(
        "done and there is no answer",
        deletes::<1>,
        || Act::HangAfter,
        ("gone", 2, false),
    ),
    row(
        "the verifying list hangs",
        verifying,
        || Act::Hang,
        ("unverified", 1, false),
    ),
    Row {
        deadline: 20,
        sent: None,
        ..row(
            "the deadline comes while the delete hangs",
            deletes::<EVERY>,
            || Act::Hang,
            ("failed", 0, true),
        )
    },
];

/// A row whose pod has been created.
pub struct Prepared {
    row: &'static Row,
    namespace: String,
    uid: String,
}

/// Creates the pods of a table.
pub fn prepare(cluster: &ControlPlane, rows: &'static [Row]) -> Vec<Prepared> {
    let rows = rows.iter().map(|row| {
        let namespace = row.name.replace(' ', "-");
        let uid = stuck(cluster, &namespace, "stuck-0");
        Prepared {
            row,
            namespace,
            uid,
        }
    });
    rows.collect()
}

impl Prepared {
    /// Runs the program on the pod of this row, and checks the report.
    pub fn is_reported_truly(&self, cluster: &Fresh) {
        let Row {
            name,
            when,
            act,
            outcome,
            sent,
            left,
            deadline,
        } = *self.row;
        let (run, proxy) = run_through(cluster, &self.namespace, deadline, move |seen, before| {
            if when(seen, before) {
                act()
            } else {
                Act::Forward
            }
        });
        run.says(&self.uid, (REAP, Some(outcome)));
        let deletes = proxy.seen().iter().filter(|seen| is_delete(seen)).count();
        assert_eq!(deletes, sent.unwrap_or(deletes), "{name}");
        assert_eq!(
            cluster
                .try_get(&pod_path(&self.namespace, "stuck-0"))
                .is_some(),
            left,
            "{name}"
        );
        let failed = ["failed", "denied", "still-there", "unverified"].contains(&outcome);
        assert_eq!(run.code, if failed { 3 } else { 0 }, "{name}");
    }
}

#[test]
fn the_report_is_true_whatever_a_delete_is_answered() {
    let cluster = one_dead();
    let rows = prepare(&cluster, &ROWS);
    until_overdue();
    at_once(&rows, |row| row.is_reported_truly(&cluster));
}

/// The text names each of many pods. Many people can read the log, so the log contains nothing that the API server or an
/// annotation's author wrote. Neither the text nor the log contains a secret.
#[test]
fn nothing_that_others_wrote_reaches_the_log_of_many_pods() {
    const NOTE: &str = "WHAT-AN-AUTHOR-SAYS";
    const REFUSAL: &str = "WHAT-A-WEBHOOK-SAYS";
    let cluster = one_dead();
    in_parallel(4, 0..150, |number| {
        let name = format!("web-{number}");
        stuck(&cluster, "apps", &name);
        let path = pod_path("apps", &name);
        annotate(&cluster, &path, "pod-reaper.io/after-reap", NOTE);
        let disk = format!("disk-{number}");
        local_claim(&cluster, "dead", "apps", &disk);
        annotate(
            &cluster,
            &claim_path("apps", &disk),
            "example.org/note",
            MARKER,
        );
        let db = format!(
            "apps/db-{number}: {{uses: disk-{number}, metadata: {{annotations: {{example.org/token: {MARKER}}}}},
            spec: {{containers: [{{name: main, image: 'example/main:1', env: [{{name: PASSWORD, value: {MARKER}}}]}}]}}}}"
        );
        pod(&cluster, &db);
    });
    until_overdue();
    let proxy = Proxy::with_faults(cluster.server(), |seen| {
        if is_delete(seen) {
            return Act::Instead(403, status(403, "Forbidden", REFUSAL));
        }
        Act::Forward
    });
    for (format, level) in [("text", "warn"), ("text", "trace"), ("json", "warn")] {
        let output = binary(&proxy.kubeconfig)
            .args(SHORT)
            .args(["--log-format", format, "--log-level", level])
            .output()
            .expect("it starts");
        let [out, log] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
        assert_eq!(output.status.code(), Some(3), "{log}");
        for number in 0..150 {
            let both = ["web", "db"].map(|name| format!("{name}-{number}"));
            let is_named = |name: &String| {
                let mut words = out.split([' ', ',', '/', '\n', '"', ':']);
                words.any(|word| word == name)
            };
            assert!(both.iter().all(is_named), "{number}: {out}");
        }
        assert!(!out.contains(MARKER), "{out}");
        for text in [MARKER, NOTE, REFUSAL] {
            assert!(!log.contains(text), "{text}: {log}");
        }
    }
}
