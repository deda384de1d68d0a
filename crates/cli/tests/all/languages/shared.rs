//! Several languages in one session, and what holds for each of them: waiting
//! clients, interrupts, what lives on in the background, and the end.

use serde_json::{Value, json};
use sessile_testkit::{Harness, Process, Session, harness};
use std::os::unix::fs::symlink;

/// Those of the languages that this machine has, with their programs.
fn languages() -> Vec<(&'static str, &'static str)> {
    let all = [("python3", "python"), ("node", "node")];
    let there = Harness::shells(&["python3", "node"]);
    all.into_iter().filter(|(program, _)| there.contains(program)).collect()
}

fn has_node() -> bool {
    !Harness::shells(&["node"]).is_empty()
}

#[test]
fn a_text_arrives_whole_whatever_characters_it_has() {
    let h = harness!();
    let s = h.session();
    // Six times as long where it is written as JSON.
    let bells = "\u{7}".repeat(16_000);
    for (_, language) in languages() {
        let quotes = if language == "python" { "'" } else { "`" };
        let length = if language == "python" { ".__len__()" } else { ".length" };
        s.run_in(language, format!("{quotes}{bells}{quotes}{length}")).has("result", "16000");
        s.run_in(language, "\u{feff}1 + 1").has("result", "2").is_kept();
    }
}

#[test]
fn each_language_has_its_own_kernel_and_they_share_the_session() {
    let h = harness!();
    let s = h.session_with(&["--env", "SHARED=yes"]);
    s.run("x=bash; cd /usr; echo $SHARED").prints("yes\n").has("language", "bash");
    s.run_in("python", "import os; x = 'python'; os.environ['SHARED']").has("result", "'yes'");
    if has_node() {
        s.run_in("node", "let x = 'node'; process.env.SHARED").has("result", "'yes'");
        s.run_in("node", "x").has("result", "'node'").is_kept();
    }
    s.run("echo $x").prints("bash\n").is_kept();
    s.run_in("python", "x").has("result", "'python'").is_kept();
    s.run_in("python", "open(os.path.join(os.getcwd(), 'made'), 'w').write('1'); 0").exits(0);
    assert!(h.path("made").exists(), "a cd of the shell's is the shell's alone");
    let state = s.state();
    assert_eq!(state["working_dir"], "/usr");
    assert_eq!(state["kernels"]["bash"]["variables"]["x"], "bash");
    assert_eq!(state["kernels"]["python"]["variables"]["x"]["repr"], "'python'");
    let history = s.history();
    let used: Vec<_> =
        history.as_array().unwrap().iter().map(|entry| entry["language"].as_str()).collect();
    assert_eq!(used.first(), Some(&Some("bash")));
    assert!(used.contains(&Some("python")));
}

#[test]
fn a_reset_gives_every_language_a_fresh_kernel() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    s.run_in("python", "x = 1");
    s.sessile("reset").exits(0);
    s.run("echo [$x]").prints("[]\n");
    s.run_in("python", "'x' in globals()").has("result", "False");
    if has_node() {
        s.run_in("node", "let x = 1");
        s.sessile("reset").exits(0);
        s.run_in("node", "typeof x").has("result", "'undefined'");
    }
}

#[test]
fn the_program_that_a_session_is_started_with_is_its_default() {
    let h = harness!();
    h.session().run("python3 -m venv --without-pip venv").exits(0);
    let path = h.path("venv").display().to_string();
    for program in
        [format!("{path}/bin/python"), "venv/bin/python3".into(), "./venv/bin/python".into()]
    {
        let s = h.session_with(&[&program, "--cwd", "/usr"]);
        let ask = "import sys, os; print(sys.prefix, os.getcwd())";
        s.run(ask).prints(&format!("{path} /usr\n")).has("language", "python");
        s.run_in("python", ask).prints(&format!("{path} /usr\n")).is_kept();
        s.run_in("bash", "echo $0").prints("bash\n").has("language", "bash");
        // A new kernel is one of the same program.
        s.run("os._exit(1)").is_fresh();
        s.run(ask).prints(&format!("{path} /usr\n"));
        s.end();
    }
    for (program, language) in languages() {
        let s = h.session_of(program);
        s.run("1 + 1").has("result", "2").has("language", language);
        assert_eq!(s.metadata()["language"], language);
    }
}

#[test]
fn a_missing_interpreter_is_named_with_where_it_was_looked_for() {
    let h = harness!();
    let failing = |args: &[&str], words: &[&str]| {
        let output = h.sessile(args).exits(1).prints("");
        let line = output.errors();
        assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
        for word in words {
            assert!(line.contains(word), "{args:?}: {word} in {line}");
        }
    };
    for program in ["python3", "node"] {
        let path = "PATH=/nowhere:/no/where";
        failing(&["start", program, "--env", path], &[program, "/nowhere:/no/where"]);
        let missing = format!("/no/such/{program}");
        failing(&["start", &missing], &[&missing]);
    }
    assert!(h.list().is_empty(), "{:?}", h.list());
    std::fs::create_dir(h.path("bin")).unwrap();
    symlink("/bin/bash", h.path("bin/bash")).unwrap();
    let bin = h.path("bin").display().to_string();
    let s = h.session_with(&["--env", &format!("PATH={bin}")]);
    s.run("x=1");
    for (language, program) in [("python", "python3"), ("node", "node")] {
        failing(&["exec", s.id(), "--language", language, "--", "1"], &[program, &bin]);
    }
    s.run("echo $x").prints("1\n").is_kept();
    assert_eq!(s.history().as_array().unwrap().len(), 2, "what was not run is not in it");
    // It is looked for again: the next call finds what was installed meanwhile.
    std::fs::write(h.path("bin/node"), "#!/bin/bash\necho broken >&2; exit 3\n").unwrap();
    failing(&["exec", s.id(), "--language", "node", "--", "1"], &["node"]);
}

#[test]
fn a_program_that_is_no_interpreter_is_told_on_one_line() {
    let h = harness!();
    std::fs::write(h.path("python3"), "not a program").unwrap();
    for program in [h.path("python3").display().to_string(), "/etc/python3/".into(), "perl".into()]
    {
        let output = h.sessile(&["start", &program]).exits(1).prints("");
        let line = output.errors();
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(line.contains(program.trim_end_matches('/')), "{line}");
    }
    assert!(h.list().is_empty());
}

#[test]
fn clients_at_once_are_queued_and_get_their_own_output() {
    let h = harness!();
    for (program, _) in languages() {
        let s = h.session_of(program);
        let text = |i: usize| match program {
            "node" => format!(
                "for (let n = 0; n < 200; n++) console.log({i}); console.error('e{i}'); process.exit({i})"
            ),
            _ => format!(
                "import sys\nfor n in range(200): print({i})\nprint('e{i}', file=sys.stderr)\nsys.exit({i})"
            ),
        };
        s.run("1");
        let clients: Vec<_> = (1..=8).map(|i| (i, s.begin(text(i)))).collect();
        let mut runs = Vec::new();
        for (i, client) in clients {
            let answer = s.answer(client, text(i)).prints(&format!("{i}\n").repeat(200));
            let code = i64::try_from(i).unwrap();
            runs.push(answer.warns(&format!("e{i}\n")).exits(code).is_kept().run());
        }
        runs.sort_unstable();
        assert_eq!(runs, (2..=9).collect::<Vec<_>>());
    }
}

#[test]
fn a_busy_language_does_not_delay_another() {
    let h = harness!();
    let s = h.session();
    let hangs = [
        ("bash", "touch begun.bash; sleep 1000".to_owned()),
        ("python", "open('begun.python', 'w').close()\nwhile True: pass".to_owned()),
        ("node", "require('fs').writeFileSync('begun.node', ''); for (;;);".to_owned()),
    ];
    let hangs: Vec<_> =
        hangs.into_iter().filter(|(language, _)| *language != "node" || has_node()).collect();
    for (language, _) in &hangs {
        s.run_in(language, if *language == "bash" { ":" } else { "1" }).exits(0);
    }
    // Captures them: of a busy kernel, the last captured state is shown.
    assert!(s.state().is_object());
    for (busy, hang) in &hangs {
        let mut client = s.begin_with(&["--language", busy, "--timeout", "0"], hang);
        h.wait_for_file(&format!("begun.{busy}"));
        for (other, _) in hangs.iter().filter(|(other, _)| other != busy) {
            let text = if *other == "bash" { "echo 1" } else { "1" };
            let answer = s.run_in(other, text).exits(0).is_kept();
            assert_eq!(answer.json()["language"], *other);
        }
        let state = s.state();
        assert_eq!(state["kernels"][busy]["busy"], true, "{busy}");
        assert!(client.is_waiting());
        s.sessile("interrupt").exits(0);
        s.answer(client, hang).exits(130).is_kept();
    }
}

#[test]
fn the_death_of_one_kernel_leaves_the_others_alone() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    s.run_in("python", "x = 2");
    s.run_in("python", "import os; os._exit(3)").exits(3).is_fresh();
    s.run("echo $x").prints("1\n").is_kept();
    s.run_in("python", "y = 5").is_kept();
    s.run("kill -9 $$").exits(137);
    s.run_in("python", "y").has("result", "5").is_kept();
    if has_node() {
        s.run_in("node", "let z = 7");
        s.run_in("python", "os = __import__('os'); os.abort()").exits(134).is_fresh();
        s.run_in("node", "z").has("result", "7").is_kept();
    }
}

/// What hangs, by language. Each writes `begun` first.
const HANGS: &[(&str, &str)] = &[
    ("python", "while True: pass"),
    ("python", "import time; time.sleep(1000)"),
    ("python", "import os; os.read(os.pipe()[0], 1)"),
    ("python", "import subprocess; subprocess.run(['sleep', '1000'])"),
    ("python", "import os; os.system('sleep 1000'); import time; time.sleep(1000)"),
    ("python", "import threading; threading.Event().wait()"),
    ("python", "import queue; queue.Queue().get()"),
    ("python", "import asyncio; await asyncio.sleep(1000)"),
    ("python", "import asyncio; await asyncio.Event().wait()"),
    ("python", "!sleep 1000"),
    ("node", "for (;;);"),
    ("node", "await new Promise(() => {})"),
    ("node", "await new Promise((r) => setTimeout(r, 1e6))"),
    ("node", "for (;;) await null"),
    ("node", "(function f() { process.nextTick(f) })(); await new Promise(() => {})"),
    ("node", "try { for (;;); } catch { for (;;); }"),
    ("node", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)"),
];

fn begins(language: &str) -> &'static str {
    match language {
        "node" => "require('fs').writeFileSync('begun', '');\n",
        _ => "open('begun', 'w').close()\n",
    }
}

#[test]
fn whatever_hangs_is_interrupted_with_its_state_kept() {
    let h = harness!();
    for (program, language) in languages() {
        let s = h.session_of(program);
        s.run(if language == "node" { "let x = 1" } else { "x = 1" });
        for (_, hang) in HANGS.iter().filter(|(of, _)| *of == language) {
            println!("{language}: {hang}");
            let text = format!("{}{hang}", begins(language));
            let client = s.begin_with(&["--timeout", "0"], &text);
            h.wait_for_file("begun");
            std::fs::remove_file(h.path("begun")).unwrap();
            s.sessile("interrupt").exits(0);
            s.answer(client, &text).exits(130).is_kept().has("interrupted", true);
            s.run("x").has("result", "1").warns("").is_kept();
            s.run_with(&["--timeout", "500ms"], hang).timed_out().exits(130).is_kept();
            s.run("x").has("result", "1").warns("").is_kept();
        }
    }
}

#[test]
fn a_subprocess_of_an_interrupted_run_is_ended_with_it() {
    let h = harness!();
    for (program, language) in languages() {
        let s = h.session_of(program);
        let text = match language {
            "node" => "require('child_process').execSync('echo $$ >pid; exec sleep 1000')",
            _ => "import subprocess; subprocess.run('echo $$ >pid; exec sleep 1000', shell=True)",
        };
        let client = s.begin(text);
        let child = Process::of(h.wait_for_line("pid").parse().unwrap());
        s.sessile("interrupt").exits(0);
        let answer = s.answer(client, text).has("interrupted", true).is_kept();
        assert_ne!(answer.json()["exit_code"], 0, "{answer:?}");
        // Python reaps it when it starts the next one.
        child.wait_ended();
        s.run("1").has("result", "1").is_kept();
        std::fs::remove_file(h.path("pid")).unwrap();
    }
}

#[test]
fn a_run_of_nodes_that_waits_for_a_child_is_interrupted_like_any_other() {
    let h = harness!();
    if !has_node() {
        return;
    }
    let s = h.session_of("node");
    let waits = "('echo $$ >pid; exec sleep 1000', { shell: true })";
    for round in 0..20 {
        let call = if round % 2 == 0 { "execSync" } else { "spawnSync" };
        let text = format!("require('child_process').{call}{waits}");
        let client = s.begin(&text);
        h.wait_for_line("pid");
        s.sessile("interrupt").exits(0);
        std::fs::remove_file(h.path("pid")).unwrap();
        s.answer(client, &text).exits(130).is_kept().has("interrupted", true);
    }
}

#[test]
fn code_that_swallows_interrupts_is_killed_and_that_is_said() {
    let h = harness!();
    let s = h.session_of("python3");
    let once =
        "import time\ntry:\n    time.sleep(1000)\nexcept KeyboardInterrupt:\n    print('caught')";
    s.run_with(&["--timeout", "500ms"], once).timed_out().prints("caught\n").is_kept();
    s.run("kept_name = 1");
    s.wait_captured(2);
    let deaf =
        "import time\nwhile True:\n    try: time.sleep(1000)\n    except BaseException: pass";
    // One call into C that does not come back.
    let endless = "sum(range(10**12))";
    let ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass";
    for code in [deaf, ignoring, endless] {
        let run = s.run("kept_name = 1").run();
        s.wait_captured(run);
        let answer = s.run_with(&["--timeout", "500ms"], code).timed_out().is_fresh();
        let answer = answer.exits(137);
        assert!(answer.notes().contains("kept_name"), "{answer:?}");
        s.run("1").has("result", "1").is_kept();
    }
}

/// Starts something that prints `late` when a later run lets it, which waits
/// for it and prints `mine`.
const LATE: &[(&str, &str, &str)] = &[
    (
        "python",
        "import threading\ngo = threading.Event()\nt = threading.Thread(target=lambda: (go.wait(), print('late')))\nt.start()",
        "go.set(); t.join(); print('mine')",
    ),
    (
        "python",
        "import asyncio\nagain = asyncio.Event()\nasync def wait():\n    await again.wait()\n    print('late')\ntask = asyncio.create_task(wait())",
        "again.set(); await task; print('mine')",
    ),
    (
        "python",
        "import subprocess\np = subprocess.Popen('read x; echo late', shell=True, stdin=subprocess.PIPE)",
        "p.communicate(b'go\\n'); print('mine')",
    ),
    (
        "node",
        "const net = require('net'), server = net.createServer((c) => { console.log('late'); c.end(); server.close() }); await new Promise((r) => server.listen(0, '127.0.0.1', r)); 0",
        "await new Promise((r) => net.connect(server.address().port, '127.0.0.1').resume().on('close', r)); console.log('mine')",
    ),
    (
        "node",
        "let fire = false, over; const ended = new Promise((r) => { over = r }); const timer = setInterval(() => { if (fire) { console.log('late'); clearInterval(timer); over() } }, 1); 0",
        "fire = true; await ended; console.log('mine')",
    ),
    (
        "node",
        "const child = require('child_process').spawn('sh', ['-c', 'read x; echo late'], { stdio: ['pipe', 'inherit', 'inherit'] }); const closed = new Promise((r) => child.on('close', r)); 0",
        "child.stdin.end('go\\n'); await closed; console.log('mine')",
    ),
];

#[test]
fn what_is_printed_in_the_background_is_filed_under_the_run_that_started_it() {
    let h = harness!();
    for (program, language) in languages() {
        let s = h.session_of(program);
        for (_, start, finish) in LATE.iter().filter(|(of, ..)| *of == language) {
            println!("{language}: {start}");
            let started = s.run(start).prints("").exits(0).run();
            s.run("1").has("result", "1").prints("");
            s.run(finish).prints("mine\n").warns("").exits(0).is_kept();
            s.wait_filed(started, "stdout", "late\n");
        }
    }
}

/// Starts a process that nobody waits for, and prints its id.
fn clinging(s: &Session<'_>, language: &str) -> Process {
    s.spawns(match language {
        "node" => "const c = require('child_process').spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' }); c.unref(); console.log(c.pid)",
        _ => "import subprocess; print(subprocess.Popen(['sleep', '1000'], start_new_session=True).pid)",
    })
}

#[test]
fn nothing_is_left_when_a_session_ends_or_its_keeper_dies() {
    let h = harness!();
    for (program, language) in languages() {
        let s = h.session_of(program);
        let child = clinging(&s, language);
        s.run("1").has("result", "1");
        child.assert_alive();
        let keeper = s.keeper();
        s.end();
        assert!(!child.is_alive(), "{child}");
        keeper.wait_gone();
        let s = h.session_of(program);
        let child = clinging(&s, language);
        s.keeper().kill().wait_gone();
        child.wait_gone();
        let revived = s.run("1").has("result", "1").is_fresh();
        assert_ne!(revived.json()["notes"], Value::Null, "{revived:?}");
        s.end();
    }
    h.processes().iter().for_each(Process::wait_gone);
}

#[test]
fn the_error_of_a_run_is_in_its_answer_only() {
    let h = harness!();
    let s = h.session();
    s.run_in("python", "1/0")
        .has("error", json!({"type": "ZeroDivisionError", "message": "division by zero"}));
    assert_eq!(s.run_in("python", "1").json().get("error"), None);
    assert_eq!(s.run("(exit 1)").json().get("error"), None, "a status is no error of a shell's");
}

#[test]
fn a_language_that_was_lost_with_its_keeper_is_not_said_to_be_back() {
    let h = harness!();
    for program in ["python3", "bash"] {
        let s = h.session_of(program);
        s.run_in("python", "kept_name = 1");
        s.wait_captured(1);
        s.keeper().kill().wait_gone();
        let answer = s.run_in("python", "'kept_name' in globals()");
        let answer = answer.has("result", "False").is_fresh();
        assert!(answer.notes().contains("kept_name"), "{program}: {answer:?}");
    }
}

#[test]
fn what_was_lost_between_two_runs_is_named_in_the_next_answer() {
    let h = harness!();
    let s = h.session_of("python3");
    let kernel = s.spawns("import os; kept_name = 1; print(os.getpid())");
    s.wait_captured(1);
    kernel.kill().wait_gone();
    let answer = s.run("1").has("result", "1").is_fresh();
    for word in ["signal 9", "kept_name"] {
        assert!(answer.notes().contains(word), "{word} in {answer:?}");
    }
}
