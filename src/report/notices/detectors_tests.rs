//! Tests of the notice about detectors that write less often than a run waits.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;

use super::tests::check;

#[test]
fn a_run_that_waits_for_less_than_a_detectors_period_says_so() {
    check(&expect![[r#"
        just below: --node-not-ready-for=359s {Node ds06: {detects: KernelDeadlock}, Pod shop/db-0: {}}
            = detectors-too-slow - 1: 5m --node-not-ready-for 5m 59s ds06 6m
        six minutes: --node-not-ready-for=6m {Node ds06: {detects: KernelDeadlock}, Pod shop/db-0: {}}
        the other one: --node-not-ready-for=0s {Node ds06: {detects: KernelReady}, Pod shop/db-0: {}}
            = detectors-too-slow - 1: 5m --node-not-ready-for 0s ds06 6m
        no detector: --node-not-ready-for=0s {Node ds06: {detects: MemoryPressure}, Pod shop/db-0: {}}
        a Ready node: --node-not-ready-for=0s {Node ds05: {ready: 'True', detects: KernelDeadlock}, Pod shop/db-0: {}}
    "#]]);
}
