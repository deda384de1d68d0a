//! Hostile programs in a sandbox: each case is a program and what must come of
//! it. They run as whoever runs the tests, and, if that is root, as an ordinary
//! user as well.

mod bombs;
mod channels;
mod files;
mod kernel;
mod network;
mod processes;
mod rules;
mod set_ids;
mod states;

use sessile_testkit::{Harness, Session};
use std::process::{Child, Command};

/// One attempt.
pub(super) struct Attempt {
    name: &'static str,
    language: &'static str,
    text: &'static str,
}

/// In a shell: succeeds only if the attempt does.
pub(super) const fn sh(name: &'static str, text: &'static str) -> Attempt {
    Attempt { name, language: "bash", text }
}

/// In Python, with `syscall(number, …)` and `refused(action)` at hand: prints
/// nothing if the attempt fails.
pub(super) const fn py(name: &'static str, text: &'static str) -> Attempt {
    Attempt { name, language: "python", text }
}

/// Says whether an action is refused, by an error of the system.
const HELPERS: &str = r"
import ctypes, os, socket, errno, struct
_libc = ctypes.CDLL(None, use_errno=True)
def syscall(number, *args):
    ctypes.set_errno(0)
    result = _libc.syscall(ctypes.c_long(number), *[
        ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in args])
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
";

/// For root and for an ordinary user.
pub(super) fn for_everybody(check: impl Fn(&Harness)) {
    check(&Harness::new(env!("CARGO_BIN_EXE_sessile")));
    if rustix::process::geteuid().is_root() {
        check(&Harness::unprivileged(env!("CARGO_BIN_EXE_sessile")));
    }
}

/// None of the attempts may succeed, and the session goes on after each.
pub(super) fn all_fail(session: &Session<'_>, attempts: &[Attempt]) {
    session.run_in("python", HELPERS).exits(0);
    let mut succeeded = Vec::new();
    for attempt in attempts {
        let (name, text) = (attempt.name, attempt.text);
        let wrapped = match attempt.language {
            "python" => {
                let body = text.replace('\n', "\n    ");
                format!("try:\n    {body}\nexcept (OSError, ValueError):\n    print('refused')\n")
            }
            _ => {
                format!("if ( {text}\n) >/dev/null 2>&1; then echo through; else echo refused; fi")
            }
        };
        let answer = session.run_in(attempt.language, wrapped);
        if answer.stdout() != "refused\n" {
            succeeded.push(format!("{name}: {}{}", answer.stdout(), answer.stderr()));
        }
    }
    assert!(succeeded.is_empty(), "these came through:\n{}", succeeded.join("\n"));
    session.run("echo alive").exits(0).prints("alive\n");
}

/// A process of the host that has nothing to do with any session.
pub(super) struct Outside(Child);

impl Outside {
    pub(super) fn spawn() -> Self {
        Self(Command::new("sleep").arg("1000").spawn().expect("a process"))
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_none()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
