//! A durable session saves itself, when [`Durability`] says so.
//!
//! Such a save is one like a client's (`saving`): its worker keeps the kernels'
//! files in the session's directory and writes `saved.json`, both synced to the
//! disk, so that a new keeper goes on from there whatever has happened to this
//! one. If there is a store, it writes the file for it as well, and an uploader
//! brings that there. What fails is told in the metadata and tried again; a
//! store that is down does not keep the session from being saved here.

use super::Keeper;
use super::bundle::{self, Contents, Origin};
use super::saving::{Asker, SaveOrder};
use crate::processes;
use crate::source::Source;
use crate::worker::{Awaited, Progress, Worker};
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use sessile_protocol::{Code, Failure, Language, LeftBehind, RunNo};
use sessile_session::{Durability, Epoch, Input, Tick};
use sessile_store::{
    Directory, Durable, DurableStore, History, Metadata, SaveState, SavedKernel, SavedState,
    timestamp,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names of what a save has not that the metadata has room for.
const SHOWN: usize = 50;

/// The saves of this session.
#[derive(Debug)]
pub(super) struct DurableSaves {
    here: Durability,
    store: Option<Store>,
}

#[derive(Debug)]
struct Store {
    url: String,
    pace: Durability,
    upload: Option<Upload>,
}

#[derive(Debug)]
struct Upload {
    worker: Worker,
    as_of: RunNo,
    file: PathBuf,
}

impl DurableSaves {
    pub(super) fn of(durable: &Durable) -> Self {
        let store = durable.store.as_ref().map(|store| {
            let mut pace = Durability::default();
            // What the last keeper had not brought there yet.
            if store.state.as_of_run != durable.here.as_of_run {
                pace.changed(0);
            }
            Store { url: store.url.clone(), pace, upload: None }
        });
        Self { here: Durability::default(), store }
    }

    fn changed(&mut self, now: Tick) {
        self.here.changed(now);
        if let Some(store) = &mut self.store {
            store.pace.changed(now);
        }
    }

    fn due(&self) -> Option<Tick> {
        let store = self.store.as_ref().and_then(|store| store.pace.due());
        self.here.due().into_iter().chain(store).min()
    }

    /// Whether a process brings a save to the store.
    pub(super) fn uploads(&self, pid: Pid) -> bool {
        let upload = self.store.as_ref().and_then(|store| store.upload.as_ref());
        upload.is_some_and(|upload| upload.worker.pid() == pid)
    }
}

/// What a worker has kept.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    as_of: RunNo,
    saved_at: String,
    dumps: Vec<KeptDump>,
    left: Vec<LeftBehind>,
    /// What became of the file for the store, if one was wanted.
    outgoing: Option<Result<PathBuf, String>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptDump {
    language: Language,
    as_of: RunNo,
    /// Of the process whose state it is, if it had one.
    epoch: Option<u64>,
    name: String,
}

impl Keeper {
    /// Something has changed that a save would have.
    pub(super) fn durable_changed(&mut self) {
        let now = self.now();
        if let Some(saves) = &mut self.saves.durable {
            saves.changed(now);
        }
    }

    /// When the next save is due, if it could begin.
    pub(super) fn durable_due(&self) -> Option<Tick> {
        let saves = self.saves.durable.as_ref()?;
        let is_free = self.saves.queue.is_empty() && self.session.is_open() && !self.is_working();
        saves.due().filter(|_| is_free)
    }

    pub(super) fn begin_durable_save(&mut self) {
        let now = self.now();
        let directory = self.home.directory.clone();
        let Some(saves) = &mut self.saves.durable else {
            return;
        };
        saves.here.begin(now);
        let store = saves.store.as_mut().filter(|store| {
            store.upload.is_none() && store.pace.due().is_some_and(|due| due <= now)
        });
        let path = store.and_then(|store| {
            let path = directory.outgoing_save().ok()?;
            store.pace.begin(now);
            Some(path)
        });
        self.queue_save(Asker::Durability, SaveOrder { path, files: false, wait: true });
    }

    /// A file that the session has already and that is as new as can be.
    pub(super) fn kept_dump(&self, language: Language, as_of: RunNo) -> Option<PathBuf> {
        let state = self.home.directory.state()?;
        let saved = state.kernels.get(&language).filter(|saved| saved.restore.is_none())?;
        let path = self.home.directory.dump(saved.dump.as_deref()?)?;
        (saved.comes_back_as_of() == Some(as_of) && path.is_file()).then_some(path)
    }

    pub(super) fn save_is_kept(&mut self, kept: Kept) {
        for dump in &kept.dumps {
            self.adopt(dump);
        }
        self.home.directory.sweep_kept_dumps();
        let now = self.now();
        if let Some(saves) = &mut self.saves.durable {
            saves.here.saved(now);
        }
        if let Some(durable) = &mut self.records.metadata.durable {
            durable.here = SaveState {
                as_of_run: Some(kept.as_of),
                saved_at: Some(kept.saved_at),
                error: None,
            };
            durable.left = kept.left.into_iter().take(SHOWN).collect();
        }
        match kept.outgoing {
            Some(Ok(file)) => self.upload(kept.as_of, file),
            Some(Err(why)) => self.store_has_failed(why),
            None => {}
        }
        let _ = self.write_metadata();
    }

    pub(super) fn save_has_failed(&mut self, failure: &Failure) {
        let now = self.now();
        if let Some(saves) = &mut self.saves.durable {
            saves.here.failed(now);
        }
        if let Some(durable) = &mut self.records.metadata.durable {
            durable.here.error = Some(failure.message.clone());
        }
        self.store_has_failed(failure.message.clone());
        let _ = self.write_metadata();
    }

    /// A new process of this language starts from the file from now on.
    fn adopt(&mut self, dump: &KeptDump) {
        let Some(mut state) = self.home.directory.state() else {
            return;
        };
        let epoch = self.kernels.live.get(&dump.language).map(|live| live.epoch);
        // The state of a process that has ended since is not that of the one
        // that has taken its place.
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

    fn upload(&mut self, as_of: RunNo, file: PathBuf) {
        let session = self.home.boot.session.clone();
        let Some(store) = self.saves.durable.as_mut().and_then(|saves| saves.store.as_mut()) else {
            return;
        };
        let order = serde_json::json!({
            "url": store.url, "session_id": session, "as_of_run": as_of, "file": file,
        });
        let work = move || call_uploader(&order.to_string()).unwrap_or_default();
        match Worker::spawn(&self.reactor, Source::UploadWorker, Awaited::ByNobody, work) {
            Ok(worker) => store.upload = Some(Upload { worker, as_of, file }),
            Err(error) => self.store_has_failed(format!("no uploader can be started: {error}")),
        }
    }

    /// The uploader answers.
    pub(super) fn read_upload_worker(&mut self) {
        let store = self.saves.durable.as_mut().and_then(|saves| saves.store.as_mut());
        let Some(upload) = store.and_then(|store| store.upload.as_mut()) else {
            return;
        };
        let answer = match upload.worker.read(&mut self.output.buffer) {
            Progress::Going => return,
            Progress::Done(answer) => answer,
            Progress::Failed => Vec::new(),
        };
        let as_of = upload.as_of;
        self.forget_upload();
        match serde_json::from_slice(&answer) {
            Ok(Uploaded::Saved { saved_at }) => self.store_has_it(as_of, saved_at),
            Ok(Uploaded::Error { message }) => self.store_has_failed(message),
            Err(_) => self.store_has_failed("the uploader was ended".to_owned()),
        }
        let _ = self.write_metadata();
    }

    fn store_has_it(&mut self, as_of: RunNo, saved_at: String) {
        let now = self.now();
        if let Some(store) = self.saves.durable.as_mut().and_then(|saves| saves.store.as_mut()) {
            store.pace.saved(now);
        }
        if let Some(store) = self.stored() {
            store.state =
                SaveState { as_of_run: Some(as_of), saved_at: Some(saved_at), error: None };
        }
    }

    /// A save that was meant for the store did not get there.
    fn store_has_failed(&mut self, why: String) {
        let now = self.now();
        let store = self.saves.durable.as_mut().and_then(|saves| saves.store.as_mut());
        let Some(store) = store.filter(|store| store.pace.is_saving()) else {
            return;
        };
        store.pace.failed(now);
        if let Some(store) = self.stored() {
            store.state.error = Some(why);
        }
    }

    fn stored(&mut self) -> Option<&mut DurableStore> {
        self.records.metadata.durable.as_mut()?.store.as_mut()
    }

    fn forget_upload(&mut self) -> Option<Upload> {
        let upload = self.saves.durable.as_mut()?.store.as_mut()?.upload.take()?;
        let _ = std::fs::remove_file(&upload.file);
        Some(upload)
    }

    /// The session ends, or is reset.
    pub(super) fn cancel_upload(&mut self) {
        if let Some(upload) = self.forget_upload() {
            let mut all = processes::descendants(upload.worker.pid());
            all.push(upload.worker.pid());
            processes::signal(&all, Signal::KILL);
            self.store_has_failed("the session was ended or reset".to_owned());
        }
    }
}

/// What an uploader says.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Uploaded {
    Saved { saved_at: String },
    Error { message: String },
}

/// In the worker: starts an uploader, which is this program as well, and waits
/// for it.
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

/// In the worker: what brings the session back here is put where it stays, and
/// the file for the store is written, if there is one.
pub(super) fn keep(mut contents: Contents, outgoing: Option<PathBuf>) -> Result<Kept, Failure> {
    let failed = |error: String| {
        Failure::new(Code::Storage, format!("the session cannot be saved: {error}"))
    };
    let mut dumps = Vec::new();
    let mut kernels = BTreeMap::new();
    for kernel in &mut contents.kernels {
        let mut saved = kernel.state.clone();
        if let Some(dump) = &mut kernel.dump {
            if dump.origin == Origin::ThisSave {
                dump.path = settle(&contents.directory, &dump.path, kernel.language, kernel.as_of)
                    .map_err(|error| failed(error.to_string()))?;
            }
            let name = dump.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            saved.dump = Some(name.clone());
            saved.dump_as_of_run = Some(kernel.as_of);
            let epoch = kernel.epoch.map(|epoch| epoch.0);
            dumps.push(KeptDump { language: kernel.language, as_of: kernel.as_of, epoch, name });
        }
        kernels.insert(kernel.language, saved);
    }
    let saved_at = timestamp();
    let state = SavedState { captured_at: saved_at.clone(), kernels };
    contents.directory.keep_state(&state).map_err(|error| failed(error.to_string()))?;
    let outgoing = outgoing.map(|path| match bundle::write(&contents, &path) {
        Ok(_) => Ok(path),
        Err(failure) => Err(failure.message),
    });
    Ok(Kept { as_of: contents.last_run, saved_at, dumps, left: contents.left, outgoing })
}

/// Gives a dump its name for good, after its content is on the disk.
fn settle(
    directory: &Directory,
    path: &Path,
    language: Language,
    as_of: RunNo,
) -> io::Result<PathBuf> {
    File::open(path)?.sync_all()?;
    let kept = directory.kept_dump(language, as_of);
    std::fs::rename(path, &kept)?;
    File::open(directory.kernels())?.sync_all()?;
    Ok(kept)
}

/// For a new keeper: what of a durable session its last save has not.
pub(super) fn losses(
    metadata: &Metadata,
    kernels: &BTreeMap<Language, SavedKernel>,
    history: &History,
) -> Vec<(Language, String)> {
    let Some(durable) = &metadata.durable else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    let runs = history.newest(metadata.max_history);
    for (language, saved) in kernels {
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
            .filter(|item| item.language == Some(*language) && saved.dump.is_some())
            .map(|item| format!("{} ({})", item.name, item.reason))
            .collect();
        if !left.is_empty() {
            notes.push((*language, format!("not in the last save: {}", left.join("; "))));
        }
    }
    notes
}
