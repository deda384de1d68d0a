//! Strict parsing of requests, with helpful errors: an unknown field is named, with the
//! known one that was probably meant, and a wrong value is named by its path.
//!
//! Types that are parsed in this way have `#[serde(deny_unknown_fields)]`.

mod strict;

use crate::Error;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Number, Value};
use sessile_protocol::wording;
use std::fmt::{self, Display};

/// What is wrong with an input, and where in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct InputError {
    /// From the outermost name on; empty for the input as a whole.
    path: Vec<String>,
    what: String,
}

/// Parses a JSON text. A repeated name is refused.
///
/// # Errors
/// When it is not JSON, or does not fit the type.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, InputError> {
    let value = strict::parse(bytes).map_err(|error| -> InputError { de::Error::custom(error) })?;
    from_value(value)
}

/// Converts a JSON value. A number such as `2.0` is an integer.
///
/// # Errors
/// When it does not fit the type.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, InputError> {
    T::deserialize(Input(value))
}

/// Returns the known name that was probably meant: the same in another spelling, or the
/// most similar one.
#[must_use]
pub fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    let wanted = plain(given);
    let likeness = |name: &str| {
        let known = plain(name);
        let likeness = strsim::jaro_winkler(&wanted, &known);
        if is_short_for(&wanted, &known) { likeness.max(ALIKE) } else { likeness }
    };
    let best = known.iter().map(|name| (likeness(name), *name));
    let best = best.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (best.0 >= ALIKE).then_some(best.1)
}

/// Minimum similarity of two names: below that of a name with a typing mistake, and above
/// that of unrelated names.
const ALIKE: f64 = 0.8;

/// Whether a word is another one with letters left out, as `cmd` is of `command`.
fn is_short_for(short: &str, long: &str) -> bool {
    let mut letters = long.chars();
    let starts_alike = short.chars().next() == long.chars().next();
    starts_alike && short.len() >= 3 && short.chars().all(|c| letters.any(|letter| letter == c))
}

impl InputError {
    /// Returns the error for an unknown name.
    #[must_use]
    pub fn unknown(name: &str, known: &[&str]) -> Self {
        de::Error::custom(match (nearest(name, known), known) {
            (Some(meant), _) => format!("unknown field {name:?}; did you mean {meant:?}?"),
            (None, []) => format!("unknown field {name:?}; no fields are accepted here"),
            (None, known) => format!("unknown field {name:?}; there are {}", known.join(", ")),
        })
    }

    /// Returns the error for a repeated name: one of its values would be ignored.
    #[must_use]
    pub fn twice(name: &str) -> Self {
        de::Error::custom(format!("{name:?} is there twice"))
    }

    fn wrong(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let wanted = wording::wanted(&wanted.to_string());
        de::Error::custom(format!("must be {wanted}, and is {}", shown(found)))
    }

    /// Returns the same error seen from outside of a field.
    fn within(mut self, name: String) -> Self {
        self.path.insert(0, name);
        self
    }
}

impl Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path.join("."))?;
        }
        f.write_str(&self.what)
    }
}

impl de::Error for InputError {
    fn custom<T: Display>(message: T) -> Self {
        Self { path: Vec::new(), what: message.to_string() }
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::wrong(found, wanted)
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::wrong(found, wanted)
    }

    fn invalid_length(count: usize, wanted: &dyn Expected) -> Self {
        let items = if count == 1 { "item" } else { "items" };
        let wanted = wording::wanted(&wanted.to_string());
        Self::custom(format!("must be {wanted}, and has {count} {items}"))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::unknown(field, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let known = expected.join(", ");
        Self::custom(match nearest(variant, expected) {
            Some(meant) => format!("{variant:?} is none of {known}; did you mean {meant:?}?"),
            None => format!("{variant:?} is none of {known}"),
        })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format!("the field {field:?} is missing"))
    }
}

impl From<InputError> for Error {
    fn from(error: InputError) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// How much of a text an error shows: enough to find it in a request.
const SHOWN: usize = 60;

/// Returns a value as JSON.
fn shown(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Str(text) if text.chars().count() > SHOWN => {
            let beginning: String = text.chars().take(SHOWN).collect();
            format!("{:?}", beginning + "…")
        }
        Unexpected::Str(text) => format!("{text:?}"),
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Seq => "an array".to_owned(),
        Unexpected::Map => "an object".to_owned(),
        Unexpected::Char(_)
        | Unexpected::Bytes(_)
        | Unexpected::NewtypeStruct
        | Unexpected::Enum
        | Unexpected::UnitVariant
        | Unexpected::NewtypeVariant
        | Unexpected::TupleVariant
        | Unexpected::StructVariant
        | Unexpected::Other(_) => "something else".to_owned(),
    }
}

/// A value to be parsed. An error in a nested value has its path, also an error that one
/// of our types finds after parsing.
struct Input(Value);

impl<'de> Deserializer<'de> for Input {
    type Error = InputError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InputError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => visit_number(&number, visitor),
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => {
                let length = items.len();
                let mut items = Items { rest: items.into_iter(), next: 0 };
                let read = visitor.visit_seq(&mut items)?;
                match items.rest.len() {
                    0 => Ok(read),
                    _ => Err(de::Error::invalid_length(length, &"fewer items")),
                }
            }
            Value::Object(fields) => visitor.visit_map(Fields::of(fields)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InputError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, InputError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, InputError> {
        match self.0 {
            Value::String(text) => visitor.visit_enum(text.into_deserializer()),
            Value::Object(fields) => {
                visitor.visit_enum(MapAccessDeserializer::new(Fields::of(fields)))
            }
            value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
                Self(value).deserialize_any(visitor)
            }
        }
    }

    /// Refuses arrays: fields have names, and their order in a type is not part of the format.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, InputError> {
        match self.0 {
            Value::Array(_) => {
                Err(de::Error::invalid_type(de::Unexpected::Seq, &"an object with fields"))
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, InputError> for Input {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The fields of an object.
struct Fields {
    rest: serde_json::map::IntoIter,
    /// The field whose name was read, but not its value.
    current: Option<(String, Value)>,
}

impl Fields {
    fn of(fields: Map<String, Value>) -> Self {
        Self { rest: fields.into_iter(), current: None }
    }
}

impl<'de> MapAccess<'de> for Fields {
    type Error = InputError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, InputError> {
        self.current = self.rest.next();
        let Some((name, _)) = &self.current else { return Ok(None) };
        seed.deserialize(name.clone().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, InputError> {
        let (name, value) = self.current.take().unwrap_or_default();
        seed.deserialize(Input(value)).map_err(|error| error.within(name))
    }
}

struct Items {
    rest: std::vec::IntoIter<Value>,
    next: usize,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = InputError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, InputError> {
        let Some(value) = self.rest.next() else { return Ok(None) };
        let place = self.next;
        self.next += 1;
        seed.deserialize(Input(value)).map(Some).map_err(|error| error.within(place.to_string()))
    }
}

/// Visits a number. JSON has one kind of number: `2.0` and `2` are the same.
fn visit_number<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, InputError> {
    /// Beyond this, a float cannot represent every whole number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Some(n) = number.as_u64() {
        return visitor.visit_u64(n);
    }
    if let Some(n) = number.as_i64() {
        return visitor.visit_i64(n);
    }
    match number.as_f64() {
        Some(n) if n.fract() == 0.0 && (0.0..=EXACT).contains(&n) => visitor.visit_u64(n as u64),
        Some(n) if n.fract() == 0.0 && (-EXACT..0.0).contains(&n) => visitor.visit_i64(n as i64),
        Some(n) => visitor.visit_f64(n),
        None => Err(de::Error::custom("this number is too large")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Order {
        command: String,
        session_key: Option<String>,
        timeout_ms: Option<u64>,
        #[serde(default)]
        env: BTreeMap<String, String>,
        limits: Option<Limits>,
        files: Option<Files>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Limits {
        lines: Vec<i32>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Files {
        Share,
        Copy,
    }

    fn read(text: &str) -> Result<Order, String> {
        from_slice(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(text: &str, why: &str) {
        let refused = read(text).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }

    #[test]
    fn what_fits_is_read() {
        let text = r#"{"command": "a", "timeout_ms": 2.0, "env": {"A": "1"}, "files": "copy",
            "limits": {"lines": [1, -2.0, 1e2]}, "session_key": null}"#;
        let order = read(text).unwrap();
        assert_eq!(order.timeout_ms, Some(2));
        assert_eq!(order.limits, Some(Limits { lines: vec![1, -2, 100] }));
        assert_eq!((order.files, order.session_key), (Some(Files::Copy), None));
        assert_eq!(order.env["A"], "1");
    }

    #[test]
    fn what_does_not_is_named_by_its_place() {
        refused(
            r#"{"command": "a", "timeout_ms": "soon"}"#,
            r#"timeout_ms: must be a whole number, 0 or more, and is "soon""#,
        );
        refused(
            r#"{"command": "a", "timeout_ms": 2.5}"#,
            "timeout_ms: must be a whole number, 0 or more, and is 2.5",
        );
        refused(r#"{"command": "a", "limits": {"lines": [1, "x"]}}"#, "limits.lines.1: ");
        refused(r#"{"command": "a", "env": {"A": 1}}"#, "env.A: must be a text, and is 1");
        refused(r#"{"command": "a", "limits": 7}"#, "limits: must be an object, and is 7");
        refused(
            r#"{"command": "a", "limits": {"lines": [1e10]}}"#,
            "limits.lines.0: must be a whole number from -2147483648 to 2147483647, and is 10000000000",
        );
        refused(r#"{"command": "a", "files": "copied"}"#, r#"files: "copied" is none of share"#);
        refused("{}", r#"the field "command" is missing"#);
        refused("[", "EOF");
        refused(r#"["a"]"#, "must be an object with fields, and is an array");
        refused(
            r#"{"command": "a", "limits": [[1]]}"#,
            "limits: must be an object with fields, and is an array",
        );
        refused(r#"{"command": "a", "command": "b"}"#, r#""command" is there twice"#);
        refused(r#"{"command": "a", "env": {"A": "1", "A": "2"}}"#, r#""A" is there twice"#);
        refused(r#"{"command": "a"} {}"#, "trailing");
    }

    #[test]
    fn an_unknown_field_is_named_with_the_one_that_was_meant() {
        let meant = |given: &str, known: &str| {
            let text = format!(r#"{{"command": "a", "{given}": 1}}"#);
            refused(&text, &format!("unknown field {given:?}; did you mean {known:?}?"));
        };
        meant("sessionKey", "session_key");
        meant("session-key", "session_key");
        meant("timeout", "timeout_ms");
        meant("cmd", "command");
        meant("Command", "command");
        refused(r#"{"command": "a", "x": 1}"#, r#"unknown field "x"; there are command, "#);
        refused(
            r#"{"command": "a", "limits": {"line": []}}"#,
            r#"limits: unknown field "line"; did you mean "lines"?"#,
        );
    }
}
