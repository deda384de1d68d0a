//! Access to a port of a session: only one that a process of the session listens on, in the
//! network namespace of that process.

use crate::network;
use sessile_protocol::{OwnNetwork, PortsView, Transport};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

#[derive(Debug, thiserror::Error)]
pub enum PortError {
    #[error("nothing in the session listens on port {port}{}", other_ports(.others))]
    NotOpen { port: u16, others: Vec<u16> },
    #[error("cannot connect to port {port} of the session: {source}")]
    Connect { port: u16, source: io::Error },
    #[error("cannot enter the session's network: {0}")]
    Network(io::Error),
}

fn other_ports(others: &[u16]) -> String {
    let others: Vec<String> = others.iter().map(ToString::to_string).collect();
    match others.len() {
        0 => ", nor on any other".to_owned(),
        _ => format!("; it listens on {}", others.join(", ")),
    }
}

/// An open port, with the addresses that lead to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPort {
    port: u16,
    /// Never empty; the best first.
    addresses: Vec<SocketAddr>,
    network: Option<OwnNetwork>,
}

impl OpenPort {
    /// # Errors
    /// When no process of the session listens on the port.
    pub fn find(view: &PortsView, port: u16) -> Result<Self, PortError> {
        let tcp = || view.ports.iter().filter(|open| open.transport == Transport::Tcp);
        let of_port = tcp().filter(|open| open.port == port);
        let mut addresses: Vec<SocketAddr> =
            of_port.flat_map(|open| reached_at(open.address)).map(|ip| (ip, port).into()).collect();
        addresses.dedup();
        if addresses.is_empty() {
            let mut others: Vec<u16> = tcp().map(|open| open.port).collect();
            others.sort_unstable();
            others.dedup();
            return Err(PortError::NotOpen { port, others });
        }
        Ok(Self { port, addresses, network: view.network })
    }

    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns a non-blocking socket in the session's network, not connected yet.
    ///
    /// # Errors
    /// When the network cannot be entered.
    pub fn socket(&self, to: SocketAddr) -> Result<OwnedFd, PortError> {
        network::socket(self.network, to).map_err(PortError::Network)
    }

    /// Connects to the first address that accepts a connection.
    ///
    /// # Errors
    /// When none does.
    pub fn connect(&self) -> Result<TcpStream, PortError> {
        let mut refused = io::ErrorKind::NotFound.into();
        for address in &self.addresses {
            let socket = self.socket(*address)?;
            match network::connect(&socket, *address) {
                Ok(()) => return Ok(TcpStream::from(socket)),
                Err(error) => refused = error,
            }
        }
        Err(PortError::Connect { port: self.port, source: refused })
    }
}

/// Returns the addresses that lead to a listener. One that accepts IPv6 from anywhere may
/// accept IPv4, too, where loopback has no IPv6.
fn reached_at(listens_on: IpAddr) -> Vec<IpAddr> {
    let (v4, v6) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
    match listens_on {
        IpAddr::V4(address) if address.is_unspecified() => vec![v4],
        IpAddr::V6(address) if address.is_unspecified() => vec![v6, v4],
        IpAddr::V4(_) | IpAddr::V6(_) => vec![listens_on],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessile_protocol::Port;

    fn view(ports: &[(u16, Transport, &str)]) -> PortsView {
        let port = |(port, transport, address): &(u16, Transport, &str)| Port {
            port: *port,
            transport: *transport,
            address: address.parse().unwrap(),
        };
        PortsView { ports: ports.iter().map(port).collect(), network: None }
    }

    #[test]
    fn a_listener_is_reached_where_it_listens() {
        let open = view(&[
            (8000, Transport::Tcp, "0.0.0.0"),
            (8000, Transport::Tcp, "127.0.0.1"),
            (8001, Transport::Tcp, "::"),
            (8002, Transport::Udp, "0.0.0.0"),
            (8003, Transport::Tcp, "10.1.2.3"),
        ]);
        let addresses = |port| {
            let place = OpenPort::find(&open, port).unwrap();
            place.addresses().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(addresses(8000), ["127.0.0.1:8000"]);
        assert_eq!(addresses(8001), ["[::1]:8001", "127.0.0.1:8001"]);
        assert_eq!(addresses(8003), ["10.1.2.3:8003"]);
        let refused = OpenPort::find(&open, 8002).unwrap_err().to_string();
        assert_eq!(
            refused,
            "nothing in the session listens on port 8002; it listens on 8000, 8001, 8003"
        );
    }
}
