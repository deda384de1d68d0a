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
use super::{Ended, Heritage, Kernel, Lines, Order, Report, Stdin, mentions};
use crate::scratch::{Slate, make_fifo, write_file};
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
use dialect::Dialect;

/// Where a saved state keeps the sources of functions.
const SOURCES: &str = "function_sources";

/// Every trap of ours has this in its text.
const MARK: &str = "__sessile_exit";

#[derive(Debug)]
pub(super) struct Shell {
    dialect: Dialect,
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
/// shell shows. What a text that mentions traps leaves is looked at right after
/// it, and ours goes behind it again.
#[derive(Debug, PartialEq, Eq)]
enum ExitTrap {
    /// Ours is in place, behind the user's text if there is one.
    Armed { users: Option<String> },
    /// Not known, and not ours.
    Open,
}

impl Shell {
    pub(super) fn prepare(
        language: Language,
        directory: &Path,
        orders: OwnedFd,
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
        };
        shell.keep_status(heritage.status);
        let mut boot = dialect.boot(&shell.dir);
        if let Some(saved) = heritage.state
            && let Some(text) = &saved.restore
        {
            let trap = |name: &str| saved.view.get("traps")?.get(name)?.as_str().map(str::to_owned);
            shell.inherited_exit_trap = trap("EXIT");
            shell.debug_trap = trap("DEBUG");
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
        let _ = writeln!(boot, "{} echo \"ready - $-\" >{}/s", dialect.builtin(), shell.dir);
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

    fn report_line(&self, run: RunNo) -> String {
        format!("{} echo \"r {run} $? $-\" >{}/s", self.dialect.builtin(), self.dir)
    }

    /// The lines that make the shell run what lies in `c`.
    fn trigger(&self, order: &Order<'_>, form: Form, prelude: &str) -> String {
        let (dir, builtin, exec) = (&self.dir, self.dialect.builtin(), self.dialect.exec());
        let stdin = match order.stdin {
            Stdin::Bytes(_) | Stdin::Open => format!("<{dir}/i"),
            // Read and write, which tells a run's own empty stdin from that of
            // a background job (see processes::is_asynchronous).
            Stdin::Empty => "<>/dev/null".to_owned(),
        };
        let env = self.dialect.environment(order.env);
        // A failed last run is still failed: `q` returns its status. On the
        // left of `||` it sets off neither `set -e` nor an ERR trap.
        let status = match self.status {
            0 => String::new(),
            _ if self.flags.contains('e') => String::new(),
            _ => format!("{builtin} . {dir}/q || "),
        };
        let source = format!("{}{status}{}. {dir}/c {stdin}", env.before, env.prefix);
        let report = self.report_line(order.run) + &env.after;
        let streams = format!(">{dir}/o 2>{dir}/e");
        let reopen = format!("{exec} <{dir}/t >/dev/null 2>&1");
        match form {
            // A text that moves descriptors about may have closed the copies
            // that the shell keeps of its own streams during a redirection.
            Form::Redirected => {
                let mut after = String::new();
                if mentions(order.text, "exec") {
                    let _ = write!(after, ";{reopen}");
                }
                if self.looks_at_traps(order.text) {
                    let done = format!("{builtin} echo \"d {}\" >{dir}/s", order.run);
                    let _ = write!(after, ";{}{done}", self.list_traps(order.text));
                }
                format!("{prelude}{source} {streams}\n{report}{after}\n")
            }
            // In one line, so that no prompt comes between. The second line
            // is for the case that the first was aborted.
            Form::Replaced => format!(
                "{prelude}{exec} {streams};{source};{{ {report};{builtin} set +x; }} 2>/dev/null;\
                 {exec} >/dev/null 2>&1\n{report};{reopen};{}{builtin} echo \"d {}\" >{dir}/s\n",
                self.list_traps(order.text),
                order.run
            ),
        }
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

    /// Has the traps listed to `l`.
    fn list_traps(&self, text: &[u8]) -> String {
        if self.looks_at_traps(text) {
            format!("{} trap >|{}/l;", self.dialect.builtin(), self.dir)
        } else {
            String::new()
        }
    }

    fn form(&self, text: &[u8]) -> Form {
        let users_trap = match &self.exit_trap {
            ExitTrap::Armed { users } => users.is_some(),
            ExitTrap::Open => true,
        };
        // A DEBUG trap would see, and show, the lines around the text.
        let debugs = self.debug_trap.is_some() || mentions(text, "DEBUG");
        if !debugs && (users_trap || changes_traps(text)) {
            Form::Replaced
        } else {
            Form::Redirected
        }
    }

    /// Puts the user's own EXIT trap back before a text that may look at it.
    fn disarm(&mut self, text: &[u8]) -> String {
        if !lists_traps(text) {
            return String::new();
        }
        let builtin = self.dialect.builtin();
        let stop = self.dialect.stop_signal().map(|signal| format!("{builtin} trap - {signal};"));
        let stop = stop.unwrap_or_default();
        match std::mem::replace(&mut self.exit_trap, ExitTrap::Open) {
            ExitTrap::Armed { users: Some(users) } => {
                format!("{stop}{builtin} trap -- {} EXIT;", quote(&users))
            }
            ExitTrap::Armed { users: None } => format!("{stop}{builtin} trap - EXIT;"),
            ExitTrap::Open => String::new(),
        }
    }

    /// The line that puts our EXIT trap in place, behind the user's.
    fn arm(&mut self, users: Option<String>) -> String {
        let ours = self.dialect.exit_trap(&self.dir);
        let text = match &users {
            Some(users) => format!("{users}\n{ours}"),
            None => ours,
        };
        self.exit_trap = ExitTrap::Armed { users };
        let builtin = self.dialect.builtin();
        let stop = match self.dialect.stop_signal() {
            Some(signal) => {
                format!("{builtin} trap -- '\\builtin kill -s INT $$ # {MARK}' {signal};")
            }
            None => String::new(),
        };
        format!("{stop}{builtin} trap -- {} EXIT\n", quote(&text))
    }

    fn understand(&mut self, line: &str) -> Option<Report> {
        let mut words = line.split(' ');
        let (kind, number) = (words.next()?, words.next());
        let number = || number?.parse().ok().map(RunNo);
        match kind {
            "ready" => {
                words.next_back().unwrap_or_default().clone_into(&mut self.flags);
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
            _ => None,
        }
    }

    fn reported(&mut self, run: RunNo, status: i32, flags: &str) -> Option<Report> {
        let current = self.current.as_mut().filter(|c| c.run == run)?;
        if current.reported.is_none() {
            current.reported = Some(status);
            flags.clone_into(&mut self.flags);
        }
        if current.awaits_done { None } else { self.done(run) }
    }

    fn done(&mut self, run: RunNo) -> Option<Report> {
        let current = self.current.take_if(|c| c.run == run)?;
        let mut status = current.reported?;
        if current.pressed && status == 0 && self.dialect.forgets_interrupts() {
            status = 128 + libc::SIGINT;
        }
        if current.form == Form::Replaced && self.flags.contains('x') {
            let _ = self.send(&format!("{} set -x\n", self.dialect.builtin()));
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

    /// Looks at the traps that a run has left, and puts our EXIT trap back
    /// behind the user's if it is not there.
    fn learn_traps(&mut self) {
        let path = self.path("l");
        let Ok(listing) = std::fs::read(&path) else { return };
        let _ = std::fs::remove_file(path);
        let listing = String::from_utf8_lossy(&listing);
        self.keep_debug_trap(records::trap(&listing, &["DEBUG"]));
        let found = records::trap(&listing, &["EXIT", "0"]);
        if found.as_ref().is_none_or(|text| !text.contains(MARK)) {
            let line = self.arm(found);
            let _ = self.send(&line);
        }
    }

    /// bash hides a DEBUG trap from what it sources, and brings it back even if
    /// that has removed it. So the shell has none between runs, and each text
    /// begins by setting it.
    fn keep_debug_trap(&mut self, trap: Option<String>) {
        if trap.is_some() {
            let _ = self.send(&format!("{} trap - DEBUG\n", self.dialect.builtin()));
        }
        self.debug_trap = trap;
    }

    /// For the next run's `$?`.
    fn keep_status(&mut self, status: i32) {
        self.status = status;
        if status != 0 {
            let _ = write_file(&self.path("q"), self.dialect.returning(status).as_bytes());
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
            (ExitTrap::Open, users) => self.arm(users),
        };
        let _ = self.send(&line);
    }
}

impl Kernel for Shell {
    fn begin(&mut self, order: &Order<'_>) -> io::Result<()> {
        self.learn_functions(order.text)?;
        let form = self.form(order.text);
        let prelude = self.disarm(order.text);
        let trigger = self.trigger(order, form, &prelude);
        match &self.debug_trap {
            // Sourcing hides a DEBUG trap from the sourced text.
            Some(trap) if self.dialect == Dialect::Bash => {
                let mut bytes = format!("\\builtin trap -- {} DEBUG;", quote(trap)).into_bytes();
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
        self.send(&trigger)?;
        self.current = Some(Current {
            run: order.run,
            form,
            awaits_done: form == Form::Replaced || self.looks_at_traps(order.text),
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
        let line = self.report_line(run);
        let (dir, builtin, exec) = (&self.dir, self.dialect.builtin(), self.dialect.exec());
        let done =
            format!(";{exec} <{dir}/t >/dev/null 2>&1;{builtin} echo \"d {run}\" >{dir}/s\n");
        self.send(&(line + &done))?;
        Ok(())
    }

    fn capture(&mut self, as_of: RunNo) -> io::Result<()> {
        if self.captures.under_way.contains(&as_of) {
            return Ok(());
        }
        if self.dialect.captures_alone() && !self.captures.under_way.is_empty() {
            self.captures.wanted = Some(as_of);
            return Ok(());
        }
        self.send(&self.dialect.capture(&self.dir, as_of))?;
        self.captures.under_way.push(as_of);
        Ok(())
    }

    fn exit(&mut self) -> io::Result<()> {
        let builtin = self.dialect.builtin();
        // Our trap would only delay it. Twice, because an interactive shell
        // with stopped jobs refuses the first time.
        let disarm = match &self.exit_trap {
            ExitTrap::Armed { users: Some(users) } => {
                format!("{builtin} trap -- {} EXIT;", quote(users))
            }
            ExitTrap::Armed { users: None } => format!("{builtin} trap - EXIT;"),
            ExitTrap::Open => String::new(),
        };
        self.send(&format!("{disarm}{builtin} exit\n{builtin} exit\n"))
    }

    fn hear(&mut self, bytes: &[u8]) -> Vec<Report> {
        let lines = self.lines.push(bytes);
        lines.iter().filter_map(|line| self.understand(std::str::from_utf8(line).ok()?)).collect()
    }

    fn last_words(&mut self) -> Option<SavedKernel> {
        let as_of = self.current.as_ref().map_or(RunNo(0), |c| c.run);
        self.take_capture("final", as_of)
    }

    fn stop_signal(&self) -> Option<i32> {
        match self.exit_trap {
            ExitTrap::Armed { .. } => self.dialect.stop_signal().map(|_| libc::SIGRTMAX()),
            ExitTrap::Open => None,
        }
    }

    fn is_capturing(&self) -> bool {
        !self.captures.under_way.is_empty()
    }
}

/// Whether a text may change traps that matter here.
fn changes_traps(text: &[u8]) -> bool {
    mentions(text, "trap")
        && (mentions(text, "EXIT") || mentions(text, "DEBUG") || lists_traps(text))
}

/// Whether a text may list traps: `trap` alone, or `trap -p`.
fn lists_traps(text: &[u8]) -> bool {
    let word = b"trap";
    text.windows(word.len()).enumerate().filter(|(_, window)| window == word).any(|(at, _)| {
        let rest = text[at + word.len()..].trim_ascii_start();
        let begins_option = rest.starts_with(b"-p") || rest.starts_with(b"-l");
        let newline = text[at + word.len()..].iter().find(|b| !matches!(b, b' ' | b'\t'));
        begins_option || newline.is_none_or(|b| b"\r\n;|&)>`}".contains(b))
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
