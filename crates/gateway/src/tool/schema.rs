//! The description of the `runtime` tool for a model.
//!
//! It has only what every vendor of models accepts: one type each, no unions, no further
//! fields. Requests may use more forms than these.

use serde_json::{Map, Value};
use std::sync::LazyLock;

static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("schema.json")).unwrap_or_default());

#[must_use]
pub fn schema() -> Value {
    SCHEMA.clone()
}

/// Returns the fields that a request may have.
pub(super) fn fields() -> Option<&'static Map<String, Value>> {
    SCHEMA["input_schema"]["properties"].as_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_can_be_read() {
        assert!(fields().is_some_and(|fields| fields.len() > 10));
        assert_eq!(SCHEMA["name"], "runtime");
    }
}
