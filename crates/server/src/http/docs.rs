//! The API's description, for programs and for people.

use super::App;
use axum::response::Html;
use axum::routing::get;
use axum::{Json, Router};
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

pub(super) fn router(description: OpenApi) -> Router<App> {
    Router::new()
        .route("/openapi.json", get(move || async move { Json(description) }))
        .route("/docs", get(|| async { Html(PAGE) }))
}
