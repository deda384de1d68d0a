//! What a session in a sandbox has changed: the layer on top of its workspace,
//! told as a diff, applied to the real directory, or discarded.
//!
//! ```text
//!  upper    what was written, as overlayfs keeps it: files, whiteouts, opaque directories
//!  real     the directory below, which people work in meanwhile
//!  view     both, as the session's programs see them, through its own mounts
//! ```
//!
//! - **Nothing in a layer is trusted.** Code that nobody trusts has made it, and
//!   goes on while it is looked at. Every path is resolved by the system beneath
//!   its tree, no link is followed anywhere on the way, and a file is put in its
//!   place as a whole.
//! - **The upper directory is only read.** To change it behind a live mount would
//!   leave the kernel with names and files that are not there. What is discarded
//!   is changed through the view instead, as one more program of the session
//!   would: mounts, caches and open files stay right, for an overlay and for the
//!   file system of rules alike. What it leaves is a copy that equals the real
//!   file, and is no change.
//! - **Only what the session may write** is a change. What its policy hides is
//!   neither told nor touched, in the layer or in the real directory.
//!
//! Blocking; knows nothing of sessions.

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
pub use diff::{Diff, Lines, Shown};
pub use discard::Discarded;
pub use error::LayerError;
pub use found::{Kind, Node};
pub use quoting::quoted;
pub use replica::replicate;
pub use scope::Scope;

use ledger::Ledger;
use std::path::{Path, PathBuf};

/// What every call here gives.
pub type Result<T, E = LayerError> = std::result::Result<T, E>;

/// A session's layer, and the directory that it is on.
#[derive(Debug)]
pub struct Layer {
    upper: Tree,
    real: Tree,
    scope: Scope,
    /// When the session began, in nanoseconds since 1970: for file systems that do
    /// not tell when a file came into being.
    begun: i64,
    /// Where it is kept what was applied and discarded.
    ledger: PathBuf,
}

/// The part of a layer's directory that takes what is written.
pub const UPPER: &str = "upper";

impl Layer {
    /// The layer that is kept in a directory. Nothing was written if there is no
    /// upper part of it.
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
