use crate::settings::Settings;
use crate::{args, output};
use clap::Args;
use sessile_client::{Restoring, Trust};
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a session from a saved one
///
/// The new session has an id of its own and goes on where the saved one was.
/// What was not carried is listed by name with the reason.
///
/// Restoring runs code that is in the file. A file that was saved from the same
/// sessions directory is taken as it is; one from elsewhere needs --trust.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile restore work.sessile\n  \
    sessile restore work.sessile --cwd ./work --name second\n  \
    sessile restore from-a-friend.sessile --trust")]
pub(crate) struct Restore {
    /// The file
    file: PathBuf,
    /// Go on in this directory, with the saved files if there are any: then it
    /// must be new or empty [default: where the session was]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Run what is in the file, whoever made it
    #[arg(long)]
    trust: bool,
    /// A name for the session [default: the saved one's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Refuse a file from elsewhere that holds more than this
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = args::size)]
    max_size: u64,
}

impl Restore {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let restored = settings.launcher.restore(
            &settings.sessions,
            Restoring {
                path: self.file,
                cwd: self.cwd,
                trust: if self.trust { Trust::Given } else { Trust::Own },
                max_size: self.max_size,
                name: self.name,
                owner: None,
                environment: std::env::vars_os().filter_map(text).collect(),
            },
        )?;
        let answer = sessile_gateway::restored(
            &restored.metadata,
            &restored.manifest,
            &restored.left,
            restored.has_files,
        );
        output::json(&answer.into())?;
        Ok(ExitCode::SUCCESS)
    }
}
