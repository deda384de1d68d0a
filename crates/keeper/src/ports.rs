//! Where processes listen, as the system tells it: the sockets among their
//! descriptors, looked up in the tables of their network namespace.
//!
//! Each table is read once for all processes that share it. A process that is
//! gone, or that we may not look into, listens nowhere.

use rustix::process::Pid;
use sessile_protocol::{Port, Transport};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;

/// Descriptors of one process that are looked at. A server opens its port
/// before its connections, of which there may be a hundred thousand.
const MOST_DESCRIPTORS: usize = 1024;

/// Lines of a table that are looked at: a busy machine's must not keep the
/// keeper from its work.
const MOST_LINES: usize = 10_000;

/// The state of a socket in these tables: TCP that listens, and UDP that
/// takes packets from anybody.
const LISTENS: &str = "0A";
const UNCONNECTED: &str = "07";

/// Ports by socket, for each network namespace.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    namespaces: BTreeMap<u64, BTreeMap<u64, Port>>,
}

impl Tables {
    /// The ports that any of these processes has.
    pub(crate) fn ports(&mut self, processes: impl Iterator<Item = Pid>) -> Vec<Port> {
        let mut found = BTreeSet::new();
        for pid in processes {
            let sockets = sockets(pid);
            if sockets.is_empty() {
                continue;
            }
            let namespace = fs::metadata(format!("/proc/{}/ns/net", pid.as_raw_nonzero()));
            let Ok(namespace) = namespace.map(|namespace| namespace.ino()) else {
                continue;
            };
            let table = self.namespaces.entry(namespace).or_insert_with(|| read_tables(pid));
            found.extend(sockets.iter().filter_map(|socket| table.get(socket)));
        }
        found.into_iter().collect()
    }
}

/// The sockets that a process has open, by their inodes.
fn sockets(pid: Pid) -> Vec<u64> {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()));
    let descriptors = descriptors.into_iter().flatten().flatten().take(MOST_DESCRIPTORS);
    let socket = |target: std::path::PathBuf| {
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    descriptors.filter_map(|fd| socket(fs::read_link(fd.path()).ok()?)).collect()
}

/// The tables as a process of the namespace sees them.
fn read_tables(pid: Pid) -> BTreeMap<u64, Port> {
    let mut ports = BTreeMap::new();
    for (name, transport) in [
        ("tcp", Transport::Tcp),
        ("tcp6", Transport::Tcp),
        ("udp", Transport::Udp),
        ("udp6", Transport::Udp),
    ] {
        let Ok(table) = File::open(format!("/proc/{}/net/{name}", pid.as_raw_nonzero())) else {
            continue;
        };
        let lines = BufReader::new(table).lines().map_while(Result::ok).skip(1).take(MOST_LINES);
        for socket in lines.filter_map(|line| Socket::parse(&line)) {
            match (transport, socket.state.as_str()) {
                (Transport::Tcp, LISTENS) | (Transport::Udp, UNCONNECTED) => {
                    let Socket { address, port, inode, .. } = socket;
                    ports.insert(inode, Port { port, transport, address });
                }
                // Those that listen come before all connections.
                (Transport::Tcp, _) => break,
                (Transport::Udp, _) => {}
            }
        }
    }
    ports
}

/// A line of a table.
#[derive(Debug, PartialEq, Eq)]
struct Socket {
    address: IpAddr,
    port: u16,
    state: String,
    inode: u64,
}

impl Socket {
    /// `0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1234 …`
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
        let (address, port) = fields.get(1)?.split_once(':')?;
        Some(Self {
            address: parse_address(address)?,
            port: u16::from_str_radix(port, 16).ok()?,
            state: (*fields.get(3)?).to_owned(),
            inode: fields.get(9)?.parse().ok()?,
        })
    }
}

/// Words of 32 bits in the machine's own order, each as eight digits.
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
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn our_own_ports_are_found() {
        let listeners = ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"].map(TcpListener::bind);
        let packets = UdpSocket::bind("127.0.0.1:0").unwrap();
        let ports = Tables::default().ports([rustix::process::getpid()].into_iter());
        // A machine may do without IPv6.
        for listener in listeners.iter().flatten() {
            let address = listener.local_addr().unwrap();
            let (port, address) = (address.port(), address.ip());
            let expected = Port { port, transport: Transport::Tcp, address };
            assert!(ports.contains(&expected), "{expected:?} in {ports:?}");
        }
        let address = packets.local_addr().unwrap();
        let (port, address) = (address.port(), address.ip());
        assert!(ports.contains(&Port { port, transport: Transport::Udp, address }), "{ports:?}");
    }

    #[test]
    fn a_connection_is_no_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let port = client.local_addr().unwrap().port();
        let ports = Tables::default().ports([rustix::process::getpid()].into_iter());
        assert!(ports.iter().all(|found| found.port != port), "{ports:?}");
    }

    #[test]
    fn a_line_is_read_as_the_system_writes_it() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0000000000000000 100 0 0 10 0";
        if cfg!(target_endian = "little") {
            let address = Ipv4Addr::LOCALHOST.into();
            let expected = Socket { address, port: 8080, state: "0A".to_owned(), inode: 4242 };
            assert_eq!(Socket::parse(line), Some(expected));
            let loopback = parse_address("00000000000000000000000001000000");
            assert_eq!(loopback, Some(Ipv6Addr::LOCALHOST.into()));
        }
        assert_eq!(Socket::parse("  sl  local_address rem_address   st"), None);
    }
}
