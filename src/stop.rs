//! The end of a run by a signal or by its deadline.

use std::time::Duration;

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::Instant,
};

use crate::exit::{CouldNotRun, Exit, Result};

/// The time for the requests in flight and the verifying list, at the end of the deadline or after
/// a signal. It is less than the 30 s that Kubernetes grants a pod by default.
const END_RESERVE: Duration = Duration::from_secs(20);
/// The longest deadline. A longer deadline is shortened to this one, because the clock might not be
/// able to represent it.
const MAX_DEADLINE: Duration = Duration::from_hours(24 * 365);

/// The signal's name and the time when it came; `None` before a signal.
type Signalled = Option<(&'static str, Instant)>;

/// Tells whether new work may still begin. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Stop {
    signalled: watch::Receiver<Signalled>,
    /// The time after which nothing new begins.
    last_start: Instant,
    /// The time by which every request has its response or is aborted.
    end: Instant,
}

impl Stop {
    /// Returns a stop that comes `deadline` from now, or earlier with SIGTERM or SIGINT. A second
    /// signal ends the process immediately. `Err` if the process cannot listen to the signals.
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
            // A user who signals twice does not want to wait for the report.
            std::process::exit(Exit::Incomplete.code().into());
        });
        Ok(stop)
    }

    /// Returns a stop that comes `deadline` from now, or when the sender sends a signal.
    pub fn manual(deadline: Duration) -> (watch::Sender<Signalled>, Self) {
        let (sender, signalled) = watch::channel(None);
        let deadline = deadline.min(MAX_DEADLINE);
        let end = Instant::now() + deadline;
        let last_start = end - END_RESERVE.min(deadline / 4);
        (
            sender,
            Self {
                signalled,
                last_start,
                end,
            },
        )
    }

    /// Returns why nothing new may begin, or `None` as long as it may.
    pub fn reason(&self) -> Option<&'static str> {
        let signal = self.signalled.borrow().map(|(name, _)| name);
        signal.or_else(|| (Instant::now() >= self.last_start).then_some("the deadline"))
    }

    /// Waits until nothing new may begin, and returns why.
    pub async fn stopped(&self) -> &'static str {
        let mut signalled = self.signalled.clone();
        tokio::select! {
            Ok(signal) = signalled.wait_for(Option::is_some) => signal.map_or("a signal", |(name, _)| name),
            () = tokio::time::sleep_until(self.last_start) => "the deadline",
        }
    }

    /// Waits for `pause`. If a stop comes before the pause is over, returns its reason immediately.
    pub async fn pause(&self, pause: Duration) -> Option<&'static str> {
        tokio::select! {
            () = tokio::time::sleep(pause) => None,
            why = self.stopped() => Some(why),
        }
    }

    /// Returns the result of `work`, or an error if the run has to end first.
    pub async fn or_stopped<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            done = work => done,
            why = self.stopped() => Err(CouldNotRun::Stopped(why)),
        }
    }

    /// Waits until a signal has come and the time granted after it is over. The program then no
    /// longer waits for a slow reader of the report. The deadline alone does not end this wait.
    pub async fn grace_over(&self) {
        let mut signalled = self.signalled.clone();
        match signalled
            .wait_for(Option::is_some)
            .await
            .map(|signal| *signal)
        {
            Ok(Some((_, at))) => tokio::time::sleep_until(at + END_RESERVE).await,
            _ => std::future::pending().await,
        }
    }

    /// Returns how long a request that begins now may take: `limit`, or the rest of the run if that
    /// is shorter.
    pub fn at_most(&self, limit: Duration) -> Duration {
        let end = match *self.signalled.borrow() {
            Some((_, at)) => self.end.min(at + END_RESERVE),
            None => self.end,
        };
        limit.min(end.saturating_duration_since(Instant::now()))
    }
}
