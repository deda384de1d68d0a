//! A model, reached over HTTP.

use super::following::DeltaSender;
use crate::service::{ErrorCode, ServiceError};
use sessile_agent::Worker;
use sessile_agent::conversation::Turn;
use sessile_agent::limits::Price;
use sessile_agent::model::{ApiFormat, Block, Failure, FailureKind, Reply, Request, Stop, Usage};
use sessile_agent::tools::Tool;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The configuration of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub name: String,
    pub wire: ApiFormat,
    /// Without the path of the wire format: `https://host/v1`.
    pub base_url: String,
    /// The model's name at its server.
    pub model: String,
    pub key: Key,
    pub headers: BTreeMap<String, String>,
    pub price: Price,
    pub max_output_tokens: u32,
    pub stream: bool,
    /// Certificates that its server is checked against, besides the system's.
    pub ca: Option<PathBuf>,
    /// A program in the session that works in place of a model.
    pub command: Option<CommandAgent>,
}

/// The model behind an agent.
#[derive(Clone, Debug)]
pub(super) enum Backend {
    Model {
        model: Arc<Model>,
        client: reqwest::Client,
    },
    /// A task is open whose model is no longer configured. The task fails.
    Missing(Failure),
}

impl Backend {
    pub(super) fn worker(&self) -> Worker {
        match self {
            Self::Model { model, .. } if model.command.is_some() => Worker::Program,
            Self::Model { .. } | Self::Missing(_) => Worker::Model,
        }
    }

    pub(super) fn price(&self) -> Price {
        match self {
            Self::Model { model, .. } => model.price,
            Self::Missing(_) => Price::default(),
        }
    }
}

/// A program that takes a task and writes JSON lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandAgent {
    /// Its arguments. `{task}` in one of them stands for the task, which otherwise comes on stdin.
    pub command: Vec<String>,
}

/// Where the key is. A key in a file is read for each request and not kept, so that a new
/// key is used at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    None,
    Environment(Variable),
    File(PathBuf),
}

/// A variable with a key. The server takes it out of its environment when it starts, and
/// keeps it only in memory.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    name: String,
    value: Option<String>,
}

impl Variable {
    #[must_use]
    pub fn new(name: String) -> Self {
        Self { name, value: None }
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Variable").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Size limit of a model's answer.
const MAX_ANSWER: usize = 32 << 20;

impl Key {
    async fn read(&self) -> Result<Option<String>, Failure> {
        let missing = |why: String| Err(Failure::new(FailureKind::BadKey, why));
        match self {
            Self::None => Ok(None),
            Self::Environment(Variable { name, value }) => match value.as_deref().map(str::trim) {
                Some(key) if !key.is_empty() => Ok(Some(key.to_owned())),
                Some(_) | None => missing(format!(
                    "the key is missing: {name} was not set in the server's environment when it \
                     started; set it, end the server with `kill {}` and start it again, or have \
                     key-file name a file with the key",
                    std::process::id()
                )),
            },
            Self::File(path) => match tokio::fs::read_to_string(path).await {
                Ok(key) if !key.trim().is_empty() => Ok(Some(key.trim().to_owned())),
                Ok(_) => missing(format!("the key is missing: {} is empty", path.display())),
                Err(error) => missing(format!("the key is missing: {}: {error}", path.display())),
            },
        }
    }
}

/// Who hears of an answer while it comes.
#[derive(Debug)]
pub(super) struct ReplyObservers {
    /// Its words, if somebody wants them.
    pub(super) deltas: Option<DeltaSender>,
    /// What it has used so far, as its server tells it.
    pub(super) used: watch::Sender<Usage>,
}

/// What the model is asked, on its own: it goes to another task.
#[derive(Clone, Debug)]
pub(super) struct ModelRequest {
    pub(super) instructions: String,
    pub(super) turns: Vec<Turn>,
    pub(super) tools: Vec<Tool>,
}

impl Model {
    /// Returns the name of the variable that has its key.
    #[must_use]
    pub fn key_variable(&self) -> Option<String> {
        match &self.key {
            Key::Environment(variable) => Some(variable.name.clone()),
            Key::None | Key::File(_) => None,
        }
    }

    /// Sets the value of its key's variable.
    #[must_use]
    pub fn with_key(self, said: Option<String>) -> Self {
        let key = match self.key {
            Key::Environment(variable) => Key::Environment(Variable { value: said, ..variable }),
            key @ (Key::None | Key::File(_)) => key,
        };
        Self { key, ..self }
    }

    /// Returns the HTTP client for this model.
    pub(super) async fn client(&self) -> Result<reqwest::Client, ServiceError> {
        // Fails if it was installed before.
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        let mut client = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(20))
            // A request has the key in it, which no other server may get.
            .redirect(reqwest::redirect::Policy::none())
            // A model may think for minutes before its first token.
            .read_timeout(Duration::from_secs(600));
        if let Some(path) = &self.ca {
            let refuse = |why: String| {
                let message = format!("ca-file of model {:?}: {why}", self.name);
                ServiceError::new(ErrorCode::BadRequest, message)
            };
            let pem = tokio::fs::read(path)
                .await
                .map_err(|error| refuse(format!("{}: {error}", path.display())))?;
            let certificates = reqwest::Certificate::from_pem_bundle(&pem)
                .map_err(|_| refuse(format!("{} has no certificates in it", path.display())))?;
            if certificates.is_empty() {
                return Err(refuse(format!("{} has no certificates in it", path.display())));
            }
            client = client.tls_certs_merge(certificates);
        }
        client.build().map_err(|error| {
            ServiceError::new(ErrorCode::Internal, format!("model {:?}: {error}", self.name))
        })
    }

    /// The model's answer. What comes of it is told on the way.
    pub(super) async fn ask(
        &self,
        client: &reqwest::Client,
        question: &ModelRequest,
        observers: &ReplyObservers,
    ) -> Result<Reply, Failure> {
        let key = self.key.read().await?;
        // Some servers repeat what they were sent, and a failure is kept in the thread.
        let secrets: Vec<_> = key.iter().chain(self.headers.values()).cloned().collect();
        let answer = self.post(client, question, observers, key).await;
        answer.map_err(|failure| failure.without(&secrets))
    }

    async fn post(
        &self,
        client: &reqwest::Client,
        question: &ModelRequest,
        observers: &ReplyObservers,
        key: Option<String>,
    ) -> Result<Reply, Failure> {
        let request = Request {
            model: &self.model,
            instructions: &question.instructions,
            turns: &question.turns,
            tools: &question.tools,
            max_output_tokens: self.max_output_tokens,
            stream: self.stream,
        };
        let envelope = self.wire.envelope(&request);
        let url = format!("{}{}", self.base_url.trim_end_matches('/'), envelope.path);
        let mut post = client
            .post(url)
            .header("content-type", "application/json")
            .timeout(Duration::from_secs(3600));
        for (name, value) in envelope.headers {
            post = post.header(*name, *value);
        }
        for (name, value) in &self.headers {
            post = post.header(name, value);
        }
        if let Some(key) = key {
            let (name, before) = envelope.key_header;
            let mut value = reqwest::header::HeaderValue::from_str(&format!("{before}{key}"))
                .map_err(|_| {
                    Failure::new(
                        FailureKind::BadKey,
                        "the key has characters that a key cannot have; set it again",
                    )
                })?;
            value.set_sensitive(true);
            post = post.header(name, value);
        }
        let body = envelope.body.to_string();
        let size = body.len();
        let answer = post.body(body).send().await.map_err(unreachable)?;
        let status = answer.status().as_u16();
        if status >= 300 {
            return Err(refusal(answer).await);
        }
        let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        let reply = match kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            true => self.streamed(answer, observers).await?,
            false => self.wire.reply(&whole(answer).await?)?,
        };
        if is_empty(&reply) {
            let why = "the model has answered with neither words nor calls";
            return Err(Failure::new(FailureKind::Nonsense, why).having_used(reply.usage));
        }
        Ok(counted(reply, size))
    }

    async fn streamed(
        &self,
        mut answer: reqwest::Response,
        observers: &ReplyObservers,
    ) -> Result<Reply, Failure> {
        let mut decoder = self.wire.decoder();
        let mut read = 0;
        loop {
            let bytes = match answer.chunk().await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break,
                Err(_) => return Err(Failure::broken().having_used(decoder.used())),
            };
            read += bytes.len();
            if read > MAX_ANSWER {
                let failure =
                    Failure::new(FailureKind::Nonsense, "the model's answer does not end");
                return Err(failure.having_used(decoder.used()));
            }
            let deltas = decoder.push(&bytes)?;
            observers.used.send_replace(decoder.used());
            for delta in deltas {
                observers.deltas.iter().for_each(|deltas| deltas.send(delta.0.clone()));
            }
        }
        decoder.finish()
    }
}

/// Returns why the model's server refused a request.
async fn refusal(answer: reqwest::Response) -> Failure {
    let status = answer.status();
    let header = |name: &str| {
        let value = answer.headers().get(name).and_then(|value| value.to_str().ok());
        value.map(str::to_owned)
    };
    if status.is_redirection() {
        // The query and the fragment may have a secret.
        let to = header("location").unwrap_or_default();
        let to = to.split(['?', '#']).next().unwrap_or_default();
        let said = format!("it sends requests on to {to:?}, where the key is not sent");
        return Failure::of_status(status.as_u16(), None, said.as_bytes());
    }
    let retry_after = header("retry-after").map(|text| in_seconds(&text, jiff::Timestamp::now()));
    let body = whole(answer).await.unwrap_or_default();
    Failure::of_status(status.as_u16(), retry_after.as_deref(), &body)
}

/// Converts a date in `Retry-After` to seconds; a number stays as it is.
fn in_seconds(text: &str, now: jiff::Timestamp) -> String {
    match jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()) {
        Ok(then) => then.duration_since(now).as_secs().max(0).to_string(),
        Err(_) => text.to_owned(),
    }
}

fn is_empty(reply: &Reply) -> bool {
    let says_nothing = reply.blocks.iter().all(|block| match block {
        Block::Text { text } => text.trim().is_empty(),
        Block::Call(_) => false,
        Block::Opaque { .. } => true,
    });
    match reply.stop {
        Stop::Done | Stop::Calls => says_nothing,
        // An answer in itself.
        Stop::Length | Stop::Refused => false,
    }
}

/// A token of English text has about four bytes.
const BYTES_OF_A_TOKEN: usize = 4;

/// Estimates the tokens by the size of the request and the answer if the server does not
/// count them, so that limits apply there too.
fn counted(mut reply: Reply, asked: usize) -> Reply {
    if reply.usage == Usage::default() {
        let said: usize = reply.blocks.iter().map(size_of).sum();
        let tokens = |bytes: usize| bytes.div_ceil(BYTES_OF_A_TOKEN) as u64;
        reply.usage =
            Usage { input_tokens: tokens(asked), cached_tokens: 0, output_tokens: tokens(said) };
    }
    reply
}

fn size_of(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::Call(call) => call.input.text().len(),
        Block::Opaque { value, .. } => value.to_string().len(),
    }
}

async fn whole(mut answer: reqwest::Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(bytes) = answer.chunk().await.map_err(|_| Failure::broken())? {
        body.extend_from_slice(&bytes);
        if body.len() > MAX_ANSWER {
            return Err(Failure::new(FailureKind::Nonsense, "the model's answer does not end"));
        }
    }
    Ok(body)
}

/// Leaves out the URL, which may have a secret in it.
fn unreachable(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let mut why = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        let said = cause.to_string();
        if !why.contains(&said) {
            why = format!("{why}: {said}");
        }
        source = cause.source();
    }
    let message = format!("the model's server cannot be reached: {why}");
    if why.contains("certificate") {
        let advice = "check the base URL, or name its authority's certificate as ca-file";
        return Failure::new(FailureKind::BadCertificate, format!("{message}; {advice}"));
    }
    Failure::new(FailureKind::Unreachable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_to_try_again_at_is_a_number_of_seconds() {
        let now: jiff::Timestamp = "2026-11-17T19:00:00Z".parse().unwrap();
        assert_eq!(in_seconds("Tue, 17 Nov 2026 19:00:30 GMT", now), "30");
        assert_eq!(in_seconds("Tue, 17 Nov 2026 18:00:00 GMT", now), "0");
        assert_eq!(in_seconds("7", now), "7");
    }

    #[test]
    fn tokens_that_nobody_counts_are_estimated() {
        let blocks = vec![Block::Text { text: "12345678".into() }];
        let usage = Usage::default();
        let reply = Reply { blocks, stop: Stop::Done, usage, model: String::new() };
        let counted = counted(reply.clone(), 4000);
        assert_eq!((counted.usage.input_tokens, counted.usage.output_tokens), (1000, 2));
        assert!(!is_empty(&reply));
        assert!(is_empty(&Reply { blocks: Vec::new(), ..reply }));
    }
}
