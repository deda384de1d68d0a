//! Hosts by name and by address, in a list and in requests of programs.
//!
//! A host has one canonical form. Names are in lower case and without a dot at the end;
//! an IPv4 address within an IPv6 one is the IPv4 address. A name that systems would take
//! for a number (`2130706433`, `0x7f.1`) is not a name.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is not a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("the name of a host is missing")]
    Empty,
    #[error("{0:?} is more than a host; write the name alone, as in api.example.com:443")]
    Url(String),
    #[error("{0:?}: a `*` is a whole label at the beginning, as in *.example.org")]
    Wildcard(String),
    #[error("`*` would be every host; write full for that")]
    Everything,
    #[error("{0} is not a host, and is written alone")]
    Word(String),
    #[error("{0:?} has no port between 1 and 65535 behind the colon")]
    Port(String),
    #[error("{0:?} is an address in a form that is not taken; write it as in 192.0.2.1")]
    Number(String),
    #[error("{0:?} is not an IPv6 address; write it as in [2001:db8::1]")]
    Ipv6(String),
    #[error("{0:?} has letters that are not ASCII; write the name as it is resolved, xn--…")]
    Unicode(String),
    #[error("{0:?} is not a host name")]
    Name(String),
}

/// A host that a program asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// Parses a host as in a URL, without a port.
    ///
    /// # Errors
    /// When it is neither a name nor an address in its usual form.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or_else(|| HostError::Ipv6(clip(text)))?;
            let address: Ipv6Addr = inner.parse().map_err(|_| HostError::Ipv6(clip(text)))?;
            return Ok(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        if text.contains(':') {
            return Err(HostError::Ipv6(clip(text)));
        }
        name(text).map(Self::Name)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => to.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(to),
            Self::Address(IpAddr::V6(address)) => write!(to, "[{address}]"),
        }
    }
}

/// One line of a list: a host, every host below a name, or an address; optionally with a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRule {
    pub hosts: Hosts,
    pub port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    One(Host),
    /// All names that end with a dot and this one.
    Below(String),
}

impl HostRule {
    /// Whether it matches this host, whatever the port.
    #[must_use]
    pub fn is_about(&self, host: &Host) -> bool {
        match (&self.hosts, host) {
            (Hosts::One(one), _) => one == host,
            (Hosts::Below(above), Host::Name(name)) => is_below(name, above),
            (Hosts::Below(_), Host::Address(_)) => false,
        }
    }

    #[must_use]
    pub fn has_port(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }

    /// Returns the rule for what both match.
    #[must_use]
    pub fn and(&self, other: &Self) -> Option<Self> {
        let hosts = match (&self.hosts, &other.hosts) {
            (Hosts::One(one), _) if other.is_about(one) => self.hosts.clone(),
            (_, Hosts::One(one)) if self.is_about(one) => other.hosts.clone(),
            (Hosts::Below(own), Hosts::Below(others)) if own == others || is_below(own, others) => {
                self.hosts.clone()
            }
            (Hosts::Below(own), Hosts::Below(others)) if is_below(others, own) => {
                other.hosts.clone()
            }
            (Hosts::One(_) | Hosts::Below(_), Hosts::One(_) | Hosts::Below(_)) => return None,
        };
        let port = match (self.port, other.port) {
            (Some(own), Some(others)) if own != others => return None,
            (own, others) => own.or(others),
        };
        Some(Self { hosts, port })
    }
}

fn is_below(name: &str, above: &str) -> bool {
    name.strip_suffix(above).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

impl FromStr for HostRule {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let text = text.trim();
        if text.contains(['/', '@', '?', '#']) {
            return Err(HostError::Url(clip(text)));
        }
        let (host, port) = split_port(text)?;
        let hosts = match host.strip_prefix("*.") {
            Some(above) => match Host::parse(above) {
                Ok(Host::Name(above)) if !host[1..].contains('*') => Hosts::Below(above),
                Ok(_) | Err(_) => return Err(HostError::Wildcard(clip(text))),
            },
            None if host == "*" => return Err(HostError::Everything),
            // Meant as in `--network none`.
            None if port.is_none() && matches!(host, "none" | "full") => {
                return Err(HostError::Word(host.to_owned()));
            }
            None if host.contains('*') => return Err(HostError::Wildcard(clip(text))),
            None => Hosts::One(Host::parse(host)?),
        };
        Ok(Self { hosts, port })
    }
}

/// Splits off the port, if there is one. An IPv6 address without brackets has no port.
pub(crate) fn split_port(text: &str) -> Result<(&str, Option<u16>), HostError> {
    let split = match text.rsplit_once(':') {
        Some((host, _)) if host.contains(':') && !host.ends_with(']') => None,
        split => split,
    };
    let Some((host, port)) = split else { return Ok((text, None)) };
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse() {
        Ok(number @ 1..) if is_number => Ok((host, Some(number))),
        Ok(_) | Err(_) => Err(HostError::Port(clip(text))),
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::One(host) => host.fmt(to)?,
            Hosts::Below(above) => write!(to, "*.{above}")?,
        }
        match self.port {
            Some(port) => write!(to, ":{port}"),
            None => Ok(()),
        }
    }
}

impl Serialize for HostRule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostRule {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // Parsed by a visitor, so that an error has its position in a list.
        struct Written;
        impl Visitor<'_> for Written {
            type Value = HostRule;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a host, as in api.example.com:443")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<HostRule, E> {
                text.parse().map_err(E::custom)
            }
        }
        from.deserialize_str(Written)
    }
}

/// The longest name that can be resolved.
const LONGEST: usize = 253;

fn name(text: &str) -> Result<String, HostError> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    if name.is_empty() {
        return Err(HostError::Empty);
    }
    if !name.is_ascii() {
        return Err(HostError::Unicode(clip(text)));
    }
    let is_label = |label: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&label.len()) && label.bytes().all(is_letter)
    };
    if name.len() > LONGEST || !name.split('.').all(is_label) {
        return Err(HostError::Name(clip(text)));
    }
    if is_number(name.rsplit('.').next().unwrap_or_default()) {
        return Err(HostError::Number(clip(text)));
    }
    Ok(name)
}

/// Whether systems take a name with this last label for an address, in decimal, octal or
/// hexadecimal.
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// Shortens a text from outside for messages, without control characters, which would harm a
/// terminal or a log.
pub(crate) fn clip(text: &str) -> String {
    const SHOWN: usize = 100;
    let shown = text.chars().take(SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let shown: String = shown.collect();
    if text.chars().nth(SHOWN).is_some() { shown + "…" } else { shown }
}

/// Returns the kind of an address that is not a public host of the internet.
#[must_use]
pub fn special(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (0, ..) => Some("an address of the host itself"),
        (127, ..) => Some("the host's own loopback"),
        (169, 254, _) => Some("a link-local address"),
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => {
            Some("a private address")
        }
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => {
            Some("a reserved address")
        }
        (224..=255, ..) => Some("no address of a single host"),
        _ => None,
    }
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an address of the host itself"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("the host's own loopback"),
        // An IPv4 address in translated form (NAT64).
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            special_v4(Ipv4Addr::new(a, b, c, d))
        }
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xfc00..=0xfdff, ..] => Some("a private address"),
        [0xff00..=0xffff, ..] => Some("no address of a single host"),
        // Tunnels, with another address within, and documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] => Some("a reserved address"),
        [0x2000..=0x3fff, ..] => None,
        _ => Some("a reserved address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> HostRule {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_list_has_names_wildcards_addresses_and_ports() {
        for (text, shown) in [
            ("API.Example.com.", "api.example.com"),
            ("*.Example.org:443", "*.example.org:443"),
            (" localhost:8080 ", "localhost:8080"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("::1", "[::1]"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("_dmarc.example.com", "_dmarc.example.com"),
        ] {
            assert_eq!(rule(text).to_string(), shown);
            assert_eq!(rule(shown), rule(text));
        }
    }

    #[test]
    fn what_is_no_host_is_refused_with_what_to_write() {
        for (text, part) in [
            ("", "missing"),
            ("https://a.com", "write the name alone"),
            ("a.com/x", "write the name alone"),
            ("*", "write full"),
            ("a.*.com", "at the beginning"),
            ("*.*.com", "at the beginning"),
            ("*com", "at the beginning"),
            ("*.10.0.0.1", "at the beginning"),
            ("a.com:", "no port"),
            ("a.com:0", "no port"),
            ("a.com:+80", "no port"),
            ("a.com:70000", "no port"),
            ("2130706433", "form that is not taken"),
            ("0x7f000001", "form that is not taken"),
            ("127.1", "form that is not taken"),
            ("0177.0.0.1", "form that is not taken"),
            ("fe80::1%eth0", "not an IPv6 address"),
            ("[::1", "not an IPv6 address"),
            ("bücher.example", "xn--"),
            ("a b.com", "not a host name"),
            ("a..com", "not a host name"),
        ] {
            let error = text.parse::<HostRule>().expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn two_rules_have_in_common_what_both_mean() {
        let and = |a: &str, b: &str| {
            let (there, back) = (rule(a).and(&rule(b)), rule(b).and(&rule(a)));
            assert_eq!(there, back, "{a} and {b}");
            there.map(|rule| rule.to_string())
        };
        assert_eq!(and("a.com", "a.com:443").as_deref(), Some("a.com:443"));
        assert_eq!(and("*.a.com:443", "x.a.com").as_deref(), Some("x.a.com:443"));
        assert_eq!(and("*.a.com", "*.b.a.com:1").as_deref(), Some("*.b.a.com:1"));
        assert_eq!(and("*.a.com", "a.com"), None);
        assert_eq!(and("*.a.com", "xa.com"), None);
        assert_eq!(and("a.com:80", "a.com:443"), None);
        assert_eq!(and("10.0.0.1", "*.a.com"), None);
    }

    #[test]
    fn only_hosts_of_the_internet_are_nothing_special() {
        for ordinary in ["1.1.1.1", "172.32.0.1", "2606:4700::1", "64:ff9b::101:101"] {
            assert_eq!(special(ordinary.parse().unwrap()), None, "{ordinary}");
        }
        for other in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "192.168.1.1",
            "192.0.2.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::7f00:1",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "64:ff9b::7f00:1",
            "100::1",
        ] {
            assert!(special(other.parse().unwrap()).is_some(), "{other}");
        }
    }
}
