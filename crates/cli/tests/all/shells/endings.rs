//! Commands that end, replace or mistreat their shell: the run tells the truth,
//! and the session goes on.

use sessile_testkit::{Answer, Harness, Session, harness};

const ALL: &[&str] = &["bash", "zsh", "dash"];
const BASH: &[&str] = &["bash"];

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
fn a_shell_that_has_all_of_its_files_open_goes_on() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh"]) {
        let s = h.session_of(shell);
        s.run("x=1");
        s.wait_captured(1);
        let leak = "x=2; ulimit -S -n 64; for i in {3..9}; do eval \"exec $i</dev/null\"; done; \
                    for i in {1..70}; do exec {fd}</dev/null || break; done";
        let leaking = s.run_with(&["--timeout", "20s"], leak);
        assert!(leaking.notes().contains("`ulimit -n` is"), "{shell}: {leaking:?}");
        s.run("echo $x").prints("2\n").warns("").is_kept();
        s.run("exit 3").exits(3).is_restarted();
        s.run("echo $x").prints("2\n").is_kept();
    }
}

/// zsh lists its traps into a pipe. Whoever reads it must not end at a limit.
#[test]
fn a_shell_that_may_write_no_file_outlives_its_captures() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh"]) {
        let s = h.session_of(shell);
        // More than a pipe holds.
        s.run("long=$(head -c 200000 /dev/zero | tr '\\0' x); trap \": $long\" USR1");
        s.run("ulimit -f 0; x=2").is_kept();
        for _ in 0..3 {
            let _ = s.state();
            s.run("echo $x").prints("2\n").is_kept();
        }
    }
}

#[test]
fn a_shell_whose_state_cannot_be_read_exits_with_its_own_status() {
    let h = harness!();
    for (shell, text) in [("bash", "ulimit -f 0"), ("zsh", "ulimit -f 0")] {
        for shell in Harness::shells(&[shell]) {
            let s = h.session_of(shell);
            s.run("x=1");
            s.wait_captured(1);
            s.run(text).is_kept();
            s.run("x=2; exit 4").exits(4).warns("").is_restored_as_of(1);
            s.run("echo $x").prints("1\n").is_kept();
            s.end();
        }
    }
}

/// Who has the privilege gets more of them, all others a new shell.
#[test]
fn a_limit_that_leaves_no_room_for_another_run_is_not_the_end() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        for limit in [3, 6, 12] {
            let s = h.session_of(shell);
            s.run("x=1");
            s.wait_captured(1);
            let limited = s.run(format!("x=2; ulimit -n {limit}"));
            assert!(limited.notes().contains("`ulimit -n"), "{shell} {limit}: {limited:?}");
            let is_kept = limited.json()["kernel"] == "kept";
            s.run("echo $x").prints(if is_kept { "2\n" } else { "1\n" }).exits(0).is_kept();
            s.run("x=3; exit 4").exits(4).is_restarted();
            s.run("echo $x; ls -d /").prints("3\n/\n").is_kept();
            s.end();
        }
    }
}

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

const SPECIAL: &[&str] =
    &["eval", "exec", "exit", "export", "local", "return", "set", "shift", "trap", "unset"];

#[track_caller]
fn hijack(shell: &str, form: &str, names: &str) {
    if Harness::shells(&[shell]).is_empty() {
        return;
    }
    let h = harness!();
    let s = h.session_of(shell);
    let run = |text: &str| s.run_with(&["--timeout", "5s"], text).is_kept();
    run("x=1; say=/bin/echo");
    // Special builtins cannot be functions in a POSIX shell, and once `command`
    // is one the attempt costs what dash has read ahead, our report included.
    let is_possible =
        |name: &&str| (shell, form) != ("dash", "function") || !SPECIAL.contains(name);
    for name in names.split_whitespace().filter(is_possible) {
        println!("{shell}: {form} {name}");
        let text = match form {
            "function" => format!("eval '{name}() {{ $say hijacked; }}' 2>/dev/null; :"),
            _ => format!("\\alias {name}='$say hijacked;'"),
        };
        run(&text).warns("");
        run("$say $x; /bin/false").prints("1\n").warns("").exits(1);
        run("$say $?").prints("1\n").warns("");
    }
    assert!(s.state().is_object());
    s.run_with(&["--timeout", "300ms"], "/bin/sleep 1000").timed_out();
    run("$say $x").prints("1\n").warns("");
}

#[test]
fn builtins_may_be_functions_of_the_users() {
    for shell in ALL {
        hijack(shell, "function", "eval read echo cd printf");
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

#[test]
fn a_zsh_with_trap_functions_or_another_builtin_ends_quietly_with_its_state() {
    let h = harness!();
    for shell in Harness::shells(&["zsh"]) {
        for (defines, shows) in [
            ("TRAPINT() { echo int }", "functions TRAPINT"),
            ("TRAPZERR() { z=$? }", "functions TRAPZERR"),
            ("TRAPUSR1() { echo usr }", "functions TRAPUSR1"),
            ("builtin() { echo fake }", "functions builtin"),
        ] {
            let s = h.session_of(shell);
            s.run(defines).warns("").is_kept();
            let shown = s.run(shows).stdout().to_owned();
            s.run("x=2; exit 3").prints("").warns("").exits(3).is_restarted();
            s.run(format!("{shows}; echo $x")).prints(&format!("{shown}2\n")).warns("").is_kept();
            s.run("x=3; exit 4").prints("").warns("").exits(4).is_restarted();
            s.run("echo $x").prints("3\n").is_kept();
        }
    }
}

#[test]
fn builtins_may_be_aliases_of_the_users() {
    for shell in ALL {
        hijack(shell, "alias", "eval read echo cd printf");
    }
}

const FURTHER: &str = "builtin command source exec trap set return unset test export declare \
                       typeset local kill wait shift exit";

#[test]
fn further_builtins_may_be_functions_of_the_users() {
    for shell in ALL {
        hijack(shell, "function", FURTHER);
    }
}

#[test]
fn further_builtins_may_be_aliases_of_the_users() {
    for shell in ALL {
        hijack(shell, "alias", FURTHER);
    }
}

#[test]
fn disabled_builtins_do_not_hurt_the_session() {
    let h = harness!();
    for name in ["echo", "printf", "builtin", "command", ".", "eval", "trap", "exit"] {
        println!("{name}");
        let s = h.session();
        s.run("x=1");
        let run = |text: &str| s.run_with(&["--timeout", "5s"], text).warns("").is_kept();
        run(&format!("enable -n {name}"));
        run("/bin/echo $x").prints("1\n");
        run("x=2; (/bin/sh -c 'exit 3')").exits(3);
        run("/bin/echo $? $x").prints("3 2\n");
        // Nor its successor, though there is no last state without these two.
        let ended = s.run_with(&["--timeout", "5s"], "set -e; x=4; /bin/false").exits(1);
        if ![".", "trap"].contains(&name) {
            ended.is_restarted();
            run("set +e; /bin/echo $x").prints("4\n");
        }
        s.end();
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
