//! A command at a terminal.

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Command, Stdio};

/// Runs it with a terminal as its stdout, without colours, and returns what it shows.
pub(crate) fn show(mut command: Command) -> String {
    let (ours, theirs) = open();
    command.env("NO_COLOR", "1").stdin(Stdio::null()).stdout(theirs);
    let mut child = command.spawn().expect("spawn");
    // `command` holds the terminal's other side as well. Without it, reading fails after
    // the child's end instead of waiting.
    drop(command);
    let mut shown = Vec::new();
    let _ = File::from(ours).read_to_end(&mut shown);
    assert!(child.wait().expect("wait").success());
    String::from_utf8_lossy(&shown).replace("\r\n", "\n")
}

pub(crate) fn open() -> (OwnedFd, OwnedFd) {
    let (mut ours, mut theirs) = (-1, -1);
    let null = std::ptr::null_mut();
    // SAFETY: both variables are ours to write; the name, the modes and the size may be null.
    let outcome =
        unsafe { libc::openpty(&raw mut ours, &raw mut theirs, null, null.cast(), null.cast()) };
    assert_eq!(outcome, 0, "openpty");
    // SAFETY: the call has just opened them, and nothing else owns them.
    unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}
