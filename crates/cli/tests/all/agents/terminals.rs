//! Agents at a terminal.

use super::{exec, harness, serve, text};
use sessile_testkit::{Format, ModelServer, Tty};

/// Waits for the prompt in the last line that is not empty.
#[track_caller]
fn prompts(terminal: &mut Tty) {
    terminal.until("a prompt", |lines| {
        lines.iter().rev().find(|line| !line.is_empty()).is_some_and(|line| line == ">")
    });
}

#[test]
fn a_chat_takes_one_task_after_the_other() {
    let script = vec![exec("echo one"), text("that was one"), text("that was two")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let _server = serve(&h, &model);
    let mut terminal = h.tty(&["agent", "chat", "--checkpoints", "0"], (120, 30));
    prompts(&mut terminal);
    // A line can be edited, and dropped.
    terminal.press("nonsense\u{3}");
    terminal.until("the next line", |lines| lines.get(2).is_some_and(|line| line == ">"));
    terminal.press("counX\u{7f}t\r");
    terminal.shows("→ runtime: echo one");
    terminal.shows("that was one");
    terminal.shows("task 1: done (2 steps, 220 tokens)");
    prompts(&mut terminal);
    // The arrow has the last task.
    terminal.press("\u{1b}[A");
    terminal.shows("> count");
    terminal.press("\r");
    terminal.shows("task 2: done (1 step, 110 tokens)");
    prompts(&mut terminal);
    terminal.press("\u{4}");
    let (code, shown) = terminal.finish();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("go on with: sessile agent chat --agent sess_"), "{shown}");
    let tasks: Vec<_> =
        model.requests().iter().map(|asked| asked.body["messages"][1]["content"].clone()).collect();
    assert_eq!(tasks, ["count", "count", "count"]);
}

#[test]
fn an_interrupt_in_a_chat_cancels_the_task_and_not_the_chat() {
    let script = vec![exec("touch begun; sleep 1000"), exec("echo more"), text("I go on")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let _server = serve(&h, &model);
    let args = ["agent", "chat", "--checkpoints", "0", "--approve", "runtime"];
    let mut terminal = h.tty(&args, (120, 30));
    prompts(&mut terminal);
    terminal.press("wait\r");
    terminal.shows("carry this out?");
    terminal.press("y\r");
    h.wait_for_file("begun");
    terminal.press("\u{3}");
    terminal.shows("task 1: cancelled");
    prompts(&mut terminal);
    // At a question, too.
    terminal.press("again\r");
    terminal.until("a second question", |lines| {
        lines.iter().filter(|line| line.contains("carry this out?")).count() == 2
    });
    terminal.press("\u{3}");
    terminal.shows("task 2: cancelled");
    prompts(&mut terminal);
    terminal.press("and now?\r");
    terminal.shows("I go on");
    terminal.shows("task 3: done");
    prompts(&mut terminal);
    terminal.press("\u{4}");
    let (code, shown) = terminal.finish();
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn agents_are_a_table_at_a_terminal() {
    let model = ModelServer::start(Format::Chat, vec![text("done")]);
    let h = harness();
    let _server = serve(&h, &model);
    assert_eq!(
        h.at_a_terminal(&["agent", "list"]).lines().next(),
        Some("No agents. Make one with: sessile agent run 'TASK'",)
    );
    h.sessile(&["agent", "run", "begin"]).exits(0);
    let table = h.at_a_terminal(&["agent", "list"]);
    let heads: Vec<_> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(heads[..2], ["AGENT", "STATUS"], "{table}");
    let list = h.sessile(&["agent", "list"]).exits(0).json();
    let id = list[0]["session_id"].as_str().unwrap();
    assert!(table.contains("idle"), "{table}");
    h.sessile(&["end", id]).exits(0);
    assert!(h.at_a_terminal(&["agent", "list"]).contains("ended"));
}

#[test]
fn words_of_a_model_do_not_control_the_terminal() {
    let model = ModelServer::start(Format::Chat, vec![text("a\u{1b}[2Jb\tc")]);
    let h = harness();
    let _server = serve(&h, &model);
    let mut terminal = h.tty(&["agent", "run", "speak"], (120, 30));
    let (code, shown) = terminal.finish();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("a [2Jb\tc"), "{shown:?}");
    // Where no terminal is, they are as they came.
    h.sessile(&["agent", "run", "speak"]).exits(0).prints("a\u{1b}[2Jb\tc\n");
}
