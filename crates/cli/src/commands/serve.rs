use crate::config::{Auth, Config, Flags, Listing};
use crate::output;
use crate::settings::Settings;
use anyhow::Context;
use clap::Args;
use serde_json::json;
use sessile_server::http::{Access, App, Guard};
use sessile_server::{Door, Service, SessionDefaults, Tls, Tokens};
use sessile_store::Sessions;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

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
}

impl Serve {
    pub(crate) fn execute(&self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let config = Listing::of(settings, &self.flags)?.config()?;
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(serve(config, settings))?;
        // Calls that block are not waited for: runs go on in their keepers.
        runtime.shutdown_background();
        Ok(ExitCode::SUCCESS)
    }
}

async fn serve(config: Config, settings: &Settings) -> anyhow::Result<()> {
    let sessions = Sessions::at(config.sessions_dir.clone());
    sessions.make()?;
    let service =
        Service::new(sessions, settings.launcher.clone(), &config.roots, config.limits.clone())?
            .with_defaults(SessionDefaults {
                idle_timeout: config.idle_timeout,
                command_timeout: config.command_timeout,
            });
    let tokens = Tokens::at(&config.sessions_dir);
    let token = match config.auth {
        Auth::None => None,
        Auth::Token => {
            tokens.owner()?;
            Some(tokens.owner_file())
        }
    };
    let access = match config.auth {
        Auth::None => Access::Anybody,
        Auth::Token => Access::Tokens(tokens),
    };
    let tls = match &config.tls {
        Some(files) => Some(Tls::load(&files.cert, &files.key)?),
        None => None,
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let listener = tokio::net::TcpListener::bind(config.listen).await.with_context(|| {
        format!(
            "cannot listen on {} (another server may be there; choose with --listen)",
            config.listen
        )
    })?;
    let adopted = service.adopt().await?;
    let address = listener.local_addr()?;
    let guard = Guard { access, hosts: config.hosts, origins: config.origins };
    let app = App { service: Arc::new(service), guard: Arc::new(guard) };
    let greeting = Greeting { url: format!("{scheme}://{address}"), token, adopted };
    output::all(&mut std::io::stdout().lock(), greeting.text().as_bytes())?;
    let door = Door {
        listener,
        tls,
        connections: config.connections,
        request_timeout: config.request_timeout,
    };
    sessile_server::serve(app, door, stop()).await;
    Ok(())
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
