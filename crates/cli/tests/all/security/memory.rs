//! The private directories in memory, removed by somebody else.

use sessile_testkit::{Answer, Harness, Session, harness, until};
use std::sync::atomic::{AtomicU32, Ordering};

const TOLD: &str = "private directory in memory was removed or moved";

/// Its keeper may be writing there at this moment.
fn remove_memory(s: &Session<'_>) {
    until("the memory to be gone", || std::fs::remove_dir_all(s.memory()).ok());
}

/// The same by a run of Python, and for the same reason not at once.
fn in_python(s: &Session<'_>) -> String {
    let memory = s.memory();
    format!(
        "import os, shutil\nwhile os.path.exists({memory:?}): shutil.rmtree({memory:?}, True)\n"
    )
}

/// The same by a run of Node. `rmSync` alone does not do: its further tries do not remove
/// what has been added since the first one.
fn in_node(s: &Session<'_>) -> String {
    let memory = s.memory();
    format!(
        "while (fs.existsSync({memory:?})) try {{ fs.rmSync({memory:?}, {{recursive: true}}) }} catch {{}}\n"
    )
}

/// Nothing was lost, and why something might have been is told.
#[track_caller]
fn goes_on(answer: Answer) {
    let answer = answer.is_kept();
    assert!(answer.notes().contains(TOLD), "{}", answer.notes());
}

#[test]
fn no_pattern_for_names_takes_the_memory_of_all_sessions() {
    let h = harness!();
    let names = [h.session(), h.session()].map(|s| {
        assert!(s.memory().is_dir());
        s.memory().file_name().unwrap().to_str().unwrap().to_owned()
    });
    for name in &names {
        assert!(name.starts_with('.') && !name.starts_with(".sessile"), "{name}");
    }
}

#[test]
fn shells_whose_memory_is_removed_in_idle_time_go_on() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "sh"]) {
        let s = h.session_of(shell);
        let kernel = s.kernel();
        s.run("x=1; f() { echo $x; }; sleep 1000 & (exit 4)").exits(4);
        // The second time, what is there is of the keeper's second making.
        for _ in 0..2 {
            remove_memory(&s);
            goes_on(s.run("echo $?; f; kill -0 $!").exits(0).prints("4\n1\n"));
            assert_eq!(s.run("(exit 4)").is_kept().notes(), "");
        }
        assert_eq!(s.kernel().pid(), kernel.pid());
        // What needs files of ours is there again.
        s.run("y=2; exit 3").exits(3).is_restarted();
        s.run("echo $x$y").prints("12\n");
    }
}

#[test]
fn python_goes_on_with_what_cannot_be_written_down() {
    let h = harness!();
    let s = h.session_of("bash");
    let setup = "import socket\n\
        a, b = socket.socketpair(); g = (i for i in range(9)); f = open('/etc/passwd'); next(g)";
    s.python(setup).exits(0);
    for _ in 0..2 {
        remove_memory(&s);
        goes_on(s.python("a.send(b'x'); print(b.recv(1), f.closed)").prints("b'x' False\n"));
        assert_eq!(s.python("pass").is_kept().notes(), "");
    }
    s.python("print(next(g))").prints("1\n");
    // Parts of the driver that are loaded from files, and descriptors that are opened anew.
    remove_memory(&s);
    goes_on(s.python("import os; os.closerange(3, 1024); 1 / 0").exits(1));
    s.python("print(list(g))").prints("[2, 3, 4, 5, 6, 7, 8]\n").is_kept();
}

#[test]
fn node_goes_on_with_what_cannot_be_written_down() {
    let h = harness!();
    let s = h.session();
    let setup = "let n = 0; const timer = setInterval(() => { n++ }, 1); function* g() { yield 1; yield 2 } \
        const it = g(); it.next().value";
    s.run_in("node", setup).exits(0);
    for _ in 0..2 {
        remove_memory(&s);
        goes_on(s.run_in("node", "console.log(timer.hasRef())").prints("true\n"));
        assert_eq!(s.run_in("node", "0").is_kept().notes(), "");
    }
    remove_memory(&s);
    goes_on(s.run_with(&["--language", "node", "--timeout", "200ms"], "for (;;);").timed_out());
    s.run_in("node", "console.log(it.next().value, n > 0)").prints("2 true\n").is_kept();
}

#[test]
fn a_durable_session_whose_memory_is_removed_in_idle_time_is_saved_all_the_same() {
    let h = harness!();
    std::fs::write(h.path("kept"), "in the way").unwrap();
    let url = format!("--durable=file://{}", h.path("kept").display());
    let s = h.session_with(&[&url]);
    s.run("x=1");
    s.python("x = 2");
    let store = |name: &str| s.metadata()["durable"]["store"][name].clone();
    until("an upload that fails", || store("error").is_string().then_some(()));
    s.wait_captured(2);
    remove_memory(&s);
    std::fs::remove_file(h.path("kept")).unwrap();
    until("a save in the store", || (store("as_of_run") == 2).then_some(()));
    goes_on(s.run("echo $x").prints("1\n"));
    goes_on(s.python("print(x)").prints("2\n"));
}

#[test]
fn a_run_that_removes_the_memory_of_its_session_is_answered_as_it_ended() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "sh"]) {
        let s = h.session_of(shell);
        let text = format!("x=1; rm -rf {} 2>/dev/null; echo out; (exit 3)", s.memory().display());
        goes_on(s.run(&text).exits(3).prints("out\n"));
        s.run("echo $? $x; sleep 1000 &").exits(0).prints("3 1\n").is_kept();
        // There is more to report of these.
        goes_on(s.run(&text).exits(3).prints("out\n"));
        goes_on(s.run_with(&["--pty"], &text).exits(3).prints("out\r\n"));
        s.run("echo $? $x").exits(0).prints("3 1\n").is_kept();
    }
    let s = h.session();
    let text = format!("x = 1; {}print('out')", in_python(&s));
    goes_on(s.python(text).exits(0).prints("out\n"));
    s.python("print(x)").exits(0).prints("1\n").is_kept();
    let text = format!("let x = 1; {}x + 1", in_node(&s));
    goes_on(s.run_in("node", text).exits(0).has("result", "2"));
    s.run_in("node", "x").exits(0).is_kept();
}

/// Its traceback is the work of a part that no run before has needed.
#[test]
fn a_run_of_python_that_removes_its_memory_fails_as_it_would_have() {
    let h = harness!();
    let s = h.session();
    let text = format!("{}1 / 0", in_python(&s));
    let answer = s.python(text).exits(1);
    assert!(answer.stderr().contains("ZeroDivisionError: division by zero"), "{}", answer.stderr());
    goes_on(answer);
}

#[test]
fn a_shell_that_removes_its_memory_and_exits_is_brought_back_and_told() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "sh"]) {
        let s = h.session_of(shell);
        s.run("x=1").exits(0);
        s.wait_captured(1);
        let text = format!("rm -rf {}; exit 3", s.memory().display());
        // As of this run, if the directory is there again by then, else of the one before.
        let answer = s.run(text).exits(3);
        assert!(answer.notes().contains(TOLD), "{shell}: {}", answer.notes());
        s.run("echo $x").exits(0).prints("1\n").is_kept();
    }
}

#[test]
fn runs_that_go_on_while_their_memory_is_removed_end_as_they_would_have() {
    let h = harness!();
    let gate = h.path("gate");
    let waits = |language: &str| match language {
        "python" => {
            format!("x = 1; import sys; v = open({gate:?}).read(); print(v, end=''); sys.exit(3)")
        }
        "node" => format!(
            "var x = 1; process.stdout.write(require('fs').readFileSync({gate:?})); process.exit(3)"
        ),
        _ => format!("x=1; cat {}; (exit 3)", gate.display()),
    };
    let languages = Harness::shells(&["bash", "zsh", "sh"]).into_iter().chain(["python", "node"]);
    for language in languages {
        let _ = std::fs::remove_file(&gate);
        assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
        let s = h.session();
        s.run_in(language, "0").exits(if language == "python" || language == "node" {
            0
        } else {
            127
        });
        let text = waits(language);
        let client = s.begin_with(&["--language", language], &text);
        // It opens when the run does.
        let mut writer = std::fs::File::options().write(true).open(&gate).unwrap();
        remove_memory(&s);
        std::io::Write::write_all(&mut writer, b"out\n").unwrap();
        drop(writer);
        goes_on(s.answer(client, &text).exits(3).prints("out\n"));
        let show = match language {
            "python" => "print(x)",
            "node" => "console.log(x)",
            _ => "echo $x",
        };
        s.run_in(language, show).prints("1\n").is_kept();
    }
}

#[test]
fn whatever_is_asked_first_brings_a_removed_memory_back() {
    let h = harness!();
    let s = h.session();
    s.run("x=1").exits(0);
    s.python("x = (i for i in range(9))").exits(0);
    for word in ["state", "checkpoint", "fork"] {
        remove_memory(&s);
        let asked = h.sessile(&[word, s.id()]).json();
        assert!(asked.get("error").is_none(), "{asked}");
        goes_on(s.run("echo $x").exits(0).prints("1\n"));
        goes_on(s.python("print(next(x) >= 0)").exits(0).prints("True\n"));
    }
}

#[test]
fn a_checkpoint_outlives_the_memory() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    s.python("g = (i for i in range(9)); next(g)").exits(0);
    s.run_in("node", "let x = 1").exits(0);
    s.checkpoint(&["--name", "here"]);
    s.run("x=2");
    s.python("list(g)");
    remove_memory(&s);
    s.rewind(&["here"]);
    s.run("echo $x").prints("1\n");
    s.python("print(next(g))").prints("1\n");
    // In a kernel that is a copy, too.
    remove_memory(&s);
    goes_on(s.python("print(next(g))").prints("2\n"));
}

#[test]
fn a_run_that_moves_the_memory_of_its_session_is_told_what_happened() {
    let h = harness!();
    let s = h.session();
    let memory = s.memory();
    let moved = format!("{}.moved", memory.display());
    let answer = s.run(format!("x=1; mv {} {moved}; (exit 3)", memory.display())).exits(3);
    assert!(!answer.notes().contains("builtin"), "{}", answer.notes());
    goes_on(answer);
    s.run("echo $x").exits(0).prints("1\n").is_kept();
    std::fs::remove_dir_all(&moved).unwrap();
    s.python("x = iter('ab')").exits(0);
    std::fs::rename(&memory, &moved).unwrap();
    goes_on(s.python("print(next(x))").prints("a\n"));
    std::fs::remove_dir_all(moved).unwrap();
}

/// Without most of them a run cannot begin, and fails.
#[test]
fn single_files_that_were_removed_come_back() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "sh"]) {
        let s = h.session_of(shell);
        s.run("x=1").exits(0);
        let kernel = std::fs::read_dir(s.memory()).unwrap().next().unwrap().unwrap().path();
        std::fs::remove_file(kernel.join("c")).unwrap();
        goes_on(s.run("echo never").prints(""));
        s.run("echo $x").exits(0).prints("1\n").is_kept();
        // A shell would write to a file of its own making. The second time, there are links.
        for name in ["o", "e", "o", "e"] {
            std::fs::remove_file(kernel.join(name)).unwrap();
            let answer = s.run("echo lost; echo lost >&2").exits(0);
            assert!(answer.notes().contains("output of this run may be lost"), "{answer:?}");
            let answer = s.run("echo $x; echo $x >&2").exits(0).prints("1\n").is_kept();
            assert_eq!((answer.stderr(), answer.notes()), ("1\n", String::new()));
        }
    }
    let s = h.session();
    s.python("x = 1").exits(0);
    for name in ["o", "e"] {
        std::fs::remove_file(s.memory().join("p").join(name)).unwrap();
        goes_on(s.python("print('never')").exits(1).prints(""));
        s.python("print(x)").exits(0).prints("1\n").is_kept();
    }
}

#[test]
fn forks_go_on_although_the_memory_of_their_family_was_removed() {
    let h = harness!();
    let s = h.session();
    s.run("x=1").exits(0);
    s.python("g = (i for i in range(9))").exits(0);
    let fork = s.fork();
    fork.run("echo $x").exits(0).prints("1\n");
    fork.python("print(next(g))").prints("0\n");
    for n in 1..3 {
        remove_memory(&s);
        goes_on(fork.run("echo $x").exits(0).prints("1\n"));
        goes_on(fork.python("print(next(g))").prints(&format!("{n}\n")));
        goes_on(s.run("echo $x").exits(0).prints("1\n"));
        goes_on(s.python("print(next(g))").prints(&format!("{}\n", n - 1)));
    }
}

#[test]
fn a_reset_works_although_the_memory_was_removed() {
    let h = harness!();
    let s = h.session();
    s.run("x=1").exits(0);
    remove_memory(&s);
    s.sessile("reset").exits(0);
    s.run("echo ok$x").exits(0).prints("ok\n");
}

/// By mounts alone, and with rules for paths where this user may have them.
fn in_sandboxes(check: impl Fn(&Harness, &[&str])) {
    let h = harness!();
    for policy in ["full-access", "development"] {
        check(&h, &["--sandbox", policy, "--files", "direct"]);
    }
    if rustix::process::geteuid().is_root() {
        let h = Harness::unprivileged(env!("CARGO_BIN_EXE_sessile"));
        check(&h, &["--sandbox", "full-access", "--files", "direct"]);
    }
}

const LANGUAGES: [&str; 4] = ["bash", "zsh", "python", "node"];

#[test]
fn kernels_in_a_sandbox_go_on_with_what_cannot_be_written_down() {
    in_sandboxes(|h, sandbox| {
        let s = h.session_with(sandbox);
        let kernel = s.kernel();
        s.run("x=1; f() { echo $x; }; sleep 1000 & (exit 4)").exits(4);
        s.python("g = (i for i in range(9)); next(g)").exits(0);
        s.run_in("node", "function* f() { yield 1; yield 2; yield 3 } const it = f(); it.next()")
            .exits(0);
        // The second time, what is there is of the keeper's second making.
        for n in 1..3 {
            remove_memory(&s);
            goes_on(s.run("echo $?; f; kill -0 $!; (exit 4)").exits(4).prints("4\n1\n"));
            goes_on(s.python("print(next(g))").prints(&format!("{n}\n")));
            goes_on(s.run_in("node", "it.next().value").has("result", format!("{}", n + 1)));
            assert_eq!(s.run("(exit 4)").is_kept().notes(), "");
            assert_eq!(s.python("pass").is_kept().notes(), "");
            assert_eq!(s.run_in("node", "0").is_kept().notes(), "");
        }
        assert_eq!(s.kernel().pid(), kernel.pid());
        // What needs files of ours is there again, and so is the way to lost descriptors.
        s.run("y=2; exit 3").exits(3).is_restarted();
        s.run("echo $x$y").prints("12\n");
        s.python("import os; os.closerange(3, 1024); 1 / 0").exits(1);
        s.python("print(list(g))").prints("[3, 4, 5, 6, 7, 8]\n").is_kept();
        remove_memory(&s);
        goes_on(s.run_with(&["--language", "node", "--timeout", "200ms"], "for (;;);").timed_out());
        s.run_in("node", "it.next().done").has("result", "true").is_kept();
        // A kernel that was not there before.
        if Harness::shells(&["zsh"]).contains(&"zsh") {
            remove_memory(&s);
            s.run_in("zsh", "echo new").exits(0).prints("new\n");
            goes_on(s.run("echo $x").prints("1\n"));
        }
    });
}

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Begins a run that waits for a file, and removes the memory before that comes.
fn removed_within(s: &Session<'_>, options: &[&str], language: &str, end: &str) -> Answer {
    let h = s.harness();
    // Names of each run's own: a sandbox with rules may remember a file for a while.
    let own = NEXT.fetch_add(1, Ordering::Relaxed);
    let [begun, gate] = ["begun", "gate"].map(|name| format!("{name}{own}"));
    let text = match language {
        "python" => format!(
            "x = 1; import os, sys, time; open('{begun}', 'w').close()\n\
             while not os.path.exists('{gate}'): time.sleep(0.01)\n\
             print('out'); {end}"
        ),
        "node" => format!(
            "var x = 1; fs.writeFileSync('{begun}', ''); \
             while (!fs.existsSync('{gate}')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10); \
             console.log('out'); {end}"
        ),
        _ => {
            format!("x=1; touch {begun}; until [ -e {gate} ]; do sleep 0.01; done; echo out; {end}")
        }
    };
    let client = s.begin_with(&[&["--language", language], options].concat(), &text);
    until("the run to begin", || h.path(&begun).exists().then_some(()));
    remove_memory(s);
    std::fs::write(h.path(&gate), "").unwrap();
    s.answer(client, &text)
}

fn show(language: &str) -> &'static str {
    match language {
        "python" => "print(x)",
        "node" => "console.log(x)",
        _ => "echo $x",
    }
}

#[test]
fn runs_in_a_sandbox_end_as_they_would_have() {
    in_sandboxes(|h, sandbox| {
        let s = h.session_with(sandbox);
        for language in Harness::shells(&LANGUAGES[..2]).into_iter().chain(["python", "node"]) {
            s.run_in(language, "1 + 1");
            let end = match language {
                "python" => "sys.exit(3)",
                "node" => "process.exit(3)",
                _ => "(exit 3)",
            };
            goes_on(removed_within(&s, &[], language, end).exits(3).prints("out\n"));
            s.run_in(language, show(language)).prints("1\n").is_kept();
            goes_on(removed_within(&s, &["--pty"], language, end).exits(3).prints("out\r\n"));
            s.run_in(language, show(language)).prints("1\n").is_kept();
        }
    });
}

#[test]
fn a_shell_in_a_sandbox_that_exits_without_its_memory_is_brought_back_and_told() {
    in_sandboxes(|h, sandbox| {
        let s = h.session_with(sandbox);
        s.run("x=1").exits(0);
        s.wait_captured(1);
        // As of this run, if the directory is there again by then, else of the one before.
        let answer = removed_within(&s, &[], "bash", "exit 3").exits(3);
        assert!(answer.notes().contains(TOLD), "{}", answer.notes());
        s.run("echo $x").exits(0).prints("1\n").is_kept();
    });
}

#[test]
fn forks_and_checkpoints_in_a_sandbox_outlive_its_memory() {
    in_sandboxes(|h, sandbox| {
        let s = h.session_with(sandbox);
        s.run("x=1").exits(0);
        s.python("g = (i for i in range(9)); next(g)").exits(0);
        s.run_in("node", "let x = 1").exits(0);
        let fork = s.fork();
        s.checkpoint(&["--name", "here"]);
        s.run("x=2");
        s.python("list(g)");
        remove_memory(&s);
        goes_on(fork.run("echo $x").exits(0).prints("1\n"));
        goes_on(fork.python("print(next(g))").prints("1\n"));
        goes_on(s.run("echo $x").exits(0).prints("2\n"));
        remove_memory(&s);
        s.rewind(&["here"]);
        s.run("echo $x").prints("1\n");
        s.python("print(next(g))").prints("1\n");
        // In a kernel that is a copy, too.
        remove_memory(&s);
        goes_on(s.python("print(next(g))").prints("2\n"));
        remove_memory(&s);
        let another = s.fork();
        another.run("echo $x").prints("1\n");
        another.python("print(next(g))").prints("3\n");
    });
}
