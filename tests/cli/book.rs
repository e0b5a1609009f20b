//! README.md and the book in docs/: every command without a cluster is run, and every link leads somewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use pod_reaper_test_support::{
    pages::{self, Block},
    samples,
};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use tempfile::TempDir;

use crate::reaper;

/// A folder in which the commands of a page find what they name: the examples, and the program by its name.
fn workplace() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    symlink(root.join("tests"), folder.path().join("tests")).expect("a link");
    let programs = folder.path().join(".programs");
    fs::create_dir(&programs).expect("a folder");
    symlink(
        env!("CARGO_BIN_EXE_pod-reaper"),
        programs.join("pod-reaper"),
    )
    .expect("a link");
    folder
}

/// What a terminal shows of a command, without the log of what goes well.
fn shown(command: &str, workplace: &Path) -> String {
    let path = std::env::var("PATH").expect("a PATH");
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .env_clear()
        .env(
            "PATH",
            format!("{}:{path}", workplace.join(".programs").display()),
        )
        .env("HOME", workplace)
        .env("LOG_LEVEL", "warn")
        .current_dir(workplace)
        .output()
        .expect("bash");
    let text = String::from_utf8(output.stdout).expect("text");
    // A report logs what it has no room for.
    let lines = text
        .split_inclusive('\n')
        .filter(|line| !line.contains("  WARN "));
    lines.collect()
}

/// The page with what its commands print now. Where lines are left out that no longer fit, it has the whole output.
fn current(page: &str) -> String {
    let text = pages::read(page);
    let workplace = workplace();
    let mut fresh = String::new();
    let mut lines = text.lines().peekable();
    let mut console = false;
    while let Some(line) = lines.next() {
        fresh.push_str(line);
        fresh.push('\n');
        if line.starts_with("```") {
            console = line == "```console";
            assert!(
                !console || lines.peek().is_some_and(|first| first.starts_with("$ ")),
                "{page}: a block `console` begins with a command"
            );
            continue;
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| console) else {
            continue;
        };
        let mut command = command.to_owned();
        while command.ends_with('\\') {
            let more = lines.next().expect("the rest of a command");
            fresh.push_str(more);
            fresh.push('\n');
            command.push('\n');
            command.push_str(more);
        }
        let mut was = Vec::new();
        while let Some(line) =
            lines.next_if(|line| !line.starts_with("$ ") && !line.starts_with("```"))
        {
            was.push(line);
        }
        let mut output = shown(&command, workplace.path());
        if was.contains(&pages::CUT)
            && pages::is_cut_from(&was, &output.lines().collect::<Vec<_>>())
        {
            output = was.join("\n");
        }
        assert!(
            !output.contains("\n```") && !output.contains("\n$ "),
            "{command}: its output ends the block"
        );
        fresh.push_str(&output);
        if !output.is_empty() && !output.ends_with('\n') {
            fresh.push('\n');
        }
    }
    fresh
}

/// Rewritten with `UPDATE_EXPECT=1`.
#[test]
fn every_command_without_a_cluster_prints_what_its_page_shows() {
    let mut commands = 0;
    for page in pages::for_users() {
        let text = pages::read(&page);
        let fresh = current(&page);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            // At once, since other tests read it meanwhile.
            if text != fresh {
                let beside = pages::path(&format!("{page}.new"));
                fs::write(&beside, &fresh).expect("a file");
                fs::rename(beside, pages::path(&page)).expect("a page");
            }
        } else {
            let (is, prints) = (text.lines(), fresh.lines());
            let first = is
                .zip(prints)
                .zip(1..)
                .find(|((is, prints), _)| is != prints);
            assert!(
                text == fresh,
                "{page}: a command prints other lines, UPDATE_EXPECT=1 rewrites the page: {first:?}"
            );
        }
        let console = pages::blocks(&text)
            .into_iter()
            .filter(|block| block.language == "console");
        commands += console
            .flat_map(|block| block.lines)
            .filter(|line| line.starts_with("$ "))
            .count();
    }
    assert!(commands > 10, "only {commands} commands were found");
}

/// The others are run on a real API server: `api_server::pages`.
#[test]
fn every_other_command_is_run_elsewhere_or_named_as_not_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // A cluster that nobody serves: what is wrong usage ends with 2, anything else with 1. A person would be asked.
    let dead = "
apiVersion: v1
kind: Config
current-context: prod
clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]
users: [{name: u, user: {}}]
contexts:
- {name: prod, context: {cluster: c, user: u}}
- {name: prod-eu, context: {cluster: c, user: u}}
- {name: prod-us, context: {cluster: c, user: u}}
";
    let mut wrong = Vec::new();
    let mut seen = BTreeMap::<&str, usize>::new();
    for page in pages::for_users()
        .into_iter()
        .chain(["CONTRIBUTING.md".to_owned()])
    {
        let text = pages::read(&page);
        let indented =
            |event| matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)));
        if page != "CONTRIBUTING.md" && Parser::new(&text).any(indented) {
            wrong.push(format!(
                "{page}: a block by its indent has no language; fence it"
            ));
        }
        for block in pages::blocks(&text) {
            let known = ["console", "sh", "yaml", "text", "promql", "jq"];
            if !known.contains(&block.language.as_str()) {
                wrong.push(format!(
                    "{page}:{}: the language {:?}",
                    block.line, block.language
                ));
            }
            if block.language != "sh" {
                continue;
            }
            for command in pages::commands(&block) {
                let place = format!("{page}:{}: {command}", block.line);
                if pages::not_run(&command).is_some() {
                    *seen.entry("not run").or_default() += 1;
                } else if command.starts_with("kubectl ") {
                    *seen.entry("kubectl").or_default() += 1;
                } else if let Some(arguments) = command.strip_prefix("pod-reaper ") {
                    *seen.entry("pod-reaper").or_default() += 1;
                    let arguments = arguments.split(" > ").next().unwrap_or_default();
                    let arguments = arguments.split(" | ").next().unwrap_or_default();
                    let arguments = shlex::split(arguments).expect("words");
                    let arguments = arguments.iter().map(String::as_str).collect::<Vec<_>>();
                    let mut run = reaper(&arguments).env("DEADLINE", "1s");
                    let kubeconfig = run.file(".kube/config", dead);
                    run.command.env("KUBECONFIG", kubeconfig).current_dir(root);
                    let ended = run.run();
                    if ended.code == 2 && !ended.err.contains(pages::NOBODY_TO_ASK) {
                        wrong.push(format!("{place}: {}", ended.err));
                    }
                } else {
                    let program = command.split(' ').next().unwrap_or_default();
                    *seen.entry("script").or_default() += 1;
                    if !program.contains('/') || !root.join(program).exists() {
                        wrong.push(format!(
                            "{place}: no test runs it, and NOT_RUN has no reason"
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        seen.values().sum::<usize>() > 30 && seen.len() == 4,
        "{seen:?}"
    );
}

/// As the hosts of repositories and mdBook make an anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading
        .trim()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The links of a page and the anchors of its headings.
fn links_and_anchors(text: &str) -> (Vec<String>, BTreeSet<String>) {
    let (mut links, mut anchors) = (Vec::new(), BTreeSet::new());
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push(dest_url.to_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let name = anchor(&heading.take().unwrap_or_default());
                let first = anchors.insert(name.clone());
                assert!(first, "two headings #{name}");
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            _ => {}
        }
    }
    (links, anchors)
}

#[test]
fn every_link_leads_somewhere() {
    let all = pages::all();
    let anchors = |page: &str| links_and_anchors(&pages::read(page)).1;
    let (mut wrong, mut followed) = (Vec::new(), 0);
    for page in &all {
        let (links, own) = links_and_anchors(&pages::read(page));
        for link in links {
            if link.starts_with("https://") {
                continue;
            }
            followed += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = Path::new(page).parent().expect("a folder").join(file);
            let target = if file.is_empty() {
                PathBuf::from(page)
            } else {
                normal(&target)
            };
            if !pages::path(&target.display().to_string()).exists() {
                wrong.push(format!("{page}: {link}: there is no {}", target.display()));
                continue;
            }
            // The book is read without the repository.
            if page.starts_with("docs/") && !target.starts_with("docs") {
                wrong.push(format!("{page}: {link} leads out of the book"));
            }
            let there = if file.is_empty() {
                own.clone()
            } else if anchor.is_empty() {
                continue;
            } else {
                anchors(&target.display().to_string())
            };
            if !there.contains(anchor) {
                wrong.push(format!("{page}: {link}: there is no such heading"));
            }
        }
    }
    // What the program names by its address, or by its title if it knows none.
    let advice = pages::read("rules/src/advice/mod.rs");
    let address = "{book}/by-hand.md#with-kubectl-alone";
    let (title, heading) = ("By hand", "With kubectl alone");
    let names = format!(r#"the page \"{title}\" of the documentation, under \"{heading}\""#);
    assert!(
        advice.contains(address) && advice.contains(&names),
        "{address}"
    );
    let page = address.trim_start_matches("{book}/");
    let (page, anchor) = page.split_once('#').expect("an anchor");
    let page = format!("docs/{page}");
    assert!(anchors(&page).contains(anchor), "{address}");
    let text = pages::read(&page);
    assert!(text.starts_with(&format!("# {title}\n")), "{title}");
    assert!(text.contains(&format!("\n## {heading}\n")), "{heading}");
    assert_eq!(
        advice.matches("{book}/").count(),
        1,
        "another page is named"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(followed > 60, "only {followed} links were found");
}

/// Without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = Vec::new();
    for part in path {
        if part == ".." {
            parts.pop();
        } else if part != "." {
            parts.push(part);
        }
    }
    parts.iter().collect()
}

#[test]
fn the_book_has_every_page_of_its_folder() {
    let listed = pages::for_users()
        .into_iter()
        .skip(1)
        .collect::<BTreeSet<_>>();
    let files = files("docs", ".md").into_iter().map(|file| {
        let page = file.strip_prefix(env!("CARGO_MANIFEST_DIR")).expect("ours");
        page.display().to_string()
    });
    let files = files
        .filter(|page| page != "docs/SUMMARY.md")
        .collect::<BTreeSet<_>>();
    assert_eq!(listed, files);
}

/// What it does and whether it is safe come first; what takes long is said before its command.
#[test]
fn the_readme_answers_early() {
    let readme = pages::read("README.md");
    let order = [
        "![0 s: the node dies",
        "## Is it safe?",
        "cargo run -- --snapshot tests/data/six-nodes.json\n",
        "No image is published yet",
        "docker build",
        "## Does it work?",
        "## When not to use it",
        "## Develop",
        "half an hour the first time",
        "```sh\ntests/run\n",
    ];
    let places = order.map(|text| readme.find(text).expect(text));
    assert!(places.is_sorted(), "{places:?}");
}

/// The words in backquotes of a page, its blocks left out.
fn quoted(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        if let Event::Code(word) = event {
            words.push(word.to_string());
        }
    }
    words
}

/// Options of other programs that the pages name.
const FOREIGN: [&str; 12] = [
    "--show-managed-fields",
    // Of 0.2.0.
    "--unreachable-only",
    "--insecure-ignore-tlog",
    "--wait",
    "--node-monitor-grace-period",
    "--disable-force-detach-on-timeout",
    "--use-service-account-credentials",
    "--event-ttl",
    "--cascade",
    "--force",
    "--ignore-not-found",
    "--soft-reap",
];

/// A quoted line that begins so is another program's.
const OTHERS: [&str; 11] = [
    "docker ",
    "kubectl ",
    "cargo ",
    "rustup ",
    "tests/run",
    "scripts/",
    "release/",
    ".ci/",
    "helm ",
    "cosign ",
    "promtool ",
];

#[test]
fn the_pages_name_no_option_that_there_is_not() {
    let help =
        [&["--help"][..], &["explain", "--help"]].map(|args| reaper(args).run().exits(0).out);
    let is_name =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let options = |text: &str| {
        let words = text.match_indices("--").filter(|(at, _)| {
            text[..*at]
                .chars()
                .next_back()
                .is_none_or(|before| " ([`'\"|{".contains(before) || before == '\n')
        });
        let words = words.map(|(at, _)| {
            let rest = &text[at..];
            rest[..rest.find(|letter| !is_name(letter)).unwrap_or(rest.len())].to_owned()
        });
        words.filter(|word| word.len() > 3).collect::<BTreeSet<_>>()
    };
    let there = help
        .iter()
        .flat_map(|text| options(text))
        .collect::<BTreeSet<_>>();
    assert!(there.len() > 25, "{there:?}");
    let (mut wrong, mut named) = (Vec::new(), BTreeSet::new());
    for page in pages::all() {
        // Their readers use other programs' options all the time.
        let of_tools = [
            "CONTRIBUTING.md",
            "release/README.md",
            "charts/pod-reaper/README.md",
        ]
        .contains(&page.as_str());
        for word in quoted(&pages::read(&page)) {
            // A line of another program's.
            if OTHERS.iter().any(|start| word.starts_with(start)) {
                continue;
            }
            for option in options(&word) {
                if !there.contains(&option) && !FOREIGN.contains(&option.as_str()) && !of_tools {
                    wrong.push(format!("{page}: {option}"));
                }
                named.insert(option);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // It has the whole help of a run.
    named.extend(options(&pages::read("docs/options.md")));
    let unnamed = there.difference(&named).collect::<Vec<_>>();
    assert!(unnamed.is_empty(), "no page explains {unnamed:?}");
}

/// The files under a folder that end so.
fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(pages::path(folder)) else {
        return found;
    };
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path
            .strip_prefix(env!("CARGO_MANIFEST_DIR"))
            .expect("ours")
            .display()
            .to_string();
        if path.is_dir() {
            found.extend(files(&name, end));
        } else if name.ends_with(end) {
            found.push(path);
        }
    }
    found
}

/// Whoever is woken by an alert finds a section of its name, and a `runbook_url` leads there.
#[test]
fn every_alert_has_its_section() {
    let page = pages::read("docs/alerts.md");
    let anchors = links_and_anchors(&page).1;
    let mut alerts = BTreeSet::new();
    for file in ["cronjob", "charts"]
        .iter()
        .flat_map(|folder| files(folder, ".yaml"))
    {
        let text = fs::read_to_string(&file).expect("text");
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("- alert: ") {
                alerts.insert(name.to_owned());
            }
            if let Some((_, anchor)) = line
                .strip_prefix("runbook_url: ")
                .and_then(|url| url.trim_matches('"').split_once('#'))
                && !anchor.contains('{')
            {
                assert!(anchors.contains(anchor), "{}: {line}", file.display());
            }
        }
    }
    assert!(alerts.len() >= 4, "{alerts:?}");
    let sections = page.lines().filter_map(|line| line.strip_prefix("## "));
    let sections = sections.filter(|name| name.starts_with("PodReaper"));
    assert_eq!(sections.map(str::to_owned).collect::<BTreeSet<_>>(), alerts);
}

/// Each of these stands on the page.
#[track_caller]
fn has_all(page: &str, wanted: impl IntoIterator<Item = String>) {
    let text = pages::read(page);
    let wanted = wanted.into_iter().collect::<Vec<_>>();
    assert!(!wanted.is_empty(), "{page}: nothing is wanted");
    let missing = wanted.iter().filter(|wanted| !text.contains(*wanted));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&String>::new(), "{page}");
}

fn file(name: &str) -> String {
    fs::read_to_string(pages::path(name)).expect(name)
}

#[test]
fn the_rules_the_exit_codes_and_the_fields_are_all_there() {
    let reasons = pages::read("docs/reasons.md");
    let (reasons, _) = reasons.split_once("\n## Outcomes").expect("the outcomes");
    let sections = reasons.split("\n### ").skip(1);
    let name = |section: &str| section.lines().next().expect("a heading").to_owned();
    // Whoever was woken finds each reason for it.
    let manual = sections.filter(|section| section.contains(", `manual`. "));
    has_all("docs/three-in-the-morning.md", manual.map(name));
    let help = reaper(&["--help"]).run().exits(0).out;
    let codes = help.split_once("Exit codes:").expect("exit codes").1;
    let codes = codes
        .lines()
        .filter_map(|line| line.trim_start().split(' ').next()?.parse().ok());
    assert_eq!(codes.collect::<Vec<u8>>(), [0, 1, 2, 3, 4, 5]);
    has_all(
        "docs/alerts.md",
        (1..=4).map(|code| format!("\n| {code}, ")),
    );

    let schema = samples::yaml(&file("docs/report.schema.json"));
    let entries = schema["$defs"].as_object().expect("entries").values();
    for entry in entries.chain([&schema]) {
        for (name, field) in entry["properties"].as_object().into_iter().flatten() {
            let described = field.get("description").or(field.get("const"));
            assert!(described.is_some(), "{name} of {entry:#}");
        }
    }
}

/// What can be installed is listed, and a release is verified as `release/test` does it.
#[test]
fn the_page_about_installing_has_every_folder_and_that_about_releases_the_tested_commands() {
    for folder in ["cronjob/overlays", "cronjob/components"] {
        let names = fs::read_dir(pages::path(folder))
            .expect("a folder")
            .map(|entry| {
                let name = entry.expect("an entry").file_name();
                format!("{}`", name.to_string_lossy())
            });
        has_all("cronjob/README.md", names);
    }
    let releases = pages::blocks(&pages::read("docs/releases.md"));
    let commands = releases.iter().filter(|block| block.language == "sh");
    let commands = commands.flat_map(pages::commands);
    let verifies =
        |command: &String| command.starts_with("cosign ") || command.starts_with("sha256sum ");
    let commands = commands.filter(verifies).collect::<Vec<_>>();
    assert_eq!(commands.len(), 3);
    has_all("release/README.md", commands);
}

/// As kubectl finds a plugin.
#[test]
fn it_is_a_plugin_of_kubectl_by_its_name() {
    let workplace = workplace();
    // As the page installs it, beside the program.
    let by_hand = pages::blocks(&pages::read("docs/by-hand.md"));
    let mut commands = by_hand.iter().flat_map(pages::commands);
    let install = commands.find(|command| command.starts_with("ln -s "));
    assert_eq!(shown(&install.expect("a command"), workplace.path()), "");
    let plugin = shown(
        "kubectl-pod_reaper explain vault-0 --snapshot tests/data/six-nodes.json",
        workplace.path(),
    );
    assert_eq!(
        plugin,
        shown(
            "pod-reaper explain vault-0 --snapshot tests/data/six-nodes.json",
            workplace.path()
        )
    );
    assert!(plugin.contains("ds06"), "{plugin}");
}

#[test]
fn blocks_and_commands_are_read_as_a_person_reads_them() {
    let page =
        "a\n```sh\none --two \\\n  three\n\n# a comment\nfour  # why\n```\nb\n```text\nfive\n```\n";
    let blocks = pages::blocks(page);
    let languages = blocks
        .iter()
        .map(|block: &Block| block.language.as_str())
        .collect::<Vec<_>>();
    assert_eq!(languages, ["sh", "text"]);
    assert_eq!(
        pages::commands(&blocks[0]),
        ["one --two \\\n  three", "four"]
    );
    assert_eq!(
        anchor("`local-volume`: what, now?"),
        "local-volume-what-now"
    );
}
