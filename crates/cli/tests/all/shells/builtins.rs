//! Builtins that the user has replaced or disabled.

use super::ALL;
use sessile_testkit::{Harness, harness};

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

/// dash has no such functions.
#[test]
fn a_function_of_the_users_that_is_called_colon_is_called_by_nothing_of_ours() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh"]) {
        let s = h.session_of(shell);
        s.run(":() { echo called >>called; }; sleep 0.01 & sleep 0.02").exits(0);
        s.run("wait; false").exits(1);
        s.run("trap 'x=$?' DEBUG").is_kept();
        s.run("false").exits(1);
        s.run("set -x; false").exits(1);
        s.run("set +x; exit 3").exits(3).is_restarted();
        s.run("cat called").exits(1);
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
