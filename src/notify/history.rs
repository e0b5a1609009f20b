//! Notes what a run does, for the next reports.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    cluster::{Api as _, Cluster, Failure},
    facts::{NodeFacts, Ready, Uid},
    history::{self, CONFIG_MAP, LAST_REPORT, Notebook, Noted, Notes, Reaped},
    judge::{Judged, is_attached},
    report::{
        RunRecord, SecondWriter,
        text::{self, Screen},
    },
};

/// How often a note is written again because of other runs. Each of them writes twice.
const MAX_CONFLICTS: usize = 3;

/// The notes that a run left before its deletes.
pub struct Begun {
    book: Notebook,
    /// The run's own notes, by node, each with the note before it.
    own: BTreeMap<Uid, (Option<Noted>, Noted)>,
}

/// Notes the nodes whose pods are about to be deleted, so that a run that is killed leaves a trace.
/// If this fails, the run goes on, and [`after`] tries again.
pub async fn before(cluster: &Cluster, run: &RunRecord<'_>, at: Timestamp) -> Option<Begun> {
    let book = run.notes.as_ref()?;
    let mut own = BTreeMap::new();
    let edit = |notes: &mut Notes| {
        own.clear();
        for node in nodes(run) {
            let before = notes.get(&node.uid).cloned();
            let note = history::begin(notes, node, at).clone();
            own.insert(node.uid.clone(), (before, note));
        }
    };
    let book = write(cluster, run, book.clone(), at, None, edit)
        .await
        .unwrap_or_else(|_| book.clone());
    Some(Begun { book, own })
}

/// Lists the nodes of the pods to be reaped.
fn nodes<'a>(run: &'a RunRecord<'_>) -> impl Iterator<Item = &'a NodeFacts> {
    run.plan
        .reaps()
        .filter_map(|judged| run.facts.known_node(&judged.pod))
        .unique_by(|node| &node.name)
}

/// Notes the outcomes, the nodes whose return this run is the first to tell, and the report of a run that
/// deleted something. `begun` is what [`before`] left.
pub async fn after(
    cluster: &Cluster,
    run: &mut RunRecord<'_>,
    begun: Option<Begun>,
    at: Timestamp,
) {
    let trace = |judged: &Judged| {
        run.outcomes
            .get(&judged.pod.uid)?
            .trace()
            .filter(|trace| trace.may_be_gone())
    };
    let attached = run.facts.attachments.attached();
    let deletes = run.plan.reaps().any(|judged| trace(judged).is_some());
    let namespace = &run.settings.history_namespace;
    let Some(Begun { book, own }) = begun else {
        if deletes {
            let why = format!(
                "Later reports will not know of these deletes: this account can read no ConfigMap {namespace}/{CONFIG_MAP}"
            );
            run.history.unread.get_or_insert(why);
        }
        return;
    };
    let reaped = run
        .plan
        .reaps()
        .filter_map(|judged| {
            let (node, trace) = (judged.pod.node.as_deref()?, trace(judged)?);
            let attached = is_attached(judged, &attached);
            let second = SecondWriter::of(judged, run.facts.known_node(&judged.pod), &attached);
            let pod = Reaped {
                namespace: judged.pod.namespace.clone(),
                name: judged.pod.name.clone(),
                owner_kind: judged
                    .pod
                    .owner
                    .as_ref()
                    .map(|owner| owner.kind.to_string())
                    .filter(|kind| history::is_word(kind)),
                // An attachment that was not read may be there.
                attached: attached.unwrap_or(true),
                shared: second == SecondWriter::AtTheDelete,
                at,
                trace,
            };
            Some((node, pod))
        })
        .into_group_map();
    let edit = |notes: &mut Notes| {
        for node in nodes(run) {
            if let Some(pods) = reaped.get(node.name.as_str()) {
                // The note before the deletes may have failed, or another run may have taken it back.
                history::begin(notes, node, at).add(pods.clone());
            } else if let Some((before, note)) = own.get(&node.uid)
                && notes.get(&node.uid) == Some(note)
            {
                match before {
                    Some(before) => drop(notes.insert(node.uid.clone(), before.clone())),
                    // It may have pods that were noted under another UID of the node.
                    None if note.pods.is_empty() => drop(notes.remove(&node.uid)),
                    None => {}
                }
            }
        }
        run.facts
            .known_nodes()
            .filter(|node| node.out_of_service)
            .filter(|node| node.is_machine_down())
            .for_each(|node| history::note_taint(notes, node, at));
        for (uid, node) in &run.history.tainted {
            match node {
                Some(node) if node.ready != Ready::True => {}
                // It is seen there once more.
                Some(node) if node.out_of_service => {
                    if let Some(noted) = notes.get_mut(uid) {
                        noted.tainted = Some(at);
                    }
                }
                _ => history::forget_taint(notes, uid),
            }
        }
        for node in &run.history.nodes {
            // If another run has reaped there since, the return is not the one that is told.
            if let (Some(told), Some(noted)) = (node.first_told(), notes.get_mut(&node.uid))
                && noted.last_reap.min(run.facts.now) <= node.noted.last_reap
            {
                noted.told = Some(told.clone());
            }
        }
    };
    let document = deletes.then(|| run.document().into_owned());
    let report = document
        .as_ref()
        .map(|it| text::write(it, Screen::default()))
        .map(|text| json!(history::shortened(text)));
    match write(cluster, run, book, at, report, edit).await {
        // Nothing changes any more, so the run reports the same.
        Ok(_) => run.document = document,
        Err(why) => {
            let why = format!(
                "Later reports may not know what this run did: ConfigMap {namespace}/{CONFIG_MAP} could not be written: {why}"
            );
            run.history.unread = Some(why);
        }
    }
}

/// Writes what `edit` changes of the notes, if anything differs. If another run has written meanwhile, they are read again
/// and edited again. Returns the notes as they are then.
async fn write(
    cluster: &Cluster,
    run: &RunRecord<'_>,
    mut book: Notebook,
    at: Timestamp,
    report: Option<Value>,
    mut edit: impl FnMut(&mut Notes),
) -> Result<Notebook, Failure> {
    let namespace = &run.settings.history_namespace;
    let mut conflicts = 0;
    loop {
        let mut notes = book.notes.clone();
        edit(&mut notes);
        history::fit(&mut notes, at);
        let mut data = history::changes(&book.notes, &notes);
        data.extend(
            report
                .iter()
                .map(|report| (LAST_REPORT.to_owned(), report.clone())),
        );
        if data.is_empty() {
            return Ok(book);
        }
        let conflict = match cluster.note(namespace, &book.version, &data).await {
            Ok(version) => return Ok(Notebook { notes, version }),
            Err(failure) if failure.code() == Some(409) && conflicts < MAX_CONFLICTS => failure,
            Err(failure) => return Err(failure),
        };
        conflicts += 1;
        let found = cluster.history(namespace).await?.ok_or(conflict)?;
        (book.notes, _) = history::parse(&found.data);
        book.version = found.metadata.resource_version;
    }
}

#[cfg(test)]
mod tests;
