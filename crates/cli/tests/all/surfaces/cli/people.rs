//! What commands show at a terminal, to people.

use serde_json::Value;
use sessile_testkit::{Harness, Tty, harness, needs};
use std::path::Path;
use std::process::Command;

const SIZE: (u16, u16) = (80, 24);

/// What a command leaves on the screen, and its exit code.
fn shown(h: &Harness, args: &[&str], size: (u16, u16)) -> (Option<i32>, Vec<String>) {
    let mut tty = h.tty(args, size);
    let code = tty.finish().0;
    let mut screen = tty.screen();
    while screen.last().is_some_and(String::is_empty) {
        screen.pop();
    }
    (code, screen)
}

/// The same, byte by byte.
fn written(h: &Harness, args: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = h.command(args);
    command.env_remove("NO_COLOR").envs(variables.iter().copied());
    Tty::spawn(command, SIZE).finish().1
}

/// The words of a table but for how long ago things were, which changes meanwhile.
fn without_ages(screen: &[String]) -> Vec<Vec<&str>> {
    let mut rows: Vec<Vec<&str>> =
        screen.iter().map(|line| line.split_whitespace().collect()).collect();
    for row in &mut rows {
        if let Some(ago) = row.iter().position(|word| *word == "ago") {
            row.remove(ago - 1);
        }
    }
    rows
}

#[test]
fn exec_shows_the_output_the_value_and_one_line_about_the_rest() {
    let h = harness!();
    let s = h.session();
    let exec = |text: &str| shown(&h, &["exec", s.id(), "--", text], SIZE);
    assert_eq!(exec("echo out; echo err >&2"), (Some(0), vec!["out".into(), "err".into()]));
    let (code, screen) = exec("printf half; (exit 7)");
    assert_eq!((code, screen[0].as_str(), screen.len()), (Some(7), "half", 2), "{screen:?}");
    assert!(screen[1].starts_with("run 2: exit 7 after "), "{screen:?}");
    let (code, screen) = exec("x=1; exit 5");
    assert_eq!((code, screen.len()), (Some(5), 1), "{screen:?}");
    assert!(screen[0].ends_with("; bash was restarted with its state"), "{screen:?}");
    assert_eq!(exec("echo $x"), (Some(0), vec!["1".into()]));
    let python = ["exec", s.id(), "--language", "python", "--", "print('a', end=''); 6 * 7"];
    assert_eq!(shown(&h, &python, SIZE), (Some(0), vec!["a".into(), "42".into()]));
}

#[test]
fn exec_passes_the_output_on_while_the_command_runs() {
    let h = harness!();
    let s = h.session();
    s.run("mkfifo go");
    let text = "echo before; read -r _ <go; echo after";
    let mut tty = h.tty(&["exec", s.id(), "--", text], SIZE);
    tty.shows("before");
    tty.press("\x03");
    let (code, _) = tty.finish();
    assert_eq!(code, Some(130));
    let screen = tty.screen();
    assert!(screen.iter().any(|line| line.ends_with(", interrupted")), "{screen:?}");
    assert!(!screen.iter().any(|line| line.contains("after ↵")), "{screen:?}");
}

#[test]
fn a_run_that_goes_on_is_told_with_how_to_see_more() {
    let h = harness!();
    let s = h.session();
    s.run("mkfifo go");
    let id = s.id();
    let text = "echo one; read -r _ <go";
    let wide = (200, 24);
    let (code, screen) = shown(&h, &["exec", id, "--background", "--", text], wide);
    let told = format!("run 2 goes on; see: sessile output {id} 2 --follow");
    assert_eq!((code, screen.last()), (Some(0), Some(&told)));
    std::fs::write(h.path("go"), "\n").unwrap();
    let text = "printf 'name? '; read -r name; echo hi $name";
    let (code, screen) = shown(&h, &["exec", id, "--interactive", "--", text], wide);
    let told = format!("run 3 waits for input; give it some with: sessile input {id} 3");
    assert_eq!((code, screen), (Some(0), vec!["name?".into(), told]));
    let (_, screen) = shown(&h, &["exec", id, "-l", "sh", "--pty", "--", "cat"], wide);
    let told = format!("run 4 goes on in its own terminal; see: sessile screen {id} 4");
    assert_eq!(screen, [told]);
    h.sessile(&["interrupt", id, "--run", "4"]).exits(0);
    let (code, screen) =
        shown(&h, &["exec", id, "-l", "sh", "--pty", "--", "tty >f; echo hi"], wide);
    assert_eq!((code, screen[0].as_str()), (Some(0), "hi"), "{screen:?}");
}

#[test]
fn lists_are_tables_in_colour_and_json_if_that_is_asked_for() {
    let h = harness!();
    let s = h.session_with(&["--name", "web"]);
    s.run("echo one");
    s.run("(exit 3)");
    let (_, screen) = shown(&h, &["runs", "web"], SIZE);
    assert!(screen[0].starts_with("RUN  STATE "), "{screen:?}");
    assert!(screen[1].starts_with("  1  exit 0") && screen[1].ends_with("echo one"), "{screen:?}");
    assert!(screen[2].starts_with("  2  exit 3") && screen[2].ends_with("(exit 3)"), "{screen:?}");
    let (_, history) = shown(&h, &["history", "web"], SIZE);
    assert_eq!(without_ages(&history), without_ages(&screen));
    let (_, screen) = shown(&h, &["list"], SIZE);
    let words: Vec<&str> = screen[1].split_whitespace().collect();
    assert_eq!(words[1..5], ["web", "active", "bash", "2"], "{screen:?}");
    assert!(s.id().starts_with(words[0]), "{screen:?}");
    s.run("x=41; cd /usr; export STAGE=test");
    let (_, screen) = shown(&h, &["state", "web"], SIZE);
    for part in [" web, active", "directory    /usr", "x = 41", "environment  STAGE = test"] {
        assert!(screen.iter().any(|line| line.contains(part)), "{part} in {screen:?}");
    }
    for command in ["runs", "history", "state", "jobs", "checkpoints"] {
        let json = written(&h, &[command, "web", "--json"], &[]);
        let value: Value = serde_json::from_str(&json).expect(command);
        assert!(value.is_array() || value.is_object(), "{value}");
        assert!(written(&h, &[command, "web"], &[("NO_COLOR", "1")]).find('\x1b').is_none());
        assert!(written(&h, &[command, "web"], &[("TERM", "dumb")]).find('\x1b').is_none());
    }
    let json = written(&h, &["exec", "web", "--json", "--", "false"], &[]);
    assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON")["exit_code"], 1);
    assert!(written(&h, &["runs", "web"], &[]).contains("\x1b[31mexit 3\x1b[0m"));
}

#[test]
fn tables_are_no_wider_than_the_terminal() {
    let h = harness!();
    let s = h.session_with(&["--name", "日本語"]);
    s.run("# 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語\necho \x1b[31m");
    for columns in [40, 80, 200] {
        for args in [&["list"][..], &["runs", s.id()], &["state", s.id()]] {
            let lines = |size| shown(&h, args, size).1.len();
            // A line that was too long would be wrapped.
            assert_eq!(lines((columns, 50)), lines((1000, 50)), "{args:?} at {columns}");
        }
    }
}

#[test]
fn the_picture_of_the_readme_is_drawn_by_its_script() {
    if !needs::has_program("node") {
        return;
    }
    let h = harness!();
    let binary = Path::new(env!("CARGO_BIN_EXE_sessile")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut command = Command::new(docs.join("picture.sh"));
    command.arg(h.path("session.svg")).current_dir(h.root()).env("PATH", path);
    command.env("TMPDIR", h.root());
    for (name, value) in h.command(&[]).get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let drawn = command.output().unwrap();
    assert!(drawn.status.success() && drawn.stderr.is_empty(), "{drawn:?}");
    let [new, kept] = [h.path("session.svg"), docs.join("session.svg")]
        .map(|file| std::fs::read_to_string(file).unwrap());
    for word in ["12.566370614359172", "restarted", "LANGUAGE", "list.map(n"] {
        assert!(new.contains(word) && kept.contains(word), "{word}");
    }
}
