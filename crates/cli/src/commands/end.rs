use crate::output;
use crate::progress::{Counter, Progress};
use crate::settings::Settings;
use clap::Args;
use sessile_client::ClientError;
use sessile_gateway::answer::{Ended, EndedAll};
use sessile_protocol::SessionId;
use sessile_store::{Directory, Metadata, Scope, SessionStatus};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

/// How many sessions end concurrently: each takes two seconds if its programs ignore SIGTERM.
const AT_ONCE: usize = 32;

/// End a session and everything it started
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile end sess_…\n  sessile end --all\n  \
    sessile end --all-dirs")]
pub(crate) struct End {
    /// The session
    #[arg(required_unless_present_any = ["all", "all_dirs"])]
    id: Option<String>,
    /// End all sessions of this sessions directory
    #[arg(long, conflicts_with = "id")]
    all: bool,
    /// End all your sessions, whatever directory they were started in
    #[arg(long, conflicts_with_all = ["id", "all"])]
    all_dirs: bool,
}

impl End {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        if let Some(id) = self.id {
            let id = settings.session(&id)?;
            let progress = Progress::of(format!("ending {id}"));
            let ended = settings.launcher.end(&settings.sessions.find(&id)?)?;
            drop(progress);
            output::json(&Ended::new(ended))?;
            return Ok(ExitCode::SUCCESS);
        }
        let scope = if self.all_dirs { Scope::User } else { Scope::Directory };
        let mut live = settings.sessions.list_in(scope)?;
        live.retain(|(_, metadata)| metadata.status != SessionStatus::Terminated);
        let (ended, failed) = end_all(settings, live);
        for (id, error) in &failed {
            eprintln!("Error: {id} could not be ended: {error}");
        }
        let code = if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        let failed = failed.into_iter().map(|(id, _)| id).collect();
        output::json(&EndedAll::new(ended).with_failed(failed))?;
        Ok(code)
    }
}

type Failed = Vec<(SessionId, ClientError)>;

/// Ends these sessions, several at a time. One that cannot be ended does not delay the others.
fn end_all(settings: &Settings, live: Vec<(Directory, Metadata)>) -> (Vec<Metadata>, Failed) {
    let (done, all) = (Counter::default(), live.len());
    let counted = done.clone();
    let _progress = Progress::show(move || format!("ended {counted} of {all} sessions"));
    let waiting = Mutex::new(live.into_iter());
    let outcomes = Mutex::new((Vec::new(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(all) {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((directory, metadata)) = next else { return };
                    let outcome = settings.launcher.end(&directory);
                    let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                    match outcome {
                        Ok(ended) => outcomes.0.push(ended),
                        Err(error) => outcomes.1.push((metadata.session_id, error)),
                    }
                    done.add(1);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}
