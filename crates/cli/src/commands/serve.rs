mod greeting;

use crate::args;
use crate::config::{Auth, Config, Flags, Listing};
use crate::local::{self, Address};
use crate::otlp::Traces;
use crate::server_file::{ServerFile, ServerInfo};
use crate::settings::{Settings, environment};
use crate::{log, memory, open_files, output, secrets};
use anyhow::bail;
use clap::Args;
use greeting::Greeting;
use sessile_client::Launcher;
use sessile_server::http::{Access, App, Guard};
use sessile_server::{
    Lifetime, Listener, LocalListener, Model, Program, ServeOptions, Service, SessionDefaults, Tls,
    Tokens,
};
use sessile_store::Sessions;
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Serve sessions over HTTP and MCP
///
/// Sessions outlive the server, and the next server finds them again. Each
/// setting can also be a variable (SESSILE_LISTEN and so on), or a key in a TOML
/// file; flags come first, then variables, then the file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile serve\n  \
    sessile serve --local --background\n  \
    sessile serve --listen 127.0.0.1:8000 --workspace-root ~/projects\n  \
    sessile serve --listen 0.0.0.0:7377 --allow-host box.example --tls-cert box.pem --tls-key box.key")]
pub(crate) struct Serve {
    #[command(flatten)]
    flags: Flags,
    /// Serve your own programs only, on a Unix socket, without a token
    ///
    /// One server for all of them. It may use all directories, unless
    /// --workspace-root says otherwise.
    #[arg(
        long,
        conflicts_with_all = ["sandbox", "listen", "auth", "allow-host", "allow-origin", "tls-cert", "tls-key"]
    )]
    local: bool,
    /// Run in the background: find or start the server, print its address, and exit
    #[arg(long, requires = "local")]
    background: bool,
    /// Exit when no program has been connected for this long; 0: never
    #[arg(
        long,
        requires = "local",
        value_name = "TIME",
        value_parser = args::duration,
        default_value = "10m"
    )]
    idle_exit: Duration,
    /// Print the path of the socket, whether there is a server or not, and exit
    #[arg(long, requires = "local", conflicts_with = "background")]
    print_address: bool,
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
        let place = settings.launcher.user().local();
        if self.print_address {
            let line = format!("{}\n", place.socket().display());
            output::all(&mut std::io::stdout().lock(), line.as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.background {
            output::json(&local::find_or_start(settings, &in_the_foreground())?)?;
            return Ok(ExitCode::SUCCESS);
        }
        let config = match self.local {
            true => Listing::local(settings, &self.flags, &place)?,
            false => Listing::of(settings, &self.flags)?,
        };
        let mut config = config.config()?;
        config.models = secrets::with_keys(config.models);
        memory::give_back();
        let runtime = runtime()?;
        let traces = Traces::to(config.otlp_endpoint.as_deref(), runtime.handle())?;
        log::init(config.log, &config.log_level, traces.layer())?;
        let launcher = match open_files::raise() {
            Some(argument) => settings.launcher.clone().with_argument(argument),
            None => settings.launcher.clone(),
        };
        let launcher = launcher
            .with_fork_server()
            .with_store(config.store.clone())
            .with_inherited(config.inherited.clone())
            .with_hidden(config.models.iter().filter_map(Model::key_variable).collect());
        runtime.spawn(memory::give_back_when_idle());
        let outcome = runtime.block_on(async {
            match self.local {
                true => serve_locally(config, launcher, self.idle_exit).await,
                false => serve(config, launcher).await,
            }
        });
        traces.flush();
        // Does not wait for blocking calls: runs go on in their keepers.
        runtime.shutdown_background();
        outcome?;
        tracing::info!("the server has stopped; sessions go on");
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns a runtime with a thread for two cores: the others are for the sessions, which take
/// three times as much of a run. Threads that wait for each other would cost more than they
/// do.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = cores.div_ceil(2);
    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}

/// Returns the arguments of this process without `--background`.
fn in_the_foreground() -> Vec<OsString> {
    std::env::args_os().skip(1).filter(|word| word != "--background").collect()
}

async fn serve(config: Config, launcher: Launcher) -> anyhow::Result<()> {
    let sessions = Sessions::at(config.sessions_dir.clone(), launcher.user().clone());
    let private = sessions.private()?;
    let tls = match &config.tls {
        Some(files) => Some(Tls::load(&files.cert, &files.key)?),
        None => None,
    };
    let (access, token) = access(&config, &private)?;
    let service = service(&config, sessions, launcher)?;
    let listener = listen(config.listen).await?;
    let address = listener.local_addr()?;
    let adopted = service.adopt().await?;
    let url = url(address, tls.is_some());
    warn_of_plain_text(address, tls.is_some());
    let announcement = ServerInfo {
        url: url.clone(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tls_cert: config.tls.as_ref().map(|files| files.cert.clone()),
    };
    let stop = Stop::watch()?;
    let server_file = ServerFile::announce(&private, &announcement)?;
    tracing::info!(%address, adopted, version = announcement.version, "the server has started");
    output::all(&mut std::io::stdout().lock(), Greeting { url, token, adopted }.text().as_bytes())?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let hosts = names(config.hosts.clone(), address);
    let guard = Guard { access, hosts, origins: config.origins.clone(), scheme };
    let options = ServeOptions {
        listener: Listener::Network(listener),
        lifetime: Lifetime::Always,
        tls,
        connections: open_files::connections(config.connections),
        request_timeout: config.request_timeout,
    };
    serve_until_stopped(&config, service, guard, options, stop).await;
    drop(server_file);
    Ok(())
}

/// Serves the programs of its own user, as long as they need it.
async fn serve_locally(config: Config, launcher: Launcher, idle: Duration) -> anyhow::Result<()> {
    let place = launcher.user().make_local()?;
    let listener = LocalListener::bind(&place).await?;
    let sessions = Sessions::at(config.sessions_dir.clone(), launcher.user().clone());
    sessions.make()?;
    let service = service(&config, sessions, launcher)?.with_configuration(config.file.clone());
    let adopted = service.adopt().await?;
    let lifetime = Lifetime::WhileUsed {
        idle,
        program: Program::at(std::env::current_exe()?),
        replaced: signal(SignalKind::hangup())?,
    };
    let stop = Stop::watch()?;
    // Keeps no directory busy that somebody may want to unmount.
    std::env::set_current_dir("/")?;
    let address = Address::own(&place);
    tracing::info!(adopted, version = address.version, "the local server has started");
    output::json(&address)?;
    // No browser can reach a Unix socket, under any host name.
    let guard = Guard {
        access: Access::Anybody,
        hosts: vec!["*".to_owned()],
        origins: Vec::new(),
        scheme: "http",
    };
    let options = ServeOptions {
        listener: Listener::Local(listener),
        lifetime,
        tls: None,
        connections: open_files::connections(config.connections),
        request_timeout: config.request_timeout,
    };
    serve_until_stopped(&config, service, guard, options, stop).await;
    Ok(())
}

fn service(config: &Config, sessions: Sessions, launcher: Launcher) -> anyhow::Result<Service> {
    let mut environment = environment();
    environment.retain(|name, _| config.inherited.has(name));
    let service = Service::new(sessions, launcher, &config.roots, config.limits.clone())?
        .with_defaults(SessionDefaults {
            idle_timeout: config.idle_timeout,
            command_timeout: config.command_timeout,
            durable: config.durable.clone(),
            store: config.store.clone(),
            environment,
            sandbox: config.sandbox.clone().map(Arc::new),
        })
        .with_pools(config.pools.clone())
        .with_models(config.models.clone());
    Ok(service)
}

/// Serves until the server is stopped.
async fn serve_until_stopped(
    config: &Config,
    service: Service,
    guard: Guard,
    options: ServeOptions,
    stop: Stop,
) {
    let service = Arc::new(service);
    let preparing = Arc::clone(&service);
    tokio::spawn(async move {
        preparing.resume_agents().await;
        if let Err(error) = preparing.adopt_callers().await {
            tracing::warn!(%error, "cannot look for sessions that end with their programs");
        }
        preparing.keep_pools().await;
    });
    let app = App { service, guard: Arc::new(guard), mcp_wait: config.mcp_wait };
    sessile_server::serve(app, options, stop.come()).await;
}

/// Returns who may call, and the file with the owner's token, if one is needed.
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
            "cannot listen on {address}: another server is already there; stop it, or choose another address with --listen"
        ),
        Err(error) => bail!("cannot listen on {address}: {error}"),
    }
}

/// Returns the server's URL on its own machine.
fn url(address: SocketAddr, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
}

/// Returns the host names of the server. Its address is one: no foreign name can be made
/// to look like it.
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

/// SIGINT or SIGTERM, watched from the moment that this is made.
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
