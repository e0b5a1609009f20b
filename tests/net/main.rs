//! The net: random clusters, changes and faults, run through the whole program against the simulated server, and judged by what the
//! server saw.
//!
//! Nothing here knows the program's types: the command line goes in, requests and the JSON report come out. The conditions are about
//! the objects, as the API shows them.
//!
//! Everything depends on a seed. `RANDOM_SEED` is the first seed and `RANDOM_CASES` the number of seeds; a failure prints the
//! command that repeats its case.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "figures are shown with --nocapture, and what repeats a failure"
)]

#[path = "../audit/mod.rs"]
mod audit;
mod cluster;
mod conditions;
mod history;
mod page;
mod run;
mod save;
mod watched;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    process::{Command, Stdio},
};

use jiff::{SignedDuration, Timestamp};
use pod_reaper_test_support::{
    samples::NOW,
    simulated::{Dice, Fault, Kind},
};
use serde_json::{Value, json};

use self::{
    history::Memory,
    run::{Plan, Ran, all_pods},
};

/// The seeds of a quick run. They are enough for each case that the tests ask for.
const FEW: u64 = 250;

/// Prints how to repeat the case of this seed, unless its check passed.
struct Repeats(u64);

impl Drop for Repeats {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (seed, thread) = (self.0, std::thread::current());
            let test = thread.name().unwrap_or_default();
            eprintln!(
                "repeat it with: RANDOM_SEED={seed} RANDOM_CASES=1 cargo test --test net {test}"
            );
        }
    }
}

/// Checks as many seeds as the environment says. Returns whether they are enough to include every case.
fn for_every_seed(mut check: impl FnMut(u64)) -> bool {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = number("RANDOM_SEED").unwrap_or_default();
    let many = number("RANDOM_CASES").unwrap_or(FEW);
    for seed in first..first + many {
        let repeats = Repeats(seed);
        check(repeats.0);
    }
    many >= FEW
}

/// Fails with everything that is wrong about the run.
fn hold(ran: &Ran) {
    let wrongs = ran.wrongs();
    assert!(
        wrongs.is_empty(),
        "{wrongs:#?}\nargs: {:?}\nrequests: {:#?}\ncluster: {}",
        ran.args,
        ran.trace,
        serde_json::to_string_pretty(&ran.before.objects).unwrap()
    );
}

/// Whatever fails or changes, every write is one that the rules allow, and the report says what happened.
#[test]
fn no_write_is_one_that_the_server_should_not_have_seen() {
    let (mut writes, mut outcomes, mut exits) = (0, BTreeMap::new(), BTreeMap::new());
    let (mut faults, mut changes) = (BTreeSet::new(), BTreeSet::new());
    let enough = for_every_seed(|seed| {
        let ran = Plan::disturbed(seed).remembers_anything(seed).run();
        hold(&ran);
        writes += ran.writes.len();
        faults.extend(ran.faults.clone());
        changes.extend(ran.changes.clone());
        *exits.entry(ran.exit()).or_insert(0) += 1;
        for pod in ran.pods() {
            if let Some(outcome) = pod["outcome"].as_str() {
                *outcomes.entry(outcome.to_owned()).or_insert(0) += 1;
            }
        }
    });
    println!(
        "{writes} writes; outcomes {outcomes:?}; exit codes {exits:?}; faults {faults:?}; changes {changes:?}"
    );
    if enough {
        assert!(faults.len() >= Fault::COUNT - 1, "{faults:?}");
        assert_eq!(changes.len(), watched::CHANGES, "{changes:?}");
        assert_eq!(exits.len(), 5, "{exits:?}");
        for outcome in [
            "changed",
            "deleted",
            "denied",
            "failed",
            "gone",
            "interrupted",
            "node-changed",
            "node-recovered",
            "still-there",
        ] {
            assert!(outcomes.contains_key(outcome), "{outcome}: {outcomes:?}");
        }
    }
}

/// Nothing stays that should go: without faults, every pod that the plain conditions call free is deleted.
#[test]
fn a_pod_that_plain_conditions_call_free_is_deleted() {
    let (mut free, mut kept) = (0, BTreeMap::new());
    let enough = for_every_seed(|seed| {
        let ran = Plan::calm(seed).run();
        hold(&ran);
        free += ran.free().len();
        for pod in ran.pods() {
            let reason = pod["reason"].as_str().unwrap_or("not judged").to_owned();
            *kept.entry(reason).or_insert(0) += 1;
        }
        let wrongs = ran.not_deleted();
        assert!(
            wrongs.is_empty(),
            "{wrongs:#?}\nargs: {:?}\nreport: {:#}",
            ran.args,
            ran.report.as_ref().unwrap()
        );
    });
    println!("{free} free pods; reasons {kept:?}");
    if enough {
        assert!(free > 100, "only {free} pods are free");
        let reasons = [
            "etcd-member",
            "facts-unread",
            "failed-together",
            "finalizers",
            "host-path",
            "kosmos-leaf",
            "kubelet-alive",
            "leaf-node",
            "local-volume",
            "mass-outage",
            "mirror-pod",
            "no-room",
            "node-just-failed",
            "node-ready",
            "not-overdue",
            "opted-out",
            "over-cap",
            "owner-kind",
            "shared-disk",
            "stuck-on-not-ready-node",
            "virtual-node",
            "volume-unverified",
        ];
        let missing = reasons
            .into_iter()
            .filter(|reason| !kept.contains_key(*reason) && *reason != "facts-unread");
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<&str>::new(), "{kept:?}");
    }
}

/// Making reads fail never adds a write. The pods written to in a run with faults are among those of the run without.
#[test]
fn a_failing_read_never_adds_a_write() {
    let (mut compared, mut lost) = (0, 0);
    let enough = for_every_seed(|seed| {
        let calm = Plan::calm(seed);
        if calm.has_cap() {
            // A pod that could not be read leaves its place under the cap to another one.
            return;
        }
        let faulty = calm.clone().with_faults(seed).run();
        // Leases that the account may not list count as none (docs/security.md). So such a run is compared with another one of the same
        // account.
        let calm = if faulty.may_not_list_leases {
            calm.without_leases().run()
        } else {
            calm.run()
        };
        hold(&faulty);
        // A slow run judges later, so more pods may be stuck.
        if faulty.judged_at() != calm.judged_at() {
            return;
        }
        compared += 1;
        let added = faulty
            .written()
            .difference(&calm.written())
            .cloned()
            .collect::<Vec<_>>();
        assert!(
            added.is_empty(),
            "{added:?} were only written to because of {:?}\nargs: {:?}\n{:#?}",
            faulty.faults,
            faulty.args,
            faulty.trace
        );
        lost += usize::from(faulty.written() != calm.written());
    });
    println!("{compared} runs compared; in {lost} of them a fault kept a pod");
    if enough {
        assert!(lost > 10, "only {lost}");
    }
}

/// Whatever the history says, and whatever fails about it, the same pods are judged, deleted and reported alike. It can only add
/// words, and exit code 5.
#[test]
fn a_history_changes_no_verdict_and_no_delete() {
    const POWER_OFF: [&str; 5] = [
        "power ",
        "powered off",
        "turn off",
        "reset it",
        "reset what",
    ];
    let (mut deleted, mut remembered, mut unread) = (0, 0, 0);
    let enough = for_every_seed(|seed| {
        let any = Plan::calm(seed).remembers_anything(seed).run();
        hold(&any);
        let none = Plan::calm(seed).remembers(Memory::default()).run();
        assert_eq!(any.outcomes(), none.outcomes(), "{:#?}", any.trace);
        assert_eq!(any.written(), none.written(), "{:#?}", any.trace);
        let [any_says, none_says] = [&any, &none].map(|ran| {
            // That is a warning, and no order.
            let said = ran.said.to_lowercase().replace("before you power", "");
            POWER_OFF.iter().any(|words| said.contains(words))
        });
        assert!(none_says || !any_says, "{}", any.said);
        let exits = (none.exit(), any.exit());
        assert!(exits.0 == exits.1 || exits.1 == 5, "{exits:?}");
        let in_file = [Plan::calm(seed).remembers_anything(seed), Plan::calm(seed)];
        let [in_file, no_file] = in_file.map(|plan| plan.audit());
        assert_eq!(in_file, no_file);
        let report = any.report.as_ref().unwrap();
        let said = report["history"].to_string();
        // serde_json escapes them.
        assert!(!said.contains("\\u00"), "{said}");
        deleted += any.written().len();
        remembered += report["history"]["nodes"].as_array().unwrap().len();
        unread += usize::from(report["history"]["unread"].is_string());
        assert_eq!(report["errors"], none.report.as_ref().unwrap()["errors"]);
    });
    println!("{deleted} deleted; {remembered} nodes remembered; {unread} histories with a fault");
    if enough {
        assert!(deleted > 100 && remembered > 50 && unread > 50);
    }
}

/// A node is noted before the first delete, and every pod that a delete removed after it, also if no response said so. What could not be
/// noted is said.
#[test]
fn whatever_is_deleted_is_noted() {
    let (mut noted, mut by_lost_responses, mut unnoted) = (0, 0, 0);
    let enough = for_every_seed(|seed| {
        let calm = Plan::calm(seed);
        for (ran, is_calm) in [
            (calm.clone().run(), true),
            (calm.with_faults(seed).run(), false),
        ] {
            let removed = ran.nodes_of_removed();
            let report = ran.report.as_ref().ok();
            let is_said = report.is_some_and(|report| report["history"]["unread"].is_string());
            // Such a server says that it wrote the note, and did not.
            let is_lie = |sent: &String| sent.contains("-history?") && sent.ends_with("NoEffect");
            if is_said && !is_calm || ran.trace.iter().any(is_lie) {
                unnoted += removed.len();
                continue;
            }
            for (node, pods) in removed {
                noted += pods.len();
                by_lost_responses += pods.len() * usize::from(!is_calm);
                // With faults, it may not be known which machines share a boot ID.
                let wrong = history::wrong_note(&ran.after, node, &pods, is_calm);
                assert_eq!(wrong, None, "{} {:#?}", node["metadata"]["name"], ran.trace);
            }
            let first = |verb: &str| ran.trace.iter().position(|sent| sent.contains(verb));
            if let Some(delete) = first(": DELETE ").filter(|_| is_calm) {
                assert!(first("configmaps/pod-reaper-history?fieldManager").unwrap() < delete);
                let report = &ran.after.history().unwrap()["data"]["last-report"];
                let mut writes = ran.writes.iter();
                assert_eq!(
                    report.is_string(),
                    writes.any(|write| write.kind == Kind::Delete)
                );
            }
        }
    });
    println!(
        "{noted} pods noted, {by_lost_responses} of them with faults; {unnoted} nodes said not to be noted"
    );
    assert!(
        !enough || noted > 100 && by_lost_responses > 50,
        "{noted} {by_lost_responses}"
    );
}

/// No delete depends on what is foreseen. A pod that is opted out is not foreseen, and nothing more is read for it: without
/// foresight, the other pods are judged, deleted and reported alike.
#[test]
fn foresight_changes_no_verdict_and_no_delete() {
    let (mut foreseen, mut deleted) = (0, 0);
    let enough = for_every_seed(|seed| {
        let mut plan = Plan::calm(seed);
        let with = plan.clone().run();
        hold(&with);
        let report = with.report.as_ref().unwrap();
        let pods = all_pods(report).filter(|pod| !pod["foreseen"].is_null());
        let uids = pods.map(|pod| pod["uid"].as_str().unwrap());
        let uids = uids.collect::<BTreeSet<_>>();
        for uid in &uids {
            assert!(!with.written().contains(*uid), "{uid} is only foreseen");
            plan.change_pod(uid, |pod| {
                pod["metadata"]["annotations"]["pod-reaper.io/skip"] = json!("true");
            });
        }
        let without = plan.run();
        assert_eq!(with.written(), without.written(), "{:#?}", with.trace);
        let [with, without] = [&with, &without].map(|ran| {
            let mut outcomes = ran.outcomes();
            outcomes.retain(|uid, _| !uids.contains(uid));
            outcomes
        });
        assert_eq!(with, without);
        foreseen += uids.len();
        deleted += with.values().filter(|it| it[2] == "deleted").count();
    });
    println!("{foreseen} pods foreseen; {deleted} deleted beside them");
    assert!(!enough || foreseen > 100 && deleted > 100);
}

/// What is foreseen comes true, if nothing else changes.
#[test]
fn what_is_foreseen_comes_true() {
    let mut reasons = BTreeMap::new();
    let enough = for_every_seed(|seed| {
        let plan = Plan::calm(seed);
        let report = plan.audit_at(NOW);
        for pod in all_pods(&report).filter(|pod| !pod["foreseen"].is_null()) {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let (uid, foreseen) = (text(&pod["uid"]), &pod["foreseen"]);
            let code = foreseen["limit"].as_str();
            let code = code.unwrap_or(foreseen["reason"].as_str().unwrap());
            let mut plan = plan.clone();
            if pod["verdict"].is_null() {
                let times = ["deletionRequested", "deletionDeadline"];
                let times = times.map(|it| text(&pod[it]).parse::<Timestamp>().unwrap());
                plan.change_pod(&uid, |changed| {
                    let grace = times[1].duration_since(times[0]).as_secs();
                    changed["metadata"]["deletionTimestamp"] = pod["deletionDeadline"].clone();
                    changed["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
                });
            }
            let then = plan.audit_at(&text(&foreseen["at"]));
            let then = all_pods(&then).find(|it| it["uid"] == *uid).unwrap();
            // A machine that was heard a moment ago will be heard again. The cap is for pods that are due. Marks are
            // those of now, and of a machine that shows a sign of life there are none.
            // Limits are those of now.
            let is_assumed = code == "kubelet-alive"
                || !foreseen["limit"].is_null()
                || then["reason"] == "over-cap"
                || code == "shared-disk" && then["verdict"] == "reap";
            let is_true = then["reason"] == code && then["verdict"] == foreseen["verdict"];
            assert!(is_true || is_assumed, "{pod:#} {then:#}");
            *reasons.entry(code.to_owned()).or_insert(0) += 1;
        }
    });
    println!("foreseen: {reasons:?}");
    assert!(!enough || reasons.len() > 8, "{reasons:?}");
}

/// A run deletes a pod, a volume of which two machines can then write to. A page from after the request of its deletion has named the pod,
/// and has said under NOW by when its node is to be looked at, unless more than time kept the pod.
#[test]
fn a_page_comes_before_a_volume_moves() {
    let mut warned = 0;
    let enough = for_every_seed(|seed| {
        let plan = Plan::calm(seed);
        let run = plan.audit_at(NOW);
        let moving = all_pods(&run).filter(|pod| pod["verdict"] == "reap");
        for pod in moving.filter(|pod| page::moves_a_volume(pod, &plan.state())) {
            let mut plan = plan.clone();
            plan.change_pod(pod["uid"].as_str().unwrap(), |pod| {
                pod["metadata"]["deletionTimestamp"] = json!(NOW);
                pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
            });
            let threshold = run["settings"]["reapOlderThanSeconds"].as_i64().unwrap();
            let later = NOW.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(threshold);
            let [page, run] = [NOW, &later.to_string()].map(|now| plan.audit_at(now));
            let [then, now] = [&page, &run].map(|report| {
                let mut pods = all_pods(report);
                pods.find(|it| it["uid"] == pod["uid"]).unwrap()
            });
            let mut nodes = page["nodes"].as_array().unwrap().iter();
            let node = nodes.find(|node| node["name"] == pod["node"]).unwrap();
            let is_kept = then["reason"] != "not-overdue"
                || !then["foreseen"]["limit"].is_null()
                || node["signsOfLife"] != json!([]);
            if now["verdict"] == "reap" && !is_kept {
                let lacks = page::lacks_a_warning(&page, pod);
                let said = format!("{then:#}\n{:#}\n{:#}", page["data"], page["steps"]);
                assert_eq!(lacks, None, "{said}");
                warned += 1;
            }
        }
    });
    println!("{warned} pods, each with a page before its delete");
    assert!(!enough || warned > 10, "{warned}");
}

/// A file of the same state gives the same plan.
#[test]
fn a_file_of_the_same_state_gives_the_same_plan() {
    let mut pods = 0;
    for_every_seed(|seed| {
        let plan = Plan::calm(seed).only_reads();
        if plan.has_cap() {
            // A pod whose PVC the file lacks leaves its place under the cap to another one.
            return;
        }
        let ran = plan.clone().run();
        let file = plan.audit();
        let mut live = ran.verdicts();
        pods += live.len();
        // In a file, a PVC that is not there may not have been saved.
        live.retain(|uid, _| !ran.lacks_a_claim(uid));
        // Without --all, a run does not look for pods without a node, or on a Ready one. A file shows them.
        let file = file
            .into_iter()
            .filter(|(uid, _)| live.contains_key(uid) || ran.is_on_a_failed_node(uid))
            .filter(|(uid, _)| !ran.lacks_a_claim(uid))
            .collect::<BTreeMap<_, _>>();
        assert_eq!(
            live,
            file,
            "args: {:?}\n{}",
            ran.args,
            serde_json::to_string_pretty(&ran.before.objects).unwrap()
        );
    });
    println!("{pods} pods judged alike");
}

/// An audit of a saved cluster says what a dry run of the cluster says, but for where it looked.
#[test]
fn an_audit_of_a_saved_cluster_is_its_dry_run() {
    let mut pods = 0;
    for_every_seed(|seed| {
        let plan = Plan::calm(seed).only_reads().looks_at_all();
        let plan = plan.remembers_anything(seed);
        let mut live = plan.clone().run().report.unwrap();
        let mut file = plan.save_and_audit();
        pods += all_pods(&live).count();
        for report in [&mut live, &mut file] {
            for key in ["mode", "cluster", "snapshot"] {
                report[key] = Value::Null;
            }
            // An audit deletes nothing, so there is no outcome.
            report["summary"]["outcomes"] = Value::Null;
            for pod in report["pods"].as_array_mut().unwrap() {
                pod["outcome"] = Value::Null;
                pod["outcomeDetail"] = Value::Null;
            }
            // Only a file shows what pods own.
            for list in ["pods", "notEvicted"] {
                for pod in report[list].as_array_mut().unwrap() {
                    pod["ownedPods"] = Value::Null;
                }
            }
            // Of few nodes, only a file shows what they have in common.
            report["held"] = json!(report["held"].as_array().map(Vec::len));
            // The cause also says that the file lacks it.
            let unread = report["history"]["unread"].take();
            report["history"]["unread"] = json!(unread.is_string());
            let notices = report["notices"].as_array_mut().unwrap();
            notices.retain(|notice| *notice != unread);
        }
        let keys = live.as_object().unwrap().keys();
        let different = keys.filter(|key| live[*key] != file[*key]);
        let different = different.map(|key| format!("{key}: {}\n{}", live[key], file[key]));
        assert_eq!(
            different.collect::<Vec<_>>(),
            Vec::<String>::new(),
            "{:?}",
            plan.args
        );
    });
    println!("{pods} pods reported alike");
}

/// If reads fail while a cluster is saved, an audit of the file reaps only pods that a run without failures does.
#[test]
fn a_read_that_fails_in_save_adds_no_reap() {
    let (mut audited, mut lost) = (0, 0);
    let enough = for_every_seed(|seed| {
        let plan = Plan::calm(seed).only_reads().looks_at_all();
        if plan.has_cap() {
            // A pod that could not be read leaves its place under the cap to another one.
            return;
        }
        let reaped = |report: &Value| {
            let reaps = all_pods(report).filter(|pod| pod["verdict"] == "reap");
            reaps
                .map(|pod| pod["uid"].to_string())
                .collect::<BTreeSet<_>>()
        };
        let calm = reaped(&plan.clone().run().report.unwrap());
        let Some(faulty) = plan.save_with_faults_and_audit(seed) else {
            return;
        };
        let faulty = reaped(&faulty);
        let added = faulty.difference(&calm).collect::<Vec<_>>();
        assert!(added.is_empty(), "{added:?} {:?}", plan.args);
        audited += 1;
        lost += usize::from(faulty != calm);
    });
    println!("{audited} files audited; in {lost} of them a fault kept a pod");
    assert!(!enough || audited > 50 && lost > 10, "{audited} {lost}");
}

/// The columns of a terminal that shows a log.
const TERMINAL: usize = 80;

/// A command of ours, with blanks that are no spaces, letters that nobody sees, those that steer a terminal, and one that looks
/// like a quotation mark.
const ZEBRA: &str = "kubectl\u{2800}delete\u{3164}namespace zebra\u{202e} --wait=false kubectl delete namespace zebra \
    --wait=false\u{2033}\u{9b}2K\u{7f} kubectl delete\u{301} namespace zebra --wait=false                    kubectl delete namespace zebra --all";

/// What others wrote stands in quotation marks on each line, also where a terminal breaks one, and shows all that it has: in the text, which is also that of the
/// question before the deletes, and in `explain`. A line that begins as a command is a command of the JSON, which has no
/// letter that a terminal obeys.
#[test]
fn nobody_else_speaks_in_a_report() {
    let mut quoted = 0;
    let enough = for_every_seed(|seed| {
        if seed % 5 != 0 {
            return;
        }
        let (file, pod) = Plan::calm(seed).says(ZEBRA).saved();
        let whole = vec!["--all".to_owned()];
        let explained = pod.map(|pod| vec!["explain".to_owned(), pod]);
        for args in [Some(whole), explained].into_iter().flatten() {
            let [text, json] = ["text", "json"].map(|output| {
                let mut program = Command::new(env!("CARGO_BIN_EXE_pod-reaper"));
                program
                    .args(&args)
                    .args(["--snapshot=-", "--output", output]);
                program.arg(format!("--now={NOW}")).env_clear();
                program
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null());
                let mut child = program.spawn().unwrap();
                let mut input = child.stdin.take().unwrap();
                input.write_all(file.as_bytes()).unwrap();
                drop(input);
                String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
            });
            let hidden = |letter: char| {
                letter != ' ' && !letter.is_ascii_graphic() && ZEBRA.contains(letter)
            };
            assert!(
                !text.contains(hidden) && !json.contains(hidden),
                "{text}{json}"
            );
            for line in text.lines().map(str::trim) {
                let own = line.split('"').step_by(2).collect::<String>();
                let is_printed = || json.contains(&serde_json::json!(line).to_string());
                let speaks = own.contains("zebra") || line.starts_with("kubectl ");
                assert!(!speaks || is_printed(), "{line}\n{text}");
                assert!(
                    is_printed() || line.matches('"').count() % 2 == 0,
                    "{line}\n{text}"
                );
                quoted += usize::from(line.contains("zebra"));
            }
            for line in text.lines() {
                let is_printed = json.contains(&serde_json::json!(line.trim()).to_string());
                let letters = line.chars().collect::<Vec<_>>();
                let rows = (TERMINAL..letters.len()).step_by(TERMINAL);
                for row in rows.filter(|_| !is_printed) {
                    let marks = letters[..row].iter().filter(|it| **it == '"');
                    let is_quoted = marks.count() % 2 == 1 && letters[row] != '"';
                    assert!(!is_quoted, "{line}\n{text}");
                }
            }
        }
    });
    println!("{quoted} lines quote somebody");
    assert!(!enough || quoted > 50, "{quoted}");
}

/// Returns the random choices of a seed, apart from others of the same seed.
fn dice(seed: u64, apart: u64) -> Dice {
    Dice::new(seed.wrapping_mul(16).wrapping_add(apart))
}
