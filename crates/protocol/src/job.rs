//! Processes that runs have left in the background.

use crate::{Language, RunNo};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobsView {
    /// Oldest first.
    pub jobs: Vec<Job>,
}

/// A background process, with all its descendants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub pid: u32,
    /// Its command line, or the beginning of it.
    pub command: String,
    /// The run that started it, if known.
    #[serde(default)]
    pub run: Option<RunNo>,
    #[serde(default)]
    pub language: Option<Language>,
    pub state: JobState,
    pub started_at: String,
    pub age_ms: u64,
    /// CPU time of all its processes, including ended ones.
    pub cpu_ms: u64,
    /// Resident memory of all its processes, in bytes.
    pub memory: u64,
    /// Number of its processes.
    pub processes: u64,
    /// Ports that its processes listen on.
    #[serde(default)]
    pub ports: Vec<Port>,
}

/// A finished job of a shell
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EndedJob {
    pub pid: u32,
    /// The run that started it
    pub run: RunNo,
    /// Set if the run's text shows it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub command: Option<String>,
    /// Absent if the shell no longer knows it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub exit_code: Option<i32>,
}

impl EndedJob {
    /// Returns the text about this job for the answer to a run.
    #[must_use]
    pub fn told_with(&self, run: RunNo) -> String {
        let Self { pid, run: own, command, exit_code } = self;
        let command = command.as_ref().map(|command| format!(" ({command})")).unwrap_or_default();
        let whose = if *own == run { String::new() } else { format!(" of run {own}") };
        let how = exit_code.map(|code| format!(" with exit code {code}")).unwrap_or_default();
        format!("job {pid}{command}{whose} has ended{how}")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Running,
    Stopped,
    /// A state of a newer keeper.
    #[serde(other)]
    Unknown,
}

impl JobState {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }
}

/// The ports that any process of a session listens on, kernels and foreground included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortsView {
    pub ports: Vec<Port>,
    /// The session's own network namespace, which has to be entered to reach the ports.
    #[serde(default)]
    pub network: Option<OwnNetwork>,
}

/// A network namespace, identified by a process in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnNetwork {
    pub pid: u32,
    /// The namespace's number. The process may have ended, and another one may have its pid.
    pub inode: u64,
}

/// A port that a process listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Port {
    pub port: u16,
    pub transport: Transport,
    pub address: IpAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    Tcp,
    Udp,
}

impl Transport {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}
