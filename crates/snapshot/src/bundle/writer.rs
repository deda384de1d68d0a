//! Writes a bundle to a temporary file, which gets its name when it is complete.

use super::Key;
use super::format::{END, Error, Kind, LONGEST_PIECE, MAGIC, PART, VERSION};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Fast, and within a tenth of what slower levels achieve on such data.
const LEVEL: i32 = 3;

/// Writes a bundle. Without [`Writer::finish`], nothing is left of it, however the process
/// ends: until then the file has no name. If the file system does not support such files, a
/// killed process leaves a file in the same directory whose name begins with a dot and ends
/// in `.tmp`.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    temporary: PathBuf,
    sink: Hashing<BufWriter<File>>,
    names: HashSet<String>,
    name: Name,
}

/// The name of the file while it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    None,
    Temporary,
    Final,
}

#[derive(Debug)]
struct Hashing<W> {
    inner: W,
    hasher: blake3::Hasher,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Writer {
    /// Begins the file that will be at `path`. An existing file stays until the end.
    ///
    /// # Errors
    ///
    /// If the directory cannot be written to.
    pub fn create(path: &Path) -> Result<Writer, Error> {
        let begun = beside(path).and_then(|temporary| {
            let (file, name) = begin(&temporary)?;
            Ok((temporary, file, name))
        });
        let (temporary, file, name) =
            begun.map_err(|source| Error::Io { action: "write", path: path.to_owned(), source })?;
        let sink = Hashing { inner: BufWriter::new(file), hasher: blake3::Hasher::new() };
        let path = path.to_owned();
        let names = HashSet::new();
        let mut writer = Writer { path, temporary, sink, names, name };
        let mut head = MAGIC.to_vec();
        head.extend(VERSION.to_le_bytes());
        writer.write(&head)?;
        Ok(writer)
    }

    /// Adds a part that is in memory.
    ///
    /// # Errors
    ///
    /// If the name is taken or invalid, or the file cannot be written.
    pub fn add(&mut self, name: &str, kind: Kind, bytes: &[u8]) -> Result<(), Error> {
        self.add_reader(name, kind, bytes.len() as u64, bytes)
    }

    /// Adds a part of a known length from a reader.
    ///
    /// # Errors
    ///
    /// As [`Writer::add`]; also if the reader fails or does not have that many bytes. After
    /// an error, begin again with a new writer.
    pub fn add_reader(
        &mut self,
        name: &str,
        kind: Kind,
        length: u64,
        mut reader: impl Read,
    ) -> Result<(), Error> {
        self.add_with(name, kind, length, |part| pour(&mut reader, length, part, name))
    }

    /// Adds a part of a known length that `fill` writes.
    ///
    /// # Errors
    ///
    /// As [`Writer::add_reader`].
    pub(crate) fn add_with<E: From<Error>>(
        &mut self,
        name: &str,
        kind: Kind,
        length: u64,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        let short = u8::try_from(name.len()).ok().filter(|length| *length > 0);
        let Some(short) = short.filter(|_| !self.names.contains(name)) else {
            return Err(Error::BadName(name.to_owned()).into());
        };
        self.names.insert(name.to_owned());
        let mut head = vec![PART, short];
        head.extend(name.as_bytes());
        head.extend(kind.number().to_le_bytes());
        head.extend(length.to_le_bytes());
        self.write(&head)?;

        let pieces = Pieces { sink: &mut self.sink, buffer: Vec::new() };
        let mut part = Compressing::new(pieces).map_err(Error::Write)?;
        fill(&mut part)?;
        let found = part.finish().map_err(Error::Write)?;
        if found != length {
            let name = name.to_owned();
            return Err(Error::WrongLength { name, announced: length, found }.into());
        }
        self.write(&0_u32.to_le_bytes())?;
        Ok(())
    }

    /// Seals everything written so far. It has to be the last part.
    ///
    /// # Errors
    ///
    /// As [`Writer::add`].
    pub fn seal(&mut self, key: &Key) -> Result<(), Error> {
        let digest = *self.sink.hasher.finalize().as_bytes();
        self.add("seal", Kind::Seal, key.seal(&digest).as_bytes())
    }

    /// Puts the file in its place, synced to the disk.
    ///
    /// # Errors
    ///
    /// If it cannot be written: then the file that was at the path is still there.
    pub fn finish(mut self) -> Result<(), Error> {
        let count = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let mut end = vec![END];
        end.extend(count.to_le_bytes());
        self.write(&end)?;
        let checksum = *self.sink.hasher.finalize().as_bytes();
        self.write(&checksum)?;
        self.sink.flush().map_err(Error::Write)?;
        self.sink.inner.get_ref().sync_all().map_err(Error::Write)?;
        self.put_in_place().map_err(|source| {
            let path = self.path.clone();
            Error::Io { action: "write", path, source }
        })
    }

    fn put_in_place(&mut self) -> io::Result<()> {
        if self.name == Name::None {
            // linkat cannot replace a file, so link it under another name first.
            let file = format!("/proc/self/fd/{}", self.sink.inner.get_ref().as_raw_fd());
            rustix::fs::linkat(CWD, file, CWD, &self.temporary, AtFlags::SYMLINK_FOLLOW)?;
            self.name = Name::Temporary;
        }
        std::fs::rename(&self.temporary, &self.path)?;
        self.name = Name::Final;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.sink.write_all(bytes).map_err(Error::Write)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        match self.name {
            Name::None | Name::Final => {}
            Name::Temporary => {
                let _ = std::fs::remove_file(&self.temporary);
            }
        }
    }
}

/// Makes the new file, readable only by its owner: a session may contain secrets.
fn begin(temporary: &Path) -> io::Result<(File, Name)> {
    let parent = temporary.parent().filter(|parent| !parent.as_os_str().is_empty());
    let nameless = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(parent.unwrap_or(Path::new(".")), nameless, mode) {
        Ok(file) => Ok((File::from(file), Name::None)),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
            let mut options = File::options();
            let file = options.write(true).create_new(true).mode(0o600).open(temporary)?;
            Ok((file, Name::Temporary))
        }
        Err(error) => Err(error.into()),
    }
}

fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{:016x}.tmp", u64::from_le_bytes(random)));
    Ok(path.with_file_name(temporary))
}

/// Copies from a reader, but not far beyond the announced length.
fn pour(
    reader: &mut impl Read,
    length: u64,
    part: &mut dyn Write,
    name: &str,
) -> Result<(), Error> {
    let mut buffer = vec![0; 64 * 1024];
    let mut found = 0;
    while found <= length {
        let read = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(Error::Source { name: name.to_owned(), source }),
        };
        found += read as u64;
        part.write_all(&buffer[..read]).map_err(Error::Write)?;
    }
    Ok(())
}

/// Compresses and counts.
struct Compressing<'a> {
    encoder: zstd::stream::write::Encoder<'static, Pieces<'a>>,
    found: u64,
}

impl<'a> Compressing<'a> {
    fn new(pieces: Pieces<'a>) -> io::Result<Compressing<'a>> {
        Ok(Compressing { encoder: zstd::stream::write::Encoder::new(pieces, LEVEL)?, found: 0 })
    }

    fn finish(self) -> io::Result<u64> {
        self.encoder.finish()?.flush()?;
        Ok(self.found)
    }
}

impl Write for Compressing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.encoder.write(bytes)?;
        self.found += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder.flush()
    }
}

/// Collects compressed bytes into pieces, each preceded by its length.
struct Pieces<'a> {
    sink: &'a mut Hashing<BufWriter<File>>,
    buffer: Vec<u8>,
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(LONGEST_PIECE - self.buffer.len());
        self.buffer.extend(&bytes[..taken]);
        if self.buffer.len() == LONGEST_PIECE {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            let length = u32::try_from(self.buffer.len()).unwrap_or(u32::MAX);
            self.sink.write_all(&length.to_le_bytes())?;
            self.sink.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}
