//! Tests of the page, parsed by an HTML tokenizer. `scripts/browser` tests the behavior that only a
//! browser can show.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use expect_test::expect_file;
use html5gum::{Token, Tokenizer};
use itertools::Itertools as _;
use serde_json::json;

use std::collections::BTreeSet;

use super::*;
use crate::{
    report::{Report, samples::*},
    settings::Settings,
};

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

/// Lists the texts of every element with this name.
fn texts(pieces: &[Piece], element: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut inside = false;
    for piece in pieces {
        match piece {
            Piece::Open(name, _) if name == element => {
                inside = true;
                texts.push(String::new());
            }
            Piece::Close(name) if name == element => inside = false,
            Piece::Text(text) if inside => texts.last_mut().expect("it was opened").push_str(text),
            _ => {}
        }
    }
    texts
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
fn every_element_is_closed_and_every_link_has_a_target() {
    for report in [
        report(&audit(), &private_cloud(), &[]),
        every_outcome(),
        hostile(),
    ] {
        let pieces = pieces(&without_style_and_script(&write(&report.page())));
        let mut open = Vec::new();
        for piece in &pieces {
            match piece {
                Piece::Open(name, _) if ["meta", "wbr"].contains(&name.as_str()) => {}
                Piece::Open(name, _) => open.push(name),
                Piece::Close(name) => assert_eq!(open.pop(), Some(name)),
                Piece::Text(_) => {}
            }
        }
        assert_eq!(open, Vec::<&String>::new());
        let ids = pieces
            .iter()
            .filter_map(|piece| attribute(piece, "id"))
            .collect::<Vec<_>>();
        assert_eq!(
            ids.iter().collect::<BTreeSet<_>>().len(),
            ids.len(),
            "an id is there twice: {ids:?}"
        );
        for piece in &pieces {
            for target in [
                attribute(piece, "href"),
                attribute(piece, "aria-labelledby"),
            ]
            .into_iter()
            .flatten()
            {
                assert!(
                    ids.contains(&target.trim_start_matches('#')),
                    "{target} leads nowhere"
                );
            }
        }
    }
}

#[test]
fn every_command_can_be_copied_as_it_is() {
    let target = crate::selector::Target {
        kubeconfig: Some("/etc/my config".into()),
        context: Some("<b>".into()),
    };
    let reading = run(crate::settings::Mode::DryRun, target);
    for report in [
        report(&reading, &private_cloud(), &[]),
        report(&audit(), &private_cloud(), &[]),
        hostile(),
    ] {
        let printed = texts(
            &pieces(&without_style_and_script(&write(&report.page()))),
            "code",
        );
        let mut expected = commands(&report)
            .into_iter()
            .map(|command| phrases::lines(command).join("\n"))
            .collect::<Vec<_>>();
        assert!(expected.len() >= 5);
        let mut sorted = printed.clone();
        sorted.sort();
        expected.sort();
        assert_eq!(sorted, expected);
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

#[test]
fn every_reason_on_the_page_is_explained_on_it() {
    for report in [report(&audit(), &private_cloud(), &[]), every_outcome()] {
        let pieces = pieces(&without_style_and_script(&write(&report.page())));
        let ids = pieces
            .iter()
            .filter_map(|piece| attribute(piece, "id"))
            .collect::<Vec<_>>();
        for code in report.pods.iter().filter_map(|pod| pod.reason) {
            assert!(ids.contains(&format!("reason-{code}").as_str()), "{code}");
        }
        for outcome in report.pods.iter().filter_map(|pod| pod.outcome) {
            assert!(
                ids.contains(&format!("outcome-{outcome}").as_str()),
                "{outcome}"
            );
        }
    }
}

#[test]
fn the_headline_states_what_matters_most() {
    let audited = report(&audit(), &private_cloud(), &[]);
    assert_eq!(
        audited.page().headline,
        "4 to be reaped · 4 need you · 2 waiting · 2 left alone · not read: 1"
    );
    assert_eq!(
        every_outcome().page().headline,
        "1 changed · 1 deleted · 1 denied · 1 failed · 1 gone · 1 interrupted · 1 node-changed · 1 node-recovered · \
         1 still-there · 1 unverified"
    );
    let calm = report(
        &audit(),
        &objects(&yaml(
            "{Node ds01: {ready: 'True', lease: null}, Pod a/b: {node: ds01}}",
        )),
        &[],
    );
    assert_eq!(calm.page().headline, "1 left alone");
    let held = "
        Node ds01: {}
        Node ds02: {}
        Node ds03: {lease: null}
        Namespace app: {}
        Pod app/a-0: {node: ds01}
        Pod app/b-0: {node: ds02}
    ";
    let settings = Settings {
        cluster_name: Some("dc-<west>".to_owned()),
        ..audit()
    };
    let page = write(&report(&settings, &objects(&yaml(held)), &[]).page());
    let titles = texts(&pieces(&without_style_and_script(&page)), "title");
    assert_eq!(titles, ["2 HELD · dc-<west> · pod-reaper"]);
}

#[test]
fn data_that_stays_is_not_said_to_be_destroyed() {
    let mut objects = private_cloud();
    let volume = objects
        .iter_mut()
        .find(|object| object["metadata"]["name"] == "pvc-scratch")
        .expect("it");
    volume["spec"]["persistentVolumeReclaimPolicy"] = json!("Retain");
    let kept = report(&audit(), &objects, &[]);
    assert!(
        !write(&kept.page()).contains("Destroys"),
        "the volume stays"
    );
}

#[test]
fn a_command_that_destroys_data_says_so() {
    let page = write(&report(&audit(), &private_cloud(), &[]).page());
    assert!(
        !page.contains("The log names"),
        "here a reader unfolds what is folded"
    );
    let pieces = pieces(&without_style_and_script(&page));
    let words = pieces
        .windows(2)
        .filter(|two| attribute(&two[0], "class") == Some("harm"));
    let words = words.map(|two| two[1].clone()).collect::<Vec<_>>();
    assert!(
        words.contains(&Piece::Text("Destroys data".to_owned())),
        "{words:?}"
    );
}
