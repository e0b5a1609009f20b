//! The order of the modules of `rules/src/` and `src/`: each imports only modules below it.
//!
//! This list is the only definition of the order. CONTRIBUTING.md shows it, and is compared with it here.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use itertools::Itertools as _;
use pod_reaper_test_support::pages;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The modules and their contents, bottom first.
const MODULES: &str = "
    words: how things are said: durations, counts, the order of names, text of others
    codes: words of the contract: an enum whose variants each have one spelling
    facts: what was read, as plain types
    selector: what an operator selects: a cluster, namespaces, nodes
    outcome: what happened to a pod that was to be reaped
    decide: the rules; every reason, its code, its meaning and its sentence
    limits: breaker and cap; the plan
    advice: what a person should do: risk and commands
    exit: how a run ends, as a process
    stop: when a run has to end: a signal, or its deadline
    kubernetes: what the API says, by kind, and how it becomes facts: marks, annotations, defaults
    cluster: the only user of the client: connect, request, failure, guard, read, write, events
    source: gather: facts and pods, from a cluster or a snapshot
    cli: what may be typed: commands, options, variables, help
    settings: what was typed, as what the program needs
    execute: acting on a plan, and looking whether it worked
    report: the report, and one writer a format; phrases.rs has what they say alike
    questions: explain, the report that no run makes
    notify: what a run did, as Kubernetes Events
    console: the log, the question, how far a run is, and standard output
    run: one run, top to bottom
    main: parse, log, run, write, exit code
";

/// The directories of the modules: the pure crate, and the rest.
const FOLDERS: [&str; 2] = ["rules/src", "src"];

fn modules() -> impl Iterator<Item = (&'static str, &'static str)> {
    MODULES
        .lines()
        .filter_map(|line| line.trim().split_once(": "))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The module of a file; `None` for the list of modules itself and for test code.
fn module_of(file: &Path) -> Option<String> {
    let mut folders = FOLDERS.iter();
    let inside = folders.find_map(|folder| file.strip_prefix(root().join(folder)).ok())?;
    let module = Path::new(inside.iter().next()?).with_extension("");
    let module = module.to_str()?.to_owned();
    (!["lib", "samples", "sentences"].contains(&&*module)).then_some(module)
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

/// The source without comments and without the module of unit tests.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
    let mut lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.join("\n")
}

/// The first name of every path that begins with `start`, such as `crate::`. A braced group yields all of its first names.
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
fn every_module_imports_only_modules_below_it() {
    let places = modules().map(|(module, _)| module).zip(0..);
    let places = places.collect::<BTreeMap<_, _>>();
    let mut files = Vec::new();
    for folder in FOLDERS {
        sources(&root().join(folder), &mut files);
    }
    let (mut wrong, mut seen, mut imports) = (Vec::new(), BTreeSet::new(), 0);
    for file in &files {
        let Some(module) = module_of(file) else {
            continue;
        };
        let mut is_wrong = |what: String| wrong.push(format!("{}: {what}", file.display()));
        let Some(own) = places.get(module.as_str()) else {
            is_wrong(format!("{module} has no place in the order"));
            continue;
        };
        seen.insert(module.clone());
        let of_tests = |part: &str| part == "tests" || part.ends_with("tests.rs");
        let mut parts = file.iter().filter_map(|part| part.to_str());
        if parts.any(of_tests) || file.ends_with("samples.rs") {
            continue;
        }
        let code = code(file);
        let start = if module == "main" {
            "pod_reaper::"
        } else {
            "crate::"
        };
        for name in first_names(&code, start) {
            imports += 1;
            if name != module && places.get(name.as_str()).is_none_or(|place| place >= own) {
                is_wrong(format!("{module} imports {name}, which is not below it"));
            }
        }
        // `super::` can leave a module too: in the module's first file in one step, elsewhere in two steps.
        let first = file.ends_with(format!("src/{module}/mod.rs"))
            || file.parent().is_some_and(|folder| folder.ends_with("src"));
        if code.contains("super::super") || first && code.contains("super::") {
            is_wrong("write the path from the crate on".to_owned());
        }
        let client = module == "cluster";
        if !client && code.contains("kube::") {
            is_wrong("only cluster uses the client".to_owned());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let listed = modules().map(|(module, _)| module.to_owned());
    assert_eq!(
        seen,
        listed.collect(),
        "the order names exactly the modules that there are"
    );
    assert!(imports > 100, "only {imports} imports were read");
}

/// Whether this is the first file of a directory inside a module. Such a file is treated as a neighbor of the files beside that
/// directory.
fn stands_for_its_folder(file: &Path) -> bool {
    let above = file.parent().and_then(Path::parent).unwrap();
    file.ends_with("mod.rs") && !above.ends_with("src")
}

/// The files of a directory that `file` imports, by their names or by names that the directory's `mod.rs` re-exports.
fn beside(file: &Path) -> BTreeSet<PathBuf> {
    let own = file.parent().unwrap();
    let folder = if stands_for_its_folder(file) {
        own.parent().unwrap()
    } else {
        own
    };
    let handed_on = folder.join("mod.rs");
    let handed_on = if handed_on.exists() {
        code(&handed_on)
    } else {
        String::new()
    };
    let inside = folder.strip_prefix(root()).unwrap();
    let inside = inside.iter().map(|part| part.to_str().unwrap());
    let inside = inside.skip_while(|part| *part != "src").skip(1);
    let from_crate = ["crate"].into_iter().chain(inside).collect::<Vec<_>>();
    let starts = ["super::".to_owned(), from_crate.join("::") + "::"];
    let text = code(file);
    let names = starts.iter().flat_map(|start| first_names(&text, start));
    let names = names.flat_map(|name| {
        let hands_on = |module: &&str| {
            let start = format!("self::{module}::");
            first_names(&handed_on, &start).contains(&name)
        };
        let modules = handed_on.lines().filter_map(|line| {
            let module = line.trim_start_matches("pub ").strip_prefix("mod ")?;
            module.strip_suffix(';')
        });
        let modules = modules.filter(hands_on).map(str::to_owned);
        modules
            .collect::<Vec<_>>()
            .into_iter()
            .chain([name.clone()])
            .collect::<Vec<_>>()
    });
    let files = names.flat_map(|name| {
        let first = folder.join(&name).join("mod.rs");
        [folder.join(name + ".rs"), first]
    });
    files.filter(|it| it != file && it.exists()).collect()
}

/// The files that `from` imports, directly or indirectly.
fn reached<'a>(
    imports: &'a BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    from: &'a Path,
) -> BTreeSet<&'a PathBuf> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        let imported = imports.get(file).into_iter().flatten();
        open.extend(
            imported
                .filter(|it| found.insert(*it))
                .map(PathBuf::as_path),
        );
    }
    found
}

#[test]
fn no_file_imports_itself_by_way_of_others() {
    let mut files = Vec::new();
    for folder in FOLDERS {
        sources(&root().join(folder), &mut files);
    }
    let apart = ["mod.rs", "lib.rs", "main.rs", "tests.rs", "samples.rs"];
    files.retain(|file| {
        stands_for_its_folder(file) || !apart.contains(&file.file_name().unwrap().to_str().unwrap())
    });
    let imports = files.into_iter().map(|file| (beside(&file), file));
    let imports = imports.map(|(imported, file)| (file, imported));
    let imports = imports.collect::<BTreeMap<_, _>>();
    let mut rings = imports.keys().map(|file| (file, reached(&imports, file)));
    let in_a_ring = rings.find(|(file, reached)| reached.contains(file));
    assert_eq!(in_a_ring, None, "the second lists what the first imports");
    let seen = imports.values().map(BTreeSet::len).sum::<usize>();
    assert!(seen > 50, "only {seen} imports were read");
}

#[test]
fn imports_are_read_as_the_compiler_reads_them() {
    let code = "use crate::{\n    a::{b, c},\n    d,\n    e::F as G,\n};\nfn f() { crate::h::i(); }\nuse other_crate::j;";
    assert_eq!(
        first_names(code, "crate::"),
        BTreeSet::from(["a", "d", "e", "h"].map(str::to_owned))
    );
}

/// `UPDATE_EXPECT=1` rewrites the list in CONTRIBUTING.md.
#[test]
fn contributing_shows_this_order() {
    let widest = modules().map(|(module, _)| file(module).len()).max();
    let widest = widest.unwrap();
    let lines = modules().map(|(module, about)| format!("    {:widest$}  {about}\n", file(module)));
    let order = lines.collect_vec().into_iter().rev().collect::<String>();
    pages::compare(
        "CONTRIBUTING.md",
        "<!-- modules: made by tests/modules.rs -->\n\n",
        "\n<!-- end of modules -->",
        &order,
    );
}

fn file(module: &str) -> String {
    let places = FOLDERS.map(|folder| format!("{folder}/{module}"));
    let there = |end: &str| {
        let mut places = places.iter().map(|place| format!("{place}{end}"));
        places.find(|place| root().join(place).exists())
    };
    there("/").or_else(|| there(".rs")).unwrap()
}
