//! The command line: commands, options, their environment variables and their help.

mod options;
mod values;

use std::{env, ffi::OsString};

use clap::{
    Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{Error, ErrorKind},
    parser::ValueSource,
};
use clap_complete::Shell;

pub use self::options::{Common, HistoryPlace, Options, OutputFormats, Reach, SaveOptions};
pub use self::values::{LogFormat, Output, PodName};
use crate::selector::regex;

/// Force-deletes pods stuck Terminating on NotReady nodes, and reports those that need you. It deletes
/// no PVC itself. Without --dry-run it deletes pods; at a terminal it asks first.
///
/// Run it by hand, from a CronJob, or as an audit that changes nothing (--dry-run, --snapshot). The
/// report goes to standard output, the log to standard error. First aid for any pod that stays
/// Terminating is docs/first-aid.md. An option can also be set by the
/// environment variable shown with it. The command line takes precedence.
#[derive(Debug, Parser)]
#[command(name = "pod-reaper", version, max_term_width = 100, override_usage = USAGE, after_long_help = EXIT_CODES, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The options of a run.
    #[command(flatten)]
    pub options: Options,
    /// The options and variables that select the namespaces.
    #[arg(skip)]
    pub filters: Vec<Filter>,
}

/// A command other than a run.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the verdict on a pod, the rule that decides and what to do; only reads
    Explain {
        /// The pod, as NAMESPACE/POD, POD or pod/POD. Add -n NAMESPACE if several pods have that name
        #[arg(value_name = "POD", value_parser = values::pod_name)]
        pod: PodName,
        #[command(flatten)]
        common: Common,
    },
    /// Save the state of a cluster as a file for --snapshot; only reads
    ///
    /// The file has what the program reads: no environment, no arguments, no images, no Secrets, no notes of people. Names of
    /// objects and the labels of nodes stay, so look at it before you show it to others. A list that could not be read is
    /// named, and ends it with exit code 3.
    Save(SaveOptions),
    /// Print a completion script
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
}

/// An option that selects namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The option as it is typed, or its variable if the variable has set it.
    pub name: String,
    /// Whether the option was typed, rather than set by a variable, which serves many clusters.
    pub is_typed: bool,
}

/// The options without a variable, because a stray variable must not set them.
const WITHOUT_VARIABLE: [&str; 9] = [
    "namespace",
    "yes",
    "all",
    "output",
    "snapshot",
    "now",
    "suppose_dead",
    "context",
    "kubeconfig",
];
const USAGE: &str = "\
pod-reaper --dry-run [OPTIONS]          Look, and change nothing
       pod-reaper [OPTIONS]                    Delete what is stuck; at a terminal, ask first
       pod-reaper --snapshot <FILE> [OPTIONS]  Audit a saved file
       pod-reaper explain [OPTIONS] <POD>      Why a pod is kept, and what to do
       pod-reaper save [OPTIONS] [FILE]        Save the state of a cluster as a file";
const EXIT_CODES: &str = "\
Exit codes (the first that applies: 2, 1, 5, 4, 3):
  0  success, also if no pod was stuck
  1  could not run: no connection, no permission to list nodes or pods, no guard although one is
     required, a file that is no saved state
  2  wrong usage, a missing file or context, a broken kubeconfig, or neither --yes nor a terminal
  3  finished, but something could not be deleted, verified, read or reported
  4  a limit held at least one pod (--max-deletes does not count, and an unread fact gives 3)
  5  with --exit-on-manual: something cannot wait until working hours";

impl Cli {
    /// Reads the process's arguments and environment. Ends the process after `--help` and
    /// `--version`, and with exit code 2 on wrong usage.
    pub fn from_process() -> Self {
        Self::try_from_args(env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// Reads `args`, which begin with the program's name, then the environment.
    /// `Err` is clap's error, which `--help` and `--version` also return.
    pub fn try_from_args(args: impl IntoIterator<Item = OsString>) -> Result<Self, Error> {
        let mut command = command_line();
        let matches = command.try_get_matches_from_mut(args)?;
        if matches.subcommand_name() != Some("completions") {
            refuse_settings_directory()
                .map_err(|message| command.error(ErrorKind::ValueValidation, message))?;
        }
        let inner = matches.subcommand().map_or(&matches, |(_, inner)| inner);
        Self::from_arg_matches(&matches)?
            .completed(inner)
            .map_err(|message| command.error(ErrorKind::ArgumentConflict, message))
    }

    /// Refuses options that contradict each other, and resolves `-n` and the name of a pod. `Err` is the
    /// message. `matches` are those of the command.
    fn completed(mut self, matches: &ArgMatches) -> Result<Self, String> {
        let common = match &mut self.command {
            Some(Command::Explain { pod, common }) => {
                // kubectl prints a pod as POD or pod/POD. In these forms, `-n` gives the pod's
                // namespace and is no filter. Without it, the one pod of that name is meant.
                let PodName { namespace, name } = pod;
                if namespace.is_empty() || namespace == "pod" {
                    *namespace = common.namespace.take().unwrap_or_default();
                } else if let Some(other) = common.namespace.as_ref().filter(|it| *it != namespace)
                {
                    return Err(format!(
                        "{namespace}/{name} is not in namespace {other}; leave -n out"
                    ));
                }
                common
            }
            Some(Command::Save(_) | Command::Completions { .. }) => return Ok(self),
            None => &mut self.options.common,
        };
        // `-n NAME` is `--namespace-regex` for exactly this name. It takes precedence over the
        // variable.
        if let Some(name) = &common.namespace {
            if is_typed(matches, "namespace_regex") {
                return Err(
                    "--namespace-regex cannot be combined with -n; leave one out".to_owned(),
                );
            }
            common.namespaces.include = Some(regex(&format!("^{}$", regex::escape(name)))?);
            self.filters.push(Filter {
                name: format!("-n {name}"),
                is_typed: true,
            });
        }
        let include = common
            .namespaces
            .include
            .as_ref()
            .filter(|_| common.namespace.is_none());
        for (id, regex) in [
            ("namespace_regex", include),
            (
                "namespace_exclude_regex",
                common.namespaces.exclude.as_ref(),
            ),
        ] {
            let is_typed = is_typed(matches, id);
            let name = if is_typed { option(id) } else { variable(id) };
            let filter = Filter { name, is_typed };
            self.filters.extend(regex.map(|_| filter));
        }
        Ok(self)
    }
}

/// Builds the whole command line.
fn command_line() -> clap::Command {
    Cli::command()
        .mut_args(with_shared_settings)
        .mut_subcommands(|command| command.mut_args(with_shared_settings))
}

/// Applies the settings that all options of a kind share.
fn with_shared_settings(arg: Arg) -> Arg {
    let id = arg.get_id().as_str();
    let name = variable(id);
    // Manifests unset a variable by an empty text.
    let is_empty = env::var_os(&name).is_some_and(|value| value.is_empty());
    let arg = if arg.is_positional() || WITHOUT_VARIABLE.contains(&id) || is_empty {
        arg
    } else {
        arg.env(name)
    };
    // The help must not show the values of variables.
    let arg = arg.hide_env_values(true);
    match arg.get_action() {
        ArgAction::SetTrue if arg.get_env().is_none() => arg,
        // `--option=false` can override a variable that turns the option on.
        ArgAction::SetTrue => arg
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .value_name("true|false")
            .default_value("false")
            .default_missing_value("true")
            .hide_possible_values(true)
            .ignore_case(true)
            .value_parser(values::boolean()),
        _ => arg.ignore_case(true),
    }
}

/// Refuses the manifests of 0.5, which name a directory of settings by this variable: this version does
/// not see the settings that they mount, `DRY_RUN` among them. `Err` is the message.
fn refuse_settings_directory() -> Result<(), String> {
    const DIRECTORY: &str = "POD_REAPER_SETTINGS";
    if env::var_os(DIRECTORY).is_none_or(|value| value.is_empty()) {
        return Ok(());
    }
    Err(format!(
        "{DIRECTORY} is set, as by the manifests of 0.5, and this version reads no settings from a directory; apply the \
         manifests of this version, or unset {DIRECTORY} and set a variable for each option"
    ))
}

/// Returns the option as it is typed.
fn option(id: &str) -> String {
    format!("--{}", id.replace('_', "-"))
}

/// Returns the variable of an option that has one.
fn variable(id: &str) -> String {
    id.to_uppercase()
}

/// Reports whether the option is on the command line.
fn is_typed(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Returns the completion script for a shell.
pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command_line(), "pod-reaper", &mut script);
    // The script for bash spells the name of a program with a hyphen in two ways, so it does not
    // find the options of subcommands (clap-rs/clap#6421).
    String::from_utf8_lossy(&script).replace("pod__subcmd__reaper", "pod__reaper")
}

#[cfg(test)]
mod tests;
