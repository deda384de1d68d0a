//! The changes of a session in a sandbox: show, apply and discard them.

use super::body::{Body, Params, Session};
use super::files::GivenPath;
use super::wire;
use super::{Answer, App};
use crate::service::Caller;
use axum::extract::State;
use axum::{Extension, Json};
use serde::Deserialize;
use sessile_gateway::answer::{DiffForm, LayerApplied, LayerDiff, LayerDiscarded};
use sessile_layer::Force;
use utoipa::{IntoParams, ToSchema};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct DiffQuery {
    /// Return a table of the paths instead of a diff
    #[serde(default)]
    stat: bool,
    /// Paths in the workspace, including everything below them, separated by commas; write a
    /// comma in a name as `\,`. Default: all paths
    #[serde(rename = "path", default)]
    #[param(rename = "path", value_type = Option<String>, example = "src,README.md")]
    _path: String,
}

/// Show the changes of a session
///
/// For a session in a sandbox with `overlay` files; otherwise 409 `no_layer`. Omits paths
/// that the session may not see or change.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/diff", tag = "layer", operation_id = "diff_layer",
    params(wire::SessionParam, DiffQuery),
    responses(
        (status = 200, body = LayerDiff),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(super) async fn diff(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    GivenPath(path): GivenPath,
    Params(query): Params<DiffQuery>,
) -> Answer<LayerDiff> {
    let form = if query.stat { DiffForm::Stat } else { DiffForm::Unified };
    let diff = app.service.diff_layer(&caller, &id, split(&path)).await?;
    Ok(Json(LayerDiff::of(&diff, form)))
}

/// Some paths of a layer
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplyRequest {
    /// Paths in the workspace, including everything below them. Default: all paths
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>)]
    paths: Option<Vec<String>>,
    /// Apply even if the real directory has changed meanwhile
    #[serde(default)]
    force: bool,
}

/// Apply changes to the real directory
///
/// If a path has changed in the real directory since the session first changed it, nothing is
/// applied, and the refusal names the path (409 `layer_conflict`). `force` applies anyway.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/apply", tag = "layer", operation_id = "apply_layer",
    params(wire::SessionParam),
    request_body = ApplyRequest,
    responses(
        (status = 200, body = LayerApplied),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(super) async fn apply(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Body(body): Body<ApplyRequest>,
) -> Answer<LayerApplied> {
    let force = if body.force { Force::Yes } else { Force::No };
    let applied = app.service.apply_layer(&caller, &id, bytes(body.paths), force).await?;
    Ok(Json((&applied).into()))
}

/// Some paths of a layer
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DiscardRequest {
    /// Paths in the workspace, including everything below them. Default: all paths
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>)]
    paths: Option<Vec<String>>,
}

/// Discard changes: the session sees the real files again
#[utoipa::path(
    post, path = "/v1/sessions/{id}/discard", tag = "layer", operation_id = "discard_layer",
    params(wire::SessionParam),
    request_body = DiscardRequest,
    responses(
        (status = 200, body = LayerDiscarded),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(super) async fn discard(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Body(body): Body<DiscardRequest>,
) -> Answer<LayerDiscarded> {
    let discarded = app.service.discard_layer(&caller, &id, bytes(body.paths)).await?;
    Ok(Json((&discarded).into()))
}

fn bytes(paths: Option<Vec<String>>) -> Vec<Vec<u8>> {
    paths.unwrap_or_default().into_iter().map(String::into_bytes).collect()
}

/// Splits a list of paths at commas; `\,` is a comma in a path.
fn split(list: &[u8]) -> Vec<Vec<u8>> {
    let mut paths = vec![Vec::new()];
    let mut rest = list.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match (byte, rest.peek()) {
            (b'\\', Some(b',')) => {
                rest.next();
                paths.last_mut().expect("it is never empty").push(b',');
            }
            (b',', _) => paths.push(Vec::new()),
            (byte, _) => paths.last_mut().expect("it is never empty").push(byte),
        }
    }
    paths.retain(|path| !path.is_empty());
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_separated_by_commas() {
        let said = |list: &str| -> Vec<String> {
            split(list.as_bytes()).into_iter().map(|p| String::from_utf8(p).unwrap()).collect()
        };
        assert_eq!(said("a,b/c"), ["a", "b/c"]);
        assert_eq!(said(r"a\,b,c\d,"), ["a,b", r"c\d"]);
        assert!(said("").is_empty());
    }
}
