//! Parse, start the log, run, write the report, hand over the metrics, map to an exit code.

use std::{
    io::{self, BufWriter, ErrorKind, Write},
    process::ExitCode,
};

use anyhow::Context as _;
use pod_reaper::{
    cli::{Cli, Command, Output, commands},
    exit::{Exit, USAGE},
    explain, log,
    metrics::Metrics,
    reap::{self, CouldNotRun},
    report::text::Screen,
    settings::Settings,
    stop::Stop,
    terminal, whatif,
};

fn main() -> ExitCode {
    let settings = Settings::from(Cli::from_process());
    log::start(settings.log_format, settings.log_level);
    run(&settings).unwrap_or_else(|error| complain(&error)).into()
}

/// Says why there is no answer, and gives the exit code.
fn complain(error: &anyhow::Error) -> u8 {
    terminal::error(&format!("{error:#}"));
    match error.downcast_ref::<CouldNotRun>() {
        Some(CouldNotRun::Usage(_)) => USAGE,
        _ => Exit::CouldNotRun.code(),
    }
}

fn run(settings: &Settings) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting")?;
    let code = runtime.block_on(async {
        let stop = Stop::listen(settings.deadline).context("listening for signals")?;
        let mut metrics = Metrics::begin(settings);
        let told = tell(settings, &stop, &mut metrics).await;
        let code = told.map_or_else(|error| complain(&error), Exit::code);
        metrics.deliver(code, &stop).await;
        Ok(code)
    });
    // Not waited for: a credential plugin, a question or a reader may still block a thread.
    runtime.shutdown_background();
    code
}

/// Answers, and writes it down.
async fn tell(settings: &Settings, stop: &Stop, metrics: &mut Metrics) -> anyhow::Result<Exit> {
    let (answer, exit) = answer(settings, stop, metrics).await?;
    match write(answer, settings.output, stop).await {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            terminal::error(&format!(
                "the report could not be written: {error}; what was done is in the log, and the next run tells what is left"
            ));
            // What was deleted is deleted; a more severe code stays.
            Ok(exit.max(Exit::Incomplete))
        }
        _ => Ok(exit),
    }
}

/// What is to be written, once it is known where to.
type Answer = Box<dyn FnOnce(Output, Screen, &mut dyn Write) -> io::Result<()> + Send>;

/// What was asked for, and how it ended.
async fn answer(settings: &Settings, stop: &Stop, metrics: &mut Metrics) -> anyhow::Result<(Answer, Exit)> {
    Ok(match &settings.command {
        Command::Run => {
            let report = reap::run(settings, stop).await?;
            metrics.take(&report);
            let exit = report.exit;
            (Box::new(move |output, screen, out| report.write(output, screen, out)), exit)
        }
        Command::WhatIf { nodes } => {
            let answer = whatif::run(settings, nodes, stop).await?;
            let exit = answer.exit;
            (Box::new(move |output, screen, out| answer.write(output, screen, out)), exit)
        }
        Command::Explain(pod) => {
            let answer = explain::run(settings, pod, stop).await?;
            let exit = answer.exit;
            (Box::new(move |output, screen, out| answer.write(output, screen, out)), exit)
        }
        Command::Completions(shell) => {
            let script = commands::completions(*shell);
            (Box::new(move |_, _, out| out.write_all(&script)), Exit::Done)
        }
        Command::Man => {
            let page = commands::man()?;
            (Box::new(move |_, _, out| out.write_all(&page)), Exit::Done)
        }
    })
}

/// Writes to standard output, for as long as its reader takes, unless a signal says that nobody waits any more.
async fn write(answer: Answer, output: Output, stop: &Stop) -> io::Result<()> {
    let written = tokio::task::spawn_blocking(move || {
        // Standard output's own buffer ends at each line.
        let mut out = BufWriter::new(io::stdout().lock());
        answer(output, terminal::screen(), &mut out)?;
        out.flush()
    });
    tokio::select! {
        written = written => written?,
        () = stop.given_up() => Err(io::Error::new(ErrorKind::Interrupted, "a signal came first")),
    }
}
