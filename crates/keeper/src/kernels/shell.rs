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
//! - Redirections on the command itself, because then what the shell prints
//!   about the trigger (`set -x`, `set -v`, a DEBUG trap) goes to its own
//!   stderr, which is /dev/null, before the run's takes its place.
//!
//! - With a secret of the run in the second, which a text does not get to see:
//!   bash and dash have read it ahead into their own memory, and zsh, which reads
//!   a byte at a time, has left it in the pipe.
//!
//! An EXIT trap of ours writes the state down when the shell exits. It must not
//! be seen or lost: see [`ExitTrap`].

use super::launch::{Invocation, install};
use super::secret::{Secret, Secrets};
use super::{Kernel, LastState, Lines, Order, Pressed, Previous, Release, Report, Stdin, mentions};
use crate::own_name::OwnName;
use crate::processes::{self, Caught};
use crate::scratch::{RewrittenFile, name_again, write_file};
use rustix::process::Pid;
use serde_json::Value;
use sessile_protocol::{Language, RunNo};
use sessile_store::SavedKernel;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

mod background;
mod bash;
mod captures;
mod dash;
mod dialect;
mod functions;
mod guard;
mod job_list;
mod job_name;
mod quoting;
mod reports;
mod terminal;
mod traps;
mod trigger;
mod view;
mod voice;
mod zsh;
use background::{Asking, Background, Functions, JobQuestions, Starts};
use captures::Captures;
pub(super) use captures::Listed;
pub(crate) use captures::interpret;
use dialect::Dialect;
use quoting::quote;
use terminal::JobControl;
use traps::ExitTrap;
use trigger::{EndsWith, done_line};
use voice::{Probe, Voice};

/// Where a saved state keeps the sources of functions.
const SOURCES: &str = "function_sources";

/// Every trap of ours has this in its text.
const MARK: &str = "__sessile_exit";

/// Descriptors that a shell has to be allowed for a run and a capture: those that
/// it saves go to 10 and above, and the user may have all below. zsh needs 17.
const ROOM: u64 = 20;

/// A report is a short line.
const LONGEST_REPORT: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Shell {
    dialect: &'static dyn Dialect,
    voice: Voice,
    /// Which voice works, when that is being asked.
    probe: Option<Probe>,
    /// Its private directory, as text that needs no quoting.
    dir: String,
    /// The same as this process sees it, for what the shell has written there.
    outside: PathBuf,
    orders: OwnedFd,
    /// Where the shell finds them, when it has lost its stdin.
    orders_path: String,
    /// A second way to where it reports, if it can take one.
    spare: Option<String>,
    /// The file that is sourced.
    text: RewrittenFile,
    own_name: Rc<OwnName>,
    lines: Lines,
    secrets: Secrets,
    /// Of the line that says that the shell is up.
    start: Secret,
    /// Of the run before: its report may come twice.
    former: Option<Secret>,
    /// How many bytes of orders may be unread when the current run is reported:
    /// those behind the line that reports it.
    unread: Cell<usize>,
    current: Option<Current>,
    /// Of the last run, for the next one's `$?`.
    status: i32,
    flags: String,
    exit_trap: ExitTrap,
    debug_trap: Option<String>,
    /// The user's EXIT trap in a state that is being restored.
    inherited_exit_trap: Option<String>,
    captures: Captures,
    /// The functions that runs have defined, by name, where the shell itself
    /// cannot list them.
    functions: BTreeMap<String, String>,
    jobs: JobControl,
    background: Background,
    /// The last run was given up by a trap of ours, or may have been.
    is_halted: bool,
    /// Of the traps after the last run. It goes when the next begins: the shell
    /// may yet come to lines that would list them again.
    listing: Option<PathBuf>,
}

/// The run that the shell is in.
#[derive(Debug)]
struct Current {
    run: RunNo,
    secret: Secret,
    form: Form,
    /// It is over when its `d` line has come, after a look at the traps.
    awaits_done: bool,
    /// The traps are listed after it, and our guard is taken away.
    lists_traps: bool,
    /// Errors may end the shell.
    errexit: bool,
    pressed: bool,
    reported: Option<i32>,
    /// The jobs that its text starts.
    starts: Starts,
    /// What is not yet answered about them.
    asking: Asking,
}

/// How a run's streams are put in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As redirections of the sourcing command: gone by the time that an EXIT
    /// trap runs.
    Redirected,
    /// As the shell's own streams, so that what an EXIT trap prints is part of
    /// the run. Used when there may be such a trap.
    Replaced,
}

impl Shell {
    pub(super) fn prepare(
        language: Language,
        (directory, outside): (&Path, &Path),
        (orders, spare): (OwnedFd, Option<String>),
        program: &Path,
        previous: Previous<'_>,
    ) -> io::Result<(Self, Invocation)> {
        let dialect = dialect::of(language);
        let mut secrets = Secrets::default();
        let start = secrets.next()?;
        let mut shell = Self {
            dialect,
            voice: Voice::among(dialect, &[]),
            probe: None,
            dir: directory.display().to_string(),
            outside: outside.to_owned(),
            orders,
            orders_path: directory.join("t").display().to_string(),
            spare,
            text: RewrittenFile::create(&directory.join("c"))?,
            own_name: Rc::new(OwnName::new(
                program.file_name().and_then(|name| name.to_str()).unwrap_or_default(),
                directory.join("c").display().to_string(),
            )),
            lines: Lines::of_at_most(LONGEST_REPORT),
            secrets,
            start,
            former: None,
            unread: Cell::new(0),
            current: None,
            status: 0,
            flags: String::new(),
            exit_trap: ExitTrap::Open,
            debug_trap: None,
            inherited_exit_trap: None,
            captures: Captures::default(),
            functions: BTreeMap::new(),
            jobs: JobControl::of(dialect, program),
            background: Background::default(),
            is_halted: false,
            listing: None,
        };
        let mut boot = dialect.boot().to_owned();
        if let Some(saved) = previous.state
            && let Some(text) = &saved.restore
        {
            let trap = |name: &str| saved.view.get("traps")?.get(name)?.as_str().map(str::to_owned);
            shell.inherited_exit_trap = trap("EXIT");
            shell.debug_trap = trap("DEBUG");
            shell.voice = Voice::among(dialect, &names(saved.view.get("functions")));
            if let Some(Value::Object(sources)) = saved.view.get(SOURCES) {
                let sources = sources
                    .iter()
                    .filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())));
                shell.functions = sources.collect();
            }
            shell.background.functions = Functions::of_restored(text.as_bytes());
            write_file(&directory.join("restore"), text.as_bytes())?;
            let _ = writeln!(boot, "{}", dialect.restore(&shell.dir));
        }
        shell.fill_directory()?;
        shell.keep_status(previous.status);
        // `!`, because of `set -e`: see `prompt` for what follows a failure.
        let _ = writeln!(boot, "! {}", shell.ready_line(shell.voice));
        shell.send(&boot)?;
        let args = dialect.arguments().iter().map(Into::into).collect();
        Ok((shell, Invocation { args, stdin: Some(directory.join("t")), env: Vec::new() }))
    }

    fn send(&self, lines: &str) -> io::Result<()> {
        self.unread.set(self.unread.get().saturating_add(lines.len()));
        write_orders(&self.orders, lines.as_bytes())
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.dir).join(name)
    }

    /// What the shell has written for us. In a sandbox, whatever else runs there
    /// can write in that directory, too, and nowhere else of ours.
    fn left(&self, name: &str) -> PathBuf {
        self.outside.join(name)
    }

    /// Whether our trap on a signal is there. The shell may have become another
    /// program, which the signal would be the end of.
    fn traps(&self, signal: i32, caught: Caught) -> bool {
        match self.exit_trap {
            ExitTrap::Armed { .. } | ExitTrap::Guarded { .. } => caught.has(signal),
            ExitTrap::Open => false,
        }
    }

    /// Takes up what works, if that was asked.
    fn learn_voice(&mut self) {
        let outcome = self.probe.take().and_then(|probe| probe.outcome(self.dialect));
        let Some(voice) = outcome.filter(|voice| *voice != self.voice) else { return };
        self.voice = voice;
        let _ = self.install();
        if let ExitTrap::Armed { users } = &mut self.exit_trap {
            let users = users.take();
            let line = self.arm(users);
            let _ = self.send(&line);
        }
    }

    /// Puts the scripts that the shell reads into its directory.
    fn install(&self) -> io::Result<()> {
        for (name, text) in self.dialect.files() {
            // dash does not tell a sourced file where it is.
            let text = self.voice.speak(text.replace("@DIR@", &self.dir));
            install(Path::new(&self.dir), &[(*name, &text)])?;
        }
        Ok(())
    }

    /// Puts all into its directory that has to be there before a run.
    fn fill_directory(&self) -> io::Result<()> {
        self.install()?;
        if self.dialect.hides_functions() {
            self.name_functions()?;
        }
        // Here already, so that the user's umask is not its mode.
        write_file(&self.left("w/int"), b"")
    }

    /// For the next run's `$?`.
    fn keep_status(&mut self, status: i32) {
        self.status = status;
        if status != 0 {
            let _ =
                write_file(&self.path("q"), self.dialect.returning(status, self.voice).as_bytes());
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

    fn furnish(&mut self) -> io::Result<()> {
        name_again(&self.path("t"), &self.orders)?;
        self.text = RewrittenFile::create(&self.path("c"))?;
        self.fill_directory()?;
        self.keep_status(self.status);
        // Their forks have no place to write to.
        self.captures.under_way.clear();
        Ok(())
    }

    fn begin(&mut self, order: &Order<'_>) -> io::Result<()> {
        self.learn_functions(order.text)?;
        if let Some(listing) = self.listing.take() {
            let _ = std::fs::remove_file(listing);
        }
        if self.is_halted {
            // It may have come to that only after the last run was over.
            let line = self.restore_interrupt_trap().unwrap_or_default();
            self.send(&line)?;
            self.is_halted = false;
        }
        let form = self.form(order.text);
        let prelude = self.prelude(order.text)?;
        self.probe = voice::is_doubtful(self.dialect, order.text).then(Probe::default);
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
            // Something in the background may still read the last one.
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
            asking: Asking::Nothing,
        });
        Ok(())
    }

    fn pressed(&mut self, run: RunNo, who: Pressed) -> io::Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        current.pressed |= who == Pressed::Kernel;
        // What was asked about jobs may be thrown away, too.
        if let Asking::About(_) | Asking::AboutAtLast(_) = std::mem::take(&mut current.asking) {
            current.awaits_done = true;
        }
        let (form, lists_traps) = (current.form, current.lists_traps);
        let secret = current.secret.clone();
        // The report line may be gone: dash throws away what it has read ahead,
        // and a second SIGINT may have hit bash in the middle of it. Reported
        // twice does no harm.
        let mut report = self.report_line(&secret, self.voice);
        let done = self.done_line(&secret, self.voice);
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
        let mut line = self.voice.speak(self.dialect.capture(&self.dir, as_of));
        // Its failure, without `exit` say, must not be the shell's end.
        if self.flags.contains('e') {
            line.insert_str(line.len() - 1, " || \\:");
        }
        self.send(&line)?;
        self.captures.under_way.push(as_of);
        Ok(())
    }

    fn exit(&mut self, last: LastState) -> io::Result<()> {
        let prefix = self.voice.prefix;
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
        // Twice, because an interactive shell with stopped jobs refuses the first
        // time.
        self.send(&format!("{disarm}{prefix}exit\n{prefix}exit\n"))
    }

    fn hear(&mut self, bytes: &[u8]) -> Vec<Report> {
        self.understand_all(bytes)
    }

    fn last_words(&mut self) -> Option<SavedKernel> {
        let as_of = self.current.as_ref().map_or(RunNo(0), |c| c.run);
        // With a hook there is a trap of ours under a guard, if the user's is the
        // same as before.
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
        // It will interrupt itself.
        if self.is_halted && self.dialect.halts_by_itself() {
            return None;
        }
        let errexit = self.current.as_ref().is_some_and(|current| current.errexit);
        // An interrupt would be its end, and no trap would run.
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
        self.send(&format!("{}ulimit -S -n {limit}\n", self.voice.prefix))
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

    fn awaits_orders(&self, pid: Pid) -> bool {
        // What was sent is read, and the next read waits.
        let unread = rustix::io::ioctl_fionread(&self.orders);
        unread == Ok(0) && processes::is_reading(pid, &self.orders)
    }

    fn prompt(&mut self) -> io::Result<()> {
        let voice = self.voice.certain();
        let questions = voice::questions(self.dialect, &self.dir)?;
        self.probe = Some(Probe::default());
        let Some(current) = &mut self.current else {
            return self.send(&format!("{questions}{}\n", self.ready_line(voice)));
        };
        current.awaits_done = true;
        current.asking = Asking::Nothing;
        // The line that was to report expanded its words, whatever it did with
        // them, and `$_` is the last one: the very report.
        let report = format!("{} \"$_\" >{}/s", voice.echo, self.dir);
        let done = done_line(&current.secret, voice, &self.dir);
        self.send(&format!("{report}\n{questions}{done}\n"))
    }
}

/// The names in a list of a saved state.
fn names(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
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
