//! The values of options. Each parser's error says what to write.

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
    time::Duration,
};

use clap::{
    ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use clap_complete::Shell;
use jiff::Timestamp;
use regex::Regex;
use tracing_subscriber::filter::LevelFilter;

use crate::{
    cluster::Mode,
    decide::{BUILT_IN, KubeletAlive, same_kind},
    selector::{NodeSelector, is_name},
};

/// The values of `--dry-run`.
impl ValueEnum for Mode {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Delete, Self::ServerDryRun, Self::ClientDryRun]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Delete => Some(PossibleValue::new("none").alias("false")),
            Self::ServerDryRun => Some(PossibleValue::new("server").alias("true")),
            Self::ClientDryRun => Some(PossibleValue::new("client")),
            Self::Snapshot => None,
        }
    }
}

/// A value of `--require-guard`, in ascending order of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum RequireGuard {
    /// Nothing has to prove itself.
    False,
    /// The guard.
    True,
    /// The node guard too.
    Nodes,
}

/// A value of `--output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
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

/// The words of [`Output`], as the help of `--output` shows them.
pub const OUTPUTS: &str = "text|json|markdown|html";

/// A value of `--log-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line for each event.
    Text,
    /// One JSON object for each event.
    Json,
}

/// The name of a pod, with its namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodName {
    pub namespace: String,
    pub name: String,
}

impl std::fmt::Display for PodName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Parses a duration such as `10m` or `1h 30m`.
pub fn span(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    let why = if trimmed.contains('M') {
        // humantime reads M as months of 30.44 days. Here it is a typing error for m.
        "M would be months"
    } else if trimmed.ends_with(|letter: char| letter.is_ascii_digit()) {
        "a bare number has no unit"
    } else if let Ok(span) = humantime::parse_duration(trimmed) {
        return Ok(span);
    } else {
        "it is not a duration"
    };
    Err(format!(
        "{why}; write it with a unit, such as 10m or 1h 30m"
    ))
}

pub fn regex(text: &str) -> Result<Regex, String> {
    let text = filled("leave it out for all, or write one such as ^prod-")(text)?;
    Regex::new(&text).map_err(|error| {
        let error = error.to_string();
        let cause = error.lines().last().unwrap_or_default();
        let cause = cause.trim_start_matches("error: ");
        format!("{cause}; write a regular expression such as ^prod- or ^(compute|impala)-")
    })
}

pub fn node_selector(text: &str) -> Result<NodeSelector, String> {
    text.parse().map_err(|cause| format!("{cause}; write a label selector such as example.org/leaf=true, or annotation:KEY[=VALUE], or taint:KEY[=VALUE]"))
}

pub fn moment(text: &str) -> Result<Timestamp, &'static str> {
    text.parse()
        .map_err(|_| "write a time such as 2026-01-31T03:00:00Z")
}

pub fn count(text: &str) -> Result<usize, &'static str> {
    let count = text.trim().parse();
    count.map_err(|_| "write a whole number such as 50; 0 is no limit")
}

pub fn percent(text: &str) -> Result<u8, &'static str> {
    let percent = text.trim().parse().ok();
    percent
        .filter(|percent| (1..=100).contains(percent))
        .ok_or("write a whole number from 1 to 100, such as 55")
}

pub fn cluster_name(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() || text.contains(char::is_control) {
        return Err("write a name such as prod-eu, in one line");
    }
    Ok(text.to_owned())
}

/// Returns a parser that accepts any text but blanks. `hint` ends its error message.
pub fn filled(hint: &'static str) -> impl Fn(&str) -> Result<String, String> + Clone {
    move |text| match text.trim() {
        "" => Err(format!("it is empty; {hint}")),
        _ => Ok(text.to_owned()),
    }
}

pub fn kind(text: &str) -> Result<String, String> {
    let kind = filled("write a kind such as StatefulSet")(text.trim())?;
    let is_slip = |known: &&&str| {
        // Of a short name, two letters are half of it.
        let most = if known.len() < 8 { 1 } else { 2 };
        !same_kind(known, &kind)
            && strsim::osa_distance(&known.to_lowercase(), &kind.to_lowercase()) <= most
    };
    match BUILT_IN.iter().find(is_slip) {
        Some(known) if !BUILT_IN.iter().any(|it| same_kind(it, &kind)) => Err(format!(
            "it is no kind, and would protect nothing; did you mean {known}?"
        )),
        _ => Ok(kind),
    }
}

pub fn path(text: &str) -> Result<PathBuf, String> {
    filled("write a file name")(text).map(PathBuf::from)
}

/// Returns a parser of an object's name. `hint` ends its error message.
pub fn name(hint: &'static str) -> impl Fn(&str) -> Result<String, String> + Clone {
    move |text| {
        is_name(text)
            .then(|| text.to_owned())
            .ok_or(format!("it is not a Kubernetes name; {hint}"))
    }
}

/// Returns a parser of a node's name, which may have the kind before it, as kubectl prints it.
pub fn node() -> impl Fn(&str) -> Result<String, String> + Clone {
    let is_name = name("write a node's name, as kubectl get nodes prints it");
    move |text| {
        let kinds = ["node/", "nodes/", "no/"];
        let bare = kinds.iter().find_map(|kind| text.strip_prefix(kind));
        is_name(bare.unwrap_or(text))
    }
}

/// Parses `NAMESPACE/POD`, or `POD`, whose namespace is then empty.
pub fn pod_name(text: &str) -> Result<PodName, &'static str> {
    let (namespace, pod) = text.split_once('/').unwrap_or(("", text));
    if !is_name(pod) || !is_name(namespace) && pod != text {
        return Err("write namespace and pod, such as vault/vault-0");
    }
    Ok(PodName {
        namespace: namespace.to_owned(),
        name: pod.to_owned(),
    })
}

/// Returns a parser of the shells in which completion is tested.
pub fn shell() -> impl TypedValueParser<Value = Shell> {
    PossibleValuesParser::new(["bash", "zsh", "fish"]).try_map(|name| name.parse::<Shell>())
}

/// Returns a parser of `true` and `false`, in any case.
pub fn boolean() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["true", "false"]).map(|word| word.eq_ignore_ascii_case("true"))
}

/// Returns a parser of the formats that a question has.
pub fn question_output() -> impl TypedValueParser<Value = Output> {
    PossibleValuesParser::new(["text", "json"]).try_map(|word| Output::from_str(&word, true))
}

/// Returns a parser of `--kubelet-alive`.
pub fn kubelet_alive() -> impl TypedValueParser<Value = KubeletAlive> {
    PossibleValuesParser::new(KubeletAlive::ALL.map(KubeletAlive::as_str)).try_map(|word| {
        let known = KubeletAlive::ALL
            .into_iter()
            .find(|known| known.as_str().eq_ignore_ascii_case(&word));
        known.ok_or("it is not one of these")
    })
}

/// Returns the default of `--log-level`. At a terminal it is `warn`, because the report, right
/// below the log, says what was done.
pub fn usual_log_level() -> &'static str {
    if io::stderr().is_terminal() {
        "warn"
    } else {
        "info"
    }
}

/// Returns a parser of `--log-level`.
pub fn log_level() -> impl TypedValueParser<Value = LevelFilter> {
    PossibleValuesParser::new(["off", "error", "warn", "info", "debug", "trace"])
        .try_map(|level| level.parse::<LevelFilter>())
}
