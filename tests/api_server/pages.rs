//! The commands of README.md and of the book that need a cluster, and the outputs of those commands that the book shows.

use crate::{
    prelude::*,
    support::{installed::kustomize, pages, program::executable},
};
use std::os::unix::fs::symlink;

/// A directory with the files that the commands of a page name.
fn workplace() -> TempDir {
    let folder = TempDir::new().unwrap();
    for name in ["cronjob", "charts", "scripts", "tests"] {
        symlink(in_repository(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// Runs a line of a page in a shell that has kubectl and the program.
fn typed(cluster: &ControlPlane, line: &str, workplace: &Path) -> (bool, String) {
    let programs = workplace.join(".programs");
    if !programs.exists() {
        fs::create_dir(&programs).unwrap();
        symlink(&cluster.kubectl, programs.join("kubectl")).unwrap();
        symlink(executable(), programs.join("pod-reaper")).unwrap();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1\n{line}")])
        .env_clear()
        .env("PATH", path)
        .env("HOME", workplace)
        .env("KUBECONFIG", &cluster.kubeconfig)
        .env("KUBERC", "off")
        .current_dir(workplace)
        .output()
        .unwrap();
    let says = String::from_utf8(output.stdout).unwrap();
    if says.contains(pages::NOBODY_TO_ASK) {
        return typed(cluster, &format!("{line} --yes"), workplace);
    }
    (output.status.success(), says)
}

/// Runs all pages on one cluster, as a reader would: the operators' case with the installation of the README.
#[test]
fn every_command_of_the_pages_works_as_it_stands() {
    let cluster = six_nodes::after_an_hour();
    let mut worked = 0;
    for page in pages::for_users() {
        let blocks = pages::blocks(&pages::read(&page))
            .into_iter()
            .filter(|block| block.language == "sh");
        let commands = blocks
            .flat_map(|block| pages::commands(&block))
            .filter(|command| {
                // A context exists only in the reader's own kubeconfig.
                let elsewhere = pages::not_run(command).is_some() || command.contains("--context");
                !elsewhere
                    && ["kubectl ", "pod-reaper ", "scripts/deploy "]
                        .iter()
                        .any(|program| command.starts_with(program))
            });
        let commands = commands.collect_vec();
        if commands.is_empty() {
            continue;
        }
        let workplace = workplace();
        // Each page assumes an installation, and no Job of another page.
        for before in [
            "scripts/deploy YOUR-REGISTRY/pod-reaper:0 prod-eu",
            "kubectl apply -k deploy/",
            "kubectl delete job -n pod-reaper look --ignore-not-found",
        ] {
            let (success, says) = typed(&cluster, before, workplace.path());
            assert!(success, "{before}: {says}");
        }
        for command in commands {
            let (success, says) = typed(&cluster, &command, workplace.path());
            assert!(success, "{page}: {command}\n{says}");
            worked += 1;
        }
    }
    assert!(worked > 25, "only {worked} commands were found");
}

/// Adds a block of a page to the one file in which a reader decides, as the page says: entries of `env` right below that line, patches
/// at the end of the file. Any other field replaces the one that is there.
fn decide(settings: &mut String, block: &str) {
    let entry = block.trim_start();
    if entry.starts_with("- {name:") {
        let (before, after) = settings.split_once(" env:\n").expect("the settings");
        *settings = format!("{before} env:\n{block}\n{after}");
    } else if entry.starts_with("- target:") {
        settings.push_str(block);
        settings.push('\n');
    } else {
        let mut is_replaced = false;
        let kept = settings.lines().filter(|line| {
            if line.starts_with(char::is_alphabetic) {
                let (field, _) = line.split_once(':').expect("a field");
                is_replaced = block
                    .lines()
                    .any(|line| line.starts_with(&format!("{field}:")));
            }
            !is_replaced
        });
        *settings = format!("{}\n{}\n", block, kept.format("\n"));
    }
}

/// The decisions of a reader, as the run and the look have them: the objects without the permissions to write, and without the
/// variable by which a look differs.
fn decided(folder: &Path) -> Vec<Value> {
    let documents = kustomize(folder);
    let documents = documents.split("\n---\n").map(yaml);
    let objects = documents.map(|mut object| {
        if object["kind"] == "CronJob" {
            let pod = &mut object["spec"]["jobTemplate"]["spec"]["template"]["spec"];
            let env = &mut pod["containers"][0]["env"];
            let left = each(env)
                .filter(|entry| entry["name"] != "DRY_RUN")
                .cloned();
            *env = left
                .sorted_by_key(|entry| str_of(&entry["name"]).to_owned())
                .collect_vec()
                .into();
        } else if ["ClusterRole", "Role"].contains(&str_of(&object["kind"])) {
            object["rules"].take();
        }
        object
    });
    objects.collect()
}

/// Otherwise a run could delete what a look, or an option, protected.
#[test]
fn the_look_and_the_run_have_whatever_a_page_says_to_decide() {
    let workplace = workplace();
    let mut script = Command::new("bash");
    script.args(["scripts/deploy", "registry/pod-reaper:1", "prod-eu"]);
    let ended = script.current_dir(workplace.path()).output();
    assert!(ended.expect("it starts").status.success());
    let blocks = pages::for_users()
        .into_iter()
        .flat_map(|page| pages::blocks(&pages::read(&page)));
    let blocks = blocks.filter(|block| block.language == "yaml");
    let blocks = blocks.map(|block| block.lines.join("\n"));
    let decides = ["- {name:", "- target:", "patches:", "env:", "namespace:"];
    let blocks = blocks.filter(|block| decides.iter().any(|it| block.trim_start().starts_with(it)));
    let blocks = blocks.collect_vec();
    assert!(blocks.len() >= 4, "only {} blocks", blocks.len());
    for cluster in ["", "prod-eu"] {
        let folder = workplace.path().join("deploy").join(cluster);
        let file = folder.join("settings/kustomization.yaml");
        let as_written = fs::read_to_string(&file).unwrap();
        let plain = decided(&folder);
        assert_eq!(plain, decided(&folder.join("dry-run")));
        let up = if cluster.is_empty() { "" } else { "../" };
        let alone = blocks.iter().map(std::slice::from_ref);
        for blocks in alone.chain([blocks.as_slice()]) {
            let mut settings = as_written.clone();
            for block in blocks {
                decide(
                    &mut settings,
                    &block
                        .replace("[../", &format!("[{up}../"))
                        .replace(", ../", &format!(", {up}../")),
                );
            }
            fs::write(&file, &settings).unwrap();
            let run = decided(&folder);
            assert_eq!(run, decided(&folder.join("dry-run")), "{settings}");
            assert_ne!(run, plain, "without effect: {settings}");
            // A reader's settings stay when the reader pastes more.
            let said = serde_json::to_string(&run).expect("JSON");
            for name in blocks
                .iter()
                .flat_map(|block| block.split("{name: ").skip(1))
            {
                let name = name.split(',').next().expect("a name");
                assert!(
                    said.contains(&format!("\"name\":\"{name}\"")),
                    "{name}: {settings}"
                );
            }
        }
        fs::write(&file, as_written).unwrap();
    }
}

/// k9s inserts the values of its variables into the arguments as text.
#[test]
fn the_plugins_of_k9s_answer() {
    let cluster = six_nodes::after_an_hour();
    let workplace = workplace();
    typed(
        &cluster,
        r#"ln -s "$(command -v cat)" .programs/less"#,
        workplace.path(),
    );
    let file = fs::read_to_string(in_repository("integrations/k9s.yaml")).unwrap();
    let plugins = yaml(&file)["plugins"].as_object().unwrap().clone();
    let plugin = &plugins["pod-reaper-explain"];
    let words = plugin["args"].as_array().unwrap().iter().map(str_of);
    let words = [str_of(&plugin["command"])].into_iter().chain(words);
    let line = words.map(|word| {
        let word = word.replace("$NAMESPACE", "compute-hive01");
        let word = word.replace("$NAME", "huebackend-0");
        let word = word.replace("$CONTEXT", "test");
        format!("'{word}'")
    });
    let line = line.collect::<Vec<_>>().join(" ");
    let (success, said) = typed(&cluster, &line, workplace.path());
    assert!(
        success && said.starts_with("compute-hive01/huebackend-0"),
        "{line}\n{said}"
    );
    assert_eq!(plugins.len(), 1);
}

/// A line without the parts that differ between two runs.
fn alike(line: &str) -> String {
    let line = line.split_once(" uid=").map_or(line, |(before, _)| before);
    let mut plain = String::new();
    for letter in line.split_whitespace().join(" ").chars() {
        let letter = if letter.is_ascii_digit() { '0' } else { letter };
        if letter != '0' || !plain.ends_with('0') {
            plain.push(letter);
        }
    }
    plain
}

/// The block of a page that begins with this command, without the command.
fn block_of(page: &str, command: &str) -> Vec<String> {
    let blocks = pages::blocks(&pages::read(page));
    let block = blocks
        .into_iter()
        .find(|block| block.lines.first().is_some_and(|line| line == command));
    block
        .unwrap_or_else(|| panic!("{page} has no {command}"))
        .lines
        .split_off(1)
}

#[test]
fn the_events_that_the_book_shows_are_those_of_a_run() {
    let cluster = six_nodes::after_an_hour();
    until_overdue();
    let workplace = workplace();
    let run = "pod-reaper --reap-older-than 1s";
    let (success, says) = typed(&cluster, run, workplace.path());
    assert!(success, "{says}");
    let (page, command) = ("docs/alerts.md", "$ kubectl get events -n impala-impala01");
    let (success, says) = typed(&cluster, command.trim_start_matches("$ "), workplace.path());
    assert!(success, "{says}");
    let printed = says.lines().map(alike).collect_vec();
    for line in block_of(page, command) {
        let line = alike(&line);
        assert!(
            printed.contains(&line),
            "{page}: {line:?} is not in:\n{says}"
        );
    }
}

/// The commands of the README until the first dry run, without those that need Docker and kind: the manifests name the image that
/// these commands have built, and let no kubelet ask a registry for it.
#[test]
fn the_readme_installs_the_image_that_it_builds() {
    let readme = pages::blocks(&pages::read("README.md"));
    let mut commands = readme
        .iter()
        .filter(|block| block.language == "sh")
        .flat_map(pages::commands)
        .skip_while(|command| !command.starts_with("docker build -t "));
    let [build, load, deploy, apply] = [(); 4].map(|()| commands.next().expect("four commands"));
    let image = build
        .trim_start_matches("docker build -t ")
        .trim_end_matches(" .");
    assert_eq!(load, format!("kind load docker-image {image}"));
    assert_eq!(deploy, format!("scripts/deploy {image}"));
    let cluster = fresh();
    let workplace = workplace();
    for command in [deploy, apply, "kubectl apply -k deploy/".to_owned()] {
        let (success, says) = typed(&cluster, &command, workplace.path());
        assert!(success, "{command}: {says}");
        if command.starts_with("kubectl") {
            let job = cluster.get("/apis/batch/v1/namespaces/pod-reaper/cronjobs/pod-reaper");
            let container =
                &job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0];
            assert_eq!(container["image"], image, "{command}");
            assert_eq!(container["imagePullPolicy"], "IfNotPresent", "{command}");
        }
    }
}
