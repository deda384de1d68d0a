//! The changes of a session in a sandbox: the layer on top of its workspace. They are shown
//! as a diff, applied to the real directory, or discarded.
//!
//! ```text
//!  upper    written files, as overlayfs keeps them: files, whiteouts, opaque directories
//!  real     the directory below, which people work in meanwhile
//!  view     both, as the session's programs see them, through its own mounts
//! ```
//!
//! - **Nothing in a layer is trusted.** Untrusted code has made it, and continues to run
//!   during
//!   our calls. The system resolves every path beneath its tree, no link is followed anywhere
//!   on the way, and a file is put in its place as a whole.
//! - **The upper directory is only read.** Changing it behind a live mount would leave the
//!   kernel with names and files that do not exist. Discarding changes goes through the view
//!   instead, like one more program of the session: mounts, caches and open files stay
//!   correct, for an overlay and for the file system of rules alike. It leaves a copy that
//!   equals the real file, which is not a change.
//! - **Only writable paths count.** What the session's policy hides is neither shown nor
//!   touched, in the layer or in the real directory.
//!
//! The functions block, and know nothing about sessions.

mod apply;
mod base;
mod beneath;
mod changes;
mod copying;
mod diff;
mod discard;
mod error;
mod found;
mod ledger;
mod moving;
mod quoting;
mod renames;
mod replica;
mod scope;

pub use apply::{Applied, Force, Skipped};
pub use base::remember_bases;
pub use beneath::Tree;
pub use changes::{Change, Sort};
pub use diff::{Diff, Lines, ShownChange};
pub use discard::Discarded;
pub use error::LayerError;
pub use found::{Kind, Node};
pub use quoting::quoted;
pub use replica::replicate;
pub use scope::Scope;

use ledger::Ledger;
use std::path::{Path, PathBuf};

/// The result of every function here.
pub type Result<T, E = LayerError> = std::result::Result<T, E>;

/// A session's layer, and the directory below it.
#[derive(Debug)]
pub struct Layer {
    upper: Tree,
    real: Tree,
    scope: Scope,
    /// When the session began, in nanoseconds since 1970: for file systems without creation times.
    begun: i64,
    /// Path of the ledger of applied and discarded changes.
    ledger: PathBuf,
}

/// Directory of a layer that gets the written files.
pub use sessile_sandbox::plan::UPPER;

impl Layer {
    /// Opens the layer in a directory. Returns none if it has no upper directory: nothing
    /// was written.
    ///
    /// # Errors
    /// When one of the two cannot be opened.
    pub fn open(kept: &Path, real: &Path, scope: Scope, begun: i64) -> Result<Option<Self>> {
        let upper = match Tree::open(&kept.join(UPPER)) {
            Err(LayerError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            opened => opened?,
        };
        let real = Tree::open(real)?;
        Ok(Some(Self { upper, real, scope, begun, ledger: kept.join(ledger::FILE) }))
    }

    fn ledger(&self) -> Result<Ledger> {
        Ledger::read(&self.ledger)
    }
}
