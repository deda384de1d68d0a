//! The keeper: the process that owns the kernels of a session and of its forks,
//! outlives every client, and is the only one that touches them.
//!
//! ```text
//!             ┌────────────── keeper (one thread) ──────────────┐
//!  clients ───┤ connections ─► session (decides) ─► kernels     ├─► bash
//!  (socket)   │      ▲             effects      ◄─ reports      ├─► python
//!             │      └── runs ◄── streams (each run's pipes) ◄──┤─► node
//!             │             └──► store (.sessions/<id>)         │
//!             └─────────────────────────────────────────────────┘
//! ```
//!
//! Invariants: nothing blocks but the wait for events; one owner for all state;
//! no thread, no allocator of its own, no runtime: there may be thousands of
//! keepers, and an idle one costs a fraction of a megabyte.

mod alertness;
mod connections;
mod family;
mod guardian;
mod keeper;
mod kernels;
mod labels;
mod origins;
mod ports;
mod processes;
mod reactor;
mod runs;
mod scratch;
mod source;
mod stdin;
mod streams;
mod terminal;
mod turns;
mod waits;
mod worker;

/// The first argument of the program that brings a save to its store: an order
/// on its stdin, what became of it on its stdout, both JSON.
pub const UPLOADER: &str = "uploader";

use sessile_protocol::{Boot, BootReport, Code, Duty, Failure, decode, encode};
use std::io::{Read, Write};

/// The body of the keeper process: reads its [`Boot`] from stdin, detaches,
/// reports on stdout once, and serves until the session has ended.
///
/// The calling process must have a single thread, and nothing to lose: this
/// never comes back to the caller's own process.
#[must_use]
pub fn main() -> std::process::ExitCode {
    let mut frame = Vec::new();
    let read = std::io::stdin().read_to_end(&mut frame);
    let boot = read.ok().and_then(|_| decode::<Boot>(frame.get(4..)?).ok());
    let Some(boot) = boot else {
        report(Err(Failure::new(Code::BadRequest, "a keeper is started by a client, not by hand")));
        return std::process::ExitCode::from(2);
    };
    drop(frame);
    if boot.duty == Duty::Sweep {
        report(keeper::Keeper::sweep(&boot));
        return std::process::ExitCode::SUCCESS;
    }
    match family::Family::start(boot) {
        Ok(mut family) => {
            family.serve();
            std::process::ExitCode::SUCCESS
        }
        Err(failure) => {
            report(Err(failure));
            std::process::ExitCode::FAILURE
        }
    }
}

/// Tells the process that waits for us how it went, and lets go of it.
fn report(outcome: Result<u32, Failure>) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(&encode(&BootReport { outcome }));
    let _ = stdout.flush();
    if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stdin(&null);
    }
}
