//! The activity of sessions, and the runs of one: list and follow them.

use super::answer::ToolReply;
use super::runtime;
use super::waiting::Waiter;
use crate::service::{ReadFrom, Scope, Service, ServiceError, TranscriptEvent, WaitFor};
use serde_json::{Map, Value, json};
use sessile_client::top::FIRST;
use sessile_gateway::answer::{self, OutputSoFar, RunResult, RunRow};
use sessile_gateway::following::{Detail, Event, Position};
use sessile_gateway::text::{self, OutputOptions, Sizing, StreamFrom};
use sessile_gateway::tool::answers::{LoggedOutput, LoggedRun, Logs, Top};
use sessile_gateway::tool::{NextCall, SessionLogs, all_of};
use sessile_protocol::{ReadOutput, RunNo, SessionId, StreamView};

/// How many finished runs are searched for those after a position.
const LISTED: u64 = 100_000;

/// Limit for each stream of a run in a structured answer.
const OUTPUT: u64 = 16 << 10;

pub(super) async fn top(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    let scope = if all_of(arguments)? { Scope::All } else { Scope::Live };
    let rows = service.top(waiter.caller, scope, FIRST).await?;
    let rows: Vec<Value> = rows.iter().map(|row| json!(row)).collect();
    let text = text::top(&rows);
    Ok(ToolReply::of(answer::fields(&Top { sessions: rows }), text))
}

pub(super) async fn logs(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    let SessionLogs { session, limit, after, waits } = SessionLogs::from_arguments(arguments)?;
    if let Some(after) = after.clone().filter(|_| waits) {
        let ended = await_end(service, waiter, &session, after);
        tokio::select! {
            biased;
            // Cancels no run: the answer is what there is.
            () = waiter.call.cancelled() => {}
            () = waiter.call.client_leaves() => {}
            // Cancel-safe: nothing was begun.
            outcome = tokio::time::timeout(waiter.left(), ended) => {
                if let Ok(outcome) = outcome {
                    outcome?;
                }
            }
        }
    }
    let listed = if after.is_some() { LISTED } else { limit as u64 };
    let all = service.runs(waiter.caller, &session, listed).await?;
    let (shown, next) = select(all, limit, after);
    let again = NextCall::session(session.as_str());
    let limit = text::LIMIT / shown.len().max(1);
    let sizing = runtime::sizing(OutputOptions { limit, ..OutputOptions::default() }, &again);
    let mut runs = Vec::new();
    for row in &shown {
        runs.push(with_output(service, waiter, &session, row, &sizing).await?);
    }
    let next = next.to_string();
    let text = text::logs(&runs, &again, &next);
    let exact = Logs { runs, after: next, session_id: session };
    Ok(ToolReply::of(answer::fields(&exact), text))
}

/// Waits until a run that was not reported to its end is over, or the session is.
async fn await_end(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    after: Position,
) -> Result<(), ServiceError> {
    let beginning = ReadFrom::After(after);
    let mut follower =
        service.follow_session(waiter.caller, session, beginning, Detail::Ends).await?;
    loop {
        match follower.next().await? {
            None
            | Some(
                TranscriptEvent::Ended(_)
                | TranscriptEvent::Run(
                    Event::Ended(_)
                    | Event::Cancelled { .. }
                    | Event::Closed(_)
                    | Event::NotARun(_),
                ),
            ) => return Ok(()),
            Some(TranscriptEvent::Run(Event::Began(_) | Event::Output { .. } | Event::Left(_))) => {
            }
        }
    }
}

/// Selects the runs to report, and returns the reader's new position. Runs after a
/// position come oldest first, so that none is missed; without a position, the newest are selected.
fn select(all: Vec<RunRow>, limit: usize, after: Option<Position>) -> (Vec<RunRow>, Position) {
    let Some(after) = after else {
        let last = all.last().map(|row| row.run).unwrap_or_default();
        let mut next = Position::after(last);
        all.iter().filter(|row| !row.is_over()).for_each(|row| next.add(row.run));
        let surplus = all.len().saturating_sub(limit);
        return (all.into_iter().skip(surplus).collect(), next);
    };
    let open: Vec<RunNo> = after.open().collect();
    let is_new = |row: &RunRow| row.run > after.last() || open.contains(&row.run);
    let mut shown: Vec<RunRow> = all.into_iter().filter(is_new).collect();
    let rest = shown.split_off(limit.min(shown.len()));
    let last = shown.last().map(|row| row.run).unwrap_or_default().max(after.last());
    let mut next = Position::after(last);
    let unfinished = shown.iter().filter(|row| !row.is_over());
    let later = rest.iter().filter(|row| row.run <= last);
    unfinished.chain(later).for_each(|row| next.add(row.run));
    (shown, next)
}

/// Returns a listed run with its output and how it ended.
async fn with_output(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    listed: &RunRow,
    sizing: &Sizing,
) -> Result<Map<String, Value>, ServiceError> {
    let run = listed.run;
    if listed.event.is_some() {
        return Ok(answer::fields(listed));
    }
    let done = service.finished(waiter.caller, session, run, 0, OUTPUT, WaitFor::Result).await;
    let output = match done {
        Ok(Some(done)) => LoggedOutput::Finished(Box::new(RunResult::sized(&done, sizing, false))),
        Ok(None) => {
            let (stdout, stderr) = latest(service, waiter, session, run).await?;
            let (stdout, stderr) = (StreamFrom::whole(&stdout), StreamFrom::whole(&stderr));
            LoggedOutput::SoFar(Box::new(OutputSoFar::sized(run, stdout, stderr, sizing)))
        }
        Err(error) => LoggedOutput::Dropped { error: error.message.clone() },
    };
    Ok(answer::fields(&LoggedRun { row: listed, output }))
}

/// Returns the end of a run's output so far.
async fn latest(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    run: RunNo,
) -> Result<(StreamView, StreamView), ServiceError> {
    // Beyond all bytes: the answer says where the streams end.
    let end = ReadOutput {
        stdout_from: u64::MAX,
        stderr_from: u64::MAX,
        wait: false,
        ..ReadOutput::waiting(run)
    };
    let view = service.output(waiter.caller, session, end).await?;
    let read = ReadOutput {
        stdout_from: view.stdout_next.saturating_sub(OUTPUT),
        stderr_from: view.stderr_next.saturating_sub(OUTPUT),
        max: OUTPUT,
        ..end
    };
    let view = service.output(waiter.caller, session, read).await?;
    Ok((shown(view.stdout, view.stdout_next), shown(view.stderr, view.stderr_next)))
}

/// Returns a view of the end of a stream, up to the last whole character.
fn shown(mut bytes: Vec<u8>, total: u64) -> StreamView {
    let half = bytes.split_off(answer::whole_end(&bytes));
    let total = total - half.len() as u64;
    if bytes.len() as u64 == total {
        return StreamView { head: bytes, tail: Vec::new(), total, stored: total };
    }
    StreamView { head: Vec::new(), tail: bytes, total, stored: total }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessile_protocol::{Language, OpenRun, RunPhase};

    fn run(number: u64, is_over: bool) -> RunRow {
        let run = OpenRun {
            run: RunNo(number),
            language: Language::Bash,
            command: String::new(),
            phase: RunPhase::Running,
            timestamp: None,
            interactive: false,
            waiting_for_input: false,
            terminal: false,
            queued: None,
        };
        RunRow { exit_code: is_over.then_some(0), ..RunRow::from(&run) }
    }

    fn told(all: &[RunRow], limit: usize, after: Option<&str>) -> (Vec<u64>, String) {
        let after = after.map(|text| text.parse().unwrap());
        let (shown, next) = select(all.to_vec(), limit, after);
        (shown.iter().map(|row| row.run.0).collect(), next.to_string())
    }

    #[test]
    fn a_reader_that_goes_on_is_told_every_end() {
        let all = [run(1, true), run(2, false), run(3, true), run(4, true), run(5, false)];
        assert_eq!(told(&all, 3, None), (vec![3, 4, 5], "5_2_5".to_owned()));
        assert_eq!(told(&all, 9, Some("1")), (vec![2, 3, 4, 5], "5_2_5".to_owned()));
        assert_eq!(told(&all, 2, Some("1")), (vec![2, 3], "3_2".to_owned()));
        assert_eq!(told(&all, 2, Some("3_2")), (vec![2, 4], "4_2".to_owned()));
        assert_eq!(told(&all, 1, Some("5_2~4")), (vec![2], "5_2~4".to_owned()));
        assert_eq!(told(&all[..1], 9, Some("5_2~4")), (vec![], "5".to_owned()));
        assert_eq!(told(&[], 9, None), (vec![], "0".to_owned()));
    }
}
