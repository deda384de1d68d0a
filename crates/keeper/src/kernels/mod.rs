//! Kernels: the live interpreters, behind one shape.
//!
//! A kernel gets its orders on a FIFO of its own and reports on another, both
//! in its private directory; user code has ordinary stdin, stdout and stderr,
//! which are the run's. A language's quirks stay in its file.

mod launch;
mod scripted;
mod secret;
mod shell;
mod spawn;

pub(crate) use launch::{DriverFiles, Plan, complaints, open_channel};
pub(crate) use shell::interpret;

use crate::own_name::OwnName;
use crate::processes::Caught;
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
    /// The FIFOs that its stdout and stderr go to.
    pub(crate) output: [&'a Path; 2],
    pub(crate) env: &'a BTreeMap<String, String>,
    /// In the place of all three streams.
    pub(crate) terminal: Option<Terminal<'a>>,
    /// What it starts has a larger number than this process, by the kernel's count.
    pub(crate) floor: Option<u32>,
}

/// The terminal of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal<'a> {
    pub(crate) path: &'a str,
    /// The kernel has not had it before.
    pub(crate) is_new: bool,
    /// Earlier runs have left something in the kernel's own process group.
    pub(crate) has_leftovers: bool,
}

/// What becomes of a terminal that a kernel is to let go of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// The kernel has nothing to do with it.
    Free,
    /// The kernel will say when it is ready for the end of it.
    Awaited,
}

/// Where a run reads from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stdin<'a> {
    Empty,
    Bytes(&'a [u8]),
    /// A FIFO, which is there already: `i` in the kernel's directory.
    Open,
}

/// What a new kernel process takes over from the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Previous<'a> {
    pub(crate) state: Option<&'a SavedKernel>,
    /// The last run's exit code.
    pub(crate) status: i32,
}

/// What a kernel says.
#[derive(Debug)]
pub(crate) enum Report {
    Ready,
    Ended(Ended),
    Captured(RawCapture),
    /// A capture came to nothing.
    NotCaptured,
    /// The kernel is ready for its terminal to hang up.
    LetGo,
    /// Whether the current run can only go on with input, as asked.
    Wants {
        question: Question,
        input: bool,
    },
    Copy(AboutCopy),
    /// A process that this keeper will see end writes the dump. Then the file
    /// beside it, see [`outcome_file`], says what [`Report::Dumped`] would.
    Dumping {
        path: PathBuf,
        writer: Pid,
    },
    Dumped(Box<Dumped>),
    JobEnded(JobEnded),
    Loaded(Box<Loaded>),
    /// Something that the kernel did not say, or not at this time.
    Stray,
}

/// What a shell says of a job that is gone.
#[derive(Debug)]
pub(crate) struct JobEnded {
    pub(crate) pid: u32,
    /// The run that started it.
    pub(crate) run: RunNo,
    pub(crate) command: Option<String>,
    pub(crate) exit_code: Option<i32>,
}

/// A captured state. What it says takes a while to find out, and is often not
/// needed: a newer one comes.
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

    /// Makes sense of it. `None` when there is none in it.
    pub(crate) fn interpret(self) -> Option<SavedKernel> {
        match self {
            Self::Described(saved) => Some(*saved),
            Self::Listed(listed) => listed.interpret(),
        }
    }
}

/// What is said of a copy of a kernel.
#[derive(Debug)]
pub(crate) enum AboutCopy {
    /// It is there.
    Up(Box<CopyReport>),
    /// There is none for that directory.
    Unborn { directory: String, error: String },
    /// One is on its way to that directory: this process.
    Copied { directory: String, pid: Pid },
}

/// What became of a dump.
#[derive(Debug, Deserialize)]
pub(crate) struct Dumped {
    pub(crate) path: PathBuf,
    pub(crate) carried: u64,
    #[serde(default)]
    pub(crate) left: Vec<Left>,
    /// Why there is no dump at all.
    #[serde(default)]
    pub(crate) error: Option<String>,
}

/// What became of loading a dump.
#[derive(Debug, Deserialize)]
pub(crate) struct Loaded {
    #[serde(default)]
    pub(crate) left: Vec<Left>,
    #[serde(default)]
    pub(crate) error: Option<String>,
}

/// A name that was not carried, and why.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Left {
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// Where the writer of a dump says how it went.
pub(crate) fn outcome_file(dump: &Path) -> PathBuf {
    let mut name = dump.as_os_str().to_owned();
    name.push(".report");
    PathBuf::from(name)
}

/// What a copy says of itself.
#[derive(Debug, Deserialize)]
pub(crate) struct CopyReport {
    pub(crate) pid: u32,
    /// Threads of the original, which it does not have.
    #[serde(default)]
    pub(crate) threads: Vec<String>,
    /// What else it does not have.
    #[serde(default)]
    pub(crate) left: Vec<String>,
    /// The original changes by itself, without runs: threads, tasks.
    #[serde(default)]
    pub(crate) restless: bool,
    /// The interpreter's.
    #[serde(default)]
    pub(crate) version: Option<String>,
}

/// A copy of a kernel's process that is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy<'a> {
    /// Where it takes orders.
    pub(crate) directory: &'a Path,
    pub(crate) kind: Kind<'a>,
}

/// What a copy is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'a> {
    /// To wait, and be copied again when somebody goes back to it.
    Image,
    /// To be the kernel in the place of the one that it is a copy of.
    Kernel,
    /// To be the kernel of another session, in that directory if it is given,
    /// with these variables set.
    Fork { session: &'a str, cwd: Option<&'a Path>, env: &'a BTreeMap<&'a str, &'a str> },
}

/// Numbers what a kernel is asked about a run's input.
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

/// Who was signalled of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pressed {
    /// The kernel, and whatever it runs.
    Kernel,
    /// Only the program that has the terminal.
    Program,
}

/// Whether a kernel that is asked to exit is to write its state down, if it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastState {
    Wanted,
    /// It is written down already, or of no use.
    Unwanted,
}

pub(crate) trait Kernel: Debug {
    /// The pipes by which it is told what nobody else is to know, as this process
    /// has them. The first one is that of its orders.
    fn pipes(&mut self) -> Vec<&mut OwnedFd>;

    /// Whether it opens the pipe of its orders anew, by a path: a shell whose stdin
    /// was moved about does.
    fn reopens_orders(&self) -> bool {
        false
    }

    /// Where it finds that pipe now.
    fn orders_are_at(&mut self, _: &str) {}

    /// Asks again for a report that came without its run's secret.
    fn ask_again(&self) {}

    /// Its directory was made anew: puts in there what its process opens by path. The
    /// process itself goes on, and has the pipes open that it had.
    fn furnish(&mut self) -> io::Result<()>;

    /// Hands over a run. The kernel is idle.
    fn begin(&mut self, order: &Order<'_>) -> io::Result<()>;

    /// The run is about to be signalled.
    fn pressing(&mut self, _: RunNo) {}

    /// The run was signalled: whatever the kernel needs besides, to notice.
    fn pressed(&mut self, run: RunNo, who: Pressed) -> io::Result<()>;

    /// Asks for a capture, which is reported when it is done.
    fn capture(&mut self, as_of: RunNo) -> io::Result<()>;

    /// Asks the interpreter to exit as it would at the end of its input.
    fn exit(&mut self, last: LastState) -> io::Result<()>;

    /// Takes bytes from the report FIFO.
    fn hear(&mut self, bytes: &[u8]) -> Vec<Report>;

    /// After its death: the state that it wrote down as it went, if it did.
    fn last_words(&mut self) -> Option<SavedKernel>;

    /// A signal for the kernel, if there is one, that keeps it from going on
    /// after its foreground program was killed.
    fn stop_signal(&self, _: Caught) -> Option<i32> {
        None
    }

    /// What interrupts the kernel in the current run, if anything is to be sent.
    fn interrupt_signal(&mut self, _: Caught) -> Option<i32> {
        Some(libc::SIGINT)
    }

    /// A signal by which the current run is given up even where a trap of the
    /// user's takes the interrupt. Once in a run.
    fn halt_signal(&mut self, _: Caught) -> Option<i32> {
        None
    }

    /// Whether nothing but the end of its jobs ends a wait for them: then all of
    /// them are killed with a run.
    fn waits_for_jobs(&self) -> bool {
        false
    }

    /// How many descriptors its process has to be allowed for another run.
    fn room(&self) -> u64 {
        0
    }

    /// That limit was raised from outside.
    fn got_room(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    /// The last run with a terminal is over, and nothing else has it.
    fn release(&mut self) -> io::Result<Release> {
        Ok(Release::Free)
    }

    /// The terminal has hung up.
    fn released(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether the process can tell jobs apart on its terminal: then keys may
    /// stop them.
    fn has_job_control(&self) -> bool {
        false
    }

    /// Has the state written into a new file, by an idle kernel. Reported when
    /// it is done.
    fn dump(&mut self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Takes over a state that was written so, in a fresh kernel, and goes to
    /// the directory. Reported when it is done. This runs code of the user's.
    fn load(&mut self, _: &Path, _cwd: Option<&Path>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What its messages call the file that it reads a run's text from.
    fn own_name(&self) -> Option<Rc<OwnName>> {
        None
    }

    /// The interpreter's version, where it says it.
    fn version(&self) -> Option<String> {
        None
    }

    /// Whether a capture was asked for that has not been reported.
    fn is_capturing(&self) -> bool;

    /// Whether its process has done all that it was told and waits for more:
    /// then what it has not reported never comes by itself.
    fn awaits_orders(&self, _: Pid) -> bool {
        false
    }

    /// Whether code of the run's is called from an event loop: then the system
    /// cannot tell what it waits for, and the kernel has to be asked.
    fn has_event_loop(&self) -> bool {
        false
    }

    /// Asks whether the run can only go on with input.
    fn ask(&mut self, _: RunNo, _: Question) -> io::Result<()> {
        Ok(())
    }

    /// Asks for a copy of the process. The copy reports when it is there; the
    /// original, when there is none.
    fn copy(&mut self, _: &Copy<'_>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Asks once more, in other words, for a report that did not come.
    fn prompt(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a text may well end its kernel without leaving its state behind.
pub(crate) fn is_risky(text: &[u8]) -> bool {
    ["kill", "exec", "trap"].iter().any(|word| mentions(text, word))
}

fn mentions(text: &[u8], word: &str) -> bool {
    let word = word.as_bytes();
    text.windows(word.len()).any(|window| window == word)
}

/// Bytes into lines.
#[derive(Debug)]
struct Lines {
    rest: Vec<u8>,
    /// The length of a line, more or less.
    limit: usize,
}

/// Of a line that is too long, what may be the beginning of another: a report
/// that somebody else's bytes came before.
const LAST_PART: usize = 4096;

impl Lines {
    fn of_at_most(limit: usize) -> Self {
        Self { rest: Vec::new(), limit }
    }

    /// The whole lines, without their ends.
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
