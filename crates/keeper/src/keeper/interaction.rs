//! Input and signals for a run in progress.

use super::jobs::{self, Search, Tree, check_signal};
use super::{Deadline, Keeper};
use crate::ports::Tables;
use crate::processes;
use crate::runs::Run;
use rustix::process::Pid;
use sessile_protocol::{Answer, Code, Failure, JobsView, PortsView, RunNo, RunPhase};
use sessile_session::{Input, Tick};

/// Limit of unread input of one run. A run that reads slower than its client writes must
/// not fill the keeper's memory.
const UNREAD: u64 = 16 << 20;

impl Keeper {
    pub(super) fn input(
        &mut self,
        number: RunNo,
        bytes: Vec<u8>,
        is_last: bool,
    ) -> Result<Answer, Failure> {
        let closed = |message: String| Failure::new(Code::InputClosed, message);
        self.check_going(number, Code::InputClosed, "takes no more input")?;
        if self.runs.get(&number).is_some_and(|run| run.order.terminal.is_some()) {
            return self.type_input(number, bytes, is_last);
        }
        let stdin = self.runs.get_mut(&number).and_then(|run| run.stdin.as_mut());
        let stdin = stdin.ok_or_else(|| {
            closed(format!("run {number} is not interactive: its stdin was given with its order"))
        })?;
        if stdin.is_complete() {
            return Err(closed(format!("the input of run {number} was ended before")));
        }
        check_room(number, stdin.unread(), bytes.len())?;
        stdin.push(bytes, is_last);
        stdin.feed(&self.reactor);
        let unread = stdin.unread();
        let now = self.now();
        if let Some(run) = self.runs.get_mut(&number) {
            run.last_sign = now;
        }
        if is_last {
            self.show_stdin_ends();
        }
        if self.deadlines.is_set(Deadline::Prompts) {
            // The next question may come at once.
            self.expect_prompt();
        }
        Ok(Answer::Input { unread })
    }

    /// Checks that a run has not finished. Returns the failure for one that has.
    pub(super) fn check_going(&self, number: RunNo, code: Code, what: &str) -> Result<(), Failure> {
        let is_over = match self.runs.get(&number).map(Run::phase) {
            Some(RunPhase::Queued | RunPhase::Running) => return Ok(()),
            Some(RunPhase::Exited | RunPhase::Closed) => true,
            None => self.records.history.find(number).is_some(),
        };
        let over = || Failure::new(code, format!("run {number} has finished and {what}"));
        Err(if is_over { over() } else { self.missing(number) })
    }

    /// Creates a run's stdin, if it is an open one, before the kernel is told of the run.
    pub(super) fn open_stdin(&mut self, number: RunNo) -> std::io::Result<()> {
        let Some(run) = self.runs.get_mut(&number) else {
            return Ok(());
        };
        if let Some(stdin) = &mut run.stdin {
            // The directory of a kernel that is a copy has another name.
            let live = self.kernels.live.get(&run.language);
            let directory = &live.ok_or(std::io::ErrorKind::NotFound)?.directory;
            stdin.open(&directory.join("i"), &self.reactor)?;
            // Not before the kernel may have opened it.
            self.deadlines.set(Deadline::Stdins, self.home.now() + 1);
        }
        Ok(())
    }

    /// Feeds the stdin of a run that has room.
    pub(super) fn feed_stdin(&mut self, number: RunNo) {
        if let Some(stdin) = self.runs.get_mut(&number).and_then(|run| run.stdin.as_mut()) {
            stdin.feed(&self.reactor);
        }
        self.show_stdin_ends();
    }

    /// Shows the end of input to the runs whose input has ended.
    pub(super) fn show_stdin_ends(&mut self) {
        let now = self.now();
        let running: Vec<RunNo> = self.session.running().collect();
        let mut next: Option<Tick> = None;
        for number in running {
            let stdin = self.runs.get_mut(&number).and_then(|run| run.stdin.as_mut());
            let pause = stdin.and_then(|stdin| stdin.show_end());
            next = next.into_iter().chain(pause.map(|pause| now + pause)).min();
        }
        self.deadlines.set(Deadline::Stdins, next);
    }

    /// Ends the input of a run that is to end: its readers have nothing to wait for.
    pub(super) fn cut_input(&mut self, number: RunNo) {
        if let Some(stdin) = self.runs.get_mut(&number).and_then(|run| run.stdin.as_mut()) {
            stdin.cut(&self.reactor);
            self.deadlines.set(Deadline::Stdins, self.home.now() + 1);
        }
    }

    pub(super) fn signal(&mut self, number: RunNo, signal: i32) -> Result<Answer, Failure> {
        check_signal(signal)?;
        let going = self.check_going(number, Code::RunNotFound, "has left nothing to signal");
        if let Err(refusal) = going {
            let jobs = self.find_and_record_jobs();
            return match jobs::signal_those_of(&jobs, number, signal) {
                0 => Err(refusal),
                processes => Ok(Answer::Signalled { processes }),
            };
        }
        let Some((language, live)) = self.kernels.at_run(number) else {
            // The run has not begun and has no processes yet.
            return Ok(Answer::Signalled { processes: 0 });
        };
        let mut targets = live.foreground();
        if targets.is_empty() && signal == libc::SIGINT {
            self.step(Input::Interrupt { run: Some(number) });
            return Ok(Answer::Signalled { processes: 1 });
        }
        // A shell is the session, not the run. In other interpreters, the kernel process
        // executes the run's own code.
        if targets.is_empty() && !language.is_shell() {
            targets.push(live.pid);
        }
        let reached = targets.iter().filter(|pid| processes::signal_by_number(**pid, signal));
        Ok(Answer::Signalled { processes: reached.count() as u64 })
    }

    pub(super) fn jobs(&mut self) -> JobsView {
        let trees = self.find_and_record_jobs();
        jobs::view(&trees, &self.kernels)
    }

    /// Returns the ports on which the session's processes listen.
    pub(super) fn ports(&self) -> PortsView {
        let ports = Tables::default().ports(self.own_descendants().into_iter());
        let network = self.home.confined.as_ref().and_then(|confined| confined.network());
        PortsView { ports, network }
    }

    pub(super) fn signal_job(&mut self, pid: u32, signal: i32) -> Result<Answer, Failure> {
        check_signal(signal)?;
        jobs::signal(&self.find_jobs(), pid, signal)
    }

    pub(super) fn search(&self, ended: Option<RunNo>) -> Search<'_> {
        Search {
            ended,
            kernels: &self.kernels,
            runs: &self.runs,
            output: &self.output,
            scratch: self.home.scratch.path(),
            children: self.own_children(),
            are_copies_pending: self.operations.images.are_copies_pending(),
        }
    }

    pub(super) fn find_jobs(&self) -> Vec<Tree> {
        self.find_jobs_after(None)
    }

    /// Finds all jobs while the end of a run is being handled.
    pub(super) fn find_jobs_after(&self, ended: Option<RunNo>) -> Vec<Tree> {
        let search = self.search(ended);
        let saves = &self.operations.saves;
        search.find(|pid| {
            self.is_copy(pid)
                || self.family.was_copied(pid)
                || saves.has_process(pid)
                || self.works_on_files(pid)
        })
    }

    /// Whether runs have left anything in the background.
    pub(super) fn has_jobs(&self) -> bool {
        !self.find_jobs().is_empty()
    }

    /// Finds all jobs, and keeps what is known of where they come from.
    fn find_and_record_jobs(&mut self) -> Vec<Tree> {
        let trees = self.find_jobs();
        self.kernels.origins.keep(&jobs::members(&trees));
        trees
    }

    /// Trims the records of where jobs come from, in idle time, so that they do not grow.
    pub(super) fn forget_origins(&mut self) {
        let mut live = self.kernels.live.values();
        // What may be a capture was not looked at, and may be a job.
        if !self.kernels.origins.should_compact() || live.any(|live| live.kernel.is_capturing()) {
            return;
        }
        let found = jobs::members(&self.find_jobs());
        let alive: Vec<Pid> = self.kernels.pids().collect();
        self.kernels.origins.forget_but(&found, &alive);
    }
}

/// Checks whether a run may be given so much more to read.
pub(super) fn check_room(number: RunNo, unread: u64, more: usize) -> Result<(), Failure> {
    if unread + more as u64 <= UNREAD {
        return Ok(());
    }
    let message = format!(
        "run {number} has {unread} bytes of input to read yet, and may have {UNREAD}; send more when it has read some"
    );
    Err(Failure::new(Code::QueueFull, message))
}
