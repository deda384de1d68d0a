//! Finds the ports on which processes listen: the sockets among their descriptors, looked
//! up in the tables of their network namespace.
//!
//! Each table is read once for all processes that share it. A process that is gone, or
//! that may not be inspected, counts as listening nowhere.

use rustix::process::Pid;
use sessile_proc::{self as proc, Process, SocketState};
use sessile_protocol::{Port, Transport};
use std::collections::{BTreeMap, BTreeSet};

/// Number of descriptors of one process that are checked. A server opens its port before
/// its connections, of which there may be a hundred thousand.
const MOST_DESCRIPTORS: usize = 1024;

/// Number of lines of a table that are read: the tables of a busy machine must not block
/// the keeper.
const MOST_LINES: usize = 10_000;

/// Ports by socket, for each network namespace.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    namespaces: BTreeMap<u64, BTreeMap<u64, Port>>,
}

impl Tables {
    /// Returns the ports that any of these processes has.
    pub(crate) fn ports(&mut self, processes: impl Iterator<Item = Pid>) -> Vec<Port> {
        let mut found = BTreeSet::new();
        for pid in processes {
            let process = Process::new(pid);
            let descriptors = process.descriptors().take(MOST_DESCRIPTORS);
            let sockets: Vec<u64> = descriptors.filter_map(|fd| fd.socket()).collect();
            if sockets.is_empty() {
                continue;
            }
            let Some(namespace) = process.network_namespace() else {
                continue;
            };
            let table = self.namespaces.entry(namespace).or_insert_with(|| read_tables(process));
            found.extend(sockets.iter().filter_map(|socket| table.get(socket)));
        }
        found.into_iter().collect()
    }
}

/// Reads the tables as a process of the namespace sees them.
fn read_tables(process: Process) -> BTreeMap<u64, Port> {
    let mut ports = BTreeMap::new();
    for (transport, told) in
        [(proc::Transport::Tcp, Transport::Tcp), (proc::Transport::Udp, Transport::Udp)]
    {
        for socket in process.sockets(transport).flat_map(|table| open_ports(table, transport)) {
            let (port, address) = (socket.port, socket.address);
            ports.insert(socket.inode, Port { port, transport: told, address });
        }
    }
    ports
}

/// Returns the sockets of a table that can be reached.
fn open_ports(
    table: impl Iterator<Item = proc::Socket>,
    transport: proc::Transport,
) -> impl Iterator<Item = proc::Socket> {
    let is_open = |socket: &proc::Socket| match socket.state {
        SocketState::Listening | SocketState::Unconnected => true,
        SocketState::Other => false,
    };
    // Listening TCP sockets come before all connections.
    let is_worth_a_look =
        move |socket: &proc::Socket| transport == proc::Transport::Udp || is_open(socket);
    table.take(MOST_LINES).take_while(is_worth_a_look).filter(is_open)
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
}
