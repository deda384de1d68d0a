use crate::output;
use crate::settings::Settings;
use clap::Args;
use serde_json::Value;
use sessile_store::Metadata;
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
    let has_forks = sessions.iter().any(|m| m.forked_from.is_some());
    let rows: Vec<Vec<String>> = sessions
        .iter()
        .map(|m| {
            let mut row = vec![
                m.session_id.to_string(),
                m.status.as_str().to_owned(),
                m.command.clone(),
                m.execution_count.to_string(),
                m.last_executed_at.as_ref().unwrap_or(&m.created_at).chars().take(19).collect(),
                m.work_dir.display().to_string(),
            ];
            if has_forks {
                let origin = m.forked_from.as_ref();
                row.push(origin.map_or("-".to_owned(), |from| from.session_id.to_string()));
            }
            row
        })
        .collect();
    let mut head = vec!["SESSION", "STATUS", "COMMAND", "RUNS", "LAST USED (UTC)", "DIRECTORY"];
    if has_forks {
        head.push("FORK OF");
    }
    output::table(&head, &rows)
}
