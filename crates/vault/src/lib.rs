//! Saved sessions in a store with a URL: on a disk, in S3, GCS or Azure.
//!
//! A save is an opaque file of up to gigabytes, with a JSON record beside it that describes
//! the contents. For each session the last two saves are kept, and a *pointer* says which
//! is the last, and which machine has the session.
//!
//! - A reader finds the old save or the new one, and never half: an object is complete
//!   before
//!   the pointer names it.
//! - Of two writers, the one that took over the session last wins, or otherwise the one
//!   with
//!   the later run: the pointer is replaced only if it has not changed since it was read (on
//!   a disk, a lock ensures that).
//! - Nothing that is read is trusted: names that are not ours are skipped, and a file gets
//!   its
//!   name only when its length and digest are right.
//! - Every wait has a timeout.
//!
//! Calls block, for the short-lived processes that make them; inside is a runtime with one
//! thread. The environment is passed in, not read here.

mod download;
mod error;
mod lock;
mod names;
mod notes;
mod place;
mod pointer;
mod upload;

pub use error::VaultError;
pub use place::Variables;
pub use pointer::{Holder, Save};

use futures_util::TryStreamExt;
use lock::Lock;
use names::{Name, POINTER};
use object_store::path::Path as Key;
use object_store::{ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use place::Place;
use pointer::{Pointer, Stored};
use serde::{Deserialize, Serialize};
use sessile_protocol::{RunNo, SessionId};
use std::path::Path;
use std::time::Duration;

/// Timeout of a call with little data.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of attempts to replace the pointer while others change it.
const ATTEMPTS: u32 = 8;

type Result<T> = std::result::Result<T, VaultError>;

/// A store of saves.
#[derive(Debug)]
pub struct Vault {
    place: Place,
    runtime: tokio::runtime::Runtime,
}

/// Checks that [`Vault::open`] accepts a URL.
///
/// # Errors
/// When it does not, with the reason.
pub fn check_url(url: &str) -> Result<()> {
    place::parse(url).map(|_| ())
}

/// A session with saves in the store.
#[derive(Debug)]
pub struct StoredSession {
    pub session: SessionId,
    /// The last save, or the error in reading it.
    pub latest: Result<Save>,
}

impl Vault {
    /// Opens `file:///path`, `s3://bucket/prefix`, `gs://bucket/prefix` or
    /// `az://container/prefix`. The variables have the credentials.
    ///
    /// # Errors
    /// When the URL is none of these, or the credentials are invalid. Whether the store
    /// exists turns out when it is used.
    pub fn open(url: &str, variables: &Variables) -> Result<Self> {
        // One provider for the whole program; an error means that one is already installed,
        // which is fine.
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        let place = Place::open(url, variables)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(VaultError::io("start a runtime for", Path::new(url)))?;
        Ok(Self { place, runtime })
    }

    /// Stores a file as a session's last save; all older ones except one are removed.
    ///
    /// # Errors
    /// When another machine has taken over the session, there is a save of a later run, or
    /// the store refuses it: then the last save stays.
    pub fn put(&self, session: &SessionId, new: &NewSave<'_>) -> Result<Save> {
        self.runtime.block_on(self.place.put(session, new))
    }

    /// Returns the machine that has a session.
    ///
    /// # Errors
    /// When the store cannot be asked.
    pub fn holder(&self, session: &SessionId) -> Result<Option<Holder>> {
        let pointer = self.runtime.block_on(self.place.pointer(session))?;
        Ok(pointer.and_then(|read| read.pointer.holder))
    }

    /// Takes over a session: the previous machine is fenced off from now on. The last save
    /// is written to a file, as by [`Vault::get`].
    ///
    /// # Errors
    /// When there is no save, or it cannot be downloaded: then nothing has changed.
    pub fn take(&self, session: &SessionId, host: &str, to: &Path) -> Result<Takeover> {
        self.runtime.block_on(self.place.take(session, host, to))
    }

    /// Gives back a session, unless another machine has it by now.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn give_back(&self, session: &SessionId, taken: &Takeover) -> Result<()> {
        self.runtime.block_on(self.place.give_back(session, taken))
    }

    /// Returns the last save of a session, if there is one.
    ///
    /// # Errors
    /// When the store cannot be asked, or its answer is not in our format.
    pub fn latest(&self, session: &SessionId) -> Result<Option<Save>> {
        let pointer = self.runtime.block_on(self.place.pointer(session))?;
        Ok(pointer.map(|read| read.pointer.latest.save))
    }

    /// Writes the last save of a session to a file, which appears only when it is complete
    /// and unchanged.
    ///
    /// # Errors
    /// When there is no save, it was changed, or the file cannot be written.
    pub fn get(&self, session: &SessionId, to: &Path) -> Result<Save> {
        self.runtime.block_on(self.place.get(session, to))
    }

    /// Removes all saves of a session.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn delete(&self, session: &SessionId) -> Result<()> {
        self.runtime.block_on(self.place.delete(session))
    }

    /// Returns the sessions with saves, by id.
    ///
    /// # Errors
    /// When the store cannot be asked.
    pub fn list(&self) -> Result<Vec<StoredSession>> {
        self.runtime.block_on(self.place.list())
    }
}

/// A note about a session, beside its saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// `PREFIX/sess_….json`: stays when the saves are removed.
    Record,
    /// `PREFIX/sess_…/thread.jsonl`, or `thread-EPOCH.jsonl` if the session was taken over
    /// since: a machine that has lost the session does not overwrite the thread of the one
    /// that has it.
    Thread { epoch: u64 },
}

impl Vault {
    /// Stores a note, and replaces the one before.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn put_note(&self, session: &SessionId, note: Note, bytes: Vec<u8>) -> Result<()> {
        self.runtime.block_on(self.place.put_note(session, note, bytes))
    }

    /// Returns a note, if there is one.
    ///
    /// # Errors
    /// When the store cannot be asked.
    pub fn get_note(&self, session: &SessionId, note: Note) -> Result<Option<Vec<u8>>> {
        self.runtime.block_on(self.place.get_note(session, note))
    }
}

/// A save to store.
#[derive(Clone, Debug)]
pub struct NewSave<'a> {
    pub as_of_run: RunNo,
    pub file: &'a Path,
    /// The machine that has the session, as far as the writer knows.
    pub by: Holder,
    /// The description of the contents, for people and their programs.
    pub about: serde_json::Value,
}

/// A session that was taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Takeover {
    pub save: Save,
    /// The epoch to pass with each save from now on.
    pub epoch: u64,
    /// The machine that had it.
    pub before: Option<Holder>,
}

/// The record beside a save.
#[derive(Debug, Serialize)]
struct Record<'a> {
    session_id: &'a SessionId,
    object: String,
    #[serde(flatten)]
    save: &'a Save,
    host: &'a str,
    session: &'a serde_json::Value,
}

/// A pointer, with the version that was read.
struct VersionedPointer {
    pointer: Pointer,
    version: UpdateVersion,
}

impl Place {
    async fn put(&self, session: &SessionId, new: &NewSave<'_>) -> Result<Save> {
        let home = self.session(session);
        if let Some(directory) = &self.directory {
            lock::make_private(&directory.join(session.as_str()))?;
        }
        // Before gigabytes are sent in vain.
        if let Some(read) = self.pointer(session).await? {
            read.pointer.admits(new.by.epoch)?;
            if read.pointer.latest.save.as_of_run > new.as_of_run {
                return Err(VaultError::Superseded(Box::new(read.pointer.latest.save)));
            }
        }
        let nonce = nonce().map_err(VaultError::io("name", new.file))?;
        let name = Name::new(new.as_of_run, nonce);
        let key = home.clone().join(name.to_string());
        let uploaded = upload::upload(self, &key, new.file).await?;
        let save = Save {
            as_of_run: new.as_of_run,
            saved_at: now(),
            size: uploaded.size,
            digest: uploaded.digest,
        };
        let record = Record {
            session_id: session,
            object: name.to_string(),
            save: &save,
            host: &new.by.host,
            session: &new.about,
        };
        let record = serde_json::to_vec_pretty(&record).unwrap_or_default();
        let record_key = home.clone().join(name.record());
        let recorded = self.bounded(self.store.put(&record_key, record.into())).await;
        let stored = Stored::new(save.clone(), &name);
        let advanced = match recorded {
            Ok(_) => {
                let decide =
                    |before: Option<&Pointer>| Pointer::advance(before, stored.clone(), &new.by);
                self.change(session, decide).await
            }
            Err(error) => Err(error),
        };
        match advanced {
            Ok(pointer) => {
                self.sweep(&home, &pointer).await;
                Ok(save)
            }
            Err(error) => {
                let _ = self.bounded(self.store.delete(&key)).await;
                let _ = self.bounded(self.store.delete(&record_key)).await;
                Err(error)
            }
        }
    }

    async fn take(&self, session: &SessionId, host: &str, to: &Path) -> Result<Takeover> {
        let missing = || VaultError::NotFound { place: self.told.place.clone() };
        // Makes no lock if there is no session.
        self.pointer(session).await?.ok_or_else(missing)?;
        let (mut had, since) = (None, now());
        let pointer = self
            .change(session, |before| {
                let before = before.ok_or_else(missing)?;
                had.clone_from(&before.holder);
                Ok(before.taken(host, &since))
            })
            .await?;
        let epoch = pointer.holder.map_or(0, |holder| holder.epoch);
        let taken = Takeover { save: pointer.latest.save, epoch, before: had };
        match self.get(session, to).await {
            Ok(save) => Ok(Takeover { save, ..taken }),
            Err(error) => {
                let _ = self.give_back(session, &taken).await;
                Err(error)
            }
        }
    }

    async fn give_back(&self, session: &SessionId, taken: &Takeover) -> Result<()> {
        let missing = || VaultError::NotFound { place: self.told.place.clone() };
        let decide = |before: Option<&Pointer>| {
            let before = before.ok_or_else(missing)?;
            Ok(before.given_back(taken.epoch, taken.before.clone()))
        };
        self.change(session, decide).await.map(|_| ())
    }

    /// Replaces the pointer by the decided one, if it has not changed since it was read.
    async fn change(
        &self,
        session: &SessionId,
        mut decide: impl FnMut(Option<&Pointer>) -> Result<Pointer>,
    ) -> Result<Pointer> {
        let key = self.session(session).join(POINTER);
        for attempt in 0..ATTEMPTS {
            let _lock = match &self.directory {
                Some(directory) => Some(Lock::wait(&directory.join(session.as_str()))?),
                None => None,
            };
            let before = self.pointer(session).await?;
            let next = decide(before.as_ref().map(|read| &read.pointer))?;
            let mode = match before {
                // The lock ensures that.
                _ if self.directory.is_some() => PutMode::Overwrite,
                Some(read) => PutMode::Update(read.version),
                None => PutMode::Create,
            };
            match self.write(&key, &next, mode).await {
                Ok(()) => return Ok(next),
                Err(
                    object_store::Error::AlreadyExists { .. }
                    | object_store::Error::Precondition { .. },
                ) => {}
                Err(object_store::Error::NotImplemented { .. }) => {
                    // The user has configured that the store has no conditional writes.
                    let outcome = self.write(&key, &next, PutMode::Overwrite).await;
                    return outcome.map(|()| next).map_err(|error| self.told.explain(&error));
                }
                Err(error) => return Err(self.told.explain(&error)),
            }
            tokio::time::sleep(Duration::from_millis(20 << attempt)).await;
        }
        Err(VaultError::Contended { place: self.told.place.clone() })
    }

    async fn write(&self, key: &Key, pointer: &Pointer, mode: PutMode) -> object_store::Result<()> {
        let options = PutOptions { mode, ..PutOptions::default() };
        self.store.put_opts(key, pointer.write().into(), options).await.map(|_| ())
    }

    async fn pointer(&self, session: &SessionId) -> Result<Option<VersionedPointer>> {
        let key = self.session(session).join(POINTER);
        let read = async {
            let object = self.store.get(&key).await?;
            let version = UpdateVersion {
                e_tag: object.meta.e_tag.clone(),
                version: object.meta.version.clone(),
            };
            if object.meta.size > pointer::LONGEST {
                return Ok(None);
            }
            Ok(Some((object.bytes().await?, version)))
        };
        match self.bounded(read).await {
            Ok(Some((bytes, version))) => {
                Ok(Some(VersionedPointer { pointer: Pointer::read(&bytes)?, version }))
            }
            Ok(None) => Err(VaultError::Damaged("the pointer is too long")),
            Err(VaultError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn get(&self, session: &SessionId, to: &Path) -> Result<Save> {
        // The save may be replaced twice while it is read; then the pointer has changed.
        let mut tried: Option<Stored> = None;
        loop {
            let Some(read) = self.pointer(session).await? else {
                return Err(VaultError::NotFound { place: self.told.place.clone() });
            };
            let stored = read.pointer.latest;
            let key = self.session(session).join(stored.name()?.to_string());
            match download::download(self, &key, &stored.save, to).await {
                Ok(()) => return Ok(stored.save),
                Err(VaultError::Damaged(why)) if tried.as_ref() == Some(&stored) => {
                    return Err(VaultError::Damaged(why));
                }
                Err(VaultError::Damaged(_)) => tried = Some(stored),
                Err(error) => return Err(error),
            }
        }
    }

    async fn delete(&self, session: &SessionId) -> Result<()> {
        let home = self.session(session);
        // The pointer first: from then on there is no save.
        self.remove(&home.clone().join(POINTER)).await?;
        for (key, name) in self.objects(&home).await? {
            self.remove(&key).await?;
            self.remove(&home.clone().join(name.record())).await?;
        }
        if let Some(directory) = &self.directory {
            let directory = directory.join(session.as_str());
            let _ = std::fs::remove_file(directory.join(".lock"));
            let _ = std::fs::remove_dir(directory);
        }
        Ok(())
    }

    async fn list(&self) -> Result<Vec<StoredSession>> {
        let found = match self.bounded(self.store.list_with_delimiter(Some(self.prefix()))).await {
            Ok(found) => found,
            Err(VaultError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let names = found.common_prefixes.iter().filter_map(|key| key.filename()?.parse().ok());
        let mut sessions: Vec<SessionId> = names.collect();
        sessions.sort();
        let mut kept = Vec::new();
        for session in sessions {
            match self.pointer(&session).await {
                Ok(Some(read)) => {
                    kept.push(StoredSession { session, latest: Ok(read.pointer.latest.save) });
                }
                // An upload that never became a save.
                Ok(None) => {}
                Err(error) => kept.push(StoredSession { session, latest: Err(error) }),
            }
        }
        Ok(kept)
    }

    /// Removes objects that nothing needs any more. A failure costs space, and the next
    /// save tries again.
    async fn sweep(&self, home: &Key, pointer: &Pointer) {
        for (key, name) in self.objects(home).await.unwrap_or_default() {
            if pointer.has_outlived(&name) {
                let _ = self.remove(&key).await;
                let _ = self.remove(&home.clone().join(name.record())).await;
            }
        }
    }

    /// Returns the objects of a session that are ours.
    async fn objects(&self, home: &Key) -> Result<Vec<(Key, Name)>> {
        let listed = self.bounded(self.store.list(Some(home)).try_collect::<Vec<_>>()).await?;
        let ours = listed.into_iter().filter_map(|object| {
            let name = object.location.filename()?.parse().ok()?;
            // Not those in a subdirectory.
            let is_ours = object.location.prefix_matches(home)
                && object.location.parts_count() == home.parts_count() + 1;
            is_ours.then_some((object.location, name))
        });
        Ok(ours.collect())
    }

    async fn remove(&self, key: &Key) -> Result<()> {
        match self.bounded(self.store.delete(key)).await {
            Ok(()) | Err(VaultError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn bounded<T>(&self, call: impl Future<Output = object_store::Result<T>>) -> Result<T> {
        match tokio::time::timeout(PATIENCE, call).await {
            Ok(outcome) => outcome.map_err(|error| self.told.explain(&error)),
            Err(_) => Err(self.told.timed_out()),
        }
    }
}

fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// Returns a random number that no other process has.
fn nonce() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_le_bytes(bytes))
}
