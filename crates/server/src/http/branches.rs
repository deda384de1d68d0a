//! Forks and checkpoints.

use super::body::{Body, Session, SessionCheckpoint};
use super::branch_wire::{CheckpointRequest, ForkRequest, RewindRequest, UndoRequest};
use super::sessions::calling_program;
use super::wire;
use super::{Answer, App, Created};
use crate::serve::Peer;
use crate::service::{Caller, ForksEnd};
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use sessile_gateway::answer::{Checkpoint, Dropped, Forked, Rewound};
use sessile_protocol::{DropCheckpoints, Rewind};

/// Fork a session: create sessions with its state
///
/// Creates all forks or none. There is no Idempotency-Key: a repeated request creates more
/// forks. Refused while a run is active (409 `busy`), unless `wait` is set.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/fork", operation_id = "fork_session", tag = "checkpoints",
    params(wire::SessionParam),
    request_body = ForkRequest,
    responses((status = 201, body = Forked))
)]
pub(super) async fn fork(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(peer): Extension<Peer>,
    Session(id): Session,
    Body(body): Body<ForkRequest>,
) -> Created<Forked> {
    let end = match (body.ends_with_caller, &body.name) {
        (Some(true), _) => ForksEnd::With(calling_program(peer)?),
        (Some(false), _) | (None, Some(_)) => ForksEnd::WithNone,
        (None, None) => ForksEnd::WithOriginals,
    };
    let told = app.service.fork(&caller, &id, body.into()).await?;
    app.service.end_forks(&id, &told.answer, end).await?;
    let answer = Forked { continuity: Some(told.continuity), ..(&*told.answer).into() };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Take a checkpoint
#[utoipa::path(
    post, path = "/v1/sessions/{id}/checkpoints", operation_id = "take_checkpoint", tag = "checkpoints",
    params(wire::SessionParam),
    request_body = CheckpointRequest,
    responses((status = 201, body = Checkpoint))
)]
pub(super) async fn take(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Body(body): Body<CheckpointRequest>,
) -> Created<Checkpoint> {
    let told = app.service.checkpoint(&caller, &id, body.into()).await?;
    let answer = Checkpoint { continuity: Some(told.continuity), ..(&*told.answer).into() };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// List the checkpoints of a session, oldest first
#[utoipa::path(
    get, path = "/v1/sessions/{id}/checkpoints", operation_id = "list_checkpoints", tag = "checkpoints",
    params(wire::SessionParam),
    responses((status = 200, body = Vec<Checkpoint>))
)]
pub(super) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
) -> Answer<Vec<Checkpoint>> {
    let checkpoints = app.service.checkpoints(&caller, &id).await?;
    Ok(Json(checkpoints.iter().map(Checkpoint::from).collect()))
}

/// Remove all checkpoints
#[utoipa::path(
    delete, path = "/v1/sessions/{id}/checkpoints", operation_id = "drop_checkpoints", tag = "checkpoints",
    params(wire::SessionParam),
    responses((status = 200, body = Dropped))
)]
pub(super) async fn drop_all(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
) -> Answer<Dropped> {
    let names = app.service.drop_checkpoints(&caller, &id, DropCheckpoints::All).await?;
    Ok(Json(Dropped { dropped: names }))
}

/// Remove a checkpoint
#[utoipa::path(
    delete, path = "/v1/sessions/{id}/checkpoints/{name}", operation_id = "drop_checkpoint", tag = "checkpoints",
    params(
        wire::SessionParam,
        ("name" = String, Path, description = "The checkpoint"),
    ),
    responses((status = 200, body = Dropped))
)]
pub(super) async fn drop_one(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SessionCheckpoint(id, name): SessionCheckpoint,
) -> Answer<Dropped> {
    let which = DropCheckpoints::Named(vec![name]);
    let names = app.service.drop_checkpoints(&caller, &id, which).await?;
    Ok(Json(Dropped { dropped: names }))
}

async fn go_back(app: &App, caller: &Caller, session: Session, rewind: Rewind) -> Answer<Rewound> {
    let told = app.service.rewind(caller, &session.0, rewind).await?;
    Ok(Json(Rewound { continuity: Some(told.continuity), ..(&*told.answer).into() }))
}

/// Rewind a session to a checkpoint
///
/// To the newest checkpoint, the named one, or the one before the last `runs` runs. The
/// history records it.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/rewind", operation_id = "rewind", tag = "checkpoints",
    params(wire::SessionParam),
    request_body = RewindRequest,
    responses((status = 200, body = Rewound))
)]
pub(super) async fn rewind(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    session: Session,
    Body(body): Body<RewindRequest>,
) -> Answer<Rewound> {
    go_back(&app, &caller, session, body.order()?).await
}

/// Undo the last run
///
/// Works in a session that was started with `auto`. The same as a rewind with `"runs": 1`.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/undo", operation_id = "undo", tag = "checkpoints",
    params(wire::SessionParam),
    request_body = UndoRequest,
    responses((status = 200, body = Rewound))
)]
pub(super) async fn undo(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    session: Session,
    Body(body): Body<UndoRequest>,
) -> Answer<Rewound> {
    go_back(&app, &caller, session, body.into()).await
}
