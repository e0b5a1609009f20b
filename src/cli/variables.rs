//! The variables of options.

use std::{env, ffi::OsString};

/// The variable by which the manifests of 0.5 named a directory of settings.
const DIRECTORY: &str = "POD_REAPER_SETTINGS";

/// Returns the value of an option's variable. An empty variable is treated as not set, because
/// manifests unset a variable in this way.
pub fn value_of(variable: &str) -> Option<OsString> {
    env::var_os(variable).filter(|value| !value.is_empty())
}

/// Refuses the manifests of 0.5: this version does not see the settings that they mount, `DRY_RUN`
/// among them. `Err` is the message.
pub fn check() -> Result<(), String> {
    match value_of(DIRECTORY) {
        None => Ok(()),
        Some(_) => Err(format!(
            "{DIRECTORY} is set, as by the manifests of 0.5, and this version reads no settings from a directory; apply the \
             manifests of this version, or unset {DIRECTORY} and set a variable for each option"
        )),
    }
}
