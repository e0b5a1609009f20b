//! Notes what a run does, for the next reports.

use itertools::Itertools as _;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Failure},
    facts::NodeFacts,
    history::{self, CONFIG_MAP, LAST_REPORT, Notes, Reaped},
    judge::Judged,
    report::{
        RunRecord,
        text::{self, Screen},
    },
};

/// Notes the nodes whose pods are about to be deleted, so that a run that is killed leaves a trace.
/// Returns the notes as they are then. If this fails, the run goes on, and [`after`] tries again.
pub async fn before(cluster: &Cluster, run: &RunRecord<'_>, at: Timestamp) -> Option<Notes> {
    let known = run.notes.as_ref()?;
    let mut notes = known.clone();
    for node in nodes(run) {
        history::begin(&mut notes, node, at);
    }
    let written = write(cluster, run, known, (notes, at), None).await;
    Some(written.unwrap_or_else(|_| known.clone()))
}

/// Lists the nodes of the pods to be reaped.
fn nodes<'a>(run: &'a RunRecord<'_>) -> impl Iterator<Item = &'a NodeFacts> {
    let nodes = run.plan.reaps();
    let nodes = nodes.filter_map(|judged| run.facts.known_node(&judged.pod));
    nodes.unique_by(|node| &node.name)
}

/// Notes the outcomes, the nodes whose return this run is the first to tell, and the report of a run that
/// deleted something. `begun` are the notes that [`before`] left.
pub async fn after(
    cluster: &Cluster,
    run: &mut RunRecord<'_>,
    begun: Option<Notes>,
    at: Timestamp,
) {
    let trace = |judged: &Judged| run.trace(judged).filter(|trace| trace.may_be_gone());
    let deletes = run.plan.reaps().any(|judged| trace(judged).is_some());
    let namespace = &run.settings.history_namespace;
    let (Some(known), Some(begun)) = (&run.notes, begun) else {
        if deletes {
            let why = format!(
                "Later reports will not know of these deletes: this account can read no ConfigMap {namespace}/{CONFIG_MAP}"
            );
            run.history.unread.get_or_insert(why);
        }
        return;
    };
    let mut notes = begun.clone();
    for node in nodes(run) {
        let here = |judged: &&Judged| judged.pod.node.as_ref() == Some(&node.name);
        let pods = run.plan.reaps().filter(here);
        let pods = pods.filter_map(|judged| Some((judged, trace(judged)?)));
        let pods = pods.map(|(judged, trace)| Reaped {
            namespace: judged.pod.namespace.clone(),
            name: judged.pod.name.clone(),
            owner_kind: judged
                .pod
                .owner
                .as_ref()
                .map(|owner| owner.kind.to_string())
                .filter(|kind| history::is_word(kind)),
            attached: run.may_be_attached(judged),
            at,
            trace,
        });
        let pods = pods.collect_vec();
        if !pods.is_empty() {
            // The note before the deletes may have failed.
            history::begin(&mut notes, node, at).add(pods);
        } else if let Some(noted) = known.get(&node.uid) {
            notes.insert(node.uid.clone(), noted.clone());
        } else {
            notes.remove(&node.uid);
        }
    }
    for node in &run.history.nodes {
        if let (Some(told), Some(noted)) = (node.first_told(), notes.get_mut(&node.uid)) {
            noted.told = Some(told.clone());
        }
    }
    let report = deletes.then(|| text::write(&run.report().document, Screen::default()));
    let report = report.map(|text| json!(history::shortened(text)));
    let written = write(cluster, run, &begun, (notes, at), report).await;
    if let Err(why) = written {
        let why = format!(
            "Later reports may not know what this run did: ConfigMap {namespace}/{CONFIG_MAP} could not be written: {why}"
        );
        run.history.unread = Some(why);
    }
}

/// Writes what differs from the notes `as_they_are`, if anything does. Returns the notes as they are then.
async fn write(
    cluster: &Cluster,
    run: &RunRecord<'_>,
    as_they_are: &Notes,
    (mut notes, at): (Notes, Timestamp),
    report: Option<Value>,
) -> Result<Notes, Failure> {
    history::fit(&mut notes, at);
    let mut data = history::changes(as_they_are, &notes);
    data.extend(report.map(|report| (LAST_REPORT.to_owned(), report)));
    if !data.is_empty() {
        let namespace = &run.settings.history_namespace;
        cluster.note(namespace, &data).await?;
    }
    Ok(notes)
}
