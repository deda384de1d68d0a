//! A peer's driver: a process that takes orders as lines of JSON.

use super::{Args, Peer, Place};
use crate::memory;
use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Timeout for starting a server, or ending all sessions.
const PATIENCE: Duration = Duration::from_secs(90);

#[derive(Debug)]
pub(super) struct Driver {
    pub(super) peer: &'static Peer,
    /// Including its version.
    pub(super) name: String,
    start: Start,
    process: Option<Running>,
}

/// How to start it again.
#[derive(Clone, Debug)]
struct Start {
    python: PathBuf,
    program: PathBuf,
    sessile: PathBuf,
}

#[derive(Debug)]
struct Running {
    child: Child,
    orders: ChildStdin,
    answers: Receiver<String>,
    _place: Place,
}

/// The result of an order.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Answer(Value),
    /// The error of the peer or its driver.
    Error(String),
    /// It did not answer, and was killed.
    Hangs,
}

impl Driver {
    pub(super) fn start(peer: &'static Peer, sessile: &Path, args: &Args) -> anyhow::Result<Self> {
        let program = args.drivers.join(peer.driver);
        let start = Start { python: args.python.clone(), program, sessile: sessile.to_owned() };
        let mut driver = Self { peer, name: String::new(), start, process: None };
        driver.launch()?;
        Ok(driver)
    }

    fn launch(&mut self) -> anyhow::Result<()> {
        let place = Place::new(&self.start.sessile)?;
        let mut child = Command::new(&self.start.python)
            .arg("-B")
            .arg(&self.start.program)
            .args(self.peer.argument)
            .env("SESSILE", &self.start.sessile)
            .env("SESSIONS", place.sessions.path())
            .env("XDG_STATE_HOME", place.temporary.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", self.start.python.display()))?;
        let (orders, stdout) = crate::pipes(&mut child)?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        self.process = Some(Running { child, orders, answers, _place: place });
        match self.ask(&json!({"do": "start"}), PATIENCE)? {
            Outcome::Answer(answer) => {
                self.name = answer["name"].as_str().unwrap_or_default().to_owned();
                Ok(())
            }
            Outcome::Error(error) => bail!("{}: {error}", self.peer.title),
            Outcome::Hangs => bail!("{} does not start", self.peer.title),
        }
    }

    /// Gives an order and waits for the answer. A driver that does not answer is killed,
    /// and started again for the next order.
    pub(super) fn ask(&mut self, order: &Value, patience: Duration) -> anyhow::Result<Outcome> {
        if self.process.is_none() {
            self.launch()?;
        }
        let running = self.process.as_mut().context("no driver")?;
        let sent = writeln!(running.orders, "{order}");
        let line = match sent {
            Ok(()) => running.answers.recv_timeout(patience),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        let answer = match line {
            Ok(line) => serde_json::from_str::<Value>(&line)?,
            Err(error) => {
                self.kill();
                return Ok(match error {
                    RecvTimeoutError::Timeout => Outcome::Hangs,
                    RecvTimeoutError::Disconnected => {
                        Outcome::Error("its driver has ended".to_owned())
                    }
                });
            }
        };
        Ok(match answer["error"].as_str() {
            Some(error) => Outcome::Error(error.to_owned()),
            None => Outcome::Answer(answer),
        })
    }

    fn kill(&mut self) {
        let Some(mut running) = self.process.take() else { return };
        let all = descendants(running.child.id());
        let _ = running.child.kill();
        let _ = running.child.wait();
        all.into_iter().for_each(end);
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Including its sessions and its server.
        let _ = self.process.is_some().then(|| self.ask(&json!({"do": "stop"}), PATIENCE));
        self.kill();
    }
}

fn descendants(pid: u32) -> Vec<u32> {
    let children = memory::children(pid);
    let below = children.iter().flat_map(|child| descendants(*child));
    below.chain(children.iter().copied()).collect()
}

fn end(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Ends processes that peers have left running, which are now our children.
pub(super) fn end_leftovers() {
    for pid in descendants(std::process::id()) {
        end(pid);
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}
