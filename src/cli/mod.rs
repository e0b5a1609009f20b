//! What may be typed, nothing else: options, their environment variables, their help.

pub mod commands;

use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use clap::{
    Arg, Parser, ValueEnum,
    builder::{Resettable, TypedValueParser},
    error::{ContextKind, ContextValue, Error, ErrorKind},
};
use jiff::Timestamp;
use regex::Regex;

pub use self::commands::Command;
use crate::{metrics::PushGateway, selector::Selector};

/// Force-deletes pods stuck Terminating on NotReady nodes; leaves to a person what a program must not decide.
///
/// Run it by hand, from a CronJob, or as an audit that changes nothing (--dry-run, --snapshot). The report goes to
/// standard output, the log to standard error. An option with an [env: NAME] below can also be set by that
/// environment variable; the command line beats it.
#[derive(Debug, Parser)]
#[command(name = "pod-reaper", version, max_term_width = 100, after_long_help = EXIT_CODES)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own, typed or not")]
pub struct Cli {
    /// Only namespaces that this regular expression matches, anywhere in the name [default: all]
    #[arg(long, env, value_name = "REGEX", value_parser = regex, help_heading = WHICH)]
    pub namespace_regex: Option<Regex>,

    /// Only this one namespace: short for --namespace-regex '^NAME$'
    #[arg(short, long, value_name = "NAME", value_parser = commands::namespace_name, help_heading = WHICH)]
    pub namespace: Option<String>,

    /// And not those that this one matches
    #[arg(long, hide_short_help = true, env, value_name = "REGEX", value_parser = regex, help_heading = WHICH)]
    pub namespace_exclude_regex: Option<Regex>,

    /// How long past its deletion deadline a pod counts as stuck (the deadline includes its grace period)
    #[arg(long, env, value_name = "DURATION", default_value = "10m", allow_hyphen_values = true, help_heading = WHICH)]
    pub reap_older_than: Span,

    /// How long its node must have been NotReady [default: as --reap-older-than]
    #[arg(long, hide_short_help = true, env, value_name = "DURATION", allow_hyphen_values = true, help_heading = WHICH)]
    pub node_not_ready_for: Option<Span>,

    /// Reap only where the node's Ready is Unknown: wait where its kubelet may still report
    #[arg(long, hide_short_help = true, env, value_name = "true|false", num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", action = clap::ArgAction::Set, help_heading = WHICH)]
    pub unreachable_only: bool,

    /// Flag pods whose owner is of this kind (such as StatefulSet) instead of reaping them; repeatable, or with commas
    #[arg(long, hide_short_help = true, env, value_name = "KIND", value_delimiter = ',', value_parser = kind, help_heading = WHICH)]
    pub manual_owner_kind: Vec<String>,

    /// Treat nodes that this label selector selects as leaf nodes, besides those that Kosmos marks
    #[arg(long, hide_short_help = true, env, value_name = "SELECTOR", value_parser = selector, help_heading = WHICH)]
    pub leaf_node_selector: Option<Selector>,

    /// Decide and report, change nothing: "server" (or nothing, or true) has the API server check each delete,
    /// "client" only reads
    #[arg(long, env, value_name = "server|client|none", num_args = 0..=1, require_equals = true,
        default_value = "none", default_missing_value = "server", hide_default_value = true, help_heading = LIMITS)]
    pub dry_run: DryRun,

    /// Most pods to delete in one run, the longest overdue first; 0 is no limit
    #[arg(long, hide_short_help = true, env, value_name = "N", default_value_t = 0, allow_hyphen_values = true, value_parser = count,
        help_heading = LIMITS)]
    pub max_deletes: usize,

    /// Delete nothing when more than 2 nodes, and this share of them, are NotReady; 100 turns it off
    #[arg(long, hide_short_help = true, env, value_name = "1-100", default_value_t = 55, allow_hyphen_values = true, value_parser = percent,
        help_heading = LIMITS)]
    pub max_not_ready_percent: u8,

    /// Run only where the guard proves that it keeps this account from deleting a running pod: its own, which the
    /// downward API names; --dry-run=client and --snapshot do not ask
    #[arg(long, hide_short_help = true, env, value_name = "true|false", num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", action = clap::ArgAction::Set, help_heading = LIMITS)]
    pub require_guard: bool,

    /// Time limit of the whole run
    #[arg(long, hide_short_help = true, env, value_name = "DURATION", default_value = "8m", allow_hyphen_values = true, help_heading = LIMITS)]
    pub deadline: Span,

    /// Do not ask before deleting (asked only when standard input is a terminal)
    #[arg(long, help_heading = LIMITS)]
    pub yes: bool,

    /// Form of the report
    #[arg(short, long, value_name = "text|json|markdown|html", default_value = "text", help_heading = REPORT)]
    pub output: Output,

    /// Report Terminating pods on Ready nodes too
    #[arg(long, hide_short_help = true, help_heading = REPORT)]
    pub all: bool,

    /// Exit with code 5 when something needs a person
    #[arg(long, hide_short_help = true, env, value_name = "true|false", num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", action = clap::ArgAction::Set, help_heading = REPORT)]
    pub exit_on_manual: bool,

    /// What to call the cluster in reports and metrics, where there are several
    #[arg(long, hide_short_help = true, env, value_name = "NAME", value_parser = cluster_name, help_heading = REPORT)]
    pub cluster_name: Option<String>,

    /// Push the metrics of the run to this Prometheus Pushgateway; a password in the URL is used and never shown
    #[arg(long, hide_short_help = true, env, value_name = "URL", value_parser = UrlParser, help_heading = METRICS)]
    pub push_gateway: Option<PushGateway>,

    /// Write them to this file, in place of the one before, for the textfile collector of node-exporter (NAME.prom)
    #[arg(long, hide_short_help = true, env, value_name = "FILE", value_parser = path, help_heading = METRICS)]
    pub metrics_file: Option<PathBuf>,

    /// Write no Kubernetes Events about what was done, nor Warnings about what needs a person
    #[arg(long, hide_short_help = true, env, value_name = "true|false", num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", action = clap::ArgAction::Set, help_heading = REPORT)]
    pub no_events: bool,

    /// Form of the log
    #[arg(long, hide_short_help = true, env, value_enum, value_name = "FORM", default_value_t = LogFormat::Text, help_heading = REPORT)]
    pub log_format: LogFormat,

    /// How much of the log
    #[arg(long, hide_short_help = true, env, value_enum, value_name = "LEVEL", default_value_t = LogLevel::Info, help_heading = REPORT)]
    pub log_level: LogLevel,

    /// Audit a saved cluster state (kubectl get … -o json) instead of a cluster; "-" is standard input
    #[arg(long, value_name = "FILE", value_parser = path, help_heading = SOURCE)]
    pub snapshot: Option<PathBuf>,

    /// With --snapshot: the moment to judge at [default: the newest observation in it]
    #[arg(long, hide_short_help = true, value_name = "RFC3339", value_parser = moment, requires = "snapshot", help_heading = SOURCE)]
    pub now: Option<Timestamp>,

    /// The kubeconfig's context to use
    #[arg(long, value_name = "NAME", value_parser = context, conflicts_with = "snapshot", help_heading = SOURCE)]
    pub context: Option<String>,

    /// The kubeconfig to use [default: KUBECONFIG, then ~/.kube/config, then the pod's ServiceAccount]
    #[arg(long, value_name = "FILE", value_parser = path, conflicts_with = "snapshot", help_heading = SOURCE)]
    pub kubeconfig: Option<PathBuf>,

    /// What is asked for; options do not say it.
    #[arg(skip)]
    pub command: Command,
}

const WHICH: &str = "Which pods";
const LIMITS: &str = "How far to go";
const REPORT: &str = "Report and log";
const SOURCE: &str = "Which cluster";
const METRICS: &str = "Metrics";
const EXIT_CODES: &str = "\
Exit codes:
  0  done, also when nothing was stuck
  1  could not run: no connection, no right to list nodes or pods, no guard where it is required,
     unreadable snapshot
  2  wrong usage, a missing context or broken kubeconfig among it
  3  finished, but something could not be deleted, verified, read or reported
  4  the mass-outage breaker held at least one pod
  5  with --exit-on-manual: something needs a person";

impl Cli {
    /// Reads the process's arguments and environment. Ends the process on --help, --version and wrong usage (2).
    pub fn from_process() -> Self {
        Self::try_from_args(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// Reads `args`, the program's name first, and the environment.
    pub fn try_from_args(args: impl IntoIterator<Item = OsString>) -> Result<Self, Error> {
        let args = args.into_iter().collect::<Vec<_>>();
        let whole = || commands::whole(args.first().map(OsString::as_os_str));
        let mut command = everywhere(whole(), forget_empty_variable);
        let matches = command.try_get_matches_from_mut(&args).map_err(|error| match error.kind() {
            // Help shows every variable, an empty one too.
            ErrorKind::DisplayHelp => {
                let whole = everywhere(whole(), |arg| arg.hide_env_values(true));
                whole.try_get_matches_from(&args).err().unwrap_or(error)
            }
            _ => explain(error, &mut command),
        })?;
        commands::read(&matches, &mut command).map_err(|error| error.format(&mut command))
    }
}

/// `--dry-run server` is what kubectl's users type first; clap only says that `server` is unexpected.
fn explain(error: Error, command: &mut clap::Command) -> Error {
    let lonely = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) if error.kind() == ErrorKind::UnknownArgument => word.clone(),
        _ => return error,
    };
    match lonely.as_str() {
        "server" | "client" | "none" => command.error(
            ErrorKind::UnknownArgument,
            format!("{lonely:?} stands alone; join it to its option: --dry-run={lonely}"),
        ),
        "true" | "false" => command.error(
            ErrorKind::UnknownArgument,
            format!("{lonely:?} stands alone; join it to its option, such as --unreachable-only={lonely}"),
        ),
        _ => error,
    }
}

/// Changes the arguments of the run, and of its subcommands.
fn everywhere(command: clap::Command, change: fn(Arg) -> Arg) -> clap::Command {
    command.mut_args(change).mut_subcommands(|subcommand| subcommand.mut_args(change))
}

/// A variable that is set to nothing counts as not set: that is how manifests unset one.
fn forget_empty_variable(arg: Arg) -> Arg {
    let empty =
        arg.get_env().is_some_and(|name| std::env::var_os(name).is_some_and(|value| value.is_empty()));
    // What is set does not belong into the help text.
    if empty { arg.env(Resettable::Reset) } else { arg.hide_env_values(true) }
}

/// A duration as a person types it: `10m`, `1h 30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(Duration);

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.0
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let example = "write it with a unit, such as 10m or 1h 30m";
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(format!("it is empty; {example}"));
        }
        if trimmed.starts_with('-') {
            return Err(format!("it is negative; {example}"));
        }
        if trimmed.chars().all(|letter| letter.is_ascii_digit()) {
            return Err(format!("a bare number has no unit; {example}"));
        }
        // humantime reads M as months of 30.44 days; here it is a slip for m.
        if trimmed.contains('M') {
            return Err(format!("M would be months; {example}"));
        }
        humantime::parse_duration(trimmed).map(Self).map_err(|error| format!("{error}; {example}"))
    }
}

/// `--dry-run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DryRun {
    /// Delete.
    None,
    /// The API server checks each delete.
    Server,
    /// Only read.
    Client,
}

impl FromStr for DryRun {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "true" | "server" => Ok(Self::Server),
            "client" => Ok(Self::Client),
            "false" | "none" => Ok(Self::None),
            _ => Err("write server (or true), client, or none (or false)".to_owned()),
        }
    }
}

/// `--output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// For a person.
    Text,
    /// For a program.
    Json,
    /// For a ticket or a chat.
    Markdown,
    /// For a browser, in one file.
    Html,
}

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "markdown" => Ok(Self::Markdown),
            "html" => Ok(Self::Html),
            _ => Err("write text, json, markdown or html".to_owned()),
        }
    }
}

/// `--log-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line an event.
    Text,
    /// A JSON object an event.
    Json,
}

/// `--log-level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// What ended the run.
    Error,
    /// What could not be done.
    Warn,
    /// What was done.
    Info,
    /// What was asked.
    Debug,
    /// Everything.
    Trace,
}

fn regex(text: &str) -> Result<Regex, String> {
    let text =
        nonempty(text).map_err(|_| "it is empty; leave it out for all, or write one such as ^prod-")?;
    Regex::new(&text).map_err(|error| {
        let cause = error.to_string();
        let cause = cause.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        format!("{cause}; write a regular expression such as ^prod- or ^(compute|impala)-")
    })
}

fn selector(text: &str) -> Result<Selector, String> {
    text.parse().map_err(|cause| format!("{cause}; write a label selector such as type=virtual-kubelet"))
}

fn moment(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "write a moment such as 2026-01-31T03:00:00Z".to_owned())
}

fn count(text: &str) -> Result<usize, String> {
    text.trim().parse().map_err(|_| "write a whole number such as 50; 0 is no limit".to_owned())
}

fn percent(text: &str) -> Result<u8, String> {
    let percent = text.trim().parse().ok().filter(|percent| (1..=100).contains(percent));
    percent.ok_or_else(|| "write a whole number from 1 to 100, such as 55".to_owned())
}

fn context(text: &str) -> Result<String, String> {
    nonempty(text).map_err(|_| "it is empty; write the name of a context".to_owned())
}

fn cluster_name(text: &str) -> Result<String, String> {
    match nonempty(text) {
        Ok(name) if !name.chars().any(char::is_control) => Ok(name),
        _ => Err("write a name such as prod-eu, in one line".to_owned()),
    }
}

/// clap shows the value that it refuses, and this one may hold a password.
#[derive(Clone)]
struct UrlParser;

impl TypedValueParser for UrlParser {
    type Value = PushGateway;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<PushGateway, Error> {
        let parsed = value.to_str().unwrap_or_default().parse::<PushGateway>();
        parsed.map_err(|says| {
            command.clone().error(
                ErrorKind::ValueValidation,
                format!("invalid value for '--push-gateway <URL>': {says}"),
            )
        })
    }
}

fn nonempty(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

fn kind(text: &str) -> Result<String, String> {
    nonempty(text.trim())
        .map(|kind| kind.trim().to_owned())
        .map_err(|_| "it is empty; write a kind such as StatefulSet".to_owned())
}

fn path(text: &str) -> Result<PathBuf, String> {
    nonempty(text).map(PathBuf::from).map_err(|_| "it is empty; write a file name".to_owned())
}

#[cfg(test)]
mod tests;
