//! Jobs.

use super::body::{Body, Session, SessionJob};
use super::runs::signal_number;
use super::{App, wire};
use crate::service::{Caller, ServiceError};
use axum::extract::State;
use axum::{Extension, Json};
use sessile_gateway::answer;

/// List background jobs, oldest first
#[utoipa::path(
    get, path = "/v1/sessions/{id}/jobs", operation_id = "list_jobs", tag = "jobs",
    params(wire::SessionParam),
    responses((status = 200, body = Vec<answer::Job>))
)]
pub(super) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
) -> Result<Json<Vec<answer::Job>>, ServiceError> {
    let jobs = app.service.jobs(&caller, &id).await?;
    Ok(Json(jobs.iter().map(answer::Job::from).collect()))
}

/// Signal a job, or one of its processes, and all descendants
#[utoipa::path(
    post, path = "/v1/sessions/{id}/jobs/{pid}/signal", operation_id = "signal_job", tag = "jobs",
    params(
        wire::SessionParam,
        ("pid" = u32, Path, description = "The process"),
    ),
    request_body = wire::SignalRequest,
    responses((status = 200, body = answer::SignalledJob))
)]
pub(super) async fn signal(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SessionJob(id, pid): SessionJob,
    Body(body): Body<wire::SignalRequest>,
) -> Result<Json<answer::SignalledJob>, ServiceError> {
    let signal = signal_number(&body.signal.0)?;
    let processes = app.service.signal_job(&caller, &id, pid, signal).await?;
    Ok(Json(answer::SignalledJob { pid, processes }))
}
