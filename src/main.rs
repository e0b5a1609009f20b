//! Parse, start the log, run, write the report, map to an exit code.

use std::{
    io::{ErrorKind, IsTerminal, Write},
    process::ExitCode,
};

use anyhow::Context as _;
use pod_reaper::{
    cli::{Cli, Output},
    exit::{Exit, USAGE},
    log,
    reap::{self, CouldNotRun},
    report::{Report, text},
    settings::Settings,
    stop::Stop,
};

fn main() -> ExitCode {
    let settings = Settings::from(Cli::from_process());
    log::start(settings.log_format, settings.log_level);
    match run(&settings) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Said plainly as well: with --log-level=off the reason must not be lost.
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
    let report = runtime.block_on(async {
        let stop = Stop::listen(settings.deadline).context("listening for signals")?;
        anyhow::Ok(reap::run(settings, &stop).await?)
    });
    // Not waited for: a credential plugin or a question may still block a thread.
    runtime.shutdown_background();
    let report = report?;
    match write(&report, settings.output) {
        Ok(()) => Ok(report.exit_code),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(report.exit_code),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: the report could not be written: {error}");
            // What was deleted is deleted; a more severe code stays.
            Ok(if report.exit_code == Exit::Held.code() { report.exit_code } else { Exit::Incomplete.code() })
        }
    }
}

fn write(report: &Report, output: Output) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let bytes = match output {
        Output::Text => text::write(report, log::colour(out.is_terminal())).into_bytes(),
        Output::Json => report.json()?,
    };
    out.write_all(&bytes)?;
    out.flush()
}
