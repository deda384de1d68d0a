use crate::config::{Auth, Config, Flags, Listing};
use crate::otlp::Traces;
use crate::presence::{Announcement, Presence};
use crate::settings::{Settings, environment};
use crate::{log, memory, open_files, output};
use anyhow::bail;
use clap::Args;
use serde_json::json;
use sessile_client::Launcher;
use sessile_server::http::{Access, App, Guard};
use sessile_server::{Door, Service, SessionDefaults, Tls, Tokens};
use sessile_store::Sessions;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Serve sessions over HTTP and MCP
///
/// Sessions live on when the server stops, and are there again when it starts.
/// Each setting can also be given as a variable (SESSILE_LISTEN and so on), or
/// as a key of a TOML file; flags come first, then variables, then the file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile serve\n  \
    sessile serve --listen 127.0.0.1:8000 --workspace-root ~/projects\n  \
    sessile serve --listen 0.0.0.0:7377 --allow-host box.example --tls-cert box.pem --tls-key box.key")]
pub(crate) struct Serve {
    #[command(flatten)]
    flags: Flags,
    /// Print the API's description (OpenAPI 3.1) and exit
    #[arg(long)]
    openapi: bool,
}

impl Serve {
    pub(crate) fn execute(&self, settings: &Settings) -> anyhow::Result<ExitCode> {
        if self.openapi {
            let text = sessile_server::http::openapi().to_pretty_json()? + "\n";
            output::all(&mut std::io::stdout().lock(), text.as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        let config = Listing::of(settings, &self.flags)?.config()?;
        memory::give_back();
        let runtime = tokio::runtime::Runtime::new()?;
        let traces = Traces::to(config.otlp_endpoint.as_deref(), runtime.handle())?;
        log::init(config.log, &config.log_level, traces.layer())?;
        let launcher = match open_files::raise() {
            Some(argument) => settings.launcher.clone().with_argument(argument),
            None => settings.launcher.clone(),
        };
        let launcher = launcher
            .with_fork_server()
            .with_store(config.store.clone())
            .with_inherited(config.inherited.clone());
        let outcome = runtime.block_on(serve(config, launcher));
        traces.flush();
        // Calls that block are not waited for: runs go on in their keepers.
        runtime.shutdown_background();
        outcome?;
        tracing::info!("the server has stopped; sessions go on");
        Ok(ExitCode::SUCCESS)
    }
}

async fn serve(config: Config, launcher: Launcher) -> anyhow::Result<()> {
    let sessions = Sessions::at(config.sessions_dir.clone(), launcher.user().clone());
    let private = sessions.private()?;
    let tls = match &config.tls {
        Some(files) => Some(Tls::load(&files.cert, &files.key)?),
        None => None,
    };
    let (access, token) = access(&config, &private)?;
    let mut environment = environment();
    environment.retain(|name, _| config.inherited.has(name));
    let service = Service::new(sessions, launcher, &config.roots, config.limits.clone())?
        .with_defaults(SessionDefaults {
            idle_timeout: config.idle_timeout,
            command_timeout: config.command_timeout,
            durable: config.durable.clone(),
            store: config.store.clone(),
            environment,
        })
        .with_pools(config.pools.clone());
    let listener = listen(config.listen).await?;
    let address = listener.local_addr()?;
    let adopted = service.adopt().await?;
    let url = url(address, tls.is_some());
    warn_of_plain_text(address, tls.is_some());
    let announcement = Announcement {
        url: url.clone(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tls_cert: config.tls.map(|files| files.cert),
    };
    let stop = Stop::watch()?;
    let presence = Presence::announce(&private, &announcement)?;
    tracing::info!(%address, adopted, version = announcement.version, "the server has started");
    output::all(&mut std::io::stdout().lock(), Greeting { url, token, adopted }.text().as_bytes())?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let hosts = names(config.hosts, address);
    let guard = Guard { access, hosts, origins: config.origins, scheme };
    let service = Arc::new(service);
    let preparing = Arc::clone(&service);
    tokio::spawn(async move { preparing.prepare_pools().await });
    let app = App { service, guard: Arc::new(guard), mcp_wait: config.mcp_wait };
    let door = Door {
        listener,
        tls,
        connections: open_files::connections(config.connections),
        request_timeout: config.request_timeout,
    };
    sessile_server::serve(app, door, stop.come()).await;
    drop(presence);
    Ok(())
}

/// Who may call, and the file with the owner's token, if one is wanted.
fn access(config: &Config, private: &Path) -> anyhow::Result<(Access, Option<PathBuf>)> {
    match config.auth {
        Auth::None => Ok((Access::Anybody, None)),
        Auth::Token => {
            let tokens = Tokens::at(private);
            tokens.owner()?;
            let file = tokens.owner_file();
            Ok((Access::Tokens(tokens), Some(file)))
        }
    }
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => bail!(
            "cannot listen on {address}: another server is there already; stop it, or choose another address with --listen"
        ),
        Err(error) => bail!("cannot listen on {address}: {error}"),
    }
}

/// What the server can be called by on its own machine.
fn url(address: SocketAddr, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
}

/// The names that a server answers to. Its address is one: no name of somebody
/// else's can be made to look like it.
fn names(mut given: Vec<String>, address: SocketAddr) -> Vec<String> {
    let ip = address.ip();
    if !ip.is_unspecified() && !ip.is_loopback() {
        given.push(match ip {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        });
    }
    given
}

fn warn_of_plain_text(address: SocketAddr, is_tls: bool) {
    if !is_tls && !address.ip().is_loopback() {
        tracing::warn!(
            %address,
            "tokens and output cross the network unencrypted; use --tls-cert and --tls-key, or a proxy that does"
        );
    }
}

/// What a server says when it can be called.
struct Greeting {
    url: String,
    /// The file with the owner's token, if one is wanted.
    token: Option<PathBuf>,
    adopted: usize,
}

impl Greeting {
    fn text(&self) -> String {
        let url = &self.url;
        let found = match self.adopted {
            0 => String::new(),
            1 => "1 live session was found and goes on.\n".to_owned(),
            n => format!("{n} live sessions were found and go on.\n"),
        };
        let who = match &self.token {
            Some(file) => format!("Callers need the token in {}.\n", file.display()),
            None => "Everybody on this machine may call: no token is asked for.\n".to_owned(),
        };
        let bearer = self
            .token
            .as_deref()
            .map(|file| format!(" -H \"Authorization: Bearer $(cat {})\"", quoted(file)));
        let order = r#"{"action": "exec", "command": "echo hello"}"#;
        format!(
            "Sessile is at {url} (API: {url}/docs)\n{who}{found}\n\
             Call it:\n  curl -s {url}/v1/tools/runtime{} \\\n    \
             -H 'Content-Type: application/json' -d '{order}'\n\n\
             Add it to an MCP client:\n{}",
            bearer.unwrap_or_default(),
            self.mcp(url)
        )
    }

    /// Without the token itself: what is printed may be kept somewhere.
    fn mcp(&self, url: &str) -> String {
        let mut server = json!({"type": "http", "url": format!("{url}/mcp")});
        let mut note = String::new();
        if let Some(file) = &self.token {
            server["headers"] = json!({"Authorization": "Bearer TOKEN"});
            note = format!("  (TOKEN is in {}; `sessile token show` prints it)\n", file.display());
        }
        let http = json!({"mcpServers": {"sessile": server}});
        let stdio = json!({"mcpServers": {"sessile": {"command": "sessile", "args": ["mcp"]}}});
        format!("  {http}\n{note}or, without this server:\n  {stdio}\n")
    }
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(is_plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Ctrl-C, or being asked to go: listened for from the moment that this is made.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    fn watch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn come(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        tracing::info!("asked to stop");
    }
}
