//! Forks, checkpoints and rewinds.

use super::answer::{ToolReply, in_session};
use super::waiting::{Waiter, cancelled};
use crate::service::{ErrorCode, Service, ServiceError, WithContinuity};
use serde::Serialize;
use serde_json::{Map, Value};
use sessile_gateway::answer::{
    self, Checkpoint, Checkpoints, Continuity, Dropped, Forked, Rewound,
};
use sessile_gateway::text;
use sessile_gateway::tool::answers::{Continued, Success, WithKey};
use sessile_gateway::tool::{Branch, BranchCall, BranchTool, Target, WorkspaceBranch};
use sessile_protocol::SessionId;

/// Answers the tools that name a session.
pub(super) async fn answer(
    service: &Service,
    waiter: &Waiter<'_>,
    tool: BranchTool,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    let BranchCall { session, branch } = BranchCall::from_arguments(tool, arguments)?;
    waiter.check()?;
    while_wanted(waiter, perform(service, waiter, &session, branch)).await
}

/// Answers for the session of a workspace, which must exist.
pub(super) async fn in_workspace(
    service: &Service,
    waiter: &Waiter<'_>,
    target: &Target,
    branch: WorkspaceBranch,
) -> Result<ToolReply, ServiceError> {
    waiter.check()?;
    let told = match branch {
        WorkspaceBranch::Fork { order, new_key } => {
            let forked = service.fork_workspace(waiter.caller, target, order, &new_key);
            let WithContinuity { answer, continuity } = while_wanted(waiter, forked).await?;
            let text = format!("{}\nIts session_key is {new_key:?}.", text::forked(&answer));
            let forked = WithKey { answer: Forked::from(&*answer), session_key: new_key };
            reply(&forked, text, &continuity)
        }
        WorkspaceBranch::Other(branch) => {
            let session = service.workspace_session(waiter.caller, target).await?;
            let told = while_wanted(waiter, perform(service, waiter, &session, branch)).await?;
            ToolReply { exact: in_session(told.exact, &session), ..told }
        }
    };
    Ok(ToolReply { exact: answer::fields(&Success::of(told.exact)), ..told })
}

async fn perform(
    service: &Service,
    waiter: &Waiter<'_>,
    session: &SessionId,
    branch: Branch,
) -> Result<ToolReply, ServiceError> {
    let caller = waiter.caller;
    Ok(match branch {
        Branch::Fork(order) => {
            let WithContinuity { answer, continuity } =
                service.fork(caller, session, order).await?;
            reply(&Forked::from(&*answer), text::forked(&answer), &continuity)
        }
        Branch::Checkpoint(new) => {
            let WithContinuity { answer, continuity } =
                service.checkpoint(caller, session, new).await?;
            let text = text::checkpointed(&answer);
            reply(&Checkpoint::from(&*answer), text, &continuity)
        }
        Branch::Checkpoints => {
            let views = service.checkpoints(caller, session).await?;
            let all = Checkpoints { checkpoints: views.iter().map(Checkpoint::from).collect() };
            reply(&all, text::checkpoints(&views), &Continuity::Live)
        }
        Branch::Rewind(rewind) => {
            let WithContinuity { answer, continuity } =
                service.rewind(caller, session, rewind).await?;
            reply(&Rewound::from(&*answer), text::rewound(&answer), &continuity)
        }
        Branch::Drop(which) => {
            let names = service.drop_checkpoints(caller, session, which).await?;
            let text = match names.len() {
                0 => "there were no checkpoints".to_owned(),
                _ => format!("dropped: {}", names.join(", ")),
            };
            reply(&Dropped { dropped: names }, text, &Continuity::Live)
        }
    })
}

/// Returns a reply that also says what became of the session.
pub(super) fn reply(answer: &impl Serialize, text: String, continuity: &Continuity) -> ToolReply {
    let continued = Continued::of(answer, continuity);
    let text = match &continued.revived {
        Some(revived) => format!("{revived}\n{text}"),
        None => text,
    };
    ToolReply::of(answer::fields(&continued), text)
}

/// Awaits the work until the client cancels it or the client's time is up: then nothing
/// of it is done.
pub(super) async fn while_wanted<T>(
    waiter: &Waiter<'_>,
    work: impl Future<Output = Result<T, ServiceError>>,
) -> Result<T, ServiceError> {
    tokio::select! {
        biased;
        () = waiter.call.cancelled() => Err(cancelled("cancelled before it was done")),
        () = waiter.call.client_leaves() => Err(cancelled("the input has ended before it was done")),
        outcome = work => outcome,
        () = tokio::time::sleep(waiter.left()) => {
            let message = "the session's runs are still going: nothing was done. Try again, or interrupt them";
            Err(ServiceError::new(ErrorCode::Busy, message))
        }
    }
}
