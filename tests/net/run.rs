//! One case: a random cluster, options, faults and changes, run through the whole program.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use pod_reaper::{cluster::Cluster, report::text::Screen, run, stop::Stop};
use pod_reaper_test_support::{
    samples,
    simulated::{Dice, Fate, Fault, Kind, Objects, Request, Server, Trouble},
};
use serde_json::{Value, json};
use tokio::{
    runtime::{Builder, Runtime},
    time::{Instant, sleep_until},
};

use crate::{
    audit::{audit, settings},
    cluster,
    conditions::{self, Choices, SELECTED_LEAF, holds, is_free, keeps_data, text},
    dice,
    history::{self, Memory},
    page,
    watched::{Watched, Write},
};

/// The most requests that are under way at the same time.
const AT_ONCE: usize = 8;
/// RBAC refuses.
const REFUSED: Fault = Fault::Status(403, false, false);
/// The outcomes after which the pod is gone by this run.
const DELETED: &str = "deleted";

/// A run to make.
#[derive(Clone)]
pub struct Plan {
    seed: u64,
    pub args: Vec<String>,
    choices: Choices,
    trouble: Trouble,
    /// How often the cluster changes, in a thousand requests.
    changes: usize,
    objects: Vec<Value>,
    /// When SIGTERM arrives, in milliseconds.
    signal: Option<u64>,
    pub history: Memory,
}

/// The result of a run, with what the server saw.
pub struct Ran {
    pub args: Vec<String>,
    pub before: Objects,
    pub after: Objects,
    pub choices: Arc<Choices>,
    /// The JSON report, or why there is none.
    pub report: Result<Value, String>,
    /// The report for people; empty if there is none.
    pub said: String,
    pub writes: Vec<Write>,
    pub trace: Vec<String>,
    pub faults: BTreeSet<String>,
    pub changes: BTreeSet<&'static str>,
    /// Whether RBAC refused the list of the other Leases before the server had sent a page of it.
    pub may_not_list_leases: bool,
    gone: BTreeSet<String>,
    wrongs: Vec<String>,
    is_disturbed: bool,
    changed: bool,
}

/// A runtime whose time passes only while everything waits.
pub fn paused() -> Runtime {
    let mut runtime = Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap()
}

impl Plan {
    /// Nothing fails, and nothing changes except by the run.
    pub fn calm(seed: u64) -> Self {
        let mut dice = dice(seed, 0);
        let (args, choices) = options(&mut dice);
        let trouble = Trouble {
            faults: 0,
            always: None,
            after: 0,
            latency: 5,
        };
        let mut objects = cluster::random(&mut dice);
        history::boot(&mut objects, &mut dice);
        Self {
            seed,
            args,
            choices,
            trouble,
            changes: 0,
            objects,
            signal: None,
            history: Memory::empty(),
        }
    }

    /// Anything may fail or change at any time, and the run may have to end.
    pub fn disturbed(seed: u64) -> Self {
        let mut dice = dice(seed, 1);
        let mut plan = Self::calm(seed).with_faults(seed);
        plan.changes = dice.pick(&[0, 30, 100, 300]);
        if dice.permille(200) {
            plan.trouble.faults = 0;
        }
        plan.signal = dice.permille(150).then(|| 2 * dice.below(400) as u64 + 1);
        if dice.permille(100) {
            plan = plan.only_reads();
        }
        plan
    }

    /// Requests fail at random, or all of one kind do.
    pub fn with_faults(mut self, seed: u64) -> Self {
        let mut dice = dice(seed, 2);
        let kinds = Kind::all(false);
        let always = dice.permille(400).then(|| {
            let kind = if dice.permille(500) {
                Kind::Delete
            } else {
                dice.pick(&kinds)
            };
            (kind, Fault::random(kind, &mut dice))
        });
        self.trouble = Trouble {
            faults: if always.is_some() {
                0
            } else {
                dice.pick(&[20, 60, 150, 350])
            },
            always,
            after: dice.pick(&[0, 0, 1, 2]),
            latency: dice.pick(&[1, 10, 40, 150]),
        };
        self
    }

    pub fn only_reads(mut self) -> Self {
        self.choices.dry_run = true;
        self.args.retain(|arg| arg != "--yes");
        self.args.push("--dry-run".to_owned());
        self
    }

    /// The account may not list Leases.
    pub fn without_leases(mut self) -> Self {
        self.trouble.always = Some((Kind::OtherLeases, REFUSED));
        self
    }

    pub fn has_cap(&self) -> bool {
        self.choices.cap.is_some()
    }

    /// Another history than an empty one.
    pub fn remembers(mut self, history: Memory) -> Self {
        self.history = history;
        self
    }

    /// Any history.
    pub fn remembers_anything(self, seed: u64) -> Self {
        let history = Memory::random(&self.state(), &mut dice(seed, 4));
        self.remembers(history)
    }

    /// Writes this text into every field whose author may choose any, of a part of the objects.
    pub fn says(mut self, words: &str) -> Self {
        let mut dice = dice(self.seed, 5);
        for object in &mut self.objects {
            let mut said = || dice.permille(500).then(|| words.to_owned());
            let written = said().map(|manager| {
                json!({"manager": manager, "operation": "Update", "fieldsV1":
                    {"f:metadata": {"f:finalizers": {format!("v:\"{words}\""): {}}}}})
            });
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            let metadata = &mut object["metadata"];
            match kind.as_str() {
                "Pod" => {
                    for key in ["pod-reaper.io/after-reap", "example.org/note"] {
                        if let Some(said) = said() {
                            metadata["annotations"][key] = said.into();
                        }
                    }
                    if let (Some(said), Some(written)) = (said(), written) {
                        metadata["finalizers"] = json!([said]);
                        metadata["managedFields"] = json!([written]);
                    }
                    if let Some(said) = said() {
                        let owner =
                            json!({"apiVersion": said, "kind": said, "name": said, "uid": said});
                        if let Some(owners) = metadata["ownerReferences"].as_array_mut() {
                            owners.push(owner);
                        }
                    }
                    if let Some(said) = said() {
                        object["spec"]["volumes"] = json!([
                            {"name": "data", "hostPath": {"path": format!("/data/{said}")}},
                            {"name": "claim", "persistentVolumeClaim": {"claimName": said}}]);
                        object["spec"]["containers"] =
                            json!([{"name": "c", "volumeMounts": [{"name": "data"}]}]);
                    }
                }
                "PersistentVolumeClaim" => {
                    if let Some(said) = said() {
                        metadata["finalizers"] = json!([said]);
                        metadata["ownerReferences"] =
                            json!([{"apiVersion": "v1", "kind": said, "name": said, "uid": said}]);
                    }
                }
                "PersistentVolume" => {
                    if let Some(said) = said() {
                        object["spec"]["local"] = json!({"path": said});
                    }
                }
                "Lease" => {
                    if let Some(said) = said() {
                        let holder = &mut object["spec"]["holderIdentity"];
                        *holder = format!("{}_{said}", text(holder)).into();
                    }
                }
                "Node" => {
                    if let Some(said) = said() {
                        metadata["annotations"]["pod-reaper.io/skip"] = said.into();
                    }
                }
                _ => {}
            }
        }
        self
    }

    /// The state as a file, and a Terminating pod in it.
    pub fn saved(&self) -> (String, Option<String>) {
        let stuck =
            |it: &&Value| it["kind"] == "Pod" && !it["metadata"]["deletionTimestamp"].is_null();
        let pod = self.objects.iter().find(stuck).map(|pod| {
            let metadata = &pod["metadata"];
            format!(
                "{}/{}",
                text(&metadata["namespace"]),
                text(&metadata["name"])
            )
        });
        (self.state().saved().clone(), pod)
    }

    pub fn state(&self) -> Objects {
        let objects = self.objects.iter().cloned().chain(self.history.object());
        Objects::new(samples::NOW.parse().unwrap(), objects)
    }

    /// Judges the objects as a file. Returns verdict, reason and what is foreseen by UID.
    pub fn audit(&self) -> BTreeMap<String, [String; 3]> {
        verdicts(&self.audit_at(samples::NOW))
    }

    /// Reports about the objects as a file, at that moment.
    pub fn audit_at(&self, now: &str) -> Value {
        audit(&self.state().saved(), now, self.args_of_audit()).unwrap()
    }

    /// The options that an audit of a file takes.
    pub fn args_of_audit(&self) -> Vec<String> {
        let mut args = self.args.clone();
        args.retain(|arg| {
            !["--yes", "--dry-run"].contains(&arg.as_str()) && !arg.starts_with("--deadline")
        });
        args
    }

    /// Also looks at the pods of Ready nodes, as an audit of a file does.
    pub fn looks_at_all(mut self) -> Self {
        self.args.retain(|arg| arg != "--all");
        self.args.push("--all".to_owned());
        self
    }

    /// Changes the pod of that UID.
    pub fn change_pod(&mut self, uid: &str, change: impl FnOnce(&mut Value)) {
        let mut objects = self.objects.iter_mut();
        let is_it = |it: &&mut Value| it["kind"] == "Pod" && it["metadata"]["uid"] == uid;
        change(objects.find(is_it).unwrap());
    }

    /// Runs. Everything depends on the seed alone.
    pub fn run(self) -> Ran {
        paused().block_on(async {
            let before = self.state();
            let choices = Arc::new(self.choices.clone());
            let settings = settings(&self.args);
            let (signal, stop) = Stop::manual(settings.deadline);
            let began = Instant::now();
            // A part of the time is kept for requests that were already started.
            let mut last_start =
                began + settings.deadline - Duration::from_secs(20).min(settings.deadline / 4);
            if let Some(at) = self.signal.map(|at| began + Duration::from_millis(at)) {
                last_start = last_start.min(at);
                tokio::spawn(async move {
                    sleep_until(at).await;
                    signal.send_replace(Some(("SIGTERM", at)));
                    signal.closed().await;
                });
            } else {
                // The sender keeps the run going.
                tokio::spawn(async move { signal.closed().await });
            }
            let mut dice = dice(self.seed, 3);
            let mut fates = self.trouble.clone().fates(dice.fork());
            let fault = self.history.fault;
            let fates = move |request: &Request| match request.kind {
                Kind::History | Kind::Note if fault.is_some() => Fate {
                    fault,
                    ..Fate::default()
                },
                _ => fates(request),
            };
            let watched = Watched::new(
                before.clone(),
                Arc::clone(&choices),
                self.changes,
                last_start,
                dice.fork(),
            );
            let server = Server::with_faults(watched, fates).page(dice.pick(&[1, 2, 3, 500]));
            let cluster = Cluster::new(server.client(), stop.clone());
            let result = run::run_on(&cluster, &settings, false, &stop).await;
            let ended = Instant::now();
            let mut server = server.lock();
            let mut wrongs = std::mem::take(&mut server.cluster.wrongs);
            wrongs.extend(
                server
                    .not_understood
                    .iter()
                    .map(|it| format!("nobody should send {it}")),
            );
            if server.most_at_once > AT_ONCE {
                wrongs.push(format!("{} requests at the same time", server.most_at_once));
            }
            if ended > began + settings.deadline {
                wrongs.push("the run ended after its deadline".to_owned());
            }
            let mut said = String::new();
            let report = result.map_err(|error| error.to_string()).map(|run| {
                said = pod_reaper::report::text::write(&run.document(), Screen::default());
                serde_json::to_value(run.report()).unwrap()
            });
            let state = &server.cluster;
            if let Ok(report) = &report
                && self.changes == 0
            {
                wrongs.extend(page::wrongs(report, &said, &before, &state.writes));
            }
            Ran {
                args: self.args,
                before,
                after: server.cluster.state.clone(),
                choices,
                report,
                said,
                trace: server.trace.clone(),
                faults: server.faults.clone(),
                changes: server.cluster.changes.clone(),
                may_not_list_leases: !server.cluster.lists_leases
                    && server.trace.iter().any(|sent| {
                        sent.contains("/leases?") && sent.ends_with(&format!(" {REFUSED:?}"))
                    }),
                gone: std::mem::take(&mut server.cluster.gone),
                writes: std::mem::take(&mut server.cluster.writes),
                wrongs,
                is_disturbed: self.trouble.is_faulty() || self.changes > 0 || self.signal.is_some(),
                changed: self.changes > 0,
            }
        })
    }
}

/// Random options, and what they mean for the conditions.
fn options(dice: &mut Dice) -> (Vec<String>, Choices) {
    let choices = Choices {
        threshold: dice.pick(&[60, 600, 600, 600, 1_800]),
        percent: dice.weigh(&[(12, 55), (3, 100), (1, 30)]),
        together: dice.weigh(&[(6, 2), (4, 0), (1, 1), (1, 3)]),
        cap: dice.weigh(&[(18, None), (1, Some(1)), (1, Some(2))]),
        manual: dice.weigh(&[(12, None), (1, Some("StatefulSet")), (1, Some("Job"))]),
        only: dice.weigh(&[(10, None), (1, Some("shop"))]),
        dry_run: false,
    };
    let mut args = vec![
        "pod-reaper".to_owned(),
        "--yes".to_owned(),
        format!("--reap-older-than={}s", choices.threshold),
        format!("--max-not-ready-percent={}", choices.percent),
        format!("--leaf-node-selector={SELECTED_LEAF}"),
        format!("--deadline={}ms", dice.weigh(&[(12, 480_001), (1, 60_001)])),
    ];
    // The default is not typed.
    let together = Some(choices.together).filter(|most| *most != 2);
    args.extend(together.map(|most| format!("--max-failed-together={most}")));
    args.extend(choices.cap.map(|cap| format!("--max-deletes={cap}")));
    args.extend(
        choices
            .manual
            .map(|kind| format!("--manual-owner-kind={kind}")),
    );
    args.extend(
        choices
            .only
            .map(|name| format!("--namespace-regex=^{name}$")),
    );
    args.extend(dice.permille(250).then(|| "--all".to_owned()));
    args.extend(dice.permille(300).then(|| "--exit-on-manual".to_owned()));
    (args, choices)
}

/// The pods of a report, and those that Kubernetes has not evicted yet.
pub fn all_pods(report: &Value) -> impl Iterator<Item = &Value> {
    let lists = [&report["pods"], &report["notEvicted"]];
    lists.into_iter().flat_map(|pods| pods.as_array().unwrap())
}

fn verdicts(report: &Value) -> BTreeMap<String, [String; 3]> {
    let said = all_pods(report).map(|pod| {
        let said = [&pod["verdict"], &pod["reason"], &pod["foreseen"]];
        (text(&pod["uid"]).to_owned(), said.map(Value::to_string))
    });
    said.collect()
}

impl Ran {
    pub fn pods(&self) -> impl Iterator<Item = &Value> {
        let report = self.report.iter();
        report.flat_map(|report| report["pods"].as_array().unwrap())
    }

    pub fn exit(&self) -> u64 {
        self.report
            .as_ref()
            .map_or(1, |report| report["exitCode"].as_u64().unwrap())
    }

    pub fn judged_at(&self) -> Option<Timestamp> {
        text(&self.report.as_ref().ok()?["judgedAt"]).parse().ok()
    }

    pub fn verdicts(&self) -> BTreeMap<String, [String; 3]> {
        self.report.as_ref().map(verdicts).unwrap_or_default()
    }

    /// Verdict, reason and outcome of each pod.
    pub fn outcomes(&self) -> BTreeMap<&str, [&str; 3]> {
        let pods = self.pods();
        pods.map(|pod| {
            let said = [&pod["verdict"], &pod["reason"], &pod["outcome"]];
            (text(&pod["uid"]), said.map(text))
        })
        .collect()
    }

    pub fn written(&self) -> BTreeSet<String> {
        self.writes.iter().map(|write| write.uid.clone()).collect()
    }

    /// The nodes of the pods that the run's deletes removed, whatever it was told of them, each with the names of these pods.
    pub fn nodes_of_removed(&self) -> Vec<(&Value, Vec<&str>)> {
        let nodes = self.before.objects.iter().filter(|it| it["kind"] == "Node");
        let removed = nodes.map(|node| {
            let removed = self.writes.iter().filter(|write| write.removed);
            let pods = removed.filter_map(|write| self.pod(&write.uid));
            let here = pods.filter(|pod| pod["spec"]["nodeName"] == node["metadata"]["name"]);
            let names = here.map(|pod| text(&pod["metadata"]["name"]));
            (node, names.collect::<Vec<_>>())
        });
        removed.filter(|(_, pods)| !pods.is_empty()).collect()
    }

    fn pod(&self, uid: &str) -> Option<&Value> {
        self.before
            .objects
            .iter()
            .find(|it| it["kind"] == "Pod" && it["metadata"]["uid"] == uid)
    }

    /// Whether the pod's node existed and was not Ready.
    pub fn is_on_a_failed_node(&self, uid: &str) -> bool {
        let node = self.pod(uid).and_then(|pod| {
            conditions::find(&self.before, "Node", "", text(&pod["spec"]["nodeName"]))
        });
        node.is_some_and(|node| {
            let mut conditions = node["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten();
            !conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
        })
    }

    /// Whether the pod uses a PVC that did not exist.
    pub fn lacks_a_claim(&self, uid: &str) -> bool {
        let pod = self.pod(uid);
        pod.is_some_and(|pod| conditions::lacks_a_claim(&self.before, pod))
    }

    /// The pods that the plain conditions call free.
    pub fn free(&self) -> Vec<&Value> {
        let pods = self.before.objects.iter().filter(|it| it["kind"] == "Pod");
        pods.filter(|pod| is_free(&self.before, pod, self.before.now, &self.choices))
            .collect()
    }

    /// The free pods that are still there after a calm run.
    pub fn not_deleted(&self) -> Vec<String> {
        let outcome = |uid: &str| {
            let mut pods = self.pods();
            let pod = pods.find(|pod| pod["uid"] == uid);
            pod.map_or("not in the report".to_owned(), |pod| {
                format!("{} {}", text(&pod["outcome"]), text(&pod["detail"]))
            })
        };
        let uids = self
            .free()
            .into_iter()
            .map(|pod| text(&pod["metadata"]["uid"]));
        uids.map(|uid| (uid, outcome(uid)))
            .filter(|(uid, outcome)| !outcome.starts_with(DELETED) || !self.gone.contains(*uid))
            .map(|(uid, outcome)| format!("{uid} is free, and its outcome is {outcome:?}"))
            .collect()
    }

    /// Everything that should not be: about the writes, and about the report.
    pub fn wrongs(&self) -> Vec<String> {
        let mut wrongs = self.wrongs.clone();
        let now = self.before.now;
        if !self.changed {
            for write in &self.writes {
                let pod = self.pod(&write.uid);
                let held = pod.and_then(|pod| holds(&self.before, pod, now, &self.choices));
                wrongs.extend(held.map(|why| {
                    format!("{}/{} was written to: {why}", write.namespace, write.name)
                }));
                // A slow run judges later: by then, a PVC may have been deleted for long enough.
                let late = now + jiff::SignedDuration::from_mins(8);
                let why = pod.and_then(|pod| {
                    keeps_data(&self.before, pod, now, &self.choices).and(keeps_data(
                        &self.before,
                        pod,
                        late,
                        &self.choices,
                    ))
                });
                wrongs.extend(why.map(|why| {
                    format!("{}/{} was written to: {why}", write.namespace, write.name)
                }));
            }
        }
        if self
            .choices
            .cap
            .is_some_and(|cap| self.written().len() > cap)
        {
            wrongs.push("more pods than --max-deletes".to_owned());
        }
        let claims = |state: &Objects| {
            state
                .objects
                .iter()
                .filter(|it| it["kind"] != "Pod")
                .count()
        };
        if !self.changed && claims(&self.before) != claims(&self.after) {
            wrongs.push("something other than a pod is gone".to_owned());
        }
        if let Ok(report) = &self.report {
            wrongs.extend(self.wrong_report(report));
        } else if !self.is_disturbed {
            wrongs.push(format!(
                "nothing failed, and there is no report: {:?}",
                self.report
            ));
        }
        wrongs
    }

    fn wrong_report(&self, report: &Value) -> Vec<String> {
        let mut wrongs = Vec::new();
        let in_report = |uid: &str| self.pods().find(|pod| pod["uid"] == uid);
        for write in &self.writes {
            if in_report(&write.uid).is_none() {
                wrongs.push(format!(
                    "{} was written to, and is not in the report",
                    write.uid
                ));
            }
        }
        for pod in self.pods() {
            let uid = text(&pod["uid"]);
            let own = || self.writes.iter().filter(|write| write.uid == uid);
            let accepted =
                own().any(|write| write.kind == Kind::Delete && write.answered == Some(200));
            let wrong = match (text(&pod["verdict"]), pod["outcome"].as_str()) {
                ("reap", None) => Some("a pod to reap without an outcome"),
                ("reap", Some(_)) if pod["reason"] != "stuck-on-not-ready-node" => {
                    Some("another reason than the last rule's")
                }
                (verdict, Some(_)) if verdict != "reap" => Some("an outcome without the verdict"),
                (verdict, _) if verdict != "reap" && own().next().is_some() => {
                    Some("it was written to without the verdict")
                }
                (_, Some(DELETED)) if !accepted || !self.gone.contains(uid) => {
                    Some("it was not deleted")
                }
                (_, Some("would-delete")) if !self.choices.dry_run => Some("this is no dry run"),
                (_, Some("gone")) if !self.gone.contains(uid) => Some("it is not gone"),
                _ => None,
            };
            wrongs.extend(wrong.map(|wrong| format!("{uid} ({}): {wrong}", pod["outcome"])));
        }
        let errors = report["errors"].as_array().unwrap();
        let is_told = |pod: &Value| {
            let metadata = &pod["metadata"];
            let node = text(&pod["spec"]["nodeName"]);
            let names = [
                format!("pods of node {node}"),
                format!(
                    "pod {}/{}",
                    text(&metadata["namespace"]),
                    text(&metadata["name"])
                ),
            ];
            in_report(text(&metadata["uid"])).is_some()
                || errors
                    .iter()
                    .any(|error| names.iter().any(|name| error["what"] == **name))
        };
        let down = |pod: &Value| {
            let node = conditions::find(&self.before, "Node", "", text(&pod["spec"]["nodeName"]));
            node.is_some_and(|node| conditions::ready(node) != Some("True"))
        };
        let pods = self
            .before
            .objects
            .iter()
            .filter(|it| it["kind"] == "Pod" && !it["metadata"]["deletionTimestamp"].is_null());
        let matches = |pod: &Value| {
            self.choices
                .only
                .is_none_or(|only| pod["metadata"]["namespace"] == only)
        };
        let untold = pods.filter(|pod| !self.changed && down(pod) && matches(pod) && !is_told(pod));
        wrongs.extend(untold.map(|pod| format!("{} is not in the report", pod["metadata"]["uid"])));
        wrongs
    }
}
