//! The way out of a sandbox whose network is a list of hosts.
//!
//! ```text
//!  inside: a program ──► 127.0.0.1:3128 (loopback of the sandbox's own network)
//!                              │ the listener is made inside and sent out
//!  outside:              proxy process ──► a host of the list
//!                              └─ refusals ─► keeper: the run's notes, the log
//! ```
//!
//! There is no other way: the sandbox's network has a loopback and nothing else.
//! The proxy speaks HTTP (CONNECT, and requests for http:// URLs) and SOCKS 5 on
//! one port, distinguished by the first byte. It resolves names itself.
//!
//! It is a fork of the keeper with a thread per connection, and dies with the
//! keeper. Invariants: it connects only to checked addresses; nothing that comes from
//! inside is trusted; the keeper is notified of a refusal before the client is answered.

mod admission;
mod body;
mod connection;
mod dial;
mod http;
mod incoming;
mod notice;
mod process;
mod relay;
mod socks;
mod who;

use crate::policy::hosts::{Host, HostRule};
pub use notice::Notice;
pub use process::Proxy;

/// The port that it listens on inside, a usual one for proxies.
pub const PORT: u16 = 3128;

/// Returns the environment variables by which programs find it. If the list has loopback
/// names, these mean the host's loopback, not the sandbox's.
#[must_use]
pub fn variables(hosts: &[HostRule]) -> Vec<(&'static str, String)> {
    // HTTP for all of them: it takes any port by CONNECT, and some libraries fail on a
    // SOCKS address, even if they would not use it.
    let proxy = format!("http://127.0.0.1:{PORT}");
    let is_inside = |name: &&str| {
        Host::parse(name).is_ok_and(|host| !hosts.iter().any(|rule| rule.is_about(&host)))
    };
    let inside: Vec<&str> =
        ["localhost", "127.0.0.1", "::1"].into_iter().filter(is_inside).collect();
    let inside = inside.join(",");
    let names =
        ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    let mut all = Vec::from(names.map(|name| (name, proxy.clone())));
    all.extend(["no_proxy", "NO_PROXY"].map(|name| (name, inside.clone())));
    // Node uses the variables only with this one set.
    all.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
    all
}
