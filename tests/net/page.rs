//! What holds of every report, whatever the run did and whatever failed.

use std::collections::BTreeSet;

use pod_reaper_test_support::simulated::{Kind, Objects};
use serde_json::Value;

use crate::{
    conditions::{find, text},
    watched::Write,
};

/// The most steps of a page.
const STEPS: usize = 12;
/// How much of a step is looked for: the text cuts long ones.
const BEGINNING: usize = 40;

/// Lists everything that should not be in the text, in the JSON, or in both together.
pub fn wrongs(report: &Value, said: &str, before: &Objects, writes: &[Write]) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let steps = list(&report["steps"]);
    let mut wrongs = Vec::new();
    let mut wrong = |what: &str, detail: &str| wrongs.push(format!("{what}: {detail}\n{said}"));

    // Each pod with an outcome, or of which something is foreseen, is in the text, by its whole name.
    let not_evicted = list(&report["notEvicted"]).into_iter();
    for pod in list(&report["pods"]).into_iter().chain(not_evicted) {
        let name = text(&pod["name"]).to_owned();
        let is_named = || said.split([' ', ',', '/', '\n']).any(|word| word == name);
        // Pods that wait for more than time are counted.
        let is_foreseen = !["", "wait"].contains(&text(&pod["foreseen"]["verdict"]));
        let is_told = !pod["outcome"].is_null() || is_foreseen;
        if is_told && !is_named() {
            wrong("a pod is not in the text", &name);
        }
    }

    // What cannot wait stands under NOW, everything once, and no more than fits.
    if steps.len() > STEPS {
        wrong("too many steps", &steps.len().to_string());
    }
    let mut seen = BTreeSet::new();
    for step in &steps {
        let what = words(text(&step["what"]));
        if !seen.insert(what.clone()) {
            wrong("a step stands there twice", &what);
        }
        let begins = what.chars().take(BEGINNING).collect::<String>();
        let stands = ["NOW", "CAN WAIT"].map(|heading| section(said, heading).contains(&begins));
        let is_now = step["when"] == "now";
        // Notes of several nodes of one name begin alike, and may have been told or not.
        let alike = |other: &&Value| words(text(&other["what"])).starts_with(&begins);
        let is_alone = steps.iter().filter(alike).count() == 1;
        if is_alone && stands != [is_now, !is_now] {
            wrong("a step stands under the wrong heading", &what);
        }
    }

    // The commands of the text are those of the JSON.
    let printed = said.lines().map(str::trim_start);
    let programs = ["kubectl ", "echo ", "journalctl ", "systemctl ", "grep -"];
    let printed = printed.filter(|line| programs.iter().any(|it| line.starts_with(it)));
    let printed = printed.collect::<BTreeSet<_>>();
    let cases = steps.iter().flat_map(|step| list(&step["cases"]));
    let of_cases = cases.flat_map(|case| list(&case["commands"]));
    let commands = steps.iter().map(|step| step["command"].clone());
    let commands = commands.chain(of_cases).collect::<Vec<_>>();
    let commands = commands.iter().filter_map(Value::as_str);
    let commands = commands.collect::<BTreeSet<_>>();
    if printed != commands {
        wrong("other commands", &format!("{printed:?} {commands:?}"));
    }

    // Nothing calms down about a node to which a DELETE went, or of which something was not read.
    // A webhook that refuses does so with 500.
    let is_denied = |uid: &str| {
        let mut pods = list(&report["pods"]).into_iter();
        pods.any(|pod| pod["uid"] == uid && pod["outcome"] == "denied")
    };
    let touched = writes.iter().filter(|write| {
        let is_open = write
            .answered
            .is_none_or(|code| !(300..500).contains(&code));
        let may_have_effect = is_open && !is_denied(&write.uid);
        write.kind == Kind::Delete && (write.removed || may_have_effect)
    });
    let touched = touched.filter_map(|write| node_of(before, &write.uid));
    let touched = touched.collect::<BTreeSet<_>>();
    let unread = report["history"]["unread"].as_str().unwrap_or_default();
    let history_is_unread = unread.starts_with("What earlier runs deleted is not known");
    let is_doubtful = |node: &str| history_is_unread || touched.contains(node);
    for none in list(&report["data"]) {
        let Some(names) = text(&none).strip_prefix("None on ") else {
            continue;
        };
        let names = names.split(['.', ',', ' ']).filter(|name| !name.is_empty());
        for name in names.filter(|name| is_doubtful(name)) {
            wrong("None is said of a node of which that is not known", name);
        }
        let attachments = list(&report["errors"]);
        if attachments
            .iter()
            .any(|it| it["what"] == "VolumeAttachments")
            && section(said, "DATA").contains("Not known: the VolumeAttachments")
        {
            wrong(
                "None is said although attachments were not read",
                text(&none),
            );
        }
    }
    let nodes_of = |step: &Value| {
        let nodes = list(&step["nodes"]).into_iter();
        nodes
            .map(|node| text(&node).to_owned())
            .collect::<BTreeSet<_>>()
    };
    // Whoever looks at a machine of which that is not known powers it off, if it runs.
    let looks = |step: &&Value| {
        let mut cases = list(&step["cases"]).into_iter();
        text(&step["what"]).starts_with("Look at") && cases.any(|case| case["found"] == "Boots")
    };
    if history_is_unread && let Some(step) = steps.iter().find(looks) {
        wrong(
            "a machine may be left on of which that is not known",
            text(&step["what"]),
        );
    }
    let calms = ["The steps below can wait", "NOTHING IS URGENT"];
    let is_calm = calms.iter().any(|calm| words(said).contains(calm));
    // No other pod writes to the volume of a leftover.
    let restarts = section(said, "RESTART ELSEWHERE");
    let starts_again = |write: &&Write| {
        let mut pods = list(&report["pods"]).into_iter();
        let pod = pods.find(|pod| pod["uid"] == write.uid).unwrap_or_default();
        restarts
            .split([' ', ','])
            .any(|word| word == text(&pod["name"]))
    };
    let moving = writes
        .iter()
        .filter(starts_again)
        .filter(|write| has_attached(before, &write.uid));
    let moving = moving.filter_map(|write| node_of(before, &write.uid));
    let moving = moving
        .filter(|node| touched.contains(node))
        .collect::<BTreeSet<_>>();
    if is_calm && let Some(node) = moving.iter().find(|node| !is_fenced(before, node)) {
        wrong("everything is said to wait", node);
    }

    // What has to be off is not to be brought back, repaired or left on.
    let says = |step: &Value, words: &[&str]| {
        let what = text(&step["what"]);
        words.iter().any(|word| what.contains(word))
    };
    for off in steps
        .iter()
        .filter(|step| says(step, &["POWER OFF", "RESET "]))
    {
        let nodes = nodes_of(off);
        let others = steps
            .iter()
            .filter(|step| !nodes_of(step).is_disjoint(&nodes));
        let back = ["Bring ", "bring ", "Look at", "Log in"];
        for other in others.filter(|step| says(step, &back)) {
            wrong("two steps contradict each other", text(&other["what"]));
        }
    }
    wrongs
}

/// The words of a text, with one space between them.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of the section with that heading; empty if there is none. A section ends where another heading begins.
fn section(said: &str, heading: &str) -> String {
    // The first line may be broken before a NOW.
    let begins = |line: &str| {
        let rest = line.strip_prefix(heading);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':']))
    };
    let lines = said.lines().skip_while(|line| !begins(line));
    let is_in = |(number, line): &(usize, &str)| {
        *number == 0 || !line.starts_with(|letter: char| letter.is_alphabetic())
    };
    let lines = lines.enumerate().take_while(is_in).map(|(_, line)| line);
    words(&lines.collect::<Vec<_>>().join(" "))
}

/// Whether the node has a mark by which its machine can be known to be off.
fn is_fenced(before: &Objects, node: &str) -> bool {
    let Some(node) = find(before, "Node", "", node) else {
        return false;
    };
    let marks = [&node["metadata"]["annotations"], &node["spec"]["taints"]];
    marks.iter().any(|marks| {
        let marks = marks.to_string();
        ["fenc", "confirmed-off", "out-of-service", "shutdown"]
            .iter()
            .any(|mark| marks.contains(mark))
    })
}

/// Whether two machines can write to a volume of the pod, once a run has deleted the pod.
pub fn moves_a_volume(pod: &Value, before: &Objects) -> bool {
    let uid = text(&pod["uid"]);
    let mut objects = before.objects.iter();
    // What has finished writes nothing.
    let has_finished = objects.any(|it| {
        it["kind"] == "Pod"
            && it["metadata"]["uid"] == uid
            && ["Succeeded", "Failed"].contains(&text(&it["status"]["phase"]))
    });
    !is_fenced(before, text(&pod["node"])) && !has_finished && has_attached(before, uid)
}

/// Returns what a page lacks that comes before a run deletes this pod: DATA names the pod, and NOW its node and by when.
pub fn lacks_a_warning(report: &Value, pod: &Value) -> Option<&'static str> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let name = format!("{}/{}", text(&pod["namespace"]), text(&pod["name"]));
    let says = |text: &str, name: &str| {
        let ends = |rest: &str| {
            !rest.starts_with(|it: char| it.is_ascii_alphanumeric() || "-.".contains(it))
        };
        text.split(name).skip(1).any(ends)
    };
    let is_named = list(&report["data"])
        .iter()
        .any(|data| says(text(data), &name));
    let is_timed = |what: &str| {
        let mut after = what.split(" before ").skip(1);
        after.any(|by| by.starts_with("the next run") || by.get(2..3) == Some(":"))
    };
    let warns = list(&report["steps"]).into_iter().any(|step| {
        let mut nodes = list(&step["nodes"]).into_iter();
        step["when"] == "now" && nodes.any(|it| it == pod["node"]) && is_timed(text(&step["what"]))
    });
    match (is_named, warns) {
        (true, true) => None,
        (false, _) => Some("DATA does not name the pod"),
        (_, false) => Some("NOW does not say by when to look at its node"),
    }
}

/// Whether a volume of the pod is attached to its node, and its namespace stays.
fn has_attached(before: &Objects, uid: &str) -> bool {
    let mut objects = before.objects.iter();
    let pod = objects.find(|it| it["kind"] == "Pod" && it["metadata"]["uid"] == uid);
    pod.is_some_and(|pod| {
        let namespace = text(&pod["metadata"]["namespace"]);
        let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let mut volumes = volumes.filter_map(|volume| {
            let claim = text(&volume["persistentVolumeClaim"]["claimName"]);
            let claim = find(before, "PersistentVolumeClaim", namespace, claim)?;
            let volume = &claim["spec"]["volumeName"];
            // Others are never attached, whatever an object says.
            let csi = &find(before, "PersistentVolume", "", text(volume))?["spec"]["csi"];
            (!csi.is_null() && csi["driver"] != "direct").then_some(volume)
        });
        let stays = find(before, "Namespace", "", namespace)
            .is_some_and(|it| it["metadata"]["deletionTimestamp"].is_null());
        stays
            && volumes.any(|volume| {
                before.objects.iter().any(|it| {
                    it["kind"] == "VolumeAttachment"
                        && it["spec"]["nodeName"] == pod["spec"]["nodeName"]
                        && it["spec"]["source"]["persistentVolumeName"] == *volume
                        && it["status"]["attached"] == true
                })
            })
    })
}

/// The name of the node of a pod.
fn node_of(before: &Objects, uid: &str) -> Option<String> {
    let mut objects = before.objects.iter();
    let pod = objects.find(|it| it["kind"] == "Pod" && it["metadata"]["uid"] == uid)?;
    Some(pod["spec"]["nodeName"].as_str()?.to_owned())
}
