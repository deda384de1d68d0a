use crate::output;
use crate::settings::Settings;
use anyhow::bail;
use clap::Args;
use sessile_client::{Client, ClientError};
use sessile_gateway::answer::InterruptedSession;
use sessile_protocol::{Answer, Request, RunNo};
use sessile_store::{Liveness, SessionStatus};
use std::process::ExitCode;

/// Interrupt the running command and keep the state
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sessile interrupt sess_…")]
pub(crate) struct Interrupt {
    /// The session
    id: String,
    /// Only this run
    #[arg(long, value_name = "N")]
    run: Option<u64>,
}

impl Interrupt {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let id = settings.session(&self.id)?;
        let directory = settings.sessions.find(&id)?;
        let interrupted = match directory.connect() {
            Liveness::Live(socket) => {
                let request = Request::Interrupt { run: self.run.map(RunNo), call: None };
                let Answer::Interrupted { run } = Client::new(socket).call(request)? else {
                    bail!(ClientError::Unexpected);
                };
                run
            }
            Liveness::Gone => {
                let metadata = directory.observed_metadata()?;
                if metadata.status == SessionStatus::Terminated {
                    bail!(ClientError::ended(&directory, &metadata))
                }
                None
            }
        };
        output::json(&InterruptedSession::new(id, interrupted))?;
        Ok(ExitCode::SUCCESS)
    }
}
