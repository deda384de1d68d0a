//! Requests of a client to a keeper.

use crate::{
    Code, DropCheckpoints, Failure, ForkOrder, Language, NewCheckpoint, Program, Rewind, RunNo,
    RunPhase, TerminalSize,
};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Queue a run.
    Exec(Exec),
    /// Get the result of a run, now or when it has finished.
    Result {
        run: RunNo,
        max_output: u64,
        /// Answer with `Accepted` if the run has not finished after this long.
        #[serde(default)]
        patience_ms: Option<u64>,
        /// Also answer with `Accepted` when the run waits for input.
        #[serde(default)]
        until_input: bool,
    },
    /// Read output of a run by cursor, waiting for more while it is running.
    Output(ReadOutput),
    /// Get the state of the live kernels.
    State,
    /// Get the newest `limit` entries of the history, oldest first.
    History {
        limit: u64,
    },
    /// Interrupt a run, or all active runs.
    Interrupt {
        run: Option<RunNo>,
        /// The run that this connection's call with that number waits for.
        #[serde(default)]
        call: Option<u64>,
    },
    /// Write to the stdin of an interactive run.
    Input {
        run: RunNo,
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
        /// End of the input.
        #[serde(default)]
        eof: bool,
    },
    /// Send a signal to the foreground processes of a run.
    Signal {
        run: RunNo,
        signal: i32,
    },
    /// Start with fresh kernels and an empty history; the id stays.
    Reset,
    /// Give the session another name, or none.
    Rename {
        name: Option<String>,
    },
    /// Assign a session that was made ahead to its client.
    Adopt(Adoption),
    /// End the session and all its processes.
    End,
    /// End the session as soon as this program has ended.
    EndWith(Program),
    /// Get the keeper's status.
    Status,
    /// Get the runs that are not over: queued, active, or with streams that a process may
    /// still write to.
    Runs,
    /// Get the terminal of a run, now or when it has changed.
    Screen(ReadScreen),
    /// Type keys on the terminal of a run: text, with key names in angle brackets.
    Keys {
        run: RunNo,
        keys: String,
    },
    /// Change the size of the terminal of a run.
    Resize {
        run: RunNo,
        size: TerminalSize,
    },
    /// Get runs numbered above `after`, over or not, oldest first and not necessarily all,
    /// as soon as there is one.
    Following {
        after: RunNo,
        /// Answer with none after this long.
        #[serde(default)]
        patience_ms: Option<u64>,
    },
    /// Get the processes that runs have left in the background.
    Jobs,
    /// Get the ports that the session's processes listen on.
    Ports,
    /// Send a signal to a job, or to a process of one, and to its descendants.
    SignalJob {
        pid: u32,
        signal: i32,
    },
    /// Fork a session: create sessions with its state.
    Fork(ForkOrder),
    /// Take a checkpoint.
    Checkpoint(NewCheckpoint),
    /// Get the checkpoints, oldest first.
    Checkpoints,
    /// Go back to a checkpoint.
    Rewind(Rewind),
    DropCheckpoints(DropCheckpoints),
    /// Write the session to a file, see docs/snapshot-format.md.
    Save {
        /// Absolute. An existing file is replaced when the new one is complete.
        path: PathBuf,
        /// Include the files of the workspace.
        files: bool,
        /// Wait until nothing runs; otherwise active runs are a reason to refuse.
        #[serde(default)]
        wait: bool,
    },
}

impl Request {
    /// Returns whether the request has the same meaning in every version of the protocol.
    /// Any client can query and end a session.
    #[must_use]
    pub fn is_timeless(&self) -> bool {
        matches!(self, Self::Status | Self::End)
    }
}

/// Settings of the client that gets a session made ahead. All others stay as they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adoption {
    #[serde(default)]
    pub owner: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    /// From now on; zero means never.
    pub idle_timeout_ms: u64,
    /// The creation time that the client sees.
    pub created_at: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exec {
    #[serde(with = "serde_bytes")]
    pub text: Vec<u8>,
    /// The session's default language when absent.
    #[serde(default)]
    pub language: Option<Language>,
    /// Measured from its beginning. The session's command timeout when absent; zero means
    /// no limit.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Cancel the run if it has not begun after this long; zero or absent means no limit.
    #[serde(default)]
    pub queue_timeout_ms: Option<u64>,
    #[serde(default)]
    pub stdin: Option<ByteBuf>,
    /// Environment for this run only.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Maximum number of bytes of each stream in the answer.
    #[serde(default)]
    pub max_output: u64,
    #[serde(default)]
    pub until: Until,
    /// Answer with `Accepted` if the run has not finished after this long.
    #[serde(default)]
    pub patience_ms: Option<u64>,
    /// Idempotency key: an exec with the key of an earlier one is answered with that run
    /// and starts none.
    #[serde(default)]
    pub key: Option<String>,
    /// Stdin stays open after `stdin`, for `Input`.
    #[serde(default)]
    pub interactive: bool,
    /// Answer with `Accepted` when an interactive run waits for input.
    #[serde(default)]
    pub until_input: bool,
    /// A terminal of this size replaces stdin, stdout and stderr. Its output is the run's
    /// stdout; `stdin` and `Input` are typed on it.
    #[serde(default)]
    pub terminal: Option<TerminalSize>,
    /// Interrupt the run when it has neither written anything nor been given
    /// input for this long; zero means no limit.
    #[serde(default)]
    pub silence_ms: Option<u64>,
}

/// Larger texts are data, and belong in a file or stdin. Scratch space may be a container's
/// 64 MiB of shared memory.
const COMMAND_LIMIT: usize = 16 << 20;

/// A reasonable length for a header field or a file name.
const KEY_LIMIT: usize = 255;

/// A shell gets the environment of a run in one line, which must stay well below the 64 KiB
/// that a pipe takes at once.
const ENV_LIMIT: usize = 32 << 10;

impl Exec {
    /// Checks a run before it is admitted.
    ///
    /// # Errors
    /// When no interpreter could take it.
    pub fn check(&self) -> Result<(), Failure> {
        if self.text.contains(&0) {
            return Err(Failure::new(
                Code::CommandHasNul,
                "the command contains a NUL byte, which no interpreter takes; remove it, or pass the data on stdin",
            ));
        }
        if self.text.len() > COMMAND_LIMIT {
            let message = format!(
                "the command has {} bytes, over the limit of {COMMAND_LIMIT}; put the data into a file or on stdin",
                self.text.len()
            );
            return Err(Failure::new(Code::CommandTooLarge, message));
        }
        if let Some(key) = &self.key
            && !is_key(key)
        {
            let message =
                format!("a key has 1 to {KEY_LIMIT} printable ASCII characters; {key:?} does not");
            return Err(Failure::new(Code::BadRequest, message));
        }
        for (name, value) in &self.env {
            if !is_variable_name(name) || value.contains('\0') {
                let message = format!("{name:?} cannot be an environment variable of a run");
                return Err(Failure::new(Code::BadRequest, message));
            }
        }
        if let Some(size) = self.terminal {
            size.check()?;
        }
        let size: usize = self.env.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        if size > ENV_LIMIT {
            let message = format!(
                "the run's environment has {size} bytes, over the limit of {ENV_LIMIT}; export large values in a command instead"
            );
            return Err(Failure::new(Code::BadRequest, message));
        }
        Ok(())
    }
}

fn is_key(key: &str) -> bool {
    (1..=KEY_LIMIT).contains(&key.len()) && key.bytes().all(|b| matches!(b, b' '..=b'~'))
}

fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// When an exec is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// When the run has finished and is in the history. Its other files are written later,
    /// in idle time.
    #[default]
    Finished,
    /// When the run has finished and metadata.json says so. The command line uses this: its
    /// caller may look at the files next.
    Recorded,
    /// As soon as the run has its number.
    Accepted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOutput {
    pub run: RunNo,
    pub stdout_from: u64,
    pub stderr_from: u64,
    /// Maximum number of bytes of each stream in the answer.
    pub max: u64,
    /// Wait for output or the end of the run when there is nothing yet.
    pub wait: bool,
    /// The phase that the reader knows: a wait ends when the run is past it. Without it, a
    /// wait ends when the run does.
    #[serde(default)]
    pub known: Option<RunPhase>,
    /// Answer with the current output after this long.
    #[serde(default)]
    pub patience_ms: Option<u64>,
    /// Also answer when the run waits for input.
    #[serde(default)]
    pub until_input: bool,
}

impl ReadOutput {
    /// Returns a request from the beginning, a megabyte at a time, waiting for more.
    #[must_use]
    pub fn waiting(run: RunNo) -> Self {
        Self {
            run,
            stdout_from: 0,
            stderr_from: 0,
            max: 1 << 20,
            wait: true,
            known: None,
            patience_ms: None,
            until_input: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadScreen {
    pub run: RunNo,
    /// Wait until the screen is past this revision, or the run has ended.
    #[serde(default)]
    pub known: Option<u64>,
    /// Answer with the current screen after this long.
    #[serde(default)]
    pub patience_ms: Option<u64>,
}
