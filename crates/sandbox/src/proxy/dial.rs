//! Connects to an admitted host. A name is resolved once, and only the checked addresses
//! are connected to: if the name gets another address a moment later, nothing changes.

use super::admission::{Admission, Refusal, Target};
use crate::policy::hosts::Host;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

/// Timeout for each address.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many addresses of one name are tried.
const TRIED: usize = 4;

#[derive(Debug)]
pub(super) enum NoConnection {
    Refused(Refusal),
    Failed(String),
}

pub(super) fn dial(admission: &Admission, target: &Target) -> Result<TcpStream, NoConnection> {
    admission.admit(target).map_err(NoConnection::Refused)?;
    let mut failed = None;
    for address in admitted(admission, target)?.into_iter().take(TRIED) {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => failed = Some(error),
        }
    }
    let why = failed.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    Err(NoConnection::Failed(format!("{target} cannot be connected to: {why}")))
}

/// Returns the addresses of a host, without those that must not be reached.
fn admitted(admission: &Admission, target: &Target) -> Result<Vec<SocketAddr>, NoConnection> {
    let found = resolve(target).map_err(|error| {
        NoConnection::Failed(format!("the name {} cannot be resolved: {error}", target.host))
    })?;
    let mut refused = None;
    let mut admitted = Vec::new();
    for address in found {
        match check(admission, target, address.ip()) {
            Ok(()) => admitted.push(address),
            Err(why) => refused = Some(why),
        }
    }
    match refused {
        Some(why) if admitted.is_empty() => Err(NoConnection::Refused(why)),
        Some(_) | None => Ok(admitted),
    }
}

fn resolve(target: &Target) -> io::Result<Vec<SocketAddr>> {
    match &target.host {
        Host::Address(address) => Ok(vec![(*address, target.port).into()]),
        Host::Name(name) => Ok((name.as_str(), target.port).to_socket_addrs()?.collect()),
    }
}

fn check(admission: &Admission, target: &Target, address: IpAddr) -> Result<(), Refusal> {
    match target.host {
        // The address itself is on the list.
        Host::Address(_) => return Ok(()),
        Host::Name(_) => admission.admit_address(target, address)?,
    }
    let may_be_here = target.is_localhost() || admission.has_address(address, target.port);
    if !may_be_here && is_of_this_machine(address) {
        let kind = "an address of the host itself";
        return Err(Refusal::Special { host: target.host.clone(), address, kind });
    }
    Ok(())
}

/// Whether packets to an address would come back to this machine: then the system would
/// choose the same address as their source. Nothing is sent to find out.
fn is_of_this_machine(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let sent_from = || {
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((address, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    sent_from() == Some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_to_this_machine_is_known() {
        assert!(is_of_this_machine("127.0.0.1".parse().unwrap()));
        assert!(!is_of_this_machine("192.0.2.1".parse().unwrap()));
    }
}
