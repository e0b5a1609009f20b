//! The snapshot reader: any bytes, judged with and without a moment of its own.
#![no_main]

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use pod_reaper::{
    settings::NamespaceFilter,
    snapshot::{Pods, Saved, Wanted},
};

fuzz_target!(|data: &[u8]| {
    let namespaces = NamespaceFilter::default();
    let selector = "type=virtual-kubelet".parse().ok();
    for (now, all) in [(None, true), (Some(Timestamp::UNIX_EPOCH), false)] {
        let wanted = Wanted { now, namespaces: &namespaces, leaf_selector: selector.as_ref(), all };
        for pods in [Pods::Terminating, Pods::Every] {
            let _ = Saved::read(data, pods).map(|saved| saved.into_facts(&wanted));
        }
    }
});
