//! The values of options. Each parser's error says what to write.

use std::{
    env,
    io::{self, IsTerminal as _},
};

use clap::{
    ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};

use crate::selector::is_name;

/// A value of `--output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For a person.
    Text,
    /// For a program.
    Json,
    /// For a browser, in one file.
    Html,
}

/// The words of [`Output`], as the help of `--output` shows them.
pub const OUTPUTS: &str = "text|json|html";

/// A value of `--log-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line for each event.
    Text,
    /// One JSON object for each event.
    Json,
}

/// The name of a pod, with its namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodName {
    pub namespace: String,
    pub name: String,
}

impl std::fmt::Display for PodName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Parses a size in bytes, such as `512Mi`.
pub fn size(text: &str) -> Result<u64, &'static str> {
    [("Ki", 10), ("Mi", 20), ("Gi", 30)]
        .into_iter()
        .find_map(|(unit, power)| {
            let number = text.trim().strip_suffix(unit)?.parse::<u64>().ok()?;
            number.checked_mul(1 << power)
        })
        .filter(|size| *size > 0)
        .ok_or("write a size with its unit, such as 512Mi or 4Gi")
}

/// Returns a parser of an object's name. `hint` ends its error message.
pub fn name(hint: &'static str) -> impl Fn(&str) -> Result<String, String> + Clone {
    move |text| {
        is_name(text)
            .then(|| text.to_owned())
            .ok_or(format!("it is not a Kubernetes name; {hint}"))
    }
}

/// Parses `NAMESPACE/POD`, or `POD`, whose namespace is then empty.
pub fn pod_name(text: &str) -> Result<PodName, &'static str> {
    let (namespace, pod) = text.split_once('/').unwrap_or(("", text));
    if !is_name(pod) || !is_name(namespace) && pod != text {
        return Err("write namespace and pod, such as vault/vault-0, in lower case");
    }
    Ok(PodName {
        namespace: namespace.to_owned(),
        name: pod.to_owned(),
    })
}

/// Returns a parser of `true` and `false`, in any case.
pub fn boolean() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["true", "false"]).map(|word| word.eq_ignore_ascii_case("true"))
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

/// Returns the default of `--history-namespace`: the namespace of the run's own pod, by the downward API.
pub fn usual_history_namespace() -> String {
    env::var("POD_NAMESPACE")
        .ok()
        .filter(|name| is_name(name))
        .unwrap_or_else(|| "pod-reaper".to_owned())
}
