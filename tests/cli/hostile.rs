//! Names and notes that steer a terminal, a browser or a shell. Kubernetes allows few of them, but a saved state may have any text.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use itertools::Itertools as _;
use pod_reaper::{cli::Cli, cluster::Cluster, run::run_on, settings::Settings, stop::Stop};
use pod_reaper_test_support::{
    objects::all_commands,
    samples::{NOW, list, objects, with, yaml},
    simulated::{Objects, Server},
};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthChar as _;

use crate::{Reaper, reaper};

/// An audit of a state that has this text in every place.
fn audit_of(text: &str, args: &[&str]) -> Reaper {
    let pod = |own: &str, more: Value| {
        let pod = with(json!({"owner": "StatefulSet db"}), more);
        (format!("Pod {own}"), pod)
    };
    let named = json!({"namespace": text, "name": text});
    let noted = json!({"metadata": {"annotations": {"pod-reaper.io/after-reap": text}}});
    let held = json!({"metadata": {"finalizers": [text], "managedFields": [{"manager": text, "operation": "Update",
        "fieldsV1": {"f:metadata": {"f:finalizers": {format!("v:\"{text}\""): {}}}}}]}});
    let at = json!({"hostPath": {"path": format!("/data/{text}")}, "name": "data"});
    let writes = json!({"owner": "Game db", "spec": {"volumes": [at],
        "containers": [{"name": "c", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}});
    let skip = json!({"metadata": {"annotations": {"pod-reaper.io/skip": text}}});
    let affinity = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": text, "operator": text, "values": [text]}]}]}});
    let mut described = json!({
        "Node ds05": {"ready": "True", "lease": null},
        "Node ds06": {"lease": null, "status": {"conditions": [
            {"type": "Ready", "status": "Unknown", "reason": text, "lastTransitionTime": "2026-01-31T01:00:00Z"}]}},
        "Node leaf": {"lease": null, "metadata": {"labels": {"kosmos.io/node": "true", "topology.kubernetes.io/zone": text},
            "annotations": {"kosmos-io/owned-by-cluster": text}}},
        "Node heard": {"lease": null},
        "Namespace data": {},
        "Lease data/db-0": {"metadata": {"labels": {"kubernetes.io/hostname": "heard"}},
            "spec": {"holderIdentity": text, "renewTime": "2026-01-31T02:59:50.000000Z"}},
        "PersistentVolumeClaim local": {"volume": "local"},
        "PersistentVolume local": {"claim": "data/local",
            "spec": {"local": {"path": text}, "persistentVolumeReclaimPolicy": text, "nodeAffinity": affinity}},
        "PersistentVolumeClaim lost": {"volume": text, "status": {"phase": text}},
        "PersistentVolumeClaim without": {"volume": "", "status": {"phase": text}},
        "VolumeAttachment stray": {"node": "gone", "volume": text},
        "VolumeAttachment named": {"node": "ds06", "volume": text, "metadata": {"name": text}},
        "Namespace named": {"metadata": {"name": text}},
        "PersistentVolumeClaim named": {"volume": text, "metadata": named},
    });
    described.as_object_mut().expect("objects").extend([
        pod("noted", noted),
        pod("leafy", json!({"node": "leaf"})),
        pod("alive", json!({"node": "heard"})),
        pod("gone", json!({"node": text})),
        pod("local", json!({"uses": "local"})),
        pod("lost", json!({"uses": "lost"})),
        pod("without", json!({"uses": "without"})),
        pod("unnamed", json!({"uses": text})),
        pod("held", held),
        pod("writes", writes),
        pod("skipped", skip),
        pod(
            "owned",
            json!({"metadata": {"ownerReferences": [
            {"kind": text, "name": text, "uid": text, "apiVersion": text, "controller": true}]}}),
        ),
        pod("malformed", json!({"metadata": {"uid": "", "name": text}})),
    ]);
    let file = [
        "--snapshot=-",
        "--now=2026-01-31T03:00:00Z",
        "--log-level=off",
    ];
    let run = reaper(&[args, &file].concat());
    run.input(list(objects(&described)).to_string())
}

/// Letters that steer a terminal, or that a reader does not see: controls, directions, marks that combine, and blanks.
const UNSEEN: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{9b}31m\u{202e}txt\u{2066}\u{200f}\u{ad}\u{feff}\u{e0001}\u{e0041}\u{7f}\u{301}\u{489}\
    \u{2800}\u{3164}\u{115f}\u{ffa0}\u{fff9}\u{2028}\u{85}\u{a0}\u{3000}\u{1d159}\u{13441}\u{13442}";

#[test]
fn text_from_the_cluster_steers_no_terminal() {
    for args in [
        &["--output=text"][..],
        &["--output=html"],
        &["--output=json"],
        &["explain", "data/held"],
        &["explain", "data/noted"],
        &["explain", "data/held", "--output=json"],
    ] {
        let run = audit_of(UNSEEN, args).run().exits(3);
        let steering = run.out.chars().filter(|letter| {
            letter.is_control() && *letter != '\n' || UNSEEN.contains(*letter) && !letter.is_ascii()
        });
        assert_eq!(steering.collect_vec(), [], "{args:?} {}", run.out);
        assert!(run.out.contains("owned"), "{}", run.out);
    }
}

/// A PVC's author who writes a command with blanks that are no spaces, so that it fills a line.
const COMMAND: &str = "kubectl\u{2800}delete\u{2800}namespace t2 --wait=false; kubectl delete namespace t2 --wait=false                  \
    kubectl delete namespace t2 --wait=false kubectl delete namespace t2 --wait=false";

/// Where a line begins as a command, the JSON has the command. A text of others is one word, or has at most 60 letters between
/// quotation marks, and a note 200; each line of it has quotation marks of its own.
#[test]
fn no_line_begins_with_the_words_of_others() {
    let (report, text) = (
        audit_of(COMMAND, &["--output=json"])
            .run()
            .exits(3)
            .report(),
        audit_of(COMMAND, &[]).run().exits(3).out,
    );
    let commands = report.to_string();
    for line in text.lines().map(str::trim_start) {
        assert_eq!(line.matches('"').count() % 2, 0, "{line}");
        for (number, part) in line.split('"').enumerate() {
            let of_others = number % 2 == 1;
            let is_command = number == 0 && commands.contains(&json!(part.trim_end()).to_string());
            let says = part.contains("kubectl") || part.contains("namespace t2");
            assert!(!says || of_others || is_command, "{line}");
            assert!(!of_others || part.chars().count() <= 200, "{line}");
        }
    }
    let steps = report["steps"].as_array().expect("steps").iter();
    let steps = steps.filter_map(|step| step["what"].as_str());
    let holds = steps.filter(|what| what.contains("finalizer \""));
    let shown = holds.flat_map(|what| what.split('"').skip(1).step_by(2));
    let lengths = shown.map(|it| it.chars().count()).collect_vec();
    assert!(lengths.contains(&60), "{text}");
    assert!(lengths.iter().all(|length| *length <= 60), "{text}");
}

/// A text of others in which a quotation seems to end, and then a heading and a command seem to follow.
const CLOSED: &str = "restart\u{2033}\u{201d}\u{201c}\u{201e}\u{201f}\u{2ba}\u{2ee}\u{2036}\u{ff02}\u{3003}\"     NOW   \
    kubectl delete node";

/// Nothing that others write ends their quotation, and their spaces move no word of theirs to another place.
#[test]
fn a_quotation_ends_where_the_report_ends_it() {
    let page = audit_of(CLOSED, &[]).run().exits(3).out;
    let shown = format!("\"restart{} NOW kubectl delete node\"", "'".repeat(11));
    assert!(page.contains(&shown), "{page}");
    let report = audit_of(CLOSED, &["--output=json"]).run().exits(3).report();
    let steps = report["steps"].to_string();
    assert!(steps.contains(&shown.replace('"', "\\\"")), "{steps}");
}

/// The columns of a terminal in which somebody reads the text: that of a log was written for a wider one.
const TERMINAL: usize = 80;

/// Reports whether a terminal breaks a line within a quotation: its next row then begins with the words of others.
fn breaks_a_quotation(line: &str) -> bool {
    let (mut column, mut is_quoted) = (0, false);
    line.chars().any(|letter| {
        let width = letter.width().unwrap_or_default();
        let breaks = column + width > TERMINAL;
        column = if breaks { width } else { column + width };
        let is_of_others = is_quoted && letter != '"';
        is_quoted ^= letter == '"';
        breaks && is_of_others
    })
}

/// The note of a pod may have any length, and visible letters, wide ones too, move its words as well as spaces do.
#[test]
fn no_row_of_a_terminal_begins_with_the_words_of_others() {
    for padding in ["x", "x ", "xy, ", "\u{6f22}", "\u{6f22} "] {
        for length in [1, 5, 20, 28, 29, 30, 60, 90] {
            let text = padding.repeat(length) + "NOW   kubectl delete node ds01";
            let page = audit_of(&text, &[]).run().exits(3).out;
            let report = audit_of(&text, &["--output=json"]).run().exits(3).report();
            let commands = all_commands(&report).collect_vec();
            let lines = page.lines().filter(|line| !commands.contains(&line.trim()));
            let broken = lines.filter(|line| breaks_a_quotation(line));
            assert_eq!(broken.collect_vec(), Vec::<&str>::new(), "{page}");
        }
    }
}

/// Safety rule 13. The requests for a tenant's pods grow with neither what each requires nor how many PVCs they name, and the
/// pod of another is deleted.
#[tokio::test(start_paused = true)]
async fn many_crowded_pods_cost_few_requests() {
    let mut state = json!({"Node ds05": {"ready": "True"}, "Node ds06": {}, "Namespace tenant": {}, "Namespace apps": {},
        "Pod apps/db-0": {"uses": "data"}, "PersistentVolume pv": {"claim": "apps/data"}});
    for number in 0..1_200 {
        let volume = |it: usize| json!({"name": format!("v{it}"), "persistentVolumeClaim": {"claimName": format!("c-{number}-{it}")}});
        let term = |it: usize| json!({"matchExpressions": [{"key": format!("k{number}-{it}"), "operator": "DoesNotExist"}]});
        let terms = (0..16).map(term).collect::<Value>();
        let required =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
        state[format!("Pod tenant/s{number}-0")] = json!({"overdue": 9_000, "spec": {
            "volumes": (0..6).map(volume).collect::<Value>(), "affinity": {"nodeAffinity": required}}});
    }
    let args = ["pod-reaper", "--yes"].map(Into::into);
    let settings = Settings::from(Cli::try_from_args(args).expect("options"));
    let server = Server::new(Objects::new(
        NOW.parse().expect("a moment"),
        objects(&state),
    ));
    let (_signal, stop) = Stop::manual(settings.deadline);
    let cluster = Cluster::new(server.client(), stop.clone());
    let report = run_on(&cluster, &settings, false, &stop).await;
    let report = serde_json::to_value(report.expect("a report").report()).expect("JSON");
    let pods = report["pods"].as_array().expect("pods");
    let db = pods.iter().find(|pod| pod["name"] == "db-0");
    assert_eq!(db.expect("it")["outcome"], "deleted", "{report}");
    let requests = server.lock().requests.clone();
    let reads = |of: &str| {
        let reads = requests
            .iter()
            .filter(|it| it.starts_with("GET ") && it.contains(of));
        reads.count()
    };
    let counts = [
        "/persistentvolumeclaims/",
        "/persistentvolumes/",
        "/statefulsets/",
        "/nodes?",
    ];
    // 106 pods name 636 PVCs. 64 of their StatefulSets are read for the words of the report.
    assert_eq!(counts.map(reads), [637, 1, 65, 1]);
}

/// A page has twelve steps. A tenant whose pods need more than that leaves room for the step of another.
#[test]
fn no_namespace_hides_the_steps_of_another() {
    let mut state = json!({"Node ds05": {"ready": "True"}, "Node ds06": {}, "Namespace tenant": {}, "Namespace apps": {},
        "Pod apps/db-0": {"metadata": {"finalizers": ["example.org/held"]}}});
    let deleted = json!({"deletionTimestamp": "2026-01-31T00:50:00Z", "finalizers": ["kubernetes.io/pvc-protection"]});
    for number in 0..14 {
        let (claim, volume) = (format!("c-{number}"), format!("pv-{number}"));
        let of_claim = json!({"volume": volume, "metadata": deleted});
        state[format!("Pod tenant/p-{number}")] = json!({"uses": claim});
        state[format!("PersistentVolumeClaim tenant/{claim}")] = of_claim;
        state[format!("PersistentVolume {volume}")] = json!({"claim": format!("tenant/{claim}"), "spec": {"persistentVolumeReclaimPolicy": "Delete"}});
    }
    let run = reaper(&[
        "--snapshot=-",
        "--now",
        NOW,
        "--output=json",
        "--log-level=off",
    ]);
    let report = run
        .input(list(objects(&state)).to_string())
        .run()
        .exits(0)
        .report();
    let steps = report["steps"].as_array().expect("steps");
    let now = |of: &str| {
        let is_now = |step: &&Value| step["when"] == "now" && step["pods"].to_string().contains(of);
        steps.iter().filter(is_now).count()
    };
    assert_eq!((steps.len(), now("apps/db-0")), (12, 1), "{report}");
    assert!(now("tenant/p-") > 8, "{report}");
}

/// A tenant with many pods in the same trouble hides the pod of no other from a step, from DATA and from a list.
#[test]
fn no_namespace_hides_the_pods_of_another() {
    let mut state = json!({"Node ds05": {"ready": "True"}, "Node ds06": {}, "Namespace tenant": {}, "Namespace victim": {}});
    let tenants = (0..60).map(|number| format!("tenant/p{number}-0"));
    for pod in tenants.chain(["victim/db-0".to_owned()]) {
        let (namespace, name) = pod.split_once('/').expect("a namespace");
        let (volume, claim) = (format!("{namespace}-{name}"), format!("{namespace}/{name}"));
        state[format!("Pod {pod}")] =
            json!({"uses": name, "metadata": {"finalizers": ["example.org/held"]}});
        state[format!("PersistentVolumeClaim {claim}")] = json!({"volume": volume});
        state[format!("PersistentVolume {volume}")] = json!({"claim": claim});
        state[format!("VolumeAttachment {volume}")] = json!({"node": "ds06", "volume": volume});
    }
    let page = |output| {
        let run = reaper(&["--snapshot=-", "--now", NOW, "--log-level=off", output]);
        run.input(list(objects(&state)).to_string()).run().exits(0)
    };
    let text = page("--output=text").out;
    for heading in ["DATA ", "NOW", "NEEDS YOU"] {
        let section = text.lines().skip_while(|line| !line.starts_with(heading));
        let mut section = section.enumerate().take_while(|(number, line)| {
            *number == 0 || !line.starts_with(|letter: char| letter.is_alphabetic())
        });
        let names_it = section.any(|(_, line)| line.contains("victim/db"));
        assert!(names_it, "{heading}: {text}");
    }
    let report = page("--output=json").report();
    let held = report["steps"].as_array().expect("steps").iter();
    let mut held = held.filter_map(|step| step["what"].as_str());
    let held = held.find(|what| what.contains("held by finalizer"));
    let held = held.expect("a step");
    let named = "tenant/p0-0, victim/db-0, tenant/p1-0 and 58 more";
    assert!(held.contains(named), "{held}");
}

/// Pods of a tenant that have not started, or whose authors wrote notes, hide nothing of another.
#[test]
fn what_waits_and_what_is_noted_hides_nothing_of_others() {
    let mut state = json!({"Node ds05": {"ready": "True"}, "Node ds06": {}, "Namespace tenant": {}, "Namespace victim": {},
        "PersistentVolumeClaim tenant/lv": {"volume": "lv"},
        "PersistentVolume lv": {"claim": "tenant/lv", "on": "ds06", "spec": {"local": {"path": "/d"}}},
        "Pod victim/db-0": {"metadata": {"finalizers": ["example.org/held"]}}});
    for number in 0..40 {
        state[format!("Pod tenant/wait-{number}")] =
            json!({"node": null, "grace": null, "phase": "Pending", "uses": "lv"});
        let note = json!({"pod-reaper.io/after-reap": format!("note {number}")});
        state[format!("Pod tenant/p-{number}")] = json!({"metadata": {"annotations": note}});
    }
    let run = reaper(&["--snapshot=-", "--now", NOW, "--log-level=off", "--all"]);
    let page = run
        .input(list(objects(&state)).to_string())
        .run()
        .exits(0)
        .out;
    let (_, now) = page.split_once("\nNOW").expect("steps");
    let (now, _) = now.split_once("\nNEVER").expect("what never to do");
    assert!(now.contains("victim/db-0 is held by finalizer"), "{page}");
    assert!(page.contains("more (names: --output=json)"), "{page}");
    assert_eq!(page.matches("note ").count(), 30, "{page}");
}

/// The policy of the page allows only its own script. A name that looks like markup is text all the same.
#[test]
fn a_name_that_looks_like_markup_shows_as_text() {
    let name = "\"'><img src=x onerror=alert(1)></code>";
    let page = audit_of(name, &["--output=html"]).run().exits(3).out;
    assert!(!page.contains("<img") && !page.contains("\"'"), "{page}");
    assert!(page.matches("onerror=alert(1)").count() > 4, "{page}");
}

/// A name that looks like a gap of a sentence is not filled.
#[test]
fn a_name_that_looks_like_a_gap_stays_as_it_is() {
    let name = "<pods>,<nodes>,<count>,<>";
    let report = audit_of(name, &["--output=json"]).run().exits(3).out;
    let held = format!("is held by finalizer \\\"{name}\\\", set by \\\"{name}\\\":");
    assert!(report.contains(&held), "{report}");
}

/// A fake kubectl, which records its arguments.
const KUBECTL: &str = r#"#!/bin/sh
for word in "$@"; do printf '[%s]' "$word" >>"$LOG"; done
"#;

/// The name of a context is one word to the shell, and no option of kubectl. An object's own name is a name.
#[tokio::test(start_paused = true)]
async fn every_name_is_one_word_to_the_shell() {
    for name in [
        "$(touch x)",
        "`touch x`",
        "a; touch x",
        "a && touch x",
        "a | tee x",
        "a > x",
        "it's",
        "a\"b",
        "a b",
        "*",
        "~",
        "$HOME",
        "#a",
        "!!",
        "a\\b",
        "${IFS}",
        "<(touch x)",
        "é",
        "%s",
        "--server=https://example.com",
        "../../profile",
    ] {
        let context = format!("--context={name}");
        let args = ["pod-reaper", "--dry-run", &context].map(Into::into);
        let settings = Settings::from(Cli::try_from_args(args).expect("options"));
        let held = json!({"Pod compute-hive01/held-0": {"metadata": {"finalizers": ["kueue.x-k8s.io/managed"]}}});
        let described = with(yaml(crate::SMALL), held);
        let state = Objects::new(NOW.parse().expect("a moment"), objects(&described));
        let server = Server::new(state);
        let (_signal, stop) = Stop::manual(settings.deadline);
        let cluster = Cluster::new(server.client(), stop.clone());
        let report = run_on(&cluster, &settings, false, &stop).await;
        let report = serde_json::to_value(report.expect("a report").report()).expect("JSON");
        let folder = tempfile::TempDir::new().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("kubectl"), KUBECTL).expect("a script");
        fs::set_permissions(at("kubectl"), fs::Permissions::from_mode(0o755))
            .expect("it can be run");
        fs::create_dir(at("work")).expect("a folder");
        let commands = all_commands(&report).collect_vec();
        assert!(!commands.is_empty(), "{name}");
        for command in commands {
            let path =
                std::env::join_paths([folder.path(), Path::new("/usr/bin"), Path::new("/bin")]);
            let mut shell = Command::new("/bin/sh");
            shell
                .args(["-c", command])
                .env_clear()
                .env("PATH", path.expect("a path"));
            shell.env("LOG", at("log")).current_dir(at("work"));
            let ended = shell.output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{command}");
        }
        let log = fs::read_to_string(at("log")).expect("a log");
        let option = if name.starts_with('-') {
            format!("[--context={name}]")
        } else {
            format!("[--context][{name}]")
        };
        assert!(log.contains(&option), "{name}: {log}");
        assert!(
            !log.contains(&format!("{name}.kubeconfig")),
            "{name}: {log}"
        );
        assert!(
            fs::read_dir(at("work")).expect("it").next().is_none(),
            "{name} was run"
        );
    }
}
