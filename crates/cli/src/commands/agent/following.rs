//! Follows a task's events.

use super::{Server, chat, leaving, showing};
use crate::call::{Remote, next_part};
use crate::display::Page;
use anyhow::{Context, bail};
use serde_json::Value;
use sessile_agent::model::{Sse, SseEvent};
use sessile_server::http::Decision;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// A killed server is back within this time, or has to be started by hand.
pub(super) const ATTEMPTS: u32 = 20;
pub(super) const PAUSE: Duration = Duration::from_millis(250);

/// Whether to go on.
enum Flow {
    More,
    Over,
}

/// Shows events until the task ends, across lost connections.
pub(super) fn follow(
    server: &Server<'_>,
    agent: &str,
    task: u64,
    quiet: bool,
) -> anyhow::Result<()> {
    let (page, shown) = (Page::at(&io::stderr()), String::new());
    let (begun, after, reply) = (false, 0, Value::Null);
    let mut view = View { agent, task, quiet, page, begun, after, shown, reply };
    let mut failures = 0;
    loop {
        let before = view.after;
        match server.runtime.block_on(view.connection(&server.remote())) {
            Ok(Flow::Over) => return Ok(()),
            // No new entries, and no end among them: the task had ended before.
            Ok(Flow::More) if view.after == before => return Ok(()),
            Ok(Flow::More) => failures = 0,
            Err(error) if failures == ATTEMPTS => {
                view.break_off();
                return Err(error).with_context(|| {
                    format!(
                        "the server went away during task {task}, which goes on as soon as a \
                         server runs; return to it with: sessile agent resume {agent}"
                    )
                });
            }
            Err(_) => {
                failures += 1;
                server.look_again();
            }
        }
    }
}

/// Reads all existing entries.
pub(super) fn entries(
    server: &Server<'_>,
    agent: &str,
    mut each: impl FnMut(&Value) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let count = server.get(&format!("/v1/agents/{agent}"))?["entries"].as_u64().unwrap_or(0);
    server.runtime.block_on(async {
        let mut sse = Sse::default();
        let mut response = open(&server.remote(), agent, 0).await?;
        while let Some(part) = next_part(response.body_mut()).await? {
            for event in sse.push(&part)? {
                let data: Value = serde_json::from_str(&event.data)?;
                let Some(number) = data["entry"].as_u64() else { continue };
                each(&data)?;
                if number >= count {
                    return Ok(());
                }
            }
        }
        Ok(())
    })
}

async fn open(
    remote: &Remote,
    agent: &str,
    after: u64,
) -> anyhow::Result<hyper::Response<hyper::body::Incoming>> {
    let path = format!("/v1/agents/{agent}/events");
    let response = remote.resume(&path, after).await?;
    if !response.status().is_success() {
        bail!("the server refuses to show the thread ({})", response.status());
    }
    Ok(response)
}

struct View<'a> {
    agent: &'a str,
    task: u64,
    quiet: bool,
    page: Page,
    /// The task's own entry was seen: what comes is of this task.
    begun: bool,
    after: u64,
    /// The text of the current reply that was shown.
    shown: String,
    /// The last reply, whose calls are carried out.
    reply: Value,
}

impl View<'_> {
    async fn connection(&mut self, remote: &Remote) -> anyhow::Result<Flow> {
        let mut response = open(remote, self.agent, self.after).await?;
        let mut sse = Sse::default();
        loop {
            // Both may be dropped and begun again without loss.
            let part = tokio::select! {
                part = next_part(response.body_mut()) => part?,
                () = leaving::cancelled() => {
                    let path = format!("/v1/agents/{}/cancel", self.agent);
                    let answer = remote.call("POST", &path, b"{}".to_vec()).await;
                    answer.inspect_err(|_| leaving::not_cancelled())?;
                    continue;
                }
            };
            let Some(part) = part else { return Ok(Flow::More) };
            for event in sse.push(&part)? {
                if let Flow::Over = self.take(remote, &event).await? {
                    return Ok(Flow::Over);
                }
            }
        }
    }

    async fn take(&mut self, remote: &Remote, event: &SseEvent) -> anyhow::Result<Flow> {
        let data: Value = serde_json::from_str(&event.data).context("an event in JSON")?;
        match event.name.as_str() {
            "delta" => self.delta(&data),
            "retry" => self.retry(&data),
            "approve" => self.approve(remote, &data).await?,
            "error" => bail!("{}", data["message"].as_str().unwrap_or("the stream has ended")),
            _ => return Ok(self.entry(&data)),
        }
        Ok(Flow::More)
    }

    /// Elsewhere than at a terminal, replies are shown whole: words may turn out to be void.
    fn delta(&mut self, data: &Value) {
        if self.begun && !self.quiet && io::stdout().is_terminal() {
            let words = data["text"].as_str().unwrap_or_default();
            let mut out = io::stdout().lock();
            let _ = out.write_all(showing::spoken(words).as_bytes());
            let _ = out.flush();
            self.shown += words;
        }
    }

    /// Drops the partial answer: it comes again as a whole.
    fn retry(&mut self, data: &Value) {
        if !self.begun || self.quiet {
            return;
        }
        self.break_off();
        let why = data["failure"]["message"].as_str().unwrap_or_default();
        let seconds = data["after_ms"].as_u64().unwrap_or(0) as f64 / 1000.0;
        eprintln!("  ({why}; asked again in {seconds:.1} s)");
    }

    /// Ends the line of a partial reply.
    fn break_off(&mut self) {
        if !std::mem::take(&mut self.shown).is_empty() {
            println!();
        }
    }

    fn entry(&mut self, entry: &Value) -> Flow {
        self.after = entry["entry"].as_u64().unwrap_or(self.after);
        if entry["type"] == "task" {
            self.begun = entry["task"] == self.task;
            return Flow::More;
        }
        if !self.begun {
            return Flow::More;
        }
        let is_over = entry["type"] == "ended" && entry["task"] == self.task;
        if entry["type"] == "reply" {
            self.reply = entry.clone();
        } else {
            self.break_off();
        }
        // The caller shows how the task ended.
        if !self.quiet && !is_over {
            let is_reply = entry["type"] == "reply";
            if is_reply {
                let shown = std::mem::take(&mut self.shown);
                let _ = showing::rest(entry, &shown, &mut io::stdout().lock());
                let _ = showing::calls(entry, self.page, &mut io::stderr().lock());
            } else {
                let _ = showing::entry(entry, self.page, &mut io::stderr().lock());
            }
        }
        if is_over { Flow::Over } else { Flow::More }
    }

    /// Asks the user at the terminal. Without a terminal, the call waits for another approver.
    async fn approve(&mut self, remote: &Remote, data: &Value) -> anyhow::Result<()> {
        if self.quiet || !io::stdin().is_terminal() {
            let (agent, call) = (self.agent, data["call"].as_str().unwrap_or_default());
            eprintln!(
                "  (call {call} waits for approval; say so with: sessile agent approve {agent}, or \
                 sessile agent deny {agent})"
            );
            return Ok(());
        }
        let question = showing::question(&self.reply, &data["call"], self.page);
        let Some(line) = chat::answer(&question)? else {
            leaving::interrupted();
            return Ok(());
        };
        let allow = matches!(line.trim(), "y" | "Y" | "yes");
        let call = data["call"].as_str().unwrap_or_default().to_owned();
        let body = serde_json::to_vec(&Decision { call, allow, reason: None })?;
        let path = format!("/v1/agents/{}/approvals", self.agent);
        remote.call("POST", &path, body).await?;
        Ok(())
    }
}
