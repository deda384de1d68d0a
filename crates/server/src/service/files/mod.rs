//! Files of a session's workspace, for a caller who may use the session.
//!
//! The operating system confines all of it to the workspace (see `sessile-files`).
//! Content passes in pieces as it comes: `incoming` and `outgoing`.

mod incoming;
mod outgoing;

pub(crate) use incoming::{CutOff, Piece, incoming};

use super::{Caller, RunOrder, Service, ServiceError};
use crate::keepers::{ConnectedSession, Link, Place, blocking};
use incoming::Incoming;
use outgoing::Outgoing;
use sessile_client::{NoView, Workspace};
use sessile_files::{
    Content, Entry, Kind, RelativePath, Replace, Root, Unpacked, Watcher, Writing, Written,
};
use sessile_protocol::{Exec, Language, SessionId};
use sessile_store::SessionStatus;
use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;

/// How many bytes are written at once.
const PIECE: usize = 64 << 10;

/// How to list a directory, and how deep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListOrder {
    pub(crate) depth: u32,
    /// Limit for the number of entries.
    pub(crate) limit: usize,
}

fn root(workspace: Workspace) -> Result<Root, ServiceError> {
    Ok(Root::open(&workspace.path)?.called(workspace.called))
}

/// Returns a command that does nothing.
fn nothing(language: Language) -> &'static str {
    match language {
        Language::Bash | Language::Zsh | Language::Sh => ":",
        Language::Python => "None",
        Language::Node => "undefined",
    }
}

impl Service {
    /// Works on a session's files, on a thread for blocking work.
    async fn with_files<T: Send + 'static>(
        &self,
        caller: &Caller,
        id: &SessionId,
        work: impl FnOnce(Root) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let place = self.place(caller, id).await?;
        let directory = place.directory.clone();
        let looked = move || match Workspace::of(&directory.metadata()?) {
            Ok(workspace) => work(root(workspace)?).map(Ok),
            Err(NoView) => Ok(Err(work)),
        };
        match blocking(looked).await? {
            Ok(done) => Ok(done),
            Err(work) => {
                let workspace = self.start_for_files(caller, &place).await?;
                blocking(move || work(root(workspace)?)).await
            }
        }
    }

    /// Returns the files of a session whose sandbox has no process: after a reset, or
    /// when its shell has exited. Starts its kernel, because the files are reached
    /// through a process of it.
    pub(crate) async fn start_for_files(
        &self,
        caller: &Caller,
        place: &Arc<Place>,
    ) -> Result<Workspace, ServiceError> {
        let directory = place.directory.clone();
        let language = blocking(move || Ok(directory.metadata()?.language)).await?;
        let exec = Exec { text: nothing(language).into(), ..Exec::default() };
        self.exec(caller, &place.id, RunOrder { exec, wait_ms: None }).await?;
        let directory = place.directory.clone();
        blocking(move || Ok(Workspace::of(&directory.metadata()?)?)).await
    }

    pub(crate) async fn stat_file(
        &self,
        caller: &Caller,
        id: &SessionId,
        path: Vec<u8>,
    ) -> Result<Entry, ServiceError> {
        self.with_files(caller, id, move |root| Ok(root.stat(&root.path(&path)?)?)).await
    }

    /// Lists a directory, and returns whether there is more.
    pub(crate) async fn list_files(
        &self,
        caller: &Caller,
        id: &SessionId,
        path: Vec<u8>,
        order: ListOrder,
    ) -> Result<(Vec<Entry>, bool), ServiceError> {
        let list = move |root: Root| {
            let mut entries = Vec::new();
            let mut has_more = false;
            root.list(&root.path(&path)?, order.depth, |entry| {
                has_more = entries.len() >= order.limit;
                if has_more {
                    return ControlFlow::Break(());
                }
                entries.push(entry);
                ControlFlow::Continue(())
            })?;
            Ok((entries, has_more))
        };
        self.with_files(caller, id, list).await
    }

    pub(crate) async fn read_file(
        &self,
        caller: &Caller,
        id: &SessionId,
        path: Vec<u8>,
    ) -> Result<Content, ServiceError> {
        self.with_files(caller, id, move |root| Ok(root.read(&root.path(&path)?)?)).await
    }

    /// Writes a file as it comes. A file that is cut off is not written at all.
    pub(crate) async fn write_file(
        &self,
        caller: &Caller,
        id: &SessionId,
        path: Vec<u8>,
        writing: Writing,
        mut content: Incoming,
    ) -> Result<Written, ServiceError> {
        let write = move |root: Root| {
            let mut draft = root.write(&root.path(&path)?, writing)?;
            let mut piece = vec![0; PIECE];
            loop {
                match content.read(&mut piece) {
                    Ok(0) => return Ok(draft.finish()?),
                    Ok(length) => draft.write(&piece[..length])?,
                    Err(_) => return Err(cut_off()),
                }
            }
        };
        self.with_files(caller, id, write).await
    }

    pub(crate) async fn make_directory(
        &self,
        caller: &Caller,
        id: &SessionId,
        path: Vec<u8>,
        parents: bool,
    ) -> Result<Entry, ServiceError> {
        let make = move |root: Root| {
            let path = root.path(&path)?;
            if !parents {
                return Ok(root.make(&path)?);
            }
            root.make_all(&path)?;
            Ok(root.stat(&path)?)
        };
        self.with_files(caller, id, make).await
    }

    pub(crate) async fn move_file(
        &self,
        caller: &Caller,
        id: &SessionId,
        from: Vec<u8>,
        to: Vec<u8>,
        replace: Replace,
    ) -> Result<Entry, ServiceError> {
        let rename =
            move |root: Root| Ok(root.rename(&root.path(&from)?, &root.path(&to)?, replace)?);
        self.with_files(caller, id, rename).await
    }

    pub(crate) async fn remove_file(
        &self,
        caller: &Caller,
        id: &SessionId,
        path: Vec<u8>,
        recursive: bool,
    ) -> Result<(), ServiceError> {
        let remove = move |root: Root| {
            let path = root.path(&path)?;
            let removed = if recursive { root.remove_all(&path) } else { root.remove(&path) };
            Ok(removed?)
        };
        self.with_files(caller, id, remove).await
    }

    /// Packs a tree into a tar archive, which is made as it is read.
    pub(crate) async fn pack_files(
        &self,
        caller: &Caller,
        id: &SessionId,
        path: Vec<u8>,
    ) -> Result<Outgoing, ServiceError> {
        let begin = move |root: Root| {
            let path = root.path(&path)?;
            // While an error can still be reported.
            match root.stat(&path)?.kind {
                Kind::Directory => root.list(&path, 1, |_| ControlFlow::Break(()))?,
                Kind::File | Kind::Symlink | Kind::Other => {}
            }
            Ok((root, path))
        };
        let (root, path): (Root, RelativePath) = self.with_files(caller, id, begin).await?;
        Ok(outgoing::outgoing(move |into| root.pack(&path, into)))
    }

    /// Unpacks a tar archive as it comes.
    pub(crate) async fn unpack_files(
        &self,
        caller: &Caller,
        id: &SessionId,
        path: Vec<u8>,
        mut archive: Incoming,
    ) -> Result<Unpacked, ServiceError> {
        let unpack = move |root: Root| {
            let unpacked = root.unpack(&root.path(&path)?, &mut archive);
            if archive.is_cut_off() {
                return Err(cut_off());
            }
            let unpacked = unpacked?;
            // Data behind the end of the archive is ignored, but has to be read.
            let _ = std::io::copy(&mut archive, &mut std::io::sink());
            Ok(unpacked)
        };
        self.with_files(caller, id, unpack).await
    }

    pub(crate) async fn watch_files(
        &self,
        caller: &Caller,
        id: &SessionId,
        path: Vec<u8>,
        recursive: bool,
    ) -> Result<Watcher, ServiceError> {
        let watch = move |root: Root| {
            let path = root.path(&path)?;
            Ok(Watcher::of(Arc::new(root), &path, recursive)?)
        };
        self.with_files(caller, id, watch).await
    }

    /// Completes when the session ends. Never completes for a session that has ended or
    /// lost its keeper: its files are still there.
    pub(crate) async fn session_end(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<impl Future<Output = ()> + Send + 'static, ServiceError> {
        let place = self.place(caller, id).await?;
        let link = self.reach_if_live(&place).await?.and_then(ConnectedSession::into_link);
        Ok(async move {
            if let Some(link) = link {
                gone(link).await;
                let directory = place.directory.clone();
                let seen = blocking(move || Ok(directory.observed_metadata()?.status)).await;
                match seen {
                    Ok(SessionStatus::Terminated) => return,
                    Ok(
                        SessionStatus::Starting
                        | SessionStatus::Active
                        | SessionStatus::Lost
                        | SessionStatus::Unknown,
                    )
                    | Err(_) => {}
                }
            }
            std::future::pending::<()>().await;
        })
    }
}

/// Completes when the keeper is gone: without a request it sends nothing.
async fn gone(mut link: Link) {
    while link.reply().await.is_ok() {}
}

fn cut_off() -> ServiceError {
    ServiceError::bad_request("the body was cut off")
}
