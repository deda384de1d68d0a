use crate::output;
use crate::settings::Settings;
use clap::Args;
use sessile_gateway::answer::SessionRow;
use sessile_store::{Directory, Metadata, Scope};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// List sessions, newest first, ended ones included
///
/// Prints a JSON array; at a terminal, a table.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile list\n  sessile list | jq -r '.[].session_id'")]
pub(crate) struct List {
    /// All sessions of yours that are live, whatever directory they were started in, too
    #[arg(long, short)]
    all: bool,
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let scope = if self.all { Scope::User } else { Scope::Directory };
        let (directories, sessions): (Vec<Directory>, Vec<Metadata>) =
            settings.sessions.list_in(scope)?.into_iter().unzip();
        if io::stdout().is_terminal() && !self.json {
            output::all(&mut io::stdout().lock(), table(&sessions).as_bytes())?;
        } else {
            let rows = sessions.into_iter().zip(&directories).map(|(metadata, directory)| {
                let directory = self.all.then(|| directory.path().to_string_lossy().into_owned());
                SessionRow { metadata, directory }
            });
            output::json(&rows.collect::<Vec<_>>())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn table(sessions: &[Metadata]) -> String {
    if sessions.is_empty() {
        return "No sessions. Start one with: sessile start\n".to_owned();
    }
    let has_names = sessions.iter().any(|m| m.name.is_some() || m.workspace.is_some());
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
            if has_names {
                row.insert(1, called(m));
            }
            if has_forks {
                let origin = m.forked_from.as_ref();
                row.push(origin.map_or("-".to_owned(), |from| from.session_id.to_string()));
            }
            row
        })
        .collect();
    let mut head = vec!["SESSION", "STATUS", "COMMAND", "RUNS", "LAST USED (UTC)", "DIRECTORY"];
    if has_names {
        head.insert(1, "NAME");
    }
    if has_forks {
        head.push("FORK OF");
    }
    output::table(&head, &rows)
}

/// Its name, or the key of a workspace's own session.
fn called(metadata: &Metadata) -> String {
    let key = metadata.session_key.as_deref().unwrap_or("default");
    let own = metadata.workspace.as_ref().map(|_| format!("({key})"));
    metadata.name.clone().or(own).unwrap_or_else(|| "-".to_owned())
}
