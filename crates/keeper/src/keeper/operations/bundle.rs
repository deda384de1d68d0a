//! Writes a saved session's file, in a worker: everything here blocks.

use crate::scratch::open_left;
use sessile_protocol::{
    Code, Failure, Language, LeftBehind, RunNo, SavedFiles, SavedKernelView, SavedView,
};
use sessile_session::Epoch;
use sessile_snapshot::bundle::{self, Key, Kind, Writer};
use sessile_snapshot::files::{self, Depot, Rules};
use sessile_store::{
    BundledKernel, Directory, FORMAT, Manifest, Metadata, SavedKernel, Sessions, UserState, part,
    timestamp,
};
use std::path::{Path, PathBuf};

/// Contents of the file.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) files: bool,
    pub(super) directory: Directory,
    pub(super) user: UserState,
    pub(super) metadata: Metadata,
    /// Root of the workspace files.
    pub(super) root: PathBuf,
    pub(super) last_run: RunNo,
    pub(super) as_of: RunNo,
    pub(super) kernels: Vec<KernelContents>,
    pub(super) left: Vec<LeftBehind>,
}

#[derive(Debug)]
pub(super) struct KernelContents {
    pub(super) language: Language,
    pub(super) as_of: RunNo,
    /// Epoch of its process, if it has one.
    pub(super) epoch: Option<Epoch>,
    pub(super) version: Option<String>,
    pub(super) state: SavedKernel,
    pub(super) dump: Option<DumpFile>,
    pub(super) carried: Option<u64>,
}

/// The file with a kernel's state.
#[derive(Debug)]
pub(super) struct DumpFile {
    pub(super) path: PathBuf,
    pub(super) origin: Origin,
}

/// What a file was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It was written for this save.
    ThisSave,
    /// The session had it already.
    Before,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Bundle(#[from] bundle::Error),
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error(transparent)]
    Store(#[from] sessile_store::StoreError),
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("cannot read {}: {source}", path.display())]
    Dump { path: PathBuf, source: std::io::Error },
}

impl Error {
    fn is_disk_full(&self) -> bool {
        match self {
            Self::Bundle(error) => error.is_disk_full(),
            Self::Files(error) => error.is_disk_full(),
            Self::Store(_) | Self::Json(_) | Self::Dump { .. } => false,
        }
    }
}

/// Writes the file, or leaves nothing.
pub(super) fn write(contents: &Contents, path: &Path) -> Result<SavedView, Failure> {
    try_write(contents, path).map_err(|error| {
        let what = if error.is_disk_full() {
            format!("there is no room to save the session to {}", path.display())
        } else {
            "the session cannot be saved".to_owned()
        };
        Failure::because(Code::Storage, what, &error)
    })
}

fn try_write(contents: &Contents, path: &Path) -> Result<SavedView, Error> {
    let directory = &contents.directory;
    let root = directory.path().parent().unwrap_or(directory.path()).to_owned();
    let sessions = Sessions::at(root.clone(), contents.user.clone());
    let mut writer = Writer::create(path)?;
    let saved_files = match contents.files {
        true => Some(add_files(contents, root, &mut writer)?),
        false => None,
    };
    let mut kernels = Vec::new();
    for kernel in &contents.kernels {
        add_kernel(kernel, &mut writer)?;
        kernels.push(BundledKernel {
            language: kernel.language,
            version: kernel.version.clone(),
            as_of_run: kernel.as_of,
            carried: kernel.carried,
        });
    }
    writer.add(part::HISTORY, Kind::History, &history(contents)?)?;
    let manifest = manifest(contents, kernels, saved_files);
    writer.add(part::MANIFEST, Kind::Session, &serde_json::to_vec_pretty(&manifest)?)?;
    writer.seal(&Key::new(sessions.secret()?))?;
    writer.finish()?;
    let bytes = std::fs::metadata(path).map_or(0, |found| found.len());
    let view = |kernel: &BundledKernel| SavedKernelView {
        language: kernel.language,
        as_of_run: kernel.as_of_run,
        carried: kernel.carried,
    };
    Ok(SavedView {
        bytes,
        as_of_run: contents.as_of,
        kernels: manifest.kernels.iter().map(view).collect(),
        left: manifest.left,
        files: manifest.files,
    })
}

fn add_kernel(kernel: &KernelContents, writer: &mut Writer) -> Result<(), Error> {
    let mut state = kernel.state.clone();
    // Readers need no path of the file.
    state.dump = None;
    state.dump_as_of_run = None;
    let state = serde_json::to_vec(&state)?;
    writer.add(&part::state(kernel.language), Kind::Kernel, &state)?;
    if let Some(DumpFile { path, .. }) = &kernel.dump {
        let unreadable = |source| Error::Dump { path: path.clone(), source };
        let (file, length) = open_left(path).map_err(unreadable)?;
        writer.add_reader(&part::dump(kernel.language), Kind::Kernel, length, file)?;
    }
    Ok(())
}

/// Adds the files through a depot, which takes them in one pass and stores them once by
/// content.
fn add_files(
    contents: &Contents,
    sessions: PathBuf,
    writer: &mut Writer,
) -> Result<SavedFiles, Error> {
    // In a directory where no kernel writes, in a sandbox or not.
    let depot_path = contents.directory.path().join(format!("saving-{}", std::process::id()));
    let outcome = Depot::open(&depot_path).map_err(Error::from).and_then(|depot| {
        let rules = Rules { skip: vec![sessions], ..Rules::default() };
        let snapshot = depot.snapshot(&contents.root, &rules)?;
        depot.export(snapshot.tree, writer, part::FILES)?;
        let (kept, left) = (snapshot.report.kept, &snapshot.report.left_out);
        Ok(SavedFiles {
            files: kept.files,
            directories: kept.directories,
            symlinks: kept.symlinks,
            bytes: kept.bytes,
            left_out: left.total(),
            examples: omissions(left),
        })
    });
    let _ = std::fs::remove_dir_all(&depot_path);
    outcome
}

/// Returns some of the files that were left out.
pub(super) fn omissions(left: &files::LeftOut) -> Vec<LeftBehind> {
    let named = left.examples().iter().map(|omission| LeftBehind {
        language: None,
        name: omission.path.display().to_string(),
        reason: omission.reason.to_string(),
    });
    named.collect()
}

/// Returns the history up to the moment of the save.
fn history(contents: &Contents) -> Result<Vec<u8>, Error> {
    let mut lines = Vec::new();
    let entries = contents.directory.history().newest(contents.metadata.max_history);
    for entry in entries.into_iter().filter(|entry| entry.run <= contents.last_run) {
        serde_json::to_writer(&mut lines, &entry)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

fn manifest(
    contents: &Contents,
    kernels: Vec<BundledKernel>,
    files: Option<SavedFiles>,
) -> Manifest {
    let metadata = contents.metadata.clone();
    Manifest {
        format: FORMAT,
        sessile: env!("CARGO_PKG_VERSION").to_owned(),
        saved_at: timestamp(),
        session_id: metadata.session_id,
        language: metadata.language,
        command: metadata.command,
        created_at: metadata.created_at,
        name: metadata.name,
        work_dir: metadata.work_dir,
        env: metadata.env,
        idle_timeout_ms: metadata.idle_timeout_ms,
        idle_without_runs: metadata.idle_without_runs,
        command_timeout_ms: metadata.command_timeout_ms,
        max_history: metadata.max_history,
        output_cap: metadata.output_cap,
        sandbox: metadata.sandbox,
        execution_count: metadata.execution_count,
        last_run: contents.last_run,
        kernels,
        left: contents.left.clone(),
        files,
    }
}
