//! Tests of the parsers of option values. How options and environment combine is tested in
//! `tests/cli/`, because a test in this file would read the environment of the process that runs
//! it.

use std::time::Duration;

use clap::{ValueEnum, builder::PossibleValue};
use pod_reaper_test_support::{pages, simulated::Dice};

use super::{values::moment, *};
use crate::{
    decide::{kind, span},
    selector::{node_selector, path},
};

#[test]
fn the_options_do_not_contradict_each_other() {
    command_line(None).debug_assert();
}

#[test]
fn every_option_has_its_variable_except_those_that_must_not_come_from_a_stray_one() {
    // A stray NAMESPACE is common, and would narrow a run unnoticed.
    let without = [
        "yes",
        "now",
        "snapshot",
        "context",
        "kubeconfig",
        "all",
        "output",
        "namespace",
    ];
    for arg in command_line(None).get_arguments() {
        let id = arg.get_id().as_str();
        let expected = (!without.contains(&id)).then(|| id.to_uppercase());
        assert_eq!(
            arg.get_env()
                .map(|name| name.to_string_lossy().into_owned()),
            expected,
            "{id}"
        );
        assert_eq!(
            arg.get_long().map(str::to_owned),
            Some(id.replace('_', "-")),
            "{id}"
        );
    }
}

#[test]
fn a_question_has_the_variables_of_runs_and_no_others() {
    let whole = command_line(None);
    let of_runs = whole.get_arguments().filter_map(Arg::get_env).collect_vec();
    let questions = whole
        .get_subcommands()
        .flat_map(clap::Command::get_arguments);
    let of_questions = questions.filter_map(Arg::get_env).collect_vec();
    assert!(!of_questions.is_empty());
    for variable in of_questions {
        assert!(of_runs.contains(&variable), "{}", variable.display());
    }
}

/// The tables of `docs/options.md` have each option of a run, and each exit code. `UPDATE_EXPECT=1` rewrites them.
#[test]
fn the_page_about_options_has_what_the_help_has() {
    let mut whole = command_line(None);
    whole.build();
    let cell = |text: &str| text.split_whitespace().join(" ").replace('|', r"\|");
    let code = |text: &str| match cell(text) {
        text if text.is_empty() => text,
        text => format!("`{text}`"),
    };
    let row = |arg: &Arg| {
        let short = arg.get_short().map(|short| format!("-{short}, "));
        let variable = arg.get_env().unwrap_or_default().to_string_lossy();
        let help = arg.get_long_help().or(arg.get_help()).expect("a help");
        let help = help.to_string().replace("\n\n", ". ");
        let (meaning, default) = help.split_once(" [default: ").unwrap_or((&help, ""));
        let takes_a_value = arg.get_action().takes_values();
        let values = arg.get_default_values().iter();
        let values = values.filter(|_| takes_a_value);
        let values = values.map(|value| value.to_string_lossy());
        let default = match values.collect_vec().join(",") {
            value if value.is_empty() || arg.is_hide_default_value_set() => {
                cell(default.trim_end_matches(']'))
            }
            value => code(&value),
        };
        let option = code(&format!("{}{arg}", short.unwrap_or_default()));
        let words = arg.get_possible_values();
        let words = words.iter().map(PossibleValue::get_name).join(", ");
        let meaning = match words {
            words if words.is_empty() || arg.is_hide_possible_values_set() => cell(meaning),
            words => format!("{}: {words}", cell(meaning)),
        };
        let variable = code(&variable);
        format!("| {option} | {variable} | {default} | {meaning} |\n")
    };
    let of_runs = whole
        .get_arguments()
        .filter_map(|arg| Some((arg.get_help_heading()?, arg)));
    let mut groups = of_runs.into_group_map();
    let mut tables = String::new();
    for heading in [
        "Which pods",
        "Limits and safety",
        "Report and log",
        "Which cluster",
    ] {
        let rows = groups.remove(heading).expect("its options");
        let rows = rows.into_iter().map(row).join("");
        tables += &format!(
            "\n## {heading}\n\n| option | variable | default | what it does |\n| --- | --- | --- | --- |\n{rows}"
        );
    }
    assert!(groups.is_empty(), "{groups:?}");
    tables += "\n## Exit codes\n\n| code | meaning |\n| --- | --- |\n";
    let mut codes = Vec::<String>::new();
    for line in EXIT_CODES.lines().skip(1).map(str::trim) {
        match (line.split_once("  "), codes.last_mut()) {
            (Some((code, meaning)), _) => codes.push(format!("| {code} | {meaning}")),
            (None, Some(begun)) => *begun += &format!(" {line}"),
            (None, None) => panic!("{line}"),
        }
    }
    tables += &codes.join(" |\n");
    pages::compare(
        "docs/options.md",
        "<!-- options: made of --help -->\n",
        " |\n\n<!-- end of options -->",
        &tables,
    );
}

#[test]
fn a_duration_has_a_unit() {
    for (text, seconds) in [
        ("10m", 600),
        ("1h 30m", 5400),
        ("1h30m", 5400),
        (" 10m ", 600),
        ("90s", 90),
        ("10min", 600),
        ("2 hours", 7200),
        ("1d", 86_400),
        ("0s", 0),
    ] {
        assert_eq!(span(text), Ok(Duration::from_secs(seconds)), "{text:?}");
    }
    for (text, why) in [
        ("", "it is not a duration"),
        ("  ", "it is not a duration"),
        ("10", "a bare number has no unit"),
        ("0", "a bare number has no unit"),
        (" 10 ", "a bare number has no unit"),
        ("-5m", "it is not a duration"),
        ("- 5m", "it is not a duration"),
        ("--all", "it is not a duration"),
        ("10M", "M would be months"),
        ("1h 30M", "M would be months"),
        ("1 Month", "M would be months"),
        ("m", "it is not a duration"),
        ("10x", "it is not a duration"),
        ("10m 5", "a bare number has no unit"),
        ("1e3s", "it is not a duration"),
        ("+5m", "it is not a duration"),
        ("99999999999999999999y", "it is not a duration"),
        ("99999999999999999y", "it is not a duration"),
    ] {
        let error = span(text).expect_err(text);
        assert!(error.starts_with(why), "{text:?}: {error}");
        assert!(
            error.ends_with("write it with a unit, such as 10m or 1h 30m"),
            "{text:?}: {error}"
        );
    }
}

/// Any characters, most of them those that a value may have.
fn any_text(dice: &mut Dice) -> String {
    let mut letter = || {
        let end = dice.pick(&[0x3b, 0x80, 0x80, 0x11_0000]);
        u32::try_from(dice.below(end)).ok().and_then(char::from_u32)
    };
    (0..12).filter_map(|_| letter()).collect()
}

#[test]
fn no_bare_number_is_a_duration() {
    for text in [
        "0",
        "7",
        "600",
        " 10",
        "10 ",
        " 0600 ",
        "1.5",
        "1,5",
        "  12.0 ",
        "18446744073709551616",
    ] {
        assert!(span(text).is_err(), "{text:?}");
    }
}

#[test]
fn no_value_makes_a_parser_panic() {
    let mut dice = Dice::new(7);
    for _ in 0..2_000 {
        let text = any_text(&mut dice);
        let _ = span(&text);
        let _ = Output::from_str(&text, false);
        let _ = regex(&text);
        let _ = node_selector(&text);
        let _ = moment(&text);
        let _ = kind(&text);
        let _ = path(&text);
    }
}

#[test]
fn a_dry_run_is_never_guessed() {
    let dry_run = |text: &str| {
        let args = ["pod-reaper".to_owned(), format!("--dry-run={text}")];
        Cli::try_from_args(args.map(OsString::from)).map(|cli| cli.options.dry_run)
    };
    for (text, expected) in [
        ("true", true),
        ("TRUE", true),
        ("false", false),
        ("False", false),
    ] {
        assert_eq!(dry_run(text).ok(), Some(expected), "{text}");
    }
    for text in [
        "", " ", "yes", "no", "1", "0", "on", "off", " true", "server", "client", "none", "all",
    ] {
        let error = dry_run(text).map_err(|error| error.exit_code());
        assert_eq!(error, Err(2), "{text:?}");
    }
}

#[test]
fn the_forms_of_the_report() {
    let forms = [
        ("text", Output::Text),
        ("json", Output::Json),
        ("html", Output::Html),
    ];
    for (text, form) in forms {
        assert_eq!(Output::from_str(text, false), Ok(form));
    }
    for text in ["", "yaml", "JSON", "md"] {
        assert!(Output::from_str(text, false).is_err(), "{text:?}");
    }
}

#[test]
fn the_help_has_each_format_of_the_report() {
    let words = Output::value_variants()
        .iter()
        .filter_map(Output::to_possible_value);
    let words = words.map(|word| word.get_name().to_owned()).join("|");
    assert_eq!(values::OUTPUTS, words);
}

#[test]
fn a_regular_expression_is_not_anchored() {
    let prod = regex("prod-|^compute$").expect("an expression");
    assert!(
        prod.is_match("my-prod-1") && prod.is_match("compute") && !prod.is_match("compute-hive01")
    );
    for (text, why) in [
        (
            "",
            "it is empty; leave it out for all, or write one such as ^prod-",
        ),
        (" ", "it is empty"),
        ("[", "unclosed character class; write"),
        ("*", "repetition operator missing expression; write"),
        ("a{1000}{1000}{1000}", "Compiled regex exceeds size limit"),
        ("(?=prod)", "look-around"),
    ] {
        let error = regex(text).expect_err(text);
        assert!(error.starts_with(why), "{text:?}: {error}");
        assert!(error.contains("^prod-"), "{text:?}: {error}");
    }
}

#[test]
fn an_owner_kind_is_a_word() {
    assert_eq!(kind(" StatefulSet ").as_deref(), Ok("StatefulSet"));
    for text in ["", "  "] {
        let error = kind(text).expect_err(text);
        assert!(error.contains("StatefulSet"), "{error}");
    }
}

#[test]
fn a_moment_has_a_zone() {
    let read = |text| moment(text).map(|moment| moment.to_string());
    assert_eq!(
        read("2026-01-31T03:00:00Z").as_deref(),
        Ok("2026-01-31T03:00:00Z")
    );
    assert_eq!(
        read("2026-01-31T04:00:00+01:00").as_deref(),
        Ok("2026-01-31T03:00:00Z")
    );
    for text in [
        "",
        "yesterday",
        "2026-01-31",
        "2026-01-31T03:00:00",
        "1769828400",
    ] {
        let error = moment(text).expect_err(text);
        assert!(error.contains("2026-01-31T03:00:00Z"), "{text:?}: {error}");
    }
}
