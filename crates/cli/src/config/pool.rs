//! `[[pool]]`: sessions that a server keeps prepared.

use super::file::{article, string};
use super::tables;
use anyhow::{Context, bail, ensure};
use sessile_server::Pool;
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The key of the tables in the file.
pub(super) const KEY: &str = "pool";

/// Length limit of a pool's name.
const NAME_LIMIT: usize = 64;

/// How many copies one pool may keep ready: each is a process with its memory.
const READY_LIMIT: usize = 64;

/// Parses the pools of a file. Paths are relative to the file's directory.
pub(super) fn pools(
    value: &Spanned<DeValue<'_>>,
    path: &Path,
    text: &str,
) -> anyhow::Result<Vec<Pool>> {
    tables::read::<Fields>(value, path, text)
}

#[derive(Debug, Default)]
struct Fields {
    name: Option<String>,
    shell: Option<String>,
    code: Option<String>,
    cwd: Option<String>,
    env: BTreeMap<String, String>,
    ready: usize,
}

impl tables::Fields for Fields {
    const KEY: &'static str = KEY;
    type Parsed = Pool;

    fn take(&mut self, key: &str, value: &DeValue<'_>, path: &Path) -> anyhow::Result<()> {
        let here = path.parent().unwrap_or_else(|| Path::new("."));
        match key {
            "name" => self.name = Some(name(string(value, "a string")?)?),
            "shell" => self.shell = Some(string(value, "a string")?),
            "cwd" => {
                let path = here.join(string(value, "a string")?);
                self.cwd = Some(path.to_string_lossy().into_owned());
            }
            "code" | "file" => {
                ensure!(self.code.is_none(), "code and file are two ways to say the same");
                let text = string(value, "a string")?;
                self.code = Some(match key {
                    "file" => std::fs::read_to_string(here.join(&text))
                        .with_context(|| format!("cannot read {text}"))?,
                    _ => text,
                });
            }
            "env" => self.env = variables(value)?,
            "ready" => self.ready = ready(value)?,
            _ => {
                bail!("there is no such key; there are name, shell, code, file, cwd, env and ready")
            }
        }
        Ok(())
    }

    fn whole(self) -> anyhow::Result<Pool> {
        let Self { name, shell, code, cwd, env, ready } = self;
        let name = name.context("name is missing")?;
        let shell = shell.unwrap_or_else(|| "bash".to_owned());
        Ok(Pool { name, shell, code, cwd: cwd.map(Into::into), env, ready })
    }

    fn name(whole: &Pool) -> &str {
        &whole.name
    }
}

fn ready(value: &DeValue<'_>) -> anyhow::Result<usize> {
    let number = value.as_integer().and_then(|number| number.as_str().parse().ok());
    let number = number.filter(|number| *number <= READY_LIMIT);
    number.with_context(|| format!("a number from 0 to {READY_LIMIT} is wanted"))
}

/// Checks a pool's name. The prefix of ids is excluded, because it distinguishes ids from names.
fn name(text: String) -> anyhow::Result<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let fits = (1..=NAME_LIMIT).contains(&text.len()) && text.chars().all(is_plain);
    ensure!(
        fits && !text.starts_with("sess_"),
        "{text:?} cannot be a pool's name; use 1 to {NAME_LIMIT} letters, digits and -_., without sess_ in front"
    );
    Ok(text)
}

fn variables(value: &DeValue<'_>) -> anyhow::Result<BTreeMap<String, String>> {
    let Some(table) = value.as_table() else {
        bail!("a table of strings is wanted, not {}", article(value));
    };
    variables_of(table)
}

fn variables_of(table: &DeTable<'_>) -> anyhow::Result<BTreeMap<String, String>> {
    let variables = table.iter().map(|(name, value)| {
        let (name, value) = (name.get_ref(), string(value.get_ref(), "a string")?);
        let is_variable = !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
        ensure!(is_variable, "{name:?} cannot be an environment variable");
        Ok((name.to_string(), value))
    });
    variables.collect()
}
