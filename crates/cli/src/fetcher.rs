//! The process that takes a session up from a store, started by whoever is asked
//! for it, and gone when it is done.
//!
//! The order comes on stdin and what became of it goes to stdout, both as JSON.

use crate::uploader::{host, variables};
use sessile_client::{AgentFiles, Fetch, Fetched, StoredThread};
use sessile_protocol::SessionId;
use sessile_vault::{Note, Taken, Vault, VaultError};
use std::io::{Read, Write};
use std::process::ExitCode;

pub(crate) fn main() -> ExitCode {
    let outcome = match order() {
        Ok(order) => carry_out(order).unwrap_or_else(|error| told(&error)),
        Err(message) => Fetched::Error { message },
    };
    let text = serde_json::to_string(&outcome).unwrap_or_default();
    // Nobody may be there any more to read it.
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
            if let Ok(taken) = serde_json::from_value::<Taken>(taken) {
                Vault::open(&url, &variables())?.give_back(&session_id, &taken)?;
            }
            Ok(Fetched::GivenBack)
        }
        Fetch::PutAgent { url, session_id, agent } => {
            let vault = Vault::open(&url, &variables())?;
            if let Some(thread) = agent.thread {
                let note = Note::Thread { epoch: thread.epoch };
                vault.put_note(&session_id, note, thread.text.into_bytes())?;
                // After the thread: whoever takes the session up later finds it, and
                // whoever has taken it up before is told of here.
                let holder = vault.holder(&session_id)?;
                if let Some(by) = holder.filter(|holder| holder.epoch > thread.epoch) {
                    return Ok(Fetched::Held { epoch: by.epoch, host: by.host });
                }
            }
            // The record last: whoever finds it finds the thread.
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

/// The thread of whoever had the session last and wrote one.
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
