use crate::args;
use crate::attach::{self, Attachment, EditMode};
use crate::settings::Settings;
use anyhow::bail;
use clap::Args;
use sessile_protocol::{Language, RunNo};
use sessile_terminal::Modes;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Join a live session from a terminal
///
/// You get the same shell, directory and variables as the agent. Each line you
/// type is a run with a terminal: it is in the history, and Ctrl-C, Ctrl-Z, fg
/// and bg work as in any shell. Runs of others are shown as they come. Ctrl-]
/// leaves, at the prompt and in a program, and everything goes on; so does
/// Ctrl-D at an empty prompt.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile attach sess_…\n  \
    sessile attach sess_… --language python\n  \
    sessile attach sess_… --run 7\n  \
    sessile attach sess_… --read-only")]
pub(crate) struct Attach {
    /// The session
    id: String,
    /// Watch only: nothing you type reaches the session
    #[arg(long)]
    read_only: bool,
    /// Join this run, which has a terminal, first [default: one that is going]
    #[arg(long, value_name = "RUN", conflicts_with = "read_only")]
    run: Option<u64>,
    /// bash, sh, zsh, python or node [default: the session's]
    #[arg(long, short, value_parser = args::language)]
    language: Option<Language>,
    /// The key that leaves
    #[arg(long, value_name = "KEY", default_value = "C-]", value_parser = detach_key)]
    detach_key: u8,
    /// Edit lines as in vi
    #[arg(long)]
    vi: bool,
}

fn detach_key(name: &str) -> Result<u8, String> {
    let bytes = sessile_terminal::named(name, Modes::default()).map_err(|e| e.to_string())?;
    match bytes[..] {
        [key @ (1..=8 | 11 | 12 | 14..=26 | 28..=31)] => Ok(key),
        _ => Err(format!("{name:?} cannot be it; use one such as C-] or C-\\")),
    }
}

impl Attach {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            bail!(
                "attach needs a terminal; in a pipe, use `sessile logs --follow` or `sessile exec`"
            );
        }
        let directory = settings.sessions.find(&settings.session(&self.id)?)?;
        let attachment = Attachment {
            id: self.id,
            directory,
            launcher: settings.launcher.clone(),
            language: self.language,
            detach_key: self.detach_key,
            edit_mode: if self.vi { EditMode::Vi } else { EditMode::Emacs },
        };
        if self.read_only {
            attach::watch(&attachment, settings)?;
        } else {
            attachment.run(settings, self.run.map(RunNo))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
