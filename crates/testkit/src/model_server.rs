//! A scripted model, over the real formats of models.
//!
//! Its answer depends only on the conversation: step *n* of the script is the answer to a
//! conversation in which the model has spoken *n* times. So a request that is repeated
//! after a crash gets the same answer as the first one.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// An answer of the model.
#[derive(Clone, Debug)]
pub enum Say {
    Text(String),
    /// Calls: tool and arguments.
    Calls(Vec<(String, Value)>),
    /// Text that replaces a call's arguments.
    BadArguments(String),
}

/// A failure of one request, by its number from 1 on.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// An HTTP status with a body.
    Status(u16, Value),
    /// The stream ends in the middle.
    CutOff,
    /// The stream stops in the middle until the client has disconnected.
    Stall,
    /// A body that is not an answer.
    Nonsense,
    /// A redirect to another address.
    Redirect(String),
    /// Another answer than that of the script.
    Says(Say),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Chat,
    Responses,
    Messages,
}

#[derive(Debug)]
pub struct ModelServer {
    address: std::net::SocketAddr,
    format: Format,
    seen: Arc<Mutex<Vec<Seen>>>,
    asked: Receiver<usize>,
    release: Sender<()>,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

struct Part {
    format: Format,
    script: Vec<Say>,
    trouble: BTreeMap<usize, Trouble>,
    seen: Arc<Mutex<Vec<Seen>>>,
    asked: Sender<usize>,
    held: Held,
    released: Mutex<Receiver<()>>,
    /// Steps that were already requested.
    known: Mutex<BTreeSet<usize>>,
}

/// The requests that wait for [`ModelServer::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    None,
    /// The first request of each step.
    FirstOfEachStep,
}

impl ModelServer {
    #[must_use]
    pub fn start(format: Format, script: Vec<Say>) -> Self {
        Self::with_trouble(format, script, BTreeMap::new())
    }

    /// # Panics
    /// When it cannot listen.
    #[must_use]
    pub fn with_trouble(
        format: Format,
        script: Vec<Say>,
        trouble: BTreeMap<usize, Trouble>,
    ) -> Self {
        Self::listen(format, script, trouble, Held::None)
    }

    /// Makes a server that holds the first request of each step until it is released. Later
    /// ones are answered at once.
    #[must_use]
    pub fn hesitant(format: Format, script: Vec<Say>) -> Self {
        Self::hesitant_with_trouble(format, script, BTreeMap::new())
    }

    #[must_use]
    pub fn hesitant_with_trouble(
        format: Format,
        script: Vec<Say>,
        trouble: BTreeMap<usize, Trouble>,
    ) -> Self {
        Self::listen(format, script, trouble, Held::FirstOfEachStep)
    }

    /// Releases the held request.
    pub fn release(&self) {
        let _ = self.release.send(());
    }

    fn listen(
        format: Format,
        script: Vec<Say>,
        trouble: BTreeMap<usize, Trouble>,
        held: Held,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (asked, hears) = channel();
        let (release, released) = channel();
        let part = Arc::new(Part {
            format,
            script,
            trouble,
            seen: seen.clone(),
            asked,
            held,
            released: Mutex::new(released),
            known: Mutex::default(),
        });
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let part = part.clone();
                std::thread::spawn(move || part.serve(stream));
            }
        });
        Self { address, format, seen, asked: hears, release }
    }

    /// Returns its address.
    #[must_use]
    pub fn address(&self) -> std::net::SocketAddr {
        self.address
    }

    /// Returns a `[[model]]` for a server's configuration.
    #[must_use]
    pub fn configuration(&self) -> String {
        let (format, path) = match self.format {
            Format::Chat => ("chat-completions", "/v1"),
            Format::Responses => ("responses", "/v1"),
            Format::Messages => ("messages", ""),
        };
        format!(
            "[[model]]\nname = \"scripted\"\nformat = \"{format}\"\nmodel = \"test-1\"\n\
             base-url = \"http://{}{path}\"\nkey-file = \"model.key\"\ninput-price = 1.0\noutput-price = 2.0\n",
            self.address
        )
    }

    #[must_use]
    pub fn requests(&self) -> Vec<Seen> {
        self.seen.lock().expect("requests").clone()
    }

    /// Waits for request number `count`.
    ///
    /// # Panics
    /// When it does not.
    pub fn wait_for_request(&self, count: usize) {
        loop {
            let number = self.asked.recv_timeout(crate::PATIENCE).expect("a request");
            if number >= count {
                return;
            }
        }
    }
}

impl Part {
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
        let mut stream = stream;
        while let Some(request) = read_request(&mut reader) {
            let number = {
                let mut seen = self.seen.lock().expect("requests");
                seen.push(request.clone());
                seen.len()
            };
            let step = spoken(self.format, &request.body);
            let is_first = self.known.lock().expect("steps").insert(step);
            let _ = self.asked.send(number);
            if self.held == Held::FirstOfEachStep && is_first {
                let _ = self.released.lock().expect("a receiver").recv();
            }
            if self.answer(&mut stream, number, &request.body).is_err() {
                return;
            }
        }
    }

    fn answer(&self, stream: &mut TcpStream, number: usize, body: &Value) -> std::io::Result<()> {
        let is_stream = body["stream"] == true;
        match self.trouble.get(&number) {
            Some(Trouble::Status(status, body)) => {
                let extra = if *status == 429 { "retry-after: 0\r\n" } else { "" };
                return send(stream, *status, "application/json", extra, &body.to_string());
            }
            Some(Trouble::Nonsense) => {
                return send(stream, 200, "text/html", "", "<html>a proxy</html>");
            }
            Some(Trouble::Redirect(to)) => {
                let extra = format!("location: {to}\r\n");
                return send(stream, 307, "text/plain", &extra, "");
            }
            Some(Trouble::CutOff | Trouble::Stall | Trouble::Says(_)) | None => {}
        }
        let spoken = spoken(self.format, body);
        let fallback = Say::Text("the script is over".to_owned());
        let say = match self.trouble.get(&number) {
            Some(Trouble::Says(say)) => say,
            Some(_) | None => self.script.get(spoken).unwrap_or(&fallback),
        };
        let whole = whole(self.format, say, spoken);
        if !is_stream {
            let text = whole.to_string();
            if let Some(Trouble::CutOff) = self.trouble.get(&number) {
                return send_half(stream, &text);
            }
            return send(stream, 200, "application/json", "", &text);
        }
        let text = streamed(self.format, &whole);
        match self.trouble.get(&number) {
            Some(Trouble::CutOff) => {
                send(stream, 200, "text/event-stream", "", first_half(&text).trim_end())
            }
            Some(Trouble::Stall) => send_and_stall(stream, first_half(&text)),
            Some(_) | None => send(stream, 200, "text/event-stream", "", &text),
        }
    }
}

fn send(
    stream: &mut TcpStream,
    status: u16,
    kind: &str,
    extra: &str,
    body: &str,
) -> std::io::Result<()> {
    let length = body.len();
    // In one piece: otherwise the second one would wait for the acknowledgement of the first.
    let answer = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{extra}\r\n{body}"
    );
    stream.write_all(answer.as_bytes())
}

/// Breaks the connection in the middle of an answer.
fn send_half(stream: &mut TcpStream, body: &str) -> std::io::Result<()> {
    let (length, half) = (body.len(), &body[..body.len() / 2]);
    let answer = format!(
        "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{half}"
    );
    stream.write_all(answer.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Both)?;
    Err(std::io::ErrorKind::ConnectionReset.into())
}

/// Returns the first half of the events, without cutting one.
fn first_half(events: &str) -> &str {
    let end = events[..events.len() / 2].rfind("\n\n").map_or(0, |at| at + 2);
    &events[..end]
}

/// Sends these events, and waits until the client has disconnected.
fn send_and_stall(stream: &mut TcpStream, events: &str) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(format!("{head}{events}").as_bytes())?;
    let _ = stream.read(&mut [0])?;
    Err(std::io::ErrorKind::ConnectionReset.into())
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split_whitespace().nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length: usize = headers.get("content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Seen { path, headers, body: serde_json::from_slice(&body).ok()? })
}

/// Returns how often the model has spoken in a conversation.
fn spoken(format: Format, body: &Value) -> usize {
    let list = |name: &str| body[name].as_array().cloned().unwrap_or_default();
    match format {
        Format::Chat | Format::Messages => {
            list("messages").iter().filter(|message| message["role"] == "assistant").count()
        }
        Format::Responses => {
            let is_own =
                |item: &Value| item["role"] == "assistant" || item["type"] == "function_call";
            let items = list("input");
            let begins = |at: usize| is_own(&items[at]) && (at == 0 || !is_own(&items[at - 1]));
            (0..items.len()).filter(|at| begins(*at)).count()
        }
    }
}

/// Returns its answer in one piece.
fn whole(format: Format, say: &Say, step: usize) -> Value {
    match say {
        Say::Text(text) => of_text(format, text),
        Say::Calls(calls) => {
            let named = calls.iter().enumerate().map(|(index, (tool, input))| {
                (format!("call_{step}_{index}"), tool.clone(), input.to_string())
            });
            of_calls(format, &named.collect::<Vec<_>>())
        }
        Say::BadArguments(arguments) => {
            let call = (format!("call_{step}_0"), "runtime".to_owned(), arguments.clone());
            of_calls(format, &[call])
        }
    }
}

fn of_text(format: Format, text: &str) -> Value {
    match format {
        Format::Chat => json!({ "model": "test-1", "choices": [{ "finish_reason": "stop",
            "message": { "role": "assistant", "content": text } }],
            "usage": { "prompt_tokens": 100, "completion_tokens": 10 } }),
        Format::Responses => json!({ "model": "test-1", "status": "completed", "output": [
            { "type": "message", "content": [{ "type": "output_text", "text": text }] }],
            "usage": { "input_tokens": 100, "output_tokens": 10 } }),
        Format::Messages => {
            json!({ "type": "message", "model": "test-1", "stop_reason": "end_turn",
            "content": [{ "type": "text", "text": text }],
            "usage": { "input_tokens": 100, "output_tokens": 10 } })
        }
    }
}

fn of_calls(format: Format, calls: &[(String, String, String)]) -> Value {
    match format {
        Format::Chat => {
            let calls: Vec<_> = calls
                .iter()
                .map(|(id, tool, input)| {
                    json!({ "id": id, "type": "function",
                            "function": { "name": tool, "arguments": input } })
                })
                .collect();
            json!({ "model": "test-1", "choices": [{ "finish_reason": "tool_calls",
                "message": { "role": "assistant", "content": null, "tool_calls": calls } }],
                "usage": { "prompt_tokens": 100, "completion_tokens": 10 } })
        }
        Format::Responses => {
            let calls: Vec<_> = calls
                .iter()
                .map(|(id, tool, input)| {
                    json!({ "type": "function_call", "call_id": id, "name": tool,
                            "arguments": input })
                })
                .collect();
            json!({ "model": "test-1", "status": "completed", "output": calls,
                "usage": { "input_tokens": 100, "output_tokens": 10 } })
        }
        Format::Messages => {
            let calls: Vec<_> = calls
                .iter()
                .map(|(id, tool, input)| {
                    let input: Value = serde_json::from_str(input).unwrap_or(Value::Null);
                    json!({ "type": "tool_use", "id": id, "name": tool, "input": input })
                })
                .collect();
            json!({ "type": "message", "model": "test-1", "stop_reason": "tool_use",
                "content": calls, "usage": { "input_tokens": 100, "output_tokens": 10 } })
        }
    }
}

/// Returns its answer as events.
fn streamed(format: Format, whole: &Value) -> String {
    let mut events: Vec<(String, Value)> = Vec::new();
    match format {
        Format::Chat => {
            let message = &whole["choices"][0]["message"];
            for piece in pieces(message["content"].as_str().unwrap_or_default()) {
                let chunk = json!({ "choices": [{ "delta": { "content": piece } }] });
                events.push((String::new(), chunk));
            }
            for (index, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate()
            {
                let head = json!({ "index": index, "id": call["id"],
                    "function": { "name": call["function"]["name"], "arguments": "" } });
                events.push((
                    String::new(),
                    json!({ "choices": [{ "delta": { "tool_calls": [head] } }] }),
                ));
                for piece in pieces(call["function"]["arguments"].as_str().unwrap_or_default()) {
                    let part = json!({ "index": index, "function": { "arguments": piece } });
                    let chunk = json!({ "choices": [{ "delta": { "tool_calls": [part] } }] });
                    events.push((String::new(), chunk));
                }
            }
            let reason = &whole["choices"][0]["finish_reason"];
            let last = json!({ "choices": [{ "delta": {}, "finish_reason": reason }] });
            events.push((String::new(), last));
            events.push((String::new(), json!({ "choices": [], "usage": whole["usage"] })));
        }
        Format::Responses => {
            let text = whole["output"][0]["content"][0]["text"].as_str().unwrap_or_default();
            for piece in pieces(text) {
                let kind = "response.output_text.delta";
                events.push((kind.to_owned(), json!({ "type": kind, "delta": piece })));
            }
            let kind = "response.completed";
            events.push((kind.to_owned(), json!({ "type": kind, "response": whole })));
        }
        Format::Messages => {
            let mut push = |event: Value| {
                events.push((event["type"].as_str().unwrap_or_default().to_owned(), event));
            };
            push(json!({ "type": "message_start", "message": { "model": "test-1",
                "usage": { "input_tokens": 100, "output_tokens": 1 } } }));
            for (index, block) in whole["content"].as_array().into_iter().flatten().enumerate() {
                let mut empty = block.clone();
                let is_text = block["type"] == "text";
                if is_text {
                    empty["text"] = "".into();
                } else {
                    empty["input"] = json!({});
                }
                push(
                    json!({ "type": "content_block_start", "index": index, "content_block": empty }),
                );
                let all = if is_text {
                    block["text"].as_str().unwrap_or_default().to_owned()
                } else {
                    block["input"].to_string()
                };
                for piece in pieces(&all) {
                    let delta = if is_text {
                        json!({ "type": "text_delta", "text": piece })
                    } else {
                        json!({ "type": "input_json_delta", "partial_json": piece })
                    };
                    push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
                }
                push(json!({ "type": "content_block_stop", "index": index }));
            }
            push(
                json!({ "type": "message_delta", "delta": { "stop_reason": whole["stop_reason"] },
                "usage": { "output_tokens": 10 } }),
            );
            push(json!({ "type": "message_stop" }));
        }
    }
    let mut text = String::new();
    for (name, data) in events {
        if !name.is_empty() {
            text.push_str(&format!("event: {name}\n"));
        }
        text.push_str(&format!("data: {data}\n\n"));
    }
    if format == Format::Chat {
        text.push_str("data: [DONE]\n\n");
    }
    text
}

fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(5).map(|piece| piece.iter().collect()).collect()
}
