//! A client that writes its messages by hand.

use serde_json::{Value, json};
use sessile_testkit::{Harness, PATIENCE, Process};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// How a client and a server come to terms.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lifecycle {
    /// Every request says all that there is to say.
    Stateless,
    /// They have shaken hands.
    Handshake,
}

/// A client over the stdin and stdout of `sessile mcp`.
pub(crate) struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    answers: HashMap<u64, Value>,
    notifications: Vec<Value>,
    last: u64,
    lifecycle: Lifecycle,
}

/// What a request of the stateless version carries.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "by-hand", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

pub(crate) fn initialize(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "by-hand", "version": "1"},
    })
}

impl Peer {
    /// One of the stateless version.
    pub(crate) fn start(h: &Harness, options: &[&str]) -> Self {
        Self::spawn(h.command(&[&["mcp"], options].concat()))
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sessile mcp starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (send, messages) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line)
                    .unwrap_or_else(|error| panic!("{error} in {line:?}"));
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            messages,
            answers: HashMap::new(),
            notifications: Vec::new(),
            last: 0,
            lifecycle: Lifecycle::Stateless,
        }
    }

    /// One of an older version; what the server said in the handshake.
    #[track_caller]
    pub(crate) fn shake_hands(h: &Harness, version: &str) -> (Self, Value) {
        let mut peer = Self::start(h, &[]);
        peer.lifecycle = Lifecycle::Handshake;
        let told = peer.ask("initialize", initialize(version));
        peer.notify("notifications/initialized", &json!({}));
        (peer, told)
    }

    pub(crate) fn process(&self) -> Process {
        Process::of(self.child.id().cast_signed())
    }

    fn write(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("an open stdin");
        writeln!(stdin, "{message}").and_then(|()| stdin.flush()).expect("a server that reads");
    }

    /// Sends a line, whatever it is.
    pub(crate) fn write_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("an open stdin");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("a server that reads");
    }

    /// Closes the server's stdin; what it has to say is still heard.
    pub(crate) fn close_input(&mut self) {
        drop(self.stdin.take());
    }

    /// Sends a request; its number.
    pub(crate) fn request(&mut self, method: &str, mut params: Value) -> u64 {
        if let Lifecycle::Stateless = self.lifecycle {
            let mut all = meta();
            for (name, value) in params["_meta"].as_object().cloned().unwrap_or_default() {
                all[name] = value;
            }
            params["_meta"] = all;
        }
        self.last += 1;
        let id = self.last;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    #[track_caller]
    fn receive(&mut self) {
        let message = self.messages.recv_timeout(PATIENCE).expect("a message from the server");
        match message["id"].as_u64() {
            Some(id) => drop(self.answers.insert(id, message)),
            None => self.notifications.push(message),
        }
    }

    /// Waits for the whole answer to a request.
    #[track_caller]
    pub(crate) fn reply(&mut self, id: u64) -> Value {
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return answer;
            }
            self.receive();
        }
    }

    /// Whether a request has been answered by now. A later one has to be
    /// answered first, for this to mean anything.
    pub(crate) fn is_answered(&self, id: u64) -> bool {
        self.answers.contains_key(&id)
    }

    /// Waits for the result of a request.
    #[track_caller]
    pub(crate) fn result(&mut self, id: u64) -> Value {
        let mut answer = self.reply(id);
        assert!(answer["error"].is_null(), "refused: {answer}");
        answer["result"].take()
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.result(id)
    }

    /// Begins a call of a tool.
    pub(crate) fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin(tool, arguments);
        self.result(id)
    }

    #[track_caller]
    pub(crate) fn runtime(&mut self, arguments: &Value) -> Value {
        self.call("runtime", arguments)
    }

    /// `runtime` runs a command, whose stdout this is.
    #[track_caller]
    pub(crate) fn exec(&mut self, command: &str) -> String {
        let result = self.runtime(&json!({"action": "exec", "command": command}));
        let stdout = &result["structuredContent"]["stdout"];
        stdout.as_str().unwrap_or_else(|| panic!("no stdout in {result}")).to_owned()
    }

    /// Waits for the next word that is not an answer.
    #[track_caller]
    pub(crate) fn notification(&mut self) -> Value {
        while self.notifications.is_empty() {
            self.receive();
        }
        self.notifications.remove(0)
    }

    /// Closes the server's stdin and waits for its end.
    #[track_caller]
    pub(crate) fn close(mut self) {
        drop(self.stdin.take());
        let process = self.process();
        let begun = Instant::now();
        process.wait_ended();
        assert!(self.child.wait().expect("our child").success(), "after {:?}", begun.elapsed());
    }

    /// Kills the server, which has no time to do anything.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("our child");
        self.child.wait().expect("our child");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
