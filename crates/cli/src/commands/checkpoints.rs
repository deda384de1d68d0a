use crate::settings::Settings;
use crate::{branching, output};
use clap::Args;
use sessile_gateway::answer::Checkpoint;
use sessile_protocol::{Answer, CheckpointView, Request};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// List the points that a session can be rewound to, oldest first
///
/// Prints a JSON array; at a terminal, a table.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile checkpoints sess_…\n  \
    sessile checkpoints sess_… | jq -r '.[].name'")]
pub(crate) struct Checkpoints {
    /// The session
    id: String,
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
}

impl Checkpoints {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let answer = branching::ask(settings, &self.id, Request::Checkpoints)?;
        let Answer::Checkpoints { checkpoints } = answer else {
            anyhow::bail!(sessile_client::ClientError::Unexpected);
        };
        if io::stdout().is_terminal() && !self.json {
            output::all(&mut io::stdout().lock(), table(&checkpoints).as_bytes())?;
        } else {
            let list: Vec<Checkpoint> = checkpoints.iter().map(Checkpoint::from).collect();
            output::json(&list)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn table(checkpoints: &[CheckpointView]) -> String {
    if checkpoints.is_empty() {
        return "No checkpoints.\n".to_owned();
    }
    let row = |point: &CheckpointView| {
        let kernels: Vec<&str> = point.kernels.iter().map(|k| k.language.as_str()).collect();
        let files = point.files.as_ref().map_or("-".to_owned(), |files| files.files.to_string());
        vec![
            point.name.clone(),
            point.created_at.chars().take(19).collect(),
            point.as_of_run.to_string(),
            kernels.join(","),
            files,
        ]
    };
    let rows: Vec<Vec<String>> = checkpoints.iter().map(row).collect();
    output::table(&["NAME", "TAKEN (UTC)", "AFTER RUN", "KERNELS", "FILES"], &rows)
}
