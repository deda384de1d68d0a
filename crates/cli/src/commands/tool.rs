use crate::confinement::Confinement;
use crate::settings::Settings;
use crate::tool;
use crate::{interrupts, output};
use clap::Args;
use sessile_gateway::tool::answers::Failed;
use sessile_gateway::tool::{Request, schema};
use std::io::{self, Read};
use std::process::ExitCode;

/// The `runtime` tool for agents: one JSON request in, one JSON answer out
///
/// Each workspace has its own session, which is created on first use and found
/// again by every later call. The request is the argument, or is read from
/// stdin. With --sandbox (or SESSILE_SANDBOX) the session is confined; a request
/// cannot change that.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile tool '{\"action\": \"exec\", \"command\": \"x=41\"}'\n  \
    echo '{\"action\": \"eval\", \"command\": \"6 * 7\"}' | sessile tool\n  \
    sessile tool --schema")]
pub(crate) struct Tool {
    /// The request
    request: Option<String>,
    /// Print the tool's name, description and input schema
    #[arg(long, conflicts_with = "request")]
    schema: bool,
    #[command(flatten)]
    confinement: Confinement,
}

impl Tool {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        if self.schema {
            output::json(&schema())?;
            return Ok(ExitCode::SUCCESS);
        }
        let text = match self.request {
            Some(text) => text,
            None => {
                let mut bytes = Vec::new();
                io::stdin().lock().read_to_end(&mut bytes)?;
                String::from_utf8_lossy(&bytes).into_owned()
            }
        };
        interrupts::watch()?;
        let sandbox = self.confinement.of_agents()?;
        let answer = |request: Request| tool::answer(settings, &request, sandbox);
        match Request::parse(&text).and_then(answer) {
            Ok(answer) => output::json(&answer)?,
            Err(error) => output::json(&Failed::from(&error))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
