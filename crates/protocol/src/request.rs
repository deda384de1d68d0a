//! What a client may ask of a keeper.

use crate::{Language, RunNo};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Queue a run.
    Exec(Exec),
    /// The result of a run, now or when it has finished.
    Result { run: RunNo, max_output: u64 },
    /// Output of a run by cursor, waiting for more while it is running.
    Output(ReadOutput),
    /// State of the live kernels.
    State,
    /// The newest `limit` entries of the history, oldest first.
    History { limit: u64 },
    /// Interrupt a run, or whatever is running.
    Interrupt { run: Option<RunNo> },
    /// Fresh kernels, empty history, same id.
    Reset,
    /// End the session and everything that it started.
    End,
    /// What the keeper is doing.
    Status,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exec {
    #[serde(with = "serde_bytes")]
    pub text: Vec<u8>,
    /// The session's default language when absent.
    #[serde(default)]
    pub language: Option<Language>,
    /// The session's command timeout when absent; zero means no limit.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub stdin: Option<ByteBuf>,
    /// Environment for this run alone.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Bytes of each stream that the answer may carry.
    #[serde(default)]
    pub max_output: u64,
    #[serde(default)]
    pub until: Until,
}

/// When an exec is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// When the run has finished. Its files follow within the millisecond.
    #[default]
    Finished,
    /// When the run has finished and metadata.json says so: what the command
    /// line wants, whose caller may look at the files next.
    Recorded,
    /// As soon as the run has its number.
    Accepted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOutput {
    pub run: RunNo,
    pub stdout_from: u64,
    pub stderr_from: u64,
    /// Bytes of each stream to answer with at the most.
    pub max: u64,
    /// Wait for output or the end of the run when there is nothing yet.
    pub wait: bool,
}
