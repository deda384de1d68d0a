//! Saves of durable sessions, made when the session decides so.
//!
//! Such a save is made like a client's (`saves`). Its worker keeps the kernels' files in
//! the session's directory and writes `saved.json`, both synced to the disk, so that a
//! new keeper continues from there whatever happens to this one. If there is a store, the
//! worker also writes the file for it, and an uploader uploads that file. Failures are
//! noted in the metadata, and tried again.

use super::super::Keeper;
use super::bundle::{self, Contents, Origin};
use super::saves::Work;
use crate::processes;
use crate::scratch::open_left;
use crate::source::Source;
use crate::worker::{Priority, Progress, Worker};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use sessile_protocol::{Code, Failure, Language, LeftBehind, RunNo};
use sessile_session::operations::{Event, InStore, NotStored, Place, SaveId};
use sessile_session::{Epoch, Input};
use sessile_store::{
    Directory, Durable, DurableStore, History, Metadata, SaveState, SavedKernel, SavedState,
    SessionStatus, timestamp,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Maximum number of names of missing things in the metadata.
const SHOWN: usize = 50;

/// A save that is being uploaded to the store.
#[derive(Debug)]
pub(super) struct Upload {
    save: SaveId,
    pub(super) worker: Worker,
    as_of: RunNo,
    file: PathBuf,
}

/// Kills a worker and the process that it waits for.
fn kill(worker: &Worker) {
    let mut all = processes::descendants(worker.pid());
    all.push(worker.pid());
    processes::signal(&all, Signal::KILL);
}

/// Returns how far an earlier keeper has uploaded its saves.
pub(in super::super) fn in_store(durable: &Durable) -> InStore {
    match &durable.store {
        None => InStore::None,
        Some(store) if store.state.as_of_run == durable.here.as_of_run => InStore::Current,
        Some(_) => InStore::Behind,
    }
}

/// Returns a file that the session has already and that is up to date.
pub(super) fn kept_dump(
    directory: &Directory,
    state: Option<&SavedState>,
    language: Language,
    as_of: RunNo,
) -> Option<PathBuf> {
    let saved = state?.kernels.get(&language).filter(|saved| saved.restore.is_none())?;
    let path = directory.dump(saved.dump.as_deref()?)?;
    (saved.comes_back_as_of() == Some(as_of) && path.is_file()).then_some(path)
}

/// A save in the session directory, made by a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LocalSave {
    as_of: RunNo,
    saved_at: String,
    dumps: Vec<SavedDump>,
    left: Vec<LeftBehind>,
    /// The outcome for the store's file, if one was wanted.
    pub(super) outgoing: Option<Result<PathBuf, String>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedDump {
    language: Language,
    as_of: RunNo,
    /// Epoch of the process whose state it is, if it had one.
    epoch: Option<u64>,
    name: String,
}

impl LocalSave {
    /// Removes a file that was not uploaded to the store.
    pub(super) fn clear_away(self) {
        if let Some(Ok(file)) = self.outgoing {
            let _ = std::fs::remove_file(file);
        }
    }
}

impl Keeper {
    /// Records the outcome of a save.
    pub(super) fn record_save(&mut self, save: SaveId, place: Place, outcome: Result<(), String>) {
        match (place, outcome) {
            (Place::Here, Ok(())) => self.record_local_save(save),
            (Place::Here, Err(why)) => {
                if let Some(durable) = &mut self.records.metadata.durable {
                    durable.here.error = Some(why);
                }
            }
            (Place::Store, Ok(())) => {
                let uploaded = self.operations.saves.uploaded.take();
                let uploaded = uploaded.filter(|(of, _)| *of == save);
                if let (Some((_, state)), Some(store)) = (uploaded, self.stored()) {
                    store.state = state;
                }
            }
            (Place::Store, Err(why)) => {
                if let Some(store) = self.stored() {
                    store.state.error = Some(why);
                }
            }
        }
        let _ = self.write_metadata();
    }

    fn record_local_save(&mut self, id: SaveId) {
        let current = self.operations.saves.current.as_ref().filter(|save| save.id == id);
        let Some(Work::SavedLocally(local)) = current.map(|save| &save.work) else {
            return;
        };
        if let Some(durable) = &mut self.records.metadata.durable {
            durable.here = SaveState {
                as_of_run: Some(local.as_of),
                saved_at: Some(local.saved_at.clone()),
                error: None,
            };
            durable.left = local.left.iter().take(SHOWN).cloned().collect();
        }
        for dump in local.dumps.clone() {
            self.adopt(&dump);
        }
        self.home.directory.sweep_kept_dumps();
    }

    /// Makes new processes of this language start from the file.
    fn adopt(&mut self, dump: &SavedDump) {
        let Some(mut state) = self.home.directory.state() else {
            return;
        };
        let epoch = self.kernels.live.get(&dump.language).map(|live| live.epoch);
        // The state of a process that has ended since is not that of its successor.
        if dump.epoch.map(Epoch) != epoch {
            return;
        }
        let Some(saved) = state.kernels.get_mut(&dump.language) else {
            return;
        };
        saved.dump = Some(dump.name.clone());
        saved.dump_as_of_run = Some(dump.as_of);
        if self.home.directory.write_state(&state).is_ok()
            && let Some(epoch) = epoch
        {
            let (language, as_of) = (dump.language, dump.as_of);
            self.step(Input::Captured { language, epoch, as_of });
        }
    }

    pub(super) fn upload(&mut self, save: SaveId) {
        if let Err(error) = self.try_upload(save) {
            let why = format!("no uploader can be started: {error}");
            let outcome = Err(NotStored::Failed(why));
            self.operate(Event::Uploaded { save, outcome });
        }
    }

    fn try_upload(&mut self, save: SaveId) -> io::Result<()> {
        let session = self.home.boot.session.clone();
        let store = self.stored().ok_or(io::ErrorKind::NotFound)?;
        let (url, epoch) = (store.url.clone(), store.epoch);
        let saves = &mut self.operations.saves;
        let current = saves.current.as_mut().filter(|current| current.id == save);
        let Some(Work::SavedLocally(local)) = current.map(|current| &mut current.work) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let Some(Ok(file)) = local.outgoing.take() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let as_of = local.as_of;
        let order = serde_json::json!({
            "url": url, "session_id": session, "as_of_run": as_of, "file": file, "epoch": epoch,
        });
        let work = move || call_uploader(&order.to_string()).unwrap_or_default();
        let worker = Worker::spawn(&self.reactor, Source::UploadWorker, Priority::Low, work);
        match worker {
            Ok(worker) => {
                saves.upload = Some(Upload { save, worker, as_of, file });
                Ok(())
            }
            Err(error) => {
                let _ = std::fs::remove_file(file);
                Err(error)
            }
        }
    }

    /// Reads the uploader's answer.
    pub(in super::super) fn read_upload_worker(&mut self) {
        let Some(upload) = &mut self.operations.saves.upload else {
            return;
        };
        let answer = match upload.worker.read(&mut self.output.buffer) {
            Progress::Going => return,
            Progress::Done(answer) => answer,
            Progress::Failed => Vec::new(),
        };
        let (save, as_of_run) = (upload.save, Some(upload.as_of));
        self.forget_upload();
        let outcome = match serde_json::from_slice(&answer) {
            Ok(Uploaded::Saved { saved_at }) => {
                let state = SaveState { as_of_run, saved_at: Some(saved_at), error: None };
                self.operations.saves.uploaded = Some((save, state));
                Ok(())
            }
            Ok(Uploaded::Moved { host }) => Err(NotStored::Moved { host }),
            Ok(Uploaded::Error { message }) => Err(NotStored::Failed(message)),
            Err(_) => Err(NotStored::Failed("the uploader was ended".to_owned())),
        };
        self.operate(Event::Uploaded { save, outcome });
    }

    /// Records that the session now lives on another machine. It ends here.
    pub(super) fn record_move(&mut self, host: String) {
        if let Some(store) = self.stored() {
            store.state.error = Some(format!("the session now lives on {host}"));
            store.moved_to = Some(host);
        }
        let _ = self.write_metadata();
    }

    fn stored(&mut self) -> Option<&mut DurableStore> {
        self.records.metadata.durable.as_mut()?.store.as_mut()
    }

    fn forget_upload(&mut self) -> Option<Upload> {
        let upload = self.operations.saves.upload.take()?;
        let _ = std::fs::remove_file(&upload.file);
        Some(upload)
    }

    /// Cancels the upload when the session ends or is reset.
    pub(super) fn cancel_upload(&mut self) {
        if let Some(upload) = self.forget_upload() {
            kill(&upload.worker);
        }
    }

    /// Asks the store whether another machine has the session.
    pub(super) fn look_at_store(&mut self) {
        let session = self.home.boot.session.clone();
        let Some(store) = self.stored() else { return };
        let question = serde_json::json!({
            "look": {"url": store.url, "session_id": session, "epoch": store.epoch},
        });
        let work = move || call_uploader(&question.to_string()).unwrap_or_default();
        match Worker::spawn(&self.reactor, Source::LookWorker, Priority::Normal, work) {
            Ok(worker) => self.operations.saves.look = Some(worker),
            Err(error) => {
                let outcome = Err(NotStored::Failed(error.to_string()));
                self.operate(Event::Looked { outcome });
            }
        }
    }

    /// Reads the store's answer.
    pub(in super::super) fn read_look_worker(&mut self) {
        let Some(worker) = &mut self.operations.saves.look else {
            return;
        };
        let answer = match worker.read(&mut self.output.buffer) {
            Progress::Going => return,
            Progress::Done(answer) => answer,
            Progress::Failed => Vec::new(),
        };
        self.operations.saves.look = None;
        let outcome = match serde_json::from_slice(&answer) {
            Ok(OwnerAnswer::Ours) => Ok(()),
            Ok(OwnerAnswer::Moved { host }) => Err(NotStored::Moved { host }),
            Ok(OwnerAnswer::Error { message }) => Err(NotStored::Failed(message)),
            Err(_) => Err(NotStored::Failed("the process that asks was ended".to_owned())),
        };
        self.operate(Event::Looked { outcome });
    }

    /// Cancels the question to the store when the session ends or is reset.
    pub(super) fn cancel_look(&mut self) {
        if let Some(worker) = self.operations.saves.look.take() {
            kill(&worker);
        }
    }
}

/// An uploader's answer to the question which machine has the session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OwnerAnswer {
    Ours,
    /// Another machine has it.
    Moved {
        host: String,
    },
    Error {
        message: String,
    },
}

/// An uploader's answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Uploaded {
    Saved {
        saved_at: String,
    },
    /// Another machine has the session.
    Moved {
        host: String,
    },
    Error {
        message: String,
    },
}

/// In the worker: starts an uploader, which is this program as well, and waits for it.
fn call_uploader(order: &str) -> io::Result<Vec<u8>> {
    let mut uploader = Command::new("/proc/self/exe")
        .arg(crate::UPLOADER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut stdin) = uploader.stdin.take() {
        stdin.write_all(order.as_bytes())?;
    }
    Ok(uploader.wait_with_output()?.stdout)
}

/// In the worker: puts the files from which the session is restored here in their final
/// place, and writes the file for the store, if there is one.
pub(super) fn keep(
    mut contents: Contents,
    outgoing: Option<Result<PathBuf, String>>,
) -> Result<LocalSave, Failure> {
    let failed = |error: &(dyn Error + 'static)| {
        Failure::because(Code::Storage, "the session cannot be saved", error)
    };
    let mut dumps = Vec::new();
    let mut kernels = BTreeMap::new();
    for kernel in &mut contents.kernels {
        let mut saved = kernel.state.clone();
        if let Some(dump) = &mut kernel.dump {
            if dump.origin == Origin::ThisSave {
                dump.path = settle(&contents.directory, &dump.path, kernel.language, kernel.as_of)
                    .map_err(|error| failed(&error))?;
            }
            let name = dump.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            saved.dump = Some(name.clone());
            saved.dump_as_of_run = Some(kernel.as_of);
            let epoch = kernel.epoch.map(|epoch| epoch.0);
            dumps.push(SavedDump { language: kernel.language, as_of: kernel.as_of, epoch, name });
        }
        kernels.insert(kernel.language, saved);
    }
    let saved_at = timestamp();
    let state = SavedState { captured_at: saved_at.clone(), kernels };
    contents.directory.keep_state(&state).map_err(|error| failed(&error))?;
    let outgoing = outgoing.map(|path| {
        let path = path?;
        let written = bundle::write(&contents, &path);
        written.map(|_| path).map_err(|failure| failure.message)
    });
    Ok(LocalSave { as_of: contents.last_run, saved_at, dumps, left: contents.left, outgoing })
}

/// Gives a dump its final name after its content is on the disk.
fn settle(
    directory: &Directory,
    path: &Path,
    language: Language,
    as_of: RunNo,
) -> io::Result<PathBuf> {
    open_left(path)?.0.sync_all()?;
    let kept = directory.kept_dump(language, as_of);
    std::fs::rename(path, &kept)?;
    File::open(directory.kernels())?.sync_all()?;
    Ok(kept)
}

/// For the first keeper on this machine: notes that the session was on another machine.
fn taken_up(metadata: &Metadata) -> Option<String> {
    let store = metadata.durable.as_ref()?.store.as_ref()?;
    let host = store.taken_from.as_ref()?;
    let as_of = store.state.as_of_run.unwrap_or_default();
    (metadata.status == SessionStatus::Starting).then(|| {
        format!(
            "the session was taken up from {}, as of run {as_of}: it had been on {host}",
            store.url
        )
    })
}

/// For a new keeper: returns what the last save of a durable session does not contain.
pub(in super::super) fn losses(
    metadata: &Metadata,
    kernels: &BTreeMap<Language, SavedKernel>,
    history: &History,
) -> Vec<(Language, String)> {
    let Some(durable) = &metadata.durable else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    let runs = history.newest(metadata.max_history);
    let taken_up = taken_up(metadata);
    for (language, saved) in kernels {
        notes.extend(taken_up.iter().map(|note| (*language, note.clone())));
        let Some(as_of) = saved.comes_back_as_of() else {
            continue;
        };
        let later: Vec<String> = runs
            .iter()
            .filter(|entry| entry.language == *language && entry.run > as_of)
            .map(|entry| entry.run.to_string())
            .collect();
        if let (Some(first), Some(last)) = (later.first(), later.last()) {
            let which = if first == last {
                format!("run {first}")
            } else {
                format!("runs {first} to {last}")
            };
            let note = format!(
                "{language} goes on from the last save, as of run {as_of}: what {which} changed in it is lost"
            );
            notes.push((*language, note));
        }
        let left: Vec<String> = durable
            .left
            .iter()
            .filter(|item| {
                let is_of_now = saved.dump.is_some() || taken_up.is_some();
                item.language == Some(*language) && is_of_now
            })
            .map(|item| format!("{} ({})", item.name, item.reason))
            .collect();
        if !left.is_empty() {
            notes.push((*language, format!("not in the last save: {}", left.join("; "))));
        }
    }
    notes
}
