//! Uploads a file to the store in parts, without holding it in memory.

use crate::VaultError;
use crate::place::Place;
use object_store::path::Path as Key;
use object_store::{ObjectStoreExt, WriteMultipart};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Above the 5 MiB that S3 requires, and a size that R2 accepts, too, which requires parts
/// of equal size.
const PART: u64 = 8 << 20;
const AT_ONCE: usize = 3;

/// S3 accepts 10,000 parts.
const MOST_PARTS: u64 = 9_000;

/// A stored object.
pub(crate) struct Uploaded {
    pub(crate) size: u64,
    pub(crate) digest: String,
}

/// Uploads a file. The object is invisible until it is complete. After an error the parts
/// are removed; after a kill, the store's rules for unfinished uploads apply.
pub(crate) async fn upload(place: &Place, key: &Key, path: &Path) -> Result<Uploaded, VaultError> {
    let mut file = File::open(path).map_err(VaultError::io("open", path))?;
    let size = file.metadata().map_err(VaultError::io("read", path))?.len();
    let part = PART.max(size.div_ceil(MOST_PARTS));
    let part = usize::try_from(part).unwrap_or(usize::MAX);
    let explain = |error| place.told.explain(&error);
    if size <= PART {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(VaultError::io("read", path))?;
        let uploaded = Uploaded { size: bytes.len() as u64, digest: digest(&bytes) };
        place.store.put(key, bytes.into()).await.map_err(explain)?;
        return Ok(uploaded);
    }
    let upload = place.store.put_multipart(key).await.map_err(explain)?;
    let mut writer = WriteMultipart::new_with_chunk_size(upload, part);
    match send(place, &mut writer, &mut file, path).await {
        Ok(uploaded) => {
            writer.finish().await.map_err(explain)?;
            Ok(uploaded)
        }
        Err(error) => {
            let _ = writer.abort().await;
            Err(error)
        }
    }
}

async fn send(
    place: &Place,
    writer: &mut WriteMultipart,
    file: &mut File,
    path: &Path,
) -> Result<Uploaded, VaultError> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    let mut size = 0;
    loop {
        writer.wait_for_capacity(AT_ONCE).await.map_err(|error| place.told.explain(&error))?;
        // This blocks, but the file was just written, and no other tasks are on this thread.
        let n = match file.read(&mut buffer) {
            Ok(n) => n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(VaultError::io("read", path)(error)),
        };
        if n == 0 {
            return Ok(Uploaded { size, digest: hasher.finalize().to_hex().to_string() });
        }
        let piece = buffer.get(..n).unwrap_or_default();
        hasher.update(piece);
        writer.write(piece);
        size += n as u64;
    }
}

fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
