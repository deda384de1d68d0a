//! A host that sandboxed programs may or may not reach: a small web server on an address of
//! this machine, and a name server that can change its answer.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Answers every request with its own text; `/to?URL` redirects, and a request body is echoed.
#[derive(Debug)]
pub struct Site {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    is_closing: Arc<AtomicBool>,
}

impl Site {
    /// # Panics
    /// When the address cannot be used.
    #[must_use]
    pub fn at(ip: &str, port: u16, says: &'static str) -> Self {
        Self::try_at(ip, port, says).expect("an address of this machine")
    }

    /// Starts two servers at the same port, which was free for both.
    ///
    /// # Panics
    /// When the addresses cannot be used.
    #[must_use]
    pub fn pair(ips: [&str; 2], say: [&'static str; 2]) -> (Self, Self) {
        let free = || {
            let first = Self::at(ips[0], 0, say[0]);
            Some((Self::try_at(ips[1], first.port(), say[1]).ok()?, first))
        };
        let (second, first) = (0..100).find_map(|_| free()).expect("a port that is free twice");
        (first, second)
    }

    fn try_at(ip: &str, port: u16, says: &'static str) -> std::io::Result<Self> {
        let listener = TcpListener::bind((ip, port))?;
        let address = listener.local_addr().expect("its address");
        let (seen, is_closing) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let (to, closing) = (Arc::clone(&seen), Arc::clone(&is_closing));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if closing.load(Ordering::SeqCst) {
                    return;
                }
                let to: Arc<Mutex<Vec<String>>> = Arc::clone(&to);
                std::thread::spawn(move || answer(&stream, says, &to));
            }
        });
        Ok(Self { address, seen, is_closing })
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the heads of all requests.
    ///
    /// # Panics
    /// When a thread of it has panicked.
    #[must_use]
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("no panic").clone()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.is_closing.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn answer(mut stream: &TcpStream, says: &str, seen: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    seen.lock().ok()?.push(head.clone());
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let path = head.split(' ').nth(1)?;
    let (status, body) = match path.strip_prefix("/to?") {
        Some(url) => (format!("302 Found\r\nLocation: {url}"), Vec::new()),
        None if body.is_empty() => ("200 OK".to_owned(), says.as_bytes().to_vec()),
        None => ("200 OK".to_owned(), body),
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&body).ok()
}

/// A name server for one name. It answers with one address after the other, and then always
/// with the last one.
#[derive(Debug)]
pub struct NameServer {
    address: Ipv4Addr,
    asked: Arc<Mutex<usize>>,
}

impl NameServer {
    /// Returns none if this user may not listen on port 53.
    #[must_use]
    pub fn of(addresses: &[Ipv4Addr]) -> Option<Self> {
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let address = Ipv4Addr::new(127, 53, high, low.max(1));
        let socket = UdpSocket::bind((address, 53)).ok()?;
        let asked = Arc::default();
        let count: Arc<Mutex<usize>> = Arc::clone(&asked);
        let mut addresses: VecDeque<Ipv4Addr> = addresses.iter().copied().collect();
        std::thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut query) {
                let Some((reply, is_address)) = reply(&query[..length], *addresses.front()?) else {
                    continue;
                };
                if is_address {
                    *count.lock().ok()? += 1;
                    if addresses.len() > 1 {
                        addresses.pop_front();
                    }
                }
                let _ = socket.send_to(&reply, from);
            }
            Some(())
        });
        Some(Self { address, asked })
    }

    /// Returns the contents for /etc/resolv.conf.
    #[must_use]
    pub fn configuration(&self) -> String {
        format!("nameserver {}\noptions timeout:5 attempts:1\n", self.address)
    }

    /// Returns how often it was asked for an address.
    ///
    /// # Panics
    /// When its thread has panicked.
    #[must_use]
    pub fn asked(&self) -> usize {
        *self.asked.lock().expect("no panic")
    }
}

/// Returns the answer to a query, and whether it was for an IPv4 address.
fn reply(query: &[u8], address: Ipv4Addr) -> Option<(Vec<u8>, bool)> {
    let mut at = 12;
    while *query.get(at)? != 0 {
        at += usize::from(query[at]) + 1;
    }
    let question = query.get(12..at + 5)?;
    let is_address = question[question.len() - 4..] == [0, 1, 0, 1];
    let mut reply = query[..2].to_vec();
    reply.extend([0x81, 0x80, 0, 1, 0, u8::from(is_address), 0, 0, 0, 0]);
    reply.extend(question);
    if is_address {
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        reply.extend(address.octets());
    }
    Some((reply, is_address))
}
