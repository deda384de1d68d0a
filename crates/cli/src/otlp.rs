//! Traces, sent to an OpenTelemetry collector: OTLP over HTTP.

use crate::log::{self, ExtraLayer};
use anyhow::{Context, bail};
use async_trait::async_trait;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;

/// The collector's path for traces.
const PATH: &str = "/v1/traces";

#[derive(Debug)]
pub(crate) struct Traces(Option<SdkTracerProvider>);

impl Traces {
    /// Sends traces to a collector, if there is one.
    pub(crate) fn to(endpoint: Option<&str>, runtime: &Handle) -> anyhow::Result<Self> {
        let Some(endpoint) = endpoint else { return Ok(Self(None)) };
        if !endpoint.starts_with("http://") {
            bail!(
                "otlp-endpoint {endpoint} is not http://; have a collector on this machine pass traces on over TLS"
            );
        }
        let endpoint = endpoint.trim_end_matches('/').trim_end_matches(PATH);
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Collector { runtime: runtime.clone() })
            .with_endpoint(format!("{endpoint}{PATH}"))
            .with_protocol(Protocol::HttpBinary)
            .build()
            .context("cannot send traces")?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(Resource::builder().with_service_name("sessile").build())
            .build();
        Ok(Self(Some(provider)))
    }

    /// Returns the layer that traces our own spans, whatever the log level is.
    pub(crate) fn layer(&self) -> Option<ExtraLayer> {
        let tracer = self.0.as_ref()?.tracer("sessile");
        let layer = tracing_opentelemetry::layer().with_tracer(tracer);
        Some(layer.with_filter(log::ours(LevelFilter::DEBUG)).boxed())
    }

    /// Sends the remaining traces.
    pub(crate) fn flush(&self) {
        if let Some(provider) = &self.0
            && let Err(error) = provider.shutdown()
        {
            tracing::warn!(%error, "some traces could not be sent");
        }
    }
}

/// Sends on our own runtime: the exporter's thread has none.
#[derive(Debug)]
struct Collector {
    runtime: Handle,
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.runtime.spawn(send(request)).await?
    }
}

async fn send(request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let (mut parts, body) = request.into_parts();
    let authority = parts.uri.authority().ok_or("the endpoint has no host")?.clone();
    let stream = TcpStream::connect((authority.host(), authority.port_u16().unwrap_or(80))).await?;
    parts.headers.insert(header::HOST, authority.as_str().parse()?);
    parts.uri = parts.uri.path().parse()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::from_parts(parts, Full::new(body));
    let (parts, body) = sender.send_request(request).await?.into_parts();
    Ok(Response::from_parts(parts, body.collect().await?.to_bytes()))
}
