//! Saved sessions, kept by URL: on a disk, in S3, GCS or Azure.
//!
//! A save is an opaque file of up to gigabytes. For each session the last two
//! are kept, and a *pointer* says which is the last.
//!
//! - A reader finds the old save or the new one, and never half: an object is
//!   complete before the pointer names it.
//! - Of two writers, the one with the later run wins: the pointer is replaced
//!   on condition that it is still what was read (a lock does that on a disk).
//! - Nothing that is read is trusted: names are ours or are passed over, and a
//!   file gets its name only when its length and digest are right.
//! - Every wait has an end.
//!
//! Calls block, for the short-lived processes that make them; inside is a
//! runtime of one thread. The environment is not read here, but given.

mod download;
mod error;
mod lock;
mod names;
mod place;
mod pointer;
mod upload;

pub use error::VaultError;
pub use place::Variables;
pub use pointer::Save;

use futures_util::TryStreamExt;
use lock::Lock;
use names::{Name, POINTER};
use object_store::path::Path as Key;
use object_store::{ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use place::Place;
use pointer::{Pointer, Stored};
use sessile_protocol::{RunNo, SessionId};
use std::path::Path;
use std::time::Duration;

/// For a call about little data.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often the pointer may be changed by others while we replace it.
const ATTEMPTS: u32 = 8;

type Result<T> = std::result::Result<T, VaultError>;

/// A place where saves are kept.
#[derive(Debug)]
pub struct Vault {
    place: Place,
    runtime: tokio::runtime::Runtime,
}

/// Whether a URL is one that [`Vault::open`] takes.
///
/// # Errors
/// When it is not; what is wrong with it.
pub fn check_url(url: &str) -> Result<()> {
    place::parse(url).map(|_| ())
}

/// A session of which there are saves.
#[derive(Debug)]
pub struct Kept {
    pub session: SessionId,
    /// The last save, or what is wrong with it.
    pub latest: Result<Save>,
}

impl Vault {
    /// Opens `file:///path`, `s3://bucket/prefix`, `gs://bucket/prefix` or
    /// `az://container/prefix`. The variables have the credentials.
    ///
    /// # Errors
    /// When the URL is none of these, or credentials make no sense. Whether the
    /// place is there turns out when it is used.
    pub fn open(url: &str, variables: &Variables) -> Result<Self> {
        // One provider for the whole program; that somebody has installed it
        // already is as good.
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        let place = Place::open(url, variables)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(VaultError::io("start a runtime for", Path::new(url)))?;
        Ok(Self { place, runtime })
    }

    /// Stores a file as a session's last save; older ones but one are removed.
    ///
    /// # Errors
    /// When there is a save of a later run, or the store does not take it: then
    /// the last save is what it was.
    pub fn put(&self, session: &SessionId, as_of_run: RunNo, file: &Path) -> Result<Save> {
        self.runtime.block_on(self.place.put(session, as_of_run, file))
    }

    /// The last save of a session, if there is one.
    ///
    /// # Errors
    /// When the store cannot be asked, or what it says is not what we wrote.
    pub fn latest(&self, session: &SessionId) -> Result<Option<Save>> {
        let pointer = self.runtime.block_on(self.place.pointer(session))?;
        Ok(pointer.map(|read| read.pointer.latest.save))
    }

    /// Writes the last save of a session into a file, which is there only when
    /// all of it is, as it was saved.
    ///
    /// # Errors
    /// When there is no save, it was changed, or the file cannot be written.
    pub fn get(&self, session: &SessionId, to: &Path) -> Result<Save> {
        self.runtime.block_on(self.place.get(session, to))
    }

    /// Removes all saves of a session.
    ///
    /// # Errors
    /// When the store does not do it.
    pub fn delete(&self, session: &SessionId) -> Result<()> {
        self.runtime.block_on(self.place.delete(session))
    }

    /// The sessions of which there are saves, by id.
    ///
    /// # Errors
    /// When the store cannot be asked.
    pub fn list(&self) -> Result<Vec<Kept>> {
        self.runtime.block_on(self.place.list())
    }
}

/// A pointer as it was read, and what says that it is still the same.
struct Read {
    pointer: Pointer,
    version: UpdateVersion,
}

impl Place {
    async fn put(&self, session: &SessionId, as_of_run: RunNo, file: &Path) -> Result<Save> {
        let home = self.session(session);
        if let Some(directory) = &self.directory {
            lock::make_private(&directory.join(session.as_str()))?;
        }
        // Before gigabytes are sent for nothing.
        if let Some(read) = self.pointer(session).await?
            && read.pointer.latest.save.as_of_run > as_of_run
        {
            return Err(VaultError::Superseded(Box::new(read.pointer.latest.save)));
        }
        let name = Name::new(as_of_run, nonce().map_err(VaultError::io("name", file))?);
        let key = home.clone().join(name.to_string());
        let uploaded = upload::upload(self, &key, file).await?;
        let save = Save {
            as_of_run,
            saved_at: format!("{:.3}", jiff::Timestamp::now()),
            size: uploaded.size,
            digest: uploaded.digest,
        };
        match self.advance(session, &Stored::new(save.clone(), &name)).await {
            Ok(pointer) => {
                self.sweep(&home, &pointer).await;
                Ok(save)
            }
            Err(error) => {
                let _ = self.bounded(self.store.delete(&key)).await;
                Err(error)
            }
        }
    }

    /// Makes a save that is complete the last one.
    async fn advance(&self, session: &SessionId, stored: &Stored) -> Result<Pointer> {
        let key = self.session(session).join(POINTER);
        for attempt in 0..ATTEMPTS {
            let _lock = match &self.directory {
                Some(directory) => Some(Lock::wait(&directory.join(session.as_str()))?),
                None => None,
            };
            let before = self.pointer(session).await?;
            let next = Pointer::advance(before.as_ref().map(|read| &read.pointer), stored.clone())?;
            let mode = match before {
                // The lock is the condition.
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
                    // The user has said that the store has no conditions.
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

    async fn pointer(&self, session: &SessionId) -> Result<Option<Read>> {
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
                Ok(Some(Read { pointer: Pointer::read(&bytes)?, version }))
            }
            Ok(None) => Err(VaultError::Damaged("the pointer is too long")),
            Err(VaultError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn get(&self, session: &SessionId, to: &Path) -> Result<Save> {
        // The save may be replaced twice while it is read; then the pointer
        // says something new.
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
        for (key, _) in self.objects(&home).await? {
            self.remove(&key).await?;
        }
        if let Some(directory) = &self.directory {
            let directory = directory.join(session.as_str());
            let _ = std::fs::remove_file(directory.join(".lock"));
            let _ = std::fs::remove_dir(directory);
        }
        Ok(())
    }

    async fn list(&self) -> Result<Vec<Kept>> {
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
                Ok(Some(read)) => kept.push(Kept { session, latest: Ok(read.pointer.latest.save) }),
                // An upload that never became a save.
                Ok(None) => {}
                Err(error) => kept.push(Kept { session, latest: Err(error) }),
            }
        }
        Ok(kept)
    }

    /// Removes what nobody needs any more. That it fails costs room, and the
    /// next save tries again.
    async fn sweep(&self, home: &Key, pointer: &Pointer) {
        for (key, name) in self.objects(home).await.unwrap_or_default() {
            if pointer.has_outlived(&name) {
                let _ = self.remove(&key).await;
            }
        }
    }

    /// The objects of a session that are ours.
    async fn objects(&self, home: &Key) -> Result<Vec<(Key, Name)>> {
        let listed = self.bounded(self.store.list(Some(home)).try_collect::<Vec<_>>()).await?;
        let ours = listed.into_iter().filter_map(|object| {
            let name = object.location.filename()?.parse().ok()?;
            // Not of a directory within.
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

/// A number that nobody else has drawn.
fn nonce() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_le_bytes(bytes))
}
