//! The tools for terminals of runs.

use super::answer::ToolReply;
use super::pictures::Picture;
use super::waiting::{Waiter, cancelled};
use crate::keepers::blocking;
use crate::service::{
    AwaitedScreen, RunAnswer, RunOrder, ScreenWait, Service, ServiceError, WaitFor, WithContinuity,
    check_drawable, internal,
};
use serde_json::{Map, Value};
use sessile_gateway::answer;
use sessile_gateway::text;
use sessile_gateway::tool::answers::SessionScreen;
use sessile_gateway::tool::{KeysCall, NextCall, ResizeCall, ScreenCall, ScreenForm};
use sessile_protocol::{Completed, Exec, RunNo, RunPhase, SessionId};
use sessile_terminal::render;
use std::time::Duration;

/// Default for how long a call waits for a screen.
const WAIT: Duration = Duration::from_secs(10);

/// How long a screen must be unchanged after keys: longer than programs take to react to a key.
const SETTLE_MS: u64 = 200;

/// How long a command may take to end, or to ask for input, before its screen is read.
const BEGINNING: Duration = Duration::from_secs(1);

/// The state of a command with a terminal after its start.
#[derive(Debug)]
pub(super) enum TerminalStart {
    /// With a note on what became of its session.
    Finished(Box<Completed>, Option<String>),
    ShownStream(ToolReply),
}

/// Begins a command with a terminal. Returns its result if it ends at once, and otherwise
/// its screen, once it waits for input or is unchanged.
pub(super) async fn begin(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    mut exec: Exec,
) -> Result<TerminalStart, ServiceError> {
    waiter.check()?;
    exec.until_input = true;
    let order = RunOrder { exec, wait_ms: Some(milliseconds(waiter.left().min(BEGINNING))) };
    let WithContinuity { answer, continuity } = service.exec(waiter.caller, session, order).await?;
    waiter.turn.pass_on();
    let revived = continuity.previous().map(answer::revival);
    let run = match answer {
        RunAnswer::Finished(done) => return Ok(TerminalStart::Finished(done, revived)),
        RunAnswer::Running { run, .. } => run,
    };
    let wait = screen_wait(waiter, None, None, None)?;
    let seen =
        while_wanted(waiter, run, service.screen(waiter.caller, session, run, &wait)).await?;
    let mut told = screen_reply(service, waiter, session, seen, ScreenForm::Text).await?;
    if let Some(revived) = revived {
        told.text = format!("{revived}\n{}", told.text);
    }
    if told.exact.get("running") == Some(&Value::Bool(true)) {
        let call = NextCall::session(session.as_str()).wait(run.0);
        told.text.push_str(&format!(
            "\nIt goes on. Press keys with session_keys, look again with session_screen: {call}"
        ));
    }
    Ok(TerminalStart::ShownStream(told))
}

pub(super) async fn screen(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    let call = ScreenCall::from_arguments(arguments)?;
    let (session, run) = (&call.session, call.run);
    let is_any = call.wait_for.is_some() || call.settle_ms.is_some();
    let wait = match is_any {
        true => screen_wait(waiter, call.wait_for.as_deref(), call.settle_ms, call.wait_ms)?,
        false => ScreenWait::default(),
    };
    let seen =
        while_wanted(waiter, run, service.screen(waiter.caller, session, run, &wait)).await?;
    screen_reply(service, waiter, session, seen, call.look).await
}

pub(super) async fn keys(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    let KeysCall { keys, screen: call } = KeysCall::from_arguments(arguments)?;
    waiter.check()?;
    let (session, run) = (&call.session, call.run);
    let wait = screen_wait(waiter, call.wait_for.as_deref(), call.settle_ms, call.wait_ms)?;
    let pressed = service.press(waiter.caller, session, run, keys, &wait);
    let seen = while_wanted(waiter, run, pressed).await?;
    screen_reply(service, waiter, session, seen, call.look).await
}

pub(super) async fn resize(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    let ResizeCall { session, run, size } = ResizeCall::from_arguments(arguments)?;
    service.resize(waiter.caller, &session, run, size).await?;
    let wait = screen_wait(waiter, None, None, None)?;
    let seen =
        while_wanted(waiter, run, service.screen(waiter.caller, &session, run, &wait)).await?;
    screen_reply(service, waiter, &session, seen, ScreenForm::Text).await
}

/// Returns the current screen of a run with a terminal.
pub(super) async fn shown(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    run: RunNo,
) -> Option<ToolReply> {
    let seen = service.screen(waiter.caller, session, run, &ScreenWait::default()).await.ok()?;
    screen_reply(service, waiter, session, seen, ScreenForm::Text).await.ok()
}

/// Returns the wait that the model wants; by default, until the screen is unchanged.
fn screen_wait(
    waiter: &Waiter<'_>,
    pattern: Option<&str>,
    settle_ms: Option<u64>,
    wait_ms: Option<u64>,
) -> Result<ScreenWait, ServiceError> {
    let settle_ms = if pattern.is_none() { settle_ms.or(Some(SETTLE_MS)) } else { settle_ms };
    let at_most = wait_ms.map_or(WAIT, Duration::from_millis).min(waiter.left());
    ScreenWait::new(pattern, settle_ms, milliseconds(at_most))
}

/// Waits for a screen until the client cancels, which leaves the run alone.
async fn while_wanted(
    waiter: &Waiter<'_>,
    run: RunNo,
    look: impl Future<Output = Result<AwaitedScreen, ServiceError>>,
) -> Result<AwaitedScreen, ServiceError> {
    tokio::select! {
        biased;
        () = waiter.call.cancelled() => Err(cancelled(&format!("cancelled; run {run} goes on"))),
        () = waiter.call.client_leaves() => Err(cancelled(&format!("the input has ended; run {run} goes on"))),
        seen = look => Ok(seen?),
    }
}

async fn screen_reply(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    seen: AwaitedScreen,
    look: ScreenForm,
) -> Result<ToolReply, ServiceError> {
    let run = seen.view.run;
    let mut exit_code = None;
    if seen.view.phase >= RunPhase::Exited {
        let done = service.finished(waiter.caller, session, run, 0, 0, WaitFor::Result).await;
        exit_code = done.ok().flatten().map(|done| done.exit_code);
    }
    let screen = answer::Screen::of(&seen.view, seen.awaited);
    let text = text::terminal(&seen.view, seen.awaited, exit_code, text::LIMIT);
    let exact = SessionScreen { screen, session_id: session.clone(), exit_code };
    let told = ToolReply::of(answer::fields(&exact), text);
    match look {
        ScreenForm::Text => Ok(told),
        ScreenForm::Picture => {
            check_drawable(&seen.view)?;
            let drawn = blocking(move || {
                render::png(&seen.view.screen).map_err(|error| internal(&error.to_string()))
            });
            Ok(told.with_pictures(Picture::png(&drawn.await?).into()))
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
