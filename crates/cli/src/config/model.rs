//! `[[model]]`: models for a server's agents.

use super::file::{article, string};
use super::tables;
use anyhow::{Context, bail, ensure};
use hyper::header::{HeaderName, HeaderValue};
use sessile_server::{ApiFormat, CommandAgent, Key, Model, Price, Variable};
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;
use toml::de::DeValue;

/// The key of the tables in the file.
pub(super) const KEY: &str = "model";

const KEYS: &str = "name, format, command, base-url, model, key-env, key-file, ca-file, headers, stream, \
    max-output-tokens, input-price, cached-input-price and output-price";

/// Parses the models of a file. Paths are relative to the file's directory.
pub(super) fn models(
    value: &Spanned<DeValue<'_>>,
    path: &Path,
    text: &str,
) -> anyhow::Result<Vec<Model>> {
    tables::read::<Fields>(value, path, text)
}

/// The format of requests to a model.
#[derive(Clone, Copy, Debug)]
enum Format {
    ApiFormat(ApiFormat),
    /// A program in the session.
    Command,
}

#[derive(Debug, Default)]
struct Fields {
    name: Option<String>,
    format: Option<Format>,
    command: Vec<String>,
    base_url: Option<String>,
    model: Option<String>,
    key: Option<Key>,
    headers: BTreeMap<String, String>,
    stream: Option<bool>,
    max_output_tokens: Option<u32>,
    price: Price,
    ca: Option<std::path::PathBuf>,
}

impl tables::Fields for Fields {
    const KEY: &'static str = KEY;
    type Parsed = Model;

    fn take(&mut self, key: &str, value: &DeValue<'_>, path: &Path) -> anyhow::Result<()> {
        let here = path.parent().unwrap_or_else(|| Path::new("."));
        match key {
            "name" => self.name = Some(string(value, "a string")?),
            "model" => self.model = Some(string(value, "a string")?),
            "format" => self.format = Some(format(&string(value, "a string")?)?),
            "command" => {
                let Some(words) = value.as_array() else {
                    bail!("an array of strings is wanted, not {}", article(value));
                };
                let word = |word: &Spanned<DeValue<'_>>| string(word.get_ref(), "a string");
                self.command = words.iter().map(word).collect::<anyhow::Result<_>>()?;
            }
            "base-url" => {
                let url = string(value, "a string")?;
                let is_url = url.starts_with("https://") || url.starts_with("http://");
                ensure!(is_url, "{url:?} is not a URL; write it with http:// or https://");
                let host = url.parse::<hyper::Uri>().ok().and_then(|u| u.host().map(str::to_owned));
                let has_host = host.is_some_and(|host| !host.is_empty());
                ensure!(has_host, "{url:?} names no server; write https://HOST/PATH");
                self.base_url = Some(url);
            }
            "key-env" | "key-file" => {
                ensure!(self.key.is_none(), "key-env and key-file are two ways to say the same");
                let text = string(value, "a string")?;
                self.key = Some(match key {
                    "key-env" => Key::Environment(Variable::new(text)),
                    _ => Key::File(here.join(text)),
                });
            }
            "ca-file" => {
                let file = here.join(string(value, "a string")?);
                let pem = std::fs::read(&file).with_context(|| file.display().to_string())?;
                let has_any = String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----");
                ensure!(has_any, "{} has no certificates in it; PEM is wanted", file.display());
                self.ca = Some(file);
            }
            // Refused, because a key in this file would be committed some day.
            "key" | "api-key" => bail!("keys do not belong here; use key-env or key-file"),
            "headers" => {
                let Some(table) = value.as_table() else {
                    bail!("a table of strings is wanted, not {}", article(value));
                };
                for (name, value) in table {
                    let value = string(value.get_ref(), "a string")?;
                    let name_of = name.get_ref();
                    let is_name = HeaderName::from_bytes(name_of.as_bytes()).is_ok();
                    ensure!(is_name, "{name_of:?} is not the name of a header");
                    let is_value = HeaderValue::from_str(&value).is_ok();
                    ensure!(is_value, "{name_of}: what it says cannot stand in a header");
                    self.headers.insert(name.get_ref().to_string(), value);
                }
            }
            "stream" => match value.as_bool() {
                Some(stream) => self.stream = Some(stream),
                None => bail!("true or false is wanted, not {}", article(value)),
            },
            "max-output-tokens" => {
                let number = number(value)?;
                ensure!((1.0..=1e9).contains(&number), "a number of tokens is wanted");
                self.max_output_tokens = Some(number as u32);
            }
            "input-price" => self.price.input = price(value)?,
            "cached-input-price" => self.price.cached_input = price(value)?,
            "output-price" => self.price.output = price(value)?,
            _ => bail!("there is no such key; there are {KEYS}"),
        }
        Ok(())
    }

    fn whole(self) -> anyhow::Result<Model> {
        let format = self.format.context("format is missing")?;
        let (wire, base_url, model, command) = match format {
            Format::Command => {
                let has_url = self.base_url.is_some() || self.key.is_some();
                ensure!(!has_url, "a command has neither base-url nor key: it is a program");
                let program = self.command.first().context("command is missing")?.clone();
                let command = CommandAgent { command: self.command };
                let model = self.model.unwrap_or(program);
                (ApiFormat::ChatCompletions, String::new(), model, Some(command))
            }
            Format::ApiFormat(wire) => {
                ensure!(self.command.is_empty(), "command goes with format = \"command\"");
                let model = self.model.context("model is missing")?;
                (wire, self.base_url.context("base-url is missing")?, model, None)
            }
        };
        Ok(Model {
            name: self.name.unwrap_or_else(|| model.clone()),
            wire,
            base_url,
            model,
            key: self.key.unwrap_or(Key::None),
            headers: self.headers,
            price: self.price,
            max_output_tokens: self.max_output_tokens.unwrap_or(16_000),
            stream: self.stream.unwrap_or(true),
            ca: self.ca,
            command,
        })
    }

    fn name(whole: &Model) -> &str {
        &whole.name
    }
}

fn format(text: &str) -> anyhow::Result<Format> {
    Ok(match text {
        "chat-completions" => Format::ApiFormat(ApiFormat::ChatCompletions),
        "responses" => Format::ApiFormat(ApiFormat::Responses),
        "messages" => Format::ApiFormat(ApiFormat::Messages),
        "command" => Format::Command,
        _ => bail!(
            "{text:?} is not a format; there are chat-completions, responses, messages and command"
        ),
    })
}

fn number(value: &DeValue<'_>) -> anyhow::Result<f64> {
    let text = match value {
        DeValue::Integer(number) => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        DeValue::String(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => bail!("a number is wanted, not {}", article(value)),
    };
    text.replace('_', "").parse().context("a number is wanted")
}

fn price(value: &DeValue<'_>) -> anyhow::Result<f64> {
    let price = number(value)?;
    ensure!(price >= 0.0 && price.is_finite(), "a price of a million tokens is wanted");
    Ok(price)
}
