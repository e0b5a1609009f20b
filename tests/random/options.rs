//! Random options, except those that say where the cluster is and what the run does to it.

use clap::{Arg, ArgAction, Args as _, Command, builder::PossibleValue};
use pod_reaper::limits::Limits;

use crate::prelude::*;

/// The node selectors that the user sets. The world's nodes are made to match them.
const SELECTORS: [&str; 6] = [
    "--leaf-node-selector=type=stands-for-another",
    "--leaf-node-selector=annotation:example.org/leaf",
    "--leaf-node-selector=taint:example.org/leaf=yes",
    "--fenced-node-selector=example.org/off=true",
    "--fenced-node-selector=annotation:example.org/off",
    "--fenced-node-selector=taint:example.org/off=yes",
];

/// How often each option is given, in a thousand.
const FURTHER: [(usize, &str); 8] = [
    (250, "--all"),
    (100, "--exit-on-manual"),
    (100, "--namespace-regex=^shop$"),
    (100, "--namespace-exclude-regex=^shop$"),
    (70, "--manual-owner-kind=statefulset"),
    (50, "--manual-owner-kind=Deployment"),
    (30, "--manual-owner-kind=Job,ReplicaSet"),
    (50, "--manual-owner-kind=cronjobs,DaemonSet"),
];

/// The arguments, with the program's name first.
pub fn args(dice: &mut Dice) -> Vec<String> {
    let cap = dice.weigh(&[(8, 0), (1, 1), (1, 2), (1, 3)]);
    let any = 1 + dice.below(99);
    // Some values are exactly the share of a few nodes.
    let percent = dice.weigh(&[
        (6, 55),
        (4, 100),
        (1, 30),
        (1, 50),
        (1, 60),
        (1, 75),
        (1, any),
    ]);
    let threshold = dice.pick(&["0s", "1m", "10m", "10m"]);
    let mut args = vec![
        "pod-reaper".to_owned(),
        format!("--reap-older-than={threshold}"),
        format!("--max-deletes={cap}"),
        format!("--max-not-ready-percent={percent}"),
    ];
    args.extend(SELECTORS.map(str::to_owned));
    let given = FURTHER
        .iter()
        .filter(|(often, _)| dice.permille(*often))
        .map(|(_, arg)| (*arg).to_owned())
        .collect::<Vec<_>>();
    args.extend(given);
    for arg in unnamed() {
        let long = arg.get_long().unwrap();
        let words = arg.get_possible_values();
        let words = words
            .iter()
            .map(PossibleValue::get_name)
            .collect::<Vec<_>>();
        let name = arg.get_value_names().map_or("", |names| names[0].as_str());
        args.extend(match (arg.get_action(), &*words, name) {
            (ArgAction::SetTrue, ..) => dice.permille(300).then(|| format!("--{long}")),
            (_, [_, ..], _) => Some(format!("--{long}={}", dice.pick(&words))),
            (_, _, "DURATION") => Some(format!("--{long}={}", dice.pick(&["0s", "1m", "10m"]))),
            _ => unreachable!("--{long}: say above which values it has"),
        });
    }
    args
}

/// The options that a verdict depends on and that nothing above names.
fn unnamed() -> Vec<Arg> {
    let named = |arg: &Arg| {
        let long = format!("--{}=", arg.get_long().unwrap());
        let named = FURTHER.iter().map(|(_, arg)| *arg).chain(SELECTORS);
        [
            "--reap-older-than=",
            "--max-deletes=",
            "--max-not-ready-percent=",
        ]
        .contains(&&*long)
            || named
                .into_iter()
                .any(|named| format!("{named}=").starts_with(&long))
    };
    let all = Limits::augment_args(Policy::augment_args(Command::new("options")));
    let all = all.get_arguments().filter(|arg| !named(arg));
    all.cloned().collect()
}

pub fn settings(args: &[String]) -> Settings {
    let mut settings = Settings::from(Cli::try_from_args(args.iter().map(Into::into)).unwrap());
    // A filter on the command line ends the run if it selects no namespace. The filters are treated as if variables had set them,
    // so the run continues.
    for filter in &mut settings.filters {
        filter.is_typed = false;
    }
    settings
}
