//! The question before the deletes, if a user is there to reply.

use std::{
    io::{IsTerminal as _, Write as _, stderr, stdin},
    time::Duration,
};

use crate::{
    decide::Verdict,
    report::{self, Report, text},
    stop::Stop,
};

/// How long the user may take to reply. The time is short, because the breaker does not count the
/// nodes again before the deletes, although the run reads each pod's node and namespace again.
const REPLY_TIME_LIMIT: Duration = Duration::from_mins(1);

/// Reports whether somebody can see the question and reply.
pub fn is_possible() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Shows what would be deleted in `place` according to `report`, and asks for a yes. Returns
/// `false` for any other reply, and if there is no reply within a minute or before the run has to
/// end.
pub async fn confirm(place: &str, report: &Report, stop: &Stop) -> bool {
    let question = question(place, report);
    // The reply is read in a thread of its own, so that the run can end although nobody replies.
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
        () = tokio::time::sleep(REPLY_TIME_LIMIT) => false,
    };
    if !agreed {
        let _ = writeln!(stderr(), "\nWithout a yes, nothing is deleted.");
    }
    agreed
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

fn question(place: &str, report: &Report) -> String {
    let listed = text::write(&report::question(report), text::Screen::default());
    let these = match report.summary.verdicts[&Verdict::Reap] {
        1 => "this pod".to_owned(),
        pods => format!("these {pods} pods"),
    };
    format!("{listed}\nForce-delete {these} in {place}? [y/N, within a minute] ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        report::samples::{private_cloud, report, run},
        selector::Target,
        settings::Mode,
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
    #[expect(
        clippy::needless_raw_string_hashes,
        reason = "UPDATE_EXPECT=1 writes them"
    )]
    fn the_question_lists_the_pods_and_their_notes() {
        let mut objects = private_cloud();
        // A pod that cannot be read may use any PVC.
        objects.retain(|object| object["metadata"]["name"] != "odd-0");
        let mut set = |name: &str, key: &str, value: Value| {
            let mut all = objects.iter_mut();
            let found = all.find(|object| object["metadata"]["name"] == name);
            found.expect("an object")["metadata"][key] = value;
        };
        set("vault-0", "ownerReferences", json!([]));
        let settings = run(Mode::Delete, Target::default());
        let report = report(&settings, &objects, &[]);
        let question = question("context prod (api.prod.example.com)", &report);
        expect_test::expect![[r#"
            TO BE REAPED: 4
              on ds06, overdue for up to 1h 55m
                compute-hive01   huebackend-0
                impala-impala01  catalogd-0  huebackend-0
                vault            vault-0

            AFTERWARDS
              vault/vault-0: its annotation pod-reaper.io/after-reap says: 'unseal Vault: vault operator
              unseal'; nothing brings it back: it has no controller
              impala-impala01/catalogd-0: its replacement waits for a node that its volume allows: pvc-zone
              needs topology.kubernetes.io/zone In (b); its replacement may have to wait until pvc-zone is
              detached from ds06, 6 minutes after this pod is gone

            WHAT TO DO ABOUT THE NODES
              - Unless ds06 is about to come back, make sure that it is powered off: any containers still
                running there keep running alongside the pods that replace them.

            Force-delete these 4 pods in context prod (api.prod.example.com)? [y/N, within a minute] "#]].assert_eq(&question);
    }
}
