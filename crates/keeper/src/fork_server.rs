//! The process from which the keepers of a long-lived client are forked.
//!
//! It has one thread and an almost unused heap, so a fork of it is a keeper like one that
//! was started as a program, at lower cost. It takes boots on its stdin, each with the
//! pipe for the keeper's report, and ends with its client.
//!
//! Invariants: it holds nothing of any session, and its end affects none.

use crate::guardian::{self, Origin, Side};
use crate::shortage::of_start;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags};
use sessile_protocol::{Boot, BootReport, Code, FORK_SERVER, MAX_FORKED_BOOT, encode};
use std::ffi::c_char;
use std::fs::File;
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

/// Signals that a terminal or a supervisor sends to all of a server's processes: this one
/// ends with its socket instead.
const IGNORED: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

pub(crate) fn serve() -> ExitCode {
    for signal in IGNORED {
        set_disposition(signal, libc::SIG_IGN);
    }
    // No process waits for guardians that end.
    set_disposition(libc::SIGCHLD, libc::SIG_IGN);
    let mut buffer = vec![0; MAX_FORKED_BOOT];
    loop {
        match receive(&mut buffer) {
            // The client is gone.
            Ok((0, _)) => return ExitCode::SUCCESS,
            Ok((length, Some(report))) => match guardian::fork() {
                Ok(Side::Child) => return begin(&buffer[..length], &report),
                Ok(Side::Parent(_)) => {}
                Err(error) => {
                    let what = "the keeper cannot start";
                    let failure = of_start(Code::Storage, what, &error);
                    let frame = encode(&BootReport { outcome: Err(failure) });
                    let _ = File::from(report).write_all(&frame);
                }
            },
            Ok((_, None)) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return ExitCode::FAILURE,
        }
    }
}

/// In the new process: continues as if it had been started as a program.
fn begin(frame: &[u8], report: &OwnedFd) -> ExitCode {
    for signal in IGNORED.into_iter().chain([libc::SIGCHLD]) {
        set_disposition(signal, libc::SIG_DFL);
    }
    let boot = crate::boot(frame);
    let is_connected = rustix::stdio::dup2_stdout(report).is_ok() && take_null_as_stdin().is_ok();
    if !is_connected {
        return ExitCode::FAILURE;
    }
    if let Some(boot) = &boot {
        take_name(boot);
    }
    crate::keep(boot, Origin::Forked)
}

fn take_null_as_stdin() -> io::Result<()> {
    let null = std::fs::File::open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdin(&null)?)
}

fn set_disposition(signal: libc::c_int, disposition: libc::sighandler_t) {
    // SAFETY: neither disposition runs any code of ours.
    unsafe { libc::signal(signal, disposition) };
}

/// Receives the next boot. Returns its length, and the pipe that came with it.
fn receive(buffer: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(buffer)];
    let stdin = rustix::stdio::stdin();
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = rustix::net::recvmsg(stdin, &mut parts, &mut control, flags)?;
    let mut report = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut some) = message {
            report = some.next();
        }
    }
    let is_whole = !received.flags.contains(ReturnFlags::TRUNC);
    Ok((received.bytes, report.filter(|_| is_whole)))
}

/// Shows the session's id where a list of processes shows arguments.
fn take_name(boot: &Boot) {
    let words: Vec<_> = std::env::args_os().collect();
    let Some((last, others)) = words.split_last() else {
        return;
    };
    let id = boot.session.as_str().as_bytes();
    if last.as_bytes() != FORK_SERVER.as_bytes() || id.len() != FORK_SERVER.len() {
        return;
    }
    let offset: usize = others.iter().map(|word| word.len() + 1).sum();
    // SAFETY: the C library has this name point to the first argument. The system puts
    // all arguments in one piece, each followed by a zero, on the stack of the first
    // thread, which nothing else reads; the bytes written lie in the last argument, which
    // was compared above.
    unsafe {
        std::ptr::copy_nonoverlapping(
            id.as_ptr(),
            program_invocation_name.cast::<u8>().add(offset),
            id.len(),
        );
    };
}

unsafe extern "C" {
    static program_invocation_name: *mut c_char;
}
