//! Kernels: the running interpreters, behind one interface.
//!
//! A kernel gets its orders on its own FIFO and reports on another, both in its private
//! directory; user code has ordinary stdin, stdout and stderr, which belong to the run.
//! Details of a language stay in its file.

mod launch;
mod scripted;
mod secret;
mod shell;
mod spawn;

pub(crate) use launch::{DriverFiles, Plan, complaints, open_channel};
pub(crate) use shell::{OwnName, interpret};

use crate::origins::Origins;
use crate::processes::Caught;
use crate::scratch::PipeAccess;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use sessile_protocol::{RunError, RunNo, RunValue};
use sessile_store::SavedKernel;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A run, as handed to a kernel.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) run: RunNo,
    pub(crate) text: &'a [u8],
    pub(crate) stdin: Stdin<'a>,
    /// The FIFOs for its stdout and stderr.
    pub(crate) output: [&'a Path; 2],
    pub(crate) env: &'a BTreeMap<String, String>,
    /// Replaces all three streams.
    pub(crate) terminal: Option<Terminal<'a>>,
    pub(crate) floor: Floor<'a>,
}

/// Tells a process that is older than all that a run is about to start, as its kernel sees
/// pids. It is only read for the few runs that need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Floor<'a>(Option<&'a Origins>);

impl<'a> Floor<'a> {
    pub(crate) fn of(origins: Option<&'a Origins>) -> Self {
        Self(origins)
    }

    fn read(self) -> Option<u32> {
        let newest = self.0?.newest()?;
        Some(newest.as_raw_nonzero().get().unsigned_abs())
    }
}

/// The terminal of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal<'a> {
    pub(crate) path: &'a str,
    /// The kernel has not had it before.
    pub(crate) is_new: bool,
    /// Earlier runs have left processes in the kernel's own process group.
    pub(crate) has_leftovers: bool,
}

/// Outcome of asking a kernel to release its terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// The kernel does not use it.
    Free,
    /// The kernel will report when the terminal may hang up.
    Pending,
}

/// Where a run reads from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stdin<'a> {
    Empty,
    Bytes(&'a [u8]),
    /// A FIFO that exists already: `i` in the kernel's directory.
    Open,
}

/// State that a new kernel process takes over from the previous one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Previous<'a> {
    pub(crate) state: Option<&'a SavedKernel>,
    /// The last run's exit code.
    pub(crate) status: i32,
}

/// A report of a kernel.
#[derive(Debug)]
pub(crate) enum Report {
    Ready,
    Ended(Ended),
    Captured(RawCapture),
    /// A capture failed.
    NotCaptured,
    /// The kernel is ready for its terminal to hang up.
    LetGo,
    /// The answer whether the current run can only go on with input.
    Wants {
        question: Question,
        input: bool,
    },
    Copy(CopyEvent),
    /// A process whose end this keeper will see writes the dump. Then the file beside it,
    /// see [`outcome_file`], contains what [`Report::Dumped`] would.
    Dumping {
        path: PathBuf,
        writer: Pid,
    },
    Dumped(Box<DumpOutcome>),
    JobEnded(JobEnded),
    Loaded(Box<LoadOutcome>),
    /// A report that is not from the kernel, or not expected at this time.
    Stray,
}

/// A shell's report about a job that is gone.
#[derive(Debug)]
pub(crate) struct JobEnded {
    pub(crate) pid: u32,
    /// The run that started it.
    pub(crate) run: RunNo,
    pub(crate) command: Option<String>,
    pub(crate) exit_code: Option<i32>,
}

/// A captured state. Interpreting it takes a while and is often not needed, because a
/// newer one comes.
#[derive(Debug)]
pub(crate) enum RawCapture {
    /// As the kernel itself describes it.
    Described(Box<SavedKernel>),
    /// As a shell lists it.
    Listed(shell::Listed),
}

impl RawCapture {
    pub(crate) fn as_of(&self) -> RunNo {
        match self {
            Self::Described(saved) => saved.as_of_run,
            Self::Listed(listed) => listed.as_of,
        }
    }

    /// Interprets it. Returns `None` if it contains no state.
    pub(crate) fn interpret(self) -> Option<SavedKernel> {
        match self {
            Self::Described(saved) => Some(*saved),
            Self::Listed(listed) => listed.interpret(),
        }
    }
}

/// A report about a copy of a kernel.
#[derive(Debug)]
pub(crate) enum CopyEvent {
    /// The copy is up.
    Up(Box<CopyReport>),
    /// There is no copy for that directory.
    Failed { directory: String, error: String },
    /// A copy for that directory is starting, as this process.
    Copied { directory: String, pid: Pid },
}

/// Outcome of a dump.
#[derive(Debug, Deserialize)]
pub(crate) struct DumpOutcome {
    pub(crate) path: PathBuf,
    pub(crate) carried: u64,
    #[serde(default)]
    pub(crate) left: Vec<NotCarried>,
    /// Why there is no dump at all.
    #[serde(default)]
    pub(crate) error: Option<String>,
}

/// Outcome of loading a dump.
#[derive(Debug, Deserialize)]
pub(crate) struct LoadOutcome {
    #[serde(default)]
    pub(crate) left: Vec<NotCarried>,
    #[serde(default)]
    pub(crate) error: Option<String>,
}

/// A name that was not carried over, and why.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NotCarried {
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// Returns the file in which the writer of a dump reports the outcome.
pub(crate) fn outcome_file(dump: &Path) -> PathBuf {
    let mut name = dump.as_os_str().to_owned();
    name.push(".report");
    PathBuf::from(name)
}

/// A copy's report about itself.
#[derive(Debug, Deserialize)]
pub(crate) struct CopyReport {
    pub(crate) pid: u32,
    /// Threads of the original, which it does not have.
    #[serde(default)]
    pub(crate) threads: Vec<String>,
    /// What else it does not have.
    #[serde(default)]
    pub(crate) left: Vec<String>,
    /// Whether the original changes without runs, by threads or tasks.
    #[serde(default)]
    pub(crate) restless: bool,
    /// The interpreter's version.
    #[serde(default)]
    pub(crate) version: Option<String>,
}

/// An order for a copy of a kernel's process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy<'a> {
    /// The directory where it takes orders.
    pub(crate) directory: &'a Path,
    pub(crate) kind: Kind<'a>,
}

/// The purpose of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'a> {
    /// Waits, and is copied again for a rewind.
    Image,
    /// Replaces the kernel that it was copied from.
    Kernel,
    /// Becomes the kernel of another session, in `cwd` if given, with these variables
    /// set.
    Fork { session: &'a str, cwd: Option<&'a Path>, env: &'a BTreeMap<&'a str, &'a str> },
}

/// Number of a question to a kernel about a run's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Question(u64);

impl Question {
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) run: RunNo,
    pub(crate) exit_code: i32,
    pub(crate) value: Option<RunValue>,
    pub(crate) error: Option<RunError>,
    pub(crate) notes: Vec<String>,
}

/// Who received a signal in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalTarget {
    /// The kernel, and whatever it runs.
    Kernel,
    /// Only the program that has the terminal.
    Program,
}

/// Whether a kernel that is asked to exit should write down its state, if it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastState {
    Wanted,
    /// It is on disk already, or of no use.
    Unwanted,
}

pub(crate) trait Kernel: Debug {
    /// Returns this process's ends of the confidential pipes to the kernel. The first one
    /// is for its orders.
    fn pipes(&mut self) -> Vec<&mut OwnedFd>;

    /// Whether it opens its order pipe again by a path, as a shell does whose stdin was
    /// moved.
    fn reopens_orders(&self) -> bool {
        false
    }

    /// Tells where it finds that pipe now.
    fn orders_are_at(&mut self, _: &str) {}

    /// Whether it would use a second way to report, and has none.
    fn lacks_way_to_report(&self) -> bool {
        false
    }

    /// Tells a second path to which it can report.
    fn reports_also_at(&mut self, _: String) {}

    /// Asks again for a report that came without its run's secret.
    fn ask_again(&self) {}

    /// Its directory was made anew: puts in there what its process opens by path. The
    /// process itself goes on, and has the pipes open that it had. Returns those that it
    /// would open by their names, if these are others: in the order of `pipes`.
    fn recreate_files(&mut self, pipe_access: PipeAccess) -> io::Result<Vec<OwnedFd>>;

    /// Hands over a run. The kernel is idle.
    fn begin(&mut self, order: &Order<'_>) -> io::Result<()>;

    /// Prepares for a signal to the run.
    fn pressing(&mut self, _: RunNo) {}

    /// Does what the kernel needs in addition to notice that the run was signalled.
    fn pressed(&mut self, run: RunNo, who: SignalTarget) -> io::Result<()>;

    /// Asks for a capture, which is reported when it is done.
    fn capture(&mut self, as_of: RunNo) -> io::Result<()>;

    /// Asks the interpreter to exit as it would at the end of its input.
    fn exit(&mut self, last: LastState) -> io::Result<()>;

    /// Takes bytes from the report FIFO.
    fn parse_reports(&mut self, bytes: &[u8]) -> Vec<Report>;

    /// After its death: the state that it wrote down as it went, if it did.
    fn final_state(&mut self) -> Option<SavedKernel>;

    /// Returns a signal, if there is one, that keeps the kernel from going on after its
    /// foreground program was killed.
    fn stop_signal(&self, _: Caught) -> Option<i32> {
        None
    }

    /// Returns the signal that interrupts the kernel in the current run, if one is to be
    /// sent.
    fn interrupt_signal(&mut self, _: Caught) -> Option<i32> {
        Some(libc::SIGINT)
    }

    /// Returns a signal that makes it give up the current run even if a trap of the
    /// user's catches the interrupt. Once in a run.
    fn halt_signal(&mut self, _: Caught) -> Option<i32> {
        None
    }

    /// Whether only the end of its jobs ends a wait for them: then all of them are killed
    /// with a run.
    fn waits_for_jobs(&self) -> bool {
        false
    }

    /// Returns how many descriptors its process must be allowed for another run.
    fn room(&self) -> u64 {
        0
    }

    /// Notes that this limit was raised from outside.
    fn got_room(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    /// Asks it to release its terminal: the last run with a terminal is over, and nothing
    /// else has it.
    fn release(&mut self) -> io::Result<Release> {
        Ok(Release::Free)
    }

    /// Notes that the terminal has hung up.
    fn released(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether the process has job control on its terminal: then keys may stop its jobs.
    fn has_job_control(&self) -> bool {
        false
    }

    /// Has an idle kernel write its state to a new file. Reported when it is done.
    fn dump(&mut self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Has a fresh kernel load such a file and change to the directory. Reported when it
    /// is done. This runs the user's code.
    fn load(&mut self, _: &Path, _cwd: Option<&Path>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the name by which its messages call the file with a run's text.
    fn own_name(&self) -> Option<Rc<OwnName>> {
        None
    }

    /// Returns the interpreter's version, if it reports one.
    fn version(&self) -> Option<String> {
        None
    }

    /// Whether a capture was requested that has not been reported.
    fn is_capturing(&self) -> bool;

    /// The process that was to write a capture has been killed. It is asked for once
    /// more; what is returned says that it is given up.
    fn capture_lost(&mut self) -> Option<Report> {
        None
    }

    /// Whether its process has done all that it was told and waits for more:
    /// then what it has not reported never comes by itself.
    fn awaits_orders(&self, _: Pid) -> bool {
        false
    }

    /// Whether the run's code is called from an event loop: then the system cannot tell
    /// what it waits for, and the kernel has to be asked.
    fn has_event_loop(&self) -> bool {
        false
    }

    /// Asks whether the run can only go on with input.
    fn ask(&mut self, _: RunNo, _: Question) -> io::Result<()> {
        Ok(())
    }

    /// Asks for a copy of the process. The copy reports when it is up; the original
    /// reports if there is none.
    fn copy(&mut self, _: &Copy<'_>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Asks again, with other commands, for a report that did not come.
    fn prompt(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a text is likely to end its kernel without leaving its state behind.
pub(crate) fn is_risky(text: &[u8]) -> bool {
    ["kill", "exec", "trap"].iter().any(|word| mentions(text, word))
}

fn mentions(text: &[u8], word: &str) -> bool {
    memchr::memmem::find(text, word.as_bytes()).is_some()
}

/// Splits bytes into lines.
#[derive(Debug)]
struct Lines {
    rest: Vec<u8>,
    /// The maximum length of a line, approximately.
    limit: usize,
}

/// How much is kept of a line that is too long: it may end with the beginning of a
/// report, behind the bytes of another process.
const LAST_PART: usize = 4096;

impl Lines {
    fn of_at_most(limit: usize) -> Self {
        Self { rest: Vec::new(), limit }
    }

    /// Returns the complete lines, without their ends.
    fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.rest.extend_from_slice(bytes);
        let Some(end) = self.rest.iter().rposition(|b| *b == b'\n') else {
            if self.rest.len() > self.limit {
                self.rest.drain(..self.rest.len() - LAST_PART);
                self.rest.shrink_to_fit();
            }
            return Vec::new();
        };
        let after = self.rest.split_off(end + 1);
        let whole = std::mem::replace(&mut self.rest, after);
        whole[..end].split(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_not_kept_and_a_report_behind_it_is() {
        let mut lines = Lines::of_at_most(10_000);
        for _ in 0..1000 {
            assert!(lines.push(&[b'x'; 1000]).is_empty());
            assert!(lines.rest.len() <= 11_000);
        }
        let found = lines.push(b"r 1\nd 1\n");
        assert!(found[0].ends_with(b"xr 1"));
        assert_eq!(found[1], b"d 1");
    }
}
