//! Types of answers that are not in the gateway.

use crate::service::ServiceError;
use serde::Serialize;
use serde_json::{Map, Value};
use sessile_gateway::ErrorDetail;
use sessile_store::SessionStatus;
use utoipa::ToSchema;

/// Any object.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct Anything {
    #[serde(flatten)]
    #[schema(value_type = Object)]
    fields: Map<String, Value>,
}

/// The server is running
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Health {
    /// `ok`
    pub(in crate::http) status: &'static str,
    pub(in crate::http) version: &'static str,
}

/// The server is ready
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Readiness {
    /// `ready`
    pub(in crate::http) status: &'static str,
}

/// The last event of a session
#[derive(Debug, Serialize)]
pub(in crate::http) struct SessionEnd {
    pub(in crate::http) status: SessionStatus,
}

/// One event of a `text/event-stream`
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: axum writes it")]
pub(in crate::http) struct ServerSentEvent {
    /// The value of `Last-Event-ID` for reconnecting
    #[schema(required = false)]
    id: String,
    #[schema(required = false)]
    event: String,
    /// JSON
    data: String,
}

/// An error
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    error: ErrorDetail,
}

impl ErrorBody {
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl From<&ServiceError> for ErrorBody {
    fn from(error: &ServiceError) -> Self {
        Self { error: ErrorDetail::from(&**error) }
    }
}
