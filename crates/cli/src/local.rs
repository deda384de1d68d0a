//! The user's own server: found, or started on demand.
//!
//! It is one process for all of the user's programs, on a Unix socket. Clients connect to
//! it; if there is no server, one program at a time starts one.

use crate::settings::Settings;
use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};
use sessile_protocol::SESSION_MARKER;
use sessile_store::LocalPlace;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A healthy server answers at once, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long an older server may take to make room.
const ROOM: Duration = Duration::from_secs(3);

/// A server may end just when it is found, or be replaced.
const ATTEMPTS: u32 = 5;

/// The server's address: one line of JSON, which SDKs read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Address {
    pub(crate) socket: PathBuf,
    pub(crate) pid: u32,
    pub(crate) version: String,
}

impl Address {
    /// Returns the address of a server in this process.
    pub(crate) fn own(place: &LocalPlace) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { socket: place.socket(), pid: std::process::id(), version }
    }
}

/// What is found at the socket.
enum Found {
    Server(Address),
    Nobody,
}

/// Finds the server; starts it with these arguments if there is none.
pub(crate) fn find_or_start(settings: &Settings, args: &[OsString]) -> anyhow::Result<Address> {
    let place = settings.launcher.user().local();
    if let Found::Server(address) = look(&place)?
        && !is_older(&address)
    {
        return Ok(address);
    }
    let place = settings.launcher.user().make_local()?;
    // Held until the server answers, so that other programs find that one.
    let _turn = place.turn_to_start()?;
    let mut reason = String::new();
    for _ in 0..ATTEMPTS {
        match look(&place)? {
            // An older server that is in use stays, and ends by itself later.
            Found::Server(address) if !is_older(&address) || !ends_if_unused(&address) => {
                return Ok(address);
            }
            Found::Server(_) | Found::Nobody => {}
        }
        match start(&place, args)? {
            Started::Serving(address) => return Ok(address),
            Started::Failed(why) => reason = why,
        }
    }
    bail!("the local server does not start: {reason}")
}

/// Whether a server has an older version than ours.
fn is_older(address: &Address) -> bool {
    let numbers = |version: &str| -> Option<Vec<u64>> {
        version.split(['.', '-', '+']).take(3).map(|part| part.parse().ok()).collect()
    };
    match (numbers(&address.version), numbers(env!("CARGO_PKG_VERSION"))) {
        (Some(theirs), Some(ours)) => theirs < ours,
        (None, _) | (_, None) => false,
    }
}

/// Asks a server to end if it is not in use, and waits for that. Returns whether it ended.
fn ends_if_unused(address: &Address) -> bool {
    let pid = i32::try_from(address.pid).ok().and_then(Pid::from_raw);
    let Some(server) =
        pid.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok())
    else {
        return true;
    };
    if rustix::process::pidfd_send_signal(&server, Signal::HUP).is_err() {
        return true;
    }
    let patience = rustix::time::Timespec::try_from(ROOM).ok();
    let mut fds = [PollFd::new(&server, PollFlags::IN)];
    rustix::event::poll(&mut fds, patience.as_ref()).is_ok_and(|n| n > 0)
}

/// Asks the server at the socket for its address.
fn look(place: &LocalPlace) -> anyhow::Result<Found> {
    let nobody = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::NotFound
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
        )
    };
    match ask(place) {
        Ok(Some(address)) => Ok(Found::Server(address)),
        // It ended in between.
        Ok(None) => Ok(Found::Nobody),
        Err(error) if nobody(&error) => Ok(Found::Nobody),
        Err(error) => {
            let socket = place.socket();
            Err(error).with_context(|| {
                format!("the local server at {} does not answer", socket.display())
            })
        }
    }
}

fn ask(place: &LocalPlace) -> io::Result<Option<Address>> {
    let mut stream = connect(place)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let peer = rustix::net::sockopt::socket_peercred(&stream)?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(64 << 10).read_to_string(&mut answer)?;
    let Some((_, body)) = answer.split_once("\r\n\r\n") else { return Ok(None) };
    let body: serde_json::Value = serde_json::from_str(body)?;
    let version = body["version"].as_str().unwrap_or("unknown").to_owned();
    let pid = peer.pid.as_raw_nonzero().get().cast_unsigned();
    Ok(Some(Address { socket: place.socket(), pid, version }))
}

/// Connects through the directory, because a socket's path is limited to 108 bytes.
fn connect(place: &LocalPlace) -> io::Result<UnixStream> {
    let folder = File::open(place.folder())?;
    UnixStream::connect(format!("/proc/self/fd/{}/local.sock", folder.as_raw_fd()))
}

/// Connects for calls.
pub(crate) fn connect_for_calls(place: &LocalPlace) -> io::Result<tokio::net::UnixStream> {
    let stream = connect(place)?;
    stream.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(stream)
}

enum Started {
    Serving(Address),
    Failed(String),
}

/// Starts a detached server and waits until it is ready.
fn start(place: &LocalPlace, args: &[OsString]) -> anyhow::Result<Started> {
    let log = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(place.log())
        .with_context(|| format!("cannot write {}", place.log().display()))?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(args)
        // Removes the marker of the session that this program may run in: the server does
        // not belong to it.
        .env_remove(SESSION_MARKER)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    // SAFETY: both are system calls, which may be made between fork and exec.
    unsafe { command.pre_exec(detach) };
    let mut server = command.spawn().context("cannot start the local server")?;
    let mut line = String::new();
    if let Some(said) = server.stdout.take() {
        BufReader::new(said).read_line(&mut line)?;
    }
    if let Ok(address) = serde_json::from_str(&line) {
        return Ok(Started::Serving(address));
    }
    server.wait()?;
    let log = std::fs::read_to_string(place.log()).unwrap_or_default();
    let last = log.lines().next_back().unwrap_or("it said nothing");
    Ok(Started::Failed(last.trim_start_matches("Error: ").to_owned()))
}

/// Detaches the server: its own session, so that no terminal takes it along, and none of
/// our open descriptors.
fn detach() -> io::Result<()> {
    rustix::process::setsid()?;
    // SAFETY: the descriptors stay open until exec, and nothing else changes.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_of_an_earlier_version_is_older() {
        let at =
            |version: &str| Address { socket: "s".into(), pid: 1, version: version.to_owned() };
        assert!(is_older(&at("0.0.9")));
        assert!(!is_older(&at(env!("CARGO_PKG_VERSION"))));
        assert!(!is_older(&at("999.0.0")));
        assert!(!is_older(&at("unknown")));
    }
}
