use crate::args;
use crate::confinement::Confinement;
use crate::settings::{Settings, environment};
use clap::{Args, ValueEnum};
use sessile_sandbox::Policy;
use sessile_server::mcp::{OfferedTools, WorkspaceServices};
use sessile_server::{Limits, Service, SessionDefaults, mcp};
use sessile_store::Sessions;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Serve the tools to an MCP client over stdin and stdout
///
/// The client starts this command. Sessions outlive it, and the next one finds
/// them again. With --sandbox (or SESSILE_SANDBOX) all of them are confined, and
/// the model cannot change that.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile mcp\n  sessile mcp --tools all --wait 20s\n  \
    sessile mcp --sandbox agent-safe")]
pub(crate) struct Mcp {
    /// Which tools: one for all (runtime), those that name sessions, or both
    #[arg(long, value_enum, default_value_t = Tools::Runtime)]
    tools: Tools,
    /// How long a call waits before it answers with the run's number
    #[arg(long, value_name = "TIME", value_parser = args::duration, default_value = "50s")]
    wait: Duration,
    /// Directories that sessions may be in (may be repeated) [default: all]
    #[arg(long, value_name = "DIR")]
    workspace_root: Vec<PathBuf>,
    #[command(flatten)]
    confinement: Confinement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tools {
    Runtime,
    Sessions,
    All,
}

impl Mcp {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let offer = match self.tools {
            Tools::Runtime => OfferedTools::Runtime,
            Tools::Sessions => OfferedTools::Sessions,
            Tools::All => OfferedTools::All,
        };
        let sandbox = self.confinement.of_agents()?;
        let home = home(settings, &roots(self.workspace_root)?, sandbox)?;
        // One thread, which begins calls in the order in which they come.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(mcp::serve(home, offer, self.wait))?;
        // Does not wait for blocking calls: runs go on in their keepers.
        runtime.shutdown_background();
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the workspace roots. The first is for calls without a workspace: the current
/// directory, if permitted.
fn roots(given: Vec<PathBuf>) -> anyhow::Result<Vec<PathBuf>> {
    let here = std::env::current_dir()?;
    if given.is_empty() {
        // The client runs as the same user, who may use any directory.
        return Ok(vec![here, PathBuf::from("/")]);
    }
    let is_inside = |root: &PathBuf| root.canonicalize().is_ok_and(|root| here.starts_with(root));
    let first = given.iter().any(is_inside).then_some(here);
    Ok(first.into_iter().chain(given).collect())
}

/// Places sessions as `sessile tool` does: with the workspace, unless all are to be in
/// one place.
fn home(
    settings: &Settings,
    roots: &[PathBuf],
    sandbox: Option<Policy>,
) -> anyhow::Result<WorkspaceServices> {
    let store = settings.store()?;
    let launcher = settings.launcher.clone().with_store(store.clone());
    let defaults = SessionDefaults {
        environment: environment(),
        store,
        sandbox: sandbox.map(Arc::new),
        ..SessionDefaults::default()
    };
    let Some(directory) = &settings.sessions_dir else {
        return Ok(WorkspaceServices::with_workspaces(launcher, roots, defaults)?);
    };
    let sessions = Sessions::at(std::path::absolute(directory)?, launcher.user().clone());
    let service =
        Service::new(sessions, launcher, roots, Limits::default())?.with_defaults(defaults);
    Ok(WorkspaceServices::one(Arc::new(service)))
}
