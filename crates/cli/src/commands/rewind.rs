use crate::settings::Settings;
use crate::{branching, output};
use clap::Args;
use sessile_gateway::answer::Rewound;
use sessile_protocol::{Answer, Request, Rewind as Order, RewindTo};
use std::process::ExitCode;

/// Rewind a session to a checkpoint
///
/// Goes back to the newest checkpoint, to the named one, or to before the last N
/// runs (in a session started with --auto). The checkpoint stays, and so do
/// later ones. The history records the rewind.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile rewind sess_… before-refactoring\n  \
    sessile rewind sess_… --runs 2")]
pub(crate) struct Rewind {
    /// The session
    id: String,
    /// The checkpoint [default: the newest]
    #[arg(conflicts_with = "runs")]
    name: Option<String>,
    /// Take back the last N runs
    #[arg(long, value_name = "N")]
    runs: Option<u64>,
    #[command(flatten)]
    options: Options,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Options {
    /// Leave the workspace unchanged, even if the checkpoint has its files
    #[arg(long)]
    keep_files: bool,
    /// Wait for running commands instead of failing
    #[arg(long)]
    wait: bool,
}

impl Rewind {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let to = match (self.name, self.runs) {
            (Some(name), _) => RewindTo::Name(name),
            (None, Some(runs)) => RewindTo::Runs(runs),
            (None, None) => RewindTo::Newest,
        };
        self.options.rewind(settings, &self.id, to)
    }
}

impl Options {
    pub(crate) fn rewind(
        self,
        settings: &Settings,
        id: &str,
        to: RewindTo,
    ) -> anyhow::Result<ExitCode> {
        let order = Order { to, keep_files: self.keep_files, wait: self.wait };
        let answer = branching::ask(settings, id, "rewinding", Request::Rewind(order))?;
        let Answer::Rewound(view) = answer else {
            anyhow::bail!(sessile_client::ClientError::Unexpected);
        };
        output::json(&Rewound::from(&*view))?;
        Ok(ExitCode::SUCCESS)
    }
}
