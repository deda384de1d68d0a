//! Starts every kernel process.

use super::scripted::Scripted;
use super::shell::Shell;
use super::spawn::Process;
use super::{Kernel, Previous};
use crate::labels::Label;
use crate::scratch::{Inbox, LEFT, PipeAccess, make_orders, read_left, write_file};
use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use sessile_protocol::{KernelProgram, Language, Shortage};
use sessile_sandbox::apply::Sandbox;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// When the machine is out of memory, processes in a sandbox are killed first.
const OOM_SCORE: &str = "500";

#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    #[error("{program} was not found{}", place(path.as_deref(), tree.as_deref()))]
    NotFound { program: String, path: Option<String>, tree: Option<PathBuf> },
    #[error("{program} is not a program that can be run: {source}")]
    NotRunnable { program: String, source: io::Error },
    #[error("cannot prepare the kernel's files: {0}")]
    Files(#[from] io::Error),
}

impl LaunchError {
    /// Returns what the machine has run out of, if that is the cause.
    pub(crate) fn shortage(&self) -> Option<Shortage> {
        match self {
            Self::NotFound { .. } => None,
            Self::NotRunnable { source, .. } => Shortage::of_start(source),
            Self::Files(error) => Shortage::of(error).map(Shortage::in_scratch),
        }
    }
}

fn place(path: Option<&str>, tree: Option<&Path>) -> String {
    match (path, tree.map(Path::display)) {
        (Some(path), None) => {
            format!(" in PATH ({path}); install it, or start the session with its full path")
        }
        (Some(path), Some(tree)) => {
            format!(" in the system tree {tree} ({path}); install it there, or take another tree")
        }
        (None, None) => "; check the path".to_owned(),
        (None, Some(tree)) => format!(" in the system tree {tree}; check the path"),
    }
}

/// Parameters for starting a kernel.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) kernel: &'a KernelProgram,
    /// Its private directory.
    pub(crate) directory: PathBuf,
    /// The sandbox in which it starts, if any.
    pub(crate) sandbox: Option<&'a Sandbox>,
    /// The system tree that the sandbox shows, if it is not the host's.
    pub(crate) tree: Option<&'a Path>,
    pub(crate) env: &'a BTreeMap<OsString, OsString>,
    pub(crate) cwd: &'a Path,
    pub(crate) previous: Previous<'a>,
    pub(crate) label: Option<Label>,
}

#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) pid: Pid,
    pub(crate) kernel: Box<dyn Kernel>,
    pub(crate) reports: Inbox,
}

/// How an interpreter is called.
pub(super) struct Invocation {
    pub(super) args: Vec<OsString>,
    /// The FIFO on which it gets orders, if that is its stdin.
    pub(super) stdin: Option<PathBuf>,
    pub(super) env: Vec<(&'static str, Option<&'static str>)>,
}

impl Plan<'_> {
    pub(crate) fn spawn(self) -> Result<Spawned, LaunchError> {
        let program = self.resolve()?;
        self.make_place_to_write()?;
        let pipe_access =
            if self.sandbox.is_some() { PipeAccess::Closed } else { PipeAccess::Open };
        let orders = make_orders(&self.directory.join("t"), pipe_access)?;
        let reports = Inbox::create(self.directory.join("s"), pipe_access)?;
        let (kernel, invocation): (Box<dyn Kernel>, Invocation) = match self.kernel.language {
            Language::Bash | Language::Sh | Language::Zsh => {
                let (shell, invocation) = Shell::prepare(
                    self.kernel.language,
                    (&self.directory, &self.outside()),
                    (orders, self.sandbox.is_none().then(|| reports.way())),
                    &program,
                    self.previous,
                )?;
                (Box::new(shell), invocation)
            }
            Language::Python | Language::Node => {
                let (scripted, invocation) = Scripted::prepare(
                    self.kernel.language,
                    &self.directory,
                    orders,
                    (DriverFiles::Installed, pipe_access),
                )?;
                (Box::new(scripted), invocation)
            }
        };
        let pid = self.start(&program, &invocation)?;
        Ok(Spawned { pid, kernel, reports })
    }

    /// Returns the directory for this process to see what the kernel writes.
    fn outside(&self) -> PathBuf {
        self.sandbox.map_or_else(|| self.directory.clone(), |s| s.outside(&self.directory))
    }

    /// Creates an empty directory for what the kernel writes.
    fn make_place_to_write(&self) -> io::Result<()> {
        let place = self.directory.join(LEFT);
        match std::fs::create_dir(&place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.sandbox.map_or(Ok(()), |sandbox| sandbox.mount_slate(&place))
    }

    fn start(&self, program: &Path, invocation: &Invocation) -> Result<Pid, LaunchError> {
        let streams = self.streams(invocation)?;
        let (program_text, cwd) = (program.as_os_str(), self.cwd.as_os_str());
        let mut process = Process::new(program_text, cwd, streams, self.label)?;
        process.sandbox = self.sandbox;
        if self.kernel.language.is_shell() {
            // A shell uses argv[0] as its name in messages: `bash: …`, not the path where
            // it was found.
            let name = self.kernel.program.rsplit('/').next().unwrap_or(&self.kernel.program);
            process.argument(OsStr::new(name))?;
        } else {
            // An interpreter finds its libraries, or its virtual environment, by the path
            // it was called with.
            process.argument(program_text)?;
        }
        for word in &invocation.args {
            process.argument(word)?;
        }
        let own = |name: &OsStr| {
            name == "PWD" || invocation.env.iter().any(|(own, _)| name == OsStr::new(own))
        };
        for (name, value) in self.env.iter().filter(|(name, _)| !own(name)) {
            process.variable(name, value)?;
        }
        process.variable(OsStr::new("PWD"), cwd)?;
        for (name, value) in &invocation.env {
            if let Some(value) = value {
                process.variable(OsStr::new(name), OsStr::new(value))?;
            }
        }
        let started = process.spawn().map_err(|source| LaunchError::NotRunnable {
            program: program.display().to_string(),
            source,
        });
        if let (Ok(pid), Some(_)) = (&started, self.sandbox) {
            let path = format!("/proc/{}/oom_score_adj", pid.as_raw_nonzero());
            let _ = std::fs::write(path, OOM_SCORE);
        }
        started
    }

    /// Returns the stdin, stdout and stderr of a new kernel.
    fn streams(&self, invocation: &Invocation) -> io::Result<[OwnedFd; 3]> {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let stdin = match &invocation.stdin {
            // A blocking descriptor: a shell's read must wait. The opening does not
            // block, because this process already has the FIFO open for writing.
            Some(path) => File::open(path)?,
            None => null.try_clone()?,
        };
        // What an interpreter writes before our driver is up tells why it does not start.
        let stderr = if self.kernel.language.is_shell() {
            null.try_clone()?
        } else {
            let path = self.outside().join(COMPLAINTS);
            // A process left inside could put a FIFO there, on which an ordinary open
            // would block.
            let _ = std::fs::remove_file(&path);
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?.into()
        };
        Ok([stdin.into(), null.into(), stderr.into()])
    }

    /// Finds the program as a shell would, so that a missing one can be named.
    fn resolve(&self) -> Result<PathBuf, LaunchError> {
        let wanted = &self.kernel.program;
        if wanted.contains('/') {
            let path = self.cwd.join(wanted);
            let is_there = self.sandbox.map_or_else(|| path.exists(), |s| s.has_program(&path));
            return if is_there { Ok(path) } else { Err(self.not_found(None)) };
        }
        let search = self.env.get(&OsString::from("PATH")).cloned();
        let search = search.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let mut names = vec![wanted.as_str()];
        if wanted == "python3" {
            names.push("python");
        }
        for name in names {
            for directory in std::env::split_paths(&search) {
                let path = self.cwd.join(directory).join(name);
                let is_program = match self.sandbox {
                    Some(sandbox) => sandbox.has_program(&path),
                    None => {
                        rustix::fs::access(&path, rustix::fs::Access::EXEC_OK).is_ok()
                            && path.is_file()
                    }
                };
                if is_program {
                    return Ok(path);
                }
            }
        }
        Err(self.not_found(Some(search.to_string_lossy().into_owned())))
    }

    fn not_found(&self, path: Option<String>) -> LaunchError {
        let tree = self.tree.map(Path::to_owned);
        LaunchError::NotFound { program: self.kernel.program.clone(), path, tree }
    }
}

/// Whether the files of a driver are put into its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriverFiles {
    Installed,
    Absent,
}

/// Prepares the directory of a kernel whose process is a copy of another.
///
/// An image only waits, and does not need the files of its driver.
pub(crate) fn open_channel(
    language: Language,
    directory: &Path,
    files: DriverFiles,
    pipe_access: PipeAccess,
) -> io::Result<(Box<dyn Kernel>, Inbox)> {
    let orders = make_orders(&directory.join("t"), pipe_access)?;
    let reports = Inbox::create(directory.join("s"), pipe_access)?;
    let (kernel, _) = Scripted::prepare(language, directory, orders, (files, pipe_access))?;
    Ok((Box::new(kernel), reports))
}

const COMPLAINTS: &str = "w/complaints";

/// Returns what a kernel that did not start has written, on one line. `directory` is the
/// kernel's directory as this process sees it.
pub(crate) fn complaints(directory: &Path) -> Option<String> {
    const SHOWN: usize = 400;
    let text = read_left(&directory.join(COMPLAINTS)).ok()?;
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(SHOWN)..]).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Puts our files where the kernel finds them.
pub(super) fn install(directory: &Path, files: &[(&str, &str)]) -> io::Result<()> {
    files.iter().try_for_each(|(name, text)| write_file(&directory.join(name), text.as_bytes()))
}
