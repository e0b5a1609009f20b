use base64::{Engine as _, engine::general_purpose::STANDARD};
use expect_test::expect_file;

use super::*;

/// The policy allows the style and the script of the file by their digests, and nothing else.
#[test]
fn the_policy_forbids_everything_else() {
    let digest =
        |text: &str| STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        digest(STYLE),
        digest(SCRIPT)
    );
    expect_file!["policy.txt"].assert_eq(&policy);
    for inner in [STYLE, SCRIPT] {
        assert!(!inner.contains("</"), "it would end its element");
        assert!(!inner.contains("http") && !inner.contains("url(") && !inner.contains("@import"));
    }
}
