//! Constants of the format, and errors of a file.

use std::io;
use std::path::PathBuf;

/// The first byte is not a letter, so that the file is not taken for text.
pub(super) const MAGIC: &[u8; 8] = b"\x93SESSILE";

/// The version of the format that is written, and the newest that can be read.
pub const VERSION: u16 = 1;

pub(super) const PART: u8 = 1;
pub(super) const END: u8 = 0;

/// Maximum size of a piece of compressed bytes. With pieces, a writer need not know the
/// total length in advance.
pub(super) const LONGEST_PIECE: usize = 1 << 20;

/// A file says how much memory its decoder needs; our files never need more than 8 MB, and
/// no file gets more.
pub(super) const WINDOW: u32 = 23;

/// The kind of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The session's manifest: JSON.
    Session,
    /// The state of a kernel.
    Kernel,
    /// The session's history.
    History,
    /// A tree of files, as [`crate::files::Depot::export`] writes it.
    Files,
    /// The seal of everything before it: see [`crate::bundle::Seal`].
    Seal,
    /// The settings of an agent: JSON.
    Agent,
    /// An agent's thread: JSON, one entry per line.
    Thread,
    /// A whole saved session, as a bundle.
    Saved,
    /// A part of a newer version, to be skipped.
    Unknown(u16),
}

impl Kind {
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Kind::Session => 1,
            Kind::Kernel => 2,
            Kind::History => 3,
            Kind::Files => 4,
            Kind::Seal => 5,
            Kind::Agent => 6,
            Kind::Thread => 7,
            Kind::Saved => 8,
            Kind::Unknown(number) => number,
        }
    }

    #[must_use]
    pub fn from_number(number: u16) -> Kind {
        match number {
            1 => Kind::Session,
            2 => Kind::Kernel,
            3 => Kind::History,
            4 => Kind::Files,
            5 => Kind::Seal,
            6 => Kind::Agent,
            7 => Kind::Thread,
            8 => Kind::Saved,
            _ => Kind::Unknown(number),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },

    #[error("cannot read the file: {0}")]
    Read(io::Error),

    #[error("cannot write the file: {0}")]
    Write(io::Error),

    #[error("this is not a saved session")]
    NotABundle,

    #[error(
        "the file has version {version} of the format, and this sessile knows {VERSION}: update it"
    )]
    Newer { version: u16 },

    #[error("the file is cut off")]
    Truncated,

    #[error("the file is damaged: {0}")]
    Damaged(&'static str),

    #[error("the file holds more than {limit} {unit}: raise the limit if you trust it")]
    TooLarge { limit: u64, unit: &'static str },

    #[error("the file has no part \"{0}\"")]
    NoSuchPart(String),

    #[error("a part cannot be called \"{0}\": it needs a new name of 1 to 255 bytes")]
    BadName(String),

    #[error("the part \"{name}\" was announced with {announced} bytes and has {found}")]
    WrongLength { name: String, announced: u64, found: u64 },

    #[error("cannot read what is to become the part \"{name}\": {source}")]
    Source { name: String, source: io::Error },
}

impl Error {
    /// Returns whether there was no room to write.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        match self {
            Error::Io { source, .. } | Error::Write(source) => has_no_room(source),
            Error::Read(_)
            | Error::NotABundle
            | Error::Newer { .. }
            | Error::Truncated
            | Error::Damaged(_)
            | Error::TooLarge { .. }
            | Error::NoSuchPart(_)
            | Error::BadName(_)
            | Error::WrongLength { .. }
            | Error::Source { .. } => false,
        }
    }
}

pub(crate) fn has_no_room(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Maps a read error. An unexpected end of the file means that it was cut, not that the
/// disk failed.
pub(super) fn reading(error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::UnexpectedEof { Error::Truncated } else { Error::Read(error) }
}

/// Maps an error in a part whose checksum was correct. It concerns the contents, unless it
/// comes from the system.
pub(crate) fn reading_part(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(_) => Error::Read(error),
        None => Error::Damaged("a part cannot be decompressed to what it says"),
    }
}
