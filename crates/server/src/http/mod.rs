//! The HTTP API: `/v1`, its description, and what operators look at.

mod auth;
mod body;
mod branch_wire;
mod branches;
mod docs;
mod error;
mod health;
mod jobs;
mod live;
mod log;
mod runs;
mod saving;
mod session_events;
mod sessions;
mod stream;
mod terminals;
mod tools;
mod top;
mod wire;

pub use auth::{Access, Guard};

use crate::service::{ErrorCode, Service, ServiceError};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::Uri;
use axum::middleware;
use docs::Security;
use std::sync::Arc;
use std::time::Duration;
use tower_http::timeout::RequestBodyTimeoutLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What every request needs.
#[derive(Clone, Debug)]
pub struct App {
    pub service: Arc<Service>,
    pub guard: Arc<Guard>,
    /// How long an MCP tool call waits for a run.
    pub mcp_wait: Duration,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Sessile",
        description = "Live shells, Python and Node that remember.",
        license(name = "MIT OR Apache-2.0")
    ),
    modifiers(&Security),
    security(("token" = [])),
    tags(
        (name = "sessions", description = "Sessions: started, listed, looked at, ended"),
        (name = "runs", description = "Runs: begun, waited for, read, fed"),
        (name = "checkpoints", description = "Forks of sessions, and going back"),
        (name = "saving", description = "Sessions in files"),
        (name = "jobs", description = "Jobs: what runs have left in the background"),
        (name = "terminals", description = "Terminals of runs: looked at, typed on"),
        (name = "tools", description = "Tools for agents"),
        (name = "server", description = "The server itself")
    )
)]
struct Description;

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
        .routes(routes!(terminals::screen))
        .routes(routes!(terminals::keys))
        .routes(routes!(terminals::resize))
        .routes(routes!(stream::events))
        .routes(routes!(session_events::session_events))
        .routes(routes!(live::session_socket))
        .routes(routes!(live::run_socket))
        .routes(routes!(tools::runtime))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
}

/// The API's description.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    api().into_openapi()
}

/// Everything that is served over HTTP.
///
/// A client that stops in the middle of a request's body is waited for only so
/// long.
pub fn router(app: App, patience: Duration) -> Router {
    let (router, description) = api().split_for_parts();
    router
        .merge(docs::router(description))
        .merge(crate::mcp::router(&app))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(app.clone(), auth::check))
        // Bodies are limited where they are read.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn(log::requests))
        .layer(RequestBodyTimeoutLayer::new(patience))
        .with_state(app)
}

async fn not_found(uri: Uri) -> ServiceError {
    ServiceError::new(ErrorCode::NotFound, format!("there is nothing at {}", uri.path()))
}

async fn method_not_allowed(uri: Uri) -> ServiceError {
    let message = format!("{} does not take that method", uri.path());
    ServiceError::new(ErrorCode::MethodNotAllowed, message)
}
