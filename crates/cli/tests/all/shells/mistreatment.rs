//! Commands that treat their shell badly, or keep it from reporting: the run tells the
//! truth, and the session goes on.

use super::{ALL, BASH};
use sessile_testkit::{Harness, harness};

/// In which shells, a command that treats its shell badly, its stdout, its
/// stderr, and its exit code. The kernel is kept.
type Mistreatment = (&'static [&'static str], &'static str, &'static str, &'static str, i64);

const MISTREATMENTS: &[Mistreatment] = &[
    (ALL, "exec >/dev/null; echo hidden", "", "", 0),
    (ALL, "echo a; exec >/dev/null 2>&1; echo b; echo c >&2; (exit 4)", "a\n", "", 4),
    (ALL, "exec 0<&-; read y 2>/dev/null; echo a", "a\n", "", 0),
    (ALL, "exec </etc/passwd; read y; echo ${y%%:*}", "root\n", "", 0),
    (ALL, "exec 2>&1; echo err >&2", "err\n", "", 0),
    (ALL, "exec 1>&2; echo out", "", "out\n", 0),
    (ALL, "exec 1>&- 2>&- 0<&-; (exit 3)", "", "", 3),
    (ALL, "for i in 0 1 2 3 4 5 6 7 8 9; do eval \"exec $i>&-\"; done; (exit 3)", "", "", 3),
    (ALL, "for i in 0 3 4 5 6 7 8 9; do eval \"exec $i</dev/null\"; done; echo a", "a\n", "", 0),
    (BASH, "for i in {0..300}; do eval \"exec $i>&-\"; done; (exit 3)", "", "", 3),
    (BASH, "for i in {3..300}; do eval \"exec $i</dev/null\"; done; echo a", "a\n", "", 0),
    (ALL, "PS1='PROMPT> '; PS2='more> '; PS4='trace> '; echo a", "a\n", "", 0),
    (ALL, "unset PS1 PS2 PS4; echo a", "a\n", "", 0),
    (BASH, "PROMPT_COMMAND='echo COMMAND; false'; PS0='zero> '; echo a", "a\n", "", 0),
    (ALL, "precmd() { echo PRE; }; preexec() { echo PRE; }; echo a", "a\n", "", 0),
    (ALL, "trap 'echo bye' EXIT; echo a", "a\n", "", 0),
    (ALL, "readonly ro=1 PS1 PATH; echo $ro", "1\n", "", 0),
    (ALL, "unset PATH; echo a", "a\n", "", 0),
    (ALL, "PATH=/nowhere; echo a", "a\n", "", 0),
    (ALL, "IFS=exo1/; echo a", "a\n", "", 0),
    (BASH, "bash -c 'echo inner; exit 2'", "inner\n", "", 2),
    (BASH, "bash -i <<<'echo inner' 2>/dev/null", "inner\n", "", 0),
    (ALL, "sh <<'E'\necho inner\nexit 2\nE", "inner\n", "", 2),
    (
        ALL,
        "cd /; rmdir /no/such 2>/dev/null; mkdir -p $T/gone; cd $T/gone; rmdir $T/gone; echo a",
        "a\n",
        "",
        0,
    ),
    (ALL, "set -o noclobber; set -o noglob; set -o allexport; echo a", "a\n", "", 0),
    (BASH, "set -o posix; shopt -s xpg_echo; shopt -u sourcepath; :", "", "", 0),
    (ALL, "LC_ALL=C LANG=C; export LC_ALL; TZ=x; umask 777; echo a", "a\n", "", 0),
    (ALL, "trap '' INT TERM HUP CHLD PIPE; echo a", "a\n", "", 0),
    (&["bash", "zsh"], "ulimit -f 0 2>/dev/null; echo a", "a\n", "", 0),
    (ALL, "stty -echo 2>/dev/null; stty sane 2>/dev/null; echo a", "a\n", "", 0),
];

#[test]
fn mistreating_the_shell_does_not_hurt_the_session() {
    let h = harness!();
    let place = format!("T={}", h.root().display());
    for (shells, command, out, err, code) in MISTREATMENTS {
        for shell in Harness::shells(shells) {
            println!("{shell}: {command}");
            let s = h.session_with(&[shell, "--env", &place, "--env", "PS4=+ "]);
            s.run("x=1");
            let answer = s.run_with(&["--timeout", "20s"], command);
            answer.prints(out).warns(err).exits(*code).is_kept();
            let next = s.run_with(&["--timeout", "20s"], "echo \"$x\"; echo err >&2; (exit 6)");
            next.prints("1\n").warns("err\n").exits(6).is_kept();
            assert!(s.state().is_object());
            s.run("echo $?").prints("6\n").warns("").is_kept();
            s.end();
        }
    }
}

/// A run that really runs is not taken for one whose report was lost. Each of
/// them is looked at twice before its time is up.
#[test]
fn a_shell_that_waits_for_something_is_left_alone() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        s.run("x=1; mkfifo p 2>/dev/null; :");
        for text in [
            "read y <p",
            "exec <p; read y",
            "while :; do read y <p; done",
            "cat p",
            "sleep 1000 & wait",
            "while :; do :; done",
            "f() { sleep 1000; }; f",
            "y=$(cat p)",
        ] {
            println!("{shell}: {text}");
            s.run_with(&["--timeout", "400ms"], text).timed_out().is_kept();
            s.run("echo $x").prints("1\n").warns("").is_kept();
        }
    }
}

/// Found out by looking at the shell, because the text does not tell.
#[test]
fn a_run_whose_report_is_swallowed_is_answered_all_the_same() {
    let h = harness!();
    for (shell, name) in [("bash", "builtin"), ("zsh", "builtin"), ("dash", "command")] {
        if Harness::shells(&[shell]).is_empty() {
            continue;
        }
        let s = h.session_of(shell);
        std::fs::write(h.path("lib"), format!("{name}() {{ :; }}\n")).unwrap();
        let run = |text: &str| s.run_with(&["--timeout", "20s"], text).warns("").is_kept();
        run("x=1");
        run("x=2; . ./lib; (exit 7)").exits(7);
        run("/bin/echo $? $x").prints("7 2\n");
        run("x=3; (exit 6)").exits(6);
        run("/bin/echo $? $x").prints("6 3\n");
        let fate = s.run_with(&["--timeout", "20s"], "x=4; exit 5").exits(5);
        assert_ne!(fate.json()["kernel"], "fresh", "{shell}: {fate:?}");
        run("/bin/echo here").prints("here\n");
    }
}

#[test]
fn a_shell_that_cannot_report_at_all_is_replaced_and_that_is_said() {
    let h = harness!();
    let s = h.session();
    std::fs::write(h.path("lib"), "builtin() { :; }\n").unwrap();
    s.run("x=1");
    s.wait_captured(1);
    let answer = s.run_with(&["--timeout", "20s"], "trap : EXIT; x=2; . ./lib; echo a");
    let answer = answer.prints("a\n").is_restored_as_of(1).has("timed_out", false);
    assert!(answer.notes().contains("could not report"), "{answer:?}");
    s.run("echo $x").prints("1\n").is_kept();
}
