//! Input, signals and jobs.

use super::answer::ToolReply;
use super::waiting::{Outcome, Waiter};
use crate::service::{Service, ServiceError, Watch};
use serde_json::{Map, Value};
use sessile_gateway::answer::{self, Job, OutputSoFar};
use sessile_gateway::text::{self, Sizing, StreamFrom};
use sessile_gateway::tool::answers::{Jobs, Signal, Success};
use sessile_gateway::tool::{RunInput, SignalTarget};
use sessile_protocol::{ReadOutput, SessionId};

/// How many finished runs are listed beside the running ones.
const FINISHED: u64 = 10;

/// Writes input to a run and returns what comes of it; for a run that goes on, only the
/// output since then.
pub(super) async fn feed(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    feed: RunInput,
) -> Result<Outcome, ServiceError> {
    waiter.check()?;
    let RunInput { run, text, eof } = feed;
    // Beyond all bytes: the answer says where the streams end.
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
    waiter.follow(service, watch).await
}

/// Returns the output so far of a run that goes on.
pub(super) fn so_far(watch: &Watch, sizing: &Sizing) -> OutputSoFar {
    let (stdout, stderr) = watch.views();
    let [stdout_from, stderr_from] = watch.first();
    let stdout = StreamFrom { view: &stdout, first: stdout_from };
    let stderr = StreamFrom { view: &stderr, first: stderr_from };
    let so_far = OutputSoFar::sized(watch.run, stdout, stderr, sizing);
    let (waiting_for_input, queued) = (watch.waiting_for_input, watch.queued.clone());
    OutputSoFar { waiting_for_input, queued, ..so_far }
}

pub(super) async fn signal(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    recipient: SignalTarget,
    signal: i32,
) -> Result<ToolReply, ServiceError> {
    let (processes, run, pid) = match recipient {
        SignalTarget::Run(run) => {
            (service.signal(waiter.caller, session, run, signal).await?, Some(run), None)
        }
        SignalTarget::Job(pid) => {
            (service.signal_job(waiter.caller, session, pid, signal).await?, None, Some(pid))
        }
    };
    let exact = Success::of(Signal { processes, run, pid, session_id: session.clone() });
    let text = match processes {
        1 => "1 process got the signal".to_owned(),
        count => format!("{count} processes got the signal"),
    };
    Ok(ToolReply::of(answer::fields(&exact), text))
}

/// Lists all running runs, the newest finished ones, and all jobs.
pub(super) async fn jobs(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
) -> Result<ToolReply, ServiceError> {
    let runs = service.runs(waiter.caller, session, FINISHED).await?;
    let jobs = service.jobs(waiter.caller, session).await?;
    let jobs = jobs.iter().map(Job::from).collect();
    let exact = answer::fields(&Success::of(Jobs { runs, jobs, session_id: session.clone() }));
    let text = text::jobs(rows(&exact, "runs"), rows(&exact, "jobs"));
    Ok(ToolReply::of(exact, text))
}

fn rows<'a>(exact: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    exact.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
