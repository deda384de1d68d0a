//! Runs with a terminal, and real programs on it.

use serde_json::{Value, json};
use sessile_testkit::{Harness, Output, Session, harness, until};

/// `sessile COMMAND ID RUN ARGS…`.
#[track_caller]
fn on_run(h: &Harness, s: &Session<'_>, command: &str, run: u64, args: &[&str]) -> Output {
    h.sessile(&[&[command, s.id(), &run.to_string()], args].concat())
}

/// Starts a program on a terminal, with all the time it wants.
#[track_caller]
fn start(s: &Session<'_>, options: &[&str], text: &str) -> u64 {
    let all = [&["--pty", "--background", "--timeout", "0"], options].concat();
    s.run_with(&all, text).has("running", true).run()
}

/// The screen once it has this on it.
#[track_caller]
fn shows(h: &Harness, s: &Session<'_>, run: u64, pattern: &str) -> Value {
    let args = ["--wait-for", pattern, "--timeout", "30s", "--format", "json"];
    let view = on_run(h, s, "screen", run, &args).json();
    assert_eq!(view["wait"], "matched", "{pattern}: {view:#}");
    view
}

/// Presses keys, and waits until the screen has this on it.
#[track_caller]
fn press(h: &Harness, s: &Session<'_>, run: u64, keys: &str, pattern: &str) -> Value {
    let args = [keys, "--wait-for", pattern, "--timeout", "30s"];
    let view = on_run(h, s, "keys", run, &args).json();
    assert_eq!(view["wait"], "matched", "{pattern}: {view:#}");
    view
}

#[track_caller]
fn finish(h: &Harness, s: &Session<'_>, run: u64) -> Value {
    // It answers when a run waits for input, too.
    until("the end of a run", || {
        let done = on_run(h, s, "wait", run, &[]).json();
        done["running"].is_null().then_some(done)
    })
}

fn text(view: &Value) -> &str {
    view["text"].as_str().unwrap()
}

#[test]
fn a_run_has_a_terminal_of_its_own_for_as_long_as_it_takes() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash", "zsh"]) {
        let s = h.session_of(shell);
        let look = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size; echo $TERM; x=5";
        let done = s.run_with(&["--pty", "--size", "100x30"], look).exits(0);
        assert_eq!(done.stdout(), "30 100\r\nxterm-256color\r\n", "{shell}");
        // What is remembered is remembered, and nothing of a terminal is left.
        let done =
            s.run("echo $x; [ -t 1 ] || echo none; (: </dev/tty) 2>/dev/null || echo no tty");
        assert_eq!(done.exits(0).is_kept().stdout(), "5\nnone\nno tty\n", "{shell}");
    }
}

#[test]
fn python_and_node_have_terminals_too() {
    let h = harness!();
    let s = h.session();
    let look =
        "import os, sys; print(os.get_terminal_size(), sys.stdout.isatty(), sys.stdin.isatty())";
    let done = s.run_with(&["--language", "python", "--pty", "--size", "90x20"], look);
    assert_eq!(done.stdout(), "os.terminal_size(columns=90, lines=20) True True\r\n");
    let ask = "name = input('name? ')";
    let run = s.run_with(&["--language", "python", "--pty", "--wait", "60s"], ask);
    let run = run.has("waiting_for_input", true).run();
    press(&h, &s, run, "Ada<Enter>", "Ada");
    assert_eq!(finish(&h, &s, run)["exit_code"], 0);
    s.run_in("python", "print(name)").prints("Ada\n");
    s.run_in("python", "open('/dev/tty')").exits(1);
    let child = "require('node:child_process').execSync('stty size', {stdio: 'inherit'}); 0";
    let done = s.run_with(&["--language", "node", "--pty", "--size", "90x20"], child);
    assert_eq!(done.stdout(), "20 90\r\n");
}

#[test]
fn vim_edits_a_file() {
    let h = harness!();
    let s = h.session();
    let run = start(&s, &["--size", "60x10"], "vim -u NONE -N notes.txt");
    let view = shows(&h, &s, run, "notes.txt");
    assert_eq!((&view["is_alternate"], &view["size"]["rows"]), (&true.into(), &10.into()));
    let view = press(&h, &s, run, "ihello 世界 😀<Esc>", "hello");
    assert_eq!(text(&view).lines().next(), Some("hello 世界 😀"));
    on_run(&h, &s, "keys", run, &[":wq<Enter>"]).exits(0);
    let done = finish(&h, &s, run);
    assert_eq!(done["exit_code"], 0);
    assert_eq!(std::fs::read_to_string(h.path("notes.txt")).unwrap(), "hello 世界 😀\n");
    // Its last screen is still there, also when nobody is left to be asked.
    let view = on_run(&h, &s, "screen", run, &["--format", "json"]).json();
    assert_eq!((&view["running"], &view["is_alternate"]), (&false.into(), &false.into()));
    s.end();
    on_run(&h, &s, "screen", run, &["--format", "json"]).exits(0);
}

#[test]
fn less_and_top_and_htop_are_read_and_left() {
    let h = harness!();
    let s = h.session();
    let lines: String = (1..=500).map(|i| format!("line {i}\n")).collect();
    std::fs::write(h.path("long.txt"), lines).unwrap();
    let run = start(&s, &[], "less long.txt");
    shows(&h, &s, run, "^line 23$");
    press(&h, &s, run, "G", "^line 500$");
    press(&h, &s, run, "?line 77<Enter>", "^line 77$");
    on_run(&h, &s, "keys", run, &["q"]).exits(0);
    assert_eq!(finish(&h, &s, run)["exit_code"], 0);
    for (program, sign) in [("top", "load average"), ("htop", "F10Quit|Load average")] {
        let run = start(&s, &["--size", "100x30"], program);
        shows(&h, &s, run, sign);
        on_run(&h, &s, "keys", run, &["q"]).exits(0);
        assert_eq!(finish(&h, &s, run)["exit_code"], 0, "{program}");
    }
}

#[test]
fn a_dialog_is_answered() {
    let h = harness!();
    let s = h.session();
    let run = start(&s, &[], "whiptail --yesno 'Install it?' 10 40 && echo yes || echo no");
    shows(&h, &s, run, "Install it\\?");
    on_run(&h, &s, "keys", run, &["<Tab><Enter>"]).exits(0);
    let done = finish(&h, &s, run);
    assert!(done["stdout"].as_str().unwrap().ends_with("no\r\n"), "{done:#}");
    let menu = "whiptail --menu Pick 15 40 4 a Apple b Berry c Cherry 3>&1 1>&2 2>&3";
    let run = start(&s, &[], &format!("x=$({menu})"));
    shows(&h, &s, run, "Cherry");
    on_run(&h, &s, "keys", run, &["<Down><Down><Enter>"]).exits(0);
    assert_eq!(finish(&h, &s, run)["exit_code"], 0);
    s.run("echo $x").prints("c\n");
}

#[test]
fn python_at_its_prompt_is_spoken_to() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash", "zsh"]) {
        let s = h.session_of(shell);
        let run = start(&s, &[], "python3 -q");
        shows(&h, &s, run, "^>>> $");
        press(&h, &s, run, "x = 6<Enter>", "x = 6\n>>> $");
        // It has to be in the loop: at its prompt, Python misses a Ctrl-C that
        // comes right before it waits for input.
        press(
            &h,
            &s,
            run,
            "print('go' + 'ing') or all(True for _ in iter(int, 1))<Enter>",
            "^going$",
        );
        press(&h, &s, run, "<C-c>", "KeyboardInterrupt\n>>> $");
        let view = press(&h, &s, run, "print(x * 7)<Enter>", "^42\n>>> $");
        assert_eq!(view["waiting_for_input"], true, "{shell}");
        on_run(&h, &s, "input", run, &["--eof"]).exits(0);
        let done = finish(&h, &s, run);
        assert_eq!(done["exit_code"], 0, "{shell}: {done:#}");
        s.run("echo alive").prints("alive\n").is_kept();
    }
}

#[test]
fn ctrl_c_ends_what_runs_and_keeps_what_is_remembered() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash", "zsh"]) {
        let s = h.session_of(shell);
        s.run("x=1");
        let run =
            start(&s, &[], "x=2; while :; do sh -c 'echo begun; exec sleep 100'; done; echo never");
        shows(&h, &s, run, "begun");
        on_run(&h, &s, "keys", run, &["<C-c>"]).exits(0);
        let done = finish(&h, &s, run);
        assert_eq!(done["exit_code"], 130, "{shell}: {done:#}");
        assert!(!done["stdout"].as_str().unwrap().contains("never"));
        s.run("echo $x").prints("2\n").is_kept();
    }
}

#[test]
fn a_stopped_program_comes_back_in_a_later_run() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash", "zsh"]) {
        let s = h.session_of(shell);
        let job = s.spawns("sleep 1000 & echo $!");
        let run = start(&s, &[], "cat");
        press(&h, &s, run, "one<Enter>", "one\none");
        on_run(&h, &s, "keys", run, &["<C-z>"]).exits(0);
        let done = finish(&h, &s, run);
        assert_eq!(done["exit_code"], 148, "{shell}: {done:#}");
        let (stopped, going) =
            if shell == "zsh" { ("suspended", " continued +cat$") } else { ("Stopped", "^cat$") };
        assert!(done["stdout"].as_str().unwrap().contains(stopped), "{shell}");
        // Ordinary runs go on meanwhile.
        s.run("echo between").prints("between\n").is_kept();
        job.assert_alive();
        let run = start(&s, &[], "fg");
        shows(&h, &s, run, going);
        press(&h, &s, run, "two<Enter>", "two\ntwo");
        on_run(&h, &s, "keys", run, &["<C-d>"]).exits(0);
        assert_eq!(finish(&h, &s, run)["exit_code"], 0, "{shell}");
        until("the end of the terminal", || {
            let asked = s.run("(: </dev/tty) 2>/dev/null || echo no tty").has("timed_out", false);
            (asked.stdout() == "no tty\n").then_some(())
        });
    }
}

#[test]
fn a_job_of_an_earlier_run_does_not_keep_the_runs_after_a_terminal_from_ending() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash", "zsh"]) {
        let s = h.session_of(shell);
        let job = s.spawns("sleep 1000 & echo $!");
        s.run_with(&["--pty"], "echo on it").exits(0);
        for _ in 0..2 {
            s.run_with(&["--timeout", "10s"], "echo on").prints("on\n").has("timed_out", false);
        }
        job.assert_alive();
    }
}

#[test]
fn a_program_that_stops_itself_and_its_kernel_goes_on() {
    let h = harness!();
    // Without job control there is nobody who could bring it back.
    let s = h.session_with(&["python3"]);
    let stop = "import os, signal; os.kill(0, signal.SIGTSTP); print('on')";
    let done = s.run_with(&["--pty"], stop).exits(0);
    assert!(done.stdout().contains("on\r\n"));
}

#[test]
fn what_stops_programs_is_the_users_again_after_a_terminal() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash", "zsh"]) {
        let s = h.session_of(shell);
        // Of a program, which is what matters: shells have their own ways.
        let ignored = "sed -n 's/SigIgn:.*\\(....\\)$/\\1/p' /proc/self/status";
        let look = |s: &Session<'_>| s.run(ignored).stdout().to_owned();
        let before = look(&s);
        let on_terminal = s.run_with(&["--pty"], format!("{ignored}; echo $-")).exits(0);
        assert!(on_terminal.stdout().contains('m'), "{shell}: {on_terminal:?}");
        assert_eq!(on_terminal.stdout().split_once('\r').unwrap().0, before.trim(), "{shell}");
        assert_eq!(look(&s), before, "{shell}");
        s.run("echo $-").exits(0);
        assert!(!s.run("echo $-").stdout().contains('m'), "{shell}");
        // A trap of the user's is worth more than job control.
        s.run("trap 'echo caught' TSTP");
        s.run_with(&["--pty"], "echo shown").exits(0);
        s.run("kill -TSTP $$").prints("caught\n").is_kept();
    }
}

#[test]
fn a_job_of_an_ordinary_run_is_reached_and_not_waited_for() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash", "zsh"]) {
        let s = h.session_of(shell);
        let job = s.spawns("sleep 1000 & echo $!");
        let refused = s.run_with(&["--pty"], "fg");
        assert_ne!(refused.json()["exit_code"], 0, "{shell}");
        let refused = refused.is_kept().stdout().to_owned();
        let reasons = ["without", "not created under job control"];
        assert!(reasons.iter().any(|reason| refused.contains(reason)), "{shell}: {refused}");
        job.assert_alive();
        // dash never finds such a job by its number, with a terminal or without.
        let spec = if shell == "dash" { job.pid().to_string() } else { "%sleep".to_owned() };
        s.run_with(&["--pty"], format!("sh -c 'exit 3' & wait $!; kill {spec}")).exits(0);
        job.wait_gone();
        s.run("type fg kill | grep -c built").prints("2\n").is_kept();
    }
}

#[test]
fn line_editing_does_not_get_between_a_shell_and_its_orders() {
    let h = harness!();
    for shell in Harness::shells(&["zsh"]) {
        let s = h.session_of(shell);
        s.run_with(&["--pty"], "setopt zle; x=1").exits(0).is_kept();
        let args = ["--pty", "--timeout", "300ms"];
        s.run_with(&args, "setopt zle; x=2; sleep 1000").timed_out().is_kept();
        s.run("echo $x").prints("2\n").is_kept();
    }
}

#[test]
fn a_wait_on_a_terminal_obeys_its_timeout() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash", "zsh"]) {
        let s = h.session_of(shell);
        s.run("x=1");
        let done = s.run_with(&["--pty", "--timeout", "300ms"], "sleep 1000 & wait");
        done.timed_out().is_kept();
        s.run("echo $x").prints("1\n").is_kept();
    }
}

#[test]
fn a_new_size_reaches_the_program() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash", "zsh"]) {
        let s = h.session_of(shell);
        let program = "import os, signal\n\
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])\n\
            print('ready')\n\
            while os.get_terminal_size().columns != 1:\n\
            \x20   signal.sigwait([signal.SIGWINCH])\n\
            \x20   print(os.get_terminal_size())";
        std::fs::write(h.path("sizes.py"), program).unwrap();
        let run = start(&s, &[], "python3 sizes.py");
        shows(&h, &s, run, "ready");
        on_run(&h, &s, "resize", run, &["132x43"]).exits(0);
        let view = shows(&h, &s, run, "columns=132, lines=43");
        assert_eq!(view["size"], json!({"cols": 132, "rows": 43}), "{shell}");
        on_run(&h, &s, "resize", run, &["0x5"]).exits(2);
        on_run(&h, &s, "resize", run, &["1x1"]).exits(0);
        assert_eq!(finish(&h, &s, run)["exit_code"], 0, "{shell}");
        let refused = on_run(&h, &s, "resize", run, &["80x24"]).exits(1);
        assert!(refused.errors().contains("has finished"), "{}", refused.errors());
    }
}

#[test]
fn colours_and_wide_characters_come_out_right() {
    let h = harness!();
    let s = h.session();
    let draw = r"printf '\e[38;5;208morange\e[0m \e[1;44mbold\e[0m 界e\u0301😀|\n\e]0;the title\a'";
    let run = s.run_with(&["--pty"], draw).exits(0).run();
    let cells = on_run(&h, &s, "screen", run, &["--format", "cells"]).json();
    assert_eq!(cells["title"], "the title");
    let spans = cells["lines"][0]["spans"].as_array().unwrap().clone();
    let find = |text: &str| {
        let found = spans.iter().find(|span| span["text"] == text);
        found.unwrap_or_else(|| panic!("{text}: {spans:#?}")).clone()
    };
    assert_eq!(find("orange")["foreground"], "color208");
    let bold = find("bold");
    assert_eq!((&bold["bold"], &bold["background"]), (&true.into(), &"blue".into()));
    assert_eq!((&find("界")["col"], &find("界")["width"]), (&12.into(), &2.into()));
    // One column for the letter with its accent, two for the emoji.
    assert_eq!(find("😀")["col"], 15);
    assert_eq!(find("|")["col"], 17);
    let svg = on_run(&h, &s, "screen", run, &["--format", "svg"]).exits(0).text();
    assert!(svg.starts_with("<svg"), "{svg}");
    let shown = on_run(&h, &s, "screen", run, &["--format", "png"]).exits(0);
    assert_eq!(&shown.stdout[..8], b"\x89PNG\r\n\x1a\n");
}

#[test]
fn a_paste_of_ten_megabytes_arrives_whole() {
    let h = harness!();
    let s = h.session();
    let line = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n";
    let paste = line.repeat((10 << 20) / line.len());
    std::fs::write(h.path("paste"), &paste).unwrap();
    let wait = "stty -echo; echo ready; cat >got; cmp got paste && echo same";
    let run = start(&s, &[], wait);
    shows(&h, &s, run, "ready");
    let given = h.begin(&["input", s.id(), &run.to_string(), "--eof"], paste.as_bytes());
    given.finish().exits(0);
    let done = finish(&h, &s, run);
    assert!(done["stdout"].as_str().unwrap().ends_with("same\r\n"), "{done:#}");
}

#[test]
fn a_flood_on_the_screen_harms_nobody() {
    let h = harness!();
    let s = h.session();
    let flood = start(&s, &["--size", "200x60"], "yes $'\\e[2J\\e[3;4Hflood\\e[1000;1000H'");
    shows(&h, &s, flood, "flood");
    // The keeper is not kept from anything else meanwhile.
    s.run_in("python", "print(1)").prints("1\n");
    on_run(&h, &s, "keys", flood, &["<C-c>"]);
    let done = finish(&h, &s, flood);
    assert_eq!(done["exit_code"], 130, "{done:#}");
    s.run("echo calm").prints("calm\n").is_kept();
}

#[test]
fn a_run_that_waits_for_keys_obeys_its_timeout() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash", "zsh"]) {
        let s = h.session_of(shell);
        s.run("x=1");
        for program in ["read -r answer", "vim -u NONE", "python3 -q"] {
            let begun = s.run_with(&["--pty", "--background", "--timeout", "300ms"], program);
            let done = finish(&h, &s, begun.run());
            assert_eq!(done["timed_out"], true, "{shell}, {program}: {done:#}");
        }
        s.run("echo $x").prints("1\n").is_kept();
    }
}

#[test]
fn what_a_terminal_is_asked_for_in_vain_is_told() {
    let h = harness!();
    let s = h.session();
    let run = s.run_with(&["--pty"], "echo over").exits(0).run();
    let refused = on_run(&h, &s, "keys", run, &["x"]).exits(1);
    assert_eq!(refused.errors(), "Error: run 1 has finished and gets no keys\n");
    let plain = s.run("echo plain").run();
    let refused = on_run(&h, &s, "screen", plain, &[]).exits(1);
    assert!(refused.errors().contains("has no terminal"), "{}", refused.errors());
    on_run(&h, &s, "screen", 99, &[]).exits(1);
    let run = start(&s, &[], "cat");
    let refused = on_run(&h, &s, "keys", run, &["<Nonsense>"]).exits(1);
    assert!(refused.errors().contains("<lt>"), "{}", refused.errors());
    let vain = ["--wait-for", "never comes", "--timeout", "100ms", "--format", "json"];
    let view = on_run(&h, &s, "screen", run, &vain).exits(1);
    let view: Value = serde_json::from_slice(&view.stdout).unwrap();
    assert_eq!(view["wait"], "timed_out");
    let refused = on_run(&h, &s, "screen", run, &["--wait-for", "("]).exits(2);
    assert!(refused.errors().contains("not a regular expression"), "{}", refused.errors());
}

#[test]
fn what_is_left_in_the_background_keeps_its_terminal() {
    let h = harness!();
    let s = h.session();
    h.sessile(&["run", "mkfifo go"]).exits(0);
    let run = s.run_with(&["--pty"], "(read -r _ <go; echo late) & echo first").exits(0).run();
    s.run("echo plain").prints("plain\n");
    std::fs::write(h.path("go"), "\n").unwrap();
    until("late output", || {
        let view = on_run(&h, &s, "output", run, &[]).json();
        let is_over = view["phase"] == "closed";
        (view["stdout"] == "first\r\nlate\r\n" && is_over).then_some(())
    });
    assert_eq!(text(&on_run(&h, &s, "screen", run, &["--format", "json"]).json()), "first\nlate");
}

#[test]
fn traps_and_functions_are_as_before_after_a_terminal() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "dash"]) {
        let s = h.session_of(shell);
        s.run("trap 'echo hup' HUP; trap 'echo usr' USR1; f() { echo f; }");
        s.run_with(&["--pty"], "f; set +o | grep -c monitor").exits(0);
        s.run("kill -HUP $$; kill -USR1 $$; f; case $- in *m*) echo m;; esac")
            .prints("hup\nusr\nf\n")
            .is_kept();
    }
}

#[test]
fn the_commands_for_terminals_alone() {
    let h = harness!();
    let started = h.sessile(&["pty", "start", "--", "python3", "-q"]).json();
    let id = started["session_id"].as_str().unwrap();
    h.sessile(&["pty", "read", id, "--wait-for", ">>> $", "--timeout", "30s"]).exits(0);
    let wait = ["--wait-for", "^42$", "--timeout", "30s"];
    let words = [&["pty", "write", id, "print(6*7)", "--enter"], &wait[..]].concat();
    assert_eq!(h.sessile(&words).json()["wait"], "matched");
    let listed = h.sessile(&["pty", "list"]).json();
    assert_eq!((&listed[0]["session_id"], &listed[0]["running"]), (&id.into(), &true.into()));
    let again = [&["pty", "write-key", id, "Up", "Enter"], &["--wait-for", "42\n.*\n42"][..]];
    h.sessile(&again.concat()).exits(0);
    h.sessile(&["pty", "write-key", id, "nokey"]).exits(2);
    h.sessile(&["pty", "write-key", id, "ctrl-d"]).exits(0);
    until("the end of the program", || {
        let view = h.sessile(&["pty", "read", id]).json();
        (view["running"] == false).then_some(())
    });
    h.sessile(&["pty", "end", id]).exits(0);
    assert_eq!(h.sessile(&["pty", "list"]).json(), json!([]));
    assert!(h.sessile(&["pty", "read", id]).json()["text"].as_str().unwrap().contains("42"));
}
