//! Verdicts and exit codes, end to end.

use expect_test::expect_file;

use crate::{audit, transcripts::plays};

#[test]
fn verdicts_and_exit_codes_are_those_of_the_contract() {
    plays("transcripts/verdicts.txt");
    expect_file!["../data/golden/kosmos-link-cut.txt"]
        .assert_eq(&audit(&["--reap-older-than=3s"]).run().exits(0).out);
}
