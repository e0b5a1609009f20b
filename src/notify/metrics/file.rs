//! A file for node-exporter's textfile collector, which may read it at any moment: so it is replaced, never rewritten.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write as _},
    path::Path,
    process,
};

use super::{Exposition, Family};

/// Replaces the file by `exposition`. Families that `exposition` lacks are kept from the former file.
pub(super) fn write(path: &Path, exposition: &Exposition) -> io::Result<()> {
    let mut text = exposition.to_string();
    if !exposition.whole {
        match fs::read_to_string(path) {
            Ok(former) => kept(&former, exposition).for_each(|family| text += &family),
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

/// The families of our former file that `exposition` lacks.
fn kept(former: &str, exposition: &Exposition) -> impl Iterator<Item = String> {
    let families = former
        .split(Family::HEAD)
        .filter(|family| family.starts_with(Family::PREFIX));
    families
        .filter(|family| {
            let name = family.split(' ').next().unwrap_or_default();
            exposition.families.iter().all(|family| family.name != name)
        })
        .map(|family| format!("{}{family}", Family::HEAD))
}
