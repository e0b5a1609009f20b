//! Parse, start the log, run, write the report, map to an exit code.

use std::{
    io::{ErrorKind, IsTerminal, Write},
    process::ExitCode,
};

use anyhow::Context as _;
use pod_reaper::{
    cli::Cli,
    exit::{Exit, USAGE},
    log,
    reap::{self, CouldNotRun},
    settings::Settings,
    stop::Stop,
};

fn main() -> ExitCode {
    let settings = Settings::from(Cli::from_process());
    log::start(settings.log_format, settings.log_level);
    match run(&settings) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Not by the log: with --log-level=off the reason must not be lost.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            match error.downcast_ref::<CouldNotRun>() {
                Some(CouldNotRun::Usage(_)) => ExitCode::from(USAGE),
                _ => Exit::CouldNotRun.into(),
            }
        }
    }
}

fn run(settings: &Settings) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting")?;
    let code = runtime.block_on(async {
        let stop = Stop::listen(settings.deadline).context("listening for signals")?;
        let report = reap::run(settings, &stop).await?;
        let bytes = report.bytes(settings.output, log::colour(std::io::stdout().is_terminal()))?;
        match write(bytes, &stop).await {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                let _ = writeln!(std::io::stderr(), "error: the report could not be written: {error}");
                // What was deleted is deleted; a more severe code stays.
                Ok(report.exit.max(Exit::Incomplete).code())
            }
            _ => Ok(report.exit.code()),
        }
    });
    // Not waited for: a credential plugin, a question or a reader may still block a thread.
    runtime.shutdown_background();
    code
}

/// Writes to standard output, for as long as its reader takes, unless a signal says that nobody waits any more.
async fn write(bytes: Vec<u8>, stop: &Stop) -> std::io::Result<()> {
    let written = tokio::task::spawn_blocking(move || {
        let mut out = std::io::stdout().lock();
        out.write_all(&bytes).and_then(|()| out.flush())
    });
    tokio::select! {
        written = written => written?,
        () = stop.given_up() => Err(std::io::Error::new(ErrorKind::Interrupted, "a signal came first")),
    }
}
