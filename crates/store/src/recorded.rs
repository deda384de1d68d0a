//! Runs of which only the files are left.

use crate::accepted::{Accepted, RunMarks};
use crate::atomic;
use crate::directory::Directory;
use crate::history::Entry;
use crate::keys::Keys;
use crate::output::{Spool, StreamName};
use serde::{Deserialize, Serialize};
use sessile_protocol::{
    Code, Completed, EndedJob, Failure, KernelFate, MetLimit, OutputView, ReadOutput, RunError,
    RunNo, RunPhase, RunValue, Screen, StreamView,
};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

/// Maximum number of lost runs that are reported: a session whose history was removed would
/// have no end of them.
const LOST: usize = 1000;

/// Remarks on a run, besides its output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Remarks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RunValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs_ended: Vec<EndedJob>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_met: Vec<MetLimit>,
}

impl Remarks {
    /// Returns its approximate size in a file.
    #[must_use]
    pub fn size(&self) -> usize {
        let result = self.result.iter();
        let data = |value: &RunValue| value.data_json.as_ref().map_or(0, String::len);
        let result: usize = result.map(|value| value.text.len() + data(value)).sum();
        let error: usize = self.error.iter().map(|e| e.kind.len() + e.message.len()).sum();
        let command = |job: &EndedJob| job.command.as_ref().map_or(0, String::len) + 80;
        let jobs: usize = self.jobs_ended.iter().map(command).sum();
        let limits = 70 * self.limits_met.len();
        result + error + jobs + limits + self.notes.iter().map(String::len).sum::<usize>()
    }
}

/// Why a run that is not active has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absence {
    Cancelled(Failure),
    /// The run was active when its keeper died: its outcome is unknown.
    Lost,
    /// It is no longer in the history.
    Dropped,
    /// There was no run with that number.
    Never,
}

impl Absence {
    /// Returns the failure for a client that asks for the run.
    #[must_use]
    pub fn explain(self, run: RunNo) -> Failure {
        match self {
            Self::Cancelled(why) => why,
            Self::Lost => {
                let message = format!(
                    "run {run} was going when the session's keeper died: its outcome is not known"
                );
                Failure::new(Code::RunLost, message)
            }
            Self::Dropped => {
                let message = format!(
                    "run {run} is not in the session's history (older runs are dropped from it)"
                );
                Failure::new(Code::RunNotFound, message)
            }
            Self::Never => {
                let message = format!("the session has had no run {run}");
                Failure::new(Code::RunNotFound, message)
            }
        }
    }
}

impl Directory {
    /// Returns the result of a finished run, from its files.
    #[must_use]
    pub fn recorded_run(&self, run: RunNo, max_output: u64) -> Option<Completed> {
        let entry = self.history().find(run)?;
        let remarks = self.remarks(&entry);
        let view = |stream, bytes| self.recorded_view(run, stream, bytes, max_output);
        Some(Completed {
            run,
            language: entry.language,
            exit_code: entry.exit_code,
            duration_us: entry.duration_us.unwrap_or(entry.duration_ms.saturating_mul(1000)),
            stdout: view(StreamName::Stdout, entry.stdout_bytes),
            stderr: view(StreamName::Stderr, entry.stderr_bytes),
            kernel: fate(&entry),
            timed_out: entry.timed_out,
            interrupted: entry.interrupted,
            result: remarks.result,
            error: remarks.error,
            notes: remarks.notes,
            jobs_ended: remarks.jobs_ended,
            limits_met: remarks.limits_met,
            repeated: false,
            unread: Vec::new(),
        })
    }

    /// Returns output of a finished run, from its files, without waiting.
    #[must_use]
    pub fn recorded_output(&self, read: &ReadOutput) -> Option<OutputView> {
        self.history().find(read.run)?;
        let reopen = |stream| Spool::reopen(&self.runs(), read.run, stream);
        let (stdout, stdout_next) = reopen(StreamName::Stdout).read(read.stdout_from, read.max);
        let (stderr, stderr_next) = reopen(StreamName::Stderr).read(read.stderr_from, read.max);
        Some(OutputView {
            stdout,
            stdout_next,
            stderr,
            stderr_next,
            phase: RunPhase::Closed,
            waiting_for_input: false,
            queued: None,
        })
    }

    fn recorded_view(&self, run: RunNo, stream: StreamName, bytes: u64, max: u64) -> StreamView {
        let mut view = Spool::reopen(&self.runs(), run, stream).view(max);
        // Also count output that the keeper did not manage to keep.
        view.total = view.total.max(bytes);
        view
    }

    fn remarks(&self, entry: &Entry) -> Remarks {
        if !entry.has_value_file {
            return entry.remarks.clone();
        }
        let found = std::fs::read(self.value_path(entry.run)).ok();
        found.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_else(|| Remarks {
            notes: vec!["the run's value is not in the session's files".to_owned()],
            ..Remarks::default()
        })
    }

    /// Writes remarks that are too large for the history.
    ///
    /// # Errors
    /// When a write fails.
    pub fn write_remarks(&self, run: RunNo, remarks: &Remarks) -> io::Result<()> {
        atomic::replace(&self.value_path(run), &serde_json::to_vec(remarks)?)
    }

    /// Returns the final screen of a run's terminal.
    #[must_use]
    pub fn screen(&self, run: RunNo) -> Option<Screen> {
        serde_json::from_slice(&std::fs::read(self.screen_path(run)).ok()?).ok()
    }

    /// Returns the newest run with a stored screen.
    #[must_use]
    pub fn last_screen(&self) -> Option<RunNo> {
        self.numbered_files().filter(|(_, kind)| kind == "screen").map(|(run, _)| run).max()
    }

    /// # Errors
    /// When a write fails.
    pub fn write_screen(&self, run: RunNo, screen: &Screen) -> io::Result<()> {
        atomic::replace(&self.screen_path(run), &serde_json::to_vec(screen)?)
    }

    /// Returns why an accepted run was cancelled.
    #[must_use]
    pub fn cancelled_run(&self, run: RunNo) -> Option<Failure> {
        let bytes = std::fs::read(self.cancelled_path(run)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Records why a run has no result.
    ///
    /// # Errors
    /// When a write fails.
    pub fn write_cancelled(&self, run: RunNo, why: &Failure) -> io::Result<()> {
        atomic::replace(&self.cancelled_path(run), &serde_json::to_vec(why)?)
    }

    /// Returns why a run that is not active has no entry in the history.
    #[must_use]
    pub fn absence(&self, run: RunNo) -> Absence {
        if let Some(why) = self.cancelled_run(run) {
            return Absence::Cancelled(why);
        }
        let last = RunMarks::read(&self.accepted_path()).map(|marks| marks.last);
        if run == RunNo(0) || last.is_some_and(|last| run > last) {
            Absence::Never
        } else if self.lost_runs().contains(&run) {
            Absence::Lost
        } else {
            Absence::Dropped
        }
    }

    /// Returns the runs that were accepted and never ended, because their keeper died: the
    /// newest of them, oldest first. In a live session, these include the active runs.
    #[must_use]
    pub fn lost_runs(&self) -> Vec<RunNo> {
        let Some(marks) = RunMarks::read(&self.accepted_path()) else {
            return Vec::new();
        };
        let known: BTreeSet<RunNo> = self.history().runs().into_iter().collect();
        let is_lost = |run: &RunNo| !known.contains(run) && self.cancelled_run(*run).is_none();
        let open: BTreeSet<RunNo> =
            self.numbered_files().filter(|(_, kind)| kind == "open").map(|(run, _)| run).collect();
        let newer = (marks.floor.next().0..=marks.last.0).rev().map(RunNo);
        let older = open.into_iter().rev().filter(|run| *run <= marks.floor);
        let mut lost: Vec<RunNo> = newer.chain(older).filter(is_lost).take(LOST).collect();
        lost.reverse();
        lost
    }

    /// Records that a run is still active while younger ones are dropped from the history,
    /// so that it counts as lost if it never ends.
    ///
    /// # Errors
    /// When a write fails.
    pub fn mark_open(&self, run: RunNo) -> io::Result<()> {
        atomic::create(&self.runs().join(format!("{run}.open"))).map(drop)
    }

    /// Opens the record of the last run number. `last` is the last run that other files mention.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn accepted(&self, last: RunNo) -> io::Result<Accepted> {
        Accepted::open(&self.accepted_path(), last)
    }

    /// Returns the keys of earlier requests.
    #[must_use]
    pub fn keys(&self) -> Keys {
        Keys::load(self.path().join("keys.log"))
    }

    /// Removes the files of runs up to `oldest` that are neither in the history nor wanted.
    pub fn sweep_runs(&self, oldest: RunNo, is_wanted: impl Fn(RunNo) -> bool) {
        let known: BTreeSet<RunNo> = self.history().runs().into_iter().collect();
        for (run, kind) in self.numbered_files() {
            if run <= oldest && !known.contains(&run) && !is_wanted(run) {
                let _ = std::fs::remove_file(self.runs().join(format!("{run}.{kind}")));
            }
        }
    }

    /// Returns the files of runs: the run number and the rest of each name.
    fn numbered_files(&self) -> impl Iterator<Item = (RunNo, String)> {
        std::fs::read_dir(self.runs()).into_iter().flatten().flatten().filter_map(|entry| {
            let name = entry.file_name();
            let (run, kind) = name.to_str()?.split_once('.')?;
            Some((RunNo(run.parse().ok()?), kind.to_owned()))
        })
    }

    fn value_path(&self, run: RunNo) -> PathBuf {
        self.runs().join(format!("{run}.value"))
    }

    fn screen_path(&self, run: RunNo) -> PathBuf {
        self.runs().join(format!("{run}.screen"))
    }

    fn cancelled_path(&self, run: RunNo) -> PathBuf {
        self.runs().join(format!("{run}.cancelled"))
    }

    pub(crate) fn accepted_path(&self) -> PathBuf {
        self.runs().join("accepted")
    }
}

fn fate(entry: &Entry) -> KernelFate {
    match (entry.kernel.as_str(), entry.as_of_run) {
        ("restarted", _) => KernelFate::Restarted,
        ("restored", Some(as_of_run)) => KernelFate::Restored { as_of_run },
        ("fresh", _) => KernelFate::Fresh,
        _ => KernelFate::Kept,
    }
}
