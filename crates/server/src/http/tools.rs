//! Tools for agents.

use super::App;
use super::body::Body;
use super::wire;
use crate::service::{Caller, ServiceError};
use axum::extract::State;
use axum::{Extension, Json};
use serde_json::Value;

/// Call the `runtime` tool
#[utoipa::path(
    post, path = "/v1/tools/runtime", operation_id = "call_runtime", tag = "tools",
    request_body = wire::RuntimeRequest,
    responses((status = 200, body = wire::Anything))
)]
pub(super) async fn runtime(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<Value>,
) -> Result<Json<Value>, ServiceError> {
    Ok(Json(app.service.tool(&caller, &request).await))
}
