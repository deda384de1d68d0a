//! The Tab key in real shells.

use sessile_testkit::{Harness, Tty, harness, needs};
use std::path::Path;
use std::process::Command;

const SIZE: (u16, u16) = (100, 30);

/// A shell at a terminal that has read our script, with `ready> ` as its prompt.
fn shell(h: &Harness, program: &str, arguments: &[&str], script: &str) -> Tty {
    let binary = Path::new(env!("CARGO_BIN_EXE_sessile")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(h.root()).env("PATH", path);
    for (name, value) in h.command(&[]).get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env("HOME", h.root()).env("HISTFILE", "");
    std::fs::write(h.path("script"), script).unwrap();
    let mut tty = Tty::spawn(command, SIZE);
    tty.press(". ./script; PS1='rea''dy> '\r");
    tty.until("a prompt", |lines| lines.iter().any(|line| line == "ready>"));
    tty
}

/// What is typed becomes this line; then it is given up.
#[track_caller]
fn completes(tty: &mut Tty, typed: &str, line: &str) {
    tty.press(typed);
    tty.press("\t");
    let wanted = format!("ready> {line}");
    tty.until(&wanted, |lines| lines.contains(&wanted));
    // Not Ctrl-C: that would throw away what is typed after it.
    tty.press("\x15\x0c");
    tty.until("a clear screen", |lines| {
        lines[0] == "ready>" && lines[1..].iter().all(String::is_empty)
    });
}

fn try_all(h: &Harness, tty: &mut Tty) {
    let s = h.session_with(&["--name", "web"]);
    let other = h.session();
    let old = h.session_with(&["--name", "website"]);
    old.end();
    s.run("echo one");
    h.sessile(&["checkpoint", "web", "--name", "before-lunch"]).exits(0);
    completes(tty, "sessile histo", "sessile history");
    completes(tty, "sessile exec --no-out", "sessile exec --no-output-timeout");
    completes(tty, "sessile exec w", "sessile exec web");
    completes(tty, "sessile logs websi", "sessile logs website");
    completes(tty, "sessile exec ses", &format!("sessile exec {}", other.id()));
    completes(tty, &format!("sessile exec {}", &s.id()[..12]), &format!("sessile exec {}", s.id()));
    completes(tty, "sessile output web ", "sessile output web 1");
    completes(tty, "sessile rewind web bef", "sessile rewind web before-lunch");
    completes(tty, "sessile exec web --language py", "sessile exec web --language python");
    completes(tty, "sessile start --from w", "sessile start --from web");
    completes(tty, "sessile exec @", "sessile exec @last");
    completes(tty, "sessile exec @la", "sessile exec @last");
    completes(tty, "sessile exec @last --langu", "sessile exec @last --language");
    h.sessile(&["rename", "web", "compute"]).exits(0);
    completes(tty, "sessile cp comp", "sessile cp compute:");
    completes(tty, "sessile cp compute:a comp", "sessile cp compute:a compute:");
    completes(tty, "sessile files cat comp", "sessile files cat compute:");
    other.end();
    // What has ended is not run in: there is one id left.
    completes(tty, "sessile exec sess_", &format!("sessile exec {}", s.id()));
}

#[test]
fn bash_completes_sessions_runs_and_checkpoints() {
    let h = harness!();
    let script = h.sessile(&["completions", "bash"]).exits(0).text();
    let mut bash = shell(&h, "bash", &["--noprofile", "--norc", "-i"], &script);
    try_all(&h, &mut bash);
}

#[test]
fn zsh_completes_sessions_runs_and_checkpoints() {
    if !needs::has_program("zsh") {
        return;
    }
    let h = harness!();
    // Where people put it: a file that is read at the first completion.
    let script = h.sessile(&["completions", "zsh"]).exits(0).text();
    std::fs::create_dir(h.path("functions")).unwrap();
    std::fs::write(h.path("functions/_sessile"), script).unwrap();
    let start = "fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -D";
    let mut zsh = shell(&h, "zsh", &["-f", "-i"], start);
    try_all(&h, &mut zsh);
}

#[test]
fn what_cannot_be_completed_says_nothing() {
    let h = harness!();
    let mut command = h.command(&["--", "sessile", "exec", "nosuch"]);
    command.env("_SESSILE_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "2");
    let told = command.output().unwrap();
    assert!(told.stdout.is_empty() && told.stderr.is_empty(), "{told:?}");
}
