//! Sessions of one server, each with its own client.

use super::clients::{Client, Driven, Until, drive};
use super::cost::{Census, Kind, Look};
use crate::memory;
use crate::server::{Serve, request};
use sessile_protocol::Language;
use std::time::{Duration, Instant};

/// Number of sessions that are started at once.
const STARTERS: usize = 8;

pub(super) struct Crowd {
    pub(super) serve: Serve,
    pub(super) language: Language,
    pub(super) clients: Vec<Client>,
    /// Paths of the sessions, in the clients' order.
    pub(super) paths: Vec<String>,
    pub(super) census: Census,
}

/// The results of some busy sessions in a turn.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) driven: Driven,
    pub(super) took: Vec<Duration>,
    /// The cost, including the work that follows in idle time.
    pub(super) cost: Look,
}

impl Crowd {
    pub(super) fn new(serve: Serve, language: Language) -> Self {
        let (clients, paths, census) = (Vec::new(), Vec::new(), Census::default());
        Self { serve, language, clients, paths, census }
    }

    /// Opens sessions up to this number, each of which has run something, and returns how
    /// long it took to start the missing ones.
    pub(super) fn open(&mut self, sessions: usize) -> anyhow::Result<Duration> {
        let missing = sessions.saturating_sub(self.clients.len());
        let start = Instant::now();
        let paths = self.start_sessions(missing)?;
        let took = start.elapsed();
        let body = format!(r#"{{"command":"{}"}}"#, super::nothing(self.language));
        // Connected shortly before their first run: a server closes connections without any
        // request after half a minute, and a thousand interpreters take longer to start.
        for some in paths.chunks(STARTERS) {
            let first = self.clients.len();
            for path in some {
                let order = request("POST", &format!("{path}/exec"), &body);
                self.clients.push(Client::of_run(&self.serve.server.address, order)?);
            }
            drive(&mut self.clients[first..], Until::Answers(1))?;
        }
        self.paths.extend(paths);
        self.count()?;
        Ok(took)
    }

    fn start_sessions(&self, missing: usize) -> anyhow::Result<Vec<String>> {
        let program = super::program(self.language);
        let start = |share: usize| -> anyhow::Result<Vec<String>> {
            let mut http = self.serve.connect()?;
            (0..share).map(|_| http.start_session(program)).collect()
        };
        std::thread::scope(|scope| {
            let shares = (0..STARTERS).map(|at| (missing + at) / STARTERS);
            let starters: Vec<_> = shares.map(|share| scope.spawn(move || start(share))).collect();
            let mut paths = Vec::new();
            for starter in starters {
                let started = starter.join().map_err(|_| anyhow::anyhow!("a starter panicked"))?;
                paths.extend(started?);
            }
            Ok(paths)
        })
    }

    /// Ends the sessions beyond these.
    pub(super) fn close_beyond(&mut self, sessions: usize) -> anyhow::Result<()> {
        let mut http = self.serve.connect()?;
        for path in self.paths.drain(sessions..) {
            http.delete(&path)?;
        }
        self.clients.truncate(sessions);
        self.count()
    }

    fn count(&mut self) -> anyhow::Result<()> {
        self.census = Census::take(self.serve.server.pid(), self.serve.sessions.path())?;
        Ok(())
    }

    /// Returns whether there is memory for this many, judging by the existing ones.
    pub(super) fn has_room_for(&self, sessions: usize) -> anyhow::Result<bool> {
        let have = self.clients.len();
        if have == 0 || sessions <= have {
            return Ok(true);
        }
        let pids = self.census.kind(Kind::Keeper).chain(self.census.kind(Kind::Kernel));
        let kilobytes: u64 =
            pids.map(|pid| memory::of(pid).map_or(0, |(private, _)| private)).sum();
        let needed = kilobytes / have as u64 * (sessions - have) as u64;
        Ok(needed < memory::available()? / 3 * 2)
    }

    /// Keeps the first sessions busy for a while; all others are open.
    pub(super) fn turn(&mut self, sessions: usize, time: Duration) -> anyhow::Result<Turn> {
        self.census.settle();
        let busy = &mut self.clients[..sessions];
        // The system first places idle processes on their own cores.
        drive(busy, Until::Elapsed(time / 8))?;
        busy.iter_mut().for_each(|client| client.took.clear());
        let before = self.census.look();
        let driven = drive(busy, Until::Elapsed(time))?;
        let took = busy.iter_mut().flat_map(|client| std::mem::take(&mut client.took)).collect();
        let looking = self.census.look();
        self.census.settle();
        Ok(Turn { driven, took, cost: self.census.look().without_looking(&looking).since(&before) })
    }
}
