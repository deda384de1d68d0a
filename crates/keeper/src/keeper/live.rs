//! A running kernel: its process, its descriptors, and its current work.

use super::bombs::DelayedEnd;
use super::deferred::Deferred;
use super::dying::Death;
use super::patience::Patience;
use super::prompts::Pause;
use crate::confined::Confined;
use crate::kernels::Kernel;
use crate::names::Names;
use crate::origins::{Origins, Others, Span};
use crate::privacy::{Neighbours, Privacy, Renewal, Renewed};
use crate::processes::{self, Room};
use crate::scratch::{Inbox, hidden_directory};
use crate::streams::Stream;
use crate::terminal::Terminal;
use crate::turns::Turn;
use rustix::process::Pid;
use sessile_protocol::{Code, Failure, Language, RunNo};
use sessile_session::{Epoch, Tick};
use sessile_store::StreamName;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// The kernels of a session.
#[derive(Debug, Default)]
pub(super) struct Kernels {
    pub(super) live: BTreeMap<Language, Live>,
    /// The exit code of each language's last run, for a shell's `$?`.
    pub(super) last_status: BTreeMap<Language, i32>,
    /// Notes for the next run of a language, about events before it.
    pub(super) news: BTreeMap<Language, Vec<String>>,
    /// Why a kernel could not be started.
    pub(super) launch_failures: BTreeMap<Language, Failure>,
    pub(super) origins: Origins,
    /// Interval of checks on kernels that owe a report.
    pub(super) silence_pause: Tick,
    /// Interval of checks on interactive runs.
    pub(super) prompt_pause: Pause,
}

impl Kernels {
    /// The kernel that executes a run.
    pub(super) fn at_run(&self, run: RunNo) -> Option<(Language, &Live)> {
        let mut live = self.live.iter();
        live.find(|(_, live)| live.current == Some(run)).map(|(language, live)| (*language, live))
    }

    pub(super) fn at_run_mut(&mut self, run: RunNo) -> Option<&mut Live> {
        self.live.values_mut().find(|live| live.current == Some(run))
    }

    pub(super) fn language_of(&self, pid: Pid) -> Option<Language> {
        self.live.iter().find(|(_, live)| live.pid == pid).map(|(language, _)| *language)
    }

    pub(super) fn has_pid(&self, pid: Pid) -> bool {
        self.language_of(pid).is_some()
    }

    pub(super) fn pids(&self) -> impl Iterator<Item = Pid> + '_ {
        self.live.values().map(|live| live.pid)
    }

    /// Whether others than this one execute something.
    pub(super) fn beside(&self, language: Language) -> Others {
        let is_busy =
            |(other, live): (&Language, &Live)| *other != language && live.current.is_some();
        if self.live.iter().any(is_busy) { Others::Busy } else { Others::AtRest }
    }

    /// Those that owe a report: that they are up, or that their run ended.
    pub(super) fn owing_reports(&self) -> Vec<Language> {
        let owing_reports = self.live.iter().filter(|(_, live)| live.owes_report());
        owing_reports.map(|(language, _)| *language).collect()
    }

    /// Returns the reason why a kernel does not start, with a hint if that is not known.
    pub(super) fn why_not(&self, language: Language, hint: &str) -> Failure {
        let known = self.launch_failures.get(&language).cloned();
        known.unwrap_or_else(|| {
            Failure::new(Code::KernelUnavailable, format!("{language} does not come up{hint}"))
        })
    }
}

/// A kernel process and its descriptors.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) directory: PathBuf,
    pub(super) epoch: Epoch,
    pub(super) pid: Pid,
    pub(super) kernel: Box<dyn Kernel>,
    /// The directory of its open descriptors, once it was looked at.
    pub(super) descriptors: Option<OwnedFd>,
    pub(super) reports: Inbox,
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
    pub(super) patience: Patience,
    /// What is in its directory, and where hidden streams are.
    pub(super) names: Names,
    pub(super) hidden_names: Names,
    pub(super) terminal: Option<Terminal>,
    /// Terminals that the kernel was asked to release.
    pub(super) leaving: VecDeque<Terminal>,
    /// Its private pipes, in a sandbox.
    pub(super) privacy: Option<Privacy>,
    /// When the current run began, in the unit of a process's age.
    pub(super) begun: u64,
    /// The newest process of the system before the current run began.
    pub(super) floor: Option<Pid>,
    /// The newest process of the system when the kernel's state was last asked for.
    pub(super) capture_floor: Option<Pid>,
    pub(super) current: Option<RunNo>,
    pub(super) force: Force,
    pub(super) has_come_up: bool,
    /// It was asked again for a report that it owes.
    pub(super) was_prompted: bool,
    /// Its next run, if the kernel could not be reached yet.
    pub(super) deferred: Option<Deferred>,
    /// The exit code of the current run, if the kernel was killed after it.
    pub(super) verdict: Option<i32>,
    /// The end of the current run, which is told when what it has left is looked after.
    pub(super) withheld: Option<Box<DelayedEnd>>,
    /// It is gone, which the session is not told yet.
    pub(super) death: Option<Death>,
    /// State that it takes over once it is up.
    pub(super) inheritance: Option<Inheritance>,
    /// Held while its state is captured in idle time.
    pub(super) turn: Option<Turn>,
    /// Set when the session ends: the run as of which the kernel leaves its state.
    pub(super) farewell: Option<RunNo>,
}

/// Means used to make the current run end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Force {
    None,
    /// Signals.
    Signals,
    /// Signals, while at least half of the allowed processes existed.
    SignalsAtLimit,
}

/// A state in a file, for a new kernel.
#[derive(Debug)]
pub(super) struct Inheritance {
    pub(super) dump: PathBuf,
    pub(super) cwd: Option<PathBuf>,
}

impl Live {
    pub(super) fn new(
        epoch: Epoch,
        pid: Pid,
        kernel: Box<dyn Kernel>,
        reports: Inbox,
        (stdout, stderr): (Stream, Stream),
        directory: PathBuf,
    ) -> Self {
        Self {
            patience: Patience::default(),
            names: Names::of(&directory),
            hidden_names: Names::default(),
            directory,
            epoch,
            pid,
            kernel,
            descriptors: None,
            reports,
            stdout,
            stderr,
            terminal: None,
            leaving: VecDeque::new(),
            privacy: None,
            begun: 0,
            floor: None,
            capture_floor: None,
            current: None,
            force: Force::None,
            has_come_up: false,
            was_prompted: false,
            deferred: None,
            verdict: None,
            withheld: None,
            death: None,
            inheritance: None,
            turn: None,
            farewell: None,
        }
    }

    /// Makes sure that the kernel can open what the next run needs.
    pub(super) fn make_room(&mut self) -> Room {
        processes::make_room(self.pid, &mut self.descriptors, self.kernel.room())
    }

    /// Gives the kernel its private pipes before it is told anything confidential, so
    /// that no other process in its sandbox hears that or knows where its next run writes
    /// to.
    pub(super) fn keep_private(
        &mut self,
        confined: &Confined,
        beside: Neighbours,
        renewal: Renewal,
    ) -> io::Result<()> {
        let kernel = (&mut *self.kernel, self.pid);
        let renewed = Privacy::ensure(&mut self.privacy, kernel, confined, beside, renewal)?;
        match renewed {
            Renewed::No => Ok(()),
            Renewed::Yes => {
                self.stdout.hide(&self.directory)?;
                self.stderr.hide(&self.directory)?;
                self.hidden_names = Names::of(&hidden_directory(&self.directory));
                Ok(())
            }
        }
    }

    /// Returns the processes that the current run waits for.
    pub(super) fn foreground(&self) -> Vec<Pid> {
        let Some(group) = self.foreground_group() else {
            return self.started();
        };
        let mut work =
            if group == self.pid { self.started() } else { processes::descendants(self.pid) };
        work.retain(|pid| processes::group(*pid) == Some(group));
        work
    }

    /// Returns the same without regard to which group has the terminal.
    pub(super) fn started(&self) -> Vec<Pid> {
        processes::foreground(self.pid, self.begun, [self.stdout.id(), self.stderr.id()])
    }

    /// Returns the process group that gets the keys of the current run's terminal, if
    /// that is the kernel's controlling terminal.
    pub(super) fn foreground_group(&self) -> Option<Pid> {
        let terminal = self.terminal.as_ref().filter(|t| Some(t.run) == self.current)?;
        terminal.foreground_group().filter(|_| terminal.controls(self.pid))
    }

    pub(super) fn stream(&self, name: StreamName) -> &Stream {
        match name {
            StreamName::Stdout => &self.stdout,
            StreamName::Stderr => &self.stderr,
        }
    }

    pub(super) fn stream_mut(&mut self, name: StreamName) -> &mut Stream {
        match name {
            StreamName::Stdout => &mut self.stdout,
            StreamName::Stderr => &mut self.stderr,
        }
    }

    /// Returns the foreground without background jobs that only their priority shows.
    pub(super) fn awaited(&self) -> Vec<Pid> {
        let mut work = self.foreground();
        work.retain(|pid| !processes::has_lower_priority(*pid, self.pid));
        work
    }

    /// The time span of the current run, up to now.
    pub(super) fn span(&self, run: RunNo, language: Language) -> Span {
        let (kernel, begun, floor) = (self.pid, self.begun, self.floor);
        let ended = sessile_proc::ticks_since_boot();
        Span { run, language, kernel, begun, ended, floor, ceiling: None }
    }

    /// Whether a report of it is to come: that it is up, or that its run ended.
    pub(super) fn owes_report(&self) -> bool {
        let owes_end = self.current.is_some() && self.withheld.is_none();
        self.death.is_none() && (owes_end || !self.has_come_up)
    }
}
