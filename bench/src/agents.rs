//! The overhead of an agent's loop beside its model and its tools: a scripted model on this
//! machine, which answers at once, and calls that do nothing.

use crate::server::{Http, Serve};
use crate::stats::{Limit, Table, print_held};
use crate::timed;
use anyhow::Context;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

/// Number of steps in a task of a coding agent.
const STEPS: usize = 20;
const ROUNDS: usize = 10;

/// Limit for a step, beside model and tools.
const HELD_MS: f64 = 5.0;

const NOTHING: &str = r#"{"command":":"}"#;

pub(crate) fn measure(sessile: &Path) -> anyhow::Result<()> {
    let model = scripted()?;
    let configuration = format!(
        "[[model]]\nname = \"scripted\"\nformat = \"chat-completions\"\nmodel = \"scripted\"\n\
         base-url = \"http://{model}/v1\"\nstream = false\n"
    );
    let serve = Serve::with_configuration(sessile, &configuration)?;
    let (mut http, mut direct) = (serve.connect()?, Http::connect(&model)?);
    let plain = http.start_session("bash")? + "/exec";
    let mut table = Table::default();
    let asked = conversation(STEPS / 2);
    for (name, checkpoints) in [(BARE, 0), (MARKED, 10)] {
        let body = json!({ "checkpoints": checkpoints }).to_string();
        for _ in 0..ROUNDS {
            // A new one each time, so that the conversation does not grow.
            let agent: Value = serde_json::from_str(&http.post("/v1/agents", &body)?)?;
            let agent = agent["session_id"].as_str().context("an agent")?.to_owned();
            let whole = timed(|| task(&mut http, &agent))?;
            table.add(name, whole / u32::try_from(STEPS)?);
            http.delete(&format!("/v1/sessions/{agent}"))?;
            for _ in 0..STEPS {
                table.add(MODEL, timed(|| direct.post("/v1/chat/completions", &asked))?);
                table.add(TOOL, timed(|| http.post(&plain, NOTHING))?);
            }
        }
    }
    table.print(&[]);
    let beside = table.median(MODEL) + table.median(TOOL);
    let ms = |step: Duration| step.saturating_sub(beside).as_secs_f64() * 1000.0;
    print_held("ms a step beside model and tool", ms(table.median(BARE)), Limit::AtMost(HELD_MS));
    print_held("the same with checkpoints", ms(table.median(MARKED)), Limit::None);
    Ok(())
}

const BARE: &str = "a step of an agent, `:`";
const MARKED: &str = "the same, with checkpoints and files";
const MODEL: &str = "the model, asked directly";
const TOOL: &str = "`:` over HTTP";

fn task(http: &mut Http, agent: &str) -> anyhow::Result<()> {
    let body = json!({ "text": "do nothing", "limits": { "max_steps": 1000 } }).to_string();
    let begun: Value =
        serde_json::from_str(&http.post(&format!("/v1/agents/{agent}/tasks"), &body)?)?;
    let path = format!("/v1/agents/{agent}/tasks/{}?wait=60s", begun["task"]);
    let view: Value = serde_json::from_str(&http.get(&path)?)?;
    anyhow::ensure!(view["ended"] == "done", "{view}");
    Ok(())
}

/// Returns a conversation in which the model has spoken this often.
fn conversation(spoken: usize) -> String {
    let mut messages = vec![json!({ "role": "user", "content": "do nothing" })];
    for step in 0..spoken {
        messages.push(said(step));
        let id = format!("call_{step}");
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": "exit code 0" }));
    }
    json!({ "model": "scripted", "messages": messages }).to_string()
}

fn said(step: usize) -> Value {
    let arguments = r#"{"action":"exec","command":":"}"#;
    let call = json!({ "id": format!("call_{step}"), "type": "function",
        "function": { "name": "runtime", "arguments": arguments } });
    json!({ "role": "assistant", "content": null, "tool_calls": [call] })
}

/// Starts a model that requests calls in all steps of a task except the last; returns its address.
fn scripted() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    Ok(address)
}

fn serve(stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body: Value = serde_json::from_slice(&body).ok()?;
        let messages = body["messages"].as_array()?;
        let of_task = messages.iter().rev().take_while(|message| message["role"] != "user");
        let spoken = of_task.filter(|message| message["role"] == "assistant").count();
        let (message, reason) = match spoken + 1 < STEPS {
            true => (said(messages.len()), "tool_calls"),
            false => (json!({ "role": "assistant", "content": "done" }), "stop"),
        };
        let answer = json!({ "model": "scripted", "usage": { "prompt_tokens": 1 },
            "choices": [{ "message": message, "finish_reason": reason }] })
        .to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        reader.get_mut().write_all((head + &answer).as_bytes()).ok()?;
    }
}
