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
    Unsupported,
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
    if request[1] != 1 {
        return Err(NoTarget::Unsupported);
    }
    Ok(Target { host: host?, port })
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
        _ => return Err(NoTarget::Unsupported),
    })
}
