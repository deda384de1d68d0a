use crate::settings::Settings;
use crate::{args, output};
use clap::Args;
use serde_json::{Map, Value, json};
use sessile_client::{Client, ClientError};
use sessile_protocol::{Answer, Request};
use sessile_store::{Liveness, SavedState};
use std::process::ExitCode;

/// Show the state of a session: directory, environment, variables, functions …
///
/// Read from the live kernels, without disturbing them. Of a kernel that is in
/// the middle of a run, the state is the last captured one (`busy` is true).
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sessile state sess_…\n  sessile state sess_… | jq .working_dir"
)]
pub(crate) struct State {
    /// The session
    id: String,
}

/// Entries of the history that a state shows.
const HISTORY: u64 = 20;

impl State {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let id = args::session(&self.id)?;
        let directory = settings.sessions.find(&id)?;
        let metadata = directory.observed_metadata()?;
        let mut state = match directory.connect() {
            Liveness::Live(socket) => live(&mut Client::new(socket))?,
            Liveness::Gone => {
                saved(&directory.state().unwrap_or_default(), metadata.language.as_str())
            }
        };
        let history: Result<Vec<Value>, _> =
            directory.history().newest(HISTORY).iter().map(serde_json::to_value).collect();
        state.insert("history".into(), history?.into());
        state.insert("session_id".into(), json!(id));
        state.insert("status".into(), metadata.status.as_str().into());
        output::json(&state.into())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The state of live kernels: that of the default language at the top, each
/// language's below `kernels`.
pub(crate) fn live(client: &mut Client) -> anyhow::Result<Map<String, Value>> {
    let Answer::State(view) = client.call(Request::State)? else {
        anyhow::bail!(ClientError::Unexpected);
    };
    let mut top = Map::new();
    let mut kernels = Map::new();
    for kernel in &view.kernels {
        let mut fields: Map<String, Value> = serde_json::from_str(&kernel.json)?;
        fields.insert("as_of_run".into(), kernel.as_of_run.0.into());
        fields.insert("busy".into(), kernel.busy.into());
        if kernel.language == view.default_language {
            top.clone_from(&fields);
        }
        kernels.insert(kernel.language.to_string(), fields.into());
    }
    complete(&mut top, view.default_language.as_str());
    top.insert("kernels".into(), kernels.into());
    Ok(top)
}

/// The fields that are always there.
fn complete(top: &mut Map<String, Value>, default: &str) {
    top.entry("language").or_insert_with(|| default.into());
    top.entry("working_dir").or_insert(Value::Null);
    for name in ["env_vars", "aliases", "variables"] {
        top.entry(name).or_insert_with(|| json!({}));
    }
    top.entry("functions").or_insert_with(|| json!([]));
}

/// The last captured state of a session that is not live.
fn saved(state: &SavedState, default: &str) -> Map<String, Value> {
    let mut top = Map::new();
    let mut kernels = Map::new();
    for (language, saved) in &state.kernels {
        let mut fields = saved.view.clone();
        fields.insert("as_of_run".into(), saved.as_of_run.0.into());
        if language.as_str() == default {
            top.clone_from(&fields);
        }
        kernels.insert(language.to_string(), fields.into());
    }
    complete(&mut top, default);
    top.insert("kernels".into(), kernels.into());
    top
}
