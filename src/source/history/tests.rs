//! Runs that remember, on the simulated server.

use std::time::Duration;

use pod_reaper_test_support::simulated::{Fate, Fault, Kind, Request};
use serde_json::{Value, json};

use crate::reap::tests::{Ran, START, calm, ran};

/// The data of the stuck pod is on the disk of `ds06`, so it waits for the machine, if nothing else is known.
const LOCAL: &str = "
    Node ds04: {ready: 'True'}
    StatefulSet shop/db: {apiVersion: apps/v1, spec: {replicas: 1}}
    Pod shop/db-0: {uses: data}
    PersistentVolume pv-1: {claim: shop/data, on: ds06}
";
const SEE_OFF: &str = "RESET ds06, unless it is off";

/// The note of a node, of which a pod was deleted twenty minutes ago, with more fields.
fn note(node: &str, more: &Value) -> Value {
    let at = "2026-01-31T02:40:00Z";
    let pod = json!({"namespace": "git", "name": "gitea-0", "ownerKind": "StatefulSet", "attached": true, "at": at});
    let mut note = json!({"version": 1, "node": node, "bootID": "boot-1", "firstReap": at, "lastReap": at,
        "pods": [pod], "more": 0, "told": null});
    for (field, value) in more.as_object().expect("fields") {
        note[field] = value.clone();
    }
    note
}

/// A cluster in words, with these entries of the history.
fn with_history(cluster: &str, data: &Value) -> String {
    let history = json!({ "data": data });
    format!("{cluster}    ConfigMap pod-reaper/pod-reaper-history: {history}\n")
}

/// All steps of the report.
fn steps(ran: &Ran) -> String {
    let report = ran.report.as_ref().expect("a report");
    let pods = report["pods"].as_array().expect("pods").iter();
    let all = pods.chain([report]).map(|it| it["steps"].to_string());
    all.collect()
}

/// Reports whether a step lets somebody wait for the machine.
fn waits(steps: &str) -> bool {
    let words = ["Look at the console of ds06", "Bring ds06 back"];
    words.iter().any(|words| steps.contains(words))
}

fn history(ran: &Ran) -> &Value {
    &ran.report.as_ref().expect("a report")["history"]
}

/// Each read fails alone: a node that is slow or refused hides neither what is known of others, nor its own note.
#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_read_hides_no_note() {
    let data = json!({"uid-ds04": note("ds04", &json!({})).to_string(), "uid-ds06": note("ds06", &json!({})).to_string()});
    let cluster = with_history(LOCAL, &data);
    for (fault, seconds) in [
        (None, 12),
        (Some(Fault::Hangs(false)), 0),
        (Some(Fault::Status(403, false, false)), 0),
    ] {
        let mut reads = 0;
        // Its first reading is for the clock.
        let fate = move |request: &Request| {
            let is_it = request.kind == Kind::Node && request.name == "ds04";
            reads += usize::from(is_it);
            let fails = is_it && reads > 1;
            Fate {
                fault: fault.filter(|_| fails),
                back: Duration::from_secs(if fails { seconds } else { 0 }),
                ..Fate::default()
            }
        };
        let ran = ran("--dry-run", &cluster, ("{}", START), fate).await;
        let steps = steps(&ran);
        assert!(steps.contains(SEE_OFF) && !waits(&steps), "{steps}");
        let nodes = history(&ran)["nodes"].as_array().expect("nodes");
        let states = nodes.iter().map(|node| {
            let unread = node["unread"].is_string();
            (node["node"].as_str(), node["state"].as_str(), unread)
        });
        let states = states.collect::<Vec<_>>();
        let expected = [
            (Some("ds04"), Some("unread"), true),
            (Some("ds06"), Some("down"), false),
        ];
        assert_eq!(states, expected, "{fault:?} {seconds}");
    }
}

/// Without a history, or an entry, nothing is remembered. One that could not be read may say anything: nobody waits for the machine.
#[tokio::test(start_paused = true)]
async fn an_unread_history_never_lets_anybody_wait() {
    let entry = |text: &str| with_history(LOCAL, &json!({ "uid-ds06": text }));
    let newer = note("ds06", &json!({"version": 2})).to_string();
    let large = "x".repeat(70_000);
    let empty = with_history(LOCAL, &json!({}));
    let other = with_history(LOCAL, &json!({ "uid-ds09": "{}" }));
    for (cluster, fault, is_known) in [
        (LOCAL, None, true),
        (&empty, None, true),
        (&other, None, true),
        (&entry("{}"), None, false),
        (&entry(&newer), None, false),
        (&entry(&large), None, false),
        (&empty, Some(Fault::Status(401, false, false)), false),
        (&empty, Some(Fault::Status(403, false, false)), false),
        (&empty, Some(Fault::Status(404, true, false)), false),
        (&empty, Some(Fault::Status(500, false, false)), false),
        (&empty, Some(Fault::Hangs(false)), false),
        (&empty, Some(Fault::Empty), false),
        (&empty, Some(Fault::Malformed), false),
    ] {
        let fate = move |request: &Request| Fate {
            fault: fault.filter(|_| request.kind == Kind::History),
            ..Fate::default()
        };
        let from = (Kind::History, 1);
        let ran = ran("--dry-run", cluster, ("{}", from), fate).await;
        let steps = steps(&ran);
        let said = (waits(&steps), steps.contains(SEE_OFF));
        let case = &cluster[cluster.len() - 80..];
        assert_eq!(said, (is_known, !is_known), "{fault:?} {case} {steps}");
        let is_said = history(&ran)["unread"].is_string();
        assert_eq!(is_said, !is_known || cluster == other, "{fault:?} {case}");
    }
}

/// A run that ended early has not noted what it deleted: it may have had volumes. A time in the future is none.
#[tokio::test(start_paused = true)]
async fn a_note_without_pods_or_of_the_future_lets_nobody_wait() {
    let future = "2126-01-31T02:40:00Z";
    for more in [
        json!({"pods": []}),
        json!({"pods": [], "more": 3}),
        json!({"lastReap": future}),
    ] {
        let text = note("ds06", &more).to_string();
        let cluster = with_history(LOCAL, &json!({ "uid-ds06": text }));
        let ran = ran("--yes", &cluster, ("{}", START), calm).await;
        let steps = steps(&ran);
        assert!(steps.contains(SEE_OFF) && !waits(&steps), "{more} {steps}");
        let noted = ran.note()["lastReap"].clone();
        let expected = more.get("lastReap").map_or("2026-01-31T02:40:00Z", |_| {
            pod_reaper_test_support::samples::NOW
        });
        assert_eq!(noted, expected);
    }
}

/// The row says what was noted of a node, which node has the name now, and what that shows.
#[tokio::test(start_paused = true)]
async fn a_machine_is_told_from_another_one_of_its_name() {
    let noted = json!({"machineID": "m1", "systemUUID": "s1"});
    let of_0_6 = json!({});
    let no_boot = json!({"bootID": "", "machineID": "m1", "systemUUID": "s1"});
    for (noted, uid, ids, ready, state) in [
        (
            &noted,
            "uid-ds04",
            ["boot-1", "m1", "s1"],
            "'True'",
            "back-same-boot",
        ),
        (
            &noted,
            "uid-ds04",
            ["boot-2", "m1", "s1"],
            "'True'",
            "back-rebooted",
        ),
        (
            &noted,
            "uid-ds04",
            ["boot-2", "m2", "s1"],
            "'True'",
            "another-machine",
        ),
        (
            &noted,
            "uid-ds04",
            ["boot-2", "m1", "s2"],
            "'True'",
            "another-machine",
        ),
        (
            &noted,
            "uid-ds04",
            ["boot-2", "m2", "s2"],
            "Unknown",
            "another-machine",
        ),
        // The same boot is the same machine, whatever else its system says.
        (
            &noted,
            "uid-ds04",
            ["boot-1", "m2", "s1"],
            "'True'",
            "back-same-boot",
        ),
        (
            &noted,
            "anew",
            ["boot-1", "m1", "s1"],
            "'True'",
            "back-same-boot",
        ),
        (
            &noted,
            "anew",
            ["boot-2", "m1", "s1"],
            "'True'",
            "back-rebooted",
        ),
        (
            &noted,
            "anew",
            ["boot-2", "m2", "s2"],
            "'True'",
            "another-machine",
        ),
        (&noted, "anew", ["boot-1", "m1", "s1"], "Unknown", "down"),
        (
            &noted,
            "anew",
            ["boot-2", "", ""],
            "'True'",
            "back-rebooted",
        ),
        (
            &no_boot,
            "anew",
            ["boot-2", "m1", "s1"],
            "'True'",
            "unknown",
        ),
        (
            &of_0_6,
            "uid-ds04",
            ["boot-2", "m2", "s2"],
            "'True'",
            "back-rebooted",
        ),
        (
            &of_0_6,
            "anew",
            ["boot-1", "m1", "s1"],
            "'True'",
            "back-same-boot",
        ),
        (&of_0_6, "anew", ["boot-2", "m1", "s1"], "'True'", "unknown"),
    ] {
        let [boot, machine, system] = ids;
        let info = json!({"bootID": boot, "machineID": machine, "systemUUID": system});
        let node = format!(
            "    Node ds04: {{ready: {ready}, metadata: {{uid: {uid}}}, status: {{nodeInfo: {info}}}}}\n"
        );
        let text = note("ds04", noted).to_string();
        let cluster = with_history(&node, &json!({ "uid-ds04": text }));
        let ran = ran("--yes --exit-on-manual", &cluster, ("{}", START), calm).await;
        let case = format!("{noted} {uid} {ids:?} {ready}");
        assert_eq!(history(&ran)["nodes"][0]["state"], state, "{case}");
        let rings = ["back-same-boot", "another-machine", "down"].contains(&state);
        let exit = ran.report.as_ref().unwrap()["exitCode"].as_u64();
        assert_eq!(exit, Some(if rings { 5 } else { 0 }), "{case}");
        assert_eq!(ran.events.len(), usize::from(rings), "{case}");
    }
    let cluster = with_history("", &json!({"uid-ds04": note("ds04", &noted).to_string()}));
    let ran = ran("--yes", &cluster, ("{}", START), calm).await;
    assert_eq!(history(&ran)["nodes"][0]["state"], "gone");
}
