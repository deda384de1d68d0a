//! Commands that end or replace their shell: the run tells the truth, and the session
//! goes on.

use super::{ALL, BASH};
use sessile_testkit::{Answer, Harness, Session, harness};

#[derive(Clone, Copy)]
enum Fate {
    Restarted,
    /// As of the run before.
    Restored,
}

impl Fate {
    #[track_caller]
    fn check(self, answer: Answer) {
        let before = answer.run() - 1;
        match self {
            Self::Restarted => answer.is_restarted(),
            Self::Restored => answer.is_restored_as_of(before),
        };
    }
}

/// In which shells, the command, its stdout, its exit code, the kernel's fate,
/// and what `echo $x` (1 before) says afterwards.
type Case = (&'static [&'static str], &'static str, &'static str, i64, Fate, &'static str);

const ENDINGS: &[Case] = &[
    (ALL, "x=2; exit 3", "", 3, Fate::Restarted, "2"),
    (ALL, "x=2; echo a; exit", "a\n", 0, Fate::Restarted, "2"),
    (ALL, "x=2; (exit 4); exit", "", 4, Fate::Restarted, "2"),
    (ALL, "x=2; f() { exit 6; }; f; x=3", "", 6, Fate::Restarted, "2"),
    (ALL, "x=2; eval 'exit 7'", "", 7, Fate::Restarted, "2"),
    (ALL, "exec true", "", 0, Fate::Restored, "1"),
    (ALL, "exec false", "", 1, Fate::Restored, "1"),
    (ALL, "exec sh -c 'echo in; exit 9'", "in\n", 9, Fate::Restored, "1"),
    (ALL, "exec cat", "", 0, Fate::Restored, "1"),
    (ALL, "x=2; kill -9 $$", "", 137, Fate::Restored, "1"),
    (ALL, "echo a; kill -9 $$; echo b", "a\n", 137, Fate::Restored, "1"),
    (ALL, "sh -c 'kill -9 $PPID'", "", 137, Fate::Restored, "1"),
    (&["zsh", "dash"], "kill -SEGV $$", "", 139, Fate::Restored, "1"),
    (ALL, "x=2; set -e; false; x=3", "", 1, Fate::Restarted, "2"),
    (ALL, "x=2; set -e; (exit 8); x=3", "", 8, Fate::Restarted, "2"),
    (BASH, "x=2; set -euo pipefail; false | true", "", 1, Fate::Restarted, "2"),
];

#[track_caller]
fn prepared<'h>(h: &'h Harness, shell: &str) -> Session<'h> {
    let s = h.session_of(shell);
    s.run("x=1; cd /usr; greet() { echo hi; }; alias al='echo al'; export E=e; umask 027");
    s
}

/// Calls the function of a prepared session. dash has no way to list its
/// functions: see `functions_of_a_dash_that_ended_are_back_or_named`.
fn greet(shell: &str) -> &'static str {
    if shell == "dash" { "echo hi" } else { "greet" }
}

#[test]
fn the_end_of_a_kernel_is_not_the_end_of_the_session() {
    let h = harness!();
    for (shells, command, out, code, fate, x) in ENDINGS {
        for shell in Harness::shells(shells) {
            println!("{shell}: {command}");
            let s = prepared(&h, shell);
            fate.check(s.run(command).prints(out).warns("").exits(*code));
            let greet = greet(shell);
            s.run(format!("set +e; trap - EXIT; echo $x; {greet}; echo $E; umask -S; pwd"))
                .prints(&format!("{x}\nhi\ne\nu=rwx,g=rx,o=\n/usr\n"))
                .is_kept();
            s.run("al ok").prints("al ok\n").is_kept();
            s.end();
        }
    }
}

#[test]
fn an_exit_trap_that_is_set_in_the_run_that_exits_does_not_lose_the_state() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        for (command, out) in [
            ("x=2; trap 'echo bye' EXIT; exit 5", "bye\n"),
            ("trap 'echo bye $?; x=2' EXIT; x=0; exit 5", "bye 5\n"),
            ("trap 'echo \"it'\\''s\"' 0; x=2; (exit 5); exit", "it's\n"),
            ("trap -- 'echo bye' EXIT\nset -e\nx=2\n(exit 5)\nx=3", "bye\n"),
            ("trap 'echo a' EXIT; trap 'echo b' INT EXIT; x=2; exit 5", "b\n"),
            ("trap 'echo bye' EXIT; trap - EXIT; x=2; exit 5", ""),
            ("trap '' EXIT; x=2; exit 5", ""),
            ("(trap 'echo sub' EXIT); x=$(trap 'echo 2' EXIT); exit 5", "sub\n"),
            ("eval \"trap 'echo bye' EXIT\"; x=2; eval 'exit 5'", "bye\n"),
            ("bye() { echo bye $?; exit 5; }; trap bye EXIT; x=2; exit 4", "bye 4\n"),
            ("set -e; trap 'echo bye $?; exit 5' EXIT; x=2; (exit 6)", "bye 6\n"),
            ("echo \"trap 'echo bye' EXIT\" >lib; . ./lib; x=2; exit 5", "bye\n"),
        ] {
            println!("{shell}: {command}");
            let s = h.session_of(shell);
            s.run("x=1; greet() { echo hi; }; alias al='echo al'; set -- a b");
            s.run(command).prints(out).warns("").exits(5).is_restarted();
            let greet = greet(shell);
            s.run(format!("set +e; trap - EXIT INT; echo $x $2; {greet}")).prints("2 b\nhi\n");
            s.run("al ok; exit 6").prints("al ok\n").exits(6).is_restarted();
            s.end();
        }
    }
}

#[test]
fn an_exit_trap_that_exits_itself_does_not_lose_the_state() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash"]) {
        let s = h.session_of(shell);
        s.run("bye() { echo bye $?; exit 7; }; trap bye EXIT");
        for (command, out) in [("x=2; exit 4", "bye 4\n"), ("set -e; x=3; (exit 6)", "bye 6\n")] {
            s.run(command).prints(out).warns("").exits(7).is_restarted();
        }
        s.run("set +e; trap - EXIT; echo $x").prints("3\n").is_kept();
    }
}

/// As they stand in many a .bashrc.
#[test]
fn editing_modes_and_completions_outlive_their_shell() {
    let h = harness!();
    for (shell, text, listing) in [
        ("bash", "x=2; set -o vi", "set -o"),
        ("bash", "x=2; set -o emacs; bind '\"\\C-x\": \"y\"' 2>/dev/null", "set -o"),
        ("bash", "x=2; complete -W \"a 'b'\" it; complete() { :; }", "builtin complete -p"),
        ("dash", "x=2; set -o vi", "set -o"),
        ("zsh", "x=2; bindkey -v; autoload -Uz compinit", "set -o"),
        ("zsh", "x=2; zstyle ':a' b c \"d 'e\"; zstyle() { :; }", "builtin zstyle -L"),
    ] {
        for shell in Harness::shells(&[shell]) {
            let s = h.session_of(shell);
            s.run(text).warns("").is_kept();
            let listed = s.run(listing).is_kept().stdout().to_owned();
            assert!(!listed.is_empty(), "{shell}: {text}");
            s.run("exit 3").exits(3).is_restarted();
            s.run("echo $x").prints("2\n").warns("").is_kept();
            s.run(listing).prints(&listed).is_kept();
            s.end();
        }
    }
}

#[test]
fn the_status_of_the_last_run_outlives_its_kernel() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = prepared(&h, shell);
        let failing = "set -e; f() { return 4; }; f";
        for (command, code) in [("exit 3", 3), ("kill -9 $$", 137), ("exec false", 1), (failing, 4)]
        {
            s.run(command).exits(code);
            s.run("echo $?").prints(&format!("{code}\n")).is_kept();
        }
    }
}

#[test]
fn functions_of_a_dash_that_ended_are_back() {
    let h = harness!();
    for shell in Harness::shells(&["dash"]) {
        let s = prepared(&h, shell);
        s.run("exit 3").exits(3);
        s.run("greet").prints("hi\n");
    }
}

/// An error like this ends the shell; zsh runs no EXIT trap then, so that its
/// state is an earlier one.
#[test]
fn an_unset_variable_under_nounset_is_told_and_survived() {
    let h = harness!();
    for (shell, options, x) in
        [("bash", "set -euo pipefail", 2), ("zsh", "set -eu", 1), ("dash", "set -eu", 2)]
    {
        if Harness::shells(&[shell]).is_empty() {
            continue;
        }
        let s = prepared(&h, shell);
        s.wait_captured(1);
        let answer = s.run(format!("x=2; {options}; echo \"$nope\"; x=3")).prints("");
        assert_ne!(answer.json()["exit_code"], 0, "{shell}: {answer:?}");
        assert!(answer.stderr().contains("nope"), "{shell}: {answer:?}");
        match x {
            1 => answer.is_restored_as_of(1),
            _ => answer.is_restarted(),
        };
        s.run(format!("set +eu; echo $x; {}", greet(shell)))
            .prints(&format!("{x}\nhi\n"))
            .is_kept();
    }
}

#[test]
fn a_kernel_that_is_killed_between_runs_is_told_of_in_the_next_answer() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = prepared(&h, shell);
        let kernel = s.kernel();
        s.wait_captured(2);
        kernel.kill().wait_gone();
        let ask = format!("echo $x; {}", greet(shell));
        s.run(ask).prints("1\nhi\n").is_restored_as_of(2);
        s.run("echo $x").prints("1\n").is_kept();
    }
}

/// zsh takes its status for that of later redirections.
#[test]
fn a_command_substitution_that_failed_does_not_cost_the_state() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        s.run("x=1");
        s.run("set -e; x=2; y=$(exit 5); x=0").prints("").warns("").exits(5).is_restarted();
        s.run("y=$(exit 6) || x=3").exits(0).is_kept();
        s.run("x=4").exits(0).is_kept();
        let as_of = s.run("echo $x").prints("4\n").is_kept().json()["run"].as_u64().unwrap();
        s.wait_captured(as_of);
        s.run("y=$(exit 6) || x=5").exits(0).is_kept();
        s.run("trap 'echo bye' EXIT").exits(0).is_kept();
        s.run("x=6; exit 7").prints("bye\n").exits(7).is_restarted();
        s.run("trap - EXIT; set +e; echo $x").prints("6\n").is_kept();
    }
}
