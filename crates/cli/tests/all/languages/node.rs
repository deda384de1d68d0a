//! Node that remembers: values, errors, streams and endings of a real process.

use serde_json::{Value, json};
use sessile_testkit::{Answer, Harness, Process, Session, harness, until};

/// A session of node's, if this machine has it.
fn node(h: &Harness) -> Option<Session<'_>> {
    Harness::shells(&["node"]).first().map(|node| h.session_of(node))
}

/// The code, its stdout, and its value. In one session, one after the other.
const VALUES: &[(&str, &str, Option<&str>)] = &[
    ("1 + 1", "", Some("2")),
    ("const n = 20; let m = 1", "", None),
    ("n * 2 + m", "", Some("41")),
    ("const n = 'again'; class A { x = 1 }", "", None),
    ("let n = [n]; class A { y = 2 }", "", None),
    ("let n = 3; var m = 4; n + m", "", Some("7")),
    ("new A()", "", Some("A { y: 2 }")),
    ("function f(a) { return a + 1 }\nf(1)", "", Some("2")),
    ("function f(a) { return a + 2 }", "", None),
    ("f(1)", "", Some("3")),
    ("const { a, b: [c, ...d], e = 5 } = { a: 1, b: [2, 3, 4] }; 0", "", Some("0")),
    ("[a, c, d, e]", "", Some("[ 1, 2, [ 3, 4 ], 5 ]")),
    ("undefined", "", None),
    ("null", "", Some("null")),
    ("'é😀'", "", Some("'é😀'")),
    ("console.log('a'); 5", "a\n", Some("5")),
    ("await Promise.resolve(9)", "", Some("9")),
    ("const os = await import('node:os'); typeof os.cpus", "", Some("'function'")),
    ("for await (const x of [1, Promise.resolve(2)]) console.log(x)", "1\n2\n", None),
    ("import { join } from 'node:path'; join('a', 'b')", "", Some("'a/b'")),
    ("join('c', 'd')", "", Some("'c/d'")),
    ("const fs = require('fs'), path = require('path'); path.basename('/a/b')", "", Some("'b'")),
    ("if (n === 3) { console.log('three') }", "three\n", None),
    ("for (let i = 0; i < 2; i++) { console.log(i) }", "0\n1\n", None),
    ("({ a: 1 })", "", Some("{ a: 1 }")),
    (r#"'\\' + "\"" + `\`${1 + 1}` + String.raw`\n`"#, "", Some(r#"'\\"`2\\n'"#)),
    ("/* nothing */ // at all", "", None),
    ("const late = () => later; const later = 8; late()", "", Some("8")),
    ("async function g() { return await later }", "", None),
    ("await g()", "", Some("8")),
    ("const counter = (() => { let i = 0; return () => ++i })(); counter()", "", Some("1")),
    ("counter()", "", Some("2")),
    ("new Map([['k', { deep: [1] }]])", "", Some("Map(1) { 'k' => { deep: [ 1 ] } }")),
];

#[test]
fn the_value_of_a_last_expression_is_the_result() {
    let h = harness!();
    let Some(s) = node(&h) else { return };
    for (code, out, result) in VALUES {
        let answer = s.run(code).warns("").prints(out).exits(0).is_kept();
        let result = result.map_or(Value::Null, Value::from);
        assert_eq!(answer.json()["result"], result, "{answer:?}");
        assert_eq!(answer.json()["language"], "node");
    }
}

#[test]
fn modules_are_resolved_from_the_working_directory() {
    let h = harness!();
    let Some(s) = node(&h) else { return };
    for (dir, value) in [("one", 1), ("two", 2)] {
        let package = h.path(dir).join("node_modules/dependency");
        std::fs::create_dir_all(&package).unwrap();
        std::fs::write(package.join("index.js"), format!("module.exports = {value}")).unwrap();
        std::fs::write(h.path(dir).join("lib.js"), format!("exports.v = {value}")).unwrap();
        std::fs::write(h.path(dir).join("lib.mjs"), format!("export const v = {value}")).unwrap();
    }
    for (dir, value) in [("one", "1"), ("two", "2")] {
        let place = h.path(dir);
        s.run(format!("process.chdir('{}')", place.display())).exits(0);
        s.run("require('dependency')").has("result", value);
        s.run("require('./lib').v").has("result", value);
        s.run("(await import('./lib.mjs')).v").has("result", value);
        s.run("import { v } from './lib.mjs'; v").has("result", value);
        s.run("(await import('dependency')).default").has("result", value);
    }
    let answer = s.run("require('./nowhere')").exits(1).is_kept();
    assert!(answer.stderr().contains("Cannot find module './nowhere'"), "{answer:?}");
}

/// The code, its exit code, the error's type and message, and a line that
/// stderr shows.
type Failure = (&'static str, i64, Option<(&'static str, &'static str)>, &'static str);

const FAILURES: &[Failure] = &[
    (
        "const u = null\nu.name // mine",
        1,
        Some(("TypeError", "Cannot read properties of null (reading 'name')")),
        "u.name // mine",
    ),
    ("throw new RangeError('x')", 1, Some(("RangeError", "x")), "throw new RangeError('x')"),
    ("nope", 1, Some(("ReferenceError", "nope is not defined")), "nope"),
    ("function deep() { throw new Error('d') }\ndeep()", 1, Some(("Error", "d")), "at deep"),
    ("await Promise.reject(new Error('awaited'))", 1, Some(("Error", "awaited")), "awaited"),
    ("Promise.reject(new Error('nobody')); 5", 1, Some(("Error", "nobody")), "nobody"),
    ("class Own extends Error { name = 'Own' }; throw new Own('o')", 1, Some(("Own", "o")), "Own"),
    (
        "setTimeout(() => { throw new Error('timer') }, 0); await new Promise(() => {})",
        1,
        Some(("Error", "timer")),
        "timer",
    ),
    ("process.nextTick(() => { throw new Error('tick') }); 1", 1, Some(("Error", "tick")), "tick"),
    ("process.exit(3)", 3, None, ""),
    ("process.exit()", 0, None, ""),
    ("process.exitCode = 6", 6, None, ""),
    ("await new Promise((r) => setTimeout(r, 0)); process.exit(4)", 4, None, ""),
    ("try { process.exit(5) } catch {}; try { process.exit(5) } finally { x = 9 }", 5, None, ""),
];

#[test]
fn an_error_fails_the_run_that_caused_it_and_keeps_the_kernel() {
    let h = harness!();
    let Some(s) = node(&h) else { return };
    s.run("let kept = 1, x");
    for (code, exit, error, shown) in FAILURES {
        let answer = s.run(code).prints("").exits(*exit).is_kept();
        if let Some((kind, message)) = error {
            let error = json!({"type": kind, "message": message});
            assert_eq!(answer.json()["error"], error, "{answer:?}");
        }
        assert!(answer.stderr().contains(shown), "{answer:?}");
        assert_shows_none_of_ours(&s, &answer);
        s.run("kept").has("result", "1").exits(0).warns("").is_kept();
    }
}

#[track_caller]
fn assert_shows_none_of_ours(s: &Session<'_>, answer: &Answer) {
    let id = s.id().trim_start_matches("sess_");
    for ours in ["driver.js", "evaluate.js", "sessile", &id[..12]] {
        assert!(!answer.stderr().contains(ours), "{ours} in {answer:?}");
    }
}

#[test]
fn whatever_is_thrown_is_told() {
    let h = harness!();
    let Some(s) = node(&h) else { return };
    for thrown in ["'text'", "undefined", "null", "5", "{ code: 1 }", "Object.create(null)"] {
        let answer = s.run(format!("throw {thrown}")).exits(1).is_kept();
        assert!(answer.json()["error"]["type"].is_string(), "{answer:?}");
        assert_ne!(answer.stderr(), "", "{answer:?}");
    }
}

#[test]
fn a_syntax_error_runs_nothing_and_shows_the_line() {
    let h = harness!();
    let Some(s) = node(&h) else { return };
    for code in ["console.log('not this')\nlet x = = 1", "{ console.log(1)", "await = 5; x )"] {
        let answer = s.run(code).prints("").exits(1).is_kept();
        assert_eq!(answer.json()["error"]["type"], "SyntaxError", "{answer:?}");
        assert_shows_none_of_ours(&s, &answer);
    }
    let answer = s.run("let ok = 1\nlet x = = 1");
    assert!(answer.stderr().contains("let x = = 1"), "{answer:?}");
    s.run("typeof ok").has("result", "'undefined'");
}

#[test]
fn all_that_writes_to_the_descriptors_arrives_in_order_byte_for_byte() {
    let h = harness!();
    let Some(s) = node(&h) else { return };
    s.run("const fs = require('fs'), cp = require('child_process')");
    s.run(
        "console.log('1'); cp.execSync('echo 2', { stdio: 'inherit' }); fs.writeSync(1, '3\\n')\n\
         process.stdout.write('4\\n'); cp.spawnSync('echo', ['5'], { stdio: 'inherit' })\n\
         console.error('e'); cp.execSync('echo f >&2', { stdio: 'inherit' }); process.stderr.write('g')\n\
         process.stdout.write('6'); undefined",
    )
    .prints("1\n2\n3\n4\n5\n6")
    .warns("e\nf\ng");
    let all: Vec<u8> = (0..=255).collect();
    let answer = s.run(
        "process.stdout.write(Buffer.from([...Array(256).keys()])); fs.writeSync(2, Buffer.from([255, 0])); undefined",
    );
    assert_eq!(answer.bytes("stdout"), all);
    assert_eq!(answer.bytes("stderr"), b"\xff\0");
    s.run("console.log('\\r\\n\\x1b[0m é😀')").prints("\r\n\u{1b}[0m é😀\n");
    s.run("process.stdout.write('x'.repeat(500000)); process.exit(2)").exits(2);
    let run = s.run("undefined").run() - 1;
    let file = std::fs::read(s.dir().join(format!("runs/{run}.stdout"))).unwrap();
    assert_eq!(file.len(), 500_000, "all of it is there before the exit");
}

#[test]
fn code_of_any_size_is_run_as_it_is() {
    let h = harness!();
    let Some(s) = node(&h) else { return };
    let text: String = (0..200_000).map(|i| char::from(b' ' + (i % 95) as u8)).collect();
    let literal = text.replace('\\', "\\\\").replace('\'', "\\'");
    s.run(format!("const t = '{literal}'\nprocess.stdout.write(t); 0")).prints(&text).exits(0);
    let lines: String = (0..5_000).map(|i| format!("let v{i} = {i}\n")).collect();
    s.run(format!("{lines}v4999")).has("result", "4999");
}

#[test]
fn input_is_empty_unless_given() {
    let h = harness!();
    let Some(s) = node(&h) else { return };
    let sync = "require('fs').readFileSync(0, 'utf8')";
    let stream =
        "{ let all = ''; for await (const part of process.stdin) all += part; console.log(all) }";
    let child = "require('child_process').execSync('cat', { stdio: ['inherit', 'pipe', 'inherit'] }).toString()";
    std::fs::write(h.path("given"), "one\ntwo").unwrap();
    let given = h.path("given").display().to_string();
    for _ in 0..2 {
        s.run(sync).has("result", "''");
        s.run(child).has("result", "''");
        s.run(stream).prints("\n");
        s.run_with(&["--stdin", &given], sync).has("result", r"'one\ntwo'");
        s.run_with(&["--stdin", &given], child).has("result", r"'one\ntwo'");
        s.run_with(&["--stdin", &given], stream).prints("one\ntwo\n").is_kept();
    }
}

#[test]
fn an_environment_for_one_run_is_gone_after_it() {
    let h = harness!();
    let Some(s) = node(&h) else { return };
    s.run("process.env.KEPT = 'k'");
    let ask = "[process.env.ONE, process.env.KEPT]";
    s.run_with(&["--env", "ONE=1", "--env", "KEPT=other"], ask).has("result", "[ '1', 'other' ]");
    s.run(ask).has("result", "[ undefined, 'k' ]");
}

#[test]
fn the_state_is_what_the_users_code_has_made() {
    let h = harness!();
    let Some(s) = node(&h) else { return };
    std::fs::create_dir(h.path("sub")).unwrap();
    s.run("const os = require('node:os'); const p = await import('node:path'); let n = 3; var text = 'a'");
    s.run("function area(r, k = 1) { return r }; class K {}; const arrow = (a) => a");
    s.run("const trap = { get p() { require('fs').writeFileSync('touched', '') }, [require('util').inspect.custom]() { require('fs').writeFileSync('touched', '') } }");
    s.run("process.chdir('sub'); process.env.LIVE = 'yes'; const big = 'x'.repeat(1e6), list = [...Array(1e5).keys()]");
    let state = s.state();
    let imports = state["imports"].to_string();
    for name in ["node:os", "node:path"] {
        assert!(imports.contains(name), "{name} in {imports}");
    }
    assert_eq!(state["working_dir"], h.path("sub").display().to_string());
    assert_eq!(state["env_vars"]["LIVE"], "yes");
    assert_eq!(state["variables"]["n"]["type"], "number", "{}", state["variables"]["n"]);
    assert_eq!(state["variables"]["n"]["repr"], "3", "{}", state["variables"]["n"]);
    for name in ["big", "list", "trap"] {
        assert!(state["variables"][name].to_string().len() < 1000, "{name} is short");
    }
    let functions = state["functions"].as_array().unwrap();
    let names: Vec<_> = functions.iter().map(|f| f["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"area") && names.contains(&"arrow"), "{names:?}");
    assert!(!h.path("sub/touched").exists() && !h.path("touched").exists(), "nothing was run");
}

#[test]
fn much_output_is_bounded_and_its_whole_is_on_disk() {
    let h = harness!();
    let Some(s) = node(&h) else { return };
    let all: String = (0..20_000).map(|i| format!("{i}\n")).collect();
    let code = "for (let i = 0; i < 20000; i++) console.log(i)";
    let answer = s.run_with(&["--max-output", "1KiB"], code);
    assert!(answer.stdout().len() < 1500);
    assert!(answer.json()["truncated"]["stdout"]["dropped_bytes"].is_u64(), "{answer:?}");
    assert_eq!(std::fs::read_to_string(s.dir().join("runs/1.stdout")).unwrap(), all);
    let capped = h.session_with(&["node", "--output-cap", "64KiB"]);
    let answer =
        capped.run("process.stdout.write('x'.repeat(300000)); console.log('end')").exits(0);
    assert!(answer.stdout().ends_with("xend\n"));
    assert_eq!(std::fs::metadata(capped.dir().join("runs/1.stdout")).unwrap().len(), 64 << 10);
    let answer = capped.run("'x'.repeat(3e6)").exits(0);
    assert!(answer.json()["result"].as_str().unwrap().len() < 1_100_000);
}

/// The code, its exit code, and what is said about it. The kernel is a new one.
const DEATHS: &[(&str, i64, &str)] = &[
    ("process.kill(process.pid, 'SIGKILL'); await new Promise(() => {})", 137, "signal 9"),
    ("process.abort()", 134, "signal 6"),
    ("process.reallyExit(5)", 5, "5"),
];

#[test]
fn the_death_of_the_process_is_told_with_what_was_lost() {
    let h = harness!();
    let Some(s) = node(&h) else { return };
    for (code, exit, said) in DEATHS {
        s.run("const os = require('node:os'), kept_name = 1; function kept_function() {}");
        let run = s.run("console.log('before')").run();
        s.wait_captured(run);
        let answer = s.run(format!("console.log('out')\n{code}")).exits(*exit).is_fresh();
        let notes = answer.notes();
        for word in [said, "kept_name", "kept_function", "node:os"] {
            assert!(notes.contains(word), "{word} in {answer:?}");
        }
        answer.prints("out\n");
        s.run("typeof kept_name").has("result", "'undefined'").is_kept();
        s.run("1 + 1").has("result", "2").is_kept();
    }
}

#[test]
fn a_process_that_is_killed_between_runs_is_told_of_in_the_next_answer() {
    let h = harness!();
    let Some(s) = node(&h) else { return };
    let kernel = Process::of(s.run("const kept_name = 1; console.log(process.pid)").number());
    s.wait_captured(1);
    kernel.kill().wait_gone();
    s.run("typeof kept_name").has("result", "'undefined'").is_fresh();
    s.run("1").has("result", "1").is_kept();
}

/// What goes wrong once a later run lets it.
const LATE: &[&str] = &["throw new Error('late')", "Promise.reject(new Error('late'))"];

#[test]
fn an_error_in_the_background_is_filed_under_the_run_that_started_it() {
    let h = harness!();
    let Some(s) = node(&h) else { return };
    for fails in LATE {
        let start = format!(
            "let fire = false, over; const ended = new Promise((r) => {{ over = r }}); \
             const timer = setInterval(() => {{ if (fire) {{ clearInterval(timer); setImmediate(over); {fails} }} }}, 1); 0"
        );
        let started = s.run(start).exits(0).run();
        s.run("fire = true; await ended; 'mine'").has("result", "'mine'").warns("").exits(0);
        s.run("1").has("result", "1").warns("").is_kept();
        let file = s.dir().join(format!("runs/{started}.stderr"));
        until("the error", || {
            std::fs::read_to_string(&file).ok().filter(|text| text.contains("Error: late\n"))
        });
    }
}
