//! The HTTP API: `/v1`, its description, and endpoints for operators.

mod agents;
mod auth;
mod body;
mod branch_wire;
mod branches;
mod description;
mod docs;
mod entrance;
mod error;
mod files;
mod health;
mod jobs;
mod layer;
mod live;
mod log;
mod ports;
mod query;
mod runs;
mod saving;
mod session_events;
mod sessions;
mod stream;
mod terminals;
mod tools;
mod top;
mod wire;

pub use agents::{Decision, RewindAgent, StartAgent};
pub use auth::{Access, Guard};
pub(crate) use body::read_all;
pub use wire::Environment;
pub(crate) use wire::ErrorBody;

use crate::service::{ErrorCode, Service, ServiceError};
use axum::http::{StatusCode, Uri};
use axum::{Json, Router, middleware};
use description::Description;
use entrance::Entrance;
use std::sync::Arc;
use std::time::Duration;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The state that every request needs.
#[derive(Clone, Debug)]
pub struct App {
    pub service: Arc<Service>,
    pub guard: Arc<Guard>,
    /// How long an MCP tool call waits for a run.
    pub mcp_wait: Duration,
}

/// The result of most handlers.
type Answer<T> = Result<Json<T>, ServiceError>;

/// The result of handlers that create something.
type Created<T> = Result<(StatusCode, Json<T>), ServiceError>;

fn api() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(sessions::start, sessions::list, sessions::end_all))
        .routes(routes!(top::top))
        .routes(routes!(sessions::show, sessions::rename, sessions::end))
        .routes(routes!(sessions::state))
        .routes(routes!(sessions::history))
        .routes(routes!(sessions::reset))
        .routes(routes!(sessions::interrupt))
        .routes(routes!(runs::exec))
        .routes(routes!(runs::eval))
        .routes(routes!(runs::once))
        .routes(routes!(runs::list))
        .routes(routes!(runs::result))
        .routes(routes!(runs::output))
        .routes(routes!(runs::input))
        .routes(routes!(runs::signal))
        .routes(routes!(branches::fork))
        .routes(routes!(branches::take, branches::list, branches::drop_all))
        .routes(routes!(branches::drop_one))
        .routes(routes!(branches::rewind))
        .routes(routes!(branches::undo))
        .routes(routes!(saving::download, saving::save))
        .routes(routes!(saving::restore))
        .routes(routes!(jobs::list))
        .routes(routes!(jobs::signal))
        .routes(routes!(ports::list))
        .routes(routes!(files::list, files::remove))
        .routes(routes!(files::stat))
        .routes(routes!(files::read, files::write))
        .routes(routes!(files::make))
        .routes(routes!(files::rename))
        .routes(routes!(files::pack, files::unpack))
        .routes(routes!(files::watch))
        .routes(routes!(layer::diff))
        .routes(routes!(layer::apply))
        .routes(routes!(layer::discard))
        .routes(routes!(terminals::screen))
        .routes(routes!(terminals::keys))
        .routes(routes!(terminals::resize))
        .routes(routes!(stream::events))
        .routes(routes!(session_events::session_events))
        .routes(routes!(live::session_socket))
        .routes(routes!(live::run_socket))
        .routes(routes!(agents::start, agents::list))
        .routes(routes!(agents::show))
        .routes(routes!(agents::fork))
        .routes(routes!(agents::submit, agents::tasks))
        .routes(routes!(agents::task))
        .routes(routes!(agents::thread))
        .routes(routes!(agents::rewind))
        .routes(routes!(agents::undo))
        .routes(routes!(agents::export))
        .routes(routes!(agents::import))
        .routes(routes!(agents::moved))
        .routes(routes!(agents::cancel))
        .routes(routes!(agents::decide))
        .routes(routes!(agents::events))
        .routes(routes!(tools::runtime))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
}

/// Returns the API's description.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    description::complete(api().into_openapi())
}

/// Returns the router for everything that is served over HTTP.
///
/// A client that stops in the middle of a request's body is dropped after `patience`.
pub fn router(app: App, patience: Duration) -> Router {
    let mcp = crate::mcp::router(&app);
    router_with(app, mcp, patience)
}

/// Returns the same with these MCP routes.
pub(crate) fn router_with(app: App, mcp: Router<App>, patience: Duration) -> Router {
    let (router, description) = api().split_for_parts();
    let description = description::complete(description);
    let names = Arc::new(query::KnownParameters::of(&description));
    let entrance = Arc::new(Entrance { app: app.clone(), names, patience });
    router
        .merge(ports::router())
        .merge(docs::router(&description))
        .merge(mcp)
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(entrance, entrance::pass))
        .with_state(app)
}

async fn not_found(uri: Uri) -> ServiceError {
    ServiceError::new(ErrorCode::NotFound, format!("there is nothing at {}", uri.path()))
}

async fn method_not_allowed(uri: Uri) -> ServiceError {
    let message = format!("{} does not take that method", uri.path());
    ServiceError::new(ErrorCode::MethodNotAllowed, message)
}
