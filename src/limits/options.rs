//! The options that affect a run as a whole: how they are parsed, applied and reported.

use clap::Args;
use serde::{Serialize, Serializer};

/// The user's options for a run as a whole, as every report shows them.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[command(next_help_heading = "Limits and safety")]
pub struct Limits {
    /// Maximum number of pods to delete in one run, the longest overdue first; 0 is no limit
    // With the full path `std::option::Option`, clap takes `None` for a value of the option, not
    // for its absence.
    #[arg(long, value_name = "N", default_value = "0", value_parser = cap)]
    #[serde(serialize_with = "or_zero")]
    #[cfg_attr(test, schemars(with = "usize"))]
    pub max_deletes: std::option::Option<usize>,

    /// Mass-outage breaker. Delete nothing in two cases: more than 2 nodes are NotReady and make up at
    /// least this percentage of all nodes or of the workers; or no other node could start a pod. If
    /// only one zone reaches the percentage, only its pods wait. 100 turns the breaker off
    #[arg(long, value_name = "1-100", default_value_t = 55, value_parser = percent)]
    pub max_not_ready_percent: u8,
}

#[expect(clippy::ref_option, reason = "serde passes the field so")]
fn or_zero<S: Serializer>(cap: &Option<usize>, to: S) -> Result<S::Ok, S::Error> {
    cap.unwrap_or(0).serialize(to)
}

fn cap(text: &str) -> Result<Option<usize>, &'static str> {
    let count = text.trim().parse().ok();
    let count = count.ok_or("write a whole number such as 50; 0 is no limit")?;
    Ok((count > 0).then_some(count))
}

fn percent(text: &str) -> Result<u8, &'static str> {
    let percent = text.trim().parse().ok();
    percent
        .filter(|percent| (1..=100).contains(percent))
        .ok_or("write a whole number from 1 to 100, such as 55")
}
