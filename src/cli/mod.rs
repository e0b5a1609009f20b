//! The command line: commands, options, their environment variables and their help.

mod options;
mod values;

use std::{
    env,
    ffi::{OsStr, OsString},
    path::Path,
};

use clap::{
    Arg, ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand,
    builder::Resettable,
    error::{ContextKind, ContextValue, Error, ErrorKind},
    parser::ValueSource,
};
use clap_complete::Shell;
use itertools::Itertools as _;

pub use self::options::{Common, Options, OutputFormats};
use self::values::PODS;
pub use self::values::{LogFormat, Output, PodName};
use crate::selector::regex;

/// Force-deletes pods stuck Terminating on NotReady nodes, and reports those that need you. It never
/// deletes a PVC. Without --dry-run it deletes pods; at a terminal it asks first.
///
/// Run it by hand, from a CronJob, or as an audit that changes nothing (--dry-run, --snapshot). The
/// report goes to standard output, the log to standard error. An option can also be set by the
/// environment variable shown with it. The command line takes precedence.
#[derive(Debug, Parser)]
#[command(name = "pod-reaper", version, max_term_width = 100, override_usage = USAGE, after_long_help = EXIT_CODES)]
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
        /// The pod, as NAMESPACE/POD, POD, pod/POD or pod POD. Add -n NAMESPACE if several pods have that name
        #[arg(value_name = "POD", value_parser = values::pod_name)]
        pod: PodName,
        /// The pod's name, if its kind is a word of its own
        #[arg(hide = true, value_parser = values::pod_name)]
        name: Option<PodName>,
        #[command(flatten)]
        common: Common,
    },
    /// Print a completion script: bash, zsh or fish
    Completions {
        /// The shell
        #[arg(value_parser = values::shell())]
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

/// The name under which kubectl finds the program as a plugin.
const PLUGIN: &str = "kubectl-pod_reaper";
/// The options in the short help.
const SHORT_HELP: [&str; 9] = [
    "namespace_regex",
    "namespace",
    "reap_older_than",
    "dry_run",
    "yes",
    "output",
    "snapshot",
    "context",
    "kubeconfig",
];
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
       pod-reaper explain [OPTIONS] <POD>      Why a pod is kept, and what to do";
const EXIT_CODES: &str = "\
Exit codes (the first that applies: 2, 1, 5, 4, 3):
  0  success, also if no pod was stuck
  1  could not run: no connection, no permission to list nodes or pods, no guard although one is
     required, a file that is no saved state
  2  wrong usage, a missing file or context, a broken kubeconfig, or neither --yes nor a terminal
  3  finished, but something could not be deleted, verified, read or reported
  4  the mass-outage breaker held at least one pod
  5  with --exit-on-manual: something needs you";

impl Cli {
    /// Reads the process's arguments and environment. Ends the process after `--help` and
    /// `--version`, and with exit code 2 on wrong usage.
    pub fn from_process() -> Self {
        Self::try_from_args(env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// Reads `args`, which begin with the program's name, then the environment.
    /// `Err` is clap's error, which `--help` and `--version` also return.
    pub fn try_from_args(args: impl IntoIterator<Item = OsString>) -> Result<Self, Error> {
        let mut args = args.into_iter().collect_vec();
        subcommand_first(&mut args);
        let shown = command_line(args.first().map(OsString::as_os_str));
        // The program reports an error of the command line before one of a variable.
        let mut typed = map_options(shown.clone(), without_variable);
        let matches = typed.try_get_matches_from_mut(&args);
        let matches = matches.map_err(|error| match error.kind() {
            // The help shows the variables.
            ErrorKind::DisplayHelp => help(shown.clone(), &args).unwrap_or(error),
            _ => clarify(error, &args, &mut typed, false),
        })?;
        // Variables of options that the command does not take are meant for other commands.
        let (of_run, needs_settings) = match matches.subcommand_name() {
            None => (without_empty_variable as fn(_) -> _, true),
            Some(name) => (without_variable as fn(_) -> _, name != "completions"),
        };
        let mut command = map_options(shown, without_empty_variable).mut_args(of_run);
        if needs_settings {
            refuse_settings_directory()
                .map_err(|message| command.error(ErrorKind::ValueValidation, message))?;
        }
        let matches = command
            .try_get_matches_from_mut(&args)
            .map_err(|error| clarify(error, &args, &mut command, true))?;
        let inner = matches.subcommand().map_or(&matches, |(_, inner)| inner);
        Self::from_arg_matches(&matches)?
            .completed(inner)
            .map_err(|message| command.error(ErrorKind::ArgumentConflict, message))
    }

    /// Refuses options that contradict each other, and resolves `-n` and the name of a pod. `Err` is the
    /// message. `matches` are those of the command.
    fn completed(mut self, matches: &ArgMatches) -> Result<Self, String> {
        let common = match &mut self.command {
            Some(Command::Explain { pod, name, common }) => {
                let is_kind = |word: &str| PODS.contains(&word);
                if let Some(name) = name.take() {
                    if !pod.namespace.is_empty() || !is_kind(&pod.name) {
                        return Err("explain takes one pod; write NAMESPACE/POD".to_owned());
                    }
                    *pod = name;
                }
                // kubectl prints a pod as POD or pod/POD. In these forms, `-n` gives the pod's
                // namespace and is no filter. Without it, the one pod of that name is meant.
                let PodName { namespace, name } = pod;
                if namespace.is_empty() || is_kind(namespace) {
                    *namespace = common.namespace.take().unwrap_or_default();
                } else if let Some(other) = common.namespace.as_ref().filter(|it| *it != namespace)
                {
                    return Err(format!(
                        "{namespace}/{name} is not in namespace {other}; leave -n out"
                    ));
                }
                common
            }
            Some(Command::Completions { .. }) => return Ok(self),
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
        let include = common.namespaces.include.as_ref();
        let include = include.filter(|_| common.namespace.is_none());
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

/// Returns the help that `args` ask for. `--help` lists all options in the brief form of `-h`, which shows
/// the most common ones; the page of the options has the rest.
fn help(mut command: clap::Command, args: &[OsString]) -> Option<Error> {
    let is_whole = args.iter().any(|arg| arg == "--help");
    if is_whole {
        let all = |arg: Arg| arg.hide_short_help(false);
        command = command.mut_args(all).after_help(EXIT_CODES);
    }
    let brief = |arg: &OsString| {
        if arg == "--help" {
            OsString::from("-h")
        } else {
            arg.clone()
        }
    };
    command.try_get_matches_from(args.iter().map(brief)).err()
}

/// Builds the whole command line. `program` is the name that the program was called by.
fn command_line(program: Option<&OsStr>) -> clap::Command {
    let whole = map_options(Cli::command(), with_shared_settings)
        // A subcommand has few options, so its short help shows all of them.
        .mut_subcommands(|command| command.mut_args(|arg| arg.hide_short_help(false)));
    match program.map(Path::new).and_then(Path::file_stem) {
        Some(name) if name == PLUGIN => whole.bin_name("kubectl pod-reaper"),
        _ => whole,
    }
}

/// Applies the settings that all options of a kind share.
fn with_shared_settings(arg: Arg) -> Arg {
    let is_short = SHORT_HELP.contains(&arg.get_id().as_str());
    let id = arg.get_id().as_str();
    let arg = if arg.is_positional() || WITHOUT_VARIABLE.contains(&id) {
        arg
    } else {
        let name = variable(id);
        arg.env(name)
    };
    // The help must not show the values of variables.
    let arg = arg.hide_env_values(true).hide_short_help(!is_short);
    let is_number = |name: &str| ["DURATION", "N", "1-100"].contains(&name);
    match arg.get_action() {
        ArgAction::SetTrue if arg.get_env().is_none() => arg,
        // `--option=false` can override a variable that turns the option on.
        ArgAction::SetTrue => {
            let arg = arg
                .action(ArgAction::Set)
                .num_args(0..=1)
                .require_equals(true)
                .value_name("true|false")
                .default_value("false")
                .default_missing_value("true")
                .hide_possible_values(true);
            arg.ignore_case(true).value_parser(values::boolean())
        }
        _ => {
            // A negative number is reported as a wrong value rather than as an unknown option.
            let number = arg
                .get_value_names()
                .is_some_and(|names| is_number(&names[0]));
            arg.ignore_case(true).allow_hyphen_values(number)
        }
    }
}

/// Moves the subcommand, if there is one, before the options, because options in front of the subcommand may
/// belong to it.
fn subcommand_first(args: &mut [OsString]) {
    let options = Options::augment_args(clap::Command::new("")).allow_external_subcommands(true);
    let options =
        map_options(options, |arg| without_variable(with_shared_settings(arg))).ignore_errors(true);
    let matches = options.try_get_matches_from(&*args).ok();
    let Some((name, rest)) = matches.as_ref().and_then(ArgMatches::subcommand) else {
        return;
    };
    let before = args.len() - rest.get_raw("").map_or(0, Iterator::count);
    if Cli::command().find_subcommand(name).is_some() {
        args[1..before].rotate_right(1);
    }
}

/// Refuses the manifests of 0.5, which name a directory of settings by this variable: this version does
/// not see the settings that they mount, `DRY_RUN` among them. `Err` is the message.
fn refuse_settings_directory() -> Result<(), String> {
    const DIRECTORY: &str = "POD_REAPER_SETTINGS";
    if is_empty(OsStr::new(DIRECTORY)) {
        return Ok(());
    }
    Err(format!(
        "{DIRECTORY} is set, as by the manifests of 0.5, and this version reads no settings from a directory; apply the \
         manifests of this version, or unset {DIRECTORY} and set a variable for each option"
    ))
}

/// Reports whether a variable is treated as not set: manifests unset a variable by an empty text.
fn is_empty(variable: &OsStr) -> bool {
    env::var_os(variable).is_none_or(|value| value.is_empty())
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

/// Replaces clap's message by a clearer one in some cases. The subcommand, if any, follows the program's name
/// in `args`. If `of_variables` is set, the command line is valid, so a variable has the wrong value.
fn clarify(
    mut error: Error,
    args: &[OsString],
    command: &mut clap::Command,
    of_variables: bool,
) -> Error {
    if let Some(ContextValue::Strings(lacks)) = error.get(ContextKind::InvalidArg)
        && lacks.iter().any(|name| name == "<POD>")
    {
        let message = "explain needs a pod; write NAMESPACE/POD";
        return command.error(ErrorKind::MissingRequiredArgument, message);
    }
    let subcommand = args.get(1).and_then(|name| command.find_subcommand(name));
    let asked = subcommand.unwrap_or(&*command);
    let word = error
        .get(ContextKind::InvalidArg)
        .or_else(|| error.get(ContextKind::InvalidSubcommand));
    let Some(ContextValue::String(word)) = word.cloned() else {
        return error;
    };
    if let Some(arg) = asked.get_arguments().find(|arg| arg.to_string() == word) {
        if of_variables {
            let variable = ContextValue::String(variable(arg.get_id().as_str()));
            error.insert(ContextKind::InvalidArg, variable);
        }
        return error;
    }
    let subcommand_name = subcommand.map(clap::Command::get_name);
    let message = if let Some(message) = not_joined(&word, args, asked) {
        message
    } else if error.kind() == ErrorKind::InvalidSubcommand {
        // For a misspelled command, clap's error already has a hint.
        if error.get(ContextKind::SuggestedSubcommand).is_some() {
            return error;
        }
        format!(
            "there is no command {word:?}; type --snapshot FILE to audit a saved file, and explain POD to ask about a pod"
        )
    } else if let Some(name) = subcommand_name
        && command
            .get_arguments()
            .any(|arg| arg.get_long() == word.strip_prefix("--"))
    {
        format!("{word} has no effect on {name}; leave it out")
    } else {
        return error;
    };
    command.error(ErrorKind::UnknownArgument, message)
}

/// Says how to write `word` if it follows an option that takes its value only after `=`: users of kubectl are
/// used to a space.
fn not_joined(word: &str, args: &[OsString], command: &clap::Command) -> Option<String> {
    let wants_equals = |typed: &OsString| {
        let name = typed.to_str()?.strip_prefix("--")?;
        let mut all = command.get_arguments();
        all.find(|arg| arg.is_require_equals_set() && arg.get_long() == Some(name))
    };
    let mut pairs = args.windows(2);
    let pair = pairs.find(|pair| pair[1] == *word && wants_equals(&pair[0]).is_some())?;
    let option = pair[0].display();
    Some(format!(
        "{option} takes its value only after an equals sign; write {option}={word}"
    ))
}

/// Returns the completion script for a shell.
pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command_line(None), "pod-reaper", &mut script);
    // The script for bash spells the name of a program with a hyphen in two ways, so it does not
    // find the options of subcommands (clap-rs/clap#6421).
    String::from_utf8_lossy(&script).replace("pod__subcmd__reaper", "pod__reaper")
}

/// Warns about variables whose names nearly match one of ours: they have no effect. The log must
/// not show their values, which may be secret.
pub fn warn_of_what_has_no_effect() {
    let options = command_line(None);
    let variables = options
        .get_arguments()
        .filter_map(|arg| arg.get_env()?.to_str());
    let ours = variables.collect_vec();
    for name in env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
        let typed = name.to_uppercase().replace('-', "_");
        // Kubernetes sets several variables for each Service in a pod's namespace, so a looser
        // match would warn about those variables.
        let near = |our: &&&str| {
            our.len().abs_diff(typed.len()) < 3
                && strsim::osa_distance(&typed, our) <= our.len() / 7
        };
        if let Some(our) = ours.iter().find(near).filter(|our| **our != name) {
            tracing::warn!("The variable {name} has no effect; did you mean {our}?");
        }
    }
}

/// Applies `change` to the options of the run and of all subcommands.
fn map_options(command: clap::Command, change: fn(Arg) -> Arg) -> clap::Command {
    command
        .mut_args(change)
        .mut_subcommands(|subcommand| subcommand.mut_args(change))
}

fn without_variable(arg: Arg) -> Arg {
    arg.env(Resettable::Reset)
}

fn without_empty_variable(arg: Arg) -> Arg {
    if arg.get_env().is_some_and(is_empty) {
        without_variable(arg)
    } else {
        arg
    }
}

#[cfg(test)]
mod tests;
