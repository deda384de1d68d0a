//! Checks queries: an unknown or repeated parameter is refused. Otherwise `?lmit=5` would
//! be silently ignored.

use super::description::operations;
use crate::service::ServiceError;
use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use sessile_gateway::input::InputError;
use std::collections::HashMap;
use utoipa::openapi::path::{ParameterIn, PathItem};
use utoipa::openapi::{OpenApi, RefOr};

/// The parameters of each call.
#[derive(Debug)]
pub(super) struct KnownParameters(HashMap<String, HashMap<Method, Vec<String>>>);

impl KnownParameters {
    pub(super) fn of(description: &OpenApi) -> Self {
        let paths = description.paths.paths.iter();
        Self(paths.map(|(path, item)| (path.clone(), of_path(item))).collect())
    }

    /// Refuses unknown parameters before anything is done. Only the API's own calls are
    /// checked.
    pub(super) fn check(&self, request: &Request) -> Result<(), ServiceError> {
        let Some(query) = request.uri().query() else { return Ok(()) };
        let Some(path) = request.extensions().get::<MatchedPath>() else { return Ok(()) };
        self.check_names(path.as_str(), request.method(), query)
            .map_err(|error| ServiceError::bad_request(format!("the query is not valid: {error}")))
    }

    fn check_names(&self, path: &str, method: &Method, query: &str) -> Result<(), InputError> {
        // A HEAD takes what the GET takes.
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let Some(known) = self.0.get(path).and_then(|methods| methods.get(method)) else {
            return Ok(());
        };
        let mut seen = Vec::new();
        for (name, _) in form_urlencoded::parse(query.as_bytes()) {
            if !known.iter().any(|known| *known == name) {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                return Err(InputError::unknown(&name, &known));
            }
            if seen.contains(&name) {
                return Err(InputError::twice(&name));
            }
            seen.push(name);
        }
        Ok(())
    }
}

fn of_path(item: &PathItem) -> HashMap<Method, Vec<String>> {
    let mut item = item.clone();
    let mut known = HashMap::new();
    for (method, operation) in operations(&mut item) {
        let parameters = operation.parameters.iter().flatten();
        let names = parameters.filter_map(|parameter| match parameter {
            RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => {
                Some(parameter.name.clone())
            }
            RefOr::T(_) | RefOr::Ref(_) => None,
        });
        known.insert(method, names.collect());
    }
    known
}
