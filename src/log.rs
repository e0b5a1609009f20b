//! The log, on standard error.
//!
//! Only our own events are shown. The client library logs bodies that it cannot parse, environment values and all.

use std::io::IsTerminal;

use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::cli::{LogFormat, LogLevel};

/// Starts the log of this process.
pub fn start(format: LogFormat, level: LogLevel) {
    let level = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let own = Targets::new().with_target("pod_reaper", level);
    let ansi = colour(std::io::stderr().is_terminal());
    let layer = fmt::layer().with_writer(std::io::stderr).with_ansi(ansi).with_target(false);
    let layer = match format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(layer.with_filter(own)).init();
}

/// Whether to colour what goes to a place that is, or is not, a terminal (see no-color.org).
pub fn colour(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
