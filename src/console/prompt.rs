//! The question before the deletes, if a user is there to reply.

use std::{
    io::{IsTerminal as _, Write as _, stderr, stdin},
    time::Duration,
};

use crate::{
    report::{RunRecord, text},
    stop::Stop,
};

/// How long the user may take to reply. The time is short, because the breaker does not count the
/// nodes again before the deletes, although the run reads each pod's node and namespace again.
const REPLY_TIME_LIMIT: Duration = Duration::from_mins(1);

/// Reports whether somebody can see the question and reply.
pub fn is_possible() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Shows the report of what would be deleted in `place`, and asks for a yes. Returns
/// `false` for any other reply, and if there is no reply within a minute or before the run has to
/// end.
pub async fn confirm(place: &str, run: &RunRecord<'_>, stop: &Stop) -> bool {
    let question = question(place, run);
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

fn question(place: &str, run: &RunRecord<'_>) -> String {
    let listed = text::write(&run.document(), text::Screen::default());
    let these = match run.plan.reaps().count() {
        1 => "this pod".to_owned(),
        pods => format!("these {pods} pods"),
    };
    format!("{listed}\nForce-delete {these} in {place}? [y/N, within a minute] ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        assert!(["y", "Y\n", "yes\n", " YES "].into_iter().all(is_yes));
        let others = ["", "\n", "n", "no", "ye", "yes please", "1", "true"];
        assert!(!others.into_iter().any(is_yes));
    }
}
