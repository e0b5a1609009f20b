//! The end of a run by a signal or by its deadline.

use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    console::terminal,
    exit::{CouldNotRun, Exit, Result},
};

/// The time for the requests in flight and the verifying list at the end of the deadline.
const END_RESERVE: Duration = Duration::from_secs(20);
/// The time for them after a signal.
const END_RESERVE_AFTER_SIGNAL: Duration = Duration::from_secs(8);
/// The time after the deadline or a signal at which the process ends, whatever it does. It is less
/// than the 30 s that Kubernetes grants a pod by default.
const PROCESS_ENDS_AFTER: Duration = Duration::from_secs(10);
/// The time for the last words: standard error may be blocked too.
const LAST_WORDS: Duration = Duration::from_millis(200);
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
    /// Whether the report is complete, and only has to be written.
    reported: Arc<AtomicBool>,
}

impl Stop {
    /// Returns a stop that comes `deadline` from now, or earlier with SIGTERM or SIGINT. A second
    /// signal ends the process immediately. `Err` if the process cannot listen to the signals.
    ///
    /// A thread of its own listens, because the thread of the run may compute for a long time, or be
    /// blocked in a write.
    pub fn listen(deadline: Duration) -> std::io::Result<Self> {
        let (sender, stop) = Self::manual(deadline);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (mut terminate, mut interrupt) = {
            let _runtime = runtime.enter();
            (
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
            )
        };
        let (reported, mut last) = (Arc::clone(&stop.reported), stop.end + PROCESS_ENDS_AFTER);
        let until_the_end = async move {
            let mut cause = None;
            loop {
                let name = tokio::select! {
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                    () = sleep_until(last) => match cause {
                        // A person may read the report for longer than the deadline.
                        None if reported.load(Ordering::Relaxed) => {
                            last += MAX_DEADLINE;
                            continue;
                        }
                        cause => end_without_report(cause.unwrap_or("the deadline")),
                    },
                };
                if cause.is_some() {
                    // A user who signals twice does not want to wait for the report.
                    process::exit(Exit::Incomplete.code().into());
                }
                let now = Instant::now();
                (cause, last) = (Some(name), last.min(now + PROCESS_ENDS_AFTER));
                sender.send_replace(Some((name, now)));
            }
        };
        thread::Builder::new()
            .name("stop".to_owned())
            .spawn(move || runtime.block_on(until_the_end))?;
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
                reported: Arc::default(),
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

    /// Says that the report is complete. From now on, only a signal ends the process: the deadline does
    /// not end the wait for a slow reader.
    pub fn reported(&self) {
        self.reported.store(true, Ordering::Relaxed);
    }

    /// Returns how long a request that begins now may take: `limit`, or the rest of the run if that
    /// is shorter.
    pub fn at_most(&self, limit: Duration) -> Duration {
        let end = match *self.signalled.borrow() {
            Some((_, at)) => self.end.min(at + END_RESERVE_AFTER_SIGNAL),
            None => self.end,
        };
        limit.min(end.saturating_duration_since(Instant::now()))
    }
}

/// Ends the process, whose run goes on although it should have ended by `cause`.
fn end_without_report(cause: &'static str) -> ! {
    thread::spawn(move || {
        terminal::error(&format!(
            "the run has not ended {} s after {cause}, so the process ends without a complete report; the log has what was \
             deleted, and the next run reports what is left",
            PROCESS_ENDS_AFTER.as_secs()
        ));
    });
    thread::sleep(LAST_WORDS);
    process::exit(Exit::Incomplete.code().into())
}
