//! Forks and checkpoints.

use super::App;
use super::body::{Body, Session, SessionCheckpoint};
use super::branch_wire::{
    CheckpointRequest, CheckpointRow, Dropped, ForkRequest, Forked, RewindRequest, Rewound,
    UndoRequest,
};
use super::wire;
use crate::service::{Caller, ServiceError, Told};
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::{Value, json};
use sessile_protocol::{DropCheckpoints, Rewind};

type Answer = Result<Json<Value>, ServiceError>;
type Created = Result<(StatusCode, Json<Value>), ServiceError>;

/// An answer, and what had become of the session.
fn continued<T>(told: &Told<T>, mut answer: Value) -> Json<Value> {
    answer["continuity"] = told.continuity.to_json();
    Json(answer)
}

/// Make new sessions with the state of this one
///
/// All of them, or none. A request that is sent again makes further ones: there
/// is no Idempotency-Key here. A run that is going is a reason to refuse it
/// (409 `busy`), unless `wait` says otherwise.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/fork", tag = "checkpoints",
    params(("id" = String, Path, description = "The session")),
    request_body = ForkRequest,
    responses(
        (status = 201, body = Forked),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(super) async fn fork(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Body(body): Body<ForkRequest>,
) -> Created {
    let told = app.service.fork(&caller, &id, body.into()).await?;
    let answer = sessile_gateway::forked(&told.answer);
    Ok((StatusCode::CREATED, continued(&told, answer)))
}

/// Take a point that the session can be rewound to
#[utoipa::path(
    post, path = "/v1/sessions/{id}/checkpoints", tag = "checkpoints",
    params(("id" = String, Path, description = "The session")),
    request_body = CheckpointRequest,
    responses(
        (status = 201, body = CheckpointRow),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(super) async fn take(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Body(body): Body<CheckpointRequest>,
) -> Created {
    let told = app.service.checkpoint(&caller, &id, body.into()).await?;
    let answer = sessile_gateway::checkpoint(&told.answer);
    Ok((StatusCode::CREATED, continued(&told, answer)))
}

/// The points that a session can be rewound to, oldest first
#[utoipa::path(
    get, path = "/v1/sessions/{id}/checkpoints", tag = "checkpoints",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = Vec<CheckpointRow>), (status = "4XX", body = wire::ErrorBody))
)]
pub(super) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
) -> Answer {
    let checkpoints = app.service.checkpoints(&caller, &id).await?;
    let rows: Vec<Value> = checkpoints.iter().map(sessile_gateway::checkpoint).collect();
    Ok(Json(rows.into()))
}

/// Let go of all checkpoints
#[utoipa::path(
    delete, path = "/v1/sessions/{id}/checkpoints", tag = "checkpoints",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = Dropped), (status = "4XX", body = wire::ErrorBody))
)]
pub(super) async fn drop_all(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
) -> Answer {
    let names = app.service.drop_checkpoints(&caller, &id, DropCheckpoints::All).await?;
    Ok(Json(json!({"dropped": names})))
}

/// Let go of a checkpoint
#[utoipa::path(
    delete, path = "/v1/sessions/{id}/checkpoints/{name}", tag = "checkpoints",
    params(
        ("id" = String, Path, description = "The session"),
        ("name" = String, Path, description = "The checkpoint"),
    ),
    responses((status = 200, body = Dropped), (status = "4XX", body = wire::ErrorBody))
)]
pub(super) async fn drop_one(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SessionCheckpoint(id, name): SessionCheckpoint,
) -> Answer {
    let which = DropCheckpoints::Named(vec![name]);
    let names = app.service.drop_checkpoints(&caller, &id, which).await?;
    Ok(Json(json!({"dropped": names})))
}

async fn go_back(app: &App, caller: &Caller, session: Session, rewind: Rewind) -> Answer {
    let told = app.service.rewind(caller, &session.0, rewind).await?;
    let answer = sessile_gateway::rewound(&told.answer);
    Ok(continued(&told, answer))
}

/// Take a session back to a checkpoint
///
/// To the newest one, the one of that name, or to before the last `runs` runs.
/// The history tells of it.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/rewind", tag = "checkpoints",
    params(("id" = String, Path, description = "The session")),
    request_body = RewindRequest,
    responses(
        (status = 200, body = Rewound),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(super) async fn rewind(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    session: Session,
    Body(body): Body<RewindRequest>,
) -> Answer {
    go_back(&app, &caller, session, body.order()?).await
}

/// Take back the last run
///
/// In a session that was started with `auto`. The same as a rewind with
/// `"runs": 1`.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/undo", tag = "checkpoints",
    params(("id" = String, Path, description = "The session")),
    request_body = UndoRequest,
    responses(
        (status = 200, body = Rewound),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(super) async fn undo(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    session: Session,
    Body(body): Body<UndoRequest>,
) -> Answer {
    go_back(&app, &caller, session, body.into()).await
}
