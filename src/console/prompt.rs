//! The question before a run that will delete, where a person is there to answer it.

use std::{io::Write as _, time::Duration};

use jiff::Timestamp;

use crate::{decide::spoken, facts::PodFacts, report::phrases::clean, stop::Stop};

/// So many pods are listed before the question; the rest are counted.
const PREVIEW: usize = 20;

/// An answer that takes longer is none: only the pods and their nodes are read again before the deletes, and how many
/// nodes are NotReady, or who has opted out, may have changed by then.
const PATIENCE: Duration = Duration::from_mins(1);

/// Shows what would be deleted, and in which `place`, and waits for a yes. Anything else is a no, as is the end of the run's time.
pub async fn confirm(place: &str, pods: &[&PodFacts], now: Timestamp, stop: &Stop) -> bool {
    let question = question(place, pods, now);
    // A blocking thread of its own: a person may never answer, and the deadline holds all the same.
    let answer = tokio::task::spawn_blocking(move || {
        let mut error = std::io::stderr().lock();
        error.write_all(question.as_bytes())?;
        error.flush()?;
        drop(error);
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).map(|_| answer)
    });
    tokio::select! {
        answer = answer => matches!(answer, Ok(Ok(answer)) if is_yes(&answer)),
        _ = stop.stopped() => false,
        () = tokio::time::sleep(PATIENCE) => false,
    }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

fn question(place: &str, pods: &[&PodFacts], now: Timestamp) -> String {
    let mut text = String::new();
    for pod in pods.iter().take(PREVIEW) {
        let node = pod.node.as_deref().unwrap_or_default();
        let overdue = spoken(pod.overdue(now));
        let back = if pod.controller.is_none() { ", nothing brings it back" } else { "" };
        let scratch = pod.claims.iter().any(|claim| claim.renewed.is_ok());
        let claims = if scratch { ", its scratch claims too" } else { "" };
        let PodFacts { namespace, name, .. } = pod;
        text += &clean(&format!("  {namespace}/{name} on {node}, overdue {overdue}{back}{claims}"));
        text.push('\n');
    }
    if let Some(more) = pods.len().checked_sub(PREVIEW).filter(|more| *more > 0) {
        text += &format!("  and {more} more (see them all with --dry-run=client)\n");
    }
    let these = if pods.len() == 1 { "this pod".to_owned() } else { format!("these {} pods", pods.len()) };
    text + &format!("Force-delete {these} in {place}? [y/N, within a minute] ")
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_a_yes_is_a_yes() {
        assert!(["y", "Y\n", "yes\n", " YES "].into_iter().all(is_yes));
        assert!(!["", "\n", "n", "no", "ye", "yes please", "1", "true"].into_iter().any(is_yes));
    }
}
