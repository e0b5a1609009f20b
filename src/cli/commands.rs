//! The subcommands. A run has none.
//!
//! Their options are the run's own, defined once. Those that make no sense for a subcommand are refused there, with
//! the reason: an option that is passed over in silence would be a promise that nobody keeps.

use std::ffi::OsStr;

use clap::{
    Arg, ArgAction, ArgMatches, Command as Clap, CommandFactory, FromArgMatches,
    builder::Resettable,
    error::{Error, ErrorKind},
    parser::ValueSource,
};
use clap_complete::Shell;

use super::{Cli, Output, everywhere, forget_empty_variable};
use crate::{explain::PodName, objects::is_name};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Command {
    /// A run.
    #[default]
    Run,
    /// `what-if`.
    WhatIf {
        /// The nodes that are supposed to die, at least one.
        nodes: Vec<String>,
    },
    /// `explain`.
    Explain(PodName),
    /// `completions`.
    Completions(Shell),
    /// `man`.
    Man,
}

/// Name under which kubectl finds the program as a plugin, and runs it.
const PLUGIN: [&str; 2] = ["kubectl-pod_reaper", "kubectl-pod-reaper"];

const WHAT_IF: &str = "what-if";
const EXPLAIN: &str = "explain";
/// The run's options that `what-if` takes.
const WHAT_IF_TAKES: [&str; 15] = [
    "namespace",
    "namespace_regex",
    "namespace_exclude_regex",
    "unreachable_only",
    "manual_owner_kind",
    "leaf_node_selector",
    "max_not_ready_percent",
    "deadline",
    "output",
    "log_format",
    "log_level",
    "snapshot",
    "now",
    "context",
    "kubeconfig",
];
/// Those that `explain` takes besides: the pod's own thresholds.
const EXPLAIN_TAKES_TOO: [&str; 3] = ["reap_older_than", "node_not_ready_for", "max_deletes"];

fn takes(subcommand: &str, option: &str) -> bool {
    match subcommand {
        WHAT_IF => WHAT_IF_TAKES.contains(&option),
        EXPLAIN => WHAT_IF_TAKES.contains(&option) || EXPLAIN_TAKES_TOO.contains(&option),
        _ => false,
    }
}

/// The whole command line. `program` is the name that it was called by.
pub(super) fn whole(program: Option<&OsStr>) -> Clap {
    let file = program.map(std::path::Path::new).and_then(std::path::Path::file_stem);
    let plugin = PLUGIN.iter().any(|name| file == Some(OsStr::new(name)));
    let whole = Cli::command()
        .subcommand_required(false)
        .subcommand(what_if())
        .subcommand(explain())
        .subcommand(
            Clap::new("completions").about("Print a completion script: bash, zsh or fish").arg(
                Arg::new("shell")
                    .value_parser([
                        clap::builder::PossibleValue::new("bash"),
                        clap::builder::PossibleValue::new("zsh"),
                        clap::builder::PossibleValue::new("fish"),
                    ])
                    .required(true)
                    .help("The shell"),
            ),
        )
        .subcommand(Clap::new("man").about("Print the manual page"))
        .disable_help_subcommand(true);
    if plugin { whole.bin_name("kubectl pod-reaper") } else { whole }
}

fn what_if() -> Clap {
    let node = Arg::new("node")
        .long("node")
        .value_name("NAME")
        .help("A node that is supposed to die now; repeatable, or several names")
        .num_args(1..)
        .action(ArgAction::Append)
        .required(true)
        .value_parser(node_name);
    let command = Clap::new(WHAT_IF)
        .about("Say what would happen if these nodes died now; only reads")
        .max_term_width(100)
        .arg(node);
    with_options(command)
}

fn explain() -> Clap {
    let pod =
        Arg::new("pod").value_name("NAMESPACE/POD").help("The pod").required(true).value_parser(pod_name);
    let command = Clap::new(EXPLAIN)
        .about("Say of every rule what it sees in this pod, and which one decides; only reads")
        .max_term_width(100)
        .arg(pod);
    with_options(command)
}

/// All options of the run: those that it does not take out of sight, to be refused with a reason.
fn with_options(command: Clap) -> Clap {
    let subcommand = command.get_name().to_owned();
    let run = Cli::command();
    let options = run.get_arguments().filter(|arg| !["help", "version"].contains(&arg.get_id().as_str()));
    let options = options.cloned().map(|arg| {
        if takes(&subcommand, arg.get_id().as_str()) {
            // Nothing is left to shorten: with so few options the short help is the long one.
            arg.hide_short_help(false)
        } else {
            // Nor does a variable count that is meant for runs.
            arg.hide(true).env(Resettable::Reset)
        }
    });
    command.args(options.collect::<Vec<_>>())
}

/// What the matches ask for. The options are those of the subcommand, where there is one.
pub(super) fn read(matches: &ArgMatches, whole: &mut Clap) -> Result<Cli, Error> {
    let Some((name, inner)) = matches.subcommand() else {
        let cli = with_namespace(Cli::from_arg_matches(matches)?, matches, whole)?;
        return without_metrics_of_a_snapshot(cli, matches, whole);
    };
    if let Some(option) = typed(matches).next() {
        let says = format!("{option} stands before {name}; write it after: {name} {option} …");
        return Err(whole.error(ErrorKind::ArgumentConflict, says));
    }
    let command = match name {
        "completions" => {
            let shell = inner.get_one::<String>("shell").and_then(|shell| shell.parse().ok());
            Command::Completions(shell.unwrap_or(Shell::Bash))
        }
        "man" => Command::Man,
        WHAT_IF => Command::WhatIf {
            nodes: inner.get_many::<String>("node").into_iter().flatten().cloned().collect(),
        },
        _ => match inner.get_one::<PodName>("pod") {
            Some(pod) => Command::Explain(pod.clone()),
            None => return Err(whole.error(ErrorKind::MissingRequiredArgument, "which pod?")),
        },
    };
    if matches!(command, Command::Completions(_) | Command::Man) {
        // These are about runs, and no run takes place.
        return Ok(Cli {
            command,
            push_gateway: None,
            metrics_file: None,
            ..Cli::from_arg_matches(matches)?
        });
    }
    let refused = typed(inner).find(|option| {
        let id = option.trim_start_matches("--").replace('-', "_");
        !["node", "pod"].contains(&id.as_str()) && !takes(name, &id)
    });
    if let Some(option) = refused {
        let why =
            if name == WHAT_IF && ["--reap-older-than", "--node-not-ready-for"].contains(&option.as_str()) {
                "the nodes are supposed dead for longer than any threshold"
            } else {
                "it only reads, and answers one question"
            };
        return Err(whole.error(
            ErrorKind::ArgumentConflict,
            format!("{option} does not go with {name}: {why}; leave it out"),
        ));
    }
    let cli = with_namespace(Cli::from_arg_matches(inner)?, inner, whole)?;
    if matches!(cli.output, Output::Markdown | Output::Html) {
        let says = format!("{name} answers as text or json only; leave --output out, or write --output json");
        return Err(whole.error(ErrorKind::ArgumentConflict, says));
    }
    Ok(Cli { command, ..cli })
}

/// The options that stand on the command line, as they are typed.
fn typed(matches: &ArgMatches) -> impl Iterator<Item = String> + '_ {
    let on_line = |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    // Groups have an id too; the derived one is the struct's name.
    let options = matches.ids().filter(|id| id.as_str() != "Cli").filter(on_line);
    options.map(|id| format!("--{}", id.as_str().replace('_', "-")))
}

/// `-n NAME` is `--namespace-regex` for exactly that one. It beats the variable, and clashes with the option.
fn with_namespace(mut cli: Cli, matches: &ArgMatches, whole: &mut Clap) -> Result<Cli, Error> {
    if let Some(name) = &cli.namespace {
        if typed(matches).any(|option| option == "--namespace-regex") {
            let says = "--namespace and --namespace-regex say the same thing twice; leave one out";
            return Err(whole.error(ErrorKind::ArgumentConflict, says));
        }
        let exact = format!("^{}$", regex::escape(name));
        let exact = regex::Regex::new(&exact);
        cli.namespace_regex =
            Some(exact.map_err(|error| whole.error(ErrorKind::ValueValidation, error.to_string()))?);
    }
    Ok(cli)
}

/// An audit of a saved state is no run that metrics could be about: its moment is past, and its cluster may be any. A
/// variable is meant for runs, and counts for nothing here.
fn without_metrics_of_a_snapshot(cli: Cli, matches: &ArgMatches, whole: &mut Clap) -> Result<Cli, Error> {
    if cli.snapshot.is_none() {
        return Ok(cli);
    }
    match typed(matches).find(|option| ["--push-gateway", "--metrics-file"].contains(&option.as_str())) {
        Some(option) => {
            let says = format!("{option} does not go with --snapshot: metrics are about runs; leave it out");
            Err(whole.error(ErrorKind::ArgumentConflict, says))
        }
        None => Ok(Cli { push_gateway: None, metrics_file: None, ..cli }),
    }
}

/// The completion script of `shell`.
pub fn completions(shell: Shell) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut whole = everywhere(whole(None), forget_empty_variable);
    clap_complete::generate(shell, &mut whole, "pod-reaper", &mut bytes);
    // The script for bash names a program with a hyphen in two ways, and then finds no subcommand's options
    // (clap-rs/clap#6421).
    String::from_utf8_lossy(&bytes).replace("pod__subcmd__reaper", "pod__reaper").into_bytes()
}

/// The manual page: that of a run, with the options of each subcommand after it.
pub fn man() -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut whole = everywhere(whole(None), |arg| arg.hide_env_values(true));
    whole.build();
    clap_mangen::Man::new(whole.clone()).render(&mut bytes)?;
    for name in [WHAT_IF, EXPLAIN] {
        if let Some(subcommand) = whole.find_subcommand(name) {
            let named = subcommand.clone().display_name(format!("pod-reaper {name}"));
            let page = clap_mangen::Man::new(named);
            bytes.extend_from_slice(format!(".SH \"POD-REAPER {}\"\n", name.to_uppercase()).as_bytes());
            page.render_synopsis_section(&mut bytes)?;
            page.render_options_section(&mut bytes)?;
        }
    }
    Ok(bytes)
}

pub(super) fn namespace_name(text: &str) -> Result<String, String> {
    name(text).map_err(|why| format!("{why}; write the name of one namespace, or use --namespace-regex"))
}

fn node_name(text: &str) -> Result<String, String> {
    name(text).map_err(|why| format!("{why}; write a node's name, as kubectl get nodes prints it"))
}

fn pod_name(text: &str) -> Result<PodName, String> {
    let parts = text.split_once('/').map(|(namespace, pod)| (name(namespace), name(pod)));
    match parts {
        Some((Ok(namespace), Ok(name))) => Ok(PodName { namespace, name }),
        _ => Err("write namespace and pod with a slash between, such as vault/vault-0".to_owned()),
    }
}

fn name(text: &str) -> Result<String, String> {
    if is_name(text) { Ok(text.to_owned()) } else { Err("it is no name of Kubernetes".to_owned()) }
}
