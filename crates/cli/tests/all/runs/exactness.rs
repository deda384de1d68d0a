//! What comes out is what the command wrote, and nothing else.

use sessile_testkit::{Harness, harness, until};

const ALL: &[&str] = &["bash", "zsh", "dash"];

#[test]
fn streams_come_byte_for_byte_and_apart() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        for (command, out, err) in [
            ("echo hi", "hi\n", ""),
            ("printf hi", "hi", ""),
            ("printf 'a\\n\\n\\n'", "a\n\n\n", ""),
            ("printf '\\r\\t \\033[1mx'", "\r\t \u{1b}[1mx", ""),
            ("echo out; echo err >&2", "out\n", "err\n"),
            ("printf err >&2", "", "err"),
            ("true", "", ""),
            ("echo '$ > # % PS1 __END__ '", "$ > # % PS1 __END__ \n", ""),
            ("echo '\u{1}\u{7f}é漢😀'", "\u{1}\u{7f}é漢😀\n", ""),
            ("printf '%s' '\u{feff}bom'", "\u{feff}bom", ""),
            ("sleep 0.01 & wait", "", ""),
            ("sleep 0 & sleep 0 & sleep 0.02", "", ""),
            ("true | cat & wait; :", "", ""),
            ("echo a; # comment", "a\n", ""),
            ("echo a \\\n b", "a b\n", ""),
            ("\n\n  echo a\n\n", "a\n", ""),
        ] {
            s.run(command).prints(out).warns(err).exits(0).is_kept();
        }
    }
}

#[test]
fn all_256_byte_values_survive() {
    let h = harness!();
    let every: Vec<u8> = (0..=255).collect();
    std::fs::write(h.path("every"), &every).unwrap();
    let s = h.session();
    let answer = s.run("cat every; cat every every >&2");
    assert_eq!(answer.json()["encoding"]["stdout"], "base64");
    assert_eq!(answer.json()["encoding"]["stderr"], "base64");
    assert_eq!(answer.bytes("stdout"), every);
    assert_eq!(answer.bytes("stderr"), [&every[..], &every[..]].concat());
    let answer = s.run("cat every; echo text >&2").warns("text\n");
    assert_eq!(answer.json()["encoding"].get("stderr"), None);
    let answer = s.run("printf 'a\\0b'").prints("a\0b");
    assert_eq!(answer.json().get("encoding"), None);
}

#[test]
fn utf8_is_never_split_where_chunks_or_limits_end() {
    let h = harness!();
    let text = "aé漢😀".repeat(60_000);
    std::fs::write(h.path("text"), &text).unwrap();
    let s = h.session();
    s.run("cat text").prints(&text);
    s.run("printf '\\303'; sleep 0.05; printf '\\251'").prints("é");
    for limit in ["7", "8", "9", "10", "11", "12", "13"] {
        let answer = s.run_with(&["--max-output", limit], "cat text");
        assert_eq!(answer.json().get("encoding"), None, "{limit}");
        assert!(!answer.stdout().contains('\u{fffd}'), "{limit}");
    }
}

#[test]
fn every_exit_status_comes_through() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        for status in (0..=255).step_by(15).chain([1, 2, 126, 127, 128, 130, 254]) {
            s.run(format!("(exit {status})")).exits(status).is_kept();
        }
        for (signal, number) in [("KILL", 9), ("TERM", 15), ("INT", 2), ("SEGV", 11), ("USR1", 10)]
        {
            s.run(format!("ulimit -c 0; sh -c 'kill -{signal} $$'")).exits(128 + number).is_kept();
        }
        s.run("/etc/passwd").exits(126).is_kept();
        s.run("no-such-command-anywhere").exits(127).is_kept();
    }
}

#[test]
fn syntax_errors_answer_with_the_shells_own_message_and_status() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    for (text, message) in [
        ("if then", "syntax error near unexpected token `then'"),
        ("echo \"abc", "unexpected EOF while looking for matching `\"'"),
        ("echo 'abc", "unexpected EOF while looking for matching `''"),
        ("echo )", "syntax error near unexpected token `)'"),
        ("while :; do", "syntax error: unexpected end of file"),
        ("f() {", "syntax error: unexpected end of file"),
        ("}", "syntax error near unexpected token `}'"),
        ("echo $(", "unexpected EOF while looking for matching `)'"),
    ] {
        let answer = s.run(text).prints("").exits(2).is_kept();
        assert!(answer.stderr().contains(message), "{answer:?}");
    }
    s.run("echo $x $?").prints("1 2\n").warns("");
    s.run("echo ${x?} ${x!}").is_kept();
    s.run("echo $x").prints("1\n").warns("").is_kept();
}

#[test]
fn syntax_errors_of_other_shells_do_not_hang_either() {
    let h = harness!();
    for shell in Harness::shells(&["zsh", "dash"]) {
        let s = h.session_of(shell);
        s.run("x=1");
        for text in ["if then", "echo \"abc", "echo )", "while :; do", "f() {", "}"] {
            let answer = s.run(text).prints("").is_kept();
            assert_ne!(answer.json()["exit_code"], 0, "{shell}: {answer:?}");
            assert_ne!(answer.stderr(), "", "{shell}: {text}");
        }
        s.run("echo $x").prints("1\n").warns("").is_kept();
    }
}

#[test]
fn messages_of_the_shell_name_nothing_of_ours() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        for text in ["no-such-command", "if then", "echo \"a", "cd /no/such", "echo ${x?gone}"] {
            let answer = s.run(text);
            for internal in ["/dev/shm", "sessile", "builtin"] {
                assert!(!answer.stderr().contains(internal), "{shell}: {answer:?}");
            }
        }
    }
}

#[test]
fn long_commands_and_heredocs_work() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        let megabyte = "m".repeat(1 << 20);
        s.run(format!("x={megabyte}; echo ${{#x}}")).prints("1048576\n");
        let heredoc = "0123456789abcde é\n".repeat(11_000);
        let count = heredoc.len();
        s.run(format!("cat <<'EOF' | wc -c | tr -d ' '\n{heredoc}EOF\n"))
            .prints(&format!("{count}\n"));
        let lines: String = (0..10_000).map(|i| format!("n={i}\n")).collect();
        s.run(format!("{lines}echo $n")).prints("9999\n").is_kept();
    }
}

#[test]
fn commands_may_contain_any_text() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        for text in [
            "__sessile_exit",
            "r 1 0 himBHs",
            "ready",
            "c 1",
            "d 3",
            "EOF",
            "\u{4}\u{3}\u{1a}",
            "\\builtin . /dev/shm/c",
            "'; exit 9; '",
            "$(exit 9)`exit 9`",
            "%s %d \\n",
            "!!",
            "-n -e --",
            "\r\n",
        ] {
            let quoted = text.replace('\'', "'\\''");
            s.run(format!("printf '%s\\n' '{quoted}'"))
                .prints(&format!("{text}\n"))
                .warns("")
                .is_kept();
        }
        let marks = "for w in 'r 1 7 h' 'ready' 'd 1' 'c 1'; do echo \"$w\"; done >&2; (exit 5)";
        s.run(marks).warns("r 1 7 h\nready\nd 1\nc 1\n").exits(5);
        s.run("echo 'caf\u{e9}' # \u{2028}").prints("café\n");
    }
    let s = h.session();
    let answer = s.run(b"printf '\xff\xfe'; x='\xe9'; echo ${#x}");
    assert_eq!(answer.bytes("stdout"), b"\xff\xfe1\n");
}

#[test]
fn stdin_is_empty_at_once() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        for (command, out, code) in [
            ("cat", "", 0),
            ("read x", "", 1),
            ("read x; echo $?", "1\n", 0),
            ("wc -c | tr -d ' '", "0\n", 0),
            ("python3", "", 0),
            ("sh", "", 0),
            ("while read line; do echo $line; done; echo over", "over\n", 0),
            ("(cat; cat <&0)", "", 0),
            ("cat - /dev/stdin", "", 0),
            ("{ sh -s; cat; }", "", 0),
            ("echo piped | cat", "piped\n", 0),
        ] {
            let limited = s.run_with(&["--timeout", "30s"], command);
            limited.prints(out).exits(code).is_kept();
        }
        // What a program that asks for a password does.
        let answer = s.run_with(&["--timeout", "30s"], "read x </dev/tty; echo $?");
        assert_ne!(answer.stdout(), "0\n", "{shell}: {answer:?}");
        s.run("echo still").prints("still\n").is_kept();
    }
}

#[test]
fn nothing_reads_the_control_channel() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        s.run("x=1");
        s.run_with(
            &["--timeout", "45s"],
            "for fd in 3 4 5 6 7 8 9; do eval \"timeout 1 cat <&$fd\"; done 2>/dev/null; echo over",
        )
        .prints("over\n")
        .exits(0);
        s.run("bash -c 'timeout 1 cat <&10; timeout 1 cat <&11; timeout 1 cat <&255' 2>/dev/null")
            .prints("");
        s.run("echo $x").prints("1\n").is_kept();
    }
}

#[test]
fn a_background_child_never_delays_the_answer() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        for command in [
            "sleep 1000 &",
            "(sleep 1000; echo never) &",
            "{ sleep 1000 & } ; :",
            "nohup sleep 1000 &",
            "setsid sleep 1000 &",
            "while :; do echo chatty; sleep 0.01; done >&2 &",
            "yes &",
        ] {
            s.run_with(&["--timeout", "0"], command).exits(0).is_kept();
        }
        s.run("echo mine; echo mine >&2").prints("mine\n").warns("mine\n");
    }
}

#[test]
fn later_output_is_filed_under_the_run_that_started_it() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        s.run("mkfifo go; { cat go >/dev/null; echo late; echo late-err >&2; touch said; } &")
            .prints("")
            .warns("");
        s.run("echo >go; until [ -e said ]; do sleep 0.01; done; echo second")
            .prints("second\n")
            .warns("");
        s.run("echo third").prints("third\n").warns("");
        for (file, text) in [("1.stdout", "late\n"), ("1.stderr", "late-err\n")] {
            let path = s.dir().join("runs").join(file);
            until(file, || (std::fs::read_to_string(&path).ok()? == text).then_some(()));
        }
        s.run("rm go said");
    }
}

#[test]
fn messages_of_what_runs_in_the_background_name_no_file_of_ours() {
    let h = harness!();
    let s = h.session();
    for text in [
        "cd /tmp && nosuch & wait",
        "{ nosuch; } & wait",
        "(true; nosuch) & wait",
        "for i in 1; do nosuch; done & wait",
        "coproc nosuch; wait",
    ] {
        let answer = s.run(text).is_kept();
        assert_eq!(answer.stderr(), "bash: line 1: nosuch: command not found\n", "{text}");
    }
}
