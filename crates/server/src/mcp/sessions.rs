//! The tools that name sessions.

use super::answer::{ToolReply, in_session};
use super::terminals::TerminalStart;
use super::waiting::{Outcome, Waiter};
use super::{branches, interaction, pictures, runtime, terminals};
use crate::service::{
    Filter, RunAnswer, RunOrder, Service, ServiceError, StartSession, WithContinuity,
};
use serde_json::{Map, Value, json};
use sessile_gateway::answer::{self, Ended, RunResult, Started};
use sessile_gateway::text::{self, Sizing};
use sessile_gateway::tool::answers::{InSession, Reset, SessionListing};
use sessile_gateway::tool::{
    self, NextCall, Order, Run, SessionAction, SessionCall, SessionList, SessionStart, StateExtent,
    all_of, session_of, terminal_of,
};
use sessile_protocol::{Completed, Exec, Language, SessionId};

const RESET: &str =
    "the interpreters are fresh, the history is empty, and what was running is ended";

/// As for `runtime`.
const QUICK_MS: u64 = 100;

pub(super) async fn start(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    let wanted = SessionStart::from_arguments(arguments)?;
    let new = StartSession {
        shell: wanted.shell,
        from: wanted.from,
        cwd: wanted.cwd,
        env: wanted.env,
        idle_timeout_ms: wanted.idle_timeout_ms,
        idle_without_runs: false,
        command_timeout_ms: wanted.command_timeout_ms,
        name: wanted.name,
        auto: wanted.auto,
        durable: wanted.durable,
        ..StartSession::default()
    };
    let metadata = service.start(waiter.caller, new).await?;
    let text = format!(
        "started {} ({}) in {}; run commands in it with session_exec",
        metadata.session_id,
        metadata.command,
        metadata.work_dir.display()
    );
    Ok(ToolReply::of(answer::fields(&Started::from(&metadata)), text))
}

pub(super) async fn end(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    let session = session_of(arguments)?;
    let ended = service.end(waiter.caller, &session).await?;
    let mut text = format!("{session} has ended, with everything that it had started");
    for lost in &ended.lost_at_end {
        text.push_str("; ");
        text.push_str(lost);
    }
    Ok(ToolReply::of(answer::fields(&Ended::new(ended)), text))
}

pub(super) async fn state(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    let session = session_of(arguments)?;
    let extent = if all_of(arguments)? { StateExtent::All } else { StateExtent::Own };
    let (kernels, history) =
        service.state_with_changes(waiter.caller, &session, tool::STATE_HISTORY).await?;
    let exact = in_session(tool::State::of(kernels, history, extent), &session);
    let text = text::answer_text(&exact, &NextCall::session(session.as_str()));
    Ok(ToolReply::of(exact, text))
}

pub(super) async fn reset(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    let session = session_of(arguments)?;
    waiter.check()?;
    let WithContinuity { answer: (), continuity } = service.reset(waiter.caller, &session).await?;
    let reset = InSession::of(Reset::done(), session);
    Ok(branches::reply(&reset, RESET.to_owned(), &continuity))
}

pub(super) async fn jobs(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    interaction::jobs(service, waiter, &session_of(arguments)?).await
}

pub(super) async fn list(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    let wanted = SessionList::from_arguments(arguments)?;
    let limit = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    let filter = Filter { status: wanted.status, limit, ..Filter::default() };
    let (page, next) = service.list(waiter.caller, &filter).await?;
    let rows: Vec<Value> = page.iter().map(|metadata| json!(metadata)).collect();
    let mut text = text::sessions(&rows);
    if next.is_some() {
        text.push_str("\nand older ones; ask for more with limit");
    }
    let exact = SessionListing { sessions: rows, more: next.is_some() };
    Ok(ToolReply::of(answer::fields(&exact), text))
}

pub(super) async fn exec(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    let SessionCall { session, wanted, output } = SessionCall::from_arguments(arguments)?;
    let again = NextCall::session(session.as_str());
    let told = RunReport { sizing: runtime::sizing(output, &again), again };
    match wanted {
        SessionAction::New(run, language) => match terminal_of(arguments)? {
            Some(size) => {
                let exec = Exec { language, terminal: Some(size), ..run.order() };
                match terminals::begin(service, waiter, &session, exec).await? {
                    TerminalStart::ShownStream(told) => Ok(told),
                    TerminalStart::Finished(done, revived) => {
                        Ok(told.reply(service, Outcome::Finished(done), revived).await)
                    }
                }
            }
            None => begin(service, waiter, &session, (&run, language), &told).await,
        },
        SessionAction::Earlier(Order::Wait(run, _)) => {
            let outcome = waiter.wait(service, session.clone(), run).await?;
            Ok(reply_about_earlier(service, waiter, outcome, &told).await)
        }
        SessionAction::Earlier(Order::Interrupt(run)) => {
            runtime::interrupt(service, waiter, &session, run).await
        }
        SessionAction::Earlier(Order::Read(piece)) => {
            runtime::read(service, waiter, &session, piece, &told.again).await
        }
        SessionAction::Earlier(Order::RunInput(feed)) => {
            let outcome = interaction::feed(service, waiter, &session, feed).await?;
            Ok(reply_about_earlier(service, waiter, outcome, &told).await)
        }
        SessionAction::Earlier(Order::Signal(recipient, signal)) => {
            interaction::signal(service, waiter, &session, recipient, signal).await
        }
        SessionAction::Earlier(Order::Jobs) => interaction::jobs(service, waiter, &session).await,
    }
}

async fn begin(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    (run, language): (&Run, Option<Language>),
    told: &RunReport,
) -> Result<ToolReply, ServiceError> {
    waiter.check()?;
    let mut exec = run.order();
    exec.language = language;
    let left = u64::try_from(waiter.left().as_millis()).unwrap_or(u64::MAX);
    let order = RunOrder { exec, wait_ms: Some(QUICK_MS.min(left)) };
    let WithContinuity { answer, continuity } = service.exec(waiter.caller, session, order).await?;
    waiter.turn.pass_on();
    let outcome = match answer {
        RunAnswer::Finished(done) => Outcome::Finished(done),
        RunAnswer::Running { run, .. } => waiter.wait(service, session.clone(), run).await?,
    };
    let revived = continuity.previous().map(answer::revival);
    Ok(told.reply(service, outcome, revived).await)
}

/// Replies for a run that was begun before. A run that goes on is shown by its screen if
/// it has one.
async fn reply_about_earlier(
    service: &Service,
    waiter: &Waiter<'_>,
    outcome: Outcome,
    told: &RunReport,
) -> ToolReply {
    if let Outcome::Running(watch) = &outcome
        && let Some(shown) = terminals::shown(service, waiter, &watch.session, watch.run).await
    {
        return shown;
    }
    told.reply(service, outcome, None).await
}

/// How a run is reported: how much of it, and which call returns to it.
struct RunReport {
    sizing: Sizing,
    again: NextCall,
}

impl RunReport {
    /// Replies with a run in the form of `sessile exec`.
    async fn reply(
        &self,
        service: &Service,
        outcome: Outcome,
        revived: Option<String>,
    ) -> ToolReply {
        let told = |exact: Map<String, Value>| {
            let text = text::answer_text(&exact, &self.again);
            ToolReply::of(exact, text)
        };
        match outcome {
            Outcome::Finished(mut done) => {
                done.notes.splice(0..0, revived);
                let success = is_success(&done);
                let run = RunResult::sized(&done, &self.sizing, false);
                let pictures = pictures::of(&done, service.program()).await;
                let reply = told(answer::fields(&run)).with_pictures(pictures);
                ToolReply { success, ..reply }
            }
            Outcome::Running(watch) => {
                told(answer::fields(&interaction::so_far(&watch, &self.sizing)))
            }
            Outcome::Cancelled(run) => told(runtime::cancelled(run)),
        }
    }
}

fn is_success(done: &Completed) -> bool {
    tool::error_of(done).is_none()
}
