//! bash, zsh and the POSIX shells.
//!
//! The shell runs interactively, without line editing, terminal or history, and
//! reads trigger lines on its stdin. For each run the keeper writes the text to
//! a file and sends two lines:
//!
//! ```text
//! \builtin . DIR/c <>/dev/null >DIR/o 2>DIR/e
//! \builtin echo "r SECRET $? $-" >DIR/s
//! ```
//!
//! - Interactive, because then SIGINT aborts the first line only and the shell
//!   comes back to read the second with all its state.
//! - Sourced, because sourced text is not treated as typed: no `[1] 1234`.
//! - Two lines, because whatever aborts the first (SIGINT, `${x?}`, an unset
//!   variable under `set -u`) leaves the second.
//! - By path, because user code may close any descriptor.
//! - Redirections on the command itself, because then what the shell prints about the
//!   trigger (`set -x`, `set -v`, a DEBUG trap) goes to its own stderr, which is
//!   /dev/null, before the run's stderr replaces it.
//! - With a secret of the run in the second line, which a text cannot see: bash and dash
//!   have read it ahead into their own memory; zsh reads a byte at a time, so that the
//!   secret is still in the pipe.
//!
//! Our EXIT trap writes down the state when the shell exits. It must not be seen or lost:
//! see [`ExitTrap`].

use super::secret::{Secret, Secrets};
use super::{Kernel, LastState, Lines, Order, Release, Report, SignalTarget, Stdin, mentions};
use crate::processes::{self, Caught};
use crate::scratch::{PipeAccess, RewrittenFile, name_orders_again, write_file};
use rustix::process::Pid;
use sessile_protocol::RunNo;
use sessile_store::SavedKernel;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

mod background;
mod bash;
mod builtin_calls;
mod captures;
mod dash;
mod dialect;
mod functions;
mod guard;
mod job_list;
mod job_name;
mod own_name;
mod quoting;
mod reports;
mod starting;
mod terminal;
mod traps;
mod trigger;
mod view;
mod zsh;

use background::{Background, JobQuestions, PendingQuestions, StartedJobs};
use builtin_calls::{BuiltinCalls, Probe};
use captures::Captures;
pub(super) use captures::Listed;
pub(crate) use captures::interpret;
use dialect::Dialect;
pub(crate) use own_name::OwnName;
use quoting::quote;
use terminal::JobControl;
use traps::ExitTrap;
use trigger::EndsWith;

/// Where a saved state keeps the sources of functions.
const SOURCES: &str = "function_sources";

/// Part of the text of each of our traps.
const MARK: &str = "__sessile_exit";

/// Descriptors that a shell must be allowed for a run and a capture: those that it saves
/// go to 10 and above, and the user may have all below. zsh needs 17.
const ROOM: u64 = 20;

/// A report is a short line.
const LONGEST_REPORT: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Shell {
    dialect: &'static dyn Dialect,
    calls: BuiltinCalls,
    /// Which calls work, when that is being asked.
    probe: Option<Probe>,
    /// Its private directory, as text that needs no quoting.
    dir: String,
    /// The same directory as this process sees it, for what the shell has written there.
    outside: PathBuf,
    orders: OwnedFd,
    /// Where the shell finds its orders when it has lost its stdin.
    orders_path: String,
    /// A second way to report.
    spare: Option<String>,
    /// The file that is sourced.
    text: RewrittenFile,
    own_name: Rc<OwnName>,
    lines: Lines,
    secrets: Secrets,
    /// The secret of the line that reports that the shell is up.
    start: Secret,
    /// The secret of the run before: its report may come twice.
    former: Option<Secret>,
    /// How many bytes of orders may be unread when the current run is reported:
    /// those behind the line that reports it.
    unread: Cell<usize>,
    current: Option<Current>,
    /// The status of the last run, for the next one's `$?`.
    status: i32,
    flags: String,
    exit_trap: ExitTrap,
    debug_trap: Option<String>,
    /// The user's EXIT trap in a state that is being restored.
    inherited_exit_trap: Option<String>,
    captures: Captures,
    /// The functions that runs have defined, by name, if the shell itself cannot list
    /// them.
    functions: BTreeMap<String, String>,
    jobs: JobControl,
    background: Background,
    /// Our trap has ended the last run, or may have.
    is_halted: bool,
    /// The listing of traps after the last run. It is removed when the next run begins:
    /// the shell may still execute lines that would list them again.
    listing: Option<PathBuf>,
}

/// The run that the shell is in.
#[derive(Debug)]
struct Current {
    run: RunNo,
    secret: Secret,
    form: Form,
    /// It is over when its `d` line has come, after a check of the traps.
    awaits_done: bool,
    /// The traps are listed after it, and our guard is removed.
    lists_traps: bool,
    /// Errors may end the shell.
    errexit: bool,
    pressed: bool,
    reported: Option<i32>,
    /// The jobs that its text starts.
    starts: StartedJobs,
    /// Pending questions about them.
    pending_questions: PendingQuestions,
}

/// How a run's streams are put in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As redirections of the sourcing command: undone before an EXIT trap runs.
    Redirected,
    /// As the shell's own streams, so that what an EXIT trap prints is part of the run.
    /// Used when there may be such a trap.
    Replaced,
}

impl Shell {
    fn send(&self, lines: &str) -> io::Result<()> {
        self.unread.set(self.unread.get().saturating_add(lines.len()));
        write_orders(&self.orders, lines.as_bytes())
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.dir).join(name)
    }

    /// Returns the path of what the shell has written for us. In a sandbox, other
    /// processes there can also write in that directory, but to no other files of ours.
    fn left(&self, name: &str) -> PathBuf {
        self.outside.join(name)
    }

    /// Whether our trap on a signal is set. If the shell has executed another program,
    /// the signal would end that.
    fn traps(&self, signal: i32, caught: Caught) -> bool {
        match self.exit_trap {
            ExitTrap::Armed { .. } | ExitTrap::Guarded { .. } => caught.has(signal),
            ExitTrap::Open => false,
        }
    }

    /// For the next run's `$?`.
    fn keep_status(&mut self, status: i32) {
        self.status = status;
        if status != 0 {
            let _ =
                write_file(&self.path("q"), self.dialect.returning(status, self.calls).as_bytes());
        }
    }
}

impl Kernel for Shell {
    fn pipes(&mut self) -> Vec<&mut OwnedFd> {
        vec![&mut self.orders]
    }

    fn reopens_orders(&self) -> bool {
        true
    }

    fn orders_are_at(&mut self, path: &str) {
        path.clone_into(&mut self.orders_path);
    }

    fn lacks_way_to_report(&self) -> bool {
        self.spare.is_none()
    }

    fn reports_also_at(&mut self, path: String) {
        self.spare = Some(path);
    }

    fn recreate_files(&mut self, pipe_access: PipeAccess) -> io::Result<Vec<OwnedFd>> {
        let named = name_orders_again(&self.path("t"), &self.orders, pipe_access)?;
        self.text = RewrittenFile::create(&self.path("c"))?;
        self.fill_directory()?;
        self.keep_status(self.status);
        // Their forks have no place to write to.
        self.captures.under_way.clear();
        Ok(named.into_iter().collect())
    }

    fn begin(&mut self, order: &Order<'_>) -> io::Result<()> {
        self.learn_functions(order.text)?;
        if let Some(listing) = self.listing.take() {
            let _ = std::fs::remove_file(listing);
        }
        if self.is_halted {
            // The trap may have run only after the last run was over.
            let line = self.restore_interrupt_trap().unwrap_or_default();
            self.send(&line)?;
            self.is_halted = false;
        }
        let form = self.form(order.text);
        let prelude = self.prelude(order.text)?;
        self.probe = builtin_calls::may_redefine(self.dialect, order.text).then(Probe::default);
        let secret = self.secrets.next()?;
        let starts = self.starts(order);
        let JobQuestions { before, after } = self.job_questions(order, &secret);
        let trigger = self.trigger(order, form, &prelude, &after, &secret)?;
        let (off, first) = self.first_words(form, order.text);
        if first.is_empty() {
            self.text.write(order.text)?;
        } else {
            self.text.write(&[&first, order.text].concat())?;
        }
        if let Stdin::Bytes(stdin) = order.stdin {
            let path = self.path("i");
            // A background process may still read the last one.
            let _ = std::fs::remove_file(&path);
            write_file(&path, stdin)?;
        }
        let prepare = order.terminal.map(|terminal| self.prepare_terminal(terminal));
        let prepare = prepare.unwrap_or_default();
        self.send(&[&before, &prepare, &off, trigger.lines.as_str()].concat())?;
        self.unread.set(trigger.behind);
        self.current = Some(Current {
            run: order.run,
            secret,
            form,
            awaits_done: trigger.ends_with == EndsWith::Done,
            lists_traps: self.looks_at_traps(order.text),
            errexit: self.flags.contains('e') || guard::sets_option(order.text, b'e', "errexit"),
            pressed: false,
            reported: None,
            starts,
            pending_questions: PendingQuestions::Nothing,
        });
        Ok(())
    }

    fn pressed(&mut self, run: RunNo, who: SignalTarget) -> io::Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        current.pressed |= who == SignalTarget::Kernel;
        // The questions about jobs may be discarded too.
        if let PendingQuestions::About(_) | PendingQuestions::AboutAtLast(_) =
            std::mem::take(&mut current.pending_questions)
        {
            current.awaits_done = true;
        }
        let (form, lists_traps) = (current.form, current.lists_traps);
        let secret = current.secret.clone();
        // The report line may be gone: dash throws away what it has read ahead,
        // and a second SIGINT may have hit bash in the middle of it. Reported
        // twice does no harm.
        let mut report = self.report_line(&secret, self.calls);
        let done = self.done_line(&secret, self.calls);
        if form == Form::Replaced {
            report = self.untraced(&report);
        }
        let traps = if lists_traps { self.list_traps_once(run) } else { String::new() };
        self.send(&format!("{report};{};{traps}{done}\n", self.reopen()))
    }

    fn capture(&mut self, as_of: RunNo) -> io::Result<()> {
        if self.captures.under_way.contains(&as_of) {
            return Ok(());
        }
        let mut line = self.calls.rewrite(self.dialect.capture(&self.dir, as_of));
        // Its failure, without `exit` say, must not be the shell's end.
        if self.flags.contains('e') {
            line.insert_str(line.len() - 1, " || \\:");
        }
        self.send(&line)?;
        self.captures.under_way.push(as_of);
        Ok(())
    }

    fn exit(&mut self, last: LastState) -> io::Result<()> {
        let prefix = self.calls.prefix;
        // Our trap would only delay it, if nobody needs what it writes.
        let disarm = match (&self.exit_trap, last) {
            (ExitTrap::Armed { users: Some(users) }, LastState::Unwanted) => {
                format!("{prefix}trap -- {} EXIT;", quote(users))
            }
            (ExitTrap::Armed { users: None }, LastState::Unwanted) => {
                format!("{prefix}trap - EXIT;")
            }
            (ExitTrap::Armed { .. }, LastState::Wanted)
            | (ExitTrap::Guarded { .. } | ExitTrap::Open, _) => String::new(),
        };
        // Twice, because an interactive shell with stopped jobs refuses the first time.
        self.send(&format!("{disarm}{prefix}exit\n{prefix}exit\n"))
    }

    fn parse_reports(&mut self, bytes: &[u8]) -> Vec<Report> {
        self.understand_all(bytes)
    }

    fn final_state(&mut self) -> Option<SavedKernel> {
        let as_of = self.current.as_ref().map_or(RunNo(0), |c| c.run);
        // With a hook, our trap is set under a guard if the user's is the same as before.
        if self.dialect.has_exit_hook()
            && let ExitTrap::Guarded { users } = &mut self.exit_trap
        {
            let users = users.take().filter(|_| !self.left(guard::AFTER).exists());
            self.exit_trap = ExitTrap::Armed { users };
        }
        let last = self.take_capture("w/final", as_of);
        last.or_else(|| self.take_capture(guard::AFTER, as_of))?.interpret()
    }

    fn stop_signal(&self, caught: Caught) -> Option<i32> {
        let (number, _) = self.dialect.stop_signal()?;
        self.traps(number, caught).then_some(number)
    }

    fn interrupt_signal(&mut self, caught: Caught) -> Option<i32> {
        // The shell will interrupt itself.
        if self.is_halted && self.dialect.halts_by_itself() {
            return None;
        }
        let errexit = self.current.as_ref().is_some_and(|current| current.errexit);
        // An interrupt would end the shell without running a trap.
        if errexit && self.dialect.ends_at_interrupts() {
            return self.halt_signal(caught).or(Some(libc::SIGINT));
        }
        Some(libc::SIGINT)
    }

    fn halt_signal(&mut self, caught: Caught) -> Option<i32> {
        let (number, _) = self.dialect.halt_signal();
        if !self.traps(number, caught) || std::mem::replace(&mut self.is_halted, true) {
            return None;
        }
        Some(number)
    }

    fn own_name(&self) -> Option<Rc<OwnName>> {
        Some(Rc::clone(&self.own_name))
    }

    fn room(&self) -> u64 {
        ROOM
    }

    fn got_room(&mut self, limit: u64) -> io::Result<()> {
        if !self.dialect.keeps_limits() {
            return Ok(());
        }
        self.send(&format!("{}ulimit -S -n {limit}\n", self.calls.prefix))
    }

    fn waits_for_jobs(&self) -> bool {
        self.dialect.waits_for_jobs()
    }

    fn release(&mut self) -> io::Result<Release> {
        self.release_terminal()
    }

    fn released(&mut self) -> io::Result<()> {
        self.terminal_released()
    }

    fn has_job_control(&self) -> bool {
        self.jobs.is_possible()
    }

    fn is_capturing(&self) -> bool {
        !self.captures.under_way.is_empty()
    }

    fn capture_lost(&mut self) -> Option<Report> {
        let as_of = self.captures.under_way.last().copied()?;
        self.captures.under_way.clear();
        let is_repeated = self.captures.repeated.replace(as_of) == Some(as_of);
        (is_repeated || self.capture(as_of).is_err()).then_some(Report::NotCaptured)
    }

    fn awaits_orders(&self, pid: Pid) -> bool {
        // All orders have been read, and the next read blocks.
        let unread = rustix::io::ioctl_fionread(&self.orders);
        unread == Ok(0) && processes::is_reading(pid, &self.orders)
    }

    fn prompt(&mut self) -> io::Result<()> {
        self.ask_for_report()
    }
}

/// Writes to a kernel's orders, all or nothing. The pipe has room for a
/// hundred triggers; a kernel that reads none of them is beyond orders.
pub(super) fn write_orders(orders: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::write(orders, rest) {
            Ok(n) => rest = &rest[n..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
