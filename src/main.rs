//! Parses the command line, starts the log, runs, writes the report, and maps
//! the result to an exit code.

use std::{process::ExitCode, time::Duration};

use pod_reaper::{
    cli::{self, Cli, Command, LogFormat},
    console::{log, output, terminal},
    exit::{Exit, Result},
    explain, run, save,
    settings::Settings,
    stop::Stop,
};
use tracing_subscriber::filter::LevelFilter;

fn main() -> ExitCode {
    let cli = Cli::from_process();
    if let Some(Command::Completions { shell }) = cli.command {
        return output::write_text(&cli::completions(shell)).into();
    }
    let exit = if let Some(Command::Save(options)) = &cli.command {
        log::start(LogFormat::Text, LevelFilter::WARN);
        start(options.reach.deadline, async |stop| {
            save::save(options, stop).await
        })
    } else {
        let settings = Settings::from(cli);
        log::start(settings.form.log_format, settings.form.log_level);
        start(settings.deadline, async |stop| {
            perform(&settings, stop).await
        })
    };
    let exit = exit.unwrap_or_else(|error| {
        terminal::error(&error.to_string());
        Exit::from(&error)
    });
    exit.into()
}

/// Starts the async runtime, and performs the command in it.
fn start(deadline: Duration, command: impl AsyncFnOnce(&Stop) -> Result<Exit>) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let stop = Stop::listen(deadline)?;
    let exit = runtime.block_on(command(&stop));
    // The program does not wait for blocked threads: a thread may still hang in a credential
    // plugin, the prompt, or a reader of the report.
    runtime.shutdown_background();
    exit
}

/// Performs a run or answers a question, and writes its report.
async fn perform(settings: &Settings, stop: &Stop) -> Result<Exit> {
    let run = match &settings.explained {
        Some(pod) => explain::run(settings, pod, stop).await?,
        None => run::run(settings, stop).await?,
    };
    Ok(output::write(&run, &settings.form, stop).await)
}
