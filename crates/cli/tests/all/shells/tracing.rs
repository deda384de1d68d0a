//! What shells show of themselves, by traces, echoes and traps: the user's commands only.

use super::ALL;
use sessile_testkit::{Answer, Harness, harness};

/// Each of them shows what a plain shell shows.
#[test]
fn a_run_that_sets_an_exit_trap_finds_nothing_of_ours() {
    let h = harness!();
    for (shell, text) in [
        ("bash", "trap : EXIT; type -t trap; declare -F; command -v trap"),
        ("bash", "trap : EXIT; compgen -A function; set | grep ^__sess; alias"),
        (
            "bash",
            "trap : EXIT; set -- a; trap : INT; echo $? $#; (trap : BAD) 2>/dev/null; echo $?",
        ),
        ("bash", "trap : EXIT; trap 'echo err' ERR; false; trap - ERR; false"),
        ("bash", "f() { trap : EXIT; local x=1; echo $x; }; f; declare -f f"),
        ("bash", "set -a; trap : EXIT; bash -c 'declare -F; type -t trap'; set +a"),
        ("bash", "trap : EXIT; (trap 'echo sub' EXIT; exit 3); echo $?"),
        ("bash", "PS4='+ '; set -x; trap : EXIT; { set +x; } 2>/dev/null"),
        ("zsh", "trap : EXIT; whence -w trap; print -l $zshexit_functions; alias"),
        ("zsh", "trap : EXIT; set | grep ^__sess; functions"),
        ("zsh", "f() { trap 'echo left' EXIT; echo in; }; f; echo out; trap : EXIT"),
        ("dash", "trap : EXIT; command -v trap; alias"),
        (
            "dash",
            "trap : EXIT; set -- a; trap : INT; echo $? $#; (trap 'echo sub' EXIT; exit 3); echo $?",
        ),
    ] {
        if Harness::shells(&[shell]).is_empty() {
            continue;
        }
        println!("{shell}: {text}");
        let plain = std::process::Command::new(shell).args(["-c", text]).output().unwrap();
        let s = h.session_of(shell);
        let answer = s.run(text).is_kept().prints(&String::from_utf8_lossy(&plain.stdout));
        let errors = String::from_utf8_lossy(&plain.stderr);
        assert_eq!(answer.stderr().trim_start_matches('+'), errors.trim_start_matches('+'));
        // Nor does a later one.
        let look =
            if shell == "dash" { "type trap; alias" } else { "type trap; set | grep __sessile" };
        let seen = s.run(look).is_kept();
        assert!(seen.stdout().contains("builtin"), "{seen:?}");
        assert!(!seen.stdout().contains("__sessile"), "{seen:?}");
        let listed = s.run("trap").warns("").is_kept();
        assert!(!listed.stdout().contains("__sessile"), "{listed:?}");
        s.end();
    }
}

/// A trace without its depth: bash counts sourcing as a level of it.
fn traced(answer: &Answer) -> String {
    let lines = answer.stderr().lines();
    lines.map(|line| line.trim_start_matches('+').trim_start().to_owned() + "\n").collect()
}

#[test]
fn tracing_shows_the_users_commands_only() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash", "zsh"]) {
        let s = h.session_with(&[shell, "--env", "PS4=+ "]);
        s.run("set -x").prints("").warns("");
        assert_eq!(traced(&s.run("echo a").prints("a\n")), "echo a\n", "{shell}");
        s.run("x=1; (exit 3)").exits(3).is_kept();
        assert!(s.state().is_object());
        assert_eq!(traced(&s.run("echo $?").prints("3\n").is_kept()), "echo 3\n", "{shell}");
        let shown = s.run_with(&["--pty"], "echo a").stdout().replace(['+', ' '], "");
        assert_eq!(shown, "echoa\r\na\r\n", "{shell}");
        s.run("trap 'echo bye' EXIT; (exit 5)").exits(5);
        assert_eq!(traced(&s.run("echo $?").prints("5\n").is_kept()), "echo 5\n", "{shell}");
        s.run("trap - EXIT").exits(0);
        let exited = s.run("exit 4").exits(4).is_restarted();
        assert_eq!(traced(&exited), "exit 4\n", "{shell}");
        let exited = s.run("quit() { exit 5; }\nquit").exits(5).is_restarted();
        assert_eq!(traced(&exited), "quit\nexit 5\n", "{shell}");
        s.run("trap 'echo bye' EXIT").exits(0);
        let exited = s.run("exit 6").prints("bye\n").exits(6).is_restarted();
        assert_eq!(traced(&exited), "exit 6\necho bye\n", "{shell}");
        s.run("trap - EXIT").exits(0);
        assert_eq!(traced(&s.run("set +x").exits(0)), "set +x\n", "{shell}");
        s.run("set -v").prints("").warns("");
        s.run("echo b\n").prints("b\n").warns("echo b\n");
        s.run("set +v\n").warns("set +v\n");
        s.run("echo c").prints("c\n").warns("").is_kept();
    }
}

#[test]
fn what_a_shell_shows_of_its_input_is_the_users_to_the_end() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash", "zsh"]) {
        let s = h.session_with(&[shell, "--env", "PS4=+ "]);
        s.run("x=1");
        s.run("set -v").prints("").warns("");
        s.wait_captured(2);
        let texts = ["exit 3\n", "quit() { exit 3; }; quit\n", "echo a\nset -e\nfalse\necho b\n"];
        for text in texts {
            let run = s.run(text);
            assert_eq!(run.stderr(), text.replace("echo b\n", ""), "{shell}");
            s.run("set +e\n").warns("set +e\n");
            // bash would show a trap of ours, so that it has none then.
            let fate = if shell == "bash" { "restored" } else { "restarted" };
            run.has("kernel", fate);
        }
        s.run("echo $x\n").prints("1\n").warns("echo $x\n").is_kept();
        s.run("trap 'echo bye' EXIT\n").warns("trap 'echo bye' EXIT\n");
        let shown = s.run("exit 3\n").prints("bye\n").exits(3).stderr().to_owned();
        let trap = if shell == "bash" { "echo bye\n" } else { "" };
        assert_eq!(shown, format!("exit 3\n{trap}"), "{shell}");
        // Aborted, and with a status that the next run finds.
        let aborted = s.run("echo ${nope?gone}\n");
        let lines: Vec<&str> = aborted.stderr().lines().collect();
        assert_eq!(lines.len(), 2, "{shell}: {lines:?}");
        assert!(lines[1].ends_with("nope: gone"), "{shell}: {lines:?}");
        s.run("(exit 6)\n").exits(6).warns("(exit 6)\n");
        s.run("echo $?\n").prints("6\n").warns("echo $?\n").is_kept();
    }
    let s = h.session_with(&["bash", "--env", "PS4=+ "]);
    s.run("set -xv; trap 'echo bye' EXIT");
    let text = "for i in 1\ndo echo $i $LINENO\ndone\n";
    let shown = s.run(text).prints("1 2\n").is_kept();
    assert_eq!(traced(&shown), format!("{text}for i in 1\necho 1 2\n"));
    let shown = s.run("fi\n").exits(2).stderr().to_owned();
    assert!(shown.starts_with("fi\n") && shown.contains("line 1: `fi'"), "{shown}");
    for shell in Harness::shells(&["dash"]) {
        let s = h.session_with(&[shell, "--env", "PS4=+ "]);
        s.run("set -xv; trap 'echo bye' EXIT");
        let shown = s.run("for i in 1\ndo (exit 4)\ndone\n").exits(4).is_kept();
        assert_eq!(shown.stderr(), "for i in 1\ndo (exit 4)\ndone\n+ exit 4\n");
        s.run("echo $?\n").prints("4\n").warns("echo $?\n+ echo 4\n").is_kept();
        s.run("exit 3\n").prints("bye\n").warns("exit 3\n+ exit 3\n+ echo bye\n").exits(3);
    }
    for shell in Harness::shells(&["zsh"]) {
        let s = h.session_with(&[shell, "--env", "PS4=+ "]);
        s.run("set -xv");
        s.run("echo a\necho b\n").prints("a\nb\n").warns("echo a\n+ echo a\necho b\n+ echo b\n");
    }
}

#[test]
fn a_debug_trap_sees_the_users_commands_only() {
    let h = harness!();
    let s = h.session();
    s.run("trap 'echo \"<$BASH_COMMAND>\"' DEBUG").prints("").warns("");
    s.run("echo a").prints("<echo a>\na\n").warns("");
    assert!(s.state().is_object());
    s.run("x=1; echo b").prints("<x=1>\n<echo b>\nb\n").is_kept();
    s.run("set -x").prints("<set -x>\n").warns("");
    let shown = s.run("echo c").prints("<echo c>\nc\n").is_kept();
    assert_eq!(traced(&shown), "echo '<echo c>'\necho c\n");
    s.run("set +x");
    s.run("(exit 4)").prints("").exits(4);
    s.run("echo $? $LINENO").prints("<echo $? $LINENO>\n4 1\n").warns("");
    let shown = s.run("fi").exits(2).stderr().to_owned();
    assert!(shown.contains("line 1: `fi'"), "{shown}");
    s.run("trap 'echo D' DEBUG");
    s.run("set -v").prints("D\n").warns("");
    let text = "for i in 1\ndo :\ndone\necho d\n";
    s.run(text)
        .prints("D\nD\nD\nd\n")
        .warns("for i in 1\ndo :\ndone\necho D\necho D\necho d\necho D\n");
    s.run("set +v; trap 'echo \"<$BASH_COMMAND>\"' DEBUG");
    s.run("trap - DEBUG").prints("<trap - DEBUG>\n");
    s.run("readonly LINENO; trap : DEBUG");
    s.run("echo e").prints("e\n").warns("").is_kept();
    s.run("trap - DEBUG");
    s.run("echo d").prints("d\n").warns("").is_kept();
    for shell in Harness::shells(&["zsh"]) {
        let s = h.session_with(&[shell, "--env", "PS4=+ "]);
        s.run("trap 'echo \"<$ZSH_DEBUG_CMD>\"' DEBUG").prints("").warns("");
        s.run("echo a").prints("<echo a>\na\n").warns("");
        s.run("set -x").prints("<set -x>\n").warns("");
        let shown = s.run("echo b").prints("<echo b>\nb\n").is_kept();
        assert_eq!(traced(&shown), "echo '<echo b>'\necho b\n");
        s.run("set +x; false").exits(1);
        s.run("echo $?").prints("<echo $?>\n1\n").warns("").is_kept();
        s.run("trap - DEBUG");
        s.run("echo c").prints("c\n").warns("").is_kept();
    }
}

#[test]
fn an_exit_trap_is_the_users_alone() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        s.run("trap").prints("").warns("");
        s.run("trap 'echo bye $x; x=trapped' EXIT").prints("").warns("");
        s.run("x=1").prints("").warns("");
        let listed = s.run("trap").warns("").is_kept();
        let is_listed = listed.stdout().contains("echo bye $x");
        assert!(is_listed, "{shell}: {listed:?}");
        assert_eq!(listed.stdout().matches("trap --").count(), 1, "{shell}: {listed:?}");
        s.run("exit 4").prints("bye 1\n").warns("").exits(4).is_restarted();
        s.run("echo $x").prints("trapped\n").is_kept();
        s.run("trap - EXIT").prints("");
        s.run("exit 5").prints("").warns("").exits(5).is_restarted();
    }
    // What we do at the end does not set off an ERR trap either.
    for shell in Harness::shells(&["bash", "zsh"]) {
        let s = h.session_of(shell);
        s.run("trap 'echo failed' ERR");
        s.run("trap 'echo bye' EXIT; exit 4").prints("bye\n").warns("").exits(4);
        s.run("exit 5").exits(5);
        s.run("trap - EXIT; x=1; exit 6").prints("").warns("").exits(6).is_restarted();
    }
}
