//! A `sessile` process, from its start to its output.

use crate::{PATIENCE, Process};
use serde_json::Value;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// A running client.
#[derive(Debug)]
pub struct Client {
    what: String,
    child: Child,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
}

impl Client {
    /// Starts it with this stdin.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn spawn(mut command: Command, stdin: &[u8]) -> Self {
        let what = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("spawn sessile");
        let mut input = child.stdin.take().expect("a pipe");
        let text = stdin.to_vec();
        // In a thread, because a client may exit without reading it.
        std::thread::spawn(move || input.write_all(&text));
        let stdout = drain(child.stdout.take().expect("a pipe"));
        let stderr = drain(child.stderr.take().expect("a pipe"));
        Self { what, child, stdout, stderr }
    }

    #[must_use]
    pub fn process(&self) -> Process {
        Process::of(self.child.id().cast_signed())
    }

    /// Returns whether it is still running.
    ///
    /// # Panics
    /// When the system does not know it.
    #[must_use]
    pub fn is_waiting(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// Waits until it waits for its keeper: asleep with a socket open, which it has only
    /// after it has read its stdin.
    #[track_caller]
    pub fn wait_blocked(&self) -> &Self {
        let process = self.process();
        crate::until("a client that waits", || {
            let seen = process.entry();
            let has_socket = seen.descriptors().any(|descriptor| descriptor.socket().is_some());
            let is_asleep = seen.stat()?.state == 'S';
            (has_socket && is_asleep).then_some(())
        });
        self
    }

    /// Waits for its end and all its output.
    ///
    /// # Panics
    /// When it does not end, or another process holds its streams open.
    #[track_caller]
    #[must_use]
    pub fn finish(mut self) -> Output {
        let hears = |stream: &Receiver<Vec<u8>>| stream.recv_timeout(PATIENCE);
        let (stdout, stderr) = (hears(&self.stdout), hears(&self.stderr));
        let (Ok(stdout), Ok(stderr)) = (stdout, stderr) else {
            let ended = self.child.try_wait();
            let _ = self.child.kill();
            let _ = self.child.wait();
            panic!("{} does not end (status: {ended:?})", self.what);
        };
        Output {
            what: self.what,
            status: self.child.wait().expect("wait for sessile"),
            stdout,
            stderr,
        }
    }
}

fn drain(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        let _ = send.send(bytes);
    });
    receive
}

/// The output of a client.
#[derive(Clone, Debug)]
pub struct Output {
    what: String,
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Output {
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    #[must_use]
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// # Panics
    /// When the client was killed, or exited with another code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        let (what, found) = (&self.what, self.status);
        assert_eq!(
            found.code(),
            Some(code),
            "{what}: {found}, stdout {:?}, stderr {:?}",
            self.text(),
            self.errors()
        );
        self
    }

    /// # Panics
    /// When stdout is anything else.
    #[track_caller]
    pub fn prints(self, text: &str) -> Self {
        assert_eq!(self.text(), text, "stdout of {}", self.what);
        self
    }

    /// # Panics
    /// When stderr is anything else.
    #[track_caller]
    pub fn warns(self, text: &str) -> Self {
        assert_eq!(self.errors(), text, "stderr of {}", self.what);
        self
    }

    /// Returns the one JSON document that it printed.
    ///
    /// # Panics
    /// When it failed, wrote to stderr, or printed something else.
    #[track_caller]
    #[must_use]
    pub fn json(self) -> Value {
        let this = self.exits(0).warns("");
        serde_json::from_slice(&this.stdout)
            .unwrap_or_else(|error| panic!("{}: {error} in {:?}", this.what, this.text()))
    }
}
