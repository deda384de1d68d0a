use crate::config::{Flags, Listing};
use crate::confinement::Confinement;
use crate::settings::Settings;
use crate::{args, output};
use anyhow::{Context, ensure};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Serialize;
use sessile_sandbox::Policy;
use sessile_server::{Grant, TokenLimits, Tokens};
use sessile_store::Sessions;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Tokens for callers of a server
///
/// The owner's token is created when a server first starts, and may do
/// everything. Other tokens can be limited to workspaces or to a sandbox, and
/// can expire. A running server notices changes at once.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sessile token create ci --workspace ~/project --expires 7d\n  \
    sessile token create agent --sandbox agent-safe\n  \
    sessile token list\n  sessile token revoke ci\n  sessile token show --raw"
)]
pub(crate) struct Token {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a token; it is shown only once
    Create {
        /// Name of the token in lists and logs
        name: String,
        /// Limit it to this directory and what is below (may be repeated)
        #[arg(long, value_name = "DIR")]
        workspace: Vec<PathBuf>,
        /// When it ends, from now [default: never]
        #[arg(long, value_name = "TIME", value_parser = args::duration)]
        expires: Option<Duration>,
        #[command(flatten)]
        confinement: Box<Confinement>,
    },
    /// List the tokens besides the owner's
    List,
    /// Revoke a token
    Revoke { name: String },
    /// Show the owner's token
    Show {
        /// The token alone, without JSON
        #[arg(long)]
        raw: bool,
    },
}

/// The printed answer.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Answer {
    Created(Box<Created>),
    List(Vec<TokenRow>),
    Revoked { revoked: String },
    Owner { token: String, file: String },
}

#[derive(Debug, Serialize)]
struct Created {
    #[serde(flatten)]
    shown: TokenRow,
    token: String,
}

/// A token without its text.
#[derive(Debug, Serialize)]
struct TokenRow {
    name: String,
    workspaces: Option<Vec<PathBuf>>,
    sandbox: Option<Policy>,
    created_at: String,
    expires_at: Option<String>,
    expired: bool,
}

impl TokenRow {
    fn of(grant: &Grant, now: Timestamp) -> Self {
        Self {
            name: grant.name.clone(),
            workspaces: grant.workspaces.clone(),
            sandbox: grant.sandbox.clone(),
            created_at: grant.created_at.clone(),
            expires_at: grant.expires_at.map(|end| format!("{end:.3}")),
            expired: grant.expires_at.is_some_and(|end| end <= now),
        }
    }
}

impl Token {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let root = Listing::of(settings, &Flags::default())?.sessions_dir.0;
        let sessions = Sessions::at(root, settings.launcher.user().clone());
        let tokens = Tokens::at(&sessions.private()?);
        let answer = match self.action {
            Action::Create { name, workspace, expires, confinement } => {
                let sandbox = confinement.policy(None)?;
                create(&tokens, &name, &workspace, expires, sandbox)?
            }
            Action::List => {
                let now = Timestamp::now();
                Answer::List(tokens.list()?.iter().map(|grant| TokenRow::of(grant, now)).collect())
            }
            Action::Revoke { name } => {
                ensure!(
                    tokens.revoke(&name)?,
                    "there is no token {name:?}; `sessile token list` lists those that there are"
                );
                Answer::Revoked { revoked: name }
            }
            Action::Show { raw: true } => {
                output::all(&mut std::io::stdout().lock(), (tokens.owner()? + "\n").as_bytes())?;
                return Ok(ExitCode::SUCCESS);
            }
            Action::Show { raw: false } => Answer::Owner {
                token: tokens.owner()?,
                file: tokens.owner_file().to_string_lossy().into_owned(),
            },
        };
        output::json(&answer)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn create(
    tokens: &Tokens,
    name: &str,
    workspaces: &[PathBuf],
    expires: Option<Duration>,
    sandbox: Option<Policy>,
) -> anyhow::Result<Answer> {
    let now = Timestamp::now();
    let expires_at = match expires {
        Some(span) => Some(now.checked_add(span).context("that end is too far away")?),
        None => None,
    };
    let workspaces: Vec<PathBuf> =
        workspaces.iter().map(|path| directory(path)).collect::<anyhow::Result<_>>()?;
    let workspaces = Some(workspaces).filter(|all| !all.is_empty());
    let (token, grant) = tokens.create(name, TokenLimits { workspaces, sandbox, expires_at })?;
    Ok(Answer::Created(Box::new(Created { shown: TokenRow::of(&grant, now), token })))
}

/// Resolves a directory's links: the directories of sessions are compared with the result.
fn directory(path: &Path) -> anyhow::Result<PathBuf> {
    let real = std::fs::canonicalize(path).ok().filter(|path| path.is_dir());
    real.with_context(|| format!("{} is not a directory; create it first", path.display()))
}
