//! The record of an agent that outlives its session: `sess_….json`, beside the session's
//! directory. Its fields are a public contract.

use super::digest::Digest;
use super::profile::Profile;
use super::thread_file;
use crate::service::ServiceError;
use serde::{Deserialize, Serialize};
use sessile_agent::thread::{Entry, EntryKind, Moved};
use sessile_protocol::SessionId;
use sessile_store::{Directory, Sessions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    pub(super) session_id: String,
    pub(super) thread_id: String,
    pub(super) workspace_id: String,
    pub(super) created: String,
    pub(super) last_activity: String,
    pub(super) task_count: u64,
    /// The thread that was lost when the agent began anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous_thread_id: Option<String>,
    /// Where the agent has moved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moved_to: Option<Moved>,
    /// The sandbox of its session. It applies again when the agent begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sandbox: Option<serde_json::Value>,
    /// How the agent was made; needed to begin anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<Profile>,
}

pub(super) fn path(sessions: &Sessions, id: &SessionId) -> PathBuf {
    sessions.root().join(format!("{id}.json"))
}

/// Returns the record of a session that may be gone; none if the agent has moved.
pub(super) fn read(sessions: &Sessions, id: &SessionId) -> Option<Record> {
    let bytes = std::fs::read(path(sessions, id)).ok()?;
    let record: Record = serde_json::from_slice(&bytes).ok()?;
    (record.session_id == id.as_str() && record.moved_to.is_none()).then_some(record)
}

/// Whether an entry changes the record.
pub(super) fn changes_record(entry: &Entry) -> bool {
    match entry.what {
        EntryKind::Created { .. }
        | EntryKind::Task { .. }
        | EntryKind::Ended { .. }
        | EntryKind::Rewound { .. }
        | EntryKind::Imported { .. }
        | EntryKind::Moved(_)
        | EntryKind::Continued(_) => true,
        EntryKind::Reply { .. }
        | EntryKind::Approval { .. }
        | EntryKind::Intent(_)
        | EntryKind::Outcome(_)
        | EntryKind::Summary { .. }
        | EntryKind::Stopping { .. }
        | EntryKind::Checkpoint(_)
        | EntryKind::Rewinding(_)
        | EntryKind::NotRewound { .. }
        | EntryKind::SessionRewound { .. }
        | EntryKind::Activity { .. } => false,
    }
}

pub(super) fn write(
    directory: &Directory,
    profile: &Profile,
    digest: &Digest,
) -> Result<(), ServiceError> {
    let record = record(directory, profile, digest)?;
    replace(directory, &record).map_err(|e| thread_file::storage("record", &e))
}

/// Returns the record in its stored form.
pub(super) fn bytes(directory: &Directory, profile: &Profile, digest: &Digest) -> Vec<u8> {
    let record = record(directory, profile, digest).ok();
    record.and_then(|record| serde_json::to_vec(&record).ok()).unwrap_or_default()
}

fn record(
    directory: &Directory,
    profile: &Profile,
    digest: &Digest,
) -> Result<Record, ServiceError> {
    let metadata = directory.metadata()?;
    Ok(Record {
        session_id: metadata.session_id.to_string(),
        thread_id: profile.thread_id.to_string(),
        workspace_id: metadata
            .workspace
            .unwrap_or_else(|| metadata.work_dir.to_string_lossy().into_owned()),
        created: time(profile.created_ms),
        last_activity: time(digest.last_ms.max(profile.created_ms)),
        task_count: digest.task_count(),
        previous_thread_id: profile.previous.as_ref().map(|previous| previous.thread_id.clone()),
        moved_to: digest.moved.clone(),
        sandbox: metadata.sandbox,
        agent: Some(profile.clone()),
    })
}

/// Replaces the record atomically.
fn replace(directory: &Directory, record: &Record) -> std::io::Result<()> {
    let path = directory.path().with_extension("json");
    let temporary = directory.path().with_extension(format!("{}.tmp", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    let mut text = serde_json::to_vec_pretty(record)?;
    text.push(b'\n');
    file.write_all(&text)?;
    std::fs::rename(&temporary, path)
}

fn time(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => String::new(),
    }
}
