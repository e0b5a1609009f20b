//! How fast the parts are that only compute: deciding, and reading a saved state. `cargo bench`.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark stops where it cannot go on")]

use std::{hint::black_box, io::Read};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use jiff::{SignedDuration, Timestamp};
use pod_reaper::{
    cli::Cli,
    decide::decide,
    facts::{Lease, NodeFacts, NodeRead, Owner, PodFacts, Ready},
    settings::Settings,
    snapshot::{Pods, Saved},
};

/// Pods of one measurement.
const PODS: u64 = 10_000;
/// Pods of the saved state, of 11 KB each.
const SAVED_PODS: u64 = 2_000;

fn ago(minutes: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 56) - SignedDuration::from_mins(minutes)
}

/// A dead node, and a pod that is to be reaped: the one verdict for which every rule is asked.
fn stuck() -> (NodeRead, PodFacts) {
    let node = NodeFacts {
        name: "ds06".to_owned(),
        uid: "node".to_owned(),
        ready: Ready::Unknown,
        ready_reason: Some("NodeStatusUnknown".to_owned()),
        ready_since: Some(ago(60)),
        hostname: Some("ds06".to_owned()),
        leaf: None,
        control_plane: false,
        opted_out: false,
        lease: Ok(Some(Lease { renewed: Some(ago(60)), duration: SignedDuration::from_secs(40) })),
    };
    let pod = PodFacts {
        namespace: "impala".to_owned(),
        name: "catalogd-0".to_owned(),
        uid: "pod".to_owned(),
        resource_version: "7".to_owned(),
        node: Some("ds06".to_owned()),
        owner: Some(Owner { kind: "StatefulSet".to_owned(), name: "catalogd".to_owned() }),
        controller: None,
        deletion_deadline: ago(30),
        grace_seconds: Some(30),
        finalizers: vec![],
        finished: false,
        mirror: false,
        opted_out: false,
        namespace_opted_out: Ok(false),
        after_reap: None,
        claims: vec![],
    };
    (NodeRead::Known(node), pod)
}

fn deciding(criterion: &mut Criterion) {
    let settings = Settings::from(Cli::try_from_args([std::ffi::OsString::from("pod-reaper")]).unwrap());
    let (node, pod) = stuck();
    let mut group = criterion.benchmark_group("decide");
    group.throughput(Throughput::Elements(PODS));
    group.bench_function("pods to be reaped", |bencher| {
        bencher.iter(|| {
            for _ in 0..PODS {
                black_box(decide(ago(0), &settings.policy, black_box(Some(&node)), black_box(&pod)));
            }
        });
    });
    group.finish();
}

/// A list of living pods, as kubectl prints it.
fn saved() -> String {
    let setting =
        r#"{"name":"SETTING","value":"a value of the length that such values tend to have"},"#.repeat(100);
    let pod = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","namespace":"n","uid":"u","creationTimestamp":"2026-01-31T01:00:00Z"}},
"spec":{{"nodeName":"n","containers":[{{"name":"main","env":[{setting}{{}}]}}]}},"status":{{"phase":"Running"}}}}"#
    );
    let pods = vec![pod; usize::try_from(SAVED_PODS).unwrap()].join(",");
    format!(r#"{{"apiVersion":"v1","items":[{pods}],"kind":"List"}}"#)
}

fn reading(criterion: &mut Criterion) {
    let text = saved();
    let mut group = criterion.benchmark_group("snapshot");
    group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(10);
    group.bench_function("living pods", |bencher| {
        bencher.iter(|| Saved::read(black_box(text.as_bytes()).by_ref(), Pods::Terminating).unwrap());
    });
    group.finish();
}

criterion_group!(all, deciding, reading);
criterion_main!(all);
