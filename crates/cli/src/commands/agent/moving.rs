//! Agents as files.

use super::{AgentArg, Server};
use crate::call::next_part;
use crate::output;
use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Export {
    #[command(flatten)]
    which: AgentArg,
    /// The file; one that is there is replaced when the new one is whole
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Leave the files of the workspace out
    #[arg(long)]
    no_files: bool,
}

#[derive(Debug, Args)]
pub(super) struct Import {
    /// A file that `export` has written
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Trust the file, and run its code
    #[arg(long)]
    trust: bool,
    /// Go on in this directory, with the files: new or empty
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Which of the server's models it uses
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

/// The result of an export.
#[derive(Debug, Serialize)]
struct ExportedAgent {
    file: String,
    as_of_run: u64,
    /// The length of the thread.
    entries: u64,
    /// How much could not be saved.
    left: u64,
}

impl Export {
    pub(super) fn execute(self, server: &Server<'_>) -> anyhow::Result<ExitCode> {
        let files = !self.no_files;
        let path = format!("/v1/agents/{}/export?files={files}", self.which.agent);
        // Written under another name first, so that a partial file is not found.
        let aside = self.file.with_extension(format!("{}.part", std::process::id()));
        let written = server.runtime.block_on(async {
            let mut response = server.remote().call("GET", &path, Vec::new()).await?;
            if !response.status().is_success() {
                super::answer(response).await?;
                bail!("the server has answered nothing");
            }
            let mut file = File::options().write(true).create_new(true).open(&aside)?;
            while let Some(part) = next_part(response.body_mut()).await? {
                file.write_all(&part)?;
            }
            file.sync_all()?;
            let said = |name: &str| response.headers().get(name)?.to_str().ok()?.parse().ok();
            let number = |name: &str| -> u64 { said(name).unwrap_or(0) };
            Ok(ExportedAgent {
                file: self.file.display().to_string(),
                as_of_run: number("sessile-as-of-run"),
                entries: number("sessile-entries"),
                left: number("sessile-left"),
            })
        });
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                let _ = std::fs::remove_file(&aside);
                return Err(error);
            }
        };
        std::fs::rename(&aside, &self.file)
            .with_context(|| format!("cannot write {}", self.file.display()))?;
        output::json(&written)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Import {
    pub(super) fn execute(self, server: &Server<'_>) -> anyhow::Result<ExitCode> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if self.trust {
            query.append_pair("trust", "true");
        }
        if let Some(cwd) = &self.cwd {
            query.append_pair("cwd", &std::path::absolute(cwd)?.display().to_string());
        }
        if let Some(model) = &self.model {
            query.append_pair("model", model);
        }
        let path = format!("/v1/agents/import?{}", query.finish());
        let file = std::fs::read(&self.file)
            .with_context(|| format!("cannot read {}", self.file.display()))?;
        let answer = server.upload(&path, file)?;
        output::json(&answer)?;
        Ok(ExitCode::SUCCESS)
    }
}
