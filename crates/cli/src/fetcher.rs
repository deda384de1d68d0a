//! The process that takes a session up from a store, started for one request.
//!
//! The request comes on stdin and the outcome goes to stdout, both as JSON.

use crate::uploader::{host, variables};
use sessile_client::{AgentFiles, Fetch, Fetched, StoredThread};
use sessile_protocol::SessionId;
use sessile_vault::{Note, Takeover, Vault, VaultError};
use std::io::{Read, Write};
use std::process::ExitCode;

pub(crate) fn main() -> ExitCode {
    let outcome = match order() {
        Ok(order) => carry_out(order).unwrap_or_else(|error| told(&error)),
        Err(message) => Fetched::Error { message },
    };
    let text = serde_json::to_string(&outcome).unwrap_or_default();
    // Fails if the reader is gone.
    let _ = writeln!(std::io::stdout(), "{text}");
    ExitCode::SUCCESS
}

fn order() -> Result<Fetch, String> {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|error| format!("cannot read the order: {error}"))?;
    serde_json::from_str(&text)
        .map_err(|_| "a fetcher is started by a client, not by hand".to_owned())
}

fn carry_out(order: Fetch) -> Result<Fetched, VaultError> {
    match order {
        Fetch::Take { url, session_id, file } => {
            let vault = Vault::open(&url, &variables())?;
            let taken = vault.take(&session_id, &host(), &file)?;
            Ok(Fetched::Taken {
                epoch: taken.epoch,
                as_of_run: taken.save.as_of_run,
                saved_at: taken.save.saved_at.clone(),
                from: taken.before.as_ref().map(|before| before.host.clone()),
                taken: serde_json::to_value(&taken).unwrap_or_default(),
            })
        }
        Fetch::Ask { url, session_id } => {
            let holder = Vault::open(&url, &variables())?.holder(&session_id)?;
            let held =
                holder.map(|holder| Fetched::Held { epoch: holder.epoch, host: holder.host });
            Ok(held.unwrap_or(Fetched::NotFound))
        }
        Fetch::GiveBack { url, session_id, taken } => {
            if let Ok(taken) = serde_json::from_value::<Takeover>(taken) {
                Vault::open(&url, &variables())?.give_back(&session_id, &taken)?;
            }
            Ok(Fetched::GivenBack)
        }
        Fetch::PutAgent { url, session_id, agent } => {
            let vault = Vault::open(&url, &variables())?;
            if let Some(thread) = agent.thread {
                let note = Note::Thread { epoch: thread.epoch };
                vault.put_note(&session_id, note, thread.text.into_bytes())?;
                // Checked after the thread is written: a machine that takes the session
                // up later finds the thread, and one that took it up before is found here.
                let holder = vault.holder(&session_id)?;
                if let Some(by) = holder.filter(|holder| holder.epoch > thread.epoch) {
                    return Ok(Fetched::Held { epoch: by.epoch, host: by.host });
                }
            }
            // The record last: a reader that finds it also finds the thread.
            vault.put_note(&session_id, Note::Record, agent.record.into_bytes())?;
            Ok(Fetched::Kept)
        }
        Fetch::GetAgent { url, session_id } => {
            let vault = Vault::open(&url, &variables())?;
            let Some(record) = vault.get_note(&session_id, Note::Record)? else {
                return Ok(Fetched::NotFound);
            };
            let thread = newest_thread(&vault, &session_id)?;
            let record = String::from_utf8_lossy(&record).into_owned();
            Ok(Fetched::Agent(AgentFiles { record, thread }))
        }
    }
}

/// Returns the thread of the last holder of the session that wrote one.
fn newest_thread(vault: &Vault, session: &SessionId) -> Result<Option<StoredThread>, VaultError> {
    let newest = vault.holder(session)?.map_or(0, |holder| holder.epoch);
    for epoch in (0..=newest).rev() {
        if let Some(bytes) = vault.get_note(session, Note::Thread { epoch })? {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            return Ok(Some(StoredThread { epoch, text }));
        }
    }
    Ok(None)
}

fn told(error: &VaultError) -> Fetched {
    if let VaultError::NotFound { .. } = error {
        return Fetched::NotFound;
    }
    Fetched::Error { message: error.to_string() }
}
