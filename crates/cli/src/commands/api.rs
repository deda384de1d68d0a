use crate::call::{Remote, next_part, no_server};
use crate::config::{Flags, Listing};
use crate::output;
use crate::settings::Settings;
use anyhow::{Context, ensure};
use clap::Args;
use std::io::{self, IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;

/// Call the server of this sessions directory
///
/// Finds the server's address and the owner's token by itself; SESSILE_TOKEN
/// selects another token. Prints the body of the answer, and exits 0 if the
/// request succeeded, 1 otherwise.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile api GET /v1/sessions\n  \
    sessile api POST /v1/sessions '{\"shell\": \"python3\"}'\n  \
    echo '{\"action\": \"exec\", \"command\": \"ls\"}' | sessile api POST /v1/tools/runtime")]
pub(crate) struct Api {
    /// GET, POST or DELETE
    method: String,
    /// Such as /v1/sessions; /docs has all of them
    path: String,
    /// The request's body [default for POST: our stdin, unless that is a terminal]
    json: Option<String>,
    /// Call your own local server (see serve --local), and start it if none is running
    #[arg(long)]
    local: bool,
}

impl Api {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        ensure!(self.path.starts_with('/'), "a path begins with /, such as /v1/sessions");
        let remote = match self.local {
            true => Remote::local(settings)?,
            false => Self::remote(settings)?,
        };
        let body = self.body()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let outcome = runtime.block_on(self.call(&remote, body));
        runtime.shutdown_background();
        outcome
    }

    pub(super) fn remote(settings: &Settings) -> anyhow::Result<Remote> {
        let config = Listing::of(settings, &Flags::default())?.config()?;
        let user = settings.launcher.user();
        let private = user.private_of(&config.sessions_dir).with_context(no_server(&config))?;
        Remote::find(&config, &private, token(&private))
    }

    async fn call(&self, remote: &Remote, body: Vec<u8>) -> anyhow::Result<ExitCode> {
        let mut response = remote.call(&self.method, &self.path, body).await?;
        let mut ends_in_newline = true;
        while let Some(part) = next_part(response.body_mut()).await? {
            output::all(&mut io::stdout().lock(), &part)?;
            ends_in_newline = part.ends_with(b"\n");
        }
        if !ends_in_newline {
            output::all(&mut io::stdout().lock(), b"\n")?;
        }
        let is_done = response.status().is_success();
        Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn body(&self) -> anyhow::Result<Vec<u8>> {
        let mut body = self.json.clone().unwrap_or_default().into_bytes();
        let takes_one = self.method.eq_ignore_ascii_case("post");
        if self.json.is_none() && takes_one && !io::stdin().is_terminal() {
            io::stdin().lock().read_to_end(&mut body)?;
        }
        Ok(body)
    }
}

/// Returns the token to call with; none if there is none.
fn token(private: &Path) -> Option<String> {
    let given = std::env::var("SESSILE_TOKEN").ok().filter(|token| !token.is_empty());
    let text = given.or_else(|| std::fs::read_to_string(private.join("token")).ok())?;
    Some(text.trim().to_owned())
}
