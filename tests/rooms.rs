//! The order of the rooms of `rules/src/` and `src/`: each imports only rooms below it.
//!
//! This list is the only definition of the order. CONTRIBUTING.md shows it, and is compared with it here.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use itertools::Itertools as _;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The rooms and their contents, bottom first.
const ROOMS: [(&str, &str); 22] = [
    (
        "words",
        "how things are said: durations, counts, the order of names, text of others",
    ),
    (
        "codes",
        "words of the contract: an enum whose variants each have one spelling",
    ),
    ("facts", "what was read, as plain types"),
    (
        "selector",
        "what an operator selects: a cluster, namespaces, nodes",
    ),
    ("outcome", "what happened to a pod that was to be reaped"),
    (
        "decide",
        "the rules; every reason, its code, its meaning and its sentence",
    ),
    ("limits", "breaker and cap; the plan"),
    ("advice", "what a person should do: risk and commands"),
    ("exit", "how a run ends, as a process"),
    ("stop", "when a run has to end: a signal, or its deadline"),
    (
        "kubernetes",
        "what the API says, by kind, and how it becomes facts: marks, annotations, defaults",
    ),
    (
        "cluster",
        "the only user of the client: connect, request, failure, guard, read, write, events",
    ),
    (
        "source",
        "gather: facts and pods, from a cluster or a snapshot",
    ),
    (
        "cli",
        "what may be typed: commands, options, variables, help",
    ),
    ("settings", "what was typed, as what the program needs"),
    ("execute", "acting on a plan, and looking whether it worked"),
    (
        "report",
        "the report, and one writer a format; phrases.rs has what they say alike",
    ),
    (
        "questions",
        "what-if and explain: other questions to the same rules and limits",
    ),
    (
        "notify",
        "what a run did, as Kubernetes Events and as metrics",
    ),
    (
        "console",
        "the log, the question, how far a run is, and standard output",
    ),
    ("run", "one run, top to bottom"),
    ("main", "parse, log, run, write, exit code"),
];

/// Where the rooms are: those of the pure crate, and the others.
const HOUSES: [&str; 2] = ["rules/src", "src"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The room of a file; `None` for the list of rooms itself and for test code.
fn room_of(file: &Path) -> Option<String> {
    let inside = HOUSES
        .iter()
        .find_map(|house| file.strip_prefix(root().join(house)).ok())
        .unwrap();
    let room = Path::new(inside.iter().next().unwrap()).with_extension("");
    let room = room.to_str().unwrap().to_owned();
    (room != "lib" && room != "samples").then_some(room)
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
}

/// The source without comments, string literals and code that is compiled for tests alone.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
    let mut lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.join("\n")
}

/// The first name of every path that begins with `start`, such as `crate::`; all first names of a braced group.
fn first_names(code: &str, start: &str) -> BTreeSet<String> {
    let name = |text: &str| {
        let end = text
            .find(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .unwrap_or(text.len());
        text[..end].to_owned()
    };
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices(start) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|letter| letter.is_alphanumeric() || "_:$".contains(letter)) {
            continue;
        }
        let rest = &code[at + start.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.insert(name(rest));
            continue;
        };
        let mut depth = 0_usize;
        let mut item = String::new();
        for letter in group.chars() {
            match letter {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    names.insert(name(item.trim()));
                    item.clear();
                    continue;
                }
                _ => {}
            }
            item.push(letter);
        }
        names.insert(name(item.trim()));
    }
    names.remove("");
    names
}

#[test]
fn every_room_imports_only_rooms_below_it() {
    let places = ROOMS
        .iter()
        .enumerate()
        .map(|(place, (room, _))| (*room, place));
    let places = places.collect::<BTreeMap<_, _>>();
    let mut files = Vec::new();
    for house in HOUSES {
        sources(&root().join(house), &mut files);
    }
    let (mut wrong, mut seen, mut imports) = (Vec::new(), BTreeSet::new(), 0);
    for file in &files {
        let Some(room) = room_of(file) else { continue };
        let tests = file
            .file_name()
            .is_some_and(|name| name == "tests.rs" || name == "samples.rs");
        let Some(own) = places.get(room.as_str()) else {
            wrong.push(format!(
                "{}: the room {room} has no place in the order",
                file.display()
            ));
            continue;
        };
        seen.insert(room.clone());
        if tests {
            continue;
        }
        let code = code(file);
        let start = if room == "main" {
            "pod_reaper::"
        } else {
            "crate::"
        };
        for name in first_names(&code, start) {
            imports += 1;
            if name != room && places.get(name.as_str()).is_none_or(|place| place >= own) {
                wrong.push(format!(
                    "{}: {room} imports {name}, which is not below it",
                    file.display()
                ));
            }
        }
        // `super::` can leave a room too: at once from the room's first file, by two steps from the others.
        let first = file.ends_with(format!("src/{room}/mod.rs"))
            || file.parent().is_some_and(|folder| folder.ends_with("src"));
        if code.contains("super::super") || first && code.contains("super::") {
            wrong.push(format!(
                "{}: write the path from the crate on",
                file.display()
            ));
        }
        let client = room == "cluster" || file.ends_with("src/notify/metrics/push.rs");
        if !client && code.contains("kube::") {
            wrong.push(format!(
                "{}: only cluster uses the client, and the Pushgateway its own",
                file.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let rooms = ROOMS.map(|(room, _)| room.to_owned());
    assert_eq!(
        seen,
        BTreeSet::from(rooms),
        "the order names exactly the rooms that there are"
    );
    assert!(imports > 100, "only {imports} imports were read");
}

#[test]
fn imports_are_read_as_the_compiler_reads_them() {
    let code = "use crate::{\n    a::{b, c},\n    d,\n    e::F as G,\n};\nfn f() { crate::h::i(); }\nuse other_crate::j;";
    assert_eq!(
        first_names(code, "crate::"),
        BTreeSet::from(["a", "d", "e", "h"].map(str::to_owned))
    );
}

/// Rewritten with `UPDATE_EXPECT=1`.
#[test]
fn contributing_shows_this_order() {
    let widest = ROOMS
        .iter()
        .map(|(room, _)| file(room).len())
        .max()
        .unwrap();
    let lines = ROOMS
        .iter()
        .rev()
        .map(|(room, about)| format!("    {:widest$}  {about}\n", file(room)));
    let order = lines.collect::<String>();
    let path = root().join("CONTRIBUTING.md");
    let page = fs::read_to_string(&path).unwrap();
    let (begin, end) = (
        "<!-- rooms: made by tests/rooms.rs -->\n\n",
        "<!-- end of rooms -->",
    );
    let (head, rest) = page
        .split_once(begin)
        .expect("the place where the order stands");
    let (_, tail) = rest.split_once(end).expect("its end");
    let current = format!("{head}{begin}{order}\n{end}{tail}");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &current).unwrap();
    } else {
        assert!(
            page == current,
            "CONTRIBUTING.md shows another order; UPDATE_EXPECT=1 rewrites it"
        );
    }
}

fn file(room: &str) -> String {
    let places = HOUSES.map(|house| format!("{house}/{room}"));
    let folder = places.iter().find(|place| root().join(place).is_dir());
    folder.map_or_else(
        || {
            let mut files = places.iter().map(|place| format!("{place}.rs"));
            files.find(|file| root().join(file).exists()).unwrap()
        },
        |folder| format!("{folder}/"),
    )
}
