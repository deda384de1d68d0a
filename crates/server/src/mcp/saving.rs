//! Sessions as files.

use super::answer::ToolReply;
use super::branches::{reply, while_wanted};
use super::waiting::Waiter;
use crate::service::{RestoreOrder, SaveOrder, Service, ServiceError, Source, WithContinuity};
use serde_json::{Map, Value};
use sessile_client::Trust;
use sessile_gateway::answer::{self, Restored, Saved};
use sessile_gateway::text;
use sessile_gateway::tool::{RestoreCall, SaveCall};

pub(super) async fn save(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    let SaveCall { session, path, files, wait } = SaveCall::from_arguments(arguments)?;
    waiter.check()?;
    let saved = async {
        let order = SaveOrder { files, wait };
        service.save(waiter.caller, &session, &path, order).await
    };
    let WithContinuity { answer, continuity } = while_wanted(waiter, saved).await?;
    let saved = Saved::of(&session, &answer.path, &answer.view);
    Ok(reply(&saved, text::saved(&answer.path, &answer.view), &continuity))
}

pub(super) async fn restore(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<ToolReply, ServiceError> {
    let call = RestoreCall::from_arguments(arguments)?;
    waiter.check()?;
    let order = RestoreOrder {
        trust: if call.trust { Trust::Given } else { Trust::Own },
        cwd: call.cwd,
        name: call.name,
        durable: call.durable,
    };
    let made = service.restore(waiter.caller, Source::Path(call.path), order).await?;
    let (metadata, manifest, left) = (&made.metadata, &made.manifest, &made.left);
    let exact = Restored::of(metadata, manifest, left, made.has_files);
    Ok(ToolReply::of(
        answer::fields(&exact),
        text::restored(metadata, manifest, left, made.has_files),
    ))
}
