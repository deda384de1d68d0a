use super::screen;
use crate::reader::Reader;
use crate::settings::Settings;
use crate::viewer::{SETTLE, ScreenWaitArgs};
use anyhow::bail;
use clap::Args;
use sessile_client::ClientError;
use sessile_protocol::{Answer, Request, RunNo};
use std::process::ExitCode;

/// Press keys on the terminal of a run, and show it
///
/// Text is typed as it is; other keys are named in angle brackets: <Enter>,
/// <Esc>, <Tab>, <BS>, <Up>, <PageDown>, <F1>, <C-c>, <M-x>. A literal < is
/// <lt>. Prints the screen as JSON once it has stopped changing, or as
/// --wait-for and --settle say.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile keys sess_… 3 'ihello<Esc>:wq<Enter>'\n  \
    sessile keys sess_… 3 '<C-c>'\n  \
    sessile keys sess_… 3 'print(6*7)<Enter>' --wait-for '^42$'")]
pub(crate) struct Keys {
    /// The session
    id: String,
    /// The run's number
    run: u64,
    /// Text and names of keys
    #[arg(allow_hyphen_values = true)]
    keys: String,
    #[command(flatten)]
    waiting: ScreenWaitArgs,
}

impl Keys {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let mut reader = Reader::find(settings, &self.id)?;
        let run = RunNo(self.run);
        let before = self.waiting.before(&mut reader, run)?;
        let request = Request::Keys { run, keys: self.keys };
        let Answer::Input { .. } = reader.keeper(run)?.call(request)? else {
            bail!(ClientError::Unexpected);
        };
        let waiting = self.waiting.or_settle(SETTLE);
        screen::print(&mut reader, run, &waiting, before, screen::Format::Json)
    }
}
