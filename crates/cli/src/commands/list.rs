use crate::output;
use crate::settings::Settings;
use clap::Args;
use serde_json::Value;
use sessile_store::Metadata;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// List sessions, newest first, ended ones included
///
/// Prints a JSON array; at a terminal, a table.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile list\n  sessile list | jq -r '.[].session_id'")]
pub(crate) struct List {
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let sessions: Vec<Metadata> =
            settings.sessions.list()?.into_iter().map(|(_, m)| m).collect();
        if io::stdout().is_terminal() && !self.json {
            output::all(&mut io::stdout().lock(), table(&sessions).as_bytes())?;
        } else {
            let rows: Result<Vec<Value>, _> = sessions.iter().map(serde_json::to_value).collect();
            output::json(&rows?.into())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn table(sessions: &[Metadata]) -> String {
    if sessions.is_empty() {
        return "No sessions. Start one with: sessile start\n".to_owned();
    }
    let rows: Vec<[String; 6]> = sessions
        .iter()
        .map(|m| {
            [
                m.session_id.to_string(),
                m.status.as_str().to_owned(),
                m.command.clone(),
                m.execution_count.to_string(),
                m.last_executed_at.as_ref().unwrap_or(&m.created_at).chars().take(19).collect(),
                m.work_dir.display().to_string(),
            ]
        })
        .collect();
    let heads = ["SESSION", "STATUS", "COMMAND", "RUNS", "LAST USED (UTC)", "DIRECTORY"];
    let widths: Vec<usize> = (0..heads.len())
        .map(|i| {
            rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0).max(heads[i].len())
        })
        .collect();
    let mut text = String::new();
    let mut line = |cells: [&str; 6]| {
        let mut row = String::new();
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(row, "{cell:width$}  ");
        }
        let _ = writeln!(text, "{}", row.trim_end());
    };
    line(heads);
    for row in &rows {
        line(row.each_ref().map(String::as_str));
    }
    text
}
