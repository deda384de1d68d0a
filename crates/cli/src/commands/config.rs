use crate::config::{Flags, Listing, SESSIONS_DIR};
use crate::output;
use crate::settings::Settings;
use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Show a server's settings and where each comes from
///
/// Flags override the environment (SESSILE_LISTEN and so on), which overrides
/// the file, which overrides the defaults. Prints a JSON object; at a terminal,
/// a table.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile config\n  \
    SESSILE_MAX_SESSIONS=20 sessile config | jq '.\"max-sessions\"'")]
pub(crate) struct Config {
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: Flags,
}

/// A setting, and where it comes from.
#[derive(Debug, Serialize)]
struct SettingRow {
    value: Value,
    from: String,
}

impl Config {
    pub(crate) fn execute(&self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let listing = Listing::of(settings, &self.flags)?;
        // Reports mistakes as the server would.
        listing.config()?;
        let rows = rows(&listing);
        if io::stdout().is_terminal() && !self.json {
            let cells = rows
                .iter()
                .map(|(name, value, from)| vec![(*name).to_owned(), shown(value), from.clone()]);
            let table = output::table(&["SETTING", "VALUE", "FROM"], &cells.collect::<Vec<_>>());
            output::all(&mut io::stdout().lock(), table.as_bytes())?;
        } else {
            let mut fields = Map::new();
            for (name, value, from) in rows {
                fields.insert(name.to_owned(), serde_json::to_value(SettingRow { value, from })?);
            }
            output::json(&fields)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn rows(listing: &Listing) -> Vec<(&'static str, Value, String)> {
    let (path, from) = &listing.sessions_dir;
    let mut rows = vec![(SESSIONS_DIR.name, Value::from(path.to_string_lossy()), from.to_string())];
    rows.push(match &listing.file {
        Some((path, from)) => ("config", Value::from(path.to_string_lossy()), from.to_string()),
        None => ("config", Value::Null, "default".to_owned()),
    });
    for (setting, found) in &listing.rows {
        rows.push((setting.name, found.value(setting.form), found.from.to_string()));
    }
    rows
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}
