//! Values with several notations, or with bounds.

use serde::{Deserialize, Deserializer, Serialize};
use sessile_protocol::{Language, parse_bytes, parse_seconds};
use std::collections::BTreeMap;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

/// A duration: `"30s"`, `"500ms"`, `"2h"`, or a number of seconds. It is capped at a year.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::http) struct Span(pub(in crate::http) u64);

const YEAR_MS: f64 = 366.0 * 24.0 * 3600.0 * 1000.0;

impl Span {
    fn of(text: &str) -> Result<Self, String> {
        let seconds = parse_seconds(text).map_err(|_| {
            format!("{text:?} is not a length of time, such as \"30s\", \"500ms\" or \"2h\"")
        })?;
        Ok(Self::seconds(seconds))
    }

    fn seconds(seconds: f64) -> Self {
        let ms = (seconds * 1000.0).min(YEAR_MS).round() as u64;
        // Rounds a very short duration up: zero often means without limit.
        Self(if seconds > 0.0 { ms.max(1) } else { ms })
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a length of time, such as \"30s\" or 30")]
        enum Form {
            Seconds(f64),
            Text(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Text(text) => Self::of(&text).map_err(serde::de::Error::custom),
            Form::Seconds(seconds) if seconds >= 0.0 => Ok(Self::seconds(seconds)),
            Form::Seconds(_) => Err(serde::de::Error::custom("seconds must be 0 or more")),
        }
    }
}

impl PartialSchema for Span {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(ms|s|sec|m|min|h|d)?\s*$"))
            .examples(["30s", "500ms"]);
        let seconds = ObjectBuilder::new()
            .schema_type(Type::Number)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Double)))
            .minimum(Some(0));
        let either = OneOfBuilder::new().item(text).item(seconds).description(Some(
            "A duration: \"30s\", \"500ms\", \"2h\", or a number of seconds. At most a year",
        ));
        Schema::OneOf(either.build()).into()
    }
}

impl ToSchema for Span {}

/// Parses the same in a query, where everything is text.
pub(in crate::http) fn span_text<'de, D: Deserializer<'de>>(
    d: D,
) -> Result<Option<Span>, D::Error> {
    let Some(text) = Option::<String>::deserialize(d)? else { return Ok(None) };
    let span = match text.parse::<f64>() {
        // Accepts 1e3, as some clients write numbers. `parse` also accepts names such as `inf`.
        Ok(seconds) if text.contains(['e', 'E']) && (0.0..f64::INFINITY).contains(&seconds) => {
            Ok(Span::seconds(seconds))
        }
        Ok(_) | Err(_) => Span::of(&text),
    };
    span.map(Some).map_err(serde::de::Error::custom)
}

pub(super) fn language<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Language>, D::Error> {
    let Some(name) = Option::<String>::deserialize(d)? else { return Ok(None) };
    name.parse().map(Some).map_err(serde::de::Error::custom)
}

/// A number of bytes, with or without a unit: 1048576 or `"1MiB"`. It is capped at `MOST`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::http) struct Size(pub(in crate::http) u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a number of bytes, such as 1048576 or \"1MiB\"")]
        enum Form {
            Bytes(u64),
            // A whole number that is too large for `Bytes`.
            Huge(f64),
            Text(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Bytes(bytes) => Ok(Self(bytes.min(MOST))),
            Form::Huge(bytes) if bytes >= 0.0 && bytes.fract() == 0.0 => {
                Ok(Self((bytes as u64).min(MOST)))
            }
            Form::Huge(_) => Err(serde::de::Error::custom("not a whole number of bytes")),
            Form::Text(text) => {
                let bytes = parse_bytes(&text).map_err(serde::de::Error::custom)?;
                Ok(Self((bytes as u64).min(MOST)))
            }
        }
    }
}

impl PartialSchema for Size {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(
                r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*([bB]|[kKmMgGtT]([bB]|[iI][bB]?)?)?\s*$",
            ))
            .examples(["64MiB"]);
        let bytes = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
        let either = OneOfBuilder::new().item(bytes).item(text).description(Some(
            "A number of bytes: 1048576, \"1MiB\" or \"64K\" (units are powers of 1024)",
        ));
        Schema::OneOf(either.build()).into()
    }
}

impl ToSchema for Size {}

/// The largest number that every client can write.
const MOST: u64 = i64::MAX as u64;

/// Upper limit for how much of a stream a session keeps.
pub(in crate::http) const MOST_KEPT: u64 = 1 << 30;

pub(super) fn run<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    within(Option::<u64>::deserialize(d)?, 0, MOST)
}

pub(super) fn max_history<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    within(Option::<u64>::deserialize(d)?, 1, 100_000)
}

/// Checks that a number is within its limits.
pub(in crate::http) fn within<E: serde::de::Error>(
    number: Option<u64>,
    least: u64,
    most: u64,
) -> Result<Option<u64>, E> {
    match number {
        Some(n) if !(least..=most).contains(&n) => {
            Err(E::custom(format!("{n} is not from {least} to {most}")))
        }
        Some(_) | None => Ok(number),
    }
}

/// Parses the same in a query, where everything is text.
pub(in crate::http) fn within_text<'de, D: Deserializer<'de>>(
    d: D,
    least: u64,
    most: u64,
) -> Result<Option<u64>, D::Error> {
    let Some(text) = Option::<String>::deserialize(d)? else { return Ok(None) };
    let number = whole(&text).ok_or_else(|| serde::de::Error::custom("not a whole number"))?;
    within(Some(number), least, most)
}

/// Parses any number that every client can write, in a query.
pub(in crate::http) fn number_text<'de, D: Deserializer<'de>>(
    d: D,
) -> Result<Option<u64>, D::Error> {
    within_text(d, 0, MOST)
}

/// Parses a whole number: `2`, or the equal `2.0`.
pub(in crate::http) fn whole(text: &str) -> Option<u64> {
    let digits = match text.split_once('.') {
        Some((digits, zeros)) if zeros.bytes().all(|b| b == b'0') => digits,
        Some(_) => return None,
        None => text,
    };
    // `parse` accepts a sign, too.
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Environment variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Environment(pub BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Environment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let variables = BTreeMap::<String, String>::deserialize(deserializer)?;
        for (name, value) in &variables {
            let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                && name.bytes().next().is_some_and(|b| !b.is_ascii_digit());
            if !is_name || value.contains('\0') {
                let message = format!("{name:?} cannot be an environment variable");
                return Err(serde::de::Error::custom(message));
            }
        }
        Ok(Self(variables))
    }
}

impl PartialSchema for Environment {
    fn schema() -> RefOr<Schema> {
        let name = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[A-Za-z_][A-Za-z0-9_]*$"));
        let value = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[^\\u0000]*$"));
        let variables = ObjectBuilder::new()
            .schema_type(Type::Object)
            .property_names(Some(name))
            .additional_properties(Some(Schema::Object(value.build())))
            .description(Some("Environment variables"));
        Schema::Object(variables.build()).into()
    }
}

impl ToSchema for Environment {}

/// A signal: its name or its number.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::http) struct SignalName(pub(in crate::http) String);

impl<'de> Deserialize<'de> for SignalName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a signal, such as \"TERM\" or 15")]
        enum Form {
            Number(u64),
            Name(String),
        }
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::Number(number) => number.to_string(),
            Form::Name(name) => name,
        }))
    }
}

impl PartialSchema for SignalName {
    fn schema() -> RefOr<Schema> {
        let names = sessile_gateway::SIGNALS.join("|");
        let pattern = format!("^(SIG)?({names}|[1-9]|[1-5][0-9]|6[0-4])$");
        let name = ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern));
        let number =
            ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(64));
        let either = OneOfBuilder::new()
            .item(name.examples(["TERM"]))
            .item(number)
            .description(Some("A signal: \"INT\", \"TERM\", \"KILL\", …, or its number"));
        Schema::OneOf(either.build()).into()
    }
}

impl ToSchema for SignalName {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_length_of_time_has_many_forms_and_an_end() {
        let read = |value| serde_json::from_value::<Span>(value).map(|span| span.0).ok();
        for (value, ms) in [
            (json!("500ms"), 500),
            (json!(" 1.5 min "), 90_000),
            (json!("2"), 2000),
            (json!(0.25), 250),
            (json!(2), 2000),
            (json!(0), 0),
            (json!(1e-300), 1),
            (json!("0.1ms"), 1),
        ] {
            assert_eq!(read(value.clone()), Some(ms), "{value}");
        }
        let year = Some(YEAR_MS as u64);
        assert_eq!(read(json!("9".repeat(400))), year);
        assert_eq!((read(json!("400d")), read(json!(1e300))), (year, year));
        for wrong in [json!(-1), json!("-1s"), json!(""), json!("soon"), json!("inf"), json!(true)]
        {
            assert_eq!(read(wrong.clone()), None, "{wrong}");
        }
    }

    #[test]
    fn whole_numbers_are_read_as_text() {
        assert_eq!((whole("2"), whole("2.0"), whole("2.00")), (Some(2), Some(2), Some(2)));
        for wrong in ["", ".0", "2.5", "+2", "-2", "2e0", "two", "99999999999999999999"] {
            assert_eq!(whole(wrong), None, "{wrong}");
        }
    }
}
