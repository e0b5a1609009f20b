//! Tests of the options as a whole. What each value means is tested in `tests/cli/`, on the built binary.

use clap::builder::PossibleValue;
use itertools::Itertools as _;
use pod_reaper_test_support::pages;

use super::*;

#[test]
fn the_options_do_not_contradict_each_other() {
    command_line().debug_assert();
}

/// The tables of `docs/options.md` have each option of a run, and each exit code. `UPDATE_EXPECT=1` rewrites them.
#[test]
fn the_page_about_options_has_what_the_help_has() {
    let mut whole = command_line();
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
