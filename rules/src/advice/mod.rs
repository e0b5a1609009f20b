//! What a person has to do about a pod that the program leaves to them: what is at risk, and the commands, in order.
//!
//! The commands carry the real names, quoted for a POSIX shell. One that destroys is bound to the node and the pod that
//! were judged: it looks whether the node is still not Ready, has the API server try the pod's delete by UID and resource
//! version, and goes on only where both hold. Pasted late or twice it does nothing, and says so. It goes through
//! `kubectl delete --raw`, which takes those preconditions and does not wait (plain `kubectl delete pvc` hangs on the
//! claim's protection finalizer). The claim's finalizers need no clearing: it goes when the pod does.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::decide::{
    ConfinedClaim, PinnedClaim, Policy, Reason, UnverifiedClaim, Verdict, doubts, fenced, may_live,
    shared_disk, signs_of_life,
};
use crate::facts::{ClusterFacts, Leaf, LeafKind, NodeFacts, NodeRead, PodFacts, Ready};
use crate::limits::{Hold, HoldReason, Judged};
use crate::selector::{Target, is_name};

/// What a person should know and do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advice {
    /// The risk, in a line.
    pub risk: Option<String>,
    /// What to do, in order.
    pub steps: Vec<Step>,
}

impl Advice {
    fn new(risk: impl Into<String>, steps: Vec<Step>) -> Self {
        Self {
            risk: Some(risk.into()),
            steps,
        }
    }

    fn without_risk(step: Step) -> Self {
        Self {
            risk: None,
            steps: vec![step],
        }
    }
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
pub struct Step {
    /// What it is for.
    pub what: String,
    /// What to paste, where there is something.
    #[cfg_attr(feature = "testing", schemars(with = "Option<String>"))]
    pub command: Option<Command>,
    /// What that takes away for good, where it does.
    #[serde(skip)]
    pub harm: Option<Harm>,
}

/// What a command takes away for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Harm {
    /// A word for it.
    pub word: &'static str,
    /// What the command comes down to, without what binds it to what was judged: to be read, never to be pasted.
    pub plain: String,
}

/// A shell command, as its words: already quoted, so that a writer may break the line between any two. The word
/// [`Command::NEXT`] ends a line of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command(pub Vec<String>);

impl Command {
    /// Ends a line.
    pub const NEXT: &str = "\n";

    /// The words of each line.
    pub fn lines(&self) -> impl Iterator<Item = &[String]> {
        self.0.split(|word| word == Self::NEXT)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self
            .lines()
            .map(|words| words.join(" "))
            .collect::<Vec<_>>();
        formatter.write_str(&lines.join(Self::NEXT))
    }
}

impl Serialize for Command {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// kubectl, pointed at the cluster that was judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kubectl(pub Target);

impl Kubectl {
    fn words<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut all = vec!["kubectl".to_owned()];
        if let Some(kubeconfig) = &self.0.kubeconfig {
            all.extend([
                "--kubeconfig".to_owned(),
                quoted(&kubeconfig.to_string_lossy()),
            ]);
        }
        if let Some(context) = &self.0.context {
            all.extend(["--context".to_owned(), quoted(context)]);
        }
        all.extend(words.into_iter().map(quoted));
        all
    }

    fn command<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        Command(self.words(words))
    }

    fn get_pods(&self, alike: &Alike<'_>, options: &[&str]) -> Command {
        let names = alike.pods().map(|pod| pod.name.as_str());
        let words = ["get", "pod"]
            .into_iter()
            .chain(names)
            .chain(["-n", alike.namespace]);
        self.command(words.chain(options.iter().copied()))
    }

    /// Writes the claim's manifest to a file, without what binds it to its volume and node. Where there is no claim any more,
    /// the file stays as it is.
    fn keep_claim(&self, namespace: &str, claim: &str) -> Command {
        let without = json!({
            "metadata": {
                "annotations": BTreeMap::from(BINDING.map(|key| (key, Value::Null))),
                "creationTimestamp": null, "deletionGracePeriodSeconds": null, "deletionTimestamp": null,
                "finalizers": null, "ownerReferences": null, "resourceVersion": null, "uid": null,
            },
            "spec": {"volumeName": null},
            "status": null,
        });
        let mut words = self.words(["get", "pvc", claim, "-n", namespace, "-o", "json"]);
        words.push("|".to_owned());
        let patch = without.to_string();
        words.extend(self.words([
            "patch",
            "--local",
            "-f",
            "-",
            "--type=merge",
            "-p",
            &patch,
            "-o",
            "yaml",
        ]));
        let (part, file) = (
            format!("{namespace}.{claim}.part"),
            format!("{namespace}.{claim}.yaml"),
        );
        words.extend([">", &part, "&&", "mv", &part, &file].map(str::to_owned));
        Command(words)
    }

    /// Holds while the node is the one that was judged, and its Ready has not changed since.
    fn still_as_judged(&self, node: &NodeFacts) -> Vec<String> {
        let status = r#"jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}"#;
        let mut judged = node.uid.clone();
        if node.ready != Ready::Absent {
            let since = node
                .ready_since
                .map(|since| since.strftime("%FT%TZ").to_string());
            judged += &format!("/{}/{}", node.ready.as_str(), since.unwrap_or_default());
        }
        let mut words = self.words(["get", "node", &node.name, "-o", status]);
        words.extend(["|", "grep", "-qxF", "--", &quoted(&judged)].map(str::to_owned));
        words
    }

    /// A script that gives up the pinned claims of the pods and force-deletes them, one by one, each while it and its node are
    /// as they were judged. What differs between them are plain words, which are arguments: zsh does not split what a variable
    /// holds. It uses no variable to which a shell gives a meaning of its own, and no option that a kuberc adds.
    fn finish(&self, Alike { namespace, all }: &Alike<'_>, node: &NodeFacts) -> Command {
        let (kubectl, name) = (self.words([]).join(" "), &node.name);
        let before = format!(
            r#"( export KUBERC=off
reap_raw() {{ what=$1; shift; printf "$@" | {kubectl} delete -f - --raw \
  /api/v1/namespaces/{namespace}/"$what" > /dev/null; }}
reap_claims() {{ say=$1 bound=$2; shift 2; for claim; do
  reap_raw persistentvolumeclaims/"${{claim%=*}}" "$bound" "${{claim#*=}}" || return
  $say "Gave up claim ${{claim%=*}}."; done; }}
reap_pod() {{ name=$1 uid=$2 version=$3; shift 3
  judged='"gracePeriodSeconds":0,"preconditions":{{"uid":"'$uid'","resourceVersion":"'$version'"}}'
  if"#
        );
        let after = format!(
            r#"  && reap_raw pods/"$name" "{{\"dryRun\":[\"All\"],$judged}}" \
  && reap_claims : '{{"dryRun":["All"],"preconditions":{{"uid":"%s"}}}}' "$@" \
  && reap_claims echo '{{"preconditions":{{"uid":"%s"}}}}' "$@" && reap_raw pods/"$name" "{{$judged}}"
  then echo "Force-deleted {namespace}/$name."
  else failed=1; echo "Stopped at $name: it or {name} has changed, or see above." >&2; fi; }}
failed=0"#
        );
        let lines = |text: &str| {
            let lines = text
                .split('\n')
                .flat_map(|line| [Command::NEXT, line])
                .skip(1);
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let mut script = lines(&before);
        script.extend(self.still_as_judged(node));
        script.extend(["\\", Command::NEXT].map(str::to_owned));
        script.extend(lines(&after));
        script.push(Command::NEXT.to_owned());
        for judged in *all {
            let PodFacts {
                name,
                uid,
                resource_version,
                ..
            } = &judged.pod;
            script.extend(["reap_pod", name, uid, resource_version].map(str::to_owned));
            script.extend(
                given_up(judged)
                    .iter()
                    .map(|claim| format!("{}={}", claim.claim, claim.claim_uid)),
            );
            script.push(Command::NEXT.to_owned());
        }
        script.push("[ $failed = 0 ] )".to_owned());
        Command(script)
    }
}

/// Ends the pods of `alike`, by a script that [`Kubectl::finish`] writes.
fn finish(what: String, alike: &Alike<'_>, node: &NodeFacts, kubectl: &Kubectl) -> Step {
    let claims = alike
        .all
        .iter()
        .flat_map(|judged| given_up(judged))
        .collect::<Vec<_>>();
    let is_lost = claims
        .iter()
        .any(|claim| claim.reclaim_policy.as_deref() != Some("Retain"));
    let claims = claims
        .iter()
        .map(|claim| claim.claim.as_str())
        .collect::<Vec<_>>()
        .join(" ");
    let pods = alike
        .pods()
        .map(|pod| pod.name.as_str())
        .collect::<Vec<_>>()
        .join(" ");
    let within = kubectl.words(["-n", alike.namespace]).join(" ");
    let mut plain = format!("{within} delete pod {pods} --grace-period=0 --force");
    if !claims.is_empty() {
        plain = format!("{within} delete pvc {claims}\n{plain}");
    }
    let harm = Some(Harm {
        word: if is_lost {
            "Destroys data"
        } else {
            "Force-deletes"
        },
        plain,
    });
    Step {
        harm,
        ..step(what, kubectl.finish(alike, node))
    }
}

/// The claims that are given up with a pod. One that nothing replaces, or only on its own node, keeps its data.
fn given_up(judged: &Judged) -> &[PinnedClaim] {
    let is_replaced = judged.pod.controller.is_some() && !judged.pod.made_by("DaemonSet", "apps");
    match &judged.reason {
        Reason::LocalVolume { claims, .. } if is_replaced => claims,
        _ => &[],
    }
}

/// Pods of one namespace to which the same advice is given, at least one; their node, where there is one, is the same.
#[derive(Clone, Copy)]
struct Alike<'a> {
    namespace: &'a str,
    all: &'a [&'a Judged],
}

impl<'a> Alike<'a> {
    fn pods(&self) -> impl Iterator<Item = &'a PodFacts> {
        self.all.iter().map(|judged| &judged.pod)
    }

    /// "the pod", or "the pods".
    fn them(&self) -> &'static str {
        if self.all.len() == 1 {
            "the pod"
        } else {
            "the pods"
        }
    }
}

/// What speaks against a script that destroys, as steps to take instead.
fn against(judged: &Judged, node: &NodeFacts, kubectl: &Kubectl) -> Vec<Step> {
    let PodFacts {
        namespace,
        name,
        uid,
        resource_version,
        ..
    } = &judged.pod;
    let claims = given_up(judged);
    let words = claims
        .iter()
        .flat_map(|claim| [&claim.claim, &claim.claim_uid]);
    let mut words = words.chain([namespace, name, uid, resource_version, &node.name]);
    if !words.all(|word| is_name(word)) {
        return vec![remark(
            "No command is printed: one of the names is not one that an API server gives.",
        )];
    }
    if judged.pod.held_by_job() && !judged.pod.finished {
        let why = "No command is printed: the Job controller's finalizer holds the pod until its status is Failed.";
        return vec![remark(why)];
    }
    let doubts = if claims.is_empty() {
        Vec::new()
    } else {
        doubts(&judged.pod.claims, node)
    };
    let doubt = |(claim, why): (String, String)| {
        let what = format!(
            "No command that gives claims up is printed: claim {claim} {why}. See what uses it."
        );
        step(
            what,
            kubectl.command(["describe", "pvc", &claim, "-n", namespace]),
        )
    };
    doubts.into_iter().map(doubt).collect()
}

/// Puts the pods of `all` that need a person together where they share what there is to do, by their places: those of one
/// reason, namespace and node, where a script may name each.
pub fn alike(all: &[Judged], facts: &ClusterFacts) -> Vec<Vec<usize>> {
    let mut groups = Vec::<Vec<usize>>::new();
    let mut groups_by_key = BTreeMap::new();
    for (place, judged) in all
        .iter()
        .enumerate()
        .filter(|(_, judged)| judged.verdict() == Verdict::Manual)
    {
        let PodFacts {
            namespace,
            uid,
            node,
            controller,
            ..
        } = &judged.pod;
        let known = facts.node_of(&judged.pod).and_then(NodeRead::known);
        let alone = known.is_none_or(|node| !against(judged, node, &Kubectl::default()).is_empty());
        // What is said of volumes differs in their names alone.
        let says = Some(judged.sentence()).filter(|_| !judged.reason.names_claims());
        let ends = (
            controller.is_none(),
            given_up(judged).is_empty(),
            alone.then_some(uid),
        );
        let group = *groups_by_key
            .entry((judged.code(), namespace, node, says, ends))
            .or_insert(groups.len());
        groups.resize(groups.len().max(group + 1), Vec::new());
        groups[group].push(place);
    }
    groups
}

/// Annotations that bind a claim to its volume or node.
const BINDING: [&str; 5] = [
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
];

fn quoted(word: &str) -> String {
    // shlex is stricter than any shell: it would quote pods,pvc and --tail=50 too.
    if !word.is_empty()
        && word
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-_./,:=@%+".contains(letter))
    {
        return word.to_owned();
    }
    // shlex refuses nothing but NUL, which no shell could pass on anyway.
    shlex::try_quote(&word.replace('\0', ""))
        .map_or_else(|_| String::new(), std::borrow::Cow::into_owned)
}

fn step(what: impl Into<String>, command: Command) -> Step {
    Step {
        what: what.into(),
        command: Some(command),
        harm: None,
    }
}

/// What to do about `all`, which have the same reason, namespace and node, by the `facts` that they were judged by. While
/// `hold` holds the run, or their node shows a sign of life, nothing that destroys is printed.
pub fn advise(
    all: &[&Judged],
    facts: &ClusterFacts,
    policy: &Policy,
    hold: Option<&Hold>,
    kubectl: &Kubectl,
) -> Advice {
    let Some(Judged { pod, reason, .. }) = all.first() else {
        return Advice::default();
    };
    let alike = Alike {
        namespace: &pod.namespace,
        all,
    };
    // Finalizers are for a person where the node is gone, too.
    if let Reason::Finalizers { finalizers } | Reason::AlreadyForced { finalizers } = reason {
        return held_by_finalizers(&alike, finalizers, kubectl);
    }
    // The other rules that are for a person hold on a node that was read.
    let Some(node) = facts.node_of(pod).and_then(NodeRead::known) else {
        return Advice::default();
    };
    match reason {
        Reason::LeafNode(leaf) => return leaf_node(&alike, &node.name, leaf, kubectl),
        Reason::KubeletAlive { .. } => return kubelet_alive(node, kubectl),
        Reason::VolumeConfined { .. } => return volume_confined(&alike, &node.name, kubectl),
        _ => {}
    }
    let force_delete = |when: &str| {
        finish(
            format!("{when}orce-delete {}.", alike.them()),
            &alike,
            node,
            kubectl,
        )
    };
    let mut advice = match reason {
        Reason::LocalVolume { .. } if given_up(all[0]).is_empty() => {
            Advice::without_risk(force_delete("Its claims keep their data. To remove it, f"))
        }
        Reason::LocalVolume { .. } => local_volume(&alike, node, kubectl),
        Reason::VolumeUnverified { .. } => {
            let mut advice = volume_unverified(&alike, &node.name, kubectl);
            advice.steps.push(force_delete(
                "Once you know that none is bound there, and not before, f",
            ));
            advice
        }
        Reason::SharedDisk(_) => {
            let automatic = "Where fencing is automatic, have it mark the node (annotation fencing/state=fenced, or \
                             what --fenced-node-selector selects) and unmark it when it is back: a run then takes \
                             such pods itself.";
            Advice {
                risk: None,
                steps: vec![force_delete("Only after that, f"), remark(automatic)],
            }
        }
        Reason::OwnerKind { .. } => {
            let risk = format!(
                "If {} is only cut off, what it ran may still be running there, and a replacement would be a second \
                 copy: make sure that the machine is powered off.",
                node.name
            );
            Advice::new(risk, vec![force_delete("F")])
        }
        _ => return Advice::default(),
    };
    let why = match hold.map(|hold| &hold.reason) {
        None if may_live(facts.now, policy, node) => {
            "while the node is alive, or may be: repair it, or power it off"
        }
        None => {
            let against = all
                .iter()
                .flat_map(|judged| against(judged, node, kubectl))
                .collect::<Vec<_>>();
            if !against.is_empty() {
                return Advice {
                    risk: None,
                    steps: against,
                };
            }
            if pod.controller.is_none() {
                let nothing = format!(
                    "Nothing brings {} back: there is no controller.",
                    alike.them()
                );
                advice.risk = Some(
                    advice
                        .risk
                        .map_or(nothing.clone(), |more| format!("{more} {nothing}")),
                );
            }
            let off = fenced(facts.now, policy, node).is_some();
            let shared = alike.pods().any(|pod| shared_disk(pod).is_some());
            return if off || !shared {
                advice
            } else {
                with_shared_disk(&node.name, advice)
            };
        }
        Some(HoldReason::MassOutage(_)) => {
            "while so many nodes are NotReady: find out first what they have in common"
        }
        Some(HoldReason::CensusUnread(_)) => {
            "while it is not known how many nodes are NotReady: run it again"
        }
    };
    Advice::without_risk(remark(format!("No command is printed {why}.")))
}

/// The things of that noun, by name; of many only how many there are.
fn named(noun: &str, names: &[&str]) -> String {
    match names.len() {
        1 => format!("{noun} {}", names.join("")),
        2 | 3 => format!("{noun}s {}", names.join(", ")),
        count => format!("{count} {noun}s"),
    }
}

/// Something to do or to know for which there is nothing to paste.
fn remark(what: impl Into<String>) -> Step {
    Step {
        what: what.into(),
        command: None,
        harm: None,
    }
}

fn kubelet_alive(
    NodeFacts {
        name: node, ready, ..
    }: &NodeFacts,
    kubectl: &Kubectl,
) -> Advice {
    let restart = match ready {
        Ready::Unknown => {
            "restart the kubelet (systemctl restart kubelet), and see what its log says"
        }
        _ => "restart what the condition names, mostly the container runtime, then the kubelet",
    };
    let see = "See why it is not Ready: its conditions say what fails (the container runtime, the network plugin, a disk).";
    let steps = vec![
        step(see, kubectl.command(["describe", "node", node])),
        remark(format!(
            "On {node}: {restart}. Once it is Ready, its kubelet ends the pods whose deletion was requested."
        )),
        remark(format!(
            "Or power {node} off now: once it has been silent for --node-not-ready-for, a run judges its pods again."
        )),
    ];
    let risk = format!(
        "Do not force-delete it from {node} while it is alive: it most likely still runs there, and would run beside its replacement."
    );
    Advice::new(risk, steps)
}

fn volume_confined(alike: &Alike<'_>, node: &str, kubectl: &Kubectl) -> Advice {
    let mut steps = Vec::new();
    for judged in alike.all {
        let Reason::VolumeConfined { claims } = &judged.reason else {
            continue;
        };
        for ConfinedClaim {
            claim,
            volume,
            place,
        } in claims
        {
            let what =
                format!("See where the data of claim {claim} is: volume {volume} needs {place}.");
            steps.push(step(what, kubectl.command(["describe", "pv", volume])));
        }
    }
    steps.push(remark(format!(
        "If the data is elsewhere, bring up a node that the volume allows: the next run then takes {}. If it is on \
         {node}, bring {node} back, or consider the volume lost.",
        alike.them()
    )));
    let risk = "No other node satisfies the volume's affinity, so a replacement would wait. It does not show where the data is.";
    Advice::new(risk, steps)
}

/// What to do about a pod whose disk two machines could write, before whatever else there is to do.
fn with_shared_disk(node: &str, mut advice: Advice) -> Advice {
    let risk = format!(
        "If {node} still runs, its machine and the replacement's would write to one disk at once, which destroys its \
         data."
    );
    advice.risk = Some(
        advice
            .risk
            .map_or(risk.clone(), |more| format!("{risk} {more}")),
    );
    let power_off = format!(
        "Power {node} off, or cut off its disks, and check that at the machine itself, not by what the cluster says."
    );
    advice.steps.insert(0, remark(power_off));
    advice
}

fn local_volume(alike: &Alike<'_>, judged: &NodeFacts, kubectl: &Kubectl) -> Advice {
    let (Alike { namespace, all }, node) = (*alike, &judged.name);
    let claims = all
        .iter()
        .flat_map(|judged| given_up(judged).iter().map(|claim| (&judged.pod, claim)));
    let mut steps = Vec::new();
    // A StatefulSet names the claims of its templates so, and creates only those again.
    let is_kept = |(pod, claim): &(&PodFacts, &PinnedClaim)| {
        !pod.made_by("StatefulSet", "apps") || !claim.claim.ends_with(&format!("-{}", pod.name))
    };
    let kept = claims
        .clone()
        .filter(is_kept)
        .map(|(_, claim)| claim.claim.as_str())
        .collect::<Vec<_>>();
    for claim in &kept {
        let what = format!(
            "Keep the manifest of claim {claim}: Kubernetes does not create it again (an operator may: check that \
             first), and the replacement waits for it."
        );
        // It becomes the name of a file.
        let command = is_name(claim).then(|| kubectl.keep_claim(namespace, claim));
        steps.push(Step {
            command,
            ..remark(what)
        });
    }
    let names = named(
        "claim",
        &claims
            .clone()
            .map(|(_, claim)| claim.claim.as_str())
            .collect::<Vec<_>>(),
    );
    let and_then = if kept.is_empty() {
        " A StatefulSet that still wants the replica creates both again."
    } else {
        ""
    };
    let what = format!(
        "Give up {names}, and force-delete {}. Nothing is done to a pod that has changed by then, or once {node} has.{and_then}",
        alike.them()
    );
    steps.push(finish(what, alike, judged, kubectl));
    for claim in kept {
        let file = format!("{namespace}.{claim}.yaml");
        let command =
            is_name(claim).then(|| kubectl.command(["create", "-n", namespace, "-f", &file]));
        steps.push(Step {
            command,
            ..remark(format!("When claim {claim} is gone, recreate it, empty."))
        });
    }
    steps.push(step(
        format!("See {} come up again, on another node.", alike.them()),
        kubectl.command(["get", "pods,pvc", "-n", namespace, "-o", "wide"]),
    ));
    let mut volumes = BTreeMap::<_, Vec<_>>::new();
    for (_, claim) in claims {
        volumes
            .entry(claim.reclaim_policy.as_deref())
            .or_default()
            .push(claim.volume.as_str());
    }
    let lost = volumes.into_iter().map(|(policy, volumes)| {
        let data = format!("the data of {}", named("volume", &volumes));
        match policy {
            Some("Retain") => {
                format!("{data} stays on {node}'s disk (policy Retain), but the new pod starts without it")
            }
            Some(policy) => format!("{data} is lost for good (policy {policy})"),
            None => format!("{data} must be considered lost (it names no reclaim policy)"),
        }
    });
    let lost = lost.collect::<Vec<_>>().join("; ");
    let risk = format!(
        "If {node} can come back, wait for it: what it ran then starts again, with its data. With these commands {lost}."
    );
    Advice::new(risk, steps)
}

fn volume_unverified(alike: &Alike<'_>, node: &str, kubectl: &Kubectl) -> Advice {
    let Alike { namespace, all } = *alike;
    let mut steps = Vec::new();
    let claims = all.iter().flat_map(|judged| match &judged.reason {
        Reason::VolumeUnverified { claims } => claims.as_slice(),
        _ => &[],
    });
    for UnverifiedClaim {
        claim,
        missing_volume,
        ..
    } in claims
    {
        let claim_of = |output| kubectl.words(["get", "pvc", claim, "-n", namespace, "-o", output]);
        let what = format!("See claim {claim} and the volume that it names.");
        steps.push(step(what, Command(claim_of("wide"))));
        if let Some(volume) = missing_volume {
            let what = format!(
                "Volume {volume} does not exist: bring it back, or give the claim up; a new pod cannot start with the \
                 claim in this state."
            );
            steps.push(remark(what));
        } else {
            let mut describe = kubectl.words(["describe", "pv"]);
            describe.push(format!(
                "\"$({})\"",
                claim_of("jsonpath={.spec.volumeName}").join(" ")
            ));
            let what = "See where it is: local, hostPath or node affinity to";
            steps.push(step(
                format!("{what} {node} alone would bind it there."),
                Command(describe),
            ));
        }
    }
    let risk = format!(
        "If a volume is on {node}, the new pod waits for that node for ever, and giving the claim up loses data."
    );
    Advice::new(risk, steps)
}

fn held_by_finalizers(alike: &Alike<'_>, finalizers: &[String], kubectl: &Kubectl) -> Advice {
    let what = "See what set them (under managedFields, the manager of each f:finalizers), and look at its log.";
    let who = step(
        what,
        kubectl.get_pods(alike, &["--show-managed-fields", "-o", "yaml"]),
    );
    let them = alike.them();
    let what = format!(
        "See what still holds {them}; a pod goes by itself with the last one, or at the next run."
    );
    let columns = "custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers";
    let risk = format!(
        "Do not strip {} by hand: what its controller still has to clean up would stay behind, unnoticed.",
        finalizers.join(", ")
    );
    Advice::new(
        risk,
        vec![who, step(what, kubectl.get_pods(alike, &["-o", columns]))],
    )
}

fn leaf_node(alike: &Alike<'_>, node: &str, leaf: &Leaf, kubectl: &Kubectl) -> Advice {
    let look = step(
        "See what this cluster knows about the leaf node.",
        kubectl.command(["describe", "node", node]),
    );
    let unseen = "Do not force-delete it: the pod may be running where this cluster cannot see it, and its owner would \
                  start a second copy.";
    let maker = leaf.maker;
    match leaf.kind {
        LeafKind::Kosmos => kosmos_leaf(alike, node, leaf, kubectl),
        LeafKind::Selected => Advice::new(unseen, vec![look]),
        LeafKind::Virtual => {
            let repair = format!(
                "See why the program that runs the pods of {node} ({maker}) does not report: its process, its \
                 credentials, its provider. When it is back, it ends by itself the pods whose deletion was requested."
            );
            let risk =
                format!("{unseen} When it is back, the node may delete the first copy by name.");
            Advice::new(risk, vec![look, remark(repair)])
        }
        LeafKind::Edge => {
            let repair = format!(
                "See whether the machine {node} runs, and repair its link; its agent ({maker}) then ends the pods \
                 whose deletion was requested."
            );
            Advice::new(unseen, vec![look, remark(repair)])
        }
    }
}

fn kosmos_leaf(alike: &Alike<'_>, node: &str, leaf: &Leaf, kubectl: &Kubectl) -> Advice {
    let look = "See whether the link is cut: while Kosmos renews the lease, it is not.";
    let log = "logs -n kosmos-system deployment/clustertree-cluster-manager --tail=50".split(' ');
    let see =
        "See why Kosmos does not reach the leaf cluster. For the next time, install kosmos-guard.";
    let mut steps = vec![
        step(look, kubectl.command(["describe", "node", node])),
        step(see, kubectl.command(log)),
    ];
    if let Some(cluster) = &leaf.cluster {
        // With an empty kubeconfig kubectl would ask the cluster that it runs in; with one that names a context it does not.
        let begin = [
            r#"( creds=$(mktemp) && trap 'rm -f "$creds"' EXIT INT &&"#,
            Command::NEXT,
        ];
        let get = kubectl.words([
            "get",
            "clusters.kosmos.io",
            cluster,
            "-o",
            "jsonpath={.spec.kubeconfig}",
        ]);
        let check = r#"kubectl --kubeconfig "$creds" config current-context &&"#;
        let check = [
            r#"| base64 -d > "$creds" &&"#,
            Command::NEXT,
            check,
            Command::NEXT,
        ];
        let there = Kubectl::default().get_pods(alike, &["-o", "wide"]).0;
        let owned = |words: &[&str]| {
            words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>()
        };
        let end = owned(&[r#"--kubeconfig "$creds" )"#]);
        let what = format!(
            "Look for {} in leaf cluster {cluster}. If the link is cut from here too, do so from within it.",
            alike.them()
        );
        steps.push(step(
            what,
            Command([owned(&begin), get, owned(&check), there, end].concat()),
        ));
    }
    steps.push(remark(format!(
        "Only if the leaf cluster is lost for good, or its Cluster object deleted: delete node {node}, not its pods. \
         What runs there after all may run on, beside its replacement."
    )));
    let risk = "Do not force-delete it: it most likely runs on in the leaf cluster. A StatefulSet would start a second copy, \
                and Kosmos may never end the first; a ReplicaSet or Job has started its second already; a pod without a \
                controller is lost. Its deletion was requested, so Kosmos ends it when the link is back: choose the moment.";
    Advice::new(risk, steps)
}

/// What to do about a node that was reaped from, or would be: its containers may still be running.
pub fn power_off(name: &str) -> Step {
    remark(format!(
        "If {name} may only be cut off, power it off now: its containers may still be running beside the pods that \
         replace them."
    ))
}

/// What to do about a node, besides its pods. `reaped`: pods of it were, or would be, force-deleted. `dead`: it is not
/// expected back, and nothing holds the run.
pub fn advise_node(
    node: &NodeFacts,
    now: Timestamp,
    policy: &Policy,
    reaped: bool,
    dead: bool,
    attached: usize,
    kubectl: &Kubectl,
) -> Vec<Step> {
    let name = node.name.as_str();
    let mut steps = Vec::new();
    if reaped && signs_of_life(now, policy, node).is_empty() && fenced(now, policy, node).is_none()
    {
        steps.push(power_off(name));
    }
    if attached > 0 && node.out_of_service {
        steps.push(remark(format!(
            "{name} has the taint out-of-service: Kubernetes, from 1.26 on, deletes its Terminating pods and detaches \
             its volumes at once. Remove it when its pods run elsewhere and the machine works again."
        )));
    } else if attached > 0 && dead && !may_live(now, policy, node) {
        let mut taint = kubectl.still_as_judged(node);
        taint.push("&&".to_owned());
        let out_of_service = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
        let plain = kubectl.words(["taint", "nodes", name, out_of_service]);
        taint.extend(plain.iter().cloned());
        let harm = Some(Harm {
            word: "Force-deletes",
            plain: plain.join(" "),
        });
        let what = format!(
            "Volumes still attached to {name}: {attached}. Kubernetes detaches each 6 minutes after its pod is gone, \
             or never if kube-controller-manager runs with --disable-force-detach-on-timeout. Do not delete \
             VolumeAttachments. Set this taint only if the machine is certainly powered off. From 1.26 on, Kubernetes \
             then detaches them at once, and evicts and force-deletes every pod on {name} that does not tolerate the \
             taint, including those that need you. Remove it when the pods run elsewhere and the machine works again."
        );
        steps.push(Step {
            harm,
            ..step(what, Command(taint))
        });
    }
    steps
}

#[cfg(test)]
mod tests;
