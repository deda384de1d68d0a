//! Sessions as files.

use super::answer::{Refusal, Told};
use super::branches::while_wanted;
use super::waiting::Waiter;
use crate::service::{RestoreOrder, SaveOrder, Service, Source, Told as Reached};
use serde_json::{Map, Value};
use sessile_client::Trust;
use sessile_gateway::text;
use sessile_gateway::tool::{RestoreCall, SaveCall};

pub(super) async fn save(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<Told, Refusal> {
    let SaveCall { session, path, files, wait } = SaveCall::from_arguments(arguments)?;
    waiter.check()?;
    let saved = async {
        let order = SaveOrder { files, wait };
        Ok(service.save(waiter.caller, &session, &path, order).await?)
    };
    let Reached { answer, continuity } = while_wanted(waiter, saved).await?;
    let mut exact = sessile_gateway::saved(&session, &answer.path, &answer.view);
    let mut text = text::saved(&answer.path, &answer.view);
    if let Some(previous) = continuity.previous() {
        let revived = sessile_gateway::revival(previous);
        text = format!("{revived}\n{text}");
        exact.insert("revived".to_owned(), revived.into());
    }
    Ok(Told::of(exact, text))
}

pub(super) async fn restore(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &Map<String, Value>,
) -> Result<Told, Refusal> {
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
    let exact = sessile_gateway::restored(metadata, manifest, left, made.has_files);
    Ok(Told::of(exact, text::restored(metadata, manifest, left, made.has_files)))
}
