//! Moving agents: export to one bundle with the saved session, the thread and the
//! profile, and import from it.
//!
//! A bundle may come from anywhere. It is sealed as a whole, like saved sessions. A
//! bundle that this sessions directory has not sealed is accepted only from a caller who
//! trusts it, because its content will run and be sent to a model. Keys of models are not
//! in it; the model is one of the importing server.

use super::driver::Order;
use super::profile::Profile;
use super::thread_file::{self, storage};
use super::{AgentView, audit, gone};
use crate::keepers::blocking;
use crate::service::{
    Caller, ErrorCode, ExportedSession, RestoreOrder, SaveOrder, Service, ServiceError, Source,
    Upload, too_large,
};
use sessile_agent::ids::ThreadId;
use sessile_agent::thread::{Entry, EntryKind, Moved};
use sessile_client::{RestoredSession, Trust};
use sessile_gateway::answer;
use sessile_protocol::{RunNo, SessionId};
use sessile_snapshot::bundle::{self, Key, Kind, Limits, Reader, Writer};
use sessile_store::{Directory, Sessions};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::sync::Arc;
use tokio::sync::oneshot;

const AGENT: &str = "agent.json";
const THREAD: &str = "thread.jsonl";
const SESSION: &str = "session.sessile";
const RECORD: &str = "record.json";

/// Size limit of `agent.json`.
const MAX_PROFILE: u64 = 4 << 20;
const PARTS: u32 = 16;

/// An exported agent, in a file without a name.
#[derive(Debug)]
pub(crate) struct Exported {
    pub(crate) file: File,
    pub(crate) length: u64,
    /// The number of entries in its thread.
    pub(crate) entries: u64,
    pub(crate) as_of_run: RunNo,
    /// How many parts of the session could not be carried.
    pub(crate) left: usize,
}

/// How an agent is to be imported.
#[derive(Debug)]
pub(crate) struct ImportOrder {
    pub(crate) restore: RestoreOrder,
    /// One of this server's models; the one of the same name when absent.
    pub(crate) model: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) agent: AgentView,
    pub(crate) session: RestoredSession,
}

/// Where an agent has moved to, and its state when it was exported.
#[derive(Debug)]
pub(crate) struct MovedAway {
    pub(crate) to: Moved,
    /// The number of entries in its thread when it was exported.
    pub(crate) entries: u64,
    /// The newest run that was exported.
    pub(crate) as_of_run: Option<u64>,
}

impl Service {
    /// Exports an agent to a file: session, files, thread and profile.
    pub(crate) async fn export_agent(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        files: bool,
    ) -> Result<Exported, ServiceError> {
        let place = self.place(caller, id).await?;
        let directory = place.directory.clone();
        let before = blocking(move || exportable(&directory)).await?;
        // After a rewind, the state belongs to an earlier run than the last in the history.
        let newest = self.history(caller, id, 1).await?.last().map(|entry| entry.run);
        let saved = self.export_session(caller, id, SaveOrder { files, wait: false }).await?;
        let (directory, sessions) = (place.directory.clone(), self.sessions().clone());
        blocking(move || {
            let mut exported = pack(&directory, &sessions, saved)?;
            exported.as_of_run = exported.as_of_run.max(newest.unwrap_or_default());
            // A task may have begun while the session was being saved.
            if exportable(&directory)? != before || exported.entries != before {
                return Err(ServiceError::new(ErrorCode::Busy, IN_USE));
            }
            Ok(exported)
        })
        .await
    }

    /// Imports an agent from such a file, into a new session.
    pub(crate) async fn import_agent(
        self: &Arc<Self>,
        caller: &Caller,
        upload: Upload,
        order: ImportOrder,
    ) -> Result<Imported, ServiceError> {
        self.check_restoring()?;
        let file = upload.into_file().await?;
        let (sessions, trust) = (self.sessions().clone(), order.restore.trust);
        let limit = self.limits().restored;
        let bundle = blocking(move || Bundle::open(&sessions, file, trust, limit)).await?;
        let Bundle { mut profile, mut entries, session } = bundle;
        // Two servers have no more in common than the names of models.
        let model = match &order.model {
            Some(name) => self.agents.model(Some(name))?,
            None => match self.agents.model(Some(&profile.model)) {
                Ok(model) => model,
                Err(_) => self.agents.model(None)?,
            },
        };
        profile.model.clone_from(&model.name);
        // The seal, or the caller's trust, covers the whole file.
        let restore = RestoreOrder { trust: Trust::Given, ..order.restore };
        let session = self.restore(caller, Source::File(session), restore).await?;
        let id = session.metadata.session_id.clone();
        let not_carried = session.manifest.left.iter().chain(&session.left);
        let lost = not_carried.map(|left| format!("{} ({})", left.name, left.reason)).collect();
        let from_session = session.manifest.session_id.to_string();
        entries.push(Entry {
            entry: entries.len() as u64 + 1,
            at_ms: super::profile::now_ms(),
            what: EntryKind::Imported { from_session, lost },
        });
        let directory = session.directory.clone();
        let made = blocking(move || {
            let digest = thread_file::create(&directory, &profile, &entries)?;
            audit::write(&directory, &profile, &digest)
        })
        .await;
        if let Err(error) = made {
            // A session without its agent is of no use to the client.
            let _ = self.end(caller, &id).await;
            return Err(error);
        }
        Ok(Imported { agent: self.agent(caller, &id).await?, session })
    }

    /// Marks an agent as moved, and ends its session.
    pub(crate) async fn move_agent(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        moved: MovedAway,
    ) -> Result<AgentView, ServiceError> {
        self.place(caller, id).await?;
        check(&moved.to)?;
        if let Some(as_of_run) = moved.as_of_run {
            let newest = self.history(caller, id, 1).await?;
            if newest.iter().any(|entry| entry.run.0 > as_of_run) {
                let message = "the session has gone on since it was exported; export it again";
                return Err(ServiceError::new(ErrorCode::Busy, message));
            }
        }
        let handle = self.driver(caller, id).await?;
        let (answer, answered) = oneshot::channel();
        let MovedAway { to, entries, .. } = moved;
        handle.send(Order::Move { to, entries, answer }).await?;
        answered.await.map_err(|_| gone())??;
        if let Err(error) = self.end(caller, id).await {
            tracing::warn!(session = %id, %error, "the session of an agent that was moved");
        }
        self.agent(caller, id).await
    }
}

const IN_USE: &str = "a task of this agent is not over; wait for it, or cancel it";

/// Returns the number of entries of an idle agent's thread.
fn exportable(directory: &Directory) -> Result<u64, ServiceError> {
    let digest = thread_file::digest(directory)?;
    if let Some(moved) = &digest.moved {
        return Err(elsewhere(moved));
    }
    if digest.is_open() {
        return Err(ServiceError::new(ErrorCode::Busy, IN_USE));
    }
    Ok(digest.entries)
}

pub(super) fn elsewhere(Moved { url, session_id }: &Moved) -> ServiceError {
    let message = format!("this agent was moved to {url}, where its session is {session_id}");
    ServiceError::new(ErrorCode::AgentMoved, message)
}

/// Checks the address, which is shown to everybody who asks for the agent.
fn check(to: &Moved) -> Result<(), ServiceError> {
    let refuse = |message: &str| Err(ServiceError::bad_request(message));
    let is_plain =
        |text: &str| (1..=1000).contains(&text.chars().count()) && !text.contains(char::is_control);
    if !is_plain(&to.url) || !is_plain(&to.session_id) {
        return refuse("url and session_id are 1 to 1000 characters, without control characters");
    }
    let has_secret = url::Url::parse(&to.url)
        .is_ok_and(|url| url.password().is_some() || !url.username().is_empty());
    if has_secret {
        return refuse("the url has a password in it; leave it out");
    }
    Ok(())
}

fn bad(error: &bundle::Error) -> ServiceError {
    ServiceError::new(ErrorCode::BadFile, format!("this is not an exported agent: {error}"))
}

fn pack(
    directory: &Directory,
    sessions: &Sessions,
    saved: ExportedSession,
) -> Result<Exported, ServiceError> {
    let ExportedSession { mut file, length, view } = saved;
    let place = tempfile::Builder::new()
        .prefix("exported-")
        .tempdir_in(directory.make_kernels()?)
        .map_err(|e| storage("bundle", &e))?;
    let path = place.path().join("agent");
    let profile = thread_file::profile(directory)?;
    let digest = thread_file::digest(directory)?;
    let thread = thread_file::bytes(directory)?;
    let written = (|| {
        let mut writer = Writer::create(&path)?;
        let json = serde_json::to_vec(&profile).unwrap_or_default();
        writer.add(AGENT, Kind::Agent, &json)?;
        writer.add(THREAD, Kind::Thread, &thread)?;
        writer.add(RECORD, Kind::Agent, &audit::bytes(directory, &profile, &digest))?;
        file.seek(SeekFrom::Start(0)).map_err(bundle::Error::Read)?;
        writer.add_reader(SESSION, Kind::Saved, length, &mut file)?;
        // Without a secret it stays unsealed, and has to be trusted.
        if let Ok(secret) = sessions.secret() {
            writer.seal(&Key::new(secret))?;
        }
        writer.finish()
    })();
    written.map_err(|e: bundle::Error| storage("bundle", &e))?;
    let file = File::open(&path).map_err(|e| storage("bundle", &e))?;
    let length = file.metadata().map_err(|e| storage("bundle", &e))?.len();
    let entries = thread.iter().filter(|byte| **byte == b'\n').count() as u64;
    Ok(Exported { file, length, entries, as_of_run: view.as_of_run, left: view.left.len() })
}

/// A checked bundle. Nothing was created from it yet.
struct Bundle {
    profile: Profile,
    entries: Vec<Entry>,
    session: File,
}

impl Bundle {
    fn open(
        sessions: &Sessions,
        file: File,
        trust: Trust,
        limit: u64,
    ) -> Result<Self, ServiceError> {
        let limits = Limits { total: u64::MAX, parts: PARTS };
        let mut reader = Reader::new(file, limits).map_err(|e| bad(&e))?;
        let secret = sessions.known_secret().unwrap_or_default();
        let seal = reader.seal().map_err(|e| bad(&e))?;
        let is_own = match (seal, secret) {
            (Some(seal), Some(secret)) => seal.is_of(&Key::new(secret)),
            (Some(_) | None, _) => false,
        };
        let total = reader.parts().iter().map(|part| part.length).fold(0, u64::saturating_add);
        if !is_own && total > limit {
            return Err(too_large(limit));
        }
        match (trust, is_own) {
            (Trust::Given, _) | (Trust::Own, true) => {}
            (Trust::Own, false) => return Err(ServiceError::new(ErrorCode::Untrusted, UNTRUSTED)),
        }
        let profile = reader.read(AGENT, MAX_PROFILE).map_err(|e| bad(&e))?;
        let profile: Profile = serde_json::from_slice(&profile)
            .map_err(|e| ServiceError::new(ErrorCode::BadFile, format!("{AGENT}: {e}")))?;
        let thread = reader.read(THREAD, super::digest::MAX_THREAD).map_err(|e| bad(&e))?;
        let entries = entries(&thread, &profile.thread_id)?;
        let mut session =
            tempfile::tempfile_in(sessions.root()).map_err(|e| storage("bundle", &e))?;
        let mut part = reader.stream(SESSION).map_err(|e| bad(&e))?;
        std::io::copy(&mut part, &mut session).map_err(|e| storage("bundle", &e))?;
        Ok(Self { profile, entries, session })
    }
}

const UNTRUSTED: &str = "the agent was not exported from this server's sessions directory, and \
    importing it runs code that is in it; ask with trust if you trust whoever made it";

/// Parses a thread that can be continued: complete, and with no task in progress. With an
/// open task, the server would carry out what the file says.
fn entries(thread: &[u8], id: &ThreadId) -> Result<Vec<Entry>, ServiceError> {
    let refuse = |why: &dyn std::fmt::Display| {
        ServiceError::new(ErrorCode::BadFile, format!("{THREAD}: {why}"))
    };
    let contents = sessile_agent::thread::read(thread).map_err(|e| refuse(&e))?;
    if contents.bytes != thread.len() as u64 {
        return Err(refuse(&"it is cut off"));
    }
    let mut digest = super::digest::Digest::default();
    for entry in &contents.entries {
        digest.take(entry, 0, 0);
    }
    if digest.is_open() {
        return Err(refuse(&"a task in it is not over"));
    }
    match contents.entries.first().map(|entry| &entry.what) {
        Some(EntryKind::Created { thread, .. }) if thread == id => Ok(contents.entries),
        _ => Err(refuse(&"it is the thread of another agent")),
    }
}

/// Returns the answer about the imported session.
pub(crate) fn restored(session: &RestoredSession) -> answer::Restored {
    answer::Restored::of(&session.metadata, &session.manifest, &session.left, session.has_files)
}
