//! Options and variables.

use crate::transcripts::plays;

/// Where nobody can be asked, a run that may delete is wrong usage too.
#[test]
fn wrong_values_end_the_run_with_2_and_an_example_of_a_right_one() {
    plays("golden/wrong-usage.txt");
}

#[test]
fn options_and_variables_say_what_they_should_and_no_other_variable_does() {
    plays("transcripts/usage.txt");
}
