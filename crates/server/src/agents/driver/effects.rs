//! Performs the decided effects, in order.

use super::Driver;
use crate::agents::audit;
use crate::agents::command_agent::CommandAgentRun;
use crate::agents::following::{DeltaSender, Progress, Retrying};
use crate::agents::model::{Backend, ModelRequest, ReplyObservers};
use crate::agents::perform::CallExecution;
use crate::agents::profile::now_ms;
use crate::agents::rewinding;
use crate::agents::storing::StoreChange;
use crate::keepers::blocking;
use crate::service::ServiceError;
use futures_util::future::BoxFuture;
use sessile_agent::model::Usage;
use sessile_agent::thread::{Entry, EntryKind};
use sessile_agent::{Effect, Input, Purpose, Question, Stage};
use tokio::sync::{mpsc, watch};

/// How many activities of a command-line agent may wait to be recorded.
const ACTIVITIES: usize = 64;

const SUMMARY: &str = "Sum up this conversation for yourself, so that you can go on without it. \
    Say what the task is, in the user's own deltas, what has been done and found out, which files \
    and variables matter, and what is left to do. Answer with the summary alone.";

impl Driver {
    pub(super) async fn perform(&mut self, effects: Vec<Effect>) -> Result<(), ServiceError> {
        for effect in effects {
            match effect {
                Effect::Record(entry) => self.record(entry).await?,
                Effect::Ask(asked) => {
                    // While the model thinks, the keeper is idle.
                    self.jobs.look();
                    self.status.send_if_modified(|status| status.retrying.take().is_some());
                    let answer = self.ask(asked);
                    self.current = Some(answer);
                }
                // `next` wakes up when it is due.
                Effect::WaitUntil { at_ms, attempt, failure } => {
                    let after_ms = at_ms.saturating_sub(now_ms());
                    let retrying = Retrying { attempt, after_ms, failure };
                    // For watchers that come later, then for current ones.
                    self.status.send_modify(|status| status.retrying = Some(retrying.clone()));
                    let _ = self.progress.send(Progress::Retry(retrying));
                }
                Effect::Approve(call) => {
                    self.status.send_modify(|status| status.waiting = Some(call.id.clone()));
                }
                Effect::Perform { call, key, is_repeated, intent } => {
                    let performance = CallExecution {
                        service: self.service.clone(),
                        caller: self.caller.clone(),
                        session: self.session.clone(),
                        call,
                        key,
                        is_repeated,
                        intent,
                        running: self.running.clone(),
                        uploader: self.uploader.clone(),
                    };
                    self.running.begin();
                    self.jobs.watch();
                    self.current = Some(Box::pin(performance.carry_out()));
                }
                Effect::Interrupt => self.interrupt().await,
                Effect::Checkpoint { step } => {
                    let names =
                        rewinding::surplus(self.agent.entries(), self.profile.checkpoints.keep);
                    let marking = rewinding::StepCheckpoint {
                        service: self.service.clone(),
                        caller: self.caller.clone(),
                        session: self.session.clone(),
                        step,
                        files: self.profile.checkpoints.files,
                        surplus: names,
                        running: self.running.clone(),
                    };
                    self.current = Some(Box::pin(marking.take()));
                }
                Effect::Rewind { checkpoint } => {
                    let (service, caller) = (self.service.clone(), self.caller.clone());
                    let rewound = self.rewinder.rewind_session(
                        service,
                        caller,
                        self.session.clone(),
                        checkpoint,
                    );
                    self.current = Some(Box::pin(rewound));
                }
                Effect::Ended { task, .. } => {
                    self.jobs.look();
                    tracing::info!(session = %self.session, %task, "a task has ended");
                }
            }
        }
        Ok(())
    }

    pub(super) async fn record(&mut self, entry: Entry) -> Result<(), ServiceError> {
        let number = entry.entry;
        let is_outcome = matches!(entry.what, EntryKind::Outcome(_));
        let Some(mut file) = self.file.take() else { return Err(ServiceError::unexpected()) };
        let (directory, profile) = (self.directory.clone(), self.profile.clone());
        let (file, outcome) = blocking(move || {
            let outcome = file.append(&entry);
            let is_told = outcome.is_ok() && audit::changes_record(&entry);
            if is_told {
                // Can be lost: the thread has everything, and the next entry rebuilds the record.
                let _ = audit::write(&directory, &profile, file.digest());
            }
            let is_open = file.digest().is_open();
            Ok((file, outcome.map(|()| (is_told, is_open))))
        })
        .await?;
        self.file = Some(file);
        // Published only now: decisions are ahead of the disk, and others see the disk.
        let (is_told, is_busy) = outcome?;
        if is_told || is_outcome {
            self.uploader.keep(if is_told { StoreChange::Record } else { StoreChange::Thread });
        }
        self.status.send_modify(|status| {
            status.entries = number;
            status.is_busy = is_busy;
            (status.waiting, status.retrying) = (None, None);
        });
        Ok(())
    }

    fn ask(&mut self, asked: Question) -> BoxFuture<'static, Input> {
        let mut turns = self.agent.turns(asked.purpose);
        let (model, client) = match &self.backend {
            Backend::Model { model, client } => (model.clone(), client.clone()),
            Backend::Missing(failure) => {
                let failure = failure.clone();
                return Box::pin(async move { Input::Failed(failure) });
            }
        };
        if let Some(program) = &model.command {
            let (activities, told) = mpsc::channel(ACTIVITIES);
            (self.activities, self.finished) = (Some(told), None);
            let command_agent = CommandAgentRun {
                service: self.service.clone(),
                caller: self.caller.clone(),
                session: self.session.clone(),
                program: program.clone(),
                thread: self.profile.thread_id.to_string(),
                instructions: self.profile.instructions.clone(),
                turns,
                asked,
                running: self.running.clone(),
                uploader: self.uploader.clone(),
                activities,
            };
            self.running.begin();
            self.jobs.watch();
            return Box::pin(command_agent.answer());
        }
        let deltas = match asked.purpose {
            Purpose::Step => Some(DeltaSender::after(self.status.borrow().entries, &self.progress)),
            // A summary is not an answer to the task.
            Purpose::Summary | Purpose::ShortSummary => {
                turns.push(sessile_agent::conversation::Turn::User(SUMMARY.to_owned()));
                None
            }
        };
        // A model's server that finds calls in a conversation wants the tools declared,
        // also for a summary.
        let tools = self.tools.clone();
        let question =
            ModelRequest { instructions: self.profile.instructions.clone(), turns, tools };
        let (used, told) = watch::channel(Usage::default());
        self.used = told;
        let observers = ReplyObservers { deltas, used };
        Box::pin(async move {
            match model.ask(&client, &question, &observers).await {
                Ok(reply) => Input::Replied(reply),
                Err(failure) => Input::Failed(failure),
            }
        })
    }

    async fn interrupt(&mut self) {
        if let Some(run) = self.running.stop() {
            let interrupted = self.service.interrupt(&self.caller, &self.session, Some(run)).await;
            if let Err(error) = interrupted {
                tracing::warn!(session = %self.session, %error, "a run is not interrupted");
            }
        }
        match self.agent.stage() {
            // Its outcome arrives like that of any call.
            Stage::Performing { .. } => {}
            Stage::Idle
            | Stage::Asking { .. }
            | Stage::Waiting { .. }
            | Stage::Approving { .. }
            | Stage::Checkpointing { .. }
            | Stage::Rewinding => {
                self.current = None;
                (self.activities, self.finished) = (None, None);
                self.running.set(None);
            }
        }
    }
}
