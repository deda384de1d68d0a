use crate::display::{self, Form};
use crate::settings::{Settings, environment};
use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value};
use sessile_client::{Client, ClientError};
use sessile_gateway::answer;
use sessile_protocol::{Answer, Request};
use sessile_store::Liveness;
use std::process::ExitCode;

/// Show the state of a session: directory, environment, variables, functions …
///
/// The state is read from the live kernels without disturbing them. For a kernel
/// in the middle of a run, the last captured state is shown (`busy` is true).
///
/// Prints one JSON object; at a terminal, a summary with the environment
/// variables that differ from yours.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sessile state sess_…\n  sessile state sess_… | jq .working_dir"
)]
pub(crate) struct State {
    /// The session
    id: String,
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
}

/// How many entries of the history a state shows.
const HISTORY: u64 = 20;

impl State {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let id = settings.session(&self.id)?;
        let directory = settings.sessions.find(&id)?;
        let metadata = directory.observed_metadata()?;
        let kernels = match directory.connect() {
            Liveness::Live(socket) => live(&mut Client::new(socket))?,
            Liveness::Gone => answer::State::saved(
                &directory.state().unwrap_or_default(),
                metadata.language.as_str(),
            ),
        };
        let history = directory.history().newest(HISTORY);
        Form::of_stdout(self.json).print(
            || answer::State::new(kernels.clone(), history.clone(), &metadata),
            |page| {
                let home = std::env::home_dir();
                let remembered = display::state::StateReport {
                    metadata: &metadata,
                    kernels: &kernels,
                    last: history.last(),
                    environment: &environment(),
                    home: home.as_deref(),
                    now: Timestamp::now(),
                };
                display::state::show(&remembered, page)
            },
        )?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Asks a live keeper.
fn live(client: &mut Client) -> anyhow::Result<Map<String, Value>> {
    let Answer::State(view) = client.call(Request::State)? else {
        anyhow::bail!(ClientError::Unexpected);
    };
    Ok(answer::State::live(&view))
}
