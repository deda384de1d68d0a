//! The process that uploads a save to its store, or asks the store who has a session. A
//! keeper, which has no runtime and does not block, starts one for each request.
//!
//! The request comes on stdin and the outcome goes to stdout, both as JSON. Killing it at
//! any moment leaves the last save as it was.

use serde::{Deserialize, Serialize};
use sessile_protocol::{RunNo, SessionId};
use sessile_vault::{Holder, NewSave, Save, Variables, Vault, VaultError};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Lowest priority: behind everything that a session runs.
const NICE: i32 = 19;

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Order {
    Look { look: Look },
    Upload(Upload),
}

/// Asks whether the session still belongs to its keeper.
#[derive(Debug, Deserialize)]
struct Look {
    url: String,
    session_id: SessionId,
    epoch: u64,
}

#[derive(Debug, Deserialize)]
struct Upload {
    url: String,
    session_id: SessionId,
    as_of_run: RunNo,
    file: PathBuf,
    /// How often the session had been taken up when its keeper began.
    #[serde(default)]
    epoch: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Saved(Save),
    /// This keeper still has the session.
    Ours,
    /// Another machine has the session.
    Moved {
        host: String,
    },
    Error {
        code: &'static str,
        message: String,
    },
}

pub(crate) fn main() -> ExitCode {
    let outcome = match order() {
        // Normal priority: a run may wait for it.
        Ok(Order::Look { look }) => is_ours(&look).unwrap_or_else(|error| told(&error)),
        Ok(Order::Upload(upload)) => {
            // If this is not permitted, it saves all the same.
            let _ = rustix::process::nice(NICE);
            carry_out(&upload).map_or_else(|error| told(&error), Outcome::Saved)
        }
        Err(message) => Outcome::Error { code: "bad_request", message },
    };
    let text = serde_json::to_string(&outcome).unwrap_or_default();
    // Fails if the reader is gone.
    let _ = writeln!(std::io::stdout(), "{text}");
    match outcome {
        Outcome::Saved(_) | Outcome::Ours => ExitCode::SUCCESS,
        Outcome::Moved { .. } | Outcome::Error { .. } => ExitCode::FAILURE,
    }
}

fn order() -> Result<Order, String> {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|error| format!("cannot read the order: {error}"))?;
    serde_json::from_str(&text)
        .map_err(|_| "an uploader is started by a keeper, not by hand".to_owned())
}

fn is_ours(look: &Look) -> Result<Outcome, VaultError> {
    let holder = Vault::open(&look.url, &variables())?.holder(&look.session_id)?;
    Ok(match holder.filter(|holder| holder.epoch > look.epoch) {
        Some(holder) => Outcome::Moved { host: holder.host },
        None => Outcome::Ours,
    })
}

fn carry_out(order: &Upload) -> Result<Save, VaultError> {
    let vault = Vault::open(&order.url, &variables())?;
    let since = format!("{:.3}", jiff::Timestamp::now());
    let by = Holder { epoch: order.epoch, host: host(), since };
    let about = sessile_client::about_save(&order.file).unwrap_or_default();
    let new = NewSave { as_of_run: order.as_of_run, file: &order.file, by, about };
    vault.put(&order.session_id, &new)
}

fn told(error: &VaultError) -> Outcome {
    if let VaultError::Moved(holder) = error {
        return Outcome::Moved { host: holder.host.clone() };
    }
    Outcome::Error { code: error.code(), message: error.to_string() }
}

/// Returns the name of this machine.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the environment, as far as it is text.
pub(crate) fn variables() -> Variables {
    let text = |value: std::ffi::OsString| value.into_string().ok();
    std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect()
}
