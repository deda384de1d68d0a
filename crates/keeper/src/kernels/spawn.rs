//! Starts a process that shares this one's memory until it executes another program, as
//! `posix_spawn` does.
//!
//! `std` would fork here, because of the steps in between. A fork copies the keeper's
//! page tables, and the keeper then pays for each page that it writes to: together a
//! tenth of the cost of starting a session.

use crate::labels::Label;
use crate::processes;
use rustix::process::{Pid, Signal};
use sessile_sandbox::apply::Sandbox;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Stack for the child's steps before its program: some system calls.
const STACK: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Process<'a> {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    cwd: CString,
    /// stdin, stdout and stderr.
    streams: [OwnedFd; 3],
    label: Option<Label>,
    pub(super) sandbox: Option<&'a Sandbox>,
}

impl Process<'_> {
    pub(super) fn new(
        program: &OsStr,
        cwd: &OsStr,
        streams: [OwnedFd; 3],
        label: Option<Label>,
    ) -> io::Result<Self> {
        let (program, cwd) = (text(program)?, text(cwd)?);
        let (arguments, environment) = (Vec::new(), Vec::new());
        Ok(Self { program, arguments, environment, cwd, streams, label, sandbox: None })
    }

    pub(super) fn argument(&mut self, word: &OsStr) -> io::Result<()> {
        self.arguments.push(text(word)?);
        Ok(())
    }

    pub(super) fn variable(&mut self, name: &OsStr, value: &OsStr) -> io::Result<()> {
        self.environment.push(text(&[name, OsStr::new("="), value].join(OsStr::new("")))?);
        Ok(())
    }

    /// Starts it. On return, the process executes the program, or there was an error.
    pub(super) fn spawn(&self) -> io::Result<Pid> {
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|t| t.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let mut steps = Steps {
            process: self,
            arguments: pointers(&self.arguments),
            environment: pointers(&self.environment),
            keeper: rustix::process::getpid(),
            error: None,
        };
        let mut own_stack = stack();
        let Some(sandbox) = self.sandbox else {
            let pid = clone(take_steps, &mut own_stack, 0, &mut steps)?;
            return steps.outcome(pid);
        };
        // Only a child of a process that has entered is inside with its pid. An
        // intermediate process enters; its child becomes ours.
        let mut entering = Entering { sandbox, steps, stack: stack(), kernel: None, error: None };
        let between = clone(enter, &mut own_stack, 0, &mut entering)?;
        reap(between);
        match (entering.kernel, entering.error) {
            (Some(kernel), _) => entering.steps.outcome(kernel),
            (None, error) => Err(error.unwrap_or_else(|| io::ErrorKind::NotFound.into())),
        }
    }
}

fn stack() -> Vec<u128> {
    Vec::with_capacity(STACK / size_of::<u128>())
}

/// Starts a process on our memory, and returns when it executes another program or has
/// ended.
fn clone<T>(
    body: extern "C" fn(*mut c_void) -> c_int,
    stack: &mut Vec<u128>,
    flags: c_int,
    argument: &mut T,
) -> io::Result<Pid> {
    let flags = flags | libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: with CLONE_VFORK this thread, the only one, stands still until the child
    // executes another program or has ended. So the stack and the argument live as long
    // as the child uses them, and nothing else uses them meanwhile. The child gets the
    // upper end of the stack, which grows downwards.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity());
        libc::clone(body, top.cast(), flags, (&raw mut *argument).cast())
    };
    match pid {
        ..=0 => Err(io::Error::last_os_error()),
        1.. => Ok(Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?),
    }
}

fn reap(pid: Pid) {
    let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
}

/// Parameters of the process that enters a sandbox to start another one there.
struct Entering<'a> {
    sandbox: &'a Sandbox,
    steps: Steps<'a>,
    stack: Vec<u128>,
    kernel: Option<Pid>,
    error: Option<io::Error>,
}

/// In the child, on the keeper's memory: see [`take_steps`].
extern "C" fn enter(entering: *mut c_void) -> c_int {
    // SAFETY: this belongs to the caller, which does not touch it meanwhile.
    let entering = unsafe { &mut *entering.cast::<Entering<'_>>() };
    let entered = entering.sandbox.enter();
    let cloned = entered.and_then(|()| {
        clone(take_steps, &mut entering.stack, libc::CLONE_PARENT, &mut entering.steps)
    });
    match cloned {
        Ok(pid) => entering.kernel = Some(pid),
        Err(error) => entering.error = Some(error),
    }
    // SAFETY: ends this process, and nothing else.
    unsafe { libc::_exit(0) }
}

/// Converts a text for the system.
fn text(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

struct Steps<'a> {
    process: &'a Process<'a>,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    keeper: Pid,
    /// The error of the step that failed.
    error: Option<c_int>,
}

/// In the child, on the keeper's memory: only makes system calls, and ends without
/// running any of the keeper's exit code.
extern "C" fn take_steps(steps: *mut c_void) -> c_int {
    // SAFETY: these are the caller's steps, which it does not touch meanwhile.
    let steps = unsafe { &mut *steps.cast::<Steps<'_>>() };
    let error = steps.take().err().and_then(|error| error.raw_os_error());
    steps.error = Some(error.unwrap_or(libc::EINVAL));
    // SAFETY: ends this process, and nothing else.
    unsafe { libc::_exit(127) }
}

impl Steps<'_> {
    /// Returns the process, if it executes its program.
    fn outcome(&self, pid: Pid) -> io::Result<Pid> {
        let Some(error) = self.error else {
            return Ok(pid);
        };
        reap(pid);
        Err(io::Error::from_raw_os_error(error))
    }

    /// Returns only with an error.
    fn take(&self) -> io::Result<()> {
        // Without a controlling terminal, programs that would prompt on it fail at once
        // instead of waiting for a person.
        rustix::process::setsid()?;
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // From inside a sandbox the keeper has no pid.
        if self.process.sandbox.is_none() && rustix::process::getppid() != Some(self.keeper) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        for (number, stream) in (0..).zip(&self.process.streams) {
            // SAFETY: both are descriptors of this process, which has its own table.
            if unsafe { libc::dup2(stream.as_raw_fd(), number) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        rustix::process::chdir(self.process.cwd.as_c_str())?;
        processes::lower_descriptor_limit();
        if let Some(label) = self.process.label {
            label.put_on_self();
        }
        take_usual_signals();
        if let Some(sandbox) = self.process.sandbox {
            sandbox.confine()?;
        }
        let program: &CStr = &self.process.program;
        // SAFETY: the texts end with a zero and the lists with a null; both outlive the
        // call.
        unsafe {
            libc::execvpe(program.as_ptr(), self.arguments.as_ptr(), self.environment.as_ptr())
        };
        Err(io::Error::last_os_error())
    }
}

/// Restores the usual signals. The keeper blocks those that it reads from a descriptor,
/// and the guardian ignores these; both would be inherited.
fn take_usual_signals() {
    // SAFETY: the set is initialised before it is read. Dispositions are this process's
    // own, and the default one runs no code.
    unsafe {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM, libc::SIGQUIT, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}
