//! Serves until told to stop: each connection is a separate task.
//!
//! A client that is silent, slow or hostile takes a place until its time is over, and
//! never delays another one. No error of the listener ends the server.

mod lifetime;
mod listener;
mod local;
mod refuse;
mod tls;
mod unauthenticated;

pub use lifetime::{Lifetime, Program};
pub use listener::Listener;
pub use local::{LocalError, LocalListener};
pub use tls::{Tls, TlsError};
pub(crate) use unauthenticated::Authentication;

use crate::http::{self, App};
use crate::service::Service;
use crate::socket::Socket;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use lifetime::IdleTimer;
use listener::Stream;
use refuse::Refusals;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tower::Layer;
use unauthenticated::Unauthenticated;

/// How long requests may take to finish after the stop. Cutting them off loses nothing:
/// runs go on in their keepers.
const GRACE: Duration = Duration::from_secs(2);

/// Pause when no file descriptor is left, until a connection ends. It is short enough for
/// waiting clients, and long enough to cost nothing.
const PAUSE: Duration = Duration::from_millis(100);

/// The process at the other end of a connection, if the system knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) Option<i32>);

/// How connections are accepted, and for how long.
#[derive(Debug)]
pub struct ServeOptions {
    pub listener: Listener,
    pub lifetime: Lifetime,
    pub tls: Option<Tls>,
    /// How many connections may be open.
    pub connections: usize,
    /// How long a client may be silent before or during a request.
    pub request_timeout: Duration,
}

/// Serves HTTP until `stop` completes or its lifetime ends, and for a moment after that.
pub async fn serve(app: App, options: ServeOptions, stop: impl Future<Output = ()> + Send) {
    let service = app.service.clone();
    let router = http::router(app, options.request_timeout);
    serve_router(service, router, options, stop).await;
}

pub(crate) async fn serve_router(
    service: Arc<Service>,
    router: Router,
    options: ServeOptions,
    stop: impl Future<Output = ()> + Send,
) {
    let ServeOptions { listener, lifetime, tls, connections, request_timeout } = options;
    let places = Arc::new(Semaphore::new(connections));
    let refusals = Refusals::new(service.metrics.clone(), tls.is_some(), connections);
    let unauthenticated = Arc::new(Unauthenticated::new(connections / 2));
    let (stopping, stopped) = watch::channel(());
    let left = Arc::new(Notify::new());
    let mut idle_timer = IdleTimer::new(lifetime);
    let handler = ConnectionHandler { router, tls, request_timeout, stopped };
    let is_empty = || places.available_permits() == connections;
    let mut stop = pin!(stop);
    loop {
        let due = idle_timer.due();
        // A connection that is not accepted before the stop stays in the system's queue.
        let stream = tokio::select! {
            () = &mut stop => break,
            stream = accept(&listener, &unauthenticated) => stream,
            () = left.notified() => {
                if is_empty() {
                    idle_timer.became_idle();
                }
                continue;
            }
            () = idle_timer.asked() => {
                if is_empty() {
                    idle_timer.became_idle();
                }
                continue;
            }
            () = due => {
                if service.has_streams() || service.has_callers() || service.has_tasks() {
                    idle_timer.postpone();
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
        idle_timer.connected();
        match place(&places, &unauthenticated).await {
            Some(place) => {
                let (handler, authentication) = (handler.clone(), unauthenticated.add());
                let left = left.clone();
                tokio::spawn(async move {
                    handler.serve(stream, authentication).await;
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

/// Returns a place for a connection. If none is left, or the unauthenticated have used up
/// their part, closes one of those. `None`: callers with a token have all places.
async fn place(
    places: &Arc<Semaphore>,
    unauthenticated: &Unauthenticated,
) -> Option<OwnedSemaphorePermit> {
    while unauthenticated.is_full() {
        unauthenticated.make_room().await;
    }
    loop {
        if let Ok(place) = places.clone().try_acquire_owned() {
            return Some(place);
        }
        if !unauthenticated.make_room().await {
            return None;
        }
        // The place becomes free when the closed connection's task ends.
        if let Ok(Ok(place)) = timeout(PAUSE, places.clone().acquire_owned()).await {
            return Some(place);
        }
    }
}

/// Returns the next connection, however long the system refuses to give one.
async fn accept(listener: &Listener, unauthenticated: &Unauthenticated) -> Stream {
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
                unauthenticated.close_oldest();
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
struct ConnectionHandler {
    router: Router,
    tls: Option<Tls>,
    request_timeout: Duration,
    /// Closed when the server is to stop.
    stopped: watch::Receiver<()>,
}

impl ConnectionHandler {
    async fn serve(self, stream: Stream, authentication: Authentication) {
        let stream = match stream {
            Stream::Network(stream) => stream,
            // Its user is already checked. The user's own programs may be silent for as
            // long as they like: they disturb no other user.
            Stream::Local(stream) => {
                authentication.succeeded();
                let peer = Peer(stream.peer_cred().ok().and_then(|peer| peer.pid()));
                match stream.into_std().and_then(Socket::new) {
                    Ok(stream) => self.http(stream, authentication, peer, None).await,
                    Err(error) => tracing::warn!(%error, "a connection cannot be served"),
                }
                return;
            }
        };
        // An event must not wait for the acknowledgement of the one before it.
        let _ = stream.set_nodelay(true);
        tokio::select! {
            () = self.serve_connection(stream, authentication.clone()) => {}
            // Dropped with any pending answer: the client has not authenticated.
            () = authentication.must_close() => tracing::debug!("a connection made room for others"),
            () = authentication.overdue() => tracing::debug!("no token came on a connection"),
        }
    }

    async fn serve_connection(self, stream: TcpStream, authentication: Authentication) {
        let silence = Some(self.request_timeout);
        let Some(tls) = self.tls.clone() else {
            return self.http(stream, authentication, Peer(None), silence).await;
        };
        match timeout(self.request_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.http(stream, authentication, Peer(None), silence).await,
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    }

    async fn http(
        mut self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        authentication: Authentication,
        peer: Peer,
        silence: Option<Duration>,
    ) {
        let service = Extension(peer).layer(Extension(authentication).layer(self.router));
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
