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
//! Invariants: only the wait for events blocks; all state has one owner; there are no
//! threads, no custom allocator and no async runtime. There may be thousands of keepers,
//! and an idle one costs a fraction of a megabyte.

mod busy_polling;
mod confined;
mod connections;
mod directory_watch;
mod dumps;
mod family;
mod fork_server;
mod groups;
mod guardian;
mod keeper;
mod kernels;
mod labels;
mod limits;
mod names;
mod origins;
mod ports;
mod privacy;
mod processes;
mod reactor;
mod runs;
mod scratch;
mod shortage;
mod source;
mod stdin;
mod streams;
mod syscall_injection;
mod terminal;
mod turns;
mod waits;
mod worker;

/// First argument of the program that uploads a save to its store. It reads an order from
/// stdin and writes the outcome to stdout, both as JSON.
pub const UPLOADER: &str = "uploader";

use guardian::Origin;
use sessile_protocol::{Boot, BootPurpose, BootReport, Code, FORK_SERVER, Failure, decode, encode};
use std::io::{Read, Write};
use std::process::ExitCode;

/// Interprets the output of a shell's capture script, for the tests of those scripts.
#[doc(hidden)]
#[must_use]
pub fn interpret(
    language: sessile_protocol::Language,
    capture: Vec<u8>,
) -> Option<sessile_store::SavedKernel> {
    kernels::interpret(language, capture)
}

/// The body of the keeper process: reads its [`Boot`] from stdin, detaches, reports once
/// on stdout, and serves until the session has ended. With [`FORK_SERVER`] as the last
/// argument, it is the process from which keepers are forked.
///
/// The calling process must have a single thread and nothing to lose: this never returns
/// to the caller's own process.
#[must_use]
pub fn main() -> ExitCode {
    if std::env::args_os().next_back().is_some_and(|word| word == FORK_SERVER) {
        return fork_server::serve();
    }
    let mut frame = Vec::new();
    let read = std::io::stdin().read_to_end(&mut frame);
    keep(read.ok().and(boot(&frame)), Origin::Launched)
}

fn boot(frame: &[u8]) -> Option<Boot> {
    decode(frame.get(4..)?).ok()
}

fn keep(boot: Option<Boot>, origin: Origin) -> ExitCode {
    let Some(boot) = boot else {
        report(Err(Failure::new(Code::BadRequest, "a keeper is started by a client, not by hand")));
        return ExitCode::from(2);
    };
    if boot.duty == BootPurpose::Sweep {
        report(keeper::Keeper::sweep(&boot));
        return ExitCode::SUCCESS;
    }
    match family::Family::start(boot, origin) {
        Ok(mut family) => {
            family.serve();
            ExitCode::SUCCESS
        }
        Err(failure) => {
            report(Err(failure));
            ExitCode::FAILURE
        }
    }
}

/// Reports the outcome to the process that waits for us, and closes the connection to it.
fn report(outcome: Result<u32, Failure>) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(&encode(&BootReport { outcome }));
    let _ = stdout.flush();
    if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stdin(&null);
    }
}
