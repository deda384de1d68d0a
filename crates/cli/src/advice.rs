//! What to do about an error that does not say so itself: the error may also be shown on
//! surfaces that have no commands.

use sessile_client::ClientError;
use sessile_protocol::{Code, Failure, Shortage};
use sessile_store::StoreError;
use std::error::Error;

/// Returns advice for the first cause in the chain that has some.
pub(crate) fn of(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().find_map(|cause| {
        let shortage = shortage(cause).map(Shortage::advice);
        shortage.or_else(|| about_session(cause)).or_else(|| about_refusal(cause))
    })
}

// Transparent errors hide the error within them from the chain, so it is found here.

/// Returns what the machine has run out of, if that caused the error.
fn shortage(cause: &(dyn Error + 'static)) -> Option<Shortage> {
    let asked = cause.downcast_ref::<ClientError>().and_then(ClientError::shortage);
    let refused = cause.downcast_ref::<Failure>().and_then(|failure| failure.shortage);
    asked.or(refused).or_else(|| Shortage::behind(cause))
}

fn about_session(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    let of_client = match cause.downcast_ref::<ClientError>() {
        Some(ClientError::Store(error)) => Some(error),
        Some(_) | None => None,
    };
    match of_client.or_else(|| cause.downcast_ref::<StoreError>())? {
        StoreError::NotFound(_) => {
            Some("`sessile list` shows those of this directory, `sessile list --all` all of yours")
        }
        StoreError::Damaged { .. } => Some("end the session and start a new one"),
        StoreError::Elsewhere { .. }
        | StoreError::TooShort(_)
        | StoreError::NoLast
        | StoreError::Ambiguous { .. }
        | StoreError::NameTaken { .. }
        | StoreError::BadName(_)
        | StoreError::Io { .. } => None,
    }
}

fn about_refusal(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    let of_client = match cause.downcast_ref::<ClientError>() {
        Some(ClientError::Refused(failure)) => Some(failure),
        Some(_) | None => None,
    };
    match of_client.or_else(|| cause.downcast_ref::<Failure>())?.code {
        Code::JobNotFound => Some("`sessile jobs` lists those that there are"),
        Code::CheckpointLost => Some("`sessile checkpoints` lists those that there are"),
        Code::RunNotFound => Some("`sessile runs` lists those that are kept"),
        Code::BadRequest
        | Code::VersionMismatch
        | Code::CommandHasNul
        | Code::CommandTooLarge
        | Code::QueueFull
        | Code::QueueTimeout
        | Code::RunCancelled
        | Code::RunLost
        | Code::KeyReused
        | Code::InputClosed
        | Code::NoTerminal
        | Code::Busy
        | Code::CheckpointNotFound
        | Code::CheckpointExists
        | Code::ForkFailed
        | Code::Ending
        | Code::KernelUnavailable
        | Code::Sandbox
        | Code::Storage
        | Code::Unknown => None,
    }
}
