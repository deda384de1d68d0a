//! SOCKS, version 5: connects to a name or an address, and nothing else.

use super::admission::{Refusal, Target};
use super::incoming::Incoming;
use crate::policy::hosts::{Host, clip};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const VERSION: u8 = 5;

/// Clients of this version resolve names themselves, and are refused.
pub(super) const OLD_VERSION: u8 = 4;
pub(super) const OLD_REFUSAL: [u8; 8] = [0, 91, 0, 0, 0, 0, 0, 0];
/// The longest text in a request of that version.
const OLD_TEXT: usize = 255;

/// The outcome of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    Connected = 0,
    NotAllowed = 2,
    Unreachable = 4,
    Unsupported = 7,
}

impl Reply {
    /// Returns the reply. Its address is left empty, since it is of no use inside.
    pub(super) fn bytes(self) -> [u8; 10] {
        [VERSION, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

/// Why there is no target.
#[derive(Debug)]
pub(super) enum NoTarget {
    /// The connection broke, or does not speak SOCKS.
    Gone,
    /// Something else than a connection was requested.
    Unsupported(Refusal),
    Refused(Refusal),
}

impl From<io::Error> for NoTarget {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// Handles the greeting, and reads the request.
pub(super) fn greet(incoming: &mut Incoming) -> Result<Target, NoTarget> {
    use std::io::Write;
    let greeting = incoming.take(2)?;
    let methods = incoming.take(usize::from(greeting[1]))?;
    if !methods.contains(&0) {
        incoming.stream.write_all(&[VERSION, 0xff])?;
        return Err(NoTarget::Gone);
    }
    incoming.stream.write_all(&[VERSION, 0])?;
    let request = incoming.take(4)?;
    if request[0] != VERSION {
        return Err(NoTarget::Gone);
    }
    let host = host(incoming, request[3])?;
    let port = incoming.take(2)?;
    let port = u16::from_be_bytes([port[0], port[1]]);
    let target = Target { host: host?, port };
    match request[1] {
        1 => Ok(target),
        _ => Err(unsupported(target.to_string(), "SOCKS is for connections only")),
    }
}

fn unsupported(asked: String, why: &str) -> NoTarget {
    NoTarget::Unsupported(Refusal::Malformed { asked, why: why.to_owned() })
}

/// Reads a request of version 4. Returns why it is refused.
pub(super) fn refuse_old(incoming: &mut Incoming) -> io::Result<Refusal> {
    let request = incoming.take(8)?;
    let port = u16::from_be_bytes([request[2], request[3]]);
    let address = Ipv4Addr::new(request[4], request[5], request[6], request[7]);
    let _user = old_text(incoming)?;
    // By these addresses, a client says that a name follows.
    let has_name = matches!(address.octets(), [0, 0, 0, last] if last > 0);
    let host = if has_name { clip(&old_text(incoming)?) } else { address.to_string() };
    let why = "it asked with SOCKS 4; the proxy takes SOCKS 5 (socks5h://)".to_owned();
    Ok(Refusal::Malformed { asked: format!("{host}:{port}"), why })
}

/// Reads a text of version 4, which ends with a zero.
fn old_text(incoming: &mut Incoming) -> io::Result<String> {
    let mut text = Vec::new();
    loop {
        match incoming.take(1)?[..] {
            [0] => return Ok(String::from_utf8_lossy(&text).into_owned()),
            _ if text.len() == OLD_TEXT => return Err(io::ErrorKind::InvalidData.into()),
            ref byte => text.extend(byte),
        }
    }
}

/// Reads the rest of the request, whatever the host.
fn host(incoming: &mut Incoming, kind: u8) -> Result<Result<Host, NoTarget>, NoTarget> {
    let address = |address: IpAddr| Ok(Host::Address(address.to_canonical()));
    Ok(match kind {
        1 => {
            let bytes: [u8; 4] = incoming.take(4)?.try_into().map_err(|_| NoTarget::Gone)?;
            address(Ipv4Addr::from(bytes).into())
        }
        4 => {
            let bytes: [u8; 16] = incoming.take(16)?.try_into().map_err(|_| NoTarget::Gone)?;
            address(Ipv6Addr::from(bytes).into())
        }
        3 => {
            let length = incoming.take(1)?[0];
            let bytes = incoming.take(usize::from(length))?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Host::parse(&text).map_err(|error| {
                let (asked, why) = (clip(&text), error.to_string());
                NoTarget::Refused(Refusal::Malformed { asked, why })
            })
        }
        _ => return Err(unsupported(String::new(), "its address is of no known kind")),
    })
}
