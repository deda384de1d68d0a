//! A tool's answer as text: the outcome, then the output.

use super::excerpt::clip;
use super::history;
use super::screen::settle;
use super::sizing::{LIMIT, SENTENCE, bounded};
use crate::tool::NextCall;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};
use sessile_protocol::{EndedJob, Queued, RunNo};
use std::borrow::Cow;
use std::fmt::Write;

/// How many sentences of one kind an answer has.
const NOTES: usize = 5;

/// A long part of an answer.
#[derive(Debug)]
struct Part<'a> {
    label: &'static str,
    text: Cow<'a, str>,
}

/// Returns the text of an answer whose streams have been sized.
#[must_use]
pub fn answer_text(answer: &Map<String, Value>, again: &NextCall) -> String {
    let mut text = String::new();
    for line in headline(answer) {
        let _ = writeln!(text, "{line}");
    }
    let parts = parts(answer);
    for Part { label, text: content } in &parts {
        let _ = writeln!(text, "{label}:");
        text.push_str(content);
        end_line(&mut text);
    }
    if is_true(answer, "running") {
        text.push_str(&how_to_go_on(answer, again));
    } else if parts.is_empty() && exit_code(answer).is_some() {
        text.push_str("(no output)\n");
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

/// Lists sessions, one per line.
#[must_use]
pub fn sessions(sessions: &[Value]) -> String {
    if sessions.is_empty() {
        return "no sessions".to_owned();
    }
    let field = |session: &Value, name: &str| match session[name].as_str() {
        Some(text) => clip(text, 200),
        None => session[name].to_string(),
    };
    let lines = sessions.iter().map(|session| {
        let [id, status, command, runs, place] =
            ["session_id", "status", "command", "execution_count", "work_dir"]
                .map(|name| field(session, name));
        let name = session["name"].as_str().map(|name| format!(" ({name})")).unwrap_or_default();
        let fork = match session["forked_from"]["session_id"].as_str() {
            Some(original) => {
                format!(", fork of {original} after run {}", session["forked_from"]["as_of_run"])
            }
            None => String::new(),
        };
        format!("{id}{name}: {status}, {command}, {runs} runs, in {place}{fork}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a piece of a run's output, and where the next one begins.
#[must_use]
pub fn chunk(answer: &Map<String, Value>, again: &NextCall) -> String {
    let raw = decoded(answer, "data", answer.get("encoding"), None);
    let settled = settle(&raw);
    let mut text = settled.text.into_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let (run, next) = (number(answer, "run"), number(answer, "next"));
    let stream =
        if answer.get("stream").is_some_and(|s| s == "stderr") { "stderr" } else { "stdout" };
    let _ = match (is_true(answer, "more"), is_true(answer, "running")) {
        (true, _) => {
            write!(text, "[there is more; go on with {}]", again.output(run, stream, next))
        }
        (false, true) => write!(
            text,
            "[that is all so far, and run {run} is still running; later, go on with {}]",
            again.output(run, stream, next)
        ),
        (false, false) => write!(text, "[that is the end of run {run}'s {stream}]"),
    };
    text
}

/// Returns the last line of a run's output, for progress notifications.
#[must_use]
pub fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let settled = settle(&text);
    let line = settled.text.lines().rfind(|line| !line.trim().is_empty())?;
    Some(clip(line.trim_end(), 200))
}

/// Returns the outcome in a few lines.
fn headline(answer: &Map<String, Value>) -> Vec<String> {
    let mut lines = Vec::new();
    let run = number(answer, "run");
    let sentence = |name: &str| answer.get(name).and_then(Value::as_str).map(|t| clip(t, SENTENCE));
    if is_true(answer, "waiting_for_input") {
        lines.push(format!("run {run} waits for input"));
    } else if let Some(queued) = queued(answer) {
        lines.push(format!("run {run} has not begun: {queued}"));
    } else if is_true(answer, "running") {
        lines.push(format!("still running as run {run}"));
    } else if let Some(code) = exit_code(answer) {
        let took = answer.get("duration").or_else(|| answer.get("execution_time_ms"));
        let took = took.and_then(Value::as_f64).unwrap_or(0.0);
        lines.push(format!("exit code {code} after {} (run {run})", duration(took)));
    }
    let error = match answer.get("error") {
        Some(Value::Object(error)) => {
            let word = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
            Some(clip(&format!("{}: {}", word("type"), word("message")), SENTENCE))
        }
        Some(_) | None => sentence("error"),
    };
    // The exit code has been mentioned already.
    if let Some(error) = error.filter(|error| !error.starts_with("exit code ")) {
        lines.push(format!("error: {error}"));
    }
    lines.extend(sentence("message"));
    if is_true(answer, "new_session") {
        lines.push("this is a new session: nothing is remembered from before".to_owned());
    }
    lines.extend(sentence("revived"));
    lines.extend(kernel(answer));
    let ended = answer.get("jobs_ended").and_then(Value::as_array).into_iter().flatten();
    let ended = ended.filter_map(|job| EndedJob::deserialize(job).ok());
    lines.extend(ended.take(NOTES).map(|job| clip(&job.told_with(RunNo(run)), SENTENCE)));
    let notes = answer.get("notes").and_then(Value::as_array).into_iter().flatten();
    lines.extend(notes.take(NOTES).filter_map(Value::as_str).map(|note| clip(note, SENTENCE)));
    lines
}

/// Says what became of the interpreter, if it is not the same one.
fn kernel(answer: &Map<String, Value>) -> Option<String> {
    match answer.get("kernel").and_then(Value::as_str)? {
        "restarted" => Some("the interpreter ended; a new one has its state".to_owned()),
        "restored" => Some(format!(
            "the interpreter is a new one, with the state as it was after run {}",
            number(answer, "as_of_run")
        )),
        "fresh" => Some("the interpreter died; a new one begins without any state".to_owned()),
        _ => None,
    }
}

fn how_to_go_on(answer: &Map<String, Value>, again: &NextCall) -> String {
    let run = number(answer, "run");
    if is_true(answer, "waiting_for_input") {
        return format!(
            "To give it some, call {}; to stop it, {}.\n",
            again.input(run),
            again.interrupt(run)
        );
    }
    let goes_on = if queued(answer).is_some() { "It begins in its turn." } else { "It goes on." };
    format!(
        "{goes_on} To wait for it, call {}; to stop it, {}.\n",
        again.wait(run),
        again.interrupt(run)
    )
}

/// Returns the place in the queue, if the run is queued.
fn queued(answer: &Map<String, Value>) -> Option<String> {
    let queued = Queued::deserialize(answer.get("queued")?).ok()?;
    Some(clip(&queued.to_string(), SENTENCE))
}

fn parts(answer: &Map<String, Value>) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    if let Some(result) = answer.get("result").and_then(Value::as_str)
        && !is_printed(answer, result)
    {
        parts.push(Part { label: "result", text: settle(result).text });
    }
    for name in ["stdout", "stderr"] {
        parts.push(Part { label: name, text: stream(answer, name) });
    }
    if let Some(state) = answer.get("state") {
        let text = serde_json::to_string_pretty(state).unwrap_or_default();
        parts.push(Part { label: "state", text: Cow::Owned(bounded(text, LIMIT)) });
    }
    if let Some(entries) = answer.get("history").and_then(Value::as_array) {
        let text = bounded(history::lines(entries), LIMIT);
        parts.push(Part { label: "history", text: Cow::Owned(text) });
    }
    parts.retain(|part| !part.text.is_empty());
    parts
}

/// Returns a run's stream as text.
fn stream<'a>(answer: &'a Map<String, Value>, name: &str) -> Cow<'a, str> {
    let encoding = answer.get("encoding").and_then(|all| all.get(name));
    let cut = answer.get("truncated").and_then(|all| {
        let stream = all.get(name)?;
        Some(Cut { head: stream["head_bytes"].as_u64()?, total: stream["total_bytes"].as_u64()? })
    });
    match decoded(answer, name, encoding, cut) {
        Cow::Borrowed(text) => settle(text).text,
        Cow::Owned(text) => Cow::Owned(settle(&text).text.into_owned()),
    }
}

/// Whether a result is the same as stdout, as in a shell.
fn is_printed(answer: &Map<String, Value>, result: &str) -> bool {
    let stdout = answer.get("stdout").and_then(Value::as_str).unwrap_or_default();
    !result.is_empty() && stdout.trim_end_matches('\n') == result
}

fn end_line(text: &mut String) {
    if !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Where a stream is cut, and its total length.
#[derive(Clone, Copy)]
struct Cut {
    head: u64,
    total: u64,
}

/// Returns the text of a field. Base64 is decoded as far as it is text.
fn decoded<'a>(
    answer: &'a Map<String, Value>,
    name: &str,
    encoding: Option<&Value>,
    cut: Option<Cut>,
) -> Cow<'a, str> {
    let text = answer.get(name).and_then(Value::as_str).unwrap_or_default();
    if encoding.is_none_or(|encoding| encoding != "base64") {
        return Cow::Borrowed(text);
    }
    let bytes = STANDARD.decode(text).unwrap_or_default();
    let lossy = String::from_utf8_lossy(&bytes);
    let is_odd =
        |c: &char| *c == '\u{fffd}' || (c.is_control() && !"\n\r\t\u{8}\u{1b}".contains(*c));
    let odd = lossy.chars().filter(is_odd).count();
    if odd * 10 > lossy.chars().count() {
        let total = cut.map_or(bytes.len() as u64, |cut| cut.total);
        return Cow::Owned(format!("({total} bytes that are not text)"));
    }
    let head = cut.and_then(|cut| usize::try_from(cut.head).ok()).filter(|at| *at <= bytes.len());
    match head.map(|head| bytes.split_at(head)) {
        Some((head, tail)) => {
            let [head, tail] = [head, tail].map(String::from_utf8_lossy);
            Cow::Owned(format!("{head}\n[… left out …]\n{tail}"))
        }
        None => Cow::Owned(lossy.into_owned()),
    }
}

fn exit_code(answer: &Map<String, Value>) -> Option<i64> {
    answer.get("exitCode").or_else(|| answer.get("exit_code"))?.as_i64()
}

fn number(answer: &Map<String, Value>, name: &str) -> u64 {
    answer.get(name).and_then(Value::as_u64).unwrap_or(0)
}

fn is_true(answer: &Map<String, Value>, name: &str) -> bool {
    answer.get(name) == Some(&Value::Bool(true))
}

pub(super) fn duration(ms: f64) -> String {
    if ms < 1000.0 { format!("{ms:.0} ms") } else { format!("{:.1} s", ms / 1000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn told(answer: Value) -> String {
        let Value::Object(answer) = answer else { panic!("an object") };
        answer_text(&answer, &NextCall::runtime(Map::new()))
    }

    #[test]
    fn a_run_is_told_with_its_streams_apart() {
        let answer = json!({
            "success": false, "stdout": "\u{1b}[32mok\u{1b}[0m\n", "stderr": "bad", "exitCode": 2,
            "error": "exit code 2", "duration": 1234.5, "run": 7, "kernel": "kept",
        });
        assert_eq!(told(answer), "exit code 2 after 1.2 s (run 7)\nstdout:\nok\nstderr:\nbad");
    }

    #[test]
    fn what_an_agent_must_know_comes_first() {
        let answer = json!({
            "success": false, "stdout": "", "stderr": "", "exitCode": 130, "duration": 100, "run": 3,
            "error": "timed out after 0.1 s and was interrupted; the session's state is kept",
            "kernel": "restored", "as_of_run": 2, "new_session": true, "notes": ["a note"],
        });
        assert_eq!(
            told(answer),
            "exit code 130 after 100 ms (run 3)\n\
             error: timed out after 0.1 s and was interrupted; the session's state is kept\n\
             this is a new session: nothing is remembered from before\n\
             the interpreter is a new one, with the state as it was after run 2\n\
             a note\n(no output)"
        );
    }

    #[test]
    fn jobs_that_have_ended_are_told() {
        let answer = json!({"success": true, "stdout": "", "stderr": "", "exitCode": 0, "run": 3,
            "duration": 1, "jobs_ended": [
                {"pid": 40, "run": 3, "command": "nosuchserver", "exit_code": 127},
                {"pid": 41, "run": 2}]});
        assert_eq!(
            told(answer),
            "exit code 0 after 1 ms (run 3)\njob 40 (nosuchserver) has ended with exit code 127\n\
             job 41 of run 2 has ended\n(no output)"
        );
    }

    #[test]
    fn a_result_is_told_once() {
        let run = json!({"success": true, "stdout": "42\n", "stderr": "", "exitCode": 0, "run": 1, "duration": 1});
        let with = |result: &str| {
            let mut run = run.clone();
            run["result"] = result.into();
            told(run)
        };
        assert_eq!(with("42"), "exit code 0 after 1 ms (run 1)\nstdout:\n42");
        assert_eq!(with("7"), "exit code 0 after 1 ms (run 1)\nresult:\n7\nstdout:\n42");
    }

    #[test]
    fn a_run_that_goes_on_offers_what_can_be_done() {
        let again = NextCall::session("sess_1234");
        let Value::Object(answer) =
            json!({"stdout": "a\n", "stderr": "", "run": 4, "running": true})
        else {
            panic!("an object")
        };
        assert_eq!(
            answer_text(&answer, &again),
            "still running as run 4\nstdout:\na\nIt goes on. To wait for it, call \
             {\"session_id\":\"sess_1234\",\"run\":4}; to stop it, \
             {\"session_id\":\"sess_1234\",\"run\":4,\"interrupt\":true}."
        );
    }

    #[test]
    fn a_run_that_has_not_begun_says_what_it_waits_for() {
        let answer = json!({"stdout": "", "stderr": "", "run": 4, "running": true,
            "queued": {"place": 2, "behind": {"run": 2, "command": "make test"}}});
        assert_eq!(
            told(answer),
            "run 4 has not begun: queued at place 2, behind run 2 (make test)\nIt begins in its \
             turn. To wait for it, call {\"action\":\"exec\",\"run\":4}; to stop it, \
             {\"action\":\"interrupt\",\"run\":4}."
        );
    }

    #[test]
    fn a_run_that_waits_for_input_is_told_how_to_get_some() {
        let answer = json!({"stdout": "Name? ", "stderr": "", "run": 4, "running": true,
            "waiting_for_input": true});
        assert_eq!(
            told(answer),
            "run 4 waits for input\nstdout:\nName? \nTo give it some, call \
             {\"action\":\"input\",\"run\":4,\"input\":\"…\\n\"}; to stop it, \
             {\"action\":\"interrupt\",\"run\":4}."
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_not_shown() {
        let data = |bytes: &[u8]| {
            let answer = json!({"success": true, "stdout": STANDARD.encode(bytes), "stderr": "",
                "exitCode": 0, "run": 1, "duration": 0, "encoding": {"stdout": "base64"}});
            told(answer)
        };
        assert!(data(&[0, 255, 254, 1, 2, 0]).ends_with("stdout:\n(6 bytes that are not text)"));
        assert!(data(&[1, 2, 3, 4, 5]).ends_with("stdout:\n(5 bytes that are not text)"));
        assert!(data(b"na\xefve, but a text").ends_with("stdout:\nna\u{fffd}ve, but a text"));
    }

    #[test]
    fn the_last_line_is_what_a_watcher_sees() {
        assert_eq!(last_line(b"one\n 10%\r 90%\n\n").as_deref(), Some(" 90%"));
        assert_eq!(last_line(b"\n"), None);
    }

    proptest! {
        #![proptest_config(sessile_testkit::cases(256))]
        #[test]
        fn an_answer_is_as_long_as_it_may_be(
            out in "(\\PC|\n|\r|\x1b){0,2000}",
            err in "\\PC{0,2000}",
            error in "\\PC{0,3000}",
            running: bool,
        ) {
            let Value::Object(answer) = json!({"success": false, "stdout": out, "stderr": err,
                "exitCode": 1, "error": error, "run": 1, "duration": 2, "result": out,
                "running": running})
            else {
                panic!("an object")
            };
            let text = answer_text(&answer, &NextCall::runtime(Map::new()));
            let streams = 2 * out.chars().count() + err.chars().count();
            // The first lines and the last, and labels.
            prop_assert!(text.chars().count() <= streams + SENTENCE + 500);
        }
    }
}
