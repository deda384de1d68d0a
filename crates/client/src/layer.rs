//! The layer that a session in a sandbox writes to.

use crate::{Launcher, NoView, Workspace};
use sessile_layer::{Applied, Diff, Discarded, Force, Layer, LayerError, Scope, Tree};
use sessile_sandbox::{FileMode, Policy};
use sessile_store::{Directory, Manifest, Metadata, StoreError};
use sessile_subids::Owner;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// Name of a session's layer in its directory.
pub(crate) const LAYER: &str = "layer";

/// Why a layer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LayerRefused {
    #[error(
        "session {0} has no sandbox, so its changes are in the directory itself; there is no \
         layer to look at, apply or discard"
    )]
    NoSandbox(String),
    #[error(
        "session {0} was started with --files direct, so its changes are in the directory \
         itself; there is no layer to look at, apply or discard"
    )]
    Direct(String),
    #[error(
        "the session's policy cannot be read ({0}); it may be of a newer sessile: update this one"
    )]
    Policy(String),
    #[error(transparent)]
    NoView(#[from] NoView),
    #[error(transparent)]
    Layer(#[from] LayerError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A session's layer.
#[derive(Debug)]
pub struct SessionLayer {
    /// None: nothing can have been written.
    layer: Option<Layer>,
    metadata: Metadata,
}

impl SessionLayer {
    /// Returns the layer of a session, live or not. `user_state` is never shown.
    ///
    /// # Errors
    /// When the session has no layer.
    pub fn of(directory: &Directory, user_state: &Path) -> Result<Self, LayerRefused> {
        let metadata = directory.metadata()?;
        let id = || metadata.session_id.to_string();
        let Some(policy) = &metadata.sandbox else { return Err(LayerRefused::NoSandbox(id())) };
        let policy: Policy = serde_json::from_value(policy.clone())
            .map_err(|error| LayerRefused::Policy(error.to_string()))?;
        match policy.files {
            FileMode::Overlay => {}
            FileMode::Direct => return Err(LayerRefused::Direct(id())),
        }
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let at = real(directory.path());
        let sessions = at.parent().map(Path::to_owned).unwrap_or_else(|| at.clone());
        let hidden: [PathBuf; 2] = [sessions, real(user_state)];
        let hidden = [hidden[0].as_path(), hidden[1].as_path()];
        let scope = Scope::new(&policy, &metadata.work_dir, &hidden);
        let begun = metadata.created_at.parse::<jiff::Timestamp>();
        let begun = begun.map_or(0, |begun| begun.as_nanosecond());
        let begun = i64::try_from(begun).unwrap_or_default();
        let layer = Layer::open(&at.join(LAYER), &metadata.work_dir, scope, begun)?;
        Ok(Self { layer, metadata })
    }

    /// Returns the session's changes; see [`Layer::diff`].
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn diff(&self, paths: &[Vec<u8>], most: usize) -> Result<Diff, LayerRefused> {
        let none = Diff { changes: Vec::new(), skipped: Vec::new(), is_truncated: false };
        Ok(self.layer.as_ref().map_or(Ok(none), |layer| layer.diff(paths, most))?)
    }

    /// Applies changes to the real directory; see [`Layer::apply`].
    ///
    /// # Errors
    /// When a file has changed there, or cannot be written.
    pub fn apply(&self, paths: &[Vec<u8>], force: Force) -> Result<Applied, LayerRefused> {
        let none = Applied::default();
        Ok(self.layer.as_ref().map_or(Ok(none), |layer| layer.apply(paths, force))?)
    }

    /// Drops changes; see [`Layer::discard`].
    ///
    /// # Errors
    /// When no process of the session is alive to provide its view, or a file cannot be restored.
    pub fn discard(&self, paths: &[Vec<u8>]) -> Result<Discarded, LayerRefused> {
        let Some(layer) = &self.layer else { return Ok(Discarded::default()) };
        let view = Tree::open(&Workspace::of(&self.metadata)?.path)?;
        Ok(layer.discard(&view, paths)?)
    }
}

/// Copies a layer. If the sandbox has users besides root, some of the files are theirs. For
/// an ordinary user's range of ids, a separate process that owns them does the copy.
pub(crate) fn copy_layer(
    launcher: &Launcher,
    manifest: &Manifest,
    from: &Path,
    to: &Path,
) -> io::Result<()> {
    let policy = manifest.sandbox.clone().map(serde_json::from_value::<Policy>);
    let has_users = policy.is_some_and(|policy| policy.is_ok_and(|policy| policy.root));
    let Some(owner) = has_users.then(Owner::of_range).flatten() else {
        return sessile_layer::replicate(from, to).map_err(io::Error::other);
    };
    let arguments = [OsStr::new(COPIER), from.as_os_str(), to.as_os_str()];
    let output = owner.run(launcher.program(), &arguments)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(said.lines().next().unwrap_or("the layer was not copied").to_owned()))
}

/// The argument that makes our program copy a layer as its owner.
pub const COPIER: &str = "layer-copier";

/// Copies a layer from one directory to another.
///
/// # Errors
/// With the path that could not be copied.
pub fn copy_layer_as_owner(from: &Path, to: &Path) -> Result<(), LayerError> {
    sessile_layer::replicate(from, to)
}
