//! What had happened to an agent's session when it was used again.

use serde::{Deserialize, Serialize};

/// The state of the session at the start of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = AgentContinuity))]
pub struct Continuity {
    pub status: Status,
    /// The run whose state was restored
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub as_of_run: Option<u64>,
    /// Names of what was lost
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = AgentContinuityStatus))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The session is the one that it was
    #[default]
    Live,
    /// It was brought back from what was kept of it
    Restored,
    /// Nothing could be brought back: it is a new one under the old id
    Fresh,
}

impl Continuity {
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.status == Status::Live
    }

    /// Returns the note for the model.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let what = match (self.status, self.as_of_run) {
            (Status::Live, _) => return None,
            (Status::Restored, Some(run)) => {
                format!("the session was interrupted, and restored as it was after run {run}")
            }
            (Status::Restored, None) => "the session was interrupted, and restored".to_owned(),
            (Status::Fresh, _) => "the session was lost, and this is a new one".to_owned(),
        };
        let lost = match &self.lost[..] {
            [] => String::new(),
            lost => format!("; lost: {}", lost.join(", ")),
        };
        Some(format!("(Since your last step, {what}{lost}. Check what you rely on.)"))
    }
}
