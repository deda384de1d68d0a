//! A connection to a keeper's socket, for requests that the command line does not make.

use crate::PATIENCE;
use sessile_protocol::{
    Answer, Call, Completed, Exec, Failure, OutputView, ReadOutput, Reply, Request, RunNo,
    Splitter, decode, encode,
};
use sessile_store::{Directory, Liveness};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Several calls may be open at the same time: each has its number, and its reply is kept
/// until it is taken.
#[derive(Debug)]
pub struct Link {
    socket: UnixStream,
    splitter: Splitter,
    last: u64,
    replies: BTreeMap<u64, Result<Answer, Failure>>,
}

impl Link {
    /// # Panics
    /// When there is no keeper.
    #[track_caller]
    #[must_use]
    pub fn to(session: &Path) -> Self {
        let Liveness::Live(socket) = Directory::at(session.to_owned()).connect() else {
            panic!("{} has no keeper", session.display());
        };
        let socket = UnixStream::from(socket);
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self { socket, splitter: Splitter::default(), last: 0, replies: BTreeMap::new() }
    }

    /// Sends a request without waiting, and returns the call's number.
    ///
    /// # Panics
    /// When the keeper is gone.
    #[track_caller]
    pub fn send(&mut self, request: Request) -> u64 {
        self.last += 1;
        self.socket.write_all(&encode(&Call::new(self.last, request))).expect("a keeper");
        self.last
    }

    /// Waits for the reply to a call.
    ///
    /// # Panics
    /// When it does not come.
    #[track_caller]
    pub fn reply(&mut self, call: u64) -> Result<Answer, Failure> {
        loop {
            if let Some(outcome) = self.replies.remove(&call) {
                return outcome;
            }
            assert!(self.receive(), "the keeper went away before it answered");
        }
    }

    /// Returns whether a call is already answered. This is only meaningful after the answer
    /// to a later call on the same connection.
    #[must_use]
    pub fn is_answered(&self, call: u64) -> bool {
        self.replies.contains_key(&call)
    }

    /// Waits until the keeper closes the connection.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn wait_closed(&mut self) {
        while self.receive() {}
    }

    /// Receives data; returns false at the end of the connection.
    #[track_caller]
    fn receive(&mut self) -> bool {
        let mut buffer = vec![0; 64 << 10];
        let n = match self.socket.read(&mut buffer) {
            Ok(n) => n,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            // A read with a timeout is not restarted after a signal.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return true,
            Err(error) => panic!("no word from the keeper: {error}"),
        };
        self.splitter.push(&buffer[..n]);
        while let Some(body) = self.splitter.next_body().expect("frames") {
            let reply: Reply = decode(body).expect("a reply");
            self.replies.insert(reply.id, reply.outcome);
        }
        n > 0
    }

    #[track_caller]
    pub fn call(&mut self, request: Request) -> Result<Answer, Failure> {
        let call = self.send(request);
        self.reply(call)
    }

    /// Returns the run's number, as soon as it has one.
    ///
    /// # Panics
    /// When it is refused, or answered with something else.
    #[track_caller]
    pub fn accept(&mut self, order: Exec) -> RunNo {
        match self.call(Request::Exec(order)) {
            Ok(Answer::Accepted { run, .. }) => run,
            other => panic!("not accepted: {other:?}"),
        }
    }

    /// Returns a finished run.
    ///
    /// # Panics
    /// When it is refused, or answered with something else.
    #[track_caller]
    pub fn complete(&mut self, order: Exec) -> Completed {
        completed(self.call(Request::Exec(order)))
    }

    /// Returns the result of a run, once it has finished.
    ///
    /// # Panics
    /// When it is refused, or answered with something else.
    #[track_caller]
    pub fn result(&mut self, run: RunNo) -> Completed {
        completed(self.call(Request::Result {
            run,
            max_output: 1 << 20,
            patience_ms: None,
            until_input: false,
        }))
    }

    /// # Panics
    /// When it is refused, or answered with something else.
    #[track_caller]
    pub fn output(&mut self, read: ReadOutput) -> OutputView {
        match self.call(Request::Output(read)) {
            Ok(Answer::Output(view)) => view,
            other => panic!("no output: {other:?}"),
        }
    }

    /// # Panics
    /// When it is not refused.
    #[track_caller]
    pub fn refusal(&mut self, request: Request) -> Failure {
        match self.call(request) {
            Err(failure) => failure,
            Ok(answer) => panic!("not refused: {answer:?}"),
        }
    }
}

/// # Panics
/// When it is anything else.
#[track_caller]
#[must_use]
pub fn completed(outcome: Result<Answer, Failure>) -> Completed {
    match outcome {
        Ok(Answer::Completed(done)) => *done,
        other => panic!("not completed: {other:?}"),
    }
}

/// Returns an exec with all output and without a time limit.
#[must_use]
pub fn order(text: &str) -> Exec {
    Exec { text: text.as_bytes().to_vec(), max_output: 1 << 20, ..Exec::default() }
}
