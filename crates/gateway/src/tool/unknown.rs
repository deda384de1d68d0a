//! Refuses unknown fields, and names them.

use super::request::refuse;
use crate::Result;
use crate::input::nearest;
use serde_json::{Map, Value};

/// An undocumented alias for `command`: models have written it.
const CODE: &str = "code";

/// Refuses a field that is not a known one, and names the one that was probably meant.
///
/// # Errors
/// When a field is unknown.
pub fn check_fields<'a>(
    mut given: impl Iterator<Item = &'a str>,
    known: &Map<String, Value>,
) -> Result<()> {
    let is_known =
        |name: &str| known.contains_key(name) || (name == CODE && known.contains_key("command"));
    let Some(unknown) = given.find(|name| !is_known(name)) else { return Ok(()) };
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    if unknown == "sandbox" {
        let why = "a sandbox is not asked for here: whoever starts the server or the tool decides";
        return refuse(format!("unknown field \"sandbox\"; {why}"));
    }
    match nearest(unknown, &names) {
        Some(meant) => refuse(format!("unknown field {unknown:?}; did you mean {meant:?}?")),
        None => refuse(format!("unknown field {unknown:?}; there are {}", names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_unknown_field_is_named_with_the_one_that_was_meant() {
        let known = json!({"session_key": 1, "command": 1, "timeout_ms": 1});
        let refusal = |given: Value| {
            let given = given.as_object().unwrap().keys().map(String::as_str);
            check_fields(given, known.as_object().unwrap()).map_err(|error| error.message)
        };
        assert_eq!(refusal(json!({"command": "x", "timeout_ms": 2, "code": "x"})), Ok(()));
        for (given, meant) in
            [("sessionKey", "session_key"), ("comand", "command"), ("timeout-ms", "timeout_ms")]
        {
            let told = refusal(json!({given: 1})).unwrap_err();
            assert_eq!(told, format!("unknown field {given:?}; did you mean {meant:?}?"));
        }
        let told = refusal(json!({"colour": 1})).unwrap_err();
        assert_eq!(told, "unknown field \"colour\"; there are session_key, command, timeout_ms");
    }
}
