//! System calls that another process makes on our behalf while it is stopped.
//!
//! A kernel is a third-party program: only the keeper can make it issue a system call
//! that it does not make by itself. The process is stopped where it waits, makes the
//! calls from the same place as its own call, and then goes back to that one. It notices
//! only a wait that may be interrupted, as by any signal.
//!
//! Invariants: a stopped process continues with its original registers, even if something
//! fails; its exit status is left to the code that reaps; no wait is endless.

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod machine;

use rustix::io::Errno;
use rustix::process::Pid;
use std::ffi::{c_int, c_long, c_void};
use std::io;
use std::time::{Duration, Instant};

/// A waiting process stops as soon as it gets the processor. One that does not stop within
/// this time is blocked by a broken driver or disk.
const PATIENCE: Duration = Duration::from_secs(10);
const NAP: Duration = Duration::from_micros(50);

/// Below the stack pointer, where no function keeps anything, even under calling
/// conventions that leave some bytes there to leaf functions.
const BELOW_STACK: u64 = 1024;

/// A system call that a process waits in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) number: c_long,
    pub(crate) first: u64,
}

/// A stopped process.
#[derive(Debug)]
pub(crate) struct StoppedProcess {
    pid: Pid,
    registers: libc::user_regs_struct,
    waiting: Option<Waiting>,
    /// Address of an instruction that makes a system call.
    site: u64,
    /// The signal that it has stopped for, if any.
    came_first: Option<c_int>,
    /// Signals that came during its calls.
    missed: Vec<c_int>,
    progress: Progress,
}

/// Whether a stopped process has made calls for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It is as it was. It has to stay so: a `sigsuspend` that is begun again after its
    /// signal has come waits for ever.
    Untouched,
    HasCalled,
}

impl StoppedProcess {
    /// Stops a child of this process.
    pub(crate) fn stop(pid: Pid) -> io::Result<Self> {
        let options = libc::PTRACE_O_TRACESYSGOOD;
        trace(libc::PTRACE_SEIZE, pid, 0, options as usize)?;
        let mut came_first = None;
        let stopped = trace(libc::PTRACE_INTERRUPT, pid, 0, 0)
            .and_then(|_| until_stopped(pid))
            .and_then(|stop| {
                came_first = stop.signal();
                read_registers(pid)
            });
        let detach = |error: io::Error| {
            detach(pid, came_first);
            error
        };
        let registers = stopped.map_err(detach)?;
        let waiting = machine::waiting(&registers);
        let is_call = |at: u64| {
            let word = peek(pid, at).unwrap_or_default();
            machine::is_call(word)
        };
        let Some(site) = machine::syscall_sites(&registers).into_iter().find(|at| is_call(*at))
        else {
            return Err(detach(io::ErrorKind::ResourceBusy.into()));
        };
        let (missed, progress) = (Vec::new(), Progress::Untouched);
        Ok(Self { pid, registers, waiting, site, came_first, missed, progress })
    }

    /// Returns the call that it was stopped in, if it waits.
    pub(crate) fn waiting(&self) -> Option<Waiting> {
        self.waiting
    }

    /// Makes it issue a call.
    pub(crate) fn call(&mut self, number: c_long, arguments: &[u64]) -> io::Result<u64> {
        self.progress = Progress::HasCalled;
        self.missed.extend(self.came_first.take());
        let mut registers = self.registers;
        machine::prepare(&mut registers, self.site, number, arguments);
        write_registers(self.pid, &registers)?;
        // One stop when the call begins, and one when it is over.
        for _ in 0..2 {
            loop {
                trace(libc::PTRACE_SYSCALL, self.pid, 0, 0)?;
                let stop = until_stopped(self.pid)?;
                if stop.is_call() {
                    break;
                }
                self.missed.extend(stop.signal());
            }
        }
        let result = machine::result(&read_registers(self.pid)?);
        // The system returns errors as the last page of numbers.
        match i32::try_from(result.wrapping_neg()) {
            Ok(code @ 1..=4095) => Err(io::Error::from_raw_os_error(code)),
            Ok(_) | Err(_) => Ok(result),
        }
    }

    /// Returns a few words of unused memory in it.
    pub(crate) fn room(&self) -> u64 {
        (machine::stack(&self.registers) - BELOW_STACK) & !0xf
    }

    pub(crate) fn read(&self, at: u64) -> io::Result<u64> {
        peek(self.pid, at)
    }

    pub(crate) fn write(&self, at: u64, word: u64) -> io::Result<()> {
        trace(libc::PTRACE_POKEDATA, self.pid, at as usize, word as usize).map(drop)
    }
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        if self.progress == Progress::HasCalled {
            machine::resume(&mut self.registers);
            let _ = write_registers(self.pid, &self.registers);
        }
        detach(self.pid, self.came_first);
        for signal in &self.missed {
            crate::processes::signal_by_number(self.pid, *signal);
        }
    }
}

/// Lets a process go on, with the signal that it has stopped for.
fn detach(pid: Pid, signal: Option<c_int>) {
    let signal = signal.and_then(|signal| usize::try_from(signal).ok()).unwrap_or(0);
    let _ = trace(libc::PTRACE_DETACH, pid, 0, signal);
}

/// Why a process has stopped.
#[derive(Clone, Copy, Debug)]
struct Stop(c_int);

impl Stop {
    /// Whether it is at the beginning or the end of a system call.
    fn is_call(self) -> bool {
        libc::WSTOPSIG(self.0) == libc::SIGTRAP | 0x80
    }

    /// Returns the signal that stopped it, which it has not received.
    fn signal(self) -> Option<c_int> {
        let is_event = self.0 >> 16 != 0;
        (!is_event && !self.is_call()).then(|| libc::WSTOPSIG(self.0))
    }
}

fn until_stopped(pid: Pid) -> io::Result<Stop> {
    let begun = Instant::now();
    let mut looks = 0_u32;
    while begun.elapsed() < PATIENCE {
        if let Some(stop) = stopped(pid)? {
            return Ok(stop);
        }
        looks += 1;
        if looks < 100 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(NAP);
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Consumes a stop. An exit stays to be reaped.
fn stopped(pid: Pid) -> io::Result<Option<Stop>> {
    let number = pid.as_raw_nonzero().get();
    let kinds = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: the structure is ours, and is written to.
    let found = unsafe {
        let mut found = std::mem::zeroed::<libc::siginfo_t>();
        let id = number.cast_unsigned();
        if libc::waitid(libc::P_PID, id, &raw mut found, kinds) < 0 {
            return Err(io::Error::last_os_error());
        }
        if found.si_pid() == 0 {
            return Ok(None);
        }
        found.si_code
    };
    if matches!(found, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED) {
        return Err(Errno::SRCH.into());
    }
    let mut status = 0;
    // SAFETY: the number is ours, and is written to.
    let taken = unsafe { libc::waitpid(number, &raw mut status, libc::__WALL | libc::WNOHANG) };
    Ok((taken == number && libc::WIFSTOPPED(status)).then_some(Stop(status)))
}

fn trace(request: u32, pid: Pid, address: usize, data: usize) -> io::Result<c_long> {
    let pid = pid.as_raw_nonzero().get();
    // SAFETY: the caller passes numbers, or a pointer to what the request reads or
    // writes.
    let result = unsafe { libc::ptrace(request, pid, address as *mut c_void, data as *mut c_void) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Reads a word of its memory. Every number is a valid word, so `errno` signals an error.
fn peek(pid: Pid, at: u64) -> io::Result<u64> {
    let pid = pid.as_raw_nonzero().get();
    // SAFETY: only numbers are passed; `errno` is this thread's own.
    unsafe {
        *libc::__errno_location() = 0;
        let word = libc::ptrace(libc::PTRACE_PEEKDATA, pid, at as *mut c_void, 0);
        match *libc::__errno_location() {
            0 => Ok(word.cast_unsigned()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// The system's number for the general registers.
const GENERAL: usize = 1;

fn read_registers(pid: Pid) -> io::Result<libc::user_regs_struct> {
    // SAFETY: all zeroes is a valid value of it.
    let mut registers = unsafe { std::mem::zeroed::<libc::user_regs_struct>() };
    let mut place = place_of(&mut registers);
    trace(libc::PTRACE_GETREGSET, pid, GENERAL, (&raw mut place) as usize)?;
    Ok(registers)
}

fn write_registers(pid: Pid, registers: &libc::user_regs_struct) -> io::Result<()> {
    let mut registers = *registers;
    let mut place = place_of(&mut registers);
    trace(libc::PTRACE_SETREGSET, pid, GENERAL, (&raw mut place) as usize).map(drop)
}

fn place_of(registers: &mut libc::user_regs_struct) -> libc::iovec {
    libc::iovec {
        iov_base: (&raw mut *registers).cast(),
        iov_len: size_of::<libc::user_regs_struct>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_makes_a_call_and_goes_on_with_its_own() {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let mut stopped = loop {
            match StoppedProcess::stop(pid) {
                Ok(stopped) if stopped.waiting().is_some_and(|w| w.number == libc::SYS_read) => {
                    break stopped;
                }
                Ok(_) | Err(_) => std::thread::yield_now(),
            }
        };
        assert_eq!(stopped.waiting().unwrap().first, 0);
        assert_eq!(stopped.call(libc::SYS_getpid, &[]).unwrap(), u64::from(child.id()));
        let refused = stopped.call(libc::SYS_close, &[999]).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EBADF));
        let room = stopped.room();
        stopped.call(libc::SYS_pipe2, &[room, 0]).unwrap();
        let ends = stopped.read(room).unwrap();
        // Other tests may have left a descriptor open in the new process.
        assert!(ends >> 32 > ends & 0xffff_ffff && ends & 0xffff_ffff > 2, "{ends:#x}");
        drop(stopped);
        child.stdin.take().unwrap().write_all(b"on").unwrap();
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said, "on");
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn an_end_is_left_to_who_reaps() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        while StoppedProcess::stop(pid).is_ok() {}
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn a_process_that_waits_for_a_signal_gets_it() {
        let program = "import signal; signal.signal(signal.SIGUSR1, lambda *_: None); \
            print('up', flush=True); signal.pause(); print('woken')";
        let mut child =
            Command::new("python3").args(["-c", program]).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let pid = Pid::from_child(&child);
        let waits = |waiting: Waiting| [libc::SYS_pause, libc::SYS_ppoll].contains(&waiting.number);
        let stopped = loop {
            match StoppedProcess::stop(pid) {
                Ok(stopped) if stopped.waiting().is_some_and(waits) => break stopped,
                Ok(_) | Err(_) => std::thread::yield_now(),
            }
        };
        rustix::process::kill_process(pid, rustix::process::Signal::USR1).unwrap();
        drop(stopped);
        line.clear();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "woken\n");
        assert!(child.wait().unwrap().success());
    }
}
