//! The API's description, for programs and for people.

use super::App;
use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::Html;
use axum::routing::get;
use utoipa::Modify;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

/// Describes how a token is sent.
pub(super) struct Security;

impl Modify for Security {
    fn modify(&self, description: &mut OpenApi) {
        let components = description.components.get_or_insert_default();
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

/// A self-contained page: it loads nothing from elsewhere.
const PAGE: &str = include_str!("docs.html");

/// Serves the description as text: as objects it takes ten times the memory, for as long as
/// the server runs.
pub(super) fn router(description: &OpenApi) -> Router<App> {
    let json = serde_json::to_vec(description).map(Bytes::from).unwrap_or_default();
    let answer = move || async move { ([(CONTENT_TYPE, "application/json")], json) };
    Router::new().route("/openapi.json", get(answer)).route("/docs", get(|| async { Html(PAGE) }))
}
