//! /proc/PID/net/tcp, udp and the like: the sockets of a network namespace.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Tcp,
    Udp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketState {
    /// A listening TCP socket.
    Listening,
    /// A UDP socket that receives packets from any sender.
    Unconnected,
    Other,
}

/// A line of such a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    pub address: IpAddr,
    pub port: u16,
    pub state: SocketState,
    pub inode: u64,
}

impl Transport {
    /// Returns the tables with its sockets.
    #[must_use]
    pub fn tables(self) -> [&'static str; 2] {
        match self {
            Self::Tcp => ["tcp", "tcp6"],
            Self::Udp => ["udp", "udp6"],
        }
    }
}

impl Socket {
    /// `0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1234 …`
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
        let (address, port) = fields.get(1)?.split_once(':')?;
        let state = match *fields.get(3)? {
            "0A" => SocketState::Listening,
            "07" => SocketState::Unconnected,
            _ => SocketState::Other,
        };
        Some(Self {
            address: parse_address(address)?,
            port: u16::from_str_radix(port, 16).ok()?,
            state,
            inode: fields.get(9)?.parse().ok()?,
        })
    }
}

/// Parses an address: words of 32 bits in the machine's byte order, each as eight digits.
fn parse_address(digits: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let word = u32::from_str_radix(digits.get(8 * at..8 * at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    match digits.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_the_system_writes_it() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0000000000000000 100 0 0 10 0";
        if cfg!(target_endian = "little") {
            let address = Ipv4Addr::LOCALHOST.into();
            let (port, state, inode) = (8080, SocketState::Listening, 4242);
            assert_eq!(Socket::parse(line), Some(Socket { address, port, state, inode }));
            let loopback = parse_address("00000000000000000000000001000000");
            assert_eq!(loopback, Some(Ipv6Addr::LOCALHOST.into()));
        }
        assert_eq!(Socket::parse("  sl  local_address rem_address   st"), None);
    }
}
