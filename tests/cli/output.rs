//! Output: report, log, colours, pipes.

use crate::transcripts::plays;

#[test]
fn report_and_log_go_where_they_should() {
    plays("transcripts/output.txt");
}
