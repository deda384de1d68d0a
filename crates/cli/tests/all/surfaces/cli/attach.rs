//! A person at the keyboard of a live session.

use serde_json::Value;
use sessile_testkit::{Harness, Session, Tty, harness, until};

const SIZE: (u16, u16) = (100, 30);

/// A person at the prompt of a session.
#[track_caller]
fn attach(h: &Harness, s: &Session<'_>, options: &[&str]) -> Tty {
    let mut person = h.tty(&[&["attach", s.id()], options].concat(), SIZE);
    person.shows(&format!("attached to {}", s.id()));
    person
}

/// Waits for the prompt.
#[track_caller]
fn at_prompt(person: &mut Tty) {
    person.until("the prompt", |lines| {
        let last = lines.iter().rfind(|line| !line.is_empty());
        last.is_some_and(|line| [" $", " >>>", " >"].iter().any(|sign| line.ends_with(sign)))
    });
}

/// Types a line at the prompt and waits until this line is on the screen.
#[track_caller]
fn type_line(person: &mut Tty, line: &str, shown: &str) {
    at_prompt(person);
    person.press(&format!("{line}\r"));
    person.until(shown, |lines| lines.iter().any(|line| line == shown));
}

#[track_caller]
fn leave(mut person: Tty) {
    person.press("\x1d");
    let (code, _) = person.finish();
    assert_eq!(code, Some(0));
    assert!(person.is_restored());
}

fn commands(s: &Session<'_>) -> Vec<String> {
    let history = s.history();
    let entries = history.as_array().unwrap().iter();
    entries.map(|entry| entry["command"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_agent_and_the_person_share_one_shell() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash", "zsh"]) {
        let s = h.session_of(shell);
        s.run("cd /; x=41; greet() { echo \"hi $1\"; }");
        let mut person = attach(&h, &s, &[]);
        person.shows("/ $");
        type_line(&mut person, "greet $((x+1))", "hi 42");
        type_line(&mut person, "y=7; cd /tmp; stty size", "30 100");
        s.run("echo $y; pwd").prints("7\n/tmp\n").is_kept();
        // What the agent runs is shown above the prompt.
        person.shows("echo $y; pwd");
        person.shows("| 7");
        assert_eq!(
            commands(&s)[1..],
            ["greet $((x+1))", "y=7; cd /tmp; stty size", "echo $y; pwd"],
            "{shell}"
        );
        leave(person);
        s.run("echo $y").prints("7\n").is_kept();
    }
}

#[test]
fn lines_are_edited_completed_and_remembered() {
    let h = harness!();
    let s = h.session();
    s.run("a_function_of_ours() { echo called; }");
    std::fs::write(h.path("some-file.txt"), "text\n").unwrap();
    let mut person = attach(&h, &s, &[]);
    at_prompt(&mut person);
    // In the middle of the line, as in any editor.
    person.press("ecXo moved\x01\x1b[C\x1b[C\x1b[3~h\r");
    person.until("an edited line", |lines| lines.iter().any(|line| line == "moved"));
    at_prompt(&mut person);
    person.press("a_fun\t\r");
    person.until("a completed command", |lines| lines.iter().any(|line| line == "called"));
    at_prompt(&mut person);
    person.press("cat some-f\t\r");
    person.until("a completed file", |lines| lines.iter().any(|line| line == "text"));
    at_prompt(&mut person);
    // Back in the history, to what the agent ran as well.
    person.press("\x1b[A\x1b[A\x1b[A\x1b[A");
    person.shows("$ a_function_of_ours() { echo called; }");
    person.press("\x03");
    at_prompt(&mut person);
    // A line that is not complete goes on in the next.
    person.press("for i in 1 2\r");
    person.press("do echo \"number $i\"; done\r");
    person.until("a loop", |lines| lines.iter().any(|line| line == "number 2"));
    leave(person);
}

#[test]
fn programs_are_interrupted_stopped_and_brought_back() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash", "zsh"]) {
        let s = h.session_of(shell);
        let mut person = attach(&h, &s, &[]);
        type_line(&mut person, "sh -c 'echo sleeps; exec sleep 1000'", "sleeps");
        person.press("\x03");
        person.shows("[130]");
        type_line(&mut person, "sh -c 'echo reads; exec cat'", "reads");
        person.press("\x1a");
        person.shows(if shell == "zsh" { "suspended" } else { "Stopped" });
        at_prompt(&mut person);
        person.press("fg\r");
        // zsh says what it does, and the others with what.
        let told = if shell == "zsh" { "continued  sh -c" } else { "sh -c" };
        person.until("cat again", |lines| {
            let after = lines.iter().skip_while(|line| !line.ends_with("$ fg")).skip(1);
            after.into_iter().any(|line| line.contains(told) && line.contains("exec cat"))
        });
        person.press("back again\r");
        person.until("an echo", |lines| lines.iter().filter(|l| *l == "back again").count() == 2);
        person.press("\x04");
        type_line(&mut person, "echo \"status $?\"", "status 0");
        leave(person);
    }
}

#[test]
fn a_person_leaves_a_program_and_another_finds_it() {
    let h = harness!();
    let s = h.session();
    let mut person = attach(&h, &s, &[]);
    at_prompt(&mut person);
    person.press("vim -u NONE -N found.txt\r");
    person.shows("found.txt");
    person.press("ione line");
    person.shows("one line");
    leave(person);
    let running = s.sessile("runs").json();
    assert_eq!(running[0]["phase"], "running");
    // The next one comes right into it, at another size.
    let mut other = h.tty(&["attach", s.id()], (60, 12));
    other.until("the program", |lines| lines[0] == "one line" && lines[10] == "~");
    other.press("\x1b:wq\r");
    type_line(&mut other, "cat found.txt", "one line");
    leave(other);
}

#[test]
fn a_person_takes_over_an_agents_program() {
    let h = harness!();
    let s = h.session();
    let run = s.run_with(&["--pty", "--background", "--timeout", "0"], "python3 -q").run();
    let mut person = h.tty(&["attach", s.id(), "--run", &run.to_string()], SIZE);
    person.shows(">>>");
    person.press("taken = 'over'\r");
    person.press("print(taken.upper())\r");
    person.until("an answer", |lines| lines.iter().any(|line| line == "OVER"));
    leave(person);
    // The agent goes on where the person left.
    let keys = ["keys", s.id(), "1", "print(taken)<Enter>", "--wait-for", "^over$"];
    assert_eq!(h.sessile(&keys).json()["wait"], "matched");
    h.sessile(&["attach", s.id()]).exits(1);
}

#[test]
fn a_new_size_of_the_window_reaches_the_program() {
    let h = harness!();
    let s = h.session();
    let mut person = attach(&h, &s, &[]);
    type_line(&mut person, "echo ready; while read -r _; do stty size; done", "ready");
    person.press("\r");
    person.until("the first size", |lines| lines.iter().any(|line| line == "30 100"));
    person.resize(70, 20);
    until("the new size", || {
        person.press("\r");
        person.screen().iter().any(|line| line == "20 70").then_some(())
    });
    person.press("\x04");
    person.shows("$");
    leave(person);
}

#[test]
fn a_killed_person_harms_nothing() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    let mut person = attach(&h, &s, &[]);
    at_prompt(&mut person);
    person.press("x=2; sh -c 'echo runs; read -r answer; echo \"got $answer\"'\r");
    person.until("a program", |lines| lines.iter().any(|line| line == "runs"));
    let run = commands(&s).len() as u64 + 1;
    person.process().kill();
    assert_eq!(person.finish().0, None);
    drop(person);
    // The program still has its terminal, and gets its answer from elsewhere.
    let run = run.to_string();
    let wait = ["keys", s.id(), &run, "on<Enter>", "--wait-for", "^got on$", "--timeout", "30s"];
    assert_eq!(h.sessile(&wait).json()["wait"], "matched");
    s.run("echo $x").prints("2\n").is_kept();
}

#[test]
fn several_watch_and_nothing_that_they_type_gets_in() {
    let h = harness!();
    let s = h.session();
    let watchers = [SIZE, (80, 24)].map(|size| {
        let mut watcher = h.tty(&["attach", s.id(), "--read-only"], size);
        watcher.shows(&format!("watching {}", s.id()));
        watcher
    });
    let [mut one, mut two] = watchers;
    one.press("echo intruder\r");
    s.run("echo seen by all").prints("seen by all\n");
    for watcher in [&mut one, &mut two] {
        watcher.shows("| seen by all");
        watcher.shows("exit 0");
    }
    let run = s.run_with(&["--pty", "--background", "--timeout", "0"], "vim -u NONE").run();
    let run = run.to_string();
    h.sessile(&["keys", s.id(), &run, "idrawn<Esc>"]).exits(0);
    for watcher in [&mut one, &mut two] {
        watcher.until("the program's screen", |lines| lines.iter().any(|line| line == "drawn"));
    }
    h.sessile(&["keys", s.id(), &run, ":q!<Enter>"]).exits(0);
    s.run("echo and after").prints("and after\n");
    for watcher in [&mut one, &mut two] {
        watcher.shows("| and after");
    }
    one.press("q");
    assert_eq!(one.finish().0, Some(0));
    assert!(one.is_restored());
    leave(two);
    let texts: Vec<Value> = s.history().as_array().unwrap().clone();
    assert!(texts.iter().all(|entry| !entry["command"].as_str().unwrap().contains("intruder")));
}

#[test]
fn a_command_waits_for_the_agents_and_can_be_taken_back() {
    let h = harness!();
    let s = h.session();
    h.sessile(&["run", "mkfifo go"]).exits(0);
    s.run_with(&["--background", "--timeout", "0"], "read -r _ <go; echo agent");
    let mut person = attach(&h, &s, &[]);
    at_prompt(&mut person);
    person.press("echo mine\r");
    person.shows("waiting for run 1");
    person.press("\x03");
    person.shows("interrupted before it began");
    at_prompt(&mut person);
    person.press("echo mine again\r");
    std::fs::write(h.path("go"), "\n").unwrap();
    person.until("both", |lines| lines.iter().any(|line| line == "mine again"));
    leave(person);
    assert!(!commands(&s).contains(&"echo mine".to_owned()));
}

#[test]
fn python_and_node_are_spoken_to_as_well() {
    let h = harness!();
    let s = h.session();
    s.run_in("python", "import math; r = 2");
    let mut person = attach(&h, &s, &["--language", "python"]);
    type_line(&mut person, "math.floor(math.pi * r ** 2)", "12");
    at_prompt(&mut person);
    person.press("def double(n):\r    return 2 * n\r\r");
    type_line(&mut person, "double(21)", "42");
    leave(person);
    s.run_in("python", "double(4)").exits(0).has("result", "8");
    let mut person = attach(&h, &s, &["--language", "node"]);
    type_line(&mut person, "const a = [1, 2, 3]; a.map((n) => n * n).join('+')", "'1+4+9'");
    leave(person);
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let h = harness!();
    let s = h.session();
    let refused = h.sessile(&["attach", s.id()]).exits(1);
    assert!(refused.errors().contains("sessile logs --follow"), "{}", refused.errors());
    let mut person = h.tty(&["attach", "sess_nobody"], SIZE);
    assert_eq!(person.finish().0, Some(1));
    let mut person = attach(&h, &s, &[]);
    at_prompt(&mut person);
    person.press("echo at the prompt");
    person.shows("at the prompt");
    s.end();
    person.shows("the session is ");
    person.press("\r");
    let (code, _) = person.finish();
    assert_eq!(code, Some(1));
}

#[test]
fn what_is_typed_ahead_is_run_next() {
    let h = harness!();
    let s = h.session();
    h.sessile(&["run", "mkfifo go"]).exits(0);
    let mut person = attach(&h, &s, &[]);
    type_line(&mut person, "echo waits; : <go", "waits");
    // None of this is for the program that runs.
    person.press("for i in 1 2\rdo echo \"typed $i\"; done\recho half");
    person.shows("echo half");
    std::fs::write(h.path("go"), "").unwrap();
    person.until("the next line", |lines| lines.iter().any(|line| line == "typed 2"));
    person.shows("$ echo half");
    person.press(" a line\r");
    person.until("the last line", |lines| lines.iter().any(|line| line == "half a line"));
    at_prompt(&mut person);
    leave(person);
}
