use crate::output;
use crate::settings::Settings;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use sessile_server::http::{Access, App, Guard};
use sessile_server::{Limits, Service, Tokens};
use sessile_store::Sessions;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Serve sessions over HTTP and MCP
///
/// Sessions live on when the server stops, and are there again when it starts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile serve\n  \
    sessile serve --listen 127.0.0.1:8000 --workspace-root ~/projects")]
pub(crate) struct Serve {
    /// Address and port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7377")]
    listen: SocketAddr,
    /// Who may call: whoever has a token, or (on loopback only) everybody
    #[arg(long, value_enum, default_value_t = Auth::Token)]
    auth: Auth,
    /// Directories that sessions may be in (may be repeated) [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace_root: Vec<PathBuf>,
    /// A further name that the server is called by (may be repeated)
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// A page that may call from a browser, as https://name:port (may be repeated)
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Auth {
    Token,
    None,
}

impl Serve {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(self.serve(settings))?;
        // Calls that block are not waited for: runs go on in their keepers.
        runtime.shutdown_background();
        Ok(ExitCode::SUCCESS)
    }

    async fn serve(self, settings: &Settings) -> anyhow::Result<()> {
        if self.auth == Auth::None && !self.listen.ip().is_loopback() {
            bail!("--auth none is for loopback only; {} can be reached by others", self.listen);
        }
        let root = settings.sessions_dir.clone().unwrap_or_else(|| PathBuf::from(".sessions"));
        let root = std::path::absolute(root)?;
        let mut roots = self.workspace_root.clone();
        if roots.is_empty() {
            roots.push(std::env::current_dir()?);
        }
        let sessions = Sessions::at(root.clone());
        sessions.make()?;
        let service = Service::new(sessions, settings.launcher.clone(), &roots, Limits::default())?;
        let tokens = Tokens::at(&root);
        let token_file = tokens.owner_file();
        let access = match self.auth {
            Auth::None => Access::Anybody,
            Auth::Token => {
                tokens.owner().with_context(|| format!("cannot make {}", token_file.display()))?;
                Access::Tokens(tokens)
            }
        };
        let adopted = service.adopt().await?;
        let listener = tokio::net::TcpListener::bind(self.listen)
            .await
            .with_context(|| format!("cannot listen on {}", self.listen))?;
        let address = listener.local_addr()?;
        let guard = Guard { access, hosts: self.allow_host, origins: self.allow_origin };
        let app = App { service: Arc::new(service), guard: Arc::new(guard) };
        output::all(
            &mut std::io::stdout().lock(),
            greeting(address, &token_file, self.auth, adopted).as_bytes(),
        )?;
        sessile_server::serve(app, listener, stop()).await?;
        Ok(())
    }
}

fn greeting(address: SocketAddr, token: &std::path::Path, auth: Auth, adopted: usize) -> String {
    let header = match auth {
        Auth::Token => format!(" -H \"Authorization: Bearer $(cat {})\"", token.display()),
        Auth::None => String::new(),
    };
    let found = match adopted {
        0 => String::new(),
        1 => "1 live session was found and goes on.\n".to_owned(),
        n => format!("{n} live sessions were found and go on.\n"),
    };
    format!(
        "Sessile is at http://{address} (API: http://{address}/docs)\n{found}\n\
         Try it:\n  curl -s http://{address}/v1/tools/runtime{header} \\\n    \
         -H 'Content-Type: application/json' -d '{{\"action\": \"exec\", \"command\": \"echo hello\"}}'\n"
    )
}

/// Ctrl-C, or being asked to go.
async fn stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
