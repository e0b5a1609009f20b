//! The options that the verdicts follow from: how they are parsed, applied and reported. `Policy` affects
//! a single pod, `Limits` a run as a whole.

use std::time::Duration;

use clap::{Args, value_parser};
use jiff::SignedDuration;
use serde::{Serialize, Serializer};

use crate::selector::NodeSelectors;

// The doc comment of a field is its help text, and its description in the report's schema.
/// The user's options that affect a single pod, as every report shows them.
#[derive(Debug, Clone, PartialEq, Args, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[command(next_help_heading = "Which pods")]
pub struct Policy {
    /// How long a pod must be overdue, and its node NotReady, before a run reaps (force-deletes) the pod.
    /// On a silent node, a run does not wait for the grace period
    #[arg(long, display_order = 3, value_name = "DURATION", value_parser = parse_threshold, default_value = "10m")]
    #[serde(rename = "reapOlderThanSeconds", serialize_with = "in_seconds")]
    #[cfg_attr(test, schemars(with = "i64"))]
    pub reap_older_than: SignedDuration,

    /// Keep pods with an owner of this kind, such as StatefulSet or sts: they need you. Also applies to
    /// the Deployment or CronJob above the owner. Repeatable, or separated by commas
    #[arg(id = "manual_owner_kind", long = "manual-owner-kind", value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    pub manual_owner_kinds: Vec<String>,

    /// The selectors of further leaf nodes and of fenced nodes.
    #[command(flatten)]
    #[serde(flatten)]
    pub node_selectors: NodeSelectors,
}

/// The user's options for a run as a whole, as every report shows them.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[command(next_help_heading = "Limits and safety")]
pub struct Limits {
    /// Maximum number of pods to delete in one run, the longest overdue first; 0 means no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub max_deletes: usize,

    /// Mass-outage breaker. Delete nothing if more than 2 nodes are NotReady and make up at least this
    /// percentage of all nodes or of the workers. If only one zone reaches the percentage, only its pods
    /// wait. 100 turns the breaker off: only if you have SEEN the nodes off
    #[arg(long, value_name = "1-100", default_value_t = 55, value_parser = value_parser!(u8).range(1..=100))]
    pub max_not_ready_percent: u8,

    /// Delete no pods of nodes that failed together: of more nodes than this, whose kubelets fell silent within two
    /// minutes. The machines can run. Confirm those that you found off. 0 means no limit
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub max_failed_together: usize,
}

fn in_seconds<S: Serializer>(span: &SignedDuration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i64(span.as_secs())
}

/// Reports whether two words name the same kind, ignoring case and plural. A plural or another case
/// in `--manual-owner-kind` must not lead to deleted pods.
pub fn same_kind(one: &str, other: &str) -> bool {
    // "Policy" and "policies" share a stem, and so do "Batch" and "batches".
    let stem = |kind: &str| {
        kind.to_ascii_lowercase()
            .replace('y', "i")
            .trim_end_matches('s')
            .trim_end_matches('e')
            .to_owned()
    };
    stem(one) == stem(other)
}

/// Parses a duration such as `10m` or `1h 30m`.
pub fn span(text: &str) -> Result<Duration, &'static str> {
    let trimmed = text.trim();
    // humantime reads M as months of 30.44 days, which is a typing error for m. It takes 0 without a unit.
    let is_odd = trimmed.contains('M') || trimmed.ends_with(|it: char| it.is_ascii_digit());
    humantime::parse_duration(trimmed)
        .ok()
        .filter(|_| !is_odd)
        .ok_or("write it with a unit, such as 10m or 1h 30m; M would be months")
}

fn parse_threshold(text: &str) -> Result<SignedDuration, &'static str> {
    let span = span(text)?;
    Ok(SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX))
}

/// The kinds of owners that are built into Kubernetes, with kubectl's short names.
const BUILT_IN: [(&str, &str); 7] = [
    ("sts", "StatefulSet"),
    ("deploy", "Deployment"),
    ("rs", "ReplicaSet"),
    ("ds", "DaemonSet"),
    ("", "Job"),
    ("cj", "CronJob"),
    ("rc", "ReplicationController"),
];

/// Kinds that stand above the owner of a pod, and that nothing in the pod names: the short name, the kind, and the kind
/// of the owner.
const ABOVE: [(&str, &str, &str); 3] = [
    ("ro", "Rollout", "ReplicaSet"),
    ("dc", "DeploymentConfig", "ReplicationController"),
    ("", "JobSet", "Job"),
];

/// Parses a kind of owner, or kubectl's short name of one. Probable typing errors are refused: a
/// kind that no owner has would protect nothing.
pub fn kind(text: &str) -> Result<String, String> {
    let kind = text.trim();
    if kind.is_empty() {
        return Err("it is empty; write a kind such as StatefulSet".to_owned());
    }
    if let Some((_, above, owner)) = ABOVE
        .iter()
        .find(|(short, above, _)| short.eq_ignore_ascii_case(kind) || same_kind(above, kind))
    {
        return Err(format!(
            "a pod does not name the {above} above it, so this would protect nothing; write {owner}, or annotate its pods with \
             pod-reaper.io/skip: \"true\""
        ));
    }
    if let Some((_, kind)) = BUILT_IN
        .iter()
        .find(|(short, _)| short.eq_ignore_ascii_case(kind))
    {
        return Ok((*kind).to_owned());
    }
    let mut known = BUILT_IN.iter().map(|(_, known)| *known);
    if known.clone().any(|known| same_kind(known, kind)) {
        return Ok(kind.to_owned());
    }
    let is_slip = |known: &&str| {
        // In a short name, two letters would be half of it.
        let most = if known.len() < 8 { 1 } else { 2 };
        strsim::osa_distance(&known.to_lowercase(), &kind.to_lowercase()) <= most
    };
    match known.find(is_slip) {
        Some(known) => Err(format!(
            "it is not a known kind, and would protect nothing; did you mean {known}?"
        )),
        None => Ok(kind.to_owned()),
    }
}
