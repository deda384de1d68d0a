//! Additions to the API's description that concern more than one call: refusals, fields
//! that exclude each other, and links from one call's answer to the next call.

use super::docs::Security;
use super::wire;
use axum::http::Method;
use utoipa::openapi::link::LinkBuilder;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::schema::{
    AllOfBuilder, AnyOfBuilder, Object, ObjectBuilder, SchemaType, Type,
};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, ResponseBuilder, Schema};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Sessile",
        description = "Live shells, Python and Node that remember.",
        license(name = "MIT OR Apache-2.0")
    ),
    modifiers(&Security),
    security(("token" = [])),
    paths(super::ports::through),
    components(schemas(
        wire::ErrorBody,
        super::agents::ThreadEvent,
        super::agents::DeltaEvent,
        super::agents::RetryEvent,
        super::agents::ApproveEvent
    )),
    tags(
        (name = "sessions", description = "Start, list, inspect and end sessions"),
        (name = "runs", description = "Start runs, wait for them, read their output, send input"),
        (name = "checkpoints", description = "Forks, checkpoints and rewinds"),
        (name = "saving", description = "Save and restore sessions"),
        (name = "files", description = "Files of a session's workspace"),
        (name = "layer", description = "Show, apply and discard the changes of a sandboxed session"),
        (name = "jobs", description = "Background jobs of a session"),
        (name = "ports", description = "Access to servers inside sessions"),
        (name = "terminals", description = "Terminals of runs"),
        (name = "agents", description = "Models that work in a session"),
        (name = "tools", description = "Tools for agents"),
        (name = "server", description = "The server itself")
    )
)]
pub(super) struct Description;

/// Adds what holds for more than one call.
pub(super) fn complete(mut description: OpenApi) -> OpenApi {
    for (path, item) in &mut description.paths.paths {
        for (_, operation) in operations(item) {
            refusals(path, operation);
            values(operation);
            links(operation);
        }
    }
    exclusions(&mut description);
    description
}

pub(super) fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let all = [
        (Method::GET, &mut item.get),
        (Method::POST, &mut item.post),
        (Method::PUT, &mut item.put),
        (Method::PATCH, &mut item.patch),
        (Method::DELETE, &mut item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Adds the refusals. All have the same form. 503 stands for a server that shuts down, a
/// keeper that does not answer, or a full disk.
fn refusals(path: &str, operation: &mut Operation) {
    let statuses: &[_] = match path {
        "/healthz" => &[],
        "/readyz" => &[("503", "Temporarily unavailable; try again")],
        _ => &[
            ("4XX", "The request is refused; the body says why"),
            ("503", "Temporarily unavailable; try again"),
        ],
    };
    for (status, meaning) in statuses {
        let body = Content::new(Some(Ref::from_schema_name("ErrorBody")));
        let response =
            ResponseBuilder::new().description(*meaning).content("application/json", body);
        operation.responses.responses.insert((*status).to_owned(), response.build().into());
    }
}

/// Removes `null` from the types of optional parameters: a query or a header cannot
/// express it.
fn values(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema
            && let SchemaType::Array(types) = &schema.schema_type
            && let Some(first) = types.iter().find(|kind| **kind != Type::Null)
        {
            schema.schema_type = SchemaType::Type(first.clone());
        }
    }
}

/// Calls that can follow for a new session.
const OF_A_SESSION: &[&str] = &[
    "show_session",
    "exec",
    "eval",
    "show_state",
    "list_runs",
    "take_checkpoint",
    "rewind",
    "fork_session",
    "rename_session",
    "end_session",
];

/// Calls that can follow for a run.
const OF_A_RUN: &[&str] =
    &["show_run", "read_output", "send_input", "signal_run", "show_screen", "press_keys"];

fn links(operation: &mut Operation) {
    const ID: &str = "$request.path.id";
    let (statuses, targets, parameters): (&[&str], _, &[_]) =
        match operation.operation_id.as_deref().unwrap_or_default() {
            "start_session" | "restore_session" => {
                (&["201"], OF_A_SESSION, &[("id", "$response.body#/session_id")])
            }
            "fork_session" => (&["201"], OF_A_SESSION, &[("id", "$response.body#/session_ids/0")]),
            "exec" | "eval" => {
                (&["200", "202"], OF_A_RUN, &[("id", ID), ("run", "$response.body#/run")])
            }
            "take_checkpoint" => {
                (&["201"], &["drop_checkpoint"], &[("id", ID), ("name", "$response.body#/name")])
            }
            _ => return,
        };
    for status in statuses {
        if let Some(RefOr::T(response)) = operation.responses.responses.get_mut(*status) {
            for target in targets {
                let link = parameters
                    .iter()
                    .fold(LinkBuilder::new().operation_id(*target), |link, (name, value)| {
                        link.parameter(*name, *value)
                    });
                response.links.insert((*target).to_owned(), link.build().into());
            }
        }
    }
}

/// Adds the fields that exclude each other.
fn exclusions(description: &mut OpenApi) {
    let Some(components) = &mut description.components else { return };
    let mut either = |name: &str, alternatives: Vec<Object>| {
        let Some(schema) = components.schemas.remove(name) else { return };
        let any = alternatives.into_iter().fold(AnyOfBuilder::new(), AnyOfBuilder::item);
        let both = AllOfBuilder::new().item(schema).item(Schema::AnyOf(any.build()));
        components.schemas.insert(name.to_owned(), Schema::AllOf(both.build()).into());
    };
    let nothing = || ObjectBuilder::new().schema_type(Type::Null);
    let without = |field: &str| ObjectBuilder::new().property(field, nothing()).build();
    either("RewindRequest", vec![without("checkpoint"), without("runs")]);
    // A session forked from another one has that one's shell.
    either("StartSession", vec![without("from"), without("shell")]);
    let plain = ObjectBuilder::new()
        .schema_type(SchemaType::Array(vec![Type::String, Type::Null]))
        .enum_values(Some([Some("utf8"), None]));
    let base64 = ObjectBuilder::new().schema_type(Type::String).pattern(Some(
        "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$",
    ));
    either(
        "InputRequest",
        vec![
            ObjectBuilder::new().property("encoding", plain).build(),
            ObjectBuilder::new().property("data", base64).build(),
        ],
    );
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_call_has_a_name_of_its_own_and_links_name_calls_that_are_there() {
        let mut description = super::super::openapi();
        let mut names = BTreeSet::new();
        let mut linked = BTreeSet::new();
        for item in description.paths.paths.values_mut() {
            for (_, operation) in super::operations(item) {
                let name = operation.operation_id.clone().unwrap();
                assert!(names.insert(name.clone()), "{name} is there twice");
                for response in operation.responses.responses.values() {
                    let utoipa::openapi::RefOr::T(response) = response else { continue };
                    linked.extend(response.links.keys().cloned());
                }
            }
        }
        assert!(linked.len() > 10);
        assert!(linked.is_subset(&names), "{linked:?}");
    }
}
