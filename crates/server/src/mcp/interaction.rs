//! Input, signals and jobs.

use super::answer::{Refusal, Told};
use super::waiting::{Outcome, Waiter};
use crate::service::{Service, Watch};
use serde_json::{Map, Value, json};
use sessile_gateway::text;
use sessile_gateway::tool::{self, Feed, Recipient};
use sessile_protocol::{ReadOutput, SessionId};

/// Finished runs that are listed with those that go on.
const FINISHED: u64 = 10;

/// Gives a run something to read; what comes of it. Of a run that goes on, only
/// what it has written since.
pub(super) async fn feed(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    feed: Feed,
) -> Result<Outcome, Refusal> {
    waiter.check()?;
    let Feed { run, text, eof } = feed;
    // Beyond all bytes: that is answered with where these end.
    let end = ReadOutput {
        stdout_from: u64::MAX,
        stderr_from: u64::MAX,
        wait: false,
        ..ReadOutput::waiting(run)
    };
    let before = service.output(waiter.caller, session, end).await?;
    service.input(waiter.caller, session, run, text.into_bytes(), eof).await?;
    let cursors = [before.stdout_next, before.stderr_next];
    let watch = Watch::since(session.clone(), run, cursors);
    Ok(waiter.follow(service, watch).await?)
}

/// What has to be known of a run that goes on, besides its output.
pub(super) fn circumstances(watch: &Watch) -> Map<String, Value> {
    let mut fields = Map::new();
    if watch.waiting_for_input {
        fields.insert("waiting_for_input".to_owned(), true.into());
    }
    for (name, first) in ["stdout_from", "stderr_from"].into_iter().zip(watch.first()) {
        if first > 0 {
            fields.insert(name.to_owned(), first.into());
        }
    }
    fields
}

pub(super) async fn signal(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    recipient: Recipient,
    signal: i32,
) -> Result<Told, Refusal> {
    let (processes, name, number) = match recipient {
        Recipient::Run(run) => {
            (service.signal(waiter.caller, session, run, signal).await?, "run", run.0)
        }
        Recipient::Job(pid) => {
            (service.signal_job(waiter.caller, session, pid, signal).await?, "pid", pid.into())
        }
    };
    let mut exact = tool::success("processes", processes);
    exact.insert(name.to_owned(), number.into());
    exact.insert("session_id".to_owned(), json!(session));
    let text = match processes {
        1 => "1 process got the signal".to_owned(),
        count => format!("{count} processes got the signal"),
    };
    Ok(Told::of(exact, text))
}

/// All runs that go on, the newest that have finished, and all jobs.
pub(super) async fn jobs(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
) -> Result<Told, Refusal> {
    let runs = service.runs(waiter.caller, session, FINISHED).await?;
    let jobs = sessile_gateway::jobs(&service.jobs(waiter.caller, session).await?);
    let text = text::jobs(&runs, &jobs);
    let mut exact = tool::success("runs", runs);
    exact.insert("jobs".to_owned(), jobs.into());
    exact.insert("session_id".to_owned(), json!(session));
    Ok(Told::of(exact, text))
}
