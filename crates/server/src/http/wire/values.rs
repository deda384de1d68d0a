//! Values that are written in more ways than one, or have bounds.

use serde::{Deserialize, Deserializer, Serialize};
use sessile_protocol::{Language, parse_duration, parse_size};
use std::collections::BTreeMap;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

/// A length of time: `"30s"`, `"500ms"`, `"2h"`, or a number of seconds. At
/// most a year: longer is a mistake.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::http) struct Span(pub(in crate::http) u64);

const YEAR_MS: u64 = 366 * 24 * 3600 * 1000;

impl Span {
    fn of(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not a length of time, such as \"30s\", \"500ms\" or \"2h\"");
        let duration = parse_duration(text).map_err(|_| wrong())?;
        let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        if ms > YEAR_MS { Err(format!("{text:?} is over a year")) } else { Ok(Self(ms)) }
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
            Form::Seconds(seconds) if (0.0..=YEAR_MS as f64 / 1000.0).contains(&seconds) => {
                Ok(Self((seconds * 1000.0).round() as u64))
            }
            Form::Seconds(_) => {
                Err(serde::de::Error::custom("seconds must be from 0 to those of a year"))
            }
        }
    }
}

impl PartialSchema for Span {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(r"^[0-9]{1,6}(ms|s|m|h)$"))
            .examples(["30s", "500ms"]);
        let seconds = ObjectBuilder::new()
            .schema_type(Type::Number)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Double)))
            .minimum(Some(0))
            .maximum(Some(YEAR_MS / 1000));
        let either = OneOfBuilder::new()
            .item(text)
            .item(seconds)
            .description(Some("A length of time: \"30s\", \"500ms\", \"2h\", or seconds"));
        Schema::OneOf(either.build()).into()
    }
}

impl ToSchema for Span {}

/// The same in a query, where everything is text.
pub(in crate::http) fn span_text<'de, D: Deserializer<'de>>(
    d: D,
) -> Result<Option<Span>, D::Error> {
    let Some(text) = Option::<String>::deserialize(d)? else { return Ok(None) };
    let span = match text.parse::<f64>() {
        Ok(seconds) if (0.0..=YEAR_MS as f64 / 1000.0).contains(&seconds) => {
            Ok(Span((seconds * 1000.0).round() as u64))
        }
        Ok(_) => Err("seconds must be from 0 to those of a year".to_owned()),
        Err(_) => Span::of(&text),
    };
    span.map(Some).map_err(serde::de::Error::custom)
}

pub(super) fn language<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Language>, D::Error> {
    let Some(name) = Option::<String>::deserialize(d)? else { return Ok(None) };
    name.parse().map(Some).map_err(serde::de::Error::custom)
}

pub(super) fn size<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a number of bytes, such as 1048576 or \"1MiB\"")]
    enum Form {
        Bytes(u64),
        Text(String),
    }
    let bytes = match Option::<Form>::deserialize(d)? {
        None => None,
        Some(Form::Bytes(bytes)) => Some(bytes),
        Some(Form::Text(text)) => Some(parse_size(&text).map_err(serde::de::Error::custom)?),
    };
    within(bytes, 0, MOST)
}

/// The largest number that every client can write.
const MOST: u64 = i64::MAX as u64;

/// The most of a stream that a session keeps.
pub(super) fn kept<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    within(size(d)?, 0, 1 << 30)
}

pub(super) fn run<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    within(Option::<u64>::deserialize(d)?, 0, MOST)
}

pub(super) fn max_history<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    within(Option::<u64>::deserialize(d)?, 1, 100_000)
}

/// A number that has its limits.
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

/// The same in a query, where everything is text.
pub(in crate::http) fn within_text<'de, D: Deserializer<'de>>(
    d: D,
    least: u64,
    most: u64,
) -> Result<Option<u64>, D::Error> {
    let Some(text) = Option::<String>::deserialize(d)? else { return Ok(None) };
    let number = text.parse().map_err(|_| serde::de::Error::custom("not a whole number"))?;
    within(Some(number), least, most)
}

/// Environment variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(in crate::http) struct Environment(pub(in crate::http) BTreeMap<String, String>);

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
