//! The command line: commands, options, their environment variables and their help.

mod options;
mod values;
mod variables;

use std::{
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

/// The command line and the environment, read and checked.
#[derive(Debug)]
pub struct Cli {
    pub command: Command,
    /// The options of all commands. Those that `command` does not take have their defaults.
    pub options: Options,
    /// The options and variables that select the namespaces.
    pub filters: Vec<Filter>,
}

/// An option that selects namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The option as it is typed, or its variable if the variable has set it.
    pub name: String,
    /// Whether the option was typed, rather than set by a variable, which serves many clusters.
    pub is_typed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Deletes and reports.
    Run,
    /// Explains the verdict on a pod.
    Explain(PodName),
    /// Prints a completion script, for which no cluster is needed.
    Completions(Shell),
}

/// Force-deletes pods stuck Terminating on NotReady nodes, never their data, and reports those that need
/// you. Without --dry-run it deletes; at a terminal it asks first.
///
/// Run it by hand, from a CronJob, or as an audit that changes nothing (--dry-run, --snapshot). The
/// report goes to standard output, the log to standard error. An option can also be set by the
/// environment variable shown with it. The command line takes precedence.
#[derive(Debug, Parser)]
#[command(name = "pod-reaper", version, max_term_width = 100, after_long_help = EXIT_CODES)]
struct Line {
    #[command(subcommand)]
    subcommand: Option<Typed>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Subcommand)]
enum Typed {
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
const EXIT_CODES: &str = "\
Exit codes:
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
        Self::try_from_args(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// Reads `args`, which begin with the program's name, then the environment.
    /// `Err` is clap's error, which `--help` and `--version` also return.
    pub fn try_from_args(args: impl IntoIterator<Item = OsString>) -> Result<Self, Error> {
        let mut args = args.into_iter().collect_vec();
        subcommand_first(&mut args);
        let shown = command_line(args.first().map(OsString::as_os_str));
        let mut command = map_options(shown.clone(), without_variable);
        let typed = command.try_get_matches_from_mut(&args);
        let typed = typed.map_err(|error| match error.kind() {
            // The help shows the variables.
            ErrorKind::DisplayHelp => help(shown.clone(), &args).unwrap_or(error),
            _ => clarify(error, &args, &mut command, false),
        })?;
        if let Some((_, explain)) = typed.subcommand()
            && let Some(word) = first_word(explain, "name")
            && first_word(explain, "pod").is_none_or(|kind| !PODS.contains(&kind))
        {
            let asked = command.find_subcommand("explain").unwrap_or(&command);
            let message = not_joined(word, &args, asked);
            let message =
                message.unwrap_or_else(|| "explain takes one pod; write NAMESPACE/POD".to_owned());
            return Err(command.error(ErrorKind::UnknownArgument, message));
        }
        let further = options_of_variables(&shown, &typed)
            .map_err(|message| command.error(ErrorKind::ValueValidation, message))?;
        let at = 1 + usize::from(typed.subcommand().is_some());
        let (before, after) = args.split_at(at.min(args.len()));
        let all = [before, &further, after].concat();
        let matches = command
            .try_get_matches_from_mut(all)
            .map_err(|error| clarify(error, &args, &mut command, true))?;
        let Line {
            subcommand,
            options,
        } = Line::from_arg_matches(&matches)?;
        let inner = typed.subcommand().map_or(&typed, |(_, inner)| inner);
        let cli = Self::new(subcommand, options);
        cli.checked(inner)
            .map_err(|message| command.error(ErrorKind::ArgumentConflict, message))
    }

    /// Converts what clap has parsed.
    fn new(subcommand: Option<Typed>, mut options: Options) -> Self {
        let command = match subcommand {
            None => Command::Run,
            Some(Typed::Explain { pod, name, common }) => {
                options.common = common;
                // `checked` examines the word before the name.
                let pod = name.unwrap_or(pod);
                Command::Explain(pod)
            }
            Some(Typed::Completions { shell }) => Command::Completions(shell),
        };
        if command != Command::Run {
            // All commands except the run only read.
            options.dry_run = true;
        }
        Self {
            command,
            options,
            filters: Vec::new(),
        }
    }

    /// Refuses options that contradict each other, and resolves `-n` and the variables that
    /// `--snapshot` turns off. `Err` is the message. `typed` is the command line alone, or that of the subcommand, if any.
    fn checked(mut self, typed: &ArgMatches) -> Result<Self, String> {
        let common = &mut self.options.common;
        if let Command::Explain(pod) = &mut self.command {
            let PodName { namespace, name } = pod;
            // kubectl prints a pod as POD or pod/POD. In these forms, `-n` gives the pod's
            // namespace and is no filter.
            let bare = namespace.is_empty() || PODS.contains(&namespace.as_str());
            if let Some(other) = common
                .namespace
                .as_ref()
                .filter(|it| !bare && *it != namespace)
            {
                return Err(format!(
                    "{namespace}/{name} is not in namespace {other}; leave -n out"
                ));
            }
            *namespace = common
                .namespace
                .take_if(|_| bare)
                .unwrap_or_else(|| std::mem::take(namespace));
            // Without a namespace, the one pod of that name is meant.
            if bare && PODS.contains(&namespace.as_str()) {
                namespace.clear();
            }
        }
        let names_namespaces = common.namespace.is_some();
        if names_namespaces && first_typed(typed, &["namespace_regex"]).is_some() {
            return Err("--namespace-regex cannot be combined with -n; leave one out".to_owned());
        }
        // `-n NAME` is `--namespace-regex` for exactly this name. It takes precedence over the
        // variable.
        if names_namespaces {
            let only = common
                .namespace
                .as_ref()
                .map(|name| format!("^{}$", regex::escape(name)));
            common.namespaces.include = only.as_deref().map(regex).transpose()?;
        }
        let filters = ["namespace", "namespace_regex", "namespace_exclude_regex"];
        self.filters = filters
            .into_iter()
            .filter_map(|id| {
                let is_typed = is_given(typed, id);
                let is_used = match id {
                    "namespace_regex" => !names_namespaces && common.namespaces.include.is_some(),
                    "namespace_exclude_regex" => common.namespaces.exclude.is_some(),
                    _ => common.namespace.is_some(),
                };
                let name = match &common.namespace {
                    Some(name) if id == "namespace" => format!("-n {name}"),
                    _ if is_typed => option(id),
                    _ => variable(id),
                };
                is_used.then_some(Filter { name, is_typed })
            })
            .collect();
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
    let whole = map_options(Line::command(), with_shared_settings)
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
    if Line::command().find_subcommand(name).is_some() {
        args[1..before].rotate_right(1);
    }
}

/// Returns the options that variables set and the user has not typed, each as it would be typed. Variables of
/// options that the command does not take are meant for other commands. `Err` is the message for manifests
/// whose settings this version does not see.
fn options_of_variables(
    whole: &clap::Command,
    typed: &ArgMatches,
) -> Result<Vec<OsString>, String> {
    let (command, typed) = match typed.subcommand() {
        Some((name, inner)) => (whole.find_subcommand(name).unwrap_or(whole), inner),
        None => (whole, typed),
    };
    let with_variable = command
        .get_arguments()
        .filter(|arg| arg.get_env().is_some());
    let with_variable = with_variable.collect_vec();
    // A text about the program itself does not depend on any setting.
    if !with_variable.is_empty() {
        variables::check()?;
    }
    let set = with_variable.into_iter().filter_map(|arg| {
        let id = arg.get_id().as_str();
        if is_given(typed, id) {
            return None;
        }
        let mut option = OsString::from(format!("{}=", option(id)));
        option.push(variables::value_of(&variable(id))?);
        Some(option)
    });
    Ok(set.collect())
}

/// Returns the option as it is typed.
fn option(id: &str) -> String {
    format!("--{}", id.replace('_', "-"))
}

/// Returns the variable of an option that has one.
fn variable(id: &str) -> String {
    id.to_uppercase()
}

/// Returns the first of the options `ids` that is on the command line, as it is typed. Options that
/// the command does not have are skipped.
fn first_typed(typed: &ArgMatches, ids: &[&str]) -> Option<String> {
    let id = ids.iter().find(|id| is_given(typed, id))?;
    Some(option(id))
}

/// Returns the first word that was typed for an argument, if the command has the argument.
fn first_word<'a>(typed: &'a ArgMatches, id: &str) -> Option<&'a str> {
    typed.try_get_raw(id).ok()??.next()?.to_str()
}

/// Reports whether the command has the option, and its value is not the default.
fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.ids().any(|known| known == id)
        && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Replaces clap's message by a clearer one in some cases. The subcommand, if any, follows the program's name
/// in `args`. If `of_variables` is set, the command line is valid, so a variable has the wrong value.
fn clarify(
    mut error: Error,
    args: &[OsString],
    command: &mut clap::Command,
    of_variables: bool,
) -> Error {
    let subcommand = args.get(1).and_then(|name| command.find_subcommand(name));
    let asked = subcommand.unwrap_or(&*command);
    let word = error
        .get(ContextKind::InvalidArg)
        .or_else(|| error.get(ContextKind::InvalidSubcommand));
    let Some(ContextValue::String(word)) = word.cloned() else {
        return error;
    };
    if let Some(arg) = asked.get_arguments().find(|arg| arg.to_string() == word) {
        let mut replace = |kind, by: String| error.insert(kind, ContextValue::String(by));
        if of_variables {
            replace(ContextKind::InvalidArg, variable(arg.get_id().as_str()));
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
        format!("there is no command {word:?}; did you mean: explain {word}?")
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
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
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

#[cfg(test)]
mod tests;
