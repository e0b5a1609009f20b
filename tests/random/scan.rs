//! The scan reads little, and must lead to the same verdicts as reading everything.
//!
//! Random clusters are read twice: by the scan, from the simulated API server, and completely, as a snapshot of the same objects.
//! Both must lead to the same verdicts for the same reasons.

use crate::prelude::*;
use pod_reaper::{
    cli::PodName,
    cluster::Cluster,
    decide::{Reason, Tie, TieKind, Verdict},
    questions::explain,
    report::{Explained, Report},
    source::Store,
};
use pod_reaper_test_support::{at_once, samples};

/// A cluster, and the maximum number of objects on a page.
#[derive(Debug, Clone)]
struct Case {
    cluster: Objects,
    clock_is_wrong: Option<bool>,
    page: usize,
}

/// (namespace, name, node, reason) of each pod, sorted.
type Verdicts = Vec<(String, String, Option<String>, String)>;

fn verdicts(plan: &Plan) -> Verdicts {
    let verdict = |judged: &Judged| {
        let Judged { pod, reason, limit } = judged;
        let mut reason = reason.clone();
        // The API server refuses a selector in its own words.
        let is_unverified = |tie: &&mut Tie| matches!(tie.kind, TieKind::Unverified);
        for tie in reason.ties.all.iter_mut().filter(is_unverified) {
            let cause = &mut tie.why;
            cause.truncate(cause.find(": ").unwrap_or(cause.len()));
            reason.sentence.clear();
        }
        let why = limit
            .as_ref()
            .map_or_else(|| format!("{reason:?}"), |limit| format!("{limit:?}"));
        let (namespace, name, node) = (&pod.namespace, &pod.name, &pod.node);
        (namespace.clone(), name.clone(), node.clone(), why)
    };
    let mut verdicts = plan.pods.iter().map(verdict).collect_vec();
    verdicts.sort();
    verdicts
}

pub fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap()
}

/// A client of the server, and a guard that keeps the client's run going.
pub fn client(server: &Server<Objects>) -> (impl Drop + use<>, Cluster) {
    let (sender, stop) = Stop::manual(Duration::from_mins(8));
    (sender, Cluster::new(server.client(), stop))
}

async fn scanned(cluster: &Cluster, settings: &Settings) -> (ClusterFacts, Plan) {
    let gathered = Store::new(cluster, settings.wanted()).gather(None).await;
    planned(gathered.unwrap(), settings)
}

/// The facts that a run gathers from a file.
pub fn gathered_from(saved: &Saved, settings: &Settings) -> Gathered {
    at_once(Store::new(saved, settings.wanted()).gather(None)).unwrap()
}

pub fn planned(
    Gathered { facts, pods, .. }: Gathered,
    settings: &Settings,
) -> (ClusterFacts, Plan) {
    let plan = settings.limit(&facts, settings.decide(&facts, pods));
    (facts, plan)
}

fn by_scan(case: &Case, settings: &Settings) -> (ClusterFacts, Plan) {
    let server = Server::new(case.cluster.clone()).page(case.page);
    let found = runtime().block_on(async {
        let (_going_on, cluster) = client(&server);
        scanned(&cluster, settings).await
    });
    assert_eq!(server.lock().not_understood, Vec::<String>::new());
    found
}

/// Uses the clock of `scanned`, because with `--now` a run does not question the clock of a file.
fn by_reading_all(case: &Case, settings: &Settings, scanned: &ClusterFacts) -> Verdicts {
    let saved = Saved::read(
        case.cluster.saved().as_bytes(),
        Options {
            now: Some(start()),
            ..Options::default()
        },
    );
    let Gathered {
        mut facts, pods, ..
    } = gathered_from(&saved.unwrap(), settings);
    facts.clock.clone_from(&scanned.clock);
    let plan = settings.limit(&facts, settings.decide(&facts, pods));
    // A snapshot has pods of nodes that are gone. A scan without `--all` does not read those pods.
    let there = |node: &Option<String>| {
        let node = node.as_ref().and_then(|name| facts.nodes.get(name));
        node.is_some_and(|node| node.known().is_some())
    };
    let verdicts = verdicts(&plan).into_iter();
    verdicts
        .filter(|(_, _, node, _)| settings.all || there(node))
        .collect()
}

/// Checks `property` on random clusters.
fn for_every_cluster(cases: u64, mut property: impl FnMut(&Case, Settings)) -> bool {
    for_every_world(cases, |dice, world, settings| {
        let page = 1 + dice.below(3);
        let cluster = Objects::new(start(), world.all());
        let clock_is_wrong = world.clock_is_wrong();
        property(
            &Case {
                cluster,
                clock_is_wrong,
                page,
            },
            settings,
        );
    })
}

/// Checks `property` on random clusters that can change.
pub fn for_every_world(cases: u64, mut property: impl FnMut(&mut Dice, World, Settings)) -> bool {
    for_every_seed(cases, |seed| {
        let mut dice = Dice::new(seed);
        let mut args = options::args(&mut dice);
        // The user's node selectors change what must be read about the nodes.
        let selects = dice.permille(500);
        args.retain(|arg| selects || !arg.contains("-node-selector="));
        let settings = options::settings(&args);
        let mut world = World::random(&mut dice);
        let terms = world
            .volumes
            .values_mut()
            .flat_map(|it| &mut it.facts.affinity);
        let asked = terms.flat_map(|term| &mut term.requirements);
        for value in asked.flat_map(|asked| &mut asked.values) {
            // The API server refuses to select a value that no label can have. A file does not.
            *value = value.trim_start_matches('-').to_owned();
        }
        property(&mut dice, world, settings);
    })
}

#[test]
fn the_scan_chooses_what_reading_everything_chooses() {
    let mut counts = SEEN.map(|(what, is)| (what, is, 0));
    let enough = for_every_cluster(2_000, |case, mut settings| {
        // A snapshot has more pods, which a cap would count.
        settings.limits.max_deletes = None;
        let (facts, plan) = by_scan(case, &settings);
        let scanned = verdicts(&plan);
        let read = by_reading_all(case, &settings, &facts);
        let errors = &facts.errors;
        assert_eq!(
            errors.len(),
            usize::from(facts.clock.is_some()),
            "{errors:?}"
        );
        let reaps = |judged: &Judged| judged.reason.code.verdict() == Verdict::Reap;
        if let Some(wrong) = case.clock_is_wrong.filter(|_| plan.pods.iter().any(reaps)) {
            assert_eq!(facts.clock.is_some(), wrong, "{:?}", facts.clock);
        }
        assert_eq!(&scanned, &read);
        for (_, is, seen) in &mut counts {
            let such = plan.pods.iter().filter(|judged| is(&judged.reason));
            *seen += such.count();
        }
    });
    // Without many verdicts of each kind, the test would prove little.
    let many = counts.iter().all(|(.., seen)| *seen > 5);
    let counts = counts.map(|(what, _, seen)| (what, seen));
    assert!(!enough || many, "{counts:?}");
}

type Is = fn(&Reason) -> bool;

/// Reasons that depend on facts that the scan requests and a snapshot already has.
const SEEN: [(&str, Is); 8] = [
    ("no controller", |reason| notes(reason, "nothing brings")),
    ("waits", |reason| notes(reason, "its replacement waits")),
    ("Ready", |reason| reason.code == ReasonCode::NodeReady),
    ("alive", |reason| reason.code == ReasonCode::KubeletAlive),
    ("local", |reason| reason.code == ReasonCode::LocalVolume),
    ("unverified", |reason| {
        reason.code == ReasonCode::VolumeUnverified
    }),
    ("shared", |reason| reason.code == ReasonCode::SharedDisk),
    ("opted out", |reason| reason.code == ReasonCode::OptedOut),
];

fn notes(reason: &Reason, begin: &str) -> bool {
    let mut notes = reason.notes.iter();
    reason.code == ReasonCode::Stuck && notes.any(|note| note.starts_with(begin))
}

/// Compares the explanation of each pod with what a run decides, including its limits.
fn differences(plan: &Plan, explanation: impl Fn(&PodName) -> Report) -> Vec<String> {
    let difference = |judged: &Judged| {
        let asked = PodName {
            namespace: judged.pod.namespace.clone(),
            name: judged.pod.name.clone(),
        };
        let mut report = explanation(&asked);
        let Explained { rules, limits, .. } = report.explained.unwrap();
        let pod = report.pods.remove(0);
        let decides = rules.into_iter().chain(limits).filter(|rule| rule.decides);
        let decides = decides.map(|rule| rule.seen).collect_vec();
        let explained = (pod.verdict, pod.reason, pod.detail);
        let says = judged.sentence();
        let run = (Some(judged.verdict()), Some(judged.code()), says.clone());
        (explained != run || decides != [says])
            .then(|| format!("{asked}: {run:?}, explained is {explained:?}, by {decides:?}"))
    };
    plan.pods.iter().filter_map(difference).collect()
}

#[test]
fn what_is_explained_is_what_a_run_decides() {
    let (mut over_cap, mut held) = (0, 0);
    let enough = for_every_cluster(800, |case, settings| {
        let settings = &settings;
        let runtime = runtime();
        let _entered = runtime.enter();
        let server = Server::new(case.cluster.clone()).page(case.page);
        let (_going_on, cluster) = client(&server);
        let (_, plan) = runtime.block_on(scanned(&cluster, settings));
        let on_cluster = |asked: &PodName| {
            runtime
                .block_on(explain::run_on((&cluster).into(), settings, asked))
                .unwrap()
        };
        assert_eq!(differences(&plan, on_cluster), Vec::<String>::new());

        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, case.cluster.saved()).unwrap();
        let task = Task::Audit {
            snapshot: file.path().to_owned(),
            now: Some(start()),
        };
        let audit = Settings {
            task,
            ..settings.clone()
        };
        let saved = Saved::read(
            case.cluster.saved().as_bytes(),
            Options {
                now: Some(start()),
                ..Options::default()
            },
        );
        let saved = gathered_from(&saved.unwrap(), &audit);
        let (_, of_file) = planned(saved, &audit);
        let (_sender, stop) = Stop::manual(Duration::from_mins(8));
        let on_file = |asked: &PodName| {
            runtime
                .block_on(explain::run(&audit, asked, &stop))
                .unwrap()
        };
        assert_eq!(differences(&of_file, on_file), Vec::<String>::new());

        let codes = plan.pods.iter().map(Judged::code);
        let limited = |code: ReasonCode| codes.clone().filter(|found| *found == code).count();
        over_cap += limited(ReasonCode::OverCap);
        held += limited(ReasonCode::MassOutage);
    });
    assert!(
        !enough || over_cap > 0 && held > 5,
        "{over_cap} over the cap, {held} held"
    );
}

#[test]
fn a_pod_is_explained_as_it_is_where_the_cache_is_behind() {
    let cluster = |more: &str| {
        let described = "{Node n1: {}, Node n2: {ready: 'True'}, Namespace shop: {},
            Pod shop/db-0: {spec: {nodeName: n1}, metadata: {annotations: MORE}}}";
        samples::objects(&samples::yaml(&described.replace("MORE", more)))
    };
    let now = samples::NOW.parse().unwrap();
    let mut objects = Objects::new(now, cluster("{pod-reaper.io/skip: 'true'}"));
    objects.cached = Some(cluster("{}"));
    runtime().block_on(async {
        let settings = Settings::from(Cli::try_from_args(["pod-reaper".into()]).unwrap());
        let (_going_on, cluster) = client(&Server::new(objects));
        // The API server would refuse the run's delete, because the pod has another version.
        let (_, plan) = scanned(&cluster, &settings).await;
        assert_eq!(plan.pods[0].code(), ReasonCode::Stuck);
        let asked = PodName {
            namespace: "shop".to_owned(),
            name: "db-0".to_owned(),
        };
        let explained = explain::run_on((&cluster).into(), &settings, &asked)
            .await
            .unwrap();
        assert_eq!(explained.pods[0].reason, Some(ReasonCode::OptedOut));
    });
}
