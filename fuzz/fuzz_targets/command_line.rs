//! A whole command line, one argument per line. clap takes most of the time, so `settings` fuzzes the values.
#![no_main]

use std::iter;

use libfuzzer_sys::fuzz_target;
use pod_reaper::{cli::Cli, settings::Settings};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let args = iter::once("pod-reaper").chain(text.lines()).map(Into::into);
    let _ = Cli::try_from_args(args).map(Settings::from);
});
