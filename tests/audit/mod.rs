//! The whole program, run on a saved state. The net and the tables of rules both judge files by it.

use pod_reaper::{cli::Cli, explain, run::run, settings::Settings, stop::Stop};
use serde_json::Value;

/// The settings that a command line gives.
pub fn settings(args: &[String]) -> Settings {
    Settings::from(Cli::try_from_args(args.iter().map(Into::into)).unwrap())
}

/// Judges a saved state at a moment, or explains a pod of it, with these arguments. Returns the JSON report, or why that failed.
pub fn audit(state: &str, now: &str, mut args: Vec<String>) -> Result<Value, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, state).unwrap();
    args.push(format!("--snapshot={}", file.path().display()));
    args.push(format!("--now={now}"));
    let settings = settings(&args);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let report = runtime.block_on(async {
        let (_signal, stop) = Stop::manual(settings.deadline);
        match &settings.explained {
            Some(pod) => explain::run(&settings, pod, &stop).await,
            None => run(&settings, &stop).await,
        }
    });
    let report = report.map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(report.report()).unwrap())
}
