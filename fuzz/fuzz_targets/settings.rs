//! The values of options: selectors of labels and of nodes, and enumerations. Durations are read with the command line.
#![no_main]

use std::collections::BTreeMap;

use clap::ValueEnum as _;
use libfuzzer_sys::fuzz_target;
use pod_reaper::{
    cli::Output,
    selector::{NodeSelector, Selector},
};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(selector) = text.parse::<Selector>() {
        let labels = BTreeMap::from([("type".to_owned(), "virtual-kubelet".to_owned())]);
        selector.matches(&labels);
        // A printed value must parse to the same value.
        assert_eq!(
            selector.to_string().parse::<Selector>().as_ref(),
            Ok(&selector)
        );
    }
    if let Ok(selector) = text.parse::<NodeSelector>() {
        assert_eq!(
            selector.typed().parse::<NodeSelector>().as_ref(),
            Ok(&selector)
        );
    }
    let _ = Output::from_str(text, false);
});
