//! README.md and the book in docs/: every command without a cluster is run, and every link leads somewhere.

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, path::Path, process::Command};

use pod_reaper_test_support::pages;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
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

/// Returns the output of a command on a terminal, without the log of normal steps.
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

/// Returns the page with the current output of its commands. If the lines around a cut no longer fit, it has the whole output.
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
    }
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
    let pages = pages::for_users().into_iter();
    for page in pages.chain(["CONTRIBUTING.md".to_owned(), "tests/README.md".to_owned()]) {
        let blocks = pages::blocks(&pages::read(&page)).into_iter();
        let commands = blocks.filter(|block| block.language == "sh");
        for command in commands.flat_map(|block| pages::commands(&block)) {
            let program = command.split(' ').next().unwrap_or_default();
            let is_script = program.contains('/') && root.join(program).exists();
            let is_run = is_script || program == "kubectl" || pages::not_run(&command).is_some();
            if let Some(arguments) = command.strip_prefix("pod-reaper ") {
                let arguments = arguments.split(" > ").next().unwrap_or_default();
                let arguments = arguments.split(" | ").next().unwrap_or_default();
                let arguments = shlex::split(arguments).expect("words");
                let arguments = arguments.iter().map(String::as_str).collect::<Vec<_>>();
                let mut run = reaper(&arguments).env("DEADLINE", "20s");
                let kubeconfig = run.file(".kube/config", dead);
                run.command.env("KUBECONFIG", kubeconfig).current_dir(root);
                let ended = run.run();
                // The command before it has saved the file.
                let may_run = [pages::NOBODY_TO_ASK, "No such file or directory"];
                if ended.code == 2 && !may_run.iter().any(|it| ended.err.contains(it)) {
                    wrong.push(format!("{page}: {command}: {}", ended.err));
                }
            } else if !is_run {
                wrong.push(format!(
                    "{page}: {command}: no test runs it, and NOT_RUN has no reason"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
                anchors.insert(anchor(&heading.take().unwrap_or_default()));
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

/// Also those of the alerts, and the pages that the program names.
#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut follow = |page: &str, link: &str| {
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let folder = Path::new(page).parent().expect("a folder");
        let target = match file {
            "" => pages::path(page),
            _ => pages::path(&folder.join(file).display().to_string()),
        };
        let has_anchor = || {
            let text = fs::read_to_string(&target).unwrap_or_default();
            links_and_anchors(&text).1.contains(anchor)
        };
        // The book is read without the repository.
        let leaves_the_book = page.starts_with("docs/") && file.starts_with("..");
        if leaves_the_book || !target.exists() || !anchor.is_empty() && !has_anchor() {
            wrong.push(format!("{page}: {link}"));
        }
    };
    for page in pages::all() {
        let links = links_and_anchors(&pages::read(&page)).0;
        let links = links.iter().filter(|link| !link.starts_with("https://"));
        links.for_each(|link| follow(&page, link));
    }
    for line in pages::read("cronjob/alerts.yaml").lines() {
        if let Some((_, anchor)) = line.split_once("alerts.md#") {
            follow("docs/alerts.md", &format!("#{}", anchor.trim_matches('"')));
        }
    }
    // The reports of a release name pages of the book by their address.
    let sources = Command::new("grep")
        .args(["-rhoE", r"/[a-z-]+\.md#[a-z0-9-]+", "src"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("grep");
    for named in String::from_utf8(sources.stdout).expect("text").lines() {
        follow("docs/SUMMARY.md", named.trim_start_matches('/'));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_book_has_every_page_of_its_folder() {
    let listed = pages::for_users();
    for entry in fs::read_dir(pages::path("docs")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let page = format!("docs/{}", path.file_name().expect("a name").display());
        let is_page = path.extension().is_some_and(|end| end == "md") && page != "docs/SUMMARY.md";
        assert!(!is_page || listed.contains(&page), "{page}");
    }
}

/// The files that a contributor is sent to, also after a rename.
#[test]
fn the_pages_for_contributors_name_files_that_there_are() {
    let mut lost = Vec::new();
    for page in ["CONTRIBUTING.md", "tests/README.md", "tests/live/README.md"] {
        let text = pages::read(page);
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            let Event::Code(quoted) = event else { continue };
            let name = quoted.split(' ').next().unwrap_or_default();
            let is_ours = [
                "src/", "tests/", "scripts/", "cronjob/", "docs/", "release/",
            ]
            .iter()
            .any(|start| name.starts_with(start));
            if is_ours && !pages::path(name).exists() {
                lost.push(format!("{page}: {name}"));
            }
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}

/// A reason that the table of rules or the page for the night leaves out would be looked for there in vain.
#[test]
fn each_reason_has_its_place() {
    let page = pages::read("docs/decisions.md");
    let (rules, reasons) = page.split_once("## Reasons").expect("both");
    let night = pages::read("docs/three-in-the-morning.md");
    let mut missing = Vec::new();
    for part in reasons.split("\n### ").skip(1) {
        let (code, rest) = part.split_once('\n').expect("a heading");
        if !rules.contains(code) {
            missing.push(format!("rules: {code}"));
        }
        if rest.contains(", `manual`.") && !night.contains(code) {
            missing.push(format!("three-in-the-morning: {code}"));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Options of other programs that the pages name apart from their commands.
const FOREIGN: [&str; 13] = [
    "--show-managed-fields",
    "--insecure-ignore-tlog",
    "--wait",
    "--node-monitor-grace-period",
    "--disable-force-detach-on-timeout",
    "--enable-fencing",
    "--use-service-account-credentials",
    "--event-ttl",
    "--cascade",
    "--force",
    "--ignore-not-found",
    "--set",
    "--soft-reap",
];

#[test]
fn the_pages_name_no_option_that_there_is_not() {
    let help = ["--help", "explain --help"].map(|args| {
        let args = args.split(' ').collect::<Vec<_>>();
        reaper(&args).run().exits(0).out
    });
    let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    for page in pages::for_users() {
        let text = pages::read(&page);
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            let Event::Code(quoted) = event else { continue };
            let ours = quoted.starts_with("--") || quoted.starts_with("pod-reaper ");
            let words = quoted
                .split([' ', '['])
                .filter(|word| ours && word.starts_with("--"));
            for word in words {
                let option = word.split(|letter| !is_name(letter)).next().expect("it");
                let is_there = help.iter().any(|help| help.contains(option));
                assert!(is_there || FOREIGN.contains(&option), "{page}: {option}");
            }
        }
    }
}
