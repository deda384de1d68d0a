//! Shows a thread to people.

use crate::output;
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;

/// How much of a call or an outcome is shown: one line.
const LINE: usize = 160;

/// Shows an entry in a few lines.
pub(super) fn entry(entry: &Value, out: &mut impl Write) -> anyhow::Result<()> {
    match entry["type"].as_str() {
        Some("task") => writeln!(out, "task {}: {}", entry["task"], text(&entry["text"]))?,
        Some("reply") => {
            words(entry, out)?;
            calls(entry, out)?;
        }
        Some("outcome") => {
            let sign = if entry["is_error"] == true { "✗" } else { "✓" };
            writeln!(out, "  {sign} {}", line(text(&entry["text"])))?;
        }
        Some("continued") => {
            if let Some(note) = continuity(entry) {
                writeln!(out, "({note})")?;
            }
        }
        Some("summary") => writeln!(out, "(the conversation was summed up)")?,
        Some("rewound") => writeln!(out, "(taken back to step {})", entry["step"])?,
        Some("not_rewound") => writeln!(out, "(not taken back: {})", text(&entry["why"]))?,
        Some("session_rewound") => {
            writeln!(out, "(the session was taken back: {})", text(&entry["note"]))?;
        }
        Some("imported") => writeln!(out, "(moved here from {})", text(&entry["from_session"]))?,
        Some("moved") => {
            let (url, session) = (text(&entry["url"]), text(&entry["session_id"]));
            writeln!(out, "(moved to {url}, as {session})")?;
        }
        Some("activity") => activity(entry, out)?,
        Some("ended") => writeln!(out, "task {} ended: {}", entry["task"], text(&entry["ended"]))?,
        Some(_) | None => {}
    }
    Ok(())
}

/// Shows the text of a reply.
pub(super) fn words(entry: &Value, out: &mut impl Write) -> anyhow::Result<()> {
    for block in entry["blocks"].as_array().into_iter().flatten() {
        if block["type"] == "text" {
            writeln!(out, "{}", text(&block["text"]))?;
        }
    }
    Ok(())
}

/// Shows the rest of a reply's text, of which `shown` was shown already. Pieces may be
/// missing in it: they came before we connected, or while we were too slow.
pub(super) fn rest(entry: &Value, shown: &str, out: &mut impl Write) -> anyhow::Result<()> {
    if shown.is_empty() {
        return words(entry, out);
    }
    let blocks = entry["blocks"].as_array().into_iter().flatten();
    let whole: String =
        blocks.filter(|it| it["type"] == "text").map(|it| text(&it["text"])).collect();
    match whole.strip_prefix(shown) {
        Some(rest) => writeln!(out, "{rest}")?,
        None => {
            writeln!(out)?;
            words(entry, out)?;
        }
    }
    Ok(())
}

/// Shows the calls of a reply.
pub(super) fn calls(entry: &Value, out: &mut impl Write) -> anyhow::Result<()> {
    for block in entry["blocks"].as_array().into_iter().flatten() {
        if block["type"] == "call" {
            let input = block["input"].get("json").unwrap_or(&block["input"]);
            let what = ["command", "path", "pattern", "action"]
                .into_iter()
                .find_map(|name| input[name].as_str().map(str::to_owned))
                .unwrap_or_else(|| input.to_string());
            writeln!(out, "  → {}: {}", text(&block["tool"]), line(&what))?;
        }
    }
    Ok(())
}

/// Shows an activity of a command-line agent.
fn activity(entry: &Value, out: &mut impl Write) -> anyhow::Result<()> {
    match entry["activity"].as_str() {
        Some("text") => writeln!(out, "{}", text(&entry["text"]))?,
        Some("tool_call") => {
            writeln!(out, "  → {}: {}", text(&entry["tool"]), line(&entry["input"].to_string()))?;
        }
        Some("tool_result") => {
            let sign = if entry["is_error"] == true { "✗" } else { "✓" };
            writeln!(out, "  {sign} {}", line(text(&entry["text"])))?;
        }
        Some(_) | None => {}
    }
    Ok(())
}

/// Shows the result of a rewind.
pub(super) fn rewound(answer: &Value) -> anyhow::Result<ExitCode> {
    output::json(answer)?;
    Ok(ExitCode::SUCCESS)
}

/// Shows how a task ended, and how to go on.
pub(super) fn ending(view: &Value, agent: &str) {
    let spent = &view["spent"];
    let tokens =
        spent["input_tokens"].as_u64().unwrap_or(0) + spent["output_tokens"].as_u64().unwrap_or(0);
    let how = match view["ended"].as_str() {
        Some("done") => "done".to_owned(),
        Some("limit") => format!("stopped at its limit of {}", text(&view["limit"])),
        Some("failed") => format!("failed: {}", text(&view["failure"]["message"])),
        Some("refused") => "refused by the model".to_owned(),
        Some("cancelled") => "cancelled".to_owned(),
        Some(_) | None => "not over".to_owned(),
    };
    if let Some(note) = continuity(&view["continuity"]) {
        eprintln!("{note}");
    }
    eprintln!(
        "task {}: {how} ({}, {tokens} tokens); go on with: sessile agent run --agent {agent} …",
        view["task"],
        match spent["steps"].as_u64() {
            Some(1) => "1 step".to_owned(),
            steps => format!("{} steps", steps.unwrap_or(0)),
        }
    );
}

/// Returns what became of the session, unless it was live.
fn continuity(value: &Value) -> Option<String> {
    let status = value["status"].as_str().filter(|status| *status != "live")?;
    let lost = value["lost"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
    Some(match &lost[..] {
        [] => format!("the session was {status}"),
        lost => format!("the session was {status}; lost: {}", lost.join(", ")),
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn line(text: &str) -> String {
    let first = text.trim().lines().next().unwrap_or_default();
    // Control characters become blanks, because tabs, such as those behind line numbers,
    // separate words.
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = first.chars().take(LINE).map(plain).collect();
    if line.len() < text.trim().len() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_has_words_and_nothing_that_a_terminal_obeys() {
        assert_eq!(line("1\tprint(1)\n2\tprint(2)"), "1 print(1)…");
        assert_eq!(line("\u{1b}[2Jgone"), " [2Jgone");
    }

    #[test]
    fn what_was_not_shown_of_a_reply_is_added() {
        let entry =
            json!({"blocks": [{"type": "text", "text": "it is "}, {"type": "text", "text": "42"}]});
        let rest = |shown: &str| {
            let mut out = Vec::new();
            rest(&entry, shown, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(rest("it is 42"), "\n");
        assert_eq!(rest("it is"), " 42\n");
        assert_eq!(rest("is 42"), "\nit is \n42\n", "the beginning was missed");
        assert_eq!(rest(""), "it is \n42\n");
    }
}
