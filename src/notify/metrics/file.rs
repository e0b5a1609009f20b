//! Writes the metrics to a file for node-exporter's textfile collector. The collector may read the
//! file at any moment, so a complete new file replaces the old one.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write as _},
    path::Path,
    process,
};

use jiff::Timestamp;

use super::{Exposition, HELP, PREFIX};

/// Replaces the file by `exposition`. Unless `exposition` is whole, metrics that it lacks are kept
/// from the former file.
pub fn write(path: &Path, exposition: &Exposition) -> io::Result<()> {
    let mut text = exposition.text.clone();
    if !exposition.whole {
        match fs::read_to_string(path) {
            Ok(former) => text += &kept(&former, &text),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
    // The collector reads only names that end in .prom, so it ignores this file. Two pods may share
    // the directory, and each is process 1 of its container, so the name includes the moment as
    // well.
    let at = Timestamp::now().as_nanosecond();
    let beside = format!(".{}.{}.{at}", name.to_string_lossy(), process::id());
    let beside = path.with_file_name(beside);
    let put = || {
        File::create_new(&beside)?.write_all(text.as_bytes())?;
        fs::rename(&beside, path)
    };
    put().inspect_err(|_| {
        // Removing the file fails if it was never created.
        let _ = fs::remove_file(&beside);
    })
}

fn kept(former: &str, text: &str) -> String {
    let is_kept = |metric: &&str| {
        let name = metric.split(' ').next().unwrap_or_default();
        name.starts_with(PREFIX) && !text.contains(&format!("{HELP}{name} "))
    };
    let metrics = former.split(HELP).filter(is_kept);
    metrics.flat_map(|metric| [HELP, metric]).collect()
}
