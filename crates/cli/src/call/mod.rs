//! Calls to the server of a sessions directory, on the same machine.

mod pinned;

use crate::config::{Config, Source};
use crate::presence::{Announcement, Presence};
use anyhow::{Context, bail};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, header};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A server, and how it is spoken to.
#[derive(Debug)]
pub(crate) struct Remote {
    address: SocketAddr,
    /// The certificate that it must show, if it speaks TLS.
    certificate: Option<PathBuf>,
    token: Option<String>,
}

impl Remote {
    /// The server that has this sessions directory. A token is not given to
    /// whoever may listen somewhere by now: the server must have said where it
    /// is, and still be there, or the configuration must say so.
    pub(crate) fn find(
        config: &Config,
        private: &Path,
        token: Option<String>,
    ) -> anyhow::Result<Self> {
        let (address, certificate) = match Presence::find(private) {
            Some(announcement) => (address(&announcement)?, announcement.tls_cert),
            None if config.listen_from != Source::Default && config.listen.port() != 0 => {
                (config.listen, config.tls.as_ref().map(|files| files.cert.clone()))
            }
            None => bail!(no_server(config)()),
        };
        Ok(Self { address, certificate, token })
    }

    /// Sends a request; the answer's body is still to come.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        body: Vec<u8>,
    ) -> anyhow::Result<Response<Incoming>> {
        let stream = TcpStream::connect(self.address).await.with_context(|| {
            format!("no server is at {}; start one with: sessile serve", self.address)
        })?;
        let request = self.request(method, path, body)?;
        match &self.certificate {
            Some(file) => send(pinned::connect(stream, file).await?, request).await,
            None => send(stream, request).await,
        }
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        body: Vec<u8>,
    ) -> anyhow::Result<Request<Full<Bytes>>> {
        let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes())?;
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, self.address.to_string());
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        request.body(Full::new(body.into())).context("that is not a request")
    }
}

/// Why there is nobody to call.
pub(crate) fn no_server(config: &Config) -> impl Fn() -> String {
    let place = config.sessions_dir.display().to_string();
    move || format!("no server is running for {place}; start one with: sessile serve")
}

fn address(announcement: &Announcement) -> anyhow::Result<SocketAddr> {
    let (_, address) = announcement.url.split_once("://").unwrap_or_default();
    address.parse().context("the server's file does not say where it is")
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<Response<Incoming>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Carries the bytes; what goes wrong with them is told to the request.
    tokio::spawn(connection);
    sender.send_request(request).await.context("the server did not answer")
}

/// The next part of an answer.
pub(crate) async fn next_part(body: &mut Incoming) -> anyhow::Result<Option<Bytes>> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}
