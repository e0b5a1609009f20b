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
        just below: --node-not-ready-for=359s {Watched ds06: KernelDeadlock, Pod shop/db-0: {}}
            = detectors-too-slow - 1: The run does not wait for node-problem-detector or the EKS node monitoring agent, which write every 5m, because --node-not-ready-for is only 5m 59s: ds06. With 6m or more their heartbeats are seen.
        six minutes: --node-not-ready-for=6m {Watched ds06: KernelDeadlock, Pod shop/db-0: {}}
        the other one: --node-not-ready-for=0s {Watched ds06: KernelReady, Pod shop/db-0: {}}
            = detectors-too-slow - 1: The run does not wait for node-problem-detector or the EKS node monitoring agent, which write every 5m, because --node-not-ready-for is only 0s: ds06. With 6m or more their heartbeats are seen.
        no detector: --node-not-ready-for=0s {Watched ds06: MemoryPressure, Pod shop/db-0: {}}
        a Ready node: --node-not-ready-for=0s {Watched ds05: KernelDeadlock, Pod shop/db-0: {}}
    "#]]);
}
