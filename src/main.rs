//! Parses the command line, starts the log, runs, writes the report, and maps
//! the result to an exit code.

use std::process::ExitCode;

use pod_reaper::{
    cli::{self, Cli, Command},
    console::{log, output, terminal},
    exit::{CouldNotRun, Exit, Result},
    questions::explain,
    run,
    settings::Settings,
    stop::Stop,
};

fn main() -> ExitCode {
    let cli = Cli::from_process();
    if let Command::Completions(shell) = cli.command {
        return output::write_script(&cli::completions(shell)).into();
    }
    let settings = Settings::from(cli);
    log::start(settings.form.log_format, settings.form.log_level);
    cli::warn_of_what_has_no_effect();
    start(&settings)
        .unwrap_or_else(|error| complain(&error))
        .into()
}

/// Prints why the program could not run, and returns the exit code.
fn complain(error: &CouldNotRun) -> Exit {
    terminal::error(&error.to_string());
    error.into()
}

/// Starts the async runtime, and performs the command in it.
fn start(settings: &Settings) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let exit = runtime.block_on(async {
        let stop = Stop::listen(settings.deadline)?;
        perform(settings, &stop).await
    });
    // The program does not wait for blocked threads: a thread may still hang in a credential
    // plugin, the prompt, or a reader of the report.
    runtime.shutdown_background();
    exit
}

/// Performs the command and writes its report.
async fn perform(settings: &Settings, stop: &Stop) -> Result<Exit> {
    let report = match &settings.command {
        Command::Explain(pod) => explain::run(settings, pod, stop).await?,
        // `main` has already printed this script.
        Command::Completions(shell) => {
            return Ok(output::write_script(&cli::completions(*shell)));
        }
        Command::Run => run::run(settings, stop).await?,
    };
    Ok(output::write(report, &settings.form, stop).await)
}
