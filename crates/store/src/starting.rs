//! start.json: the request that started a session, if it had a key.
//!
//! The id of such a session is derived from the key. So a repeated request finds the
//! session that the first one has made or is making, and none is made twice, whichever
//! process dies in between.
//!
//! A request may be given a session that already exists, with another id. Then the
//! directory derived from the key has only this file, with that id in it.

use crate::atomic;
use crate::directory::{Directory, Sessions, StoreError};
use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};
use sessile_protocol::SessionId;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;

const FILE: &str = "start.json";

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    digest: String,
    /// The session that the request was given, if it has another id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
}

/// The turn to make a session. Other processes with the same request wait until it ends,
/// also by the death of the process.
#[derive(Debug)]
pub struct StartTurn {
    directory: Directory,
    file: File,
    known: Option<Record>,
}

impl Sessions {
    /// Waits for the turn to make this session. Its directory exists then.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn turn_to_start(&self, id: &SessionId) -> Result<StartTurn, StoreError> {
        loop {
            let directory = self.create(id)?;
            // A process that fails removes the directory; then it is made again.
            if let Some(turn) = StartTurn::take(directory)? {
                return Ok(turn);
            }
        }
    }
}

impl StartTurn {
    fn take(directory: Directory) -> Result<Option<Self>, StoreError> {
        let path = directory.path().join(FILE);
        let failed = |error: rustix::io::Errno| StoreError::io("open", &path)(error.into());
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mut file = match rustix::fs::open(&path, flags, atomic::PRIVATE_FILE) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        loop {
            match rustix::fs::flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let held = file.metadata().map_err(StoreError::io("read", &path))?;
        let is_there =
            std::fs::symlink_metadata(&path).is_ok_and(|there| there.ino() == held.ino());
        if !is_there {
            return Ok(None);
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(StoreError::io("read", &path))?;
        // A file that cannot be read was being written when its writer died: nothing was
        // begun for it.
        let known = serde_json::from_slice(&text).ok();
        Ok(Some(Self { directory, file, known }))
    }

    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns the digest of the earlier request with this key.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.known.as_ref().map(|record| record.digest.as_str())
    }

    /// Returns the existing session that the request was given. The process that gave it
    /// may have died before it was done.
    #[must_use]
    pub fn given(&self) -> Option<&SessionId> {
        self.known.as_ref()?.session.as_ref()
    }

    /// Records the request before it is carried out: with a new session, or with an
    /// existing one that is given away.
    ///
    /// # Errors
    /// When a write fails.
    pub fn record(&mut self, digest: &str, given: Option<&SessionId>) -> Result<(), StoreError> {
        let path = self.directory.path().join(FILE);
        let record = Record { digest: digest.to_owned(), session: given.cloned() };
        let text = serde_json::to_vec(&record)
            .map_err(|source| StoreError::Damaged { path: path.clone(), source })?;
        self.file
            .set_len(0)
            .and_then(|()| std::io::Seek::rewind(&mut self.file))
            .and_then(|()| self.file.write_all(&text))
            .map_err(StoreError::io("write", &path))?;
        self.known = Some(record);
        Ok(())
    }
}

impl Directory {
    /// Returns the session that a request with a key was given, if this directory only
    /// stands for such a request.
    pub(crate) fn stands_for(&self) -> Option<SessionId> {
        self.read_json::<Record>(FILE).ok()?.session
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UserState;

    #[test]
    fn a_turn_ends_with_its_holder_and_what_was_recorded_stays() {
        let place = tempfile::tempdir().unwrap();
        let sessions =
            Sessions::at(place.path().join("s"), UserState::at(place.path().join("state")));
        sessions.make().unwrap();
        let id = SessionId::from_random([3; 12]);
        let mut first = sessions.turn_to_start(&id).unwrap();
        assert_eq!(first.digest(), None);
        first.record("one", None).unwrap();
        let other = std::thread::spawn(move || {
            let turn = sessions.turn_to_start(&SessionId::from_random([3; 12])).unwrap();
            turn.digest().map(str::to_owned)
        });
        drop(first);
        assert_eq!(other.join().unwrap().as_deref(), Some("one"));
    }

    /// Also for processes that already wait, or come during the removal.
    #[test]
    fn one_who_has_failed_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let sessions =
            Sessions::at(place.path().join("s"), UserState::at(place.path().join("state")));
        let id = SessionId::from_random([3; 12]);
        for _ in 0..200 {
            let mut failed = sessions.turn_to_start(&id).unwrap();
            assert_eq!(failed.digest(), None);
            failed.record("one", None).unwrap();
            let others: Vec<_> = (0..3)
                .map(|_| {
                    let (sessions, id) = (sessions.clone(), id.clone());
                    std::thread::spawn(move || {
                        let turn = sessions.turn_to_start(&id).unwrap();
                        let path = turn.directory().path().join(FILE);
                        assert!(path.exists(), "a turn is for the directory that is there");
                        turn.digest().map(str::to_owned)
                    })
                })
                .collect();
            failed.directory().remove().unwrap();
            drop(failed);
            for other in others {
                assert_eq!(other.join().unwrap(), None);
            }
        }
    }
}
