//! The server's configuration: each setting from a flag, else from a `SESSILE_…`
//! variable, else from one TOML file, else its default; with its source.
//!
//! `setting` has the settings as data. Everything is read here, once, before anything is
//! done with it.

mod file;
mod flags;
mod layers;
mod model;
mod pool;
mod setting;
mod tables;

pub(crate) use flags::Flags;
pub(crate) use layers::{Found, Source};
pub(crate) use setting::{SESSIONS_DIR, Setting};

use crate::confinement;
use crate::settings::Settings;
use anyhow::{Context, bail, ensure};
use file::File;
use layers::{Environment, Layers};
use sessile_client::SavedTo;
use sessile_protocol::{Inherited, parse_duration, parse_size};
use sessile_sandbox::Policy;
use sessile_server::{Limits, Model, Pool};
use sessile_store::LocalPlace;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file's name in the sessions directory.
const FILE: &str = "sessile.toml";

/// The variable that names another file.
const FILE_VARIABLE: &str = "SESSILE_CONFIG";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Auth {
    Token,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogForm {
    Text,
    Json,
}

#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

/// Everything that a server has to know.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    /// Where that address comes from.
    pub(crate) listen_from: Source,
    pub(crate) auth: Auth,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) hosts: Vec<String>,
    pub(crate) origins: Vec<String>,
    pub(crate) inherited: Inherited,
    pub(crate) sandbox: Option<Policy>,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) limits: Limits,
    pub(crate) connections: usize,
    pub(crate) request_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) command_timeout: Duration,
    pub(crate) durable: Option<SavedTo>,
    pub(crate) store: Option<String>,
    pub(crate) mcp_wait: Duration,
    pub(crate) log: LogForm,
    pub(crate) log_level: String,
    pub(crate) otlp_endpoint: Option<String>,
    pub(crate) sessions_dir: PathBuf,
    pub(crate) pools: Vec<Pool>,
    pub(crate) models: Vec<Model>,
    /// The file that was read, or would be read if it existed.
    pub(crate) file: PathBuf,
}

/// Every setting with its unparsed value and its source.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The file that was read, and what named it.
    pub(crate) file: Option<(PathBuf, Source)>,
    pub(crate) sessions_dir: (PathBuf, Source),
    pub(crate) rows: Vec<(&'static Setting, Found)>,
    pools: Vec<Pool>,
    models: Vec<Model>,
}

/// The sessions directory as given to every command, and its source.
pub(crate) type SessionsDir = (Option<PathBuf>, Source);

/// Limit of live sessions of the user's own server. All of the user's programs share it,
/// and one of them may have a thousand.
const LOCAL_SESSIONS: &str = "10000";

impl Listing {
    /// Reads all settings.
    pub(crate) fn of(settings: &Settings, flags: &Flags) -> anyhow::Result<Self> {
        let told = (settings.sessions_dir.clone(), settings.sessions_dir_from.clone());
        Self::read(told, flags, &|name| std::env::var_os(name))
    }

    /// Reads them for the user's own server, whose sessions have a fixed place. By
    /// default it may use all directories, like its user; relative paths are resolved in
    /// the user's home.
    pub(crate) fn local(
        settings: &Settings,
        flags: &Flags,
        place: &LocalPlace,
    ) -> anyhow::Result<Self> {
        if let Source::Flag(_) = settings.sessions_dir_from {
            bail!("the local server has a sessions directory of its own; leave --sessions-dir out");
        }
        let told = (Some(place.sessions()), Source::Default);
        let mut listing = Self::read(told, flags, &|name| std::env::var_os(name))?;
        for (setting, found) in &mut listing.rows {
            if found.from != Source::Default {
                continue;
            }
            if setting.name == setting::MAX_SESSIONS.name {
                found.texts = vec![LOCAL_SESSIONS.to_owned()];
            }
            if setting.name == setting::WORKSPACE_ROOT.name {
                let home = std::env::home_dir().filter(|home| home.is_dir());
                let home = home.and_then(|home| home.into_os_string().into_string().ok());
                found.texts = home.into_iter().chain(["/".to_owned()]).collect();
            }
        }
        Ok(listing)
    }

    fn read(
        told: SessionsDir,
        flags: &Flags,
        environment: Environment<'_>,
    ) -> anyhow::Result<Self> {
        let usual = told.0.clone().unwrap_or_else(|| PathBuf::from(".sessions"));
        let file = find_file(&usual, flags, environment)?;
        let sessions_dir = sessions_dir(told, file.as_ref())?;
        let layers = Layers { flags, environment, file: file.as_ref().map(|(file, _)| file) };
        let rows = setting::ALL.iter().map(|setting| {
            let found = layers.find(setting)?;
            Ok((*setting, found))
        });
        let rows = rows.collect::<anyhow::Result<_>>()?;
        let pools = file.as_ref().map(|(file, _)| file.pools.clone()).unwrap_or_default();
        let models = file.as_ref().map(|(file, _)| file.models.clone()).unwrap_or_default();
        let file = file.map(|(file, from)| (file.path, from));
        Ok(Self { file, sessions_dir, rows, pools, models })
    }

    /// Returns where durable sessions are saved, besides the disk.
    pub(crate) fn store(&self) -> Option<String> {
        self.one(setting::STORE).map(str::to_owned)
    }

    fn found(&self, setting: &Setting) -> Option<&Found> {
        self.rows.iter().find(|(known, _)| known.name == setting.name).map(|(_, found)| found)
    }

    fn one(&self, setting: &Setting) -> Option<&str> {
        self.found(setting)?.one()
    }

    fn all(&self, setting: &Setting) -> Vec<String> {
        self.found(setting).map(|found| found.texts.clone()).unwrap_or_default()
    }

    /// Parses a value. Its form was checked when it was read.
    fn parsed<T, E>(
        &self,
        setting: &Setting,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> anyhow::Result<T>
    where
        anyhow::Error: From<E>,
    {
        let text = self.one(setting).unwrap_or_default();
        parse(text).map_err(anyhow::Error::from).with_context(|| setting.name)
    }

    fn number(&self, setting: &Setting) -> anyhow::Result<usize> {
        self.parsed(setting, str::parse)
    }

    /// Returns the parsed configuration of a server.
    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        let time = |setting| self.parsed(setting, parse_duration);
        let limits = Limits {
            sessions: self.number(setting::MAX_SESSIONS)? as u64,
            sessions_per_token: self.number(setting::MAX_SESSIONS_PER_TOKEN)? as u64,
            queue: self.number(setting::MAX_QUEUE)? as u64,
            body: usize::try_from(self.parsed(setting::MAX_BODY, parse_size)?)?,
            restored: self.parsed(setting::MAX_RESTORED, parse_size)?,
            streams: self.number(setting::MAX_STREAMS)?,
            output: self.parsed(setting::MAX_OUTPUT, parse_size)?,
        };
        let config = Config {
            listen: self.parsed(setting::LISTEN, str::parse)?,
            listen_from: self.found(setting::LISTEN).map(|f| f.from.clone()).unwrap_or_default(),
            auth: match self.one(setting::AUTH) {
                Some("none") => Auth::None,
                Some(_) | None => Auth::Token,
            },
            roots: self.all(setting::WORKSPACE_ROOT).into_iter().map(PathBuf::from).collect(),
            hosts: self.all(setting::ALLOW_HOST),
            origins: self.all(setting::ALLOW_ORIGIN),
            inherited: Inherited::usual_and(&self.all(setting::ALLOW_ENV)),
            sandbox: self.one(setting::SANDBOX).map(confinement::named).transpose()?,
            tls: self.tls()?,
            limits,
            connections: self.number(setting::MAX_CONNECTIONS)?,
            request_timeout: time(setting::REQUEST_TIMEOUT)?,
            idle_timeout: time(setting::IDLE_TIMEOUT)?,
            command_timeout: time(setting::COMMAND_TIMEOUT)?,
            durable: match self.one(setting::DURABLE) {
                Some("no") | None => None,
                Some("yes") => Some(self.store().map_or(SavedTo::Disk, SavedTo::Store)),
                Some(url) => Some(SavedTo::Store(url.to_owned())),
            },
            store: self.store(),
            mcp_wait: time(setting::MCP_WAIT)?,
            log: match self.one(setting::LOG) {
                Some("json") => LogForm::Json,
                Some(_) | None => LogForm::Text,
            },
            log_level: self.one(setting::LOG_LEVEL).unwrap_or_default().to_owned(),
            otlp_endpoint: self.one(setting::OTLP_ENDPOINT).map(str::to_owned),
            sessions_dir: self.sessions_dir.0.clone(),
            pools: self.pools.clone(),
            models: self.models.clone(),
            file: match &self.file {
                Some((path, _)) => path.clone(),
                None => std::path::absolute(self.sessions_dir.0.join(FILE))?,
            },
        };
        config.check()?;
        Ok(config)
    }

    fn tls(&self) -> anyhow::Result<Option<TlsFiles>> {
        match (self.one(setting::TLS_CERT), self.one(setting::TLS_KEY)) {
            (Some(cert), Some(key)) => Ok(Some(TlsFiles { cert: cert.into(), key: key.into() })),
            (None, None) => Ok(None),
            (Some(_), None) => bail!("tls-cert needs tls-key, the certificate's private key"),
            (None, Some(_)) => bail!("tls-key needs tls-cert, the certificate"),
        }
    }
}

impl Config {
    fn check(&self) -> anyhow::Result<()> {
        if self.auth == Auth::None && !self.listen.ip().is_loopback() {
            bail!("auth none is for loopback only; {} can be reached by others", self.listen);
        }
        ensure!(!self.roots.is_empty(), "workspace-root is empty: no session could be anywhere");
        ensure!(!self.request_timeout.is_zero(), "request-timeout is zero: no request could come");
        Ok(())
    }
}

/// Returns the effective file, and what named it.
fn find_file(
    sessions_dir: &Path,
    flags: &Flags,
    environment: Environment<'_>,
) -> anyhow::Result<Option<(File, Source)>> {
    if let Some(path) = &flags.config {
        return Ok(Some((File::read(&std::path::absolute(path)?)?, Source::Flag("config"))));
    }
    let named = environment(FILE_VARIABLE).filter(|path| !path.is_empty());
    if let Some(path) = named {
        let from = Source::Environment(FILE_VARIABLE.to_owned());
        let file = File::read(&std::path::absolute(path)?).context(FILE_VARIABLE)?;
        return Ok(Some((file, from)));
    }
    let path = std::path::absolute(sessions_dir.join(FILE))?;
    if !path.try_exists().unwrap_or(true) {
        return Ok(None);
    }
    check_private(&path)?;
    Ok(Some((File::read(&path)?, Source::Default)))
}

/// Checks that a file which no setting names is the user's own: a directory from
/// elsewhere, such as a repository, must not decide who may call.
fn check_private(path: &Path) -> anyhow::Result<()> {
    let metadata = std::fs::symlink_metadata(path)
        .with_context(|| format!("cannot read the configuration {}", path.display()))?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    ensure!(
        metadata.is_file() && is_ours && metadata.mode() & 0o077 == 0,
        "{} was found but is not private; look at what it says, then make it yours alone (chmod 600) or name it with --config",
        path.display()
    );
    Ok(())
}

fn sessions_dir(
    told: SessionsDir,
    file: Option<&(File, Source)>,
) -> anyhow::Result<(PathBuf, Source)> {
    let (path, from) = match (told, file) {
        ((Some(path), from), _) => (path, from),
        ((None, _), Some((file, named))) => match (file.of(SESSIONS_DIR), named) {
            (Some((_, line)), Source::Default) => bail!(
                "{} line {line}: sessions-dir: this file was found there already; name it with --config to say where sessions are",
                file.path.display()
            ),
            (Some((texts, line)), _) => {
                let path = texts.concat().into();
                (path, Source::File { path: file.path.clone(), line })
            }
            (None, _) => (PathBuf::from(".sessions"), Source::Default),
        },
        ((None, _), None) => (PathBuf::from(".sessions"), Source::Default),
    };
    Ok((std::path::absolute(path)?, from))
}

#[cfg(test)]
mod tests;
