//! Reads a bundle: once through for the checksum, then part by part.

use super::Seal;
use super::format::{
    END, Error, Kind, LONGEST_PIECE, MAGIC, PART, VERSION, WINDOW, reading, reading_part,
};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Maximum contents of a bundle.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Decompressed bytes of all parts together.
    pub total: u64,
    pub parts: u32,
}

impl Default for Limits {
    /// 16 GiB in a thousand parts.
    fn default() -> Limits {
        Limits { total: 16 << 30, parts: 1_000 }
    }
}

/// A part of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    pub kind: Kind,
    /// Its number of bytes, decompressed.
    pub length: u64,
    offset: u64,
    /// The hash of all bytes of the file before this part.
    before: [u8; 32],
}

/// Length of a seal, in bytes.
const SEAL_LENGTH: u64 = 32;

/// A bundle whose checksum was correct.
#[derive(Debug)]
pub struct Reader<S = File> {
    source: S,
    parts: Vec<Part>,
}

impl Reader<File> {
    /// Opens a file and checks all of it.
    ///
    /// # Errors
    ///
    /// If it is not a bundle, is of a newer version, is damaged, or holds more
    /// than allowed.
    pub fn open(path: &Path, limits: Limits) -> Result<Reader<File>, Error> {
        let file = File::open(path).map_err(|source| Error::Io {
            action: "open",
            path: path.to_owned(),
            source,
        })?;
        Reader::new(file, limits)
    }
}

impl<S: Read + Seek> Reader<S> {
    /// Like [`Reader::open`], for any source that can be read twice.
    ///
    /// # Errors
    ///
    /// As [`Reader::open`].
    pub fn new(mut source: S, limits: Limits) -> Result<Reader<S>, Error> {
        source.seek(SeekFrom::Start(0)).map_err(Error::Read)?;
        let mut scan = Scan {
            source: BufReader::with_capacity(128 * 1024, &mut source),
            hasher: blake3::Hasher::new(),
            position: 0,
        };
        let parts = scan.file(limits)?;
        Ok(Reader { source, parts })
    }

    /// Returns all parts in their order, including those of unknown kinds.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the part with this name.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.name == name)
    }

    /// Returns the seal, if the file has one for all of its contents.
    ///
    /// # Errors
    ///
    /// If it is damaged.
    pub fn seal(&mut self) -> Result<Option<Seal>, Error> {
        let Some(part) = self.parts.last().filter(|part| part.kind == Kind::Seal).cloned() else {
            return Ok(None);
        };
        let sealed = self.read(&part.name, SEAL_LENGTH)?;
        let sealed = sealed.try_into().map_err(|_| Error::Damaged("its seal is none"))?;
        Ok(Some(Seal { digest: part.before, sealed }))
    }

    /// Returns a whole part, if it has at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// If there is no such part, it is larger, or it is damaged.
    pub fn read(&mut self, name: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let mut reader = self.stream(name)?;
        if reader.length() > limit {
            return Err(Error::TooLarge { limit, unit: "bytes in a part" });
        }
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(reading_part)?;
        Ok(bytes)
    }

    /// Returns a part as a stream. The stream ends with an error unless it has exactly the
    /// announced number of bytes.
    ///
    /// # Errors
    ///
    /// If there is no such part, or the file cannot be read.
    pub fn stream(&mut self, name: &str) -> Result<PartReader<'_, S>, Error> {
        let part = self.part(name).ok_or_else(|| Error::NoSuchPart(name.to_owned()))?;
        let length = part.length;
        let offset = part.offset;
        self.source.seek(SeekFrom::Start(offset)).map_err(Error::Read)?;
        let source = BufReader::with_capacity(128 * 1024, &mut self.source);
        let pieces = BufReader::with_capacity(128 * 1024, Pieces { source, left: 0, ended: false });
        let mut decoder =
            zstd::stream::read::Decoder::with_buffer(pieces).map_err(Error::Read)?.single_frame();
        decoder.window_log_max(WINDOW).map_err(Error::Read)?;
        Ok(PartReader { decoder, length, left: length })
    }
}

/// The bytes of a part.
pub struct PartReader<'a, S> {
    decoder: zstd::stream::read::Decoder<'static, BufReader<Pieces<BufReader<&'a mut S>>>>,
    length: u64,
    left: u64,
}

impl<S> std::fmt::Debug for PartReader<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartReader")
            .field("length", &self.length)
            .field("left", &self.left)
            .finish()
    }
}

impl<S> PartReader<'_, S> {
    /// Returns its total number of bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }
}

impl<S: Read> Read for PartReader<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            // There must be no more.
            return match self.decoder.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(invalid("a part is longer than it says")),
            };
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.decoder.read(&mut buffer[..room])?;
        if read == 0 {
            return Err(invalid("a part is shorter than it says"));
        }
        self.left -= read as u64;
        Ok(read)
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The compressed bytes of a part, without the lengths of its pieces.
#[derive(Debug)]
struct Pieces<R> {
    source: R,
    left: usize,
    ended: bool,
}

impl<R: Read> Read for Pieces<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.ended {
            let mut length = [0; 4];
            self.source.read_exact(&mut length)?;
            self.left = u32::from_le_bytes(length) as usize;
            self.ended = self.left == 0;
        }
        let room = self.left.min(buffer.len());
        let read = self.source.read(&mut buffer[..room])?;
        self.left -= read;
        Ok(read)
    }
}

/// Scans a file once.
struct Scan<R> {
    source: R,
    hasher: blake3::Hasher,
    position: u64,
}

impl<R: Read> Scan<R> {
    fn file(&mut self, limits: Limits) -> Result<Vec<Part>, Error> {
        let magic: [u8; 8] = match self.array() {
            Err(Error::Truncated) => return Err(Error::NotABundle),
            magic => magic?,
        };
        if &magic != MAGIC {
            return Err(Error::NotABundle);
        }
        let version = u16::from_le_bytes(self.array()?);
        if version > VERSION {
            return Err(Error::Newer { version });
        }
        let mut parts: Vec<Part> = Vec::new();
        let mut room = limits.total;
        loop {
            let before = *self.hasher.finalize().as_bytes();
            match self.array()? {
                [PART] => {
                    if parts.len() >= limits.parts as usize {
                        return Err(Error::TooLarge { limit: limits.parts.into(), unit: "parts" });
                    }
                    let part = self.part(before)?;
                    room = room
                        .checked_sub(part.length)
                        .ok_or(Error::TooLarge { limit: limits.total, unit: "bytes" })?;
                    if parts.iter().any(|known| known.name == part.name) {
                        return Err(Error::Damaged("two parts have the same name"));
                    }
                    parts.push(part);
                }
                [END] => break,
                _ => return Err(Error::Damaged("there is something between two parts")),
            }
        }
        self.end(parts.len())?;
        Ok(parts)
    }

    fn part(&mut self, before: [u8; 32]) -> Result<Part, Error> {
        let [length] = self.array()?;
        let mut name = vec![0; usize::from(length)];
        self.fill(&mut name)?;
        let name = String::from_utf8(name).ok().filter(|name| !name.is_empty());
        let name = name.ok_or(Error::Damaged("a part has no proper name"))?;
        let kind = Kind::from_number(u16::from_le_bytes(self.array()?));
        let length = u64::from_le_bytes(self.array()?);
        let offset = self.position;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let mut left = u32::from_le_bytes(self.array()?) as usize;
            if left == 0 {
                return Ok(Part { name, kind, length, offset, before });
            }
            if left > LONGEST_PIECE {
                return Err(Error::Damaged("a piece of a part is too long"));
            }
            while left > 0 {
                let now = left.min(buffer.len());
                self.fill(&mut buffer[..now])?;
                left -= now;
            }
        }
    }

    fn end(&mut self, parts: usize) -> Result<(), Error> {
        let count = u32::from_le_bytes(self.array()?);
        let computed = *self.hasher.finalize().as_bytes();
        let stored: [u8; 32] = self.array()?;
        if computed != stored {
            return Err(Error::Damaged("its checksum is wrong"));
        }
        if count as usize != parts {
            return Err(Error::Damaged("it has not as many parts as it says"));
        }
        match self.source.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(Error::Damaged("something follows its end")),
            Err(error) => Err(Error::Read(error)),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.source.read_exact(bytes).map_err(reading)?;
        self.hasher.update(bytes);
        self.position += bytes.len() as u64;
        Ok(())
    }
}
