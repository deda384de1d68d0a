//! bash, zsh and the POSIX shells.
//!
//! The shell runs interactively, without line editing, terminal or history, and
//! reads trigger lines on its stdin. For each run the keeper writes the text to
//! a file and sends two lines:
//!
//! ```text
//! \builtin . DIR/c <>/dev/null >DIR/o 2>DIR/e
//! \builtin echo "r 7 $? $-" >DIR/s
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
//! An EXIT trap of ours writes the state down when the shell exits. It must not
//! be seen or lost: see [`ExitTrap`].

use super::launch::{Invocation, install};
use super::records;
use super::{Ended, Heritage, Kernel, Lines, Order, Release, Report, Stdin, mentions};
use crate::processes;
use crate::scratch::{Slate, make_fifo, write_file};
use rustix::process::Pid;
use serde_json::Value;
use sessile_protocol::{Language, RunNo};
use sessile_store::SavedKernel;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

mod dialect;
mod functions;
mod guard;
mod terminal;
mod voice;
use dialect::{Dialect, Guard};
use terminal::JobControl;
use voice::{Probe, Voice};

/// Where a saved state keeps the sources of functions.
const SOURCES: &str = "function_sources";

/// Every trap of ours has this in its text.
const MARK: &str = "__sessile_exit";

#[derive(Debug)]
pub(super) struct Shell {
    dialect: Dialect,
    voice: Voice,
    /// Which voice works, when that is being asked.
    probe: Option<Probe>,
    /// Its private directory, as text that needs no quoting.
    dir: String,
    orders: OwnedFd,
    /// The file that is sourced.
    text: Slate,
    lines: Lines,
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
}

/// Captures that are under way, each in a fork of the shell. In dash only one
/// at a time: two would share the FIFO that hands over the traps.
#[derive(Debug, Default)]
struct Captures {
    under_way: Vec<RunNo>,
    wanted: Option<RunNo>,
}

/// The run that the shell is in.
#[derive(Debug)]
struct Current {
    run: RunNo,
    form: Form,
    /// It is over when its `d` line has come, after a look at the traps.
    awaits_done: bool,
    pressed: bool,
    reported: Option<i32>,
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

/// Who has the shell's EXIT trap.
///
/// While the user has none, it is ours and writes down the state. While the
/// user has one, it is the user's text followed by ours. Before a text that
/// lists traps, the user's own is put back, so that it shows what a plain
/// shell shows. A text that may set one and then exit runs under a [`guard`].
/// What a text that mentions traps leaves is looked at right after it, and ours
/// goes behind it again.
#[derive(Debug, PartialEq, Eq)]
enum ExitTrap {
    /// Ours is in place, behind the user's text if there is one.
    Armed { users: Option<String> },
    /// Ours stays behind whatever the current run sets. `users`: as it began.
    Guarded { users: Option<String> },
    /// Not known, and not ours.
    Open,
}

impl Shell {
    pub(super) fn prepare(
        language: Language,
        directory: &Path,
        orders: OwnedFd,
        program: &Path,
        heritage: Heritage<'_>,
    ) -> io::Result<(Self, Invocation)> {
        let dialect = Dialect::of(language);
        for (name, text) in dialect.files() {
            // dash does not tell a sourced file where it is.
            let text = text.replace("@DIR@", &directory.display().to_string());
            install(directory, &[(*name, &text)])?;
        }
        for name in dialect.fifos() {
            make_fifo(&directory.join(name))?;
        }
        let mut shell = Self {
            dialect,
            voice: Voice::among(dialect, &[]),
            probe: None,
            dir: directory.display().to_string(),
            orders,
            text: Slate::create(&directory.join("c"))?,
            lines: Lines::default(),
            current: None,
            status: 0,
            flags: String::new(),
            exit_trap: ExitTrap::Open,
            debug_trap: None,
            inherited_exit_trap: None,
            captures: Captures::default(),
            functions: BTreeMap::new(),
            jobs: JobControl::of(dialect, program),
        };
        let mut boot = dialect.boot(&shell.dir);
        if let Some(saved) = heritage.state
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
                shell.name_functions()?;
            }
            write_file(&directory.join("restore"), text.as_bytes())?;
            let _ = writeln!(boot, "{}", dialect.restore(&shell.dir));
        }
        shell.keep_status(heritage.status);
        // `!`, because of `set -e`: see `prompt` for what follows a failure.
        let _ = writeln!(boot, "! {}", shell.ready_line(shell.voice));
        shell.send(&boot)?;
        let args = dialect.arguments().iter().map(Into::into).collect();
        Ok((shell, Invocation { args, stdin: Some(directory.join("t")), env: Vec::new() }))
    }

    fn send(&self, lines: &str) -> io::Result<()> {
        write_orders(&self.orders, lines.as_bytes())
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.dir).join(name)
    }

    fn ready_line(&self, voice: Voice) -> String {
        format!("{} \"ready - $-\" >{}/s", voice.echo, self.dir)
    }

    fn report_line(&self, run: RunNo, voice: Voice) -> String {
        format!("{} \"r {run} $? $-\" >{}/s", voice.echo, self.dir)
    }

    fn done_line(&self, run: RunNo, voice: Voice) -> String {
        format!("{} \"d {run}\" >{}/s", voice.echo, self.dir)
    }

    /// The lines that make the shell run what lies in `c`.
    fn trigger(&self, order: &Order<'_>, form: Form, prelude: &str) -> io::Result<String> {
        let (dir, prefix) = (&self.dir, self.voice.prefix);
        let stdin = match order.stdin {
            Stdin::Bytes(_) | Stdin::Open | Stdin::Empty if order.terminal.is_some() => {
                format!("<>{}", order.terminal.map_or("", |terminal| terminal.path))
            }
            Stdin::Bytes(_) | Stdin::Open => format!("<{dir}/i"),
            // Read and write, which tells a run's own empty stdin from that of
            // a background job (see processes::is_asynchronous).
            Stdin::Empty => "<>/dev/null".to_owned(),
        };
        let env = self.dialect.environment(order.env, self.voice);
        // A failed last run is still failed: `q` returns its status. On the
        // left of `||` it sets off neither `set -e` nor an ERR trap.
        let status = match self.status {
            0 => String::new(),
            _ if self.flags.contains('e') => String::new(),
            _ => format!("{} {dir}/q || ", self.voice.source),
        };
        let source = format!("{}{status}{} {dir}/c {stdin}", env.before, env.source);
        let (voice, questions) = match self.probe {
            Some(_) => (self.voice.certain(), voice::questions(self.dialect, dir)?),
            None => (self.voice, String::new()),
        };
        let report = self.report_line(order.run, voice) + &env.after;
        let done = self.done_line(order.run, voice);
        let streams = match order.terminal {
            Some(terminal) => format!(">{0} 2>{0}", terminal.path),
            None => format!(">{dir}/o 2>{dir}/e"),
        };
        let (exec, reopen) = (self.exec(), self.reopen());
        Ok(match form {
            // A text that moves descriptors about may have closed the copies
            // that the shell keeps of its own streams during a redirection.
            Form::Redirected => {
                let mut after = String::new();
                if mentions(order.text, "exec") {
                    let _ = write!(after, ";{reopen}");
                }
                if self.probe.is_some() {
                    let _ = write!(after, "\n{questions}{}{done}", self.list_traps(order.text));
                } else if self.looks_at_traps(order.text) {
                    let _ = write!(after, ";{}{done}", self.list_traps(order.text));
                }
                format!("{prelude}{source} {streams}\n{report}{after}\n")
            }
            // In one line, so that no prompt comes between. The second line
            // is for the case that the first was aborted.
            Form::Replaced => format!(
                "{prelude}{exec} {streams};{source};{{ {report};{prefix}set +x; }} 2>/dev/null;\
                 {exec} >/dev/null 2>&1\n{report};{reopen}\n{questions}{}{}{done}\n",
                self.unguard(),
                self.list_traps(order.text),
            ),
        })
    }

    /// `exec` for redirections, which `builtin exec` would undo.
    fn exec(&self) -> String {
        match self.dialect {
            Dialect::Bash | Dialect::Zsh => "\\exec".to_owned(),
            Dialect::Posix => format!("{}exec", self.voice.prefix),
        }
    }

    /// Gives the shell its own streams back.
    fn reopen(&self) -> String {
        format!("{} <{}/t >/dev/null 2>&1", self.exec(), self.dir)
    }

    /// Takes note of the functions in a text, for a shell that cannot list its
    /// own, and has the next capture ask which of them there are.
    fn learn_functions(&mut self, text: &[u8]) -> io::Result<()> {
        let Ok(text) = std::str::from_utf8(text) else { return Ok(()) };
        if !self.dialect.hides_functions() || !text.contains("()") {
            return Ok(());
        }
        for definition in functions::definitions(text) {
            self.functions.insert(definition.name, definition.source);
        }
        self.name_functions()
    }

    fn name_functions(&self) -> io::Result<()> {
        let names: Vec<&str> = self.functions.keys().map(String::as_str).collect();
        // Renamed into place: a capture may just be reading it.
        write_file(&self.path("names.new"), (names.join("\n") + "\n").as_bytes())?;
        std::fs::rename(self.path("names.new"), self.path("names"))
    }

    /// Adds the sources of the functions that a capture found to what it
    /// restores.
    fn add_functions(&self, view: &mut serde_json::Map<String, Value>, restore: &mut String) {
        let found = view.get("functions").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut sources = serde_json::Map::new();
        for name in found.iter().filter_map(Value::as_str) {
            if let Some(source) = self.functions.get(name) {
                // On the left of `||`: one that cannot be read costs only itself.
                let _ = write!(restore, "\n\\command eval {} || \\:", quote(source));
                sources.insert(name.to_owned(), source.as_str().into());
            }
        }
        if !sources.is_empty() {
            view.insert(SOURCES.to_owned(), sources.into());
        }
    }

    /// Whether the traps are looked at after a text.
    fn looks_at_traps(&self, text: &[u8]) -> bool {
        self.exit_trap == ExitTrap::Open || self.debug_trap.is_some() || changes_traps(text)
    }

    fn unguard(&self) -> &'static str {
        match self.exit_trap {
            ExitTrap::Guarded { .. } => self.dialect.unguard(),
            ExitTrap::Armed { .. } | ExitTrap::Open => "",
        }
    }

    /// Has the traps listed to `l`.
    fn list_traps(&self, text: &[u8]) -> String {
        if self.looks_at_traps(text) {
            format!("{}trap >|{}/l;", self.voice.prefix, self.dir)
        } else {
            String::new()
        }
    }

    fn form(&self, text: &[u8]) -> Form {
        let users_trap = match &self.exit_trap {
            ExitTrap::Armed { users } => users.is_some(),
            ExitTrap::Guarded { .. } | ExitTrap::Open => true,
        };
        // A DEBUG trap would see, and show, the lines around the text.
        let debugs = self.debug_trap.is_some() || mentions(text, "DEBUG");
        if !debugs && (users_trap || changes_traps(text)) {
            Form::Replaced
        } else {
            Form::Redirected
        }
    }

    /// What has to be done about the EXIT trap before a text.
    fn prelude(&mut self, text: &[u8]) -> io::Result<String> {
        if lists_traps(text) {
            return Ok(self.disarm());
        }
        let is_plain = self.debug_trap.is_none() && self.voice == Voice::among(self.dialect, &[]);
        if !is_plain || !guard::is_wanted(self.dialect, &self.flags, text) {
            return Ok(String::new());
        }
        match std::mem::replace(&mut self.exit_trap, ExitTrap::Open) {
            ExitTrap::Armed { users } => {
                let script = guard::script(self.dialect, &self.dir, users.as_deref());
                write_file(&self.path("h"), script.as_bytes())?;
                self.exit_trap = ExitTrap::Guarded { users };
                Ok(self.dialect.guard(&self.dir))
            }
            other @ (ExitTrap::Guarded { .. } | ExitTrap::Open) => {
                self.exit_trap = other;
                Ok(String::new())
            }
        }
    }

    /// Puts the user's own EXIT trap back before a text that may look at it.
    fn disarm(&mut self) -> String {
        let prefix = self.voice.prefix;
        let stop = self.dialect.stop_signal().map(|signal| format!("{prefix}trap - {signal};"));
        let stop = stop.unwrap_or_default();
        match std::mem::replace(&mut self.exit_trap, ExitTrap::Open) {
            ExitTrap::Armed { users: Some(users) } => {
                format!("{stop}{prefix}trap -- {} EXIT;", quote(&users))
            }
            ExitTrap::Armed { users: None } => format!("{stop}{prefix}trap - EXIT;"),
            ExitTrap::Guarded { .. } | ExitTrap::Open => String::new(),
        }
    }

    /// The line that puts our EXIT trap in place, behind the user's.
    fn arm(&mut self, users: Option<String>) -> String {
        let ours = self.dialect.exit_trap(&self.dir);
        let text = match (&users, self.dialect) {
            (None, _) => ours,
            (Some(users), Dialect::Zsh) => format!("{users}\n{ours}"),
            (Some(users), Dialect::Bash | Dialect::Posix) => {
                guard::behind(self.dialect, &self.dir, Some((users, "")), Guard::Off)
            }
        };
        self.exit_trap = ExitTrap::Armed { users };
        let prefix = self.voice.prefix;
        let stop = match self.dialect.stop_signal() {
            Some(signal) => {
                format!("{prefix}trap -- '{prefix}kill -s INT $$ # {MARK}' {signal};")
            }
            None => String::new(),
        };
        format!("{stop}{prefix}trap -- {} EXIT\n", quote(&text))
    }

    fn understand(&mut self, line: &str) -> Option<Report> {
        let mut words = line.split(' ');
        let (kind, number) = (words.next()?, words.next());
        let number = || number?.parse().ok().map(RunNo);
        match kind {
            "ready" => {
                words.next_back().unwrap_or_default().clone_into(&mut self.flags);
                self.learn_voice();
                let users = self.inherited_exit_trap.take();
                let line = self.arm(users);
                self.send(&line).ok()?;
                Some(Report::Ready)
            }
            "r" => {
                let (run, status) = (number()?, words.next()?.parse().ok()?);
                self.reported(run, status, words.next().unwrap_or_default())
            }
            "d" => self.done(number()?),
            "c" => self.captured(number()?),
            "g" => Some(Report::LetGo),
            kind => {
                let probe = self.probe.as_mut()?;
                probe.hear(kind, usize::try_from(number()?.0).ok()?);
                None
            }
        }
    }

    fn reported(&mut self, run: RunNo, status: i32, flags: &str) -> Option<Report> {
        let current = self.current.as_mut().filter(|c| c.run == run)?;
        if current.reported.is_none() {
            current.reported = Some(status);
            flags.clone_into(&mut self.flags);
            self.jobs.hide(&mut self.flags);
        }
        if current.awaits_done { None } else { self.done(run) }
    }

    fn done(&mut self, run: RunNo) -> Option<Report> {
        let current = self.current.take_if(|c| c.run == run && c.reported.is_some())?;
        let mut status = current.reported?;
        self.learn_voice();
        if current.pressed && status == 0 && self.dialect.forgets_interrupts() {
            status = 128 + libc::SIGINT;
        }
        if current.form == Form::Replaced && self.flags.contains('x') {
            let _ = self.send(&format!("{}set -x\n", self.voice.prefix));
        }
        if let Some(line) = self.jobs.end(self.voice) {
            let _ = self.send(&line);
        }
        self.keep_status(status);
        if current.awaits_done {
            self.learn_traps();
        }
        Some(Report::Ended(Ended {
            run,
            exit_code: status,
            value: None,
            error: None,
            notes: Vec::new(),
        }))
    }

    /// Takes up what works, if that was asked.
    fn learn_voice(&mut self) {
        if let Some(voice) = self.probe.take().and_then(|probe| probe.outcome(self.dialect)) {
            self.voice = voice;
        }
    }

    /// Looks at the traps that a run has left, and puts our EXIT trap back
    /// behind the user's if it is not there.
    fn learn_traps(&mut self) {
        let path = self.path("l");
        let Ok(listing) = std::fs::read(&path) else { return };
        let _ = std::fs::remove_file(path);
        let listing = String::from_utf8_lossy(&listing);
        self.keep_debug_trap(records::trap(&listing, &["DEBUG"]));
        let found = records::trap(&listing, &["EXIT", "0"]);
        let users = match (&mut self.exit_trap, found) {
            (ExitTrap::Guarded { users }, Some(text)) if text.contains(MARK) => {
                guard::users_part(&text).unwrap_or_else(|| users.take())
            }
            (ExitTrap::Armed { .. } | ExitTrap::Open, Some(text)) if text.contains(MARK) => return,
            (ExitTrap::Armed { .. } | ExitTrap::Guarded { .. } | ExitTrap::Open, found) => found,
        };
        let line = self.arm(users);
        let _ = self.send(&line);
    }

    /// bash hides a DEBUG trap from what it sources, and brings it back even if
    /// that has removed it. So the shell has none between runs, and each text
    /// begins by setting it.
    fn keep_debug_trap(&mut self, trap: Option<String>) {
        if trap.is_some() {
            let _ = self.send(&format!("{}trap - DEBUG\n", self.voice.prefix));
        }
        self.debug_trap = trap;
    }

    /// For the next run's `$?`.
    fn keep_status(&mut self, status: i32) {
        self.status = status;
        if status != 0 {
            let _ =
                write_file(&self.path("q"), self.dialect.returning(status, self.voice).as_bytes());
        }
    }

    fn captured(&mut self, as_of: RunNo) -> Option<Report> {
        let at = self.captures.under_way.iter().position(|run| *run == as_of)?;
        self.captures.under_way.remove(at);
        let saved = self.take_capture(&format!("x{as_of}"), as_of);
        // What was wanted meanwhile is the state between two runs, or nothing.
        if let Some(next) = self.captures.wanted.take()
            && self.current.is_none()
        {
            let _ = self.capture(next);
        }
        Some(match saved {
            Some(saved) => Report::Captured { as_of, saved: Box::new(saved) },
            None => Report::NotCaptured,
        })
    }

    fn take_capture(&mut self, name: &str, as_of: RunNo) -> Option<SavedKernel> {
        let path = self.path(name);
        let bytes = std::fs::read(&path).ok()?;
        let _ = std::fs::remove_file(path);
        let captured = records::parse(&bytes)?;
        // Only what the shell is like now matters for its traps; a run that
        // began meanwhile may have changed them again.
        if self.current.is_none() {
            if self.dialect == Dialect::Bash && captured.debug_trap.is_some() {
                self.keep_debug_trap(captured.debug_trap.clone());
            }
            self.rearm(captured.exit_trap.clone());
        }
        let mut view = captured.view;
        view.insert("shell".into(), Value::from(self.dialect.name()));
        // The capture passes over a trap with ours in it.
        if let ExitTrap::Armed { users: Some(users) } = &self.exit_trap {
            let traps =
                view.entry("traps").or_insert_with(|| Value::Object(serde_json::Map::new()));
            traps["EXIT"] = Value::from(users.as_str());
        }
        if let Some(trap) = &self.debug_trap {
            let traps =
                view.entry("traps").or_insert_with(|| Value::Object(serde_json::Map::new()));
            traps["DEBUG"] = Value::from(trap.as_str());
        }
        let mut restore = captured.restore;
        if self.dialect.hides_functions() {
            self.add_functions(&mut view, &mut restore);
        }
        Some(SavedKernel { as_of_run: as_of, view, restore: Some(restore) })
    }

    /// After a capture found out what EXIT trap the user has.
    fn rearm(&mut self, found: Option<String>) {
        let found = found.filter(|text| !text.contains(MARK));
        let line = match (&self.exit_trap, found) {
            (ExitTrap::Armed { .. }, None) => return,
            (ExitTrap::Armed { .. }, Some(users)) => self.arm(Some(users)),
            (ExitTrap::Guarded { .. } | ExitTrap::Open, users) => self.arm(users),
        };
        let _ = self.send(&line);
    }
}

impl Kernel for Shell {
    fn begin(&mut self, order: &Order<'_>) -> io::Result<()> {
        self.learn_functions(order.text)?;
        let form = self.form(order.text);
        let prelude = self.prelude(order.text)?;
        self.probe = voice::is_doubtful(self.dialect, order.text).then(Probe::default);
        let trigger = self.trigger(order, form, &prelude)?;
        match &self.debug_trap {
            // Sourcing hides a DEBUG trap from the sourced text.
            Some(trap) if self.dialect == Dialect::Bash => {
                let prefix = self.voice.prefix;
                let mut bytes = format!("{prefix}trap -- {} DEBUG;", quote(trap)).into_bytes();
                bytes.extend_from_slice(order.text);
                self.text.write(&bytes)?;
            }
            Some(_) | None => self.text.write(order.text)?,
        }
        if let Stdin::Bytes(stdin) = order.stdin {
            let path = self.path("i");
            // Something in the background may still read the last one.
            let _ = std::fs::remove_file(&path);
            write_file(&path, stdin)?;
        }
        let prepare = order.terminal.map(|terminal| self.prepare_terminal(terminal));
        self.send(&(prepare.unwrap_or_default() + &trigger))?;
        self.current = Some(Current {
            run: order.run,
            form,
            awaits_done: form == Form::Replaced
                || self.probe.is_some()
                || self.looks_at_traps(order.text),
            pressed: false,
            reported: None,
        });
        Ok(())
    }

    fn pressed(&mut self, run: RunNo) -> io::Result<()> {
        if let Some(current) = &mut self.current {
            current.pressed = true;
        }
        // The report line may be gone: dash throws away what it has read ahead,
        // and a second SIGINT may have hit bash in the middle of it. Reported
        // twice does no harm.
        let report = self.report_line(run, self.voice);
        let done = self.done_line(run, self.voice);
        self.send(&format!("{report};{};{done}\n", self.reopen()))
    }

    fn capture(&mut self, as_of: RunNo) -> io::Result<()> {
        if self.captures.under_way.contains(&as_of) {
            return Ok(());
        }
        if self.dialect.captures_alone() && !self.captures.under_way.is_empty() {
            self.captures.wanted = Some(as_of);
            return Ok(());
        }
        let mut line = self.dialect.capture(&self.dir, as_of);
        // Its failure, without `exit` say, must not be the shell's end.
        if self.flags.contains('e') {
            line.insert_str(line.len() - 1, " || \\:");
        }
        self.send(&line)?;
        self.captures.under_way.push(as_of);
        Ok(())
    }

    fn exit(&mut self) -> io::Result<()> {
        let prefix = self.voice.prefix;
        // Our trap would only delay it. Twice, because an interactive shell
        // with stopped jobs refuses the first time.
        let disarm = match &self.exit_trap {
            ExitTrap::Armed { users: Some(users) } => {
                format!("{prefix}trap -- {} EXIT;", quote(users))
            }
            ExitTrap::Armed { users: None } => format!("{prefix}trap - EXIT;"),
            ExitTrap::Guarded { .. } | ExitTrap::Open => String::new(),
        };
        self.send(&format!("{disarm}{prefix}exit\n{prefix}exit\n"))
    }

    fn hear(&mut self, bytes: &[u8]) -> Vec<Report> {
        let lines = self.lines.push(bytes);
        lines.iter().filter_map(|line| self.understand(std::str::from_utf8(line).ok()?)).collect()
    }

    fn last_words(&mut self) -> Option<SavedKernel> {
        let as_of = self.current.as_ref().map_or(RunNo(0), |c| c.run);
        // Only zsh has a trap of ours there under a guard, if the user's is the
        // same as before.
        if self.dialect == Dialect::Zsh
            && let ExitTrap::Guarded { users } = &mut self.exit_trap
        {
            let users = users.take().filter(|_| !self.path(guard::AFTER).exists());
            self.exit_trap = ExitTrap::Armed { users };
        }
        let last = self.take_capture("final", as_of);
        last.or_else(|| self.take_capture(guard::AFTER, as_of))
    }

    fn stop_signal(&self) -> Option<i32> {
        match self.exit_trap {
            ExitTrap::Armed { .. } | ExitTrap::Guarded { .. } => {
                self.dialect.stop_signal().map(|_| libc::SIGRTMAX())
            }
            ExitTrap::Open => None,
        }
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
        // The line that was to report expanded its words, whatever it did with
        // them, and `$_` is the last one: the very report.
        let report = format!("{} \"$_\" >{}/s", voice.echo, self.dir);
        let run = current.run;
        let done = self.done_line(run, voice);
        self.send(&format!("{report}\n{questions}{done}\n"))
    }
}

/// The names in a list of a saved state.
fn names(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether a text may change traps that matter here.
fn changes_traps(text: &[u8]) -> bool {
    let names = || {
        let exit = mentions(text, "EXIT") || guard::has_word(text, "0");
        exit || mentions(text, "DEBUG")
    };
    mentions(text, "trap") && (names() || lists_traps(text))
}

/// Whether a text may list traps: `trap` alone, or `trap -p`.
fn lists_traps(text: &[u8]) -> bool {
    ["trap -p", "trap -l"].iter().any(|words| mentions(text, words)) || stands_alone(text, "trap")
}

/// Whether a command may stand in a text without any argument.
fn stands_alone(text: &[u8], command: &str) -> bool {
    let word = command.as_bytes();
    text.windows(word.len()).enumerate().filter(|(_, window)| *window == word).any(|(at, _)| {
        let next = text[at + word.len()..].iter().find(|b| !matches!(b, b' ' | b'\t'));
        next.is_none_or(|b| b"\r\n;|&)>`}".contains(b))
    })
}

/// The text as one word of any POSIX shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_lists_traps_is_told_from_one_that_sets_them() {
        for text in
            ["trap", "trap -p", "x=$(trap)", "trap | cat", "a; trap\nb", "trap -p EXIT", "`trap`"]
        {
            assert!(lists_traps(text.as_bytes()), "{text}");
        }
        for text in ["trap 'x' EXIT", "trap - INT", "trap \"\" INT", "sh -c 'trap : TERM'", "echo"]
        {
            assert!(!lists_traps(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn any_text_is_one_word_when_quoted() {
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
    }
}
