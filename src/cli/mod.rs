//! What may be typed, nothing else: commands, options, their environment variables, their help.

mod gateway;
mod options;
mod print;
mod values;

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use clap::{
    Arg, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand,
    builder::Resettable,
    error::{ContextKind, ContextValue, Error, ErrorKind},
    parser::ValueSource,
};
use clap_complete::Shell;

use crate::facts::KubeletAlive;

pub use self::{
    gateway::{Login, PushGateway},
    options::{Common, Form, MetricsTo, Options, Thresholds},
    values::{DryRun, LogFormat, Output, PodName, Span},
};

/// What is asked for, and the options for it.
#[derive(Debug)]
pub struct Cli {
    /// What is asked for.
    pub command: Command,
    /// All options; those that the command does not take change nothing.
    pub options: Options,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A run.
    Run,
    /// `what-if`, with the nodes that are supposed to die, at least one.
    WhatIf(Vec<String>),
    /// `explain`.
    Explain(PodName),
    /// `completions`.
    Completions(Shell),
    /// `man`.
    Man,
}

/// Force-deletes pods stuck Terminating on NotReady nodes; leaves to a person what a program must not decide.
///
/// Run it by hand, from a CronJob, or as an audit that changes nothing (--dry-run, --snapshot). The report goes to
/// standard output, the log to standard error. An option with an [env: NAME] below can also be set by that
/// environment variable; the command line beats it.
#[derive(Debug, Parser)]
#[command(name = "pod-reaper", version, max_term_width = 100, after_long_help = EXIT_CODES, disable_help_subcommand = true)]
struct Line {
    #[command(subcommand)]
    subcommand: Option<Typed>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Subcommand)]
enum Typed {
    /// Say what would happen if these nodes died now; only reads
    #[command(max_term_width = 100)]
    WhatIf {
        /// A node that is supposed to die now; repeatable, or several names
        #[arg(long, value_name = "NAME", num_args = 1.., required = true, value_parser = values::name("write a node's name, as kubectl get nodes prints it"))]
        node: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Say of every rule what it sees in this pod, and which one decides; only reads
    #[command(max_term_width = 100)]
    Explain {
        /// The pod
        #[arg(value_name = "NAMESPACE/POD", value_parser = values::pod_name)]
        pod: PodName,
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        thresholds: Thresholds,
    },
    /// Print a completion script: bash, zsh or fish
    Completions {
        /// The shell
        #[arg(value_parser = ["bash", "zsh", "fish"])]
        shell: String,
    },
    /// Print the manual page
    Man,
}

/// Name under which kubectl finds the program as a plugin, and runs it.
const PLUGIN: [&str; 2] = ["kubectl-pod_reaper", "kubectl-pod-reaper"];
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
        let program = args.first().map(OsString::as_os_str);
        let mut command = everywhere(whole(program), forget_empty_variable);
        let matches = command.try_get_matches_from_mut(&args).map_err(|error| match error.kind() {
            // Help shows every variable, an empty one too.
            ErrorKind::DisplayHelp => {
                let whole = everywhere(whole(program), |arg| arg.hide_env_values(true));
                whole.try_get_matches_from(&args).err().unwrap_or(error)
            }
            _ => explain(error, &args, &mut command),
        })?;
        let Line { subcommand, options } = Line::from_arg_matches(&matches)?;
        let inner = matches.subcommand();
        Self::new(subcommand, options)
            .checked(&matches, inner)
            .map_err(|says| command.error(ErrorKind::ArgumentConflict, says))
    }

    fn new(subcommand: Option<Typed>, run: Options) -> Self {
        // A question changes nothing, and no metrics are about it.
        let (dry_run, metrics) = (DryRun::Client, MetricsTo::default());
        let run = match subcommand {
            None => run,
            Some(_) => Options { dry_run, yes: false, require_guard: false, metrics, ..run },
        };
        let (command, options) = match subcommand {
            None => (Command::Run, run),
            Some(Typed::WhatIf { node, common }) => (Command::WhatIf(node), Options { common, ..run }),
            Some(Typed::Explain { pod, common, thresholds }) => {
                (Command::Explain(pod), Options { common, thresholds, ..run })
            }
            Some(Typed::Completions { shell }) => {
                (Command::Completions(shell.parse().unwrap_or(Shell::Bash)), run)
            }
            Some(Typed::Man) => (Command::Man, run),
        };
        Self { command, options }
    }

    /// Refuses what contradicts itself. `inner` are the matches of the subcommand, where there is one.
    fn checked(mut self, matches: &ArgMatches, inner: Option<(&str, &ArgMatches)>) -> Result<Self, String> {
        if let Some((name, _)) = inner
            && let Some(option) = typed(matches).next()
        {
            return Err(format!("{option} stands before {name}; write it after: {name} {option} …"));
        }
        if let Some((name @ ("what-if" | "explain"), _)) = inner
            && matches!(self.options.common.form.output, Output::Markdown | Output::Html)
        {
            return Err(format!(
                "{name} answers as text or json only; leave --output out, or write --output json"
            ));
        }
        let matches = inner.map_or(matches, |(_, inner)| inner);
        // `-n NAME` is `--namespace-regex` for exactly that one. It beats the variable, and clashes with the option.
        let common = &mut self.options.common;
        if let Some(name) = &common.namespace {
            if typed(matches).any(|option| option == "--namespace-regex") {
                let says = "--namespace and --namespace-regex say the same thing twice; leave one out";
                return Err(says.to_owned());
            }
            common.namespace_regex = Some(values::regex(&format!("^{}$", regex::escape(name)))?);
        }
        if common.unreachable_only && common.kubelet_alive == KubeletAlive::Reap {
            return Err(
                "--unreachable-only and --kubelet-alive=reap contradict each other; leave one out".to_owned()
            );
        }
        // An audit of a saved state is no run that metrics could be about: its moment is past, and its cluster may be
        // any. A variable is meant for runs, and counts for nothing here.
        if common.snapshot.is_some() {
            let metrics = ["--push-gateway", "--metrics-file"];
            if let Some(option) = typed(matches).find(|option| metrics.contains(&option.as_str())) {
                return Err(format!(
                    "{option} does not go with --snapshot: metrics are about runs; leave it out"
                ));
            }
            self.options.metrics = MetricsTo::default();
        }
        Ok(self)
    }
}

/// The whole command line. `program` is the name that it was called by.
fn whole(program: Option<&OsStr>) -> clap::Command {
    let file = program.map(Path::new).and_then(Path::file_stem);
    let plugin = PLUGIN.iter().any(|name| file == Some(OsStr::new(name)));
    // A subcommand has few options: its short help is the long one.
    let whole = Line::command().mut_subcommands(|command| command.mut_args(|arg| arg.hide_short_help(false)));
    if plugin { whole.bin_name("kubectl pod-reaper") } else { whole }
}

/// The options that stand on the command line, as they are typed.
fn typed(matches: &ArgMatches) -> impl Iterator<Item = String> + '_ {
    let whole = Line::command();
    let is_option = move |id: &str| whole.get_arguments().any(|arg| arg.get_id() == id);
    // Groups have an id too: the name of their struct.
    let ids = matches.ids().map(clap::Id::as_str).filter(move |id| is_option(id));
    let typed = ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
    typed.map(|id| format!("--{}", id.replace('_', "-")))
}

/// What clap alone says too little about.
fn explain(error: Error, args: &[OsString], command: &mut clap::Command) -> Error {
    let word = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) if error.kind() == ErrorKind::UnknownArgument => word.clone(),
        _ => return error,
    };
    let says = match word.as_str() {
        // What kubectl's users type first.
        "server" | "client" | "none" => {
            format!("{word:?} stands alone; join it to its option: --dry-run={word}")
        }
        "true" | "false" => {
            format!("{word:?} stands alone; join it to its option, such as --unreachable-only={word}")
        }
        _ => {
            let of_run = command.get_arguments().any(|arg| arg.get_long() == word.strip_prefix("--"));
            let name = command.get_subcommands().map(clap::Command::get_name);
            let name = name.into_iter().find(|name| args.iter().any(|arg| arg == name));
            let Some(name) = name.filter(|_| of_run) else { return error };
            let why = match (name, word.as_str()) {
                ("what-if", "--reap-older-than" | "--node-not-ready-for") => {
                    "the nodes are supposed dead for longer than any threshold"
                }
                _ => "it only reads, and answers one question",
            };
            format!("{word} does not go with {name}: {why}; leave it out")
        }
    };
    command.error(ErrorKind::UnknownArgument, says)
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

#[cfg(test)]
mod tests;
