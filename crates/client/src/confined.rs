//! Sessions in a sandbox that start from another one.
//!
//! A live process stays in its sandbox: nothing inside may change to other mounts. So a
//! session with its own layer starts from the states that its original has written, all
//! kernels as of one moment, like a session that was saved and restored.

use crate::create::reserve_name;
use crate::restore::Identity;
use crate::{
    Bounds, ClientError, Launcher, LayerRefused, NewSession, RestoreError, RestoreOptions,
    RestoredSession, SessionLayer, Trust,
};
use sessile_protocol::{
    Answer, Carried, CarriedKernel, Code, Failure, ForkFiles, ForkOrder, ForkView, ForkedView,
    LeftBehind, Request, SavedView, SessionId,
};
use sessile_store::{
    Directory, Durable, ForkedFrom, Metadata, SessionStatus, Sessions, new_session_id, timestamp,
};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

impl NewSession {
    /// Gives the session the sandbox of its original. State from a sandbox must not get out
    /// of it; and state from outside contains the host's environment, so it must not get
    /// in.
    pub(crate) fn confined_as(mut self, before: &Metadata) -> Result<Self, ClientError> {
        let refused = |why: &str| Err(ClientError::Refused(Failure::new(Code::BadRequest, why)));
        match (&before.sandbox, &self.sandbox) {
            (None, None) | (Some(_), Some(_)) => Ok(self),
            (Some(policy), None) => match serde_json::from_value(policy.clone()) {
                Ok(policy) => {
                    self.sandbox = Some(policy);
                    Ok(self)
                }
                Err(error) => refused(&format!(
                    "its sandbox cannot be read ({error}); it may be of a newer sessile: update this one"
                )),
            },
            (None, Some(_)) => refused(
                "what a session without a sandbox knows cannot be taken into one, because the \
                 host's environment is in it; start it without --from",
            ),
        }
    }
}

/// A save that is removed when it is no longer needed.
struct TemporarySave {
    path: PathBuf,
}

impl TemporarySave {
    fn new(sessions: &Sessions) -> Result<Self, ClientError> {
        let name = format!("temporary-{}.sessile", new_session_id()?);
        Ok(Self { path: sessions.root().join(name) })
    }

    fn restoring(&self) -> RestoreOptions {
        RestoreOptions {
            path: self.path.clone(),
            cwd: None,
            bounds: Bounds { roots: vec!["/".into()], otherwise: "/".into() },
            trust: Trust::Own,
            max_size: u64::MAX,
            name: None,
            owner: None,
            durable: None,
            max_queue: None,
            environment: BTreeMap::new(),
        }
    }
}

impl Drop for TemporarySave {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Launcher {
    /// Returns whether forks get their own layers.
    ///
    /// # Errors
    /// When the session's files cannot be read.
    pub fn forks_by_copying(
        &self,
        directory: &Directory,
        order: &ForkOrder,
    ) -> Result<bool, ClientError> {
        if order.files == ForkFiles::Share || directory.metadata()?.sandbox.is_none() {
            return Ok(false);
        }
        match SessionLayer::of(directory, self.user().root()) {
            Ok(_) => Ok(true),
            Err(LayerRefused::Direct(_)) => Ok(false),
            Err(error) => Err(ClientError::Launch(io::Error::other(error))),
        }
    }

    /// Makes forks of a session in a sandbox, each with a copy of its layer. All of them,
    /// or none. The caller has reserved their names.
    ///
    /// # Errors
    /// When a run is active in it, or a fork cannot be made.
    pub fn fork_confined(
        &self,
        sessions: &Sessions,
        source: &Directory,
        order: &ForkOrder,
    ) -> Result<ForkedView, RestoreError> {
        order.check().map_err(ClientError::from)?;
        let temporary = TemporarySave::new(sessions)?;
        let saved = self.save_to(source, &temporary, order.wait)?;
        let before = source.metadata()?;
        let mut made: Vec<RestoredSession> = Vec::new();
        let names = order.names();
        for number in 0..usize::try_from(order.count).unwrap_or_default() {
            let of = metadata_of_fork(&before, names.get(number), &saved);
            match self.restore_as(sessions, &temporary.restoring(), Identity::Fork(Box::new(of))) {
                Ok(fork) => made.push(fork),
                Err(error) => {
                    for fork in made {
                        let _ = self.end(&fork.directory);
                        let _ = fork.directory.remove();
                    }
                    return Err(error);
                }
            }
        }
        Ok(view(&made, saved))
    }

    /// Makes a new session with the kernels of a live one in a sandbox.
    pub(crate) fn create_confined(
        &self,
        sessions: &Sessions,
        source: &Directory,
        metadata: Metadata,
        wait: bool,
    ) -> Result<(Directory, Metadata), ClientError> {
        let temporary = TemporarySave::new(sessions)?;
        self.save_to(source, &temporary, wait)?;
        let _reserved = reserve_name(sessions, &metadata)?;
        let made = self.restore_into(sessions, &temporary.restoring(), metadata);
        made.map_err(|error| {
            if let RestoreError::Client(error) = error {
                return error;
            }
            ClientError::Launch(io::Error::other(error))
        })
    }

    fn save_to(
        &self,
        source: &Directory,
        temporary: &TemporarySave,
        wait: bool,
    ) -> Result<SavedView, ClientError> {
        let path = std::path::absolute(&temporary.path)?;
        let saved = self.open(source)?.call(Request::Save { path, files: false, wait })?;
        let Answer::Saved(view) = saved else { return Err(ClientError::Unexpected) };
        Ok(*view)
    }
}

/// Returns the metadata of a fork, from that of its original.
fn metadata_of_fork(before: &Metadata, name: Option<&String>, saved: &SavedView) -> Metadata {
    let as_of_run = saved.as_of_run;
    let session_id: SessionId = before.session_id.clone();
    Metadata {
        last_executed_at: None,
        status: SessionStatus::Starting,
        keeper_pid: None,
        workspace: None,
        session_key: None,
        created_at: timestamp(),
        name: name.cloned(),
        forked_from: Some(ForkedFrom { session_id, as_of_run }),
        durable: before.durable.as_ref().map(Durable::afresh),
        ..before.clone()
    }
}

fn view(made: &[RestoredSession], saved: SavedView) -> ForkedView {
    let fork = |fork: &RestoredSession| ForkView {
        session: fork.metadata.session_id.clone(),
        work_dir: fork.metadata.work_dir.clone(),
    };
    let kernel = |kernel: sessile_protocol::SavedKernelView| CarriedKernel {
        language: kernel.language,
        as_of_run: kernel.as_of_run,
        carried: Carried::Saved,
    };
    // A copy of the layer has the changes to the system as well.
    let mut left = saved.left;
    left.retain(|one| *one != LeftBehind::system());
    left.extend(made.first().into_iter().flat_map(|fork| fork.left.iter().cloned()));
    ForkedView {
        as_of_run: saved.as_of_run,
        forks: made.iter().map(fork).collect(),
        kernels: saved.kernels.into_iter().map(kernel).collect(),
        left,
    }
}
