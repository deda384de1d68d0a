//! An isolated environment for one test.

use crate::machine::Machine;
use crate::{Client, Output, Process, Session, Tty, needs, processes_with, terminal, until};
use serde_json::Value;
use sessile_store::UserState;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set for every process that a harness starts, and inherited by its children.
const MARK: &str = "SESSILE_TEST";

/// A user without any files.
const NOBODY: u32 = 65_534;

#[derive(Debug)]
pub struct Harness {
    binary: PathBuf,
    root: tempfile::TempDir,
    state: tempfile::TempDir,
    /// Home directory of all tests: their programs leave histories and caches there, and do
    /// not find the settings of whoever runs the tests.
    home: PathBuf,
    sessions_dir: PathBuf,
    /// The user that runs commands, if not ourselves.
    user: Option<u32>,
    /// A group that the user is also in.
    group: Option<u32>,
    /// A namespace with other mounts, if needed.
    machine: Option<Machine>,
}

impl Harness {
    /// # Panics
    /// When there is no place for it.
    #[must_use]
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self::below(binary, "")
    }

    /// Makes a harness whose sessions are deep below its directory.
    ///
    /// # Panics
    /// When there is no place for it.
    #[must_use]
    pub fn below(binary: impl Into<PathBuf>, deep: &str) -> Self {
        interruptible();
        let root = tempfile::tempdir().expect("a temporary directory");
        let sessions_dir = root.path().join(deep).join("sessions");
        std::fs::create_dir_all(sessions_dir.parent().expect("a parent")).expect("directories");
        let state = tempfile::tempdir().expect("a temporary directory");
        let binary = binary.into();
        let home = binary.with_file_name("tests-home");
        std::fs::create_dir_all(&home).expect("a home directory");
        Self { binary, root, state, home, sessions_dir, user: None, group: None, machine: None }
    }

    /// For root: makes a harness that runs commands as an unprivileged user.
    ///
    /// # Panics
    /// When there is no place for it.
    #[must_use]
    pub fn unprivileged(binary: impl Into<PathBuf>) -> Self {
        let mut harness = Self::new(binary);
        // The directory of the program may not be accessible to others.
        let copy = harness.path("sessile");
        // A program with symbols has more than a hundred megabytes.
        if std::fs::hard_link(&harness.binary, &copy).is_err() {
            install(&harness.binary, &copy);
        }
        for directory in [&harness.root, &harness.state] {
            chown(directory, Some(NOBODY), Some(NOBODY)).expect("a directory of nobody's");
        }
        harness.binary = copy;
        harness.home = harness.root();
        harness.user = Some(NOBODY);
        harness
    }

    /// For root: runs commands in a namespace in which a script has mounted something.
    ///
    /// # Panics
    /// When the script fails.
    #[must_use]
    pub fn where_mounted(mut self, script: &str) -> Self {
        self.machine = Some(Machine::new(script));
        self
    }

    /// For an unprivileged user where something is mounted, who is also in this group.
    #[must_use]
    pub fn in_group(mut self, group: u32) -> Self {
        self.group = Some(group);
        self
    }

    /// Returns the shells that this machine has: see [`needs`].
    #[track_caller]
    pub fn shells<'a>(wanted: &[&'a str]) -> Vec<&'a str> {
        wanted.iter().copied().filter(|shell| needs::has_program(shell)).collect()
    }

    /// Returns the canonical path of the directory in which commands run, initially empty.
    ///
    /// # Panics
    /// When it is gone.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.root.path().canonicalize().expect("our own directory")
    }

    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    #[must_use]
    pub fn sessions_dir(&self) -> &Path {
        &self.sessions_dir
    }

    /// Returns the state directory of the user for all processes of the harness.
    #[must_use]
    pub fn state_home(&self) -> PathBuf {
        self.state.path().to_owned()
    }

    /// Returns the directory with the secrets of the sessions directory.
    ///
    /// # Panics
    /// When there is no sessions directory.
    #[must_use]
    pub fn private_dir(&self) -> PathBuf {
        let user = UserState::at(self.state_home().join("sessile"));
        user.private_of(&self.sessions_dir).expect("a sessions directory")
    }

    /// Returns the command `sessile ARGS…`, not started yet.
    #[must_use]
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = match &self.machine {
            None => Command::new(&self.binary),
            Some(machine) => {
                let user = self.user.map(|user| (user, self.group));
                machine.command(&self.root(), &self.binary, user)
            }
        };
        command
            .args(args)
            .current_dir(self.root())
            .env("SESSILE_SESSIONS_DIR", &self.sessions_dir)
            .env("XDG_STATE_HOME", self.state_home())
            .env("HOME", &self.home)
            .env("LC_ALL", "C.UTF-8")
            .env("SESSILE_ALLOW_ENV", MARK)
            .env(MARK, self.root.path());
        if let (Some(user), None) = (self.user, &self.machine) {
            command.uid(user).gid(user);
        }
        command
    }

    #[must_use]
    pub fn begin(&self, args: &[&str], stdin: &[u8]) -> Client {
        Client::spawn(self.command(args), stdin)
    }

    /// Runs `sessile ARGS…` with an empty stdin.
    #[track_caller]
    pub fn sessile(&self, args: &[&str]) -> Output {
        self.begin(args, b"").finish()
    }

    /// Starts `sessile ARGS…` at a terminal of this size.
    #[must_use]
    pub fn tty(&self, args: &[&str], size: (u16, u16)) -> Tty {
        Tty::spawn(self.command(args), size)
    }

    /// Returns what `sessile ARGS…` shows at a terminal.
    #[must_use]
    pub fn at_a_terminal(&self, args: &[&str]) -> String {
        terminal::show(self.command(args))
    }

    #[track_caller]
    #[must_use]
    pub fn session(&self) -> Session<'_> {
        self.session_with(&[])
    }

    #[track_caller]
    #[must_use]
    pub fn session_of(&self, shell: &str) -> Session<'_> {
        self.session_with(&[shell])
    }

    /// Starts a session with these arguments.
    #[track_caller]
    #[must_use]
    pub fn session_with(&self, args: &[&str]) -> Session<'_> {
        let started = self.sessile(&[&["start"], args].concat()).json();
        let id = started["session_id"].as_str().expect("an id").to_owned();
        Session::new(self, id)
    }

    /// For root: starts a session on a machine with other contents in these files, for
    /// example those for looking up names and name servers.
    #[track_caller]
    #[must_use]
    pub fn session_among(&self, files: &[(&str, &str)], args: &[&str]) -> Session<'_> {
        let mut script = String::new();
        for (n, (path, text)) in files.iter().enumerate() {
            let own = self.state.path().join(format!("file{n}"));
            std::fs::write(&own, text).expect("a file");
            script += &format!("mount --bind {} {path} && ", own.display());
        }
        script += "exec ";
        if let Some(user) = self.user {
            script += &format!("setpriv --reuid {user} --regid {user} --clear-groups ");
        }
        let inner = self.command(&[&["start"], args].concat());
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c"]);
        command.arg(script + "\"$0\" \"$@\"").arg(inner.get_program()).args(inner.get_args());
        command.current_dir(self.root());
        for (name, value) in inner.get_envs() {
            command.env(name, value.expect("none is taken away"));
        }
        let started = Client::spawn(command, b"").finish().json();
        Session::new(self, started["session_id"].as_str().expect("an id").to_owned())
    }

    /// Returns an existing session.
    #[must_use]
    pub fn session_called(&self, id: &str) -> Session<'_> {
        Session::new(self, id.to_owned())
    }

    #[track_caller]
    #[must_use]
    pub fn list(&self) -> Vec<Value> {
        let listed = self.sessile(&["list"]).json();
        listed.as_array().expect("a list").clone()
    }

    /// Waits for a file, with which a command reports its progress, and returns its text.
    #[track_caller]
    pub fn wait_for_file(&self, name: &str) -> String {
        let path = self.path(name);
        until(name, || std::fs::read_to_string(&path).ok())
    }

    /// Waits until a file has a whole line.
    #[track_caller]
    pub fn wait_for_line(&self, name: &str) -> String {
        let path = self.path(name);
        until(name, || {
            let text = std::fs::read_to_string(&path).ok()?;
            text.ends_with('\n').then(|| text.trim().to_owned())
        })
    }

    /// Returns all live processes that this harness has started.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        processes_with(&format!("{MARK}={}", self.root.path().display()))
    }

    /// Returns the scratch directories in memory of this harness's sessions.
    fn scratch(&self) -> Vec<PathBuf> {
        let ids = std::fs::read_dir(&self.sessions_dir).into_iter().flatten();
        ids.flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|id| id.starts_with("sess_"))
            .map(|id| crate::memory_of(&id))
            .filter(|path| path.exists())
            .collect()
    }
}

/// Copies a program. Another process writes the copy: a descriptor that this one has open
/// for writing is inherited by any child that another thread just forks, and a program that
/// is open for writing cannot be executed.
///
/// # Panics
/// When it cannot be copied.
pub fn install(program: &Path, to: &Path) {
    let copied = Command::new("cp").arg(program).arg(to).status().expect("cp");
    assert!(copied.success(), "cannot copy {} to {}", program.display(), to.display());
}

/// Restores the default of SIGINT. Background processes of a shell ignore it, and the
/// tests' children would inherit that.
fn interruptible() {
    // SAFETY: SIG_DFL installs no handler of ours.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
}

impl Drop for Harness {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Repeatedly: a process that was just forking has a child now.
            for process in
                std::iter::repeat_with(|| self.processes()).take_while(|p| !p.is_empty()).flatten()
            {
                process.kill();
            }
            return;
        }
        self.sessile(&["end", "--all"]).exits(0);
        for process in self.processes() {
            process.wait_gone();
        }
        assert_eq!(self.scratch(), Vec::<PathBuf>::new(), "left in memory");
    }
}
