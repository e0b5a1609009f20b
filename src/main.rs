//! Parse, start the log, run, write the report, map to an exit code.

use std::{
    io::{BufWriter, ErrorKind, IsTerminal, Write},
    process::ExitCode,
};

use anyhow::Context as _;
use pod_reaper::{
    cli::{Cli, Output},
    exit::{Exit, USAGE},
    log,
    reap::{self, CouldNotRun},
    report::Report,
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
        let exit = report.exit;
        match write(report, settings.output, &stop).await {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                let _ = writeln!(std::io::stderr(), "error: the report could not be written: {error}");
                // What was deleted is deleted; a more severe code stays.
                Ok(exit.max(Exit::Incomplete).code())
            }
            _ => Ok(exit.code()),
        }
    });
    // Not waited for: a credential plugin, a question or a reader may still block a thread.
    runtime.shutdown_background();
    code
}

/// Writes to standard output, for as long as its reader takes, unless a signal says that nobody waits any more.
async fn write(report: Report, output: Output, stop: &Stop) -> std::io::Result<()> {
    let written = tokio::task::spawn_blocking(move || {
        let colour = log::colour(std::io::stdout().is_terminal());
        // Standard output's own buffer ends at each line.
        let mut out = BufWriter::new(std::io::stdout().lock());
        report.write(output, colour, &mut out)?;
        out.flush()
    });
    tokio::select! {
        written = written => written?,
        () = stop.given_up() => Err(std::io::Error::new(ErrorKind::Interrupted, "a signal came first")),
    }
}
