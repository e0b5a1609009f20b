//! The snapshot reader: any bytes, judged with and without `--now`.
#![no_main]

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use pod_reaper::{
    cli::Cli,
    settings::Settings,
    source::snapshot::{Options, Pods, Saved},
};

fuzz_target!(|data: &[u8]| {
    let Ok(cli) = Cli::try_from_args(["pod-reaper".into()]) else { return };
    let mut settings = Settings::from(cli);
    let leaf_selector = "type=virtual-kubelet".parse().ok();
    for (now, all) in [(None, true), (Some(Timestamp::UNIX_EPOCH), false)] {
        settings.all = all;
        for pods in [Pods::Terminating, Pods::Every] {
            let options = Options { now, leaf_selector: leaf_selector.clone() };
            let _ = Saved::read(data, options, pods).map(|saved| saved.gather(&settings.wanted(), None));
        }
    }
});
