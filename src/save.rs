//! Saves the state of a cluster as a file for `--snapshot`: what the program reads of each object, and nothing else. Each
//! object is written as soon as its page has arrived, so no list is in memory as a whole.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

use serde::Serialize;

use crate::{
    cli::{HistoryPlace, SaveOptions},
    cluster::{Api as _, Cluster, Failure, Of},
    console::{output, terminal::status},
    exit::{CouldNotRun, Exit, Result},
    history::CONFIG_MAP,
    kubernetes::{
        RawAttachment, RawClaim, RawConfigMap, RawDriver, RawLease, RawNamespace, RawNode,
        RawSaved, RawStatefulSet, RawVolume, SAVED, SAVED_VERSION, Shared, WholePod,
    },
    selector::NodeSelectors,
    stop::Stop,
    words::{counted, sanitize},
};

/// Saves the cluster, and says what is in the file.
pub async fn save(options: &SaveOptions, stop: &Stop) -> Result<Exit> {
    let SaveOptions {
        file: path,
        selectors,
        history: HistoryPlace { history_namespace },
        reach,
    } = options;
    let file = create(path)?;
    let saved = stop
        .or_stopped(async {
            let cluster = Cluster::connect(&reach.target, stop).await?;
            let saved = write(&cluster, selectors, history_namespace, file).await?;
            Ok((cluster.name, saved))
        })
        .await;
    status("");
    if saved.is_err() {
        // A part of a state is none.
        let _ = fs::remove_file(path);
    }
    let (cluster, saved) = saved?;
    let path = sanitize(&path.display().to_string());
    let mut lines = vec![format!("Saved {cluster} to {path}")];
    for unread in &saved.unread {
        let cause = sanitize(&unread.cause);
        lines.push(format!("Not read: {}: {cause}", unread.kind));
    }
    if !saved.malformed.is_empty() {
        let objects = counted(saved.malformed.len(), "object", "objects");
        lines.push(format!("Not read: {objects} that are malformed"));
    }
    lines.push(format!("Judge it: pod-reaper --snapshot {path}\n"));
    let said = output::write_text(&lines.join("\n"));
    let is_whole = saved.unread.is_empty() && saved.malformed.is_empty();
    Ok(if is_whole {
        said
    } else {
        said.max(Exit::Incomplete)
    })
}

/// Creates a file that only the user may read.
fn create(path: &Path) -> Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| {
            let name = path.display();
            CouldNotRun::Usage(match error.kind() {
                ErrorKind::AlreadyExists => format!("{name} exists; name another file"),
                _ => format!("{name}: {error}; name a file that can be written"),
            })
        })
}

/// Reads the cluster, and writes it to the file. Returns what the file has. Fails if the nodes could not be read: nothing could be
/// judged.
pub async fn write(
    cluster: &Cluster,
    selectors: &NodeSelectors,
    history_namespace: &str,
    file: File,
) -> Result<RawSaved> {
    let mut saving = Saving {
        cluster,
        selectors,
        saved: RawSaved {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            annotations: selectors.annotations().map(str::to_owned).collect(),
            ..RawSaved::default()
        },
        file,
        end: START.len() as u64,
    };
    let written = saving.file.write_all_at(START.as_bytes(), 0);
    written.map_err(|error| not_written(&error))?;
    // As a run reads them: a StatefulSet after the PVC that it lets go. The Leases come last: the time of the file is theirs.
    if let Some(failure) = saving.list::<RawNode>().await? {
        return Err(cluster.could_not("list nodes", &failure));
    }
    saving.list::<WholePod>().await?;
    saving.list::<RawNamespace>().await?;
    saving.list::<RawAttachment>().await?;
    saving.list::<RawClaim>().await?;
    saving.list::<RawVolume>().await?;
    saving.list::<RawStatefulSet>().await?;
    saving.list::<RawDriver>().await?;
    saving.history(history_namespace).await?;
    saving.list::<RawLease>().await?;
    if saving.saved.time.is_none() {
        let why = "no response of the API server has a Date header, so nothing says when the state was saved";
        return Err(CouldNotRun::Source(why.to_owned()));
    }
    saving.end().map_err(|error| not_written(&error))?;
    Ok(saving.saved)
}

/// The start of the file.
const START: &str = r#"{"apiVersion":"v1","kind":"List","items":["#;

/// A cluster that is being saved.
struct Saving<'a> {
    cluster: &'a Cluster,
    selectors: &'a NodeSelectors,
    saved: RawSaved,
    file: File,
    /// The end of what the file has so far.
    end: u64,
}

/// The part of the file that has one list.
#[derive(Default)]
struct Part {
    bytes: u64,
    objects: usize,
    failed: Option<io::Error>,
}

/// An item of the file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a, T> {
    api_version: &'a str,
    kind: &'a str,
    #[serde(flatten)]
    object: &'a T,
}

impl Saving<'_> {
    /// Saves all objects of a kind. A list that begins again begins with an empty part, and is written over what was there, as
    /// what follows is written over a list that could not be read. Returns why it could not be read, if so.
    async fn list<T: Shared>(&mut self) -> Result<Option<Failure>> {
        let [_, plural] = T::API;
        let add = |part: &mut Part, object: &T| {
            match self.put(self.end + part.bytes, object.clone()) {
                Ok(bytes) => part.bytes += bytes,
                Err(error) => part.failed = Some(error),
            }
            part.objects += 1;
            if part.objects.is_multiple_of(OBJECTS_PER_STATUS) {
                status(&format!("{} {plural}", part.objects));
            }
        };
        match self.cluster.each(Of::All, add).await {
            Ok(listed) => {
                listed
                    .items
                    .failed
                    .map_or(Ok(()), Err)
                    .map_err(|error| not_written(&error))?;
                self.end += listed.items.bytes;
                self.saved.time = listed.date.or(self.saved.time);
                self.saved.add::<T>(listed.malformed);
                Ok(None)
            }
            Err(failure) => {
                self.saved.add_unread::<T>(failure.to_string());
                Ok(Some(failure))
            }
        }
    }

    /// Saves what earlier runs noted.
    async fn history(&mut self, namespace: &str) -> Result<()> {
        match self
            .cluster
            .get::<RawConfigMap>(namespace, CONFIG_MAP)
            .await
        {
            Ok(found) => {
                if let Some((found, _)) = found {
                    self.end += self
                        .put(self.end, found)
                        .map_err(|error| not_written(&error))?;
                }
                self.saved.add::<RawConfigMap>(Vec::new());
            }
            Err(failure) => self.saved.add_unread::<RawConfigMap>(failure.to_string()),
        }
        Ok(())
    }

    /// Writes an object at that place. Returns its length.
    fn put<T: Shared>(&self, at: u64, mut object: T) -> io::Result<u64> {
        object.strip(self.selectors);
        let [path, _] = T::API;
        let api_version = path
            .trim_start_matches("/apis/")
            .trim_start_matches("/api/");
        self.put_item(at, (api_version, T::KIND), &object, ",")
    }

    /// Writes an item on a line of its own, at that place. Returns its length.
    fn put_item(
        &self,
        at: u64,
        (api_version, kind): (&str, &str),
        object: &impl Serialize,
        end: &str,
    ) -> io::Result<u64> {
        let item = Item {
            api_version,
            kind,
            object,
        };
        let mut line = vec![b'\n'];
        serde_json::to_writer(&mut line, &item)?;
        line.extend_from_slice(end.as_bytes());
        self.file.write_all_at(&line, at)?;
        Ok(line.len() as u64)
    }

    /// Writes what the file has, and ends it.
    fn end(&self) -> io::Result<()> {
        let own = (SAVED_VERSION, SAVED);
        let bytes = self.put_item(self.end, own, &self.saved, "\n]}\n")?;
        self.file.set_len(self.end + bytes)
    }
}

/// The number of objects after which the status is written.
const OBJECTS_PER_STATUS: usize = 500;

fn not_written(error: &io::Error) -> CouldNotRun {
    CouldNotRun::Source(format!("the file could not be written: {error}"))
}
