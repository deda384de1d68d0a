use crate::display::{Form, sessions};
use crate::settings::Settings;
use clap::Args;
use jiff::Timestamp;
use sessile_gateway::answer::SessionRow;
use sessile_store::{Directory, Metadata, Scope};
use std::process::ExitCode;

/// List sessions, newest first, including ended ones
///
/// Prints a JSON array; at a terminal, a table.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile list\n  sessile list | jq -r '.[].session_id'")]
pub(crate) struct List {
    /// Also list your live sessions of all other directories
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
        let home = std::env::home_dir();
        let rows = || {
            let rows = sessions.iter().zip(&directories).map(|(metadata, directory)| {
                let directory = self.all.then(|| directory.path().to_string_lossy().into_owned());
                SessionRow { metadata: metadata.clone(), directory }
            });
            rows.collect::<Vec<_>>()
        };
        Form::of_stdout(self.json).print(rows, |page| {
            sessions::list(&sessions, home.as_deref(), Timestamp::now(), page)
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
