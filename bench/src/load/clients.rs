//! Clients in a closed loop, all driven by one thread.

use anyhow::{Context, bail};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// How the end of an answer is recognized.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answers {
    /// An HTTP answer to a run, which must have ended with status 0.
    Run,
    /// A byte from a bare loop.
    Byte,
}

/// When a client sends its next request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    /// When it has the answer to the last one.
    Busy,
    /// This long after it sent the last one, or when that is answered.
    Every(Duration),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    Elapsed(Duration),
    /// Each client has this many answers.
    Answers(usize),
}

#[derive(Debug)]
pub(super) struct Client {
    to: File,
    from: File,
    answers: Answers,
    request: Vec<u8>,
    pub(super) pace: Pace,
    received: Vec<u8>,
    waits: Waits,
    /// How long each request took.
    pub(super) took: Vec<Duration>,
}

#[derive(Clone, Copy, Debug)]
enum Waits {
    /// For the answer to the request sent at that time.
    Answer(Instant),
    /// For its time to send.
    Turn(Instant),
}

impl Client {
    pub(super) fn of_run(address: &str, request: Vec<u8>) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let to = OwnedFd::from(stream.try_clone()?).into();
        Ok(Self::new(to, OwnedFd::from(stream).into(), request, Answers::Run))
    }

    pub(super) fn new(to: File, from: File, request: Vec<u8>, answers: Answers) -> Self {
        let waits = Waits::Turn(Instant::now());
        let (received, took) = (Vec::new(), Vec::new());
        Self { to, from, answers, request, pace: Pace::Busy, received, waits, took }
    }

    fn send(&mut self, now: Instant) -> anyhow::Result<()> {
        self.to.write_all(&self.request)?;
        self.waits = Waits::Answer(now);
        Ok(())
    }

    /// Receives data, and returns whether the answer is complete.
    fn receive(&mut self, buffer: &mut [u8]) -> anyhow::Result<bool> {
        let length = self.from.read(buffer)?;
        anyhow::ensure!(length > 0, "the connection was closed");
        match self.answers {
            Answers::Byte => Ok(true),
            Answers::Run if self.received.is_empty() => {
                let is_complete = is_complete(&buffer[..length])?;
                if !is_complete {
                    self.received.extend_from_slice(&buffer[..length]);
                }
                Ok(is_complete)
            }
            Answers::Run => {
                self.received.extend_from_slice(&buffer[..length]);
                let is_complete = is_complete(&self.received)?;
                if is_complete {
                    self.received.clear();
                }
                Ok(is_complete)
            }
        }
    }
}

/// Returns whether these bytes are a whole answer of a successful run.
fn is_complete(bytes: &[u8]) -> anyhow::Result<bool> {
    let Some(head) = find(bytes, b"\r\n\r\n") else { return Ok(false) };
    let length = find(&bytes[..head], b"content-length: ").context("no length")?;
    let digits = &bytes[length + b"content-length: ".len()..head];
    let end = find(digits, b"\r").unwrap_or(digits.len());
    let length: usize = std::str::from_utf8(&digits[..end])?.parse()?;
    let body = &bytes[head + 4..];
    if body.len() < length {
        return Ok(false);
    }
    if bytes.starts_with(b"HTTP/1.1 200") && find(body, b"\"exit_code\":0,").is_some() {
        return Ok(true);
    }
    bail!("{}", String::from_utf8_lossy(bytes))
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// The result of a drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driven {
    /// Answers that came in time. Those to the last requests come later.
    pub(super) answered: usize,
    pub(super) elapsed: Duration,
}

/// Drives all clients, and returns when none waits for an answer any more.
pub(super) fn drive(clients: &mut [Client], until: Until) -> anyhow::Result<Driven> {
    let mut drive = Drive::new(clients, until)?;
    drive.watch()?;
    while drive.turn()? {}
    Ok(Driven { answered: drive.answered, elapsed: drive.elapsed })
}

struct Drive<'a> {
    clients: &'a mut [Client],
    until: Until,
    epoll: OwnedFd,
    buffer: Vec<u8>,
    events: Vec<Event>,
    start: Instant,
    /// Clients that may be due to send. Busy ones are listed only at the start: after that
    /// they send as they are answered.
    senders: Vec<usize>,
    /// Number of clients that wait for an answer.
    waiting: usize,
    answered: usize,
    elapsed: Duration,
}

impl<'a> Drive<'a> {
    fn new(clients: &'a mut [Client], until: Until) -> anyhow::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let (buffer, events) = (vec![0; 64 << 10], Vec::with_capacity(256));
        let (start, elapsed) = (Instant::now(), Duration::ZERO);
        let senders = (0..clients.len()).collect();
        let (waiting, answered) = (0, 0);
        Ok(Self {
            clients,
            until,
            epoll,
            buffer,
            events,
            start,
            senders,
            waiting,
            answered,
            elapsed,
        })
    }

    fn watch(&mut self) -> anyhow::Result<()> {
        let count = self.clients.len().max(1);
        for (index, client) in self.clients.iter_mut().enumerate() {
            let data = EventData::new_u64(index as u64);
            epoll::add(&self.epoll, client.from.as_fd(), data, EventFlags::IN)?;
            let share = index as f64 / count as f64;
            client.waits = match client.pace {
                Pace::Busy => Waits::Turn(self.start),
                // Spread, so that clients with the same pace do not send at the same time.
                Pace::Every(pace) => Waits::Turn(self.start + pace.mul_f64(share)),
            };
        }
        Ok(())
    }

    /// Returns whether the time for new requests is over.
    fn is_over(&self, now: Instant) -> bool {
        match self.until {
            Until::Elapsed(time) => now.duration_since(self.start) >= time,
            Until::Answers(_) => false,
        }
    }

    /// Sends due requests, waits for answers and receives them. Returns false at the end.
    fn turn(&mut self) -> anyhow::Result<bool> {
        let now = Instant::now();
        let is_over = self.is_over(now);
        let next = if is_over { None } else { self.send_what_is_due(now)? };
        if is_over && self.elapsed.is_zero() {
            self.elapsed = now.duration_since(self.start);
        }
        if self.waiting == 0 && next.is_none() {
            if self.elapsed.is_zero() {
                self.elapsed = self.start.elapsed();
            }
            return Ok(false);
        }
        let timeout = self.timeout(now, next, is_over);
        self.events.clear();
        epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut self.events),
            timeout.as_ref(),
        )?;
        let events = std::mem::take(&mut self.events);
        for event in &events {
            self.take_answer(event.data.u64() as usize)?;
        }
        self.events = events;
        Ok(true)
    }

    fn timeout(&self, now: Instant, next: Option<Instant>, is_over: bool) -> Option<Timespec> {
        let end = match self.until {
            Until::Elapsed(time) if !is_over => Some(self.start + time),
            Until::Elapsed(_) | Until::Answers(_) => None,
        };
        let wake = [next, end].into_iter().flatten().min()?;
        wake.saturating_duration_since(now).try_into().ok()
    }

    /// Sends due requests, and returns when the next one is due.
    fn send_what_is_due(&mut self, now: Instant) -> anyhow::Result<Option<Instant>> {
        let mut next: Option<Instant> = None;
        for index in &self.senders {
            let client = &mut self.clients[*index];
            let Waits::Turn(due) = client.waits else { continue };
            if let Until::Answers(answers) = self.until
                && client.took.len() >= answers
            {
                continue;
            }
            if due <= now {
                client.send(now)?;
                self.waiting += 1;
            } else {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        self.senders.retain(|index| matches!(self.clients[*index].pace, Pace::Every(_)));
        Ok(next)
    }

    fn take_answer(&mut self, index: usize) -> anyhow::Result<()> {
        let client = &mut self.clients[index];
        if !client.receive(&mut self.buffer)? {
            return Ok(());
        }
        let now = Instant::now();
        let Waits::Answer(sent) = client.waits else { bail!("an answer that nobody asked for") };
        client.took.push(now.duration_since(sent));
        let is_over = match self.until {
            Until::Elapsed(time) => now.duration_since(self.start) >= time,
            Until::Answers(answers) => client.took.len() >= answers,
        };
        self.answered += usize::from(!is_over || matches!(self.until, Until::Answers(_)));
        match client.pace {
            Pace::Busy if !is_over => client.send(now)?,
            Pace::Busy => {
                client.waits = Waits::Turn(now);
                self.waiting -= 1;
            }
            Pace::Every(pace) => {
                client.waits = Waits::Turn((sent + pace).max(now));
                self.waiting -= 1;
            }
        }
        Ok(())
    }
}
