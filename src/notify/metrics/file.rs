//! A file for node-exporter's textfile collector, which may read it at any moment: so it is replaced, never rewritten.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::process;

use super::{Family, Page};

/// Replaces the file by `page`. Families that `page` lacks are kept from the former file.
pub(super) fn write(path: &Path, page: &Page) -> io::Result<()> {
    let mut text = page.to_string();
    if !page.whole {
        match fs::read_to_string(path) {
            Ok(former) => kept(&former, page).for_each(|family| text += &family),
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

/// The families of our former file that `page` lacks.
fn kept(former: &str, page: &Page) -> impl Iterator<Item = String> {
    let families = former
        .split(Family::HEAD)
        .filter(|family| family.starts_with(Family::PREFIX));
    let missing = families.filter(|family| {
        let name = family.split(' ').next().unwrap_or_default();
        page.families.iter().all(|family| family.name != name)
    });
    missing.map(|family| format!("{}{family}", Family::HEAD))
}
