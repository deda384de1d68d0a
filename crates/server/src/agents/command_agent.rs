//! A command-line agent in the place of a model: a program that takes a task and writes
//! JSON lines, run in the session like any command.
//!
//! Its run has a key, so that a server that starts after a crash finds the run, going or
//! ended, and starts no second one. Activities already recorded before the crash are skipped.

use super::model::CommandAgent;
use super::perform::CurrentOperation;
use super::storing::{NotStored, ThreadUploader};
use crate::service::{Caller, Cursor, ErrorCode, Event, Service, ServiceError};
use sessile_agent::command::ProgramOutput;
use sessile_agent::conversation::Turn;
use sessile_agent::model::{Failure, FailureKind};
use sessile_agent::thread::Activity;
use sessile_agent::{Input, Question};
use sessile_protocol::{Exec, Language, SessionId};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// How many bytes of its stderr are kept for the message of a failure.
const ERRORS: usize = 2000;

/// Placeholder for the task in an argument.
const TASK: &str = "{task}";

pub(super) struct CommandAgentRun {
    pub(super) service: Arc<Service>,
    pub(super) caller: Caller,
    pub(super) session: SessionId,
    pub(super) program: CommandAgent,
    pub(super) thread: String,
    pub(super) instructions: String,
    pub(super) turns: Vec<Turn>,
    pub(super) asked: Question,
    pub(super) running: CurrentOperation,
    pub(super) uploader: ThreadUploader,
    pub(super) activities: mpsc::Sender<Activity>,
}

impl CommandAgentRun {
    pub(super) async fn answer(self) -> Input {
        // The program has effects itself, so starting it needs the store like any call.
        match self.uploader.secure().await {
            Ok(()) => {}
            Err(NotStored::Moved(failure)) => return Input::Stopped(failure),
            Err(NotStored::Failed(error)) => {
                let message = format!("it was not started: {error}; try again later");
                return Input::Failed(Failure::new(FailureKind::Crashed, message));
            }
        }
        let running = self.running.clone();
        let answered = self.run().await;
        running.set(None);
        match answered {
            Ok(input) => input,
            Err(error) => {
                let is_lost =
                    matches!(error.code, ErrorCode::RunLost | ErrorCode::KeeperUnavailable);
                let rest = "; how far it got is not known, and it was not started again";
                let message = format!("{error}{}", if is_lost { rest } else { "" });
                Input::Failed(Failure::new(FailureKind::Crashed, message))
            }
        }
    }

    async fn run(self) -> Result<Input, ServiceError> {
        let name = self.program.command.first().cloned().unwrap_or_default();
        let continuity = self.service.wake_agent(&self.caller, &self.session).await?;
        self.running.became(continuity);
        let begun = self.service.begin(&self.caller, &self.session, self.order()).await?.answer;
        self.running.set(Some(begun));
        let mut follower =
            self.service.follow(&self.caller, &self.session, begun, Cursor::default()).await?;
        let mut account = ProgramOutput::default();
        let mut told = ActivityForwarder { known: self.asked.activities, to: self.activities };
        let mut errors = Vec::new();
        while let Some((_, event)) = follower.next().await? {
            match event {
                Event::Started | Event::Closed => {}
                Event::Stdout(written) => match account.push(&written.bytes) {
                    Ok(activities) => told.forward(activities).await,
                    Err(failure) => return Ok(Input::Failed(failure)),
                },
                Event::Stderr(written) => {
                    errors.extend_from_slice(&written.bytes);
                    let surplus = errors.len().saturating_sub(ERRORS);
                    errors.drain(..surplus);
                }
                Event::Exited(done) => {
                    let errors = String::from_utf8_lossy(&errors);
                    let (last, reply) = account.finish(&name, done.exit_code, &errors);
                    told.forward(last).await;
                    return Ok(match reply {
                        Ok(reply) => Input::Replied(reply),
                        Err(failure) => Input::Failed(failure),
                    });
                }
            }
        }
        Err(ServiceError::new(ErrorCode::RunLost, format!("{name} was lost with its session")))
    }

    fn order(&self) -> Exec {
        let task = self.turns.iter().rev().find_map(|turn| match turn {
            Turn::User(text) => Some(text.as_str()),
            Turn::Model(_) | Turn::Outcomes(_) => None,
        });
        let task = task.unwrap_or_default();
        let takes_word = self.program.command.iter().any(|word| word.contains(TASK));
        let words = self.program.command.iter().map(|word| quoted(&word.replace(TASK, task)));
        let stdin = (!takes_word).then(|| task.as_bytes().to_vec().into());
        let env = BTreeMap::from([
            ("SESSILE_AGENT_THREAD".to_owned(), self.thread.clone()),
            ("SESSILE_AGENT_INSTRUCTIONS".to_owned(), self.instructions.clone()),
        ]);
        Exec {
            text: words.collect::<Vec<_>>().join(" ").into_bytes(),
            language: Some(Language::Bash),
            // The task's own limits bound the time.
            timeout_ms: Some(0),
            stdin,
            env,
            key: Some(self.asked.key.clone()),
            ..Exec::default()
        }
    }
}

/// Returns a word quoted for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Forwards activities, except those recorded before a crash.
struct ActivityForwarder {
    known: u64,
    to: mpsc::Sender<Activity>,
}

impl ActivityForwarder {
    async fn forward(&mut self, activities: Vec<Activity>) {
        for activity in activities {
            if self.known > 0 {
                self.known -= 1;
                continue;
            }
            // Fails if the task was cancelled: nobody listens any more.
            let _ = self.to.send(activity).await;
        }
    }
}
