//! Refusals for connections beyond the limit.

use super::listener::Stream;
use crate::http::ErrorBody;
use crate::metrics::{CodeLabels, Metrics};
use crate::service::{ErrorCode, ServiceError};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How many connections are refused at once. Others wait in the system's queue meanwhile:
/// a connection that is closed unread is reset, which tells the client nothing.
const AT_ONCE: usize = 64;

/// The same limit as a fraction of the connections: each refusal takes a descriptor, too.
const SHARE: usize = 4;

/// How long a client has to read the refusal.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Refusals {
    metrics: Arc<Metrics>,
    /// With TLS, a plain-text refusal would mean nothing.
    is_tls: bool,
    places: Arc<Semaphore>,
}

impl Refusals {
    pub(super) fn new(metrics: Arc<Metrics>, is_tls: bool, connections: usize) -> Self {
        let places = Arc::new(Semaphore::new((connections / SHARE).clamp(1, AT_ONCE)));
        Self { metrics, is_tls, places }
    }

    pub(super) async fn refuse(&self, stream: Stream) {
        let labels = CodeLabels { code: ErrorCode::TooManyConnections.as_str() };
        self.metrics.refusals.get_or_create(&labels).inc();
        tracing::debug!("a connection was refused: there are too many");
        if self.is_tls {
            return;
        }
        let Ok(place) = self.places.clone().acquire_owned().await else { return };
        tokio::spawn(async move {
            let answer = too_many();
            let _ = match stream {
                Stream::Network(stream) => timeout(PATIENCE, send_refusal(stream, &answer)).await,
                Stream::Local(stream) => timeout(PATIENCE, send_refusal(stream, &answer)).await,
            };
            drop(place);
        });
    }
}

/// Refuses a client that may not use this server.
pub(super) fn refuse_client(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    refusal: &ServiceError,
) {
    let answer = answer("403 Forbidden", refusal);
    tokio::spawn(async move {
        let _ = timeout(PATIENCE, send_refusal(stream, &answer)).await;
    });
}

/// Answers once the request has come, as clients expect, and reads on until the client
/// has closed: a connection that is closed with unread data is reset, and the client
/// would not see the answer.
async fn send_refusal(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: &str,
) -> std::io::Result<()> {
    let mut first = [0; 1024];
    let _ = timeout(PATIENCE / 2, stream.read(&mut first)).await;
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

fn too_many() -> String {
    let error = ServiceError::new(
        ErrorCode::TooManyConnections,
        "there are as many connections as this server allows",
    );
    answer("503 Service Unavailable\r\nretry-after: 1", &error)
}

fn answer(status: &str, error: &ServiceError) -> String {
    let body = ErrorBody::from(error).text();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}
