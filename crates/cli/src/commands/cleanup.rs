use crate::progress::{Counter, Progress};
use crate::settings::Settings;
use crate::{args, output};
use clap::Args;
use jiff::Timestamp;
use sessile_gateway::answer::Cleaned;
use sessile_protocol::SessionId;
use sessile_store::{Metadata, SessionStatus};
use std::process::ExitCode;
use std::time::Duration;

/// Remove the directories of ended sessions
///
/// Lost sessions are kept, because they can still be continued; --lost removes
/// them, too. Remains of starts that were interrupted are removed after a day.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile cleanup\n  sessile cleanup --older-than 7d")]
pub(crate) struct Cleanup {
    /// Also remove sessions whose keeper has died
    #[arg(long)]
    lost: bool,
    /// Only sessions that ended (or were last used) longer ago than this
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    older_than: Option<Duration>,
}

/// Removes all ended sessions, and returns their ids.
pub(crate) fn remove_ended(settings: &Settings) -> anyhow::Result<Vec<SessionId>> {
    Cleanup { lost: false, older_than: None }.remove(settings)
}

impl Cleanup {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let cleaned = self.remove(settings)?;
        output::json(&Cleaned { cleaned })?;
        Ok(ExitCode::SUCCESS)
    }

    fn remove(&self, settings: &Settings) -> anyhow::Result<Vec<SessionId>> {
        let now = Timestamp::now();
        let mut cleaned = Vec::new();
        let done = Counter::default();
        let counted = done.clone();
        let progress = Progress::show(move || format!("removed {counted} sessions"));
        for (directory, metadata) in settings.sessions.list()? {
            let is_over = match metadata.status {
                SessionStatus::Terminated => true,
                SessionStatus::Lost => self.lost,
                SessionStatus::Starting | SessionStatus::Active | SessionStatus::Unknown => false,
            };
            // With the lock, no other process can be reviving it. A keeper that has just
            // answered may still hold the lock for a moment.
            let is_old = self.older_than.is_none_or(|age| is_older(&metadata, age, now));
            if is_over && is_old && directory.await_lock()?.is_some() {
                directory.remove()?;
                cleaned.push(metadata.session_id);
                done.add(1);
            }
        }
        for (id, directory) in settings.sessions.unfinished()? {
            if directory.lock()?.is_some() {
                directory.remove()?;
                cleaned.push(id);
                done.add(1);
            }
        }
        drop(progress);
        Ok(cleaned)
    }
}

/// Whether a session was last active longer ago than `age`. A session with an unreadable
/// time is kept.
fn is_older(metadata: &Metadata, age: Duration, now: Timestamp) -> bool {
    let last = metadata.ended_at.as_ref().or(metadata.last_executed_at.as_ref());
    let last = last.unwrap_or(&metadata.created_at).parse::<Timestamp>();
    last.is_ok_and(|last| Duration::try_from(now.duration_since(last)).is_ok_and(|past| past > age))
}
