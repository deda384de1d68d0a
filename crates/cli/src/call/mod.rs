//! Calls to the server of a sessions directory, on the same machine.

mod pinned;

use crate::config::{Config, Source};
use crate::local;
use crate::server_file::{ServerFile, ServerInfo};
use crate::settings::Settings;
use anyhow::{Context, bail};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, header};
use hyper_util::rt::TokioIo;
use sessile_store::LocalPlace;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A server, and how to reach it.
#[derive(Debug)]
pub(crate) enum Remote {
    Network {
        address: SocketAddr,
        /// The certificate that it must present, if it uses TLS.
        certificate: Option<PathBuf>,
        token: Option<String>,
    },
    /// The user's own server.
    Local(LocalPlace),
}

impl Remote {
    /// Finds the server of this sessions directory. The token must not go to an unrelated
    /// process that listens on the address by now: the server must have announced its
    /// address and still be alive, or the configuration must name the address.
    pub(crate) fn find(
        config: &Config,
        private: &Path,
        token: Option<String>,
    ) -> anyhow::Result<Self> {
        let (address, certificate) = match ServerFile::find(private) {
            Some(announcement) => (address(&announcement)?, announcement.tls_cert),
            None if config.listen_from != Source::Default && config.listen.port() != 0 => {
                (config.listen, config.tls.as_ref().map(|files| files.cert.clone()))
            }
            None => bail!(no_server(config)()),
        };
        Ok(Self::Network { address, certificate, token })
    }

    /// Returns the user's own server, started if there is none.
    pub(crate) fn local(settings: &Settings) -> anyhow::Result<Self> {
        let words = ["serve", "--local"].map(OsString::from);
        local::find_or_start(settings, &words)?;
        Ok(Self::Local(settings.launcher.user().local()))
    }

    /// Sends a request; the answer's body is still to be read.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        body: Vec<u8>,
    ) -> anyhow::Result<Response<Incoming>> {
        self.send(self.request(method, path, body)?).await
    }

    /// Sends a request with a key, which may be repeated: it is carried out once.
    pub(crate) async fn order(
        &self,
        path: &str,
        key: &str,
        body: Vec<u8>,
    ) -> anyhow::Result<Response<Incoming>> {
        let mut request = self.request("POST", path, body)?;
        request.headers_mut().insert("idempotency-key", key.parse()?);
        self.send(request).await
    }

    /// Sends a file.
    pub(crate) async fn upload(
        &self,
        path: &str,
        file: Vec<u8>,
    ) -> anyhow::Result<Response<Incoming>> {
        let mut request = self.request("POST", path, file)?;
        let kind = header::HeaderValue::from_static("application/octet-stream");
        request.headers_mut().insert(header::CONTENT_TYPE, kind);
        self.send(request).await
    }

    /// Follows events after the given one.
    pub(crate) async fn resume(
        &self,
        path: &str,
        after: u64,
    ) -> anyhow::Result<Response<Incoming>> {
        let mut request = self.request("GET", path, Vec::new())?;
        request.headers_mut().insert("last-event-id", after.into());
        self.send(request).await
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> anyhow::Result<Response<Incoming>> {
        let (address, certificate) = match self {
            Self::Network { address, certificate, .. } => (address, certificate),
            Self::Local(place) => {
                let stream = local::connect_for_calls(place);
                return send(stream.context("the local server has gone")?, request).await;
            }
        };
        let stream = TcpStream::connect(address)
            .await
            .with_context(|| format!("no server is at {address}; start one with: sessile serve"))?;
        match certificate {
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
        let (host, token) = match self {
            Self::Network { address, token, .. } => (address.to_string(), token.as_ref()),
            Self::Local(_) => ("localhost".to_owned(), None),
        };
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, host);
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        request.body(Full::new(body.into())).context("that is not a request")
    }
}

/// Returns the message for a missing server.
pub(crate) fn no_server(config: &Config) -> impl Fn() -> String {
    let place = config.sessions_dir.display().to_string();
    move || format!("no server is running for {place}; start one with: sessile serve")
}

fn address(announcement: &ServerInfo) -> anyhow::Result<SocketAddr> {
    let (_, address) = announcement.url.split_once("://").unwrap_or_default();
    address.parse().context("the server's file does not say where it is")
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<Response<Incoming>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Drives the connection; its errors also reach the request.
    tokio::spawn(connection);
    sender.send_request(request).await.context("the server did not answer")
}

/// Returns the next part of an answer.
pub(crate) async fn next_part(body: &mut Incoming) -> anyhow::Result<Option<Bytes>> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}
