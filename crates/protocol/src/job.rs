//! What runs have left in the background.

use crate::{Language, RunNo};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobsView {
    /// Oldest first.
    pub jobs: Vec<Job>,
}

/// A process in the background, with all that descends from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub pid: u32,
    /// Its command line, or the beginning of it.
    pub command: String,
    /// The run that started it, where that can be told.
    #[serde(default)]
    pub run: Option<RunNo>,
    #[serde(default)]
    pub language: Option<Language>,
    pub state: JobState,
    pub started_at: String,
    pub age_ms: u64,
    /// Processor time of all its processes, ended ones included.
    pub cpu_ms: u64,
    /// Resident memory of all its processes, in bytes.
    pub memory: u64,
    /// How many processes it has.
    pub processes: u64,
    /// Where its processes listen.
    #[serde(default)]
    pub ports: Vec<Port>,
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

/// A port that somebody listens on.
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
