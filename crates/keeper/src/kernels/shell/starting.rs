//! Bringing a shell up, with the state of an earlier one if there is any.

use super::background::{Background, Functions};
use super::builtin_calls::BuiltinCalls;
use super::captures::Captures;
use super::own_name::OwnName;
use super::terminal::JobControl;
use super::traps::ExitTrap;
use super::{LONGEST_REPORT, SOURCES, Shell, dialect};
use crate::kernels::launch::{Invocation, install};
use crate::kernels::secret::Secrets;
use crate::kernels::{Lines, Previous};
use crate::scratch::{RewrittenFile, write_file};
use serde_json::Value;
use sessile_protocol::Language;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

impl Shell {
    pub(in crate::kernels) fn prepare(
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
            calls: BuiltinCalls::avoiding(dialect, &[]),
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
            shell.calls = BuiltinCalls::avoiding(dialect, &names(saved.view.get("functions")));
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
        let _ = writeln!(boot, "! {}", shell.ready_line(shell.calls));
        shell.send(&boot)?;
        let args = dialect.arguments().iter().map(Into::into).collect();
        Ok((shell, Invocation { args, stdin: Some(directory.join("t")), env: Vec::new() }))
    }

    /// Puts everything into its directory that has to be there before a run.
    pub(super) fn fill_directory(&self) -> io::Result<()> {
        self.install()?;
        if self.dialect.hides_functions() {
            self.name_functions()?;
        }
        // Here already, so that the user's umask is not its mode.
        write_file(&self.left("w/int"), b"")
    }

    /// Puts the scripts that the shell reads into its directory.
    pub(super) fn install(&self) -> io::Result<()> {
        for (name, text) in self.dialect.files() {
            // dash does not tell a sourced file where it is.
            let text = self.calls.rewrite(text.replace("@DIR@", &self.dir));
            install(Path::new(&self.dir), &[(*name, &text)])?;
        }
        Ok(())
    }
}

/// The names in a list of a saved state.
fn names(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}
