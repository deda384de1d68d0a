//! Makes a session directory, files and a keeper from a checked file.

use super::document::Document;
use super::moving::{DirectoryMapping, Move};
use super::{Bounds, RestoreError, RestoreOptions, RestoredSession};
use crate::layer::{LAYER, copy_layer};
use crate::{ClientError, Launcher, SavedTo};
use sessile_protocol::{Language, LeftBehind, RunNo, SessionId};
use sessile_snapshot::files::{Depot, IgnoreFiles, Rules, SetIds};
use sessile_store::{
    Claim, Directory, Durable, DurableStore, Manifest, Metadata, SavedState, SessionStatus,
    Sessions, StoreError, new_session_id, part, timestamp,
};
use std::cmp::Ordering;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The identity of a restored session.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// A new session.
    New,
    /// The same id: the session continues, and is saved where it came from.
    Same { id: SessionId, store: DurableStore },
    /// A fork: its metadata comes from its original.
    Fork(Box<Metadata>),
}

/// Maximum number of names in the metadata that were not carried.
const SHOWN: usize = 50;

pub(super) fn make(
    launcher: &Launcher,
    sessions: &Sessions,
    restoring: &RestoreOptions,
    mut document: Document,
    identity: Identity,
) -> Result<RestoredSession, RestoreError> {
    let has_files = document.reader.part(part::FILES).is_some() && restoring.cwd.is_some();
    let (place, workspace) = match &restoring.cwd {
        Some(cwd) => (DirectoryMapping::New, Workspace::prepare(cwd, has_files)?),
        None => {
            (DirectoryMapping::Same, Workspace::of_before(&document.manifest, &restoring.bounds)?)
        }
    };
    let mut dropped = None;
    let id = match &identity {
        Identity::New | Identity::Fork(_) => new_session_id()?,
        Identity::Same { id, .. } => {
            // Its remains on this machine are from an earlier time.
            if let Ok(earlier) = sessions.find(id) {
                dropped = dropped_with(&earlier);
                earlier.remove()?;
            }
            id.clone()
        }
    };
    let unfinished = UnfinishedDirectory { directory: sessions.create(&id)?, is_finished: false };
    let directory = unfinished.directory.clone();
    if has_files {
        put_files(&directory, &mut document, &workspace.path)?;
    }
    let mut left = workspace.left();
    let is_confined = document.manifest.sandbox.is_some();
    if is_confined && restoring.cwd.is_none() {
        left.extend(carry_layer(launcher, sessions, &document.manifest, &directory)?);
    }
    let place = if is_confined { DirectoryMapping::Confined } else { place };
    let moved = Move {
        session: &id,
        environment: &restoring.environment,
        from: &document.manifest.work_dir,
        to: &workspace.path,
        place,
    };
    for (language, saved) in &mut document.kernels {
        if let Some(reason) = moved.fit(*language, saved) {
            let name = "the working directory".to_owned();
            left.push(LeftBehind { language: Some(*language), name, reason });
        }
    }
    let mut metadata = metadata(id, &document.manifest, restoring, &workspace.path);
    let is_fork = matches!(identity, Identity::Fork(_));
    match identity {
        Identity::New => {}
        Identity::Same { store, .. } => {
            metadata.created_at.clone_from(&document.manifest.created_at);
            metadata.restored_from = None;
            // The first answer of each language reports it, whichever comes first.
            let dropped = dropped.iter().flat_map(|dropped| {
                let languages = document.manifest.kernels.iter().map(|kernel| kernel.language);
                languages.map(|language| LeftBehind { language: Some(language), ..dropped.clone() })
            });
            let dropped: Vec<LeftBehind> = dropped.collect();
            let not_carried = dropped.iter().chain(&document.manifest.left).chain(&left);
            let left = not_carried.take(SHOWN).cloned().collect();
            metadata.durable = Some(Durable { store: Some(store), left, ..Durable::default() });
        }
        Identity::Fork(of) => {
            let session_id = metadata.session_id;
            metadata = Metadata { session_id, created_at: metadata.created_at, ..*of };
        }
    }
    let _reserved = match is_fork {
        // The caller has reserved its names.
        true => Vec::new(),
        false => reserve_name(sessions, restoring, &mut metadata)?,
    };
    write(&directory, &mut document, &metadata)?;
    launcher.revive_as(&directory, &metadata)?;
    workspace.keep();
    unfinished.finish();
    let metadata = directory.metadata().unwrap_or(metadata);
    Ok(RestoredSession { directory, metadata, manifest: document.manifest, left, has_files })
}

/// Returns the runs that are dropped with the remains of a session that had moved.
fn dropped_with(earlier: &Directory) -> Option<LeftBehind> {
    let metadata = earlier.metadata().ok()?;
    let host = metadata.moved_to()?;
    let saved = metadata.durable.as_ref()?.store.as_ref()?.state.as_of_run;
    let ended = earlier.history().newest(1).last().map(|entry| entry.run);
    let last = ended.into_iter().chain(earlier.lost_runs()).max()?;
    dropped(saved.unwrap_or_default(), last, host)
}

/// Returns the runs after the last save that this machine uploaded. The other machine
/// continued from that save.
fn dropped(saved: RunNo, last: RunNo, host: &str) -> Option<LeftBehind> {
    let first = RunNo(saved.0 + 1);
    let name = match first.cmp(&last) {
        Ordering::Greater => return None,
        Ordering::Equal => format!("run {first} of this machine"),
        Ordering::Less => format!("runs {first} to {last} of this machine"),
    };
    let reason = format!("made here after the last save that {host} could take up");
    Some(LeftBehind { language: None, name, reason })
}

/// Copies the layer of the saved session, as it is now, if it is on this machine. Other
/// files that are not saved are used as they are now, too.
fn carry_layer(
    launcher: &Launcher,
    sessions: &Sessions,
    manifest: &Manifest,
    directory: &Directory,
) -> Result<Option<LeftBehind>, RestoreError> {
    let original = sessions.find(&manifest.session_id).ok();
    let layer = original.map(|original| original.path().join(LAYER));
    match layer.filter(|layer| layer.is_dir()) {
        Some(layer) => {
            let copy = directory.path().join(LAYER);
            copy_layer(launcher, manifest, &layer, &copy).map_err(RestoreError::Write)?;
            Ok(None)
        }
        None => Ok(Some(LeftBehind {
            language: None,
            name: "the layer".to_owned(),
            reason: "what the session had written is not in the file, and not here; \
                     save it with its files"
                .to_owned(),
        })),
    }
}

/// Makes a new session with only the kernels of a saved one.
pub(super) fn make_new(
    launcher: &Launcher,
    sessions: &Sessions,
    mut document: Document,
    metadata: Metadata,
) -> Result<(Directory, Metadata), RestoreError> {
    let directory = sessions.create(&metadata.session_id)?;
    let unfinished = UnfinishedDirectory { directory: directory.clone(), is_finished: false };
    let moved = Move {
        session: &metadata.session_id,
        environment: &metadata.env,
        from: &document.manifest.work_dir,
        to: &metadata.work_dir,
        place: DirectoryMapping::Confined,
    };
    for (language, saved) in &mut document.kernels {
        moved.fit(*language, saved);
        // The new session has had no run yet.
        saved.as_of_run = RunNo(0);
        saved.dump_as_of_run = saved.dump_as_of_run.map(|_| RunNo(0));
    }
    document.manifest.last_run = RunNo(0);
    document.history.clear();
    write(&directory, &mut document, &metadata)?;
    launcher.revive_as(&directory, &metadata)?;
    unfinished.finish();
    let metadata = directory.metadata().unwrap_or(metadata);
    Ok((directory, metadata))
}

/// Reserves the session's name. A requested name must be free. An earlier name of the
/// session that is taken by now is dropped.
fn reserve_name(
    sessions: &Sessions,
    restoring: &RestoreOptions,
    metadata: &mut Metadata,
) -> Result<Vec<Claim>, RestoreError> {
    let Some(name) = metadata.name.clone() else {
        return Ok(Vec::new());
    };
    match sessions.reserve_name(&name, metadata.owner.as_deref()) {
        Ok(claims) => Ok(claims),
        Err(StoreError::NameTaken { .. } | StoreError::BadName(_)) if restoring.name.is_none() => {
            metadata.name = None;
            Ok(Vec::new())
        }
        Err(error) => Err(error.into()),
    }
}

fn write(
    directory: &Directory,
    document: &mut Document,
    metadata: &Metadata,
) -> Result<(), RestoreError> {
    let folder = directory.make_kernels()?;
    for (language, saved) in &document.kernels {
        if let Some(name) = &saved.dump {
            let mut part = document.reader.stream(&part::dump(*language))?;
            let mut file =
                File::options().write(true).create_new(true).mode(0o600).open(folder.join(name))?;
            io::copy(&mut part, &mut file)?;
        }
    }
    let kernels = std::mem::take(&mut document.kernels);
    directory.write_state(&SavedState { captured_at: timestamp(), kernels })?;
    let mut history = directory.history();
    for entry in &document.history {
        history.append(entry)?;
    }
    history.complete()?;
    directory.accepted(document.manifest.last_run)?;
    // Last: without it there is no session.
    directory.write_metadata(metadata)?;
    Ok(())
}

fn put_files(
    directory: &Directory,
    document: &mut Document,
    to: &Path,
) -> Result<(), RestoreError> {
    let depot_path = directory.make_kernels()?.join("depot");
    let depot = Depot::open(&depot_path)?;
    let imported = depot.import(&mut document.reader, part::FILES)?;
    let rules = Rules { ignore: IgnoreFiles::Disregard, set_ids: SetIds::Drop, ..Rules::default() };
    let restored = depot.restore(imported.tree, to, &rules)?;
    drop(imported);
    let _ = std::fs::remove_dir_all(&depot_path);
    match restored.failed.into_iter().next() {
        None => Ok(()),
        Some(failure) => Err(failure.error.into()),
    }
}

fn metadata(
    session_id: SessionId,
    manifest: &Manifest,
    restoring: &RestoreOptions,
    work_dir: &Path,
) -> Metadata {
    Metadata {
        auto: None,
        notes: Vec::new(),
        forked_from: None,
        session_id,
        command: program(manifest),
        created_at: timestamp(),
        last_executed_at: None,
        status: SessionStatus::Starting,
        work_dir: work_dir.to_owned(),
        execution_count: manifest.execution_count,
        language: manifest.language,
        ended_at: None,
        ended_by: None,
        lost_at_end: Vec::new(),
        keeper_pid: None,
        env: manifest.env.clone(),
        idle_timeout_ms: manifest.idle_timeout_ms,
        idle_without_runs: manifest.idle_without_runs,
        command_timeout_ms: manifest.command_timeout_ms,
        max_history: manifest.max_history,
        output_cap: manifest.output_cap,
        max_queue: restoring.max_queue,
        sandbox: manifest.sandbox.clone(),
        workspace: None,
        session_key: None,
        name: restoring.name.clone().or_else(|| manifest.name.clone()),
        owner: restoring.owner.clone(),
        durable: restoring.durable.clone().map(SavedTo::durable),
        restored_from: Some(manifest.session_id.clone()),
    }
}

/// Returns the same interpreter if it exists here, otherwise the one found by its name.
fn program(manifest: &Manifest) -> String {
    let path = Path::new(&manifest.command);
    if !manifest.command.contains('/') || path.is_file() {
        return manifest.command.clone();
    }
    let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let usual = match manifest.language {
        Language::Bash => "bash",
        Language::Sh => "sh",
        Language::Zsh => "zsh",
        Language::Python => "python3",
        Language::Node => "node",
    };
    name.unwrap_or_else(|| usual.to_owned())
}

/// Removes a session's directory, unless it was finished.
struct UnfinishedDirectory {
    directory: Directory,
    is_finished: bool,
}

impl UnfinishedDirectory {
    fn finish(mut self) {
        self.is_finished = true;
    }
}

impl Drop for UnfinishedDirectory {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = self.directory.remove();
        }
    }
}

/// The directory in which the session continues. Files put into it are removed again,
/// unless it is kept.
struct Workspace {
    path: PathBuf,
    origin: Origin,
    trouble: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// It belongs to the user: left alone.
    Theirs,
    /// It existed, and was empty.
    Empty,
    Made,
}

impl Workspace {
    fn prepare(path: &Path, has_files: bool) -> Result<Self, RestoreError> {
        let refuse = |why: String| RestoreError::Directory { path: path.to_owned(), why };
        let origin = match std::fs::read_dir(path) {
            Ok(mut entries) => match entries.next() {
                None => Origin::Empty,
                Some(_) if has_files => {
                    return Err(refuse("it is not empty; name a new or empty directory".into()));
                }
                Some(_) => Origin::Theirs,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::fs::create_dir(path).map_err(|error| refuse(error.to_string()))?;
                Origin::Made
            }
            Err(error) => return Err(refuse(error.to_string())),
        };
        let path = std::fs::canonicalize(path).map_err(|error| refuse(error.to_string()))?;
        Ok(Self { path, origin, trouble: None })
    }

    /// Returns the directory that was saved, if it may be used; otherwise the one in the bounds.
    fn of_before(manifest: &Manifest, bounds: &Bounds) -> Result<Self, RestoreError> {
        let before = &manifest.work_dir;
        let is_within = |path: &Path| bounds.roots.iter().any(|root| path.starts_with(root));
        let found = std::fs::canonicalize(before).ok().filter(|path| path.is_dir());
        // The message does not reveal whether a path outside exists.
        let trouble = match &found {
            None if is_within(before) => format!("{} is not there", before.display()),
            None | Some(_) => {
                format!("{} is outside of the directories that may be used", before.display())
            }
        };
        let origin = Origin::Theirs;
        match found.filter(|path| before.is_absolute() && is_within(path)) {
            // A path that leads there through links is kept.
            Some(_) if is_within(before) => {
                Ok(Self { path: before.clone(), origin, trouble: None })
            }
            Some(path) => Ok(Self { path, origin, trouble: None }),
            None => {
                let path = std::fs::canonicalize(&bounds.otherwise).map_err(ClientError::Io)?;
                Ok(Self { path, origin, trouble: Some(trouble) })
            }
        }
    }

    fn left(&self) -> Vec<LeftBehind> {
        let name = "the session's directory".to_owned();
        let left = self.trouble.iter().map(|reason| LeftBehind {
            language: None,
            name: name.clone(),
            reason: reason.clone(),
        });
        left.collect()
    }

    fn keep(mut self) {
        self.origin = Origin::Theirs;
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        match self.origin {
            Origin::Theirs => {}
            Origin::Made => {
                let _ = std::fs::remove_dir_all(&self.path);
            }
            Origin::Empty => {
                for entry in std::fs::read_dir(&self.path).into_iter().flatten().flatten() {
                    let path = entry.path();
                    let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                    let _ = if is_directory {
                        std::fs::remove_dir_all(path)
                    } else {
                        std::fs::remove_file(path)
                    };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_after_the_last_save_from_here_are_dropped() {
        let name = |saved, last| dropped(RunNo(saved), RunNo(last), "b").map(|left| left.name);
        assert_eq!(name(1, 2).as_deref(), Some("run 2 of this machine"));
        assert_eq!(name(1, 3).as_deref(), Some("runs 2 to 3 of this machine"));
        assert_eq!(name(3, 3), None);
        assert_eq!(name(4, 3), None);
    }
}
