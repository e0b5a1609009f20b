//! When a run has to end: a signal, or its deadline.

use std::time::Duration;

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::Instant,
};

use crate::exit::{CouldNotRun, Exit, Result};

/// Kept back of the deadline for the requests in flight and the verifying list, and granted to them after a signal:
/// less than the 30 s that Kubernetes gives a pod by default.
const RESERVE: Duration = Duration::from_secs(20);
/// A deadline that the clock cannot hold is as good as none.
const FAR: Duration = Duration::from_hours(24 * 365);

/// A signal, and when it came.
type Signalled = Option<(&'static str, Instant)>;

/// Says at any moment whether new work may still be begun. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Stop {
    signalled: watch::Receiver<Signalled>,
    /// Nothing new is begun after this.
    last_start: Instant,
    /// Every request has been answered or given up by this.
    end: Instant,
}

impl Stop {
    /// Ends `deadline` from now, or earlier at SIGTERM or SIGINT. Listens from this call on; a second signal ends the
    /// process at once.
    pub fn listen(deadline: Duration) -> std::io::Result<Self> {
        let (sender, stop) = Self::manual(deadline);
        let (mut terminate, mut interrupt) = (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        );
        tokio::spawn(async move {
            let mut next = async || {
                tokio::select! {
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                }
            };
            sender.send_replace(Some((next().await, Instant::now())));
            next().await;
            // Asked twice: the report is not waited for.
            std::process::exit(Exit::Incomplete.code().into());
        });
        Ok(stop)
    }

    /// Ends `deadline` from now, or when the sender says so.
    pub fn manual(deadline: Duration) -> (watch::Sender<Signalled>, Self) {
        let (sender, signalled) = watch::channel(None);
        let deadline = deadline.min(FAR);
        let end = Instant::now() + deadline;
        let last_start = end - RESERVE.min(deadline / 4);
        (
            sender,
            Self {
                signalled,
                last_start,
                end,
            },
        )
    }

    /// Why nothing new may be begun, once that is so.
    pub fn reason(&self) -> Option<&'static str> {
        let signal = self.signalled.borrow().map(|(name, _)| name);
        signal.or_else(|| (Instant::now() >= self.last_start).then_some("the deadline"))
    }

    /// Waits until nothing new may be begun.
    pub async fn stopped(&self) -> &'static str {
        let mut signalled = self.signalled.clone();
        tokio::select! {
            Ok(signal) = signalled.wait_for(Option::is_some) => signal.map_or("a signal", |(name, _)| name),
            () = tokio::time::sleep_until(self.last_start) => "the deadline",
        }
    }

    /// Pauses for so long, or until nothing new may be begun: then says why.
    pub async fn pause(&self, pause: Duration) -> Option<&'static str> {
        tokio::select! {
            () = tokio::time::sleep(pause) => None,
            why = self.stopped() => Some(why),
        }
    }

    /// The result of `work`, unless the run has to end before that.
    pub async fn or_stopped<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            done = work => done,
            why = self.stopped() => Err(CouldNotRun::Stopped(why)),
        }
    }

    /// Waits until a signal has come and nothing more is waited for, not even the reader of the report.
    pub async fn given_up(&self) {
        let mut signalled = self.signalled.clone();
        match signalled
            .wait_for(Option::is_some)
            .await
            .map(|signal| *signal)
        {
            Ok(Some((_, at))) => tokio::time::sleep_until(at + RESERVE).await,
            _ => std::future::pending().await,
        }
    }

    /// How long a request begun now may take: `limit`, or what is left of the run.
    pub fn at_most(&self, limit: Duration) -> Duration {
        let end = match *self.signalled.borrow() {
            Some((_, at)) => self.end.min(at + RESERVE),
            None => self.end,
        };
        limit.min(end.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_deadline_keeps_time_back_for_what_is_in_flight() {
        let (_sender, stop) = Stop::manual(Duration::from_mins(8));
        tokio::time::advance(Duration::from_secs(459)).await;
        assert_eq!(stop.reason(), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(stop.reason(), Some("the deadline"));
        assert_eq!(stop.stopped().await, "the deadline");
        assert_eq!(
            stop.at_most(Duration::from_mins(1)),
            Duration::from_secs(20)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_signal_stops_at_once() {
        let (sender, stop) = Stop::manual(Duration::from_mins(8));
        sender.send_replace(Some(("SIGTERM", Instant::now())));
        assert_eq!(stop.reason(), Some("SIGTERM"));
        assert_eq!(stop.stopped().await, "SIGTERM");
        tokio::time::advance(Duration::from_secs(15)).await;
        assert_eq!(
            stop.at_most(Duration::from_secs(10)),
            Duration::from_secs(5)
        );
    }
}
