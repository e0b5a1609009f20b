//! The question before a run that will delete, where a person is there to answer it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{IsTerminal as _, Write as _, stderr, stdin},
    time::Duration,
};

use itertools::Itertools as _;
use jiff::Timestamp;

use crate::{
    decide::Verdict,
    limits::{Judged, Plan},
    report::{
        page::Tone,
        text::{Screen, Text},
    },
    stop::Stop,
    words::{after, listed, spoken},
};

/// How many workloads, and how many pods of each, are listed before the question; the rest are counted.
const PREVIEW: usize = 20;
const NAMES: usize = 5;

/// An answer that takes longer does not count: only the pods and their nodes are read again before the deletes, and how many
/// nodes are NotReady, or who has opted out, may have changed by then.
const PATIENCE: Duration = Duration::from_mins(1);

/// Whether there is somebody who sees the question and can answer it.
pub fn is_possible() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Shows what would be deleted in `place`, and waits for a yes. Anything else is a no, and so is the end of the run's time.
pub async fn confirm(place: &str, plan: &Plan, now: Timestamp, stop: &Stop) -> bool {
    let question = question(place, plan, now);
    // In a thread of its own, so that the deadline holds although a person may never answer.
    let answer = tokio::task::spawn_blocking(move || {
        let mut error = stderr().lock();
        error.write_all(question.as_bytes())?;
        error.flush()?;
        drop(error);
        let mut answer = String::new();
        stdin().read_line(&mut answer).map(|_| answer)
    });
    let agreed = tokio::select! {
        answer = answer => matches!(answer, Ok(Ok(answer)) if is_yes(&answer)),
        _ = stop.stopped() => false,
        () = tokio::time::sleep(PATIENCE) => false,
    };
    if !agreed {
        let _ = writeln!(stderr(), "\nWithout a yes, nothing is deleted.");
    }
    agreed
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Lists what would be deleted, a line for each workload. Those whose claims are given up come first, then pods that nothing
/// brings back, then those of which two must not run at once.
fn question(place: &str, plan: &Plan, now: Timestamp) -> String {
    let mut workloads = BTreeMap::<_, Vec<&Judged>>::new();
    let mut unique = BTreeSet::new();
    let reaps = plan.pods.iter();
    for judged in reaps.filter(|judged| judged.verdict() == Verdict::Reap) {
        let pod = &judged.pod;
        let workload = pod
            .workload
            .as_ref()
            .or(pod.owner.as_ref())
            .map_or("Pods".to_owned(), ToString::to_string);
        let keeps = judged.reason.given_up().is_empty();
        let (comes_back, interchangeable) = (pod.controller.is_some(), pod.interchangeable());
        unique.extend(pod.node.as_deref().filter(|_| !interchangeable));
        let key = (keeps, comes_back, interchangeable, &pod.namespace, workload);
        workloads.entry(key).or_default().push(judged);
    }
    let mut page = Text::new(Screen::default());
    for ((keeps, comes_back, interchangeable, namespace, workload), pods) in
        workloads.iter().take(PREVIEW)
    {
        let named = pods
            .iter()
            .map(|Judged { pod, .. }| format!("{}{}", pod.name, after(" on ", pod.node.as_ref())));
        let named = listed(&named.collect_vec(), NAMES);
        let longest = pods.iter().map(|judged| judged.pod.overdue(now)).max();
        let lost = pods
            .iter()
            .flat_map(|judged| judged.reason.given_up())
            .map(|claim| &claim.claim)
            .join(", ");
        let says = [
            format!("{namespace}: {workload}: {named}"),
            after("; overdue up to ", longest.map(spoken)),
            after("; given up: ", (!keeps).then_some(lost)),
            after("  ", (!interchangeable).then_some("[unique]")),
            after("  ", (!comes_back).then_some("[nothing brings it back]")),
        ];
        page.paragraph("  ", "      ", Tone::Plain, &says.concat());
    }
    let more = workloads.len().saturating_sub(PREVIEW);
    let more =
        (more > 0).then(|| format!("and {more} more workloads (see all with --dry-run=client)"));
    let nodes = unique.into_iter().join(", ");
    let off = (!nodes.is_empty()).then(|| {
        format!("[unique]: two copies must not run at once. Make sure that these nodes are off: {nodes}.")
    });
    for says in more.into_iter().chain(off) {
        page.paragraph("  ", "      ", Tone::Plain, &says);
    }
    let these = match plan.reaps().count() {
        1 => "this pod".to_owned(),
        pods => format!("these {pods} pods"),
    };
    page.text + &format!("Force-delete {these} in {place}? [y/N, within a minute] ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::samples;

    use crate::{
        decide::{Reason, ReasonCode},
        facts::{Claims, Owner, PodFacts},
    };

    #[test]
    fn only_a_yes_is_a_yes() {
        assert!(["y", "Y\n", "yes\n", " YES "].into_iter().all(is_yes));
        assert!(
            !["", "\n", "n", "no", "ye", "yes please", "1", "true"]
                .into_iter()
                .any(is_yes)
        );
    }

    #[test]
    fn the_question_lists_workloads_and_what_is_lost_first() {
        let pod = |name: &str, kind: Option<&str>| {
            let owner = kind.map(|kind| Owner {
                kind: kind.to_owned(),
                name: name.to_owned(),
            });
            let controller = owner.as_ref().and(samples::pod().controller);
            PodFacts {
                name: name.to_owned(),
                workload: owner.clone(),
                owner,
                controller,
                claims: Claims::Known(Vec::new()),
                ..samples::pod()
            }
        };
        let mut pods = vec![
            pod("worker", Some("ReplicaSet")),
            pod("bare", None),
            pod("db", Some("StatefulSet")),
        ];
        pods.extend((0..7).map(|number| PodFacts {
            name: format!("web-{number}"),
            ..pod("web", Some("ReplicaSet"))
        }));
        pods.extend((0..19).map(|number| pod(&format!("x-{number:02}"), Some("ReplicaSet"))));
        let stuck = || Reason::new(ReasonCode::Stuck, "");
        let judged = |pod| Judged {
            pod,
            reason: stuck(),
            limit: None,
        };
        let plan = Plan {
            pods: pods.into_iter().map(judged).collect(),
            hold: None,
        };
        let now = samples::now() + jiff::SignedDuration::from_mins(90);
        let question = question("context prod (api.prod.example.com)", &plan, now);
        expect_test::expect![[r"
              shop: Pods: bare on ds06; overdue up to 2h 30m  [unique]  [nothing brings it back]
              shop: StatefulSet/db: db on ds06; overdue up to 2h 30m  [unique]
              shop: ReplicaSet/web: web-0 on ds06, web-1 on ds06, web-2 on ds06, web-3 on ds06, web-4 on ds06
                  and 2 more; overdue up to 2h 30m
              shop: ReplicaSet/worker: worker on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-00: x-00 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-01: x-01 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-02: x-02 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-03: x-03 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-04: x-04 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-05: x-05 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-06: x-06 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-07: x-07 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-08: x-08 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-09: x-09 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-10: x-10 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-11: x-11 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-12: x-12 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-13: x-13 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-14: x-14 on ds06; overdue up to 2h 30m
              shop: ReplicaSet/x-15: x-15 on ds06; overdue up to 2h 30m
              and 3 more workloads (see all with --dry-run=client)
              [unique]: two copies must not run at once. Make sure that these nodes are off: ds06.
            Force-delete these 29 pods in context prod (api.prod.example.com)? [y/N, within a minute] "]]
        .assert_eq(&question);
    }
}
