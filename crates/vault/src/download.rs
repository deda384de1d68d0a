//! Downloads an object of the store to a file, which appears only when it is complete.

use crate::VaultError;
use crate::place::Place;
use crate::pointer::Save;
use futures_util::StreamExt;
use object_store::ObjectStoreExt;
use object_store::path::Path as Key;
use rustix::fs::{Mode, OFlags};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum time between two pieces of a save.
const SILENCE: Duration = Duration::from_secs(60);

/// Downloads a save. Its length and digest are checked before the file gets its name.
pub(crate) async fn download(
    place: &Place,
    key: &Key,
    save: &Save,
    to: &Path,
) -> Result<(), VaultError> {
    let (mut file, part) = beside(to)?;
    let outcome = receive(place, key, save, &mut file, &part).await.and_then(|()| {
        file.sync_all().map_err(VaultError::io("write", &part))?;
        std::fs::rename(&part, to).map_err(VaultError::io("write", to))
    });
    if outcome.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    outcome
}

async fn receive(
    place: &Place,
    key: &Key,
    save: &Save,
    file: &mut File,
    path: &Path,
) -> Result<(), VaultError> {
    let explain = |error: object_store::Error| {
        if matches!(error, object_store::Error::NotFound { .. }) {
            VaultError::Damaged("the file that the pointer names is gone")
        } else {
            place.told.explain(&error)
        }
    };
    let object = place.store.get(key).await.map_err(explain)?;
    let mut hasher = blake3::Hasher::new();
    let mut left = save.size;
    let mut stream = object.into_stream();
    loop {
        let next = tokio::time::timeout(SILENCE, stream.next());
        let Some(piece) = next.await.map_err(|_| place.told.timed_out())? else {
            break;
        };
        let piece = piece.map_err(explain)?;
        let Some(rest) = left.checked_sub(piece.len() as u64) else {
            return Err(VaultError::Damaged("it is longer than it was when it was saved"));
        };
        left = rest;
        hasher.update(&piece);
        file.write_all(&piece).map_err(VaultError::io("write", path))?;
    }
    if left > 0 {
        return Err(VaultError::Damaged("it is shorter than it was when it was saved"));
    }
    if hasher.finalize().to_hex().as_str() != save.digest {
        return Err(VaultError::Damaged("it is not what was saved"));
    }
    Ok(())
}

/// Makes a new file in the same directory, only for its owner.
fn beside(to: &Path) -> Result<(File, PathBuf), VaultError> {
    let mut name = to.file_name().map_or_else(OsString::new, OsString::from);
    name.push(format!(".{:016x}.part", crate::nonce().map_err(VaultError::io("name", to))?));
    let path = to.with_file_name(name);
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600))
        .map_err(|error| VaultError::io("make", &path)(error.into()))?;
    Ok((File::from(file), path))
}
