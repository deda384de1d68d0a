//! One connection from inside: the request, the check, and then bytes.

use super::admission::{Admission, Refusal, Target};
use super::body::Body;
use super::dial::{NoConnection, dial};
use super::http::{self, ParsedRequest};
use super::incoming::{Incoming, see_off};
use super::notice::{Notice, NoticeSender};
use super::relay::relay;
use super::socks::{self, NoTarget, Reply};
use super::who::Session;
use std::io::Write;
use std::net::TcpStream;

/// What all connections have in common.
#[derive(Debug)]
pub(super) struct ProxyContext {
    pub(super) admission: Admission,
    pub(super) notices: NoticeSender,
    pub(super) session: Session,
}

/// Programs show this to people.
const REFUSED: &str = "403 Refused by the sandbox";

impl ProxyContext {
    pub(super) fn serve(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut incoming = Incoming::new(stream);
        if incoming.fill().is_err() {
            return;
        }
        match incoming.held().first() {
            Some(&socks::VERSION) => self.serve_socks(incoming),
            Some(&socks::OLD_VERSION) => {
                if let Ok(why) = socks::refuse_old(&mut incoming) {
                    self.tell(&incoming, None, &why);
                    incoming.finish(&socks::OLD_REFUSAL);
                }
            }
            Some(_) => self.serve_http(incoming),
            None => {}
        }
    }

    fn serve_socks(&self, mut incoming: Incoming) {
        let target = match socks::greet(&mut incoming) {
            Ok(target) => target,
            Err(NoTarget::Gone) => return,
            Err(NoTarget::Unsupported(why)) => {
                self.tell(&incoming, None, &why);
                return incoming.finish(&Reply::Unsupported.bytes());
            }
            Err(NoTarget::Refused(why)) => {
                self.tell(&incoming, None, &why);
                return incoming.finish(&Reply::NotAllowed.bytes());
            }
        };
        match dial(&self.admission, &target) {
            Ok(server) => self.tunnel(incoming, &server, &Reply::Connected.bytes()),
            Err(NoConnection::Refused(why)) => {
                self.tell(&incoming, Some(&target), &why);
                incoming.finish(&Reply::NotAllowed.bytes());
            }
            Err(NoConnection::Failed(_)) => incoming.finish(&Reply::Unreachable.bytes()),
        }
    }

    fn serve_http(&self, mut incoming: Incoming) {
        let end = loop {
            if let Some(end) = http::end_of_head(incoming.held()) {
                break end;
            }
            if incoming.held().len() > http::LONGEST_HEAD {
                return incoming.finish(&answer("431 The request's head is too long", ""));
            }
            if incoming.fill().is_err() {
                return;
            }
        };
        let Ok(head) = incoming.take(end) else { return };
        match http::parse(&head) {
            Ok(ParsedRequest::Tunnel(target)) => {
                if let Some((incoming, server)) = self.dial_for(incoming, &target) {
                    self.tunnel(incoming, &server, b"HTTP/1.1 200 Connected\r\n\r\n");
                }
            }
            Ok(ParsedRequest::Request { target, head, body }) => {
                let Some((incoming, mut server)) = self.dial_for(incoming, &target) else { return };
                let (client, held) = incoming.into_parts();
                if server.write_all(&head).is_ok() {
                    let _ = relay(&client, &server, body, held);
                }
                see_off(&client);
            }
            Err(why) => {
                self.tell(&incoming, None, &why);
                let status = match why {
                    Refusal::Malformed { .. } => "400 Not understood",
                    Refusal::NotListed
                    | Refusal::OtherPort(_)
                    | Refusal::Literal
                    | Refusal::Special { .. }
                    | Refusal::OtherHost { .. } => REFUSED,
                };
                incoming.finish(&answer(status, &why.to_string()));
            }
        }
    }

    /// Returns the server, or tells the client why there is none.
    fn dial_for(&self, incoming: Incoming, target: &Target) -> Option<(Incoming, TcpStream)> {
        match dial(&self.admission, target) {
            Ok(server) => return Some((incoming, server)),
            Err(NoConnection::Refused(why)) => {
                self.tell(&incoming, Some(target), &why);
                incoming.finish(&answer(REFUSED, &format!("{target} is not reached: {why}")));
            }
            Err(NoConnection::Failed(why)) => incoming.finish(&answer("502 No connection", &why)),
        }
        None
    }

    fn tunnel(&self, mut incoming: Incoming, server: &TcpStream, answer: &[u8]) {
        if incoming.stream.write_all(answer).is_ok() {
            let (client, held) = incoming.into_parts();
            let _ = relay(&client, server, Body::Endless, held);
        }
    }

    /// Notifies the keeper before the client is answered, so that the run is not over yet.
    fn tell(&self, incoming: &Incoming, target: Option<&Target>, why: &Refusal) {
        self.notices.send(|| {
            let peer = incoming.stream.peer_addr().ok();
            let found = peer.and_then(|peer| self.session.find(peer));
            let (pid, program) = found.unzip();
            let asked = match (target, why) {
                (Some(target), _) => target.to_string(),
                (None, Refusal::Malformed { asked, .. } | Refusal::OtherHost { asked, .. }) => {
                    asked.clone()
                }
                (None, _) => String::new(),
            };
            Notice {
                pid: pid.map(|pid| pid.as_raw_nonzero().get()),
                program,
                target: asked,
                why: why.to_string(),
                untold: 0,
            }
        });
    }
}

/// Returns an HTTP response.
pub(super) fn answer(status: &str, why: &str) -> Vec<u8> {
    let body = if why.is_empty() { String::new() } else { format!("sessile: {why}\n") };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}
