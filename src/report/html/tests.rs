//! Tests of the page, parsed by an HTML tokenizer. `scripts/browser` tests the behavior that only a
//! browser can show.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use expect_test::expect_file;
use html5gum::{Token, Tokenizer};

use super::*;
use crate::report::{Report, samples::*};

/// A tag or a text.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Open(String, Vec<(String, String)>),
    Close(String),
    Text(String),
}

fn pieces(page: &str) -> Vec<Piece> {
    let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let mut pieces = Vec::new();
    for token in Tokenizer::new(page) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let attributes = tag
                    .attributes
                    .iter()
                    .map(|(name, value)| (utf8(name), utf8(value)))
                    .collect();
                pieces.push(Piece::Open(utf8(&tag.name), attributes));
            }
            Token::EndTag(tag) => pieces.push(Piece::Close(utf8(&tag.name))),
            Token::String(text) => pieces.push(Piece::Text(utf8(&text))),
            Token::Doctype(_) => {}
            Token::Comment(comment) => panic!("a comment: {comment:?}"),
            Token::Error(error) => panic!("invalid HTML: {error:?}"),
        }
    }
    pieces
}

/// Removes the style and the script, whose content is not HTML.
fn without_style_and_script(page: &str) -> String {
    let style = format!("<style>{STYLE}</style>");
    let script = format!("<script>{SCRIPT}</script>");
    assert_eq!(
        (page.matches(&style).count(), page.matches(&script).count()),
        (1, 1)
    );
    page.replace(&style, "").replace(&script, "")
}

fn attribute<'a>(piece: &'a Piece, name: &str) -> Option<&'a str> {
    let Piece::Open(_, attributes) = piece else {
        return None;
    };
    attributes
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
}

fn hostile() -> Report {
    let markup =
        "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&lt;b&gt;</code>\u{202e}";
    report_with(markup)
}

/// Checks that the policy allows the style and the script of the file by their digests.
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

#[test]
fn the_page_requests_nothing() {
    for report in [
        report(&audit(), &private_cloud(), &[]),
        every_outcome(),
        hostile(),
    ] {
        for piece in pieces(&without_style_and_script(&write(&report.page()))) {
            for loads in [
                "src",
                "srcset",
                "style",
                "action",
                "onclick",
                "onload",
                "onerror",
                "xlink:href",
            ] {
                assert_eq!(attribute(&piece, loads), None, "{piece:?}");
            }
            if let Some(href) = attribute(&piece, "href") {
                assert!(href.starts_with('#'), "{piece:?}");
            }
            if let Piece::Open(name, _) = &piece {
                let known = "html head meta title body a header p h1 h2 h3 b ul ol li span main section div dl dt \
                             dd details summary footer pre code wbr";
                assert!(
                    known.split_whitespace().any(|known| known == name),
                    "{piece:?}"
                );
            }
        }
    }
}

#[test]
fn a_name_that_looks_like_markup_shows_as_text() {
    let report = hostile();
    let pieces = pieces(&without_style_and_script(&write(&report.page())));
    let shown = pieces.iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let shown = shown.collect::<String>();
    let name = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&lt;b&gt;</code>\u{fffd}";
    // The name is in the namespace and name, owner, node, reason, note, finalizer, PVC, volume and
    // error.
    assert!(
        shown.matches(name).count() > 20,
        "{}",
        shown.matches(name).count()
    );
    assert!(!shown.contains('\u{202e}'));
}
