use crate::progress::Progress;
use crate::settings::{Settings, environment};
use crate::{args, output, uploader};
use anyhow::{Context, bail, ensure};
use clap::Args;
use sessile_client::{Bounds, ClientError, RestoreOptions, SavedTo, Trust};
use sessile_gateway::answer::Restored;
use sessile_protocol::SessionId;
use sessile_store::SessionStatus;
use sessile_vault::Vault;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Restore a session
///
/// The new session has its own id, and continues where the saved one was. What
/// could not be carried is listed by name with the reason.
///
/// Restoring runs code from the file. A file that was saved from the same
/// sessions directory is accepted; any other needs --trust.
///
/// Instead of a file, you can give the URL of a durable session's saves, or its id if
/// they are in the configured store: the last save is used.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile restore work.sessile\n  \
    sessile restore work.sessile --cwd ./work --name second\n  \
    sessile restore from-a-friend.sessile --trust\n  \
    sessile restore s3://bucket/sessions/sess_… --trust\n  \
    sessile restore sess_…")]
pub(crate) struct Restore {
    /// The file, or the URL of a session's saves, or the id of a session in the store
    #[arg(value_name = "FILE|URL|ID")]
    file: PathBuf,
    /// Go on in this directory, with the saved files if there are any: then it
    /// must be new or empty [default: where the session was]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Trust the file, and run its code
    #[arg(long)]
    trust: bool,
    /// A name for the session [default: the saved one's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Refuse a file from elsewhere that is larger than this when decompressed
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = args::size)]
    max_size: u64,
    /// Save the new session in idle time, see `start`
    #[arg(
        long, value_name = "URL", num_args = 0..=1, require_equals = true,
        default_missing_value = "", value_parser = args::saved_to
    )]
    durable: Option<SavedTo>,
}

impl Restore {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let progress = Progress::of(format!("restoring {}", self.file.display()));
        let (fetched, is_trusted) = match Source::of(&self.file, settings)? {
            Source::File => (None, self.trust),
            Source::Url(url) => (Some(Fetched::from(&url, settings, self.max_size)?), self.trust),
            // A configured store is trusted, with everybody who can write to it.
            Source::Store(url) => (Some(Fetched::from(&url, settings, self.max_size)?), true),
        };
        let restored = settings.launcher.restore(
            &settings.sessions,
            &RestoreOptions {
                path: fetched.as_ref().map_or(self.file, |fetched| fetched.path.clone()),
                cwd: self.cwd,
                bounds: Bounds { roots: vec!["/".into()], otherwise: ".".into() },
                trust: if is_trusted { Trust::Given } else { Trust::Own },
                max_size: self.max_size,
                name: self.name,
                owner: None,
                durable: settings.saved_to(self.durable)?,
                max_queue: None,
                environment: environment(),
            },
        )?;
        drop(progress);
        let answer = Restored::of(
            &restored.metadata,
            &restored.manifest,
            &restored.left,
            restored.has_files,
        );
        output::json(&answer)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The source of the saved session.
enum Source {
    File,
    Url(String),
    /// In the configured store.
    Store(String),
}

impl Source {
    fn of(given: &Path, settings: &Settings) -> anyhow::Result<Self> {
        let Some(text) = given.to_str() else { return Ok(Self::File) };
        if text.contains("://") {
            return Ok(Self::Url(text.to_owned()));
        }
        let Ok(id) = text.parse::<SessionId>() else { return Ok(Self::File) };
        if given.exists() {
            return Ok(Self::File);
        }
        if let Some(store) = settings.launcher.store() {
            return Ok(Self::Store(format!("{}/{id}", store.trim_end_matches('/'))));
        }
        let directory = settings.sessions.find(&id)?;
        let metadata = directory.observed_metadata()?;
        if metadata.status == SessionStatus::Terminated {
            return Err(ClientError::ended(&directory, &metadata).into());
        }
        bail!(
            "{id} is a live session; `sessile save {id} -o FILE` saves it, `sessile fork {id}` copies it"
        )
    }
}

/// The last save of a session, fetched from a store.
struct Fetched {
    path: PathBuf,
}

impl Fetched {
    fn from(url: &str, settings: &Settings, max_size: u64) -> anyhow::Result<Self> {
        let parts = url.trim_end_matches('/').rsplit_once('/');
        let parts = parts.and_then(|(place, id)| Some((place, id.parse::<SessionId>().ok()?)));
        let (place, session) =
            parts.with_context(|| format!("{url} does not end with a session's id"))?;
        let vault = Vault::open(place, &uploader::variables())?;
        let latest = vault.latest(&session)?;
        let latest = latest.with_context(|| format!("there is no save of {session} in {place}"))?;
        ensure!(
            latest.size <= max_size,
            "the save has {} bytes: raise the limit with --max-size if you trust it",
            latest.size
        );
        settings.sessions.make()?;
        let name = format!("restoring-{}.sessile", std::process::id());
        let fetched = Self { path: settings.sessions.root().join(name) };
        vault.get(&session, &fetched.path)?;
        Ok(fetched)
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
