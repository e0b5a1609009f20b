//! The speed of the parts that only compute: deciding, and reading a snapshot. Run it with `cargo bench`.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark stops where it cannot go on"
)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use jiff::Timestamp;
use pod_reaper::{
    cli::Cli,
    decide::{PodContext, ReasonCode},
    facts::{NodeRead, PodFacts},
    settings::Settings,
    source::{Reader, gather, snapshot::Saved},
};
use pod_reaper_test_support::{
    at_once,
    samples::{NOW, list, objects, yaml},
};

/// The number of pods in one measurement.
const PODS: u64 = 10_000;
/// The number of pods in the snapshot, of 11 KB each.
const SAVED_PODS: u64 = 2_000;

fn settings() -> Settings {
    Settings::from(Cli::try_from_args([std::ffi::OsString::from("pod-reaper")]).unwrap())
}

/// A dead node, and a pod that is to be reaped, for which every rule is evaluated. No other verdict needs every rule.
fn stuck() -> (Timestamp, NodeRead, PodFacts) {
    let objects = objects(&yaml(
        "{Node ds06: {}, Namespace impala: {}, Pod impala/catalogd-0: {}}",
    ));
    let now = Some(NOW.parse().unwrap());
    let saved = Saved::read(list(objects).to_string().as_bytes(), now).unwrap();
    let settings = settings();
    let reader = Reader::new(&saved, settings.wanted());
    let mut gathered = at_once(gather(&reader, None)).unwrap();
    (
        gathered.facts.now,
        gathered.facts.nodes.remove("ds06").unwrap(),
        gathered.pods.remove(0),
    )
}

fn deciding(criterion: &mut Criterion) {
    let settings = settings();
    let (now, node, pod) = stuck();
    let verdict = PodContext::new(now, &settings.policy, Some(&node), &pod)
        .decide()
        .code;
    assert_eq!(verdict, ReasonCode::Stuck, "every rule is evaluated");
    let mut group = criterion.benchmark_group("decide");
    group.throughput(Throughput::Elements(PODS));
    group.bench_function("pods to be reaped", |bencher| {
        bencher.iter(|| {
            for _ in 0..PODS {
                let (node, pod) = (black_box(Some(&node)), black_box(&pod));
                black_box(PodContext::new(now, &settings.policy, node, pod).decide());
            }
        });
    });
    group.finish();
}

/// A list of running pods, as kubectl prints it.
fn saved() -> String {
    let setting =
        r#"{"name":"SETTING","value":"a value of the length that such values tend to have"},"#
            .repeat(100);
    let pod = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","namespace":"n","uid":"u","creationTimestamp":"2026-01-31T01:00:00Z"}},
"spec":{{"nodeName":"n","containers":[{{"name":"main","env":[{setting}{{}}]}}]}},"status":{{"phase":"Running"}}}}"#
    );
    let pods = vec![pod; usize::try_from(SAVED_PODS).unwrap()].join(",");
    let node = &objects(&yaml("Node ds05: {ready: 'True', lease: null}"))[0];
    format!(r#"{{"apiVersion":"v1","items":[{node},{pods}],"kind":"List"}}"#)
}

fn reading(criterion: &mut Criterion) {
    let text = saved();
    let mut group = criterion.benchmark_group("snapshot");
    group
        .throughput(Throughput::Bytes(text.len() as u64))
        .sample_size(10);
    group.bench_function("living pods", |bencher| {
        bencher.iter(|| Saved::read(black_box(text.as_bytes()), None).unwrap());
    });
    group.finish();
}

criterion_group!(all, deciding, reading);
criterion_main!(all);
