//! The snapshot reader: any bytes, judged with and without `--now`.
#![no_main]

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use pod_reaper::{
    cli::Cli,
    selector::NodeSelectors,
    settings::Settings,
    source::{
        Reader, gather,
        snapshot::Saved,
    },
};

fuzz_target!(|data: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let Ok(runtime) = runtime else { return };
    let Ok(cli) = Cli::try_from_args(["pod-reaper".into()]) else {
        return;
    };
    let mut settings = Settings::from(cli);
    settings.policy.node_selectors = NodeSelectors {
        leaf: ["type=virtual-kubelet", "annotation:leaf"]
            .iter()
            .filter_map(|text| text.parse().ok())
            .collect(),
        fenced: ["off", "taint:off=yes"]
            .iter()
            .filter_map(|text| text.parse().ok())
            .collect(),
    };
    for (now, all) in [(None, true), (Some(Timestamp::UNIX_EPOCH), false)] {
        settings.all = all;
        let Ok(saved) = Saved::read(data, now) else {
            continue;
        };
        let reader = Reader::new(&saved, &settings);
        let _ = runtime.block_on(gather(&reader, None));
    }
});
