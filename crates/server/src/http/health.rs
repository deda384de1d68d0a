//! Endpoints for operators and their probes.

use super::App;
use super::wire::{Health, Readiness};
use crate::service::{Caller, ErrorCode, ServiceError};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

/// Check that the server is running
#[utoipa::path(
    get, path = "/healthz", tag = "server", security(()),
    responses((status = 200, body = Health))
)]
pub(super) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// Check that the server is ready: it can read the sessions directory
#[utoipa::path(
    get, path = "/readyz", tag = "server", security(()),
    responses((status = 200, body = Readiness))
)]
pub(super) async fn readyz(State(app): State<App>) -> Result<Json<Readiness>, ServiceError> {
    app.service.check_storage().await?;
    Ok(Json(Readiness { status: "ready" }))
}

/// Metrics in the Prometheus text format
#[utoipa::path(
    get, path = "/metrics", tag = "server",
    responses((status = 200, content_type = "application/openmetrics-text", body = String))
)]
pub(super) async fn metrics(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, ServiceError> {
    if caller.workspaces.is_some() {
        let message = "these counts are of all sessions, and this token is for some directories";
        let hint = "ask with the owner's token, or one without --workspace";
        return Err(ServiceError::new(ErrorCode::Forbidden, message).with_hint(hint));
    }
    app.service.measure_sessions().await?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], app.service.metrics.text()).into_response())
}
