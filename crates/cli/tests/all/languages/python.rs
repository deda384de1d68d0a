//! Python that remembers: values, errors, streams, interrupts and endings of a
//! real interpreter.

use serde_json::{Value, json};
use sessile_testkit::{Answer, Harness, Process, Session, harness, until};

fn python(h: &Harness) -> Session<'_> {
    h.session_of("python3")
}

/// The code, its stdout, and its value. In one session, one after the other.
const VALUES: &[(&str, &str, Option<&str>)] = &[
    ("1 + 1", "", Some("2")),
    ("_ * 21", "", Some("42")),
    ("x = 5", "", None),
    ("x", "", Some("5")),
    ("x;", "", None),
    ("None", "", None),
    ("print('a'); x", "a\n", Some("5")),
    ("import math; r = 2", "", None),
    ("math.pi * r**2", "", Some("12.566370614359172")),
    ("def f(n):\n    return n + 1\n\nf(1)", "", Some("2")),
    ("if x == 5:\n    print('five')", "five\n", None),
    ("for i in range(3):\n    print(i)\ni", "0\n1\n2\n", Some("2")),
    ("[\n  1,\n  2,\n]", "", Some("[1, 2]")),
    ("'''a\n\nb'''", "", Some("'a\\n\\nb'")),
    (r#"'\\' + "\"" + r'\n' + '\''"#, "", Some(r#"'\\"\\n\''"#)),
    ("'é😀'", "", Some("'é😀'")),
    ("import asyncio; await asyncio.sleep(0, 'slept')", "", Some("'slept'")),
    ("async def count():\n    yield 1\n    yield 2", "", None),
    ("[n async for n in count()]", "", Some("[1, 2]")),
    ("async def g():\n    return 7", "", None),
    ("await g()", "", Some("7")),
    ("__name__", "", Some("'__main__'")),
    ("import __main__; __main__.x", "", Some("5")),
    ("# nothing but a comment", "", None),
    ("class C: pass", "", None),
    ("import pickle; type(pickle.loads(pickle.dumps(C()))) is C", "", Some("True")),
    ("def h():\n    # why\n    return 1", "", None),
    ("import inspect; inspect.getsource(h)", "", Some("'def h():\\n    # why\\n    return 1\\n'")),
    ("import sys; sys.argv", "", Some("['']")),
    (
        "global_ = 1\ndef set_():\n    global global_\n    global_ = 2\nset_()\nglobal_",
        "",
        Some("2"),
    ),
];

#[test]
fn the_value_of_a_last_expression_is_the_result() {
    let h = harness!();
    let s = python(&h);
    for (code, out, result) in VALUES {
        let answer = s.run(code).warns("").prints(out).exits(0).is_kept();
        let result = result.map_or(Value::Null, Value::from);
        assert_eq!(answer.json()["result"], result, "{answer:?}");
        assert_eq!(answer.json()["language"], "python");
    }
}

#[test]
fn richer_forms_of_a_value_come_by_their_type() {
    let h = harness!();
    let s = python(&h);
    s.run("class R:\n    def _repr_html_(self): return '<b>x</b>'\n    def _repr_png_(self): return b'\\x89PNG'\n    def __repr__(self): return 'R!'");
    let answer = s.run("R()").has("result", "R!");
    let data = json!({"text/html": "<b>x</b>", "image/png": "iVBORw=="});
    let answer = answer.has("data", data);
    assert_eq!(answer.notes(), "");
    s.run("b'\\x89PNG\\r\\n\\x1a\\n.'").has("data", json!({"image/png": "iVBORw0KGgou"}));
    s.run("b'\\xff\\xd8\\xff.'").has("data", json!({"image/jpeg": "/9j/Lg=="}));
    let svg = "<?xml version=\"1.0\"?><svg><g/></svg>";
    s.run(format!("'{svg}'")).has("data", json!({"image/svg+xml": svg}));
    for plain in ["b'PNG'", "'an </svg> in a text'", "'<svg>'"] {
        assert_eq!(s.run(plain).json().get("data"), None, "{plain}");
    }
    s.run("class Bad:\n    def __repr__(self): 1/0");
    s.run("Bad()").is_kept();
    s.run("1").has("result", "1");
}

/// The code, its exit code, the error's type and message, and a line that the
/// traceback shows.
type Failure = (&'static str, i64, Option<(&'static str, &'static str)>, &'static str);

const FAILURES: &[Failure] = &[
    ("a = 1\n1/0  # mine", 1, Some(("ZeroDivisionError", "division by zero")), "1/0  # mine"),
    ("raise ValueError('not\\nthis')", 1, Some(("ValueError", "not\nthis")), "raise ValueError"),
    ("nope", 1, Some(("NameError", "name 'nope' is not defined")), "nope"),
    ("import nope", 1, Some(("ModuleNotFoundError", "No module named 'nope'")), "import nope"),
    ("def deep():\n    raise KeyError('k')\ndeep()", 1, Some(("KeyError", "'k'")), "in deep"),
    ("class Own(Exception): pass\nraise Own", 1, Some(("Own", "")), "Own"),
    ("raise SystemExit(4)", 4, None, ""),
    ("raise SystemExit", 0, None, ""),
    ("exit(3)", 3, None, ""),
    ("import sys; sys.exit('because')", 1, None, "because"),
    ("quit()", 0, None, ""),
    ("async def a(): raise OSError('x')\nawait a()", 1, Some(("OSError", "x")), "in a"),
];

#[test]
fn an_exception_fails_the_run_and_keeps_the_kernel() {
    let h = harness!();
    let s = python(&h);
    s.run("x = 1");
    for (code, exit, error, shown) in FAILURES {
        let answer = s.run(code).prints("").exits(*exit).is_kept();
        if let Some((kind, message)) = error {
            let error = json!({"type": kind, "message": message});
            assert_eq!(answer.json()["error"], error, "{answer:?}");
            assert!(answer.stderr().starts_with("Traceback (most recent call last):\n"));
        }
        assert!(answer.stderr().contains(shown), "{answer:?}");
        assert_shows_none_of_ours(&s, &answer);
    }
    s.run("x").has("result", "1").is_kept();
}

#[track_caller]
fn assert_shows_none_of_ours(s: &Session<'_>, answer: &Answer) {
    let id = s.id().trim_start_matches("sess_");
    for ours in ["driver.py", "kernel.py", "sessile", &id[..12]] {
        assert!(!answer.stderr().contains(ours), "{ours} in {answer:?}");
    }
}

#[test]
fn a_syntax_error_runs_nothing_and_shows_the_line() {
    let h = harness!();
    let s = python(&h);
    let answer = s.run("print('not this')\nx = = 1").prints("").exits(1).is_kept();
    assert_eq!(answer.json()["error"]["type"], "SyntaxError");
    assert!(answer.stderr().contains("x = = 1"), "{answer:?}");
    assert_shows_none_of_ours(&s, &answer);
    s.run("  indented = 1\n").is_kept();
    s.run("1").has("result", "1");
}

#[test]
fn all_that_writes_to_the_descriptors_arrives_in_order_byte_for_byte() {
    let h = harness!();
    let s = python(&h);
    s.run("import os, sys, subprocess, ctypes");
    s.run(
        "print('1'); os.system('echo 2'); subprocess.run(['echo', '3']); os.write(1, b'4\\n')\n\
         ctypes.CDLL(None).puts(b'5'); sys.stdout.write('6'); print('', flush=False)\n\
         print('7', end=''); sys.stderr.write('e\\n'); os.system('echo f >&2'); None",
    )
    .prints("1\n2\n3\n4\n5\n6\n7")
    .warns("e\nf\n");
    let all: Vec<u8> = (0..=255).collect();
    let answer =
        s.run("sys.stdout.buffer.write(bytes(range(256))); os.write(2, b'\\xff\\x00'); None");
    assert_eq!(answer.bytes("stdout"), all);
    assert_eq!(answer.bytes("stderr"), b"\xff\0");
    s.run("print('\\r\\n\\x1b[0m é😀')").prints("\r\n\u{1b}[0m é😀\n");
}

#[test]
fn code_of_any_size_and_any_quotes_is_run_as_it_is() {
    let h = harness!();
    let s = python(&h);
    let text: String = (0..200_000).map(|i| char::from(b' ' + (i % 95) as u8)).collect();
    let literal = text.replace('\\', "\\\\").replace('\'', "\\'");
    s.run(format!("t = '{literal}'\nprint(t, end='')")).prints(&text).exits(0);
    let lines: String = (0..20_000).map(|i| format!("v{i} = {i}\n")).collect();
    s.run(format!("{lines}v19999")).has("result", "19999");
}

#[test]
fn input_is_empty_unless_given() {
    let h = harness!();
    let s = python(&h);
    s.run("input()")
        .exits(1)
        .has("error", json!({"type": "EOFError", "message": "EOF when reading a line"}));
    s.run("import sys; sys.stdin.read()").has("result", "''");
    s.run("import subprocess; subprocess.run(['cat']).returncode").has("result", "0");
    s.run("import os; os.system('cat'); os.read(0, 10)").has("result", "b''");
    std::fs::write(h.path("given"), "one\ntwo\nthree\nfour").unwrap();
    let given = h.path("given").display().to_string();
    let answer = s.run_with(&["--stdin", &given], "(input('? '), input(), sys.stdin.read())");
    answer.has("result", r"('one', 'two', 'three\nfour')").prints("? ");
    let answer = s.run_with(&["--stdin", &given], "subprocess.run(['cat']); None");
    answer.prints("one\ntwo\nthree\nfour");
    s.run("sys.stdin.read()").has("result", "''").is_kept();
}

#[test]
fn an_environment_for_one_run_is_gone_after_it() {
    let h = harness!();
    let s = python(&h);
    s.run("import os; os.environ['KEPT'] = 'k'");
    let ask = "os.environ.get('ONE'), os.environ['KEPT']";
    s.run_with(&["--env", "ONE=1", "--env", "KEPT=other"], ask).has("result", "('1', 'other')");
    s.run(ask).has("result", "(None, 'k')");
}

#[test]
fn the_state_is_what_the_users_code_has_made() {
    let h = harness!();
    let s = python(&h);
    std::fs::create_dir(h.path("sub")).unwrap();
    s.run("from os import path\nimport xml.dom as dom, math\ntry:\n    import nope\nexcept ImportError: pass");
    s.run("n = 3; text = 'a'; big = list(range(100000))\ndef area(r, *, k=1): return r\nclass K: pass");
    s.run(
        "class Trap:\n    def __repr__(self): open('touched', 'w'); return ''\n    \
         @property\n    def p(self): open('touched', 'w')\ntrap = Trap()",
    );
    s.run("import os; os.chdir('sub'); os.environ['LIVE'] = 'yes'; s = 's' * 10**6");
    let state = s.state();
    let mut imports: Vec<_> =
        state["imports"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    imports.sort_unstable();
    assert_eq!(imports, ["math", "os", "xml.dom"]);
    assert_eq!(state["working_dir"], h.path("sub").display().to_string());
    assert_eq!(state["env_vars"]["LIVE"], "yes");
    assert_eq!(state["variables"]["n"], json!({"name": "n", "type": "int", "repr": "3"}));
    assert_eq!(state["variables"]["trap"]["type"], "Trap");
    for name in ["big", "s"] {
        let shown = state["variables"][name]["repr"].as_str().unwrap();
        assert!(shown.len() < 1000, "{name}: {} bytes", shown.len());
    }
    let functions = state["functions"].as_array().unwrap();
    assert_eq!(functions.len(), 1, "{functions:?}");
    assert_eq!(functions[0]["signature"], "area(r, *, k=1)");
    assert!(!h.path("sub/touched").exists(), "no code of the user's was run");
    s.run("del n, area; n2 = 1");
    let state = s.state();
    assert_eq!(state["variables"].get("n"), None);
    assert_eq!(state["functions"], json!([]));
}

/// What a line of a notebook does here.
const NOTEBOOK: &[(&str, &str, Option<&str>)] = &[
    ("!echo hi", "hi\n", None),
    ("x = 6\n!echo {x}", "6\n", None),
    ("names = !printf 'b\\na\\n'\nsorted(names)", "", Some("['a', 'b']")),
    ("for i in range(2):\n    !echo n{i}", "n0\nn1\n", None),
    ("%cd /usr\nimport os; os.getcwd()", "/usr\n", Some("'/usr'")),
    ("!pwd", "/usr\n", None),
    ("'''\n!echo not run\n'''", "", Some(r"'\n!echo not run\n'")),
    ("5 %2", "", Some("1")),
    ("%%bash\nx=1\necho $((x+1))", "2\n", None),
];

#[test]
fn lines_of_a_notebook_do_what_they_do_there() {
    let h = harness!();
    let s = python(&h);
    for (code, out, result) in NOTEBOOK {
        let answer = s.run(code).warns("").prints(out).exits(0).is_kept();
        let result = result.map_or(Value::Null, Value::from);
        assert_eq!(answer.json()["result"], result, "{answer:?}");
    }
    assert_eq!(s.state()["working_dir"], "/usr");
}

#[test]
fn pip_is_that_of_this_interpreter() {
    let h = harness!();
    let make = "python3 -m venv --without-pip venv";
    h.session().run(make).exits(0);
    // A pip of our own, which tells who it was called by.
    let made = "import glob, sys; print(glob.glob(sys.prefix + '/lib/python*/site-packages')[0])";
    let s = h.session_of("venv/bin/python");
    let packages = s.run(made).stdout().trim().to_owned();
    std::fs::create_dir(format!("{packages}/pip")).unwrap();
    let main = "import sys; print(sys.prefix, sys.argv[1:])";
    std::fs::write(format!("{packages}/pip/__init__.py"), "").unwrap();
    std::fs::write(format!("{packages}/pip/__main__.py"), main).unwrap();
    for line in ["pip install x", "%pip install x", "!pip install x"] {
        let answer = s.run(line).exits(0);
        let expected = format!("{} ['install', 'x']", h.path("venv").display());
        assert!(answer.stdout().contains(&expected), "{line}: {answer:?}");
    }
}

#[test]
fn much_output_is_bounded_and_its_whole_is_on_disk() {
    let h = harness!();
    let s = python(&h);
    let all: String = (0..100_000).map(|i| format!("{i}\n")).collect();
    let answer = s.run_with(&["--max-output", "1KiB"], "for i in range(100000): print(i)");
    assert!(answer.stdout().len() < 1500);
    assert!(answer.json()["truncated"]["stdout"]["dropped_bytes"].is_u64(), "{answer:?}");
    assert_eq!(std::fs::read_to_string(s.dir().join("runs/1.stdout")).unwrap(), all);
    let capped = h.session_with(&["python3", "--output-cap", "64KiB"]);
    let answer = capped.run("import os; os.system('seq 100000'); print('end')").exits(0);
    assert!(answer.stdout().ends_with("100000\nend\n"));
    assert_eq!(std::fs::metadata(capped.dir().join("runs/1.stdout")).unwrap().len(), 64 << 10);
    let answer = capped.run("'x' * 3_000_000").exits(0);
    assert!(answer.json()["result"].as_str().unwrap().len() < 1_100_000);
    assert_ne!(answer.notes(), "", "it is told");
}

/// The code, its exit code, and what is said about it. The kernel is a new one.
const DEATHS: &[(&str, i64, &str)] = &[
    ("import os; os._exit(5)", 5, "5"),
    ("import os; os._exit(0)", 0, "0"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137, "signal 9"),
    ("import ctypes; ctypes.string_at(0)", 139, "signal 11"),
    ("import os; os.abort()", 134, "signal 6"),
    ("import os; os.execvp('sh', ['sh', '-c', 'exit 7'])", 7, "7"),
    (
        "import threading, os; threading.Thread(target=lambda: os._exit(9)).start(); threading.Event().wait()",
        9,
        "9",
    ),
];

#[test]
fn the_death_of_the_interpreter_is_told_with_what_was_lost() {
    let h = harness!();
    let s = python(&h);
    for (code, exit, said) in DEATHS {
        s.run("import math; kept_name = 1\ndef kept_function(): pass");
        let run = s.run("print('before')").run();
        s.wait_captured(run);
        let answer = s.run(format!("print('out', flush=True)\n{code}")).exits(*exit).is_fresh();
        let answer = answer.prints("out\n");
        let notes = answer.notes();
        for word in [said, "kept_name", "kept_function", "math"] {
            assert!(notes.contains(word), "{word} in {answer:?}");
        }
        s.run("kept_name").exits(1).is_kept();
        s.run("1 + 1").has("result", "2").is_kept();
    }
}

#[test]
fn an_interpreter_that_is_killed_between_runs_is_told_of_in_the_next_answer() {
    let h = harness!();
    let s = python(&h);
    let kernel = Process::of(s.run("import os; kept_name = 1; print(os.getpid())").number());
    s.wait_captured(1);
    kernel.kill().wait_gone();
    s.run("'kept_name' in globals()").has("result", "False").is_fresh();
    s.run("1").has("result", "1").is_kept();
}

#[test]
fn an_exception_in_a_thread_is_filed_under_the_run_that_started_it() {
    let h = harness!();
    let s = python(&h);
    s.run(
        "import threading\ngo = threading.Event()\ndef fail():\n    go.wait()\n    1/0\n\
         thread = threading.Thread(target=fail); thread.start()",
    );
    s.run("go.set(); thread.join(); 'mine'").has("result", "'mine'").warns("").exits(0);
    let file = s.dir().join("runs/1.stderr");
    until("the traceback", || {
        let text = std::fs::read_to_string(&file).ok()?;
        text.ends_with("ZeroDivisionError: division by zero\n").then_some(())
    });
    s.run("1").has("result", "1").is_kept();
}
