//! A zone dies in a big cluster.

use std::{collections::BTreeSet, thread};

use serde_json::json;

use crate::support::{
    ControlPlane,
    objects::{self, pod_path},
};

/// Requests at a time while a cluster is built.
const BUILDERS: usize = 4;

/// Makes so many pods on each node, in the namespace `load`, and marks them for deletion: their UIDs. Each is given
/// an environment of `padding` bytes. Nothing but what a run looks at is written.
pub fn pods(cluster: &ControlPlane, nodes: &[(String, usize)], padding: usize) -> BTreeSet<String> {
    objects::namespace(cluster, "load");
    let padding = "x".repeat(padding);
    in_parallel(
        nodes.iter().flat_map(|(node, pods)| (0..*pods).map(move |pod| (node, pod))),
        |(node, pod)| {
            let name = format!("{node}-{pod}");
            let object = json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                "spec": {"nodeName": node, "containers": [{
                    "name": "main", "image": "example/main:1", "env": [{"name": "PADDING", "value": padding}],
                }]},
            });
            let pod = cluster.create("/api/v1/namespaces/load/pods", object);
            cluster.delete(&pod_path("load", &name), json!({"gracePeriodSeconds": 1}));
            crate::uid(&pod)
        },
    )
    .into_iter()
    .collect()
}

/// Does something about each item, several at a time.
fn in_parallel<T: Send, U: Send>(items: impl Iterator<Item = T>, act: impl Fn(T) -> U + Sync) -> Vec<U> {
    let items = items.collect::<Vec<_>>();
    let mut queues = (0..BUILDERS).map(|_| Vec::new()).collect::<Vec<_>>();
    for (place, item) in items.into_iter().enumerate() {
        queues[place % BUILDERS].push(item);
    }
    thread::scope(|scope| {
        let act = &act;
        let builders =
            queues.into_iter().map(|queue| scope.spawn(move || queue.into_iter().map(act).collect()));
        let builders = builders.collect::<Vec<thread::ScopedJoinHandle<'_, Vec<U>>>>();
        builders.into_iter().flat_map(|builder| builder.join().expect("it does not panic")).collect()
    })
}
