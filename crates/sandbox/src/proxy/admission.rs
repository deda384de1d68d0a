//! Which hosts may be reached: a list, checked for a host before its name is resolved,
//! and for its addresses after that. Pure.

use crate::policy::hosts::{Host, HostRule, clip, special, split_port};
use std::fmt;
use std::net::IpAddr;

/// Where a program wants to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Target {
    /// Parses `host:port`; without a port, `usual_port` is used, if any.
    pub(crate) fn parse(text: &str, usual_port: Option<u16>) -> Result<Self, Refusal> {
        let wrong = |why: String| Refusal::Malformed { asked: clip(text), why };
        let (host, port) = split_port(text).map_err(|error| wrong(error.to_string()))?;
        let host = Host::parse(host).map_err(|error| wrong(error.to_string()))?;
        let port = port.or(usual_port).ok_or_else(|| wrong("it has no port".to_owned()))?;
        Ok(Self { host, port })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}:{}", self.host, self.port)
    }
}

/// Why a connection is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("it is not on the list of hosts")]
    NotListed,
    #[error("the list of hosts has it with another port ({0})")]
    OtherPort(u16),
    #[error("an address is reached only if the list of hosts has it")]
    Literal,
    #[error(
        "it is {address}, {kind}; to allow that, add the address to the list of hosts: \
         --network {host},{}",
        written(*address)
    )]
    Special { host: Host, address: IpAddr, kind: &'static str },
    #[error("the request's Host header says {header}")]
    OtherHost { asked: String, header: String },
    #[error("{why}")]
    Malformed { asked: String, why: String },
}

/// Returns an address in the notation of the list.
fn written(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// The list.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    rules: Vec<HostRule>,
}

impl Admission {
    pub(crate) fn new(rules: Vec<HostRule>) -> Self {
        Self { rules }
    }

    /// Checks whether the host may be resolved and connected to at all.
    pub(crate) fn admit(&self, target: &Target) -> Result<(), Refusal> {
        let mut of_host = self.rules.iter().filter(|rule| rule.is_about(&target.host)).peekable();
        let Some(first) = of_host.peek().copied() else {
            return Err(match target.host {
                Host::Name(_) => Refusal::NotListed,
                Host::Address(_) => Refusal::Literal,
            });
        };
        if of_host.any(|rule| rule.has_port(target.port)) {
            return Ok(());
        }
        Err(first.port.map_or(Refusal::NotListed, Refusal::OtherPort))
    }

    /// Checks whether an address of a name may be connected to. A name on the list does
    /// not permit addresses outside of the public internet: the owner of the name could
    /// point it at the machine itself.
    pub(crate) fn admit_address(&self, target: &Target, address: IpAddr) -> Result<(), Refusal> {
        let address = address.to_canonical();
        let Some(kind) = special(address) else { return Ok(()) };
        if self.has_address(address, target.port)
            || (target.is_localhost() && address.is_loopback())
        {
            return Ok(());
        }
        Err(Refusal::Special { host: target.host.clone(), address, kind })
    }

    /// Whether the list has the address itself.
    pub(crate) fn has_address(&self, address: IpAddr, port: u16) -> bool {
        let host = Host::Address(address.to_canonical());
        self.rules.iter().any(|rule| rule.is_about(&host) && rule.has_port(port))
    }
}

impl Target {
    /// Whether the name always means the machine itself.
    pub(crate) fn is_localhost(&self) -> bool {
        match &self.host {
            Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Host::Address(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(rules: &[&str]) -> Admission {
        Admission::new(rules.iter().map(|rule| rule.parse().unwrap()).collect())
    }

    fn target(text: &str) -> Target {
        Target::parse(text, None).unwrap()
    }

    #[test]
    fn a_host_is_admitted_by_its_name_and_port() {
        let list = list(&["api.example.com", "*.example.org:443", "127.0.0.1:80", "localhost:1"]);
        for admitted in [
            "api.example.com:1",
            "API.example.com.:443",
            "a.b.example.org:443",
            "127.0.0.1:80",
            "[::ffff:127.0.0.1]:80",
            "localhost:1",
        ] {
            assert_eq!(list.admit(&target(admitted)), Ok(()), "{admitted}");
        }
        for (refused, why) in [
            ("example.org:443", Refusal::NotListed),
            ("evilexample.org:443", Refusal::NotListed),
            ("api.example.com.evil.net:443", Refusal::NotListed),
            ("a.example.org:80", Refusal::OtherPort(443)),
            ("127.0.0.1:81", Refusal::OtherPort(80)),
            ("127.0.0.2:80", Refusal::Literal),
            ("1.1.1.1:443", Refusal::Literal),
            ("[::1]:80", Refusal::Literal),
        ] {
            assert_eq!(list.admit(&target(refused)), Err(why), "{refused}");
        }
    }

    #[test]
    fn an_address_behind_a_name_is_the_internets_or_named() {
        let list = list(&["a.com", "10.0.0.1:80", "localhost"]);
        let admit = |name: &str, address: &str| {
            list.admit_address(&target(name), address.parse().unwrap()).is_ok()
        };
        assert!(admit("a.com:80", "1.1.1.1"));
        assert!(admit("a.com:80", "10.0.0.1"));
        assert!(admit("localhost:80", "127.0.0.1") && admit("localhost:80", "::1"));
        assert!(!admit("a.com:81", "10.0.0.1"));
        assert!(!admit("a.com:80", "127.0.0.1"));
        assert!(!admit("a.com:80", "::ffff:127.0.0.1"));
        assert!(!admit("a.com:80", "169.254.169.254"));
        assert!(!admit("a.com:80", "0.0.0.0"));
        assert!(!admit("localhost:80", "10.0.0.2"));
    }

    #[test]
    fn a_refusal_says_what_to_name_and_that_is_enough() {
        for (address, written) in [("10.0.0.5", "10.0.0.5"), ("fd00::5", "[fd00::5]")] {
            let address: IpAddr = address.parse().unwrap();
            let refusal = list(&["a.com"]).admit_address(&target("a.com:80"), address);
            let refusal = refusal.unwrap_err().to_string();
            let told = refusal.rsplit_once("--network ").unwrap().1;
            assert_eq!(told, format!("a.com,{written}"));
            let list = list(&told.split(',').collect::<Vec<_>>());
            assert_eq!(list.admit_address(&target("a.com:80"), address), Ok(()));
        }
    }

    #[test]
    fn a_target_in_a_strange_form_is_refused() {
        for text in ["2130706433:80", "0x7f.1:80", "127.1:80", "a.com", "a.com:0", ":80", "[::1"] {
            let refused = Target::parse(text, None);
            assert!(matches!(refused, Err(Refusal::Malformed { .. })), "{text}: {refused:?}");
        }
    }
}
