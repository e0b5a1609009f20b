//! What a person has to do about a pod that the program leaves to them: what is at risk, and the commands, in order.
//!
//! What needs a decision gets a line `kubectl annotate`, whose value is the time of the report: the next run judges
//! everything anew, and does it where the answer still belongs to the same failure. No command destroys anything by itself,
//! the out-of-service taint aside, which is bound to the node as it was judged.

use std::{collections::BTreeMap, fmt};

use itertools::Itertools as _;
use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::{
    decide::{
        Answer, Case, ConfinedClaim, Failure, GIVE_UP, POWERED_OFF, PinnedClaim, Policy, REAP,
        ReasonCode, Ties, UnverifiedClaim, Verdict,
    },
    facts::{ClusterFacts, NodeFacts, NodeRead, PodFacts, Ready},
    limits::{Hold, Judged},
    selector::{Target, is_name},
    words::natural,
};

/// What a person should know and do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advice {
    /// The risk, in a line.
    pub risk: Option<String>,
    /// What to do, in order.
    pub steps: Vec<Step>,
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
    /// A word for what that takes away for good, where it does.
    #[serde(skip)]
    pub harm: Option<&'static str>,
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
        let lines = self.lines().map(|words| words.join(" ")).collect_vec();
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
    /// The options that point at the cluster.
    fn target(&self) -> Vec<String> {
        let mut options = Vec::new();
        if let Some(kubeconfig) = &self.0.kubeconfig {
            let kubeconfig = quoted(&kubeconfig.to_string_lossy());
            options.extend(["--kubeconfig".to_owned(), kubeconfig]);
        }
        if let Some(context) = &self.0.context {
            options.extend(["--context".to_owned(), quoted(context)]);
        }
        options
    }

    fn words<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut all = vec!["kubectl".to_owned()];
        all.extend(self.target());
        all.extend(words.into_iter().map(quoted));
        all
    }

    /// A command whose end says which cluster: what it does to what comes first.
    fn ends_with_target<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut all = Self::default().words(words);
        all.extend(self.target());
        Command(all)
    }

    /// Takes the annotation of an answer away.
    pub fn withdraw(&self, answer: &Answer, namespace: &str) -> Command {
        let Answer {
            annotation,
            on,
            name,
            ..
        } = answer;
        let key = format!("{annotation}-");
        let within = ["-n", namespace].into_iter().filter(|_| *on != "node");
        let words = ["annotate", on, name].into_iter().chain(within);
        self.ends_with_target(words.chain([key.as_str()]))
    }

    fn command<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        Command(self.words(words))
    }

    /// Holds while the node is the one that was judged, and its Ready has not changed since.
    fn still_as_judged(&self, node: &NodeFacts) -> Vec<String> {
        let status = r#"jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}"#;
        let mut judged = node.uid.to_string();
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
}

/// Pods of one namespace to which the same advice is given, at least one; their node, where there is one, is the same.
struct Alike<'a> {
    all: &'a [&'a Judged],
    first: &'a Judged,
    facts: &'a ClusterFacts,
    policy: &'a Policy,
    kubectl: &'a Kubectl,
}

/// What stands against asking for an answer, as a phrase.
fn against(judged: &Judged, failure: &Failure<'_>) -> Option<String> {
    let pod = &judged.pod;
    let claims = pinned(judged);
    let asked = claims
        .clone()
        .map(|claim| claim.claim.as_str())
        .collect_vec();
    let of_objects = [pod.namespace.as_str(), &pod.name, &failure.node.name];
    if !asked.iter().copied().chain(of_objects).all(is_name) {
        return Some("one of the names is not one that an API server gives".to_owned());
    }
    let mut doubts = claims.filter_map(|claim| claim.doubt.as_ref());
    let doubt = doubts.find(|doubt| doubt.proved);
    let inert = failure
        .would_be_inert(&asked)
        .filter(|_| !pod.is_supposed());
    inert.or(doubt.map(|doubt| doubt.why.clone()))
}

/// The claims that a person is asked to give up with the pod: those that nothing gives up already.
fn pinned(judged: &Judged) -> impl Iterator<Item = &PinnedClaim> + Clone {
    let claims = judged.reason.ties.pinned.iter();
    claims.filter(|claim| claim.given_up.is_err())
}

/// What people would call one workload: its owner, or the series of numbered owners that it is of, which make equal claims.
fn workload(pod: &PodFacts) -> Option<(&str, &str, usize, Option<&str>)> {
    let owner = pod.workload.as_ref().or(pod.owner.as_ref())?;
    let alone = (owner.kind.as_str(), owner.name.as_str(), 0, None);
    let series = || {
        let (stem, number) = owner.name.rsplit_once('-')?;
        let digits = !number.is_empty() && number.bytes().all(|letter| letter.is_ascii_digit());
        let templates = pod.templates.as_deref()?;
        digits.then_some((owner.kind.as_str(), stem, number.len(), Some(templates)))
    };
    Some(series().unwrap_or(alone))
}

/// Puts the pods of `all` that need a person together where they share what there is to do, by their places: those of one
/// reason, namespace, node and workload.
pub fn alike(all: &[Judged], facts: &ClusterFacts, policy: &Policy) -> Vec<Vec<usize>> {
    let mut groups = Vec::<Vec<usize>>::new();
    let mut groups_by_key = BTreeMap::new();
    for (place, judged) in all
        .iter()
        .enumerate()
        .filter(|(_, judged)| judged.verdict() == Verdict::Manual)
    {
        let pod = &judged.pod;
        let decides = judged.reason.asks_a_person();
        // What is said of volumes and owners differs in their names alone.
        let says = Some(judged.sentence()).filter(|_| !decides);
        let of = decides.then(|| {
            let case = Case::of(facts, policy, pod);
            let others = case
                .left_to_a_person()
                .into_iter()
                .map(|reason| reason.code);
            let against = case.failure().and_then(|failure| against(judged, &failure));
            (workload(pod), others.collect_vec(), against)
        });
        let key = (judged.code(), &pod.namespace, &pod.node, says, of);
        let group = *groups_by_key.entry(key).or_insert(groups.len());
        groups.resize(groups.len().max(group + 1), Vec::new());
        groups[group].push(place);
    }
    groups
}

/// A report that is newer asks anew.
const OVERWRITE: &str = "--overwrite";

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
    let Some(&first) = all.first() else {
        return Advice::default();
    };
    let alike = Alike {
        all,
        first,
        facts,
        policy,
        kubectl,
    };
    let failure = Case::of(facts, policy, &first.pod).failure();
    let failure = match (first.reason.verdict(), failure) {
        (Verdict::Manual, Some(failure)) if first.reason.asks_a_person() => failure,
        (Verdict::Manual, _) => return alike.repair(),
        _ => return Advice::default(),
    };
    let held = match hold.map(|hold| hold.limit.code) {
        Some(ReasonCode::MassOutage) => {
            "while so many nodes are NotReady: find out first what they have in common"
        }
        Some(_) => "while it is not known how many nodes are NotReady: run it again",
        None if failure.may_live() => {
            "while the node is alive, or may be: repair it, or power it off"
        }
        None => {
            let (risk, steps) = alike.ask(&failure);
            let risk = Some(risk.join(" ")).filter(|risk| !risk.is_empty());
            return Advice { risk, steps };
        }
    };
    Advice {
        risk: None,
        steps: vec![remark(format!("No answer is asked for {held}."))],
    }
}

impl Step {
    /// Whether it is a line by which a person answers.
    pub fn asks(&self) -> bool {
        let words = self.command.iter().flat_map(|command| &command.0);
        words.clone().any(|word| word == "annotate") && words.clone().any(|word| word == OVERWRITE)
    }
}

/// How to have a run at once, which acts on answers; said once. The name is this report's own: pasted twice, it is refused.
pub fn run_now(now: Timestamp, kubectl: &Kubectl) -> Step {
    let name = now.strftime("answers-%Y%m%d-%H%M%S").to_string();
    let from = "--from=cronjob/pod-reaper";
    let create = ["create", "job", "-n", "pod-reaper", from, &name];
    step(
        "The next run acts on what you answer, where it still belongs to the same failure. To have one at once:",
        kubectl.ends_with_target(create),
    )
}

impl Alike<'_> {
    fn pods(&self) -> impl Iterator<Item = &PodFacts> {
        self.all.iter().map(|judged| &judged.pod)
    }

    fn namespace(&self) -> &str {
        &self.first.pod.namespace
    }

    /// "the pod", or "the pods".
    fn them(&self) -> &'static str {
        if self.all.len() == 1 {
            "the pod"
        } else {
            "the pods"
        }
    }

    fn get_pods(&self, kubectl: &Kubectl, options: &[&str]) -> Command {
        let names = self.pods().map(|pod| pod.name.as_str());
        let words = ["get", "pod"]
            .into_iter()
            .chain(names)
            .chain(["-n", self.namespace()]);
        kubectl.command(words.chain(options.iter().copied()))
    }

    /// The line by which a person answers.
    fn answer(&self, on: &str, names: Vec<&str>, annotation: &str) -> Command {
        let at = self.facts.now.strftime("%FT%TZ");
        let answer = format!("{annotation}={at}");
        let within = ["-n", self.namespace()]
            .into_iter()
            .filter(|_| on != "node");
        let words = ["annotate", on].into_iter().chain(names).chain(within);
        let kubectl = self.kubectl;
        kubectl.ends_with_target(words.chain([answer.as_str(), OVERWRITE]))
    }

    /// Asks for the answers that let the pods go: the risks, and the steps.
    fn ask(&self, failure: &Failure<'_>) -> (Vec<String>, Vec<Step>) {
        let (mut risks, mut steps) = (Vec::new(), Vec::new());
        let node = &failure.node.name;
        if let Some(why) = against(self.first, failure) {
            let no = format!("No answer is asked for: {why}. docs/by-hand.md has the steps.");
            return (risks, vec![remark(no)]);
        }
        let reasons = Case::of(self.facts, self.policy, &self.first.pod).left_to_a_person();
        let is = |code| reasons.iter().any(|reason| reason.code == code);
        let (confined, unverified) = (
            is(ReasonCode::VolumeConfined),
            is(ReasonCode::VolumeUnverified),
        );
        if confined {
            steps.extend(self.volume_confined());
        }
        if unverified {
            steps.extend(self.volume_unverified());
            risks.push(format!(
                "If a volume is on {node}, the replacement waits for that node for ever."
            ));
        }
        // No answer lets a claim go with its pod that may be wanted.
        let kept = confined || unverified;
        if kept && self.pods().any(PodFacts::may_own_a_claim) {
            steps.push(remark(
                "No answer is asked for: the pod owns a claim, or may, which would go with it. docs/by-hand.md has the steps.",
            ));
            return (risks, steps);
        }
        if is(ReasonCode::SharedDisk) {
            risks.push(format!(
                "If {node} still runs, its machine and the replacement's would write to one disk at once, which destroys \
                 its data."
            ));
        }
        if is(ReasonCode::SharedDisk) || unverified {
            let is_open = |pod| {
                let pod = Some(pod);
                Failure { pod, ..*failure }.fenced().is_none()
            };
            if self.pods().any(is_open) {
                steps.push(self.powered_off(node));
            }
        }
        if is(ReasonCode::OwnerKind) {
            risks.push(format!(
                "If {node} is only cut off, what it ran may still be running there, and a replacement would be a second \
                 copy: make sure that the machine is powered off."
            ));
        }
        if kept || is(ReasonCode::OwnerKind) {
            let them = self.them();
            let names = self.pods().map(|pod| pod.name.as_str()).collect();
            steps.push(step(
                format!("Let {them} go; every claim is kept. A run then does it."),
                self.answer("pod", names, REAP),
            ));
        }
        if pinned(self.first).next().is_some() {
            risks.push(format!(
                "If {node} can come back, wait for it: what it ran then starts again, with its data."
            ));
            steps.push(self.give_up(node));
        }
        if self.pods().any(|pod| pod.controller.is_none()) {
            let them = self.them();
            risks.push(format!(
                "Nothing brings {them} back: there is no controller."
            ));
        }
        (risks, steps)
    }

    /// Asks to give up the claims that bind the pods to `node`.
    fn give_up(&self, node: &str) -> Step {
        let claims = self.all.iter().flat_map(|judged| pinned(judged));
        let mut names = claims
            .clone()
            .map(|claim| claim.claim.as_str())
            .collect_vec();
        names.sort_by_cached_key(|name| natural(name));
        names.dedup();
        let mut volumes = BTreeMap::<_, Vec<_>>::new();
        for claim in claims.clone() {
            let policy = claim.reclaim_policy.as_deref();
            volumes.entry(policy).or_default().push(&*claim.volume);
        }
        let is_lost = volumes.keys().any(|policy| *policy != Some("Retain"));
        let mut lost = volumes.into_iter().map(|(policy, volumes)| {
            let data = format!("the data of {}", named("volume", &volumes));
            match policy {
                Some("Retain") => {
                    format!("{data} stays on {node}'s disk (policy Retain), but the new pod starts without it")
                }
                Some(policy) => format!("{data} is lost for good (policy {policy})"),
                None => format!("{data} must be considered lost (it names no reclaim policy)"),
            }
        });
        let lost = lost.join("; ");
        let doubt = claims
            .clone()
            .find_map(|claim| claim.doubt.as_ref())
            .map_or_else(String::new, |doubt| {
                format!(
                    " Whether it would come back is not known ({}): the run asks again.",
                    doubt.why
                )
            });
        let what = format!(
            "Give up {}: {lost}. A run then deletes {} with {}, and {}, empty.{doubt}",
            named("claim", &names),
            if names.len() == 1 { "it" } else { "them" },
            self.them(),
            if self.all.len() == 1 {
                "its StatefulSet creates both again"
            } else {
                "their StatefulSets create them all again"
            },
        );
        let harm = is_lost.then_some("Destroys data");
        Step {
            harm,
            ..step(what, self.answer("pvc", names, GIVE_UP))
        }
    }

    /// Asks whether `node` is off: in one step, so that nobody says so who was not told to see to it.
    fn powered_off(&self, node: &str) -> Step {
        let what = format!(
            "Power {node} off, or cut off its disks, and check that at the machine itself, not by what the cluster says: what \
             still runs there would write to the same disks. Then say so, and a run takes what waits for that. Where fencing is \
             automatic, have it mark the node (annotation fencing/state=fenced, or what --fenced-node-selector selects) and \
             unmark it when it is back."
        );
        step(what, self.answer("node", vec![node], POWERED_OFF))
    }

    /// The claims that each pod is left to a person for.
    fn ties(&self) -> impl Iterator<Item = Ties> {
        let reasons = self
            .pods()
            .flat_map(|pod| Case::of(self.facts, self.policy, pod).left_to_a_person());
        reasons.map(|reason| reason.ties)
    }

    fn volume_confined(&self) -> Vec<Step> {
        let see = self.ties().flat_map(|ties| ties.confined).map(|it| {
            let ConfinedClaim {
                claim,
                volume,
                place,
            } = it;
            step(
                format!("See where the data of claim {claim} is: volume {volume} needs {place}."),
                self.kubectl.command(["describe", "pv", &volume]),
            )
        });
        let bring = remark(format!(
            "If the data is elsewhere, bring up a node that the volume allows: the next run then takes {}. A replacement would \
             wait for such a node.",
            self.them()
        ));
        see.chain([bring]).collect()
    }

    fn volume_unverified(&self) -> Vec<Step> {
        let see = self.ties().flat_map(|ties| ties.unverified).map(|it| {
            let UnverifiedClaim {
                claim,
                missing_volume,
                cause,
            } = it;
            let what = match missing_volume {
                Some(volume) => format!(
                    "Volume {volume} of claim {claim} does not exist: bring it back, or a new pod cannot start."
                ),
                None => format!("See claim {claim}, and where its volume is: {cause}."),
            };
            let get = ["get", "pvc", &claim, "-n", self.namespace(), "-o", "wide"];
            step(what, self.kubectl.command(get))
        });
        see.collect()
    }

    /// What to look at where there is nothing to decide: something has to be repaired, as the reason itself advises.
    fn repair(&self) -> Advice {
        let Judged { pod, reason, .. } = self.first;
        let get = |options: &[&str]| self.get_pods(self.kubectl, options);
        let node = pod.node.as_deref().unwrap_or_default();
        let describe = self.kubectl.command(["describe", "node", node]);
        let mut steps = match reason.code {
            ReasonCode::Finalizers | ReasonCode::AlreadyForced => vec![
                step(
                    "See what set the finalizers (under managedFields, the manager of each f:finalizers), and look at its log.",
                    get(&["--show-managed-fields", "-o", "yaml"]),
                ),
                step(
                    "See what is left of them; a pod goes by itself with the last one, or at the next run.",
                    get(&[
                        "-o",
                        "custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers",
                    ]),
                ),
            ],
            _ => vec![step(
                "See the conditions of the node, and when its lease was renewed.",
                describe,
            )],
        };
        if reason.code == ReasonCode::KosmosLeaf {
            let log = "logs -n kosmos-system deployment/clustertree-cluster-manager --tail=50";
            let see = "See why Kosmos does not reach the leaf cluster. For the next time, install kosmos-guard.";
            steps.push(step(see, self.kubectl.command(log.split(' '))));
            let known = self.facts.node_of(pod).and_then(NodeRead::known);
            let cluster = known.and_then(|node| node.leaf.as_ref()?.cluster.as_deref());
            steps.extend(cluster.map(|cluster| self.in_leaf_cluster(cluster)));
        }
        Advice {
            risk: Some(reason.code.advice().to_owned()),
            steps,
        }
    }

    fn in_leaf_cluster(&self, cluster: &str) -> Step {
        let kubeconfig = "jsonpath={.spec.kubeconfig}";
        let get = ["get", "clusters.kosmos.io", cluster, "-o", kubeconfig];
        let there = self.get_pods(&Kubectl::default(), &["-o", "wide"]);
        // With an empty kubeconfig kubectl would ask the cluster that it runs in; with one that names a context it does not.
        let words = [
            vec![
                r#"( creds=$(mktemp) && trap 'rm -f "$creds"' EXIT INT &&"#.to_owned(),
                Command::NEXT.to_owned(),
            ],
            self.kubectl.words(get),
            vec![
                r#"| base64 -d > "$creds" &&"#.to_owned(),
                Command::NEXT.to_owned(),
                r#"kubectl --kubeconfig "$creds" config current-context &&"#.to_owned(),
                Command::NEXT.to_owned(),
            ],
            there.0,
            vec![r#"--kubeconfig "$creds" )"#.to_owned()],
        ];
        let what = format!(
            "Look for {} in leaf cluster {cluster}. If the link is cut from here too, do so from within it.",
            self.them()
        );
        step(what, Command(words.concat()))
    }
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

/// How to see what the nodes that are not Ready have in common.
pub fn compare_nodes(kubectl: &Kubectl) -> Step {
    let labels = "topology.kubernetes.io/zone,node.kubernetes.io/instance-type";
    step(
        "See what the NotReady nodes have in common:",
        kubectl.command(["get", "nodes", "-o", "wide", "-L", labels]),
    )
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
    failure: &Failure<'_>,
    reaped: bool,
    dead: bool,
    attached: usize,
    kubectl: &Kubectl,
) -> Vec<Step> {
    let node = failure.node;
    let name = node.name.as_str();
    let mut steps = Vec::new();
    if reaped && failure.signs_of_life().is_empty() && failure.fenced().is_none() {
        steps.push(power_off(name));
    }
    if attached > 0 && node.out_of_service {
        steps.push(remark(format!(
            "{name} has the taint out-of-service: Kubernetes, from 1.26 on, deletes its Terminating pods and detaches \
             its volumes at once. Remove it when its pods run elsewhere and the machine works again."
        )));
    } else if attached > 0 && dead && !failure.may_live() {
        let mut taint = kubectl.still_as_judged(node);
        taint.push("&&".to_owned());
        let out_of_service = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
        let plain = kubectl.words(["taint", "nodes", name, out_of_service]);
        taint.extend(plain.iter().cloned());
        let harm = Some("Force-deletes");
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
