//! Shows a thread to people.

use crate::display::words::{cut, width};
use crate::display::{Colour, Page};
use crate::output;
use serde_json::Value;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// As much of a call or an outcome as is shown of it, where there is room.
const LINE: usize = 160;

/// An entry in a few lines.
pub(super) fn entry(entry: &Value, page: Page, out: &mut impl Write) -> anyhow::Result<()> {
    match entry["type"].as_str() {
        Some("task") => writeln!(out, "task {}: {}", entry["task"], spoken(text(&entry["text"])))?,
        Some("reply") => {
            words(entry, out)?;
            calls(entry, page, out)?;
        }
        Some("outcome") => outcome(entry, page, out)?,
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
        Some("activity") => activity(entry, page, out)?,
        Some("ended") => writeln!(out, "task {} ended: {}", entry["task"], text(&entry["ended"]))?,
        Some(_) | None => {}
    }
    Ok(())
}

/// Shows the text of a reply.
pub(super) fn words(entry: &Value, out: &mut impl Write) -> anyhow::Result<()> {
    for block in entry["blocks"].as_array().into_iter().flatten() {
        if block["type"] == "text" {
            writeln!(out, "{}", spoken(text(&block["text"])))?;
        }
    }
    Ok(())
}

/// Words of a model. A terminal does not obey what is in them.
pub(super) fn spoken(words: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() { harmless(words) } else { words.into() }
}

fn harmless(words: &str) -> Cow<'_, str> {
    let is_harmful = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if words.contains(is_harmful) { words.replace(is_harmful, " ").into() } else { words.into() }
}

/// The words of a reply of which these were shown already: some may have come before we
/// did, or while we were late.
pub(super) fn rest(entry: &Value, shown: &str, out: &mut impl Write) -> anyhow::Result<()> {
    if shown.is_empty() {
        return words(entry, out);
    }
    let blocks = entry["blocks"].as_array().into_iter().flatten();
    let whole: String =
        blocks.filter(|it| it["type"] == "text").map(|it| text(&it["text"])).collect();
    match whole.strip_prefix(shown) {
        Some(rest) => writeln!(out, "{}", spoken(rest))?,
        None => {
            writeln!(out)?;
            words(entry, out)?;
        }
    }
    Ok(())
}

/// What a reply wants to be done.
pub(super) fn calls(entry: &Value, page: Page, out: &mut impl Write) -> anyhow::Result<()> {
    for block in entry["blocks"].as_array().into_iter().flatten() {
        if block["type"] == "call" {
            call(text(&block["tool"]), &input_of(block), page, out)?;
        }
    }
    Ok(())
}

/// What a call is about.
fn input_of(block: &Value) -> String {
    let input = block["input"].get("json").unwrap_or(&block["input"]);
    let what = ["command", "path", "pattern", "action"].into_iter();
    let what = what.filter_map(|name| input[name].as_str()).next();
    what.map_or_else(|| input.to_string(), str::to_owned)
}

/// Asks about a call of a reply. Which one it is matters where there are several.
pub(super) fn question(reply: &Value, call: &Value, page: Page) -> String {
    let (before, after) = ("  carry this out? ", " [y/N] ");
    let mut blocks = reply["blocks"].as_array().into_iter().flatten();
    let what = blocks.find(|block| block["type"] == "call" && block["id"] == *call);
    let what = what.map(|block| format!("{}: {}", text(&block["tool"]), input_of(block)));
    let room = room(before, page).saturating_sub(width(after));
    format!("{before}{}{after}", line(&what.unwrap_or_default(), room))
}

fn call(tool: &str, what: &str, page: Page, out: &mut impl Write) -> anyhow::Result<()> {
    let before = format!("  → {}: ", line(tool, LINE));
    let what = line(what, room(&before, page));
    writeln!(out, "{}{what}", page.paint.text(Colour::Cyan, &before))?;
    Ok(())
}

/// The outcome of a call.
fn outcome(entry: &Value, page: Page, out: &mut impl Write) -> anyhow::Result<()> {
    let (sign, colour) = match entry["is_error"] == true {
        true => ("✗", Colour::Red),
        false => ("✓", Colour::Green),
    };
    let what = line(text(&entry["text"]), room("  ✓ ", page));
    writeln!(out, "  {} {what}", page.paint.text(colour, sign))?;
    Ok(())
}

/// What is left of a line behind its beginning.
fn room(before: &str, page: Page) -> usize {
    page.width.saturating_sub(width(before)).min(LINE)
}

/// What a command-line agent does.
fn activity(entry: &Value, page: Page, out: &mut impl Write) -> anyhow::Result<()> {
    match entry["activity"].as_str() {
        Some("text") => writeln!(out, "{}", spoken(text(&entry["text"])))?,
        Some("tool_call") => {
            call(text(&entry["tool"]), &entry["input"].to_string(), page, out)?;
        }
        Some("tool_result") => outcome(entry, page, out)?,
        Some(_) | None => {}
    }
    Ok(())
}

/// Shows the result of a rewind.
pub(super) fn rewound(answer: &Value) -> anyhow::Result<ExitCode> {
    output::json(answer)?;
    Ok(ExitCode::SUCCESS)
}

/// How a task ended, and how to go on with its agent, unless whoever reads it does that
/// anyway.
pub(super) fn ending(view: &Value, agent: Option<&str>) {
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
    let steps = match spent["steps"].as_u64() {
        Some(1) => "1 step".to_owned(),
        steps => format!("{} steps", steps.unwrap_or(0)),
    };
    let how = format!("task {}: {how} ({steps}, {tokens} tokens)", view["task"]);
    match agent {
        Some(agent) => eprintln!("{how}; go on with: sessile agent run --agent {agent} …"),
        None => eprintln!("{how}"),
    }
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

/// The first line of a text, in so many columns, with a sign where something is missing.
fn line(text: &str, room: usize) -> String {
    let text = text.trim();
    let first = text.lines().next().unwrap_or_default();
    // Tabs, such as those behind line numbers, hold words apart.
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = first.chars().map(plain).collect();
    if first.len() < text.len() {
        line.push('…');
    }
    cut(&line, room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_has_words_and_nothing_that_a_terminal_obeys() {
        assert_eq!(line("1\tprint(1)\n2\tprint(2)", LINE), "1 print(1)…");
        assert_eq!(line("\u{1b}[2Jgone", LINE), " [2Jgone");
        assert_eq!(line("日本語 text", 6), "日本…");
        assert_eq!(harmless("one\n\ttwo \u{1b}[2J"), "one\n\ttwo  [2J");
    }

    #[test]
    fn a_question_says_which_call_it_is_about() {
        let reply = json!({"blocks": [
            {"type": "call", "id": "a", "tool": "runtime", "input": {"json": {"command": "ls"}}},
            {"type": "call", "id": "b", "tool": "write_file", "input": {"json": {"path": "a.txt"}}},
        ]});
        let page = |width| Page { width, paint: crate::display::Paint::Plain };
        let asked = |width| question(&reply, &json!("b"), page(width));
        assert_eq!(asked(80), "  carry this out? write_file: a.txt [y/N] ");
        assert_eq!(asked(35), "  carry this out? write_fil… [y/N] ");
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
