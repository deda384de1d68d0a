//! Which level an operation takes. Pure.

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Outcome;
use crate::policy::Level;

/// Opening a file that is there.
pub(super) fn open(level: Level, flags: OFlags) -> Outcome {
    let access = flags & OFlags::RWMODE;
    let reads_only = access == OFlags::RDONLY && !flags.contains(OFlags::TRUNC);
    match level {
        Level::None => Err(Errno::NOENT),
        Level::View => Err(Errno::ACCESS),
        Level::Read if reads_only => Ok(()),
        Level::Read => Err(Errno::ACCESS),
        Level::Write => Ok(()),
    }
}

/// Changing what is there: its content, its attributes, its name.
pub(super) fn change(level: Level) -> Outcome {
    match level {
        Level::None => Err(Errno::NOENT),
        Level::View | Level::Read => Err(Errno::ACCESS),
        Level::Write => Ok(()),
    }
}

/// Giving something a name. What is hidden may be there already, and must not
/// be told apart from what is not.
pub(super) fn name(level: Level) -> Outcome {
    match level {
        Level::None | Level::View | Level::Read => Err(Errno::ACCESS),
        Level::Write => Ok(()),
    }
}

/// What creating a file comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Creation {
    Named,
    /// A file without a name, gone when it is closed.
    Nameless,
}

pub(super) fn create(level: Level) -> Result<Creation, Errno> {
    match level {
        Level::None => Ok(Creation::Nameless),
        Level::View | Level::Read => Err(Errno::ACCESS),
        Level::Write => Ok(Creation::Named),
    }
}
