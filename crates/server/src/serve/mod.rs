//! Serving until told to stop: connections come in, each a task of its own.
//!
//! What a client does with its connection is its own affair: one that is silent,
//! slow or hostile costs a place until its time is over, and never delays
//! another. No error of the listener ends the server.

mod listener;
mod local;
mod refuse;
mod stay;
mod strangers;
mod tls;

pub use listener::Listener;
pub use local::{LocalError, LocalListener};
pub use stay::{Program, Stay};
pub(crate) use strangers::Standing;
pub use tls::{Tls, TlsError};

use crate::http::{self, App};
use crate::service::Service;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use listener::Stream;
use refuse::Refusals;
use stay::Departure;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use strangers::Strangers;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tower::Layer;

/// How long requests may take to finish after the stop. Nothing is lost by
/// cutting them off: runs go on in their keepers.
const GRACE: Duration = Duration::from_secs(2);

/// When no descriptor is left, one is free again when a connection ends: often
/// enough for whoever waits, and too seldom to cost anything.
const PAUSE: Duration = Duration::from_millis(100);

/// The process at the other end of a connection, where the system tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) Option<i32>);

/// How connections come in.
#[derive(Debug)]
pub struct Door {
    pub listener: Listener,
    pub stay: Stay,
    pub tls: Option<Tls>,
    /// Connections at once.
    pub connections: usize,
    /// How long a client may be silent before or in a request.
    pub request_timeout: Duration,
}

/// Serves HTTP until `stop` is there or it goes by itself, and for a moment after
/// that.
pub async fn serve(app: App, door: Door, stop: impl Future<Output = ()> + Send) {
    let service = app.service.clone();
    let router = http::router(app, door.request_timeout);
    serve_router(service, router, door, stop).await;
}

pub(crate) async fn serve_router(
    service: Arc<Service>,
    router: Router,
    door: Door,
    stop: impl Future<Output = ()> + Send,
) {
    let Door { listener, stay, tls, connections, request_timeout } = door;
    let places = Arc::new(Semaphore::new(connections));
    let refusals = Refusals::new(service.metrics.clone(), tls.is_some(), connections);
    let strangers = Arc::new(Strangers::new(connections / 2));
    let (stopping, stopped) = watch::channel(());
    let left = Arc::new(Notify::new());
    let mut departure = Departure::new(stay);
    let guest = Guest { router, tls, request_timeout, stopped };
    let is_empty = || places.available_permits() == connections;
    let mut stop = pin!(stop);
    loop {
        let due = departure.is_due();
        // Whoever is not accepted when the stop comes stays with the system.
        let stream = tokio::select! {
            () = &mut stop => break,
            stream = accept(&listener, &strangers) => stream,
            () = left.notified() => {
                if is_empty() {
                    departure.nobody_is_here();
                }
                continue;
            }
            () = departure.is_asked() => {
                if is_empty() {
                    departure.nobody_is_here();
                }
                continue;
            }
            () = due => {
                if service.has_streams() || service.has_callers() || service.has_tasks() {
                    departure.is_put_off();
                    continue;
                }
                match listener.withdraw() {
                    Some(stream) => stream,
                    None => {
                        tracing::info!("nobody needs the server; it goes");
                        break;
                    }
                }
            }
        };
        departure.somebody_is_here();
        match place(&places, &strangers).await {
            Some(place) => {
                let (guest, standing) = (guest.clone(), strangers.welcome());
                let left = left.clone();
                tokio::spawn(async move {
                    guest.serve(stream, standing).await;
                    drop(place);
                    left.notify_one();
                });
            }
            None => refusals.refuse(stream).await,
        }
    }
    drop((listener, stopping));
    let all = u32::try_from(connections).unwrap_or(u32::MAX);
    let _ = timeout(GRACE, places.acquire_many(all)).await;
}

/// A place for a connection, that of a stranger if there is none left, or if the
/// strangers have their share. `None`: all are taken by those whom we know.
async fn place(places: &Arc<Semaphore>, strangers: &Strangers) -> Option<OwnedSemaphorePermit> {
    while strangers.are_enough() {
        strangers.become_fewer().await;
    }
    loop {
        if let Ok(place) = places.clone().try_acquire_owned() {
            return Some(place);
        }
        if !strangers.become_fewer().await {
            return None;
        }
        // It is free when its task has been told.
        if let Ok(Ok(place)) = timeout(PAUSE, places.clone().acquire_owned()).await {
            return Some(place);
        }
    }
}

/// The next connection, however long the system refuses to give one.
async fn accept(listener: &Listener, strangers: &Strangers) -> Stream {
    let mut is_told = false;
    loop {
        match listener.accept().await {
            Ok(stream) => return stream,
            Err(error) if is_of_the_client(&error) => {}
            Err(error) => {
                if !is_told {
                    tracing::warn!(%error, "cannot accept connections; trying again");
                    is_told = true;
                }
                strangers.send_oldest_away();
                sleep(PAUSE).await;
            }
        }
    }
}

/// Whether a client went away before it was accepted.
fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}

/// What a connection's task needs.
#[derive(Clone)]
struct Guest {
    router: Router,
    tls: Option<Tls>,
    request_timeout: Duration,
    /// Closed when the server is to stop.
    stopped: watch::Receiver<()>,
}

impl Guest {
    async fn serve(self, stream: Stream, standing: Standing) {
        let stream = match stream {
            Stream::Network(stream) => stream,
            // Whose it is has been asked for already. Its programs may be silent
            // for as long as they like: they have no other user to disturb.
            Stream::Local(stream) => {
                standing.is_known_now();
                let peer = Peer(stream.peer_cred().ok().and_then(|peer| peer.pid()));
                return self.http(stream, standing, peer, None).await;
            }
        };
        // An event must not wait for the one before it to be acknowledged.
        let _ = stream.set_nodelay(true);
        tokio::select! {
            () = self.converse(stream, standing.clone()) => {}
            // Dropped with whatever it was about to send: it was not asked by
            // anybody whom we know.
            () = standing.sent_away() => tracing::debug!("a connection made room for others"),
            () = standing.overdue() => tracing::debug!("no token came on a connection"),
        }
    }

    async fn converse(self, stream: TcpStream, standing: Standing) {
        let silence = Some(self.request_timeout);
        let Some(tls) = self.tls.clone() else {
            return self.http(stream, standing, Peer(None), silence).await;
        };
        match timeout(self.request_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.http(stream, standing, Peer(None), silence).await,
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    }

    async fn http(
        mut self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        standing: Standing,
        peer: Peer,
        silence: Option<Duration>,
    ) {
        let service = Extension(peer).layer(Extension(standing).layer(self.router));
        let mut connection = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(silence)
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
                .with_upgrades()
        );
        let outcome = tokio::select! {
            outcome = connection.as_mut() => outcome,
            // Polled again right below: nothing of it is lost.
            _ = self.stopped.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = outcome {
            tracing::debug!(%error, "a connection broke off");
        }
    }
}
