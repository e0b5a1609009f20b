//! Options and variables.

use crate::transcripts::plays;

/// Where nobody can be asked, a run that may delete is wrong usage too. Options and variables say what they should, and no other
/// variable does.
#[test]
fn wrong_values_end_the_run_with_2_and_an_example_of_a_right_one() {
    plays("transcripts/usage.txt");
}
