//! Runs: their orders and their results.

use crate::kernels::OwnName;
use crate::shortage::describe;
use crate::stdin::Stdin;
use sessile_protocol::{
    Completed, EndedJob, Exec, KernelFate, Language, MetLimit, OpenRun, OutputView, ReadOutput,
    RunError, RunNo, RunPhase, RunValue, Screen,
};
use sessile_session::{Outcome, Tick};
use sessile_store::{Directory, Entry, Remarks, Spool, StreamName, timestamp};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Bytes of a command that a list of runs shows: hundreds may be queued.
const COMMAND_SHOWN: usize = 4 << 10;

/// Characters of a command that identify it in messages.
const TITLE: usize = 80;

/// A run that is queued, running, or whose streams are still open.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) language: Language,
    pub(crate) order: Exec,
    pub(crate) stdout: Spool,
    pub(crate) stderr: Spool,
    /// The stdin of an interactive run that has not finished.
    pub(crate) stdin: Option<Box<Stdin>>,
    /// The contents of its terminal at its end.
    pub(crate) screen: Option<Box<Screen>>,
    /// Bytes typed on its terminal and not read.
    pub(crate) unread: Vec<u8>,
    pub(crate) progress: Progress,
    pub(crate) sending: Sending,
    /// When it was requested.
    pub(crate) accepted: Tick,
    /// How long it has waited in the queue.
    pub(crate) waited: Tick,
    /// When it last wrote something or was given input, if its silence matters.
    pub(crate) last_sign: Tick,
    /// Number of streams that something may still write to.
    pub(crate) open_streams: u8,
    pub(crate) value: Option<RunValue>,
    pub(crate) error: Option<RunError>,
    pub(crate) notes: Vec<String>,
    pub(crate) jobs_ended: Vec<EndedJob>,
    pub(crate) limits_met: Vec<MetLimit>,
    /// Bytes of remarks that are too large for the history and not yet in a file.
    pub(crate) owed_remarks: usize,
    /// The name to leave out of the messages in its stderr.
    pub(crate) own_name: Option<Rc<OwnName>>,
    /// Whether its next stderr output begins a line.
    begins_line: bool,
}

/// How often its order could not be sent, because the kernel had ended before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    First,
    /// If this kernel ends as well, it probably always does.
    Again,
}

#[derive(Debug)]
pub(crate) enum Progress {
    Queued,
    Running { since: Instant, timestamp: String },
    Finished(Box<Finished>),
}

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) outcome: Outcome,
    pub(crate) timestamp: String,
    pub(crate) duration: Duration,
}

impl Run {
    pub(crate) fn new(
        run: RunNo,
        language: Language,
        mut order: Exec,
        runs: &Path,
        cap: u64,
    ) -> Self {
        // Input for a terminal is typed on it.
        let stdin = (order.interactive && order.terminal.is_none()).then(|| {
            let first = order.stdin.take().unwrap_or_default();
            Box::new(Stdin::new(run, first.into_vec()))
        });
        Self {
            language,
            order,
            stdout: Spool::new(runs, run, StreamName::Stdout, cap),
            stderr: Spool::new(runs, run, StreamName::Stderr, cap),
            stdin,
            screen: None,
            unread: Vec::new(),
            progress: Progress::Queued,
            sending: Sending::First,
            accepted: 0,
            waited: 0,
            last_sign: 0,
            open_streams: 0,
            value: None,
            error: None,
            notes: Vec::new(),
            jobs_ended: Vec::new(),
            limits_met: Vec::new(),
            owed_remarks: 0,
            own_name: None,
            begins_line: true,
        }
    }

    /// Follows the session's directory to its new path.
    pub(crate) fn moved_to(&mut self, runs: &Path) {
        self.stdout.moved_to(runs);
        self.stderr.moved_to(runs);
    }

    /// Takes output that it has written.
    pub(crate) fn take(&mut self, stream: StreamName, bytes: &[u8]) {
        let Some(own_name) = self.own_name.as_ref().filter(|_| stream == StreamName::Stderr) else {
            return self.spool(stream).push(bytes);
        };
        let shown = own_name.leave_out(bytes, self.begins_line);
        self.begins_line = bytes.last().map_or(self.begins_line, |last| *last == b'\n');
        self.stderr.push(shown.as_deref().unwrap_or(bytes));
    }

    /// Whether it may ask for input while it runs.
    pub(crate) fn takes_input(&self) -> bool {
        self.finished().is_none() && (self.stdin.is_some() || self.order.terminal.is_some())
    }

    pub(crate) fn spool(&mut self, stream: StreamName) -> &mut Spool {
        match stream {
            StreamName::Stdout => &mut self.stdout,
            StreamName::Stderr => &mut self.stderr,
        }
    }

    pub(crate) fn begin(&mut self) {
        self.progress = Progress::Running { since: Instant::now(), timestamp: timestamp() };
        self.open_streams = 2;
    }

    pub(crate) fn finish(&mut self, outcome: Outcome) {
        let (timestamp, duration) = match std::mem::replace(&mut self.progress, Progress::Queued) {
            Progress::Running { since, timestamp } => (timestamp, since.elapsed()),
            Progress::Queued | Progress::Finished(_) => (timestamp(), Duration::ZERO),
        };
        self.stdin = None;
        self.progress = Progress::Finished(Box::new(Finished { outcome, timestamp, duration }));
    }

    /// Writes the run's output and remarks to disk. Returns false if that is not possible
    /// now.
    pub(crate) fn settle(&mut self, directory: &Directory, number: RunNo) -> bool {
        let [stdout, stderr] = [&mut self.stdout, &mut self.stderr].map(Spool::settle);
        let output = stdout.and(stderr);
        let remarks = match self.owed_remarks {
            0 => Ok(()),
            _ => directory.write_remarks(number, &self.remarks()),
        };
        if remarks.is_ok() {
            self.owed_remarks = 0;
        }
        let is_settled = output.is_ok() && remarks.is_ok();
        for (outcome, what) in [(output, "output"), (remarks, "value")] {
            if let Err(error) = outcome {
                self.note_unwritten(what, &error);
            }
        }
        is_settled
    }

    /// Notes once that something of it is not on disk, and why.
    pub(crate) fn note_unwritten(&mut self, what: &str, error: &io::Error) {
        let note = format!("the run's {what} could not be written to disk");
        if !self.notes.iter().any(|known| known.starts_with(&note)) {
            self.notes.push(format!("{note}: {}", describe(error, std::convert::identity)));
        }
    }

    /// Updates the last sign of life if more was written than `before`.
    pub(crate) fn note_sign(&mut self, before: u64, clock: Instant) {
        if self.order.silence_ms.is_some() && self.written() > before {
            self.last_sign = ticks(clock);
        }
    }

    /// Returns the bytes of output and remarks that are not on disk.
    pub(crate) fn bytes_in_memory(&self) -> u64 {
        (self.stdout.in_memory() + self.stderr.in_memory() + self.owed_remarks) as u64
    }

    /// Returns the bytes that it has written to both streams.
    pub(crate) fn written(&self) -> u64 {
        self.stdout.total() + self.stderr.total()
    }

    pub(crate) fn finished(&self) -> Option<&Finished> {
        match &self.progress {
            Progress::Finished(finished) => Some(finished),
            Progress::Queued | Progress::Running { .. } => None,
        }
    }

    pub(crate) fn phase(&self) -> RunPhase {
        match &self.progress {
            Progress::Queued => RunPhase::Queued,
            Progress::Running { .. } => RunPhase::Running,
            Progress::Finished(_) if self.open_streams > 0 => RunPhase::Exited,
            Progress::Finished(_) => RunPhase::Closed,
        }
    }

    pub(crate) fn completed(&self, run: RunNo, max_output: u64) -> Option<Completed> {
        let finished = self.finished()?;
        Some(Completed {
            run,
            language: self.language,
            exit_code: finished.outcome.exit_code,
            duration_us: u64::try_from(finished.duration.as_micros()).unwrap_or(u64::MAX),
            stdout: self.stdout.view(max_output),
            stderr: self.stderr.view(max_output),
            kernel: finished.outcome.fate,
            timed_out: finished.outcome.timed_out,
            interrupted: finished.outcome.interrupted,
            result: self.value.clone(),
            error: self.error.clone(),
            notes: self.notes.clone(),
            jobs_ended: self.jobs_ended.clone(),
            limits_met: self.limits_met.clone(),
            repeated: false,
            unread: self.unread.clone(),
        })
    }

    /// Returns the run as an entry in the list of open runs.
    pub(crate) fn open_view(&self, run: RunNo) -> OpenRun {
        let text = &self.order.text;
        let shown = &text[..text.len().min(COMMAND_SHOWN)];
        OpenRun {
            run,
            language: self.language,
            command: String::from_utf8_lossy(shown).into_owned(),
            phase: self.phase(),
            timestamp: match &self.progress {
                Progress::Queued => None,
                Progress::Running { timestamp, .. } => Some(timestamp.clone()),
                Progress::Finished(finished) => Some(finished.timestamp.clone()),
            },
            interactive: self.order.interactive,
            waiting_for_input: false,
            terminal: self.order.terminal.is_some(),
            queued: None,
        }
    }

    /// Returns the first line of its command, or the beginning of it.
    pub(crate) fn title(&self) -> String {
        let line = self.order.text.trim_ascii().split(|b| *b == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        match line.char_indices().nth(TITLE) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.into_owned(),
        }
    }

    /// Returns what the run has reported besides its output.
    pub(crate) fn remarks(&self) -> Remarks {
        let (result, error) = (self.value.clone(), self.error.clone());
        let (notes, jobs_ended) = (self.notes.clone(), self.jobs_ended.clone());
        let limits_met = self.limits_met.clone();
        Remarks { result, error, notes, jobs_ended, limits_met }
    }

    /// Returns the run's line in the history.
    pub(crate) fn entry(&self, run: RunNo) -> Option<Entry> {
        let finished = self.finished()?;
        let duration = finished.duration;
        let mut entry = Entry {
            run,
            timestamp: finished.timestamp.clone(),
            command: String::new(),
            language: self.language,
            exit_code: finished.outcome.exit_code,
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            duration_us: Some(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)),
            kernel: finished.outcome.fate.as_str().to_owned(),
            from_session: None,
            as_of_run: match finished.outcome.fate {
                KernelFate::Restored { as_of_run } => Some(as_of_run),
                KernelFate::Kept | KernelFate::Restarted | KernelFate::Fresh => None,
            },
            timed_out: finished.outcome.timed_out,
            interrupted: finished.outcome.interrupted,
            event: None,
            command_bytes: None,
            stdout_bytes: self.stdout.total(),
            stderr_bytes: self.stderr.total(),
            remarks: self.remarks(),
            has_value_file: false,
        };
        entry.set_command(&self.order.text);
        Some(entry)
    }

    /// Whether there is something for a reader at these cursors.
    pub(crate) fn has_news(&self, read: &ReadOutput) -> bool {
        let phase = self.phase();
        let is_news = match read.known {
            Some(known) => phase > known || phase == RunPhase::Closed,
            None => phase >= RunPhase::Exited,
        };
        let is_more =
            self.stdout.total() > read.stdout_from || self.stderr.total() > read.stderr_from;
        is_news || is_more || !read.wait
    }

    /// Returns what a reader at these cursors gets; `None` if it is to wait.
    pub(crate) fn output(&self, read: &ReadOutput) -> Option<OutputView> {
        if !self.has_news(read) {
            return None;
        }
        let phase = self.phase();
        let (stdout, stdout_next) = self.stdout.read(read.stdout_from, read.max);
        let (stderr, stderr_next) = self.stderr.read(read.stderr_from, read.max);
        Some(OutputView {
            stdout,
            stdout_next,
            stderr,
            stderr_next,
            phase,
            waiting_for_input: false,
            queued: None,
        })
    }
}

/// Returns the time since the start of the session's clock.
pub(crate) fn ticks(clock: Instant) -> Tick {
    Tick::try_from(clock.elapsed().as_millis()).unwrap_or(Tick::MAX)
}

pub(crate) type Runs = BTreeMap<RunNo, Run>;
