use crate::output;
use crate::progress::Progress;
use crate::settings::Settings;
use anyhow::bail;
use clap::Args;
use sessile_client::ClientError;
use sessile_gateway::answer::Saved;
use sessile_protocol::{Answer, Request};
use std::path::PathBuf;
use std::process::ExitCode;

/// Save a session to a file
///
/// The file has the variables, functions and directory of each shell, the data,
/// functions, classes and imports of Python and Node, the history, and, with
/// --files, the files of the session's directory. What could not be saved is
/// listed by name with the reason. The session goes on.
///
/// The file may contain secrets: it includes the session's variables and
/// environment.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile save sess_… -o work.sessile\n  \
    sessile save sess_… -o work.sessile --files --wait\n  \
    sessile restore work.sessile")]
pub(crate) struct Save {
    /// The session
    id: String,
    /// The file to write; an existing file is replaced when the new one is complete
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Include the files of the session's directory
    #[arg(long)]
    files: bool,
    /// Wait until nothing is running instead of failing
    #[arg(long)]
    wait: bool,
}

impl Save {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let id = settings.session(&self.id)?;
        let directory = settings.sessions.find(&id)?;
        let path = std::path::absolute(&self.output)?;
        let progress = Progress::of(format!("saving to {}", self.output.display()));
        let mut client = settings.launcher.open(&directory)?;
        let request = Request::Save { path: path.clone(), files: self.files, wait: self.wait };
        let Answer::Saved(view) = client.call(request)? else {
            bail!(ClientError::Unexpected);
        };
        drop(progress);
        output::json(&Saved::of(&id, &path, &view))?;
        Ok(ExitCode::SUCCESS)
    }
}
