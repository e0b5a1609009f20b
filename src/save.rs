//! Saves the state of a cluster as a file for `--snapshot`: what the program reads of each object, and nothing else. Each
//! object is written as soon as its page has arrived, so no list is in memory as a whole.

use std::{
    cell::RefCell,
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, ErrorKind, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
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
        file: RefCell::new(Output {
            to: BufWriter::new(file),
            at: 0,
            failed: None,
        }),
    };
    let start = r#"{"apiVersion":"v1","kind":"List","items":["#;
    saving.file.get_mut().write(0, start.as_bytes());
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
    let Saving { saved, file, .. } = saving;
    if saved.time.is_none() {
        let why = "no response of the API server has a Date header, so nothing says when the state was saved";
        return Err(CouldNotRun::Source(why.to_owned()));
    }
    file.into_inner().end(&saved)?;
    Ok(saved)
}

/// A cluster that is being saved.
struct Saving<'a> {
    cluster: &'a Cluster,
    selectors: &'a NodeSelectors,
    saved: RawSaved,
    file: RefCell<Output>,
}

/// The part of the file that has one list.
#[derive(Default)]
struct Part {
    bytes: u64,
    objects: usize,
}

/// The file, and the place in it.
struct Output {
    to: BufWriter<File>,
    at: u64,
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
    /// Saves all objects of a kind. A list that begins again begins with an empty part, and is written over what was there. Returns
    /// why it could not be read, if so.
    async fn list<T: Shared>(&mut self) -> Result<Option<Failure>> {
        let start = self.file.get_mut().at;
        let [_, plural] = T::API;
        let add = |part: &mut Part, object: &T| {
            part.bytes += self.put(start + part.bytes, object.clone());
            part.objects += 1;
            if part.objects.is_multiple_of(OBJECTS_PER_STATUS) {
                status(&format!("{} {plural}", part.objects));
            }
        };
        let read = self.cluster.each(Of::All, add).await;
        let bytes = read.as_ref().map_or(0, |listed| listed.items.bytes);
        self.file.get_mut().cut(start + bytes)?;
        match read {
            Ok(listed) => {
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
                let start = self.file.get_mut().at;
                let bytes = found.map_or(0, |(found, _)| self.put(start, found));
                self.file.get_mut().cut(start + bytes)?;
                self.saved.add::<RawConfigMap>(Vec::new());
            }
            Err(failure) => self.saved.add_unread::<RawConfigMap>(failure.to_string()),
        }
        Ok(())
    }

    /// Writes an object at that place. Returns its length.
    fn put<T: Shared>(&self, at: u64, mut object: T) -> u64 {
        object.strip(self.selectors);
        let [path, _] = T::API;
        let item = Item {
            api_version: path
                .trim_start_matches("/apis/")
                .trim_start_matches("/api/"),
            kind: T::KIND,
            object: &object,
        };
        self.file.borrow_mut().put(at, &item, ",")
    }
}

/// The number of objects after which the status is written.
const OBJECTS_PER_STATUS: usize = 500;

impl Output {
    /// Writes an item on a line of its own. Returns its length.
    fn put(&mut self, at: u64, item: &impl Serialize, end: &str) -> u64 {
        let mut line = vec![b'\n'];
        let written = serde_json::to_writer(&mut line, item).map_err(io::Error::from);
        self.failed = self.failed.take().or(written.err());
        line.extend_from_slice(end.as_bytes());
        self.write(at, &line);
        line.len() as u64
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        let sought = if self.at == at {
            Ok(at)
        } else {
            self.to.seek(SeekFrom::Start(at))
        };
        let written = sought.and_then(|_| self.to.write_all(bytes));
        self.failed = self.failed.take().or(written.err());
        self.at = at + bytes.len() as u64;
    }

    /// Ends the file at that place. Fails if anything could not be written.
    fn cut(&mut self, at: u64) -> Result<()> {
        let result = self
            .to
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.to.get_ref().set_len(at));
        self.at = at;
        self.failed
            .take()
            .map_or(result, Err)
            .map_err(|error| CouldNotRun::Source(format!("the file could not be written: {error}")))
    }

    /// Writes what the file has, and ends it.
    fn end(mut self, saved: &RawSaved) -> Result<()> {
        let item = Item {
            api_version: SAVED_VERSION,
            kind: SAVED,
            object: saved,
        };
        let at = self.at;
        let bytes = self.put(at, &item, "\n]}\n");
        self.cut(at + bytes)
    }
}
