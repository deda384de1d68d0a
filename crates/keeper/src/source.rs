//! The owners of watched descriptors.
//!
//! The system returns 64 bits with each event. They hold the whole source: its kind in
//! the highest byte, its number in the others. So no table can be out of date. An event
//! that was pending when its descriptor was closed may reach a successor of the same
//! name; reading there finds nothing, which does no harm.

use crate::reactor::Key;
use sessile_protocol::{Language, RunNo};
use sessile_session::operations::ImageId;
use sessile_store::StreamName;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The session's socket.
    Listener,
    Client(ClientId),
    /// The process's signals.
    Signals,
    /// Reports of a kernel.
    Reports(Language),
    /// Output of a run.
    Pipe(Pipe),
    Terminal(Language),
    /// The open stdin of a run, when it has room.
    Stdin(RunNo),
    /// A copy of a kernel that is kept.
    Image(ImageId),
    /// A copy of a kernel that is to become one.
    Copy(Language),
    /// The worker of the save in progress.
    SaveWorker,
    UploadWorker,
    /// The worker that asks the store which machine has the session.
    LookWorker,
    FileWorker(FileJobId),
    /// Processes that have ended in the sandbox.
    Sandbox,
    /// Attempts to leave the sandbox that were refused.
    Refusals,
    /// The program with which the session ends.
    Program,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pipe {
    /// A kernel's pipe for its current run.
    Current(Language, StreamName),
    /// The pipe of an ended run, held by a process that it left behind.
    Background(BackgroundPipeId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientId(pub(crate) u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BackgroundPipeId(pub(crate) u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileJobId(pub(crate) u64);

const KIND: u32 = 56;

/// In the order of their numbers.
const LANGUAGES: [Language; 5] =
    [Language::Bash, Language::Sh, Language::Zsh, Language::Python, Language::Node];

fn number(language: Language) -> u64 {
    match language {
        Language::Bash => 0,
        Language::Sh => 1,
        Language::Zsh => 2,
        Language::Python => 3,
        Language::Node => 4,
    }
}

fn language(number: u64) -> Option<Language> {
    LANGUAGES.get(usize::try_from(number).ok()?).copied()
}

impl Key for Source {
    fn to_bits(self) -> u64 {
        let (kind, detail) = match self {
            Self::Listener => (0, 0),
            Self::Client(ClientId(id)) => (1, id),
            Self::Signals => (2, 0),
            Self::Reports(language) => (3, number(language)),
            Self::Pipe(Pipe::Current(language, StreamName::Stdout)) => (4, number(language)),
            Self::Pipe(Pipe::Current(language, StreamName::Stderr)) => (5, number(language)),
            Self::Pipe(Pipe::Background(BackgroundPipeId(id))) => (6, id),
            Self::Terminal(language) => (7, number(language)),
            Self::Stdin(RunNo(run)) => (8, run),
            Self::Image(ImageId(id)) => (9, id),
            Self::Copy(language) => (10, number(language)),
            Self::SaveWorker => (11, 0),
            Self::UploadWorker => (12, 0),
            Self::FileWorker(FileJobId(id)) => (13, id),
            Self::Sandbox => (14, 0),
            Self::Refusals => (15, 0),
            Self::Program => (16, 0),
            Self::LookWorker => (17, 0),
        };
        kind << KIND | detail
    }

    fn from_bits(bits: u64) -> Option<Self> {
        let (kind, detail) = (bits >> KIND, bits & ((1 << KIND) - 1));
        Some(match kind {
            0 => Self::Listener,
            1 => Self::Client(ClientId(detail)),
            2 => Self::Signals,
            3 => Self::Reports(language(detail)?),
            4 => Self::Pipe(Pipe::Current(language(detail)?, StreamName::Stdout)),
            5 => Self::Pipe(Pipe::Current(language(detail)?, StreamName::Stderr)),
            6 => Self::Pipe(Pipe::Background(BackgroundPipeId(detail))),
            7 => Self::Terminal(language(detail)?),
            8 => Self::Stdin(RunNo(detail)),
            9 => Self::Image(ImageId(detail)),
            10 => Self::Copy(language(detail)?),
            11 => Self::SaveWorker,
            12 => Self::UploadWorker,
            13 => Self::FileWorker(FileJobId(detail)),
            14 => Self::Sandbox,
            15 => Self::Refusals,
            16 => Self::Program,
            17 => Self::LookWorker,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_comes_back_as_it_was() {
        let mut sources = vec![
            Source::Listener,
            Source::Client(ClientId(7)),
            Source::Signals,
            Source::Pipe(Pipe::Background(BackgroundPipeId(1 << 40))),
            Source::Stdin(RunNo(3)),
            Source::Image(ImageId(9)),
            Source::SaveWorker,
            Source::UploadWorker,
            Source::LookWorker,
            Source::FileWorker(FileJobId(2)),
            Source::Sandbox,
            Source::Refusals,
            Source::Program,
        ];
        for language in LANGUAGES {
            sources.extend([
                Source::Reports(language),
                Source::Pipe(Pipe::Current(language, StreamName::Stdout)),
                Source::Pipe(Pipe::Current(language, StreamName::Stderr)),
                Source::Terminal(language),
                Source::Copy(language),
            ]);
        }
        for source in sources {
            assert_eq!(Source::from_bits(source.to_bits()), Some(source));
        }
        assert_eq!(Source::from_bits(u64::MAX), None);
        assert_eq!(Source::from_bits(3 << KIND | 5), None, "there is no such language");
    }
}
