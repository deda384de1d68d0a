//! The `runtime` tool.

use super::answer::{ToolReply, in_session};
use super::pictures::{self, Pictures};
use super::waiting::{Outcome, Waiter};
use super::workspace_services::WorkspaceServices;
use super::{branches, interaction};
use crate::service::{Service, ServiceError, ToolAnswer};
use serde_json::{Map, Value};
use sessile_gateway::answer;
use sessile_gateway::text::{self, OutputOptions, Rest, Sizing};
use sessile_gateway::tool::answers::{Failed, Finished, InSession, Interrupt, Read, Success};
use sessile_gateway::tool::{self, Action, Call, NextCall, Order, Piece, RunAction, Stream};
use sessile_protocol::{ReadOutput, RunNo, RunPhase, SessionId};

/// How long the first request waits for a run's end, so that most commands take one round trip.
const QUICK_MS: u64 = 100;

pub(super) async fn answer(
    home: &WorkspaceServices,
    waiter: &Waiter<'_>,
    arguments: Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    match Call::from_arguments(&arguments)? {
        Call::New(request) => {
            waiter.check()?;
            let service = home.service(waiter.caller, &request.target).await?;
            let again = NextCall::runtime(arguments);
            let (exact, pictures) = begin(&service, waiter, &request, &again).await?;
            let text = text::answer_text(&exact, &again);
            Ok(ToolReply::of(exact, text).with_pictures(pictures))
        }
        Call::Branch { target, branch } => {
            let service = home.service(waiter.caller, &target).await?;
            branches::in_workspace(&service, waiter, &target, branch).await
        }
        Call::Earlier { target, order, output } => {
            let service = home.service(waiter.caller, &target).await?;
            let session = service.workspace_session(waiter.caller, &target).await?;
            let again = NextCall::runtime(arguments);
            come_back(&service, waiter, &session, order, (&sizing(output, &again), &again)).await
        }
    }
}

async fn begin(
    service: &Service,
    waiter: &Waiter<'_>,
    request: &tool::Request,
    again: &NextCall,
) -> Result<(Map<String, Value>, Pictures), ServiceError> {
    let left = u64::try_from(waiter.left().as_millis()).unwrap_or(u64::MAX);
    let wait_ms = Some(QUICK_MS.min(left));
    let begun = service.tool_waiting(waiter.caller, request, wait_ms, Some(again)).await?;
    waiter.turn.pass_on();
    match begun {
        ToolAnswer::Done(answer) => Ok((answer, Pictures::default())),
        ToolAnswer::Finished(answer, done) => {
            Ok((answer, pictures::of(&done, service.program()).await))
        }
        ToolAnswer::Running { session, run, note, answer: _ } => {
            let shape = match request.action {
                Action::Eval(_) => RunAction::Eval,
                Action::Exec(_) | Action::State(_) | Action::Reset | Action::History { .. } => {
                    RunAction::Exec
                }
            };
            let outcome = waiter.wait(service, session.clone(), run).await?;
            let exact = render(&outcome, shape, &sizing(request.output, again));
            let exact = answer::fields(&InSession::noted(exact, note));
            Ok((exact, outcome.pictures(service).await))
        }
    }
}

/// Returns the limits of an answer; the rest is read with another call.
pub(super) fn sizing(options: OutputOptions, again: &NextCall) -> Sizing {
    Sizing { options, rest: Rest::Call(again.clone()) }
}

fn render(outcome: &Outcome, shape: RunAction, sizing: &Sizing) -> Map<String, Value> {
    match outcome {
        Outcome::Finished(done) => answer::fields(&Finished::of(done, shape, sizing)),
        Outcome::Running(watch) => answer::fields(&Success::of(interaction::so_far(watch, sizing))),
        Outcome::Cancelled(run) => cancelled(*run),
    }
}

/// Returns the answer to a cancelled call. Nobody reads it, but a call must have one.
pub(super) fn cancelled(run: RunNo) -> Map<String, Value> {
    answer::fields(&Failed::cancelled(run))
}

/// Handles an order for a run that was begun before.
async fn come_back(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    order: Order,
    (sizing, again): (&Sizing, &NextCall),
) -> Result<ToolReply, ServiceError> {
    match order {
        Order::Wait(run, shape) => {
            let outcome = waiter.wait(service, session.clone(), run).await?;
            let exact = in_session(render(&outcome, shape, sizing), session);
            let text = text::answer_text(&exact, again);
            Ok(ToolReply::of(exact, text).with_pictures(outcome.pictures(service).await))
        }
        Order::Interrupt(run) => interrupt(service, waiter, session, run).await,
        Order::Read(piece) => read(service, waiter, session, piece, again).await,
        Order::RunInput(feed) => {
            let outcome = interaction::feed(service, waiter, session, feed).await?;
            let exact = in_session(render(&outcome, RunAction::Exec, sizing), session);
            let text = text::answer_text(&exact, again);
            Ok(ToolReply::of(exact, text))
        }
        Order::Signal(recipient, signal) => {
            interaction::signal(service, waiter, session, recipient, signal).await
        }
        Order::Jobs => interaction::jobs(service, waiter, session).await,
    }
}

pub(super) async fn interrupt(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    run: Option<RunNo>,
) -> Result<ToolReply, ServiceError> {
    let interrupted = service.interrupt(waiter.caller, session, run).await?;
    let interrupt = Interrupt::of(interrupted, run, session.clone());
    let message = interrupt.message.clone();
    Ok(ToolReply::of(answer::fields(&Success::of(interrupt)), message))
}

pub(super) async fn read(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    piece: Piece,
    again: &NextCall,
) -> Result<ToolReply, ServiceError> {
    let Piece { run, stream, from, max } = piece;
    // The offset of the other stream is beyond all bytes.
    let (stdout_from, stderr_from) = match stream {
        Stream::Stdout => (from, u64::MAX),
        Stream::Stderr => (u64::MAX, from),
    };
    let read =
        ReadOutput { stdout_from, stderr_from, max, wait: false, ..ReadOutput::waiting(run) };
    let view = service.output(waiter.caller, session, read).await?;
    let (bytes, next) = match stream {
        Stream::Stdout => (view.stdout, view.stdout_next),
        Stream::Stderr => (view.stderr, view.stderr_next),
    };
    let more = bytes.len() as u64 == max;
    let is_running = view.phase < RunPhase::Exited;
    // The rest of a character may be in the next piece.
    let piece = answer::Piece::of(&bytes, next, !more && !is_running);
    let read = Read {
        run,
        stream: stream.as_str(),
        from,
        data: piece.data,
        next: piece.next,
        more,
        running: is_running,
        session_id: session.clone(),
        encoding: piece.encoding,
    };
    let exact = answer::fields(&Success::of(read));
    let text = text::chunk(&exact, again);
    Ok(ToolReply::of(exact, text))
}
