//! A keeper of protocol version 1, as its clients see it.
//!
//! [`Proxy`] takes the place of a real keeper's socket and lets only version 1
//! through: what that version did not know is dropped from a request, or the
//! request refused with the words of that time; and replies have no field that
//! it had not. It ends with its keeper.

mod messages;

use messages::{Answer, Call, Code, Failure, PROTOCOL, Reply};
use rustix::fs::{Mode, OFlags};
use rustix::net::Shutdown;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sessile_protocol::{Splitter, decode, encode};
use sessile_store::Directory;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What the keeper's own socket is called meanwhile.
const ASIDE: &str = "keeper.aside.sock";

#[derive(Debug)]
pub struct Proxy {
    session: PathBuf,
    listener: Arc<UnixListener>,
    accepting: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Puts itself before the keeper of a session.
    ///
    /// # Panics
    /// When there is no keeper, or its socket cannot be moved.
    #[track_caller]
    #[must_use]
    pub fn before(session: &Path) -> Self {
        std::fs::rename(session.join("keeper.sock"), session.join(ASIDE)).expect("a keeper");
        let listener = Directory::at(session.to_owned()).listen().expect("a socket");
        let listener = Arc::new(UnixListener::from(listener));
        let keeper = connect(session).expect("a keeper that answers");
        let watched = Arc::clone(&listener);
        // Whoever connects to a keeper that is gone is refused.
        std::thread::spawn(move || {
            let mut keeper = keeper;
            let _ = keeper.read(&mut [0]);
            let _ = rustix::net::shutdown(&watched, Shutdown::Both);
        });
        let (accepted, place) = (Arc::clone(&listener), session.to_owned());
        let accepting = std::thread::spawn(move || {
            while let Ok((client, _)) = accepted.accept() {
                if let Ok(keeper) = connect(&place) {
                    let _ = join(client, keeper);
                }
            }
        });
        Self { session: session.to_owned(), listener, accepting: Some(accepting) }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.listener, Shutdown::Both);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        let aside = self.session.join(ASIDE);
        if connect(&self.session).is_ok() {
            let _ = std::fs::rename(aside, self.session.join("keeper.sock"));
        } else {
            let _ = std::fs::remove_file(aside);
        }
    }
}

/// By way of a descriptor: a socket's path may have 107 bytes only.
fn connect(session: &Path) -> io::Result<UnixStream> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory: OwnedFd = rustix::fs::open(session, flags, Mode::empty())?;
    UnixStream::connect(format!("/proc/self/fd/{}/{ASIDE}", directory.as_raw_fd()))
}

/// Passes messages on until one of the two hangs up.
fn join(client: UnixStream, keeper: UnixStream) -> io::Result<()> {
    let (from_client, from_keeper) = (client.try_clone()?, keeper.try_clone()?);
    // Both threads answer the client.
    let client = Arc::new(Mutex::new(client));
    let answers = Arc::clone(&client);
    std::thread::spawn(move || {
        let mut to_keeper = &keeper;
        each_body(&from_client, |body| match decode_as::<Call>(body) {
            Ok(call) => to_keeper.write_all(&encode(&Call { v: PROTOCOL, ..call })),
            Err(why) => send(&client, &unintelligible(body, &why)),
        });
        let _ = keeper.shutdown(std::net::Shutdown::Both);
    });
    std::thread::spawn(move || {
        each_body(&from_keeper, |body| {
            let reply: Reply = decode_as(body).map_err(io::Error::other)?;
            send(&answers, &Reply { v: PROTOCOL, ..reply })
        });
        let client = answers.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = client.shutdown(std::net::Shutdown::Both);
    });
    Ok(())
}

fn each_body(mut from: &UnixStream, mut work: impl FnMut(&[u8]) -> io::Result<()>) {
    let mut splitter = Splitter::default();
    let mut buffer = vec![0; 64 << 10];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        splitter.push(&buffer[..n]);
        loop {
            match splitter.next_body() {
                Ok(Some(body)) => {
                    if work(body).is_err() {
                        return;
                    }
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

fn decode_as<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    decode(body).map_err(|error| error.to_string())
}

fn send<T: Serialize>(to: &Mutex<UnixStream>, message: &T) -> io::Result<()> {
    to.lock().unwrap_or_else(PoisonError::into_inner).write_all(&encode(message))
}

/// What a keeper of that version said to what it did not understand.
fn unintelligible(body: &[u8], why: &str) -> Reply {
    #[derive(serde::Deserialize)]
    struct Envelope {
        #[serde(default)]
        id: u64,
    }
    let id = decode::<Envelope>(body).map_or(0, |envelope| envelope.id);
    let message =
        format!("this keeper does not know that request ({why}); it may be older than its client");
    let outcome: Result<Answer, Failure> = Err(Failure { code: Code::BadRequest, message });
    Reply { v: PROTOCOL, id, outcome }
}
