//! A file for node-exporter's textfile collector, which may read it at any moment: so it is replaced, never rewritten.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write as _},
    path::Path,
    process,
};

use super::{Exposition, HELP, PREFIX};

/// Replaces the file by `exposition`. Metrics that `exposition` lacks are kept from the former file.
pub(super) fn write(path: &Path, exposition: &Exposition) -> io::Result<()> {
    let mut text = exposition.text.clone();
    if !exposition.whole {
        match fs::read_to_string(path) {
            Ok(former) => text += &kept(&former, &text),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
    // Hidden, and without the ending .prom: the collector does not read it.
    let beside = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), process::id()));
    let put = || {
        File::create_new(&beside)?.write_all(text.as_bytes())?;
        fs::rename(&beside, path)
    };
    put().inspect_err(|_| {
        // The file may not even exist.
        let _ = fs::remove_file(&beside);
    })
}

/// The metrics of our former file that `text` lacks.
fn kept(former: &str, text: &str) -> String {
    let is_kept = |metric: &&str| {
        let name = metric.split(' ').next().unwrap_or_default();
        name.starts_with(PREFIX) && !text.contains(&format!("{HELP}{name} "))
    };
    let metrics = former.split(HELP).filter(is_kept);
    metrics.flat_map(|metric| [HELP, metric]).collect()
}
