//! Sessions.

use serde::Serialize;
use sessile_protocol::SessionId;
use sessile_store::Metadata;
use std::path::PathBuf;
use utoipa::ToSchema;

/// A started session
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Started {
    pub session_id: SessionId,
    pub command: String,
    #[schema(value_type = String)]
    pub work_dir: PathBuf,
    #[schema(value_type = String)]
    pub status: &'static str,
    /// How its sandbox is weaker than requested
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl From<&Metadata> for Started {
    fn from(metadata: &Metadata) -> Self {
        Self {
            session_id: metadata.session_id.clone(),
            command: metadata.command.clone(),
            work_dir: metadata.work_dir.clone(),
            status: "active",
            notes: metadata.notes.clone(),
        }
    }
}

/// A session in a list of the command line
#[derive(Clone, Debug, Serialize)]
pub struct SessionRow {
    #[serde(flatten)]
    pub metadata: Metadata,
    /// Where it is kept, in a list of all directories
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

/// A page of sessions, newest first
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SessionPage {
    pub sessions: Vec<Metadata>,
    /// The start of the next page, if any
    #[schema(nullable)]
    pub next: Option<SessionId>,
}

/// Returns the note about a lost session that was continued.
#[must_use]
pub fn revival(previous: &Metadata) -> String {
    let last = match &previous.last_executed_at {
        Some(time) => format!("last run at {time}"),
        None => "before its first run".to_owned(),
    };
    format!(
        "the session's keeper had died ({last}); what the session had started is gone, and `kernel` says what was brought back"
    )
}
