use super::exec;
use super::start::milliseconds;
use crate::config::Source;
use crate::settings::Settings;
use crate::{args, interrupts};
use anyhow::Context;
use clap::Args;
use sessile_client::NewSession;
use sessile_protocol::{Exec as Order, Until};
use sessile_store::Sessions;
use std::process::ExitCode;
use std::time::Duration;

/// Run commands one after the other in a temporary session
///
/// Output is passed through, and the last command's exit code is ours.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sessile run 'x=41' 'echo $((x+1))'")]
pub(crate) struct Run {
    /// The commands
    #[arg(required = true, value_name = "CMD")]
    commands: Vec<String>,
    /// The program of the session
    #[arg(long, default_value = "bash")]
    shell: String,
    /// Interrupt a command after this long; 0: never
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = args::duration)]
    timeout: Duration,
}

impl Run {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let place = std::env::temp_dir().join(format!("sessile-run-{}", std::process::id()));
        let settings = Settings {
            sessions: Sessions::at(place.clone(), settings.launcher.user().clone()),
            launcher: settings.launcher.clone(),
            sessions_dir: None,
            sessions_dir_from: Source::Default,
        };
        let new = NewSession {
            program: self.shell,
            idle_timeout_ms: 0,
            command_timeout_ms: milliseconds(self.timeout),
            output_cap: 1 << 30,
            ..NewSession::default()
        };
        let (directory, _) = settings
            .launcher
            .create(&settings.sessions, new)
            .with_context(|| "cannot start a temporary session")?;
        interrupts::watch()?;
        let mut code = 0;
        let mut outcome = Ok(());
        for command in self.commands {
            let order =
                Order { text: command.into_bytes(), until: Until::Accepted, ..Order::default() };
            let status = settings
                .launcher
                .open(&directory)
                .map_err(anyhow::Error::from)
                .and_then(|mut client| exec::stream(&mut client, order));
            match status {
                Ok(status) => code = status,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        settings.launcher.end(&directory)?;
        let _ = std::fs::remove_dir_all(place);
        outcome.map(|()| ExitCode::from(code))
    }
}
