use crate::progress::Progress;
use crate::settings::Settings;
use crate::{branching, output};
use clap::{Args, ValueEnum};
use sessile_gateway::answer::Forked;
use sessile_protocol::{Answer, ForkFiles, ForkOrder, Request};
use std::process::ExitCode;

/// Fork a session: make new sessions with its state
///
/// The forks are independent of the session and of each other. Python is copied
/// live, with everything it has loaded; shells are copied by their state.
/// Background processes, sockets and threads stay with the original, and are
/// listed. In a sandbox, --files copy gives each fork its own layer, and all
/// kernels are copied by their state.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile fork sess_…\n  \
    sessile fork sess_… --count 3 | jq -r '.session_ids[]'\n  \
    sessile fork sess_… --files copy")]
pub(crate) struct Fork {
    /// The session
    id: String,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u32,
    /// Share the workspace, or copy it
    #[arg(long, value_name = "WHICH", default_value = "share")]
    files: Files,
    /// Wait for running commands instead of failing
    #[arg(long)]
    wait: bool,
    /// A name for the fork; several are called NAME-1, NAME-2, …
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Files {
    Share,
    Copy,
}

impl Fork {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let files = match self.files {
            Files::Share => ForkFiles::Share,
            Files::Copy => ForkFiles::Copy,
        };
        let order =
            ForkOrder { count: self.count, files, wait: self.wait, name: self.name, new: None };
        order.check()?;
        let original = settings.session(&self.id)?;
        let directory = settings.sessions.find(&original)?;
        let owner = directory.metadata()?.owner;
        // Held until others can see that the forks have these names.
        let _reserved = settings.sessions.reserve_names(&order.names(), owner.as_deref())?;
        if settings.launcher.forks_by_copying(&directory, &order)? {
            let _progress = Progress::of(format!("forking {original}"));
            let sessions = &settings.sessions;
            let view = settings.launcher.fork_confined(sessions, &directory, &order)?;
            output::json(&Forked::from(&view))?;
            return Ok(ExitCode::SUCCESS);
        }
        let answer = branching::ask(settings, original.as_str(), "forking", Request::Fork(order))?;
        let Answer::Forked(view) = answer else {
            anyhow::bail!(sessile_client::ClientError::Unexpected);
        };
        output::json(&Forked::from(&*view))?;
        Ok(ExitCode::SUCCESS)
    }
}
