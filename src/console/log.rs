//! The log, on standard error.
//!
//! It shows only this program's own events. The client library also logs response bodies that it
//! cannot parse, including values of environment variables.

use std::io::IsTerminal;

use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use super::terminal;
use crate::cli::LogFormat;

/// Starts the log. Must be called once, before anything is logged.
pub fn start(format: LogFormat, level: LevelFilter) {
    let own = Targets::new().with_target("pod_reaper", level);
    let ansi = terminal::colour(std::io::stderr().is_terminal());
    let layer = fmt::layer()
        .with_writer(|| terminal::AboveTheStatus)
        .with_ansi(ansi)
        .with_target(false);
    let layer = match format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry()
        .with(layer.with_filter(own))
        .init();
}
