//! The process that takes a session up from a store, started by whoever is asked
//! for it, and gone when it is done.
//!
//! The order comes on stdin and what became of it goes to stdout, both as JSON.

use crate::uploader::{host, variables};
use sessile_client::{AgentFiles, Fetch, Fetched};
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
            // The record last: whoever finds it finds the thread.
            if !agent.thread.is_empty() {
                vault.put_note(&session_id, Note::Thread, agent.thread)?;
            }
            vault.put_note(&session_id, Note::Record, agent.record)?;
            Ok(Fetched::Kept)
        }
        Fetch::GetAgent { url, session_id } => {
            let vault = Vault::open(&url, &variables())?;
            let Some(record) = vault.get_note(&session_id, Note::Record)? else {
                return Ok(Fetched::NotFound);
            };
            let thread = vault.get_note(&session_id, Note::Thread)?.unwrap_or_default();
            Ok(Fetched::Agent(AgentFiles { record, thread }))
        }
    }
}

fn told(error: &VaultError) -> Fetched {
    if let VaultError::NotFound { .. } = error {
        return Fetched::NotFound;
    }
    Fetched::Error { message: error.to_string() }
}
