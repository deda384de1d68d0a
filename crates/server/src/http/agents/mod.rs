//! Agents: create them, give them tasks, watch them, rewind them.

mod bodies;
mod moving;

pub(super) use bodies::{ApproveEvent, DeltaEvent, RetryEvent, ThreadEvent};
pub use bodies::{Decision, RewindAgent, StartAgent};
pub(super) use moving::{__path_export, __path_import, __path_moved, export, import, moved};

use super::body::{AgentCall, Body, Params};
use super::branch_wire::ForkRequest;
use super::runs;
use super::stream::{KEEP_ALIVE, failure};
use super::wire;
use super::{Answer, App, Created};
use crate::agents::{AgentEvent, AgentFollower, AgentView, Retrying, TaskView};
use crate::service::{Caller, ErrorCode, OrderKey, ServiceError, StreamGuard};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bodies::{
    Accepted, AgentList, NewTask, RewoundAgent, TaskBegun, TaskList, TasksQuery, ThreadPage,
    ThreadQuery, WaitQuery,
};
use futures_util::stream;
use serde::Serialize;
use serde_json::json;
use sessile_agent::RewindTo;
use sessile_agent::ids::TaskNo;
use sessile_agent::thread::Verdict;
use sessile_gateway::answer::Rewound;
use sessile_protocol::SessionId;
use std::convert::Infallible;
use std::time::Duration;

/// Create an agent
#[utoipa::path(
    post, path = "/v1/agents", operation_id = "start_agent", tag = "agents",
    params(("Idempotency-Key" = Option<String>, Header, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$", description = "A key for this request. A request with the same key gets the agent of the first one")),
    request_body = StartAgent,
    responses((status = 201, body = AgentView))
)]
pub(super) async fn start(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Body(body): Body<StartAgent>,
) -> Created<AgentView> {
    let key = runs::key(&headers)?.map(|key| OrderKey::new(key, &format!("agent {body:?}")));
    let made = app.service.create_agent(&caller, key, body.order()?).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// List agents
#[utoipa::path(
    get, path = "/v1/agents", operation_id = "list_agents", tag = "agents",
    responses((status = 200, body = AgentList))
)]
pub(super) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Answer<AgentList> {
    Ok(Json(AgentList { agents: app.service.agents(&caller).await? }))
}

/// Get an agent
#[utoipa::path(
    get, path = "/v1/agents/{id}", operation_id = "show_agent", tag = "agents",
    params(wire::SessionParam),
    responses((status = 200, body = AgentView))
)]
pub(super) async fn show(AgentCall { service, caller, id }: AgentCall) -> Answer<AgentView> {
    Ok(Json(service.agent(&caller, &id).await?))
}

/// Fork an agent
///
/// Forks the session. Each fork gets a copy of the thread.
#[utoipa::path(
    post, path = "/v1/agents/{id}/fork", operation_id = "fork_agent", tag = "agents",
    params(wire::SessionParam),
    request_body = ForkRequest,
    responses((status = 201, body = AgentList))
)]
pub(super) async fn fork(
    AgentCall { service, caller, id }: AgentCall,
    Body(body): Body<ForkRequest>,
) -> Created<AgentList> {
    let agents = service.fork_agent(&caller, &id, body.into()).await?;
    Ok((StatusCode::CREATED, Json(AgentList { agents })))
}

/// Give an agent a task
///
/// The server carries it out, even if the client disconnects.
#[utoipa::path(
    post, path = "/v1/agents/{id}/tasks", operation_id = "begin_task", tag = "agents",
    params(wire::SessionParam, ("Idempotency-Key" = Option<String>, Header, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$", description = "A key for this request. A request with the same key gets the task of the first one")),
    request_body = NewTask,
    responses((status = 202, body = TaskBegun))
)]
pub(super) async fn submit(
    AgentCall { service, caller, id }: AgentCall,
    headers: HeaderMap,
    Body(body): Body<NewTask>,
) -> Created<TaskBegun> {
    let key = runs::key(&headers)?;
    let begun = service.submit_task(&caller, &id, body.text, body.limits, key).await?;
    let (task, continuity) = begun;
    Ok((StatusCode::ACCEPTED, Json(TaskBegun { task, continuity })))
}

/// List the newest tasks of an agent
#[utoipa::path(
    get, path = "/v1/agents/{id}/tasks", operation_id = "list_tasks", tag = "agents",
    params(wire::SessionParam, TasksQuery),
    responses((status = 200, body = TaskList))
)]
pub(super) async fn tasks(
    AgentCall { service, caller, id }: AgentCall,
    Params(query): Params<TasksQuery>,
) -> Answer<TaskList> {
    let limit = usize::try_from(query.limit.unwrap_or(100)).unwrap_or(usize::MAX);
    Ok(Json(TaskList { tasks: service.tasks(&caller, &id, limit).await? }))
}

/// Read an agent's thread
///
/// Everything that the model was shown and did, including what was taken back. `…/events`
/// streams the same live.
#[utoipa::path(
    get, path = "/v1/agents/{id}/thread", operation_id = "show_thread", tag = "agents",
    params(wire::SessionParam, ThreadQuery),
    responses((status = 200, body = ThreadPage))
)]
pub(super) async fn thread(
    AgentCall { service, caller, id }: AgentCall,
    Params(query): Params<ThreadQuery>,
) -> Answer<ThreadPage> {
    let limit = usize::try_from(query.limit.unwrap_or(1000)).unwrap_or(usize::MAX);
    let (entries, has_more) = service.thread(&caller, &id, query.after.unwrap_or(0), limit).await?;
    let next = entries.last().filter(|_| has_more).map(|entry| entry.entry);
    Ok(Json(ThreadPage { entries, next }))
}

/// Rewind an agent to a step
///
/// Conversation, interpreters and files become what they were right after that step. Later
/// entries stay in the thread, but no longer count.
#[utoipa::path(
    post, path = "/v1/agents/{id}/rewind", operation_id = "rewind_agent", tag = "agents",
    params(wire::SessionParam),
    request_body = RewindAgent,
    responses((status = 200, body = RewoundAgent))
)]
pub(super) async fn rewind(call: AgentCall, Body(body): Body<RewindAgent>) -> Answer<RewoundAgent> {
    rewind_to(call, RewindTo::Step(body.step)).await
}

/// Undo an agent's last task
///
/// The same as a rewind to the step before it.
#[utoipa::path(
    post, path = "/v1/agents/{id}/undo", operation_id = "undo_task", tag = "agents",
    params(wire::SessionParam),
    responses((status = 200, body = RewoundAgent))
)]
pub(super) async fn undo(call: AgentCall) -> Answer<RewoundAgent> {
    rewind_to(call, RewindTo::LastTask).await
}

async fn rewind_to(call: AgentCall, to: RewindTo) -> Answer<RewoundAgent> {
    let AgentCall { service, caller, id } = call;
    let done = service.rewind_agent(&caller, &id, to).await?;
    let session = done.session.map(|view| Rewound::from(&*view));
    Ok(Json(RewoundAgent { session_id: id, rewind: done.rewind, session }))
}

/// Get a task
#[utoipa::path(
    get, path = "/v1/agents/{id}/tasks/{task}", operation_id = "show_task", tag = "agents",
    params(wire::SessionParam, ("task" = u64, Path, description = "The task's number"), WaitQuery),
    responses((status = 200, body = TaskView))
)]
pub(super) async fn task(
    AgentCall { service, caller, id }: AgentCall,
    Path((_, task)): Path<(String, String)>,
    Params(query): Params<WaitQuery>,
) -> Answer<TaskView> {
    let Ok(number) = task.parse() else {
        let message = format!("{task:?} is not the number of a task");
        return Err(ServiceError::new(ErrorCode::NotFound, message));
    };
    let wait = Duration::from_millis(query.wait.map_or(0, |span| span.0));
    Ok(Json(service.task(&caller, &id, TaskNo(number), wait).await?))
}

/// Cancel the current task
#[utoipa::path(
    post, path = "/v1/agents/{id}/cancel", operation_id = "cancel_task", tag = "agents",
    params(wire::SessionParam),
    responses((status = 200, body = Accepted))
)]
pub(super) async fn cancel(AgentCall { service, caller, id }: AgentCall) -> Answer<Accepted> {
    service.cancel_task(&caller, &id).await?;
    Ok(Json(Accepted { accepted: true }))
}

/// Approve or deny a call
#[utoipa::path(
    post, path = "/v1/agents/{id}/approvals", operation_id = "decide_call", tag = "agents",
    params(wire::SessionParam),
    request_body = Decision,
    responses((status = 200, body = Accepted))
)]
pub(super) async fn decide(
    AgentCall { service, caller, id }: AgentCall,
    Body(body): Body<Decision>,
) -> Answer<Accepted> {
    let verdict = match body.allow {
        true => Verdict::Allowed,
        false => Verdict::Denied(body.reason.unwrap_or_default()),
    };
    service.decide_call(&caller, &id, body.call, verdict).await?;
    Ok(Json(Accepted { accepted: true }))
}

/// Stream the events of an agent's thread
///
/// One event per entry, with the entry's number as id. `Last-Event-ID` continues after that
/// entry. Three events have no id: `delta` has new words of the model, `retry` says that the
/// model failed and will be asked again, and `approve` names a call that waits for approval.
/// The stream ends when no task is in progress.
#[utoipa::path(
    get, path = "/v1/agents/{id}/events", operation_id = "follow_agent", tag = "agents",
    params(
        wire::SessionParam,
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,18}$", description = "The id of the last event that was received"),
    ),
    responses((status = 200, content_type = "text/event-stream", body = wire::ServerSentEvent))
)]
pub(super) async fn events(
    AgentCall { service, caller, id }: AgentCall,
    headers: HeaderMap,
) -> Result<Response, ServiceError> {
    let after = match headers.get("last-event-id").map(|value| value.to_str().unwrap_or("-")) {
        None => 0,
        Some(text) => text.parse().map_err(|_| {
            let message = format!("{text:?} is not the id of an event");
            ServiceError::new(ErrorCode::BadRequest, message)
        })?,
    };
    let guard = service.open_stream()?;
    let follower = service.follow_agent(&caller, &id, after).await?;
    let streaming = Streaming { id, follower, _guard: guard, has_failed: false };
    let events = stream::unfold(streaming, |mut streaming| async move {
        let message = streaming.next().await?;
        Some((Ok::<_, Infallible>(message), streaming))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

struct Streaming {
    id: SessionId,
    follower: AgentFollower,
    _guard: StreamGuard,
    has_failed: bool,
}

impl Streaming {
    async fn next(&mut self) -> Option<Message> {
        if self.has_failed {
            return None;
        }
        match self.follower.next().await {
            Ok(event) => Some(self.message(event?)),
            Err(error) => {
                self.has_failed = true;
                Some(failure(&error))
            }
        }
    }

    fn message(&self, event: AgentEvent) -> Message {
        match event {
            AgentEvent::Entry(entry) => {
                let id = entry.entry.to_string();
                let data = json!(ThreadEvent { session_id: self.id.clone(), entry: *entry });
                let name = data["type"].as_str().unwrap_or("entry").to_owned();
                Message::default().id(id).event(name).data(data.to_string())
            }
            AgentEvent::Delta(text) => without_id("delta", &DeltaEvent { text }),
            AgentEvent::Retry(Retrying { attempt, after_ms, failure }) => {
                without_id("retry", &RetryEvent { attempt, after_ms, failure })
            }
            AgentEvent::Approve(call) => without_id("approve", &ApproveEvent { call }),
        }
    }
}

fn without_id(name: &str, data: &impl Serialize) -> Message {
    Message::default().event(name).data(json!(data).to_string())
}
