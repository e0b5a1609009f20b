//! The variables of options: those of the environment, and those of the settings directory.

use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
};

/// The variable that names the settings directory.
pub const DIRECTORY: &str = "POD_REAPER_SETTINGS";
/// The variables that only a component sets, in the template of the pod. A `ConfigMap` must neither turn the
/// guard off nor allow data to be discarded, so the settings directory cannot set these variables.
const OF_THE_TEMPLATE: [&str; 2] = ["REQUIRE_GUARD", "REAP_SCRATCH"];

/// The settings directory, if there is one: a file for each variable, as in a mounted `ConfigMap`.
#[derive(Debug, Default)]
pub struct Settings {
    directory: PathBuf,
    keys: BTreeSet<OsString>,
}

impl Settings {
    /// Lists the directory. `Err` is the message for one that cannot be read.
    pub fn list() -> Result<Self, String> {
        let Some(directory) = of_environment(DIRECTORY).map(PathBuf::from) else {
            return Ok(Self::default());
        };
        let keys = fs::read_dir(&directory)
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
        let hint = "name a directory with one file for each variable";
        let keys = keys.map_err(|error| unreadable(&directory, &error, hint))?;
        Ok(Self { directory, keys })
    }

    /// Returns the value of an option's variable: that of the environment, or else that of the directory. An
    /// empty value is treated as not set. `Err` is the message for a file that cannot be read.
    pub fn value_of(&self, variable: &str) -> Result<Option<OsString>, String> {
        let value = of_environment(variable);
        if value.is_some() || !self.keys.contains(OsStr::new(variable)) || !is_setting(variable) {
            return Ok(value);
        }
        let file = self.directory.join(variable);
        let hint = "make it a file that holds the value, or remove it";
        let text = fs::read_to_string(&file).map_err(|error| unreadable(&file, &error, hint))?;
        // An editor ends a file with a newline.
        let value = text.strip_suffix('\n').unwrap_or(&text);
        Ok((!value.is_empty()).then(|| value.into()))
    }

    /// Returns the names of the files, except those in which Kubernetes keeps their contents.
    pub fn keys(&self) -> impl Iterator<Item = String> {
        let keys = self.keys.iter().map(|key| key.to_string_lossy());
        keys.filter(|key| !key.starts_with("..")).map(Into::into)
    }
}

/// Reports whether the settings directory can set this variable of an option.
pub fn is_setting(variable: &str) -> bool {
    !OF_THE_TEMPLATE.contains(&variable)
}

/// Returns a variable of the environment. An empty variable is treated as not set, because manifests unset
/// a variable in this way.
fn of_environment(variable: &str) -> Option<OsString> {
    env::var_os(variable).filter(|value| !value.is_empty())
}

fn unreadable(path: &Path, error: &io::Error, hint: &str) -> String {
    let path = path.display();
    format!("{DIRECTORY} {path}: {error}; {hint}")
}
